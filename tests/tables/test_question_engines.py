"""The same session where the data are: PostgreSQL and Spark."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.tables.card.model import Card, ColumnCard, PublicTable
from tables.conftest import fill

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # Py4J leaves them to the collector
]

ROWS = pa.table(
    {
        "who": pa.array([f"p{i % 300}" for i in range(1800)] + [None] * 5, pa.string()),
        "region": pa.array([("north", "süd", None)[i % 3] for i in range(1800)] + ["secret"] * 5, pa.string()),
        "amount": pa.array([float(i % 40) for i in range(1800)] + [float("nan")] * 5, pa.float64()),
        "age": pa.array([i % 90 for i in range(1800)] + [(1 << 63) - 1] * 5, pa.int64()),
        "day": pa.array([date(2024, 1 + i % 12, 1 + i % 28) for i in range(1805)], pa.date32()),
    }
)
COLUMNS = {
    "who": ColumnCard("text"),
    "region": ColumnCard("text"),
    "amount": ColumnCard("number", (0, 40)),
    "age": ColumnCard("integer", (0, 120)),
    "day": ColumnCard("date"),
}


@pytest.fixture(scope="module")
def place(postgres_server) -> str:
    """A database of its own, where no other test names its tables."""
    postgres_server.execute("CREATE DATABASE sessions")
    return postgres_server.place("sessions")


def card(kind, request, tmp_path, **more) -> Card:
    if kind == "postgres":
        source = fill(request.getfixturevalue("place"), ROWS)
    else:
        pq.write_table(ROWS, tmp_path / "rows.parquet")
        source = str(tmp_path / "rows.parquet")
        if kind == "spark":
            request.getfixturevalue("spark")
            source = f"spark::{source}"
    (tmp_path / "names.csv").write_text("region,name\nnorth,N\nsüd,S\n", encoding="utf-8")
    public = {"names": PublicTable(str(tmp_path / "names.csv"), dict.fromkeys(("region", "name"), ColumnCard("text")))}
    told = {"unit": "who", "max_groups": 3, "max_rows": 6, "public": public, "delta": 1e-6, **more}
    return Card("visits", source, COLUMNS, ledger=str(tmp_path / "ledger"), **told)


QUESTIONS = [
    "SELECT region, COUNT(*) AS n, COUNT(DISTINCT who) AS p, SUM(age) AS s FROM visits GROUP BY region",
    "SELECT name, COUNT(*) AS n FROM visits LEFT JOIN names ON visits.region = names.region GROUP BY name",
    "SELECT COUNT(*) AS n, AVG(amount) AS m, STDDEV(age) AS d, MEDIAN(age) AS q, MAX(age) AS b FROM visits",
    "SELECT DATE_TRUNC('quarter', day) AS q, COUNT(*) AS n FROM visits WHERE age / 2 > 10 AND region LIKE 'n%' "
    "GROUP BY DATE_TRUNC('quarter', day)",
    "SELECT SUM(COALESCE(age, 1) * COALESCE(age, 1) * COALESCE(age, 1)) AS s FROM visits WHERE amount < 10",
    # the largest group by private keys, and an aggregate with a limit of its own
    "SELECT region, COUNT(*) AS n, AVG(amount, rows_per_person => 2) AS m FROM visits "
    "WHERE region = 'north' OR age > 60 GROUP BY region ORDER BY n DESC LIMIT 1",
]


@pytest.mark.parametrize("kind", ["postgres", "spark"])
def test_the_same_session(kind, request, tmp_path):
    result = {}
    for item in ("duckdb", kind):
        (tmp_path / item).mkdir()
        told = card(item, request, tmp_path / item, budget=dp.ApproxDP(4600, 0.1))
        with dp.open(told) as table:
            answers = [table.sql(sql).release(750, max_groups=12) for sql in QUESTIONS]
            assert [table.sql(sql).release(750, max_groups=12) for sql in QUESTIONS] == answers
            assert str(table.left).startswith("(ε, δ) = (100,")
            result[item] = answers
    for mine, theirs in zip(result[kind], result["duckdb"], strict=True):
        assert mine.columns == theirs.columns
        assert mine.types == theirs.types
        for row, other in zip(mine.rows, theirs.rows, strict=True):
            for value, wanted in zip(row, other, strict=True):
                assert value == (pytest.approx(wanted, rel=0.02, abs=2) if isinstance(wanted, (int, float)) else wanted)


@pytest.mark.parametrize("kind", ["postgres", "spark"])
def test_people_pay_for_themselves(kind, request, tmp_path):
    told = card(kind, request, tmp_path, each_person=dp.PureDP(3000))
    with dp.open(told) as table:
        first = table.sql("SELECT COUNT(DISTINCT who) AS n FROM visits WHERE age < 30 AND amount < 5").release(2000)
        second = table.sql("SELECT COUNT(DISTINCT who) AS n FROM visits").release(2000)
    crowd = {row["who"] for row in ROWS.to_pylist() if row["who"] and row["age"] < 30 and row["amount"] < 5}
    assert first["n"] == [len(crowd)]
    assert second["n"] == [300 - len(crowd)]
