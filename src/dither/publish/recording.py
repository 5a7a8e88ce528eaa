"""The bytes that a ledger records of a publication or a synthesis: compact, versioned, and free of executable code.

Contrasts are whole numbers divided by a public power of two, their multiplier. Their bytes are sorted by significance
before they are compressed: most of the upper ones are alike. Everything that is published follows from these bytes and
from the plan, the random rounding of whole counts too, which is seeded with the noisy numbers.

>>> stored = encode_parts({(1,): np.array([3.25, -7.5])}, {(1,): 4}, {(1,): 2.0})
>>> decode_parts(stored, {(1,): (2,)})
RecordedParts(parts={(1,): array([ 3.25, -7.5 ])}, variances={(1,): 2.0})

What a release of synthetic records leaves behind, as bytes: noisy tables, and the law that records are drawn from.

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
from typing import Any, NamedTuple

import numpy as np

from dither.errors import LedgerError
from dither.ledger.recorded import decode, encode
from dither.publish.domain import Levels
from dither.publish.graphical import Clique, CliqueLaws, Flags, JunctionTree, cells, possible_cells
from dither.publish.residuals import Floats
from dither.publish.selection import Round

VERSION = 1
_KIND = "noisy contrasts"
_LARGEST = float((1 << 63) - 1024)  # the largest double that 64 bits hold as a whole number


class RecordedParts(NamedTuple):
    """The noisy contrasts of each residual, and the variance of their noise."""

    parts: dict[Levels, Floats]
    variances: dict[Levels, float]


def encode_parts(
    parts: Mapping[Levels, Floats], multipliers: Mapping[Levels, int], variances: Mapping[Levels, float]
) -> bytes:
    """Encode noisy contrasts as bytes, which :func:`dither.ledger.recorded.decode` can read.

    ``parts`` has the contrasts of each residual, which are whole multiples of 1 / ``multipliers``; ``variances`` has
    the variance of their noise. The multiples are zigzag-coded (0, -1, 1, -2, ... become 0, 1, 2, 3, ...) and stored
    byte plane by byte plane, which compresses well.
    """
    items = []
    for levels, values in parts.items():
        multiplier = multipliers[levels]
        steps = np.clip(np.rint(np.ravel(values) * multiplier), -_LARGEST, _LARGEST).astype("<i8")
        items.append([list(levels), multiplier, variances[levels], _packed([_zigzag(steps)], "<u8")])
    return encode({"is": _KIND, "version": VERSION, "parts": items})


def decode_parts(stored: bytes, shapes: Mapping[Levels, tuple[int, ...]]) -> RecordedParts:
    """Return the noisy contrasts and their variances from the bytes of :func:`encode_parts`.

    ``shapes`` has the shape of the contrasts of each expected residual; records with others are refused.
    """
    content = decode(stored)
    result = RecordedParts({}, {})
    try:
        if content["is"] != _KIND or content["version"] != VERSION:
            raise ValueError("another kind or version")
        for names, multiplier, variance, compressed in content["parts"]:
            levels = tuple(names)
            codes = _unpacked(compressed, "<u8", int(np.prod(shapes[levels], dtype=np.int64)))
            result.parts[levels] = _unzigzag(codes).reshape(shapes[levels]) / multiplier
            result.variances[levels] = float(variance)
        if result.parts.keys() != shapes.keys():
            raise ValueError("other parts")
    except (ValueError, KeyError, TypeError, zlib.error):
        fix = "restore the ledger from a copy, or release anew with again=True"
        raise LedgerError(
            "ledger", "the noisy contrasts of this plan, as they were written", "a different record", fix
        ) from None
    return result


def _zigzag(steps: Any) -> Any:
    """Return the zigzag codes of 64-bit integers: 0, -1, 1, -2, 2 become 0, 1, 2, 3, 4."""
    return ((steps << 1) ^ (steps >> 63)).view("<u8")


def _unzigzag(codes: Any) -> Any:
    """Return the integers of zigzag codes: 0, 1, 2, 3, 4 become 0, -1, 1, -2, 2."""
    return (codes >> np.uint64(1)).astype(np.int64) ^ -(codes & np.uint64(1)).astype(np.int64)


def _decompressed(data: bytes, size: int) -> bytes:
    """Return zlib-compressed data decompressed to exactly ``size`` bytes; refuse any other size, without allocating
    more than ``size`` bytes."""
    machine = zlib.decompressobj()
    result = machine.decompress(data, size)
    if len(result) != size or (not machine.eof and machine.decompress(machine.unconsumed_tail, 1)):
        raise ValueError("another size")
    return result


_SYNTHESIS = "synthesis"


def encode_synthesis(rounds: Sequence[Round], laws: CliqueLaws) -> bytes:
    """Encode the measurements of a synthesis, and the law that follows from them, as bytes."""
    return encode(
        {
            "is": _SYNTHESIS,
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


def decode_synthesis(
    stored: bytes, sizes: tuple[int, ...], possible: Callable[[Sequence[Round]], Mapping[Clique, Flags]]
) -> tuple[tuple[Round, ...], CliqueLaws]:
    """Return the measurements and the distribution of records of a synthesis, from the bytes of
    :func:`encode_synthesis`.

    ``sizes`` has the number of keys of each attribute; records with others are refused. ``possible`` returns which
    cells of some tables are possible, given the measurements.
    """
    content = decode(stored)
    try:
        if content["is"] != _SYNTHESIS or content["version"] != VERSION or tuple(content["sizes"]) != sizes:
            raise ValueError("another kind, version or domain")
        tables = [tuple(table) for table, _ in content["rounds"]]
        counts = _unpacked_tables(content["counts"], "<i8", tables, sizes)
        rounds = tuple(
            Round(table, float(sigma), values.astype(np.int64))
            for table, (_, sigma), values in zip(tables, content["rounds"], counts, strict=True)
        )
        tree = JunctionTree(tuple(map(tuple, content["cliques"])), tuple(content["parents"]))
        laws = _unpacked_tables(content["laws"], "<f4", tree.cliques, sizes)
        expected = [law.astype(np.float64) for law in laws]
        return rounds, CliqueLaws(
            sizes, tree, possible_cells(sizes, tree, possible(rounds)), expected, float(content["total"])
        )
    except (ValueError, KeyError, TypeError, IndexError, zlib.error):
        fix = "restore the ledger from a copy, or release anew with again=True"
        raise LedgerError(
            "ledger", "a synthesis of these columns, as it was written", "a different record", fix
        ) from None


def _packed(arrays: Sequence[Any], kind: str) -> bytes:
    """Return the numbers of all arrays, as NumPy type ``kind``, compressed by zlib with all first bytes before all
    second ones and so on: bytes of one significance are alike, and compress well together."""
    numbers = np.concatenate([np.ravel(array).astype(kind) for array in arrays])
    planes = numbers.view(np.uint8).reshape(len(numbers), numbers.itemsize).T
    return zlib.compress(np.ascontiguousarray(planes).tobytes(), 6)


def _unpacked(data: bytes, kind: str, size: int) -> Any:
    """Return the ``size`` numbers of NumPy type ``kind`` that :func:`_packed` compressed."""
    width = np.dtype(kind).itemsize
    planes = np.frombuffer(_decompressed(data, width * size), dtype=np.uint8).reshape(width, size)
    return np.ascontiguousarray(planes.T).view(kind).ravel()


def _unpacked_tables(data: bytes, kind: str, tables: Sequence[Clique], sizes: Sequence[int]) -> Iterator[Any]:
    """Yield the arrays that :func:`_packed` compressed, one for each table.

    ``kind`` is the NumPy type of a number, ``tables`` are the attributes of each table, and ``sizes`` has the number of
    keys of each attribute, which gives the shapes.
    """
    counts = [cells(table, sizes) for table in tables]
    numbers = _unpacked(data, kind, sum(counts))
    for table, part in zip(tables, np.split(numbers, np.cumsum(counts)[:-1]), strict=True):
        yield part.reshape([sizes[attribute] for attribute in table])
