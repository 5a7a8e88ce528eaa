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
    asked for, unless it is "best", since the kinds are settled later). ``more`` has these of each further private
    aggregation of the question. Then every option that is not covered by these and not at its default.
``guarantee``
    As :func:`dither.guarantees.stored` writes it: its kind, and its numbers as exact fractions: ``"1/2"``.
``analyst``
    Who asks; left out for nobody.

Values are written as :mod:`dither.tables.codec` writes them.

The ledger keeps the request without guarantee and analyst, which it has in fields of its own. A change of any of these
rules needs a new version number.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from dither.release.pipeline import digest
from dither.tables.card.model import Card
from dither.tables.codec import to_json
from dither.tables.options import ReleaseOptions
from dither.tables.planning.automatic import BOUNDS_OF, VALUES_OF
from dither.tables.planning.plan import AggregationPlan, QuestionPlan
from dither.tables.query.tree import Query

VERSION = 1

_ABOUT_ACCOUNTS = (
    "ledger", "budget", "each_analyst", "each_person", "population", "filter", "min_epsilon", "max_incidents",
    "receipt", "incident_log", "rows", "series", "profile", "as_of",
)  # fmt: skip
"""What a card says about accounts and forecasts, which does not change what an answer means; the day of CURRENT_DATE
is part of a question that names it."""


def canonical_request(
    text: str | None, query: Query, card: Card, plan: QuestionPlan, options: ReleaseOptions
) -> dict[str, Any]:
    """Return the JSON object that the ledger stores of a request: the canonical form of the module, without guarantee
    and analyst, which are separate fields of the ledger."""
    first, *more = plan.parts
    recorded = {item.name for item in fields(options) if item.metadata.get("recorded", True)}
    return {
        "version": VERSION,
        **({} if text is None else {"question": text}),
        "query": to_json(query),
        "card": card_digest(card),
        "release": {
            **_settled(first, options),
            **({"more": [_settled(part, options) for part in more]} if more else {}),
            **{name: value for name, value in to_json(options).items() if name in recorded},
        },
    }


def _settled(plan: AggregationPlan, options: ReleaseOptions) -> dict[str, Any]:
    """Return the part ``release`` of the canonical form for one private aggregation: its limits, its kinds of noise and
    what is chosen privately."""
    return {
        "max_groups": plan.max_groups,
        "max_rows": plan.max_rows,
        "noise": sorted({type(noise).__name__.lower() for noise in plan.measures.values()}),
        "automatic": [name.removeprefix(BOUNDS_OF) for name in plan.automatic if not name.startswith(VALUES_OF)],
        **({"noise_option": options.noise} if tuple(plan.automatic) and options.noise != "best" else {}),
    }


def card_digest(card: Card) -> str:
    """Return the SHA-256 of the canonical text of what a card says about the data (:func:`about_data`)."""
    return digest(to_json(about_data(card)))


def about_data(card: Card) -> Card:
    """Return a card with its fields about accounts and forecasts at their defaults, so that changing them leaves its
    digest unchanged. Dropping rows without a unit is the default."""
    defaults = {item.name: item for item in fields(Card)}
    plain: dict[str, Any] = {name: {} if name == "series" else defaults[name].default for name in _ABOUT_ACCOUNTS}
    if not card.counts_rows_without_unit:
        plain["rows_without_unit"] = None
    return replace(card, tables={name: replace(item, rows=None) for name, item in card.tables.items()}, **plain)
