"""The third document: a lecture on selection problems and the exponential mechanism."""

from __future__ import annotations

import itertools
import math

import numpy as np
from claim import Computed, Computing, close, replaced, softmax, worst_loss
from scipy import special

import dither as dp

claims = Computing(3)

PRICES = np.arange(1, 200) / 100


def _likes(users: tuple[tuple[int, ...], ...]) -> np.ndarray:
    return np.array(users).sum(axis=0)


def _revenue(values: np.ndarray) -> np.ndarray:
    """p times the number of values at least p, for each price."""
    return PRICES * (values[:, None] >= PRICES - 1e-12).sum(axis=0)


@claims("Example 1.1")
def heavy_hitter() -> Computed:
    subsets = list(itertools.product((0, 1), repeat=3))
    changes = [np.abs(_likes((a, c)) - _likes((b, c))) for a, b, c in itertools.product(subsets, repeat=3)]
    one, whole = max(int(c.max()) for c in changes), max(int(c.sum()) for c in changes)
    return Computed(
        f"3 sites, 2 users, all neighbors: one score {one}, the list {whole}.", stated=one == 1 and whole == 3
    )


@claims("Example 1.2, Δ")
def pricing_sensitivity() -> Computed:
    def largest(top: float) -> float:
        grid = np.linspace(0, top, 200)
        one = [_revenue(np.array([v])) for v in grid]
        return float(max(np.abs(a - b).max() for a, b in itertools.combinations(one, 2)))

    inside, wide = largest(1.0), largest(1.99)
    return Computed(
        f"all pairs of values on a grid: {inside:.2f} for values in [0, 1], {wide:.2f} in [0, 1.99].",
        stated=close(inside, 1.99),
        corrected=close(inside, 1) and close(wide, 1.99),
    )


@claims("Example 1.2, noise on the price")
def fragile_price() -> Computed:
    q = dict(zip((PRICES * 100).round().astype(int).tolist(), _revenue(np.full(100, 0.70)).tolist(), strict=True))
    return Computed(
        f"100 people: {q[69]:.2f}, {q[70]:.2f}, {q[71]:.2f} at 0.69, 0.70, 0.71.",
        stated=close(q[69], 69) and close(q[70], 70) and q[71] == 0,
    )


@claims("Equation (2)")
def misprinted_law() -> Computed:
    q = np.array([1.0, 2.0, 3.0])
    printed = np.exp(q / 2) / np.exp(0.5 * q / 2).sum()
    right = softmax(q, 0.25)
    return Computed(
        f"scores 1, 2, 3, ε = 0.5: they add to {printed.sum():.4f}; with ε to {right.sum():.4f}.",
        stated=close(float(printed.sum()), 1),
        corrected=close(float(right.sum()), 1),
    )


@claims("After equation (2)")
def infinite_domains() -> Computed:
    epsilon = 1.0
    k = np.arange(-400, 401)
    total = float(np.exp(-epsilon / 2 * np.abs(k - 7)).sum())
    flat = [float(np.exp(np.zeros(2 * r + 1)).sum()) for r in (10, 100, 1000)]
    return Computed(
        f"score −|y − 7| on the integers, ε = 1: the sum is {total:.6f} = coth(¼); with equal scores it is "
        + ", ".join(f"{v:.0f}" for v in flat)
        + " over ±10, ±100, ±1000.",
        stated=close(total, 1 / math.tanh(0.25)) and flat[2] > 10 * flat[0],
    )


@claims("Theorem 1.3")
def theorem() -> Computed:
    m = dp.Exponential(sensitivity=1, epsilon=1)
    pairs = list(replaced(6, 3))
    loss = worst_loss(lambda c: m.probabilities(np.array(c)), pairs)
    weight = max(float(np.abs(np.subtract(x, y)).max()) / 2 for x, y in pairs)
    sums = max(abs(math.log(np.exp(np.array(x) / 2).sum() / np.exp(np.array(y) / 2).sum())) for x, y in pairs)
    return Computed(
        f"3 counts of 6 records, ε = 1, all neighbors: weight {weight:.4f}, sum {sums:.4f}, loss {loss:.4f}.",
        stated=weight <= 0.5 and sums <= 0.5 and loss <= 1,
    )


