"""Progress: shown to whoever waits at a terminal, gone afterwards, and never in a file."""

from __future__ import annotations

import functools
import io
import itertools
import sys

import pyarrow as pa
import pytest

import dither as dp
from dither.publish import Attribute, Domain
from dither.publish.counting import Counting
from dither.release import pipeline
from dither.release.pipeline import with_progress
from dither.tables.query.tree import Column
from support import PATIENCE_S, eventually
from tables.refusals.samples import flights

SQL = "SELECT origin, COUNT(*), MEDIAN(dep_delay) FROM flights GROUP BY origin"


class Terminal(io.StringIO):
    """A stream that says that it is a terminal, and keeps what is written to it."""

    def isatty(self) -> bool:
        return True


def _wait_for(out: io.StringIO, text: str) -> None:
    eventually(lambda: text in out.getvalue())


def test_the_statement_and_the_seconds_are_shown_and_then_gone():
    out, seconds = Terminal(), itertools.count(0, 7)
    with pipeline.Progress(2, out, delay=0, interval=0.001, clock=lambda: next(seconds)) as shown:
        shown.next_statement()
        _wait_for(out, "statement 1 of 2, 7 s")
        shown.next_statement()
        _wait_for(out, "statement 2 of 2")
    assert "statement 1 of 2, 7 s" in out.getvalue()
    assert "statement 2 of 2" in out.getvalue()
    *_, cleared, last = out.getvalue().split("\r")
    assert (cleared.strip(), last) == ("", "")


def test_a_short_question_shows_nothing():
    out = Terminal()
    with pipeline.Progress(1, out, delay=PATIENCE_S) as shown:
        shown.next_statement()
    assert out.getvalue() == ""


def test_a_terminal_that_is_gone_loses_no_answer():
    out = Terminal()
    with pipeline.Progress(1, out, delay=0, interval=0.001):
        _wait_for(out, "statement")
        out.close()


def test_streams_that_nobody_watches():
    assert not pipeline.is_watched(io.StringIO())
    assert pipeline.is_watched(Terminal())
    notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    assert pipeline.is_watched(notebook)


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_question_shows_its_progress_on_a_terminal_only(monkeypatch, stream):
    out = stream()
    with flights() as table:
        answered = table.engine.run

        def slow(statement):
            if stream is Terminal:
                _wait_for(out, "statement 1 of 2")
            return answered(statement)

        shown = functools.partial(pipeline.Progress, delay=0, interval=0.01, clock=lambda: 0.0)
        monkeypatch.setattr(pipeline, "Progress", shown)
        monkeypatch.setattr(table.engine, "run", slow)
        monkeypatch.setattr(sys, "stderr", out)
        table.sql(SQL).release(epsilon=1)
    texts = {text.strip() for text in out.getvalue().split("\r")}
    assert ("dither: statement 1 of 2, 0 s" in texts) is (stream is Terminal)
    assert stream is Terminal or out.getvalue() == ""


def test_statements_are_counted_where_somebody_watches(monkeypatch):
    shown = []
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(pipeline.Progress, "next_statement", lambda self: shown.append(self.text(0)))
    with dp.open(pa.table({"sex": ["f"]}), budget=dp.PureDP(1)) as table:
        counting = Counting(table, Domain([Attribute.flat("sex", ["f", "m"])]), (Column("sex"),))
        counting.release([(1,)], dp.PureDP(1), {}, lambda *_: b"")
    assert shown == ["dither: statement 1 of 1, 0 s"]


def test_nothing_is_counted_where_nobody_watches(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert with_progress(lambda run: run("statement"), lambda _: b"done", lambda: pytest.fail("counted")) == b"done"
