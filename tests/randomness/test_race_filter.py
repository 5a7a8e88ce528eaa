"""The filter of long races: what it passes over could not have won, and the law stays exactly what it is."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither import NoisyMax
from dither.randomness import SYSTEM, Exponential, Gumbel, SeededSource, exponential_race, race
from dither.randomness.lattice import MAGNITUDE
from dither.randomness.race import noisy_top_k
from support import FALSE_ALARM, each, label, surprise

LAWS = {"gumbel": Gumbel(), "exponential": Exponential(), "laplace": Exponential(symmetric=True)}
SIZE = 5000
TRIALS = 10_000


def shapes() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {
        "zeros": np.zeros(SIZE),
        "uniform": rng.uniform(0, 1000, SIZE),
        "rising": np.linspace(0, 100, SIZE),
        "one high": np.where(np.arange(SIZE) == SIZE // 2, 1000.0, 0.0),
        "one high in each block": np.where(np.arange(SIZE) % 500 == 7, 20.0, 0.0),
        "a few far ahead": np.where(np.arange(SIZE) % 1000 == 3, np.arange(SIZE) * 100.0, 0.0),
        "cubes of exponentials": rng.exponential(1, SIZE) ** 3 * 50,
        "some never": np.where(np.arange(SIZE) % 3 == 0, 0.0, -np.inf),
        "two above -inf": np.where(np.arange(SIZE) % 2500 == 3, 0.0, -np.inf),
        "huge": rng.uniform(-1e307, 1e307, SIZE),
    }


@pytest.fixture
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Races of a handful of candidates pass the filter, in blocks of eight."""
    monkeypatch.setattr(race, "_SHORT", 4)
    monkeypatch.setattr(race, "_FIRST", 2)
    monkeypatch.setattr(race, "_BATCH", 3)
    monkeypatch.setattr(race, "CHUNK", 8)


