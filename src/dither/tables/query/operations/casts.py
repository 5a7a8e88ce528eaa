"""CAST and TRY_CAST among the types of a card. Both are NULL where a value cannot be cast.

Casts of engines differ in what they read and how they round, and fail on what they cannot read. So a text is cast only
where a regular expression says that every engine reads it, and reads the same:

* as an integer: a sign or none, and 1 to 18 digits;
* as a number: a sign or none, 1 to 30 digits, a point and 1 to 30 more or none, an exponent of at most two digits or
  none: of that, every engine reads the nearest double, and none is too large or too small;
* as a boolean: ``true`` or ``false``, in small letters or capitals;
* as a date: ``YYYY-MM-DD``, a day of the calendar from year 1 on;
* as a timestamp: a date, or a date, a space or ``T``, and ``HH:MM``, ``HH:MM:SS`` or ``HH:MM:SS.ffffff``.

There may be no spaces around it: write CAST(TRIM(s) AS INTEGER). A number becomes the nearest integer, of two the even
one, as DuckDB and PostgreSQL cast doubles, and NULL beyond 64 bits. What they compute as decimals, whole numbers with
constants that have a point, they cast with halves away from 0: there ROUND says what is meant, and CAST is refused. No
two engines write doubles as text alike, so that is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from dither.errors import InvalidArgument
from dither.tables.card.model import TYPES, Type
from dither.tables.card.values import clip
from dither.tables.query.operations.base import (
    NUMBERS,
    Checked,
    Compiler,
    Function,
    Operation,
    Range,
    Read,
    Syntax,
    TypedExpression,
    TypedSql,
    as_date,
    as_timestamp,
    constant,
    describe,
    nodes,
    refuse_other_parts,
    refuse_sql,
    whole_number,
)
from dither.tables.query.tree import Call, Column, Expression, Literal, show

if TYPE_CHECKING:
    from sqlglot import exp

_SQL_TYPES: dict[Type, tuple[str, ...]] = {
    "integer": ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT"),
    "number": ("FLOAT", "DOUBLE", "DECIMAL"),
    "text": ("TEXT", "VARCHAR", "CHAR", "NVARCHAR", "NCHAR"),
    "boolean": ("BOOLEAN",),
    "date": ("DATE",),
    "timestamp": ("TIMESTAMP", "DATETIME", "TIMESTAMPNTZ"),
}
_NAMES = {name: kind for kind, names in _SQL_TYPES.items() for name in names}
_CASTS: dict[Type, tuple[Type, ...]] = {
    "integer": ("integer", "number", "text", "boolean"),
    "number": ("integer", "number", "boolean"),
    "text": TYPES,
    "boolean": ("integer", "number", "text", "boolean"),
    "date": ("text", "date", "timestamp"),
    "timestamp": ("text", "date", "timestamp"),
}

_INTEGER = "[+-]?[0-9]{1,18}"
_NUMBER = "[+-]?[0-9]{1,30}([.][0-9]{1,30})?([eE][+-]?[0-9]{1,2})?"
_LEAP_YEAR = "[0-9][0-9](0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00"
CALENDAR_DAY = (
    "[0-9]{4}-(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|[0-9]{4}-(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    f"|[0-9]{{4}}-02-(0[1-9]|1[0-9]|2[0-8])|({_LEAP_YEAR})-02-29"
)
"""The days of the calendar as YYYY-MM-DD, as a regular expression; year 0 is excluded elsewhere."""
_TIME = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
_GRAMMARS: dict[Type, tuple[str, str]] = {
    "integer": ("0-9+-", _INTEGER),
    "number": ("0-9.eE+-", _NUMBER),
    "date": ("0-9-", CALENDAR_DAY),
    "timestamp": ("0-9T:. -", f"({CALENDAR_DAY})([ T]{_TIME})?"),
}
_LARGEST_NUMBER, _LEAST_NUMBER = 1e130, 1e-130
_LARGEST_INTEGER = float(10**18)


def _require_cast(source: Type | None, target: object) -> Type:
    """Return the target type of a CAST; refuse an unknown type, and one to which values of the type ``source`` (None:
    NULL) cannot be cast."""
    if target not in TYPES:
        raise InvalidArgument("CAST", f"one of {', '.join(TYPES)}", clip(str(target)), "write CAST(x AS DOUBLE)")
    if source is None:
        raise InvalidArgument("CAST", "a value", "NULL", "leave the CAST out")
    if target not in _CASTS[source]:
        expected = f"a type that {describe(source)} can become ({', '.join(_CASTS[source])})"
        fix = "use another type, or leave the CAST out"
        if source == "number" and target == "text":
            fix = "engines write doubles differently; round first: CAST(ROUND(x) AS TEXT)"
        raise InvalidArgument("CAST", expected, str(target), fix)
    return target


def _check(_call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of CAST, the target type as a constant and the value, and the target type."""
    (target, _), (value, source) = args
    kind = _require_cast(source, constant(target))
    return [target, value], kind


