"""Comparisons of records with released counts, computed again from the rounds and the records themselves."""

from __future__ import annotations

import numpy as np
import pytest

import dither as dp
from dither.publish import Attribute, Domain, Synthesizer
from dither.publish.synthesis_comparison import column_comparisons, comparisons


@pytest.fixture(scope="module")
def synthesis():
    domain = Domain([Attribute.flat("kind", "abc"), Attribute.binned("age", [0, 10, 30, 60, 100])])
    counts = np.array([[400, 300, 200, 100], [50, 60, 70, 80], [0, 10, 20, 900]])
    tables = {(1, 1): counts, (1, 0): counts.sum(axis=1), (0, 1): counts.sum(axis=0)}
    return Synthesizer(domain, dp.ZCDP(0.05)).release(tables, rows=2000)


def test_distances_are_those_of_the_records_from_the_released_counts(synthesis):
    assert {item.table for item in comparisons(synthesis)} == {(0,), (1,), (0, 1)}
    for item in comparisons(synthesis):
        rounds = [entry for entry in synthesis.rounds if entry.table == item.table]
        weights = np.array([1 / entry.sigma**2 for entry in rounds])
        noisy = sum(weight * entry.values for weight, entry in zip(weights, rounds, strict=True)) / weights.sum()
        np.testing.assert_allclose(item.noisy, noisy)
        assert item.sigma == pytest.approx(weights.sum() ** -0.5)
        counts = np.zeros(noisy.shape)
        np.add.at(counts, tuple(synthesis.codes[place] for place in item.table), synthesis.laws.total / 2000)
        assert item.distance == pytest.approx(np.abs(counts - noisy).sum() / 2 / counts.sum())
        noise = np.random.default_rng(2).normal(0, item.sigma, (2000, noisy.size))
        assert item.expected_distance == pytest.approx(np.abs(noise).sum(axis=1).mean() / 2 / counts.sum(), rel=0.05)


def test_columns_are_compared_with_the_table_that_says_most_about_them(synthesis):
    sizes = synthesis.laws.sizes
    for item in column_comparisons(synthesis):
        (place,) = item.table
        possible = [table for table in comparisons(synthesis) if place in table.table]
        deviations = [table.sigma * np.sqrt(table.noisy.size / sizes[place]) for table in possible]
        assert item.sigma == pytest.approx(min(deviations))
        assert item.noisy.shape == (sizes[place],)
