from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from choices import LAWS, frequencies, neighboring_counts, worst_loss
from divergence import number

from dither import AddRemove, Exponential, NoisyMax, PermuteAndFlip, PureDP, ReplaceOne
from dither.randomness import SeededSource
from support import FALSE_ALARM, each, label, surprise

CASES: list[Any] = [
    [3.0],
    [0, 0],
    [15, 20, 25],
    [1.5, 1.5, -2.0, 0.25],
    [0.0, -30.0, -0.1, -200.0, -0.1],
    [7, 7, 7, 7, 7, 7],
    [0.0, -math.inf, -1.0],
    [1e308, -1e308, 0.0],
    [5.0, -1e308, 4.0],
    [2**60 + 1, 2**60, 2**60 - 5],
    [True, False, True],
]


def exact_scores(scores: Any) -> list[Any]:
    return [int(s) if isinstance(s, bool) else s for s in scores]


@each("noise", LAWS)
@each("scores", CASES)
@each("monotone", [False, True])
def test_probabilities_agree_with_mpmath(noise: Any, scores: list[Any], monotone: bool) -> None:
    m = NoisyMax(1, 0.7, monotone, noise)
    result = m.probabilities(scores)
    assert abs(math.fsum(result.tolist()) - 1) < 1e-15
    for got, exact in zip(result.tolist(), LAWS[noise](exact_scores(scores), m.rate), strict=True):
        assert abs(number(got) - exact) <= mp.mpf(2e-14) * exact + mp.mpf("1e-300")


