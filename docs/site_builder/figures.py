"""The figures of the course: a picture made by the build, which a small script brings to life where scripts run.

Formulas are computed in the browser from the positions of sliders; what takes dither to compute (the Kolmogorov–Smirnov
release, private descent) is computed here, once, with a seeded source, and the page says so.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
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


def _lines(series: list[tuple[str, Any, Any]], log: bool = False, **labels: str) -> str:
    made = chart.lines(series, **labels)
    if log:
        made = replace(made, x=replace(made.x, log=True), y=replace(made.y, log=True))
    return svg(made, width=420)


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
        "A test decides from a release whether a person is in the data. If it wrongly accuses a share α of those who are not, it detects at most α·e^ε of those "
        "who are: that share is its power. The closer the curve is to the diagonal, the closer the test is to guessing."
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
    """A bounded law, with the scale of Theorem 26 and with that of plain noise."""
    z = [i / 20 for i in range(201)]
    scales = (dp.BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10).scale, 1.0)
    mass = [1 - (math.exp(-1 / b) + math.exp(-9 / b)) / 2 for b in scales]
    lines = [
        (name, z, [math.exp(-abs(x - 1) / b) / (2 * b * c) for x in z])
        for name, b, c in zip(("Theorem 26, b = 1.612", "b = Δ/ε = 1"), scales, mass, strict=True)
    ]
    text = (
        "The density of a release of f(x) inside [0, u]. What it is divided by depends on f(x), and so on the data: with the scale Δ/ε of plain "
        "Laplace noise the loss is larger than ε. Theorem 26 gives the least scale that is enough; a δ, or a range that is just Δ wide, lessens it."
    )
    return Figure(_lines(lines, title="Bounded Laplace, ε = 1, Δ = 1", x_label="released value"), text)


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


def utility() -> Figure:
    """The printed terms of Theorem 37 and what the last iterate costs."""
    sgd = dp.course.TheoremSGD(epsilon=1, steps=1000, clip=1.0, schedule=dp.learn.Schedule(1.0, rho=0.5), kappa=0.8)
    terms = dp.course.private_bound(1.0, sgd, coordinates=1)
    n = sorted({round(10 ** (i / 10)) for i in range(31)})
    lines = [(name, n, [float(t[k - 1]) for k in n]) for name, t in zip(("A₁", "A₂", "A₃"), terms, strict=True)]
    cost = [dp.course.TheoremSGD(1, k, clip=1.0, schedule=sgd.schedule, kappa=0.8).guarantee.epsilon for k in n]
    text = (
        "The three terms of the bound (11) on the average of N iterates, for steps (1 + h)^(−ρ) and a_h = h^κ, with D² = C = p = 1 and ε = 1, and what "
        "the last iterate costs: the smaller of Theorem 36's ε·N^κ and the sum over all steps. A larger κ makes A₃ vanish, and the promise with it. "
        "Both axes are logarithmic."
    )
    lines.append(("ε of the last iterate", n, [float(c) for c in cost]))
    return Figure(_lines(lines, log=True, title="Theorem 37, ρ = 0.5, κ = 0.8", x_label="steps N"), text)


def pareto() -> Figure:
    """What clipping Pareto values costs and saves."""
    c = [2 + i for i in range(99)]
    noise = [math.sqrt(float(dp.Laplace((v - 1) / 1000, 1).variance)) for v in c]
    bias = [1 / v for v in c]
    sample = [(1 + 2 * math.log(v) - (2 - 1 / v) ** 2) / 1000 for v in c]
    total = [math.sqrt(a * a + b * b + v) for a, b, v in zip(noise, bias, sample, strict=True)]
    text = (
        "The mean of 1,000 values with density α·x^(−α−1) on x > 1, which has no finite sensitivity: values are clipped at a public c. The bias falls with c, "
        "the Laplace noise, of scale (c − 1)/(1000·ε), grows. The error has both, and that of the sample."
    )
    lines = [("root mean squared error", c, total), ("bias of clipping", c, bias), ("noise", c, noise)]
    return Figure(
        _lines(lines, title="A noisy Pareto mean, α = 2, ε = 1", x_label="values are clipped to [1, c]"), text
    )


def heavy() -> Figure:
    """The heavy hitter with 100 websites and ε = 0.5."""
    leads = [float(v) for v in range(0, 81, 4)]
    selection, every = (
        dp.Exponential(sensitivity=1, epsilon=0.5),
        dp.NoisyMax.for_counts(0.5 / 100, dp.AddRemove, noise="laplace"),
    )
    named = [[float(m.probabilities([v] + [0.0] * 99)[0]) for v in leads] for m in (selection, every)]
    bound = [max(0.0, 1 - 100 * math.exp(-0.25 * v)) for v in leads]
    text = (
        "100 websites, of which one leads and the others are level: how often the leader is named. By Proposition 1.4 the score is within 2(ln d + t)/ε of the "
        "best with probability 1 − e^(−t). Laplace noise on all d counts, the printed alternative, has scale d/ε and needs leads of hundreds."
    )
    lines = [
        ("exponential mechanism", leads, named[0]), ("at least, Proposition 1.4", leads, bound),
        ("Laplace noise d/ε on all counts", leads, named[1]),
    ]  # fmt: skip
    return Figure(_lines(lines, title="Heavy hitter, d = 100, ε = 0.5", x_label="lead over all others"), text)


def pricing() -> Figure:
    """Everybody pays at most 0.70."""
    cents = list(range(1, 200))
    earned = [10.0 * c if c <= 70 else 0.0 for c in cents]
    p = dp.Exponential(sensitivity=1.99, epsilon=1).probabilities(earned)
    text = (
        "1,000 people would all pay 70 cents. 69 cents earn nearly as much and 71 earn nothing, so noise on the price would not do; the exponential mechanism, here with "
        "Δ = 1.99, chooses a price a little below. The expected loss is far below the bound for 199 prices, as many prices are nearly best."
    )
    lines = [
        ("share of the best revenue", cents, [q / 700 for q in earned]),
        ("probability of the price", cents, [float(v) for v in p]),
    ]
    return Figure(_lines(lines, title="Everybody pays 0.70, ε = 1", x_label="price in cents"), text)


def noisymax() -> Figure:
    """How far off report noisy max is."""
    m, gaps = dp.NoisyMax.for_counts(1, dp.AddRemove, noise="laplace"), [i / 2 for i in range(39)]
    exact = [1 - float(m.probabilities([g] + [0.0] * 99)[0]) for g in gaps]
    text = (
        "Report noisy max among 100 counts with Lap(1/ε): how often it names a count that is g below the best, if all others are that far below, and the bound m·e^(−εg/2): "
        "what it names is within 2·ln(m/β)/ε of the best with probability at least 1 − β. Document 4 asks for the accuracy and does not give it."
    )
    lines = [
        ("at most, m·e^(−εg/2)", gaps, [min(1.0, 100 * math.exp(-g / 2)) for g in gaps]),
        ("Lap(1/ε), exactly", gaps, exact),
    ]
    return Figure(
        _lines(lines, title="Report noisy max, m = 100, ε = 1", x_label="all others are this far below the best"), text
    )


def reset() -> Figure:
    """What a daily reset gives away."""
    days = list(range(1, 366, 4))
    p = dp.RandomizedResponse(epsilon=1).probability
    text = (
        "A phone answers the same yes-or-no question by randomized response every day, within a budget that is full again every morning. A guess by the "
        "majority of the answers is soon right; the answers of k days cost k·ε. One answer that is remembered and repeated costs ε once."
    )
    lines = [
        ("fresh answers: guess by majority", days, [majority(k, p) for k in days]),
        ("one answer, remembered", [1, 365], [p, p]),
    ]
    return Figure(_lines(lines, title="A daily reset, ε = 1 a day", x_label="days", y_label="right guesses"), text)


def census() -> Figure:
    """The error of a count against ε."""
    epsilons = [10 ** (i / 20) for i in range(-20, 21)]
    shares = [min(1.0, dp.Laplace(sensitivity=1, epsilon=e / 10).error(integer=True) / 50) for e in epsilons]
    text = (
        "A statistical office publishes ten tables, among which ε is divided, and each person is in one cell of each. What is shown is how far a count of 50 people may be off in 95 % "
        "of releases, as a share of it. Society chooses a point of this curve; better accounting and tables that add up move the whole curve down."
    )
    lines = [("± of a count of 50 people, as a share of it", epsilons, shares)]
    return Figure(_lines(lines, title="Ten tables of a census", x_label="ε of all tables together"), text)


def majority(k: int, p: float) -> float:
    """The probability that the majority of k answers is right, each with probability p; a tie is broken by a coin."""
    terms = (math.comb(k, i) * p**i * (1 - p) ** (k - i) / (2 if 2 * i == k else 1) for i in range((k + 1) // 2, k + 1))
    return math.fsum(terms)


def means() -> Figure:
    """The three laws of a released mean."""
    places, rate = [i / 200 for i in range(201)], 100 / 2
    laplace_law = [density_at(dp.Laplace(sensitivity=1 / 100, epsilon=1), v, value=0.4) for v in places]
    area = (2 - math.exp(-rate * 0.4) - math.exp(-rate * 0.6)) / rate
    absolute = [math.exp(-rate * abs(v - 0.4)) / area for v in places]
    normal = math.sqrt(math.pi / rate) / 2 * (math.erf(0.4 * math.sqrt(rate)) + math.erf(0.6 * math.sqrt(rate)))
    square = [math.exp(-rate * (v - 0.4) ** 2) / normal for v in places]
    text = (
        "The density of a released mean of n values in [0, 1]: with Laplace noise, and by the exponential mechanism with two utilities. The second has nearly twice the scale; "
        "the third, normal and kept to [0, 1], is far wider, since its weights fall with the square of a small distance."
    )
    lines = [
        ("Laplace noise", places, laplace_law),
        ("−|mean − l| on [0, 1]", places, absolute),
        ("−(mean − l)² on [0, 1], Δ = 1/n", places, square),
    ]
    return Figure(_lines(lines, title="A mean of 0.4, n = 100, ε = 1", x_label="released value"), text)


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
    "mixed": mixed, "bounded": bounded, "steps": steps, "ks": ks, "descent": descent, "utility": utility,
    "pareto": pareto, "heavy": heavy, "pricing": pricing, "noisymax": noisymax, "reset": reset, "means": means,
    "census": census,
}  # fmt: skip
"""Every figure; the script moves all of them."""


def block(name: str) -> str:
    """A figure as a raw HTML block of a Markdown page."""
    figure = FIGURES[name]()
    data = "" if figure.data is None else f" data-values='{html.escape(json.dumps(figure.data), quote=True)}'"
    return "\n".join(
        [
            "```{raw} html",
            f'<figure class="made" data-figure="{name}"{data}><div class="made-picture">{figure.picture}</div>',
            f"<figcaption>{html.escape(figure.caption)}</figcaption></figure>",
            "```",
        ]
    )
