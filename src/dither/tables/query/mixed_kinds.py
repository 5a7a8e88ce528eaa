"""Advice for values of different kinds where one kind is needed: what to write instead, so that it means the same."""

from __future__ import annotations

from collections.abc import Sequence

from dither.tables.card.model import Type
from dither.tables.card.wording import clip
from dither.tables.query.tree import Call, Expression, Literal, show

_NUMBERS = ("integer", "number")
_COMPARISONS = ("<", "<=", ">", ">=", "=", "<>")


def one_kind(call: Call, args: Sequence[tuple[Expression, Type | None]], kinds: Sequence[Type]) -> str:
    """What makes values of one kind of the arguments of a call, which are of these kinds.

    >>> from dither.tables.query.tree import Column
    >>> late = Call(">", (Column("delay"), Literal(10)))
    >>> one_kind(late, [(Column("delay"), "text"), (Literal(10), "integer")], ["integer", "text"])
    'if delay holds numbers, state type = "integer" in the card, or write CAST(delay AS INTEGER)'
    """
    dates = any(kind in ("date", "timestamp") for kind in kinds)
    if "boolean" in kinds and any(isinstance(item, Call) and item.op in _COMPARISONS for item, _ in args):
        return "compare once at a time: x > 1 AND x < 5"
    if "boolean" in kinds and call.op == "coalesce":
        return _three_values(args)
    if "boolean" in kinds:
        return "write TRUE or FALSE"
    if dates and set(kinds) & set(_NUMBERS):
        return "write a date in quotes: '2024-01-31'"
    if "text" in kinds and set(kinds) & set(_NUMBERS):
        return _texts_and_numbers(call, args)
    return "use values of one kind"


def _three_values(args: Sequence[tuple[Expression, Type | None]]) -> str:
    """What makes values of one kind of truth values and of what stands for NULL beside them.

    >>> from dither.tables.query.tree import Column
    >>> _three_values([(Column("vip"), "boolean"), (Literal("none"), "text")])
    "write CASE WHEN vip THEN 'yes' WHEN NOT vip THEN 'no' ELSE 'none' END"
    """
    truth = next(show(item) for item, kind in args if kind == "boolean")
    other, kind = next((show(item), kind) for item, kind in args if kind not in ("boolean", None))
    yes, no = ("1", "0") if kind in _NUMBERS else ("'yes'", "'no'")
    if kind not in (*_NUMBERS, "text"):
        return "write TRUE or FALSE"
    return f"write CASE WHEN {truth} THEN {yes} WHEN NOT {truth} THEN {no} ELSE {other} END"


def _texts_and_numbers(call: Call, args: Sequence[tuple[Expression, Type | None]]) -> str:
    """What makes texts and numbers of one kind. Texts that are compared stand in the order of their letters, '9' above
    '10', so it is the texts that become numbers; only where values are equal or not may a number be meant as a text.
    """
    number = next((show(item) for item, kind in args if isinstance(item, Literal) and kind in _NUMBERS), None)
    text = next((show(item) for item, kind in args if not isinstance(item, Literal) and kind == "text"), None)
    if number is not None and call.op in ("case", "coalesce"):  # nothing is compared
        return f"write '{number}', with quotes, beside texts"
    if text is None:
        word = next(item.value for item, kind in args if isinstance(item, Literal) and kind == "text")
        return f"write a number without quotes instead of {clip(str(word))!r}"
    whole = all(kind == "integer" for _, kind in args if kind in _NUMBERS)
    kind, target = ("integer", "INTEGER") if whole else ("number", "DOUBLE")
    fix = f'if {clip(text)} holds numbers, state type = "{kind}" in the card, or write CAST({clip(text)} AS {target})'
    codes = number is not None and call.op in ("=", "<>", "in", "is_distinct", "nullif")
    return f"{fix}; if it holds codes, write '{number}', with quotes" if codes else fix
