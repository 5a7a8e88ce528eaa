"""Row expressions as SQL that means the same on every engine and cannot fail.

The text is DuckDB's; other dialects are made from it by sqlglot. Each expression comes with its type and, for numbers,
the range of its values (:mod:`dither.tables.query.ranges`). That is what makes it safe:

* a number column is NULL where it is NaN, and before arithmetic it is held within its public bounds and rounded to a
  grid of a 2^-24th of their width, by ``floor(x * 2^k + 0.5)``: IEEE 754 operations, the same on every engine;
* so no sum, difference or product can overflow or underflow (PostgreSQL raises an error on either, which would depend
  on the data); what could, by its range, is refused before any data is read;
* division by zero is NULL; no value of a column is cast from text, and no function can fail;
* constants have their type written out: an engine that guessed would take -2^63 for a double.

Integers become doubles in arithmetic. Comparisons of a column with a constant stay what they are, so that engines can
use them to skip what they need not read.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Mapping

from dither.errors import InvalidArgument, WrongType, message
from dither.tables.card.model import Card, ColumnCard, Type
from dither.tables.compile.literals import Typed, check_length, double, literal, name, repeated, text, whole
from dither.tables.query.ranges import Range, bounded
from dither.tables.query.tree import COMPARISONS, NUMERIC, PERIODS, Call, Column, Expression, Literal

GRID_BITS = 24
NAN = "CAST('Infinity' AS DOUBLE)"

Lookup = Callable[[Column], tuple[str, ColumnCard]]


class _Compilation:
    """A lookup that remembers what was compiled with it, each node once as it is and once as a safe double.

    Without it a node inside CASE would be compiled in both ways for each of those around it: time would double with
    every level. Nodes are kept, so that none can take another's place in memory, and its ``id``.
    """

    def __init__(self, find: Lookup) -> None:
        self._find = find
        self._results: dict[tuple[int, bool], tuple[Expression, Typed]] = {}

    def __call__(self, column: Column) -> tuple[str, ColumnCard]:
        return self._find(column)

    def compiled(self, expression: Expression, as_number: bool) -> Typed:
        key = (id(expression), as_number)
        if key not in self._results:
            compute = _number if as_number else _compile
            self._results[key] = expression, compute(expression, self)
        return self._results[key][1]


def _compilation(find: Lookup) -> _Compilation:
    return find if isinstance(find, _Compilation) else _Compilation(find)


def lookup(card: Card, joined: Mapping[str, str]) -> Lookup:
    """Where a column's SQL and card come from: the table itself, or a public table by its alias in ``joined``."""

    def find(column: Column) -> tuple[str, ColumnCard]:
        if column.table is None:
            columns, alias = card.columns, "t"
        elif column.table in joined:
            columns, alias = card.public[column.table].columns, joined[column.table]
        else:
            raise InvalidArgument(message("table", "a public table of the card", column.table, "join it first"))
        if column.name not in columns:
            raise InvalidArgument(
                message("column", f"one of {', '.join(sorted(columns))}", column.name, "correct the name")
            )
        return f"{alias}.{name(column.name)}", columns[column.name]

    return find


def scale_of(low: float, high: float, bits: int = GRID_BITS) -> float:
    """The power of two whose multiples cut the width into some 2^bits steps.

    >>> scale_of(0, 100, 4)
    0.125
    """
    low, high = bounded(low, high)
    return math.ldexp(1.0, bits - math.frexp(high - low)[1])


def compile(expression: Expression, find: Lookup) -> Typed:
    """An expression as SQL.

    >>> find = lambda column: ("t.a", ColumnCard("integer", (0, 9)))
    >>> compile(Call("<", (Column("a"), Literal(5))), find).sql
    "(t.a < CAST('5' AS BIGINT))"
    """
    return _compilation(find).compiled(expression, as_number=False)


def number(expression: Expression, find: Lookup) -> Typed:
    """An expression as a double within an interval, safe for arithmetic."""
    return _compilation(find).compiled(expression, as_number=True)


