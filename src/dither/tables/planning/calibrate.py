"""The plan step: a question under its card, from an epsilon or from the error that is good enough; no data is read.

A question costs at least the card's ``min_epsilon``, and noise that needs a delta is chosen only where every account
has one to spend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dither import arguments
from dither.errors import InvalidArgument, message
from dither.exact.search import bisect_floats
from dither.guarantees import ApproxDP
from dither.tables.card.accounts import pays_delta
from dither.tables.card.model import Card
from dither.tables.options import ReleaseOptions
from dither.tables.planning import automatic, plan
from dither.tables.planning.key_selection import every_group
from dither.tables.planning.plan import Plan
from dither.tables.query import evaluate
from dither.tables.query.tree import SIMPLE, Query

_LARGEST_EPSILON = 1e4


def plan_question(query: Query, card: Card, options: ReleaseOptions) -> Plan:
    """The plan of a question, checked as far as it can be without compiling it."""
    max_groups = max_groups_of(query, card, options)
    leaves_open = max_groups == "auto" or any(item.bounds == "auto" for item in query.aggregates.values())
    unstated_limits = automatic.unstated_limits(query, max_groups) if leaves_open else []
    evaluate.check(query.shape, [*(group.name for group in query.groups), *query.aggregates])
    delta = plan.first(options.delta, query.delta, card.delta)
    has_delta = pays_delta(card)
    least = arguments.epsilon(card.min_epsilon, "min_epsilon")

    def at(epsilon: object) -> Plan:
        whole = _at_least(arguments.epsilon(epsilon), least)
        result = plan.make(
            automatic.with_provisional_bounds(query) if unstated_limits else query,
            card,
            epsilon=whole * (1 - automatic.SHARE * len(unstated_limits)),
            delta=delta,
            max_groups=1 if max_groups == "auto" else max_groups,
            max_rows=options.max_rows,
            noise="laplace" if options.noise == "best" and not has_delta else options.noise,
            consistent=options.consistent,
            other=options.other,
        )
        spends_delta = isinstance(result.guarantee, ApproxDP)
        if spends_delta and not has_delta:
            raise _no_delta("Gaussian noise" if result.selection is None else "a choice of groups that are not public")
        if not unstated_limits:
            return result
        may_spend = delta is not None and (has_delta or spends_delta)
        cost = automatic.total_cost(whole, arguments.delta(delta) if may_spend else None)
        return replace(
            result, guarantee=cost, automatic=whole * automatic.SHARE, unstated_limits=tuple(unstated_limits)
        )

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
    if options.error is not None and unstated_limits:
        raise InvalidArgument(
            message("error", "stated bounds and max_groups", "'auto'", "state them, or pass epsilon instead")
        )
    if options.error is None:
        result = at(epsilon)
    else:
        result = _for_error(at, arguments.positive(options.error, "error"), float(least))
    every_group(result.keys)
    return result


def max_groups_of(query: Query, card: Card, options: ReleaseOptions) -> object:
    """How many groups of a person count, "auto" included; a row that is a person of its own is in one."""
    return 1 if card.unit is None else plan.first(options.max_groups, query.max_groups, card.max_groups)


def plan_after_choices(charged: Plan, query: Query, max_groups: object, options: ReleaseOptions) -> Plan:
    """The plan of a question whose limits have been chosen privately, with what is left of the epsilon charged."""
    epsilon, *delta = charged.guarantee.exact
    return plan.make(
        query,
        charged.card,
        epsilon=epsilon * (1 - automatic.SHARE * len(charged.unstated_limits)),
        delta=delta[0] if delta else None,
        max_groups=max_groups,
        max_rows=options.max_rows,
        noise=options.noise,
        consistent=options.consistent,
        other=options.other,
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


def _for_error(at: Callable[[float], Plan], error: float, least: float) -> Plan:
    """The plan with the smallest epsilon for which every count and sum is within the error, 95 %."""

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
        return all(width <= error for width in widths(result))

    low, high = least, max(_LARGEST_EPSILON, least)
    if not reaches(high):
        raise InvalidArgument(message("error", "a larger error", error, "this one would protect nobody"))
    if reaches(low):
        return at(low)
    high = bisect_floats(reaches, low, high, geometric=True, tolerance=1 - 1 / 1.0005, steps=60).holds
    short = float(f"{high:.4g}")
    return at(short if short >= least and reaches(short) else high)


def widths(planned: Plan, confidence: float = 0.95) -> list[float]:
    """How far each count, sum and histogram of a plan may be off."""
    result = []
    for name, parts in planned.parts.items():
        if planned.query.aggregates[name].kind in SIMPLE:
            width = float(planned.measures[parts[0]].error(confidence, integer=True))
            result.append(width / parts[0].scale)
    return result + [float(count.mechanism.error(confidence, integer=True)) for count in planned.counts]


__all__ = ["max_groups_of", "plan_after_choices", "plan_question", "widths"]
