"""Outputs of arbitrary type as columns, and views of them among which the learner chooses.

The leaves at one path of the canonical form (:mod:`dither.audit.outputs.canonical`) over many runs form a column of
numbers or vectors, and a second column of labels holds the kinds of these leaves. Nothing is interpreted here; which
columns distinguish two data sets is learned in :mod:`dither.audit.blackbox.region`.

A view maps every output to one number or label: the value of a column, one of its bits, its residue, a character of a
text, the sum of a vector, a projection. Leaks hide where a histogram of the values does not show them:

*Transforms and summaries.* A textbook floating-point sampler adds noise of the right distribution and still leaks the
data in the lowest bits of the sum (Mironov 2012); rounding leaks in the fractional part, and missing values leak in the
class of the number. Each transform isolates one such feature.

*Bits.* A *bit* is one binary digit of one coordinate (of an integer, of the integer part of a float, or of the stored
representation of a float) or one bit of the hash of a label. Single bits and residues are screened by the statistical
distance between the two data sets. All parities of a dozen bits are screened at once with a Walsh-Hadamard transform,
which also detects noisy parities; among hundreds of bits, linear algebra modulo 2 finds every parity that is constant
on one data set and not on the other.

*Joint views* treat the numbers of all columns, whatever containers they come from, as one vector: two keys of a dict
that share their noise, so that the difference is exact; four counts whose parity is exact; a whole output that recurs.

The results are only candidates; evidence comes from fresh runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from dither.audit.outputs.canonical import OPAQUE, Leaf, leaves

Array = NDArray[Any]

MAX_COLUMNS = 2000
"""The number of columns that is always kept; more are kept when there are few runs."""
MAX_CELLS = 1 << 27
_COLUMN_LIMIT = 1 << 16
_ABSENT = "absent"
_EXACT = 1 << 53


@dataclass(frozen=True)
class Outputs:
    """The outputs of ``size`` runs as columns: floats, integers, vectors (2-dimensional) or labels (of str)."""

    size: int
    columns: Mapping[str, Array]
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Columns that have the same value in all runs, stored once; they matter only when runs are concatenated."""

    @property
    def opaque(self) -> tuple[str, ...]:
        """Return what could not be decomposed in some run, each with its location in the output."""
        kinds: dict[str, None] = {}
        for name in (*self.constants, *self.columns):
            if name.endswith(" kind"):
                column = [self.constants[name]] if name in self.constants else self.columns[name]
                path = name.removesuffix(" kind").partition(" ")[0]
                unknown = {kind for kind in column if kind.startswith(OPAQUE)}
                kinds |= {f"{kind.removeprefix(OPAQUE)}{f' at {path}' if path else ''}": None for kind in unknown}
        return tuple(kinds)

    def column(self, name: str) -> Array:
        """Return the column of that name, one value per run; a column of missing values if no output has it."""
        if name in self.columns:
            return self.columns[name]
        if name in self.constants:
            value = self.constants[name]
            return np.full(self.size, value, dtype=object if isinstance(value, str) else None)
        return np.full(self.size, _ABSENT, dtype=object) if name.endswith(" kind") else np.full(self.size, np.nan)

    def rows(self, start: int, stop: int) -> Outputs:
        """Return the outputs of the runs from ``start`` up to, but not including, ``stop``."""
        stop = min(stop, self.size)
        columns = {name: column[start:stop] for name, column in self.columns.items()}
        return Outputs(stop - start, columns, self.constants)

    def select(self, chosen: Array) -> Outputs:
        """Return the chosen runs, given as a mask or as indices."""
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Outputs(int(np.count_nonzero(chosen)) if chosen.dtype == bool else chosen.size, columns, self.constants)


def concatenate(parts: Sequence[Outputs]) -> Outputs:
    """Concatenate the runs of all parts, in order, and keep the columns that :func:`_kept_paths` selects."""
    parts = [part for part in parts if part.size] or list(parts[:1])
    if len(parts) == 1:
        return parts[0]
    constants = {
        name: value
        for name, value in parts[0].constants.items()
        if all(name not in part.columns and part.constants.get(name) == value for part in parts)
    }
    names = dict.fromkeys(name for part in parts for name in (*part.columns, *part.constants) if name not in constants)
    size = sum(part.size for part in parts)
    kept_paths = _kept_paths((name.removesuffix(" kind") for name in (*names, *constants)), size)
    columns = {
        name: _stacked([part.column(name) for part in parts])
        for name in names
        if name.removesuffix(" kind") in kept_paths
    }
    constants = {name: value for name, value in constants.items() if name.removesuffix(" kind") in kept_paths}
    return Outputs(size, columns, constants)


