"""Keys that follow from what is public: which they are, and that the rows have no say in them.

Conditions inside of a relation: groups that they rule out are not shown, and a key that they keep is not NULL.

Groups by columns of one public table: its rows, whatever is grouped by beside them.

The card of a question of a relation: keys and bounds that follow from what is public.

The threshold for keys that are not public, against the law of the number as it is released.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction

import mpmath as mp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither import Gaussian, Laplace
from dither.present.notes import kinds_of
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.compile import statements
from dither.tables.engines import connect, with_public_values
from dither.tables.planning.group_keys import (
    MOST_INTEGERS,
    MOST_VALUES,
    RelationRows,
    bin_labels,
    card_of_question,
    threshold,
    with_unstated_bounds,
)
from dither.tables.planning.plan import keys_of
from dither.tables.query.evaluate import evaluate
from dither.tables.query.operations import OPERATIONS
from dither.tables.query.tree import (
    Aggregate,
    Call,
    Column,
    Group,
    Join,
    Literal,
    PersonJoin,
    PrivateRows,
    Projection,
    Query,
)
from dither.tables.sql.parse import parse
from support import each
from tables.planned import make
from tables.raw_rows import alike, answered, truth

YEAR = (date(2013, 1, 1), date(2013, 12, 31))
FLIGHTS = Card(
    "flights",
    "",
    {
        "plane": ColumnCard("text"),
        "carrier": ColumnCard("text"),
        "origin": ColumnCard("text", keys=("EWR", "JFK", "LGA")),
        "hour": ColumnCard("integer", (0, 23)),
        "distance": ColumnCard("number", (0, 100)),
        "wide": ColumnCard("integer", (0, MOST_INTEGERS)),
        "late": ColumnCard("boolean"),
        "day": ColumnCard("date", period=YEAR),
        "anyday": ColumnCard("date"),
        "at": ColumnCard("timestamp", period=(datetime(2013, 1, 30, 22), datetime(2013, 2, 1, 1))),
    },
    unit="plane",
    delta=1e-6,
)
FIRSTS = tuple(date(2013, month, 1) for month in range(1, 13))


def keys(sql: str, card: Card = FLIGHTS) -> tuple[object, ...] | None:
    group, where, condition = sql.partition(" WHERE ")
    query = parse(f"SELECT {group} AS k, COUNT(*) AS n FROM flights{where}{condition} GROUP BY 1", card)
    (result,) = keys_of(query, card)
    return result


GROUPS: dict[str, tuple[object, ...] | None] = {
    "MONTH(day) WHERE QUARTER(day) = 2": (4, 5, 6),
    "DATE_TRUNC('month', day) WHERE MONTH(day) IN (2, 11)": (FIRSTS[1], FIRSTS[10]),
    "MONTH(day) WHERE day BETWEEN '2013-02-01' AND '2013-06-30' AND QUARTER(day) <> 2": (2, 3),
    "DATE_TRUNC('quarter', day) WHERE DATE_DIFF('day', day, DATE '2013-12-31') < 90": (date(2013, 10, 1),),
    "MONTH(day) WHERE QUARTER(day) = 5": tuple(range(1, 13)),  # no day at all
    "FLOOR(distance / 10) WHERE distance BETWEEN 25 AND 44.5": (2, 3, 4),
    "FLOOR(distance / 10) WHERE distance > 80 AND distance > 20": (8, 9, 10),
    "FLOOR(distance / 10) WHERE distance > 200": tuple(range(11)),
    "origin": ("EWR", "JFK", "LGA"),
    "late": (False, True),
    "hour": tuple(range(24)),
    "wide": None,
    "carrier": None,
    "anyday": None,
    "CASE WHEN distance > 50 THEN 'far' ELSE 'near' END": ("far", "near"),
    "CASE WHEN distance > 50 THEN 'far' END": ("far", None),
    "CASE WHEN late THEN origin ELSE 'on time' END": ("EWR", "JFK", "LGA", "on time"),
    "CASE WHEN late THEN carrier ELSE 'on time' END": None,
    "COALESCE(CASE WHEN late THEN 'late' END, 'other')": ("late", "other"),
    "NULLIF(origin, 'JFK')": ("EWR", "LGA", None),
    "NULLIF(origin, LOWER(origin))": ("EWR", "JFK", "LGA", None),
    "NULLIF(hour, 3) WHERE hour < 6": (0, 1, 2, 4, 5, None),
    "NULLIF(ROUND(distance, -1), 30) WHERE distance < 40": (0, 10, 20, 40, None),
    "ROUND(distance, -1) WHERE ROUND(distance, -1) > 70": (80, 90, 100),
    "ROUND(distance * 100, -3)": tuple(range(0, 10_001, 1000)),
    "carrier IN ('AA', 'UA')": (False, True),
    "distance > 50": (False, True),
    "LOWER(origin)": ("ewr", "jfk", "lga"),
    "hour + 1": tuple(range(1, 25)),
    "FLOOR(hour / 6) * 6": (0, 6, 12, 18),
    "FLOOR(distance / 10)": tuple(range(11)),
    "distance / 10": None,
    "hour / 0": None,
    "DATE_TRUNC('month', day)": FIRSTS,
    "DATE_TRUNC('year', day)": FIRSTS[:1],
    "DATE_TRUNC('month', anyday)": None,
    "DATE_TRUNC('day', at)": (datetime(2013, 1, 30), datetime(2013, 1, 31), datetime(2013, 2, 1)),
    "DATE_TRUNC('month', at)": (datetime(2013, 1, 1), datetime(2013, 2, 1)),
    "carrier WHERE carrier IN ('AA', 'UA')": ("AA", "UA"),
    "carrier WHERE carrier = 'AA' AND distance > 3": ("AA",),
    "carrier WHERE carrier IN ('AA', 'UA') AND carrier <> 'UA'": ("AA",),
    "carrier WHERE carrier IN ('AA', 'UA') OR late": None,
    "carrier WHERE NOT carrier IN ('AA', 'UA')": None,
    "origin WHERE origin <> 'JFK'": ("EWR", "LGA"),
    "origin WHERE origin = 'BOS'": ("BOS",),
    "origin WHERE origin < 'A'": ("EWR", "JFK", "LGA"),  # nobody can be there, and there has to be a group
    "hour WHERE hour BETWEEN 3 AND 5": (3, 4, 5),
    "hour WHERE 21.5 < hour": (22, 23),
    "wide WHERE wide > 7 AND wide <= 9": (8, 9),
    "late WHERE late": (True,),
    "anyday WHERE anyday >= '2024-02-28' AND anyday < '2024-03-01'": (date(2024, 2, 28), date(2024, 2, 29)),
    "DATE_TRUNC('month', anyday) WHERE anyday >= '2013-01-01' AND anyday < '2014-01-01'": FIRSTS,
    "DATE_TRUNC('quarter', day) WHERE day > '2013-06-30'": (date(2013, 7, 1), date(2013, 10, 1)),
}
if "date_part" in OPERATIONS:
    GROUPS |= {
        "YEAR(day)": (2013,),
        "YEAR(anyday)": None,
        "YEAR(anyday) WHERE anyday BETWEEN '2011-05-01' AND '2013-01-01'": (2011, 2012, 2013),
        "MONTH(day)": tuple(range(1, 13)),
        "MONTH(anyday)": tuple(range(1, 13)),
        "MONTH(at)": (1, 2),
        "EXTRACT(QUARTER FROM day) WHERE day < '2013-07-01'": (1, 2),
        "DAY(anyday)": tuple(range(1, 32)),
        "ISODOW(anyday)": tuple(range(1, 8)),
        "DAYOFWEEK(anyday)": tuple(range(7)),
        "DAYNAME(anyday)": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
        "DAYNAME(day) WHERE ISODOW(day) > 5": ("Saturday", "Sunday"),
        "MONTHNAME(at)": ("January", "February"),
        "ISOYEAR(day)": (2013, 2014),
        "WEEK(anyday)": tuple(range(1, 54)),
        "HOUR(at)": tuple(range(24)),
    }
if "cast" in OPERATIONS:
    GROUPS |= {
        "CAST(at AS DATE)": (date(2013, 1, 30), date(2013, 1, 31), date(2013, 2, 1)),
        "DATE_TRUNC('month', CAST(at AS DATE))": (date(2013, 1, 1), date(2013, 2, 1)),
        "CAST(at AS DATE) WHERE CAST(at AS DATE) > '2013-01-31'": (date(2013, 2, 1),),
        "DATE_TRUNC('month', at) WHERE CAST(at AS DATE) >= DATE '2013-02-01'": (datetime(2013, 2, 1),),
        "DATE_TRUNC('month', at) WHERE CAST(at AS DATE) <= DATE '2013-01-31'": (datetime(2013, 1, 1),),
        "DATE_TRUNC('day', at) WHERE CAST(at AS DATE) = DATE '2013-01-31'": (datetime(2013, 1, 31),),
        "DATE_TRUNC('day', at) WHERE CAST(at AS DATE) < DATE '2013-01-31'": (datetime(2013, 1, 30),),
        "DATE_TRUNC('month', day) WHERE day >= TIMESTAMP '2013-11-30 12:00:00'": FIRSTS[11:],
        "DATE_TRUNC('month', day) WHERE day <= TIMESTAMP '2013-02-01 12:00:00'": FIRSTS[:2],
        "DATE_TRUNC('month', day) WHERE day < TIMESTAMP '2013-02-01 00:00:00'": FIRSTS[:1],
    }
GROUPS |= {  # constants that are computed
    "DATE_TRUNC('month', day) WHERE day >= DATE_TRUNC('month', DATE '2013-12-24') - INTERVAL '2 months'": FIRSTS[9:],
    "DATE_TRUNC('month', day) WHERE day < DATE '2013-01-15' + INTERVAL 1 MONTH": FIRSTS[:2],
    "DATE_TRUNC('month', day) WHERE MONTH(DATE '2013-03-01') = 3 AND day < '2013-02-01'": FIRSTS[:1],
    "hour WHERE hour < 1 + 1": (0, 1),
    "hour WHERE hour BETWEEN 4 / 2 AND 7 - 4": (2, 3),
    "carrier WHERE carrier = UPPER('aa')": ("AA",),
    "FLOOR(hour / (2 + 4)) WHERE FLOOR(hour / (2 + 4)) < 10 - 8": (0, 1),
}


@each(("group", "expected"), GROUPS.items())
def test_the_keys_of_a_group(group, expected):
    assert keys(group) == expected


def test_every_derived_key_is_what_the_engine_makes_of_the_values():
    """Python computes the keys and the engine the rows' values: no row of a value within its bounds may get lost."""
    groups = ["hour + 1", "FLOOR(hour / 6) * 6", "hour * 0.1", "ABS(hour - 12)", "FLOOR(distance / 7)", "LOWER(origin)",
              "DATE_TRUNC('week', day)", "CASE WHEN hour > 3 THEN hour ELSE 0 END"]  # fmt: skip
    rows = [
        {"plane": str(i), "hour": i % 24, "distance": i / 2.4, "origin": ("EWR", "JFK", "LGA")[i % 3],
         "day": date(2013, 1 + i % 12, 1 + i % 28)}
        for i in range(240)
    ]  # fmt: skip
    columns = {name: FLIGHTS.columns[name] for name in ("plane", "hour", "distance", "origin", "day")}
    card = replace(FLIGHTS, columns=columns, budget=dp.PureDP(1e4), ledger=None)
    with connect(pa.Table.from_pylist(rows), card) as engine:
        for group in groups:
            query = parse(f"SELECT {group} AS k, COUNT(*) AS n FROM flights GROUP BY 1", card)
            planned = make(query, card, epsilon=1)
            context = planned.statement_context("duckdb", {"": engine.table}, 1)
            kept = engine.run(statements.contributors(context)).num_rows
            assert kept == 240, group


