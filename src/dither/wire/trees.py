"""The tree of a question as JSON, and back: a codec over the frozen dataclasses of :mod:`dither.tables.query.tree`.

A node is an object: ``"is"`` names its class, a field that has its default is left out. A mapping is a list of pairs,
since the order of aggregates matters. Reading follows the annotations of the fields, so a tree that is read has the
types that it was declared with; whether it *means* something is for :mod:`dither.wire.rebuilding` to say.

>>> to_json(Call("<", (Column("age"), Literal(5))))
{'is': 'Call', 'op': '<', 'args': [{'is': 'Column', 'name': 'age'}, {'is': 'Literal', 'value': 5}]}
>>> from_json({"is": "Query", "aggregates": [["n", {"is": "Aggregate", "kind": "count"}]]}).aggregates["n"].kind
'count'
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, is_dataclass
from dataclasses import fields as fields_of
from fractions import Fraction
from functools import cache
from typing import Any

from dither.errors import InvalidArgument, WrongType
from dither.tables.query import tree
from dither.tables.query.tree import Call, Column, Literal, Query
from dither.wire import values
from dither.wire.documents import fields, kind_of

NODES: dict[str, type] = {
    item.__name__: item
    for item in (
        Query, tree.Aggregate, tree.Group, tree.Join, tree.Order, tree.Shape, tree.PostProcessing, Column, Literal,
        Call, tree.PrivateRows, tree.Projection, tree.PerPerson, tree.PersonAggregate, tree.Windowed,
        tree.WindowFunction, tree.PersonJoin, tree.PublicMembership, tree.UnionAll,
    )
}  # fmt: skip
"""Every class of a tree, by its name."""

_CONSTANTS = (bool, int, float, str)


def to_json(node: Any) -> Any:
    """A tree, or a part of one, as JSON has it."""
    if is_dataclass(node):
        if NODES.get(type(node).__name__) is not type(node):
            raise WrongType("question", "a tree of questions", type(node).__name__, "ask in SQL")
        result: dict[str, Any] = {"is": type(node).__name__}
        for field in fields_of(node):
            value = getattr(node, field.name)
            if not _is_default(field, value):
                result[field.name] = to_json(value)
        return result
    if isinstance(node, Mapping):
        return [[str(name), to_json(item)] for name, item in node.items()]
    if isinstance(node, (tuple, list)):
        return [to_json(item) for item in node]
    return values.to_json(node)


def from_json(document: object) -> Query:
    """The question that a document describes, with every field of its declared type."""
    try:
        result = _node(document, (Query,), "tree")
    except RecursionError:
        result = None
    if result is None:
        raise InvalidArgument("tree", "a question of moderate depth", "a deeper one", "simplify it")
    assert isinstance(result, Query)
    return result


def _is_default(field: Field[Any], value: Any) -> bool:
    if field.default is not MISSING:
        return type(value) is type(field.default) and bool(value == field.default)
    return field.default_factory is not MISSING and bool(value == field.default_factory())


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _node(document: object, allowed: tuple[type, ...], where: str) -> Any:
    names = [cls.__name__ for cls in allowed]
    kind = document.get("is") if isinstance(document, dict) else None
    if not isinstance(document, dict) or kind not in names:
        expected = " or ".join(f'{{"is": "{name}", …}}' for name in names)
        raise InvalidArgument(where, expected, kind_of(document), "write one of these")
    cls = NODES[str(kind)]
    declared = {field.name: field for field in fields_of(cls)}
    required = [
        name for name, field in declared.items() if field.default is MISSING and field.default_factory is MISSING
    ]
    given = fields(document, where, ("is", *required), tuple(declared), versioned=False)
    hints = _hints(cls)
    read = {name: _read(hints[name], item, f"{where}.{name}") for name, item in given.items() if name != "is"}
    return cls(**read)


def _read(hint: Any, document: object, where: str) -> Any:
    """A value of an annotated type; what is not of the type is refused."""
    options = typing.get_args(hint) if _is_union(hint) else (hint,)
    if document is None:
        if type(None) in options:
            return None
        raise InvalidArgument(where, "a value", "null", "leave the field out for its default")
    nodes = tuple(option for option in options if is_dataclass(option))
    if nodes and isinstance(document, dict) and "is" in document:
        return _node(document, typing.cast(tuple[type, ...], nodes), where)
    for option in options:
        origin = typing.get_origin(option)
        if origin is tuple and isinstance(document, list):
            return _tuple(typing.get_args(option), document, where)
        if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
            return _mapping(typing.get_args(option)[1], document, where)
        if origin is typing.Literal and isinstance(document, str) and document in typing.get_args(option):
            return document
    plain = tuple(option for option in options if isinstance(option, type) and not is_dataclass(option))
    if plain and not isinstance(document, list):
        value = values.from_json(document, where)
        if _is_one_of(value, plain):
            return value
    expected = "a part of a question" if nodes else "a value of its type"
    raise InvalidArgument(where, expected, "another", "see the types of dither.tables.query.tree")


def _tuple(parts: tuple[Any, ...], document: list[Any], where: str) -> tuple[Any, ...]:
    if parts[-1] is Ellipsis:
        return tuple(_read(parts[0], item, f"{where}[{place}]") for place, item in enumerate(document))
    if len(document) != len(parts):
        raise InvalidArgument(where, f"{len(parts)} values", f"{len(document)}", "list as many")
    return tuple(_read(part, item, where) for part, item in zip(parts, document, strict=True))


def _mapping(hint: Any, document: object, where: str) -> dict[str, Any]:
    pairs: list[Any] = document if isinstance(document, list) else [None]
    if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise InvalidArgument(where, "a list of pairs [name, value]", "another", "write [[name, value], …]")
    if len({name for name, _ in pairs}) < len(pairs):
        raise InvalidArgument(where, "different names", "one twice", "rename one of them")
    return {name: _read(hint, item, where) for name, item in pairs}


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _is_one_of(value: object, options: tuple[type, ...]) -> bool:
    if type(value) in options:
        return True
    # a whole number is a number; an exact fraction is one, too
    return float in options and (type(value) is int or isinstance(value, Fraction))
