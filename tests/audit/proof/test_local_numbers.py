"""Certificates of local reports about numbers, sets and words, against the laws that are sampled."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import dither as dp
from dither.audit.proof.certify import certify_unchecked
from dither.audit.proof.local_numbers import windows_evidence
from dither.local.windows import Windows

SUBJECTS = [
    dp.local.Mean((0, 1), 1),
    dp.local.Mean((0, 1), 0.3),
    dp.local.Mean((-5, 5), 2, "piecewise"),
    dp.local.Distribution((0, 1), 16, 1),
    dp.local.PaddedSets(12, 3, 1),
    dp.local.HeavyHitters(1, 0.1, 4),
]


@pytest.mark.parametrize("protocol", SUBJECTS, ids=repr)
def test_claims_hold(protocol) -> None:
    certificate = dp.audit.certify(protocol)
    assert certificate.holds
    assert certificate.epsilon == pytest.approx(float(protocol.epsilon), rel=1e-9)


@pytest.mark.parametrize("windows", [Windows(5, 3, Fraction(2)), Windows(4, 9, Fraction(1))])
def test_the_curve_of_windows_is_that_of_the_worst_two_places(windows: Windows) -> None:
    law = windows.law()
    for epsilon in (0.0, 0.3, 0.9):
        worst = max(
            float(np.maximum(law[i] - math.exp(epsilon) * law[j], 0).sum())
            for i in range(windows.places)
            for j in range(windows.places)
        )
        low, high = windows_evidence(windows).at(Fraction(epsilon))
        assert float(low) - 1e-12 <= worst <= float(high) + 1e-12


def test_a_client_with_a_larger_epsilon_is_refuted() -> None:
    p = dp.local.Distribution((0, 1), 16, 1)
    object.__setattr__(p, "bins", 16)
    assert certify_unchecked(p).holds

    class Claiming(dp.local.Distribution):
        @property
        def guarantee(self):
            return dp.PureDP(0.9)

    assert certify_unchecked(Claiming((0, 1), 16, 1)).refuted
    with pytest.raises(dp.NotPrivate):
        dp.audit.certify(Claiming((0, 1), 16, 1))
