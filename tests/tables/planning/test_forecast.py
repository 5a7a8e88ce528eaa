"""Errors that are forecast before anything is paid are those that answers then have."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.tables.execute.release import _rows_of, planned, run_plan, statement_contexts
from dither.tables.options import ReleaseOptions
from dither.tables.planning.forecast import (
    error_of_answers,
    error_of_quantile,
    of_three_sizes,
    without_noise_of,
)
from dither.tables.planning.table_model import Values
from support import each

GENERATOR = np.random.default_rng(31)
TOWNS = np.array(["a", "b", "c", "d", "e"])[GENERATOR.choice(5, 6000, p=[0.5, 0.25, 0.15, 0.07, 0.03])]
ONE_ROW = {
    "t": (TOWNS, {"age": np.clip(GENERATOR.normal(42, 13, 6000), 0, 120), "cost": GENERATOR.gamma(1.2, 30, 6000)}),
}
SIZES = np.ceil(GENERATOR.lognormal(1.5, 0.8, 3000)).astype(int)
WHO = np.repeat(np.arange(3000), SIZES)
PEOPLE = GENERATOR.normal(0, 4, 3000)
SEVERAL_ROWS = {
    "t": (
        np.array(["a", "b", "c"])[GENERATOR.choice(3, len(WHO), p=[0.6, 0.3, 0.1])],
        {"age": 40 + PEOPLE[WHO] + GENERATOR.normal(0, 8, len(WHO)), "cost": GENERATOR.gamma(1.2, 30, len(WHO))},
    )
}
QUESTIONS = {
    "AVG(age)": np.mean,
    "AVG(cost)": np.mean,
    "SUM(cost)": np.sum,
    "COUNT(*)": lambda values: float(len(values)),
    "STDDEV(age)": lambda values: values.std(ddof=1),
    "MEDIAN(cost)": np.median,
}
PROFILES, ASKS = 4, 40


def ratios(data, who, profiled, epsilon=1.0):
    """Return forecasts in units of the error that 95 % of the answers keep to, for each question and three groups.

    Each error is taken in units of what was forecast with the profile that its answer was asked with.
    """
    town, values = data["t"]
    columns = {"town": town, **values} | ({} if who is None else {"who": who})
    unit = {} if who is None else {"unit": "who", "max_rows": "auto", "max_groups": "auto"}
    keys = sorted(set(town.tolist()))
    bounds = {"age": (-50, 200), "cost": (0, 5000)}
    off, engine_rows = {}, {}
    with dp.open(
        pa.table(columns), name="t", keys={"town": keys}, bounds=bounds, budget=dp.PureDP(1000), **unit
    ) as table:
        run = _rows_of(table.engine)

        def rows(statement):
            if statement.text not in engine_rows:
                engine_rows[statement.text] = run(statement)
            return engine_rows[statement.text]

        for _ in range(PROFILES if profiled else 1):
            if profiled:
                table.profile(epsilon=2, again=True)
            for asked, true in QUESTIONS.items():
                question = table.sql(f"SELECT town, {asked} AS a FROM t GROUP BY town")
                options = ReleaseOptions(epsilon=epsilon)
                plan = planned(question, options)
                forecast = (question.explain(epsilon).typical_error("a"),) * 3
                if profiled:
                    forecast = plan.parts[0].expected["a"].errors
                if forecast[0] is None:
                    continue
                contexts = [replace(item, secret=1) for item in statement_contexts(question, plan)]
                column = re.search(r"age|cost", asked)
                numbers = values["age" if column is None else column.group(0)]
                sizes = np.array([(town == key).sum() for key in keys])
                order = np.argsort(sizes)
                for _ in range(ASKS if profiled else PROFILES * ASKS):
                    answer = run_plan(question, plan, options, contexts, rows).dicts()
                    for size, place in enumerate((order[0], order[(len(order) - 1) // 2], order[-1])):
                        error = abs(answer[place]["a"] - true(numbers[town == keys[place]]))
                        off.setdefault((asked, size), []).append(error / forecast[size])
    return {cell: round(1 / float(np.quantile(errors, 0.95)), 2) for cell, errors in off.items()}


@each(("data", "who"), [(ONE_ROW, None), (SEVERAL_ROWS, WHO)])
def test_forecasts_with_a_profile_are_near_the_errors_of_answers(data, who):
    found = ratios(data, who, profiled=True, epsilon=0.5)
    assert len(found) == 3 * len(QUESTIONS)
    within = [0.7 <= ratio <= 1.4 for ratio in found.values()]
    assert np.mean(within) >= 0.8, sorted(found.values())
    assert 0.4 < min(found.values()) < max(found.values()) < 2.5


def test_forecasts_without_a_profile_are_near_the_errors_of_answers():
    """Of numbers whose noise does not depend on the data; of others there is no forecast."""
    found = ratios(ONE_ROW, None, profiled=False, epsilon=0.1)
    assert {asked for asked, _ in found} == {"SUM(cost)", "COUNT(*)"}
    assert all(0.7 <= ratio <= 1.4 for ratio in found.values()), found


@each(("total", "noise"), [(1.0, 1.0), (1.0, 0.9), (1.0, 0.5), (1.0, 0.1), (2.0, 0.0), (3.0, 4.0)])
def test_the_error_of_answers_is_the_one_that_95_of_100_keep_to(total, noise):
    generator = np.random.default_rng(1)
    same = 0.6745 * np.sqrt(max(total**2 - noise**2, 0))
    drawn = np.abs(same + min(noise, total) * generator.standard_normal(200_000))
    assert error_of_answers(total, noise) == pytest.approx(np.quantile(drawn, 0.95), rel=0.06)


@each(("at", "whole"), [(0.5, False), (0.9, False), (0.5, True)])
def test_the_error_of_a_quantile_follows_from_the_mechanism(at, whole):
    """Beside draws of the exponential mechanism from data that the distribution is of."""
    generator = np.random.default_rng(2)
    points = np.arange(0, 200) / 2 + 0.25
    shares = np.exp(-points / 20)
    shares /= shares.sum()
    values = Values(points, shares, np.zeros(200), cells=(points - 0.25, points + 0.25))
    drawn = generator.choice(points, 4000, p=shares) + generator.uniform(-0.25, 0.25, 4000)
    drawn = np.floor(drawn) if whole else drawn
    if whole:
        values = Values(np.arange(100.0), shares.reshape(100, 2).sum(axis=1), np.zeros(100), step=1.0)
    number = 101 if whole else 2000
    edges = np.linspace(0, 100 if not whole else 101, number + 1)
    below = np.searchsorted(np.sort(drawn), edges, side="left")
    misses = np.maximum(0, np.maximum(below[:-1] - at * 4000, at * 4000 - below[1:]))
    chances = np.exp(-misses * 0.05 / (2 * max(at, 1 - at)))
    middles = edges[:-1] if whole else (edges[1:] + edges[:-1]) / 2
    chosen = generator.choice(middles, 20_000, p=chances / chances.sum())
    real = np.quantile(np.abs(chosen - np.quantile(drawn, at)), 0.95)
    said = error_of_quantile(values, (0.0, 100.0), at, 2 * max(at, 1 - at) / 0.05 / 4000, 0.0, whole)
    assert said == pytest.approx(real, rel=0.4, abs=1.0 if whole else 0.0)


def test_noise_does_not_spread_the_sizes_of_equal_groups():
    noisy = 0.125 + np.random.default_rng(3).normal(0, 0.03, 8)
    assert np.ptp(without_noise_of(noisy, 0.03)) < 0.7 * np.ptp(noisy)
    assert without_noise_of(noisy, 0.03).sum() == pytest.approx(noisy.sum())
    different = np.array([0.6, 0.3, 0.1])
    assert without_noise_of(different, 0.01) == pytest.approx(different, abs=0.005)


def test_a_group_of_typical_size_exists():
    assert of_three_sizes(np.array([0.9, 0.1])) == (0.1, 0.1, 0.9)
    assert of_three_sizes(np.array([0.2, 0.5, 0.3])) == (0.2, 0.3, 0.5)
