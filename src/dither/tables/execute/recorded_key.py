"""What a recorded answer is found by: a request in a versioned canonical form, and its key.

A question that was answered is answered again for free, by this version and by later ones. So its key must not
depend on how the code is written. It is the SHA-256 of a JSON text, in hexadecimal::

    {"version": 1, "question": …, "query": …, "card": …, "release": …, "guarantee": …, "analyst": …}

The text has sorted keys, no white space, and is encoded in UTF-8. Its parts:

``question``
    The SQL as it was written; left out for a question that was built in Python.
``query``, ``card``
    The tree of the question, and what is public about the table. Of the card only the SHA-256 of its canonical text
    stands here. What a card says about accounts (:data:`_NOT_ABOUT_ANSWERS`) is not part of it: a budget that is
    raised does not change what an answer means.
``release``
    What was settled for this release, from the options, the question and the card: ``max_groups`` and ``max_rows``,
    ``noise`` (the kinds that are used), ``automatic`` (what is chosen privately; then ``noise_option`` is what was
    asked for, unless it is "best", since the kinds are settled later), and those of ``integer``, ``nonnegative``,
    ``other`` and ``quantile_interval`` that are true; ``interval`` unless it is "noise". ``more`` has the first four of
    each further private aggregation of the question.
``guarantee``
    Its kind (``pure``, ``approximate`` or ``concentrated``) and its numbers as exact fractions: ``"1/2"``.
``analyst``
    Who asks; left out for nobody.

Values are written so:

* A dataclass is an object. ``"is"`` holds the name of its kind; a field that has its default value is left out, so
  that a new field with a default changes no key.
* Where order matters (aggregates, columns that are shown) a mapping is a list of pairs; elsewhere it is an object.
* Whole numbers, texts, truth values and NULL are those of JSON. A float is its shortest decimal.
* A date is ``{"date": "2024-01-31"}``, a timestamp is ``{"timestamp": "2024-01-31T12:00:00"}``, a float that is no
  number of JSON is ``{"float": "inf"}``, an exact fraction is a text.

The ledger keeps the request without guarantee and analyst, which it has in fields of its own. A change of any of these
rules needs a new version number.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date, datetime
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from dither.errors import WrongType
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.ledger.recorded import canonical
from dither.tables.card.model import Card, ColumnCard, PrivateTable, PublicTable
from dither.tables.options import ReleaseOptions
from dither.tables.planning.automatic import BOUNDS_OF
from dither.tables.planning.plan import Plan
from dither.tables.query.tree import (
    Aggregate,
    Call,
    Column,
    Group,
    Join,
    Literal,
    Order,
    PerPerson,
    PersonAggregate,
    PersonJoin,
    PostProcessing,
    PrivateRows,
    Projection,
    PublicMembership,
    Query,
    Shape,
    UnionAll,
    Windowed,
    WindowFunction,
)

VERSION = 1

_KINDS: dict[type, str] = {
    Query: "query", Aggregate: "aggregate", Group: "group", Join: "join", Order: "order", Shape: "shape",
    PostProcessing: "post-processing",
    Column: "column", Literal: "literal", Call: "call",
    PrivateRows: "private rows", Projection: "projection", PerPerson: "per person", Windowed: "windowed",
    PersonJoin: "person join", PublicMembership: "public membership", UnionAll: "union all",
    PersonAggregate: "person aggregate", WindowFunction: "window function",
    Card: "card", ColumnCard: "column", PublicTable: "public table", PrivateTable: "private table",
}  # fmt: skip
_FOLLOWS_FROM_TEXT = {(Aggregate, "discrete")}
"""Fields that only SQL sets, whose text is in the key already."""
_IN_ORDER = {(Query, "aggregates"), (Shape, "columns")}
_NOT_ABOUT_ANSWERS = frozenset(
    {
        "ledger", "budget", "each_analyst", "each_person", "population", "filter", "min_epsilon", "max_incidents",
        "receipt", "incident_log", "rows_without_unit", "rows", "series",
    }
)  # fmt: skip
_GUARANTEES: dict[type[Guarantee], tuple[str, tuple[str, ...]]] = {
    PureDP: ("pure", ("epsilon",)),
    ApproxDP: ("approximate", ("epsilon", "delta")),
    ZCDP: ("concentrated", ("rho",)),
}


def canonical_request(
    text: str | None, query: Query, card: Card, plan: Plan, options: ReleaseOptions
) -> dict[str, Any]:
    """What the ledger keeps of a question: everything but guarantee and analyst."""
    flags = ("integer", "nonnegative", "other", "quantile_interval")
    return {
        "version": VERSION,
        **({} if text is None else {"question": text}),
        "query": plain(query),
        "card": hashlib.sha256(canonical(plain(card)).encode("utf-8", "surrogatepass")).hexdigest(),
        "release": {
            **_settled(plan, options),
            **({"more": [_settled(part, options) for part in plan.more]} if plan.more else {}),
            **{name: True for name in flags if getattr(options, name)},
            **({"interval": options.interval} if options.interval != "noise" else {}),
        },
    }


def _settled(plan: Plan, options: ReleaseOptions) -> dict[str, Any]:
    """What was settled for one private aggregation."""
    return {
        "max_groups": plan.groups,
        "max_rows": plan.limit,
        "noise": sorted({type(noise).__name__.lower() for noise in plan.measures.values()}),
        "automatic": [name.removeprefix(BOUNDS_OF) for name in plan.automatic],
        **({"noise_option": options.noise} if tuple(plan.automatic) and options.noise != "best" else {}),
    }


def recorded_key(request: Mapping[str, Any], guarantee: Guarantee, analyst: str | None) -> str:
    """The key that a request at this cost is recorded under."""
    whole = {**request, "guarantee": plain(guarantee), **({} if analyst is None else {"analyst": analyst})}
    return hashlib.sha256(canonical(whole).encode("utf-8", "surrogatepass")).hexdigest()


def plain(value: Any, in_order: bool = False) -> Any:
    """A value of a question or a card as JSON has it.

    >>> plain(Call("<", (Column("age"), Literal(5))))
    {'is': 'call', 'op': '<', 'args': [{'is': 'column', 'name': 'age'}, {'is': 'literal', 'value': 5}]}
    >>> plain(ApproxDP(0.5, 1e-6))
    {'is': 'approximate', 'epsilon': '1/2', 'delta': '1/1000000'}
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Guarantee):
        kind, names = _GUARANTEES[type(value)]
        return {"is": kind, **{name: str(number) for name, number in zip(names, value.exact, strict=True)}}
    if is_dataclass(value):
        return _object(value)
    if isinstance(value, datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, Mapping):
        pairs = [(str(name), plain(item)) for name, item in value.items()]
        return [list(pair) for pair in pairs] if in_order else dict(pairs)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    raise WrongType("question", "numbers, text and dates", type(value).__name__, "convert it before it is asked about")


def _object(value: Any) -> dict[str, Any]:
    """A dataclass without the fields that have their defaults. A subclass is written as the kind that it refines."""
    kind = next(base for base in type(value).__mro__ if base in _KINDS)
    result: dict[str, Any] = {"is": _KINDS[kind]}
    for field in fields(value):
        item = getattr(value, field.name)
        if (
            (kind, field.name) in _FOLLOWS_FROM_TEXT
            or _is_default(field, item)
            or (kind in (Card, PrivateTable) and not _is_about_answers(value, field.name))
        ):
            continue
        result[field.name] = plain(item, in_order=(kind, field.name) in _IN_ORDER)
    return result


def _is_about_answers(card: Card | PrivateTable, name: str) -> bool:
    """Whether a field of a card changes what an answer means; that rows without a unit are left out does not."""
    if name == "rows_without_unit":
        return isinstance(card, Card) and card.counts_rows_without_unit
    return name not in _NOT_ABOUT_ANSWERS


def _is_default(field: Field[Any], value: Any) -> bool:
    if field.default is not MISSING:
        return type(value) is type(field.default) and bool(value == field.default)
    return field.default_factory is not MISSING and bool(value == field.default_factory())
