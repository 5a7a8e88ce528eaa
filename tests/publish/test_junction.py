"""Junction trees: every table in a clique, and the running intersection property."""

from __future__ import annotations

import itertools

import numpy as np

from dither.publish.junction import cells, junction_tree, maximal_cliques
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
