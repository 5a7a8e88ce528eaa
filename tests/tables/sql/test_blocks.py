"""SQL above the private aggregation: what it answers is what DuckDB answers, up to noise that is next to nothing."""

from __future__ import annotations

from datetime import date, timedelta

import duckdb
import pyarrow as pa
import pytest

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard
from dither.tables.sql.parse import parse
from support import refuses

CARRIERS, ORIGINS = ("AA", "B6", "DL", "UA"), ("EWR", "JFK", "LGA")
FLIGHTS = pa.table(
    {
        "month": [1 + (i * i // 50) % 12 for i in range(6000)],
        "carrier": [CARRIERS[(0, 0, 0, 0, 1, 1, 1, 2, 2, 3)[i % 10]] for i in range(6000)],
        "origin": [ORIGINS[(i // 7) % 3] for i in range(6000)],
        "dep_delay": [float((i * 37) % 90 - 10 + (i // 7) % 3 * 8) for i in range(6000)],
        "distance": [200 + (i * 13) % 2000 for i in range(6000)],
        "day": [date(2013, 1, 1) + timedelta(i % 365) for i in range(6000)],
    }
)
COLUMNS = {
    "month": ColumnCard("integer", keys=tuple(range(1, 13))),
    "carrier": ColumnCard("text", keys=CARRIERS),
    "origin": ColumnCard("text", keys=ORIGINS),
    "dep_delay": ColumnCard("number", (-30, 300)),
    "distance": ColumnCard("integer", (0, 5000)),
    "day": ColumnCard("date"),
}
CARD = Card("flights", "flights.parquet", {**COLUMNS, "tailnum": ColumnCard("text")}, unit="tailnum")

BY_MONTH = "SELECT month, COUNT(*) AS n FROM flights GROUP BY month"
BY_ORIGIN = "SELECT origin, COUNT(*) AS n, AVG(dep_delay) AS d FROM flights GROUP BY origin"
ANALYSTS = [
    f"WITH m AS ({BY_MONTH}) SELECT month, n, n - LAG(n) OVER (ORDER BY month) AS change FROM m ORDER BY month",
    "SELECT carrier, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY carrier "
    "ORDER BY share DESC, carrier",
    "SELECT * FROM (SELECT origin, AVG(dep_delay) AS d FROM flights GROUP BY origin) WHERE d > 10 ORDER BY origin",
    # rounding and formatting
    "SELECT origin, ROUND(AVG(dep_delay), 1) AS d FROM flights GROUP BY origin ORDER BY origin",
    "SELECT origin, CAST(AVG(dep_delay) AS INTEGER) AS d FROM flights GROUP BY origin ORDER BY origin",
    "SELECT LOWER(origin) || ': ' || CAST(COUNT(*) AS VARCHAR) AS line FROM flights GROUP BY origin ORDER BY origin",
    "SELECT printf('%d flights', COUNT(*)) AS said FROM flights",
    "SELECT month, LPAD(CAST(month AS VARCHAR), 2, '0') AS mm, COUNT(*) AS n FROM flights GROUP BY month ORDER BY mm",
    "SELECT CONCAT(carrier, '/', origin) AS pair, COUNT(*) AS n FROM flights GROUP BY carrier, origin ORDER BY pair",
    "SELECT SUBSTR(carrier, 1, 1) AS letter, COUNT(*) AS n FROM flights GROUP BY carrier ORDER BY carrier",
    # windows
    "SELECT month, SUM(COUNT(*)) OVER (ORDER BY month) AS so_far FROM flights GROUP BY month ORDER BY month",
    "SELECT month, AVG(COUNT(*)) OVER (ORDER BY month ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS smooth FROM flights "
    "GROUP BY month ORDER BY month",
    "SELECT carrier, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM flights GROUP BY carrier ORDER BY carrier",
    "SELECT origin, carrier, COUNT(*) AS n FROM flights GROUP BY origin, carrier "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY origin ORDER BY n DESC, carrier) = 1 ORDER BY origin",
    "SELECT origin, carrier, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY origin) AS share FROM flights "
    "GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT month, n / FIRST_VALUE(n) OVER w AS index FROM (SELECT month, COUNT(*) AS n FROM flights GROUP BY month) "
    "WINDOW w AS (ORDER BY month) ORDER BY month",
    f"SELECT month, n, NTILE(4) OVER (ORDER BY month) AS quarter FROM ({BY_MONTH}) ORDER BY month",
    f"WITH m AS ({BY_MONTH}) SELECT month, 100.0 * (n / LAG(n) OVER (ORDER BY month) - 1) AS growth FROM m ORDER BY 1",
    # aggregates of answers
    f"SELECT AVG(n) AS mean, MIN(n) AS least, MAX(n) AS most, COUNT(*) AS months FROM ({BY_MONTH})",
    f"SELECT SUM(n) AS total FROM ({BY_ORIGIN})",
    f"SELECT CASE WHEN month <= 6 THEN 'first' ELSE 'second' END AS half, SUM(n) AS n FROM ({BY_MONTH}) GROUP BY 1 "
    "ORDER BY 1",
    f"SELECT CORR(month, n) AS r FROM ({BY_MONTH})",
    f"SELECT STRING_AGG(origin, ', ' ORDER BY origin) AS origins FROM ({BY_ORIGIN}) WHERE n > 0",
    "SELECT origin, SUM(n) AS n FROM (SELECT origin, carrier, COUNT(*) AS n FROM flights GROUP BY 1, 2) GROUP BY "
    "ROLLUP (origin) ORDER BY origin NULLS FIRST",
    # filters, order, limits
    f"SELECT origin FROM ({BY_ORIGIN}) WHERE d > (SELECT AVG(d) FROM ({BY_ORIGIN})) ORDER BY origin",
    "SELECT month, COUNT(*) AS n FROM flights GROUP BY month ORDER BY month LIMIT 3 OFFSET 2",
    "SELECT month, COUNT(*) AS n FROM flights GROUP BY month ORDER BY month FETCH FIRST 3 ROWS ONLY",
    "SELECT DISTINCT COUNT(*) > 100 AS many FROM flights GROUP BY month",
    "SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin HAVING ROUND(AVG(dep_delay)) > 0 ORDER BY origin",
    "SELECT origin, CASE WHEN AVG(dep_delay) > 38 THEN 'late' ELSE 'in time' END AS verdict FROM flights "
    "GROUP BY origin ORDER BY origin",
    "SELECT month % 2 = 0 AS even, SUM(n) AS n FROM (SELECT month, COUNT(*) AS n FROM flights GROUP BY month) "
    "GROUP BY 1 ORDER BY 1",
    # WITH of rows, unions and joins of answers
    "WITH late AS (SELECT * FROM flights WHERE dep_delay > 15) SELECT origin, COUNT(*) AS n FROM late GROUP BY origin "
    "ORDER BY origin",
    "WITH late AS (SELECT month FROM flights WHERE dep_delay > 15), m AS (SELECT month, COUNT(*) AS n FROM late "
    "GROUP BY month) SELECT MAX(n) AS most FROM m",
    "SELECT 'late' AS kind, COUNT(*) AS n FROM flights WHERE dep_delay > 15 UNION ALL "
    "SELECT 'far', COUNT(*) FROM flights WHERE distance > 1000 ORDER BY kind",
    "WITH a AS (SELECT month, COUNT(*) AS n FROM flights WHERE origin = 'JFK' GROUP BY month), "
    "b AS (SELECT month, COUNT(*) AS n FROM flights WHERE origin = 'LGA' GROUP BY month) "
    "SELECT a.month, a.n AS jfk, b.n AS lga, a.n - b.n AS more FROM a JOIN b ON a.month = b.month ORDER BY a.month",
    f"WITH m AS ({BY_MONTH}) SELECT a.month, a.n - b.n AS change FROM m a JOIN m b ON a.month = b.month + 1 ORDER BY 1",
    f"WITH m AS ({BY_MONTH}) SELECT month, n, (SELECT SUM(n) FROM m) AS total FROM m ORDER BY month",
    f"WITH m AS ({BY_MONTH}), t AS (SELECT SUM(n) AS total FROM m) SELECT month, n / total AS x FROM m, t ORDER BY 1",
    f"(SELECT origin, n FROM ({BY_ORIGIN}) ORDER BY n DESC, origin LIMIT 2)",
    "FROM flights SELECT COUNT(*) AS n",
    f"SELECT m.month, names.name, m.n FROM ({BY_MONTH}) m JOIN (VALUES (1, 'January'), (2, 'February')) "
    "AS names(month, name) USING (month) ORDER BY 1",
]  # fmt: skip
SEVERAL = [
    f"WITH m AS ({BY_MONTH}), t AS (SELECT COUNT(*) AS total FROM flights) SELECT month, n, n / total AS x FROM m, t "
    "ORDER BY month",
    "SELECT carrier, COUNT(*) / (SELECT COUNT(*) FROM flights) AS share FROM flights GROUP BY carrier ORDER BY 1",
    "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier HAVING COUNT(*) > "
    "(SELECT COUNT(*) FROM flights) / 4 ORDER BY 1",
    "SELECT 'month' AS what, CAST(month AS VARCHAR) AS key, COUNT(*) AS n FROM flights GROUP BY month UNION ALL "
    "SELECT 'origin', origin, COUNT(*) FROM flights GROUP BY origin ORDER BY 1, 2",
    "WITH c AS (SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier), o AS (SELECT carrier, origin, COUNT(*) "
    "AS m FROM flights WHERE dep_delay > 15 GROUP BY carrier, origin) SELECT origin, o.carrier, m / n AS late "
    "FROM o JOIN c ON o.carrier = c.carrier ORDER BY 1, 2",
    # levels
    "SELECT origin, carrier, COUNT(*) AS n, AVG(dep_delay) AS d, SUM(distance) AS s FROM flights "
    "GROUP BY ROLLUP (origin, carrier) ORDER BY 1, 2",
    "SELECT origin, carrier, GROUPING(origin) AS g, GROUPING(carrier, origin) AS gg, COUNT(*) AS n FROM flights "
    "GROUP BY CUBE (origin, carrier) ORDER BY g, gg, 1, 2",
    "SELECT origin, month, COUNT(*) AS n FROM flights GROUP BY GROUPING SETS ((origin), (month), ()) ORDER BY 1, 2",
    "SELECT origin, carrier, COUNT(*) AS n FROM flights GROUP BY origin, ROLLUP (2) HAVING COUNT(*) > 300 "
    "ORDER BY 1, 2",
    "SELECT COALESCE(origin, 'all') AS where_from, COUNT(*) AS n, MEDIAN(distance) AS m FROM flights "
    "GROUP BY ROLLUP (origin) ORDER BY 1",
    "SELECT SUM(n) AS twice FROM (SELECT origin, COUNT(*) AS n FROM flights GROUP BY ROLLUP (origin))",
]  # fmt: skip


@pytest.fixture(scope="module")
def flights():
    with opened() as table:
        yield table


@pytest.fixture(scope="module")
def more_flights():
    with opened() as table:
        yield table


def opened() -> dp.Table:
    keys = {name: column.keys for name, column in COLUMNS.items() if column.keys}
    bounds = {name: column.bounds for name, column in COLUMNS.items() if column.bounds}
    return dp.open(FLIGHTS, keys=keys, bounds=bounds, budget=dp.PureDP(4600), name="flights")


def truth(question: str) -> tuple[list[str], list[tuple[object, ...]]]:
    with duckdb.connect() as connection:
        connection.register("flights", FLIGHTS)
        relation = connection.sql(question)
        return relation.columns, relation.fetchall()


def same(answer: object, expected: object) -> bool:
    if isinstance(expected, (str, bool)) or expected is None:
        return answer == expected
    return answer is not None and float(answer) == pytest.approx(float(expected), rel=5e-3, abs=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("question", ANALYSTS)
def test_an_analysts_question_is_answered_as_duckdb_answers_it(flights, question):
    check_answer(flights.sql(question).release(epsilon=100), question)


@pytest.mark.slow
@pytest.mark.parametrize("question", SEVERAL)
def test_several_private_aggregations_are_answered_as_duckdb_answers_them(more_flights, question):
    answer = more_flights.sql(question).release(epsilon=400)
    assert answer.cost == dp.PureDP(400)
    check_answer(answer, question)


def check_answer(answer: dp.Answer, question: str) -> None:
    columns, rows = truth(question)
    assert list(answer.columns) == columns
    assert len(answer.rows) == len(rows)
    for row, expected in zip(answer.rows, rows, strict=True):
        assert all(map(same, row, expected)), (row, expected)


def test_the_answer_is_recorded_and_comes_back(flights):
    question = flights.sql(f"WITH m AS ({BY_MONTH}) SELECT AVG(n) AS mean FROM m")
    first, second = question.release(epsilon=1), question.release(epsilon=1)
    assert (first.replayed, second.replayed) == (False, True)
    assert first.rows == second.rows


def test_a_with_of_rows_is_the_question_without_it():
    inside = "SELECT origin, COUNT(*) AS n FROM (SELECT * FROM flights WHERE dep_delay > 15) AS late GROUP BY origin"
    before = (
        "WITH late AS (SELECT * FROM flights WHERE dep_delay > 15) SELECT origin, COUNT(*) AS n FROM late GROUP BY 1"
    )
    assert parse(inside, CARD) == parse(before, CARD)
    assert parse(before, CARD).post is None


def test_aggregations_of_the_same_rows_are_measured_once():
    question = parse(f"SELECT a.n FROM ({BY_MONTH}) a JOIN ({BY_MONTH}) b ON a.month = b.month", CARD)
    assert list(question.aggregates) == ["n"]


def test_one_select_whose_shape_says_everything_has_no_sql():
    question = parse("SELECT origin, COUNT(*) / 2 AS half FROM flights GROUP BY origin ORDER BY half LIMIT 3", CARD)
    assert question.post is None
    assert question.shape.limit == 3


def test_options_of_the_statement_hold_for_its_aggregation():
    head = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, max_rows_per_group = 3)"
    question = parse(f"{head} origin, ROUND(COUNT(*), -1) AS n FROM flights GROUP BY origin", CARD)
    assert (question.epsilon, question.max_rows) == (0.5, 3)


@pytest.mark.parametrize(
    ("question", "fragments", "instead"),
    [
        (
            "WITH m AS (SELECT month, dep_delay FROM flights) SELECT * FROM m",
            ("an aggregate", "single rows are never released"),
            "WITH m AS (SELECT month, AVG(dep_delay) FROM flights GROUP BY month) SELECT * FROM m",
        ),
        (
            "SELECT LAG(dep_delay) OVER (ORDER BY month) FROM flights",
            ("window function over single rows", "GROUP BY"),
            "SELECT LAG(AVG(dep_delay)) OVER (ORDER BY month) FROM flights GROUP BY month",
        ),
        (
            "SELECT month, LAG(dep_delay) OVER (ORDER BY month), COUNT(*) FROM flights GROUP BY month",
            ("dep_delay outside of aggregates", "AVG(dep_delay)"),
            "SELECT month, LAG(AVG(dep_delay)) OVER (ORDER BY month), COUNT(*) FROM flights GROUP BY month",
        ),
        (
            "WITH flights AS (SELECT COUNT(*) AS n FROM flights) SELECT n FROM flights",
            ("a table of the card", "another name"),
            "WITH counted AS (SELECT COUNT(*) AS n FROM flights) SELECT n FROM counted",
        ),
        (
            f"SELECT mnth FROM ({BY_MONTH})",
            ('"mnth" not found', "names of the inner SELECT"),
            f"SELECT month FROM ({BY_MONTH})",
        ),
        (
            "SELECT tailnum, COUNT(*), RANK() OVER (ORDER BY COUNT(*)) FROM flights GROUP BY tailnum",
            ("one for each person", "COUNT(DISTINCT tailnum)"),
            "SELECT origin, COUNT(DISTINCT tailnum), RANK() OVER (ORDER BY COUNT(*)) FROM flights GROUP BY origin",
        ),
        (
            "SELECT COUNT(*) FROM flights f WHERE dep_delay > (SELECT AVG(dep_delay) FROM flights g "
            "WHERE g.month = f.month)",
            ("a subquery about rows of the same person", "compare the person of both", "ask first"),
            "SELECT COUNT(*) FROM flights f WHERE dep_delay > (SELECT AVG(dep_delay) FROM flights g "
            "WHERE g.tailnum = f.tailnum)",
        ),
        (
            f"WITH RECURSIVE m AS ({BY_MONTH}) SELECT * FROM m",
            ("RECURSIVE", "leave RECURSIVE out"),
            f"WITH m AS ({BY_MONTH}) SELECT month, SUM(n) OVER (ORDER BY month) FROM m",
        ),
        (
            "SELECT month, CAST(COUNT(*) AS VARCHAR) - INTERVAL 1 DAY FROM flights GROUP BY month",
            ("SQL that DuckDB runs", "functions of DuckDB"),
            "SELECT month, CAST(COUNT(*) AS VARCHAR) FROM flights GROUP BY month",
        ),
    ],
)
def test_a_refusal_leads_to_a_question_that_works(question, fragments, instead):
    with refuses(InvalidArgument, *fragments):
        parse(question, CARD)
    assert parse(instead, CARD).aggregates
