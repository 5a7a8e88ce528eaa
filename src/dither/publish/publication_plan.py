"""A plan of tables to publish from the rows of a table: explain it, then release it, once, for one charge.

The plan names tables; :mod:`dither.publish.card_columns` makes their public domain from the card,
:mod:`dither.publish.counting` has the engine count them, bounded for each person, in one scan, and
:mod:`dither.publish.marginal_plan` measures and estimates. Only noisy numbers are recorded
(:mod:`dither.publish.recording`), and everything that is published follows from these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from dither import arguments
from dither.errors import InvalidArgument, WrongType
from dither.guarantees import Guarantee
from dither.publish.allocate import Objective, TableSpec, importance, normal_quantile, table_spec
from dither.publish.card_columns import CardColumn, ColumnReader, nested_levels
from dither.publish.counting import Counting
from dither.publish.domain import MAX_CELLS, Domain, Integers, Levels
from dither.publish.marginal_plan import MarginalPlan
from dither.publish.mechanism import MarginalMechanism
from dither.publish.person_limit import TRIED_LIMITS, MaxRows, PersonLimit, TypicalCell, typical_cell
from dither.publish.plan_explanation import NO_WHOLE, TOTALS_NOTE, ExpectedTable, PlanExplanation, whole_note
from dither.publish.plan_parts import (
    WantedTable,
    budget_of,
    check_repetitions,
    guarantee_for,
    totals_of,
    wanted_tables,
)
from dither.publish.publication import Publication
from dither.publish.recording import decode_parts, encode_parts
from dither.publish.totals import public_totals
from dither.tables.card.toml import kind_of
from dither.tables.card.values import clip, closest
from dither.tables.query.tree import show
from dither.tables.table import Table


class Plan:
    """Tables to publish together from the rows of a table: they add up, and cost one charge.

    Nothing is read and nothing charged until :meth:`release`. Everything that can be refused about a plan is refused
    when it is made, or before the charge.

    Parameters
    ----------
    table
        The table, open.
    tables
        The tables that are wanted: each a list of names, such as ``("state", "sex")``, or a mapping with ``by`` (the
        names), ``weight`` (how much it counts, 1 where it is not given) and ``error`` (the largest half-width that an
        interval may have at 95 %: a number of rows, or ``"2%"`` of a cell of average size). ``()`` is everybody.
    columns
        What is said about columns, by their names in the tables; see :mod:`dither.publish.card_columns`. A column
        that is not listed is the card's, with the keys that the card has.
    nested, lookups
        Levels inside one another, the coarsest first, and by the same name which place lies in which: a public table of
        the card, a CSV or Parquet file, a frame or a mapping.
    totals
        Numbers that are public anyway, by the names of a table: they are met exactly. Never numbers from the data.
    where
        A condition, in SQL or in Python: only rows that meet it count.
    max_rows
        How many rows of a person count in full; a person with more counts for so many in all. By default as the card
        says. ``"auto"`` chooses it privately, with a tenth of what a release costs, and says what it leaves out.
    bias
        Whether a release says how much a stated ``max_rows`` leaves out, for a twentieth of what it costs.
    objective
        ``"sum"`` makes the sum of variances small, ``"largest"`` the largest error of a table, each relative to what
        the table would have alone.
    whole
        Whether whole counts and records are wanted, too. They are made of all combinations of the attributes.
    rows
        About how many rows there are, if that is public, for errors in percent; by default as the card says.
    about
        Which private table, of a card with several.
    budget
        What a release costs unless it says otherwise: ``dp.ApproxDP(1, 1e-9)`` or ``dp.ZCDP(0.05)``.
    folder
        Where the paths of lookups start.

    Examples
    --------
    >>> import dither as dp, pyarrow as pa
    >>> rows = pa.table({"region": ["north", "south"] * 500, "age": [30, 50, 70, 90] * 250})
    >>> keys, bounds = {"region": ["north", "south"]}, {"age": (0, 99)}
    >>> with dp.open(rows, keys=keys, bounds=bounds, budget=dp.ZCDP(1)) as people:
    ...     plan = Plan(table=people, tables=[("region",), ("region", "age")], columns={"age": {"width": 20}})
    ...     print(str(plan.explain(rho=0.5)).splitlines()[3])
    ...     publication = plan.release(rho=0.5)
      region × age: 10 cells, ± 2.1
    >>> publication.table("region").column_names
    ['region', 'value', 'lower', 'upper', 'integer']
    """

    def __init__(
        self,
        *,
        table: Table,
        tables: Sequence[Any],
        columns: Mapping[str, Any] | Sequence[str] | None = None,
        nested: Mapping[str, Any] | None = None,
        lookups: Mapping[str, Any] | None = None,
        totals: Any = None,
        where: Any = None,
        max_rows: MaxRows | None = None,
        bias: bool = False,
        objective: Objective = "sum",
        whole: bool = True,
        rows: int | None = None,
        about: str | None = None,
        budget: Any = None,
        folder: str = ".",
    ) -> None:
        if not isinstance(table, Table):
            raise WrongType("table", "an open table", type(table).__name__, "pass dp.open('visits.toml')")
        self.table, self.about, self.objective = table, about, objective
        if objective not in ("sum", "largest"):
            raise InvalidArgument("objective", "'sum' or 'largest'", repr(objective), "leave it out")
        if not isinstance(whole, bool):
            raise WrongType("whole", "true or false", kind_of(whole), "write whole = false, or leave it out")
        self.whole = whole
        self.wanted = wanted_tables(tables)
        reader = ColumnReader(table, about=about, where=where, folder=folder)
        self.card, self.where = reader.card, reader.where
        self.budget = budget_of(budget, self.card)
        self.rows = arguments.whole(rows, "rows") if rows is not None else self.card.rows
        named = _named(columns)
        self.card_columns = _used(reader, self.wanted, named, nested or {}, lookups or {})
        self.unused = [name for name in named if name not in {item.attribute.name for item in self.card_columns}]
        self.domain = Domain(item.attribute for item in self.card_columns)
        check_repetitions(self.domain, self.wanted)
        self.totals = public_totals(self.domain, totals_of(self.domain, totals))
        self.specs = [self._spec(item) for item in self.wanted]
        self.counting = Counting(
            table, self.domain, tuple(item.expression for item in self.card_columns), self.where, max_rows, about, bias
        )
        self._check_targets()

    def _check_targets(self) -> None:
        """Refuse a largest error where nobody knows yet how much a person counts for, which it depends on."""
        for wanted in self.wanted:
            if wanted.error is not None and self.counting.is_automatic:
                fix = f"leave out the error of {wanted.name}, or state max_rows and write bias = true"
                expected = "a stated max_rows beside error, since every ± grows with it"
                raise InvalidArgument("max_rows", expected, "'auto'", fix)

    def _spec(self, wanted: WantedTable) -> TableSpec:
        if isinstance(wanted.error, str) and self.rows is None:
            raise InvalidArgument(
                f"error of {wanted.name}",
                "a public number of rows, which it is a share of",
                f"{wanted.error!r} without one",
                "write rows = 100000, about how many there are, in the plan or the card, or the error in rows",
            )
        return table_spec(self.domain, wanted.by, weight=wanted.weight, error=wanted.error, people=self.rows)

    @cached_property
    def marginal(self) -> MarginalPlan:
        """The same plan for arrays of counts; where the limit is chosen later, for one row of it."""
        return self._marginal_of(self.counting)

    def _marginal_of(self, counting: Counting) -> MarginalPlan:
        return MarginalPlan(
            self.domain,
            self.specs,
            self.totals,
            self.objective,
            counting.contribution,
            counting.unit,
            self.whole,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known beside the numbers: which rows count nowhere, and how much a person counts for."""
        return self._notes()

    def _notes(self, learned: PersonLimit | None = None) -> tuple[str, ...]:
        totals = [TOTALS_NOTE] if self.totals.tables and self.card.unit is not None else []
        return (*(item.left_out for item in self.card_columns), *self.counting.notes(learned), *totals)

    def _typical_cell(self, mechanism: MarginalMechanism) -> TypicalCell:
        """The cell that a limit is chosen for: of all wanted tables, weighted as the allocation weights them."""
        residuals, numbers = self.marginal.residuals, np.array([*mechanism.variances.values()])
        rows = self.marginal.unit**2
        return typical_cell(
            [importance(self.domain, spec) for spec in self.specs],
            [rows * float(residuals.mean_variances(spec.levels, mechanism.variances) @ numbers) for spec in self.specs],
            [self.domain.size(spec.levels) for spec in self.specs],
        )

    def _mechanism(self, guarantee: Guarantee) -> MarginalMechanism:
        """What the tables are measured with; where the limit is chosen later, for one row of it, and refused where it
        could not be at some limit."""
        tables = self.counting.split(guarantee).tables
        if self.counting.is_automatic:
            for rows in TRIED_LIMITS:
                self._marginal_of(self.counting.limited_to(rows)).mechanism(tables)
        return self.marginal.mechanism(tables)

    def guarantee(
        self, epsilon: float | None = None, delta: float | None = None, rho: float | None = None
    ) -> Guarantee:
        """What a release would cost: as given, or as the plan says; the card may state the delta."""
        return guarantee_for(self.card, self.budget, epsilon, delta, rho)

    def explain(
        self,
        epsilon: float | None = None,
        *,
        delta: float | None = None,
        rho: float | None = None,
        analyst: str | None = None,
    ) -> PlanExplanation:
        """Every table with its cells and its expected ±, the cost, and what is left; nothing is read or charged."""
        budget = self.guarantee(epsilon, delta, rho)
        mechanism, automatic = self._mechanism(budget), self.counting.is_automatic
        accounts, residuals, z = self.table.accounts, self.marginal.residuals, normal_quantile(0.95)
        numbers = np.array([*mechanism.variances.values()])
        tables = []
        for wanted, spec in zip(self.wanted, self.specs, strict=True):
            cells = self.domain.size(spec.levels)
            mean = float(residuals.mean_variances(spec.levels, mechanism.variances) @ numbers)
            largest = residuals.largest_variance(spec.levels, mechanism.variances)[0]
            error, most = (z * self.marginal.unit * float(np.sqrt(variance)) for variance in (mean, largest))
            share = None if self.rows is None or automatic else error * cells / self.rows
            target = "" if wanted.error is None else f"; wanted: {wanted.error}"
            tables.append(ExpectedTable(wanted.name, cells, error, most, share, target, automatic))
        guarantee = budget if self.counting.histogram_share else mechanism.guarantee
        whole = whole_note(self.marginal.combinations, MAX_CELLS) if self.whole else NO_WHOLE
        notes = [whole, *self.notes]
        notes += [f"not in any table: {', '.join(self.unused)}"] if self.unused else []
        notes += accounts.people_notes(guarantee)
        return PlanExplanation(
            tuple(tables),
            str(guarantee),
            accounts.left(analyst),
            tuple(notes),
            accounts.refusal(guarantee, analyst),
        )

    def check(self) -> None:
        """Refuse whatever a release would refuse before its charge, but for the budget."""
        self.counting.check(self.marginal.needed)

    def release(
        self,
        epsilon: float | None = None,
        *,
        delta: float | None = None,
        rho: float | None = None,
        analyst: str | None = None,
        key: str | None = None,
        again: bool = False,
    ) -> Publication:
        """Charge, count, add noise, record, and publish.

        The same plan for the same cost, its tables in any order, gives what was recorded, for free; ``again=True``, or
        another ``key``, releases anew and pays anew. Where a ``key`` is given, it alone decides.
        """
        budget, counting = self.guarantee(epsilon, delta, rho), self.counting
        first = self._mechanism(budget)
        guarantee = budget if counting.histogram_share else first.guarantee
        left_for_tables = counting.split(budget).tables

        def compute(limited: Counting, counts: Mapping[Levels, Integers]) -> bytes:
            same = limited.limits == counting.limits
            mechanism = first if same else self._marginal_of(limited).mechanism(left_for_tables)
            return encode_parts(mechanism.release(counts), mechanism.multipliers, mechanism.variances)

        recorded = counting.release_limited(
            sorted(self.marginal.needed),
            guarantee,
            self.content,
            compute,
            cell=self._typical_cell(first) if counting.is_automatic else None,
            analyst=analyst,
            key=key,
            again=again,
        )
        limit = recorded.limit
        limited = counting if limit is None else counting.limited_to(limit.max_rows)
        residuals = self.marginal.residuals
        shapes = {levels: residuals.shape(levels) for levels in first.variances}
        parts, variances = decode_parts(recorded.stored, shapes)
        released = self._marginal_of(limited).publication(parts, variances, guarantee)
        return replace(
            released,
            left=recorded.left,
            receipt=recorded.receipt,
            replayed=recorded.replayed,
            notes=(*recorded.notes, *self._notes(limit)),
            plan=self.description,
            max_rows=None if self.card.unit is None else limited.limits.rows,
            left_out=None if limit is None else limit.left_out,
            asked=tuple(item.by for item in self.wanted),
        )

    @property
    def content(self) -> dict[str, Any]:
        """What is asked, beside the rows and the domain, in canonical form: a recorded publication is found by it."""
        return {
            "is": "publication",
            "version": 1,
            "tables": sorted([[*spec.levels], spec.weight, spec.variance] for spec in self.specs),
            "objective": self.objective,
            "totals": sorted([[*levels], numbers.ravel().tolist()] for levels, numbers in self.totals.tables.items()),
        }

    @property
    def description(self) -> dict[str, Any]:
        """The plan as it stands in ``publication.json``."""
        columns = [
            {
                "levels": [*item.attribute.level_names],
                "keys": [len(keys) for keys in item.attribute.keys],
                "value": show(item.expression),
                "rows outside": item.left_out,
            }
            for item in self.card_columns
        ]
        tables = [
            {"by": [*item.by], "weight": item.weight or 1.0, **({} if item.error is None else {"error": item.error})}
            for item in self.wanted
        ]
        return {
            "table": self.card.name,
            "version": self.card.version,
            "tables": tables,
            "columns": columns,
            "where": None if self.where is None else show(self.where),
            "max_rows": None if self.card.unit is None else self.counting.row_limit,
            "bias": self.counting.bias,
            "objective": self.objective,
            "totals": [
                {"by": [*self.domain.names(levels)], "counts": numbers.ravel().tolist()}
                for levels, numbers in self.totals.tables.items()
            ],
            "domain": self.counting.domain_digest,
        }

    def close(self) -> None:
        """Let go of the table."""
        self.table.close()

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        cells = sum(self.domain.size(spec.levels) for spec in self.specs)
        tables = clip(", ".join(item.name for item in self.wanted))
        return f"Plan({self.card.name!r}, {tables}; {cells:,} cells)"

    def __str__(self) -> str:
        """The plan with its expected errors, where it has a budget."""
        return repr(self) if self.budget is None else f"{self!r}\n{self.explain()}"

    def _repr_html_(self) -> str:
        """For a notebook: the tables with their expected ±, where the plan has a budget."""
        from dither.present import markup

        if self.budget is not None:
            return markup.block(markup.heading(repr(self)), self.explain()._repr_html_())
        after = "Nothing is read or charged yet: explain(rho=0.05) shows the ±, release(rho=0.05) publishes."
        return markup.block(markup.heading(repr(self)), markup.lines([after]))


