"""Plots of mechanisms: the numbers behind them against closed forms, and what is drawn."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import norm

import dither as dp
from dither.present import plot
from support import refuses


def heights(axes):
    return [line.get_ydata() for line in axes.get_lines()]


def test_density_draws_the_law_and_its_neighbor():
    axes = plot.density(dp.Laplace(1, 1), value=10, neighbor=11)
    here, there = heights(axes)
    ratios = np.log(np.asarray(here) / np.asarray(there))
    assert np.abs(ratios).max() == pytest.approx(1, abs=1e-3)  # the promise, as it is drawn
    assert max(here) == pytest.approx(0.5, rel=1e-3)


def test_the_privacy_curve_is_the_mechanisms_own():
    m = dp.Gaussian(1, 1, 1e-6)
    line = plot.privacy_curve(m).get_lines()[0]
    for epsilon, delta in list(zip(line.get_xdata(), line.get_ydata(), strict=True))[::20]:
        mu = 1 / m.scale
        exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert delta == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("sigma", [0.7, 2.0])
def test_the_trade_off_of_gaussian_noise_is_that_of_two_normal_laws(sigma):
    levels = np.array([0.001, 0.05, 0.3, 0.5, 0.9])
    exact = norm.cdf(norm.isf(levels) - 1 / sigma)
    result = plot.trade_off_at(dp.Gaussian(1, rho=1 / (2 * sigma**2)), levels)
    assert (result <= exact + 1e-9).all()  # never claims more privacy than there is
    assert result == pytest.approx(exact, abs=2e-3)


@pytest.mark.slow
def test_the_trade_off_of_laplace_noise_is_the_known_one():
    epsilon, levels = 1.0, np.array([0.01, 0.1, 0.2, 0.4, 0.8])
    # Laplace laws a distance of epsilon scales apart (Dong, Roth and Su 2022, lemma A.6)
    exact = [
        1 - math.exp(epsilon) * a if a < math.exp(-epsilon) / 2
        else math.exp(-epsilon) / (4 * a) if a <= 0.5 else math.exp(-epsilon) * (1 - a)
        for a in levels
    ]  # fmt: skip
    event = dp.Laplace(1, epsilon).event_for(integer=False)
    assert plot.trade_off_at(event, levels) == pytest.approx(exact, abs=3e-3)


@pytest.mark.slow
def test_of_a_guarantee_it_is_the_worst_that_is_allowed():
    result = plot.trade_off_at(dp.ApproxDP(1, 0.1), np.array([0.0, 0.2]))
    assert result == pytest.approx([0.9, max(0.9 - math.e * 0.2, math.exp(-1) * 0.7)], abs=1e-9)


@pytest.mark.slow
def test_the_power_of_any_test_is_at_most_alpha_times_e_to_the_epsilon():
    levels = np.linspace(0, 1, 50)
    for m in (dp.Laplace(1, 1), dp.Staircase(1, 1), dp.RandomizedResponse(1), dp.SmoothNoise("cauchy", 1)):
        power = 1 - plot.trade_off_at(m, levels)
        assert (power <= levels * math.e + 1e-6).all()


def test_noise_beside_data_shows_the_error_and_says_that_it_is_not_private():
    axes = plot.noise_beside_data([120, 40, 5], dp.Laplace(1, 0.5), names=["a", "b", "c"])
    assert "not private" in axes.get_title()
    assert [patch.get_height() for patch in axes.patches] == [120, 40, 5]
    with refuses(dp.InvalidArgument):
        plot.noise_beside_data([1, 2], dp.Laplace(1, 1), names=["a"])


def test_comparisons_at_equal_epsilon_and_at_equal_error():
    families = {"Laplace": lambda e: dp.Laplace(1, e), "Gaussian": lambda e: dp.Gaussian(1, e, 1e-6)}
    laplace, gaussian = heights(plot.compare(families, sizes=[0.5, 1.0]))
    assert laplace[1] == dp.Laplace(1, 1).error()
    assert gaussian[1] == dp.Gaussian(1, 1, 1e-6).error()
    needed, _ = heights(plot.compare(families, equal="error", sizes=[5.0]))
    assert dp.Laplace(1, needed[0]).error() <= 5
    assert len(heights(plot.compare(families))[0]) == 13


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: plot.density(), lambda: plot.density(dp.Exponential(1, 1)), lambda: plot.privacy_curve("x"),
        lambda: plot.privacy_curve(dp.ZCDP(1)), lambda: plot.compare({}),
        lambda: plot.compare({"a": lambda e: dp.Laplace(1, e)}, equal="variance"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(wrong):
    with refuses(dp.InvalidArgument):
        wrong()


def test_given_axes_are_drawn_on():
    axes = plot.trade_off(dp.Laplace(1, 1))
    assert plot.trade_off(dp.Laplace(1, 2), axes=axes) is axes
    assert len(axes.get_lines()) == 4


@pytest.mark.slow
def test_matplotlib_is_loaded_when_something_is_drawn():
    code = "import sys, dither.present.plot; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_error_of_a_series_over_time():
    plan = dp.stream.StreamPlan(horizon=40, budget=dp.ApproxDP(1, 1e-9), factorization="square root")
    line = plot.error_over_time(plan).get_lines()[0]
    assert list(line.get_xdata()) == [*range(1, 41)]
    # the square root factorization: sum of r_k^2 below t times that of all, r_k = r_(k-1) (2k - 1) / (2k)
    r = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, 40))])
    sigma = dp.Gaussian(1, 1, 1e-9).scale
    exact = norm.isf(0.025) * sigma * np.sqrt(np.cumsum(r**2) * (r**2).sum())
    assert line.get_ydata() == pytest.approx(exact, rel=1e-3)
    series = dp.stream.RunningSum(horizon=40, epsilon=1, delta=1e-9)
    assert heights(plot.error_over_time(series))[0][-1] == pytest.approx(series.error(40))
    with refuses(dp.errors.InvalidArgument, "plans"):
        plot.error_over_time(dp.Laplace(1, 1))


def test_the_variance_of_local_protocols():
    def unary(epsilon):
        return dp.local.UnaryEncoding(categories=128, epsilon=epsilon)

    def subset(epsilon):
        return dp.local.SubsetSelection(categories=128, epsilon=epsilon)

    first, second = heights(plot.local_variance(unary, subset, epsilons=[0.5, 1, 2, 4]))
    assert first == pytest.approx([4 * math.exp(e) / math.expm1(e) ** 2 for e in (0.5, 1, 2, 4)], rel=1e-6)
    assert second == pytest.approx([15.4, 3.61, 0.697, 0.0584], rel=5e-3)  # the optimum at 128 categories
    with refuses(dp.errors.InvalidArgument, "families"):
        plot.local_variance(lambda e: dp.Laplace(1, e))
