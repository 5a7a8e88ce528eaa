"""Unbiased estimates of every cell of every table, and of any sum of cells, with exact variances.

Estimates are generalized least squares on the noisy contrasts, by the formulas of :mod:`dither.publish.residuals`. They
agree with one another: every table is a margin of the finer ones. They are real numbers and may be negative; whole
numbers that are not come from :mod:`dither.publish.integers`. Intervals are those of the normal law with the exact
variance: the noise of a cell is a sum of independent draws, each at least 64 steps wide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.errors import InvalidArgument
from dither.inference.laws import normal_quantile
from dither.present.text import rounded, significant, two_digit_decimals, two_digits
from dither.publish.domain import Domain, Levels, contains
from dither.publish.residuals import Floats, Residuals, margins


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """The cells of one table: one axis for each attribute that it has.

    >>> TableEstimate(("sex",), np.array([6.0, 4.0]), np.array([1.0, 1.0])).interval(0.95)[0].round(2)
    array([4.04, 2.04])
    """

    names: tuple[str, ...]
    value: Floats
    standard_error: Floats

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return the limits of an interval that contains the exact count with this probability, for each cell."""
        width = normal_quantile(confidence) * self.standard_error
        return self.value - width, self.value + width


@dataclass(frozen=True)
class SumEstimate:
    """A sum of cells.

    >>> SumEstimate(10.0, 2.0).interval(0.95)[1] < 14
    True
    """

    value: float
    standard_error: float

    def __repr__(self) -> str:
        if self.standard_error == 0:
            return f"SumEstimate({significant(self.value)} ± 0 (public))"
        error = normal_quantile(0.95) * self.standard_error
        return f"SumEstimate({rounded(self.value, two_digit_decimals(error))} ± {two_digits(error)} (95 %))"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the limits of an interval that contains the exact sum with this probability."""
        width = normal_quantile(confidence) * self.standard_error
        return self.value - width, self.value + width


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates from noisy contrasts.

    >>> from dither.publish import Attribute, Domain
    >>> residuals = Residuals(Domain([Attribute.flat("sex", ["f", "m"])]))
    >>> noisy = {(0,): np.array([10.0]), (1,): np.array([2.0])}
    >>> estimates = Estimates(residuals, [(1,)], noisy, {(0,): 1.0, (1,): 3.0})
    >>> estimates.table(["sex"]).value, estimates.table(["sex"]).standard_error
    (array([6., 4.]), array([1., 1.]))
    >>> estimates.sum_of(["sex"], np.array([1.0, 1.0]))
    SumEstimate(10.0 ± 2.0 (95 %))
    """

    residuals: Residuals
    tables: Sequence[Levels]
    parts: Mapping[Levels, Floats]
    """The contrasts of each residual: with noise, or public."""
    variances: Mapping[Levels, float]
    """The variance ``v_A`` of each residual; one that is not here is exact."""
    unit: float = 1.0
    """What 1 in the counts is worth."""

    @property
    def domain(self) -> Domain:
        """Return the domain of the tables."""
        return self.residuals.domain

    def table(self, names: Sequence[str]) -> TableEstimate:
        """Return a table by the names of its levels: one that was planned, or a margin of one."""
        levels = self._known(names)
        shape = [size for size, level in zip(self.domain.shape(levels), levels, strict=True) if level]
        values = self.values(levels).reshape(shape)
        errors = self.unit * np.sqrt(self.residuals.variances(levels, self.variances)).reshape(shape)
        return TableEstimate(self.domain.names(levels), values, errors)

    def values(self, levels: Levels) -> Floats:
        """Return the values of a table by its levels; residuals that were not measured count as zero."""
        if not any(contains(table, levels) for table in self.tables):
            self.domain.check_size(levels)
        values = self.residuals.table(levels, self.parts.get)
        return values * self.unit if self.unit != 1 else values

    def sum_of(self, names: Sequence[str], weights: Any) -> SumEstimate:
        """Return a weighted sum of the cells of a table: ``weights`` has one number for each cell, 1 for those that
        count.
        """
        levels = self._known(names)
        array = np.asarray(weights, dtype=np.float64)
        if array.size != self.domain.size(levels):
            raise InvalidArgument(
                "weights", f"{self.domain.size(levels):,} numbers", f"{array.size:,}", "pass one for each cell"
            )
        array = array.reshape(self.domain.shape(levels))
        variance = self.residuals.variance_of_sum(levels, array, self.variances)
        value = float(np.sum(array * self.values(levels)))
        return SumEstimate(value, self.unit * math.sqrt(variance))

    def _known(self, names: Sequence[str]) -> Levels:
        """Return the levels of a table or margin of the plan by its names; others are refused."""
        levels = self.domain.levels(names)
        if not all(below in self.parts for below in margins([levels]) if self.residuals.size(below)):
            planned = ", ".join(" × ".join(self.domain.names(table)) or "total" for table in self.tables)
            raise InvalidArgument(
                "table", f"a table of the plan or a margin of one ({planned})", " × ".join(names), "plan it"
            )
        return levels
