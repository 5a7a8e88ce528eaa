"""From sqlglot's nodes to expressions: what can be said of a row, or of a row of the answer.

Which nodes and functions stand for which operation is said in :mod:`dither.tables.query.operations`. Everything else is
refused. Each node is read only if all its parts are known (:func:`refuse_other_parts`), so an option
of a later SQL cannot slip through unread.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.values import clip, nearest
from dither.tables.query.operations import FUNCTIONS, SPECIAL_FUNCTIONS, SYNTAX
from dither.tables.query.operations.base import Syntax, refuse_other_parts, refuse_sql
from dither.tables.query.relations import Rows
from dither.tables.query.tree import Call, Column, Expression, Literal, show
from dither.tables.sql.mistakes import COMMON, FUNCTION_HINTS, PLACEHOLDER_ADVICE, hint, refuse_node
from dither.tables.sql.text import expression as parsed

Leaf = Callable[[exp.Expr], Expression | None]
"""Reads a node in a way of its own, or returns None."""

AGGREGATES = frozenset(
    [
        *("COUNT", "COUNTIF", "COUNT_IF", "SUM", "AVG", "MEAN", "MIN", "MAX", "MODE", "MEDIAN"),
        *("VAR", "VARIANCE", "VAR_SAMP", "VAR_POP", "STD", "STDDEV", "STDDEV_SAMP", "STDDEV_POP"),
        *("PERCENTILE_CONT", "PERCENTILE_DISC", "QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC"),
        *("APPROX_QUANTILE", "APPROX_QUANTILES", "APPROX_PERCENTILE"),
        *("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2"),
    ]
)
_SPECIAL_NAMES = {
    "none": "write NULL, and compare by IS NULL",
    "nan": "write NULL, and compare by IS NULL",
    **dict.fromkeys(["rownum", "rowid", "row_number", "ctid"], "leave it out: rows have no numbers in a question"),
}
"""What to write instead of names that are no columns anywhere here."""


def syntax(text: str) -> Expression:
    """Return the expression that a text of SQL writes, with column names as they are written."""
    return read(parsed(text), lambda node: name_of(node) if isinstance(node, exp.Column) else None)


def row_leaf(rows: Rows, clause: str) -> Leaf:
    """Return the reader of leaf nodes for a clause about rows: it resolves columns and refuses aggregates."""

    def leaf(node: exp.Expr) -> Expression | None:
        """Return the expression of a column; None for nodes that are no leaf."""
        if is_aggregate(node):
            fix = "conditions on aggregates stand in HAVING" if clause == "WHERE" else "aggregate once, over plain rows"
            raise refuse_sql(f"rows in {clause}", "an aggregate", fix)
        return find_column(node, rows) if isinstance(node, exp.Column) else None

    return leaf


def find_column(node: exp.Column, rows: Rows) -> Expression:
    """Return what a column name stands for in these rows; an unknown name is refused with the most likely mistake."""
    column = name_of(node)
    if column.table is not None or rows.lookup(column) is not None:
        return rows.find(column)
    fix = nearest(column.name, [name for item in rows.relations for name in item.columns], quote=None)
    fix = fix or _meant_instead(node, column.name)
    if fix is None:
        return rows.find(column)  # which refuses it
    got = f'"{clip(column.name)}" in double quotes, which is a name' if node.this.quoted else repr(clip(column.name))
    raise InvalidArgument("column", "a column of the table", got, fix)


def _meant_instead(node: exp.Column, name: str) -> str | None:
    """Return advice for an unknown name by where it stands: a placeholder, an alias used too early, or a text in
    double quotes. None where nothing is likely."""
    if name.casefold() in _SPECIAL_NAMES:
        return _SPECIAL_NAMES[name.casefold()]
    if name.startswith(("$", "@", ":")):
        return PLACEHOLDER_ADVICE
    select = node.find_ancestor(exp.Select)
    items = select.expressions if select is not None else []
    alias = next((item for item in items if isinstance(item, exp.Alias) and item.alias == name), None)
    if alias is not None and node.find_ancestor(exp.Where, exp.Select) is not select:
        if any(map(is_aggregate, alias.this.walk())):
            return f"put the condition on {clip(name)} into HAVING, behind GROUP BY"
        return f"write the expression instead of its name: {clip(alias.this.sql('duckdb'))}"
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if isinstance(parent, exp.EQ) and isinstance(parent.parent, exp.Select) and parent.this is node:
        return f"write {clip(parent.expression.sql('duckdb'))} AS {clip(name)}"
    if node.this.quoted or (isinstance(parent, (exp.Binary, exp.In)) and parent.this is not node):
        return f"write '{clip(name)}' in single quotes if it is a text"
    return None


def ungrouped(select: exp.Select, column: Expression, numeric: bool) -> InvalidArgument:
    """Return the refusal of a column that is neither grouped nor aggregated, with advice by the clause that names
    it."""
    name = show(column)
    items = [item.unalias() for item in select.expressions]
    plain = [item for item in items if not any(map(is_aggregate, item.walk()))]
    other = f", or aggregate it: AVG({name})" if numeric else ""
    if not any(_mentions(item, column) for item in items):
        fix = f"order by an aggregate: AVG({name})" if numeric else "order by a column of the answer"
        if _mentions(select.args.get("having"), column):
            fix = f"put the condition on {name} into WHERE, before GROUP BY"
    elif select.args.get("group") or not plain:
        fix = f"add {name} to GROUP BY{other}"
    else:
        fix = f"add GROUP BY {clip(', '.join(item.sql('duckdb') for item in plain))}{other}"
    return refuse_sql("groups and aggregates", f"the column {name} outside of aggregates", fix)


def _mentions(part: exp.Expr | None, column: Expression) -> bool:
    """Return whether a clause names a column outside of its aggregates."""
    waiting = [] if part is None else [part]
    while waiting:
        node = waiting.pop()
        if (
            isinstance(node, exp.Column)
            and isinstance(column, Column)
            and node.name.casefold() == column.name.casefold()
        ):
            return True
        waiting += [] if is_aggregate(node) else node.iter_expressions()
    return False


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is an aggregate function, also with FILTER or WITHIN GROUP behind it."""
    while isinstance(node, (exp.Filter, exp.WithinGroup)):
        node = node.this
    return isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATES


