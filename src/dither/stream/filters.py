"""Lower-triangular filters in whole numbers: from fresh noise to the noise of running sums, with their sensitivities.

A filter turns independent noise ``z_1, z_2, ...`` into the noise ``w_t`` of the running sum of step t. Two forms.

*Buffers and bands* factor the running sum as ``A = (A C^-1) C`` with a Toeplitz matrix C, ``c_0 = 1``. They compute
``v_t = z_t - g_t(v_1, ..., v_(t-1))`` and ``w_t = v_1 + ... + v_t``, where g rounds the linear function ``sum of c_j
v_(t-j)``: what is released at t is the sum of ``x_s + v_s``.

*Sensitivity.* Let one person change the values x by d. The same releases then come from ``v - d``, and thus from noise
that differs by ``u_t = -d_t + g_t(v - d) - g_t(v)``. Were g linear, u were ``-C d``. All that rounding can add is
``e_t``, of which ``|e_t| <= rounding`` is known: a floor of a sum moves by less than 1 more than the sum, and buffer i,
rounded at every step, is at most ``1 / (1 - theta_i)`` units of its finer lattice away. Hence ``|u|_2 <= |C d|_2 +
rounding * sqrt(n)``, on every path, whatever was released before: so later values, and whether a person takes part,
may depend on earlier releases. Nothing else of the filter matters to privacy.

*Worst pattern.* Let c be non-negative and non-increasing. The inner product of columns i < j of C is the sum over s < n
- j of ``c_s c_(s+j-i)``: it does not increase in j, nor in the distance j - i. In any pattern of at most k steps that
are at least b apart, the m-th step is not before (m-1) b, and the m-th and l-th are at least (m-l) b apart. So the
pattern 0, b, 2b, ... has the largest inner products, all of them non-negative, hence the largest norm; opposite signs
and smaller changes only lessen it (Kalinin and Lampert 2024 have the same pattern for their matrices). For several
series, d_t is a vector with norm at most that of one participation, and the inner products of these are largest where
they are equal.

*The tree* (Fenwick's form of the binary tree) gives step t the noise ``w_t = z_t + w_(t - lowbit(t))``: z_t is the
noise of the sum over the last ``lowbit(t)`` steps, and nothing is rounded. A step is in at most one node of each size.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dither.stream.keyed import Lattice

Floats = NDArray[np.float64]
SAFE = 1 << 62
"""Whole numbers below it are added in 64 bits; larger ones are Python's."""
ROOT_BITS = 64


class FilterState(Protocol):
    """The secret state of a filter: what later noise depends on."""

    def advance(self, fresh: Lattice) -> Lattice:
        """The noise of the running sums, a row for each row of fresh noise."""

    def record(self) -> dict[str, Any]:
        """All of it, as :meth:`Filter.start` takes it; secret."""


class Filter(Protocol):
    """What a plan needs to know of a filter for a known number of steps."""

    @property
    def length(self) -> int:
        """The number of steps."""

    @property
    def rounding(self) -> Fraction:
        """How much more than linear the fresh noise of a step can move."""

    @property
    def decreasing(self) -> bool:
        """Whether the coefficients are as the proof of the worst pattern needs them."""

    def l2_sensitivity(self, participations: int, separation: int) -> Fraction:
        """The largest l2 norm of a sum of columns that the schema allows, rounded up."""

    def row(self, step: int) -> Floats:
        """The coefficients of the fresh noise in the noise of the running sum of a step (from 1)."""

    def squared_row(self, step: int) -> float:
        """The sum of their squares: the variance of the running sum of a step, for fresh noise of variance 1."""

    def start(self, lanes: int, recorded: Mapping[str, Any] | None = None) -> FilterState:
        """The state before the first step, or the one that was recorded."""

    def record(self) -> dict[str, Any]:
        """Whole numbers from which :func:`~dither.stream.factorizations.from_record` makes the same filter."""


def as_wide(array: Lattice) -> Lattice:
    """The same numbers as Python's integers.

    >>> as_wide(np.array([1])).dtype
    dtype('O')
    """
    return array if array.dtype == object else array.astype(object)


def stored(array: Lattice) -> Any:
    """An array as a record keeps it: as it is, or as a list where its numbers are Python's.

    >>> stored(np.array([1, 2**70], dtype=object))
    [1, 1180591620717411303424]
    """
    return array.tolist() if array.dtype == object else array.copy()


def restored(content: Any) -> Lattice:
    """The array that was stored.

    >>> restored(stored(np.array([1, 2**70], dtype=object))).dtype, restored(stored(np.array([1]))).dtype
    (dtype('O'), dtype('int64'))
    """
    return content.copy() if isinstance(content, np.ndarray) else np.array(content, dtype=object)


def whole_numbers(rows: list[list[int]]) -> Lattice:
    """Rows as 64-bit integers, or as Python's where those could overflow.

    >>> whole_numbers([[1, 2**70]]).dtype
    dtype('O')
    """
    largest = max((max(map(abs, row)) for row in rows if row), default=0)
    return np.array(rows, dtype=np.int64 if largest < SAFE else object)


def advance_rows(step: Any, fresh: Lattice) -> Lattice:
    """``step(row)`` for each row of fresh noise, in one array."""
    out = np.empty_like(fresh)
    for i, row in enumerate(fresh):
        noise = step(row)
        if noise.dtype != out.dtype:
            out = out.astype(object)
        out[i] = noise
    return out


def window_variance(filter_: Filter, step: int, window: int | None = None) -> float:
    """The variance of the sum over the last ``window`` steps (all if None) at a step, for fresh noise of variance 1.

    >>> from dither.stream.tree import Tree
    >>> window_variance(Tree(8), 7), window_variance(Tree(8), 7, window=1)
    (3.0, 1.0)
    """
    if window is None or window >= step:
        return filter_.squared_row(step)
    row = filter_.row(step).copy()
    row[: step - window] -= filter_.row(step - window)
    return float(row @ row)
