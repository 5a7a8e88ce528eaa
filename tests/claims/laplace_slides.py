"""The fourth document: slides on the Laplace mechanism and report noisy max; a record is added or removed."""

from __future__ import annotations

import itertools
import math

import numpy as np
from claim import Computed, Computing, added, close, gaussian_delta, replaced, worst_loss
from scipy import integrate, stats

import dither as dp

claims = Computing(4)


def _laplace_loss(shift: tuple[float, ...], scale: float) -> float:
    """The largest loss of Laplace noise in each coordinate, over a grid of outputs."""
    grid = [np.array([-5.0, 0.0, 0.5 * s, s, 5.0]) for s in shift]
    return max(
        abs(sum(abs(z - s) - abs(z) for z, s in zip(point, shift, strict=True))) / scale
        for point in itertools.product(*grid)
    )


@claims("Sensitivity of an average")
def average() -> Computed:
    def largest(n: int) -> float:
        return max(abs((ones + v) / (n + 1) - ones / n) for ones in range(n + 1) for v in (0, 1))

    result = {n: largest(n) * (n + 1) for n in (1, 5, 100)}
    return Computed(
        f"from 1, 5, 100 records to one more: times the larger size {result[1]:.4f}, {result[5]:.4f}, "
        f"{result[100]:.4f}; from 1 "
        f"to 2 it is {largest(1):.1f}, whatever |x| is later.",
        stated=largest(1) <= 1 / 100,
        corrected=all(close(v, 1) for v in result.values()),
    )


@claims("Laplace distribution")
def law() -> Computed:
    b = 1.7
    variance = 2 * integrate.quad(lambda z: z * z * math.exp(-z / b) / (2 * b), 0, 200)[0]
    beyond = 2 * integrate.quad(lambda z: math.exp(-z / b) / (2 * b), 3 * b, 200)[0]
    return Computed(
        f"b = 1.7: variance {variance:.4f} (2b² = {2 * b * b:.4f}); P(|Y| ≥ 3b) = {beyond:.6f} (e^(−3) = "
        f"{math.exp(-3):.6f}).",
        stated=close(variance, 2 * b * b, 1e-6) and close(beyond, math.exp(-3), 1e-6),
    )


@claims("Laplace mechanism, rounding")
def rounding() -> Computed:
    k = np.arange(-30, 31)

    def rounded(center: float) -> np.ndarray:
        return np.asarray(
            np.where(
                k > 0,
                stats.laplace.sf(k - 0.5, center) - stats.laplace.sf(k + 0.5, center),
                stats.laplace.cdf(k + 0.5, center) - stats.laplace.cdf(k - 0.5, center),
            )
        )

    loss = float(np.abs(np.log(rounded(0.3) / rounded(1.3))).max())
    return Computed(
        f"ε = 1, answers 0.3 and 1.3, rounded to integers: largest loss {loss:.4f}.", stated=loss <= 1 + 1e-9
    )


@claims("Laplace mechanism, privacy")
def privacy() -> Computed:
    one, three = _laplace_loss((1.0,), 2.0), _laplace_loss((0.5, -0.25, 0.25), 2.0)
    wrong = _laplace_loss((1.0, 1.0, 1.0), 2.0)
    return Computed(
        f"ε = ½, Δ = 1: loss {one:.4f} for a number, {three:.4f} for (½, −¼, ¼); three counts that all move by 1 "
        f"(ℓ₁ distance 3) would lose {wrong:.4f}.",
        stated=one <= 0.5 and three <= 0.5 < wrong,
    )


@claims("Laplace mechanism, accuracy")
def accuracy() -> Computed:
    rows = [(k, d, 1 - (1 - d / k) ** k) for k in (1, 10, 1000) for d in (0.05, 1.0)]
    return Computed(
        "true probability 1 − (1 − δ/K)^K at δ = 0.05, K = 1, 10, 1000: "
        + ", ".join(f"{p:.5f}" for _, d, p in rows if d == 0.05)
        + ".",
        stated=all(p <= d + 1e-12 for _, d, p in rows),
    )


@claims("Notes, 1")
def gaussian() -> Computed:
    need = {d: float(dp.Gaussian(sensitivity=1, epsilon=1, delta=d).scale) for d in (1e-3, 1e-6, 1e-12)}
    excess = {d: math.log(1 / d) / v for d, v in need.items()}
    root = [v / math.sqrt(2 * math.log(1.25 / d)) for d, v in need.items()]
    broken = gaussian_delta(500, math.log(1e6) / 500)
    return Computed(
        "ε = 1, printed σ over the σ needed, δ = 1e-3, 1e-6, 1e-12: "
        + ", ".join(f"{v:.2f}" for v in excess.values())
        + "; needed over √(2·ln(1.25/δ)): "
        + ", ".join(f"{v:.2f}" for v in root)
        + f". ε = 500, δ = 1e-6: true δ of the printed σ {broken:.2f}.",
        stated=broken <= 1e-6,
        corrected=min(root) > 0.6 and max(root) < 1 and min(excess.values()) > 2,
    )


