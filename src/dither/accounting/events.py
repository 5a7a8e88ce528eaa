"""Events: frozen descriptions of releases that accountants read. They know nothing of mechanisms, nor of accountants.

A leaf, the event of one release with a class for each kind of noise, says what is known of it: its pure epsilon, its
rho, its Renyi divergence, its epsilon at a delta, its dominating pair. What is not known is None, and an accountant
that needs it refuses. Leaves make trees: ``a + b`` and ``3 * a`` for releases about the same people,
:class:`Parallel` for disjoint groups.

>>> from dither.accounting import Pure
>>> mean, variance, median = Pure(0.3), Pure(0.2), Pure(0.4)
>>> Parallel(mean + variance, median).guarantee          # mean and variance on one half, the median on the other
PureDP(0.5)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TypeVar

import numpy as np

from dither import arguments
from dither.accounting import concentrated
from dither.accounting.gaussian import gaussian_epsilon
from dither.accounting.pairs import AtomsPair, EnvelopePair, Floats, GaussianPair, LaplacePair, LossPair, RangePair
from dither.errors import InvalidArgument, NotPrivate, WrongType
from dither.exact import decimal, exp_neg, up
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP, parallel, sequential
from dither.neighbors import Neighbors

T = TypeVar("T")

ERROR = 2.0**-48


@dataclass(frozen=True, init=False, repr=False)
class Event:
    """Base of all events; a subclass states what is known of it.

    >>> from dither.accounting import LaplaceNoise
    >>> LaplaceNoise(2) + LaplaceNoise(2) == 2 * LaplaceNoise(2)
    True
    """

    def _freeze(self, **values: object) -> None:
        """Set attributes in the constructor of a frozen dataclass."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(_shown(getattr(self, field.name)) for field in fields(self))})"

    def __add__(self, other: object) -> Event:
        return Sequential(self, other) if isinstance(other, Event) else self if other == 0 else NotImplemented

    def __radd__(self, other: object) -> Event:
        return self if other == 0 else NotImplemented

    def __mul__(self, times: object) -> Event:
        count = arguments.whole(times, "times")
        return self if count == 1 else Sequential.repeated({self: count})

    __rmul__ = __mul__

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee in one kind, added up over the leaves."""
        if self.pure_epsilon is not None:
            return PureDP(self.pure_epsilon)
        if self.zcdp is not None:
            return ZCDP(self.zcdp)
        raise unknown(self, "a guarantee")

    @property
    def relation(self) -> Neighbors | None:
        """Return the one relation between neighbors for which this is a guarantee.

        None means the relation for which sensitivities were computed, which events do not know.
        """
        return None

    @property
    def pure_epsilon(self) -> Fraction | None:
        """Return the epsilon of the pure guarantee, the largest privacy loss; None if it is unbounded."""
        return None

    @property
    def own_delta(self) -> Fraction:
        """Return the delta that remains at every epsilon, however large: 0 for most events."""
        return Fraction(0)

    @property
    def zcdp(self) -> Fraction | None:
        """Return the smallest known rho for which this is rho-zCDP, rounded up; None if there is none."""
        return None if self.pure_epsilon is None else concentrated.pure_rho(self.pure_epsilon)

    @property
    def pair(self) -> LossPair | None:
        """Return a dominating pair of laws; None if none is known."""
        return None

    @property
    def pairs(self) -> tuple[LossPair, LossPair] | None:
        """Return dominating pairs for a person removed and for one added, which are usually equal."""
        pair = self.pair
        return None if pair is None else (pair, pair)

    def renyi(self, orders: Floats) -> Floats | None:
        """Return the Renyi divergence at each order above 1, rounded up; infinite where it is not known."""
        return None if self.zcdp is None else float(self.zcdp) * orders * (1 + ERROR)

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        """Return the smallest epsilon at this delta, rounded up."""
        return self.pure_epsilon

    def scaled(self, factor: Fraction) -> Event:
        """Return this event with ``factor`` times the noise; an event that has none to change is refused."""
        raise unknown(self, "a way to change its noise")

    def fold(self, leaf: Callable[[Event], T], add: Callable[[list[tuple[T, int]]], T], most: Callable[..., T]) -> T:
        """Return a value computed over the tree of events.

        ``leaf`` is applied to each leaf, ``add`` to releases about the same people with their repetitions, and ``most``
        to disjoint groups.
        """
        return leaf(self)


def unknown(event: object, what: str) -> WrongType:
    """Return the error for an event that does not state ``what`` an accountant needs."""
    return WrongType(
        "event",
        f"an event with {what}",
        type(event).__name__,
        "describe it by dither.accounting events, for example Pure(epsilon) or Approximate(epsilon, delta)",
    )


def _common_relation(events: Iterable[Event]) -> Neighbors | None:
    """Return the relation for which all of these events are guarantees; two different relations are refused."""
    relations = {event.relation for event in events} - {None}
    if len(relations) > 1:
        raise NotPrivate(
            "events",
            "promises for the same neighbors",
            "some for a person added or removed, others for one replaced",
            "account for them separately; Pure(epsilon) of guarantee.group(2) turns the former into the latter",
        )
    return relations.pop() if relations else None


def require_event(event: object) -> Event:
    """Return an event, or a refusal.

    >>> from dither.accounting import Pure
    >>> require_event(Pure(1))
    Pure(1)
    """
    if not isinstance(event, Event):
        raise WrongType("event", "an event", type(event).__name__, "pass mechanism.event, or a tree of events")
    return event


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Sequential(Event):
    """Releases about the same people; written ``a + b`` and ``3 * a``.

    >>> from dither.accounting import Pure
    >>> Sequential(Pure(1), Pure(0.5), Pure(0.5))
    Pure(1) + 2 * Pure(0.5)
    """

    parts: tuple[tuple[Event, int], ...]
    """The events, none of them itself a sequence, and how often each happens."""

    def __init__(self, *events: Event) -> None:
        self._freeze(parts=tuple(_merged_counts((require_event(event), 1) for event in _at_least_one(events)).items()))
        _common_relation(events)

    @classmethod
    def repeated(cls, counts: Mapping[Event, int]) -> Sequential:
        """Return the sequence in which each event is repeated as often as its count.

        >>> from dither.accounting import Pure
        >>> Sequential.repeated({Pure(1): 3})
        3 * Pure(1)
        """
        result = cls.__new__(cls)
        object.__setattr__(result, "parts", tuple(_merged_counts(counts.items()).items()))
        _common_relation(counts)
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequential) and dict(self.parts) == dict(other.parts)

    def __hash__(self) -> int:
        return hash(frozenset(self.parts))

    def __repr__(self) -> str:
        return " + ".join(repr(event) if count == 1 else f"{count} * {event!r}" for event, count in self.parts)

    @property
    def relation(self) -> Neighbors | None:
        """Return the relation for which all parts are guarantees; None if any will do."""
        return _common_relation(event for event, _ in self.parts)

    @property
    def guarantee(self) -> Guarantee:
        """Return the sum of the parts' guarantees."""
        return sequential(*(event.guarantee * count for event, count in self.parts))

    def scaled(self, factor: Fraction) -> Event:
        """Return the sequence with ``factor`` times the noise in each part."""
        return Sequential.repeated({event.scaled(factor): count for event, count in self.parts})

    def fold(self, leaf: Callable[[Event], T], add: Callable[[list[tuple[T, int]]], T], most: Callable[..., T]) -> T:
        """Return ``add`` of the values of the parts with their repetitions; see :meth:`Event.fold`."""
        return add([(event.fold(leaf, add, most), count) for event, count in self.parts])


