"""From sqlglot's nodes to expressions: what can be said of a row, or of a row of the answer.

Which nodes and functions stand for which operation is said in :mod:`dither.tables.query.operations`. Everything else is
refused. Each node is read only if all its parts are known (:func:`refuse_other_parts`), so an option
of a later SQL cannot slip through unread.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sqlglot import exp

from dither.tables.card.wording import clip, closest
from dither.tables.query.operations import FUNCTIONS, SPECIAL_FUNCTIONS, SYNTAX
from dither.tables.query.operations.base import Syntax, refuse_other_parts, refuse_sql
from dither.tables.query.resolve import Rows
from dither.tables.query.tree import Call, Column, Expression, Literal
from dither.tables.sql.text import expression as parsed

Leaf = Callable[[exp.Expr], Expression | None]
"""Reads a node in a way of its own, or returns None."""

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
    **dict.fromkeys(["STRFTIME", "TO_CHAR"], _PERIOD),
    **dict.fromkeys(["DAYOFWEEK", "DOW", "WEEKDAY"], "write ISODOW(x): Monday is 1, Sunday is 7"),
    "LOG": "write LN(x), LOG10(x) or LOG2(x): engines mean different ones by LOG",
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
    exp.Escape: ("ESCAPE", "use % and _ only, or write x = '…'"),
    exp.RegexpLike: ("a regular expression", "use LIKE"),
    exp.Interval: ("an interval alone", "add it to a date: x + INTERVAL 5 DAY"),
    exp.IntDiv: ("DIV", _BINNING),
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
            raise refuse_sql(f"rows in {clause}", "an aggregate", fix)
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
        raise refuse_sql("named columns", "*", "name the columns; single rows are never released")
    if len(node.parts) > 2:
        raise refuse_sql("column or table.column", "a longer path", "leave the first names out")
    refuse_other_parts(node, "this", "table")
    return Column(node.name, node.table or None)


def read(node: exp.Expr, leaf: Leaf) -> Expression:
    """The expression a node stands for."""
    result = leaf(node)
    if result is not None:
        return result
    known = SYNTAX.get(type(node).__name__)
    if known is not None:
        return _read_operation(node, known[0].name, known[1], leaf)
    reader = _READERS.get(type(node))
    if reader is None:
        got, fix = _REFUSED.get(type(node), (node.key.upper(), "use comparisons, arithmetic, CASE and COALESCE"))
        raise refuse_sql("an expression dither can bound", got, fix)
    return reader(node, leaf)


def _read_operation(node: exp.Expr, name: str, syntax: Syntax, leaf: Leaf) -> Expression:
    if syntax.refuse is not None:
        syntax.refuse(node)
    if syntax.read is not None:
        return syntax.read(node, lambda item: read(item, leaf))
    refuse_other_parts(node, *syntax.parts, *syntax.ignored, "negate")
    args: list[exp.Expr] = []
    for part in syntax.parts:
        value = node.args[part]
        args.extend(value if isinstance(value, list) else [value])
    call = Call(name, tuple(read(item, leaf) for item in args))
    return Call("not", (call,)) if node.args.get("negate") else call


def number(node: exp.Expr, what: str) -> int | float:
    """A number written as a constant."""
    value = read(node, lambda _node: None) if isinstance(node, (exp.Literal, exp.Neg, exp.Paren)) else None
    if not isinstance(value, Literal) or not isinstance(value.value, (int, float)) or isinstance(value.value, bool):
        raise refuse_sql(f"a number for {what}", "something else", "write it as a constant")
    return value.value


def _literal(node: exp.Expr, _leaf: Leaf) -> Expression:
    return Literal(node.name) if node.is_string else Literal(_parsed_number(node.name))


def _parsed_number(text: str) -> int | float:
    digits = text.isascii() and text.isdigit()
    try:
        value = int(text) if digits and len(text) < 20 else float(text)
    except ValueError:
        raise refuse_sql("a number", repr(clip(text, 20)), "write it as 12, 1.5 or 1e6") from None
    vanished = value == 0 and any(digit in "123456789" for digit in text.lower().split("e")[0])
    # 2**63 itself is let through, for -2**63
    if math.isinf(value) or vanished or (digits and not 0 <= value <= 2**63):
        raise refuse_sql(
            "a number in range", clip(text, 20), "use a number of at most 64 bits, or between 1e-300 and 1e300"
        )
    return value


def _paren(node: exp.Expr, leaf: Leaf) -> Expression:
    refuse_other_parts(node, "this")
    return read(node.this, leaf)


def _function(node: exp.Expr, leaf: Leaf) -> Expression:
    refuse_other_parts(node, "this", "expressions")
    name, args = node.name.upper(), node.expressions
    if name in FUNCTIONS:
        return Call(FUNCTIONS[name], tuple(read(item, leaf) for item in args))
    special = SPECIAL_FUNCTIONS.get(name)
    if special is not None and special.takes(len(args)):
        return special.read(args, lambda item: read(item, leaf))
    if special is not None:
        raise refuse_sql(f"{name} with its arguments", f"{len(args)} of them", f"write {special.usage}")
    known = [*FUNCTIONS, *SPECIAL_FUNCTIONS, *AGGREGATES]
    raise refuse_sql("a function dither can bound", clip(name), _NEAREST.get(name) or closest(name, sorted(known)))


_READERS: dict[type[exp.Expr], Callable[[exp.Expr, Leaf], Expression]] = {
    exp.Literal: _literal,
    exp.Null: lambda _node, _leaf: Literal(None),
    exp.Boolean: lambda node, _leaf: Literal(bool(node.this)),
    exp.Paren: _paren,
    exp.Anonymous: _function,
}
