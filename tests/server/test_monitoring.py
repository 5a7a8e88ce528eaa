"""Health, readiness, metrics and the log: they tell operators what they need, and nothing of any table."""

from __future__ import annotations

import json
import logging
import os
import re
import signal

import pytest
import sqlalchemy as sa
from serving import BY_REGION, COUNT, fill, until_it_ends
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from dither.server import pool as pool_module
from dither.server.app import create_app
from dither.server.monitoring import HEADER, JsonFormatter, Metrics, RequestLog, outcome_of
from dither.server.pages.render import SESSION_COOKIE
from dither.wire.protocol import API
from support import eventually

TOKEN = "a token of the operator"


def metrics_of(client, token=TOKEN):
    return client.get("/metrics", headers={"Authorization": f"Bearer {token}"})


def values(text):
    """The samples of a text of metrics, without the number of the process."""
    pairs = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {re.sub(r'process="\d+",?', "", name): float(value) for name, _, value in pairs}


@pytest.fixture(scope="module")
def pair(start_site, tmp_path_factory):
    """Two servers whose tables differ in one person."""
    result = []
    for without in (None, 7):
        folder = fill(tmp_path_factory.mktemp("pair"), without=without)
        result.append(start_site(folder, metrics_tokens=(TOKEN, "the next " + TOKEN)))
    return result


def used(site):
    """The metrics of a server after the same requests."""
    app = create_app(site.service.config, service=site.service)
    client = TestClient(app, headers={"Authorization": f"Bearer {site.tokens['ann']}"})
    for sql in (COUNT, BY_REGION, "SELECT SUM(amount) AS s FROM visits WHERE who = 7", "SELECT nowhere FROM visits"):
        body = {"question": {"sql": sql}, "options": {"epsilon": 0.5}}
        until_it_ends(client, client.post(f"{API}/tables/visits/questions?wait=60", json=body))
    client.get(f"{API}/tables/nowhere")
    client.get("/tables")
    eventually(lambda: not site.service.context.jobs.under_way)
    return metrics_of(client)


def test_metrics_are_the_same_for_neighboring_tables(pair):
    one, other = (used(site) for site in pair)
    assert one.headers["content-type"].startswith("text/plain; version=0.0.4")
    counts, counts_too = values(one.text), values(other.text)
    assert counts.keys() == counts_too.keys()
    moving = {"dither_start_time_seconds{}", f'dither_requests_total{{route="{API}/jobs/{{job}}",outcome="ok"}}'}
    assert {name for name in counts if counts[name] != counts_too[name]} <= moving  # a slow machine asks again
    asked = f'dither_requests_total{{route="{API}/tables/{{table}}/questions",outcome="ok"}}'
    assert (counts[asked], counts["dither_workers{}"], counts["dither_workers_ready{}"]) == (4, 1, 1)
    assert (counts["dither_questions_under_way{}"], counts["dither_database_up{}"]) == (0, 1)


def test_no_metric_is_about_work_answers_or_incidents(pair):
    """The whole list. A metric that is added here is one of which the threat model says why it reveals nothing."""
    names = {name.partition("{")[0] for name in values(used(pair[0]).text)}
    assert names == {
        "dither_info", "dither_requests_total", "dither_start_time_seconds", "dither_workers", "dither_workers_ready",
        "dither_questions_under_way", "dither_database_up",
    }  # fmt: skip


def test_metrics_are_for_whoever_has_a_token_of_the_operator(pair, site):
    client = pair[0].client("sam")
    assert metrics_of(client).status_code == metrics_of(client, "the next " + TOKEN).status_code == 200
    for token in ("", "another", pair[0].tokens["sam"]):
        assert metrics_of(client, token).status_code == 404
    assert metrics_of(site.client(), "").status_code == 404  # no token is configured there


