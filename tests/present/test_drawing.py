"""Small SVG pictures: valid XML, nothing that runs, every text escaped, the same text every time."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.present import drawing

SVG = "{http://www.w3.org/2000/svg}"


@given(st.text(), st.lists(st.floats(-1e6, 1e6), max_size=20))
def test_a_line_chart_is_valid_xml_whatever_it_shows(name, heights):
    picture = drawing.line_chart([(name, range(len(heights)), heights), ("b", [], [])], title=name, x_label=name)
    tree = ET.fromstring(picture)
    assert {element.tag for element in tree.iter()} <= {f"{SVG}{tag}" for tag in ("svg", "title", "path", "text")}
    assert not [key for element in tree.iter() for key in element.attrib if key.startswith("on")]


def test_points_lie_where_their_values_are():
    picture = drawing.line_chart([("a", [0, 5, 10], [0, 1, 2])], title="t", x_label="x")
    path = next(element for element in ET.fromstring(picture) if element.get("stroke-width") == "2").get("d")
    points = [tuple(map(float, point.split())) for point in path[1:].split("L")]
    (x0, y0), (x1, y1), (x2, y2) = points
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y1 == pytest.approx(y1 - y2)
    assert x2 > x0
    assert y2 < y0  # upward


def test_values_that_are_not_finite_are_left_out():
    picture = drawing.line_chart([("a", [0, 1, 2], [1, math.nan, math.inf])], title="t", x_label="x")
    assert "nan" not in picture
    assert "inf" not in picture.lower().replace("currentcolor", "")


def test_bars_are_in_proportion_and_at_most_so_many():
    picture = drawing.bar_chart([("a", 2, 0), ("b", 4, 1)], title="t")
    widths = [float(element.get("width")) for element in ET.fromstring(picture) if element.tag == f"{SVG}rect"]
    assert widths[1] == pytest.approx(2 * widths[0], abs=0.2)
    assert drawing.bar_chart([("x", 1, 0)] * 99, title="t").count("<rect") == 40
    assert drawing.bar_chart([], title="t").endswith("</svg>")
