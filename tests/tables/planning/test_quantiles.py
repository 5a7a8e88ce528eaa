"""Quantiles by halving: the law of all of them together, computed to the last place, on neighbors."""

from __future__ import annotations

import math
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dither as dp
from dither.mechanisms import Exponential, Laplace
from dither.tables.planning import quantiles
from dither.tables.planning.quantiles import extreme_interval, intervals
from dither.tables.query.tree import Aggregate, Column, Query
from tables.glass import bounded, card, table
from tables.planned import make

QUARTILES = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]


class Ask(Exception):
    """A choice is to be made among candidates with these probabilities."""


def law(rank, counts):
    """Every outcome with its probability, by trying every place at every choice."""
    result: dict[tuple, float] = {}

    def follow(path, delta):
        aggregates = iter(path)

        def select(self, scores, **_):
            place = next(aggregates, None)
            if place is None:
                raise Ask(np.exp(self.epsilon * np.asarray(scores, float) / (2 * self.sensitivity)))
            return place

        try:
            with patch.object(Exponential, "select_index", select):
                chosen = tuple(sorted(quantiles.choose(rank, np.array(counts, dtype=np.int64)).items()))
        except Ask as ask:
            weights = ask.args[0] / ask.args[0].sum()
            for place, weight in enumerate(weights):
                follow([*path, place], delta * weight)
        else:
            result[chosen] = result.get(chosen, 0.0) + delta

    follow([], 1.0)
    return result


def loss(rank, one, other):
    one_law, other_law = law(rank, one), law(rank, other)
    assert {*one_law} == {*other_law}
    return max(abs(math.log(one_law[chosen] / other_law[chosen])) for chosen in one_law)


@settings(max_examples=12)
@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=3),
    st.sampled_from([QUARTILES, QUARTILES[:2], [Fraction(1, 10), Fraction(9, 10)], [Fraction(1, 3)]]),
    st.sampled_from([0.5, 2.0]),
    st.data(),
)
def test_all_quantiles_together_lose_as_much_as_the_levels(counts, shares, epsilon, data):
    rank = quantiles.ranks(shares, epsilon, 1)
    more = data.draw(st.integers(0, len(counts) - 1))
    other = [n + (i == more) for i, n in enumerate(counts)]
    assert loss(rank, counts, other) <= epsilon * quantiles.levels(shares) * (1 + 1e-9)


@pytest.mark.parametrize("split", [(2, 0), (1, 1)])
def test_a_person_with_two_values(split):
    rank = quantiles.ranks(QUARTILES, 1.0, 2)
    assert loss(rank, [3, 4], [3 + split[0], 4 + split[1]]) <= 2 * (1 + 1e-9)


def moved(choose, rank, one, other, place):
    """By how much neighbors move the scores of all choices together, in sensitivities, if they choose alike."""
    scored = []
    for counts in (one, other):
        seen = []

        def select(self, scores, seen=seen):
            seen.append((self, np.asarray(scores)))
            return int(place * len(scores))

        with patch.object(Exponential, "select_index", select):
            choose(rank, np.array(counts, dtype=np.int64))
        scored.append(seen)
    return sum(
        np.abs(one_scores - other_scores).max() / by.sensitivity
        for (by, one_scores), (_, other_scores) in zip(*scored, strict=True)
    )


def on_both_sides(rank, counts, first=0):
    """A broken twin: the values of the bin chosen are given to both sides."""
    bin = int(rank.mechanism.select_index(-np.repeat(np.cumsum(counts), rank.parts))) // rank.parts
    if rank.below is not None:
        on_both_sides(rank.below, counts[: bin + 1])
    if rank.above is not None:
        on_both_sides(rank.above, counts[bin:])


@given(st.lists(st.integers(0, 20), min_size=1, max_size=8), st.integers(1, 7), st.floats(0, 0.999), st.data())
def test_splitting_keeps_neighbors_neighbors(counts, many, place, data):
    shares = [Fraction(i, many + 1) for i in range(1, many + 1)]
    person = data.draw(st.lists(st.integers(0, len(counts) - 1), max_size=3))
    other = [n + person.count(i) for i, n in enumerate(counts)]
    limit = max(len(person), 1)
    assert (
        moved(quantiles.choose, quantiles.ranks(shares, 1.0, limit), counts, other, place)
        <= quantiles.levels(shares) + 1e-12
    )


def test_values_on_both_sides_would_lose_more():
    rank = quantiles.ranks(QUARTILES, 1.0, 1)
    assert moved(on_both_sides, rank, [5, 6, 5], [5, 7, 5], 0.5) > 2.2


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.data())
def test_without_noise_they_are_the_quantiles(counts, data):
    """With a huge epsilon; where values share a bin, to a part of a bin."""
    counts = [n * 8 for n in counts]
    counts[data.draw(st.integers(0, len(counts) - 1))] += 8
    rank = quantiles.ranks(QUARTILES, 1e5, 1)
    result = quantiles.choose(rank, np.array(counts, dtype=np.int64))
    up_to, total, off = np.cumsum(counts), sum(counts), max(counts) / (2 * quantiles.PARTS)
    for share, bin in result.items():
        assert up_to[bin] - counts[bin] - off <= share * total <= up_to[bin] + off


def test_one_value_for_all():
    result = quantiles.choose(
        quantiles.ranks(QUARTILES, 10.0, 1), np.array([0] * 50 + [1000] + [0] * 50, dtype=np.int64)
    )
    assert result == dict.fromkeys(QUARTILES, 50)


