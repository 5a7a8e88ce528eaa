"""Questions in Python, built step by step: each step takes a question and returns one, checked against the card.

>>> from dither.tables.builder.expressions import col, count, mean
>>> from dither.tables.card.model import Card, ColumnCard
>>> visits = Card("visits", "visits.csv", {"region": ColumnCard("text"), "amount": ColumnCard("number", (0, 9))})
>>> question = query(visits, {"n": count(), "spend": mean("amount")}, groups=["region"], where=col("amount") > 5)
>>> question.groups[0].name, question.aggregates["spend"].kind
('region', 'mean')

A str names a column of the table, except in conditions (``where``, ``having``), where it is SQL: ``"amount > 5"``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Literal as Choice
from typing import cast

from dither import arguments
from dither.errors import InvalidArgument, WrongType
from dither.tables.builder.expressions import Operand, condition, distinct_keys, expression
from dither.tables.card.model import Card, Type
from dither.tables.card.values import Value, clip
from dither.tables.query.evaluate import Types, check_shape, require_boolean, require_number, typed
from dither.tables.query.relations import (
    Rows,
    answer_type,
    card_of,
    person_of,
    private_relation,
    public_relation,
    relation_card,
    resolve_columns,
    type_of,
)
from dither.tables.query.tree import (
    Aggregate,
    Call,
    Column,
    Expression,
    Group,
    Join,
    Literal,
    Order,
    PerPerson,
    PersonAggregate,
    PersonKind,
    PrivateRows,
    Query,
    Shape,
    conjunction,
)

Grouping = Operand | Group
"""What can be grouped by: a column, an expression, or either with its public keys (:func:`among`)."""


def desc(value: Operand) -> Order:
    """Sort by a value in descending order."""
    return Order(expression(value, "order"), descending=True)


def among(value: Operand, keys: Iterable[Value]) -> Group:
    """Return a column or expression to group by, and its public keys: each is in the answer, and no other.

    >>> among("region", ["a", "b"]).keys
    ('a', 'b')
    """
    return Group("", expression(value, "groups"), distinct_keys(keys, "keys"))


def where(query: Query, conditions: object, card: Card) -> Query:
    """Return the question restricted to rows for which all of the ``conditions`` hold, besides those it has."""
    rows, types = _rows(query, card), _types(card)
    result = [
        require_boolean(resolve_columns(condition(item, "where"), rows), types, "where")
        for item in _as_list(conditions)
    ]
    return replace(query, where=reduce(conjunction, result, query.where))


_rows_where = where
"""The function, for :func:`query`, whose parameter has the name."""


def join(query: Query, table: str, own_key: object, other: str, card: Card, *, left: bool = False) -> Query:
    """Return the question with the columns of a public ``table`` beside each row.

    A row's partner is the one whose column ``other`` equals the row's ``own_key``. ``left`` keeps rows without a
    partner.
    """
    name, relation = public_relation(card, table)
    if any(name == item.table for item in query.joins):
        raise InvalidArgument("join", "each public table once", f"{name!r} twice", "join it once")
    key = resolve_columns(expression(own_key, "join"), Rows((private_relation(card),)))
    result = cast(Column, Rows((relation,)).find(Column(other)))
    typed(Call("=", (key, result)), _types(card))
    return replace(query, joins=(*query.joins, Join(name, key, result.name, left)))


def group_by(query: Query, groups: Sequence[object], named: Mapping[str, object], card: Card) -> Query:
    """Return the question by groups: for each value of the columns in ``groups``, and of the expressions in ``named``.

    Groups are added to those that ``query`` has already; names that occur twice are refused.
    """
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        raise WrongType("groups", "a list of columns", type(groups).__name__, "pass groups=['region']")
    rows = _rows(query, card)
    listed = [item for group in groups for item in (group if isinstance(group, (list, tuple)) else [group])]
    result = [_group(None, item, rows, card) for item in listed]
    result += [_group(name, item, rows, card) for name, item in named.items()]
    plan = replace(query, groups=(*query.groups, *result))
    _check_names(plan)
    return plan


def refuse_unnamed(values: Sequence[object]) -> None:
    """Refuse aggregates without a name, such as pandas' dict of functions by column, with how to write them."""
    if not values:
        return
    fix = "write agg(n=dp.count())"
    if isinstance(values[0], Mapping):
        fix = _named_aggregates(values[0]) or fix
    raise WrongType("agg", "aggregates by name", type(values[0]).__name__, fix)


def _named_aggregates(values: Mapping[object, object]) -> str | None:
    """Return the advice that writes pandas' dict of functions by column as named aggregates; None where none of its
    functions is known."""
    known = ("count", "mean", "sum", "min", "max", "median", "std", "var", "mode")
    pairs = [(str(column), name) for column, name in values.items() if name in known]
    parts = [f"{name}_{column}=dp.{name}({column!r})" for column, name in pairs[:5] if column.isidentifier()]
    return f"write agg({', '.join(parts)})" if parts else None