def _compile(expression: Expression, find: Lookup) -> Typed:
    if isinstance(expression, Literal):
        return literal(expression.value)
    if isinstance(expression, Column):
        sql, card = find(expression)
        if card.type == "number":
            sql = f"CASE WHEN {sql} > {NAN} THEN NULL ELSE {sql} END"
        return Typed(sql, card.type)
    if expression.op in NUMERIC:
        return _arithmetic(expression, find)
    if expression.op not in _RULES:
        raise InvalidArgument(
            message(
                "operation", f"one of {', '.join(sorted(NUMERIC | set(_RULES)))}", expression.op, "use one of these"
            )
        )
    return _RULES[expression.op](expression, find)


def _number(expression: Expression, find: Lookup) -> Typed:
    if isinstance(expression, Column):
        sql, card = find(expression)
        if card.type not in ("integer", "number"):
            raise _wrong("a number", card.type)
        if card.bounds is None:
            raise InvalidArgument(
                message(
                    expression.name,
                    "public bounds, for arithmetic with it",
                    "none",
                    "state its bounds in the card, or in the question",
                )
            )
        low, high = card.bounds
        if card.type == "integer":
            return Typed(
                f"CASE WHEN {sql} <= {_whole(low)} THEN {double(low)} WHEN {sql} >= {_whole(high)} THEN {double(high)} "
                f"ELSE CAST({sql} AS DOUBLE) END",
                "number",
                Range.whole(low, high).checked(),
            )
        scale = scale_of(low, high)
        least, most = (math.floor(bound * scale + 0.5) / scale for bound in bounded(low, high))
        known = Range.of(least, most, 1 / scale).checked()
        return Typed(f"({held(sql, low, high, scale)} / {double(scale)})", "number", known)
    if isinstance(expression, Call) and expression.op in _BRANCHING:
        result = _BRANCHING[expression.op](expression, find, numeric=True)
    else:
        result = compile(expression, find)
    if result.type not in ("integer", "number"):
        raise _wrong("a number", result.type)
    if result.type == "integer":
        return Typed(f"CAST({result.sql} AS DOUBLE)", "number", result.range)
    return result


def _whole(bound: float) -> str:
    """A bound to compare whole numbers with."""
    return whole(int(bound)) if abs(bound) < 1 << 63 and int(bound) == bound else double(bound)


def held(sql: str, low: float, high: float, scale: float, known: Range | None = None) -> str:
    """A double held within bounds and rounded to whole steps of 1/scale, as a double; NULL for NaN and NULL.

    What would round to 0 is taken for 0 before it is multiplied: a product too small for a double is an error on
    PostgreSQL. Of a computed value the range is ``known``, and what it rules out is not asked.
    """
    near = 0.25 / scale
    arms = [] if known else [f"WHEN {sql} > {NAN} THEN NULL"]
    if known is None or known.low < low:
        arms.append(f"WHEN {sql} <= {double(low)} THEN {double(math.floor(low * scale + 0.5))}")
    if known is None or known.high > high:
        arms.append(f"WHEN {sql} >= {double(high)} THEN {double(math.floor(high * scale + 0.5))}")
    if scale < 1 and (known is None or known.least < near):
        arms.append(f"WHEN {sql} > {double(-near)} AND {sql} < {double(near)} THEN {double(0.0)}")
    steps = f"FLOOR({sql} * {double(scale)} + {double(0.5)})"
    return f"CASE {' '.join(arms)} ELSE {steps} END" if arms else steps


def _arithmetic(call: Call, find: Lookup) -> Typed:
    op, parts = call.op, [number(argument, find) for argument in call.args]
    if op in ("neg", "abs"):
        one, known = parts[0].sql, _range(parts[0])
        return Typed(f"(-{one})", "number", -known) if op == "neg" else Typed(f"ABS({one})", "number", abs(known))
    left, right = parts
    known = _OPERATORS[op](_range(left), _range(right)).checked()
    if op == "/":
        return Typed(f"(CASE WHEN {right.sql} = 0 THEN NULL ELSE {left.sql} / {right.sql} END)", "number", known)
    chain = ("*",) if op == "*" else ("+", "-")
    return Typed(f"({left.within(*chain)} {op} {right.sql})", "number", known, op)


