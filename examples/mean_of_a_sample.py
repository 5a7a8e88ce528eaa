"""The released mean as an estimate of the population's: what noise and sample together do.

Source: document 1 of the course, Example, the mean. Given the data, the exponential mechanism with the score
``-(mean - t)^2`` releases N(mean, 1/(n epsilon)); over the sample, too, that is N(mu, (1/epsilon + sigma^2)/n), mu and
sigma^2 the population's. So the error is O(1/sqrt(n)), as that of the mean itself.

The mean and the variance of that law are right. It is normal in the limit only, and it is private only when it is kept
to [0, 1], which is what is drawn here. Laplace noise adds 2/(n epsilon)^2 to the variance, of smaller order: from some
ten records on it is the better estimate.
"""

from __future__ import annotations

import argparse
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp
from dither.mechanisms import mean_pieces

EPSILON, MU, VARIANCE = 1.0, 2 / 7, 10 / (49 * 8)
"""Of the population, Beta(2, 5)."""


def predicted(n: int | np.ndarray) -> Any:
    """The printed standard deviation of the release over the sample."""
    return np.sqrt((1 / EPSILON + VARIANCE) / n)


def estimates(n: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Means of so many samples, each released once by the exponential mechanism on [0, 1]."""
    mechanism = dp.Exponential.continuous(sensitivity=Fraction(1, n), epsilon=EPSILON, bounds=(0.0, 1.0))
    result = []
    for _ in range(draws):
        data = np.rint(rng.beta(2, 5, n) * 1000).astype(int)
        result.append(mechanism.release(mean_pieces(Fraction(int(data.sum()), 1000 * n), (0.0, 1.0), 2)))
    return np.array(result)


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Compare the releases with the printed law, and the errors of three estimates over n."""
    rng = np.random.default_rng(8)
    n, draws = 200, 400 if quick else 3000
    seen = estimates(n, draws, rng)
    z = np.sort((seen - MU) / predicted(n))
    normal = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in z])
    ranks = np.arange(draws + 1) / draws
    distance = float(max((ranks[1:] - normal).max(), (normal - ranks[:-1]).max()))
    print(f"n = {n}, ε = {EPSILON:g}, {draws} samples, one release each; population mean {MU:.4f}")
    print(f"mean of the releases {seen.mean():.4f}, standard deviation {seen.std():.4f}, printed {predicted(n):.4f}")
    print(
        f"largest distance to the normal distribution function {distance:.4f}, by chance about {0.87 / draws**0.5:.4f}"
    )

    sizes = np.array([30, 100, 300, 1000, 3000] if quick else [30, 100, 300, 1000, 3000, 10_000, 30_000])
    repeats = 60 if quick else 300
    errors = {"exponential mechanism on [0, 1]": [], "Laplace noise": [], "the mean itself (not private)": []}
    for size in sizes.tolist():
        means = rng.beta(2, 5, (repeats, size)).mean(axis=1)
        laplace = np.asarray(dp.Laplace(sensitivity=1 / size, epsilon=EPSILON).release(means))
        released = (estimates(size, repeats, rng), laplace, means)
        for name, values in zip(errors, released, strict=True):
            errors[name].append(float(np.sqrt(np.mean((values - MU) ** 2))))
    print(f"{'RMS error times √n':>33} " + " ".join(f"{size:>7}" for size in sizes))
    for name, values in errors.items():
        print(f"{name:>33} " + " ".join(f"{v:>7.3f}" for v in np.array(values) * np.sqrt(sizes)))

    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.hist(seen, 40, density=True, alpha=0.5, label="released means")
    t = np.linspace(0, 0.6, 400)
    law = np.exp(-(((t - MU) / predicted(n)) ** 2) / 2) / (predicted(n) * math.sqrt(2 * math.pi))
    left.plot(t, law, "k", label=r"$N(\mu, (1/\varepsilon + \sigma^2)/n)$")
    left.set(title=f"Over samples and noise, n = {n}", xlabel="released mean", ylabel="density")
    for (name, values), style in zip(errors.items(), ("o-", "s-", "^-"), strict=True):
        right.loglog(sizes, values, style, label=name)
    right.loglog(sizes, predicted(sizes), "k--", label=r"printed: $\sqrt{(1/\varepsilon + \sigma^2)/n}$")
    right.set(title=f"Error as an estimate of μ, ε = {EPSILON:g}", xlabel="n", ylabel="RMS error")
    for axes in (left, right):
        axes.legend(fontsize=8)
        axes.grid(alpha=0.3, which="both")
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "mean_of_a_sample.png", dpi=150)
    return {
        "n": n,
        "draws": draws,
        "seen": seen,
        "distance": distance,
        "sizes": sizes,
        "errors": errors,
        "repeats": repeats,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
