"""What several blocks ask: which of them are one private aggregation, and which have a noisy table of their own."""

from __future__ import annotations

import pytest

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard
from dither.tables.sql.parse import parse
from support import refuses

CARD = Card(
    "visits",
    "visits.csv",
    {"who": ColumnCard("integer"), "kind": ColumnCard("text", keys=("a", "b")), "x": ColumnCard("number", (0, 9))},
    unit="who",
)
BY_KIND = "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"


def parts(sql: str) -> list[tuple[list[str], list[str], list[str]]]:
    """Of each aggregation its aggregates, its groups, and what it adds up over."""
    return [
        (list(part.aggregates), [group.name for group in part.groups], [group.name for group in part.rolled_up])
        for part in parse(sql, CARD).aggregations
    ]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (f"SELECT a.n FROM ({BY_KIND}) a JOIN ({BY_KIND}) b ON a.kind = b.kind", [(["n"], ["kind"], [])]),
        (
            f"SELECT n / (SELECT COUNT(*) FROM visits) AS y, n / (SELECT COUNT(*) FROM visits) AS z FROM ({BY_KIND})",
            [(["n"], ["kind"], []), (["count"], [], [])],
        ),
        (
            "SELECT kind, COUNT(*) AS n FROM visits GROUP BY ROLLUP (kind)",
            [(["n"], ["kind"], []), (["n"], [], ["kind"])],
        ),
        (  # the finest level is what the other block asks
            f"SELECT n FROM (SELECT kind, COUNT(*) AS n FROM visits GROUP BY ROLLUP (kind)) UNION ALL SELECT n FROM "
            f"({BY_KIND})",
            [(["n"], ["kind"], []), (["n"], [], ["kind"])],
        ),
        (  # people are counted in one set of rows only
            "SELECT (SELECT COUNT(DISTINCT who) FROM visits WHERE x > 5) AS y, (SELECT COUNT(*) FROM visits) AS z",
            [(["people"], [], []), (["count"], [], [])],
        ),
    ],
)
def test_every_aggregation_is_measured_once(question, expected):
    assert parts(question) == expected


def test_blocks_that_differ_in_where_are_one_aggregation():
    question = parse(
        "SELECT (SELECT COUNT(*) FROM visits WHERE x > 5) AS y, (SELECT COUNT(*) FROM visits WHERE x < 2) AS z", CARD
    )
    assert [item.kind for item in question.aggregates.values()] == ["count_value", "count_value"]
    assert question.more == ()


def test_blocks_with_groups_that_differ_in_where_have_a_table_each():
    """Which groups exist follows from WHERE, so it is never that of another block."""
    one, other = (BY_KIND.replace(" GROUP", f" WHERE x {sign} 5 GROUP") for sign in "<>")
    question = parse(f"SELECT a.n FROM ({one}) a JOIN ({other}) b ON a.kind = b.kind", CARD)
    assert [(part.where.op, list(part.aggregates)) for part in question.aggregations] == [("<", ["n"]), (">", ["n"])]


def test_limits_of_one_block_are_not_those_of_another():
    inner = "SELECT COUNT(*, contribution_bounds_per_group => (0, 3)) FROM visits"
    question = parse(f"SELECT COUNT(*) AS n, ({inner}) AS m FROM visits GROUP BY kind", CARD)
    assert [part.max_rows for part in question.aggregations] == [None, 3]


def test_the_budget_in_the_statement_is_that_of_the_whole_question():
    head = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, max_rows_per_group = 2)"
    question = parse(f"{head} kind, COUNT(*) AS n FROM visits GROUP BY ROLLUP (kind)", CARD)
    assert [(part.epsilon, part.max_rows) for part in question.aggregations] == [(0.5, 2), (None, 2)]


def test_too_many_aggregations_are_refused():
    items = ", ".join(f"(SELECT COUNT(DISTINCT who) FROM visits WHERE x > {i}) AS y{i}" for i in range(65))
    with refuses(InvalidArgument, "at most 64 private aggregations", "several questions"):
        parse(f"SELECT {items}", CARD)
