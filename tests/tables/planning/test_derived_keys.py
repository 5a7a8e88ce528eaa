"""Keys that follow from what is public: which they are, and that the rows have no say in them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.compile import statements
from dither.tables.compile.queries import DialectSql
from dither.tables.engines import connect, with_public_values
from dither.tables.planning import plan
from dither.tables.planning.derived_keys import MOST_INTEGERS, MOST_VALUES
from dither.tables.planning.key_selection import bin_labels
from dither.tables.query.evaluate import evaluate
from dither.tables.query.operations import OPERATIONS
from dither.tables.query.tree import Aggregate, Call, Column, Group, Join, Literal, Query
from dither.tables.sql.parse import parse
from support import each

YEAR = (date(2013, 1, 1), date(2013, 12, 31))
CARD = Card(
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


def keys(sql: str, card: Card = CARD) -> tuple[object, ...] | None:
    group, where, condition = sql.partition(" WHERE ")
    query = parse(f"SELECT {group} AS k, COUNT(*) AS n FROM flights{where}{condition} GROUP BY 1", card)
    (result,) = plan.keys_of(query, card)
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
    columns = {name: CARD.columns[name] for name in ("plane", "hour", "distance", "origin", "day")}
    card = replace(CARD, columns=columns, budget=dp.PureDP(1e4), ledger=None)
    with connect(pa.Table.from_pylist(rows), card) as engine:
        for group in groups:
            query = parse(f"SELECT {group} AS k, COUNT(*) AS n FROM flights GROUP BY 1", card)
            planned = plan.make(query, card, epsilon=1)
            context = planned.frame(DialectSql("duckdb"), {"": engine.table}, 1)
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
    card = replace(CARD, columns={**CARD.columns, "distance": ColumnCard("number", (low, high))})
    value = parse(f"SELECT {group} AS k, COUNT(*) AS n FROM flights GROUP BY 1", card).groups[0].value
    numbers = [low + step / 2 for step in range(round((high - low) * 2) + 1)]
    found = {evaluate(value, {"distance": number}) for number in numbers}
    known = keys(group, card)
    assert known is not None
    assert set(known) == found | ({None} if "NULLIF" in group else set())


def test_lists_too_long_to_combine_are_not_used():
    query = Query({"n": Aggregate("count")}, tuple(Group(name, Call("+", (Column("hour"), Literal(i)))) for i, name in
                                                     enumerate("abcde")))  # fmt: skip
    result = plan.keys_of(query, CARD)
    assert sum(listed is None for listed in result) == 1
    assert 24**4 <= 1_000_000 < 24**5


def test_mode_chooses_among_derived_keys():
    query = Query({"k": Aggregate("mode", Column("hour"))}, where=Call("<", (Column("hour"), Literal(5))))
    planned = plan.make(query, CARD, epsilon=1)
    assert planned.choices[0].aggregate.keys == (0, 1, 2, 3, 4)


# -- public tables -----------------------------------------------------------------------------------------------------


def with_airlines(tmp_path, rows: str) -> Card:
    (tmp_path / "airlines.csv").write_text(f"code,name\n{rows}")
    public = {"airlines": PublicTable(str(tmp_path / "airlines.csv"),
                                      {"code": ColumnCard("text"), "name": ColumnCard("text")})}  # fmt: skip
    columns = {name: CARD.columns[name] for name in ("plane", "carrier")}
    return replace(CARD, columns=columns, public=public)


@pytest.mark.parametrize("left", [False, True])
def test_values_of_a_public_table_are_keys_whatever_the_rows(tmp_path, left):
    card = with_airlines(tmp_path, "AA,American\nUA,United\nB6,JetBlue\nXX,United\n")
    query = Query(
        {"n": Aggregate("count")},
        (Group("name", Column("name", "airlines")),),
        joins=(Join("airlines", Column("carrier"), "code", left),),
    )
    assert plan.keys_of(query, card) == (None,)
    for rows in ([], ["AA"], ["AA", "ZZ", None]):
        table = pa.table({"plane": pa.array(rows, pa.string()), "carrier": pa.array(rows, pa.string())})
        with connect(table, card) as engine:
            known = with_public_values(engine, card, query)
            (result,) = plan.keys_of(query, known)
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
        assert plan.keys_of(query, with_public_values(engine, card, query)) == (None,)


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
    assert plan.keys_of(parse(sql, visits), visits) == (None,)
