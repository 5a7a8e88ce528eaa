"""Private relations: what is known of their columns, and of how many rows a person has, before any row is read.

A private relation is a table each of whose rows has a person and depends on the rows of that person alone, in any
private table of the card, and on public tables. The card's own table is one. Every node of
:data:`~dither.tables.query.tree.Source` makes one of others: it filters, computes, joins, numbers and aggregates rows
of the same person. So if one person's rows are removed, the relation loses the rows of that person, and no other row
changes.

What is asked of a relation is asked as of a table whose card says what follows from the card of the base table
(:func:`relation_card`): the types of the columns, and their bounds and keys. A relation with at most one row for each
person is a table in which every row is a person of its own.

*Bounds* of aggregates of a person's rows. An extreme, a mean, and a value of another row have the bounds of the column.
Counts, ranks and sums have none: the limits of a card (``max_groups``, ``max_rows``) say how much of a person counts in
a release, and nothing of how many rows a person has. An aggregate of such a column has its bounds stated by the
question, or chosen privately.

*Arithmetic* needs no bounds of them. What an engine computes lies within a range that no data exceed
(:class:`ComputedColumn`): a count of more than 2^31 rows is 2^31, and a sum is held within what doubles hold exactly.

*Whole numbers* (:func:`is_whole`). FLOOR, CEIL, ROUND and TRUNC of a number give whole numbers here, which ``//`` and
``%`` take; in SQL they are doubles. For an answer it is SQL's type that counts: ``SUM(FLOOR(x)) // 2`` is not cut off
there.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard, Type
from dither.tables.card.values import EXACT_INTEGERS, clip, closest
from dither.tables.query.evaluate import Types, typed
from dither.tables.query.operations.base import Range
from dither.tables.query.tree import (
    Aggregate,
    Call,
    CappedRows,
    Column,
    Expression,
    Join,
    Literal,
    PerPerson,
    PersonAggregate,
    PersonJoin,
    PrivateRows,
    Projection,
    PublicMembership,
    Query,
    Source,
    UnionAll,
    Windowed,
    WindowFunction,
    check_size,
    conjuncts,
    sources,
)
from dither.tables.query.tree import (
    columns as expression_columns,
)

Describe = Callable[[Expression, Card, Expression | None, tuple[Join, ...]], ColumnCard]
"""What is public about an expression on the rows of a table that meet a condition, with public tables joined to it."""


MAX_DEGREE = 3
"""How many tables may be combined by person: with r rows in each, a person may have r^3 rows."""
MAX_COPIES = 256
"""How often one row of a person may be read by UNION ALL, and by joins of its result."""
MAX_COUNT = 1 << 31
"""The largest count of a person's rows: one that is larger counts as this."""
LARGEST_STEPS = float(1 << 62)
"""How many steps of a value without bounds may be added as a BIGINT."""
PART_BITS = 27
"""How many bits each of the three whole numbers has as which a double is added up."""
MOST_VALUES = 1 << 25
"""How many of them, or of other whole numbers of 26 bits, are added up: of more there is no sum."""


@dataclass(frozen=True)
class ComputedColumn(ColumnCard):
    """A column that a relation computes. Every value is NULL or lies within ``extent``, whatever the data are.

    A column with an extent and without bounds is *open*: arithmetic with it is exact, and bounds of its aggregates are
    for the question to state, or to be chosen privately. Whole numbers may be ``double_in_sql``, as FLOOR(x) is.
    """

    extent: Range | None = field(default=None, repr=False)
    double_in_sql: bool = field(default=False, repr=False)


@dataclass(frozen=True)
class PersonKey:
    """Columns of a relation that hold a key of the private ``table``, or refer to it: a path of the card leads to the
    person by the columns ``key`` of that table. ``columns`` are their counterparts, in the same order.

    The steward asserts that a key has one row, and so one person: rows of which these columns are equal are then of one
    person. ``unique`` says that they are different in all rows of the relation.
    """

    table: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    unique: bool = False

    def renamed(self, names: Mapping[str, str]) -> PersonKey | None:
        """Return the same key of a relation with other names for the columns; None where a column is not in it."""
        if not all(name in names for name in self.columns):
            return None
        return replace(self, columns=tuple(names[name] for name in self.columns))


