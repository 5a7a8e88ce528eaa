from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither import DitherError, arguments
from support import each, label, refuses

NOT_NUMBERS = ["1", None, True, 1 + 0j, object(), [1], b"1", math.nan, math.inf, -math.inf, Decimal("nan")]


def refused(check, *args: object) -> None:
    with refuses((ValueError, TypeError)) as refusal:
        check(*args)
    assert isinstance(refusal.value, DitherError)


@each("junk", [0, -1, -0.0, 1e7, 1_000_001, *NOT_NUMBERS])
def test_epsilon_refuses(junk: object) -> None:
    refused(arguments.epsilon, junk)


@each("junk", [0, 1, -1, 2, 1.0, 0.0, *NOT_NUMBERS])
def test_delta_refuses(junk: object) -> None:
    refused(arguments.delta, junk)


@each("junk", [0, -1, 1e121, 10**400, -0.0, 5e-324, *NOT_NUMBERS])
def test_sensitivity_refuses(junk: object) -> None:
    refused(arguments.sensitivity, junk)


@pytest.mark.parametrize("junk", [0, 1, -1, 95, *NOT_NUMBERS], ids=label)
def test_confidence_refuses(junk: object) -> None:
    refused(arguments.confidence, junk)


@pytest.mark.parametrize("junk", [0, -1, *NOT_NUMBERS], ids=label)
def test_positive_refuses(junk: object) -> None:
    refused(arguments.positive, junk, "error")


@pytest.mark.parametrize("junk", [0, -1, 1.0, 2.5, "2", None, True, math.nan, [2]], ids=label)
def test_whole_refuses(junk: object) -> None:
    refused(arguments.whole, junk, "categories")


@pytest.mark.parametrize(
    "junk",
    [None, 1, "01", (1,), (0, 1, 2), (1, 1), (2, 1), (0, math.inf), (math.nan, 1), ("0", "1"), (None, 1), {0, 1}],
    ids=label,
)
def test_bounds_refuse(junk: object) -> None:
    refused(arguments.bounds, junk)


def test_a_budget_is_the_decimal_it_prints_as_and_a_sensitivity_the_larger_reading() -> None:
    assert arguments.epsilon(0.1) == Fraction(1, 10)
    assert arguments.delta(1e-6) == Fraction(1, 10**6)
    assert arguments.sensitivity(0.1) == Fraction(0.1)  # binary 0.1 is above 1/10
    assert arguments.sensitivity(0.3) == Fraction(3, 10)  # binary 0.3 is below


@given(st.floats(min_value=1e-100, max_value=1e100))
def test_a_sensitivity_is_never_read_as_less_than_it_may_mean(value: float) -> None:
    exact = arguments.sensitivity(value)
    assert exact >= Fraction(value)
    assert exact >= Fraction(repr(value))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int8, np.uint64, Fraction, Decimal])
def test_numbers_of_every_library_are_read(kind: type) -> None:
    assert arguments.epsilon(kind(1)) == arguments.sensitivity(kind(1)) == 1
    assert arguments.bounds((kind(0), kind(1))) == (0, 1)


def test_bounds_keep_integers_exact() -> None:
    assert arguments.bounds((np.int64(2**60), 2**60 + 1)) == (2**60, 2**60 + 1)


@pytest.mark.parametrize("check", [arguments.epsilon, arguments.sensitivity])
def test_numpy_booleans_are_refused_like_booleans(check) -> None:
    refused(check, np.True_)


@pytest.mark.parametrize("junk", [10**400, Fraction(10**400, 3)], ids=["int", "fraction"])
def test_an_error_too_large_for_a_float_is_refused(junk: object) -> None:
    refused(arguments.positive, junk, "error")
