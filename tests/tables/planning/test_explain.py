"""What the limits do to an answer is said where it applies: in the explanation, in the answer's notes, on its page.

Rows whose key is NULL: an answer speaks of them wherever DuckDB has a group for them, and nowhere else.

Groups that nobody is in: how often the rule takes their noise for values, and what it does to small groups.

Sums of a person's values are of values within bounds, and an answer says so where one may lie beyond them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime, timedelta

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
from dither.tables.planning.explain import empty_group_notes, null_notes
from dither.tables.planning.group_keys import card_of_question
from dither.tables.planning.plan import AggregationPlan
from dither.tables.sql.parse import parse
from support import each, noted
from tables.glass import glass
from tables.planned import make
from tables.raw_rows import alike, answered, truth
from tables.test_conditions import AGE_BOUNDS, AGES

ROWS = pa.table(
    {
        "who": [i % 20 for i in range(200)],
        "region": ["a", "b"] * 100,
        "kind": ["x", "y"] * 100,
        "age": [i % 90 for i in range(200)],
    }
)
LOW, LEAN = "may be too low by more than the ±", "favor people with few rows"
ALL = {LOW, LEAN}


def opened(unit: str | None):
    keys = {"region": ["a", "b"], "kind": ["x", "y"]}
    return dp.open(ROWS, unit=unit, keys=keys, bounds={"age": (0, 99)}, budget=dp.PureDP(4000))


@pytest.fixture(scope="module")
def table():
    with opened("who") as result:
        yield result


@pytest.fixture(scope="module")
def rows_are_people():
    with opened(None) as result:
        yield result


CASES = {
    "COUNT(*) AS n": {LOW},
    "COUNT(age) AS n": {LOW},
    "SUM(age) AS s": {LOW},
    "AVG(age) AS m": {LEAN},
    "STDDEV(age) AS m": {LEAN},
    "COUNT(DISTINCT who) AS n": set(),
    "MEDIAN(age) AS m": {LEAN},
    "QUANTILE(age, 0.9) AS m": {LEAN},
    "MIN(age) AS m": set(),
    "MODE(kind) AS m": {LEAN},
    "COUNT(*) AS n, COUNT(DISTINCT who) AS p": {LOW},
    "COUNT(*) AS n, AVG(age) AS m": ALL,
    "COUNTIF(age > 50) / COUNT(*) AS share": {LOW},
    "SUM(age) / COUNT(*) AS mean_age, MEDIAN(age) AS m": ALL,
}


def said(text: str) -> set[str]:
    return {sentence for sentence in ALL if sentence in text}


@pytest.mark.parametrize("columns", CASES)
def test_what_applies_is_said_and_nothing_else(table, columns):
    question = table.sql(f"SELECT {columns} FROM data")
    answer = question.release(1)
    assert said(str(question.explain(1))) == CASES[columns]
    assert said(answer.text(verbose=True)) == CASES[columns]
    assert said(dp.present.html(answer)) == CASES[columns]


@pytest.mark.parametrize("columns", [columns for columns in CASES if "DISTINCT" not in columns])
def test_where_every_row_is_a_person_nothing_is_left_out(rows_are_people, columns):
    question = rows_are_people.sql(f"SELECT {columns} FROM data")
    assert said(str(question.explain(1))) == said(str(question.release(1))) == set()
    assert "excluded" not in str(question.release(1))
    assert "unknown amount" not in dp.present.html(question.release(1))


def test_a_histogram_in_python(table):
    question = table.agg(h=dp.histogram("age", edges=[0, 50, 100]))
    assert said(str(question.explain(1))) == said(str(question.release(1))) == {LOW}


def test_people_lose_groups_too(table):
    question = table.sql("SELECT region, COUNT(DISTINCT who) AS n FROM data GROUP BY region")
    assert said(str(question.explain(1))) == {LOW}
    assert said(str(question.explain(1, max_groups=2))) == set()  # there are no more than two
    assert "a privately chosen number of groups" in str(question.explain(1, max_groups="auto"))


def test_the_sentence_has_the_limits(table):
    question = table.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region")
    assert "Each person counts for at most 5 rows." in str(question.release(1, max_rows=5))
    both = str(question.release(1, max_rows=5, max_groups=2))
    assert "Each person counts for at most the weight of 5 rows in each of 2 groups." in both
    assert LOW in both


def test_an_answer_that_will_say_what_is_left_out_is_announced(table):
    question = table.sql("SELECT COUNT(*) AS n FROM data")
    for options in ({"max_rows": "auto"}, {"bias": True}):
        stated = str(question.explain(1, **options))
        assert "the answer will state the share of rows that is excluded" in stated
        assert LOW not in stated
        assert re.search(r"learned privately: (max_rows|bias) for ε = 0\.", stated)
    assert "times the limit that is chosen" in str(question.explain(1, max_rows="auto"))


def test_an_error_is_said_in_widths_of_the_bounds_where_these_are_chosen_later(table):
    """The bounds 0 and 1 stand in for them, so that the error is that of bounds of a width of 1."""
    question = table.agg(m=dp.mean("age", bounds="auto"), s=dp.sum("age", bounds="auto"), n=dp.count())
    mean, total, count = question.explain(1, max_rows=1).lines
    assert "times the width of the bounds that are chosen with 1,000 rows" in mean["expected"]
    assert mean["mechanism"].endswith(" rows in each of 3 parts")
    assert "times the largest of the bounds that are chosen" in total["expected"]
    assert (mean["error"], total["error"]) == (None, None)
    assert "chosen" not in count["expected"]
    relation = "SELECT AVG(total) AS m FROM (SELECT who, SUM(age) AS total FROM data GROUP BY who) AS p"
    [line] = table.sql(relation).explain(1, max_rows="auto").lines
    assert "times the width of the bounds that are chosen with 1,000 rows" in line["expected"]


def test_from_how_many_people_on_a_group_is_shown_depends_on_a_choice(table):
    with dp.open(ROWS, unit="who", budget=dp.ApproxDP(10, 0.1), delta=1e-6) as opened_without_keys:
        question = opened_without_keys.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region")
        chosen = question.explain(1, max_rows=1, max_groups="auto").groups
        stated = question.explain(1, max_rows=1, max_groups=2).groups
    assert "if max_groups = 1 is chosen, and from more for a larger one" in chosen
    assert "chosen" not in stated


def test_every_line_says_what_is_measured_and_the_noise_in_units_of_the_answer(table):
    columns = "COUNT(age) AS c, SUM(age) AS s, AVG(age) AS m, MEDIAN(age) AS q, COUNT(DISTINCT who) AS p"
    lines = {line["answer"]: line for line in table.sql(f"SELECT {columns} FROM data").explain(50).lines}
    assert lines["c"]["measure"] == lines["m"]["measure"] == "the number and the sum of the values"
    assert "rows" in lines["c"]["mechanism"]
    assert "people" in lines["p"]["mechanism"]
    assert lines["m"]["error"] is None
    assert "with 1,000 rows in a group" in lines["m"]["expected"]
    assert lines["s"]["expected"].startswith("± ")
    assert "its rank within" in lines["q"]["expected"]
    [alone] = table.sql("SELECT SUM(age) AS s FROM data").explain(1).lines
    deviation = float(alone["mechanism"].rpartition(" ")[2])  # 99 times sqrt(2), with one row of a person and ε = 1
    assert deviation == pytest.approx(99 * 2**0.5, rel=0.02)
    assert "part" not in table.sql("SELECT COUNT(age) AS n FROM data").explain(1).lines[0]["measure"]


def test_an_explanation_in_a_notebook_is_escaped(table):
    question = table.sql('SELECT COUNT(*) AS "<b>n" FROM data')
    page = question.explain(1)._repr_html_()
    assert "&lt;b&gt;n" in page
    assert "<b>" not in page


def test_a_count_beside_a_mean_says_why_its_error_is_larger():
    rows = pa.table({"age": [30.0, 40.0] * 50})
    with dp.open(rows, bounds={"age": (0, 100)}, budget=dp.PureDP(10)) as table:
        alone = table.agg(n=dp.count()).explain(epsilon=1)
        beside = table.agg(n=dp.count(), m=dp.mean("age")).explain(epsilon=1)
        shared = table.agg(n=dp.count(), d=dp.count_distinct("age")).explain(epsilon=1)
    assert beside.lines[0]["error"] > alone.lines[0]["error"]
    assert " in each of 3 parts" in beside.lines[0]["mechanism"]
    assert "parts" not in alone.lines[0]["mechanism"]
    assert noted(beside, "shared_parts") == [{"names": ["n"], "others": ["m"]}]
    assert shared.lines[0]["error"] > alone.lines[0]["error"]
    assert noted(shared, "shared_epsilon")
    assert not noted(alone, "shared_parts", "shared_epsilon")


@pytest.mark.parametrize("aggregate", ["MAX(x)", "MIN(x)", "MEDIAN(x)"])
def test_what_is_chosen_among_bins_says_how_wide_they_are(aggregate):
    """8192 bins between the bounds: a value is the middle of one, and nothing is known of where in it the truth is."""
    rows = pa.table({"x": [float(i % 8192) + 0.9 for i in range(100_000)], "k": list(range(100_000))})
    bounds = {"x": (0.0, 8192.0 * 4), "k": (0, 100)}
    with dp.open(rows, bounds=bounds, budget=dp.PureDP(10)) as opened:
        question = opened.sql(f"SELECT {aggregate} AS m FROM data")
        kinds = ("extreme_rank", "quantile_rank")
        answer = question.release(1, quantile_interval=aggregate != "MEDIAN(x)")
        for said in (question.explain(1), answer):
            assert [values["bin_width"] for values in noted(said, *kinds)] == [4]
        assert answer["m"][0] % 4 == 2  # the middle
        whole = opened.sql(f"SELECT {aggregate.replace('x', 'k')} AS m FROM data")
        assert [values["bin_width"] for values in noted(whole.explain(1), *kinds)] == [None]
        chosen = opened.agg(m=dp.median("x", bounds="auto"))
        assert [values["bin_width"] for values in noted(chosen.explain(1), *kinds)] == [None]


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


@each(
    "sql", ["DAYOFWEEK(d) = 1", "EXTRACT(DOW FROM d) > 3", "WEEKDAY(d) < 2", "ISODOW(d) = 1", "DAYNAME(d) = 'Monday'"]
)
def test_days_that_engines_count_differently_are_said(sql):
    """Where they are counted from Sunday = 0: by day of the week against Python, too."""
    days = [date(2024, 1, 1) + timedelta(days=i) for i in range(1400)]
    rows = pa.table({"d": pa.array(days, pa.date32())})
    python = {
        "DAYOFWEEK(d) = 1": lambda day: day.isoweekday() == 1,
        "EXTRACT(DOW FROM d) > 3": lambda day: day.isoweekday() % 7 > 3,
        "WEEKDAY(d) < 2": lambda day: day.isoweekday() % 7 < 2, "ISODOW(d) = 1": lambda day: day.weekday() == 0,
        "DAYNAME(d) = 'Monday'": lambda day: day.weekday() == 0,
    }  # fmt: skip
    with dp.open(rows, budget=dp.PureDP(1000)) as opened:
        answer = opened.sql(f"SELECT COUNT(*) AS n FROM data WHERE {sql}").release(100.0)
        assert abs(answer["n"][0] - sum(map(python[sql], days))) <= 1
        assert len(noted(answer, "weekday_numbers")) == (0 if "ISO" in sql or "NAME" in sql else 1)
