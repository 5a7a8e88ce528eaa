"""Limits from a noisy histogram of people are near the best ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dither.mechanisms import Laplace
from dither.tables.planning.best_limit import (
    EDGES,
    best_limit,
    people_seen,
    thresholds,
    unseen_people,
)

PEOPLE_OF = {
    "constant": lambda _: np.full(3000, 7),
    "uniform": lambda draw: draw.integers(1, 100, 3000),
    "log-normal": lambda draw: np.maximum(np.exp(draw.normal(2, 1, 3000)), 1).astype(np.int64),
    "Pareto": lambda draw: np.minimum(2 * (draw.pareto(1.6, 3000) + 1), 1e6).astype(np.int64),
    "Poisson": lambda draw: np.maximum(draw.poisson(30, 3000), 1),
}


def histogram(rows_of_people):
    places = np.minimum(np.searchsorted(EDGES, rows_of_people), len(EDGES) - 1)
    return np.bincount(places, minlength=len(EDGES))


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 12])
@pytest.mark.parametrize("name", PEOPLE_OF)
def test_the_limit_is_near_the_best_one(name, groups):
    """The error at the limit chosen is, in the median, within twice that of the best limit for the same people."""
    epsilon, noise = Fraction(1, 10), 1.5
    ratios = []
    # the same people and the same noise in every run: of Pareto's law the median of 400 asks is 1.77, but a median of
    # 25 of them is above 2 in one run of six
    draw = np.random.default_rng(4)
    for _ in range(25):
        people = PEOPLE_OF[name](draw)

        def error(limit, people=people):
            return math.hypot(noise * limit, np.maximum(people - limit, 0).sum() * min(1, math.sqrt(2) / groups))

        noisy = histogram(people) + np.rint(draw.laplace(scale=float(1 / epsilon), size=len(EDGES)))
        chosen = best_limit(noisy, epsilon, noise, groups)
        ratios.append(error(chosen.limit) / min(map(error, EDGES)))
    assert np.median(ratios) <= 2


def test_nothing_but_the_noisy_histogram_decides():
    """The same noisy numbers lead to the same limits, whatever the data were."""
    people = PEOPLE_OF["uniform"](np.random.default_rng(1))
    noisy = np.asarray(Laplace(1, 0.1).release(histogram(people))).astype(np.float64)
    assert best_limit(noisy, Fraction(1, 10), 1.5, 3) == best_limit(noisy.copy(), Fraction(1, 10), 1.5, 3)


@pytest.mark.parametrize(
    ("people", "epsilon", "most"),
    [
        (np.full(50, 7), 0.01, 60),
        (np.full(50, 7), 0.1, 40),
        (np.arange(1, 31), 0.5, 40),
        (np.exp(np.linspace(1, 6.4, 4000)).astype(np.int64), 0.01, 12),
        (np.concatenate([np.arange(1, 2001) % 9 + 1, [20_000]]), 0.1, 10),
    ],
    ids=["50 people, hardly any epsilon", "50 people", "30 people", "no filled bin", "one with very many rows"],
)
def test_little_to_go_by_is_no_reason_for_a_useless_limit(people, epsilon, most):
    """Where no bin stands out of the noise, the error is still within some factor of the best, in the median of 15."""
    noise = math.sqrt(2) / (10 * epsilon)
    ratios = []
    for _ in range(15):
        noisy = np.asarray(Laplace(1, epsilon).release(histogram(people))).astype(np.float64)
        chosen = best_limit(noisy, Fraction(epsilon), noise, 1)
        error, *others = (
            math.hypot(noise * limit, np.maximum(people - limit, 0).sum()) for limit in (chosen.limit, *EDGES)
        )
        ratios.append(error / min(others))
    assert np.median(ratios) <= most


def two_modes(many, rows):
    """3,000 people of whom so many have so many rows, and the others one."""
    people = np.ones(3000, dtype=np.int64)
    people[:many] = rows
    return people


def quantiles_of_noise(scale):
    """Noise of the histogram that is always the same: quantiles of the Laplace law in some order."""
    levels = (np.random.default_rng(1).permutation(len(EDGES)) + 0.5) / len(EDGES)
    return -scale * np.sign(levels - 0.5) * np.log(1 - 2 * np.abs(levels - 0.5))


@pytest.mark.parametrize(("many", "rows"), [(150, 300), (150, 30), (250, 10)])
def test_a_second_mode_is_seen(many, rows):
    """150 people with 300 rows each are 15 scales of the noise: the limit takes them in."""
    people = two_modes(many, rows)
    noisy = histogram(people) + np.where(histogram(people) > 0, 0.0, quantiles_of_noise(10))
    chosen = best_limit(noisy, Fraction(1, 10), 1.5, 1)
    assert 0.9 * rows <= chosen.limit <= 1.5 * rows


def test_thresholds_are_those_of_sums_of_noise():
    """Against a numerical integral of the characteristic function ``(1 + t^2)^-w`` of a sum of w Laplace variables."""
    t = np.linspace(0, 60, 600_001)
    for width, threshold in thresholds().items():
        if width == 1:
            tail = math.exp(-threshold) / 2
        else:
            tail = 0.5 - np.trapezoid(np.sinc(threshold * t / math.pi) * (1 + t * t) ** -width, t) * threshold / math.pi
        tail_allowed = 2e-4 / 4 / (len(EDGES) - width + 1)
        assert tail == pytest.approx(tail_allowed, rel=0.02)


def test_how_many_people_are_not_seen_follows_from_epsilon_alone():
    assert people_seen(Fraction(1, 20)) == pytest.approx(2 * people_seen(Fraction(1, 10)), abs=1)
    noise = math.log(2 * 0.05) / 0.1
    assert (people_seen(Fraction(1, 10)) + noise) * 0.1 >= thresholds()[1]
    assert "even 1,600 people" in unseen_people(Fraction(1, 100))
