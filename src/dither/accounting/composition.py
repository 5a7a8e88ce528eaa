"""The privacy curve of a tree of events: that of the worst way in which a person can take part in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

from dither import arguments
from dither.accounting.distribution import Losses, compose
from dither.accounting.events import Event, check, unknown
from dither.accounting.gaussian import gaussian_delta, gaussian_epsilon
from dither.accounting.noises import BoundedRange, GaussianNoise, LaplaceNoise, Pure
from dither.accounting.pairs import GaussianPair
from dither.errors import NotPrivate, message
from dither.exact import square_root, up

_BITS = 96
_MOST_WAYS = 64
_ORDERED = (BoundedRange, GaussianNoise, LaplaceNoise, Pure)
"""Kinds with one parameter, in which more loss dominates less."""

Way = dict[Event, int]


def privacy_loss(event: Event, delta: Fraction) -> Fraction:
    """The smallest epsilon at this delta, from above; for a workload fixed in advance only.

    >>> from dither.accounting import Pure
    >>> float(privacy_loss(2 * Pure(1), Fraction(1, 100))) < 2
    True
    """
    worst = Fraction(0)
    for losses, square in _directions(event):
        if not losses:
            found = gaussian_epsilon(_ratio(square), delta)
        else:
            fast = compose(losses, _deviation(square), delta=float(delta)).epsilon(float(delta) * (1 - 2.0**-50))
            if fast > float(arguments.MAX_EPSILON):
                raise NotPrivate(
                    message(
                        "event",
                        f"a workload with a loss of at most 1e+06 at delta = {float(delta):g}",
                        "more",
                        "add noise, or pass a delta above the sum of the events' own",
                    )
                )
            found = Fraction(fast)
        worst = max(worst, found)
    return worst


def privacy_curve(event: Event, epsilon: float) -> float:
    """The smallest delta at this epsilon, from above, of a workload fixed in advance.

    *Not a filter*: see :mod:`dither.accounting.distribution`.

    >>> from dither.accounting import GaussianNoise, LaplaceNoise
    >>> privacy_curve(20 * LaplaceNoise(10) + 10 * GaussianNoise(20), 2) < privacy_curve(20 * LaplaceNoise(10), 1)
    True
    """
    at, worst = arguments.loss(epsilon), 0.0
    for losses, square in _directions(check(event)):
        if not losses:
            found = gaussian_delta(at, _ratio(square))
        else:
            found = _delta_at(losses, _deviation(square), float(at) * (1 - 2.0**-50))
        worst = max(worst, found)
    return worst


def _delta_at(losses: Losses, deviation: float, epsilon: float) -> float:
    """Composed for this epsilon, then for the delta found, as long as that finds a much smaller one: near the largest
    losses the first is valid, but coarse.
    """
    best = compose(losses, deviation, epsilon=epsilon).delta(epsilon)
    guess = min(best, 1e-3)
    for _ in range(12):
        found = compose(losses, deviation, delta=max(guess, 1e-300)).delta(epsilon) if guess > 0 else 0.0
        best = min(best, found)
        if found > guess / 2:
            break
        guess = found
    return best


def _deviation(square: Fraction) -> float:
    return up(Fraction(square_root(square, _BITS)[1], 1 << _BITS)) if square else 0.0


def _ratio(square: Fraction) -> Fraction:
    return Fraction(square_root(1 / square, _BITS)[0], 1 << _BITS)


def _directions(event: Event) -> Iterator[tuple[Losses, Fraction]]:
    """For every way and either direction: the losses that are not normal, and the sum of 1/ratio^2 of the rest."""
    for way in _ways(event):
        pairs = []
        for leaf, count in way.items():
            both = leaf.pairs
            if both is None:
                raise unknown(leaf, "a dominating pair")
            pairs.append((both, count))
        square = sum(
            (Fraction(both[0].deviation) ** 2 * n for both, n in pairs if isinstance(both[0], GaussianPair)),
            Fraction(0),
        )
        others = [(both, n) for both, n in pairs if not isinstance(both[0], GaussianPair)]
        yield [(both[0], n) for both, n in others], square
        if any(both[0] is not both[1] for both, _ in others):
            yield [(both[1], n) for both, n in others], square


def _ways(event: Event) -> list[Way]:
    """In which releases one person can be, and how often in each: one way for each choice of groups."""

    def add(parts: list[tuple[list[Way], int]]) -> list[Way]:
        total = 1
        for ways, _ in parts:
            total *= len(ways)
            if total > _MOST_WAYS:
                raise NotPrivate(
                    message(
                        "event",
                        f"at most {_MOST_WAYS} ways in which one person can take part",
                        "more",
                        "give the groups of a Parallel equal events, or put the parts into one Parallel",
                    )
                )
        found = []
        for chosen in itertools.product(*(ways for ways, _ in parts)):
            way: Way = {}
            for one, (_, count) in zip(chosen, parts, strict=True):
                for leaf, times in one.items():
                    way[leaf] = way.get(leaf, 0) + times * count
            found.append(way)
        return found

    def most(groups: list[list[Way]]) -> list[Way]:
        return _undominated([way for ways in groups for way in ways])

    return event.fold(lambda leaf: [{leaf: 1}], add, most)


def _undominated(ways: list[Way]) -> list[Way]:
    """Of single releases of one kind only the one with the most loss."""
    worst: dict[type, Event] = {}
    kept = []
    for way in ways:
        leaf = next(iter(way))
        if len(way) == 1 and way[leaf] == 1 and isinstance(leaf, _ORDERED):
            other = worst.get(type(leaf))
            if other is None or (leaf.zcdp or 0) > (other.zcdp or 0):
                worst[type(leaf)] = leaf
        elif way not in kept:
            kept.append(way)
    return kept + [{leaf: 1} for leaf in worst.values()]
