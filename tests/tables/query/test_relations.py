"""What is known of private relations before any row is read."""

from __future__ import annotations

from datetime import date, datetime

import duckdb
import pyarrow as pa
import pytest

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard, PrivateTable
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.planning.plan import answer_type
from dither.tables.query.operations.base import Range
from dither.tables.query.relations import describe_relation, extent_of, relation_card, relation_schema
from dither.tables.query.tree import (
    Call,
    Column,
    Literal,
    PerPerson,
    PersonAggregate,
    PersonJoin,
    PrivateRows,
    Projection,
    UnionAll,
    Windowed,
    WindowFunction,
)
from dither.tables.sql.parse import parse
from support import each, refuses
from tables.raw_rows import alike, answered, truth

DAYS = (date(2024, 1, 1), date(2024, 12, 31))
COLUMNS = {
    "who": ColumnCard("integer"),
    "amount": ColumnCard("number", (-5, 10)),
    "region": ColumnCard("text", keys=("a", "b")),
    "day": ColumnCard("date", period=DAYS),
}
OTHER = PrivateTable("", {"id": ColumnCard("integer"), "who": ColumnCard("text")}, "id")
CARD = Card("visits", "", COLUMNS, "who", max_groups=3, max_rows=4, tables={"others": OTHER})
ROWS = PrivateRows()
FIRST = Call("=", (Column("p"), Literal(1)))
NUMBERED = Windowed(ROWS, {"place": WindowFunction("row_number")})


def test_aggregates_of_a_person_have_the_bounds_of_their_values_and_counts_and_sums_have_none():
    kinds = ("count", "count_value", "sum", "mean", "min", "max")
    values = {kind: PersonAggregate(kind, None if kind == "count" else Column("amount")) for kind in kinds}
    columns = relation_schema(CARD, PerPerson(ROWS, {**values, "first": PersonAggregate("min", Column("day"))})).columns
    assert {name: columns[name].bounds for name in kinds} == {
        "count": None, "count_value": None, "sum": None, "mean": (-5, 10), "min": (-5, 10), "max": (-5, 10)
    }  # fmt: skip
    extents = {name: extent_of(columns[name]) for name in kinds}
    assert extents["count"] == Range.whole(1, 2**31)
    assert extents["count_value"] == Range.whole(0, 2**31)
    assert extents["sum"] == Range.of(-10 * 2.0**31, 10 * 2.0**31, 2.0**-76)
    assert extents["mean"] is extents["min"] is extents["max"] is None
    assert columns["first"].period == DAYS


def test_values_of_other_rows_have_the_bounds_and_keys_of_the_column_and_may_be_missing():
    source = Windowed(
        ROWS, {"last": WindowFunction("lag", Column("region")), "x": WindowFunction("max", Column("amount"))}
    )
    columns = relation_schema(CARD, source).columns
    assert columns["last"].keys == ("a", "b", None)
    assert columns["x"].bounds == (-5, 10)


@each(
    ("source", "where", "one_row"),
    [
        (ROWS, None, False),
        (PerPerson(ROWS, {}), None, True),
        (PerPerson(ROWS, {}, {"region": Column("region")}), None, False),
        (PersonJoin(PerPerson(ROWS, {}), PerPerson(ROWS, {}), "full"), None, True),
        (PersonJoin(PerPerson(ROWS, {}), PerPerson(ROWS, {}), "full", on=Literal(True)), None, False),
        (PersonJoin(PerPerson(ROWS, {}), PerPerson(ROWS, {}), "left", on=Literal(True)), None, True),
        (PersonJoin(PerPerson(ROWS, {}), ROWS, "left"), None, False),
        (PersonJoin(PerPerson(ROWS, {}), ROWS, "semi"), None, True),
        (UnionAll((PerPerson(ROWS, {}), PerPerson(ROWS, {}))), None, False),
        (NUMBERED, Call("=", (Column("place"), Literal(1))), True),
        (NUMBERED, Call("and", (Call("<=", (Column("place"), Literal(1))), Column("vip"))), True),
        (NUMBERED, Call("<=", (Column("place"), Literal(2))), False),
        (NUMBERED, Call("or", (Call("=", (Column("place"), Literal(1))), Column("vip"))), False),
        (Windowed(ROWS, {"place": WindowFunction("rank")}), Call("=", (Column("place"), Literal(1))), False),
        (
            Windowed(ROWS, {"place": WindowFunction("row_number", partition=(Column("region"),))}),
            Call("=", (Column("place"), Literal(1))),
            False,
        ),
        (
            Projection(Projection(NUMBERED, {"p": Column("place")}), {}, Call("=", (Column("p"), Literal(1)))),
            None,
            True,
        ),
    ],
)
def test_a_person_is_known_to_have_one_row_at_most(source, where, one_row):
    assert (relation_card(CARD, source, where=where).unit is None) == one_row


def test_a_column_of_another_table_does_not_take_the_name_of_the_person():
    assert relation_schema(CARD, PrivateRows("others")).columns == {
        "who": ColumnCard("integer"), "own.who": ColumnCard("text")
    }  # fmt: skip


