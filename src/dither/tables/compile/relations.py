"""Private relations as SQL: every row carries its person, and depends on the rows of that person alone.

*Statement.* Remove all rows of one person from the private tables. Then the relation loses the rows of that person, and
every other row stays the same, bit for bit, on every engine.

*Why.* By induction over the nodes of :data:`~dither.tables.query.tree.Source`.

* Rows of a private table are those that have a person; others are excluded.
* A projection computes from one row and from public tables.
* Which rows of a person are kept where they are limited depends on the rows of that person alone: the first in the
  order of all columns that are read of them, so that only rows that are the same in these are interchangeable.
* An aggregate of a person, a window function and a join all group, partition or join by the person first.
* Nothing depends on the order in which an engine meets rows. Sums are of whole numbers. Where these are small, sums
  below 2^53 are exact as doubles in any order, and a person with so many values that a sum could be larger has none
  (more than 2^25 of them). Other whole numbers of 64 bits are added in a wider type, which cannot overflow, and the sum
  is held within 2^53 before it becomes a double. A double that is not whole is added as three whole numbers of 27 bits
  (:func:`_split_in_three`), so that what is added is the value itself and can be compared with it: the mean of one
  value is that value. A mean is a quotient of exact doubles. Extremes and counts of different values are the same in
  any order: NaN is NULL and -0.0 is 0.0, and texts compare byte by byte. Where a window function picks a row, rows that
  the question leaves in any order go by all columns of the relation, so that only rows that are the same in all of them
  are interchangeable; several functions with different orders go by one numbering of the rows, so that they pick the
  same one of these.
* No value makes an engine fail, so other people's rows are answered whatever a person's rows are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.card.values import EXACT_INTEGERS
from dither.tables.compile import expressions
from dither.tables.compile.expressions import Lookup
from dither.tables.query import nodes
from dither.tables.query.nodes import (
    Dialect,
    alias,
    all_of,
    binary,
    call,
    case,
    cast,
    count_rows,
    integer,
    join,
    over,
    placeholder,
    plain_column,
    relation,
    row_number,
    select,
)
from dither.tables.query.operations.base import Range, TypedSql
from dither.tables.query.relations import (
    LARGEST_STEPS,
    MAX_COUNT,
    MOST_VALUES,
    PART_BITS,
    ComputedColumn,
    RelationSchema,
    describe_type,
    is_whole,
    own_name,
    person_of,
    private_columns,
    relation_schema,
    sum_scale,
)
from dither.tables.query.tree import (
    CappedRows,
    Column,
    Expression,
    Join,
    PerPerson,
    PersonAggregate,
    PersonJoin,
    PrivateRows,
    Projection,
    PublicMembership,
    Source,
    UnionAll,
    Windowed,
    WindowFunction,
    show,
)

_SMALL = 1 << 26
"""The largest steps that are added as doubles."""
_LARGEST_SPLIT = 2.0**114
"""How many steps a value without bounds may have, of which those below a 2^80th of the largest value are cut off: sums
of a person's values have fewer."""
_LARGEST_COARSE = 2.0**40
"""How large any value without bounds may be: what is cut off of one is below 2^-40."""
_PICKING = ("row_number", "lag", "lead", "first_value", "last_value")
"""Window functions that pick a row, or number rows: of rows that are alike in the order, one would be any."""


def _picks_a_row(window: WindowFunction) -> bool:
    """Return whether a window function's result depends on the order of rows that are equal in its ORDER BY."""
    return window.kind in _PICKING or window.frame == "rows"


def describe(expression: Expression, card: Card, where: Expression | None, joins: tuple[Join, ...]) -> ColumnCard:
    """Return what is public about an expression on rows: its type, the range of its values, and bounds where they
    follow from stated ones."""
    column = describe_type(expression, card, where, joins)
    if isinstance(expression, Column):
        return column
    find = expressions.lookup_of(card, joins)
    typed = _as_it_is(expression, find)
    if typed.range is None:
        return replace(column, type=typed.type)
    bounds = expressions.public_interval(expression, find, expressions.compile)
    double = typed.type == "integer" and not is_whole(expression, lambda item: find(item)[1])
    return ComputedColumn(typed.type, bounds, extent=typed.range, double_in_sql=double)


