"""Graphical models against brute force on small domains."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dither.publish.graphical import GraphicalModel, Measurement
from dither.randomness import SYSTEM, SeededSource

SIZES = (3, 2, 4, 2)
TABLES = [(0, 1), (1, 2), (2, 3), (0, 3)]


def joint(model):
    """The whole law by brute force: exp of the sum of all parameters."""
    logs = np.zeros(SIZES)
    for table, values in model.parameters.items():
        logs = logs + values.reshape([size if i in table else 1 for i, size in enumerate(SIZES)])
    law = np.exp(logs - logs.max())
    return law * model.total / law.sum()


def random_law(seed):
    return np.random.default_rng(seed).gamma(0.5, size=SIZES)


def margin(law, table):
    return law.sum(axis=tuple(i for i in range(len(SIZES)) if i not in table))


@pytest.mark.parametrize("seed", range(4))
def test_margins_are_those_of_the_whole_law(seed):
    generator = np.random.default_rng(seed)
    model = GraphicalModel(SIZES, 100.0)
    measured = [Measurement(table, margin(random_law(seed) * 3, table), 1.0) for table in TABLES]
    model.fit(measured, 5)
    for table in TABLES:
        model.parameters[table] = generator.normal(size=[SIZES[i] for i in table])
    model.fit(measured, 0)
    law = joint(model)
    for table in TABLES:
        np.testing.assert_allclose(model.margin(table), margin(law, table), rtol=1e-9)


def test_the_fit_meets_margins_that_belong_to_a_law():
    law = random_law(3)
    law *= 1000 / law.sum()
    model = GraphicalModel(SIZES, 1000.0)
    model.fit([Measurement(table, margin(law, table), 4.0) for table in TABLES], 3000)
    for table in TABLES:
        np.testing.assert_allclose(model.margin(table), margin(law, table), atol=2.0)


def test_two_measurements_of_one_margin_are_their_weighted_mean():
    both = Measurement((0,), np.array([4.0]), 1.0).combined(Measurement((0,), np.array([8.0]), 3.0))
    assert both.values[0] == pytest.approx(5.0)
    assert both.variance == pytest.approx(0.75)


def test_records_have_the_margins_of_the_model():
    law = random_law(5)
    law *= 40_000 / law.sum()
    model = GraphicalModel(SIZES, 40_000.0)
    model.fit([Measurement(table, margin(law, table), 100.0) for table in TABLES], 500)
    columns = model.laws().sample(40_000, SYSTEM)
    whole = joint(model)
    for table in itertools.combinations(range(4), 2):
        codes = columns[table[0]] * SIZES[table[1]] + columns[table[1]]
        counts = np.bincount(codes, minlength=SIZES[table[0]] * SIZES[table[1]])
        expected = margin(whole, table).ravel()
        assert np.all(np.abs(counts - expected) < 7 * np.sqrt(expected) + 3)


def test_records_of_a_seeded_source_repeat():
    model = GraphicalModel(SIZES, 10.0)
    first, second = (model.laws().sample(50, SeededSource(2)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
