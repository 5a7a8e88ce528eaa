"""Request ids in and out, lines of JSON, and nothing in them that is a secret or a row."""

from __future__ import annotations

import json
import logging

import pytest
from serving import COUNT

from dither.server.monitoring import HEADER, JsonFormatter
from dither.wire.protocol import API


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
