"""The sparse vector technique: one noisy threshold, many noisy questions.

An outcome has probability ``integral over t of f(t) * product over answers below of F(t - q_i) * product over answers
above of S(t - q_i)``: f the density of the threshold's noise, F and S the two tails of a question's.

*Above.* Put t + s for t, s the sensitivity, on the neighbour. f costs e^(s/b1) at most, every F grows, since no
question rose by more than s, and each of the c factors S moves by at most 2s, s if all questions move the same way
(if they all fall t stays, and only the S cost), at most e^(2s/b2). Whatever the questions, the loss is at most ``s/b1 +
2 c s/b2``.

*Below.* n questions at a large height x, answered below, which rise by s, and c questions at 0, answered above, which
fall by s (stay, if all move the same way). Both tails are exponentials there, so the substitution costs exactly that
bound for every t >= 0. What comes from t < 0 is at most ``2^-n e^(-n x/b2) b2/(2 b1 n)``, while the integral over [x,
x + b2] is at least ``2^-(n+c) e^(-(x+b2)(1/b1 + c/b2)) b2/(2 b1)``: with n above ``c + b2/b1`` the first is as small a
part as one likes of the second for large x. So the bound is the supremum.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.audit.proof.evidence import Evidence, Interval, exp_ends, no_noise

_CELLS = 4096
_REACH = 45.0
_SLACK = 1e-9


def exceeds(own: float, other: float, gap: float) -> Interval:
    """P(own * Z - other * Y >= gap) for independent standard Laplace Z, Y, enclosed by quadrature.

    Y is cut into cells; in each, the tail of Z lies between its values at the ends. Beyond the cells is e^-45. The
    floats are good to far less than the slack.

    >>> low, high = exceeds(1.0, 1.0, 2.0)            # e^-2 (2 + 2) / 4
    >>> float(low) < 0.1353353 < float(high), float(high - low) < 1e-2
    (True, True)
    """
    u = np.linspace(0.0, 1.0, _CELLS + 1)
    half = _REACH * (u * u)  # finer near the peak
    knots = np.concatenate([-half[:0:-1], half])
    mass = np.diff(_laplace_below(knots))
    tail = _laplace_below(-(gap + other * knots) / own)
    high = float(mass @ tail[:-1]) + float(np.exp(-_REACH))
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
    """A session of so many answers above, with Laplace noise of these scales.

    >>> above_threshold(Fraction(1), 2.0, 4.0, 1, monotone=False).loss[1]
    Fraction(1, 1)
    """
    if not (threshold_scale > 0 and scale > 0):
        return no_noise("a question that crosses the threshold")
    moved = sensitivity / Fraction(scale)
    loss = sensitivity / Fraction(threshold_scale) + limit * (moved if monotone else 2 * moved)
    return Evidence(
        (loss, loss),
        _one_question(float(sensitivity), threshold_scale, scale),
        "many questions far above the threshold that rise and are answered below, and as many as the limit that "
        + ("stay" if monotone else "fall")
        + " and are answered above",
        "closed tail comparison under the threshold integral",
    )


def _one_question(sensitivity: float, threshold_scale: float, scale: float) -> Callable[[Fraction], Interval]:
    """Below delta(epsilon): a single question that falls by the sensitivity, answered above."""

    def curve(at: Fraction) -> Interval:
        if at > 500:
            return Fraction(0), Fraction(1)
        growth = exp_ends(at)[1]
        spread = threshold_scale + scale
        gaps = (np.linspace(-3.0, 3.0, 13) * spread - sensitivity / 2).tolist()
        result = max(
            exceeds(scale, threshold_scale, gap)[0] - growth * exceeds(scale, threshold_scale, gap + sensitivity)[1]
            for gap in gaps
        )
        return max(result, Fraction(0)), Fraction(1)

    return curve
