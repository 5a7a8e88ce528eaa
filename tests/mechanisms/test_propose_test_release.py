"""Propose-test-release: the inequality itself, over all neighboring distances, from the law of the noisy distance."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from divergence import budget, discrete_laplace, hockey_stick_of_densities, number, refusal

from dither import ApproxDP, Laplace, ProposeTestRelease, sensitivity
from dither.randomness import SeededSource
from dither.randomness.source import is_seeded
from support import FALSE_ALARM, ScriptedSource, assert_distribution, surprise

CASES = [(0.1, 1e-3), (1, 1e-6), (1, 0.3), (4, 1e-9), (30, 1e-12)]


@cache
def answered(m: ProposeTestRelease, distance: int) -> Any:
    """P(distance + noise > threshold), summed from the law of the noise that is really drawn."""
    pmf = noise(Laplace(1, m.epsilon / 2).scale)
    extent = max(pmf)
    if m.threshold - distance >= extent:
        return mp.mpf(0)
    return mp.fsum(pmf[k] for k in range(max(m.threshold - distance + 1, -extent), extent + 1))


@cache
def noise(scale: Any) -> Any:
    return discrete_laplace(scale, 0, int(110 * scale) + 5)


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_the_probability_is_that_of_the_law(epsilon: float, delta: float) -> None:
    m = ProposeTestRelease(1, epsilon, delta)
    for distance in {0, 1, 2, m.threshold - 1, m.threshold, m.threshold + 1, m.threshold + 7, 3 * m.threshold}:
        assert m.probability(distance) == pytest.approx(float(answered(m, distance)), rel=1e-9, abs=1e-40)
    assert m.probability(10**6) == 1.0
    assert math.exp(-(m.threshold - 1) * epsilon / 2) > delta >= math.exp(-m.threshold * epsilon / 2) * (1 - 1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_the_inequality_over_all_neighboring_distances(epsilon: float, delta: float) -> None:
    m = ProposeTestRelease(1, epsilon, delta)
    last = 2 * m.threshold + 20 if m.threshold < 50 else m.threshold + 25
    probabilities = {d: answered(m, d) for d in range(last + 1)}
    most, grow = budget(delta), mp.exp(budget(epsilon))
    tiny = mp.mpf(10) ** -13  # what rounding the scale of the noise up leaves to the threshold, relatively

    # local sensitivity above the bound at both: f moves anywhere, the answer gives all away
    assert probabilities[0] <= most
    # otherwise one of the two has a local sensitivity within the bound, so f moves by at most 1
    for here, there in itertools.chain(((d, d) for d in range(1, last)), ((d, d + 1) for d in range(last))):
        for d, e in ((here, there), (there, here)):
            none = max(0, (1 - probabilities[d]) - grow * (1 - probabilities[e]))
            # numeric events: the density ratio of the answers is at most e^(epsilon/2)
            number_part = max(0, probabilities[d] * mp.exp(budget(epsilon) / 2) - grow * probabilities[e])
            assert none < mp.mpf(10) ** -35, (d, e)
            assert number_part <= tiny * probabilities[d], (d, e)


@pytest.mark.slow
def test_the_answers_themselves() -> None:
    m = ProposeTestRelease(0.5, 2, 1e-6)
    assert m.scale == 0.5

    def density(center: float) -> Any:
        return lambda z: mp.exp(-abs(z - number(center)) / number(m.scale)) / (2 * number(m.scale))

    assert hockey_stick_of_densities(density(0), density(0.5), [-40, 0, 0.5, 40], 1) < mp.mpf(10) ** -25
    source = SeededSource(5)
    far = [m.release(3.0, 10**6, source=source) for _ in range(20000)]
    sample = (np.array(far, dtype=float) - 3.0) * 64

    def cdf_for(scale: float) -> Any:
        return lambda z: np.where(z < 0, 0.5 * np.exp(-np.abs(z) / scale), 1 - 0.5 * np.exp(-np.abs(z) / scale))

    assert_distribution(sample, cdf_for, m.scale * 64)


@pytest.mark.slow
def test_frequencies_follow_the_probability() -> None:
    m = ProposeTestRelease(1, 1, 1e-3)
    source = SeededSource(6)
    for distance in (m.threshold - 1, m.threshold, m.threshold + 1, m.threshold + 3):
        answers = [m.release(0.0, distance, source=source) for _ in range(2000)]
        given = sum(a is not None for a in answers)
        p = m.probability(distance)
        assert surprise(np.array([2000 - given, given]), np.array([1 - p, p])) > FALSE_ALARM
        off = min(p * 1.4, 0.999) if p < 0.5 else 1 - 1.4 * (1 - p)
        assert surprise(np.array([2000 - given, given]), np.array([1 - off, off])) < 1e-4


def test_with_the_distance_of_a_median() -> None:
    """Both sides at once: the pair on which the local sensitivity leaks, and a table that is answered."""
    m = ProposeTestRelease(bound=1.0, epsilon=1, delta=1e-6)
    for x in ([0.0] * 12 + [1000.0] * 9, [0.0] * 11 + [1000.0] * 10):
        distance = sensitivity.distance_to_exceed(x, 11, (0, 1000), m.bound)
        assert distance <= 1
        assert m.probability(distance) <= 2e-6
    ages = np.random.default_rng(2).integers(0, 100, 20001)
    distance = sensitivity.distance_to_exceed(ages, 10001, (0, 120), m.bound)
    assert distance > 100  # steps of exactly 1 do not exceed 1
    answer = m.release(float(np.median(ages)), distance)
    assert answer is not None
    assert abs(answer - np.median(ages)) < 60


def test_contract() -> None:
    m = ProposeTestRelease(0.1, 1, 1e-6)
    assert m.guarantee == ApproxDP(1, 1e-6)
    assert m.scale == pytest.approx(0.2)
    assert is_seeded(m.release(5.0, 1000, source=SeededSource(1)))
    assert isinstance(m.release(5.0, 1000), float)
    assert m.release(5.0, 0) is None
    for bound, epsilon, delta in ((0, 1, 0.1), (-1, 1, 0.1), (1, 0, 0.1), (1, 1, 0), (1, 1, 1), (1, 1, math.nan)):
        refusal(lambda b=bound, e=epsilon, d=delta: ProposeTestRelease(b, e, d))
    for distance in (-1, 1.5, None, "1", True):
        refusal(lambda distance=distance: m.release(5.0, distance))
        refusal(lambda distance=distance: m.probability(distance))
    refusal(lambda: m.release(math.nan, 1000))
    refusal(lambda: m.release(math.nan, 0))  # whether or not it would have been answered


def test_as_many_words_are_drawn_whether_or_not_it_is_answered() -> None:
    m = ProposeTestRelease(0.1, 1, 1e-6)
    used = []
    for distance in (0, 1000):
        source = ScriptedSource(seed=3)
        m.release(5.0, distance, source=source)
        used.append(source.used)
    assert used[0] == used[1]
