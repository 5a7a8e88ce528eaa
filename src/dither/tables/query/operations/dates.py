"""Operations on dates and timestamps: the start of a period, parts, names, intervals and differences.

A week begins on Monday, which is day 1 of it (ISODOW); weeks of a year are those of ISO 8601. Seconds are whole.

DOW, DAYOFWEEK and WEEKDAY count from Sunday = 0 on every engine, as DuckDB does, and PostgreSQL by DOW. BigQuery and
Spark count from Sunday = 1, and Spark's WEEKDAY from Monday = 0: answers say which numbers these are.

A date with an interval stays a date. Which dates stay within the years 1 to 9999 is computed here and written as a
comparison with two constants: PostgreSQL would fail on others, and they are NULL. Differences count the borders between
two moments, as DATE_DIFF of DuckDB and DATEDIFF of other engines do: from 31 January to 1 February is one month. Weeks
are refused there: one version of DuckDB counts Mondays, another one periods of 7 days.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from dither.errors import InvalidArgument
from dither.tables.card.model import Type
from dither.tables.card.values import clip
from dither.tables.query.operations.base import (
    Checked,
    Compiler,
    Function,
    Operation,
    Range,
    Read,
    Syntax,
    TypedExpression,
    TypedSql,
    check_alike,
    constant,
    describe,
    nodes,
    refuse_other_parts,
    refuse_sql,
    require_alike,
    wrong_type,
)
from dither.tables.query.tree import Call, Expression, Literal, show

if TYPE_CHECKING:
    from sqlglot import exp

PERIODS = ("year", "quarter", "month", "week", "day", "hour")


def _check(_call: Call, args: list[TypedExpression]) -> Checked:
    """Return the checked arguments of date_trunc: a constant period and a date or timestamp, whose type the result
    has."""
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
    """Return date_trunc as SQL."""
    period, value = call.args
    result = compiler.value(value)
    if not isinstance(period, Literal) or period.value not in PERIODS or result.type not in ("date", "timestamp"):
        raise InvalidArgument(
            "date_trunc", f"a period ({', '.join(PERIODS)}) and a date", "other arguments", "date_trunc('month', x)"
        )
    if result.type == "date" and period.value == "hour":
        raise InvalidArgument("date_trunc", "a period of days or more", "hour of a date", "use 'day'")
    return TypedSql(nodes.start_of_period(str(period.value), result.node, result.type), result.type)


def start_of_period(period: str, value: date) -> date:
    """Return the first moment of the ``period`` (year, quarter, month, week from Monday, day or hour) that contains a
    date.

    ``value`` is a date, for which an hour means its day, or a timestamp.
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
    """Return the call that date_trunc('month', x), or DATE_TRUNC(x, MONTH) as in BigQuery, stands for."""
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
    "isodow": (1, 7), "dow": (0, 6), "isoyear": (1, 9999), "hour": (0, 23), "minute": (0, 59), "second": (0, 59),
}  # fmt: skip
"""The parts of a date and their least and largest values."""
_TIME_PARTS = ("hour", "minute", "second")
_PART_NAMES = {
    **{name: name for name in PARTS}, **{f"{name}s": name for name in ("year", "month", "day", "hour", "minute")},
    "dayofyear": "doy", "dayofmonth": "day", "weekofyear": "week", "isoweek": "week", "dow_iso": "isodow",
    "dayofweek_iso": "isodow", "dayofweek": "dow", "weekday": "dow", "yearofweek": "isoyear",
}  # fmt: skip


def _part(name: object, kind: str | None, text: str) -> str:
    """Return the canonical name of a part of a date, such as "doy"; refuse unknown parts, and times of a date
    without one. ``text`` names the function in messages."""
    part = _PART_NAMES.get(name.lower()) if isinstance(name, str) else None
    if part is None:
        got = clip(repr(name)) if isinstance(name, str) else "no constant"
        raise InvalidArgument(text, f"one of {', '.join(PARTS)}", got, "write EXTRACT(MONTH FROM x)")
    _require_date(kind, text)
    if kind == "date" and part in _TIME_PARTS:
        raise InvalidArgument(text, f"a timestamp for '{part}'", "a date", "use 'day' or longer")
    return part


