"""Reading JSON strictly: documents of one version, with exactly the fields that they may have.

>>> fields({"version": 1, "sql": "SELECT 1"}, "question", ("sql",))
{'sql': 'SELECT 1'}
>>> fields({"sq": 1}, "question", ("sql",))
Traceback (most recent call last):
dither.InvalidArgument: question.sq: expected sql, got an unknown field. Fix: write 'sql', the nearest name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any

from dither.errors import InvalidArgument, WrongType
from dither.tables.card.values import clip, nearest
from dither.wire.numbers import MOST_DIGITS

VERSION = 1
"""The version of all documents; another one is refused."""


def read(body: bytes | str, what: str = "body") -> Any:
    """The JSON in a body. A name that occurs twice, NaN and infinities are refused, and so are what is too deep
    and text that is not Unicode.

    >>> read(b'{"epsilon": 0.5}')
    {'epsilon': 0.5}
    >>> read(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    dither.InvalidArgument: body: expected JSON, got something else. Fix: send one JSON value in UTF-8.
    """
    try:
        text = body if isinstance(body, str) else body.decode("utf-8")
        result = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number, **_BOUNDED)
        if "\\u" in text:  # half of a surrogate pair is no text that can be stored
            json.dumps(result, ensure_ascii=False).encode("utf-8")
        return result
    except (ValueError, RecursionError):
        pass
    raise InvalidArgument(what, "JSON", "something else", "send one JSON value in UTF-8")


def fields(
    document: object, what: str, required: Collection[str], optional: Collection[str] = (), *, versioned: bool = True
) -> dict[str, Any]:
    """The fields of a document without its version; refused if one is missing or unknown.

    >>> fields({}, "question", ("sql",))
    Traceback (most recent call last):
    dither.InvalidArgument: question.sql: expected a value, got none. Fix: add the field 'sql'.
    """
    if not isinstance(document, Mapping):
        raise WrongType(what, "a JSON object", kind_of(document), 'write {"…": …}')
    given = dict(document)
    if versioned:
        version = given.pop("version", VERSION)
        if isinstance(version, bool) or version != VERSION:
            fix = "use the same version of dither on both sides"
            raise InvalidArgument(f"{what}.version", str(VERSION), clip(repr(version)), fix)
    names = [*required, *(name for name in optional if name not in required)]
    for name in given:
        if name not in names:
            where = f"{what}.{clip(str(name))}"
            fix = nearest(str(name), names) or "leave it out"
            raise InvalidArgument(where, ", ".join(names) or "no fields", "an unknown field", fix)
    for name in required:
        if name not in given:
            raise InvalidArgument(f"{what}.{name}", "a value", "none", f"add the field {name!r}")
    return given


def text(value: object, what: str) -> str:
    """The value, if it is text.

    >>> text("north", "region")
    'north'
    """
    if not isinstance(value, str):
        raise WrongType(what, "text", kind_of(value), 'write "…"')
    return value


def is_plain(value: str) -> bool:
    """Whether text can be stored everywhere: valid Unicode, which half of a surrogate pair is not, without NUL.

    >>> is_plain("naïve"), is_plain("\\ud800"), is_plain("\\0")
    (True, False, False)
    """
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value)


def texts(value: object, what: str) -> tuple[str, ...]:
    """The value, if it is a list of texts.

    >>> texts(["a", "b"], "names")
    ('a', 'b')
    """
    if not isinstance(value, list):
        raise WrongType(what, "a list of texts", kind_of(value), 'write ["…"]')
    return tuple(text(item, what) for item in value)


def flag(value: object, what: str) -> bool:
    """The value, if it is true or false.

    >>> flag(True, "again")
    True
    """
    if not isinstance(value, bool):
        raise WrongType(what, "true or false", kind_of(value), "write true or false")
    return value


def kind_of(value: object) -> str:
    """What a value of JSON is, in words.

    >>> kind_of(True), kind_of([]), kind_of(None)
    ('true or false', 'a list', 'null')
    """
    kinds: dict[type, str] = {
        bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object",
        type(None): "null",
    }  # fmt: skip
    return kinds.get(type(value), type(value).__name__)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a name occurs twice")
    return result


def _no_number(_constant: str) -> float:
    raise ValueError("no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number that no float is near")
    return value


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError("a number of too many digits")
    return int(text)


_BOUNDED: dict[str, Any] = {"parse_float": _finite, "parse_int": _whole}
