"""Local reports about numbers, sets and unlisted words: the worst pair of values.

*Windows* (means and distributions). Every place prefers w of the K = d + w - 1 numbers, and the two places that are
farthest apart have the fewest in common: ``max(0, w - d + 1)``. It is a design
(:func:`dither.audit.proof.local_reports.two_levels`). Which kind of report a mean gets is drawn by a coin without
regard to the value and can be seen from the report: the curve is the mean of both curves, the loss the larger one.

*Sets*. A report of a set is that of one of its items, drawn at random, or of the blank: a mixture of reports of subset
selection, whose curve is convex in both laws: no worse than two single items.

*Unlisted words*. A person answers in one round. Every round is projective geometry response, or subset selection,
over a public list; what a round asks depends on other people's reports. All have the same loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from dither.audit.proof.evidence import BITS, Evidence, Interval, worst_of
from dither.audit.proof.local_reports import design, subsets, two_levels
from dither.local.distribution import Distribution
from dither.local.heavy_hitters import HeavyHitters
from dither.local.mean import Mean
from dither.local.projective_geometry import ProjectiveGeometryResponse
from dither.local.sets import PaddedSets
from dither.local.subset_selection import SubsetSelection
from dither.local.windows import Windows

_ENDS = "the two ends of the bounds"


def windows_evidence(windows: Windows) -> Evidence:
    """The design of windows that move.

    >>> windows_evidence(Windows(2, 1, Fraction(1))).at(Fraction(1))[1] < Fraction(1, 1 << 200)
    True
    """
    bits = 2 * BITS + 3 * math.ceil(float(windows.epsilon)) + 2 * 64
    low, high = windows.own_probability(bits)
    p = Fraction(low, 1 << bits), Fraction(high, 1 << bits)
    others = windows.total - windows.width
    alone = min(windows.width, others)
    inside, outside = Fraction(alone, windows.width), Fraction(alone, others)
    return two_levels(p, Fraction(others, windows.width), (inside, inside), (outside, outside), _ENDS)


def mean_evidence(mechanism: Mean) -> Evidence:
    """One kind of report or the other, by a coin."""
    rate = mechanism.window_rate
    kinds = [(windows_evidence(kind), share) for kind, share in zip(mechanism.windows, (1 - rate, rate), strict=True)]
    used = tuple((evidence, share) for evidence, share in kinds if share)
    worst = worst_of(*(evidence for evidence, _ in used))
    return Evidence(worst.loss, partial(_mixed_curve, used), _ENDS, worst.method)


def _mixed_curve(parts: tuple[tuple[Evidence, Fraction], ...], epsilon: Fraction) -> Interval:
    values = [(evidence.at(epsilon), share) for evidence, share in parts]
    low = sum((ends[0] * share for ends, share in values), Fraction(0))
    return low, sum((ends[1] * share for ends, share in values), Fraction(0))


def distribution_evidence(mechanism: Distribution) -> Evidence:
    """The design of its windows."""
    return windows_evidence(mechanism.windows)


def sets_evidence(mechanism: PaddedSets) -> Evidence:
    """At most that of two single items; attained by an item alone where a set has one place."""
    base = subsets(mechanism.base)
    exact = mechanism.max_items == 1
    return Evidence(base.loss, partial(_at_most, base, exact), "two sets without a common item", "convexity")


def words_evidence(mechanism: HeavyHitters) -> Evidence:
    """The largest and the smallest list that a round may have."""
    heads = 256 ** (mechanism.rounds[0] - 1), mechanism.candidates, 1
    rounds = [design(ProjectiveGeometryResponse(count * 256 + 1, mechanism.epsilon)) for count in heads]
    rounds += [subsets(SubsetSelection(count, mechanism.epsilon)) for count in (2, mechanism.candidates + 1)]
    worst = worst_of(*rounds)
    return Evidence(worst.loss, partial(_at_most, worst, False), "two words", "enumeration of all reports of a round")


def _at_most(base: Evidence, exact: bool, epsilon: Fraction) -> Interval:
    low, high = base.at(epsilon)
    return (low, high) if exact else (Fraction(0), Fraction(1))


def number_proofs() -> dict[type, Callable[[Any], Evidence]]:
    """The proof of each.

    >>> len(number_proofs())
    4
    """
    return {
        Mean: mean_evidence,
        Distribution: distribution_evidence,
        PaddedSets: sets_evidence,
        HeavyHitters: words_evidence,
    }
