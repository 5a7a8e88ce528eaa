"""Buffered linear Toeplitz filters: few buffers, constant memory, nearly the smallest error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dither.exact import root_up
from dither.stream.buffer_norms import inverse, squared_response
from dither.stream.filters import (
    ROOT_BITS,
    SAFE,
    FilterState,
    Floats,
    advance_rows,
    as_wide,
    restored,
    stored,
    whole_numbers,
)
from dither.stream.keyed import Lattice

_NORM_BITS = 60
_POWER_BITS = 96
_LONGEST = 1 << 21


def power_down(base: Fraction, exponent: int) -> Fraction:
    """``base^exponent`` for a base from 0 to 1, rounded down to a multiple of 2^-96 at every multiplication.

    >>> power_down(Fraction(1, 2), 10) == Fraction(1, 1024)
    True
    """
    square = (base.numerator << _POWER_BITS) // base.denominator
    result = 1 << _POWER_BITS
    while exponent:
        if exponent & 1:
            result = result * square >> _POWER_BITS
        square = square * square >> _POWER_BITS
        exponent >>= 1
    return Fraction(result, 1 << _POWER_BITS)


@dataclass(frozen=True)
class Buffers:
    """Buffered linear Toeplitz: ``c_k = sum of omega_i theta_i^(k-1)`` with few buffers, so constant memory (Dvijotham,
    McMahan, Pillutla, Steinke and Thakurta 2024).

    ``theta_i = 1 - decays[i] / 2^decay_bits[i]`` and ``omega_i = weights[i] / 2^weight_bits``, exactly.

    >>> filter_ = Buffers(10, (1,), (1,), (1,), 1, 8)         # c = 1, 1/2, 1/4, ...
    >>> float(filter_.l2_sensitivity(1, 1)) - (4 / 3) ** 0.5 < 1e-5
    True
    """

    length: int
    decays: tuple[int, ...]
    decay_bits: tuple[int, ...]
    weights: tuple[int, ...]
    weight_bits: int
    extra_bits: int
    """How much finer the lattice of the buffers is."""

    @cached_property
    def thetas(self) -> Floats:
        """The factors by which buffers shrink in a step."""
        return np.array([1 - m / 2.0**k for m, k in zip(self.decays, self.decay_bits, strict=True)])

    @cached_property
    def omegas(self) -> Floats:
        """The weights of the buffers."""
        return np.array(self.weights) / 2.0**self.weight_bits

    @property
    def rounding(self) -> Fraction:
        """One for the floor, and what the roundings of the buffers add up to."""
        total = Fraction(1)
        for decay, bits, weight in zip(self.decays, self.decay_bits, self.weights, strict=True):
            total += Fraction(weight << bits, decay << (self.weight_bits + self.extra_bits))
        return total

    @property
    def decreasing(self) -> bool:
        """Whether c is non-negative and non-increasing, as the proof needs."""
        inside = all(0 < decay <= 1 << bits for decay, bits in zip(self.decays, self.decay_bits, strict=True))
        return inside and min(self.weights) >= 0 and sum(self.weights) <= 1 << self.weight_bits

    def l2_sensitivity(self, participations: int, separation: int) -> Fraction:
        """For one participation in closed form; otherwise the filter itself, run on the worst pattern in integers that
        are rounded up.
        """
        if participations == 1 or self.length > _LONGEST:  # there, by the triangle inequality
            return participations * root_up(self._squared_column(), ROOT_BITS)
        return _pattern_norm(self, participations, separation)

    def _squared_column(self) -> Fraction:
        """``1 + sum of omega_i omega_j (1 - p^(n-1)) / (1 - p)``, ``p = theta_i theta_j``, the power rounded down."""
        thetas = [1 - Fraction(m, 1 << k) for m, k in zip(self.decays, self.decay_bits, strict=True)]
        total = Fraction(1)
        for weight, theta in zip(self.weights, thetas, strict=True):
            for other_weight, other in zip(self.weights, thetas, strict=True):
                rate = theta * other
                geometric = (1 - power_down(rate, self.length - 1)) / (1 - rate)
                total += Fraction(weight * other_weight, 1 << (2 * self.weight_bits)) * geometric
        return total

    @cached_property
    def _inverse(self) -> tuple[Floats, Floats]:
        return inverse(1 - self.thetas, self.omegas)

    def row(self, step: int) -> Floats:
        """The response to one unit of fresh noise, latest first: ``b_k = level + sum of a_i t_i^k``."""
        rates, gains = self._inverse
        shares = gains / rates
        response = np.full(step, 1 - float(shares.sum()))
        for rate, share in zip(rates.tolist(), shares.tolist(), strict=True):
            response += share * (1 - rate) ** np.arange(step)
        return response[::-1]

    def squared_row(self, step: int) -> float:
        """In closed form."""
        return squared_response(step, *self._inverse)

    def start(self, lanes: int, recorded: Mapping[str, Any] | None = None) -> FilterState:
        """Empty buffers, or those that were recorded."""
        return _BuffersState(self, lanes, recorded)

    def record(self) -> dict[str, Any]:
        """All parameters, which are whole numbers."""
        return {
            "kind": "buffers",
            "length": self.length,
            "decays": list(self.decays),
            "decay_bits": list(self.decay_bits),
            "weights": list(self.weights),
            "weight_bits": self.weight_bits,
            "extra_bits": self.extra_bits,
        }


@lru_cache(maxsize=64)
def _pattern_norm(filter_: Buffers, participations: int, separation: int) -> Fraction:
    one, state = 1 << _NORM_BITS, [0] * len(filter_.weights)
    total, left, almost = 0, participations, (1 << filter_.weight_bits) - 1
    buffers = list(zip(filter_.decays, filter_.decay_bits, strict=True))
    for step in range(filter_.length):
        change = 0
        if left and step % separation == 0:
            change, left = one, left - 1
        weighted = sum([w * s for w, s in zip(filter_.weights, state, strict=True)])
        value = change + (weighted + almost >> filter_.weight_bits)
        total += value * value
        state = [s - (m * s >> k) + change for s, (m, k) in zip(state, buffers, strict=True)]
    return root_up(Fraction(total, one * one), ROOT_BITS)


class _BuffersState:
    """Buffers and total of each lane."""

    def __init__(self, filter_: Buffers, lanes: int, recorded: Mapping[str, Any] | None) -> None:
        self._filter = filter_
        self._buffers: Lattice = np.zeros((len(filter_.weights), lanes), dtype=np.int64)
        self._total: Lattice = np.zeros(lanes, dtype=np.int64)
        if recorded is not None:
            self._buffers, self._total = restored(recorded["buffers"]), restored(recorded["total"])
        self._weights = np.array(filter_.weights, dtype=np.int64)[:, None]
        self._decays = np.array(filter_.decays, dtype=np.int64)[:, None]
        self._decay_bits = np.array(filter_.decay_bits, dtype=np.int64)[:, None]
        self._shift = filter_.weight_bits + filter_.extra_bits
        self._limit = SAFE // max(sum(filter_.weights), *filter_.decays, 1 << filter_.extra_bits)
        if self._buffers.dtype == object:
            self._widen()

    def record(self) -> dict[str, Any]:
        """Buffers and totals."""
        return {"buffers": stored(self._buffers), "total": stored(self._total)}

    def advance(self, fresh: Lattice) -> Lattice:
        """All steps, lane by lane where there are few lanes."""
        if fresh.shape[1] <= 4:
            return self._by_lane(fresh)
        return advance_rows(self._step, fresh)

    def _step(self, fresh: Lattice) -> Lattice:
        buffers = self._buffers
        largest = max(int(buffers.max()), -int(buffers.min()), int(fresh.max()), -int(fresh.min()))
        if buffers.dtype != object and (largest >= self._limit or fresh.dtype == object):
            self._widen()
            buffers = self._buffers
        v = fresh - ((self._weights * buffers).sum(axis=0) >> self._shift)
        buffers -= self._decays * buffers >> self._decay_bits
        buffers += v << self._filter.extra_bits
        self._total = self._total + v
        return self._total

    def _widen(self) -> None:
        for name in ("_buffers", "_total", "_weights", "_decays", "_decay_bits"):
            setattr(self, name, as_wide(getattr(self, name)))

    def _by_lane(self, fresh: Lattice) -> Lattice:
        """Python's integers: faster than arrays of a few elements, and of any size."""
        filter_, shift, extra = self._filter, self._shift, self._filter.extra_bits
        buffers = list(zip(filter_.decays, filter_.decay_bits, strict=True))
        columns = []
        for lane in range(fresh.shape[1]):
            state, total, column = self._buffers[:, lane].tolist(), int(self._total[lane]), []
            for z in fresh[:, lane].tolist():
                v = z - (sum([w * s for w, s in zip(filter_.weights, state, strict=True)]) >> shift)
                fine = v << extra
                state = [s - (m * s >> k) + fine for s, (m, k) in zip(state, buffers, strict=True)]
                total += v
                column.append(total)
            if max(map(abs, [total, *state])) >= self._limit and self._buffers.dtype != object:
                self._widen()
            self._buffers[:, lane], self._total[lane] = state, total
            columns.append(column)
        return whole_numbers(columns).T
