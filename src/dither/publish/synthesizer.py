"""Synthetic records where the domain is too large to hold: select tables, measure them, generate.

*Algorithm* (AIM of McKenna, Mullins, Sheldon and Miklau 2022, with another schedule). The tables of single attributes
are measured with a quarter of the budget, or, where there is a target, those of each with the target with half. Then,
in rounds: the table of two attributes, or of three where it is small, that the model describes worst is selected by the
exponential mechanism, measured with discrete Gaussian noise, and the model (:mod:`dither.publish.graphical`) is fitted
again. A table's score is the l1 distance between its counts and the model's, less what the noise alone would leave,
``sqrt(2/pi) sigma`` for each cell of keys that occur. When a round changes the model by less than its noise, the noise
is made smaller, but never so small that fewer than twelve rounds are left. Records are drawn from the last model.

*Guarantee.* One person is added or removed; all rows of a person change the counts of a table by at most
``contribution`` in the l1 norm, hence in the l2 norm. A score is a sum of distances in whole units of 1/256 of a count,
computed exactly (:func:`dither.publish.selection.distance`), and moves by at most ``contribution``: selecting with
epsilon is ``epsilon^2 / 8``-zCDP. Measuring with noise ``sigma`` is ``contribution^2 / (2 sigma^2)``-zCDP. What a round
costs may depend on earlier releases: it is subtracted from what is left of rho before anything is drawn, and nothing
is drawn that is not covered by it; zCDP composes so for costs that are chosen along the way (Feldman and Zrnic 2021).
Rho is chosen such that rho-zCDP is (epsilon, delta)-DP. All else is post-processing: the model, its impossible cells,
which come from public rules alone, how many records there are, and the records, which are a function of the released
bytes.

*Comparisons* (:func:`comparisons`) set synthetic records beside the noisy tables that they were made from. They use
only what was released, so they cost nothing and can be published with the records.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from dither import arguments
from dither.accounting import Concentrated, Event
from dither.budget_hooks import spends
from dither.errors import InvalidArgument, WrongType
from dither.exact.search import bisect_floats
from dither.guarantees import ZCDP, ApproxDP, Guarantee
from dither.publish.constraints import RecordRule, rules_of
from dither.publish.domain import Domain, Integers, Levels
from dither.publish.graphical import (
    Clique,
    CliqueLaws,
    Flags,
    MeasuredTable,
    cells,
    junction_tree,
    possible_cells,
    uniform,
)
from dither.publish.person_limit import TypicalCell, typical_cell
from dither.publish.record_values import RecordColumn, record_columns
from dither.publish.recording import decode_synthesis, encode_synthesis
from dither.publish.residuals import Floats, Numbers
from dither.publish.selection import Round, Selection, SelectionPlan, combined
from dither.randomness import SeededSource, Source, resolve
from dither.tables.card.model import Type

MAX_RECORDS = 100_000_000
_FIRST_SHARE, _TARGET_SHARE = Fraction(1, 4), Fraction(1, 2)
"""The fraction of the budget spent on the first tables: those of single attributes, or of each with the target."""
_MODEL_CELLS = 1 << 17
_TABLE_CELLS = 1 << 17
_TRIPLE_CELLS = 1 << 12
_TRIPLES = 200
"""The most tables of three attributes that may be selected: the smallest ones, within a limit on their cells."""


def rho_of(guarantee: Guarantee) -> Fraction:
    """Return the largest rho, rounded down, such that rho-zCDP implies the guarantee."""
    if isinstance(guarantee, ZCDP):
        return guarantee.exact[0]
    if not isinstance(guarantee, ApproxDP):
        raise WrongType("guarantee", "ZCDP or ApproxDP", type(guarantee).__name__, "pass ApproxDP(1, 1e-9)")
    epsilon, delta = guarantee.exact
    if not delta or not epsilon:
        raise InvalidArgument("delta", "epsilon and delta above 0", "none", "pass ApproxDP(1, 1e-9)")

    def suffices(rho: float) -> bool:
        """Return whether rho-zCDP implies epsilon at delta."""
        return ZCDP(Fraction(rho)).epsilon_at(delta) <= epsilon

    # rho-zCDP implies no epsilon below rho at a small delta, so epsilon is an upper bound of the search
    search = bisect_floats(suffices, float(epsilon), 1e-12 * float(epsilon), geometric=True, tolerance=1e-6)
    return Fraction(search.holds)


@dataclass(frozen=True, eq=False)
class Synthesizer:
    """Synthetic records of a domain's attributes, at their finest levels; see the module for algorithm and guarantee.

    Parameters
    ----------
    guarantee
        The cost of the whole release.
    contribution
        The largest l1 norm of what one person adds to the counts of a table: 1 for one row.
    model_cells
        The largest number of cells of the model: more cells can hold more tables at once, but take longer.
    target
        An attribute that models trained on the records will predict: all others are first measured together with it,
        instead of on their own.
    constraints
        Public rules that every record obeys, as conditions in SQL: ``NOT (marital = 'married' AND age < 15)``.
    types
        The types of attributes in bins; by default integers if all edges are whole, else real numbers.
    periods, bounds
        Attributes whose keys are the first days or moments of periods, such as ``{"visited_at": "month"}``: records
        have dates inside them, and between the ``bounds`` of an attribute, where these are stated.
    unit
        The value of 1 in the counts, in rows.

    Examples
    --------
    >>> from dither.publish import Attribute
    >>> domain = Domain([Attribute.flat("marital", ["single", "married"]), Attribute.binned("age", [0, 18, 65, 120])])
    >>> rule = "NOT (marital = 'married' AND age < 15)"
    >>> synthesizer = Synthesizer(domain, ApproxDP(1, 1e-9), constraints=[rule])
    >>> synthesizer.tables
    [(1, 0), (0, 1), (1, 1)]
    >>> counts = {(1, 0): [900, 1100], (0, 1): [500, 1200, 300], (1, 1): [[400, 400, 100], [100, 800, 200]]}
    >>> records = synthesizer.release(counts).records
    >>> records.column_names, 1900 < records.num_rows < 2100
    (['marital', 'age'], True)
    """

    domain: Domain
    guarantee: Guarantee
    contribution: int | Fraction = 1
    model_cells: int = _MODEL_CELLS
    target: str | None = None
    constraints: Sequence[object] = ()
    types: Mapping[str, Type] | None = None
    periods: Mapping[str, str] | None = None
    bounds: Mapping[str, tuple[date, date]] | None = None
    unit: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a guarantee without rho, an unknown target, attributes with too many keys, and impossible rules."""
        rho_of(self.guarantee)
        names = [attribute.name for attribute in self.domain.attributes]
        if self.target is not None and self.target not in names:
            raise InvalidArgument(
                "target", f"one of {', '.join(names)}", self.target, "name an attribute, or leave it out"
            )
        arguments.sensitivity(self.contribution, "contribution")
        for attribute, size in zip(self.domain.attributes, self.sizes, strict=True):
            if size > _TABLE_CELLS:
                raise InvalidArgument(
                    f"attribute {attribute.name}",
                    f"at most {_TABLE_CELLS:,} keys",
                    f"{size:,}",
                    "use coarser bins or levels",
                )
        self._check_rules()

    def _check_rules(self) -> None:
        """Refuse constraints that no record satisfies, and those that need a model above ``model_cells``."""
        tree = junction_tree(self.sizes, [*self.allowed])
        if self.allowed and tree.size(self.sizes) > self.model_cells:
            fix = "use fewer constraints on the same columns, coarser bins, or edges that are the limits in them"
            raise InvalidArgument(
                "constraints", f"a model of at most {self.model_cells:,} cells", f"{tree.size(self.sizes):,}", fix
            )
        if not all(flags.any() for flags in possible_cells(self.sizes, tree, self.allowed)):
            fix = "leave out one of those that contradict one another"
            raise InvalidArgument("constraints", "at least one possible record", "none", fix)

    @property
    def event(self) -> Event:
        """Return the event for accountants, which is zCDP."""
        return Concentrated(rho_of(self.guarantee))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of keys of each attribute."""
        return tuple(attribute.sizes[-1] for attribute in self.domain.attributes)

    @cached_property
    def record_columns(self) -> list[RecordColumn]:
        """Return, for each attribute, the column that turns its codes into values."""
        return record_columns(self.domain, self.types, self.periods, self.bounds)

    @cached_property
    def rules(self) -> tuple[RecordRule, ...]:
        """Return the rules of the constraints."""
        return rules_of(self.constraints, self.record_columns)

    @cached_property
    def allowed(self) -> dict[Clique, Flags]:
        """Return, for each set of attributes that rules are about, which cells all these rules allow."""
        result: dict[Clique, Flags] = {}
        for rule in self.rules:
            result[rule.table] = result[rule.table] & rule.allowed if rule.table in result else rule.allowed
        return result

    @cached_property
    def candidates(self) -> list[Clique]:
        """Return the tables that may be selected: all of two attributes within the size limits, and the ``_TRIPLES``
        smallest of three."""
        places, most = range(len(self.sizes)), min(_TABLE_CELLS, self.model_cells)
        pairs = [pair for pair in itertools.combinations(places, 2) if cells(pair, self.sizes) <= most]
        listed = [
            size - attribute.null - (attribute.other is not None)
            for attribute, size in zip(self.domain.attributes, self.sizes, strict=True)
        ]
        triples = [
            triple
            for triple in itertools.combinations(places, 3)
            if cells(triple, listed) <= _TRIPLE_CELLS and cells(triple, self.sizes) <= most
        ]
        return [*pairs, *sorted(triples, key=lambda triple: (cells(triple, listed), triple))[:_TRIPLES]]

    @property
    def tables(self) -> list[Levels]:
        """Return the tables whose counts the release needs: those of one attribute, and the candidates."""
        return [self._levels(table) for table in [*self._singles(), *self.candidates]]

    @cached_property
    def first_tables(self) -> list[Clique]:
        """Return the tables that are measured first: of each attribute alone, or with the target if there is one.

        A pair that is too large to be a candidate is replaced by the attribute alone.
        """
        names = [attribute.name for attribute in self.domain.attributes]
        if self.target is None:
            return self._singles()
        target = names.index(self.target)
        pairs = {i: tuple(sorted((i, target))) for i in range(len(names)) if i != target}
        return [pair if pair in self.candidates else (i,) for i, pair in pairs.items()] or self._singles()

    @property
    def typical_cell(self) -> TypicalCell:
        """Return the size and noise of a typical cell of the first tables, for choosing a limit on a person's rows.

        A table of m cells with a share c of the budget has a total error proportional to ``m / sqrt(c)``. The sum over
        the tables is smallest for shares proportional to ``m^(2/3)``.
        """
        sizes = [cells(table, self.sizes) for table in self.first_tables]
        share = (_FIRST_SHARE if self.target is None else _TARGET_SHARE) if self.candidates else Fraction(1)
        costs = np.array([float(size) ** (2 / 3) for size in sizes])
        rho = float(rho_of(self.guarantee) * share)
        variances = 1 / (2 * rho * costs / costs.sum())
        return typical_cell([float(size) ** 2 for size in sizes], variances.tolist(), sizes)

    @cached_property
    def _plan(self) -> SelectionPlan:
        """Return everything public that the selection of tables needs."""
        optional = {}
        for place, attribute in enumerate(self.domain.attributes):
            extra = (attribute.other is not None) + attribute.null
            if extra:
                optional[place] = tuple(range(self.sizes[place] - extra, self.sizes[place]))
        return SelectionPlan(
            self.sizes,
            self.first_tables,
            self.candidates,
            rho_of(self.guarantee),
            arguments.sensitivity(self.contribution, "contribution"),
            self.model_cells,
            self.allowed,
            _FIRST_SHARE if self.target is None else _TARGET_SHARE,
            optional,
        )

    def _levels(self, table: Clique) -> Levels:
        """Return a table over attributes as levels: the finest for its attributes, 0 for others."""
        depths = [len(attribute.level_names) for attribute in self.domain.attributes]
        return tuple(depth if i in table else 0 for i, depth in enumerate(depths))

    def _singles(self) -> list[Clique]:
        """Return the tables of one attribute each."""
        return [(i,) for i in range(len(self.sizes))]

    def release(
        self, counts: Mapping[Levels, Numbers], *, rows: int | None = None, source: Source | None = None
    ) -> Synthesis:
        """Return ``rows`` synthetic records; None draws as many as the estimated number of rows.

        ``counts`` holds the :attr:`tables`.
        """
        number = check_rows(rows)
        return self.read(self.measure(counts, source=source), rows=number)

    @spends
    def measure(self, counts: Mapping[Levels, Numbers], *, source: Source | None = None) -> bytes:
        """Return the encoded measurements of the :attr:`tables`, from which :meth:`read` draws any number of records at
        no further cost."""
        exact = {table: self._checked(table, counts) for table in [*self._singles(), *self.candidates]}
        selection = Selection(self._plan, exact, resolve(source))
        selection.run()
        return encode_synthesis(selection.rounds, selection.model.laws())

    def read(self, stored: bytes, *, rows: int | None = None) -> Synthesis:
        """Return records drawn from the bytes of :meth:`measure`, which is post-processing and costs nothing; the same
        bytes always give the same records."""
        number = check_rows(rows)
        rounds, laws = decode_synthesis(stored, self.sizes, self._plan.possible)
        total = min(max(round(laws.total * self.unit), 0), MAX_RECORDS) if number is None else number
        # public random numbers: the recorded bytes determine the records
        source = SeededSource(int.from_bytes(hashlib.sha256(stored).digest(), "big"))
        codes = laws.sample(total, source)
        spread = [uniform(total, source) for _ in codes]
        columns_drawn = zip(self.record_columns, codes, spread, strict=True)
        numbers = [item.numbers(code, places) for item, code, places in columns_drawn]
        for rule in self.rules:
            rule.move_inside(codes, numbers, [*spread, uniform(total, source)])
        columns: dict[str, Any] = {}
        for item, code, values in zip(self.record_columns, codes, numbers, strict=True):
            columns |= item.arrays(code, values)
        described = tuple(self.record_columns)
        return Synthesis(pa.table(columns), self.guarantee, rounds, described, self.unit, tuple(codes), laws)

    def _checked(self, table: Clique, counts: Mapping[Levels, Numbers]) -> Integers:
        """Return the counts of one table as 64-bit integers in its shape; anything else is refused."""
        levels = self._levels(table)
        names = " × ".join(self.domain.names(levels))
        if levels not in counts:
            raise InvalidArgument("counts", f"a table of {names}", "none", "pass the counts of all .tables")
        return self.domain.checked_counts(levels, counts[levels]).reshape([self.sizes[i] for i in table])


def check_rows(rows: int | None) -> int | None:
    """Return the number of records to draw as a whole number; None stands for the estimated number of rows.

    >>> check_rows(1000)
    1000
    """
    return None if rows is None else arguments.whole(rows, "rows", at_most=MAX_RECORDS)


@dataclass(frozen=True, eq=False)
class Synthesis:
    """Synthetic records with their measurements and the distribution that they were drawn from.

    >>> from dither.publish import Attribute
    >>> synthesizer = Synthesizer(Domain([Attribute.flat("sex", ["f", "m"])]), ZCDP(1))
    >>> synthesizer.release({(1,): [300, 200]}).rounds[0].table
    (0,)
    """

    records: Any
    """An Arrow table."""
    guarantee: Guarantee
    rounds: tuple[Round, ...]
    columns: tuple[RecordColumn, ...] = field(repr=False)
    """The columns that turn the codes of each attribute into values."""
    unit: float = field(repr=False)
    """The value of 1 in the counts of a round, in rows."""
    codes: tuple[Integers, ...] = field(repr=False)
    """The code of every record, for each attribute."""
    laws: CliqueLaws = field(repr=False)


@dataclass(frozen=True)
class TableComparison:
    """A measured table: its noisy counts and the counts of the synthetic records, both in rows of the private table.

    >>> comparison = TableComparison((0,), ("sex",), np.array([60.0, 40.0]), np.array([50.0, 50.0]), 5.0)
    >>> comparison.distance, round(comparison.expected_distance, 3)
    (0.1, 0.04)
    """

    table: Clique
    names: tuple[str, ...]
    noisy: Floats = field(repr=False)
    """The released counts: unbiased, with noise."""
    records: Floats = field(repr=False)
    """The counts of the synthetic records, scaled to the estimated number of rows."""
    sigma: float
    """The standard deviation of the noise of a released count."""

    @property
    def distance(self) -> float:
        """Return the total variation distance of the records from the released counts."""
        return float(np.abs(self.noisy - self.records).sum() / 2 / max(self.records.sum(), 1.0))

    @property
    def expected_distance(self) -> float:
        """Return the expected total variation distance between the released counts and the exact ones: records with
        exactly the right counts would have this :attr:`distance`."""
        return math.sqrt(2 / math.pi) * self.sigma * self.noisy.size / 2 / max(float(self.records.sum()), 1.0)


def comparisons(synthesis: Synthesis) -> list[TableComparison]:
    """Return the comparison of every measured table with the records, tables of fewer columns first."""
    return [_comparison(synthesis, table) for table in sorted(_measured(synthesis), key=lambda item: (len(item), item))]


def column_comparisons(synthesis: Synthesis) -> list[TableComparison]:
    """Return the comparison of every measured column with the records.

    A column's noisy counts are the margin with the smallest variance among the measured tables that contain it.
    """
    sizes, measured, result = synthesis.laws.sizes, _measured(synthesis), []
    for place in range(len(sizes)):
        having = [item for table, item in measured.items() if place in table]
        if not having:
            continue
        variances = [item.variance * cells(item.table, sizes) / sizes[place] for item in having]
        best = having[int(np.argmin(variances))]
        axes = tuple(axis for axis, other in enumerate(best.table) if other != place)
        margin = MeasuredTable((place,), np.asarray(best.values.sum(axis=axes)), min(variances))
        result.append(_comparison(synthesis, (place,), margin))
    return result


def _measured(synthesis: Synthesis) -> dict[Clique, MeasuredTable]:
    """Return every measured table, with repeated measurements averaged by their precision."""
    measured: dict[Clique, MeasuredTable] = {}
    for item in synthesis.rounds:
        measured[item.table] = combined(measured.get(item.table), item.measurement)
    return measured


def _comparison(synthesis: Synthesis, table: Clique, item: MeasuredTable | None = None) -> TableComparison:
    """Return the comparison of a table with the records; ``item`` are its noisy counts (None: as measured)."""
    item = item or _measured(synthesis)[table]
    shape = [synthesis.laws.sizes[place] for place in table]
    codes = np.ravel_multi_index([synthesis.codes[place] for place in table], shape)
    counts = np.bincount(codes, minlength=math.prod(shape)).reshape(shape)
    total = synthesis.laws.total * synthesis.unit
    records = counts.astype(np.float64) * (total / max(int(counts.sum()), 1))
    names = tuple(synthesis.columns[place].attribute.name for place in table)
    return TableComparison(
        table, names, item.values * synthesis.unit, records, math.sqrt(item.variance) * synthesis.unit
    )
