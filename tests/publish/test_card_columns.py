"""Attributes from a card: keys, bins, parts of dates, expressions, levels with a lookup; NULL and other values.

Public lookups: what a file or a mapping must have, and how its types become those of the card.
"""

from __future__ import annotations

import os
from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import dither as dp
from dither.publish.card_columns import ColumnReader, read_lookup, stated_keys
from dither.publish.domain import first_few, misplaced, places_without
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.query.tree import Call, Column, Literal
from support import refuses

NO_ROWS = pa.table(
    {
        "who": pa.array([], pa.int64()),
        "state": pa.array([], pa.string()),
        "county": pa.array([], pa.string()),
        "age": pa.array([], pa.int64()),
        "amount": pa.array([], pa.float64()),
        "vip": pa.array([], pa.bool_()),
        "day": pa.array([], pa.date32()),
        "at": pa.array([], pa.timestamp("us")),
        "note": pa.array([], pa.string()),
    }
)


@pytest.fixture(scope="module")
def people():
    bounds = {
        "age": (0, 99),
        "amount": (0, 1000),
        "day": (date(2023, 11, 5), date(2024, 2, 10)),
        "at": (datetime(2024, 1, 1), datetime(2024, 12, 31)),
    }
    keys = {"state": ["A", "B"]}
    with dp.open(NO_ROWS, unit="who", bounds=bounds, keys=keys, budget=dp.ZCDP(1)) as table:
        yield table


def keys_of(people, **columns):
    reader = ColumnReader(people)
    result = [reader.column(name, spec) for name, spec in columns.items()]
    return [item.attribute.keys[-1].to_pylist() for item in result], tuple(item.expression for item in result)


def test_keys_come_from_the_card_or_from_the_plan(people):
    keys, expressions = keys_of(people, state=None, vip={}, county=["A1", "B1"], sex={"column": "note", "keys": ["f"]})
    assert keys == [["A", "B"], [False, True], ["A1", "B1"], ["f"]]
    assert expressions == tuple(map(Column, ("state", "vip", "county", "note")))


def test_whole_numbers_within_narrow_bounds_are_keys_and_other_numbers_have_bins(people):
    keys, _ = keys_of(
        people, age={}, amount={"edges": [0, 10, 100.5]}, decade={"column": "age", "width": 50, "other": "unknown"}
    )
    assert keys[0] == [*range(100)]
    assert keys[1:] == [["[0, 10)", "[10, 100.5)"], ["[0, 50)", "[50, 100)", "unknown"]]


def test_the_last_bin_of_a_width_holds_the_upper_bound(people):
    keys, _ = keys_of(people, amount={"width": 500})
    assert keys == [["[0, 500)", "[500, 1000)", "[1000, 1500)"]]


def test_parts_and_periods_of_dates_follow_from_the_period_of_the_card(people):
    keys, expressions = keys_of(
        people,
        year={"column": "day", "part": "year"},
        weekday={"column": "day", "part": "weekday"},
        month={"column": "day", "period": "month"},
        hour={"column": "at", "part": "hour"},
        quarter={"column": "at", "part": "quarter"},
    )
    months = [date(2023, 11, 1), date(2023, 12, 1), date(2024, 1, 1), date(2024, 2, 1)]
    assert keys == [[2023, 2024], [*range(1, 8)], months, [*range(24)], [1, 2, 3, 4]]
    assert expressions[1] == Call("date_part", (Literal("isodow"), Column("day")))


def test_an_expression_in_sql_or_python_has_the_keys_that_follow_from_it(people):
    keys, expressions = keys_of(
        people,
        month="MONTH(at)",
        adult={"expression": "CASE WHEN age >= 18 THEN 'adult' ELSE 'child' END"},
        rich={"expression": dp.col("amount") > 100},
        young="CASE WHEN age < 18 THEN 'young' END",
    )
    assert keys == [[*range(1, 13)], ["adult", "child"], [False, True], ["young", None]]
    assert expressions[2] == Call(">", (Column("amount"), Literal(100)))


def test_a_condition_narrows_derived_keys(people):
    reader = ColumnReader(people, where="day >= '2024-01-15' AND state = 'A'")
    assert reader.column("day", {"period": "month"}).attribute.keys[0].to_pylist() == [
        date(2024, 1, 1),
        date(2024, 2, 1),
    ]
    assert reader.column("state", None).attribute.keys[0].to_pylist() == ["A"]


