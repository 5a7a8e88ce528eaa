"""Student's law with 3 degrees of freedom, divided by sqrt(3): its tail, its guesses, its draws."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from dither.randomness import SeededSource, Student, round_nearest
from dither.randomness.lattice import draw, draw_one
from support import PRECISION, ScriptedSource, assert_distribution, nearest_integer, real, words_beside

LAW = Student()


@pytest.fixture(autouse=True)
def precise() -> Iterator[None]:
    with mp.workprec(PRECISION):
        yield


def tail(z: Any) -> Any:
    z = max(z, mp.mpf(0))
    return 1 - 2 / mp.pi * (mp.atan(z) + z / (1 + z * z))


def test_the_oracle_is_the_integral_of_the_density() -> None:
    with mp.workdps(30):
        for z in (0, 0.3, 1, 7):
            mass = mp.quad(lambda t: 4 / mp.pi / (1 + t * t) ** 2, [z, z + 2, z + 20, mp.inf])
            assert mass == pytest.approx(tail(mp.mpf(z)), rel=1e-20)
    assert float(tail(mp.mpf(2))) == pytest.approx(2 * stats.t.sf(2 * math.sqrt(3), 3), rel=1e-12)


@pytest.mark.parametrize("bits", [1, 20, 64, 200, 500])
def test_the_tail_is_enclosed_within_a_few_units(bits: int) -> None:
    rng = random.Random(bits)
    places = [
        Fraction(1, 10**9),
        Fraction(1, 3),
        Fraction(1),
        Fraction(99999, 100000),
        Fraction(10**6),
        Fraction(10**30),
    ]
    places += [Fraction(math.exp(rng.uniform(-12, 12))) for _ in range(40)]
    for z in places:
        low, high = LAW.tail(z, bits)
        assert 0 <= low <= tail(real(z)) * mp.mpf(2) ** bits <= high <= 1 << bits
        assert high - low <= 8
    assert LAW.tail(Fraction(0), bits) == LAW.tail(Fraction(-5), bits) == (1 << bits, 1 << bits)


def test_guesses_are_near_and_promise_nothing() -> None:
    us = [2.0**-63, 2.0**-40, 1e-9, 1e-6, 0.001, 0.3, 0.5, 0.9, 1 - 1e-9, 1 - 2.0**-53, 1.0]
    for u in us:
        z, error = LAW.quantile_one(u)
        assert error == math.inf
        assert float(tail(mp.mpf(z))) == pytest.approx(u, rel=2e-4, abs=1e-9 if u > 1e-7 else 0)
    result = np.array(us)
    errors = LAW.quantile(result)
    assert np.all(np.isinf(errors))
    assert result.tolist() == [LAW.quantile_one(u)[0] for u in us]


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.3, 1.0, 77.7, 2.0**30])
def test_draws_are_correctly_rounded(scale: float) -> None:
    rng = random.Random(3)
    for word in [0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, *(rng.getrandbits(64) for _ in range(25))]:
        for fraction in (0.0, 0.25, -0.5):
            source = ScriptedSource([word, 12345, 678])
            result = draw_one(LAW, scale, source, fraction)
            again = draw(LAW, scale, 1, ScriptedSource([word, 12345, 678]), fraction)
            assert (again.large.get(0, int(again.values[0]))) == result
            u, width = mp.mpf(word % (1 << 63)), 63
            for extra in (12345, 678):
                u, width = u * mp.mpf(2) ** 64 + extra, width + 64
            u = u / mp.mpf(2) ** width
            near = abs(result)
            assert result == nearest_integer(u, word >> 63 == 1, tail, Fraction(scale), Fraction(fraction), near)


def test_a_word_beside_a_boundary_is_settled_by_more_words() -> None:
    for k in (1, 2, 9):
        boundary = tail(real(Fraction(2 * k - 1, 2) / 3))
        for above in (False, True):
            source = ScriptedSource(words_beside(boundary, 63, 2, above))
            assert draw_one(LAW, 3.0, source) == (k - 1 if above else k)
            assert source.used == 3


@pytest.mark.slow
def test_releases_follow_the_law() -> None:
    source, scale = SeededSource(8), 30.0
    sample = np.array([round_nearest(0.0, LAW, scale, 1.0, source) for _ in range(3000)])

    def cdf_for(scale: float) -> Any:
        return lambda k: stats.t.cdf((k + 0.5) / scale * math.sqrt(3), 3)

    below = np.sort(sample)
    assert abs(float(np.mean(below > 0)) + float(np.mean(below == 0)) / 2 - 0.5) < 0.05
    assert_distribution(sample, cdf_for, scale, detectable=False)
    for wrong in (0.8, 1.25):
        with pytest.raises(AssertionError, match="does not follow"):
            assert_distribution(sample, cdf_for, wrong * scale, detectable=False)
