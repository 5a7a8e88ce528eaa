"""Series over time: how far the fresh noise behind a whole transcript moves, for the worst pair of histories.

*Lower bound.* The filter is run as it is, in whole numbers: the fresh noise behind a transcript of zeros, once with no
values and once with values that change as much as the contract allows in the tightest pattern of steps. Their
difference is a shift that a pair of neighboring histories attains.

*Upper bound.* The coefficients of the filter are expanded anew, with every product rounded up, and the norm of the sum
of a person's columns is taken for the tightest pattern (the worst one: :mod:`dither.stream.filters`); the bound on the
rounding is added. For the tree, a step is in at most one node of each size.
"""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from functools import partial

import numpy as np

from dither import arguments
from dither.audit.proof.certificate import BITS, Evidence, Interval
from dither.audit.proof.noise import laplace_shift, normal_shift
from dither.exact import square_root
from dither.randomness import Exponential, Normal
from dither.stream.buffers import Buffers
from dither.stream.filters import Bands, Filter, Tree
from dither.stream.mechanism import Segment, StreamPlan

_PAIR = "histories that differ in the first steps, as many and as tightly as allowed, each by as much as allowed"
_METHOD = "the filter run backwards on both histories; its coefficients expanded with outward rounding"
_EXPANDED = 1 << 13
_FIRST_STEPS = 1 << 10
_POINT_BITS = 160


def stream_evidence(plan: StreamPlan) -> Evidence:
    """Return the evidence of the whole transcript of a plan: noise under the largest shift of any segment."""
    enclosed = [_shift(plan, segment) for segment in plan.segments]
    shift = max(low for low, _ in enclosed), max(high for _, high in enclosed)
    if plan.pure:
        law = Exponential(symmetric=True)
        total = laplace_shift(shift[1], law)
        return Evidence(shift, partial(_upper_curve, total), _PAIR, _METHOD)
    steps = max(Fraction(segment.filter.length) / Fraction(segment.scale) for segment in plan.segments)
    lattice = min(steps, shift[0])  # in long epochs the lattice hides the lower bound
    return normal_shift(shift, Normal(), lattice, 2).named(_PAIR, _METHOD)


def _upper_curve(total: Evidence, epsilon: Fraction) -> Interval:
    """Return the curve of Laplace noise for the total shift as an upper bound."""
    return Fraction(0), total.at(epsilon)[1]


def _shift(plan: StreamPlan, segment: Segment) -> Interval:
    """Enclose the largest distance that the fresh noise of a segment moves, in units of its scale."""
    item, scale = segment.filter, Fraction(segment.scale)
    change = math.ceil(arguments.sensitivity(plan.sensitivity) * (1 << plan.lattice_bits))
    count = min(plan.max_participations, -(-item.length // plan.min_separation))
    attained = _attained(item, count, plan.min_separation, change, plan.pure)
    if plan.pure:
        assert isinstance(item, Tree)
        most = Fraction(plan.max_participations * item.length.bit_length() * change)
        return attained / scale, max(attained, most) / scale
    touched = min(plan.series, plan.participations * max(1, int(arguments.sensitivity(plan.sensitivity) ** 2)))
    rounding = item.rounding * Fraction(square_root(Fraction(item.length * touched), BITS)[1], 1 << BITS)
    if plan.horizon is None:  # all participations of a person in one epoch, as bad as in the same step
        most = plan.max_participations * (_expanded(item, 1, 1) * change + rounding)
    else:
        most = _expanded(item, count, plan.min_separation) * change + rounding
    return attained / scale, max(attained, most) / scale


def _steps(item: Filter, count: int, separation: int) -> range:
    """Return the steps of one person in the tightest pattern: ``count`` of them from 0 on, ``separation`` steps each.

    Steps beyond the length of the filter ``item`` are left out.
    """
    return range(0, min(item.length, count * separation), separation)


def _attained(item: Filter, count: int, separation: int, change: int, pure: bool) -> Fraction:
    """Return a lower bound on the distance that the fresh noise moves, attained by one pair of histories.

    One person takes part in ``count`` steps, one every ``separation`` steps, and changes each by ``change``. It is
    in l1 norm if ``pure`` and in l2 norm otherwise. Only the first steps are computed, which contribute most of it.
    """
    length = min(item.length, _FIRST_STEPS)
    totals, total = [], 0
    pattern = set(_steps(item, count, separation))
    for step in range(length):
        total -= change if step in pattern else 0
        totals.append(total)
    fresh = fresh_noise(item, totals)
    if pure:
        return Fraction(sum(map(abs, fresh)))
    return Fraction(square_root(Fraction(sum(number * number for number in fresh)), BITS)[0], 1 << BITS)


def fresh_noise(item: Filter, totals: list[int]) -> list[int]:
    """Return the fresh noise that makes a filter return these totals.

    A step's fresh noise is the difference between the total and what the filter returns if it is zero.
    """
    state, result = item.start(1), []
    zero = np.zeros((1, 1), dtype=np.int64)
    for total in totals:
        fresh = total - int(copy.deepcopy(state).advance(zero)[0, 0])
        state.advance(np.array([[fresh]], dtype=object if abs(fresh) >> 62 else np.int64))
        result.append(fresh)
    return result


def _expanded(item: Filter, count: int, separation: int) -> Fraction:
    """Return an upper bound on the norm of the sum of a filter's columns in the tightest pattern of steps.

    ``item`` is the filter; the pattern has ``count`` steps, one every ``separation`` steps. Trees and filters of more
    than 2^13 steps use the bound of the filter itself.
    """
    if isinstance(item, Tree) or item.length > _EXPANDED:
        return item.l2_sensitivity(count, separation)
    one = 1 << _POINT_BITS
    column = _column(item, one)
    total = [0] * item.length
    for start in _steps(item, count, separation):
        for lag in range(item.length - start):
            total[start + lag] += column[lag]
    squares = Fraction(sum(number * number for number in total), one * one)
    return Fraction(square_root(squares, BITS)[1], 1 << BITS)


def _column(item: Filter, one: int) -> list[int]:
    """Return the coefficients of a filter, in multiples of 1 / one, rounded up.

    Those of a banded filter are stored. A buffered filter has the coefficient ``sum of weight (1 - decay)^(lag - 1)``
    over its buffers at each lag above 0, and 1 at lag 0; its numbers are stored as integers over powers of two.
    """
    if isinstance(item, Bands):
        column = [one, *(-(-coefficient * one >> item.bits) for coefficient in item.coefficients)]
        return [*column, *[0] * (item.length - len(column))]
    assert isinstance(item, Buffers)
    column = [0] * item.length
    for weight, decay, bits in zip(item.weights, item.decays, item.decay_bits, strict=True):
        power = one
        for lag in range(1, item.length):
            column[lag] += -(-weight * power >> item.weight_bits)
            power = -(-power * ((1 << bits) - decay) >> bits)
    column[0] = one
    return column
