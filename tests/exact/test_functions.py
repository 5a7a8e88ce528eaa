"""Every enclosure contains the truth, as mpmath has it, and is a few units wide."""

from __future__ import annotations

import decimal
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.exact import (
    divide,
    exp,
    exp_neg,
    gumbel_tail,
    heavy_tail,
    log,
    normal_tail,
    pi,
    power_neg,
    square_root,
)
from support import real

BITS = (1, 8, 63, 64, 127, 191, 400, 1000)
GAMMAS = tuple(Fraction(g) for g in ("3/2", "2", "37/10", "4"))


def rationals(seed: int, count: int, low: int, high: int) -> Iterator[Fraction]:
    """Positive rationals of every size from 2^low to 2^high, with short, float and very long denominators."""
    rng = random.Random(seed)
    for i in range(count):
        size = Fraction(2) ** rng.randint(low, high)
        kind = i % 3
        if kind == 0:
            yield size * Fraction(rng.randint(1, 40), rng.randint(1, 40))
        elif kind == 1:
            yield Fraction(float(size) * rng.random() + 2.0**-80)
        else:
            yield size * Fraction(rng.getrandbits(300) + 1, 2**300)


def check(enclosure: tuple[int, int], truth: Any, bits: int, width: int) -> None:
    low, high = enclosure
    assert isinstance(low, int)
    assert isinstance(high, int)
    scaled = truth * mp.mpf(2) ** bits
    assert low <= scaled <= high
    assert high - low <= width


@pytest.fixture(autouse=True)
def precise() -> Iterator[None]:
    with mp.workprec(2600):
        yield


@pytest.mark.parametrize("bits", BITS)
def test_exp_neg(bits: int) -> None:
    for x in rationals(bits, 60, -70, 8):
        check(exp_neg(x, bits), mp.exp(-real(x)), bits, 5)


@pytest.mark.parametrize("bits", BITS)
def test_exp(bits: int) -> None:
    for x in rationals(bits, 40, -70, 8):
        check(exp(x, bits), mp.exp(real(x)), bits, 5)
        check(exp(-x, bits), mp.exp(-real(x)), bits, 5)


@pytest.mark.parametrize("bits", BITS)
def test_log(bits: int) -> None:
    for x in rationals(bits, 60, -900, 900):
        check(log(x, bits), mp.log(real(x)), bits, 5)


@pytest.mark.parametrize("bits", BITS)
def test_log_next_to_one(bits: int) -> None:
    for power in (1, 20, 64, 500, 1500):
        for x in (1 + Fraction(1, 2**power), 1 - Fraction(1, 2**power)):
            check(log(x, bits), mp.log(real(x)), bits, 5)


@pytest.mark.parametrize("bits", BITS)
def test_square_root(bits: int) -> None:
    for x in [Fraction(0), Fraction(1), Fraction(4), *rationals(bits, 60, -200, 200)]:
        check(square_root(x, bits), mp.sqrt(real(x)), bits, 1)


@pytest.mark.parametrize("bits", [*BITS, 2500])
def test_pi(bits: int) -> None:
    with mp.workprec(3000):
        check(pi(bits), mp.pi(), bits, 3)


@pytest.mark.parametrize("bits", BITS)
def test_normal_tail(bits: int) -> None:
    for z in rationals(bits, 45, -70, 4):
        check(normal_tail(z, bits), mp.erfc(real(z) / mp.sqrt(2)), bits, 4)


@pytest.mark.parametrize("bits", BITS)
def test_power_neg(bits: int) -> None:
    for i, x in enumerate(rationals(bits, 45, -60, 60)):
        base, exponent = 1 + x, Fraction(i, 1 + i % 7)
        check(power_neg(base, exponent, bits), real(base) ** -real(exponent), bits, 6)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_heavy_tail(gamma: Fraction) -> None:
    # oracle: the incomplete beta function, not the hypergeometric series that the code sums
    a, b = 1 / real(gamma), 1 - 1 / real(gamma)
    for bits in (8, 63, 127, 300):
        with mp.workprec(bits + 300):
            for z in [Fraction(1), *rationals(bits, 24, -40, 40)]:
                power = real(z) ** real(gamma)
                if power > 1e8:
                    truth = mp.betainc(b, a, 0, 1 / (1 + power), regularized=True)
                else:
                    truth = 1 - mp.betainc(a, b, 0, power / (1 + power), regularized=True)
                check(heavy_tail(z, gamma, bits), truth, bits, 6)


@pytest.mark.parametrize("bits", BITS)
def test_gumbel_tail(bits: int) -> None:
    for z in rationals(bits, 24, -40, 8):
        for signed in (z, -z):
            check(gumbel_tail(signed, bits), -mp.expm1(-mp.exp(-real(signed))), bits, 6)


@pytest.mark.parametrize(
    ("function", "at_zero"),
    [(exp_neg, 1), (exp, 1), (normal_tail, 1), (lambda z, bits: heavy_tail(z, Fraction(2), bits), 1)],
)
def test_zero_is_exact(function: Callable[[Fraction, int], tuple[int, int]], at_zero: int) -> None:
    assert function(Fraction(0), 77) == (at_zero << 77, at_zero << 77)


def test_far_arguments_stay_cheap_and_true() -> None:
    far = Fraction(10) ** 30
    for function in (exp_neg, normal_tail, gumbel_tail):
        low, high = function(far, 63)
        assert low == 0
        assert 0 < high <= 5
    assert gumbel_tail(-far, 63) == (2**63 - 1, 2**63)
    low, high = heavy_tail(far, Fraction(2), 63)
    assert low == 0
    assert 0 < high <= 5


@given(
    st.integers(0, 2**80),
    st.integers(0, 100),
    st.integers(1, 2**80),
    st.integers(0, 100),
    st.integers(0, 200),
    st.data(),
)
@settings(max_examples=200)
def test_divide(n: int, wide: int, d: int, broad: int, bits: int, data: st.DataObject) -> None:
    low, high = divide((n, n + wide), (d, d + broad), bits)
    top, bottom = data.draw(st.integers(n, n + wide)), data.draw(st.integers(d, d + broad))
    assert low <= Fraction(top << bits, bottom) <= high
    assert Fraction(n << bits, d + broad) - low < 1  # no looser than whole numbers force it to be
    assert high - Fraction(n + wide << bits, d) < 1


@given(st.fractions(0, 200), st.integers(1, 300), st.integers(1, 300))
@settings(max_examples=150)
def test_more_bits_refine_and_never_contradict(x: Fraction, bits: int, more: int) -> None:
    for function in (exp_neg, normal_tail, gumbel_tail):
        low, high = function(x, bits)
        finer_low, finer_high = function(x, bits + more)
        assert low << more <= finer_high
        assert finer_low <= high << more


@pytest.mark.parametrize("function", [exp_neg, log, normal_tail, gumbel_tail])
def test_the_callers_decimal_context_does_not_matter(function: Callable[[Fraction, int], tuple[int, int]]) -> None:
    expected = function(Fraction(7, 3), 200)
    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_UP, traps=[decimal.Inexact])):
        assert function(Fraction(7, 3), 200) == expected
