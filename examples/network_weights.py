"""Noise on the weights of a neural network ruins it; two private ways to train that do not.

Source: document 5 of the course, section 2, the motivation of the exponential mechanism: "even small fluctuations in
weights in a neural network may severely impact the performance". A network of 2 inputs, 16 hidden units and 1 output
learns which of two interlocked spirals a point is on. Three releases, each for one person added or removed:

* *Laplace noise on the weights.* Training may move every weight by any amount when one record changes, so all that is
  known is the interval [-B, B] that weights are cut to: the l1 sensitivity of p weights is 2Bp.
* *The exponential mechanism among models.* 200 networks are trained on few public records, with other starting points
  and step sizes; the score of a network is the number of private records that it classifies correctly.
* *Private training.* Stochastic gradient descent: Poisson samples, gradients of each record clipped, normal noise on
  their sum, accounted by dither. Sums are of whole numbers, as in ``dither.learn.NoisyDescent``.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp
from dither.accounting import GaussianNoise, PoissonSampled, best_of
from dither.randomness import bernoulli, resolve

HIDDEN, BOUND, DELTA, CLIP, LATTICE = 16, 8.0, 1e-5, 1.0, 1 << 16
SIZES = (2 * HIDDEN, HIDDEN, HIDDEN, 1)
PARAMETERS = sum(SIZES)


def spirals(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points of two arms, and which."""
    arm, turn = rng.integers(0, 2, n), rng.uniform(0.15, 1, n)
    angle, spread = 2.2 * np.pi * turn + np.pi * arm, rng.normal(0, 0.16, (n, 2))
    return np.column_stack([turn * np.cos(angle), turn * np.sin(angle)]) * 2 + spread, arm.astype(float)


