"""Buffered linear Toeplitz filters: few buffers, constant memory, and nearly the smallest possible error.

The coefficients are ``c_0 = 1`` and ``c_k = sum_i omega_i theta_i^(k-1)``. Here a *decay* is ``1 - theta_i`` and a
*weight* is ``omega_i``; those of the inverse filter are called *rates* ``1 - t_i`` and *gains* ``w_i``.

:func:`buffers_for` optimizes buffers for a horizon and the participation of a person. A series without a known horizon
has epochs of 64, 128, 256, ... steps, whose buffers were computed once for one participation and are kept as whole
numbers (:func:`epoch_buffers`), so that an epoch that begins years later has the same buffers everywhere.
:func:`optimum` bounds the error of the best factorization, for horizons whose dense matrix fits into memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from dither import arguments
from dither.exact import root_up
from dither.stream.filters import (
    ROOT_BITS,
    SAFE,
    FilterState,
    advance_rows,
    as_wide,
    restored,
    stored,
    whole_numbers,
)
from dither.stream.keyed import Lattice

Floats = NDArray[np.float64]


def inverse(decays: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the rates ``1 - t_i`` and gains ``w_i`` of the inverse filter, ``(C^-1)_k = -sum of w_i t_i^(k-1)``, from
    the decays and weights of the filter.

    With ``Theta = diag(theta_i)``, the generating function of the coefficients is ``c(x) = 1 + omega^T x (1 - x
    Theta)^-1 1``. Its inverse has the state matrix ``Theta - 1 omega^T``, which is similar to the symmetric matrix
    ``Theta - sqrt(omega) sqrt(omega)^T``: its eigenvalues are the ``t_i``.
    """
    roots = np.sqrt(weights)
    rates, vectors = np.linalg.eigh(np.diag(decays) + np.outer(roots, roots))
    return rates, (roots @ vectors) ** 2


def _powers(decay: Floats, count: int) -> Floats:
    """Return the geometric sum of ``(1 - decay)^k`` over 0 <= k < count, for 0 <= decay < 2, elementwise."""
    safe = np.where(decay > 1e-14, decay, 0.5)
    small = safe < 0.5
    power = np.where(small, np.exp(count * np.log1p(-np.where(small, safe, 0.0))), (1 - safe) ** count)
    return np.where(decay > 1e-14, (1 - power) / safe, float(count))


def squared_column(horizon: int, decays: Floats, weights: Floats) -> float:
    """Return the squared norm of the filter's first column, the sum of ``c_k^2`` over the horizon, in closed form."""
    pair = decays[:, None] + decays[None, :] - decays[:, None] * decays[None, :]
    return 1 + float(weights @ _powers(pair, horizon - 1) @ weights)


def squared_response(horizon: int, rates: Floats, gains: Floats) -> float:
    """Return the sum of ``b_k^2`` over the horizon, with b_k the running sums of the inverse filter's coefficients.

    It is the variance of the noise in the last running sum, for fresh noise of variance 1.

    With ``a_i = w_i / (1 - t_i)``: ``b_k = 1 - sum of a_i + sum of a_i t_i^k``.
    """
    shares = gains / rates
    level = 1 - float(shares.sum())
    pair = rates[:, None] + rates[None, :] - rates[:, None] * rates[None, :]
    rows = level * level * horizon + 2 * level * float(shares @ _powers(rates, horizon))
    return rows + float(shares @ _powers(pair, horizon) @ shares)


_NORM_BITS = 60
_POWER_BITS = 96
_LONGEST = 1 << 21