def test_a_database_that_is_down_is_told(pair, monkeypatch):
    def down(*_):
        raise sa.exc.OperationalError("SELECT", {}, Exception("a password"))

    client, session = pair[1].client("ann"), pair[1].service.auth.start_session("ann", "test")
    monkeypatch.setattr(pair[1].service.context.store, "rows", down)
    response = client.get("/ready")
    assert (response.status_code, response.json()["database"], response.json()["ready"]) == (503, False, False)
    assert values(metrics_of(client).text)["dither_database_up{}"] == 0
    assert client.get("/health").json() == {"alive": True}
    for path in ("/tables", f"{API}/tables", "/answers/1"):
        told = client.get(path, headers={"Cookie": f"{SESSION_COOKIE}={session}"})
        assert (told.status_code, told.headers["retry-after"]) == (503, "5"), path
        assert "temporarily unavailable" in told.text
        assert "password" not in told.text


@pytest.mark.slow
def test_readiness_tells_of_a_worker_that_died_idle_and_not_of_one_that_died_over_a_question(
    start_site, tmp_path, monkeypatch
):
    """When a process ends over a question depends on the rows, and is told at a tick alone. One that ended with nothing
    to do costs nobody a question: it is replaced first."""
    monkeypatch.setattr(pool_module, "_BETWEEN_LOOKS", 3600.0)  # or it might be replaced before anybody sees it
    site = start_site(fill(tmp_path), workers=1, warm=True)
    pool, client = site.service.context.pool, site.client()
    eventually(lambda: client.get("/ready").status_code == 200)
    assert client.get("/ready").json() == {"ready": True, "workers": 1, "of": 1, "database": True}
    [pid] = pool.pids
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: client.get("/ready").status_code == 503)
    with site.client("ann") as ann:
        body = {"question": {"sql": COUNT}, "options": {"epsilon": 0.5}}
        ended = until_it_ends(ann, ann.post(f"{API}/tables/visits/questions?wait=60", json=body)).json()
    assert (ended["state"], ended["problem"]) == ("answered", None)
    eventually(lambda: client.get("/ready").status_code == 200)
    slot = pool._slots[0]
    slot.is_busy = True
    os.kill(pool.pids[0], signal.SIGKILL)
    eventually(lambda: not slot.process.is_running)
    assert client.get("/ready").status_code == 200
    slot.is_busy = False
    pool.stop()
    response = client.get("/ready")
    assert (response.status_code, response.json()["workers"]) == (503, 0)
    assert client.get("/health").status_code == 200


SAMPLE = re.compile(r'[a-z_]+\{[a-z]+="[^"\\\n]*"(,[a-z]+="[^"\\\n]*")*\} -?[0-9.e+]+')


def handler(_):
    return PlainTextResponse("")


def test_every_line_is_in_the_text_format_of_prometheus():
    metrics = Metrics([Route("/answers/{answer}", handler)])
    metrics.count({"endpoint": handler}, 200)
    lines = metrics.text({"dither_workers": ("Workers.", 2)}, "1.0").splitlines()
    names = {line.split("{")[0] for line in lines if not line.startswith("#")}
    for line in lines:
        assert SAMPLE.fullmatch(line) or re.fullmatch(r"# (HELP [a-z_]+ .+|TYPE [a-z_]+ (gauge|counter))", line), line
    for name in names:  # each is described once, before its samples
        assert sum(line.startswith((f"# HELP {name} ", f"# TYPE {name} ")) for line in lines) == 2


def test_paths_that_clients_choose_make_no_new_series():
    files = Mount("/static", PlainTextResponse(""))
    metrics = Metrics([Route("/answers/{answer}", handler), files])
    counted = {metrics.count({"endpoint": handler, "path": f"/answers/{i}"}, 200) for i in range(50)}
    counted |= {metrics.count({"path": f"/{i}"}, 404) for i in range(50)}
    counted |= {metrics.count({"endpoint": files.app, "path": f"/static/{i}"}, 404) for i in range(50)}
    assert counted == {"/answers/{answer}", "unknown", "/static"}
    text = metrics.text({}, "1.0")
    assert text.count("\ndither_requests_total{") == 3


