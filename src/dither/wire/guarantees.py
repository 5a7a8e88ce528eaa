"""Guarantees as JSON: their kind, and their numbers as exact fractions.

>>> to_json(PureDP(0.5)), from_json({"kind": "approximate", "epsilon": "1", "delta": "1/1000000"}, "limit")
({'kind': 'pure', 'epsilon': '1/2'}, ApproxDP(1, 1e-06))
"""

from __future__ import annotations

from typing import Any

from dither.errors import InvalidArgument
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.wire.documents import fields, text
from dither.wire.numbers import fraction

_KINDS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "pure": (PureDP, ("epsilon",)),
    "approximate": (ApproxDP, ("epsilon", "delta")),
    "concentrated": (ZCDP, ("rho",)),
}


def to_json(guarantee: Guarantee) -> dict[str, Any]:
    """The guarantee, exactly."""
    for kind, (cls, names) in _KINDS.items():
        if type(guarantee) is cls:
            return {"kind": kind, **{name: str(part) for name, part in zip(names, guarantee.exact, strict=True)}}
    raise AssertionError("there are three kinds of guarantees")


def from_json(document: object, what: str) -> Guarantee:
    """The guarantee."""
    kind = text(fields(document, what, ("kind",), ("epsilon", "delta", "rho"), versioned=False)["kind"], f"{what}.kind")
    if kind not in _KINDS:
        raise InvalidArgument(f"{what}.kind", ", ".join(_KINDS), "another", "write one of these")
    cls, names = _KINDS[kind]
    given = fields(document, what, ("kind", *names), versioned=False)
    numbers = []
    for name in names:
        number = fraction(text(given[name], f"{what}.{name}"))
        if number is None or number < 0:
            raise InvalidArgument(f"{what}.{name}", 'a fraction such as "1/2"', "other text", "write digits")
        numbers.append(number)
    result: Guarantee = cls(*numbers)
    return result
