"""Synthetic records of a table that is open: domains from its card, counts from one scan, one charge.

*Domains.* A column that a request only names has the keys that the card lists or that follow from it. Without keys, or
with more than 100, numbers within bounds are divided into 32 bins of equal width, and dates into the shortest periods
(hours, days, weeks, months, quarters, years) of which at most 100 lie within the bounds. Every column has a key for
NULL. Nothing is read from the rows.

*What is recorded* are the noisy tables and the law of the records (:mod:`dither.publish.recording`): the same
request again gives the same records for free, and so does one for another number of records.

>>> import dither as dp, pyarrow as pa
>>> people = pa.table({"marital": ["single", "married"] * 500, "age": [12, 40] * 500})
>>> with dp.open(
...     people, keys={"marital": ["single", "married"]}, bounds={"age": (0, 99)}, budget=dp.ApproxDP(2, 1e-6)
... ) as table:
...     rule = "NOT (marital = 'married' AND age < 15)"
...     records = dp.publish.synthesize(table, ["marital", "age"], epsilon=1, delta=1e-9, constraints=[rule])
>>> records.schema.types
[DataType(string), DataType(int64)]
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from dither.budget_hooks import covered
from dither.errors import InvalidArgument
from dither.guarantees import Guarantee
from dither.ledger.accounts import Remaining
from dither.present.notes import Note
from dither.publish.card_columns import PERIODS, CardColumn, ColumnReader, stated_keys
from dither.publish.counting import Counting
from dither.publish.domain import Attribute, Domain
from dither.publish.person_limit import MaxRows
from dither.publish.publication_plan import guarantee_for
from dither.publish.synthesizer import Synthesis, Synthesizer, check_rows
from dither.tables.card.model import Type
from dither.tables.planning.automatic import ClippedShare
from dither.tables.query.tree import Call, Column, Expression, Literal
from dither.tables.table import Table

_KEYS, _BINS = 100, 32


@dataclass(frozen=True, eq=False)
class SyntheticRecords:
    """Synthetic records of a table, with their receipt and the remaining budget; see :meth:`SyntheticPlan.release`.

    >>> import dither as dp, pyarrow as pa
    >>> with dp.open(pa.table({"vip": [True, False] * 500}), budget=dp.ApproxDP(1, 1e-6)) as people:
    ...     released = synthetic_plan(people, ["vip"], epsilon=1, delta=1e-9).release(rows=10)
    >>> released.table.num_rows, str(released.remaining), released.replayed
    (10, '(ε, δ) = (0, 9.99e-07)', False)
    """

    synthesis: Synthesis
    receipt: str
    remaining: Remaining
    replayed: bool
    notes: tuple[Note, ...] = ()
    max_rows: int | None = None
    """The limit on a person's rows; None if every row is a person."""
    clipped_share: ClippedShare | None = None
    """The share of rows that the limit excludes; None if it was not estimated."""

    @property
    def table(self) -> Any:
        """Return the records as an Arrow table, with guarantee and receipt in the metadata of its schema."""
        records = self.synthesis.records
        metadata = {
            "guarantee": str(self.synthesis.guarantee),
            "receipt": self.receipt,
            "notes": [*map(str, self.notes)],
            "max_rows": self.max_rows,
            "left_out": None if self.clipped_share is None else vars(self.clipped_share),
        }
        return records.replace_schema_metadata({"dither": json.dumps(metadata, ensure_ascii=False)})


