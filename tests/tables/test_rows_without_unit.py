"""Rows whose unit is NULL: left out, or each a person of its own, as the card states; the answer says which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.card import toml
from dither.tables.card.model import Card, ColumnCard, PrivateTable
from support import noted, refuses

CARD = """
name = "visits"
source = "visits.csv"
unit = "who"
{more}
max_groups = 2
max_rows = 5
delta = 1e-6
ledger = "ledger.sqlite"
[budget]
epsilon = 4500
delta = 0.1
[columns]
who = "integer"
place = {{ type = "text", keys = ["a", "b"] }}
town = "text"
age = {{ type = "integer", bounds = [0, 100] }}
"""
NULLS, UNREADABLE = 400, 60


def opened(folder: Path, without_unit: str | None) -> dp.Table:
    """100 people with 5 rows each; rows without a unit; and rows whose unit is not the number that the card says."""
    lines = [f"{i % 100},{'ab'[i % 2]},t{i % 3},{i % 90}" for i in range(500)]
    lines += [f",{'ab'[i % 4 == 0]},n{i % 4},7" for i in range(NULLS)]
    lines += ["somebody,a,t0,7"] * UNREADABLE
    (folder / "visits.csv").write_text("\n".join(["who,place,town,age", *lines]) + "\n")
    more = "" if without_unit is None else f'rows_without_unit = "{without_unit}"'
    (folder / "visits.toml").write_text(CARD.format(more=more))
    return dp.open(folder / "visits.toml")


@pytest.mark.parametrize("without_unit", [None, "drop", "each"])
def test_rows_and_people_are_counted_as_the_card_states(tmp_path: Path, without_unit: Any) -> None:
    extra = NULLS if without_unit == "each" else 0
    with opened(tmp_path, without_unit) as table:
        question = table.sql("SELECT COUNT(*) AS n, COUNT(DISTINCT who) AS p, SUM(age) AS s FROM visits")
        answer = question.release(epsilon=1000)
        assert answer["n"][0] == pytest.approx(500 + extra, abs=2)
        assert answer["p"][0] == pytest.approx(100 + extra, abs=2)
        assert answer["s"][0] == pytest.approx(sum(i % 90 for i in range(500)) + 7 * extra, abs=60)
        kind = "rows_as_people" if without_unit == "each" else "rows_without_person"
        for said in (answer, question.explain(epsilon=1)):
            assert noted(said, "rows_as_people", "rows_without_person") == noted(said, kind) == [{"column": "who"}]


def test_groups_quantiles_and_modes_have_them(tmp_path: Path) -> None:
    with opened(tmp_path, "each") as table:
        groups = table.sql(
            "SELECT place, COUNT(*) AS n, COUNT(DISTINCT who) AS p, MEDIAN(age) AS m FROM visits GROUP BY place"
        ).release(epsilon=1000)
        assert groups["n"] == pytest.approx([250 + 300, 250 + 100], abs=3)
        assert groups["p"] == pytest.approx([50 + 300, 50 + 100], abs=3)
        assert groups["m"][0] == 7
        private = table.sql("SELECT town, COUNT(*) AS n FROM visits GROUP BY town").release(epsilon=1000)
        counts = dict(zip(private["town"], private["n"], strict=True))
        assert {name: counts[name] for name in ("n0", "n1", "n2", "n3")} == pytest.approx(
            dict.fromkeys(("n0", "n1", "n2", "n3"), 100), abs=3
        )
        automatic = table.sql("SELECT COUNT(*) AS n FROM visits").release(1000, max_groups="auto", max_rows="auto")
        assert automatic["n"][0] == pytest.approx(900, abs=3)


def test_several_tables_of_a_card(tmp_path: Path) -> None:
    """Each of them reads rows without a unit as the card says, and what is recorded tells such cards apart."""
    opened(tmp_path, "each").close()
    columns = {"who": ColumnCard("integer"), "age": ColumnCard("integer", (0, 100))}
    tables = {"visits": PrivateTable(str(tmp_path / "visits.csv"), columns, "who")}
    told = {"max_rows": 5, "tables": tables, "ledger": str(tmp_path / "other.sqlite"), "budget": dp.PureDP(4000)}
    numbers = []
    for without_unit in ("drop", "each"):
        with dp.open(Card("clinic", "", {}, rows_without_unit=without_unit, **told)) as table:
            numbers += table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1000)["n"]
    assert numbers == pytest.approx([500, 500 + NULLS], abs=3)
    with refuses(InvalidArgument, "rows_without_unit", '"drop" where people have budgets'):
        each_person = {**told, "budget": None, "each_person": dp.PureDP(1), "ledger": str(tmp_path / "third.sqlite")}
        dp.open(Card("clinic", "", {}, rows_without_unit="each", **each_person))


def test_people_with_budgets_of_their_own_have_a_unit(tmp_path: Path) -> None:
    opened(tmp_path, "each").close()
    text = (tmp_path / "visits.toml").read_text().replace("delta = 0.1", 'per = "person"')
    (tmp_path / "visits.toml").write_text(text)
    with refuses(InvalidArgument, "rows_without_unit", '"drop" where people have budgets'):
        toml.read(tmp_path / "visits.toml")