@each(
    ("group", "low", "high"),
    [(group, low, high)
     for group in ("ROUND(distance, -2)", "TRUNC(distance, -1)", "ROUND(distance / 3, -1)",
                   "TRUNC(ROUND(distance), -2)",
                   "NULLIF(ROUND(distance, -2), 100)", "ROUND(ROUND(distance, -1), -2)", "FLOOR(distance / 50) * 50")
     for low, high in ((0, 449), (-260, 150), (-350.5, -49.5), (50, 4_000))],
)  # fmt: skip
def test_keys_of_rounded_numbers_are_those_that_some_number_has(group, low, high):
    card = replace(FLIGHTS, columns={**FLIGHTS.columns, "distance": ColumnCard("number", (low, high))})
    value = parse(f"SELECT {group} AS k, COUNT(*) AS n FROM flights GROUP BY 1", card).groups[0].value
    numbers = [low + step / 2 for step in range(round((high - low) * 2) + 1)]
    found = {evaluate(value, {"distance": number}) for number in numbers}
    known = keys(group, card)
    assert known is not None
    assert set(known) == found | ({None} if "NULLIF" in group else set())


def test_lists_too_long_to_combine_are_not_used():
    query = Query({"n": Aggregate("count")}, tuple(Group(name, Call("+", (Column("hour"), Literal(i)))) for i, name in
                                                     enumerate("abcde")))  # fmt: skip
    result = keys_of(query, FLIGHTS)
    assert sum(listed is None for listed in result) == 1
    assert 24**4 <= 1_000_000 < 24**5


