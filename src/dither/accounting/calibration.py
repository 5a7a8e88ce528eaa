"""Calibration: the noise that a guarantee needs, and the epsilon that an acceptable error needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol

from dither import arguments
from dither.accounting.accountants import ACCOUNTANTS, basic, best_of, pld, renyi, zcdp
from dither.accounting.events import Event, Sequential, require_event
from dither.errors import DitherError, InvalidArgument, NotPrivate, WrongType
from dither.exact.search import bisect_floats, crossing
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP, require_guarantee

_TOLERANCE = 1e-6
_WIDEST = 60.0  # factors from 2^-60 to 2^60 are tried


class HasError(Protocol):
    """A mechanism that knows its error."""

    def error(self, *, confidence: float) -> float:
        """Return the half-width of the noise at this confidence, which falls as epsilon grows."""


@dataclass(frozen=True)
class Calibration:
    """A workload with the noise that a guarantee needs: its events, its guarantee, and the accountant that proves it.

    >>> import dither as dp
    >>> calibrate(4 * dp.accounting.LaplaceNoise(1), dp.PureDP(2)).factor
    Fraction(2, 1)
    """

    events: tuple[Event, ...]
    guarantee: Guarantee
    accountant: str
    factor: Fraction
    """The noise of the events asked for, times this (and divided by their weights)."""


def calibrate(events: Event | Sequence[Event], total: Guarantee, weights: Sequence[float] | None = None) -> Calibration:
    """Return the smallest noise with which the events together keep to a guarantee.

    The events say how much noise each gets relative to the others; all of it is multiplied by one factor, and by
    1/weight for each event: one of weight 2 gets half the noise. The smallest factor, to a millionth, for which
    some accountant proves the guarantee; for a :class:`~dither.PureDP` total the epsilons add up to it exactly. The
    workload counts as fixed in advance.

    >>> import dither as dp
    >>> from dither.accounting import GaussianNoise, LaplaceNoise
    >>> result = calibrate([LaplaceNoise(1), GaussianNoise(1)], dp.ApproxDP(1, 1e-6), weights=[1, 2])
    >>> result.guarantee <= dp.ApproxDP(1, 1e-6), result.accountant
    (True, 'pld')
    >>> calibrate([LaplaceNoise(1), LaplaceNoise(1)], dp.PureDP(1), weights=[1, 3]).events
    (LaplaceNoise(4), LaplaceNoise(Fraction(4, 3)))
    """
    parts = _parts(events)
    shares = [Fraction(1)] * len(parts) if weights is None else _weights(weights, len(parts))
    lighter = [part.scaled(1 / share) for part, share in zip(parts, shares, strict=True)]

    def scaled(factor: Fraction) -> tuple[Event, ...]:
        """Return all events with ``factor`` times the noise."""
        return tuple(part.scaled(factor) for part in lighter)

    evaluate = _evaluator(total)
    factor = _exact_factor(lighter, total)
    if factor is None:
        factor = _least_factor(lambda t: evaluate(Sequential(*scaled(t))).excess)
    result = scaled(factor)
    judgement = evaluate(Sequential(*result))
    return Calibration(result, judgement.guarantee, judgement.accountant, factor)


def epsilon_for_error(make: Callable[[float], HasError], error: float, confidence: float = 0.95) -> float:
    """Return the smallest epsilon whose mechanism stays within ``error`` with probability ``confidence``.

    ``make`` builds the mechanism for an epsilon; its ``error(confidence=...)`` must fall as epsilon grows. The epsilon
    is bracketed in steps of a factor 4 between about 1e-9 and 1e6 and found by bisection, to a relative 1e-9.

    >>> import dither as dp
    >>> epsilon = epsilon_for_error(lambda e: dp.Laplace(1, e), error=5)
    >>> dp.Laplace(1, epsilon).error() <= 5 < dp.Laplace(1, 0.99 * epsilon).error()
    True
    """
    width, level = arguments.positive(error, "error"), arguments.confidence(confidence)

    def fits(epsilon: float) -> bool:
        """Return whether the mechanism at this epsilon stays within the error."""
        try:
            return bool(make(epsilon).error(confidence=level) <= width)
        except InvalidArgument:  # too small an epsilon for this mechanism
            if epsilon >= 1:
                raise
            return False

    low, high = 1.0, 1.0
    while fits(low) and low > 1e-9:
        low, high = low / 4, low
    while not fits(high):
        low, high = high, 4 * high
        if high > 1e6:
            raise InvalidArgument("error", "an error that epsilon = 1e6 can reach", error, "accept a larger error")
    return bisect_floats(fits, low, high, geometric=True, tolerance=1e-9).holds


def split(total: Guarantee, weights: Sequence[float]) -> tuple[Guarantee, ...]:
    """Split a guarantee in proportion to the weights, into shares that add up to it exactly.

    >>> import dither as dp
    >>> split(dp.PureDP(1), [1, 3]), sum(split(dp.ApproxDP(1, 1e-6), [1, 1, 1])) == dp.ApproxDP(1, 1e-6)
    ((PureDP(0.25), PureDP(0.75)), True)
    """
    whole, shares = require_guarantee(total, "total"), _weights(weights, None)
    return tuple(type(whole)(*(share * number for number in whole.exact)) for share in shares)


class _Judgement(NamedTuple):
    """What a workload costs, compared with the guarantee that it may have."""

    excess: float
    """The logarithm of the workload's epsilon (or rho) over the allowed one: positive where it costs too much."""
    guarantee: Guarantee
    accountant: str
    """The name of the accountant that proves the guarantee."""


