"""A question answered without noise beside DuckDB's own answer to the same text on the raw rows.

An answer is right if it has DuckDB's rows. Three things are agreed on that SQL does not know, and each is checked:

* A group with public keys is there whether it has rows or not: which ones follows from the values that the card, a
  public table and the conditions on the column itself leave. It counts 0; a sum of nothing is 0, and any other number
  of nothing is NULL. SQL on top of such groups sees them too.
* A row whose public key is NULL is in no group. The answer has to say so (``NULL``). So is a row whose key is none of
  those that follow from the bounds of the card, where values beyond these occur.
* What limits or bounds change has to be said: by which limits, or of which column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import duckdb

from dither.tables.answer import Answer
from dither.tables.card.model import Card
from dither.tables.engines import Engine, connect, with_public_values
from dither.tables.execute import shape_answer
from dither.tables.execute.release import run_plan
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.planning.group_keys import KeySelection
from dither.tables.planning.top_keys import TopKeys
from dither.tables.query.tree import private_tables, public_joins, public_tables
from dither.tables.sql.parse import named_tables, parse
from tables.differential import random_tables
from tables.differential.random_questions import Block, Question
from tables.differential.random_tables import BEYOND, DOMAINS, PATHS, PUBLIC_COLUMNS, PUBLIC_ROWS, Data
from tables.glass import glass
from tables.kept_databases import databases_kept

OPTIONS = ReleaseOptions(epsilon=1e6, noise="laplace")
_WITHOUT_NULL = {"null_keys", "levels"}
"""The kinds of notes that say that rows whose key is NULL are in no group."""
_LIMITED = {"limits", "rows_chosen", "groups_chosen", "bounds_chosen", "bounds_stated"}
"""The kinds of notes that say that limits, or bounds, may have changed numbers."""
_NATIVE = {"integer": "BIGINT", "number": "DOUBLE", "text": "VARCHAR"}
Row = tuple[Any, ...]
_connect = duckdb.connect
_RELEASES = {KeySelection: KeySelection.release, TopKeys: TopKeys.release}


def every_key(self: KeySelection | TopKeys, *given: Any) -> Any:
    """Show every key that somebody has."""
    release: Any = _RELEASES[type(self)]
    return release(replace(self, threshold=1), *given)


@contextmanager
def every_key_shown() -> Iterator[None]:
    """Choose keys that are not public without a threshold."""
    with patch.object(KeySelection, "release", every_key), patch.object(TopKeys, "release", every_key):
        yield


@dataclass
class Tables:
    """Tables that dither and DuckDB are asked about."""

    data: Data
    folder: Path
    engine: Engine
    truth: duckdb.DuckDBPyConnection

    def answer(self, sql: str, card: Card, options: ReleaseOptions, all_keys: bool = True) -> Answer:
        """What dither answers, without noise."""
        card = card.for_table(*named_tables(sql, card))
        query = parse(sql, card)
        for part in query.aggregations:
            card = with_public_values(self.engine, card, part) if public_joins(part) else card
        plan = plan_question(query, card, options)
        tables: dict[str, Any] = {}
        for part in plan.parts:
            tables |= {name or "": self.engine.private(name or part.card.name) for name in private_tables(part.query)}
            tables |= {name: self.engine.public(name) for name in public_tables(part.query)}
        contexts = [part.statement_context("duckdb", tables, 7) for part in plan.parts]
        shown = every_key_shown() if all_keys else nullcontext()
        with glass(), shown, patch.object(shape_answer, "replicates", lambda *_: None):
            return run_plan(SimpleNamespace(query=query), plan, options, contexts, self._rows)

    def _rows(self, statement: Any) -> list[Row]:
        return self.engine._connection.execute(statement.text).fetchall()

    def run(self, sql: str) -> list[Row]:
        """What DuckDB answers on the raw rows."""
        return self.truth.execute(sql).fetchall()


@contextmanager
def opened(data: Data, folder: Path) -> Iterator[Tables]:
    """Open the tables for dither and for DuckDB."""
    with (
        patch.object(duckdb, "connect", _in_one_thread),
        connect(data.tables, random_tables.card(folder, 1, 1)) as engine,
        _in_one_thread() as truth,
        databases_kept(),
    ):
        for name, rows in data.tables.items():
            truth.register("given", rows)
            # rows without a person belong to nobody, as every answer says
            owned = "visit_id IN (SELECT visit_id FROM visits)" if name in PATHS else "pid IS NOT NULL"
            truth.execute(f"CREATE TABLE {name} AS SELECT * FROM given WHERE {owned}")
        for name, lines in PUBLIC_ROWS.items():
            columns = ", ".join(f"{column} {_NATIVE[card.type]}" for column, card in PUBLIC_COLUMNS[name].items())
            marks = ", ".join("?" * len(PUBLIC_COLUMNS[name]))
            for table, every in ((name, lines), (f"{name}_or_null", [*lines, (None,) * len(lines[0])])):
                truth.execute(f"CREATE TABLE {table} ({columns})")
                truth.executemany(f"INSERT INTO {table} VALUES ({marks})", every)
        _make_values(truth)
        for view in [table.node for table in engine._private.values()]:
            _read_once(engine._connection, view.name)
        yield Tables(data, folder, engine, truth)


def _read_once(connection: duckdb.DuckDBPyConnection, view: str) -> None:
    """Make a table of the rows that dither reads: a view of a frame is bound and converted again by each statement."""
    connection.execute(f"CREATE TEMP TABLE read_once AS SELECT * FROM {view}")
    connection.execute(f"DROP VIEW {view}")
    connection.execute(f"ALTER TABLE read_once RENAME TO {view}")


def _make_values(truth: duckdb.DuckDBPyConnection) -> None:
    """A table for every column with public values, and for every type, with what they can be, NULL included."""
    days = "SELECT UNNEST(generate_series(DATE '2024-01-01', DATE '2024-12-31', INTERVAL 1 DAY))::DATE"
    words = ["dental", "eye", "general", "other", "north", "south", "east", "none", "n", "many", "some", "low", "high"]
    words += ["yes", "no", *(word.upper() for word in words[:7]), *(word[0] for word in words[:7])]
    texts = ", ".join(f"('{word}')" for word in words)
    every = {
        "values_date": days,
        "values_integer": "SELECT range FROM range(-366, 2000)",
        "values_number": "SELECT range / 4 FROM range(8000)",
        "values_text": f"SELECT * FROM (VALUES {texts})",
        "values_id": "SELECT range FROM range(2000)",
        "values_boolean": "SELECT * FROM (VALUES (FALSE), (TRUE))",
    }
    for table, columns in DOMAINS.items():
        for name, values in columns.items():
            listed = ", ".join(f"({value!r})" for value in values if not isinstance(value, date))
            every[f"values_{table}_{name}"] = f"SELECT * FROM (VALUES {listed})" if listed else days
    for name, text in every.items():
        truth.execute(f"CREATE TABLE {name}(v) AS {text} UNION ALL SELECT NULL")


def _in_one_thread(*place: Any, **options: Any) -> Any:
    return _connect(*place, **{**options, "config": {**options.get("config", {}), "threads": 1}})


# -- what DuckDB says -------------------------------------------------------------------------------------------------


class Finding(AssertionError):
    """An answer that is not DuckDB's, and says nothing of it."""


