"""From sqlglot's nodes to expressions: what can be said of a row, or of a row of the answer.

Everything not listed here is refused. Each node is read only if all its parts are known (:func:`only`), so an option
of a later SQL cannot slip through unread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from dither.tables.query.resolve import Rows
from dither.tables.query.tree import PERIODS, Call, Column, Expression, Literal
from dither.tables.query.typecheck import as_date, as_timestamp, literal_type
from dither.tables.query.wording import clip, closest
from dither.tables.sql.text import expression as parsed
from dither.tables.sql.text import only, refusal

Leaf = Callable[[exp.Expr], Expression | None]
"""Reads a node in a way of its own, or returns None."""

MAX_BINS = 10_000

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "and",
    exp.Or: "or",
}
_FUNCTIONS = {"ABS": "abs", "LOWER": "lower", "UPPER": "upper", "COALESCE": "coalesce", "IFNULL": "coalesce"}
_SPECIAL = ("NULLIF", "DATE_TRUNC", "TIMESTAMP_TRUNC", "DATETIME_TRUNC", "WIDTH_BUCKET")
AGGREGATES = frozenset(
    [
        *("COUNT", "COUNTIF", "COUNT_IF", "SUM", "AVG", "MEAN", "MIN", "MAX", "MODE", "MEDIAN"),
        *("VAR", "VARIANCE", "VAR_SAMP", "VAR_POP", "STD", "STDDEV", "STDDEV_SAMP", "STDDEV_POP"),
        *("PERCENTILE_CONT", "PERCENTILE_DISC", "QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC"),
        *("APPROX_QUANTILE", "APPROX_QUANTILES", "APPROX_PERCENTILE"),
    ]
)
_BINNING = "group by bins with WIDTH_BUCKET(x, low, high, n)"
_PERIOD = "use date_trunc('month', x), or compare with a date: x >= '2024-01-01'"
_NEAREST = {
    **dict.fromkeys(["FLOOR", "CEIL", "CEILING", "TRUNC", "TRUNCATE"], _BINNING),
    "ROUND": f"round the answer yourself, or {_BINNING}",
    **dict.fromkeys(["YEAR", "MONTH", "DAY", "QUARTER", "WEEK", "HOUR", "DATE_PART", "STRFTIME", "TO_CHAR"], _PERIOD),
    "IF": "write CASE WHEN … THEN … ELSE … END",
    "IIF": "write CASE WHEN … THEN … ELSE … END",
    "NVL": "write COALESCE(x, y)",
    "TRIM": "clean the column where it is made",
    "APPROX_COUNT_DISTINCT": "COUNT(DISTINCT the column of people) counts people",
    "ARRAY_AGG": "ask for counts by group: single values are never released",
    "STRING_AGG": "ask for counts by group: single values are never released",
    "ANY_VALUE": "put the column into GROUP BY: single values are never released",
    "FIRST": "use MIN or MAX: single values are never released",
    "LAST": "use MIN or MAX: single values are never released",
}
_REFUSED: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Window: ("a window function (OVER)", "use GROUP BY"),
    exp.Subquery: ("a subquery in an expression", "ask it first, and write its answer as a number"),
    exp.Select: ("a subquery in an expression", "ask it first, and write its answer as a number"),
    exp.Exists: ("EXISTS", "write a condition on the row's own columns"),
    exp.ILike: ("ILIKE", "write LOWER(x) LIKE 'a%'"),
    exp.Escape: ("ESCAPE", "use % and _ only, or write x = '…'"),
    exp.RegexpLike: ("a regular expression", "use LIKE"),
    exp.Interval: ("an interval", "write the date itself: x >= '2024-01-01'"),
    exp.Extract: ("EXTRACT", _PERIOD),
    exp.Mod: ("%", "use + - * /, or bins by WIDTH_BUCKET(x, low, high, n)"),
    exp.IntDiv: ("DIV", _BINNING),
    exp.DPipe: ("||", "group by both columns instead"),
    exp.If: ("IF", "write CASE WHEN … THEN … ELSE … END"),
    exp.Placeholder: ("a placeholder", "write the value into the query"),
    exp.Parameter: ("a placeholder", "write the value into the query"),
    exp.SessionParameter: ("a placeholder", "write the value into the query"),
    exp.GroupingSets: ("GROUPING SETS", "ask a question for each set of columns"),
    exp.Star: ("*", "name the columns; single rows are never released"),
    exp.Tuple: ("a tuple", "compare one column at a time"),
    exp.Distinct: ("DISTINCT", "use GROUP BY"),
    exp.Alias: ("AS inside an expression", "name the column after the whole expression"),
    exp.Any: ("ANY", "write x IN (…)"),
    exp.CurrentDate: ("CURRENT_DATE", "write the date itself: '2024-01-01'"),
    exp.CurrentTimestamp: ("CURRENT_TIMESTAMP", "write the time itself: '2024-01-01 12:00:00'"),
    exp.Filter: ("FILTER after something that is no aggregate", "leave it out"),
    exp.WithinGroup: ("WITHIN GROUP after something else", "write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)"),
}


def syntax(text: str) -> Expression:
    """The expression in the text, its columns as they are written.

    >>> syntax("a + 1")
    Call(op='+', args=(Column(name='a', table=None), Literal(value=1)))
    """
    return read(parsed(text), lambda node: name_of(node) if isinstance(node, exp.Column) else None)


def row_leaf(rows: Rows, clause: str) -> Leaf:
    """Reads columns of rows, and refuses aggregates: the clause is about rows."""

    def leaf(node: exp.Expr) -> Expression | None:
        if is_aggregate(node):
            fix = "conditions on aggregates stand in HAVING" if clause == "WHERE" else "aggregate once, over plain rows"
            raise refusal(f"rows in {clause}", "an aggregate", fix)
        return rows.find(name_of(node)) if isinstance(node, exp.Column) else None

    return leaf


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node is an aggregate with all that belongs to it."""
    while isinstance(node, (exp.Filter, exp.WithinGroup)):
        node = node.this
    return isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATES


