"""A graphical model of a table: the maximum-entropy distribution whose margins are close to noisy ones.

The model is ``exp`` of a sum of one array for each measured table; its margins are computed by message passing along a
junction tree, whose cliques contain all measured tables. It is fitted by gradient descent on the squared distances of
its margins from the noisy ones, each in units of its noise (McKenna, Sheldon and Miklau 2019). Cells that public rules
exclude (:mod:`dither.publish.constraints`) are exactly 0 throughout. Everything here is post-processing.

The distribution of synthetic records is recorded as a table for each clique (:class:`CliqueLaws`). Drawing from it
needs only additions, divisions and comparisons in a fixed order, so that the same tables and the same random words give
the same records everywhere.
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
"""A set of attributes: their indices in increasing order."""


@dataclass(frozen=True)
class JunctionTree:
    """The cliques of a junction tree, and the index of each clique's parent, which comes before it; -1 for the root.

    >>> tree = junction_tree([2, 3, 4, 5], [(0, 1), (1, 2), (2, 3)])
    >>> sorted(tree.cliques), tree.size([2, 3, 4, 5])
    ([(0, 1), (1, 2), (2, 3)], 38)
    """

    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]

    def separator(self, index: int) -> Clique:
        """Return the attributes that clique number ``index`` shares with its parent; empty for the root."""
        above = self.cliques[self.parents[index]] if self.parents[index] >= 0 else ()
        return tuple(attribute for attribute in self.cliques[index] if attribute in above)

    def size(self, sizes: Sequence[int]) -> int:
        """Return the number of cells of all cliques."""
        return sum(cells(clique, sizes) for clique in self.cliques)

    def clique_with(self, table: Clique) -> int:
        """Return the index of the first clique that contains a table."""
        return next(i for i, clique in enumerate(self.cliques) if {*table} <= {*clique})


def cells(attributes: Iterable[int], sizes: Sequence[int]) -> int:
    """Return the number of cells of a table of these attributes."""
    return math.prod(sizes[attribute] for attribute in attributes)


def junction_tree(sizes: Sequence[int], tables: Iterable[Clique]) -> JunctionTree:
    """Return a junction tree such that each of the ``tables`` lies in a clique.

    It is the maximum spanning tree of the maximal cliques, weighted by the number of cells of the attributes that two
    cliques share (Prim's algorithm). ``sizes`` has the number of keys of each attribute.
    """
    cliques = maximal_cliques(sizes, tables)
    order, parents = [0], [-1]
    left = [*range(1, len(cliques))]
    while left:
        _, best, above = max(
            (cells({*cliques[i]} & {*cliques[j]}, sizes) if {*cliques[i]} & {*cliques[j]} else 0, -i, index)
            for index, j in enumerate(order)
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
    """The distribution of records as a table for each clique of a junction tree, from which records are drawn clique by
    clique, each given the values that its parent has drawn."""

    sizes: tuple[int, ...]
    tree: JunctionTree
    possible: Sequence[Flags] = field(repr=False)
    """Whether some allowed record has a cell, for each cell of each clique; from :func:`possible_cells`."""
    laws: Sequence[Floats] = field(repr=False)
    """The expected counts of each clique's cells."""
    total: float = 1.0

    def sample(self, rows: int, source: Source) -> list[Integers]:
        """Draw the codes of ``rows`` records, one array for each attribute.

        Each clique is drawn given the values of the attributes that it shares with its parent. Records with the same
        values there are sorted by all values drawn before, and get their next values from a low-discrepancy sequence
        (multiples of an irrational number, from a random start). So each such group, and each consecutive part of it,
        gets values in nearly exact proportion to their probabilities, with less noise than independent draws.

        *Impossible cells are never drawn*: they have probability 0, and possible ones at least ``_LOWEST``. Values that
        a parent has drawn are possible, so some cell of the clique that agrees with them is possible.
        """
        columns: list[Integers] = [np.zeros(0, dtype=np.int64)] * len(self.sizes)
        ranks = np.zeros(rows, dtype=np.int64)
        for index, clique in enumerate(self.tree.cliques):
            separator = self.tree.separator(index)
            new = tuple(attribute for attribute in clique if attribute not in separator)
            order = [clique.index(attribute) for attribute in (*separator, *new)]
            positive = np.where(self.possible[index], np.maximum(self.laws[index], _LOWEST), 0.0)
            law = positive.transpose(order).reshape(cells(separator, self.sizes), -1)
            keys = np.zeros(rows, dtype=np.int64)
            for attribute in separator:
                keys = keys * self.sizes[attribute] + columns[attribute]
            drawn = _draw(law, keys, ranks, math.sqrt(_PRIMES[index % len(_PRIMES)]) % 1, source)
            ranks = np.unique(ranks * law.shape[1] + drawn, return_inverse=True)[1].ravel()
            for attribute in reversed(new):
                drawn, columns[attribute] = np.divmod(drawn, self.sizes[attribute])
        return columns


def possible_cells(sizes: Sequence[int], tree: JunctionTree, allowed: Mapping[Clique, Flags]) -> list[Flags]:
    """Return, for each clique, an array that says which of its cells some allowed record has.

    A record is allowed if its cell in each table of ``allowed`` is true there.

    What is possible in one clique is passed to its neighbors, from the leaves of the tree to its root and back; in a
    junction tree, what agrees along all edges belongs to whole records.
    """
    result = [np.ones([sizes[attribute] for attribute in clique], dtype=np.bool_) for clique in tree.cliques]
    for table, flags in allowed.items():
        clique_with = tree.clique_with(table)
        result[clique_with] &= expanded(flags, table, tree.cliques[clique_with])
    for index in range(len(result) - 1, 0, -1):
        above, separator = tree.parents[index], tree.separator(index)
        result[above] &= expanded(
            _any_to(result[index], tree.cliques[index], separator), separator, tree.cliques[above]
        )
    for index in range(1, len(result)):
        above, separator = tree.parents[index], tree.separator(index)
        result[index] &= expanded(
            _any_to(result[above], tree.cliques[above], separator), separator, tree.cliques[index]
        )
    return result


def expanded(values: NDArray[Any], table: Clique, clique: Clique) -> NDArray[Any]:
    """Return the array of a table reshaped to the axes of a clique, of length 1 for attributes not in the table, so
    that it broadcasts against arrays of the clique."""
    shape = iter(values.shape)
    return values.reshape([next(shape) if attribute in table else 1 for attribute in clique])


def _any_to(flags: Flags, clique: Clique, table: Clique) -> Flags:
    """Return whether any cell of a clique is flagged, for each cell of a table within the clique."""
    return np.asarray(flags.any(axis=_axes_outside(clique, table)))


def _axes_outside(clique: Clique, table: Clique) -> tuple[int, ...]:
    """Return the axes of a clique's array whose attributes are not in a table."""
    return tuple(i for i, attribute in enumerate(clique) if attribute not in table)


def _draw(law: Floats, keys: Integers, ranks: Integers, multiplier: float, source: Source) -> Integers:
    """Return for each record a column drawn with the probabilities ``law[key]`` of its key, never one with probability
    0.

    ``law`` has a row of probabilities for each key, which need not add up to 1, and ``keys`` the key of each record.
    The records of one key, in the order of ``ranks``, get the points ``(start + i * multiplier) mod 1`` with a random
    start, which are spread evenly over [0, 1): frequencies are closer to the law than those of independent draws.

    A column is drawn where a point is below the cumulative law and not below that of the column before it: both are
    equal where the law is 0. Behind the last positive column, the cumulative law is 1, and points are below that.
    """
    sums = np.cumsum(law, axis=1)
    cumulative = np.divide(sums, sums[:, -1:], out=np.ones_like(sums), where=sums[:, -1:] > 0)
    offsets = (cumulative + np.arange(len(law))[:, np.newaxis]).ravel()
    order = np.argsort(keys * (int(ranks.max(initial=0)) + 1) + ranks, kind="stable")
    keys_in_order = keys[order]
    counts = np.bincount(keys, minlength=len(law))
    rank_in_key = np.arange(len(keys)) - (np.cumsum(counts) - counts)[keys_in_order]
    points = (rank_in_key * multiplier + uniform(len(law), source)[keys_in_order]) % 1.0
    columns = np.searchsorted(offsets, keys_in_order + np.minimum(points, 1 - 1e-9), side="right")
    result = np.empty_like(keys)
    result[order] = columns - keys_in_order * law.shape[1]
    return result


def uniform(count: int, source: Source) -> Floats:
    """Draw independent numbers from 0 to 1, 1 excluded."""
    return np.asarray((source.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


_IMPOSSIBLE = -1e6
"""The logarithm of the probability of impossible cells: its exponential is exactly 0, and it is finite, so that
differences are numbers."""


@dataclass
class MeasuredTable:
    """A noisy margin: its attributes, its values, and the variance of their noise."""

    table: Clique
    values: Floats
    variance: float

    def combined(self, other: MeasuredTable) -> MeasuredTable:
        """Return the average of two independent measurements of one margin, weighted by their inverse variances."""
        weight = other.variance / (self.variance + other.variance)
        values = weight * self.values + (1 - weight) * other.values
        return MeasuredTable(self.table, values, 1 / (1 / self.variance + 1 / other.variance))


@dataclass
class GraphicalModel:
    """The maximum-entropy distribution of ``total`` records whose margins are close to measurements.

    ``allowed`` says for some tables which cells are possible; records with other cells have probability 0.
    """

    sizes: tuple[int, ...]
    total: float
    allowed: Mapping[Clique, Flags] = field(default_factory=dict)
    parameters: dict[Clique, Floats] = field(default_factory=dict)
    tree: JunctionTree = field(init=False)
    possible: list[Flags] = field(init=False)
    """Whether some allowed record has a cell, for each cell of each clique."""
    beliefs: list[Floats] = field(init=False)
    """The expected counts of each clique's cells."""
    step: float = 0.0

    def __post_init__(self) -> None:
        self._join([])
        self.beliefs = self._infer(self.parameters)

    def _join(self, tables: Sequence[Clique]) -> None:
        """Set the junction tree for the tables to be measured, and the possible cells of its cliques."""
        self.tree = junction_tree(self.sizes, [*tables, *self.allowed])
        self.possible = possible_cells(self.sizes, self.tree, self.allowed)

    def fit(self, measurements: Sequence[MeasuredTable], iterations: int) -> None:
        """Fit the model to measurements by at most ``iterations`` gradient steps on its parameters.

        It starts from the present parameters. A step that would increase the loss is not taken and halves the step
        size; any other step increases the step size by 30 %. The fit ends early once the loss falls by less than 1e-7
        of itself.
        """
        self._join([item.table for item in measurements])
        for item in measurements:
            self.parameters.setdefault(item.table, np.zeros_like(item.values))
        homes = [self.tree.clique_with(item.table) for item in measurements]
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
        for item, clique_with in zip(measurements, homes, strict=True):
            slope = (
                _sum_to(beliefs[clique_with], self.tree.cliques[clique_with], item.table) - item.values
            ) / item.variance
            loss += 0.5 * item.variance * float(np.sum(slope * slope))
            slopes.append(slope)
        return loss, slopes

    def _infer(self, parameters: dict[Clique, Floats]) -> list[Floats]:
        """Return the expected counts of all cliques under these parameters, by message passing in logarithms from the
        leaves of the junction tree to its root and back."""
        tree = self.tree
        logs = [np.where(cells, 0.0, _IMPOSSIBLE) for cells in self.possible]
        for table, values in parameters.items():
            clique_with = tree.clique_with(table)
            logs[clique_with] += expanded(values, table, tree.cliques[clique_with])
        passed: list[Floats] = [np.zeros(())] * len(logs)
        for index in range(len(logs) - 1, 0, -1):
            above, separator = tree.parents[index], tree.separator(index)
            passed[index] = _log_sum_to(logs[index], tree.cliques[index], separator)
            logs[above] += expanded(passed[index], separator, tree.cliques[above])
        for index in range(1, len(logs)):
            above, separator = tree.parents[index], tree.separator(index)
            message = _log_sum_to(logs[above], tree.cliques[above], separator) - passed[index]
            logs[index] += expanded(message, separator, tree.cliques[index])
        results = []
        for values in logs:
            values -= values.max()
            np.exp(values, out=values)
            values *= self.total / values.sum()
            results.append(values)
        return results

    def margin(self, table: Clique) -> Floats:
        """Return the model's expected counts of a table that lies in a clique."""
        clique_with = self.tree.clique_with(table)
        return _sum_to(self.beliefs[clique_with], self.tree.cliques[clique_with], table)

    def laws(self) -> CliqueLaws:
        """Return the distribution of records by cliques, from which they are drawn."""
        return CliqueLaws(self.sizes, self.tree, self.possible, self.beliefs, self.total)


def _sum_to(values: Floats, clique: Clique, table: Clique) -> Floats:
    """Return the margin ``table`` of the array of a clique that contains it."""
    return np.asarray(values.sum(axis=_axes_outside(clique, table)))


def _log_sum_to(logs: Floats, clique: Clique, table: Clique) -> Floats:
    """Return the logarithm of the margin ``table`` of ``exp(logs)``, an array of a clique that contains it."""
    axes = _axes_outside(clique, table)
    if not axes:
        return logs
    top = logs.max(axis=axes, keepdims=True)
    return np.asarray(np.log(np.exp(logs - top).sum(axis=axes)) + np.squeeze(top, axis=axes))
