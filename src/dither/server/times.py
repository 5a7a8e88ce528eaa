"""Times as text: UTC, ISO 8601, whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(seconds: float) -> str:
    """A time in seconds since 1970 as text.

    >>> iso(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def iso_or_none(seconds: float | None) -> str | None:
    """The same, None for None.

    >>> iso_or_none(None)
    """
    return None if seconds is None else iso(seconds)
