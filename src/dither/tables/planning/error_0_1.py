"""The epsilon that version 0.1 spent to reach an error, so that answers it recorded for ``error=`` are still found.

Version 0.1 counted whole rows, of which a person changed a count by ``max_groups * max_rows``, with discrete noise.
Now counts are in smaller units, and the same error takes a slightly different epsilon, under which nothing is recorded.
The shares and sensitivities are written down here as they were then, with Laplace noise: they do not follow the code.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dither import arguments
from dither.accounting import gaussian_ratio
from dither.exact.search import bisect_floats
from dither.mechanisms import Laplace
from dither.tables.card.accounts import pays_delta
from dither.tables.card.model import Card
from dither.tables.compile.expressions import GRID_BITS
from dither.tables.compile.statements import grid
from dither.tables.options import ReleaseOptions
from dither.tables.planning.plan import Plan, below
from dither.tables.query.tree import Query

_PARTS = {"mean": 2, "var": 3, "std": 3}
_LARGEST = 1e4


def epsilon_0_1(query: Query, card: Card, options: ReleaseOptions, plan: Plan) -> float | None:
    """The epsilon at which version 0.1 released such a question with this error; None where it had normal noise, or
    bounds that it would not have taken.
    """
    if options.error is None or isinstance(options.error, str) or options.noise == "gaussian" or plan.automatic:
        return None
    error, groups, rows = arguments.positive(options.error, "error"), plan.groups, plan.limit
    shares: dict[object, Fraction] = {}
    sums: dict[object, tuple[int, float]] = {}
    for name, aggregate in query.aggregates.items():
        kind, weight = aggregate.kind, 1.0
        key: object = name
        if kind in ("count", "people"):
            key = "people" if rows == 1 or kind == "people" else "count"
            sums[key] = (1 if key == "people" else rows, 1.0)
        elif kind == "count_value":
            key = ("values", aggregate.value)
            sums[key] = (rows, 1.0)
        elif kind == "histogram":
            sums[key] = (rows, 1.0)
        elif kind == "sum":
            moments = plan.parts[name][0].moments
            if moments is None or moments.bounds is None or moments.grid is None:
                return None
            low, high = moments.bounds
            whole = moments.grid.scale == 1
            steps = grid(moments.bounds, whole, GRID_BITS, rows)
            key = ("sum", aggregate.value, moments.bounds)
            weight = max(abs(low), abs(high)) / ((abs(low) + abs(high)) / 2)
            sums[key] = (max(abs(steps.low), abs(steps.high), 1) * rows, steps.scale)
        parts = _PARTS.get(kind, 1)
        for part in range(parts):
            share = weight if aggregate.weight is None else aggregate.weight / parts
            one = key if parts == 1 else (aggregate.value, aggregate.bounds, part)
            shares[one] = max(shares.get(one, Fraction(0)), Fraction(share))
    if plan.selection is not None and "people" not in shares:
        shares["people"] = sum(shares.values(), Fraction(0)) / 3
    total = sum(shares.values(), Fraction(0))
    delta = next((value for value in (options.delta, query.delta, card.delta) if value is not None), None)

    def reaches(epsilon: float) -> bool:
        spent = arguments.epsilon(epsilon) * (Fraction(4, 5) if options.other else 1)
        for key, (bound, scale) in sums.items():
            mechanism = Laplace(groups * bound, below(spent * shares[key] / total))
            if float(mechanism.error(0.95, integer=True)) / scale > error:
                return False
        return True

    least = float(arguments.epsilon(card.min_epsilon, "min_epsilon"))
    if not sums or not reaches(max(_LARGEST, least)):
        return None
    result = least
    if not reaches(least):
        high = bisect_floats(reaches, least, _LARGEST, geometric=True, tolerance=1 - 1 / 1.0005, steps=60).holds
        short = float(f"{high:.4g}")
        result = short if short >= least and reaches(short) else high
    if options.noise == "best" and delta is not None and pays_delta(card):
        spent = float(arguments.epsilon(result)) * (0.8 if options.other else 1.0)
        half = arguments.delta(delta) / (2 if plan.selection is not None else 1)
        ratio = float(gaussian_ratio(Fraction(spent), half))
        measured = [float(share / total) for key, share in shares.items() if key in sums]
        in_all = math.fsum(measured)
        better = sum(
            math.log(math.sqrt(groups * in_all / share) * ratio) - math.log(math.sqrt(2) * groups / (spent * share))
            for share in measured
        )
        if better < 0:
            return None
    return result
