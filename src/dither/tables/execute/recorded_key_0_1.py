"""The request and the key that version 0.1 recorded an answer under, so that its answers are still found.

Version 0.1 hashed the ``repr`` of the question's tree and of the card. Class names, field names and their order are
written down here as they were then: they do not follow the code. New answers are never recorded under such a key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.options import ReleaseOptions
from dither.tables.planning.automatic import BOUNDS_OF
from dither.tables.planning.plan import Plan
from dither.tables.query.tree import Aggregate, Call, Column, Group, Join, Literal, Order, Query, Shape

_RECORDED: dict[type, tuple[str, tuple[str, ...]]] = {
    Query: (
        "Query",
        ("aggregates", "groups", "where", "joins", "shape", "epsilon", "delta", "max_groups", "max_rows"),
    ),
    Aggregate: ("Aggregate", ("kind", "value", "bounds", "at", "keys", "edges", "weight")),
    Group: ("Group", ("name", "value", "keys")),
    Join: ("Join", ("table", "own", "other", "left")),
    Order: ("Order", ("value", "descending")),
    Shape: ("Shape", ("columns", "having", "order", "limit")),
    Column: ("Column", ("name", "table")),
    Literal: ("Literal", ("value",)),
    Call: ("Call", ("op", "args")),
    Card: (
        "Card",
        (
            "name", "source", "columns", "unit", "max_groups", "max_rows", "public", "ledger", "budget",
            "each_analyst", "each_person", "delta", "version",
        ),
    ),
    ColumnCard: ("ColumnCard", ("type", "bounds", "keys")),
    PublicTable: ("PublicTable", ("source", "columns")),
}  # fmt: skip


def request_0_1(text: str | None, query: Query, card: Card, plan: Plan, options: ReleaseOptions) -> dict[str, Any]:
    """The request as version 0.1 kept it in the ledger."""
    return {
        "question": text or repr_0_1(query),
        "plan": repr_0_1(plan.query),
        "max_groups": plan.groups,
        "max_rows": plan.limit,
        "chosen": [name.removeprefix(BOUNDS_OF) for name in plan.automatic],
        "noise": sorted({type(noise).__name__ for noise in plan.measures.values()}),
        "after": [options.nonnegative, options.integer, False, options.other],
        "card": hashlib.sha256(repr_0_1(card).encode("utf-8", "replace")).hexdigest(),
    }


def key_0_1(request: Mapping[str, Any], plan: Plan, analyst: str | None) -> str:
    """The key that version 0.1 recorded that request under."""
    return hashlib.sha256(f"{request}{plan.guarantee!r}{analyst}".encode("utf-8", "replace")).hexdigest()


def repr_0_1(value: Any) -> str:
    """What ``repr`` gave in version 0.1.

    >>> repr_0_1(Call("not", (Column("vip"),)))
    "Call(op='not', args=(Column(name='vip', table=None),))"
    """
    kind = next((base for base in type(value).__mro__ if base in _RECORDED), None)
    if kind is not None:
        class_name, names = _RECORDED[kind]
        parts = (f"{name}={repr_0_1(getattr(value, name))}" for name in names)
        return f"{class_name}({', '.join(parts)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name!r}: {repr_0_1(item)}" for name, item in value.items()) + "}"
    if isinstance(value, tuple):
        return f"({', '.join(map(repr_0_1, value))}{',' if len(value) == 1 else ''})"
    return repr(value)
