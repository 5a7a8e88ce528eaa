"""Reports of local protocols: the worst pair of values, by enumeration of what a report can be.

*Designs* (randomized response, subset selection, projective geometry and Hadamard response). Every value prefers a set
of s of the K reports. It reports one of its set, uniformly, with probability p, and otherwise one of the others,
uniformly. Reports that two values both prefer, or that neither prefers, are equally likely for both. A report that only
the first prefers is likelier for it by ``(p / s) / ((1 - p) / (K - s))``, and only those add to delta. So the worst
pair of values is that with the smallest common part. Where the sets are few enough, they are enumerated, and the sizes
are those of the sets themselves; the sets of subset selection, and the hyperplanes of large spaces, are counted.

*Factors* (unary encoding and sketches). What does not depend on the value (the row, the hash function, the coordinate)
has one law for all values, and given it the rest is enumerated: two bits that differ in unary encoding, one of g hash
values, or one sign. Two values with different hashes are the worst, and delta is the mean over rows: its lower limit is
for two values that were tried, its upper limit for values that differ in all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dither.audit.proof.evidence import BITS, ONE, Evidence, Interval, exp_interval, no_noise
from dither.errors import NotPrivate
from dither.exact import Enclosure, log
from dither.local.count_mean_sketch import CountMeanSketch
from dither.local.hadamard_response import HadamardResponse
from dither.local.hadamard_sketch import HadamardCountMeanSketch
from dither.local.local_hashing import LocalHashing
from dither.local.projective_geometry import ProjectiveGeometryResponse
from dither.local.protocol import LocalProtocol
from dither.local.randomized_response import RandomizedResponse
from dither.local.sketch import Sketch
from dither.local.subset_selection import SubsetSelection
from dither.local.unary_encoding import UnaryEncoding

_ENUMERATED = 1 << 20
_TRIED = 16
_PAIR = "any two categories"


def two_levels(p: Interval, odds: Fraction, inside: Interval, outside: Interval, pair: str) -> Evidence:
    """Reports of two probabilities: one of the preferred set with probability p, one of the others otherwise.

    ``odds`` is ``(K - s) / s``. ``inside`` and ``outside`` enclose the share of the reports that one value prefers and
    the other does not, among the first one's set and among what is not in the second one's set.

    >>> half = (Fraction(1), Fraction(1))
    >>> evidence = two_levels((Fraction(3, 4), Fraction(3, 4)), Fraction(1), half, half, "two")
    >>> evidence.at(Fraction(0))
    (Fraction(1, 2), Fraction(1, 2))
    """
    if p[1] >= 1 or p[0] <= 0:
        return no_noise(pair)
    ratio = p[0] / (1 - p[0]) * odds, p[1] / (1 - p[1]) * odds
    if ratio[0] < 1:  # the set is avoided rather than preferred
        raise NotPrivate(
            "mechanism", "reports that prefer the truth", "reports that avoid it", "build the protocol anew"
        )
    scale = 1 << BITS
    loss = max(Fraction(0), Fraction(log(ratio[0], BITS)[0], scale)), Fraction(log(ratio[1], BITS)[1], scale)
    return Evidence(loss, partial(_two_level_curve, p, inside, outside), pair, "enumeration of all reports")


def _two_level_curve(p: Interval, inside: Interval, outside: Interval, epsilon: Fraction) -> Interval:
    growth = exp_interval(epsilon)
    # inside and outside are proportional, and their lower limits belong together
    low = inside[0] * p[0] - growth[1] * outside[0] * (1 - p[0])
    return low, inside[1] * p[1] - growth[0] * outside[1] * (1 - p[1])


def design(mechanism: RandomizedResponse | ProjectiveGeometryResponse | HadamardResponse) -> Evidence:
    """A report is one of K points, of which every category prefers s."""
    k, total = mechanism.category_count, mechanism.report_count
    if k * total <= _ENUMERATED:
        sets = np.zeros((k, total))
        for code in range(k):
            sets[code, mechanism.preferred(code)] = 1
        sizes = sets.sum(axis=1).astype(np.int64)
        if sizes.min() != sizes.max():
            raise NotPrivate("mechanism", "sets of one size", "sets of two", "build the protocol anew")
        size, alone = int(sizes[0]), int((sizes[0] - sets @ sets.T).max())
    else:
        # hyperplanes are translates of one another and rows of a Hadamard matrix are alike: the first few show all
        codes = range(min(k, 2 * mechanism.blocks if isinstance(mechanism, HadamardResponse) else 2))
        first = mechanism.preferred(0)
        others = [mechanism.preferred(code) for code in codes][1:]
        size, alone = first.size, max(int(np.setdiff1d(first, other).size) for other in others)
    inside, outside = Fraction(alone, size), Fraction(alone, total - size)
    return two_levels(
        _limits(mechanism, mechanism.own_probability),
        Fraction(total - size, size),
        (inside, inside),
        (outside, outside),
        _PAIR if not isinstance(mechanism, HadamardResponse) else "two categories of different blocks, if there are",
    )


def subsets(mechanism: SubsetSelection) -> Evidence:
    """Of the C(k, w) sets, C(k - 1, w - 1) hold a category, and C(k - 2, w - 1) of these do not hold another."""
    k, w = mechanism.category_count, mechanism.subset_size
    inside, outside = Fraction(k - w, k - 1), Fraction(w, k - 1)
    p = _limits(mechanism, mechanism.own_probability)
    return two_levels(p, Fraction(k - w, w), (inside, inside), (outside, outside), _PAIR)


def hashing(mechanism: LocalHashing) -> Evidence:
    """Given the hash function, one of g values; the hashes of two categories differ for a share 1 - 1/g of them."""
    g = mechanism.hash_range
    differ = 1 - Fraction(1, g)
    p = _limits(mechanism, mechanism.own_probability)
    return two_levels(p, Fraction(g - 1), (differ, differ), (differ / (g - 1), differ / (g - 1)), _PAIR)


def unary(mechanism: UnaryEncoding) -> Evidence:
    """All bits but two have the same law for both categories; the four outcomes of the two are enumerated."""
    return _two_bits(mechanism, ONE, _PAIR)


def _two_bits(mechanism: UnaryEncoding, differ: Interval, pair: str) -> Evidence:
    p, q = _limits(mechanism, mechanism.own_probability), _limits(mechanism, mechanism.other_probability)
    if p[1] >= 1 or q[0] <= 0:
        return no_noise(pair)
    laws: list[tuple[Interval, Interval]] = []
    for first, second in product((True, False), repeat=2):
        one = _times(_outcome(p, first), _outcome(q, second))
        other = _times(_outcome(q, first), _outcome(p, second))
        laws.append((one, other))
    ratios = [(one[0] / other[1], one[1] / other[0]) for one, other in laws]
    worst = max(ratio[0] for ratio in ratios), max(ratio[1] for ratio in ratios)
    scale = 1 << BITS
    loss = max(Fraction(0), Fraction(log(worst[0], BITS)[0], scale)), Fraction(log(worst[1], BITS)[1], scale)
    return Evidence(loss, partial(_enumerated_curve, laws, differ), pair, "enumeration of the two bits that differ")


def _enumerated_curve(laws: list[tuple[Interval, Interval]], differ: Interval, epsilon: Fraction) -> Interval:
    growth, zero = exp_interval(epsilon), Fraction(0)
    low = sum((max(zero, one[0] - growth[1] * other[1]) for one, other in laws), zero)
    high = sum((max(zero, one[1] - growth[0] * other[0]) for one, other in laws), zero)
    return low * differ[0], high * differ[1]


def count_mean_sketch(mechanism: CountMeanSketch) -> Evidence:
    """Given the row, unary encoding of the column."""
    return _two_bits(mechanism.encoding, _share_of_rows(mechanism), "two values with different hashes")


def hadamard_sketch(mechanism: HadamardCountMeanSketch) -> Evidence:
    """Given row and coordinate, one sign; the signs of two columns differ in half of the coordinates."""
    low, high = (share / 2 for share in _share_of_rows(mechanism))
    p = _limits(mechanism, mechanism.own_probability)
    return two_levels(p, Fraction(1), (low, high), (low, high), "two values with different hashes")


def _share_of_rows(mechanism: Sketch) -> Interval:
    """The largest share of rows in which two values have different columns: for some that are tried, and at most 1."""
    codes = mechanism.encode(list(range(_TRIED))) if mechanism.categories is None else mechanism.all_codes()[:_TRIED]
    columns = mechanism.columns(codes[:, None], np.arange(mechanism.rows))
    differ = max(int(np.count_nonzero(columns[0] != other)) for other in columns[1:])
    return Fraction(differ, mechanism.rows), Fraction(1)


def _limits(mechanism: LocalProtocol[Any], probability: Callable[[int], Enclosure]) -> Interval:
    bits = 2 * BITS + 3 * math.ceil(float(mechanism.exact_epsilon)) + 2 * 64
    low, high = probability(bits)
    return Fraction(low, 1 << bits), Fraction(high, 1 << bits)


def _outcome(probability: Interval, happens: bool) -> Interval:
    return probability if happens else (1 - probability[1], 1 - probability[0])


def _times(one: Interval, other: Interval) -> Interval:
    return one[0] * other[0], one[1] * other[1]


def local_proofs() -> dict[type, Callable[[Any], Evidence]]:
    """The proof of each protocol.

    >>> len(local_proofs())
    8
    """
    return {
        RandomizedResponse: design,
        ProjectiveGeometryResponse: design,
        HadamardResponse: design,
        SubsetSelection: subsets,
        LocalHashing: hashing,
        UnaryEncoding: unary,
        CountMeanSketch: count_mean_sketch,
        HadamardCountMeanSketch: hadamard_sketch,
    }
