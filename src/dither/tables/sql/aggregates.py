"""Aggregates as SQL writes them: of groups, which are released with noise, and of the rows of one person.

========================================================  ============================================================
COUNT(*), COUNT(1)                                        rows
COUNT(x)                                                  rows where x is not NULL
COUNT(DISTINCT u), u the column of people                 people
COUNT(DISTINCT x), x anything else                        distinct values, limited for each person
COUNTIF(c), … FILTER (WHERE c)                            rows, or values, where c holds
SUM, AVG, MIN, MAX, MEDIAN                                themselves, of numbers
VAR, VARIANCE, VAR_SAMP; STD, STDDEV, STDDEV_SAMP         with divisor n - 1 (VAR_POP and STDDEV_POP are refused)
PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x),             the quantile of x at p
QUANTILE, QUANTILE_CONT, APPROX_QUANTILE,
PERCENTILE_CONT, APPROX_PERCENTILE (x, p)
MODE(x), MODE() WITHIN GROUP (ORDER BY x)                 the most common of the public keys of x
COVAR_POP, COVAR_SAMP, CORR (x, y)                        of rows where neither is NULL
REGR_SLOPE, REGR_INTERCEPT, REGR_R2 (y, x)                of the line that predicts y from x
========================================================  ============================================================

BigQuery's ``contribution_bounds_per_row => (low, high)`` bounds each value. ``contribution_bounds_per_group`` bounds
what a person adds to a group: for COUNT it is (0, k), the most rows of a person in a group; for the others it is the
bound of a person's one value, and refused where a person may have several rows in a group.

``rows_per_person => k`` is the most rows that one person counts for in the aggregate, over all groups together.

Below the aggregation a person's rows have aggregates and window functions of their own, which are exact.

From sqlglot's nodes to expressions: what can be said of a row, or of a row of the answer.

Which nodes and functions stand for which operation is said in :mod:`dither.tables.query.operations`. Everything else is
refused. Each node is read only if all its parts are known (:func:`refuse_other_parts`), so an option
of a later SQL cannot slip through unread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from dither import arguments
from dither.errors import InvalidArgument
from dither.tables.card.model import Card
from dither.tables.card.values import clip, nearest
from dither.tables.query.evaluate import Types, require_boolean, require_number, typed
from dither.tables.query.operations import FUNCTIONS, SPECIAL_FUNCTIONS, SYNTAX
from dither.tables.query.operations.base import Syntax, describe, refuse_other_parts, refuse_sql
from dither.tables.query.relations import Rows, base_of, card_of, spelling, type_of, types_of
from dither.tables.query.tree import (
    OF_PAIRS,
    Aggregate,
    Call,
    Column,
    Expression,
    Frame,
    Kind,
    Literal,
    Order,
    PersonAggregate,
    PersonKind,
    WindowFunction,
    WindowKind,
    conjunction,
    show,
)
from dither.tables.sql.text import COMMON, FUNCTION_HINTS, PLACEHOLDER_ADVICE, hint, refuse_node
from dither.tables.sql.text import expression as parsed

Leaf = Callable[[exp.Expr], Expression | None]
"""Returns the expression of a node that is special to a clause, such as a column; None for other nodes."""

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
    """Return the expression of a SQL text, with column names not yet resolved."""
    return read(parsed(text), lambda node: name_of(node) if isinstance(node, exp.Column) else None)


def row_leaf(rows: Rows, clause: str) -> Leaf:
    """Return the reader of columns for a clause about single rows: it resolves their names in ``rows``, and refuses
    aggregates."""

    def leaf(node: exp.Expr) -> Expression | None:
        """Return the expression of a column; None for other nodes."""
        if is_aggregate(node):
            fix = "conditions on aggregates stand in HAVING" if clause == "WHERE" else "aggregate once, over plain rows"
            raise refuse_sql(f"rows in {clause}", "an aggregate", fix)
        return find_column(node, rows) if isinstance(node, exp.Column) else None

    return leaf


def find_column(node: exp.Column, rows: Rows) -> Expression:
    """Return the resolved column of a column node; refuse an unknown name with advice on the most likely mistake."""
    column = name_of(node)
    if column.table is not None or rows.lookup(column) is not None:
        return rows.find(column)
    fix = nearest(column.name, [name for item in rows.relations for name in item.columns], quote=None)
    fix = fix or _meant_instead(node, column.name)
    if fix is None:
        return rows.find(column)  # raises the refusal
    got = f'"{clip(column.name)}" in double quotes, which is a name' if node.this.quoted else repr(clip(column.name))
    raise InvalidArgument("column", "a column of the table", got, fix)


def _meant_instead(node: exp.Column, name: str) -> str | None:
    """Return advice on an unknown column name that is probably something else, by its form and context: a placeholder,
    an alias used too early, or a text in double quotes; None where none is likely."""
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
    """Return the error for a column that is neither grouped nor aggregated, with advice by the clause that names it;
    ``numeric`` suggests an average."""
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
    """Return the unresolved column of a column node; refuse ``*`` and paths longer than table.column."""
    if isinstance(node.this, exp.Star):
        raise refuse_sql("named columns", "*", "name the columns; single rows are never released")
    if len(node.parts) > 2:
        raise refuse_sql("column or table.column", "a longer path", "leave the first names out")
    refuse_other_parts(node, "this", "table")
    return Column(node.name, node.table or None)


def read(node: exp.Expr, leaf: Leaf) -> Expression:
    """Return the expression of a sqlglot node; refuse nodes without a corresponding operation. ``leaf`` is asked first:
    it reads columns and other nodes that are special to the clause."""
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
            raise refuse_sql(
                "a subquery about rows of the same person", "one that uses columns of the row around it", fix
            )
        otherwise = f"use comparisons, arithmetic, or one of {COMMON}"
        raise refuse_node(node, "an expression dither can bound", otherwise)
    return reader(node, leaf)


def read_if_known(node: exp.Expr, leaf: Leaf) -> Expression | None:
    """Return the expression of a sqlglot node; None where there is no such operation or column."""
    try:
        return read(node, leaf)
    except InvalidArgument:
        return None


def _read_operation(node: exp.Expr, name: str, syntax: Syntax, leaf: Leaf) -> Expression:
    """Return the expression of a node for an operator or clause, such as ``a + b`` or ``x IN (…)``, read as the
    operation's ``syntax`` says."""
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
    """Return the value of a numeric constant; refuse other nodes, with ``what`` as the name of the argument."""
    value = read(node, lambda _node: None) if isinstance(node, (exp.Literal, exp.Neg, exp.Paren)) else None
    if not isinstance(value, Literal) or not isinstance(value.value, (int, float)) or isinstance(value.value, bool):
        raise refuse_sql(f"a number for {what}", clip(node.sql("duckdb"), 30), "write it as a constant, for example 10")
    return value.value


