"""What a server returns: answers, explanations, and what is public of cards.

An answer contains the recorded bytes as text, so that a client can see that a replay is unchanged. A card contains
everything by which questions are parsed, checked and explained, but not the locations of rows, ledger, receipt and
incident log, nor the formats of text columns.

>>> from dither.guarantees import PureDP
>>> answer = Answer(("n",), ("integer",), ((41,),), {"n": (6.0,)}, PureDP(0.5), receipt="3-ab")
>>> sent = answer_to_json(answer)
>>> sent["recorded"]
'{"columns":["n"],"cost":{"kind":"PureDP","numbers":["1/2"]},"errors":{"n":[6.0]},"notes":[],"rows":[[41]],"types":["integer"]}'
>>> answer_from_json(sent) == answer
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dither import arguments
from dither.errors import DitherError, InvalidArgument
from dither.ledger.accounts import Remaining
from dither.ledger.recorded import decode as decode_answer
from dither.ledger.recorded import encode as encode_answer
from dither.present.notes import Note
from dither.tables.answer import Answer
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.card.values import Value
from dither.tables.codec import fields, from_json, to_json
from dither.tables.planning.explain import Explanation

PublicValues = Callable[[str, str], tuple[Value, ...] | None]
"""The values of a column of a public table, or None where there are too many to list."""


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """Convert an answer to JSON, with the recorded bytes as text."""
    return {
        "recorded": encode_answer(answer.stored()).decode("utf-8", "surrogatepass"),
        "left": to_json(answer.remaining),
        "replayed": answer.replayed,
        "receipt": answer.receipt,
    }


def answer_from_json(document: object) -> Answer:
    """Parse an answer."""
    given = fields(document, "answer", ("recorded",), ("left", "replayed", "receipt"))
    stored: str = from_json(given["recorded"], str, "answer.recorded")
    about = {
        "remaining": from_json(given.get("left"), Remaining | None, "answer.left"),
        "replayed": from_json(given.get("replayed", False), bool, "answer.replayed"),
        "receipt": from_json(given.get("receipt", ""), str, "answer.receipt"),
    }
    try:
        return Answer.restored(decode_answer(stored.encode("utf-8", "surrogatepass")), **about)
    except (DitherError, KeyError, TypeError, ValueError, AttributeError):
        pass
    raise InvalidArgument("answer.recorded", "an answer as it is recorded", "text that is not one", "ask again")


def explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    """Convert an explanation to JSON.

    >>> from dither.guarantees import PureDP
    >>> sent = explanation_to_json(Explanation((), PureDP(1), "groups: one", "each is one", Remaining(PureDP(9))))
    >>> explanation_from_json(sent).cost
    PureDP(1)
    """
    lines = [{**line, "error": _finite(line["error"])} for line in explanation.lines]
    notes = [note.stored() for note in explanation.limitations]
    return {**to_json(replace(explanation, limitations=())), "lines": lines, "limitations": notes}


def explanation_from_json(document: object) -> Explanation:
    """Parse an explanation."""
    given = fields(document, "explanation", ("lines", "limitations"), Explanation.__dataclass_fields__)
    notes: tuple[Any, ...] = from_json(given.pop("limitations"), tuple[dict[str, Any], ...], "explanation.limitations")
    result: Explanation = from_json(given, Explanation, "explanation")
    for line in result.lines:
        fields(line, "explanation.lines", ("answer", "measure", "mechanism", "expected", "error"), ("groups",))
    stored = [fields(note, "explanation.limitations", ("kind", "values")) for note in notes]
    return replace(result, limitations=tuple(map(Note.restored, stored)))


def _finite(error: float | None) -> float | None:
    """Return an expected error; None for an infinite or missing one, which JSON cannot hold."""
    return None if error is None or not math.isfinite(error) else float(error)


def card_to_json(card: Card, public_values: PublicValues | None = None) -> dict[str, Any]:
    """Convert the public part of a card to JSON; ``public_values`` lists the values of public tables, which become
    keys.

    >>> visits = Card("visits", "visits.csv", {"age": ColumnCard("integer", (0, 120))}, ledger="l.sqlite")
    >>> card_to_json(visits)
    {'name': 'visits', 'source': '', 'columns': {'age': {'type': 'integer', 'bounds': [0, 120]}}}
    """
    public = {
        name: replace(item, columns=_with_values(name, item.columns, public_values))
        for name, item in card.public.items()
    }
    result: dict[str, Any] = to_json(_public_part(replace(card, public=public)))
    return result


def card_from_json(document: object) -> Card:
    """Parse the public part of a card; its sources are empty."""
    card = _public_part(from_json(document, Card, "card"))
    private, public = card.private_tables.values(), card.public.values()
    for columns in (*(table.columns for table in private), *(table.columns for table in public)):
        for name, column in columns.items():
            if column.bounds is not None:
                arguments.bounds(column.bounds, f"card: bounds of {name}")
    for limit in ("max_groups", "max_rows"):
        if getattr(card, limit) != "auto":
            arguments.whole(getattr(card, limit), f"card.{limit}")
    return card


def _public_part(card: Card) -> Card:
    """Return a card without sources, ledger, receipt, logs and text formats, which clients must not see."""
    return replace(
        card,
        source="",
        columns=_without_formats(card.columns),
        public={name: PublicTable("", _without_formats(item.columns)) for name, item in card.public.items()},
        tables={
            name: replace(item, source="", columns=_without_formats(item.columns)) for name, item in card.tables.items()
        },
        ledger=None,
        population=None,
        receipt=None,
        incident_log=None,
        series={},
    )


def _without_formats(columns: Mapping[str, ColumnCard]) -> dict[str, ColumnCard]:
    """Return columns without the formats of their texts."""
    return {name: replace(column, format=None) for name, column in columns.items()}


def _with_values(
    table: str, columns: Mapping[str, ColumnCard], public_values: PublicValues | None
) -> Mapping[str, ColumnCard]:
    """Return the columns of a public table with their values as keys, where these can be listed."""
    if public_values is None:
        return columns
    return {
        name: column if column.keys is not None else replace(column, keys=public_values(table, name))
        for name, column in columns.items()
    }