@dataclass(frozen=True)
class RelationSchema:
    """What is public about a private relation.

    ``columns`` contain the person, under the name of the card's unit. ``one_row`` says that each person has at most one
    row. ``people`` are columns that hold the person or NULL, ``numbers`` those that number a person's rows from 1 on,
    and ``keys`` lead to a person.

    Somebody with r rows has at most ``copies * r**degree`` rows in the relation. Both are limited, and so is r where
    rows are combined (:mod:`dither.tables.planning.work`), since what an engine does for one person should not
    be seen in how long it takes.
    """

    columns: Mapping[str, ColumnCard]
    one_row: bool = False
    people: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    degree: int = 1
    copies: int = 1
    keys: frozenset[PersonKey] = frozenset()

    def keeps_one_row(self, where: Expression | None) -> bool:
        """Return whether each person has at most one row that meets a condition: there is only one, or the condition
        keeps the row numbered 1."""
        if self.one_row or where is None:
            return self.one_row
        if isinstance(where, Call) and where.op == "and":
            return any(map(self.keeps_one_row, where.args))
        firsts = [Call("=", (Literal(1),)), Call("<=", (Literal(1),)), Call("<", (Literal(2),))]
        if not isinstance(where, Call) or not where.args or not isinstance(where.args[0], Column):
            return False
        column = where.args[0]
        return column.table is None and column.name in self.numbers and Call(where.op, where.args[1:]) in firsts


@dataclass(frozen=True, kw_only=True)
class RelationCard(Card):
    """What is public about a relation; ``base`` is the card of the tables that it is made of."""

    base: Card


def base_of(card: Card) -> Card:
    """Return the card of the private tables that a relation is made of; the card itself where it describes a table."""
    return card.base if isinstance(card, RelationCard) else card


def describe_type(
    expression: Expression, card: Card, _where: Expression | None, _joins: tuple[Join, ...]
) -> ColumnCard:
    """Return what is public about an expression without compiling it: the card's entry for a column, otherwise the
    type alone."""
    if isinstance(expression, Column):
        known = card.columns if expression.table is None else card.public[expression.table].columns
        return known[expression.name]
    kind = typed(expression, lambda column: type_of(card, column))[1]
    assert kind is not None
    return ColumnCard(kind)


def relation_card(
    card: Card, source: Source | None, describe: Describe = describe_type, where: Expression | None = None
) -> Card:
    """Return the card for planning a question about a relation: its columns, and no unit where ``where`` leaves each
    person at most one row. For None, the card's own table, it is the card itself."""
    if source is None:
        return card
    if isinstance(source, PrivateRows) and card.counts_rows_without_unit:
        fix = f"ask about {source.table or card.name} in a question of its own"
        got = "a question about several tables, one of them as it is"
        raise InvalidArgument("rows_without_unit", "one table where rows without a person count", got, fix)
    schema = relation_schema(card, source, describe)
    stated = {item.name: getattr(card, item.name) for item in fields(card)}
    stated |= {"columns": schema.columns, "unit": None if schema.keeps_one_row(where) else person_of(card)}
    return RelationCard(**stated, base=card)


def types_of(rows: Rows, card: Card) -> Types:
    """Return the function that looks up the type of a column of these rows."""
    known = relation_card(card, rows.source)
    return lambda column: type_of(known, column)


def person_of(card: Card) -> str:
    """Return the name of the person's column in every relation of a card; refuse a card without a unit."""
    if card.unit is None:
        fix = "ask of the table itself; state unit in the card if people have several rows"
        expected = "a card that names the column of the person, for tables per person and joins on the person"
        raise InvalidArgument("unit", expected, "none: every row is a person", fix)
    return card.unit


def private_columns(card: Card, table: str | None) -> tuple[Mapping[str, ColumnCard], str]:
    """Return the columns of a private table, the card's own for None, and the name of the one that holds the person."""
    if table is None:
        return card.columns, person_of(card)
    unit = card.tables[table].unit
    if unit is None or card.tables[table].columns[unit].type != card.columns[person_of(card)].type:
        expected = f"one type of the column of the person in {card.name} and {table}"
        raise InvalidArgument("unit", expected, "different ones", "state the same type for both in the card")
    return card.tables[table].columns, unit


def own_name(card: Card, name: str) -> str:
    """Return the name of a private table's column in its relation: with the prefix "own." where the person's column
    has that name."""
    return f"own.{name}" if name.casefold() == person_of(card).casefold() else name


