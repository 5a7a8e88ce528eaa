"""Scores of tables: exact, no farther apart than one person can move counts, whatever the counts are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dither.publish.selection import distance

COUNTS = st.lists(st.integers(-(2**62), 2**62), min_size=3, max_size=3)
MODELED = st.lists(st.integers(0, 2**61), min_size=3, max_size=3)


@given(COUNTS, MODELED)
def test_distances_are_exact_in_python_integers(counts, modeled):
    clipped = [min(max(count, -(2**53)), 2**53) for count in counts]
    expected = sum(abs(256 * count - model) for count, model in zip(clipped, modeled, strict=True))
    assert distance(np.array(counts), np.array(modeled)) == expected


@given(COUNTS, MODELED, st.lists(st.integers(0, 1000), min_size=3, max_size=3))
def test_no_person_moves_a_score_by_more_than_they_move_the_counts(counts, modeled, added):
    with_person = np.array(counts) + np.array(added)
    moved = distance(with_person, np.array(modeled)) - distance(np.array(counts), np.array(modeled))
    assert abs(moved) <= 256 * sum(added)


def test_a_score_does_move_as_far_as_the_sensitivity():
    assert distance(np.array([5, 0]), np.array([0, 0])) - distance(np.array([4, 0]), np.array([0, 0])) == 256