def _as_it_is(expression: Expression, find: Lookup) -> TypedSql:
    """Return an expression as SQL, also with the values of its columns beyond their bounds where its own bounds
    follow from these: it is clamped to them when it is summed. Otherwise its range must hold for every value."""
    typed = expressions.compile(expression, find)
    if typed.range is not None and expressions.public_interval(expression, find, expressions.compile) is None:
        return typed
    return expressions.as_it_is(expression, find)


def relation_sql(source: Source, card: Card, tables: Mapping[str, exp.Expr], dialect: Dialect) -> exp.Select:
    """Return a relation as a SELECT: the person, under the name of the card's unit, and the columns by their names.

    Private tables stand in it by their placeholders; ``tables`` has the public ones.
    """
    return _Compiler(card, tables, dialect).query(source)


def inner_lookup(source: Projection | PerPerson | Windowed | PublicMembership | PersonJoin, card: Card) -> Lookup:
    """Return the lookup with which the expressions of a node find columns of the relation inside it."""
    compiler = _Compiler(card, {}, "duckdb")
    if isinstance(source, PersonJoin):
        return compiler.find_both(source)
    joins = source.joins if isinstance(source, (Projection, PerPerson)) else ()
    return compiler.find(source.source, joins)


@dataclass(frozen=True)
class _Summands:
    """How values are summed exactly: as steps of 1 / scale, which are integers or are ``split`` into integers.

    ``most_values`` is the number of values whose sum stays below 2^53, where doubles are exact; None where steps are
    BIGINTs, of which any number can be added.
    """

    steps: exp.Expr
    scale: float
    whole: bool
    most_values: int | None = None
    split: bool = False


@dataclass(frozen=True)
class _AggregateSql:
    """An aggregate as three queries compute it: the value of a row (None where rows are counted), the aggregates of
    these values, and the result that is computed from the aggregates."""

    value: exp.Expr | None
    aggregates: list[exp.Expr]
    result: exp.Expr