@dataclass(frozen=True, eq=False)
class SyntheticPlan:
    """A release of synthetic records that was planned and not yet charged; made by :func:`synthetic_plan`.

    >>> import dither as dp, pyarrow as pa
    >>> with dp.open(pa.table({"vip": [True, False] * 500}), budget=dp.ApproxDP(1, 1e-6)) as people:
    ...     print(synthetic_plan(people, ["vip"], epsilon=1, delta=1e-9).explain().splitlines()[2])
      vip: 2 keys, and NULL
    """

    table: Table
    synthesizer: Synthesizer
    """Measures the tables with the part of the budget that the histogram of people leaves; for one row of each person
    if ``max_rows`` is chosen later."""
    counting: Counting
    guarantee: Guarantee
    """The cost of a release."""
    notes: tuple[Note, ...] = ()
    """The notes on rows whose values are outside the domains, and on columns that are not used."""
    constraints: tuple[str, ...] = field(default=(), repr=False)

    def check(self) -> None:
        """Refuse everything except an insufficient budget that a release would refuse before its charge."""
        self.counting.check(self.synthesizer.tables)

    def explain(self, *, analyst: str | None = None) -> str:
        """Return a text on what would be measured, its cost, and the remaining budget; nothing is read or charged."""
        domain, synthesizer, accounts = self.synthesizer.domain, self.synthesizer, self.table.accounts
        lines = [f"cost: {self.guarantee}; left: {accounts.remaining(analyst)}"]
        refusal = accounts.refusal(self.guarantee, analyst)
        if refusal:
            lines.append(f"would be refused: {refusal}")
        lines.append(f"synthetic records of {len(domain.attributes)} columns:")
        for attribute in domain.attributes:
            lines.append(f"  {attribute.name}: {_domain_text(attribute)}")
        sizes = [domain.size(table) for table in synthesizer.tables]
        lines.append(
            f"counted in one scan: {len(sizes):,} tables of one to three columns, {sum(sizes):,} cells; "
            f"{len(synthesizer.first_tables)} are measured first, others where they add most"
        )
        if synthesizer.target is not None:
            lines.append(f"every column is first measured together with {synthesizer.target}")
        lines += [f"every record obeys: {constraint}" for constraint in self.constraints]
        rows = float(self.counting.contribution) * self.counting.unit
        most = "max_rows rows" if self.counting.is_automatic else f"{rows:g} row{'s' if rows != 1 else ''}"
        lines.append(f"one person changes the counts of a table by at most {most}")
        notes = (*self.notes, *self.counting.notes(), *accounts.people_notes(self.guarantee))
        lines += [f"- {note}" for note in notes]
        return "\n".join(lines)

    def release(
        self,
        *,
        rows: int | None = None,
        analyst: str | None = None,
        key: str | None = None,
        again: bool = False,
    ) -> SyntheticRecords:
        """Charge, count, measure, record, and draw the records: ``rows`` of them, or about as many as the table has.

        A request that was charged before returns the recorded release for free; ``again=True``, or a different ``key``,
        makes and charges a new one. ``analyst`` names the asking analyst, where analysts have accounts.
        """
        counting, number = self.counting, check_rows(rows)
        released = counting.release(
            self.synthesizer.tables,
            self.guarantee,
            self.content,
            lambda limited, counts: covered(self._limited(limited).measure)(counts),
            cell=self.synthesizer.typical_cell if counting.is_automatic else None,
            analyst=analyst,
            key=key,
            again=again,
        )
        limit = released.limit
        limited = counting if limit is None else counting.limited_to(limit.max_rows)
        synthesis = replace(self._limited(limited).read(released.stored, rows=number), guarantee=self.guarantee)
        return SyntheticRecords(
            synthesis,
            released.receipt,
            released.remaining,
            released.replayed,
            (*released.notes, *counting.notes(limit)),
            None if counting.card.unit is None else limited.limits.rows,
            None if limit is None else limit.clipped_share,
        )

    def _limited(self, counting: Counting) -> Synthesizer:
        """Return the synthesizer for counts in which a person's rows are limited as in ``counting``."""
        if counting.limits == self.counting.limits:
            return self.synthesizer
        return replace(self.synthesizer, contribution=counting.contribution, unit=counting.unit)

    @property
    def content(self) -> dict[str, Any]:
        """Return the request without domain and rows in canonical form: part of the key under which a synthesis is
        recorded.

        The number of records is not part of it, nor are options that only change how codes become values.
        """
        synthesizer = self.synthesizer
        return {
            "synthesize": 1,
            "target": synthesizer.target,
            "constraints": [*self.constraints],
            "model_cells": synthesizer.model_cells,
        }


