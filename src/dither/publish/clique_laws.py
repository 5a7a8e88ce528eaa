"""The law of synthetic records as a table for each clique of a junction tree: what is recorded, and drawn from.

Drawing needs nothing but additions, divisions and comparisons in a fixed order, so that the same law and the same
random words give the same records everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.publish.contrasts import Floats
from dither.publish.domain import Integers
from dither.publish.junction import Clique, JunctionTree, cells
from dither.randomness import Source

Flags = NDArray[np.bool_]
_LOWEST = 1e-300
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)


@dataclass(frozen=True, eq=False)
class CliqueLaws:
    """Records as draws from one clique after the other, each given what its parent in the tree has drawn.

    >>> from dither.publish.junction import junction_tree
    >>> from dither.randomness import SeededSource
    >>> tree = junction_tree([2], [])
    >>> laws = CliqueLaws((2,), tree, possible_cells([2], tree, {}), [np.array([3.0, 1.0])], 4.0)
    >>> np.bincount(laws.sample(4, SeededSource(1))[0])
    array([3, 1])
    """

    sizes: tuple[int, ...]
    tree: JunctionTree
    possible: Sequence[Flags] = field(repr=False)
    """The cells of each clique that some allowed record has, from :func:`possible_cells`."""
    laws: Sequence[Floats] = field(repr=False)
    """The expected counts of each clique's cells."""
    total: float = 1.0

    def sample(self, rows: int, source: Source) -> list[Integers]:
        """Codes of so many records, one array for each attribute.

        Each clique is drawn given what its parent has drawn. The records of one combination stand in the order of all
        values drawn before, and get their next values from a sequence that is spread evenly (multiples of an
        irrational number, from a random start): not only the combination, but also every part of it that stands
        together gets values in nearly exact proportion, so that tables come out with less noise than by independent
        draws.

        *Impossible cells are never drawn*: they have the law 0, and possible ones at least a little more. What a parent
        has drawn is possible, so that some cell of the clique that agrees with it is possible.
        """
        columns: list[Integers] = [np.zeros(0, dtype=np.int64)] * len(self.sizes)
        ranks = np.zeros(rows, dtype=np.int64)
        for place, clique in enumerate(self.tree.cliques):
            separator = self.tree.separator(place)
            new = tuple(attribute for attribute in clique if attribute not in separator)
            order = [clique.index(attribute) for attribute in (*separator, *new)]
            positive = np.where(self.possible[place], np.maximum(self.laws[place], _LOWEST), 0.0)
            law = positive.transpose(order).reshape(cells(separator, self.sizes), -1)
            keys = np.zeros(rows, dtype=np.int64)
            for attribute in separator:
                keys = keys * self.sizes[attribute] + columns[attribute]
            drawn = _draw(law, keys, ranks, math.sqrt(_PRIMES[place % len(_PRIMES)]) % 1, source)
            ranks = np.unique(ranks * law.shape[1] + drawn, return_inverse=True)[1].ravel()
            for attribute in reversed(new):
                drawn, columns[attribute] = np.divmod(drawn, self.sizes[attribute])
        return columns


def possible_cells(sizes: Sequence[int], tree: JunctionTree, allowed: Mapping[Clique, Flags]) -> list[Flags]:
    """The cells of each clique that some record has whose cells in all tables of ``allowed`` are true.

    What is possible in one clique is passed to its neighbors, from the leaves of the tree to its root and back; in a
    junction tree, what agrees along all edges belongs to whole records.

    >>> from dither.publish.junction import junction_tree
    >>> tree = junction_tree([2, 2], [(0, 1)])
    >>> possible_cells([2, 2], tree, {(0, 1): np.array([[True, False], [True, True]])})[0].tolist()
    [[True, False], [True, True]]
    """
    result = [np.ones([sizes[attribute] for attribute in clique], dtype=np.bool_) for clique in tree.cliques]
    for table, flags in allowed.items():
        home = tree.home(table)
        result[home] &= expanded(flags, table, tree.cliques[home])
    for place in range(len(result) - 1, 0, -1):
        above, separator = tree.parents[place], tree.separator(place)
        result[above] &= expanded(
            _any_to(result[place], tree.cliques[place], separator), separator, tree.cliques[above]
        )
    for place in range(1, len(result)):
        above, separator = tree.parents[place], tree.separator(place)
        result[place] &= expanded(
            _any_to(result[above], tree.cliques[above], separator), separator, tree.cliques[place]
        )
    return result


def expanded(values: NDArray[Any], table: Clique, clique: Clique) -> NDArray[Any]:
    """The array of a table with an axis of length 1 for every other attribute of a clique."""
    shape = iter(values.shape)
    return values.reshape([next(shape) if attribute in table else 1 for attribute in clique])


def _any_to(flags: Flags, clique: Clique, table: Clique) -> Flags:
    return np.asarray(flags.any(axis=tuple(i for i, attribute in enumerate(clique) if attribute not in table)))


def _draw(law: Floats, keys: Integers, ranks: Integers, multiplier: float, source: Source) -> Integers:
    """For each record a column of the row ``keys`` of the law, never one with the law 0.

    A column is drawn where a point is below the cumulative law and not below that of the column before it: both are
    equal where the law is 0. Behind the last positive column, the cumulative law is 1, and points are below that.
    """
    sums = np.cumsum(law, axis=1)
    cumulative = np.divide(sums, sums[:, -1:], out=np.ones_like(sums), where=sums[:, -1:] > 0)
    offsets = (cumulative + np.arange(len(law))[:, np.newaxis]).ravel()
    order = np.argsort(keys * (int(ranks.max(initial=0)) + 1) + ranks, kind="stable")
    keys_in_order = keys[order]
    counts = np.bincount(keys, minlength=len(law))
    place = np.arange(len(keys)) - (np.cumsum(counts) - counts)[keys_in_order]
    points = (place * multiplier + uniform(len(law), source)[keys_in_order]) % 1.0
    columns = np.searchsorted(offsets, keys_in_order + np.minimum(points, 1 - 1e-9), side="right")
    result = np.empty_like(keys)
    result[order] = columns - keys_in_order * law.shape[1]
    return result


def uniform(count: int, source: Source) -> Floats:
    """Numbers from 0 to 1, 1 excluded."""
    return np.asarray((source.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53)
