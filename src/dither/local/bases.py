"""Bases of protocols: what a report supports, the law of a design, and records of one number or of many bits.

*Pure protocols.* A report *supports* a set of categories. In a pure protocol (Wang, Blocki, Li and Jha 2017) a category
is supported with probability p by a report from a person who has it, and with probability q by any other. If a share s
of n reports supports a category, ``(s - q) / (p - q)`` is an unbiased estimate of its share f, with variance ``(f p (1
- p) + (1 - f) q (1 - q)) / (n (p - q)^2)``.

*Designs.* A design gives every category a set of s of the K possible reports. A client draws a report of its category's
set with probability ``s e^epsilon / (s e^epsilon + K - s)``, uniformly, and otherwise one of the others, uniformly. So
every report has one of two probabilities, whose ratio is e^epsilon, and that is the whole proof. If any two sets share
c reports, a report lies in the set of another category with the same probability q: the protocol is pure.

*Records* hold an unsigned integer in the fewest of 1, 2, 4 or 8 bytes, little-endian, or one bit for each category:
bit c % 8 of byte c // 8, the lowest bit first, unused bits 0.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.errors import InvalidData
from dither.exact import Enclosure, divide, exp_neg
from dither.local.protocol import Codes, Floats, FrequencyProtocol, LocalProtocol, Result, Tally
from dither.local.reports import Records


class PureProtocol(FrequencyProtocol):
    """Base of the protocols in which a report supports each category with probability p or q."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Return (p, q): the probabilities that a report supports its sender's category, and any other category."""

    def supporters(self, tally: Tally, n: int, codes: Codes) -> NDArray[np.int64]:
        """Return the number of reports, of ``n``, that support each of the categories ``codes``.

        By default a tally counts them, so that it is read.
        """
        result: NDArray[np.int64] = tally[codes]
        return result

    def variance(self, n: int, share: float = 0.0) -> float:
        """Return the variance of an estimated share among n people: ``(f p (1 - p) + (1 - f) q (1 - q)) / (n (p -
        q)^2)``.
        """
        p, q = self.support
        people = arguments.whole(n, "n")
        return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / ((p - q) ** 2 * people)

    @property
    def report_range(self) -> float:
        """Return ``1 / (p - q)``, since a report either supports a category or does not."""
        p, q = self.support
        return 1 / (p - q)

    def shares(self, tally: Tally, n: int, codes: Codes) -> tuple[Floats, Floats]:
        """Return unbiased shares of the categories, and their standard errors at the estimated shares.

        ``tally`` holds the added-up reports of ``n`` people, and ``codes`` the numbers of the categories asked for. A
        report supports the sender's own category with probability p and any other with probability q, so the share of
        supporting reports is ``q + f (p - q)`` for a share f.
        """
        p, q = self.support
        shares = (self.supporters(tally, n, codes) / n - q) / (p - q)
        likely = np.clip(shares, 0.0, 1.0)
        return shares, np.sqrt((likely * p * (1 - p) + (1 - likely) * q * (1 - q)) / n) / (p - q)


def inside_probability(epsilon: Fraction, size: int, total: int, bits: int) -> Enclosure:
    """Enclose ``s / (s + (K - s) exp(-epsilon))`` in whole multiples of ``2**-bits``, with s = ``size``, K = ``total``.

    It is the probability of a report in the set of s of the K reports that the sender's category prefers.
    """
    low, high = exp_neg(epsilon, bits)
    one, others = size << bits, total - size
    return divide((one, one), (one + others * low, one + others * high), bits)


def inside_float(epsilon: float, size: float, total: float) -> float:
    """Return ``s / (s + (K - s) exp(-epsilon))`` as a float, with s = ``size`` and K = ``total``.

    It is the probability of a report in the set of s of the K reports that the sender's category prefers.
    """
    return size / (size + (total - size) * math.exp(-epsilon))


def design_support(epsilon: float, size: int, total: int, shared: float) -> tuple[float, float]:
    """Return (p, q): the probabilities that a report lies in its sender's set, and in the set of another category.

    p is that of :func:`inside_float`. With c = ``shared`` reports that two sets have in common, ``q = p c / s + (1 - p)
    (s - c) / (K - s)``, where s is ``size`` and K is ``total``.
    """
    p = inside_float(epsilon, size, total)
    return p, p * shared / size + (1 - p) * (size - shared) / (total - size)


def index_bytes(high: int) -> int:
    """Return the fewest of 1, 2, 4 or 8 bytes that hold every integer below ``high``."""
    bits = (high - 1).bit_length()
    return next(size for size in (1, 2, 4, 8) if bits <= 8 * size)


def pack_indices(indices: NDArray[Any], high: int) -> Records:
    """Return records, rows of bytes, with one integer below ``high`` each, little-endian."""
    size = index_bytes(high)
    return np.ascontiguousarray(indices.astype(f"<u{size}")).view(np.uint8).reshape(-1, size)


def unpack_indices(records: Records, high: int) -> NDArray[Any]:
    """Return the integer of each record made by :func:`pack_indices` with the same ``high``."""
    return np.ascontiguousarray(records.view(f"<u{index_bytes(high)}")[:, 0])


def refuse_index(indices: NDArray[Any], high: int) -> None:
    """Refuse records with an integer of ``high`` or more, which no client sends."""
    if indices.size and int(indices.max()) >= high:
        raise InvalidData(
            "reports", f"records below {high}", "one that no client sends", "refuse this client's reports"
        )