def _literal(node: exp.Expr, _leaf: Leaf) -> Expression:
    """Return the expression of a text or number constant."""
    return Literal(node.name) if node.is_string else Literal(_parsed_number(node.name))


def _parsed_number(text: str) -> int | float:
    """Return the number that a text states: an int if it is only digits, otherwise a float; refuse numbers that 64 bits
    or a double cannot hold."""
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
    """Return the expression of a function call; refuse unknown functions, with a hint or the most similar name."""
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


_PLAIN: dict[str, Kind] = {
    "SUM": "sum",
    "AVG": "mean",
    "MEAN": "mean",
    **dict.fromkeys(["VAR", "VARIANCE", "VAR_SAMP"], "var"),
    **dict.fromkeys(["STD", "STDDEV", "STDDEV_SAMP"], "std"),
    "MIN": "min",
    "MAX": "max",
    "MEDIAN": "quantile",
}
_PAIRS: dict[str, Kind] = {kind.upper(): kind for kind in OF_PAIRS}
_DISCRETE = ("QUANTILE", "APPROX_QUANTILE", "APPROX_PERCENTILE")
_QUANTILES = ("PERCENTILE_CONT", "QUANTILE_CONT", *_DISCRETE)
_NEAREST = {
    "VAR_POP": "use VAR_SAMP, and multiply by (n - 1) / n if you must",
    "STDDEV_POP": "use STDDEV_SAMP",
    **dict.fromkeys(["PERCENTILE_DISC", "QUANTILE_DISC"], "use PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)"),
    "APPROX_QUANTILES": "use APPROX_QUANTILE(x, p), one for each p",
}
PER_ROW, PER_GROUP = "contribution_bounds_per_row", "contribution_bounds_per_group"
PER_PERSON = "rows_per_person"


