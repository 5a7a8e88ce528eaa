"""Ranges hold what they say: of every value of two ranges, the rounded result of every operation is in its range."""

from __future__ import annotations

import operator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import InvalidArgument
from dither.tables.compile.expressions import bounded
from dither.tables.query.operations.base import LEAST, MOST, Range
from support import refuses

numbers = st.floats(-1e40, 1e40, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-40)


@st.composite
def valued(draw):
    """A range with one of its values, by operations on constants and bounded columns."""
    leaf = draw(st.booleans())
    if leaf:
        low, high = sorted((draw(numbers), draw(numbers)))
        scale = 2.0 ** draw(st.integers(-10, 10))
        low, high = (round(end * scale) / scale for end in (low, high))
        value = round(min(max(draw(st.floats(low, high)), low), high) * scale) / scale
        return Range.of(low, high, 1 / scale), min(max(value, low), high)
    value = draw(numbers)
    return Range.constant(value), value


def inside(value: float, known: Range) -> bool:
    return (
        known.low <= value <= known.high
        and (value == 0 or abs(value) >= known.least)
        and Fraction(value) % Fraction(known.quantum) == 0
    )


OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@given(valued(), st.lists(st.tuples(st.sampled_from("+-*/nar"), valued()), max_size=6))
def test_results_are_in_their_ranges(first, steps):
    known, value = first
    assert inside(value, known)
    for op, (other, by) in steps:
        if op == "n":
            known, value = -known, -value
        elif op == "a":
            known, value = abs(known), abs(value)
        elif op == "r":
            known = known | other
        else:
            if op == "/" and by == 0:
                continue
            wider = OPERATORS[op](known, other)
            try:
                known = wider.checked()
            except InvalidArgument:
                return
            value = OPERATORS[op](value, by)
        assert inside(value, known), (op, by)


def test_a_long_sum_of_grid_values_is_as_exact_as_one_of_them():
    one = Range.of(-1.0, 1.0, 2.0**-23)
    total = one
    for _ in range(99):
        total = (total + one).checked()
    assert (total.low, total.high, total.quantum) == (-100.0, 100.0, 2.0**-23)


@pytest.mark.parametrize("bounds", [(0, 10**400), (0.5, 1e308), (-1e308, 1e308), (0, 5e-324), (10**30, 10**30 + 1)])
def test_bounds_that_no_double_can_bear_are_refused(bounds):
    with refuses(InvalidArgument, "bounds"):
        bounded(*bounds)


def test_what_could_overflow_or_vanish_is_refused():
    for known in (Range.constant(MOST) + Range.constant(MOST), Range.constant(1e-150) * Range.constant(1e-150)):
        with refuses(InvalidArgument, "1e-250 and 1e150"):
            known.checked()
    assert (Range.constant(1e-150) * Range.constant(1e-99)).checked().least >= LEAST
    with refuses(InvalidArgument, "larger ones"):
        Range.whole(0, 10**400)