@dataclass
class Case:
    """One question about tables, with the limits that it is asked under."""

    tables: Tables
    question: Question
    card: Card
    may_bind: bool = False
    """Whether people may have more rows than count."""
    seen: set[str] = field(default_factory=set)
    """What was found on the way: empty groups, keys that are NULL, limits that are announced."""

    def check(self) -> None:
        """Ask, and compare; raise a :class:`Finding`, or the error of a refusal."""
        question = self.question
        answer = self.ask(question.sql)
        truth = self.tables.run(question.sql)
        if same(answer.rows, truth, self.tolerance):
            return
        if not question.after:
            self.agreed(question.blocks[0], answer)
            return
        for place, block in enumerate(question.blocks):
            self._keep(place, block, self.agreed(block))
        blocks = [f"SELECT * FROM block_{place}" for place in range(len(question.blocks))]
        after = self.tables.run(question.after.format(*blocks))
        if same(answer.rows, after, self.tolerance):
            return
        if not self.announces(answer):
            raise Finding(f"dither: {answer.rows[:12]}\nDuckDB: {truth[:12]}\nwith empty groups: {after[:12]}")

    def ask(self, sql: str) -> Answer:
        """What dither says."""
        return self.tables.answer(sql, self.card, OPTIONS, "groups of one person" not in self.question.tags)

    def announces(self, answer: Answer) -> bool:
        """Whether the answer says that limits, or bounds, may have changed its numbers, where they may."""
        kinds = {*(_LIMITED if self.may_bind else ()), "join_limit"}  # which joins always have
        said = _says(answer, kinds)
        self.seen |= {"limits"} if said else set()
        return said

    @property
    def _may_be_negative(self) -> bool:
        """Whether values may be below 0, so that fewer of them can have a larger sum: differences of days."""
        return " - LAG(" in self.question.sql or " - LEAD(" in self.question.sql

    @property
    def tolerance(self) -> float:
        """How far numbers may be off: values are rounded to a grid, and the least and the largest to a bin.

        Squares are rounded down to 2^-22 of the squared width of the bounds for a person of up to 100 rows (the
        ``divisor`` of ``Moments``), so a variance of values between 0 and 9 can be off by 81 / 2^22 = 2e-5.
        """
        kinds = {kind for block in self.question.blocks for kind in block.kinds}
        if kinds & {"min", "max"} or self.question.tags & {"per person", "window"}:
            return 0.02
        return 1e-4 if "var" in kinds else 1e-6

    def agreed(self, block: Block, answer: Answer | None = None) -> list[Row]:
        """DuckDB's rows of a block, with the empty groups that the answer shows and may show, and without the groups
        that it says it leaves out."""
        answer = answer or self.ask(self.question.with_prefix(block.sql))
        places = range(len(block.keys))
        truth = self._rows(block, ())
        lost = [i for i in places if any(row[i] is None for row in truth)]
        finding: Finding | None = None
        if block.levels and _says(answer, _WITHOUT_NULL):
            with suppress(Finding):
                return self._agreed(block, answer, truth, lacking=True)
        for without in (places for size in range(len(lost) + 1) for places in combinations(lost, size)):
            try:
                result = self._agreed(block, answer, self._rows(block, without) if without else truth)
            except Finding as error:
                finding = error
                continue
            if without and not _says(answer, _WITHOUT_NULL):
                raise Finding(f"rows with NULL in {[block.keys[i].name for i in without]} are left out without a note")
            self.seen |= {"NULL keys"} if without else set()
            return result
        assert finding is not None
        raise finding

    def _agreed(self, block: Block, answer: Answer, truth: list[Row], lacking: bool = False) -> list[Row]:
        """The same, of rows whose keys are all shown; what was accepted as it is shown."""
        # levels may have groups with the same keys, where NULL is a key: the larger of them first
        left, truth = (sorted(rows, key=_order, reverse=True) for rows in (map(_plain_row, answer.rows), truth))
        places, result = len(block.keys), []
        said = self.announces(answer)
        not_shown = said and _says(answer, {"small_groups"})
        for row in truth:
            same_key = [item for item in left if _near(item[:places], row[:places], 0)]
            fits = [item for item in same_key if self._fits(block, answer, item, row)]
            if not fits and said:
                kinds = ["mean" if self._may_be_negative and kind == "sum" else kind for kind in block.kinds]
                fits = [item for item in same_key if all(map(_is_less, item[places:], row[places:], kinds))]
            if fits:
                left.remove(fits[0])
                result.append(fits[0])
            elif block.levels and None in row[:places] and lacking:
                continue  # of the levels, those without the key that is NULL have its rows
            elif not same_key and self._is_beyond(block, row[:places], answer):
                self.seen.add("keys beyond bounds")
            elif same_key or not not_shown:  # otherwise its people are in other groups
                what = f"other numbers: {same_key}" if same_key else f"a missing group: {answer.rows[:8]}"
                raise Finding(f"{what}\nDuckDB: {row}")
        self._check_possible(block, [row[:places] for row in left])
        for row in left:
            empty = (*row[:places], *({"count": 0.0, "sum": 0.0}.get(kind) for kind in block.kinds))
            if not self._fits(block, answer, row, empty):
                raise Finding(f"numbers in an empty group: {row}")
            result.append(row)
            self.seen.add("empty groups")
        return result

    def _is_beyond(self, block: Block, key: Row, answer: Answer) -> bool:
        """Whether a key follows from values beyond the bounds of the card alone, and the answer says that it lacks
        such rows."""
        if not _says(answer, {"keys_beyond_bounds"}):
            return False
        for column, value in zip(block.keys, key, strict=True):
            within = self.tables.run(f"SELECT DISTINCT {column.values} FROM {column.source}")
            if column.origin.endswith(BEYOND) and value not in {plain(row[0]) for row in within}:
                return True
        return False

    def _fits(self, block: Block, answer: Answer, shown: Row, truth: Row) -> bool:
        """Whether a row is the true one, but for what notes say of its numbers: a column has no answer at all, or has
        one where there are no values; so many rows are beyond the least or the largest. A variance of fewer than two
        values is not compared, and others to a twentieth, since squares are rounded to a coarser grid. What is computed
        of no values is NULL, with groups and without; the least and the largest may have a value if a note says so."""
        places, accepted = len(block.keys), list(truth)
        for i, kind in enumerate(block.kinds, start=places):
            name = f"a{i - places}"
            number, true = shown[i], truth[i]
            if number is None and _says(answer, {"bounds_not_found"}, name):
                accepted[i] = None
            elif kind == "var" and number is not None:
                accepted[i] = number if true is None or math.isclose(number, true, rel_tol=0.05) else true
            elif true is None and number is not None and kind in ("min", "max"):
                accepted[i] = number if _is_noted(answer, name) else None
            elif kind in ("min", "max") and number is not None and not _equal(number, true, self.tolerance):
                chosen = _says(answer, {"bounds_chosen"}, name)  # with bins of a wide range
                in_bin = chosen and _equal(number, true, 0.02 * abs(true or 0))
                accepted[i] = number if in_bin or self._beyond(block, i, shown) <= _said(answer, name) else true
        return _near(shown, accepted, self.tolerance)

    def _beyond(self, block: Block, place: int, shown: Row) -> int:
        """How many rows of a group have a value beyond the least or the largest that is shown."""
        places = len(block.keys)
        kind, value = block.kinds[place - places], block.aggregates[place - places][4:-1]
        beyond = f"< {shown[place] - self.tolerance}" if kind == "min" else f"> {shown[place] + self.tolerance}"
        counted = replace(block, aggregates=(f"COUNT(*) FILTER (WHERE {value} {beyond})",), kinds=("count",))
        rows = [row for row in self._rows(counted, ()) if _near(row[:places], shown[:places], 0)]
        return int(max((row[-1] for row in rows), default=0))

    def _rows(self, block: Block, without: Sequence[int]) -> list[Row]:
        """DuckDB's rows of a block, of the rows whose keys at these places are not NULL; a sum of nothing is 0."""
        result = []
        for row in self.tables.run(self.question.with_prefix(block.with_keys(without))):
            kinds = [*[""] * len(block.keys), *block.kinds]
            values = (0 if value is None and kind == "sum" else value for value, kind in zip(row, kinds, strict=True))
            result.append(tuple(map(plain, values)))
        return result

    def _keep(self, place: int, block: Block, rows: list[Row]) -> None:
        """Rows as a table of the oracle, with the columns of a block."""
        truth = self.tables.truth
        same_columns = f"SELECT * FROM ({self.question.with_prefix(block.sql)}) LIMIT 0"
        truth.execute(f"CREATE OR REPLACE TEMP TABLE block_{place} AS {same_columns}")
        if rows:
            truth.executemany(f"INSERT INTO block_{place} VALUES ({', '.join('?' * len(rows[0]))})", rows)

    def _check_possible(self, block: Block, groups: list[Row]) -> None:
        """Raise a finding if a group without rows can have none: by what its keys are made of and the conditions on
        that. Keys from one public table are those of its rows."""
        by_origin: dict[str, list[int]] = {}
        for i, key in enumerate(block.keys if groups else ()):
            by_origin.setdefault(f"{i}" if key.free else key.origin, []).append(i)
        for places in by_origin.values():
            keys = [block.keys[i] for i in places]
            wanted = [
                item.template.format(c=item.column.values)
                for item in block.facts
                if item.narrows(keys[0]) and item.column is not None
            ]
            text = f"SELECT DISTINCT {', '.join(key.values for key in keys)} FROM {keys[0].source}"
            rows = self.tables.run(text + (f" WHERE {' AND '.join(wanted)}" if wanted else ""))
            if not rows:  # conditions that contradict each other, or the card
                continue
            if keys[0].free or keys[0].source == "values_text":
                text = f"SELECT DISTINCT {keys[0].template.format(c='v')} FROM values_{keys[0].type}"
                rows += [*self.tables.run(text), *((word,) for word in re.findall("'(.*?)'", " ".join(block.where)))]
            # values that a condition lists are keys, whatever the card says
            listed = [item.sql for item in block.facts if item.template.startswith(("{c} IN", "{c} ="))]
            words = [f"({word})" for text in listed for word in re.findall("'.*?'", text)]
            if words and len(keys) == 1 and keys[0].type == "text":
                shown = keys[0].template.format(c="v")
                rows += self.tables.run(f"SELECT DISTINCT {shown} FROM (VALUES {', '.join(words)}) AS t(v)")
            possible = {tuple(map(plain, row)) for row in rows}
            for group in groups:
                own = tuple(group[i] for i in places)
                if block.levels and None in own:
                    continue
                if own not in possible or (None in own and not keys[0].nullable):
                    raise Finding(f"a group that cannot exist: {[key.name for key in keys]} = {own}")


