"""An error while rows are read says the same whatever the cause, costs what the question costs, and is counted.

Progress: shown to whoever waits at a terminal, gone afterwards, and never in a file.
"""

from __future__ import annotations

import functools
import io
import itertools
import os
import stat
import sys
import traceback
from collections import Counter

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.errors import DataIncident, DatasetClosed, InvalidArgument, InvalidData, LedgerError
from dither.ledger.chain import read_receipt
from dither.publish import Attribute, Domain
from dither.publish.counting import Counting
from dither.release import pipeline
from dither.release.pipeline import IncidentLog, hide_data_errors, incident_log_path, with_progress
from dither.tables.card.model import Card, ColumnCard
from dither.tables.execute import run
from dither.tables.query.tree import Column
from support import PATIENCE_S, eventually, refuses
from tables.refusals.samples import flights

SECRET = "alice is 47"
ROWS = pa.table({"who": list(range(40)), "age": [i % 90 for i in range(40)]})
COUNT = "SELECT COUNT(*) AS n FROM visits"
CAUSES = {
    "an engine's error": duckdb.ConversionException(SECRET),
    "an engine's harmless error": duckdb.BinderException(SECRET),
    "a source that is gone": duckdb.IOException(SECRET),
    "Arrow": pa.ArrowInvalid(SECRET),
    "a number too large": OverflowError(SECRET),
    "a lost connection": ConnectionResetError(SECRET),
    "memory": MemoryError(SECRET),
    "depth": RecursionError(SECRET),
    "a bug": KeyError(SECRET),
    "one of ours": InvalidData(SECRET),
    "no Exception at all": type("Odd", (BaseException,), {})(SECRET),
}


def card(tmp_path, **more) -> Card:
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    columns = {"who": ColumnCard("integer"), "age": ColumnCard("integer", (0, 120))}
    stated = {"unit": "who", "ledger": str(tmp_path / "ledger.sqlite"), "budget": dp.PureDP(100), **more}
    return Card("visits", str(tmp_path / "visits.parquet"), columns, **stated)


def per_person(tmp_path, **more) -> Card:
    return card(tmp_path, budget=None, each_person=dp.PureDP(100), **more)


def entries(table) -> Counter:
    return Counter(entry.kind for entry in table.ledger.history())


def fails(table, monkeypatch, error, after: int = 0) -> None:
    """The engine raises once it has run so many statements about rows."""
    real, left, rows = table.engine._execute, [after], table.engine.table.sql("duckdb")

    def execute(sql):
        left[0] -= rows in sql
        if rows in sql and left[0] < 0:
            raise error
        return real(sql)

    monkeypatch.setattr(table.engine, "_execute", execute)


def holds_nothing(error: BaseException) -> bool:
    """Neither the error nor anything that is reached from it holds the secret."""
    said = "".join(traceback.format_exception(error))
    return (
        SECRET not in said
        and error.__cause__ is None
        and error.__context__ is None
        and error.args == DataIncident().args
        and not getattr(error, "__notes__", None)
        and vars(error) == vars(DataIncident())
    )


PLACES = [(card, 0), (card, 1), (per_person, 0), (per_person, 1), (per_person, 2)]
HERE_AND_THERE = [
    *((cause, *PLACES[i % len(PLACES)]) for i, cause in enumerate(CAUSES.values())),
    *((CAUSES["an engine's error"], *place) for place in PLACES[1:]),
]


@pytest.mark.parametrize(("cause", "made", "after"), HERE_AND_THERE)
def test_one_sentence_whatever_the_cause_and_the_charge_stays(tmp_path, monkeypatch, cause, made, after):
    """At every statement that reads rows: whom the question is about, and each of its measures."""
    with dp.open(made(tmp_path, receipt=str(tmp_path / "receipt"))) as table:
        fails(table, monkeypatch, cause, after)
        with refuses(DataIncident) as caught:
            table.sql("SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM visits").release(1)
        assert holds_nothing(caught.value)
        assert entries(table) == {"open": 1, "charge": 1, "incident": 1}
        assert table.ledger.incident_count("visits") == 1
        assert table.ledger.verify().entries == 3
        assert read_receipt(tmp_path / "receipt") == table.ledger.head
    log = tmp_path / "ledger.sqlite.incidents.log"
    assert SECRET in log.read_text()
    assert type(cause).__name__ in log.read_text()
    assert "Traceback" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.parametrize("step", ["_answer", "_frame_of_those_who_pay", "encode"])
