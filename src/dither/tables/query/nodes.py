"""SQL as sqlglot nodes, in forms on which DuckDB, PostgreSQL and Spark agree to the bit.

Everything that dither sends to an engine is built here or from what is here, and becomes text once, by :func:`render`.
What these forms rely on is tested on all three engines in ``tests/tables/query/test_nodes.py``; the sessions that
make it so (UTC, ANSI mode, plain string literals) are set up in :mod:`dither.tables.engines`.

No expression built here fails on a value: what has no answer is NULL. An analyst would see the engine's error.

Nodes are shared, not copied: a value that an expression uses twice is one node with two users. :func:`render` copies
the whole statement once, which makes a tree of it; :func:`count_characters` says how long that will be.

>>> render(as_text(column("when"), "timestamp", "postgres"), "postgres")
'TO_CHAR("when", \\'YYYY-MM-DD HH24:MI:SS.US\\')'
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, Literal

import sqlglot
from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.model import Type
from dither.tables.card.values import Value, plain_value

Dialect = Literal["duckdb", "postgres", "spark"]
DIALECTS: tuple[Dialect, ...] = ("duckdb", "postgres", "spark")

_TIMESTAMP_FORMATS: dict[Dialect, tuple[str, str]] = {
    "duckdb": ("STRFTIME", "%Y-%m-%d %H:%M:%S.%f"),
    "postgres": ("TO_CHAR", "YYYY-MM-DD HH24:MI:SS.US"),
    "spark": ("DATE_FORMAT", "yyyy-MM-dd HH:mm:ss.SSSSSS"),
}


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """Return a call of a SQL function by its name."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def _named(*names: str) -> dict[Dialect, Callable[..., exp.Expr]]:
    """Return, for each dialect, the function that makes a call from its arguments; ``names`` are what DuckDB,
    PostgreSQL and Spark call the SQL function."""
    return {dialect: functools.partial(call, name) for dialect, name in zip(DIALECTS, names, strict=True)}


