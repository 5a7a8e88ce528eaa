from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import DitherError
from dither.accounting import gaussian_delta, gaussian_epsilon, gaussian_ratio
from support import each, refuses

EPSILONS = [0, 1e-9, 0.1, 1, 10, 100, 400, 1000]
RATIOS = [0.01, 0.05, 0.3, 1, 3, 30, 1e4, 1e9, 1e12]
INVERSES = [(e, d) for e in (1e-3, 0.1, 1, 10, 100) for d in (1e-100, 1e-20, 1e-6, 0.01, 0.5, 0.99)]


def exact(number: Any) -> Any:
    return mp.mpf(Fraction(number).numerator) / Fraction(number).denominator


def truth(epsilon: Any, r: Any) -> Any:
    """Balle and Wang's formula at a precision at which its terms cannot cancel."""
    e, ratio = exact(epsilon), exact(r)
    with mp.workdps(60):
        if 1 / (2 * ratio) - e * ratio < -60:  # below 1e-700: an upper bound of the truth will do
            return mp.exp(-((1 / (2 * ratio) - e * ratio) ** 2) / 2)
        tail = int(((1 / (2 * ratio) + e * ratio) ** 2) / 2 / mp.log(10)) if ratio > 1e-2 else 0
    with mp.workdps(60 + 2 * max(0, int(mp.log10(ratio))) + min(tail, 4000)):
        near, far = 1 / (2 * ratio) - e * ratio, -1 / (2 * ratio) - e * ratio
        return +(mp.erfc(-near / mp.sqrt(2)) - mp.exp(e) * mp.erfc(-far / mp.sqrt(2))) / 2


@each("r", RATIOS)
@each("epsilon", EPSILONS)
def test_delta_is_an_upper_bound_and_tight(epsilon: float, r: float) -> None:
    result, true = gaussian_delta(Fraction(epsilon), Fraction(r)), truth(epsilon, r)
    assert mp.mpf(result) >= true
    if epsilon <= 400 and true > mp.mpf(10) ** -300:
        assert mp.mpf(result) <= true * (1 + mp.mpf(10) ** -9)


@pytest.mark.parametrize("exponent", [3, 30, 100, 200, 299])
@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_delta_is_tight_down_to_the_smallest_floats(epsilon: float, exponent: int) -> None:
    r = Fraction(math.sqrt(2 * exponent * math.log(10)) / epsilon)
    true = truth(epsilon, r)
    assert true <= mp.mpf(gaussian_delta(Fraction(epsilon), r)) <= true * (1 + mp.mpf(10) ** -9)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 10), st.floats(0.05, 3))
def test_delta_is_never_below_the_truth(epsilon: float, r: float) -> None:
    result, true = gaussian_delta(Fraction(epsilon), Fraction(r)), truth(epsilon, r)
    assert true <= mp.mpf(result) <= true * (1 + mp.mpf(10) ** -9) + mp.mpf(10) ** -300


@each(("epsilon", "delta"), INVERSES)
def test_ratio_is_enough_and_no_larger_than_it_must_be(epsilon: float, delta: float) -> None:
    r = gaussian_ratio(Fraction(epsilon), Fraction(delta))
    assert truth(epsilon, r) <= exact(delta)
    assert truth(epsilon, r * (1 - Fraction(1, 10**9))) > exact(delta)


@each(("epsilon", "delta"), INVERSES)
def test_epsilon_is_enough_and_no_larger_than_it_must_be(epsilon: float, delta: float) -> None:
    r = gaussian_ratio(Fraction(epsilon), Fraction(delta)) * Fraction(11, 10)
    result = gaussian_epsilon(r, Fraction(delta))
    assert truth(result, r) <= exact(delta)
    assert result == 0 or truth(result * (1 - Fraction(1, 10**9)), r) > exact(delta)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-9, 1e-300), (1e-3, 1e-300), (1, 1e-300), (100, 1e-300), (1e-30, 1e-30)]
)
def test_ratio_at_the_edge_of_what_floats_hold(epsilon: float, delta: float) -> None:
    r = gaussian_ratio(Fraction(epsilon), Fraction(delta))
    assert truth(epsilon, r) <= exact(delta)
    assert truth(epsilon, r * (1 - Fraction(1, 10**9))) > exact(delta)


