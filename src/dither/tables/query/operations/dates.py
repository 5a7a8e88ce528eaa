"""Dates and timestamps: the start of a period, and the parts of a date.

A week begins on Monday, which is day 1 of it; weeks of a year are those of ISO 8601. Seconds are whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from dither.errors import InvalidArgument
from dither.tables.card.wording import clip
from dither.tables.query import engine_nodes
from dither.tables.query.operations.base import (
    Checked,
    Compiler,
    Function,
    Operation,
    Read,
    Syntax,
    TypedExpression,
    TypedSql,
    constant,
    describe,
    refuse_other_parts,
    refuse_sql,
)
from dither.tables.query.ranges import Range
from dither.tables.query.tree import Call, Expression, Literal

if TYPE_CHECKING:
    from sqlglot import exp

PERIODS = ("year", "quarter", "month", "week", "day", "hour")


def _check(_call: Call, args: list[TypedExpression]) -> Checked:
    (period, _), (value, kind) = args
    name = period.value if isinstance(period, Literal) else None
    if not isinstance(name, str) or name.lower() not in PERIODS:
        got = clip(repr(name)) if isinstance(name, str) else "no constant"
        fix = "write for example date_trunc('month', x)"
        raise InvalidArgument("date_trunc", f"one of {', '.join(PERIODS)}", got, fix)
    if kind not in ("date", "timestamp"):
        raise InvalidArgument("date_trunc", "a date or timestamp", describe(kind), "use a column of dates")
    if kind == "date" and name.lower() == "hour":
        raise InvalidArgument("date_trunc", "a timestamp for 'hour'", "a date", "use 'day' or longer")
    return [Literal(name.lower()), value], kind


def _compile(call: Call, compiler: Compiler) -> TypedSql:
    period, value = call.args
    result = compiler.value(value)
    if not isinstance(period, Literal) or period.value not in PERIODS or result.type not in ("date", "timestamp"):
        raise InvalidArgument(
            "date_trunc", f"a period ({', '.join(PERIODS)}) and a date", "other arguments", "date_trunc('month', x)"
        )
    if result.type == "date" and period.value == "hour":
        raise InvalidArgument("date_trunc", "a period of days or more", "hour of a date", "use 'day'")
    return TypedSql(engine_nodes.start_of_period(str(period.value), result.node, result.type), result.type)


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
    if first.key in ("column", "var") and first.name.lower() in PERIODS and second.name.lower() not in PERIODS:
        return Call("date_trunc", (Literal(first.name.lower()), read(second)))
    period = second.name.lower() if second.key in ("column", "var") else ""
    if period == "isoweek":
        period = "week"
    elif period == "week":
        raise refuse_sql("weeks that begin on Monday", "WEEK", "write ISOWEEK, or date_trunc('week', x)")
    if period not in PERIODS:
        raise refuse_sql("date_trunc('month', x)", "no such period", f"name one of {', '.join(PERIODS)} as a constant")
    return Call("date_trunc", (Literal(period), read(first)))


# -- parts ------------------------------------------------------------------------------------------------------------

PARTS = {
    "year": (1, 9999), "quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31), "doy": (1, 366),
    "isodow": (1, 7), "hour": (0, 23), "minute": (0, 59), "second": (0, 59),
}  # fmt: skip
"""The parts of a date and their least and largest values."""
_TIME_PARTS = ("hour", "minute", "second")
_PART_NAMES = {
    **{name: name for name in PARTS}, **{f"{name}s": name for name in ("year", "month", "day", "hour", "minute")},
    "dayofyear": "doy", "dayofmonth": "day", "weekofyear": "week", "isoweek": "week", "dow_iso": "isodow",
    "dayofweek_iso": "isodow",
}  # fmt: skip


def _part(name: object, kind: str | None, text: str) -> str:
    """The part of a date that a name stands for; refused where a value of this type has none."""
    if isinstance(name, str) and name.lower() in ("dow", "dayofweek", "weekday"):
        fix = "write ISODOW(x), or EXTRACT(ISODOW FROM x): Monday is 1, Sunday is 7"
        raise InvalidArgument(text, "a day of the week with one meaning", "DOW", fix)
    part = _PART_NAMES.get(name.lower()) if isinstance(name, str) else None
    if part is None:
        got = clip(repr(name)) if isinstance(name, str) else "no constant"
        raise InvalidArgument(text, f"one of {', '.join(PARTS)}", got, "write EXTRACT(MONTH FROM x)")
    if kind not in ("date", "timestamp"):
        fix = "use a column of dates, or CAST(x AS DATE)"
        raise InvalidArgument(text, "a date or timestamp", "NULL" if kind is None else f"a {kind}", fix)
    if kind == "date" and part in _TIME_PARTS:
        raise InvalidArgument(text, f"a timestamp for '{part}'", "a date", "use 'day' or longer")
    return part


def _check_part(call: Call, args: list[TypedExpression]) -> Checked:
    (name, _), (value, kind) = args
    return [Literal(_part(constant(name), kind, call.op)), value], "integer"


def _compile_part(call: Call, compiler: Compiler) -> TypedSql:
    name, value = call.args
    result = compiler.value(value)
    part = _part(constant(name), None if result.is_null else result.type, call.op)
    return TypedSql(engine_nodes.date_part(part, result.node), "integer", Range.whole(*PARTS[part]))


def part_of_date(name: str, value: date) -> int:
    """A part of a date.

    >>> [part_of_date(name, date(2024, 12, 30)) for name in ("year", "quarter", "week", "isodow", "doy")]
    [2024, 4, 1, 1, 365]
    """
    part = _PART_NAMES[name.lower()]
    if part == "quarter":
        return (value.month + 2) // 3
    if part == "week":
        return value.isocalendar().week
    if part == "isodow":
        return value.isoweekday()
    if part == "doy":
        return value.timetuple().tm_yday
    return int(getattr(value, part))


def _read_part(name: str) -> Function:
    part = Literal(_PART_NAMES[name.lower()])
    return Function(name, 1, f"{name}(x)", lambda args, read: _part_call(part, args[0], read))


def _read_date_part(args: Sequence[exp.Expr], read: Read) -> Expression:
    word = args[0].key in ("column", "var") and not args[0].args.get("table")
    name: Expression = Literal(args[0].name.lower()) if word else read(args[0])
    return _part_call(name, args[1], read)


def _read_extract(node: exp.Expr, read: Read) -> Expression:
    refuse_other_parts(node, "this", "expression")
    return _part_call(Literal(node.this.name.lower()), node.args["expression"], read)


def _part_call(part: Expression, node: exp.Expr, read: Read) -> Expression:
    """A part of a date, or the years of AGE(later, earlier)."""
    while node.key == "paren":
        node = node.this
    if node.key != "anonymous" or node.name.upper() != "AGE":
        return Call("date_part", (part, read(node)))
    name = constant(part)
    if not isinstance(name, str) or _PART_NAMES.get(name.lower()) != "year" or len(node.expressions) != 2:
        fix = "write EXTRACT(YEAR FROM AGE(DATE '2024-01-31', x)), or DATE_DIFF('day', x, DATE '2024-01-31')"
        raise refuse_sql("complete years between two dates", "another part of AGE, or one date", fix)
    return _complete_years(*(read(item) for item in node.expressions))


def _complete_years(end: Expression, start: Expression) -> Expression:
    """How many whole years lie between two dates: one border of years less where the day of the year is not reached.
    The difference of dates is refused of timestamps, where the time of the day would count as well."""

    def day_of_year(value: Expression) -> Expression:
        month, day = (Call("date_part", (Literal(part), value)) for part in ("month", "day"))
        return Call("+", (Call("*", (month, Literal(100))), day))

    def one_where(op: str) -> Expression:
        return Call("case", (Call(op, (day_of_year(end), day_of_year(start))), Literal(1), Literal(0)))

    borders = Call("date_diff", (Literal("year"), start, end))
    forward, backward = Call("-", (borders, one_where("<"))), Call("+", (borders, one_where(">")))
    return Call("case", (Call(">=", (Call("-", (end, start)), Literal(0))), forward, backward))


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
        examples=tuple(f"DATE_TRUNC('{period}', t)" for period in PERIODS),
    ),
    Operation(
        "date_part",
        f"(part, x), part a constant of {', '.join(PARTS)}: that part of a date; Monday is 1; "
        "YEAR of AGE(later, earlier) is complete years",
        2,
        2,
        _check_part,
        _compile_part,
        part_of_date,
        "EXTRACT(MONTH FROM d)",
        special_functions=(
            *(
                _read_part(name)
                for name in (
                    *("YEAR", "QUARTER", "MONTH", "WEEK", "WEEKOFYEAR", "DAY", "DAYOFMONTH", "DAYOFYEAR", "ISODOW"),
                    *("HOUR", "MINUTE", "SECOND"),
                )
            ),
            Function("DATE_PART", 2, "DATE_PART('month', x)", _read_date_part),
            Function("DATEPART", 2, "DATEPART('month', x)", _read_date_part),
        ),
        syntax=Syntax("Extract", read=_read_extract),
        examples=(
            *(f"DATE_PART('{part}', t)" for part in PARTS),
            *(f"EXTRACT({part} FROM d)" for part in PARTS if part not in _TIME_PARTS),
            "EXTRACT(YEAR FROM AGE(DATE '2024-02-29', d))",
            "YEAR(AGE(d, DATE '2023-03-01'))",
        ),
        range_rule="that of the part: months are 1 to 12",
    ),
)
"""The operations on dates."""
