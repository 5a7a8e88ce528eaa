"""Cards of several tables about the same people: what they say, and every mistake named."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

from dither.errors import InvalidArgument, NotPrivate
from dither.guarantees import ApproxDP
from dither.tables.card import toml
from dither.tables.card.model import Card, ColumnCard, PrivateTable, PublicTable, check_private_tables
from dither.tables.draft import draft
from support import refuses

SEVERAL = """
name = "clinic"
rows_without_unit = "drop"
ledger = "clinic.sqlite"

[budget]
epsilon = 1
delta = 1e-6
per = "person"

[tables.visits]
source = "visits.parquet"
unit = "patient"
rows = 1000
[tables.visits.columns]
patient = "text"
amount = "number"

[tables.patients]
source = "a.duckdb::patients"
unit = "id"
[tables.patients.columns]
id = "text"
region = "text"
"""


def test_a_card_of_several_tables(tmp_path: Path) -> None:
    path = tmp_path / "clinic.toml"
    path.write_text(SEVERAL)
    card = toml.read(path)
    assert (card.source, dict(card.columns), card.unit, card.each_person) == ("", {}, None, ApproxDP(1, 1e-6))
    visits = {"patient": ColumnCard("text"), "amount": ColumnCard("number")}
    assert card.tables == {
        "visits": PrivateTable(str(tmp_path / "visits.parquet"), visits, "patient", 1000),
        "patients": PrivateTable(
            f"{tmp_path}/a.duckdb::patients", {"id": ColumnCard("text"), "region": ColumnCard("text")}, "id"
        ),
    }
    alone = card.for_table("visits")
    assert (alone.name, alone.unit, alone.rows, dict(alone.tables)) == ("visits", "patient", 1000, {})
    gaps = "\n".join(toml.gaps(card))
    assert "no bounds for visits.amount" in gaps
    assert "no keys for patients.region and no delta: GROUP BY region" in gaps
    assert "no unit" not in gaps
    assert "rows without" not in gaps


def test_a_table_of_the_card_itself_and_another() -> None:
    card = toml.parse({**tomllib.loads(SEVERAL), "source": "c.csv", "unit": "who", "columns": {"who": "text"}})
    assert list(card.private_tables) == ["clinic", "visits", "patients"]
    assert dict(card.for_table("clinic").tables) == {}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('unit = "id"', "", "tables.patients.unit: expected a unit, since there are several tables, got none"),
        ('unit = "id"', 'unit = "nobody"', r"tables.patients.unit: .* add \[tables.patients.columns.nobody\]"),
        ('id = "text"', 'id = "integer"', "tables.patients.unit: expected a column of type text, as in visits"),
        ('id = "text"', 'id = "date"', "tables.patients.unit: expected a column of type integer or text"),
        ("[tables.patients]", "[tables.clinic]", "tables.*"),
        ('source = "visits.parquet"', "", "tables.visits.source: expected text, got none"),
        ('unit = "patient"', 'unit = "patient"\nbudget = 1', "tables.visits.budget: expected source, unit, columns"),
        ("rows = 1000", "rows = 0", "rows: expected a whole number"),
        ('patient = "text"', 'patient = "tex"', "tables.visits.columns.patient.type: expected"),
    ],
)
def test_mistakes_in_a_card_of_several_tables(old: str, new: str, said: str) -> None:
    assert old in SEVERAL
    with refuses(InvalidArgument) as caught:
        toml.parse(tomllib.loads(SEVERAL.replace(old, new)))
    assert re.match(said, str(caught.value)), str(caught.value)


def test_a_draft_of_several_tables_can_be_read_back() -> None:
    visits, people = pa.table({"patient": [1], "amount": [2.5]}), pa.table({"patient": ["1"], "region": ["a"]})
    card = toml.parse(tomllib.loads(draft({"visits": visits, "people": people}, "patient", "clinic")))
    assert list(card.private_tables) == ["visits", "people"]
    assert {table.columns["patient"].type for table in card.tables.values()} == {"text"}  # which both of them can be
    assert card.rows_without_unit == "drop"


@pytest.mark.parametrize("source", ["rows.csv", "./rows.csv", "folder/../rows.csv"])
def test_private_rows_are_no_public_table(source):
    columns = {"region": ColumnCard("text")}
    card = Card("visits", "rows.csv", columns, public={"regions": PublicTable(source, columns)})
    with refuses(NotPrivate, "public.regions.source", "another source than the private one"):
        check_private_tables(card)
