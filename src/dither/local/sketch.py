"""Sketches: rows of hash functions, any values as categories, and collisions in addition to the noise.

A client draws one of R rows uniformly and privatizes the column, of m, to which the row's hash function maps its value.
So the categories need not be listed: a server can estimate the share of any value. A report of a different value maps
to the column of that value with probability 1/m, which the estimate subtracts on average; for fixed hash functions the
average is not met exactly. Over the choice of the key, n_x people of value x among n add to the variance of a different
value's share ``n_x (n_x - 1) / (n^2 R (m - 1))``: a value collides in a row with probability 1/m, the R rows are
independent, and the remaining part of a single report is in the variance of its noise.

How concentrated the values are is estimated. F is the probability that two different people have equal values. Two
reports of one row have, on average over the key and corrected for noise, equal columns with probability ``F + (1 - F) /
m``. :meth:`Sketch.pair_statistic` counts such pairs from the sums alone, without bias; its error changes the stated
variance of a share by a fraction of about ``sqrt(2 / (R m))``, which is negligible.

The keyed hash, version 1
-------------------------
It is specified to the byte; ``tests/local/vectors.json`` has test vectors.

1. *The value as a number.* A text is the byte ``s`` followed by its UTF-8 bytes; a byte string is the byte ``b``
   followed by itself; a whole number from 0 to 2^63 - 1 is the byte ``i`` followed by its 8 bytes, little-endian. X is
   the first 8 bytes of SHA-256 of these bytes, read as a little-endian integer; its low 32 bits are L and its high 32
   bits are H.
2. *The row as three numbers.* SHA-256 of ``dither local hash 1`` (ASCII, 19 bytes), the 16 bytes of the key and the 4
   bytes of the row's number, little-endian. Its first, second and third 8 bytes, little-endian, are A, B and C.
3. *The hash.* ``h = ((A L + B H + C) mod 2^64) >> 32``, and the column is ``(h width) >> 32``.

For random A, B and C the values h of two different X are independent and uniform (multiply-shift: Dietzfelbinger 1996).
A column is therefore uniform to within ``width / 2^32``, and independent for two values. The hash needs no secrecy: the
key only lets two collections use different functions.
"""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.exact import Enclosure
from dither.local import labels
from dither.local.bases import (
    IndexProtocol,
    bit_bytes,
    count_bits,
    index_bytes,
    inside_float,
    inside_probability,
    pack_indices,
    refuse_index,
    refuse_padding,
    unpack_indices,
)
from dither.local.hadamard_response import hadamard_transform, odd_parity
from dither.local.protocol import Codes, Floats, FrequencyProtocol, Tally
from dither.local.reports import WIRE_CODES, LocalFrequencies, Records
from dither.local.subset_selection import UnaryEncoding
from dither.randomness import Source, trials, uniform_integers

Words = NDArray[np.uint64]

KEY_BYTES = 16
_DOMAIN = b"dither local hash 1"
_HALF = np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)


def value_number(value: Any, name: str = "values") -> int:
    """Return the 64-bit number X of a text, a byte string or a whole number: a part of its SHA-256 hash.

    The hash is of the value's bytes after a letter for its type, so that ``"1"``, ``b"1"`` and 1 differ. ``name`` is
    the parameter's name for the error if ``value`` is of another type.
    """
    if isinstance(value, str):
        try:
            content = b"s" + value.encode()
        except UnicodeEncodeError:
            raise InvalidData(name, "texts", "one that is not valid Unicode", "repair the text") from None
    elif isinstance(value, bytes):
        content = b"b" + value
    elif isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= value < 1 << 63:
        content = b"i" + int(value).to_bytes(8, "little")
    else:
        raise InvalidData(
            name,
            "texts, byte strings or whole numbers from 0 on",
            "a value of a different type",
            "convert the values first",
        )
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "little")


@lru_cache(maxsize=8)
def row_numbers(key: bytes, rows: int) -> tuple[Words, Words, Words]:
    """Return arrays of the three 64-bit numbers A, B and C that define the hash function of every row.

    They are taken from SHA-256 of ``key`` and the row's number, for ``rows`` rows.
    """
    digests = b"".join(hashlib.sha256(_DOMAIN + key + row.to_bytes(4, "little")).digest()[:24] for row in range(rows))
    table = np.frombuffer(digests, dtype="<u8").astype(np.uint64).reshape(rows, 3)
    a, b, c = (np.ascontiguousarray(column) for column in table.T)
    a.flags.writeable = b.flags.writeable = c.flags.writeable = False
    return a, b, c


