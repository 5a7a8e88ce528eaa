"""The type of an answer is the one that DuckDB gives it, and SQL on top of it means what it means there."""

from __future__ import annotations

from datetime import date, datetime

import duckdb
import pyarrow as pa
import pytest

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.planning.plan import answer_type
from dither.tables.sql.parse import parse
from support import each
from tables.raw_rows import alike, answered, truth

FIRST, LAST = date(2024, 1, 1), date(2024, 12, 31)
COLUMNS = {
    "pid": ColumnCard("integer"),
    "n": ColumnCard("integer", (0, 9)),
    "wide": ColumnCard("integer", (0, 10**6)),
    "x": ColumnCard("number", (0, 9)),
    "b": ColumnCard("boolean"),
    "s": ColumnCard("text", keys=("a", "b")),
    "d": ColumnCard("date", period=(FIRST, LAST)),
    "t": ColumnCard("timestamp", period=(datetime(2024, 1, 1), datetime(2024, 12, 31))),
}
CARD = Card("data", "", COLUMNS, unit="pid", max_rows=2, delta=1e-6)
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
    columns = ", ".join(f"NULL::{kinds.get(card.type, card.type)} AS {name}" for name, card in COLUMNS.items())
    native = duckdb.sql(f"SELECT typeof({aggregate}) FROM (SELECT {columns}) AS data").fetchall()[0][0]
    return CLASSES.get(native, "number" if native.startswith("DECIMAL") else native)


def test_the_type_of_an_answer_is_that_of_duckdb():
    asked = [*OTHERS, *(f"{name}({value})" for value in VALUES for name in ("SUM", "MIN", "MAX", "AVG"))]
    checked = set()
    for aggregate in asked:
        if aggregate in ("MIN(b)", "MAX(b)", "AVG(b)"):  # here they are those of 0 and 1
            continue
        try:
            query = parse(f"SELECT {aggregate} AS a FROM data", CARD)
            (plan,) = plan_question(query, CARD, ReleaseOptions(epsilon=1)).parts
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
    bounds = {"qty": (0, 10), "age": (0, 120), "bytes": (0, 2**32), "day": (FIRST, LAST)}
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
