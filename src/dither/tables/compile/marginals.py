"""The statement that counts the tables of a publication: every row in all tables or in none, in one scan.

``rows``   the rows asked about whose value of every attribute is in its public domain, with one whole number for each
           attribute and level that a table has: the *code*, the place of the value among the public keys of the level
``lines``  these rows with the weight of their person (:mod:`dither.tables.compile.limits`)
sums       the weights added up for each combination of codes, for every table (GROUPING SETS)

*Sensitivity.* Rows outside any of the domains are gone before weights are computed, so that the same rows have the same
weights in every table. A person's rows have weights whose sum is at most ``Limits.sensitivity()``, by the l1 norm with
one group, and each row adds its weight to one cell of each table. So removing the person changes the counts of every
table by at most that in the l1 norm, and no other row's weight. All of it is sums of whole numbers, which do not depend
on the order of rows.

A code is found in a table of public keys that has every key once, by the engine's own equality: no row has two codes
of a level, whatever the keys are. Codes of coarser levels stand beside that of the finest, from the public lookup; the
parent of a later key is never before that of an earlier one, so that the least codes of equal keys belong together.

The statements of a profile: how many people have each value, in bins, with weight 1 for a person in each histogram.

Rows are those of one private table, of people who have a unit, or without one if each of those is a person
(:mod:`dither.tables.compile.limits`). A person with N rows counts ``1 / N`` with each of them.

*Histograms of codes* (:func:`weights_by_code`). Each column has a code in every row: the number of the bin or of the
public key that its value is in, or a code for NULL and NaN, or one for any other value.

*Statement.* Adding or removing a person changes the weights of all codes of one column by 1 at most in the l1 norm,
in units of ``2^bits``, whoever else is in the data; so does it change those of all pairs of a class and a code of one
column, where the class is that of a person's number of rows.

*Why.* The weight of a row is that of ``Limits(groups=1, rows=1)``: ``min(1, 1 / N)``, rounded down, so that the
person's rows have weights whose sum is 1 at most, and no other row's weight depends on them. A row has one code of a
column, and a person has one class, so each row adds its weight to one cell.

*Layers of the weights of keys* (:func:`key_layers`), which say how many keys have how many people, where keys are not
public. With the weight ``s_k`` of a key, the sum of the weights of its rows, the layer from ``a`` to ``b`` is the sum
over all keys of ``min(max(s_k - a, 0), b - a)``.

*Statement.* Adding or removing a person changes all layers of one column together by 1 at most in the l1 norm.

*Why.* A person adds ``d_k >= 0`` to the weights of keys, and these add up to 1 at most. Every layer of one key grows
with its weight, and the layers of a key add up to ``min(s_k, t)``, with ``t`` the last edge. So the layers of the key
change by ``min(s_k + d_k, t) - min(s_k, t) <= d_k`` together, and those of all keys by 1. Where a new key appears its
weight was 0 before, and every layer of it was 0.

A count of the keys that have ``b`` people or more has no such bound: one person may be in all keys, and each of them
may be one person short of it.

*People by their number of rows or keys* are counted by :func:`dither.tables.compile.statements.people_by_size`: each
person is in one bin.

All of it is whole numbers. Every l2 norm is at most the l1 norm.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.model import Type, arrow_type
from dither.tables.compile import expressions
from dither.tables.compile.context import StatementContext, built_once, each_key_once, key_values, with_weights
from dither.tables.compile.expressions import Lookup
from dither.tables.compile.limits import Limits
from dither.tables.query import nodes
from dither.tables.query.nodes import (
    alias,
    binary,
    call,
    case,
    coalesce,
    count_rows,
    integer,
    join,
    over,
    plain_column,
    relation,
    select,
    total,
)
from dither.tables.query.operations.base import NUMBERS, TypedSql
from dither.tables.query.tree import Column, Expression

MOST_CONSTANTS = 1_000
"""The most keys that are written into a statement; more are a table beside the source."""
MOST_COMPARISONS = 24
"""The most keys that a value is compared with one by one; more are joined."""
MOST_BINS = 4_000
WEIGHT_BITS = 14
"""The binary places of weights. Counts are multiplied by further whole numbers where contrasts are made of them."""

Codes = NDArray[np.int64]
Clauses = tuple[list[exp.Expr], list[exp.Join], list[exp.Expr]]


def marginal_limits(max_rows: int, has_unit: bool) -> Limits:
    """Return the limits of one person in each published table: ``max_rows`` rows in all, or none where every row is a
    person."""
    if not has_unit:
        return Limits(groups=1, rows=1, weighted=False)
    return Limits(groups=1, rows=max_rows, max_bits=WEIGHT_BITS)


def column_name(attribute: int, level: int) -> str:
    """Return the name of the column with an attribute's code at a level, such as "c0_1"."""
    return f"c{attribute}_{level}"


