"""Cells that rules leave possible, against all records of a small domain."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dither.publish.clique_laws import CliqueLaws, possible_cells
from dither.publish.graphical import GraphicalModel, Measurement
from dither.publish.junction import junction_tree
from dither.randomness import SeededSource

SIZES = (3, 2, 4, 2, 3)
TABLES = [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)]


def random_rules(seed):
    generator = np.random.default_rng(seed)
    return {table: generator.random([SIZES[i] for i in table]) < 0.6 for table in TABLES}


@pytest.mark.parametrize("seed", range(8))
def test_possible_cells_are_those_of_whole_records(seed):
    """Chains of rules exclude cells far away from them."""
    rules = random_rules(seed)
    records = [
        record
        for record in itertools.product(*map(range, SIZES))
        if all(flags[tuple(record[i] for i in table)] for table, flags in rules.items())
    ]
    tree = junction_tree(SIZES, TABLES)
    for clique, flags in zip(tree.cliques, possible_cells(SIZES, tree, rules), strict=True):
        expected = np.zeros([SIZES[i] for i in clique], dtype=bool)
        for record in records:
            expected[tuple(record[i] for i in clique)] = True
        np.testing.assert_array_equal(flags, expected)


def test_records_have_possible_cells_only_whatever_is_measured():
    """Measurements put nearly everything into excluded cells."""
    rules = random_rules(0)
    model = GraphicalModel(SIZES, 1000.0, rules)
    measured = [Measurement(table, np.where(rules[table], 0.0, 500.0), 1.0) for table in TABLES]
    model.fit(measured, 200)
    columns = model.laws().sample(20_000, SeededSource(1))
    for table, flags in rules.items():
        assert flags[tuple(columns[i] for i in table)].all()
        assert np.all(model.margin(table)[~flags] == 0)


def test_laws_of_nothing_still_give_possible_records():
    """A law may be rounded to 0 where a parent was drawn: then some possible cell is drawn."""
    tree = junction_tree((2, 2), [(0, 1)])
    possible = possible_cells((2, 2), tree, {(0, 1): np.array([[True, False], [False, True]])})
    columns = CliqueLaws((2, 2), tree, possible, [np.zeros((2, 2))], 1.0).sample(1000, SeededSource(1))
    np.testing.assert_array_equal(columns[0], columns[1])
