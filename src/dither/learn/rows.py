"""Arithmetic on rows in which the result for a row depends on no other row, to the last bit.

What a record adds to a sum must not depend on the other records, or one person more would move the parts of all.
Library products of matrices do not keep to that: they take rows in groups, with another order of additions for those
left over, so that a row at another place is rounded otherwise. Here products are of whole numbers, without rounding,
and sums over columns are taken in the order of the columns, for all rows alike.

>>> X, w = np.sin(np.arange(3030.0)).reshape(101, 30), np.cos(np.arange(30.0))
>>> bool(np.all(project(X, w, 1)[:-1] == project(X[:-1], w, 1)))
True
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ROW_BITS = 24
_ROWS = 1 << 13
_MIN_EXPONENT = -900  # numbers below 2^-900 are 0: powers of two beyond would not be floats


def row_norms(rows: Floats, order: int = 2) -> Floats:
    """The l2 norm of each row, or its l1 norm.

    >>> row_norms(np.array([[3.0, 4.0], [1.0, -1.0]])), row_norms(np.array([[3.0, -4.0]]), order=1)
    (array([5.        , 1.41421356]), array([7.]))
    """
    result = np.zeros(len(rows))
    for start in range(0, len(rows), _ROWS):
        total = result[start : start + _ROWS]
        for column in rows[start : start + _ROWS].T:
            total += np.abs(column) if order == 1 else column * column
    return result if order == 1 else np.sqrt(result, out=result)


def row_sums(values: Floats) -> Floats:
    """The sum of each row.

    >>> row_sums(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 7.])
    """
    result = np.zeros(len(values))
    for column in values.T:
        result += column
    return result


def project(rows: Floats, matrix: Floats, largest: float) -> Floats:
    """``rows @ matrix``, where no entry of the rows is above ``largest``, a public number, of which they are good to
    2^-22; the matrix is good to about 2^-23 of its largest entry.

    *Why rows are independent.* Rows are cut to whole numbers below 2^24, the matrix to whole numbers below ``2^28 /
    columns``: every product and every partial sum is below 2^53, and so exact in whichever order.

    >>> project(np.array([[1.0, 2.0]]), np.array([0.5, 0.25]), 2.0)
    array([1.])
    """
    unit = 2.0 ** (ROW_BITS - 1 - max(math.frexp(largest)[1], _MIN_EXPONENT))
    whole = rows * unit
    return whole_product(np.trunc(whole, out=whole), ROW_BITS, matrix) / unit


def whole_product(whole: Floats, bits: int, matrix: Floats) -> Floats:
    """``whole @ matrix``, for rows of whole numbers of at most ``2**bits``."""
    spare_bits = 52 - bits - len(matrix).bit_length()
    unit = 2.0 ** (spare_bits - max(math.frexp(float(np.abs(matrix).max(initial=0.0)))[1], _MIN_EXPONENT))
    result: Floats = whole @ np.rint(matrix * unit)
    result /= unit
    return result