def _kept_paths(paths: Iterable[str], size: int) -> set[str]:
    """Return the paths of the columns to keep, fewer of them the more runs there are, so that memory is bounded.

    If there are too many, those are kept that come first in an order independent of the data; a path that is kept for
    all runs was therefore kept for every part of them.
    """
    unique_paths, limit = set(paths), max(MAX_COLUMNS, min(_COLUMN_LIMIT, MAX_CELLS // max(1, size)))
    if len(unique_paths) <= limit:
        return unique_paths
    order = sorted(
        unique_paths, key=lambda path: (path.count("[") + path.count(" has "), crc32(repr(path).encode()), path)
    )
    return set(order[:limit])


def _stacked(columns: list[Array]) -> Array:
    """Concatenate the columns of several parts, padded to one width and converted to one type."""
    width = max((column.shape[1] for column in columns if column.ndim == 2), default=0)
    if width:
        columns = [_padded(column, width) for column in columns]
    if any(column.dtype.kind == "f" for column in columns):
        columns = [column.astype(np.float64) if column.dtype.kind in "iu" else column for column in columns]
    return np.concatenate(columns)


def _as_matrix(column: Array) -> Array:
    """Return a column of numbers or vectors as a matrix: one row per run, one column per coordinate."""
    return column if column.ndim == 2 else column[:, None]


def _padded(column: Array, width: int) -> Array:
    """Pad a column of numbers or vectors with NaN to vectors of the given width."""
    matrix = _as_matrix(column)
    if matrix.shape[1] == width:
        return matrix
    return np.hstack([matrix.astype(np.float64), np.full((matrix.shape[0], width - matrix.shape[1]), np.nan)])


def collect_outputs(outputs: Any) -> Outputs:
    """Decompose outputs, one per run, into columns; each row of an array counts as one output."""
    if type(outputs) is np.ndarray and outputs.dtype.kind in "if" and outputs.dtype.itemsize <= 8 and outputs.ndim > 0:
        width = int(np.prod(outputs.shape[1:]))
        if len(outputs) and width:
            return Outputs(len(outputs), {"": _numeric(outputs.reshape(len(outputs), width))}, _constants(outputs[0]))
    # the rows of one array are views of it, and so of all runs
    outputs_list = [row.copy() if isinstance(row, np.ndarray) else row for row in outputs]
    uniform = _uniform(outputs_list)
    if uniform is not None:
        return Outputs(len(outputs_list), {"": uniform}, _constants(outputs_list[0]))
    paths: dict[str, dict[int, Leaf]] = {}
    for run, output in enumerate(outputs_list):
        for path, leaf in leaves(output):
            column = paths.setdefault(path, {})
            while run in column:  # a part with the path of another
                path += "'"
                column = paths.setdefault(path, {})
            column[run] = leaf
    result: dict[str, Array] = {}
    constants: dict[str, Any] = {}
    kept_paths = _kept_paths(paths, len(outputs_list))
    for path, column in paths.items():
        if path in kept_paths:
            result.update(_as_columns(path, column, len(outputs_list), constants))
    return Outputs(len(outputs_list), result, constants)


def _constants(output: Any) -> dict[str, Any]:
    """Return the kinds and values of all leaves of one output, by name, except the numbers of the output itself."""
    result: dict[str, Any] = {}
    plain = output.copy() if isinstance(output, np.ndarray) else output  # a row is a view of all rows
    for path, leaf in leaves(plain):
        result[f"{path} kind"] = leaf.kind
        if path and leaf.value is not None:
            result[path] = leaf.value
    return result


def _numeric(array: Array) -> Array:
    """Convert numbers to 64-bit floats or integers, and vectors of length one to scalars."""
    array = array.astype(np.int64 if array.dtype.kind == "i" else np.float64, copy=False)
    return array[:, 0] if array.shape[1] == 1 else array


def _uniform(outputs: list[Any]) -> Array | None:
    """Return the one column of outputs that are all numbers of one type, or vectors of one shape and type, else None.

    It is a shortcut past the canonical form. Other outputs, and integers that no float represents exactly, give None.
    """
    kinds = set(map(type, outputs))
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind is float or issubclass(kind, np.floating):
        return np.array(outputs, dtype=np.float64) if np.dtype(kind).itemsize <= 8 else None
    if kind is int or kind is np.int64:
        try:
            integers = np.array(outputs, dtype=np.int64)
        except OverflowError:
            return None
        return integers if integers.min() >= -_EXACT and integers.max() <= _EXACT else None
    if kind is np.ndarray:
        shapes = {(output.shape, output.dtype) for output in outputs}
        first = outputs[0]
        if len(shapes) == 1 and first.dtype.kind in "if" and first.dtype.itemsize <= 8 and first.ndim and first.size:
            return _numeric(np.stack(outputs).reshape(len(outputs), -1))
    return None


def _as_columns(
    path: str, column: dict[int, Leaf], size: int, constants: dict[str, Any]
) -> Iterator[tuple[str, Array]]:
    """Yield the columns of one location in the outputs: the kinds of its leaves, and its numbers, if there are any.

    ``column`` has the leaf at ``path`` for each run that has one, by the number of the run; ``size`` is the number of
    runs. Where all runs have one kind of leaf, no column of kinds is needed: the kind is stored in ``constants``.
    """
    kinds = {leaf.kind for leaf in column.values()}
    if len(kinds) == 1 and len(column) == size:
        constants[f"{path} kind"] = kinds.pop()
    else:
        labels = np.full(size, _ABSENT, dtype=object)
        for run, leaf in column.items():
            labels[run] = leaf.kind
        yield f"{path} kind", labels
    values = {run: leaf.value for run, leaf in column.items() if leaf.value is not None}
    numbers = _numbers({run: value for run, value in values.items() if np.size(value)}, size)
    if numbers is not None:
        yield path, numbers


def _numbers(values: dict[int, Any], size: int) -> Array | None:
    """Return the numbers at one path as a column: integers if every run has one, else floats with NaN for missing
    values.

    Vectors are padded to one length; None if no run has a number.
    """
    if not values:
        return None
    vectors = {run: value for run, value in values.items() if isinstance(value, np.ndarray)}
    integers = len(values) == size and all(
        value.dtype.kind == "i" if isinstance(value, np.ndarray) else type(value) is int for value in values.values()
    )
    if not vectors:
        if integers:
            return np.array([values[run] for run in range(size)], dtype=np.int64)
        column = np.full(size, np.nan)
        column[list(values)] = list(values.values())
        return column
    width = max(value.size for value in vectors.values())
    if integers and len(vectors) == size and all(value.size == width for value in vectors.values()):
        return _numeric(np.stack([vectors[run] for run in range(size)]))
    matrix = np.full((size, width), np.nan)
    for run, value in values.items():
        if isinstance(value, np.ndarray):
            matrix[run, : value.size] = value
        else:
            matrix[run, 0] = value
    return matrix


Floats = NDArray[np.float64]

_FRACTION_STEPS = 2.0**20
_NO_BIT = 2000.0
UNORDERED_TRANSFORMS = frozenset(
    {"significant bits", "fraction", "kind of number", "position of the largest", "position of the smallest"}
    | {"bit", "stored bit", "hash bit", "residue", "letter", "parity", "pattern", "hash"}
)
"""Transforms whose order carries no meaning, so that large and small values need not favor different data sets."""


def lowest_bit(values: Array) -> Floats:
    """Return the exponent of the lowest set bit of each number; 2000 where there is none (zero, NaN and infinities).

    Floats are read from their memory: 52 bits of mantissa, to which normal numbers add a leading one, and 11 bits of
    exponent, whose offset for the lowest bit of the mantissa is 1075.

    >>> lowest_bit(np.array([1.0, 0.75, 2.0**-60, 12.0, 0.0])).tolist()
    [0.0, -2.0, -60.0, 2.0, 2000.0]
    """
    if values.dtype.kind in "iu":
        integers = values.astype(np.int64)
        low = (integers & -integers).view(np.uint64)
        return np.where(integers == 0, _NO_BIT, np.frexp(low.astype(np.float64))[1] - 1.0)
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    exponent = (bits >> 52) & 0x7FF
    mantissa = (bits & ((1 << 52) - 1)) | np.where(exponent > 0, np.int64(1 << 52), np.int64(0))
    low = (mantissa & -mantissa).astype(np.float64)
    position = np.maximum(exponent, 1) - 1075 + np.frexp(low)[1] - 1.0
    return np.where((values == 0) | ~np.isfinite(values), _NO_BIT, position)


def significant_bits(values: Array) -> Floats:
    """Return the number of significant binary digits.

    >>> significant_bits(np.array([1.0, 0.75, 10.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    numbers = values.astype(np.float64)
    return np.where(numbers == 0, 0.0, np.frexp(numbers)[1] - lowest_bit(values))


def fraction(values: Array) -> Floats:
    """Return the fractional part of each number, in [0, 1), rounded to 2^-20.

    Noise in whole numbers leaves it unchanged, so it can reveal the data.
    """
    with np.errstate(invalid="ignore"):
        return np.rint((values - np.floor(values)) * _FRACTION_STEPS) / _FRACTION_STEPS % 1.0


def number_class(values: Array) -> Floats:
    """Return a code for the class of each number.

    The codes are 0 ordinary, 1 NaN, 2 infinity, 3 minus infinity, 4 zero, 5 minus zero, 6 integer.

    >>> number_class(np.array([0.5, np.nan, np.inf, -np.inf, 0.0, -0.0, 3.0])).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    """
    numbers = values.astype(np.float64)
    zero = np.where(np.signbit(numbers), 5.0, 4.0)
    infinite = np.where(numbers > 0, 2.0, 3.0)
    with np.errstate(invalid="ignore"):
        result = np.where(numbers == np.rint(numbers), 6.0, 0.0)
    result = np.where(numbers == 0, zero, result)
    return np.where(np.isnan(numbers), 1.0, np.where(np.isinf(numbers), infinite, result))


def _without_warnings(summary: Callable[[Array], Array]) -> Callable[[Array], Floats]:
    """Return the summary with NaN counted as 0 and floating-point warnings turned off."""

    def summarize(matrix: Array) -> Floats:
        """Return the summary of each row, as floats."""
        with np.errstate(all="ignore"):
            filled = np.where(np.isnan(matrix), 0.0, matrix) if matrix.dtype.kind == "f" else matrix.astype(np.float64)
            return np.asarray(summary(filled), dtype=np.float64)

    return summarize


NUMBER_TRANSFORMS: dict[str, Callable[[Array], Floats]] = {
    "lowest bit": lowest_bit,
    "significant bits": significant_bits,
    "fraction": fraction,
    "kind of number": number_class,
}
VECTOR_SUMMARIES: dict[str, Callable[[Array], Floats]] = {
    "sum": _without_warnings(lambda m: m.sum(axis=1)),
    "largest": _without_warnings(lambda m: m.max(axis=1)),
    "smallest": _without_warnings(lambda m: m.min(axis=1)),
    "position of the largest": _without_warnings(lambda m: m.argmax(axis=1)),
    "position of the smallest": _without_warnings(lambda m: m.argmin(axis=1)),
    "l1 norm": _without_warnings(lambda m: np.abs(m).sum(axis=1)),
    "l2 norm": _without_warnings(lambda m: np.sqrt((m * m).sum(axis=1))),
    "number of zeros": _without_warnings(lambda m: (m == 0).sum(axis=1)),
    "last coordinate": lambda m: m[:, -1].astype(np.float64),
    "number of NaN": lambda m: np.isnan(m).sum(axis=1).astype(np.float64),
    "lowest bit of all": lambda m: lowest_bit(m.ravel()).reshape(m.shape).min(axis=1),
}


Labels = NDArray[np.bool_]
"""For each run whether it was on the neighbor."""
Bits = NDArray[np.uint8]

MODULI = (3, 5, 7, 8, 9, 10, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31)
_PARITY_COLUMNS = 12
_MAX_COLUMNS = 512
_SPARE_ROWS = 40
_MAX_INTEGER = 2.0**62
_MIN_VIOLATION_RATE = 0.05
_MOST_PARITIES = 3


@lru_cache(maxsize=1 << 16)
def label_hash(label: str) -> int:
    """Return a hash of a label that is identical in all processes.

    >>> label_hash("a") == label_hash("a"), label_hash("a") == label_hash("b")
    (True, False)
    """
    return int.from_bytes(blake2b(label.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def coordinate(column: Array, index: int | None) -> Array:
    """Return one number per run: the column itself, or one coordinate of it."""
    if column.ndim == 2:
        index = 0 if index is None else index
        return column[:, index] if index < column.shape[1] else np.full(len(column), np.nan)
    return column if not index else np.full(len(column), np.nan)


def integer_part(values: Array) -> NDArray[np.int64]:
    """Return the integer part of each number, rounded down; 0 for NaN, infinities and sizes from 2^62 on.

    >>> integer_part(np.array([2.5, -0.5, np.nan])).tolist()
    [2, -1, 0]
    """
    if values.dtype.kind in "iu":
        return values.astype(np.int64, copy=False)
    with np.errstate(invalid="ignore"):
        floors = np.floor(values)
        return np.where(np.abs(floors) < _MAX_INTEGER, floors, 0.0).astype(np.int64)


def _stored_words(values: Array) -> NDArray[np.int64]:
    """Return the 64 bits of each number in memory, read as a signed integer."""
    if values.dtype.kind in "iu":
        return values.astype(np.int64, copy=False)
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64)


def bit(values: Array, number: int, *, stored: bool = False) -> Bits:
    """Return bit ``number`` of each number: of its integer part or, if ``stored``, of its representation in memory.

    >>> bit(np.array([1, 2, 3]), 0).tolist(), bit(np.array([1.0, -1.0]), 63, stored=True).tolist()
    ([1, 0, 1], [0, 1])
    """
    words = _stored_words(values) if stored else integer_part(values)
    return ((words >> np.int64(number)) & np.int64(1)).astype(np.uint8)


def residues(values: Array, modulus: int) -> NDArray[np.int64]:
    """Return the remainder of the integer part of each number modulo ``modulus``, from 0 to ``modulus - 1``.

    >>> residues(np.array([8, -1]), 7).tolist()
    [1, 6]
    """
    return integer_part(values) % np.int64(modulus)


def chi_square_score(codes: Array, labels: Labels) -> float:
    """Return the chi-square statistic of a test that small integer codes have one distribution on both data sets.

    It is standardized by its mean and deviation under that hypothesis, ``(chi^2 - d) / sqrt(2 d)`` with d one less than
    the number of codes that occur; 0 if there is one code only, or no run of one data set.

    >>> chi_square_score(np.array([0, 1] * 50), np.array([False, True] * 50)) > 10
    True
    """
    first, second = (np.bincount(codes[chosen]) for chosen in (labels, ~labels))
    size = max(first.size, second.size)
    first, second = (np.pad(item, (0, size - item.size)).astype(float) for item in (first, second))
    total = first + second
    occupied = total > 0
    degrees = int(occupied.sum()) - 1
    if degrees < 1 or not first.sum() or not second.sum():
        return 0.0
    p = first.sum() / total.sum()
    chi = float((((first - p * total) ** 2)[occupied] / (p * (1 - p) * total[occupied])).sum())
    return (chi - degrees) / math.sqrt(2 * degrees)


def bit_z_scores(values: Array, labels: Labels, *, stored: bool) -> NDArray[np.float64]:
    """Return the two-sample z-score of the proportion of ones for each of the 64 bits of a number, lowest bit first.

    The bits are those of the integer part or, if ``stored``, of the representation in memory. A large score says that
    the bit has different proportions on the two data sets.
    """
    words = _stored_words(values) if stored else integer_part(values)
    ones = np.unpackbits(words.astype("<i8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    return proportion_z_scores(ones, labels)


def proportion_z_scores(ones: Array, labels: Labels) -> NDArray[np.float64]:
    """Return the two-sample z-score of the proportion of ones in each column.

    >>> proportion_z_scores(np.array([[0, 1], [1, 1]] * 50), np.array([False, True] * 50)).tolist()
    [10.0, 0.0]
    """
    first, second = ones[labels], ones[~labels]
    if not len(first) or not len(second):
        return np.zeros(ones.shape[1])
    middle = ones.mean(axis=0)
    spread = np.sqrt(middle * (1 - middle) * (1 / len(first) + 1 / len(second)))
    gap = np.abs(first.mean(axis=0) - second.mean(axis=0))
    return np.asarray(np.divide(gap, spread, out=np.zeros_like(gap), where=spread > 0), dtype=np.float64)


def strongest_parities(matrix: Bits, labels: Labels) -> list[list[int]]:
    """Return the subsets of the first dozen columns whose parities distinguish the two data sets best.

    ``matrix`` has a row of bits for each run. The difference of the mean of ``(-1)^parity`` between the data sets is
    computed for all subsets at once by the fast Walsh-Hadamard transform. Of the three largest, those of at least two
    columns are returned.

    >>> from dither.randomness import SYSTEM
    >>> free = (SYSTEM.words(1600) % 2).astype(np.uint8).reshape(400, 4)
    >>> free[:, 3] = (free[:, 0] + free[:, 1] + (np.arange(400) >= 200)) % 2
    >>> [0, 1, 3] in strongest_parities(free, np.arange(400) >= 200)
    True
    """
    columns = matrix[:, :_PARITY_COLUMNS]
    width = columns.shape[1]
    codes = columns.astype(np.int64) @ (1 << np.arange(width))
    sums = np.bincount(codes[labels], minlength=1 << width) / max(1, int(labels.sum()))
    sums = sums - np.bincount(codes[~labels], minlength=1 << width) / max(1, int((~labels).sum()))
    for index in range(width):
        pairs = sums.reshape(-1, 2, 1 << index)
        sums = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
    best = np.argsort(-np.abs(sums), kind="stable")[:_MOST_PARITIES]
    return [[index for index in range(width) if code >> index & 1] for code in best.tolist() if code & (code - 1)]


def constant_parities(matrix: Bits, labels: Labels) -> list[list[int]]:
    """Return at most three sets of columns whose parity is constant on one data set and not on the other.

    ``matrix`` has a row of bits for each run. The sets are the null space modulo 2 of the runs on either data set, with
    a column of ones for parities that are always odd; 40 more rows than columns are required, so that independent bits
    satisfy some relation with probability at most about 2^-40. Sets are ordered by how often the other data set
    violates them, which must be in more than 5 % of its runs.

    >>> from dither.randomness import SYSTEM
    >>> free = (SYSTEM.words(60_000) % 2).astype(np.uint8).reshape(600, 100)
    >>> free[:300, 7] = free[:300, 20:90].sum(axis=1) % 2
    >>> sorted(constant_parities(free, np.arange(600) >= 300)[0]) == [7, *range(20, 90)]
    True
    """
    result: list[tuple[float, list[int]]] = []
    for side in (labels, ~labels):
        first, second = matrix[side], matrix[~side]
        width = min(matrix.shape[1], _MAX_COLUMNS, len(first) - _SPARE_ROWS)
        if width < 1 or not len(second):
            continue
        ones = np.ones((len(first), 1), dtype=np.uint8)
        basis = null_space(np.hstack([first[:, :width], ones])[: width + 1 + _SPARE_ROWS])
        for relation in basis:
            chosen = np.flatnonzero(relation[:-1])
            if not chosen.size:
                continue
            constant, violated = (
                (side_bits[:, chosen].sum(axis=1) + relation[-1]) % 2 for side_bits in (first, second)
            )
            gap = float(violated.mean() - constant.mean())
            if gap > _MIN_VIOLATION_RATE:
                result.append((gap, chosen.tolist()))
    result.sort(key=lambda item: -item[0])
    return [chosen for _, chosen in result[:_MOST_PARITIES]]


def null_space(matrix: Bits) -> Bits:
    """Return a basis of the null space ``{x : matrix @ x = 0 modulo 2}``, one vector per row.

    >>> null_space(np.array([[1, 1, 0], [0, 1, 1]], dtype=np.uint8)).tolist()
    [[1, 1, 1]]
    """
    rows, (height, width) = matrix.copy(), matrix.shape
    pivots: list[int] = []
    for column in range(width):
        rank = len(pivots)
        if rank == height:
            break
        ones = np.flatnonzero(rows[rank:, column])
        if not ones.size:
            continue
        first = rank + int(ones[0])
        rows[[rank, first]] = rows[[first, rank]]
        others = rows[:, column].astype(bool)
        others[rank] = False
        rows[others] ^= rows[rank]
        pivots.append(column)
    free = [column for column in range(width) if column not in set(pivots)]
    basis = np.zeros((len(free), width), dtype=np.uint8)
    for index, column in enumerate(free):
        basis[index, column] = 1
        basis[index, pivots] = rows[: len(pivots), column]
    return basis


Position = tuple[str, int | None]

_MAX_POSITIONS = 256
_MAX_DISCRIMINANT = 48
_MAX_PAIRED = 6
_MAX_TRAINING_RUNS = 20_000
_PATTERN = 8
_INTEGER_BITS = 8
_SCREENED_RUNS = 1200
_MAX_BITS = 512
_RIDGE = 1e-12


def numeric_matrix(outputs: Outputs, positions: tuple[Position, ...]) -> Floats:
    """Return the numbers at several positions as floats, one column per position."""
    result = np.empty((outputs.size, len(positions)))
    for target, (name, index) in enumerate(positions):
        column = outputs.column(name)
        result[:, target] = np.nan if column.dtype == object else coordinate(column, index)
    return result


class OutputView:
    """A function of an output that returns one number or label: what the learner compares between the data sets."""

    transform: str
    """The name of the function."""
    only_atoms: bool = False
    """Whether only values that recur can distinguish the data sets, as those of a hash."""
    training_runs: int = 0
    """The number of runs, counted from the first, from which the weights of the view were learned."""

    @property
    def ordered(self) -> bool:
        """Return whether large values may favor one data set and small ones the other; codes have no such order."""
        return self.transform not in UNORDERED_TRANSFORMS

    @property
    def name(self) -> str:
        """Return a description for reports."""
        raise NotImplementedError

    def __call__(self, outputs: Outputs) -> Array:
        """Return the value of the view for each run."""
        raise NotImplementedError


@dataclass(frozen=True)
class JointSummary(OutputView):
    """A summary, or a projection by ``weights``, of the numbers at several positions."""

    positions: tuple[Position, ...]
    transform: str
    weights: tuple[float, ...] = ()
    training_runs: int = 0

    @property
    def name(self) -> str:
        """Return a description for reports."""
        names = [f"{name or 'output'}{'' if index is None else f'[{index}]'}" for name, index in self.positions]
        return f"{self.transform} of {_listed(names)}"

    def __call__(self, outputs: Outputs) -> Array:
        """Return the summary or projection of each run."""
        numbers = numeric_matrix(outputs, self.positions)
        if self.weights:
            with np.errstate(all="ignore"):
                filled = np.nan_to_num(numbers, posinf=0.0, neginf=0.0)
                return np.asarray(np.round(filled @ np.asarray(self.weights), 9), dtype=np.float64)
        return VECTOR_SUMMARIES[self.transform](numbers)


@dataclass(frozen=True)
class BitCombination(OutputView):
    """Several bits, each a :class:`View`, as one code without an order."""

    transform: str
    """``"parity"``: the sum of the bits modulo 2; ``"pattern"``: the bits read as one binary number, lowest first."""
    bits: tuple[View, ...]

    @property
    def name(self) -> str:
        """Return a description for reports."""
        return f"{self.transform} of {_listed([bit.name for bit in self.bits])}"

    def __call__(self, outputs: Outputs) -> Array:
        """Return the parity (0 or 1) or the binary number of each run."""
        total = np.zeros(outputs.size)
        for position, bit in enumerate(self.bits):
            total += bit(outputs) * (1.0 if self.transform == "parity" else 2.0**position)
        return total % 2 if self.transform == "parity" else total


def _listed(names: list[str]) -> str:
    """Return the first four names as a list in words, with the number of those left out."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


@dataclass(frozen=True)
class Digest(OutputView):
    """A hash of several columns, which detects that all of them recur together."""

    columns: tuple[tuple[str, int], ...]
    subject: str

    transform = "hash"
    only_atoms = True

    @property
    def name(self) -> str:
        """Return a description for reports."""
        return f"{self.transform} of {self.subject}"

    def __call__(self, outputs: Outputs) -> Array:
        """Return a 53-bit hash of all the columns for each run, as a float; runs with equal hashes recur as a whole.

        It is a multilinear hash: every word is mixed, multiplied by an odd factor that depends on its position, and
        added modulo 2^64.
        """
        total = np.zeros(outputs.size, dtype=np.uint64)
        for index, (name, width) in enumerate(self.columns):
            column = outputs.column(name)
            if column.dtype == object:
                words = np.fromiter((label_hash(label) for label in column), np.uint64, column.size)[:, None]
            else:
                words = _as_matrix(column)[:, :width].astype(np.float64).view(np.uint64)
            factors = _splitmix64(np.arange(words.shape[1], dtype=np.uint64) + np.uint64(index << 32)) | np.uint64(1)
            total += (_splitmix64(words) * factors).sum(axis=1, dtype=np.uint64)
        return (_splitmix64(total) >> np.uint64(11)).astype(np.float64)


def _splitmix64(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each 64-bit word mixed by SplitMix64 (Steele, Lea and Flood 2014).

    The mixing is a bijection in which every bit of the input affects every bit of the result.
    """
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def joint_views(outputs: Outputs, labels: Labels, columns: list[tuple[str, Array]]) -> Iterator[OutputView]:
    """Yield views of the varying columns taken jointly: summaries, projections, parities and hashes."""
    numeric = [(name, column) for name, column in columns if column.dtype != object]
    positions = tuple(_positions(numeric))
    if len(numeric) > 1:
        yield from (JointSummary(positions, transform) for transform in VECTOR_SUMMARIES)
    if len(positions) > 1:
        yield from _projections(outputs, labels, positions)
    yield from _parities(outputs, labels, columns, positions)
    widths = tuple((name, _as_matrix(column).shape[1]) for name, column in columns)
    if len(widths) > 1 or (widths and widths[0][1] > 1):
        yield Digest(widths, "the whole output")
    text_columns = tuple((name, 1) for name, column in columns if column.dtype == object)
    if 1 < len(text_columns) < len(widths):
        yield Digest(text_columns, "all non-numeric parts")
    for part, inside in _parts(widths).items():
        if 1 < len(inside) < len(widths):
            yield Digest(tuple(inside), part)


def _parts(widths: tuple[tuple[str, int], ...]) -> dict[str, list[tuple[str, int]]]:
    """Return the columns within each of the outermost parts of the output, by the name of the part.

    A column is its name, which is a path such as ``[0].a``, and its width. The outermost part is the first step of the
    path; only the first 16 parts are used.
    """
    result: dict[str, list[tuple[str, int]]] = {}
    for name, width in widths:
        for end in range(1, len(name)):
            if name[end] in "[.{ " and name[0] in "[.{":
                result.setdefault(name[:end], []).append((name, width))
                break
    return dict(list(result.items())[:16])


def _positions(numeric: list[tuple[str, Array]]) -> Iterator[Position]:
    """Yield the positions of the first 256 numbers in an output: a column, and the index in it if it has vectors."""
    remaining = _MAX_POSITIONS
    for name, column in numeric:
        width = _as_matrix(column).shape[1]
        yield from ((name, index if column.ndim == 2 else None) for index in range(min(width, remaining)))
        remaining -= min(width, remaining)


def _projections(outputs: Outputs, labels: Labels, positions: tuple[Position, ...]) -> Iterator[JointSummary]:
    """Yield summaries of several numbers at once: Fisher's linear discriminant of the data sets, and differences.

    The discriminant is learned on the first runs, from at most 48 of the ``positions`` (the numbers in the outputs).
    The first six positions are also subtracted in pairs; where there are more, so is their alternating sum.
    """
    selected = positions[:_MAX_DISCRIMINANT]
    training_runs = min(_MAX_TRAINING_RUNS, labels.size // 2)
    numbers, labels = numeric_matrix(outputs.rows(0, training_runs), selected), labels[:training_runs]
    numbers = np.nan_to_num(numbers, posinf=0.0, neginf=0.0)
    with np.errstate(all="ignore"):
        scale = numbers.std(axis=0)
        scale[~(scale > 0) | ~np.isfinite(scale)] = 1.0
        scaled = (numbers - numbers.mean(axis=0)) / scale
        means = [scaled[chosen].sum(axis=0) / max(1, chosen.sum()) for chosen in (labels, ~labels)]
        gap = means[0] - means[1]
        residuals = np.vstack([scaled[labels] - means[0], scaled[~labels] - means[1]])
        covariance = residuals.T @ residuals / max(1, len(residuals)) + _RIDGE * np.eye(len(selected))
        if np.isfinite(covariance).all() and np.isfinite(gap).all():
            weights = np.linalg.lstsq(covariance, gap, rcond=None)[0]
            weights = weights / max(float(np.abs(weights).max()), 1e-300) / scale
            if np.isfinite(weights).all() and weights.any():
                yield JointSummary(selected, "discriminant", tuple(weights.tolist()), training_runs=training_runs)
    paired = range(min(len(positions), _MAX_PAIRED))
    for first in paired:
        for second in paired:
            if first < second:
                yield JointSummary((positions[first], positions[second]), "difference", (1.0, -1.0))
    if len(positions) > _MAX_PAIRED:
        signs = tuple(1.0 if index % 2 == 0 else -1.0 for index in range(len(positions)))
        yield JointSummary(positions, "alternating sum", signs)


def _parities(
    outputs: Outputs, labels: Labels, columns: list[tuple[str, Array]], positions: tuple[Position, ...]
) -> Iterator[BitCombination]:
    """Yield parities of bits that distinguish the data sets on a sample of the runs, and a pattern of bits.

    ``columns`` are the named parts of the outputs, of which texts give one bit of their hash each. ``positions`` are
    the numbers in them, which give the low bits of the integer part and, for the first eight, the 52 bits of the
    mantissa. Bits that do not vary in the sample are left out.
    """
    step = max(1, labels.size // _SCREENED_RUNS)
    sample, chosen = outputs.select(np.arange(0, labels.size, step)), labels[::step]
    text_names = [name for name, column in columns if column.dtype == object][:_MAX_POSITIONS]
    candidates = [View(name, "bit", index) for name, index in positions]
    candidates += [View(name, "hash bit") for name in text_names]
    candidates += [View(name, "bit", index, n) for n in range(1, _INTEGER_BITS) for name, index in positions]
    candidates += [View(name, "stored bit", index, n) for name, index in positions[:8] for n in range(52)]
    varying: list[View] = []
    bit_columns: list[Array] = []
    for bit in candidates[: 4 * _MAX_BITS]:
        column = bit(sample).astype(np.uint8)
        if column.min(initial=1) < column.max(initial=0):
            varying.append(bit)
            bit_columns.append(column)
        if len(varying) == _MAX_BITS:
            break
    if len(varying) < 2:
        return
    matrix = np.stack(bit_columns, axis=1)
    for result in (strongest_parities(matrix, chosen), constant_parities(matrix, chosen)):
        chosen_bits = [tuple(varying[index] for index in subset) for subset in result]
        yield from (BitCombination("parity", bits) for bits in chosen_bits if len(bits) > 1)
    yield BitCombination("pattern", tuple(varying[:_PATTERN]))


_MANY_COLUMNS = 12
_MAX_VIEWED = 60
_MAX_COORDINATES = 24
_MIN_SCORE = 3.5
_SCREENED = 200_000
_SCREENED_ROWS = 20_000
_TEXTS = 2000
_LETTERS = 1 << 13
_TOKENS = 40
_TOKEN = re.compile(r"[A-Za-z]+|\d+|[^A-Za-z\d\s]")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class View(OutputView):
    """One transform of one column.

    ``index`` selects a coordinate of a vector. ``number`` is the bit, the modulus, or the position of a character, word
    or number within a text.
    """

    column: str
    transform: str = "value"
    index: int | None = None
    number: int = 0

    @property
    def name(self) -> str:
        """Return a description for reports."""
        column = self.column or "output"
        if self.column.startswith(" "):  # a property of the output as a whole
            column = f"output{self.column}"
        index = "" if self.index is None else f"[{self.index}]"
        is_numbered = self.transform in _NUMBERED or self.transform in _TEXT
        transform = f"{self.transform} {self.number}" if is_numbered else self.transform
        return f"{column}{index}" if self.transform == "value" else f"{transform} of {column}{index}"

    def __call__(self, outputs: Outputs) -> Array:
        """Return the number or label of each run."""
        column = outputs.column(self.column)
        if self.column.endswith(" kind") and column.dtype == object:
            return _TEXT[self.transform](column, self.number) if self.transform in _TEXT else column
        if self.transform in _TEXT:
            return np.full(outputs.size, np.nan)
        if self.transform in VECTOR_SUMMARIES:
            return VECTOR_SUMMARIES[self.transform](_as_matrix(column))
        if self.index is not None:
            column = coordinate(column, self.index)
        elif column.ndim == 2:  # a vector in place of a number
            column = np.full(outputs.size, np.nan)
        if self.transform in _NUMBERED:
            return _NUMBERED[self.transform](column, self.number).astype(np.float64)
        if self.transform in NUMBER_TRANSFORMS:
            return NUMBER_TRANSFORMS[self.transform](column)
        return column.astype(np.float64)


def _character(column: Array, number: int) -> Array:
    """Return the character code at a position, counted from the end if negative; -1 if the text is too short."""
    min_length = number + 1 if number >= 0 else -number
    return np.array([float(ord(text[number])) if len(text) >= min_length else -1.0 for text in column])


def _word(column: Array, number: int) -> Array:
    """Return the word at a position of each text; an empty string if the text has fewer."""
    result = np.empty(column.size, dtype=object)
    for index, text in enumerate(column):
        words = _TOKEN.findall(text)
        result[index] = words[number] if number < len(words) else ""
    return result


def _number_in_text(column: Array, number: int) -> Array:
    """Return the number at a position of each text; NaN if the text has fewer."""
    result = np.full(column.size, np.nan)
    for index, text in enumerate(column):
        written = _NUMBER.findall(text)
        if number < len(written):
            result[index] = float(written[number])
    return result


def _hash_bit(column: Array, number: int) -> Array:
    """Return bit ``number`` of the hash of each text, 0 or 1."""
    return np.array([float(label_hash(text) >> number & 1) for text in column])


_TEXT = {"letter": _character, "word": _word, "number in the text": _number_in_text, "hash bit": _hash_bit}
"""Transforms of a column of texts and a number: the position in the text, or the bit."""
_NUMBERED: dict[str, Callable[[Array, int], Array]] = {
    "bit": bit,
    "stored bit": partial(bit, stored=True),
    "residue": residues,
}
"""Transforms of a column of numbers and a number: the bit, or the modulus."""


def views(outputs: Outputs, labels: Labels) -> Iterator[OutputView]:
    """Yield the views worth trying: of each column that varies, at most 60 of them, and of all columns jointly.

    If there are more columns, those are examined that separate the two data sets best; ``labels`` are True for runs on
    the neighbor.
    """
    columns = [(name, column) for name, column in outputs.columns.items() if _is_varying(column)]
    transforms = NUMBER_TRANSFORMS if len(columns) <= _MANY_COLUMNS else ("kind of number",)
    ranked = columns
    if len(columns) > _MAX_VIEWED:
        ranked = sorted(columns, key=lambda item: -float(_separation(item[1], labels).max(initial=0.0)))
    for name, column in ranked[:_MAX_VIEWED]:
        if column.ndim == 2:
            yield from _vector_views(name, column, labels)
            continue
        yield View(name)
        if column.dtype == object:
            yield from _text_views(name, column, labels)
        else:
            yield from (View(name, transform) for transform in transforms)
            yield from _bit_views(name, column, labels, [None])
    yield from joint_views(outputs, labels, columns)


def _is_varying(column: Array) -> bool:
    """Return whether a column has more than one value; numbers are compared bit by bit."""
    if column.dtype == object:
        first = column[0] if column.size else None
        return any(label != first for label in column)
    words = column if column.dtype.kind in "iu" else np.ascontiguousarray(column, dtype=np.float64).view(np.int64)
    return bool(len(words)) and bool((words != words[0]).any())


def _vector_views(name: str, column: Array, labels: Labels) -> Iterator[OutputView]:
    """Yield views of a column of vectors: summaries, a projection, its strongest coordinates and their bits.

    ``name`` is that of ``column``, which has a row for each run. The projection weights each coordinate by its
    difference of means over its variance, learned on the first half.
    """
    yield from (View(name, transform) for transform in VECTOR_SUMMARIES)
    training_runs = labels.size // 2
    numbers, first = (
        np.nan_to_num(column[:training_runs].astype(np.float64), posinf=0.0, neginf=0.0),
        labels[:training_runs],
    )
    with np.errstate(all="ignore"):
        mean_difference = _mean(numbers[first]) - _mean(numbers[~first])
        weights = np.nan_to_num(mean_difference / numbers.var(axis=0), posinf=0.0, neginf=0.0)
    if weights.any():
        positions = tuple((name, index) for index in range(column.shape[1]))
        yield JointSummary(positions, "projection", tuple(weights.tolist()), training_runs)
    strongest = np.argsort(-_separation(column, labels), kind="stable")[:_MAX_COORDINATES].tolist()
    for index in strongest:
        yield View(name, index=index)
        if column.shape[1] <= 4:
            yield from (View(name, transform, index) for transform in NUMBER_TRANSFORMS)
    yield from _bit_views(name, column, labels, strongest)


def _mean(rows: Array) -> Floats:
    """Return the mean row; zeros if there are no rows."""
    return np.asarray(rows.sum(axis=0) / max(1, len(rows)), dtype=np.float64)


def _bit_views(name: str, column: Array, labels: Labels, indices: list[int | None]) -> Iterator[View]:
    """Yield the bits and residues that clearly distinguish the two data sets on a sample of the runs.

    ``indices`` are the coordinates of the column ``name`` to examine (None: it has one number for each run). At most
    three views of each kind are returned: of the bits in memory, of the bits of the integer part, and of residues, each
    with a z-score above 3.5.
    """
    rows = min(_SCREENED_ROWS, max(500, _SCREENED // max(1, len(indices))))
    result: list[tuple[float, View]] = []
    sample, chosen = column[:rows], labels[:rows]
    for index in indices:
        values = coordinate(sample, index)
        for transform, stored in (("stored bit", True), ("bit", False)):
            if transform == "bit" or values.dtype.kind == "f":
                scores = bit_z_scores(values, chosen, stored=stored)
                best = np.argsort(-scores, kind="stable")[:3].tolist()
                result += [
                    (float(scores[position]), View(name, transform, index, number=position)) for position in best
                ]
        for modulus in MODULI:
            score = chi_square_score(residues(values, modulus), chosen)
            result.append((score, View(name, "residue", index, number=modulus)))
    result.sort(key=lambda item: -item[0])
    for kind in ("stored bit", "bit", "residue"):
        yield from [view for scores, view in result if scores > _MIN_SCORE and view.transform == kind][:3]


def _text_views(name: str, column: Array, labels: Labels) -> Iterator[View]:
    """Yield the characters, words and numbers of texts that clearly distinguish the data sets on a sample of the runs.

    ``name`` is that of the ``column`` of texts. Characters are counted from the beginning and from the end, and each is
    tested by its lowest bit and by a bit of a multiplicative hash, words by five bits of a hash. Nothing is yielded
    where the texts are short or hardly vary.
    """
    texts, chosen = [str(text) for text in column[:_TEXTS]], labels[:_TEXTS]
    longest = min(_LETTERS, max(map(len, texts), default=0))
    if longest < 4 or len(set(texts)) < 3:
        return
    result: list[tuple[float, View]] = []
    for sign in (1, -1):
        letters = np.array([text[:longest] if sign > 0 else text[: -longest - 1 : -1] for text in texts])
        codes = letters.view(np.uint32).reshape(len(texts), -1).astype(np.int64)
        for multiplier in (1, 0x2545F491):
            scores = proportion_z_scores((codes * multiplier >> (0 if multiplier == 1 else 13)) & 1, chosen)
            for position in np.argsort(-scores, kind="stable")[:2].tolist():
                result.append(
                    (float(scores[position]), View(name, "letter", number=position if sign > 0 else -position - 1))
                )
    words = [_TOKEN.findall(text) for text in texts]
    for position in range(min(_TOKENS, max(map(len, words), default=0))):
        codes = np.array([label_hash(word[position]) & 31 if position < len(word) else 32 for word in words])
        result.append((chi_square_score(codes, chosen), View(name, "word", number=position)))
    result.sort(key=lambda item: -item[0])
    yield from [view for scores, view in result if scores > _MIN_SCORE][:6]
    count = max((len(_NUMBER.findall(text)) for text in texts[:50]), default=0)
    yield from (View(name, "number in the text", number=position) for position in range(min(4, count)))


def _separation(column: Array, labels: Labels) -> Floats:
    """Return a rough standardized distance between the two data sets in each coordinate, used to rank coordinates.

    ``column`` has a row for each run. The distance of labels is the l1 distance of their frequencies (hashed to 1,024
    values); that of numbers is the largest difference of means among the value, its distance from the median, and
    whether it is finite.
    """
    if column.dtype == object:
        codes = np.fromiter((label_hash(label) & 1023 for label in column), np.int64, column.size)
        first, second = (np.bincount(codes[chosen], minlength=codes.max() + 1) for chosen in (labels, ~labels))
        return np.array([np.abs(first / max(1, first.sum()) - second / max(1, second.sum())).sum()])
    matrix = _as_matrix(column).astype(np.float64)
    numbers = np.nan_to_num(matrix, posinf=0.0, neginf=0.0)
    with np.errstate(all="ignore"):
        deviations = np.abs(numbers - np.median(numbers, axis=0))  # the noise may differ where the mean does not
        features = (
            numbers / numbers.std(axis=0),
            deviations / deviations.std(axis=0),
            (~np.isfinite(matrix)).astype(np.float64),
        )
        gaps = [np.abs(transform[labels].mean(axis=0) - transform[~labels].mean(axis=0)) for transform in features]
    return np.asarray(np.nan_to_num(np.maximum.reduce(gaps)), dtype=np.float64)
