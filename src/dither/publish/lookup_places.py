"""Which places of a lookup are wrong, by name: a lookup is public, so that a refusal may show what is in it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from dither.errors import InvalidArgument


def places_without(levels: Sequence[str], level: str, lookup: Mapping[str, Sequence[Any]]) -> str:
    """The finest places that have no place at a level, the first of them by name.

    >>> places_without(["state", "county"], "state", {"state": ["A", None], "county": ["A1", "B1"]})
    "'B1'"
    """
    finest_places = pa.array(lookup[levels[-1]]).to_pylist()
    parents = pa.array(lookup[level]).to_pylist()
    places = [place for place, parent in zip(finest_places, parents, strict=False) if parent is None]
    if level == levels[-1]:
        return f"{len(places)} row{'s' if len(places) != 1 else ''}"
    return some([repr(place) for place in places])


def some(shown: Sequence[str], most: int = 5) -> str:
    """The first of several, and how many more there are.

    >>> some(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(shown) - most:,} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def misplaced(name: str, levels: Sequence[str], level: str, lookup: Mapping[str, Sequence[Any]]) -> InvalidArgument:
    """The refusal of a place that lies in several, by name; or of levels from the finest to the coarsest.

    >>> str(misplaced("geo", ["state", "county"], "county", {"state": ["A", "B"], "county": ["X", "X"]})).split(". ")[0]
    "lookup of geo: expected every county in one place of the level above, got 'X' in 'A' and 'B'"
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
