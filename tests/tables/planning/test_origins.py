"""Conditions inside of a relation: groups that they rule out are not shown, and a key that they keep is not NULL."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa
import pytest

import dither as dp
from dither.tables.planning.origins import Rows
from dither.tables.query.tree import Call, Column, Literal, PersonJoin, PrivateRows, Projection, Query
from support import each
from tables.raw_rows import alike, answered, truth

VISITS = pa.table(
    {
        "who": [i // 2 for i in range(600)],
        "region": [["east", "north", "south"][i % 3] for i in range(600)],
        "qty": [i % 10 for i in range(600)],
        "amount": [i % 512 / 4 for i in range(600)],
        "day": pa.array([date(2024, 1, 1) + timedelta(days=i % 366) for i in range(600)], pa.date32()),
    }
)
FIRST = "QUALIFY ROW_NUMBER() OVER (PARTITION BY who ORDER BY day) <= 2"


@pytest.fixture(scope="module")
def visits():
    bounds = {"qty": (0, 9), "amount": (0, 128), "day": (date(2024, 1, 1), date(2024, 12, 31))}
    keys = {"region": ["east", "north", "south"]}
    with dp.open(VISITS, unit="who", bounds=bounds, keys=keys, max_rows=2, budget=dp.PureDP(4000)) as table:
        yield table


@each(
    ("shown", "condition"),
    [
        ("region", "region < 'o'"), ("UPPER(region)", "region <> 'north'"), ("qty", "qty < 4"), ("qty % 4", "qty < 2"),
        ("FLOOR(amount / 32)", "amount < 60"), ("MONTH(day)", "MONTH(day) IN (2, 5)"),
        ("date_trunc('quarter', day)", "day >= DATE '2024-07-01'"), ("region", "region IN ('east', 'north')"),
    ],
)  # fmt: skip
def test_a_condition_inside_of_a_relation_narrows_the_keys(visits, shown, condition):
    for rows in (
        f"SELECT * FROM data WHERE {condition} {FIRST}",
        f"SELECT *, COUNT(*) OVER (PARTITION BY who) AS k FROM (SELECT * FROM data WHERE {condition}) WHERE qty >= 0",
        f"SELECT a.* FROM data AS a JOIN data AS b ON a.who = b.who AND a.day = b.day WHERE a.{condition}".replace(
            "a.MONTH(day)", "MONTH(a.day)"
        ),
        f"SELECT who, qty, region, amount, day, COUNT(*) AS k FROM data WHERE {condition} GROUP BY 1, 2, 3, 4, 5",
    ):
        sql = f"SELECT {shown} AS g, COUNT(*) AS n FROM ({rows}) GROUP BY 1"
        assert alike(answered(visits, sql).rows, truth(sql, data=VISITS)), sql


def test_a_condition_inside_of_a_relation_keeps_no_null(visits):
    rows = f"SELECT * FROM data WHERE region IS NOT NULL {FIRST}"
    notes = answered(visits, f"SELECT region, COUNT(*) AS n FROM ({rows}) GROUP BY region").notes
    assert not any("NULL" in note for note in notes)
    notes = answered(visits, f"SELECT region, COUNT(*) AS n FROM (SELECT * FROM data {FIRST}) GROUP BY region").notes
    assert any("NULL" in note for note in notes)


def test_each_side_of_a_join_has_a_way_of_its_own():
    """Columns of both sides with one name inside must not be taken for one column."""
    inner = Projection(PrivateRows(), {"x": Call("+", (Column("a"), Literal(1)))}, Call(">", (Column("a"), Literal(2))))
    rows = Rows.asked(Query({}, source=PersonJoin(inner, inner, "inner", {"y": "x"})))
    one, other = ([*rows.levels(Column(name))] for name in ("x", "y"))
    assert [item for _, item in one][-1] == [item for _, item in other][-1] == Call("+", (Column("a"), Literal(1)))
    assert one[-1][0].conditions == other[-1][0].conditions == (Call(">", (Column("a"), Literal(2))),)
    assert one[-1][0].path != other[-1][0].path
    assert len([*rows.levels(Call("+", (Column("x"), Column("y"))))]) == 1


@each(("kind", "left", "right"), [("inner", 3, 3), ("left", 3, 1), ("right", 1, 3), ("full", 1, 1)])
def test_a_side_whose_values_may_be_missing_has_no_way(kind, left, right):
    inner = Projection(PrivateRows(), {"x": Column("a")})
    rows = Rows.asked(Query({}, source=PersonJoin(inner, inner, kind, {"y": "x"})))
    assert (len([*rows.levels(Column("x"))]), len([*rows.levels(Column("y"))])) == (left, right)
