"""Row expressions as SQL that means the same on every engine and cannot fail.

The operations themselves are in :mod:`dither.tables.query.operations`; here are their leaves, columns and constants.
Each expression comes with its type and, for numbers, its :class:`~dither.tables.query.operations.base.Range`. That is
what makes it safe:

* a number column is NULL where it is NaN, and before arithmetic it is clamped to its public bounds, and 0 where it is
  below a 2^-25th of their width in size; within them it is what it is, so that ``x * 1 = 19.99`` is ``x = 19.99``;
* in a condition it is what it is beyond its bounds as well, from 2^-40 to 2^40 in size, so that ``x + 0 > 5000`` is
  ``x > 5000``: bounds are for what a row adds to an answer, and a condition decides only whether it does. Where such
  values could overflow, as in EXP(x), those of a condition are clamped to the bounds, too;
* in a key it is what it is as in a condition: a row is not to be in a group that its own value does not make. Where
  values beyond the bounds could overflow, the key is NULL for them;
* so no sum, difference or product can overflow or underflow (PostgreSQL raises an error on either, which would depend
  on the data); what could, by its range, is refused before any data is read;
* division by zero is NULL, as is a text that cannot be cast, the logarithm of 0 or a date beyond the calendar: what an
  engine could fail on is ruled out by a condition around it;
* constants have their type written out: an engine that guessed would take -2^63 for a double;
* what leaves an engine is counted in whole numbers: steps of a public grid (:func:`whole_steps`), or the number of a
  bin (:func:`bin_of`).

A column that a relation computes from a person's rows, as their number, has no bounds and needs none here: its values
are within what the relation can compute, and are taken as they are. So are numbers that are read from text, which may
be anything that can be written. Such a range is no public fact of use, so :func:`public_interval` tells it from one
that follows from stated bounds.

Integers become doubles in arithmetic. Comparisons of a column with a constant stay what they are, so that engines can
use them to skip what they need not read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from sqlglot import exp

from dither.errors import InvalidArgument, WrongType
from dither.inference import Grid
from dither.tables.card.model import Card, ColumnCard
from dither.tables.card.values import Value, literal_type
from dither.tables.query import nodes
from dither.tables.query.nodes import check_length
from dither.tables.query.operations import operation
from dither.tables.query.operations.base import LEAST, MOST, NUMBERS, Range, TypedSql, wrong_type
from dither.tables.query.relations import ComputedColumn, extent_of
from dither.tables.query.tree import Call, Column, Expression, Join, Literal, replaced, walk

GRID_BITS = 24
_FAR = float(1 << 40)
"""How far from 0, and how near to it, numbers of a condition are what they are."""

Lookup = Callable[[Column], tuple[exp.Expr, ColumnCard]]
"""The SQL of a column, and what is public about it."""


class _Compilation:
    """Compiles expressions to SQL, each node at most twice: unclamped (:meth:`value`) and as a clamped double
    (:meth:`number`).

    Results are cached: without that, a node inside nested CASEs would be compiled twice per level, in time exponential
    in the depth. The cache is keyed by the ``id`` of nodes and holds on to them, so that no ``id`` is used again.

    Its companion :attr:`conditions` compiles conditions, in which columns are not clamped to their bounds. With
    ``null_beyond``, numbers beyond their bounds are NULL in arithmetic instead of being clamped.
    """

    def __init__(self, find: Lookup, null_beyond: bool = False) -> None:
        """Keep ``find``, which looks up a column's SQL and card, and start with an empty cache."""
        self._find, self.null_beyond = find, null_beyond
        self._conditions: _Compilation | None = None
        self._null_beyond: _Compilation | None = self if null_beyond else None
        self._results: dict[tuple[int, bool], tuple[Expression, TypedSql]] = {}
        self._lengths: dict[int, int] = {}
        self._counted: list[exp.Expr] = []

    def __call__(self, column: Column) -> tuple[exp.Expr, ColumnCard]:
        """Return a column's SQL and what is public about it, so that a compiler can be passed as a lookup."""
        return self._find(column)

    @property
    def conditions(self) -> _Compilation:
        """The compiler of conditions, in which columns are not clamped to their bounds; made when first used."""
        if self._conditions is None:
            self._conditions = _Compilation(self._find)
            self._conditions._conditions = self._conditions
        return self._conditions

    @property
    def beyond_bounds(self) -> bool:
        """Whether this is the compiler of conditions, in which columns are not clamped to their bounds."""
        return self._conditions is self

    def as_it_is(self, expression: Expression) -> TypedSql | None:
        """Return the SQL of an expression without clamping its columns to their bounds; None where values beyond the
        bounds could overflow, or would give the result another type."""
        with suppress(InvalidArgument, WrongType):
            result = self.conditions.value(expression)
            return result if result.type == self.value(expression).type else None
        return None

    def without_values_beyond(self, expression: Expression) -> TypedSql:
        """Return the SQL of an expression in which numbers beyond their bounds are NULL."""
        if self._null_beyond is None:
            self._null_beyond = _Compilation(self._find, null_beyond=True)
        return self._null_beyond.value(expression)

    def value(self, expression: Expression) -> TypedSql:
        """Return the SQL of an expression, with a column's values unclamped where no arithmetic is done with them."""
        return self._once(expression, as_number=False)

    def number(self, expression: Expression) -> TypedSql:
        """Return the SQL of a number as a double clamped to a known range, with which arithmetic cannot overflow."""
        return self._once(expression, as_number=True)

    def _once(self, expression: Expression, as_number: bool) -> TypedSql:
        """Return the cached SQL of an expression in one of its two forms, compiled on first use; refuse SQL that is too
        long."""
        key = (id(expression), as_number)
        if key not in self._results:
            result = _number(expression, self) if as_number else _value(expression, self)
            self._counted.append(result.node)  # keeps the node alive: its length is stored under its id
            check_length(result.node, known=self._lengths)
            self._results[key] = expression, result
        return self._results[key][1]


