"""Joins and tables per person of ten million rows, against DuckDB and Spark with the same bounding and no noise."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import duckdb

import dither as dp
from dither.tables.card.model import Card, ColumnCard, PrivateTable
from suite import Row, main
from tables import CACHE, REGIONS, Meter, compared, local_spark, visits

TITLE = "Joins and tables per person"
NOTES = (
    "Data: the 10,000,000 visits of *Tables* and a table of their 500,000 people with an age group, one Parquet file "
    "each.",
    "Q5: visits joined to people on the person, COUNT(*) by region of the visit and age group of the person (200 "
    "groups). Q6: the average total amount of a person in a region, by region, from a table with a row for each person "
    "and region. Public keys, ε = 1, δ = 1e-6, of each person at most 3 groups and 1 row in each.",
    "*The limit* is DuckDB alone (or Spark SQL): the same bounding without noise and without fixed point, the fastest "
    "of several statements. Ours is all of `table.sql(…).release(epsilon=1)`. CPU seconds of all threads, the best of "
    "rounds in which both take turns; wall seconds in brackets.",
    "*Rows collected* is the largest number of rows that any statement of ours brought from Spark.",
)
AGES = ("0-19", "20-39", "40-59", "60-")
SQL = {
    "Q5": "SELECT region, ages, COUNT(*) AS n FROM visits JOIN people ON visits.person = people.person "
    "GROUP BY region, ages",
    "Q6": "SELECT region, AVG(total) AS m FROM (SELECT person, region, SUM(amount) AS total FROM visits "
    "GROUP BY person, region) AS t GROUP BY region",
}
_KEYS = ", ".join(f"('{region}', {i})" for i, region in enumerate(REGIONS))
_AGE_KEYS = ", ".join(f"('{ages}', {i})" for i, ages in enumerate(AGES))
_ROWS = (
    f"r AS MATERIALIZED (SELECT v.person AS u, k.i * 4 + a.i AS g FROM {{v}} AS v JOIN {{p}} AS p USING (person) "
    f"JOIN (VALUES {_KEYS}) AS k(k, i) ON v.region = k.k JOIN (VALUES {_AGE_KEYS}) AS a(k, i) ON p.ages = a.k)"
)
_TOTALS = (
    "t AS MATERIALIZED (SELECT u, i AS g, x FROM (SELECT person AS u, region, LEAST(SUM(LEAST(amount, 100)), 300) AS x "
    f"FROM {{v}} GROUP BY person, region) AS v JOIN (VALUES {_KEYS}) AS k(k, i) ON v.region = k.k)"
)
RAW = {
    "Q5": (
        f"WITH {_ROWS} SELECT g, SUM(w) FROM r JOIN (SELECT u, LEAST(1, 3 / COUNT(*)) AS w FROM r GROUP BY u) AS p "
        "USING (u) GROUP BY g",
        f"WITH {_ROWS}, l AS MATERIALIZED (SELECT u, g, COUNT(*) AS n FROM r GROUP BY u, g) SELECT g, SUM(w * n) "
        "FROM l JOIN (SELECT u, LEAST(1, 3 / SUM(n)) AS w FROM l GROUP BY u) AS p USING (u) GROUP BY g",
    ),
    "Q6": (
        f"WITH {_TOTALS} SELECT g, SUM(w * x) / SUM(w) FROM t JOIN (SELECT u, LEAST(1, 3 / COUNT(*)) AS w FROM t "
        "GROUP BY u) AS p USING (u) GROUP BY g",
        f"WITH {_TOTALS} SELECT g, SUM(w * x) / SUM(w) FROM (SELECT g, x, LEAST(1, 3 / COUNT(*) OVER (PARTITION BY u)) "
        "AS w FROM t) GROUP BY g",
    ),
}
SPARK = {
    "Q5": "SELECT region, ages, SUM(w) FROM (SELECT region, ages, LEAST(1, 3 / COUNT(*) OVER (PARTITION BY person)) "
    "AS w FROM visits JOIN people USING (person)) GROUP BY region, ages",
    "Q6": "SELECT region, SUM(w * x) / SUM(w) FROM (SELECT region, x, LEAST(1, 3 / COUNT(*) OVER "
    "(PARTITION BY person)) AS w FROM (SELECT person, region, LEAST(SUM(LEAST(amount, 100)), 300) AS x FROM visits "
    "GROUP BY person, region)) GROUP BY region",
}


def people(size: int) -> Path:
    """The file of the people of so many visits; made where it is not there yet."""
    path = CACHE / f"people-{size}.parquet"
    if not path.exists():
        with duckdb.connect() as connection:
            making = path.with_suffix(f".{os.getpid()}")
            ages = "CASE " + " ".join(f"WHEN i % 4 = {i} THEN '{ages}'" for i, ages in enumerate(AGES)) + " END"
            rows = f"SELECT CAST(i AS INTEGER) AS person, {ages} AS ages FROM RANGE({size // 20}) AS r(i)"
            connection.execute(f"COPY ({rows}) TO '{making}' (FORMAT parquet)")
            making.rename(path)
    return path


def card(size: int, folder: str, mark: str = "") -> Card:
    """Both tables, with a ledger in the folder."""
    person = ColumnCard("integer")
    amount = ColumnCard("number", (0.0, 100.0))
    columns = {"person": person, "region": ColumnCard("text", keys=REGIONS), "amount": amount}
    tables = {
        "visits": PrivateTable(f"{mark}{visits(size)}", columns, "person"),
        "people": PrivateTable(
            f"{mark}{people(size)}", {"person": person, "ages": ColumnCard("text", keys=AGES)}, "person"
        ),
    }
    place, budget = f"{folder}/ledger.sqlite", dp.ApproxDP(1000, 0.5)
    return Card("clinic", "", {}, None, 3, 1, ledger=place, budget=budget, delta=1e-6, tables=tables)


def fastest(connection: Any, size: int) -> dict[str, str]:
    """Of the raw statements for each question, the one that takes the least CPU time; the first run warms up."""
    chosen = {}
    for name, texts in RAW.items():
        taken = {}
        for sql in (text.format(v=f"'{visits(size)}'", p=f"'{people(size)}'") for text in texts):
            taken[sql] = min(Meter().of(lambda sql=sql: connection.execute(sql).fetchall())[0] for _ in range(2))
        chosen[name] = min(taken, key=lambda sql: taken[sql])
    return chosen


def speed(size: int, rounds: int) -> list[Row]:
    """Both questions on DuckDB."""
    result = []
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as raw, dp.open(card(size, folder)) as ours:
        for name, sql in fastest(raw, size).items():
            tasks = {
                "limit": lambda sql=sql: raw.execute(sql).fetchall(),
                "ours": lambda name=name: ours.sql(SQL[name]).release(epsilon=1, again=True),
            }
            result.append(compared(f"{name}, CPU s (wall s)", tasks, rounds, Meter(), "the limit"))
    return result


def on_spark(size: int, rounds: int) -> list[Row]:
    """Both questions on local Spark, and how many rows of an answer of ours leave it."""
    session, meter = local_spark()
    for name, path in (("visits", visits(size)), ("people", people(size))):
        session.read.parquet(str(path)).createOrReplaceTempView(name)
    result = []
    with tempfile.TemporaryDirectory() as folder, dp.open(card(size, folder, "spark::")) as ours:
        collected = [0]
        run = ours.engine.run

        def counted(statement: Any) -> Any:
            rows = run(statement)
            collected.append(rows.num_rows)
            return rows

        ours.engine.run = counted
        for name, sql in SPARK.items():
            tasks = {
                "limit": lambda sql=sql: session.sql(sql).collect(),
                "ours": lambda name=name: ours.sql(SQL[name]).release(epsilon=1, again=True),
            }
            result.append(
                compared(f"{name} on Spark, {size:,} rows, CPU s (wall s)", tasks, rounds, meter, "Spark SQL")
            )
        most = max(collected)
        groups = len(REGIONS) * len(AGES)
        result.append(Row("rows collected from Spark", f"{most:,}", "", None, f"≤ {groups}", most <= groups))
    session.stop()
    return result


def rows(quick: bool = False) -> list[Row]:
    """All of the suite; Spark at a tenth of the rows."""
    if quick:  # without Spark, which takes longer to start than all of this
        return speed(10**4, 1)
    return [*speed(10**7, 5), *on_spark(10**6, 3)]


if __name__ == "__main__":
    main(TITLE, NOTES, rows)
