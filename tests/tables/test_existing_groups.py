"""Which groups exist: with the noise taken away, answers are what DuckDB computes from the rows, group by group."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from support import noted, refuses
from tables.glass import glass
from tables.raw_rows import alike, answered, truth

DAYS = [date(2024, 1, 1) + timedelta(days=i) for i in range(366)]
VISITS = pa.table(
    {
        "who": list(range(3660)),
        "day": [day for day in DAYS for _ in range(10)],
        "kind": [("a", "b", "c")[i % 3] for i in range(3660)],
        "x": [float(i % 7) for i in range(3660)],
    }
)
PERIOD = {"day": (date(2021, 1, 1), date(2024, 12, 31)), "x": (0, 10)}


def opened(rows: pa.Table = VISITS, **more: Any) -> dp.Table:
    stated: dict[str, Any] = {"bounds": PERIOD, "keys": {"kind": ["a", "b", "c"]}, "budget": dp.PureDP(1000)}
    return dp.open(rows, **(stated | more))


def test_bounds_of_public_numbers_are_their_least_and_largest_value(tmp_path):
    """What a public table holds is public, so a column of it needs no bounds in the card."""
    kinds = pa.table({"kind": ["a", "b", "c", "d"], "seats": [4, 20, 180, None], "same": [1.5] * 4})
    pq.write_table(VISITS, tmp_path / "visits.parquet")
    pq.write_table(kinds, tmp_path / "kinds.parquet")
    (tmp_path / "visits.toml").write_text(
        'name = "data"\nsource = "visits.parquet"\nledger = "l.sqlite"\n[budget]\nepsilon = 1000\n[columns]\n'
        'kind = "text"\n[public.kinds]\nsource = "kinds.parquet"\n[public.kinds.columns]\n'
        'kind = "text"\nseats = "integer"\nsame = "number"\n'
    )
    rows = "FROM data v JOIN kinds k ON v.kind = k.kind"
    with dp.open(str(tmp_path / "visits.toml")) as table, glass():
        answer = table.sql(f"SELECT AVG(k.seats) AS seats, MAX(k.seats) AS most {rows}").release(epsilon=100)
        (part,) = table.sql(f"SELECT AVG(k.seats) AS seats {rows}").plan(epsilon=1).parts
        assert part.card.public["kinds"].columns["seats"].bounds == (4, 180)
        with refuses(dp.InvalidArgument, "public bounds"):  # of one value alone there are no two ends
            table.sql(f"SELECT AVG(k.same) AS same {rows}").plan(epsilon=1)
    assert abs(answer["seats"][0] - 68) < 0.1
    assert answer["most"] == [180]


EARLY = (
    "SELECT date_trunc('month', day) AS m, COUNT(*) AS n FROM data "
    "WHERE day BETWEEN '2024-01-01' AND '2024-03-31' GROUP BY 1"
)
LATE = "SELECT date_trunc('month', day) AS m, COUNT(*) AS n FROM data WHERE day >= '2024-10-01' GROUP BY 1"


@pytest.mark.parametrize(
    "sql",
    [
        f"WITH x AS ({EARLY}), y AS ({LATE}) SELECT (SELECT AVG(n) FROM x) AS one, (SELECT AVG(n) FROM y) AS two",
        f"WITH x AS ({EARLY}), y AS ({LATE}) SELECT (SELECT MIN(n) FROM x) AS one, (SELECT COUNT(*) FROM y) AS two",
        f"{EARLY} UNION ALL {LATE}",
        f"SELECT x.n, y.n AS other FROM ({EARLY}) x FULL JOIN ({LATE}) y ON x.m = y.m",
        "SELECT (SELECT COUNT(*) FROM (SELECT kind, COUNT(*) AS n FROM data WHERE kind = 'a' GROUP BY kind)) AS one, "
        "(SELECT COUNT(*) FROM (SELECT kind, COUNT(*) AS n FROM data WHERE kind <> 'a' GROUP BY kind)) AS two",
    ],
)
def test_blocks_that_differ_in_where_have_the_groups_of_their_own_rows(sql):
    with opened() as table:
        assert alike(answered(table, sql).rows, truth(sql, data=VISITS))


def test_constants_are_computed_before_keys_are_derived_from_sql_and_in_python():
    condition = "day >= DATE_TRUNC('month', DATE '2024-12-24') - INTERVAL '1 months'"
    sql = f"SELECT date_trunc('month', day) AS m, COUNT(*) AS n FROM data WHERE {condition} GROUP BY 1"
    with opened() as table, glass():
        assert alike(table.sql(sql).release(epsilon=10).rows, truth(sql, data=VISITS))
        built = table.where(condition).group_by(m=dp.col("day").trunc("month")).agg(n=dp.count())
        assert alike(built.release(epsilon=10).rows, truth(sql, data=VISITS))


NULLS = VISITS.set_column(
    1, "day", pa.array([None if i % 5 == 0 else day for i, day in enumerate(VISITS["day"].to_pylist())])
)
BY_QUARTER = "SELECT date_trunc('quarter', day) AS q, COUNT(*) AS n FROM data GROUP BY 1"
SHARES = f"WITH q AS ({BY_QUARTER}) SELECT q, n / (SELECT SUM(n) FROM q) AS share FROM q"


@pytest.mark.parametrize("sql", [BY_QUARTER, SHARES])
def test_rows_with_null_keys_are_announced_and_coalesce_shows_them(sql):
    sql = sql.replace(" FROM data ", " FROM data WHERE day >= '2024-01-01' OR day IS NULL ")
    quarter = "date_trunc('quarter', day)"
    said = {"columns": [quarter], "group_by": [f"COALESCE({quarter}, …)"]}
    with opened(NULLS) as table:
        assert noted(table.sql(sql).explain(epsilon=10), "null_keys") == [said]
        assert noted(answered(table, sql), "null_keys") == [said]
        included = sql.replace(
            "date_trunc('quarter', day) AS", "COALESCE(date_trunc('quarter', day), DATE '2021-01-01') AS"
        )
        answer = answered(table, included)
        assert not noted(answer, "null_keys")
        assert alike([row for row in answer.rows if row[1]], truth(included, data=NULLS))


AVERAGES = "SELECT kind, AVG(x) AS m FROM data GROUP BY kind"
SOME = {"keys": {"kind": ["a", "b", "c", "nobody", "no one", "none"]}}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT kind, AVG(x) AS m FROM data GROUP BY kind ORDER BY m DESC LIMIT 3",
        "SELECT kind, VARIANCE(x) AS m FROM data GROUP BY kind ORDER BY m DESC LIMIT 3",
        "SELECT kind, STDDEV(x) AS m, COUNT(*) AS n FROM data GROUP BY kind ORDER BY m LIMIT 3",
        "SELECT kind, AVG(x) AS m, COUNT(DISTINCT who) AS n FROM data GROUP BY kind ORDER BY m LIMIT 3",
        f"SELECT * FROM ({AVERAGES}) ORDER BY m DESC LIMIT 3",
        "SELECT kind, RANK() OVER (ORDER BY AVG(x) DESC) AS place FROM data GROUP BY kind ORDER BY place LIMIT 3",
        f"SELECT MAX(m) AS most, COUNT(m) AS groups, AVG(m) AS mean FROM ({AVERAGES})",
        "SELECT kind, MEDIAN(x) AS m, COUNT(*) AS n FROM data GROUP BY kind ORDER BY m DESC LIMIT 3",
    ],
)
def test_groups_that_nobody_is_in_are_not_among_the_first(sql):
    with opened(**SOME) as table:
        answer, expected = answered(table, sql), truth(sql, data=VISITS)
        assert len(answer.rows) == len(expected)
        assert {str(row[0])[:4] for row in answer.rows} == {str(row[0])[:4] for row in expected}


@pytest.mark.parametrize("kind", ["AVG(x)", "VARIANCE(x)", "MEDIAN(x)", "MAX(x)", "MIN(x)", "MODE(kind)"])
def test_what_is_computed_of_no_values_is_null(kind):
    sql = f"SELECT kind, {kind} AS m, COUNT(*) AS n FROM data GROUP BY kind"
    with opened(**SOME) as table:
        answer = answered(table, sql)
    null = {row[0] for row in answer.rows if row[1] is None}
    assert null == {"nobody", "no one", "none"}
    assert [answer.errors.get("m", [None] * 6)[i] for i, row in enumerate(answer.rows) if row[1] is None] == [None] * 3
    assert noted(answer, "null_values") == [{"names": ["m"], "grouped": True}]


def test_a_value_that_is_chosen_without_a_number_says_what_is_missing():
    with opened(**SOME) as table:
        alone = table.sql("SELECT kind, MEDIAN(x) AS m FROM data GROUP BY kind")
        for said in (alone.release(epsilon=10), alone.explain(epsilon=10)):
            [values] = noted(said, "value_without_rows")
            assert values == {"names": ["m"], "grouped": True, "counts": ["COUNT(x)"]}
        counted = table.sql("SELECT kind, MEDIAN(x) AS m, COUNT(*) AS n FROM data GROUP BY kind")
        assert not noted(counted.release(epsilon=10), "value_without_rows")


def test_a_group_that_nobody_is_in_is_announced_where_groups_are_aggregated():
    sql = "SELECT COUNT(*) AS k, AVG(n) AS m FROM (SELECT kind, COUNT(*) AS n FROM data GROUP BY kind)"
    with opened(keys={"kind": ["a", "b", "c", "nobody"]}) as table:
        answer = answered(table, sql)
        assert answer["k"] == [4]
        assert noted(answer, "empty_groups")
        plain = answered(
            table, "SELECT kind, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM data GROUP BY kind"
        )
        assert not noted(plain, "empty_groups")