@dataclass(frozen=True, eq=False)
class BinCodes:
    """The codes of numbers in bins between ``edges``; ``other`` is that of numbers outside, ``null`` that of NULL."""

    title: str
    value: Expression
    edges: tuple[float, ...]
    other: int | None
    null: int | None
    levels: tuple[int, ...]
    """The levels that tables have: 1, or none."""

    def check(self, find: Lookup) -> None:
        """Refuse a value that is no number, and more bins than a statement can hold."""
        kind = expressions.compile(self.value, find).type
        if kind not in NUMBERS:
            fix = f"list the keys of {self.title} instead of edges, or name an expression that is a number"
            raise InvalidArgument(self.title, "a number, which is put into bins", kind, fix)
        if len(self.edges) - 1 > MOST_BINS:
            got = f"{len(self.edges) - 1:,}"
            raise InvalidArgument(f"edges of {self.title}", f"at most {MOST_BINS:,} bins", got, "use wider bins")

    def code_columns(self, find: Lookup, name: str) -> Clauses:
        """Return the column of the code and the conditions on rows, without joins.

        The bin is found by comparisons with the edges. A multiplication could be rounded across an edge, and values on
        edges are common. NaN counts as NULL.
        """
        value = self.value
        node = find(value)[0] if isinstance(value, Column) else expressions.number(value, find).node
        x = nodes.cast(node, "number")
        low, high = nodes.double(self.edges[0]), nodes.double(self.edges[-1])
        inside = binary("and", binary(">=", x, low), binary("<", x, high))
        missing = binary("or", nodes.is_null(x), expressions.is_nan(x))
        listed = Listed(inside, missing, {1: _bin(x, [nodes.double(edge) for edge in self.edges[1:-1]], 0)})
        every = {1: len(self.edges) + 1}
        columns, conditions = listed.with_others(self.levels, _at(self.other), _at(self.null), every)
        return [alias(code, f"{name}_{level}") for level, code in columns.items()], [], conditions


def _at(code: int | None) -> dict[int, int] | None:
    """Return a code as that of level 1, the only level of bins; None for None."""
    return None if code is None else {1: code}


@dataclass(frozen=True, eq=False)
class Listed:
    """What is known of a row's value: whether it is among the keys, whether it is NULL, and its codes if it is a key.

    A code is never NULL, whatever the value is, and cannot fail: rows outside the domain are left out by a condition,
    but an engine may compute a code before it looks at the condition.
    """

    inside: exp.Expr
    missing: exp.Expr
    codes: Mapping[int, exp.Expr]

    def with_others(
        self,
        levels: Iterable[int],
        other: Mapping[int, int] | None,
        null: Mapping[int, int] | None,
        sizes: Mapping[int, int],
    ) -> tuple[dict[int, exp.Expr], list[exp.Expr]]:
        """Return the codes of a row's value at these levels as SQL, and the conditions of rows that are counted.

        ``other`` has the code of unlisted values at each level, and ``null`` that of NULL; where it is None, rows with
        such values are excluded by a condition. ``sizes`` are the numbers of codes at each level, which decide between
        SMALLINT and INT.
        """
        result: dict[int, exp.Expr] = {}
        for level in levels:
            code = self.codes[level]
            if other is not None:
                code = case([(self.inside, code)], integer(other[level]))
            if null is not None:
                code = case([(self.missing, integer(null[level]))], code)
            narrow = "SMALLINT" if sizes[level] < 1 << 15 else "INT"
            result[level] = exp.Cast(this=code, to=exp.DataType.build(narrow))
        if other is not None:
            return result, [] if null is not None else [nodes.not_(self.missing)]
        return result, [self.inside if null is None else binary("or", self.inside, self.missing)]


