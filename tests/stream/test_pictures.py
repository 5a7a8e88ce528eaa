"""How series look in a notebook: their promise and their errors, and nothing that is secret."""

from __future__ import annotations

import pytest

import dither as dp
from dither.stream import pictures

BUDGET = {"horizon": 30, "epsilon": 1, "delta": 1e-9}
SERIES = [
    (dp.stream.RunningSum, {}, "± of the running sum (95 %)"),
    (dp.stream.RunningMean, {}, "± of the mean so far (95 %)"),
    (dp.stream.SlidingWindow, {"window": 7}, "± of the sum over the window (95 %)"),
    (dp.stream.Histogram, {"bins": 3}, "± of the running sum (95 %)"),
]


@pytest.mark.parametrize(("kind", "more", "title"), SERIES, ids=[kind.__name__ for kind, _, _ in SERIES])
def test_a_series_shows_its_promise_and_its_errors(kind, more, title):
    series = kind(**BUDGET, **more)
    page = series._repr_html_()
    assert page.count("<svg") == 1
    assert f'aria-label="{title}"' in page
    assert "(ε, δ) = (1, 1e-09), once for all steps" in page
    assert f"± {series.error(30):.3g} after step 30" in page
    assert f"{kind.__name__}, 0 steps released" in page


def test_what_was_released_is_not_shown():
    series = dp.stream.RunningSum(**BUDGET)
    before = series._repr_html_()
    series.release(123_456)
    assert series._repr_html_() == before.replace("0 steps released", "1 steps released")


def test_of_a_long_horizon_some_steps_are_drawn():
    plan = dp.stream.StreamPlan(horizon=10_000, budget=dp.PureDP(1))
    steps = pictures.places(plan)
    assert (steps[0], steps[-1], len(steps)) == (1, 10_000, 61)
    assert "after step 10,000" in plan._repr_html_()


def test_an_unknown_horizon_is_said():
    plan = dp.stream.StreamPlan(horizon=None, budget=dp.ZCDP(0.1), max_participations=3, min_separation=5)
    page = plan._repr_html_()
    assert "not known" in page
    assert "in at most 3 steps, at least 5 apart" in page
