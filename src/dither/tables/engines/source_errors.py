"""What is said about a source that cannot be used, or read."""

from __future__ import annotations

from dither.errors import InvalidData


def source_error(expected: str, got: str, fix: str) -> InvalidData:
    """A source that cannot be used.

    >>> print(source_error("a file", "none", "check the path"))
    source: expected a file, got none. Fix: check the path.
    """
    return InvalidData("source", expected, got, fix)


def unreadable() -> InvalidData:
    """What is said about an error while rows are read: always the same."""
    return source_error(
        "rows that the engine can read",
        "an error of the engine",
        "check the source; the engine's message is withheld, since it may hold data",
    )
