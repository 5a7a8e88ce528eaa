"""Post-processing, which leaves a guarantee as it is, and sampling, which lowers its epsilon."""

from __future__ import annotations

from fractions import Fraction

from dither import arguments
from dither.errors import WrongType
from dither.exact import exp, exp_neg, log, up
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP

_BITS = 96


def post_process(guarantee: Guarantee) -> Guarantee:
    """What is promised by anything computed from a release, without another look at the data: the same.

    *Why.* Every event about the result is an event about the release (Dwork and Roth 2014, proposition 2.1).

    >>> post_process(PureDP(1))
    PureDP(1)
    """
    return _guarantee(guarantee)


def amplify(guarantee: Guarantee, rate: float | Fraction) -> Guarantee:
    """What a release from a random sample promises, where every person is in the sample with this probability,
    independently of all others, and it stays secret who is.

    *Statement.* An (epsilon, delta)-DP release becomes ``(ln(1 + rate (e^epsilon - 1)), rate * delta)``-DP when
    one person is added or removed (Balle, Barthe and Gaboardi 2018, theorem 8). *Why.* With probability 1 - rate the
    person was not looked at, and the two cases differ by e^epsilon at most.

    >>> amplify(PureDP(1), 0.01)
    PureDP(0.0170368632362)
    >>> amplify(ApproxDP(1, 1e-6), 0.01)
    ApproxDP(0.0170368632362, 1e-08)
    """
    exact_rate, checked = arguments.rate(rate), _guarantee(guarantee)
    if isinstance(checked, ZCDP):
        raise WrongType(
            "guarantee", "PureDP or ApproxDP", "ZCDP", "no rho is known for samples: convert with to_approx(delta)"
        )
    epsilon = amplified(checked.exact[0], exact_rate)
    return PureDP(epsilon) if isinstance(checked, PureDP) else ApproxDP(epsilon, exact_rate * checked.exact[1])


def amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    """``ln(1 + rate (e^epsilon - 1))``, rounded up, and never above epsilon.

    >>> float(amplified(Fraction(1), Fraction(1, 2))) < 0.6202
    True
    """
    if epsilon == 0 or rate == 1:
        return epsilon
    if epsilon > 400:  # epsilon + ln(rate + (1 - rate) e^-epsilon)
        inner, start = rate + (1 - rate) * Fraction(exp_neg(epsilon, _BITS)[1], 1 << _BITS), epsilon
    else:
        bits = _BITS + 2 * max(0, (rate * epsilon).denominator.bit_length() - (rate * epsilon).numerator.bit_length())
        inner, start = 1 + rate * (Fraction(exp(epsilon, bits)[1], 1 << bits) - 1), Fraction(0)
    bits = _BITS + 2 * max(0, inner.denominator.bit_length() // 2)
    return min(epsilon, Fraction(up(start + Fraction(log(inner, bits)[1], 1 << bits))))


def _guarantee(value: object) -> Guarantee:
    if not isinstance(value, Guarantee):
        raise WrongType("guarantee", "PureDP, ApproxDP or ZCDP", type(value).__name__, "pass a guarantee")
    return value
