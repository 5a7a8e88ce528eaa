"""The second document, second part: local and smooth sensitivity (Examples 12 to 21)."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
from claim import Computed, Computing, close
from scipy import stats

import dither as dp
from dither.accounting.smooth import gaussian_smooth_delta, laplace_smooth_delta

claims = Computing(2)

Data = tuple[int, ...]
WIDTH = 4
VALUES = tuple(range(WIDTH + 1))


@cache
def _all(n: int) -> list[Data]:
    """Every data set of n records, sorted: order does not matter."""
    return list(itertools.combinations_with_replacement(VALUES, n))


@cache
def _distance(x: Data, y: Data) -> int:
    """How many records must be replaced: sets with repetition."""
    return len(x) - sum(min(x.count(v), y.count(v)) for v in VALUES)


def _local(f: Callable[[Data], float], x: Data) -> float:
    return max(abs(f(x) - f(tuple(sorted((*x[:i], v, *x[i + 1 :]))))) for i in range(len(x)) for v in VALUES)


def _median(x: Data) -> float:
    return float(x[len(x) // 2])


def _mean(x: Data) -> float:
    return sum(x) / len(x)


def _smooth(f: Callable[[Data], float], n: int, beta: float) -> dict[Data, float]:
    """Definition 14, over all data sets."""
    local = {y: _local(f, y) for y in _all(n)}
    return {x: max(local[y] * math.exp(-beta * _distance(x, y)) for y in local) for x in local}


def _halves(n: int, more: int) -> list[float]:
    m = (n + 1) // 2
    return [0.0] * (m + more) + [1.0] * (n - m - more)


@claims("Example 12, sensitivities")
def local_median() -> Computed:
    pairs = []
    for n in (3, 5):
        m = n // 2
        for x in _all(n):
            pairs.append(
                (_local(_median, x), max(x[m] - x[m - 1], x[m + 1] - x[m]), dp.sensitivity.local_median(x, (0, 4)))
            )
    same = all(a == b and close(a, c) for a, b, c in pairs)
    return Computed(
        f"all {len(pairs)} data sets of 3 and 5 records in 0…4: equal in each; the largest is "
        f"{max(a for a, _, _ in pairs):.0f}.",
        stated=same and max(a for a, _, _ in pairs) == WIDTH,
    )


@claims("Example 12, leak")
def local_leaks() -> Computed:
    result = [dp.sensitivity.local_median(_halves(11, more), (0, 1)) for more in (0, 1)]
    return Computed(
        f"n = 11: both medians 0, local sensitivities {result[0]:g} and {result[1]:g}; P(release ≠ 0) is 1 and 0, "
        "so δ = 1.",
        stated=close(result[0], 1) and result[1] == 0 and np.median(_halves(11, 0)) == np.median(_halves(11, 1)) == 0,
    )


@claims("Smooth sensitivity, preliminaries")
def largest_local() -> Computed:
    worst = max(_local(_mean, x) for x in _all(4))
    ours = dp.sensitivity.mean(n=4, bounds=(0, 4), neighbors=dp.ReplaceOne)
    return Computed(f"mean of 4 records in 0…4: {worst:g}, Λ/n = {ours:g}.", stated=close(worst, ours))


@claims("Definition 13")
def constant_is_smooth() -> Computed:
    s = _smooth(_median, 3, 0.5)
    ratio = max(s[x] / s[y] for x in s for y in s if _distance(x, y) == 1)
    return Computed(
        f"median of 3 records in 0…4, β = 0.5: largest ratio {ratio:.6f}, e^β = {math.exp(0.5):.6f}.",
        stated=ratio <= math.exp(0.5) + 1e-12 and max(_local(_median, x) for x in s) == WIDTH,
    )


@claims("After Definition 13")
def conservative() -> Computed:
    s = _smooth(_median, 5, 1.0)
    tight = sum(close(s[x], _local(_median, x)) for x in s)
    spread = dp.sensitivity.smooth_median([0, 0, 0, 4, 4], (0, 4), 1.0) / 4
    return Computed(
        f"median of 5 records in 0…4, β = 1: equal in {tight} of {len(s)} data sets; for (0, 0, 0, 4, 4) the ratio is "
        f"{spread:.4f}; for five equal records the local one is 0.",
        stated=tight == 0,
        corrected=tight > 0 and close(spread, 1) and _local(_median, (2,) * 5) == 0 < s[(2,) * 5],
    )


@claims("Lemma 15")
def least_smooth_bound() -> Computed:
    beta, n = 0.5, 3
    s = _smooth(_median, n, beta)
    smooth = max(s[x] / s[y] for x in s for y in s if _distance(x, y) == 1) <= math.exp(beta) + 1e-12
    above = all(s[x] >= _local(_median, x) for x in s)
    # any smooth bound, from x step by step to the y that attains the maximum, is at least this
    least = all(any(close(s[x], _local(_median, y) * math.exp(-beta * _distance(x, y))) for y in s) for x in s)
    return Computed(
        f"median, all {len(s)} data sets of 3 records in 0…4, β = 0.5: smooth, above the local one, and each value is "
        "e^(−βd) times a local one at distance d, which no smooth bound can undercut.",
        stated=smooth and above and least,
    )


def _hockey(pdf_p: np.ndarray, pdf_q: np.ndarray, step: np.ndarray, epsilon: float) -> float:
    return float((np.maximum(pdf_p - math.exp(epsilon) * pdf_q, 0) * step).sum())


def _scan(law: stats.rv_continuous, scale: float, beta: float, epsilon: float) -> float:
    """The worst delta over shifts up to the sensitivity and scales within e^(+-beta), by a sum on a fine grid."""
    edges = np.sinh(np.linspace(-9, 9, 40001)) * scale / 100
    z, step = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    worst = 0.0
    for shift, b in itertools.product((0.0, 0.5, 1.0), np.linspace(-beta, beta, 5)):
        # units of the sensitivity at x; that of y is e^b times as large, and the shift at most the smaller
        q = law.pdf(z, loc=shift * min(1.0, math.exp(b)), scale=scale * math.exp(b))
        worst = max(worst, _hockey(law.pdf(z, scale=scale), q, step, epsilon))
    return worst


@claims("Proposition 16")
def smooth_laplace() -> Computed:
    rows = []
    for epsilon, small in ((1.0, 1e-3), (1.0, 1e-6), (0.1, 1e-3)):
        beta = epsilon / (2 * math.log(2 / small))
        seen = _scan(stats.laplace, 2 / epsilon, beta, epsilon)
        exact = laplace_smooth_delta(Fraction(epsilon), Fraction(2) / Fraction(epsilon), Fraction(beta))
        rows.append((small * (math.exp(epsilon / 2) + 1) / 2, exact, seen))
    return Computed(
        "(ε, δ′) = (1, 1e-3), (1, 1e-6), (0.1, 1e-3): claimed δ "
        + ", ".join(f"{a:.2e}" for a, _, _ in rows)
        + "; true "
        + ", ".join(f"{b:.1e}" for _, b, _ in rows)
        + ".",
        stated=all(seen <= exact * 1.01 + 1e-12 and exact <= claim for claim, exact, seen in rows),
    )


@claims("Corollary 17")
def smooth_laplace_delta() -> Computed:
    epsilon, delta = 1.0, 1e-6
    small = 2 * delta / (math.exp(epsilon / 2) + 1)
    beta = epsilon / (2 * math.log(2 / small))
    true = laplace_smooth_delta(Fraction(1), Fraction(2), Fraction(beta))
    ours = dp.SmoothNoise("laplace", epsilon=1, delta=delta)
    return Computed(
        f"ε = 1, δ = 1e-6: δ′ = {small:.3e}, β = {beta:.4f}, true δ {true:.1e}; exact calibration takes β = "
        f"{ours.beta:.4f}.",
        stated=true <= delta and ours.beta > beta,
    )


def _heavy_loss(gamma: float, epsilon: float) -> float:
    scale, beta = 2 * (gamma + 1) / epsilon, epsilon / (2 * (gamma + 1))
    z = np.concatenate([-np.geomspace(1e6, 1e-4, 4000), np.geomspace(1e-4, 1e6, 4000)])
    worst = 0.0
    for b in np.linspace(-beta, beta, 21):
        for shift in (0.5, 1.0):
            d = shift * min(1.0, math.exp(b)) / scale
            other = b + np.log1p(np.abs((z - d) * math.exp(-b)) ** gamma)
            worst = max(worst, float(np.abs(other - np.log1p(np.abs(z) ** gamma)).max()))
    return worst


@claims("Noise with heavy tails")
def heavy_tails() -> Computed:
    rows = {(g, e): _heavy_loss(g, e) / e for g in (1.1, 2, 4, 8) for e in (0.1, 1, 5, 30)}
    return Computed(
        "largest loss over ε, γ = 1.1, 2, 4, 8: "
        + ", ".join(f"{max(rows[g, e] for e in (0.1, 1, 5, 30)):.3f}" for g in (1.1, 2, 4, 8))
        + " (ε = 0.1, 1, 5, 30, the worst of them).",
        stated=max(rows.values()) <= 1,
    )


@claims("Normal noise")
def smooth_normal() -> Computed:
    def parameters(epsilon: float, delta: float) -> tuple[float, float]:
        return 5 * math.sqrt(2 * math.log(2 / delta)) / epsilon, epsilon / (2 * math.log(2 / delta))

    rows = []
    for epsilon, delta in ((1.0, 1e-3), (1.0, 1e-6), (3.0, 1e-3), (3.0, 1e-6)):
        s, beta = parameters(epsilon, delta)
        exact = gaussian_smooth_delta(Fraction(epsilon), Fraction(s), Fraction(beta))
        rows.append((delta, exact, _scan(stats.norm, s, beta, epsilon)))
    s, beta = parameters(10, 1e-6)
    far = _scan(stats.norm, s, beta, 10)
    # without any shift: the wider law beyond the place where the ratio is e^epsilon
    place = math.sqrt(2 * (10 + beta) / (math.exp(2 * beta) - 1))
    alone = 2 * float(stats.norm.sf(place) - math.exp(10) * stats.norm.sf(place * math.exp(beta)))
    try:
        dp.SmoothNoise("gaussian", epsilon=10, delta=1e-6, calibration="textbook")
        refused = False
    except dp.NotPrivate:
        refused = True
    return Computed(
        "(ε, δ) = (1, 1e-3), (1, 1e-6), (3, 1e-3), (3, 1e-6): true δ "
        + ", ".join(f"{b:.0e}" for _, b, _ in rows)
        + f". (10, 1e-6): {far:.1e}, of which {alone:.1e} without any shift; the library refuses it.",
        stated=far <= 1e-6,
        corrected=refused
        and alone > 1e-6
        and all(seen <= exact * 1.05 + 1e-12 and exact <= d for d, exact, seen in rows),
    )


@claims("After normal noise")
def more_noise() -> Computed:
    delta, n = 1e-6, 1001
    beta = 1 / (2 * math.log(2 / delta))
    smooth = dp.sensitivity.smooth_median(np.arange(n) / (n - 1), (0, 1), beta)
    ours = 5 * math.sqrt(2 * math.log(2 / delta)) * smooth
    theirs = math.sqrt(2 * math.log(1.25 / delta))
    return Computed(
        f"1001 records evenly in [0, 1], ε = 1, δ = 1e-6: S = {smooth:.4f}·Δ; standard deviation {ours:.3f} against "
        f"{theirs:.3f}.",
        stated=ours > theirs,
        corrected=ours < theirs / 10,
    )


@claims("Computation")
def computable() -> Computed:
    s = _smooth(_median, 5, 0.3)
    error = max(abs(s[x] / dp.sensitivity.smooth_median(x, (0, 4), 0.3) - 1) for x in s)
    return Computed(
        f"all {len(s)} data sets of 5 records in 0…4, β = 0.3: formula and definition agree to "
        f"{9 if error < 1e-9 else 0} "
        "digits.",
        stated=error > 1e-9,
        corrected=error <= 1e-9,
    )


@claims("Definition 18 and after")
def by_distance() -> Computed:
    beta, n = 0.3, 3
    s, local = _smooth(_mean, n, beta), {y: _local(_mean, y) for y in _all(n)}

    def by(x: Data, near: Callable[[int, int], bool]) -> float:
        rings = [[local[y] for y in local if near(_distance(x, y), k)] for k in range(n + 1)]
        return max(math.exp(-beta * k) * max(ring, default=0.0) for k, ring in enumerate(rings))

    at, within = ({x: by(x, near) for x in local} for near in (operator.eq, operator.le))
    return Computed(
        f"mean of 3 records in 0…4, β = 0.3: all {len(s)} values are equal.",
        stated=all(close(s[x], within[x]) and close(s[x], at[x]) for x in s),
    )


@claims("Example 19")
def mean_at_a_distance() -> Computed:
    x, n = (1, 1, 2), 3
    local = {y: _local(_mean, y) for y in _all(n)}
    a = [max(local[y] for y in local if _distance(x, y) <= k) * n for k in range(3)]
    printed = (max(x), max(max(v, WIDTH - v) for v in x))
    return Computed(
        f"x = (1, 1, 2) in 0…4, n times each: printed local {printed[0]}, A_1 = {printed[1]}; enumerated A_0, "
        "A_1, A_2 = " + ", ".join(f"{v:g}" for v in a) + ".",
        stated=close(a[0], printed[0]) and close(a[1], printed[1]),
        corrected=close(a[0], printed[1]) and close(a[1], WIDTH) and close(a[2], WIDTH),
    )


@claims("After Example 19")
def useless_for_means() -> Computed:
    beta = 0.3
    s = _smooth(_mean, 4, beta)
    error = max(abs(s[x] / dp.sensitivity.smooth_mean(x, (0, 4), beta) - 1) for x in s)
    gain = min(s.values()) / (WIDTH / 4)
    try:
        dp.sensitivity.smooth_mean([1.0], (0, math.inf), beta)
        refused = False
    except dp.NotPrivate:
        refused = True
    return Computed(
        f"mean of 4 records in 0…4, β = 0.3: smallest smooth sensitivity {gain:.4f}·Λ/n, e^(−β) = "
        f"{math.exp(-beta):.4f}; "
        "without bounds the library refuses.",
        stated=error < 1e-9 and gain >= math.exp(-beta) - 1e-12 and refused,
    )


def _formula_4(x: Data, beta: float, low: float, high: float) -> float:
    n, m = len(x), (len(x) + 1) // 2

    def at(i: int) -> float:
        return low if i < 1 else high if i > n else float(x[i - 1])

    return max(math.exp(-k * beta) * max(at(m + t) - at(m + t - k - 1) for t in range(k + 2)) for k in range(n + 1))


@claims("Example 20")
def median_formula() -> Computed:
    s = _smooth(_median, 5, 0.3)
    right = max(abs(_formula_4(x, 0.3, 0, WIDTH) / s[x] - 1) for x in s)
    short = sum(_formula_4(x, 0.3, x[0], x[-1]) < s[x] - 1e-9 for x in s)
    return Computed(
        f"all {len(s)} data sets of 5 records in 0…4, β = 0.3: with the ends of the range all are equal; with "
        "the nearest "
        f"record {short} are too small.",
        stated=short == 0,
        corrected=right < 1e-12,
    )


@claims("Example 21")
def repaired() -> Computed:
    beta = 0.5
    s = [dp.sensitivity.smooth_median(_halves(11, more), (0, 1), beta) for more in (0, 1)]
    return Computed(
        f"n = 11, Λ = 1, β = 0.5: S = {s[0]:.4f} and {s[1]:.4f}, ratio {s[0] / s[1]:.4f} = e^β.",
        stated=close(s[0], 1) and close(s[0] / s[1], math.exp(beta)),
    )


@claims("Summary, noise")
def less_noise() -> Computed:
    beta = 1 / (2 * math.log(2 / 1e-6))
    mean = 2 * dp.sensitivity.smooth_mean(np.arange(1001) / 1000, (0, 1), beta) * 1001
    median = 2 * dp.sensitivity.smooth_median(np.arange(1001) / 1000, (0, 1), beta)
    return Computed(
        "1001 records evenly in [0, 1], ε = 1, δ′ = 1e-6, scale of Laplace noise over the global one: mean "
        f"{mean:.3f}, "
        f"median {median:.4f}.",
        stated=mean < 1,
        corrected=median < 1,
    )


@claims("Summary, global")
def global_is_known() -> Computed:
    ours = dp.sensitivity.var(n=4, bounds=(0, 4), neighbors=dp.ReplaceOne)
    brute = max(_local(lambda x: float(np.var(x, ddof=1)), x) for x in _all(4))
    return Computed(
        f"variance of 4 records in 0…4: Λ²/n = {ours:g}, enumeration {brute:g}.",
        stated=not close(ours, brute),
        corrected=close(ours, brute),
    )