def power_down(base: Fraction, exponent: int) -> Fraction:
    """Return ``base^exponent`` for a base from 0 to 1, rounded down to a multiple of 2^-96 at every multiplication."""
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
    """

    length: int
    decays: tuple[int, ...]
    decay_bits: tuple[int, ...]
    weights: tuple[int, ...]
    weight_bits: int
    extra_bits: int
    """Buffers are multiples of ``2^-extra_bits`` lattice steps."""

    @cached_property
    def thetas(self) -> Floats:
        """Return the factor of each buffer by which it shrinks in a step."""
        return np.array([1 - m / 2.0**k for m, k in zip(self.decays, self.decay_bits, strict=True)])

    @cached_property
    def omegas(self) -> Floats:
        """Return the weights of the buffers."""
        return np.array(self.weights) / 2.0**self.weight_bits

    @property
    def rounding(self) -> Fraction:
        """Return a bound on how far roundings move the fresh noise of a step, in lattice steps: 1 for the floor of the
        sum, and ``omega_i / (1 - theta_i)`` steps of the finer lattice for each buffer."""
        total = Fraction(1)
        for decay, bits, weight in zip(self.decays, self.decay_bits, self.weights, strict=True):
            total += Fraction(weight << bits, decay << (self.weight_bits + self.extra_bits))
        return total

    @property
    def decreasing(self) -> bool:
        """Return whether the coefficients are non-negative and non-increasing, as the proof of the worst
        pattern needs."""
        inside = all(0 < decay <= 1 << bits for decay, bits in zip(self.decays, self.decay_bits, strict=True))
        return inside and min(self.weights) >= 0 and sum(self.weights) <= 1 << self.weight_bits

    def l2_sensitivity(self, participations: int, separation: int) -> Fraction:
        """Return an upper bound on the l2 norm of ``C d`` for a person's changes d, each at most 1.

        The norm of one column has a closed form. For several participations, the filter is run on the worst pattern in
        integers that are rounded up; above ``_LONGEST`` steps, the triangle inequality is used instead.
        """
        if participations == 1 or self.length > _LONGEST:
            return participations * root_up(self._squared_column(), ROOT_BITS)
        return _pattern_norm(self, participations, separation)

    def _squared_column(self) -> Fraction:
        """Return the squared norm of the first column, rounded up: ``1 + sum over i, j of omega_i omega_j (1 - p^(n-1))
        / (1 - p)`` with ``p = theta_i theta_j`` and n the number of steps."""
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
        """Return the decays and weights of the inverse filter."""
        return inverse(1 - self.thetas, self.omegas)

    def row(self, step: int) -> Floats:
        """Return the coefficients ``b_k`` of the fresh noise in the running sum of a step, the newest last.

        ``b_k = 1 - sum of a_i + sum of a_i t_i^k`` for the noise of k steps before, with ``a_i = w_i / (1 - t_i)``.
        """
        rates, gains = self._inverse
        shares = gains / rates
        response = np.full(step, 1 - float(shares.sum()))
        for rate, share in zip(rates.tolist(), shares.tolist(), strict=True):
            response += share * (1 - rate) ** np.arange(step)
        return response[::-1]

    def squared_row(self, step: int) -> float:
        """Return the variance of the running sum at a step relative to that of the fresh noise, in closed form."""
        return squared_response(step, *self._inverse)

    def start(self, lanes: int, recorded: Mapping[str, Any] | None = None) -> FilterState:
        """Return the state of ``lanes`` series before the first step, or the recorded one."""
        return _BuffersState(self, lanes, recorded)

    def record(self) -> dict[str, Any]:
        """Return the parameters of the filter, all of them whole numbers, for :func:`from_record`."""
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
    """Return an upper bound on the l2 norm of the sum of the filter's columns 0, b, 2b, ..., b the separation.

    There are ``participations`` columns. Their sum is the filter's response to a change of 1 at each of these steps,
    which is computed in multiples of ``2^-_NORM_BITS`` with every product rounded up.
    """
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
    """The secret state of a buffered filter: the buffers and the running sum of the noise of each lane."""

    def __init__(self, filter_: Buffers, lanes: int, recorded: Mapping[str, Any] | None) -> None:
        """Begin with empty buffers for ``lanes`` series, or continue a ``recorded`` state (None: there is none)."""
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
        """Return the buffers and running sums, in a form that can be stored."""
        return {"buffers": stored(self._buffers), "total": stored(self._total)}

    def advance(self, fresh: Lattice) -> Lattice:
        """Return the noise of the running sums after each row (step) of fresh noise; up to 4 lanes are computed one by
        one, which is faster than in small arrays."""
        if fresh.shape[1] <= 4:
            return self._by_lane(fresh)
        return advance_rows(self._step, fresh)

    def _step(self, fresh: Lattice) -> Lattice:
        """Return the noise of the running sums of all lanes after one step of fresh noise.

        Buffers become integers of Python before 64 bits could overflow.
        """
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
        """Convert all numbers to integers of Python, which never overflow."""
        for name in ("_buffers", "_total", "_weights", "_decays", "_decay_bits"):
            setattr(self, name, as_wide(getattr(self, name)))

    def _by_lane(self, fresh: Lattice) -> Lattice:
        """Advance each lane in integers of Python, which are faster than arrays of a few elements and never
        overflow."""
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


_MANTISSA_BITS = 16
_WEIGHT_BITS = 20
_SLOW = 4096
_MOST = 0.999


def quantized(length: int, decays: Floats, weights: Floats) -> Buffers:
    """Return buffers for ``length`` steps whose parameters are short whole numbers near these decays and weights.

    A decay is a whole number of ``_MANTISSA_BITS`` bits divided by a power of 2; weights are rounded down to multiples
    of ``2^-_WEIGHT_BITS``. Extra bits in the buffers keep the accumulated rounding small beside the noise.
    """
    bits = tuple(_MANTISSA_BITS - math.frexp(decay)[1] for decay in decays.tolist())
    whole = tuple(max(1, round(decay * 2.0**k)) for decay, k in zip(decays.tolist(), bits, strict=True))
    numbers = tuple(max(0, math.floor(weight * 2.0**_WEIGHT_BITS)) for weight in weights.tolist())
    drift = float(sum(weight / decay for weight, decay in zip(weights.tolist(), decays.tolist(), strict=True)))
    extra = max(2, math.ceil(math.log2(drift * 4)))
    result = Buffers(length, whole, bits, numbers, _WEIGHT_BITS, extra)
    assert result.decreasing
    return result


def _start(horizon: int, count: int) -> tuple[Floats, Floats]:
    """Return initial decays and weights of ``count`` buffers for the optimization.

    The decays are on a logarithmic scale. The weights fit the coefficients of the square root ``(1 - x)^(-1/2)``, which
    are nearly ``1 / sqrt(pi (lag + 1/4))``, by least squares of relative errors at up to 200 lags below ``horizon``.
    """
    count = min(count, max(1, horizon - 1))
    decays = np.geomspace(0.7, min(0.5, 1.5 / horizon), count) if count > 1 else np.array([0.5])
    lags = np.unique(np.geomspace(1, max(2, horizon - 1), 200).astype(int))
    target = 1 / np.sqrt(np.pi * (lags + 0.25))
    table = (1 - decays)[None, :] ** (lags - 1)[:, None]
    weights = np.linalg.lstsq(table / target[:, None], np.ones(lags.size), rcond=None)[0]
    return decays, np.maximum(weights, 1e-4 / count)


def _squared_pattern(horizon: int, decays: Floats, weights: Floats, participations: int, separation: int) -> float:
    """Return the squared norm of the sum of the filter's columns 0, b, 2b, ..., in floats.

    There are ``participations`` columns, b is ``separation``, and column 0 has the coefficients ``c_k`` of ``horizon``
    steps.
    """
    lags = np.arange(horizon - 1)
    column = np.concatenate([[1.0], weights @ np.exp(lags[None, :] * np.log1p(-decays)[:, None])])
    total = column.copy()
    for start in range(separation, min(horizon, participations * separation), separation):
        total[start:] += column[: horizon - start]
    return float(total @ total)


def _decays(logits: Floats) -> Floats:
    """Return the decays of the buffers from the optimizer's unbounded parameters."""
    return np.clip(np.exp(-np.logaddexp(0.0, -logits)), 1e-12, 1 - 1e-9)