def test_each_column_says_what_becomes_of_rows_outside_its_domain(people):
    reader = ColumnReader(people)
    said = {
        "Rows whose `state` is NULL or none of its 2 keys count in no table.": reader.column("state", {}),
        "Rows whose `age` is below 0 or not below 18 count in no table; NULL as NULL count.": reader.column(
            "age", {"edges": [0, 18], "null": True}
        ),
        "Every row counts in `state`, all others as 'else' and NULL as NULL.": reader.column(
            "state", {"null": True, "other": "else"}
        ),
    }
    assert [str(column.outside_note) for column in said.values()] == [*said]


PLACES = {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}


def lookups(folder):
    pa_table = pa.table(PLACES)
    pq.write_table(pa_table, folder / "places.parquet")
    (folder / "places.csv").write_text("state,county,region\nA,A1,x\nA,A2,x\nB,B1,y\n")
    return [
        PLACES,
        {"A1": "A", "A2": "A", "B1": "B"},
        pa_table,
        pa_table.to_pandas(),
        "places.csv",
        str(folder / "places.parquet"),
    ]


def test_levels_come_from_a_mapping_a_frame_or_a_file(people, tmp_path):
    reader = ColumnReader(people, folder=str(tmp_path))
    for lookup in lookups(tmp_path):
        attribute = reader.nested("geo", ["state", "county"], lookup).attribute
        assert [keys.to_pylist() for keys in attribute.keys] == [["A", "B"], ["A1", "A2", "B1"]]
        assert attribute.parents[1].tolist() == [0, 0, 1]
    section = {"levels": ["region", "county"], "lookup": "places.csv", "column": "note", "null": True}
    column = reader.nested("geo", section)
    assert column.expression == Column("note")
    assert column.attribute.keys[0].to_pylist() == ["x", "y", None]


def test_the_only_public_table_with_all_levels_is_the_lookup(tmp_path):
    lookups(tmp_path)
    pq.write_table(NO_ROWS, tmp_path / "rows.parquet")
    columns = {"state": ColumnCard("text", keys=("A", "B")), "county": ColumnCard("text")}
    public = {"places": PublicTable(str(tmp_path / "places.csv"), columns)}
    card = Card("rows", str(tmp_path / "rows.parquet"), columns, public=public, budget=dp.ZCDP(1))
    with dp.open(card, read_only=True) as table:
        for lookup in (None, "places"):
            attribute = ColumnReader(table).nested("geo", ["state", "county"], lookup).attribute
            assert attribute.keys[1].to_pylist() == ["A1", "A2", "B1"]
        with refuses(dp.InvalidArgument, "lookup of geo", "a public table of the card", "'place'", "'places'"):
            ColumnReader(table).nested("geo", ["state", "county"], "place")


def test_a_lookup_that_misses_a_place_of_the_card_is_refused(people):
    with refuses(dp.InvalidArgument, "lookup of geo", "every state of the domain", "'B'"):
        ColumnReader(people).nested("geo", ["state", "county"], {"A1": "A"})


@pytest.mark.parametrize(
    ("name", "spec", "words"),
    [
        ("stat", None, ["columns.stat", "a column of data", "write 'state'"]),
        ("note", None, ["columns.note", "public keys or bins", "keys = […]"]),
        ("amount", None, ["columns.amount", "public keys or bins", "edges = [0, 10, 100]"]),
        ("at", None, ["columns.at", "public keys or bins", 'part = "month"']),
        ("age", {"edge": [0, 1]}, ["columns.age.edge", "write 'edges'"]),
        ("age", {"edges": [0, 1], "width": 3}, ["columns.age", "edges and width"]),
        ("age", {"keys": ["young"]}, ["columns.age.keys", "of type integer", "of type text"]),
        ("state", {"edges": [0, 1]}, ["columns.state", "numbers for bins", "type text"]),
        ("state", {"part": "month"}, ["columns.state.part", "dates or timestamps"]),
        ("day", {"part": "mont"}, ["columns.day.part", "month", "'mont'"]),
        ("note", {"width": 3}, ["columns.note", "a column of numbers"]),
        ("age", {"null": 1}, ["null of age", "true or false"]),
        ("age", {"column": "age", "expression": "age"}, ["column or expression", "both"]),
        ("x", "AGE(", ["Fix"]),
        ("x", "SUM(age)", ["Fix"]),
    ],
)
def test_what_is_wrong_about_a_column_is_said_with_a_fix(people, name, spec, words):
    with refuses(dp.DitherError, *words):
        ColumnReader(people).column(name, spec)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"expression": "NULL"}, ["nested.geo: expected values, got NULL always"]),
        ({"expression": "county", "column": "county"}, ["nested.geo: expected column or expression"]),
    ],
)
def test_what_is_wrong_about_a_nested_attribute_names_its_section(people, change, words):
    with refuses(dp.InvalidArgument, *words):
        ColumnReader(people).nested("geo", {"levels": ["state", "county"], **change}, {"A1": "A"})


