from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from choices import frequencies, neighboring_counts, softmax
from divergence import hockey_stick, number, refusal
from hypothesis import given
from hypothesis import strategies as st

from dither import AddRemove, Exponential, InvalidArgument, PureDP, ReplaceOne
from dither.randomness import SeededSource, is_seeded
from support import FALSE_ALARM, each, label, refuses, surprise

EDGES: list[Any] = [[4.0], [0, 0, 0], [15, 20, 25], [0.0, -1e-300, -700.0, -744.0], [1e308, -1e308], [0.1, -math.inf]]


@pytest.mark.parametrize("scores", EDGES, ids=label)
def test_probabilities_agree_with_mpmath(scores: Any) -> None:
    m = Exponential(1, 1)
    result = m.probabilities(scores)
    assert abs(math.fsum(result.tolist()) - 1) < 1e-15
    for got, exact in zip(result.tolist(), softmax(scores, m.rate), strict=True):
        assert abs(number(got) - exact) <= mp.mpf(1e-13) * exact + mp.mpf("1e-300")


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6), st.integers(0, 70))
def test_integers_keep_their_differences(scores: list[int], shift: int) -> None:
    m = Exponential(2**shift, 1)
    result = m.probabilities(np.array(scores))
    for got, exact in zip(result.tolist(), softmax(scores, m.rate), strict=True):
        assert abs(number(got) - exact) <= mp.mpf(1e-12) * exact + mp.mpf("1e-300")
    moved = m.probabilities([score + 2**65 for score in scores])
    assert np.allclose(result, moved, rtol=1e-12, atol=0)


@pytest.mark.parametrize("top", [2**53, 2**63, 2**64, 10**30])
def test_lists_with_large_integers_are_not_rounded(top: int) -> None:
    """NumPy would make floats of these, and one person's 1 into a thousand."""
    m = Exponential(1, 1)
    for other in (-1, 0.5, -math.inf):
        for offset in (0, 1, 1024, 1025):
            p = m.probabilities([top + offset, top + offset + 1, other])
            assert p[1] / p[0] == pytest.approx(math.exp(0.5), rel=1e-12)
            draws = {m.select_index([top + offset, top + offset + 1, other]) for _ in range(60)}
            assert draws == {0, 1}


@pytest.mark.parametrize("epsilon", [1e-90, 1e-100])
def test_scores_whose_difference_overflows(epsilon: float) -> None:
    m, words = Exponential(1e120, epsilon), SeededSource(3)
    counts = frequencies([m.select_index([1e308, -1e308], source=words) for _ in range(2000)], 2)
    assert surprise(counts, m.probabilities([1e308, -1e308])) > FALSE_ALARM


def test_many_large_scores_are_settled_in_one_pass() -> None:
    scores = 1e20 + 2.0**14 * np.arange(200_000)
    assert Exponential(1, 1).select_index(scores) == scores.size - 1


@pytest.mark.slow
def test_draws_follow_the_law_and_no_other() -> None:
    m, words, scores = Exponential(2, 3), SeededSource(1), [0, 1, 1, 4, -2]
    counts = frequencies([m.select_index(scores, source=words) for _ in range(20_000)], 5)
    assert surprise(counts, m.probabilities(scores)) > FALSE_ALARM
    assert surprise(counts, Exponential(2, 3.6).probabilities(scores)) < FALSE_ALARM


@pytest.mark.parametrize("neighbors", [AddRemove, ReplaceOne])
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_the_curve_dominates_every_pair_of_tables(neighbors: Any, epsilon: float) -> None:
    m = Exponential.for_counts(epsilon, neighbors)
    for x, y in neighboring_counts(neighbors, 4, 3):
        p, q = (dict(enumerate(softmax(t, m.rate))) for t in (x, y))
        for at in (0, epsilon / 3, epsilon * 0.9):
            assert hockey_stick(p, q, at) <= number(m.privacy_curve(at))


@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_the_curve_is_approached(epsilon: float) -> None:
    """Two outputs whose scores move by the sensitivity in opposite directions, at the best distance."""
    m = Exponential(1, epsilon)
    for at in (0, epsilon / 2, epsilon * 0.9):
        reached = max(
            hockey_stick(
                dict(enumerate(softmax([Fraction(k, 20) / m.rate + 1, 0], m.rate))),
                dict(enumerate(softmax([Fraction(k, 20) / m.rate, 1], m.rate))),
                at,
            )
            for k in range(-150, 60)
        )
        claimed = number(m.privacy_curve(at))
        assert claimed * mp.mpf("0.999") < reached <= claimed
    assert m.privacy_curve(epsilon) == 0
    assert m.privacy_curve(epsilon * 2) == 0
    assert Exponential(1, 1000).privacy_curve(1) <= 1