def remembering(find: Lookup) -> _Compilation:
    """Return a lookup that caches compiled expressions, so that each is compiled once: ``find`` itself if it does."""
    return find if isinstance(find, _Compilation) else _Compilation(find)


def lookup(card: Card, joined: Mapping[str, str]) -> Lookup:
    """Return the function that looks up a column's SQL and card: a column of the card under the alias t, one of a
    public table under the alias that ``joined`` gives its table."""

    def find(column: Column) -> tuple[exp.Expr, ColumnCard]:
        """Return a column's SQL and what is public about it; refuse unknown names."""
        if column.table is None:
            columns, alias = card.columns, "t"
        elif column.table in joined:
            columns, alias = card.public[column.table].columns, joined[column.table]
        else:
            raise InvalidArgument("table", "a public table of the card", column.table, "join it first")
        if column.name not in columns:
            raise InvalidArgument("column", f"one of {', '.join(sorted(columns))}", column.name, "correct the name")
        return nodes.column(column.name, alias), columns[column.name]

    return find


def lookup_of(card: Card, joins: Iterable[Join] = ()) -> Lookup:
    """Return the lookup of the card's columns and of the public tables in ``joins``, aliased by their own names."""
    return lookup(card, {join.table: join.table for join in joins})


def bounded(low: float, high: float) -> tuple[float, float]:
    """Return the bounds ``low`` and ``high`` as doubles; refuse bounds within which arithmetic could overflow or
    underflow.
    """
    if max(abs(low), abs(high)) > MOST or not LEAST <= float(high) - float(low) <= MOST:
        raise InvalidArgument(
            "bounds",
            "bounds of at most 1e150 in size, whose difference is between 1e-250 and 1e150",
            "bounds that are larger, or closer to each other or farther apart",
            "state bounds in a larger or smaller unit",
        )
    return float(low), float(high)


