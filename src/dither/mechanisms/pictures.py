"""How a mechanism looks in a notebook: what it promises, how large its noise is, and a picture of its law."""

from __future__ import annotations

from typing import Any

from dither.present import chart, markup


class Pictured:
    """Base of the mechanisms that show themselves in a notebook.

    >>> import dither as dp
    >>> page = dp.Laplace(sensitivity=1, epsilon=0.5)._repr_html_()
    >>> "ε = 0.5" in page, page.count("<svg xmlns")
    (True, 1)
    """

    def _repr_html_(self) -> str:
        """Return the mechanism for a notebook: its guarantee, the size of its noise, and a picture of its law."""
        return fragment(self)


def fragment(mechanism: Any) -> str:
    """Return the HTML of a mechanism. It reads no data: everything shown follows from its public parameters.

    >>> import dither as dp
    >>> "Probability" in fragment(dp.Exponential(sensitivity=1, epsilon=1))
    True
    """
    pairs: list[tuple[str, str]] = [("promises", str(mechanism.guarantee))]
    for name in ("scale", "beta"):
        value = getattr(mechanism, name, None)
        if isinstance(value, float):
            pairs.append((name, f"{value:.6g}"))
    picture = _picture(mechanism)
    return markup.block(markup.heading(repr(mechanism)), markup.facts(pairs), picture)


def _picture(mechanism: Any) -> str:
    """Return the chart of a mechanism as HTML; empty for a mechanism that has none.

    It is the density of a release for a mechanism that adds noise, the probabilities of the reports for randomized
    response, and for one that chooses the probability of each of six candidates whose scores are 0 to 5 sensitivities
    (written as Δ) below the best.
    """
    from dither.mechanisms import densities
    from dither.mechanisms.additive import Additive
    from dither.mechanisms.bounded import BoundedLaplace
    from dither.mechanisms.mixed import MixedNoise
    from dither.mechanisms.randomized_response import RandomizedResponse
    from dither.mechanisms.smooth import SmoothNoise

    if isinstance(mechanism, Additive | BoundedLaplace | MixedNoise | SmoothNoise):
        value = 0.0
        if isinstance(mechanism, BoundedLaplace):
            value = (float(mechanism.lower) + float(mechanism.upper)) / 2
        places = densities.grid(mechanism, value, 121)
        heights = [densities.density_at(mechanism, place, value=value) for place in places]
        unit = ", in smooth sensitivities" if isinstance(mechanism, SmoothNoise) else ""
        title = f"Density of the release of {value:g}{unit}"
        return markup.picture(chart.lines([("", places, heights)], title=title, x_label="released value"))
    if isinstance(mechanism, RandomizedResponse):
        truth = mechanism.truth_probability(60)[0] / 2.0**60
        others = (1 - truth) / (mechanism.category_count - 1)
        bars = [("the truth", truth, None), ("each other category", others, None)]
        return markup.picture(chart.bars(bars, title="Probability of each report"))
    probabilities = getattr(mechanism, "probabilities", None)
    if probabilities is None:
        return ""
    steps = range(6)
    values = probabilities([-float(mechanism.sensitivity) * step for step in steps])
    bars = [
        ("the best" if not step else f"worse by {step} Δ", float(p), None)
        for step, p in zip(steps, values, strict=True)
    ]
    title = "Probability of choosing each of six candidates, by how far its score is below the best"
    return markup.picture(chart.bars(bars, title=title))