def test_zcdp_of_a_bounded_range() -> None:
    for epsilon in (0.5, 2):
        m = Exponential(1, epsilon)
        for k in range(-40, 40, 4):
            p, q = softmax([k / 10 + 1, 0], m.rate), softmax([k / 10, 1], m.rate)
            for alpha in (mp.mpf("1.01"), mp.mpf(2), mp.mpf(10)):
                renyi = mp.log(mp.fsum(a**alpha * b ** (1 - alpha) for a, b in zip(p, q, strict=True))) / (alpha - 1)
                assert renyi <= alpha * number(m.zcdp.rho)


@given(
    st.lists(st.sampled_from([0, 0, -1, -2.5, -7, -20, -60]), min_size=1, max_size=6),
    st.sampled_from([0.3, 0.5, 0.9, 0.99]),
    st.sampled_from([0.2, 1, 3]),
)
def test_the_theorems_about_the_error(behind: list[float], confidence: float, epsilon: float) -> None:
    m, best = Exponential(1, epsilon), max(behind)
    p = softmax(behind, m.rate)
    d, ties = len(behind), behind.count(best)
    for r in (1, ties):
        gap = number(m.error(d, confidence, ties=r))
        far = mp.fsum(x for x, score in zip(p, behind, strict=True) if number(score) <= number(best) - gap)
        assert far <= 1 - number(confidence)
        mean = mp.fsum(x * number(score) for x, score in zip(p, behind, strict=True))
        assert mean >= number(best) - number(m.expected_score_bound(d, ties=r)) - mp.mpf("1e-30")


NEAR: list[Any] = [1, 2, {0: 2}, {0.5: 3}, {1: 2, 3: 4}, {0: 1, 2: 3}]


@each("epsilon", [0.3, 1, 4])
@each("ties", NEAR)
def test_near_ties_by_enumeration(epsilon: float, ties: Any) -> None:
    """All scores of 4 candidates on a grid that have these ties: no expectation and no tail is beyond its bound."""
    m, within = Exponential(1, epsilon), ties if isinstance(ties, dict) else {0: ties}
    bound, tail = m.expected_score_bound(4, ties=ties), m.error(4, 0.9, ties=ties)
    assert bound <= Exponential(1, epsilon).expected_score_bound(4) <= 2 * math.log(4) / epsilon
    assert tail <= m.error(4, 0.9)
    grid = [0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 15.0, 25.0]
    cases = 0
    for gaps in itertools.combinations_with_replacement(grid, 3):
        all_gaps = (0.0, *gaps)
        if any(sum(gap <= far for gap in all_gaps) < count for far, count in within.items()):
            continue
        cases += 1
        weights = [math.exp(-epsilon * gap / 2) for gap in all_gaps]
        pairs = list(zip(all_gaps, weights, strict=True))
        assert sum(gap * weight for gap, weight in pairs) / sum(weights) <= bound
        assert sum(weight for gap, weight in pairs if gap >= tail) / sum(weights) <= 0.1 + 1e-12
    assert cases > 5


@each("epsilon", [0.3, 1, 4])
@each(("ties", "gaps"), [(1, [0]), (2, [0, 0]), ({0.5: 3}, [0, 0.5, 0.5]), ({1: 2, 3: 4}, [0, 1, 3, 3])])
@each("d", [5, 50, 10**6])
def test_the_bound_on_the_expectation_is_met(epsilon: float, ties: Any, gaps: list[float], d: int) -> None:
    m = Exponential(1, epsilon)
    bound, rate = number(m.expected_score_bound(d, ties=ties)), number(epsilon) / 2
    farthest = bound + 1 / rate
    scores = [(min(number(gap), farthest), 1) for gap in gaps] + [(farthest, d - len(gaps))]
    total = mp.fsum(count * mp.exp(-rate * gap) for gap, count in scores)
    mean = mp.fsum(count * gap * mp.exp(-rate * gap) for gap, count in scores) / total
    assert float(mean) == pytest.approx(float(bound), rel=1e-9)


