"""Arithmetic on released numbers is covered as often as it says, also where a number occurs twice."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dither.errors import InvalidArgument
from dither.inference import NoiseLaw, combine, mean, measured, quotient
from dither.randomness import SYSTEM, discrete_laplace
from support import refuses

ASKS, CONFIDENCE = 8_000, 0.95
FEWEST = int(scipy_stats.binom.ppf(1e-9, ASKS, CONFIDENCE - 0.004))
MOST = int(scipy_stats.binom.isf(1e-9, ASKS, CONFIDENCE + 0.01))
SCALES = {"a": 5.0, "b": 12.0, "c": 3.0}
TRUTH = {"a": 400.0, "b": 900.0, "c": 150.0}
FUNCTIONS = {
    "a + b": lambda a, b: a + b,
    "a - b + c": lambda a, b, c: a - b + c,
    "a b": lambda a, b: a * b,
    "a / b": lambda a, b: quotient(a, b),
    "100 c / (a + c)": lambda a, c: 100 * quotient(c, a + c),
    "(a - c) / a": lambda a, c: quotient(a - c, a),
    "a / b - c / a": lambda a, b, c: quotient(a, b) - quotient(c, a),
    "log(a / c)": lambda a, c: np.log(quotient(a, c)),
    "sqrt(a b)": lambda a, b: np.sqrt(a * b),
    "round(exp(-c / a), 9)": lambda a, c: np.round(np.exp(-quotient(c, a)), 9),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_noisy_numbers_is_covered_and_no_wider_than_needed(name):
    function = FUNCTIONS[name]
    inputs = inspect.signature(function).parameters
    released = [TRUTH[x] + discrete_laplace(SCALES[x], ASKS, SYSTEM).astype(np.float64) for x in inputs]
    laws = [NoiseLaw("laplace", SCALES[x], step=1.0) for x in inputs]
    truth = float(function(*(np.array([[TRUTH[x]]]) for x in inputs))[0, 0])
    value, low, high = combine(function, released, laws, CONFIDENCE)
    assert FEWEST <= np.sum((low <= truth) & (truth <= high)) <= MOST
    narrow = (value - 0.8 * (value - low) <= truth) & (truth <= value + 0.8 * (high - value))
    assert narrow.sum() < FEWEST
    assert np.median(high - low) / 2 <= 1.15 * np.quantile(np.abs(value - truth), CONFIDENCE)


def test_a_number_that_occurs_twice_has_one_noise():
    value, low, high = combine(lambda a, b: a - a + b * 0, [400.0, 900.0], [NoiseLaw("laplace", 5.0)] * 2)
    assert (value[0], low[0], high[0]) == (0, 0, 0)


def test_a_quotient_is_the_mean_of_a_table():
    values, noise = [np.array([80.0, 9.0]), np.array([30.0, -4.0])], [NoiseLaw("laplace", 2.0)] * 2
    combined = combine(lambda n, t: quotient(t, n), values, noise, low=-1.0, high=1.0)
    table = mean(*measured(values, noise, 0.95), 1.0)
    assert combined.low == pytest.approx(table.low)
    assert combined.high == pytest.approx(table.high)


def test_a_denominator_that_is_lost_in_its_noise_gives_everything():
    _, low, high = combine(lambda a, b: quotient(a, b), [50.0, 1.0], [NoiseLaw("laplace", 10.0)] * 2)
    assert (low[0], high[0]) == (-np.inf, np.inf)
    _, low, high = combine(lambda a, b: quotient(a, b), [50.0, 0.0], [NoiseLaw("laplace", 10.0)] * 2, low=0.0, high=1.0)
    assert (low[0], high[0]) == (0.0, 1.0)


def test_a_denominator_may_be_negative():
    _, low, high = combine(lambda a, b: quotient(a, b), [50.0, -100.0], [NoiseLaw("laplace", 1.0)] * 2)
    assert low[0] < -0.5 < high[0] < -0.4


def test_a_value_that_is_undefined_stays_so_and_has_no_limits():
    value, low, high = combine(lambda a: np.log(a), [-20.0], [NoiseLaw("laplace", 1.0)])
    assert np.isnan(value[0])
    assert (low[0], high[0]) == (-np.inf, np.inf)


def test_a_constant_has_no_error():
    value, low, high = combine(lambda a: np.full_like(a, 7.0), [np.array([1.0, 2.0])], [NoiseLaw("laplace", 1.0)])
    assert value.tolist() == low.tolist() == high.tolist() == [7.0, 7.0]


def test_a_confidence_beyond_the_sample_is_refused():
    with refuses(InvalidArgument, "confidence", "0.998"):
        combine(lambda a: a, [1.0], [NoiseLaw("laplace", 1.0)], 0.9999)
