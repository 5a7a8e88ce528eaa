"""Values as JSON and back: one codec of questions, cards, options and guarantees, for records and for HTTP.

* A frozen dataclass is an object with its fields. A field at its default is left out, so that a field that is added
  later changes no recorded key. Classes of which a field takes several (expressions, sources of rows) add ``"is"``.
* A mapping is an object; where its order shows in the answer, a list of pairs.
* Whole numbers, texts, truth values and NULL are those of JSON; a float is its shortest decimal. What JSON lacks is an
  object with one field: ``{"date": "2024-01-31"}``, ``{"timestamp": …}``, ``{"float": "inf"}`` or ``{"fraction": …}``.
* A guarantee is its kind and its exact numbers: ``{"kind": "approximate", "epsilon": "1/2", "delta": "1/1000000"}``.

Reading follows the annotations of the fields and refuses everything else, so that what is read has the declared types.
Whether a question that a client sent *means* something is for :mod:`dither.wire.requests` to say.

>>> from dither.tables.query.tree import Call, Column, Literal
>>> to_json(Call("<", (Column("age"), Literal(5))))
{'is': 'Call', 'op': '<', 'args': [{'is': 'Column', 'name': 'age'}, {'is': 'Literal', 'value': 5}]}
>>> from_json({"aggregates": [["n", {"kind": "count"}]]}, Query, "tree").aggregates["n"].kind
'count'
"""

from __future__ import annotations

import json
import math
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, is_dataclass
from dataclasses import fields as fields_of
from datetime import date, datetime
from fractions import Fraction
from functools import cache
from numbers import Integral, Real
from typing import Any

from dither.errors import InvalidArgument, WrongType
from dither.guarantees import FREE, ZCDP, ApproxDP, Guarantee, PureDP
from dither.tables.card.values import clip, nearest
from dither.tables.query.tree import (
    CappedRows,
    Expression,
    Query,
    Shape,
    Source,
)

_TAGGED = (*typing.get_args(Expression), *typing.get_args(Source))
_NEVER_READ = (CappedRows,)  # no question states how many rows of a person are combined
_IN_ORDER = {(Query, "aggregates"), (Shape, "columns")}
_GUARANTEES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "pure": (PureDP, ("epsilon",)),
    "approximate": (ApproxDP, ("epsilon", "delta")),
    "concentrated": (ZCDP, ("rho",)),
}
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}

# -- writing ----------------------------------------------------------------------------------------------------------


