"""Whole numbers with given sums: of families, and of rows and columns at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.publish.rounding import Blocks, fill_blocks, fit_to_sums, round_families
from dither.randomness import SYSTEM


def test_rounding_keeps_sums_and_has_the_right_mean():
    generator = np.random.default_rng(6)
    families = generator.integers(1, 9, 400)
    parents = np.repeat(np.arange(400), families)
    sums = generator.integers(0, 30, (400, 2))
    mean = generator.gamma(0.5, 1, (len(parents), 2))
    fitted = fit_to_sums(mean, np.ones_like(mean), sums.astype(float), families)
    starts = np.cumsum(families) - families
    np.testing.assert_allclose(np.add.reduceat(fitted, starts, axis=0), sums, atol=1e-9)
    assert fitted.min() >= 0
    repetitions = 400
    rounded = [round_families(fitted, sums, families, SYSTEM) for _ in range(repetitions)]
    for values in rounded[:5]:
        np.testing.assert_array_equal(np.add.reduceat(values, starts, axis=0), sums)
        assert np.all(np.abs(values - fitted) < 1 + 1e-6)
        assert values.min() >= 0
    deviation = np.abs(np.mean(rounded, axis=0) - fitted)
    # Hoeffding's inequality for means of 400 numbers in an interval of length 1, and about 3,600 of them: 1e-10
    assert deviation.max() < 8 * 0.5 / np.sqrt(repetitions)
    assert deviation.max() > 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=4), st.integers(0, 1 << 30))
def test_every_pair_of_row_and_column_sums_with_one_total_is_met(sizes, seed):
    """Whatever the weights are: zeros, or numbers that have nothing to do with the sums."""
    generator = np.random.default_rng(seed)
    tables = [generator.poisson(generator.choice([0.1, 3.0, 1e6]), size) for size in sizes]
    weights = [generator.gamma(0.2, 1, size) * generator.integers(0, 2) for size in sizes]
    blocks = Blocks(*(np.array(axis) for axis in zip(*sizes, strict=True)))
    filled = fill_blocks(
        blocks,
        np.concatenate([table.sum(axis=1) for table in tables]),
        np.concatenate([table.sum(axis=0) for table in tables]),
        np.concatenate([weight.ravel() for weight in weights]),
        SYSTEM,
    )
    for part, table in zip(np.split(filled, np.cumsum([table.size for table in tables])[:-1]), tables, strict=True):
        result = part.reshape(table.shape)
        assert result.min() >= 0
        np.testing.assert_array_equal(result.sum(axis=0), table.sum(axis=0))
        np.testing.assert_array_equal(result.sum(axis=1), table.sum(axis=1))


def test_cells_are_near_weights_that_have_nearly_the_right_sums():
    generator = np.random.default_rng(1)
    table = generator.poisson(generator.gamma(0.5, 10, (40, 8)))
    near = table + generator.uniform(0, 0.4, table.shape)
    blocks = Blocks(np.array([40]), np.array([8]))
    filled = fill_blocks(blocks, table.sum(axis=1), table.sum(axis=0), near.ravel(), SYSTEM)
    # 40 rows are halved six times, each time with an error of less than one, of which later ones hand on a part; the
    # weights, which are too large by 0.2 on average, add about 1.1 at most: no draw exceeds 7, and 1 in 20 exceeds 2
    assert np.abs(filled.reshape(table.shape) - table).max() <= 7
    assert table.max() > 70
