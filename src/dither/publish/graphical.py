"""A graphical model of a table: the law of largest entropy whose margins are close to noisy ones.

The model is ``exp`` of a sum of one array for each measured table; sums over it are passed along a junction tree
(:mod:`dither.publish.junction`). It is fitted by mirror descent on the squared distances of its margins from the noisy
ones, each in units of its noise (McKenna, Sheldon and Miklau 2019). Cells that public rules exclude
(:mod:`dither.publish.constraints`) are exactly 0 throughout. Everything here is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dither.publish.clique_laws import CliqueLaws, Flags, expanded, possible_cells
from dither.publish.contrasts import Floats
from dither.publish.junction import Clique, JunctionTree, junction_tree

_IMPOSSIBLE = -1e6
"""The logarithm of what is impossible: small enough to be exactly 0, and finite, so that differences are numbers."""


@dataclass
class Measurement:
    """A noisy margin: its attributes, its values, and the variance of their noise."""

    table: Clique
    values: Floats
    variance: float

    def combined(self, other: Measurement) -> Measurement:
        """Both measurements of one margin as one."""
        weight = other.variance / (self.variance + other.variance)
        values = weight * self.values + (1 - weight) * other.values
        return Measurement(self.table, values, 1 / (1 / self.variance + 1 / other.variance))


@dataclass
class GraphicalModel:
    """The model of some measurements, for so many records; ``allowed`` says of some tables which cells are possible.

    >>> measured = [Measurement((0, 1), np.array([[3.0, 0.0], [0.0, 1.0]]), 1.0)]
    >>> model = GraphicalModel((2, 2), 4.0)
    >>> model.fit(measured, 200)
    >>> model.margin((1,)).round(1)
    array([3., 1.])
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

    def fit(self, measurements: Sequence[Measurement], iterations: int) -> None:
        """Fit to measurements, from where the model is."""
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
        self, measurements: Sequence[Measurement], homes: Sequence[int], beliefs: Sequence[Floats]
    ) -> tuple[float, list[Floats]]:
        loss, slopes = 0.0, []
        for item, home in zip(measurements, homes, strict=True):
            slope = (_sum_to(beliefs[home], self.tree.cliques[home], item.table) - item.values) / item.variance
            loss += 0.5 * item.variance * float(np.sum(slope * slope))
            slopes.append(slope)
        return loss, slopes

    def _infer(self, parameters: dict[Clique, Floats]) -> list[Floats]:
        """The margins of all cliques: sums are passed from the leaves to the root and back."""
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
        """A margin that one clique holds."""
        home = self.tree.home(table)
        return _sum_to(self.beliefs[home], self.tree.cliques[home], table)

    def laws(self) -> CliqueLaws:
        """The law of the records, clique by clique, to draw from."""
        return CliqueLaws(self.sizes, self.tree, self.possible, self.beliefs, self.total)


def _sum_to(values: Floats, clique: Clique, table: Clique) -> Floats:
    axes = tuple(i for i, attribute in enumerate(clique) if attribute not in table)
    return np.asarray(values.sum(axis=axes))


def _log_sum_to(logs: Floats, clique: Clique, table: Clique) -> Floats:
    axes = tuple(i for i, attribute in enumerate(clique) if attribute not in table)
    if not axes:
        return logs
    top = logs.max(axis=axes, keepdims=True)
    return np.asarray(np.log(np.exp(logs - top).sum(axis=axes)) + np.squeeze(top, axis=axes))
