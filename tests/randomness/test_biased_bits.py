"""Packed bits of one exact probability: the law, the remainder of the table, and the exact fallback."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from dither.errors import InvalidArgument
from dither.exact import exp_neg
from dither.randomness import SYSTEM
from dither.randomness.biased_bits import BiasedBits

ALPHA = 1e-9


def rational(p: Fraction):
    return lambda bits: ((p.numerator << bits) // p.denominator, -(-(p.numerator << bits) // p.denominator))


def exponential(rate: Fraction):
    return lambda bits: exp_neg(rate, bits)


def p_value(sample: np.ndarray, p: float) -> float:
    ones = np.bitwise_count(np.arange(256, dtype=np.uint8)).astype(float)
    expected = p**ones * (1 - p) ** (8 - ones) * sample.size
    observed = np.bincount(sample, minlength=256)
    rare = expected < 10
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        observed = np.append(observed[~rare], observed[rare].sum())
    return float(stats.chisquare(observed, expected * (sample.size / expected.sum())).pvalue)


@pytest.mark.parametrize(
    ("exact", "p"), [(exponential(Fraction(1)), math.exp(-1)), (rational(Fraction(1, 55)), 1 / 55)], ids=["1/e", "1/55"]
)
def test_the_patterns_have_their_law_and_no_other(exact, p):
    sample = BiasedBits(exact).draw(2_000_000, SYSTEM)
    assert p_value(sample, p) > ALPHA
    assert p_value(sample, 0.95 * p) < ALPHA
    assert p_value(sample, 1.05 * p) < ALPHA


def test_the_table_and_its_remainder_add_up_to_the_law_exactly():
    """For every number of ones: cells of the table plus the remainder's share are the binomial probability."""
    bits = BiasedBits(exponential(Fraction(1)))
    mp.prec = 300
    p = mp.exp(-1)
    left = 65536 - sum(cells * math.comb(8, w) for w, cells in enumerate(bits._per_pattern))
    assert 0 < left < 256
    cumulative = mpf(0)
    for w in range(8):
        cumulative += math.comb(8, w) * (p**w * (1 - p) ** (8 - w) * 65536 - bits._per_pattern[w])
        low, high = bits.remainder(w, 200)
        assert mpf(low) <= cumulative / left * mpf(2) ** 200 <= mpf(high)
        assert high - low < 1 << 40


class Words:
    """A source that returns the words it is given, then those of the system."""

    private = False

    def __init__(self, words):
        self.given = list(words)

    def word(self):
        return self.given.pop(0) if self.given else SYSTEM.word()

    def words(self, count):
        return np.array([self.word() for _ in range(count)], dtype=np.uint64)


def test_a_word_next_to_a_threshold_is_decided_exactly():
    bits = BiasedBits(exponential(Fraction(1)))
    low, high = bits.remainder(3, 64)
    first_left = bits._decided  # the first pair of bytes that the table leaves
    for word, ones in ((low - 1000, 3), (high + 1000, 4)):
        drawn = bits.draw(1, Words([first_left, word]))
        assert int(np.bitwise_count(drawn[0])) == ones


def test_a_dyadic_probability_leaves_nothing_to_the_remainder():
    half = BiasedBits(rational(Fraction(1, 2)))
    assert half._decided == 65536
    assert half.draw(0, SYSTEM).size == 0


def test_enclosures_that_do_not_close_in_are_refused():
    with pytest.raises(InvalidArgument, match="close in"):
        BiasedBits(lambda bits: ((1 << bits) // 3, (1 << bits) // 2))
