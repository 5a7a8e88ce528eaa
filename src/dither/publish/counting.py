"""Counts of a domain's tables from the rows of a table: bounded for each person, in one scan, with one charge.

>>> import pyarrow as pa, numpy as np
>>> import dither as dp
>>> from dither.publish import Attribute, Domain
>>> from dither.tables.query.tree import Column
>>> rows = pa.table({"who": [1, 1, 2, 3], "sex": ["f", "f", "m", "x"]})
>>> with dp.open(rows, unit="who", max_rows=2, budget=dp.PureDP(1)) as visits:
...     counting = Counting(visits, Domain([Attribute.flat("sex", ["f", "m"])]), (Column("sex"),))
...     released = counting.release([(1,)], dp.PureDP(1), {}, lambda _, counts: str(sorted(counts)).encode())
>>> released.stored, float(counting.contribution * counting.unit)
(b'[(1,)]', 2.0)

*Covering tables.* An engine adds up every row once for each table that it counts. Forty tables of two attributes are
margins of some ten tables of four, which still have few cells, so only those are counted and the others added up.

>>> from dither.publish.domain import Attribute
>>> domain = Domain([Attribute.flat(name, range(4)) for name in "abcd"])
>>> covering_tables(domain, [(1, 1, 0, 0), (0, 0, 1, 1), (1, 0, 0, 1)])
[(1, 1, 1, 1)]
>>> covering_tables(domain, [(1, 1, 0, 0), (0, 0, 1, 1), (1, 0, 0, 1)], most_cells=64)
[(1, 1, 0, 1), (0, 0, 1, 1)]

The SQL statement that counts is made by :mod:`dither.tables.compile.marginals`.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dither import arguments
from dither.budget_hooks import charging_to
from dither.errors import InvalidArgument, WrongType
from dither.guarantees import Guarantee
from dither.ledger.accounts import Remaining
from dither.ledger.recorded import canonical, decode, encode
from dither.present.notes import Note
from dither.publish.domain import Attribute, Domain, Integers, Levels, contains
from dither.publish.mechanism import tables_needed
from dither.publish.person_limit import (
    SHARE_OF_BIAS,
    SHARE_OF_CHOICE,
    BudgetSplit,
    MaxRows,
    PersonLimit,
    TypicalCell,
    histogram_statement,
    learn_limit,
    limit_notes,
    split,
)
from dither.publish.residuals import margin
from dither.release import pipeline
from dither.release.pipeline import with_progress
from dither.tables.card.model import Card
from dither.tables.card.values import clip
from dither.tables.codec import to_json
from dither.tables.compile import expressions
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.limits import MAX_TOTAL, Limits
from dither.tables.compile.marginals import BinCodes, KeyCodes, RowCode, column_name, marginal_limits, marginals
from dither.tables.execute.recorded_key import card_digest
from dither.tables.execute.release import AskedPeople
from dither.tables.query.tree import Expression, Query, check_size
from dither.tables.table import Table

MOST_CELLS = 4096
"""The most cells of a covering table, so that its sums fit in a processor's cache."""
_MOST_TABLES = 2_000


def covering_tables(domain: Domain, tables: Sequence[Levels], most_cells: int = MOST_CELLS) -> list[Levels]:
    """Return tables of which each of the given ones is a margin: as few as a greedy search finds.

    They have at most ``most_cells`` cells, unless a given table is larger itself. Each covering table starts as the
    largest table that is not covered yet, and is repeatedly merged with the one that keeps it smallest.
    """
    needed = sorted(tables_needed(tables), key=domain.size, reverse=True)
    if len(needed) > _MOST_TABLES:
        return needed
    sizes = [np.array(attribute.sizes, dtype=np.float64) for attribute in domain.attributes]
    waiting = np.array(needed, dtype=np.int64).reshape(len(needed), len(sizes))
    result: list[Levels] = []
    while len(waiting):
        table, waiting = waiting[0], waiting[1:]
        while len(waiting):
            larger = np.maximum(waiting, table)
            cells = np.prod([size[larger[:, i]] for i, size in enumerate(sizes)], axis=0)
            best = int(np.argmin(cells))
            if cells[best] > most_cells:
                break
            table = larger[best]
            waiting = waiting[np.any(waiting > table, axis=1)]
        result.append(tuple(int(level) for level in table))
    return result


