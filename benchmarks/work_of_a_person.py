"""How much CPU time one person's rows take in the engine, on questions made to take as much as possible."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb

import dither as dp
from dither.server.config import Config
from dither.tables.card.model import Card, ColumnCard
from dither.tables.execute.release import statement_contexts
from dither.tables.planning.plan import statements_of
from dither.tables.query.tree import CappedRows, sources
from suite import Row, main

TITLE = "The work of one person"
NOTES = (
    "Data: 20 people with 12 visits each, few, so that their work does not hide that of one person more, who has 10 to "
    "6,000 visits: a day, a moment, an amount, a kind, and a note of some 260 characters. Some questions are asked of "
    "2,000 people, too: what an engine does once for all rows must not depend on one person either.",
    "CPU time of DuckDB, all threads, for all statements of a question, prepared, with that person, less the same "
    "without: the least of rounds in which both take turns. Where rows are combined, the target is 2 % of the server's "
    "tick. Where they are not, the work is proportional to the rows: there is no target. A join of unions that read "
    "the table 24 times does both: it reads 24 times 6,000 rows to find those that are combined.",
)
PEOPLE, VISITS = (20, 2000), 12
SIZES = (10, 60, 600, 6000)
SHARE = 0.02
_NUMBERS = itertools.count()

_A = "SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.who = b.who"
_THREE = f"{_A} JOIN visits c ON a.who = c.who"


def _conditions(form: str, count: int = 120) -> str:
    """So many different conditions, all of which hold; in tens, as no more than 100 may be inside each other."""
    every = [form.format(i=i) for i in range(1, count + 1)]
    return " AND ".join(f"({' AND '.join(every[i : i + 10])})" for i in range(0, count, 10))


def _nested(depth: int) -> str:
    value = "a.amount"
    for i in range(depth):
        value = f"CASE WHEN {value} > b.amount / {i + 2} THEN {value} - b.amount ELSE a.amount / 2 END"
    return value


COMBINED = {
    "a join": f"{_A} AND a.day <= b.day",
    "a join, by kind, with a sum": "SELECT a.kind, SUM(b.amount) AS s FROM visits a JOIN visits b ON a.who = b.who "
    "GROUP BY a.kind",
    "a join, its median": "SELECT MEDIAN(b.amount) AS m FROM visits a JOIN visits b ON a.who = b.who",
    "a join with 120 conditions": f"{_A} WHERE {_conditions('a.amount + b.day * {i} > -{i}')}",
    "three tables": f"{_THREE} AND a.day + b.day >= c.day - 1000",
    "three tables with 120 conditions": f"{_THREE} WHERE {_conditions('a.amount + b.day * {i} - c.amount < 1000000')}",
    "three tables with 120 conditions in ON": f"{_THREE} AND {_conditions('a.day + {i} * b.day > c.day - {i}000')}",
    "EXISTS that never holds": "SELECT COUNT(*) AS n FROM visits a WHERE NOT EXISTS (SELECT 1 FROM visits b WHERE "
    "a.who = b.who AND a.day > b.day + 1000)",
    "EXISTS with 120 conditions": "SELECT COUNT(*) AS n FROM visits a WHERE EXISTS (SELECT 1 FROM visits b WHERE "
    f"a.who = b.who AND {_conditions('a.amount + b.day * {i} > -{i}')} AND a.day > b.day + 1000)",
    "windows over a join": "SELECT SUM(r) AS s FROM (SELECT who, ROW_NUMBER() OVER (PARTITION BY who ORDER BY x, y) AS "
    "r, SUM(x) OVER (PARTITION BY who ORDER BY y) AS t, LAG(x) OVER (PARTITION BY who ORDER BY x) AS l FROM (SELECT "
    "a.who AS who, a.amount AS x, b.amount AS y FROM visits a JOIN visits b ON a.who = b.who)) WHERE t >= 0 AND r > 0",
    "a join, its rows per person and kind": "SELECT SUM(m) AS s FROM (SELECT a.who, a.kind AS k, b.kind AS l, "
    "MAX(a.amount - b.amount) AS m, COUNT(DISTINCT a.day) AS d FROM visits a JOIN visits b ON a.who = b.who "
    "GROUP BY a.who, a.kind, b.kind)",
    "LIKE of two notes": f"{_A} WHERE " + _conditions("(a.note || b.note) NOT LIKE '%{i}z%z%z{i}%'", 20),
    "LOWER of two notes": f"{_A} WHERE LOWER(a.note || b.note) <> UPPER(b.note || a.note)",
    "dates": f"{_A} WHERE " + _conditions("DATE_DIFF('month', a.at, b.at + INTERVAL {i} MONTH) < 10000", 40),
    "nested CASE": f"SELECT SUM({_nested(5)}) AS s FROM visits a JOIN visits b ON a.who = b.who",
    "a join of unions": "SELECT COUNT(*) AS n FROM (" + " UNION ALL ".join(["SELECT who, day FROM visits"] * 12)
    + ") a JOIN (" + " UNION ALL ".join(["SELECT who, day FROM visits"] * 12) + ") b ON a.who = b.who "
    "AND a.day <= b.day",
}  # fmt: skip
LINEAR = {
    "one table": "SELECT COUNT(*) AS n FROM visits",
    "one table with 120 conditions": f"SELECT COUNT(*) AS n FROM visits WHERE {_conditions('amount + day * {i} > -1')}",
    "one table, LIKE of its notes": "SELECT COUNT(*) AS n FROM visits WHERE "
    + _conditions("note NOT LIKE '%{i}z%z%z{i}%'", 20),
    "a table per person": "SELECT AVG(s) AS m FROM (SELECT who, SUM(amount) AS s, COUNT(DISTINCT note) AS d FROM "
    "visits GROUP BY who) WHERE d > 0",
    "windows": "SELECT SUM(r) AS s FROM (SELECT who, ROW_NUMBER() OVER (PARTITION BY who ORDER BY note) AS r, "
    "SUM(amount) OVER (PARTITION BY who ORDER BY day) AS t FROM visits) WHERE t >= 0",
}


def write(path: Path, people: int, rows: int) -> None:
    """A file of the visits of people, and of one person more who has so many."""
    everybody = f"SELECT i // {VISITS} AS who, i AS k FROM RANGE({people * VISITS}) AS r(i)"
    someone = f"SELECT {people} AS who, 1000003 * i AS k FROM RANGE({rows}) AS r(i)"
    note = " || ' ' || ".join(f"MD5(CAST(k + {i} AS VARCHAR))" for i in range(8))
    columns = (
        "who, CAST(HASH(k) % 100 AS BIGINT) AS day, TIMESTAMP '2020-01-01' + TO_SECONDS(CAST(HASH(k + 1) % 100000000 "
        "AS BIGINT)) AS at, (HASH(k + 2) % 10000) / 100.0::DOUBLE AS amount, 'k' || (HASH(k + 3) % 5) AS kind, "
        f"{note} AS note"
    )
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns} FROM ({everybody} UNION ALL {someone})) TO '{path}'")


def opened(path: Path, folder: str) -> dp.Table:
    """The file as a table."""
    columns = {
        "who": ColumnCard("integer"),
        "day": ColumnCard("integer", (0, 100)),
        "at": ColumnCard("timestamp"),
        "amount": ColumnCard("number", (0.0, 100.0)),
        "kind": ColumnCard("text", keys=tuple(f"k{i}" for i in range(5))),
        "note": ColumnCard("text"),
    }
    ledger = f"{folder}/{path.stem}.sqlite"
    return dp.open(Card("visits", str(path), columns, "who", 3, 10, ledger=ledger, budget=dp.PureDP(1000)))


class Asked:
    """The statements of a question about one table, ready to run."""

    def __init__(self, table: Any, sql: str) -> None:
        question = table.sql(sql)
        plan = question.plan(epsilon=1)
        parts = zip(plan.parts, statement_contexts(question, plan), strict=True)
        self.connection = table.engine._connection
        statements = [item for part, context in parts for item in statements_of(part, context)]
        self.names = [f"s{next(_NUMBERS)}" for _ in statements]
        for name, statement in zip(self.names, statements, strict=True):  # planning would take most of the time
            self.connection.execute(f"PREPARE {name} AS {statement.text}")
        source = plan.query.source
        limits = [item.most for item in ([] if source is None else sources(source)) if isinstance(item, CappedRows)]
        self.limit = f", at most {limits[0]} rows each" if limits else ""

    def run(self) -> float:
        """The CPU seconds of the engine."""
        start = time.process_time()
        for name in self.names:
            self.connection.execute(f"EXECUTE {name}").fetchall()
        return time.process_time() - start


def difference(more: Asked, less: Asked, rounds: int) -> tuple[float, float]:
    """How much more CPU time one of two takes, and how much the other one takes."""
    pairs = [(more.run(), less.run()) for _ in range(rounds + 1)][1:]
    least = min(b for _, b in pairs)
    return min(a for a, _ in pairs) - least, least


def measured(people: int, questions: Mapping[str, str], sizes: Sequence[int], rounds: int) -> list[Row]:
    """The questions about so many people, with one more of each size and without."""
    most, result = SHARE * Config(folder=".").tick, []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        tables = {}
        for size in (0, *sizes):
            path = Path(folder) / f"visits{size}.parquet"
            write(path, people, size)
            tables[size] = stack.enter_context(opened(path, folder))
        for name, sql in questions.items():
            asked = {size: Asked(table, sql) for size, table in tables.items()}
            differences = {size: difference(asked[size], asked[0], rounds) for size in sizes}
            texts = [f"{1000 * more:.2f} ms ({size:,} rows)" for size, (more, _) in differences.items()]
            whole = f"{1000 * min(less for _, less in differences.values()):.3g} ms (without)"
            limited = bool(asked[0].limit)
            met = max(differences.values())[0] <= most if limited else None
            target = f"≤ {1000 * most:.3g} ms" if limited else ""
            what = f"{name}{asked[0].limit}, beside {people:,} people"
            result.append(Row(what, ", ".join(texts), whole, None, target, met))
    return result


def rows(quick: bool = False) -> list[Row]:
    """Every question, with a person of each size and without."""
    few, many = PEOPLE
    if quick:
        short = {name: COMBINED[name] for name in ("a join", "EXISTS that never holds")}
        return measured(few, short | {"one table": LINEAR["one table"]}, SIZES[1:2], 3)
    large = {name: COMBINED[name] for name in ("a join", "three tables", "EXISTS that never holds")}
    return [*measured(few, COMBINED | LINEAR, SIZES, 9), *measured(many, large, SIZES, 9)]


if __name__ == "__main__":
    main(TITLE, NOTES, rows)
