"""Attributes with public domains, and the tables (marginals) that are made from them.

An attribute is a tree of *levels*. Level 0 is the total; a plain attribute has one more level, its keys; a nested one,
such as state, county and tract, has several, and a public lookup maps each key to its parent. A table names one level
of each of its attributes. Keys, bins and lookups are arguments; nothing here is read from private data.

A row counts in every table or in none. It counts in none if a value is not among the keys, unless the attribute has a
key for such values: ``other="other"`` for values that are not listed, ``null=True`` for NULL.

>>> geography = Attribute.nested(
...     "geography", ["state", "county"], {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}
... )
>>> domain = Domain([geography, Attribute.flat("sex", ["f", "m"]), Attribute.binned("age", [0, 18, 65, 120])])
>>> domain.levels(["county", "sex"]), domain.shape(domain.levels(["county", "sex"]))
((2, 1, 0), (3, 2, 1))

A lookup is public, so errors about it may show its values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dither.errors import InvalidArgument, WrongType
from dither.tables.card.values import closest


def places_without(levels: Sequence[str], level: str, lookup: Mapping[str, Sequence[Any]]) -> str:
    """Return, for an error, the finest keys whose entry at ``level`` is NULL, or the number of rows if ``level`` is the
    finest itself."""
    finest_places = pa.array(lookup[levels[-1]]).to_pylist()
    parents = pa.array(lookup[level]).to_pylist()
    places = [place for place, parent in zip(finest_places, parents, strict=False) if parent is None]
    if level == levels[-1]:
        return f"{len(places)} row{'s' if len(places) != 1 else ''}"
    return first_few([repr(place) for place in places])


def first_few(shown: Sequence[str], most: int = 5) -> str:
    """Return the first items joined by commas, followed by how many more there are.

    >>> first_few(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(shown) - most:,} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def misplaced(name: str, levels: Sequence[str], level: str, lookup: Mapping[str, Sequence[Any]]) -> InvalidArgument:
    """Return the error for a lookup in which a key of ``level`` has several parents in the levels above.

    ``name`` is the attribute, ``levels`` are its levels from coarse to fine, and ``lookup`` has a column for each, one
    row for each finest key. If the columns would fit in the opposite order, the error advises that.
    """
    columns = [pa.array(lookup[item]).to_pylist() for item in levels]
    depth = [*levels].index(level)
    parents: dict[Any, dict[tuple[Any, ...], None]] = {}
    for row in zip(*columns, strict=True):
        parents.setdefault(row[depth], {})[row[:depth]] = None
    expected = f"every {level} in one place of the level above"
    several = next(place for place, above in parents.items() if len(above) > 1)
    shown = " and ".join(" ".join(map(repr, above)) for above in [*parents[several]][:2])
    got = f"{several!r} in {shown}"
    is_reversed = all(
        len({*zip(fine, coarse, strict=True)}) == len({*fine}) for fine, coarse in itertools.pairwise(columns)
    )
    if is_reversed:
        order = ", ".join(f'"{item}"' for item in reversed(levels))
        fix = f"name the levels from the coarsest to the finest: levels = [{order}]"
    else:
        fix = (
            f"correct the lookup, or use keys that tell them apart, such as the names of {levels[0]} and {level} in one"
        )
    return InvalidArgument(f"lookup of {name}", expected, got, fix)


Integers = NDArray[np.int64]
Levels = tuple[int, ...]
"""A table: the level of each attribute, in the order of the domain; 0 where the table does not have the attribute."""

MAX_CELLS = 100_000_000
"""The most cells of one table."""