def test_people_of_different_types_are_not_the_same_people():
    other = PrivateTable("", {"id": ColumnCard("text")}, "id")
    card = Card("visits", "", COLUMNS, "who", tables={"others": other})
    with refuses(InvalidArgument, "one type of the column of the person"):
        relation_schema(card, PrivateRows("others"))


def test_a_relation_is_described_in_a_few_words():
    joined = PersonJoin(PerPerson(ROWS, {}, {"region": Column("region")}), PrivateRows("others"), "inner")
    assert describe_relation(joined, CARD) == "a row for each who and region, of visits joined with others on who"
    assert describe_relation(PersonJoin(ROWS, ROWS, "anti"), CARD) == "visits of people who are not in visits"


NUMBERS_FIRST, LAST = date(2024, 1, 1), date(2024, 12, 31)
NUMBERS_COLUMNS = {
    "pid": ColumnCard("integer"),
    "n": ColumnCard("integer", (0, 9)),
    "wide": ColumnCard("integer", (0, 10**6)),
    "x": ColumnCard("number", (0, 9)),
    "b": ColumnCard("boolean"),
    "s": ColumnCard("text", keys=("a", "b")),
    "d": ColumnCard("date", period=(NUMBERS_FIRST, LAST)),
    "t": ColumnCard("timestamp", period=(datetime(2024, 1, 1), datetime(2024, 12, 31))),
}
NUMBERS_CARD = Card("data", "", NUMBERS_COLUMNS, unit="pid", max_rows=2, delta=1e-6)
WHOLE = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"]
CLASSES = {**dict.fromkeys(WHOLE, "integer"), "DOUBLE": "number", "VARCHAR": "text", "BOOLEAN": "boolean"}
CLASSES |= {"DATE": "date", "TIMESTAMP": "timestamp"}
VALUES = [
    "n", "wide", "x", "n * 2", "n / 2", "n * 1.5", "n + x", "-n", "ABS(n)", "ABS(x)", "n // 2", "n % 2", "b", "b::INT",
    "b::DOUBLE", "n::DOUBLE", "FLOOR(x)", "FLOOR(n)", "CEIL(x)", "ROUND(x)", "ROUND(n)", "ROUND(n, -1)", "ROUND(x, 1)",
    "TRUNC(x)", "TRUNC(n)", "SIGN(x)", "SIGN(n)", "CAST(x AS INT)", "CASE WHEN b THEN n ELSE 0 END",
    "CASE WHEN b THEN n ELSE 0.5 END", "CASE WHEN b THEN 1 ELSE 0 END", "CASE WHEN x > 3 THEN n END", "IF(b, 1, 0)",
    "COALESCE(n, 0)", "COALESCE(n, 0.5)", "COALESCE(x, n)", "GREATEST(n, 2)", "GREATEST(n, x)", "LEAST(n, 2.5)",
    "NULLIF(n, 0)", "NULLIF(x, 0)", "DATE_DIFF('day', d, DATE '2024-12-31')", "DATE '2024-12-31' - d", "YEAR(d)",
    "MONTH(d) * 100", "EXTRACT(HOUR FROM t)", "LENGTH(s)", "n * 100 // 7", "SQRT(n)", "EXP(n)", "2", "2.0", "n * n",
    "FLOOR(x) * 2", "FLOOR(x) + n", "CASE WHEN b THEN FLOOR(x) ELSE 1 END", "DATE_DIFF('day', d, d) // 7",
]  # fmt: skip
OTHERS = [
    "COUNT(*)", "COUNT(x)", "COUNT(DISTINCT n)", "COUNT(DISTINCT pid)", "COUNT_IF(b)", "COUNT(*) FILTER (WHERE b)",
    "SUM(n) FILTER (WHERE b)", "MEDIAN(n)", "MEDIAN(x)", "QUANTILE(n, 0.3)", "QUANTILE(x, 0.3)",
    "QUANTILE_CONT(n, 0.3)", "APPROX_QUANTILE(n, 0.3)", "APPROX_QUANTILE(x, 0.3)", "VAR_SAMP(n)", "STDDEV(n)",
    "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY n)", "MODE(s)", "MODE(n)", "MODE(b)", "CORR(n, x)",
    "COVAR_POP(n, x)", "REGR_SLOPE(n, x)",
]  # fmt: skip


def type_in_duckdb(aggregate: str) -> str:
    kinds = {"integer": "BIGINT", "number": "DOUBLE", "text": "VARCHAR"}
    columns = ", ".join(f"NULL::{kinds.get(card.type, card.type)} AS {name}" for name, card in NUMBERS_COLUMNS.items())
    native = duckdb.sql(f"SELECT typeof({aggregate}) FROM (SELECT {columns}) AS data").fetchall()[0][0]
    return CLASSES.get(native, "number" if native.startswith("DECIMAL") else native)