def forward(weights: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The hidden units and the probability of the second arm."""
    inner, bias, outer, last = np.split(weights, np.cumsum(SIZES)[:-1])
    hidden = np.tanh(x @ inner.reshape(2, HIDDEN) + bias)
    return hidden, 1 / (1 + np.exp(-np.clip(hidden @ outer + last, -30, 30)))


def gradients(weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The gradient of the logistic loss of each record."""
    hidden, p = forward(weights, x)
    outer, off = np.split(weights, np.cumsum(SIZES)[:-1])[2], (p - y)[:, None]
    back = off * outer * (1 - hidden**2)
    return np.column_stack([x[:, :1] * back, x[:, 1:] * back, back, off * hidden, off])


def accuracy(weights: np.ndarray, data: tuple[np.ndarray, np.ndarray]) -> float:
    """The share of records classified correctly."""
    return float(((forward(weights, data[0])[1] > 0.5) == data[1]).mean())


def train(x: np.ndarray, y: np.ndarray, rng: np.random.Generator, steps: int, rate: float = 1.0) -> np.ndarray:
    """Descent with momentum on all records, weights kept to [-B, B]."""
    weights, speed = rng.normal(0, 1, PARAMETERS), np.zeros(PARAMETERS)
    for _ in range(steps):
        speed = 0.9 * speed - rate * gradients(weights, x, y).mean(axis=0)
        weights = np.clip(weights + speed, -BOUND, BOUND)
    return weights


def private_training(
    data: Any, epsilon: float, steps: int, share: Fraction, rng: np.random.Generator
) -> tuple[np.ndarray, Any]:
    """Weights, and the guarantee that the accountant finds for all steps together."""
    x, y = data
    multiplier, words = dp.learn.noise_for(epsilon, DELTA, steps, float(share)), resolve(None)
    noise = dp.Gaussian(sensitivity=CLIP * LATTICE, rho=1 / (2 * multiplier**2))
    weights, speed = rng.normal(0, 1, PARAMETERS), np.zeros(PARAMETERS)
    for _ in range(steps):
        chosen = bernoulli(share, len(y), words)
        each = gradients(weights, x[chosen], y[chosen])
        each *= CLIP * (1 - 1e-9) / np.maximum(np.linalg.norm(each, axis=1, keepdims=True), CLIP)
        total = np.trunc(each * LATTICE).astype(np.int64).sum(axis=0)  # cut toward zero: no longer than the clip
        noisy = np.asarray(noise.release(total.astype(float).tolist())) / LATTICE
        speed = 0.9 * speed - 0.4 * noisy / float(share * len(y))
        weights = np.clip(weights + speed, -BOUND, BOUND)
    return weights, best_of(steps * PoissonSampled(GaussianNoise(multiplier), share), DELTA).guarantee


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print the accuracy of each release, and plot how noise on the weights destroys it."""
    rng = np.random.default_rng(12)
    n, steps, share = (4000, 150, Fraction(1, 10)) if quick else (20_000, 600, Fraction(1, 20))
    private, test, public = spirals(n, rng), spirals(5000, rng), spirals(40, rng)
    trained = train(*private, rng, 300 if quick else 1500)
    plain, width = accuracy(trained, test), 2 * BOUND * PARAMETERS
    print(f"{n} records, {PARAMETERS} weights; without privacy {plain:.3f} of new records are classified correctly")

    scales = 10.0 ** np.arange(-3, 4.1, 0.5)
    curve = [np.mean([accuracy(trained + s * rng.laplace(size=PARAMETERS), test) for _ in range(20)]) for s in scales]
    ways = [(int(rng.integers(20, 300)), 10 ** rng.uniform(-2, 0)) for _ in range(60 if quick else 200)]
    models = [train(*public, rng, *way) for way in ways]
    counts = [round(accuracy(model, private) * n) for model in models]
    names = ("Laplace on the weights", "one of the public models", "private training")
    epsilons, rows, guarantees = (1.0, 8.0) if quick else (0.5, 1.0, 2.0, 4.0, 8.0), [], []
    for epsilon in epsilons:
        laplace = dp.Laplace(sensitivity=width, epsilon=epsilon)
        noisy = [accuracy(np.array(laplace.release(trained.tolist())), test) for _ in range(5)]
        chosen = dp.Exponential(sensitivity=1, epsilon=epsilon, monotone=True).select(models, counts)
        weights, guarantee = private_training(private, epsilon, steps, share, rng)
        guarantees.append(guarantee)
        rows.append((float(np.mean(noisy)), accuracy(chosen, test), accuracy(weights, test)))
    result = dict(zip(names, zip(*rows, strict=True), strict=True))
    print(f"{'':>26} " + " ".join(f"ε = {e:<4g}" for e in epsilons) + f"   (private training: δ = {DELTA:g})")
    for name, values in result.items():
        print(f"{name:>26} " + " ".join(f"{value:>8.3f}" for value in values))
    needed = width / scales[max(i for i, value in enumerate(curve) if value > plain - 0.02)]
    print(f"noise on the weights that costs less than 0.02 of accuracy is worth ε = {needed:,.0f}")

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.semilogx(scales, curve, "o-", label="mean accuracy of 20 draws")
    for epsilon in (1, 1000):
        left.axvline(width / epsilon, color="gray", linestyle=":")
        left.text(width / epsilon, 0.8, f" ε = {epsilon}", fontsize=8)
    for (name, values), style in zip(result.items(), ("x:", "s-", "o-"), strict=True):
        right.semilogx(epsilons, values, style, label=name)
    left.set(title="Laplace noise on every weight", xlabel="scale of the noise", ylabel="accuracy on new records")
    right.set(title="Three private releases", xlabel="ε", ylabel="accuracy on new records")
    for axes in (left, right):
        axes.axhline(plain, color="black", linestyle="--", label="without privacy")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "network_weights.png", dpi=150)
    return {"plain": plain, "epsilons": epsilons, "result": result, "guarantees": guarantees, "needed": needed}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer records and steps")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