class _Compiler:
    """Writes the nodes of one relation."""

    def __init__(self, card: Card, tables: Mapping[str, exp.Expr], dialect: Dialect) -> None:
        """Keep the card, the public tables of the engine by name, and the SQL dialect."""
        self.card, self.tables, self.dialect = card, tables, dialect
        self.person = person_of(card)

    def query(self, source: Source) -> exp.Select:
        """Return a node of the relation as a SELECT."""
        if isinstance(source, PrivateRows):
            return self._private_rows(source)
        if isinstance(source, Projection):
            return self._projection(source)
        if isinstance(source, PerPerson):
            return self._per_person(source)
        if isinstance(source, Windowed):
            return self._windowed(source)
        if isinstance(source, PersonJoin):
            return self._existence(source) if source.kind in ("semi", "anti") else self._person_join(source)
        if isinstance(source, PublicMembership):
            return self._membership(source)
        return self._capped(source) if isinstance(source, CappedRows) else self._union(source)

    def _schema(self, source: Source) -> RelationSchema:
        """Return what is public about a relation and its columns."""
        return relation_schema(self.card, source, describe)

    def find(self, source: Source, joins: Sequence[Join] = ()) -> Lookup:
        """Return the lookup of a relation's columns, and of public tables joined to it under the aliases p0, p1, …."""
        inside = replace(self.card, columns=self._schema(source).columns)
        return expressions.lookup(inside, {item.table: f"p{i}" for i, item in enumerate(joins)})

    def _private_rows(self, source: PrivateRows) -> exp.Select:
        """Return the rows of a private table that have a person, with that person under the unit's name."""
        columns, unit = private_columns(self.card, source.table)
        who = nodes.column(unit, "t")
        shown = [_named(who, self.person)]
        shown += [_named(nodes.column(name, "t"), own_name(self.card, name)) for name in columns if name != unit]
        rows = relation(exp.to_table(placeholder(source.table or "")), "t")
        return select(shown, rows, where=[nodes.is_not_null(who)])

    def _rows(self, source: Projection | PerPerson, columns: Sequence[exp.Expr]) -> exp.Select:
        """Return these columns of the rows that a node reads: joined with public tables and filtered by its
        condition."""
        find = self.find(source.source, source.joins)
        joins = [
            public_join(item, self.tables[item.table], self.card.public[item.table], f"p{i}", find)
            for i, item in enumerate(source.joins)
        ]
        where = [] if source.where is None else [expressions.condition(source.where, find)]
        return select(list(columns), relation(self.query(source.source), "t"), joins=joins, where=where)

    def _projection(self, source: Projection) -> exp.Select:
        """Return the person and the computed columns of the rows that a projection keeps."""
        find = self.find(source.source, source.joins)
        shown = [_named(nodes.column(self.person, "t"), self.person)]
        shown += [_named(_value(value, find).node, name) for name, value in source.columns.items()]
        nodes.check_length(*shown)
        return self._rows(source, shown)

    # -- aggregates of a person ---------------------------------------------------------------------------------------

    def _per_person(self, source: PerPerson) -> exp.Select:
        """Return a table per person as three nested queries: values of rows, their aggregates by person, and the
        results computed from these."""
        find = self.find(source.source, source.joins)
        keys = [self.person, *source.groups]
        columns = [_named(nodes.column(self.person, "t"), self.person)]
        columns += [_named(_value(value, find).node, name) for name, value in source.groups.items()]
        grouped: list[exp.Expr] = [nodes.column(name) for name in keys]
        shown: list[exp.Expr] = [nodes.column(name) for name in keys]
        free = free_prefix([*keys, *source.aggregates])
        for i, (name, aggregate) in enumerate(source.aggregates.items()):
            written = self._aggregate(aggregate, find, f"{free}v{i}", f"{free}a{i}")
            columns += [] if written.value is None else [_named(written.value, f"{free}v{i}")]
            grouped += written.aggregates
            shown.append(_named(written.result, name))
        nodes.check_length(*columns)
        values = relation(self._rows(source, columns), "r")
        people = select(grouped, values, group_by=[nodes.column(name) for name in keys])
        return select(shown, relation(people, "a"))

    def _aggregate(self, aggregate: PersonAggregate, find: Lookup, value_name: str, name: str) -> _AggregateSql:
        """Return an aggregate of a person's rows as SQL, whose columns have names that begin with ``name``."""
        kind, result = aggregate.kind, nodes.column(name)
        if aggregate.value is None:
            return _AggregateSql(None, [_named(count_rows(), name)], _hold_count(result))
        x = nodes.column(value_name)
        if kind in ("sum", "mean"):
            number = _summands(aggregate.value, find)
            return _AggregateSql(number.steps, self._sums(x, number, name), _sum_or_mean(kind, name, number))
        value = _value(aggregate.value, find)
        if kind in ("any", "every"):
            one = case([(value.node, integer(1)), (nodes.not_(value.node), integer(0))], nodes.literal(None))
            extreme = call("MAX" if kind == "any" else "MIN", x)
            return _AggregateSql(one, [_named(extreme, name)], binary("=", result, integer(1)))
        if kind in ("min", "max"):
            return _AggregateSql(value.node, [_named(call(kind.upper(), x), name)], result)
        counted = exp.Distinct(expressions=[x]) if kind == "count_distinct" else x
        return _AggregateSql(value.node, [_named(call("COUNT", counted), name)], _hold_count(result))

    def _sums(
        self,
        x: exp.Expr,
        number: _Summands,
        name: str,
        over: Callable[[exp.Expr], exp.Expr] = lambda function: function,
    ) -> list[exp.Expr]:
        """Return the sums that a sum or mean is computed from, and the number of values. Each sum is of whole
        numbers: doubles or integers, of which Spark adds BIGINTs as DECIMAL, as the other engines widen them
        themselves. ``over`` makes each a window function."""
        wide = number.most_values is None and self.dialect == "spark"
        parts = _split_in_three(x) if number.split else [_as_decimal(x) if wide else x]
        sums = [_named(over(call("SUM", part)), f"{name}_{i}") for i, part in enumerate(parts)]
        return [*sums, _named(over(call("COUNT", x)), f"{name}_n")]

    # -- windows ------------------------------------------------------------------------------------------------------

    def _windowed(self, source: Windowed) -> exp.Select:
        """Return a relation with window functions over the rows of each person. Rows that are equal in a function's
        order are ordered by all columns, so that the result depends on the person's rows alone."""
        find, schema = self.find(source.source), self._schema(source.source)
        # NaN is NULL also where it stands: rows that are alike in the order must be alike in all that can be seen
        kept = [_named(_value(Column(name), find).node, name) for name in schema.columns]
        every = [_ordered(_value(Column(name), find).node) for name in schema.columns if name != self.person]
        inner, ties = self._inner(source.source), every
        free = free_prefix([*schema.columns, *source.windows])
        added: list[exp.Expr] = []
        choosing = {repr((item.partition, item.order)) for item in source.windows.values() if _picks_a_row(item)}
        if len(choosing) > 1:  # several must pick the same one of rows that are alike in all columns
            place = exp.Window(
                this=exp.RowNumber(),
                partition_by=[nodes.column(self.person, "t")],
                order=exp.Order(expressions=every),
                over="OVER",
            )
            added.append(_named(place, f"{free}place"))
            ties = [_ordered(nodes.column(f"{free}place", "t"))]
        numbers = {
            name: _summands(item.value, find)
            for name, item in source.windows.items()
            if item.kind in ("sum", "mean") and item.value is not None
        }
        for i, name in enumerate(source.windows):  # what is added up stands in it several times
            if name in numbers:
                added.append(_named(numbers[name].steps, f"{free}v{i}"))
                numbers[name] = replace(numbers[name], steps=nodes.column(f"{free}v{i}", "t"))
        if added:
            inner = relation(select([*kept, *added], inner), "t")
        windows: list[exp.Expr] = []
        shown: list[exp.Expr] = [nodes.column(name) for name in schema.columns]
        for i, (name, window) in enumerate(source.windows.items()):
            parts, result = self._window(window, find, ties, f"{free}w{i}", numbers.get(name))
            windows += parts
            shown.append(_named(result, name))
        nodes.check_length(*added, *windows)
        return select(shown, relation(select([*kept, *windows], inner), "r"))

    def _inner(self, source: Source) -> exp.Expr:
        """Return a relation as a subquery for FROM, under the alias t."""
        return relation(self.query(source), "t")

    def _window(
        self, window: WindowFunction, find: Lookup, ties: Sequence[exp.Expr], name: str, number: _Summands | None
    ) -> tuple[list[exp.Expr], exp.Expr]:
        """Return the window functions that a column is computed from, and the column itself, an expression of these.

        ``find`` looks up columns, and ``name`` is the column's name and the beginning of its functions' names. ``ties``
        orders rows that are equal in its ORDER BY, and ``number`` is what it adds up, None where it does not add. The
        person is always part of the partition.
        """
        kind, result = window.kind, nodes.column(name)
        partition = [nodes.column(self.person, "t"), *(_value(item, find).node for item in window.partition)]
        order = [_ordered(_value(item.value, find).node, item.descending) for item in window.order]
        if _picks_a_row(window):
            order += ties

        def over(function: exp.Expr, frame: str = "all") -> exp.Expr:
            """Return a function over the person's partition in the window's order and a frame; "none" for functions
            that take no frame."""
            frames: dict[str, exp.Expr] = {} if not order or frame == "none" else {"spec": _FRAMES[frame]()}
            ordered = {"order": exp.Order(expressions=order)} if order else {}
            return exp.Window(this=function, partition_by=partition, over="OVER", **ordered, **frames)

        if kind in ("row_number", "rank", "dense_rank"):
            return [_named(over(call(kind.upper()), "none"), name)], _hold_count(result)
        if window.value is None:
            return [_named(over(count_rows(), window.frame), name)], _hold_count(result)
        if number is not None:
            sums = self._sums(number.steps, number, name, lambda function: over(function, window.frame))
            return sums, _sum_or_mean(kind, name, number)
        value = _value(window.value, find).node
        if kind in ("lag", "lead"):
            return [_named(over(call(kind.upper(), value, integer(window.offset)), "none"), name)], result
        if kind == "count_value":
            return [_named(over(call("COUNT", value), window.frame), name)], _hold_count(result)
        return [_named(over(call(kind.upper(), value), window.frame), name)], result

    def _capped(self, source: CappedRows) -> exp.Select:
        """Return at most ``most`` rows of each person, chosen by a hash of the person and of the row's rank in the
        order of the columns read, whatever their values. DuckDB ranks only the rows of people who have more, since
        it counts much faster than it sorts; the other engines rank all."""
        find, names = self.find(source.source), list(self._schema(source.source).columns)
        columns, person = [nodes.column(name) for name in names], [nodes.column(self.person)]
        order, most = [nodes.column(name) for name in source.seen] or person, integer(source.most)
        free = free_prefix(names)
        rank, place, count = (nodes.column(f"{free}{name}") for name in ("rank", "place", "count"))
        # as for windows, rows that are alike in the order must be alike in all that can be seen
        rows = select([_named(_value(Column(name), find).node, name) for name in names], self._inner(source.source))
        name_of_person = nodes.as_text(person[0], self._schema(source.source).columns[self.person].type, self.dialect)
        place_as_text = nodes.concatenate(exp.Literal.string("/"), nodes.as_text(rank, "integer", self.dialect))
        hashed = nodes.hash_60_bits(nodes.concatenate(name_of_person, place_as_text), self.dialect)

        def chosen(rows: exp.Expr) -> exp.Select:
            """Return the first ``most`` rows of each person by the hash."""
            ranked = select([*columns, _named(row_number(order, person), rank.name)], rows)
            placed = select([*columns, _named(row_number([hashed, rank], person), place.name)], relation(ranked, "s"))
            return select(columns, relation(placed, "r"), where=[binary("<=", place, most)])

        if self.dialect != "duckdb":
            return chosen(relation(rows, "t"))
        counted = select([exp.Star(), _named(over(count_rows(), person), count.name)], relation(rows, "t"))
        known = exp.to_table("counted")
        few = select(columns, known, where=[binary("<=", count, most)])
        many = chosen(relation(select(columns, known, where=[binary(">", count, most)]), "t"))
        both = exp.Union(this=few, expression=many, distinct=False)
        result = select([exp.Star()], both.subquery("t", copy=False))
        return result.with_("counted", as_=counted, materialized=True, copy=False)

    # -- several relations --------------------------------------------------------------------------------------------

    def _person_join(self, source: PersonJoin) -> exp.Select:
        """Return the join of two relations on the person and a further condition."""
        left = self._schema(source.left)
        people = nodes.column(self.person, "l"), nodes.column(self.person, "r")
        person = {"right": people[1], "full": nodes.coalesce(*people)}.get(source.kind, people[0])
        shown = [_named(person, self.person)]
        shown += [_named(nodes.column(name, "l"), name) for name in left.columns if name != self.person]
        shown += [_named(nodes.column(old, "r"), name) for name, old in source.names.items()]
        for name, side in zip((source.left_person, source.right_person), people, strict=True):
            shown += [] if name is None else [_named(side, name)]
        on = [binary("=", *people)]
        if source.on is not None:
            on.append(expressions.condition(source.on, self.find_both(source)))
        sides = relation(self.query(source.left), "l"), relation(self.query(source.right), "r")
        joined = exp.Join(this=sides[1], on=all_of(on), **_SIDES[source.kind])
        return select(shown, sides[0], joins=[joined])

    def _existence(self, source: PersonJoin) -> exp.Select:
        """Return the rows of the left relation for which the right one has (semi join), or does not have (anti
        join), a row of the person."""
        shown = [nodes.column(name, "l") for name in self._schema(source.left).columns]
        where = [binary("=", nodes.column(self.person, "l"), nodes.column(self.person, "r"))]
        if source.on is not None:
            where.append(expressions.condition(source.on, self.find_both(source)))
        partner = select([integer(1)], relation(self.query(source.right), "r"), where=where)
        exists: exp.Expr = exp.Exists(this=partner)
        kept = exists if source.kind == "semi" else nodes.not_(exists)
        return select(shown, relation(self.query(source.left), "l"), where=[kept])

    def find_both(self, source: PersonJoin) -> Lookup:
        """Return the lookup with which a join's condition finds columns of both sides."""
        left, right = self._schema(source.left), self._schema(source.right)
        sides: dict[str, tuple[exp.Expr, ColumnCard]] = {
            name: (nodes.column(name, "l"), column) for name, column in left.columns.items()
        }
        sides |= {name: (nodes.column(old, "r"), right.columns[old]) for name, old in source.names.items()}
        for name, side in ((source.left_person, "l"), (source.right_person, "r")):
            if name is not None:
                sides[name] = nodes.column(self.person, side), left.columns[self.person]
        return lambda column: sides[column.name]

    def _membership(self, source: PublicMembership) -> exp.Select:
        """Return the rows whose value is, or is not, in a column of a public table."""
        columns = self._schema(source.source).columns
        value = _value(source.value, self.find(source.source)).node
        listed = select([nodes.column(source.column, "m")], relation(self.tables[source.table], "m"))
        member: exp.Expr = exp.In(this=nodes.operand(value), query=listed.subquery(copy=False))
        kept = nodes.not_(member) if source.negated else member
        return select([nodes.column(name, "t") for name in columns], self._inner(source.source), where=[kept])

    def _union(self, source: UnionAll) -> exp.Select:
        """Return the rows of several relations by UNION ALL."""
        names = list(self._schema(source).columns)
        parts = [select([nodes.column(name) for name in names], self._inner(item)) for item in source.sources]
        query: exp.Query = parts[0]
        for part in parts[1:]:
            query = exp.Union(this=query, expression=part, distinct=False)
        return select([exp.Star()], query.subquery("t", copy=False))


