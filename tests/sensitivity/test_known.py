"""Searches, by enumeration and by hypothesis, for neighbors that exceed a stated sensitivity; none may exist.

The oracle is exact: statistics are computed in Fractions from their definitions, not by the library.

The sensitivity of random neighbors: its rank argument by enumeration, and what it does not protect.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from dither import AddRemove, DitherError, InvalidArgument, Neighbors, ReplaceOne, sensitivity
from dither.sensitivity import sampled
from support import each, refuses

Table = tuple[Fraction, ...]
BOUNDS = [(0, 1), (-3, 5), (2, 7), (-0.1, 0.3)]
BOTH = [AddRemove, ReplaceOne]


def mean(x: Table) -> Fraction:
    return sum(x, Fraction(0)) / len(x)


def variance(x: Table) -> Fraction:
    middle = mean(x)
    return sum(((item - middle) ** 2 for item in x), Fraction(0)) / (len(x) - 1)


def domain(bounds: tuple[float, float]) -> list[Fraction]:
    low, high = (Fraction(end) for end in bounds)
    return [low, low + (high - low) / 3, (low + high) / 2, high]


def tables(bounds: tuple[float, float], size: int) -> Iterator[Table]:
    return itertools.combinations_with_replacement(domain(bounds), size)


def neighbors(bounds: tuple[float, float], size: int, relation: Neighbors) -> Iterator[tuple[Table, Table]]:
    """All pairs, up to the order of the rows; under add/remove ``size`` is that of the smaller table."""
    for x in tables(bounds, size if relation is AddRemove else size - 1):
        for extra in domain(bounds):
            if relation is AddRemove:
                yield x, (*x, extra)
            else:
                for other in domain(bounds):
                    yield (*x, extra), (*x, other)


def largest_move(f: Callable[[Table], Any], bounds: tuple[float, float], size: int, relation: Neighbors) -> Any:
    return max(abs(f(x) - f(y)) for x, y in neighbors(bounds, size, relation))


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("bounds", BOUNDS)
class TestEveryPairOfSmallTables:
    @pytest.mark.parametrize("n", [1, 2, 3, 4])
    def test_mean_is_never_moved_farther_and_the_limit_is_reached(self, n, bounds, relation):
        stated = sensitivity.mean(n=n + (relation is AddRemove), bounds=bounds, neighbors=relation)
        result = largest_move(mean, bounds, n, relation)
        assert result <= Fraction(stated)
        assert float(result) == pytest.approx(stated, rel=1e-9)

    @pytest.mark.parametrize("n", [2, 3, 4])
    def test_variance_is_never_moved_farther_and_the_limit_is_reached(self, n, bounds, relation):
        stated = sensitivity.var(n=n + (relation is AddRemove), bounds=bounds, neighbors=relation)
        result = largest_move(variance, bounds, n, relation)
        assert result <= Fraction(stated)
        assert float(result) == pytest.approx(stated, rel=1e-9)

    @pytest.mark.parametrize("n", [2, 3, 4])
    def test_std_is_never_moved_farther_and_the_limit_is_reached(self, n, bounds, relation):
        stated = sensitivity.std(n=n + (relation is AddRemove), bounds=bounds, neighbors=relation)
        result = largest_move(lambda x: math.sqrt(variance(x)), bounds, n, relation)
        assert result <= stated * (1 + 1e-12)
        assert result == pytest.approx(stated, rel=1e-9)

    @pytest.mark.parametrize("n", [1, 2, 4])
    def test_sum_is_never_moved_farther_and_the_limit_is_reached(self, n, bounds, relation):
        stated = sensitivity.sum(bounds=bounds, neighbors=relation)
        result = largest_move(lambda x: sum(x, Fraction(0)), bounds, n, relation)
        assert result <= Fraction(stated)
        assert float(result) == pytest.approx(stated, rel=1e-9)

    @pytest.mark.parametrize("n", [1, 2, 3, 4])
    @pytest.mark.parametrize(
        ("stated", "f"),
        [(sensitivity.min, min), (sensitivity.max, max), (sensitivity.median, statistics.median)],
    )
    def test_order_statistics_are_never_moved_farther(self, n, bounds, relation, stated, f):
        assert largest_move(f, bounds, n, relation) <= Fraction(stated(bounds=bounds, neighbors=relation))

    def test_order_statistics_reach_the_limit(self, bounds, relation):
        for stated, f in ((sensitivity.min, min), (sensitivity.max, max)):
            reached = float(largest_move(f, bounds, 1, relation))
            assert reached == pytest.approx(stated(bounds=bounds, neighbors=relation), rel=1e-9)

    @pytest.mark.parametrize("n", [1, 3])
    @pytest.mark.parametrize("norm", [1, 2])
    def test_histogram_moves_no_farther_in_either_norm_and_reaches_it(self, n, bounds, relation, norm):
        def distance(x: Table, y: Table) -> float:
            moves = [x.count(value) - y.count(value) for value in domain(bounds)]
            return sum(abs(m) for m in moves) if norm == 1 else math.sqrt(sum(m * m for m in moves))

        stated = sensitivity.histogram(neighbors=relation, norm=norm)
        result = max(distance(x, y) for x, y in neighbors(bounds, n, relation))
        assert result <= stated
        assert result == pytest.approx(stated, rel=1e-9)


def test_median_reaches_the_width_under_replacement():
    x, y = (Fraction(0), Fraction(0), Fraction(9)), (Fraction(0), Fraction(9), Fraction(9))
    assert statistics.median(y) - statistics.median(x) == sensitivity.median(bounds=(0, 9), neighbors=ReplaceOne)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[tuple[float, float], list[float], list[float], Neighbors]:
    low = draw(st.floats(-1e6, 1e6))
    high = draw(st.floats(math.nextafter(low, math.inf), 2e6))
    relation = draw(st.sampled_from(BOTH))
    inside = st.one_of(st.floats(low, high), st.sampled_from([low, high]))
    x = draw(st.lists(inside, min_size=2, max_size=8))
    y = [*x, draw(inside)] if relation is AddRemove else [*x[:-1], draw(inside)]
    return (low, high), x, y, relation


@pytest.mark.slow
@given(pairs())
def test_hypothesis_finds_no_neighbors_that_exceed_any_sensitivity(pair):
    bounds, x, y, relation = pair
    one, two = tuple(map(Fraction, x)), tuple(map(Fraction, y))
    n = len(y)
    assert abs(mean(one) - mean(two)) <= Fraction(sensitivity.mean(n=n, bounds=bounds, neighbors=relation))
    spread = sensitivity.var(n=n, bounds=bounds, neighbors=relation)
    assert abs(variance(one) - variance(two)) <= Fraction(spread)
    assert abs(sum(one) - sum(two)) <= Fraction(sensitivity.sum(bounds=bounds, neighbors=relation))
    deviation = sensitivity.std(n=n, bounds=bounds, neighbors=relation)
    assert abs(math.sqrt(variance(one)) - math.sqrt(variance(two))) <= deviation * (1 + 1e-9)
    for stated, f in ((sensitivity.min, min), (sensitivity.max, max), (sensitivity.median, statistics.median)):
        assert abs(f(one) - f(two)) <= Fraction(stated(bounds=bounds, neighbors=relation))
    assert abs(sum(v > bounds[0] for v in x) - sum(v > bounds[0] for v in y)) <= sensitivity.count(neighbors=relation)


@given(st.integers(3, 10**9), st.integers(1, 10**6), st.sampled_from(BOTH))
def test_std_is_rounded_up_never_down(n, width, relation):
    stated = Fraction(sensitivity.std(n=n, bounds=(0, width), neighbors=relation))
    assert stated**2 * n >= width**2


@pytest.mark.parametrize("n", [4, 100, 10_000])
def test_std_exceeds_the_lectures_width_over_n(n):
    """Seed 001, Example 23: all equal against one at the other bound."""
    x = (Fraction(0),) * n
    y = (*x[1:], Fraction(1))
    assert math.sqrt(variance(y)) - math.sqrt(variance(x)) > 1.9 / n
    assert sensitivity.std(n=n, bounds=(0, 1), neighbors=ReplaceOne) == pytest.approx(n**-0.5)


def test_count_of_either_relation_is_one():
    assert [sensitivity.count(neighbors=relation) for relation in BOTH] == [1, 1]


def test_the_relation_has_no_default():
    for f in (sensitivity.count, sensitivity.sum, sensitivity.mean, sensitivity.histogram):
        with pytest.raises(TypeError, match="neighbors"):
            f()


@pytest.mark.parametrize("bad", [None, "AddRemove", 1, "replace"])
def test_a_wrong_relation_is_refused(bad):
    for f in (
        lambda: sensitivity.count(neighbors=bad),
        lambda: sensitivity.sum(bounds=(0, 1), neighbors=bad),
        lambda: sensitivity.mean(n=3, bounds=(0, 1), neighbors=bad),
        lambda: sensitivity.var(n=3, bounds=(0, 1), neighbors=bad),
        lambda: sensitivity.std(n=3, bounds=(0, 1), neighbors=bad),
        lambda: sensitivity.min(bounds=(0, 1), neighbors=bad),
        lambda: sensitivity.histogram(neighbors=bad),
    ):
        with refuses(DitherError, "neighbors:"):
            f()


@pytest.mark.parametrize("n", [0, -1, 1.5, None, True, "3"])
def test_a_wrong_number_of_records_is_refused(n):
    for f in (sensitivity.mean, sensitivity.var, sensitivity.std):
        with refuses(DitherError, "n:"):
            f(n=n, bounds=(0, 1), neighbors=ReplaceOne)


@pytest.mark.parametrize("norm", [0, 3, -1, math.inf, "1", None])
def test_a_norm_other_than_one_or_two_is_refused(norm):
    for relation in BOTH:
        with refuses(DitherError, "norm:"):
            sensitivity.histogram(neighbors=relation, norm=norm)


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