@pytest.mark.parametrize("noise", LAWS)
def test_probabilities_of_narrow_types(noise: Any) -> None:
    m = NoisyMax(1, 1, noise=noise)
    small = m.probabilities(np.array([200, 250, 255], dtype=np.uint8))
    assert np.array_equal(small, m.probabilities([200, 250, 255]))
    wide = m.probabilities(np.array([2**63 - 1, -(2**63), 2**63 - 2]))
    assert np.allclose(wide, [*m.probabilities([1, 0])[:1], 0, *m.probabilities([1, 0])[1:]], atol=0, rtol=1e-13)
    unsigned = m.probabilities(np.array([2**64 - 1, 2**64 - 3], dtype=np.uint64))
    assert np.allclose(unsigned, m.probabilities([2, 0]), atol=0, rtol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("noise", LAWS)
def test_a_thousand_candidates(noise: Any) -> None:
    rates = [Fraction(-(i % 10), 4) for i in range(1000)]
    m = NoisyMax(1, 2, noise=noise)
    result = m.probabilities([float(r) for r in rates])
    assert abs(math.fsum(result.tolist()) - 1) < 1e-15
    values = sorted(set(rates), reverse=True)
    p = [mp.exp(number(r)) for r in values]
    if noise == "gumbel":
        exact = [x / mp.fsum(100 * x for x in p) for x in p]
    elif noise == "exponential":
        exact = [
            x * mp.quad(lambda t, x=x: mp.fprod((1 - y * t) ** (99 if y == x else 100) for y in p), [0, 0.005, 0.05, 1])
            for x in p
        ]
    else:

        def below(z: Any) -> Any:
            return mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2

        ends = [-mp.inf, *(number(v) for v in values[::-1]), 3, 6, 9, 14, 25, 60]
        exact = [
            mp.quad(
                lambda z, item=item: (
                    mp.exp(-abs(z - item))
                    / 2
                    * mp.fprod(below(z - number(v)) ** (99 if number(v) == item else 100) for v in values)
                ),
                ends,
            )
            for item in map(number, values[:2])
        ]
    for i, want in enumerate(exact):
        assert abs(result[i] / float(want) - 1) < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize("scores", [[0, 1, 3], [0.0, 0.5, -math.inf, 0.5, 2.0], [2**62, 2**62 + 2]], ids=label)
def test_draws_follow_the_probabilities(noise: Any, scores: Any) -> None:
    m, words = NoisyMax(1, 1, noise=noise), SeededSource(5)
    counts = frequencies([m.select_index(scores, source=words) for _ in range(6000)], len(scores))
    assert surprise(counts, m.probabilities(scores)) > FALSE_ALARM
    assert surprise(counts, NoisyMax(1, 1.2, noise=noise).probabilities(scores)) < FALSE_ALARM or len(scores) > 3


@each("neighbors", [AddRemove, ReplaceOne])
@each("noise", LAWS)
@each(("records", "categories"), [(4, 2), (4, 3), (3, 4)])
def test_counts_are_private_by_enumeration(neighbors: Any, noise: Any, records: int, categories: int) -> None:
    m = NoisyMax.for_counts(1, neighbors, noise=noise)
    loss = worst_loss(LAWS[noise], m.rate, neighboring_counts(neighbors, records, categories))
    assert loss <= 1 + mp.mpf("1e-12")
    assert loss > 0.5
    assert m.guarantee == PureDP(1)


def test_the_library_enumerates_to_the_same_losses() -> None:
    for neighbors in (AddRemove, ReplaceOne):
        for m in (Exponential.for_counts(1, neighbors), NoisyMax.for_counts(1, neighbors, noise="laplace")):
            for x, y in neighboring_counts(neighbors, 4, 3):
                p, q = m.probabilities(x), m.probabilities(y)
                assert np.abs(np.log(p / q)).max() <= 1 + 1e-12


@pytest.mark.parametrize("noise", LAWS)
def test_half_the_noise_is_not_enough_under_replacement(noise: Any) -> None:
    wrong = NoisyMax(1, 1, monotone=True, noise=noise)
    assert not NoisyMax.for_counts(1, ReplaceOne).monotone
    pairs = (((k, 80 - k), (k + 1, 79 - k)) for k in range(60, 80))
    rounding = mp.mpf("1e-12")
    assert 1.96 < worst_loss(LAWS[noise], wrong.rate, pairs) <= 2 + rounding
    added = (((k, 80 - k), (k + 1, 80 - k)) for k in range(60, 80))
    assert worst_loss(LAWS[noise], wrong.rate, added) <= 1 + rounding


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism() -> None:
    for scores in ([0, 3, 5], [1.0, 1.0, 1.0, -4.0], [0.0, -0.5, -9.0, -9.0, -30.0]):
        best = max(scores)
        behind = best - np.asarray(scores, dtype=float)
        pf = PermuteAndFlip(1, 1).probabilities(scores)
        em = Exponential(1, 1).probabilities(scores)
        assert pf @ behind <= em @ behind + 1e-15
        for t in set(behind.tolist()):
            assert pf[behind >= t].sum() <= em[behind >= t].sum() + 1e-15


@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_error_holds(noise: Any, confidence: float) -> None:
    m = NoisyMax(1, 1, noise=noise)
    for ties, d in [(1, 4), (2, 5), (4, 4), (3, 6)]:
        gap = m.error(d, confidence, ties=ties)
        for far in (gap, gap * 1.3, gap + 10):
            scores = [0.0] * ties + [-far] * (d - ties)
            if d > ties:
                missed = mp.fsum(LAWS[noise](scores, m.rate)[ties:])
                assert missed <= 1 - number(confidence) + mp.mpf("1e-30")


def test_names_and_noises_are_checked() -> None:
    from divergence import refusal

    refusal(lambda: NoisyMax(1, 1, noise="gauss"))  # type: ignore[arg-type]
    assert PermuteAndFlip(1, 1).noise == "exponential"
    assert NoisyMax(1, 1).select(["no", "yes"], [0, 1000]) == "yes"


@pytest.mark.slow
@pytest.mark.parametrize("d", [2000, 10**5])
def test_permute_and_flip_of_very_many(d: int) -> None:
    """Half tied at the top, half one unit behind: both integrals by mpmath, in units of 1/d."""
    m, half = PermuteAndFlip(1, 2), d // 2
    result = m.probabilities(np.where(np.arange(d) < half, 0.0, -1.0))
    e = mp.exp(-1)

    def share(a: int, b: int) -> Any:
        return mp.quad(lambda u: (1 - u / d) ** a * (1 - e * u / d) ** b / d, [0, 5, 20, 60, 150])

    assert abs(result[0] / float(share(half - 1, half)) - 1) < 1e-12
    assert abs(result[-1] / float(e * share(half, half - 1)) - 1) < 1e-12


@pytest.mark.slow
def test_laplace_probabilities_of_many_fit_into_memory() -> None:
    """One table of all nodes and candidates would take 180 MB for each of its operations."""
    tracemalloc.start()
    try:
        result = NoisyMax(1, 2, noise="laplace").probabilities(-np.arange(1000) / 100)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert np.all(np.diff(result) < 0)
    assert abs(math.fsum(result.tolist()) - 1) < 1e-15
