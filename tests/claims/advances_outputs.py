"""The second document, third part: unrealistic outputs, bounded noise, selection (Examples 22 to 30)."""

from __future__ import annotations

import itertools
import math

import numpy as np
from claim import Computed, Computing, close, replaced, sensitivity, softmax, worst_loss
from scipy import integrate, stats

import dither as dp

claims = Computing(2)


@claims("Example 22")
def mars() -> Computed:
    m = dp.Laplace(sensitivity=1, epsilon=1)
    below = float(stats.laplace.cdf(0))
    whole = math.exp(-1) / (1 + math.exp(-1))
    return Computed(
        f"ε = 1: variance {float(m.variance):.4f}, P(negative) = {below:.4f}; with discrete Laplace noise {whole:.4f}.",
        stated=close(float(m.variance), 2, 1e-6) and below == 0.5,
    )


@claims("Example 23, variance")
def noisy_variance() -> Computed:
    tight = [sensitivity(lambda x: float(np.var(x, ddof=1)), (0, 1, 2), n) * n / 4 for n in (3, 4, 5)]
    negative = float(stats.laplace.cdf(-0.01 / (1 / 100)))
    return Computed(
        "n·sensitivity/Λ², n = 3, 4, 5: "
        + ", ".join(f"{v:.4f}" for v in tight)
        + f". S² = 0.01, Λ = ε = 1, n = 100: negative with probability {negative:.4f}.",
        stated=all(close(v, 1) for v in tight) and negative > 0.1,
    )


@claims("Example 23, standard deviation")
def noisy_deviation() -> Computed:
    n = 1000
    jump = float(np.std([1.0] + [0.0] * (n - 1), ddof=1))
    grid = [sensitivity(lambda x: float(np.std(x, ddof=1)), (0, 1, 2), n) * math.sqrt(n) / 2 for n in (3, 4, 5)]
    ours = dp.sensitivity.std(n=n, bounds=(0, 1), neighbors=dp.ReplaceOne)
    return Computed(
        f"n = 1000: all 0 against one Λ, a jump of {jump:.4f}·Λ; with Lap(Λ/(nε)) the loss is {jump * n:.2f}·ε. "
        "√n·sensitivity/Λ by enumeration, n = 3, 4, 5: " + ", ".join(f"{v:.4f}" for v in grid) + ".",
        stated=jump <= 1 / n,
        corrected=close(jump, ours, 1e-6) and close(ours, 1 / math.sqrt(n), 1e-6) and max(grid) <= 1 + 1e-9,
    )


def _mass(q: float, b: float, low: float, high: float) -> float:
    return 1 - (math.exp(-(q - low) / b) + math.exp(-(high - q) / b)) / 2


@claims("Definition 24")
def bounded_constant() -> Computed:
    error = 0.0
    for q, b in itertools.product((0.0, 1.0, 5.0, 9.5, 10.0), (0.3, 1.0, 20.0)):
        quad = integrate.quad(lambda v, q=q, b=b: math.exp(-abs(v - q) / b) / (2 * b), 0, 10, points=[q])[0]
        error = max(error, abs(quad - _mass(q, b, 0, 10)))
    return Computed(
        "[0, 10], q = 0, 1, 5, 9.5, 10, b = 0.3, 1, 20: integral and formula agree to "
        f"{7 if error < 1e-7 else 0} digits.",
        stated=error < 1e-7,
    )


@claims("Example 25")
def ages() -> Computed:
    m = dp.BoundedLaplace(sensitivity=110, epsilon=1, lower=0, upper=110)
    density = [math.exp(-abs(v - 10) / m.scale) / (2 * m.scale * _mass(10, m.scale, 0, 110)) * 110 for v in (10, 110)]
    whole = integrate.quad(
        lambda v: math.exp(-abs(v - 10) / m.scale) / (2 * m.scale * _mass(10, m.scale, 0, 110)), 0, 110, points=[10]
    )[0]
    return Computed(
        f"ε = 1: b = {m.scale:.2f}; density over the uniform one: {density[0]:.3f} at 10, {density[1]:.3f} at 110.",
        stated=close(whole, 1, 1e-7) and m.scale >= 110 * (1 - 1e-9),
    )


def _bounded_loss(b: float, part: float, low: float, high: float) -> float:
    """The largest loss between values at most ``part`` apart, on a grid that holds the ends."""
    worst = 0.0
    for q in np.linspace(low, high, 101):
        for other in (min(q + part, high), min(q + part / 2, high)):
            normal = math.log(_mass(float(other), b, low, high) / _mass(float(q), b, low, high))
            for v in (low, high):
                worst = max(worst, abs((abs(v - other) - abs(v - q)) / b + normal))
    return float(worst)


@claims("After Example 25")
def naive_bounded() -> Computed:
    loss = _bounded_loss(1.0, 1.0, 0, 10)
    return Computed(f"Δ = ε = 1, [0, 10]: the loss is {loss:.4f}.", stated=loss > 1)


