"""The recommended protocol is the best of those that fit, and says why."""

from __future__ import annotations

import pytest

import dither as dp
from dither.errors import InvalidArgument
from support import each


@each("epsilon", [0.5, 1, 2, 4])
@each("k", [2, 3, 16, 128, 1024])
def test_the_best_is_within_one_percent_of_subset_selection(k, epsilon):
    choice = dp.local.best(categories=k, epsilon=epsilon)
    optimum = dp.local.SubsetSelection(k, epsilon).variance(1)
    assert choice.protocol.variance(1) <= 1.01 * optimum
    assert choice.protocol.variance(1) == pytest.approx(min(p.variance(1) for p in choice.alternatives))


def test_limits_on_the_length_are_kept():
    for bits in (7, 8, 9, 16, 127, 128):
        choice = dp.local.best(categories=128, epsilon=1, max_bits=bits)
        assert all(p.report_bits <= bits for p in choice.alternatives)
        assert f"at most {bits} bits" in choice.reason
    with pytest.raises(InvalidArgument, match="at least 7"):
        dp.local.best(categories=128, epsilon=1, max_bits=6)


def test_it_explains_how_many_people_are_needed():
    choice = dp.local.best(categories=1024, epsilon=2)
    text = choice.explain(error=0.001, confidence=0.9)
    for p in choice.alternatives:
        n = p.people_needed(0.001, 0.9)
        assert f"{n:,}" in text
        assert p.error(0.9, n=n) <= 0.001 < p.error(0.9, n=n - 1)
    assert "SubsetSelection" in choice.reason
    assert "ProjectiveGeometryResponse" in choice.reason
    assert str(choice) == choice.explain()
