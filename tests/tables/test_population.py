"""Intervals for the population in tables: what they cover, how they are named, and where there are none."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dither as dp
from dither.errors import InvalidArgument
from support import noted, refuses

GROUPS, SIZE = 400, 150
FEWEST = int(stats.binom.ppf(1e-9, GROUPS, 0.94))
LAW = stats.beta(2, 3)
TRUTH = {
    "COUNT(*)": SIZE,
    "SUM(x)": SIZE * LAW.mean(),
    "AVG(x)": LAW.mean(),
    "STDDEV(x)": LAW.std(),
    "MEDIAN(x)": LAW.median(),
}
BOUNDS = {"x": (0.0, 1.0)}


@pytest.fixture(scope="module")
def samples():
    """Every group is a sample of its own, of a number of draws that is random as well; every row is a person."""
    generator = np.random.default_rng(5)
    sizes = generator.poisson(SIZE, GROUPS)
    rows = pa.table({"g": np.repeat(np.arange(GROUPS), sizes), "x": LAW.rvs(sizes.sum(), random_state=generator)})
    keys = {"g": list(range(GROUPS))}
    with dp.open(rows, bounds=BOUNDS, keys=keys, budget=dp.PureDP(1000), name="t") as table:
        yield table


def covered(answer, truth: float) -> int:
    return sum(abs(value - truth) <= error for value, error in zip(answer["a"], answer.error("a"), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("sql", TRUTH)
def test_the_interval_holds_the_value_of_the_population(samples, sql):
    question = samples.sql(f"SELECT g, {sql} AS a FROM t GROUP BY g")
    population = question.release(epsilon=5, interval="population")
    assert covered(population, TRUTH[sql]) >= FEWEST
    noise = question.release(epsilon=5, quantile_interval=True)
    if sql != "MEDIAN(x)":  # whose edges are far apart
        assert covered(noise, TRUTH[sql]) < FEWEST, "the ± of the noise does not include the sampling error"


def test_it_is_named_apart_in_every_output(samples):
    answer = samples.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=1, interval="population")
    text, written = answer.text(), json.loads(answer.to_json())
    assert "± population" in text.splitlines()[0]
    assert "noise and sampling error" in text
    assert written["interval"] == "population"
    assert list(written["rows"][0]) == ["n", "n_population_error"]
    assert "n_population_error" in answer.to_csv()
    assert "n_population_error" in answer.to_arrow().column_names
    assert "± population" in answer._repr_html_()
    page = dp.present.html(answer)
    assert "include noise and sampling" in page
    again = samples.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=1, interval="population")
    assert again.replayed
    assert again == answer
    other = samples.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=1)
    assert not other.replayed
    assert other.interval == "noise"


def people(rows_each: int, total: int = 400) -> pa.Table:
    """People whose rows are all alike, which is the worst case."""
    generator = np.random.default_rng(7)
    own = LAW.rvs(total, random_state=generator)
    return pa.table({"who": np.repeat(np.arange(total), rows_each), "x": np.repeat(own, rows_each)})


def test_the_sampling_error_is_that_of_people_at_its_worst():
    with dp.open(people(9), unit="who", max_rows=9, bounds=BOUNDS, budget=dp.PureDP(4000), name="t") as table:
        answer = table.sql("SELECT AVG(x) AS a FROM t").release(epsilon=2000, interval="population")
    with dp.open(people(1), unit="who", max_rows=1, bounds=BOUNDS, budget=dp.PureDP(4000), name="t") as table:
        single = table.sql("SELECT AVG(x) AS a FROM t").release(epsilon=2000, interval="population")
    expected = 1.96 * LAW.std() / math.sqrt(400)
    assert answer.error("a")[0] == pytest.approx(expected, rel=0.15)
    assert single.error("a")[0] == pytest.approx(expected, rel=0.15)
    assert noted(answer, "population_clusters") == [{"factor": 3}]
    assert not noted(single, "population_clusters")


def test_it_is_the_interval_of_statistics():
    x = LAW.rvs(2000, random_state=np.random.default_rng(3))
    with dp.open(pa.table({"x": x}), bounds=BOUNDS, budget=dp.PureDP(4000), name="t") as table:
        in_table = table.sql("SELECT AVG(x) AS a FROM t").release(epsilon=500, interval="population").error("a")[0]
    assert in_table == pytest.approx(dp.stats.mean(x, (0, 1), 500, interval="population").error(), rel=0.02)


@pytest.mark.parametrize("sql", ["MAX(x)", "CORR(x, x)", "COUNT(DISTINCT x)"])
def test_others_are_refused_before_the_charge(samples, sql):
    left = str(samples.left)
    with refuses(InvalidArgument, "population"):
        samples.sql(f"SELECT {sql} AS a FROM t").release(epsilon=1, interval="population")
    assert str(samples.left) == left


def test_a_computed_column_has_none(samples):
    answer = samples.sql("SELECT COUNT(*) AS n, 2 * COUNT(*) AS twice FROM t").release(1, interval="population")
    assert set(answer.errors) == {"n"}


def test_an_unknown_interval_is_refused(samples):
    with refuses(InvalidArgument, "'noise' or 'population'"):
        samples.sql("SELECT COUNT(*) FROM t").release(1, interval="sampling")


def test_a_mode_with_its_probability_in_every_output():
    data = pa.table({"x": ["a"] * 60 + ["b"] * 40})
    with dp.open(data, keys={"x": ["a", "b"]}, budget=dp.PureDP(100), name="t") as table:
        sure = table.sql("SELECT MODE(x) AS m FROM t").release(9, quantile_interval=True)
        unsure = [
            table.sql("SELECT MODE(x) AS m FROM t").release(0.05, quantile_interval=True, again=True) for _ in range(12)
        ]
        plain = table.sql("SELECT MODE(x) AS m FROM t").release(9)
    assert sure["m"] == ["a"]
    assert sure.probabilities["m"][0] > 0.999
    assert ">0.999" in sure.text()
    assert "probability" in sure.text().splitlines()[0]
    assert json.loads(sure.to_json())["rows"][0]["m_probability"] > 0.999
    assert "probability" in sure._repr_html_()
    assert "how probable" in dp.present.html(sure)
    # at this epsilon noise seldom makes one look sure, and 12 of them never
    assert min(answer.probabilities["m"][0] for answer in unsure) < 0.99
    assert noted(plain, "mode_gap")
    assert plain.probabilities == {}