def domain_digest(domain: Domain, expressions: Sequence[Expression]) -> str:
    """Return the SHA-256 of the attributes' keys, levels and expressions, which is part of the key of a recorded
    publication.

    >>> from dither.tables.query.tree import Column
    >>> domain = Domain([Attribute.flat("sex", ["f", "m"])])
    >>> domain_digest(domain, [Column("sex")]) == domain_digest(domain, [Column("gender")])
    False
    """
    digest = hashlib.sha256()
    for attribute, expression in zip(domain.attributes, expressions, strict=True):
        described = {
            "value": to_json(expression),
            "levels": list(attribute.level_names),
            "edges": None if attribute.edges is None else [float(edge) for edge in attribute.edges],
            "null": attribute.null,
            "other": None if attribute.other is None else str(attribute.other),
            "types": [str(keys.type) for keys in attribute.keys],
        }
        digest.update(canonical(described).encode() + b"\n")
        for keys, parents in zip(attribute.keys, attribute.parents, strict=True):
            digest.update(canonical([to_json(key) for key in keys.to_pylist()]).encode() + b"\n")
            digest.update(np.ascontiguousarray(parents, dtype="<i8").tobytes())
    return digest.hexdigest()


def attribute_codes(attribute: Attribute, value: Expression, levels: tuple[int, ...]) -> RowCode:
    """Return the code of an attribute in a row for SQL statements: the index of its ``value`` among the keys, or of the
    bin that contains it, at each of the ``levels`` that tables use.

    Values that are not listed, and NULL, have the codes of their extra keys if the attribute has such keys.

    >>> from dither.tables.query.tree import Column
    >>> attribute_codes(Attribute.binned("age", [0, 18, 65]), Column("age"), (1,)).edges
    (0.0, 18.0, 65.0)
    """
    finest = attribute.sizes[-1]
    extra = (attribute.other is not None) + attribute.null
    depth = len(attribute.level_names)
    above = {level: attribute.ancestors(depth, level) for level in levels}
    null = finest - 1 if attribute.null else None
    other = finest - extra if attribute.other is not None else None
    if attribute.edges is not None:
        return BinCodes(attribute.name, value, attribute.edges, other, null, levels)
    return KeyCodes(
        attribute.name,
        value,
        attribute.keys[-1][: finest - extra],
        {level: above[level][: finest - extra] for level in levels},
        {level: attribute.sizes[level] for level in levels},
        None if other is None else {level: int(above[level][other]) for level in levels},
        None if null is None else {level: int(above[level][null]) for level in levels},
    )


def code_columns(domain: Domain, tables: Sequence[Levels]) -> list[tuple[str, ...]]:
    """Return the names of the columns in which the engine returns the codes of each table that has to be counted.

    Tables that are margins of counted ones are omitted. The column ``c0_1`` has the codes of attribute 0 at level 1.

    >>> code_columns(Domain([Attribute.flat("sex", ["f", "m"]), Attribute.binned("age", [0, 18])]), [(1, 1), (0, 1)])
    [('c0_1', 'c1_1')]
    """
    return [
        tuple(column_name(i, level) for i, level in enumerate(table) if level)
        for table in covering_tables(domain, tables)
    ]


