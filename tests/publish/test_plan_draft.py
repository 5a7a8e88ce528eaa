"""Drafts of plans: a valid file, whatever a card's columns are."""

from __future__ import annotations

import tomllib
from datetime import date

import dither as dp
from dither.publish.plan_draft import draft_plan
from dither.tables.card.model import Card, ColumnCard, PrivateTable

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