def _compile(call: Call, compiler: Compiler, as_number: bool = False) -> TypedSql:
    """Return CAST or TRY_CAST as SQL that is NULL where a value cannot be cast, and never fails.

    With ``as_number`` the result is a double clamped to its bounds, as arithmetic needs it.
    """
    target, argument = constant(call.args[0]), call.args[1]
    value = compiler.value(argument)
    known = value.range
    source: Type = "integer" if value.type == "number" and known is not None and known.quantum >= 1 else value.type
    kind = _require_cast(None if value.is_null else source, target)
    if kind == source == value.type and (kind not in NUMBERS or (kind == "integer" and not as_number)):
        return value
    if source in NUMBERS:
        return _compile_number(argument, value, source, kind, compiler, as_number)
    if source == "text":
        return _compile_text(value, kind)
    if source == "boolean" and kind != "text":
        number = nodes.double if kind == "number" else nodes.integer
        arms = [(value.node, number(1)), (nodes.not_(value.node), number(0))]
        return TypedSql(nodes.cast(nodes.case(arms, nodes.literal(None)), kind), kind, Range.whole(0, 1))
    if source == "timestamp" and kind == "text":
        return TypedSql(nodes.timestamp_text(value.node), "text")
    return TypedSql(nodes.cast(value.node, kind), kind)


def _compile_number(
    argument: Expression, value: TypedSql, source: Type, kind: Type, compiler: Compiler, as_number: bool
) -> TypedSql:
    """Return the CAST of a number as SQL.

    ``value`` is the ``argument`` compiled without clamping, ``source`` its type ("integer" also for a double whose
    values are all whole), and ``kind`` the type it is cast to. With ``as_number`` the result is a double clamped to its
    bounds, and a column without bounds is refused. Rounding a double to an integer clamps it as well where it has
    bounds.
    """
    if kind == "boolean":
        return TypedSql(nodes.binary("<>", value.node, nodes.integer(0)), "boolean")
    if source == "integer" and (kind == "text" or (kind == "integer" and not as_number)):
        whole = whole_number(argument, compiler) if value.type == "number" else value
        return whole if kind == "integer" else TypedSql(nodes.cast(whole.node, "text"), "text")
    if kind == "number" and not as_number:
        node = value.node if value.type == "number" else nodes.cast(value.node, "number")
        return TypedSql(node, "number", value.range)
    try:
        bounded = compiler.number(argument)
    except InvalidArgument:
        if as_number:
            raise
        bounded = value
    if source == "integer" or kind == "number":
        return bounded
    if _computed_type(argument, compiler) == "decimal":
        fix = f"write ROUND({show(argument)}) for halves away from 0, or CAST it AS DOUBLE first for halves to even"
        raise InvalidArgument("CAST AS INTEGER", "a double", "decimals, of which engines round halves", fix)
    return _rounded(bounded)


_DECIMAL = ("+", "-", "*", "neg", "abs", "round", "trunc", "case", "if", "coalesce", "greatest", "least", "nullif")
"""Operations of which engines compute decimals from decimals."""


def _computed_type(expression: Expression, compiler: Compiler) -> str:
    """Return the type in which engines compute a number: "integer", "number" for a double, or "decimal", which they
    make of constants with a point and integers, and which they round differently."""
    if isinstance(expression, Literal):
        return "decimal" if isinstance(expression.value, float) else "integer"
    if isinstance(expression, Column) or expression.op not in _DECIMAL:
        return compiler.value(expression).type
    values = expression.args
    if expression.op in ("case", "if"):
        values = (*values[1:-1:2], values[-1]) if expression.op == "case" else values[1:]
    kinds = {_computed_type(item, compiler) for item in values}
    return next((kind for kind in ("number", "decimal") if kind in kinds), "integer")


