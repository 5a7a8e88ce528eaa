"""Events: frozen descriptions of releases that accountants read. They know nothing of mechanisms, nor of accountants.

A leaf (:mod:`dither.accounting.noise_events`) says what is known of it: its pure epsilon, its rho, its Renyi
divergence, its epsilon at a delta, its dominating pair. What is not known is None, and an accountant that needs it
refuses. Leaves make trees: ``a + b`` and ``3 * a`` for releases about the same people, :class:`Parallel` for disjoint
groups.

>>> from dither.accounting import Pure
>>> mean, variance, median = Pure(0.3), Pure(0.2), Pure(0.4)
>>> Parallel(mean + variance, median).guarantee          # mean and variance on one half, the median on the other
PureDP(0.5)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TypeVar

from dither import arguments
from dither.accounting import concentrated
from dither.accounting.pairs import EnvelopePair, Floats, LossPair
from dither.errors import InvalidArgument, NotPrivate, WrongType
from dither.guarantees import ZCDP, Guarantee, PureDP, parallel, sequential
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
        """Set attributes of a frozen event."""
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
        """Return the delta that remains at every epsilon."""
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
        """Return this event with ``factor`` times the noise."""
        raise unknown(self, "a way to change its noise")

    def fold(self, leaf: Callable[[Event], T], add: Callable[[list[tuple[T, int]]], T], most: Callable[..., T]) -> T:
        """Return a value computed over the tree of events.

        ``leaf`` is applied to each leaf, ``add`` to releases about the same people with their repetitions, and ``most``
        to disjoint groups.
        """
        return leaf(self)


def unknown(event: object, what: str) -> WrongType:
    """Return the refusal of an event of which too little is known."""
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
        """Return the relation of the parts."""
        return _common_relation(event for event, _ in self.parts)

    @property
    def guarantee(self) -> Guarantee:
        """Return the sum of the parts' guarantees."""
        return sequential(*(event.guarantee * count for event, count in self.parts))

    def scaled(self, factor: Fraction) -> Event:
        """Return each part."""
        return Sequential.repeated({event.scaled(factor): count for event, count in self.parts})

    def fold(self, leaf: Callable[[Event], T], add: Callable[[list[tuple[T, int]]], T], most: Callable[..., T]) -> T:
        """Return ``add`` of the parts."""
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
        """Return the relation of the groups."""
        return _common_relation(self.groups)

    @property
    def guarantee(self) -> Guarantee:
        """Return the largest guarantee of the groups."""
        return parallel(*(event.guarantee for event in self.groups))

    @property
    def pair(self) -> LossPair | None:
        """Return a pair that dominates every group's, where each group is one release with a pair."""
        return _envelope([event.pair for event in self.groups])

    @property
    def pairs(self) -> tuple[LossPair, LossPair] | None:
        """Return pairs that dominate every group's in either direction."""
        dominating = [event.pairs for event in self.groups]
        if all(pairs is not None and pairs[0] is pairs[1] for pairs in dominating):
            result = _envelope([pairs and pairs[0] for pairs in dominating])
            return None if result is None else (result, result)
        removed, added = (_envelope([pairs and pairs[side] for pairs in dominating]) for side in (0, 1))
        return None if removed is None or added is None else (removed, added)

    def scaled(self, factor: Fraction) -> Event:
        """Return each group."""
        return Parallel(*(event.scaled(factor) for event in self.groups))

    def fold(self, leaf: Callable[[Event], T], add: Callable[[list[tuple[T, int]]], T], most: Callable[..., T]) -> T:
        """Return ``most`` of the groups."""
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
        """Return the relation of the release."""
        return self.event.relation

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of the release."""
        return self.event.guarantee

    def scaled(self, factor: Fraction) -> Event:
        """Return the release with more noise."""
        return PostProcessed(self.event.scaled(factor))

    def fold(self, leaf: Callable[[Event], T], add: Callable[[list[tuple[T, int]]], T], most: Callable[..., T]) -> T:
        """Return the value of the release."""
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