def public_join(item: Join, table: exp.Expr, known: PublicTable, name: str, find: Lookup) -> exp.Join:
    """Return the join ``item`` with a public table, in which no row has two partners.

    ``table`` is the table in the engine, of which ``known`` is public, and ``name`` its name in the statement. A key of
    doubles is not compared with public integers: several large ones would equal the same double.
    """
    equal = []
    for value, other in item.pairs:
        own, public_type = expressions.key(value, find), find(Column(other, item.table))[1].type
        if (own.type, public_type) == ("number", "integer"):
            fix = f"state {other} as a number in the card"
            raise InvalidArgument("JOIN", "keys of one type", f"{own.type} and {public_type}", fix)
        equal.append(binary("=", own.node, nodes.column(other, name)))
    rows = relation(once(table, list(known.columns), *item.columns), name)
    return join(rows, all_of(equal), "LEFT" if item.left else "")


def _named(node: exp.Expr, name: str) -> exp.Expr:
    """Return a value under a quoted name by AS."""
    return exp.Alias(this=node, alias=exp.to_identifier(name, quoted=True))


def _value(expression: Expression, find: Lookup) -> TypedSql:
    """Return an expression as SQL; adding 0.0 turns -0.0, which equals 0.0 without being identical, into 0.0."""
    result = _as_it_is(expression, find)
    if result.type != "number":
        return result
    return replace(result, node=binary("+", result.node, nodes.double(0.0)))


