"""The second document, first part: definitions, composition, utility, mixed noise (Theorem 2 to Example 11)."""

from __future__ import annotations

import itertools
import math

import numpy as np
from claim import Computed, Computing, close, gaussian_delta, neighbors, sensitivity
from scipy import integrate, optimize, stats

import dither as dp

claims = Computing(2)


def _density(z: float, center: float, scale: float) -> float:
    return math.exp(-abs(z - center) / scale) / (2 * scale)


@claims("Theorem 2")
def laplace() -> Computed:
    worst = max(
        abs(math.log(_density(z, 0, 2 / epsilon) / _density(z, shift, 2 / epsilon))) / epsilon
        for epsilon in (0.1, 1, 3)
        for shift in np.linspace(0, 2, 21)
        for z in np.linspace(-10, 10, 201)
    )
    curve = dp.Laplace(sensitivity=2, epsilon=1).privacy_curve(1)
    return Computed(
        f"Δ = 2, ε = 0.1, 1, 3, all shifts up to Δ: largest loss {worst:.6f}·ε; the library's δ(ε) is {curve:g}.",
        stated=worst <= 1 + 1e-9 and curve == 0,
    )


@claims("Example 3")
def bare_mean() -> Computed:
    x, y = (0.0, 0.5, 1.0), (0.25, 0.5, 1.0)
    inside = [float(np.mean(v) == np.mean(x)) for v in (x, y)]
    return Computed(
        f"B = the mean of (0, ½, 1): probability {inside[0]:.0f}, and {inside[1]:.0f} with one record changed to ¼.",
        stated=inside == [1, 0],
    )


@claims("After Example 3")
def normal_is_not_pure() -> Computed:
    losses = [abs(stats.norm.logpdf(z) - stats.norm.logpdf(z, 1)) for z in (1, 10, 100)]
    return Computed(
        "σ = Δ: loss at 1, 10, 100 is " + ", ".join(f"{v:.1f}" for v in losses) + ".",
        stated=losses[2] > 50 and losses[2] > losses[1] > losses[0],
    )


def _first_failure(delta: float) -> float:
    """The smallest epsilon at which the classical sigma has a true delta above the claimed one."""
    factor = math.sqrt(2 * math.log(1.25 / delta))
    return float(optimize.brentq(lambda e: gaussian_delta(e, factor / e) - delta, 1, 20))


@claims("Theorem 5")
def classical_gaussian() -> Computed:
    grid = [(e, d) for e in (0.01, 0.1, 0.5, 0.9, 0.999) for d in (0.5, 0.1, 1e-3, 1e-6, 1e-12)]
    worst = max(gaussian_delta(e, math.sqrt(2 * math.log(1.25 / d)) / e) / d for e, d in grid)
    beyond = gaussian_delta(10, math.sqrt(2 * math.log(1.25 / 1e-5)) / 10)
    first = {d: _first_failure(d) for d in (0.5, 1e-2, 1e-5, 1e-12)}
    return Computed(
        f"ε from 0.01 to 0.999, δ from 1e-12 to 0.5: true δ at most {worst:.3f} of the claim. ε = 10, δ = 1e-5: "
        f"true δ {beyond:.2e}. First ε that fails: "
        + ", ".join(f"{e:.2f} (δ = {d:g})" for d, e in first.items())
        + ".",
        stated=worst <= 1 and beyond > 1e-5 and min(first.values()) > 1,
    )


@claims("Lemma 6")
def sequential() -> Computed:
    losses = [
        abs(math.log(_density(a, 0, 2) * _density(b, 0, 1) / (_density(a, 1, 2) * _density(b, 1, 1))))
        for a, b in itertools.product(np.linspace(-3, 4, 29), repeat=2)
    ]
    total = dp.sequential(dp.PureDP(0.5), dp.PureDP(1)).epsilon
    shared = max(abs(math.log(_density(a, 0, 2) / _density(a, 1, 2))) for a in np.linspace(-3, 4, 29))
    return Computed(
        f"a count twice, ε = 0.5 and 1: largest loss {max(losses):.4f} (one release alone {shared:.4f}).",
        stated=close(max(losses), 1.5) and total == 1.5,
    )


