"""Contrasts: whole, orthogonal, complete."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dither.publish.contrasts import Contrasts


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 51])
def test_contrasts_are_whole_and_orthogonal_and_their_squares_are_known(size):
    contrasts = Contrasts(np.array([size]))
    matrix = contrasts.of(np.eye(size, dtype=np.int64))
    assert matrix.dtype == np.int64
    assert matrix.shape == (size - 1, size)
    assert not matrix.sum(axis=1).any()
    gram = matrix @ matrix.T
    assert not (gram - np.diag(np.diag(gram))).any()
    squares = np.concatenate([[square] * (stop - start) for start, stop, square in contrasts.groups] or [[]])
    assert [Fraction(int(length)) * Fraction(size - 1, size) for length in np.diag(gram)] == list(squares)


@pytest.mark.parametrize("size", [2, 3, 7, 30])
def test_one_record_is_as_far_from_none_in_every_place(size):
    contrasts = Contrasts(np.array([size]))
    matrix = contrasts.of(np.eye(size, dtype=np.int64))
    scale = np.concatenate([[float(square)] * (stop - start) for start, stop, square in contrasts.groups])
    np.testing.assert_allclose((matrix**2 / scale[:, np.newaxis]).sum(axis=0), 1.0, rtol=1e-12)


def test_families_of_any_size_come_back_from_their_sums_and_contrasts():
    generator = np.random.default_rng(1)
    children = generator.integers(1, 9, 40)
    contrasts = Contrasts(children)
    counts = generator.integers(0, 1000, (children.sum(), 3))
    sums = np.add.reduceat(counts, np.cumsum(children) - children, axis=0)
    back = contrasts.expand(sums.astype(float), contrasts.of(counts).astype(float))
    np.testing.assert_allclose(back, counts, atol=1e-9)
    even = contrasts.expand(sums.astype(float), None)
    np.testing.assert_allclose(even, np.repeat(sums / children[:, np.newaxis], children, axis=0))


def test_few_different_lengths_occur():
    assert len(Contrasts(np.array([1000])).groups) <= 20
    assert Contrasts(np.array([1000])).largest_coefficient < 501


def test_whole_numbers_that_exceed_64_bits_wrap_around_silently():
    counts = np.full((3, 1), 2**62, dtype=np.int64)
    exact = [int(value) for value in Contrasts(np.array([3])).of(counts).ravel()]
    assert exact == [0, 0]
