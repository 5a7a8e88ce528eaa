"""Random aggregates of random populations: the ± holds the truth of the raw rows, or the cell says what it leaves out.

Nothing is stated about how many rows people have. Populations are light, heavy-tailed, of two kinds, constant, without
values, or have a few giants that any noise hides.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dither as dp
from support import each, for_each

PEOPLE, QUESTIONS = 1_500, 5
GROUPS = ("a", "b", "c")
SIZES = {
    "light": lambda make: 1 + make.poisson(6, PEOPLE),
    "zipf 2": lambda make: np.minimum(make.zipf(2.0, PEOPLE), 2_000),
    "zipf 3": lambda make: np.minimum(make.zipf(3.0, PEOPLE), 2_000),
    "humps": lambda make: np.where(make.random(PEOPLE) < 0.1, 60, 2) + make.integers(0, 3, PEOPLE),
    "constant": lambda _: np.full(PEOPLE, 5),
    "giants": lambda _: np.r_[np.full(10, 2_000), np.full(PEOPLE - 10, 3)],
}
VALUES = {
    "even": lambda make, size: make.integers(0, 100, size).astype(float),
    "skewed": lambda make, size: np.minimum(make.exponential(9, size), 900),
    "signed": lambda make, size: make.normal(0, 20, size).clip(-90, 90),
    "NULL": lambda _, size: np.full(size, np.nan),
}
ASKED = {
    "COUNT(*)": lambda x: len(x),
    "COUNT(x)": lambda x: int((~np.isnan(x)).sum()),
    "SUM(x)": lambda x: float(np.nansum(x)),
    "AVG(x)": lambda x: float(np.nanmean(x)) if (~np.isnan(x)).any() else math.nan,
}


def asked(seed):
    """Yield, for one random population, the answers of random questions: the truth of one cell, its value, its ±, the
    aggregate, and whether the cell says that people could go undetected; and the population's numbers of rows."""
    make = np.random.default_rng(seed)
    kind = str(make.choice(list(SIZES)))
    sizes = SIZES[kind](make)
    values = VALUES[str(make.choice(list(VALUES), p=(0.35, 0.35, 0.2, 0.1)))](make, int(sizes.sum()))
    group = make.integers(0, 3, len(values))
    rows = pa.table(
        {
            "who": np.repeat(np.arange(len(sizes)), sizes),
            "g": np.array(GROUPS)[group],
            "x": pa.array(values, from_pandas=True),
        }
    )
    with dp.open(
        rows, name="t", unit="who", bounds={"x": (-1_000, 1_000)}, keys={"g": GROUPS},
        budget=dp.ApproxDP(100, 1e-3), delta=1e-6,
    ) as table:  # fmt: skip
        if make.random() < 0.5:
            table.profile(epsilon=1)
        for _ in range(QUESTIONS):
            name, place = str(make.choice(list(ASKED))), int(make.integers(-1, 3))
            sql = f"SELECT {name} AS a FROM t" if place < 0 else f"SELECT g, {name} AS a FROM t GROUP BY g"
            answer = table.sql(sql).release(epsilon=1, max_rows="auto", max_groups="auto", again=True, force=True)
            cell = max(place, 0)
            true = ASKED[name](values if place < 0 else values[group == place])
            yield kind, name, true, answer["a"][cell], answer.errors["a"][cell], "a" in answer.unseen


@pytest.fixture(scope="module")
def cells():
    return [cell for seed in range(24) for cell in asked(seed)]


def few_enough(misses, total, share):
    """Return whether so many misses have a probability above 1e-9 if each has the probability ``share``."""
    return stats.binom.sf(misses - 1, total, share) > 1e-9


def missed(true, value, error):
    if value is None or error is None or math.isnan(true):
        return False
    return abs(value - true) > error


def test_the_truth_is_inside_or_the_cell_says_what_it_leaves_out(cells):
    """Of what the ± is about: tails that fall off as they do where they are seen. One question has one cell here, so
    that answers are independent, given the population."""
    usual = [cell for cell in cells if cell[0] != "giants"]
    misses = sum(missed(*cell[2:5]) for cell in usual)
    assert len(usual) > 60
    assert few_enough(misses, len(usual), 0.05), misses


def test_giants_are_not_in_the_error_and_the_cell_says_so(cells):
    """All counts and sums leave them out, by much more than the ±; from below, what is said holds all the same."""
    giants = [cell for cell in cells if cell[0] == "giants"]
    assert len(giants) >= 10
    low = 0
    for _, name, true, value, error, marked in giants:
        if value is None or error is None:
            continue
        assert marked
        low += name.startswith("COUNT") and value - error > true
    assert few_enough(low, len(giants), 0.025)


@each("kind", ["light", "constant"])
def test_light_tails_stay_useful(cells, kind):
    known = [cell for cell in cells if cell[0] == kind and cell[1] == "COUNT(*)"]
    assert known
    assert all(error < 0.25 * true for _, _, true, _, error, _ in known)


def test_rows_that_are_people_hide_nobody():
    with dp.open(pa.table({"x": np.arange(900) % 7}), name="t", bounds={"x": (0, 50)}, budget=dp.PureDP(9)) as table:
        answer = table.sql("SELECT COUNT(*) AS n, AVG(x) AS m FROM t").release(epsilon=1, max_rows="auto")
    assert answer.unseen == {}
    assert "+" not in answer.text().partition("cost")[0]


NULL_VALUES = {
    "SUM(CASE WHEN x IS NULL THEN 1 ELSE 0 END)": lambda x: float(np.isnan(x).sum()),
    "SUM(COALESCE(x, 30))": lambda x: float(np.nan_to_num(x, nan=30.0).sum()),
    "AVG(COALESCE(x, 30))": lambda x: float(np.nan_to_num(x, nan=30.0).mean()),
    "AVG(CASE WHEN x IS NULL OR x > 5 THEN 1.0 ELSE 0.0 END)": lambda x: float((np.isnan(x) | (x > 5)).mean()),
}


def test_values_of_null_are_values_of_the_profile_too():
    """What an expression is where its column is NULL counts: a profile that leaves it out sees a sum of nothing."""
    pick = np.random.default_rng(5)
    who = np.repeat(np.arange(2000), pick.integers(1, 30, 2000))
    x = np.where(pick.random(who.size) < 0.15, np.nan, pick.gamma(2.0, 3.0, who.size))
    rows = pa.table({"who": who, "x": pa.array(x, from_pandas=True)})
    with dp.open(rows, unit="who", max_rows="auto", bounds={"x": (0, 100)}, budget=dp.PureDP(200)) as table:
        table.profile(epsilon=1)

        def check(value, truth):
            answers = [table.sql(f"SELECT {value} AS a FROM data").release(epsilon=1, again=True) for _ in range(4)]
            covered = [abs(item.rows[0][0] - truth(x)) <= item.errors["a"][0] for item in answers]
            assert sum(covered) >= 3
            assert all(abs(item.rows[0][0] / truth(x) - 1) < 0.4 for item in answers)

        for_each(NULL_VALUES.items(), check)