@dataclass(frozen=True, eq=False)
class Attribute:
    """An attribute with a public domain; made by :meth:`flat`, :meth:`binned` or :meth:`nested`.

    >>> Attribute.flat("sex", ["f", "m"]).sizes
    (1, 2)
    """

    name: str
    level_names: tuple[str, ...]
    """The levels from 1, the coarsest, to the finest."""
    keys: tuple[Any, ...] = field(repr=False)
    """The keys of each of these levels as an Arrow array; siblings are consecutive, in the order of their parents."""
    parents: tuple[Integers, ...] = field(repr=False)
    """For each of these levels, the index of every key's parent in the level above."""
    edges: tuple[float, ...] | None = None
    """The edges of bins, where the keys are bins of numbers."""
    null: bool = False
    """Whether the last key of every level is None, which stands for NULL."""
    other: Any | None = None
    """The key, at every level, of all values that are not listed; it comes last, or before NULL. None: no such key."""

    @classmethod
    def flat(cls, name: str, keys: Sequence[Any], *, null: bool = False, other: Any | None = None) -> Attribute:
        """Return an attribute with one level, of these keys and, if requested, keys for NULL and for all other values.

        >>> Attribute.flat("sex", ["f", "m"]).keys[0].to_pylist()
        ['f', 'm']
        >>> Attribute.flat("sex", ["f", "m"], null=True, other="other").keys[0].to_pylist()
        ['f', 'm', 'other', None]
        """
        return cls.nested(_name(name, "name"), [name], {name: keys}, null=null, other=other)

    @classmethod
    def binned(
        cls, name: str, edges: Sequence[float], *, null: bool = False, other: str | None = None, whole: bool = False
    ) -> Attribute:
        """Return an attribute of numbers in bins, each of which contains its lower edge and not its upper one.

        Parameters
        ----------
        edges
            Increasing finite numbers, one more than there are bins.
        null
            Whether NULL, and NaN, has a key of its own.
        other
            The key of numbers below the first edge and from the last edge on; None: they count in no table.
        whole
            Whether all values are whole numbers: where every bin holds a single one, the keys are these numbers (as
            texts beside ``other``, which is a text).

        Examples
        --------
        >>> Attribute.binned("age", [0, 18, 120], null=True).keys[0].to_pylist()
        ['[0, 18)', '[18, 120)', None]
        >>> Attribute.binned("month", range(1, 5), whole=True).keys[0].to_pylist()
        [1, 2, 3]
        """
        numbers = [float(edge) for edge in edges]
        if len(numbers) < 2 or not all(map(math.isfinite, numbers)) or np.any(np.diff(numbers) <= 0):
            raise InvalidArgument(
                f"edges of {name}",
                "at least two increasing finite numbers",
                f"{len(numbers)} of them" if len(numbers) < 2 else "numbers that do not increase, or are not finite",
                "pass [0, 18, 65, 120]",
            )
        labels: list[Any] = [f"[{low:.15g}, {high:.15g})" for low, high in itertools.pairwise(numbers)]
        if whole and all(low == int(low) and high == low + 1 for low, high in itertools.pairwise(numbers)):
            labels = [int(low) if other is None else f"{low:.15g}" for low in numbers[:-1]]
        return replace(cls.flat(name, labels, null=null, other=other), edges=tuple(numbers))

    @classmethod
    def nested(
        cls,
        name: str,
        levels: Sequence[str],
        lookup: Mapping[str, Sequence[Any]],
        *,
        keys: Mapping[str, Sequence[Any]] | None = None,
        null: bool = False,
        other: Any | None = None,
    ) -> Attribute:
        """Return an attribute of nested levels, from the coarsest to the finest, such as states and their counties.

        Parameters
        ----------
        lookup
            A sequence for each level, all of one length: entry i of each has the i-th finest key and its ancestors.
        keys
            Required keys of some levels: a lookup that lacks one of them is refused.
        null, other
            Whether every level has a last key None, for rows whose value is NULL, and a key before it, ``other``, for
            values that are not in the lookup; ``other`` must have the type of the level's other keys.

        Examples
        --------
        >>> places = {"state": ["B", "A", "B"], "county": ["B1", "A1", "B2"]}
        >>> geography = Attribute.nested("geography", ["state", "county"], places)
        >>> [level.to_pylist() for level in geography.keys], geography.parents[1]
        ([['B', 'A'], ['B1', 'B2', 'A1']], array([0, 0, 1]))
        """
        if not levels or len({*levels}) != len(levels):
            raise InvalidArgument(
                f"levels of {name}",
                "different names, the coarsest first",
                "no names, or a repeated one",
                "pass ['state', 'county']",
            )
        codes, dictionaries = _encode(name, levels, lookup)
        order = np.lexsort(codes[::-1])
        level_keys, parents = [], []
        above = np.zeros(len(order), dtype=np.int64)  # the index of each row's key in the level above
        for level, code, dictionary in zip(levels, codes, dictionaries, strict=True):
            changes = np.diff(code[order]) != 0
            starts = np.concatenate([[True], changes | (np.diff(above) != 0)])
            first_rows = order[starts]
            if len(first_rows) != len(dictionary):
                raise misplaced(name, levels, level, lookup)
            level_keys.append(dictionary.take(pa.array(code[first_rows])))
            parents.append(above[starts])
            above = np.cumsum(starts) - 1
            _check_required_keys(name, level, dictionary, (keys or {}).get(level))
        if len(level_keys[-1]) != len(order):
            raise InvalidArgument(
                f"lookup of {name}", f"every {levels[-1]} once", "one of them twice", "leave out the repetition"
            )
        for level, listed in zip(levels, level_keys, strict=True):
            _check_other(name, level, listed, other)
        extra = [*([] if other is None else [other]), *([None] if null else [])]
        above_size = 0
        for i, (listed, parent) in enumerate(zip(level_keys, parents, strict=True)):
            above_places = above_size + np.arange(len(extra)) if i else np.zeros(len(extra), dtype=np.int64)
            level_keys[i] = pa.concat_arrays([listed, pa.array(extra, type=listed.type)])
            parents[i] = np.concatenate([parent, above_places])
            above_size = len(listed)
        return cls(_name(name, "name"), tuple(levels), tuple(level_keys), tuple(parents), null=bool(null), other=other)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Return the number of keys of each level; level 0, the total, has one."""
        return (1, *(len(keys) for keys in self.keys))

    @cached_property
    def children(self) -> tuple[Integers, ...]:
        """Return the number of children of each key, for each level but the finest."""
        return tuple(
            np.bincount(parent, minlength=size) for parent, size in zip(self.parents, self.sizes, strict=False)
        )

    def codes(self, values: Sequence[Any], depth: int = -1) -> Integers:
        """Return the index of each value among the keys of a level, by default the finest; -1 for other values.

        ``depth`` counts levels from 1, the coarsest. Other values get the index of ``other`` if there is such a key.

        >>> Attribute.flat("sex", ["f", "m"]).codes(["m", "x", None])
        array([ 1, -1, -1])
        >>> Attribute.flat("sex", ["f", "m"], null=True, other="other").codes(["m", "x", None])
        array([1, 2, 3])
        """
        import pyarrow.compute as pc

        keys = self.keys[depth if depth < 0 else depth - 1]
        array = pa.array(values, type=keys.type)
        places = np.asarray(pc.fill_null(pc.index_in(array, value_set=keys), -1)).astype(np.int64)
        if self.other is not None:
            places[(places < 0) & np.asarray(array.is_valid())] = len(keys) - 1 - self.null
        return places

    def ancestors(self, depth: int, above: int) -> Integers:
        """Return the ancestor at level ``above`` of each key of level ``depth``, as an index.

        >>> places = {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}
        >>> Attribute.nested("geography", ["state", "county"], places).ancestors(2, 1)
        array([0, 0, 1])
        """
        places = np.arange(self.sizes[depth])
        for step in range(depth, above, -1):
            places = self.parents[step - 1][places]
        return places


@dataclass(frozen=True, eq=False)
class Domain:
    """The attributes from which tables are made.

    >>> domain = Domain([Attribute.flat("sex", ["f", "m"]), Attribute.flat("region", ["n", "s", "w"])])
    >>> domain.size((1, 1)), domain.names((1, 0))
    (6, ('sex',))
    """

    attributes: tuple[Attribute, ...]

    def __init__(self, attributes: Iterable[Attribute]) -> None:
        """Refuse a domain without attributes, and level names that occur twice."""
        object.__setattr__(self, "attributes", tuple(attributes))
        if not self.attributes or not all(isinstance(attribute, Attribute) for attribute in self.attributes):
            raise WrongType(
                "attributes",
                "attributes",
                "none, or objects of other types",
                "pass [Attribute.flat('sex', ['f', 'm'])]",
            )
        names = [level for attribute in self.attributes for level in attribute.level_names]
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise InvalidArgument("attributes", "different names of all levels", repeated[0], "rename one of them")

    def levels(self, table: Sequence[str]) -> Levels:
        """Return the level of each attribute (0: not in the table) from the names of a table's levels.

        >>> Domain([Attribute.flat("sex", ["f", "m"])]).levels(["sex"])
        (1,)
        """
        if isinstance(table, str) or not isinstance(table, Sequence):
            raise WrongType("table", "a list of names", type(table).__name__, "pass ('state', 'sex')")
        result = [0] * len(self.attributes)
        for name in table:
            for i, attribute in enumerate(self.attributes):
                if name in attribute.level_names:
                    result[i] = max(result[i], 1 + attribute.level_names.index(name))
                    break
            else:
                known = [level for attribute in self.attributes for level in attribute.level_names]
                fix = closest(str(name), known)
                raise InvalidArgument("table", f"names among {', '.join(known)}", repr(name), fix)
        return tuple(result)

    def axes(self, names: Sequence[str]) -> list[int]:
        """Return the indices of the attributes of these levels, in the order of the names.

        >>> Domain([Attribute.flat("sex", ["f", "m"]), Attribute.flat("region", ["n"])]).axes(["region", "sex"])
        [1, 0]
        """
        place = {level: i for i, attribute in enumerate(self.attributes) for level in attribute.level_names}
        return [*dict.fromkeys(place[name] for name in names)]

    def names(self, levels: Levels) -> tuple[str, ...]:
        """Return the names of a table's levels."""
        pairs = zip(self.attributes, levels, strict=True)
        return tuple(attribute.level_names[level - 1] for attribute, level in pairs if level)

    def shape(self, levels: Levels) -> tuple[int, ...]:
        """Return the number of keys of each attribute at its level in a table; 1 for attributes not in the table."""
        return tuple(attribute.sizes[level] for attribute, level in zip(self.attributes, levels, strict=True))

    def size(self, levels: Levels) -> int:
        """Return the number of cells of a table."""
        return math.prod(self.shape(levels))

    def checked_counts(self, levels: Levels, counts: Any) -> Integers:
        """Return the counts of a table as 64-bit integers, with an axis for each attribute of the domain; refuse
        fractions, and a wrong number of counts."""
        array = np.asarray(counts)
        if array.dtype.kind not in "iu" or array.size != self.size(levels):
            raise InvalidArgument(
                f"counts of {' × '.join(self.names(levels)) or 'the total'}",
                f"{self.size(levels):,} whole numbers",
                f"{array.size:,} of type {array.dtype}",
                "pass one whole number for each cell",
            )
        return array.astype(np.int64, copy=False).reshape(self.shape(levels))

    def check_size(self, levels: Levels, at_most: int = MAX_CELLS) -> None:
        """Refuse a table that has too many cells.

        >>> Domain([Attribute.flat("i", range(2000)), Attribute.flat("j", range(2000))]).check_size((1, 1), 10**6)
        Traceback (most recent call last):
        ...
        dither.InvalidArgument: table i × j: expected at most 1,000,000 cells, got 4,000,000. Fix: ask for tables over
        fewer attributes or coarser levels, or for synthetic records.
        """
        if self.size(levels) > at_most:
            raise InvalidArgument(
                f"table {' × '.join(self.names(levels))}",
                f"at most {at_most:,} cells",
                f"{self.size(levels):,}",
                "ask for tables over fewer attributes or coarser levels, or for synthetic records",
            )