def test_every_step_between_the_charge_and_the_record_is_hide_data_errors(tmp_path, monkeypatch, step):
    def fail(*_, **__):
        raise ZeroDivisionError(SECRET)

    with dp.open(per_person(tmp_path)) as table:
        if step == "_answer":
            monkeypatch.setattr(run, "answer", fail)
        elif step == "encode":
            monkeypatch.setattr("dither.tables.execute.release.encode", fail)
        else:
            monkeypatch.setattr(table.engine, "stage", fail)
        with refuses(DataIncident) as caught:
            table.sql(COUNT).release(1)
        assert holds_nothing(caught.value)
        assert entries(table) == {"open": 1, "charge": 1, "incident": 1}


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("made", [card, per_person])
def test_ctrl_c_is_no_incident_and_takes_nothing_along(tmp_path, monkeypatch, stop, made):
    def interrupted(*_):
        kept.append(read_receipt(tmp_path / "receipt"))
        try:
            raise ValueError(SECRET)
        finally:
            raise stop

    kept = []
    with dp.open(made(tmp_path, receipt=str(tmp_path / "receipt"))) as table:
        monkeypatch.setattr(run, "answer", interrupted)
        with pytest.raises(stop) as caught:
            table.sql(COUNT).release(1)
        assert caught.value.__context__ is None
        assert entries(table) == {"open": 1, "charge": 1}
        assert kept == [table.ledger.head]  # before rows were read


def test_a_receipt_that_cannot_be_written_before_rows_are_read_costs_no_answer(tmp_path, monkeypatch):
    def full(*_):
        raise LedgerError(SECRET)

    answer = run.answer

    def with_room(*given, **more):
        patch.undo()
        return answer(*given, **more)

    with dp.open(card(tmp_path, receipt=str(tmp_path / "receipt"))) as table, monkeypatch.context() as patch:
        patch.setattr(pipeline, "keep_receipt", full)
        patch.setattr(run, "answer", with_room)
        assert table.sql(COUNT).release(1)["n"]
        assert read_receipt(tmp_path / "receipt") == table.ledger.head


@pytest.mark.parametrize("broken", ["log", "ledger"])
def test_neither_a_log_nor_a_ledger_that_fails_changes_what_is_said(tmp_path, monkeypatch, broken):
    nowhere = str(tmp_path / "no folder" / "log") if broken == "log" else None
    with dp.open(card(tmp_path, incident_log=nowhere)) as table:
        if broken == "ledger":
            monkeypatch.setattr(table.ledger, "record_incident", lambda _: 1 / 0)
        fails(table, monkeypatch, duckdb.ConversionException(SECRET))
        with refuses(DataIncident) as caught:
            table.sql(COUNT).release(1)
        assert holds_nothing(caught.value)
        assert entries(table)["charge"] == 1


@pytest.mark.parametrize("made", [card, per_person])
@pytest.mark.parametrize("most", [1, 3])
def test_after_a_few_the_table_is_closed_until_the_steward_reopens_it(tmp_path, monkeypatch, made, most):
    with dp.open(made(tmp_path, max_incidents=most)) as table:
        known = table.sql(COUNT).release(1)
        with monkeypatch.context() as patch:
            fails(table, patch, duckdb.ConversionException(SECRET))
            for _ in range(most):
                with refuses(DataIncident):
                    table.sql(COUNT).release(2)
            before = entries(table)
            for _ in range(2):
                with refuses(DatasetClosed):
                    table.sql(COUNT).release(2)
            assert entries(table) == before
        with refuses(DatasetClosed):  # also where it would work
            table.sql(COUNT).release(2)
        assert table.sql(COUNT).release(1) == known  # what was answered is known already
        table.ledger.reopen("visits", signed_by="steward", reason="the file was repaired")
        assert table.sql(COUNT).release(2)["n"]


def test_by_default_three_close_it(tmp_path):
    assert card(tmp_path).max_incidents == 3
    with refuses(InvalidArgument, "max_incidents"):
        dp.open(card(tmp_path, max_incidents=0))


@pytest.mark.parametrize("made", [card, per_person])
def test_rows_are_read_only_once_they_are_paid_for(tmp_path, monkeypatch, made):
    """Up to the charge, no statement names the rows; under people's accounts the ledger itself asks for them."""
    with dp.open(made(tmp_path)) as table:
        ran: list[str] = []
        rows, execute, charge = table.engine.table.sql("duckdb"), table.engine._execute, table.ledger.charge
        monkeypatch.setattr(table.engine, "_execute", lambda sql: ran.append(sql) or execute(sql))

        def charged(*given, **more):
            assert not any(rows in sql for sql in ran)
            ran.append("charge")
            return charge(*given, **more)

        monkeypatch.setattr(table.ledger, "charge", charged)
        table.sql("SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM visits").release(1)
        assert "charge" in ran
        assert rows in ran[-1]