def to_json(value: Any) -> Any:
    """Return a value as Python objects that :mod:`json` writes, in the forms of the module.

    >>> to_json(ApproxDP(0.5, 1e-6)), to_json(date(2024, 1, 31))
    ({'kind': 'approximate', 'epsilon': '1/2', 'delta': '1/1000000'}, {'date': '2024-01-31'})
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Guarantee):
        return _encode_guarantee(value)
    if is_dataclass(value):
        return _encode_fields(value)
    if isinstance(value, datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, Mapping):
        return {str(name): to_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    raise WrongType("value", "numbers, text, truth values and dates", type(value).__name__, "convert it first")


def _encode_fields(value: Any) -> dict[str, Any]:
    """Return a dataclass as an object of the fields that differ from their defaults; classes that are part of a union
    add their name under "is"."""
    bases = type(value).__mro__  # a subclass is written as the class that it refines
    tag = next((base.__name__ for base in bases if base in _TAGGED), None)
    result: dict[str, Any] = {} if tag is None else {"is": tag}
    for field in fields_of(value):
        item = getattr(value, field.name)
        if not _is_default(field, item):
            in_order = any((base, field.name) in _IN_ORDER for base in bases)
            result[field.name] = [[name, to_json(part)] for name, part in item.items()] if in_order else to_json(item)
    return result


def _is_default(field: Field[Any], value: Any) -> bool:
    """Return whether a field has its default value, of the same type: 1 is not True."""
    if field.default is not MISSING:
        return type(value) is type(field.default) and bool(value == field.default)
    return field.default_factory is not MISSING and bool(value == field.default_factory())


def _encode_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """Return a guarantee as its kind and its numbers as exact fractions."""
    for kind, (cls, names) in _GUARANTEES.items():
        if type(guarantee) is cls:
            return {"kind": kind, **{name: str(part) for name, part in zip(names, guarantee.exact, strict=True)}}
    raise AssertionError("there are three kinds of guarantees")


# -- reading ----------------------------------------------------------------------------------------------------------


def from_json(document: object, hint: Any, where: str) -> Any:
    """Return the value of an annotated type that a document describes; refuse what is not of the type.

    >>> from_json({"kind": "pure", "epsilon": "1/2"}, Guarantee, "limit")
    PureDP(0.5)
    >>> from_json("5", int | None, "rows")
    Traceback (most recent call last):
    dither.InvalidArgument: rows: expected a whole number or null, got text. Fix: correct it.
    """
    try:
        return _decode(document, hint, where)
    except RecursionError:
        pass
    raise InvalidArgument(where, "a value of moderate depth", "a deeper one", "simplify it")


def _decode(document: object, hint: Any, where: str, in_order: bool = False) -> Any:
    """Return the value of an annotated type that a document describes; refuse a document that fits no type.

    ``hint`` is the annotation; of a union, null, literals and containers are tried before dataclasses, and other
    values last. ``where`` is the path of the document in errors. ``in_order`` says that a mapping is written as a list
    of pairs.
    """
    if hint is Any:
        return document if isinstance(document, (list, dict)) else constant(document, where)
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    if document is None and type(None) in options:
        return None
    nodes = [option for option in options if is_dataclass(option) and option not in _NEVER_READ]
    for option in options:
        origin = typing.get_origin(option) or option
        if origin is typing.Literal and isinstance(document, str) and document in typing.get_args(option):
            return document
        if origin is tuple and isinstance(document, list):
            return _decode_tuple(typing.get_args(option), document, where)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            pairs = _pairs(document, where) if in_order else _object(document, where).items()
            return {name: _decode(item, typing.get_args(option)[1], f"{where}.{name}") for name, item in pairs}
        if origin is Guarantee:
            return _decode_guarantee(document, where)
    if nodes and isinstance(document, dict) and (len(nodes) == 1 or "is" in document):
        return _decode_fields(document, typing.cast(list[type], nodes), where)
    if not isinstance(document, list):
        plain = [option for option in options if isinstance(option, type) and not is_dataclass(option)]
        value = constant(document, where) if plain else None
        if type(value) in plain:
            return value
        if float in plain and (type(value) is int or isinstance(value, Fraction)):  # exact numbers stay exact
            return value
        if date in plain and type(value) is datetime:  # as in Python, where a timestamp is a date, too
            return value
    raise InvalidArgument(where, _in_words(options), kind_of(document), "correct it")


def _decode_fields(document: dict[str, Any], allowed: list[type], where: str) -> Any:
    """Return the dataclass, one of those allowed, that an object describes."""
    names = {cls.__name__: cls for cls in allowed}
    kind = document.get("is") if len(allowed) > 1 or "is" in document else allowed[0].__name__
    cls = names.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise InvalidArgument(f"{where}.is", ", ".join(names), "an unknown kind", "write one of these")
    declared = fields_of(cls)
    required = [item.name for item in declared if item.default is MISSING and item.default_factory is MISSING]
    given = fields(document, where, required, ("is", *(item.name for item in declared)))
    hints = _hints(cls)
    read = {
        name: _decode(item, hints[name], f"{where}.{name}", (cls, name) in _IN_ORDER)
        for name, item in given.items()
        if name != "is"
    }
    return cls(**read)


@cache
def _hints(cls: type) -> dict[str, Any]:
    """Return the resolved type annotations of a dataclass's fields."""
    return typing.get_type_hints(cls)