@claims("Theorem 1.3, infinite domains")
def infinite_theorem() -> Computed:
    k = np.arange(-300, 301)

    def law(center: int) -> np.ndarray:
        return softmax(-np.minimum(np.abs(k - center), 2 * np.abs(k)), 0.5)

    loss = max(float(np.abs(np.log(law(a) / law(a + 1))).max()) for a in range(-5, 5))
    return Computed(
        f"integers, score −min(|y − x|, 2|y|), Δ = 1, ε = 1, neighbors x, x + 1: largest loss {loss:.4f}.",
        stated=loss <= 1,
    )


@claims("Proposition 1.4, (5)")
def tail() -> Computed:
    worst = 0.0
    for scores in itertools.product(np.arange(0, 12.5, 1.5), repeat=3):
        z = np.array([0.0, *scores])
        p = softmax(-z, 1.0)
        worst = max(worst, *(float(p[z > math.log(4) + t].sum()) * math.exp(t) for t in (0.01, 1, 3, 6)))
    return Computed(f"4 candidates, all gaps on a grid: at most {worst:.4f} of e^(−t).", stated=worst <= 1)


@claims("Proposition 1.4, (6)")
def mean() -> Computed:
    worst, tied = 0.0, 0.0
    for scores in itertools.product(np.arange(0, 6.1, 0.5), repeat=4):
        z = np.array([0.0, *scores])
        gap, r = float(softmax(-z, 1.0) @ z), int((z == 0).sum())
        worst = max(worst, gap / (math.log(5) + 1))
        tied = max(tied, gap - math.log(5 / r))
    return Computed(
        f"5 candidates, all gaps on a grid: at most {worst:.4f} of the bound, and never above ln(d/r) alone.",
        stated=worst <= 1 and tied <= 1e-12,
    )


@claims("Proof of Proposition 1.4")
def constant() -> Computed:
    weights = np.exp(np.array([1.0, 2.0, 3.0]) / 2)
    return Computed(
        f"scores 1, 2, 3, ε = 1: such numbers add to {(weights * weights.sum()).sum():.2f}; with 1/sum to "
        f"{(weights / weights.sum()).sum():.2f}.",
        stated=close(float((weights * weights.sum()).sum()), 1),
        corrected=close(float((weights / weights.sum()).sum()), 1),
    )


@claims("Example 1.5, bound")
def ninety_nine() -> Computed:
    far = 2 / 0.5 * (math.log(100) + math.log(100))
    p = softmax(np.array([0.0] + [-30.0] * 99), 0.25)
    best = float(p[0])
    ours = dp.Exponential(sensitivity=1, epsilon=0.5).error(100, 0.99)
    return Computed(
        f"(2/0.5)(ln 100 + ln 100) = {far:.2f}. All others 30 below: the best itself has probability "
        f"{best:.4f}, and is "
        "not 36.8 below the best.",
        stated=best < 0.01,
        corrected=close(far, ours, 1e-6) and round(far, 1) == 36.8,
    )


@claims("Example 1.5, winner")
def ahead() -> Computed:
    p = float(dp.Exponential(sensitivity=1, epsilon=0.5).probabilities([39.0] + [0.0] * 99)[0])
    return Computed(f"99 others all 39 below: probability {p:.4f}.", stated=p >= 0.99)


@claims("Example 1.5, Laplace")
def all_scores() -> Computed:
    largest = 200 * float(sum(1 / k for k in range(1, 101)))
    return Computed(f"expected largest |noise| of 100: 200·(1 + ½ + … + 1/100) = {largest:.0f}.", stated=largest > 400)


@claims("Example 1.6")
def thirty_one() -> Computed:
    printed = 2 * 1.999 * math.log(200)
    right = 2 * 1.99 * math.log(199)
    sharp = dp.Exponential(sensitivity=1.99, epsilon=1).expected_score_bound(199)
    return Computed(
        f"printed product {printed:.2f}, with log₂ {2 * 1.999 * math.log2(200):.2f}; the bound {right:.2f}; "
        f"the largest expected gap of any 199 scores {sharp:.2f}.",
        stated=round(printed) == 31 or round(right) == 31,
        corrected=sharp <= right < printed
        and PRICES.size == 199
        and close(sharp, 3.98 * special.lambertw(198 / math.e).real),
    )


