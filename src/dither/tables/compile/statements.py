"""The statements of a question: only bounded sums for each group ever leave the engine.

There are two kinds. Both are about the same lines:

``rows``   the rows asked about, of people who have a unit, or without one if each of those is a person
           (:mod:`dither.tables.compile.limits`), in the groups asked about; values are whole numbers on a
           public grid (:mod:`dither.tables.compile.expressions`). Where the keys of groups are not public, only rows in
           at most ``groups`` groups of each person, those with the smallest keyed hash of person and group: a fresh
           secret for each release, so the choice is random, the same on every engine, and depends on nobody else's rows
``lines``  these rows with the weight of their person (:mod:`dither.tables.compile.limits`)

*Sums* add up weighted numbers for each group (counts, sums, means, variances). *Bins* add up weights for each group and
bin of a value (quantiles, extremes, modes, histograms). Of extremes only a person's own in each group is a line: it
follows from the person's rows alone, and what the lines of a person add up to is bounded as that of rows is. So a
person counts once in a group, however many rows there are, and a single large value as much as the others.

Before they are weighted, rows of a person and group are added up where that is needed all the same (to count people, to
choose groups, for the l2 norm) or for free (without groups).

All of it is whole numbers below 2^62 by construction, so order, rounding and overflow cannot change a sum.

How two columns are measured together: sums of six products that are not negative and add up to the same in each row.

*Statement.* Let t and u, from 0 to 1, be the places of two values between their bounds, ``a = t/2``, ``b = u/2`` and
``c = 1 - a - b``. The six terms of ``(a + b + c)^2``, that is ``a^2, b^2, c^2, 2ab, 2ac, 2bc``, are not negative and
add up to 1. So the six sums of them are one measurement: one row moves it by 1 in the l1 norm, and by no more in the
l2 norm. Number, means, variances and covariance of the pairs follow from it: ``a = a^2 + (2ab + 2ac) / 2``.

*In whole numbers.* Values are steps above their lower bounds, x and y, of at most ``width`` in all. With
``z = 2 width - x - y``, the terms are ``x^2, y^2, z^2, 2xy, 2xz, 2yz``: whole numbers that add up to ``(2 width)^2``,
which is the ``top`` of a row. A row in which either value is NULL adds nothing to any of them.

How many different values a column has in each group, where one person adds a limited number of them.

*Statement.* Of each person at most ``rows`` different values count in a group, and those of at most ``groups`` groups.
Then a person moves the numbers of different values by at most ``rows`` in at most ``groups`` groups: by
``groups * rows`` in the l1 norm and ``sqrt(groups) * rows`` in the l2 norm, whoever else is in the data.

*Why.* The number of a group is the size of the union of sets of values, one of each person. One set more makes the
union larger by what is in no other set: by 0 at least, and by the size of the set at most. Which values and groups of a
person count is decided by keyed hashes of person, group and value under a secret that is fresh for each release; where
hashes agree, by the values themselves. So it depends on the person's own rows only, and no set of another person
changes with them.

*Which number it is.* Each person's choice is random, and those of different people are independent: a value that many
people have is counted almost surely. A value that only people with more than ``rows`` values have may be missed, so the
number is too low by an amount that nobody knows, and never too high.

NULL and NaN are no values. Numbers that are equal are one value, 0 and -0 among them; texts are compared byte by byte.

What each person adds in each period of a series: one statement, whose lines are bounded for a person and a period.

The rows of a period are weighted as those of a question are (:mod:`dither.tables.compile.limits`), but for each period
by itself: a person with N rows in a period has the weight ``min(1, rows / N)`` there.

*Statement.* Let every row add at most ``top`` in absolute value to a measure. Then everything that a person adds to all
groups of one period has an l1 norm of at most ``rows * top``, whoever else is in the data, and whatever rows this
person has in other periods. People count once in a period: somebody in j groups counts ``1 / j`` in each.

*Why.* That is the statement of :mod:`dither.tables.compile.limits` for the rows of one period, with one group of weight
``R = rows``. The weight depends on this person's rows of this period only: the partition of the window is the person
and the period. Rounding makes every number smaller.

Which periods of a person count at all is not decided here: that depends on what counted before, which only the ledger
knows (:mod:`dither.stream.participants`). So a line for each person, period and group leaves the engine, as the keys of
people do where they have accounts, and no row does. Where every row is a person of its own, the engine adds up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.inference import Grid
from dither.tables.card.model import Type
from dither.tables.card.values import Value
from dither.tables.compile import expressions
from dither.tables.compile.context import Statement, StatementContext, built_once, with_weights
from dither.tables.compile.expressions import Lookup, bin_of, bounded, whole_steps
from dither.tables.compile.limits import Limits
from dither.tables.query import nodes
from dither.tables.query.nodes import (
    Dialect,
    alias,
    all_of,
    binary,
    call,
    case,
    cast,
    coalesce,
    count_rows,
    dense_rank,
    double,
    integer,
    over,
    plain_column,
    relation,
    row_number,
    select,
    shift_right,
    total,
)
from dither.tables.query.relations import private_columns
from dither.tables.query.tree import EXTREMES, Aggregate, Expression, private_tables

Bounds = tuple[float, float]
PARTS = 6
MAX_SIZE_BITS = 41
"""A person's sum of values is compared with numbers below ``2^41``."""
_SHARE_BITS, _ROOM = 20, 29
PAIR_BITS = 13