def relation_schema(card: Card, source: Source, describe: Describe = describe_type) -> RelationSchema:
    """Return what is public about the relation ``source``: its columns, and how many rows a person may have in it.

    ``describe`` returns what is public about an expression's values, given the card, the condition and the joins of its
    rows.
    """
    if isinstance(source, PrivateRows):
        columns, unit = private_columns(card, source.table)
        known = {own_name(card, name): column for name, column in columns.items() if name != unit}
        return RelationSchema(
            {person_of(card): ColumnCard(columns[unit].type), **known}, keys=_keys_of_table(card, source.table)
        )
    if isinstance(source, PersonJoin):
        return _join_schema(card, source, describe)
    if isinstance(source, UnionAll):
        return _union_schema(card, source, describe)
    inner = relation_schema(card, source.source, describe)
    if isinstance(source, (PublicMembership, CappedRows)):
        return inner
    inside = replace(card, columns=inner.columns)
    person = {person_of(card): inner.columns[person_of(card)]}
    if isinstance(source, Windowed):
        added = {
            name: _window_card(item, _describe_argument(item.value, inside, None, (), describe))
            for name, item in source.windows.items()
        }
        numbers = {name for name, item in source.windows.items() if item.kind == "row_number" and not item.partition}
        return replace(inner, columns={**inner.columns, **added}, numbers=inner.numbers | numbers)
    where, joins = source.where, source.joins
    if isinstance(source, Projection):
        shown = {name: describe(value, inside, where, joins) for name, value in source.columns.items()}
        people = {name for name, value in source.columns.items() if _is_person(value, inner.people, person_of(card))}
        numbers = {
            name
            for name, value in source.columns.items()
            if isinstance(value, Column) and value.table is None and value.name in inner.numbers
        }
        one_row = inner.keeps_one_row(where)
        size = (0, 1) if one_row else (inner.degree, inner.copies)
        keys = _renamed_keys(inner.keys, source.columns, person)
        return RelationSchema({**person, **shown}, one_row, frozenset(people), frozenset(numbers), *size, keys)
    grouped = {name: describe(value, inside, where, joins) for name, value in source.groups.items()}
    people = {name for name, value in source.groups.items() if _is_person(value, inner.people, person_of(card))}
    counted = {
        name: _person_aggregate_card(item, _describe_argument(item.value, inside, where, joins, describe))
        for name, item in source.aggregates.items()
    }
    one_row = not source.groups or inner.keeps_one_row(where)
    size = (0, 1) if one_row else (inner.degree, inner.copies)
    keys = frozenset(
        replace(key, unique=len(key.columns) == len(source.groups))
        for key in _renamed_keys(inner.keys, source.groups, person)
    )
    return RelationSchema({**person, **grouped, **counted}, one_row, frozenset(people), frozenset(), *size, keys)