def _rounded(value: TypedSql) -> TypedSql:
    """Return a compiled double rounded to the nearest integer, halves to even, as SQL; NULL beyond 64 bits.

    Adding 2^52 and subtracting it again rounds a smaller positive double, since all doubles from 2^52 on are whole.
    """
    x, limit, whole = value.node, float(1 << 63), float(1 << 52)
    least, zero, most = (nodes.double(end) for end in (-whole, 0.0, whole))
    up = nodes.binary("-", nodes.binary("+", x, most), most)
    down = nodes.binary("+", nodes.binary("-", x, most), most)
    ends = nodes.double(-limit), nodes.double(math.nextafter(limit, 0))
    arms = [
        (nodes.between(x, zero, most), nodes.cast(up, "integer")),
        (nodes.between(x, least, zero), nodes.cast(down, "integer")),
        (nodes.between(x, *ends), nodes.cast(x, "integer")),
    ]
    known = None
    if value.range is not None:
        low, high = (max(-limit, min(end, limit)) for end in (value.range.low, value.range.high))
        known = Range.whole(round(low), round(high))
    return TypedSql(nodes.case(arms, nodes.literal(None)), "integer", known)


def _compile_text(value: TypedSql, kind: Type) -> TypedSql:
    """Return the CAST of a text to the type ``kind`` as SQL.

    Texts that match the regular expression of the type are cast, since every engine reads these alike; others, and
    dates of the year 0, which not all engines have, are NULL.
    """
    if kind == "boolean":
        small = nodes.translate(value.node, "TRUEFALS", "truefals")
        arms = [
            (nodes.binary("=", small, nodes.literal(text)), nodes.literal(text == "true")) for text in ("true", "false")
        ]
        return TypedSql(nodes.case(arms, nodes.literal(None)), "boolean")
    readable = nodes.fits(value.node, *_GRAMMARS[kind])
    known = None
    if kind in ("date", "timestamp"):
        year_0 = nodes.like(value.node, nodes.literal("0000%"))
        readable = nodes.binary("and", readable, nodes.not_(year_0))
    elif kind == "integer":
        known = Range.whole(-_LARGEST_INTEGER, _LARGEST_INTEGER)
    else:
        known = Range.between(-_LARGEST_NUMBER, _LARGEST_NUMBER, _LEAST_NUMBER)
    return TypedSql(nodes.case([(readable, nodes.cast(value.node, kind))], nodes.literal(None)), kind, known)


# -- in Python ------------------------------------------------------------------------------------------------------


def cast_value(target: str, value: Any) -> Any:
    """Return a Python value cast to the type ``target`` by the rules of the SQL; None where it cannot be cast."""
    source = _type_of(value)
    kind = _require_cast(source, target)
    if source == "text":
        return _read_text(value, kind)
    if kind == "text":
        return _write(value)
    if kind == "boolean":
        return value != 0
    if kind == "number":
        return float(value)
    if kind == "integer":
        whole = round(value) if source == "number" else int(value)
        return whole if -(1 << 63) <= whole < 1 << 63 else None
    if kind == "timestamp":
        return value if isinstance(value, datetime) else datetime.combine(value, time())
    return value.date() if isinstance(value, datetime) else value


def _type_of(value: Any) -> Type:
    """Return the card's type of a Python value; raise TypeError for others."""
    kinds: tuple[tuple[type, Type], ...] = (
        (bool, "boolean"), (int, "integer"), (float, "number"), (str, "text"), (datetime, "timestamp"), (date, "date"),
    )  # fmt: skip
    for kind, name in kinds:
        if isinstance(value, kind):
            return name
    raise TypeError


def _read_text(text: str, kind: Type) -> Any:
    """Return the value of the type ``kind`` that a text states in the form that CAST accepts; None for other texts."""
    if kind == "text":
        return text
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower()) if text.isascii() else None
    characters, pattern = _GRAMMARS[kind]
    if re.search(f"[^{characters}]", text) or not re.fullmatch(pattern, text):
        return None
    if kind in ("date", "timestamp") and text.startswith("0000"):
        return None
    if kind in NUMBERS:
        return int(text) if kind == "integer" else float(text)
    return date.fromisoformat(text) if kind == "date" else datetime.fromisoformat(text)


