"""Rows whose key is NULL: an answer speaks of them wherever DuckDB has a group for them, and nowhere else."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.engines import connect, with_public_values
from dither.tables.notes import kind_of
from dither.tables.planning import plan
from dither.tables.planning.null_keys import null_notes
from dither.tables.planning.relation_cards import card_of_question
from dither.tables.sql.parse import parse
from tables.glass import glass

VISITS = pa.table(
    {
        "who": [1, 1, 2, 2, 3, 4],
        "kind": ["a", None, "b", "b", None, None],
        "other": ["a", "b", None, "a", None, "a"],
        "age": pa.array([3, None, 5, 7, 900, 5], pa.int64()),
    }
)
KINDS = pa.table({"code": ["a", "b"], "title": ["one", None]})
CARD = Card(
    "visits",
    "",
    {
        "who": ColumnCard("integer"),
        "kind": ColumnCard("text", keys=("a", "b")),
        "other": ColumnCard("text", keys=("a", "b")),
        "age": ColumnCard("integer", (0, 9)),
    },
    unit="who",
    max_groups=2,
    max_rows=4,
    budget=dp.PureDP(1),
)
RELATIONS = {
    "projection": "(SELECT who, kind AS k, age FROM visits {where}) AS v",
    "per person": (
        "(SELECT who, kind AS k, COUNT(*) AS n, MAX(age) AS oldest FROM visits {where} GROUP BY who, kind) AS v"
    ),
}
MISSING = [
    "kind", "UPPER(kind)", "age > 3", "age + 1", "FLOOR(age / 2)", "CASE WHEN age > 3 THEN kind ELSE 'x' END",
    "COALESCE(kind, other)", "GREATEST(kind, other)", "kind WHERE age > 3", "kind WHERE kind <> 'a' OR age > 3",
    "kind WHERE COALESCE(kind, 'a') = 'a'", "kind WHERE other IS NOT NULL", "kind, other WHERE other IN ('a')",
    "kind WHERE (kind = 'a') IS NULL", "WIDTH_BUCKET(age, 0, 10, 2)",
]  # fmt: skip
PRESENT = [
    "COALESCE(kind, 'none')", "kind WHERE kind = 'a'", "kind WHERE kind IN ('a', 'b')", "kind WHERE kind IS NOT NULL",
    "UPPER(kind) WHERE kind LIKE 'a%'", "kind IS NULL", "kind WHERE NOT kind IS NULL AND age > 3",
    "CASE WHEN age > 3 THEN 'x' ELSE 'y' END", "kind WHERE kind = other", "kind IS DISTINCT FROM other",
    "kind WHERE kind = 'a' OR kind = 'b'", "FLOOR(age / 2) WHERE age BETWEEN 0 AND 9", "GREATEST(kind, 'a')",
    "kind WHERE kind > 'a' OR UPPER(kind) = 'A'", "CASE WHEN kind = 'a' THEN 'x' END",
]  # fmt: skip


def notes(sql: str, card: Card = CARD) -> tuple[str, ...]:
    query = parse(sql, card)
    with connect(VISITS, card) as engine:
        known = card_of_question(query, with_public_values(engine, card, query))
    return null_notes(plan.make(query, known, epsilon=1))


def has_null(sql: str) -> bool:
    """Whether DuckDB has a group whose key is NULL."""
    with duckdb.connect() as database:
        database.register("visits", VISITS)
        database.register("kinds", KINDS)
        return any(None in row[:-1] for row in database.sql(sql).fetchall())


def question(group: str, source: str = "visits") -> str:
    keys, where, condition = group.partition(" WHERE ")
    return f"SELECT {keys}, COUNT(*) AS rows_in FROM {source}{where}{condition} GROUP BY {keys}"


@pytest.mark.parametrize("group", [*MISSING, *PRESENT])
def test_a_note_is_given_where_a_group_of_null_is_missing(group):
    sql = question(group)
    missing = group in MISSING
    assert bool(notes(sql)) is missing
    if "WIDTH_BUCKET" not in group and "THEN 'x' END" not in group:  # which are NULL, or a key, in another way
        assert has_null(sql) is missing


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("where", ["", "WHERE kind IS NOT NULL"])
def test_columns_of_relations_are_traced_to_the_rows(relation, where):
    sql = question("k", RELATIONS[relation].format(where=where))
    assert bool(notes(sql)) is has_null(sql) is (not where)


def test_counts_of_a_person_and_persons_are_never_null():
    assert notes(question("LEAST(n, 12)", RELATIONS["per person"].format(where=""))) == ()
    assert notes(question("oldest", RELATIONS["per person"].format(where=""))) != ()
    numbered = "(SELECT who, age, ROW_NUMBER() OVER (PARTITION BY who ORDER BY age) AS place FROM visits) AS v"
    assert notes(question("LEAST(place, 4)", numbered)) == ()


@pytest.mark.parametrize(
    ("join", "group", "missing"),
    [
        ("", "title", False),
        ("LEFT ", "title", False),
        ("", "kind", True),
        ("", "other", False),
        ("LEFT ", "other", True),
        ("LEFT ", "COALESCE(title, 'x')", False),
    ],
)
def test_null_in_a_public_table_is_a_key(tmp_path, join, group, missing):
    pq.write_table(KINDS, tmp_path / "kinds.parquet")
    columns = {"code": ColumnCard("text"), "title": ColumnCard("text")}
    public = {"kinds": PublicTable(str(tmp_path / "kinds.parquet"), columns)}
    card = replace(CARD, public=public)
    sql = question(group, f"visits {join}JOIN kinds ON other = code")
    assert bool(notes(sql, card)) is missing
    assert group == "title" or has_null(sql) is missing


def test_the_note_names_what_is_grouped_by_and_how_to_include_it():
    null, beyond = notes(question("kind, FLOOR(age / 2)"))
    assert null == (
        "rows with NULL in kind or floor_age are in no group: GROUP BY COALESCE(kind, …), "
        "COALESCE(<expression of floor_age>, …) includes them"
    )
    assert beyond == "rows with age beyond 0 to 9, the bounds of the card, may be in no group"


PASTED = {
    "kind": "'none'", "age": "-1", "vip": "", "day": "DATE '1900-01-01'",
    "DATE_TRUNC('quarter', day)": "DATE '1900-01-01'", "DATE_TRUNC('month', at)": "TIMESTAMP '1900-01-01 00:00:00'",
    "YEAR(day)": "0", "QUARTER(at)": "0", "age > 3": "", "FLOOR(age / 2)": "-1",
    "CAST(at AS DATE)": "DATE '1900-01-01'", '"the kind"': "'none'", "UPPER(kind)": "'none'",
}  # fmt: skip
"""What is grouped by, and what to write for the dots of the advice."""


@pytest.mark.parametrize("group", PASTED)
def test_the_advice_can_be_pasted_and_includes_the_rows(group):
    day = date(2024, 5, 1)
    rows = pa.table(
        {
            "kind": ["a", "b", None], "the kind": ["a", "b", None], "age": pa.array([1, 5, None], pa.int64()),
            "vip": [True, False, None], "day": [day, day, None],
            "at": [datetime(2024, 5, 1), datetime(2024, 6, 1), None],
        }
    )  # fmt: skip
    keys = {"kind": ["a", "b"], "the kind": ["a", "b"]}
    bounds = {
        "age": (0, 9),
        "day": (date(2024, 1, 1), date(2024, 12, 31)),
        "at": (datetime(2024, 1, 1), datetime(2024, 12, 31)),
    }
    with dp.open(rows, name="visits", keys=keys, bounds=bounds, budget=dp.PureDP(1000)) as table, glass():
        sql = "SELECT {0} AS bucket, COUNT(*) AS n FROM visits GROUP BY {0}"
        first = table.sql(sql.format(group)).release(epsilon=1)
        advice = next(re.search("GROUP BY (.*) includes them", note) for note in first.notes if "NULL in" in note)
        pasted = advice[1].replace("<expression of bucket>", group).replace("…", PASTED[group])
        second = table.sql(sql.format(pasted)).release(epsilon=1)
    assert (sum(first["n"]), sum(second["n"])) == (2, 3)
    assert "NULL in" not in str(second)


BEYOND = {
    "day": "day", "DATE_TRUNC('quarter', day)": "day", "DATE_TRUNC('month', at)": "at", "YEAR(day)": "day",
    "CAST(at AS DATE)": "at", "age": "age", "COALESCE(age, -1)": "age",
}  # fmt: skip


@pytest.mark.parametrize("group", BEYOND)
def test_rows_beyond_the_bounds_of_the_card_are_announced_where_they_are_lost(group):
    rows = pa.table(
        {
            "age": [5, 500], "day": [date(2024, 5, 1), date(2031, 1, 1)],
            "at": [datetime(2024, 5, 1), datetime(1999, 1, 1)],
        }
    )  # fmt: skip
    period = (date(2024, 1, 1), date(2024, 12, 31))
    bounds = {"age": (0, 9), "day": period, "at": (datetime(2024, 1, 1), datetime(2024, 12, 31))}
    with dp.open(rows, name="visits", bounds=bounds, budget=dp.PureDP(1000)) as table, glass():
        answer = table.sql(f"SELECT {group} AS k, COUNT(*) AS n FROM visits GROUP BY {group}").release(epsilon=1)
        within = table.sql(
            "SELECT day, COUNT(*) AS n FROM visits WHERE day BETWEEN '2024-05-01' AND '2024-05-31' GROUP BY day"
        ).release(epsilon=1)
        cyclic = table.sql("SELECT QUARTER(day) AS k, COUNT(*) AS n FROM visits GROUP BY k").release(epsilon=1)
        made = table.sql("SELECT FLOOR(age / 2) AS k, COUNT(*) AS n FROM visits GROUP BY k").release(epsilon=1)
    column = BEYOND[group]
    assert sum(answer["n"]) == 1
    (note,) = [note for note in answer.notes if "the bounds of the card, are in no group" in note]
    assert note.startswith(f"rows with {column} beyond {bounds[column][0]} to {bounds[column][1]}")
    assert kind_of(note) == "no_key"
    assert (sum(cyclic["n"]), sum(made["n"])) == (2, 1)
    assert any("age beyond 0 to 9, the bounds of the card, may be in no group" in note for note in made.notes)
    assert not any("the bounds of the card" in note for other in (within, cyclic) for note in other.notes)