def test_whether_an_answer_is_there_is_no_outcome_of_its_own():
    assert len({outcome_of(status) for status in (200, 202, 303)}) == 1


@pytest.fixture
def lines(caplog):
    """The lines that were written, as they are on standard error."""
    caplog.set_level(logging.INFO, "dither.server")
    formatted = []

    class Handler(logging.Handler):
        def emit(self, record):
            formatted.append(json.loads(JsonFormatter().format(record)))

    handler = Handler()
    logging.getLogger("dither.server").addHandler(handler)
    yield formatted
    logging.getLogger("dither.server").removeHandler(handler)


def test_an_id_is_taken_over_or_made_and_sent_back(site, lines):
    client = site.client("ann")
    for sent, kept in (("abc-1.2", True), ("", False), ("x" * 129, False), ('a"b', False), ("a b", False)):
        lines.clear()
        response = client.get(f"{API}/tables", headers={HEADER: sent} if sent else {})
        given = response.headers[HEADER]
        assert (given == sent) is kept
        assert [line["request_id"] for line in lines] == [given]
    assert len({client.get("/health").headers[HEADER] for _ in range(5)}) == 5


def test_a_line_names_the_route_and_who_asked_and_no_secret(site, lines):
    link = "x" * 43
    site.client().get(f"/welcome/{link}")
    site.client("ann").get(f"{API}/tables/visits?secret={link}")
    site.client().get(f"/nowhere/{link}")
    shown = [(line["route"], line["status"], line["user"]) for line in lines if line["message"] == "request"]
    assert shown == [("/welcome/{secret}", 403, ""), (f"{API}/tables/{{table}}", 422, "ann"), ("unknown", 404, "")]
    assert link not in json.dumps(lines)
    allowed = {"time", "level", "logger", "message", "request_id", "method", "route", "status", "user", "address"}
    assert set().union(*lines) == allowed  # and no duration


def test_an_internal_error_is_found_by_its_id_and_tells_no_text(site, lines, monkeypatch):
    def broken(_):
        raise KeyError("a name from a row")

    monkeypatch.setattr(site.service.tables, "list", broken)
    response = site.client("ann").get(f"{API}/tables", headers={HEADER: "abc"})
    assert (response.status_code, response.headers[HEADER]) == (500, "abc")
    [error] = [line for line in lines if line["level"] == "error"]
    assert error["request_id"] == "abc"
    assert "a name from a row" not in json.dumps(lines) + response.text
    assert "retry-after" not in response.headers


def test_a_request_that_fails_before_its_response_is_logged_and_counted_as_an_error(lines):
    async def failing(*_):
        raise KeyError("a name from a row")

    metrics = Metrics([])
    client = TestClient(RequestLog(failing, metrics=metrics), raise_server_exceptions=False)
    assert client.get("/").status_code == 500
    assert [(line["message"], line["route"], line["status"]) for line in lines] == [("request", "unknown", 500)]
    counted = {name: value for name, value in values(metrics.text({}, "1.0")).items() if "requests" in name}
    assert counted == {'dither_requests_total{route="unknown",outcome="error"}': 1}


def test_lines_of_the_threads_of_a_request_have_its_id(site, lines, monkeypatch):
    def noisy(_):
        logging.getLogger("dither.server").warning("from a thread")
        return []

    monkeypatch.setattr(site.service.tables, "list", noisy)
    site.client("ann").get(f"{API}/tables", headers={HEADER: "abc"})
    assert [(line["message"], line["request_id"]) for line in lines] == [("from a thread", "abc"), ("request", "abc")]


def test_a_question_leaves_no_trace_of_how_long_it_took(site, lines):
    body = {"question": {"sql": COUNT}, "options": {"epsilon": 0.125}}
    site.client("ann").post(f"{API}/tables/visits/questions?wait=60", json=body)
    assert all(COUNT not in json.dumps(line) and "seconds" not in line for line in lines)
