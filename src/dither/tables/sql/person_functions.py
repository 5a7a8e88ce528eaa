"""Aggregates and window functions over the rows of one person, as SQL writes them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dither.tables.card.model import Card
from dither.tables.card.wording import clip
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.query.relations import types_of
from dither.tables.query.resolve import Rows
from dither.tables.query.tree import (
    Call,
    Column,
    Expression,
    Frame,
    Literal,
    Order,
    PersonAggregate,
    PersonKind,
    WindowFunction,
    WindowKind,
)
from dither.tables.query.typecheck import Types, require_boolean, require_number, typed
from dither.tables.sql.expressions import is_aggregate, number, read, row_leaf

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
    """Whether the node is an aggregate with all that belongs to it."""
    if is_aggregate(node):
        return True
    while isinstance(node, exp.Filter):
        node = node.this
    return isinstance(node, exp.Anonymous) and node.name.upper() in _KINDS


def person_aggregate(node: exp.Expr, rows: Rows, card: Card) -> PersonAggregate:
    """The aggregate of a person's rows that a node stands for."""
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
        return _count(condition)
    leaf = row_leaf(rows, name)
    value = read(args[0].expressions[0] if distinct else args[0], leaf)
    if name in ("COUNTIF", "COUNT_IF"):
        wanted = require_boolean(value, types, name)
        return _count(wanted if condition is None else Call("and", (wanted, condition)))
    if name == "COUNT":
        checked, kind = typed(value, types)
        if kind is None:
            raise refuse_sql("COUNT of something", "COUNT(NULL)", "write COUNT(*)")
        if isinstance(checked, Literal):
            return _count(condition)
        return PersonAggregate("count_distinct" if distinct else "count_value", _where(checked, condition))
    if name not in _KINDS:
        raise refuse_sql("an aggregate of a person's rows", clip(name), _AGGREGATES)
    return PersonAggregate(_KINDS[name], _where(_checked(name, value, types), condition))


def _checked(name: str, value: Expression, types: Types) -> Expression:
    """The argument of an aggregate, refused where it is of the wrong type."""
    kind = _KINDS[name]
    if kind in ("sum", "mean"):
        return require_number(value, types, name)
    if kind in ("any", "every"):
        return require_boolean(value, types, name)
    checked, type = typed(value, types)
    if type is None or type == "boolean":
        raise refuse_sql(f"{name} of numbers, texts or dates", "a condition", "use BOOL_OR or BOOL_AND")
    return checked


def _where(value: Expression, condition: Expression | None) -> Expression:
    return value if condition is None else Call("case", (condition, value, Literal(None)))


def _count(condition: Expression | None) -> PersonAggregate:
    if condition is None:
        return PersonAggregate("count")
    return PersonAggregate("count_value", Call("case", (condition, Literal(1), Literal(None))))


def window_function(
    node: exp.Window, value_of: Callable[[exp.Expr], Expression], types: Types, person: Column
) -> WindowFunction:
    """The window function that a node stands for; ``value_of`` reads its arguments."""
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
        return WindowFunction(kind, None, _others(partition, person, types), order)
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
                f"{name} of numbers, texts or dates", "another type", "write CASE WHEN … THEN 1 ELSE 0 END"
            )
        kind = "count_value" if kind == "count" else kind
    return WindowFunction(kind, value, _others(partition, person, types), order, offset, frame)


def _others(partition: list[Expression], person: Column, types: Types) -> tuple[Expression, ...]:
    return tuple(typed(item, types)[0] for item in partition if item != person)


def _order(node: exp.Expr, value_of: Callable[[exp.Expr], Expression], types: Types) -> Order:
    if node.args.get("nulls_first"):
        raise refuse_sql("NULLS LAST", "NULLS FIRST", "leave it out; NULLs come last")
    refuse_other_parts(node, "this", "desc", "nulls_first")
    return Order(typed(value_of(node.this), types)[0], bool(node.args.get("desc")))


def _offset(name: str, args: list[exp.Expr]) -> int:
    if len(args) > 2:
        raise refuse_sql(f"{name}(x, n)", "a default", f"write COALESCE({name}(x, n) OVER (…), default)")
    offset = number(args[1], name)
    if not isinstance(offset, int) or not 0 <= offset <= 1_000_000:
        raise refuse_sql(f"{name}(x, n) with a whole number", "another", f"write {name}(x, 1)")
    return offset


def _frame(spec: exp.Expr | None, ordered: bool) -> Frame:
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
    raise refuse_sql("a window of all rows of a person, or of those so far", "another frame", fix)
