"""Rows whose key is NULL: an answer speaks of them wherever DuckDB has a group for them, and nowhere else.

Groups that nobody is in: how often the rule takes their noise for values, and what it does to small groups.

Sums of a person's values are of values within bounds, and an answer says so where one may lie beyond them.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.inference import NoiseLaw, level_table
from dither.present.notes import Note
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.engines import connect, with_public_values
from dither.tables.planning import plan
from dither.tables.planning.estimate import CONFIDENCE, without_values
from dither.tables.planning.group_keys import card_of_question
from dither.tables.planning.plan import AggregationPlan
from dither.tables.planning.plan_notes import empty_group_notes, null_notes
from dither.tables.sql.parse import parse
from support import each, noted
from tables.glass import glass
from tables.planned import make
from tables.raw_rows import alike, answered, truth
from tables.test_conditions import AGE_BOUNDS, AGES

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


def notes(sql: str, card: Card = CARD) -> tuple[Note, ...]:
    query = parse(sql, card)
    with connect(VISITS, card) as engine:
        known = card_of_question(query, with_public_values(engine, card, query))
    return null_notes(make(query, known, epsilon=1))


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
    included = ["COALESCE(kind, …)", "COALESCE(<expression of floor_age>, …)"]
    assert null == Note("null_keys", {"columns": ["kind", "floor_age"], "group_by": included})
    ends = {"column": "age", "low": "0", "high": "9"}
    assert beyond == Note("keys_beyond_bounds", {"columns": [ends], "certain": False})


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
        [said] = noted(first, "null_keys")
        pasted = said["group_by"][0].replace("<expression of bucket>", group).replace("…", PASTED[group])
        second = table.sql(sql.format(pasted)).release(epsilon=1)
    assert (sum(first["n"]), sum(second["n"])) == (2, 3)
    assert not noted(second, "null_keys")


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
    ends = {"column": column, "low": str(bounds[column][0]), "high": str(bounds[column][1])}
    assert noted(answer, "keys_beyond_bounds") == [{"columns": [ends], "certain": True}]
    assert (sum(cyclic["n"]), sum(made["n"])) == (2, 1)
    assert [values["certain"] for values in noted(made, "keys_beyond_bounds")] == [False]
    assert not any(noted(other, "keys_beyond_bounds") for other in (within, cyclic))


KEYS = tuple("abcdefghijklmnopqrst")
THREE_KINDS = Card(
    "visits",
    "",
    {"kind": ColumnCard("text", keys=KEYS), "x": ColumnCard("number", (0, 10)), "y": ColumnCard("number", (0, 10))},
    budget=dp.PureDP(1),
)


def planned(aggregates: str, noise: str = "laplace") -> AggregationPlan:
    query = parse(f"SELECT kind, {aggregates} FROM visits GROUP BY kind", THREE_KINDS)
    return make(query, THREE_KINDS, epsilon=0.5, delta=1e-6 if noise == "gaussian" else None, noise=noise)


def tables(made: AggregationPlan, people: int, count: int = 2000) -> list[dict[object, np.ndarray]]:
    """Noisy measures of groups with so many values, all at the lower bound, with noise at every level of its law."""
    result: list[dict[object, np.ndarray]] = [{} for _ in range(count)]
    for number, (measure, noise) in enumerate(made.measures.items()):
        levels = level_table(f"test {number}", count, len(KEYS))
        drawn = NoiseLaw.of(noise, integer=True).quantiles(levels.ravel()).reshape(levels.shape)
        unit = measure.unit(made.limits)
        holds = measure.kind in ("rows", "people") or (measure.part == 0 and measure.moments is not None)
        for k in range(count):
            result[k][measure] = drawn[k] + (people * unit if holds else 0)
    return result


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    "aggregates",
    [
        "AVG(x) AS m",
        "VARIANCE(x) AS m",
        "AVG(x) AS m, COUNT(*) AS n",
        "MEDIAN(x) AS m, COUNT(*) AS n",
        "MAX(x) AS m, AVG(y) AS o, COUNT(*) AS n",
    ],
)
def test_an_answer_without_anybody_has_a_value_once_in_twenty_times(aggregates, noise):
    if noise == "gaussian" and ("MEDIAN" in aggregates or "MAX" in aggregates):
        aggregates = aggregates.replace("MEDIAN(x) AS m", "AVG(x) AS m").replace("MAX(x) AS m", "STDDEV(x) AS m")
    made = planned(aggregates, noise)
    shown = [not without_values(made, "m", noisy).all() for noisy in tables(made, people=0)]
    assert 0.02 < np.mean(shown) < 1 - CONFIDENCE + 0.015


def test_groups_that_are_large_against_their_noise_are_never_null():
    made = planned("AVG(x) AS m")
    deviation = max(np.sqrt(plan.variance_of(noise)) / measure.unit(made.limits) for measure, noise in
                    made.measures.items())  # fmt: skip
    lost = [without_values(made, "m", noisy).any() for noisy in tables(made, people=round(20 * deviation))]
    assert not any(lost)


def test_what_has_an_answer_without_values_is_never_null():
    made = planned("COUNT(*) AS n, SUM(x) AS s")
    noisy = tables(made, people=0, count=1)[0]
    assert [without_values(made, name, noisy) for name in ("n", "s")] == [None, None]


def test_a_question_without_groups_follows_the_same_rule():
    query = parse("SELECT AVG(x) AS m FROM visits", THREE_KINDS)
    made = make(query, THREE_KINDS, epsilon=0.5)
    empty, many = ({measure: np.full(1, number) for measure in made.measures} for number in (0, 10**9))
    assert without_values(made, "m", empty).tolist() == [True]
    assert without_values(made, "m", many).tolist() == [False]


OF_NOBODY = [
    "AVG(x)", "VARIANCE(x)", "STDDEV(x)", "MEDIAN(x)", "QUANTILE(x, 0.9)", "MIN(x)", "MAX(x)", "MODE(kind)",
    "CORR(x, y)",
]  # fmt: skip


@pytest.mark.parametrize("where", ["x > 100", "x IS NULL AND y > 5"])
@pytest.mark.parametrize("aggregate", OF_NOBODY)
def test_what_is_asked_of_nobody_is_null_or_says_that_it_is_not(aggregate, where):
    """As DuckDB has it, where a number of rows is there to tell; and a note where there is none."""
    rows = pa.table({"kind": ["a", "b"] * 500, "x": [1.0, 2.0] * 500, "y": [3.0] * 1000})
    value = "kind" if "kind" in aggregate else "x"
    sql = f"SELECT {aggregate} AS m{{count}} FROM visits WHERE {where}"
    keys, bounds = {"kind": ["a", "b"]}, {"x": (0, 10), "y": (0, 10)}
    with (
        dp.open(rows, name="visits", keys=keys, bounds=bounds, budget=dp.PureDP(1000)) as table,
        duckdb.connect() as connection,
        glass(),
    ):
        assert connection.register("visits", rows).sql(sql.format(count="")).fetchall() == [(None,)]
        counted = table.sql(sql.format(count=f", COUNT({value}) AS n")).release(epsilon=1)
        alone = table.sql(sql.format(count="")).release(epsilon=1)
    assert counted["m"] == [None]
    assert counted.error("m") == [None]
    if "CORR" not in aggregate:
        assert noted(counted, "null_values") == [{"names": ["m"], "grouped": False}]
    if alone["m"] != [None]:
        assert noted(alone, "value_without_rows") == [{"names": ["m"], "grouped": False, "counts": [f"COUNT({value})"]}]


def test_rows_whose_values_are_all_null_have_no_value_where_values_are_counted():
    rows = pa.table({"kind": ["a"] * 500 + ["b"] * 500, "x": [1.0] * 500 + [None] * 500})
    sql = "SELECT kind, MIN(x) AS low, MAX(x) AS high, AVG(x) AS m, {count} AS n FROM visits GROUP BY kind"
    with (
        dp.open(rows, name="visits", keys={"kind": ["a", "b"]}, bounds={"x": (0, 10)}, budget=dp.PureDP(1000)) as table,
        glass(),
    ):
        for count in ("COUNT(x)", "COUNT(*)"):  # AVG(x) counts values as well
            answer = table.sql(sql.format(count=count)).release(epsilon=1)
            assert [row[1:4] == (None,) * 3 for row in answer.rows] == [False, True]
        rows_alone = table.sql("SELECT kind, MIN(x) AS low, COUNT(*) AS n FROM visits GROUP BY kind").release(epsilon=1)
    assert rows_alone["low"][1] is not None
    [said] = noted(rows_alone, "value_without_values")
    assert said == {"names": ["low"], "grouped": True, "counts": ["COUNT(x)"]}


def test_choices_without_a_number_are_announced():
    [note] = empty_group_notes(planned("MEDIAN(x) AS m, MIN(y) AS l, COUNT(y) AS k"))
    assert note == Note("value_without_rows", {"names": ["m"], "grouped": True, "counts": ["COUNT(x)"]})
    assert empty_group_notes(planned("MEDIAN(x) AS m, COUNT(x) AS n")) == ()


@each(
    ("rows", "held"),
    [
        ("(SELECT who FROM data GROUP BY who HAVING SUM(amount) > 120)", ["amount"]),
        ("(SELECT who, AVG(age) AS m FROM data GROUP BY who) AS s WHERE m > 35", ["age"]),
        ("(SELECT *, SUM(amount * 2) OVER (PARTITION BY who) AS s FROM data) AS t WHERE s > 9", ["amount"]),
        ("(SELECT who, SUM(CASE WHEN amount > 9 THEN 1 ELSE 0 END) AS k FROM data GROUP BY who) WHERE k > 0", []),
        ("(SELECT who, MAX(amount) AS k FROM data GROUP BY who) WHERE k > 120", []),
        ("data WHERE amount > 120", []),
    ],
)
def test_sums_of_a_persons_values_say_that_these_are_held_within_bounds(rows, held):
    sql = f"SELECT COUNT(*) AS n FROM {rows}"
    with dp.open(AGES, unit="who", bounds=AGE_BOUNDS, budget=dp.PureDP(1000)) as table:
        answer = answered(table, sql)
    assert [values["column"] for values in noted(answer, "person_values_clamped")] == held
    if not held:
        assert alike(answer.rows, truth(sql, data=AGES))
