"""Accountants: from the events of a workload to its guarantee. Every answer is valid, so the smallest may be taken.

*basic*, *advanced*, *zcdp* and *renyi* add up numbers that are fixed before each release; *pld* needs the whole
workload in advance. Every answer is rounded up. An event of which an accountant knows too little is refused.

>>> from dither.accounting import GaussianNoise, LaplaceNoise
>>> workload = 20 * LaplaceNoise(10) + 10 * GaussianNoise(20)
>>> result = best_of(workload, delta=1e-6)
>>> result.accountant, result.guarantee <= zcdp.guarantee(workload, 1e-6)
('pld', True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dither import arguments
from dither.accounting.composition import in_floats, privacy_loss
from dither.accounting.concentrated import pure_rho
from dither.accounting.events import Event, require_event, unknown
from dither.accounting.pairs import Floats
from dither.errors import DitherError, InvalidArgument, NotPrivate, fix_by_options
from dither.exact import exp, log, square_root, up
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.present import chart, markup

_BITS = 96
_MANY = 64  # parts of a sum, above which long denominators are rounded away


class Accountant:
    """Base: ``supports`` and ``guarantee``.

    >>> [accountant.name for accountant in ACCOUNTANTS]
    ['basic', 'advanced', 'zcdp', 'renyi', 'pld']
    """

    name: str
    needs: str
    """What it must know of every leaf."""

    def knows(self, leaf: Event) -> bool:
        """Return whether a leaf, the event of one release, states the quantity that this accountant adds up."""
        raise AssertionError("each accountant knows what it needs")

    def supports(self, event: Event) -> bool:
        """Return whether enough is known of every leaf of the tree.

        >>> from dither.accounting import Approximate
        >>> [accountant.name for accountant in ACCOUNTANTS if accountant.supports(Approximate(1, 1e-6))]
        ['basic', 'advanced', 'pld']
        """
        return require_event(event).fold(self.knows, lambda parts: all(known for known, _ in parts), all)

    def guarantee(self, event: Event, delta: float | Fraction | None = None) -> Guarantee:
        """Return what the tree promises at this delta."""
        raise AssertionError("each accountant adds up in its own way")

    def _checked(self, event: Event) -> Event:
        """Return the event, or refuse it if the accountant does not know one of its leaves."""

        def leaf(item: Event) -> None:
            """Refuse a leaf that the accountant does not know."""
            if not self.knows(item):
                raise unknown(item, self.needs)

        require_event(event).fold(leaf, _nothing, _nothing)
        return event

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self).__qualname__)


class Basic(Accountant):
    """Losses add up, deltas too. Events that need a delta share evenly what is left of it.

    >>> from dither.accounting import Parallel, Pure
    >>> basic.guarantee(Parallel(Pure(0.1) + Pure(0.2), Pure(0.25)))
    PureDP(0.3)
    """

    name = "basic"
    needs = "an epsilon at a delta"

    def knows(self, leaf: Event) -> bool:
        """Return whether a leaf has a pure epsilon, or an epsilon at some delta."""
        return leaf.pure_epsilon is not None or leaf.epsilon_at(max(leaf.own_delta, Fraction(1, 2))) is not None

    def guarantee(self, event: Event, delta: float | Fraction | None = None) -> PureDP | ApproxDP:
        """Return epsilon-DP, if every event is pure; otherwise (epsilon, delta)-DP."""
        tree, leaf_epsilon, exact_delta = self._leaf_epsilons(event, delta, Fraction(1))
        epsilon = tree.fold(leaf_epsilon, _sum, max)
        return PureDP(epsilon) if exact_delta is None else ApproxDP(epsilon, exact_delta)

    def _leaf_epsilons(
        self, event: Event, delta: float | Fraction | None, fraction: Fraction
    ) -> tuple[Event, Callable[[Event], Fraction], Fraction | None]:
        """Prepare the epsilons of the leaves of ``event``, each at its share of the total ``delta``.

        Leaves that come with a delta of their own (``own_delta``) use that. Of the rest of ``delta``, the part
        ``fraction`` (from 0 to 1) is divided evenly among the leaves that have a finite epsilon only at a delta that
        they must be given.

        Returns the checked event, a function from a leaf to its epsilon, and the total delta, which is None if every
        leaf is purely epsilon-DP.
        """
        tree = self._checked(event)
        own_delta = tree.fold(lambda leaf: leaf.own_delta, _sum, max)
        needing = tree.fold(lambda leaf: Fraction(_needs_delta(leaf)), _sum, max)
        if needing == own_delta == 0:
            return tree, lambda leaf: leaf.pure_epsilon or Fraction(0), None
        total = own_delta if delta is None and needing == 0 else _delta(delta)
        if total < own_delta or (needing and total == own_delta):
            raise NotPrivate(
                "delta",
                f"more than {up(own_delta):g}, the sum of the events' own deltas",
                f"{up(total):g}",
                "pass a larger delta, or give each event a smaller one",
            )
        share = fraction * (total - own_delta) / needing if needing else Fraction(0)

        def leaf(item: Event) -> Fraction:
            """Return the epsilon of a leaf, pure or at its share of delta."""
            epsilon = item.pure_epsilon if item.pure_epsilon is not None else item.epsilon_at(item.own_delta or share)
            if epsilon is None:
                raise unknown(item, self.needs)
            return epsilon

        return tree, leaf, total


class Advanced(Basic):
    """Advanced composition for losses that differ (Kairouz, Oh and Viswanath 2015, theorem 3.5).

    *Statement.* With ``A = sum of e tanh(e/2)`` and ``B = sum of e^2`` the whole is (epsilon, d)-DP, beside the
    deltas of its parts, for the least epsilon of ``sum of e``, ``A + sqrt(2 B ln(1/d))`` and ``A + sqrt(2 B ln(exp(1)
    + sqrt(B)/d))``. *Why.* The sum of the losses of as many randomized responses is nearly normal.

    >>> from dither.accounting import Pure
    >>> advanced.guarantee(1000 * Pure(0.01), 1e-6)
    ApproxDP(1.64149112321, 1e-06)
    """

    name = "advanced"

    def guarantee(self, event: Event, delta: float | Fraction | None = None) -> PureDP | ApproxDP:
        """Return (epsilon, delta)-DP by advanced composition, never worse than basic composition.

        ``drift``, ``squares`` and ``d`` are the A, B and d of the class.
        """
        plain = super().guarantee(event, delta)
        whole = _delta(delta)
        tree, leaf, total = self._leaf_epsilons(event, delta, Fraction(1, 2))
        own_delta = tree.fold(lambda item: item.own_delta, _sum, max)
        needs_delta = total is not None and tree.fold(_needs_delta, _any, any)
        d = (whole - own_delta) / (2 if needs_delta else 1)
        drift = tree.fold(lambda item: _drift(leaf(item)), _sum, max)
        squares = tree.fold(lambda item: leaf(item) ** 2, _sum, max)
        epsilon = plain.exact[0]
        if d > 0:
            one = 1 << _BITS
            log_inverse = Fraction(-log(d, _BITS)[0], one)
            root = Fraction(square_root(squares, _BITS)[1], one)
            log_sum = Fraction(log(Fraction(exp(Fraction(1), _BITS)[1], one) + root / d, _BITS)[1], one)
            spread = Fraction(square_root(2 * squares * min(log_inverse, log_sum), _BITS)[1], one)
            epsilon = min(epsilon, Fraction(up(drift + spread)))
        return ApproxDP(epsilon, whole)


class Zcdp(Accountant):
    """rho adds up (Bun and Steinke 2016), with the smallest rho of each law.

    >>> from dither.accounting import LaplaceNoise
    >>> zcdp.guarantee(10 * LaplaceNoise(10))
    ZCDP(0.0483741803596)
    """

    name = "zcdp"
    needs = "a rho"

    def knows(self, leaf: Event) -> bool:
        """Return whether a leaf has a rho."""
        return leaf.zcdp is not None

    def guarantee(self, event: Event, delta: float | Fraction | None = None) -> ZCDP | ApproxDP:
        """Return rho-zCDP; (epsilon, delta)-DP if a delta is given."""
        result = ZCDP(self._checked(event).fold(lambda leaf: leaf.zcdp or Fraction(0), _sum, max))
        return result if delta is None else ApproxDP(result.epsilon_at(_delta(delta)), _delta(delta))


class Renyi(Accountant):
    """Renyi divergences add up at every order (Mironov 2017); the best order is taken.

    The conversion is that of :meth:`dither.ZCDP.to_approx`, valid at every order by itself.

    >>> from dither.accounting import GaussianNoise, PoissonSampled
    >>> sgd = 14_000 * PoissonSampled(GaussianNoise(1.1), 256 / 60_000)
    >>> renyi.guarantee(sgd, 1e-5)
    ApproxDP(2.59088403374, 1e-05)
    """

    name = "renyi"
    needs = "Renyi divergences"

    def knows(self, leaf: Event) -> bool:
        """Return whether the leaf has Rényi divergences."""
        return leaf.renyi(_ORDERS[:1]) is not None

    def guarantee(self, event: Event, delta: float | Fraction | None = None) -> ApproxDP:
        """Return (epsilon, delta)-DP."""
        exact = _delta(delta)
        return ApproxDP(in_floats(event, lambda: self._epsilon(event, exact)), exact)

    def _epsilon(self, event: Event, exact: Fraction) -> Fraction:
        """Return the smallest epsilon over all Rényi orders at delta = ``exact``, computed in floats and rounded up.

        The divergences of the leaves of ``event`` add up at every order a, and ``slope`` is what the conversion from
        Rényi-DP to (epsilon, delta)-DP adds: ``(ln(1/delta) + a ln(1 - 1/a) - ln(a - 1)) / (a - 1)``.
        """

        def leaf(item: Event) -> Floats:
            """Return the divergences of a leaf at all orders."""
            result = item.renyi(_ORDERS)
            if result is None:
                raise unknown(item, self.needs)
            return result

        def add(parts: list[tuple[Floats, int]]) -> Floats:
            """Return the sum of the parts' divergences."""
            total: Floats = np.sum([divergence * count for divergence, count in parts], axis=0)
            return total

        total = require_event(event).fold(leaf, add, lambda result: np.max(result, axis=0))
        inverse = math.log(exact.denominator) - math.log(exact.numerator)
        slope = (inverse + _ORDERS * np.log1p(-1 / _ORDERS) - np.log(_ORDERS - 1)) / (_ORDERS - 1)
        # the sum of n terms and the logarithms are right to far more than this
        best = float(np.min(total * (1 + 2.0**-36) + slope + 2.0**-40 * np.abs(slope)))
        if not best < math.inf:
            raise unknown(event, "a Renyi divergence at some order")
        return Fraction(max(best, 0.0))