@dataclass(frozen=True)
class ParsedAggregate:
    """An aggregate, and what its ``contribution_bounds_per_group`` imply for the question.

    ``max_rows`` is the limit on a person's rows in a group that COUNT states, None without one. ``one_row`` says that
    the bounds are valid only if a person has at most one row in a group.
    """

    aggregate: Aggregate
    max_rows: int | None = None
    one_row: bool = False


@dataclass(frozen=True)
class _AggregateCall:
    """An aggregate as it was written: its name, its arguments, its named bounds and ``rows_per_person``, the expression
    of WITHIN GROUP (ORDER BY …) and the condition of FILTER; None for what is absent."""

    name: str
    args: list[exp.Expr]
    named: dict[str, tuple[float, float]]
    rows_per_person: int | None
    ordered: exp.Expr | None
    condition: Expression | None


def aggregate(node: exp.Expr, rows: Rows, card: Card) -> ParsedAggregate:
    """Return the aggregate over groups of a sqlglot node; refuse aggregates that cannot be released privately."""
    call = _aggregate_call(node, rows, card)
    result = _aggregate(call, rows, card)
    return replace(result, aggregate=replace(result.aggregate, rows_per_person=call.rows_per_person))


def _aggregate(call: _AggregateCall, rows: Rows, card: Card) -> ParsedAggregate:
    """Return the aggregate of a call, without its ``rows_per_person``."""
    name = call.name
    if name in _NEAREST:
        raise refuse_sql("an aggregate dither can release", name, _NEAREST[name])
    if name == "COUNT":
        return _count(call, rows, card)
    if PER_ROW in call.named and PER_GROUP in call.named:
        raise refuse_sql("one kind of bounds", "two", f"leave {PER_GROUP} out")
    bounds = call.named.get(PER_ROW, call.named.get(PER_GROUP))
    if name in ("COUNTIF", "COUNT_IF"):
        _refuse_bounds(call)
        condition = require_boolean(read(_single_argument(call), row_leaf(rows, name)), _types(card), name)
        return ParsedAggregate(_count_where(conjunction(condition, call.condition)))
    if name == "MODE":
        _refuse_bounds(call)
        return ParsedAggregate(_mode(call, rows, card))
    if name in _PAIRS:
        _refuse_bounds(call)
        return ParsedAggregate(_pair_aggregate(call, rows, card))
    at = 0.5
    if name in _QUANTILES:
        value_node, at = _quantile(call)
    else:
        value_node = _single_argument(call)
    if name not in _PLAIN and name not in _QUANTILES:
        raise refuse_sql("an aggregate dither can release", name, "use COUNT, SUM, AVG, MEDIAN, MIN or MAX")
    written = read(value_node, row_leaf(rows, name))
    named = spelling(str(written.value), card.columns) if isinstance(written, Literal) else None
    if named is not None:
        raise refuse_sql(f"{name} of a column", f"the text '{named}'", f"write {name}({named}), without quotes")
    value = require_number(written, _types(card), name)
    value = _null_unless(value, call.condition)
    return ParsedAggregate(
        Aggregate(_PLAIN.get(name, "quantile"), value, bounds=bounds, at=at, discrete=name in _DISCRETE),
        one_row=PER_GROUP in call.named,
    )