@dataclass(frozen=True)
class ValuePair:
    """Two values that are measured together, each with its bounds and its grid."""

    values: tuple[Expression, Expression]
    bounds: tuple[Bounds, Bounds]
    grids: tuple[Grid, Grid]

    @property
    def width(self) -> int:
        """The number of steps of the finer grid: no value is more steps above its lower bound."""
        return max(grid.width for grid in self.grids)

    @property
    def top(self) -> int:
        """The sum of the six products of one row, which is the same for every row."""
        return (2 * self.width) ** 2

    def columns(self, name: str, find: Lookup) -> dict[str, exp.Expr]:
        """Return the SQL of the columns ``name_0`` and ``name_1``: the two values in steps above their lower bounds."""
        result = {}
        for place, (value, bounds, grid) in enumerate(zip(self.values, self.bounds, self.grids, strict=True)):
            steps = whole_steps(value, grid, bounds, find)
            result[f"{name}_{place}"] = steps if grid.low == 0 else binary("-", steps, integer(grid.low))
        return result

    def part(self, name: str, number: int) -> exp.Expr:
        """Return product ``number`` of x^2, y^2, z^2, 2xy, 2xz and 2yz of a row; 0 where either value is missing.

        x and y are the steps of the two values and ``z = 2 width - x - y``, so the six add up to ``(2 width)^2``.
        """
        x, y = plain_column(f"{name}_0"), plain_column(f"{name}_1")
        z = binary("-", binary("-", integer(2 * self.width), x), y)
        products: Sequence[Callable[[], exp.Expr]] = (
            lambda: binary("*", x, x),
            lambda: binary("*", y, y),
            lambda: binary("*", z, z),
            lambda: binary("*", integer(2), binary("*", x, y)),
            lambda: binary("*", binary("*", integer(2), x), z),
            lambda: binary("*", binary("*", integer(2), y), z),
        )
        missing = binary("or", nodes.is_null(x), nodes.is_null(y))
        return case([(missing, integer(0))], products[number]())


