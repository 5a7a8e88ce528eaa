"""The noisy maximum: frequencies against exact weights, and near ties against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from dither.errors import InvalidArgument
from dither.randomness import SYSTEM, Exponential, Gumbel, SeededSource, exponential_race
from dither.randomness.lattice import CHUNK
from dither.randomness.race import Variate, noisy_top_k
from support import FALSE_ALARM, ScriptedSource, each, label, real, refuses, surprise

TRIALS = 10_000


def weights(scores: list[float], factor: Fraction, counts: list[int] | None) -> np.ndarray:
    with mp.workprec(300):
        many = counts if counts is not None else [1] * len(scores)
        top = max(real(s) for s in scores if s > -np.inf)
        result = [
            c * mp.exp(real(factor) * (real(s) - top)) if s > -np.inf else mp.mpf(0)
            for s, c in zip(scores, many, strict=True)
        ]
        return np.array([float(w / mp.fsum(result)) for w in result])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scores", "factor", "counts"),
    [
        ([0.0, 1.0, 2.0], Fraction(1), None),
        ([0.0, 1.0, 2.0, -np.inf], Fraction(1, 3), [5, 0, 1, 7]),
        ([5.0, 5.0, 4.0], Fraction(1, 2), [1, 2, 10]),
        ([1e15, 1e15 + 1, 1e15 - 2], Fraction(1), None),  # slack above one: every race is decided exactly
        ([-1e17, -1e17 + 16], Fraction(1, 16), [2, 1]),
        ([1e300, 1e300], Fraction(1), [1, 3]),
        ([0.0, -800.0], Fraction(1), [1, 2**62]),
        ([3e-320, 0.0], Fraction(10**9), None),
    ],
)
def test_frequencies_are_the_weights(scores: list[float], factor: Fraction, counts: list[int] | None) -> None:
    slow = max(abs(s) for s in scores if s > -np.inf) > 1e12
    trials = 2000 if slow else TRIALS
    array, many = np.array(scores), None if counts is None else np.array(counts)
    wins = np.bincount([exponential_race(array, SYSTEM, factor, many) for _ in range(trials)], minlength=len(scores))
    exact = weights(scores, factor, counts)
    assert surprise(wins, exact) > FALSE_ALARM
    if np.sort(exact)[-2] > 0.05:
        shifted = exact * np.where(np.arange(len(exact)) == np.argmax(exact), 3.0, 1.0)
        assert surprise(wins, shifted / shifted.sum()) < FALSE_ALARM, "the test cannot see a wrong weight"


@pytest.mark.parametrize("size", [CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_the_best_is_found_in_any_chunk(size: int) -> None:
    for place in (0, CHUNK - 2, size - 1):
        scores = np.zeros(size)
        scores[place] = 1000.0
        assert exponential_race(scores, SYSTEM) == place
        counts = np.zeros(size, dtype=np.int64)
        counts[place] = 1
        assert exponential_race(np.zeros(size), SYSTEM, counts=counts) == place


def test_many_equal_clocks_share_evenly() -> None:
    scores = np.zeros(64)
    wins = np.bincount([exponential_race(scores, SYSTEM) for _ in range(TRIALS)], minlength=64)
    assert surprise(wins, np.full(64, 1 / 64)) > FALSE_ALARM
    assert surprise(wins, np.repeat([0.5, 1.5], 32) / 64) < FALSE_ALARM


def gumbel(u: mp.mpf) -> mp.mpf:
    return -mp.log(-mp.log1p(-u))


@pytest.mark.parametrize("extra", [1, 2, 3])
@pytest.mark.parametrize(
    ("gap", "factor", "count"),
    [(0.0, Fraction(1), 1), (1.25, Fraction(1), 1), (0.5, Fraction(1, 3), 1), (0.0, Fraction(1), 5)],
)
def test_near_ties_are_decided_exactly(gap: float, factor: Fraction, count: int, extra: int) -> None:
    """Clock 1 has the word for which it rings together with clock 0, to 63, 127 or 191 bits, give or take a little."""
    with mp.workprec(700):
        base = 0x3A5F0F0F12345678 % (1 << 63)
        tail = [0x123456789ABCDEF0] * extra
        first = _spell([base, *tail])
        # clock 1 is ahead by factor * gap + ln(count), so it ties for a Gumbel value smaller by that
        tie = -mp.expm1(-mp.exp(-(gumbel(first) - real(factor) * real(gap) - mp.log(count))))
        value = int(mp.floor(tie * mp.mpf(2) ** (63 + 64 * extra)))
        for later in (False, True):
            moved = value + (1 << 45 if later else -(1 << 45))
            other = [moved >> 64 * extra, *(moved >> 64 * i & (1 << 64) - 1 for i in reversed(range(extra)))]
            script = [base, other[0]]
            for a, b in zip(tail, other[1:], strict=True):
                script += [a, b]
            source = ScriptedSource(script)
            winner = exponential_race(np.array([0.0, gap]), source, factor, np.array([1, count]))
            # the Gumbel value falls with U: a larger U rings later
            assert winner == (0 if later else 1)
            assert source.used == 2 + 2 * extra


def _spell(words: list[int]) -> mp.mpf:
    value = 0
    for word in words:
        value = value << 64 | word
    return (mp.mpf(value) + 0.5) / mp.mpf(2) ** (63 + 64 * (len(words) - 1))


@pytest.mark.parametrize("words", [(0, 2**63 - 1), (2**63 - 1, 0), (0, 0), (2**63 - 1, 2**63 - 1), (1, 5)])
def test_the_first_and_the_last_words(words: tuple[int, int]) -> None:
    script = [*words, *SeededSource(3).words(8).tolist()]
    winner = exponential_race(np.array([0.0, 0.0]), ScriptedSource(script))
    if words[0] != words[1]:
        assert winner == int(words[1] < words[0])  # the smaller U has the larger Gumbel value
    else:
        assert winner == int(script[3] < script[2])


@each("law", [Gumbel(), Exponential(), Exponential(symmetric=True)])
@each("word", [0, 1, 2, 12345, 1 << 44, 1 << 62, (1 << 63) - 2, (1 << 63) - 1])
def test_variates_enclose_the_truth(law: Gumbel | Exponential, word: int) -> None:
    more = SeededSource(4).words(8).tolist()
    for sign in (0, 1):
        noise = Variate(law, word | sign << 63, ScriptedSource(more))
        with mp.workprec(900):
            u = _spell([word, *more])
            truth = gumbel(u) if isinstance(law, Gumbel) else -mp.log(u)
            if sign and law.symmetric:
                truth = -truth
            rough = noise.approximate()
            assert np.isnan(rough) or abs(rough - truth) <= 2.0**-39
            width = mp.mpf(1)
            for _ in range(3):
                low, high = noise.enclose()
                assert real(low) <= truth <= real(high)
                assert real(high - low) <= width * 1.01
                width = real(high - low) * mp.mpf(2) ** -50
                noise.extend()


@pytest.mark.parametrize(
    ("scores", "k"),
    [([0.0, -1000.0, -70.0], 2), ([0.0, -70.0, -140.0, -5000.0, -1e300], 4), ([1e6, 0.0, -500.0, 2e6], 3)],
)
def test_order_holds_far_behind_the_first(scores: list[float], k: int) -> None:
    """Gaps of 70 are upset with chance exp(-70), also between clocks that are all far behind the best."""
    expected = np.argsort(scores)[::-1][:k].tolist()
    for law in (Gumbel(), Exponential(symmetric=True)):
        for _ in range(100):
            assert noisy_top_k(np.array(scores), k, SYSTEM, law=law) == expected


def test_a_clock_far_behind_does_not_hide_another_that_is_less_so() -> None:
    """The favorite draws Laplace noise near -100, so the winner is one of two that floats hold to be level."""
    scores = np.array([0.0, -1000.0, -70.0])
    words = [1 << 63, 1 << 44, 1 << 62]  # noise of -(something huge), 13.2 and 0.7
    source = ScriptedSource([*words, 0, 1 << 47])  # the first U is near 2^-144
    assert exponential_race(scores, source, law=Exponential(symmetric=True)) == 2


@pytest.mark.slow
def test_the_k_largest_are_drawn_one_after_the_other_by_weight() -> None:
    """With Gumbel noise the order has the law of draws without replacement."""
    scores = np.array([0.0, 1.0, 0.5, -90.0])
    w = np.exp(scores[:3])
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    exact = np.array([w[i] / w.sum() * w[j] / (w.sum() - w[i]) for i, j in pairs])
    drawn = [tuple(noisy_top_k(scores, 2, SYSTEM)) for _ in range(3000)]
    wins = np.array([drawn.count(pair) for pair in pairs])
    assert wins.sum() == 3000
    assert surprise(wins, exact) > FALSE_ALARM
    assert surprise(wins, np.full(6, 1 / 6)) < FALSE_ALARM


@pytest.mark.parametrize("k", [1, 2])
def test_exact_scores_count_where_floats_cannot_hold_them(k: int) -> None:
    # as floats both are 1e17; the second is ahead by 40
    exact = [Fraction(10**17 - 33), Fraction(10**17 + 7)]
    for _ in range(50):
        assert noisy_top_k(np.array([1e17, 1e17]), k, SYSTEM, exact_score=exact.__getitem__)[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize("law", [Exponential(), Exponential(symmetric=True)], ids=label)
def test_other_noise_selects_with_its_own_probabilities(law: Exponential) -> None:
    gap = 1.0
    wins = np.bincount([exponential_race(np.array([gap, 0.0]), SYSTEM, law=law) for _ in range(TRIALS)], minlength=2)
    # P(second) = P(X' - X > gap): exp(-g)/2 for exponential, (2 + g) exp(-g) / 4 for Laplace
    second = np.exp(-gap) * ((2 + gap) / 4 if law.symmetric else 0.5)
    assert surprise(wins, np.array([1 - second, second])) > FALSE_ALARM
    for wrong in (0.7 * second, 1.3 * second):
        assert surprise(wins, np.array([1 - wrong, wrong])) < FALSE_ALARM


@pytest.mark.parametrize("scores", [[], [np.nan], [0.0, np.inf], [-np.inf], [-np.inf, -np.inf]])
def test_races_without_candidates_are_refused(scores: list[float]) -> None:
    with refuses(InvalidArgument, "scores"):
        exponential_race(np.array(scores), SYSTEM)


def test_a_race_without_counts_is_refused() -> None:
    with refuses(InvalidArgument, "scores"):
        exponential_race(np.zeros(3), SYSTEM, counts=np.zeros(3, dtype=np.int64))


def test_every_clock_takes_one_word_whatever_the_scores() -> None:
    used = set()
    for scores in (np.zeros(1000), np.linspace(-500, 500, 1000), np.where(np.arange(1000) % 2, 0.0, -np.inf)):
        source = ScriptedSource(seed=8)
        exponential_race(scores, source)
        used.add(source.used)
    assert used == {1000}
