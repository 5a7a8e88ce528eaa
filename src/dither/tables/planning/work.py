"""How much work one person's rows can be: rows are limited before they are combined with each other.

An engine that aggregates a table looks at each row a fixed number of times, so the work for somebody with r rows is
proportional to r. A join of private tables on the person, or EXISTS with a condition, compares every row of a person
with every other one: r^2 combinations, or r^3. How long that takes would show whether somebody with many rows is in the
data. So at most ``most`` rows of each person enter such a comparison from each side (:class:`CappedRows`).

*Statement.* What a question computes from combinations of one person's rows is at most :data:`MAX_WORK` units of work,
or what one row of each relation takes where that is more. The limit follows from the question alone: it is the largest
``most`` for which the sum over all nodes of ``rows of one person * units for a row`` stays below that.

*Why.* With at most k rows of a person from each side, a join has at most k^2 of them, a join with a third one k^3, and
so on by induction over the nodes (:func:`_work`): the number of rows is a polynomial in k without negative terms, and
so is the work. Everything in it is public.

*Sensitivity.* It does not change. Which rows of a person are kept depends on the rows of that person alone, and not on
the order in which an engine meets them: rows are numbered in the order of all columns that the question reads, so that
only rows that are the same in these are interchangeable, and numbers are chosen by a hash of the person and the number.
So the choice does not depend on the values, and averages of the rows kept are those of all rows but for chance.
So a relation still has the rows of each person as a function of that person's rows.
What a person adds to an answer is bounded after that, as for any rows (:mod:`dither.tables.compile.limits`).

Not limited are rows that are combined with one row of the same person (a table per person), rows that are joined on a
key to which a path in the card leads (the steward asserts that one row has it, and ``dither check`` counts keys with
several), rows for which EXISTS asks whether the person has any, and rows that are aggregated, numbered or sorted: their
work is proportional to their number, up to a logarithm.

How much work the texts of one row can be: a question has so many operations on texts, counted before data are read.

An operation on a text takes DuckDB some 3 to 16 ns for each character. A text that a question makes, by a constant or
by an operation that lengthens one, has at most ``MAX_MADE_BYTES`` (:mod:`dither.tables.query.operations.text`),
however few rows it makes it for. With :data:`MAX_TEXT_OPERATIONS` on each row, what such texts add to the work of one
row is bounded by the question alone. Texts of the data have up to 65,536 bytes, and their work is in proportion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import zip_longest

from dither.errors import InvalidArgument
from dither.tables.card.model import Card
from dither.tables.compile import expressions
from dither.tables.compile.expressions import Lookup
from dither.tables.compile.relations import inner_lookup
from dither.tables.planning.group_keys import card_of_question
from dither.tables.query import nodes
from dither.tables.query.operations.text import TEXT
from dither.tables.query.relations import person_of, relation_schema, single_partners
from dither.tables.query.tree import (
    Call,
    CappedRows,
    Column,
    Expression,
    Literal,
    PerPerson,
    PersonJoin,
    PrivateRows,
    Projection,
    PublicMembership,
    Query,
    Source,
    UnionAll,
    Windowed,
    columns,
    walk,
)

MAX_WORK = 1 << 20
"""How many units of work are done for the combinations of one person's rows. A unit is what DuckDB takes to compare two
numbers, some 4 ns: all of them are some 4 ms, less than 2 % of a tick of the server. This is measured, not proven
(``benchmarks/work_of_a_person.py``)."""
_ROW = 16
"""Units for a row that is made, counted, or looked up in another table."""
_WINDOW = 96
"""Units for a row that is ordered within the rows of its person."""
_CHARACTERS = 80
"""How many characters of SQL are a unit. Of arithmetic, comparisons and CASE inside each other the time is proportional
to them, since what an operation is written with stands in it several times."""
_OPERATION_UNITS = {
    "lower": 1024, "upper": 1024, "ilike": 1024, "trim": 512, "ltrim": 512, "rtrim": 512, "replace": 256, "cast": 64,
    "right": 64, "ends_with": 64, "like": 64, "contains": 64, "starts_with": 32, "substr": 32, "length": 32, "||": 48,
    "date_add": 24, "date_diff": 12, "date_part": 4, "date_trunc": 4, "date_name": 64,
}  # fmt: skip
"""Further units for operations on dates, and for those that look at every character, of texts of some 500 of them."""

_Polynomial = tuple[int, ...]
"""A function of the limit: the coefficients of 1, k, k^2, …"""
_Node = Projection | PerPerson | Windowed | PublicMembership | CappedRows
"""What is made of one relation."""


def with_limited_work(query: Query, card: Card) -> Query:
    """Return the question with each person's rows limited where a join combines them, to the largest number for which
    the work for one person stays within :data:`MAX_WORK`."""
    parts = query.aggregations
    work: _Polynomial = ()
    seen = {name for part in parts for name in _read(part)}  # of all parts, so that they are about the same rows
    for part in parts:
        work = _add(work, _of_question(_limited(part, card, 1, seen), card))
    if len(work) < 2:  # nothing is limited
        return query
    first, *more = (_limited(part, card, _largest(work), seen) for part in parts)
    return replace(first, more=tuple(more))


def _largest(work: _Polynomial) -> int:
    """Return the largest limit, at least 1, at which the polynomial ``work`` is at most :data:`MAX_WORK`."""
    low, high = 1, MAX_WORK
    while high - low > 1:
        middle = (low + high) // 2
        within = sum(number * middle**power for power, number in enumerate(work)) <= MAX_WORK
        low, high = (middle, high) if within else (low, middle)
    return low


def _limited(query: Query, card: Card, most: int, seen: set[str]) -> Query:
    """Return the question with at most ``most`` rows of a person wherever its relation combines them."""
    return query if query.source is None else replace(query, source=_with_limits(query.source, card, most, seen))


def _with_limits(source: Source, card: Card, most: int, seen: set[str]) -> Source:
    """Return the relation with at most ``most`` rows of a person on either side of each join that may have several on
    both. ``seen`` are the columns that are read of it."""
    if isinstance(source, PrivateRows):
        return source
    if isinstance(source, UnionAll):
        return UnionAll(tuple(_with_limits(item, card, most, seen) for item in source.sources))
    if not isinstance(source, PersonJoin):
        return replace(source, source=_with_limits(source.source, card, most, _read_inside(source, card, seen)))
    seen = seen | _names(source.on)
    sides = [
        (source.left, seen & relation_schema(card, source.left).columns.keys()),
        (source.right, {old for name, old in source.names.items() if name in seen}),
    ]
    inside = [_with_limits(item, card, most, own) for item, own in sides]
    rows = [_rows_and_work(item, card)[0] for item in inside]
    looks_up = source.kind in ("semi", "anti") and source.on is None  # whether the person has any row
    if not looks_up and (1,) not in rows and not any(_single_partners(source, card)):
        inside = [
            CappedRows(item, most, tuple(sorted(own))) if known is None else item
            for item, known, (_, own) in zip(inside, rows, sides, strict=True)
        ]
    return replace(source, left=inside[0], right=inside[1])


def _read(query: Query) -> set[str]:
    """Return the columns of its relation in FROM that a question reads, those of all levels together."""
    groups = (group.value for group in (*query.groups, *query.rolled_up))
    values = (value for item in query.aggregates.values() for value in (item.value, item.other))
    return _names(query.where, *(own for join in query.joins for own, _ in join.pairs), *groups, *values)


def _read_inside(source: _Node, card: Card, seen: set[str]) -> set[str]:
    """Return the columns that a node reads of the relation inside it."""
    if isinstance(source, PublicMembership):
        return seen | _names(source.value)
    if isinstance(source, (Windowed, CappedRows)):  # which may go by the order of all columns
        return set(relation_schema(card, source.source).columns)
    conditions = _names(source.where, *(own for join in source.joins for own, _ in join.pairs))
    if isinstance(source, Projection):
        return conditions | _names(*(value for name, value in source.columns.items() if name in seen))
    return conditions | _names(*source.groups.values(), *(item.value for item in source.aggregates.values()))


def _names(*values: Expression | None) -> set[str]:
    """Return the names of the private columns in expressions; None is no expression."""
    return {column.name for column in columns(*values) if column.table is None}


def _rows_and_work(source: Source, card: Card) -> tuple[_Polynomial | None, _Polynomial]:
    """Return the most rows of a person in a relation (None: no limit), and the units of work for limited rows, both as
    polynomials of the limit."""
    if isinstance(source, PrivateRows):
        return None, ()
    if isinstance(source, PersonJoin):
        return _of_join(source, card)
    if isinstance(source, UnionAll):
        parts = [_rows_and_work(item, card) for item in source.sources]
        known = [rows for rows, _ in parts if rows is not None]
        return (_add(*known) if len(known) == len(parts) else None), _add(*(work for _, work in parts))
    rows, work = _rows_and_work(source.source, card)
    if isinstance(source, CappedRows):
        return (0, 1), work
    if rows is not None:
        work = _add(work, _times(rows, (_units_of(source, card),)))
    return ((1,) if relation_schema(card, source).one_row else rows), work


def _of_join(source: PersonJoin, card: Card) -> tuple[_Polynomial | None, _Polynomial]:
    """Return the most rows of a person after a join on the person and the units of work for it, both as polynomials of
    the limit (:func:`_rows_and_work`): r rows of one side meet s rows of the other in r s combinations."""
    (left, left_work), (right, right_work) = (_rows_and_work(item, card) for item in (source.left, source.right))
    work, filters = _add(left_work, right_work), source.kind in ("semi", "anti")
    kept = [(left, source.kind in ("left", "full")), (right, source.kind in ("right", "full"))]
    single = _single_partners(source, card)
    sides = [rows for rows, is_single in zip((left, right), single, strict=True) if is_single and rows is not None]
    if any(single) and not sides:
        combinations = None
    elif sides:
        combinations = sides[0]
    else:  # one that is not limited is looked up
        combinations = None if left is None or right is None else _times(left, right)
    if combinations is None or any(rows is None for rows, is_kept in kept if is_kept):
        return (left if filters else None), work
    combinations = _add(combinations, *(rows for rows, is_kept in kept if is_kept and rows is not None))
    work = _add(work, _times(combinations, (_ROW + _units(inner_lookup(source, card), source.on),)))
    if filters:
        return left, work
    return ((1,) if relation_schema(card, source).one_row else combinations), work


def _single_partners(source: PersonJoin, card: Card) -> tuple[bool, bool]:
    """Return whether a row of the left relation, and one of the right relation, has at most one partner."""
    sides = relation_schema(card, source.left), relation_schema(card, source.right)
    return single_partners(source, *sides, person_of(card))


def _of_question(query: Query, card: Card) -> _Polynomial:
    """Return the units of work for the limited rows of a person in all statements of a question about one relation."""
    rows, work = (None, ()) if query.source is None else _rows_and_work(query.source, card)
    if rows is not None:
        known = card_of_question(query, card)
        find = expressions.lookup_of(known, query.joins)
        values = [value for item in query.aggregates.values() for value in (item.value, item.other)]
        own = [
            query.where,
            *(own for join in query.joins for own, _ in join.pairs),
            *(group.value for group in query.groups),
            *values,
        ]
        lookups = 1 + len(query.joins) + len(query.groups) + len(query.aggregates)
        work = _add(work, _times(rows, (lookups * _ROW + _units(find, *own),)))
    # keys of groups are numbered by statements of their own, and so may be the bins of a value, or its bounds chosen
    own_statements = sum(item.value is not None for item in query.aggregates.values())
    return _times(work, (1 + len(query.groups) + own_statements,))


def _units_of(source: Projection | PerPerson | Windowed | PublicMembership, card: Card) -> int:
    """Return the units of work for each row of the relation inside."""
    find = inner_lookup(source, card)
    if isinstance(source, PublicMembership):
        return _ROW + _units(find, source.value)
    if isinstance(source, Windowed):  # which orders rows by all columns, where they are alike in its order
        width = len(relation_schema(card, source.source).columns)
        used = [
            value
            for item in source.windows.values()
            for value in (item.value, *item.partition, *(key.value for key in item.order))
        ]
        return len(source.windows) * (_WINDOW + _ROW * width) + _units(find, *used)
    values = [source.where, *(own for join in source.joins for own, _ in join.pairs)]
    lookups = 1 + len(source.joins)
    if isinstance(source, Projection):
        return lookups * _ROW + _units(find, *values, *source.columns.values())
    aggregated = [item.value for item in source.aggregates.values()]
    return (lookups + len(aggregated)) * _ROW + _units(find, *values, *source.groups.values(), *aggregated)


def _units(find: Lookup, *values: Expression | None) -> int:
    """Return the units of work for computing expressions from one row."""
    result = 0
    for value in values:
        if isinstance(value, Call):
            operations = (node.op for node in walk(value) if isinstance(node, Call))
            result += 1 + nodes.count_characters(expressions.compile(value, find).node) // _CHARACTERS
            result += sum(_OPERATION_UNITS.get(name, 0) for name in operations)
    return result


def _add(*terms: _Polynomial) -> _Polynomial:
    """Return the sum of polynomials."""
    return tuple(map(sum, zip_longest(*terms, fillvalue=0)))


def _times(left: _Polynomial, right: _Polynomial) -> _Polynomial:
    """Return the product of two polynomials."""
    result = [0] * (len(left) + len(right) - 1) if left and right else []
    for i, number in enumerate(left):
        for j, other in enumerate(right):
            result[i + j] += number * other
    return tuple(result)


MAX_TEXT_OPERATIONS = 512
"""How many operations on texts a question may have for one row of the data."""

_NAMES = frozenset(item.name for item in TEXT)
_WRITTEN = {"||": 2, "replace": 3, "cast": 3}
"""How often the argument of an operation stands in its SQL, of those where that is more than once."""
_OTHER_FIELDS = ("source", "sources", "left", "right", "shape", "post", "more", "rolled_up")


def refuse_much_text_work(query: Query) -> None:
    """Refuse a question with too many operations on texts."""
    count = sum(_text_operations(part) for part in query.aggregations)
    if count > MAX_TEXT_OPERATIONS:
        expected = (
            f"at most {MAX_TEXT_OPERATIONS} operations on texts (LIKE, LOWER, REPLACE, || and the like) for each row"
        )
        expected += (
            ", where one inside || counts twice, inside REPLACE or CAST three times, and in UNION ALL for each part"
        )
        fix = "ask several questions, or write conditions on whole texts as s IN (…)"
        raise InvalidArgument("question", expected, "more", fix)


def _text_operations(query: Query) -> int:
    """Return how many operations on texts one part of a question does for a row."""
    rows, count = (1, 0) if query.source is None else _of_source(query.source)
    return count + rows * _operations(query)


def _of_source(source: Source) -> tuple[int, int]:
    """Return how many rows a relation makes of one row, joins aside, and how many operations on texts that takes."""
    if isinstance(source, PrivateRows):
        return 1, 0
    inside = (
        source.sources
        if isinstance(source, UnionAll)
        else (source.left, source.right)
        if isinstance(source, PersonJoin)
        else (source.source,)
    )
    parts = [_of_source(item) for item in inside]
    rows = sum(rows for rows, _ in parts)
    return rows, sum(count for _, count in parts) + rows * _operations(source)


def _operations(node: Query | Source) -> int:
    """Return the number of operations on texts in the expressions of one node, without nested relations."""
    count = 0
    pending = [(item, 1) for item in expressions_in(node)]
    while pending and count <= MAX_TEXT_OPERATIONS:
        item, times = pending.pop()
        if isinstance(item, Call):
            count += times * (item.op in _NAMES)
            pending += [(argument, times * _WRITTEN.get(item.op, 1)) for argument in item.args]
    return count


def expressions_in(value: object) -> Iterator[Expression]:
    """Yield the expressions in the fields of a node, without those of relations inside it."""
    if isinstance(value, (Call, Column, Literal)):
        yield value
        return
    inside: object = ()
    if isinstance(value, Mapping):
        inside = value.values()
    elif isinstance(value, tuple):
        inside = value
    elif is_dataclass(value):
        inside = [getattr(value, item.name) for item in fields(value) if item.name not in _OTHER_FIELDS]
    for item in inside:  # type: ignore[attr-defined]
        yield from expressions_in(item)
