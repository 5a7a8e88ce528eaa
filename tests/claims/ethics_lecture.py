"""The fifth document: a lecture on data ethics: Laplace, the exponential mechanism, composition, budgets."""

from __future__ import annotations

import itertools
import math

import numpy as np
from claim import Computed, Computing, close, neighbors, sensitivity, softmax
from scipy import stats

import dither as dp

claims = Computing(5)


@claims("1, average")
def average() -> Computed:
    unit, wide = (sensitivity(np.mean, (0, width / 2, width), 5) * 5 for width in (1, 40))
    return Computed(
        f"n = 5, n·sensitivity: {unit:.4f} for values in [0, 1], {wide:.4f} in [0, 40].",
        stated=close(wide, 1),
        corrected=close(unit, 1) and close(wide, 40),
    )


@claims("1, standard deviation")
def deviation() -> Computed:
    result = [
        sensitivity(lambda x: float(np.std(x, ddof=1)), (0, 0.25, 0.5, 0.75, 1), n) * math.sqrt(n) for n in (3, 4, 5)
    ]
    wide = sensitivity(lambda x: float(np.std(x, ddof=1)), (0, 20, 40), 4) * 2
    ours = dp.sensitivity.std(n=5, bounds=(0, 1), neighbors=dp.ReplaceOne) * math.sqrt(5)
    return Computed(
        "√n·sensitivity by enumeration, n = 3, 4, 5: "
        + ", ".join(f"{v:.4f}" for v in result)
        + f"; for values in [0, 40], n = 4: {wide:.4f}.",
        stated=close(wide, 1),
        corrected=all(close(v, 1) for v in result) and close(ours, 1),
    )


@claims("1.1, analysis")
def ratio() -> Computed:
    result = {}
    for epsilon in (0.01, 0.5, 2.0):
        b = 3 / epsilon
        result[epsilon] = max(
            float(stats.laplace.pdf(o, x, b) / stats.laplace.pdf(o, y, b))
            for x, y in ((0, 3), (3, 0), (0, 1.5))
            for o in np.linspace(-9, 9, 37)
        )
    return Computed(
        "Δ = 3, ε = 0.01, 0.5, 2: largest ratio " + ", ".join(f"{v:.5f}" for v in result.values()) + ".",
        stated=all(v <= math.exp(e) * (1 + 1e-9) for e, v in result.items()) and result[0.01] < 1.011,
    )


@claims("1.1, last step")
def last_step() -> Computed:
    width, epsilon = 1.0, 0.5
    return Computed(
        f"Δ = 1, ε = 0.5: e^(Δ/ε) = {math.exp(width / epsilon):.4f}, e^ε = {math.exp(epsilon):.4f}, e^(Δ/b) = "
        f"{math.exp(width / (width / epsilon)):.4f}.",
        stated=close(width / epsilon, epsilon),
        corrected=close(width / (width / epsilon), epsilon),
    )


@claims("3, generalized sensitivity")
def generalized() -> Computed:
    outputs = (0, 1, 2)
    moved = max(abs(x.count(o) - y.count(o)) for x, y in neighbors(outputs, 3) for o in outputs)
    p = {x: softmax([x.count(o) for o in outputs], 0.5 / moved) for x in itertools.product(outputs, repeat=3)}
    first = all(int(np.argmax(p[x])) == max(outputs, key=lambda o, x=x: (x.count(o), -o)) for x in p)
    return Computed(
        f"votes of 3 people for 3 outputs: Δu = {moved}; the best output is the likeliest in all 27 cases.",
        stated=moved == 1 and first,
    )


@claims("4")
def not_normalized() -> Computed:
    total = float(np.exp(np.array([15, 20, 25]) / 2).sum())
    return Computed(
        f"utilities 15, 20, 25, ε = Δ = 1: these “probabilities” add to {total:,.0f}; divided by their sum to "
        f"{softmax([15, 20, 25], 0.5).sum():.0f}.",
        stated=close(total, 1),
        corrected=close(float(softmax([15, 20, 25], 0.5).sum()), 1),
    )


