"""Covering tables: every table is a margin of one of them, and there are fewer."""

from __future__ import annotations

import itertools

import numpy as np

from dither.publish import Attribute, Domain
from dither.publish.covering import covering_tables
from dither.publish.domain import contains
from support import each
from support_publish import random_domain


@each("seed", range(30))
def test_every_table_is_a_margin_of_a_covering_one_that_is_small(seed):
    domain, finest = random_domain(seed, most_cells=2000)
    generator = np.random.default_rng(seed)
    tables = [tuple(int(generator.integers(0, level + 1)) for level in finest) for _ in range(8)]
    for most_cells in (1, 20, 4096):
        covering = covering_tables(domain, tables, most_cells)
        assert all(any(contains(table, wanted) for table in covering) for wanted in tables)
        for table in covering:
            covered = [wanted for wanted in tables if contains(table, wanted)]
            assert covered
            assert domain.size(table) <= most_cells or table in tables
        assert len(covering) <= len({*tables})


def test_pairs_are_covered_by_a_third_as_many_tables():
    domain = Domain([Attribute.flat(f"a{i}", range(6)) for i in range(10)])
    pairs = [tuple(int(i in pair) for i in range(10)) for pair in itertools.combinations(range(10), 2)]
    assert len(covering_tables(domain, pairs)) <= len(pairs) // 3


def test_tables_that_are_larger_than_the_limit_stay_as_they_are():
    domain = Domain([Attribute.flat("i", range(100)), Attribute.flat("j", range(100)), Attribute.flat("k", range(3))])
    assert covering_tables(domain, [(1, 1, 0), (1, 0, 0), (0, 0, 1)]) == [(1, 1, 0), (0, 0, 1)]