def scale_of(low: float, high: float, bits: int = GRID_BITS) -> float:
    """Return the power of two s such that the width of the bounds is 2^(bits - 1) to 2^bits steps of size 1/s."""
    low, high = bounded(low, high)
    return math.ldexp(1.0, bits - math.frexp(high - low)[1])


def compile(expression: Expression, find: Lookup) -> TypedSql:
    """Return the SQL of an expression with its type, unclamped where no arithmetic is done."""
    return remembering(find).value(expression)


def key(expression: Expression, find: Lookup) -> TypedSql:
    """Return the SQL of an expression to group by. Values beyond the bounds of columns are not clamped, which would put
    rows into groups of other values; where they could overflow in arithmetic, the key is NULL."""
    compiler = remembering(find)
    return compiler.as_it_is(expression) or compiler.without_values_beyond(expression)


def as_it_is(expression: Expression, find: Lookup) -> TypedSql:
    """Return the SQL of an expression with unclamped columns; where values beyond their bounds could overflow, with
    clamped ones."""
    compiler = remembering(find)
    return compiler.as_it_is(expression) or compiler.value(expression)


def condition(expression: Expression, find: Lookup) -> exp.Expr:
    """Return a condition on rows as SQL; refuse an expression of another type."""
    result = compile(expression, find)
    if result.type != "boolean":
        raise InvalidArgument("WHERE", "a condition", result.type, "compare the columns with something")
    return result.node


def number(expression: Expression, find: Lookup) -> TypedSql:
    """Return the SQL of a number as a double clamped to a known range, with which arithmetic cannot overflow."""
    return remembering(find).number(expression)


def public_interval(
    expression: Expression, find: Lookup, write: Callable[[Expression, Lookup], TypedSql] = number
) -> tuple[float, float] | None:
    """Return the least and largest value of a number as far as the card's bounds imply them; None where they do not.

    A range may also follow from something that says nothing about the data: how a relation computes a column, a
    division by almost 0, or the largest number that a text can state. Such ranges give None. They are recognized by
    compiling the expression a second time with columns without bounds twice as wide: a range that changes does not
    follow from the card. ``find`` looks up columns, and ``write`` compiles the expression.
    """
    expression, find = _with_open_casts(expression, find)
    if isinstance(expression, Column):
        return find(expression)[1].bounds
    known = write(expression, find).interval
    opened, with_opened = _with_open_quotients(expression, find)
    columns = (with_opened(node)[1] for node in walk(opened) if isinstance(node, Column))
    if all(extent_of(card) is None for card in columns):
        return known
    return known if write(opened, wider(with_opened)).interval == known else None


def _with_open_quotients(expression: Expression, find: Lookup) -> tuple[Expression, Lookup]:
    """Return the expression with each quotient whose divisor may be near 0 replaced by a column without bounds, and the
    lookup that finds these columns.

    How large such a quotient can be follows from the smallest double, not from the card.
    """
    opened: dict[Expression, ColumnCard] = {}

    def with_opened(column: Column) -> tuple[exp.Expr, ColumnCard]:
        """Return the column that replaces a quotient, or any other column."""
        return (nodes.column(column.name, "t"), opened[column]) if column in opened else find(column)

    def visited(node: Expression) -> Expression:
        """Return an expression with such quotients replaced, innermost first."""
        if not isinstance(node, Call) or not any(isinstance(item, Call) and item.op == "/" for item in walk(node)):
            return node
        node = Call(node.op, tuple(map(visited, node.args)))
        if node.op != "/":
            return node
        divisor = number(node.args[1], with_opened).range
        if divisor is None or not divisor.low <= 0 <= divisor.high:
            return node
        if divisor.quantum >= 1 and public_interval(node.args[1], with_opened) is not None:
            return node
        column = Column(f"quotient {len(opened)}", "of doubles")
        opened[column] = ComputedColumn("number", extent=number(node, with_opened).range)
        return column

    return visited(expression), with_opened