def _near(m: dp.Exponential, n: int, prices: int) -> float:
    """A bound on the expected loss of revenue whatever the n answers are.

    j steps below the best price lose at most a step for each buyer and step: j + 1 prices are within ``j n step`` of
    the best. If the best is one of the lowest ``kept`` prices, it earns at most ``kept n step`` itself.
    """
    step, steps = 1.99 / prices, sorted({int(1.15**i) for i in range(200)})

    def bound(kept: int) -> float:
        ties = {j * step * n: j + 1 for j in steps if j < kept}
        return max(m.expected_score_bound(prices, ties=ties), kept * n * step)

    return min(bound(max(1, prices * i // 40)) for i in range(40))


@claims("After Example 1.6")
def neighboring_prices() -> Computed:
    q = _revenue(np.full(1000, 0.70))
    regret = float(q.max() - softmax(q, 1 / (2 * 1.99)) @ q)
    m, n = dp.Exponential(sensitivity=1.99, epsilon=1), 20
    sizes = (199, 19_900, 10**6)
    printed, plain, near = (
        [f(d) for d in sizes] for f in (lambda d: 3.98 * math.log(d), m.expected_score_bound, lambda d: _near(m, n, d))
    )
    worst = 0.0
    for d, bound in zip(sizes[:2], near, strict=False):
        prices = 1.99 * np.arange(1, d + 1) / d
        for wanted in ([0.7] * n, [1.99] * n, list(np.linspace(0.1, 1.9, n)), [0.01] * (n - 1) + [1.9]):
            scores = prices * (np.array(wanted)[:, None] >= prices - 1e-12).sum(axis=0)
            worst = max(worst, float(scores.max() - softmax(scores, 1 / 3.98) @ scores) / bound)
    figures = ["/".join(f"{value:.1f}" for value in row) for row in (printed, plain, near)]
    return Computed(
        f"1000 people at 0.70, ε = 1: expected loss of revenue {regret:.2f}, bound 21.07. {n} people, 199/19,900/10⁶ "
        f"prices: 2Δ ln d = {figures[0]}, without ties at most {figures[1]}, with near-ties {figures[2]}. Eight "
        f"surveys, exactly: at most {worst:.3f} of the last.",
        stated=regret < 21 and worst <= 1 and all(c <= b < a for a, b, c in zip(printed, plain, near, strict=True)),
    )


@claims("1.3, table")
def sign_of_laplace() -> Computed:
    plus = [2 * (math.exp(r / 2) - 1) / 0.5 for r in (10, 50)]
    minus = [2 * (1 - math.exp(-r / 2)) / 0.5 for r in (10, 50)]
    return Computed(
        f"one dimension, ε = Δ = 1, integral over ±10 and ±50: {plus[0]:.0f} and {plus[1]:.1e} with +, "
        f"{minus[0]:.4f} and "
        f"{minus[1]:.4f} with −.",
        stated=close(plus[0], plus[1], 0.1),
        corrected=close(minus[0], minus[1], 0.01),
    )


@claims("1.3, Laplace")
def factor_two() -> Computed:
    y = np.linspace(-60, 61, 1211)
    loss = {rate: float(np.abs(-rate * np.abs(y) + rate * np.abs(y - 1)).max()) for rate in (0.5, 1.0)}
    return Computed(
        f"ε = Δ = 1: the loss is {loss[0.5]:.4f} at rate ε/2 and {loss[1.0]:.4f} at rate ε.",
        stated=close(loss[0.5], 0.5) and close(loss[1.0], 1),
    )


@claims("1.3, randomized response")
def response() -> Computed:
    y = list(itertools.product((0, 1), repeat=3))

    def law(x: tuple[int, ...]) -> np.ndarray:
        return softmax([sum(a == b for a, b in zip(x, v, strict=True)) for v in y], 0.5)

    loss = worst_loss(law, [(x, (1 - x[0], *x[1:])) for x in y])
    rr = dp.RandomizedResponse(epsilon=1)
    full = math.log(rr.probability / (1 - rr.probability))
    return Computed(
        f"3 people, all 8 answers, ε = 1: the loss is {loss:.4f}; randomized response with p = "
        f"{rr.probability:.4f} has "
        f"{full:.4f}.",
        stated=close(loss, 0.5) and close(full, 1),
    )