_OPERATORS: dict[str, Callable[[Range, Range], Range]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def _range(typed: Typed) -> Range:
    if typed.range is None:
        raise InvalidArgument(
            message("expression", "numbers with public bounds", "one without", "state the bounds of its columns")
        )
    return typed.range


def _compare(call: Call, find: Lookup) -> Typed:
    parts = _alike([compile(argument, find) for argument in call.args])
    return Typed(f"({f' {call.op} '.join(part.sql for part in parts)})", "boolean")


def _alike(parts: list[Typed]) -> list[Typed]:
    """All of one kind, so that no engine has to guess; text by its bytes."""
    kinds = {_family(part) for part in parts if part.sql != "NULL"}
    if len(kinds) > 1:
        raise _wrong("values of one kind", " and ".join(sorted(kinds)))
    return parts


def _family(part: Typed) -> str:
    return {"integer": "number", "timestamp": "date"}.get(part.type, part.type)


def _truth(expression: Expression, find: Lookup, *within: str) -> str:
    result = compile(expression, find)
    if result.type != "boolean" and result.sql != "NULL":
        raise _wrong("a condition", result.type)
    return result.within(*within)


def _and_or(call: Call, find: Lookup) -> Typed:
    parts = (_truth(argument, find, call.op) for argument in call.args)
    return Typed(f"({f' {call.op.upper()} '.join(parts)})", "boolean", op=call.op)


def _not(call: Call, find: Lookup) -> Typed:
    return Typed(f"(NOT {_truth(call.args[0], find)})", "boolean")


def _in(call: Call, find: Lookup) -> Typed:
    first, *others = _alike([compile(argument, find) for argument in call.args])
    return Typed(f"({first.sql} IN ({', '.join(other.sql for other in others)}))", "boolean")


def _between(call: Call, find: Lookup) -> Typed:
    x, low, high = _alike([compile(argument, find) for argument in call.args])
    return Typed(f"({x.sql} BETWEEN {low.sql} AND {high.sql})", "boolean")


def _like(call: Call, find: Lookup) -> Typed:
    x, pattern = (compile(argument, find) for argument in call.args)
    if x.type != "text" or pattern.type != "text" or not isinstance(call.args[1], Literal):
        raise _wrong("text and a constant pattern", f"{x.type} and {pattern.type}")
    if "\\" in str(call.args[1].value):
        raise InvalidArgument(message("pattern", "one without a backslash", "a backslash", "leave it out"))
    return Typed(f"({x.sql} LIKE {pattern.sql})", "boolean")


def _is_null(call: Call, find: Lookup) -> Typed:
    return Typed(f"({compile(call.args[0], find).sql} IS NULL)", "boolean")


def _joined(parts: list[Typed]) -> tuple[Type, Range | None]:
    """The type and range of a value that is one of several."""
    given = [part for part in _alike(parts) if part.sql != "NULL"]
    if not given:
        return "text", None
    kind = given[0].type if len({part.type for part in given}) == 1 else "number"
    ranges = [part.range for part in given]
    known = [item for item in ranges if item is not None]
    return kind, functools.reduce(operator.or_, known) if len(known) == len(ranges) else None


def _values(expressions: list[Expression], find: Lookup, numeric: bool) -> list[Typed]:
    """Compiled alike: as safe doubles, within their bounds, if any is a number or all take part in arithmetic."""
    result = [compile(expression, find) for expression in expressions]
    kinds = {part.type for part in result if part.sql != "NULL"}
    if "number" in kinds or (numeric and kinds == {"integer"}):
        return [
            part if part.sql == "NULL" else number(item, find) for item, part in zip(expressions, result, strict=True)
        ]
    return result


def _case(call: Call, find: Lookup, numeric: bool = False) -> Typed:
    *pairs, otherwise = call.args
    whens = [_truth(argument, find) for argument in pairs[::2]]
    thens = _values([*pairs[1::2], otherwise], find, numeric)
    kind, known = _joined(thens)
    arms = " ".join(f"WHEN {when} THEN {then.sql}" for when, then in zip(whens, thens[:-1], strict=True))
    return Typed(f"(CASE {arms} ELSE {thens[-1].sql} END)", kind, known)


def _coalesce(call: Call, find: Lookup, numeric: bool = False) -> Typed:
    parts = _values(list(call.args), find, numeric)
    kind, known = _joined(parts)
    return Typed(f"COALESCE({', '.join(part.sql for part in parts)})", kind, known)


def _nullif(call: Call, find: Lookup, numeric: bool = False) -> Typed:
    """The first argument is compared as it is, and then used within its bounds.

    It is written twice, so that nested ones are refused by their length: NULLIF would be short, but DuckDB makes the
    same CASE of it, and its plan would take all the memory.
    """
    x, y = _alike([compile(argument, find) for argument in call.args])
    (value,) = _values([call.args[0]], find, numeric)
    return Typed(f"(CASE WHEN {x.sql} = {y.sql} THEN NULL ELSE {value.sql} END)", value.type, value.range)


_BRANCHING: dict[str, Callable[..., Typed]] = {"case": _case, "coalesce": _coalesce, "nullif": _nullif}


def _date_trunc(call: Call, find: Lookup) -> Typed:
    unit, x = call.args
    result = compile(x, find)
    if not isinstance(unit, Literal) or unit.value not in PERIODS or result.type not in ("date", "timestamp"):
        raise InvalidArgument(
            message(
                "date_trunc", f"a period ({', '.join(PERIODS)}) and a date", "something else", "date_trunc('month', x)"
            )
        )
    if result.type == "date" and unit.value == "hour":
        raise InvalidArgument(message("date_trunc", "a period of days or more", "hour of a date", "use 'day'"))
    kind = "DATE" if result.type == "date" else "TIMESTAMP"
    return Typed(f"CAST(DATE_TRUNC({text(str(unit.value))}, {result.sql}) AS {kind})", result.type)


def _bin(call: Call, find: Lookup) -> Typed:
    x, *cuts = call.args
    edges = [float(cut.value) for cut in cuts if isinstance(cut, Literal) and isinstance(cut.value, (int, float))]
    if len(edges) != len(cuts) or len(edges) < 2 or any(a >= b for a, b in itertools.pairwise(edges)):
        raise InvalidArgument(message("bin", "rising numbers as edges", "something else", "pass edges 0, 10, 20"))
    result = compile(x, find)
    if result.type not in ("integer", "number"):
        raise _wrong("a number", result.type)
    repeated(result.sql, len(edges) + 1)
    sql = f"CASE WHEN {result.sql} < {double(edges[0])} OR {result.sql} > {double(edges[-1])} THEN NULL "
    sql += " ".join(f"WHEN {result.sql} < {double(edge)} THEN {i}" for i, edge in enumerate(edges[1:-1]))
    sql += f" WHEN {result.sql} IS NULL THEN NULL ELSE {len(edges) - 2} END"
    return Typed(f"({sql})", "integer", Range.whole(0, len(edges) - 2))


def _letters(call: Call, find: Lookup) -> Typed:
    result = compile(call.args[0], find)
    if result.type != "text":
        raise _wrong("text", result.type)
    lower, upper = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    source, target = (upper, lower) if call.op == "lower" else (lower, upper)
    return Typed(f"TRANSLATE({result.sql}, '{source}', '{target}')", "text")


def _wrong(expected: str, got: str) -> WrongType:
    return WrongType(message("expression", expected, got, "compare and compute like with like"))


_RULES: dict[str, Callable[[Call, Lookup], Typed]] = {
    **dict.fromkeys(COMPARISONS, _compare),
    "and": _and_or,
    "or": _and_or,
    "not": _not,
    "in": _in,
    "between": _between,
    "like": _like,
    "is_null": _is_null,
    **_BRANCHING,
    "date_trunc": _date_trunc,
    "bin": _bin,
    "lower": _letters,
    "upper": _letters,
}

__all__ = [
    "Lookup", "Typed", "check_length", "compile", "double", "held", "literal", "lookup", "name", "number", "repeated",
    "scale_of", "text", "whole",
]  # fmt: skip
