"""Plan files: the example of the documentation runs, and every mistake in a file is named.

Drafts of plans: a valid file, whatever a card's columns are.
"""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path

import pytest

import dither as dp
from dither.publish.plan_file import KEYS, draft_plan
from dither.tables.card.model import Card, ColumnCard, PrivateTable
from dither.tables.card.toml import read
from support import refuses
from support_publish import published_visits

DOCS = Path(__file__).parents[2] / "docs" / "publishing.md"


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def folder(tmp_path):
    """The card, the lookup and the plan of the documentation, with rows that somebody made up."""
    card, plan = blocks("toml")
    published_visits(tmp_path, card, plan)
    return tmp_path


def test_the_example_of_the_documentation_runs(folder):
    with dp.publish.plan(folder / "plan.toml") as plan:
        explained = plan.explain()
        assert not explained.refused
        released = plan.release()
    assert [table.name for table in explained.tables] == [
        " × ".join(released.estimates.domain.names(levels)) or "everybody" for levels in released.tables
    ]
    assert released.table("state").column("state").to_pylist() == ["North", "South"]
    assert released.table("month").num_rows == 12
    assert released.table("county", "sex").column("sex").to_pylist()[-1] is None
    with dp.open(folder / "visits.toml") as visits:
        again = dp.publish.plan(folder / "plan.toml", visits).release()
    assert again.replayed
    assert again.table("state").equals(released.table("state"))


def test_every_key_is_documented_and_every_documented_key_exists():
    (table,) = re.findall(r"\| key \| .*?\n\n", DOCS.read_text(encoding="utf-8"), re.DOTALL)[:1]
    documented = re.findall(r"^\| `([a-z_]+)`", table, re.MULTILINE)
    assert {*documented} == {*KEYS}


def test_a_plan_opened_to_read_only_makes_no_ledger(folder):
    with dp.publish.plan(folder / "plan.toml", read_only=True) as plan:
        assert "(no ledger yet)" in str(plan.explain())
        with refuses(dp.InvalidArgument, "read only"):
            plan.release()
    assert not list(folder.glob("*.ledger*"))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("tables = [", "tabels = [", ["tabels", "write 'tables'"]),
        ('card = "visits.toml"', "", ["card", "the path of a card", "none"]),
        ('card = "visits.toml"', 'card = "visit.toml"', ["card", "'visit.toml'", "'visits.toml', the nearest"]),
        ('card = "visits.toml"', "card = 3", ["card", "a whole number"]),
        ('card = "visits.toml"', 'card = "visits.parquet"', ["card", "ends in .toml"]),
        ("[columns.age]", "[columns.ages]", ["columns.ages", "a column of visits", "'age'"]),
        ('lookup = "places.csv"', 'lookup = "place.csv"', ["lookup of geography", "'place.csv'"]),
        ('levels = ["state", "county"]', 'levels = ["state", "town"]', ["Fix"]),
        ("edges = [", "edgs = [", ["columns.age.edgs", "write 'edges'"]),
        ("[budget]", "[budgets]", ["budgets", "write 'budget'"]),
        ("delta = 1e-9", 'delta = "small"', ["delta"]),
        ("max_rows = ", "max_rows = -", ["max_rows", "from 1 on"]),
        (
            "[nested.geography]",
            "[totals]\nby = []\n[nested.geography]",
            ["totals", "a section for each table", "[[totals]]"],
        ),
        ("where = ", "where = 3 # ", ["where", "text"]),
        ('where = "', 'where = "NOT A CONDITION AT ALL ', ["Fix"]),
        ("tables = [", "tables = [[", ["plan", "a file in TOML", "a mistake"]),
        ('objective = "sum"', 'objective = "small"', ["objective"]),
    ],
)
def test_every_mistake_in_a_plan_is_named_before_a_ledger_is_made(folder, old, new, words):
    text = (folder / "plan.toml").read_text()
    assert old in text
    (folder / "plan.toml").write_text(text.replace(old, new, 1))
    with refuses(dp.DitherError, *words):
        dp.publish.plan(folder / "plan.toml", read_only=True)


def test_what_is_no_plan_is_refused(folder):
    with refuses(dp.InvalidArgument, "plan", "a plan of tables", "a card", "--draft visits.toml"):
        dp.publish.plan(folder / "visits.toml")
    with refuses(dp.InvalidArgument, "plan", "'plans.toml'", "'plan.toml', the nearest"):
        dp.publish.plan(folder / "plans.toml")
    with refuses(dp.InvalidArgument, "plan", "a folder"):
        dp.publish.plan(folder)


def test_a_draft_from_a_card_is_a_plan_that_runs(folder):
    (folder / "draft.toml").write_text(draft_plan(read(folder / "visits.toml"), "visits.toml"))
    with dp.publish.plan(folder / "draft.toml") as plan:
        assert [table.by for table in plan.wanted] == [("sex",), ("sex", "age")]
        assert not plan.explain().refused
        assert plan.release().table("sex").num_rows == 2


COLUMNS = {
    "who": ColumnCard("integer"),
    'odd "name"': ColumnCard("boolean"),
    "region": ColumnCard("text", keys=("n", "s", "w")),
    "note": ColumnCard("text"),
    "amount": ColumnCard("number", (0, 1000)),
    "day": ColumnCard("date", period=(date(2024, 1, 1), date(2024, 12, 31))),
}


def test_a_draft_lists_columns_with_a_domain_and_comments_on_the_others():
    text = draft_plan(Card("visits", "visits.csv", COLUMNS, "who", budget=dp.ZCDP(1)), "cards/visits.toml")
    given = tomllib.loads(text)
    assert given["card"] == "cards/visits.toml"
    assert given["tables"] == [['odd "name"'], ['odd "name"', "region"]]
    assert given["columns"] == {'odd "name"': {}, "region": {}, "amount": {"width": 100}, "day": {"part": "month"}}
    assert given["budget"] == {"rho": 0.1}
    assert '# [columns.note]   # the card has no domain for it: it needs keys = ["…"]' in text


def test_the_budget_is_in_the_terms_of_the_card():
    card = Card("visits", "visits.csv", COLUMNS, budget=dp.ApproxDP(0.5, 1e-6))
    assert tomllib.loads(draft_plan(card, "v.toml"))["budget"] == {"epsilon": 0.5, "delta": 1e-7}


def test_of_several_tables_the_first_is_drafted_unless_another_is_named():
    tables = {name: PrivateTable(f"{name}.csv", COLUMNS, "who") for name in ("visits", "patients")}
    card = Card("clinic", "", {}, tables=tables, budget=dp.ZCDP(1))
    assert tomllib.loads(draft_plan(card, "clinic.toml"))["about"] == "visits"
    assert tomllib.loads(draft_plan(card, "clinic.toml", "patients"))["about"] == "patients"