def tables_in(query: exp.Expr) -> set[str]:
    """Return the names and aliases of the tables and subqueries inside a query, in lower case."""
    return {item.alias_or_name.casefold() for item in query.find_all(exp.Table, exp.Subquery)}


def outer_columns(node: exp.Expr, query: exp.Expr) -> list[exp.Column]:
    """Return the qualified columns in part of a query whose table is outside of the query: a correlated subquery has
    some."""
    tables = tables_in(query)
    return [item for item in node.find_all(exp.Column) if item.table and item.table.casefold() not in tables]


def name_of(node: exp.Column) -> Column:
    """Return a column node as the name it writes, unresolved; refuse * and paths of more than table.column."""
    if isinstance(node.this, exp.Star):
        raise refuse_sql("named columns", "*", "name the columns; single rows are never released")
    if len(node.parts) > 2:
        raise refuse_sql("column or table.column", "a longer path", "leave the first names out")
    refuse_other_parts(node, "this", "table")
    return Column(node.name, node.table or None)


def read(node: exp.Expr, leaf: Leaf) -> Expression:
    """Return the expression that a node stands for. ``leaf`` reads columns and whatever else is special to the
    clause; it returns None for other nodes."""
    result = leaf(node)
    if result is not None:
        return result
    known = SYNTAX.get(type(node).__name__)
    if known is not None:
        return _read_operation(node, known[0].name, known[1], leaf)
    reader = _READERS.get(type(node))
    if reader is None:
        if isinstance(node, (exp.Filter, exp.WithinGroup)) and node.this.name.upper() in FUNCTION_HINTS:
            return _function(node.this, leaf)
        if isinstance(node, (exp.Select, exp.Subquery)) and outer_columns(node, node):
            fix = "in its WHERE compare the person of both, and nothing else of the row around it, and select one "
            fix += "aggregate; ask first what is of several people, and write its answer as a number"
            raise refuse_sql("a subquery about rows of the same person", "one that looks at the row around it", fix)
        otherwise = f"use comparisons, arithmetic, or one of {COMMON}"
        raise refuse_node(node, "an expression dither can bound", otherwise)
    return reader(node, leaf)


def read_if_known(node: exp.Expr, leaf: Leaf) -> Expression | None:
    """Return the expression that a node stands for; None where dither has no such operation or column."""
    try:
        return read(node, leaf)
    except InvalidArgument:
        return None


def _read_operation(node: exp.Expr, name: str, syntax: Syntax, leaf: Leaf) -> Expression:
    """Return the call of an operation that SQL writes as an operator or clause, as its row in the table of
    operations says."""
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
    """Return the number that a node writes as a constant; refuse anything else as the value of ``what``."""
    value = read(node, lambda _node: None) if isinstance(node, (exp.Literal, exp.Neg, exp.Paren)) else None
    if not isinstance(value, Literal) or not isinstance(value.value, (int, float)) or isinstance(value.value, bool):
        raise refuse_sql(f"a number for {what}", clip(node.sql("duckdb"), 30), "write it as a constant, for example 10")
    return value.value


def _literal(node: exp.Expr, _leaf: Leaf) -> Expression:
    """Return a text or number constant."""
    return Literal(node.name) if node.is_string else Literal(_parsed_number(node.name))


def _parsed_number(text: str) -> int | float:
    """Return the number that digits write: an int where there is no point or exponent, else a float. Refuse what 64
    bits or a double cannot hold."""
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
    """Return the expression inside parentheses."""
    refuse_other_parts(node, "this")
    return read(node.this, leaf)


def _function(node: exp.Expr, leaf: Leaf) -> Expression:
    """Return the call of an operation that SQL writes as a function; an unknown function is refused with the nearest
    one."""
    refuse_other_parts(node, "this", "expressions")
    name, args = node.name.upper(), node.expressions
    if name in FUNCTIONS:
        return Call(FUNCTIONS[name], tuple(read(item, leaf) for item in args))
    special = SPECIAL_FUNCTIONS.get(name)
    if special is not None and special.takes(len(args)):
        return special.read(args, lambda item: read(item, leaf))
    if special is not None:
        raise refuse_sql(f"{name} with its arguments", f"{len(args)} of them", f"write {special.usage}")
    if name in AGGREGATES:
        instead = "write a condition on columns of the row itself, such as age > 3"
        raise refuse_sql("values of one row here", f"{clip(name)}, which is of many rows", hint(instead, node))
    fix = FUNCTION_HINTS.get(name) or nearest(
        name, sorted([*FUNCTIONS, *SPECIAL_FUNCTIONS, *AGGREGATES]), likeness=0.7, quote=None
    )
    raise refuse_sql("a function dither can bound", clip(name), hint(fix or f"use one of {COMMON}", node))


_READERS: dict[type[exp.Expr], Callable[[exp.Expr, Leaf], Expression]] = {
    exp.Literal: _literal,
    exp.Null: lambda _node, _leaf: Literal(None),
    exp.Boolean: lambda node, _leaf: Literal(bool(node.this)),
    exp.Paren: _paren,
    exp.Anonymous: _function,
}
