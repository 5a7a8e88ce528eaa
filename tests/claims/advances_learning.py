"""The second document, last part: gradient descent with noise (Theorems 36 and 37)."""

from __future__ import annotations

import itertools
import math

import numpy as np
from advances_descent import mean_of_average, slope, steps
from claim import Computed, Computing, close
from scipy import stats

claims = Computing(2)


def thetas(gamma: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The noise of Theorem 36, in units of the gradient's sensitivity over epsilon."""
    return np.asarray(np.cumsum(gamma) / gamma / a)


def last_loss(gamma: np.ndarray, theta: np.ndarray, curvature: float) -> float:
    """The loss of the last iterate, over epsilon, for one record and the gradient curvature * b - x, |x - y| <= 1.

    The iterate is linear in x and in the Laplace noises. Their sum has a log-concave density, so that the ratio of two
    shifted copies is monotone, and its limit is the shift over the largest scale.
    """
    shift, scales = 0.0, np.zeros(0)
    for g, t in zip(gamma, theta, strict=True):
        shift = (1 - g * curvature) * shift + g
        scales = np.append(np.abs(1 - g * curvature) * scales, g * t)
    return abs(shift) / float(scales.max())


@claims("Privacy of descent")
def own_noise() -> Computed:
    def outcomes(x: tuple[float, ...]) -> dict[float, float]:
        law: dict[float, float] = {}
        for draws in itertools.product(range(3), repeat=4):
            b = 0.0
            for i in draws:
                b -= 0.1 * 2 * (b - x[i])
            law[round(b, 12)] = law.get(round(b, 12), 0) + 3.0**-4
        return law

    p, q = outcomes((0.1, 0.5, 0.9)), outcomes((0.1, 0.5, 0.7321))
    delta = sum(v for b, v in p.items() if b not in q)
    return Computed(
        f"3 records, 4 steps, all 81 ways to draw: with probability {delta:.4f} = 1 − (2/3)⁴ the iterate tells "
        "them apart, "
        "so δ is that for every ε.",
        stated=delta < 1e-6,
        corrected=close(delta, 1 - (2 / 3) ** 4),
    )


@claims("Theorem 36, first step")
def first_step() -> Computed:
    z = np.linspace(-30, 30, 6001)
    result = {}
    for n in (1, 2, 10):
        p, q = ((stats.laplace.pdf(z, loc=last) + (n - 1) * stats.laplace.pdf(z)) / n for last in (0.0, 1.0))
        result[n] = float(np.abs(np.log(p / q)).max())
    return Computed(
        "ε = 1, gradients at 0 but one at 0 or 1, n = 1, 2, 10 records: loss "
        + ", ".join(f"{v:.4f}" for v in result.values())
        + f"; ln(1 + (e − 1)/10) = {math.log(1 + (math.e - 1) / 10):.4f}.",
        stated=close(result[1], 1) and result[10] <= math.log(1 + (math.e - 1) / 10) + 1e-9,
    )


@claims("Theorem 36, later steps")
def later_steps() -> Computed:
    flat = np.ones(2)
    concave = last_loss(flat, thetas(flat, flat), -1.0)
    inside = 0.0
    for rho, curvature, count in itertools.product((0.0, 0.3, 0.5, 0.9), (0.01, 0.5, 1.0, 2.0), (2, 5, 50, 300)):
        gamma = steps(rho, count)
        inside = max(inside, last_loss(gamma, thetas(gamma, np.ones(count)), curvature))
    return Computed(
        f"one record, a_h = 1, the loss −b²/2 − xb, γ = 1: after two steps {concave:.4f}·ε. Convex quadratics "
        "with γL ≤ 2, "
        f"up to 300 steps: at most {inside:.4f}·ε.",
        stated=concave <= 1,
        corrected=inside <= 1 + 1e-12,
    )


def joint(gamma: np.ndarray, a: np.ndarray) -> float:
    """All iterates together, over epsilon: each step, given the one before, is Laplace noise on one gradient."""
    return float((1 / thetas(gamma, a)).sum())


@claims("Theorem 36, all iterates")
def all_iterates() -> Computed:
    result = {n: joint(steps(0.5, n), np.ones(n)) for n in (2, 100, 10**4)}
    # two steps, b_1 and b_2 both released: losses add at one output
    gamma = np.ones(2)
    theta = thetas(gamma, np.ones(2))
    direct = 0.0
    for z1, z2 in itertools.product((-50.0, 50.0), repeat=2):
        # given b_1 the second gradient moves by 1 as well
        direct = max(direct, (abs(z1 + 1) - abs(z1)) / theta[0] + (abs(z2 + 1) - abs(z2)) / theta[1])
    return Computed(
        "a_h = 1, ρ = ½, all iterates of 2, 100, 10⁴ steps: "
        + ", ".join(f"{v:.3f}·ε" for v in result.values())
        + f"; γ = 1, two steps, at one output: {direct:.2f}·ε.",
        stated=direct <= 1,
        corrected=close(direct, joint(gamma, np.ones(2))) and result[2] < result[100] < result[10**4] < 10**4,
    )


@claims("Theorem 37")
def utility() -> Computed:
    rows = []
    for count, rho, first in itertools.product((2, 10, 100, 1000), (0.25, 0.5, 0.75), (0.01, 0.125)):
        gamma = first * steps(rho, count)
        theta = thetas(gamma, np.ones(count))
        noise = 4.0 + 2 * theta**2
        total = float(gamma.sum())
        bound = (1 + 8 * float((gamma**2).sum()) + 4 * float((gamma**2 * theta**2).sum())) / total
        rows.append(mean_of_average(gamma, noise, 1.0) / bound)
    bad = np.full(40, 1.5)
    theta = thetas(bad, np.ones(40))
    broken = mean_of_average(bad, 4.0 + 2 * theta**2, 1.0)
    bound = (1 + 8 * float((bad**2).sum()) + 4 * float((bad**2 * theta**2).sum())) / float(bad.sum())
    return Computed(
        f"loss (x − b)², variance 1, Δ/ε = 1, exact moments, γ ≤ 1/8: at most {max(rows):.4f} of the bound. γ = "
        "1.5, 40 steps: "
        f"{broken:.1e}, bound {bound:.1e}.",
        stated=broken <= bound,
        corrected=max(rows) <= 1,
    )


SIZES = [10**5, 10**6]


@claims("Utility I, θ")
def noise_grows() -> Computed:
    result = {rho: float(thetas(steps(rho, 10**6), np.ones(10**6))[-1]) / 10**6 for rho in (0.25, 0.5, 0.75)}
    return Computed(
        "θ_h·ε/(Δh) at h = 10⁶, ρ = ¼, ½, ¾: " + ", ".join(f"{v:.3f}" for v in result.values()) + ".",
        stated=close(result[0.5], 1, 0.01),
        corrected=all(close(v, 1 / (1 - rho), 0.03) for rho, v in result.items()),
    )


@claims("Utility I, A₁")
def first_term() -> Computed:
    result = {rho: slope([1 / float(steps(rho, n).sum()) for n in SIZES], SIZES) for rho in (0.25, 0.5, 0.75)}
    return Computed(
        "exponent between N = 10⁵ and 10⁶, ρ = ¼, ½, ¾: " + ", ".join(f"{v:.3f}" for v in result.values()) + ".",
        stated=all(abs(v - (rho - 1)) < 0.03 for rho, v in result.items()),
    )


@claims("Utility I, A₂")
def second_term() -> Computed:
    result = {
        rho: slope([float((steps(rho, n) ** 2).sum() / steps(rho, n).sum()) for n in SIZES], SIZES)
        for rho in (0.25, 0.5, 0.75)
    }
    return Computed(
        "exponent between N = 10⁵ and 10⁶, ρ = ¼, ½, ¾: " + ", ".join(f"{v:.3f}" for v in result.values()) + ".",
        stated=abs(result[0.75] + 0.75) < 0.05,
        corrected=abs(result[0.25] + 0.25) < 0.03 and abs(result[0.75] + 0.25) < 0.03,
    )


def third(n: int, rho: float, kappa: float) -> float:
    gamma = steps(rho, n)
    theta = thetas(gamma, np.arange(1, n + 1) ** kappa)
    return float((gamma**2 * theta**2).sum() / gamma.sum())


@claims("Utility I, A₃")
def third_term() -> Computed:
    result = {rho: slope([third(n, rho, 0) for n in SIZES], SIZES) for rho in (0.25, 0.5, 0.75)}
    return Computed(
        "exponent between N = 10⁵ and 10⁶, ρ = ¼, ½, ¾: " + ", ".join(f"{v:.3f}" for v in result.values()) + ".",
        stated=all(abs(v - (2 - rho)) < 0.06 for rho, v in result.items()),
    )


@claims("Utility I, conclusion")
def no_convergence() -> Computed:
    result = []
    for n in (100, 1000, 10**4):
        gamma = 0.25 * steps(0.5, n)
        result.append(mean_of_average(gamma, 4.0 + 2 * thetas(gamma, np.ones(n)) ** 2, 1.0))
    return Computed(
        "loss (x − b)², ρ = ½, Δ/ε = 1, error² of the average after 100, 1000, 10⁴ steps: "
        + ", ".join(f"{v:.3g}" for v in result)
        + ".",
        stated=result[2] > result[1] > result[0],
    )


@claims("Utility II")
def falling_privacy() -> Computed:
    result = {kappa: slope([third(n, 0.5, kappa) for n in SIZES], SIZES) for kappa in (0.5, 0.75, 0.9)}
    beyond = slope([third(n, 0.5, 1.5) for n in SIZES], SIZES)
    return Computed(
        "ρ = ½, exponent between N = 10⁵ and 10⁶ at κ = 0.5, 0.75, 0.9: "
        + ", ".join(f"{v:.3f}" for v in result.values())
        + f"; at κ = 1.5 {beyond:.3f}, where −1.5 is printed.",
        stated=abs(beyond + 1.5) < 0.05,
        corrected=all(abs(v - (1.5 - 2 * kappa)) < 0.05 for kappa, v in result.items()) and abs(beyond + 0.5) < 0.05,
    )


@claims("Utility II, conclusion")
def private_and_converges() -> Computed:
    kappa = 0.76
    last = {n: n**kappa for n in (100, 10**4, 10**6)}
    every = {n: joint(steps(0.5, n), np.arange(1, n + 1) ** kappa) for n in last}
    return Computed(
        "ρ = ½, κ = 0.76, N = 100, 10⁴, 10⁶: last iterate "
        + ", ".join(f"{v:.0f}·ε" for v in last.values())
        + "; all iterates by composition "
        + ", ".join(f"{v:.0f}·ε" for v in every.values())
        + ".",
        stated=last[10**6] < 10,
        corrected=every[10**6] > every[10**4] > every[100] > 1 and all(every[n] < last[n] for n in last),
    )
