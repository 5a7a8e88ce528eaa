"""Graphical models against brute force on small domains.

Junction trees: every table in a clique, and the running intersection property.

Cells that rules leave possible, against all records of a small domain.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dither.publish.graphical import (
    CliqueLaws,
    GraphicalModel,
    MeasuredTable,
    cells,
    junction_tree,
    maximal_cliques,
    possible_cells,
)
from dither.randomness import SYSTEM, SeededSource
from support import each


@each("seed", range(20))
def test_cliques_hold_all_tables_and_intersections_run_along_the_tree(seed):
    generator = np.random.default_rng(seed)
    sizes = generator.integers(2, 9, 8).tolist()
    pairs = list(itertools.combinations(range(8), 2))
    tables = [pairs[i] for i in generator.choice(len(pairs), size=generator.integers(0, 12), replace=False)]
    tree = junction_tree(sizes, tables)
    assert all(any({*table} <= {*clique} for clique in tree.cliques) for table in tables)
    assert {attribute for clique in tree.cliques for attribute in clique} == {*range(8)}
    assert all(parent < place for place, parent in enumerate(tree.parents))
    for attribute in range(8):
        holding = [place for place, clique in enumerate(tree.cliques) if attribute in clique]
        heads = [place for place in holding if attribute not in tree.separator(place)]
        assert len(heads) == 1, "the cliques that hold an attribute are one part of the tree"


def test_a_cycle_is_filled_where_that_is_smallest():
    assert maximal_cliques([2, 9, 2, 9], [(0, 1), (1, 2), (2, 3), (0, 3)]) == [(0, 1, 2), (0, 2, 3)]
    assert cells((0, 1), [2, 9]) == 18
    assert junction_tree([2, 3], []).size([2, 3]) == 5


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
    measured = [MeasuredTable(table, np.where(rules[table], 0.0, 500.0), 1.0) for table in TABLES]
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


GRAPH_SIZES = (3, 2, 4, 2)
GRAPH_TABLES = [(0, 1), (1, 2), (2, 3), (0, 3)]


def joint(model):
    """The whole law by brute force: exp of the sum of all parameters."""
    logs = np.zeros(GRAPH_SIZES)
    for table, values in model.parameters.items():
        logs = logs + values.reshape([size if i in table else 1 for i, size in enumerate(GRAPH_SIZES)])
    law = np.exp(logs - logs.max())
    return law * model.total / law.sum()


def random_law(seed):
    return np.random.default_rng(seed).gamma(0.5, size=GRAPH_SIZES)


def margin(law, table):
    return law.sum(axis=tuple(i for i in range(len(GRAPH_SIZES)) if i not in table))


@pytest.mark.parametrize("seed", range(4))
def test_margins_are_those_of_the_whole_law(seed):
    generator = np.random.default_rng(seed)
    model = GraphicalModel(GRAPH_SIZES, 100.0)
    measured = [MeasuredTable(table, margin(random_law(seed) * 3, table), 1.0) for table in GRAPH_TABLES]
    model.fit(measured, 5)
    for table in GRAPH_TABLES:
        model.parameters[table] = generator.normal(size=[GRAPH_SIZES[i] for i in table])
    model.fit(measured, 0)
    law = joint(model)
    for table in GRAPH_TABLES:
        np.testing.assert_allclose(model.margin(table), margin(law, table), rtol=1e-9)


def test_the_fit_meets_margins_that_belong_to_a_law():
    law = random_law(3)
    law *= 1000 / law.sum()
    model = GraphicalModel(GRAPH_SIZES, 1000.0)
    model.fit([MeasuredTable(table, margin(law, table), 4.0) for table in GRAPH_TABLES], 3000)
    for table in GRAPH_TABLES:
        np.testing.assert_allclose(model.margin(table), margin(law, table), atol=2.0)


def test_two_measurements_of_one_margin_are_their_weighted_mean():
    both = MeasuredTable((0,), np.array([4.0]), 1.0).combined(MeasuredTable((0,), np.array([8.0]), 3.0))
    assert both.values[0] == pytest.approx(5.0)
    assert both.variance == pytest.approx(0.75)


def test_records_have_the_margins_of_the_model():
    law = random_law(5)
    law *= 40_000 / law.sum()
    model = GraphicalModel(GRAPH_SIZES, 40_000.0)
    model.fit([MeasuredTable(table, margin(law, table), 100.0) for table in GRAPH_TABLES], 500)
    columns = model.laws().sample(40_000, SYSTEM)
    whole = joint(model)
    for table in itertools.combinations(range(4), 2):
        codes = columns[table[0]] * GRAPH_SIZES[table[1]] + columns[table[1]]
        counts = np.bincount(codes, minlength=GRAPH_SIZES[table[0]] * GRAPH_SIZES[table[1]])
        expected = margin(whole, table).ravel()
        assert np.all(np.abs(counts - expected) < 7 * np.sqrt(expected) + 3)


def test_records_of_a_seeded_source_repeat():
    model = GraphicalModel(GRAPH_SIZES, 10.0)
    first, second = (model.laws().sample(50, SeededSource(2)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
