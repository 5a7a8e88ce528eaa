"""Choosing among candidates, and reporting one of a few categories: finitely many outputs.

*Reduction of scores to two candidates* (weights ``exp(rate * score)``). For a set A of candidates with total weight W
and the rest with V, ``P(A) - e^epsilon Q(A)`` falls with the neighbour's weight of A and rises with that of the rest;
the contract lets each score move by the sensitivity, so the worst neighbour has all of A down and all of the rest up
(all scores of A where they were, if all must move the same way). Only ``p = P(A)`` and the factor e^range between the
two remain: two candidates. The divergence is concave in p, so a tangent at a good p is a proved upper bound.

*Reduction of noisy max.* Fix the noise of all candidates but i: i wins if its noise exceeds some r, and between
neighbours r moves by at most the range. ``P(noise > r - range) / P(noise > r)`` is at most e^range for the one-sided
and the two-sided exponential law, whose tails fall at rate 1 and no faster. Two candidates, one far behind, come as
close to that as one likes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dither import arguments
from dither.accounting.concentrated import range_rho
from dither.audit.proof.evidence import BITS, FAR, NOTHING, Evidence, Interval, exp_ends, no_noise
from dither.audit.proof.shifts import laplace_shift
from dither.audit.proof.sparse_vector import exceeds
from dither.exact import exp_neg, log
from dither.exact.search import minimize
from dither.randomness import Exponential as ExponentialLaw

_ONE = 1 << BITS
_MOST_COUNTED = 4000
_WIDE = 1000


def reach(mechanism: Any) -> Fraction:
    """How far the weights' exponents of two candidates can move against each other: rate times sensitivity, twice
    unless all scores move the same way.

    >>> import dither as dp
    >>> reach(dp.Exponential(sensitivity=2, epsilon=1))
    Fraction(1, 1)
    """
    moved = arguments.sensitivity(mechanism.sensitivity) * Fraction(mechanism.rate)
    return moved if mechanism.monotone else 2 * moved


def vanishing() -> Fraction:
    """What a candidate 200 units behind can weigh.

    >>> float(vanishing()) < 1e-85
    True
    """
    return Fraction(exp_neg(FAR, 2 * BITS)[1], 1 << 2 * BITS)


def exponential_choice(length: Fraction, pair: str) -> Evidence:
    """Choices with weights whose exponents move against each other by at most ``length``.

    The losses are those of two candidates; one 200 units behind shows ``length - exp(-200)`` at least.

    >>> round(float(exponential_choice(Fraction(1), "").at(Fraction(0))[1]), 6)
    0.244919
    """

    def curve(at: Fraction) -> Interval:
        if at >= length:
            return NOTHING
        if length - at > _WIDE:  # two candidates with shares e^-400 and 1 - e^-400
            return 1 - Fraction(1, _ONE), Fraction(1)
        gap, bits = float(length), BITS + 3 * int(length - at)
        u, s, one = exp_ends(at - length, bits), exp_ends(-length, bits), 1 << bits
        p = Fraction(min(1.0, -math.expm1((float(at) - gap) / 2) / -math.expm1(-gap)))
        for _ in range(4):  # Newton's steps to where the slope is 0, so that the tangent is flat
            rest = 1 - (1 - s[0]) * p
            p -= (rest * rest - u[0]) * rest / (2 * u[0] * (1 - s[0]))
            p = Fraction(min(max(math.floor(p * one), 0), one), one)
        rest_low, rest_high = 1 - (1 - s[0]) * p, 1 - (1 - s[1]) * p
        low, high = p - u[1] * p / rest_low, p - u[0] * p / rest_high
        slope = max(abs(1 - u[0] / rest_high**2), abs(1 - u[1] / rest_low**2))
        return low, high + slope

    return Evidence((max(length - vanishing(), Fraction(0)), length), curve, pair, "enumeration")


def noisy_choice(length: Fraction, noise: str) -> Evidence:
    """Report noisy max with one-sided ("exponential") or two-sided ("laplace") exponential noise.

    One-sided: of two candidates the one behind by g wins with probability e^-g / 2, so between them the winner is a
    threshold on Laplace noise. Two-sided: it wins with probability ``e^-g (2 + g) / 4``.

    >>> noisy_choice(Fraction(1), "exponential").loss
    (Fraction(1, 1), Fraction(1, 1))
    """
    pair = "two candidates, one far behind, each moved against the other as far as the contract allows"
    method = "closed tail comparison"
    if noise == "exponential":
        two = laplace_shift(length, ExponentialLaw(symmetric=True))
        return Evidence((length, length), lambda at: (two.at(at)[0], Fraction(1)), pair, method)
    behind = (length + 2) * (1 << 64)
    low = length + Fraction(log(1 - length / (2 + behind), BITS)[0], _ONE)

    def curve(at: Fraction) -> Interval:
        gaps = np.linspace(-3.0, 3.0, 25) - float(length) / 2
        return max((two_sided(gap, length, at) for gap in gaps.tolist()), default=Fraction(0)), Fraction(1)

    return Evidence((max(low, Fraction(0)), length), curve, pair, method)


def two_sided(gap: float, length: Fraction, at: Fraction) -> Fraction:
    """``W(gap) - e^at W(gap + length)`` from below, W the chance that a candidate behind by that much wins.

    >>> float(two_sided(-0.5, Fraction(1), Fraction(0))) > 0.2
    True
    """
    growth = exp_ends(at)[1] if at < 600 else Fraction(2) ** 1000
    return exceeds(1.0, 1.0, gap)[0] - growth * exceeds(1.0, 1.0, gap + float(length))[1]


def top_choices(k: int, length: Fraction) -> Evidence:
    """k choices, one after another, without what was chosen before.

    Above: each choice has losses in an interval of that length, whatever was chosen before, so that losses add up,
    and so does rho (the smallest of such a choice). Below: k candidates 200 units behind a large one, chosen in
    order, lose ``k (length - k exp(-200))``; and among very many candidates of two kinds, the first moved down, the
    others up, k choices are k independent ones of a kind, of which the number of the first kind is binomial.

    >>> top_choices(3, Fraction(1, 2)).loss[1]
    Fraction(3, 2)
    """
    rho = k * range_rho(length)

    def curve(at: Fraction) -> Interval:
        if at >= k * length:
            return NOTHING
        spread = float(length)
        shares = np.unique(np.concatenate([np.linspace(0.02, 0.98, 25), [1 / (1 + math.exp(-spread / 2))]]))
        low = exponential_choice(length, "").at(at)[0]
        if k <= _MOST_COUNTED and length < 500 and at < 500:
            low = max(low, max(_binomial(k, share, spread, float(at)) for share in shares.tolist()))
        return low, concentrated_delta(rho, at)

    return Evidence(
        (max(k * (length - k * vanishing()), Fraction(0)), k * length),
        curve,
        "k candidates far behind, moved against all others as far as the contract allows",
        "enumeration of one choice, composed by the sum of losses and by zCDP",
        (Fraction(0), rho),
    )


def _binomial(k: int, share: float, length: float, at: float) -> Fraction:
    """Below delta(at) of k choices between two kinds, the share of the first being p and ``p / (p + (1-p) e^length)``.

    In floats: each term is good to a relative 1e-9, and that much is taken off.
    """
    j = np.arange(k + 1)
    counts = np.array([math.lgamma(k + 1) - math.lgamma(i + 1) - math.lgamma(k - i + 1) for i in j.tolist()])
    other = share / (share + (1 - share) * math.exp(length))
    p = np.exp(counts + j * math.log(share) + (k - j) * math.log1p(-share))
    q = np.exp(counts + j * math.log(other) + (k - j) * math.log1p(-other) + at)
    better = p > q
    return Fraction(max(0.0, float(p[better].sum()) * (1 - 1e-9) - float(q[better].sum()) * (1 + 1e-9)))


def concentrated_delta(rho: Fraction, at: Fraction) -> Fraction:
    """The delta of rho-zCDP at epsilon, from above: ``exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1)`` for any
    order a > 1 (Canonne, Kamath and Steinke 2020, proposition 12); floats find the order.

    >>> import dither as dp
    >>> epsilon = dp.ZCDP(0.5).to_approx(1e-6).epsilon
    >>> round(float(concentrated_delta(Fraction(1, 2), Fraction(epsilon))) * 1e6, 9)
    1.0
    """
    fast, wanted = float(rho), float(at)

    def exponent(t: float) -> float:
        a = 1 + math.exp(t)
        return (a - 1) * (a * fast - wanted) + a * math.log1p(-1 / a) - t

    a = 1 + Fraction(math.exp(minimize(exponent, -18.0, 36.0, steps=200)))
    one = 1 << 96
    result = (a - 1) * (a * rho - at) + (a * log(1 - 1 / a, 96)[1] - log(a - 1, 96)[0]) / one
    return Fraction(1) if result >= 0 else exp_ends(Fraction(math.ceil(result * one), one), 2048)[1]


def response(truth: Interval, categories: int) -> Evidence:
    """A report of k categories that is true with probability ``truth``, and otherwise one of the others at random.

    All pairs of categories are alike: one report is likelier by p / r, one by its inverse, the rest as likely as
    before, r = (1 - p)/(k - 1).

    >>> response((Fraction(3, 4), Fraction(3, 4)), 2).at(Fraction(0))
    (Fraction(1, 2), Fraction(1, 2))
    """
    others = categories - 1
    if truth[1] >= 1 or truth[0] <= 0:
        return no_noise("any two categories")
    p, r = truth, ((1 - truth[1]) / others, (1 - truth[0]) / others)
    if p[0] + p[1] < r[0] + r[1]:
        p, r = r, p
    odds = p[0] / r[1], p[1] / r[0]
    loss = max(Fraction(0), Fraction(log(odds[0], BITS)[0], _ONE)), Fraction(log(odds[1], BITS)[1], _ONE)

    def curve(at: Fraction) -> Interval:
        growth = exp_ends(at)
        return p[0] - growth[1] * r[1], p[1] - growth[0] * r[0]

    return Evidence(loss, curve, "any two categories", "enumeration")
