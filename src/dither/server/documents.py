"""What the use cases return, as JSON.

>>> from dither.server.results import Grant
>>> document(Grant("ann", "visits", "", "sam", "2026-01-01T00:00:00Z"))["user"]
'ann'
"""

from __future__ import annotations

from collections.abc import Mapping
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
    if isinstance(value, Card):
        return cards.to_json(value)
    if isinstance(value, Answer):
        return answers.to_json(value)
    if isinstance(value, Explanation):
        return explanations.to_json(value)
    if isinstance(value, Guarantee):
        return guarantees.to_json(value)
    if isinstance(value, Account):
        return _account(value)
    if isinstance(value, Verification):
        return {**_fields(value), "ok": value.ok}
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(name): document(item) for name, item in value.items()}
    return [document(item) for item in value]


def _fields(value: Any) -> dict[str, Any]:
    return {item.name: document(getattr(value, item.name)) for item in fields(value)}


def _account(account: Account) -> dict[str, Any]:
    """An account; of people, only the limit."""
    limit = None if account.limit is None else guarantees.to_json(account.limit)
    spent, left = account.spent, account.left
    return {
        "owner": account.owner,
        "kind": account.kind,
        "name": account.name,
        "unit": account.unit,
        "limit": limit,
        "spent": None if spent is None else guarantees.to_json(spent),
        "left": None if left is None else guarantees.to_json(left),
        "left_text": account.left_text,
    }


__all__ = ["document"]
