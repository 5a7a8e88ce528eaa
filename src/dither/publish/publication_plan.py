"""A plan of tables to publish from the rows of a table: explain it, then release it, once, for one charge.

The plan names tables; :mod:`dither.publish.card_columns` makes their public domain from the card,
:mod:`dither.publish.counting` has the engine count them, bounded for each person, in one scan, and
:mod:`dither.publish.marginal_plan` measures and estimates. Only noisy numbers are recorded
(:mod:`dither.publish.recording`), and everything that is published follows from these.

The parts of a plan as they are written: tables that are wanted, public totals, and the budget.

A plan of tables in words and numbers: every table with its cells and its expected ±, the cost, and what is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dither import arguments
from dither.errors import InvalidArgument, NotPrivate, WrongType, fix_by_options
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.inference.measured import normal_quantile
from dither.ledger.accounts import Remaining
from dither.present import markup
from dither.present.notes import Note
from dither.present.text import printable, two_digits
from dither.publish.allocate import Objective, TableSpec, importance, table_spec
from dither.publish.card_columns import CardColumn, ColumnReader, nested_levels
from dither.publish.counting import Counting
from dither.publish.domain import MAX_CELLS, Domain, Integers, Levels
from dither.publish.marginal_plan import MarginalPlan
from dither.publish.mechanism import MarginalMechanism
from dither.publish.person_limit import TRIED_LIMITS, MaxRows, PersonLimit, TypicalCell, typical_cell
from dither.publish.publication import Publication
from dither.publish.recording import decode_parts, encode_parts
from dither.publish.totals import public_totals
from dither.release.pipeline import check_least
from dither.tables.card.model import Card
from dither.tables.card.toml import check_names, kind_of
from dither.tables.card.values import clip, closest
from dither.tables.query.tree import show
from dither.tables.table import Table

_TABLE = ("by", "weight", "error")
_TOTAL = ("by", "counts")


@dataclass(frozen=True)
class WantedTable:
    """A table of a plan as written: the names of its levels, its weight in the objective (None: 1), and the largest
    half-width that its intervals may have (None: no target)."""

    by: tuple[str, ...]
    weight: float | None = None
    error: float | str | None = None

    @property
    def name(self) -> str:
        """Return the names of the table's columns, joined by ×; "everybody" for the total."""
        return " × ".join(self.by) or "everybody"