def _difference(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return left - right, with each side and the whole in parentheses."""
    return exp.Paren(this=exp.Sub(this=exp.Paren(this=left), expression=exp.Paren(this=right)))


def _formatted(name: str, pattern: str) -> Callable[..., exp.Expr]:
    """Return the function that makes the SQL of a timestamp as text in a format of one engine."""
    return lambda x: exp.Anonymous(this=name, expressions=[x, exp.Literal.string(pattern)])


def _part(name: str) -> Callable[..., exp.Expr]:
    """Return the function that makes EXTRACT(name FROM x)."""
    return lambda x: exp.Extract(this=exp.Var(this=name), expression=x)


DIALECT_FUNCTIONS: dict[str, dict[Dialect, Callable[..., exp.Expr]]] = {
    "_text_bytes": _named("STRLEN", "OCTET_LENGTH", "OCTET_LENGTH"),
    "_text_position": _named("STRPOS", "STRPOS", "INSTR"),
    "_starts_with": _named("STARTS_WITH", "STARTS_WITH", "STARTSWITH"),
    "_days_between": {**_named("", "", "DATEDIFF"), "duckdb": _difference, "postgres": _difference},
    "_day_of_week": {"duckdb": _part("ISODOW"), "postgres": _part("ISODOW"), "spark": _part("DAYOFWEEK_ISO")},
    "_iso_year": {"duckdb": _part("ISOYEAR"), "postgres": _part("ISOYEAR"), "spark": _part("YEAROFWEEK")},
    "_day_name": {
        **_named("DAYNAME", "", ""),
        "postgres": _formatted("TO_CHAR", "FMDay"),
        "spark": _formatted("DATE_FORMAT", "EEEE"),
    },
    "_month_name": {
        **_named("MONTHNAME", "", ""),
        "postgres": _formatted("TO_CHAR", "FMMonth"),
        "spark": _formatted("DATE_FORMAT", "MMMM"),
    },
    "_timestamp_text": {dialect: _formatted(*_TIMESTAMP_FORMATS[dialect]) for dialect in DIALECTS},
}
"""What :func:`dither.tables.query.nodes.render` writes for each engine. Each uses each of its arguments once."""


FIRST_DATE, LAST_DATE = date.min, date.max
"""The dates every engine and Python can hold; others are NULL."""

MAX_TEXT_BYTES = 1 << 16
"""The longest text of a column, in bytes of UTF-8; longer ones are NULL on every engine.

Engines fail on long texts, and such an error would depend on one value: PostgreSQL's TRANSLATE allocates four times
the text and no more than 1 GB, and no row of an intermediate result may exceed 1 GB either. A row has at most 1,664
columns, so with this limit it stays near 100 MB. Operations that make a text longer (``||``, REPLACE)
are limited in the same way.
"""

MAX_CHARACTERS = 1 << 20
"""Characters of SQL that the expressions of one statement may have together."""

_TYPES: dict[Type, exp.DType] = {
    "integer": exp.DType.BIGINT,
    "number": exp.DType.DOUBLE,
    "text": exp.DType.TEXT,
    "boolean": exp.DType.BOOLEAN,
    "date": exp.DType.DATE,
    "timestamp": exp.DType.TIMESTAMPNTZ,
}
_BINARY: dict[str, type[exp.Binary]] = {
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "%": exp.Mod,
    "=": exp.EQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "and": exp.And,
    "or": exp.Or,
    ">>": exp.BitwiseRightShift,
    "&": exp.BitwiseAnd,
}


# -- text ---------------------------------------------------------------------------------------------------------


def render(expression: exp.Expr, dialect: Dialect, replacing: Mapping[str, exp.Expr] | None = None) -> str:
    """Return an expression or query as SQL text for an engine; refuse one nested too deeply.

    Tables whose names are in ``replacing`` are replaced by its relations. The text is written in a new thread, whose
    stack is empty, so that the possible depth is the same whatever the caller: what can be rendered before the charge
    can be rendered after it.
    """
    with ThreadPoolExecutor(1) as threads:
        try:
            return threads.submit(_render, expression, dialect, replacing or {}).result()
        except RecursionError:
            pass
    raise InvalidArgument(
        "expression", "fewer operations inside each other", "too many", "simplify it, or use x IN (…)"
    )


def _render(expression: exp.Expr, dialect: Dialect, replacing: Mapping[str, exp.Expr]) -> str:
    """Return a tree as SQL text, with its functions and tables replaced by those of the engine."""
    tree = _as_tree(expression, dialect, replacing)
    return tree.sql(dialect=dialect, unsupported_level=sqlglot.ErrorLevel.RAISE, copy=False)


def placeholder(table: str) -> str:
    """Return the name under which statements read a private table ("" is the card's own) until :func:`render` replaces
    it by the real source."""
    return f"dither_source_{table}" if table else "dither_source"


@lru_cache(maxsize=16)
def parsed(sql: str) -> exp.Expr:
    """Return the tree of a statement on noisy tables; it is cached and shared, so it must not be changed."""
    return sqlglot.parse_one(sql, dialect="duckdb")


def _as_tree(expression: exp.Expr, dialect: Dialect, replacing: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return a copy in which every node has one parent, tables are replaced, and functions are those of the engine.

    Nodes shared by several parents are copied for each. It is one pass without recursion: separate passes for copying,
    searching and replacing took most of the time of rendering.
    """
    top = exp.Paren()
    waiting: list[tuple[exp.Expr, str, int | None, exp.Expr, Mapping[str, exp.Expr]]] = []
    waiting.append((top, "this", None, expression, replacing))
    while waiting:
        parent, key, index, node, still_replacing = waiting.pop()
        if isinstance(node, exp.Table) and still_replacing and node.name in still_replacing and not node.this.quoted:
            node = exp.alias_(still_replacing[node.name], node.alias, table=True, copy=False)
            still_replacing = {}  # tables inside of the replacement are real ones
        while isinstance(node, exp.Anonymous) and node.this in DIALECT_FUNCTIONS:
            node = DIALECT_FUNCTIONS[node.this][dialect](*node.expressions)
        copied = type(node)()
        copied.parent, copied.arg_key, copied.index = parent, key, index
        copied.comments, copied.type = node.comments, node.type
        copied.meta.update(node.meta)
        if index is None:
            parent.args[key] = copied
        else:
            parent.args[key][index] = copied
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                waiting.append((copied, name, None, value, still_replacing))
                value = None  # which keeps its place among the arguments
            elif type(value) is list:
                value = list(value)
                waiting.extend(
                    (copied, name, place, item, still_replacing)
                    for place, item in enumerate(value)
                    if isinstance(item, exp.Expr)
                )
            copied.args[name] = value
    tree: exp.Expr = top.args["this"]
    tree.parent = tree.arg_key = None
    return tree


def count_characters(node: exp.Expr, known: dict[int, int] | None = None) -> int:
    """Return an estimate of the length of a node's SQL text in characters; shared nodes count once for each use.

    ``known`` is a cache of counts by the ``id`` of nodes, which must be kept alive; it is extended.
    """
    counts = {} if known is None else known
    pending = [node]
    while pending:
        item = pending.pop()
        if id(item) in counts:
            continue
        count = len(item.name) + 2 if isinstance(item, (exp.Identifier, exp.Literal)) else 8
        unknown = []
        for child in item.iter_expressions():
            if id(child) in counts:
                count += counts[id(child)]
            else:
                unknown.append(child)
        if unknown:
            pending += [item, *unknown]
        else:
            counts[id(item)] = count
    return counts[id(node)]


def check_length(*expressions: exp.Expr, known: dict[int, int] | None = None) -> None:
    """Refuse expressions whose text together would be longer than :data:`MAX_CHARACTERS`."""
    if sum(count_characters(node, known) for node in expressions) > MAX_CHARACTERS:
        fix = "ask for fewer aggregates, or use fewer operations inside each other"
        raise InvalidArgument("expressions", f"at most {MAX_CHARACTERS} characters of SQL", "more", fix)


# -- names and constants ------------------------------------------------------------------------------------------


def column(name: str, table: str | None = None) -> exp.Column:
    """Return a column by its exact name, in quotes."""
    return exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(table, quoted=True) if table else None)


def plain_column(name: str, table: str | None = None) -> exp.Column:
    """Return a column with a name that dither chose, such as ``u``, which needs no quotes."""
    return exp.column(name, table)


def literal(value: Value) -> exp.Expr:
    """Return a constant with an explicit type, which has the same bits on every engine.

    An integer is a CAST of text, since ``-9223372036854775808`` would be the negation of a number that 64 bits cannot
    hold. A float is a CAST of its shortest decimal text, since a bare ``0.1`` would be a DECIMAL. A timestamp with an
    offset is converted to UTC.
    """
    value = plain_value(value)
    if value is None:
        return exp.null()
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise InvalidArgument("constant", "an integer of 64 bits", "a larger one", "write it with a point")
        return cast(exp.Literal.string(str(value)), "integer")
    if isinstance(value, float):
        text = "NaN" if math.isnan(value) else repr(value).replace("inf", "Infinity")
        return cast(exp.Literal.string(text), "number")
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= sign <= "\udfff" for sign in value):
            raise InvalidArgument(
                "constant", "text that every engine can hold", "a NUL or half a character", "leave it out"
            )
        return exp.Literal.string(value)
    if isinstance(value, datetime):
        plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return cast(exp.Literal.string(plain.isoformat(" ", "microseconds")), "timestamp")
    return cast(exp.Literal.string(value.isoformat()), "date")


