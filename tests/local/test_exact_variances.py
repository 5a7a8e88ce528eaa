"""p and q of every protocol at k = 128 and 1024, counted from its reports, and the variance that follows from them."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import dither as dp
from dither.local.finite_fields import field_tables

EPSILONS = (0.5, 1.0, 2.0, 4.0)
CELLS = list(product((128, 1024), EPSILONS))
# n times the variance of a rare category where the theory has one number for it
SYMMETRIC = {epsilon: math.exp(epsilon / 2) / math.expm1(epsilon / 2) ** 2 for epsilon in EPSILONS}
OPTIMIZED = {epsilon: 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2 for epsilon in EPSILONS}


def rare(p, q):
    """The variance of one Bernoulli(q) report over the square of what a supporter adds."""
    return q * (1 - q) / (p - q) ** 2


def counted(protocol):
    """p and q of a design from its sets of reports: how many there are, and how many two of them share."""
    e, total = math.exp(protocol.epsilon), protocol.report_count
    own = set(protocol.preferred(0).tolist())
    results = set()
    for code in {1, 2, protocol.category_count // 2, protocol.category_count - 1}:
        other = set(protocol.preferred(code).tolist())
        assert len(own) == len(other)
        weight = len(own) * e + total - len(own)
        shared = len(own & other)
        results.add((len(own) * e / weight, (shared * e + len(other) - shared) / weight))
    assert len(results) == 1
    return results.pop()


@pytest.mark.parametrize(("k", "epsilon"), CELLS)
def test_points(k, epsilon):
    projective = dp.local.ProjectiveGeometryResponse(k, epsilon)
    assert projective.variance(1) == pytest.approx(rare(*counted(projective)), rel=1e-9)
    response = dp.local.RandomizedResponse(k, epsilon)
    assert response.variance(1) == pytest.approx(rare(*counted(response)), rel=1e-9)
    assert response.variance(1) == pytest.approx((k - 2 + math.exp(epsilon)) / math.expm1(epsilon) ** 2, rel=1e-9)


@pytest.mark.parametrize(("k", "epsilon"), CELLS)
def test_sets(k, epsilon):
    """Sets of w categories: C(k - 1, w - 1) with a category, C(k - 2, w - 2) with two."""
    protocol, e = dp.local.SubsetSelection(k, epsilon), Fraction(math.exp(epsilon))
    w = protocol.subset_size
    one, both = math.comb(k - 1, w - 1), math.comb(k - 2, w - 2) if w > 1 else 0
    weight = one * e + math.comb(k, w) - one
    p, q = one * e / weight, (both * e + one - both) / weight
    assert protocol.variance(1) == pytest.approx(float(rare(p, q)), rel=1e-9)
    smaller = [_sets_of(k, size, epsilon) for size in (w - 1, w + 1) if size]
    assert protocol.variance(1) < 1.001 * min(smaller)


def _sets_of(k, w, epsilon):
    p = w * math.exp(epsilon) / (w * math.exp(epsilon) + k - w)
    return rare(p, (p * (w - 1) + (1 - p) * w) / (k - 1))


@pytest.mark.parametrize(("k", "epsilon"), CELLS)
def test_hashes(k, epsilon):
    """All hash functions, for some pairs of categories: how many agree, and what randomized response makes of it."""
    protocol, e = dp.local.LocalHashing(k, epsilon), math.exp(epsilon)
    g, m = protocol.hash_range, protocol.digits
    add, multiply = field_tables(g)

    def hashes(code):
        functions, result = np.arange(g**m), np.zeros(g**m, dtype=np.int64)
        for _ in range(m):
            functions, digit = np.divmod(functions, g)
            result = add[result, multiply[digit, code % g]]
            code //= g
        return result

    for one, other in ((0, 1), (3, k - 1), (k // 2, k // 2 + 1)):
        agree = np.mean(hashes(one) == hashes(other))
        assert agree == pytest.approx(1 / g, rel=1e-12)
        p, q = e / (e + g - 1), (agree * e + 1 - agree) / (e + g - 1)
        assert protocol.variance(1) == pytest.approx(rare(p, q), rel=1e-9)
    assert protocol.variance(1) < 1.011 * OPTIMIZED[epsilon]


@pytest.mark.parametrize(("k", "epsilon"), CELLS)
def test_bits_and_sketches(k, epsilon):
    """Closed forms for bits; a sketch of m columns has what collisions make of them."""
    m = 1024
    for optimized, number in ((True, OPTIMIZED[epsilon]), (False, SYMMETRIC[epsilon])):
        assert dp.local.UnaryEncoding(k, epsilon, optimized).variance(1) == pytest.approx(number, rel=1e-9)
        sketch = dp.local.CountMeanSketch(epsilon, k, optimized=optimized)
        q = 1 / (math.exp(epsilon if optimized else epsilon / 2) + 1)
        p = 0.5 if optimized else 1 - q
        hit = q + (p - q) / m
        assert sketch.variance(1) == pytest.approx(hit * (1 - hit) / ((p - q) * (1 - 1 / m)) ** 2, rel=1e-9)
        assert sketch.variance(1) == pytest.approx(number, rel=0.03)
    strength = math.expm1(epsilon) / (math.exp(epsilon) + 1)
    signs = dp.local.HadamardCountMeanSketch(epsilon, k, width=m)
    assert signs.variance(1) == pytest.approx((1 / strength**2 - 1 / m**2) / (1 - 1 / m) ** 2, rel=1e-9)
