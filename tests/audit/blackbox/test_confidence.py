"""Clopper-Pearson bounds compared with SciPy and by enumeration; the bound on epsilon by enumerating the game."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dither.audit.blackbox import confidence
from support import each


@each(("successes", "trials"), [(0, 10), (3, 10), (10, 10), (1, 10**6), (731_000, 10**6), (5, 5)])
@each("failure", [0.2, 0.01, 1e-6])
def test_clopper_pearson_solves_its_equations(successes, trials, failure):
    """At the bound, what was seen or more (or less) has exactly the failure probability, by SciPy's binomial law."""
    low, high = (
        confidence.clopper_pearson_lower(successes, trials, failure),
        confidence.clopper_pearson_upper(successes, trials, failure),
    )
    if successes:
        assert stats.binom.sf(successes - 1, trials, low) == pytest.approx(failure, rel=1e-6)
    if successes < trials:
        assert stats.binom.cdf(successes, trials, high) == pytest.approx(failure, rel=1e-6)
    exact = stats.binomtest(successes, trials).proportion_ci(1 - 2 * failure, method="exact")
    assert (low, high) == pytest.approx((exact.low, exact.high), rel=1e-6, abs=1e-11)


@pytest.mark.parametrize("true", [0.001, 0.05, 0.3, 0.5, 0.97])
def test_clopper_pearson_covers(true):
    """The probability of a wrong bound, summed over all counts, is at most what was allowed."""
    probabilities = stats.binom.pmf(range(41), 40, true)
    low = sum(p for k, p in enumerate(probabilities) if confidence.clopper_pearson_lower(k, 40, 0.05) > true)
    high = sum(p for k, p in enumerate(probabilities) if confidence.clopper_pearson_upper(k, 40, 0.05) < true)
    assert low <= 0.05
    assert high <= 0.05


def wrong_bounds(right: float, wrong: float, rounds: int, failure: float, delta: float, sides: int, true: float):
    """The probability that the bound on epsilon is above the truth, over all outcomes of the game."""
    total = 0.0
    for r, w in itertools.product(range(rounds + 1), repeat=2):
        if r + w <= rounds and confidence.epsilon_lower_bound(r, w, rounds, failure, delta, sides) > true:
            total += stats.multinomial.pmf([r, w, rounds - r - w], rounds, [right, wrong, 1 - right - wrong])
    return total


@each("delta", [0.0, 0.02, 0.2])
@each("epsilon", [0.1, 1.0, 2.5])
@each("sides", [1, 2])
def test_the_epsilon_bound_holds_at_the_edge_of_the_claim(epsilon, delta, sides):
    """c = e^epsilon w + delta sides / 2 exactly, for rare guesses and for many."""
    for guessing in (0.3, 0.95):
        wrong = (guessing - delta * sides / 2) / (1 + math.exp(epsilon))
        assert wrong_bounds(guessing - wrong, wrong, 25, 0.05, delta, sides, epsilon * (1 + 1e-9)) <= 0.05


def test_the_check_above_can_fail():
    assert wrong_bounds(0.8, 0.1, 25, 0.05, 0.0, 2, 1.0) > 0.05


def test_disjoint_outputs_give_the_logarithm_of_the_runs():
    assert confidence.epsilon_lower_bound(10**6, 0, 10**6, 0.01) == pytest.approx(
        math.log(10**6 / math.log(100)), abs=1e-3
    )


def test_one_bound_beats_two():
    """The usual argument (level and power, each at half the failure probability) on the same rounds."""
    right, wrong, side = 500_000, 183_940, 10**6
    two = math.log(
        confidence.clopper_pearson_lower(right // 2, side, 0.005)
        / confidence.clopper_pearson_upper(wrong // 2, side, 0.005)
    )
    assert confidence.epsilon_lower_bound(right, wrong, 2 * side, 0.01) > two + 0.002


def test_the_quick_bound_is_near():
    right = np.array([500, 7311, 10**5])
    quick = confidence.approximate_epsilon(right, right // 3, 3 * right.max(), 0.01, 0.001, 2)
    exact = [confidence.epsilon_lower_bound(r, r // 3, 3 * right.max(), 0.01, 0.001, 2) for r in right.tolist()]
    assert np.maximum(quick, 0) == pytest.approx(exact, abs=0.1)


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_mu_is_never_above_that_of_the_exact_test(mu):
    """At the exact level and power of shifts of a normal law the bound approaches mu from below."""
    trials = 10**7
    for cut in (0.0, mu / 2, mu):
        hits, alarms = (round(trials * float(stats.norm.sf(cut - shift))) for shift in (mu, 0))
        result = confidence.mu_lower_bound(hits, trials, alarms, trials, 0.01)
        assert mu - 0.02 < result <= mu


def test_epsilon_of_mu_is_the_known_curve():
    """delta(epsilon) of mu-GDP by its formula, from SciPy."""
    for mu, delta in ((0.3, 1e-5), (1.0, 1e-6), (4.0, 0.01)):
        epsilon = confidence.gdp_epsilon(mu, delta)
        curve = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        assert curve == pytest.approx(delta, rel=1e-5)
    assert confidence.gdp_epsilon(0.0, 1e-6) == 0
