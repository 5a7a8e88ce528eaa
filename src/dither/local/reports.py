"""Reports and their byte format, version 1.

A batch of reports is a header of 56 bytes and n records of equal width. Integers are little-endian::

    offset  size  content
         0     4  the letters DLRP
         4     1  version of the format: 1
         5     1  number of the protocol
         6     2  zero
         8     8  epsilon, an IEEE 754 double, for error messages
        16     8  fingerprint of the parameters: the first 8 bytes of SHA-256 of their canonical text (UTF-8)
        24    16  id of the batch: random bytes that the client draws, the same when the batch is sent again
        40     8  n, the number of records
        48     4  width of a record in bytes
        52     4  CRC-32 (as in zlib) of bytes 0 to 51 followed by all records
        56     …  records

A phone sends a batch of one record. What a record holds is in the docstring of each protocol; the canonical text of the
parameters is :attr:`~dither.local.protocol.LocalProtocol.canonical_parameters`. ``tests/local/vectors.json`` has test
vectors for clients in other languages.

The id is drawn from the same secure source as the report and independent of it. It lets a server refuse a batch that
arrives twice; it cannot show that one person sent two batches, which only a budget on the device prevents.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.comparison import ComparedByValue
from dither.errors import InvalidData, WrongType
from dither.randomness import Source

Records = NDArray[np.uint8]

MAGIC = b"DLRP"
VERSION = 1
_HEADER = struct.Struct("<4sBBHd8s16sQI")
HEADER_BYTES = _HEADER.size + 4
WIRE_CODES = {
    "RandomizedResponse": 1,
    "SubsetSelection": 2,
    "UnaryEncoding": 3,
    "LocalHashing": 4,
    "HadamardResponse": 5,
    "ProjectiveGeometryResponse": 6,
    "CountMeanSketch": 7,
    "HadamardCountMeanSketch": 8,
    "Mean": 16,
    "Distribution": 17,
    "PaddedSets": 18,
}
"""The numbers of the protocols in the byte format. A number is never given to another protocol."""


def protocol_name(code: int) -> str:
    """Return the name of the protocol with this number."""
    return next((name for name, number in WIRE_CODES.items() if number == code), f"protocol {code}")


@dataclass(frozen=True, eq=False)
class Reports(ComparedByValue):
    """A batch of privatized reports, which may be sent, stored and published.

    >>> import dither as dp
    >>> p = dp.local.SubsetSelection(categories=16, epsilon=1)
    >>> reports = p.privatize([3, 1, 4])
    >>> reports
    Reports(3 of SubsetSelection, 2 bytes each)
    >>> Reports.from_bytes(reports.to_bytes()) == reports
    True
    """

    wire_code: int
    epsilon: float
    fingerprint: bytes
    records: Records = field(repr=False)
    batch: bytes
    seeded: bool = field(default=False, compare=False)
    """Whether the reports were drawn from a seeded source, which is not private; not part of the byte format."""

    @classmethod
    def of(cls, protocol: Any, records: Records, source: Source) -> Reports:
        """Return the records that a protocol has drawn as a batch with a random id."""
        batch = source.word().to_bytes(8, "little") + source.word().to_bytes(8, "little")
        records.flags.writeable = False
        epsilon = protocol.epsilon_on_the_wire
        return cls(protocol.wire_code, epsilon, protocol.fingerprint, records, batch, not source.private)

    def __len__(self) -> int:
        return int(self.records.shape[0])

    @property
    def nbytes(self) -> int:
        """Return the size of the records in bytes."""
        return int(self.records.nbytes)

    def to_bytes(self) -> bytes:
        """Return the batch in the byte format of this module."""
        header = _HEADER.pack(
            MAGIC, VERSION, self.wire_code, 0, self.epsilon, self.fingerprint, self.batch, *self.records.shape
        )
        body = np.ascontiguousarray(self.records).tobytes()
        return header + struct.pack("<I", zlib.crc32(body, zlib.crc32(header))) + body

    @classmethod
    def from_bytes(cls, data: Any) -> Reports:
        """Read one batch; bytes that are not exactly one batch of this version are refused.

        >>> Reports.from_bytes(b"DLRP")
        Traceback (most recent call last):
        dither.InvalidData: reports: expected a header of 56 bytes, got 4 bytes. Fix: send the batch again; nothing of
        it was added.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise WrongType("reports", "Reports or their bytes", type(data).__name__, "pass what a client sent")
        view = memoryview(data).cast("B")
        again = "send the batch again; nothing of it was added"
        if len(view) < HEADER_BYTES:
            raise InvalidData("reports", f"a header of {HEADER_BYTES} bytes", f"{len(view)} bytes", again)
        magic, version, code, zero, epsilon, fingerprint, batch, n, width = _HEADER.unpack_from(view)
        if magic != MAGIC:
            raise InvalidData(
                "reports", "the letters DLRP first", "bytes of a different format", "pass what a client sent"
            )
        if version != VERSION or zero:
            raise InvalidData(
                "reports", f"version {VERSION} of the format", f"version {version}", "update client or server"
            )
        if width == 0 or len(view) != HEADER_BYTES + n * width:
            expected = f"{n} records of {width} bytes after the header"
            raise InvalidData("reports", expected, f"{len(view) - HEADER_BYTES} bytes", again)
        [checksum] = struct.unpack_from("<I", view, _HEADER.size)
        if zlib.crc32(view[HEADER_BYTES:], zlib.crc32(view[: _HEADER.size])) != checksum:
            raise InvalidData("reports", "bytes that match their checksum", "damaged bytes", again)
        records = np.frombuffer(view, dtype=np.uint8, offset=HEADER_BYTES).reshape(n, width)
        return cls(code, epsilon, fingerprint, records, batch)

    def __repr__(self) -> str:
        notice = " (seeded, not private)" if self.seeded else ""
        return f"Reports({len(self)} of {protocol_name(self.wire_code)}, {self.records.shape[1]} bytes each){notice}"
