"""A graphical model of a table: the law of largest entropy whose margins are close to noisy ones.

The model is ``exp`` of a sum of one array for each measured table; sums over it are passed along a junction tree
. It is fitted by mirror descent on the squared distances of its margins from the noisy
ones, each in units of its noise (McKenna, Sheldon and Miklau 2019). Cells that public rules exclude
(:mod:`dither.publish.constraints`) are exactly 0 throughout. Everything here is post-processing.

Junction trees: cliques of attributes that hold all measured tables, joined so that sums can be passed along.

The law of synthetic records as a table for each clique of a junction tree: what is recorded, and drawn from.

Drawing needs nothing but additions, divisions and comparisons in a fixed order, so that the same law and the same
random words give the same records everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.publish.domain import Integers
from dither.publish.residuals import Floats
from dither.randomness import Source

Clique = tuple[int, ...]
"""Attributes by their place, in increasing order."""


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which the parent of each comes before it; the first has none (-1).

    >>> tree = junction_tree([2, 3, 4, 5], [(0, 1), (1, 2), (2, 3)])
    >>> sorted(tree.cliques), tree.size([2, 3, 4, 5])
    ([(0, 1), (1, 2), (2, 3)], 38)
    """

    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]

    def separator(self, place: int) -> Clique:
        """Return the attributes that a clique shares with its parent."""
        above = self.cliques[self.parents[place]] if self.parents[place] >= 0 else ()
        return tuple(attribute for attribute in self.cliques[place] if attribute in above)

    def size(self, sizes: Sequence[int]) -> int:
        """Return the number of cells of all cliques."""
        return sum(cells(clique, sizes) for clique in self.cliques)

    def home(self, table: Clique) -> int:
        """Return the index of the first clique that contains a table."""
        return next(i for i, clique in enumerate(self.cliques) if {*table} <= {*clique})


def cells(attributes: Iterable[int], sizes: Sequence[int]) -> int:
    """Return the number of cells of a table of these attributes."""
    return math.prod(sizes[attribute] for attribute in attributes)


def junction_tree(sizes: Sequence[int], tables: Iterable[Clique]) -> JunctionTree:
    """Return a junction tree whose cliques contain all these tables.

    Attributes are eliminated one by one, always the one whose clique is smallest; cliques are joined where they share
    the most cells.
    """
    cliques = maximal_cliques(sizes, tables)
    order, parents = [0], [-1]
    left = [*range(1, len(cliques))]
    while left:
        _, best, above = max(
            (cells({*cliques[i]} & {*cliques[j]}, sizes) if {*cliques[i]} & {*cliques[j]} else 0, -i, place)
            for place, j in enumerate(order)
            for i in left
        )
        order.append(-best)
        parents.append(above)
        left.remove(-best)
    return JunctionTree(tuple(cliques[i] for i in order), tuple(parents))


def maximal_cliques(sizes: Sequence[int], tables: Iterable[Clique]) -> list[Clique]:
    """Return the maximal cliques of the graph of attributes after elimination, which triangulates it.

    ``sizes`` has the number of keys of each attribute, and attributes of one table are neighbors. The attribute whose
    clique has the fewest cells is eliminated first, and its neighbors are joined.
    """
    neighbors: dict[int, set[int]] = {attribute: set() for attribute in range(len(sizes))}
    for table in tables:
        for attribute in table:
            neighbors[attribute].update(other for other in table if other != attribute)
    eliminated: list[set[int]] = []
    while neighbors:
        chosen = min(neighbors, key=lambda i: (sizes[i] * cells(neighbors[i], sizes), i))
        around = neighbors.pop(chosen)
        eliminated.append({chosen, *around})
        for attribute in around:
            neighbors[attribute] |= around - {attribute}
            neighbors[attribute].discard(chosen)
    cliques: list[set[int]] = []
    for clique in eliminated:
        if not any(clique <= other for other in cliques):
            cliques.append(clique)
    return sorted(tuple(sorted(clique)) for clique in cliques)