def default_name(aggregate: Aggregate) -> str:
    """Return the name of an aggregate's column in the answer where AS gives none: "sum_amount", "count" or
    "median_age"."""
    kind = {"count_value": "count", "quantile": "median" if aggregate.at == 0.5 else "quantile"}.get(
        aggregate.kind, aggregate.kind
    )
    return f"{kind}_{aggregate.value.name}" if isinstance(aggregate.value, Column) else kind


def _types(card: Card) -> Types:
    """Return the function that looks up the type of a resolved column in the card."""
    return lambda column: type_of(card, column)


def _aggregate_call(node: exp.Expr, rows: Rows, card: Card) -> _AggregateCall:
    """Return the parts of an aggregate's node: name, arguments, named arguments, and the clauses FILTER and WITHIN
    GROUP after it."""
    condition = ordered = None
    if isinstance(node, exp.Filter):
        refuse_other_parts(node, "this", "expression")
        filter_condition = read(node.expression.this, row_leaf(rows, "FILTER"))
        condition, node = require_boolean(filter_condition, _types(card), "FILTER"), node.this
    if isinstance(node, exp.WithinGroup):
        refuse_other_parts(node, "this", "expression")
        order, node = node.expression, node.this
        keys = order.expressions
        if len(keys) != 1 or keys[0].args.get("desc"):
            raise refuse_sql(
                "WITHIN GROUP (ORDER BY x)", "several keys, or DESC", "order by one column, rising; for DESC ask 1 - p"
            )
        ordered = keys[0].this
    if not isinstance(node, exp.Anonymous):  # the parser reads every call of a function, COUNT too, as this node
        raise refuse_sql("an aggregate", node.key.upper(), "use COUNT, SUM, AVG, MEDIAN, MIN or MAX")
    refuse_other_parts(node, "this", "expressions")
    args, named = [], {}
    rows_per_person: int | None = None
    for item in node.expressions:
        if isinstance(item, (exp.Kwarg, exp.PropertyEQ)):
            key = item.this.name.lower()
            if key == PER_PERSON:
                if rows_per_person is not None:
                    raise refuse_sql(f"{PER_PERSON} once", "it twice", "leave one of them out")
                rows_per_person = arguments.whole(number(item.expression, key), key)
                continue
            if key not in (PER_ROW, PER_GROUP) or key in named:
                raise refuse_sql(f"{PER_ROW} or {PER_GROUP}, once", clip(key), f"write {PER_ROW} => (0, 100)")
            named[key] = _bounds(item.expression, key)
        elif named or rows_per_person is not None:
            first = next(iter(named), PER_PERSON)
            raise refuse_sql("named arguments last", "others after them", f"move {first} to the end")
        else:
            args.append(item)
    return _AggregateCall(node.name.upper(), args, named, rows_per_person, ordered, condition)


def _bounds(node: exp.Expr, key: str) -> tuple[float, float]:
    """Return the pair (low, high) that a named argument states, both constants and low below high."""
    if not isinstance(node, exp.Tuple) or len(node.expressions) != 2:
        raise refuse_sql(f"{key} => (low, high)", clip(node.sql("duckdb"), 30), f"write {key} => (0, 100)")
    low, high = (number(item, key) for item in node.expressions)
    return arguments.bounds((low, high), key)


def _single_argument(call: _AggregateCall) -> exp.Expr:
    """Return the only argument of an aggregate; refuse DISTINCT, WITHIN GROUP and any other number of arguments."""
    if call.ordered is not None:
        raise refuse_sql(f"{call.name}(x)", "WITHIN GROUP", f"write {call.name}(x)")
    if len(call.args) != 1:
        fix = "write COUNT(*)" if call.name == "COUNT" else f"write {call.name}(x)"
        raise refuse_sql(f"{call.name}(x)", f"{len(call.args)} arguments", fix)
    if isinstance(call.args[0], exp.Distinct):
        fix = f"write {call.name}(x); only COUNT takes DISTINCT"
        raise refuse_sql(f"{call.name} of all rows", "DISTINCT", fix)
    return call.args[0]


