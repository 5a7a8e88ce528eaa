"""Finite fields and Singer's difference sets, by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dither.local.finite_fields import (
    field_tables,
    powers_of_x,
    prime_power,
    primitive_polynomial,
    singer_difference_set,
)

FIELDS = [(2, 5), (3, 4), (4, 3), (4, 5), (5, 3), (7, 3), (8, 3), (9, 3), (16, 3), (53, 3), (11, 2)]


@pytest.mark.parametrize(("q", "t"), FIELDS)
def test_every_difference_occurs_equally_often(q, t):
    total, size, shared = (sum(q**i for i in range(n)) for n in (t, t - 1, t - 2))
    members = singer_difference_set(q, t)
    assert len({*members.tolist()}) == size
    differences = np.bincount((members[:, None] - members[None, :]).reshape(-1) % total, minlength=total)
    assert differences[0] == size
    assert set(differences[1:].tolist()) == {shared}


@pytest.mark.parametrize("q", [2, 3, 4, 5, 8, 9, 25, 27, 64])
def test_tables_are_those_of_a_field(q):
    add, multiply = field_tables(q)
    for table, start in ((add, 0), (multiply, 1)):
        assert np.array_equal(table, table.T)
        assert all(sorted(row) == sorted({*row}) for row in table[start:, start:].tolist())
        assert np.array_equal(table[start], np.arange(q))
    for a, b, c in itertools.islice(itertools.product(range(q), repeat=3), 0, None, max(1, q**3 // 2000)):
        assert multiply[a, add[b, c]] == add[multiply[a, b], multiply[a, c]]
        assert multiply[a, multiply[b, c]] == multiply[multiply[a, b], c]


def test_prime_powers():
    assert [q for q in range(1, 33) if prime_power(q)] == [
        2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32,
    ]  # fmt: skip


@pytest.mark.parametrize(("p", "m"), [(2, 8), (3, 5), (7, 2)])
def test_powers_of_x_are_all_elements(p, m):
    rows = powers_of_x(p, m, p**m - 1)
    assert len({tuple(row) for row in rows.tolist()}) == p**m - 1
    assert primitive_polynomial(p, m)[0] != 0
