"""Quotients whose divisor may be near 0 have no bounds: they are chosen privately, or follow from WHERE."""

from __future__ import annotations

import math

import duckdb
import pyarrow as pa

import dither as dp
from dither.tables.card.model import Card, ColumnCard
from dither.tables.compile.expressions import lookup, number, public_interval
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.query.operations.base import Range
from dither.tables.query.tree import Call, Column, Literal
from dither.tables.sql.parse import parse
from support import each, noted
from tables.glass import glass

PEOPLE = 300
SALES = pa.table(
    {
        "pid": [i % PEOPLE for i in range(1200)],
        "amount": [0.0 if i % 97 == 0 else float(i * 37 % 990 + 10) / 10 for i in range(1200)],
        "discount": [float(i * 13 % 70) / 10 for i in range(1200)],
        "pieces": [i * 7 % 11 for i in range(1200)],
    }
)
BOUNDS = {"amount": (0, 100), "discount": (0, 20), "pieces": (0, 10)}
CARD = Card(
    "data", "", {"pid": ColumnCard("integer"), "pieces": ColumnCard("integer", (0, 10))}
    | {name: ColumnCard("number", BOUNDS[name]) for name in ("amount", "discount")}, "pid", max_rows=4,
)  # fmt: skip
SHARES = "SELECT AVG(sh) AS x FROM (SELECT pid, amount / SUM(amount) OVER (PARTITION BY pid) AS sh FROM data)"
CHOSEN = [
    SHARES,
    "SELECT AVG(discount / NULLIF(amount, 0)) AS x FROM data",
    "SELECT SUM(1 - discount / amount) AS x FROM data WHERE amount > 0",
    "SELECT AVG(q) AS x FROM (SELECT pid, SUM(discount) / NULLIF(SUM(amount), 0) AS q FROM data GROUP BY pid)",
    "SELECT AVG(q) AS x FROM (SELECT pid, MAX(pieces) / NULLIF(SUM(pieces), 0) AS q FROM data GROUP BY pid)",
    "SELECT AVG(q) AS x FROM (SELECT pid, AVG(discount / amount) AS q FROM data WHERE amount > 1 GROUP BY pid)",
]
FOLLOWING = {
    "SELECT AVG(discount / amount) AS x FROM data WHERE amount > 10": (0, 2),
    "SELECT AVG(discount / amount) AS x FROM data WHERE amount BETWEEN 5 AND 50": (0, 4),
    "SELECT AVG(amount / discount) AS x FROM data WHERE discount >= 4 AND amount < 40": (0, 10),
    "SELECT AVG(discount / GREATEST(amount, 1)) AS x FROM data": None,
    "SELECT AVG(LEAST(discount / amount, 1)) AS x FROM data": None,
    "SELECT AVG(amount / pieces) AS x FROM data": None,
    "SELECT AVG(amount / 7) AS x FROM data": None,
}


@each("sql", CHOSEN)
def test_bounds_are_chosen_privately_and_the_answer_is_near_the_truth(sql):
    with dp.open(SALES, unit="pid", bounds=BOUNDS, budget=dp.PureDP(100), max_rows=4) as table, glass():
        answer = table.sql(sql).release(epsilon=20, noise="laplace")
    with duckdb.connect() as connection:
        ((expected,),) = (
            connection.register("data", SALES).sql(sql.replace("/ amount", "/ NULLIF(amount, 0)")).fetchall()
        )
    assert math.isclose(answer.rows[0][0], expected, rel_tol=0.2)
    assert noted(answer, "bounds_chosen")


@each(("sql", "bounds"), FOLLOWING.items())
def test_bounds_follow_where_the_divisor_is_away_from_0(sql, bounds):
    plan = plan_question(parse(sql, CARD), CARD, ReleaseOptions(epsilon=1)).parts[0]
    assert not plan.automatic
    assert plan.query.aggregates["x"].bounds == bounds


def test_the_interval_of_a_quotient_is_no_public_fact_where_the_divisor_may_be_near_0():
    find = lookup(CARD, {})
    quotient = Call("/", (Column("discount"), Column("amount")))
    assert number(quotient, find).interval is not None
    assert public_interval(quotient, find) is None
    assert public_interval(Call("abs", (Call("+", (quotient, Literal(1))),)), find) is None
    assert public_interval(Call("least", (Call("/", (Column("amount"), Column("pieces"))), Literal(5))), find) == (0, 5)


@each(
    ("one", "other"),
    [(Range.whole(a, b), Range.whole(c, d)) for a, b in ((0, 6), (-3, 2), (-5, -1), (1, 4))
     for c, d in ((0, 3), (-2, 0), (-2, 5), (0, 0), (1, 3), (-4, -1))],
)  # fmt: skip
def test_quotients_lie_in_their_range(one, other):
    found = [
        a / b for a in range(int(one.low), int(one.high) + 1) for b in range(int(other.low), int(other.high) + 1) if b
    ]
    known = one / other
    assert all(known.low <= value <= known.high for value in found)
    assert not found or (known.low, known.high) == (min(found), max(found))
