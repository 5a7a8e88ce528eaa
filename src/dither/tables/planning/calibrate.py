"""The plan step: a question under its card, from an epsilon or from the error that is good enough; no data is read.

A question costs at least the card's ``min_epsilon``, and noise that needs a delta is chosen only where every account
has one to spend.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dither import arguments
from dither.errors import InvalidArgument, message
from dither.exact.search import bisect_floats
from dither.guarantees import ApproxDP
from dither.tables.card.accounts import pays_delta
from dither.tables.card.model import Card
from dither.tables.compile.limits import MAX_TOTAL
from dither.tables.options import ReleaseOptions, percentage
from dither.tables.planning import automatic, plan
from dither.tables.planning.estimate import expected_error, rounded_error
from dither.tables.planning.key_selection import every_group
from dither.tables.planning.plan import Plan, first
from dither.tables.query import evaluate
from dither.tables.query.tree import SIMPLE, Query

_LARGEST_EPSILON = 1e4
_MANY_GROUPS = 16


def plan_question(query: Query, card: Card, options: ReleaseOptions, *, listed_only: bool = False) -> Plan:
    """The plan of a question, checked as far as it can be without compiling it; with ``listed_only`` as before keys
    were derived from what is public."""
    max_groups, max_rows = limits_of(query, card, options)
    bias = options.bias and card.unit is not None
    bounds = (aggregate.bounds for aggregate in query.aggregates.values())
    unstated: dict[str, Fraction] = {}
    if bias or "auto" in (max_groups, max_rows, *bounds):
        private = any(keys is None for keys in plan.keys_of(query, card, options.other or listed_only))
        unstated = automatic.unstated_limits(query, max_groups, max_rows, private, bias)
    evaluate.check(query.shape, [*(group.name for group in query.groups), *query.aggregates])
    delta = plan.first(options.delta, query.delta, card.delta)
    has_delta = pays_delta(card)
    least = arguments.epsilon(card.min_epsilon, "min_epsilon")

    def at(epsilon: object) -> Plan:
        whole = _at_least(arguments.epsilon(epsilon), least)
        laplace = options.noise == "best" and (not has_delta or "max_rows" in unstated)

        def with_limits(max_groups: object, max_rows: object) -> Plan:
            return plan.make(
                automatic.with_provisional_bounds(query) if unstated else query,
                card,
                epsilon=whole * (1 - sum(unstated.values(), Fraction(0))),
                delta=delta,
                max_groups=max_groups,
                max_rows=max_rows,
                noise="laplace" if laplace else options.noise,
                consistent=options.consistent,
                other=options.other,
                intervals=options.quantile_interval,
                listed_only=listed_only,
            )

        result = with_limits(1 if max_groups == "auto" else max_groups, 1 if max_rows == "auto" else max_rows)
        if {"max_groups", "max_rows"} & set(unstated):  # whatever is chosen after the charge must not be refused then
            with_limits(1, MAX_TOTAL)
        spends_delta = isinstance(result.guarantee, ApproxDP)
        if spends_delta and not has_delta:
            raise _no_delta("Gaussian noise" if result.selection is None else "a choice of groups that are not public")
        if not unstated:
            return result
        may_spend = delta is not None and (spends_delta or (has_delta and unstated.keys() != {"bias"}))
        cost = automatic.total_cost(whole, arguments.delta(delta) if may_spend else None)
        return replace(result, guarantee=cost, automatic={name: whole * share for name, share in unstated.items()})

    epsilon = options.epsilon if options.epsilon is not None else query.epsilon
    if (epsilon is None) == (options.error is None):
        raise InvalidArgument(
            message(
                "epsilon",
                "epsilon, or the error that is good enough",
                "neither" if options.error is None else "both",
                "pass epsilon=0.5, or error=50",
            )
        )
    if options.error is not None and unstated.keys() - {"bias"}:
        raise InvalidArgument(
            message("error", "stated bounds, max_groups and max_rows", "'auto'", "state them, or pass epsilon instead")
        )
    result = at(epsilon) if options.error is None else _for_error(at, options.error, float(least))
    every_group(result.keys)
    return result


def limits_of(query: Query, card: Card, options: ReleaseOptions) -> tuple[object, object]:
    """How many groups of a person count, and how many rows in each, "auto" included; a row that is a person of its own
    is in one group."""
    if card.unit is None:
        return 1, 1
    return (
        plan.first(options.max_groups, query.max_groups, card.max_groups),
        plan.first(options.max_rows, query.max_rows, card.max_rows),
    )


def may_use_either_noise(planned: Plan, options: ReleaseOptions) -> bool:
    """Whether limits are chosen together with the noise: many groups with public keys, and a delta that is paid for.
    Normal noise is better for people who are in many groups, and nobody knows yet whether they are."""
    return (
        "max_rows" in planned.automatic
        and options.noise == "best"
        and isinstance(planned.guarantee, ApproxDP)
        and planned.selection is None
        and math.prod(len(keys) for keys in planned.keys if keys is not None) >= _MANY_GROUPS
    )


def plan_after_choices(charged: Plan, choices: automatic.Choices, options: ReleaseOptions) -> Plan:
    """The plan of a question whose limits have been chosen privately, with what is left of the epsilon charged."""
    epsilon, *delta = charged.guarantee.exact
    max_groups, max_rows = limits_of(choices.query, charged.card, options)
    return plan.make(
        choices.query,
        charged.card,
        epsilon=epsilon - sum(charged.automatic.values(), Fraction(0)),
        delta=delta[0] if delta else None,
        max_groups=first(choices.max_groups, 1 if max_groups == "auto" else max_groups),
        max_rows=first(choices.max_rows, max_rows),
        noise=("gaussian" if choices.norm == 2 else "laplace") if choices.max_rows is not None else options.noise,
        consistent=options.consistent,
        other=options.other,
        intervals=options.quantile_interval,
    )


def _at_least(epsilon: Fraction, least: Fraction) -> Fraction:
    if epsilon < least:
        expected = f"at least {float(least):g}, the least that a question may cost here"
        raise InvalidArgument(
            message("epsilon", expected, f"{float(epsilon):g}", f"pass epsilon={float(least):g} or more")
        )
    return epsilon


def _no_delta(what: str) -> InvalidArgument:
    return InvalidArgument(
        message(
            "delta",
            f"a budget with a delta, which {what} costs",
            "a budget without one",
            "list the public keys and ask for Laplace noise, or have a delta added to the budget",
        )
    )


def _for_error(at: Callable[[float], Plan], error: float | str, least: float) -> Plan:
    """The plan with the smallest epsilon for which every count and sum is within the error, 95 %."""
    first_plan = at(max(1.0, least))
    wanted = _wanted_errors(first_plan, error)

    def reaches(epsilon: float) -> bool:
        result = at(epsilon)
        if not any(aggregate.kind in SIMPLE for aggregate in result.query.aggregates.values()):
            raise InvalidArgument(
                message(
                    "error",
                    "a count, a sum or a histogram, whose error does not depend on the data",
                    "other aggregates only",
                    "pass epsilon instead",
                )
            )
        return all(width <= enough for width, enough in zip(widths(result), wanted, strict=True))

    low, high = least, max(_LARGEST_EPSILON, least)
    if not reaches(high):
        raise InvalidArgument(message("error", "a larger error", error, "this one would protect nobody"))
    if reaches(low):
        return _with_noise(at(low), error)
    high = bisect_floats(reaches, low, high, geometric=True, tolerance=1 - 1 / 1.0005, steps=60).holds
    short = float(f"{high:.4g}")
    return _with_noise(at(short if short >= least and reaches(short) else high), error)


def _wanted_errors(planned: Plan, error: float | str) -> list[float]:
    """The error that is good enough for each count, sum and histogram, in the order of :func:`widths`."""
    names = [name for name in planned.parts if planned.query.aggregates[name].kind in SIMPLE]
    if not isinstance(error, str):
        return [arguments.positive(error, "error")] * (len(names) + len(planned.counts))
    share, rows = percentage(error), planned.card.rows
    if rows is None:
        fix = "write rows = 100000 in the card, about as many as there are, or pass error=50"
        raise InvalidArgument(message("error", "a percentage of what is public before asking", "no rows", fix))
    every = every_group(planned.keys)
    if every is None:
        fix = "state the keys of the groups, or pass error=50"
        raise InvalidArgument(message("error", "a percentage, of groups that are public", "others", fix))
    in_group = share * rows / max(len(every), 1)
    result = []
    for name in names:
        kind, moments = planned.query.aggregates[name].kind, planned.parts[name][0].moments
        if kind == "people":
            fix = "pass error=50"
            raise InvalidArgument(message("error", "a percentage of rows", "an answer that counts people", fix))
        bounds = moments.bounds if moments is not None and kind == "sum" else None
        result.append(in_group * (1.0 if bounds is None else max(map(abs, bounds)) / 2))
    return result + [in_group / (len(count.aggregate.edges or ()) - 1) for count in planned.counts]


def _with_noise(planned: Plan, error: float | str) -> Plan:
    """The plan, unless its noise is nothing at all with 95 % confidence: whole numbers would be shown as they are."""
    kinds = {planned.query.aggregates[name].kind for name in planned.parts}
    counts = planned.counts or kinds & {"count", "count_value", "people"}
    if min(widths(planned)) == 0 or (counts and min(_wanted_errors(planned, error)) < 1):
        fix = "pass a larger error, for example error=50"
        raise InvalidArgument(message("error", "an error that leaves room for noise, from 1 on for counts", error, fix))
    return planned


def widths(planned: Plan, confidence: float = 0.95) -> list[float]:
    """How far each count, sum and histogram of a plan may be off."""
    result = []
    for name in planned.parts:
        if planned.query.aggregates[name].kind in SIMPLE:
            result.append(expected_error(planned, name, confidence))
    one = 1 << planned.bin_limits.bits()
    errors = [float(count.mechanism.error(confidence, integer=True)) / one for count in planned.counts]
    return result + [error if one == 1 else float(rounded_error(error)) for error in errors]


__all__ = ["limits_of", "may_use_either_noise", "plan_after_choices", "plan_question", "widths"]