def test_the_log_is_where_the_card_says_and_its_owners_only(tmp_path, monkeypatch):
    place = tmp_path / "elsewhere.log"
    place.touch(mode=0o666)
    os.chmod(place, 0o666)
    with dp.open(card(tmp_path, incident_log=str(place))) as table:
        fails(table, monkeypatch, duckdb.ConversionException(SECRET))
        with refuses(DataIncident):
            table.sql(COUNT).release(1)
    assert SECRET in place.read_text()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_the_log_of_a_ledger_in_a_database_is_beside_the_card(tmp_path, monkeypatch):
    (tmp_path / "visits.toml").write_text(
        'name = "visits"\nsource = "visits.parquet"\nledger = "postgresql://nowhere/db"\ncolumns.age = "integer"\n'
        "[budget]\nepsilon = 1\n"
    )
    seen = []
    monkeypatch.setattr("dither.tables.table._opened", lambda card, *_: seen.append(card.incident_log))
    dp.open(tmp_path / "visits.toml")
    assert seen == [str(tmp_path / "visits.incidents.log")]
    assert incident_log_path(None, "visits", "l.sqlite") == "l.sqlite.incidents.log"


# -- what is said depends on the question alone ---------------------------------------------------------------------


@pytest.mark.parametrize("change", ["none", "added", "removed", "emptied"])
def test_after_a_crash_nothing_depends_on_who_came_or_went(tmp_path, monkeypatch, change):
    """The same question after its process died: paid again and answered, whoever is in the table by then."""
    people = {"none": range(40), "added": range(41), "removed": range(39), "emptied": range(0)}[change]
    with dp.open(per_person(tmp_path)) as table:
        with monkeypatch.context() as patch:
            patch.setattr(run, "answer", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                table.sql(COUNT).release(1, key="k")
        now = pa.table({"who": pa.array(people, pa.int64()), "age": pa.array([1] * len(people), pa.int64())})
        pq.write_table(now, tmp_path / "visits.parquet")
        answer = table.sql(COUNT).release(1, key="k")
        assert not answer.replayed
        assert entries(table) == {"open": 1, "charge": 2, "answer": 1}
        assert str(answer.remaining) == "private; each person has ε = 100 for life"


# -- what a question costs at least ---------------------------------------------------------------------------------


@pytest.mark.parametrize("least", [None, 1e-4, 0.5])
def test_a_question_costs_at_least_so_much(tmp_path, monkeypatch, least):
    stated = card(tmp_path) if least is None else card(tmp_path, min_epsilon=least)
    with dp.open(stated) as table:
        least = least or 1e-4
        fails(table, monkeypatch, AssertionError("read"))
        for epsilon in (least * (1 - 1e-9), least / 2, 1e-12, 1e-90):
            with pytest.raises(InvalidArgument, match=r"epsilon: expected at least .*, got .*Fix: pass epsilon="):
                table.sql(COUNT).release(epsilon)
            with refuses(InvalidArgument, "at least"):
                table.sql(COUNT).explain(epsilon, max_groups="auto")
        assert entries(table) == {"open": 1}
        assert table.sql(COUNT).plan(least).cost == dp.PureDP(least)


def test_gaussian_questions_and_those_in_rho_cost_as_much(tmp_path):
    for name, budget in (("a", dp.ApproxDP(1, 1e-3)), ("b", dp.ZCDP(1))):
        with dp.open(card(tmp_path, budget=budget, ledger=str(tmp_path / name))) as table:
            with refuses(InvalidArgument, "at least"):
                table.sql(COUNT).release(9e-5, delta=1e-4, noise="gaussian")
            with refuses(InvalidArgument, "at least"):
                table.sql(COUNT).release(9e-5)


def test_a_least_epsilon_for_a_frame():
    with dp.open(ROWS, unit="who", budget=dp.PureDP(1), min_epsilon=0.1, max_incidents=2) as table:
        assert (table.card.min_epsilon, table.card.max_incidents) == (0.1, 2)
        with refuses(InvalidArgument, "at least 0.1"):
            table.agg(n=dp.count()).release(0.09)
    for wrong in (0, -1, float("nan"), "1"):
        with pytest.raises((InvalidArgument, TypeError), match="min_epsilon"):
            dp.open(ROWS, unit="who", budget=dp.PureDP(1), min_epsilon=wrong)


@pytest.mark.parametrize("error", [1e5, 1e9, 1e300])
def test_an_error_that_anything_reaches_costs_the_least(tmp_path, error):
    with dp.open(card(tmp_path, min_epsilon=0.01)) as table:
        assert table.sql(COUNT).plan(error=error).cost == dp.PureDP(0.01)


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
    assert not pipeline.is_interactive(io.StringIO())
    assert pipeline.is_interactive(Terminal())
    notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    assert pipeline.is_interactive(notebook)


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