def finest(tables: Iterable[Levels]) -> Levels:
    """Return the coarsest table of which all these tables are margins: the largest level of each attribute."""
    return tuple(max(levels) for levels in zip(*tables, strict=True))


def common_margin(first: Levels, second: Levels) -> Levels:
    """Return the finest table that is a margin of both tables: the smaller level of each attribute.

    >>> common_margin((1, 0, 2), (2, 1, 1))
    (1, 0, 1)
    """
    return tuple(map(min, first, second))


def contains(table: Levels, margin: Levels) -> bool:
    """Return whether ``margin`` is a margin of ``table``: none of its levels is finer."""
    return all(coarse <= fine for fine, coarse in zip(table, margin, strict=True))


def _name(value: object, what: str) -> str:
    """Return ``value`` if it is a nonempty text; refuse it otherwise. ``what`` names it in the error."""
    if not isinstance(value, str) or not value:
        raise WrongType(what, "a name", type(value).__name__, "pass a text such as 'state'")
    return value


def _encode(name: str, levels: Sequence[str], lookup: Mapping[str, Sequence[Any]]) -> tuple[list[Integers], list[Any]]:
    """Return the keys of each level in a lookup as codes in order of appearance, and the dictionary of the codes.

    ``name`` is the attribute, ``levels`` are its levels, and ``lookup`` has a column of keys for each. Both lists of
    the result have an entry for each level. NULLs and columns of different lengths are refused.
    """
    codes, dictionaries = [], []
    missing = [level for level in levels if level not in lookup]
    if missing:
        raise InvalidArgument(f"lookup of {name}", f"a column {missing[0]}", "none", "give one column for each level")
    for level in levels:
        encoded = pa.array(lookup[level]).dictionary_encode()
        if encoded.null_count:
            raise InvalidArgument(
                f"lookup of {name}",
                f"a {level} for every place",
                f"none for {places_without(levels, level, lookup)}",
                f"complete the column {level}, or leave these places out of the domain",
            )
        codes.append(np.asarray(encoded.indices).astype(np.int64))
        dictionaries.append(encoded.dictionary)
    if len({len(code) for code in codes}) != 1 or not len(codes[0]):
        raise InvalidArgument(
            f"lookup of {name}",
            "columns of one length, at least 1",
            "empty columns, or columns of several lengths",
            "give one row for each place",
        )
    return codes, dictionaries