class PrivacyLoss(Accountant):
    """The distribution of the whole loss (:mod:`dither.accounting.distribution`), for workloads fixed in advance: the
    tightest, save that of choices it knows the envelope of their curves only, which Renyi divergences may beat.

    >>> from dither.accounting import GaussianNoise, LaplaceNoise
    >>> round(pld.guarantee(20 * LaplaceNoise(10) + 10 * GaussianNoise(20), 1e-6).epsilon, 3)
    1.945
    """

    name = "pld"
    needs = "a dominating pair"

    def knows(self, leaf: Event) -> bool:
        """Return whether a leaf has a dominating pair."""
        return leaf.pairs is not None

    def guarantee(self, event: Event, delta: float | Fraction | None = None) -> ApproxDP:
        """Return (epsilon, delta)-DP."""
        exact = _delta(delta)
        return ApproxDP(in_floats(event, lambda: privacy_loss(self._checked(event), exact)), exact)


basic, advanced, zcdp, renyi, pld = Basic(), Advanced(), Zcdp(), Renyi(), PrivacyLoss()
ACCOUNTANTS: tuple[Accountant, ...] = (basic, advanced, zcdp, renyi, pld)


@dataclass(frozen=True)
class Best:
    """The smallest epsilon, the accountant that found it, and the answer of each accountant: a guarantee, or why not.

    >>> from dither.accounting import Pure
    >>> best_of(Pure(1)).accountant
    'basic'
    """

    guarantee: Guarantee
    accountant: str
    answers: tuple[tuple[str, Guarantee | str], ...]

    def _repr_html_(self) -> str:
        """Return the comparison for a notebook: the epsilon of every accountant, and why others have none."""
        numbers = [(name, answer) for name, answer in self.answers if isinstance(answer, Guarantee)]
        bars = [(name, float(answer.exact[0]), 0.0) for name, answer in numbers]
        others = [f"{name}: {answer}" for name, answer in self.answers if not isinstance(answer, Guarantee)]
        return markup.block(
            markup.heading(f"{self.guarantee}, by {self.accountant}"),
            markup.picture(chart.bars(bars, title="The epsilon of each accountant")),
            markup.lines(others),
        )


