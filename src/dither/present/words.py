"""What an answer promises and what it does not, in plain words."""

from __future__ import annotations

import math

from dither.guarantees import ZCDP, ApproxDP, Guarantee
from dither.present.notes import kinds_of
from dither.tables.answer import Answer, is_total


def factor(cost: Guarantee) -> str | None:
    """Return the factor e^ε by which one person's data may change any probability, as text; None if there is no ε,
    or it is huge.

    >>> from dither.guarantees import PureDP
    >>> factor(PureDP(0.5)), factor(ApproxDP(1, 1e-7)), factor(ZCDP(0.1)), factor(PureDP(30))
    ('1.65', '2.72', None, None)
    """
    epsilon = math.inf if isinstance(cost, ZCDP) else float(cost.exact[0])
    if epsilon > 20:
        return None
    return f"{math.ceil(math.exp(epsilon) * 100 - 1e-9) / 100:.2f}"


def likelihood(cost: Guarantee) -> str:
    """Describe how much one person's data may change the probability of any conclusion.

    >>> likelihood(ApproxDP(1, 1e-7))
    'be at most 2.72 times as likely, or as unlikely, plus a probability of at most δ'
    """
    times = factor(cost)
    change = f"be at most {times} times as likely, or as unlikely" if times else "be nearly as likely"
    return f"{change}, plus a probability of at most δ" if isinstance(cost, ApproxDP) else change


def guaranteed(answer: Answer, rows_are_people: bool) -> list[str]:
    """Return the statements that hold for every reader of an answer, whatever else they know."""
    who = "row" if rows_are_people else "person"
    whose = "that one row" if rows_are_people else "all the rows of one person"
    change = likelihood(answer.cost)
    result = [
        f"Add or remove {whose}: every conclusion drawn from this page would {change}. This holds against "
        "anybody, whatever they know already, for the cost stated above.",
        "Further answers about the same people add up. The ledger keeps the sum, and refuses what would exceed the "
        "budget.",
        "The cost was written down before the answer was computed, and the answer before anybody saw it. Asking the "
        "same again shows the same answer, and costs nothing.",
        _what_errors_mean(answer),
    ]
    if "small_groups" in kinds_of(answer.notes):
        result.append(f"A group is shown only if its noisy number of {who}s is large enough that no {who} stands out.")
    return result


def _what_errors_mean(answer: Answer) -> str:
    """Explain the ± of an answer: what it includes, and what it is a distance to."""
    if answer.interval == "population":
        return (
            "The errors (± population) are about the noise and about sampling: with 95 % confidence each value is that "
            "close to what it is in the population that the rows were drawn from, with values beyond the public bounds "
            "counted as the bound and the rows of each person counted up to the limits."
        )
    return (
        "The errors (±) are about the noise: with 95 % confidence each value is that close to what would be computed "
        "without noise from the same rows, with values beyond the public bounds counted as the bound and the rows of "
        "each person counted up to the limits."
    )


def not_guaranteed(answer: Answer) -> list[str]:
    """Return statements that correct likely misunderstandings of an answer."""
    result = [
        "A single answer may be off by more than its ±: about one in twenty is.",
        _what_limits_do(answer),
        "What is true of people in general is not hidden. That smoking is harmful can be learned, and holds for a "
        "smoker whether in the table or not.",
        "Bounds, keys and limits are taken to be public. If they were read off the data, the promise does not cover "
        "what they give away.",
        "The promise is about the units the card names. Relatives, households and groups of k people are protected k "
        "times less.",
    ]
    if any(error is None for errors in answer.errors.values() for error in errors):
        result.insert(1, "Values without a ± were chosen among many; how far off they are depends on the data.")
    return result


def _what_limits_do(answer: Answer) -> str:
    """Explain that the ± does not include what bounds and limits leave out, and whether that was estimated."""
    bounds = "What the bounds cut off is not in the ±."
    if answer.clipped_share:
        where = "stands beside each count" if is_total(answer) else "is named in the notes, for all groups together"
        return (
            f"{bounds} Nor is what the limits on one person's rows leave out: how much that is, or is at least, was "
            f"estimated from a noisy histogram, and {where}."
        )
    if "undercount_unknown" in kinds_of(answer.notes):
        return (
            f"{bounds} Nor is what the limits on one person's rows leave out: how much that is was not measured. Where "
            "the lower bound is 0, it only makes counts and sums smaller."
        )
    return f"{bounds} Nor is what limits on one person's rows leave out, where the notes name such limits."


def promise(cost: Guarantee, whole: str) -> str:
    """Describe the guarantee of a release and of everything computed from it; ``whole`` is the noun for it.

    >>> promise(ApproxDP(1, 1e-7), "it")[:75]
    'add or remove all the rows of one person, and every conclusion drawn from i'
    """
    return (
        f"add or remove all the rows of one person, and every conclusion drawn from {whole} would {likelihood(cost)}. "
        "This holds against anybody, whatever they know already."
    )