def test_mode_chooses_among_derived_keys():
    query = Query({"k": Aggregate("mode", Column("hour"))}, where=Call("<", (Column("hour"), Literal(5))))
    planned = make(query, FLIGHTS, epsilon=1)
    assert planned.choices[0].aggregate.keys == (0, 1, 2, 3, 4)


# -- public tables -----------------------------------------------------------------------------------------------------


def with_airlines(tmp_path, rows: str) -> Card:
    (tmp_path / "airlines.csv").write_text(f"code,name\n{rows}")
    public = {"airlines": PublicTable(str(tmp_path / "airlines.csv"),
                                      {"code": ColumnCard("text"), "name": ColumnCard("text")})}  # fmt: skip
    columns = {name: FLIGHTS.columns[name] for name in ("plane", "carrier")}
    return replace(FLIGHTS, columns=columns, public=public)


@pytest.mark.parametrize("left", [False, True])
def test_values_of_a_public_table_are_keys_whatever_the_rows(tmp_path, left):
    card = with_airlines(tmp_path, "AA,American\nUA,United\nB6,JetBlue\nXX,United\n")
    query = Query(
        {"n": Aggregate("count")},
        (Group("name", Column("name", "airlines")),),
        joins=(Join("airlines", Column("carrier"), "code", left),),
    )
    assert keys_of(query, card) == (None,)
    for rows in ([], ["AA"], ["AA", "ZZ", None]):
        table = pa.table({"plane": pa.array(rows, pa.string()), "carrier": pa.array(rows, pa.string())})
        with connect(table, card) as engine:
            known = with_public_values(engine, card, query)
            (result,) = keys_of(query, known)
            assert result == ("American", "JetBlue", "United", *([None] if left else []))
            assert replace(known, public=card.public) == card