@claims("Lemma 7")
def parallel() -> Computed:
    def loss(change: tuple[int, int]) -> float:
        return max(
            abs(
                math.log(
                    _density(a, 0, 1) * _density(b, 0, 2) / (_density(a, change[0], 1) * _density(b, change[1], 2))
                )
            )
            for a, b in itertools.product(np.linspace(-3, 4, 29), repeat=2)
        )

    fixed = max(loss((1, 0)), loss((0, 1)), loss((-1, 0)), loss((0, -1)))
    moved = loss((1, -1))
    return Computed(
        f"two counts with ε = 1 and 0.5: {fixed:.4f} if one count changes, {moved:.4f} if a replaced record moves from "
        "one part to the other.",
        stated=moved <= 1,
        corrected=fixed <= 1 + 1e-9 and moved <= 1.5 + 1e-9,
    )


@claims("Example 8, sensitivities")
def three_sensitivities() -> Computed:
    values, width = (0, 1, 2, 3, 4), 4
    result = [
        (sensitivity(np.mean, values, m) * m / width, sensitivity(_variance, values, m) * m / width**2)
        for m in (2, 3, 4, 5)
    ]
    middle = sensitivity(np.median, values, 3) / width
    return Computed(
        "enumeration, m = 2 to 5: mean·m/Λ "
        + ", ".join(f"{a:.4f}" for a, _ in result)
        + "; variance·m/Λ² "
        + ", ".join(f"{b:.4f}" for _, b in result)
        + f"; median/Λ at m = 3 {middle:.4f}.",
        stated=all(close(a, 1) and close(b, 1) for a, b in result) and middle == 1,
    )


def _variance(x: tuple[float, ...]) -> float:
    return float(np.var(x, ddof=1))


@claims("Example 8, total")
def three_queries() -> Computed:
    values, parts = (0, 1, 2, 3, 4), (0.25, 0.5, 0.6)

    def both(x: tuple[float, ...], y: tuple[float, ...]) -> float:
        means = abs(float(np.mean(x)) - float(np.mean(y))) / (4 / 4)
        return parts[0] * means + parts[1] * abs(_variance(x) - _variance(y)) / (16 / 4)

    first = max(both(x, y) for x, y in neighbors(values, 4))
    second = parts[2] * sensitivity(np.median, values, 3) / 4
    total = dp.parallel(dp.sequential(dp.PureDP(0.25), dp.PureDP(0.5)), dp.PureDP(0.6)).epsilon
    return Computed(
        "4 and 3 records in 0…4, all neighbors, ε = 0.25, 0.5, 0.6: a record of the first part loses "
        f"{first:.4f}, of the "
        f"second {second:.4f}; the library says {total:g}.",
        stated=max(first, second) <= total == 0.75 and first > 0.7,
    )


@claims("Utility")
def mean_squared_error() -> Computed:
    n, p, b = 5, 0.3, 0.4
    k = np.arange(n + 1)
    weights = stats.binom.pmf(k, n, p)
    bare = float(weights @ (k / n - p) ** 2)
    noisy = sum(
        float(w)
        * integrate.quad(lambda z, c=c: (c + z - p) ** 2 * math.exp(-abs(z) / b) / (2 * b), -40, 40, points=[0])[0]
        for w, c in zip(weights, k / n, strict=True)
    )
    return Computed(
        f"mean of 5 yes/no records, p = 0.3, scale 0.4: {bare:.6f} before, {noisy:.6f} after, 2b² = {2 * b * b:.6f}.",
        stated=close(noisy, bare + 2 * b * b, 1e-6),
    )


@claims("Equation (2)")
def noise_of_the_mean() -> Computed:
    m = dp.Laplace(sensitivity=dp.sensitivity.mean(n=100, bounds=(0, 50), neighbors=dp.ReplaceOne), epsilon=0.5)
    return Computed(
        f"Λ = 50, n = 100, ε = 0.5: {float(m.variance):.6f}.",
        stated=close(float(m.variance), 2 * (50 / 50) ** 2, 1e-6),
    )


@claims("Issue 1")
def only_laplace() -> Computed:
    result = {e: (dp.Staircase(sensitivity=1, epsilon=e), dp.Laplace(sensitivity=1, epsilon=e)) for e in (1, 3, 6)}
    ratios = [float(a.variance) / float(b.variance) for a, b in result.values()]
    pure = all(a.privacy_curve(e) == 0 for e, (a, _) in result.items())
    return Computed(
        "variance of staircase noise over that of Laplace noise, ε = 1, 3, 6: "
        + ", ".join(f"{r:.4f}" for r in ratios)
        + ".",
        stated=not pure,
        corrected=pure and max(ratios) < 1,
    )


