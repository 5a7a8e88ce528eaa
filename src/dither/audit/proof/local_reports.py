"""Reports of local protocols and of a shuffler: the worst pair of values, by enumeration of what a report can be.

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

*Windows* (means and distributions). Every grid point prefers w of the K = d + w - 1 numbers, and the first and the last
grid point have the fewest in common: ``max(0, w - d + 1)``. It is a design (:func:`two_levels`). Which kind of
report a mean gets is drawn by a coin without regard to the value and can be seen from the report: the curve is the mean
of both curves, the loss the larger one.

*Sets*. A report of a set is that of one of its items, drawn at random, or of the blank: a mixture of reports of subset
selection, whose curve is convex in both laws: no worse than two single items.

*Unlisted words*. A person answers in one round. Every round is projective geometry response, or subset selection,
over a public list; what a round asks depends on other people's reports. All have the same loss.

Shuffled reports
----------------
The curve of the clones is enumerated, and an attack shows how much of it is real.

*From above.* Of n - 1 other reports, C ~ Bin(n - 1, r) are clones (:mod:`dither.accounting.shuffling` has the proof in
its first lines; r = t = exp(-epsilon0), or 2 t / (1 + t) where reports are distinct). Given C, the number a of reports
that came from Q0 has the laws

    P(a) = A B(a - 1) + D B(a),   Q(a) = D B(a - 1) + A B(a),   B = Bin(C, 1/2),   A = w / (1 + t),  D = t A,

where w is the probability of C. As ``B(a - 1) / B(a) = a / (C + 1 - a)`` grows with a, the set with the largest
``P - e^epsilon Q`` is one of ``a >= j``, and with the tail T of B

    delta = sum over C of the largest over j of (A - e^epsilon D) T(j - 1) + (D - e^epsilon A) T(j).

*From below.* In randomized response over k >= 3 categories, let all others have a third one. Of their reports C are one
of the two categories of the person, with r = 2 / (e^epsilon0 + k - 1), and the person's own is with probability ``h =
(e^epsilon0 + 1) / (e^epsilon0 + k - 1)``. For an attacker who sees these two numbers only, the formula above is exact
with ``A = h w(C) / (1 + t) + (1 - h) w(C + 1) / 2`` and ``D = h t w(C) / (1 + t) + (1 - h) w(C + 1) / 2``. A bound for
all randomizers is not below that for k = 3; reports of one bit have no such third value, and no lower bound here. The
accountant knows a smaller curve of k-ary response, by its blanket; it lies between the two.

All numbers are integers in units of 2^-512, rounded outward; nothing of :mod:`dither.accounting.shuffling` is used.
What lies outside of a window around the mean, at most exp(-100) on either side by Bernstein's inequality, counts in
full from above and not at all from below. If there are so many people that the window would be too wide, fewer are
counted, which is worse, and there is no lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dither.accounting import Shuffled
from dither.audit.proof.certificate import BITS, ONE, Evidence, Interval, exp_interval, no_noise, worst_of
from dither.errors import NotPrivate
from dither.exact import Enclosure, log
from dither.local.finite_fields import LocalHashing, ProjectiveGeometryResponse
from dither.local.hadamard_response import HadamardResponse
from dither.local.heavy_hitters import HeavyHitters
from dither.local.protocol import LocalProtocol
from dither.local.sets import PaddedSets
from dither.local.sketch import CountMeanSketch, HadamardCountMeanSketch, Sketch
from dither.local.subset_selection import RandomizedResponse, SubsetSelection, UnaryEncoding
from dither.local.windows import Distribution, Mean, Windows

_ENUMERATED = 1 << 20
_TRIED = 16
_PAIR = "any two categories"


def two_levels(p: Interval, odds: Fraction, inside: Interval, outside: Interval, pair: str) -> Evidence:
    """Return the evidence of a protocol that reports one of s preferred of K reports with probability p.

    A preferred report has probability ``p / s`` and any other ``(1 - p) / (K - s)``, so the largest privacy loss is
    ``ln(p / (1 - p) (K - s) / s)``, and ``delta(epsilon) = inside p - e^epsilon outside (1 - p)``, attained by the
    reports that the first value prefers and the second does not.

    Parameters
    ----------
    p
        The probability of the preferred set, enclosed.
    odds
        ``(K - s) / s``.
    inside, outside
        Bounds on the number of reports that one value prefers and the other does not, divided by s, and by K - s.
    pair
        A description of the worst pair of values.
    """
    if p[1] >= 1 or p[0] <= 0:
        return no_noise(pair)
    ratio = p[0] / (1 - p[0]) * odds, p[1] / (1 - p[1]) * odds
    if ratio[1] < 1:  # the set is avoided rather than preferred
        raise NotPrivate(
            "mechanism", "reports that prefer the truth", "reports that avoid it", "build the protocol anew"
        )
    scale = 1 << BITS
    loss = max(Fraction(0), Fraction(log(ratio[0], BITS)[0], scale)), Fraction(log(ratio[1], BITS)[1], scale)
    return Evidence(loss, partial(_two_level_curve, p, inside, outside), pair, "enumeration of all reports")


def _two_level_curve(p: Interval, inside: Interval, outside: Interval, epsilon: Fraction) -> Interval:
    """Enclose delta(epsilon), attained by the reports that only the first value prefers.

    Their probability is ``inside * p`` for the first value and ``outside * (1 - p)`` for the second; the parameters are
    those of :func:`two_levels`.
    """
    growth = exp_interval(epsilon)
    # inside and outside are proportional, and their lower limits belong together
    low = inside[0] * p[0] - growth[1] * outside[0] * (1 - p[0])
    return low, inside[1] * p[1] - growth[0] * outside[1] * (1 - p[1])


def design(mechanism: RandomizedResponse | ProjectiveGeometryResponse | HadamardResponse) -> Evidence:
    """Return the evidence of a protocol that reports one of K points, of which every category prefers s."""
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
    """Return the evidence of subset selection.

    Of the C(k, w) sets, C(k - 1, w - 1) contain a category, and C(k - 2, w - 1) of these do not contain another.
    """
    k, w = mechanism.category_count, mechanism.subset_size
    inside, outside = Fraction(k - w, k - 1), Fraction(w, k - 1)
    p = _limits(mechanism, mechanism.own_probability)
    return two_levels(p, Fraction(k - w, w), (inside, inside), (outside, outside), _PAIR)


def hashing(mechanism: LocalHashing) -> Evidence:
    """Return the evidence of local hashing, which reports a hash function and one of its g values.

    The hashes of two categories differ for a share 1 - 1/g of the functions.
    """
    g = mechanism.hash_range
    differ = 1 - Fraction(1, g)
    p = _limits(mechanism, mechanism.own_probability)
    return two_levels(p, Fraction(g - 1), (differ, differ), (differ / (g - 1), differ / (g - 1)), _PAIR)


def unary(mechanism: UnaryEncoding) -> Evidence:
    """Return the evidence of unary encoding.

    All bits but two have one law for both categories; the four outcomes of the two are enumerated.
    """
    return _two_bits(mechanism, ONE, _PAIR)


def _two_bits(mechanism: UnaryEncoding, differ: Interval, pair: str) -> Evidence:
    """Return the evidence of unary encoding where the two bits of two values differ with probability ``differ``."""
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
    """Return delta(epsilon) as the sum of ``P - e^epsilon Q`` over the outcomes where it is positive."""
    growth, zero = exp_interval(epsilon), Fraction(0)
    low = sum((max(zero, one[0] - growth[1] * other[1]) for one, other in laws), zero)
    high = sum((max(zero, one[1] - growth[0] * other[0]) for one, other in laws), zero)
    return low * differ[0], high * differ[1]


def count_mean_sketch(mechanism: CountMeanSketch) -> Evidence:
    """Return the evidence of the count mean sketch, which is unary encoding of the column once the row is drawn.

    The row is drawn without regard to the value. Two values differ only in the rows where their columns differ.
    """
    return _two_bits(mechanism.encoding, _share_of_rows(mechanism), "two values with different hashes")


def hadamard_sketch(mechanism: HadamardCountMeanSketch) -> Evidence:
    """Return the evidence of the Hadamard sketch, which is randomized response of one sign once row and coordinate
    are drawn.

    Both are drawn without regard to the value. The signs of two columns differ in half of the coordinates.
    """
    low, high = (share / 2 for share in _share_of_rows(mechanism))
    p = _limits(mechanism, mechanism.own_probability)
    return two_levels(p, Fraction(1), (low, high), (low, high), "two values with different hashes")


def _share_of_rows(mechanism: Sketch) -> Interval:
    """Enclose the largest share of rows in which the columns of two values differ.

    The lower end is attained by one of 16 values that are tried; the upper end is 1.
    """
    codes = mechanism.encode(list(range(_TRIED))) if mechanism.categories is None else mechanism.all_codes()[:_TRIED]
    columns = mechanism.columns(codes[:, None], np.arange(mechanism.rows))
    differ = max(int(np.count_nonzero(columns[0] != other)) for other in columns[1:])
    return Fraction(differ, mechanism.rows), Fraction(1)


def _limits(mechanism: LocalProtocol[Any], probability: Callable[[int], Enclosure]) -> Interval:
    """Enclose a probability that a protocol samples, with bits that suffice for its epsilon."""
    bits = 2 * BITS + 3 * math.ceil(float(mechanism.exact_epsilon)) + 2 * 64
    low, high = probability(bits)
    return Fraction(low, 1 << bits), Fraction(high, 1 << bits)


def _outcome(probability: Interval, happens: bool) -> Interval:
    """Return the probability that a bit has the value ``happens``."""
    return probability if happens else (1 - probability[1], 1 - probability[0])


def _times(one: Interval, other: Interval) -> Interval:
    """Multiply two enclosed probabilities."""
    return one[0] * other[0], one[1] * other[1]


_ENDS = "the two ends of the bounds"


def windows_evidence(windows: Windows) -> Evidence:
    """Return the evidence of reports from a moving window, as the design that it is."""
    bits = 2 * BITS + 3 * math.ceil(float(windows.epsilon)) + 2 * 64
    low, high = windows.own_probability(bits)
    p = Fraction(low, 1 << bits), Fraction(high, 1 << bits)
    others = windows.total - windows.width
    alone = min(windows.width, others)
    inside, outside = Fraction(alone, windows.width), Fraction(alone, others)
    return two_levels(p, Fraction(others, windows.width), (inside, inside), (outside, outside), _ENDS)


def mean_evidence(mechanism: Mean) -> Evidence:
    """Return the evidence of reports about a number: one bit or a window, drawn without regard to the number.

    Which kind a report is can be seen from it, so the loss is the larger of both kinds and the curve their average,
    weighted by how often each is drawn.
    """
    rate = mechanism.window_rate
    kinds = [(windows_evidence(kind), share) for kind, share in zip(mechanism.windows, (1 - rate, rate), strict=True)]
    used = tuple((evidence, share) for evidence, share in kinds if share)
    worst = worst_of(*(evidence for evidence, _ in used))
    return Evidence(worst.loss, partial(_mixed_curve, used), _ENDS, worst.method)


def _mixed_curve(parts: tuple[tuple[Evidence, Fraction], ...], epsilon: Fraction) -> Interval:
    """Return the average of the curves of several kinds of report, weighted by their shares."""
    values = [(evidence.at(epsilon), share) for evidence, share in parts]
    low = sum((ends[0] * share for ends, share in values), Fraction(0))
    return low, sum((ends[1] * share for ends, share in values), Fraction(0))


def distribution_evidence(mechanism: Distribution) -> Evidence:
    """Return the evidence of reports of a bin, which are those of its windows."""
    return windows_evidence(mechanism.windows)


def sets_evidence(mechanism: PaddedSets) -> Evidence:
    """Return the evidence of reports of a set: at most that of two single items, attained where a set has one item."""
    base = subsets(mechanism.base)
    exact = mechanism.max_items == 1
    return Evidence(base.loss, partial(_at_most, base, exact), "two sets without a common item", "convexity")


def words_evidence(mechanism: HeavyHitters) -> Evidence:
    """Return the evidence of heavy hitters: the worst over the largest and the smallest list that a round may have."""
    heads = 256 ** (mechanism.rounds[0] - 1), mechanism.candidates, 1
    rounds = [design(ProjectiveGeometryResponse(count * 256 + 1, mechanism.epsilon)) for count in heads]
    rounds += [subsets(SubsetSelection(count, mechanism.epsilon)) for count in (2, mechanism.candidates + 1)]
    worst = worst_of(*rounds)
    return Evidence(worst.loss, partial(_at_most, worst, False), "two words", "enumeration of all reports of a round")


def _at_most(base: Evidence, exact: bool, epsilon: Fraction) -> Interval:
    """Return a curve as an upper bound, with a lower bound of 0 unless it is attained."""
    low, high = base.at(epsilon)
    return (low, high) if exact else (Fraction(0), Fraction(1))


_BITS = 512  # masses at the end of a window are near 2^-260, and n times their relative error has to be small
_UNIT = 1 << _BITS
_EXPONENT = 100
_OUTSIDE = _UNIT >> 144  # exp(-100) is below 2^-144
_MAX_MEAN = 1 << 22


def shuffled_evidence(event: Shuffled) -> Evidence:
    """Return the evidence of shuffled reports: the pure loss, which k-ary response attains, and the curve of the
    clones."""
    return Evidence(
        (event.epsilon, event.epsilon),
        partial(_curve, event.epsilon, event.n, event.response_categories, event.distinct),
        "one value replaced by another, all other people having a third one",
        "enumeration of the number of clones",
    )


def _curve(epsilon0: Fraction, n: int, categories: int | None, distinct: bool, epsilon: Fraction) -> Interval:
    """Enclose delta(epsilon) of n shuffled reports, each ``epsilon0``-DP on its own.

    The upper end is the bound by clones, the lower end the attack of the module's introduction, which needs k-ary
    randomized response with k >= 3 categories. ``distinct`` says that reports are of k-ary randomized response with
    ``categories`` values (None: unknown), which have more clones; otherwise any randomizer is bounded, of which that
    with three categories is one.
    """
    t = exp_interval(-epsilon0, 2 * _BITS)
    rate = (2 * t[0] / (1 + t[0]), 2 * t[1] / (1 + t[1])) if distinct else t
    high = clones(t, rate, (Fraction(1), Fraction(1)), n, epsilon)[1]
    k = categories if distinct else 3
    if k is None or k < 3:
        return Fraction(0), high
    # in terms of t: 2 / (1/t + k - 1) and (1/t + 1) / (1/t + k - 1), which grow and fall with t
    seen = 2 * t[0] / (1 + (k - 1) * t[0]), 2 * t[1] / (1 + (k - 1) * t[1])
    own = (1 + t[1]) / (1 + (k - 1) * t[1]), (1 + t[0]) / (1 + (k - 1) * t[0])
    return clones(t, seen, own, n, epsilon)[0], high


def clones(t: Interval, rate: Interval, own: Interval, n: int, epsilon: Fraction) -> Interval:
    """Enclose delta(epsilon) where each of n - 1 other reports is a clone with probability ``rate``.

    The person's own report is one of the two categories of the clones with probability ``own``, and t = exp(-epsilon0).
    It is the sum over C of the module, ``gain T(j - 1) - cost T(j)`` for the best j; ``one`` and ``other`` are its A
    and D, ``gain = A - e^epsilon D`` and ``cost = e^epsilon A - D``.
    """
    others, complete = n - 1, True
    if others * rate[1] > _MAX_MEAN:
        others, complete = int(_MAX_MEAN / rate[1]), False
    first, weights = _binomial(others, rate)
    growth = exp_interval(epsilon, 2 * _BITS)
    alone = _scaled((own[0] / (1 + t[1]), own[1] / (1 + t[0])))
    shared = _scaled((own[0] * t[0] / (1 + t[0]), own[1] * t[1] / (1 + t[1])))
    rest = _scaled(((1 - own[1]) / 2, (1 - own[0]) / 2))
    e = _scaled(growth)
    tail = _HalfTail(first)
    low = high = 0
    for index, weight in enumerate(weights):
        tail.advance(first + index)
        after = weights[index + 1] if index + 1 < len(weights) else (0, _OUTSIDE)
        one = _add(_product(alone, weight), _product(rest, after))
        other = _add(_product(shared, weight), _product(rest, after))
        gain, cost = _subtract(one, _product(e, other)), _subtract(_product(e, one), other)
        if gain[1] <= 0:
            continue
        count, best = first + index + 1, (0, gain[1])
        if gain[0] > 0:
            # the best j is the first above (C + 1) cost / (gain + cost)
            start = count * cost[0] // (gain[1] + cost[0]) + 1
            end = min(count * cost[1] // (gain[0] + cost[1]) + 1, count)
            values = [
                _subtract(_product(gain, before), _product(cost, at))
                for before, at in map(tail.at, range(start, end + 1))
            ]
            best = max(0, *(value[0] for value in values)), max(0, *(value[1] for value in values))
        low, high = low + best[0], high + best[1]
    return Fraction(low if complete else 0, _UNIT), Fraction(min(high + 2 * _OUTSIDE, _UNIT), _UNIT)


class _HalfTail:
    """Enclosures of the tail ``T(i) = P(B >= i)`` of B = Bin(C, 1/2), in units of 2^-512.

    The present C and i are changed in steps of one, each of which costs a multiplication and an addition.
    """

    def __init__(self, count: int) -> None:
        """Compute the tail of Bin(count, 1/2) at its middle from the masses of a window.

        ``tail`` and ``mass`` are pairs (lower, upper) of whole numbers in units of 2^-512. What lies above the window
        has probability at most ``_OUTSIDE``, and is added to the upper end.
        """
        self.count, self.i = count, count // 2
        first, masses = _binomial(count, (Fraction(1, 2), Fraction(1, 2)))
        above = masses[self.i - first :]
        self.tail = sum(low for low, _ in above), sum(high for _, high in above) + _OUTSIDE  # T(i)
        self.mass = above[0]  # B(i)

    def advance(self, count: int) -> None:
        """Raise C to ``count``: in each step T(i) grows by B(i - 1) / 2, and B(i) by the factor (C + 1) / (2 (C + 1 -
        i))."""
        while self.count < count:
            self.tail = _add(self.tail, _ratio(self.mass, self.i, 2 * (self.count - self.i + 1)))
            self.count += 1
            self.mass = _ratio(self.mass, self.count, 2 * (self.count - self.i))

    def at(self, j: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return enclosures of ``P(B >= j - 1)`` and ``P(B >= j)`` in units of 2^-512, for j from 1 to C + 1.

        The index i is moved to j - 1 step by step: T(i + 1) = T(i) - B(i), and B(i + 1) = B(i) (C - i) / (i + 1).
        """
        while self.i < j - 1:
            self.tail = _subtract(self.tail, self.mass)
            self.mass = _ratio(self.mass, self.count - self.i, self.i + 1)
            self.i += 1
        while self.i > j - 1:
            self.mass = _ratio(self.mass, self.i, self.count - self.i + 1)
            self.tail = _add(self.tail, self.mass)
            self.i -= 1
        return _positive(self.tail), _positive(_subtract(self.tail, self.mass))


