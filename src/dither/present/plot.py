"""Plots of mechanisms: densities, privacy curves, trade-off functions, and comparisons.

Every function draws on matplotlib axes, new ones unless ``axes`` are given, and returns them. matplotlib is imported
when something is drawn: ``pip install 'dither[plot]'``.

>>> import dither as dp
>>> axes = dp.present.privacy_curve(dp.Laplace(1, epsilon=1), dp.Gaussian(1, epsilon=1, delta=1e-6))
>>> [line.get_label() for line in axes.get_lines()]
['Laplace, ε = 1', 'Gaussian, (ε, δ) = (1, 1e-06)']
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from dither import accounting, arguments
from dither.accounting import Event, epsilon_for_error
from dither.errors import InvalidArgument
from dither.extras import Axes
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.local import LocalProtocol
from dither.mechanisms.additive import Additive
from dither.mechanisms.bounded import BoundedLaplace
from dither.mechanisms.densities import AddsNoise, density_at, grid
from dither.mechanisms.mixed import MixedNoise
from dither.mechanisms.smooth import SmoothNoise
from dither.present.chart import Axis, Chart, Mark, bars
from dither.present.drawing import draw
from dither.stream import StreamPlan

_EPSILONS = 81
_LARGEST = 60.0


def density(
    *mechanisms: AddsNoise, value: float = 0.0, neighbor: float | None = None, smooth_sensitivity: float = 1.0,
    axes: Axes | None = None,
) -> Axes:  # fmt: skip
    """Plot the probability density of the released value and, dashed, that for a neighbor's value if one is given.

    If the two values differ by the sensitivity, neither density is anywhere more than e^ε times the other, up to δ. The
    densities are those before rounding to the lattice.

    >>> import dither as dp
    >>> axes = density(dp.Laplace(sensitivity=1, epsilon=1), value=10, neighbor=11)
    >>> len(axes.get_lines())
    2
    """
    _require_some(mechanisms)
    marks = []
    for i, mechanism in enumerate(mechanisms):
        _require_noise(mechanism)
        z = grid(mechanism, value, 401, smooth_sensitivity=smooth_sensitivity)
        for place, style, ending in ((value, "line", ""), (neighbor, "dashed", ", neighbor")):
            if place is None:
                continue
            heights = [density_at(mechanism, at, value=place, smooth_sensitivity=smooth_sensitivity) for at in z]
            marks.append(Mark(heights, z, f"{_name(mechanism)}{ending}", cast(Any, style), color=i))
    return draw(Chart("", tuple(marks), Axis("released value"), Axis("density", low=0)), axes)


def privacy_curve(*mechanisms: Any, axes: Axes | None = None) -> Axes:
    """Plot the smallest δ for every ε, for mechanisms, accounting events or guarantees.

    The curve is rounded up, so the plot shows an upper bound. A mechanism of which only the guarantee is known has the
    curve of the worst mechanism with that guarantee.

    >>> import dither as dp
    >>> privacy_curve(dp.Laplace(1, 1), dp.PureDP(1)).get_xlabel()
    'ε'
    """
    _require_some(mechanisms)
    curves = [(_name(mechanism), *curve_of(mechanism)) for mechanism in mechanisms]
    marks = tuple(Mark(deltas, epsilons, name) for name, epsilons, deltas in curves)
    return draw(Chart("", marks, Axis("ε", low=0), Axis("δ", low=0)), axes)


def trade_off(*mechanisms: Any, axes: Axes | None = None) -> Axes:
    """Plot the least type II error at every level α of a test that distinguishes two neighbors by the release.

    A test with false positive probability α has at least this false negative probability; perfect privacy is the line
    1 − α. It follows from the privacy curve: the largest of ``1 - delta - exp(epsilon) alpha`` over epsilon, and its
    mirror image (Dong, Roth and Su 2022).

    ``axes`` are matplotlib's; None makes new ones.

    >>> import dither as dp
    >>> axes = trade_off(dp.Gaussian(sensitivity=1, epsilon=1, delta=1e-6))
    >>> [line.get_label() for line in axes.get_lines()]
    ['perfect privacy', 'Gaussian, (ε, δ) = (1, 1e-06)']
    """
    _require_some(mechanisms)
    levels = np.concatenate([np.linspace(0, 0.02, 41), np.linspace(0.02, 1, 197)[1:]])
    marks = [Mark((1, 0), (0, 1), "perfect privacy", "reference")]
    for i, mechanism in enumerate(mechanisms):
        marks.append(Mark(trade_off_at(mechanism, levels).tolist(), levels.tolist(), _name(mechanism), color=i))
    x, y = Axis("α: false accusations", low=0, high=1), Axis("missed", low=0, high=1)
    axes = draw(Chart("", tuple(marks), x, y), axes)
    axes.set_aspect("equal")
    return axes


def noise_beside_data(
    values: Sequence[float], mechanism: Any, *, names: Sequence[str] | None = None, confidence: float = 0.95,
    axes: Axes | None = None,
) -> Axes:  # fmt: skip
    """Plot values with the error that a mechanism would add to each, to judge whether the noise is small.

    **This shows the values themselves.** Use it for values that you may see, or for invented ones of about the right
    size: the plot is not private.

    >>> import dither as dp
    >>> axes = noise_beside_data([120, 40, 5], dp.Laplace(sensitivity=1, epsilon=0.5), names=["a", "b", "c"])
    >>> axes.get_title()
    'values ± 6 (95 %), ε = 0.5; the values are not private'
    """
    heights = [float(value) for value in values]
    titles = [str(i) for i in range(len(heights))] if names is None else [str(name) for name in names]
    if not heights or len(titles) != len(heights):
        raise InvalidArgument(
            "names", "one for each value", f"{len(titles)} for {len(heights)}", "pass as many names as values"
        )
    width = float(mechanism.error(confidence=arguments.confidence(confidence)))
    title = f"values ± {width:.4g} ({confidence:.0%}), {mechanism.guarantee}; the values are not private"
    rows = [(name, height, width) for name, height in zip(titles, heights, strict=True)]
    return draw(bars(rows, title=title.replace("%", " %")), axes)


def error_over_time(*plans: Any, window: int | None = None, confidence: float = 0.95, axes: Axes | None = None) -> Axes:
    """Plot the ± of a series at every step, for ``plans`` (:class:`dither.stream.StreamPlan`) or started series.

    With ``window`` it is the ± of the sum over the last ``window`` steps, instead of the running sum. ``confidence`` is
    the probability with which the error is below it. Without ``axes``, new ones are made.

    >>> import dither as dp
    >>> plan = dp.stream.StreamPlan(horizon=52, budget=dp.ApproxDP(1, 1e-9))
    >>> error_over_time(plan).get_ylabel()
    'error (95 %)'
    """
    _require_some(plans)
    level, marks = float(arguments.confidence(confidence)), []
    for item in plans:
        plan = getattr(item, "plan", item)
        if not isinstance(plan, StreamPlan):
            raise InvalidArgument(
                "plans", "StreamPlan or a started series", type(item).__name__, "pass dp.stream.StreamPlan(…)"
            )
        steps = plan.shown_steps()
        errors = [plan.error(step, level, window) for step in steps]
        marks.append(Mark(errors, steps, f"{plan.factorization}, {plan.guarantee}"))
    return draw(Chart("", tuple(marks), Axis("step"), Axis(_error(level), low=0)), axes)


def local_variance(
    *families: Callable[[float], Any], epsilons: Sequence[float] | None = None, axes: Axes | None = None
) -> Axes:
    """Plot the variance of local protocols times the number of people, over the ε of one report.

    A family is a function that makes the protocol for an ε. Protocols are those of :mod:`dither.local`; the variance is
    that of the share of a rare category.

    >>> import dither as dp
    >>> axes = local_variance(lambda e: dp.local.SubsetSelection(categories=128, epsilon=e), epsilons=[0.5, 1, 2])
    >>> [f"{height:.3g}" for height in axes.get_lines()[0].get_ydata()]
    ['15.4', '3.61', '0.697']
    """
    _require_some(families)
    places_of_epsilon = [float(e) for e in (np.geomspace(0.25, 5, 20) if epsilons is None else epsilons)]
    marks = []
    for make in families:
        protocols = [make(epsilon) for epsilon in places_of_epsilon]
        if not all(isinstance(protocol, LocalProtocol) for protocol in protocols):
            raise InvalidArgument(
                "families",
                "functions of ε that make a local protocol",
                type(protocols[0]).__name__,
                "pass lambda e: dp.local.SubsetSelection(categories=128, epsilon=e)",
            )
        heights = [protocol.variance(1) for protocol in protocols]
        marks.append(Mark(heights, places_of_epsilon, type(protocols[0]).__name__))
    return draw(Chart("", tuple(marks), Axis("ε of one report"), Axis("variance × people", log=True)), axes)


def compare(
    families: Mapping[str, Callable[[float], Any]], *, equal: Literal["epsilon", "error"] = "epsilon",
    sizes: Sequence[float] | None = None, confidence: float = 0.95, axes: Axes | None = None,
) -> Axes:  # fmt: skip
    """Plot families of mechanisms together: their errors at equal ε, or the ε they need for equal errors.

    A family is a function that makes the mechanism for an ε, as for :func:`dither.accounting.epsilon_for_error`.
    ``sizes`` are the epsilons, or the errors, at which they are compared. ``confidence`` is the probability with which
    an error is below the ± shown. Without ``axes``, new ones are made.

    >>> import dither as dp
    >>> families = {"Laplace": lambda e: dp.Laplace(1, e), "Gaussian": lambda e: dp.Gaussian(1, e, 1e-6)}
    >>> compare(families, sizes=[0.5, 1]).get_ylabel()
    'error (95 %)'
    >>> compare(families, equal="error", sizes=[5, 10]).get_ylabel()
    'ε needed'
    """
    if not isinstance(families, Mapping) or not families:
        raise InvalidArgument(
            "families",
            "at least one name and function of ε",
            "none",
            "pass {'Laplace': lambda e: dp.Laplace(1, e)}",
        )
    if equal not in ("epsilon", "error"):
        raise InvalidArgument("equal", "'epsilon' or 'error'", repr(equal), "leave it out")
    level = float(arguments.confidence(confidence))
    default = np.geomspace(0.1, 4, 13) if equal == "epsilon" else np.geomspace(1, 50, 9)
    places = [float(size) for size in (default if sizes is None else sizes)]
    marks = tuple(
        Mark([_compared(make, place, equal, level) for place in places], places, name)
        for name, make in families.items()
    )
    labels = ("ε", _error(level)) if equal == "epsilon" else (_error(level), "ε needed")
    x, y = (Axis(label, log=True) for label in labels)
    return draw(Chart("", marks, x, y), axes)


def curve_of(mechanism: Any) -> tuple[list[float], list[float]]:
    """Return points of the privacy curve of a mechanism, an event or a guarantee: epsilons, and the delta at each.

    The epsilons are evenly spaced from 0 to the ε of the guarantee or, without one, to where delta is below 1e-9.

    >>> import dither as dp
    >>> epsilons, deltas = curve_of(dp.PureDP(1))
    >>> epsilons[0], epsilons[-1], deltas[-1] < 1e-12
    (0.0, 1.0, True)
    """
    delta_at = _curve(mechanism)
    end = 1.0
    while delta_at(end) > 1e-9 and end < _LARGEST:
        end *= 1.5
    guarantee = mechanism if isinstance(mechanism, Guarantee) else getattr(mechanism, "guarantee", None)
    if isinstance(guarantee, PureDP | ApproxDP):
        end = float(guarantee.exact[0])
    epsilons = [end * i / (_EPSILONS - 1) for i in range(_EPSILONS)]
    return epsilons, [min(1.0, delta_at(epsilon)) for epsilon in epsilons]


def trade_off_at(mechanism: Any, levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least type II error of a ``mechanism`` at each of ``levels`` (type I errors), from its privacy curve.

    Each pair (epsilon, delta) of the curve bounds the type II error from below by two lines, ``1 - delta - exp(epsilon)
    level`` and its mirror image; the result is the largest bound over a grid of epsilons up to twice the end of the
    curve. Fewer epsilons would lower it: what is returned is never above the true trade-off function.

    >>> import dither as dp
    >>> trade_off_at(dp.PureDP(math.log(3)), np.array([0.0, 0.25, 1.0])).round(3).tolist()
    [1.0, 0.25, 0.0]
    """
    delta_at = _curve(mechanism)
    epsilons, _ = curve_of(mechanism)
    end = max(epsilons)
    grid_of_epsilons = np.concatenate([np.linspace(0, end, 161), end * np.linspace(1.05, 2, 20)])
    result: NDArray[np.float64] = np.zeros_like(levels)
    for epsilon in grid_of_epsilons.tolist():
        delta = min(1.0, delta_at(epsilon))
        result = np.maximum(result, 1 - delta - math.exp(epsilon) * levels)
        result = np.maximum(result, math.exp(-epsilon) * (1 - delta - levels))
    return result