def hash_columns(numbers: Words, rows: NDArray[Any], key: bytes, row_count: int, width: int) -> NDArray[np.int64]:
    """Return the column of each number X in its row, for arrays that broadcast against each other.

    ``numbers`` are the 64-bit X, ``rows`` the row of each, ``key`` selects the hash functions of the ``row_count``
    rows, and columns go from 0 to ``width - 1``. With the low and the high half of X the hash is ``A low + B high +
    C`` modulo 2^64; its upper 32 bits are scaled to the width.
    """
    a, b, c = row_numbers(key, row_count)
    mixed = a[rows] * (numbers & _LOW) + b[rows] * (numbers >> _HALF) + c[rows]
    columns: NDArray[np.int64] = (((mixed >> _HALF) * np.uint64(width)) >> _HALF).astype(np.int64)
    return columns


_CELLS_AT_ONCE = 1 << 18
_CELLS_FOR_PAIRS = 1 << 22  # enough to know F; a sketch of Apple's size has sixteen times as many


class Sketch(FrequencyProtocol):
    """Base of the sketches. A code is the number X of the keyed hash, as a signed integer."""

    rows: int
    width: int
    key: bytes

    def check_sketch(self) -> None:
        """Validate and store the parameters.

        The checks shared with other protocols need a number of categories, which a sketch may not have: ``categories``
        is 2 while they run.
        """
        categories = self.categories
        if categories is not None:
            categories = labels.read_categories(categories)
            all_numbers(categories)  # refuses labels that cannot be hashed
        object.__setattr__(self, "categories", 2)
        self.check_parameters()
        object.__setattr__(self, "categories", categories)
        object.__setattr__(self, "rows", arguments.whole(self.rows, "rows", 1, 1 << 20))
        object.__setattr__(self, "width", arguments.whole(self.width, "width", 2, 1 << 20))
        if not isinstance(self.key, bytes):
            raise WrongType("key", f"{KEY_BYTES} bytes", type(self.key).__name__, "pass bytes(16)")
        if len(self.key) != KEY_BYTES:
            raise InvalidArgument("key", f"{KEY_BYTES} bytes", f"{len(self.key)} bytes", "pass bytes(16)")
        if self.rows * self.width > 1 << 30:
            raise InvalidArgument(
                "rows", "at most 2**30 cells", f"{self.rows} x {self.width}", "take fewer rows or columns"
            )

    def own_parameters(self) -> dict[str, object]:
        """Return the size of the sketch and its key; listed categories only determine what is estimated."""
        return {"rows": self.rows, "width": self.width, "key": self.key.hex()}

    @property
    def canonical_parameters(self) -> str:
        """Return the text of all parameters without the categories, which clients need not know."""
        own = "".join(f";{name}={value}" for name, value in self.own_parameters().items())
        return f"{type(self).__name__};epsilon={self.exact_epsilon}{own}"

    def encode(self, values: Any, name: str = "values") -> Codes:
        """Return the number X of each value; where categories are listed, other values are refused."""
        if self.categories is not None:
            return self.all_codes()[super().encode(values, name)]
        labels.require_column(values, name)
        if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu":
            distinct, places = np.unique(values, return_inverse=True)
            return _numbers(distinct.tolist(), name)[places]
        items = labels.read_labels(values, name)
        known = dict.fromkeys(item for item in items if type(item) is not bool)  # True is equal to 1
        numbers = dict(zip(known, _numbers(known, name).tolist(), strict=True))
        if len(known) < len(items) and any(type(item) is bool for item in items):
            _numbers([True], name)
        return np.array([numbers[item] for item in items], dtype=np.int64)

    def all_codes(self) -> Codes:
        """Return the number X of each listed category."""
        return all_numbers(self.categories)

    def columns(self, codes: Codes, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return the column of each code in its row, by the keyed hash; the arrays broadcast against each other."""
        return hash_columns(codes.view(np.uint64), rows, self.key, self.rows, self.width)

    @abstractmethod
    def cells(self, block: Tally) -> Tally:
        """Return, for some rows of the tally, the sum of reports that belongs to each column."""

    @abstractmethod
    def matched(self, sums: Floats, n: int) -> Floats:
        """Return the estimated shares of people whose value has the column of each code, collisions included.

        ``sums`` are those of :meth:`row_sums` and ``n`` is the number of reports; noise is corrected for on average.
        """

    @abstractmethod
    def pair_statistic(self, block: Tally, n: int) -> float:
        """Return an unbiased estimate of ``F (1 - 1/m)`` summed over the rows of ``block``, from ``n`` reports.

        F is the probability that two people have equal values, and m the number of columns. For each row it estimates
        the probability that two people have equal columns, less 1/m, that of a collision of different values.
        """

    def row_sums(self, tally: Tally, codes: Codes) -> Floats:
        """Return, for each code, the sum of its cells: over all rows, the cell of the column to which it is mapped."""
        result = np.zeros(codes.size)
        step = max(1, _CELLS_AT_ONCE // self.width)
        for first in range(0, self.rows, step):
            some = np.arange(first, min(first + step, self.rows))
            cells = self.cells(tally[first : first + some.size])
            few = max(1, _CELLS_AT_ONCE // some.size)
            for start in range(0, codes.size, few):
                columns = self.columns(codes[start : start + few], some[:, None])
                result[start : start + few] += np.take_along_axis(cells, columns, axis=1).sum(axis=0, dtype=np.float64)
        return result

    def collision_variance(self, concentration: float = 1.0) -> float:
        """Return the variance that collisions add to an estimated share, ``F / (R (m - 1))``.

        It is over the choice of the key and does not fall with the number of reports. ``concentration`` is F, the
        probability that two people have equal values, other than the value that is estimated; at most 1.
        """
        return concentration / (self.rows * (self.width - 1))

    def concentration(self, tally: Tally, n: int) -> float:
        """Return an unbiased estimate of F, the probability that two different people among ``n`` have equal values.

        It is computed from the first rows of the tally, up to 2^22 cells; 0 for fewer than two people.
        """
        if n < 2:
            return 0.0
        rows = min(self.rows, max(1, _CELLS_FOR_PAIRS // self.width))
        step = max(1, _CELLS_AT_ONCE // self.width)
        total = sum(self.pair_statistic(tally[i : min(i + step, rows)], n) for i in range(0, rows, step))
        return total / rows * self.width / (self.width - 1)

    def shares(self, tally: Tally, n: int, codes: Codes) -> tuple[Floats, Floats]:
        """Return unbiased shares: means over rows, corrected for noise and collisions, with standard errors.

        ``tally`` holds the added-up reports of ``n`` people, and ``codes`` the numbers of the categories asked for.
        The errors include the noise and the other values that fall into the same columns.
        """
        shares = self._freed(self.matched(self.row_sums(tally, codes), n))
        rare, sure = self.variance(n), self.variance(n, 1.0)  # linear in the share
        noise_variance = rare + np.clip(shares, 0.0, 1.0) * (sure - rare)
        own = np.maximum(np.square(shares) - noise_variance, 0.0)  # two people who both have the value asked about
        others = np.clip(self.concentration(tally, n) - own, 0.0, 1.0)
        return shares, np.sqrt(noise_variance + self.collision_variance() * others)

    def _freed(self, hits: Floats) -> Floats:
        """Return shares of people, ``(hits - 1/m) m / (m - 1)``, from shares of matching columns ``hits``.

        The column of a different value matches with probability 1/m.
        """
        return (hits - 1 / self.width) * (self.width / (self.width - 1))


def _numbers(values: Iterable[Any], name: str) -> Codes:
    """Return the 64-bit number X of each value (:func:`value_number`), read as a signed integer."""
    return np.array([value_number(value, name) for value in values], dtype=np.uint64).view(np.int64)


@lru_cache(maxsize=16)
def all_numbers(categories: int | tuple[Any, ...]) -> Codes:
    """Return the number X of each of the categories."""
    numbers = _numbers(range(categories) if isinstance(categories, int) else categories, "categories")
    numbers.flags.writeable = False
    return numbers


_BYTES_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class CountMeanSketch(Sketch):
    """Report a random row and, by unary encoding, the column to which the row's hash function maps the own value.

    *Statement.* The row is drawn independently of the value, and the m bits of the column are flipped as
    :class:`UnaryEncoding` flips them: each report is epsilon-DP for its sender, whatever their value is replaced by.
    Apple's form flips symmetrically, with probability 1 / (e^(epsilon/2) + 1) (Apple Differential Privacy Team 2017,
    "Learning with Privacy at Scale"): :meth:`apple`. The default flips as optimized unary encoding does.

    *Why.* Given the row, two values change at most two bits, as in unary encoding; the row has the same law for all.

    *Record.* The row, in 1, 2, 4 or 8 bytes, the fewest that hold ``rows - 1``, little-endian; then bit c % 8 of byte
    c // 8 for column c, the lowest bit first; unused bits are 0. The hash is the keyed one of this module.

    Parameters
    ----------
    epsilon
        The privacy loss of each report.
    categories
        The values to estimate by default, or None: any text, byte string or whole number may be reported and asked for.
    rows, width
        The number R of hash functions and m of columns. The server keeps R m counts.
    optimized
        Whether to flip as optimized unary encoding does.
    key
        16 bytes that select the hash functions; not a secret.

    >>> import dither as dp
    >>> apple = dp.local.CountMeanSketch.apple(epsilon=4)
    >>> apple.rows, apple.width, round(apple.variance(1), 3)
    (65536, 1024, 0.182)
    >>> p = dp.local.CountMeanSketch(epsilon=4)
    >>> round(p.variance(1), 4)
    0.0781
    >>> p.estimate(p.privatize(["a", "b", "a"]), ["a", "c"]).n
    3
    """

    epsilon: float
    categories: Any = None
    rows: int = 1024
    width: int = 1024
    optimized: bool = True
    key: bytes = bytes(16)
    wire_code: ClassVar[int] = WIRE_CODES["CountMeanSketch"]
    chunk_bytes: ClassVar[int] = 1 << 28

    def __post_init__(self) -> None:
        self.check_sketch()
        if not isinstance(self.optimized, bool):
            raise WrongType("optimized", "True or False", type(self.optimized).__name__, "pass True")

    @classmethod
    def apple(cls, epsilon: float = 4, categories: Any = None, *, key: bytes = bytes(16)) -> CountMeanSketch:
        """Return a sketch with Apple's published parameters for emoji: 65,536 rows of 1,024 columns, symmetric flips.

        ``epsilon``, ``categories`` and ``key`` are those of the class.

        >>> CountMeanSketch.apple().report_bits
        1040
        """
        return cls(epsilon, categories, rows=65536, width=1024, optimized=False, key=key)

    def own_parameters(self) -> dict[str, object]:
        """Return the size of the sketch, its key, and how bits are flipped."""
        return {**super().own_parameters(), "optimized": int(self.optimized)}

    @property
    def encoding(self) -> UnaryEncoding:
        """Return the protocol for the column."""
        return UnaryEncoding(self.width, self.epsilon, self.optimized)

    @property
    def record_bytes(self) -> int:
        """Return the number of bytes of each record."""
        return index_bytes(self.rows) + bit_bytes(self.width)

    @property
    def report_bits(self) -> int:
        """Return the number of bits that the row needs, plus one for each column."""
        return (self.rows - 1).bit_length() + self.width

    def draw(self, codes: Codes, source: Source) -> Records:
        """Draw one report for each value: a uniform row, and the value's column in it by unary encoding."""
        rows = uniform_integers(self.rows, codes.size, source)
        bits = self.encoding.draw(self.columns(codes, rows), source)
        return np.concatenate([pack_indices(rows, self.rows), bits], axis=1)

    def check_records(self, records: Records) -> None:
        """Refuse rows that are not in the sketch and bits after the last column."""
        size = index_bytes(self.rows)
        refuse_index(unpack_indices(records[:, :size], self.rows), self.rows)
        refuse_padding(records[:, size:], self.width)

    def new_tally(self) -> Tally:
        """Return zeros, a count of the reports of each row with a 1 in each column."""
        return np.zeros((self.rows, self.width), dtype=np.int32)

    def tally(self, tally: Tally, records: Records) -> None:
        """Add the bits of ``records``, encoded reports, to ``tally``, which has one count for each row and column.

        Reports are sorted by row. Rows with similar numbers of reports are counted together, a block of them at a time.
        """
        size = index_bytes(self.rows)
        rows = unpack_indices(records[:, :size], self.rows)
        order = np.argsort(rows, kind="stable")
        counts = np.bincount(rows, minlength=self.rows)
        starts = np.cumsum(counts) - counts
        # rows with similar numbers of reports are counted together, side by side, the shorter ones filled with zeros
        by_count = np.argsort(counts, kind="stable")[::-1][: int(np.count_nonzero(counts))]
        first = 0
        while first < by_count.size:
            longest = int(counts[by_count[first]])
            some = _BYTES_AT_ONCE // (longest * self.record_bytes)
            together = by_count[first : first + (some - some % 8 or 1)]  # eight of them are whole 64-bit words
            first += together.size
            ranks = np.arange(longest)[:, None]
            there = ranks < counts[together]
            block = records.take(order[np.where(there, starts[together] + ranks, 0)], axis=0)
            block[~there] = 0
            ones = count_bits(block.reshape(longest, -1)).reshape(together.size, -1)
            tally[together] += ones[:, 8 * size : 8 * size + self.width].astype(tally.dtype)

    def cells(self, block: Tally) -> Tally:
        """Return the sums unchanged: each belongs to one column."""
        return block

    def matched(self, sums: Floats, n: int) -> Floats:
        """Return ``(sums / n - q) / (p - q)``: the share of ones in the cells of each code, corrected for flips."""
        p, q = self.encoding.support
        return (sums / n - q) / (p - q)

    def pair_statistic(self, block: Tally, n: int) -> float:
        """Return an unbiased estimate of ``F (1 - 1/m)`` summed over the rows of ``block``, from ``n`` reports.

        F is the probability that two people have equal values, and m the number of columns. The estimate is computed
        from the squared deviations of each row's counts from their mean.

        Deviations do not depend on the number of reports in the row. Two reports of one row add ``(p - q)^2 (1 - 1/m)``
        where their columns are equal and ``-(p - q)^2 / m`` otherwise, and a single report adds ``(1 - 1/m)`` times its
        variances and ``(p - q)^2``.
        """
        p, q = self.encoding.support
        counts, m = block.astype(np.float64), self.width
        counts -= counts.mean(axis=1, keepdims=True)
        squares = float(np.einsum("ij,ij->", counts, counts))
        single = (1 - 1 / m) * (p * (1 - p) + (m - 1) * q * (1 - q) + (p - q) ** 2) * block.shape[0] / self.rows
        result: float = (squares - n * single) * self.rows**2 / ((p - q) ** 2 * n * (n - 1))
        return result

    @property
    def report_range(self) -> float:
        """Return the range of unary encoding of the column, times ``m / (m - 1)`` for the correction of collisions."""
        return self.encoding.report_range * self.width / (self.width - 1)

    def variance(self, n: int, share: float = 0.0) -> float:
        """Return the variance of an estimated share among ``n`` people, without that of collisions.

        With f the share and ``r = p/m + q (1 - 1/m)``, the probability of a 1 in the column of a different value, it is
        ``(f p (1 - p) + (1 - f) r (1 - r)) / (n (p - q)^2)`` times ``(m / (m - 1))^2`` for the correction of
        collisions.
        """
        p, q = self.encoding.support
        m = self.width
        other = p / m + q * (1 - 1 / m)
        spread = share * p * (1 - p) + (1 - share) * other * (1 - other)
        return spread / ((p - q) ** 2 * arguments.whole(n, "n")) * (m / (m - 1)) ** 2


