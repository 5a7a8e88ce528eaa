"""What a release of synthetic records leaves behind, as bytes: noisy tables, and the law that records are drawn from.

*Format*, version 1, as :mod:`dither.ledger.recorded` writes it: ``sizes`` (keys of each attribute), ``total`` (records
of the model), ``rounds`` (for each measurement its attributes and the deviation of its noise), the junction tree,
``cliques`` and ``parents``; ``counts``, the noisy counts of all rounds as whole numbers of 64 bits, and ``laws``, the
expected counts of all cliques as numbers of 32 bits, in the order of their keys, little-endian. Of both, the first
bytes of all numbers stand before all second ones, and so on, compressed by zlib. Records are not part of it: they are a
function of these bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dither.errors import LedgerError
from dither.ledger import recorded
from dither.publish.clique_laws import CliqueLaws, Flags, possible_cells
from dither.publish.junction import Clique, JunctionTree, cells
from dither.publish.selection import Round

VERSION = 1
_KIND = "synthesis"


def encode(rounds: Sequence[Round], laws: CliqueLaws) -> bytes:
    """The bytes of what was measured, and of the law that follows from it.

    >>> from dither.publish.junction import junction_tree
    >>> tree = junction_tree([2], [])
    >>> laws = CliqueLaws((2,), tree, possible_cells([2], tree, {}), [np.array([3.0, 1.0])], 4.0)
    >>> rounds, _ = decode(encode([Round((0,), 1.5, np.array([3, 2]))], laws), (2,), lambda rounds: {})
    >>> rounds[0].values
    array([3, 2])
    """
    return recorded.encode(
        {
            "is": _KIND,
            "version": VERSION,
            "sizes": [*laws.sizes],
            "total": laws.total,
            "rounds": [[[*item.table], item.sigma] for item in rounds],
            "cliques": [[*clique] for clique in laws.tree.cliques],
            "parents": [*laws.tree.parents],
            "counts": _packed([item.values for item in rounds], "<i8"),
            "laws": _packed(laws.laws, "<f4"),
        }
    )


def decode(
    stored: bytes, sizes: tuple[int, ...], possible: Callable[[Sequence[Round]], Mapping[Clique, Flags]]
) -> tuple[tuple[Round, ...], CliqueLaws]:
    """The measurements and the law of these bytes, where a domain has these sizes; ``possible`` says which cells of
    some tables are possible, given what was measured.
    """
    content = recorded.decode(stored)
    try:
        if content["is"] != _KIND or content["version"] != VERSION or tuple(content["sizes"]) != sizes:
            raise ValueError("another kind, version or domain")
        tables = [tuple(table) for table, _ in content["rounds"]]
        counts = _unpacked(content["counts"], "<i8", tables, sizes)
        rounds = tuple(
            Round(table, float(sigma), values.astype(np.int64))
            for table, (_, sigma), values in zip(tables, content["rounds"], counts, strict=True)
        )
        tree = JunctionTree(tuple(map(tuple, content["cliques"])), tuple(content["parents"]))
        laws = _unpacked(content["laws"], "<f4", tree.cliques, sizes)
        expected = [law.astype(np.float64) for law in laws]
        return rounds, CliqueLaws(
            sizes, tree, possible_cells(sizes, tree, possible(rounds)), expected, float(content["total"])
        )
    except (ValueError, KeyError, TypeError, IndexError, zlib.error):
        fix = "restore the ledger from a copy, or release anew with again=True"
        raise LedgerError("ledger", "a synthesis of these columns, as it was written", "another", fix) from None


def _packed(arrays: Sequence[Any], kind: str) -> bytes:
    numbers = np.concatenate([np.ravel(array).astype(kind) for array in arrays])
    planes = numbers.view(np.uint8).reshape(len(numbers), -1).T
    return zlib.compress(np.ascontiguousarray(planes).tobytes(), 6)


def _unpacked(data: bytes, kind: str, tables: Sequence[Clique], sizes: Sequence[int]) -> Iterator[Any]:
    counts = [cells(table, sizes) for table in tables]
    planes = np.frombuffer(zlib.decompress(data), dtype=np.uint8).reshape(-1, sum(counts))
    numbers = np.ascontiguousarray(planes.T).view(kind).ravel()
    for table, part in zip(tables, np.split(numbers, np.cumsum(counts)[:-1]), strict=True):
        yield part.reshape([sizes[attribute] for attribute in table])
