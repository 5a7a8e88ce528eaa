"""Conditions with arithmetic: a number within its bounds is what it is, so that they hold for the rows that they hold
for in DuckDB."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest

import dither as dp
from support import each, noted, refuses
from tables.raw_rows import alike, answered, truth

PRICES = [9.99, 19.99, 29.99, 49.95, 0.1, 1e-9]
ORDERS = pa.table(
    {
        "who": list(range(600)),
        "price": [PRICES[i % 6] for i in range(600)],
        "paid": [PRICES[i // 6 % 6] for i in range(600)],
        "parts": [i % 3 for i in range(600)],
    }
)


@each(
    "condition",
    [
        "price = 19.99", "price * 1 = 19.99", "COALESCE(price, 0) = 19.99", "NULLIF(price, 9.99) = 19.99",
        "CASE WHEN parts >= 0 THEN price ELSE 0 END = 19.99", "price + 0 >= 19.99", "price * 2 >= 39.98",
        "price - paid = 0", "paid - price > 0", "ABS(paid - price) < 10", "parts > 0 AND price / parts >= 9.99",
        "price = 19.99 IS NOT TRUE", "parts > 1 IS NULL", "(price IS NULL) = (parts = 7)",
        "LEAST(price, 20) = 19.99", "GREATEST(price, 10) = 10", "-price = -29.99",
    ],
)  # fmt: skip
def test_arithmetic_takes_numbers_as_they_are(condition):
    sql = f"SELECT COUNT(*) AS n FROM data WHERE {condition}"
    bounds = {"price": (0, 500), "paid": (0, 1000), "parts": (0, 5)}
    with dp.open(ORDERS, bounds=bounds, budget=dp.PureDP(1000)) as table:
        assert alike(answered(table, sql).rows, truth(sql, data=ORDERS))


@each(
    "condition",
    [
        "price > 20", "price + 0 > 20", "price * 2 - 1 >= 41", "ABS(price - 50) < 1", "FLOOR(price) = 49",
        "CASE WHEN price + 0 > 20 THEN TRUE ELSE FALSE END", "price / 10 BETWEEN 2 AND 4", "-price < -20",
        "GREATEST(price, paid) - 10 > 10", "parts + 0 > 1", "parts * parts = 4", "(parts + 2) % 4 = 0",
        "parts // 2 = 1", "CAST(price AS INTEGER) = 50", "ROUND(price, 1) = 50", "NOT price + 0 <= 20",
        "DATE_DIFF('day', day, DATE '2024-03-31') > 40",
    ],
)  # fmt: skip
def test_conditions_are_about_values_beyond_the_bounds_as_well(condition):
    """What a row adds to an answer is held within bounds; whether it is counted is not."""
    sql = f"SELECT COUNT(*) AS n, SUM(CASE WHEN {condition} THEN 1 ELSE 0 END) AS k FROM data WHERE {condition}"
    day = pa.array([date(2024, 1, 1) + timedelta(days=i % 60) for i in range(600)], pa.date32())
    orders = ORDERS.append_column("day", day)
    bounds = {"price": (0, 20), "paid": (5, 15), "parts": (0, 1), "day": (date(2024, 3, 1), date(2024, 3, 31))}
    with dp.open(orders, bounds=bounds, budget=dp.PureDP(1000)) as table:
        assert alike(answered(table, sql).rows, truth(sql, data=orders))


def test_what_could_overflow_beyond_the_bounds_is_held_within_them():
    sql = "SELECT COUNT(*) AS n FROM data WHERE EXP(price) > 1000 AND price + 0 > 20"
    with dp.open(ORDERS, bounds={"price": (0, 40)}, budget=dp.PureDP(1000)) as table:
        assert alike(answered(table, sql).rows, truth(sql, data=ORDERS))


PURCHASES = pa.table(
    {
        "who": [i // 2 if i < 300 else i for i in range(600)],
        "price": [PRICES[i * i % 7 % 6] if i % 3 else i % 97 / 100 for i in range(600)],
        "net": [PRICES[i % 6] - 20 for i in range(600)],
        "shop": ["ab"[i % 2] for i in range(600)],
    }
)
WINDOW = "(SELECT *, {} OVER (PARTITION BY who) AS m FROM data)"
PER_PERSON = "(SELECT who, {} AS m, MIN(price) AS least, MAX(net) AS most FROM data GROUP BY who)"


@each(
    ("rows", "condition"),
    [
        (WINDOW.format("AVG(price)"), "price > m"), (WINDOW.format("AVG(price)"), "price = m"),
        (WINDOW.format("AVG(price)"), "price - m >= 0"), (WINDOW.format("SUM(price)"), "price >= m"),
        (WINDOW.format("AVG(net)"), "net < m"), (WINDOW.format("SUM(net)"), "net <> m"),
        (WINDOW.format("AVG(price * 2)"), "price * 2 > m"), (WINDOW.format("SUM(price + net)"), "price + net = m"),
        (PER_PERSON.format("AVG(price)"), "m = least"), (PER_PERSON.format("SUM(price)"), "m = 19.99"),
        (PER_PERSON.format("AVG(net)"), "m >= most"), (PER_PERSON.format("AVG(price)"), "m IN (9.99, 49.95)"),
    ],
)  # fmt: skip
def test_sums_and_means_of_a_person_are_of_the_values_that_they_are_compared_with(rows, condition):
    sql = f"SELECT COUNT(*) AS n FROM {rows} WHERE {condition}"
    bounds = {"price": (0, 500), "net": (-100, 100)}
    with dp.open(PURCHASES, unit="who", bounds=bounds, max_rows=4, budget=dp.PureDP(1000)) as table:
        assert alike(answered(table, sql).rows, truth(sql, data=PURCHASES))


def test_a_mean_of_values_that_are_the_same_is_that_value():
    """Of three times 0.1 DuckDB says 0.10000000000000002."""
    given = pa.table({"who": [i // 3 for i in range(300)], "x": [0.1 * (1 + i // 3 % 90) for i in range(300)]})
    with dp.open(given, unit="who", bounds={"x": (-300, 10)}, max_rows=3, budget=dp.PureDP(1000)) as table:
        sql = "SELECT COUNT(*) AS n FROM (SELECT *, AVG(x) OVER (PARTITION BY who) AS m FROM data) WHERE x = m"
        assert answered(table, sql).rows == ((300,),)


def test_sums_of_sums_of_sums_of_a_person_are_answered():
    by_shop = "SELECT who, shop, SUM(price) AS price FROM data GROUP BY who, shop"
    by_person = f"SELECT who, price > 5 AS shop, SUM(price) AS price FROM ({by_shop}) GROUP BY who, 2"
    sql = f"SELECT COUNT(*) AS n FROM (SELECT who, SUM(price) AS s FROM ({by_person}) GROUP BY who) WHERE s > 20"
    with dp.open(PURCHASES, unit="who", bounds={"price": (0, 500)}, budget=dp.PureDP(1000)) as table:
        assert alike(answered(table, sql).rows, truth(sql, data=PURCHASES))


MOMENTS = [datetime(2019, 12, 31, 23, 59, 59), datetime(2020, 1, 1), datetime(2020, 2, 29, 10, 59, 59, 999999)]
MOMENTS += [MOMENTS[i % 3] + timedelta(hours=1009 * i, seconds=61 * i) for i in range(597)]
HALVES = pa.table(
    {
        "who": list(range(600)),
        "half": [(i - 300) / 4 for i in range(600)],
        "whole": [i - 300 for i in range(600)],
        "moment": pa.array(MOMENTS, pa.timestamp("us")),
    }
)


@each(
    "value",
    [
        "CAST(half AS INTEGER)", "CAST(-half AS BIGINT)", "half::INTEGER", "CAST(half + 0.5 AS INTEGER)",
        "CAST(whole / 4 AS INTEGER)", "whole // 7", "whole // -4", "ROUND(half)", "TRUNC(half)",
        *(f"DATE_DIFF('{unit}', moment, TIMESTAMP '2020-03-31 12:30:30')"
          for unit in ("year", "quarter", "month", "day", "hour", "minute", "second")),
        "DATE_DIFF('day', moment, TIMESTAMP '2020-03-31 12:30:30') // 7",
        "DATE_DIFF('day', date_trunc('week', moment), date_trunc('week', TIMESTAMP '2020-03-31 12:30:30')) // 7",
    ],
)  # fmt: skip
def test_whole_numbers_are_those_of_duckdb(value):
    columns = ", ".join(f"COUNT(*) FILTER (WHERE {value} {sign} {n}) AS k{i}" for i, (sign, n) in enumerate(SIGNS))
    sql = f"SELECT {columns} FROM data"
    bounds = {"half": (-75, 75), "whole": (-300, 300)}
    with dp.open(HALVES, bounds=bounds, budget=dp.PureDP(1000)) as table:
        assert alike(answered(table, sql).rows, truth(sql, data=HALVES))


SIGNS = [("=", 0), ("=", 2), ("<", -2), (">", 3), ("=", -1), (">=", 36)]


@each(
    ("value", "fix"),
    [
        ("DATE_DIFF('week', moment, TIMESTAMP '2020-03-31 12:30:30')", "DATE_DIFF('day', start, end) // 7"),
        ("half // 2", "TRUNC(half / 2)"), ("whole // 2.5", "TRUNC(whole / 2.5)"),
        ("CAST(whole * 0.5 AS INTEGER)", "ROUND(whole * 0.5)"), ("CAST(2.5 AS INTEGER)", "ROUND(2.5)"),
        ("CAST(CASE WHEN half > 0 THEN 0.5 ELSE 1.5 END AS INTEGER)", "ROUND("),
    ],
)  # fmt: skip
def test_what_engines_or_their_versions_compute_differently_is_refused(value, fix):
    bounds = {"half": (-75, 75), "whole": (-300, 300)}
    with dp.open(HALVES, bounds=bounds, budget=dp.PureDP(1)) as table, refuses(dp.InvalidArgument, fix):
        table.sql(f"SELECT COUNT(*) AS n FROM data WHERE {value} > 1").explain(epsilon=1)


AGES = pa.table(
    {
        "who": list(range(600)),
        "age": [(20, 30, 41)[i % 3] for i in range(600)],
        "amount": [(50.0, 150.0, -30.0, 400.0)[i % 4] for i in range(600)],
        "day": pa.array([date(2024, 1, 1) + timedelta(days=i % 60) for i in range(600)], pa.date32()),
    }
)
AGE_BOUNDS = {"age": (30, 50), "amount": (0, 100), "day": (date(2024, 1, 20), date(2024, 3, 31))}


@each("relation", ["data", "(SELECT who, age, amount, day, age AS a FROM data) AS s"])
@each(
    ("key", "where"),
    [
        ("age / 2", "age IN (20, 30, 41)"), ("age // 10", "age > 0"), ("FLOOR(amount / 50) * 50", "amount < 1000"),
        ("SIGN(amount - 100)", "age > 0"), ("CAST(amount AS INT) % 10", "amount IS NOT NULL"), ("age % 7", "age > 0"),
        ("LEAST(age, 35)", "age > 0"), ("ROUND(amount / 40)", "age > 0"), ("age * 2 + 1", "age > 0"),
        ("age", "age > 0"),
        ("DATE_DIFF('day', day, DATE '2024-03-01') // 7", "age > 0"), ("CAST(age AS TEXT)", "age > 0"),
        ("age + FLOOR(amount / 100)", "age > 0"),
    ],
)  # fmt: skip
def test_keys_are_made_of_values_as_they_are(relation, key, where):
    """A row is in the group that its own value makes, or in none, which is announced; groups are those of the card."""
    sql = f"SELECT {key} AS k, COUNT(*) AS n FROM {relation} WHERE {where} GROUP BY 1"
    with dp.open(AGES, unit="who", bounds=AGE_BOUNDS, budget=dp.PureDP(1000)) as table:
        answer = answered(table, sql)
    expected = {row[0]: row[1] for row in truth(sql, data=AGES)}
    shown = dict(answer.rows)
    assert {k: n for k, n in shown.items() if n} == {k: n for k, n in expected.items() if k in shown}
    announced = noted(answer, "keys_beyond_bounds")
    assert announced or sum(shown.values()) == sum(expected.values())


def test_rows_beyond_the_bounds_are_in_no_group_where_their_key_could_overflow():
    """Beyond the bounds, products of two columns are no whole numbers that doubles hold."""
    sql = "SELECT FLOOR(amount * age / 1000) AS k, COUNT(*) AS n FROM data GROUP BY 1"
    with dp.open(AGES, unit="who", bounds=AGE_BOUNDS, budget=dp.PureDP(1000)) as table:
        answer = answered(table, sql)
    within = truth(f"{sql[:-11]} WHERE age BETWEEN 30 AND 50 AND amount BETWEEN 0 AND 100 GROUP BY 1", data=AGES)
    assert {k: n for k, n in answer.rows if n} == dict(within)
    [said] = noted(answer, "keys_beyond_bounds")
    assert {(item["column"], item["low"]) for item in said["columns"]} == {("age", "30"), ("amount", "0")}


def test_different_values_and_the_most_common_one_are_of_values_as_they_are():
    sql = (
        "SELECT COUNT(DISTINCT age // 10) AS n, MODE(FLOOR(amount / 50)) AS m FROM data WHERE amount <> 50 OR age = 41"
    )
    with dp.open(AGES, unit="who", bounds=AGE_BOUNDS, budget=dp.PureDP(1000)) as table:
        assert answered(table, sql).rows == ((3, 1),)


def test_columns_of_a_select_inside_are_as_they_are():
    """They are held within their bounds where they are added up, as columns of a table are."""
    inside = "(SELECT who, age + 0 AS a, amount * 2 AS b FROM data) AS s"
    sql = f"SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE b > 250) AS m FROM {inside} WHERE a < 25 OR b >= 800"
    with dp.open(AGES, unit="who", bounds=AGE_BOUNDS, budget=dp.PureDP(1000)) as table:
        assert alike(answered(table, sql).rows, truth(sql, data=AGES))
        held = answered(table, f"SELECT SUM(b) AS s FROM {inside}").rows
    assert held == ((pytest.approx(150 * (100 + 200 + 0 + 200), rel=1e-6),),)