def _keys_of_table(card: Card, table: str | None) -> frozenset[PersonKey]:
    """Return the columns of a private table that lead to a person by a path of the card: by its own path, and by those
    of tables that refer to it."""
    name, unit, result = table or card.name, private_columns(card, table)[1], set()

    def inside(columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return columns of the table by their names in its relation."""
        return tuple(person_of(card) if column == unit else own_name(card, column) for column in columns)

    for other, item in card.private_tables.items():
        if item.path is None:
            continue
        pairs = sorted(item.path.keys, key=lambda pair: pair[1])
        key = tuple(referred for _, referred in pairs)
        if other == name:
            result.add(PersonKey(item.path.table, key, inside(tuple(column for column, _ in pairs))))
        if item.path.table == name:
            result.add(PersonKey(name, key, inside(key), unique=True))
    return frozenset(result)


def _renamed_keys(
    keys: frozenset[PersonKey], shown: Mapping[str, Expression], person: Collection[str]
) -> frozenset[PersonKey]:
    """Return the keys whose columns are among the ``shown`` ones, by their new names, or the person."""
    names = {value.name: name for name, value in shown.items() if isinstance(value, Column) and value.table is None}
    names |= {name: name for name in person}
    return frozenset(renamed for key in keys if (renamed := key.renamed(names)) is not None)


def same_keys(left: RelationSchema, right: RelationSchema, equal: Collection[tuple[str, str]]) -> list[PersonKey]:
    """Return the keys of the right relation that equal one of the left relation where all these pairs of columns, of
    the left and of the right one, are equal."""
    return [
        theirs
        for own in left.keys
        for theirs in right.keys
        if (own.table, own.key) == (theirs.table, theirs.key)
        and all(pair in equal for pair in zip(own.columns, theirs.columns, strict=True))
    ]


def single_partners(source: PersonJoin, left: RelationSchema, right: RelationSchema, person: str) -> tuple[bool, bool]:
    """Return whether a row of the left relation, and one of the right relation, has at most one partner in a join, for
    the reason that a person has one row, or that the rows have one key as the card says."""
    new = {old: name for name, old in source.names.items()}
    equal = {frozenset(item.args) for item in conjuncts(source.on) if isinstance(item, Call) and item.op == "="}
    same = {
        (one, other)
        for one in left.columns
        for other in right.columns
        if frozenset((Column(one), Column(new.get(other, person)))) in equal
    }

    def is_single(own: RelationSchema, other: RelationSchema, pairs: Collection[tuple[str, str]]) -> bool:
        """Return whether a row of a relation has at most one partner in the other one."""
        keys = [key for key in other.keys if key.unique and key.columns == (person,)]
        return other.one_row or bool(keys) or any(key.unique for key in same_keys(own, other, pairs))

    return is_single(left, right, same), is_single(right, left, {(other, one) for one, other in same})


def extent_of(column: ColumnCard) -> Range | None:
    """Return the range of an open column, which has no stated bounds; None for a column with bounds or of a private
    table."""
    return column.extent if isinstance(column, ComputedColumn) and column.bounds is None else None


def is_double_in_sql(column: ColumnCard) -> bool:
    """Return whether engines compute a column of whole numbers as doubles, as they do FLOOR(x)."""
    return isinstance(column, ComputedColumn) and column.double_in_sql


def with_null(column: ColumnCard) -> ColumnCard:
    """Return the card of a column after an outer join, which adds NULL to its public keys."""
    if column.keys is None or None in column.keys:
        return column
    return replace(column, keys=(*column.keys, None))


def shown_expressions(query: Query, read: Collection[str] | None = None) -> list[Expression]:
    """Return the expressions that define columns or groups of the relation that a question is asked about; with
    ``read``, of the columns of these names alone."""
    result: list[Expression] = []
    for item in () if query.source is None else sources(query.source):
        if isinstance(item, (Projection, PerPerson)):
            shown = item.columns if isinstance(item, Projection) else item.groups
            result += [value for name, value in shown.items() if read is None or name in read]
    return result


def names_read(query: Query) -> set[str]:
    """Return the names of all private columns that a question reads, of any of its relations, apart from those that a
    relation only hands on."""
    groups = (group.value for group in (*query.groups, *query.rolled_up))
    asked = [query.where, *groups, *(own for join in query.joins for own, _ in join.pairs)]
    asked += [value for item in query.aggregates.values() for value in (item.value, item.other)]
    for item in () if query.source is None else sources(query.source):
        if isinstance(item, (Projection, PerPerson)):
            shown = item.columns if isinstance(item, Projection) else item.groups
            asked += [item.where, *(own for join in item.joins for own, _ in join.pairs)]
            asked += [value for name, value in shown.items() if value != Column(name)]
        if isinstance(item, PerPerson):
            asked += [aggregate.value for aggregate in item.aggregates.values()]
        elif isinstance(item, Windowed):
            asked += [
                value
                for window in item.windows.values()
                for value in (window.value, *window.partition, *(key.value for key in window.order))
            ]
        elif isinstance(item, (PersonJoin, PublicMembership)):
            asked.append(item.on if isinstance(item, PersonJoin) else item.value)
    read = {column.name for column in expression_columns(*asked) if column.table is None}
    for item in () if query.source is None else sources(query.source):
        if isinstance(item, PersonJoin):
            read |= {old for name, old in item.names.items() if name in read}
    return read


def describe_relation(source: Source, card: Card) -> str:
    """Return a short description of a relation for plans, such as "visits joined with drugs on patient"."""
    if isinstance(source, PrivateRows):
        return source.table or card.name
    if isinstance(source, PersonJoin):
        left, right = describe_relation(source.left, card), describe_relation(source.right, card)
        if source.kind in ("semi", "anti"):
            return f"{left} of people who are {'not ' if source.kind == 'anti' else ''}in {right}"
        return f"{left} joined with {right} on {person_of(card)}"
    if isinstance(source, UnionAll):
        return " and ".join(describe_relation(item, card) for item in source.sources)
    inner = describe_relation(source.source, card)
    if isinstance(source, PerPerson):
        groups = "".join(f" and {name}" for name in source.groups)
        return f"a row for each {person_of(card)}{groups}, of {inner}"
    return f"{inner} with windows by {person_of(card)}" if isinstance(source, Windowed) else inner


def _describe_argument(
    value: Expression | None, card: Card, where: Expression | None, joins: tuple[Join, ...], describe: Describe
) -> ColumnCard:
    """Return what is public about the argument of an aggregate or window function; COUNT(*), whose argument is None,
    counts integers."""
    return ColumnCard("integer") if value is None else describe(value, card, where, joins)


def _is_person(value: Expression, people: frozenset[str], person: str) -> bool:
    """Return whether an expression is the person's column or one of ``people``, which hold the person or NULL."""
    return isinstance(value, Column) and value.table is None and (value.name in people or value.name == person)


def _join_schema(card: Card, source: PersonJoin, describe: Describe) -> RelationSchema:
    """Return what is public about a join on the person. A semi or anti join has the left side's columns alone.

    A person's rows of both sides may all be combined, so that the degrees of both sides are added and the copies
    multiplied.
    """
    left, right = (relation_schema(card, item, describe) for item in (source.left, source.right))
    single = single_partners(source, left, right, person_of(card))
    if source.kind in ("semi", "anti"):
        if source.on is not None and not any(single):  # an engine compares each row of a person with each other one
            _check_combinations(left.degree + right.degree, left.copies * right.copies)
        return left
    person = person_of(card)
    columns = dict(left.columns)
    if source.kind in ("right", "full"):
        columns |= {name: with_null(column) for name, column in columns.items() if name != person}
    nullable = source.kind in ("left", "full")
    for name, old in source.names.items():
        columns[name] = with_null(right.columns[old]) if nullable else right.columns[old]
    people = {name for name, old in source.names.items() if old in right.people} | left.people
    for side in (source.left_person, source.right_person):
        if side is not None:
            columns[side] = ColumnCard(columns[person].type)
            people |= {side}
    # in a full join the rows of a person that do not match each other are two
    one_row = left.one_row and right.one_row and (source.kind != "full" or source.on is None)
    new = {old: name for name, old in source.names.items()} | {person: person}
    keys = {replace(key, unique=key.unique and single[0]) for key in left.keys}
    keys |= {
        replace(renamed, unique=key.unique and single[1])
        for key in right.keys
        if (renamed := key.renamed(new)) is not None
    }
    if one_row:
        size = (0, 1)
    elif any(single):
        size = _check_combinations(max(left.degree, right.degree), left.copies + right.copies)
    else:
        size = _check_combinations(left.degree + right.degree, left.copies * right.copies)
    return RelationSchema(columns, one_row, frozenset(people), frozenset(), *size, frozenset(keys))


def _check_combinations(degree: int, copies: int) -> tuple[int, int]:
    """Refuse a relation that combines too many rows of one person (degree) or repeats each too often (copies);
    otherwise return both numbers."""
    if degree > MAX_DEGREE:
        expected = f"rows of a person joined with each other in at most {MAX_DEGREE} tables"
        fix = "aggregate by person before joining, which leaves one row for each"
        raise InvalidArgument("joins", expected, f"{degree} tables", fix)
    if copies > MAX_COPIES:
        expected = f"each row of a person at most {MAX_COPIES} times, by UNION ALL and joins of these"
        raise InvalidArgument("rows", expected, "more", "read the table fewer times")
    return degree, copies


def _union_schema(card: Card, source: UnionAll, describe: Describe) -> RelationSchema:
    """Return what is public about UNION ALL: of each column, what is public about that column of all its parts."""
    schemas = [relation_schema(card, item, describe) for item in source.sources]
    columns = {name: _union_card([schema.columns[name] for schema in schemas]) for name in schemas[0].columns}
    people = frozenset.intersection(*(schema.people for schema in schemas))
    size = _check_combinations(max(item.degree for item in schemas), sum(item.copies for item in schemas))
    keys = frozenset.intersection(*(frozenset(replace(key, unique=False) for key in item.keys) for item in schemas))
    return RelationSchema(columns, False, people, frozenset(), *size, keys)


def _union_card(columns: list[ColumnCard]) -> ColumnCard:
    """Return what is public about a column of UNION ALL: bounds and keys exist only where all parts have them."""
    bounds = [column.bounds for column in columns if column.bounds is not None]
    keys = [column.keys for column in columns if column.keys is not None]
    periods = [column.period for column in columns if column.period is not None]
    extents = [item.extent for item in columns if isinstance(item, ComputedColumn) and item.extent is not None]
    count = len(columns)
    return ComputedColumn(
        columns[0].type,
        (min(low for low, _ in bounds), max(high for _, high in bounds)) if len(bounds) == count else None,
        tuple(dict.fromkeys(key for item in keys for key in item)) if len(keys) == count else None,
        (min(low for low, _ in periods), max(high for _, high in periods)) if len(periods) == count else None,
        extent=functools.reduce(operator.or_, extents) if len(extents) == count else None,
        double_in_sql=any(map(is_double_in_sql, columns)),
    )


def _person_aggregate_card(aggregate: PersonAggregate, value: ColumnCard) -> ColumnCard:
    """Return what is public about an aggregate of one person's rows, given what is public about its argument."""
    kind = aggregate.kind
    if kind in ("count", "count_value", "count_distinct"):
        return _count_card(1 if kind == "count" else 0)
    if kind in ("any", "every"):
        return ColumnCard("boolean")
    if kind in ("min", "max"):
        return value
    return _mean_card(value) if kind == "mean" else _sum_card(value)


def _window_card(window: WindowFunction, value: ColumnCard) -> ColumnCard:
    """Return what is public about a window function over one person's rows, given what is public about its argument."""
    kind = window.kind
    if kind in ("row_number", "rank", "dense_rank", "count", "count_value"):
        return _count_card(0 if kind == "count_value" else 1)
    if kind in ("lag", "lead"):
        return with_null(value)
    if kind == "mean":
        return _mean_card(value)
    return _sum_card(value) if kind == "sum" else value


def _count_card(least: int) -> ColumnCard:
    """Return what is public about a count of a person's rows: it lies between ``least`` and :data:`MAX_COUNT`."""
    return ComputedColumn("integer", extent=Range.whole(least, MAX_COUNT))


def _mean_card(value: ColumnCard) -> ColumnCard:
    """Return what is public about a mean: it lies within the values' range. Means of multiples of q that are not 0
    are at least q / 2^63 in size."""
    known = extent_of(value)
    if known is None:
        return ColumnCard("number", value.bounds)
    cut = known.size * 2.0**-52  # more than what is cut off from values that are added
    return ComputedColumn("number", extent=Range.between(known.low - cut, known.high + cut, known.quantum * 2.0**-63))


def _sum_card(value: ColumnCard) -> ColumnCard:
    """Return what is public about a sum of a person's values. Sums of whole numbers are held within 2^53; other sums
    have at most :data:`MOST_VALUES` values, and are multiples of the least digit that these are split into."""
    known = extent_of(value)
    if known is not None:
        low, high, size = known.low, known.high, known.size
        step, most = known.quantum, max(EXACT_INTEGERS * known.quantum, size)
    elif value.bounds is not None:
        (low, high), step = value.bounds, 1.0 if value.type == "integer" else 0.0
        size = max(abs(low), abs(high))
        most = min(MAX_COUNT * size, float(EXACT_INTEGERS)) if step >= 1 and size < EXACT_INTEGERS else MAX_COUNT * size
    elif value.type == "integer":
        low, high, size, step, most = -1.0, 1.0, 1.0, 1.0, float(EXACT_INTEGERS)
    else:
        return ColumnCard(value.type)
    if step == 0 or size > LARGEST_STEPS * step:
        step, most = min(math.ldexp(1.0, -2 * PART_BITS) / sum_scale(size), 1.0), MAX_COUNT * size
    extent = Range.of(-most if low < 0 else 0.0, most if high > 0 else 0.0, step)
    return ComputedColumn(value.type, extent=extent, double_in_sql=is_double_in_sql(value))


def sum_scale(size: float) -> float:
    """Return the power of two that scales numbers of at most this size to below 2^26, before they are split into
    whole numbers."""
    return math.ldexp(1.0, PART_BITS - 1 - math.frexp(size)[1]) if size else 1.0


_OF_ALL_ARGUMENTS = ("+", "-", "*", "neg", "abs", "%", "//", "coalesce", "greatest", "least")

Cards = Callable[[Column], ColumnCard]
"""What is public about a column."""


def is_whole(expression: Expression, cards: Cards) -> bool:
    """Return whether SQL computes an expression as an integer type rather than as a double."""
    checked, kind = typed(expression, lambda column: cards(column).type)
    return kind == "integer" and not _is_double(checked, cards)


def _is_double(expression: Expression, cards: Cards) -> bool:
    """Return whether SQL computes a number as a double or decimal."""
    if isinstance(expression, Column):
        card = cards(expression)
        return card.type == "number" or is_double_in_sql(card)
    if isinstance(expression, Literal):
        return isinstance(expression.value, float)
    op, args = expression.op, expression.args
    if op in ("floor", "ceil"):
        return True
    if op in ("round", "trunc", "nullif"):
        return _is_double(args[0], cards)
    if op == "case":
        args = (*args[1:-1:2], args[-1])
    elif op not in _OF_ALL_ARGUMENTS:
        return typed(expression, lambda column: cards(column).type)[1] == "number"
    return any(_is_double(item, cards) for item in args)


# -- names ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Relation:
    """A name for some rows, and what each of their columns is; ``merged``, by USING, is found by its full name only.

    ``reached`` is the name of the person where a path leads to them: no column of the source, so that it is found only
    where no column has the name, and is not part of ``*``.
    """

    name: str
    columns: Mapping[str, Expression]
    merged: frozenset[str] = frozenset()
    reached: str | None = None

    @property
    def stated(self) -> Mapping[str, Expression]:
        """The columns that ``*`` stands for."""
        return {name: value for name, value in self.columns.items() if name != self.reached}


_STRICT = (
    "+", "-", "*", "/", "//", "%", "neg", "abs", "round", "floor", "ceil", "trunc", "cast", "and", "=", "<>", "<",
    "<=", ">", ">=", "in", "like", "date_trunc", "date_part", "date_diff", "lower", "upper", "length",
)  # fmt: skip
"""Operations that are NULL, or not true, where one of their arguments is NULL."""


@dataclass(frozen=True)
class Rows:
    """The rows a question is about: their columns, which of them are kept, and what is joined to them. ``source`` is
    the private relation that they are of, on whose columns everything else is; None is the card's own table.

    ``outer`` are the names of public tables that an outer join keeps all rows of. Here these rows are not kept: what is
    asked is the same without them, since every aggregate is NULL there (:meth:`is_null_without`), and groups of public
    columns are shown whether they have rows or not.
    """

    relations: tuple[Relation, ...]
    where: Expression | None = None
    joins: tuple[Join, ...] = ()
    source: Source | None = None
    outer: frozenset[str] = frozenset()

    def is_null_without(self, value: Expression) -> bool:
        """Return whether an expression is NULL, or not true, in a row of the ``outer`` tables without a partner."""
        if isinstance(value, Column):
            return all(value not in item.columns.values() for item in self.relations if item.name in self.outer)
        if isinstance(value, Literal):
            return value.value is None
        if value.op == "case":
            arms = zip(value.args[0:-1:2], value.args[1::2], strict=False)
            ends = all(self.is_null_without(condition) or self.is_null_without(arm) for condition, arm in arms)
            return ends and self.is_null_without(value.args[-1])
        nulls = [self.is_null_without(item) for item in value.args]
        return all(nulls) if value.op == "or" else value.op in _STRICT and any(nulls)

    def find(self, column: Column) -> Expression:
        """Return the expression that a column name stands for. Within one table an exact match goes before one that
        differs in case; an unknown name is refused."""
        relation, name = self._located(column)
        return relation.columns[name]

    def spelling_of(self, column: Column) -> str:
        """Return a column's name as the card, or the query that made it, spells it."""
        return self._located(column)[1]

    def has_table(self, name: str) -> bool:
        """Return whether a table among the rows has this name or alias."""
        return any(item.name.casefold() == name.casefold() for item in self.relations)

    def lookup(self, column: Column, reached: bool = True) -> tuple[Relation, str] | None:
        """Return the relation and the spelled name of a column; None where no column has the name. Refuse a name
        that stands for several different columns. Without ``reached`` a person to whom a path leads is no column."""
        stated = self._matches(column, lambda item: item.stated)
        return stated if stated is not None or not reached else self._matches(column, lambda item: item.columns)

    def _matches(
        self, column: Column, listed: Callable[[Relation], Mapping[str, Expression]]
    ) -> tuple[Relation, str] | None:
        """Return the relation and the spelled name of a column among those that are ``listed`` of each relation."""
        matches: list[tuple[Relation, str]] = []
        for item in self.relations:
            if column.table is not None and item.name.casefold() != column.table.casefold():
                continue
            names = [name for name in listed(item) if column.table is not None or name not in item.merged]
            alike = [name for name in names if name.casefold() == column.name.casefold()]
            matches += [(item, name) for name in ([column.name] if column.name in alike else alike)]
        # the person of both sides of a join is one expression
        if len({relation.columns[name] for relation, name in matches}) > 1:
            raise ambiguous(column, matches[0])
        return matches[0] if matches else None

    def _located(self, column: Column) -> tuple[Relation, str]:
        """Return the relation and the spelled name of a column; refuse an unknown name with the nearest one."""
        match = self.lookup(column)
        if match is not None:
            return match
        if column.table is not None and not self.has_table(column.table):
            fix = closest(column.table, [item.name for item in self.relations])
            raise InvalidArgument("table", "a table of the question", repr(clip(column.table)), fix)
        table = None if column.table is None else column.table.casefold()
        names = [name for item in self.relations if table in (None, item.name.casefold()) for name in item.columns]
        raise InvalidArgument("column", "a column of the table", repr(clip(column.name)), closest(column.name, names))


def ambiguous(column: Column, match: tuple[Relation, str]) -> InvalidArgument:
    """Return the error for a name that several columns have; ``match`` is one of them."""
    relation, name = match
    fix = f"write {relation.name}.{name}, in the spelling of the card"
    return InvalidArgument("column", "one meaning", f"several of {clip(column.name)!r}", fix)


def private_relation(card: Card, name: str | None = None) -> Relation:
    """Return the card's own table as a relation, under its name or an alias."""
    reached = None if card.path is None else card.unit
    return Relation(name or card.name, {item: Column(item) for item in card.columns}, reached=reached)


def public_relation(card: Card, table: str, name: str | None = None) -> tuple[str, Relation]:
    """Return a public table of the card: its name in the card's spelling, and the relation under that name or an
    alias."""
    key = spelling(table, card.public)
    if key is None:
        if spelling(table, [card.name]):
            fix = "ask in SQL: JOIN … ON a.person = b.person joins rows of the same person"
            raise InvalidArgument("JOIN", "a public table of the card", "the table itself", fix)
        fix = closest(table, card.public) if card.public else "state it in the card under public"
        raise InvalidArgument("JOIN", "a public table of the card", repr(clip(table)), fix)
    return key, Relation(name or key, {item: Column(item, key) for item in card.public[key].columns})


def spelling(name: str, names: Mapping[str, object] | list[str]) -> str | None:
    """Return a name in the card's spelling: an exact match, or the only one that differs in case; None otherwise."""
    if name in names:
        return name
    matches = [item for item in names if item.casefold() == name.casefold()]
    return matches[0] if len(matches) == 1 else None


def unique(name: str, taken: Collection[str], normalize: Callable[[str], str] = str.casefold) -> str:
    """Return a name that is not among ``taken``, with a number behind it where needed; ``taken`` holds names that
    ``normalize`` was applied to."""
    number, result = 1, name
    while normalize(result) in taken:
        number += 1
        result = f"{name}_{number}"
    return result


def card_of(card: Card, column: Column) -> ColumnCard:
    """Return what is public about a resolved column of the table or of a public table."""
    return card.columns[column.name] if column.table is None else card.public[column.table].columns[column.name]


def type_of(card: Card, column: Column) -> Type:
    """Return the type of a resolved column."""
    return card_of(card, column).type


def resolve_columns(expression: Expression, rows: Rows) -> Expression:
    """Return an expression with every column name replaced by what it stands for in these rows."""
    check_size(expression)

    def resolve(item: Expression) -> Expression:
        """Return one part of the expression with its columns resolved."""
        if isinstance(item, Column):
            return rows.find(item)
        return Call(item.op, tuple(map(resolve, item.args))) if isinstance(item, Call) else item

    return resolve(expression)


def answer_type(aggregate: Aggregate, card: Card) -> Type:
    """Return the type of the column that an aggregate has in the answer."""
    if aggregate.kind in ("count", "count_value", "count_distinct", "people"):
        return "integer"
    if aggregate.kind == "mode" and aggregate.value is not None:
        return typed(aggregate.value, lambda column: type_of(card, column))[1] or "number"
    return "number"
