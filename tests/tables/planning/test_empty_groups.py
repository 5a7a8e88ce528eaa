"""Groups that nobody is in: how often the rule takes their noise for values, and what it does to small groups."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.inference import NoiseLaw, level_table
from dither.tables.card.model import Card, ColumnCard
from dither.tables.notes import kinds_of
from dither.tables.planning import plan
from dither.tables.planning.empty_groups import CONFIDENCE, empty_group_notes, without_values
from dither.tables.sql.parse import parse
from tables.glass import glass

KEYS = tuple("abcdefghijklmnopqrst")
CARD = Card(
    "visits",
    "",
    {"kind": ColumnCard("text", keys=KEYS), "x": ColumnCard("number", (0, 10)), "y": ColumnCard("number", (0, 10))},
    budget=dp.PureDP(1),
)


def planned(aggregates: str, noise: str = "laplace") -> plan.Plan:
    query = parse(f"SELECT kind, {aggregates} FROM visits GROUP BY kind", CARD)
    return plan.make(query, CARD, epsilon=0.5, delta=1e-6 if noise == "gaussian" else None, noise=noise)


def tables(made: plan.Plan, people: int, count: int = 2000) -> list[dict[object, np.ndarray]]:
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
    query = parse("SELECT AVG(x) AS m FROM visits", CARD)
    made = plan.make(query, CARD, epsilon=0.5)
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
        assert "m: NULL, because the noisy number of rows does not show that there are any" in counted.notes
    if alone["m"] != [None]:
        note = f"m: has a value even if there are no rows; with COUNT({value}) in the question it is NULL"
        assert note in alone.notes


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
    note = "low: a group with rows but no value has one as well; with COUNT(x) in the question it is NULL"
    assert note in rows_alone.notes


def test_choices_without_a_number_are_announced():
    assert empty_group_notes(planned("MEDIAN(x) AS m, MIN(y) AS l, COUNT(y) AS k")) == (
        "m: a group that nobody is in has a value as well; with COUNT(x) in the question it is NULL",
    )
    assert empty_group_notes(planned("MEDIAN(x) AS m, COUNT(x) AS n")) == ()
    assert kinds_of(empty_group_notes(planned("MEDIAN(x) AS m"))) == ["empty"]