@pytest.mark.parametrize("epsilon", [401, 1000, 10**6])
@pytest.mark.parametrize("delta", [1e-20, 1e-6, 0.5])
def test_ratio_beyond_400_is_enough_and_within_a_percent(epsilon: int, delta: float) -> None:
    r = gaussian_ratio(Fraction(epsilon), Fraction(delta))
    with mp.workdps(60):
        ratio, e = exact(r), mp.mpf(epsilon)

        def bound(x: Any) -> Any:
            near, far = 1 / (2 * x) - e * x, 1 / (2 * x) + e * x
            return mp.ncdf(near) - mp.exp(e - far * far / 2) * mp.exp(far * far / 2) * mp.ncdf(-far)

        assert bound(ratio) <= exact(delta)
        assert bound(ratio * mp.mpf("0.99")) > exact(delta)


def test_no_noise_needed_for_a_delta_that_covers_total_variation() -> None:
    assert gaussian_epsilon(Fraction(100), Fraction(1, 10)) == 0
    assert truth(0, 100) < 0.1


def test_the_classical_formula_is_not_private_at_ten() -> None:
    sigma = math.sqrt(2 * math.log(1.25 / 1e-5)) / 10
    assert gaussian_delta(Fraction(10), Fraction(sigma)) == pytest.approx(2.3e-5, rel=0.02)


def test_the_lecture_s_mixed_noise_has_delta_0396_at_epsilon_one() -> None:
    assert gaussian_delta(Fraction(1), Fraction(math.sqrt(2))) == pytest.approx(0.0396, abs=5e-5)


@pytest.mark.parametrize("delta", [Fraction(1, 10**400), Fraction(5e-324)])
def test_a_delta_that_no_float_can_prove_is_refused_not_searched_for_ever(delta: Fraction) -> None:
    for act in (lambda: gaussian_ratio(Fraction(1), delta), lambda: gaussian_epsilon(Fraction(1), delta)):
        with refuses(ValueError) as refused:
            act()
        assert isinstance(refused.value, DitherError)


@each("r", [1.41, 0.1, 0.3, 2.0, 3])
@each("epsilon", [0, 1, 0.1, 0.3])
def test_floats_are_read_against_the_claim(epsilon: float, r: float) -> None:
    result = gaussian_delta(epsilon, r)
    meant, readings = Fraction(repr(epsilon)), (Fraction(repr(r)), Fraction(r))
    assert result == max(gaussian_delta(meant, reading) for reading in readings)
    with mp.workdps(40):
        true = max(truth(meant, reading) for reading in readings)
        assert true <= mp.mpf(result) <= true * (1 + mp.mpf(10) ** -12)
    assert gaussian_epsilon(r, 1e-6) >= max(gaussian_epsilon(reading, Fraction(1, 10**6)) for reading in readings)


def test_budgets_as_floats_are_the_decimals_they_print_as() -> None:
    assert gaussian_ratio(0.1, 1e-6) == gaussian_ratio(Fraction(1, 10), Fraction(1, 10**6))
    assert gaussian_delta(1, 1.41) == pytest.approx(0.04, abs=0.001)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: gaussian_delta(1, 0), "r"),
        (lambda: gaussian_delta(1, -1.5), "r"),
        (lambda: gaussian_delta(-0.1, 1), "epsilon"),
        (lambda: gaussian_delta(1, math.nan), "r"),
        (lambda: gaussian_delta(1, "2"), "r"),
        (lambda: gaussian_ratio(1, 0), "delta"),
        (lambda: gaussian_epsilon(math.inf, 1e-6), "r"),
    ],
)
def test_what_is_no_ratio_or_budget_is_refused_by_name(call: Any, name: str) -> None:
    with pytest.raises(DitherError, match=name):
        call()