def _says(answer: Answer, kinds: set[str], name: str | None = None) -> bool:
    """Whether an answer has a note of one of these kinds, of a column where it is named."""
    return any(note.kind in kinds and (name is None or note.values["name"] == name) for note in answer.notes)


def _said(answer: Answer, name: str) -> float:
    """How many rows are beyond the least or the largest value by what a note says."""
    said = [note.values for note in answer.notes if note.kind == "extreme_rank"]
    return max((values["rows"] for values in said if values["name"] == name), default=0)


def _is_noted(answer: Answer, name: str) -> bool:
    """Whether a note says that this column may have a value where there are none."""
    without = ("value_without_rows", "value_without_values")
    return any(note.kind in without and name in note.values["names"] for note in answer.notes)


def _is_less(shown: Any, truth: Any, kind: str) -> bool:
    """Whether limits can make this number of the true one: of rows that count for less there are no more."""
    if shown is None or truth is None:
        return kind not in ("count", "sum")
    if kind == "count":
        return 0 <= shown <= truth + 0.5  # a weighted count is rounded
    return kind != "sum" or truth < 0 or shown <= truth + 1e-6 * abs(truth) + 1e-6


# -- comparison -------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value in one form: numbers as floats, moments that are days as dates. A division by 0 is NULL in answers."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float, Decimal)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, datetime) and value == datetime(value.year, value.month, value.day):
        return value.date()
    return value


