"""What SQL means: pairs of a query and the question it asks, and random questions written as SQL and read back."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.query.tree import Aggregate, Call, Column, Expression, Group, Join, Literal, Order, Query, Shape
from dither.tables.sql.parse import parse
from support import each, refuses
from tables.questions import CARD, conditions, numbers, op, sql, text

N = Aggregate("count")
REGION = Group("region", Column("region"))


def asked(query: str, card=CARD) -> Query:
    return parse(query, card)


def where(condition: str) -> Expression:
    result = asked(f"SELECT COUNT(*) FROM visits WHERE {condition}").where
    assert result is not None
    return result


CONDITIONS = [
    ("age > 18", op(">", "age", 18)),
    ("age >= 18 AND age <> 20", op("and", op(">=", "age", 18), op("<>", "age", 20))),
    ("age != 18", op("<>", "age", 18)),
    ("age = 1 OR age = 2 AND vip", op("or", op("=", "age", 1), op("and", op("=", "age", 2), "vip"))),
    ("NOT vip", op("not", "vip")),
    ("vip = TRUE", op("=", "vip", True)),
    ("region = 'north'", op("=", "region", text("north"))),
    ("region = 'it''s'", op("=", "region", text("it's"))),
    ("region = '😀'", op("=", "region", text("😀"))),
    ("region IN ('north', 'south')", op("in", "region", text("north"), text("south"))),
    ("age NOT IN (1, -2)", op("not", op("in", "age", 1, -2))),
    ("age BETWEEN 18 AND 65", op("between", "age", 18, 65)),
    ("age NOT BETWEEN 18 AND 65", op("not", op("between", "age", 18, 65))),
    ("region LIKE 'n%'", op("like", "region", text("n%"))),
    ("region NOT LIKE 'n_'", op("not", op("like", "region", text("n_")))),
    ("NOT region LIKE 'n%'", op("not", op("like", "region", text("n%")))),
    ("region IS NULL", op("is_null", "region")),
    ("region IS NOT NULL", op("not", op("is_null", "region"))),
    ("amount * 2 + 1 < -age / 3", op("<", op("+", op("*", "amount", 2), 1), op("/", op("neg", "age"), 3))),
    ("amount > .5", op(">", "amount", 0.5)),
    ("amount > 1e3", op(">", "amount", 1000.0)),
    ("amount > - - 3", op(">", "amount", 3)),
    ("age > -9223372036854775808", op(">", "age", -(2**63))),
    ("ABS(age) = 1", op("=", op("abs", "age"), 1)),
    ("LOWER(region) = UPPER(region)", op("=", op("lower", "region"), op("upper", "region"))),
    ("COALESCE(age, 0) = 0", op("=", op("coalesce", "age", 0), 0)),
    ("IFNULL(age, NULL) = 0", op("=", op("coalesce", "age", None), 0)),
    ("NULLIF(age, 0) = 1", op("=", op("nullif", "age", 0), 1)),
    ("CASE WHEN vip THEN 1 ELSE 0 END = 1", op("=", op("case", "vip", 1, 0), 1)),
    ("CASE region WHEN 'a' THEN 1 END = 1", op("=", op("case", op("=", "region", text("a")), 1, None), 1)),
    ("day >= '2024-01-31'", op(">=", "day", date(2024, 1, 31))),
    ("'2024-01-31' <= day", op("<=", Literal(date(2024, 1, 31)), "day")),
    ("day = DATE '2024-01-31'", op("=", "day", date(2024, 1, 31))),
    ("day = CAST('2024-01-31' AS DATE)", op("=", "day", date(2024, 1, 31))),
    ("day = '2024-01-31'::date", op("=", "day", date(2024, 1, 31))),
    ("day < TIMESTAMP '2024-01-31 00:00:00'", op("<", "day", date(2024, 1, 31))),
    ("day IN ('2024-01-31', DATE '2024-02-01')", op("in", "day", date(2024, 1, 31), date(2024, 2, 1))),
    ("at < '2024-01-31'", op("<", "at", datetime(2024, 1, 31))),
    ("at < TIMESTAMP '2024-01-31 12:30:00.5'", op("<", "at", datetime(2024, 1, 31, 12, 30, 0, 500000))),
    (
        "at BETWEEN DATE '2024-01-31' AND '2024-02-01T10:00'",
        op("between", "at", datetime(2024, 1, 31), datetime(2024, 2, 1, 10)),
    ),
    ("date_trunc('Month', day) = '2024-01-01'", op("=", op("date_trunc", text("month"), "day"), date(2024, 1, 1))),
    ("DATE_TRUNC(day, MONTH) = '2024-01-01'", op("=", op("date_trunc", text("month"), "day"), date(2024, 1, 1))),
    ("TIMESTAMP_TRUNC(at, ISOWEEK) IS NULL", op("is_null", op("date_trunc", text("week"), "at"))),
    (
        "COALESCE(day, '2024-01-31') = '2024-01-31'",
        op("=", op("coalesce", "day", date(2024, 1, 31)), date(2024, 1, 31)),
    ),
    ("WIDTH_BUCKET(age, 0, 10, 4) = 2", op("=", op("+", op("bin", "age", 0, 2.5, 5, 7.5, 10), 1), 2)),
    ("age = '5'", op("=", "age", 5)),
    ("amount < '5.5'", op("<", "amount", 5.5)),
    ("vip = 1", op("=", "vip", True)),
    ("vip IN ('true', 0)", op("in", "vip", True, False)),
    ("vip IS TRUE", op("not", op("is_distinct", "vip", True))),
    ("vip IS NOT FALSE", op("not", op("not", op("is_distinct", "vip", False)))),
    ("day = at", op("=", op("cast", text("timestamp"), "day"), "at")),
    ("day < TIMESTAMP '2024-01-31 12:00:00'", op("<", op("cast", text("timestamp"), "day"), datetime(2024, 1, 31, 12))),
    ("CAST(amount AS DECIMAL(10, 2)) = 1", op("=", op("round", op("cast", text("number"), "amount"), 2), 1)),
    ("SUBSTRING(region FROM 1 FOR 2) = 'no'", op("=", op("substr", "region", 1, 2), text("no"))),
    ("TRIM(BOTH ' ' FROM region) = 'a'", op("=", op("trim", "region"), text("a"))),
    ("TRIM(TRAILING FROM region) = 'a'", op("=", op("rtrim", "region"), text("a"))),
    ("age // 2 = 1", op("=", op("//", "age", 2), 1)),
    ("DATEADD(day, 2, day) = '2024-01-31'", op("=", op("date_add", text("day"), 2, "day"), date(2024, 1, 31))),
    ("DATE(at) = '2024-01-31'", op("=", op("cast", text("date"), "at"), date(2024, 1, 31))),
    ("ISNULL(age)", op("is_null", "age")),
    ("ISNULL(age, 0) = 0", op("=", op("coalesce", "age", 0), 0)),
    ('"age" > 1 -- a comment', op(">", "age", 1)),
    ("/* one */ `AGE` > /* two */ 1", op(">", "age", 1)),
    ("\"mixed case\" = 'a'", op("=", "Mixed Case", text("a"))),
    ("(((age))) > (1)", op(">", "age", 1)),
    ("visits.age > 1", op(">", "age", 1)),
]


@each(("condition", "expected"), CONDITIONS)
def test_condition(condition, expected):
    result = where(condition)
    assert result == expected
    # True == 1 == 1.0 in Python, but not in SQL
    assert repr(result) == repr(expected)


AGGREGATES = [
    ("COUNT(*)", "count", N),
    ("count(1)", "count", N),
    ("COUNT(region)", "count_region", Aggregate("count_value", Column("region"))),
    ("COUNT(age + 1)", "count", Aggregate("count_value", op("+", "age", 1))),
    ("COUNT(DISTINCT person)", "people", Aggregate("people")),
    ("COUNT(DISTINCT Person)", "people", Aggregate("people")),
    ("COUNT(DISTINCT region)", "count_distinct_region", Aggregate("count_distinct", Column("region"))),
    ("COUNT(*) FILTER (WHERE vip)", "count", Aggregate("count_value", op("case", "vip", 1, None))),
    ("COUNTIF(vip)", "count", Aggregate("count_value", op("case", "vip", 1, None))),
    ("COUNT(age) FILTER (WHERE vip)", "count", Aggregate("count_value", op("case", "vip", "age", None))),
    ("SUM(amount)", "sum_amount", Aggregate("sum", Column("amount"))),
    ("SUM(ALL amount)", "sum_amount", Aggregate("sum", Column("amount"))),
    ("SUM(amount) FILTER (WHERE vip)", "sum", Aggregate("sum", op("case", "vip", "amount", None))),
    ("SUM(CASE WHEN vip THEN 1 ELSE 0 END)", "sum", Aggregate("sum", op("case", "vip", 1, 0))),
    ("AVG(amount * 2)", "mean", Aggregate("mean", op("*", "amount", 2))),
    ("VARIANCE(amount)", "var_amount", Aggregate("var", Column("amount"))),
    ("VAR(amount)", "var_amount", Aggregate("var", Column("amount"))),
    ("VAR_SAMP(amount)", "var_amount", Aggregate("var", Column("amount"))),
    ("STDDEV(amount)", "std_amount", Aggregate("std", Column("amount"))),
    ("STDDEV_SAMP(amount)", "std_amount", Aggregate("std", Column("amount"))),
    ("MIN(age)", "min_age", Aggregate("min", Column("age"))),
    ("MAX(age)", "max_age", Aggregate("max", Column("age"))),
    ("MEDIAN(age)", "median_age", Aggregate("quantile", Column("age"), at=0.5)),
    ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age)", "quantile_age", Aggregate("quantile", Column("age"), at=0.9)),
    ("PERCENTILE_CONT(age, 0.9)", "quantile_age", Aggregate("quantile", Column("age"), at=0.9)),
    ("QUANTILE(age, 0)", "quantile_age", Aggregate("quantile", Column("age"), at=0.0, discrete=True)),
    ("QUANTILE_CONT(age, 1)", "quantile_age", Aggregate("quantile", Column("age"), at=1.0)),
    ("APPROX_QUANTILE(age, 0.25)", "quantile_age", Aggregate("quantile", Column("age"), at=0.25, discrete=True)),
    ("MODE(region)", "mode_region", Aggregate("mode", Column("region"), keys=("north", "south"))),
    (
        "MODE() WITHIN GROUP (ORDER BY region)",
        "mode_region",
        Aggregate("mode", Column("region"), keys=("north", "south")),
    ),
    (
        "AVG(age, contribution_bounds_per_row => (-1, 9.5))",
        "mean_age",
        Aggregate("mean", Column("age"), bounds=(-1, 9.5)),
    ),
    ("SUM(age, contribution_bounds_per_group => (0, 9))", "sum_age", Aggregate("sum", Column("age"), bounds=(0, 9))),
    ("COUNT(*, rows_per_person => 4)", "count", Aggregate("count", rows_per_person=4)),
    (
        "AVG(age, contribution_bounds_per_row => (0, 9), rows_per_person => 4)",
        "mean_age",
        Aggregate("mean", Column("age"), bounds=(0, 9), rows_per_person=4),
    ),
]


@each(("written", "name", "expected"), AGGREGATES)
def test_aggregate(written, name, expected):
    result = asked(f"SELECT {written} FROM visits")
    assert result == Query({name: expected}, shape=Shape({name: Column(name)}))


QUERIES = [
    (
        "SELECT region, COUNT(*) n, AVG(amount) AS spend FROM visits GROUP BY region",
        Query(
            {"n": N, "spend": Aggregate("mean", Column("amount"))},
            (REGION,),
            shape=Shape({"region": Column("region"), "n": Column("n"), "spend": Column("spend")}),
        ),
    ),
    (
        "select REGION, count(*) from VISITS as v where V.AGE > 1 group by v.Region;",
        Query(
            {"count": N},
            (REGION,),
            op(">", "age", 1),
            shape=Shape({"region": Column("region"), "count": Column("count")}),
        ),
    ),
    (
        "SELECT SUM(amount) / COUNT(*) AS m, COUNT(*) AS n, COUNT(*) again FROM visits",
        Query(
            {"n": N, "sum_amount": Aggregate("sum", Column("amount"))},
            shape=Shape({"m": op("/", "sum_amount", "n"), "n": Column("n"), "again": Column("n")}),
        ),
    ),
    (
        "SELECT COUNT(*), COUNT(*), SUM(age), SUM(age) + 1, 2 * SUM(age), 7 FROM visits",
        Query(
            {"count": N, "sum_age": Aggregate("sum", Column("age"))},
            shape=Shape(
                {
                    "count": Column("count"),
                    "count_2": Column("count"),
                    "sum_age": Column("sum_age"),
                    "value": op("+", "sum_age", 1),
                    "value_2": op("*", Literal(2), "sum_age"),
                    "value_3": Literal(7),
                }
            ),
        ),
    ),
    (
        "SELECT SUM(age) AS count, COUNT(*) FROM visits",
        Query(
            {"count": Aggregate("sum", Column("age")), "count_2": N},
            shape=Shape({"count": Column("count"), "count_2": Column("count_2")}),
        ),
    ),
    (
        "SELECT date_trunc('month', day) AS m, COUNT(*) n FROM visits GROUP BY 1 ORDER BY 2 DESC, m LIMIT 3",
        Query(
            {"n": N},
            (Group("m", op("date_trunc", text("month"), "day")),),
            shape=Shape(
                {"m": Column("m"), "n": Column("n")},
                order=(Order(Column("n"), descending=True), Order(Column("m"))),
                limit=3,
            ),
        ),
    ),
    (
        "SELECT lower(region) l, COUNT(*) n FROM visits GROUP BY l HAVING n > 5 AND SUM(age) > 1 ORDER BY -n",
        Query(
            {"n": N, "sum_age": Aggregate("sum", Column("age"))},
            (Group("l", op("lower", "region")),),
            shape=Shape(
                {"l": Column("l"), "n": Column("n")},
                op("and", op(">", "n", 5), op(">", "sum_age", 1)),
                (Order(op("neg", "n")),),
            ),
        ),
    ),
    (
        "SELECT COUNT(*) n FROM visits GROUP BY region, date_trunc('year', day), region",
        Query(
            {"n": N},
            (REGION, Group("date_trunc_day", op("date_trunc", text("year"), "day"))),
            shape=Shape({"n": Column("n")}),
        ),
    ),
    (
        "SELECT upper(region) u, COUNT(*) n FROM visits GROUP BY region HAVING region = 'a'",
        Query(
            {"n": N},
            (REGION,),
            shape=Shape({"u": op("upper", "region"), "n": Column("n")}, op("=", "region", text("a"))),
        ),
    ),
    (
        "SELECT WIDTH_BUCKET(age, 0, 100, 2) AS b, COUNT(*) n FROM visits GROUP BY b HAVING b = 1 ORDER BY 1",
        Query(
            {"n": N},
            (Group("b", op("bin", "age", 0, 50, 100)),),
            shape=Shape(
                {"b": op("+", "b", 1), "n": Column("n")}, op("=", op("+", "b", 1), 1), (Order(op("+", "b", 1)),)
            ),
        ),
    ),
    (
        "SELECT region FROM visits GROUP BY region ORDER BY COUNT(DISTINCT person) DESC",
        Query(
            {"people": Aggregate("people")},
            (REGION,),
            shape=Shape({"region": Column("region")}, order=(Order(Column("people"), descending=True),)),
        ),
    ),
    (
        "SELECT SUM(amount) AS amount FROM visits HAVING amount > 5 ORDER BY amount",
        Query(
            {"amount": Aggregate("sum", Column("amount"))},
            shape=Shape({"amount": Column("amount")}, op(">", "amount", 5), (Order(Column("amount")),)),
        ),
    ),
    (
        "SELECT name, SUM(r.size) s FROM visits v JOIN regions r ON v.region = r.region WHERE size > 1 GROUP BY name",
        Query(
            {"s": Aggregate("sum", Column("size", "regions"))},
            (Group("name", Column("name", "regions")),),
            Call(">", (Column("size", "regions"), Literal(1))),
            (Join("regions", Column("region"), "region"),),
            Shape({"name": Column("name"), "s": Column("s")}),
        ),
    ),
    (
        "SELECT COUNT(*) FROM visits LEFT JOIN regions ON (regions.region = LOWER(visits.region))",
        Query(
            {"count": N},
            joins=(Join("regions", op("lower", "region"), "region", left=True),),
            shape=Shape({"count": Column("count")}),
        ),
    ),
    (
        "SELECT COUNT(*) FROM visits INNER JOIN regions r USING (region) WHERE region = r.region",
        Query(
            {"count": N},
            where=Call("=", (Column("region"), Column("region", "regions"))),
            joins=(Join("regions", Column("region"), "region"),),
            shape=Shape({"count": Column("count")}),
        ),
    ),
    (
        "SELECT r, SUM(double) s FROM (SELECT amount * 2 AS double, region AS r FROM visits WHERE vip) AS inner_rows "
        "WHERE double > 5 GROUP BY r",
        Query(
            {"s": Aggregate("sum", op("*", "amount", 2))},
            (Group("r", Column("region")),),
            op("and", "vip", op(">", op("*", "amount", 2), 5)),
            shape=Shape({"r": Column("r"), "s": Column("s")}),
        ),
    ),
    (
        "SELECT COUNT(DISTINCT who) FROM (SELECT * FROM (SELECT person AS who, visits.* FROM visits) WHERE age > 1)",
        Query({"people": Aggregate("people")}, where=op(">", "age", 1), shape=Shape({"people": Column("people")})),
    ),
    (
        "SELECT s.name, COUNT(*) n FROM (SELECT age, name FROM visits JOIN regions USING (region)) s GROUP BY s.name",
        Query(
            {"n": N},
            (Group("name", Column("name", "regions")),),
            joins=(Join("regions", Column("region"), "region"),),
            shape=Shape({"name": Column("name"), "n": Column("n")}),
        ),
    ),
    (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, delta = 1e-6, max_groups_contributed = 3, "
        "max_rows_per_group = 2, privacy_unit_column = person) region, "
        'COUNT(*, contribution_bounds_per_group => (0, 2)) FROM visits WHERE region = "no" # comment\n GROUP BY region',
        Query(
            {"count": N},
            (REGION,),
            op("=", "region", text("no")),
            shape=Shape({"region": Column("region"), "count": Column("count")}),
            epsilon=0.5,
            delta=1e-6,
            max_groups=3,
            max_rows=2,
        ),
    ),
    (
        "SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM `visits`",
        Query({"count": N}, shape=Shape({"count": Column("count")})),
    ),
    (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = Person) COUNT(*) FROM visits LIMIT 0",
        Query({"count": N}, shape=Shape({"count": Column("count")}, limit=0)),
    ),
]


@each(("written", "expected"), QUERIES)
def test_query(written, expected):
    result = asked(written)
    assert result == expected
    assert list(result.shape.columns) == list(expected.shape.columns)


def test_several_rows_and_count_bounds():
    result = asked("SELECT COUNT(*, contribution_bounds_per_group => (0, 5)) FROM visits")
    assert result.max_rows == 5
    several = replace(CARD, max_rows=3)
    assert asked("SELECT SUM(age, contribution_bounds_per_row => (0, 5)) FROM visits", several).max_rows is None
    with refuses(InvalidArgument, "one row per person"):
        asked("SELECT SUM(age, contribution_bounds_per_group => (0, 5)) FROM visits", several)


def test_a_column_in_its_exact_spelling_goes_first():
    columns = {"a": CARD.columns["age"], "A": CARD.columns["age"]}
    card = replace(CARD, columns={**CARD.columns, **columns})
    assert asked('SELECT SUM("A") FROM visits', card).aggregates == {"sum_A": Aggregate("sum", Column("A"))}
    assert asked("SELECT SUM(a) FROM visits", card).aggregates == {"sum_a": Aggregate("sum", Column("a"))}


def test_columns_named_like_keywords():
    odd = ["date", "year", "value", "type", "index", "row", "rank", "format", "first", "end", "order", "from"]
    card = replace(CARD, columns=dict.fromkeys(odd, CARD.columns["age"]))
    for name in odd:
        assert asked(f'SELECT SUM("{name}") s FROM visits', card).aggregates["s"].value == Column(name)
    for name in odd[:9]:
        assert asked(f"SELECT SUM({name}) s FROM visits GROUP BY {name}", card).aggregates["s"].value == Column(name)


@pytest.mark.slow
@settings(max_examples=300)
@given(conditions(depth=3))
def test_conditions_come_back(condition):
    assert repr(where(sql(condition))) == repr(condition)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.sampled_from(["sum", "mean", "var", "std", "min", "max"]), numbers(depth=3), st.booleans())
def test_aggregates_come_back(kind, value, grouped):
    name = {"mean": "AVG", "var": "VARIANCE", "std": "STDDEV"}.get(kind, kind)
    tail = f"GROUP BY {sql(value)}, region" if grouped else ""
    result = asked(f"SELECT {name}({sql(value)}) AS x FROM visits {tail}")
    assert repr(result.aggregates) == repr({"x": Aggregate(kind, value)})
    if grouped:
        assert [item.value for item in result.groups if item.name != "region"] == [value]


@pytest.mark.slow
@settings(max_examples=200)
@given(numbers(("n", "s"), 3, ("region",), dated=False), conditions(2, ("n", "s"), ("region",), dated=False))
def test_shapes_come_back(shown, having):
    query = "SELECT region, COUNT(*) n, SUM(age) s, {} AS x FROM visits GROUP BY region HAVING {} ORDER BY {}"
    # names of the answer stand in HAVING and ORDER BY; in SELECT the aggregates themselves do
    direct = sql(shown).replace('"n"', "COUNT(*)").replace('"s"', "SUM(age)")
    result = asked(query.format(direct, sql(having), sql(shown))).shape
    assert repr(result.columns["x"]) == repr(shown)
    assert repr(result.having) == repr(having)
    assert repr(result.order) == repr((Order(shown),))


def test_nothing_loads_sqlglot_before_a_question():
    code = "import sys, dither, dither.tables.builder.steps; assert 'sqlglot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])


VISITS = pa.table({"patient": [1, 1, 2], "amount": [1.0, 2.0, 3.0]})
PATIENTS = pa.table({"id": [1, 2], "region": ["north", "south"]})
UNITS = {"visits": "patient", "patients": "id"}


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) FROM nothing", ("FROM one of visits, patients", "FROM visits")),
        ("SELECT region, COUNT(*) FROM visits GROUP BY region", ("region",)),
        ("WITH patients AS (SELECT 1 AS a) SELECT COUNT(*) FROM visits", ("a new name after WITH",)),
    ],
)
def test_a_question_that_is_not_about_the_tables_says_which_there_are(sql, words):
    frames = {"visits": VISITS, "patients": PATIENTS}
    with dp.open(frames, unit=UNITS, budget=dp.PureDP(1)) as table, refuses(InvalidArgument, *words):
        table.sql(sql)
