"""A plan in words and numbers: what would be done, what it would cost, and what the answers leave out.

No data is read. The error bars are about the noise alone, so whoever reads an answer, or a plan, is told what the
limits on one person's rows do to it (:func:`limitations`), in plain sentences, where they apply to the question.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dither.comparison import unhashable
from dither.homes import public_in
from dither.mechanisms import Gaussian
from dither.tables.planning.key_selection import every_group
from dither.tables.planning.plan import Plan
from dither.tables.planning.quantiles import errors
from dither.tables.query.tree import Call, Column, walk
from dither.terminal import printable

_ADDED = ("count", "count_value", "sum")
_BINNED = ("quantile", "min", "max", "mode", "histogram")
_WHAT = {
    "count": "rows",
    "values": "rows with a value",
    "people": "people",
    "sum": "sum",
    "center": "sum about the middle of the bounds",
    "square": "sum of squares about the middle of the bounds",
}


@public_in("dither")
@unhashable
@dataclass(frozen=True)
class Explanation:
    """A line for each thing that is measured: mechanism, share of the budget, expected error; and the whole cost.

    >>> import dither as dp, pyarrow as pa
    >>> with dp.open(pa.table({"age": [30, 40] * 50}), budget=dp.PureDP(1)) as people:
    ...     print(people.agg(n=dp.count()).explain(epsilon=1).cost)
    ε = 1
    """

    lines: tuple[dict[str, Any], ...]
    cost: str
    groups: str
    bounding: str
    left: str
    limitations: tuple[str, ...] = ()
    refused: str = ""

    def __str__(self) -> str:
        output = [f"cost: {self.cost}; left: {self.left}"]
        output += [f"would be refused: {self.refused}"] if self.refused else []
        output += [self.groups, self.bounding]
        for line in self.lines:
            width = "" if line["error"] is None else f", ± {line['error']:.4g} (95 %)"
            output.append(f"{line['answer']}: {line['measure']} by {line['mechanism']}{width}")
        return "\n".join(map(printable, [*output, *self.limitations]))


def explain(plan: Plan, left: str, people: tuple[str, ...] = (), refused: str = "") -> Explanation:
    """Describe a plan; ``left`` says what may still be spent, ``people`` what their limits do to the answer, and
    ``refused`` why it would not be answered now.
    """
    lines: list[dict[str, Any]] = []
    for name, parts in plan.parts.items():
        for measure in parts:
            noise = plan.measures[measure]
            mechanism = (
                f"normal noise, σ = {noise.scale:.4g}"
                if isinstance(noise, Gaussian)
                else f"Laplace noise, ε = {noise.epsilon:.4g}"
            )
            lines.append(
                {
                    "answer": name,
                    "measure": _WHAT[measure.kind],
                    "mechanism": mechanism,
                    "error": float(noise.error(0.95, integer=True)) / measure.scale,
                }
            )
    for choice in plan.choices:
        mechanism = f"the exponential mechanism among {choice.bins}, ε = {choice.mechanism.epsilon:.4g} in each group"
        lines.append({"answer": choice.name, "measure": choice.aggregate.kind, "mechanism": mechanism, "error": None})
    for ranked in plan.quantiles:
        rank_errors = errors(ranked.rank, ranked.bins)
        for name, share in ranked.shares.items():
            epsilon = ranked.rank.mechanism.epsilon
            mechanism = f"the exponential mechanism among {ranked.bins}, ε = {epsilon:.4g} in each group and level"
            mechanism += f", its rank within {rank_errors[share]:.4g} (95 %)"
            lines.append({"answer": name, "measure": "quantile", "mechanism": mechanism, "error": None})
    for count in plan.counts:
        error = float(count.mechanism.error(0.95, integer=True))
        lines.append({"answer": count.name, "measure": "histogram", "mechanism": "Laplace noise", "error": error})
    every = every_group(plan.keys)
    if not plan.query.groups:
        groups = "groups: one, of all rows"
    elif every is not None:
        groups = f"groups: {len(every)}, all public; each is shown, whether anybody is in it or not"
    else:
        assert plan.selection is not None
        groups = f"groups: private; shown from a noisy {plan.selection.threshold} people on"
    bounding = "each row is a person of their own"
    if plan.card.unit is not None:
        bounding = f"of each person at most {plan.groups} group(s) and {plan.limit} row(s) in each count"
    if plan.automatic is not None:
        bounding += (
            f"; what is not stated is chosen privately, for ε = {float(plan.automatic):.3g} each: the errors here"
        )
        bounding += " are those of one group"
    notes = (*limitations(plan), *people)
    return Explanation(tuple(lines), str(plan.guarantee), groups, bounding, left, notes, refused)


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


__all__ = ["Explanation", "explain", "limitations"]