def _summands(value: Expression, find: Lookup) -> _Summands:
    """Return how the values of one person are summed exactly: clamped to their bounds, or to 2^53 for integers without
    bounds, as integers or as doubles that are split into integers. Refuse numbers without bounds."""
    typed = expressions.compile(value, find)
    number: TypedSql | None = None
    try:
        number = expressions.number(value, find)
    except InvalidArgument:
        if typed.type != "integer":
            fix = "state bounds of its columns in the card"
            raise InvalidArgument(f"SUM or AVG of {show(value)}", "public bounds", "none", fix) from None
    known = None if number is None else number.range
    if number is None or known is None:
        most = nodes.literal(EXACT_INTEGERS)
        least = nodes.literal(-EXACT_INTEGERS)
        arms = [(binary(">", typed.node, most), most), (binary("<", typed.node, least), least)]
        return _Summands(case(arms, typed.node), 1.0, True)
    if expressions.public_interval(value, find) is None:
        return _exact_summands(value, typed, number.node, known)
    if known.quantum >= 1 and known.size < EXACT_INTEGERS:
        whole = typed.type == "integer"
        if known.size > _SMALL:
            return _Summands(cast(number.node, "integer"), 1.0, whole)
        return _Summands(number.node, 1.0, whole, MOST_VALUES)
    return _scaled_for_splitting(number.node, known)


