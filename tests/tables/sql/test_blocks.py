"""SQL above the private aggregation: what it answers is what DuckDB answers, up to noise that is next to nothing."""

from __future__ import annotations

from datetime import date, timedelta

import duckdb
import pyarrow as pa
import pytest

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard
from dither.tables.sql.blocks import grouping_sets
from dither.tables.sql.parse import parse
from dither.tables.sql.text import statement
from support import each, refuses

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


KINDS = Card(
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
        for part in parse(sql, KINDS).aggregations
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
        "SELECT (SELECT COUNT(*) FROM visits WHERE x > 5) AS y, (SELECT COUNT(*) FROM visits WHERE x < 2) AS z", KINDS
    )
    assert [item.kind for item in question.aggregates.values()] == ["count_value", "count_value"]
    assert question.more == ()


def test_blocks_with_groups_that_differ_in_where_have_a_table_each():
    """Which groups exist follows from WHERE, so it is never that of another block."""
    one, other = (BY_KIND.replace(" GROUP", f" WHERE x {sign} 5 GROUP") for sign in "<>")
    question = parse(f"SELECT a.n FROM ({one}) a JOIN ({other}) b ON a.kind = b.kind", KINDS)
    assert [(part.where.op, list(part.aggregates)) for part in question.aggregations] == [("<", ["n"]), (">", ["n"])]


def test_limits_of_one_block_are_not_those_of_another():
    inner = "SELECT COUNT(*, contribution_bounds_per_group => (0, 3)) FROM visits"
    question = parse(f"SELECT COUNT(*) AS n, ({inner}) AS m FROM visits GROUP BY kind", KINDS)
    assert [part.max_rows for part in question.aggregations] == [None, 3]


def test_the_budget_in_the_statement_is_that_of_the_whole_question():
    head = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, max_rows_per_group = 2)"
    question = parse(f"{head} kind, COUNT(*) AS n FROM visits GROUP BY ROLLUP (kind)", KINDS)
    assert [(part.epsilon, part.max_rows) for part in question.aggregations] == [(0.5, 2), (None, 2)]


def test_too_many_aggregations_are_refused():
    items = ", ".join(f"(SELECT COUNT(DISTINCT who) FROM visits WHERE x > {i}) AS y{i}" for i in range(65))
    with refuses(InvalidArgument, "at most 64 private aggregations", "several questions"):
        parse(f"SELECT {items}", KINDS)


FORMS = [
    "ROLLUP (a, b, c)",
    "CUBE (a, b)",
    "CUBE (a, b, c)",
    "GROUPING SETS ((a, b), (a), ())",
    "GROUPING SETS (a, (b, c))",
    "GROUPING SETS (a, ROLLUP (b, c))",
    "GROUPING SETS (ROLLUP (a, b), CUBE (b, c))",
    "a, ROLLUP (b, c)",
    "ROLLUP ((a, b), c)",
    "ROLLUP (a), ROLLUP (b)",
    "GROUPING SETS ((a), (a), (b))",
]


@pytest.mark.parametrize("form", FORMS)
def test_the_sets_are_those_of_duckdb(form):
    tree, _ = statement(f"SELECT COUNT(*) FROM t GROUP BY {form}", "t")
    sets = [sorted({column.name for column in columns}) for columns in grouping_sets(tree.args["group"])]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b, 3 AS c")
        every = [item for item in "abc" if item in form.replace("GROUPING", "").replace("CUBE", "")]
        shown = ", ".join(f"GROUPING({item})" for item in every)
        rows = connection.sql(f"SELECT {shown} FROM t GROUP BY {form}").fetchall()
    expected = [[item for item, bit in zip(every, row, strict=True) if not bit] for row in rows]
    assert sorted(sets) == sorted(expected)


@pytest.mark.parametrize("form", ["a, b", "1", "(a)"])
def test_a_plain_list_of_columns_has_no_sets(form):
    tree, _ = statement(f"SELECT a, COUNT(*) FROM t GROUP BY {form}", "t")
    assert grouping_sets(tree.args["group"]) is None


def test_with_rollup_is_a_rollup_of_all_columns():
    tree, _ = statement("SELECT a, b, COUNT(*) FROM t GROUP BY a, b WITH ROLLUP", "t")
    sets = [[column.name for column in columns] for columns in grouping_sets(tree.args["group"])]
    assert sets == [["a", "b"], ["a"], []]


@each(
    ("grouped", "levels"),
    [
        ("ROLLUP (amount > 50, region)", [["amount > 50", "region"], ["amount > 50"], []]),
        ("CUBE (a = 1 OR b, c)", [["a = 1 OR b", "c"], ["a = 1 OR b"], ["c"], []]),
        ("GROUPING SETS ((a > 1, b), (c IS NULL))", [["a > 1", "b"], ["c IS NULL"]]),
    ],
)
def test_conditions_are_columns_of_levels(grouped, levels):
    tree, _ = statement(f"SELECT COUNT(*) FROM t GROUP BY {grouped}", "t")
    sets = grouping_sets(tree.args["group"])
    assert sets is not None
    assert [[column.sql() for column in columns] for columns in sets] == levels
