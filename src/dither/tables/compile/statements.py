"""One person's total effect, bounded inside the engine: only bounded sums for each group ever leave it.

A question becomes at most two kinds of statement. Both begin alike:

``rows``   the rows asked about, of people who have a key, in the groups asked about; values are whole numbers on a
           public grid (:mod:`dither.tables.compile.expressions`)
``pairs``  one line for each person and group
``kept``   of each person at most ``groups`` of these, those with the smallest keyed hash of person and group: a fresh
           secret for each release, so the choice is random, the same on every engine, and depends on nobody else's rows

*Sums* (counts, sums, means, variances: each a :class:`Measure`) clamp what a person adds to a group to what ``limit``
rows may add, and add up.
*Bins* (quantiles, extremes, modes, histograms) count people's values by bin: of each person and group at most ``limit``
values, chosen by a keyed hash divided by how often the value occurs, so that a value is chosen about as often as
it occurs.

All of it is whole numbers below 2^62 by construction, so order, rounding and overflow cannot change a sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from dither.errors import InvalidArgument, message
from dither.inference import Grid
from dither.tables.card.values import Value
from dither.tables.compile import expressions
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.expressions import Lookup, bin_of, whole_steps
from dither.tables.compile.queries import alias, count_rows, relation, select
from dither.tables.query import nodes
from dither.tables.query.nodes import binary, call, case, cast, coalesce, integer, plain_column
from dither.tables.query.tree import Expression

SQUARE_BITS = 12


def grid(bounds: tuple[float, float], whole: bool, bits: int, limit: int) -> Grid:
    """The grid for these bounds: of step 1 for whole numbers in a range that fits, otherwise of some 2^bits steps.

    >>> grid((0, 120), True, 24, 1)
    Grid(low=0, high=120, step=Fraction(1, 1))
    """
    low, high = bounds
    bits -= max(0, math.ceil(math.log2(limit)) - 4)
    ends = math.ceil(low) if whole else low, math.floor(high) if whole else high
    scale = 1.0 if whole and ends[1] - ends[0] < 1 << bits else expressions.scale_of(low, high, bits)
    result = Grid.rounded_half_up(low, high, scale)
    if max(abs(result.low), abs(result.high)) * limit >= 1 << 32:
        raise InvalidArgument(
            message(
                "bounds",
                "bounds that are not far from 0 compared to their width",
                "others",
                "subtract a constant in the question",
            )
        )
    return result


@dataclass(frozen=True)
class Measure:
    """A whole number for each group, to which each person adds at most ``bound``, either way.

    ``kind`` is ``count`` (rows), ``values`` (rows where the value is not NULL), ``people``, ``sum`` (of the value),
    ``center`` (twice the value less the middle of its bounds) or ``square`` (the square of that, on a coarser grid).
    """

    kind: str
    value: Expression | None = None
    bounds: tuple[float, float] | None = None
    grid: Grid | None = None

    @property
    def column(self) -> tuple[object, ...]:
        """What it reads of each row: measures that read the same share it."""
        return self.value, self.grid, self.bounds, self.kind == "square"

    @property
    def scale(self) -> float:
        """What one whole number is worth: a count counts, sums are in steps, half steps, or squares of these."""
        if self.grid is None or self.kind == "values":
            return 1.0
        return self.grid.scale * {"center": 2.0, "square": 4.0 * self.grid.scale}.get(self.kind, 1.0)

    def bound(self, limit: int) -> int:
        """What one person adds to one group at most."""
        if self.kind == "people":
            return 1
        if self.kind in ("count", "values"):
            return limit
        assert self.grid is not None
        if self.kind == "sum":
            return max(abs(self.grid.low), abs(self.grid.high), 1) * limit
        return (self.grid.width if self.kind == "center" else self.grid.width**2) * limit


def sums(context: StatementContext, measures: Sequence[Measure]) -> Statement:
    """The statement for sums: a line for each group, with each measure as a whole number."""
    return context.once("sums", *measures, build=lambda: _sums(context, measures))


def _sums(context: StatementContext, measures: Sequence[Measure]) -> exp.Select:
    names: dict[tuple[object, ...], str] = {}
    columns: dict[str, exp.Expr] = {}
    for measure in measures:
        if measure.value is not None and measure.column not in names:
            names[measure.column] = f"x{len(names)}"
            columns[names[measure.column]] = _steps(measure, context.find)
    nodes.check_length(*columns.values())
    before: list[tuple[str, exp.Select]] = []
    if context.card.unit is None:
        added = [_added_by_row(measure, names.get(measure.column, "")) for measure in measures]
        lines = context.source(columns)
    else:
        per_person: dict[str, exp.Expr] = {}
        for measure in measures:
            name = names.get(measure.column, "")
            if measure.kind == "count":
                per_person["n"] = count_rows()
            if name:
                x = plain_column(name)
                per_person[f"c_{name}"] = call("COUNT", x)
                if measure.grid is not None:
                    per_person[f"s_{name}"] = _total(x)
                if measure.kind == "square":
                    per_person[f"q_{name}"] = _total(binary("*", x, x))
        keys = [plain_column(name) for name in ["u", *(context.names if per_person else context.carried)]]
        listed = [alias(node, name) for name, node in per_person.items()]
        lines, before = context.counted(columns) if per_person else (context.source(columns), [])
        pairs = select([*keys, *listed], relation(lines, "r"), group_by=keys)
        added = [_added_by_person(measure, names.get(measure.column, ""), context) for measure in measures]
        lines = context.keep(pairs, list(per_person))
    totals = {f"m{i}": _total(node) for i, node in enumerate(added)}
    return context.finish(totals, lines, context.names, before)


def _total(x: exp.Expr) -> exp.Expr:
    return cast(coalesce(call("SUM", x), integer(0)), "integer")


def _steps(measure: Measure, find: Lookup) -> exp.Expr:
    """The value as whole steps: for a square, twice the distance from the middle."""
    assert measure.value is not None
    if measure.grid is None:
        missing = nodes.is_null(expressions.compile(measure.value, find).node)
        return case([(missing, nodes.literal(None))], integer(1))
    assert measure.bounds is not None
    steps = whole_steps(measure.value, measure.grid, measure.bounds, find)
    return _twice_from_middle(steps, measure.grid) if measure.kind == "square" else steps


def _twice_from_middle(x: exp.Expr, grid: Grid) -> exp.Expr:
    return binary("-", binary("*", integer(2), x), integer(grid.low + grid.high))


def _added_by_row(measure: Measure, name: str) -> exp.Expr:
    """What a row adds, where each row is a person."""
    if measure.kind in ("count", "people"):
        return integer(1)
    x = plain_column(name)
    if measure.kind == "values":
        return case([(nodes.is_null(x), integer(0))], integer(1))
    if measure.kind == "sum":
        return x
    assert measure.grid is not None
    return _twice_from_middle(x, measure.grid) if measure.kind == "center" else binary("*", x, x)


def _added_by_person(measure: Measure, name: str, context: StatementContext) -> exp.Expr:
    """What a person adds to a group: no more than ``limit`` rows could.

    For a mean, more rows than that count as so many rows at their mean.
    """
    if measure.kind == "people":
        return integer(1)
    limit = integer(context.limit)
    count = plain_column("n" if measure.kind == "count" else f"c_{name}")
    if measure.kind in ("count", "values"):
        return case([(binary(">", count, limit), limit)], count)
    assert measure.grid is not None
    total = plain_column(f"s_{name}")
    if measure.kind == "sum":
        low = integer(min(0, measure.grid.low * context.limit))
        high = integer(max(0, measure.grid.high * context.limit))
        return case([(binary("<", total, low), low), (binary(">", total, high), high)], total)

    def limited(x: exp.Expr) -> exp.Expr:
        """``limit`` times the mean of a total of so many rows, rounded down, in whole numbers from 0 on."""
        quotient, remainder = context.dialect_sql.integer_quotient(x, count), binary("%", x, count)
        rest = context.dialect_sql.integer_quotient(binary("*", remainder, limit), count)
        return binary("+", binary("*", quotient, limit), rest)

    few = binary("<=", count, limit)
    if measure.kind == "square":
        squares = plain_column(f"q_{name}")
        return case([(few, squares)], limited(squares))
    middles = binary("*", integer(measure.grid.low + measure.grid.high), count)
    from_low = binary("-", total, binary("*", integer(measure.grid.low), count))
    many = binary("-", binary("*", integer(2), limited(from_low)), integer(measure.grid.width * context.limit))
    return case([(few, binary("-", binary("*", integer(2), total), middles))], many)


def bins(
    context: StatementContext, value: Expression, edges: tuple[float, ...] | None, keys: tuple[Value, ...] | None
) -> Statement:
    """The statement for bins: a line for each group and bin that holds anything, with how many values.

    Bins are between ``edges`` (the first and the last take in what is beyond), or one for each of ``keys``, and are
    numbered from 0. NULL and NaN are in none.
    """
    return context.once("bins", value, edges, keys, build=lambda: _bins(context, value, edges, keys))


def _bins(
    context: StatementContext, value: Expression, edges: tuple[float, ...] | None, keys: tuple[Value, ...] | None
) -> exp.Select:
    if edges is not None:
        bin = bin_of(value, edges, context.find)
    else:
        assert keys is not None
        x = expressions.compile(value, context.find).node
        arms = [(binary("=", x, expressions.literal(key).node), integer(i)) for i, key in enumerate(keys)]
        bin = case(arms, nodes.literal(None))
        nodes.check_length(bin)
    b = plain_column("b")
    lines, before = context.counted({"b": bin}, [nodes.is_not_null(b)])
    if context.card.unit is not None:
        person = ["u", *context.carried]
        item = [plain_column(name) for name in [*person, "b"]]
        counted = select([*item, alias(count_rows(), "n")], relation(lines, "r"), group_by=item)
        frequency = context.dialect_sql.integer_quotient(context.keyed_hash("b"), plain_column("n"))
        order = binary("+", binary("*", frequency, integer(1 << 31)), b)  # no two bins have the same
        picked = context.dialect_sql.collect(counted, person, order, context.limit, "b")
        lines = context.dialect_sql.explode(context.keep(picked, ["b"]), context.names, "b")
    return context.finish({"m0": count_rows()}, lines, [*context.names, "b"], before)


def spread(context: StatementContext, most: int) -> Statement:
    """The statement that counts people by the number of groups they are in, less 1, as ``b``."""
    pair = [plain_column(name) for name in ["u", *context.names]]
    pairs = select(pair, relation(context.everywhere.source({}), "r"), group_by=pair)
    limited = case([(binary(">", count_rows(), integer(most)), integer(most))], count_rows())
    u, b = plain_column("u"), plain_column("b")
    groups = alias(binary("-", limited, integer(1)), "b")
    people = select([u, groups], relation(pairs, "p"), group_by=[u])
    return context.statement(select([b, alias(count_rows(), "m0")], relation(people, "q"), group_by=[b]))


def contributors(context: StatementContext) -> Statement:
    """The statement that lists everybody with a row that is asked about, as ``u``."""
    rows = select([plain_column("u")], relation(context.everywhere.source({}), "r"))
    return context.statement(rows.distinct(copy=False))


def only_people_of(context: StatementContext, people: exp.Expr) -> exp.Expr:
    """The rows of the people whose keys are the column ``u`` of a staged table: for FROM, in place of all rows."""
    same = binary("=", plain_column("u", "x"), nodes.column(context.card.unit or "", "o"))
    known = exp.Exists(this=select([integer(1)], relation(people, "x"), where=[same]))
    every = exp.Column(this=exp.Star(), table=exp.to_identifier("o"))
    return select([every], relation(context.tables[""], "o"), where=[known]).subquery(copy=False)


__all__ = [
    "SQUARE_BITS", "Grid", "Measure", "Statement", "StatementContext", "bins", "contributors", "grid", "only_people_of",
    "spread", "sums", "whole_steps",
]  # fmt: skip
