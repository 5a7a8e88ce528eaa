"""Readings of numbers, and the outward-rounding way back to floats."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import InvalidArgument, WrongType
from dither.exact import decimal, down, exactly, outward_max, up
from support import each, refuses

LARGEST = sys.float_info.max
SMALLEST = 5e-324

rationals = st.one_of(
    st.fractions(),
    st.builds(lambda n, e: Fraction(n) * Fraction(2) ** e, st.integers(-(2**70), 2**70), st.integers(-1200, 1000)),
    st.floats(allow_nan=False, allow_infinity=False).map(Fraction),
)


@given(rationals)
def test_up_is_the_smallest_float_from_value_on(value: Fraction) -> None:
    result = up(value)
    assert result == math.inf or Fraction(result) >= value
    if result != -LARGEST:
        assert Fraction(math.nextafter(result, -math.inf)) < value


@given(rationals)
def test_down_is_the_largest_float_up_to_value(value: Fraction) -> None:
    result = down(value)
    assert result == -math.inf or Fraction(result) <= value
    if result != LARGEST:
        assert Fraction(math.nextafter(result, math.inf)) > value


@pytest.mark.parametrize(
    ("value", "above", "below"),
    [
        (Fraction(10) ** 400, math.inf, LARGEST),
        (-(Fraction(10) ** 400), -LARGEST, -math.inf),
        (Fraction(LARGEST) + 1, math.inf, LARGEST),
        (-Fraction(LARGEST) - 1, -LARGEST, -math.inf),
        (Fraction(1, 10**400), SMALLEST, 0.0),
        (-Fraction(1, 10**400), 0.0, -SMALLEST),
        (Fraction(0), 0.0, 0.0),
        (Fraction(LARGEST), LARGEST, LARGEST),
        (Fraction(SMALLEST), SMALLEST, SMALLEST),
        (1 + Fraction(1, 2**60), 1 + 2.0**-52, 1.0),
    ],
)
def test_up_and_down_at_the_ends_of_the_floats(value: Fraction, above: float, below: float) -> None:
    assert up(value) == above
    assert down(value) == below


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back_unchanged(x: float) -> None:
    assert up(exactly(x)) == down(exactly(x)) == x
    assert float(decimal(x)) == x


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_decimal_reads_what_is_printed_and_exactly_what_is_stored(x: float) -> None:
    assert decimal(x) == Fraction(Decimal(repr(x)))
    assert exactly(x) == Fraction(*x.as_integer_ratio())
    assert outward_max(x) == max(decimal(x), exactly(x))


def test_a_tenth_is_a_tenth_only_as_a_budget() -> None:
    assert decimal(0.1) == Fraction(1, 10) != exactly(0.1)
    assert sum(decimal(0.1) for _ in range(10)) == 1
    assert outward_max(0.1) == exactly(0.1) > Fraction(1, 10)
    assert outward_max(0.3) == Fraction(3, 10) > exactly(0.3)  # here the stored number is the smaller one


@each("read", [decimal, exactly, outward_max])
@each(
    ("value", "expected"),
    [
        (3, 3),
        (10**400, 10**400),
        (Fraction(1, 3), Fraction(1, 3)),
        (np.int64(-7), -7),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.float64(0.5), Fraction(1, 2)),
        (np.float32(0.25), Fraction(1, 4)),
        (Decimal("0.5"), Fraction(1, 2)),
    ],
)
def test_numbers_of_every_kind_are_read(read: object, value: object, expected: object) -> None:
    assert read(value) == expected  # type: ignore[operator]
    assert isinstance(read(value), Fraction)  # type: ignore[operator]


@each("read", [decimal, exactly, outward_max])
@each("junk", ["1", b"1", None, True, 1j, [1.0], {}, object(), np.array([1.0, 2.0])])
def test_what_is_not_a_number_is_refused_by_name(read: object, junk: object) -> None:
    with refuses(WrongType, "epsilon"):
        read(junk, "epsilon")  # type: ignore[operator]


@pytest.mark.parametrize("read", [decimal, exactly, outward_max])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan"), Decimal("Infinity")])
def test_nan_and_infinity_are_refused(read: object, value: object) -> None:
    with refuses(InvalidArgument, "finite"):
        read(value)  # type: ignore[operator]