@claims("Notes, 2")
def response() -> Computed:
    n = 1000
    rr = dp.RandomizedResponse(epsilon=1)
    p = rr.probability
    local = math.sqrt(n * p * (1 - p)) / (2 * p - 1)
    return Computed(
        f"a count of 1000 people, ε = 1, standard deviation: {local:.2f} against {math.sqrt(2):.2f} with "
        "Laplace noise.",
        stated=local > 10 * math.sqrt(2),
    )


@claims("One counting query")
def count() -> Computed:
    ours = [dp.sensitivity.count(neighbors=r) for r in (dp.AddRemove, dp.ReplaceOne)]
    return Computed(
        f"added or removed {ours[0]:g}, replaced {ours[1]:g}; loss at ε = 1: {_laplace_loss((1.0,), 1.0):.4f}.",
        stated=ours == [1, 1],
    )


@claims("Vector-valued queries")
def vector() -> Computed:
    loss = _laplace_loss((1.0,) * 5, 5.0)
    uneven = 1 / 2 + 1 / 4 + 1 / 8 + 1 / 16 + 1 / 16
    return Computed(
        f"5 counts that all move by 1, ε = 1: loss {loss:.4f}; split as ½, ¼, ⅛, 1/16, 1/16: {uneven:.4f}.",
        stated=close(loss, 1) and uneven == 1,
    )


@claims("Histogram queries")
def histogram() -> Computed:
    far = [
        max(sum(abs(a - b) for a, b in zip(x, y, strict=True)) for x, y in pairs)
        for pairs in (added(3, 5), replaced(3, 5))
    ]
    return Computed(
        f"5 cells, up to 3 records, all neighbors: {far[0]}; if one is replaced {far[1]}.", stated=far == [1, 2]
    )


@claims("A question")
def conjunction() -> Computed:
    people = list(itertools.product((0, 1), repeat=2))
    most = max(
        abs(sum(a and b for a, b in (*rest, extra)) - sum(a and b for a, b in rest))
        for rest in itertools.combinations_with_replacement(people, 2)
        for extra in people
    )
    return Computed(f"all pairs of two and three people: {most}.", stated=most == 1)


@claims("Example, likes")
def likes() -> Computed:
    def largest(pages: int, most: int) -> int:
        return max(sum(one) for one in itertools.product((0, 1), repeat=pages) if sum(one) <= most)

    result = [largest(6, most) for most in (1, 3, 6)]
    return Computed(
        f"6 pages, at most 1, 3, 6 likes each: ℓ₁ sensitivity {result[0]}, {result[1]}, {result[2]}.",
        stated=result == [1, 3, 6],
    )


@claims("Report noisy max")
def noisy_max() -> Computed:
    m = dp.NoisyMax(sensitivity=1, epsilon=1, monotone=True, noise="laplace")

    def loss(pairs: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> float:
        return worst_loss(lambda c: m.probabilities(np.array(c)), pairs)

    two, three = loss([p for p in added(40, 2) if sum(p[0]) == 40]), loss(list(added(4, 3)))
    # a person may be in several counts
    several = [((0, 5, 5), (1, 6, 6)), ((0, 9, 0), (0, 10, 1)), ((3, 3, 3), (4, 4, 3))]
    wrong = loss(list(replaced(60, 2)))
    return Computed(
        f"ε = 1, all neighbors: {two:.4f} for 2 counts, {three:.4f} for 3, {loss(several):.4f} when one person is in "
        f"several; if one record is replaced {wrong:.4f}.",
        stated=max(two, three, loss(several)) <= 1 + 1e-9 and wrong > 1.9,
    )


@claims("Report noisy max, accuracy")
def noisy_max_accuracy() -> Computed:
    m = dp.NoisyMax(sensitivity=1, epsilon=1, monotone=True, noise="laplace")
    gap = m.error(100, 0.95)
    best = float(m.probabilities([gap] + [0.0] * 99)[0])
    return Computed(
        f"m = 100, ε = 1, β = 0.05: {gap:.2f}; with 99 pages just that far below, the best is found with "
        f"probability {best:.4f}.",
        stated=close(gap, 2 * math.log(100 / 0.05), 1e-6) and best >= 0.95,
    )
