"""Brute-force oracles in floats and mpmath: densities are integrated and outcomes enumerated, without theorems."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
from scipy import integrate, stats


def hockey_stick(p, q, epsilon):
    """sum of (p - e^epsilon q)_+ over finitely many outcomes."""
    return float(np.maximum(np.asarray(p) - np.exp(epsilon) * np.asarray(q), 0).sum())


def density_delta(p, q, epsilon, low, high, cells=400_001):
    """The same for densities, by Simpson's rule on a fine grid."""
    z = np.linspace(low, high, cells)
    return float(integrate.simpson(np.maximum(p(z) - np.exp(epsilon) * q(z), 0), x=z))


def laplace(center, scale):
    return lambda z: np.exp(-np.abs(z - center) / scale) / (2 * scale)


def normal(center, scale):
    return lambda z: stats.norm.pdf(z, center, scale)


def gaussian_delta(ratio, epsilon):
    """Balle and Wang's closed form with 60 digits; ratio = sigma / sensitivity."""
    with mpmath.workdps(60):
        r, e = mpmath.mpf(ratio), mpmath.mpf(epsilon)
        return float(mpmath.ncdf(1 / (2 * r) - e * r) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * r) - e * r))


def staircase_density(epsilon, gamma):
    s = np.exp(-epsilon)
    a = (1 - s) / (2 * (gamma + s * (1 - gamma)))

    def density(z):
        k = np.floor(np.abs(z))
        return a * s ** (k + (np.abs(z) - k >= gamma))

    return density


def truncated(q, b, low, high):
    mass = 2 * b * (1 - 0.5 * np.exp(-(q - low) / b) - 0.5 * np.exp(-(high - q) / b))
    return lambda v: np.exp(-np.abs(v - q) / b) / mass


def neighbors(scores, sensitivity, monotone):
    """All extreme moves of the scores, and none."""
    steps = [(0, sensitivity), (0, -sensitivity)] if monotone else [(-sensitivity, 0, sensitivity)]
    for moves in steps:
        for move in itertools.product(moves, repeat=len(scores)):
            yield np.asarray(scores, dtype=float) + np.asarray(move)


def peeled(weights, k):
    """The probability of every ordered choice of k."""
    w = np.asarray(weights, dtype=float)
    result = []
    for order in itertools.permutations(range(w.size), k):
        remaining, probability = w.sum(), 1.0
        for i in order:
            probability *= w[i] / remaining
            remaining -= w[i]
        result.append(probability)
    return np.array(result)


def sparse_outcome(below, above, threshold_scale, scale):
    """The probability that questions at heights ``below`` (times their number) are answered below a threshold at 0 and
    those at ``above`` above it, by mpmath.
    """
    with mpmath.workdps(20):
        b1, b2 = mpmath.mpf(threshold_scale), mpmath.mpf(scale)

        def under(x):
            return mpmath.exp(x / b2) / 2 if x < 0 else 1 - mpmath.exp(-x / b2) / 2

        def integrand(t):
            value = mpmath.exp(-abs(t) / b1) / (2 * b1)
            for q, n in below:
                value *= under(t - q) ** n
            for q, n in above:
                value *= under(q - t) ** n
            return value

        knots = sorted({0, *(q for q, _ in below), *(q for q, _ in above)})
        first, last = knots[0] - 60 * b1, knots[-1] + 60 * b1
        return mpmath.quad(integrand, [first, *knots, *[knots[-1] + b2 * i for i in (1, 4, 16)], last])


def two_laplace_winner(gap):
    """P(a candidate behind by ``gap`` wins) with Laplace noise of scale 1 on both."""
    with mpmath.workdps(30):
        g = abs(mpmath.mpf(gap))
        tail = mpmath.exp(-g) * (2 + g) / 4
        return tail if gap >= 0 else 1 - tail
