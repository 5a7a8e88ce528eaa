"""Questions of private relations against pandas: what is computed before the noise is the right thing."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dither as dp
from dither.audit import replay
from dither.tables.card.model import Card, ColumnCard, PrivateTable, PublicTable
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.sql.parse import parse
from tables.glass import bounded

pytestmark = pytest.mark.slow

FIRST, LAST = date(2024, 1, 1), date(2024, 12, 31)
REGIONS = ("north", "south", "east")
_random = np.random.default_rng(15)
VISITS = pd.DataFrame(
    {
        "who": _random.integers(0, 120, 1000),
        "region": _random.choice(REGIONS, 1000),
        "amount": np.round(_random.uniform(0, 100, 1000) * 64) / 64,
        "day": [FIRST + timedelta(days=int(days)) for days in _random.integers(0, 366, 1000)],
        "qty": _random.integers(0, 10, 1000),
    }
)
COLUMNS = {
    "who": ColumnCard("integer"),
    "region": ColumnCard("text", keys=REGIONS),
    "amount": ColumnCard("number", (0, 100)),
    "day": ColumnCard("date", period=(FIRST, LAST)),
    "qty": ColumnCard("integer", (0, 9)),
}
CARD = Card("visits", "", COLUMNS, "who", max_groups=12, max_rows=40, delta=1e-6)
ROWS = pa.Table.from_pandas(VISITS, preserve_index=False)
PERSON = VISITS.groupby("who")


def answers(sql: str, card: Card = CARD) -> dict[str, list[object]]:
    """The answers without noise, by the names of the aggregates."""
    plan = plan_question(parse(sql, card), card, ReleaseOptions(epsilon=1.0, noise="laplace")).parts[0]
    return bounded(plan, ROWS).answer.answers


def test_the_average_total_per_person():
    mean = "AVG(total, contribution_bounds_per_row => (0, 5000)) AS m"
    people = "SELECT who, SUM(amount) AS total FROM visits GROUP BY who"
    result = answers(f"SELECT {mean}, COUNT(*) AS n FROM ({people}) AS t")
    totals = PERSON.amount.sum()
    assert result["m"][0] == pytest.approx(totals.mean(), rel=1e-4)
    assert result["n"] == [len(totals)]


def test_the_share_of_people_with_eight_visits_or_more():
    counts = PERSON.size()
    sql = "WITH t AS (SELECT who, COUNT(*) AS n FROM visits GROUP BY who) SELECT COUNT(*) AS n FROM t WHERE n >= 8"
    assert answers(sql)["n"] == [(counts >= 8).sum()]
    having = "SELECT COUNT(DISTINCT who) AS n FROM (SELECT who FROM visits GROUP BY who HAVING COUNT(*) >= 8) AS t"
    assert answers(having)["n"] == [(counts >= 8).sum()]


def test_the_median_of_the_days_between_visits():
    sql = (
        "SELECT MEDIAN(gap) AS g, COUNT(gap) AS n FROM "
        "(SELECT day - LAG(day) OVER (PARTITION BY who ORDER BY day) AS gap FROM visits) AS s WHERE gap IS NOT NULL"
    )
    ordered = VISITS.sort_values(["who", "day"])
    gaps = pd.to_datetime(ordered.day).groupby(ordered.who).diff().dt.days.dropna()
    result = answers(sql)
    assert result["g"][0] == pytest.approx(gaps.median(), abs=1)
    assert result["n"] == [len(gaps)]


def test_spend_by_month_since_the_first_visit():
    sql = (
        "SELECT m, SUM(amount) AS s FROM (SELECT DATE_DIFF('month', f.first, v.day) AS m, v.amount AS amount "
        "FROM visits v JOIN (SELECT who, MIN(day) AS first FROM visits GROUP BY who) f USING (who)) AS x "
        "WHERE m >= 0 GROUP BY m"
    )
    plan = plan_question(parse(sql, CARD), CARD, ReleaseOptions(epsilon=1.0, noise="laplace")).parts[0]
    first = VISITS.who.map(PERSON.day.min())
    months = [
        (late.year - early.year) * 12 + late.month - early.month for late, early in zip(VISITS.day, first, strict=True)
    ]
    sums = VISITS.amount.groupby(months).sum()
    answer = bounded(plan, ROWS).answer
    shown = {key[0]: value for key, value in zip(answer.keys, answer.answers["s"], strict=True)}
    assert set(sums.index) <= set(shown)
    for month, total in sums.items():
        assert shown[month] == pytest.approx(total, abs=0.01)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT COUNT(*) AS n FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.who = v.who "
            "AND w.day > v.day AND w.region = 'north')",
            lambda v: v.reset_index().merge(v[v.region == "north"], on="who").query("day_y > day_x")["index"].nunique(),
        ),
        (
            "SELECT COUNT(*) AS n FROM visits WHERE who NOT IN (SELECT who FROM visits WHERE qty = 9)",
            lambda v: (~v.who.isin(v[v.qty == 9].who)).sum(),
        ),
        (
            "SELECT COUNT(*) AS n FROM visits a LEFT JOIN (SELECT DISTINCT who FROM visits WHERE qty = 9) b "
            "ON a.who = b.who WHERE b.who IS NULL",
            lambda v: (~v.who.isin(v[v.qty == 9].who)).sum(),
        ),
        (
            "SELECT COUNT(*) AS n FROM visits a, visits b WHERE a.who = b.who AND a.day = b.day AND a.qty < b.qty",
            lambda v: len(v.merge(v, on=["who", "day"]).query("qty_x < qty_y")),
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT who, qty FROM visits WHERE qty > 5 "
            "UNION ALL SELECT who, qty FROM visits WHERE region = 'east') AS u",
            lambda v: (v.qty > 5).sum() + (v.region == "east").sum(),
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT DISTINCT who, region FROM visits) AS d",
            lambda v: len(v[["who", "region"]].drop_duplicates()),
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT who, qty FROM visits "
            "QUALIFY RANK() OVER (PARTITION BY who ORDER BY qty DESC) = 1) AS r",
            lambda v: (v.groupby("who").qty.rank(method="min", ascending=False) == 1).sum(),
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT who, SUM(qty) OVER (PARTITION BY who ORDER BY day) AS run "
            "FROM visits) AS r WHERE run >= 20",
            lambda v: (
                v.groupby(["who", "day"]).qty.sum().groupby("who").cumsum().rename("run").reset_index()
                .merge(v, on=["who", "day"]).run >= 20
            ).sum(),
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT who, AVG(s) AS m FROM (SELECT who, region, SUM(qty) AS s FROM visits "
            "GROUP BY who, region) AS x GROUP BY who) AS y WHERE m > 12",
            lambda v: (v.groupby(["who", "region"]).qty.sum().groupby("who").mean() > 12).sum(),
        ),
    ],
)  # fmt: skip
def test_counts_of_relations(sql, expected):
    assert answers(sql)["n"] == [pytest.approx(expected(VISITS), abs=0.01)]


def test_one_row_for_each_person_needs_no_limits():
    card = Card("visits", "", COLUMNS, "who", max_groups="auto", max_rows="auto", delta=1e-6)
    first = "SELECT region, AVG(amount) AS m FROM (SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY who "
    for sql in (
        "SELECT AVG(m) AS m FROM (SELECT who, AVG(amount) AS m FROM visits GROUP BY who) AS t",
        f"{first}ORDER BY day) = 1) AS t GROUP BY region",
    ):
        plan = plan_question(parse(sql, card), card, ReleaseOptions(epsilon=1.0)).parts[0]
        assert set(plan.automatic) == {"values of m"}  # bounds alone
        assert (plan.max_groups, plan.max_rows) == (1, 1)
    sums = "SELECT AVG(s) AS m FROM (SELECT who, SUM(amount) AS s FROM visits GROUP BY who) AS t"
    assert set(plan_question(parse(sums, card), card, ReleaseOptions(epsilon=1.0)).parts[0].automatic) == {
        "bounds of m"
    }


@pytest.fixture
def clinic(tmp_path):
    """Visits, and patients of whom some have no visit; a public table of districts."""
    patients = pd.DataFrame({"id": np.arange(-20, 100), "sex": ["f", "m"] * 60})
    VISITS.to_parquet(tmp_path / "visits.parquet", index=False)
    patients.to_parquet(tmp_path / "patients.parquet", index=False)
    (tmp_path / "areas.csv").write_text("region,area\nnorth,hills\nsouth,coast\n", encoding="utf-8")
    tables = {
        "visits": PrivateTable(str(tmp_path / "visits.parquet"), COLUMNS, "who"),
        "patients": PrivateTable(
            str(tmp_path / "patients.parquet"),
            {"id": ColumnCard("integer"), "sex": ColumnCard("text", keys=("f", "m"))},
            "id",
        ),
    }
    public = {"areas": PublicTable(str(tmp_path / "areas.csv"), dict.fromkeys(("region", "area"), ColumnCard("text")))}
    card = Card(
        "clinic", "", {}, None, max_groups=6, max_rows=40, public=public, ledger=str(tmp_path / "ledger.sqlite"),
        budget=dp.ApproxDP(4500, 0.1), each_person=dp.ApproxDP(3000, 0.1), delta=1e-6, tables=tables,
    )  # fmt: skip
    with dp.open(card) as table:
        yield table, patients


def test_two_tables_of_the_same_people(clinic):
    table, patients = clinic
    joined = VISITS.merge(patients, left_on="who", right_on="id")
    sql = "SELECT region, sex, COUNT(*) AS n FROM visits v JOIN patients p ON v.who = p.id GROUP BY region, sex"
    shown = {(row["region"], row["sex"]): row["n"] for row in released(table, sql)}
    for key, count in joined.groupby(["region", "sex"]).size().items():
        assert shown[key] == pytest.approx(count, abs=6)
    alone = "SELECT COUNT(*) AS n FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.who = p.id)"
    assert released(table, alone)[0]["n"] == pytest.approx((~patients.id.isin(VISITS.who)).sum(), abs=2)
    inside = "SELECT COUNT(*) AS n FROM visits WHERE region NOT IN (SELECT region FROM areas)"
    assert released(table, inside)[0]["n"] == pytest.approx((VISITS.region == "east").sum(), abs=2)
    assert "asked of: visits joined with patients on who" in str(table.sql(sql).explain(epsilon=1))


def released(table: dp.Table, sql: str, epsilon: float = 900) -> list[dict[str, Any]]:
    return list(table.sql(sql).release(epsilon=epsilon).to_arrow().to_pylist())


def test_only_people_with_a_row_of_the_relation_pay_for_it(clinic):
    table, _ = clinic
    some = "SELECT COUNT(*) AS n FROM (SELECT who FROM visits WHERE who < 10 GROUP BY who) AS t"
    assert released(table, some, 2000)[0]["n"] == pytest.approx(VISITS[VISITS.who < 10].who.nunique(), abs=2)
    others = released(table, "SELECT COUNT(*) AS n FROM (SELECT who, qty FROM visits UNION ALL "
                             "SELECT who, qty FROM visits) AS u", 2000)  # fmt: skip
    assert others[0]["n"] == pytest.approx(2 * (VISITS.who >= 10).sum(), abs=3)


def test_replay_finds_that_relations_depend_on_the_data_through_mechanisms_alone():
    per_person = "SELECT who, SUM(amount) AS total FROM visits GROUP BY who HAVING COUNT(*) > 1"

    def asked(rows: pd.DataFrame) -> object:
        with dp.open(
            pa.Table.from_pandas(rows, preserve_index=False), name="visits", unit="who", max_groups=3, max_rows=9,
            bounds={"amount": (0, 100)}, budget=dp.PureDP(10),
        ) as table:  # fmt: skip
            return released(table, f"SELECT AVG(total) AS m FROM ({per_person}) AS t", 1)

    result = replay(asked, VISITS, VISITS[VISITS.who != 3], claim=dp.PureDP(1), rounds=1)
    assert (result.passed, result.ended) == (True, "")
    assert result.recorded


def test_python_asks_of_a_table_per_person():
    with dp.open(
        ROWS, name="visits", unit="who", max_groups=3, max_rows=40, bounds={"amount": (0, 100)}, budget=dp.PureDP(4000)
    ) as table:  # fmt: skip
        people = table.per_person(total=dp.sum("amount"), n=dp.count())
        answer = people.where(dp.col("n") >= 8).agg(mean=dp.mean("total"), c=dp.count()).release(epsilon=2000)
        sql = "SELECT who, SUM(amount) AS total, COUNT(*) AS n FROM visits GROUP BY who"
        assert people.query.source == table.sql(f"SELECT COUNT(*) AS c FROM ({sql}) AS t").query.source
        with pytest.raises(dp.InvalidArgument, match=r"dp\.count, dp\.sum, dp\.mean"):
            table.per_person(m=dp.median("amount"))
    totals = PERSON.amount.sum()[PERSON.size() >= 8]
    (row,) = answer.to_arrow().to_pylist()
    assert row["c"] == pytest.approx(len(totals), abs=1)
    assert row["mean"] == pytest.approx(totals.mean(), rel=0.01)