def synthetic_plan(
    table: Table,
    columns: Mapping[str, Any] | Sequence[str] | None = None,
    *,
    epsilon: float,
    delta: float | None = None,
    target: str | None = None,
    constraints: Iterable[object] = (),
    max_rows: MaxRows | None = None,
    bias: bool = False,
    where: Any = None,
    about: str | None = None,
) -> SyntheticPlan:
    """Plan a release of synthetic records, with the arguments of :func:`synthesize`; nothing is charged.

    >>> import dither as dp, pyarrow as pa
    >>> with dp.open(pa.table({"vip": [True, False]}), budget=dp.ApproxDP(1, 1e-6)) as people:
    ...     synthetic_plan(people, ["vip"], epsilon=1, delta=1e-9).synthesizer.tables
    [(1,)]
    """
    guarantee = guarantee_for(table.card, None, epsilon, delta, None)
    reader = _DefaultReader(table, about=about, where=where)
    chosen, notes = reader.columns(columns)
    domain = Domain(item.attribute for item in chosen)
    counting = Counting(table, domain, tuple(item.expression for item in chosen), reader.where, max_rows, about, bias)
    stated = (constraints,) if isinstance(constraints, str) else tuple(constraints)
    synthesizer = Synthesizer(
        domain,
        counting.split(guarantee).tables,
        contribution=counting.contribution,
        target=target,
        constraints=stated,
        types={item.attribute.name: reader.type_of(item.expression) for item in chosen},
        periods={item.attribute.name: period for item in chosen if (period := _period(item.expression)) is not None},
        bounds=reader.date_bounds(chosen),
        unit=counting.unit,
    )
    return SyntheticPlan(table, synthesizer, counting, guarantee, notes, tuple(map(str, stated)))


def synthesize(
    table: Table,
    columns: Mapping[str, Any] | Sequence[str] | None = None,
    *,
    epsilon: float,
    delta: float | None = None,
    rows: int | None = None,
    target: str | None = None,
    constraints: Iterable[object] = (),
    max_rows: MaxRows | None = None,
    bias: bool = False,
    where: Any = None,
    analyst: str | None = None,
    about: str | None = None,
    key: str | None = None,
    again: bool = False,
) -> Any:
    """Release synthetic records of a table as an Arrow table, with one charge.

    Parameters
    ----------
    table
        A table that :func:`dither.open` opened.
    columns
        Names of columns, or a mapping from names to their domains as in a plan: keys, ``{"edges": [0, 18, 65]}``,
        ``{"width": 10}``, an expression. By default all columns of the card that have public domains, without the
        person. :mod:`dither.publish.synthetic_table` defines the domains of columns that are only named.
    epsilon, delta
        The cost of the release; by default the card's delta.
    rows
        The number of records; by default the estimated number of rows that count. A different number of records of the
        same release is free.
    target
        A column that models trained on the records will predict.
    constraints
        Public rules that every record obeys, as conditions in SQL.
    max_rows
        The number of rows of a person that count in full; by default the card's limit. ``"auto"`` chooses it privately,
        for a tenth of the cost.
    bias
        Whether to estimate how much a stated ``max_rows`` excludes, for a twentieth of the cost.
    where
        A condition on the rows that count.
    analyst, about, key, again
        The asking analyst; the private table, of a card with several; and, as in :meth:`dither.Question.release`, a
        name for the release, and whether to release anew what is recorded.

    Examples
    --------
    >>> import dither as dp, pyarrow as pa
    >>> with dp.open(pa.table({"vip": [True, False] * 500}), budget=dp.ApproxDP(1, 1e-6)) as people:
    ...     records = dp.publish.synthesize(people, ["vip"], epsilon=1, delta=1e-9)
    >>> 800 < records.num_rows < 1200
    True
    """
    plan = synthetic_plan(
        table,
        columns,
        epsilon=epsilon,
        delta=delta,
        target=target,
        constraints=constraints,
        max_rows=max_rows,
        bias=bias,
        where=where,
        about=about,
    )
    return plan.release(rows=rows, analyst=analyst, key=key, again=again).table