def best_of(
    event: Event, delta: float | Fraction | None = None, accountants: Iterable[Accountant] = ACCOUNTANTS
) -> Best:
    """Return the smallest epsilon at this delta over all accountants; without a delta, the smallest pure epsilon.

    Which is the smallest depends on nothing but the workload, which is public, so choosing costs nothing. The answer
    of *pld* holds for a workload fixed in advance only; pass the others for one that is not.

    >>> from dither.accounting import Pure
    >>> best_of(10 * Pure(0.1)).guarantee
    PureDP(1)
    >>> best_of(50 * Pure(0.1), 1e-6).accountant
    'pld'
    """
    tree = require_event(event)
    answers: list[tuple[str, Guarantee | str]] = []
    best: tuple[Fraction, str, Guarantee] | None = None
    if delta is None:
        result = basic.guarantee(tree)
        return Best(result, basic.name, ((basic.name, result),))
    exact_delta = _delta(delta)
    for accountant in accountants:
        try:
            answer = accountant.guarantee(tree, delta)
        except DitherError as refusal:
            answers.append((accountant.name, str(refusal)))
            continue
        answers.append((accountant.name, answer))
        epsilon = answer.epsilon_at(exact_delta)
        if best is None or epsilon < best[0]:
            best = epsilon, accountant.name, answer
    if best is None:
        raise NotPrivate(
            "event",
            "an event that some accountant can add up",
            "; ".join(f"{name}: {text}" for name, text in answers) or "no accountant",
            "describe it by Approximate(epsilon, delta), or pass a larger delta",
        )
    pure = isinstance(best[2], PureDP) and best[0] == best[2].exact[0]
    guarantee = best[2] if pure else ApproxDP(best[0], exact_delta)
    return Best(guarantee, best[1], tuple(answers))


