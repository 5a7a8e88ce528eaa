"""What both sketches share: rows of hash functions, any values as categories, and collisions on top of the noise.

A client draws one of R rows uniformly and privatizes the column, of m, to which the row's hash function maps its value.
So the categories need not be listed: a server estimates whichever it is asked about. A report of another value maps to
the column of an asked one with probability 1/m, which the estimate subtracts on average. Given the hash functions that
average is not met exactly. Over the choice of the key, n_x people of value x among n add to the variance of another
value's share ``n_x (n_x - 1) / (n^2 R (m - 1))``: a value collides in a row with probability 1/m, the R rows are
independent, and what is left of a single report is in the variance of its noise.

How concentrated the values are need not be guessed. F is the probability that two different people have the same value.
Two reports of one row show, on average over the key and freed from noise, the same column with probability
``F + (1 - F) / m``. :meth:`Sketch.pair_statistic` counts such pairs from the sums alone, without bias, and its error
moves the stated variance of a share by about ``sqrt(2 / (R m))`` of itself, which is nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.errors import InvalidArgument, WrongType
from dither.local import labels
from dither.local.keyed_hash import KEY_BYTES, hash_columns, value_number
from dither.local.protocol import Codes, Floats, FrequencyProtocol, Tally

_CELLS_AT_ONCE = 1 << 18
_CELLS_FOR_PAIRS = 1 << 22  # enough to know F; a sketch of Apple's size has sixteen times as many


class Sketch(FrequencyProtocol):
    """Base of the sketches. A code is the number X of :mod:`dither.local.keyed_hash`, as a signed integer."""

    rows: int
    width: int
    key: bytes

    def check_sketch(self) -> None:
        """Validate and store the parameters."""
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
        """The size of the sketch and its key; listed categories only say what is estimated."""
        return {"rows": self.rows, "width": self.width, "key": self.key.hex()}

    @property
    def canonical_parameters(self) -> str:
        """As for other protocols, without the categories: clients need not know them."""
        own = "".join(f";{name}={value}" for name, value in self.own_parameters().items())
        return f"{type(self).__name__};epsilon={self.exact_epsilon}{own}"

    def encode(self, values: Any, name: str = "values") -> Codes:
        """The number X of each value; where categories are listed, a value that is none of them is refused."""
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
        """The number X of each listed category."""
        return all_numbers(self.categories)

    def columns(self, codes: Codes, rows: NDArray[Any]) -> NDArray[np.int64]:
        """The columns of codes in rows, for arrays that broadcast against each other."""
        return hash_columns(codes.view(np.uint64), rows, self.key, self.rows, self.width)

    @abstractmethod
    def cells(self, block: Tally) -> Tally:
        """What each column of some rows of the tally counts."""

    @abstractmethod
    def matched(self, sums: Floats, n: int) -> Floats:
        """The estimated shares of n people whose value maps to the column of each code, from :meth:`row_sums`."""

    @abstractmethod
    def pair_statistic(self, block: Tally, n: int) -> float:
        """For a block of rows, n people in all: an unbiased estimate of the sum over rows of the probability that two
        different people, drawn at random, have the same column, less what chance makes of it: ``F (1 - 1/m)`` a row on
        average over the key.
        """

    def row_sums(self, tally: Tally, codes: Codes) -> Floats:
        """For each code, the sum over all rows of the cell to which the row maps it; in blocks of rows."""
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
        """The variance of an estimated share that collisions add, over the choice of the key, however many report:
        ``F / (R (m - 1))``, where ``concentration`` is F, the probability that two people have the same value, without
        those who have the value that is estimated; at most 1.

        >>> import dither as dp
        >>> f"{dp.local.CountMeanSketch.apple(epsilon=4).collision_variance(0.01):.1e}"
        '1.5e-10'
        """
        return concentration / (self.rows * (self.width - 1))

    def concentration(self, tally: Tally, n: int) -> float:
        """An unbiased estimate of F, the probability that two different people among n have the same value; from as
        many rows as it takes."""
        if n < 2:
            return 0.0
        rows = min(self.rows, max(1, _CELLS_FOR_PAIRS // self.width))
        step = max(1, _CELLS_AT_ONCE // self.width)
        total = sum(self.pair_statistic(tally[i : min(i + step, rows)], n) for i in range(0, rows, step))
        return total / rows * self.width / (self.width - 1)

    def shares(self, tally: Tally, n: int, codes: Codes) -> tuple[Floats, Floats]:
        """Unbiased shares: the mean over rows, freed from noise and collisions, and standard errors, in which the
        variance of collisions is included.
        """
        shares = self._freed(self.matched(self.row_sums(tally, codes), n))
        rare, sure = self.variance(n), self.variance(n, 1.0)  # linear in the share
        noise_variance = rare + np.clip(shares, 0.0, 1.0) * (sure - rare)
        own = np.maximum(np.square(shares) - noise_variance, 0.0)  # two people who both have the value asked about
        others = np.clip(self.concentration(tally, n) - own, 0.0, 1.0)
        return shares, np.sqrt(noise_variance + self.collision_variance() * others)

    def _freed(self, hits: Floats) -> Floats:
        return (hits - 1 / self.width) * (self.width / (self.width - 1))


def _numbers(values: Iterable[Any], name: str) -> Codes:
    return np.array([value_number(value, name) for value in values], dtype=np.uint64).view(np.int64)


@lru_cache(maxsize=16)
def all_numbers(categories: int | tuple[Any, ...]) -> Codes:
    """The number X of each of the categories.

    >>> all_numbers(3).size
    3
    """
    numbers = _numbers(range(categories) if isinstance(categories, int) else categories, "categories")
    numbers.flags.writeable = False
    return numbers