def _decode_tuple(parts: tuple[Any, ...], document: list[Any], where: str) -> tuple[Any, ...]:
    """Return a tuple from a list, with one type for each item or, with an ellipsis, one for all."""
    if parts[-1] is Ellipsis:
        return tuple(_decode(item, parts[0], f"{where}[{place}]") for place, item in enumerate(document))
    if len(document) != len(parts):
        raise InvalidArgument(where, f"{len(parts)} values", f"{len(document)}", f"list {len(parts)}")
    return tuple(_decode(item, part, where) for part, item in zip(parts, document, strict=True))


def _pairs(document: object, where: str) -> list[tuple[str, Any]]:
    """Return the items of a mapping that is written as a list of pairs, which keeps their order."""
    pairs: list[Any] = document if isinstance(document, list) else [None]
    if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise InvalidArgument(where, "a list of pairs [name, value]", kind_of(document), "write [[name, value], …]")
    if len({name for name, _ in pairs}) < len(pairs):
        raise InvalidArgument(where, "different names", "one twice", "rename one of them")
    return [(name, item) for name, item in pairs]


def _object(document: object, where: str) -> dict[str, Any]:
    """Return a document that is an object; refuse any other."""
    if not isinstance(document, dict):
        raise WrongType(where, "an object", kind_of(document), "write {…}")
    return document


def _decode_guarantee(document: object, where: str) -> Guarantee:
    """Return the guarantee that an object describes by its kind and exact fractions."""
    kind = text(fields(document, where, ("kind",), ("epsilon", "delta", "rho"))["kind"], f"{where}.kind")
    if kind not in _GUARANTEES:
        raise InvalidArgument(f"{where}.kind", ", ".join(_GUARANTEES), "an unknown kind", "write one of these")
    cls, names = _GUARANTEES[kind]
    given = fields(document, where, ("kind", *names))
    numbers = []
    for name in names:
        number = fraction(text(given[name], f"{where}.{name}"))
        if number is None or number < 0:
            raise InvalidArgument(f"{where}.{name}", 'a fraction such as "1/2"', "text that is not one", "write digits")
        numbers.append(number)
    result: Guarantee = FREE if cls is PureDP and numbers == [0] else cls(*numbers)
    return result


def constant(document: object, where: str) -> Any:
    """Return the number, text, truth value, date, timestamp or None of a document.

    >>> constant({"date": "2024-01-31"}, "day")
    datetime.date(2024, 1, 31)
    """
    if document is None or isinstance(document, (bool, int, float, str)):
        return document
    if isinstance(document, dict) and len(document) == 1:
        ((kind, written),) = document.items()
        reader = _READERS.get(kind)
        if reader is not None and isinstance(written, str) and len(written) <= _LONGEST:
            try:
                result = reader(written)
            except (ValueError, OverflowError):
                result = None
            if result is not None:
                return result
    expected = "a number, text, true, false, null, or an object with date, timestamp, float or fraction"
    raise InvalidArgument(where, expected, kind_of(document), 'write {"date": "2024-01-31"} for a date')


def _in_words(options: tuple[Any, ...]) -> str:
    """Return the allowed types in words, for messages."""
    said = []
    for option in options:
        origin = typing.get_origin(option) or option
        if origin is typing.Literal:
            said += [repr(choice) for choice in typing.get_args(option)]
        elif is_dataclass(option):
            said.append(f'{{"is": "{option.__name__}", …}}' if option in _TAGGED else "an object")  # type: ignore[union-attr]
        else:
            said.append(_WORDS.get(origin, "an object"))
    return " or ".join(dict.fromkeys(said))


_WORDS: dict[Any, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text", type(None): "null", tuple: "a list",
    date: "a date", datetime: "a timestamp",
}  # fmt: skip

# -- numbers that are text --------------------------------------------------------------------------------------------