@dataclass(frozen=True)
class HadamardCountMeanSketch(IndexProtocol[LocalFrequencies], Sketch):
    """Report a random row, a random coordinate and one bit: the sign there of the column's row of a Hadamard matrix,
    flipped with probability 1 / (e^epsilon + 1).

    *Statement.* Row and coordinate are drawn independently of the value, and the sign by randomized response: each
    report is epsilon-DP for its sender, whatever their value is replaced by (Apple Differential Privacy Team 2017).

    *Why.* Given row and coordinate, the two signs have probabilities whose ratio is e^epsilon.

    *Record.* ``2 (m r + l) + b`` for row r, coordinate l and b = 1 for the sign -1, in 1, 2, 4 or 8 bytes, the fewest
    that hold ``2 rows width - 1``. The hash is the keyed one of this module; the sign in row i and coordinate
    l is -1 to the number of bits that i and l have in common.

    n times the variance of a rare category is about ``((e^epsilon + 1) / (e^epsilon - 1))^2``, to which collisions add.

    Parameters are those of :class:`CountMeanSketch`; the width is a power of two.

    >>> import dither as dp
    >>> p = dp.local.HadamardCountMeanSketch(epsilon=4)
    >>> p.record_bytes, p.report_bits, round(p.variance(1), 3)
    (4, 23, 1.077)
    >>> p.estimate(p.privatize(["a", "b", "a"]), ["a", "c"]).n
    3
    """

    epsilon: float
    categories: Any = None
    rows: int = 1024
    width: int = 4096
    key: bytes = bytes(16)
    wire_code: ClassVar[int] = WIRE_CODES["HadamardCountMeanSketch"]

    def __post_init__(self) -> None:
        self.check_sketch()
        if self.width & (self.width - 1):
            raise InvalidArgument("width", "a power of two", self.width, f"pass width={1 << self.width.bit_length()}")

    @classmethod
    def apple(cls, epsilon: float = 4, categories: Any = None, *, key: bytes = bytes(16)) -> HadamardCountMeanSketch:
        """Return a sketch with Apple's published parameters for Safari domains: 1,024 rows of 32,768 columns.

        ``epsilon``, ``categories`` and ``key`` are those of the class.

        >>> HadamardCountMeanSketch.apple().report_bits
        26
        """
        return cls(epsilon, categories, rows=1024, width=32768, key=key)

    def own_probability(self, bits: int) -> Enclosure:
        """Enclose the probability of the true sign, ``e^epsilon / (e^epsilon + 1)``, in units of ``2**-bits``."""
        return inside_probability(self.exact_epsilon, 1, 2, bits)

    @property
    def report_count(self) -> int:
        """Return the number of possible reports: two signs for each row and coordinate."""
        return 2 * self.rows * self.width

    def draw(self, codes: Codes, source: Source) -> Records:
        """Draw a row and a coordinate for each value, and report the sign there, flipped with a small probability."""
        cells = uniform_integers(self.rows * self.width, codes.size, source).astype(np.int64)
        rows, coordinates = np.divmod(cells, self.width)
        truthful = trials(inside_float(float(self.epsilon), 1, 2), self.own_probability, codes.size, source)
        negative = odd_parity(self.columns(codes, rows), coordinates) == truthful
        return self.pack(2 * cells + negative)

    def new_tally(self) -> Tally:
        """Return zeros, a sum of signs for each row and coordinate."""
        return np.zeros((self.rows, self.width), dtype=np.int32)

    def tally(self, tally: Tally, records: Records) -> None:
        """Add to the tally, in place, 1 or -1 for the sign of each record at its row and coordinate."""
        reports = self.unpack(records)
        np.add.at(tally.reshape(-1), reports >> 1, 1 - 2 * (reports & 1).astype(np.int32))

    def cells(self, block: Tally) -> Tally:
        """Return the Hadamard transform of each row, which adds up the signs of each column."""
        return hadamard_transform(block)

    def matched(self, sums: Floats, n: int) -> Floats:
        """Return ``sums / (n tanh(epsilon / 2))``: the mean sign of each code's column, corrected for flips."""
        return sums / (n * math.tanh(float(self.epsilon) / 2))

    def pair_statistic(self, block: Tally, n: int) -> float:
        """Return an unbiased estimate of ``F (1 - 1/m)`` summed over the rows of ``block``, from ``n`` reports.

        F is the probability that two people have equal values, and m the number of columns. The estimate is computed
        from the squared sums of all coordinates but the first, whose sign is equal for all columns.

        Two reports of one row and coordinate add, on average over coordinates, ``t^2 (m - 1) / m`` with t =
        tanh(epsilon/2) where their columns are equal and ``-t^2 / m`` otherwise; a single report adds 1.
        """
        strength, m = math.tanh(float(self.epsilon) / 2), self.width
        sums = block[:, 1:].astype(np.float64)
        squares = float(np.einsum("ij,ij->", sums, sums))
        single = (1 - 1 / m) * block.shape[0] / self.rows
        result: float = (squares - n * single) * m / strength**2 * self.rows**2 / (n * (n - 1))
        return result

    @property
    def report_range(self) -> float:
        """Return ``2 / tanh(epsilon / 2)``, the distance between both signs corrected for flips, times ``m / (m - 1)``.

        The last factor is the correction for collisions.
        """
        return 2 / math.tanh(float(self.epsilon) / 2) * self.width / (self.width - 1)

    def variance(self, n: int, share: float = 0.0) -> float:
        """Return the variance of an estimated share among ``n`` people, without that of collisions.

        With f the share and ``t = tanh(epsilon / 2)`` it is ``(1/t^2 - f - (1 - f) / m^2) / n`` times ``(m / (m -
        1))^2`` for the correction of collisions.
        """
        strength, m = math.tanh(float(self.epsilon) / 2), self.width
        spread = 1 / strength**2 - share - (1 - share) / m**2
        return spread / arguments.whole(n, "n") * (m / (m - 1)) ** 2
