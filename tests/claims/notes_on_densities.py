"""The first document: class notes on the exponential mechanism, and on releasing densities."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from claim import Computed, Computing, close, neighbors, replaced, sensitivity, softmax, worst_loss
from scipy import integrate, special, stats

import dither as dp
from dither.density.ks import Problem
from dither.density.release import smallest_theta

claims = Computing(1)


@claims("Theorem, exponential mechanism")
def exponential_theorem() -> Computed:
    m = dp.Exponential(sensitivity=1, epsilon=1)
    loss = worst_loss(lambda c: m.probabilities(np.array(c)), replaced(5, 3))
    far = [abs((0.0 - place) ** 2 - (0.1 - place) ** 2) for place in (1.0, 10.0, 100.0)]
    return Computed(
        f"3 counts of 5 records, all neighbors, ε = 1: largest loss {loss:.4f}. Square utility of a mean over the "
        f"line, n = 10: it moves by {far[0]:.2f}, {far[1]:.2f}, {far[2]:.2f} at 1, 10, 100: no finite sensitivity.",
        stated=far[2] < 1,
        corrected=loss <= 1,
    )


@claims("Intuition of the proof")
def two_halves() -> Computed:
    d = 10**6
    x, y = np.zeros(d), np.full(d, -1.0)
    y[0] = 1
    loss = math.log(softmax(y, 0.5)[0] / softmax(x, 0.5)[0])
    sums = math.log(np.exp(x / 2).sum() / np.exp(y / 2).sum())
    return Computed(
        f"a million candidates, one up by Δ and the others down, ε = 1: weight {0.5:.3f}, sum {sums:.6f}, "
        f"loss {loss:.6f}.",
        stated=loss <= 1 and close(sums, 0.5, 1e-5) and loss > 0.99999,
    )


@claims("Example, the mean")
def mean_sensitivity() -> Computed:
    result = [sensitivity(np.mean, (0, 0.25, 0.5, 0.75, 1), n) * n for n in (2, 3, 4)]
    ours = dp.sensitivity.mean(n=4, bounds=(0, 1), neighbors=dp.ReplaceOne) * 4
    return Computed(
        "enumeration, n = 2, 3, 4: n·Δ = " + ", ".join(f"{v:.6f}" for v in result) + ".",
        stated=all(close(v, 1) for v in result) and close(ours, 1),
    )


@claims("Example, the mean, absolute utility")
def absolute_score() -> Computed:
    n, epsilon = 10, 1.0
    place = np.linspace(-3, 4, 7001)
    moved = max(
        float(np.abs(np.abs(np.mean(x) - place) - np.abs(np.mean(y) - place)).max())
        for x, y in neighbors((0, 0.5, 1), 4)
    )
    rate = n * epsilon / 2
    loss = float(np.abs(rate * (np.abs(place - 0.1) - np.abs(place))).max())
    sums = [integrate.quad(lambda v, c=c: math.exp(-rate * abs(v - c)), -20, 20, points=[c])[0] for c in (0.0, 0.1)]

    def within(rate: float, mean: float) -> float:
        return (2 - math.exp(-rate * mean) - math.exp(-rate * (1 - mean))) / rate

    # |l - mean| moves by 1/n at most, and the integral over [0, 1] by most where the mean leaves an end
    kept = {e: 0.5 + math.log(within(50 * e, 0.01) / within(50 * e, 0.0)) / e for e in (1.0, 0.1)}
    return Computed(
        f"n = 4, enumeration on a grid of l: Δ·n = {moved * 4:.4f}; variance 8/(nε)² against 2/(nε)², 4 times; the "
        f"loss at n = 10, ε = 1 is {loss:.2f}. Kept to [0, 1], n = 100: {kept[1.0]:.4f}·ε at ε = 1, "
        f"{kept[0.1]:.4f}·ε at ε = 0.1.",
        stated=moved <= 0.25 + 1e-12 and close(loss, epsilon / 2) and close(sums[0], sums[1], 1e-6),
    )


@claims("Example, the mean, square utility, Δ")
def square_sensitivity() -> Computed:
    n = 10
    moved = max(
        abs((a - place) ** 2 - (a + 1 / n - place) ** 2)
        for a in np.arange(0, 1 - 1 / n + 1e-9, 0.01)
        for place in np.linspace(0, 1, 101)
    )
    return Computed(
        f"n = 10: {moved:.4f}, against 1/n = {1 / n:.1f} and (2 − 1/n)/n = {(2 - 1 / n) / n:.4f}.",
        stated=moved <= 1 / n,
        corrected=close(moved, (2 - 1 / n) / n),
    )


def _square_loss(n: int, epsilon: float, low: float, high: float) -> float:
    """The largest loss of N(mean, 1/(n epsilon)) kept to [low, high] between means 1/n apart."""
    s = 1 / math.sqrt(n * epsilon)
    worst = 0.0
    for a in np.linspace(0, 1 - 1 / n, 41):
        b = a + 1 / n
        mass_a, mass_b = (special.ndtr((high - c) / s) - special.ndtr((low - c) / s) for c in (a, b))
        for place in (low, high):
            loss = n * epsilon / 2 * ((place - b) ** 2 - (place - a) ** 2) + math.log(mass_b / mass_a)
            worst = max(worst, abs(float(loss)))
    return worst


@claims("Example, the mean, square utility, law")
def square_law() -> Computed:
    open_loss = [_square_loss(10, 1, -far, 1 + far) for far in (0, 1, 10, 100)]
    grid = [(n, e) for n in (1, 2, 5, 10, 100, 1000) for e in (0.01, 0.1, 1, 10, 100)]
    inside = max(_square_loss(n, e, 0, 1) / e for n, e in grid)
    return Computed(
        "n = 10, ε = 1, loss at the ends of [−c, 1 + c], c = 0, 1, 10, 100: "
        + ", ".join(f"{v:.3f}" for v in open_loss)
        + f". On [0, 1], n from 1 to 1000, ε from 0.01 to 100: at most {inside:.4f}·ε.",
        stated=open_loss[-1] <= 1,
        corrected=inside <= 1,
    )


@claims("Example, the mean, unconditional law")
def unconditional_law() -> Computed:
    def distance(n: int, epsilon: float, p: float) -> float:
        k = np.arange(n + 1)
        t = np.linspace(-1, 2, 3001)[:, None]
        law = (stats.binom.pmf(k, n, p) * special.ndtr((t - k / n) * math.sqrt(n * epsilon))).sum(axis=1)
        normal = special.ndtr((t[:, 0] - p) / math.sqrt((1 / epsilon + p * (1 - p)) / n))
        return float(np.abs(law - normal).max())

    few, many = distance(5, 100, 0.1), distance(1000, 1, 0.1)
    return Computed(
        f"yes/no data, p = 0.1: distribution functions differ by up to {few:.3f} at n = 5, ε = 100, and "
        f"{many:.1e} at n = 1000, ε = 1.",
        stated=few < 0.01,
        corrected=many < 1e-3,
    )


@claims("Example, the mean, rate")
def square_rate() -> Computed:
    def scaled(n: int, noise: float) -> float:
        return n * (1 / (12 * n) + noise)

    square = [scaled(n, 1 / n) for n in (100, 10**4, 10**6)]
    laplace = [scaled(n, 2 / n**2) for n in (100, 10**4, 10**6)]
    return Computed(
        "uniform data, ε = 1, n·variance at n = 10², 10⁴, 10⁶: square "
        + ", ".join(f"{v:.4f}" for v in square)
        + "; Laplace "
        + ", ".join(f"{v:.4f}" for v in laplace)
        + "; no noise 0.0833.",
        stated=len({round(v, 9) for v in square}) == 1 and square[0] > 1 / 12,
    )


@claims("Estimating the density, Laplace")
def histogram_noise() -> Computed:
    far = {m: max(sum(abs(a - b) for a, b in zip(x, y, strict=True)) for x, y in replaced(3, m)) for m in (2, 4, 8)}
    ours = [dp.sensitivity.histogram(neighbors=r) for r in (dp.AddRemove, dp.ReplaceOne)]
    return Computed(
        f"ℓ₁ sensitivity by enumeration, replace one, m = 2, 4, 8: {far[2]}, {far[4]}, {far[8]}; the library says "
        f"{ours[0]:.0f} and {ours[1]:.0f}.",
        stated=far[8] >= 8,
        corrected=set(far.values()) == {2} and ours == [1, 2],
    )


def _placements(k: int, cells: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(cells), repeat=k))


def _ks(x: tuple[int, ...], z: tuple[int, ...], cells: int) -> float:
    """KS distance of two data sets of cell numbers."""
    a, b = (np.cumsum(np.bincount(v, minlength=cells)) / len(v) for v in (x, z))
    return float(np.abs(a - b).max())


@claims("KS utility, sign")
def ks_sign() -> Computed:
    x, z = (0, 0, 0, 1), _placements(3, 3)
    distance = np.array([_ks(x, v, 3) for v in z])
    plus, minus = (softmax(sign * distance, 4 / 2) @ distance for sign in (1, -1))
    uniform = distance.mean()
    return Computed(
        f"4 records, 3 points in 3 cells, ε = 1: expected KS {plus:.4f} with +, {minus:.4f} with −, "
        f"{uniform:.4f} if all are equally likely.",
        stated=plus < uniform,
        corrected=minus < uniform,
    )


@claims("KS utility, Δ and privacy")
def ks_privacy() -> Computed:
    z = _placements(3, 3)
    scores = {x: [-_ks(x, v, 3) for v in z] for x in itertools.combinations_with_replacement(range(3), 4)}
    pairs = [(tuple(sorted(x)), tuple(sorted(y))) for x, y in neighbors((0, 1, 2), 4)]
    moved = max(abs(a - b) for x, y in pairs for a, b in zip(scores[x], scores[y], strict=True))
    loss = worst_loss(lambda x: softmax(scores[x], 4 / 2), pairs)
    plane = 0.0
    points = list(itertools.product((0, 1), repeat=2))
    for rest in itertools.combinations_with_replacement(points, 2):
        for a, b in itertools.combinations(points, 2):
            f, g = ([sum(p <= u and q <= v for p, q in (c, *rest)) / 3 for u, v in points] for c in (a, b))
            plane = max(plane, max(abs(s - t) for s, t in zip(f, g, strict=True)))
    return Computed(
        f"4 records, 3 points, 3 cells, all neighbors: Δ·n = {moved * 4:.4f}, loss {loss:.4f} at ε = 1; in two "
        f"dimensions n times the largest change of F_x is {plane * 3:.4f}.",
        stated=moved <= 0.25 + 1e-12 and loss <= 1 + 1e-12 and plane <= 1 / 3 + 1e-12,
    )


def _mean_distance(shares: np.ndarray, n: int, k: int, epsilon: float = 1.0) -> float:
    """The expected ceil(n KS)/n of the KS mechanism over all z, exactly, from the weights N(T) of thresholds."""
    cumulative = np.rint(np.cumsum(shares) * n).astype(int)
    problem = Problem(cumulative, k)
    weights = problem.log_weights()
    below = np.array([math.exp(problem.forward(t, weights).total - problem.everything()) for t in range(n + 1)])
    law = np.diff(below, prepend=0.0).clip(min=0.0) * np.exp(-epsilon * np.arange(n + 1) / 2)
    return float((law * np.arange(n + 1)).sum() / law.sum() / n)


@claims("Theorem (Wasserman and Zhou), rate")
def ks_rate() -> Computed:
    scaled = []
    for side in (3, 4, 5, 6, 7):
        n, cells = side**3, side**2
        shares = np.diff(stats.beta.cdf(np.linspace(0, 1, cells + 1), 2, 5))
        scaled.append(_mean_distance(shares, n, cells) * side)

    def two_cells(n: int, k: int) -> float:
        share = np.arange(k + 1) / k
        logs = -special.gammaln(share * k + 1) - special.gammaln((1 - share) * k + 1) - n * np.abs(0.9 - share) / 2
        weights = np.exp(logs - logs.max())
        return float((weights * np.abs(0.9 - share)).sum() / weights.sum())

    right, wide = two_cells(1000, 100), two_cells(1000, 10**5)
    return Computed(
        "Beta(2, 5) data, k = cells = n^(2/3), ε = 1, n^(1/3)·E KS(F_x, F_z) at n = 27, 64, 125, 216, 343: "
        + ", ".join(f"{v:.2f}" for v in scaled)
        + f". Two cells with 90 % in one, n = 1000: {right:.4f} at k = 100, {wide:.4f} at k = 100,000.",
        stated=wide < 0.1,
        corrected=max(scaled[1:]) < 1.1 * scaled[0] and right < 0.02,
    )


@claims("Theorem (Wasserman and Zhou), comparison")
def ks_comparison() -> Computed:
    def bound(n: int, dimensions: int) -> float:
        side = round(n ** (2 / (dimensions + 2)))
        # Doob and Cairoli: E max of the noise summed over orthants <= 2^r sqrt(cells * 2 (2/epsilon)^2); F bends by at
        # most the mass of the cells that the orthant's faces cut
        return (2**dimensions * math.sqrt(side**dimensions * 8) / n) + 2.5 * dimensions / side

    line = [(bound(n, 1), n ** (-1 / 3)) for n in (10**4, 10**6, 10**8)]
    plane = [(bound(n, 2), n ** (-1 / 3)) for n in (10**8, 10**10)]
    rough, smooth = (next(r for r in range(1, 99) if power / (r + power) < 1 / 3) for power in (2, 4))
    return Computed(
        "ε = 1, Lap(2) in each cell, marginal density at most 2.5: E KS to F_x is at most "
        + ", ".join(f"{a:.1e}" for a, _ in line)
        + " at n = 10⁴, 10⁶, 10⁸, against n^(−1/3) = "
        + ", ".join(f"{b:.1e}" for _, b in line)
        + "; for r = 2 "
        + ", ".join(f"{a:.1e} against {b:.1e}" for a, b in plane)
        + f" at n = 10⁸, 10¹⁰. 2/(r + 2) is below 1/3 from r = {rough} on, 4/(r + 4) from r = {smooth} on.",
        stated=any(a > b for a, b in line + plane),
        corrected=all(a < b / 2 for a, b in line) and all(a < b for a, b in plane) and (rough, smooth) == (5, 9),
    )


@claims("Other ways to perturb a histogram")
def smoothed_histogram() -> Computed:
    n, m, k = 6, 3, 2

    def law(theta: float) -> float:
        return k * worst_loss(lambda c: (1 - theta) * np.array(c) / n + theta / m, replaced(n, m))

    theta = float(smallest_theta(m, n, k, Fraction(1)))
    small, right = law(0.1), law(theta)
    return Computed(
        f"6 records, 3 cells, k = 2, ε = 1: the condition gives θ = {theta:.4f}, loss {right:.4f}; at θ = 0.1 the "
        f"loss is {small:.4f}.",
        stated=small <= 1,
        corrected=right <= 1 + 1e-9 and right > 0.99,
    )


@claims("Rate of the histogram without noise")
def noiseless_rate() -> Computed:
    empirical = [float(stats.kstwo.mean(n)) * math.sqrt(n) for n in (10, 100)]
    empirical.append(float(stats.kstwobign.mean()))
    x = np.linspace(0, 1, 20001)

    def bend(cells: int) -> float:
        edges = np.linspace(0, 1, cells + 1)
        return float(np.abs(stats.beta.cdf(x, 2, 5) - np.interp(x, edges, stats.beta.cdf(edges, 2, 5))).max())

    few, some, many = bend(5) * 1000, bend(10) * 100, bend(32) * 1000
    return Computed(
        "√n·E KS of the empirical distribution, n = 10, 100, ∞: "
        + ", ".join(f"{v:.4f}" for v in empirical)
        + f". Beta(2, 5), n = 10⁶: binning alone costs √n·KS = {few:.1f} with 5 cells, {many:.2f} with 32; "
        f"n = 10⁴: {some:.2f} with 10.",
        stated=few < 10,
        corrected=max(empirical) < 0.87 and many < 4 and some < 4,
    )


@claims("Practical problem, one dimension")
def ks_drawn() -> Computed:
    x, k, cells = (0, 0, 1, 2, 2), 4, 3
    problem = Problem(np.cumsum(np.bincount(x)), k)
    weights = problem.log_weights()
    error = 0.0
    for t in range(6):
        brute = np.mean([_ks(x, z, cells) * 5 <= t + 1e-9 for z in _placements(k, cells)])
        ours = math.exp(problem.forward(t, weights).total - problem.everything())
        error = max(error, abs(float(brute) - ours))
    return Computed(
        f"5 records, all 81 placements of 4 points in 3 cells: the share of z within each threshold, by recursion "
        f"and by enumeration, agrees to {12 if error <= 1e-12 else 0} digits.",
        stated=error > 1e-12,
        corrected=error <= 1e-12,
    )


def _profiles(cells: int, points: int, within: int) -> int:
    """How many non-decreasing sequences stay within a distance of the evenly spread half of the points."""
    state = {0: 1}
    for j in range(1, cells + 1):
        center = points * j / (2 * cells)
        low, high = max(0, math.ceil(center - within)), min(points, math.floor(center + within))
        state = {z: sum(ways for before, ways in state.items() if before <= z) for z in range(low, high + 1)}
    return sum(state.values())


@claims("Practical problem, narrow grids")
def ks_drawn_on_grids() -> Computed:
    x, k = np.array([[1, 0, 1], [2, 0, 0], [0, 1, 1]]), 3
    data = x.cumsum(axis=0).cumsum(axis=1)
    problem = Problem(data, k)
    weights = problem.log_weights()
    drawn = [
        np.bincount(cells, minlength=9).reshape(3, 3).cumsum(axis=0).cumsum(axis=1)
        for cells in itertools.product(range(9), repeat=k)
    ]
    scores = np.array([math.ceil(int(np.abs(k * data - 6 * z).max()) / k) for z in drawn])
    error = max(
        abs(float(np.mean(scores <= t)) - math.exp(problem.forward(t, weights).total - problem.everything()))
        for t in range(7)
    )
    return Computed(
        f"6 records on 3 × 3 cells, all {len(drawn)} placements of 3 points: the share of z within each threshold, by "
        f"recursion and by enumeration, agrees to {12 if error <= 1e-12 else 0} digits.",
        stated=error > 1e-12,
        corrected=error <= 1e-12,
    )


@claims("Practical problem, wide grids")
def ks_not_drawn() -> Computed:
    profiles = [_profiles(cells, 100, 5) for cells in (3, 6, 10, 40)]
    dobrushin = 99 * math.tanh(1000 / 400)
    return Computed(
        "100 points within 0.05 of evenly spread data: "
        + ", ".join(f"{count:.1e}" for count in profiles)
        + " profiles of a slice of 3, 6, 10, 40 cells. One point redrawn at a time, n = 1000, ε = 1: Dobrushin's sum "
        f"of influences is {dobrushin:.1f} where a mixing bound needs less than 1.",
        stated=None,
    )
