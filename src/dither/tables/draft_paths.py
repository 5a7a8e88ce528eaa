"""Paths to the person that a draft of a card proposes: from the foreign keys of a database, otherwise from names.

A steward confirms them, as everything in a draft. No row is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dither.tables.card.model import PersonPath, Type

_SUFFIXES = ("id", "key", "no", "number", "code")


@dataclass(frozen=True)
class ForeignKey:
    """A foreign key in a database's catalog: its columns, and the table and columns that it refers to."""

    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]


@dataclass(frozen=True)
class ProposedPath:
    """A path to the person; ``declared`` is whether a foreign key of the database is the reason."""

    path: PersonPath
    declared: bool


def proposed_paths(
    columns: Mapping[str, Mapping[str, Type]], unit: str, keys: Mapping[str, Sequence[ForeignKey]]
) -> dict[str, ProposedPath]:
    """Return a path for each table that has no column ``unit`` and from which one leads to a table that has.

    ``columns`` are those of each table, ``keys`` the foreign keys of each, whose tables are named as in ``columns``.

    >>> tables = {"orders": {"o_custkey": "text", "o_orderkey": "integer"}, "items": {"i_orderkey": "integer"}}
    >>> print(proposed_paths(tables, "o_custkey", {})["items"].path)
    orders via i_orderkey = o_orderkey
    """
    reached = [name for name, present in columns.items() if unit in present]
    result: dict[str, ProposedPath] = {}
    for declared in (True, False):
        changed = True
        while changed:
            changed = False
            for name in columns:
                if name in reached:
                    continue
                candidates = _declared(name, reached, keys) if declared else _named(name, reached, columns, unit)
                path = next(iter(candidates), None)
                if path is not None:
                    result[name], changed = ProposedPath(path, declared), True
                    reached.append(name)
    return result


def _declared(name: str, reached: Sequence[str], keys: Mapping[str, Sequence[ForeignKey]]) -> Iterator[PersonPath]:
    """Yield the paths of a table along a foreign key to a table from which the person is known."""
    for key in keys.get(name, ()):
        if key.table in reached:
            yield PersonPath(key.table, tuple(zip(key.columns, key.referred, strict=True)))


def _named(
    name: str, reached: Sequence[str], columns: Mapping[str, Mapping[str, Type]], unit: str
) -> Iterator[PersonPath]:
    """Yield the paths of a table along columns whose names say that they are one key: ``order_id`` in both tables, or
    ``order_id`` and the ``id`` of ``orders``, or ``l_orderkey`` and ``o_orderkey``. They lead to a table's own key, or
    to its column ``unit``, which is the person."""
    for other in reached:
        own_keys = [column for column in columns[other] if column == unit or _is_named_after(column, other)]
        for own, type in columns[name].items():
            for referred in own_keys:
                if type == columns[other][referred] and type in ("integer", "text") and _alike(own, referred, other):
                    yield PersonPath(other, ((own, referred),))


def _is_named_after(column: str, table: str) -> bool:
    """Return whether a column is a table's own key by its name, as ``o_orderkey`` and ``id`` are that of ``orders``: a
    path leads to that key, and not to one that the table refers to another by."""
    name, title = _without_prefix(column.casefold()), table.casefold().removesuffix("s")
    suffix = next((end for end in sorted(_SUFFIXES, key=len, reverse=True) if name.endswith(end)), None)
    if suffix is None:
        return False
    stem = name.removesuffix(suffix).strip("_")
    return stem == "" or title.startswith(stem) or stem.startswith(title)


def _alike(own: str, referred: str, table: str) -> bool:
    """Return whether a column refers to a column of another table by their names."""
    first, second, title = own.casefold(), referred.casefold(), table.casefold()
    if second in _SUFFIXES:
        return first in (f"{title}_{second}", f"{title.removesuffix('s')}_{second}", f"{title}{second}")
    if not second.endswith(_SUFFIXES):
        return False
    return first == second or (_without_prefix(first) == _without_prefix(second) and "_" in first and "_" in second)


def _without_prefix(name: str) -> str:
    """Return a name without a prefix of one or two letters, as TPC-H has it."""
    prefix, mark, rest = name.partition("_")
    return rest if mark and len(prefix) <= 2 else name