def _refuse_bounds(call: _AggregateCall) -> None:
    """Refuse contribution bounds for an aggregate that has no values to bound."""
    if call.named:
        raise refuse_sql(f"{call.name} without bounds", next(iter(call.named)), "leave the bounds out")


def _count_where(condition: Expression | None) -> Aggregate:
    """Return COUNT(*) over the rows for which a condition holds; over all rows for None."""
    if condition is None:
        return Aggregate("count")
    return Aggregate("count_value", _null_unless(Literal(1), condition))


def _count(call: _AggregateCall, rows: Rows, card: Card) -> ParsedAggregate:
    """Return the aggregate of COUNT: the number of rows, of rows where the argument is not NULL, or of its distinct
    values."""
    if len(call.args) == 1 and isinstance(call.args[0], exp.Distinct):
        return ParsedAggregate(_distinct(call, call.args[0], rows, card))
    if PER_ROW in call.named:
        raise refuse_sql(f"COUNT with {PER_GROUP}", PER_ROW, f"write {PER_GROUP} => (0, 5)")
    max_rows = None
    if PER_GROUP in call.named:
        low, high = call.named[PER_GROUP]
        if low != 0 or high != int(high):
            raise refuse_sql(
                f"{PER_GROUP} => (0, k) for COUNT, k whole", f"({low}, {high})", "write (0, 5), for example"
            )
        max_rows = int(high)
    node = _single_argument(call)
    if isinstance(node, exp.Star):
        refuse_other_parts(node)
        return ParsedAggregate(_count_where(call.condition), max_rows)
    value, kind = typed(read(node, row_leaf(rows, "COUNT")), _types(card))
    if isinstance(value, Literal) and kind is not None:
        return ParsedAggregate(_count_where(call.condition), max_rows)
    if kind is None:
        raise refuse_sql("COUNT of something", "COUNT(NULL)", "write COUNT(*)")
    return ParsedAggregate(Aggregate("count_value", _null_unless(value, call.condition)), max_rows)


def _distinct(call: _AggregateCall, distinct: exp.Distinct, rows: Rows, card: Card) -> Aggregate:
    """Return COUNT(DISTINCT x): the number of people where x is the column that names the person, otherwise the
    number of distinct values."""
    _refuse_bounds(call)
    refuse_other_parts(distinct, "expressions")
    if len(distinct.expressions) != 1:
        fix = "count the different values of one column, or GROUP BY the other ones"
        raise refuse_sql("COUNT(DISTINCT x)", f"{len(distinct.expressions)} columns", fix)
    value, kind = typed(read(distinct.expressions[0], row_leaf(rows, "COUNT")), _types(card))
    if kind is None:
        raise refuse_sql("COUNT of something", "COUNT(DISTINCT NULL)", "write COUNT(*)")
    unit = base_of(card).unit
    if unit is not None and value == Column(unit):
        if call.condition is not None:
            raise refuse_sql(f"COUNT(DISTINCT {unit}) without FILTER", "FILTER", "put the condition into WHERE")
        return Aggregate("people")
    return Aggregate("count_distinct", _null_unless(value, call.condition))


def _mode(call: _AggregateCall, rows: Rows, card: Card) -> Aggregate:
    """Return MODE(x), the most common of the public keys of x. A column without keys in the card gets its keys when
    the question is planned."""
    if call.condition is not None:
        raise refuse_sql("MODE without FILTER", "FILTER", "put the condition into WHERE")
    node = call.ordered if call.ordered is not None and not call.args else _single_argument(call)
    value, kind = typed(read(node, row_leaf(rows, "MODE")), _types(card))
    if kind is None:
        raise refuse_sql("MODE of something", "MODE(NULL)", "name a column")
    keys = card_of(card, value).keys if isinstance(value, Column) else None
    return Aggregate("mode", value, keys=tuple(keys) if keys else None)


