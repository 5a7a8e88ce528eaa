"""Which filter a plan uses: buffers that are optimized for the horizon and the schema, bands, or the tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from dither.errors import InvalidArgument
from dither.stream.bands import Bands
from dither.stream.buffers import Buffers
from dither.stream.epochs import FIRST, epoch_buffers
from dither.stream.filters import Filter
from dither.stream.optimize import buffers_for
from dither.stream.tree import Tree

Factorization = Literal["buffers", "square root", "banded", "tree"]


def known_filter(
    horizon: int,
    kind: str,
    *,
    buffers: int = 5,
    bands: int | None = None,
    participations: int = 1,
    separation: int = 1,
    window: int | None = None,
) -> Filter:
    """The filter for a known number of steps.

    >>> known_filter(8, "tree")
    Tree(length=8)
    """
    if kind == "tree":
        return Tree(horizon)
    if kind == "square root":
        return Bands.square_root(horizon, horizon)
    if kind == "banded":
        return Bands.square_root(horizon, separation if bands is None else bands)
    if kind == "buffers":
        return buffers_for(horizon, buffers, participations, separation, window)
    raise InvalidArgument("factorization", f"one of {', '.join(get_args(Factorization))}", repr(kind), "leave it out")


def epoch_filter(epoch: int, kind: str) -> Filter:
    """The filter of an epoch, where the horizon is not known.

    >>> epoch_filter(1, "tree")
    Tree(length=128)
    """
    if kind == "tree":
        return Tree(FIRST << epoch)
    if kind == "buffers":
        return epoch_buffers(epoch)
    raise InvalidArgument(
        "factorization", "'buffers' or 'tree' where the horizon is not known", repr(kind), "pass a horizon"
    )


def from_record(record: Mapping[str, Any]) -> Filter:
    """The filter that was recorded.

    >>> from_record(Tree(8).record())
    Tree(length=8)
    """
    length = int(record["length"])
    if record["kind"] == "tree":
        return Tree(length)
    if record["kind"] == "bands":
        return Bands(length, tuple(map(int, record["coefficients"])), int(record["bits"]))
    return Buffers(
        length,
        tuple(map(int, record["decays"])),
        tuple(map(int, record["decay_bits"])),
        tuple(map(int, record["weights"])),
        int(record["weight_bits"]),
        int(record["extra_bits"]),
    )