def _evaluator(total: Guarantee) -> Callable[[Event], _Judgement]:
    """Return a function that judges a workload (an event) against ``total``; a total of epsilon 0 is refused."""
    whole = require_guarantee(total, "total")
    target = whole.exact[0]
    if target == 0:
        raise InvalidArgument("total", "an epsilon above 0", 0, "pass ApproxDP(1, 1e-6), for example")

    def judge(event: Event) -> _Judgement:
        """Return the cost of a workload compared with the total, by the best accountant for the total's kind."""
        if isinstance(whole, ApproxDP):
            # where these three know enough, no other can win by more than their rounding
            useful = (basic, renyi, pld) if renyi.supports(event) and pld.supports(event) else ACCOUNTANTS
            result = best_of(event, whole.exact[1], useful)
            epsilon, promised, name = result.guarantee.epsilon_at(whole.exact[1]), result.guarantee, result.accountant
        else:
            accountant = zcdp if isinstance(whole, ZCDP) else basic
            promised, name = accountant.guarantee(event), accountant.name
            if type(promised) is not type(whole):
                raise NotPrivate(
                    "total",
                    "a guarantee that these events can have",
                    type(whole).__name__,
                    "ask for ApproxDP(epsilon, delta), or choose events with a pure epsilon",
                )
            epsilon = promised.exact[0]
        # below and above the total must not be confused, so that is decided exactly
        excess = math.log(epsilon / target) if epsilon else -700.0
        return _Judgement(max(excess, 1e-300) if epsilon > target else min(excess, -1e-300), promised, name)

    return judge


def _exact_factor(parts: Sequence[Event], total: Guarantee) -> Fraction | None:
    """Return the exact factor for the noise where all epsilons are pure and in proportion to 1/noise; else None.

    Proportion is tested by doubling the noise.
    """
    if not isinstance(total, PureDP):
        return None
    whole, twice = (basic.guarantee(Sequential(*(part.scaled(Fraction(n)) for part in parts))) for n in (1, 2))
    if not isinstance(whole, PureDP) or whole.exact_epsilon != 2 * twice.exact[0]:
        return None
    return whole.exact_epsilon / total.exact_epsilon


def _least_factor(excess: Callable[[Fraction], float]) -> Fraction:
    """Return the smallest factor of the noise for which ``excess(factor)`` is at most 0, to a relative 1e-6.

    The factor is bracketed by doubling its logarithm and found by false position there.
    """

    def of(power: float) -> float:
        """Return the excess at a power of two times the noise; infinite where no accountant can compute it."""
        try:
            return excess(Fraction(2.0**power))
        except DitherError:
            if power >= _WIDEST:
                raise
            return math.inf

    low, high = -1.0, 0.0
    while of(high) > 0:
        low, high = high, high + 1 if high < 8 else 2 * high
        if high > 2 * _WIDEST:
            raise NotPrivate(
                "total",
                "a guarantee that some amount of noise can keep",
                "a smaller one",
                "raise its delta above that of the events, or leave such events out",
            )
    while low > -_WIDEST and of(low) <= 0:
        low, high = 2 * low, low
    # shifted, so that the tolerance is one of the factor
    root = crossing(lambda x: of(low + x), 0.0, high - low, _TOLERANCE / (4 * (high - low)))
    return Fraction(2.0 ** (low + root))


def _parts(events: Event | Sequence[Event]) -> list[Event]:
    """Return one event or a list of events as a list."""
    if isinstance(events, Event):
        return [events]
    if not isinstance(events, Sequence) or isinstance(events, (str, bytes)):
        raise WrongType("events", "an event or a list of them", type(events).__name__, "pass [event, event]")
    if not events:
        raise InvalidArgument("events", "at least one", "none", "pass the event of each release")
    return [require_event(event) for event in events]


def _weights(weights: Sequence[float], count: int | None) -> list[Fraction]:
    """Return weights divided by their sum, as exact numbers that add up to 1."""
    if (
        not isinstance(weights, Sequence)
        or isinstance(weights, (str, bytes))
        or len(weights) != (count or len(weights))
    ):
        raise InvalidArgument(
            "weights",
            "one positive number for each event",
            "a different number of weights",
            "pass weights=[2, 1], for example",
        )
    if not weights:
        raise InvalidArgument("weights", "at least one", "none", "pass weights=[2, 1], for example")
    exact = [Fraction(repr(arguments.positive(weight, "weights"))) for weight in weights]
    return [weight / sum(exact) for weight in exact]
