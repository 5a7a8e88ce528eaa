"""Products of two columns: whole numbers that add up, and from which everything about the pair follows."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.compile.pairs import PARTS, pair_grid
from dither.tables.compile.statements import Measure
from dither.tables.planning import plan
from dither.tables.query.tree import Aggregate, Column, Group, Query
from support import refuses
from tables.glass import bounded, card, table

AMOUNT, AGE = Column("amount"), Column("age")


def values(size: int) -> list[dict]:
    generator = np.random.default_rng()
    age = generator.integers(0, 121, size)
    amount = np.clip(age * 0.5 + generator.normal(20, 12, size), 0, 100)
    return [
        {"person": i, "region": "north", "age": int(a), "amount": float(x)}
        for i, (a, x) in enumerate(zip(age, amount, strict=True))
    ]


def without_noise(kind: str, value: Column, other: Column, lines: list[dict]) -> float | None:
    query = Query({"r": Aggregate(kind, value, other=other)})
    made = plan.make(query, card(), epsilon=1e6)
    return bounded(made, table(lines)).answer.answers["r"][0]


def test_the_parts_of_every_row_are_not_negative_and_add_up_to_the_top():
    hostile = [
        {"person": i, "age": age, "amount": amount}
        for i, (age, amount) in enumerate(
            [
                (0, 0.0),
                (120, 100.0),
                (121, -5.0),
                (-(1 << 63), math.inf),
                (60, 1e-320),
                (7, 33.3),
                (None, 1.0),
                (3, math.nan),
            ]
        )
    ]
    made = plan.make(Query({"r": Aggregate("corr", AMOUNT, other=AGE)}), card(None), epsilon=1)
    pair = next(iter(made.measures)).pair
    assert pair is not None
    for line in hostile:
        seen = bounded(made, table([line])).answer.measures
        parts = [int(seen[measure][0]) for measure in made.measures]
        missing = line["age"] is None or math.isnan(line["amount"])
        assert min(parts) >= 0
        assert sum(parts) == (0 if missing else pair.top)
    assert len(made.measures) == PARTS


@pytest.mark.parametrize("kind", ["covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2"])
@pytest.mark.parametrize("swapped", [False, True])
def test_without_noise_it_is_what_numpy_computes(kind, swapped):
    lines = values(400)
    lines += [{"person": 400 + i, "age": None, "amount": 50.0} for i in range(30)]
    y, x = (np.array([row[name] for row in lines[:400]]) for name in ("amount", "age"))
    value, other = (AGE, AMOUNT) if swapped else (AMOUNT, AGE)
    y, x = (x, y) if swapped else (y, x)
    covariance = np.cov(x, y)
    slope = covariance[0, 1] / covariance[0, 0]
    correlation = float(np.corrcoef(x, y)[0, 1])
    expected = {
        "covar_samp": covariance[0, 1],
        "covar_pop": covariance[0, 1] * 399 / 400,
        "corr": correlation,
        "regr_slope": slope,
        "regr_intercept": y.mean() - slope * x.mean(),
        "regr_r2": correlation**2,
    }[kind]
    assert without_noise(kind, value, other, lines) == pytest.approx(expected, rel=2e-3, abs=0.05)


def test_aggregates_of_the_same_two_columns_share_one_measurement():
    query = Query(
        {
            "r": Aggregate("corr", AMOUNT, other=AGE),
            "b": Aggregate("regr_slope", AGE, other=AMOUNT),
            "c": Aggregate("covar_pop", AMOUNT, other=AGE),
        }
    )
    made = plan.make(query, card(), epsilon=1)
    assert len(made.measures) == PARTS
    assert all(noise.epsilon == 1 for noise in made.measures.values())


def test_grids_are_equally_fine_and_whole_numbers_stay_exact():
    fine, whole = pair_grid((-3.7, 11.2), False, 9, "x"), pair_grid((-3, 97), True, 9, "x")
    assert abs(fine.width - 512) <= 1
    assert whole.scale == 5
    assert whole.low == -15
    with refuses(InvalidArgument, "far from 0"):
        pair_grid((1e15, 1e15 + 1), False, 9, "x")


def test_a_weighted_person_adds_no_more_than_the_limit():
    lines = [{"person": 1, "region": "north", "age": 120 * (i % 2), "amount": 50.0 * (i % 3)} for i in range(50)]
    for noise in ("laplace", "gaussian"):
        query = Query({"r": Aggregate("corr", AMOUNT, other=AGE)}, (Group("region", Column("region")),))
        made = plan.make(query, card(), epsilon=1, delta=1e-6, max_rows=3, max_groups=2, noise=noise)
        seen = bounded(made, table(lines)).answer.measures
        numbers = np.array([seen[measure] for measure in made.measures], dtype=float)
        norm = np.abs(numbers).sum() if noise == "laplace" else math.sqrt((numbers**2).sum())
        limit = float(next(iter(made.measures)).sensitivity(made.limits))
        assert norm <= limit
        if noise == "laplace":
            assert norm >= 0.99 * limit


def test_a_slope_that_the_noise_hides_has_no_value():
    data = pa.table({"x": [50.0] * 40, "y": [1.0, 2.0] * 20})
    with dp.open(data, bounds={"x": (0, 100), "y": (0, 5)}, budget=dp.PureDP(100)) as people:
        answers = [people.agg(b=dp.regression_slope("y", "x")).release(1, again=True) for _ in range(40)]
    hidden = [answer for answer in answers if answer["b"] == [None]]
    assert all(answer.error("b") == [None] for answer in hidden)
    assert len(hidden) >= 20  # 9 in 10 at least: fewer than half in less than 1 of 10^9 runs


def test_a_measure_of_a_pair_is_in_rows():
    made = plan.make(Query({"r": Aggregate("corr", AMOUNT, other=AGE)}), card(), epsilon=1, max_rows=2)
    measure = next(iter(made.measures))
    assert isinstance(measure, Measure)
    assert float(measure.sensitivity(made.limits)) / measure.unit(made.limits) == 2
