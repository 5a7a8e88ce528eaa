"""Numbers of different values: what they count, and what one person adds to them."""

from __future__ import annotations

import math
import random
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.tables.planning import plan
from dither.tables.query.tree import Aggregate, Column, Group, Query
from tables.glass import bounded, card, losses, table

TOWNS = ["", "a", "A", "é", "e\u0301", "🎲", None]
AMOUNTS = [0.0, -0.0, 1.5, 1.5000000001, 1e300, -1e300, math.inf, -math.inf, math.nan, 5e-324, None]
CODES = [5, 5 + (1 << 31) - 1, -(1 << 63), (1 << 63) - 1, None]


def rows(size: int) -> list[dict]:
    pick = random.SystemRandom()
    return [
        {
            "person": pick.choice([None, *range(12)]),
            "region": pick.choice(["north", "south", None]),
            "town": pick.choice(TOWNS),
            "amount": pick.choice(AMOUNTS),
            "code": pick.choice(CODES),
        }
        for _ in range(size)
    ]


def asked(column: str, by: str | None = "region") -> Query:
    return Query({"n": Aggregate("count_distinct", Column(column))}, (Group(by, Column(by)),) if by else ())


def different(lines: list[dict], column: str) -> dict[str, int]:
    """From the definition: equal numbers are one value, and NaN is none."""
    seen: dict[str, set] = defaultdict(set)
    for row in lines:
        value = row[column]
        if row["person"] is not None and value is not None and not (isinstance(value, float) and math.isnan(value)):
            seen[row["region"]].add(value)
    return {region: len(seen[region]) for region in ("north", "south")}


@pytest.mark.parametrize("column", ["town", "amount", "code"])
@pytest.mark.parametrize("norm", ["laplace", "gaussian"])
def test_every_value_counts_where_nobody_has_more_than_the_limit(column, norm):
    lines = rows(80)
    made = plan.make(asked(column), card(), epsilon=1, delta=1e-6, max_groups=2, max_rows=20, noise=norm)
    answer = bounded(made, table(lines)).answer
    assert dict(zip(["north", "south"], answer.answers["n"], strict=True)) == different(lines, column)


@pytest.mark.parametrize(("most_groups", "most_rows"), [(1, 1), (1, 3), (2, 1)])
def test_one_person_adds_no_more_than_the_limit_and_reaches_it(most_groups, most_rows):
    alone = [
        {"person": 1, "region": region, "town": town} for region in ("north", "south") for town in TOWNS for _ in "ab"
    ]
    made = plan.make(asked("town"), card(), epsilon=1, max_groups=most_groups, max_rows=most_rows)
    for secret in range(5):
        numbers = bounded(made, table(alone), secret).answer.answers["n"]
        assert sorted(numbers, reverse=True) == [most_rows] * most_groups + [0] * (2 - most_groups)


def test_which_values_count_depends_on_the_secret_and_on_nobody_else():
    mine = [{"person": 1, "code": code} for code in range(9)]
    made = plan.make(asked("code", None), card(), epsilon=1, max_rows=3)
    hits = set()
    for secret in (0, 1):
        single = []
        for code in range(9):  # another person who has one value only shows whether it is among the three
            both = bounded(made, table([*mine, {"person": 2, "code": code}]), secret)
            (number,) = both.answer.answers["n"]
            assert number in (3, 4)
            single += [code] if number == 3 else []
            assert losses(made, both, bounded(made, table(mine), secret))[0] <= 1 + 1e-9
        assert len(single) == 3
        hits.add(tuple(single))
    assert len(hits) == 2


def test_rows_that_are_people_count_once():
    data = pa.table({"x": pa.array([1, 1, 2, None, 3] * 20)})
    with dp.open(data, budget=dp.PureDP(4000)) as people:
        answer = people.sql("SELECT COUNT(DISTINCT x) AS n FROM data").release(3000)
    assert answer["n"] == [3]


def test_the_answer_says_that_values_beyond_the_limit_do_not_count():
    data = pa.table({"who": np.arange(300) % 30, "x": np.arange(300)})
    with dp.open(data, unit="who", max_rows=2, budget=dp.PureDP(4000)) as people:
        answer = people.agg(n=dp.count_distinct("x")).release(3000)
    assert answer["n"] == [60]
    assert "different values of one person beyond that do not count" in answer.text()
    assert answer.error("n") == [0.0]
