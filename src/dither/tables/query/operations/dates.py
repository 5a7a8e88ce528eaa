"""Dates and timestamps: the start of a period."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from dither.errors import InvalidArgument, message
from dither.tables.card.wording import clip
from dither.tables.query.operations.base import (
    Checked,
    Compiler,
    Function,
    Operation,
    Read,
    TypedExpression,
    TypedSql,
    describe,
    nodes,
    refuse_sql,
)
from dither.tables.query.tree import Call, Expression, Literal

if TYPE_CHECKING:
    from sqlglot import exp

PERIODS = ("year", "quarter", "month", "week", "day", "hour")


def _check(_call: Call, args: list[TypedExpression]) -> Checked:
    (period, _), (value, kind) = args
    name = period.value if isinstance(period, Literal) else None
    if not isinstance(name, str) or name.lower() not in PERIODS:
        got = clip(repr(name)) if isinstance(name, str) else "something else"
        fix = "write for example date_trunc('month', x)"
        raise InvalidArgument(message("date_trunc", f"one of {', '.join(PERIODS)}", got, fix))
    if kind not in ("date", "timestamp"):
        raise InvalidArgument(message("date_trunc", "a date or timestamp", describe(kind), "use a column of dates"))
    if kind == "date" and name.lower() == "hour":
        raise InvalidArgument(message("date_trunc", "a timestamp for 'hour'", "a date", "use 'day' or longer"))
    return [Literal(name.lower()), value], kind


def _compile(call: Call, compiler: Compiler) -> TypedSql:
    period, value = call.args
    result = compiler.value(value)
    if not isinstance(period, Literal) or period.value not in PERIODS or result.type not in ("date", "timestamp"):
        raise InvalidArgument(
            message(
                "date_trunc", f"a period ({', '.join(PERIODS)}) and a date", "something else", "date_trunc('month', x)"
            )
        )
    if result.type == "date" and period.value == "hour":
        raise InvalidArgument(message("date_trunc", "a period of days or more", "hour of a date", "use 'day'"))
    return TypedSql(nodes.start_of_period(str(period.value), result.node, result.type), result.type)


def start_of_period(period: str, value: date) -> date:
    """The start of the year, quarter, month, week (Monday), day or hour.

    >>> start_of_period("quarter", date(2024, 5, 17))
    datetime.date(2024, 4, 1)
    """
    day = value.date() if isinstance(value, datetime) else value
    if period == "hour" and isinstance(value, datetime):
        return value.replace(minute=0, second=0, microsecond=0)
    if period == "week":
        day = date.min if day.toordinal() <= day.weekday() else day - timedelta(days=day.weekday())
    elif period in ("year", "quarter", "month"):
        month = {"year": 1, "quarter": day.month - (day.month - 1) % 3, "month": day.month}[period]
        day = day.replace(month=month, day=1)
    return datetime.combine(day, time()) if isinstance(value, datetime) else day


def _read(args: Sequence[exp.Expr], read: Read) -> Expression:
    """date_trunc('month', x), or DATE_TRUNC(x, MONTH) as BigQuery has it."""
    first, second = args
    if first.key == "literal" and first.is_string:
        return Call("date_trunc", (Literal(first.name.lower()), read(second)))
    period = second.name.lower() if second.key in ("column", "var") else ""
    if period == "isoweek":
        period = "week"
    elif period == "week":
        raise refuse_sql("weeks that begin on Monday", "WEEK", "write ISOWEEK, or date_trunc('week', x)")
    if period not in PERIODS:
        raise refuse_sql("date_trunc('month', x)", "another form", f"name one of {', '.join(PERIODS)} as a constant")
    return Call("date_trunc", (Literal(period), read(first)))


DATES = (
    Operation(
        "date_trunc",
        f"(period, x), period a literal of {', '.join(PERIODS)}: the start of the period",
        2,
        2,
        _check,
        _compile,
        start_of_period,
        "DATE_TRUNC('month', d)",
        special_functions=tuple(
            Function(name, 2, "date_trunc('month', x)", _read)
            for name in ("DATE_TRUNC", "TIMESTAMP_TRUNC", "DATETIME_TRUNC")
        ),
    ),
)
"""The operations on dates."""

__all__ = ["DATES", "PERIODS", "start_of_period"]
