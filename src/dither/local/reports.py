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

What a server says: estimated shares of the categories, with their errors.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.comparison import ComparedByValue
from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.inference.measured import normal_quantile
from dither.present.text import printable, table, with_error
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
    """Return the class name of the protocol with this number in the byte format; ``"protocol 99"`` if there is none."""
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


Floats = NDArray[np.float64]


_MOST_SHOWN = 20


def reports_line(n: int, seeded: bool) -> str:
    """Return the line under a table of estimates: the number of reports, and a warning if some were seeded."""
    return f"{n:,} reports; ± with 95 % confidence" + ("; from a seeded source: not private" if seeded else "")


def half_width(standard_error: Floats | float, slope: Floats | float, step: Floats | float, confidence: float) -> Any:
    """Return half the width of a score interval with a continuity correction, around an unbiased estimate from reports.

    A normal interval takes the estimated variance v for the true one and the estimate for continuous. Neither holds
    with few reports: possibly none of them supports a category that some people have. The interval has every value f
    whose distance from the estimate is at most ``h + z sqrt(variance at f + h)`` (Wilson 1927). z is the normal
    quantile of ``confidence``, the variance changes with f by at most ``slope``, and h is half of ``step``, the most
    that one report can change the estimate. Solved for f, with ``c = z^2 slope / 2``, the distance is ``h + c +
    sqrt(c^2 + z^2 (v + h slope))``. Slope and step fall as 1/n, so with many reports the interval is the normal one.
    """
    z, h = normal_quantile(confidence), step / 2
    c = z * z * slope / 2
    return h + c + np.sqrt(c * c + z * z * (np.square(standard_error) + h * slope))


@dataclass(frozen=True, eq=False)
class LocalFrequencies(ComparedByValue):
    """Estimated shares of categories among n people who reported; each is unbiased, so a small one may be negative.

    >>> import dither as dp
    >>> p = dp.local.SubsetSelection(categories=["yes", "no"], epsilon=20)
    >>> estimate = p.estimate(p.privatize(["yes"] * 3 + ["no"]))
    >>> round(estimate["yes"], 3), estimate.counts.round(3)
    (0.75, array([3., 1.]))
    """

    categories: tuple[Any, ...]
    shares: Floats
    standard_error: Floats
    n: int
    seeded: bool = False
    """Whether a report was drawn from a seeded source, which is not private."""
    slope: float = 0.0
    """By how much the variance of a share changes with the share."""
    step: float = 0.0
    """What one report can change a share by."""

    @property
    def counts(self) -> Floats:
        """Return the estimated numbers of people."""
        return self.shares * self.n

    def error(self, confidence: float = 0.95) -> Floats:
        """Return half-widths of confidence intervals for the shares among the people who reported.

        They are normal ones with many reports, and wider with few (:func:`half_width`).
        """
        widths: Floats = half_width(self.standard_error, self.slope, self.step, confidence)
        return widths

    def __getitem__(self, category: Any) -> float:
        """Return the estimated share of one category."""
        if category not in self.categories:
            raise InvalidArgument(
                "category", "one that was estimated", "one that was not", "ask the server to estimate it"
            )
        return float(self.shares[self.categories.index(category)])

    def __str__(self) -> str:
        """Format a table: the share of each category with its ±, the most frequent first.

        >>> shares = np.array([0.25, 0.75])
        >>> print(LocalFrequencies(("no", "yes"), shares, np.array([0.021, 0.021]), 400))
        category  share     ±
        ────────  ─────  ────
        yes        0.75  0.04
        no         0.25  0.04
        400 reports; ± with 95 % confidence
        """
        order = np.argsort(-self.shares, kind="stable")[:_MOST_SHOWN].tolist()
        errors = self.error().tolist()
        cells = [[printable(str(self.categories[i])), *with_error(float(self.shares[i]), errors[i])] for i in order]
        lines = table(["category", "share", "±"], cells, [False, True, True])
        if len(self.categories) > _MOST_SHOWN:
            lines.append(f"{len(self.categories):,} categories, the {_MOST_SHOWN} most frequent shown: dicts() has all")
        return "\n".join([*lines, reports_line(self.n, self.seeded)])

    def dicts(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """Return one dictionary for each category: its name, its share and the ± of the share.

        >>> import dither as dp
        >>> p = dp.local.HadamardResponse(categories=2, epsilon=20)
        >>> [sorted(row) for row in p.estimate(p.privatize([0, 1])).dicts()]
        [['category', 'error', 'share'], ['category', 'error', 'share']]
        """
        rows = zip(self.categories, self.shares.tolist(), self.error(confidence).tolist(), strict=True)
        return [{"category": category, "share": share, "error": error} for category, share, error in rows]

    def consistent(self) -> LocalFrequencies:
        """Return the nearest shares that are at least 0 and add up to 1, for all categories: no longer unbiased, and
        closer to the truth where most categories are rare (Wang et al. 2020, "norm-sub").

        >>> import dither as dp
        >>> p = dp.local.SubsetSelection(categories=4, epsilon=1)
        >>> bool(abs(p.estimate(p.privatize([0, 1, 2, 3] * 10)).consistent().shares.sum() - 1) < 1e-9)
        True
        """
        if not self.shares.size:
            raise InvalidArgument("categories", "all of them", "none", "estimate all categories first")
        ordered = np.sort(self.shares)[::-1]
        excess = (np.cumsum(ordered) - 1) / np.arange(1, ordered.size + 1)
        shift = excess[int(np.flatnonzero(ordered > excess)[-1])]
        shares = np.maximum(self.shares - shift, 0.0)
        return replace(self, shares=shares)
