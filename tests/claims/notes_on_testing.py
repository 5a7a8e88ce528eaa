"""The first document, last part: testing, composition, summary."""

from __future__ import annotations

import math

import numpy as np
from claim import Computed, Computing, close
from scipy import optimize, stats

claims = Computing(1)


@claims("Theorem (Wasserman and Zhou), testing")
def power() -> Computed:
    epsilon, alpha, n = 1.0, 0.05, 10
    k, p = np.arange(n), stats.binom.pmf(np.arange(n), n - 1, 0.5)

    def tail(t: float, shift: int) -> float:
        return float(p @ stats.laplace.sf(t, loc=k + shift, scale=1 / epsilon))

    at = optimize.brentq(lambda t: tail(t, 0) - alpha, 0, 40)
    alone = stats.laplace.sf(stats.laplace.isf(alpha) - 1)
    return Computed(
        f"ε = 1, α = 0.05: bound {alpha * math.e:.4f}; best test when the other records are known {alone:.4f}; when "
        f"they are 9 fair coins {tail(at, 1):.4f}.",
        stated=alone <= alpha * math.e + 1e-12 and tail(at, 1) <= alone and close(alone, alpha * math.e),
    )


@claims("Theorem (Wasserman and Zhou), conclusion")
def substantial_power() -> Computed:
    result = {e: float(stats.laplace.sf(stats.laplace.isf(0.05) - e)) for e in (0.1, 1, 5)}
    return Computed(
        "Laplace noise, α = 0.05, best power at ε = 0.1, 1, 5: " + ", ".join(f"{v:.4f}" for v in result.values()) + ".",
        stated=result[5] < 0.5,
        corrected=result[0.1] < 0.06,
    )


@claims("Summary, composition")
def product() -> Computed:
    e1 = e2 = 0.5
    p = math.exp(e1) / (1 + math.exp(e1))
    # M1: randomized response, its answer copied 100 times; M2: the sum of a table, with Lap(1/e2)
    near, far = (p, 1 - p), (1 - p, p)
    low = [a * 1.0 + b * math.exp(-100 * e2) for a, b in (near, far)]
    loss = math.log(low[0] / low[1])
    local = 2 * math.atanh(math.tanh(e1 / 2) * math.tanh(e2 / 2))
    grid = [(a, b) for a in np.linspace(0.01, 8, 60) for b in np.linspace(0.01, 8, 60)]
    bounded = all(2 * math.atanh(math.tanh(a / 2) * math.tanh(b / 2)) <= min(a * b, a, b) * (1 + 1e-9) for a, b in grid)
    return Computed(
        f"ε₁ = ε₂ = 0.5, product 0.25: a response copied into 100 records, then their noisy sum, loses {loss:.4f}; "
        f"two randomized responses in a row lose {local:.4f}.",
        stated=loss <= e1 * e2,
        corrected=loss <= e1 + 1e-12 and bounded,
    )


@claims("Summary, 3")
def optimal() -> Computed:
    sensitivity, epsilon = 30, 1.0
    k = np.arange(-sensitivity, sensitivity + 1)
    rows = np.zeros((4 * sensitivity, k.size))
    for i in range(2 * sensitivity):
        rows[2 * i, i], rows[2 * i, i + 1] = 1, -math.exp(epsilon)
        rows[2 * i + 1, i + 1], rows[2 * i + 1, i] = 1, -math.exp(epsilon)
    best = optimize.linprog(np.abs(k), A_ub=rows, b_ub=np.zeros(4 * sensitivity), A_eq=np.ones((1, k.size)), b_eq=[1])
    ours = 1 / math.sinh(epsilon)
    return Computed(
        f"ε = 1, noise on the integers: the program's least E|noise| is {best.fun:.5f}; discrete Laplace 1/sinh(ε) = "
        f"{ours:.5f}.",
        stated=ours > best.fun * 1.001,
        corrected=close(best.fun, ours, 1e-5),
    )
