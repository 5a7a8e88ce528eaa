"""What is pinned of a table, and which changes would be a fresh budget; cards that are edited are in test_cards."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dither.server.pins import Pin, Pins
from dither.server.store import Store
from dither.tables.card.model import Card, ColumnCard, PrivateTable
from support import each

COLUMNS = {"a": ColumnCard("integer")}
PIN = Pin("visits", "visits.toml", "visits.sqlite", "visits.toml.receipt", ("visits.csv",))
OTHER = Pin("other", "other.toml", "other.sqlite", "other.toml.receipt", ("other.csv",))


def test_passwords_are_not_pinned():
    card = Card("t", "postgresql://u:hunter2@h/d::rows", COLUMNS, ledger="postgresql://u:hunter2@h/ledger")
    pin = Pin.of(Path("/cards/t.toml"), card, "/elsewhere/t.receipt")
    assert (pin.ledger, pin.sources, pin.receipt) == (
        "postgresql://h/ledger", ("postgresql://h/d::rows",), "/elsewhere/t.receipt"
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
    assert pins[0].sources == ("more.csv", "t.duckdb::rows")


@each(
    ("change", "refused"),
    [({}, False), ({"ledger": "x"}, True), ({"receipt": "x"}, True), ({"name": "x"}, True),
     ({"name": "x", "file": "x.toml"}, True), ({"sources": ("new.csv",)}, False), ({"sources": ("other.csv",)}, True),
     ({"name": "x", "file": "x.toml", "sources": ("new.csv",)}, False)],
)  # fmt: skip
def test_what_would_be_a_fresh_budget(change, refused):
    assert bool(replace(PIN, **change).difference((PIN, OTHER))) == refused


@pytest.fixture
def pins(tmp_path):
    with closing(Store(str(tmp_path / "s.sqlite"))) as store:
        yield Pins(store)


def test_rows_stay_pinned_when_a_card_names_others(pins):
    """Otherwise a table could be moved away from its rows, and another card take them up."""
    pins.keep(PIN)
    pins.keep(replace(PIN, sources=("new.csv",)))
    [pin] = pins.all()
    assert pin.sources == ("new.csv", "visits.csv")
    assert pin.covers(PIN)
    again = replace(PIN, name="again", file="again.toml", ledger="again.sqlite")
    assert again.difference(pins.all()) == "rows that have the budget of visits"
