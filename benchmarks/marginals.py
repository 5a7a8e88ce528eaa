"""Counting: 40 tables of two attributes, bounded for each person, from rows; against DuckDB with the same by hand."""

from __future__ import annotations

import itertools
import resource
import tempfile
from pathlib import Path
from typing import Any

import duckdb

import dither as dp
from dither.publish import Attribute, Domain
from dither.publish.counting import Counting, covering_tables
from dither.publish.domain import Levels
from dither.tables.query.tree import Call, Column, Expression, Literal
from suite import Row, interleaved, limited, number

NOTE = (
    "Counting: rows of visits in a Parquet file, people of five rows on average of which three count, ten attributes "
    "of 2 to 12 keys (texts, whole numbers, numbers in bins, months of dates), 40 tables of two of them. *By hand* is "
    "one statement in DuckDB with the same weights, the fastest of three: GROUPING SETS of the columns, of small "
    "codes, and of codes of the tables that cover the 40. Ours includes rehearsal, charge and record. CPU seconds."
)
_AGES = [0, 10, 20, 30, 40, 50, 60, 70, 120]
_INCOMES = [0, 1_000, 3_000, 7_000, 15_000, 30_000, 60_000, 100_000]
_REGIONS, _PRODUCTS = ["north", "south", "east", "west"], [*"abcdefg"]
MAX_ROWS = 3
LIMIT = 1.3


def write_visits(rows: int, path: str) -> None:
    """Made-up visits; some values are outside every domain."""
    pick = "(random() * {0})::INT % {0}"
    columns = {
        "who": f"(random() * random() * {rows // 4})::BIGINT",
        "sex": f"['f', 'm'][1 + {pick.format(2)}]",
        "region": f"{[*_REGIONS, 'center']}[1 + {pick.format(5)}]",
        "product": f"{[*_PRODUCTS, 'h']}[1 + {pick.format(8)}]",
        "grade": pick.format(9),
        "month": f"{pick.format(12)} + 1",
        "quarter": pick.format(4),
        "kind": pick.format(6),
        "age": "random() * 125",
        "income": "random() * random() * 100000",
        "day": "DATE '2020-01-01' + (random() * 1400)::INT",
    }
    listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(f"COPY (SELECT {listed} FROM range({rows})) TO '{path}' (FORMAT parquet)")


def domain() -> tuple[Domain, tuple[Expression, ...]]:
    """The attributes, and their values in a row."""
    attributes = [
        Attribute.flat("sex", ["f", "m"]),
        Attribute.flat("region", _REGIONS),
        Attribute.flat("product", _PRODUCTS),
        Attribute.flat("grade", range(9)),
        Attribute.flat("month", range(1, 13)),
        Attribute.flat("quarter", range(4)),
        Attribute.flat("kind", range(5)),
        Attribute.binned("age", _AGES),
        Attribute.binned("income", _INCOMES),
        Attribute.flat("month of day", range(1, 13)),
    ]
    values = (
        *(Column(attribute.name) for attribute in attributes[:-1]),
        Call("date_part", (Literal("month"), Column("day"))),
    )
    return Domain(attributes), values


def _binned(name: str, edges: list[int]) -> str:
    arms = " ".join(f"WHEN {name} < {edge} THEN {i}" for i, edge in enumerate(edges[1:-1]))
    return f"CASE {arms} ELSE {len(edges) - 2} END"


def _listed(name: str, keys: list[str]) -> str:
    return f"CASE {name} " + " ".join(f"WHEN '{key}' THEN {i}" for i, key in enumerate(keys)) + " END"


