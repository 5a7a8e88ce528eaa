"""From the noisy table to the answer: which columns have an error, and which."""

from __future__ import annotations

import pyarrow as pa
import pytest

import dither as dp
from dither.tables.query import postprocess
from support import noted

ROWS = pa.table({"kind": ["a", "b", "c"] * 400, "x": [float(i % 10) for i in range(1200)]})


@pytest.fixture(scope="module")
def table():
    with dp.open(ROWS, keys={"kind": ["a", "b", "c"]}, bounds={"x": (0, 10)}, budget=dp.PureDP(1000)) as opened:
        yield opened


@pytest.mark.parametrize(
    "question",
    [
        "SELECT kind, COUNT(*) * 10 AS y FROM data GROUP BY kind",
        "SELECT kind, ROUND(COUNT(*) * 10) AS y FROM data GROUP BY kind",
    ],
)
def test_an_error_is_that_of_the_noise_however_it_is_computed(table, question):
    plain = table.sql("SELECT kind, COUNT(*) AS n FROM data GROUP BY kind").release(epsilon=0.1)
    computed = table.sql(question).release(epsilon=0.1)
    for error, expected in zip(computed.errors["y"], plain.errors["n"], strict=True):
        assert error == pytest.approx(10 * expected, rel=0.1)


def test_a_column_that_is_passed_on_keeps_its_error(table):
    inner = "SELECT kind, COUNT(*) AS n, AVG(x) AS m FROM data GROUP BY kind"
    answer = table.sql(f"SELECT kind, m, n, RANK() OVER (ORDER BY kind) AS place FROM ({inner})").release(epsilon=1)
    assert list(answer.errors) == ["m", "n"]
    assert len(set(answer.errors["n"])) == 1


def test_a_difference_with_itself_is_certain_and_a_share_of_one_is_one(table):
    inner = "SELECT COUNT(*) AS n FROM data"
    answer = table.sql(f"SELECT n - n AS zero, n / SUM(n) OVER () AS one FROM ({inner})").release(epsilon=1)
    assert answer.rows == ((0, 1.0),)
    assert answer.errors == {}


def test_a_column_that_depends_on_a_quantile_has_no_error(table):
    inner = "SELECT kind, COUNT(*) AS n, MEDIAN(x) AS middle FROM data GROUP BY kind"
    answer = table.sql(f"SELECT kind, n + middle AS both, n + 1 AS more FROM ({inner})").release(epsilon=1)
    assert answer.errors["both"] == (None,) * 3
    assert all(error is not None for error in answer.errors["more"])


def test_a_question_without_groups_has_errors(table):
    answer = table.sql("SELECT ROUND(AVG(x), 2) AS m, CAST(COUNT(*) AS VARCHAR) AS n FROM data").release(epsilon=1)
    assert answer.types == ("number", "text")
    assert answer.errors["m"][0] > 0


BY_KIND = "SELECT kind, COUNT(*) AS n FROM data GROUP BY kind"
FAILING = [
    "make_date(2024, CASE WHEN n BETWEEN 300 AND 500 THEN 13 ELSE 1 END, 1)",
    "regexp_matches('a', CASE WHEN n BETWEEN 300 AND 500 THEN '(' ELSE 'a' END)",
    "date_trunc(CASE WHEN n BETWEEN 300 AND 500 THEN 'of no kind' ELSE 'day' END, DATE '2024-01-01')",
]


@pytest.mark.parametrize("value", FAILING)
def test_where_sql_fails_on_the_noisy_table_the_noisy_table_is_the_answer(table, value):
    question = table.sql(f"SELECT {value} AS y FROM ({BY_KIND}) AS s")
    answer = question.release(epsilon=1)
    assert answer.columns == ("kind", "n")
    assert [row[0] for row in answer.rows] == ["a", "b", "c"]
    assert all(abs(row[1] - 400) < 40 for row in answer.rows)
    assert all(error > 0 for error in answer.errors["n"])
    assert noted(answer, "failed_sql") == [{"column": None}]
    again = question.release(epsilon=1)
    assert again.replayed
    assert again.rows == answer.rows


def test_sql_with_too_many_rows_leaves_the_noisy_tables(table, monkeypatch):
    question = (
        f"SELECT s.kind, s.n, t.m FROM ({BY_KIND}) s, (SELECT x > 4 AS more, COUNT(*) AS m FROM data GROUP BY 1) t"
    )
    prepared = table.sql(question)
    run, ran = postprocess.run_on_any_numbers, []

    def run_with_a_lower_limit(*arguments):
        monkeypatch.setattr(postprocess, "MAX_ROWS", 5)
        ran.append(run(*arguments))
        return ran[0]

    monkeypatch.setattr(postprocess, "run_on_any_numbers", run_with_a_lower_limit)
    answer = prepared.release(epsilon=1)
    assert ran == [None]
    assert answer.columns == ("aggregation", "kind", "n", "more", "m")
    assert noted(answer, "failed_sql") == [{"column": "aggregation"}]
    assert [(row[0], row[1], row[3]) for row in answer.rows] == [
        (1, "a", None), (1, "b", None), (1, "c", None), (2, None, False), (2, None, True)
    ]  # fmt: skip
    assert answer.errors["m"][:3] == (None,) * 3
    assert all(error > 0 for error in (*answer.errors["n"][:3], *answer.errors["m"][3:]))


def test_sql_that_fails_is_no_incident():
    """It fails by a key, whatever the numbers are; three incidents would close the table."""
    rows = pa.table({"kind": ["north", "south"] * 100})
    with dp.open(rows, keys={"kind": ["north", "south"]}, budget=dp.PureDP(10)) as opened:
        for place, value in enumerate(FAILING * 2):
            failing = value.replace("n BETWEEN 300 AND 500", "kind = 'north'")
            opened.sql(f"SELECT {failing} AS y, {place} AS place FROM ({BY_KIND}) AS s").release(epsilon=1)
        assert opened.sql(BY_KIND).release(epsilon=1).rows


def test_where_no_limit_leaves_rows_out_a_note_says_that_bias_learns_nothing(table):
    with dp.open(ROWS.append_column("who", [list(range(1200))]), unit="who", budget=dp.PureDP(10)) as opened:
        sums = "SELECT AVG(n) AS m FROM (SELECT who, COUNT(*) AS n FROM data GROUP BY who) AS p"
        of_a_relation = opened.sql(sums).release(epsilon=1, bias=True, max_rows=2)
        limited = opened.sql("SELECT COUNT(*) AS n FROM data").release(epsilon=1, bias=True, max_rows=1)
    assert noted(of_a_relation, "bias_unused") == [{"reason": "one_row"}]
    assert not noted(limited, "bias_unused")
    assert not noted(table.sql(BY_KIND).release(epsilon=1, again=True), "bias_unused")
