"""The keys of groups: those that are public and their combinations, and which of the others may be shown."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.budget_hooks import observed
from dither.errors import InvalidArgument
from dither.exact.search import bisect_integers
from dither.mechanisms import Gaussian, Laplace
from dither.tables.card.values import Value, literal_type
from dither.tables.compile import expressions
from dither.tables.compile.expressions import Lookup
from dither.tables.compile.statements import Measure
from dither.tables.planning.derived_keys import PublicFacts
from dither.tables.planning.public_rows import TiedValues
from dither.tables.query.tree import Call, Column, Expression, Group, Literal

MOST_COMBINATIONS = 1_000_000

Noise = Laplace | Gaussian
Key = tuple[Value, ...]
Values = tuple[Value, ...]
PublicKeys = tuple[Values | None, ...]
"""The public keys of each column of GROUP BY; None where they are not public."""
Shown = tuple[list[Key], dict[Measure, NDArray[Any]]]


@dataclass(frozen=True)
class Tie:
    """Columns of GROUP BY whose keys do not occur in every combination: those that do, by the numbers of the keys."""

    places: tuple[int, ...]
    numbers: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class KeySelection:
    """Which keys that are not public are shown: those whose noisy number of people is at least ``threshold``."""

    threshold: int
    delta: Fraction
    """The probability with which a key that one person alone has is shown, over all of their groups."""
    groups: int = 1
    """How many of them one person can be in."""

    @observed
    def release(self, lines: Mapping[Key, tuple[int, ...]], noises: Mapping[Measure, Noise]) -> Shown:
        """The keys that are shown, with every measure of theirs and its noise; each line has a number for each."""
        # in the order of their text, which says nothing of who has them
        keys = sorted(lines, key=lambda key: tuple((part is None, str(part)) for part in key))
        noisy = noisy_measures([lines[key] for key in keys], noises)
        is_shown = noisy[Measure("people")] >= self.threshold
        shown = [key for key, keep in zip(keys, is_shown.tolist(), strict=True) if keep]
        return shown, {measure: values[is_shown] for measure, values in noisy.items()}


def vectors(measures: Iterable[Measure]) -> list[list[int]]:
    """The places of the measures of each measurement, which are released together.

    >>> vectors([Measure("rows"), Measure("people")])
    [[0], [1]]
    """
    places: dict[object, list[int]] = {}
    for place, measure in enumerate(measures):
        places.setdefault(measure.measurement, []).append(place)
    return list(places.values())


def noisy_measures(lines: Sequence[tuple[int, ...]], noises: Mapping[Measure, Noise]) -> dict[Measure, NDArray[Any]]:
    """Each measure of some groups, with its noise. The measures of one measurement are released as one vector, whose
    norm over all groups is what the sensitivity of their noise bounds."""
    whole = np.array(lines, dtype=np.int64).reshape(len(lines), len(noises))
    measures, released = list(noises), whole.copy()
    for vector in vectors(measures) if lines else ():
        noisy = noises[measures[vector[0]]].release(whole[:, vector].ravel())
        released[:, vector] = np.asarray(noisy).reshape(len(lines), len(vector))
    return {measure: released[:, place] for place, measure in enumerate(measures)}


def public_keys(
    groups: Sequence[Group],
    where: Expression | None,
    find: Lookup,
    *,
    listed_only: bool = False,
    tied: Sequence[TiedValues] = (),
) -> PublicKeys:
    """The public keys of each column of GROUP BY: those of the question, of the column's card, or those that follow
    from what is public (:mod:`dither.tables.planning.derived_keys`); None where they are not public.

    Of keys that the question does not list, only those are left that WHERE lets through, and of columns of a public
    table those that are in rows that it lets through: ``tied``. Where derived keys have more combinations than can be
    shown, the longest lists are not used. With ``listed_only`` keys are not derived, but for booleans and bins.
    """
    keys: list[tuple[Value, ...] | None] = []
    derived: set[int] = set()
    for i, group in enumerate(groups):
        if group.keys is not None:
            keys.append(_of_type(group.keys, group.value, find))
            continue
        card = find(group.value)[1] if isinstance(group.value, Column) else None
        if card is not None and card.keys is not None:
            listed = _of_type(card.keys, group.value, find)
            if where is None:
                keys.append(listed)
                continue
        elif listed_only and not _has_few_keys(group.value, find):
            keys.append(None)
            continue
        else:
            derived.add(i)
        values = PublicFacts.of(find, where).values(group.value)
        keys.append(None if values == (None,) else values)
    for item in tied:
        for place, occurring in zip(item.places, map(set, zip(*item.values, strict=True)), strict=True):
            listed_here = keys[place]
            if listed_here is not None and groups[place].keys is None:
                keys[place] = tuple(key for key in listed_here if key in occurring) or listed_here
    while derived and number_of_groups(keys, ties_of(groups, keys, tied)) > MOST_COMBINATIONS:
        longest = max(derived, key=lambda i: len(keys[i] or ()))
        derived.discard(longest)
        keys[longest] = None
    return tuple(keys)


def ties_of(groups: Sequence[Group], keys: Sequence[Values | None], tied: Sequence[TiedValues]) -> tuple[Tie, ...]:
    """Which combinations of public keys there are, of columns of one public table; keys that the question lists are
    shown in all of them."""
    result = []
    for item in tied:
        free = [i for i, place in enumerate(item.places) if keys[place] is not None and groups[place].keys is None]
        places = tuple(item.places[i] for i in free)
        known = [{key: number for number, key in enumerate(keys[place] or ())} for place in places]
        lines = [[number_of.get(line[i]) for i, number_of in zip(free, known, strict=True)] for line in item.values]
        numbers = {tuple(n for n in line if n is not None) for line in lines if None not in line}
        if 0 < len(numbers) < math.prod(map(len, known)):
            result.append(Tie(places, tuple(sorted(numbers))))
    return tuple(result)


def number_of_groups(keys: Sequence[Values | None], ties: Sequence[Tie] = (), private: int = 1) -> int:
    """How many groups there are, with so many keys in each column whose keys are not public.

    >>> number_of_groups((("a", "b"), (1, 2), None), [Tie((0, 1), ((0, 0), (1, 1)))], private=10)
    20
    """
    places = {place for tie in ties for place in tie.places}
    free = [private if listed is None else len(listed) for i, listed in enumerate(keys) if i not in places]
    return math.prod([*free, *(len(tie.numbers) for tie in ties)])


def _has_few_keys(value: Expression, find: Lookup) -> bool:
    is_bin = isinstance(value, Call) and value.op == "bin"
    return is_bin or expressions.compile(value, find).type == "boolean"


def _of_type(keys: tuple[Value, ...], value: Expression, find: Lookup) -> tuple[Value, ...]:
    """Keys, each once, of the type that they are compared with: a row has one of them at most."""
    kind = expressions.compile(value, find).type
    if not any(key is not None for key in keys) or {literal_type(key) for key in keys} - {kind, None}:
        raise InvalidArgument("keys", f"keys of type {kind}", "others, or none", "list values of the column")
    return tuple(dict.fromkeys(keys))


def mode_keys(value: Expression, where: Expression | None, find: Lookup) -> tuple[Value, ...] | None:
    """The public keys that MODE chooses among where the question lists none; NULL is no value."""
    (keys,) = public_keys([Group("", value)], where, find)
    return None if keys is None else tuple(key for key in keys if key is not None)


def bin_labels(groups: Sequence[Group]) -> dict[str, Expression]:
    """How groups that are bins are shown: by their edges, as an expression of the bin's number. NULL stays NULL.

    >>> edges = tuple(map(Literal, (0, 10, 20)))
    >>> bin_labels([Group("ages", Call("bin", (Column("age"), *edges)))])["ages"].args[1]
    Literal(value='[0, 10)')
    """
    result: dict[str, Expression] = {}
    for group in groups:
        if isinstance(group.value, Call) and group.value.op == "bin":
            edges = [f"{item.value:,.15g}" for item in group.value.args[1:] if isinstance(item, Literal)]
            last = len(edges) - 2
            arms: list[Expression] = []
            for i, (low, high) in enumerate(itertools.pairwise(edges)):
                label = f"[{low}, {high}{']' if i == last else ')'}"
                arms += [Call("=", (Column(group.name), Literal(i))), Literal(label)]
            result[group.name] = Call("case", (*arms, Literal(None)))
    return result


def every_group(keys: PublicKeys, ties: Sequence[Tie] = ()) -> list[Key] | None:
    """Every combination of public keys that there is; None where some keys are not public.

    >>> every_group((("north", "south"), (False, True)))
    [('north', False), ('north', True), ('south', False), ('south', True)]
    >>> every_group((("north", "south"), (1, 2), ("n", "s")), [Tie((0, 2), ((0, 0), (1, 1)))])
    [('north', 1, 'n'), ('north', 2, 'n'), ('south', 1, 's'), ('south', 2, 's')]
    """
    listed = [values for values in keys if values is not None]
    if len(listed) < len(keys):
        return None
    size = number_of_groups(keys, ties)
    if size > MOST_COMBINATIONS:
        raise InvalidArgument(
            "groups", f"at most {MOST_COMBINATIONS} combinations of public keys", f"{size}", "state fewer keys"
        )
    if not ties:
        return list(itertools.product(*listed))
    return [tuple(values[i] for values, i in zip(listed, line, strict=True)) for line in _numbers(keys, ties)]


def group_numbers(keys: PublicKeys, ties: Sequence[Tie] = ()) -> list[Key] | None:
    """The groups by the numbers of their keys, in the order of :func:`every_group`."""
    return None if any(listed is None for listed in keys) else list(_numbers(keys, ties))


def _numbers(keys: PublicKeys, ties: Sequence[Tie]) -> list[tuple[int, ...]]:
    tied = {place for tie in ties for place in tie.places}
    rest = [(i, len(listed)) for i, listed in enumerate(keys) if listed is not None and i not in tied]
    parts: list[Iterable[tuple[int, ...]]] = [tie.numbers for tie in ties]
    parts += [[(number,) for number in range(size)] for _, size in rest]
    places = [place for tie in ties for place in tie.places] + [place for place, _ in rest]
    order = sorted(range(len(places)), key=places.__getitem__)
    lines = (tuple(itertools.chain.from_iterable(line)) for line in itertools.product(*parts))
    return sorted(tuple(line[i] for i in order) for line in lines)


def threshold(noise: Noise, delta: Fraction, groups: int, normal: bool) -> KeySelection:
    """The smallest threshold that a key of one person passes with probability at most delta / groups; normal noise
    has half of delta to itself. The probability is that of the number as it is released, rounding and all."""
    delta_of_keys = delta / 2 if normal else delta
    share = delta_of_keys / groups
    bits = 64 + (1 / share).__ceil__().bit_length()
    low, high = 1, 2
    while noise.integer_tail(1, high, bits) > share:
        low, high = high, 2 * high
    high = bisect_integers(lambda k: noise.integer_tail(1, k, bits) <= share, low, high).holds
    return KeySelection(high, delta_of_keys, groups)