_NUMBER_TYPES: tuple[Expression, ...] = tuple(map(Literal, NUMBERS))


def _with_open_casts(expression: Expression, find: Lookup) -> tuple[Expression, Lookup]:
    """Return the expression with each CAST of a text to a number replaced by a column without bounds, and the lookup
    that finds these columns."""
    opened: dict[Column, ColumnCard] = {}
    casts = [node for node in walk(expression) if isinstance(node, Call) and node.op == "cast"]
    for node in casts:
        if node.args[0] in _NUMBER_TYPES and compile(node.args[1], find).type == "text":
            cast, column = compile(node, find), Column(f"number {len(opened)} read from text", "")
            opened[column] = ComputedColumn(cast.type, extent=cast.range)
            expression = replaced(expression, node, column)
    if not opened:
        return expression, find
    return expression, lambda column: (nodes.column(column.name), opened[column]) if column in opened else find(column)


def reads_text(expression: Expression, find: Lookup) -> bool:
    """Return whether an expression casts a text to a number, which may then be any number."""
    return _with_open_casts(expression, find)[0] != expression


def wider(find: Lookup) -> Lookup:
    """Return a lookup in which the possible range of columns without bounds is twice as wide, away from 0."""

    def widened(column: Column) -> tuple[exp.Expr, ColumnCard]:
        """Return the column with its extent doubled, where it has one and no bounds."""
        node, card = find(column)
        extent = extent_of(card)
        if extent is None or not isinstance(card, ComputedColumn):
            return node, card
        low, high = min(extent.low, 2 * extent.low), max(extent.high, 2 * extent.high)
        return node, replace(card, extent=replace(extent, low=low, high=high))

    return widened


