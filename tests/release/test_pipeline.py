"""What questions and publications share: a charge before rows are read, and progress for whoever waits."""

from __future__ import annotations

import io
import sys

import pyarrow as pa
import pytest

import dither as dp
from dither.publish import Attribute, Domain
from dither.publish.counting import Counting
from dither.release import progress
from dither.release.incidents import IncidentLog, hide_data_errors
from dither.release.progress import with_progress
from dither.tables.query.tree import Column
from support import refuses


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_statements_are_counted_where_somebody_watches(monkeypatch):
    shown = []
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress.Progress, "next_statement", lambda self: shown.append(self.text(0)))
    with dp.open(pa.table({"sex": ["f"]}), budget=dp.PureDP(1)) as table:
        counting = Counting(table, Domain([Attribute.flat("sex", ["f", "m"])]), (Column("sex"),))
        counting.release([(1,)], dp.PureDP(1), {}, lambda *_: b"")
    assert shown == ["dither: statement 1 of 1, 0 s"]


def test_nothing_is_counted_where_nobody_watches(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert with_progress(lambda run: run("statement"), lambda _: b"done", lambda: pytest.fail("counted")) == b"done"


def test_what_fails_is_logged_and_says_nothing(tmp_path):
    after = []

    def fail() -> None:
        raise ValueError("secret")

    log = IncidentLog(tmp_path / "log")
    with refuses(dp.DataIncident, hiding=["secret"]):
        hide_data_errors(fail, log, "a subject", lambda: after.append(True))
    assert after == [True]
    assert "secret" in log.path.read_text()
    with pytest.raises(KeyboardInterrupt):
        hide_data_errors(lambda: (_ for _ in ()).throw(KeyboardInterrupt), log, "another")