@dataclass(frozen=True, init=False, repr=False)
class Parallel(Event):
    """Releases about disjoint groups of people, the groups being fixed by public rules: each person is in one.

    Between neighbors one group changes: a record is added or removed, or replaced by one of the same group.
    Nothing is said of how the groups of one ``Parallel`` and those of another overlap: a person may be in any group of
    each, also where both are written alike, and ``Parallel(a, b) + Parallel(a, b)`` is counted for a person who is in
    the first group of one and the second group of the other. People who are in the same group every time are
    ``Parallel(2 * a, 2 * b)``.

    >>> from dither.accounting import Pure
    >>> Parallel(Pure(1), Pure(2)).guarantee
    PureDP(2)
    """

    groups: tuple[Event, ...]
    """The events that differ."""

    def __init__(self, *events: Event) -> None:
        self._freeze(groups=tuple(dict.fromkeys(require_event(event) for event in _at_least_one(events))))
        _common_relation(events)

    def __repr__(self) -> str:
        return f"Parallel({', '.join(map(repr, self.groups))})"

    @property
    def relation(self) -> Neighbors | None:
        """Return the relation for which all groups are guarantees; None if any will do."""
        return _common_relation(self.groups)

    @property
    def guarantee(self) -> Guarantee:
        """Return the largest guarantee of the groups."""
        return parallel(*(event.guarantee for event in self.groups))

    @property
    def pair(self) -> LossPair | None:
        """Return a pair whose curve is the largest of all groups' pairs; None if a group has none."""
        return _envelope([event.pair for event in self.groups])

    @property
    def pairs(self) -> tuple[LossPair, LossPair] | None:
        """Return a dominating pair of all groups for a person removed, and one for a person added; None if unknown."""
        dominating = [event.pairs for event in self.groups]
        if all(pairs is not None and pairs[0] is pairs[1] for pairs in dominating):
            result = _envelope([pairs and pairs[0] for pairs in dominating])
            return None if result is None else (result, result)
        removed, added = (_envelope([pairs and pairs[side] for pairs in dominating]) for side in (0, 1))
        return None if removed is None or added is None else (removed, added)

    def scaled(self, factor: Fraction) -> Event:
        """Return the partition with ``factor`` times the noise in each group."""
        return Parallel(*(event.scaled(factor) for event in self.groups))

    def fold(self, leaf: Callable[[Event], T], add: Callable[[list[tuple[T, int]]], T], most: Callable[..., T]) -> T:
        """Return ``most`` of the values of the groups; see :meth:`Event.fold`."""
        return most([event.fold(leaf, add, most) for event in self.groups])