def _check_other(name: str, level: str, listed: Any, other: Any | None) -> None:
    """Refuse a key for other values that is among the listed keys, or that has a different type.

    ``listed`` are the keys of the ``level`` of the attribute ``name``, as an Arrow array; ``other`` is None where there
    is no such key.
    """
    if other is None:
        return
    try:
        of_one_kind = pa.array([other]).type == listed.type or pa.array([other], type=listed.type)[0].as_py() == other
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        of_one_kind = False
    if not of_one_kind or other in listed.to_pylist():
        raise InvalidArgument(
            f"other of {name}",
            f"a key of the kind of the keys of {level} ({listed.type}) that is none of them",
            repr(other),
            "pass a different key, such as 'other' among texts or -1 among numbers",
        )


def _check_required_keys(name: str, level: str, dictionary: Any, required: Sequence[Any] | None) -> None:
    """Refuse a lookup that lacks one of the required keys of a level.

    ``dictionary`` has the keys of the ``level`` in the lookup, as an Arrow array, and ``required`` those that the card
    lists (None: the card lists none).
    """
    if required is None:
        return
    present = {*dictionary.to_pylist()}
    missing = [key for key in required if key not in present]
    if missing:
        raise InvalidArgument(
            f"lookup of {name}",
            f"every {level} of the domain",
            f"none for {first_few([repr(key) for key in missing])}",
            f"add a row for each of them, or leave them out of the keys of {level}",
        )