def _window_norm(horizon: int, rates: Floats, gains: Floats, window: int) -> float:
    """Return the variance of the noise in a sum over the last ``window`` steps, for fresh noise of variance 1: the sum
    of ``(b_k - b_(k-window))^2`` over the ``horizon``.

    ``b_k`` is the response of a running sum to the noise of k steps before, which follows from the ``rates`` and
    ``gains`` of the inverse filter (:func:`squared_response`).
    """
    shares = gains / rates
    response = 1 - shares.sum() + shares @ (1 - rates)[:, None] ** np.arange(horizon)[None, :]
    response[window:] -= response[:-window].copy()
    return float(response @ response)


def _log_error(parameters: Floats, horizon: int, participations: int, separation: int, window: int) -> float:
    """Return the logarithm of the largest error of a sum, which the optimizer minimizes.

    ``parameters`` are the log-odds of the decays, then the logarithms of the weights. The error is the norm of the
    columns that one person touches, in ``participations`` steps that are ``separation`` apart, times the norm of the
    response over the last ``window`` of ``horizon`` steps. A sum of weights above ``_MOST`` is scaled down, and its
    excess is a penalty.
    """
    count = parameters.size // 2
    decays, weights = _decays(parameters[:count]), np.exp(parameters[count:])
    excess = max(0.0, float(weights.sum()) - _MOST)
    if excess:
        weights = weights * (_MOST / weights.sum())
    rates, gains = inverse(decays, weights)
    columns = (
        squared_column(horizon, decays, weights)
        if participations == 1
        else _squared_pattern(horizon, decays, weights, participations, separation)
    )
    rows = squared_response(horizon, rates, gains) if window >= horizon else _window_norm(horizon, rates, gains, window)
    return 0.5 * math.log(max(columns, 1e-9)) + 0.5 * math.log(max(rows, 1e-9)) + excess


