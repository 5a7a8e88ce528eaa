"""How precisely each residual is measured, so that the tables wanted are as good as the budget allows.

Residual A is measured with variance ``v_A`` and costs ``1 / v_A``; the budget says how much the costs may add up to.
The mean variance of a table's cells, and the variance of any one cell, are sums of ``m_A v_A`` with known shares m_A
(:mod:`dither.publish.residuals`).

* ``objective="sum"``: the weighted sum of the tables' variances, ``sum_A V_A v_A``, is smallest for
  ``v_A = (sum_B sqrt(V_B)) / (sqrt(V_A) c)`` where the costs add up to c (by the inequality of Cauchy and Schwarz). A
  table of n cells counts with its weight times ``n^1.2``: a little more than the sum over its cells, so that the finest
  table stays close to what it would have on its own.
* ``objective="largest"``: the largest ratio of a cell's variance to its table's goal is smallest where no mixture of
  the ratios can be made smaller; the weights of that mixture are found by multiplicative updates, in which a cell that
  is worse than the average gains weight.
* Tables may have a *target*, a variance that none of their cells may exceed. Targets are met first, at the smallest
  cost; what the budget has left is spent as the objective says, without taking anything back. A budget too small for
  them is refused, with what it would reach.

For balanced levels this is the best that any Gaussian measurement of linear functions of the counts can do (Xiao, He,
Zhang and Kifer 2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dither import arguments
from dither.errors import InvalidArgument, NotPrivate, fix_by_options
from dither.inference.measured import normal_quantile
from dither.present.text import rounded_up, two_digits
from dither.publish.domain import Domain, Levels
from dither.publish.residuals import Floats, Residuals, margins

Objective = Literal["sum", "largest"]
_SIZE_POWER = 1.2
_ROUNDS = 20_000
_TOLERANCE = 1e-4
_CUTS = 30


@dataclass(frozen=True)
class TableSpec:
    """A requested table: its levels, its weight in the objective, and the largest variance that a cell may have, in
    squared rows (None: no target).

    >>> TableSpec((1, 0), weight=2.0)
    TableSpec(levels=(1, 0), weight=2.0, variance=None)
    """

    levels: Levels
    weight: float = 1.0
    variance: float | None = None


def table_spec(
    domain: Domain,
    table: Sequence[str],
    *,
    weight: float | None = None,
    error: float | str | None = None,
    people: float | None = None,
    confidence: float = 0.95,
) -> TableSpec:
    """Return the specification of a table from the names of its levels, with a target for its cells where ``error`` is
    given.

    Parameters
    ----------
    weight
        The weight of the table in the objective; 1 by default.
    error
        The largest half-width that a cell's interval may have: a number of people, or a share such as ``"2%"`` of a
        cell of average size.
    people
        The approximate number of people, which must be public; required if ``error`` is a share.
    confidence
        The confidence of that interval.

    Examples
    --------
    >>> from dither.publish.domain import Attribute
    >>> domain = Domain([Attribute.flat("sex", ["f", "m"])])
    >>> table_spec(domain, ["sex"], error="2%", people=1000).variance == table_spec(domain, ["sex"], error=10).variance
    True
    """
    levels = domain.levels(table)
    domain.check_size(levels)
    share = 1.0 if weight is None else arguments.positive(weight, "weight")
    if error is None:
        return TableSpec(levels, share)
    half_width = _half_width(error, people, domain.size(levels))
    return TableSpec(levels, share, (half_width / normal_quantile(confidence)) ** 2)


def _half_width(error: float | str, people: float | None, cells: int) -> float:
    """Return the half-width in rows that an ``error`` states: a number, or a share of a cell of average size ("2%").

    ``people`` is the approximate number of rows (None: not public, so that shares are refused), and ``cells`` the
    number of cells of the table.
    """
    if not isinstance(error, str):
        return arguments.positive(error, "error")
    try:
        share = float(error.strip().removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not error.strip().endswith("%") or not 0 < share < math.inf:
        expected = 'a number of rows, or a share such as "2%"'
        raise InvalidArgument("error", expected, repr(error), 'write "2%", or a number without quotation marks')
    if people is None:
        raise InvalidArgument(
            "people",
            "about how many people there are, for an error that is a share",
            "nothing",
            "pass people=100_000, a public number, or the error as a number of people",
        )
    return share * arguments.positive(people, "people") / cells


@dataclass(frozen=True)
class Allocation:
    """The variance ``v_A`` of each residual that is measured, in squared units of the counts.

    >>> Allocation({(0,): 2.0, (1,): 4.0}).cost
    0.75
    """

    variances: Mapping[Levels, float]

    @property
    def cost(self) -> float:
        """Return the sum of ``1 / v_A``, which is proportional to the privacy cost."""
        return math.fsum(1 / variance for variance in self.variances.values())


def allocate(
    residuals: Residuals,
    tables: Sequence[TableSpec],
    cost: float,
    *,
    objective: Objective = "sum",
    public: Sequence[Levels] = (),
    unit: float = 1.0,
    budget_for: Callable[[float], dict[str, float]] | None = None,
) -> Allocation:
    """Return the variances of the residuals that are best for the objective, with ``sum_A 1 / v_A = cost``.

    ``public`` are the levels of tables whose counts are public, so that their residuals need not be measured. For error
    messages only, ``unit`` is the value of 1 in the counts, in rows, and ``budget_for(factor)`` returns the option of a
    budget that pays ``factor`` times the cost.

    >>> from dither.publish.domain import Attribute
    >>> residuals = Residuals(Domain([Attribute.flat("sex", ["f", "m"])]))
    >>> allocate(residuals, [TableSpec((1,))], cost=1.0).variances
    {(0,): 2.0, (1,): 2.0}
    """
    if not tables:
        raise InvalidArgument("tables", "at least one", "none", "name a table")
    if objective not in ("sum", "largest"):
        raise InvalidArgument("objective", "'sum' or 'largest'", objective, "leave it out")
    known = {*margins(public)} if public else set()
    measured = [
        levels
        for levels in margins([table.levels for table in tables])
        if levels not in known and residuals.size(levels)
    ]
    if not measured:
        return Allocation({})
    problem = _AllocationProblem(residuals, tuple(measured), cost)
    # tables without a measured residual are public
    tables = [table for table in tables if residuals.mean_coefficients(table.levels, measured).any()]
    goals = {table.levels: table.variance for table in tables if table.variance is not None}
    rates = problem.minimax_rates(goals) if goals else None
    if rates is not None:
        _check_goals(problem, rates, goals, unit, budget_for)
    if objective == "largest":
        weights = {table.levels: problem.mean_variance_alone(table.levels) / table.weight for table in tables}
        chosen = problem.minimax_rates(weights)
    else:
        shares = np.zeros(len(measured))
        for table in tables:
            shares += importance(residuals.domain, table) * residuals.mean_coefficients(table.levels, measured)
        chosen = problem.closed_form(shares)
    if rates is not None:
        chosen = problem.rates_meeting(chosen, rates, goals)
    return Allocation(dict(zip(measured, (1 / chosen).tolist(), strict=True)))


def importance(domain: Domain, table: TableSpec) -> float:
    """Return the coefficient of a table's mean cell variance in the sum that the allocation minimizes: the table's
    weight times ``n^1.2`` for n cells.

    >>> from dither.publish.domain import Attribute
    >>> importance(Domain([Attribute.flat("sex", ["f", "m"])]), TableSpec((0,), weight=2.0))
    2.0
    """
    return table.weight * float(domain.size(table.levels) ** _SIZE_POWER)


def _check_goals(
    problem: _AllocationProblem,
    rates: Floats,
    goals: Mapping[Levels, float],
    unit: float,
    budget_for: Callable[[float], dict[str, float]] | None,
) -> None:
    """Refuse goals that the budget cannot meet, with the errors that it can reach.

    Parameters
    ----------
    rates
        The cost of each residual under the whole budget, 1 / variance.
    goals
        The largest variance that is wanted for each table.
    unit
        What 1 in the counts is worth in rows.
    budget_for
        Returns the arguments of a budget that is larger by a factor, for the error message; None: no such advice.
    """
    ratio = max(problem.largest(levels, rates) / goal for levels, goal in goals.items())
    if ratio <= 1:
        return
    domain, z = problem.residuals.domain, normal_quantile(0.95) * unit
    reached = "; ".join(
        f"{' × '.join(domain.names(levels)) or 'everybody'} "
        f"± {two_digits(z * math.sqrt(problem.largest(levels, rates)))} instead of ± {two_digits(z * math.sqrt(goal))}"
        for levels, goal in goals.items()
    )
    raise NotPrivate(
        "error",
        "targets that the budget can meet",
        f"more; at 95 % this budget would reach {reached}",
        *_goal_advice(ratio, {} if budget_for is None else budget_for(ratio)),
    )


def _goal_advice(ratio: float, budget: dict[str, float]) -> tuple[str, str]:
    """Return the fix for goals that need ``ratio`` times the budget, for Python and for the command line; ``budget`` is
    the option that states such a budget, empty if it is not known."""
    larger = f"allow errors {rounded_up(math.sqrt(ratio))} times as large"
    if not budget:
        return fix_by_options(f"{larger}, or spend {rounded_up(ratio)} times the rho")
    return fix_by_options(f"{larger}, or pass {{{next(iter(budget))}}}", **budget)


@dataclass(frozen=True, eq=False)
class _AllocationProblem:
    """The residuals to measure and the cost that they may have together; the *rate* of a residual is its cost,
    ``1 / v_A``."""

    residuals: Residuals
    measured: tuple[Levels, ...]
    cost: float

    def closed_form(self, shares: Floats) -> Floats:
        """Return the rates, adding up to the total cost, that minimize ``sum(shares / rates)``.

        By the inequality of Cauchy and Schwarz they are proportional to ``sqrt(shares)``.
        """
        roots = np.sqrt(np.maximum(shares, 1e-18 * shares.max()))
        return np.asarray(self.cost * roots / roots.sum())

    def largest(self, levels: Levels, rates: Floats) -> float:
        """Return the largest variance of a table's cells under these rates."""
        return self.residuals.largest_variance(levels, self._variances(rates)).variance

    def _variances(self, rates: Floats) -> dict[Levels, float]:
        """Return the variance of each measured residual from its rate, 1 / variance."""
        return dict(zip(self.measured, (1 / rates).tolist(), strict=True))

    def mean_variance_alone(self, levels: Levels) -> float:
        """Return the smallest mean variance of a table's cells if the whole cost were spent on it alone:
        ``(sum sqrt(m_A))^2 / cost``."""
        shares = self.residuals.mean_coefficients(levels, self.measured)
        return float(np.sqrt(shares).sum() ** 2 / self.cost)

    def minimax_rates(self, goals: Mapping[Levels, float]) -> Floats:
        """Return the rates that minimize the largest ratio of a cell's variance to its table's goal.

        It is a cutting-plane method: only the cells with the largest variances so far are constraints; the worst cell
        of each table under the optimal rates is added, until none is worse.
        """
        variances = self._variances(np.full(len(self.measured), self.cost / len(self.measured)))
        rows = [
            self.residuals.largest_variance(levels, variances).coefficients / goal for levels, goal in goals.items()
        ]
        rates = variances
        for _ in range(_CUTS):
            result, worst = self._minimax_of_rows(np.array(rows))
            rates = self._variances(result)
            added = 0
            for levels, goal in goals.items():
                variance, row = self.residuals.largest_variance(levels, rates)
                if variance / goal > worst * (1 + 10 * _TOLERANCE):
                    rows.append(row / goal)
                    added += 1
            if not added:
                break
        return result

    def _minimax_of_rows(self, rows: Floats) -> tuple[Floats, float]:
        """Return the rates of the total cost that minimize the largest of the sums ``row / rates``, and that sum.

        Each of the ``rows`` has the weights with which the variances of the residuals add up to one variance. The
        method is multiplicative weights: rates that are optimal for a weighted mean of the rows have a closed form, and
        rows that are above the mean get more weight.
        """
        weights = np.full(len(rows), 1 / len(rows))
        best, least = np.ones(0), math.inf
        for _ in range(_ROUNDS):
            rates = self.closed_form(weights @ rows)
            ratios = rows @ (1 / rates)
            worst, average = float(ratios.max()), float(weights @ ratios)
            if worst < least:
                best, least = rates, worst
            if worst <= average * (1 + _TOLERANCE):
                break
            weights = np.maximum(weights * ratios / average, 1e-15)
            weights /= weights.sum()
        return best, least

    def rates_meeting(self, chosen: Floats, meets: Floats, goals: Mapping[Levels, float]) -> Floats:
        """Return ``max(least, factor * chosen)`` with the factor that spends the whole cost, found by bisection.

        ``least`` are rates that meet the goals exactly: those in ``meets``, scaled down until the first goal is no
        longer exceeded. For the objective "sum", the result is the optimum among all rates that are at least ``least``.
        """
        ratio = max(self.largest(levels, meets) / goal for levels, goal in goals.items())
        least = meets * min(ratio, 1.0)
        low, high = 0.0, 1.0
        for _ in range(60):
            factor = (low + high) / 2
            low, high = (factor, high) if np.maximum(least, factor * chosen).sum() <= self.cost else (low, factor)
        return np.maximum(least, low * chosen)
