"""Records that hold one or more unsigned integers, each in the fewest of 1, 2, 4 or 8 bytes, little-endian."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidData, message
from dither.local.reports import Records


def index_bytes(high: int) -> int:
    """The number of bytes for an integer below ``high``.

    >>> [index_bytes(high) for high in (256, 257, 65536, 65537, 2**33)]
    [1, 2, 2, 4, 8]
    """
    bits = (high - 1).bit_length()
    return next(size for size in (1, 2, 4, 8) if bits <= 8 * size)


def pack_indices(indices: NDArray[Any], high: int) -> Records:
    """A record for each integer below ``high``.

    >>> pack_indices(np.array([1, 258]), 1000).tolist()
    [[1, 0], [2, 1]]
    """
    size = index_bytes(high)
    return np.ascontiguousarray(indices.astype(f"<u{size}")).view(np.uint8).reshape(-1, size)


def unpack_indices(records: Records, high: int) -> NDArray[Any]:
    """The integer of each record.

    >>> unpack_indices(pack_indices(np.array([1, 258]), 1000), 1000).tolist()
    [1, 258]
    """
    return np.ascontiguousarray(records).view(f"<u{index_bytes(high)}").reshape(-1)


def refuse_index(indices: NDArray[Any], high: int) -> None:
    """Refuse records in which an integer is not below ``high``."""
    if indices.size and int(indices.max()) >= high:
        raise InvalidData(
            message("reports", f"records below {high}", "one that no client sends", "refuse this client's reports")
        )


__all__ = ["index_bytes", "pack_indices", "refuse_index", "unpack_indices"]
