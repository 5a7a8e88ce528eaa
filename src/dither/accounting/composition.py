"""The privacy curve of a tree of events: that of the worst way in which a person can take part in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeVar

import numpy as np

from dither import arguments
from dither.accounting.distribution import Losses, compose
from dither.accounting.events import (
    BoundedRange,
    Event,
    GaussianNoise,
    LaplaceNoise,
    Parallel,
    PostProcessed,
    Pure,
    Sequential,
    require_event,
    unknown,
)
from dither.accounting.gaussian import gaussian_delta, gaussian_epsilon
from dither.accounting.pairs import GaussianPair
from dither.errors import DitherError, NotPrivate
from dither.exact import square_root, up

_BITS = 96
_ORDERED = (BoundedRange, GaussianNoise, LaplaceNoise, Pure)
"""Kinds with one parameter, in which more loss dominates less."""

T = TypeVar("T")
Way = dict[Event, int]


def privacy_loss(event: Event, delta: Fraction) -> Fraction:
    """Return the smallest epsilon at this delta, from above; for a workload fixed in advance only.

    >>> from dither.accounting import Pure
    >>> float(privacy_loss(2 * Pure(1), Fraction(1, 100))) < 2
    True
    """
    worst = Fraction(0)
    for losses, square in _directions(event):
        if not losses:
            result = gaussian_epsilon(_ratio(square), delta)
        else:
            fast = compose(losses, _deviation(square), delta=float(delta)).epsilon(float(delta) * (1 - 2.0**-50))
            if fast > float(arguments.MAX_EPSILON):
                raise NotPrivate(
                    "event",
                    f"a workload with a loss of at most 1e+06 at delta = {float(delta):g}",
                    "more",
                    "add noise, or pass a delta above the sum of the events' own",
                )
            result = Fraction(fast)
        worst = max(worst, result)
    return worst


def privacy_curve(event: Event, epsilon: float) -> float:
    """Return an upper bound on delta(epsilon) of a workload fixed in advance, from its privacy loss distribution.

    It does not hold if the amount of noise depends on earlier answers (see :mod:`dither.accounting.distribution`).

    >>> from dither.accounting import GaussianNoise, LaplaceNoise
    >>> privacy_curve(20 * LaplaceNoise(10) + 10 * GaussianNoise(20), 2) < privacy_curve(20 * LaplaceNoise(10), 1)
    True
    """
    at, tree = arguments.epsilon_or_zero(epsilon), require_event(event)
    return in_floats(tree, lambda: _curve_at(tree, at))


def _curve_at(event: Event, at: Fraction) -> float:
    """Return delta at an epsilon, the larger of both directions and of all ways that the event may take."""
    worst = 0.0
    for losses, square in _directions(event):
        if not losses:
            result = gaussian_delta(at, _ratio(square))
        else:
            result = _delta_at(losses, _deviation(square), float(at) * (1 - 2.0**-50))
        worst = max(worst, result)
    return worst


def in_floats(event: Event, compute: Callable[[], T]) -> T:
    """Return what ``compute`` returns for an event; refused where intermediate numbers exceed floats or memory.

    >>> from dither.accounting import Pure
    >>> in_floats(Pure(1), lambda: 1e308 ** 2)
    Traceback (most recent call last):
    dither.NotPrivate: event: expected a workload whose losses floats can hold, got Pure, repeated too often or
    with parameters too large or too small. Fix: use another accountant, or fewer releases, or moderate parameters.
    """
    try:
        return compute()
    except DitherError:
        raise
    except (ArithmeticError, MemoryError, ValueError, IndexError):
        pass
    raise NotPrivate(
        "event",
        "a workload whose losses floats can hold",
        f"{type(event).__name__}, repeated too often or with parameters too large or too small",
        "use another accountant, or fewer releases, or moderate parameters",
    )


def _delta_at(losses: Losses, deviation: float, epsilon: float) -> float:
    """Return an upper bound on delta at ``epsilon`` for the sum of ``losses`` and a normal loss.

    ``deviation`` is the standard deviation of the normal loss, 0 for none. A composition chooses its lattice for the
    epsilon or delta around which it is to be accurate. Near the largest losses the one made for this epsilon is
    valid but coarse, so composition is repeated for the delta found so far until the bound no longer halves, 12 times
    at most.
    """
    best = compose(losses, deviation, epsilon=epsilon).delta(epsilon)
    guess = min(best, 1e-3)
    for _ in range(12):
        result = compose(losses, deviation, delta=max(guess, 1e-300)).delta(epsilon) if guess > 0 else 0.0
        best = min(best, result)
        if result > guess / 2:
            break
        guess = result
    return best


def _deviation(square: Fraction) -> float:
    """Return the standard deviation of a sum of normal losses, rounded up."""
    return up(Fraction(square_root(square, _BITS)[1], 1 << _BITS)) if square else 0.0


def _ratio(square: Fraction) -> Fraction:
    """Return noise over sensitivity of one Gaussian release that stands for several, rounded down."""
    return Fraction(square_root(1 / square, _BITS)[0], 1 << _BITS)


def _directions(event: Event) -> Iterator[tuple[Losses, Fraction]]:
    """Yield, for every way and either direction, the losses that are not normal, and the sum of 1/ratio^2 of the normal
    ones."""
    for alternative in _alternatives(event):
        pairs = []
        for leaf, count in alternative.items():
            pair = leaf.pairs
            if pair is None:
                raise unknown(leaf, "a dominating pair")
            pairs.append((pair, count))
        square = sum(
            (Fraction(pair[0].deviation) ** 2 * n for pair, n in pairs if isinstance(pair[0], GaussianPair)),
            Fraction(0),
        )
        others = [(pair, n) for pair, n in pairs if not isinstance(pair[0], GaussianPair)]
        yield [(pair[0], n) for pair, n in others], square
        if any(pair[0] is not pair[1] for pair, _ in others):
            yield [(pair[1], n) for pair, n in others], square


def _alternatives(event: Event) -> list[Way]:
    """Return the ways in which one person can take part: the releases in each, with their repetitions.

    There are several if the whole is one partition: one way for each of its groups.

    Anywhere else a partition becomes releases that dominate all of its groups (:func:`_slots`), since a person may be
    in another group every time, and in which may depend on the answers before. So the ways stay few, and they hold
    for adaptive partitions too.
    """
    if isinstance(event, PostProcessed):
        return _alternatives(event.event)
    if isinstance(event, Sequential) and [count for _, count in event.parts] == [1]:
        return _alternatives(event.parts[0][0])
    if isinstance(event, Parallel):
        return [alternative for group in event.groups for alternative in _alternatives(group)]
    return [event.fold(lambda leaf: {leaf: 1}, _sum, _slots)]


def _sum(parts: list[tuple[Way, int]]) -> Way:
    """Add up how often each release happens in a sequence."""
    total: Way = {}
    for alternative, count in parts:
        for release, times in alternative.items():
            total[release] = total.get(release, 0) + times * count
    return total


def _slots(groups: list[Way]) -> Way:
    """Return releases that dominate those of every group.

    The strongest of each group side by side form one :class:`Parallel`, then the next strongest, and so on; a group
    that has fewer is in no more of them.
    """
    queues = [sorted(((_strength(release), release, count) for release, count in group.items()), key=lambda x: -x[0])
              for group in groups]  # fmt: skip
    total: Way = {}
    while queues := [queue for queue in queues if queue]:
        times = min(queue[0][2] for queue in queues)
        slot = _worst([queue[0][1] for queue in queues])
        total[slot] = total.get(slot, 0) + times
        for queue in queues:
            strength, release, count = queue.pop(0)
            if count > times:
                queue.insert(0, (strength, release, count - times))
    return total


def _strength(release: Event) -> float:
    """Return delta at epsilon 0, the total variation distance between the releases with and without a person."""
    pairs = release.pairs
    if pairs is None:
        raise unknown(release, "a dominating pair")
    p, q = pairs[0].tails(np.zeros(1))
    return float(p[0] - q[0]) + pairs[0].infinite


def _worst(releases: list[Event]) -> Event:
    """Return one release that dominates these, which may be several in parallel: of one kind only that with the largest
    loss."""
    unique: dict[object, Event] = {}
    for release in releases:
        for group in release.groups if isinstance(release, Parallel) else (release,):
            kind = type(group) if isinstance(group, _ORDERED) else group
            other = unique.get(kind)
            if other is None or (group.zcdp or 0) > (other.zcdp or 0):
                unique[kind] = group
    return Parallel(*unique.values()) if len(unique) > 1 else next(iter(unique.values()))
