"""Records of one bit for each category: bit c % 8 of byte c // 8, the lowest bit first, unused bits 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidData
from dither.local.protocol import Codes, Tally
from dither.local.pure import PureProtocol
from dither.local.reports import Records

Words = NDArray[np.uint64]

_LOW_DIGITS = 6  # two rows of each weight below 2**6 add up to less than 256


def bit_bytes(count: int) -> int:
    """The number of bytes for so many bits.

    >>> bit_bytes(128), bit_bytes(129)
    (16, 17)
    """
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
    """Set the bit of one category in each record."""
    rows, places, masks = np.arange(codes.size), codes >> 3, (1 << (codes & 7)).astype(np.uint8)
    cleared = records[rows, places] & ~masks
    records[rows, places] = np.where(values, cleared | masks, cleared)


def as_words(records: Records) -> Words:
    """Records as rows of 64-bit words, with zeros after the last byte."""
    width = records.shape[1]
    if width % 8:
        padded = np.zeros((records.shape[0], -(-width // 8) * 8), dtype=np.uint8)
        padded[:, :width] = records
        return padded.view(np.uint64)
    return np.ascontiguousarray(records).view(np.uint64)


def ones(records: Records) -> NDArray[np.int64]:
    """How many bits of each record are 1.

    >>> ones(np.array([[3, 1], [0, 0]], dtype=np.uint8))
    array([3, 0])
    """
    result: NDArray[np.int64] = np.bitwise_count(as_words(records)).sum(axis=1, dtype=np.int64)
    return result


def count_bits(records: Records) -> NDArray[np.int64]:
    """In how many records each bit is 1.

    Rows are added as binary numbers of one digit each, all bits of a word at once: three rows of weight w become one of
    weight w and one of weight 2 w (a full adder), until two at most are left of each weight.

    >>> count_bits(np.array([[3], [1], [128]], dtype=np.uint8))
    array([2, 1, 0, 0, 0, 0, 0, 1])
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
        """The number of bytes of each record."""
        return bit_bytes(self.category_count)

    @property
    def report_bits(self) -> int:
        """One bit for each category."""
        return self.category_count

    def check(self, records: Records) -> None:
        """Refuse bits after the last category."""
        refuse_padding(records, self.category_count)

    def new_tally(self) -> Tally:
        """How many reports have a 1 for each category."""
        return np.zeros(self.category_count, dtype=np.int64)

    def tally(self, tally: Tally, records: Records) -> None:
        """Add up the bits of each category."""
        tally += count_bits(records)[: tally.size]