def literal(value: Value) -> TypedSql:
    """Return a constant as typed SQL with its range; refuse numbers beyond what arithmetic is safe for."""
    if isinstance(value, float) and (not math.isfinite(value) or abs(value) > MOST or 0 < abs(value) < 1 / MOST):
        raise InvalidArgument(
            "number", "a number between 1e-150 and 1e150 in size", "a larger or smaller one", "leave it out"
        )
    kind = literal_type(value)
    known = Range.constant(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    return TypedSql(nodes.literal(value), kind or "text", known)


def _value(expression: Expression, compiler: _Compilation) -> TypedSql:
    """Return the SQL of an expression without clamping, for :meth:`_Compilation.value`; a condition is compiled with
    unclamped columns where these cannot overflow."""
    if isinstance(expression, Literal):
        return literal(expression.value)
    if isinstance(expression, Column):
        node, card = compiler(expression)
        if card.type == "number":
            node = nodes.case([(is_nan(node), nodes.literal(None))], node)
        return TypedSql(node, card.type, extent_of(card), None if compiler.beyond_bounds else card.period)
    row = operation(expression.op)
    row.check_arity(expression)
    result = row.compile(expression, compiler)
    if result.type == "boolean" and not compiler.beyond_bounds:
        with suppress(InvalidArgument, WrongType):
            return compiler.conditions.value(expression)
    return result


def _number(expression: Expression, compiler: _Compilation) -> TypedSql:
    """Return the SQL of a number as a clamped double, for :meth:`_Compilation.number`."""
    if isinstance(expression, Column):
        return _column_within_bounds(expression, compiler)
    row = operation(expression.op) if isinstance(expression, Call) else None
    if isinstance(expression, Call) and row is not None and row.compile_number is not None:
        row.check_arity(expression)
        result = row.compile_number(expression, compiler)
    else:
        result = compiler.value(expression)
    if result.type not in NUMBERS:
        raise wrong_type("a number", result.type)
    if result.type == "integer":
        return TypedSql(nodes.cast(result.node, "number"), "number", result.range)
    return result


def _column_within_bounds(column: Column, compiler: _Compilation) -> TypedSql:
    """Return a number column as a double clamped to its bounds, with which arithmetic cannot overflow.

    In conditions the bounds are widened to ±2^40, and with ``null_beyond`` values beyond the bounds are NULL. A column
    that a relation computes is unchanged: its values are always within its extent.
    """
    node, card = compiler(column)
    if card.type not in NUMBERS:
        raise wrong_type("a number", card.type)
    extent = extent_of(card)
    if extent is not None:
        exact = nodes.cast(node, "number") if card.type == "integer" else node
        return TypedSql(exact, "number", extent)
    if card.bounds is None:
        raise InvalidArgument(
            column.name,
            "public bounds, for arithmetic with it",
            "none",
            "state its bounds in the card, or in the question",
        )
    low, high = card.bounds
    if compiler.beyond_bounds:
        low, high = min(low, -_FAR), max(high, _FAR)
    beyond: list[tuple[exp.Expr, exp.Expr]] = []
    if compiler.null_beyond:
        ends = map(_integer_bound if card.type == "integer" else nodes.double, (low, high))
        beyond = [(nodes.binary(sign, node, end), nodes.literal(None)) for sign, end in zip("<>", ends, strict=True)]
    if card.type == "integer":
        arms = [
            *beyond,
            (nodes.binary("<=", node, _integer_bound(low)), nodes.double(low)),
            (nodes.binary(">=", node, _integer_bound(high)), nodes.double(high)),
        ]
        return TypedSql(nodes.case(arms, nodes.cast(node, "number")), "number", Range.whole(low, high).checked())
    least = 0.5 / scale_of(*card.bounds)
    if compiler.beyond_bounds:
        least = min(least, 1 / _FAR)
    return _double_within_bounds(node, bounded(low, high), least, beyond)


def _double_within_bounds(
    node: exp.Expr, bounds: tuple[float, float], least: float, beyond: list[tuple[exp.Expr, exp.Expr]]
) -> TypedSql:
    """Return a double clamped to bounds as SQL, NULL for NaN, and 0 for values below ``least`` in absolute value.

    ``beyond`` are arms of CASE (condition, value) that are tested before the bounds.
    """
    low, high = bounds
    first, last = (0.0 if abs(bound) < least else bound for bound in bounds)
    arms = [
        (is_nan(node), nodes.literal(None)),
        *beyond,
        (nodes.binary("<=", node, nodes.double(low)), nodes.double(first)),
        (nodes.binary(">=", node, nodes.double(high)), nodes.double(last)),
    ]
    if first <= 0 <= last:
        above, below = nodes.binary(">", node, nodes.double(-least)), nodes.binary("<", node, nodes.double(least))
        arms.append((nodes.binary("and", above, below), nodes.double(0.0)))
    size = least if first <= 0 <= last else min(abs(first), abs(last))
    return TypedSql(nodes.case(arms, node), "number", Range.between(first, last, size).checked())


def _integer_bound(bound: float) -> exp.Expr:
    """Return a bound as an integer constant where it is whole and fits 64 bits, otherwise as a double, to be compared
    with integers."""
    exact = abs(bound) < 1 << 63 and int(bound) == bound
    return nodes.literal(int(bound)) if exact else nodes.double(bound)


def is_nan(node: exp.Expr) -> exp.Expr:
    """Return the condition that a double is NaN, which every engine orders above infinity."""
    return nodes.binary(">", node, nodes.double(math.inf))


def hold(node: exp.Expr, low: float, high: float, scale: float, known: Range | None = None) -> exp.Expr:
    """Return round(scale * x) as SQL, for a double x (``node``) clamped to ``low`` … ``high``; NULL for NaN and NULL.

    A value that rounds to 0 is replaced by 0 before it is multiplied, since a product too small for a double is an
    error on PostgreSQL. Where the range of x is ``known``, comparisons that it decides are left out.
    """
    near = 0.25 / scale
    arms = [] if known else [(is_nan(node), nodes.literal(None))]
    if known is None or known.low < low:
        arms.append((nodes.binary("<=", node, nodes.double(low)), nodes.double(math.floor(low * scale + 0.5))))
    if known is None or known.high > high:
        arms.append((nodes.binary(">=", node, nodes.double(high)), nodes.double(math.floor(high * scale + 0.5))))
    if scale < 1 and (known is None or known.least < near):
        above, below = nodes.binary(">", node, nodes.double(-near)), nodes.binary("<", node, nodes.double(near))
        arms.append((nodes.binary("and", above, below), nodes.double(0.0)))
    product = nodes.binary("*", node, nodes.double(scale))
    steps = nodes.call("FLOOR", nodes.binary("+", product, nodes.double(0.5)))
    return nodes.case(arms, steps) if arms else steps


# -- whole numbers: steps of a public grid, or the number of a bin -----------------------------------------------------


def whole_steps(value: Expression, grid: Grid, bounds: tuple[float, float], find: Lookup) -> exp.Expr:
    """Return a value clamped to bounds and rounded to a grid as SQL: the number of the grid's steps from 0, a BIGINT;
    NULL for NULL and NaN."""
    low, high = bounds
    known = None
    if isinstance(value, Column):
        node, card = find(value)
        if card.type == "integer" and grid.scale == 1.0:
            ends = nodes.integer(grid.low), nodes.integer(grid.high)
            arms = [(nodes.binary("<=", node, ends[0]), ends[0]), (nodes.binary(">=", node, ends[1]), ends[1])]
            return nodes.case(arms, nodes.cast(node, "integer"))
        if card.type == "integer":
            node = nodes.cast(node, "number")
    else:
        typed = number(value, find)
        node, known = typed.node, typed.range
    return nodes.cast(hold(node, low, high, grid.scale, known), "integer")


def bin_of(value: Expression, edges: tuple[float, ...], find: Lookup) -> exp.Expr:
    """Return the index of a value's bin as SQL; values beyond the edges are in the first or the last bin.

    64 bins or more of equal width take one multiplication, others a comparison with each edge. Values below the second
    edge are compared in any case: their distance from the first edge can be so small that multiplying it would
    underflow, which is an error on PostgreSQL.
    """
    last = len(edges) - 2
    low, high = edges[0], edges[-1]
    column = find(value)[0] if isinstance(value, Column) else number(value, find).node
    x = nodes.cast(column, "number")
    arms = [
        (nodes.binary("or", nodes.is_null(x), is_nan(x)), nodes.literal(None)),
        (nodes.binary("<=", x, nodes.double(low)), nodes.integer(0)),
        (nodes.binary(">=", x, nodes.double(high)), nodes.integer(last)),
    ]
    if last >= 64 and _even(edges):
        arms.append((nodes.binary("<", x, nodes.double(edges[1])), nodes.integer(0)))
        steps = nodes.binary("*", nodes.binary("-", x, nodes.double(low)), nodes.double((last + 1) / (high - low)))
        return nodes.case(
            arms, nodes.call("LEAST", nodes.cast(nodes.call("FLOOR", steps), "integer"), nodes.integer(last))
        )
    arms += [(nodes.binary("<", x, nodes.double(edge)), nodes.integer(i)) for i, edge in enumerate(edges[1:-1])]
    result = nodes.case(arms, nodes.integer(last))
    nodes.check_length(result)
    return result


def _even(edges: tuple[float, ...]) -> bool:
    """Return whether bins have equal widths up to rounding, and a size with which products cannot overflow."""
    width, count, size = float(edges[-1]) - float(edges[0]), len(edges) - 1, max(abs(edges[0]), abs(edges[-1]))
    if not LEAST <= width <= MOST or size > MOST:
        return False
    slack = 1e-9 * width + 2 * math.ulp(float(size))
    return max(abs(edge - (edges[0] + width * i / count)) for i, edge in enumerate(edges)) <= slack
