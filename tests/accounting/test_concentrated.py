"""Each rho against the divergence itself, in mpmath, over orders from just above 1 to a million."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from oracles import real

from dither.accounting import BoundedRange, DiscreteLaplaceNoise, Event, LaplaceNoise, Pure, ResponseReport
from support import each

ORDERS = ["1.000000001", "1.0001", "1.1", "1.5", "2", "2.5", "5", "17", "128", "1000", "1e6"]
LOSSES = [1e-6, 1e-3, 0.1, 0.5, 1, 2, 5, 20, 100]


def laplace(e: Any, a: Any) -> Any:
    return mp.log(a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)) / (a - 1)


def pure(e: Any, a: Any) -> Any:
    return mp.log(mp.cosh((a - mp.mpf(1) / 2) * e) / mp.cosh(e / 2)) / (a - 1)


def response(categories: int) -> Callable[[Any, Any], Any]:
    def divergence(e: Any, a: Any) -> Any:
        total = mp.exp(e) + categories - 1
        return mp.log((mp.exp(a * e) + mp.exp((1 - a) * e) + categories - 2) / total) / (a - 1)

    return divergence


def bounded_range(e: Any, a: Any) -> Any:
    """The largest over the places t of the interval, by golden section on the two-point laws themselves."""

    def at(t: Any) -> Any:
        p = (1 - mp.exp(t - e)) / (1 - mp.exp(-e))
        return mp.log(p * mp.exp((a - 1) * t) + (1 - p) * mp.exp((a - 1) * (t - e))) / (a - 1)

    low, high = e * mp.mpf(10) ** -12, e * (1 - mp.mpf(10) ** -12)
    for _ in range(160):
        left, right = low + (high - low) * mp.mpf("0.382"), high - (high - low) * mp.mpf("0.382")
        low, high = (low, right) if at(left) > at(right) else (left, high)
    return at((low + high) / 2)


def discrete(sensitivity: int) -> Callable[[Any, Any], Any]:
    def divergence(e: Any, a: Any) -> Any:
        t = mp.exp(-e / sensitivity)
        total = mp.exp((a - 1) * e) + mp.exp(-a * e)
        total += (1 - t) * mp.fsum(
            t**k * mp.exp((a - 1) * (e - 2 * k * e / sensitivity)) for k in range(1, sensitivity)
        )
        return mp.log(total / (1 + t)) / (a - 1)

    return divergence


KINDS: list[tuple[str, Callable[[float], Event], Callable[[Any, Any], Any], bool]] = [
    ("pure", Pure, pure, True),
    ("laplace", lambda e: LaplaceNoise(1 / Fraction(repr(e))), laplace, True),
    ("range", BoundedRange, bounded_range, True),
    ("discrete 1", lambda e: DiscreteLaplaceNoise(1 / Fraction(repr(e)), 1), discrete(1), True),
    ("discrete 2", lambda e: DiscreteLaplaceNoise(2 / Fraction(repr(e)), 2), discrete(2), True),
    ("discrete 7", lambda e: DiscreteLaplaceNoise(7 / Fraction(repr(e)), 7), discrete(7), True),
    ("report of 2", lambda e: ResponseReport(e, 2), response(2), True),
    ("report of 4", lambda e: ResponseReport(e, 4), response(4), True),
    ("report of 9", lambda e: ResponseReport(e, 9), response(9), False),
    ("report of 1000", lambda e: ResponseReport(e, 1000), response(1000), False),
]


@each("loss", LOSSES)
@each(("make", "divergence", "tight"), [kind[1:] for kind in KINDS])
def test_rho_bounds_every_order_and_no_smaller_one_does(
    make: Callable[[float], Event], divergence: Callable[[Any, Any], Any], tight: bool, loss: float
) -> None:
    event = make(loss)
    assert event.zcdp is not None
    with mp.workdps(60):
        rho, e = real(event.zcdp), real(loss)
        assert rho <= e * e / 2
        for order in map(mp.mpf, ORDERS):
            assert divergence(e, order) <= order * rho * (1 + mp.mpf(10) ** -30)
        near = mp.mpf(ORDERS[0])
        if tight:
            assert divergence(e, near) > near * rho * (1 - mp.mpf(10) ** -6)


@each("loss", LOSSES)
@each(("make", "divergence"), [kind[1:3] for kind in KINDS])
def test_divergences_are_never_below_the_truth_and_near_it(
    make: Callable[[float], Event], divergence: Callable[[Any, Any], Any], loss: float
) -> None:
    orders = [1.0001, 1.1, 2.0, 5.0, 128.0, 10000.0]
    result = make(loss).renyi(np.array(orders))
    assert result is not None
    with mp.workdps(60):
        for order, value in zip(orders, result.tolist(), strict=True):
            truth = divergence(real(loss), mp.mpf(order))
            assert truth <= mp.mpf(value)
            assert mp.mpf(value) <= truth * mp.mpf("1.001") + mp.mpf(10) ** -9 / (order - 1)


def test_the_range_beats_an_eighth_of_the_square() -> None:
    for loss in (0.1, 1, 10):
        result = BoundedRange(loss).zcdp
        assert result < Fraction(repr(loss)) ** 2 / 8
    assert float(BoundedRange(10).zcdp) == pytest.approx(10 / (1 - np.exp(-10)) - 1 - np.log(10 / (1 - np.exp(-10))))