def table_counts(domain: Domain, tables: Sequence[Levels], lines: Any) -> dict[Levels, Integers]:
    """Return the counts of each table as an array, from the statement's result (``lines``, an Arrow table).

    A line has the codes of one cell (NULL in the columns of other tables) and, last, its count ``m0``. Tables that were
    not counted are margins of those that were.

    >>> import pyarrow as pa
    >>> lines = pa.table({"c0_1": [0, 1], "m0": [30, 40]})
    >>> table_counts(Domain([Attribute.flat("sex", ["f", "m"])]), [(1,), (0,)], lines)
    {(1,): array([30, 40]), (0,): array([70])}
    """
    names = lines.column_names[:-1]
    has_code = np.empty((len(names), lines.num_rows), dtype=bool)
    for i, name in enumerate(names):
        has_code[i] = np.asarray(lines.column(name).is_valid())
    sums = np.asarray(lines.column("m0"))
    counted: dict[Levels, Integers] = {}
    for levels, columns in zip(covering_tables(domain, tables), code_columns(domain, tables), strict=True):
        has_column = np.array([name in columns for name in names], dtype=bool)
        rows = np.flatnonzero(np.all(has_code == has_column[:, None], axis=0))
        shape = domain.shape(levels)
        cells = np.zeros(len(rows), dtype=np.int64)
        for i, level in enumerate(levels):
            if level:
                codes = lines.column(column_name(i, level)).take(rows).to_numpy()
                cells = cells * shape[i] + codes.astype(np.int64)
        table = np.zeros(domain.size(levels), dtype=np.int64)
        table[cells] = sums[rows]
        counted[levels] = table.reshape(shape)
    return {levels: _margin(domain, levels, counted) for levels in tables}


def _margin(domain: Domain, levels: Levels, counted: Mapping[Levels, Integers]) -> Integers:
    """Return the counts of a table, as a margin of the smallest counted table that contains it."""
    source = min((table for table in counted if contains(table, levels)), key=domain.size)
    return margin(domain, counted[source], source, levels)


VERSION = 1
"""The version of the canonical form of a request, which is part of the key of a recorded publication."""


@dataclass(frozen=True)
class Recorded:
    """A recorded release, with its receipt, the remaining budget and the notes for the analyst."""

    stored: bytes
    receipt: str
    remaining: Remaining
    replayed: bool
    notes: tuple[Note, ...]
    limit: PersonLimit | None = None
    """The limit on a person's rows and the share of rows that it excludes; None if that was not estimated."""


