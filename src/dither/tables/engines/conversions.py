"""Columns whose source holds them as another type: dates and numbers written as text, whole numbers stored as doubles.

What cannot be read is NULL, on every engine the same: a text is checked by patterns before it is cast, so that no cast
can fail, and none is more generous than another.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

from dither.tables.card.model import Type
from dither.tables.card.values import EXACT_INTEGERS, DatePart, number_format, parts_of
from dither.tables.query import nodes
from dither.tables.query.nodes import Dialect, binary

_YEAR = "[0-9]{4}"
_LEAP_YEAR = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_DAY = (
    f"({_YEAR}-(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|{_YEAR}-(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    f"|{_YEAR}-02-(0[1-9]|1[0-9]|2[0-8])|{_LEAP_YEAR}-02-29)"
)
_TIME = " ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"


def parsed_text(x: exp.Expr, format: str, type: Type, dialect: Dialect) -> exp.Expr:
    """Return a text as the date, timestamp or number that it writes in this format; NULL where it does not.

    >>> "LPAD(REGEXP_EXTRACT" in nodes.render(parsed_text(nodes.column("x"), "%d.%m.%Y", "date", "spark"), "spark")
    True
    """
    if type in ("integer", "number"):
        return _parsed_number(x, format, type)
    parts = parts_of(format)
    pieces = {part.name: _piece(x, parts, place, dialect) for place, part in enumerate(parts) if part.most}
    day = _joined([pieces["Y"], pieces["m"], pieces["d"]], "-")
    valid = _DAY
    if type == "timestamp":
        day = _joined([day, _joined([pieces.get(name, exp.Literal.string("00")) for name in "HMS"], ":")], " ")
        valid += _TIME
    conditions = [
        _matches(day.copy(), valid, dialect),
        binary("<>", pieces["Y"].copy(), exp.Literal.string("0000")),
    ]
    moment = nodes.try_cast(day, type) if dialect == "duckdb" else nodes.cast(day, type)
    return nodes.case([(reduce(lambda one, other: binary("and", one, other), conditions), moment)], exp.null())


def _piece(x: exp.Expr, parts: Sequence[DatePart], place: int, dialect: Dialect) -> exp.Expr:
    """Return one part of a date, with zeros before it; the whole text is of the format, or the part is none of a date.

    The mark at the end of the text makes ``$`` mean its end on every engine: in Java it also matches before a last
    line end.
    """
    pattern = ""
    for other, part in enumerate(parts):
        digits = f"[0-9]{{{part.least},{part.most}}}"
        pattern += f"[{part.name}]" if not part.most else f"({digits})" if other == place else digits
    marked = nodes.concatenate(x.copy(), exp.Literal.string("!"))
    arguments = [marked, exp.Literal.string(f"^{pattern}[!]$")]
    if dialect == "postgres":  # with a pattern as second argument, its only group
        piece: exp.Expr = exp.Anonymous(this="SUBSTRING", expressions=arguments)
    else:
        piece = exp.Anonymous(this="REGEXP_EXTRACT", expressions=[*arguments, exp.Literal.number(1)])
    if parts[place].least == parts[place].most:
        return piece
    width = exp.Literal.number(parts[place].most)
    return exp.Anonymous(this="LPAD", expressions=[piece, width, exp.Literal.string("0")])


_SPACES, _SIGNS = "\u00a0\u202f\u2009", {"\u2019": "'", "\u2212": "-"}
"""Spaces and signs that are written in numbers beside those of ASCII."""


def _parsed_number(x: exp.Expr, format: str, type: Type) -> exp.Expr:
    """Return a text as a number of a format. What is cast is checked before: digits, one point, one sign; every engine
    reads the nearest double from them.

    A word beside the number holds no digit and is never a separator alone, so taking it out changes nothing else; the
    longer one goes first, since the other may be a part of it.
    """
    written = number_format(format, type)
    assert written is not None
    before, after = (
        f"({''.join(f'[{sign}]' for sign in unit)})?" if unit else "" for unit in (written.before, written.after)
    )
    most = 18 if type == "integer" else 30
    groups = (most - 1) // 3
    thousands, decimal = f"[{written.thousands}]", f"[{written.decimal}]"
    digits = f"[0-9]{{1,{most}}}"
    if written.thousands:
        digits = f"({digits}|[0-9]{{1,3}}({thousands}[0-9]{{3}}){{1,{groups}}})"
    if written.decimal:
        digits = f"({digits}({decimal}[0-9]{{0,30}})?|{decimal}[0-9]{{1,30}})"
    pattern = f" *([+-]? *{before} *|{before} *[+-] *){digits} *{after} *"
    units = "".join(dict.fromkeys(written.before + written.after))
    characters = "".join(dict.fromkeys(f"0-9{units}{written.thousands}{written.decimal} +")) + "-"
    text = nodes.translate(x, _SPACES + "".join(_SIGNS), " " * len(_SPACES) + "".join(_SIGNS.values()))
    plain = text.copy()
    for unit in sorted(filter(None, (written.before, written.after)), key=len, reverse=True):
        plain = _without(plain, unit)
    for sign in dict.fromkeys(f"{written.thousands} +"):
        plain = _without(plain, sign)
    if written.decimal == ",":
        plain = nodes.call("REPLACE", plain, exp.Literal.string(","), exp.Literal.string("."))
    readable = nodes.fits(text, characters, pattern)
    return nodes.case([(readable, nodes.cast(plain, type))], exp.null())


def _without(x: exp.Expr, text: str) -> exp.Expr:
    return nodes.call("REPLACE", x, exp.Literal.string(text), exp.Literal.string(""))


def whole_double(x: exp.Expr, dialect: Dialect) -> exp.Expr:
    """Return a double as a BIGINT, NULL where it is no whole number, or one so large that another has the same double.

    DuckDB leaves a condition out that holds by the statistics of a Parquet file, in which NaN is not counted.

    >>> nodes.render(whole_double(nodes.column("x"), "duckdb"), "duckdb")[:30]
    'CASE WHEN ("x" >= CAST(\\'-90071'
    """
    within = binary(
        "and",
        binary(">=", x.copy(), nodes.double(-EXACT_INTEGERS)),
        binary("<=", x.copy(), nodes.double(EXACT_INTEGERS)),  # NaN is larger than every number
    )
    whole = binary("=", x.copy(), nodes.call("FLOOR", x.copy()))
    number = nodes.try_cast(x, "integer") if dialect == "duckdb" else nodes.cast(x, "integer")
    converted = nodes.case([(whole, number)], exp.null())
    return nodes.case([(within, converted)], exp.null())


def unit_text(x: exp.Expr, canonical: exp.Expr, dialect: Dialect, *, is_double: bool = False) -> exp.Expr:
    """Return a column that names people as text: of every value but NULL and NaN a text of its own.

    ``canonical`` is the column as text, NULL where it is not valid. A text that no function of ours may be given (one
    that is not valid, or too long) is stood for by its SHA-256. Two doubles that are equal have one text; whole numbers
    have that of a BIGINT. NaN, which stands for a missing number, is nobody.

    >>> nodes.render(unit_text(nodes.column("x"), nodes.column("x"), "spark"), "spark")[:31]
    'COALESCE(CASE WHEN OCTET_LENGTH'
    """
    if is_double:
        whole = nodes.cast(whole_double(x.copy(), dialect), "text")
        number = binary("<=", x.copy(), nodes.double(float("inf")))  # NaN is larger than every number
        return nodes.case([(number, nodes.coalesce(whole, canonical))], exp.null())
    text = nodes.cast(x.copy(), "text")
    return nodes.coalesce(nodes.limit_text(canonical, text.copy()), _digest(text, dialect))


def _digest(text: exp.Expr, dialect: Dialect) -> exp.Expr:
    """Return the SHA-256 of a text, in hexadecimal, after its name."""
    if dialect == "postgres":
        raw = nodes.call("SHA256", nodes.call("CONVERT_TO", text, exp.Literal.string("UTF8")))
        hashed = nodes.call("ENCODE", raw, exp.Literal.string("hex"))
    elif dialect == "spark":
        raw = exp.Cast(this=text, to=exp.DataType.build("BINARY"))
        hashed = exp.Anonymous(this="SHA2", expressions=[raw, exp.Literal.number(256)])
    else:
        hashed = nodes.call("SHA256", text)
    return nodes.bytewise(nodes.concatenate(exp.Literal.string("sha256:"), hashed), dialect)


def _joined(pieces: list[exp.Expr], sign: str) -> exp.Expr:
    return reduce(
        lambda one, other: nodes.concatenate(nodes.concatenate(one, exp.Literal.string(sign)), other),
        [piece.copy() for piece in pieces],
    )


def _matches(x: exp.Expr, pattern: str, dialect: Dialect) -> exp.Expr:
    """Return whether the whole of a text fits a regular expression of digits, signs, choices and counts."""
    if dialect == "duckdb":
        return nodes.call("REGEXP_FULL_MATCH", x, exp.Literal.string(pattern))
    return exp.RegexpLike(this=nodes.operand(x), expression=exp.Literal.string(f"^({pattern})$"))
