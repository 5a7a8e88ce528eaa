"""Words for messages: names and expressions of the question, which are public, in few characters."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from dither.tables.query.tree import Call, Column, Expression, Literal


def closest(name: str, names: Iterable[str]) -> str:
    """What to write instead of an unknown name: the nearest known one, or all of them.

    >>> closest("amuont", ["amount", "region"])
    "write 'amount', the nearest name"
    """
    known = {item.casefold(): item for item in names}
    near = difflib.get_close_matches(name.casefold()[:200], known, n=1)
    if near:
        return f"write {known[near[0]]!r}, the nearest name"
    return f"use one of {', '.join(list(known.values())[:20])}" if known else "there is none"


def show(expression: Expression) -> str:
    """The expression in few words, for messages.

    >>> show(Call("=", (Column("a"), Literal(5))))
    'a = 5'
    """
    if isinstance(expression, Column):
        return clip(f"{expression.table}.{expression.name}" if expression.table else expression.name)
    if isinstance(expression, Literal):
        value = expression.value
        return "NULL" if value is None else clip(repr(value) if isinstance(value, (str, int, float)) else str(value))
    if any(isinstance(item, Call) for item in expression.args) or len(expression.args) > 3:
        return f"{expression.op} (…)"
    parts = [show(item) for item in expression.args]
    infix = len(parts) == 2 and (not expression.op.isidentifier() or expression.op in ("and", "or", "like"))
    return f"{parts[0]} {expression.op} {parts[1]}" if infix else f"{expression.op}({', '.join(parts)})"


def clip(text: str, length: int = 60) -> str:
    """The text, or its beginning.

    >>> clip("abcdef", 3)
    'abc…'
    """
    return text if len(text) <= length else f"{text[:length]}…"
