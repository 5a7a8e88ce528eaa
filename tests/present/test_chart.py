"""Charts: one value, drawn as SVG and by matplotlib; valid XML, in proportion, and inside the picture."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from datetime import date, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dp
from dither.present.chart import Axis, Chart, Mark, Style, bars, lines, spending, ticks
from dither.present.drawing import draw, svg
from dither.stream.series_answer import SeriesAnswer
from support import refuses

SVG = "{http://www.w3.org/2000/svg}"
KNOWN = {f"{SVG}{tag}" for tag in ("svg", "title", "path", "text", "line", "polyline", "polygon", "rect", "circle")}
numbers = st.floats() | st.integers() | st.none()


def read(chart: Chart, **size: Any) -> ET.Element:
    """The picture: valid XML of known tags, without handlers and without numbers that no browser reads."""
    tree = ET.fromstring(svg(chart, **size))
    for element in tree.iter():
        assert element.tag in KNOWN
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert name == "aria-label" or not {"nan", "inf"} & set(re.split(r"[ ,%]", value))
    return tree


def found(tree: ET.Element, tag: str) -> list[ET.Element]:
    return [element for element in tree.iter() if element.tag == f"{SVG}{tag}"]


def share(element: ET.Element, name: str) -> float:
    return float(element.attrib[name].removesuffix("%"))


def answer(pairs: list[tuple[Any, Any]]) -> dp.Answer:
    rows = tuple((f"k{i}", value) for i, (value, _) in enumerate(pairs))
    return dp.Answer(("key", "n"), ("text", "number"), rows, {"n": tuple(error for _, error in pairs)}, dp.PureDP(1))


@given(st.text(), st.lists(numbers, max_size=20), st.sampled_from(get_args(Style)))
def test_a_plane_is_valid_whatever_it_shows(name, heights, style):
    marks = Mark(heights, range(len(heights)), name, style, errors=heights), Mark((), name="b"), Mark((1,), (2,), name)
    read(Chart(name, marks, Axis(name), Axis(name), heading=name, note=name))


@given(st.lists(st.tuples(numbers, st.floats(min_value=0) | st.none()), min_size=1, max_size=8))
def test_every_bar_and_interval_lies_inside_the_picture(pairs):
    tree = read(answer(pairs).chart())
    for bar in found(tree, "rect"):
        assert -0.01 <= share(bar, "x") <= share(bar, "x") + share(bar, "width") <= 100.01
    for line in found(tree, "line"):
        assert -0.01 <= share(line, "x1") <= share(line, "x2") <= 100.01


def test_bars_are_in_proportion_and_negative_ones_lie_left_of_zero():
    tree = read(bars([("a", -10, 1.0), ("b", 30, 1.0)], title="t"))
    below, above = found(tree, "rect")
    (zero,) = (line for line in found(tree, "line") if line.attrib["class"] == "zero")
    assert share(above, "width") == pytest.approx(3 * share(below, "width"), abs=0.05)
    assert share(below, "x") + share(below, "width") == pytest.approx(share(zero, "x1"), abs=0.02)
    assert share(above, "x") == share(zero, "x1")


@pytest.mark.parametrize(("pairs", "caps"), [([(12, 20.0), (40, 20.0)], 4), ([(12, 1e6)], 0)])
def test_an_interval_is_drawn_whole_or_without_a_cap(pairs, caps):
    """Errors below 0 of numbers that are not; one wild error goes on beyond the picture."""
    intervals = [line for line in found(read(answer(pairs).chart()), "line") if line.attrib["class"] == "interval"]
    assert sum(line.attrib["x1"] == line.attrib["x2"] for line in intervals) == caps
    assert share(intervals[0], "x1") < share(intervals[0], "x2")


def test_points_lie_where_their_values_are():
    (line,) = found(read(lines([("a", [0, 5, 10], [0, 1, 2])], title="t", x_label="x")), "polyline")
    (x0, y0), (x1, y1), (x2, y2) = (tuple(map(float, point.split(","))) for point in line.attrib["points"].split())
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y1 == pytest.approx(y1 - y2)
    assert x2 > x0
    assert y2 < y0  # upward


def test_long_labels_stand_above_their_bars():
    """A phone has no room for them beside bars."""
    for label, row in (("north", 24), ("a region with a long name", 40)):
        first, second = found(
            read(bars([(label, 1, 0.5), (label, 2, 0.5)], title="t", texts=["1,000 ± 10"] * 2)), "rect"
        )
        assert float(second.attrib["y"]) - float(first.attrib["y"]) == row


def test_labels_are_the_keys_and_only_the_first_rows_are_drawn():
    rows = tuple((None if i == 0 else i, i) for i in range(100))
    many = dp.Answer(("key", "n"), ("integer", "integer"), rows, {"n": (1.0,) * 100}, dp.PureDP(1))
    chart = many.chart()
    assert len(many.plot().patches) == 100
    assert (chart.categories[:2], len(chart.categories)) == (("NULL", "1"), 60)
    assert "The first 60 of 100 rows are drawn." in svg(chart)
    assert dp.Answer(("n",), ("integer",), ((3,),), {"n": (1.0,)}, dp.PureDP(1)).chart().categories == ("all rows",)


def test_a_chart_of_what_is_not_there_is_refused():
    with refuses(dp.InvalidArgument, "one of n"):
        answer([(1, 1.0)]).chart("key")
    texts = dp.Answer(("m",), ("text",), (("x",),), {"m": (None,)}, dp.PureDP(1))
    assert texts.drawable() == []
    with refuses(dp.InvalidArgument, "noisy numbers"):
        texts.chart()


@pytest.mark.parametrize("pairs", [[], [(None, 1.0)], [(math.inf, None)]])
def test_an_answer_without_numbers_has_an_empty_chart(pairs):
    """A plot is paid for before it is known whether any group is shown."""
    assert answer(pairs).drawable() == []
    assert found(read(answer(pairs).chart()), "rect") == []
    assert len(answer(pairs).plot().patches) == 0


def test_a_series_has_a_line_and_a_band_for_each_group():
    days = [date(2026, 1, 1) + timedelta(days=i) for i in range(30)]
    rows = tuple((day, ward, float(i)) for i, day in enumerate(days) for ward in ("<a>", None))
    series = SeriesAnswer(("day", "ward", "n"), ("date", "text", "number"), rows, {"n": (2.0,) * 60}, dp.PureDP(1))
    tree = read(series.chart())
    assert len(found(tree, "polyline")) == len(found(tree, "polygon")) == 2
    texts = [element.text for element in found(tree, "text")]
    assert {"<a>", "NULL", "2026-01-01", "2026-01-30"} <= set(texts)
    drawn = series.plot()
    assert len(drawn.get_lines()) == 2
    assert [text.get_text() for text in drawn.get_legend().get_texts()] == ["<a>", "NULL"]


def test_one_period_is_a_point_with_its_interval_and_groups_that_are_not_drawn_are_counted():
    rows = tuple((date(2026, 1, 1), f"ward {i}", float(i)) for i in range(15))
    series = SeriesAnswer(("day", "ward", "n"), ("date", "text", "number"), rows, {"n": (2.0,) * 15}, dp.PureDP(1))
    points = [path for path in found(read(series.chart()), "path") if path.attrib["class"] == "point"]
    assert len({point.attrib["stroke"] for point in points}) == len({point.attrib["d"] for point in points}) == 12
    assert "The first 12 of 15 groups" in svg(series.chart())
    assert "The first 12 of 15 groups" in series.plot().get_title()


def test_spending_over_time_rises_in_steps_and_never_leaves_the_picture():
    start = datetime(2026, 1, 1)
    points = [(start + timedelta(days=i), i / 4) for i in range(5)]
    points.insert(2, (start, 0.3))  # a clock that went back
    chart = spending(points, 2.0, title="t", unit="ε")
    assert list(chart.marks[0].x) == sorted(chart.marks[0].x)
    paths = {path.attrib["class"]: path.attrib["d"] for path in found(read(chart, height=100), "path")}
    assert paths["steps"] == "M0.0 100.0H250.0V87.5H250.0V85.0H500.0V75.0H750.0V62.5H1000.0V50.0"
    assert [step.get_ydata().tolist() for step in draw(chart).get_lines()][1] == [2.0, 2.0]
    read(spending([], 2.0, title="t", unit="ε"))
    read(spending(points[:1], None, title="t", unit="ε"))


def test_matplotlib_draws_the_marks_of_the_same_chart():
    chart = Chart(
        "t", (Mark((1, None), style="bars", errors=(0.5, 0.5)), Mark((2, 3), style="points")), categories=("a", "b")
    )
    axes = draw(chart)
    assert [float(bar.get_height()) for bar in axes.patches] == [1.0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]
    area = Chart("", (Mark((1, 2), (1, 10), style="area", errors=(1, 1)),), Axis(log=True), Axis(log=True))
    axes = draw(area)
    assert (axes.get_xscale(), axes.get_yscale(), len(axes.collections)) == ("log", "log", 1)
    assert axes.get_xlim()[0] < 1 < 10 < axes.get_xlim()[1]
    assert len(found(read(area), "polygon")) == 1


def test_dollar_signs_of_keys_and_names_are_no_formula():
    rows = (("$\\frac{$", 1), ("5$", 2))
    axes = dp.Answer(("k", "$n$"), ("text", "integer"), rows, {"$n$": (1.0, 1.0)}, dp.PureDP(1)).plot()
    axes.figure.canvas.draw()  # where a wrong formula fails


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e9))
def test_ticks_are_a_few_round_numbers_between_the_ends(low, width):
    high = low + width
    marks = ticks(low, high)
    assert 1 <= len(marks) <= 7
    assert all(low - width / 1e6 <= mark <= high + width / 1e6 for mark in marks)


def test_values_that_cannot_be_drawn_are_left_out():
    (line,) = found(read(lines([("a", [0, 1, 2, 3], [1, math.nan, math.inf, 2])], title="t", x_label="x")), "polyline")
    assert len(line.attrib["points"].split()) == 2