def _named(columns: Any) -> dict[str, Any]:
    """What is said about columns, by their names."""
    if columns is None:
        return {}
    if isinstance(columns, Mapping):
        return dict(columns)
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        fix = "pass {'age': {'edges': [0, 18, 65, 120]}}, or a list of names"
        raise WrongType("columns", "a mapping or a list of names", kind_of(columns), fix)
    return dict.fromkeys(columns)


def _used(
    reader: ColumnReader,
    tables: Sequence[WantedTable],
    columns: Mapping[str, Any],
    nested: Mapping[str, Any],
    lookups: Mapping[str, Any],
) -> list[CardColumn]:
    """The attributes of the tables, in the order in which the tables name them."""
    for name in lookups:
        if name not in nested:
            raise InvalidArgument("lookups", "names under nested", repr(clip(name)), closest(name, nested))
    names = [*dict.fromkeys(name for table in tables for name in table.by)]
    level_of = {}
    for attribute, spec in nested.items():
        for level in nested_levels(attribute, spec):
            if level in columns or level in level_of:
                where = f"nested.{attribute}"
                got = f"{clip(level)!r} elsewhere, too"
                fix = f"leave it out of the columns; column, expression, null and other may stand under {where}"
                raise InvalidArgument(where, "levels with names of their own", got, fix)
            level_of[level] = attribute
    known = [*columns, *level_of, *reader.card.columns]
    folded = {item.casefold() for item in known}
    for name in names:
        if name.casefold() not in folded:
            fix = closest(name, known) + ", or say what it is under columns"
            raise InvalidArgument("tables", "columns of the plan or of the card", repr(clip(name)), fix)
    for name in columns:
        if name not in names:  # a mistake in its name or its section would otherwise stay unseen
            reader.column(name, columns[name])
    result = []
    for is_level, name in dict.fromkeys((name in level_of, level_of.get(name, name)) for name in names):
        if is_level:
            result.append(reader.nested(name, nested[name], lookups.get(name)))
        else:
            result.append(reader.column(name, columns.get(name)))
    if not result:
        fix = "name a column in a table; how many there are in all is an ordinary question, COUNT(*)"
        raise InvalidArgument("tables", "a table with a column", "that of everybody alone", fix)
    return result