def _require_date(kind: str | None, text: str) -> None:
    """Refuse a part of what is no date or timestamp; ``text`` names the function in messages."""
    if kind not in ("date", "timestamp"):
        fix = "use a column of dates, or CAST(x AS DATE)"
        raise InvalidArgument(text, "a date or timestamp", "NULL" if kind is None else f"a {kind}", fix)


def _check_part(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the checked arguments of a part of a date; the result is a whole number."""
    (name, _), (value, kind) = args
    return [Literal(_part(constant(name), kind, call.op)), value], "integer"


def _compile_part(call: Call, compiler: Compiler) -> TypedSql:
    """Return a part of a date as SQL, with its range."""
    name, value = call.args
    result = compiler.value(value)
    part = _part(constant(name), None if result.is_null else result.type, call.op)
    return TypedSql(nodes.date_part(part, result.node), "integer", Range.whole(*PARTS[part]))


def part_of_date(name: str, value: date) -> int:
    """Return the part ``name`` of the date or timestamp ``value``, such as the month; names are those of SQL."""
    part = _PART_NAMES[name.lower()]
    if part == "quarter":
        return (value.month + 2) // 3
    if part == "week":
        return value.isocalendar().week
    if part in ("isodow", "dow"):
        return value.isoweekday() % (7 if part == "dow" else 8)
    if part == "isoyear":
        return value.isocalendar().year
    if part == "doy":
        return value.timetuple().tm_yday
    return int(getattr(value, part))


def _read_part(name: str) -> Function:
    """Return a function of one argument that extracts a part, such as MONTH(x)."""
    part = Literal(_PART_NAMES[name.lower()])
    return Function(name, 1, f"{name}(x)", lambda args, read: _part_call(part, args[0], read))


def _read_date_part(args: Sequence[exp.Expr], read: Read) -> Expression:
    """Return the call that DATE_PART('month', x) or DATEPART(month, x) stands for."""
    word = args[0].key in ("column", "var") and not args[0].args.get("table")
    name: Expression = Literal(args[0].name.lower()) if word else read(args[0])
    return _part_call(name, args[1], read)


def _read_extract(node: exp.Expr, read: Read) -> Expression:
    """Return the call that EXTRACT(MONTH FROM x) stands for."""
    refuse_other_parts(node, "this", "expression")
    return _part_call(Literal(node.this.name.lower()), node.args["expression"], read)


def _part_call(part: Expression, node: exp.Expr, read: Read) -> Expression:
    """Return the call for a part of a date; the year of AGE(later, earlier) is the number of complete years."""
    while node.key == "paren":
        node = node.this
    if node.key != "anonymous" or node.name.upper() != "AGE":
        return Call("date_part", (part, read(node)))
    name = constant(part)
    if not isinstance(name, str) or _PART_NAMES.get(name.lower()) != "year" or len(node.expressions) != 2:
        fix = "write EXTRACT(YEAR FROM AGE(DATE '2024-01-31', x)), or DATE_DIFF('day', x, DATE '2024-01-31')"
        raise refuse_sql("complete years between two dates", "another part of AGE, or one date", fix)
    return _complete_years(*(read(item) for item in node.expressions))


NAMES = {
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": (
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
        "December",
    ),
}  # fmt: skip
"""The names of days, from Monday on, and of months, as DAYNAME and MONTHNAME write them."""


def _name_kind(expression: Expression, kind: str | None, text: str) -> str:
    """Return of what the name is asked for, "day" or "month"; refuse others, and what is no date."""
    name = constant(expression)
    if name not in NAMES:
        raise InvalidArgument(text, "'day' or 'month'", show(expression), "write DAYNAME(x), or MONTHNAME(x)")
    _require_date(kind, text)
    return str(name)


def _check_name(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the checked arguments of the name of a day or a month."""
    (name, _), (value, kind) = args
    return [Literal(_name_kind(name, kind, call.op)), value], "text"


def _compile_name(call: Call, compiler: Compiler) -> TypedSql:
    """Return the name of a day or a month as SQL."""
    result = compiler.value(call.args[1])
    name = _name_kind(call.args[0], None if result.is_null else result.type, call.op)
    return TypedSql(nodes.date_name(name, result.node), "text")


def name_of_date(name: str, value: date) -> str:
    """Return the name of the day or the month of a date.

    >>> name_of_date("day", date(2024, 2, 29)), name_of_date("month", date(2024, 2, 29))
    ('Thursday', 'February')
    """
    return NAMES[name][value.weekday() if name == "day" else value.month - 1]


def _read_name(function: str, name: str) -> Function:
    """Return the function of one argument that gives the name of a day or month, such as DAYNAME(x)."""
    return Function(function, 1, f"{function}(x)", lambda args, read: Call("date_name", (Literal(name), read(args[0]))))


def _complete_years(end: Expression, start: Expression) -> Expression:
    """Return the number of complete years between two dates: the difference of years, less one where the anniversary
    is not reached. Timestamps are refused by the difference of dates, since their time of day would count, too."""

    def day_of_year(value: Expression) -> Expression:
        """Return 100 * month + day, which orders the days of any year."""
        month, day = (Call("date_part", (Literal(part), value)) for part in ("month", "day"))
        return Call("+", (Call("*", (month, Literal(100))), day))

    def one_where(op: str) -> Expression:
        """Return 1 where the end's day of the year compares so with the start's, else 0."""
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
        f"(part, x), part a constant of {', '.join(PARTS)}: that part of a date; Monday is 1, of DOW, Sunday is 0; "
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
                    *("DAYOFWEEK", "WEEKDAY", "ISOYEAR", "HOUR", "MINUTE", "SECOND"),
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
    Operation(
        "date_name",
        "(what, x), what 'day' or 'month': its English name, such as Monday",
        2,
        2,
        _check_name,
        _compile_name,
        name_of_date,
        "DAYNAME(d)",
        special_functions=(_read_name("DAYNAME", "day"), _read_name("MONTHNAME", "month")),
        examples=("DAYNAME(t)", "MONTHNAME(d)", "MONTHNAME(t)"),
    ),
)
"""The operations on dates."""


UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_TIME_UNITS = ("hour", "minute", "second")
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_SECONDS = {"week": 7 * 86_400, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_EXAMPLE = "write for example x + INTERVAL 5 DAY"


def _unit(expression: Expression, kind: Type | None, text: str) -> str:
    """Return the unit that the constant ``expression`` names, such as "day"; refuse unknown units, and units of time
    for a date.

    ``kind`` is the type of what it is added to; ``text`` names the operation in errors.
    """
    value = constant(expression)
    name = value.lower().removesuffix("s") if isinstance(value, str) else None
    if name not in UNITS:
        raise InvalidArgument(text, f"one of {', '.join(UNITS)}", show(expression), _EXAMPLE)
    if kind not in ("date", "timestamp"):
        raise InvalidArgument(text, "a date or timestamp", describe(kind), "use a column of dates")
    if kind == "date" and name in _TIME_UNITS:
        fix = "use days or more, or CAST(x AS TIMESTAMP)"
        raise InvalidArgument(text, f"a timestamp for {name}s", "a date", fix)
    return name


# -- a date and an interval -----------------------------------------------------------------------------------------


def _count(call: Call) -> int:
    """Return the constant number of units of an interval."""
    value = constant(call.args[1])
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidArgument("interval", "a constant whole number", show(call.args[1]), _EXAMPLE)
    return value


def _check_add(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the checked arguments of date_add, whose result has the type of the date; refuse an interval longer
    than the calendar."""
    (unit, _), (count, _), (value, kind) = args
    name = _unit(unit, kind, "interval")
    assert kind is not None
    _limits(_count(call), name, kind)
    return [Literal(name), count, value], kind


def _compile_add(call: Call, compiler: Compiler) -> TypedSql:
    """Return a date or timestamp plus a constant interval (``call``) as SQL, NULL where the result would leave the
    years 1 to 9999.

    The arguments are unit, count and value. Years and quarters are added as months, weeks as days.
    """
    result = compiler.value(call.args[2])
    unit, count = _unit(call.args[0], None if result.is_null else result.type, "interval"), _count(call)
    first, last = _limits(count, unit, result.type)
    steps, name = (count * _MONTHS[unit], "month") if unit in _MONTHS else (count, unit)
    if name == "week":
        steps, name = 7 * count, "day"
    inside = nodes.between(result.node, nodes.literal(first), nodes.literal(last))
    later = nodes.add_interval(result.node, steps, name, result.type)
    return TypedSql(nodes.case([(inside, later)], nodes.literal(None)), result.type)


def _limits(count: int, unit: str, kind: str) -> tuple[date, date]:
    """Return the first and last value of the type ``kind`` to which ``count`` times ``unit`` can be added within the
    calendar.
    """
    first, last = (datetime.min, datetime.max) if kind == "timestamp" else (date.min, date.max)
    result = (first, add_interval(unit, -count, last)) if count >= 0 else (add_interval(unit, -count, first), last)
    if result[0] is None or result[1] is None:
        raise InvalidArgument("interval", "one within the years 1 to 9999", "a longer one", _EXAMPLE)
    return result[0], result[1]


def add_interval(unit: str, count: int, value: date) -> date | None:
    """Return the date or timestamp ``value`` moved by ``count`` times ``unit``; None outside the years 1 to 9999.

    A month later is clipped to the last day of a shorter month.
    """
    if unit in _MONTHS:
        month = (value.year - 1) * 12 + value.month - 1 + count * _MONTHS[unit]
        if not 0 <= month < 9999 * 12:
            return None
        year, month = month // 12 + 1, month % 12 + 1
        return value.replace(year=year, month=month, day=min(value.day, calendar.monthrange(year, month)[1]))
    try:
        return value + timedelta(seconds=count * _SECONDS[unit])
    except OverflowError:
        return None


def read_interval(node: exp.Expr, value: Expression, read: Read, sign: int) -> Expression:
    """Return the call that adds INTERVAL n UNIT (``node``) to a ``value``; ``sign`` -1 subtracts it.

    ``read`` reads the number where it has a sign or brackets. More than nine digits are refused: no date lies so far
    away.
    """
    unit = node.args.get("unit")
    count: Any = node.this.name if node.this is not None and node.this.key == "literal" else None
    if node.this is not None and node.this.key in ("neg", "paren"):
        inner = read(node.this)
        count = str(inner.value) if isinstance(inner, Literal) else None
    digits = count.removeprefix("-") if isinstance(count, str) else ""
    if unit is None or unit.key != "var" or not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
        raise refuse_sql(
            "an interval of one constant and one unit", "several units, or a column", "write INTERVAL 5 DAY"
        )
    name = unit.name.lower().removesuffix("s")
    if name not in UNITS:
        raise refuse_sql(f"an interval of {', '.join(UNITS)}", clip(name), "write INTERVAL 5 DAY")
    return Call("date_add", (Literal(name), Literal(sign * int(count)), value))


def _read_add(sign: int) -> Callable[[Sequence[exp.Expr], Read], Expression]:
    """Return the reader of DATE_ADD (``sign`` 1) or DATE_SUB (-1)."""

    def read_arguments(args: Sequence[exp.Expr], read: Read) -> Expression:
        """Return the call; a bare number of days is an interval, too."""
        value = read(args[0])
        if args[1].key == "interval":
            return read_interval(args[1], value, read, sign)
        days = constant(read(args[1]))
        if not isinstance(days, int) or isinstance(days, bool):
            raise refuse_sql("an interval", "a column or an expression", "write DATE_ADD(x, INTERVAL 5 DAY)")
        return Call("date_add", (Literal("day"), Literal(sign * days), value))

    return read_arguments


def _read_dateadd(args: Sequence[exp.Expr], read: Read) -> Expression:
    """Return the call that DATEADD(day, 5, x) stands for."""
    unit, count = _unit_name(args[0]), constant(read(args[1]))
    if unit is None or not isinstance(count, int) or isinstance(count, bool):
        raise refuse_sql("DATEADD(day, 5, x)", "other arguments", "write DATE_ADD(x, INTERVAL 5 DAY)")
    return Call("date_add", (Literal(unit), Literal(count), read(args[2])))


# -- between two dates ----------------------------------------------------------------------------------------------


def _check_difference(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the checked arguments of date_diff, both of one type; the result is a whole number."""
    (unit, _), *ends = args
    values, kind = check_alike(call, ends)
    return [Literal(_difference_unit(unit, kind, call)), *values], "integer"


def _difference_unit(expression: Expression, kind: Type | None, call: Call) -> str:
    """Return the unit of a difference (``call``) that the constant ``expression`` names; refuse weeks, which engines
    count differently."""
    unit = _unit(expression, kind, call.op)
    if unit != "week":
        return unit
    fix = "write DATE_DIFF('day', start, end) // 7 for periods of 7 days, or for Mondays "
    fix += "DATE_DIFF('day', date_trunc('week', start), date_trunc('week', end)) // 7"
    raise InvalidArgument(call.op, "a unit that all engines count alike", "week", fix)


def _compile_difference(call: Call, compiler: Compiler) -> TypedSql:
    """Return date_diff as SQL: how many borders of the unit lie between two moments."""
    start, end = require_alike([compiler.value(argument) for argument in call.args[1:]])
    if start.is_null or end.is_null or start.type != end.type:
        raise wrong_type("two dates or two timestamps", f"{start.type} and {end.type}")
    unit = _difference_unit(call.args[0], start.type, call)
    steps = nodes.binary("-", _unit_number_sql(unit, end), _unit_number_sql(unit, start))
    if unit == "day":
        steps = nodes.days_between(_day(end), _day(start))
    return _within_periods(nodes.cast(steps, "integer"), unit, (start, end), call.args[1:])


def compile_days(start: TypedSql, end: TypedSql, arguments: Sequence[Expression]) -> TypedSql:
    """Return the number of days between two compiled dates, with its range."""
    days = nodes.days_between(end.node, start.node)
    return _within_periods(days, "day", (start, end), arguments)


def _day(value: TypedSql) -> exp.Expr:
    """Return the day of a timestamp; a date unchanged."""
    return nodes.cast(value.node, "date") if value.type == "timestamp" else value.node


def _unit_number_sql(unit: str, value: TypedSql) -> exp.Expr:
    """Return the number of ``unit`` from the beginning of the calendar to the date ``value``, as SQL (see
    :func:`_unit_number`).

    Quarters and months are counted from the parts of a date; of two such numbers only the difference matters.
    """
    if unit in _MONTHS:
        year = nodes.date_part("year", value.node)
        if unit == "year":
            return year
        parts = nodes.integer(12 // _MONTHS[unit])
        return nodes.binary("+", nodes.binary("*", year, parts), nodes.date_part(unit, value.node))
    days: exp.Expr = nodes.days_between(_day(value), nodes.literal(date.min))
    result = days
    for part, count in (("hour", 24), ("minute", 60), ("second", 60))[: UNITS.index(unit) - 4]:
        steps = nodes.binary("*", result, nodes.integer(count))
        result = nodes.binary("+", steps, nodes.date_part(part, value.node))
    return result


def _within_periods(
    steps: exp.Expr, unit: str, parts: tuple[TypedSql, TypedSql], arguments: Sequence[Expression]
) -> TypedSql:
    """Return a difference in ``steps`` with its range, and hold it within that.

    ``parts`` are start and end as SQL, ``arguments`` as they were written, and ``unit`` is what the steps count. A
    constant is one moment, a column lies within the card's bounds, any other value anywhere in the calendar.
    """
    calendar_ends = (datetime.min, datetime.max) if parts[0].type == "timestamp" else (date.min, date.max)
    start, end = (
        (value, value) if isinstance(value := constant(item), date) else part.period or calendar_ends
        for part, item in zip(parts, arguments, strict=True)
    )
    low, high = difference(unit, start[1], end[0]), difference(unit, start[0], end[1])
    if any(part.period is not None for part in parts):
        ends = nodes.literal(low), nodes.literal(high)
        arms = [(nodes.binary("<=", steps, ends[0]), ends[0]), (nodes.binary(">=", steps, ends[1]), ends[1])]
        steps = nodes.case(arms, steps)
    return TypedSql(steps, "integer", Range.whole(low, high))


def difference(unit: str, start: date, end: date) -> int:
    """Return how many borders of a unit lie between two moments, negative where the end is before the start: one
    month from 31 January to 1 February."""
    if not isinstance(start, date) or not isinstance(end, date):
        raise TypeError
    return _unit_number(unit, end) - _unit_number(unit, start)


def _unit_number(unit: str, value: date) -> int:
    """Return how many whole units lie between the start of the year 1 and the date or timestamp ``value``."""
    if unit in _MONTHS:
        return ((value.year - 1) * 12 + value.month - 1) // _MONTHS[unit]
    days = value.toordinal() - 1
    if unit == "day":
        return days
    clock = value.time() if isinstance(value, datetime) else time()
    return (days * 86_400 + clock.hour * 3_600 + clock.minute * 60 + clock.second) // _SECONDS[unit]


def _read_difference(args: Sequence[exp.Expr], read: Read) -> Expression:
    """Return the call that DATE_DIFF stands for in any of four orders: ('day', start, end), (day, start, end), (end,
    start, DAY) and (end, start)."""
    if len(args) == 2:
        return Call("date_diff", (Literal("day"), read(args[1]), read(args[0])))
    first, last = (_unit_name(item) for item in (args[0], args[-1]))
    if args[0].key == "literal" and first is not None:
        last = None  # a column may be called day
    elif args[-1].key == "literal" and last is not None:
        first = None
    if (first is None) == (last is None):
        raise refuse_sql("one unit", "none or two", "write DATE_DIFF('day', start, end)")
    if first is not None:
        return Call("date_diff", (Literal(first), read(args[1]), read(args[2])))
    return Call("date_diff", (Literal(str(last)), read(args[1]), read(args[0])))


def _unit_name(node: exp.Expr) -> str | None:
    """Return the unit that a node names as text or as a bare word; None where it names none."""
    text = node.key == "literal" and node.is_string
    word = node.key in ("column", "var") and not node.args.get("table")
    name = node.name.lower().removesuffix("s")
    return name if (text or word) and name in UNITS else None


DATE_ARITHMETIC = (
    Operation(
        "date_add",
        f"(unit, n, x), unit and n constants, {', '.join(UNITS)}: x plus n units, of the same type; a day that "
        "a month lacks is its last",
        3, 3, _check_add, _compile_add, add_interval, "d + INTERVAL 1 MONTH",
        special_functions=(
            Function("DATE_ADD", 2, "DATE_ADD(x, INTERVAL 5 DAY)", _read_add(1)),
            Function("DATE_SUB", 2, "DATE_SUB(x, INTERVAL 5 DAY)", _read_add(-1)),
            Function("DATEADD", 3, "DATEADD(day, 5, x)", _read_dateadd),
        ),
        examples=(
            "d - INTERVAL '1' YEAR", "d + INTERVAL '45 days'", "DATE_ADD(d, INTERVAL 2 WEEK)", "DATE_SUB(d, 31)",
            "t + INTERVAL 5 HOUR", "t - INTERVAL 90 MINUTE", "t + INTERVAL 1 QUARTER", "t + INTERVAL 1 SECOND",
            "INTERVAL 3 DAY + t", "DATEADD(month, -1, d)",
        ),
        null_where="the result is not within the years 1 to 9999",
    ),
    Operation(
        "date_diff",
        "(unit, start, end): how many borders of units, other than weeks, lie between two dates or two timestamps; "
        "a - b of dates is days",
        3, 3, _check_difference, _compile_difference, difference, "DATE_DIFF('day', d, DATE '2024-05-01')",
        special_functions=tuple(
            Function(name, (2, 3), "DATE_DIFF('day', start, end)", _read_difference)
            for name in ("DATE_DIFF", "DATEDIFF")
        ),
        examples=(
            *(f"DATE_DIFF('{unit}', t, TIMESTAMP '2024-02-26 03:30:00')" for unit in UNITS if unit != "week"),
            "DATEDIFF(d, DATE '2023-12-31')", "DATE_DIFF(d, DATE '2020-02-29', QUARTER)", "DATEDIFF(month, d, d)",
        ),
        range_rule="that of the calendar; constants, and columns with bounds, narrow it",
    ),
)  # fmt: skip
"""The operations on dates and intervals."""
