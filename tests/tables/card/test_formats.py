"""Formats of dates in text: which can be read the same on every engine."""

from __future__ import annotations

import pytest

from dither.errors import InvalidArgument
from dither.tables.card.model import ColumnCard
from dither.tables.card.values import FORMATS, NumberFormat, format_problem, number_format, parts_of
from support import each, refuses


@pytest.mark.parametrize("format", ["%Y-%m-%d", "%d.%m.%Y", "%Y%m%d", "%m/%d/%Y", "day %d of %m in %Y"])
def test_formats_of_dates(format):
    assert format_problem(format, "date") == ""
    assert format_problem(format, "timestamp") == ""
    assert sum(part.most or 1 for part in parts_of(format)) == len(format) + 2  # %Y is four digits, the others two


def test_parts_without_a_sign_between_them_have_all_their_digits():
    least = {format: [part.least for part in parts_of(format) if part.most] for format in ("%Y%m%d", "%m/%d/%Y")}
    assert least == {"%Y%m%d": [4, 2, 2], "%m/%d/%Y": [1, 1, 4]}


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


def test_formats_of_numbers():
    assert number_format("1234,56", "number") == NumberFormat("", "", ",", "")
    assert number_format("CHF 1'234.56", "number") == NumberFormat("CHF", "'", ".", "")
    assert number_format("1 234,56 €", "number") == NumberFormat("", " ", ",", "€")
    assert number_format("1.234", "integer") == NumberFormat("", ".", "", "")


NO_NUMBERS = [
    "", "1234", "1,234", "1.234.56", "1,234,56", "12,34.56", "1234.5", "1234.567", "-1234.56", "1 1234.56", "[1234.56",
    "1234.56]", "^1234.56", "1234.56\\", ".1234.56", "$-1234.56", "5%", "%Y-%m-%d", "a" * 9 + "1234.56", "\n1234.56",
    "1234.56 $\n", "1234.56(", "1234.56*", "1234.56?", "\u0661234.56",
]  # fmt: skip


@each("format", NO_NUMBERS)
def test_other_formats_of_numbers_are_refused(format):
    assert format_problem(format, "number") == "the number 1234.56 as the column writes it"
    with refuses(InvalidArgument, "1234.56 as the column writes it"):
        ColumnCard("number", format=format)


def test_formats_of_other_types_are_refused():
    assert format_problem("1,234.56", "integer") == "the number 1234 as the column writes it"
    with refuses(InvalidArgument, "none for this type"):
        ColumnCard("text", format="1234.56")
