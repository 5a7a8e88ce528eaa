"""Subqueries of the same person inside of expressions: answers are DuckDB's, and the rest is refused with the cause."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.tables.card.model import Card, ColumnCard, PublicTable
from support import each, refuses
from tables.sql.claims import CARD, COLUMNS, VISITS, answered, opened, truth
from tables.sql.test_mistakes import fix_of, is_planned

CLAIM = "EXISTS (SELECT 1 FROM claims c WHERE c.pid = v.pid{0})"
QUESTIONS = [
    *(f"SELECT CASE WHEN {CLAIM.format(more)} THEN 'yes' ELSE 'no' END AS k, COUNT(*) AS n FROM visits v GROUP BY 1"
      for more in ("", " AND c.cost > 20", " AND c.kind IN ('a', 'b') AND NOT c.cost < 5")),
    "SELECT SUM(CASE WHEN pid IN (SELECT pid FROM claims WHERE cost > 25) THEN 1 ELSE 0 END) AS n FROM visits",
    "SELECT COUNT(*) FILTER (WHERE pid NOT IN (SELECT pid FROM claims WHERE n < 2)) AS n FROM visits",
    "SELECT COUNT(*) FILTER (WHERE NOT EXISTS (SELECT * FROM claims WHERE pid = v.pid AND n < 2)) AS n FROM visits v",
    "SELECT pid IN (SELECT pid FROM claims GROUP BY pid HAVING COUNT(*) > 2) AS k, COUNT(*) AS n FROM visits "
    "GROUP BY 1",
    "SELECT kind, pid IN (SELECT pid FROM claims WHERE n > 4) AS k, COUNT(*) AS n FROM visits GROUP BY kind, "
    "pid IN (SELECT pid FROM claims WHERE n > 4)",
    "SELECT COUNT(*) AS n FROM visits v WHERE v.kind = 'a' OR v.pid IN (SELECT c.pid FROM claims c WHERE c.n = 3)",
    "SELECT COUNT(*) AS n FROM visits WHERE (kind = 'c') = (pid IN (SELECT pid FROM claims WHERE n = 2))",
    "SELECT COUNT(*) AS n FROM visits v WHERE v.amount > (SELECT AVG(i.amount) FROM visits i WHERE i.pid = v.pid)",
    "SELECT kind, COUNT(*) AS n FROM visits v WHERE amount >= (SELECT MAX(amount) FROM visits WHERE visits.pid = v.pid "
    "AND kind = 'b') GROUP BY kind",
    "SELECT COUNT(*) AS n FROM visits v WHERE (SELECT COUNT(*) FROM claims c WHERE v.pid = c.pid AND cost > 30) = 0",
    "SELECT COUNT(*) AS n FROM visits v WHERE (SELECT SUM(n) FROM claims c WHERE c.pid = v.pid AND cost > 30) IS NULL",
    "SELECT COUNT(DISTINCT pid) AS n FROM (SELECT v.pid, (SELECT COUNT(DISTINCT kind) FROM claims c "
    "WHERE c.pid = v.pid) AS k FROM visits v) WHERE k > 1",
    "SELECT LEAST((SELECT COUNT(*) FROM claims c WHERE c.pid = v.pid), 4) AS k, COUNT(*) AS n FROM visits v GROUP BY 1",
    "SELECT COUNT(*) AS n FROM visits v WHERE pid IN (SELECT pid FROM claims c WHERE c.cost > v.amount)",
    "SELECT COUNT(*) AS n FROM visits v WHERE v.pid NOT IN (SELECT c.pid FROM claims c WHERE c.n <> v.n OR c.cost < 3)",
    "SELECT COUNT(*) AS n FROM visits JOIN plans USING (kind) WHERE plan = 'x' OR pid IN "
    "(SELECT pid FROM claims WHERE n = 2)",
    "WITH big AS (SELECT pid FROM claims WHERE cost > 30) SELECT pid IN (SELECT pid FROM big) AS k, COUNT(*) AS n "
    "FROM visits GROUP BY 1",
    "SELECT COUNT(*) AS n FROM (SELECT pid FROM visits INTERSECT SELECT pid FROM claims)",
    "SELECT COUNT(*) AS n FROM (SELECT pid FROM visits WHERE kind = 'c' EXCEPT SELECT pid FROM claims WHERE n > 2)",
    "WITH a AS (SELECT pid FROM visits WHERE n > 3 INTERSECT SELECT pid FROM claims EXCEPT SELECT pid FROM visits "
    "GROUP BY pid HAVING COUNT(*) > 6) SELECT COUNT(*) AS n FROM a",
    "SELECT kind, COUNT(*) AS n FROM (SELECT pid, kind FROM visits WHERE amount > 3) GROUP BY ALL",
    "SELECT kind, COUNT(*) AS n FROM (SELECT pid, kind, SUM(n) AS s FROM visits GROUP BY ALL) WHERE s > 5 GROUP BY ALL",
    "WITH t AS (SELECT pid, kind FROM visits GROUP BY ALL) SELECT kind, COUNT(*) AS n FROM t GROUP BY ALL",
    "SELECT COUNT(*) AS n FROM (SELECT pid, amount - LAG(amount) OVER w AS g, ROW_NUMBER() OVER w AS r FROM visits "
    "WINDOW w AS (PARTITION BY pid ORDER BY amount, kind, n)) WHERE g > 100 AND r > 2",
    "SELECT kind, SUM(COUNT(*)) OVER w AS n FROM visits GROUP BY kind WINDOW w AS (ORDER BY kind)",
    "SELECT COUNT(*) AS n FROM visits WHERE n IN (1, 2, NULL)",
    "SELECT COUNT(*) AS n FROM visits WHERE (kind IN ('a', NULL)) IS NULL",
    "SELECT COUNT(*) AS n FROM visits WHERE NOT (n NOT IN (1, 2) OR kind IN ('b', NULL) IS NULL)",
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("care")) as opened_table:
        yield opened_table


@each("sql", QUESTIONS)
def test_the_answer_is_that_of_duckdb(table, sql):
    expected = truth(sql)
    assert expected is not None
    found = [
        row for row in answered(table, sql) or [] if row[-1]
    ]  # groups with public keys are there without rows, too
    assert sorted(found, key=str) == sorted((row for row in expected if row[-1]), key=str)


@each(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM visits v LEFT JOIN claims c ON c.pid = v.pid WHERE v.n = 1 OR c.pid IN (SELECT pid "
        "FROM claims WHERE cost > 30)",
        "SELECT COUNT(*) AS n FROM visits v WHERE amount > (SELECT AVG(c.cost) FROM claims c WHERE c.kind = v.kind)",
        "SELECT COUNT(*) AS n FROM visits v WHERE amount > (SELECT c.cost FROM claims c WHERE c.pid = v.pid)",
        "SELECT COUNT(*) AS n FROM visits v WHERE n = 1 OR kind IN (SELECT kind FROM claims)",
        "SELECT COUNT(*) AS n FROM (SELECT pid, kind FROM visits INTERSECT SELECT pid, kind FROM claims)",
    ],
)
def test_what_is_not_of_one_person_alone_is_refused(sql):
    assert not is_planned(sql, CARD)


def test_a_condition_on_the_row_itself_stands_in_where():
    condition = CLAIM.format(" AND c.cost > v.amount")
    sql = f"SELECT CASE WHEN {condition} THEN 'yes' ELSE 'no' END AS k, COUNT(*) AS n FROM visits v GROUP BY 1"
    pasted = re.search(r"WHERE … AND (EXISTS.*)$", fix_of(sql, CARD))
    assert pasted is not None
    assert is_planned(f"SELECT COUNT(*) AS n FROM visits v WHERE kind = 'a' AND {pasted[1]}", CARD)


def test_not_in_a_list_with_null_is_refused_because_it_is_never_true(table):
    sql = "SELECT COUNT(*) AS n FROM visits WHERE n NOT IN (1, 2, NULL)"
    assert truth(sql) == [(0,)]
    pasted = re.search(r"leave NULL out: (n NOT IN \(.*?\))", fix_of(sql, CARD))
    assert pasted is not None
    asked = f"SELECT COUNT(*) AS n FROM visits WHERE {pasted[1]}"
    assert answered(table, asked) == truth(asked)


def test_a_public_table_with_a_key_twice_can_be_asked_by_in(tmp_path):
    pq.write_table(pa.table({"kind": ["a", "a", "b"], "color": ["red", "blue", "red"]}), tmp_path / "colors.parquet")
    pq.write_table(VISITS, tmp_path / "visits.parquet")
    colors = PublicTable(str(tmp_path / "colors.parquet"), {"kind": ColumnCard("text"), "color": ColumnCard("text")})
    card = Card(
        "visits", str(tmp_path / "visits.parquet"), COLUMNS, "pid", max_rows=200, public={"colors": colors},
        ledger=str(tmp_path / "ledger.sqlite"), budget=dp.PureDP(10),
    )  # fmt: skip
    with dp.open(card) as table:
        with refuses(dp.InvalidData, "one twice") as refusal:
            table.sql("SELECT COUNT(*) AS n FROM visits JOIN colors USING (kind)").release(epsilon=1)
        pasted = re.search(r"(WHERE kind IN \(.*?\))", str(refusal.value))
        assert pasted is not None
        in_colors = [kind for kind in VISITS["kind"].to_pylist() if kind != "c"]
        assert answered(table, f"SELECT COUNT(*) AS n FROM visits {pasted[1]}") == [(len(in_colors),)]
