"""A tree from a client, built again by the steps that the library itself builds questions with.

A tree can say things that neither SQL nor Python would: a join on nothing, an aggregate with bounds upside down, SQL
of its own for the noisy table. The planner relies on what the builder and the parser have checked. So the server takes
from a tree only what the builder makes, and builds it anew: every expression is resolved and typed, every argument
checked. What comes from SQL alone (windows, joins of private tables, set operations) is asked in SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dither.errors import InvalidArgument
from dither.tables.builder import expressions as build
from dither.tables.builder import steps
from dither.tables.card.model import Card
from dither.tables.query.relations import relation_card
from dither.tables.query.tree import Aggregate, PerPerson, PersonAggregate, PrivateRows, Query, Source, check_size


def rebuilt(query: Query, card: Card) -> Query:
    """Build a question from a client again with the builder, which checks it; refuse what only SQL can express.

    >>> from dither.tables.card.model import ColumnCard
    >>> visits = Card("visits", "", {"age": ColumnCard("integer", (0, 120))})
    >>> rebuilt(Query({"n": Aggregate("count")}), visits) == Query({"n": Aggregate("count")})
    True
    """
    if query.post is not None or query.more or query.rolled_up:
        raise _only_sql()
    limits = {name: getattr(query, name) for name in ("epsilon", "delta", "max_groups", "max_rows")}
    stated = steps.query(card, {"n": build.count()}, **limits)  # checks them
    asked = replace(_relation(query.source, card), **{name: getattr(stated, name) for name in limits})
    inside = relation_card(card, asked.source)
    asked = _rows(asked, query, inside)
    for group in query.groups:
        check_size(group.value)
        keys = None if group.keys is None else build.distinct_keys(group.keys, "keys")
        asked = steps.group_by(asked, [replace(group, keys=keys)], {}, inside)
    if query.aggregates:
        asked = steps.agg(asked, {name: _aggregate(item) for name, item in query.aggregates.items()}, inside)
    shape = query.shape
    if shape != type(shape)():
        asked = steps.shaped(
            asked, inside, columns=shape.columns, having=shape.having, order=list(shape.order), limit=shape.limit
        )
    return asked


def _rows(asked: Query, wanted: Query | PerPerson, card: Card) -> Query:
    """Return the question ``asked`` with the public joins and the condition of ``wanted``.

    ``wanted`` is a question, or a relation in one. Joins and condition are added by the functions that build questions
    in Python, which check them against the ``card``.
    """
    for join in wanted.joins:
        check_size(join.own)
        asked = steps.join(asked, join.table, join.own, join.other, card, left=join.left)
    if wanted.where is not None:
        check_size(wanted.where)
        asked = steps.where(asked, wanted.where, card)
    return asked


def _relation(source: Source | None, card: Card) -> Query:
    """Build the relation in FROM of a question, and return a question about it without aggregates.

    ``source`` is the relation as the client sent it; None stands for the rows of the card's own table. Only tables per
    person can be built; others are refused.
    """
    if source is None or source == PrivateRows():
        return Query({})
    if not isinstance(source, PerPerson):
        raise _only_sql()
    asked = Query({}) if source.source == PrivateRows() else _relation(source.source, card)
    inside = relation_card(card, asked.source)
    asked = _rows(asked, source, inside)
    if source.groups:
        asked = steps.group_by(asked, [], dict(source.groups), inside)
    return steps.per_person(asked, {name: _of_person(item) for name, item in source.aggregates.items()}, card)


def _of_person(item: PersonAggregate) -> Aggregate:
    """Build an aggregate per person; refuse kinds that only SQL has."""
    if item.kind in ("any", "every", "count_distinct"):
        raise _only_sql()
    return _aggregate(Aggregate(item.kind, item.value))  # type: ignore[arg-type]  # the others are kinds of both


_OF_NUMBERS: dict[str, Callable[..., Aggregate]] = {
    "sum": build.sum_, "mean": build.mean, "var": build.var, "std": build.std, "min": build.min_, "max": build.max_,
}  # fmt: skip
_OF_PAIRS: dict[str, Callable[..., Aggregate]] = {
    "covar_pop": build.covariance, "covar_samp": build.covariance, "corr": build.corr,
    "regr_slope": build.regression_slope, "regr_intercept": build.regression_intercept,
    "regr_r2": build.regression_r2,
}  # fmt: skip


def _aggregate(item: Aggregate) -> Aggregate:
    """Build an aggregate by the public function for its kind; refuse fields that the kind does not have."""
    result = _built(item)
    if result != item:
        expected, fix = f"the fields of {item.kind} only", "leave the others out"
        raise InvalidArgument(f"aggregate {item.kind}", expected, "further fields", fix)
    return result


def _built(item: Aggregate) -> Aggregate:
    """Call the public function for the kind of an aggregate."""
    kind = item.kind
    shared: dict[str, Any] = {"weight": item.weight, "rows_per_person": item.rows_per_person}
    if kind == "count" and item.value is None:
        return build.count(**shared)
    if kind == "people" and item.value is None:
        return build.people(weight=item.weight)
    if item.value is None:
        raise InvalidArgument(f"aggregate {kind}", "a value", "none", "name a column")
    check_size(item.value)
    if kind == "count_value":
        return build.count(item.value, **shared)
    if kind == "count_distinct":
        return build.count_distinct(item.value, weight=item.weight)
    if kind == "quantile":
        return build.quantile(item.value, item.at, item.bounds, **shared)
    if kind == "mode":
        return build.mode(item.value, item.keys, **shared)
    if kind == "histogram" and item.edges is not None:
        return build.histogram(item.value, item.edges, **shared)
    if kind in _OF_NUMBERS:
        return _OF_NUMBERS[kind](item.value, item.bounds, **shared)
    if kind in _OF_PAIRS and item.other is not None:
        check_size(item.other)
        more: dict[str, Any] = {"population": True} if kind == "covar_pop" else {}
        pair = (item.value, item.other, item.bounds, item.other_bounds)
        return _OF_PAIRS[kind](*pair, **shared, **more)
    raise InvalidArgument(
        "aggregate",
        "one that a function of dither makes, such as dither.count",
        "an unknown one",
        "use such a function",
    )


def _only_sql() -> InvalidArgument:
    """Return the error for a question that has to be asked in SQL."""
    fix = "ask it in SQL, whole: table.sql('SELECT …')"
    return InvalidArgument("question", "what group_by, where, per_person and agg make", "more than that", fix)