def _exact_summands(value: Expression, typed: TypedSql, x: exp.Expr, known: Range) -> _Summands:
    """Return computed values as whole multiples of the power of two that divides all of them (at most 1), so that sums
    are exact.

    ``x`` is the SQL of the ``value``, whose type is in ``typed`` and whose range is ``known``. Values of more steps
    than a double holds exactly are split into several whole numbers; a range that is larger still is refused.
    """
    step = min(known.quantum, 1.0)
    if known.size <= LARGEST_STEPS * step:
        steps = x if step == 1 else nodes.binary("*", x, nodes.double(1 / step))
        return _Summands(cast(steps, "integer"), 1 / step, step == 1 and typed.type == "integer")
    if known.size > max(_LARGEST_SPLIT * step, _LARGEST_COARSE):  # too little of a usual one would be left
        fix = f"hold it within bounds: LEAST(GREATEST({show(value)}, 0), 100), for example"
        raise InvalidArgument(f"SUM or AVG of {show(value)}", "public bounds", "none", fix)
    return _scaled_for_splitting(x, known)


def _scaled_for_splitting(x: exp.Expr, known: Range) -> _Summands:
    """Return doubles scaled to below 2^26, to be split into whole numbers by :func:`_split_in_three`.

    Values below a quarter of the last digit that it keeps, 2^-54, become 0: they cannot change the sum, and PostgreSQL
    fails on products that underflow. ``known.least`` is the smallest size of a value other than 0.
    """
    scale = sum_scale(known.size)
    negligible = math.ldexp(1.0, -2 * PART_BITS - 2) / scale
    steps = binary("*", x, nodes.double(scale))
    if known.least < negligible:
        near = nodes.double(negligible)
        above, below = binary(">", x, nodes.negate(near)), binary("<", x, near)
        steps = case([(binary("and", above, below), nodes.double(0.0))], steps)
    return _Summands(steps, scale, False, MOST_VALUES, split=True)


