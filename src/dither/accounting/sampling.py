"""Releases from a random sample of the people, which lowers epsilon, and post-processing, which leaves it as it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dither import arguments
from dither.accounting.events import ERROR, Event, GaussianNoise, require_event
from dither.accounting.pairs import Floats, LossPair, SampledPair
from dither.errors import NotPrivate, WrongType
from dither.exact import exp, exp_neg, log, up
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP, require_guarantee
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
        """Describe the release ``event`` on a Poisson sample of the people.

        ``rate`` is the probability, from 0 to 1, with which each person is in the sample. ``neighbors`` must be
        ``AddRemove``: anything else is refused, see the class.
        """
        if relation(neighbors) is not AddRemove or require_event(event).relation is ReplaceOne:
            raise NotPrivate(
                "neighbors",
                "AddRemove: the amplification is proved for one person added or removed",
                ReplaceOne,
                "compute sensitivities for AddRemove, and take .guarantee.group(2) for a replacement",
            )
        self._freeze(event=event, rate=arguments.rate(rate))

    @property
    def relation(self) -> Neighbors:
        """Return AddRemove, for which amplification is proved."""
        return AddRemove

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee on a sample: ``ln(1 + rate (e^epsilon - 1))`` and ``rate delta`` (:func:`amplify`)."""
        return amplify(self.event.guarantee, self.rate)

    @property
    def pure_epsilon(self) -> Fraction | None:
        """Return ``ln(1 + rate (e^epsilon - 1))``; None if the release has no pure guarantee."""
        whole = self.event.fold(lambda leaf: leaf.pure_epsilon, _sum, _most)
        return None if whole is None else amplified(whole, self.rate)

    @property
    def own_delta(self) -> Fraction:
        """Return rate times the delta of the release, which remains at every epsilon."""
        whole: Fraction = self.event.fold(lambda leaf: leaf.own_delta, _total, max)
        return self.rate * whole

    @property
    def pairs(self) -> tuple[LossPair, LossPair] | None:
        """Return a dominating pair for a person removed and one for a person added; None if the release has none."""
        pair, rate = self.event.pair, float(self.rate)
        if pair is None or self.rate == 1:
            return None if pair is None else (pair, pair)
        return SampledPair(pair, rate, adding=False), SampledPair(pair, rate, adding=True)

    def renyi(self, orders: Floats) -> Floats | None:
        """Return the divergences of a sample, in closed form for Gaussian noise and from the pure epsilon for other
        noise.

        For Gaussian noise they are ``ln(sum over k of C(a, k) (1 - q)^(a-k) q^k exp(k (k - 1) / (2 ratio^2))) / (a -
        1)`` at whole orders, infinite at others (Mironov, Talwar and Zhang 2019).
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
        """Return the divergence of sampled Gaussian noise at a whole order a, with a bound on rounding added.

        It is ``ln(sum over k of C(a, k) (1 - q)^(a - k) q^k exp(k (k - 1) / (2 ratio^2))) / (a - 1)``, q the rate.
        """
        k = np.arange(order + 1)
        logs = np.cumsum(np.log(np.concatenate([[1.0], np.arange(1, order + 1)])))
        q = float(self.rate)
        terms = logs[-1] - logs - logs[::-1] + (order - k) * math.log1p(-q) + k * math.log(q)
        terms += k * (k - 1) / (2 * ratio * ratio)
        top = float(terms.max())
        error = ERROR * (1 + 4 * float(np.abs(terms).max()) + 4 * float(logs[-1]) + order)
        return (max(0.0, top + math.log(float(np.exp(terms - top).sum()))) + error) / (order - 1)

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        """Return the epsilon of the release at delta / rate, amplified; None if the release has none."""
        if self.pure_epsilon is not None:
            return self.pure_epsilon
        inner = min(delta / self.rate, Fraction(999_999, 1_000_000))
        epsilon = self.event.epsilon_at(inner)
        return None if epsilon is None else amplified(epsilon, self.rate)

    def scaled(self, factor: Fraction) -> Event:
        """Return the release with ``factor`` times the noise, on a sample of the same rate."""
        return PoissonSampled(self.event.scaled(factor), self.rate)


def _total(parts: list[tuple[Fraction, int]]) -> Fraction:
    """Return the sum of numbers with their repetitions, for a fold over a sequence of events."""
    return sum((part * count for part, count in parts), Fraction(0))


def _sum(parts: list[tuple[Fraction | None, int]]) -> Fraction | None:
    """Return the sum of epsilons with their repetitions, for a fold over a sequence; None if one is unknown."""
    known = [epsilon * count for epsilon, count in parts if epsilon is not None]
    return sum(known, Fraction(0)) if len(known) == len(parts) else None


def _most(result: list[Fraction | None]) -> Fraction | None:
    """Return the largest epsilon, for a fold over disjoint groups; None if one is unknown."""
    known = [epsilon for epsilon in result if epsilon is not None]
    return max(known) if len(known) == len(result) else None


_BITS = 96


def post_process(guarantee: Guarantee) -> Guarantee:
    """Return the guarantee of anything computed from a release without another look at the data: it is unchanged.

    *Why.* Every event about the result is an event about the release (Dwork and Roth 2014, proposition 2.1).

    >>> post_process(PureDP(1))
    PureDP(1)
    """
    return require_guarantee(guarantee)


def amplify(guarantee: Guarantee, rate: float | Fraction) -> Guarantee:
    """Return the guarantee of a release from a random sample in which every person is with this probability.

    People are sampled independently of each other, and it stays secret who is in the sample.

    *Statement.* An (epsilon, delta)-DP release becomes ``(ln(1 + rate (e^epsilon - 1)), rate * delta)``-DP when
    one person is added or removed (Balle, Barthe and Gaboardi 2018, theorem 8). *Why.* With probability 1 - rate the
    person was not looked at, and the two cases differ by e^epsilon at most.

    >>> amplify(PureDP(1), 0.01)
    PureDP(0.0170368632362)
    >>> amplify(ApproxDP(1, 1e-6), 0.01)
    ApproxDP(0.0170368632362, 1e-08)
    """
    exact_rate, checked = arguments.rate(rate), require_guarantee(guarantee)
    if isinstance(checked, ZCDP):
        raise WrongType(
            "guarantee", "PureDP or ApproxDP", "ZCDP", "no rho is known for samples: convert with to_approx(delta)"
        )
    epsilon = amplified(checked.exact[0], exact_rate)
    return PureDP(epsilon) if isinstance(checked, PureDP) else ApproxDP(epsilon, exact_rate * checked.exact[1])


def amplified(epsilon: Fraction, rate: Fraction) -> Fraction:
    """Return the epsilon of a sample, ``ln(1 + rate (e^epsilon - 1))``, rounded up, and never above epsilon.

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
