"""A table that was opened before a fork: refused in the child before anything is charged, and whole in the parent."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import DitherError
from dither.tables.engines import connect
from support import refuses

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_child(work: Callable[[], None]) -> bool:
    """Whether a forked process does this without an error, and within ten minutes."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            import signal

            signal.alarm(600)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_question_in_a_child_is_refused_before_it_is_charged(tmp_path: Path) -> None:
    with dp.open(pa.table({"x": [1, 2]}), budget=dp.PureDP(1), ledger=str(tmp_path / "l.sqlite")) as table:
        question = table.sql("SELECT COUNT(*) n FROM data")
        question.release(0.25)
        entries = len(list(table.ledger.history()))

        def ask() -> None:
            with refuses(DitherError, "open it again in this process"):
                question.release(0.5)
            for work in (table.engine.check, lambda: table.engine.run("SELECT 1 AS a"), table.engine.schema):
                with refuses(DitherError, "before the process was forked"):
                    work()

        assert in_child(ask)
        assert len(list(table.ledger.history())) == entries
        assert len(question.release(0.5).rows) == 1


def test_closing_in_a_child_leaves_everything_to_the_parent() -> None:
    engine = connect(pa.table({"x": [1, 2]}))
    folder = Path(engine._spill)  # type: ignore[attr-defined]

    def leave() -> None:
        engine.cancel()
        engine.close()
        assert folder.exists()

    assert in_child(leave)
    assert folder.exists()
    assert engine.run("SELECT SUM(x) AS s FROM dither_rows").to_pylist() == [{"s": 3}]
    engine.close()
    assert not folder.exists()


def test_the_folder_of_a_ledger_outlives_a_child_that_ends_as_programs_do() -> None:
    with dp.open(pa.table({"x": [1, 2]}), budget=dp.PureDP(1)) as table:
        folder = Path(table.temporary_folder.name)

        def end() -> None:
            table.temporary_folder.remove()
            table.engine._folder.remove()  # type: ignore[attr-defined]

        assert in_child(end)
        assert folder.exists()
        table.sql("SELECT COUNT(*) n FROM data").release(0.5)
    assert not folder.exists()


def test_a_table_opened_in_the_child_works(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n")
    engine = connect(str(path))

    def ask() -> None:
        with connect(str(path)) as own:
            assert own.run("SELECT COUNT(*) AS n FROM dither_rows").to_pylist() == [{"n": 1}]

    assert in_child(ask)
    engine.close()


def test_connections_to_a_server_stay_with_the_parent(postgres: str) -> None:
    engine = connect(f"{postgres}::pg_catalog.pg_class")

    def ask() -> None:
        with refuses(DitherError, "before the process was forked"):
            engine.run("SELECT 1 AS a")
        engine.close()

    assert in_child(ask)
    assert engine.run("SELECT 1 AS a").to_pylist() == [{"a": 1}]
    engine.close()
