"""What is done to the noisy table, in plain Python: columns, HAVING, ORDER BY, LIMIT. It costs nothing.

NULL is None, and spreads as in SQL: a comparison with it is unknown, a condition that is unknown keeps no row. Division
by zero, and any number that is not finite, is None. NULLs sort last, rising or falling; rows that are equal keep
their order.

>>> from dither.tables.query.tree import Call, Column, Literal, Order
>>> rows = [{"region": "a", "n": 5, "total": 10}, {"region": "b", "n": 0, "total": 3}]
>>> shape = Shape({"region": Column("region"), "mean": Call("/", (Column("total"), Column("n")))})
>>> apply(shape, ["region", "n", "total"], rows)
[{'region': 'a', 'mean': 2.0}, {'region': 'b', 'mean': None}]
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from dither.errors import InvalidArgument, message
from dither.tables.query.tree import Call, Column, Expression, Literal, Shape, columns
from dither.tables.query.typecheck import LARGEST, formed
from dither.tables.query.wording import clip, closest

Row = Mapping[str, Any]

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_UPPER = str.maketrans(ascii_lowercase, ascii_uppercase)


def check(shape: Shape, names: Sequence[str]) -> None:
    """Refuse a shape that cannot be applied to a noisy table with these columns.

    >>> check(Shape(columns={"x": Column("m")}), ["n"])
    Traceback (most recent call last):
    dither.InvalidArgument: shape: expected names of groups and aggregates, got 'm'. Fix: use one of n.
    """
    for item in (*shape.columns.values(), shape.having, *(key.value for key in shape.order)):
        if item is None:
            continue
        formed(item)
        for column in sorted(columns(item), key=str):
            if column.table is not None or column.name not in names:
                fix = closest(column.name, names)
                got = repr(clip(column.name))
                raise InvalidArgument(message("shape", "names of groups and aggregates", got, fix))
    if shape.limit is not None and shape.limit < 0:
        raise InvalidArgument(message("limit", "a whole number from 0 on", shape.limit, "pass limit=10"))


def apply(shape: Shape, names: Sequence[str], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows of the answer: those kept, in order, with the columns shown (all of ``names`` where none are stated).

    >>> apply(Shape(limit=1), ["n"], [{"n": 3}, {"n": 4}])
    [{'n': 3}]
    """
    check(shape, names)
    kept = [row for row in rows if shape.having is None or evaluate(shape.having, row) is True]
    for key in reversed(shape.order):
        keyed = [(evaluate(key.value, row), row) for row in kept]
        known = [item for item in keyed if item[0] is not None]
        try:
            known.sort(key=operator.itemgetter(0), reverse=key.descending)
        except TypeError:
            raise _mixed("ORDER BY") from None
        kept = [row for _, row in known] + [row for value, row in keyed if value is None]
    shown = shape.columns or {name: Column(name) for name in names}
    return [{name: evaluate(value, row) for name, value in shown.items()} for row in kept[: shape.limit]]


def evaluate(expression: Expression, row: Row) -> Any:
    """The value of an expression on one row.

    >>> evaluate(Call("+", (Column("n"), Literal(1))), {"n": 2})
    3
    """
    if isinstance(expression, Literal):
        return representable(expression.value)
    if isinstance(expression, Column):
        return representable(row[expression.name])
    lazy = _LAZY.get(expression.op)
    if lazy is not None:
        return lazy(expression.args, row)
    values = [evaluate(item, row) for item in expression.args]
    if None in values and expression.op != "is_null":
        return None
    try:
        result = _STRICT[expression.op](*values)
    except TypeError:
        raise _mixed(expression.op) from None
    except OverflowError:
        return None
    return representable(result)


def representable(value: Any) -> Any:
    """A value that can be recorded, shown and exported: a whole number beyond 64 bits is a float, and a number that
    is not finite is None. Every step of :func:`evaluate` ends here, so numbers do not grow with the expression.

    >>> representable(2**63 - 1), representable(2**63), representable(float("inf")), representable(10**400)
    (9223372036854775807, 9.223372036854776e+18, None, None)
    """
    if isinstance(value, int) and not -LARGEST - 1 <= value <= LARGEST:
        try:
            return float(value)
        except OverflowError:
            return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _mixed(what: str) -> InvalidArgument:
    return InvalidArgument(message(what, "values of one kind", "values of different kinds", "use one kind in a column"))


