"""Drafts of cards: they can be read back, their examples are right, and they hold nothing of the rows."""

from __future__ import annotations

import re
import tomllib
from datetime import date, datetime
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import InvalidArgument, InvalidData
from dither.guarantees import ApproxDP, PureDP
from dither.tables.card import toml
from dither.tables.card.model import Card, ColumnCard
from dither.tables.draft import draft
from support import refuses

TABLE = pa.table(
    {
        "patient": [1], "amount": [2.5], "region": ["a secret"], "alive": [True], "born": [date(2024, 1, 1)],
        "seen": [datetime(2024, 1, 1)], "list": [[1]],
    }
)  # fmt: skip


def uncommented(text: str) -> str:
    """A draft with every example in it made real."""
    return re.sub(r"^# (?=[a-z_]+ = |\[)", "", text, flags=re.M)


def test_a_draft_can_be_read(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "Visits 2024.parquet")
    text = draft(tmp_path / "Visits 2024.parquet", "patient")
    assert "secret" not in text
    assert max(map(len, text.splitlines())) <= 120
    path = tmp_path / "card.toml"
    path.write_text(text, encoding="utf-8")
    card = toml.read(path)
    assert card == Card(
        name="visits_2024",
        source=str(tmp_path / "Visits 2024.parquet"),
        columns={
            "patient": ColumnCard("integer"), "amount": ColumnCard("number"), "region": ColumnCard("text"),
            "alive": ColumnCard("boolean", None, (True, False)), "born": ColumnCard("date"),
            "seen": ColumnCard("timestamp"),
        },
        unit="patient",
        ledger=str(tmp_path / "visits_2024.ledger.sqlite"),
        max_groups="auto",
        max_rows="auto",
        budget=ApproxDP(1, 1e-6),
        delta=1e-9,
        rows_without_unit="drop",
    )  # fmt: skip
    assert "list" in text


def test_the_examples_in_a_draft_are_right(tmp_path: Path) -> None:
    card = toml.parse(tomllib.loads(uncommented(draft(TABLE, "patient", name="visits"))))
    assert card.columns["amount"].bounds == (0, 100)
    assert card.columns["region"].keys == ("north", "south")
    assert card.public["districts"].columns["postcode"] == ColumnCard("text")
    assert card.budget == ApproxDP(1, 1e-6)
    assert card.each_analyst == PureDP(0.5)
    assert card.delta == 1e-9
    assert card.columns["born"].period == (date(2024, 1, 1), date(2024, 12, 31))


def test_a_draft_of_a_csv_file_guesses_no_types(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("who,amount\n7,1.5\n")
    text = draft(str(tmp_path / "t.csv"), "who")
    assert '[columns.amount]\ntype = "text"  # to be filled in' in text
    assert "not guessed" in text
    card = toml.parse(tomllib.loads(text))
    assert card.columns == {"who": ColumnCard("text"), "amount": ColumnCard("text")}


def test_a_draft_without_a_unit() -> None:
    card = toml.parse(tomllib.loads(draft(TABLE)))
    assert (card.name, card.unit, card.budget, card.each_person) == ("data", None, ApproxDP(1, 1e-6), None)


def test_a_draft_of_a_database(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as own:
        own.execute("CREATE TABLE visits (who INTEGER)")
    card = toml.parse(tomllib.loads(draft(f"{tmp_path}/d.duckdb::visits", "who")))
    assert (card.name, card.source) == ("visits", f"{tmp_path}/d.duckdb::visits")


def test_a_draft_holds_no_password(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as own:
        own.execute("CREATE TABLE drafted (who integer)")
    text = draft(f"{postgres.replace('postgres@', 'postgres:sekret@')}&password=sekret::drafted", "who")
    assert "sekret" not in text
    assert toml.parse(tomllib.loads(text)).source == f"{postgres}::drafted"


def test_a_table_that_leads_to_nobody_is_proposed_as_public_and_stays_out(tmp_path: Path) -> None:
    """TPC-H's nations were private tables with a path by a key that customers refer to them by."""
    tables = {
        "customer": pa.table({"c_custkey": [1], "c_nationkey": [1]}),
        "orders": pa.table({"o_orderkey": [1], "o_custkey": [1]}),
        "lineitem": pa.table({"l_orderkey": [1], "l_suppkey": [1]}),
        "nation": pa.table({"n_nationkey": [1], "n_name": ["x"]}),
        "supplier": pa.table({"s_suppkey": [1], "s_nationkey": [1]}),
    }
    for name, rows in tables.items():
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    sources = {name: str(tmp_path / f"{name}.parquet") for name in tables}
    text = draft(sources, "c_custkey", "tpch")
    card = toml.parse(tomllib.loads(text))
    assert set(card.private_tables) == {"customer", "orders", "lineitem"}
    assert not card.public
    proposed = [line.removeprefix("# ") for line in text.splitlines()]
    assert "[public.nation]" in proposed
    assert "[public.supplier]" in proposed
    assert 'columns = { "n_nationkey" = "integer", "n_name" = "text" }' in proposed


def test_drafts_that_are_refused() -> None:
    with pytest.raises(
        InvalidArgument,
        match=r"unit: expected one of the source's columns, got 'patent'\. Fix: write 'patient'",
    ):
        draft(TABLE, "patent")
    with refuses(InvalidArgument, "unit: expected a column of every table", "none"):
        draft({"visits": TABLE, "stays": TABLE})
    with refuses(InvalidArgument, "unit: expected a column of one of the tables", "'patent'"):
        draft({"visits": TABLE, "stays": pa.table({"who": [1]})}, "patent")
    with refuses(InvalidArgument, "name: expected a name for all tables together", "that of one of them"):
        draft({"visits": TABLE, "stays": TABLE}, "patient", "visits")
    with refuses(InvalidArgument, "name: expected"):
        draft(TABLE, name="a b")
    with refuses(InvalidData):
        draft("nothing.parquet")


PRINTABLE = st.just(" ") | st.characters(exclude_categories=("C", "Z"))  # what str.isprintable accepts


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.lists(
        st.text(PRINTABLE, min_size=1, max_size=12).filter(str.strip),
        min_size=1,
        max_size=16,
    )
)
def test_odd_names_survive(names: list[str]) -> None:
    folded = {name.casefold(): name for name in names}
    if len({name.lower() for name in folded.values()}) < len(folded):
        return
    table = pa.table({name: [1] for name in folded.values()})
    unit = next(iter(folded.values()))
    card = toml.parse(tomllib.loads(draft(table, unit, name="t")))
    assert set(card.columns) == set(folded.values())
    assert card.unit == unit
