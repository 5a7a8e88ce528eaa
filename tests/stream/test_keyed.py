"""Noise as a function of a key: the law, the same numbers whatever the platform's floats, and no two alike."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dither import InvalidArgument, WrongType
from dither.randomness import Exponential, Normal, SeededSource
from dither.stream.keyed import KeyedNoise, check_key, new_key
from support import refuses

KEY = bytes(range(32))
LAPLACE = Exponential(symmetric=True)


class Vague:
    """A law whose floats decide next to nothing."""

    def __init__(self, law, error):
        self.law, self.error = law, error
        self.symmetric, self.high = law.symmetric, law.high

    def quantile(self, u):
        self.law.quantile(u)

    def quantile_one(self, u):
        return self.law.quantile_one(u)

    def tail(self, z: Fraction, bits: int):
        return self.law.tail(z, bits)


@pytest.mark.parametrize("law", [Normal(), LAPLACE], ids=["normal", "laplace"])
def test_exact_arithmetic_and_floats_draw_the_same(law):
    """Were the float quantile much worse, exact arithmetic would decide more draws, and none would change."""
    usual = KeyedNoise(KEY).draw(law, 50.0, 1, 30, 7)
    assert (KeyedNoise(KEY).draw(Vague(law, 0.009), 50.0, 1, 30, 7) == usual).all()
    assert (KeyedNoise(KEY).draw(Vague(law, 1.0), 50.0, 1, 30, 7) == usual).all(), "all by exact arithmetic"


def test_known_numbers():
    """The construction must never change: series that run depend on it."""
    drawn = KeyedNoise(KEY).draw(Normal(), 1000.0, 1, 2, 3).tolist()
    assert drawn == [[-403, -1057, -1153], [-391, 103, 1039]]


def test_any_part_can_be_drawn_by_itself():
    noise = KeyedNoise(KEY)
    everything = noise.draw(Normal(), 300.0, 1, 40, 9)
    assert (noise.draw(Normal(), 300.0, 17, 3, 4) == everything[16:19, :4]).all()
    assert (KeyedNoise(KEY).draw(Normal(), 300.0, 40, 1, 9) == everything[39:]).all()
    assert not (KeyedNoise(bytes(32)).draw(Normal(), 300.0, 1, 40, 9) == everything).all()


@pytest.mark.parametrize(("law", "cdf"), [(Normal(), scipy_stats.norm.cdf), (LAPLACE, scipy_stats.laplace.cdf)])
def test_the_law_and_its_scale(law, cdf):
    """Chi-square over cells, at the right scale and at two wrong ones."""
    scale, count = 100.0, 100_000
    drawn = KeyedNoise(new_key(SeededSource(5))).draw(law, scale, 1, 100, count // 100).ravel()
    edges = np.linspace(-3, 3, 41)

    def p_value(factor: float) -> float:
        middle = np.diff(cdf(np.round(edges * scale + 0.5) / (scale * factor) - 0.5 / (scale * factor)))
        expected = np.concatenate([[(1 - middle.sum()) / 1], middle]) * count
        inside = np.histogram(drawn, np.round(edges * scale + 0.5) - 0.5)[0]
        observed = np.concatenate([[count - inside.sum()], inside])
        return float(scipy_stats.chisquare(observed, expected).pvalue)

    assert p_value(1.0) > 1e-9
    assert p_value(0.9) < 1e-9
    assert p_value(1.1) < 1e-9


def test_words_of_steps_and_lanes_are_distinct():
    words = KeyedNoise(KEY).words(1, 200, 50)
    assert np.unique(words).size == words.size


def test_keys():
    assert new_key() != new_key()
    assert new_key(SeededSource(1)) == new_key(SeededSource(1))
    with refuses(WrongType, "key", hiding=["secret words"]):
        check_key("secret words")
    with refuses(InvalidArgument, "key", hiding=["secret words"]):
        check_key(b"secret words")
