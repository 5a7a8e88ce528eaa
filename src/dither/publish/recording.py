"""Noisy contrasts as the bytes that a ledger records: compact, versioned, and without anything that could run.

Contrasts are whole numbers divided by a public power of two, their multiplier. Their bytes are sorted by significance
before they are compressed: most of the upper ones are alike. Everything that is published follows from these bytes and
from the plan, the random rounding of whole counts too, which is seeded with the noisy numbers.

>>> stored = encode_parts({(1,): np.array([3.25, -7.5])}, {(1,): 4}, {(1,): 2.0})
>>> decode_parts(stored, {(1,): (2,)})
RecordedParts(parts={(1,): array([ 3.25, -7.5 ])}, variances={(1,): 2.0})
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dither.errors import LedgerError
from dither.ledger.recorded import decode, encode
from dither.publish.contrasts import Floats
from dither.publish.domain import Levels

VERSION = 1
_KIND = "noisy contrasts"
_LARGEST = float((1 << 63) - 1024)  # the largest double that 64 bits hold as a whole number


class RecordedParts(NamedTuple):
    """Noisy contrasts of residuals, and their variances."""

    parts: dict[Levels, Floats]
    variances: dict[Levels, float]


def encode_parts(
    parts: Mapping[Levels, Floats], multipliers: Mapping[Levels, int], variances: Mapping[Levels, float]
) -> bytes:
    """Noisy contrasts as bytes, which :func:`dither.ledger.recorded.decode` can read.

    >>> len(encode_parts({(1,): np.zeros(1_000_000)}, {(1,): 1}, {(1,): 1.0})) < 20_000
    True
    """
    items = []
    for levels, values in parts.items():
        multiplier = multipliers[levels]
        steps = np.clip(np.rint(np.ravel(values) * multiplier), -_LARGEST, _LARGEST).astype("<i8")
        planes = np.ascontiguousarray(_zigzag(steps).view(np.uint8).reshape(-1, 8).T)
        items.append([list(levels), multiplier, variances[levels], zlib.compress(planes.tobytes(), 6)])
    return encode({"is": _KIND, "version": VERSION, "parts": items})


def decode_parts(stored: bytes, shapes: Mapping[Levels, tuple[int, ...]]) -> RecordedParts:
    """The noisy contrasts in bytes that were recorded, refused where they are not of these shapes."""
    content = decode(stored)
    result = RecordedParts({}, {})
    try:
        if content["is"] != _KIND or content["version"] != VERSION:
            raise ValueError("another kind or version")
        for names, multiplier, variance, compressed in content["parts"]:
            levels = tuple(names)
            size = int(np.prod(shapes[levels], dtype=np.int64))
            planes = np.frombuffer(_decompressed(compressed, 8 * size), dtype=np.uint8).reshape(8, size)
            steps = _unzigzag(np.ascontiguousarray(planes.T).view("<u8").ravel())
            result.parts[levels] = steps.reshape(shapes[levels]) / multiplier
            result.variances[levels] = float(variance)
        if result.parts.keys() != shapes.keys():
            raise ValueError("other parts")
    except (ValueError, KeyError, TypeError, zlib.error):
        fix = "restore the ledger from a copy, or release anew with again=True"
        raise LedgerError("ledger", "the noisy contrasts of this plan, as they were written", "others", fix) from None
    return result


def _zigzag(steps: Any) -> Any:
    """Whole numbers of both signs as unsigned ones that are small where those are."""
    return ((steps << 1) ^ (steps >> 63)).view("<u8")


def _unzigzag(codes: Any) -> Any:
    return (codes >> np.uint64(1)).astype(np.int64) ^ -(codes & np.uint64(1)).astype(np.int64)


def _decompressed(data: bytes, size: int) -> bytes:
    """At most ``size`` bytes, whatever the data say."""
    machine = zlib.decompressobj()
    result = machine.decompress(data, size)
    if len(result) != size or (not machine.eof and machine.decompress(machine.unconsumed_tail, 1)):
        raise ValueError("another size")
    return result
