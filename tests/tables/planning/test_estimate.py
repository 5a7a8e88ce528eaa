"""The ± of AVG, VAR and STDDEV holds for groups of any size, also where the noise is larger than the group."""

from __future__ import annotations

import math
from statistics import variance

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dither as dp
from dither.tables.planning.estimate import estimate
from tables.weighted import of_row

LOW, HIGH = -60, 600
TIMES = 3_000
# P(a coverage of 95 % misses more often than this) is below 1e-11 in each case
MOST_MISSES = int(stats.binom.isf(1e-11, TIMES, 0.05))
SIZES = (0, 1, 5, 10, 20, 40)


@pytest.fixture(scope="module")
def table():
    rows = pa.table({"x": [0]})
    with dp.open(rows, bounds={"x": (LOW, HIGH)}, budget=dp.PureDP(1)) as result:
        yield result


def released(table, what: str, values: list[int], epsilon: float):
    """Many answers about these values, with the noise of the question's own plan, and the ± of each."""
    plan = table.sql(f"SELECT {what}(x) AS answer FROM data").plan(epsilon).parts[0]
    parts = plan.measures_of["answer"]
    noisy = {}
    for measure in parts:
        total = sum(of_row(measure, round(x * measure.moments.grid.scale)) for x in values)
        assert measure.unit(plan.limits) == measure.top  # every row is a person, so nothing is weighted
        noisy[measure] = np.asarray(plan.measures[measure].release(np.full(TIMES, total)))
    answers, errors = estimate(plan, plan.query.aggregates["answer"], parts, noisy, 0.95)
    return np.array(answers), np.array(errors)


def misses(answers, errors, true: float) -> int:
    return int(np.sum(np.abs(answers - true) > errors + 1e-6))


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("value", [LOW, 10, HIGH])
def test_the_interval_of_a_mean_holds_for_small_groups(table, size, value):
    answers, errors = released(table, "AVG", [value] * size, 0.1)
    assert misses(answers, errors, value) <= MOST_MISSES
    assert (errors <= np.maximum(answers - LOW, HIGH - answers) + 1e-6).all()  # nor is it wider than the bounds


@pytest.mark.slow
def test_half_the_bounds_around_an_estimate_off_the_middle_is_no_interval(table):
    answers, errors = released(table, "AVG", [10] * 20, 0.1)
    assert misses(answers, np.minimum(errors, (HIGH - LOW) / 2), 10) > MOST_MISSES


@pytest.mark.slow
@pytest.mark.parametrize("what", ["VAR", "STDDEV"])
@pytest.mark.parametrize(
    "values",
    [[LOW] * 10, [HIGH] * 40, [LOW, HIGH], [LOW, HIGH] * 5, [LOW, HIGH] * 20],
    ids=lambda values: f"{len(values)}x{len(set(values))}",
)
def test_the_interval_of_a_variance_holds_for_small_groups(table, what, values):
    for epsilon in (0.1, 3.0):
        answers, errors = released(table, what, values, epsilon)
        true = variance(values)
        assert misses(answers, errors, true if what == "VAR" else math.sqrt(true)) <= MOST_MISSES


@pytest.mark.slow
def test_half_of_the_largest_variance_around_an_estimate_is_no_interval(table):
    answers, errors = released(table, "VAR", [LOW, HIGH], 0.1)
    half_of_it = ((HIGH - LOW) / 2) ** 2
    assert misses(answers, np.minimum(errors, half_of_it), variance([LOW, HIGH])) > MOST_MISSES