def name_of(node: exp.Column) -> Column:
    """A column as it is written."""
    if isinstance(node.this, exp.Star):
        raise refusal("named columns", "*", "name the columns; single rows are never released")
    if len(node.parts) > 2:
        raise refusal("column or table.column", "a longer path", "leave the first names out")
    only(node, "this", "table")
    return Column(node.name, node.table or None)


def read(node: exp.Expr, leaf: Leaf) -> Expression:
    """The expression a node stands for."""
    result = leaf(node)
    if result is not None:
        return result
    binary = _BINARY.get(type(node))
    if binary is not None:
        only(node, "this", "expression", "typed", "safe")
        return Call(binary, (read(node.this, leaf), read(node.expression, leaf)))
    reader = _READERS.get(type(node))
    if reader is None:
        got, fix = _REFUSED.get(type(node), (node.key.upper(), "use comparisons, arithmetic, CASE and COALESCE"))
        raise refusal("an expression dither can bound", got, fix)
    return reader(node, leaf)


def number(node: exp.Expr, what: str) -> int | float:
    """A number written as a constant."""
    value = read(node, lambda _each: None) if isinstance(node, (exp.Literal, exp.Neg, exp.Paren)) else None
    if not isinstance(value, Literal) or not isinstance(value.value, (int, float)) or isinstance(value.value, bool):
        raise refusal(f"a number for {what}", "something else", "write it as a constant")
    return value.value


def _literal(node: exp.Expr, _leaf: Leaf) -> Expression:
    return Literal(node.name) if node.is_string else Literal(_parsed_number(node.name))


def _parsed_number(text: str) -> int | float:
    digits = text.isascii() and text.isdigit()
    try:
        value = int(text) if digits and len(text) < 20 else float(text)
    except ValueError:
        raise refusal("a number", repr(clip(text, 20)), "write it as 12, 1.5 or 1e6") from None
    vanished = value == 0 and any(item in "123456789" for item in text.lower().split("e")[0])
    # 2**63 itself is let through, for -2**63
    if math.isinf(value) or vanished or (digits and not 0 <= value <= 2**63):
        raise refusal(
            "a number in range", clip(text, 20), "use a number of at most 64 bits, or between 1e-300 and 1e300"
        )
    return value


def _negative(node: exp.Expr, leaf: Leaf) -> Expression:
    inside = read(node.this, leaf)
    if isinstance(inside, Literal) and isinstance(inside.value, (int, float)) and not isinstance(inside.value, bool):
        return Literal(-inside.value)
    return Call("neg", (inside,))


def _not(node: exp.Expr, leaf: Leaf) -> Expression:
    return Call("not", (read(node.this, leaf),))


def _paren(node: exp.Expr, leaf: Leaf) -> Expression:
    only(node, "this")
    return read(node.this, leaf)


def _negated(node: exp.Expr, call: Call) -> Expression:
    return Call("not", (call,)) if node.args.get("negate") else call


def _in(node: exp.Expr, leaf: Leaf) -> Expression:
    if node.args.get("query") is not None:
        raise refusal("IN with a list of constants", "a subquery", "write the values out: x IN ('a', 'b')")
    only(node, "this", "expressions", "negate")
    if not node.expressions:
        raise refusal("IN with a list of constants", "no list", "write the values out: x IN ('a', 'b')")
    return _negated(node, Call("in", tuple(read(item, leaf) for item in (node.this, *node.expressions))))


def _between(node: exp.Expr, leaf: Leaf) -> Expression:
    only(node, "this", "low", "high", "negate")
    parts = (node.this, node.args["low"], node.args["high"])
    return _negated(node, Call("between", tuple(read(item, leaf) for item in parts)))


def _like(node: exp.Expr, leaf: Leaf) -> Expression:
    only(node, "this", "expression", "negate")
    return _negated(node, Call("like", (read(node.this, leaf), read(node.expression, leaf))))