@dataclass(frozen=True, eq=False)
class KeyCodes:
    """The codes of listed keys, at each of several levels; ``other`` are those of values that are not listed, ``null``
    those of NULL.

    ``staged`` is a table beside the source with the keys and their codes, where they are too many for constants.
    """

    title: str
    value: Expression
    keys: Any
    """The listed keys of the finest level, as an Arrow array."""
    codes: Mapping[int, Codes]
    """For each level that tables have, the code of each key."""
    sizes: Mapping[int, int]
    """The number of codes at each level."""
    other: Mapping[int, int] | None = None
    null: Mapping[int, int] | None = None
    staged: exp.Expr | None = None

    @property
    def is_large(self) -> bool:
        """Whether the keys have to be staged."""
        return len(self.keys) > MOST_CONSTANTS

    def check(self, find: Lookup) -> None:
        """Refuse keys that are not of the kind of the value, or of which an engine could not tell two apart."""
        self._typed_keys(expressions.compile(self.value, find).type)

    def table(self, find: Lookup) -> Any:
        """Return the keys with their codes, as an Arrow table to be staged."""
        keys = self._typed_keys(expressions.compile(self.value, find).type)
        return pa.table({"k": keys, **{name: pa.array(codes) for name, codes in self._numbers.items()}})

    @property
    def _numbers(self) -> dict[str, Codes]:
        """The columns of codes beside the keys; their places where no table has the attribute."""
        return {f"i{level}": codes for level, codes in self.codes.items()} or {"i": np.arange(len(self.keys))}

    def code_columns(self, find: Lookup, name: str) -> Clauses:
        """Return a column ``name_level`` with the code at each level, and the joins and conditions that it needs.

        For few keys the code comes from comparisons, or is the difference to the first key if the keys are consecutive
        integers with codes 0, 1, …. For many keys, and staged ones, it comes from a join with a table of the keys.
        """
        typed = expressions.key(self.value, find)
        x, missing = typed.node, nodes.is_null(typed.node)
        joins: list[exp.Join] = []
        if self.staged is None and len(self.keys) <= MOST_COMPARISONS:
            keys = self._typed_keys(typed.type).to_pylist()
            if typed.type == "integer" and keys == [*range(keys[0], keys[0] + len(keys))] and self._is_flat:
                low, high = nodes.literal(keys[0]), nodes.literal(keys[-1])
                # clamped first: for a value outside the keys the difference could overflow
                held = nodes.call("LEAST", nodes.call("GREATEST", x, low), high)
                places = dict.fromkeys(self.codes, binary("-", held, low))
                listed = Listed(nodes.between(x, low, high), missing, places)
            else:
                constants = [nodes.literal(key) for key in keys]
                codes = {level: _compared(x, constants, codes) for level, codes in self.codes.items()}
                listed = Listed(nodes.in_list(x, constants), missing, codes)
        else:
            listed, joins = self._joined(typed, f"k{name}")
        columns, conditions = listed.with_others(self.codes, self.other, self.null, self.sizes)
        if joins and self.other is None and self.null is None:
            conditions = []  # the join leaves them out
        return [alias(code, f"{name}_{level}") for level, code in columns.items()], joins, conditions

    @property
    def _is_flat(self) -> bool:
        """Whether the code of every key is its index, at every level."""
        return all(np.array_equal(codes, np.arange(len(codes))) for codes in self.codes.values())

    def _joined(self, typed: TypedSql, table: str) -> tuple[Listed, list[exp.Join]]:
        """Return the codes of a compiled value from a join with a table of the keys under the alias ``table``, and that
        join.

        The table is the staged one or made of constants. It is a LEFT join where values that are no key have a code.
        """
        numbers, source = self._numbers, self.staged
        if source is None:
            keys = self._typed_keys(typed.type).to_pylist()
            given = zip(keys, zip(*numbers.values(), strict=True), strict=True)
            source = key_values([(key, [int(code) for code in codes]) for key, codes in given], typed.type, [*numbers])
        kind: Literal["", "LEFT"] = "" if self.other is None and self.null is None else "LEFT"
        equal = binary("=", typed.node, plain_column("k", table))
        inside = nodes.is_not_null(plain_column(next(iter(numbers)), table))
        codes = {level: coalesce(plain_column(f"i{level}", table), integer(0)) for level in self.codes}
        joins = [join(relation(each_key_once(source, [*numbers]), table), equal, kind)]
        return Listed(inside, nodes.is_null(typed.node), codes), joins

    def _typed_keys(self, kind: Type) -> Any:
        """Return the keys as an Arrow array of the type ``kind`` of the expression; refuse keys that are of another
        type, not distinct, or not storable on every engine."""
        of_keys = _kind(self.keys.type)
        if of_keys != kind and (of_keys, kind) != ("integer", "number"):
            fix = (
                f"write the keys of {self.title} as values of type {kind}, or cast the expression to {of_keys or 'it'}"
            )
            raise InvalidArgument(f"keys of {self.title}", f"values of type {kind}", str(self.keys.type), fix)
        keys = self.keys
        if kind == "number":
            keys = pa.array(np.asarray(keys).astype(np.float64) + 0.0)  # no key is -0.0
            if not np.all(np.isfinite(keys)):
                fix = "leave NaN and infinity out"
                raise InvalidArgument(f"keys of {self.title}", "finite numbers", "NaN or infinity", fix)
        try:
            keys = keys.cast(arrow_type(kind))
        except pa.ArrowInvalid:
            keys = None
        if keys is None:
            expected = f"values that {kind} can hold: 64 bits, microseconds"
            raise InvalidArgument(
                f"keys of {self.title}", expected, "values that it cannot hold", "round them, or leave them out"
            )
        if kind == "text" and pc.any(pc.match_substring(keys, "\0")).as_py():
            fix = "take it out"
            raise InvalidArgument(f"keys of {self.title}", "text without NUL", "a text with one", fix)
        if keys.null_count or pc.count_distinct(keys).as_py() != len(keys):
            fix = "leave out the repetition, and say null=True for NULL"
            raise InvalidArgument(f"keys of {self.title}", f"different values of type {kind}", "equal ones", fix)
        return keys


