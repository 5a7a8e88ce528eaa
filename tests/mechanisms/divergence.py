"""Exact divergences of known laws, from their densities, in mpmath: the oracle of every privacy test here."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import mpmath as mp

from dither import DitherError
from support import refuses

mp.mp.dps = 40

Pmf = dict[Any, Any]
Density = Callable[[Any], Any]


def number(value: Any) -> Any:
    if isinstance(value, mp.mpf):
        return value
    exact = Fraction(value)
    return mp.mpf(exact.numerator) / exact.denominator


def budget(value: Any) -> Any:
    """A float budget means the decimal it prints as."""
    return number(Fraction(repr(value))) if isinstance(value, float) else number(value)


def discrete_laplace(scale: float, center: int, extent: int) -> Pmf:
    q = mp.exp(-1 / number(scale))
    return {k: (1 - q) / (1 + q) * q ** abs(k - center) for k in range(center - extent, center + extent + 1)}


def rounded(tail: Density, center: Any, extent: int) -> Pmf:
    """The nearest integer to center + Z, Z symmetric with P(|Z| > z) = tail(z)."""

    def above(z: Any) -> Any:
        return tail(z) / 2 if z >= 0 else 1 - tail(-z) / 2

    half, middle = mp.mpf(1) / 2, int(mp.nint(center))
    return {k: above(k - half - center) - above(k + half - center) for k in range(middle - extent, middle + extent + 1)}


def hockey_stick(p: Pmf, q: Pmf, epsilon: Any) -> Any:
    """sup over events of P(A) - e^epsilon Q(A), the worse of the two directions, over the common window."""
    grow = mp.exp(budget(epsilon))
    common = p.keys() & q.keys()
    return max(
        mp.fsum(max(mp.mpf(0), p[k] - grow * q[k]) for k in common),
        mp.fsum(max(mp.mpf(0), q[k] - grow * p[k]) for k in common),
    )


def largest_loss(p: Pmf, q: Pmf) -> Any:
    return max(abs(mp.log(p[k] / q[k])) for k in p.keys() & q.keys())


def hockey_stick_of_densities(p: Density, q: Density, breaks: Iterable[Any], epsilon: Any) -> Any:
    """The same for densities that are smooth between ``breaks``; where the integrand changes sign is found first."""
    ends = sorted({number(x) for x in breaks})
    grow = mp.exp(budget(epsilon))

    def one_way(a: Density, b: Density) -> Any:
        def excess(z: Any) -> Any:
            return a(z) - grow * b(z)

        total = mp.mpf(0)
        for left, right in itertools.pairwise(ends):
            inset = (right - left) * mp.mpf(10) ** -30
            low, high = left + inset, right - inset
            at_low, at_high = excess(low), excess(high)
            if at_low <= 0 and at_high <= 0:
                continue
            if at_low > 0 and at_high > 0:
                total += mp.quad(excess, [low, high])
                continue
            inside, outside = (low, high) if at_low > 0 else (high, low)
            for _ in range(130):
                middle = (inside + outside) / 2
                inside, outside = (middle, outside) if excess(middle) > 0 else (inside, middle)
            total += mp.quad(excess, sorted([low if at_low > 0 else high, inside]))
        return total

    return max(one_way(p, q), one_way(q, p))


def refusal(act: Callable[[], object], *secrets: object) -> str:
    """``act`` must be refused by an error that says expected, got and fix, and none of the secrets; its text."""
    with refuses(DitherError, hiding=secrets) as refused:
        act()
    assert isinstance(refused.value, (ValueError, TypeError)), repr(refused.value)
    assert refused.value.__cause__ is None
    return str(refused.value)
