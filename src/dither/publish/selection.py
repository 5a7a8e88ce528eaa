"""Selection and measurement of the tables from which synthetic records are made.

In each round the table that the model describes worst is selected and measured, and the model is fitted again. This is
the private part of :mod:`dither.publish.synthesizer`, whose docstring has the algorithm and the guarantee: all noise is
drawn here, by mechanisms, and every cost is subtracted from the budget before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dither.budget_hooks import covered
from dither.mechanisms import Exponential, Gaussian
from dither.publish.domain import Integers
from dither.publish.graphical import (
    Clique,
    Flags,
    GraphicalModel,
    MeasuredTable,
    cells,
    junction_tree,
    maximal_cliques,
    possible_cells,
)
from dither.randomness import Source

_MEASURED_SHARE = Fraction(19, 20)
"""The fraction of a round's cost that is spent on measuring; the rest is spent on selecting."""
_ROUNDS_PER_ATTRIBUTE = 16
_ROUNDS_LEFT = 12
_STEP_ROUNDS = 40
_LAST_ROUNDS = 400
_SCORE_UNIT = 256
_SCORE_ROWS = (5_000, 100_000)
_ABSENT_DEVIATIONS = 3.0
_LARGEST_COUNT = 1 << 53
_LOW_BITS = 31


@dataclass(frozen=True)
class Round:
    """One measurement: the indices of the attributes, the standard deviation of the noise, and the noisy counts.

    >>> Round((0, 1), 20.0, np.array([[5, 3]]))
    Round(table=(0, 1), sigma=20.0)
    """

    table: Clique
    sigma: float
    values: Integers = field(repr=False, compare=False)

    @property
    def measurement(self) -> MeasuredTable:
        """Return the measured table as :class:`GraphicalModel` takes it."""
        return MeasuredTable(self.table, self.values.astype(np.float64), self.sigma * self.sigma)


