"""Accountants: from what was done to what is promised. Each one's answer is valid, so the smallest may be taken.

*basic*, *advanced*, *zcdp* and *renyi* add up numbers that are fixed before each release; *pld* needs the whole
workload in advance. Every answer is rounded up. An event of which an accountant knows too little is refused.

>>> from dither.accounting import GaussianNoise, LaplaceNoise
>>> workload = 20 * LaplaceNoise(10) + 10 * GaussianNoise(20)
>>> found = best_of(workload, delta=1e-6)
>>> found.accountant, found.guarantee <= zcdp.guarantee(workload, 1e-6)
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
from dither.accounting.events import Event, check, unknown
from dither.accounting.pairs import Floats
from dither.errors import DitherError, InvalidArgument, NotPrivate, message
from dither.exact import exp, log, square_root, up
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP

_BITS = 96
_MANY = 64


class Accountant:
    """Base: ``supports`` and ``guarantee``.

    >>> [accountant.name for accountant in ACCOUNTANTS]
    ['basic', 'advanced', 'zcdp', 'renyi', 'pld']
    """

    name: str
    needs: str
    """What it must know of every leaf."""

    def knows(self, leaf: Event) -> bool:
        """Whether enough is known of one leaf."""
        raise AssertionError("each accountant knows what it needs")

    def supports(self, event: Event) -> bool:
        """Whether enough is known of every leaf of the tree.

        >>> from dither.accounting import Approximate
        >>> [accountant.name for accountant in ACCOUNTANTS if accountant.supports(Approximate(1, 1e-6))]
        ['basic', 'advanced', 'pld']
        """
        return check(event).fold(self.knows, lambda parts: all(fine for fine, _ in parts), all)

    def guarantee(self, event: Event, delta: float | Fraction | None = None) -> Guarantee:
        """What the tree promises at this delta."""
        raise AssertionError("each accountant adds up in its own way")

    def _checked(self, event: Event) -> Event:
        def leaf(one: Event) -> None:
            if not self.knows(one):
                raise unknown(one, self.needs)

        check(event).fold(leaf, _nothing, _nothing)
        return event

    def __repr__(self) -> str:
        return self.name


class Basic(Accountant):
    """Losses add up, deltas too. Events that need a delta share evenly what is left of it.

    >>> from dither.accounting import Parallel, Pure
    >>> basic.guarantee(Parallel(Pure(0.1) + Pure(0.2), Pure(0.25)))
    PureDP(0.3)
    """

    name = "basic"
    needs = "an epsilon at a delta"

    def knows(self, leaf: Event) -> bool:
        """A pure loss, or an epsilon at some delta."""
        return leaf.pure_loss is not None or leaf.epsilon_at(max(leaf.own_delta, Fraction(1, 2))) is not None

    def guarantee(self, event: Event, delta: float | Fraction | None = None) -> PureDP | ApproxDP:
        """epsilon-DP, if every event is; otherwise (epsilon, delta)-DP."""
        losses = self._losses(event, delta, Fraction(1))
        total = losses[0].fold(losses[1], _sum, max)
        return PureDP(total) if losses[2] is None else ApproxDP(total, losses[2])

    def _losses(
        self, event: Event, delta: float | Fraction | None, part: Fraction
    ) -> tuple[Event, Callable[[Event], Fraction], Fraction | None]:
        """The tree, the loss of each leaf, and delta: ``part`` of what the leaves' own leave is shared out."""
        tree = self._checked(event)
        own = tree.fold(lambda leaf: leaf.own_delta, _sum, max)
        needy = tree.fold(lambda leaf: Fraction(leaf.pure_loss is None and leaf.own_delta == 0), _sum, max)
        if needy == own == 0:
            return tree, _pure_loss, None
        total = own if delta is None and needy == 0 else _delta(delta)
        if total < own or (needy and total == own):
            raise NotPrivate(
                message(
                    "delta",
                    f"more than {up(own):g}, the sum of the events' own deltas",
                    f"{up(total):g}",
                    "pass a larger delta, or give each event a smaller one",
                )
            )
        share = part * (total - own) / needy if needy else Fraction(0)

        def leaf(one: Event) -> Fraction:
            loss = one.pure_loss if one.pure_loss is not None else one.epsilon_at(one.own_delta or share)
            if loss is None:
                raise unknown(one, self.needs)
            return loss

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
        """(epsilon, delta)-DP; never above basic."""
        plain = super().guarantee(event, delta)
        whole = _delta(delta)
        tree, leaf, total = self._losses(event, delta, Fraction(1, 2))
        own = tree.fold(lambda one: one.own_delta, _sum, max)
        needy = total is not None and tree.fold(lambda one: one.pure_loss is None and one.own_delta == 0, _any, any)
        rest = (whole - own) / (2 if needy else 1)
        first = tree.fold(lambda one: _drift(leaf(one)), _sum, max)
        second = tree.fold(lambda one: leaf(one) ** 2, _sum, max)
        epsilon = plain.exact[0]
        if rest > 0:
            one = 1 << _BITS
            inverse = Fraction(-log(rest, _BITS)[0], one)
            root = Fraction(square_root(second, _BITS)[1], one)
            other = Fraction(log(Fraction(exp(Fraction(1), _BITS)[1], one) + root / rest, _BITS)[1], one)
            spread = Fraction(square_root(2 * second * min(inverse, other), _BITS)[1], one)
            epsilon = min(epsilon, Fraction(up(first + spread)))
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
        """A rho."""
        return leaf.zcdp is not None

    def guarantee(self, event: Event, delta: float | Fraction | None = None) -> ZCDP | ApproxDP:
        """rho-zCDP; (epsilon, delta)-DP if a delta is given."""
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
        """Divergences."""
        return leaf.renyi(_ORDERS[:1]) is not None

    def guarantee(self, event: Event, delta: float | Fraction | None = None) -> ApproxDP:
        """(epsilon, delta)-DP."""
        exact = _delta(delta)
        return ApproxDP(in_floats(event, lambda: self._epsilon(event, exact)), exact)

    def _epsilon(self, event: Event, exact: Fraction) -> Fraction:
        def leaf(one: Event) -> Floats:
            result = one.renyi(_ORDERS)
            if result is None:
                raise unknown(one, self.needs)
            return result

        def add(parts: list[tuple[Floats, int]]) -> Floats:
            total: Floats = np.sum([divergence * count for divergence, count in parts], axis=0)
            return total

        total = check(event).fold(leaf, add, lambda result: np.max(result, axis=0))
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
        """A dominating pair."""
        return leaf.pairs is not None

    def guarantee(self, event: Event, delta: float | Fraction | None = None) -> ApproxDP:
        """(epsilon, delta)-DP."""
        exact = _delta(delta)
        return ApproxDP(in_floats(event, lambda: privacy_loss(self._checked(event), exact)), exact)