def test_the_part_of_a_date_names_its_section(people):
    spec = {"column": "day", "part": "mont"}
    with refuses(dp.InvalidArgument, "nested.geo.part"):
        ColumnReader(people)._counted_expression("county", spec, "nested.geo")


def test_a_plain_list_of_numbers_may_be_keys_or_edges_and_is_refused():
    with refuses(dp.InvalidArgument, "columns.age", "keys or edges, with that name", "a list of numbers"):
        stated_keys("age", [15, 25, 35])
    assert stated_keys("working", [True, False]) == {"keys": [True, False]}


LEVELS = ["state", "county"]


@pytest.fixture(scope="module")
def counties():
    with dp.open(pa.table({"county": [1, 2]}), budget=dp.ZCDP(1)) as table:
        yield table


def test_the_finest_level_has_the_type_of_the_card_and_others_are_text(counties, tmp_path):
    (tmp_path / "places.csv").write_text("county,state\n1,01\n2,01\n3,NA\n")
    places = read_lookup(counties, "geo", LEVELS, "places.csv", {"county": "integer"}, str(tmp_path))
    assert places["county"].to_pylist() == [1, 2, 3]
    assert places["state"].to_pylist() == ["01", "01", "NA"]


def test_rows_of_a_finer_lookup_are_taken_once(counties):
    finer = {"state": ["A", "A", "B"], "county": [1, 1, 2], "tract": ["x", "y", "z"]}
    assert read_lookup(counties, "geo", LEVELS, finer, {}, ".")["county"].to_pylist() == [1, 2]


def test_an_empty_cell_of_a_file_is_a_place_that_is_missing(counties, tmp_path):
    (tmp_path / "places.csv").write_text("county,state\n1,A\n2,\n")
    assert read_lookup(counties, "geo", LEVELS, "places.csv", {}, str(tmp_path))["state"].null_count == 1


@pytest.mark.parametrize(
    ("lookup", "words"),
    [
        (None, ["a public table of the card with the columns state, county", "none"]),
        ("places.csv", ["a file that can be read", "'places.csv'"]),
        ("places", ["a public table of the card, or a .csv or .parquet file", "'places'"]),
        ({"state": ["A"], "conty": [1]}, ["a column county", "none"]),
        ({"state": ["A"], "county": [1, 2]}, ["columns of one length"]),
        ({"state": ["A"], "county": ["one"]}, ["a column county of type integer"]),
        (3, ["a frame", "int"]),
    ],
)
def test_what_is_no_lookup_is_refused(counties, tmp_path, lookup, words):
    with refuses(dp.DitherError, "lookup of geo", *words):
        read_lookup(counties, "geo", LEVELS, lookup, {"county": "integer"}, str(tmp_path))


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_the_file_of_private_rows_is_no_lookup(tmp_path, name):
    """Its places would be those where somebody is."""
    rows = pa.table({"state": ["A", "B"], "county": ["1", "2"]})
    (csv.write_csv if name.endswith("csv") else pq.write_table)(rows, tmp_path / name)
    os.link(tmp_path / name, tmp_path / f"linked_{name}")
    with dp.open(str(tmp_path / name), budget=dp.ZCDP(1)) as table:
        for path in (name, f"linked_{name}", f"../{tmp_path.name}/{name}"):
            with refuses(dp.NotPrivate, "a public file", "holds the private rows"):
                read_lookup(table, "geo", LEVELS, path, {}, str(tmp_path))


def test_many_places_are_cut_and_counted():
    assert first_few([str(i) for i in range(9)]) == "0, 1, 2, 3, 4 and 4 more"


def test_places_without_a_parent_are_named():
    lookup = {"state": ["A", None, None], "county": ["A1", "B1", "C1"]}
    assert places_without(["state", "county"], "state", lookup) == "'B1', 'C1'"


def test_levels_in_the_wrong_order_are_told_apart_from_a_place_in_two():
    reversed_levels = {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}
    assert "coarsest to the finest" in str(misplaced("geo", ["county", "state"], "state", reversed_levels))
    crossing = {"state": ["A", "B", "B"], "county": ["X", "X", "Y"]}
    assert "tell them apart" in str(misplaced("geo", ["state", "county"], "county", crossing))
