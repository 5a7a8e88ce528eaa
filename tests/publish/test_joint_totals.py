"""Several public tables at once: the order in which they can be joined, and tables that have them all as margins."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dither as dp
from dither.publish import Attribute, Domain, public_totals
from dither.publish.joint_totals import common_table, joining_order, place_in
from dither.publish.residuals import margin
from support import refuses


def three_pairs(numbers):
    domain = Domain([Attribute.flat(name, range(2)) for name in "ijk"])
    names = [("i", "j"), ("j", "k"), ("i", "k")]
    return public_totals(domain, dict(zip(names, numbers, strict=True)))


def test_totals_that_agree_in_pairs_but_have_no_common_table_are_refused():
    """i = j and j = k, but i is not k."""
    same, different = [1, 0, 0, 1], [0, 1, 1, 0]
    with refuses(dp.InvalidArgument, "whole, non-negative counts can have together", "i × j, j × k and i × k"):
        three_pairs([same, same, different])
    assert three_pairs([same, same, same]).example.tolist() == [[[1, 0], [0, 0]], [[0, 0], [0, 1]]]


def test_too_many_combinations_of_tables_that_cannot_be_joined_are_refused():
    domain = Domain([Attribute.flat(name, range(40)) for name in "ijk"])
    pair = np.ones((40, 40), dtype=int)
    with refuses(dp.InvalidArgument, "at most 20,000 combinations", "64,000"):
        public_totals(domain, dict.fromkeys([("i", "j"), ("j", "k"), ("i", "k")], pair))


@pytest.mark.parametrize(
    ("tables", "joinable"),
    [
        ([(1, 1, 0), (0, 1, 1)], True),
        ([(1, 1, 0), (0, 1, 1), (1, 0, 1)], False),
        ([(1, 1, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1)], True),
        ([(2, 0), (1, 1)], True),
        ([(1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1), (1, 0, 0, 1)], False),
        ([(1, 1, 0, 0), (0, 0, 1, 1)], True),
        ([(2, 1, 0), (1, 0, 1), (0, 1, 1)], False),
    ],
)
def test_the_order_of_joining_has_the_running_intersection(tables, joinable):
    order = joining_order(tables)
    assert (order is not None) == joinable
    for i, table in enumerate((order or [])[1:], start=1):
        before = tuple(map(max, *order[:i])) if i > 1 else order[0]
        common = tuple(map(min, table, before))
        assert any(all(map(int.__le__, common, other)) for other in order[:i])


def test_integer_programming_agrees_with_a_search_of_all_tables():
    """All 0/1 tables of 2 × 2 × 2 cells: margins of one of them are met, and those that none has are refused."""
    domain = Domain([Attribute.flat(name, range(2)) for name in "ijk"])
    levels = [(1, 1, 0), (0, 1, 1), (1, 0, 1)]
    cells = [np.array(bits).reshape(2, 2, 2) for bits in itertools.product((0, 1), repeat=8)]
    for counts in cells[::17]:
        tables = {table: margin(domain, counts, (1, 1, 1), table) for table in levels}
        result = common_table(domain, tables)
        for table, numbers in tables.items():
            np.testing.assert_array_equal(margin(domain, result, (1, 1, 1), table), numbers)
        assert result.min() >= 0


def test_cells_belong_to_the_cells_of_margins():
    places = {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}
    domain = Domain([Attribute.nested("g", ["state", "county"], places), Attribute.flat("sex", ["f", "m"])])
    assert place_in(domain, (2, 1), (1, 1)).tolist() == [0, 1, 0, 1, 2, 3]
    assert place_in(domain, (2, 1), (1, 0)).tolist() == [0, 0, 0, 0, 1, 1]
