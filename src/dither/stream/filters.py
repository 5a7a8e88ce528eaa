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
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dither.exact import root_up
from dither.stream.keyed import Lattice

Floats = NDArray[np.float64]
SAFE = 1 << 62
"""Whole numbers below this are added in 64 bits; for larger ones, Python's integers are used."""
ROOT_BITS = 64


class FilterState(Protocol):
    """The secret state of a filter, on which later noise depends."""

    def advance(self, fresh: Lattice) -> Lattice:
        """Return the noise of the running sums after each step; ``fresh`` has a row of independent noise for each step,
        and a column for each series."""

    def record(self) -> dict[str, Any]:
        """Return the state in a form that can be stored, for :meth:`Filter.start`; it is secret."""


class Filter(Protocol):
    """The interface of a filter for a known number of steps."""

    @property
    def length(self) -> int:
        """Return the number of steps."""

    @property
    def rounding(self) -> Fraction:
        """Return a bound on how far rounding moves the fresh noise of a step beyond the linear filter, in lattice
        steps."""

    @property
    def decreasing(self) -> bool:
        """Return whether the coefficients are non-negative and non-increasing, as the proof of the worst
        pattern needs."""

    def l2_sensitivity(self, participations: int, separation: int) -> Fraction:
        """Return an upper bound on the l2 norm of the sum of the columns of at most ``participations`` steps that are
        at least ``separation`` apart."""

    def row(self, step: int) -> Floats:
        """Return the coefficients of the fresh noise in the noise of the running sum of a step (from 1)."""

    def squared_row(self, step: int) -> float:
        """Return the squared norm of :meth:`row`, the variance of a step's running sum for fresh noise of
        variance 1."""

    def start(self, lanes: int, recorded: Mapping[str, Any] | None = None) -> FilterState:
        """Return the state of ``lanes`` series that share this filter, before the first step or, if ``recorded`` is not
        None, as :meth:`FilterState.record` returned it."""

    def record(self) -> dict[str, Any]:
        """Return plain numbers from which :func:`~dither.stream.mechanism.from_record` builds an equal filter."""


def as_wide(array: Lattice) -> Lattice:
    """Convert 64-bit numbers to integers of Python, which never overflow."""
    return array if array.dtype == object else array.astype(object)


def stored(array: Lattice) -> Any:
    """Return an array in a form that can be encoded: a copy, or a list if it holds Python's integers.

    >>> stored(np.array([1, 2**70], dtype=object))
    [1, 1180591620717411303424]
    """
    return array.tolist() if array.dtype == object else array.copy()


def restored(content: Any) -> Lattice:
    """Return the array from its :func:`stored` form.

    >>> restored(stored(np.array([1, 2**70], dtype=object))).dtype, restored(stored(np.array([1]))).dtype
    (dtype('O'), dtype('int64'))
    """
    return content.copy() if isinstance(content, np.ndarray) else np.array(content, dtype=object)


def whole_numbers(rows: list[list[int]]) -> Lattice:
    """Return rows as 64-bit integers, or as Python's where those could overflow."""
    largest = max((max(map(abs, row)) for row in rows if row), default=0)
    return np.array(rows, dtype=np.int64 if largest < SAFE else object)


def advance_rows(step: Any, fresh: Lattice) -> Lattice:
    """Return ``step(row)`` for each row of fresh noise in order, as one array; ``step`` advances a state.

    If ``step`` returns Python's integers, since 64 bits could overflow, the result becomes an array of objects.
    """
    out = np.empty_like(fresh)
    for i, row in enumerate(fresh):
        noise = step(row)
        if noise.dtype != out.dtype:
            out = out.astype(object)
        out[i] = noise
    return out


def window_variance(filter_: Filter, step: int, window: int | None = None) -> float:
    """Return the variance of the noise in the sum over the last ``window`` steps (None: all) at a step, for fresh noise
    of variance 1."""
    if window is None or window >= step:
        return filter_.squared_row(step)
    row = filter_.row(step).copy()
    row[: step - window] -= filter_.row(step - window)
    return float(row @ row)


def square_root_coefficients(count: int) -> Floats:
    """Return the first ``count`` coefficients of the power series ``(1 - x)^(-1/2)``: 1, 1/2, 3/8, ..."""
    k = np.arange(1, count)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


