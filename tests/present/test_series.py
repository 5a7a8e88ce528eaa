"""The page of a series: lines with bands, points, and nothing that runs."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa

import dither as dp
from dither.ledger.accounts import Remaining
from dither.present.notes import Note
from dither.stream.series_answer import SeriesAnswer
from support import noted


def test_a_page_shows_the_last_points_and_is_escaped():
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
    page = dp.present.html(answer, "<title>")
    assert "<a>" not in page
    assert "&lt;a&gt;" in page
    assert "<script" not in page
    assert "The last 200 of 600 points." in page
    assert "Levels add up" in page


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
    page = dp.present.html(answer)
    for words in (
        "too low by an unknown amount",
        "a falling line",
        "not numbers of distinct people",
        "rows with null",
    ):
        assert page.lower().index("</svg>") < page.lower().index(words) < page.index("What it cost")
