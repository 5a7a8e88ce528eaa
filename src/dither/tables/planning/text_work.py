"""How much work the texts of one row can be: a question has so many operations on texts, counted before data are read.

An operation on a text takes DuckDB some 3 to 16 ns for each character. A text that a question makes, by a constant or
by an operation that lengthens one, has at most ``MAX_MADE_BYTES`` (:mod:`dither.tables.query.operations.text`),
however few rows it makes it for. With :data:`MAX_TEXT_OPERATIONS` on each row, what such texts add to the work of one
row is bounded by the question alone. Texts of the data have up to 65,536 bytes, and their work is in proportion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from dither.errors import InvalidArgument
from dither.tables.query.operations.text import TEXT
from dither.tables.query.tree import Call, Column, Expression, Literal, PersonJoin, PrivateRows, Query, Source, UnionAll

MAX_TEXT_OPERATIONS = 512
"""How many operations on texts a question may have for one row of the data."""

_NAMES = frozenset(item.name for item in TEXT)
_WRITTEN = {"||": 2, "replace": 3, "cast": 3}
"""How often the argument of an operation stands in its SQL, of those where that is more than once."""
_OTHER_FIELDS = ("source", "sources", "left", "right", "shape", "post", "more", "rolled_up")


def refuse_much_text_work(query: Query) -> None:
    """Refuse a question with too many operations on texts.

    >>> refuse_much_text_work(Query({}, where=Call("like", (Column("s"), Literal("a%")))))
    """
    count = sum(_of_question(part) for part in query.aggregations)
    if count > MAX_TEXT_OPERATIONS:
        expected = (
            f"at most {MAX_TEXT_OPERATIONS} operations on texts (LIKE, LOWER, REPLACE, || and the like) for each row"
        )
        expected += (
            ", where one inside || counts twice, inside REPLACE or CAST three times, and in UNION ALL for each part"
        )
        fix = "ask several questions, or write conditions on whole texts as s IN (…)"
        raise InvalidArgument("question", expected, "more", fix)


def _of_question(query: Query) -> int:
    rows, count = (1, 0) if query.source is None else _of_source(query.source)
    return count + rows * _operations(query)


def _of_source(source: Source) -> tuple[int, int]:
    """How many rows a relation makes of one row, but for joins, and by how many operations on texts."""
    if isinstance(source, PrivateRows):
        return 1, 0
    inside = (
        source.sources
        if isinstance(source, UnionAll)
        else (source.left, source.right)
        if isinstance(source, PersonJoin)
        else (source.source,)
    )
    parts = [_of_source(item) for item in inside]
    rows = sum(rows for rows, _ in parts)
    return rows, sum(count for _, count in parts) + rows * _operations(source)


def _operations(node: Query | Source) -> int:
    """The operations on texts in the expressions of one node, without the relations inside it."""
    count = 0
    pending = [(item, 1) for item in _expressions(node)]
    while pending and count <= MAX_TEXT_OPERATIONS:
        item, times = pending.pop()
        if isinstance(item, Call):
            count += times * (item.op in _NAMES)
            pending += [(argument, times * _WRITTEN.get(item.op, 1)) for argument in item.args]
    return count


def _expressions(value: object) -> Iterator[Expression]:
    if isinstance(value, (Call, Column, Literal)):
        yield value
        return
    inside: object = ()
    if isinstance(value, Mapping):
        inside = value.values()
    elif isinstance(value, tuple):
        inside = value
    elif is_dataclass(value):
        inside = [getattr(value, item.name) for item in fields(value) if item.name not in _OTHER_FIELDS]
    for item in inside:  # type: ignore[attr-defined]
        yield from _expressions(item)