def pair_grid(bounds: Bounds, whole: bool, bits: int, name: str) -> Grid:
    """Return the grid of about ``2^bits`` steps between the bounds to which one value of a pair is rounded.

    ``whole`` says that values are whole numbers; where there are at most 2^bits of them, each step is a fraction of 1,
    so that they are exact. ``name`` names the value in the error about bounds that are too far from 0 for doubles.
    """
    low, high = bounded(*bounds)
    most = 1 << bits
    distance = int(high) - int(low)
    scale = float(most // distance) if whole and 0 < distance <= most else most / (high - low)
    result = Grid.rounded_half_up(low, high, scale)
    if result.width == 0 or max(abs(result.low), abs(result.high)) >= 1 << 50:  # steps are computed in doubles
        fix = "subtract a constant in the question"
        expected = "bounds that are not far from 0 compared to their width"
        raise InvalidArgument(name, expected, "bounds far from 0", fix)
    return result


_FAR = 2.0**40
_FINE = 1024.0


@built_once
def distinct_values(context: StatementContext, value: Expression) -> exp.Select:
    """Return the statement that counts the distinct values of each group, of which each person adds a limited number:
    a row for each group that has any, with their number ``m0``."""
    typed = expressions.key(value, context.find)
    x = typed.node
    if typed.type == "number":
        arms = [(expressions.is_nan(x), nodes.literal(None)), (binary("=", x, double(0.0)), double(0.0))]
        x = case(arms, x)
    nodes.check_length(x)
    lines, before = context.counted({"x": x}, [nodes.is_not_null(plain_column("x"))])
    groups, carried = (
        [plain_column(name) for name in context.names],
        [plain_column(name) for name in context.passed_columns],
    )
    if context.card.unit is not None:
        u = plain_column("u")
        pairs = select([u, *carried, plain_column("x")], relation(lines, "l")).distinct(copy=False)
        hashed = select([exp.Star(), alias(_hash(context, typed.type), "hx")], relation(pairs, "p"))
        order = [context.keyed_hash("hx"), plain_column("x")]
        places = [alias(row_number(order, [u, *groups]), "place")]
        conditions = [binary("<=", plain_column("place"), integer(context.limits.rows))]
        if groups and context.limits.exceeded and not context.limits_groups:
            places.append(alias(dense_rank([context.keyed_hash(), *groups], [u]), "group_place"))
            conditions.append(binary("<=", plain_column("group_place"), integer(context.limits.groups)))
        if context.null_people:  # each of whom has one value in one group
            conditions = [binary("or", nodes.is_null(u), all_of(conditions))]
        lines = select(
            [exp.Star()], relation(select([exp.Star(), *places], relation(hashed, "h")), "r"), where=conditions
        )
    values = select([*groups, plain_column("x")], relation(lines, "v")).distinct(copy=False)
    return context.finish({"m0": cast(count_rows(), "integer")}, values, context.names, before)


def _hash(context: StatementContext, type: Type) -> exp.Expr:
    """Return a keyed hash of the column ``x``, which decides which of a person's values count.

    A double is hashed as the index of its cell on a public grid, since engines write doubles as different texts; the
    caller orders values with equal hashes by size.
    """
    x = plain_column("x")
    if type == "number":
        return context.hash_of_value(cast(expressions.hold(x, -_FAR, _FAR, _FINE), "integer"), "integer")
    return context.hash_of_value(x, type)


BIN_BITS = 10
_ROOT_UNITS = 1 << 10
"""A root is rounded up to this fraction of a row."""


def grid(bounds: tuple[float, float], whole: bool, bits: int, total: int) -> Grid:
    """Return the grid to which values within bounds are rounded: steps of 1 for whole numbers (``whole``) where that
    gives fewer than 2^bits steps, otherwise steps of a power of two, about 2^bits of them.

    ``total`` is the number of a person's rows that count. Above 16, steps are coarser in proportion, so that a person's
    sum stays as small.
    """
    low, high = bounds
    bits -= max(0, math.ceil(math.log2(total)) - 4)
    ends = math.ceil(low) if whole else low, math.floor(high) if whole else high
    scale = 1.0 if whole and ends[1] - ends[0] < 1 << bits else expressions.scale_of(low, high, bits)
    result = Grid.rounded_half_up(low, high, scale)
    if max(abs(result.low), abs(result.high)) >= 1 << 52:  # steps are computed in doubles
        raise InvalidArgument(
            "bounds",
            "bounds that are not far from 0 compared to their width",
            "bounds far from 0",
            "subtract a constant in the question",
        )
    return result


def near_zero(grid: Grid, total: int) -> bool:
    """Return whether a sum of values in steps from 0 fits: ``total`` rows of one person add less than 2^32 to it."""
    return max(abs(grid.low), abs(grid.high)) * total < 1 << 32


@dataclass(frozen=True)
class Moments:
    """How the values of one column are measured: as parts that are not negative and add up to the same for each row.

    A value y steps above its lower bound, of ``width`` steps in all, adds ``width - y`` and ``y`` to two sums (degree
    1), or ``(width - y)^2``, ``2 y (width - y)`` and ``y^2`` to three (degree 2), or 1 to one (degree 0, which only
    counts values). With ``nulls`` a row without a value adds ``top`` to one sum more. Every row adds ``top`` to all of
    them together, so all of them are one measurement: one row moves them by ``top`` in the l1 norm, and by no more in
    the l2 norm. The number of rows, of values, their sum, mean and variance all follow from it.

    Squares of many steps are too large. So the two of them are divided by ``divisor`` and rounded down, and the part in
    the middle is what they leave of ``top``, which is not negative: their sum is at most ``width^2 / divisor``. What
    the mean follows from is the difference of the two, whose roundings cancel: it is as fine as without squares.
    """

    value: Expression
    degree: Literal[0, 1, 2]
    nulls: bool = False
    bounds: tuple[float, float] | None = None
    grid: Grid | None = None
    divisor: int = 1

    @property
    def top(self) -> int:
        """The sum of all parts of one row, which is the same for every row: width^degree / divisor, or 1 for counts."""
        return 1 if self.grid is None else int(self.grid.width) ** self.degree // self.divisor

    def squares(self, x: exp.Expr, dialect: Dialect) -> tuple[exp.Expr, exp.Expr]:
        """Return (width - x)^2 and x^2 as SQL, each divided by the divisor and rounded down, for the value ``x`` in
        steps above the lower bound."""
        assert self.grid is not None
        below = binary("-", integer(int(self.grid.width)), x)
        first, last = binary("*", below, below), binary("*", x, x)
        if self.divisor == 1:
            return first, last
        by = integer(self.divisor)
        return nodes.integer_quotient(first, by, dialect), nodes.integer_quotient(last, by, dialect)

    @property
    def parts(self) -> tuple[Measure, ...]:
        """The measures of the sums, in the order of the class's formulas; with ``nulls`` the last counts rows without a
        value."""
        return tuple(Measure("part", self.value, self, i) for i in range(self.degree + 1 + self.nulls))


@dataclass(frozen=True)
class Measure:
    """A whole number for each group.

    ``kind`` is ``rows``, ``people``, ``distinct`` (the different values of a column), ``sum`` (of a value, in steps of
    its grid), ``part`` (one of its moments) or ``product`` (one of those of a pair of values).
    ``rows_per_person`` is the norm of what one person counts for in it, over all groups; None is that of the question.
    Of a sum ``by_value`` it is that of the person's values, from 0 on, in steps of the grid, whatever the number of
    rows: they keep the share ``min(1, limit / their sum)``, in units of ``2^-places``, rounded down.
    """

    kind: Literal["rows", "people", "distinct", "sum", "part", "product"]
    value: Expression | None = None
    moments: Moments | None = None
    part: int = 0
    pair: ValuePair | None = None
    rows_per_person: int | None = None
    by_value: bool = False

    def with_limit(self, rows_per_person: int) -> Measure:
        """Return the measure with its own limit on what one person counts for."""
        return replace(self, rows_per_person=rows_per_person)

    @property
    def places(self) -> int:
        """The binary places p of a sum ``by_value``, whose unit is 2^-p steps: as many as keep what one person adds
        below 2^29; negative where a unit is several steps."""
        assert self.rows_per_person is not None
        return min(_SHARE_BITS, _ROOM - self.rows_per_person.bit_length())

    @property
    def top(self) -> int:
        """The largest absolute amount that one row adds, in steps of the grid."""
        if self.pair is not None:
            return self.pair.top
        if self.kind == "sum":
            assert self.moments is not None
            assert self.moments.grid is not None
            return max(abs(self.moments.grid.low), abs(self.moments.grid.high), 1)
        return 1 if self.moments is None else self.moments.top

    @property
    def column(self) -> tuple[object, ...]:
        """A key for the column of rows that the measure reads; measures with equal keys share one column."""
        steps = self.moments and (self.moments.grid, self.moments.bounds, self.moments.divisor)
        return self.value, steps, self.kind == "sum", self.pair

    @property
    def measurement(self) -> object:
        """A key for the vector with which the measure is released, under one noise: all moments of a column, all
        products of a pair, or the measure alone."""
        return (self.pair or self.moments, self.rows_per_person) if self.kind in ("part", "product") else self

    @property
    def weight_name(self) -> str:
        """The name of the column with the person's weight under the measure's limit: "w", or "w5" for its own limit
        5."""
        return "w" if self.rows_per_person is None else f"w{self.rows_per_person}"

    def limits(self, limits: Limits) -> Limits:
        """Return the limits of the measure, given those of the question: people count once in each group, distinct
        values are chosen and not weighted, and others may have their own limit."""
        if self.kind == "distinct":
            return replace(limits, weighted=False)
        return limits.of_people if self.kind == "people" else limits.of_aggregate(self.rows_per_person)

    def sensitivity(self, limits: Limits) -> Fraction:
        """Return the sensitivity of the measure's vector in the norm of the limits, in the integer units of the
        statement."""
        if self.by_value:
            assert self.rows_per_person is not None
            return self.rows_per_person * Fraction(2) ** self.places
        return self.limits(limits).sensitivity(self.top)

    def unit(self, limits: Limits) -> float:
        """Return the statement's number for 1: for one row, one person, or for a sum 1 in the units of the value."""
        steps = 2.0**self.places if self.by_value else 1 << self.limits(limits).bits(self.top)
        if self.kind == "sum":
            assert self.moments is not None
            assert self.moments.grid is not None
            return self.moments.grid.scale * steps
        return float(self.top * steps)


def pair_products(pair: ValuePair) -> tuple[Measure, ...]:
    """Return the six measures of a pair of values, in the order of :meth:`ValuePair.part`."""
    return tuple(Measure("product", None, None, i, pair) for i in range(PARTS))


def is_race(parts: Sequence[Measure]) -> bool:
    """Return whether the measures of one aggregate are the levels of the R2T mechanism, the largest of which is its
    answer (:mod:`dither.tables.planning.tails`): several, each released under separate noise."""
    return len(parts) > 1 and parts[0].measurement != parts[1].measurement


def of_measures(context: StatementContext, measures: Sequence[Measure]) -> list[tuple[Statement, list[Measure]]]:
    """Return the statements that compute measures, each with its measures in the order of its columns: first one for
    all sums, then one for each count of distinct values."""
    added = [measure for measure in measures if measure.kind != "distinct"]
    result = [(sums(context, added), added)] if added else []
    for measure in measures:
        if measure.kind == "distinct":
            assert measure.value is not None
            result.append((distinct_values(context, measure.value), [measure]))
    return result


@built_once
def sums(context: StatementContext, measures: Sequence[Measure]) -> exp.Select:
    """Return the statement for sums: a row for each group, with the measures as the integers ``m0``, ``m1``, ….

    Values are rounded to the steps of their grids. Rows are first added up by person and group where that is needed
    (to count people, to choose groups, for the l2 norm) or costs nothing (without groups). Each person's contribution
    is multiplied by the weight that the limits of ``context`` give. Where every row is a person, nothing is weighted.
    """
    names: dict[tuple[object, ...], str] = {}
    columns: dict[str, exp.Expr] = {}
    for measure in measures:
        if measure.moments is not None and measure.column not in names:
            names[measure.column] = f"x{len(names)}"
            columns[names[measure.column]] = _steps(measure.moments, measure.kind == "sum", context.find)
        elif measure.pair is not None and measure.column not in names:
            names[measure.column] = f"x{len(names)}"
            columns |= measure.pair.columns(names[measure.column], context.find)
    nodes.check_length(*columns.values())
    if context.card.unit is None:
        numbers = [_of_row(measure, names.get(measure.column, ""), context.dialect) for measure in measures]
        totals = {f"m{i}": total(number) for i, number in enumerate(numbers)}
        return context.finish(totals, context.source(columns), context.names, [])
    limits, dialect = context.limits, context.dialect
    people = any(measure.kind == "people" for measure in measures)
    only_people = all(measure.kind == "people" for measure in measures)
    by_person = not context.names or people or limits.norm == 2 or context.limits_groups
    lines, before = context.counted(columns)
    if by_person:
        squared = {names[m.column]: m.moments for m in measures if m.moments is not None and m.moments.degree == 2}
        single = list(dict.fromkeys(names[m.column] for m in measures if m.moments is not None))
        products = {
            f"p{m.part}_{names[m.column]}": m.pair.part(names[m.column], m.part) for m in measures if m.pair is not None
        }
        lines = _by_person(context, lines, single, squared, products, not only_people or context.null_people)
    by_rows = [m for m in measures if m.kind != "people" and not m.by_value]
    weighted = {m.weight_name: m.limits(limits) for m in by_rows}

    def weight_by(own: Limits) -> Callable[[bool], exp.Expr]:
        """Return the function that writes a person's weight under these limits, as :func:`with_weights` takes it."""
        return lambda windows: own.weight(_size(own, by_person, windows), dialect)

    def share_by(measure: Measure) -> Callable[[bool], exp.Expr]:
        """Return the function that writes the share of a person's values that a sum by value keeps."""
        x = plain_column(f"s_{names[measure.column]}" if by_person else names[measure.column])
        return lambda windows: _share(
            measure, cast(coalesce(_person(call("SUM", x), windows), integer(0)), "integer"), dialect
        )

    weights = {name: weight_by(own) for name, own in weighted.items()}
    weights |= {_share_name(m, names): share_by(m) for m in measures if m.by_value}
    if people and limits.exceeded:
        weights["v"] = lambda windows: limits.of_people.weight(_person(count_rows(), windows), dialect)
    if weights and context.names:
        lines, tables = with_weights(lines, weights, dialect, context.null_people)
        before = [*before, *tables]
    elif weights:  # one line for each person
        n = plain_column("n")
        size = binary("*", n, n) if limits.norm == 2 else n
        of_people = {name: own.weight(size, dialect) for name, own in weighted.items()}
        if context.null_people:
            known = nodes.is_not_null(plain_column("u"))
            of_people = {name: case([(known, weight)], nodes.literal(None)) for name, weight in of_people.items()}
        of_people |= {
            _share_name(m, names): _share(m, coalesce(plain_column(f"s_{names[m.column]}"), integer(0)), dialect)
            for m in measures
            if m.by_value
        }
        listed = [alias(weight, name) for name, weight in of_people.items()]
        lines = select([exp.Star(), *listed], relation(lines, "l"))
    totals = {}
    for i, measure in enumerate(measures):
        if measure.kind == "people":
            one = integer(1 << limits.of_people.bits())
            number = plain_column("v") if "v" in weights else one
            if context.null_people:
                number = case([(nodes.is_null(plain_column("u")), binary("*", plain_column("n"), one))], number)
            totals[f"m{i}"] = total(number)
        else:
            name = names.get(measure.column, "")
            if measure.by_value:
                number = plain_column(f"s_{name}" if by_person else name)
                shared = binary("*", coalesce(number, integer(0)), plain_column(_share_name(measure, names)))
                totals[f"m{i}"] = total(shift_right(shared, _SHARE_BITS - measure.places))
                continue
            number = _of_person(measure, name) if by_person else _of_row(measure, name, dialect)
            totals[f"m{i}"] = total(_weighted(measure, number, context))
    return context.finish(totals, lines, context.names, before)


def _share_name(measure: Measure, names: Mapping[tuple[object, ...], str]) -> str:
    """Return the name of the column with the share of a person's values that a sum ``by_value`` keeps."""
    return f"w_{names[measure.column]}_{measure.rows_per_person}"


def _share(measure: Measure, size: exp.Expr, dialect: Dialect) -> exp.Expr:
    """Return the share min(1, limit / size) of a person's values that a sum ``by_value`` keeps, as SQL in units of
    2^-20; ``size`` is the sum of the person's values."""
    assert measure.rows_per_person is not None
    limit, one = measure.rows_per_person, 1 << _SHARE_BITS
    kept = nodes.integer_quotient(integer(limit * one), size, dialect)
    return case([(binary("<=", size, integer(limit)), integer(one))], kept)


def _steps(moments: Moments, signed: bool, find: Lookup) -> exp.Expr:
    """Return a value as an integer number of grid steps: from 0 if ``signed``, otherwise from the lower bound. Without
    a grid, as for counts of values, return 0, and NULL for NULL."""
    if moments.grid is None:
        missing = nodes.is_null(expressions.compile(moments.value, find).node)
        return case([(missing, nodes.literal(None))], integer(0))
    assert moments.bounds is not None
    steps = whole_steps(moments.value, moments.grid, moments.bounds, find)
    return steps if signed or moments.grid.low == 0 else binary("-", steps, integer(moments.grid.low))


def _by_person(
    context: StatementContext,
    rows: exp.Select,
    columns: Sequence[str],
    squared: Mapping[str, Moments],
    products: Mapping[str, exp.Expr],
    counted: bool,
) -> exp.Select:
    """Return a SELECT with one row for each person and group, and these totals over the person's ``rows`` in it.

    ``n`` is their number (if ``counted``). For each x of ``columns``, ``c_x`` is the number of its values and ``s_x``
    their sum. For those that are ``squared``, ``b_x`` is the sum of (width - x)^2 and ``q_x`` the sum of x^2.
    ``products`` are summed under their names.
    """
    keys = [plain_column(name) for name in ["u", *context.names]]
    listed = [alias(count_rows(), "n")] if counted else []
    for name in columns:
        x = plain_column(name)
        listed += [alias(call("COUNT", x), f"c_{name}"), alias(total(x), f"s_{name}")]
        if name in squared:
            squares = squared[name].squares(x, context.dialect)
            listed += [alias(total(square), f"{side}_{name}") for side, square in zip("bq", squares, strict=True)]
    listed += [alias(total(product), name) for name, product in products.items()]
    return select([*keys, *listed], relation(rows, "r"), group_by=keys)


def _person(aggregate: exp.Expr, windows: bool) -> exp.Expr:
    """Return an aggregate over the lines of a person: as a window function, or unchanged for GROUP BY person."""
    return over(aggregate, [plain_column("u")]) if windows else aggregate


def _size(limits: Limits, by_person: bool, windows: bool) -> exp.Expr:
    """Return the size by which :meth:`Limits.weight` weights a person: the number of rows or, for the l2 norm, the sum
    over groups of its square.

    With ``by_person`` a line is a person's group with its number ``n`` of rows, otherwise a row. The size is a window
    function over the person's lines if ``windows``, otherwise an aggregate for GROUP BY person.
    """
    n = plain_column("n")
    if not by_person:
        return _person(count_rows(), windows)
    return cast(_person(call("SUM", binary("*", n, n) if limits.norm == 2 else n), windows), "integer")


def _of_row(measure: Measure, name: str, dialect: Dialect) -> exp.Expr:
    """Return the integer that a row adds to a measure, before weighting; ``name`` is the column with the row's value in
    steps. For a sum ``by_value`` every row is a person here, and its value is clamped to the limit."""
    if measure.kind in ("rows", "people"):
        return integer(1)
    if measure.pair is not None:
        return measure.pair.part(name, measure.part)
    x = plain_column(name)
    s = coalesce(x, integer(0))
    if measure.by_value:  # each row is a person
        assert measure.rows_per_person is not None
        limit = integer(measure.rows_per_person)
        held = case([(binary(">", s, limit), limit)], s)
        if measure.places < 0:
            return shift_right(held, -measure.places)
        return binary("*", held, integer(1 << measure.places))
    if measure.kind == "sum":
        return s
    count = case([(nodes.is_null(x), integer(0))], integer(1))
    assert measure.moments is not None
    squares = measure.moments.squares(x, dialect) if measure.moments.degree == 2 else ()
    return _part(measure, integer(1), count, s, *(coalesce(square, integer(0)) for square in squares))


def _of_person(measure: Measure, name: str) -> exp.Expr:
    """Return the integer that a person's rows in a group add to a measure, before weighting, from the columns of
    :func:`_by_person`; ``name`` is the column with the value."""
    if measure.kind == "rows":
        return plain_column("n")
    if measure.pair is not None:
        return plain_column(f"p{measure.part}_{name}")
    if measure.kind == "sum":
        return plain_column(f"s_{name}")
    return _part(measure, *(plain_column(item) for item in ("n", *(f"{sum}_{name}" for sum in "csbq"))))


def _part(measure: Measure, rows: exp.Expr, count: exp.Expr, s: exp.Expr, *squares: exp.Expr) -> exp.Expr:
    """Return sum number ``measure.part`` of :class:`Moments` from totals over rows.

    The totals are the number of ``rows`` and of values (``count``), the sum ``s`` of the values y and, for degree 2,
    the sums of (width - y)^2 and y^2. Since the parts of a row add up to ``top``, 2 y (width - y) = top - (width - y)^2
    - y^2.
    """
    moments = measure.moments
    assert moments is not None
    top = integer(moments.top)
    if measure.part > moments.degree:  # rows without a value
        return binary("*", top, binary("-", rows, count))
    if moments.degree == 0:
        return count
    if moments.degree == 1:  # width - y, and y
        return s if measure.part == 1 else binary("-", binary("*", top, count), s)
    from_upper, from_lower = squares
    mixed = binary("-", binary("-", binary("*", top, count), from_upper), from_lower)  # 2 y (width - y)
    return (from_upper, mixed, from_lower)[measure.part]


def _weighted(measure: Measure, number: exp.Expr, context: StatementContext) -> exp.Expr:
    """Return the ``number`` that a person adds to a measure times the person's weight, in units of 2^-bits, rounded
    toward 0.

    Rows without a person, each of which counts as one, have the weight NULL and count in full.
    """
    limits, w, top = measure.limits(context.limits), plain_column(measure.weight_name), measure.top
    weighted = _toward_zero(measure, number, lambda x: limits.times_weight(x, w, top))
    if context.null_people:
        in_full = binary("*", number, integer(1 << limits.bits(top)))
        return case([(nodes.is_null(w), in_full)], weighted)
    return weighted


def _toward_zero(measure: Measure, number: exp.Expr, times_weight: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return ``times_weight(number)`` with the number's sign kept: of a number that can be negative, the absolute value
    is weighted and negated again, since weighting rounds down, which is away from 0 for a negative number."""
    grid = measure.moments.grid if measure.kind == "sum" and measure.moments is not None else None
    if grid is None or grid.low >= 0:
        return times_weight(number)
    negative = binary("<", number, integer(0))
    weighted = times_weight(case([(negative, nodes.negate(number))], number))
    return case([(negative, nodes.negate(weighted))], weighted)


@built_once
def bins(
    context: StatementContext,
    value: Expression,
    edges: tuple[float, ...] | None,
    keys: tuple[Value, ...] | None,
    rows_per_person: int | None = None,
    extreme: Literal["min", "max"] | None = None,
) -> exp.Select:
    """Return the statement that counts values in bins: a row for each nonempty bin ``b`` of each group, with the sum of
    weights ``m0``.

    Bins are intervals between ``edges`` (the first and the last include everything beyond), or one for each of
    ``keys``, and are numbered from 0. NULL and NaN are in no bin. ``rows_per_person`` is the aggregate's own limit,
    None for that of the question. For an ``extreme`` they count people by their own extreme in each group.
    """
    if edges is not None:
        bin = bin_of(value, edges, context.find)
    else:
        assert keys is not None
        x = expressions.key(value, context.find).node
        arms = [(binary("=", x, expressions.literal(key).node), integer(i)) for i, key in enumerate(keys)]
        bin = case(arms, nodes.literal(None))
        nodes.check_length(bin)
    lines, before = context.counted({"b": bin}, [nodes.is_not_null(plain_column("b"))])
    if extreme is not None and context.card.unit is not None:
        lines = _own_extremes(context, lines, extreme)
    lines, tables, weights = context.weighted(lines, bin_limits(context.limits, rows_per_person, extreme is not None))
    return context.finish({"m0": weights}, lines, [*context.names, "b"], [*before, *tables])


def _own_extremes(context: StatementContext, lines: exp.Select, extreme: Literal["min", "max"]) -> exp.Select:
    """Return of the lines with a bin ``b`` the one of each person and group with the lowest or highest bin; rows
    without a person stay, each of which is one."""
    b, u = plain_column("b"), plain_column("u")
    first = row_number([b if extreme == "min" else nodes.negate(b)], [u, *map(plain_column, context.names)])
    condition = binary("=", plain_column("e"), integer(1))
    if context.null_people:
        condition = binary("or", condition, nodes.is_null(u))
    ranked = select([exp.Star(), alias(first, "e")], relation(lines, "r"))
    return select([exp.Star()], relation(ranked, "o"), where=[condition])


def bin_limits(limits: Limits, rows_per_person: int | None = None, extreme: bool = False) -> Limits:
    """Return the limits for bins, whose counts are multiplied by further numbers where ranks are compared: fewer
    places. ``rows_per_person`` is the limit of an aggregate's own; of an ``extreme`` a person has one line in each
    group."""
    if extreme:
        limits = replace(limits, rows=1)
        rows_per_person = None if rows_per_person is None else min(rows_per_person, limits.groups)
    return replace(limits.of_aggregate(rows_per_person), norm=1, max_bits=BIN_BITS)


def bins_of(context: StatementContext, aggregate: Aggregate) -> Statement:
    """Return the statement for the bins of an aggregate: those between its edges, or its keys."""
    assert aggregate.value is not None
    extreme: Literal["min", "max"] | None = None
    if aggregate.kind in EXTREMES:
        extreme = "min" if aggregate.kind == "min" else "max"
    return bins(context, aggregate.value, aggregate.edges, aggregate.keys, aggregate.rows_per_person, extreme)


def key_bits(norm: int) -> int:
    """Return b such that a person's weight of 1, spread over groups, is 2^b units.

    A group that would get less than one unit gets nothing, which bounds the number of a person's groups by 2^b for the
    l1 norm and 4^b for the l2 norm.
    """
    return 10 if norm == 1 else 7


@built_once
def key_weights(context: StatementContext, norm: Literal[1, 2], of_people: bool) -> exp.Select:
    """Return the statement for the weights of groups, by which the largest are chosen
    (:mod:`dither.tables.planning.top_keys`): a row for each group, with the sum ``m0`` of its people's weights.

    A person with n rows in a group has the weight floor(2^bits n / N) there, where N is the sum of the person's n over
    groups or, for the ``norm`` 2, the root of the sum of n^2; so the weights of a person have at most the norm 1. With
    ``of_people``, n is 1 in each of the person's groups. Where every row is a person, ``m0`` is the number of rows.
    """
    everywhere, names = context.with_every_group, context.names
    keys = [plain_column(name) for name in names]
    rows = everywhere.source({})
    if context.card.unit is None:
        return everywhere.finish({"m0": cast(count_rows(), "integer")}, rows, names, [])
    u, n, z = (plain_column(name) for name in ("u", "n", "z"))
    pairs = select([u, *keys, alias(count_rows(), "n")], relation(rows, "r"), group_by=[u, *keys])
    one: exp.Expr = integer(1) if of_people else n

    def size(windows: bool) -> exp.Expr:
        """Return the sum of n, or for the l2 norm of n^2, over a person's groups."""
        summed = one if norm == 1 else binary("*", one, one)
        return cast(_person(call("SUM", summed), windows), "integer")

    lines, before = with_weights(pairs, {"z": size}, context.dialect, context.null_people)
    whole = 1 << key_bits(norm)
    divisor: exp.Expr = z
    if norm == 2:  # rounded up, as in the weights by the l2 norm
        whole *= _ROOT_UNITS
        squares = binary("*", cast(z, "number"), double(float(_ROOT_UNITS**2)))
        divisor = binary("+", cast(call("CEIL", call("SQRT", squares)), "integer"), integer(1))
    weight = nodes.integer_quotient(binary("*", one, integer(whole)), divisor, context.dialect)
    if norm == 2:  # a person with one group has the weight 1
        weight = case([(binary("=", binary("*", one, one), z), integer(1 << key_bits(norm)))], weight)
    if context.null_people:  # lines of many people, each of whom has the weight 1
        weight = case([(nodes.is_null(u), binary("*", n, integer(1 << key_bits(norm))))], weight)
    weighted = select([*keys, alias(weight, "x")], relation(lines, "l"))
    positive = select([exp.Star()], relation(weighted, "p"), where=[binary(">", plain_column("x"), integer(0))])
    return everywhere.finish({"m0": total(plain_column("x"))}, positive, names, before)


def people_by_size(
    context: StatementContext,
    edges: Sequence[int],
    size: Literal["rows", "squares", "groups"],
    value: Expression | None = None,
) -> Statement:
    """Return the statement that counts people by ``size``: a row for each bin ``b``, with the number of people ``m0``.

    The size of a person is the number of rows ("rows"), the number of groups ("groups"), or the root of the sum over
    groups of the squared number of rows ("squares"). With a ``value``, the groups are its values other than NULL.
    ``edges`` are the largest sizes of the bins; the last bin has no upper end.
    """
    everywhere = context.with_every_group
    rows = everywhere.source({})
    u = plain_column("u")
    number, in_all = count_rows(), count_rows()
    names = ["u", *everywhere.names]
    if value is not None:
        x = plain_column("x")
        with_value = everywhere.source({"x": expressions.key(value, context.find).node})
        rows = select([exp.Star()], relation(with_value, "v"), where=[nodes.is_not_null(x)])
        names.append("x")
    if size != "rows":
        pair = [plain_column(name) for name in names]
        rows = select([*pair, alias(count_rows(), "n")], relation(rows, "r"), group_by=pair)
        n = plain_column("n")
        in_all = total(n)
        number = count_rows() if size == "groups" else cast(call("SUM", binary("*", n, n)), "integer")
    people = select([u, alias(number, "s"), alias(in_all, "n")], relation(rows, "p"), group_by=[u])
    power = 2 if size == "squares" else 1
    arms = [(binary("<=", plain_column("s"), integer(edge**power)), integer(i)) for i, edge in enumerate(edges[:-1])]
    how_many: exp.Expr = integer(1)
    if context.null_people:  # rows without a person are people of one row each: the first bin
        arms = [(nodes.is_null(u), integer(0)), *arms]
        how_many = case([(nodes.is_null(u), plain_column("n"))], integer(1))
    binned = select([alias(case(arms, integer(len(edges) - 1)), "b"), alias(how_many, "k")], relation(people, "q"))
    b = plain_column("b")
    counted = alias(total(plain_column("k")), "m0")
    return context.statement(select([b, counted], relation(binned, "h"), group_by=[b]))


def contributors(context: StatementContext) -> Statement:
    """Return the statement that lists the people with rows that the question is about, each once, as ``u``."""
    rows = select([plain_column("u")], relation(context.with_every_group.source({}, with_person=True), "r"))
    return context.statement(rows.distinct(copy=False))


def only_people_of(context: StatementContext, people: exp.Expr) -> dict[str, exp.Expr]:
    """Return, for each private table of the question, a subquery for FROM with the rows of some people only.

    The people are the column ``u`` of the staged table ``people``. Restricting the private tables restricts relations
    made of them alike, since each row of a relation depends on one person alone.
    """
    result: dict[str, exp.Expr] = {}
    for name in private_tables(context.query):
        unit = private_columns(context.base_card, name)[1]
        same = binary("=", plain_column("u", "x"), nodes.column(unit, "o"))
        known = exp.Exists(this=select([integer(1)], relation(people, "x"), where=[same]))
        every = exp.Column(this=exp.Star(), table=exp.to_identifier("o"))
        rows = relation(context.tables[name or ""], "o")
        result[name or ""] = select([every], rows, where=[known]).subquery(copy=False)
    return result


_WEIGHT_BITS = 10
_WIDTH = 16
SUM_BITS = 13
"""Values that are summed are rounded to a grid of some ``2^13`` steps, or to whole numbers where those are fewer."""


def period_limits(rows: int, has_unit: bool) -> Limits:
    """Return the limits of one person in one period: at most ``rows`` rows in all groups together."""
    return Limits(1, rows, 1, weighted=has_unit, exceeded=has_unit, max_bits=_WEIGHT_BITS)


def period_places(measure: Measure, limits: Limits) -> int:
    """Return b such that what a person adds to a measure in a period is an integer in units of 2^-b.

    It is as many bits as weights have, but at most as many as keep what one row adds below 2^16: noise of few steps is
    drawn fast, and is far larger than a step.
    """
    counted = measure.limits(limits)
    return max(0, min(counted.bits(measure.top), _WIDTH - measure.top.bit_length()))


def period_sensitivity(measure: Measure, limits: Limits) -> int:
    """Return the l1 sensitivity of a measure in one period, over all groups, in the integer units of the statement."""
    return math.ceil(measure.limits(limits).total * measure.top * (1 << period_places(measure, limits)))


def period_unit(measure: Measure, limits: Limits) -> float:
    """Return the statement's number for 1 in a period: for one row, one person, or 1 in the units of the value."""
    steps = 1 << period_places(measure, limits)
    grid = measure.moments.grid if measure.kind == "sum" and measure.moments is not None else None
    return float(steps) if grid is None else grid.scale * steps


@built_once
def person_periods(context: StatementContext, measures: Sequence[Measure], period: Expression) -> exp.Select:
    """Return the statement of a series: a row for each person ``u``, period ``t`` and group with rows, with what the
    person adds to each measure.

    These are integers ``m0``, ``m1``, … in the order of ``measures``, weighted to the limits of ``context`` within each
    period. ``period`` computes the period of a row. Where every row is a person, there is no ``u``, and a row for each
    period and group.
    """
    assert not context.null_people, "nobody could keep a record of them: the series refuses it"
    columns = {"t": expressions.compile(period, context.find).node}
    for i, measure in enumerate(measures):
        node = _value(measure, context)
        columns |= {} if node is None else {f"x{i}": node}
    nodes.check_length(*columns.values())
    rows = context.source(columns)
    has_unit = context.card.unit is not None
    keys = [plain_column(name) for name in [*(["u"] if has_unit else []), "t", *context.names]]
    sums = [alias(_of_rows(measure, i), f"s{i}") for i, measure in enumerate(measures)]
    lines = select([*keys, alias(count_rows(), "n"), *sums], relation(rows, "r"), group_by=keys)
    if not has_unit:
        added = [alias(plain_column(f"s{i}"), f"m{i}") for i in range(len(measures))]
        return select([*keys, *added], relation(lines, "l"))
    person_and_period = [plain_column("u"), plain_column("t")]
    size = cast(over(call("SUM", plain_column("n")), person_and_period), "integer")
    groups = cast(over(count_rows(), person_and_period), "integer")
    own = {"w": context.limits} | {m.weight_name: m.limits(context.limits) for m in measures if m.kind != "people"}
    weights = [
        *(alias(limits.weight(size, context.dialect), name) for name, limits in own.items()),
        alias(context.limits.of_people.weight(groups, context.dialect), "v"),
    ]
    weighted = select([exp.Star(), *weights], relation(lines, "l"))
    added = [alias(_weighted_line(measure, i, context), f"m{i}") for i, measure in enumerate(measures)]
    return select([*keys, *added], relation(weighted, "k"))


def _value(measure: Measure, context: StatementContext) -> exp.Expr | None:
    """Return the SQL of the value that a measure of a series sums, in grid steps; for a count of values 1, and NULL for
    NULL; None for counts of rows and people."""
    if measure.kind in ("rows", "people"):
        return None
    moments = measure.moments
    assert moments is not None
    if measure.kind == "sum":
        assert moments.grid is not None
        assert moments.bounds is not None
        return whole_steps(moments.value, moments.grid, moments.bounds, context.find)
    missing = nodes.is_null(expressions.compile(moments.value, context.find).node)
    return case([(missing, nodes.literal(None))], integer(1))


def _of_rows(measure: Measure, place: int) -> exp.Expr:
    """Return the aggregate of the rows of one person, period and group that a measure needs, before weighting: their
    number, or the sum of column ``x<place>``."""
    if measure.kind in ("rows", "people"):
        return count_rows()
    return total(coalesce(plain_column(f"x{place}"), integer(0)))


def _weighted_line(measure: Measure, place: int, context: StatementContext) -> exp.Expr:
    """Return what a person adds to measure number ``place`` in one period and group: the sum of rows times the person's
    weight, rounded toward 0."""
    number, limits = plain_column(f"s{place}"), measure.limits(context.limits)
    if measure.kind == "people":
        return plain_column("v")
    shift = limits.bits() - period_places(measure, limits)

    w = plain_column(measure.weight_name)
    return _toward_zero(measure, number, lambda x: shift_right(binary("*", x, w), shift))
