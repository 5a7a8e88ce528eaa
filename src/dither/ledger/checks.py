"""What callers of a ledger hand in, checked: names, limits, and what was asked."""

from __future__ import annotations

from typing import Any

from dither.errors import InvalidArgument, WrongType
from dither.ledger import opening
from dither.ledger.recorded import canonical

MAX_NAME = 200
"""The longest name that a dataset, an analyst or a key may have."""


def checked_name(value: object, name: str, max_length: int = MAX_NAME) -> str:
    """A name that the history can show; refused otherwise.

    >>> checked_name("visits", "dataset")
    'visits'
    """
    if not isinstance(value, str):
        raise WrongType(name, "text", type(value).__name__, f"pass {name}='…'")
    if not 0 < len(value) <= max_length or "\0" in value or not value.isprintable():
        raise InvalidArgument(
            name, f"1 to {max_length} printable characters", f"{len(value)} of them", f"choose another {name}"
        )
    return value


def stated_limits(options: opening.LimitOptions) -> opening.Limits:
    """The limits that keyword arguments state."""
    population = options.get("population")
    if population is not None:
        checked_name(population, "population")
    return opening.Limits(**options)


def canonical_request(request: Any) -> str:
    """What was asked, as canonical JSON; refused where JSON cannot hold it.

    >>> canonical_request(None)
    'null'
    """
    if request is None:
        return "null"
    try:
        result = canonical(request)
        result.encode()
        return result
    except (TypeError, ValueError, RecursionError):
        raise WrongType(
            "request", "what JSON can hold", type(request).__name__, "pass text, numbers, lists or dicts of them"
        ) from None
