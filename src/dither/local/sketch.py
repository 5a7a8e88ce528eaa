"""What both sketches share: rows of hash functions, any values as categories, and collisions on top of the noise.

A client draws one of R rows uniformly and privatizes the column, of m, to which the row's hash function maps its value.
So the categories need not be listed: a server estimates whichever it is asked about. A report of another value maps to
the column of an asked one with probability 1/m, which the estimate subtracts on average. Given the hash functions that
average is not met exactly: over the choice of the key this adds a variance of at most ``sum of f^2 / (R (m - 1))``.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.errors import InvalidArgument, WrongType, message
from dither.local.keyed_hash import KEY_BYTES, hash_columns, value_number
from dither.local.protocol import Codes, Floats, LocalProtocol, Tally, read_categories

_CELLS_AT_ONCE = 1 << 18
_CELLS_TO_READ = 1 << 22
_FEWEST_ROWS = 256


class Sketch(LocalProtocol):
    """Base of the sketches. A code is the number X of :mod:`dither.local.keyed_hash`, as a signed integer."""

    rows: int
    width: int
    key: bytes

    def check_sketch(self) -> None:
        """Validate and store the parameters."""
        listed = self.categories is not None
        if listed:
            object.__setattr__(self, "categories", read_categories(self.categories))
        categories = self.categories
        object.__setattr__(self, "categories", 2)
        self.check_parameters()
        object.__setattr__(self, "categories", categories)
        object.__setattr__(self, "rows", arguments.whole(self.rows, "rows", 1, 1 << 20))
        object.__setattr__(self, "width", arguments.whole(self.width, "width", 2, 1 << 20))
        if not isinstance(self.key, bytes):
            raise WrongType(message("key", f"{KEY_BYTES} bytes", type(self.key).__name__, "pass bytes(16)"))
        if len(self.key) != KEY_BYTES:
            raise InvalidArgument(message("key", f"{KEY_BYTES} bytes", f"{len(self.key)} bytes", "pass bytes(16)"))
        if self.rows * self.width > 1 << 30:
            raise InvalidArgument(
                message("rows", "at most 2**30 cells", f"{self.rows} x {self.width}", "take fewer rows or columns")
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
        if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__len__"):
            raise WrongType(
                message(
                    name, "a column of values", type(values).__name__, "pass a list or an array, one value a person"
                )
            )
        known: dict[Any, int] = {}
        items = values.tolist() if hasattr(values, "tolist") else list(values)
        numbers = []
        for item in items:
            number = known.get(item) if type(item) in (str, int) else None  # True and 1.0 are equal to 1
            if number is None:
                number = value_number(item, name)
                if type(item) in (str, int):
                    known[item] = number
            numbers.append(number)
        return np.array(numbers, dtype=np.uint64).view(np.int64)

    def all_codes(self) -> Codes:
        """The number X of each listed category."""
        labels = tuple(range(self.categories)) if isinstance(self.categories, int) else self.categories
        return _numbers(labels)

    def columns(self, codes: Codes, rows: NDArray[Any]) -> NDArray[np.int64]:
        """The columns of codes in rows, for arrays that broadcast against each other."""
        return hash_columns(codes.view(np.uint64), rows, self.key, self.rows, self.width)

    @abstractmethod
    def cells(self, block: Tally) -> Tally:
        """What each column of some rows of the tally counts."""

    @abstractmethod
    def matched(self, sums: Floats, n: float) -> Floats:
        """The estimated shares of n people whose value maps to the column of each code, from :meth:`row_sums`."""

    def row_sums(self, tally: Tally, codes: Codes, rows: int) -> Floats:
        """For each code, the sum over the first rows of the cell to which the row maps it; in blocks of rows."""
        result = np.zeros(codes.size)
        step = max(1, _CELLS_AT_ONCE // self.width)
        for first in range(0, rows, step):
            some = np.arange(first, min(first + step, rows))
            cells = self.cells(tally[first : first + some.size])
            few = max(1, _CELLS_AT_ONCE // some.size)
            for start in range(0, codes.size, few):
                columns = self.columns(codes[start : start + few], some[:, None])
                result[start : start + few] += np.take_along_axis(cells, columns, axis=1).sum(axis=0, dtype=np.float64)
        return result

    def collision_variance(self, concentration: float = 1.0) -> float:
        """The variance of an estimated share that collisions add, over the choice of the key, however many report:
        ``sum of f^2 / (R (m - 1))``, where ``concentration`` is the sum of the squared shares, at most 1.

        >>> import dither as dp
        >>> f"{dp.local.CountMeanSketch.apple(epsilon=4).collision_variance(0.01):.1e}"
        '1.5e-10'
        """
        return concentration / (self.rows * (self.width - 1))

    def shares(self, tally: Tally, n: int, codes: Codes) -> tuple[Floats, Floats]:
        """Unbiased shares: the mean over rows, freed from noise and collisions, and standard errors.

        The error has the variance of collisions in it. For listed categories, whose shares say how concentrated the
        values are, that is estimated, in a large sketch from some of the rows, which errs upwards; otherwise all are
        taken to have one value, which is the worst.
        """
        listed = codes[:0] if self.categories is None else self.all_codes()
        rows = min(self.rows, max(_FEWEST_ROWS, _CELLS_TO_READ // max(listed.size, self.width)))
        if rows == self.rows:  # one pass for those asked and those listed
            sums = self.row_sums(tally, np.concatenate([codes, listed]), rows)
            sums, listed_sums = sums[: codes.size], sums[codes.size :]
        else:
            sums, listed_sums = self.row_sums(tally, codes, self.rows), self.row_sums(tally, listed, rows)
        shares, concentration = self._freed(self.matched(sums, n)), 1.0
        if listed.size:
            part = rows / self.rows
            squares = float(np.square(self._freed(self.matched(listed_sums, n * part))).sum())
            concentration = min(1.0, max(0.0, squares - listed.size * self.variance(n) / part))
        rare, sure = self.variance(n), self.variance(n, 1.0)  # linear in the share
        noise_variance = rare + np.clip(shares, 0.0, 1.0) * (sure - rare)
        return shares, np.sqrt(noise_variance + self.collision_variance(concentration))

    def _freed(self, hits: Floats) -> Floats:
        return (hits - 1 / self.width) * (self.width / (self.width - 1))


@lru_cache(maxsize=16)
def _numbers(labels: tuple[Any, ...]) -> Codes:
    numbers = np.array([value_number(label, "categories") for label in labels], dtype=np.uint64)
    numbers.flags.writeable = False
    return numbers.view(np.int64)


__all__ = ["Sketch"]
