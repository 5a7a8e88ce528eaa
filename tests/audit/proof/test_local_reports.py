"""Certificates of local protocols, against brute force over the laws of the papers."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import dither as dp
from dither.audit.proof.certify import certify_unchecked
from dither.audit.suite.local_counterexamples import LOCAL_COUNTEREXAMPLES
from dither.errors import NotPrivate
from support import each

from ...local.laws import PROTOCOLS


def brute_force(law, values, epsilon):
    growth = math.exp(epsilon)
    laws = [law(x) for x in values]
    return max(sum(max(0.0, one[r] - growth * other[r]) for r in one) for one in laws for other in laws)


@each("name", list(PROTOCOLS))
@each("epsilon", [0.5, 1.2])
def test_loss_and_curve_are_those_of_the_enumerated_law(name, epsilon):
    build, law = PROTOCOLS[name]
    p = build(1)
    if name == "subset selection":
        assert p.subset_size == 2
    claimed = float(p.guarantee.epsilon)
    certificate = dp.audit.certify(p, at=epsilon)
    assert certificate.holds
    assert certificate.epsilon == pytest.approx(claimed, abs=1e-12)
    values = range(p.category_count) if p.categories is not None else range(12)
    expected = brute_force(lambda x: law(1, x), values, epsilon)
    if "sketch" in name:  # an upper limit, for values that differ in all rows
        assert expected <= certificate.delta + 1e-12
        assert certificate.delta <= expected * 1.6 + 1e-12
    else:
        assert certificate.delta == pytest.approx(expected, abs=1e-12)


def test_large_protocols_are_certified_without_enumeration():
    for p in (
        dp.local.ProjectiveGeometryResponse(5000, 1),
        dp.local.HadamardResponse(5000, 3),
        dp.local.SubsetSelection(10**6, 2),
        dp.local.CountMeanSketch.apple(4),
        dp.local.HadamardCountMeanSketch.apple(4),
    ):
        assert dp.audit.certify(p).holds


def test_wrong_parameters_are_refuted_and_altered_objects_refused():
    p = dp.local.UnaryEncoding(8, 1, optimized=False)
    object.__setattr__(p, "epsilon", 2)
    assert certify_unchecked(p).epsilon == pytest.approx(2)

    class Careless(dp.local.UnaryEncoding):
        @property
        def flip_epsilon(self):
            return Fraction(self.epsilon)

    careless = Careless(8, 1, optimized=False)
    assert certify_unchecked(careless).refuted
    with pytest.raises(NotPrivate):
        dp.audit.certify(careless)


@pytest.mark.parametrize("case", LOCAL_COUNTEREXAMPLES, ids=lambda case: case.name)
def test_measure_catches_the_broken_twins_quickly(case):
    sure = 1 - 1e-9
    broken = dp.audit.measure(
        case.broken, case.x, case.x_neighbor, batch=True, claim=case.claim, trials=100_000, confidence=sure
    )
    assert broken.refuted
    repaired = dp.audit.measure(
        case.repaired, case.x, case.x_neighbor, batch=True, claim=case.claim, trials=3_000, confidence=sure
    )
    assert not repaired.refuted
