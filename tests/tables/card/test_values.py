"""Constants are plain where they enter: no subclass can make a statement mean something else, or fail on a row."""

from __future__ import annotations

import enum
import math
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dp
from dither.errors import InvalidArgument, WrongType
from dither.tables.card.model import ColumnCard
from dither.tables.card.values import FORMATS, NumberFormat, format_problem, number_format, parts_of, plain_value
from dither.tables.query.nodes import literal, render
from dither.tables.query.tree import Aggregate, Column, Group, Literal
from support import each, refuses

PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.dates(),
    st.datetimes(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
)  # fmt: skip


def disguised(value: object) -> object:
    """The same value as an instance of a subclass that shows itself as something else."""
    if value is None or isinstance(value, bool):
        return value
    odd = {name: lambda *_: "'); odd" for name in ("__str__", "__repr__", "__format__", "isoformat")}
    kind = type("Odd", (type(value),), odd)
    if isinstance(value, datetime):
        return kind(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return kind(value.year, value.month, value.day) if isinstance(value, date) else kind(value)


@given(PLAIN)
def test_a_disguised_constant_is_the_same_constant(value):
    plain = plain_value(disguised(value))
    assert type(plain) is type(value)
    assert plain == value
    for dialect in ("duckdb", "postgres", "spark"):
        assert render(literal(disguised(value)), dialect) == render(literal(value), dialect)
    assert type(Literal(disguised(value)).value) is type(value)


class Region(enum.StrEnum):
    A = "a"

    def __str__(self) -> str:
        return "Region.A"


class Size(float, enum.Enum):
    X = 5.0


class Code(int, enum.Enum):
    Z = 0


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Region.A, "a"), (Size.X, 5.0), (Code.Z, 0), (np.float64(2.5), 2.5), (np.int8(3), 3), (np.bool_(True), True),
        (np.str_("x"), "x"), (pd.Timestamp("2024-01-31 12:00"), datetime(2024, 1, 31, 12)), (math.inf, math.inf),
        (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_members_of_enumerations_and_numbers_of_libraries(value, plain):
    assert plain_value(value) == plain
    assert type(plain_value(value)) is type(plain)
    for keys in (
        ColumnCard("text", keys=(value,)).keys,
        Group("g", Column("g"), (value,)).keys,
        Aggregate("mode", Column("g"), keys=(value,)).keys,
    ):
        assert [type(key) for key in keys] == [type(plain)]


@pytest.mark.parametrize("value", [pd.NaT, pd.Timestamp("2024-01-01") + pd.Timedelta(1, "ns"), pd.NA, [], 1j, b"x"])
def test_what_has_no_plain_value_is_refused(value):
    with refuses(WrongType, "literal: expected a number, text, boolean, date, datetime or None"):
        plain_value(value)


def test_questions_about_members_of_enumerations_are_those_about_their_values():
    rows = pd.DataFrame({"u": range(100), "r": ["a", "b"] * 50, "x": [5.0] * 50 + [6.0] * 50}).astype({"r": "string"})
    with dp.open(rows, unit="u", budget=dp.PureDP(1000), bounds={"x": (0, 10)}) as table:
        first = table.where(dp.col("r") == Region.A).agg(n=dp.count()).release(100)
        again = table.where(dp.col("r") == "a").agg(n=dp.count()).release(100)
        assert again.replayed
        assert first["n"] == again["n"]
        assert first["n"][0] == pytest.approx(50, abs=3)
        for condition in (dp.col("u") == Code.Z, dp.col("x") == Size.X):
            assert not table.where(condition).agg(n=dp.count()).release(100).replayed


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