def by_hand(path: str, tables: list[Levels], codes: bool) -> str:
    """One statement for all tables, as somebody would write it who knows the columns."""
    inside = (
        f"sex IN ('f', 'm') AND region IN {tuple(_REGIONS)} AND product IN {tuple(_PRODUCTS)} AND kind < 5 AND "
        f"age >= 0 AND age < {_AGES[-1]} AND income >= 0 AND income < {_INCOMES[-1]} AND grade BETWEEN 0 AND 8 AND "
        "month BETWEEN 1 AND 12 AND quarter BETWEEN 0 AND 3 AND day IS NOT NULL AND who IS NOT NULL"
    )
    coded = ["sex", "region", "product"]
    lists = {"sex": ["f", "m"], "region": _REGIONS, "product": _PRODUCTS}
    columns = [_listed(name, lists[name]) if codes else name for name in coded]
    columns += ["grade", "month - 1", "quarter", "kind", _binned("age", _AGES), _binned("income", _INCOMES)]
    columns.append("month(day) - 1")
    narrow = "({})::UTINYINT" if codes else "{}"
    selected = ", ".join(f"{narrow.format(sql)} AS c{i}" for i, sql in enumerate(columns))
    sets = ", ".join("(" + ", ".join(f"c{i}" for i, level in enumerate(levels) if level) + ")" for levels in tables)
    one = 1 << 14
    return f"""
        WITH lines AS MATERIALIZED (SELECT who AS u, {selected} FROM '{path}' WHERE {inside}),
        people AS (
            SELECT u, CASE WHEN count(*) <= {MAX_ROWS} THEN {one} ELSE {MAX_ROWS * one} // count(*) END AS w
            FROM lines GROUP BY u
        )
        SELECT {", ".join(f"c{i}" for i in range(len(columns)))}, CAST(SUM(w) AS BIGINT) AS m
        FROM lines JOIN people USING (u) GROUP BY GROUPING SETS ({sets})
    """


def counting(quick: bool) -> list[Row]:
    """CPU time of counting, and whether the counts are those by hand."""
    rows = 20_000 if quick else 10_000_000
    whole, values = domain()
    pairs = [*itertools.combinations(range(len(values)), 2)][:40]
    tables = [tuple(int(i in pair) for i in range(len(values))) for pair in pairs]
    seen: dict[Levels, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "visits.parquet")
        write_visits(rows, path)
        with (
            dp.open(path, unit="who", max_rows=MAX_ROWS, budget=dp.PureDP(1000)) as table,
            duckdb.connect() as connection,
        ):
            counts = Counting(table, whole, values)

            def compute(_: Counting, given: Any) -> bytes:
                seen.update(given)
                return b""

            def ask(sets: list[Levels], codes: bool) -> Any:
                return connection.sql(by_hand(path, sets, codes)).to_arrow_table()

            seconds = interleaved(
                {
                    "ours": lambda: counts.release(tables, dp.PureDP(1), {}, compute, again=True),
                    "columns": lambda: ask(tables, False),
                    "codes": lambda: ask(tables, True),
                    "covering": lambda: ask(covering_tables(whole, tables), True),
                },
                1 if quick else 3,
            )
            _check(ask(tables, True).to_pylist(), whole, tables, seen)
    best = min(seconds[name] for name in ("columns", "codes", "covering"))
    reference = ", ".join(f"{number(seconds[name])} s ({name})" for name in ("columns", "codes", "covering"))
    ratio = seconds["ours"] / best
    what = f"counting 40 tables of {rows:,} rows"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [
        Row(
            what, f"{number(seconds['ours'])} s", reference, ratio, f"≤ {LIMIT:.2f}×", None if quick else ratio <= LIMIT
        ),
        limited(f"{what}: memory of the process", memory, "GB"),
    ]


def _check(lines: list[dict[str, Any]], whole: Domain, tables: list[Levels], counts: dict[Levels, Any]) -> None:
    """Both count the same, to the last unit."""
    for line in lines:
        places = [i for i in range(len(whole.attributes)) if line[f"c{i}"] is not None]
        levels = tuple(int(i in places) for i in range(len(whole.attributes)))
        cell = tuple(int(line[f"c{i}"] or 0) for i in range(len(whole.attributes)))
        assert counts[levels][cell] == line["m"], levels
    filled = sum(int((counts[levels] > 0).sum()) for levels in tables)
    assert filled == len(lines)
