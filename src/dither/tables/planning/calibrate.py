"""The plan of a question under its card: from an epsilon, or from the error that is good enough; no data is read.

A question costs at least the card's ``min_epsilon``, and noise that needs a delta is chosen only where every account
has one to spend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from dither import arguments
from dither.errors import InvalidArgument, message
from dither.exact.search import bisect_floats
from dither.guarantees import ApproxDP
from dither.tables.card.accounts import pays_delta
from dither.tables.card.model import Card
from dither.tables.planning import automatic, plan
from dither.tables.planning.groups import every_group
from dither.tables.planning.plan import Plan
from dither.tables.query import evaluate
from dither.tables.query.tree import SIMPLE, Query

_LARGEST = 1e4


def make(
    query: Query,
    card: Card,
    epsilon: float | None,
    *,
    error: float | None,
    delta: float | None,
    max_groups: object,
    max_rows: int | None,
    noise: Literal["best", "laplace", "gaussian"],
    consistent: bool,
    other: bool,
) -> Plan:
    """The plan, checked as far as it can be without an engine."""
    choices = automatic.wanted(query, max_groups)
    evaluate.check(query.shape, [*(group.name for group in query.groups), *query.aggregates])
    chance = plan.first(delta, query.delta, card.delta)
    has_delta = pays_delta(card)
    least = arguments.epsilon(card.min_epsilon, "min_epsilon")

    def at(loss: object) -> Plan:
        whole = _at_least(arguments.epsilon(loss), least)
        result = plan.make(
            automatic.provisional(query),
            card,
            epsilon=whole * (1 - automatic.SHARE * len(choices)),
            delta=chance,
            max_groups=1 if max_groups == "auto" else max_groups,
            max_rows=max_rows,
            noise="laplace" if noise == "best" and not has_delta else noise,
            consistent=consistent,
            other=other,
        )
        spends_delta = isinstance(result.guarantee, ApproxDP)
        if spends_delta and not has_delta:
            raise _no_delta("Gaussian noise" if result.selection is None else "a choice of groups that are not public")
        if not choices:
            return result
        may_spend = chance is not None and (has_delta or spends_delta)
        cost = automatic.total(whole, arguments.delta(chance) if may_spend else None)
        return replace(result, guarantee=cost, automatic=whole * automatic.SHARE)

    given = epsilon if epsilon is not None else query.epsilon
    if (given is None) == (error is None):
        raise InvalidArgument(
            message(
                "epsilon",
                "epsilon, or the error that is good enough",
                "both" if error is not None else "neither",
                "pass epsilon=0.5, or error=50",
            )
        )
    if error is not None and choices:
        raise InvalidArgument(
            message("error", "stated bounds and max_groups", "'auto'", "state them, or pass epsilon instead")
        )
    result = at(given) if error is None else _for_error(at, arguments.positive(error, "error"), float(least))
    every_group(result)
    plan.check(result)
    return result


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


def _for_error(at: Callable[[float], Plan], wanted: float, least: float) -> Plan:
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
        return all(width <= wanted for width in widths(result))

    low, high = least, max(_LARGEST, least)
    if not reaches(high):
        raise InvalidArgument(message("error", "a larger error", wanted, "this one would protect nobody"))
    if reaches(low):
        return at(low)
    high = bisect_floats(reaches, low, high, geometric=True, tolerance=0.0005, steps=60).holds
    short = float(f"{high:.4g}")
    return at(short if short >= least and reaches(short) else high)


def widths(made: Plan, confidence: float = 0.95) -> list[float]:
    """How far each count, sum and histogram of a plan may be off."""
    result = []
    for name, parts in made.parts.items():
        if made.query.aggregates[name].kind in SIMPLE:
            width = float(made.measures[parts[0]].error(confidence, integer=True))
            result.append(width / parts[0].scale)
    return result + [float(count.mechanism.error(confidence, integer=True)) for count in made.counts]


__all__ = ["make", "widths"]