def _plain_row(row: Row) -> Row:
    return tuple(map(plain, row))


def same(one: Sequence[Row], other: Sequence[Row], tolerance: float) -> bool:
    """Whether two answers have the same rows, in any order."""
    if len(one) != len(other):
        return False
    mine, theirs = (sorted((tuple(map(plain, row)) for row in rows), key=_order) for rows in (one, other))
    if all(_near(a, b, tolerance) for a, b in zip(mine, theirs, strict=True)):
        return True
    left = list(theirs)
    for row in mine:
        found = next((i for i, item in enumerate(left) if _near(row, item, tolerance)), None)
        if found is None:
            return False
        del left[found]
    return True


def _order(row: Row) -> tuple[Any, ...]:
    return tuple(("" if isinstance(item, float) else repr(item)) for item in row), tuple(
        round(item, 4) for item in row if isinstance(item, float)
    )


def _near(one: Sequence[Any], other: Sequence[Any], tolerance: float) -> bool:
    return len(one) == len(other) and all(_equal(a, b, tolerance) for a, b in zip(one, other, strict=True))


def _equal(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (
            one == other or math.isclose(one, other, rel_tol=1e-6, abs_tol=tolerance) or (one != one and other != other)
        )
    if isinstance(one, (date, datetime)) and isinstance(other, (date, datetime)):
        return str(one) == str(other)
    return type(one) is type(other) and one == other
