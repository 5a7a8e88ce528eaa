"""Questions with several private aggregations: one charge, one answer, and an error of everything that is computed."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.errors import BudgetExceeded
from dither.tables.query.postprocess import IsolatedDatabase
from support import noted

ROWS = pa.table(
    {
        "who": [i // 3 for i in range(1200)],
        "kind": ["a", "b", "c"] * 400,
        "x": [float(i % 10) for i in range(1200)],
    }
)
CARD = """
name = "visits"
source = "visits.parquet"
unit = "who"
ledger = "visits.ledger"
[budget]
epsilon = 1
per = "person"
[columns.who]
type = "integer"
[columns.kind]
type = "text"
keys = ["a", "b", "c"]
[columns.x]
type = "number"
bounds = [0, 10]
"""
SHARE = "WITH k AS (SELECT kind, COUNT(*) AS n FROM data GROUP BY kind), t AS (SELECT COUNT(*) AS total FROM data) " \
    "SELECT kind, n, n / total AS share, total FROM k, t"  # fmt: skip


def opened(**more: object) -> dp.Table:
    stated = {"unit": "who", "keys": {"kind": ["a", "b", "c"]}, "bounds": {"x": (0, 10)}, "max_groups": 3,
              "max_rows": 1, "budget": dp.PureDP(100)}  # fmt: skip
    return dp.open(ROWS, **(stated | more))


def test_there_is_one_charge_for_all_of_them_and_one_recorded_answer():
    with opened(budget=dp.PureDP(1.5)) as table:
        question = table.sql(SHARE)
        first, second = question.release(epsilon=1), question.release(epsilon=1)
        assert (first.cost, first.replayed, second.replayed) == (dp.PureDP(1), False, True)
        assert first.rows == second.rows
        assert str(table.accounts.remaining(None)) == "ε = 0.5"
        with pytest.raises(BudgetExceeded):
            question.release(epsilon=1, again=True)


def test_questions_that_differ_in_one_aggregation_have_answers_of_their_own():
    with opened() as table:
        one = table.sql("SELECT COUNT(*) / (SELECT COUNT(*) FROM data WHERE x > 3) AS y FROM data GROUP BY kind")
        other = table.sql("SELECT COUNT(*) / (SELECT COUNT(*) FROM data WHERE x > 4) AS y FROM data GROUP BY kind")
        assert not one.release(epsilon=1).replayed
        assert not other.release(epsilon=1).replayed


def test_columns_that_are_passed_on_keep_their_errors_and_others_have_one():
    with opened() as table:
        answer = table.sql(SHARE).release(epsilon=10)
        alone = table.sql(SHARE).plan(epsilon=10).parts
    for name, plan in zip(("n", "total"), alone, strict=True):
        (measure,) = plan.measures_of[name]
        expected = plan.measures[measure].error(0.95, integer=True) / measure.unit(plan.limits)
        assert answer.errors[name] == pytest.approx([expected] * 3, abs=0.5)
    # n / total with 400 / 1200: the error of n is most of it
    assert answer.errors["share"] == pytest.approx([answer.errors["n"][0] / 1200] * 3, rel=0.35)


def test_the_error_of_a_difference_of_two_aggregations_has_the_noise_of_both():
    sql = "SELECT COUNT(*) - (SELECT COUNT(*) FROM data WHERE x > 4) AS y FROM data GROUP BY kind"
    with opened(unit=None) as table:
        answer = table.sql(f"SELECT kind, y FROM ({sql.replace('SELECT COUNT(*) -', 'SELECT kind, COUNT(*) -')})")
        errors = answer.release(epsilon=0.2).errors["y"]
    # two Laplace variables of scale 10: P(|X + Y| > t) = exp(-t / 10) (1 + t / 20) = 5 % at t = 41.5
    assert errors == pytest.approx([43.5] * 3, rel=0.1)  # limits are widened by their own error


def test_people_pay_once_if_any_of_the_aggregations_is_about_them(tmp_path):
    rows = {"who": list(range(3000)), "kind": ["a", "b", "c"] * 1000, "x": [1.0] * 1000 + [4.0] * 1000 + [7.0] * 1000}
    pq.write_table(pa.table(rows), tmp_path / "visits.parquet")
    (tmp_path / "visits.toml").write_text(CARD)
    sql = "SELECT kind, COUNT(*) - (SELECT COUNT(*) FROM visits WHERE x > 5) AS y FROM visits WHERE x < 3 GROUP BY kind"
    with dp.open(tmp_path / "visits.toml") as table:
        table.sql(sql).release(epsilon=0.6)
        left = [table.sql(f"SELECT COUNT(*) AS n FROM visits WHERE x = {x}").release(0.6) for x in (1, 4, 7)]
    # those with x = 4 were not asked about; the noise of the others exceeds 50 once in 10^13 answers
    assert [round(answer.rows[0][0], -2) for answer in left] == [0, 1000, 0]


def test_limits_that_are_chosen_serve_all_levels():
    with opened(max_rows="auto", max_groups="auto", budget=dp.ApproxDP(100, 0.1), delta=1e-6) as table:
        answer = table.sql("SELECT kind, COUNT(*) AS n FROM data GROUP BY ROLLUP (kind)").release(epsilon=20)
    by_kind = dict(answer.rows)
    assert by_kind["a"] + by_kind["b"] + by_kind["c"] == pytest.approx(by_kind[None])
    assert by_kind[None] == pytest.approx(1200, abs=60)
    assert len(noted(answer, "rows_chosen")) == 1
    assert all(error > 0 for error in answer.parts("n").limits)  # the levels get back what is left out


def test_numbers_that_are_too_large_for_whole_numbers_are_computed_as_doubles():
    with opened(unit=None) as table:
        question = table.sql("SELECT kind, (n + 8000000000) * (n + 8000000000) AS y FROM "
                             "(SELECT kind, COUNT(*) AS n FROM data GROUP BY kind)")  # fmt: skip
        answer = question.release(epsilon=1)
    assert answer.types[1] == "number"
    assert [row[1] for row in answer.rows] == pytest.approx([6.4e19] * 3, rel=1e-5)


def test_a_subquery_that_has_several_rows_after_the_noise_is_no_incident():
    inner = "SELECT kind, COUNT(*) AS n FROM data GROUP BY kind"
    with opened(unit=None) as table:
        answer = table.sql(f"WITH k AS ({inner}) SELECT (SELECT n FROM k WHERE n BETWEEN 200 AND 600) AS y").release(50)
    assert len(answer.rows) == 1


def test_an_explanation_names_every_aggregation_and_its_share():
    with opened() as table:
        text = str(table.sql(SHARE).explain(epsilon=1))
    assert "2 private aggregations share the budget" in text
    assert "(by kind), for ε = 0.5" in text
    assert "total (in all)" in text


def test_the_database_of_the_outer_sql_holds_every_noisy_table_and_nothing_else():
    with opened() as table:
        post = table.sql(SHARE).query.post
    assert post.tables == ("noisy", "noisy_2")
    with IsolatedDatabase(post, {"kind": "text", "n": "integer"}, {"total": "integer"}) as database:
        assert database.run([("a", 3)], [(4,)]).rows == [("a", 3, 0.75, 4)]