def _kind(type: Any) -> Type | None:
    """Return the card's type for an Arrow type; None for types that a card does not have."""
    tests: list[tuple[Any, Type]] = [
        (pa.types.is_integer, "integer"),
        (pa.types.is_floating, "number"),
        (pa.types.is_string, "text"),
        (pa.types.is_large_string, "text"),
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_date, "date"),
        (lambda item: pa.types.is_timestamp(item) and item.tz is None, "timestamp"),
    ]
    return next((kind for test, kind in tests if test(type)), None)


def _compared(x: exp.Expr, constants: Sequence[exp.Expr], codes: Codes) -> exp.Expr:
    """Return a CASE with the code of the constant that a value equals; a value that equals none gets the last code, and
    is excluded elsewhere."""
    arms = [exp.If(this=key, true=integer(int(code))) for key, code in zip(constants[:-1], codes[:-1], strict=True)]
    last = integer(int(codes[-1]))
    return exp.Case(this=nodes.operand(x), ifs=arms, default=last) if arms else last


RowCode = BinCodes | KeyCodes


@built_once
def marginals(context: StatementContext, tables: Sequence[Sequence[str]]) -> exp.Select:
    """Return the statement that counts the cells of several tables, each given by the columns of its codes.

    The result has a row for each nonempty cell of each table: its codes (NULL in columns of other tables) and its sum
    of weights ``m0``.
    """
    lines, before = context.counted({})
    lines, weights_of, weights = context.weighted(lines, context.limits)
    names = [*dict.fromkeys(name for table in tables for name in table)]
    sets = [exp.Tuple(expressions=[plain_column(name) for name in table]) for table in tables]
    columns = [plain_column(name) for name in names]
    result = select([*columns, alias(weights, "m0")], relation(lines, "kept"))
    result.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=sets)]))
    return nodes.with_tables(result, [*before, *weights_of])


Edges = tuple[float, ...] | tuple[date, ...]


def profile_limits(has_unit: bool) -> Limits:
    """Return the limits of one person in each histogram of a profile: a total weight of 1."""
    return Limits(groups=1, rows=1, norm=1, weighted=has_unit, exceeded=False)


@dataclass(frozen=True)
class ValueCodes:
    """The bins of a column between ``edges``, numbers or dates; the first and the last bin take in what is beyond. NULL
    and NaN have the code after the last bin."""

    column: str
    edges: Edges

    @property
    def codes(self) -> int:
        """The number of codes: the bins, and one code for NULL."""
        return len(self.edges)

    def code_columns(self, find: Lookup, name: str) -> Clauses:
        """Return the column of the bin's index, found by comparisons with the edges; no joins, no conditions."""
        x, card = find(Column(self.column))
        missing = nodes.is_null(x)
        if card.type in ("integer", "number"):
            x = nodes.cast(x, "number")
            missing = binary("or", missing, expressions.is_nan(x))
        bin = _bin(x, [_constant(edge) for edge in self.edges[1:-1]], 0)
        return [alias(case([(missing, integer(len(self.edges) - 1))], bin), name)], [], []


