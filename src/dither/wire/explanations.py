"""Explanations as JSON: the cost, what is left, and a line for each thing that is measured.

>>> sent = to_json(Explanation((), "ε = 1", "groups: one, of all rows", "each row is a person of their own", "ε = 9"))
>>> from_json(sent).cost
'ε = 1'
"""

from __future__ import annotations

import math
from typing import Any

from dither.errors import WrongType
from dither.present.notes import Note
from dither.tables.planning.explain import Explanation
from dither.wire.documents import VERSION, fields, flag, kind_of, text

_TEXTS = ("cost", "groups", "bounding", "left", "refused", "asked_of")
_LINE = ("answer", "measure", "mechanism", "expected")


def to_json(explanation: Explanation) -> dict[str, Any]:
    """An explanation as JSON has it."""
    return {
        "version": VERSION,
        **{name: getattr(explanation, name) for name in _TEXTS},
        "lines": [{**line, "error": _finite(line["error"])} for line in explanation.lines],
        "limitations": [note.stored() for note in explanation.limitations],
        "rows_are_people": explanation.rows_are_people,
    }


def from_json(document: object) -> Explanation:
    """The explanation."""
    given = fields(document, "explanation", (*_TEXTS, "lines", "limitations"), ("rows_are_people",))
    stated = {name: text(given[name], f"explanation.{name}") for name in _TEXTS}
    lines = given["lines"]
    if not isinstance(lines, list):
        raise WrongType("explanation.lines", "a list", kind_of(lines), "write [{…}]")
    if not isinstance(given["limitations"], list):
        raise WrongType("explanation.limitations", "a list", kind_of(given["limitations"]), "write [{…}]")
    limitations = [
        Note.restored(fields(note, "explanation.limitations", ("kind", "values"), versioned=False))
        for note in given["limitations"]
    ]
    rows_are_people = flag(given.get("rows_are_people", False), "explanation.rows_are_people")
    return Explanation(
        tuple(_line(line) for line in lines),
        **stated,
        limitations=tuple(limitations),
        rows_are_people=rows_are_people,
    )


def _line(document: object) -> dict[str, Any]:
    given = fields(document, "explanation.lines", (*_LINE, "error"), versioned=False)
    error = given["error"]
    if error is not None and (isinstance(error, bool) or not isinstance(error, (int, float))):
        raise WrongType("explanation.lines.error", "a number or null", kind_of(error), "write null")
    parts = {name: text(given[name], f"explanation.lines.{name}") for name in _LINE}
    return {**{name: parts[name] for name in _LINE[:3]}, "error": error, "expected": parts["expected"]}


def _finite(error: float | None) -> float | None:
    return None if error is None or not math.isfinite(error) else float(error)
