"""What the limits on one person's rows do to the answers of a question, in plain sentences, where they apply to it.

The error bars are about the noise alone, so whoever reads an answer, or a plan, is told what they leave out.
"""

from __future__ import annotations

import math

from dither.tables.planning.plan import Plan
from dither.tables.query.tree import Call, Column, walk

_ADDED = ("count", "count_value", "sum")
_BINNED = ("quantile", "min", "max", "mode", "histogram")


def limitations(plan: Plan) -> tuple[str, ...]:
    """The sentences for a plan; none where every row is a person, since then nothing is left out."""
    if plan.card.unit is None:
        return ()
    return tuple(sentence for sentence in (_left_out(plan), _once(plan), _distinct(plan), _ratios(plan)) if sentence)


def _left_out(plan: Plan) -> str | None:
    kinds = {aggregate.kind for aggregate in plan.query.aggregates.values()}
    some_groups = math.prod(math.inf if keys is None else len(keys) for keys in plan.keys) > plan.groups
    some_rows = kinds != {"people"}
    if not (some_groups or some_rows):
        return None
    limits = []
    if some_groups:
        limits.append("some groups" if plan.automatic is not None else f"at most {plan.groups} group(s)")
    if some_rows:
        limits.append(f"at most {plan.limit} row(s)" + (" in each group" if plan.query.groups else ""))
    effects = []
    if kinds & {*_ADDED, "histogram"} or (some_groups and "people" in kinds):
        effects.append("counts and sums can come out too low")
    if kinds - {*_ADDED, "histogram", "people"}:
        effects.append("means, quantiles and the like lean toward people with few rows")
    return (
        f"rows may be left out: of each person {' and '.join(limits)} count; {', and '.join(effects)}, "
        "which the ± does not include"
    )


def _once(plan: Plan) -> str | None:
    if plan.limit != 1 or "count" not in {aggregate.kind for aggregate in plan.query.aggregates.values()}:
        return None
    return "COUNT(*) counts each person once in a group here; max_rows = 20 would count up to 20 rows of each"


def _distinct(plan: Plan) -> str | None:
    names = [name for name, aggregate in plan.query.aggregates.items() if aggregate.kind in _BINNED]
    if not names:
        return None
    return f"{', '.join(names)}: each distinct (person, value) pair counts once, however many rows hold it"


def _ratios(plan: Plan) -> str | None:
    """Two numbers that are limited separately: a ratio of them is not that of all rows."""
    aggregates = plan.query.aggregates
    added = {name for name, aggregate in aggregates.items() if aggregate.kind in _ADDED}
    cut = added | {name for name, aggregate in aggregates.items() if aggregate.kind == "people" and added}
    if len(cut) < 2:
        return None
    ratios = [
        name
        for name, shown in plan.query.shape.columns.items()
        if any(isinstance(node, Call) and node.op == "/" for node in walk(shown))
        and len({node.name for node in walk(shown) if isinstance(node, Column)} & cut) > 1
    ]
    if ratios:
        return (
            f"{', '.join(ratios)}: the numbers that are divided are limited for each person separately, so the ratio "
            "can be far from that of all rows"
        )
    return (
        f"{', '.join(name for name in aggregates if name in cut)}: limited for each person separately, so a ratio of "
        "them can be far from that of all rows"
    )


__all__ = ["limitations"]