basic, advanced, zcdp, renyi, pld = Basic(), Advanced(), Zcdp(), Renyi(), PrivacyLoss()
ACCOUNTANTS: tuple[Accountant, ...] = (basic, advanced, zcdp, renyi, pld)


@dataclass(frozen=True)
class Best:
    """The smallest epsilon, who found it, and what each accountant said: a guarantee, or why not.

    >>> from dither.accounting import Pure
    >>> best_of(Pure(1)).accountant
    'basic'
    """

    guarantee: Guarantee
    accountant: str
    said: tuple[tuple[str, Guarantee | str], ...]


def best_of(
    event: Event, delta: float | Fraction | None = None, accountants: Iterable[Accountant] = ACCOUNTANTS
) -> Best:
    """The smallest epsilon at this delta over all accountants; without a delta, the smallest pure loss.

    Which is the smallest depends on nothing but the workload, which is public, so choosing costs nothing. The answer
    of *pld* holds for a workload fixed in advance only; pass the others for one that is not.

    >>> from dither.accounting import Pure
    >>> best_of(10 * Pure(0.1)).guarantee
    PureDP(1)
    >>> best_of(50 * Pure(0.1), 1e-6).accountant
    'pld'
    """
    tree = check(event)
    said: list[tuple[str, Guarantee | str]] = []
    best: tuple[Fraction, str, Guarantee] | None = None
    if delta is None:
        result = basic.guarantee(tree)
        return Best(result, basic.name, ((basic.name, result),))
    wanted = _delta(delta)
    for accountant in accountants:
        try:
            answer = accountant.guarantee(tree, delta)
        except DitherError as refusal:
            said.append((accountant.name, str(refusal)))
            continue
        said.append((accountant.name, answer))
        loss = answer.epsilon_at(wanted)
        if best is None or loss < best[0]:
            best = loss, accountant.name, answer
    if best is None:
        raise NotPrivate(
            message(
                "event",
                "an event that some accountant can add up",
                "; ".join(f"{name}: {text}" for name, text in said) or "no accountant",
                "describe it by Approximate(epsilon, delta), or pass a larger delta",
            )
        )
    shown = best[2] if isinstance(best[2], PureDP) and best[0] == best[2].exact[0] else ApproxDP(best[0], wanted)
    return Best(shown, best[1], tuple(said))


def _orders() -> Floats:
    """From just above 1 to a million, each 2 % above the one before, and whole ones for samples."""
    grown = 1 + np.exp(np.linspace(math.log(1e-4), math.log(1e6), 1160))
    whole = np.concatenate([np.arange(2.0, 65.0), np.floor(64 * 1.03 ** np.arange(1, 71))])
    return np.unique(np.concatenate([grown, whole[whole <= 512]]))


_ORDERS = _orders()
_ORDERS.setflags(write=False)


def _delta(delta: float | Fraction | None) -> Fraction:
    if delta is None:
        raise InvalidArgument(message("delta", "a number in (0, 1)", "none", "pass delta=1e-6, for example"))
    return arguments.delta(delta)


def _nothing(_: object) -> None:
    return None


def _pure_loss(leaf: Event) -> Fraction:
    return leaf.pure_loss or Fraction(0)


def _drift(loss: Fraction) -> Fraction:
    return pure_rho(loss) if loss else Fraction(0)


def _any(parts: list[tuple[bool, int]]) -> bool:
    return any(fine for fine, _ in parts)


def _sum(parts: list[tuple[Fraction, int]]) -> Fraction:
    """Exactly; where there are many parts with long denominators, each rounded up first."""
    if len(parts) > _MANY:
        parts = [(x if x.denominator < 1 << 64 else Fraction(up(x)), count) for x, count in parts]
        scale = math.lcm(*(x.denominator for x, _ in parts[:_MANY]))
        if scale.bit_length() > 1024:
            parts = [(Fraction(up(x)), count) for x, count in parts]
    return sum((x * count for x, count in parts), Fraction(0))