def test_the_bound_without_ties_is_lamberts_function() -> None:
    for d in (2, 199, 10**6):
        expected = 2 * mp.lambertw((d - 1) / mp.e)
        assert Exponential(1, 1).expected_score_bound(d) == pytest.approx(float(expected), rel=1e-10)
    assert Exponential(1, 1).expected_score_bound(1) < 1e-20


@pytest.mark.parametrize("ties", [0, 5, {0: 5}, {-1: 2}, {math.inf: 2}, {1: 0}])
def test_ties_that_cannot_be_are_refused(ties: Any) -> None:
    with refuses(InvalidArgument):
        Exponential(1, 1).expected_score_bound(4, ties=ties)


@given(st.floats(0.001, 1e6), st.integers(1, 1000), st.floats(0.01, 0.999), st.booleans())
def test_for_error_is_the_inverse(width: float, d: int, confidence: float, monotone: bool) -> None:
    if math.log(d) - math.log1p(-confidence) > 1e5 * width:
        return
    m = Exponential.for_error(width, candidates=d, sensitivity=1, confidence=confidence, monotone=monotone)
    assert width * (1 - 1e-12) <= m.error(d, confidence) <= width * (1 + 1e-15)


def integer_law(score: Any, rate: Fraction, extent: int) -> Any:
    weights = np.array([math.exp(float(rate) * float(score(k))) for k in range(-extent, extent + 1)])
    return weights / weights.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("score", "center", "ceiling", "slope"),
    [
        (lambda k: -abs(k - 7), 7, 0, 1),
        (lambda k: -abs(k - 7), 3, 4, 1),  # a bound that is not tight
        (lambda k: -((k - 3) ** 2) / 10, 3, 2.5, 1),
        (lambda k: Fraction(-abs(k), 3) + (k % 2), 0, 1, Fraction(1, 3)),
    ],
)
def test_integers_follow_their_law(score: Any, center: int, ceiling: float, slope: float) -> None:
    m, words, extent = Exponential(1, 1), SeededSource(4), 60
    draws = [
        m.select_integer(score, center=center, ceiling=ceiling, slope=slope, source=words) + extent for _ in range(6000)
    ]
    counts = frequencies([min(max(k, 0), 2 * extent) for k in draws], 2 * extent + 1)
    assert surprise(counts, integer_law(score, m.rate, extent)) > FALSE_ALARM
    assert surprise(counts, integer_law(score, m.rate * Fraction(6, 5), extent)) < FALSE_ALARM


def test_integers_far_out_and_steep() -> None:
    m = Exponential(1, 1)
    assert m.select_integer(lambda k: -(10**9) * abs(k - 2**61), center=2**61, ceiling=0, slope=10**9) == 2**61
    assert abs(m.select_integer(lambda k: -(abs(k) ** 300), center=0, ceiling=1, slope=0.01)) <= 1
    assert is_seeded(m.select_integer(lambda k: -abs(k), center=0, ceiling=0, slope=1, source=SeededSource(1)))


def test_integers_without_a_bound_are_refused() -> None:
    m = Exponential(1, 1)
    for slope in (0, -1, 0.0, math.nan, math.inf, "1"):
        refusal(lambda slope=slope: m.select_integer(lambda _: 0, center=0, ceiling=0, slope=slope))
    refusal(lambda: m.select_integer(lambda _: 987654.321, center=0, ceiling=0, slope=1), 987654)
    refusal(lambda: m.select_integer(lambda _: math.nan, center=0, ceiling=0, slope=1))
    refusal(lambda: m.select_integer(lambda _: "a", center=0, ceiling=0, slope=1))  # type: ignore[arg-type,return-value]
    refusal(lambda: m.select_integer(lambda _: 0, center=0.5, ceiling=0, slope=1))  # type: ignore[arg-type]


def test_what_it_says_of_itself() -> None:
    assert Exponential(1, 0.1).guarantee == PureDP(Fraction(1, 10))
    assert Exponential(1, 1).scale == 2
    assert Exponential(1, 1, monotone=True).scale == 1
    assert Exponential(1, 1).select(["no", "yes"], [0, 1000]) == "yes"
    assert is_seeded(Exponential(1, 1).select_index([1, 2], source=SeededSource(1)))
    for bad in ({"candidates": 0}, {"candidates": 3, "ties": 4}, {"candidates": 3, "confidence": 1}):
        refusal(lambda bad=bad: Exponential(1, 1).error(**bad))