def double(value: float) -> exp.Expr:
    """Return a constant double."""
    return literal(float(value))


def integer(value: int) -> exp.Expr:
    """Return a small constant integer, such as a count or a bin's number."""
    number = exp.Literal.number(abs(value))
    return number if value >= 0 else exp.Paren(this=exp.Neg(this=number))


# -- expressions --------------------------------------------------------------------------------------------------


def cast(expression: exp.Expr, type: Type) -> exp.Cast:
    """Return a CAST to a card's type: BIGINT, DOUBLE, TEXT, BOOLEAN, DATE, or TIMESTAMP without a time zone."""
    return exp.Cast(this=expression, to=exp.DataType(this=_TYPES[type]))


def try_cast(expression: exp.Expr, type: Type) -> exp.TryCast:
    """Return a TRY_CAST, NULL where the value cannot be read; for DuckDB only, as other engines have none that
    agrees."""
    return exp.TryCast(this=expression, to=exp.DataType(this=_TYPES[type]))


def operand(x: exp.Expr) -> exp.Expr:
    """Return a node in parentheses unless it is a name, a constant or a call; sqlglot adds none itself."""
    closed = (exp.Column, exp.Literal, exp.Func, exp.Paren, exp.Boolean, exp.Null, exp.Subquery)
    return x if isinstance(x, closed) and not isinstance(x, exp.Binary) else exp.Paren(this=x)  # AND is a Func, too