@dataclass(frozen=True)
class SelectionPlan:
    """The public parameters of a release: sizes of attributes, tables, budget, and the size limit of the model."""

    sizes: tuple[int, ...]
    first: Sequence[Clique]
    """The tables that are measured first."""
    candidates: Sequence[Clique]
    """The tables that may be selected afterwards."""
    rho: Fraction
    contribution: Fraction
    model_cells: int
    allowed: Mapping[Clique, Flags]
    """For some tables, which cells are possible under public rules."""
    first_share: Fraction = Fraction(1, 4)
    """The fraction of the budget that is spent on the first tables."""
    optional: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The codes of NULL and of other values, for attributes that have them."""

    def possible(self, rounds: Sequence[Round]) -> dict[Clique, Flags]:
        """Return, for some tables, which cells are possible once the first tables are measured.

        Besides the cells that rules exclude, NULL and other values of an attribute are excluded if their noisy count is
        at most three standard deviations: few columns have such values, and noise would put some into every column.
        They stay possible if the rules leave no other value.
        """
        result = dict(self.allowed)
        for attribute, codes in self.optional.items():
            noisy, variance = _noisy_margin(attribute, rounds[: len(self.first)], self.sizes)
            present = np.ones(self.sizes[attribute], dtype=np.bool_)
            present[[code for code in codes if noisy[code] <= _ABSENT_DEVIATIONS * math.sqrt(variance)]] = False
            flags = result.get((attribute,), np.True_) & present
            trial = {**result, (attribute,): np.asarray(flags)}
            tree = junction_tree(self.sizes, [*trial])
            if all(cells_left.any() for cells_left in possible_cells(self.sizes, tree, trial)):
                result = trial
        return result


class Selection:
    """The state of one release: the remaining budget in rho, the measurements, and the model."""

    def __init__(self, plan: SelectionPlan, exact: Mapping[Clique, Integers], source: Source) -> None:
        """Prepare a release, without measuring anything.

        ``exact`` has the exact counts of all tables that may be measured, and ``source`` provides random words.
        """
        self.plan, self.sizes, self.candidates = plan, plan.sizes, plan.candidates
        self.exact, self.source = exact, source
        self.left = plan.rho
        self.share = plan.rho / (_ROUNDS_PER_ATTRIBUTE * len(self.sizes))
        """The cost of one round in rho."""
        self.measured: dict[Clique, MeasuredTable] = {}
        self.rounds: list[Round] = []
        self.model = GraphicalModel(self.sizes, 1.0, plan.allowed)
        self.present = [*self.sizes]
        """The number of possible codes of each attribute, once the first tables are measured."""
        self.smallest = min((self._model_size([*plan.first, item]) for item in plan.candidates), default=0)
        """The number of cells of the smallest model with one candidate, which is allowed whatever the limit is."""

    def run(self) -> None:
        """Measure the first tables, then select and measure others until the budget is spent."""
        self._measure_first()
        while self.left:
            self._next_round()

    def _measure_first(self) -> None:
        """Measure the first tables, estimate the number of people from them, and fit the model.

        A table of k cells with noise sigma has a total error of about ``k sigma``; the sum of these is smallest if
        costs are proportional to ``k^(2/3)``. The sum of each table estimates the number of people, with k times the
        variance of a cell; these estimates are averaged with inverse-variance weights. Without candidates for later
        rounds, the whole budget is spent here.
        """
        whole = self.plan.rho * self.plan.first_share if self.candidates else self.plan.rho
        weights = [Fraction(round(1024 * cells(table, self.sizes) ** (2 / 3))) for table in self.plan.first]
        for table, weight in zip(self.plan.first, weights, strict=True):
            self._measure(table, whole * weight / sum(weights))
        items = [*self.measured.values()]
        precisions = [1 / (item.values.size * item.variance) for item in items]
        total = float(np.average([item.values.sum() for item in items], weights=precisions))
        self.model = GraphicalModel(self.sizes, max(total, 1.0), self.plan.possible(self.rounds))
        self.model.fit(items, _STEP_ROUNDS)
        for (attribute,), flags in [item for item in self.model.allowed.items() if len(item[0]) == 1]:
            self.present[attribute] = int(flags.sum())
        if not self.candidates:
            self.left = Fraction(0)

    def _next_round(self) -> None:
        """Select a table, measure it, and fit the model.

        If the model changed by no more than the noise of the measurement explains, the next rounds get larger shares of
        the budget. The last round gets all that is left.
        """
        last = self.left < 2 * self.share
        share = self.left if last else self.share
        sigma = float(self.plan.contribution) / math.sqrt(2 * float(share * _MEASURED_SHARE))
        fitting = [table for table in self.candidates if self._fits(table)]
        modeled = self._modeled(fitting)
        table = self._select(fitting, modeled, sigma, share * (1 - _MEASURED_SHARE))
        self._measure(table, share * _MEASURED_SHARE)
        if last:
            self.left = Fraction(0)
        self.model.fit([*self.measured.values()], _LAST_ROUNDS if last else _STEP_ROUNDS)
        change = np.abs(self.model.margin(table) - modeled[table] / _SCORE_UNIT).sum()
        if change <= sigma * math.sqrt(2 / math.pi) * cells(table, self.present):
            self.share = max(min(4 * self.share, self.left / _ROUNDS_LEFT), self.share)

    def _fits(self, table: Clique) -> bool:
        """Return whether the model with this table stays within the part of its size limit that is proportional to the
        spent budget, so that early rounds leave space for later ones."""
        if table in self.measured:
            return True
        size = self._model_size([*self.measured, table])
        spent = 1 - (self.left - self.share) / self.plan.rho
        return size <= max(self.plan.model_cells * float(spent), self.smallest)

    def _model_size(self, tables: Sequence[Clique]) -> int:
        """Return the number of cells of a model that has these tables."""
        cliques = maximal_cliques(self.sizes, [*tables, *self.plan.allowed])
        return sum(cells(clique, self.sizes) for clique in cliques)

    def _modeled(self, tables: Sequence[Clique]) -> dict[Clique, Integers]:
        """Return the model's counts of tables, estimated from records drawn from it, in units of ``1 / _SCORE_UNIT``
        rounded to whole numbers."""
        rows = min(max(20 * max(cells(table, self.sizes) for table in tables), _SCORE_ROWS[0]), _SCORE_ROWS[1])
        columns = self.model.laws().sample(rows, self.source)
        factor = _SCORE_UNIT * min(self.model.total, float(_LARGEST_COUNT)) / rows
        result = {}
        for table in tables:
            shape = [self.sizes[i] for i in table]
            codes = np.ravel_multi_index([columns[i] for i in table], shape)
            counts = np.bincount(codes, minlength=math.prod(shape)) * factor
            result[table] = np.rint(counts).astype(np.int64).reshape(shape)
        return result

    def _select(
        self, tables: Sequence[Clique], modeled: Mapping[Clique, Integers], sigma: float, rho: Fraction
    ) -> Clique:
        """Return a table selected by the exponential mechanism, at a cost of at most ``rho``.

        A score is the l1 distance of the exact counts from the model's (``modeled``), less the distance that noise of
        standard deviation ``sigma`` alone would cause: ``sigma sqrt(2 / pi)`` for each cell. Selection at epsilon is
        ``epsilon^2 / 8``-zCDP; epsilon is ``sqrt(8 rho)`` rounded down to a multiple of 2^-60.
        """
        epsilon: Any = Fraction(math.isqrt(int(8 * rho * (1 << 120))), 1 << 60)
        self.left -= epsilon * epsilon / 8
        scores = [
            distance(self.exact[table], modeled[table])
            - round(_SCORE_UNIT * math.sqrt(2 / math.pi) * sigma * cells(table, self.present))
            for table in tables
        ]
        sensitivity: Any = self.plan.contribution * _SCORE_UNIT
        mechanism = Exponential(sensitivity, epsilon)
        chosen: Clique = covered(mechanism.select)(tables, scores, source=self.source)
        return chosen

    def _measure(self, table: Clique, rho: Fraction) -> None:
        """Measure one table with Gaussian noise at a cost of ``rho``, and average it with earlier measurements of
        it."""
        size: Any = self.plan.contribution
        paid: Any = rho
        mechanism = Gaussian(size, rho=paid)
        self.left -= rho
        noisy = covered(mechanism.release)(self.exact[table].ravel(), source=self.source)
        values: Integers = np.asarray(noisy).astype(np.int64).reshape(self.exact[table].shape)
        sigma = mechanism.sigma
        assert isinstance(sigma, float)
        item = Round(table, sigma, values)
        self.rounds.append(item)
        self.measured[table] = combined(self.measured.get(table), item.measurement)


def distance(counts: Integers, modeled: Integers) -> int:
    """Return the exact l1 distance of counts from the model's, in units of 1/256 (in which ``modeled`` is).

    It changes by at most 256 times the l1 change of the counts. Counts beyond 2^53, which no table has, are clipped to
    2^53, which never increases a distance, so that nothing overflows.
    """
    clipped = np.clip(counts, -_LARGEST_COUNT, _LARGEST_COUNT)
    differences = np.abs(_SCORE_UNIT * clipped - modeled)
    return (int((differences >> _LOW_BITS).sum()) << _LOW_BITS) + int((differences & ((1 << _LOW_BITS) - 1)).sum())


def _noisy_margin(attribute: int, rounds: Sequence[Round], sizes: Sequence[int]) -> tuple[Integers, float]:
    """Return the noisy counts of one attribute and their variance, from the smallest of the first tables that has it.

    ``rounds`` are the measurements, and ``sizes`` has the number of keys of each attribute. The variance is that of a
    cell times the number of cells that are added up.
    """
    item = min((item for item in rounds if attribute in item.table), key=lambda item: cells(item.table, sizes))
    axes = tuple(axis for axis, other in enumerate(item.table) if other != attribute)
    return item.values.sum(axis=axes), item.sigma**2 * cells(item.table, sizes) / sizes[attribute]


def combined(first: MeasuredTable | None, second: MeasuredTable) -> MeasuredTable:
    """Return the precision-weighted average of two measurements of a table; ``first`` is None if there is only one."""
    return second if first is None else first.combined(second)