@lru_cache(maxsize=256)
def buffers_for(
    horizon: int, count: int, participations: int = 1, separation: int = 1, window: int | None = None
) -> Buffers:
    """Return optimized buffers, with which the largest error of a running sum is close to that of the best Toeplitz
    factorization.

    The same arguments give the same buffers on one platform; a series records the buffers that it uses.

    Parameters
    ----------
    horizon
        The number of steps. Above 4096, for speed, the buffers are always optimized for one participation and running
        sums; the sensitivity is computed for the true pattern in any case.
    count
        The number of buffers, at most 16.
    participations, separation
        The most steps that contain values of one person, and the fewest steps from one of them to the next.
    window
        Optimize for sums over the last ``window`` steps; None: for running sums.
    """
    arguments.whole(count, "buffers", at_most=16)
    if horizon == 1:
        return Buffers(1, (1,), (1,), (0,), 1, 2)
    decays, weights = _start(horizon, count)
    goal = (horizon, participations, separation, horizon if window is None else window)
    if horizon > _SLOW:
        goal = (horizon, 1, 1, horizon)
    best = np.concatenate([np.log(decays / (1 - decays)), np.log(weights)])
    for _ in range(3):
        best = minimize(_log_error, best, args=goal, method="BFGS", options={"gtol": 1e-7, "maxiter": 400}).x
    half = best.size // 2
    decays, weights = _decays(best[:half]), np.exp(best[half:])
    order = np.argsort(-decays)
    weights = weights * min(1.0, _MOST / float(weights.sum()))
    return quantized(horizon, decays[order], weights[order])


FIRST = 64
"""The length of the first epoch; each is twice as long as the one before."""

_TABLE: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int], ...] = (
    ((34898, 39271, 65350, 57484, 44346), (16, 17, 19, 20, 22), (191137, 20, 191449, 20, 140841), 6),
    ((59221, 33005, 42918, 34169, 50535), (17, 17, 19, 20, 23), (234378, 20, 179041, 20, 108093), 7),
    ((36621, 39275, 63098, 40604, 42329), (16, 18, 21, 21, 24), (176237, 177114, 101258, 20, 69114), 7),
    ((65109, 57135, 38662, 48206, 47249), (17, 19, 21, 22, 25), (209769, 174661, 86177, 20, 52159), 8),
    ((37601, 42438, 38062, 60402, 40961), (16, 18, 20, 23, 26), (168175, 175553, 96338, 49814, 33981), 8),
    ((34362, 33092, 51163, 35759, 45172), (16, 18, 21, 23, 27), (194817, 175632, 86679, 40732, 25426), 9),
    ((62296, 50927, 33890, 41592, 48868), (17, 19, 21, 24, 28), (221385, 172243, 76810, 32945, 18837), 9),
    ((56180, 39007, 44763, 48105, 52423), (17, 19, 22, 25, 29), (246303, 166250, 67459, 26532, 13897), 10),
    ((50317, 59226, 58647, 55196, 55791), (17, 20, 23, 26, 30), (269475, 158187, 58620, 21213, 10210), 10),
    ((44990, 45054, 38555, 63426, 59277), (17, 20, 23, 27, 31), (289549, 149188, 50769, 16950, 7496), 11),
    ((40141, 34298, 50817, 36513, 62921), (17, 20, 24, 27, 32), (306545, 139662, 43805, 13530, 5503), 11),
    ((35760, 52301, 33619, 42194, 33427), (17, 21, 24, 28, 32), (320525, 129956, 37706, 10799, 4043), 12),
    ((63511, 39851, 44555, 48890, 35546), (18, 21, 25, 29, 33), (331551, 120202, 32349, 8608, 2973), 12),
    ((56343, 60807, 59195, 56854, 37843), (18, 22, 26, 30, 34), (339726, 110753, 27690, 6859, 2188), 13),
    ((49879, 46446, 39512, 33259, 40390), (18, 22, 26, 30, 35), (345136, 101622, 23670, 5470, 1614), 13),
    ((44464, 35994, 53564, 39460, 43430), (18, 22, 27, 31, 36), (348179, 93537, 20349, 4389, 1197), 14),
    ((39402, 55384, 36165, 46852, 46670), (18, 23, 27, 32, 37), (349046, 85533, 17391, 3511, 887), 14),
    ((34628, 42135, 48192, 55094, 49853), (18, 23, 28, 33, 38), (347636, 77616, 14731, 2784, 655), 14),
    ((62003, 33125, 33369, 33399, 53934), (19, 23, 28, 33, 39), (345470, 71300, 12709, 2248, 489), 15),
    ((55321, 51871, 45958, 40542, 58410), (19, 24, 29, 34, 40), (341764, 65306, 10904, 1810, 365), 15),
    ((48766, 39876, 62361, 48693, 62731), (19, 24, 30, 35, 41), (336271, 59120, 9257, 1445, 271), 16),
    ((43611, 62872, 43312, 59320, 33792), (19, 25, 30, 36, 41), (330735, 54094, 7960, 1164, 202), 16),
    ((39222, 50022, 60870, 36425, 36456), (19, 25, 31, 36, 42), (324943, 49629, 6876, 942, 151), 17),
    ((33723, 36967, 39161, 41659, 38036), (19, 25, 31, 37, 43), (314060, 43908, 5655, 726, 109), 17),
    ((60734, 59115, 55390, 51722, 41096), (20, 26, 32, 38, 44), (307067, 40294, 4885, 589, 82), 18),
)  # fmt: skip
"""For each epoch: the decays, their bits, the weights, and the extra bits of :class:`Buffers`."""

