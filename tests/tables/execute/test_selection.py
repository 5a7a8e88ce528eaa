"""The ± of rows that are chosen by their noisy numbers, and of what noise moves to one side."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.tables.execute.selection import chooses_by_noise, pushed_to_one_side
from support import noted

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
