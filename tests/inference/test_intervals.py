"""Kinds of intervals: limits are kept to the domain and are not narrower than the rounding of floats."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.inference import Around, AroundBounded, RankInterval, Root, WithinBounds, outward
from dither.mechanisms import BoundedLaplace, Laplace


@given(st.floats(-1e300, 1e300), st.floats(0, 1e300))
def test_outward_never_moves_limits_inward(low, width):
    high = low + width
    outer = outward(low, high)
    assert outer[0] <= low <= high <= outer[1]
    assert outer[1] - outer[0] <= (high - low) * (1 + 1e-5) + 4 * math.ulp(max(abs(low), abs(high)))


def test_a_number_that_was_kept_to_the_domain_has_the_interval_of_its_end():
    noise = Laplace(1, 1)
    width = noise.error(0.9, integer=False)
    assert Around(noise, low=0.0, high=10.0)(0.0, 0.9) == pytest.approx((0.0, width))
    assert Around(noise, low=0.0, high=10.0)(10.0, 0.9) == pytest.approx((10 - width, 10.0))
    assert Around(noise, factor=2.0)(5.0, 0.9) == pytest.approx((5 - 2 * width, 5 + 2 * width))
    assert Around(noise).half_width(5.0, 0.9) == pytest.approx(width)


def test_bounded_noise_stays_within_its_limits():
    interval = AroundBounded(BoundedLaplace(1, 1, 0, 10))
    low, high = interval(1.0, 0.95)
    assert low == 0
    assert 1 < high <= 10


def test_the_root_of_an_interval_is_that_of_its_limits():
    inner = WithinBounds(-1.0, 9.0)
    assert Root(inner)(2.0, 0.95) == (0.0, 3.0)
    assert inner.text(2.0) == "with noise of a private size"


def test_ranks_grow_with_the_confidence_and_fall_with_the_rate():
    interval = RankInterval(0.5, 1000, 0.0, 1.0)
    assert interval(0.3, 0.95) == (0.0, 1.0)
    assert interval.ranks(0.95) == pytest.approx(2 * math.log(1000 / 0.05))
    assert interval.ranks(0.99) > interval.ranks(0.95) > RankInterval(1.0, 1000, 0.0, 1.0).ranks(0.95)
    assert interval.text(0.3) == "within 20 ranks"
