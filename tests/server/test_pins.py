"""What is pinned of a table, and which changes would be a fresh budget; cards that are edited are in test_cards."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dither.server.cards import Pin, Pins
from dither.server.store import Store
from dither.tables.card.model import Card, ColumnCard, PrivateTable
from support import each

WHO = {"who": ColumnCard("integer"), "mail": ColumnCard("text")}
COLUMNS = {"a": ColumnCard("integer")}
PIN = Pin("visits", "visits.toml", "visits.sqlite", "visits.toml.receipt", {"visits.csv": "who integer"})
OTHER = Pin("other", "other.toml", "other.sqlite", "other.toml.receipt", {"other.csv": "who integer"})


def test_passwords_are_not_pinned():
    card = Card("t", "postgresql://u:hunter2@h/d::rows", COLUMNS, ledger="postgresql://u:hunter2@h/ledger")
    pin = Pin.of(Path("/cards/t.toml"), card, "/elsewhere/t.receipt")
    assert (pin.ledger, pin.sources, pin.receipt) == (
        "postgresql://h/ledger", {"postgresql://h/d::rows": ""}, "/elsewhere/t.receipt"
    )  # fmt: skip


def test_a_folder_may_move(tmp_path):
    pins = []
    for name in ("before", "after"):
        folder = tmp_path / name
        folder.mkdir()
        tables = {"more": PrivateTable(f"{folder}/more.csv", COLUMNS, None)}
        card = Card("t", f"{folder}/t.duckdb::rows", COLUMNS, ledger=f"{folder}/t.sqlite", tables=tables)
        pins.append(Pin.of(folder / "t.toml", card, f"{folder}/t.toml.receipt"))
    assert pins[0] == pins[1]
    assert pins[0].sources == {"more.csv": "", "t.duckdb::rows": ""}


@each(
    ("change", "refused"),
    [({}, False), ({"ledger": "x"}, True), ({"receipt": "x"}, True), ({"name": "x"}, True),
     ({"name": "x", "file": "x.toml"}, True), ({"sources": {"new.csv": "x text"}}, False),
     ({"sources": {"other.csv": "who integer"}}, True),
     ({"sources": {"visits.csv": "mail text"}}, True), ({"sources": {"visits.csv": "who text"}}, True),
     ({"name": "x", "file": "x.toml", "sources": {"new.csv": ""}}, False)],
)  # fmt: skip
def test_what_would_be_a_fresh_budget(change, refused):
    assert bool(replace(PIN, **change).difference((PIN, OTHER), Path("/cards"))) == refused


@pytest.fixture
def pins(tmp_path):
    with closing(Store(str(tmp_path / "s.sqlite"))) as store:
        yield Pins(store)


def test_rows_stay_pinned_when_a_card_names_others(pins, tmp_path):
    """Otherwise a table could be moved away from its rows, and another card take them up."""
    pins.keep(PIN)
    pins.keep(replace(PIN, sources={"new.csv": ""}))
    [pin] = pins.all()
    assert pin.sources == {"new.csv": "", "visits.csv": "who integer"}
    assert pin.covers(PIN)
    again = replace(PIN, name="again", file="again.toml", ledger="again.sqlite")
    assert again.difference(pins.all(), tmp_path) == "rows that have the budget of visits"


def pin_of(folder, source, name="t", unit="who", **options):
    card = Card(name, source if "::" in source and "://" in source else f"{folder}/{source}", WHO, unit, **options)
    return Pin.of(folder / f"{name}.toml", replace(card, ledger=f"{folder}/{name}.sqlite"), f"{folder}/{name}.receipt")


PG = "postgresql://u:secret@h/d::visits"


@each(
    ("pinned", "source", "same"),
    [("visits.csv", "visit*.csv", True), ("visit*.csv", "visits.csv", True), ("**/vis*.csv", "visits.csv", True),
     ("visits.csv", "hard.csv", True), ("hard.csv", "visits.csv", True), ("visits.csv", "h*.csv", True),
     ("visits.csv", "soft.csv", True), ("visits.csv", "inner/visits.csv", True), ("visits.csv", "gone.csv", False),
     ("visits.csv", "other.csv", False), ("visits.csv", "other*.csv", False), ("oth*.csv", "visits.csv", False),
     ("x.duckdb::visits", "x.duckdb::VISITS", True), ("x.duckdb::visits", "x.duckdb::main.visits", True),
     ("x.duckdb::visits", 'x.duckdb::"visits"', True), ("x.duckdb::visits", 'x.duckdb::"Main"."visits"', True),
     ("x.duckdb::visits", "y.duckdb::visits", True), ("x.duckdb::visits", "x.duckdb::other", False),
     ("x.duckdb::visits", "x.duckdb::more.visits", False), ("x.duckdb::visits", "visits.csv", False),
     (PG, "postgres://v@H:5432/d::public.visits", True), (PG, 'postgresql://h/d?sslmode=require::"visits"', True),
     (PG, "postgresql:///d?host=h::visits", True), (PG, "postgresql://h:5433/d::visits", False),
     (PG, "postgresql://h/e::visits", False), (PG, "postgresql://h/d::clinic.visits", False),
     ("postgresql://localhost/d::t", "postgresql://[::1]/d::t", True)],
)  # fmt: skip
def test_the_same_rows_however_they_are_spelled(tmp_path, pinned, source, same):
    for name in ("visits.csv", "other.csv", "x.duckdb"):
        (tmp_path / name).write_text("")
    os.link(tmp_path / "visits.csv", tmp_path / "hard.csv")
    os.link(tmp_path / "x.duckdb", tmp_path / "y.duckdb")
    os.symlink("visits.csv", tmp_path / "soft.csv")
    os.symlink(".", tmp_path / "inner")
    again = pin_of(tmp_path, source, name="again")
    first = pin_of(tmp_path, pinned, name="first")
    assert bool(again.difference([first], tmp_path)) == same
    if same:  # and in the same table, another person under another spelling
        other = pin_of(tmp_path, source, name="first", unit="mail")
        assert other.difference([first], tmp_path) == "another column that names the person"


def test_a_file_that_a_glob_gets_later_is_of_its_rows(tmp_path):
    pin = pin_of(tmp_path, "day-*.csv")
    (tmp_path / "day-1.csv").write_text("")
    assert "day-1.csv" not in pin.sources
    assert "day-1.csv" in pin_of(tmp_path, "day-*.csv").sources
    assert pin_of(tmp_path, "day-1.csv", name="again").difference([pin], tmp_path)
    assert not pin_of(tmp_path, "day-*.csv").difference([pin], tmp_path)


def test_stewards_sign_all_of_it():
    changes = [{"name": "x"}, {"file": "x"}, {"ledger": "x"}, {"receipt": "x"}, {"sources": {"x": "who integer"}},
               {"sources": {"visits.csv": "mail text"}}, {"sources": {**PIN.sources, "x": ""}}, {}]  # fmt: skip
    assert len({replace(PIN, **change).digest for change in changes}) == len(changes)
