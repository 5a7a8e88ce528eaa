"""What would be done and what it would cost, in words and numbers; no data is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dither.homes import public_in
from dither.mechanisms import Gaussian
from dither.tables.planning.key_selection import every_group
from dither.tables.planning.limitations import limitations
from dither.tables.planning.plan import Plan
from dither.tables.planning.quantiles import errors
from dither.terminal import printable

_WHAT = {
    "count": "rows",
    "values": "rows with a value",
    "people": "people",
    "sum": "sum",
    "center": "sum about the middle of the bounds",
    "square": "sum of squares about the middle of the bounds",
}


@public_in("dither")
@dataclass(frozen=True)
class Explanation:
    """A line for each thing that is measured: mechanism, share of the budget, expected error; and the whole cost."""

    lines: tuple[dict[str, Any], ...]
    cost: str
    groups: str
    bounding: str
    left: str
    limitations: tuple[str, ...] = ()
    refused: str = ""

    def __str__(self) -> str:
        told = [f"cost: {self.cost}; left: {self.left}"]
        told += [f"would be refused: {self.refused}"] if self.refused else []
        told += [self.groups, self.bounding]
        for line in self.lines:
            width = "" if line["error"] is None else f", ± {line['error']:.4g} (95 %)"
            told.append(f"{line['answer']}: {line['measure']} by {line['mechanism']}{width}")
        return "\n".join(map(printable, [*told, *self.limitations]))


def explain(plan: Plan, left: str, people: tuple[str, ...] = (), refused: str = "") -> Explanation:
    """Describe a plan; ``left`` says what may still be spent, ``people`` what their limits do to the answer, and
    ``refused`` why it would not be answered now.
    """
    lines: list[dict[str, Any]] = []
    for name, parts in plan.parts.items():
        for measure in parts:
            noise = plan.measures[measure]
            told = (
                f"normal noise, σ = {noise.scale:.4g}"
                if isinstance(noise, Gaussian)
                else f"Laplace noise, ε = {noise.epsilon:.4g}"
            )
            lines.append(
                {
                    "answer": name,
                    "measure": _WHAT[measure.kind],
                    "mechanism": told,
                    "error": float(noise.error(0.95, integer=True)) / measure.scale,
                }
            )
    for choice in plan.choices:
        told = f"the exponential mechanism among {choice.bins}, ε = {choice.mechanism.epsilon:.4g} in each group"
        lines.append({"answer": choice.name, "measure": choice.aggregate.kind, "mechanism": told, "error": None})
    for ranked in plan.quantiles:
        off = errors(ranked.rank, ranked.bins)
        for name, share in ranked.shares.items():
            epsilon = ranked.rank.mechanism.epsilon
            told = f"the exponential mechanism among {ranked.bins}, ε = {epsilon:.4g} in each group and level"
            told += f", its rank within {off[share]:.4g} (95 %)"
            lines.append({"answer": name, "measure": "quantile", "mechanism": told, "error": None})
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
