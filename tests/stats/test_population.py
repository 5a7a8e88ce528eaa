"""Intervals for the population: what they cover, what they cost, and that they are named apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from dither import AddRemove, InvalidArgument, PureDP, ReplaceOne, stats
from support import refuses

RUNS, CONFIDENCE, RECORDS = 400, 0.95, 150
FEWEST = int(scipy_stats.binom.ppf(1e-9, RUNS, CONFIDENCE - 0.01))
BOTH = [AddRemove, ReplaceOne]
GENERATOR = np.random.default_rng(20_260_102)
"""A seed makes the samples the same every time; the noise is not."""
LAW = scipy_stats.beta(2, 3)
CASES: dict[str, tuple[Any, float]] = {
    "count": (lambda x, **more: stats.count(x < 0.25, 1, **more), RECORDS * LAW.cdf(0.25)),
    "mean": (lambda x, **more: stats.mean(x, (0, 1), 1, **more), LAW.mean()),
    "mean, delta": (lambda x, **more: stats.mean(x, (0, 1), 1, 0.05, **more), LAW.mean()),
    "variance": (lambda x, **more: stats.var(x, (0, 1), 1, **more), LAW.var()),
    "std": (lambda x, **more: stats.std(x, (0, 1), 1, **more), LAW.std()),
}


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("name", CASES)
def test_the_interval_holds_that_of_the_population(name, relation):
    ask, truth = CASES[name]
    hits = 0
    for _ in range(RUNS):
        x = LAW.rvs(RECORDS, random_state=GENERATOR)
        answer = ask(x, neighbors=relation, interval="population")
        low, high = answer.interval(CONFIDENCE)
        assert low <= answer <= high
        hits += low <= truth <= high
    assert hits >= FEWEST


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("name", [name for name in CASES if name != "count"])
def test_it_is_wider_than_that_of_the_noise_where_records_are_few(name, relation):
    ask, _ = CASES[name]
    x = LAW.rvs(2_000, random_state=GENERATOR)
    noise, population = (ask(x, neighbors=relation, interval=kind).error() for kind in ("noise", "population"))
    assert population > 1.5 * noise


@pytest.mark.parametrize("relation", BOTH)
def test_noise_is_the_default(relation):
    x = np.arange(100) / 100
    default, noise = (stats.mean(x, (0, 1), 1, neighbors=relation, **more) for more in ({}, {"interval": "noise"}))
    assert type(default.uncertainty) is type(noise.uncertainty)
    assert default.error() == pytest.approx(noise.error(), rel=0.3)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("name", ["mean", "variance", "std"])
@given(x=st.lists(st.floats(-1, 2), min_size=3, max_size=6), other=st.floats(-1, 2))
def test_no_neighbors_move_the_sums_by_more_than_is_paid_for(name, relation, x, other, paid):
    ask, _ = CASES[name]
    y = [*x[1:], other] if relation is ReplaceOne else x[1:]
    one, two = (paid(lambda z=z: ask(np.array(z), neighbors=relation, interval="population")) for z in (x, y))
    assert one.covers(two)


@pytest.mark.parametrize("relation", BOTH)
def test_it_costs_the_same_epsilon(relation):
    for ask, _ in (CASES[name] for name in ("count", "mean", "variance", "std")):
        assert ask(np.arange(50) / 50, neighbors=relation, interval="population").guarantee == PureDP(1)


@pytest.mark.parametrize("interval", ["sample", None, 1, ""])
def test_another_kind_of_interval_is_refused(interval):
    for name in ("count", "mean", "variance", "std"):
        with refuses(InvalidArgument, "interval", "'noise' or 'population'"):
            CASES[name][0](np.arange(50) / 50, interval=interval)


def test_bounded_noise_has_no_interval_for_the_population():
    with refuses(InvalidArgument, "method", "'clamped'"):
        stats.var([0.0, 0.5, 1.0], (0, 1), 1, method="bounded", interval="population")


def test_the_mean_of_hardly_any_records_has_the_whole_range():
    low, high = stats.mean([0.5, 0.5, 0.5], (0, 1), 0.01, neighbors=AddRemove, interval="population").interval()
    assert (low, high) == (0.0, 1.0)
    assert math.isfinite(high)