def agg(query: Query, aggregates: Mapping[str, Aggregate], card: Card) -> Query:
    """Return the question with further aggregates of each group, by their names in the answer."""
    if not isinstance(aggregates, Mapping) or not all(isinstance(item, Aggregate) for item in aggregates.values()):
        raise WrongType("agg", "aggregates by name", "values that are no aggregates", "write agg(m=dp.mean('column'))")
    if not aggregates:
        raise InvalidArgument("agg", "an aggregate", "none", "write agg(n=dp.count())")
    if taken := [name for name in aggregates if name in query.aggregates]:
        raise InvalidArgument("agg", "names that are not in use yet", repr(clip(taken[0])), "rename it")
    rows = _rows(query, card)
    result = {name: _aggregate(item, rows, card) for name, item in aggregates.items()}
    plan = replace(query, aggregates={**query.aggregates, **result})
    _check_names(plan)
    return plan


def per_person(query: Query, aggregates: Mapping[str, Aggregate], card: Card) -> Query:
    """Return the question about a table with one row for each person and group of ``query``.

    The columns of that table are the ``aggregates`` of the person's rows, which are exact, since noise is added to what
    is asked of them afterwards. The card has to name the column of persons.
    """
    if query.aggregates:
        fix = "write per_person(total=dp.sum('amount')).agg(mean=dp.mean('total'))"
        raise InvalidArgument("per_person", "no aggregates before", "some", fix)
    inside = relation_card(card, query.source)
    rows, counted = _rows(query, inside), {}
    for name, item in aggregates.items():
        if not isinstance(item, Aggregate) or item.kind not in _PERSON_KINDS:
            fix = "use dp.count, dp.sum, dp.mean, dp.min or dp.max, and more of them after .agg"
            raise InvalidArgument(
                f"per_person {name}", "an aggregate of a person's rows", getattr(item, "kind", type(item).__name__), fix
            )
        if item.rows_per_person is not None:
            expected, fix = "an exact aggregate of a person's rows", "state it in .agg, where noise is added"
            raise InvalidArgument(f"per_person {name}", expected, "rows_per_person", fix)
        checked = _aggregate(item, rows, inside)
        counted[name] = PersonAggregate(_PERSON_KINDS[item.kind], checked.value)
    _check_names(replace(query, aggregates=aggregates))
    source = query.source if query.source is not None else PrivateRows()
    groups = {group.name: group.value for group in query.groups}
    person_of(card)  # which refuses a card without a unit
    return replace(
        query, groups=(), where=None, joins=(), source=PerPerson(source, counted, groups, query.where, query.joins)
    )


_PERSON_KINDS: dict[str, PersonKind] = {
    "count": "count", "count_value": "count_value", "sum": "sum", "mean": "mean", "min": "min", "max": "max",
}  # fmt: skip


def shaped(
    query: Query,
    card: Card,
    *,
    columns: Mapping[str, object] | None = None,
    having: object = None,
    order: object = (),
    limit: int | None = None,
) -> Query:
    """Return the question with what is done to its noisy answer, as expressions on the names of groups and aggregates.

    ``columns`` are the shown columns by name (None: all), ``having`` the condition or conditions that shown rows meet,
    ``order`` the sort keys, and ``limit`` the most rows (None: all).
    """
    names = [*(item.name for item in query.groups), *query.aggregates]
    types = _answer_types(query, card, names)
    shown = {name: expression(item, "columns") for name, item in (columns or {}).items()}
    shown = {name: item if isinstance(item, Column) else typed(item, types)[0] for name, item in shown.items()}
    kept = [require_boolean(condition(item, "having"), types, "having") for item in _as_list(having)]
    keys = [item if isinstance(item, Order) else Order(expression(item, "order")) for item in _as_list(order)]
    keys = [replace(item, value=typed(item.value, types)[0]) for item in keys]
    most = None if limit is None else arguments.whole(limit, "limit", at_least=0)
    shape = Shape(shown, reduce(conjunction, kept, None), tuple(keys), most)
    check_shape(shape, names)
    return replace(query, shape=shape)


def query(
    card: Card,
    aggregates: Mapping[str, Aggregate],
    *,
    groups: Sequence[object] | Mapping[str, object] = (),
    where: object = None,
    columns: Mapping[str, object] | None = None,
    having: object = None,
    order: object = (),
    limit: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    max_groups: int | str | None = None,
    max_rows: int | str | None = None,
) -> Query:
    """Return a checked question from all its parts in one call.

    Parameters
    ----------
    card
        The table's.
    aggregates
        What is asked, by the name it has in the answer.
    groups
        Names of columns, or a mapping from names to expressions; :func:`among` states public keys.
    where
        A condition, or several of which all must hold: ``col("amount") > 5`` or ``"amount > 5"``.
    columns, having, order, limit
        What becomes of the noisy answer: expressions on the names of groups and aggregates.
    epsilon, delta, max_groups, max_rows
        What the question states of its release; where None, the call or the card says it.
    """
    asked = Query(
        {},
        epsilon=None if epsilon is None else float(arguments.epsilon(epsilon)),
        delta=None if delta is None else float(arguments.delta(delta)),
        max_groups=_limit(max_groups, "max_groups"),
        max_rows=_limit(max_rows, "max_rows"),
    )
    listed, named = ((), groups) if isinstance(groups, Mapping) else (groups, {})
    rows = _rows_where(asked, where, card)
    asked = agg(group_by(rows, listed, named, card), aggregates, card)
    return shaped(asked, card, columns=columns, having=having, order=order, limit=limit)


