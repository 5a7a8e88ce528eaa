"""Hadamard matrices: the sign in row i and column j is -1 to the number of bits that i and j have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def odd_parity(rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Where the sign is -1.

    >>> odd_parity(np.array([1, 3, 2]), np.array([1, 3, 1])).tolist()
    [True, False, False]
    """
    result: NDArray[np.bool_] = (np.bitwise_count(rows & columns) & 1).astype(np.bool_)
    return result


def hadamard_transform(values: NDArray[Any]) -> NDArray[Any]:
    """The product of the last axis, whose length is a power of two, with the Hadamard matrix.

    Whole numbers must be of a type that holds the sum of the absolute values along the axis.

    >>> hadamard_transform(np.array([1, 2, 3, 4])).tolist()
    [10, -2, -4, 0]
    """
    size = values.shape[-1]
    result = np.array(values.reshape(-1, size).T, order="C")  # the axis first, so that all steps read whole runs
    spare, half = np.empty((size // 2, result.shape[1]), dtype=result.dtype), 1
    while half < size:
        pairs = result.reshape(size // (2 * half), 2, half, -1)
        low, high, difference = pairs[:, 0], pairs[:, 1], spare.reshape(size // (2 * half), half, -1)
        np.subtract(low, high, out=difference)
        low += high
        high[...] = difference
        half *= 2
    return np.ascontiguousarray(result.T).reshape(values.shape)
