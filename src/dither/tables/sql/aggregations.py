"""The private aggregations of one question: what its blocks ask, each aggregation once.

Blocks with the same rows, GROUP BY, joins and limits are one aggregation. So are blocks without GROUP BY whose WHERE
differ, as each aggregate can be of the rows of its own block; with GROUP BY they are not, as which groups there are
follows from WHERE. Other blocks, and the levels of ROLLUP, CUBE and GROUPING SETS, are aggregations beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dither.tables.card.model import Type
from dither.tables.query.operations.base import refuse_sql
from dither.tables.query.resolve import Rows, unique
from dither.tables.query.tree import Aggregate, Call, Expression, Group, Literal, Query

MOST_AGGREGATIONS = 64
"""How many private aggregations a question may have: they share the budget."""


@dataclass(frozen=True)
class Asked:
    """What a block asks at one level: aggregates of its rows by groups, and the columns that only other levels group
    by. ``types`` are those of the columns, ``options`` what is said of the release, such as limits on a person's rows.
    """

    groups: tuple[Group, ...]
    aggregates: dict[str, Aggregate]
    rows: Rows
    types: dict[str, Type]
    options: dict[str, Any] = field(default_factory=dict)
    rolled_up: tuple[Group, ...] = ()
    is_level: bool = False

    @property
    def identity(self) -> tuple[object, ...]:
        """What aggregations have in common that can be one."""
        values = (tuple(item.value for item in groups) for groups in (self.groups, self.rolled_up))
        return (*values, self.rows.joins, self.rows.source, self.options)


@dataclass
class Aggregation:
    """A private aggregation of the question, with all that is asked of it."""

    items: list[Asked]
    places: list[int]
    """Which of all that is asked the items are."""

    @property
    def groups(self) -> tuple[Group, ...]:
        """What it groups by."""
        return self.items[0].groups

    def takes(self, asked: Asked) -> bool:
        """Whether this is measured along with what is asked of it already."""
        first = self.items[0]
        if asked.identity != first.identity:
            return False
        if asked.rows.where == first.rows.where:
            known = [item for item in self.items if item.is_level]
            extra = [item for item in asked.aggregates.values() if known and item not in known[0].aggregates.values()]
            return not extra
        if asked.groups:  # of the rows of both, each block would have the groups of the other as well
            return False
        items = (*self.items, asked)
        conditional = all(item.kind not in ("people", "mode") for part in items for item in part.aggregates.values())
        return conditional and not any(item.is_level for item in items)

    def query(self) -> tuple[Query, list[dict[str, str]]]:
        """The question that it is, and for each item what its groups and aggregates are called there."""
        first = self.items[0]
        every_name: list[dict[str, str]] = []
        same_rows = all(item.rows.where == first.rows.where for item in self.items)
        aggregates: dict[str, Aggregate] = {}
        for item in self.items:
            names = {group.name: here.name for group, here in zip(item.groups, self.groups, strict=True)}
            for name, aggregate in item.aggregates.items():
                wanted = aggregate if same_rows else _of_rows_where(aggregate, item.rows.where)
                known = next((other for other, value in aggregates.items() if value == wanted), None)
                taken = {other.casefold() for other in (*aggregates, *(group.name for group in self.groups))}
                names[name] = known or unique(name, taken)
                aggregates[names[name]] = wanted
            every_name.append(names)
        if not aggregates:
            fix = "add COUNT(*) and GROUP BY, for example: single rows are never released"
            raise refuse_sql("an aggregate", "none", fix)
        where = first.rows.where
        if not same_rows:
            for item in self.items[1:]:
                other = item.rows.where
                where = None if where is None or other is None else Call("or", (where, other))
        question = Query(
            aggregates, self.groups, where, first.rows.joins, source=first.rows.source, rolled_up=first.rolled_up
        )
        return replace(question, **first.options), every_name


def aggregations(asked: Sequence[Asked]) -> list[Aggregation]:
    """The aggregations that answer everything that is asked, in the order in which it is asked; levels come first to
    theirs, so that what else is asked of the same rows and groups is taken from a level.
    """
    result: list[Aggregation] = []
    for place, item in sorted(enumerate(asked), key=lambda pair: not pair[1].is_level):
        taking = next((other for other in result if other.takes(item)), None)
        if taking is None:
            result.append(Aggregation([item], [place]))
        else:
            taking.items.append(item)
            taking.places.append(place)
    if len(result) > MOST_AGGREGATIONS:
        fix = "ask several questions"
        raise refuse_sql(f"at most {MOST_AGGREGATIONS} private aggregations", str(len(result)), fix)
    return sorted(result, key=lambda other: min(other.places))


def _of_rows_where(aggregate: Aggregate, condition: Expression | None) -> Aggregate:
    """The aggregate of the rows for which a condition holds."""
    if condition is None:
        return aggregate
    value = Literal(1) if aggregate.value is None else aggregate.value
    kind = "count_value" if aggregate.kind == "count" else aggregate.kind
    return replace(aggregate, kind=kind, value=Call("case", (condition, value, Literal(None))))
