"""A plan of tables over a domain: expected errors before anything is charged, and one release of all of them.

This is publishing for arrays of counts that someone has computed and bounded; nothing here reads tables of rows.

>>> import numpy as np
>>> import dither as dp
>>> from dither.publish import Attribute, table_spec
>>> domain = Domain([Attribute.flat("region", ["n", "s", "w"]), Attribute.flat("sex", ["f", "m"])])
>>> plan = MarginalPlan(domain, [table_spec(domain, ["region", "sex"]), table_spec(domain, ["region"])])
>>> {names: round(error, 1) for names, error in plan.expected_errors(dp.ApproxDP(1, 1e-9)).items()}
{('region', 'sex'): 11.1, ('region',): 13.6}
>>> publication = plan.release({(1, 1): np.array([[900, 800], [10, 7], [300, 310]])}, dp.ApproxDP(1, 1e-9))
>>> publication.table("region").column_names
['region', 'value', 'lower', 'upper', 'integer']
>>> publication.records().num_rows == publication.table().column("integer")[0].as_py()
True
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial

from dither.errors import InvalidArgument
from dither.guarantees import Guarantee
from dither.inference.measured import normal_quantile
from dither.publish.allocate import Objective, TableSpec, allocate
from dither.publish.domain import MAX_CELLS, Domain, Levels, finest
from dither.publish.mechanism import MarginalMechanism, budget_for, cost_of, tables_needed
from dither.publish.publication import Publication
from dither.publish.residuals import Estimates, Floats, Numbers, Residuals
from dither.publish.totals import PublicTotals
from dither.randomness import Source


@dataclass(frozen=True, eq=False)
class MarginalPlan:
    """Requested tables, a bound on what one person adds to them, and public totals that they must meet.

    Parameters
    ----------
    contribution
        The largest l1 norm of what one person adds to the counts of a table, in the units of the counts.
    unit
        The value of 1 in the counts, in rows; weighted rows are counted in units such as 2^-20.
    whole
        Whether whole counts and records are computed, too.

    Examples
    --------
    >>> import dither as dp
    >>> from dither.publish import Attribute, table_spec
    >>> domain = Domain([Attribute.flat("sex", ["f", "m"])])
    >>> plan = MarginalPlan(domain, [table_spec(domain, ["sex"])])
    >>> {names: round(error, 1) for names, error in plan.expected_errors(dp.ApproxDP(1, 1e-9)).items()}
    {('sex',): 10.8}
    """

    domain: Domain
    tables: Sequence[TableSpec]
    totals: PublicTotals = field(default_factory=lambda: PublicTotals({}))
    objective: Objective = "sum"
    contribution: int | Fraction = 1
    unit: float = 1.0
    whole: bool = True

    def __post_init__(self) -> None:
        for table in self.tables:
            self.domain.check_size(table.levels)

    @cached_property
    def residuals(self) -> Residuals:
        """Return the residuals of the domain."""
        return Residuals(self.domain)

    @property
    def has_whole_counts(self) -> bool:
        """Return whether whole counts are computed: they are requested, and the coarsest table of which all tables are
        margins has at most ``MAX_CELLS`` cells."""
        return self.whole and self.combinations <= MAX_CELLS

    @property
    def combinations(self) -> int:
        """Return the number of cells of the coarsest table of which all tables are margins."""
        return self.domain.size(finest([table.levels for table in self.tables]))

    @property
    def needed(self) -> list[Levels]:
        """Return the tables whose counts the release needs; all others are margins of these."""
        return tables_needed([table.levels for table in self.tables])

    def mechanism(self, guarantee: Guarantee) -> MarginalMechanism:
        """Return the mechanism that measures the tables' residuals at the cost of this guarantee."""
        cost = float(cost_of(guarantee, self.contribution))
        in_units = [
            TableSpec(table.levels, table.weight, table.variance and table.variance / self.unit**2)
            for table in self.tables
        ]
        known = [*self.totals.tables]
        allocation = allocate(
            self.residuals,
            in_units,
            cost,
            objective=self.objective,
            public=known,
            unit=self.unit,
            budget_for=partial(budget_for, guarantee),
        )
        if not allocation.variances:
            raise InvalidArgument(
                "tables",
                "a table that the public totals do not determine",
                "none",
                "ask for more than the public totals, which need no release",
            )
        return MarginalMechanism(self.residuals, allocation, guarantee, self.contribution, math.ceil(1 / self.unit))

    def expected_errors(self, guarantee: Guarantee, confidence: float = 0.95) -> dict[tuple[str, ...], float]:
        """Return the mean half-width of the intervals of every table, in rows; nothing is read and nothing is charged.

        The keys are the names of the columns. ``guarantee`` is what a release would cost, and ``confidence`` that of an
        interval.
        """
        variances, factor = self.mechanism(guarantee).variances, normal_quantile(confidence) * self.unit
        return {
            self.domain.names(table.levels): factor * math.sqrt(self.residuals.mean_variance(table.levels, variances))
            for table in self.tables
        }

    def release(
        self, counts: Mapping[Levels, Numbers], guarantee: Guarantee, *, source: Source | None = None
    ) -> Publication:
        """Measure once and return the publication; ``counts`` holds the tables of :attr:`needed`."""
        mechanism = self.mechanism(guarantee)
        noisy = mechanism.release(counts, source=source)
        return self.publication(noisy, mechanism.variances, mechanism.guarantee, source=source)

    def publication(
        self,
        noisy: Mapping[Levels, Floats],
        variances: Mapping[Levels, float],
        guarantee: Guarantee,
        *,
        source: Source | None = None,
    ) -> Publication:
        """Return the publication that follows from noisy contrasts with these variances, released under this
        guarantee."""
        public = {levels: part / self.unit for levels, part in self.totals.parts(self.residuals).items()}
        tables = [table.levels for table in self.tables]
        estimates = Estimates(self.residuals, tables, {**noisy, **public}, variances, self.unit)
        return Publication(estimates, self.totals, guarantee, self.has_whole_counts, source=source)
