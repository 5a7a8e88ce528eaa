"""The sparse vector technique: one noisy threshold and many noisy questions.

The probability of an outcome is ``integral over t of f(t) * product over answers below of F(t - q_i) * product over
answers above of S(t - q_i)``, where f is the density of the threshold's noise and F and S are the distribution
function and the tail of a question's noise.

*Upper bound.* Let s be the sensitivity and substitute t + s for t on the neighbor. The factor f changes by at most
e^(s/b1). Every F increases, since no question rose by more than s. Each of the c factors S has an argument that moves
by at most 2s (by s if all questions move in the same direction; if they all fall, t is not substituted and only the
factors S change), and changes by at most e^(2s/b2). Hence the privacy loss is at most ``s/b1 + 2 c s/b2`` for any
sequence of questions.

*Lower bound.* Take n questions at a large value x that are answered "below" and rise by s, and c questions at 0 that
are answered "above" and fall by s (or stay, if all must move in the same direction). Both tails are exponential there,
so the substitution attains the bound for every t >= 0. The contribution of t < 0 is at most ``2^-n e^(-n x/b2) b2/(2 b1
n)``, while the integral over [x, x + b2] is at least ``2^-(n+c) e^(-(x+b2)(1/b1 + c/b2)) b2/(2 b1)``. For n above
``c + b2/b1`` and large x the former is an arbitrarily small fraction of the latter, so the bound is the supremum.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dither.audit.proof.evidence import Evidence, Interval, exp_interval, no_noise

_CELLS = 4096
_CUTOFF = 45.0
_SLACK = 1e-9


def laplace_difference_tail(z_scale: float, y_scale: float, gap: float) -> Interval:
    """P(z_scale * Z - y_scale * Y >= gap) for independent standard Laplace Z and Y, enclosed by quadrature.

    The range of Y is divided into cells, in each of which the tail of Z lies between its values at the ends; the
    probability outside of all cells is e^-45. Floating-point errors are far below the slack.

    >>> low, high = laplace_difference_tail(1.0, 1.0, 2.0)            # e^-2 (2 + 2) / 4
    >>> float(low) < 0.1353353 < float(high), float(high - low) < 1e-2
    (True, True)
    """
    u = np.linspace(0.0, 1.0, _CELLS + 1)
    half = _CUTOFF * (u * u)  # finer near the peak
    knots = np.concatenate([-half[:0:-1], half])
    mass = np.diff(_laplace_below(knots))
    tail = _laplace_below(-(gap + y_scale * knots) / z_scale)
    high = float(mass @ tail[:-1]) + float(np.exp(-_CUTOFF))
    low = float(mass @ tail[1:])
    return Fraction(max(0.0, low * (1 - _SLACK))), Fraction(min(1.0, high * (1 + _SLACK)))


def _laplace_below(z: NDArray[np.float64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.where(
        z < 0, 0.5 * np.exp(np.minimum(z, 0.0)), 1 - 0.5 * np.exp(-np.maximum(z, 0.0))
    )
    return result


def above_threshold(
    sensitivity: Fraction, threshold_scale: float, scale: float, limit: int, *, monotone: bool
) -> Evidence:
    """A session with at most ``limit`` answers above the threshold, with Laplace noise of the given scales.

    >>> above_threshold(Fraction(1), 2.0, 4.0, 1, monotone=False).loss[1]
    Fraction(1, 1)
    """
    if not (threshold_scale > 0 and scale > 0):
        return no_noise("a question that crosses the threshold")
    change = sensitivity / Fraction(scale)
    loss = sensitivity / Fraction(threshold_scale) + limit * (change if monotone else 2 * change)
    return Evidence(
        (loss, loss),
        partial(_single_question_curve, float(sensitivity), threshold_scale, scale),
        "many questions far above the threshold that rise and are answered below, and as many as the limit that "
        + ("stay" if monotone else "fall")
        + " and are answered above",
        "closed tail comparison under the threshold integral",
    )


def _single_question_curve(sensitivity: float, threshold_scale: float, scale: float, epsilon: Fraction) -> Interval:
    """A lower bound on delta(epsilon): a single question that falls by the sensitivity and is answered above."""
    if epsilon > 500:
        return Fraction(0), Fraction(1)
    growth = exp_interval(epsilon)[1]
    gaps = (np.linspace(-3.0, 3.0, 13) * (threshold_scale + scale) - sensitivity / 2).tolist()
    deltas = [
        laplace_difference_tail(scale, threshold_scale, gap)[0]
        - growth * laplace_difference_tail(scale, threshold_scale, gap + sensitivity)[1]
        for gap in gaps
    ]
    return max(*deltas, Fraction(0)), Fraction(1)