def _split_in_three(x: exp.Expr) -> list[exp.Expr]:
    """Return a double x below 2^26 in size as whole numbers h, m, l with x = h + m 2^-27 + l 2^-54 and 0 ≤ m, l ≤
    2^27; exact but for digits below 2^-54: they are cut off, or rounded where x is negative and tiny."""
    result, unit = [], nodes.double(float(1 << PART_BITS))
    for _ in range(3):
        whole = call("FLOOR", x)
        result.append(whole)
        x = binary("*", binary("-", x, whole), unit)
    return result


def _hold_count(x: exp.Expr) -> exp.Expr:
    """Return a count limited to :data:`MAX_COUNT`, which no person reaches."""
    most = integer(MAX_COUNT)
    return case([(binary(">", x, most), most)], x)


def _as_decimal(x: exp.Expr) -> exp.Expr:
    """Return a BIGINT as DECIMAL(19, 0), whose sums cannot overflow."""
    digits = exp.DataType(
        this=exp.DType.DECIMAL,
        expressions=[exp.DataTypeParam(this=integer(19)), exp.DataTypeParam(this=integer(0))],
    )
    return exp.Cast(this=x, to=digits)


def _hold_sum(total: exp.Expr) -> exp.Expr:
    """Return a sum as a BIGINT clamped to ±2^53, where doubles are exact; NULL where there is no value."""
    most = integer(EXACT_INTEGERS)
    least = integer(-EXACT_INTEGERS)
    return cast(case([(binary(">", total, most), most), (binary("<", total, least), least)], total), "integer")


