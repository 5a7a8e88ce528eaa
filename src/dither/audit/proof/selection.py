"""Mechanisms with finitely many outputs: selection among candidates, answers of a session.

*Reduction of scores to two candidates* (weights ``exp(rate * score)``). For a set A of candidates, ``P(A) - e^epsilon
Q(A)`` decreases with the neighbor's weight of A and increases with that of the rest. The contract allows each score to
move by the sensitivity, so at the worst neighbor all scores in A fall and all others rise (the scores in A stay, if all
must move in the same direction). Only ``p = P(A)`` and the factor e^range between the two weights remain, that is, two
candidates. The divergence is concave in p, so a tangent at any p gives a rigorous upper bound.

*Reduction of noisy max.* Fix the noise of all candidates but i. Candidate i wins if its noise exceeds some r, and
between neighbors r moves by at most the range. ``P(noise > r - range) / P(noise > r)`` is at most e^range for one-sided
and two-sided exponential noise, whose tails fall at rate 1 and no faster. Two candidates, one of them far behind, come
arbitrarily close to that bound.

The sparse vector technique
---------------------------
One noisy threshold is compared with many noisy questions. The probability of an outcome is ``integral over t of f(t) *
product over answers below of F(t - q_i) * product over answers above of S(t - q_i)``, where f is the density of the
threshold's noise and F and S are the distribution function and the tail of a question's noise.

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

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting.concentrated import range_rho
from dither.audit.proof.certificate import BITS, FAR, ZERO, Evidence, Interval, exp_interval, no_noise, zcdp_delta
from dither.audit.proof.noise import laplace_shift
from dither.exact import exp_neg, log
from dither.randomness import Exponential as ExponentialLaw

_ONE = 1 << BITS
_MAX_BINOMIAL = 4000
_WIDE = 1000


def score_range(mechanism: Any) -> Fraction:
    """Return the largest change of the log-weights of two candidates relative to each other.

    It is rate times sensitivity, doubled unless all scores move in one direction.
    """
    change = arguments.sensitivity(mechanism.sensitivity) * Fraction(mechanism.rate)
    return change if mechanism.monotone else 2 * change


def negligible_weight() -> Fraction:
    """Return an upper bound on ``exp(-200)``, the relative weight of a candidate whose log-weight is 200 lower."""
    return Fraction(exp_neg(FAR, 2 * BITS)[1], 1 << 2 * BITS)


def exponential_selection(length: Fraction, pair: str) -> Evidence:
    """Return the evidence of selection by weights whose logarithms move relative to each other by at most ``length``.

    The privacy losses are those of two candidates; one 200 units behind attains at least ``length - exp(-200)``.
    """
    loss = max(length - negligible_weight(), Fraction(0)), length
    return Evidence(loss, partial(_exponential_curve, length), pair, "enumeration")


def _exponential_curve(length: Fraction, epsilon: Fraction) -> Interval:
    """Enclose the largest ``p - e^epsilon p / (p + (1 - p) e^length)`` over p from 0 to 1.

    The function is concave: its value where the slope is nearly 0 is a lower bound, and with the slope's size added an
    upper one.
    """
    if epsilon >= length:
        return ZERO
    if length - epsilon > _WIDE:  # two candidates with probabilities e^-400 and 1 - e^-400
        return 1 - Fraction(1, _ONE), Fraction(1)
    width, bits = float(length), BITS + 3 * int(length - epsilon)
    u, s, one = exp_interval(epsilon - length, bits), exp_interval(-length, bits), 1 << bits
    p = Fraction(min(1.0, -math.expm1((float(epsilon) - width) / 2) / -math.expm1(-width)))
    for _ in range(4):  # Newton steps towards slope 0, where the tangent is flat
        rest = 1 - (1 - s[0]) * p
        p -= (rest * rest - u[0]) * rest / (2 * u[0] * (1 - s[0]))
        p = Fraction(min(max(math.floor(p * one), 0), one), one)
    rest_low, rest_high = 1 - (1 - s[0]) * p, 1 - (1 - s[1]) * p
    low, high = p - u[1] * p / rest_low, p - u[0] * p / rest_high
    slope = max(abs(1 - u[0] / rest_high**2), abs(1 - u[1] / rest_low**2))
    return low, high + slope


def noisy_max_selection(length: Fraction, noise: str) -> Evidence:
    """Return the evidence of report noisy max with ``noise`` "exponential" (one-sided) or "laplace" (two-sided).

    ``length`` is how far the scores of two candidates can move relative to each other, in scales of the noise; the loss
    is at most that. One-sided: of two candidates the one behind by g wins with probability ``e^-g / 2``, so the winner
    is a threshold on Laplace noise, and the bound is attained. Two-sided: it wins with probability ``W(g) = e^-g (2 +
    g) / 4``, and the loss of a candidate that falls from g to g + length, ``ln(W(g) / W(g + length))``, tends to
    ``length`` as g grows; ``g + length = (length + 2) 2^64`` gives the lower end.
    """
    pair = "two candidates, one far behind, each moved against the other as far as the contract allows"
    method = "closed tail comparison"
    if noise == "exponential":
        two_candidates = laplace_shift(length, ExponentialLaw(symmetric=True))
        return Evidence((length, length), partial(_one_sided_curve, two_candidates), pair, method)
    behind = (length + 2) * (1 << 64)
    low = length + Fraction(log(1 - length / (2 + behind), BITS)[0], _ONE)
    return Evidence((max(low, Fraction(0)), length), partial(_two_sided_curve, length), pair, method)


def _one_sided_curve(two_candidates: Evidence, epsilon: Fraction) -> Interval:
    """Enclose delta(epsilon) of noisy max: from below by two candidates, whose evidence is given; from above by 1."""
    return two_candidates.at(epsilon)[0], Fraction(1)


def _two_sided_curve(length: Fraction, epsilon: Fraction) -> Interval:
    """Enclose delta(epsilon) of noisy max: from below by two candidates with 25 gaps between them, from above by 1."""
    gaps = (np.linspace(-3.0, 3.0, 25) - float(length) / 2).tolist()
    return max(two_sided_delta(gap, length, epsilon) for gap in gaps), Fraction(1)


def two_sided_delta(gap: float, length: Fraction, epsilon: Fraction) -> Fraction:
    """Return a lower bound on ``W(gap) - e^epsilon W(gap + length)``, where W(g) is the probability that a candidate
    behind by g wins.
    """
    growth = exp_interval(epsilon)[1] if epsilon < 600 else Fraction(2) ** 1000
    win = laplace_difference_tail(1.0, 1.0, gap)[0]
    return win - growth * laplace_difference_tail(1.0, 1.0, gap + float(length))[1]


def top_k_selection(k: int, length: Fraction) -> Evidence:
    """Return the evidence of k selections one after another, each without the candidates already selected.

    *Upper bound.* The privacy losses of each selection lie in an interval of that length, whatever was selected
    before, so losses add up, and so does rho (the smallest for such a selection). *Lower bound.* k candidates 200
    units behind a large one, selected in order, have a loss of ``k (length - k exp(-200))``. And among very many
    candidates of two kinds, the first moved down and the others up, k selections are k independent draws of a kind,
    so that the number of the first kind is binomial.
    """
    rho = k * range_rho(length)
    return Evidence(
        (max(k * (length - k * negligible_weight()), Fraction(0)), k * length),
        partial(_top_k_curve, k, length, rho),
        "k candidates far behind, moved against all others as far as the contract allows",
        "enumeration of one choice, composed by the sum of losses and by zCDP",
        (Fraction(0), rho),
    )


def _top_k_curve(k: int, length: Fraction, rho: Fraction, epsilon: Fraction) -> Interval:
    """Enclose delta(epsilon) of k selections by the exponential mechanism: from below by one selection and by k
    independent ones, from above by zCDP.

    ``length`` is the epsilon of one selection and ``rho`` that of zCDP for all of them. In the lower bound each of k
    independent selections is a coin; several probabilities of it are tried.
    """
    if epsilon >= k * length:
        return ZERO
    width = float(length)
    shares = np.unique(np.concatenate([np.linspace(0.02, 0.98, 25), [1 / (1 + math.exp(-width / 2))]]))
    low = exponential_selection(length, "").at(epsilon)[0]
    if k <= _MAX_BINOMIAL and length < 500 and epsilon < 500:
        low = max(low, *(_binomial_delta(k, share, width, float(epsilon)) for share in shares.tolist()))
    return low, zcdp_delta(rho, epsilon)


def _binomial_delta(k: int, share: float, length: float, epsilon: float) -> Fraction:
    """Return a lower bound on delta(epsilon) for k draws between two kinds, where the probability of the first kind is
    p on one data set and ``p / (p + (1-p) e^length)`` on the other.

    It is computed in floats: each term has a relative error below 1e-9, and that much is subtracted.
    """
    j = np.arange(k + 1)
    log_counts = np.array([math.lgamma(k + 1) - math.lgamma(i + 1) - math.lgamma(k - i + 1) for i in j.tolist()])
    other = share / (share + (1 - share) * math.exp(length))
    p = np.exp(log_counts + j * math.log(share) + (k - j) * math.log1p(-share))
    q = np.exp(log_counts + j * math.log(other) + (k - j) * math.log1p(-other) + epsilon)
    better = p > q
    return Fraction(max(0.0, float(p[better].sum()) * (1 - 1e-9) - float(q[better].sum()) * (1 + 1e-9)))


_CELLS = 4096
_CUTOFF = 45.0
_SLACK = 1e-9


def laplace_difference_tail(z_scale: float, y_scale: float, gap: float) -> Interval:
    """Enclose P(z_scale * Z - y_scale * Y >= gap) for independent standard Laplace Z and Y, by quadrature.

    The range of Y is divided into cells, in each of which the tail of Z lies between its values at the ends; the
    probability outside of all cells is e^-45. Floating-point errors are far below the slack.
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
    """Return P(Z <= z) for the standard Laplace distribution, in floats."""
    result: NDArray[np.float64] = np.where(
        z < 0, 0.5 * np.exp(np.minimum(z, 0.0)), 1 - 0.5 * np.exp(-np.maximum(z, 0.0))
    )
    return result


def above_threshold(
    sensitivity: Fraction, threshold_scale: float, scale: float, limit: int, *, monotone: bool
) -> Evidence:
    """Return the evidence of a session with at most ``limit`` answers above a threshold, under Laplace noise.

    ``sensitivity`` bounds the change of every question, ``threshold_scale`` is the scale of the noise on the threshold
    and ``scale`` that on the questions. The threshold costs sensitivity / threshold_scale; each answer above costs
    2 sensitivity / scale, or half of that if ``monotone``: one person moves all questions in one direction (Lyu, Su and
    Li 2017, theorems 4 and 5).
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
    """Enclose delta(epsilon) from below by a single question that falls by the sensitivity and is answered above.

    The scales are those of the noise on the threshold and on the question. The gap between question and threshold is
    tried at 13 values, each of which gives a lower bound; 1 is the upper bound.
    """
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
