"""Filters in whole numbers: their sensitivity against all patterns of short horizons, on the code that draws."""

from __future__ import annotations

import copy
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.ledger.recorded import decode, encode
from dither.randomness import SeededSource
from dither.stream.buffers import Buffers, buffers_for, inverse, power_down, squared_column, squared_response
from dither.stream.filters import Bands, Filter, Tree, as_wide, square_root_coefficients, whole_numbers, window_variance
from support import each

LENGTH = 12
FILTERS: list[Any] = [
    buffers_for(LENGTH, 3),
    buffers_for(LENGTH, 2, 3, 4),
    Bands.square_root(LENGTH, LENGTH),
    Bands.square_root(LENGTH, 4),
    Bands.square_root(LENGTH, 1),
    Tree(LENGTH),
]
NAMES = [f"{type(item).__name__}-{i}" for i, item in enumerate(FILTERS)]
CHANGE = 1 << 20


def fresh_for(filter_: Filter, totals: list[int]) -> list[int]:
    """The fresh noise from which the filter, as it is, makes these totals: the difference to what zero gives."""
    state, result = filter_.start(1), []
    for total in totals:
        probe = copy.deepcopy(state)
        fresh = total - int(probe.advance(np.zeros((1, 1), dtype=np.int64))[0, 0])
        state.advance(np.array([[fresh]]))
        result.append(fresh)
    return result


def patterns(length: int, most: int, separation: int) -> list[tuple[int, ...]]:
    return [
        steps
        for count in range(1, most + 1)
        for steps in itertools.combinations(range(length), count)
        if all(b - a >= separation for a, b in itertools.pairwise(steps))
    ]


def matrix(filter_: Filter) -> np.ndarray:
    """C, from the rows of B: C = B^-1 A."""
    rows = np.zeros((filter_.length, filter_.length))
    for step in range(1, filter_.length + 1):
        rows[step - 1, :step] = filter_.row(step)
    return np.linalg.solve(rows, np.tril(np.ones_like(rows)))