def test_long_public_tables_are_not_listed(tmp_path):
    card = with_airlines(tmp_path, "".join(f"{i},name {i}\n" for i in range(MOST_VALUES + 1)))
    query = Query(
        {"n": Aggregate("count")},
        (Group("name", Column("name", "airlines")),),
        joins=(Join("airlines", Column("carrier"), "code"),),
    )
    with connect(pa.table({"plane": ["a"], "carrier": ["1"]}), card) as engine:
        assert keys_of(query, with_public_values(engine, card, query)) == (None,)


def test_a_question_about_a_public_column_needs_no_delta(tmp_path):
    (tmp_path / "airlines.csv").write_text("code,name\nAA,American\nUA,United\n")
    pq.write_table(pa.table({"plane": ["a", "b", "c"], "carrier": ["AA", "AA", "ZZ"]}), tmp_path / "f.parquet")
    (tmp_path / "f.toml").write_text(
        'name = "flights"\nsource = "f.parquet"\nunit = "plane"\nledger = "l.sqlite"\n[budget]\nepsilon = 2000\n'
        '[columns]\nplane = "text"\ncarrier = "text"\n[public.airlines]\nsource = "airlines.csv"\n'
        '[public.airlines.columns]\ncode = "text"\nname = "text"\n'
    )
    sql = "SELECT name, COUNT(*) AS n FROM flights LEFT JOIN airlines ON carrier = code GROUP BY name"
    with dp.open(tmp_path / "f.toml") as table:
        assert "groups: 3, all public" in str(table.sql(sql).explain(epsilon=1000))
        answer = table.sql(sql).release(epsilon=1000)
        assert answer.dicts() == [
            {"name": "American", "n": 2}, {"name": "United", "n": 0}, {"name": None, "n": 1}
        ]  # fmt: skip