def _limit(value: int | str | None, name: str) -> int | Choice["auto"] | None:
    """Return a stated limit on a person's rows or groups: a positive number, "auto", or None where none is stated."""
    if value is None or value == "auto":
        return "auto" if value == "auto" else None
    return arguments.whole(value, name)


def _types(card: Card) -> Types:
    """Return the function that looks up the type of a resolved column in the card."""
    return lambda column: type_of(card, column)


def _rows(query: Query, card: Card) -> Rows:
    """Return what resolves the column names in a question's expressions: the card's table and the public tables joined
    to it."""
    return Rows(
        (private_relation(card), *(public_relation(card, item.table)[1] for item in query.joins)), None, query.joins
    )


def _group(name: str | None, value: object, rows: Rows, card: Card) -> Group:
    """Return a column of GROUP BY with resolved and type-checked columns, from a column, an expression or a Group.

    ``name`` is its name, None for that of the Group or the column. ``rows`` resolves column names. Public keys of a
    Group are converted to the type of the expression.
    """
    given = value if isinstance(value, Group) else Group("", expression(value, "groups"))
    result, kind = typed(resolve_columns(given.value, rows), _types(card))
    name = name or given.name or (result.name if isinstance(result, Column) else None)
    if name is None:
        fix = "write group_by(month=col('day').trunc('month'))"
        raise InvalidArgument("groups", "a name for each expression", "none", fix)
    if kind is None:
        raise InvalidArgument("groups", "a column or expression", "NULL", "name a column")
    return Group(
        name, result, None if given.keys is None else tuple(_coerced_key(item, result, card) for item in given.keys)
    )


def _coerced_key(key: Value, value: Expression, card: Card) -> Value:
    """Return a public key converted to the type of the grouped expression, as ``value = key`` converts its constant;
    the comparison itself is discarded."""
    if key is None:
        return None
    checked, _ = typed(Call("=", (value, Literal(key))), _types(card))
    return cast(Literal, cast(Call, checked).args[1]).value


def _aggregate(aggregate: Aggregate, rows: Rows, card: Card) -> Aggregate:
    """Return an aggregate with resolved columns and checked types; a mode without keys gets those of its column."""
    types, kind = _types(card), aggregate.kind
    if aggregate.value is None:
        if kind not in ("count", "people"):
            raise InvalidArgument(kind, "a column", "none", f"write {kind}('amount')")
        return aggregate
    value = resolve_columns(aggregate.value, rows)
    if kind not in ("count_value", "count_distinct", "mode"):
        other = aggregate.other
        if other is not None:
            other = require_number(resolve_columns(other, rows), types, kind)
        return replace(aggregate, value=require_number(value, types, kind), other=other)
    value, result = typed(value, types)
    if result is None:
        raise InvalidArgument(kind, "a column or expression", "NULL", "name a column")
    if kind in ("count_value", "count_distinct"):
        return replace(aggregate, value=value)
    keys = aggregate.keys
    if keys is None and isinstance(value, Column):
        keys = card_of(card, value).keys
    return replace(
        aggregate, value=value, keys=tuple(_coerced_key(item, value, card) for item in keys) if keys else None
    )


def _answer_types(query: Query, card: Card, names: list[str]) -> Types:
    """Return the function that looks up the type of a column of the answer by its name; ``names`` are all of them. It
    refuses histograms, whose cells are lists."""
    kinds: dict[str, Type | None] = {item.name: typed(item.value, _types(card))[1] for item in query.groups}
    kinds |= {name: answer_type(item, card) for name, item in query.aggregates.items() if item.kind != "histogram"}

    def types(column: Column) -> Type:
        """Return the type of a group or aggregate; refuse unknown names and histograms."""
        check_shape(Shape(having=column), names)
        kind = kinds.get(column.name)
        if kind is None:
            raise InvalidArgument(column.name, "a single value", "a histogram", "show it as it is")
        return kind

    return types


def _check_names(query: Query) -> None:
    """Refuse names of groups and aggregates that are empty or repeated."""
    seen: set[str] = set()
    for name in [*(item.name for item in query.groups), *query.aggregates]:
        if not isinstance(name, str) or not name:
            raise WrongType("names", "texts", type(name).__name__, "write agg(n=dp.count())")
        if name.casefold() in seen:
            raise InvalidArgument("names", "different names", f"{clip(name)!r} twice", "rename one")
        seen.add(name.casefold())


def _as_list(value: object) -> list[object]:
    """Return a list or tuple as a list, one value as a list of it, and None as an empty list."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
