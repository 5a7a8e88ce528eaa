"""The figures of the course: a picture made by the build, which a small script brings to life where scripts run.

Formulas are computed in the browser from the positions of sliders; what takes dither to compute (the Kolmogorov–Smirnov
release, private descent) is computed here, once, with a seeded source, and the page says so.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dither as dp
from dither.mechanisms.densities import density_at, grid
from dither.present import chart
from dither.present.drawing import svg
from dither.randomness import SeededSource


@dataclass(frozen=True)
class Figure:
    """What is shown without a script, what the script gets, and a sentence below."""

    picture: str
    caption: str
    data: Any = None


def _lines(series: list[tuple[str, Any, Any]], **labels: str) -> str:
    return svg(chart.lines(series, **labels), width=420)


def laplace() -> Figure:
    """Two neighbors' densities."""
    m = dp.Laplace(sensitivity=1, epsilon=1)
    z = [*grid(m, 0.5, 161)]
    lines = [(f"f = {v:g}", z, [density_at(m, x, value=v) for x in z]) for v in (0.0, 1.0)]
    text = (
        "The density of a release about two neighbors whose answers are Δ apart. Nowhere is one curve more than e^ε times the "
        "other: that is the promise. More ε or less Δ makes the curves narrower."
    )
    return Figure(_lines(lines, title="Laplace densities, ε = 1, Δ = 1", x_label="released value"), text)


def power() -> Figure:
    """The largest power at every level."""
    levels = [i / 100 for i in range(101)]
    bound = [min(1.0, a * math.e, 1 - math.exp(-1) * (1 - a)) for a in levels]
    lines = [("at most, ε = 1", levels, bound), ("guessing", [0.0, 1.0], [0.0, 1.0])]
    text = (
        "Whoever tests from a release whether you are in the data, and accuses falsely with probability α, is right with "
        "probability at most α·e^ε of those whom the accusation is true of (the power of the test). The closer the curve is to the diagonal, the closer the test is to guessing."
    )
    return Figure(_lines(lines, title="Power at most α·e^ε", x_label="α: false accusations"), text)


def exponential() -> Figure:
    """The election of three."""
    values = dp.Exponential(sensitivity=1, epsilon=1).probabilities([15, 20, 25])
    bars = [(f"{votes} votes", float(p), 0.0) for votes, p in zip((15, 20, 25), values, strict=True)]
    text = (
        "Which candidate wins, by the exponential mechanism with sensitivity 1: P(y) is proportional to exp(ε·score/2)."
    )
    return Figure(svg(chart.bars(bars, title="Who wins, ε = 1"), width=420), text)


def composition() -> Figure:
    """The total of many releases."""
    k = [1, *range(10, 201, 10)]
    epsilon, delta = 0.1, 1e-6
    curves = {
        "sum of ε": [n * epsilon for n in k],
        "advanced": [epsilon * math.sqrt(2 * n * math.log(1 / delta)) + n * epsilon * math.expm1(epsilon) for n in k],
        "zCDP": [zcdp(n * epsilon * math.tanh(epsilon / 2), delta) for n in k],
    }
    text = (
        "The ε of k releases together, at a total δ: the plain sum, the advanced composition theorem, and zero-concentrated "
        "privacy (ρ = ε·tanh(ε/2) for each). The accountants of dither do better still: dp.accounting.best_of."
    )
    lines = [(name, [float(n) for n in k], values) for name, values in curves.items()]
    return Figure(_lines(lines, title="ε of k releases of ε = 0.1", x_label="releases"), text)


def zcdp(rho: float, delta: float) -> float:
    """The textbook's conversion of ρ to ε at δ."""
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def smooth() -> Figure:
    """The two data sets of Example 12."""
    lines = []
    for name, zeros in (("51 zeros", 51), ("52 zeros", 52)):
        values = [0.0] * zeros + [100.0] * (101 - zeros)
        heights = [math.exp(-0.1 * k) * local_at(values, k, 0.0, 100.0) for k in range(31)]
        lines.append((name, [float(k) for k in range(31)], heights))
    text = (
        "101 ages, of which 51 or 52 are 0 and the others 100: neighbors, with the same median. e^(−kβ)·A⁽ᵏ⁾ over the distance k; "
        "the largest is the smooth sensitivity. At k = 0 it is the local sensitivity: 100 and 0, which tells the two apart. The largest "
        "values are never more than a factor e^β apart."
    )
    return Figure(_lines(lines, title="Example 12, β = 0.1", x_label="distance k"), text)


def local_at(values: list[float], k: int, low: float, high: float) -> float:
    """The local sensitivity of the median, at most, k records away; of values in order, an odd number."""
    middle = (len(values) + 1) // 2 - 1

    def at(place: int) -> float:
        return low if place < 0 else high if place >= len(values) else values[place]

    return max(at(middle + t) - at(middle + t - k - 1) for t in range(k + 2))


def mixed() -> Figure:
    """Theorem 10: what is claimed, and what is true."""
    ratio = math.sqrt(2)
    true = [gaussian_delta(1.0, ratio)] * 2
    places = [i / 1000 for i in range(101)]
    claimed = [2 * s / math.sqrt(math.pi) for s in places]
    lines = [("claimed by Theorem 10", places, claimed), ("true", [0.0, 0.1], true)]
    text = (
        "Normal noise with σ = √2·Δ/ε. Theorem 10 says that it is (ε, δ)-private as soon as δ is above the rising line, "
        "2Δ/(√π·ε). The true δ is the level line: it does not depend on Δ. Left of where they cross, the theorem claims privacy that is "
        "not there. Move ε, and Δ: only the claim moves with Δ."
    )
    return Figure(_lines(lines, title="Theorem 10, ε = 1", x_label="sensitivity Δ", y_label="δ"), text)


