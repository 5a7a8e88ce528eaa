"""The public grid: every value has a place within half a step; one record moves a sum by the sensitivity at most."""

from __future__ import annotations

import math
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from dither import AddRemove, DitherError, ReplaceOne
from dither.inference import Grid, bin_numbers
from dither.stats.column import total

LIMITS = [-(2**63), -(2**53) - 1, -1, 0, 1, 2**53 + 1, 2**63 - 1]
wild = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([5e-324, 1e308, -1e308, 2.0**53]))


@given(st.lists(wild, max_size=20), st.sampled_from([(0, 1), (-5, 5), (0.1, 0.7), (-1e6, 3), (1e-9, 1e9), (100, 101)]))
def test_every_float_has_a_place_on_the_grid_within_half_a_step_of_its_clipped_value(entries, bounds):
    for bits in (21, 30):
        grid = Grid.between(*bounds, bits)
        assert 2**bits <= grid.width + 1 <= 2 ** (bits + 1) + 1
        places = [int(p) for part in grid.positions(np.array(entries, dtype=float), *bounds) for p in part]
        for value, place in zip(entries, places, strict=True):
            assert 0 <= place <= grid.width
            clipped = min(max(Fraction(value), Fraction(bounds[0])), Fraction(bounds[1]))
            assert abs(grid.value(place) - clipped) <= grid.step * Fraction(101, 200)


@pytest.mark.parametrize("bounds", [(0, 10), (-(2**63), -(2**63) + 5), (2**62, 2**63 - 1), (-(2**60), 2**60)])
def test_every_integer_has_its_exact_place(bounds):
    grid = Grid.between(*bounds, 30, integers=True)
    places = np.concatenate(list(grid.positions(np.array(LIMITS), *bounds)))
    assert grid.step == 1
    assert [int(p) + grid.low for p in places] == [min(max(v, bounds[0]), bounds[1]) for v in LIMITS]


@pytest.mark.parametrize(
    "bounds",
    [(-1e308, 1e308), (0, 10**400), (0, 5e-324), (1e300, 2e300), (2**70, 2**70 + 5), (1, math.nextafter(1, 2))],
)
def test_bounds_a_grid_cannot_serve_are_refused(bounds):
    for integers in (True, False):
        with pytest.raises(DitherError, match=r"bounds: expected .* got .* Fix: "):
            Grid.between(*bounds, 30, integers=integers)


@given(st.lists(wild, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_no_total(entries, random):
    grid = Grid.between(-1, 1, 30)
    mixed = list(entries)
    random.shuffle(mixed)
    one, two = (sum(total(p) for p in grid.positions(np.array(z, dtype=float), -1, 1)) for z in (entries, mixed))
    assert one == two


@given(st.lists(wild, min_size=1, max_size=20), wild, st.sampled_from([(0, 1), (-5, 5), (0.1, 0.7), (-1e6, 3)]))
def test_one_record_moves_the_sum_by_the_sensitivity_at_most(entries, other, bounds):
    grid = Grid.between(*bounds, 30)

    def steps(values: list[float]) -> int:
        return sum(total(p) for p in grid.positions(np.array(values, dtype=float), *bounds)) + len(values) * grid.low

    assert abs(steps([other, *entries[1:]]) - steps(entries)) <= grid.sensitivity(ReplaceOne)
    assert abs(steps([other, *entries]) - steps(entries)) <= grid.sensitivity(AddRemove)


@pytest.mark.parametrize("neighbors", [ReplaceOne, AddRemove])
def test_the_sensitivity_is_reached(neighbors):
    grid = Grid(-3, 10, Fraction(1, 2))
    ends = {ReplaceOne: grid.high - grid.low, AddRemove: grid.high}
    assert grid.sensitivity(neighbors) == ends[neighbors]


@given(st.integers(-100, 100), st.integers(1, 200), st.integers(-20, 20), st.data())
def test_parts_and_mirrors_hold_the_same_points(low, width, exponent, data):
    grid = Grid(low, low + width, Fraction(2) ** exponent)
    assert grid.scale * float(grid.step) == 1.0
    first = data.draw(st.integers(0, width))
    last = data.draw(st.integers(first, width))
    part = grid.part(first, last)
    assert (part.value(0), part.value(part.width)) == (grid.value(first), grid.value(last))
    assert [grid.mirrored.value(width - place) for place in (first, last)] == [-grid.value(first), -grid.value(last)]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(-10, 20))
def test_bounds_rounded_half_up_are_within_half_a_step(lower, width, exponent):
    scale = 2.0**exponent
    grid = Grid.rounded_half_up(lower, lower + width, scale)
    assert grid.scale == scale
    assert abs(grid.value(0) - Fraction(lower)) <= grid.step * Fraction(101, 200)
    assert abs(grid.value(grid.width) - Fraction(lower + width)) <= grid.step * Fraction(101, 200)


@given(st.lists(st.floats(-3, 3), max_size=30), st.lists(st.floats(-2, 2), min_size=2, max_size=9, unique=True))
def test_the_bin_of_a_value_begins_at_or_below_it(values, edges):
    edges = sorted(edges)
    for value, number in zip(values, bin_numbers(np.array(values), np.array(edges)).tolist(), strict=True):
        assert 0 <= number < len(edges) - 1
        assert edges[number] <= value or number == 0
        assert value < edges[number + 1] or number == len(edges) - 2