# -- bins --------------------------------------------------------------------------------------------------------------


def test_bins_are_labeled_by_their_edges():
    bins = Group("b", Call("bin", (Column("x"), *map(Literal, (-1.5, 0, 2500, 1e6)))))
    label = bin_labels([bins, Group("x", Column("x"))])
    assert list(label) == ["b"]
    shown = [evaluate(label["b"], {"b": number}) for number in (0, 1, 2, None)]
    assert shown == ["[-1.5, 0)", "[0, 2,500)", "[2,500, 1,000,000]", None]


def test_bins_built_in_python_show_edges_in_order_and_width_bucket_shows_numbers():
    rows = pa.table({"x": [float(i % 30) for i in range(90)]})
    with dp.open(rows, bounds={"x": (0, 30)}, budget=dp.PureDP(4000)) as table:
        answer = table.group_by(b=dp.col("x").bin([0, 5, 10, 30])).agg(n=dp.count()).release(epsilon=2000)
        assert answer.dicts() == [{"b": "[0, 5)", "n": 15}, {"b": "[5, 10)", "n": 15}, {"b": "[10, 30]", "n": 60}]
        numbered = table.sql("SELECT WIDTH_BUCKET(x, 0, 30, 3) AS b, COUNT(*) AS n FROM data GROUP BY 1")
        assert [line["b"] for line in numbered.release(epsilon=2000).dicts()] == [1, 2, 3]


def test_a_constant_that_is_cast_has_no_period():
    """A text that is made of a constant moment was looked up among the columns."""
    visits = Card("visits", "", {"region": ColumnCard("text")}, budget=dp.PureDP(1))
    sql = "SELECT region || CAST(TIMESTAMP '2024-01-01 00:00:00' AS TEXT) AS k, COUNT(*) AS n FROM visits GROUP BY 1"
    assert keys_of(parse(sql, visits), visits) == (None,)


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
    assert "null_keys" not in kinds_of(notes)
    notes = answered(visits, f"SELECT region, COUNT(*) AS n FROM (SELECT * FROM data {FIRST}) GROUP BY region").notes
    assert "null_keys" in kinds_of(notes)


def test_each_side_of_a_join_has_a_way_of_its_own():
    """Columns of both sides with one name inside must not be taken for one column."""
    inner = Projection(PrivateRows(), {"x": Call("+", (Column("a"), Literal(1)))}, Call(">", (Column("a"), Literal(2))))
    rows = RelationRows.asked(Query({}, source=PersonJoin(inner, inner, "inner", {"y": "x"})))
    one, other = ([*rows.levels(Column(name))] for name in ("x", "y"))
    assert [item for _, item in one][-1] == [item for _, item in other][-1] == Call("+", (Column("a"), Literal(1)))
    assert one[-1][0].conditions == other[-1][0].conditions == (Call(">", (Column("a"), Literal(2))),)
    assert one[-1][0].path != other[-1][0].path
    assert len([*rows.levels(Call("+", (Column("x"), Column("y"))))]) == 1