@dataclass(frozen=True, init=False, repr=False)
class PostProcessed(Event):
    """Anything computed from a release without another look at the data: free.

    >>> from dither.accounting import Pure
    >>> PostProcessed(Pure(1)).guarantee
    PureDP(1)
    """

    event: Event

    def __init__(self, event: Event) -> None:
        self._freeze(event=require_event(event))

    @property
    def relation(self) -> Neighbors | None:
        """Return the relation for which the release is a guarantee; None if any will do."""
        return self.event.relation

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of the release."""
        return self.event.guarantee

    def scaled(self, factor: Fraction) -> Event:
        """Return the post-processing of the release with ``factor`` times the noise."""
        return PostProcessed(self.event.scaled(factor))

    def fold(self, leaf: Callable[[Event], T], add: Callable[[list[tuple[T, int]]], T], most: Callable[..., T]) -> T:
        """Return the value of the fold over the release, which post-processing does not change."""
        return self.event.fold(leaf, add, most)


def _envelope(pairs: Sequence[LossPair | None]) -> LossPair | None:
    """Return a pair that dominates all of these; None if one of them is not known."""
    known = [pair for pair in pairs if pair is not None]
    if len(known) < len(pairs):
        return None
    return known[0] if len(known) == 1 else EnvelopePair(known)


def _shown(value: object) -> str:
    """Return a parameter as an expression of Python."""
    if not isinstance(value, Fraction) or value.denominator == 1:
        return str(value)
    if abs(value) < 10**300 and Fraction(repr(float(value))) == value:
        return repr(float(value))
    return repr(value)


def _at_least_one(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events; refused if there are none."""
    if not events:
        raise InvalidArgument("events", "at least one", "none", "pass the event of each release")
    return events