@dataclass(frozen=True)
class Bands:
    """The first coefficients of the square root ``(1 - x)^(-1/2)``, in multiples of ``2^-bits``; zero after them.

    With as many bands as steps it is the square root itself, whose error is within an additive constant of the
    optimum (Henzinger, Upadhyay and Upadhyay 2023); with as many as the least separation of a person's steps no two
    columns of a person overlap (Kalinin and Lampert 2024). The memory is that of the bands.
    """

    length: int
    coefficients: tuple[int, ...]
    """The coefficients ``c_1, c_2, ...`` in multiples of ``2^-bits``; ``c_0`` is 1."""
    bits: int = 30

    @classmethod
    def square_root(cls, length: int, bands: int, bits: int = 30) -> Bands:
        """Return the filter with the first ``bands`` coefficients of the square root, rounded down."""
        count = min(bands, length)
        return cls(length, tuple(int(c * 2.0**bits) for c in square_root_coefficients(count)[1:].tolist()), bits)

    @property
    def rounding(self) -> Fraction:
        """Return 1, for the floor of a sum; 0 for a single band, where nothing is rounded."""
        return Fraction(1 if self.coefficients else 0)

    @property
    def decreasing(self) -> bool:
        """Return whether the coefficients are non-negative and non-increasing, as the proof of the worst
        pattern needs."""
        sequence = (1 << self.bits, *self.coefficients, 0)
        return all(a >= b for a, b in pairwise(sequence))

    def l2_sensitivity(self, participations: int, separation: int) -> Fraction:
        """Return the l2 norm of the sum of the filter's columns 0, b, 2b, ..., one for each participation, with b the
        separation, rounded up."""
        column = np.zeros(self.length, dtype=object)
        column[: len(self.coefficients) + 1] = [1 << self.bits, *self.coefficients]
        total = column.copy()
        for start in range(separation, min(self.length, participations * separation), separation):
            total[start:] += column[: self.length - start]
        return root_up(Fraction(int((total * total).sum()), 1 << (2 * self.bits)), ROOT_BITS)

    @cached_property
    def response(self) -> Floats:
        """Return ``b_0, b_1, ...``, the running sums of the inverse filter's coefficients, in floats."""
        c = np.array(self.coefficients) / 2.0**self.bits
        inverse = np.zeros(self.length)
        inverse[0] = 1.0
        for step in range(1, self.length):
            count = min(step, c.size)
            inverse[step] = -float(c[:count] @ inverse[step - count : step][::-1])
        return np.cumsum(inverse)

    @cached_property
    def _squares(self) -> Floats:
        """Return the variance of the noise in the running sum of each step, for fresh noise of variance 1."""
        return np.cumsum(self.response**2)

    def row(self, step: int) -> Floats:
        """Return the coefficients of the fresh noise in the running sum of a step, the newest last."""
        return self.response[:step][::-1]

    def squared_row(self, step: int) -> float:
        """Return the variance of the noise in the running sum of a step, for fresh noise of variance 1."""
        return float(self._squares[step - 1])

    def start(self, lanes: int, recorded: Mapping[str, Any] | None = None) -> FilterState:
        """Return the state of ``lanes`` series before the first step, or the recorded one."""
        return _BandsState(self, lanes, recorded)

    def record(self) -> dict[str, Any]:
        """Return the parameters of the filter, all of them whole numbers."""
        return {"kind": "bands", "length": self.length, "coefficients": list(self.coefficients), "bits": self.bits}


class _BandsState:
    """The secret state of a banded filter: the last values of ``v`` in a ring buffer, and their sum, for each lane."""

    def __init__(self, filter_: Bands, lanes: int, recorded: Mapping[str, Any] | None) -> None:
        """Begin with an empty history for ``lanes`` series, or continue a ``recorded`` state (None: there is none).

        ``_limit`` is the size up to which numbers can be multiplied and added in 64 bits.
        """
        self._coefficients: Lattice = np.array(filter_.coefficients, dtype=np.int64)
        self._bits = filter_.bits
        self._limit = SAFE // max(1, sum(filter_.coefficients))
        self._history: Lattice = np.zeros((len(filter_.coefficients), lanes), dtype=np.int64)
        self._place = 0
        self._total: Lattice = np.zeros(lanes, dtype=np.int64)
        if recorded is not None:
            self._history, self._total = restored(recorded["history"]), restored(recorded["total"])
            self._place = int(recorded["place"])
            if self._history.dtype == object:
                self._coefficients = as_wide(self._coefficients)

    def record(self) -> dict[str, Any]:
        """Return the ring buffer, the position in it, and the sums, in a form that can be stored."""
        return {"history": stored(self._history), "place": self._place, "total": stored(self._total)}

    def advance(self, fresh: Lattice) -> Lattice:
        """Return the noise of the running sums after each row of fresh noise."""
        return advance_rows(self._step, fresh)

    def _step(self, fresh: Lattice) -> Lattice:
        """Return the noise of the running sums after one row of fresh noise.

        Numbers become integers of Python before 64 bits could overflow.
        """
        v, count = fresh, len(self._coefficients)
        if count:
            history = self._history  # a ring: the value of j steps ago is at place - j
            if history.dtype != object and (fresh.dtype == object or self._large(history)):
                self._history, self._coefficients, self._total = map(
                    as_wide, (history, self._coefficients, self._total)
                )
                history = self._history
            ring = np.roll(self._coefficients[::-1], self._place)
            v = fresh - (ring @ history >> self._bits)
            history[self._place] = v
            self._place = (self._place + 1) % count
        self._total = self._total + v
        return self._total

    def _large(self, history: Lattice) -> bool:
        """Return whether a number is so large that the next step could overflow 64 bits."""
        return max(int(history.max()), -int(history.min())) >= self._limit


