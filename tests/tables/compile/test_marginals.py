"""Codes of rows in public domains: values on edges, keys that look alike, many keys, and the statement itself."""

from __future__ import annotations

import bisect

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.publish import Attribute, Domain
from dither.publish.counting import Counting
from dither.tables.compile.limits import Limits
from dither.tables.compile.marginals import MOST_CONSTANTS, marginal_limits
from dither.tables.query.tree import Column
from support_counting import released_counts


def counts_of(values: pa.Array, attribute: Attribute, level: int = 1) -> list[int]:
    with dp.open(pa.table({"x": values}), budget=dp.PureDP(1)) as table:
        counting = Counting(table, Domain([attribute]), (Column("x"),))
        return released_counts(counting, [(level,)])[level,].tolist()


@pytest.mark.parametrize("count", [3, 64, 200])
def test_values_on_edges_are_in_the_bin_above(count):
    """Also where a histogram would find the bin by a product, which is rounded."""
    edges = [i / 10 for i in range(count + 1)]
    values = [*edges, *np.nextafter(edges, np.inf), *np.nextafter(edges, -np.inf), np.nan, np.inf, -np.inf]
    expected = [0] * count
    for value in values:
        place = bisect.bisect_right(edges, value) - 1 if value == value else -1
        if 0 <= place < count:
            expected[place] += 1
    assert counts_of(pa.array(values), Attribute.binned("x", edges)) == expected


def test_whole_numbers_beyond_what_doubles_tell_apart_are_keys():
    keys = [1 << 53, (1 << 53) + 1, -(1 << 63), (1 << 63) - 1]
    assert counts_of(pa.array([*keys, keys[1]]), Attribute.flat("x", keys)) == [1, 2, 1, 1]


def test_texts_that_look_alike_are_different_keys():
    keys = ["a", "a ", "A", "á", "a\u0301", ""]
    assert counts_of(pa.array([*keys, "a ", "b", None]), Attribute.flat("x", keys)) == [1, 2, 1, 1, 1, 1]


def test_nan_is_null_and_no_number_is_minus_zero():
    values = pa.array([0.0, -0.0, float("nan"), None, 1.5])
    assert counts_of(values, Attribute.flat("x", [-0.0, 2.5], null=True, other=-1.0)) == [2, 0, 1, 2]
    assert counts_of(values, Attribute.binned("x", [0, 1], null=True, other="other")) == [2, 1, 2]


def test_many_keys_and_their_levels_come_from_a_table_beside_the_source():
    leaves = [f"leaf {i}" for i in range(3 * MOST_CONSTANTS)]
    branches = [f"branch {i % 7}" for i in range(len(leaves))]
    attribute = Attribute.nested("x", ["branch", "leaf"], {"branch": branches, "leaf": leaves}, null=True, other="?")
    values = pa.array([leaves[0], leaves[7], leaves[-1], "none", None, None])
    finest = counts_of(values, attribute, 2)
    assert {attribute.keys[1][i].as_py(): n for i, n in enumerate(finest) if n} == {
        leaves[0]: 1, leaves[7]: 1, leaves[-1]: 1, "?": 1, None: 2,
    }  # fmt: skip
    assert sum(counts_of(values, attribute, 1)) == 6
    assert counts_of(values, attribute, 1)[0] == 2


def test_a_person_counts_for_at_most_so_many_rows():
    limits = marginal_limits(3, True)
    assert limits.sensitivity() == 3 << limits.bits()
    assert limits == Limits(groups=1, rows=3, max_bits=limits.max_bits)
    assert marginal_limits(3, False).sensitivity() == 1
