"""What SQL is refused, and that nothing but a refusal comes of a text that is no question."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from dither.errors import InvalidArgument, WrongType
from dither.tables.sql.aggregates import syntax
from dither.tables.sql.parse import parse
from support import SOON_S, each, refuses
from tables.questions import CARD

pytestmark = pytest.mark.slow

REFUSED = [
    # statements
    ("SELECT COUNT(*) FROM visits\0", "NUL"),
    ("SELECT 😀 FROM visits", "'😀'"),
    # FROM
    ("SELECT COUNT(*) FROM visits AS v(a)", "COLUMNS"),
    ("SELECT COUNT(*) FROM visits v WHERE visits.age > 1", "got 'visits'"),
    ("SELECT COUNT(*) FROM visits, regions", "no condition"),
    ("SELECT COUNT(*) FROM visits v JOIN visits w ON v.age = w.age", "a join on the person"),
    ("SELECT COUNT(*) FROM visits JOIN secrets ON visits.region = secrets.region", "use one of regions"),
    ("SELECT COUNT(*) FROM visits CROSS JOIN regions", "CROSS JOIN"),
    ("SELECT COUNT(*) FROM visits JOIN regions r ON visits.region < r.region", "one equality"),
    ("SELECT COUNT(*) FROM visits JOIN regions r ON r.name = r.region", "an equality of other columns"),
    ("SELECT COUNT(*) FROM visits JOIN regions r ON visits.age = r.region", "one kind"),
    ("SELECT COUNT(*) FROM visits JOIN regions USING (region) JOIN regions USING (region)", "twice"),
    ("SELECT COUNT(*) FROM visits JOIN (SELECT 1) s ON TRUE", "no FROM"),
    ("SELECT region, COUNT(*) FROM visits v JOIN regions r ON r.region = v.region GROUP BY region", "several of"),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT region FROM visits) s", "DISTINCT"),
    ("SELECT COUNT(*) FROM (SELECT region FROM visits LIMIT 5) s", "LIMIT"),
    ("SELECT COUNT(*) FROM (SELECT age + 1 FROM visits) s", "a name for each"),
    ("SELECT COUNT(*) FROM (SELECT age, age FROM visits) s", "twice"),
    ("SELECT SUM(amount) FROM (SELECT age FROM visits) s", "'amount'"),
    ("SELECT COUNT(*) FROM (SELECT age FROM visits UNION SELECT age FROM visits) s", "UNION"),
    # SELECT
    ("SELECT age + 1, COUNT(*) FROM visits GROUP BY age + 2", "column age"),
    ("SELECT region FROM visits GROUP BY region", "an aggregate"),
    ("SELECT SUM(ROUND(age, age)) FROM visits", "number of digits"),
    ("SELECT COUNT(*) FROM visits QUALIFY 1 = 1", "QUALIFY"),
    ("SELECT COUNT(*) = 'a' FROM visits", "one kind"),
    # aggregates
    ("SELECT COUNT(DISTINCT person, age) FROM visits", "one column"),
    ("SELECT COUNT(DISTINCT NULL) FROM visits", "COUNT(*)"),
    ("SELECT COUNT(DISTINCT person) FILTER (WHERE vip) FROM visits", "WHERE"),
    ("SELECT COUNT(NULL) FROM visits", "COUNT(*)"),
    ("SELECT SUM(DISTINCT age) FROM visits", "DISTINCT"),
    ("SELECT SUM(age, age) FROM visits", "2 arguments"),
    ("SELECT SUM(SUM(age)) FROM visits", "aggregate once"),
    ("SELECT SUM(age) FILTER (WHERE SUM(age) > 1) FROM visits", "aggregate"),
    ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age DESC) FROM visits", "1 - p"),
    ("SELECT QUANTILE(age, amount) FROM visits", "constant"),
    ("SELECT QUANTILE(age) FROM visits", "QUANTILE(x, p)"),
    ("SELECT MODE(NULL) FROM visits", "name a column"),
    ("SELECT CORR(age) FROM visits", "CORR(x, y)"),
    ("SELECT CORR(age, region) FROM visits", "a number"),
    ("SELECT SUM(age, contribution_bounds_per_row => (5, 0)) FROM visits", "lower below upper"),
    ("SELECT SUM(age, contribution_bounds_per_row => 5) FROM visits", "(low, high)"),
    ("SELECT SUM(age, contribution_bounds_per_row => (age, 5)) FROM visits", "constant"),
    ("SELECT SUM(age, contribution_bounds => (0, 5)) FROM visits", "contribution_bounds_per_row"),
    ("SELECT SUM(contribution_bounds_per_row => (0, 5), age) FROM visits", "last"),
    ("SELECT SUM(rows_per_person => 5, age) FROM visits", "last"),
    ("SELECT SUM(age, rows_per_person => 0) FROM visits", "rows_per_person"),
    ("SELECT SUM(age, rows_per_person => age) FROM visits", "constant"),
    ("SELECT SUM(age, rows_per_person => 1, rows_per_person => 2) FROM visits", "rows_per_person once"),
    ("SELECT COUNT(*, contribution_bounds_per_group => (1, 5)) FROM visits", "(0, k)"),
    ("SELECT COUNT(*, contribution_bounds_per_row => (0, 5)) FROM visits", "contribution_bounds_per_group"),
    (
        "SELECT COUNT(*, contribution_bounds_per_group => (0, 5)), "
        "COUNT(age, contribution_bounds_per_group => (0, 4)) FROM visits",
        "several",
    ),
    (
        "SELECT COUNT(*, contribution_bounds_per_group => (0, 5)), "
        "SUM(age, contribution_bounds_per_group => (0, 4)) FROM visits",
        "contribution_bounds_per_row",
    ),
    # WHERE
    ("SELECT COUNT(*) FROM visits WHERE age", "a condition"),
    ("SELECT COUNT(*) FROM visits WHERE CAST(region AS VARCHAR(2)) = 'no'", "LEFT"),
    ("SELECT COUNT(*) FROM visits WHERE age NOT IN (1, NULL)", "never true"),
    ("SELECT COUNT(*) FROM visits WHERE age IN (1, 'a')", "one kind"),
    ("SELECT COUNT(*) FROM visits WHERE age IN (amount)", "list of constants"),
    ("SELECT COUNT(*) FROM visits WHERE age IN (SELECT age FROM visits)", "person IN (SELECT person FROM …)"),
    ("SELECT COUNT(*) FROM visits WHERE age IN ()", "IN"),
    ("SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1)", "no FROM"),
    ("SELECT COUNT(*) FROM visits WHERE region LIKE region", "constant pattern"),
    ("SELECT COUNT(*) FROM visits WHERE age BETWEEN SYMMETRIC 2 AND 1", "SYMMETRIC"),
    ("SELECT COUNT(*) FROM visits WHERE age / 2 % 2 = 0", "FLOOR(x) % 10"),
    ("SELECT COUNT(*) FROM visits WHERE age % 0 = 0", "other than 0"),
    ("SELECT COUNT(*) FROM visits WHERE CAST(age / 2 AS TEXT) = '1'", "round first"),
    ("SELECT COUNT(*) FROM visits WHERE age::json = '1'", "DOUBLE"),
    ("SELECT COUNT(*) FROM visits WHERE TRY_CAST('2024-01-32' AS DATE) = day", "YYYY-MM-DD"),
    ("SELECT COUNT(*) FROM visits WHERE EXTRACT(decade FROM day) = 1", "MONTH"),
    ("SELECT COUNT(*) FROM visits WHERE EXTRACT(epoch FROM day) = 1", "MONTH"),
    ("SELECT COUNT(*) FROM visits WHERE YEAR(age) = 2024", "date or timestamp"),
    ("SELECT COUNT(*) FROM visits WHERE day > day + INTERVAL '1 month 2 days'", "INTERVAL 5 DAY"),
    ("SELECT COUNT(*) FROM visits WHERE day > day + INTERVAL 20000 YEAR", "years 1 to 9999"),
    ("SELECT COUNT(*) FROM visits WHERE day - 5 > '2024-01-01'", "INTERVAL 5 DAY"),
    ("SELECT COUNT(*) FROM visits WHERE DATE_DIFF(day, day, DAY) > 5", "DATE_DIFF('day'"),
    ("SELECT COUNT(*) FROM visits WHERE POWER(age, age) > 1", "EXP(y * LN(x))"),
    ("SELECT COUNT(*) FROM visits WHERE SUBSTR(region, -1) = 'a'", "SUBSTR(s, 1, 3)"),
    ("SELECT COUNT(*) FROM visits WHERE REPLACE(region, '', 'a') = 'a'", "REPLACE"),
    ("SELECT COUNT(*) FROM visits WHERE region || age = 'a1'", "CAST(age AS TEXT)"),
    ("SELECT COUNT(*) FROM visits WHERE GREATEST(vip, vip)", "AND and OR"),
    ("SELECT COUNT(*) FROM visits WHERE date_trunc('minute', at) = '2024-01-01'", "year, quarter"),
    ("SELECT COUNT(*) FROM visits WHERE date_trunc('hour', day) = '2024-01-01'", "timestamp for 'hour'"),
    ("SELECT COUNT(*) FROM visits WHERE DATE_TRUNC(day, WEEK) = '2024-01-01'", "Monday"),
    ("SELECT COUNT(*) FROM visits WHERE date_trunc('day', region) = '2024-01-01'", "a date or timestamp"),
    ("SELECT COUNT(*) FROM visits WHERE age > 1e999", "in range"),
    ("SELECT COUNT(*) FROM visits WHERE age > 9223372036854775808", "64 bits"),
    ("SELECT COUNT(*) FROM visits WHERE CASE WHEN age THEN 1 END = 1", "a condition"),
    ("SELECT COUNT(*) FROM visits WHERE CASE WHEN vip THEN 1 ELSE 'a' END = 1", "one kind"),
    ("SELECT COUNT(*) FROM visits WHERE COALESCE(NULL, NULL) = 1", "only NULL"),
    ("SELECT COUNT(*) FROM visits WHERE WIDTH_BUCKET(age, 10, 0, 5) = 1", "low < high"),
    ("SELECT COUNT(*) FROM visits WHERE a.b.age > 1", "longer path"),
    # GROUP BY and what follows
    ("SELECT COUNT(*) FROM visits GROUP BY 1", "an aggregate"),
    ("SELECT COUNT(*) FROM visits GROUP BY ROLLUP (a + region)", "column"),
    ("SELECT GROUPING(age), COUNT(*) FROM visits GROUP BY ROLLUP (region)", "GROUPING of a column of GROUP BY"),
    ("SELECT COUNT(*) FROM visits GROUP BY CUBE (1, 2, 3, 4, 5, 6, 7)", "at most 64 levels"),
    ("SELECT region, COUNT(*) FROM visits GROUP BY ROLLUP (region, 1), CUBE (age, vip, day, amount, 1)", "64 levels"),
    ("SELECT date_trunc('month', day) AS day, COUNT(*) FROM visits GROUP BY day", "one meaning"),
    (
        "SELECT upper(region) AS region, COUNT(*) FROM visits GROUP BY 1, visits.region HAVING region = 'a'",
        "one meaning in HAVING",
    ),
    ("SELECT COUNT(*) n FROM visits HAVING m > 1", "'m'"),
    ("SELECT COUNT(*) n FROM visits ORDER BY 2", "from 1 to 1"),
    ("SELECT COUNT(*) FROM visits LIMIT -1", "LIMIT"),
    # BigQuery's head
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0) COUNT(*) FROM visits", "epsilon"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 2) COUNT(*) FROM visits", "delta"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 'a') COUNT(*) FROM visits", "a number"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, epsilon = 2) COUNT(*) FROM visits", "twice"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon > 1) COUNT(*) FROM visits", "name = value"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 0) COUNT(*) FROM visits", "max_groups"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1.5) COUNT(*) FROM visits", "whole number"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = x) COUNT(*) FROM visits", "leave it out"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = age) COUNT(*) FROM visits", "person"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1 COUNT(*) FROM visits", "can be read"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM visits WHERE region = 'a\\'b'", "backslash"),
]


@each(("written", "fragment"), REFUSED)
def test_refused(written, fragment):
    with refuses(InvalidArgument) as refused:
        parse(written, CARD)
    message = str(refused.value)
    assert fragment in message
    assert "expected" in message
    assert ". Fix: " in message
    assert len(message) < 500


def test_refusals_that_depend_on_the_card():
    alone = replace(CARD, unit=None, public={})
    with refuses(InvalidArgument, "every row is a person"):
        parse("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = person) COUNT(*) FROM visits", alone)
    with refuses(InvalidArgument, "under public"):
        parse("SELECT COUNT(*) FROM visits JOIN regions USING (region)", alone)
    with refuses(InvalidArgument, "several of 'AGE'"):
        parse("SELECT SUM(AGE) FROM visits", replace(CARD, columns={**CARD.columns, "Age": CARD.columns["age"]}))


@pytest.mark.parametrize("text", [None, 5, b"SELECT 1", ["SELECT"]])
def test_only_texts(text):
    with refuses(WrongType):
        parse(text, CARD)


@pytest.mark.parametrize(
    "inside",
    [
        "1 FROM visits",
        "1, 2",
        "age > 1; DROP TABLE visits",
        "age > 1 GROUP BY age",
        "age AS x",
        "* FROM (SELECT 1)",
        "",
    ],
)
def test_a_condition_is_one_expression(inside):
    with refuses(InvalidArgument):
        syntax(inside)


DEEP = [
    "(" * 10_000 + "1" + ")" * 10_000,
    "(" * 10_000,
    "NOT " * 10_000 + "vip",
    "- " * 10_000 + "age > 1",
    "CASE WHEN " * 5_000 + "vip" + " THEN vip END" * 5_000,
    "[" * 10_000,
    "ABS(" * 10_000 + "age" + ")" * 10_000 + " > 1",
    " OR ".join(["age = 1"] * 5_000),
    "age" + " + 1" * 10_000 + " > 1",
    "age IN (" * 500 + "1" + ")" * 500,
    "INTERVAL " * 5_000,
    "{'a': " * 1_000,
    "vip -> " * 2_000 + "1",
    "DATE " * 5_000 + "'2024-01-01'",
    "age" + "::int" * 5_000 + " = 1",
    "EXISTS(SELECT " * 500,
    "x" * 1_000_000,
    "age = 1 AND " * 100_000,
    "'" * 99_999,
    '"' * 99_999,
    "1" * 99_000,
    "a." * 40_000 + "a",
    "/*" * 40_000,
]


@each("inside", DEEP)
def test_hostile_texts_are_refused_soon(inside):
    start = time.process_time()
    for written in (f"SELECT COUNT(*) FROM visits WHERE {inside}", f"SELECT {inside} FROM visits", inside):
        with refuses(InvalidArgument):
            parse(written, CARD)
    assert time.process_time() - start < SOON_S


def test_expressions_do_not_grow_without_end():
    query = "SELECT age FROM visits"
    for _ in range(22):
        query = f"SELECT age + age AS age FROM ({query}) AS s"
    start = time.process_time()
    with refuses(InvalidArgument):
        parse(f"SELECT SUM(age) FROM ({query}) AS s", CARD)
    assert time.process_time() - start < SOON_S


def test_a_long_list_is_no_deep_question():
    listed = ", ".join(map(str, range(10_000)))
    result = parse(f"SELECT COUNT(*) FROM visits WHERE age IN ({listed})", CARD)
    assert len(result.where.args) == 10_001


def test_nothing_is_logged(caplog):
    with refuses(InvalidArgument):
        parse("SELECT COUNT(*) FROM DESCRIBE DROP BOOL INT \\ ANY", CARD)
    assert not caplog.records