@claims("Issue 1, Gaussian")
def misprinted_gaussian() -> Computed:
    epsilon, delta = 0.1, 1e-5
    result = []
    for width in (0.01, 1, 100):
        ratio = math.sqrt(2 * width * math.log(1.25 / delta) / epsilon) / width
        result.append(gaussian_delta(epsilon, ratio))
    right = gaussian_delta(epsilon, math.sqrt(2 * math.log(1.25 / delta)) / epsilon)
    return Computed(
        f"ε = 0.1, δ = 1e-5, Δ = 0.01, 1, 100: true δ {max(result[0], 0):.4f}, {result[1]:.4f}, {result[2]:.2f}; with "
        f"Theorem 5 {right:.1e}.",
        stated=max(result) <= delta,
        corrected=right <= delta,
    )


@claims("Theorem 10")
def mixed_noise() -> Computed:
    true = [gaussian_delta(e, math.sqrt(2) / e) for e in (0.1, 1, 3)]
    claimed = 2 * 0.01 / math.sqrt(math.pi)
    ours = dp.MixedNoise(sensitivity=0.01, epsilon=1, delta=claimed)
    try:
        dp.course.theorem_10(0.01, 1, claimed * (1 + 1e-9))
        refused = False
    except dp.NotPrivate:
        refused = True
    return Computed(
        "true δ at ε = 0.1, 1, 3: "
        + ", ".join(f"{v:.4f}" for v in true)
        + f". Δ = 0.01, ε = 1: claimed for δ = {claimed:.4f}; the library refuses it and takes {ours.chosen} noise.",
        stated=true[1] <= claimed,
        corrected=refused and ours.mechanism.privacy_curve(1) <= claimed,
    )


@claims("After Theorem 10")
def mixed_variance() -> Computed:
    laplace, classical = 2.0, 2 * math.log(1.25 / 1e-5)
    exact = float(dp.Gaussian(sensitivity=1, epsilon=1, delta=1e-5).variance)
    return Computed(
        f"Δ = ε = 1, δ = 1e-5: {laplace:.1f}, against {classical:.2f} (Theorem 5) and {exact:.2f} (exact calibration).",
        stated=laplace < exact / 3 < classical / 3
        and close(float(dp.Laplace(sensitivity=1, epsilon=1).variance), 2, 1e-6),
    )


@claims("Example 11")
def pareto() -> Computed:
    n, alpha, epsilon = 1000, 2.0, 1.0

    def rms(c: float) -> float:
        bias = c ** (1 - alpha) / (alpha - 1)
        return math.sqrt(bias**2 + 2 * ((c - 1) / (n * epsilon)) ** 2)

    moved = [(10**k - 1) / n for k in (3, 6, 9)]
    c = min(range(2, 500), key=rms)
    return Computed(
        "n = 1000: a record of 10³, 10⁶, 10⁹ moves the mean by "
        + ", ".join(f"{v:.3g}" for v in moved)
        + f". α = 2, ε = 1: clipping at c = {c} is best, bias {1 / c:.4f}, bias and noise together {rms(c):.4f}.",
        stated=moved[-1] < 10,
        corrected=rms(c) < 0.1,
    )


@claims("Issue 2, general sensitivity")
def general_sensitivity() -> Computed:
    alpha, n = 3.0, 1000

    def beyond(width: float) -> float:
        """P(|X - X'| > width) of two Pareto records."""
        law = stats.pareto(alpha)
        return float(2 * integrate.quad(lambda x: law.pdf(x) * law.sf(x + width), 1, np.inf)[0])

    width = float(optimize.brentq(lambda w: beyond(w) - 0.01, 0.1, 100))
    losses = [(value - 1) / width for value in (10.0, 100.0, 1000.0)]
    return Computed(
        f"mean of {n} Pareto records, α = 3: random neighbors differ by more than {width / n:.5f} with "
        "probability 0.01; a record of 10, 100, 1000 instead of 1, ε = 1: loss "
        + ", ".join(f"{loss:.1f}" for loss in losses)
        + ", without limit.",
        stated=None,
    )