@each(("kind", "left", "right"), [("inner", 3, 3), ("left", 3, 1), ("right", 1, 3), ("full", 1, 1)])
def test_a_side_whose_values_may_be_missing_has_no_way(kind, left, right):
    inner = Projection(PrivateRows(), {"x": Column("a")})
    rows = RelationRows.asked(Query({}, source=PersonJoin(inner, inner, kind, {"y": "x"})))
    assert (len([*rows.levels(Column("x"))]), len([*rows.levels(Column("y"))])) == (left, right)


PLANS = pa.table(
    {
        "plan_id": [1, 2, 3, 4, 5],
        "plan_name": ["basic", "basic", "extra", "extra", None],
        "tier": ["low", "high", "low", "high", "high"],
    }
)
MEMBERS = pa.table(
    {
        "who": list(range(600)),
        "pid": [1 + i % 4 for i in range(600)],  # nobody has plan 5
        "kind": ["ab"[i % 2] for i in range(600)],
        "x": [float(i % 7) for i in range(600)],
    }
)
JOINED = "FROM members JOIN plans ON pid = plan_id"
TUPLES = {  # questions, and how many groups the public table has for them
    f"SELECT plan_id, plan_name, COUNT(*) AS n {JOINED} GROUP BY plan_id, plan_name": 5,
    f"SELECT plan_name, tier, COUNT(*) AS n {JOINED} GROUP BY 1, 2": 5,
    f"SELECT pid, plan_name, COUNT(*) AS n {JOINED} GROUP BY pid, plan_name": 5,
    f"SELECT plan_id, kind, tier, COUNT(*) AS n {JOINED} GROUP BY 1, 2, 3": 10,
    f"SELECT UPPER(plan_name) AS u, plan_id * 10 AS t, COUNT(*) AS n {JOINED} GROUP BY 1, 2": 5,
    f"SELECT tier || plan_name AS both_names, COUNT(*) AS n {JOINED} GROUP BY 1": 5,
    f"SELECT plan_id, plan_name, COUNT(*) AS n {JOINED} WHERE tier = 'low' GROUP BY 1, 2": 2,
    f"SELECT plan_name, COUNT(*) AS n {JOINED} WHERE tier = 'low' AND x > 2 GROUP BY 1": 2,
    f"SELECT pid, COUNT(*) AS n {JOINED} WHERE tier = 'low' GROUP BY 1": 2,
    f"SELECT plan_name, COUNT(*) AS n {JOINED} WHERE plan_id = 5 GROUP BY 1": 1,  # NULL is the only key
    f"SELECT plan_name, tier, AVG(x) AS m {JOINED} WHERE plan_id < 4 GROUP BY 1, 2": 3,
    "SELECT plan_name, tier, COUNT(*) AS n FROM members LEFT JOIN plans ON pid = plan_id GROUP BY 1, 2": 6,
    "SELECT a, b, COUNT(*) AS n FROM (SELECT who, plan_id AS a, UPPER(plan_name) AS b, COUNT(*) AS k "
    f"{JOINED} GROUP BY who, 2, 3) GROUP BY a, b": 5,
    f"SELECT LEFT(tier, 1) AS a, UPPER(tier) AS b, COUNT(*) AS n {JOINED} GROUP BY 1, 2": 2,
    "SELECT LEFT(tier, 1) AS a, UPPER(tier) AS b, COUNT(*) AS n FROM members LEFT JOIN plans ON pid = plan_id "
    "GROUP BY 1, 2": 3,
    f"SELECT LEFT(t, 1) AS a, UPPER(t) AS b, COUNT(*) AS n FROM (SELECT who, tier AS t {JOINED}) GROUP BY 1, 2": 2,
    f"SELECT a, b, COUNT(*) AS n FROM (SELECT who, plan_id AS a, tier AS b {JOINED} WHERE tier = 'high' "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY who ORDER BY x) <= 2) GROUP BY a, b": 3,
    f"SELECT t.tier, o.tier AS other, COUNT(*) AS n FROM (SELECT who, tier {JOINED}) AS t "
    f"JOIN (SELECT who, tier {JOINED}) AS o ON t.who = o.who GROUP BY 1, 2": 4,
    f"SELECT a, b, COUNT(*) AS n FROM (SELECT who, plan_id AS a, tier AS b {JOINED}) WHERE b = 'high' GROUP BY a, b": 3,
}


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    folder = tmp_path_factory.mktemp("members")
    pq.write_table(PLANS, folder / "plans.parquet")
    pq.write_table(MEMBERS, folder / "members.parquet")
    (folder / "members.toml").write_text(
        'name = "members"\nsource = "members.parquet"\nunit = "who"\nledger = "l.sqlite"\nmax_rows = 2\n'
        '[budget]\nepsilon = 4000\n[columns]\nwho = "integer"\npid = {type = "integer", bounds = [1, 5]}\n'
        'kind = {type = "text", keys = ["a", "b"]}\nx = {type = "number", bounds = [0, 10]}\n'
        '[public.plans]\nsource = "plans.parquet"\n[public.plans.columns]\n'
        'plan_id = {type = "integer", bounds = [1, 5]}\n'
        'plan_name = "text"\ntier = "text"\n'
    )
    with dp.open(folder / "members.toml") as table:
        yield table


