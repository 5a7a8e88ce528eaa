"""Windows: the law of a report, the ratio of its probabilities, and draws against the law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dither as dp
from dither.local.windows import Windows, line_bounds
from dither.randomness import SYSTEM

CASES = [Windows(2, 1, Fraction(1)), Windows(5, 3, Fraction(2)), Windows(9, 12, Fraction(1, 2))]


@pytest.mark.parametrize("windows", CASES)
def test_every_report_is_at_most_e_to_the_epsilon_times_as_likely(windows: Windows) -> None:
    law = windows.law()
    assert law.shape == (windows.places, windows.total)
    assert np.allclose(law.sum(axis=1), 1)
    ratios = law.max(axis=0) / law.min(axis=0)
    assert ratios.max() == pytest.approx(math.exp(float(windows.epsilon)), rel=1e-12)


@pytest.mark.parametrize("windows", CASES)
def test_the_mean_report_is_a_straight_line(windows: Windows) -> None:
    means = windows.law() @ np.arange(windows.total)
    assert np.allclose(np.diff(means), windows.slope)
    assert means.mean() == pytest.approx((windows.total - 1) / 2)


@pytest.mark.parametrize("windows", CASES)
def test_draws_follow_the_law_and_no_other(windows: Windows) -> None:
    n = 100_000
    place = windows.places // 2
    drawn = np.bincount(windows.draw(np.full(n, place), SYSTEM), minlength=windows.total)
    assert stats.chisquare(drawn, windows.law()[place] * n).pvalue > 1e-9
    wrong = Windows(windows.places, windows.width, windows.epsilon * Fraction(11, 10))
    if windows.epsilon >= 1:
        assert stats.chisquare(drawn, wrong.law()[place] * n).pvalue < 1e-9


def test_the_law_of_a_large_epsilon_has_no_zeros() -> None:
    law = Windows(8, 1, Fraction(50)).law()
    assert law.min() == pytest.approx(math.exp(-50), rel=1e-12)


@pytest.mark.parametrize("bounds", [(-1e308, 1e308), (2**53, 2**53 + 1), (0, 5e-324)])
def test_bounds_between_which_floats_tell_no_places_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(dp.InvalidArgument, match="bounds"):
        dp.local.Mean(bounds=bounds, epsilon=1)
    with pytest.raises(dp.InvalidArgument, match="bounds"):
        dp.local.Distribution(bounds=bounds, bins=8, epsilon=1)
    assert line_bounds((0, 2**70)) == (0, 2**70)
