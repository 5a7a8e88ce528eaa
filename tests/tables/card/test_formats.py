"""Formats of dates in text: which can be read the same on every engine."""

from __future__ import annotations

import pytest

from dither.tables.card.formats import FORMATS, format_problem, parts_of


@pytest.mark.parametrize("format", ["%Y-%m-%d", "%d.%m.%Y", "%Y%m%d", "%m/%d/%Y", "day %d of %m in %Y"])
def test_formats_of_dates(format):
    assert format_problem(format, "date") == ""
    assert format_problem(format, "timestamp") == ""
    assert sum(width for _, width in parts_of(format)) == len(format) + 2  # %Y is four digits, the others two


def test_formats_of_timestamps():
    assert format_problem(FORMATS["timestamp"], "timestamp") == ""
    assert format_problem("%Y-%m-%dT%H", "timestamp") == ""
    assert format_problem(FORMATS["timestamp"], "date") != ""


WRONG = [
    "", "%Y-%m-%d %d", "%Y-%j-%d", "%Y-%m-%d%", "%%Y-%m-%d", "%Y\\%m-%d", "%Y1%m%d", "%Y-%m-%d" + " " * 40,
    "%Y-%m-%d %S", "%Y-%m-%d %H:%S", "%Y^%m%d",
]  # fmt: skip


@pytest.mark.parametrize("format", WRONG)
def test_others_are_refused(format):
    assert format_problem(format, "date") != ""
    assert format_problem(format, "timestamp") != ""