Flags = NDArray[np.bool_]
_LOWEST = 1e-300
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)


@dataclass(frozen=True, eq=False)
class CliqueLaws:
    """Records as draws from one clique after the other, each given what its parent in the tree has drawn."""

    sizes: tuple[int, ...]
    tree: JunctionTree
    possible: Sequence[Flags] = field(repr=False)
    """The cells of each clique that some allowed record has, from :func:`possible_cells`."""
    laws: Sequence[Floats] = field(repr=False)
    """The expected counts of each clique's cells."""
    total: float = 1.0

    def sample(self, rows: int, source: Source) -> list[Integers]:
        """Draw the codes of ``rows`` records, one array for each attribute.

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
    """Return which cells of each clique are possible.

    A cell is possible if some record has it all of whose cells in the tables of ``allowed`` are true.

    What is possible in one clique is passed to its neighbors, from the leaves of the tree to its root and back; in a
    junction tree, what agrees along all edges belongs to whole records.
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
    """Return the array of a table with an axis of length 1 for every other attribute of a clique."""
    shape = iter(values.shape)
    return values.reshape([next(shape) if attribute in table else 1 for attribute in clique])


def _any_to(flags: Flags, clique: Clique, table: Clique) -> Flags:
    """Return whether any cell of a clique is flagged, for each cell of a table within the clique."""
    return np.asarray(flags.any(axis=tuple(i for i, attribute in enumerate(clique) if attribute not in table)))