def test_the_type_of_an_answer_is_that_of_duckdb():
    asked = [*OTHERS, *(f"{name}({value})" for value in VALUES for name in ("SUM", "MIN", "MAX", "AVG"))]
    checked = set()
    for aggregate in asked:
        if aggregate in ("MIN(b)", "MAX(b)", "AVG(b)"):  # here they are those of 0 and 1
            continue
        try:
            query = parse(f"SELECT {aggregate} AS a FROM data", NUMBERS_CARD)
            (plan,) = plan_question(query, NUMBERS_CARD, ReleaseOptions(epsilon=1)).parts
        except InvalidArgument:
            continue
        checked.add(aggregate)
        (name,) = plan.query.aggregates
        assert answer_type(plan, plan.query.aggregates[name]) == type_in_duckdb(aggregate), aggregate
    assert len(checked) > 0.9 * len(asked), sorted({*asked} - checked)


PIECES = pa.table(
    {
        "pid": list(range(3000)),
        "region": ["n", "s", "e"] * 1000,
        "qty": [1, 2, 4] * 1000,
        "gift": [i % 2 == 0 for i in range(3000)],
        "age": [20, 30, 89] * 1000,
        "bytes": [10**9, 3 * 10**9, 2 * 10**9] * 1000,
        "day": pa.array([date(2024, 1, 1), date(2024, 2, 1), date(2024, 3, 1)] * 1000, pa.date32()),
    }
)


@each(
    "sql",
    [
        "SELECT SUM(qty) // COUNT(*) AS k FROM data", "SELECT region, SUM(qty) // 1000 AS k FROM data GROUP BY region",
        "SELECT region, COUNT(*) // 300 AS k FROM data GROUP BY ROLLUP (region)",
        "SELECT region, gift, SUM(qty) % 7 AS k FROM data GROUP BY CUBE (region, gift)",
        "SELECT SUM(qty)::VARCHAR || ' pieces' AS k FROM data", "SELECT CONCAT(SUM(qty), '!') AS k FROM data",
        "SELECT SUM(CASE WHEN qty > 1 THEN 1 ELSE 0 END) * 100 // COUNT(*) AS k FROM data",
        "SELECT SUM(gift::INT) // 3 AS k, SUM(gift) // 3 AS l FROM data",
        "SELECT SUM(DATE_DIFF('day', day, DATE '2024-12-31')) // 7 AS k FROM data",
        "SELECT MAX(age) // 10 AS k, MIN(age) // 3 AS l FROM data", "SELECT QUANTILE(age, 0.5) // 4 AS k FROM data",
        "SELECT (SELECT SUM(qty) FROM data) // (SELECT COUNT(*) FROM data) AS k",
        "WITH m AS (SELECT region, SUM(qty) AS s FROM data GROUP BY region) SELECT SUM(s) // 3 AS k FROM m",
        "WITH m AS (SELECT region, SUM(qty) AS s FROM data GROUP BY region) SELECT region || s::VARCHAR AS k FROM m",
        "SELECT SUM(qty) AS k FROM data", "SELECT SUM(qty) + 0 AS k FROM data",
        "SELECT CAST(SUM(qty) * SUM(qty) // 7 AS VARCHAR) AS k FROM data",
        "SELECT SUM(bytes // 1000) * 1000000000 // 1000000000000 AS k FROM data",
    ],
)  # fmt: skip
def test_sql_on_top_of_whole_numbers_is_that_of_duckdb(sql):
    bounds = {"qty": (0, 10), "age": (0, 120), "bytes": (0, 2**32), "day": (NUMBERS_FIRST, LAST)}
    with dp.open(PIECES, unit="pid", bounds=bounds, keys={"region": ["n", "s", "e"]}, budget=dp.PureDP(1000)) as table:
        answer = answered(table, sql)
    expected = truth(sql, data=PIECES)
    assert alike(answer.rows, expected)
    types = {type(value) for row in expected for value in row}
    assert {type(value) for row in answer.rows for value in row} <= types


def test_a_whole_answer_is_whole_wherever_it_is_shown():
    with dp.open(PIECES, unit="pid", bounds={"qty": (0, 10)}, budget=dp.PureDP(10)) as table:
        answer = table.agg(total=dp.sum("qty"), mean=dp.mean("qty")).release(epsilon=1)
        again = table.sql("SELECT SUM(qty) AS total, SUM(qty) + 0 AS same FROM data").release(epsilon=1)
    assert isinstance(answer["total"][0], int)
    assert answer.types == ("integer", "number")
    assert answer.to_arrow().schema.field("total").type == pa.int64()
    assert again["total"] == again["same"]


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 3, 40])
def test_the_stated_error_holds_for_rounded_sums(epsilon):
    """400 sums, whose errors are stated at 95 %: with a probability below 1e-9 fewer than 340 are within them."""
    rows = pa.table({"pid": list(range(400)), "k": list(range(400)), "v": [i % 7 for i in range(400)]})
    keys = {"k": list(range(400))}
    with dp.open(rows, unit="pid", bounds={"v": (0, 7)}, keys=keys, budget=dp.PureDP(100)) as table:
        answer = table.sql("SELECT k, SUM(v) AS s FROM data GROUP BY k").release(epsilon=epsilon)
    off = [abs(s - k % 7) <= error for (k, s), error in zip(answer.rows, answer.errors["s"], strict=True)]
    assert sum(off) >= 340