@pytest.mark.parametrize("sql", TUPLES)
def test_groups_by_columns_of_one_public_table_are_its_rows(members, sql):
    answer = answered(members, sql)
    expected = truth(sql, members=MEMBERS, plans=PLANS)
    keys = {tuple(map(str, row[:-1])) for row in expected}
    assert len(answer.rows) == TUPLES[sql]
    # groups that nobody is in are shown as well, as those of all public keys are: plan 5
    assert alike([row for row in answer.rows if tuple(map(str, row[:-1])) in keys], expected)
    assert all(row[-1] in (0, None) for row in answer.rows if tuple(map(str, row[:-1])) not in keys)


def test_levels_of_columns_of_one_public_table_have_its_rows(members):
    sql = f"SELECT plan_id, plan_name, COUNT(*) AS n {JOINED} WHERE plan_id < 5 GROUP BY ROLLUP (plan_id, plan_name)"
    assert alike(answered(members, sql).rows, truth(sql, members=MEMBERS, plans=PLANS))


COLUMNS = {
    "who": ColumnCard("integer"),
    "amount": ColumnCard("number", (0, 10)),
    "town": ColumnCard("text"),
    "day": ColumnCard("date", period=(date(2024, 1, 1), date(2024, 12, 31))),
}
RELATION = Card("visits", "", COLUMNS, "who", max_groups="auto", max_rows="auto")


def asked(inner: str, outer: str = "COUNT(*)") -> Query:
    return parse(f"SELECT {outer} FROM ({inner}) AS s", RELATION)


def test_keys_of_expressions_and_of_columns_that_are_compared_inside_are_public():
    question = asked(
        "SELECT who, town, date_trunc('quarter', day) AS q, amount > 5 AS large, COUNT(*) AS n FROM visits "
        "WHERE town IN ('x', 'y') AND day < DATE '2024-07-01' GROUP BY who, town, q, large"
    )
    columns = card_of_question(question, RELATION).columns
    assert columns["town"].keys == ("x", "y")
    assert columns["large"].keys == (False, True)
    assert columns["q"].keys == (date(2024, 1, 1), date(2024, 4, 1))


