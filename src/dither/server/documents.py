"""What the use cases return, as JSON.

>>> from dither.server.results import Grant
>>> document(Grant("ann", "visits", "", "sam", "2026-01-01T00:00:00Z"))["user"]
'ann'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from dither.guarantees import Guarantee
from dither.ledger import Account
from dither.server.results import Verification
from dither.tables.answer import Answer
from dither.tables.card.model import Card
from dither.tables.planning.explain import Explanation
from dither.wire import answers, cards, explanations, guarantees


def document(value: Any) -> Any:
    """A result as JSON has it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    for kind, form in _FORMS:
        if isinstance(value, kind):
            return form(value)
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(name): document(item) for name, item in value.items()}
    return [document(item) for item in value]


def _fields(value: Any) -> dict[str, Any]:
    return {item.name: document(getattr(value, item.name)) for item in fields(value)}


def _account(account: Account) -> dict[str, Any]:
    """An account; of people, only the limit."""
    return {
        "owner": account.owner,
        "kind": account.kind,
        "name": account.name,
        "unit": account.unit,
        "limit": document(account.limit),
        "spent": document(account.spent),
        "left": document(account.left),
        "left_text": account.left_text,
    }


_FORMS: tuple[tuple[type, Callable[[Any], dict[str, Any]]], ...] = (
    (Card, cards.to_json),
    (Answer, answers.to_json),
    (Explanation, explanations.to_json),
    (Guarantee, guarantees.to_json),
    (Account, _account),
    (Verification, lambda value: {**_fields(value), "ok": value.ok}),
)
"""What has a form of its own; all else is the fields of its dataclass."""