def binary(operator: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return ``left operator right`` for ``+ - * %``, comparisons, ``and``, ``or``, ``>>`` or ``&``.

    A chain on the left stays flat, so that a long sum is not deep: of ``+`` and ``-``, of ``*``, of ``and``, of ``or``.
    """
    kind = _BINARY[operator]
    chain: tuple[type[exp.Expr], ...] = (kind,) if operator in ("*", "and", "or") else ()
    if operator in ("+", "-"):
        chain = (exp.Add, exp.Sub)
    return kind(this=left if isinstance(left, chain) else operand(left), expression=operand(right))


def divide(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return the quotient of two doubles; a divisor of 0 must be ruled out elsewhere."""
    # typed and unsafe: without casts or NULLIF that sqlglot would add
    return exp.Div(this=operand(left), expression=operand(right), typed=True, safe=False)


def integer_quotient(left: exp.Expr, right: exp.Expr, dialect: Dialect) -> exp.Expr:
    """Return the integer quotient of a BIGINT that is not negative by a positive one."""
    if dialect == "postgres":
        return exp.Paren(this=divide(left, right))
    return exp.Paren(this=exp.IntDiv(this=operand(left), expression=operand(right)))


def negate(x: exp.Expr) -> exp.Expr:
    """Return the number with the opposite sign."""
    return exp.Neg(this=operand(x))


def not_(x: exp.Expr) -> exp.Expr:
    """Return the negation of a condition."""
    return exp.Not(this=operand(x))


def is_null(x: exp.Expr) -> exp.Expr:
    """Return the condition that a value is NULL."""
    return exp.Is(this=operand(x), expression=exp.null())


def is_not_null(x: exp.Expr) -> exp.Expr:
    """Return the condition that a value is not NULL."""
    return not_(is_null(x))


def in_list(x: exp.Expr, values: Iterable[exp.Expr]) -> exp.Expr:
    """Return the condition that a value is one of several."""
    return exp.In(this=operand(x), expressions=list(values))


def between(x: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
    """Return the condition that a value lies between two others, inclusive."""
    return exp.Between(this=operand(x), low=operand(low), high=operand(high))


def like(x: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    """Return the condition that a text matches a pattern of ``%`` and ``_``."""
    return exp.Like(this=operand(x), expression=operand(pattern))


def case(arms: Iterable[tuple[exp.Expr, exp.Expr]], otherwise: exp.Expr) -> exp.Case:
    """Return the value of the first arm (condition, value) whose condition holds."""
    return exp.Case(ifs=[exp.If(this=when, true=then) for when, then in arms], default=otherwise)


def coalesce(*values: exp.Expr) -> exp.Expr:
    """Return the first value that is not NULL."""
    return exp.Coalesce(this=values[0], expressions=list(values[1:]))


def concatenate(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return two texts concatenated."""
    return exp.DPipe(this=operand(left), expression=operand(right), safe=True)


def xor(left: exp.Expr, right: exp.Expr, dialect: Dialect) -> exp.Expr:
    """Return the bitwise exclusive or of two integers."""
    if dialect == "duckdb":
        return call("XOR", left, right)
    return exp.Paren(this=exp.BitwiseXor(this=operand(left), expression=operand(right)))


def translate(x: exp.Expr, source: str, target: str) -> exp.Expr:
    """Return a text with each character of ``source`` replaced by the corresponding one of ``target``."""
    return call("TRANSLATE", x, exp.Literal.string(source), exp.Literal.string(target))


def as_text(x: exp.Expr, type: Type, dialect: Dialect) -> exp.Expr:
    """Return the value ``x`` as text in the form that every engine writes: ``-7``, ``true``, ``2024-02-29``,
    ``2024-02-29 23:59:59.000000``.

    Doubles have no such form (``1``, ``1.0``, ``1e+20`` and ``1.0E20`` are all seen): put them on a grid first.
    """
    if type == "number":
        raise InvalidArgument("type", "integer, text, boolean, date or timestamp", "number", "round it to a grid first")
    if type == "text":
        return x
    if type == "timestamp":
        return DIALECT_FUNCTIONS["_timestamp_text"][dialect](x)
    return cast(x, "text")


def md5(text: exp.Expr) -> exp.Expr:
    """Return the MD5 of text in UTF-8, as 32 hexadecimal digits in lower case."""
    return call("MD5", text)


def hash_60_bits(text: exp.Expr, dialect: Dialect) -> exp.Expr:
    """Return the first 60 bits of the MD5 of a text, as a whole number: 15 hexadecimal digits, converted as ``dialect``
    does it.
    """
    digits = exp.Substring(this=md5(text), start=exp.Literal.number(1), length=exp.Literal.number(15))
    if dialect == "spark":
        return cast(call("CONV", digits, exp.Literal.number(16), exp.Literal.number(10)), "integer")
    if dialect == "duckdb":
        return cast(concatenate(exp.Literal.string("0x"), digits), "integer")
    bits = exp.DataType(this=exp.DType.BIT, expressions=[exp.DataTypeParam(this=exp.Literal.number(60))])
    return cast(exp.Cast(this=concatenate(exp.Literal.string("x"), digits), to=bits), "integer")


def bytewise(x: exp.Expr, dialect: Dialect) -> exp.Expr:
    """Return a text under the collation that compares byte by byte. Columns of :attr:`Engine.table` have it already."""
    if dialect == "spark":
        return x
    return exp.Collate(this=operand(x), expression=exp.to_identifier("C", quoted=True))


def in_calendar(x: exp.Expr, type: Type) -> exp.Expr:
    """Return a date or timestamp as SQL, NULL outside the years 1 to 9999 and for PostgreSQL's ``infinity``."""
    first, last = literal(FIRST_DATE), literal(LAST_DATE)
    if type == "timestamp":
        first, last = literal(datetime.min), literal(datetime.max)
    return case([(between(x, first, last), x)], exp.null())


def text_bytes(x: exp.Expr) -> exp.Expr:
    """Return how many bytes a text has in UTF-8."""
    return call("_text_bytes", x)


def text_position(x: exp.Expr, part: exp.Expr) -> exp.Expr:
    """Return the position, from 1, at which a text first contains another; 0 where it does not."""
    return call("_text_position", x, part)


def starts_with(x: exp.Expr, start: exp.Expr) -> exp.Expr:
    """Return the condition that a text begins with another."""
    return call("_starts_with", x, start)


def fits(x: exp.Expr, characters: str, pattern: str) -> exp.Expr:
    """Return the condition that a text matches the regular expression ``^(pattern)$`` and has no other characters than
    ``characters``, the inside of a character class.

    The second condition excludes line ends: in Java, and so on Spark, ``$`` also matches before one at the end.
    """
    other = exp.RegexpLike(this=operand(x), expression=exp.Literal.string(f"[^{characters}]"))
    whole = exp.RegexpLike(this=operand(x), expression=exp.Literal.string(f"^({pattern})$"))
    return binary("and", not_(exp.Paren(this=other)), exp.Paren(this=whole))


def trim(x: exp.Expr, side: Literal["both", "leading", "trailing"]) -> exp.Expr:
    """Return a text without the spaces at one or both ends; other white space stays."""
    return exp.Trim(this=x, expression=exp.Literal.string(" "), position=side.upper())


def days_between(end: exp.Expr, start: exp.Expr) -> exp.Expr:
    """Return the number of days from ``start`` to ``end`` as a BIGINT."""
    return cast(call("_days_between", end, start), "integer")


def date_part(part: str, x: exp.Expr) -> exp.Expr:
    """Return a part of a date or timestamp as a BIGINT: whole seconds, weeks by ISO 8601, Monday as day 1 of 7
    (of ``dow``, Sunday as day 0)."""
    if part == "dow":
        return binary("%", date_part("isodow", x), integer(7))
    own = {"isodow": "_day_of_week", "isoyear": "_iso_year"}.get(part)
    extracted = call(own, x) if own else exp.Extract(this=exp.Var(this=part.upper()), expression=x)
    return cast(call("FLOOR", extracted), "integer")


def date_name(name: str, x: exp.Expr) -> exp.Expr:
    """Return the English name of the ``"day"`` or the ``"month"`` of a date or timestamp."""
    return call(f"_{name}_name", x)


def start_of_period(period: str, x: exp.Expr, type: Type) -> exp.Expr:
    """Return the first moment of the period that contains a date or timestamp, of the same type."""
    return cast(exp.TimestampTrunc(this=x, unit=exp.Var(this=period.upper())), type)


def add_interval(x: exp.Expr, count: int, unit: str, type: Type) -> exp.Expr:
    """Return a date or timestamp ``count`` units later, of the same type; the result must be known to stay within
    the calendar."""
    interval = exp.Interval(this=exp.Literal.string(str(count)), unit=exp.Var(this=unit.upper()))
    return cast(exp.Add(this=operand(x), expression=interval), type)


def is_same(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return the condition that two values are equal or both NULL; it is never NULL itself."""
    return exp.NullSafeEQ(this=operand(left), expression=operand(right))


def timestamp_text(x: exp.Expr) -> exp.Expr:
    """Return a timestamp as text, with six digits after the seconds."""
    return call("_timestamp_text", x)


def limit_text(x: exp.Expr, text: exp.Expr, dialect: Dialect) -> exp.Expr:
    """Return ``x``, which is computed from ``text``, or NULL where that text is longer than :data:`MAX_TEXT_BYTES`.

    The length is the function of the ``dialect``, since views of a source are not written by :func:`render`.
    """
    return if_at_most(x, DIALECT_FUNCTIONS["_text_bytes"][dialect](text), MAX_TEXT_BYTES)


def if_at_most(x: exp.Expr, size: exp.Expr, most: int) -> exp.Expr:
    """Return ``x`` where a size is at most ``most``, else NULL."""
    return case([(binary("<=", size, integer(most)), x)], exp.null())


# -- statements and their clauses -------------------------------------------------------------------------------


def alias(x: exp.Expr, name: str) -> exp.Expr:
    """Return ``x AS name``."""
    return exp.Alias(this=x, alias=exp.to_identifier(name))


def relation(source: Any, name: str) -> exp.Expr:
    """Return a query or table as an element of FROM with this alias."""
    if isinstance(source, exp.Query) and not isinstance(source, exp.Subquery):
        return source.subquery(name, copy=False)
    return exp.alias_(source, name, table=True)


def select(
    columns: Sequence[exp.Expr],
    source: exp.Expr,
    *,
    joins: Sequence[exp.Join] = (),
    where: Sequence[exp.Expr] = (),
    group_by: Sequence[exp.Expr] = (),
) -> exp.Select:
    """Return SELECT columns FROM source with these joins, the conjunction of the conditions as WHERE, and GROUP BY."""
    query = exp.Select().select(*columns, copy=False).from_(source, copy=False)
    for item in joins:
        query.append("joins", item)
    if where:
        query.set("where", exp.Where(this=all_of(where)))
    if group_by:
        query.set("group", exp.Group(expressions=list(group_by)))
    return query


def all_of(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """Return a condition that holds where all conditions hold."""
    result = conditions[0]
    for item in conditions[1:]:
        result = binary("and", result, item)
    return result


def join(source: exp.Expr, on: exp.Expr, kind: Literal["", "LEFT", "SEMI"] = "") -> exp.Join:
    """Return a join for :func:`select`."""
    side = {"side": "LEFT"} if kind == "LEFT" else {"kind": "SEMI"} if kind == "SEMI" else {}
    return exp.Join(this=source, on=on, **side)


def with_tables(query: exp.Select, tables: Iterable[tuple[str, exp.Select]]) -> exp.Select:
    """Return a SELECT with common table expressions (WITH name AS MATERIALIZED …), which the engine computes once."""
    for name, inner in tables:
        query = query.with_(name, as_=inner, materialized=True, copy=False)
    return query


def _ranked(function: exp.Expr, order: Sequence[exp.Expr], partition: Sequence[exp.Expr]) -> exp.Expr:
    """Return a ranking function over the rows that are equal in ``partition``, in this order, NULLs last."""
    ordered = [exp.Ordered(this=item, desc=False, nulls_first=False) for item in order]
    return exp.Window(this=function, partition_by=list(partition), order=exp.Order(expressions=ordered), over="OVER")


def row_number(order: Sequence[exp.Expr], partition: Sequence[exp.Expr] = ()) -> exp.Expr:
    """Return ROW_NUMBER() within rows that are equal in ``partition``, in this order, NULLs last."""
    return _ranked(exp.RowNumber(), order, partition)


def dense_rank(order: Sequence[exp.Expr], partition: Sequence[exp.Expr]) -> exp.Expr:
    """Return DENSE_RANK() within rows that are equal in ``partition``, in this order, NULLs last."""
    return _ranked(exp.DenseRank(), order, partition)


def over(aggregate: exp.Expr, partition: Sequence[exp.Expr]) -> exp.Expr:
    """Return an aggregate as a window function: over all rows that are equal in ``partition``."""
    return exp.Window(this=aggregate, partition_by=list(partition), over="OVER")


def values(rows: Sequence[Sequence[exp.Expr]], name: str, columns: Sequence[str]) -> exp.Expr:
    """Return a table of constant rows for FROM."""
    tuples = [exp.Tuple(expressions=list(row)) for row in rows]
    identifiers = [exp.to_identifier(item) for item in columns]
    return exp.Values(expressions=tuples, alias=exp.TableAlias(this=exp.to_identifier(name), columns=identifiers))


def count_rows() -> exp.Expr:
    """Return COUNT(*)."""
    return exp.Count(this=exp.Star(), big_int=True)


def total(x: exp.Expr) -> exp.Expr:
    """Return the sum of integers, 0 where there are none."""
    return cast(coalesce(call("SUM", x), integer(0)), "integer")


def shift_right(x: exp.Expr, places: int) -> exp.Expr:
    """Return floor(x / 2^places) as SQL for an integer x >= 0."""
    return exp.BitwiseRightShift(this=operand(x), expression=integer(places)) if places else x
