"""Buffers for a horizon and a schema: those with nearly the smallest largest error."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from dither import arguments
from dither.stream.buffer_norms import inverse, squared_column, squared_response
from dither.stream.buffers import Buffers

Floats = NDArray[np.float64]
_MANTISSA_BITS = 16
_WEIGHT_BITS = 20
_SLOW = 4096
_MOST = 0.999


def quantized(length: int, decays: Floats, weights: Floats) -> Buffers:
    """The nearest buffers whose parameters are short whole numbers.

    >>> quantized(10, np.array([0.5]), np.array([0.5])).omegas.tolist()
    [0.5]
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
    """Decays on a logarithmic scale, and weights that follow the square root's law."""
    count = min(count, max(1, horizon - 1))
    decays = np.geomspace(0.7, min(0.5, 1.5 / horizon), count) if count > 1 else np.array([0.5])
    lags = np.unique(np.geomspace(1, max(2, horizon - 1), 200).astype(int))
    target = 1 / np.sqrt(np.pi * (lags + 0.25))
    table = (1 - decays)[None, :] ** (lags - 1)[:, None]
    weights = np.linalg.lstsq(table / target[:, None], np.ones(lags.size), rcond=None)[0]
    return decays, np.maximum(weights, 1e-4 / count)


def _pattern_norm(horizon: int, decays: Floats, weights: Floats, participations: int, separation: int) -> float:
    """The squared norm of the sum of the columns 0, b, 2b, ..., in floats."""
    lags = np.arange(horizon - 1)
    column = np.concatenate([[1.0], weights @ np.exp(lags[None, :] * np.log1p(-decays)[:, None])])
    total = column.copy()
    for start in range(separation, min(horizon, participations * separation), separation):
        total[start:] += column[: horizon - start]
    return float(total @ total)


def _decays(logits: Floats) -> Floats:
    return np.clip(np.exp(-np.logaddexp(0.0, -logits)), 1e-12, 1 - 1e-9)


def _window_norm(horizon: int, rates: Floats, gains: Floats, window: int) -> float:
    """The sum of the squares of ``b_k - b_(k-window)``."""
    shares = gains / rates
    response = 1 - shares.sum() + shares @ (1 - rates)[:, None] ** np.arange(horizon)[None, :]
    response[window:] -= response[:-window].copy()
    return float(response @ response)


def _log_error(parameters: Floats, horizon: int, participations: int, separation: int, window: int) -> float:
    count = parameters.size // 2
    decays, weights = _decays(parameters[:count]), np.exp(parameters[count:])
    excess = max(0.0, float(weights.sum()) - _MOST)
    if excess:
        weights = weights * (_MOST / weights.sum())
    rates, gains = inverse(decays, weights)
    columns = (
        squared_column(horizon, decays, weights)
        if participations == 1
        else _pattern_norm(horizon, decays, weights, participations, separation)
    )
    rows = squared_response(horizon, rates, gains) if window >= horizon else _window_norm(horizon, rates, gains, window)
    return 0.5 * math.log(max(columns, 1e-9)) + 0.5 * math.log(max(rows, 1e-9)) + excess


@lru_cache(maxsize=256)
def buffers_for(
    horizon: int, count: int, participations: int = 1, separation: int = 1, window: int | None = None
) -> Buffers:
    """Buffers for this horizon: the largest error of a running sum is nearly as small as any Toeplitz factorization's.

    With a window, the largest error of a sum over the last ``window`` steps. The same arguments give the same buffers
    on one platform; what a series uses is recorded with it. Above 4096 steps they are optimized for one participation
    and the whole past, whatever is asked for: the sensitivity is computed for the schema in any case.

    >>> filter_ = buffers_for(100, 3)
    >>> float(filter_.l2_sensitivity(1, 1)) * filter_.squared_row(100) ** 0.5 < 1.01 * 2.532
    True
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