def _is(node: exp.Expr, leaf: Leaf) -> Expression:
    only(node, "this", "expression", "negate")
    if not isinstance(node.expression, exp.Null):
        raise refusal("IS NULL or IS NOT NULL", f"IS {node.expression.key.upper()}", "write x = TRUE, or x alone")
    return _negated(node, Call("is_null", (read(node.this, leaf),)))


def _case(node: exp.Expr, leaf: Leaf) -> Expression:
    only(node, "this", "ifs", "default")
    parts: list[Expression] = []
    for item in node.args["ifs"]:
        only(item, "this", "true")
        when = read(item.this, leaf)
        parts += [Call("=", (read(node.this, leaf), when)) if node.this else when, read(item.args["true"], leaf)]
    default = node.args.get("default")
    return Call("case", (*parts, read(default, leaf) if default is not None else Literal(None)))


def _cast(node: exp.Expr, _leaf: Leaf) -> Expression:
    only(node, "this", "to", "_type")
    target = node.args["to"]
    kind = target.this.value if isinstance(target.this, exp.DType) and not target.expressions else None
    if kind in ("DATE", "TIMESTAMP", "DATETIME") and isinstance(node.this, exp.Literal) and node.this.is_string:
        return Literal(as_date(node.this.name) if kind == "DATE" else as_timestamp(node.this.name))
    raise refusal("values of the card's types", "CAST", "state the column's type in the card; write dates as DATE '…'")


def _function(node: exp.Expr, leaf: Leaf) -> Expression:
    only(node, "this", "expressions")
    name, args = node.name.upper(), node.expressions
    if name in _FUNCTIONS:
        return Call(_FUNCTIONS[name], tuple(read(item, leaf) for item in args))
    if name == "NULLIF" and len(args) == 2:
        return Call("nullif", tuple(read(item, leaf) for item in args))
    if name.endswith("_TRUNC") and name in _SPECIAL and len(args) == 2:
        return _truncated(args, leaf)
    if name == "WIDTH_BUCKET" and len(args) == 4:
        return _bucket(args, leaf)
    if name in _SPECIAL:
        raise refusal(f"{name} with its arguments", f"{len(args)} of them", f"write {_USES[name]}")
    known = [*_FUNCTIONS, *_SPECIAL, *AGGREGATES]
    raise refusal("a function dither can bound", clip(name), _NEAREST.get(name) or closest(name, sorted(known)))


_USES = {
    **dict.fromkeys(["DATE_TRUNC", "TIMESTAMP_TRUNC", "DATETIME_TRUNC"], "date_trunc('month', x)"),
    "WIDTH_BUCKET": "WIDTH_BUCKET(x, 0, 100, 10)",
    "NULLIF": "NULLIF(x, 0)",
}


def _truncated(args: list[exp.Expr], leaf: Leaf) -> Expression:
    """date_trunc('month', x), or DATE_TRUNC(x, MONTH) as BigQuery has it."""
    first, second = args
    if isinstance(first, exp.Literal) and first.is_string:
        return Call("date_trunc", (Literal(first.name.lower()), read(second, leaf)))
    period = second.name.lower() if isinstance(second, (exp.Column, exp.Var)) else ""
    if period == "isoweek":
        period = "week"
    elif period == "week":
        raise refusal("weeks that begin on Monday", "WEEK", "write ISOWEEK, or date_trunc('week', x)")
    if period not in PERIODS:
        raise refusal("date_trunc('month', x)", "another form", f"name one of {', '.join(PERIODS)} as a constant")
    return Call("date_trunc", (Literal(period), read(first, leaf)))


def _bucket(args: list[exp.Expr], leaf: Leaf) -> Expression:
    """1 + bin: buckets count from 1. Outside of the limits it is NULL, and the upper limit is in the last bucket."""
    low, high, count = (number(item, "WIDTH_BUCKET") for item in args[1:])
    if not isinstance(count, int) or not 1 <= count <= MAX_BINS or not low < high:
        fix = "write WIDTH_BUCKET(x, 0, 100, 10)"
        raise refusal(f"WIDTH_BUCKET(x, low, high, n) with low < high, 1 to {MAX_BINS} buckets", "others", fix)
    step = (Fraction(high) - Fraction(low)) / count
    exact = [Fraction(low) + step * item for item in range(count + 1)]
    edges = [Literal(int(item) if item.denominator == 1 else float(item)) for item in exact]
    for item in edges:
        literal_type(item.value)
    return Call("+", (Call("bin", (read(args[0], leaf), *edges)), Literal(1)))


_READERS: dict[type[exp.Expr], Callable[[exp.Expr, Leaf], Expression]] = {
    exp.Literal: _literal,
    exp.Null: lambda _node, _leaf: Literal(None),
    exp.Boolean: lambda node, _leaf: Literal(bool(node.this)),
    exp.Neg: _negative,
    exp.Not: _not,
    exp.Paren: _paren,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.Is: _is,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Anonymous: _function,
}
