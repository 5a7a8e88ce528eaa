"""The second document, fourth part: gradient descent without privacy (Examples 31 to 34, Theorem 35)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from claim import Computed, Computing, close
from scipy import optimize

claims = Computing(2)

U = np.array([1.0, 2.0, 2.5, 4.0, 7.0])
V = np.array([0.0, 1.0, 2.0, 3.0, 5.0])


def slope(numbers: list[float], sizes: list[int]) -> float:
    """The exponent with which the last two numbers grow with size."""
    return math.log(numbers[-1] / numbers[-2]) / math.log(sizes[-1] / sizes[-2])


def steps(rho: float, count: int) -> np.ndarray:
    return np.arange(1, count + 1) ** -rho


def mean_of_average(gamma: np.ndarray, noise: np.ndarray, start: float) -> float:
    """E (average - optimum)^2 for the loss (x - b)^2: linear recursion, exact moments.

    b_(h+1) - m = (1 - 2 gamma_h)(b_h - m) + gamma_h e_h with independent e_h of variance noise_h. What e_h adds to the
    average is gamma_h times the sum over j > h of gamma_j times the product of (1 - 2 gamma) between.
    """
    n, total = gamma.size, float(gamma.sum())
    sensitivity = np.zeros(n + 1)  # sensitivity[h] = sum over j >= h of gamma_j prod_(h <= i < j) (1 - 2 gamma_i)
    for h in range(n - 1, -1, -1):
        sensitivity[h] = gamma[h] + (1 - 2 * gamma[h]) * sensitivity[h + 1]
    return float((sensitivity[0] * start) ** 2 + (gamma**2 * noise * sensitivity[1:] ** 2).sum()) / total**2


@claims("Gradient descent, optimality")
def optimality() -> Computed:
    result = optimize.minimize_scalar(lambda b: math.log1p(math.exp(-b)) + 0.05 * b * b)
    b = result.x
    gradient = -1 / (1 + math.exp(b)) + 0.1 * b
    return Computed(
        f"ln(1 + e^(−b)) + b²/20: the minimum at {b:.4f} has a zero gradient; b³, not convex, has one at 0 and "
        "no minimum.",
        stated=abs(gradient) < 1e-6 and (-1) ** 3 < 0,
    )


@claims("Gradient descent, geometry")
def steepest() -> Computed:
    gradient = np.array([3.0, -1.0])
    angles = np.linspace(0, 2 * math.pi, 36001)
    best = angles[np.argmin(np.cos(angles) * gradient[0] + np.sin(angles) * gradient[1])]
    wanted = math.atan2(1.0, -3.0)
    return Computed(
        f"∇f = (3, −1), all directions: the derivative is least at {math.degrees(best):.2f}°, that of −∇f is "
        f"{math.degrees(wanted):.2f}°.",
        stated=abs(best - wanted) < 1e-3,
    )


@claims("Example 31")
def half_square() -> Computed:
    b = 1.0
    for _ in range(30):
        b -= 0.1 * b
    return Computed(f"γ = 0.1, 30 steps: {b:.6f} = 0.9³⁰ = {0.9**30:.6f}.", stated=close(b, 0.9**30))


@claims("Example 32")
def least_squares() -> Computed:
    x, y, b, h = 2.0, 3.0, 0.5, 1e-6
    numeric = ((y - (b + h) * x) ** 2 - (y - (b - h) * x) ** 2) / (2 * h)
    printed = -x * (y - b * x)
    return Computed(
        f"X = 2, Y = 3, b = ½: numerically {numeric:.4f}, printed {printed:.4f}.",
        stated=close(numeric, printed, 1e-4),
        corrected=close(numeric, 2 * printed, 1e-6),
    )


def _average_gap(curvature: float, gamma: float, count: int) -> tuple[float, float]:
    """f(average) - f* and the bound (6) for f = curvature x²/2 from 1."""
    b = (1 - gamma * curvature) ** np.arange(count)
    return float(curvature * b.mean() ** 2 / 2), 1 / (gamma * count)


@claims("Equation (6)")
def descent_bound() -> Computed:
    inside = [
        _average_gap(curvature, gamma, n)
        for curvature, gamma, n in itertools.product((0.01, 1.0, 5.0), (0.01, 0.1, 0.3), (1, 3, 10, 100, 1000))
    ]
    worst = max(a / b for a, b in inside)
    bad = _average_gap(1.0, 2.5, 20)
    return Computed(
        f"quadratics with γL ≤ 1.5: at most {worst:.4f} of the bound. L = 1, γ = 2.5, 20 steps: {bad[0]:.3g}, "
        f"bound {bad[1]:.3g}.",
        stated=bad[0] <= bad[1],
        corrected=worst <= 1,
    )


@claims("After equation (6)")
def thousand_steps() -> Computed:
    need = {(d, g): d * d / (0.001 * g) for d, g in ((1, 1), (10, 0.1))}
    b, count = 10.0, 0
    while b * b / 2 > 0.001:
        b, count = b - 0.1 * b, count + 1
    return Computed(
        f"bound: {need[1, 1]:.0f} steps from distance 1 with γ = 1, {need[10, 0.1]:.0f} from 10 with γ = 0.1; the last "
        f"iterate for x²/2 takes {count}.",
        stated=need[10, 0.1] <= 1000,
        corrected=close(need[1, 1], 1000) and count < 1000,
    )


@claims("Equation (7)")
def unbiased() -> Computed:
    n, b, p = 4, Fraction(1, 3), Fraction(3, 10)
    at, least = Fraction(0), Fraction(0)
    for x in itertools.product((0, 1), repeat=n):
        weight = p ** sum(x) * (1 - p) ** (n - sum(x))
        mean = Fraction(sum(x), n)
        at += weight * sum((v - b) ** 2 for v in x) / n
        least += weight * sum((v - mean) ** 2 for v in x) / n
    true = p * (1 - b) ** 2 + (1 - p) * b**2
    return Computed(
        f"4 yes/no records, p = 0.3, b = ⅓: {float(at):.6f}, expected loss {float(true):.6f}; least loss "
        f"{float(least):.4f} "
        f"on average against {float(p * (1 - p)):.4f}.",
        stated=at == true and least < p * (1 - p),
    )


@claims("Example 33")
def sample_mean() -> Computed:
    result = optimize.minimize_scalar(lambda b: float(np.mean((U - b) ** 2)))
    return Computed(f"five records: {result.x:.6f}, mean {U.mean():.6f}.", stated=close(result.x, U.mean(), 1e-6))


@claims("Example 34")
def ridge() -> Computed:
    error = 0.0
    for penalty in (0.0, 0.5, 10.0):
        v, u = V - V.mean(), U - U.mean()
        b1 = float((v * u).mean() / ((v * v).mean() + penalty))
        b0 = float(U.mean() - b1 * V.mean())
        rest = U - b0 - b1 * V
        error = max(error, abs(float(rest.mean())), abs(float(-(V * rest).mean() + penalty * b1)))
        matrix = np.array([[1, V.mean()], [V.mean(), (V * V).mean() + penalty]])
        error = max(error, float(np.abs(np.linalg.solve(matrix, [U.mean(), (U * V).mean()]) - [b0, b1]).max()))
    return Computed(
        "five records, λ = 0, ½, 10: the gradient vanishes there and a linear solver agrees, to "
        f"{12 if error < 1e-12 else 0} digits.",
        stated=error < 1e-12,
    )


@claims("One-pass descent")
def one_pass() -> Computed:
    n, b = 12, 3

    def used(batches: range) -> list[int]:
        return sorted(i for h in batches for i in range(h * b + 1, (h + 1) * b + 1))

    printed, right = used(range(1, n // b + 1)), used(range(n // b))
    return Computed(
        f"n = 12, b = 3: records {printed[0]} to {printed[-1]} as printed, {right[0]} to {right[-1]} from h = 0.",
        stated=printed == list(range(1, n + 1)),
        corrected=right == list(range(1, n + 1)),
    )


@claims("Multi-pass descent")
def batches() -> Computed:
    again = 1 - math.prod(1 - i / 100 for i in range(10))
    sets = list(itertools.combinations(range(5), 3))
    return Computed(
        f"10 of 100 with replacement: some record twice with probability {again:.4f}; without, never.",
        stated=again == 0,
        corrected=all(len(set(s)) == 3 for s in sets),
    )


@claims("Theorem 35")
def stochastic_bound() -> Computed:
    # loss (x - b)^2, L = 2, records of variance 1: the noise 2(x_J - mean) has variance 4
    rows = []
    for count, rho, first, start in itertools.product(
        (1, 10, 100, 1000), (0.0, 0.5, 0.9), (0.01, 0.125), (0.0, 1.0, 5.0)
    ):
        gamma = first * steps(rho, count)
        bound = (start**2 + 8 * float((gamma**2).sum())) / float(gamma.sum())
        rows.append(mean_of_average(gamma, np.full(count, 4.0), start) / bound)
    bad = np.full(40, 1.5)
    broken = mean_of_average(bad, np.full(40, 4.0), 1.0), (1 + 8 * float((bad**2).sum())) / float(bad.sum())
    return Computed(
        f"loss (x − b)², records of variance 1, exact moments, γ ≤ 1/8: at most {max(rows):.4f} of the bound. γ "
        "= 1.5, 40 "
        f"steps: {broken[0]:.1e}, bound {broken[1]:.1f}.",
        stated=broken[0] <= broken[1],
        corrected=max(rows) <= 1,
    )


@claims("After Theorem 35, constant steps")
def constant_steps() -> Computed:
    gamma = 0.1
    last = 4 * gamma**2 / (1 - (1 - 2 * gamma) ** 2)
    average = [mean_of_average(np.full(n, gamma), np.full(n, 4.0), 1.0) for n in (100, 1000, 10**4)]
    return Computed(
        f"loss (x − b)², variance 1, γ = 0.1: variance of the last iterate tends to {last:.4f}; error² of the "
        "average after "
        "100, 1000, 10⁴ steps: " + ", ".join(f"{v:.5f}" for v in average) + ".",
        stated=average[-1] > last / 2,
        corrected=last > 0.1 and average[-1] < 2e-4,
    )


@claims("After Theorem 35, falling steps")
def falling_steps() -> Computed:
    shown = []
    for rho in (0.25, 0.5, 0.75):
        shown.append([float((1 + (steps(rho, n) ** 2).sum()) / steps(rho, n).sum()) for n in (10**2, 10**4, 10**6)])
    return Computed(
        "(1 + Σγ²)/Σγ at N = 10², 10⁴, 10⁶: "
        + "; ".join(
            f"ρ = {rho:g}: " + ", ".join(f"{v:.4f}" for v in row)
            for rho, row in zip((0.25, 0.5, 0.75), shown, strict=True)
        )
        + ".",
        stated=all(row[0] > row[1] > row[2] and row[2] < 0.1 for row in shown),
    )


@claims("Illustration, descent")
def thirty_iterations() -> Computed:
    left = 0.8**29
    return Computed(f"29 steps of b + 0.2(mean − b): {left:.5f} of the distance is left.", stated=left < 0.002)


@claims("Illustration, stochastic")
def two_hundred() -> Computed:
    def deviation(gamma: np.ndarray) -> float:
        bias, variance = 1.0, 0.0
        for g in gamma:
            bias, variance = bias * (1 - 2 * g), variance * (1 - 2 * g) ** 2 + 4 * g * g
        return math.sqrt(bias**2 + variance)

    constant = [deviation(np.full(n, 0.1)) for n in (199, 20000)]
    falling = [deviation(0.1 / np.sqrt(1 + np.arange(1, n + 1))) for n in (199, 20000)]
    return Computed(
        f"exponential data, root mean square error after 199 and 20,000 steps: constant {constant[0]:.4f}, "
        f"{constant[1]:.4f}; "
        f"falling {falling[0]:.4f}, {falling[1]:.4f}.",
        stated=close(constant[0], constant[1], 1e-3) and falling[1] < falling[0] / 2 < constant[0] / 2,
    )


@claims("Illustration, gradients")
def gradients() -> Computed:
    descent, stochastic = len(range(1, 30)) * 1000, len(range(1, 200))
    return Computed(
        f"counted: {descent:,} and {stochastic}.",
        stated=(descent, stochastic) == (30000, 200),
        corrected=(descent, stochastic) == (29000, 199),
    )
