"""Types of expressions, and the two things that depend on them: what is refused, and which texts are dates.

An expression that passes :func:`typed` means one thing in every engine: no operation sees a kind of value it does not
know, NULL is written only where it has a type (a branch of CASE, an argument of COALESCE), and texts that are compared
with dates have become dates.

>>> from dither.tables.query.tree import Call, Column, Literal
>>> question = Call(">=", (Column("day"), Literal("2024-01-01")))
>>> typed(question, {Column("day"): "date"}.__getitem__)[0].args[1]
Literal(value=datetime.date(2024, 1, 1))
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from datetime import date, datetime, time

from dither.errors import InvalidArgument, WrongType, message
from dither.tables.card.model import Type, Value
from dither.tables.query.tree import COMPARISONS, OPERATIONS, PERIODS, Call, Column, Expression, Literal, walk
from dither.tables.query.wording import clip, closest, show

MAX_DEPTH = 100
MAX_NODES = 20_000
LARGEST = 2**63 - 1

Types = Callable[[Column], Type]
Typed = tuple[Expression, Type | None]
"""An expression and its type; None is the type of a bare NULL."""

_NUMBERS = ("integer", "number")
_ARITY = {"neg": 1, "abs": 1, "not": 1, "is_null": 1, "lower": 1, "upper": 1, "between": 3}
_ARITY |= dict.fromkeys(["+", "-", "*", "/", "and", "or", "like", "date_trunc", "nullif", *COMPARISONS], 2)
_AT_LEAST = {"in": 2, "case": 3, "coalesce": 1, "bin": 3}
_FIXES = {
    frozenset({"text", "integer"}): "write the number without quotes, or the text with quotes",
    frozenset({"text", "number"}): "write the number without quotes, or the text with quotes",
    frozenset({"boolean", "integer"}): "write TRUE or FALSE",
    frozenset({"date", "timestamp"}): "compare dates with dates and timestamps with timestamps",
}


def typed(expression: Expression, types: Types) -> Typed:
    """The expression with its dates as dates, and its type; refused if it makes no sense.

    >>> typed(Call("+", (Column("a"), Literal(1))), {Column("a"): "integer"}.__getitem__)[1]
    'integer'
    """
    measure(expression)
    return _typed(expression, types)


def numeric(expression: Expression, types: Types, what: str) -> Expression:
    """The expression, which is refused unless it is a number; ``what`` needs it.

    >>> numeric(Column("a"), {Column("a"): "number"}.__getitem__, "SUM")
    Column(name='a', table=None)
    """
    checked, kind = typed(expression, types)
    if kind not in _NUMBERS:
        fix = (
            "count instead, or turn it into a number by CASE WHEN … THEN 1 ELSE 0 END"
            if kind in ("text", "boolean")
            else "count instead, or pass a column of numbers"
        )
        raise InvalidArgument(message(what, "a number", f"{show(expression)}, which is {_called(kind)}", fix))
    return checked


def truth(expression: Expression, types: Types, what: str) -> Expression:
    """The expression, which is refused unless it is true or false.

    >>> truth(Column("a"), {Column("a"): "boolean"}.__getitem__, "WHERE")
    Column(name='a', table=None)
    """
    checked, kind = typed(expression, types)
    if kind != "boolean":
        got = f"{show(expression)}, which is {_called(kind)}"
        raise InvalidArgument(message(what, "a condition", got, "compare it with something: x > 0, x = 'a'"))
    return checked


def measure(expression: Expression) -> None:
    """Refuse an expression too large or too deep to be worked on.

    >>> measure(Literal(1))
    """
    waiting: list[tuple[Expression, int]] = [(expression, 1)]
    nodes = 0
    while waiting:
        node, depth = waiting.pop()
        nodes += 1
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            limit = f"at most {MAX_DEPTH} operations inside each other and {MAX_NODES} in all"
            raise InvalidArgument(message("expression", limit, "more", "write long OR chains as x IN (…), or simplify"))
        if isinstance(node, Call):
            waiting.extend((item, depth + 1) for item in node.args)


def formed(expression: Expression) -> None:
    """Refuse an expression that is too large, or has operations that do not exist or lack arguments.

    >>> formed(Call("+", (Literal(1),)))
    Traceback (most recent call last):
    dither.InvalidArgument: +: expected 2 arguments, got 1. Fix: see dither.tables.query.tree.Call.
    """
    measure(expression)
    for node in walk(expression):
        if isinstance(node, Call):
            _formed(node)


def literal_type(value: Value) -> Type | None:
    """The type of a constant that can be written down in any engine.

    >>> literal_type(1.5)
    'number'
    """
    if value is None or isinstance(value, bool):
        return None if value is None else "boolean"
    if isinstance(value, int):
        if not -LARGEST - 1 <= value <= LARGEST:
            raise InvalidArgument(
                message("number", "at most 64 bits", "more", "write it as 1e30, or use a smaller one")
            )
        return "integer"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArgument(message("number", "a finite number", value, "use a number below 1.8e308"))
        return "number"
    if isinstance(value, str):
        if "\0" in value or not _encodes(value):
            raise InvalidArgument(message("text", "valid Unicode without NUL", "a text that is not", "take it out"))
        return "text"
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise InvalidArgument(message("timestamp", "no time zone", "a time zone", "write it in the column's zone"))
        return "timestamp"
    if isinstance(value, date):
        return "date"
    kinds = "a number, text, boolean, date, datetime or None"
    raise WrongType(message("literal", kinds, type(value).__name__, "convert it"))


def as_date(text: str) -> date:
    """The date a text names, as YYYY-MM-DD.

    >>> as_date("2024-02-29")
    datetime.date(2024, 2, 29)
    """
    try:
        value = date.fromisoformat(text)
    except ValueError:
        value = None
    if value is None or value.isoformat() != text:
        moment = None if value is not None else _moment(text)
        if moment is not None and moment.time() == time():
            return moment.date()
        got = "a time of day" if moment is not None else repr(clip(text))
        raise InvalidArgument(message("date", "a date as 'YYYY-MM-DD'", got, "write for example '2024-01-31'"))
    return value


def as_timestamp(text: str) -> datetime:
    """The moment a text names, as YYYY-MM-DD or YYYY-MM-DD HH:MM[:SS[.ffffff]].

    >>> as_timestamp("2024-02-29 12:30")
    datetime.datetime(2024, 2, 29, 12, 30)
    """
    value = _moment(text)
    if value is None:
        expected = "a timestamp as 'YYYY-MM-DD HH:MM:SS', without time zone"
        raise InvalidArgument(
            message("timestamp", expected, repr(clip(text)), "write for example '2024-01-31 12:00:00'")
        )
    return value


def _moment(text: str) -> datetime | None:
    try:
        value = datetime.fromisoformat(text)
        day = date.fromisoformat(text[:10])
    except ValueError:
        return None
    return value if value.tzinfo is None and day.isoformat() == text[:10] and len(text) <= 26 else None


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _formed(call: Call) -> None:
    op, count = call.op, len(call.args)
    if op not in OPERATIONS:
        raise InvalidArgument(message("operation", "one of the known ones", clip(op), closest(op, sorted(OPERATIONS))))
    if count != _ARITY.get(op, count) or count < _AT_LEAST.get(op, 0) or (op == "case" and count % 2 == 0):
        wanted = f"{_ARITY[op]} arguments" if op in _ARITY else "all its arguments"
        raise InvalidArgument(message(op, wanted, f"{count}", "see dither.tables.query.tree.Call"))


def _typed(expression: Expression, types: Types) -> Typed:
    if isinstance(expression, Column):
        return expression, types(expression)
    if isinstance(expression, Literal):
        return expression, literal_type(expression.value)
    _formed(expression)
    op = expression.op
    args = [_typed(item, types) for item in expression.args]
    if op not in ("case", "coalesce"):
        _no_null(expression, args)
    checked, kind = _CHECKS.get(op, _arithmetic)(expression, args)
    return Call(op, tuple(checked)), kind


Checked = tuple[Sequence[Expression], Type]


def _arithmetic(call: Call, args: list[Typed]) -> Checked:
    for item, kind in args:
        if kind not in _NUMBERS:
            got = f"{show(item)}, which is {_called(kind)}"
            fix = (
                "use date_trunc, or compare with a date" if kind in ("date", "timestamp") else "use a column of numbers"
            )
            raise InvalidArgument(message(show(call), "numbers", got, fix))
    whole = call.op != "/" and all(kind == "integer" for _, kind in args)
    return [item for item, _ in args], "integer" if whole else "number"


def _compare(call: Call, args: list[Typed]) -> Checked:
    return _alike(call, args)[0], "boolean"


def _in(call: Call, args: list[Typed]) -> Checked:
    if not all(isinstance(item, Literal) for item, _ in args[1:]):
        raise InvalidArgument(message("IN", "a list of constants", "an expression", "write it as x = … OR x = …"))
    return _compare(call, args)


def _logic(call: Call, args: list[Typed]) -> Checked:
    for item, kind in args:
        if kind != "boolean":
            got = f"{show(item)}, which is {_called(kind)}"
            raise InvalidArgument(message(call.op.upper(), "conditions", got, "compare it with something: x > 0"))
    return [item for item, _ in args], "boolean"


def _like(_call: Call, args: list[Typed]) -> Checked:
    (_, kind), (pattern, _) = args
    if kind != "text":
        raise InvalidArgument(message("LIKE", "a text", _called(kind), "compare it with =, < or BETWEEN"))
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str) or "\\" in pattern.value:
        expected = "a constant pattern of %, _ and other characters, without backslash"
        raise InvalidArgument(message("LIKE", expected, show(pattern), "write for example x LIKE 'a%'"))
    return [item for item, _ in args], "boolean"


def _is_null(_call: Call, args: list[Typed]) -> Checked:
    return [args[0][0]], "boolean"


def _text(call: Call, args: list[Typed]) -> Checked:
    if args[0][1] != "text":
        raise InvalidArgument(message(show(call), "a text", _called(args[0][1]), "use a column of texts"))
    return [args[0][0]], "text"


def _case(call: Call, args: list[Typed]) -> Checked:
    conditions, branches = args[:-1:2], [*args[1::2], args[-1]]
    for item, kind in conditions:
        if kind != "boolean":
            got = f"{show(item)}, which is {_called(kind)}"
            raise InvalidArgument(message("CASE WHEN", "a condition", got, "compare it with something: x > 0"))
    values, kind = _alike(call, branches)
    pairs = zip((item for item, _ in conditions), values, strict=False)
    return [*(item for pair in pairs for item in pair), values[-1]], kind


def _date_trunc(_call: Call, args: list[Typed]) -> Checked:
    (period, _), (value, kind) = args
    name = period.value if isinstance(period, Literal) else None
    if not isinstance(name, str) or name.lower() not in PERIODS:
        got = clip(repr(name)) if isinstance(name, str) else "something else"
        fix = "write for example date_trunc('month', x)"
        raise InvalidArgument(message("date_trunc", f"one of {', '.join(PERIODS)}", got, fix))
    if kind not in ("date", "timestamp"):
        raise InvalidArgument(message("date_trunc", "a date or timestamp", _called(kind), "use a column of dates"))
    if kind == "date" and name.lower() == "hour":
        raise InvalidArgument(message("date_trunc", "a timestamp for 'hour'", "a date", "use 'day' or longer"))
    return [Literal(name.lower()), value], kind


def _bin(_call: Call, args: list[Typed]) -> Checked:
    if args[0][1] not in _NUMBERS:
        raise InvalidArgument(message("bin", "a number", _called(args[0][1]), "use a column of numbers"))
    edges = [item.value for item, kind in args[1:] if isinstance(item, Literal) and kind in _NUMBERS]
    rising = all(a < b for a, b in itertools.pairwise(edges))  # type: ignore[operator]
    if len(edges) < len(args) - 1 or not rising:
        raise InvalidArgument(message("bin", "constant edges that rise", "others", "write them in order, each once"))
    return [item for item, _ in args], "integer"


def _coalesce(call: Call, args: list[Typed]) -> Checked:
    return _alike(call, args)


def _nullif(call: Call, args: list[Typed]) -> Checked:
    values, _ = _alike(call, args)
    first, kind = values[0], args[0][1]
    kind = literal_type(first.value) if isinstance(first, Literal) else kind
    assert kind is not None  # a bare NULL was refused
    return values, kind


_CHECKS: dict[str, Callable[[Call, list[Typed]], Checked]] = {
    **dict.fromkeys([*COMPARISONS, "between"], _compare),
    **dict.fromkeys(["and", "or", "not"], _logic),
    **dict.fromkeys(["lower", "upper"], _text),
    "in": _in,
    "like": _like,
    "is_null": _is_null,
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "date_trunc": _date_trunc,
    "bin": _bin,
}


def _alike(call: Call, args: list[Typed]) -> tuple[list[Expression], Type]:
    """The values as values of one kind, and the kind."""
    varying = {kind for item, kind in args if kind is not None and not isinstance(item, Literal)}
    fixed = {kind for item, kind in args if kind is not None and isinstance(item, Literal)}
    if len(varying) == 1 and varying <= {"date", "timestamp"}:
        (target,) = varying
    else:
        target = next((kind for kind in ("timestamp", "date") if kind in fixed), "text")
    args = [_moved(item, target) if isinstance(item, Literal) else (item, kind) for item, kind in args]
    kinds = sorted({kind for _, kind in args if kind is not None})
    if not kinds:
        raise InvalidArgument(message(show(call), "a value", "only NULL", "write a value, or leave it out"))
    if len(kinds) == 1 or set(kinds) == set(_NUMBERS):
        return [item for item, _ in args], "number" if len(kinds) > 1 else kinds[0]
    fix = _FIXES.get(frozenset(kinds), "use values of one kind")
    raise InvalidArgument(message(show(call), "values of one kind", " and ".join(kinds), fix))


def _moved(literal: Literal, target: str) -> Typed:
    """A constant as a date or timestamp, if it is a text or date beside such."""
    value = literal.value
    if target == "timestamp" and isinstance(value, str):
        value = as_timestamp(value)
    elif target == "date" and isinstance(value, str):
        value = as_date(value)
    elif target == "timestamp" and isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    elif target == "date" and isinstance(value, datetime):
        value = as_date(value.isoformat(sep=" "))
    return Literal(value), literal_type(value)


def _no_null(call: Call, args: list[Typed]) -> None:
    if any(kind is None for _, kind in args):
        fix = "ask for x IS NULL or x IS NOT NULL"
        raise InvalidArgument(message(show(call), "values", "NULL, which makes it NULL always", fix))


def _called(kind: Type | None) -> str:
    return {"integer": "a number", "number": "a number", "boolean": "true or false", None: "NULL"}.get(
        kind, f"a {kind}"
    )