def _merged_counts(parts: Iterable[tuple[Event, int]]) -> dict[Event, int]:
    """Count equal events together, with sequences inside sequences expanded."""
    result: dict[Event, int] = {}
    for event, count in parts:
        inner = event.parts if isinstance(event, Sequential) else ((event, 1),)
        for part, times in inner:
            result[part] = result.get(part, 0) + times * count
    return result


_BITS = 96


def pure_delta(epsilon: Fraction, other: Fraction) -> Fraction:
    """Return the largest delta at the epsilon ``other`` of any ``epsilon``-DP release, from above; 0 from ``epsilon``
    on.

    The least private of them is randomized response: ``(1 - exp(other - epsilon)) / (1 + exp(-epsilon))``.

    >>> round(float(pure_delta(Fraction(1), Fraction(0))), 6)
    0.462117
    """
    if other >= epsilon:
        return Fraction(0)
    one = 1 << _BITS
    return (1 - Fraction(exp_neg(epsilon - other, _BITS)[0], one)) / (1 + Fraction(exp_neg(epsilon, _BITS)[0], one))


_MAX_ATOMS = 1 << 14


@dataclass(frozen=True, init=False, repr=False)
class LaplaceNoise(Event):
    """Real Laplace noise of scale ``ratio * sensitivity`` (l1), continuous or rounded; loss 1/ratio.

    >>> LaplaceNoise(2).guarantee, round(float(LaplaceNoise(2).zcdp), 6)
    (PureDP(0.5), 0.106531)
    """

    ratio: Fraction

    def __init__(self, ratio: float | Fraction) -> None:
        self._freeze(ratio=_ratio(ratio, "ratio"))

    @property
    def pure_epsilon(self) -> Fraction:
        """Return ``1 / ratio``, the largest privacy loss."""
        return 1 / self.ratio

    @property
    def zcdp(self) -> Fraction:
        """Return ``e + exp(-e) - 1`` for the largest loss e; see :mod:`dither.accounting.concentrated`."""
        return concentrated.laplace_rho(self.pure_epsilon)

    @property
    def pair(self) -> LossPair:
        """Return the dominating pair: two Laplace laws whose centers differ by the whole sensitivity."""
        return LaplacePair(up(self.pure_epsilon))

    def renyi(self, orders: Floats) -> Floats:
        """Return ``ln(a/(2a-1) e^((a-1) e) + (a-1)/(2a-1) e^(-a e)) / (a - 1)`` (Mironov 2017, proposition 6)."""
        e = float(self.pure_epsilon)
        first = np.log(orders / (2 * orders - 1)) + (orders - 1) * e
        second = np.log((orders - 1) / (2 * orders - 1)) - orders * e
        return _least(np.logaddexp(first, second), orders, e, self.zcdp)

    def scaled(self, factor: Fraction) -> Event:
        """Return the noise of ``factor`` times the scale."""
        return LaplaceNoise(self.ratio * factor)


