"""Unbiased estimates: coverage of their intervals on every table and level, with the noise as it is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import dither as dp
from dither.publish import Attribute, Domain, Estimates, MarginalMechanism, Residuals, TableSpec, allocate, cost_of
from dither.publish.residuals import margin, margins
from support import FALSE_ALARM, refuses

LEAVES = np.arange(12)
DOMAIN = Domain(
    [
        Attribute.nested("g", ["a", "b"], {"a": [0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 3, 3], "b": LEAVES}),
        Attribute.flat("sex", ["f", "m"]),
    ]
)
FINEST = (2, 1)
COUNTS = np.random.default_rng(1).integers(0, 40, (12, 2))


def released(budget, repetitions):
    residuals = Residuals(DOMAIN)
    chosen = allocate(residuals, [TableSpec(levels) for levels in margins([FINEST])], float(cost_of(budget)))
    mechanism = MarginalMechanism(residuals, chosen, budget)
    for _ in range(repetitions):
        yield Estimates(residuals, [FINEST], mechanism.release({FINEST: COUNTS}), mechanism.variances)


WEIGHTS = (np.arange(24) % 5 < 2).astype(float).reshape(12, 2)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [dp.ZCDP(20), dp.ApproxDP(1, 1e-9)], ids=str)
def test_intervals_cover_what_they_say_on_every_table(budget):
    """One cell of each table in turn, so that the trials are independent, and a sum of cells. Intervals of 40 % of the
    width cover less. ``benchmarks/publish.py`` measures the coverage to half a percent."""
    repetitions = 300
    exact = {levels: margin(DOMAIN, COUNTS, FINEST, levels).ravel() for levels in margins([FINEST])}
    hits = {levels: [0, 0] for levels in [*exact, "sum"]}
    errors: dict = {}
    for i, estimates in enumerate(released(budget, repetitions)):
        if not errors:
            errors = {levels: estimates.table(DOMAIN.names(levels)).standard_error.ravel() for levels in exact}
            errors["sum"] = estimates.sum_of(["b", "sex"], WEIGHTS).standard_error
        finest = estimates.values(FINEST)
        distances = {"sum": abs(np.sum(WEIGHTS * (finest - COUNTS))) / errors["sum"]}
        for levels, counts in exact.items():
            cell = i % counts.size
            values = margin(DOMAIN, finest, FINEST, levels).ravel()
            distances[levels] = abs(values[cell] - counts[cell]) / errors[levels][cell]
        for name, distance in distances.items():
            hits[name][0] += distance <= 1.96
            hits[name][1] += distance <= 0.4 * 1.96
    for right, narrow in hits.values():
        assert stats.binomtest(right, repetitions, 0.95).pvalue > FALSE_ALARM
        assert stats.binomtest(narrow, repetitions, 0.95).pvalue < FALSE_ALARM


def test_intervals_are_around_the_values():
    [estimates] = released(dp.ZCDP(0.1), 1)
    table = estimates.table(["a", "sex"])
    low, high = table.interval(0.95)
    np.testing.assert_allclose((low + high) / 2, table.value)
    np.testing.assert_allclose(high - low, 2 * 1.959964 * table.standard_error, rtol=1e-6)
    total = estimates.sum_of(["b", "sex"], WEIGHTS)
    assert total.value == pytest.approx(np.sum(WEIGHTS * estimates.table(["b", "sex"]).value))
    assert total.interval()[1] - total.value == pytest.approx(1.959964 * total.standard_error, rel=1e-6)


def test_tables_agree_with_one_another():
    [estimates] = released(dp.ZCDP(0.1), 1)
    fine = estimates.table(["b", "sex"]).value
    np.testing.assert_allclose(fine.sum(axis=1), estimates.table(["b"]).value, atol=1e-9)
    np.testing.assert_allclose(fine.sum(), estimates.table([]).value, atol=1e-9)


def test_a_table_that_was_not_planned_is_refused():
    residuals = Residuals(DOMAIN)
    chosen = allocate(residuals, [TableSpec((1, 0))], 1.0)
    mechanism = MarginalMechanism(residuals, chosen, dp.ZCDP(0.5))
    estimates = Estimates(residuals, [(1, 0)], mechanism.release({FINEST: COUNTS}), mechanism.variances)
    with refuses(dp.InvalidArgument, "a table of the plan or a margin of one (a)", "b"):
        estimates.table(["b"])
    with refuses(dp.InvalidArgument, "weights", "4 numbers"):
        estimates.sum_of(["a"], [1, 2])
