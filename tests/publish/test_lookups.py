"""Public lookups: what a file or a mapping must have, and how its types become those of the card."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import dither as dp
from dither.publish.lookups import read_lookup
from support import refuses

LEVELS = ["state", "county"]


@pytest.fixture(scope="module")
def people():
    with dp.open(pa.table({"county": [1, 2]}), budget=dp.ZCDP(1)) as table:
        yield table


def test_the_finest_level_has_the_type_of_the_card_and_others_are_text(people, tmp_path):
    (tmp_path / "places.csv").write_text("county,state\n1,01\n2,01\n3,NA\n")
    places = read_lookup(people, "geo", LEVELS, "places.csv", {"county": "integer"}, str(tmp_path))
    assert places["county"].to_pylist() == [1, 2, 3]
    assert places["state"].to_pylist() == ["01", "01", "NA"]


def test_rows_of_a_finer_lookup_are_taken_once(people):
    finer = {"state": ["A", "A", "B"], "county": [1, 1, 2], "tract": ["x", "y", "z"]}
    assert read_lookup(people, "geo", LEVELS, finer, {}, ".")["county"].to_pylist() == [1, 2]


def test_an_empty_cell_of_a_file_is_a_place_that_is_missing(people, tmp_path):
    (tmp_path / "places.csv").write_text("county,state\n1,A\n2,\n")
    assert read_lookup(people, "geo", LEVELS, "places.csv", {}, str(tmp_path))["state"].null_count == 1


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
def test_what_is_no_lookup_is_refused(people, tmp_path, lookup, words):
    with refuses(dp.DitherError, "lookup of geo", *words):
        read_lookup(people, "geo", LEVELS, lookup, {"county": "integer"}, str(tmp_path))


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
