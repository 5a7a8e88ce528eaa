"""Every search ends, at the place where a monotone condition changes, and returns the side that it says."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dither.exact.search import (
    bisect_floats,
    bisect_fractions,
    bisect_integers,
    certified,
    crossing,
    largest_integer,
    minimize,
    smallest_float,
)

FLOATS = st.floats(-1e300, 1e300)
POSITIVE = st.floats(1e-150, 1e150)


@given(FLOATS, FLOATS, FLOATS)
def test_bisection_of_floats_ends_at_two_consecutive_floats_around_the_threshold(fails, holds, threshold):
    assume(fails != holds)
    low, high = sorted((fails, holds))
    threshold = min(max(threshold, low), high)
    rising = holds > fails
    calls = 0

    def condition(x: float) -> bool:
        nonlocal calls
        calls += 1
        return x >= threshold if rising else x <= threshold

    bracket = bisect_floats(condition, fails, holds)
    assert math.nextafter(bracket.fails, bracket.holds) == bracket.holds
    assert bracket.holds == holds or condition(bracket.holds)
    assert bracket.fails == fails or not condition(bracket.fails)
    assert calls < 2200


@given(FLOATS, FLOATS)
def test_a_condition_that_never_holds_returns_the_end_that_was_taken_to_hold(fails, holds):
    assume(fails != holds)
    bracket = bisect_floats(lambda _: False, fails, holds)
    assert bracket.holds == holds
    assert math.nextafter(bracket.fails, bracket.holds) == holds


@given(FLOATS, FLOATS)
def test_a_condition_that_always_holds_returns_the_end_that_was_taken_to_fail(fails, holds):
    assume(fails != holds)
    bracket = bisect_floats(lambda _: True, fails, holds)
    assert bracket.fails == fails
    assert math.nextafter(bracket.holds, bracket.fails) == fails


@pytest.mark.parametrize("geometric", [False, True])
@given(
    ends=st.lists(POSITIVE, min_size=2, max_size=2, unique=True), share=st.floats(0, 1), tolerance=st.floats(1e-12, 0.5)
)
def test_a_tolerance_ends_the_search_when_the_ends_are_that_close(geometric, ends, share, tolerance):
    low, high = sorted(ends)
    threshold = low + share * (high - low)
    bracket = bisect_floats(lambda x: x >= threshold, low, high, geometric=geometric, tolerance=tolerance)
    assert bracket.fails < bracket.holds
    assert bracket.holds - bracket.fails <= tolerance * bracket.holds
    assert bracket.fails <= threshold <= bracket.holds


@given(POSITIVE, st.integers(0, 60))
def test_no_more_than_so_many_tries(high, steps):
    tried = []
    bisect_floats(lambda x: bool(tried.append(x)), 0.0, high, geometric=True, steps=steps)
    assert len(tried) <= steps


def test_geometric_search_from_zero_goes_down_by_sixteenths_until_negligible():
    tried = []

    def always(x: float) -> bool:
        tried.append(x)
        return True

    assert bisect_floats(always, 0.0, 1.0, geometric=True, negligible=1e-6).holds == 16.0**-5
    assert tried == [16.0**-i for i in range(1, 6)]
    assert bisect_floats(lambda _: False, 0.0, 1.0, geometric=True, negligible=1e-6).holds == 1.0


@given(st.lists(POSITIVE, min_size=3, max_size=3, unique=True))
def test_the_smallest_float_is_within_a_few_floats_of_the_threshold(numbers):
    low, threshold, high = sorted(numbers)
    result = smallest_float(lambda x: x >= threshold, low, high)
    assert threshold <= result <= threshold + 4 * math.ulp(threshold)


def test_the_smallest_float_of_conditions_that_never_or_always_hold():
    assert smallest_float(lambda _: False, 1e-9, 1e6) == 1e6
    assert smallest_float(lambda _: True, 1e-9, 1e6) == pytest.approx(1e-9)


INTEGERS = st.integers(-(10**30), 10**30)


@given(INTEGERS, INTEGERS, INTEGERS)
def test_bisection_of_integers_ends_at_two_consecutive_ones(fails, holds, threshold):
    assume(fails != holds)
    low, high = min(fails, holds), max(fails, holds)
    threshold = min(max(threshold, low), high)
    rising = holds > fails

    def condition(k: int) -> bool:
        assert low < k < high
        return k >= threshold if rising else k <= threshold

    bracket = bisect_integers(condition, fails, holds)
    assert abs(bracket.fails - bracket.holds) == 1
    assert min(bracket) <= threshold <= max(bracket)
    assert bisect_integers(lambda _: False, fails, holds).holds == holds
    assert bisect_integers(lambda _: True, fails, holds).fails == fails


@given(st.integers(1, 10**60), st.integers(1, 10**60), st.integers(1, 60))
def test_bisection_of_integers_to_so_many_bits(threshold, more, bits):
    bracket = bisect_integers(lambda k: k <= threshold, threshold + more, 0, significant_bits=bits)
    assert bracket.holds <= threshold < bracket.fails
    assert bracket.fails - bracket.holds <= max(1, bracket.holds >> bits)


@given(st.fractions(), st.fractions(), st.fractions(0, 1), st.integers(0, 40))
def test_bisection_of_fractions_is_exact(fails, holds, share, steps):
    assume(fails != holds)
    threshold = fails + share * (holds - fails)
    rising = holds > fails
    bracket = bisect_fractions(lambda x: x >= threshold if rising else x <= threshold, fails, holds, steps=steps)
    assert abs(bracket.holds - bracket.fails) == abs(holds - fails) / 2**steps
    assert min(bracket) <= threshold <= max(bracket)


@given(st.fractions(0, 1), st.fractions(1, 100), st.integers(0, 60))
def test_fractions_rounded_to_floats_were_tried_as_they_are_returned(share, fails, steps):
    tried = {Fraction(0)}

    def condition(x: Fraction) -> bool:
        tried.add(x)
        return x <= share * fails

    bracket = bisect_fractions(condition, fails, Fraction(0), steps=steps, floats=True)
    assert bracket.holds in tried
    assert bracket.holds <= share * fails
    assert all(Fraction(float(x)) == x for x in tried)


@given(INTEGERS, INTEGERS)
def test_the_largest_integer_is_found_from_anywhere(last, guess):
    calls = 0

    def condition(k: int) -> bool:
        nonlocal calls
        calls += 1
        return k <= last

    assert largest_integer(condition, guess) == last
    assert calls <= 4 * (abs(last - guess) + 2).bit_length() + 4


@given(st.floats(1e-9, 1e9), st.floats(-1e-3, 1e-3))
def test_what_is_certified_satisfies_the_condition_and_is_nearly_the_smallest(threshold, error):
    exact = Fraction(threshold)
    result = certified(threshold * (1 + error), lambda x: x >= exact)
    assert exact <= result <= exact * (1 + Fraction(1, 1 << 35))


@given(st.floats(0.01, 1e6), st.floats(1e-12, 1e-3), st.sampled_from([1.0, 3.0, 0.2]))
def test_a_crossing_is_returned_from_above(root, tolerance, power):
    def excess(x: float) -> float:
        return math.copysign(abs(root - x) ** power, root - x)

    result = crossing(excess, 0.0, 1e7, tolerance)
    assert excess(result) <= 0
    assert result <= root * (1 + 2 * tolerance) + 1e-9


def test_a_crossing_of_functions_that_are_never_or_always_above_zero():
    assert crossing(lambda _: -1.0, 0.0, 5.0, 1e-9) == 0.0
    assert crossing(lambda _: 1.0, 0.0, 5.0, 1e-9) == 5.0
    assert crossing(lambda x: math.inf if x < 3 else -math.inf, 0.0, 5.0, 1e-9) == pytest.approx(3.0)


@given(st.floats(-90, 90))
def test_the_minimum_of_a_parabola(vertex):
    assert minimize(lambda x: abs(x - vertex), -100.0, 100.0, steps=200) == pytest.approx(vertex, abs=1e-9)


def test_the_minimum_of_a_monotone_function_is_at_an_end():
    assert minimize(lambda x: x, 0.0, 1.0, steps=100) == pytest.approx(0.0, abs=1e-12)
    assert minimize(lambda x: -x, 0.0, 1.0, steps=100) == pytest.approx(1.0)