def test_bounds_of_expressions_are_their_ranges():
    columns = card_of_question(asked("SELECT who, MAX(amount * 3 - 1) AS x FROM visits GROUP BY who"), RELATION).columns
    assert columns["x"].bounds == (-1.0, 29.0)


def test_aggregates_of_columns_without_bounds_get_bounds_chosen_privately():
    sums = "SELECT who, SUM(amount) AS total, AVG(amount) AS mean FROM visits GROUP BY who"
    question = asked(sums, "AVG(total) AS a, AVG(mean) AS b, COUNT(*) AS n")
    card = card_of_question(question, RELATION)
    bounds = {name: item.bounds for name, item in with_unstated_bounds(question, card).aggregates.items()}
    assert bounds == {"a": "auto", "b": None, "n": None}
    plain = parse("SELECT AVG(amount) AS a FROM visits", RELATION)
    assert with_unstated_bounds(plain, RELATION) == plain


CHANCE = Fraction(1, 10**6)


def passes(sigma: float, step: int, limit: int) -> mp.mpf:
    """P(the multiple of step nearest to 1 + N is at least the limit)."""
    first = -(-limit // step) * step
    return mp.ncdf(-(mp.mpf(first) - mp.mpf(step) / 2 - 1) / mp.mpf(sigma))


@each("power", range(20, 41))
@each("delta", [1e-6, 1e-3])
def test_a_key_of_one_person_is_shown_with_at_most_delta_whatever_the_rounding_of_wide_noise(power, delta):
    noise = Gaussian(2.0**power / 5, epsilon=1, delta=delta)
    sigma = float(noise.scale)  # type: ignore[arg-type]
    released = np.asarray(noise.release(np.ones(64, dtype=np.int64)))
    step = int(np.gcd.reduce(released - 1 if sigma <= 2**26 else released))
    with mp.workdps(40):
        for groups in (1, 3):
            limit = threshold(noise, Fraction(str(delta)), groups, normal=True).threshold
            share = mp.mpf(str(delta)) / 2 / groups
            assert passes(sigma, step, limit) <= share
            assert passes(sigma, step, limit - 1) > share
            assert passes(sigma, step, limit) > share * (1 - mp.mpf(2) ** -15)  # no wider than the lattice asks for
    assert (step > 1) == (sigma > 2**26)


@pytest.mark.parametrize("scale", [2.0**20, 2.0**30, 2.0**50, 2.0**57, 2.0**59])
def test_wide_laplace_noise(scale):
    noise = Laplace(scale, epsilon=1)
    limit = threshold(noise, CHANCE, 1, normal=False).threshold
    with mp.workdps(60):
        if scale <= 2**56:
            q = mp.exp(-1 / mp.mpf(scale))
            shown = [q ** (limit - back - 1) / (1 + q) for back in (0, 1)]
        else:
            step = int(np.gcd.reduce([noise.release(1) for _ in range(64)]))
            assert step > 1
            firsts = [-(-(limit - back) // step) * step for back in (0, 1)]
            shown = [mp.exp(-(first - mp.mpf(step) / 2 - 1) / mp.mpf(scale)) / 2 for first in firsts]
        assert shown[0] <= mp.mpf("1e-6") < shown[1]


@pytest.mark.parametrize("sigma", [3, 50.5, 2.0**30])
def test_the_discrete_law_has_no_larger_tail_than_is_counted(sigma):
    noise = Gaussian(sigma, rho=0.5)
    limit = threshold(noise, CHANCE, 1, normal=True).threshold
    with mp.workdps(40):
        if sigma < 100:
            weights = {k: mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2)) for k in range(-2000, 2001)}
            shown = mp.fsum(w for k, w in weights.items() if 1 + k >= limit) / mp.fsum(weights.values())
            assert mp.mpf("4e-7") * (1 if sigma > 10 else mp.mpf("0.2")) < shown <= mp.mpf("5e-7")
        assert passes(sigma, 1, limit) <= mp.mpf("5e-7") < passes(sigma, 1, limit - 1)
