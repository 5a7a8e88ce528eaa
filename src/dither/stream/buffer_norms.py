"""Norms of buffered filters in closed form, in floats: for the error, and for the search for good buffers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def inverse(decays: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Buffers of the inverse, ``(C^-1)_k = -sum of w_i t_i^(k-1)``, as ``1 - t_i`` and ``w_i``.

    ``c(x) = 1 + omega^T x (1 - x Theta)^-1 1``, so its inverse has the state matrix ``Theta - 1 omega^T``, which is
    similar to the symmetric ``Theta - sqrt(omega) sqrt(omega)^T``.

    >>> rates, gains = inverse(np.array([0.5]), np.array([0.5]))       # c = 1, 1/2, 1/4, ...; inverse 1, -1/2, 0, ...
    >>> rates.tolist(), gains.round(10).tolist()
    ([1.0], [0.5])
    """
    roots = np.sqrt(weights)
    rates, vectors = np.linalg.eigh(np.diag(decays) + np.outer(roots, roots))
    return rates, (roots @ vectors) ** 2


def _powers(decay: Floats, count: int) -> Floats:
    """``sum of (1 - decay)^k`` over k < count, for 0 <= decay < 2."""
    safe = np.where(decay > 1e-14, decay, 0.5)
    small = safe < 0.5
    power = np.where(small, np.exp(count * np.log1p(-np.where(small, safe, 0.0))), (1 - safe) ** count)
    return np.where(decay > 1e-14, (1 - power) / safe, float(count))


def squared_column(horizon: int, decays: Floats, weights: Floats) -> float:
    """The sum of ``c_k^2`` over the horizon.

    >>> squared_column(3, np.array([0.5]), np.array([0.5]))            # 1 + 1/4 + 1/16
    1.3125
    """
    pair = decays[:, None] + decays[None, :] - decays[:, None] * decays[None, :]
    return 1 + float(weights @ _powers(pair, horizon - 1) @ weights)


def squared_response(horizon: int, rates: Floats, gains: Floats) -> float:
    """The sum of ``b_k^2`` over the horizon, b being the running sum of the inverse.

    With ``a_i = w_i / (1 - t_i)``: ``b_k = 1 - sum of a_i + sum of a_i t_i^k``.

    >>> round(squared_response(3, *inverse(np.array([0.5]), np.array([0.5]))), 10)          # 1 + 1/4 + 1/4
    1.5
    """
    shares = gains / rates
    level = 1 - float(shares.sum())
    pair = rates[:, None] + rates[None, :] - rates[:, None] * rates[None, :]
    rows = level * level * horizon + 2 * level * float(shares @ _powers(rates, horizon))
    return rows + float(shares @ _powers(pair, horizon) @ shares)