MOST_DIGITS = 1000
_LONGEST = 2 * MOST_DIGITS + 2
_FRACTION = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}(/(?=0*[1-9])[0-9]{{1,{MOST_DIGITS}}})?")
_DECIMAL = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")


def fraction(text: str) -> Fraction | None:
    """Return the fraction that a text states in ASCII digits, with at most 1,000 in each number; None for other texts.

    Python's own reader accepts more: spaces, underscores, digits of other scripts, and exponents, with which a short
    text such as ``1e-10000000`` states a number of ten million digits.

    >>> fraction("1/3"), fraction("-2"), fraction("1e-3"), fraction(" 1/3 "), fraction("1/0")
    (Fraction(1, 3), Fraction(-2, 1), None, None, None)
    """
    return Fraction(text) if _FRACTION.fullmatch(text) else None


def decimal(text: str) -> float | None:
    """Return the finite number that a text states in decimal notation; None for other texts.

    >>> decimal("2.5e-3"), decimal("1_0"), decimal("1e999")
    (0.0025, None, None)
    """
    value = float(text) if _DECIMAL.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


_READERS: dict[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "float": _NOT_FINITE.get,
    "fraction": fraction,
}

# -- documents, read strictly -----------------------------------------------------------------------------------------


def read(body: bytes | str, what: str = "body") -> Any:
    """Return the value of a JSON text; refuse repeated names, NaN and infinities, too deep nesting and invalid Unicode.
    ``what`` names the text in the error.

    >>> read(b'{"epsilon": 0.5}')
    {'epsilon': 0.5}
    >>> read(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    dither.InvalidArgument: body: expected JSON, got text that is not JSON. Fix: send one JSON value in UTF-8.
    """
    try:
        text = body if isinstance(body, str) else body.decode("utf-8")
        result = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite, parse_int=_whole
        )
        if "\\u" in text:  # half of a surrogate pair is no text that can be stored
            json.dumps(result, ensure_ascii=False).encode("utf-8")
        return result
    except (ValueError, RecursionError):
        pass
    raise InvalidArgument(what, "JSON", "text that is not JSON", "send one JSON value in UTF-8")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; refuse one in which a name occurs twice."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a name occurs twice")
    return result


def _finite(text: str) -> float:
    """Return a float from JSON; refuse NaN, infinities and numbers that overflow."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("no number of JSON, or one that no float is near")
    return value


def _whole(text: str) -> int:
    """Return a whole number from JSON; refuse more digits than can be read fast."""
    if len(text) > MOST_DIGITS:
        raise ValueError("a number of too many digits")
    return int(text)


def fields(document: object, what: str, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a document; refuse it if one is missing or unknown.

    >>> fields({"sql": "SELECT 1"}, "question", ("sql",))
    {'sql': 'SELECT 1'}
    >>> fields({"sq": 1}, "question", ("sql",))
    Traceback (most recent call last):
    dither.InvalidArgument: question.sq: expected sql, got an unknown field. Fix: write 'sql', the nearest name.
    """
    if not isinstance(document, Mapping):
        raise WrongType(what, "a JSON object", kind_of(document), 'write {"…": …}')
    given = dict(document)
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
    """Return a value that must be text.

    >>> text("north", "region")
    'north'
    """
    if not isinstance(value, str):
        raise WrongType(what, "text", kind_of(value), 'write "…"')
    return value


def is_storable(value: str) -> bool:
    """Return whether text can be stored everywhere: valid Unicode, which half of a surrogate pair is not, without NUL.

    >>> is_storable("naïve"), is_storable("\\ud800"), is_storable("\\0")
    (True, False, False)
    """
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value)


def kind_of(value: object) -> str:
    """Return the kind of a JSON value in the words of error messages.

    >>> kind_of(True), kind_of([]), kind_of(None)
    ('true or false', 'a list', 'null')
    """
    kinds: dict[type, str] = {
        bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object",
        type(None): "null",
    }  # fmt: skip
    return kinds.get(type(value), type(value).__name__)
