"""How a plan of a series looks in a notebook: what it promises, how far its numbers err, and a picture over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dither.present import drawing, markup

if TYPE_CHECKING:
    from dither.stream.mechanism import StreamPlan

_POINTS = 61
_STEPS_SHOWN = 365
"""How many steps are shown of a plan whose horizon is not known."""


def places(plan: StreamPlan, most: int = _POINTS) -> list[int]:
    """Steps from the first to the last of the horizon, at most so many.

    >>> from dither import PureDP
    >>> from dither.stream import StreamPlan
    >>> places(StreamPlan(horizon=100, budget=PureDP(1)), most=4)
    [1, 34, 67, 100]
    """
    last = _STEPS_SHOWN if plan.horizon is None else plan.horizon
    if last <= most:
        return [*range(1, last + 1)]
    return sorted({1 + round((last - 1) * i / (most - 1)) for i in range(most)})


def fragment(plan: StreamPlan, title: str, what: str, error: Callable[[int], float]) -> str:
    """The HTML of a plan. It reads no data and no noise: everything shown is public.

    ``what`` is released at every step, and ``error`` is its ± (95 %).

    >>> from dither import PureDP
    >>> from dither.stream import StreamPlan
    >>> plan = StreamPlan(horizon=30, budget=PureDP(1))
    >>> page = fragment(plan, "visits", "running sum", plan.error)
    >>> "ε = 1, once for all steps" in page, page.count("<svg")
    (True, 1)
    """
    steps = places(plan)
    errors = [error(step) for step in steps]
    horizon = "not known" if plan.horizon is None else f"{plan.horizon:,} steps"
    times = f"in at most {plan.max_participations:,} steps"
    if plan.max_participations > 1:
        times += f", at least {plan.min_separation:,} apart"
    pairs = [
        ("promises", f"{plan.guarantee}, once for all steps"),
        ("horizon", horizon),
        ("one person is", times),
        ("error (95 %)", f"± {errors[0]:.3g} after the first step, ± {errors[-1]:.3g} after step {steps[-1]:,}"),
    ]
    series = [("", [float(step) for step in steps], errors)]
    picture = drawing.line_chart(series, title=f"± of the {what} (95 %)", x_label="step")
    return markup.block(markup.heading(title), markup.facts(pairs), picture)
