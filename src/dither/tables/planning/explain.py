"""A plan in words and numbers: what would be done, what it would cost, and what the answers leave out.

No data is read. The error bars are about the noise alone, so an answer, and a plan, also states what the
limits on one person's rows do to it (:func:`~dither.tables.planning.estimate.plan_notes`), in plain sentences, where
they apply to the question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dither.comparison import unhashable
from dither.guarantees import Guarantee
from dither.ledger.accounts import Remaining
from dither.mechanisms import Gaussian
from dither.present import markup
from dither.present.digits import two_digits
from dither.present.notes import Note, limit_words
from dither.present.text import printable
from dither.public_module import public_in
from dither.tables.compile.statements import Measure
from dither.tables.planning.automatic import BOUNDS_OF
from dither.tables.planning.estimate import SAMPLE_SIZES, error_for_size, expected_error
from dither.tables.planning.group_keys import Noise, every_group
from dither.tables.planning.plan import AggregationPlan, QuestionPlan, variance_of
from dither.tables.planning.plan_notes import forecast_notes, plan_notes, stated_limits
from dither.tables.planning.quantiles import errors
from dither.tables.query.relations import base_of, describe_relation
from dither.tables.query.tree import SIMPLE

_WHAT = {
    "rows": "the number of rows",
    "people": "the number of people",
    "distinct": "the number of different values",
    "sum": "the sum",
    "part": "the number of rows with a value",
    "product": "the sums, squares and products of the two values",
}
_PARTS = {
    0: "the numbers of rows with and without a value",
    1: "the number and the sum of the values",
    2: "the number, the sum and the squares of the values",
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
    cost: Guarantee
    groups: str
    bounding: str
    remaining: Remaining
    limitations: tuple[Note, ...] = ()
    refused: str = ""
    asked_of: str = ""
    rows_are_people: bool = False
    """Whether each row is a person of its own."""

    @property
    def left(self) -> Guarantee | None:
        """What whoever asks may still spend; None for nothing, and where it is not known."""
        return self.remaining.guarantee

    def __str__(self) -> str:
        output = [f"cost: {self.cost}; left: {self.remaining}"]
        output += [f"would be refused: {self.refused}"] if self.refused else []
        output += [self.asked_of] if self.asked_of else []
        output += [*self.groups.split("\n"), *self.bounding.split("\n")]
        for line in self.lines:
            output.append(f"{line['answer']}: {line['measure']}, by {line['mechanism']}; {line['expected']}")
        return "\n".join(map(printable, [*output, *map(str, self.limitations)]))

    def _repr_html_(self) -> str:
        """For a notebook: the cost, a table of what is measured, and what the answers leave out."""
        facts = [("cost", str(self.cost)), ("left", str(self.remaining))]
        facts += [("would be refused", self.refused)] if self.refused else []
        lines = [[line[name] for name in ("answer", "measure", "mechanism", "expected")] for line in self.lines]
        measured = markup.table(["answer", "measured", "by", "expected ±"], lines, [False] * 4)
        return markup.block(
            markup.facts(facts),
            markup.lines(
                [
                    *([self.asked_of] if self.asked_of else []),
                    *self.groups.split("\n"),
                    *self.bounding.split("\n"),
                ]
            ),
            measured,
            markup.lines([*map(str, self.limitations)]),
        )


def explain(
    plan: QuestionPlan, remaining: Remaining, more_notes: tuple[Note, ...] = (), refused: str = ""
) -> Explanation:
    """Describe a plan; ``remaining`` is what may still be spent, ``more_notes`` what else the answer would say, such as
    what limits of people do to it, and ``refused`` why it would not be answered now.

    Every line has the name of the answer, what is measured for it, by which mechanism with which noise, the error that
    is expected (None if it depends on the data), and that error in words; all in the units of the answer. Of a question
    with several private aggregations each is described, and which share of the budget it has.
    """
    parts = plan.parts
    lines = [line for part in parts for line in _lines(part, _by(part) if len(parts) > 1 else "")]
    groups, bounding = _groups(parts[0]), _bounding(parts[0])
    if len(parts) > 1:
        shares = [f"{_by(part).strip()}, for {part.guarantee}: {_groups(part)}" for part in parts]
        groups = "\n".join([f"{len(parts)} private aggregations share the budget:", *shares])
        in_words = sorted({_bounding(part) for part in parts}, key=len, reverse=True)
        bounding = "\n".join(text for i, text in enumerate(in_words) if not any(text in t for t in in_words[:i]))
    if any(part.reduced for part in parts):
        groups += "\ncounts and sums of levels add up, by least squares: of the rows whose keys are all public"
    notes = [note for part in parts for note in plan_notes(part)]
    notes += [note for part in parts for note in _sharing(part)]
    notes += forecast_notes(plan)
    every_note = tuple(dict.fromkeys([*notes, *more_notes]))
    asked_of = "; ".join(dict.fromkeys(filter(None, map(_asked_of, parts))))
    rows_are_people = all(part.card.unit is None and part.query.source is None for part in parts)
    about = (groups, bounding, remaining, every_note, refused, asked_of, rows_are_people)
    return Explanation(tuple(lines), plan.cost, *about)


def _asked_of(plan: AggregationPlan) -> str:
    """The private relation that is asked of, where it is not the table itself."""
    if plan.query.source is None:
        return ""
    return f"asked of: {describe_relation(plan.query.source, base_of(plan.card))}"


def _by(plan: AggregationPlan) -> str:
    """The groups of one of several aggregations, in brackets."""
    return f" (by {', '.join(group.name for group in plan.query.groups)})" if plan.query.groups else " (in all)"


def _lines(plan: AggregationPlan, suffix: str) -> list[dict[str, Any]]:
    """A line for each answer of one private aggregation."""
    lines: list[dict[str, Any]] = []
    limit = ["the limit"] if "max_rows" in plan.automatic else []
    of_rows = _times(limit)
    for name, parts in plan.measures_of.items():
        moments = parts[0].moments
        what = _WHAT[parts[0].kind] if moments is None or len(parts) == 1 else _PARTS[moments.degree]
        kind = plan.query.aggregates[name].kind
        simple = kind in SIMPLE
        bounds_to_choose = BOUNDS_OF + name in plan.automatic
        per_limit = _times(limit, bounds_to_choose, kind)
        error = expected_error(plan, name) if simple else None
        expected = _plus_minus(error, per_limit) if error is not None else _expected_for_sizes(plan, name, per_limit)
        in_values = parts[0].kind == "sum"  # other noise is in rows, whatever the bounds are
        mechanism = _noise(plan.measures[parts[0]], parts[0], plan) + (per_limit if in_values else of_rows)
        mechanism += f" in each of {len(parts)} parts" if len(parts) > 1 else ""
        lines.append(_line(name + suffix, what, mechanism, None if bounds_to_choose else error, expected))
    for choice in plan.choices:
        among = "keys" if choice.aggregate.kind == "mode" else "values"
        mechanism = f"the exponential mechanism among {choice.bins:,} {among}, ε = {choice.mechanism.epsilon:.4g}"
        lines.append(_line(choice.name + suffix, choice.aggregate.kind, mechanism, None, "± depends on the data"))
    one = 1 << plan.bin_limits.bits()
    for ranked in plan.quantiles:
        rank_errors = errors(ranked.rank, ranked.bins)
        for name, share in ranked.shares.items():
            epsilon = ranked.rank.mechanism.epsilon
            mechanism = f"the exponential mechanism among {ranked.bins:,} values, ε = {epsilon:.4g} in each level"
            expected = f"its rank within {two_digits(rank_errors[share] / one)} rows{of_rows} (95 %)"
            lines.append(_line(name + suffix, f"the quantile {float(share):g}", mechanism, None, expected))
    for count in plan.counts:
        error = float(count.mechanism.error(0.95, integer=True)) / one
        deviation = two_digits(math.sqrt(variance_of(count.mechanism)) / one)
        mechanism = f"Laplace noise with a standard deviation of {deviation} rows{of_rows}"
        lines.append(
            _line(count.name + suffix, "the number of rows in each bin", mechanism, error, _plus_minus(error, of_rows))
        )
    return lines


def _sharing(plan: AggregationPlan) -> list[Note]:
    """What asking for several aggregates at once does to the noise of each."""
    result = []
    several = [name for name, parts in plan.measures_of.items() if len(parts) > 1]
    added = [name for name in several if plan.query.aggregates[name].kind in ("count", "count_value")]
    others = [name for name in several if name not in added]
    if added and others:
        result.append(Note("shared_parts", {"names": added, "others": others}))
    shares = [*{*plan.measures_of.values()}, *plan.choices, *plan.counts, *plan.quantiles]
    if len(shares) > 1:
        result.append(Note("shared_epsilon"))
    return result


def _times(chosen: Sequence[str], bounds: bool = False, kind: str = "") -> str:
    """What a number is to be multiplied by: what is chosen later. It was computed for a limit of 1, and for ``bounds``
    of 0 and 1."""
    widths = {"sum": "the largest of the bounds", "var": "the squared width of the bounds"}
    factors = [*chosen, *([widths.get(kind, "the width of the bounds")] if bounds else [])]
    are = "are" if bounds or len(factors) > 1 else "is"
    return f" times {' and '.join(factors)} that {are} chosen" if factors else ""


def _groups(plan: AggregationPlan) -> str:
    """Which groups are shown."""
    every = every_group(plan.keys, plan.ties)
    if not plan.query.groups:
        return "groups: one, of all rows"
    if every is not None:
        return f"groups: {len(every)}, all public; each is shown, whether anybody is in it or not"
    assert plan.selection is not None
    shown = f"groups: private; shown from a noisy {plan.selection.threshold} people on"
    if "max_groups" in plan.automatic:
        return f"{shown} if max_groups = {plan.max_groups} is chosen, and from more for a larger one"
    return shown


def _bounding(plan: AggregationPlan) -> str:
    """How much one person counts for."""
    bounding = "each row is a person of their own"
    if plan.query.source is not None:
        bounding = "each person has one row at most"
    if plan.card.unit is not None:
        bounding = f"each person counts for at most {limit_words(**stated_limits(plan))}"
    paid = {name: epsilon for name, epsilon in plan.automatic.items() if epsilon}
    if paid:
        epsilons = ", ".join(f"{name} for ε = {float(epsilon):.3g}" for name, epsilon in paid.items())
        bounding += f"; learned privately: {epsilons}"
        exact = plan.guarantee.exact
        if (
            len(exact) > 1
            and plan.selection is None
            and not any(isinstance(n, Gaussian) for n in plan.measures.values())
        ):
            bounding += f"; δ = {float(exact[1]):g} is for normal noise, if that turns out to be better"
    return bounding


def _line(name: str, measure: str, mechanism: str, error: float | None, expected: str) -> dict[str, Any]:
    return {"answer": name, "measure": measure, "mechanism": mechanism, "error": error, "expected": expected}


def _plus_minus(error: float, times: str) -> str:
    return f"± {two_digits(error)}{times} (95 %)"


def _noise(noise: Noise, measure: Measure, plan: AggregationPlan) -> str:
    """The noise in the units of the answer: rows, people, or those of the value."""
    kind = "normal noise" if isinstance(noise, Gaussian) else f"Laplace noise (ε = {noise.epsilon:.4g})"
    deviation = two_digits(math.sqrt(variance_of(noise)) / measure.unit(plan.limits))
    units = {"people": " people", "distinct": " values", "sum": ""}.get(measure.kind, " rows")
    return f"{kind} with a standard deviation of {deviation}{units}"


def _expected_for_sizes(plan: AggregationPlan, name: str, times: str) -> str:
    """The ± of a mean, variance or deviation in groups of some sizes, for values spread evenly between the bounds."""
    texts = []
    for size in SAMPLE_SIZES:
        error = error_for_size(plan, name, size)
        if error is not None:
            texts.append(f"± {two_digits(error)}{times} with {size:,} rows in a group")
    return f"about {', '.join(texts)} (95 %)" if texts else "± depends on the data"
