"""The smallest largest error that any factorization of the running sum has, for horizons that a dense matrix fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dither import arguments

_MOST = 2048


@dataclass(frozen=True)
class Optimum:
    """Bounds on the largest RMSE over sigma at unit sensitivity, for one participation: the optimum is between them.

    >>> Optimum(lower=1.0, upper=1.0).gap
    0.0
    """

    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """How far the bounds are from each other, relative to the lower one."""
        return self.upper / self.lower - 1


def optimum(horizon: int, *, tolerance: float = 1e-4, iterations: int = 2000) -> Optimum:
    """The optimum over all factorizations ``A = B C``, of the largest row norm of B times the largest column norm of C.

    It is the largest nuclear norm of ``diag(sqrt p) A diag(sqrt q)`` over probabilities p and q. With ``U S V^T`` the
    decomposition of that matrix, ``B = diag(1/sqrt p) U sqrt S`` and ``C = sqrt S V^T diag(1/sqrt q)`` are a
    factorization, whose error is an upper bound, and the nuclear norm is a lower one. They meet where p is in
    proportion to the diagonal of ``U S U^T`` and q to that of ``V S V^T``, which is iterated.

    >>> result = optimum(2)                   # of the matrix [[1, 0], [1, 1]]
    >>> round(result.lower, 4), result.gap < 1e-4
    (1.1547, True)
    """
    n = arguments.whole(horizon, "horizon", at_most=_MOST)
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
