"""The numbers behind the pictures: inside the picture, in proportion, and none for what cannot be drawn."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

import dither as dp
from dither.server.pages.charts import BAR_WIDTH, bar_charts, meter, row_labels, timeline
from dither.tables.answer import Answer

values = st.one_of(st.none(), st.integers(-(10**15), 10**15), st.floats(allow_nan=True, allow_infinity=True))
errors = st.one_of(st.none(), st.floats(0, 1e300))


@given(st.lists(st.tuples(values, errors), min_size=1, max_size=8))
def test_every_bar_lies_inside_the_picture(pairs):
    rows = tuple((f"k{i}", value) for i, (value, _) in enumerate(pairs))
    answer = Answer(("key", "n"), ("text", "number"), rows, {"n": tuple(error for _, error in pairs)}, dp.PureDP(1))
    for chart in bar_charts(answer):
        assert len(chart.bars) == len(pairs)
        for bar in chart.bars:
            ends = [bar.begin, bar.begin + bar.length, *(end for end in (bar.low, bar.high) if end is not None)]
            assert all(-0.11 <= end <= BAR_WIDTH + 0.11 for end in ends)


def test_bars_are_in_proportion_and_negative_ones_lie_left_of_zero():
    answer = Answer(("key", "n"), ("text", "integer"), (("a", -10), ("b", 30)), {"n": (1.0, 1.0)}, dp.PureDP(1))
    (chart,) = bar_charts(answer)
    below, above = chart.bars
    assert abs(above.length - 3 * below.length) < 1
    assert abs(below.begin + below.length - chart.zero) < 0.2
    assert above.begin == chart.zero


def test_an_answer_without_rows_or_numbers_has_no_chart():
    assert bar_charts(Answer(("n",), ("integer",), (), {"n": ()}, dp.PureDP(1))) == []
    assert bar_charts(Answer(("m",), ("text",), (("x",),), {"m": (None,)}, dp.PureDP(1))) == []


def test_labels_are_the_keys_and_only_so_many_rows_are_drawn():
    rows = tuple((None if i == 0 else i, i) for i in range(100))
    answer = Answer(("key", "n"), ("integer", "integer"), rows, {"n": (1.0,) * 100}, dp.PureDP(1))
    assert row_labels(answer)[:2] == ["NULL", "1"]
    (chart,) = bar_charts(answer)
    assert (len(chart.bars), chart.more) == (60, 40)
    assert row_labels(Answer(("n",), ("integer",), ((3,),), {"n": (1.0,)}, dp.PureDP(1))) == ["all rows"]


def test_a_meter_never_shows_more_than_the_limit():
    full = meter(3.0, 2.0, 1.0)
    assert (full.spent, full.now, full.left_text) == (100.0, 0.0, "0")
    assert meter(1.0, None) is None
    assert meter(1.0, 0.0) is None


def test_spending_over_time_rises_and_never_leaves_the_picture():
    start = datetime(2026, 1, 1)
    points = [(start + timedelta(days=i), i / 4) for i in range(5)]
    picture = timeline(points, 2.0)
    assert picture.path == "M0.0 100.0H250.0V87.5H500.0V75.0H750.0V62.5H1000.0V50.0"
    assert (picture.limit, picture.top, picture.begin, picture.end) == (0.0, "2", "2026-01-01", "2026-01-05")
    assert timeline([], 2.0) is None
    assert timeline(points[:1], None).path == "M0.0 100.0"
