"""Numbers about numbers: the lowest bit of one, its kind, the sum and the largest of many.

A textbook sampler in floating point adds noise of the right law and still gives the data away in the last bits of
the sum, a rounding in the fraction, a missing value in the kind: each is a look of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox.features import Array

Floats = NDArray[np.float64]

_FINE = 2.0**20
_NO_BIT = 2000.0
UNORDERED = frozenset(
    {"significant bits", "fraction", "kind of number", "place of the largest", "place of the smallest"}
    | {"bit", "stored bit", "residue", "letter"}
)
"""Looks of which large and small do not speak for different data sets."""


def lowest_bit(values: Array) -> Floats:
    """The exponent of the last binary digit that is not 0.

    >>> lowest_bit(np.array([1.0, 0.75, 2.0**-60, 12.0, 0.0])).tolist()
    [0.0, -2.0, -60.0, 2.0, 2000.0]
    """
    if values.dtype.kind in "iu":
        whole = values.astype(np.int64)
        low = (whole & -whole).view(np.uint64)
        return np.where(whole == 0, _NO_BIT, np.frexp(low.astype(np.float64))[1] - 1.0)
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    exponent = (bits >> 52) & 0x7FF
    mantissa = (bits & ((1 << 52) - 1)) | np.where(exponent > 0, np.int64(1 << 52), np.int64(0))
    low = (mantissa & -mantissa).astype(np.float64)
    place = np.maximum(exponent, 1) - 1075 + np.frexp(low)[1] - 1.0
    return np.where((values == 0) | ~np.isfinite(values), _NO_BIT, place)


def significant_bits(values: Array) -> Floats:
    """How many binary digits a number needs.

    >>> significant_bits(np.array([1.0, 0.75, 10.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    numbers = values.astype(np.float64)
    return np.where(numbers == 0, 0.0, np.frexp(numbers)[1] - lowest_bit(values))


def fraction(values: Array) -> Floats:
    """What follows the point, to about a millionth: noise on whole numbers leaves it bare."""
    with np.errstate(invalid="ignore"):
        return np.rint((values - np.floor(values)) * _FINE) / _FINE % 1.0


def kind(values: Array) -> Floats:
    """A number for each kind of number: usual, NaN, the infinities, the two zeros, whole.

    >>> kind(np.array([0.5, np.nan, np.inf, -np.inf, 0.0, -0.0, 3.0])).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    """
    numbers = values.astype(np.float64)
    zero = np.where(np.signbit(numbers), 5.0, 4.0)
    endless = np.where(numbers > 0, 2.0, 3.0)
    with np.errstate(invalid="ignore"):
        result = np.where(numbers == np.rint(numbers), 6.0, 0.0)
    result = np.where(numbers == 0, zero, result)
    return np.where(np.isnan(numbers), 1.0, np.where(np.isinf(numbers), endless, result))


def _quietly(summary: Callable[[Array], Array]) -> Callable[[Array], Floats]:
    def made(matrix: Array) -> Floats:
        with np.errstate(all="ignore"):
            filled = np.where(np.isnan(matrix), 0.0, matrix) if matrix.dtype.kind == "f" else matrix.astype(np.float64)
            return np.asarray(summary(filled), dtype=np.float64)

    return made


NUMBER: dict[str, Callable[[Array], Floats]] = {
    "lowest bit": lowest_bit,
    "significant bits": significant_bits,
    "fraction": fraction,
    "kind of number": kind,
}
VECTOR: dict[str, Callable[[Array], Floats]] = {
    "sum": _quietly(lambda m: m.sum(axis=1)),
    "largest": _quietly(lambda m: m.max(axis=1)),
    "smallest": _quietly(lambda m: m.min(axis=1)),
    "place of the largest": _quietly(lambda m: m.argmax(axis=1)),
    "place of the smallest": _quietly(lambda m: m.argmin(axis=1)),
    "l1 norm": _quietly(lambda m: np.abs(m).sum(axis=1)),
    "l2 norm": _quietly(lambda m: np.sqrt((m * m).sum(axis=1))),
    "number of zeros": _quietly(lambda m: (m == 0).sum(axis=1)),
    "last coordinate": lambda m: m[:, -1].astype(np.float64),
    "number of NaN": lambda m: np.isnan(m).sum(axis=1).astype(np.float64),
    "lowest bit of all": lambda m: lowest_bit(m.ravel()).reshape(m.shape).min(axis=1),
}


__all__ = ["NUMBER", "UNORDERED", "VECTOR", "fraction", "kind", "lowest_bit", "significant_bits"]