def test_quartiles_of_a_table_are_in_order_and_cost_two_levels():
    aggregates = {f"q{i}": Aggregate("quantile", Column("amount"), at=i / 4) for i in (3, 1, 2)}
    planned = make(Query(aggregates), card(), epsilon=1)
    (ranked,) = planned.quantiles
    assert ranked.rank.mechanism.epsilon == 0.5
    data = table([{"person": i, "amount": float(i % 101)} for i in range(1010)])
    answer = bounded(planned, data).answer.answers
    assert [answer[f"q{i}"][0] for i in (1, 2, 3)] == [pytest.approx(25 * i, abs=1) for i in (1, 2, 3)]
    with dp.open(data, name="visits", unit="person", bounds={"amount": (0, 100)}, budget=dp.PureDP(1)) as visits:
        q = visits.agg(a=dp.quantile("amount", 0.25), b=dp.median("amount"), c=dp.quantile("amount", 0.75))
        assert "its rank within" in str(q.explain(epsilon=0.01))
        for answer in [q.release(epsilon=0.01, again=True) for _ in range(20)]:
            low, middle, high = (answer.to_arrow()[name][0].as_py() for name in "abc")
            assert low <= middle <= high


def test_how_far_ranks_may_be_off_holds():
    """At 95 %, over 4,000 draws; a tenth of the error does not cover."""
    rank, counts = quantiles.ranks(QUARTILES, 0.2, 1), np.ones(2000, dtype=np.int64)
    drawn = [quantiles.choose(rank, counts) for _ in range(4000)]
    for share, error in quantiles.errors(rank, 2000).items():
        off = np.array([abs(chosen[share] - float(share) * 2000) for chosen in drawn])
        assert np.mean(off <= error + 1) >= 0.95
        assert np.mean(off <= error / 10) < 0.9


class Wider:
    """Noise that is wider than it says."""

    def __init__(self, stated: Laplace, factor: float) -> None:
        self.scale = stated.scale
        self._drawn = Laplace(stated.sensitivity, stated.epsilon / factor)

    def release(self, counts):
        return self._drawn.release(counts)


def misses(mechanism, share: Fraction, runs: int) -> int:
    """How often the interval of a quantile of normal values misses it, the bin selected being a little off."""
    values = np.clip(np.random.default_rng(7).normal(500, 90, 60_000), 0, 999).astype(int)
    counts = np.bincount(values, minlength=1000)
    true = int(np.searchsorted(np.cumsum(counts), float(share) * len(values)))
    result = 0
    for i in range(runs):
        low, high = intervals({share: true + i % 9 - 4}, counts, mechanism)[share]
        result += not low <= true < high
    return result


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 100)])
def test_intervals_of_quantiles_hold_as_often_as_they_say(share):
    stated, runs = Laplace(sensitivity=50, epsilon=0.5), 400
    most = int(stats.binom.isf(1e-10, runs, 0.05))
    assert misses(stated, share, runs) <= most
    assert misses(Wider(stated, 30), Fraction(1, 2), runs) > most


def test_intervals_are_not_wider_than_their_noise_explains():
    counts = np.full(1000, 1000)
    low, high = intervals({Fraction(1, 2): 500}, counts, Laplace(sensitivity=1, epsilon=1.0))[Fraction(1, 2)]
    assert 495 <= low <= 500 < high <= 506


def test_quantiles_of_nobody_have_the_whole_range():
    low, high = intervals({Fraction(1, 2): 3}, np.zeros(100, dtype=np.int64), Laplace(sensitivity=1, epsilon=1.0))[
        Fraction(1, 2)
    ]
    assert (low, high) == (0, 100) or high - low > 20


def missed_extremes(mechanism, kind: str, runs: int) -> int:
    """How often the interval of an extreme misses it, the bin selected being a little inside."""
    counts = np.zeros(1000, dtype=np.int64)
    counts[200:800] = 3
    true = 200 if kind == "min" else 799
    inside = 1 if kind == "min" else -1
    result = 0
    for i in range(runs):
        low, high = extreme_interval(kind, true + inside * (i % 9), counts, mechanism)
        assert (low, high)[kind == "max"] == (0, 1000)[kind == "max"]
        result += not low <= true < high
    return result


@pytest.mark.parametrize("kind", ["min", "max"])
def test_intervals_of_extremes_hold_as_often_as_they_say(kind):
    stated, runs = Laplace(sensitivity=1, epsilon=0.5), 400
    most = int(stats.binom.isf(1e-10, runs, 0.05))
    assert missed_extremes(stated, kind, runs) <= most
    assert missed_extremes(Wider(stated, 30), kind, runs) > most


def test_an_interval_of_a_maximum_begins_near_it_where_there_are_many_values():
    low, high = extreme_interval("max", 790, np.repeat([0, 500, 0], [200, 600, 200]), Laplace(1, 1.0))
    assert 770 <= low <= 799
    assert high == 1000


def test_an_interval_for_the_population_is_wider_by_the_sampling_error():
    counts = np.full(1000, 100)
    noise = Laplace(sensitivity=1, epsilon=50.0)
    (low, high), (lower, higher) = (
        intervals({Fraction(1, 2): 500}, counts, noise, cluster=cluster)[Fraction(1, 2)] for cluster in (None, 1.0)
    )
    sampling = 1.96 * math.sqrt(0.25 * 100_000) / 100  # in bins of 100 values
    assert low - lower >= sampling - 2
    assert higher - high >= sampling - 2
    assert higher - lower <= 8 * sampling  # edges are at powers of two