def _both(args: Sequence[Expression], row: Row) -> bool | None:
    return _all([evaluate(item, row) for item in args])


def _either(args: Sequence[Expression], row: Row) -> bool | None:
    values = [evaluate(item, row) for item in args]
    return True if True in values else None if None in values else False


def _all(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def _between(args: Sequence[Expression], row: Row) -> bool | None:
    x, low, high = Literal(evaluate(args[0], row)), args[1], args[2]
    return _all([evaluate(Call(">=", (x, low)), row), evaluate(Call("<=", (x, high)), row)])


def _case(args: Sequence[Expression], row: Row) -> Any:
    for when, then in zip(args[:-1:2], args[1::2], strict=True):
        if evaluate(when, row) is True:
            return evaluate(then, row)
    return evaluate(args[-1], row)


def _coalesce(args: Sequence[Expression], row: Row) -> Any:
    return next((value for item in args if (value := evaluate(item, row)) is not None), None)


def _nullif(args: Sequence[Expression], row: Row) -> Any:
    value, other = (Literal(evaluate(item, row)) for item in args)
    return None if evaluate(Call("=", (value, other)), row) is True else value.value


def _compared(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(a: Any, b: Any) -> bool:
        dates = isinstance(a, date) and isinstance(b, date)
        if dates and isinstance(a, datetime) != isinstance(b, datetime):
            a, b = _moment(a), _moment(b)
        if isinstance(a, str) != isinstance(b, str):
            raise TypeError
        return bool(compare(a, b))

    return compared


def _moment(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time())


def _in(value: Any, *others: Any) -> bool:
    equal = _STRICT["="]
    return any(equal(value, item) for item in others)


def like(text: str, pattern: str) -> bool:
    """Whether a text fits a pattern of ``%`` (anything) and ``_`` (any one character).

    >>> like("north-east", "north%"), like("north", "n_rth"), like("North", "n%")
    (True, True, False)
    """
    at = place = 0
    star, retry = -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            star, retry, place = place, at, place + 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            retry += 1
            at, place = retry, star + 1
        else:
            return False
    return all(item == "%" for item in pattern[place:])


def truncated(period: str, value: date) -> date:
    """The start of the year, quarter, month, week (Monday), day or hour.

    >>> truncated("quarter", date(2024, 5, 17))
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


def _bin(value: float, *edges: float) -> int | None:
    if not edges[0] <= value <= edges[-1]:
        return None
    return min(bisect_right(edges, value), len(edges) - 1) - 1


def _divided(a: float, b: float) -> float | None:
    return None if b == 0 else a / b


def _numeric(compute: Callable[..., Any]) -> Callable[..., Any]:
    """On numbers only: Python would repeat a text, join lists and subtract dates."""

    def computed(*values: Any) -> Any:
        if not all(isinstance(value, (int, float)) for value in values):
            raise TypeError
        return compute(*values)

    return computed


_LAZY: dict[str, Callable[[Sequence[Expression], Row], Any]] = {
    "and": _both,
    "or": _either,
    "between": _between,
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
}
_STRICT: dict[str, Callable[..., Any]] = {
    "+": _numeric(operator.add),
    "-": _numeric(operator.sub),
    "*": _numeric(operator.mul),
    "/": _numeric(_divided),
    "neg": _numeric(operator.neg),
    "abs": _numeric(abs),
    "=": _compared(operator.eq),
    "<>": _compared(operator.ne),
    "<": _compared(operator.lt),
    "<=": _compared(operator.le),
    ">": _compared(operator.gt),
    ">=": _compared(operator.ge),
    "not": operator.not_,
    "in": _in,
    "like": like,
    "is_null": lambda value: value is None,
    "date_trunc": truncated,
    "bin": _bin,
    "lower": lambda text: text.translate(_LOWER),
    "upper": lambda text: text.translate(_UPPER),
}
