"""From the noisy table to the answer: which columns have an error, and which.

Errors of computed columns: noisy tables as they might have been, and rows that are found again in them.

The ± of rows that are chosen by their noisy numbers, and of what noise moves to one side.

Noisy tables below one another, where the SQL on them failed.
"""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.tables.execute.shape_answer import (
    NoisyColumns,
    chooses_by_noise,
    errors_of_rows,
    half_width,
    pushed_to_one_side,
    replicates,
    unprocessed,
)
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
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


def test_tables_are_always_the_same_and_have_the_law_of_the_noise(table):
    question = table.sql("SELECT kind, COUNT(*) AS n FROM data GROUP BY kind")
    plan = plan_question(question.query, table.card, ReleaseOptions(epsilon=0.1)).parts[0]
    (measure,) = plan.measures
    released = [{measure: np.array([100, 200, 300])}]
    tables = replicates([plan], released, [3])
    assert tables is not None
    (first,) = tables
    assert first["n"].shape == (1000, 3)
    again = replicates([plan], released, [3])
    assert again is not None
    assert (first["n"] == again[0]["n"]).all()
    noise = first["n"] - [100, 200, 300]
    assert np.abs(noise.mean(axis=0)).max() < 1
    expected = plan.measures[measure].error(0.95, integer=True)
    for column, released in zip(noise.T.tolist(), (100, 200, 300), strict=True):
        assert half_width(released, [released + item for item in column]) == pytest.approx(expected, abs=2)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.15


def test_groups_that_are_too_many_have_no_tables(table):
    question = table.sql("SELECT kind, COUNT(*) AS n FROM data GROUP BY kind")
    plan = plan_question(question.query, table.card, ReleaseOptions(epsilon=0.1)).parts[0]
    (measure,) = plan.measures
    assert replicates([plan], [{measure: np.zeros(1001)}], [1001]) is None


def test_rows_are_found_by_their_keys_in_any_order():
    samples = [[("b", 20 + k), ("a", 10 - k)] for k in range(-100, 100)]
    errors = errors_of_rows(["key", "n"], [("a", 10), ("b", 20)], [0], samples)
    assert list(errors) == ["n"]
    assert all(90 < error < 100 for error in errors["n"])


def test_rows_that_are_missing_or_twice_have_no_error():
    missing = [[("a", k)] for k in range(200)]
    assert errors_of_rows(["key", "n"], [("a", 1), ("b", 2)], [0], missing)["n"][1] is None
    twice = [[("a", k), ("a", k + 1), ("b", k)] for k in range(200)]
    errors = errors_of_rows(["key", "n"], [("a", 1), ("b", 100)], [0], twice)["n"]
    assert errors[0] is None
    assert errors[1] is not None


def test_what_does_not_vary_has_no_column_of_errors():
    assert errors_of_rows(["key", "place"], [("a", 1)], [0], [[("a", 1)]] * 200) == {}


def test_what_noise_moves_to_one_side_has_no_error():
    """The largest of many noisy numbers is too large, and with noise once more it is larger still."""
    assert half_width(100, [90 + k / 10 for k in range(200)]) is not None
    assert half_width(91, [90 + k / 10 for k in range(200)]) is None


DAYS = [date(2024, 1, 1) + timedelta(i) for i in range(366)]
PEOPLE = 4000


@pytest.fixture(scope="module")
def visits():
    random = np.random.default_rng(5)
    data = pa.table({"who": np.arange(PEOPLE), "day": [DAYS[i] for i in random.integers(0, 366, PEOPLE)]})
    bounds = {"day": (DAYS[0], DAYS[-1])}
    with dp.open(data, unit="who", max_rows=1, bounds=bounds, budget=dp.PureDP(1000), name="visits") as table:
        yield table, dict(zip(*np.unique(data["day"].to_numpy(), return_counts=True), strict=True))


BY_DAY = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"