@claims("5, two algorithms")
def two_algorithms() -> Computed:
    e1, e2 = 0.5, 1.0
    p, q = (math.exp(e) / (1 + math.exp(e)) for e in (e1, e2))
    after = math.log((p * q + (1 - p) * (1 - q)) / (p * (1 - q) + (1 - p) * q))
    both = math.log(p * q / ((1 - p) * (1 - q)))
    return Computed(
        f"randomized response, ε = 0.5, then 1: on the response {after:.4f}; on the data again, both released "
        f"{both:.4f}.",
        stated=close(after, e1 + e2),
        corrected=after <= e1 and close(both, e1 + e2),
    )


@claims("5, m times")
def many_times() -> Computed:
    p = math.exp(0.1) / (1 + math.exp(0.1))
    loss = 100 * math.log(p / (1 - p))
    total = (dp.PureDP(0.1) * 100).epsilon
    k = np.arange(101)
    losses = 0.1 * (2 * k - 100)

    def delta(epsilon: float) -> float:
        weights = stats.binom.pmf(k, 100, p)
        return float((weights * np.maximum(1 - np.exp(epsilon - losses), 0)).sum())

    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if delta(middle) <= 1e-6 else (middle, high)
    return Computed(
        f"randomized response, ε = 0.1, 100 times: {loss:.4f}; at δ = 1e-6 {high:.4f}.",
        stated=close(loss, 10) and close(total, 10) and high < 6,
    )


@claims("6, combining releases")
def combined() -> Computed:
    result = []
    for m in (1, 100, 10**4):
        noise = math.sqrt(2 / m) / 0.1
        result.append(float(2 * stats.norm.cdf(0.5 / noise) - 1) if m > 1 else 1 - math.exp(-0.05))
    return Computed(
        "a count with Lap(1/0.1), asked 1, 100, 10,000 times and averaged (normal approximation): exact after rounding "
        "with probability " + ", ".join(f"{v:.3f}" for v in result) + ".",
        stated=result[0] < 0.06 and result[2] > 0.99,
    )


@claims("6, budget")
def budget() -> Computed:
    takes_part = {"a": (0.5, 0.25), "b": (0.5,), "c": (0.25, 0.5, 0.125)}
    sums = {who: sum(parts) for who, parts in takes_part.items()}
    ours = dp.parallel(*(dp.sequential(*(dp.PureDP(e) for e in parts)) for parts in takes_part.values())).epsilon
    probabilities = {e: math.exp(e) / (1 + math.exp(e)) for e in (0.5, 0.25, 0.125)}
    worst = max(
        math.log(math.prod(probabilities[e] / (1 - probabilities[e]) for e in parts)) for parts in takes_part.values()
    )
    return Computed(
        f"three people in randomized responses of ½ and ¼; ½; ¼, ½ and ⅛: {sums['a']:g}, {sums['b']:g}, {sums['c']:g}; "
        f"together {ours:g}.",
        stated=ours == max(sums.values()) and close(worst, ours),
    )


@claims("7, a budget reset every day")
def reset() -> Computed:
    p = math.exp(1) / (1 + math.exp(1))
    right = {days: float(stats.binom.sf(days // 2, days, p)) for days in (1, 31, 365)}
    return Computed(
        "randomized response, ε = 1 a day: total 1, 31, 365 after 1, 31, 365 days; the majority of the answers "
        "is the truth "
        "with probability " + ", ".join(f"{v:.6f}" for v in right.values()) + ".",
        stated=right[1] < 0.74 and right[365] > 0.999999,
    )


@claims("2, motivation")
def noise_on_weights() -> Computed:
    weights, bound = 65, 8.0
    kept = {}
    for epsilon in (1.0, 100.0, 10_000.0):
        scale = 2 * bound * weights / epsilon
        kept[epsilon] = float(stats.laplace.cdf(bound, scale=scale))
    survive = {epsilon: share**weights for epsilon, share in kept.items()}
    return Computed(
        "65 weights of ±B, the interval's ends: the noise keeps the sign of one with probability "
        + ", ".join(f"{v:.4f}" for v in kept.values())
        + " at ε = 1, 100, 10,000, and all 65 with "
        + ", ".join(f"{v:.1e}" for v in survive.values())
        + ".",
        stated=kept[1.0] < 0.51 and survive[100.0] < 1e-6 and survive[10_000.0] > 0.99,
    )
