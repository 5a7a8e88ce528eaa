"""The mechanism that measures residuals: exact noise on whole numbers, one charge. The one place that draws noise.

*Mechanism.* For every residual A that a plan needs, compute its contrasts from the counts, whole numbers all of them
(:mod:`dither.publish.residuals`), multiply them by a public whole number M, and add independent noise to each: with
``scale^2 = M^2 v_A |h|^2 prod (1 - 1/k)``, from the discrete Gaussian law on the integers, or from the normal law
rounded to integers.

*Neighboring relation.* One person is added or removed, with all rows. The rows are bounded before: all together they
change the counts of every table by at most ``contribution`` in the l1 norm. One row without weights is 1; up to k rows
are k; weighted rows are the largest sum of one person's weights. Counts may be in any whole units, the contribution is
then in the same units.

*Sensitivity.* For residual A let d be the change of its table of counts: ``|d|_1 <= contribution``. The squared
distance of the contrasts in units of the noise, ``q(d) = sum_h h(d)^2 / (v_A |h|^2 prod (1 - 1/k))``, is the square of
a seminorm, hence convex, and largest at an end of the l1 ball: all of the contribution in one cell. There it is at most
``contribution^2 / v_A``, since the sum of ``h(cell)^2 / |h|^2`` over the contrasts of one family is ``1 - 1/k``. Over
all residuals the squared distance is at most ``D^2 = contribution^2 * sum_A 1 / v_A``.

*Guarantee.* Discrete Gaussian noise of parameter ``scale`` on a whole number that moves by the whole number t is
``t^2 / (2 scale^2)``-zCDP (Canonne, Kamath and Steinke 2020), independent draws add up: ``D^2 / 2``-zCDP in all. The
normal law rounded to integers is a function of the contrasts with normal noise, which as one Gaussian release has the
exact curve of a ratio ``1 / D`` of noise to sensitivity (Balle and Wang 2018), whatever the dimension; it is used where
a guarantee of epsilon and delta is asked for. Scales are rounded up, ``D`` is computed exactly from the rates used.

*In 64 bits.* Sums, products and noise are computed modulo 2^64. What results is a function of the exact release, so
that no overflow can weaken the guarantee; how many rows a table may have before it would spoil the numbers is checked
beforehand, from public sizes.

*Why a multiplier.* On the lattice of the contrasts themselves, noise of small scale comes in large steps, and an
interval of 95 % might cover 91 % or 98 %. M makes every scale at least 64 steps, so that laws are normal for all
purposes of intervals: the variance differs from ``scale^2`` by less than one in 40,000.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from dither import arguments
from dither.accounting import Concentrated, Event, GaussianNoise, gaussian_ratio
from dither.budget_hooks import spends
from dither.errors import InvalidArgument, WrongType
from dither.exact import down, root_up, up
from dither.guarantees import ZCDP, ApproxDP, Guarantee
from dither.present.text import rounded_up
from dither.publish.allocate import Allocation
from dither.publish.domain import Domain, Levels, contains
from dither.publish.residuals import Floats, Numbers, Residuals
from dither.randomness import MAX_SCALE, Normal, Source, discrete_gaussian, integer_steps, resolve

_NORMAL = Normal()
_BITS = 64
_FINEST_SCALE = 64
_LEAST_ROWS = 1 << 30
_RATE_BITS = 60


def cost_of(guarantee: Guarantee, contribution: float | Fraction = 1) -> Fraction:
    """Return the largest sum of ``1 / v_A`` that a guarantee pays for, with v_A the variances of residuals; rounded
    down.

    >>> cost_of(ZCDP(0.5)), cost_of(ZCDP(0.5), contribution=2)
    (Fraction(1, 1), Fraction(1, 4))
    """
    size = arguments.sensitivity(contribution, "contribution")
    if isinstance(guarantee, ZCDP):
        return 2 * guarantee.exact[0] / size**2
    if isinstance(guarantee, ApproxDP):
        epsilon, delta = guarantee.exact
        return 1 / (gaussian_ratio(arguments.epsilon(epsilon), arguments.delta(delta)) * size) ** 2
    raise WrongType("guarantee", "ZCDP or ApproxDP", type(guarantee).__name__, "pass ApproxDP(1, 1e-9) or ZCDP(0.01)")


def budget_for(guarantee: Guarantee, times: float) -> dict[str, float]:
    """Return the budget option that pays for ``times`` the cost of a guarantee, rounded up: ``rho``, or ``epsilon`` at
    the same delta.

    >>> budget_for(ZCDP(0.5), 4.001), budget_for(ApproxDP(1, 1e-9), 4)
    ({'rho': 2.01}, {'epsilon': 2.08})
    """
    times *= 1 + 1e-9  # rates are rounded down
    if isinstance(guarantee, ZCDP):
        return {"rho": float(rounded_up(guarantee.rho * times))}
    assert isinstance(guarantee, ApproxDP)
    wanted = times * float(cost_of(guarantee))
    low, high = guarantee.epsilon, guarantee.epsilon
    while float(cost_of(ApproxDP(high, guarantee.delta))) < wanted:
        low, high = high, 2 * high
    while high > low * (1 + 1e-6):
        middle = (low + high) / 2
        enough = float(cost_of(ApproxDP(middle, guarantee.delta))) >= wanted
        low, high = (low, middle) if enough else (middle, high)
    return {"epsilon": float(rounded_up(high))}


@dataclass(frozen=True, eq=False)
class MarginalMechanism:
    """Measure residuals with exact Gaussian noise; see the module for statement and proof.

    Parameters
    ----------
    residuals
        The domain.
    allocation
        The variance of each residual, as :func:`~dither.publish.allocate.allocate` chose it.
    budget
        The guarantee asked for. The variances are raised where they would cost more.
    contribution
        The largest l1 norm of what one person adds to the counts of a table.
    row
        The most that one row adds to a count, in units of the counts: sums of 2^30 rows must fit into 64 bits.

    Examples
    --------
    >>> from dither.publish import Attribute, Domain, TableSpec, allocate
    >>> residuals = Residuals(Domain([Attribute.flat("sex", ["f", "m"])]))
    >>> budget = ZCDP(0.5)
    >>> mechanism = MarginalMechanism(residuals, allocate(residuals, [TableSpec((1,))], float(cost_of(budget))), budget)
    >>> mechanism.guarantee
    ZCDP(0.5)
    >>> measured = mechanism.release({(1,): np.array([500, 600])})
    >>> abs(measured[0,].item() - 1100) < 20
    True
    """

    residuals: Residuals
    allocation: Allocation
    budget: Guarantee
    contribution: float | Fraction = 1
    row: int = 1
    rates: Mapping[Levels, Fraction] = field(init=False, repr=False)
    """The exact cost ``1 / v_A`` of each residual."""

    def __post_init__(self) -> None:
        """Derive the exact cost of each residual, 1 / variance, as fractions whose sum stays within the budget.

        Rates are rounded down to multiples of a power of 2 and, where they would cost too much, divided by one factor.
        """
        most = cost_of(self.budget, self.contribution)
        unit = Fraction(1, 1 << max(_RATE_BITS - math.floor(math.log2(most)), 0))
        rates = {levels: Fraction(1 / variance) for levels, variance in self.allocation.variances.items()}
        excess = max(sum(rates.values()) / most, Fraction(1))
        exact = {levels: (rate / excess // unit) * unit for levels, rate in rates.items()}
        if not all(exact.values()):
            raise InvalidArgument(
                "allocation", "variances that the budget can pay for", "larger ones", "use allocate()"
            )
        object.__setattr__(self, "rates", exact)
        self._check_capacity()

    @property
    def domain(self) -> Domain:
        """Return the domain of the tables."""
        return self.residuals.domain

    @property
    def discrete(self) -> bool:
        """Return whether the noise is discrete Gaussian, as for zCDP; otherwise it is rounded normal noise."""
        return isinstance(self.budget, ZCDP)

    @cached_property
    def squared_distance(self) -> Fraction:
        """Return the largest squared distance of two neighbors in units of the noise: ``D^2``, exactly."""
        return arguments.sensitivity(self.contribution, "contribution") ** 2 * sum(self.rates.values(), Fraction(0))

    def squared_distance_of(self, changes: Mapping[Levels, Numbers]) -> float:
        """Return the squared distance, in units of the noise, of two releases whose tables of counts differ by
        ``changes``.
        """
        tables = {levels: self.domain.checked_counts(levels, table) for levels, table in changes.items()}
        result = 0.0
        for levels in self.rates:
            table = self._smallest_table(levels, tables)
            contrasts = self.residuals.of(levels, tables[table], table) * float(self.multipliers[levels])
            result += sum(float(np.sum((contrasts[block] / scale) ** 2)) for block, scale in self.scales(levels))
        return result

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of the release, which is at most the budget."""
        if self.discrete:
            paid = self.squared_distance / 2
            return self.budget if paid > Fraction(999_999, 1_000_000) * self.budget.exact[0] else ZCDP(paid)
        return self.budget

    @property
    def event(self) -> Event:
        """Return the event for accountants: zCDP, or one Gaussian release of ratio ``1 / D``, rounded down."""
        if self.discrete:
            return Concentrated(self.squared_distance / 2)
        return GaussianNoise(Fraction(down(1 / root_up(self.squared_distance, _BITS))))

    @cached_property
    def variances(self) -> dict[Levels, float]:
        """Return the variance ``v_A`` of each residual, in squared units of the counts."""
        return {levels: float(1 / rate) for levels, rate in self.rates.items()}

    @cached_property
    def multipliers(self) -> dict[Levels, int]:
        """Return the power of two with which the contrasts of each residual are multiplied before noise is added.

        It makes every scale of noise at least ``_FINEST_SCALE`` steps; the module says why.
        """
        result = {}
        for levels, rate in self.rates.items():
            smallest = min(square for _, square in self.residuals.groups(levels)) / rate
            needed = _FINEST_SCALE**2 / smallest
            result[levels] = 1 << max(0, math.ceil(math.log2(needed) / 2)) if needed > 1 else 1
        return result

    def _check_capacity(self) -> None:
        """Refuse, from public sizes alone, tables whose contrasts 64 bits could not hold."""
        for levels, multiplier in self.multipliers.items():
            coefficient = multiplier
            for item, level in zip(self.residuals.attributes, levels, strict=True):
                coefficient *= item.contrasts[level - 1].largest_coefficient if level else 1
            widest = max(scale for _, scale in self.scales(levels))
            if (1 << 62) // (coefficient * self.row) < _LEAST_ROWS or widest > MAX_SCALE:
                raise InvalidArgument(
                    f"table {' × '.join(self.domain.names(levels))}",
                    "contrasts that 64 bits can hold",
                    "more",
                    "ask for a smaller table, or put the keys into nested levels",
                )

    @spends
    def release(self, counts: Mapping[Levels, Numbers], *, source: Source | None = None) -> dict[Levels, Floats]:
        """Return the noisy contrasts of every residual, in units of the counts.

        ``counts`` holds tables of whole numbers such that every residual is one of a margin of some table.
        """
        resolved = resolve(source)
        tables = {levels: self.domain.checked_counts(levels, table) for levels, table in counts.items()}
        chosen = {levels: self._smallest_table(levels, tables) for levels in self.rates}
        result = {}
        for levels, table in chosen.items():
            multiplier = self.multipliers[levels]
            exact = self.residuals.of(levels, tables[table], table) * np.int64(multiplier)
            for block, scale in self.scales(levels):
                part = exact[block]
                part += self._noise(scale, part.size, resolved).reshape(part.shape)
            result[levels] = exact / multiplier
        return result

    def scales(self, levels: Levels) -> list[tuple[tuple[slice, ...], float]]:
        """Return blocks of a residual's contrasts as slices along each attribute, each with the scale of its noise in
        steps of the multiplied contrasts, rounded up."""
        if levels not in self._scales:
            factor = self.multipliers[levels] ** 2 / self.rates[levels]
            self._scales[levels] = [
                (block, up(root_up(square * factor, _BITS))) for block, square in self.residuals.groups(levels)
            ]
        return self._scales[levels]

    @cached_property
    def _scales(self) -> dict[Levels, list[tuple[tuple[slice, ...], float]]]:
        """Return the cache of :meth:`scales`."""
        return {}

    def _noise(self, scale: float, count: int, source: Source) -> Numbers:
        """Draw noise for whole numbers: discrete Gaussian, or normal rounded to integers."""
        if self.discrete:
            return discrete_gaussian(scale, count, source)
        return integer_steps(_NORMAL, scale, count, source)

    def _smallest_table(self, levels: Levels, tables: Mapping[Levels, Numbers]) -> Levels:
        """Return the smallest of the counted tables from which a residual can be computed."""
        fitting = [table for table in tables if contains(table, levels)]
        if not fitting:
            raise InvalidArgument(
                "counts",
                f"a table with {' × '.join(self.domain.names(levels)) or 'the total'}",
                "none",
                "pass the counts of every table of the plan",
            )
        return min(fitting, key=self.domain.size)


def tables_needed(tables: Sequence[Levels]) -> list[Levels]:
    """Return the tables that are not margins of other ones in the list; their counts determine all residuals."""
    distinct = [*dict.fromkeys(tables)]
    return [table for table in distinct if not any(contains(other, table) for other in distinct if other != table)]