@dataclass(frozen=True, init=False, repr=False)
class DiscreteLaplaceNoise(Event):
    """Noise on the integers in proportion to ``exp(-|k| / scale)``, for a whole sensitivity (l1).

    >>> DiscreteLaplaceNoise(2, 1).guarantee, DiscreteLaplaceNoise(2, 1).zcdp == Pure(0.5).zcdp
    (PureDP(0.5), True)
    """

    scale: Fraction
    sensitivity: int

    def __init__(self, scale: float | Fraction, sensitivity: int) -> None:
        size = arguments.whole(sensitivity, "sensitivity")
        self._freeze(scale=_ratio(Fraction(decimal(scale, "scale")) / size, "scale") * size, sensitivity=size)

    @property
    def pure_epsilon(self) -> Fraction:
        """Return ``sensitivity / scale``, the largest privacy loss."""
        return self.sensitivity / self.scale

    @property
    def zcdp(self) -> Fraction:
        """Return the smallest rho, the mean privacy loss, ``(D - 2 t (1 - t^D) / (1 - t^2)) / scale``.

        D is the sensitivity and ``t = exp(-1 / scale)``; see :mod:`dither.accounting.concentrated`.
        """
        return concentrated.discrete_laplace_rho(self.scale, self.sensitivity)

    @property
    def pair(self) -> LossPair:
        """Return the pair of losses ``(D - 2k) / scale``, k = 0 to D; for D above 16384 that of the pure loss."""
        size, t = self.sensitivity, math.exp(-1 / float(self.scale))
        if size > _MAX_ATOMS:
            return response_pair(self.pure_epsilon, 2)
        powers = np.exp(-np.arange(size, -1, -1) / float(self.scale)) / (1 + t)
        powers[1:-1] *= -math.expm1(-1 / float(self.scale))
        return AtomsPair([(2 * j - size) / self.scale for j in range(size + 1)], powers.tolist())

    def renyi(self, orders: Floats) -> Floats:
        """Return the Renyi divergence at each order, the sum ``sum P^a Q^(1 - a)`` over all integers in closed form.

        Below 0 and above the sensitivity D the terms are geometric series; between them they fall by the factor
        ``exp(-(2 a - 1) / scale)``.
        """
        b, size, e = float(self.scale), self.sensitivity, float(self.pure_epsilon)
        t, r = math.exp(-1 / b), -(2 * orders - 1) / b
        middle = -math.expm1(-1 / b) * np.exp(r) * np.expm1((size - 1) * r) / np.expm1(r)
        total = np.logaddexp((orders - 1) * e + np.log1p(middle), -orders * e) - math.log1p(t)
        return _least(total, orders, e, self.zcdp)

    def scaled(self, factor: Fraction) -> Event:
        """Return the noise of ``factor`` times the scale, for an unchanged sensitivity."""
        return DiscreteLaplaceNoise(self.scale * factor, self.sensitivity)


@dataclass(frozen=True, init=False, repr=False)
class GaussianNoise(Event):
    """Normal noise of deviation ``ratio * sensitivity`` (l2), continuous or rounded.

    >>> GaussianNoise(2).guarantee
    ZCDP(0.125)
    """

    ratio: Fraction

    def __init__(self, ratio: float | Fraction) -> None:
        self._freeze(ratio=_ratio(ratio, "ratio"))

    @property
    def zcdp(self) -> Fraction:
        """Return ``1 / (2 ratio^2)``, the rho of Gaussian noise (Bun and Steinke 2016)."""
        return 1 / (2 * self.ratio**2)

    @property
    def pair(self) -> LossPair:
        """Return the dominating pair: two normal laws whose means differ by ``1 / ratio`` standard deviations."""
        return GaussianPair(up(1 / self.ratio))

    def epsilon_at(self, delta: Fraction) -> Fraction:
        """Return the smallest epsilon at this delta, by the exact curve of Gaussian noise (Balle and Wang 2018)."""
        return gaussian_epsilon(self.ratio, delta)

    def scaled(self, factor: Fraction) -> Event:
        """Return the noise of ``factor`` times the standard deviation."""
        return GaussianNoise(self.ratio * factor)


@dataclass(frozen=True, init=False, repr=False)
class _Bounded(Event):
    """An event known by its largest loss, epsilon, first of all."""

    epsilon: Fraction

    def __init__(self, epsilon: float | Fraction) -> None:
        self._freeze(epsilon=arguments.epsilon(epsilon))

    @property
    def pure_epsilon(self) -> Fraction:
        """Return epsilon, the largest privacy loss."""
        return self.epsilon

    def scaled(self, factor: Fraction) -> Event:
        """Return the event with ``factor`` times the noise, whose epsilon is divided by ``factor``."""
        return replace(self, epsilon=self.epsilon / factor)