class _DefaultReader(ColumnReader):
    """Reads columns, with bins or periods for those that are only named."""

    def columns(self, columns: Mapping[str, Any] | Sequence[str] | None) -> tuple[list[CardColumn], tuple[Note, ...]]:
        """Return the requested columns (None: all with public domains), and the notes on rows and columns that are not
        used."""
        if columns is None:
            return self._all_columns()
        if isinstance(columns, str) or not columns:
            fix = "pass columns=['age', 'sex']"
            raise InvalidArgument("columns", "a list of at least one column", repr(columns), fix)
        named = columns if isinstance(columns, Mapping) else dict.fromkeys(columns)
        chosen = [self.column(name, self._with_default(name, spec)) for name, spec in named.items()]
        return chosen, tuple(item.outside_note for item in chosen)

    def _all_columns(self) -> tuple[list[CardColumn], tuple[Note, ...]]:
        """Return all columns of the card that have public domains, with a note on those that do not."""
        chosen, without = [], []
        for name in self.card.columns:
            if name == self.card.unit:
                continue
            try:
                chosen.append(self.column(name, self._with_default(name, None)))
            except InvalidArgument:
                without.append(name)
        if not chosen:
            fix = "state keys or bounds of columns in the card, or pass columns={'age': {'edges': [0, 18, 65]}}"
            raise InvalidArgument("columns", "columns with public domains", "none", fix)
        notes = [item.outside_note for item in chosen]
        if without:
            notes.append(Note("columns_without_domain", {"names": without}))
        return chosen, tuple(notes)

    def _with_default(self, name: str, spec: Any) -> Any:
        """Return the section of a column, completed by default bins or periods if the column is only named.

        NULL is a key unless the section says otherwise.
        """
        if spec is None or (isinstance(spec, Mapping) and not {*spec} - {"null", "other", "column"}):
            spec = {**self._default(dict(spec or {}).get("column", name)), **(spec or {})}
        elif isinstance(spec, (str, Call, Column)) or hasattr(spec, "expression"):
            spec = {"expression": spec}
        elif not isinstance(spec, Mapping):
            spec = stated_keys(name, spec)
        return {"null": True, **spec}

    def _default(self, name: object) -> dict[str, Any]:
        """Return the default section of the card's column ``name``: bins or periods if it has bounds and no keys, else
        empty.

        Integers get bins of equal width, real numbers equal bins of which the last contains the upper bound, and dates
        the shortest periods of which at most ``_KEYS`` lie within the bounds. Periods are counted by their mean length
        in hours, with two keys reserved for the incomplete periods at both ends.
        """
        column = self.card.columns.get(name) if isinstance(name, str) else None
        if column is None or column.keys is not None:
            return {}
        if column.bounds is not None:
            low, high = column.bounds
            if column.type == "integer":
                count = int(high) - int(low) + 1
                if count <= _KEYS:
                    return {"width": 1}
                width = math.ceil(count / _BINS)
                return {"edges": [int(low) + i * width for i in range(math.ceil(count / width))] + [int(high) + 1]}
            edges = [low + (high - low) * i / _BINS for i in range(_BINS)]
            return {"edges": [*edges, math.nextafter(high, math.inf)]}
        if column.period is not None:
            first, last = column.period
            hours = (last - first).total_seconds() / 3600 + (24 if column.type == "date" else 0)
            hours_in = {"hour": 1, "day": 24, "week": 168, "month": 730.5, "quarter": 2191.5, "year": 8766}
            allowed = [period for period in reversed(PERIODS) if column.type == "timestamp" or period != "hour"]
            fitting = [period for period in allowed if hours / hours_in[period] <= _KEYS - 2]
            return {"period": fitting[0] if fitting else "year"}
        return {}

    def date_bounds(self, chosen: Iterable[CardColumn]) -> dict[str, tuple[date, date]]:
        """Return the first and the last day or moment of columns in periods, as the card states them."""
        result = {}
        for item in chosen:
            column = item.expression.args[1] if isinstance(item.expression, Call) and _period(item.expression) else None
            stated = self.card.columns[column.name].period if isinstance(column, Column) else None
            if stated is not None:
                result[item.attribute.name] = stated
        return result

    def type_of(self, expression: Expression) -> Type:
        """Return the type of an expression over the card's columns."""
        return self._kind(expression)


def _period(expression: Expression) -> str | None:
    """Return the unit to which an expression truncates a date; None for any other expression."""
    if isinstance(expression, Call) and expression.op == "date_trunc" and isinstance(expression.args[0], Literal):
        return str(expression.args[0].value)
    return None


def _domain_text(attribute: Attribute) -> str:
    """Return the domain of an attribute as text: the number of its keys or bins, their range, and the extra keys.

    >>> _domain_text(Attribute.binned("age", [0, 18, 65], null=True))
    '2 bins from 0 to 65, and NULL'
    """
    size = attribute.sizes[-1] - attribute.null - (attribute.other is not None)
    extra = [*([] if attribute.other is None else [f"{attribute.other!r}"]), *(["NULL"] if attribute.null else [])]
    kind = "bins" if attribute.edges is not None else "keys"
    within = "" if attribute.edges is None else f" from {attribute.edges[0]:g} to {attribute.edges[-1]:g}"
    return f"{size:,} {kind}{within}" + (f", and {' and '.join(extra)}" if extra else "")
