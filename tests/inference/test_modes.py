"""The probability of a mode, against the posterior by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dither.inference import NoiseLaw, mode_probability

LAW = NoiseLaw("laplace", 3.0, step=1.0)


def posterior(selected: int, noisy: list[int], rate: float) -> float:
    """Over all counts near the noisy ones, each as plausible as any other before."""
    total = best = 0.0
    for moved in itertools.product(range(-40, 41), repeat=len(noisy)):
        counts = [number - by for number, by in zip(noisy, moved, strict=True)]
        density = math.exp(-sum(map(abs, moved)) / LAW.scale)
        density *= math.exp(rate * counts[selected]) / sum(math.exp(rate * count) for count in counts)
        total += density
        best += density if counts[selected] == max(counts) else 0.0
    return best / total


@pytest.mark.parametrize(
    ("selected", "noisy", "rate"), [(0, [30, 28], 0.2), (1, [30, 28], 0.2), (0, [30, 24], 1.0), (1, [33, 24], 0.1)]
)
def test_it_is_no_more_than_the_posterior_of_a_flat_prior(selected, noisy, rate):
    result = mode_probability(selected, np.array(noisy, float), LAW, rate)
    assert result <= posterior(selected, noisy, rate) + 0.03


def test_counts_that_noise_alone_may_make_differ_are_alike():
    """Then one of m keys was picked; with gaps far beyond the noise it is the flat posterior again."""
    assert mode_probability(0, np.array([30.0, 28.0]), LAW, 0.2) == 0.5
    assert mode_probability(2, np.array([30.0, 28.0, 27.0, 31.0]), LAW, 0.2) == 0.25
    assert mode_probability(0, np.array([60.0, 58.0, 0.0, 1.0, 0.0, 2.0]), LAW, 0.2) == 0.5
    assert mode_probability(0, np.array([90.0, 28.0]), LAW, 0.2) > 0.99


@pytest.mark.parametrize("shape", ["laplace", "normal"])
@pytest.mark.parametrize(
    ("draw", "epsilon"),
    [
        (lambda draw: draw.poisson(2, 50), 0.2),
        (lambda draw: draw.poisson(20, 5), 0.2),
        (lambda _: np.array([10, 9, 9]), 0.5),
        (lambda _: np.r_[60, 58, np.zeros(18, int)], 0.5),
        (lambda _: np.r_[51, np.full(9, 50)], 1.0),
    ],
    ids=["50 small", "5 alike", "3 alike", "two of 20", "10 alike"],
)
def test_it_is_not_more_sure_than_it_is_right(draw, epsilon, shape):
    """The probability is at most how often a selection hits, which follows from the counts, on average; 100 cases."""
    generator = np.random.default_rng(11)
    law = NoiseLaw(shape, 3 / epsilon)
    rate = 2 * epsilon / 3
    stated, right = [], []
    for _ in range(100):
        counts = draw(generator)
        chances = np.exp(rate * (counts - counts.max()))
        chances /= chances.sum()
        noise = generator.laplace(0, law.scale, counts.size)
        noise = noise if shape == "laplace" else generator.normal(0, law.scale, counts.size)
        selected = int(generator.choice(counts.size, p=chances))
        stated.append(mode_probability(selected, counts + noise, law, rate))
        right.append(chances[counts == counts.max()].sum())
    assert np.mean(stated) <= np.mean(right) + 0.03


def test_another_rate_or_scale_gives_another_probability():
    noisy = np.array([44.0, 28.0])
    result = mode_probability(0, noisy, LAW, 0.05)
    assert abs(result - mode_probability(0, noisy, LAW.times(4), 0.05)) > 0.03
    assert abs(result - mode_probability(0, noisy, LAW, 2.0)) > 0.005


def test_extremes():
    assert mode_probability(0, np.array([1e9, 0.0, 0.0]), LAW, 0.5) == 1.0
    assert mode_probability(1, np.array([1e9, 0.0, 0.0]), LAW, 0.5) == 0.0
    assert mode_probability(0, np.array([5.0]), LAW, 0.5) == 1.0
