"""Records that hold an unsigned integer in the fewest of 1, 2, 4 or 8 bytes, little-endian, and what servers count."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidData
from dither.local.protocol import LocalProtocol, Result, Tally
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
    return np.ascontiguousarray(records.view(f"<u{index_bytes(high)}")[:, 0])


def refuse_index(indices: NDArray[Any], high: int) -> None:
    """Refuse records in which an integer is not below ``high``."""
    if indices.size and int(indices.max()) >= high:
        raise InvalidData(
            "reports", f"records below {high}", "one that no client sends", "refuse this client's reports"
        )


class IndexProtocol(LocalProtocol[Result]):
    """Base of the protocols whose reports are numbers; a server counts how often each was sent."""

    @property
    @abstractmethod
    def report_count(self) -> int:
        """The number of possible reports, which are numbered from 0 on."""

    @property
    def record_bytes(self) -> int:
        """The number of bytes of each record."""
        return index_bytes(self.report_count)

    @property
    def report_bits(self) -> int:
        """The number of bits that the number of a report needs."""
        return (self.report_count - 1).bit_length()

    def pack(self, reports: NDArray[Any]) -> Records:
        """The records of these reports."""
        return pack_indices(reports, self.report_count)

    def unpack(self, records: Records) -> NDArray[Any]:
        """The reports of these records."""
        return unpack_indices(records, self.report_count)

    def check(self, records: Records) -> None:
        """Refuse numbers that are no report."""
        refuse_index(self.unpack(records), self.report_count)

    def new_tally(self) -> Tally:
        """How often each report was sent."""
        return np.zeros(self.report_count, dtype=np.int64)

    def tally(self, tally: Tally, records: Records) -> None:
        """Count the reports."""
        tally += np.bincount(self.unpack(records), minlength=tally.size)