@each("filter_", FILTERS)
@each(("most", "separation"), [(1, 1), (2, 1), (3, 4), (4, 3), (12, 1)])
def test_the_sensitivity_is_the_largest_over_all_patterns(filter_, most, separation):
    c = matrix(filter_)
    largest = max(float(np.linalg.norm(c[:, list(steps)].sum(axis=1))) for steps in patterns(LENGTH, most, separation))
    claimed = float(filter_.l2_sensitivity(min(most, -(-LENGTH // separation)), separation))
    assert claimed >= largest * (1 - 1e-9)
    if not isinstance(filter_, Tree) or most == 1:
        assert claimed <= largest * (1 + 1e-9), "not merely a bound"


@pytest.mark.parametrize("filter_", FILTERS, ids=NAMES)
def test_fresh_noise_of_neighbors_differs_by_no_more_than_is_claimed(filter_):
    """On the very code that draws: for random releases, the fresh noise behind them with and without a person."""
    words = SeededSource(19).words(40 * LENGTH).reshape(40, LENGTH) >> np.uint64(40)
    most, separation = 3, 2
    allowed = patterns(LENGTH, most, separation)
    bound = float(filter_.l2_sensitivity(most, separation)) * CHANGE + float(filter_.rounding) * math.sqrt(LENGTH)
    worst = 0.0
    for i, row in enumerate(words.astype(np.int64).tolist()):
        released = np.cumsum(np.array(row) - (1 << 23))
        change = np.zeros(LENGTH, dtype=np.int64)
        for j, step in enumerate(allowed[0 if i == 0 else i * 7919 % len(allowed)] if i else (0, 2, 4)):
            change[step] = CHANGE if i == 0 else (1 - 2 * (i * j % 2)) * (CHANGE - i)
        one = fresh_for(filter_, released.tolist())
        other = fresh_for(filter_, (released - np.cumsum(change)).tolist())
        worst = max(worst, float(np.linalg.norm(np.array(one) - np.array(other))))
        assert worst <= bound
    if not isinstance(filter_, Tree):
        assert worst >= bound * (1 - 1e-4), "the first pattern is the worst one"


def test_a_wrong_pattern_bound_would_be_seen():
    """Were the columns taken to be disjoint, three participations would be underestimated."""
    filter_ = FILTERS[0]
    assert float(filter_.l2_sensitivity(3, 2)) > 1.1 * math.sqrt(3) * float(filter_.l2_sensitivity(1, 1))


@pytest.mark.parametrize("filter_", FILTERS, ids=NAMES)
def test_many_lanes_few_lanes_and_wide_integers_agree(filter_):
    fresh = (SeededSource(3).words(LENGTH * 6) >> np.uint64(30)).astype(np.int64).reshape(LENGTH, 6) - (1 << 33)
    together = filter_.start(6).advance(fresh)
    single = np.concatenate([filter_.start(1).advance(fresh[:, [i]]) for i in range(6)], axis=1)
    state = filter_.start(6)
    in_parts = np.concatenate([state.advance(fresh[:5]), state.advance(fresh[5:])])
    assert (together == single).all()
    assert (together == in_parts).all()
    assert (together == filter_.start(6).advance(fresh.astype(object))).all()


@pytest.mark.parametrize("filter_", FILTERS, ids=NAMES)
def test_numbers_too_large_for_64_bits_are_exact(filter_):
    fresh = np.zeros((LENGTH, 6), dtype=object)
    fresh[0] = [1 << 61, -(1 << 61), (1 << 80) + 1, 0, 5, -7]
    noise = filter_.start(6).advance(fresh)
    for lane in range(6):
        assert noise[:, lane].tolist() == filter_.start(1).advance(fresh[:, [lane]])[:, 0].tolist()
    as_64 = fresh.copy()
    as_64[0, 2] = 0
    assert (filter_.start(6).advance(as_64.astype(np.int64))[:, :2] == noise[:, :2]).all()


@pytest.mark.parametrize("filter_", FILTERS, ids=NAMES)
def test_rows_are_what_the_code_does(filter_):
    unit = 1 << 30
    impulse = np.zeros((LENGTH, 1), dtype=np.int64)
    for start in (0, 3):
        impulse[:] = 0
        impulse[start] = unit
        noise = filter_.start(1).advance(impulse)[:, 0] / unit
        expected = [filter_.row(step)[start] if step > start else 0.0 for step in range(1, LENGTH + 1)]
        assert np.allclose(noise, expected, atol=1e-6)
    for step in (1, 5, LENGTH):
        assert filter_.squared_row(step) == pytest.approx(float(filter_.row(step) @ filter_.row(step)))
        assert window_variance(filter_, step, LENGTH) == pytest.approx(filter_.squared_row(step))
    assert window_variance(filter_, 9, 2) == pytest.approx(
        float(np.sum((filter_.row(9) - np.pad(filter_.row(7), (0, 2))) ** 2))
    )


def test_closed_forms_against_sums():
    decays, weights = np.array([0.9, 0.3, 0.01]), np.array([0.2, 0.15, 0.1])
    n = 200
    c = np.concatenate([[1.0], (weights[:, None] * (1 - decays)[:, None] ** np.arange(n - 1)).sum(axis=0)])
    series = np.zeros(n)
    series[0] = 1.0
    for k in range(1, n):
        series[k] = -float(c[1 : k + 1] @ series[:k][::-1])
    assert squared_column(n, decays, weights) == pytest.approx(float(c @ c))
    response = np.cumsum(series)
    assert squared_response(n, *inverse(decays, weights)) == pytest.approx(float(response @ response))


def test_the_square_root_has_the_known_error():
    """2.944 and 3.273 (sums of squares of the coefficients, by exact rationals)."""
    for n, known in ((365, 2.944), (1024, 3.273)):
        coefficient, total = Fraction(1), Fraction(0)
        for k in range(n):
            total += coefficient**2
            coefficient = Fraction(round(coefficient * Fraction(2 * k + 1, 2 * k + 2) * 2**80), 2**80)
        assert float(total) == pytest.approx(known, abs=5e-4)
        root = Bands.square_root(n, n)
        assert float(root.l2_sensitivity(1, 1)) * math.sqrt(root.squared_row(n)) == pytest.approx(
            float(total), rel=1e-6
        )
    assert square_root_coefficients(4).tolist() == [1, 1 / 2, 3 / 8, 5 / 16]


def test_the_norm_is_rounded_up():
    filter_ = buffers_for(30, 2)
    thetas = [1 - Fraction(m, 1 << k) for m, k in zip(filter_.decays, filter_.decay_bits, strict=True)]
    omegas = [Fraction(w, 1 << filter_.weight_bits) for w in filter_.weights]
    c = [Fraction(1)]
    c += [sum((w * t**k for w, t in zip(omegas, thetas, strict=True)), Fraction(0)) for k in range(29)]
    for most, separation in ((1, 1), (4, 7)):
        total = [sum(c[t - s] for s in range(0, most * separation, separation) if s <= t) for t in range(30)]
        exact = sum(value * value for value in total)
        claimed = filter_.l2_sensitivity(most, separation)
        assert exact <= claimed**2 <= exact * (1 + Fraction(1, 10**12))


def test_what_is_not_decreasing_is_known():
    assert not Buffers(10, (1,), (1,), (3,), 1, 4).decreasing, "c_1 above c_0"
    assert not Bands(10, (1, 2), 4).decreasing
    assert all(item.decreasing for item in FILTERS)


def test_tree_levels_are_fenwicks():
    tree = Tree(365)
    assert max(int(tree.row(step).sum()) for step in range(1, 366)) == 8
    assert tree.levels == 9
    assert math.sqrt(tree.levels * 8) == pytest.approx(8.485, abs=1e-3)


def test_helpers():
    assert whole_numbers([[1, 2]]).dtype == np.int64
    assert whole_numbers([[1, 1 << 70]])[0, 1] == 1 << 70
    assert as_wide(as_wide(np.array([1]))).dtype == object
    exact = Fraction(999, 1000) ** 1000
    assert exact * (1 - Fraction(1, 10**20)) <= power_down(Fraction(999, 1000), 1000) <= exact


@pytest.mark.parametrize("filter_", FILTERS, ids=NAMES)
def test_one_draw_that_is_too_large_for_64_bits_among_others(filter_):
    small = (SeededSource(4).words(LENGTH * 6) >> np.uint64(40)).astype(np.int64).reshape(LENGTH, 6)
    wide = small.astype(object)
    wide[2, 3] = (1 << 70) + 1
    state, whole = filter_.start(6), filter_.start(6).advance(wide)
    steps = [state.advance(wide[[i]] if i == 2 else small[[i]]) for i in range(LENGTH)]
    assert (np.concatenate([as_wide(step) for step in steps]) == whole).all()


@each("filter_", FILTERS)
@each("lanes", [2, 7])
@each("size", [1 << 10, 1 << 61, 1 << 90])
def test_a_recorded_state_goes_on_with_the_same_numbers(filter_, lanes, size):
    """Also where the numbers are Python's own."""
    drawn = SeededSource(7)
    fresh = np.array([[drawn.word() % (2 * size) - size for _ in range(lanes)] for _ in range(LENGTH)], dtype=object)
    fresh = fresh if size > 1 << 62 else fresh.astype(np.int64)
    expected = filter_.start(lanes).advance(fresh)
    state, parts = filter_.start(lanes), []
    for row in fresh:
        parts.append(state.advance(row[None, :]))
        state = filter_.start(lanes, decode(encode(state.record())))
    assert (np.concatenate([as_wide(part) for part in parts]) == as_wide(expected)).all()
