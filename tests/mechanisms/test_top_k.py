from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from choices import frequencies, neighboring_counts
from divergence import budget, hockey_stick, number, refusal

from dither import AddRemove, ApproxDP, PureDP, ReplaceOne, TopK
from dither.randomness import SeededSource, is_seeded
from support import FALSE_ALARM, label, surprise


def peeling(scores: Any, rate: Fraction, k: int) -> dict[Any, Any]:
    """The law of k exponential mechanisms one after another, each over what is left."""
    weights = [mp.mpf(0) if s == -math.inf else mp.exp(number(Fraction(s) * rate)) for s in scores]
    law = {}
    for order in itertools.permutations(range(len(scores)), k):
        left, probability = mp.fsum(weights), mp.mpf(1)
        for i in order:
            probability *= weights[i] / left if left else 0
            left -= weights[i]
        law[order] = probability
    return law


@pytest.mark.parametrize("neighbors", [AddRemove, ReplaceOne])
@pytest.mark.parametrize(("d", "k"), [(2, 1), (3, 2), (4, 2), (4, 3), (2, 2)])
def test_private_by_enumeration(neighbors: Any, d: int, k: int) -> None:
    m = TopK(k, 1, 1, monotone=neighbors is AddRemove)
    laws: dict[Any, Any] = {}
    worst = mp.mpf(0)
    for x, y in neighboring_counts(neighbors, 3, d):
        for t in (x, y):
            if t not in laws:
                laws[t] = peeling(t, m.choice.rate, k)
        worst = max(worst, *(abs(mp.log(laws[x][o] / laws[y][o])) for o in laws[x]))
    assert 0.3 < worst <= 1 + mp.mpf("1e-12")
    assert m.guarantee == PureDP(1)


def test_noise_for_one_choice_is_not_enough_for_two() -> None:
    once = TopK(1, 1, 1)
    x, y = (9, 10, 0), (10, 9, 0)
    p, q = (peeling(t, once.choice.rate, 2) for t in (x, y))
    assert max(abs(mp.log(p[o] / q[o])) for o in p) <= 1  # one person, one swap: no worse here
    x, y = (20, 0, 21, 0), (19, 1, 21, 0)
    p, q = (peeling(t, once.choice.rate, 3) for t in (x, y))
    assert max(abs(mp.log(p[o] / q[o])) for o in p) > 1


@pytest.mark.parametrize("delta", [1e-3, 0.05])
def test_the_zcdp_way_is_private_too(delta: float) -> None:
    m = TopK(5, 1, 1, delta)
    assert m.accounted_by == "zcdp"
    assert m.guarantee == ApproxDP(1, delta)
    assert m.choice.epsilon > Fraction(1, 5)
    for x, y in [
        ((3, 2, 1, 1, 0), (2, 3, 1, 1, 0)),
        ((9, 0, 0, 0, 0), (8, 1, 0, 0, 0)),
        ((2, 2, 2, 2, 3), (3, 2, 2, 2, 2)),
    ]:
        p, q = (peeling(t, m.choice.rate, len(t)) for t in (x, y))
        assert hockey_stick(p, q, 1) <= budget(delta)
    assert 5 * m.choice.zcdp.rho <= 1
    assert (m.choice.zcdp * 5).to_approx(delta).epsilon <= 1


def test_the_cheaper_way_is_taken() -> None:
    assert TopK(1, 1, 1, 1e-6).accounted_by == "pure"
    assert TopK(1, 1, 1, 1e-6).guarantee == PureDP(1)
    assert TopK(300, 1, 1, 1e-6).scale < TopK(300, 1, 1).scale
    assert TopK(4, 1, 1).scale == 8
    assert TopK(4, 1, 1, monotone=True).scale == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scores", "k"),
    [([0, 1, 2], 2), ([0.5, 0.5, -math.inf, 3.0], 3), ([2**60, 2**60 + 3, 0, 2**60 + 1], 2), ([1, 1, 1, 1], 3)],
    ids=label,
)
def test_draws_follow_peeling(scores: Any, k: int) -> None:
    m, words = TopK(k, 1, 3), SeededSource(2)
    places = {order: i for i, order in enumerate(itertools.permutations(range(len(scores)), k))}
    draws = [places[tuple(m.select_indices(scores, source=words))] for _ in range(4000)]
    counts = frequencies(draws, len(places))
    top = max(scores)
    shifted = [s - top for s in scores]
    assert surprise(counts, np.array([float(p) for p in peeling(shifted, m.choice.rate, k).values()])) > FALSE_ALARM
    wrong = np.array([float(p) for p in peeling(shifted, m.choice.rate * 2, k).values()])
    assert len(set(scores)) == 1 or surprise(counts, wrong) < FALSE_ALARM


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_error_holds(confidence: float) -> None:
    m = TopK(2, 1, 1)
    gap = m.error(4, confidence)
    for scores in ([0, 0, -gap, -gap], [5, 0, -gap, -gap - 1], [0.0, 0.0, 0.0, -gap]):
        law, kth = peeling(scores, m.choice.rate, 2), sorted(scores)[-2]
        missed = mp.fsum(p for order, p in law.items() if min(scores[i] for i in order) <= kth - gap)
        assert missed <= 1 - number(confidence)


def test_refusals_and_edges() -> None:
    refusal(lambda: TopK(3, 1, 1).select_indices([1, 2]))
    refusal(lambda: TopK(2, 1, 1).select_indices([987654.321, -math.inf]), "987654")
    for k in (0, -1, 1.5, True, "2"):
        refusal(lambda k=k: TopK(k, 1, 1))
    for delta in (0, 1, -0.1, math.nan, "x"):
        refusal(lambda delta=delta: TopK(2, 1, 1, delta))
    assert sorted(TopK(3, 1, 1).select_indices([5, 5, 5])) == [0, 1, 2]
    assert TopK(2, 1, 1).select("abcd", [0, 900, 0, 1000]) == ["d", "b"]
    assert TopK(2, 1, 1).select_indices([1e308, -1e308, 0.0]) == [0, 2]
    assert is_seeded(TopK(2, 1, 1).select_indices([1, 2, 3], source=SeededSource(1)))
    assert sorted(TopK(2, 1, 1).select_indices(1e20 + 2.0**20 * np.arange(50_000))) == [49_998, 49_999]
