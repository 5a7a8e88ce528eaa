"""Values as text that a page can hold."""

from __future__ import annotations

from typing import Any


def number(value: Any) -> bool:
    """Whether it can be drawn: a number that is not beyond all measure, and no truth value.

    >>> number(3), number(float("inf")), number(None), number(True)
    (True, False, False, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e300
