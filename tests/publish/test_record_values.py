"""What codes stand for: numbers, dates and moments inside bins and periods, NULL, keys of nested levels."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pytest

import dither as dp
from dither.publish import Attribute, Domain
from dither.publish.record_values import record_columns
from support import refuses

ALL = np.linspace(0, 1, 2001)[:-1]


def drawn(attribute, code, **described):
    (column,) = record_columns(Domain([attribute]), **described)
    codes = np.full(len(ALL), code)
    return column.arrays(codes, column.numbers(codes, ALL))[attribute.level_names[-1]].to_pylist()


@pytest.mark.parametrize(
    ("edges", "type", "expected"),
    [
        ([0, 5, 9], "integer", {5, 6, 7, 8}),
        ([0, 4.5, 7.25], "integer", {5, 6, 7}),
        ([0, 19_000, 19_002], "date", {date(2022, 1, 8), date(2022, 1, 9)}),
    ],
)
def test_every_value_of_a_bin_is_drawn_and_no_other(edges, type, expected):
    assert {*drawn(Attribute.binned("x", edges), 1, types={"x": type})} == expected


def test_numbers_fill_their_bin_and_stay_below_its_edge():
    values = drawn(Attribute.binned("x", [0.0, 0.1, 0.30000000000000004]), 1)
    assert min(values) == 0.1
    assert 0.2998 < max(values) < 0.30000000000000004


def test_periods_are_filled_to_their_last_day_and_moment():
    months = Attribute.flat("day", [date(2024, 2, 1), date(2024, 12, 1)], null=True)
    assert {*drawn(months, 0, periods={"day": "month"})} == {date(2024, 2, day) for day in range(1, 30)}
    assert max(drawn(months, 1, periods={"day": "month"})) == date(2024, 12, 31)
    assert {*drawn(months, 2, periods={"day": "month"})} == {None}
    hours = Attribute.flat("at", [datetime(2024, 1, 1, 23)])
    moments = drawn(hours, 0, periods={"at": "hour"})
    assert min(moments) == datetime(2024, 1, 1, 23)
    assert datetime(2024, 1, 1, 23, 59) < max(moments) < datetime(2024, 1, 2)


def test_all_levels_of_a_place_come_back():
    places = Attribute.nested("geo", ["state", "county"], {"state": ["A", "B"], "county": ["A1", "B1"]}, null=True)
    (column,) = record_columns(Domain([places]))
    arrays = column.arrays(np.array([1, 0, 2]), None)
    assert {name: values.to_pylist() for name, values in arrays.items()} == {
        "state": ["B", "A", None],
        "county": ["B1", "A1", None],
    }
    assert column.values_at(1) == {"state": "B", "county": "B1"}


def test_a_bin_without_whole_numbers_is_refused():
    with refuses(dp.InvalidArgument, "edges of x", "a bin without any"):
        record_columns(Domain([Attribute.binned("x", [0, 0.25, 0.5, 3])]), {"x": "integer"})
