"""Limits and bounds that are chosen privately, in questions of every shape: nothing fails once it is charged."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.tables.card.model import Card, ColumnCard, PrivateTable, PublicTable
from support import refuses

ROWS = pa.table(
    {
        "who": [i % 400 for i in range(1200)],
        "town": ["abc"[i % 3] for i in range(1200)],
        "shop": [f"s{i % 5}" for i in range(1200)],
        "x": [float(i % 40) for i in range(1200)],
    }
)
TOTALS = "(SELECT who, town, SUM(x) AS total, COUNT(*) AS c FROM t GROUP BY who, town) AS s"
QUESTIONS = [
    "SELECT COUNT(DISTINCT who) AS n FROM t",
    "SELECT town, COUNT(DISTINCT who) AS n FROM t GROUP BY town",
    "SELECT shop, COUNT(DISTINCT who) AS n FROM t GROUP BY shop",
    "SELECT town, COUNT(*) AS n, COUNT(DISTINCT shop) AS d FROM t GROUP BY ROLLUP (town)",
    f"SELECT town, AVG(total) AS m FROM {TOTALS} GROUP BY ROLLUP (town)",
    f"SELECT town, AVG(c) AS max_rows, (SELECT AVG(total) FROM {TOTALS}) AS bias FROM {TOTALS} GROUP BY town",
    "SELECT shop, AVG(x) AS m, (SELECT COUNT(*) FROM t) AS n FROM t GROUP BY shop",
]


def opened(**more):
    stated = {"unit": "who", "name": "t", "keys": {"town": ["a", "b", "c"]}, "bounds": {"x": (0, 40)}, "delta": 1e-6}
    return dp.open(ROWS, budget=dp.ApproxDP(4000, 0.5), **stated, **more)


@pytest.mark.slow
@pytest.mark.parametrize("limits", [("auto", "auto"), ("auto", 3), (2, "auto"), (2, 3)], ids=str)
def test_every_question_is_answered_whatever_is_chosen(limits):
    with opened(max_groups=limits[0], max_rows=limits[1]) as table:
        for sql, epsilon in itertools.product(QUESTIONS, [0.001, 20]):
            assert table.sql(sql).release(epsilon, force=True).columns, sql


@pytest.mark.slow
def test_bounds_are_chosen_for_each_aggregation():
    with opened(max_groups=3, max_rows=3) as table:
        rows = table.sql(QUESTIONS[4]).release(300).dicts()
        truth = {row["town"]: row["m"] for row in rows if row["town"] is not None}
        assert len(truth) == 3
        (total,) = [row["m"] for row in rows if row["town"] is None]
        assert total == pytest.approx(sum(truth.values()) / 3, rel=0.3)
        (m,) = (
            table.sql(f"SELECT AVG(c) AS a, (SELECT AVG(total) FROM {TOTALS}) AS b FROM {TOTALS}").release(300).dicts()
        )
        assert m["a"] == pytest.approx(1, abs=0.5)
        assert m["b"] == pytest.approx(total, rel=0.3)


def test_different_values_of_levels_do_not_add_up():
    with opened(max_groups=3, max_rows=5) as table:
        rows = table.sql("SELECT town, COUNT(*) AS n, COUNT(DISTINCT shop) AS d FROM t GROUP BY ROLLUP (town)").release(
            300
        )
        assert rows["d"] == pytest.approx([5, 5, 5, 5], abs=1)


def test_a_row_without_a_person_counts_in_a_question_about_one_table(tmp_path):
    columns = {"who": ColumnCard("integer"), "y": ColumnCard("integer", (0, 9))}
    private = {}
    for name in ("visits", "patients"):
        pq.write_table(pa.table({"who": [1, 2, None], "y": [1, 2, 3]}), tmp_path / f"{name}.parquet")
        private[name] = PrivateTable(str(tmp_path / f"{name}.parquet"), columns, "who")
    stated = {"ledger": str(tmp_path / "l.sqlite"), "budget": dp.PureDP(100), "rows_without_unit": "each"}
    with dp.open(Card("clinic", "", {}, tables=private, **stated)) as clinic:
        assert clinic.sql("SELECT COUNT(*) AS n FROM patients").release(50)["n"][0] == pytest.approx(3, abs=1)
        with refuses(dp.InvalidArgument, "in a question of its own"):
            clinic.sql("SELECT (SELECT COUNT(*) FROM visits) AS a, (SELECT COUNT(*) FROM patients) AS b").release(1)


def test_distinct_on_is_refused():
    with opened() as table, refuses(dp.InvalidArgument, "QUALIFY ROW_NUMBER()"):
        table.sql("SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (who) who, x FROM t) AS s")


@pytest.mark.slow
def test_no_column_of_a_question_stands_for_what_is_computed_on_the_way():
    """Names that the statements use themselves, and beginnings of them, as names of columns."""
    names = ["w0", "w0_n", "v0", "a0", "a0_n", "dither_place", "dw0", "Dw0", "ddw0", "dplace", "da0", "dv0", "place"]
    with opened(max_groups=3, max_rows=3) as table:
        for name in names:
            first = (
                f"(SELECT who, x, 1 AS {name} FROM t) AS q QUALIFY ROW_NUMBER() OVER (PARTITION BY who ORDER BY x) = 1"
            )
            answer = table.sql(f"SELECT COUNT(*) AS n FROM (SELECT who, x FROM {first}) AS s").release(100)
            assert answer["n"][0] == pytest.approx(400, abs=3), name
            rows = f"SELECT who, x, 5 AS {name} FROM t"
            sums = f"SELECT who, {name}, SUM(x) AS total FROM ({rows}) AS q GROUP BY who, {name}"
            answer = table.sql(f"SELECT MAX({name}) AS m, COUNT(*) AS n FROM ({sums}) AS s").release(100)
            assert answer["n"][0] == pytest.approx(400, abs=3), name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dither_place", "dplace", "place", "DPLACE", "ddplace"])
def test_no_column_of_a_public_table_stands_for_what_is_computed_on_the_way(name, tmp_path):
    """No row is left out for the value of a column of its partner."""
    pq.write_table(pa.table({"code": [0, 1], name: [7, 8]}), tmp_path / "codes.parquet")
    codes = PublicTable(str(tmp_path / "codes.parquet"), {"code": ColumnCard("integer"), name: ColumnCard("integer")})
    pq.write_table(pa.table({"who": range(100), "x": [i % 2 for i in range(100)]}), tmp_path / "t.parquet")
    columns = {"who": ColumnCard("integer"), "x": ColumnCard("integer")}
    stated = {"unit": "who", "ledger": str(tmp_path / "l.sqlite"), "budget": dp.PureDP(200), "public": {"codes": codes}}
    with dp.open(Card("t", str(tmp_path / "t.parquet"), columns, **stated)) as table:
        question = f"SELECT COUNT(*) AS n FROM t JOIN codes ON t.x = codes.code WHERE codes.{name} > 6"
        assert table.sql(question).release(100)["n"][0] == pytest.approx(100, abs=3)
