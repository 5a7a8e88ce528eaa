"""The page of a series: lines with bands, points, and nothing that runs."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa

import dither as dp
from dither.ledger.accounts import Remaining
from dither.present.notes import Note
from dither.stream.series_answer import SeriesAnswer
from support import noted, refuses


def test_a_page_has_a_line_and_a_band_for_each_group_and_is_escaped():
    days = [date(2026, 1, 1) + timedelta(days=i) for i in range(300)]
    rows = tuple((day, ward, float(i)) for i, day in enumerate(days) for ward in ("<a>", None))
    answer = SeriesAnswer(
        ("day", "ward", "n"),
        ("date", "text", "number"),
        rows,
        {"n": (2.0,) * 600},
        dp.PureDP(1),
        (Note("levels"),),
        Remaining("nothing"),
    )
    page = dp.present.series_page(answer, "<title>")
    assert page.count("<polygon") == page.count("<polyline") == 2
    assert "<a>" not in page
    assert "&lt;a&gt;" in page
    assert "<script" not in page
    assert "The last 200 of 600 points." in page
    assert "Levels add up" in page


def test_only_points_of_a_series_have_such_a_page():
    with refuses(dp.InvalidArgument, "series"):
        dp.present.series_page(dp.Answer(("n",), ("integer",), ((7,),), {"n": (6.0,)}, dp.PureDP(1)))


def test_what_limits_leave_out_stands_below_the_lines_before_the_cost():
    days = pa.table({"who": [1, 1, 2], "day": [date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 1)]})
    with dp.open(days, unit="who", budget=dp.ApproxDP(1, 1e-6)) as visits:
        over = visits.over("day", column="day", horizon=9, start="2026-01-01", epsilon=1, delta=1e-6)
        answer = over.agg(n=dp.people()).release(through="2026-01-02")
        free = visits.over(
            "day", column="day", horizon=2, start="2026-01-01", epsilon=1, delta=1e-6, max_participations=2
        ).agg(n=dp.count())
        assert not noted(free.explain(), "series_falling")
        assert noted(free.explain(), "undercount_elsewhere")
    page = dp.present.series_page(answer)
    for words in (
        "too low by an unknown amount",
        "a falling line",
        "not numbers of distinct people",
        "rows with null",
    ):
        assert page.lower().index("</svg>") < page.lower().index(words) < page.index("What it cost")


def test_one_period_is_a_point_with_a_bar_and_groups_that_are_not_drawn_are_counted():
    rows = tuple((date(2026, 1, 1), f"ward {i}", float(i)) for i in range(15))
    answer = SeriesAnswer(
        ("day", "ward", "n"),
        ("date", "text", "number"),
        rows,
        {"n": (2.0,) * 15},
        dp.PureDP(1),
        (Note("levels"),),
        Remaining("nothing"),
    )
    page = dp.present.series_page(answer)
    assert page.count("<circle") == 12
    assert "the first 12 of 15 groups" in page
    colors = [part.split('"')[0] for part in page.split('r="3" fill="')[1:]]
    assert len(set(colors)) == 12
    assert "the first 12 of 15 groups" in answer.plot().get_title()