def wanted_tables(given: Any) -> list[WantedTable]:
    """Return the tables of a plan: each a list of names, or a mapping with ``by``, ``weight`` and ``error``."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Sequence) or not given:
        got = "none" if given is None or given == [] else kind_of(given)
        fix = 'write tables = [["state"], ["state", "age"]], for example'
        raise InvalidArgument("tables", "a list of tables, each a list of names", got, fix)
    result = []
    for place, item in enumerate(given):
        where = f"tables[{place}]"
        if isinstance(item, Mapping):
            check_names(item, _TABLE, where)
        section = item if isinstance(item, Mapping) else {"by": item}
        by = _names(section.get("by"), f"{where}.by")
        weight, error = section.get("weight"), section.get("error")
        if weight is not None:
            arguments.positive(weight, f"{where}.weight")
        if error is not None and not isinstance(error, str):
            arguments.positive(error, f"{where}.error")
        result.append(WantedTable(by, weight, error))
    return result


def check_repetitions(domain: Domain, tables: Sequence[WantedTable]) -> None:
    """Refuse two tables of a plan that have the same levels, even if they are named differently."""
    seen: dict[tuple[int, ...], str] = {}
    for table in tables:
        levels = domain.levels(table.by)
        if levels in seen:
            got = f"{table.name} twice" if seen[levels] == table.name else f"{seen[levels]} and {table.name}, one table"
            fix = "leave one out; a table that matters more has weight = 2"
            raise InvalidArgument("tables", "each table once", got, fix)
        seen[levels] = table.name


def totals_of(domain: Domain, given: Any) -> dict[str | Sequence[str], Any]:
    """Return public totals by the names of a table's levels, with counts in the order of the keys.

    They are given as such a mapping, or as a list of sections with ``by`` and ``counts``; the counts of one level may
    be a mapping of its keys to numbers.
    """
    if given is None:
        return {}
    pairs: list[tuple[Any, Any]]
    if isinstance(given, Mapping):
        pairs = [(name, counts) for name, counts in given.items()]
    else:
        pairs = []
        for place, item in enumerate(given):
            check_names(item, _TOTAL, f"totals[{place}]")
            if "counts" not in item:
                fix = "write counts = [100, 200], a public number for each key"
                raise InvalidArgument(f"totals[{place}]", "counts", "none", fix)
            pairs.append((item.get("by", []), item["counts"]))
    result: dict[str | Sequence[str], Any] = {}
    for name, counts in pairs:
        by = _names(name, "totals")
        _check_totals(domain, by)
        if by in result:
            shown = " × ".join(by) or "everybody"
            raise InvalidArgument("totals", "each table once", f"{shown} twice", "leave one out")
        result[by] = _in_order(domain, by, counts) if isinstance(counts, Mapping) else _transposed(domain, by, counts)
    return result


def _check_totals(domain: Domain, by: tuple[str, ...]) -> None:
    """Refuse public totals by a column that is in no table of the plan; ``by`` are the names of their columns."""
    known = [level for attribute in domain.attributes for level in attribute.level_names]
    unknown = [name for name in by if name not in known]
    if unknown:
        name = clip(unknown[0])
        fix = f'add a table with it, such as ["{name}"], or leave these totals out'
        expected = f"columns of the tables ({', '.join(known[:20])})"
        raise InvalidArgument("totals.by", expected, f"{name!r}, which no table has", fix)


def _transposed(domain: Domain, by: tuple[str, ...], counts: Any) -> Any:
    """Return counts in the order of the domain's attributes from counts in the order of the names ``by``, the last of
    which changes fastest."""
    levels = domain.levels(by)
    axes = domain.axes(by)
    if [*axes] == sorted(axes) or np.size(counts) != domain.size(levels):
        return counts
    shape = [domain.shape(levels)[axis] for axis in axes]
    return np.transpose(np.reshape(np.asarray(counts), shape), np.argsort(axes))


def _in_order(domain: Domain, by: tuple[str, ...], counts: Mapping[Any, Any]) -> list[Any]:
    """Return public counts of one level as a list in the order of its keys, from a mapping of keys to numbers."""
    where = f"totals of {' × '.join(by) or 'everybody'}"
    if len(by) != 1:
        fix = "write a list of numbers, the last of the names changing fastest"
        raise InvalidArgument(where, "one level for counts by key", f"{len(by)} names", fix)
    levels = domain.levels(by)
    attribute, level = next((item, level) for item, level in zip(domain.attributes, levels, strict=True) if level)
    keys = ["NULL" if key is None else str(key) for key in attribute.keys[level - 1].to_pylist()]
    numbers = {"NULL" if key is None else str(key): number for key, number in counts.items()}
    missing = [key for key in keys if key not in numbers]
    unknown = [key for key in numbers if key not in {*keys}]
    if missing or unknown:
        got = f"none for {missing[0]!r}" if missing else f"one for {clip(unknown[0])!r}, which is no key"
        raise InvalidArgument(where, "a number for each key", got, "complete or correct the counts")
    return [numbers[key] for key in keys]


def _names(given: Any, where: str) -> tuple[str, ...]:
    """Return names as a tuple, from one name or a list of names; refuse other values and repetitions.

    ``where`` names the argument in errors.
    """
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        got = "none" if given is None else kind_of(given)
        raise InvalidArgument(where, "a list of names", got, 'write by = ["state", "age"]')
    if len({*names}) != len(names):
        repeated = next(name for name in names if list(names).count(name) > 1)
        raise InvalidArgument(where, "each name once", f"{clip(repeated)!r} twice", "leave one out")
    return tuple(names)


def guarantee_for(
    card: Card, budget: Guarantee | None, epsilon: float | None, delta: float | None, rho: float | None
) -> Guarantee:
    """Return the guarantee of a release: from ``epsilon`` and ``delta``, or from ``rho``, else the plan's ``budget``.

    Arguments that are None were not passed; ``budget`` is None if the plan has none. A missing delta is taken from the
    plan, then from the card. A guarantee in a unit that the accounts of the card do not add up is refused.

    >>> guarantee_for(Card("visits", "", {}, delta=1e-9), None, 1, None, None)
    ApproxDP(1, 1e-09)
    """
    if rho is not None:
        if epsilon is not None or delta is not None:
            given = "rho and epsilon" if epsilon is not None else "rho and delta"
            raise InvalidArgument("rho", "rho, or epsilon and delta", given, "leave one of them out")
        result: Guarantee = ZCDP(rho)
    elif epsilon is not None:
        stated = delta if delta is not None else budget.exact[1] if isinstance(budget, ApproxDP) else card.delta
        if stated is None:
            fix = fix_by_options("pass {delta}, or state one in the card, far below 1 / number of people", delta=1e-9)
            raise InvalidArgument("delta", "one, as Gaussian noise needs", "none", *fix)
        result = ApproxDP(epsilon, stated)
    elif budget is None:
        template = "pass {epsilon} and {delta}, or {rho}, or write a [budget] into the plan"
        fix = fix_by_options(template, epsilon=1, delta=1e-9, rho=0.05)
        raise InvalidArgument("epsilon", "a budget", "none", *fix)
    elif delta is not None:
        if not isinstance(budget, ApproxDP):
            fix = fix_by_options("leave delta out, or pass {epsilon} beside it", epsilon=1)
            raise InvalidArgument("delta", "an epsilon beside it", "a plan in rho", *fix)
        result = ApproxDP(budget.exact[0], delta)
    else:
        result = budget
    _check_kind(card, result)
    check_least(card.min_epsilon, result)
    return result


def _check_kind(card: Card, guarantee: Guarantee) -> None:
    """Refuse a guarantee in a different unit than the card's accounts, each of which adds up epsilon alone, epsilon and
    delta, or rho.

    The advice in the error uses that rho-zCDP implies ``(rho + 2 sqrt(rho ln(1/delta)), delta)``-DP.
    """
    for limit in (card.budget, card.each_person, card.each_analyst):
        if isinstance(limit, PureDP):
            fix = (
                "state a delta beside epsilon under [budget] of the card, such as delta = 1e-6, or rho in place of both"
            )
            raise NotPrivate("budget", "a budget with a delta or in rho, as Gaussian noise needs", str(limit), fix)
        if isinstance(limit, ZCDP) and isinstance(guarantee, ApproxDP):
            surprise = math.log(1 / guarantee.delta)
            rho = (math.sqrt(surprise + guarantee.epsilon) - math.sqrt(surprise)) ** 2
            about = fix_by_options("pass {rho}, which implies about as much", rho=float(f"{rho:.2g}"))
            raise NotPrivate("cost", "rho, which is what the accounts of the card add up", str(guarantee), *about)
        if isinstance(limit, ApproxDP) and isinstance(guarantee, ZCDP):
            delta = card.delta if card.delta is not None else limit.delta / 10
            epsilon = guarantee.rho + 2 * math.sqrt(guarantee.rho * math.log(1 / delta))
            template = "pass {epsilon} and {delta}, which is about as much"
            about = fix_by_options(template, epsilon=float(f"{epsilon:.2g}"), delta=float(f"{delta:g}"))
            expected = "epsilon and delta, which are what the accounts of the card add up"
            raise NotPrivate("cost", expected, str(guarantee), *about)


def budget_of(given: Any, card: Card) -> Guarantee | None:
    """Return the budget of a plan as a guarantee, from a guarantee or from a mapping with epsilon and delta, or rho.

    None stays None: the plan has no budget. A delta that is not stated is that of the card.

    >>> budget_of({"rho": 0.5}, Card("visits", "", {}))
    ZCDP(0.5)
    """
    if given is None or isinstance(given, (ApproxDP, ZCDP)):
        return given
    if not isinstance(given, Mapping):
        fix = "pass dp.ApproxDP(1, 1e-9), dp.ZCDP(0.05), or {'epsilon': 1, 'delta': 1e-9}"
        raise WrongType("budget", "ApproxDP, ZCDP or a section", type(given).__name__, fix)
    check_names(given, ("epsilon", "delta", "rho"), "budget")
    keys = {*given}
    if keys == {"rho"}:
        return ZCDP(given["rho"])
    if keys == {"epsilon", "delta"}:
        return ApproxDP(given["epsilon"], given["delta"])
    if keys == {"epsilon"} and card.delta is not None:
        return ApproxDP(given["epsilon"], card.delta)
    got = " and ".join(sorted(keys)) or "none of them"
    fix = "write epsilon = 1 and delta = 1e-9, or rho = 0.05"
    raise InvalidArgument("budget", "epsilon and delta, or rho", got, fix)


_MANY = 10_000_000


def whole_note(combinations: int, most: int) -> Note:
    """Return the note on whole counts: of how many combinations they are made, or why there are none."""
    if combinations > most:
        return Note("too_many_combinations", {"combinations": combinations, "most": most})
    return Note("whole_counts", {"combinations": combinations, "slow": combinations > _MANY})


@dataclass(frozen=True)
class ExpectedTable:
    """A table of a plan: its name, its number of cells, and the mean (``error``) and largest half-width of its 95 %
    intervals in rows.

    ``share`` is the mean half-width divided by the size of an average cell, None if the number of rows is not public.
    ``for_one_row`` says that the half-widths still have to be multiplied by ``max_rows``, which is chosen later.
    ``target`` is the requested error in words.

    >>> print(ExpectedTable("state", 51, 12.34, 12.34, 0.0021))
    state: 51 cells, ± 12 (0.21 % of an average cell)
    """

    name: str
    cells: int
    error: float
    largest_error: float
    share: float | None = None
    target: str = ""
    for_one_row: bool = False

    @property
    def expected(self) -> str:
        """Return the expected ± in words, with the largest one where it is clearly larger."""
        if self.error == 0:
            return "± 0 (public)"
        times = " × max_rows" if self.for_one_row else ""
        text = f"± {two_digits(self.error)}{times}"
        if self.largest_error > 1.05 * self.error:
            text += f", at most {two_digits(self.largest_error)}{times}"
        return text

    @property
    def relative(self) -> str:
        """Return the expected ± as a percentage of a cell of average size; an empty string if that is not known."""
        return "" if self.share is None else f"{two_digits(100 * self.share)} %"

    def __str__(self) -> str:
        cells = f"{self.cells:,} cell{'s' if self.cells != 1 else ''}"
        share = f" ({self.relative} of an average cell)" if self.relative and self.error else ""
        return f"{self.name}: {cells}, {self.expected}{share}{self.target}"


@dataclass(frozen=True)
class PlanExplanation:
    """The tables that a plan would publish with their expected ±, its cost and the remaining budget. ``refused`` is why
    a release would be refused, empty if it would not. No rows were read and nothing was charged.

    >>> from dither.guarantees import ZCDP
    >>> print(PlanExplanation((ExpectedTable("sex", 2, 3.0, 3.0),), ZCDP(0.5), Remaining(ZCDP(1))))
    cost: ρ = 0.5 (zCDP); left: ρ = 1 (zCDP)
    expected ± of each cell (95 %):
      sex: 2 cells, ± 3.0
    """

    tables: tuple[ExpectedTable, ...]
    cost: Guarantee
    remaining: Remaining
    notes: tuple[Note, ...] = ()
    refused: str = ""

    def __str__(self) -> str:
        """Return the cost and what is left, the expected ± of each table, and the notes, a line each."""
        output = [f"cost: {self.cost}; left: {self.remaining}"]
        output += [f"would be refused: {self.refused}"] if self.refused else []
        output += ["expected ± of each cell (95 %):", *(f"  {table}" for table in self.tables)]
        output += [*map(str, self.notes)]
        return "\n".join(map(printable, output))

    def _repr_html_(self) -> str:
        """Return the explanation for a notebook: the cost, the remaining budget, and the tables with their ±."""
        facts = [("cost", str(self.cost)), ("left", str(self.remaining))]
        facts += [("would be refused", self.refused)] if self.refused else []
        header, lines = table_lines(self.tables)
        return markup.block(
            markup.facts(facts),
            markup.table(header, lines, [False, *[True] * (len(header) - 1)]),
            markup.lines([*map(str, self.notes)]),
        )


def table_lines(tables: Sequence[ExpectedTable]) -> tuple[list[str], list[list[str]]]:
    """Return a header and the cells of a line for each table; the column "of an average cell" only if it is known."""
    header = ["table", "cells", "expected ± (95 %)"]
    shares = any(table.relative for table in tables)
    lines = [
        [table.name, f"{table.cells:,}", table.expected + table.target, *([table.relative] if shares else [])]
        for table in tables
    ]
    return [*header, *(["of an average cell"] if shares else [])], lines


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
        How many rows of a person count in full; a person with more counts for this number in all. By default as the
        card says. ``"auto"`` chooses it privately, with a tenth of what a release costs, and says what it leaves out.
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
        """Check the whole plan and derive its domain from the card; the class says what the arguments mean."""
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
        """Refuse a wanted error where the limit on a person's rows, on which it depends, is chosen later."""
        for wanted in self.wanted:
            if wanted.error is not None and self.counting.is_automatic:
                fix = f"leave out the error of {wanted.name}, or state max_rows and write bias = true"
                expected = "a stated max_rows beside error, since every ± grows with it"
                raise InvalidArgument("max_rows", expected, "'auto'", fix)

    def _spec(self, wanted: WantedTable) -> TableSpec:
        """Return a table of the plan with its levels, weight and wanted variance."""
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
        """Return this plan for arrays of counts; for one row of each person if ``max_rows`` is chosen later."""
        return self._marginal_of(self.counting)

    def _marginal_of(self, counting: Counting) -> MarginalPlan:
        """Return the plan for the arrays that a counting returns."""
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
    def notes(self) -> tuple[Note, ...]:
        """Return the notes on the plan: which rows are not counted, and how much one person counts for."""
        return self._notes()

    def _notes(self, learned: PersonLimit | None = None) -> tuple[Note, ...]:
        """Return the notes on the plan, with the limit on a person's rows once it is learned."""
        totals = [Note("totals_of_bounded_rows")] if self.totals.tables and self.card.unit is not None else []
        return (*(item.outside_note for item in self.card_columns), *self.counting.notes(learned), *totals)

    def _typical_cell(self, mechanism: MarginalMechanism) -> TypicalCell:
        """Return the typical cell that a limit on a person's rows is chosen for: an average over the plan's tables,
        weighted as in the allocation."""
        residuals, in_rows = self.marginal.residuals, self.marginal.unit**2
        return typical_cell(
            [importance(self.domain, spec) for spec in self.specs],
            [in_rows * residuals.mean_variance(spec.levels, mechanism.variances) for spec in self.specs],
            [self.domain.size(spec.levels) for spec in self.specs],
        )

    def _mechanism(self, guarantee: Guarantee) -> MarginalMechanism:
        """Return the mechanism that measures the tables; for one row of each person if ``max_rows`` is chosen later.

        In that case the plan is refused unless a mechanism could be built for every limit that may be chosen.
        """
        tables = self.counting.split(guarantee).tables
        if self.counting.is_automatic:
            for rows in TRIED_LIMITS:
                self._marginal_of(self.counting.limited_to(rows)).mechanism(tables)
        return self.marginal.mechanism(tables)

    def guarantee(
        self, epsilon: float | None = None, delta: float | None = None, rho: float | None = None
    ) -> Guarantee:
        """Return the guarantee that a release would have: as given, or as in the plan; delta may come from the card."""
        return guarantee_for(self.card, self.budget, epsilon, delta, rho)

    def explain(
        self,
        epsilon: float | None = None,
        *,
        delta: float | None = None,
        rho: float | None = None,
        analyst: str | None = None,
    ) -> PlanExplanation:
        """Return every table with its cells and expected ±, the cost, and the remaining budget.

        Nothing is read or charged. ``epsilon`` with ``delta``, or ``rho``, are what a release would cost, by default
        the budget of the plan; ``analyst`` is who would ask, where analysts have accounts.
        """
        budget = self.guarantee(epsilon, delta, rho)
        mechanism, automatic = self._mechanism(budget), self.counting.is_automatic
        accounts, residuals, z = self.table.accounts, self.marginal.residuals, normal_quantile(0.95)
        tables = []
        for wanted, spec in zip(self.wanted, self.specs, strict=True):
            cells = self.domain.size(spec.levels)
            mean = residuals.mean_variance(spec.levels, mechanism.variances)
            largest = residuals.largest_variance(spec.levels, mechanism.variances).variance
            error, most = (z * self.marginal.unit * math.sqrt(variance) for variance in (mean, largest))
            share = None if self.rows is None or automatic else error * cells / self.rows
            target = "" if wanted.error is None else f"; wanted: {wanted.error}"
            tables.append(ExpectedTable(wanted.name, cells, error, most, share, target, automatic))
        guarantee = budget if self.counting.histogram_share else mechanism.guarantee
        whole = whole_note(self.marginal.combinations, MAX_CELLS) if self.whole else Note("no_whole_counts")
        notes = [whole, *self.notes]
        notes += [Note("unused_columns", {"names": [*self.unused]})] if self.unused else []
        notes += accounts.people_notes(guarantee)
        return PlanExplanation(
            tuple(tables),
            guarantee,
            accounts.remaining(analyst),
            tuple(notes),
            accounts.refusal(guarantee, analyst),
        )

    def check(self) -> None:
        """Refuse everything except an insufficient budget that a release would refuse before its charge."""
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

        Repeating a release of this plan at this cost returns the recorded publication for free; ``again=True``, or a
        different ``key``, makes and charges a new release. With a ``key``, the key alone identifies the release.
        ``epsilon`` with ``delta``, or ``rho``, is the cost, by default the budget of the plan; ``analyst`` names the
        asking analyst, where analysts have accounts.
        """
        budget, counting = self.guarantee(epsilon, delta, rho), self.counting
        first = self._mechanism(budget)
        guarantee = budget if counting.histogram_share else first.guarantee
        left_for_tables = counting.split(budget).tables

        def compute(limited: Counting, counts: Mapping[Levels, Integers]) -> bytes:
            """Measure the counts and encode the result; if the limit was chosen from data, by a new mechanism for
            it."""
            is_planned = limited.limits == counting.limits
            mechanism = first if is_planned else self._marginal_of(limited).mechanism(left_for_tables)
            return encode_parts(mechanism.release(counts), mechanism.multipliers, mechanism.variances)

        recorded = counting.release(
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
            remaining=recorded.remaining,
            receipt=recorded.receipt,
            replayed=recorded.replayed,
            notes=(*recorded.notes, *self._notes(limit)),
            plan=self.description,
            max_rows=None if self.card.unit is None else limited.limits.rows,
            clipped_share=None if limit is None else limit.clipped_share,
            asked=tuple(item.by for item in self.wanted),
        )

    @property
    def content(self) -> dict[str, Any]:
        """Return the plan without rows and domain in canonical form: part of the key under which a publication is
        recorded."""
        return {
            "is": "publication",
            "version": 1,
            "tables": sorted([[*spec.levels], spec.weight, spec.variance] for spec in self.specs),
            "objective": self.objective,
            "totals": sorted([[*levels], numbers.ravel().tolist()] for levels, numbers in self.totals.tables.items()),
        }

    @property
    def description(self) -> dict[str, Any]:
        """Return the plan as plain values for ``publication.json``."""
        columns = [
            {
                "levels": [*item.attribute.level_names],
                "keys": [len(keys) for keys in item.attribute.keys],
                "value": show(item.expression),
                "rows outside": str(item.outside_note),
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
        """Close the table."""
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
        """Return the plan in words, with its expected errors where it has a budget."""
        return repr(self) if self.budget is None else f"{self!r}\n{self.explain()}"

    def _repr_html_(self) -> str:
        """Return the plan for a notebook: the tables with their expected ±, where the plan has a budget."""
        from dither.present import markup

        if self.budget is not None:
            return markup.block(markup.heading(repr(self)), self.explain()._repr_html_())
        after = "Nothing is read or charged yet: explain(rho=0.05) shows the ±, release(rho=0.05) publishes."
        return markup.block(markup.heading(repr(self)), markup.lines([after]))


def _named(columns: Any) -> dict[str, Any]:
    """Return the sections of columns by name, from a mapping or a list of names."""
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
    """Return the attributes of the tables, in the order in which the tables name them.

    ``columns``, ``nested`` and ``lookups`` are the sections of the plan by name. Refused are unknown names, and levels
    that two sections define. Sections of columns that are in no table are checked, too, so that a mistake in them
    shows.
    """
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
        if name not in names:
            reader.column(name, columns[name])
    result = []
    for is_level, name in dict.fromkeys((name in level_of, level_of.get(name, name)) for name in names):
        if is_level:
            result.append(reader.nested(name, nested[name], lookups.get(name)))
        else:
            result.append(reader.column(name, columns.get(name)))
    if not result:
        fix = "name a column in a table; how many there are in all is an ordinary question, COUNT(*)"
        raise InvalidArgument("tables", "a table with a column", "only the total", fix)
    return result