@dataclass(frozen=True, init=False, repr=False)
class BoundedRange(_Bounded):
    """A choice all of whose losses lie in an interval of length epsilon: the exponential mechanism.

    >>> BoundedRange(1).guarantee, BoundedRange(1).zcdp < Pure(1).zcdp / 3
    (PureDP(1), True)
    """

    @property
    def zcdp(self) -> Fraction:
        """Return ``x - 1 - ln x``, x = epsilon / (1 - exp(-epsilon)); see :mod:`dither.accounting.concentrated`."""
        return concentrated.range_rho(self.epsilon)

    @property
    def pair(self) -> LossPair:
        """Return the dominating pair of all releases whose losses lie in some interval of length epsilon."""
        return RangePair(up(self.epsilon))

    def renyi(self, orders: Floats) -> Floats:
        """Return ``(a s(a) - (a - 1) s(a - 1) - s(1)) / (a - 1)``, where ``s(u) = ln(2 sinh(u epsilon / 2) / u)``."""
        e = float(self.epsilon)

        def s(u: Floats) -> Floats:
            """Return ``ln(2 sinh(u epsilon / 2) / u)``, without overflow."""
            return u * e / 2 + np.log(-np.expm1(-u * e) / u)

        total = orders * s(orders) - (orders - 1) * s(orders - 1) - s(np.ones(1))
        return _least(total, orders, (1 + float(orders.max())) * e, self.zcdp)


@dataclass(frozen=True, init=False, repr=False)
class ResponseReport(_Bounded):
    """One person's report by randomized response over k categories.

    >>> ResponseReport(1, 5).guarantee
    PureDP(1)
    """

    categories: int

    def __init__(self, epsilon: float | Fraction, categories: int) -> None:
        super().__init__(epsilon)
        self._freeze(categories=arguments.whole(categories, "categories", 2))

    @property
    def zcdp(self) -> Fraction:
        """Return the mean privacy loss as rho where that is proved, and otherwise the rho of epsilon-DP.

        The mean loss is ``epsilon (1 - exp(-epsilon)) / (1 + (k - 1) exp(-epsilon))``, see
        :mod:`dither.accounting.concentrated`.
        """
        return concentrated.response_rho(self.epsilon, self.categories)

    @property
    def pair(self) -> LossPair:
        """Return the dominating pair of a report: losses -epsilon, 0 and epsilon, as two categories or others show."""
        return response_pair(self.epsilon, self.categories)

    def renyi(self, orders: Floats) -> Floats:
        """Return ``ln((e^(a e) + e^((1-a) e) + k - 2) / (e^e + k - 1)) / (a - 1)`` at each order a, e = epsilon."""
        e, others = float(self.epsilon), self.categories - 2
        total = np.logaddexp(orders * e, (1 - orders) * e) - np.logaddexp(e, math.log(others + 1))
        if others:
            total = np.logaddexp(total, math.log(others) - np.logaddexp(e, math.log(others + 1)))
        return _least(total, orders, e, self.zcdp)


@dataclass(frozen=True, init=False, repr=False)
class Pure(_Bounded):
    """Anything that is epsilon-DP, known by nothing else: no worse than randomized response.

    >>> Pure(1).guarantee
    PureDP(1)
    """

    @property
    def zcdp(self) -> Fraction:
        """Return ``epsilon tanh(epsilon / 2)``, the smallest rho that every epsilon-DP release satisfies."""
        return concentrated.pure_rho(self.epsilon)

    @property
    def pair(self) -> LossPair:
        """Return the pair of binary randomized response, which dominates every epsilon-DP release."""
        return response_pair(self.epsilon, 2)

    def renyi(self, orders: Floats) -> Floats:
        """Return ``ln(cosh((a - 1/2) epsilon) / cosh(epsilon / 2)) / (a - 1)`` at each order a.

        It is the divergence of binary randomized response, the largest of any epsilon-DP release.
        """
        e = float(self.epsilon)
        return _least(np.logaddexp(orders * e, (1 - orders) * e) - np.logaddexp(e, 0.0), orders, e, self.zcdp)


