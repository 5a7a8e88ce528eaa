"""The text of the metrics: its grammar, and that a client cannot make it grow."""

from __future__ import annotations

import re

from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from dither.server.monitoring import Metrics, outcome_of

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