@dataclass(frozen=True)
class WholeCodes:
    """Whether a number is whole (1), or not, or NULL (0)."""

    column: str
    codes: int = 2

    def code_columns(self, find: Lookup, name: str) -> Clauses:
        """Return the column that is 1 for whole numbers and 0 for others, NaN and NULL; no joins, no conditions."""
        x = nodes.cast(find(Column(self.column))[0], "number")
        missing = binary("or", nodes.is_null(x), expressions.is_nan(x))
        whole = case([(missing, integer(0)), (binary("=", call("FLOOR", x), x), integer(1))], integer(0))
        return [alias(whole, name)], [], []


def _constant(edge: float | date) -> exp.Expr:
    """Return an edge as a constant of SQL: a date, a timestamp or a double."""
    return nodes.literal(edge) if isinstance(edge, date) else nodes.double(edge)


def _bin(x: exp.Expr, inner: Sequence[exp.Expr], first: int) -> exp.Expr:
    """Return the index of a value's bin as nested CASEs (a binary search); ``inner`` are the edges between bins, and
    ``first`` is the index of the first bin."""
    if not inner:
        return integer(first)
    middle = len(inner) // 2
    below = binary("<", x, inner[middle])
    return case([(below, _bin(x, inner[:middle], first))], _bin(x, inner[middle + 1 :], first + middle + 1))


@built_once
def weights_by_code(context: StatementContext, columns: Sequence[str], classes: Sequence[int] = ()) -> exp.Select:
    """Return the statement for several histograms at once, each given by the column of its codes.

    The result has a row for each code that occurs: the code (NULL in the columns of other histograms) and its sum of
    weights ``m0``, where the rows of each person share the weight 1 (2^bits as an integer). With ``classes``, the
    largest numbers of rows per person of all classes but the last, the counts are also divided by class ``q``, from 0.
    """
    lines = context.source({})
    limits, keys = context.limits, [plain_column(name) for name in columns]
    by = [plain_column("q")] if classes else []
    weight: exp.Expr = count_rows()
    before: list[tuple[str, exp.Select]] = []
    if context.card.unit is not None:

        def rows(windows: bool) -> exp.Expr:
            """Return the number of a person's rows, by a window function or an aggregate."""
            return over(count_rows(), [plain_column("u")]) if windows else count_rows()

        numbers = {"w": lambda windows: limits.weight(rows(windows), context.dialect)}
        if classes:
            numbers["q"] = lambda windows: case(
                [(binary("<=", rows(windows), integer(edge)), integer(i)) for i, edge in enumerate(classes)],
                integer(len(classes)),
            )
        lines, before = with_weights(lines, numbers, context.dialect, context.null_people)
        w = plain_column("w")
        weight = total(coalesce(w, integer(1 << limits.bits())) if context.null_people else w)
        if classes and context.null_people:  # each of whom has one row
            known = [plain_column(name) for name in ["w", *columns]]
            lines = select([*known, alias(coalesce(plain_column("q"), integer(0)), "q")], relation(lines, "c"))
    sets = [exp.Tuple(expressions=[*by, key]) for key in keys]
    result = select([*by, *keys, alias(weight, "m0")], relation(lines, "kept"))
    result.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=sets)]))
    return nodes.with_tables(result, before)


@built_once
def key_layers(context: StatementContext, column: str, edges: Sequence[int]) -> exp.Select:
    """Return the statement for the layers of a column's keys: one row with a sum for each pair of neighboring edges.

    The layer from a to b is the sum over keys of min(max(s - a, 0), b - a), for the sum s of the weights of a key's
    rows. Rows whose key is NULL count in N, by which a person's rows are weighted, but for no key.
    """
    typed = expressions.key(Column(column), context.find)
    lines, before, weights = context.weighted(context.source({"x": typed.node}), context.limits)
    x, s = plain_column("x"), plain_column("s")
    keys = select([x, alias(weights, "s")], relation(lines, "l"), where=[nodes.is_not_null(x)], group_by=[x])
    one = 1 << context.limits.bits()
    sums = []
    for i, (low, high) in enumerate(itertools.pairwise(edges)):
        above = call("GREATEST", binary("-", s, integer(low * one)), integer(0))
        sums.append(alias(total(call("LEAST", above, integer((high - low) * one))), f"m{i}"))
    return nodes.with_tables(select(sums, relation(keys, "k")), before)