def gaussian_delta(epsilon: float, ratio: float) -> float:
    """δ(ε) of normal noise of so many sensitivities (Balle and Wang 2018), in floats, for a picture."""
    phi = lambda x: math.erfc(-x / math.sqrt(2)) / 2  # noqa: E731
    return phi(1 / (2 * ratio) - epsilon * ratio) - math.exp(epsilon) * phi(-1 / (2 * ratio) - epsilon * ratio)


def bounded() -> Figure:
    """A bounded law beside the one that it replaces."""
    m, plain = dp.BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10), dp.Laplace(sensitivity=1, epsilon=1)
    z = [i / 20 for i in range(201)]
    lines = [
        ("bounded, b = 1.61", z, [density_at(m, x, value=1.0) for x in z]),
        ("Laplace, b = 1", z, [density_at(plain, x, value=1.0) for x in z]),
    ]
    text = (
        "The release of 1 inside [0, 10], with ε = 1. The bounded law stays inside and has a larger scale; Laplace noise has 18 % of "
        "its mass below 0, which may be clamped for free."
    )
    return Figure(_lines(lines, title="Bounded Laplace", x_label="released value"), text)


def steps() -> Figure:
    """Descent on a parabola with three step sizes."""
    lines = []
    for gamma in (0.1, 0.4, 0.9):
        b, path = 1.0, [1.0]
        for _ in range(20):
            b -= gamma * 2 * b
            path.append(b)
        lines.append((f"γ = {gamma}", [float(i) for i in range(21)], path))
    text = "Descent on f(b) = b² from b = 1. Each step multiplies b by 1 − 2γ: too small is slow, too large swings, and above 1 it diverges."
    return Figure(_lines(lines, title="Gradient descent on a parabola", x_label="step", y_label="b"), text)


KS_EPSILONS = (0.1, 0.5, 1.0, 5.0)


def ks() -> Figure:
    """The Kolmogorov–Smirnov release of 300 made-up values."""
    values = np.random.default_rng(5).beta(2, 5, 300)
    places = [i / 40 for i in range(41)]
    truth = [float((values <= place).mean()) for place in places]
    curves = {}
    for i, epsilon in enumerate(KS_EPSILONS):
        density = dp.density.release(values, (0, 1), epsilon, method="ks", source=SeededSource(i + 1))
        curves[f"{epsilon:g}"] = [round(float(v), 4) for v in density.cdf(places)]
    text = (
        "The distribution function of 300 made-up values and a release of it by the Kolmogorov–Smirnov mechanism, which document 1 calls an open "
        "practical problem and dither draws exactly. Drawn once by the build with a seeded source, so this picture is the same every "
        "time, and not private."
    )
    lines = [("the data", places, truth), ("released, ε = 1", places, curves["1"])]
    data = {"x": places, "truth": [round(v, 4) for v in truth], "curves": curves}
    return Figure(_lines(lines, title="KS release, ε = 1", x_label="value"), text, data)


DESCENT_EPSILONS = (0.1, 0.3, 1.0, 3.0)


def descent() -> Figure:
    """Noisy gradient descent for a mean."""
    rng = np.random.default_rng(6)
    targets = np.clip(rng.normal(0.6, 0.2, 2000), 0, 1)
    records = np.ones((2000, 1))
    paths = {}
    for i, epsilon in enumerate(DESCENT_EPSILONS):
        noise = dp.learn.noise_for(epsilon, 1e-6, 60)
        trace = dp.learn.noisy_descent(
            dp.learn.Squared(), records, targets, start=0.0, steps=60, clip=1.0, noise_multiplier=noise, step=0.2, size=2000,
            source=SeededSource(i + 1),
        )  # fmt: skip
        paths[f"{epsilon:g}"] = [round(float(b), 4) for b in trace.iterates[:, 0]]
    text = (
        "Noisy gradient descent (clipped gradients, normal noise, δ = 1e-6) for the mean of 2,000 made-up values: 60 steps, all of which "
        "may be published. Drawn once by the build with a seeded source, so this picture is the same every time, and not private."
    )
    places = [float(i) for i in range(61)]
    target = float(targets.mean())
    lines = [("the mean", [0.0, 60.0], [target, target]), ("ε = 1", places, paths["1"])]
    data = {"paths": paths, "target": round(target, 4)}
    return Figure(_lines(lines, title="Private descent, ε = 1", x_label="step", y_label="b"), text, data)


FIGURES: dict[str, Callable[[], Figure]] = {
    "laplace": laplace, "power": power, "exponential": exponential, "composition": composition, "smooth": smooth,
    "mixed": mixed, "bounded": bounded, "steps": steps, "ks": ks, "descent": descent,
}  # fmt: skip
LIVE = ("laplace", "power", "exponential", "composition", "smooth", "mixed", "ks", "descent")
"""Figures that the script moves."""


def block(name: str) -> str:
    """A figure as a raw HTML block of a Markdown page."""
    figure = FIGURES[name]()
    data = "" if figure.data is None else f" data-values='{html.escape(json.dumps(figure.data), quote=True)}'"
    live = f' data-figure="{name}"{data}' if name in LIVE else ""
    return "\n".join(
        [
            "```{raw} html",
            f'<figure class="made"{live}><div class="made-picture">{figure.picture}</div>',
            f"<figcaption>{html.escape(figure.caption)}</figcaption></figure>",
            "```",
        ]
    )