def _pair_aggregate(call: _AggregateCall, rows: Rows, card: Card) -> Aggregate:
    """Return a covariance, correlation or regression of two numbers. A regression predicts its first argument from
    its second."""
    names = "y, x" if call.name.startswith("REGR") else "x, y"
    if call.ordered is not None or len(call.args) != 2 or any(isinstance(item, exp.Distinct) for item in call.args):
        raise refuse_sql(
            f"{call.name}({names})", f"{len(call.args)} arguments", f"write {call.name}({names}) with two numbers"
        )
    leaf = row_leaf(rows, call.name)
    value, other = (require_number(read(item, leaf), _types(card), call.name) for item in call.args)
    return Aggregate(_PAIRS[call.name], _null_unless(value, call.condition), other=other)


def _quantile(call: _AggregateCall) -> tuple[exp.Expr, float]:
    """Return the expression whose quantile is asked for, and the probability, from either spelling:
    PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x) or QUANTILE(x, p)."""
    use = f"write {call.name}(x, 0.5)"
    if call.ordered is not None:
        if call.name != "PERCENTILE_CONT" or len(call.args) != 1:
            raise refuse_sql("PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)", f"{call.name} with WITHIN GROUP", use)
        value, place = call.ordered, call.args[0]
    elif len(call.args) == 2 and not isinstance(call.args[0], exp.Distinct):
        value, place = call.args
    else:
        raise refuse_sql(f"{call.name}(x, p)", f"{len(call.args)} arguments", use)
    if isinstance(place, exp.Array):
        raise refuse_sql("one p", "a list", f"ask for each: {call.name}(x, 0.25), {call.name}(x, 0.75)")
    at = number(place, call.name)
    if not 0 <= at <= 1:
        raise refuse_sql("p from 0 to 1", str(at), f"write {call.name}(x, {at / 100:g})" if 1 < at <= 100 else use)
    return value, float(at)


_KINDS: dict[str, PersonKind] = {
    "SUM": "sum", "AVG": "mean", "MEAN": "mean", "MIN": "min", "MAX": "max",
    "BOOL_OR": "any", "LOGICAL_OR": "any", "BOOL_AND": "every", "LOGICAL_AND": "every", "EVERY": "every",
}  # fmt: skip
_WINDOWS: dict[str, WindowKind] = {
    "ROW_NUMBER": "row_number", "RANK": "rank", "DENSE_RANK": "dense_rank", "LAG": "lag", "LEAD": "lead",
    "FIRST_VALUE": "first_value", "LAST_VALUE": "last_value", "SUM": "sum", "AVG": "mean", "MEAN": "mean",
    "MIN": "min", "MAX": "max", "COUNT": "count",
}  # fmt: skip
_AGGREGATES = "use COUNT, COUNTIF, SUM, AVG, MIN, MAX, BOOL_OR or BOOL_AND inside"


def is_person_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is an aggregate that may be applied to one person's rows: one of those over groups, or
    BOOL_OR or BOOL_AND; FILTER may follow."""
    if is_aggregate(node):
        return True
    while isinstance(node, exp.Filter):
        node = node.this
    return isinstance(node, exp.Anonymous) and node.name.upper() in _KINDS


def person_aggregate(node: exp.Expr, rows: Rows, card: Card) -> PersonAggregate:
    """Return the exact aggregate of one person's rows of a sqlglot node, in a SELECT with GROUP BY person."""
    types = types_of(rows, card)
    condition: Expression | None = None
    if isinstance(node, exp.Filter):
        refuse_other_parts(node, "this", "expression")
        condition = require_boolean(read(node.expression.this, row_leaf(rows, "FILTER")), types, "FILTER")
        node = node.this
    if not isinstance(node, exp.Anonymous):
        raise refuse_sql("an aggregate of a person's rows", node.key.upper(), _AGGREGATES)
    refuse_other_parts(node, "this", "expressions")
    name, args = node.name.upper(), node.expressions
    if len(args) != 1:
        raise refuse_sql(f"{name}(x)", f"{len(args)} arguments", f"write {name}(x)")
    distinct = isinstance(args[0], exp.Distinct)
    if distinct:
        refuse_other_parts(args[0], "expressions")
        if name != "COUNT" or len(args[0].expressions) != 1:
            raise refuse_sql("COUNT(DISTINCT x)", "DISTINCT in another place", "write COUNT(DISTINCT x) of one column")
    if isinstance(args[0], exp.Star) and name == "COUNT":
        return _count_rows(condition)
    leaf = row_leaf(rows, name)
    value = read(args[0].expressions[0] if distinct else args[0], leaf)
    if name in ("COUNTIF", "COUNT_IF"):
        wanted = require_boolean(value, types, name)
        return _count_rows(wanted if condition is None else Call("and", (wanted, condition)))
    if name == "COUNT":
        checked, kind = typed(value, types)
        if kind is None:
            raise refuse_sql("COUNT of something", "COUNT(NULL)", "write COUNT(*)")
        if isinstance(checked, Literal):
            return _count_rows(condition)
        return PersonAggregate("count_distinct" if distinct else "count_value", _null_unless(checked, condition))
    if name not in _KINDS:
        raise refuse_sql("an aggregate of a person's rows", clip(name), _AGGREGATES)
    return PersonAggregate(_KINDS[name], _null_unless(_typed_argument(name, value, types), condition))


