"""Exact privacy curves of small workloads in mpmath, from the laws themselves, and Google's accountant."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath as mp
from dp_accounting.pld import privacy_loss_distribution as google

DIGITS = 40
Law = dict[Any, Any]
"""Mass of P for each loss; the loss None is infinite."""


def real(value: Any) -> Any:
    if isinstance(value, mp.mpf):
        return value
    exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    return mp.mpf(exact.numerator) / exact.denominator


def response(epsilon: Any, categories: int = 2, delta: Any = 0) -> Law:
    e, left = Fraction(repr(epsilon)) if isinstance(epsilon, float) else Fraction(epsilon), 1 - real(delta)
    total = mp.exp(real(e)) + categories - 1
    law = {e: left * mp.exp(real(e)) / total, -e: left / total, None: real(delta)}
    if categories > 2:
        law[Fraction(0)] = left * (categories - 2) / total
    return law


def discrete_laplace(scale: Any, sensitivity: int, extent: int = 4000) -> Law:
    """Summed up over the integers, one by one."""
    b = Fraction(scale)
    t = mp.exp(-1 / real(b))
    law: Law = {}
    for k in range(-extent, sensitivity + extent + 1):
        loss = Fraction(abs(k - sensitivity) - abs(k)) / b
        law[loss] = law.get(loss, mp.mpf(0)) + (1 - t) / (1 + t) * t ** abs(k)
    return law


def composed(laws: Sequence[Law]) -> Law:
    total: Law = {Fraction(0): mp.mpf(1)}
    for law in laws:
        grown: Law = {}
        for a, p in total.items():
            for b, q in law.items():
                loss = None if a is None or b is None else a + b
                grown[loss] = grown.get(loss, mp.mpf(0)) + p * q
        total = grown
    return total


def delta_of(law: Law, epsilon: Any) -> Any:
    at = real(epsilon)
    return law.get(None, mp.mpf(0)) + mp.fsum(
        p * -mp.expm1(at - real(loss)) for loss, p in law.items() if loss is not None and real(loss) > at
    )


def epsilon_of(law: Law, delta: Any) -> Any:
    """By bisection on the exact curve."""
    return solve(lambda epsilon: delta_of(law, epsilon), real(delta))


def solve(curve: Any, delta: Any) -> Any:
    low, high = mp.mpf(0), mp.mpf(1)
    if curve(low) <= delta:
        return low
    while curve(high) > delta:
        high *= 2
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (low, middle) if curve(middle) <= delta else (middle, high)
    return high


def gaussian_delta(epsilon: Any, ratio: Any) -> Any:
    """Also for negative epsilon."""
    near, far = 1 / (2 * ratio) - epsilon * ratio, -1 / (2 * ratio) - epsilon * ratio
    return mp.ncdf(near) - mp.exp(epsilon) * mp.ncdf(far)


def laplace_and_gaussian(epsilon: Any, loss: Any, ratio: Any) -> Any:
    """One Laplace and one Gaussian release: over the Laplace noise, the Gaussian curve that is left."""

    def inner(x: Any) -> Any:
        return gaussian_delta(epsilon - x, ratio)

    ends = inner(loss) / 2 + inner(-loss) * mp.exp(-loss) / 2
    return ends + mp.quad(lambda x: inner(x) * mp.exp((x - loss) / 2) / 4, mp.linspace(-loss, loss, 5))


def google_epsilon(
    delta: float,
    *,
    laplace: Sequence[float] = (),
    gaussian: Sequence[tuple[float, float, int]] = (),
    interval: float = 1e-4,
    pessimistic: bool = True,
) -> float:
    """Laplace by ratio, Gaussian by (ratio, sampling rate, times)."""
    options: dict[str, Any] = {"value_discretization_interval": interval, "pessimistic_estimate": pessimistic}
    if not pessimistic:
        options["use_connect_dots"] = False
    total = google.identity(interval, pessimistic_estimate=pessimistic)
    for ratio in laplace:
        total = total.compose(google.from_laplace_mechanism(ratio, **options))
    for ratio, rate, times in gaussian:
        one = google.from_gaussian_mechanism(ratio, sampling_prob=rate, **options)
        total = total.compose(one.self_compose(times))
    return float(total.get_epsilon_for_delta(delta))
