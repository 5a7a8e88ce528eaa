"""The card of a question of a relation: keys and bounds that follow from what is public."""

from __future__ import annotations

from datetime import date

from dither.tables.card.model import Card, ColumnCard
from dither.tables.planning.relation_cards import card_of_question, with_unstated_bounds
from dither.tables.query.tree import Query
from dither.tables.sql.parse import parse

COLUMNS = {
    "who": ColumnCard("integer"),
    "amount": ColumnCard("number", (0, 10)),
    "town": ColumnCard("text"),
    "day": ColumnCard("date", period=(date(2024, 1, 1), date(2024, 12, 31))),
}
CARD = Card("visits", "", COLUMNS, "who", max_groups="auto", max_rows="auto")


def asked(inner: str, outer: str = "COUNT(*)") -> Query:
    return parse(f"SELECT {outer} FROM ({inner}) AS s", CARD)


def test_keys_of_expressions_and_of_columns_that_are_compared_inside_are_public():
    question = asked(
        "SELECT who, town, date_trunc('quarter', day) AS q, amount > 5 AS large, COUNT(*) AS n FROM visits "
        "WHERE town IN ('x', 'y') AND day < DATE '2024-07-01' GROUP BY who, town, q, large"
    )
    columns = card_of_question(question, CARD).columns
    assert columns["town"].keys == ("x", "y")
    assert columns["large"].keys == (False, True)
    assert columns["q"].keys == (date(2024, 1, 1), date(2024, 4, 1))


def test_bounds_of_expressions_are_their_ranges():
    columns = card_of_question(asked("SELECT who, MAX(amount * 3 - 1) AS x FROM visits GROUP BY who"), CARD).columns
    assert columns["x"].bounds == (-1.0, 29.0)


def test_aggregates_of_columns_without_bounds_get_bounds_chosen_privately():
    sums = "SELECT who, SUM(amount) AS total, AVG(amount) AS mean FROM visits GROUP BY who"
    question = asked(sums, "AVG(total) AS a, AVG(mean) AS b, COUNT(*) AS n")
    card = card_of_question(question, CARD)
    bounds = {name: item.bounds for name, item in with_unstated_bounds(question, card).aggregates.items()}
    assert bounds == {"a": "auto", "b": None, "n": None}
    plain = parse("SELECT AVG(amount) AS a FROM visits", CARD)
    assert with_unstated_bounds(plain, CARD) == plain
