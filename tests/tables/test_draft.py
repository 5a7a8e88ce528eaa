"""A draft works as it is: limits that choose themselves, a budget of the table with a delta, and no guesses."""

from __future__ import annotations

import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.errors import InvalidArgument
from dither.guarantees import ApproxDP
from dither.tables.card import toml
from dither.tables.draft import draft
from support import refuses

ROWS = pa.table(
    {
        "who": [i // 3 for i in range(300)],
        "amount": [i / 3 for i in range(300)],
        "day": pa.array([20000 + i for i in range(300)], pa.date32()),
        "note": ["a"] * 300,
    }
)


@pytest.mark.parametrize("unit", ["who", None])
def test_a_draft_has_automatic_limits_and_a_budget_of_the_table(tmp_path, unit):
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    place = tmp_path / "visits.toml"
    place.write_text(draft(str(tmp_path / "visits.parquet"), unit))
    card = toml.read(place)
    assert (card.max_groups, card.max_rows) == ("auto", "auto")
    assert isinstance(card.budget, ApproxDP)
    assert card.each_person is None
    assert card.delta is not None
    assert card.delta < float(card.budget.exact[1])
    assert card.rows_without_unit == ("drop" if unit else None)
    assert not [gap for gap in toml.gaps(card) if "rows without" in gap or "no budget" in gap or "no delta" in gap]
    with dp.open(place) as table:
        answer = table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=0.9)
    assert 100 < answer.dicts()[0]["n"] < 500


def test_a_unit_that_has_no_whole_number_of_its_own_for_each_value_is_text():
    rows = pa.table({"double": [0.5], "wide": pa.array([2**63], pa.uint64()), "narrow": [1], "flag": [True]})
    for unit, type in (("double", "text"), ("wide", "text"), ("narrow", "integer")):
        assert tomllib.loads(draft(rows, unit))["columns"][unit]["type"] == type
    with refuses(InvalidArgument, "whole numbers or text", "boolean", "choose another"):
        draft(rows, "flag")


def test_what_is_left_to_the_steward_is_commented_out():
    columns = tomllib.loads(draft(ROWS, "who"))["columns"]
    assert all(set(section) == {"type"} for section in columns.values())
    assert "# bounds = [2024-01-01, 2024-12-31]" in draft(ROWS, "who")