@dataclass(frozen=True, init=False, repr=False)
class Approximate(Event):
    """Anything that is (epsilon, delta)-DP, known by nothing else: with probability delta everything is shown, else
    randomized response (Kairouz, Oh and Viswanath 2015).

    >>> Approximate(1, 1e-6).guarantee
    ApproxDP(1, 1e-06)
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: float | Fraction, delta: float | Fraction) -> None:
        self._freeze(epsilon=arguments.epsilon(epsilon), delta=arguments.delta(delta))

    @property
    def guarantee(self) -> Guarantee:
        """Return (epsilon, delta)-DP."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def own_delta(self) -> Fraction:
        """Return delta, which remains at every epsilon."""
        return self.delta

    @property
    def pair(self) -> LossPair:
        """Return the dominating pair: with probability delta an infinite loss, and otherwise randomized response."""
        return response_pair(self.epsilon, 2, float(self.delta) * (1 + 2.0**-50))

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        """Return epsilon, or less at a larger delta; None at a smaller one."""
        return ApproxDP(self.epsilon, self.delta).epsilon_at(delta) if delta >= self.delta else None

    def scaled(self, factor: Fraction) -> Event:
        """Return the event with ``factor`` times the noise: epsilon is divided by it, delta stays."""
        return Approximate(self.epsilon / factor, self.delta)


@dataclass(frozen=True, init=False, repr=False)
class Concentrated(Event):
    """Anything that is rho-zCDP: discrete Gaussian noise, for example.

    >>> Concentrated(0.5).guarantee
    ZCDP(0.5)
    """

    rho: Fraction

    def __init__(self, rho: float | Fraction) -> None:
        self._freeze(rho=ZCDP(rho).exact[0])

    @property
    def zcdp(self) -> Fraction:
        """Return rho."""
        return self.rho

    def epsilon_at(self, delta: Fraction) -> Fraction:
        """Return the epsilon at this delta by the conversion of :meth:`dither.ZCDP.to_approx`."""
        return ZCDP(self.rho).epsilon_at(delta)

    def scaled(self, factor: Fraction) -> Event:
        """Return the event with ``factor`` times the noise, whose rho is divided by ``factor^2``."""
        return Concentrated(self.rho / factor**2)


def response_pair(epsilon: Fraction, categories: int, infinite: float = 0.0) -> LossPair:
    """Return the pair of randomized response: losses -epsilon, 0 and epsilon, with masses times 1 - infinite.

    >>> response_pair(Fraction(1), 2).losses
    (Fraction(-1, 1), Fraction(1, 1))
    """
    small = math.exp(-float(epsilon))
    rest = (1 - infinite) / (1 + (categories - 1) * small)
    if categories == 2:
        return AtomsPair([-epsilon, epsilon], [rest * small, rest], infinite)
    return AtomsPair([-epsilon, Fraction(0), epsilon], [rest * small, (categories - 2) * rest * small, rest], infinite)


def _least(total: Floats, orders: Floats, epsilon: float, rho: Fraction) -> Floats:
    """Return Renyi divergences ``total / (orders - 1)`` with the rounding error added, at most ``rho * orders``.

    ``total`` is ``(a - 1) D_a`` at each order a, and ``epsilon`` the largest loss, which bounds the rounding errors.
    """
    error = ERROR * (1 + np.abs(total) + epsilon * orders)
    return np.minimum((np.maximum(total, 0.0) + error) / (orders - 1), float(rho) * orders * (1 + ERROR))


def _ratio(value: object, name: str) -> Fraction:
    """Return noise over sensitivity as an exact number, or refuse it outside of 1e-6 to about 1e120 (2^400).

    ``value`` is the number as the user passed it, and ``name`` the parameter's name for the error.
    """
    exact = decimal(value, name)
    if not Fraction(1, 10**6) <= exact < 1 << 400:
        raise InvalidArgument(
            name, "a number from 1e-06 to 1e+120", value, f"pass {name}: noise over sensitivity, 2 for example"
        )
    return exact
