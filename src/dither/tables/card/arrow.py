"""The Arrow type of each type that a card can state."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dither.tables.card.model import Type

_ARROW: dict[Type, Any] = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


def arrow_type(type: Type) -> Any:
    """The Arrow type of a card's type.

    >>> arrow_type("timestamp")
    TimestampType(timestamp[us])
    """
    return _ARROW[type]


__all__ = ["arrow_type"]
