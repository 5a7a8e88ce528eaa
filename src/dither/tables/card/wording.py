"""Words for messages: names of a card or a question, which are public, in few characters."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str], likeness: float = 0.6, quote: str | None = "'") -> str | None:
    """What to write instead of an unknown name, if a known one is near, as difflib measures likeness.

    In SQL (``quote=None``) it is written without quotes, and in double ones where it has spaces or signs.

    >>> nearest("amuont", ["amount", "region"])
    "write 'amount', the nearest name"
    >>> nearest("gate_number", ["Gate Number"], quote=None)
    'write "Gate Number", the nearest name'
    """
    known = {item.casefold(): item for item in names}
    near = difflib.get_close_matches(name.casefold()[:200], known, n=1, cutoff=likeness)
    if not near:
        return None
    result = known[near[0]]
    quote = quote if quote is not None else "" if result.isidentifier() else '"'
    return f"write {quote}{result}{quote}, the nearest name"


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
