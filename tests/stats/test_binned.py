"""Histograms: what one record can move, where records are counted, and which bins are refused."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from dither import AddRemove, DitherError, ReplaceOne, stats
from support import each, refuses

BOTH = [AddRemove, ReplaceOne]
finite = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-2, 12),
    st.sampled_from([0.0, 10.0, 3.0, 5e-324, 1e308, -1e308, math.nextafter(3, 0), 0.1 + 0.2]),
)


@given(
    x=st.lists(finite, min_size=1, max_size=8), other=finite, bins=st.integers(1, 7), delta=st.sampled_from([None, 0.1])
)
def test_no_neighbors_move_the_counts_by_more_than_is_paid_for(x, other, bins, delta, paid):
    for relation, y in ((AddRemove, x[1:]), (ReplaceOne, [other, *x[1:]])):
        one, two = (
            paid(lambda z=z, r=relation: stats.histogram(np.array(z, float), (0, 10), 1, delta, bins=bins, neighbors=r))
            for z in (x, y)
        )
        assert one.covers(two)
        assert sum(one.vector) == len(x), "every record is in one bin"


def test_gaussian_noise_is_chosen_and_paid_in_the_l2_norm_where_bins_are_few_moves(paid):
    one, two = (
        paid(lambda z=z: stats.histogram(np.array(z), (0, 100), 1, 0.2, bins=100)) for z in ([1, 2, 3], [99, 2, 3])
    )
    assert one.covers(two)


def test_records_are_counted_as_numpy_counts_them_after_clipping(paid):
    edges = np.array([0.0, 0.1, 0.3, 1.0, 5.0])
    x = np.array([-3.0, 0.0, 0.1, 0.2, 0.3, math.nextafter(0.3, 0), 1.0, 5.0, 9.0, 1e308, -1e308])
    exact = paid(lambda: stats.histogram(x, (0, 5), 1, bins=edges)).vector
    assert exact == np.histogram(np.clip(x, 0, 5), bins=edges)[0].tolist()


@pytest.mark.parametrize("bins", [[0, 1, 4], (0, 1, 4), np.array([0.0, 1.0, 4.0])])
def test_edges_may_be_given(bins):
    result = stats.histogram([1.0, 2.0], (0, 4), 1, bins=bins)
    assert result.edges.tolist() == [0, 1, 4]
    assert result.counts.shape == (2,)


@each(
    "bins",
    [
        0,
        -1,
        2.5,
        None,
        "3",
        b"3",
        True,
        [],
        [0],
        [0, 4, 4],
        [4, 0],
        [0, 3],
        [1, 4],
        [0, math.nan, 4],
        [[0, 4]],
        [0, "a", 4],
        [0, None, 4],
        [-1, 0, 4],
        [0, 4, 5],
        10**15,
    ],
)
def test_wrong_bins_are_refused_with_a_remedy(bins):
    with refuses(DitherError, "bins:"):
        stats.histogram([987654.321], (0, 4), 1, bins=bins)


@pytest.mark.parametrize(
    "bounds", [(2**53, 2**53 + 1), (-1e308, 1e308), (0, 10**400), (1.0, math.nextafter(1, 2)), (-5e-324, 5e-324)]
)
def test_bounds_without_room_for_the_bins_are_refused(bounds):
    with refuses(DitherError):
        stats.histogram([1.0], bounds, 1, bins=10)


def test_the_error_covers_all_bins_together_and_grows_with_them():
    few, many = (stats.histogram([1.0], (0, 1), 1, bins=bins) for bins in (1, 1000))
    assert few.error() < many.error()
    # 2 q^(k+1) / (1 + q) in each of 1000 bins, q = exp(-1/2)
    k, q = many.error(0.95), math.exp(-0.5)
    assert (1 - 2 * q ** (k + 1) / (1 + q)) ** 1000 >= 0.95
    assert (1 - 2 * q**k / (1 + q)) ** 1000 < 0.95


@pytest.mark.parametrize("relation", BOTH)
def test_it_unpacks_shows_its_cost_and_hides_nothing(relation):
    result = stats.histogram(np.arange(9), (0, 9), 0.5, bins=3, neighbors=relation)
    counts, edges = result
    assert counts is result.counts
    assert edges is result.edges
    assert counts.dtype == np.int64
    text = repr(result)
    assert all(part in text for part in ("±", "ε = 0.5", repr(relation), "95 %"))
    assert "seeded" not in text