@dataclass(frozen=True, eq=False)
class Counting:
    """Counts the tables of a domain from the rows of a table, bounded for each person, in one scan.

    Parameters
    ----------
    table
        The open table.
    expressions
        One for each attribute: its value in a row, which is compared with the keys of the finest level, or put into
        bins where the attribute has edges.
    where
        The condition on rows that count; None: all rows.
    max_rows
        The number of rows of a person that count in full; the rows of a person with more are weighted to add up to it.
        None takes the card's limit; ``"auto"`` chooses it privately, for a tenth of the cost of a release.
    about
        The name of the private table, for a card with several.
    bias
        Whether a release estimates how much a stated limit excludes, for a twentieth of its cost.
    """

    table: Table
    domain: Domain
    expressions: tuple[Expression, ...]
    where: Expression | None = None
    max_rows: MaxRows | None = None
    about: str | None = None
    bias: bool = False

    def __post_init__(self) -> None:
        """Refuse a ``bias`` that is not a boolean, and expressions that are not one for each attribute."""
        if not isinstance(self.bias, bool):
            raise WrongType("bias", "true or false", type(self.bias).__name__, "leave it out, or pass True")
        if len(self.expressions) != len(self.domain.attributes):
            expected = f"one for each of {len(self.domain.attributes)} attributes"
            raise InvalidArgument("expressions", expected, len(self.expressions), "give the value of every attribute")

    @cached_property
    def card(self) -> Card:
        """Return the card restricted to the private table that is counted."""
        card = self.table.card
        name = card.name if self.about is None else self.about
        if name not in card.private_tables:
            names = [*card.private_tables]
            got = "none" if self.about is None else repr(clip(self.about))
            raise InvalidArgument("about", f"one of {', '.join(names)}", got, f"pass about={names[0]!r}")
        return card.for_table(name)

    @cached_property
    def row_limit(self) -> MaxRows:
        """Return how many rows of a person count in full; ``"auto"`` where that is chosen later."""
        rows = self.card.max_rows if self.max_rows is None else self.max_rows
        if rows == "auto":
            return "auto"
        whole = arguments.whole(rows, "max_rows")
        if whole > MAX_TOTAL:
            raise InvalidArgument("max_rows", f"at most {MAX_TOTAL:,}", f"{whole:,}", "count fewer rows of a person")
        return whole

    @property
    def is_automatic(self) -> bool:
        """Return whether the limit is chosen privately; False if every row is a person, which needs no limit."""
        return self.card.unit is not None and self.row_limit == "auto"

    @property
    def histogram_share(self) -> Fraction:
        """Return the fraction of the budget spent on the histogram of people; 0 if none is measured."""
        if self.is_automatic:
            return SHARE_OF_CHOICE
        return SHARE_OF_BIAS if self.bias and self.card.unit is not None else Fraction(0)

    def split(self, guarantee: Guarantee) -> BudgetSplit:
        """Split the budget between the histogram of people and the tables."""
        return split(guarantee, self.histogram_share)

    def notes(self, learned: PersonLimit | None = None) -> tuple[Note, ...]:
        """Return the notes on the limit of a person's rows; ``learned`` is None before a release."""
        return limit_notes(self.card, self.row_limit, self.histogram_share, learned)

    def limited_to(self, max_rows: int) -> Counting:
        """Return this counting with a stated limit on a person's rows, so that no histogram of people is needed."""
        return replace(self, max_rows=max_rows, bias=False)

    @cached_property
    def limits(self) -> Limits:
        """Return the limits on what one person adds to the counts; for one row if ``max_rows`` is chosen later."""
        rows = self.row_limit
        return marginal_limits(1 if rows == "auto" else rows, self.card.unit is not None)

    @property
    def contribution(self) -> Fraction:
        """Return the largest l1 norm of what one person adds to a table, in units of the counts."""
        return self.limits.sensitivity()

    @property
    def unit(self) -> float:
        """Return the value of 1 in the counts, in rows; weighted rows are counted in units of a power of 2."""
        return float(2.0 ** -self.limits.bits())

    def check(self, tables: Sequence[Levels]) -> None:
        """Refuse, without a charge, what a release would refuse before its charge: the statements are compiled and run
        on a table without rows."""
        with self._context(tables) as context:
            self._check(context, tables)

    def release(
        self,
        tables: Sequence[Levels],
        guarantee: Guarantee,
        content: Mapping[str, Any],
        compute: Callable[[Counting, Mapping[Levels, Integers]], bytes],
        *,
        cell: TypicalCell | None = None,
        analyst: str | None = None,
        key: str | None = None,
        again: bool = False,
    ) -> Recorded:
        """Charge once, count every table, and record the bytes that ``compute`` returns for the counts.

        A request that was charged before returns the recorded result for free.

        Parameters
        ----------
        tables
            The levels of each table to count.
        guarantee
            The charge. What ``compute`` releases must cost at most the part that :meth:`split` leaves for the tables.
        content
            The request as JSON, which identifies it together with the guarantee, the card, the domain and the limit.
        compute
            Called with this object, whose limit is then a number, and an array of counts for each table; it adds the
            noise and returns the bytes to be recorded. If it fails, the charge stays.
        cell
            The typical cell that a limit is chosen for, if that is done privately
            (:mod:`dither.publish.person_limit` has the proof).
        analyst
            The asking analyst, where analysts have accounts.
        key, again
            A key for the request instead of one made from its content; and whether to release and charge anew.
        """
        pipeline.check(self.table, guarantee)
        if self.is_automatic and cell is None:
            fix = "state max_rows, or publish a plan, which knows its noise"
            raise InvalidArgument("max_rows", "a whole number, where the noise is unknown", "'auto'", fix)
        whole = self._request(tables, content)
        request = pipeline.identify(whole, guarantee, analyst=analyst, key=key, again=again)
        epsilon = self.split(guarantee).histogram

        def recorded(contexts: Sequence[StatementContext], notes: pipeline.ReleaseNotes) -> bytes:
            """Compute the bytes to record, with failures while rows are read handled by the pipeline."""

            def counted(run: Callable[[Statement], Any]) -> bytes:
                """Count the tables, after the limit on a person's rows is learned where a share is set aside
                for that."""
                context, counting, learned = contexts[0], self, {}
                with charging_to(None):  # the release was charged above
                    if epsilon:
                        limit = learn_limit(run(histogram_statement(context)), epsilon, self.row_limit, cell)
                        counting = self.limited_to(limit.max_rows)
                        context = replace(context, limits=counting.limits)
                        learned = {"limit": limit.as_recorded()}
                    stored = compute(
                        counting,
                        table_counts(self.domain, tables, run(marginals(context, code_columns(self.domain, tables)))),
                    )
                return encode({"publication": stored, "notes": [note.stored() for note in notes.people], **learned})

            return with_progress(counted, self.table.engine.run, lambda: 2 if epsilon else 1)

        with self._context(tables) as context:
            self._check(context, tables)
            people = AskedPeople(self.table.engine, [context])
            paid = pipeline.release(self.table, guarantee, request, people, recorded, analyst)
        answer = decode(paid.stored)
        limit = PersonLimit.from_recorded(answer["limit"]) if "limit" in answer else None
        notes = tuple(map(Note.restored, answer["notes"]))
        return Recorded(answer["publication"], str(paid.receipt), paid.remaining, paid.replayed, notes, limit)

    # -- what is refused before the charge ----------------------------------------------------------------------------

    def _check(self, context: StatementContext, tables: Sequence[Levels]) -> None:
        """Rehearse every statement of the release on a table without rows, so that failures come before the charge."""
        statements = [marginals(context, code_columns(self.domain, tables))]
        statements += [histogram_statement(context)] if self.histogram_share else []
        for statement in statements:
            self.table.engine.rehearse(statement.on({"": self.table.engine.empty_of(self.card.name)}))

    # -- the request --------------------------------------------------------------------------------------------------

    def _request(self, tables: Sequence[Levels], content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the canonical form of everything that the counts and the noise depend on, which identifies the
        request.

        ``content`` is the caller's part. In the result, ``query`` states which rows are used, for accounts of people;
        the field ``publication`` distinguishes it from an ordinary question.
        """
        about: dict[str, Any] = {"is": "publication", "domain": self.domain_digest}
        if self.where is not None:
            about["where"] = to_json(self.where)
        whole = {
            "version": VERSION,
            "publication": to_json(content),
            "query": about,
            "card": card_digest(self.card),
            "tables": [list(levels) for levels in tables],
            "max_rows": "auto" if self.is_automatic else self.limits.rows,
        }
        if self.histogram_share and not self.is_automatic:
            whole["bias"] = True
        return whole

    @cached_property
    def domain_digest(self) -> str:
        """Return a digest of the attributes' keys, levels and expressions."""
        return domain_digest(self.domain, self.expressions)

    # -- the counts ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _context(self, tables: Sequence[Levels]) -> Iterator[StatementContext]:
        """Yield the context of the statements; many keys are staged beside the source while it is open."""
        for expression in [*self.expressions, *([] if self.where is None else [self.where])]:
            check_size(expression)
        self._check_tables(tables)
        engine = self.table.engine
        engine.check()
        context = StatementContext(
            Query({}, where=self.where),
            self.card,
            (),
            self.limits,
            0,
            engine.dialect,
            {"": engine.private(self.card.name)},
        )
        codes = [
            attribute_codes(attribute, value, tuple(sorted({table[i] for table in tables} - {0})))
            for i, (attribute, value) in enumerate(zip(self.domain.attributes, self.expressions, strict=True))
        ]
        for item in codes:
            item.check(context.find)
        if self.where is not None:
            expressions.condition(self.where, context.find)
        staged: list[Any] = []
        try:
            for i, item in enumerate(codes):
                if isinstance(item, KeyCodes) and item.is_large:
                    name = f"dither_keys_{secrets.token_hex(8)}"
                    staged.append(engine.stage(name, item.table(context.find)))
                    codes[i] = replace(item, staged=staged[-1])
            yield replace(context, codes=tuple(codes))
        finally:
            for node in staged:
                engine.drop(node)

    def _check_tables(self, tables: Sequence[Levels]) -> None:
        """Refuse tables whose levels the domain does not have, and tables with too many cells."""
        if not tables:
            raise InvalidArgument("tables", "at least one table", "none", "name the tables to be counted")
        for levels in tables:
            sizes = [len(attribute.level_names) for attribute in self.domain.attributes]
            if len(levels) != len(sizes) or not all(
                0 <= level <= most for level, most in zip(levels, sizes, strict=True)
            ):
                fix = "use Domain.levels(names)"
                raise InvalidArgument(
                    "tables", "a level of each attribute of the domain", "a table of other levels", fix
                )
            self.domain.check_size(levels)