EPOCHS = len(_TABLE)
"""The number of epochs, which have two billion steps together."""


def epoch_buffers(epoch: int) -> Buffers:
    """Return the filter of an epoch, counted from 0."""
    decays, bits, weights, extra = _TABLE[epoch]
    return Buffers(FIRST << epoch, decays, bits, weights, _WEIGHT_BITS, extra)


_LARGEST_DENSE = 2048


@dataclass(frozen=True)
class Optimum:
    """Bounds on the smallest possible largest RMSE of a running sum, in units of the fresh noise's sigma, at
    sensitivity 1 and one participation: the optimum lies between them.

    >>> Optimum(lower=1.0, upper=1.0).gap
    0.0
    """

    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """Return the difference between the bounds, relative to the lower one."""
        return self.upper / self.lower - 1


def optimum(horizon: int, *, tolerance: float = 1e-4, iterations: int = 2000) -> Optimum:
    """Return bounds on the smallest error of any factorization ``A = B C`` of the matrix A of running sums.

    The error is the largest row norm of B times the largest column norm of C. The bounds are iterated until they agree
    within ``tolerance`` (relative), at most ``iterations`` times; ``horizon`` is the number of rows of A.

    The smallest error is the largest nuclear norm of ``diag(sqrt p) A diag(sqrt q)`` over probabilities p and q. With
    ``U S V^T`` the singular value decomposition of that matrix, the nuclear norm is a lower bound, and ``B =
    diag(1/sqrt p) U sqrt S``, ``C = sqrt S V^T diag(1/sqrt q)`` is a factorization whose error is an upper one. The
    bounds meet where p is proportional to the diagonal of ``U S U^T`` and q to that of ``V S V^T``, which is iterated.

    >>> result = optimum(2)                   # of the matrix [[1, 0], [1, 1]]
    >>> round(result.lower, 4), result.gap < 1e-4
    (1.1547, True)
    """
    n = arguments.whole(horizon, "horizon", at_most=_LARGEST_DENSE)
    running = np.tril(np.ones((n, n)))
    p = q = np.full(n, 1.0 / n)
    best = Optimum(0.0, np.inf)
    for _ in range(arguments.whole(iterations, "iterations")):
        left, sizes, right = np.linalg.svd(np.sqrt(p)[:, None] * running * np.sqrt(q)[None, :])
        rows, columns = (left * left) @ sizes, (right * right).T @ sizes
        upper = float(np.sqrt((rows / p).max() * (columns / q).max()))
        best = Optimum(max(best.lower, float(sizes.sum())), min(best.upper, upper))
        if best.gap <= tolerance:
            break
        p, q = rows / rows.sum(), columns / columns.sum()
    return best