def _write(value: Any) -> str:
    """Return a value other than a double as the text that CAST AS TEXT makes of it on every engine."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(" ", "microseconds")
    return str(value)


# -- in SQL ---------------------------------------------------------------------------------------------------------


def _read_cast(node: exp.Expr, read: Read) -> Expression:
    """Return the expression of sqlglot's node for CAST(x AS type).

    DECIMAL(p, s) becomes ROUND to s digits, and a constant text cast to a date or timestamp becomes that constant.
    """
    refuse_other_parts(node, "this", "to", "_type", "safe")
    target = node.args["to"]
    name = getattr(target.this, "value", None)
    kind = _NAMES.get(str(name))
    if kind is None:
        fix = "write INTEGER, DOUBLE, TEXT, BOOLEAN, DATE or TIMESTAMP"
        raise refuse_sql("a type of the card", f"{clip(target.sql('duckdb'))} in CAST", fix)
    sizes = [item.name for item in target.expressions]
    if kind == "number" and len(sizes) in (1, 2) and all(size.isdigit() for size in sizes):
        digits = int(sizes[1]) if len(sizes) == 2 and len(sizes[1]) < 3 else 0
        return Call("round", (Call("cast", (Literal(kind), read(node.this))), Literal(digits)))
    if target.expressions:
        fix = f"write LEFT(CAST({clip(node.this.sql('duckdb'))} AS TEXT), 10) for the first 10 characters"
        raise refuse_sql("a type without a size", f"{name}(…) in CAST", fix)
    if node.this.key == "literal" and node.this.is_string and kind in ("date", "timestamp"):
        return Literal(as_date(node.this.name) if kind == "date" else as_timestamp(node.this.name))
    return Call("cast", (Literal(kind), read(node.this)))


def _read_date(args: Sequence[exp.Expr], read: Read) -> Expression:
    """Return the expression of DATE(x): a cast, or for DATE('2024-01-31') a constant date."""
    if args[0].key == "literal" and args[0].is_string:
        return Literal(as_date(args[0].name))
    return Call("cast", (Literal("date"), read(args[0])))


CASTS = (
    Operation(
        "cast", f"(type, x), type a constant of {', '.join(TYPES)}: x as that; TRY_CAST is the same",
        2, 2, _check, _compile, cast_value, "CAST(x AS INTEGER)",
        compile_number=lambda call, compiler: _compile(call, compiler, as_number=True),
        special_functions=(Function("DATE", 1, "DATE(x)", _read_date),),
        syntax=Syntax("Cast", read=_read_cast), other_syntax=(Syntax("TryCast", read=_read_cast),),
        examples=(
            "TRY_CAST(n AS DOUBLE)", "CAST(b AS INTEGER)", "b::double", "CAST(b AS TEXT)", "CAST(n AS TEXT)",
            "n::boolean", "CAST(x AS BOOLEAN)", "CAST(d AS TEXT)", "CAST(t AS TEXT)", "CAST(d AS TIMESTAMP)",
            "CAST(t AS DATE)", "CAST(CAST(n AS TEXT) AS INTEGER)", "CAST(CAST(n AS TEXT) || '.5' AS DOUBLE)",
            "CAST(REPLACE(s, 'a', 'tRue') AS BOOLEAN)", "CAST(CAST(d AS TEXT) AS DATE)",
            "CAST(CAST(t AS TEXT) AS TIMESTAMP)",
            "CAST(CAST(d AS TEXT) AS TIMESTAMP)", "CAST(REPLACE(CAST(d AS TEXT), '29', '31') AS DATE)",
            "CAST(CAST(b AS TEXT) AS BOOLEAN)", "CAST(x * 0.5 + n AS INTEGER)", "CAST(x AS DOUBLE) + 1",
            "CAST(x AS DECIMAL(10, 2))", "DATE(t)",
            "CAST(n + 1 AS TEXT)",
        ),
        null_where="the value cannot be cast", range_rule="that of x; of a boolean, 0 to 1; of a text, ±1e18 or ±1e130",
    ),
)  # fmt: skip
"""CAST and TRY_CAST."""