@pytest.mark.parametrize(
    "sql",
    [f"{BY_DAY} ORDER BY n DESC LIMIT 3", f"SELECT day, n FROM ({BY_DAY}) ORDER BY n DESC LIMIT 3",
     f"{BY_DAY} HAVING COUNT(*) > 18", f"SELECT day, n FROM ({BY_DAY}) WHERE n > 18"],
)  # fmt: skip
def test_most_rows_that_are_chosen_by_noise_are_within_their_error(visits, sql):
    table, truth = visits
    inside = []
    for _ in range(12):
        answer = table.sql(sql).release(epsilon=0.5, again=True)
        assert noted(answer, "chosen_by_noise")
        for row, error in zip(answer.dicts(), answer.error("n"), strict=True):
            inside.append(abs(row["n"] - truth.get(np.datetime64(row["day"]), 0)) <= error)
    assert len(inside) >= 30
    assert np.mean(inside) >= 0.9  # of each group alone, the ± would hold for hardly any


def test_rows_that_are_chosen_by_their_keys_have_the_error_of_all(visits):
    table, _ = visits
    every = table.sql(BY_DAY).release(epsilon=0.5, again=True)
    some = table.sql(f"{BY_DAY} ORDER BY day LIMIT 3").release(epsilon=0.5, again=True)
    assert some.error("n") == every.error("n")[:3]
    assert not noted(some, "chosen_by_noise")


@pytest.mark.parametrize("made", ["MAX(n)", "MIN(n)", "MAX(n) - MIN(n)", "STDDEV(n)", "COUNT(*) FILTER (WHERE n > 12)"])
def test_what_noise_moves_to_one_side_has_no_error_and_says_so(visits, made):
    table, _ = visits
    answer = table.sql(f"SELECT {made} AS m FROM ({BY_DAY})").release(epsilon=0.5, again=True)
    assert not any(answer.errors.get("m", ()))
    assert noted(answer, "one_sided")


@pytest.mark.parametrize("groups", [2, 12, 50, 150, 366])
def test_sums_of_many_groups_have_an_error_that_holds(visits, groups):
    table, _ = visits
    days = ", ".join(f"DATE '{day}'" for day in DAYS[:groups])
    question = table.sql(f"SELECT SUM(n) AS s FROM ({BY_DAY.replace('GROUP', f'WHERE day IN ({days}) GROUP')})")
    [width] = question.release(epsilon=0.5, again=True).error("s")
    noise = np.random.default_rng(4).laplace(scale=2, size=(4000, groups)).sum(axis=1)
    assert np.mean(np.abs(noise) <= width) >= 0.94


def test_what_chooses_and_what_is_one_sided():
    assert chooses_by_noise("SELECT k FROM noisy WHERE n > 3", {"k"})
    assert chooses_by_noise("SELECT k, n FROM noisy QUALIFY ROW_NUMBER() OVER (ORDER BY n) = 1", {"k"})
    assert not chooses_by_noise("SELECT k, n FROM noisy ORDER BY n DESC", {"k"})
    assert pushed_to_one_side("SELECT n / MAX(n) OVER () FROM noisy")
    assert not pushed_to_one_side("SELECT n / SUM(n) OVER () FROM noisy")


def test_one_table_is_shown_as_it_is():
    result = unprocessed([NoisyColumns({"a": "text", "n": "integer"}, [("x", 1)], {"n": [2.0]}, {"n": [0.5]})])
    assert result[:5] == (("a", "n"), ("text", "integer"), (("x", 1),), {"n": (2.0,)}, {"n": (0.5,)})


def test_columns_of_one_name_and_different_types_stay_apart():
    first = NoisyColumns({"n": "integer", "aggregation": "text"}, [(1, "x")], {"n": [2.0]}, {})
    second = NoisyColumns({"n": "number"}, [(0.5,), (0.7,)], {"n": [3.0, None]}, {})
    result = unprocessed([first, second])
    assert result.names == ("aggregation", "n", "aggregation_2", "n_2")
    assert result.types == ("integer", "integer", "text", "number")
    assert result.rows == ((1, 1, "x", None), (2, None, None, 0.5), (2, None, None, 0.7))
    assert result.errors == {"n": (2.0, None, None), "n_2": (None, 3.0, None)}


def test_tables_without_rows_have_columns():
    result = unprocessed([NoisyColumns({"n": "integer"}, [], {"n": []}, {})] * 2)
    assert (result.names, result.rows, result.errors) == (("aggregation", "n"), (), {"n": ()})
