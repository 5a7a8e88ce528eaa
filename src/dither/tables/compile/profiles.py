"""The statements of a profile: how many people have each value, in bins, with weight 1 for a person in each histogram.

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
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from sqlglot import exp

from dither.tables.compile import expressions
from dither.tables.compile.context import StatementContext, built_once, with_weights
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
    over,
    plain_column,
    relation,
    select,
    total,
)
from dither.tables.query.tree import Column

Edges = tuple[float, ...] | tuple[date, ...]
Clauses = tuple[list[exp.Expr], list[exp.Join], list[exp.Expr]]


def profile_limits(has_unit: bool) -> Limits:
    """Return how much a person counts for in each histogram: as one row, or less where weights are rounded down."""
    return Limits(groups=1, rows=1, norm=1, weighted=has_unit, exceeded=False)


@dataclass(frozen=True)
class ValueCodes:
    """The bins of a column between ``edges``, numbers or dates; the first and the last bin take in what is beyond. NULL
    and NaN have the code after the last bin."""

    column: str
    edges: Edges

    @property
    def codes(self) -> int:
        """How many codes there are."""
        return len(self.edges)

    def clauses(self, find: Lookup, name: str) -> Clauses:
        """Return the code as a column, by comparisons alone."""
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

    def clauses(self, find: Lookup, name: str) -> Clauses:
        """Return the code as a column. NaN is not whole on any engine, whatever it is equal to there."""
        x = nodes.cast(find(Column(self.column))[0], "number")
        missing = binary("or", nodes.is_null(x), expressions.is_nan(x))
        whole = case([(missing, integer(0)), (binary("=", call("FLOOR", x), x), integer(1))], integer(0))
        return [alias(whole, name)], [], []


def _constant(edge: float | date) -> exp.Expr:
    return nodes.literal(edge) if isinstance(edge, date) else nodes.double(edge)


def _bin(x: exp.Expr, inner: Sequence[exp.Expr], first: int) -> exp.Expr:
    """Return the number of the bin of a value, where ``inner`` are the edges between bins, counted from ``first``."""
    if not inner:
        return integer(first)
    middle = len(inner) // 2
    below = binary("<", x, inner[middle])
    return case([(below, _bin(x, inner[:middle], first))], _bin(x, inner[middle + 1 :], first + middle + 1))


@built_once
def weights_by_code(context: StatementContext, columns: Sequence[str], classes: Sequence[int] = ()) -> exp.Select:
    """Return the statement for several histograms at once, whose codes are the ``columns``.

    It has a line for each code that a row has, with the codes (those of other histograms are NULL) and the sum of
    weights ``m0``. A person's rows share the weight 1, which is ``2^bits`` as a whole number. With ``classes``, the
    largest numbers of rows of all classes of people but the last, each line is also about one class ``q``, counted from
    0.
    """
    lines = context.source({})
    limits, keys = context.limits, [plain_column(name) for name in columns]
    by = [plain_column("q")] if classes else []
    weight: exp.Expr = count_rows()
    before: list[tuple[str, exp.Select]] = []
    if context.card.unit is not None:

        def rows(windows: bool) -> exp.Expr:
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
    for name, query in before:
        result = result.with_(name, as_=query, materialized=True, copy=False)
    return result


@built_once
def key_layers(context: StatementContext, column: str, edges: Sequence[int]) -> exp.Select:
    """Return the statement for the layers of the weights of a column's keys, in one line: a sum for each pair of
    neighboring edges. Rows whose key is NULL count for the weights of their people, and are of no key."""
    typed = expressions.key(Column(column), context.find)
    lines, before, weights = context.weighted(context.source({"x": typed.node}), context.limits)
    x, s = plain_column("x"), plain_column("s")
    keys = select([x, alias(weights, "s")], relation(lines, "l"), where=[nodes.is_not_null(x)], group_by=[x])
    one = 1 << context.limits.bits()
    sums = []
    for i, (low, high) in enumerate(itertools.pairwise(edges)):
        above = call("GREATEST", binary("-", s, integer(low * one)), integer(0))
        sums.append(alias(total(call("LEAST", above, integer((high - low) * one))), f"m{i}"))
    result = select(sums, relation(keys, "k"))
    for name, query in before:
        result = result.with_(name, as_=query, materialized=True, copy=False)
    return result