@dataclass(frozen=True)
class Tree:
    """The binary tree in Fenwick's form, which Laplace noise (pure epsilon) can use, too."""

    length: int

    @property
    def levels(self) -> int:
        """Return the largest number of nodes that one step is in."""
        return self.length.bit_length()

    @property
    def rounding(self) -> Fraction:
        """Return 0: sums of whole numbers are exact."""
        return Fraction(0)

    @property
    def decreasing(self) -> bool:
        """Return True: the bounds of a tree hold for any pattern of steps."""
        return True

    def l1_sensitivity(self, participations: int) -> Fraction:
        """Return the l1 norm of the sum of a person's columns: each step is in one node of each level."""
        return Fraction(participations * self.levels)

    def l2_sensitivity(self, participations: int, separation: int) -> Fraction:
        """Return an upper bound on the l2 norm of the sum of a person's columns, as the root of a sum over levels.

        A node over 2^l steps contains at most ``m = min(k, ceil(2^l / b))`` of a person's k steps that are b apart. The
        sum of squared counts, which add up to k, is largest if as many as possible are m.
        """
        total = 0
        for level in range(self.levels):
            most = min(participations, -(-(1 << level) // separation))
            full, rest = divmod(participations, most)
            total += full * most * most + rest * rest
        return root_up(Fraction(total), ROOT_BITS)

    def row(self, step: int) -> Floats:
        """Return the coefficients of the fresh noise in the running sum of a step: 1 for each node that it consists of,
        at the last step of the node."""
        row = np.zeros(step)
        while step:
            row[step - 1] = 1.0
            step -= step & -step
        return row

    def squared_row(self, step: int) -> float:
        """Return the number of nodes of which the running sum of a step consists."""
        return float(step.bit_count())

    def start(self, lanes: int, recorded: Mapping[str, Any] | None = None) -> FilterState:
        """Return the state before the first step, or the recorded one."""
        return _TreeState(recorded)

    def record(self) -> dict[str, Any]:
        """Return the kind of the filter and its number of steps."""
        return {"kind": "tree", "length": self.length}


class _TreeState:
    """The secret state of a tree: for each power of two, the noise of the running sum at the last step t with that
    ``lowbit(t)``."""

    def __init__(self, recorded: Mapping[str, Any] | None) -> None:
        """Begin before the first step, or continue a ``recorded`` state (None: there is none)."""
        self._noise: dict[int, Lattice] = {}
        self._step = 0
        if recorded is not None:
            self._noise = {int(size): restored(noise) for size, noise in recorded["nodes"].items()}
            self._step = int(recorded["step"])

    def record(self) -> dict[str, Any]:
        """Return the noise that later steps need, and the number of steps so far."""
        needed = {size: noise for size, noise in self._noise.items() if size & self._step}
        return {"nodes": {str(size): stored(noise) for size, noise in needed.items()}, "step": self._step}

    def advance(self, fresh: Lattice) -> Lattice:
        """Return the noise of the running sums after each row of fresh noise."""
        return advance_rows(self._advance_one, fresh)

    def _advance_one(self, row: Lattice) -> Lattice:
        """Return the noise of the running sums after one row of fresh noise: ``w_t = z_t + w_(t - lowbit(t))``."""
        self._step += 1
        rest = self._step & (self._step - 1)
        noise: Lattice = row.copy()
        if rest:
            noise = noise + self._noise[rest & -rest]  # Python's integers if one of them is
        self._noise[self._step & -self._step] = noise
        return noise