def _typed_argument(name: str, value: Expression, types: Types) -> Expression:
    """Return the type-checked argument of an aggregate of one person's rows: a number for SUM and AVG, a condition for
    BOOL_OR and BOOL_AND, anything but a condition for others."""
    kind = _KINDS[name]
    if kind in ("sum", "mean"):
        return require_number(value, types, name)
    if kind in ("any", "every"):
        return require_boolean(value, types, name)
    checked, type = typed(value, types)
    if type is None or type == "boolean":
        raise refuse_sql(f"{name} of numbers, texts or dates", "a condition", "use BOOL_OR or BOOL_AND")
    return checked


def _null_unless(value: Expression, condition: Expression | None) -> Expression:
    """Return CASE WHEN condition THEN value END, whose NULLs aggregates ignore; the value unchanged for None."""
    return value if condition is None else Call("case", (condition, value, Literal(None)))


def _count_rows(condition: Expression | None) -> PersonAggregate:
    """Return the count of a person's rows for which a condition holds; of all rows for None."""
    counted = _count_where(condition)
    return PersonAggregate("count" if condition is None else "count_value", counted.value)


def window_function(
    node: exp.Window, value_of: Callable[[exp.Expr], Expression], types: Types, person: Column
) -> WindowFunction:
    """Return the window function over one person's rows of a sqlglot node.

    It must be partitioned by the ``person``: a window over several people would mix their rows. ``value_of`` reads its
    arguments, and ``types`` has the types of columns.
    """
    refuse_other_parts(node, "this", "partition_by", "order", "spec", "over")
    function = node.this
    if isinstance(function, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        raise refuse_sql("a window function as it is", "IGNORE NULLS or FILTER", "write CASE inside its argument")
    if not isinstance(function, exp.Anonymous) or function.name.upper() not in _WINDOWS:
        got = clip(function.name.upper() or function.key.upper())
        raise refuse_sql("a window function over rows of a person", got, f"use {', '.join(_WINDOWS)}")
    name = function.name.upper()
    kind: WindowKind = _WINDOWS[name]
    partition = [value_of(item) for item in node.args.get("partition_by") or ()]
    if person not in partition:
        got = "PARTITION BY something else" if partition else "no PARTITION BY"
        fix = f"add {person.name} to PARTITION BY: a window over several people would mix their rows"
        raise refuse_sql(f"{name} OVER (PARTITION BY {person.name} …)", got, fix)
    keys = node.args["order"].expressions if node.args.get("order") else ()
    order = tuple(_order(item, value_of, types) for item in keys)
    args = list(function.expressions)
    frame = _frame(node.args.get("spec"), bool(order))
    if kind in ("row_number", "rank", "dense_rank", "lag", "lead", "first_value", "last_value") and not order:
        fix = f"write {name}(…) OVER (PARTITION BY {person.name} ORDER BY …)"
        raise refuse_sql(f"{name} in an order", "no ORDER BY", fix)
    offset = 1
    if kind in ("row_number", "rank", "dense_rank"):
        if args:
            raise refuse_sql(f"{name}()", f"{len(args)} arguments", f"write {name}()")
        return WindowFunction(kind, None, _other_partition_keys(partition, person, types), order)
    if kind in ("lag", "lead") and len(args) > 1:
        offset = _offset(name, args)
        args = args[:1]
    if len(args) != 1 or isinstance(args[0], exp.Distinct):
        raise refuse_sql(f"{name}(x)", "other arguments", f"write {name}(x)")
    if kind == "last_value" and frame != "all":
        fix = "add ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING, or use FIRST_VALUE with DESC"
        raise refuse_sql("LAST_VALUE of all rows of a person", "of the rows so far", fix)
    if kind in ("lag", "lead", "first_value"):
        frame = "all"
    value: Expression | None = None
    if not (kind == "count" and isinstance(args[0], exp.Star)):
        value = value_of(args[0])
        value, type = typed(value, types)
        if kind in ("sum", "mean"):
            value = require_number(value, types, name)
        elif type is None or (type == "boolean" and kind in ("min", "max")):
            raise refuse_sql(
                f"{name} of numbers, texts or dates", describe(type), "write CASE WHEN … THEN 1 ELSE 0 END"
            )
        kind = "count_value" if kind == "count" else kind
    return WindowFunction(kind, value, _other_partition_keys(partition, person, types), order, offset, frame)


def _other_partition_keys(partition: list[Expression], person: Column, types: Types) -> tuple[Expression, ...]:
    """Return the type-checked expressions of PARTITION BY other than the person."""
    return tuple(typed(item, types)[0] for item in partition if item != person)


def _order(node: exp.Expr, value_of: Callable[[exp.Expr], Expression], types: Types) -> Order:
    """Return one key of ORDER BY inside OVER; NULLs come last."""
    if node.args.get("nulls_first"):
        raise refuse_sql("NULLS LAST", "NULLS FIRST", "leave it out; NULLs come last")
    refuse_other_parts(node, "this", "desc", "nulls_first")
    return Order(typed(value_of(node.this), types)[0], bool(node.args.get("desc")))


def _offset(name: str, args: list[exp.Expr]) -> int:
    """Return the constant number of rows that LAG(x, n) or LEAD(x, n) looks back or ahead."""
    if len(args) > 2:
        raise refuse_sql(f"{name}(x, n)", "a default", f"write COALESCE({name}(x, n) OVER (…), default)")
    offset = number(args[1], name)
    if not isinstance(offset, int) or not 0 <= offset <= 1_000_000:
        raise refuse_sql(f"{name}(x, n) with a whole number n", str(offset), f"write {name}(x, 1)")
    return offset


def _frame(spec: exp.Expr | None, ordered: bool) -> Frame:
    """Return the rows that a window aggregates: ``all`` of the partition, those up to the current row (``rows``), or
    also its peers in the order (``peers``), which is SQL's default with ORDER BY. Refuse other frames."""
    if spec is None:
        return "peers" if ordered else "all"
    refuse_other_parts(spec, "kind", "start", "start_side", "end", "end_side")
    start = f"{spec.args.get('start')} {spec.args.get('start_side') or ''}".strip().upper()
    end = f"{spec.args.get('end')} {spec.args.get('end_side') or ''}".strip().upper()
    kind = str(spec.args.get("kind") or "").upper()
    if start == "UNBOUNDED PRECEDING" and kind in ("ROWS", "RANGE"):
        if end == "UNBOUNDED FOLLOWING":
            return "all"
        if end in ("CURRENT ROW", "NONE", ""):
            return "rows" if kind == "ROWS" else "peers" if ordered else "all"
    fix = "write ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, or AND UNBOUNDED FOLLOWING"
    raise refuse_sql("a window of all rows of a person, or of those so far", f"{kind} from {start} to {end}", fix)