@pytest.mark.slow
@each("k", [1, 2, 10])
@each("law", LAWS.values())
@each("shape", shapes())
def test_the_filter_changes_no_outcome(
    shape: str, law: Gumbel | Exponential, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = shapes()[shape]
    wanted = min(k, int(np.sum(scores > -np.inf)))
    seeds = range(10)
    filtered = [noisy_top_k(scores, wanted, SeededSource(seed), Fraction(1, 2), law=law) for seed in seeds]
    monkeypatch.setattr(race, "_within_reach", lambda words, *_: np.arange(words.size))
    monkeypatch.setattr(race, "_possible", lambda words, *_: np.ones(words.size, dtype=bool))
    assert filtered == [noisy_top_k(scores, wanted, SeededSource(seed), Fraction(1, 2), law=law) for seed in seeds]


def test_the_filter_leaves_few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    within_reach = race._within_reach
    monkeypatch.setattr(
        race, "_within_reach", lambda *given: (looked_at.append(within_reach(*given).size), within_reach(*given))[1]
    )
    for scores in (np.zeros(100_000), np.linspace(0, 1000, 100_000)):
        looked_at.clear()
        exponential_race(scores, SYSTEM)
        assert len(looked_at) > 0
        assert sum(looked_at) < 5000


@pytest.mark.parametrize("law", LAWS.values(), ids=label)
@given(threshold=st.floats(1e-9, 60))
def test_every_word_that_may_reach_the_threshold_is_kept(law: Gumbel | Exponential, threshold: float) -> None:
    with mp.workprec(200):
        t = mp.mpf(threshold)
        tail = -mp.expm1(-mp.exp(-t)) if isinstance(law, Gumbel) else mp.exp(-t)
        last = int(mp.floor(tail * 2**63))  # U <= tail for some of the numbers that begin with this word
    words = np.array([0, last // 2, max(last - 1, 0), last], dtype=np.uint64)
    assert race._within_reach(words, threshold, law).tolist() == [0, 1, 2, 3]
    beyond = int(math.exp(-threshold) * 2.0**63 * 1.001) + 3
    if beyond <= MAGNITUDE:
        assert race._within_reach(np.array([beyond], dtype=np.uint64), threshold, law).size == 0


@pytest.mark.parametrize("threshold", [-math.inf, -1.0, 0.0, math.nan])
def test_without_a_positive_threshold_every_word_is_kept(threshold: float) -> None:
    assert race._within_reach(SYSTEM.words(50), threshold, Gumbel()).size == 50


def test_where_the_sign_is_a_bit_negative_noise_is_passed_over() -> None:
    words = np.array([5, 5 | 1 << 63], dtype=np.uint64)
    assert race._within_reach(words, 1.0, Exponential(symmetric=True)).tolist() == [0]
    assert race._within_reach(words, 1.0, Exponential()).tolist() == [0, 1]


@each("count", [1, 7, 128])
@each("shape", shapes())
def test_the_leaders_are_the_largest_scores(shape: str, count: int) -> None:
    scores = shapes()[shape]
    leaders = race._leaders(scores, count)
    assert len(set(leaders.tolist())) == count
    assert np.array_equal(np.sort(scores[leaders]), np.sort(scores)[-count:])


@pytest.mark.slow
@pytest.mark.usefixtures("short_blocks")
@pytest.mark.parametrize("noise", LAWS)
def test_the_law_of_a_filtered_race_is_that_of_its_noise(noise: str) -> None:
    """Right at the true scale, and refuted at nine tenths and eleven tenths of it."""
    scores = np.where(np.arange(21) == 9, 3.0, 0.0)
    wins = np.bincount([exponential_race(scores, SYSTEM, law=LAWS[noise]) for _ in range(TRIALS)], minlength=21)
    exact = NoisyMax(1, 1, monotone=True, noise=noise)  # type: ignore[arg-type]
    assert surprise(wins, exact.probabilities(scores)) > FALSE_ALARM
    high = np.array([wins[9], TRIALS - wins[9]])
    for scale, fits in ((1.0, True), (0.9, False), (1.1, False)):
        p = replace(exact, epsilon=1 / scale).probabilities(scores)[9]
        assert (surprise(high, np.array([p, 1 - p])) > FALSE_ALARM) is fits, scale


@pytest.mark.slow
@pytest.mark.usefixtures("short_blocks")
@pytest.mark.parametrize("noise", LAWS)
def test_the_exact_fallback_has_the_same_law(noise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With so wide a slack that floats never decide, every race is settled by enclosures."""
    settled: list[int] = []
    ranked = race._ranked
    monkeypatch.setattr(race, "SLACK", 2.0)
    monkeypatch.setattr(race, "_ranked", lambda racing, k: (settled.append(len(racing)), ranked(racing, k))[1])
    scores, trials = np.repeat([2.0, 0.0], 4), 800
    wins = np.bincount([exponential_race(scores, SYSTEM, law=LAWS[noise]) for _ in range(trials)], minlength=8)
    assert len(settled) > 0.9 * trials
    assert surprise(wins, NoisyMax(1, 1, monotone=True, noise=noise).probabilities(scores)) > FALSE_ALARM  # type: ignore[arg-type]
    wrong = NoisyMax(1, 1 / 3, monotone=True, noise=noise).probabilities(scores)  # type: ignore[arg-type]
    assert surprise(wins, wrong) < FALSE_ALARM


@pytest.mark.usefixtures("short_blocks")
def test_exactly_settled_races_have_the_winner_of_the_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.linspace(0, 3, 50)
    floats = [noisy_top_k(scores, 3, SeededSource(seed)) for seed in range(20)]
    monkeypatch.setattr(race, "SLACK", 1.0)
    assert floats == [noisy_top_k(scores, 3, SeededSource(seed)) for seed in range(20)]


@pytest.mark.usefixtures("short_blocks")
def test_counts_weigh_in_a_filtered_race() -> None:
    counts = np.array([1] * 30 + [2**60] + [1] * 30)
    assert {exponential_race(np.zeros(61), SYSTEM, counts=counts) for _ in range(50)} == {30}


def test_a_long_race_takes_the_same_words_whatever_the_scores() -> None:
    assert {_words_used(scores) for scores in shapes().values()} == {SIZE + 128}


def _words_used(scores: np.ndarray) -> int:
    class Counting(SeededSource):
        used = 0

        def words(self, count: int) -> np.ndarray:
            self.used += count
            return super().words(count)

    source = Counting(3)
    exponential_race(scores, source)
    return source.used


@pytest.mark.parametrize("law", LAWS.values(), ids=label)
def test_low_scores_of_a_block_are_screened_before_their_keys_are_computed(
    law: Gumbel | Exponential, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = np.where(np.arange(200_000) % 200 == 7, 1000.0, 0.0)
    evaluated: list[int] = []
    keys = race._keys
    monkeypatch.setattr(race, "_keys", lambda words, *given: (evaluated.append(words.size), keys(words, *given))[1])
    noisy_top_k(scores, 10, SYSTEM, Fraction(1, 2), law=law)
    assert sum(evaluated) < 3000


def test_the_screen_keeps_high_scores_and_unusual_words() -> None:
    usual, unusual = 1 << 62, int(math.exp(-14.0) * 2.0**63)
    words = np.array([usual, usual, unusual], dtype=np.uint64)
    assert race._possible(words, np.array([-20.0, -13.0, -20.0]), 0.0, Gumbel()).tolist() == [False, True, True]


@each("law", LAWS.values())
@each("word", [1 << 24, (1 << 30) + 12345, (1 << 44) - 1, 1 << 44, 1 << 62])
@each("fixed", [0.0, 63.0, 65.0, 1e5 / 3, 1e17, -63.0])
def test_the_bounds_of_a_key_hold_for_every_number_the_word_begins(
    law: Gumbel | Exponential, word: int, fixed: float
) -> None:
    [upper], [lower] = race._keys(np.array([word], dtype=np.uint64), np.array([fixed]), law)
    with mp.workprec(200):
        for value in (word, word + 1):
            u = mp.mpf(value) / 2**63
            z = -mp.log(-mp.log1p(-u)) if isinstance(law, Gumbel) else -mp.log(u)
            assert lower - race.SLACK <= fixed + z <= upper + race.SLACK
    assert upper - lower <= 2.0**-18 + abs(fixed) * 2.0**-46


def test_scores_far_ahead_are_ordered_without_exact_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "_ranked", lambda *_: pytest.fail("the floats say in which order they are"))
    scores = np.zeros(5000)
    scores[[7, 4000, 300]] = 1e12, 3e6, 900.0
    assert noisy_top_k(scores, 3, SeededSource(3)) == [7, 4000, 300]


def test_scores_that_overflow_are_ordered_exactly() -> None:
    scores = np.zeros(5000)
    scores[[7, 4000]] = 1.5e308, 1.7e308
    assert noisy_top_k(scores, 3, SeededSource(3), Fraction(4))[:2] == [4000, 7]