def _draw(law: Floats, keys: Integers, ranks: Integers, multiplier: float, source: Source) -> Integers:
    """Draw for each record a column of the row ``keys`` of the law, never one with probability 0.

    ``law`` has a row of probabilities for each key, which need not add up to 1. The points of the records of one key
    are spread evenly over [0, 1), by the multiples of ``multiplier`` modulo 1 in the order of ``ranks``, from a random
    start: frequencies are closer to the law than independent draws would be.

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
    """Draw independent numbers from 0 to 1, 1 excluded."""
    return np.asarray((source.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


_IMPOSSIBLE = -1e6
"""The logarithm of what is impossible: small enough to be exactly 0, and finite, so that differences are numbers."""


@dataclass
class MeasuredTable:
    """A noisy margin: its attributes, its values, and the variance of their noise."""

    table: Clique
    values: Floats
    variance: float

    def combined(self, other: MeasuredTable) -> MeasuredTable:
        """Return both measurements of one margin as one."""
        weight = other.variance / (self.variance + other.variance)
        values = weight * self.values + (1 - weight) * other.values
        return MeasuredTable(self.table, values, 1 / (1 / self.variance + 1 / other.variance))


@dataclass
class GraphicalModel:
    """The law of largest entropy for ``total`` records whose margins are close to measurements.

    ``allowed`` has the possible cells of some tables; records with other cells have probability 0.
    """

    sizes: tuple[int, ...]
    total: float
    allowed: Mapping[Clique, Flags] = field(default_factory=dict)
    parameters: dict[Clique, Floats] = field(default_factory=dict)
    tree: JunctionTree = field(init=False)
    possible: list[Flags] = field(init=False)
    """The cells of each clique that some allowed record has."""
    beliefs: list[Floats] = field(init=False)
    step: float = 0.0

    def __post_init__(self) -> None:
        self._join([])
        self.beliefs = self._infer(self.parameters)

    def _join(self, tables: Sequence[Clique]) -> None:
        """Make the junction tree of some tables."""
        self.tree = junction_tree(self.sizes, [*tables, *self.allowed])
        self.possible = possible_cells(self.sizes, self.tree, self.allowed)

    def fit(self, measurements: Sequence[MeasuredTable], iterations: int) -> None:
        """Fit the model to measurements by at most ``iterations`` gradient steps on its parameters.

        The first step starts from their present values. A step that makes the loss larger is not taken and the step
        size is halved; after others it grows by 30 %. The fit ends early where the loss hardly falls.
        """
        self._join([item.table for item in measurements])
        for item in measurements:
            self.parameters.setdefault(item.table, np.zeros_like(item.values))
        homes = [self.tree.home(item.table) for item in measurements]
        variance = min(item.variance for item in measurements)
        self.step = self.step or variance / self.total
        beliefs = self._infer(self.parameters)
        loss, slopes = self._loss(measurements, homes, beliefs)
        for _ in range(iterations):
            moved = {
                item.table: self.parameters[item.table] - self.step * slope
                for item, slope in zip(measurements, slopes, strict=True)
            }
            trial = self._infer(moved)
            trial_loss, trial_slopes = self._loss(measurements, homes, trial)
            if trial_loss <= loss:
                gain = loss - trial_loss
                self.parameters, beliefs, loss, slopes = moved, trial, trial_loss, trial_slopes
                self.step *= 1.3
                if gain < 1e-7 * loss:
                    break
            else:
                self.step *= 0.5
        self.beliefs = beliefs

    def _loss(
        self, measurements: Sequence[MeasuredTable], homes: Sequence[int], beliefs: Sequence[Floats]
    ) -> tuple[float, list[Floats]]:
        """Return the loss and its derivative for each measured table.

        The loss is half the squared distance of the measured tables from the model's, in units of their variance.
        ``homes`` has the index of a clique that contains each table, and ``beliefs`` the model's counts of each clique.
        """
        loss, slopes = 0.0, []
        for item, home in zip(measurements, homes, strict=True):
            slope = (_sum_to(beliefs[home], self.tree.cliques[home], item.table) - item.values) / item.variance
            loss += 0.5 * item.variance * float(np.sum(slope * slope))
            slopes.append(slope)
        return loss, slopes

    def _infer(self, parameters: dict[Clique, Floats]) -> list[Floats]:
        """Return the margins of all cliques: sums are passed from the leaves to the root and back."""
        tree = self.tree
        logs = [np.where(cells, 0.0, _IMPOSSIBLE) for cells in self.possible]
        for table, values in parameters.items():
            home = tree.home(table)
            logs[home] += expanded(values, table, tree.cliques[home])
        passed: list[Floats] = [np.zeros(())] * len(logs)
        for place in range(len(logs) - 1, 0, -1):
            above, separator = tree.parents[place], tree.separator(place)
            passed[place] = _log_sum_to(logs[place], tree.cliques[place], separator)
            logs[above] += expanded(passed[place], separator, tree.cliques[above])
        for place in range(1, len(logs)):
            above, separator = tree.parents[place], tree.separator(place)
            message = _log_sum_to(logs[above], tree.cliques[above], separator) - passed[place]
            logs[place] += expanded(message, separator, tree.cliques[place])
        results = []
        for values in logs:
            values -= values.max()
            np.exp(values, out=values)
            values *= self.total / values.sum()
            results.append(values)
        return results

    def margin(self, table: Clique) -> Floats:
        """Return a margin of the model, from a clique that contains it."""
        home = self.tree.home(table)
        return _sum_to(self.beliefs[home], self.tree.cliques[home], table)

    def laws(self) -> CliqueLaws:
        """Return the law of the records, clique by clique, to draw from."""
        return CliqueLaws(self.sizes, self.tree, self.possible, self.beliefs, self.total)


def _sum_to(values: Floats, clique: Clique, table: Clique) -> Floats:
    """Sum the cells of a clique to a table within the clique."""
    axes = tuple(i for i, attribute in enumerate(clique) if attribute not in table)
    return np.asarray(values.sum(axis=axes))


def _log_sum_to(logs: Floats, clique: Clique, table: Clique) -> Floats:
    """Return the logarithm of the sums of ``exp(logs)`` over the attributes of a clique that are not in a table."""
    axes = tuple(i for i, attribute in enumerate(clique) if attribute not in table)
    if not axes:
        return logs
    top = logs.max(axis=axes, keepdims=True)
    return np.asarray(np.log(np.exp(logs - top).sum(axis=axes)) + np.squeeze(top, axis=axes))
