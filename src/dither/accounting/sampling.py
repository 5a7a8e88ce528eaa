"""Releases from a random sample of the people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dither import arguments
from dither.accounting.amplification import amplified, amplify
from dither.accounting.events import ERROR, Event, check
from dither.accounting.noise_events import GaussianNoise
from dither.accounting.pairs import Floats, Pair, SampledPair
from dither.errors import NotPrivate
from dither.guarantees import Guarantee
from dither.neighbors import AddRemove, Neighbors, ReplaceOne, relation

_MAX_ORDER = 512


@dataclass(frozen=True, init=False, repr=False)
class PoissonSampled(Event):
    """A release from a sample in which every person is with this probability, independently, and secretly.

    *Statement.* ``(ln(1 + rate (e^epsilon - 1)), rate * delta)``-DP if the release is (epsilon, delta)-DP, when one
    person is added or removed. When one is replaced by another this does not hold, so it is refused; two
    neighbors by addition and removal are one replacement (:meth:`dither.Guarantee.group`).

    >>> from dither.accounting import Pure
    >>> PoissonSampled(Pure(1), 0.01).guarantee
    PureDP(0.0170368632362)
    """

    event: Event
    rate: Fraction

    def __init__(self, event: Event, rate: float | Fraction, neighbors: Neighbors = AddRemove) -> None:
        if relation(neighbors) is not AddRemove or check(event).relation is ReplaceOne:
            raise NotPrivate(
                "neighbors",
                "AddRemove: the amplification is proved for one person added or removed",
                ReplaceOne,
                "compute sensitivities for AddRemove, and take .guarantee.group(2) for a replacement",
            )
        self._freeze(event=event, rate=arguments.rate(rate))

    @property
    def relation(self) -> Neighbors:
        """One person added or removed."""
        return AddRemove

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the release, amplified."""
        return amplify(self.event.guarantee, self.rate)

    @property
    def pure_epsilon(self) -> Fraction | None:
        """``ln(1 + rate (e^epsilon - 1))``."""
        whole = self.event.fold(lambda leaf: leaf.pure_epsilon, _sum, _most)
        return None if whole is None else amplified(whole, self.rate)

    @property
    def own_delta(self) -> Fraction:
        """rate times that of the release."""
        whole: Fraction = self.event.fold(lambda leaf: leaf.own_delta, _total, max)
        return self.rate * whole

    @property
    def pairs(self) -> tuple[Pair, Pair] | None:
        """One for each direction."""
        pair, rate = self.event.pair, float(self.rate)
        if pair is None or self.rate == 1:
            return None if pair is None else (pair, pair)
        return SampledPair(pair, rate, adding=False), SampledPair(pair, rate, adding=True)

    def renyi(self, orders: Floats) -> Floats | None:
        """Gaussian noise: ``ln(sum over k of C(a, k) (1 - q)^(a-k) q^k exp(k (k - 1) / (2 ratio^2))) / (a - 1)`` at
        whole orders (Mironov, Talwar and Zhang 2019). Other noise: that of the pure epsilon.
        """
        if not isinstance(self.event, GaussianNoise):
            return None if self.pure_epsilon is None else super().renyi(orders)
        if self.rate == 1:
            return self.event.renyi(orders)
        result = np.full(orders.size, np.inf)
        for index in np.flatnonzero((orders == np.floor(orders)) & (orders >= 2) & (orders <= _MAX_ORDER)):
            result[index] = self._gaussian(float(self.event.ratio), int(orders[index]))
        return result

    def _gaussian(self, ratio: float, order: int) -> float:
        k = np.arange(order + 1)
        logs = np.cumsum(np.log(np.concatenate([[1.0], np.arange(1, order + 1)])))
        q = float(self.rate)
        terms = logs[-1] - logs - logs[::-1] + (order - k) * math.log1p(-q) + k * math.log(q)
        terms += k * (k - 1) / (2 * ratio * ratio)
        top = float(terms.max())
        error = ERROR * (1 + 4 * float(np.abs(terms).max()) + 4 * float(logs[-1]) + order)
        return (max(0.0, top + math.log(float(np.exp(terms - top).sum()))) + error) / (order - 1)

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        """That of the release at delta / rate, amplified."""
        if self.pure_epsilon is not None:
            return self.pure_epsilon
        inner = min(delta / self.rate, Fraction(999_999, 1_000_000))
        epsilon = self.event.epsilon_at(inner)
        return None if epsilon is None else amplified(epsilon, self.rate)

    def scaled(self, factor: Fraction) -> Event:
        """The release with more noise, the sample as it was."""
        return PoissonSampled(self.event.scaled(factor), self.rate)


def _total(parts: list[tuple[Fraction, int]]) -> Fraction:
    return sum((part * count for part, count in parts), Fraction(0))


def _sum(parts: list[tuple[Fraction | None, int]]) -> Fraction | None:
    known = [epsilon * count for epsilon, count in parts if epsilon is not None]
    return sum(known, Fraction(0)) if len(known) == len(parts) else None


def _most(result: list[Fraction | None]) -> Fraction | None:
    known = [epsilon for epsilon in result if epsilon is not None]
    return max(known) if len(known) == len(result) else None