def _sum_or_mean(kind: str, name: str, number: _Summands) -> exp.Expr:
    """Return a sum or mean (``kind``) of values from the sums of their whole steps; NULL if more values were added than
    is exact.

    ``name`` is the beginning of the names of the columns with these sums and with the number of values, and ``number``
    says how the steps are written. A mean is a quotient of exact doubles, and a step is worth a power of two, by which
    division is exact.
    """
    total: exp.Expr = nodes.column(f"{name}_0")
    count = nodes.column(f"{name}_n")
    if number.most_values is None:
        total = _hold_sum(total)
    none = binary(">", count, integer(number.most_values)) if number.most_values is not None else None
    if kind == "sum" and number.whole:
        result: exp.Expr = cast(total, "integer")
    else:
        totals = [total, *(nodes.column(f"{name}_{i}") for i in (1, 2) if number.split)]
        result = _join_digits(
            [cast(item, "number") for item in totals], cast(count, "number") if kind == "mean" else None
        )
        if kind == "mean":
            empty = binary("=", count, integer(0))
            none = empty if none is None else binary("or", empty, none)
        if number.scale != 1.0:
            result = nodes.divide(result, nodes.double(number.scale))
    return result if none is None else case([(none, nodes.literal(None))], result)


def _join_digits(totals: Sequence[exp.Expr], count: exp.Expr | None) -> exp.Expr:
    """Return the sum that was split into h, m and l, or its quotient by a count by long division: each remainder is
    below the count, so with the next digits it stays below 2^53. Each step is exact or rounds once, so the mean of
    equal values is that value."""
    first, *rest = totals
    unit = float(1 << PART_BITS)
    if not rest:
        return first if count is None else nodes.divide(first, count)
    if count is None:
        return binary("+", first, binary("*", _join_digits(rest, None), nodes.double(1 / unit)))
    whole = call("FLOOR", nodes.divide(first, count))
    left = binary("*", binary("-", first, binary("*", whole, count)), nodes.double(unit))
    return binary(
        "+", whole, binary("*", _join_digits([binary("+", left, rest[0]), *rest[1:]], count), nodes.double(1 / unit))
    )


def _ordered(x: exp.Expr, descending: bool = False) -> exp.Expr:
    """Return a key for ORDER BY in a window, NULLs last."""
    return exp.Ordered(this=x, desc=descending, nulls_first=False)


def _frame(kind: str, end: str) -> Callable[[], exp.Expr]:
    """Return the constructor of a window's frame from the first row of the partition: to the last one, or to the
    current one (ROWS) or its peers (RANGE)."""

    def build() -> exp.Expr:
        """Return a new node, since a node may have one parent only."""
        last = {"end": "CURRENT ROW"} if end == "current" else {"end": "UNBOUNDED", "end_side": "FOLLOWING"}
        return exp.WindowSpec(kind=kind, start="UNBOUNDED", start_side="PRECEDING", **last)

    return build


_FRAMES = {"all": _frame("ROWS", "last"), "peers": _frame("RANGE", "current"), "rows": _frame("ROWS", "current")}
_SIDES: dict[str, dict[str, str]] = {
    "inner": {},
    "left": {"side": "LEFT"},
    "right": {"side": "RIGHT"},
    "full": {"side": "FULL"},
}


def free_prefix(names: Iterable[str]) -> str:
    """Return a prefix that no column's name begins with, for the names of intermediate columns; case is ignored, since
    engines differ.

    >>> free_prefix(["day", "who"])
    'dd'
    """
    taken, prefix = [name.casefold() for name in names], "d"
    while any(name.startswith(prefix) for name in taken):
        prefix += "d"
    return prefix


def once(table: exp.Expr, columns: Sequence[str], *key: str) -> exp.Select:
    """Return columns of a public table with at most one row for each value of its key, so that a join with it never
    repeats a row."""
    place = f"{free_prefix(columns)}place"
    number = alias(row_number(list(map(nodes.column, key)), list(map(nodes.column, key))), place)
    numbered = select([*map(nodes.column, columns), number], relation(table, "p"))
    first = binary("=", plain_column(place), integer(1))
    return select([*map(nodes.column, columns)], relation(numbered, "q"), where=[first])