class IndexProtocol(LocalProtocol[Result]):
    """Base of the protocols whose reports are numbers; a server counts how often each was sent."""

    @property
    @abstractmethod
    def report_count(self) -> int:
        """Return the number of possible reports, which are numbered from 0 on."""

    @property
    def record_bytes(self) -> int:
        """Return the number of bytes of each record."""
        return index_bytes(self.report_count)

    @property
    def report_bits(self) -> int:
        """Return the number of bits that the index of a report needs."""
        return (self.report_count - 1).bit_length()

    def pack(self, reports: NDArray[Any]) -> Records:
        """Return reports, given as integers, as records: rows of bytes, little-endian."""
        return pack_indices(reports, self.report_count)

    def unpack(self, records: Records) -> NDArray[Any]:
        """Return the reports in records as integers; the inverse of :meth:`pack`."""
        return unpack_indices(records, self.report_count)

    def check_records(self, records: Records) -> None:
        """Refuse records whose integer is no report of this protocol."""
        refuse_index(self.unpack(records), self.report_count)

    def new_tally(self) -> Tally:
        """Return zeros, a count for each possible report."""
        return np.zeros(self.report_count, dtype=np.int64)

    def tally(self, tally: Tally, records: Records) -> None:
        """Add to the tally, in place, how often each report occurs in the records."""
        tally += np.bincount(self.unpack(records), minlength=tally.size)


Words = NDArray[np.uint64]

_LOW_DIGITS = 6  # two rows of each weight below 2**6 add up to less than 256


def bit_bytes(count: int) -> int:
    """Return the number of bytes for ``count`` bits."""
    return -(-count // 8)


def clear_padding(records: Records, count: int) -> None:
    """Set the bits after the first ``count`` of each record to 0."""
    if count % 8:
        records[:, -1] &= np.uint8((1 << count % 8) - 1)


def refuse_padding(records: Records, count: int) -> None:
    """Refuse records with a bit after the first ``count``."""
    if count % 8 and bool(np.any(records[:, -1] >> np.uint8(count % 8))):
        raise InvalidData("reports", f"{count} bits a record", "a bit after them", "refuse this client's reports")


def set_bits(records: Records, codes: Codes, values: NDArray[np.bool_]) -> None:
    """Set bit ``codes[i]`` of record i to ``values[i]``, in place."""
    rows, places, masks = np.arange(codes.size), codes >> 3, (1 << (codes & 7)).astype(np.uint8)
    cleared = records[rows, places] & ~masks
    records[rows, places] = np.where(values, cleared | masks, cleared)


def as_words(records: Records) -> Words:
    """View records as rows of 64-bit words, with zeros after the last byte."""
    width = records.shape[1]
    if width % 8:
        padded = np.zeros((records.shape[0], -(-width // 8) * 8), dtype=np.uint8)
        padded[:, :width] = records
        return padded.view(np.uint64)
    return np.ascontiguousarray(records).view(np.uint64)


def ones(records: Records) -> NDArray[np.int64]:
    """Return the number of bits of each record that are 1."""
    result: NDArray[np.int64] = np.bitwise_count(as_words(records)).sum(axis=1, dtype=np.int64)
    return result


def count_bits(records: Records) -> NDArray[np.int64]:
    """Return, for each bit position, the number of ``records`` (rows of bytes) in which it is 1.

    The lowest bit of a byte comes first.

    Rows are added as binary numbers of one digit each, all bits of a word at once: three rows of weight w become one
    of weight w and one of weight 2 w (a full adder), until two at most are left of each weight.
    """
    words, width = as_words(records), records.shape[1]
    waiting, digits = [words], list[Words]()  # digits[i] has the rows of weight 2**i that are left, at most two
    while waiting:
        rows = waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
        waiting = []
        while rows.shape[0] > 2:
            third = rows.shape[0] // 3
            one, two, three = rows[:third], rows[third : 2 * third], rows[2 * third : 3 * third]
            odd = one ^ two
            carry = one & two
            carry |= odd & three
            odd ^= three
            waiting.append(carry)
            rest = rows[3 * third :]
            rows = np.concatenate([odd, rest]) if rest.shape[0] else odd
        digits.append(rows)
    low, total = np.zeros(words.shape[1] * 64, dtype=np.uint8), np.zeros(words.shape[1] * 64, dtype=np.int64)
    for power, rows in enumerate(digits):
        for row in np.ascontiguousarray(rows).view(np.uint8):
            bits = np.unpackbits(row, bitorder="little")
            if power < _LOW_DIGITS:
                low += bits << np.uint8(power)
            else:
                total += bits.astype(np.int64) << power
    total += low
    return total[: 8 * width]


class BitProtocol(PureProtocol):
    """Base of the protocols whose reports have a bit for each category; a server counts the ones."""

    @property
    def record_bytes(self) -> int:
        """Return the number of bytes of each record."""
        return bit_bytes(self.category_count)

    @property
    def report_bits(self) -> int:
        """Return the number of bits of a report, one for each category."""
        return self.category_count

    def check_records(self, records: Records) -> None:
        """Refuse bits after the last category."""
        refuse_padding(records, self.category_count)

    def new_tally(self) -> Tally:
        """Return zeros, a count of the reports with a 1 for each category."""
        return np.zeros(self.category_count, dtype=np.int64)

    def tally(self, tally: Tally, records: Records) -> None:
        """Add to the tally, in place, the number of records with a 1 in the bit of each category."""
        tally += count_bits(records)[: tally.size]
