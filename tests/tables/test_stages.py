"""Questions that compare rows with a private number: it is asked first, and all stages share the budget."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import dither as dp
from support import for_each, noted, refuses
from tables.visits import spent

ROWS = pa.table(
    {
        "who": [i % 50 for i in range(500)],
        "amount": [float((i * 7) % 50) + 0.5 for i in range(500)],
        "region": ["abc"[i % 3] for i in range(500)],
    }
)
LARGE = 400.0
"""An epsilon at which noise moves neither the number nor a count by 1."""


@pytest.fixture
def visits():
    known = {"bounds": {"amount": (0, 60)}, "keys": {"region": ["a", "b", "c"]}}
    with dp.open(
        ROWS, name="visits", unit="who", max_rows=10, max_groups=3, budget=dp.ApproxDP(4000, 0.1), **known
    ) as table:
        yield table


def by_duckdb(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as database:
        database.register("visits", ROWS)
        return database.sql(sql).fetchall()


STAGED = [
    "SELECT COUNT(*) AS n FROM visits WHERE amount > (SELECT AVG(amount) FROM visits)",
    "SELECT COUNT(*) AS n FROM visits WHERE amount > 1.3 * (SELECT AVG(amount) FROM visits WHERE region = 'a')",
    "SELECT region, COUNT(*) AS n FROM visits WHERE amount < (SELECT AVG(amount) FROM visits) "
    "GROUP BY region ORDER BY 1",
    "SELECT SUM(CASE WHEN amount > (SELECT AVG(amount) FROM visits) THEN 1 ELSE 0 END) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE amount > (SELECT AVG(amount) - 10 FROM visits) "
    "AND amount < (SELECT AVG(amount) + 10 FROM visits)",
    "WITH v AS (SELECT * FROM visits WHERE region <> 'c') "
    "SELECT COUNT(*) AS n FROM v WHERE amount > (SELECT AVG(amount) FROM visits)",
]


def test_the_answer_is_that_of_rows_compared_with_the_number(visits):
    def check(sql):
        answer = visits.sql(sql).release(epsilon=LARGE)
        for row, true in zip(answer.rows, by_duckdb(sql), strict=True):
            assert row == pytest.approx(true, abs=3)  # the rows nearest to the noisy mean are 12 of 500 a unit
        (values,) = noted(answer, "compared_with")
        assert len(values["numbers"]) == sql.count("(SELECT AVG")

    for_each(STAGED, check)


def test_stages_share_the_budget_and_replay(visits):
    question = visits.sql(STAGED[4])
    plan = question.explain(epsilon=3)
    assert plan.cost == dp.PureDP(3)
    assert [values["stages"] for values in noted(plan, "in_stages")] == [3]
    assert len(plan.lines) == 3
    answer = question.release(epsilon=3)
    assert answer.cost == plan.cost
    assert not answer.replayed
    after = spent(visits)
    assert visits.accounts.remaining(None).table == dp.ApproxDP(3997, 0.1)
    again = question.release(epsilon=3)
    assert again.replayed
    assert again.rows == answer.rows
    assert spent(visits) == after


def test_a_number_asked_before_is_free(visits):
    visits.sql(STAGED[0]).release(epsilon=2)
    visits.sql(STAGED[3]).release(epsilon=2)  # compares with the number that the first one paid for
    assert visits.accounts.remaining(None).table == dp.ApproxDP(3997, 0.1)


def test_what_the_budget_does_not_suffice_for_is_refused_whole():
    with dp.open(
        ROWS, name="visits", unit="who", max_rows=10, bounds={"amount": (0, 60)}, budget=dp.PureDP(1)
    ) as table:
        with refuses(dp.BudgetExceeded):
            table.sql(STAGED[0]).release(epsilon=1.5)
        assert table.accounts.remaining(None).table == dp.PureDP(1)
        with refuses(dp.InvalidArgument, "error", "without a private subquery"):
            table.sql(STAGED[0]).release(error=5)
        table.sql(STAGED[0]).release(epsilon=1, force=True)


def test_other_subqueries_of_rows_are_refused(visits):
    for sql in (
        "SELECT COUNT(*) FROM visits WHERE region = (SELECT MODE(region) FROM visits)",
        "SELECT COUNT(*) FROM visits WHERE amount > (SELECT amount FROM visits LIMIT 1)",
        "SELECT COUNT(*) FROM visits v WHERE amount > (SELECT AVG(amount) FROM visits w WHERE w.region = v.region)",
        "SELECT COUNT(*) FROM visits WHERE amount > (SELECT region, AVG(amount) FROM visits GROUP BY region)",
    ):
        with refuses(dp.DitherError):
            visits.sql(sql).release(epsilon=1)


def test_a_last_stage_that_costs_something_else_is_refused_and_says_what_is_charged():
    """By the number of the subquery the keys of the last stage may cease to be public, which costs delta."""
    rows = pa.table({"who": [i % 300 for i in range(3000)], "k": [i % 9 for i in range(3000)]})
    sql = "SELECT k, COUNT(*) AS n FROM data WHERE k BETWEEN 0 AND (SELECT COUNT(*) * 1000000 FROM data) GROUP BY k"
    for budget, delta in ((dp.ApproxDP(10, 1e-3), 1e-6), (dp.PureDP(10), None)):
        with dp.open(rows, unit="who", max_rows=10, bounds={"k": (0, 2**40)}, budget=budget) as table:
            plan = table.sql(sql).explain(epsilon=1, delta=delta)
            before, answer, refused = table.accounts.remaining(None).table, None, ""
            try:
                answer = table.sql(sql).release(epsilon=1, delta=delta, force=True)
            except dp.InvalidArgument as error:
                refused = str(error)
            spent = before.exact[0] - table.accounts.remaining(None).table.exact[0]
            if answer is None:
                assert "is charged for the subquery" in refused
                assert spent == plan.cost.exact[0] / 2
            else:
                assert answer.cost == plan.cost
                assert spent == plan.cost.exact[0]
