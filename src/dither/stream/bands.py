"""Filters with bands: the square root of the running sum, whole or its first coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from dither.exact import root_up
from dither.stream.filters import ROOT_BITS, SAFE, FilterState, Floats, advance_rows, as_wide, restored, stored
from dither.stream.keyed import Lattice


def square_root_coefficients(count: int) -> Floats:
    """The coefficients of ``(1 - x)^(-1/2)``: 1, 1/2, 3/8, ...

    >>> square_root_coefficients(3).tolist()
    [1.0, 0.5, 0.375]
    """
    k = np.arange(1, count)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


@dataclass(frozen=True)
class Bands:
    """The first coefficients of the square root ``(1 - x)^(-1/2)``, in multiples of ``2^-bits``; zero after them.

    With as many bands as steps it is the square root itself, whose error is within an additive constant of the
    optimum (Henzinger, Upadhyay and Upadhyay 2023); with as many as the least separation of a person's steps no two
    columns of a person overlap (Kalinin and Lampert 2024). The memory is that of the bands.

    >>> float(Bands.square_root(365, 365).l2_sensitivity(1, 1)) ** 2 - 2.944 < 1e-3
    True
    """

    length: int
    coefficients: tuple[int, ...]
    """Those after ``c_0``, in multiples of ``2^-bits``."""
    bits: int = 30

    @classmethod
    def square_root(cls, length: int, bands: int, bits: int = 30) -> Bands:
        """That of the square root, rounded down."""
        count = min(bands, length)
        return cls(length, tuple(int(c * 2.0**bits) for c in square_root_coefficients(count)[1:].tolist()), bits)

    @property
    def rounding(self) -> Fraction:
        """One, for the floor; none where nothing is rounded."""
        return Fraction(1 if self.coefficients else 0)

    @property
    def decreasing(self) -> bool:
        """Whether c is non-negative and non-increasing, as the proof needs."""
        sequence = (1 << self.bits, *self.coefficients, 0)
        return all(a >= b for a, b in pairwise(sequence))

    def l2_sensitivity(self, participations: int, separation: int) -> Fraction:
        """The norm of the sum of the columns 0, b, 2b, ..., exactly."""
        column = np.zeros(self.length, dtype=object)
        column[: len(self.coefficients) + 1] = [1 << self.bits, *self.coefficients]
        total = column.copy()
        for start in range(separation, min(self.length, participations * separation), separation):
            total[start:] += column[: self.length - start]
        return root_up(Fraction(int((total * total).sum()), 1 << (2 * self.bits)), ROOT_BITS)

    @cached_property
    def response(self) -> Floats:
        """The running sum of the inverse of c, in floats."""
        c = np.array(self.coefficients) / 2.0**self.bits
        inverse = np.zeros(self.length)
        inverse[0] = 1.0
        for step in range(1, self.length):
            count = min(step, c.size)
            inverse[step] = -float(c[:count] @ inverse[step - count : step][::-1])
        return np.cumsum(inverse)

    @cached_property
    def _squares(self) -> Floats:
        return np.cumsum(self.response**2)

    def row(self, step: int) -> Floats:
        """The response, latest first."""
        return self.response[:step][::-1]

    def squared_row(self, step: int) -> float:
        """The sum of the squares of the response."""
        return float(self._squares[step - 1])

    def start(self, lanes: int, recorded: Mapping[str, Any] | None = None) -> FilterState:
        """No history, or the one that was recorded."""
        return _BandsState(self, lanes, recorded)

    def record(self) -> dict[str, Any]:
        """All parameters, which are whole numbers."""
        return {"kind": "bands", "length": self.length, "coefficients": list(self.coefficients), "bits": self.bits}


class _BandsState:
    """The last values of ``v``, newest first, and the total of each lane."""

    def __init__(self, filter_: Bands, lanes: int, recorded: Mapping[str, Any] | None) -> None:
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
        """The history, where it begins, and totals."""
        return {"history": stored(self._history), "place": self._place, "total": stored(self._total)}

    def advance(self, fresh: Lattice) -> Lattice:
        """All steps."""
        return advance_rows(self._step, fresh)

    def _step(self, fresh: Lattice) -> Lattice:
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
        return max(int(history.max()), -int(history.min())) >= self._limit
