"""Transforms of numbers and summaries of vectors that may reveal the data even where the values do not.

A textbook floating-point sampler adds noise of the right distribution and still leaks the data in the lowest bits of
the sum (Mironov 2012); rounding leaks in the fractional part, and missing values leak in the class of the number.
Each transform here isolates one such feature.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox.features import Array

Floats = NDArray[np.float64]

_FRACTION_STEPS = 2.0**20
_NO_BIT = 2000.0
UNORDERED_TRANSFORMS = frozenset(
    {"significant bits", "fraction", "kind of number", "place of the largest", "place of the smallest"}
    | {"bit", "stored bit", "residue", "letter"}
)
"""Transforms whose order carries no meaning, so that large and small values need not favor different data sets."""


def lowest_bit(values: Array) -> Floats:
    """The exponent of the lowest set bit.

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
    """The number of significant binary digits.

    >>> significant_bits(np.array([1.0, 0.75, 10.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    numbers = values.astype(np.float64)
    return np.where(numbers == 0, 0.0, np.frexp(numbers)[1] - lowest_bit(values))


def fraction(values: Array) -> Floats:
    """The fractional part, rounded to about a millionth: integer-valued noise does not hide it."""
    with np.errstate(invalid="ignore"):
        return np.rint((values - np.floor(values)) * _FRACTION_STEPS) / _FRACTION_STEPS % 1.0


def number_class(values: Array) -> Floats:
    """A code for the class of each number: ordinary, NaN, either infinity, either zero, integer.

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
    def summarize(matrix: Array) -> Floats:
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
    "place of the largest": _without_warnings(lambda m: m.argmax(axis=1)),
    "place of the smallest": _without_warnings(lambda m: m.argmin(axis=1)),
    "l1 norm": _without_warnings(lambda m: np.abs(m).sum(axis=1)),
    "l2 norm": _without_warnings(lambda m: np.sqrt((m * m).sum(axis=1))),
    "number of zeros": _without_warnings(lambda m: (m == 0).sum(axis=1)),
    "last coordinate": lambda m: m[:, -1].astype(np.float64),
    "number of NaN": lambda m: np.isnan(m).sum(axis=1).astype(np.float64),
    "lowest bit of all": lambda m: lowest_bit(m.ravel()).reshape(m.shape).min(axis=1),
}
