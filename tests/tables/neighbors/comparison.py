"""What a question does with a table, with the same table without one person, and with the rows of that person alone.

Two things are checked of each question, whatever its plan looks like:

* *Replay* (:func:`dither.audit.replay`): the plan is run on both tables with the same noise. Every number that reaches
  a mechanism moves by no more than the mechanism's sensitivity in its norm, over the whole vector; the same mechanisms
  are asked in the same order; together they cost no more than is charged; and the answer is the same.
* *Additivity*: what a statement says about the table is, bit for bit, what it says about the others plus what it says
  about the person alone (at most that, where different values are counted). So nothing that a person adds depends on
  who else is there: not through the order of rows, the order of a sum of floating-point numbers, a key that others have
  spelled before, or a choice among equals.

Statements run directly on DuckDB, in one thread, about tables that are opened once for many questions.
"""

from __future__ import annotations

import builtins
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

import dither as dp
from dither.audit.outputs import observe
from dither.errors import DitherError
from dither.tables.card.model import Card
from dither.tables.compile import statements
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.statements import distinct_values
from dither.tables.engines import Engine, connect, with_public_values
from dither.tables.execute import release as release_module
from dither.tables.execute import shape_answer
from dither.tables.execute.release import run_plan
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.planning.plan import QuestionPlan, statements_of
from dither.tables.query.tree import Query, private_tables, public_joins, public_tables
from dither.tables.sql.parse import named_tables, parse
from tables.neighbors import random_tables
from tables.neighbors.random_sql import RandomQuestion

EPSILON, DELTA = 1, 1e-6
SIDES = {"whole": (0, 1), "fewer": (2, 2), "alone": (3, 3)}
"""The tables that are compared, by the first and the last value of the column ``removed`` of their rows. The rows of
the first are in another order than those of the others."""
_connect = duckdb.connect


class Finding(AssertionError):
    """One person can change more than the plan says, or something else than the numbers that get noise."""


@dataclass(frozen=True)
class Unshaped:
    """Noisy tables in the place of an answer."""

    noisy: list[Any]
    errors: dict[str, Any] = field(default_factory=dict)
    clipped_share: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Any, ...] = ()
    columns: tuple[str, ...] = ()


_UNSHAPED = "shape_answer", lambda released, *_: Unshaped([item.noisy for item in released])
"""Answers of most questions are compared as noisy tables: their errors follow from these, and take long."""
_UNSAMPLED = "replicates", lambda *_: None
"""Answers of most questions with SQL around the aggregation are compared without the errors that are drawn from the
noisy tables, which take as long as everything else."""

Lines = dict[tuple[Any, ...], tuple[int, ...]]
"""What a statement says: its numbers, by group and bin."""


class _NoMemory:
    """What the tests themselves store between two runs is nothing that a release stores."""

    def __init__(self, function: object) -> None:
        pass

    def now(self) -> dict[str, Any]:
        return {}

    def changes(self, before: object) -> Iterator[Any]:
        return iter(())


@dataclass
class Side:
    """One of the tables; it remembers which statements were run about it."""

    pair: TablePair
    name: str
    log: list[str] = field(default_factory=list)

    def run(self, statement: Statement) -> list[tuple[Any, ...]]:
        """The rows that a statement returns."""
        self.log.append(statement.text)
        return self.pair.run(statement.text, self.name)[1]


