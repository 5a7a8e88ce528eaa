"""From the noisy table to the answer: which columns have an error, and which."""

from __future__ import annotations

import pyarrow as pa
import pytest

import dither as dp

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
