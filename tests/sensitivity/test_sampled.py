"""The sensitivity of random neighbors: its rank argument by enumeration, and what it does not protect."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from dither import AddRemove, InvalidArgument, Neighbors, ReplaceOne
from dither.sensitivity import sampled
from support import each, refuses


def scripted(values: Any) -> Any:
    """Draws that return these records one after the other."""
    records = iter(values)
    return lambda count: np.array(list(itertools.islice(records, count)))


@each("neighbors", [ReplaceOne, AddRemove])
@each("statistic", [np.mean, np.max, lambda x: x[-1] ** 2])
@each("weights", [(0.5, 0.5), (0.9, 0.1), (0.2, 0.3, 0.5)])
def test_random_neighbors_exceed_it_with_probability_gamma_at_most(
    neighbors: Neighbors, statistic: Any, weights: tuple[float, ...]
) -> None:
    """All outcomes of two trials and of one pair more: gamma is 1/3."""
    values, each_takes = [0.0, 1.0, 5.0][: len(weights)], 2  # records for one pair
    n, beyond = (1 if neighbors is ReplaceOne else 2), 0.0
    for indices in itertools.product(range(len(weights)), repeat=3 * each_takes):
        records = [values[i] for i in indices]
        bound = sampled(statistic, scripted(records[: 2 * each_takes]), n=n, gamma=1 / 3, neighbors=neighbors)
        last = np.array(records[2 * each_takes :])
        change = abs(
            statistic(last[:-1]) - (statistic(last) if neighbors is AddRemove else statistic(np.delete(last, -2)))
        )
        beyond += math.prod(weights[i] for i in indices) * bool(change > bound)
    assert beyond <= 1 / 3 + 1e-12
    assert beyond > 0.01


def test_the_number_of_trials() -> None:
    for gamma, trials in ((0.5, 1), (0.25, 3), (0.01, 99), (0.3, 3)):
        calls: list[int] = []

        def draw(count: int, calls: list[int] = calls) -> Any:
            calls.append(count)
            return np.arange(count)

        sampled(np.mean, draw, n=7, gamma=gamma, neighbors=ReplaceOne)
        assert calls == [8] * trials
        assert 1 / (len(calls) + 1) <= gamma


def test_it_is_no_bound_for_an_outlier() -> None:
    """One record from elsewhere moves the mean by far more: the loss is that many times epsilon."""
    rng = np.random.default_rng(1)
    bound = sampled(np.mean, lambda k: rng.normal(size=k), n=100, gamma=0.01, neighbors=ReplaceOne)
    assert 0.02 < bound < 0.08  # differences of two normal draws, over 100: the largest of 99
    data = rng.normal(size=100)
    outlier = np.append(data[:-1], 1000.0)
    assert abs(data.mean() - outlier.mean()) / bound > 100


@pytest.mark.parametrize("gamma", [0, 1, -0.1, math.nan, 2])
def test_a_gamma_that_is_no_probability_is_refused(gamma: Any) -> None:
    with refuses(InvalidArgument, "gamma"):
        sampled(np.mean, np.zeros, n=3, gamma=gamma, neighbors=ReplaceOne)
    with refuses(InvalidArgument, "finite number"):
        sampled(lambda _: math.nan, np.zeros, n=3, gamma=0.1, neighbors=ReplaceOne)