def _binomial(count: int, rate: Interval) -> tuple[int, list[tuple[int, int]]]:
    """Enclose the masses of Bin(count, rate) in a window around its mode; ``rate`` is an interval.

    Returns the first value of the window, and for each value in it the pair (lower, upper) of whole numbers in units of
    2^-512. By Bernstein's inequality the probability outside is at most exp(-100) on either side. The masses are
    computed relative to that of the mode, from ratios of neighboring ones, and divided by their sum.
    """
    mean = float(count * rate[1])
    width = math.ceil(math.sqrt(2 * mean * _EXPONENT) + 2 * _EXPONENT / 3) + 3
    mode = min(count, int((count + 1) * rate[0]))
    low, high = max(0, mode - width), min(count, mode + width)
    odds = _scaled((rate[0] / (1 - rate[0]), rate[1] / (1 - rate[1])))
    up, down = [(_UNIT, _UNIT)], [(_UNIT, _UNIT)]
    for k in range(mode, high):
        up.append(_ratio(_product(up[-1], odds), count - k, k + 1))
    inverse = _UNIT * _UNIT // odds[1], -(-_UNIT * _UNIT // max(odds[0], 1))
    for k in range(mode, low, -1):
        down.append(_ratio(_product(down[-1], inverse), k, count - k + 1))
    masses = down[:0:-1] + up
    least, most = sum(mass[0] for mass in masses), sum(mass[1] for mass in masses)
    inside = _UNIT - 2 * _OUTSIDE
    return low, [(one[0] * inside // most, -(-one[1] * _UNIT // least)) for one in masses]


def _scaled(interval: Interval) -> tuple[int, int]:
    """Enclose an interval of rationals in integers, in units of 2^-512."""
    low, high = interval
    return low.numerator * _UNIT // low.denominator, -(-high.numerator * _UNIT // high.denominator)


def _add(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Add two intervals."""
    return one[0] + other[0], one[1] + other[1]


def _subtract(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Subtract one interval from another."""
    return one[0] - other[1], one[1] - other[0]


def _positive(interval: tuple[int, int]) -> tuple[int, int]:
    """Raise the ends of an interval to at least 0."""
    return max(interval[0], 0), max(interval[1], 0)


def _product(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Return the product of two intervals of which neither has a negative end."""
    return one[0] * other[0] >> _BITS, -(-one[1] * other[1] >> _BITS)


def _ratio(interval: tuple[int, int], numerator: int, denominator: int) -> tuple[int, int]:
    """Multiply an interval by a ratio of whole numbers, rounded outward."""
    return interval[0] * numerator // denominator, -(-interval[1] * numerator // denominator)