@dataclass
class TablePair:
    """A hostile table on DuckDB, which is also the table without one person, and that person alone."""

    card: Card
    engine: Engine
    _distinct: list[Statement] = field(default_factory=list)
    _results: dict[tuple[str, str], tuple[list[str], list[tuple[Any, ...]]]] = field(default_factory=dict)

    def check(self, question: RandomQuestion) -> QuestionPlan | None:
        """Raise a :class:`Finding` if the question is not private. The plan; None if the question is refused, which
        no row decides."""
        with patch.object(statements, "distinct_values", self._remembered):
            return self._check(question)

    def _remembered(self, context: StatementContext, value: Any) -> Statement:
        """The statement that counts different values, which does not add up over people."""
        self._distinct.append(distinct_values(context, value))
        return self._distinct[-1]

    def _check(self, question: RandomQuestion) -> QuestionPlan | None:
        try:
            query, plan, options = self._planned(question)
            contexts = self._contexts(plan, question.pick)
            for part, context in zip(plan.parts, contexts, strict=True):
                statements_of(part, context)
        except DitherError:
            return None
        try:
            for text in self._replay(query, plan, options, contexts, with_errors=question.pick.random() < 0.1):
                self._check_additivity(text)
        finally:
            self._forget()
        return plan

    def _planned(self, question: RandomQuestion) -> tuple[Query, QuestionPlan, ReleaseOptions]:
        about = named_tables(question.sql, self.card) if self.card.tables else ()
        card = self.card.for_table(*about) if about else self.card
        query = parse(question.sql, card)
        for part in query.aggregations:
            card = with_public_values(self.engine, card, part) if public_joins(part) else card
        options = ReleaseOptions(epsilon=EPSILON, delta=DELTA, **question.options)
        with suppress(DitherError):  # other groups need groups whose keys are private
            return query, plan_question(query, card, options), options
        plain = replace(options, other=False)
        return query, plan_question(query, card, plain), plain

    def _contexts(self, plan: QuestionPlan, pick: random.Random) -> list[StatementContext]:
        first, last = (exp.func("GETVARIABLE", exp.Literal.string(name)) for name in ("first", "last"))
        tables: dict[str, exp.Expr] = {}
        for part in plan.parts:
            for name in private_tables(part.query):
                rows = exp.select("*").from_(self.engine.private(name or part.card.name))
                tables[name or ""] = rows.where(exp.column("removed").between(first, last)).subquery()
            tables |= {name: self.engine.public(name) for name in public_tables(part.query)}
        return [part.statement_context("duckdb", tables, pick.getrandbits(64)) for part in plan.parts]

    def run(self, text: str, side: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """What a statement says about a side: the names of its columns, and its rows."""
        if (text, side) not in self._results:
            connection = self.engine._connection
            for name, number in zip(("first", "last"), SIDES[side], strict=True):
                connection.execute(f"SET VARIABLE {name} = {number}")
            cursor = connection.execute(text)
            self._results[text, side] = [column[0] for column in cursor.description], cursor.fetchall()
        return self._results[text, side]

    def _forget(self) -> None:
        self._distinct.clear()
        self._results.clear()

    def _replay(
        self,
        query: Query,
        plan: QuestionPlan,
        options: ReleaseOptions,
        contexts: list[StatementContext],
        with_errors: bool,
    ) -> list[str]:
        """Run the plan on both tables with the same noise, and return the statements that were run."""
        sides: list[Side] = []

        def release(name: str) -> Any:
            sides.append(Side(self, name))
            asked = SimpleNamespace(query=query)
            with nullcontext() if query.post or options.integer else patch.object(release_module, *_UNSHAPED):
                return run_plan(asked, plan, options, contexts, sides[-1].run)

        unsampled = nullcontext() if with_errors else patch.object(shape_answer, *_UNSAMPLED)
        with unsampled, patch.object(observe, "_Memory", _NoMemory):
            result = dp.audit.replay(release, "whole", "fewer", claim=plan.cost, rounds=1)
        if hasattr(builtins, result.ended):
            raise RuntimeError(f"every run ended in {result.ended}")
        if result.ended:
            raise Finding(f"every run ended in {result.ended}, an error of the engine")
        if not result.passed:
            raise Finding(str(result))
        if sides[0].log != sides[1].log:
            raise Finding("which statements are run depends on the data")
        return list(dict.fromkeys(sides[0].log))

    def _check_additivity(self, text: str) -> None:
        whole, fewer, alone = (self._lines(text, side) for side in SIDES)
        distinct = text in {statement.text for statement in self._distinct}
        for key in {*whole, *fewer, *alone}:
            every = [lines.get(key, ()) for lines in (whole, fewer, alone)]
            size = max(map(len, every))
            for together, others, own in zip(*(numbers or (0,) * size for numbers in every), strict=True):
                # a value that others have, too, is not counted twice
                right = others <= together <= others + own if distinct else together == others + own
                if not right:
                    raise Finding("what one person adds depends on other people")

    def _lines(self, text: str, side: str) -> Lines:
        """The numbers of each line (m0, m1, …) by its group and bin."""
        names, rows = self.run(text, side)
        numbers = [i for i, name in enumerate(names) if name[0] == "m" and name[1:].isdigit()]
        if not all(isinstance(row[i], int) for row in rows for i in numbers):
            raise Finding("something else than whole numbers leaves the engine")
        result: Lines = {}
        for row in rows:
            key = tuple((type(value), value) for i, value in enumerate(row) if i not in numbers)
            if key in result:
                raise Finding("a group has two lines")
            result[key] = tuple(row[i] for i in numbers)
        return result


@contextmanager
def table_pair(pick: random.Random, folder: Path) -> Iterator[TablePair]:
    """A random hostile table, in memory or in a DuckDB database whose columns have a collation."""
    unit = pick.choice(["person", "person", "person", "name", "name", None])
    public = folder / "zones.parquet"
    if not public.exists():
        pq.write_table(random_tables.public_table(), public)
    without_unit = pick.choice([None, "drop", "each"]) if unit is not None else None
    card = random_tables.card(unit, str(public), rows_without_unit=without_unit)
    sources = random_tables.tables_with_one_person_marked(pick, unit, without_unit == "each")
    if pick.random() < 0.3:
        sources = _database(folder / "hostile.duckdb", sources)
    with patch.object(duckdb, "connect", _in_one_thread), connect(sources, card) as engine:
        yield TablePair(card, engine)


def _in_one_thread(*place: Any, **options: Any) -> Any:
    return _connect(*place, **{**options, "config": {**options.get("config", {}), "threads": 1}})


def _database(path: Path, tables: dict[str, pa.Table]) -> dict[str, str]:
    """A database with these tables whose columns of text take case and accents for nothing."""
    path.unlink(missing_ok=True)
    with _connect(str(path)) as connection:
        for name, rows in tables.items():
            connection.register("given", rows)
            kinds = dict(zip(rows.column_names, connection.table("given").types, strict=True))
            columns = ", ".join(
                f'"{column}" {kind}{" COLLATE NOCASE.NOACCENT" if str(kind) == "VARCHAR" else ""}'
                for column, kind in kinds.items()
            )
            connection.execute(f"CREATE TABLE {name} ({columns})")
            connection.execute(f"INSERT INTO {name} SELECT * FROM given")
    return {name: f"{path}::{name}" for name in tables}
