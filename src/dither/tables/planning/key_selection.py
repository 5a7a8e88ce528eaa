"""The keys of groups: those that are public and their combinations, and which of the others may be shown."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.budget_hooks import observed
from dither.errors import InvalidArgument, message
from dither.exact.search import bisect_integers
from dither.mechanisms import Gaussian, Laplace
from dither.tables.card.values import Value, literal_type
from dither.tables.compile import expressions
from dither.tables.compile.expressions import Lookup
from dither.tables.compile.statements import Measure
from dither.tables.query.tree import Call, Column, Expression

MOST_COMBINATIONS = 1_000_000

Noise = Laplace | Gaussian
Key = tuple[Value, ...]
PublicKeys = tuple[tuple[Value, ...] | None, ...]
"""The public keys of each column of GROUP BY; None where they are not public."""
Shown = tuple[list[Key], dict[Measure, NDArray[Any]]]


@dataclass(frozen=True)
class KeySelection:
    """Which keys that are not public are shown: those whose noisy number of people is at least ``threshold``."""

    threshold: int
    delta: Fraction
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


def noisy_measures(lines: Sequence[tuple[int, ...]], noises: Mapping[Measure, Noise]) -> dict[Measure, NDArray[Any]]:
    """Each measure of some groups, with its noise."""
    whole = np.array(lines, dtype=np.int64).reshape(len(lines), len(noises))
    return {
        measure: np.asarray(noise.release(np.ascontiguousarray(whole[:, i])) if lines else whole[:, i])
        for i, (measure, noise) in enumerate(noises.items())
    }


def public_keys(stated: tuple[Value, ...] | None, value: Expression, find: Lookup) -> tuple[Value, ...] | None:
    """The public keys of a group: of the question, of the column's card, or those that follow from its type."""
    if stated is not None:
        return _different(stated, value, find)
    if isinstance(value, Column):
        card = find(value)[1]
        if card.keys is not None:
            return _different(card.keys, value, find)
        return (False, True) if card.type == "boolean" else None
    if isinstance(value, Call) and value.op == "bin":
        return tuple(range(len(value.args) - 2))
    if expressions.compile(value, find).type == "boolean":
        return (False, True)
    return None


def _different(keys: tuple[Value, ...], value: Expression, find: Lookup) -> tuple[Value, ...]:
    """Keys, each once, of the type that they are compared with: a row has one of them at most."""
    kind = expressions.compile(value, find).type
    if not any(key is not None for key in keys) or {literal_type(key) for key in keys} - {kind, None}:
        raise InvalidArgument(message("keys", f"keys of type {kind}", "others, or none", "list values of the column"))
    return tuple(dict.fromkeys(keys))


def every_group(keys: PublicKeys) -> list[Key] | None:
    """Every combination of public keys; None where some keys are not public.

    >>> every_group((("north", "south"), (False, True)))
    [('north', False), ('north', True), ('south', False), ('south', True)]
    """
    if any(listed is None for listed in keys):
        return None
    size = math.prod(len(listed) for listed in keys if listed is not None)
    if size > MOST_COMBINATIONS:
        raise InvalidArgument(
            message("groups", f"at most {MOST_COMBINATIONS} combinations of public keys", f"{size}", "state fewer keys")
        )
    return list(itertools.product(*(listed for listed in keys if listed is not None)))


def group_numbers(keys: PublicKeys) -> list[Key] | None:
    """The groups by the numbers of their keys, in the order of :func:`every_group`."""
    if any(listed is None for listed in keys):
        return None
    return list(itertools.product(*(range(len(listed)) for listed in keys if listed is not None)))


def threshold(noise: Noise, delta: Fraction, groups: int, normal: bool) -> KeySelection:
    """The smallest threshold that a key of one person passes with probability at most delta / groups; normal noise
    has half of delta to itself. The probability is that of the number as it is released, rounding and all."""
    share = (delta / 2 if normal else delta) / groups
    bits = 64 + (1 / share).__ceil__().bit_length()
    low, high = 1, 2
    while noise.integer_tail(1, high, bits) > share:
        low, high = high, 2 * high
    high = bisect_integers(lambda k: noise.integer_tail(1, k, bits) <= share, low, high).holds
    return KeySelection(high, delta, groups)


__all__ = [
    "MOST_COMBINATIONS",
    "Key",
    "KeySelection",
    "Noise",
    "every_group",
    "group_numbers",
    "noisy_measures",
    "public_keys",
    "threshold",
]