@claims("Theorem 26")
def bounded_theorem() -> Computed:
    losses = []
    for part, epsilon, delta in itertools.product((0.5, 1.0, 5.0, 10.0), (0.1, 1.0, 3.0), (0.0, 0.1)):
        m = dp.BoundedLaplace(sensitivity=part, epsilon=epsilon, lower=0, upper=10, delta=delta)
        losses.append(_bounded_loss(m.scale, part, 0, 10) / (epsilon - math.log(1 - delta)))
    b = dp.BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10).scale
    # beyond u - l the formula evaluates C outside the range, where it is no integral of a density and becomes too small
    part, tried = 12.0, 3.0
    ratio = _mass(part, tried, 0, 10) / _mass(0, tried, 0, 10)
    allowed = tried >= part / (1 - math.log(ratio))
    true = _bounded_loss(tried, 10, 0, 10)
    return Computed(
        f"Δ = ε = 1, δ = 0, [0, 10]: b = {b:.5f}. Δ = 0.5 to 10, ε = 0.1 to 3, δ = 0 and 0.1: loss at most "
        f"{max(losses):.6f} of ε − ln(1 − δ). Δ = 12 on [0, 10], ε = 1: the formula allows b = 3, whose loss is "
        f"{true:.3f}.",
        stated=not (allowed and true > 1),
        corrected=max(losses) <= 1 + 1e-9 and close(b, 1.61156, 1e-5),
    )


@claims("Theorem 27")
def exponential() -> Computed:
    result = {
        e: worst_loss(
            lambda c, e=e: dp.Exponential(sensitivity=1, epsilon=e).probabilities(np.array(c)), replaced(4, 4)
        )
        / e
        for e in (0.1, 1, 3)
    }
    return Computed(
        "4 counts of 4 records, all neighbors, loss over ε at ε = 0.1, 1, 3: "
        + ", ".join(f"{v:.4f}" for v in result.values())
        + ".",
        stated=max(result.values()) <= 1,
    )


def _gaps(d: int, rate_gap: float) -> np.ndarray:
    """d scores, one at the top, the others this far below, in units of 2Δ/ε."""
    return np.array([0.0] + [-rate_gap] * (d - 1))


@claims("Lemma 28, probability")
def selection_tail() -> Computed:
    worst = 0.0
    for d, t in itertools.product(
        (2, 10, 1000), (0.1, 1, 3)
    ):  # the probability falls with the gap: its supremum is here
        gap = math.nextafter(math.log(d) + t, math.inf)
        p = softmax(_gaps(d, gap), 1.0)
        worst = max(worst, float(p[_gaps(d, gap) < -(math.log(d) + t)].sum()) * math.exp(t))
    return Computed(
        f"d = 2, 10, 1000, t = 0.1, 1, 3, the smallest gap that counts: the probability is at most "
        f"{worst:.4f} of e^(−t).",
        stated=worst <= 1,
    )


@claims("Lemma 28, expectation")
def selection_mean() -> Computed:
    worst = 0.0
    for d in (2, 3, 10, 1000, 10**6):
        for gap in np.linspace(0, 25, 501):
            weight = (d - 1) * math.exp(-gap)
            worst = max(worst, float(gap) * weight / (1 + weight) / math.log(d))
    for scores in itertools.product(np.linspace(-4, 0, 9), repeat=3):
        z = -np.array([0.0, *scores])
        worst = max(worst, float(softmax(-z, 1.0) @ z) / math.log(4))
    return Computed(
        f"one best and d − 1 equal others, d from 2 to 10⁶, and all 4 scores on a grid: the expected gap is at most "
        f"{worst:.4f} of (2Δ/ε)·ln d.",
        stated=worst <= 1,
    )


@claims("Example 29")
def election() -> Computed:
    ours = dp.Exponential(sensitivity=1, epsilon=1).probabilities([15, 20, 25])
    plain = softmax([15, 20, 25], 0.5)
    return Computed(
        "probabilities " + ", ".join(f"{v:.4f}" for v in plain) + ".",
        stated=bool(np.allclose(ours, plain, rtol=1e-12)),
    )


@claims("Report noisy max")
def noisy_max() -> Computed:
    flip, exponential = (kind(sensitivity=1, epsilon=1) for kind in (dp.PermuteAndFlip, dp.Exponential))
    loss = worst_loss(lambda c: flip.probabilities(np.array(c)), replaced(4, 3))
    better = []
    for scores in itertools.product(range(5), repeat=3):
        values = np.array(scores)
        better.append(float((flip.probabilities(values) - exponential.probabilities(values)) @ values))
    return Computed(
        f"3 counts of 4 records, ε = 1, all neighbors: loss {loss:.4f}; expected score minus the exponential "
        "mechanism's, "
        f"all scores 0…4: from {abs(min(better)):.4f} to {max(better):.4f}.",
        stated=loss <= 1 + 1e-9 and min(better) > -1e-9,
    )


@claims("Example 30")
def impossible_noise() -> Computed:
    noise = np.array([21, 16, 20]) - np.array([15, 20, 25])
    density = float(np.prod(stats.expon.pdf(noise, scale=2)))
    laplace = float(np.prod(stats.laplace.pdf(noise, scale=2)))
    wins = dp.PermuteAndFlip(sensitivity=1, epsilon=1).probabilities([15, 20, 25])[0]
    return Computed(
        f"noise (6, −4, −5): exponential density {density:g}, Laplace density {laplace:.1e}; candidate 1 wins with "
        f"probability {wins:.4f}.",
        stated=density > 0,
        corrected=density == 0 and laplace > 0 and wins > 0,
    )
