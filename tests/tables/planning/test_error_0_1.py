"""The epsilon of version 0.1 for an error: what it was for a dozen questions, as that version planned them."""

from __future__ import annotations

import pytest

import dither as dp
from dither.tables.card.model import Card, ColumnCard
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.planning.error_0_1 import epsilon_0_1
from dither.tables.sql.parse import parse

CARD = Card(
    "visits",
    "visits.csv",
    {
        "who": ColumnCard("integer"),
        "region": ColumnCard("text", None, ("north", "south")),
        "town": ColumnCard("text"),
        "amount": ColumnCard("number", (0, 50)),
        "age": ColumnCard("integer", (0, 120)),
    },
    unit="who",
    max_groups=2,
    max_rows=3,
    budget=dp.ApproxDP(1000, 0.1),
    delta=1e-6,
)
# written down from the version before this rule was left
EPSILONS = [
    ("SELECT COUNT(*) AS n FROM visits", 5, "laplace", 1.615),
    ("SELECT SUM(amount) AS s FROM visits", 100, "laplace", 4.495),
    ("SELECT SUM(age) AS s, COUNT(*) AS n FROM visits", 500, "laplace", 3.2323731036506387),
    ("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", 10, "best", 1.706301073713611),
    ("SELECT COUNT(*) AS n, AVG(amount) AS m FROM visits", 10, "laplace", 2.56),
    ("SELECT COUNT(DISTINCT who) AS n, COUNT(age) AS c FROM visits", 7, "laplace", 2.381),
    ("SELECT town, COUNT(*) AS n FROM visits GROUP BY town", 30, "laplace", 0.7855),
    ("SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM visits", 8, "laplace", 2.104),
    ("SELECT COUNT(*) AS n, STDDEV(age) AS d FROM visits", 8, "laplace", 4.209),
]


@pytest.mark.parametrize(("text", "error", "noise", "epsilon"), EPSILONS)
def test_the_epsilon_is_what_it_was(text, error, noise, epsilon):
    options = ReleaseOptions(error=error, noise=noise)
    query = parse(text, CARD)
    assert epsilon_0_1(query, CARD, options, plan_question(query, CARD, options)) == epsilon


def test_an_epsilon_that_is_stated_is_none_of_its_business():
    query = parse("SELECT COUNT(*) AS n FROM visits", CARD)
    options = ReleaseOptions(epsilon=1)
    assert epsilon_0_1(query, CARD, options, plan_question(query, CARD, options)) is None
