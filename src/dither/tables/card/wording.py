"""Words for messages: names of a card or a question, which are public, in few characters."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str | None:
    """What to write instead of an unknown name, if a known one is near.

    >>> nearest("amuont", ["amount", "region"])
    "write 'amount', the nearest name"
    """
    known = {item.casefold(): item for item in names}
    near = difflib.get_close_matches(name.casefold()[:200], known, n=1)
    return f"write {known[near[0]]!r}, the nearest name" if near else None


def closest(name: str, names: Iterable[str]) -> str:
    """What to write instead of an unknown name: the nearest known one, or all of them.

    >>> closest("x", ["amount", "region"])
    'use one of amount, region'
    """
    known = list(names)
    return nearest(name, known) or (f"use one of {', '.join(known[:20])}" if known else "there is none")


def clip(text: str, length: int = 60) -> str:
    """The text, or its beginning.

    >>> clip("abcdef", 3)
    'abc…'
    """
    return text if len(text) <= length else f"{text[:length]}…"


__all__ = ["clip", "closest", "nearest"]
