"""What each person adds in each period of a series: one statement, whose lines are bounded for a person and a period.

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
from collections.abc import Sequence

from sqlglot import exp

from dither.tables.compile import expressions
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.expressions import whole_steps
from dither.tables.compile.limits import Limits
from dither.tables.compile.queries import alias, count_rows, over, relation, select, total
from dither.tables.compile.statements import Measure
from dither.tables.query import nodes
from dither.tables.query.nodes import binary, call, case, cast, coalesce, integer, plain_column
from dither.tables.query.tree import Expression

_WEIGHT_BITS = 10
_WIDTH = 16
SUM_BITS = 13
"""Values that are summed are rounded to a grid of some ``2^13`` steps, or to whole numbers where those are fewer."""


def period_limits(rows: int, has_unit: bool) -> Limits:
    """The most that one person counts for in a period: so many rows.

    >>> period_limits(3, True).total, period_limits(1, False).bits()
    (Fraction(3, 1), 0)
    """
    return Limits(1, rows, 1, weighted=has_unit, exceeded=has_unit, max_bits=_WEIGHT_BITS)


def places(measure: Measure, limits: Limits) -> int:
    """The binary places of what a person adds to a measure: as many as weights have, but no more than keep what one row
    adds below ``2^16``. Noise of few steps is drawn fast, and far larger than such a step.

    >>> places(Measure("rows"), period_limits(3, True))
    10
    """
    counted = measure.limits(limits)
    return max(0, min(counted.bits(measure.top), _WIDTH - measure.top.bit_length()))


def sensitivity(measure: Measure, limits: Limits) -> int:
    """The l1 norm of what one person adds to all groups of a period, in units of the numbers of the statement."""
    return math.ceil(measure.limits(limits).total * measure.top * (1 << places(measure, limits)))


def unit(measure: Measure, limits: Limits) -> float:
    """How many of these whole numbers are worth 1: one row, one person, or 1 in the units of the value."""
    steps = 1 << places(measure, limits)
    grid = measure.moments.grid if measure.kind == "sum" and measure.moments is not None else None
    return float(steps) if grid is None else grid.scale * steps


def person_periods(context: StatementContext, measures: Sequence[Measure], period: Expression) -> Statement:
    """A line for each person ``u``, period ``t`` and group that holds anything, with what the person adds to each
    measure, ``m0``, ``m1``, …, as whole numbers. Where every row is a person, a line for each period and group.
    """
    return context.once("periods", period, *measures, build=lambda: _person_periods(context, measures, period))


def _person_periods(context: StatementContext, measures: Sequence[Measure], period: Expression) -> exp.Select:
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
    weights = [
        alias(context.limits.weight(size, context.dialect_sql), "w"),
        alias(context.limits.of_people.weight(groups, context.dialect_sql), "v"),
    ]
    weighted = select([exp.Star(), *weights], relation(lines, "l"))
    added = [alias(_weighted(measure, i, context), f"m{i}") for i, measure in enumerate(measures)]
    return select([*keys, *added], relation(weighted, "k"))


def _value(measure: Measure, context: StatementContext) -> exp.Expr | None:
    """What a measure reads of each row."""
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
    """What the rows of one line add, before they are weighted; people are rows where every row is a person."""
    if measure.kind in ("rows", "people"):
        return count_rows()
    return total(coalesce(plain_column(f"x{place}"), integer(0)))


def _weighted(measure: Measure, place: int, context: StatementContext) -> exp.Expr:
    """What a person adds with one line, rounded toward zero."""
    number, limits = plain_column(f"s{place}"), context.limits
    if measure.kind == "people":
        return plain_column("v")
    shift = limits.bits() - places(measure, limits)

    def times_weight(x: exp.Expr) -> exp.Expr:
        return context.dialect_sql.shift_right(binary("*", x, plain_column("w")), shift)

    grid = measure.moments.grid if measure.moments is not None else None
    if grid is None or grid.low >= 0:
        return times_weight(number)
    negative = binary("<", number, integer(0))
    size = times_weight(case([(negative, nodes.negate(number))], number))
    return case([(negative, nodes.negate(size))], size)