def _curve(mechanism: Any) -> Callable[[float], float]:
    """Return the privacy curve, a function from epsilon to delta, of a mechanism, an event or a guarantee."""
    if isinstance(mechanism, Event):
        return lambda epsilon: accounting.privacy_curve(mechanism, epsilon)
    own = getattr(mechanism, "privacy_curve", None)
    if own is not None:
        return cast("Callable[[float], float]", own)
    guarantee = mechanism if isinstance(mechanism, Guarantee) else getattr(mechanism, "guarantee", None)
    if isinstance(guarantee, PureDP | ApproxDP):
        event = accounting.Pure(guarantee.exact[0])
        if isinstance(guarantee, ApproxDP):
            event = cast(Any, accounting.Approximate(guarantee.exact[0], float(guarantee.exact[1])))
        return lambda epsilon: accounting.privacy_curve(event, epsilon)
    raise InvalidArgument(
        "mechanism",
        "a mechanism, an event or a guarantee of ε or (ε, δ)",
        type(mechanism).__name__,
        "pass dp.Laplace(1, 1), its event, or dp.PureDP(1)",
    )


def _compared(make: Callable[[float], Any], size: float, equal: str, confidence: float) -> float:
    """Return the error of a family's mechanism at an ε, or the ε that it needs for an error."""
    if equal == "error":
        return epsilon_for_error(make, size, confidence)
    return float(make(size).error(confidence=confidence))


def _name(mechanism: Any) -> str:
    """Return the legend of a mechanism or a guarantee."""
    guarantee = mechanism if isinstance(mechanism, Guarantee) else getattr(mechanism, "guarantee", None)
    if isinstance(mechanism, Guarantee):
        return f"any, {mechanism}"
    return type(mechanism).__name__ if guarantee is None else f"{type(mechanism).__name__}, {guarantee}"


def _require_some(mechanisms: Sequence[Any]) -> None:
    """Refuse an empty list of mechanisms."""
    if not mechanisms:
        raise InvalidArgument("mechanisms", "at least one", "none", "pass dp.Laplace(1, 1), for example")


def _require_noise(mechanism: Any) -> None:
    """Refuse a mechanism that does not add noise to a number."""
    if not isinstance(mechanism, Additive | BoundedLaplace | MixedNoise | SmoothNoise):
        raise InvalidArgument(
            "mechanism", "one that adds noise to a number", type(mechanism).__name__, "pass dp.Laplace(1, 1)"
        )


def _error(level: float) -> str:
    """Return the axis label of an error at a confidence level."""
    return f"error ({level:.0%})".replace("%", " %")