def _orders() -> Floats:
    """Return the orders: from just above 1 to a million, each 2 % above the one before, and whole ones for samples."""
    orders = 1 + np.exp(np.linspace(math.log(1e-4), math.log(1e6), 1160))
    whole = np.concatenate([np.arange(2.0, 65.0), np.floor(64 * 1.03 ** np.arange(1, 71))])
    return np.unique(np.concatenate([orders, whole[whole <= 512]]))


_ORDERS = _orders()
_ORDERS.setflags(write=False)


def _delta(delta: float | Fraction | None) -> Fraction:
    """Return delta as an exact number; None is refused with an example."""
    if delta is None:
        raise InvalidArgument(
            "delta", "a number in (0, 1)", "none", *fix_by_options("pass {delta}, for example", delta=1e-6)
        )
    return arguments.delta(delta)


def _nothing(_: object) -> None:
    """Return None, for a fold that only visits the leaves."""


def _needs_delta(leaf: Event) -> bool:
    """Return whether a leaf has a finite epsilon only at a delta that it must be given."""
    return leaf.pure_epsilon is None and leaf.own_delta == 0


def _drift(epsilon: Fraction) -> Fraction:
    """Return the largest mean loss of an epsilon-DP release, ``epsilon tanh(epsilon / 2)``; 0 at 0."""
    return pure_rho(epsilon) if epsilon else Fraction(0)


def _any(parts: list[tuple[bool, int]]) -> bool:
    """Return whether any part of a sequence has the property."""
    return any(known for known, _ in parts)


def _sum(parts: list[tuple[Fraction, int]]) -> Fraction:
    """Return the exact sum; where there are many parts with long denominators, each is rounded up first."""
    if len(parts) > _MANY:
        parts = [(x if x.denominator < 1 << 64 else Fraction(up(x)), count) for x, count in parts]
        # a sample of the denominators says whether exact addition stays cheap
        scale = math.lcm(*(x.denominator for x, _ in parts[:_MANY]))
        if scale.bit_length() > 1024:
            parts = [(Fraction(up(x)), count) for x, count in parts]
    return sum((x * count for x, count in parts), Fraction(0))
