"""Aggregations that are bounded together, and levels that agree: against NumPy's least squares, and by simulation."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.accounting import gaussian_ratio
from dither.errors import InvalidArgument
from dither.guarantees import ApproxDP, PureDP
from dither.mechanisms import Gaussian, Laplace
from dither.present.notes import kinds_of
from dither.tables.card.model import Card, ColumnCard
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import bounded_together, plan_question
from dither.tables.planning.estimate import least_squares, variances_after
from dither.tables.sql.parse import parse
from support import refuses

CARD = Card(
    "visits",
    "visits.parquet",
    {
        "who": ColumnCard("integer"),
        "region": ColumnCard("text", keys=("n", "s", "e")),
        "kind": ColumnCard("text", keys=("a", "b", None)),
        "town": ColumnCard("text"),
        "x": ColumnCard("number", (0, 10)),
    },
    unit="who",
    max_groups=4,
    max_rows=5,
    delta=1e-6,
    budget=ApproxDP(1000, 0.1),
)
ROLLUP = "SELECT region, kind, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY ROLLUP (region, kind)"
SHARE = "SELECT region, COUNT(*) / (SELECT COUNT(*) FROM visits) AS share FROM visits GROUP BY region"


def plan_of(sql: str, **options: object) -> object:
    return plan_question(parse(sql, CARD), CARD, ReleaseOptions(**{"epsilon": 1, **options}))


def matrix(level: tuple[int, ...], sizes: list[int]) -> np.ndarray:
    """Which cells each group of a level adds up."""
    cells = list(itertools.product(*map(range, sizes)))
    groups = list(itertools.product(*(range(sizes[column]) for column in level)))
    result = np.zeros((len(groups), len(cells)))
    for place, cell in enumerate(cells):
        result[groups.index(tuple(cell[column] for column in level)), place] = 1
    return result


@pytest.mark.parametrize("seed", range(12))
def test_the_closed_form_is_the_least_squares_solution_and_its_covariance(seed):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 5, size=random.integers(1, 4)).tolist()
    every = [level for size in range(len(sizes) + 1) for level in itertools.combinations(range(len(sizes)), size)]
    chosen = random.choice(len(every), random.integers(1, len(every) + 1), replace=False)
    levels = [every[place] for place in chosen]
    variances = random.uniform(0.1, 10, size=len(levels)).tolist()
    matrices = [matrix(level, sizes) for level in levels]
    values = [random.normal(size=len(item)) for item in matrices]
    weighted = np.vstack([item / math.sqrt(v) for item, v in zip(matrices, variances, strict=True)])
    right = np.concatenate([item / math.sqrt(v) for item, v in zip(values, variances, strict=True)])
    cells = np.linalg.lstsq(weighted, right, rcond=None)[0]
    covariance = np.linalg.pinv(weighted.T @ weighted)
    result = least_squares(levels, sizes, variances, values)
    after = variances_after(levels, sizes, variances)
    for item, moved, variance in zip(matrices, result, after, strict=True):
        np.testing.assert_allclose(moved, item @ cells, atol=1e-9)
        np.testing.assert_allclose(np.diag(item @ covariance @ item.T), variance, rtol=1e-9)


def test_levels_that_agree_already_are_not_moved_and_tables_before_the_groups_are_kept():
    sizes, levels = [2, 3], [(0, 1), (0,), ()]
    cells = np.arange(12.0).reshape(2, 6)
    values = [cells, cells.reshape(2, 2, 3).sum(axis=2), cells.sum(axis=1, keepdims=True)]
    for moved, before in zip(least_squares(levels, sizes, [1.0, 2.0, 3.0], values), values, strict=True):
        np.testing.assert_allclose(moved, before, atol=1e-12)


@pytest.mark.parametrize(("factor", "fits"), [(1.0, True), (0.8, False), (1.3, False)])
def test_the_stated_errors_cover_95_to_97_percent(factor, fits):
    """20,000 tables of Laplace noise. A share has a standard error of at most 0.16 %, and the margin is six of them."""
    planned = plan_of(ROLLUP, noise="laplace")
    plans = planned.parts
    (levels, sizes) = ([plan.shared_bounds.level.columns for plan in plans], plans[0].shared_bounds.level.sizes)
    measure = plans[0].measures_of["s"][0]
    scales = [plan.measures[measure].scale for plan in plans]
    random = np.random.default_rng(5)
    sizes_of = [math.prod(sizes[column] for column in level) for level in levels]
    noise = [random.laplace(0, scale, (20_000, size)) for scale, size in zip(scales, sizes_of, strict=True)]
    moved = least_squares(levels, sizes, [scale**2 for scale in scales], noise)
    for plan, table in zip(plans, moved, strict=True):
        error = plan.measures[measure].error(0.95, integer=True) * plan.reduced[measure] * factor
        coverage = (np.abs(table[:, 0]) <= error).mean()
        assert (0.94 <= coverage <= 0.976) == fits


def test_every_level_is_shown_with_the_error_that_least_squares_leaves():
    planned = plan_of(ROLLUP, noise="laplace")
    measure = planned.parts[0].measures_of["n"][0]
    factors = [plan.reduced[measure] for plan in planned.parts]
    after = variances_after([(0, 1), (0,), ()], [3, 3], [1.0] * 3)
    assert factors == pytest.approx(np.sqrt(after).tolist())
    assert all(factor < 0.95 for factor in factors)


def test_levels_share_the_budget_and_the_limit():
    planned = plan_of(ROLLUP)
    assert planned.cost == PureDP(1)
    assert [len(plan.query.groups) for plan in planned.parts] == [2, 1, 0]
    for plan in planned.parts:
        assert (plan.max_groups, plan.max_rows, plan.limits.norm) == (4, 5, 1)
        assert float(plan.guarantee.exact[0]) == pytest.approx(1 / 3)


def test_numbers_of_people_have_the_groups_of_their_level_and_do_not_add_up():
    planned = plan_of("SELECT region, kind, COUNT(DISTINCT who) AS p FROM visits GROUP BY ROLLUP (region, kind)")
    assert [plan.limits.of_people.groups for plan in planned.parts] == [4, 3, 1]
    assert not any(plan.reduced for plan in planned.parts)


def test_rows_of_a_level_have_public_keys_in_every_column():
    question = parse(ROLLUP, CARD)
    conditions = [query.where for query, _ in bounded_together(question.aggregations, CARD)]
    assert conditions[0] is None
    assert [condition.op for condition in conditions[1:]] == ["or", "and"]  # NULL is a key of kind


def test_levels_with_private_keys_are_answered_each_on_its_own():
    planned = plan_of("SELECT region, town, COUNT(*) AS n FROM visits GROUP BY ROLLUP (region, town)")
    assert [plan.selection is not None for plan in planned.parts] == [True, False, False]
    assert not any(plan.reduced for plan in planned.parts)
    assert planned.cost.exact[1] == planned.parts[0].guarantee.exact[1]


def test_a_ratio_of_two_aggregations_is_of_rows_with_the_same_weights():
    planned = plan_of(SHARE)
    assert [plan.max_groups * plan.max_rows for plan in planned.parts] == [15, 15]
    assert {plan.limits.norm for plan in planned.parts} == {1}


def test_normal_noise_of_several_aggregations_is_one_vector():
    """All of it together is what one vector of normal noise may be for this epsilon and delta."""
    columns = ", ".join(f"SUM(x + {i}) AS s{i}" for i in range(12))
    planned = plan_of(f"SELECT region, {columns} FROM visits GROUP BY ROLLUP (region)")
    loss = 0.0
    for plan in planned.parts:
        vectors = {measure.measurement: (measure, noise) for measure, noise in plan.measures.items()}
        for measure, noise in vectors.values():
            assert isinstance(noise, Gaussian)
            loss += float(measure.sensitivity(plan.limits)) ** 2 / noise.scale**2
    assert planned.cost == ApproxDP(1, 1e-6)
    assert loss == pytest.approx(1 / float(gaussian_ratio(Fraction(1), Fraction(1, 10**6))) ** 2, rel=1e-6)


def test_laplace_noise_is_used_where_it_is_smaller():
    assert all(isinstance(noise, Laplace) for plan in plan_of(SHARE).parts for noise in plan.measures.values())


def test_limits_are_chosen_once_for_aggregations_of_the_same_rows():
    planned = plan_of(SHARE, max_rows="auto", max_groups="auto")
    first, second = (plan.automatic for plan in planned.parts)
    assert (float(first["max_rows"]), float(second["max_rows"])) == (pytest.approx(0.1), 0)
    assert planned.cost.exact[0] == 1
    other = plan_of(SHARE.replace("FROM visits)", "FROM visits WHERE x > 5)"), max_rows="auto")
    assert [float(plan.automatic["max_rows"]) for plan in other.parts] == pytest.approx([0.05, 0.05])


def test_an_error_holds_for_every_aggregation():
    planned = plan_of(ROLLUP.replace(", SUM(x) AS s", ""), epsilon=None, error=50)
    errors = [
        plan.measures[plan.measures_of["n"][0]].error(0.95, integer=True)
        * plan.reduced[plan.measures_of["n"][0]]
        / plan.measures_of["n"][0].unit(plan.limits)
        for plan in planned.parts
    ]
    assert max(errors) == pytest.approx(50, rel=0.01)


@pytest.mark.parametrize(
    ("question", "options", "fragments"),
    [
        (SHARE, {"other": True}, ("keys are not public", "leave other out")),
        (SHARE, {"epsilon": None, "error": 5, "max_rows": "auto"}, ("stated bounds", "epsilon instead")),
    ],
)
def test_options_that_do_not_fit_an_aggregation_are_refused(question, options, fragments):
    with refuses(InvalidArgument, *fragments):
        plan_of(question, **options)


@pytest.mark.parametrize("asked", ["COUNT(*) AS n, SUM(v) AS s", "COUNT(*) AS n", "COUNT(*) AS n, COUNT(v) AS m"])
def test_groups_add_up_to_the_groups_above_them(asked):
    rows = pa.table({"a": ["x", "y", "z", None] * 30, "b": [True, False] * 60, "v": [float(i % 7) for i in range(120)]})
    with dp.open(rows, keys={"a": ["x", "y"]}, bounds={"v": (0, 7)}, budget=dp.PureDP(10)) as table:
        answer = table.sql(f"SELECT a, b, {asked} FROM data GROUP BY CUBE (a, b)").release(epsilon=1)
    groups = {row[:2]: np.array(row[2:], dtype=float) for row in answer.rows}
    rounding = 1.5  # three numbers are whole, each of them by half at most
    for a in ("x", "y", None):
        np.testing.assert_allclose(groups[a, True] + groups[a, False], groups[a, None], atol=rounding)
    for b in (True, False, None):
        np.testing.assert_allclose(groups["x", b] + groups["y", b], groups[None, b], atol=rounding)
    assert all(error is not None for errors in answer.errors.values() for error in errors)
    assert "levels" in kinds_of(answer.notes)
    assert all(isinstance(value, int) for row in answer.rows for value in (row[2], *row[3:] * ("COUNT(v)" in asked)))


def test_sums_of_levels_add_up_to_the_sums_above_them():
    rows = pa.table({"a": ["x", "y", "z", None] * 30, "v": [float(i % 7) for i in range(120)]})
    with dp.open(rows, keys={"a": ["x", "y"]}, bounds={"v": (0, 7)}, budget=dp.PureDP(10)) as table:
        answer = table.sql("SELECT a, SUM(v) AS s FROM data GROUP BY ROLLUP (a)").release(epsilon=1)
    sums = dict(answer.rows)
    assert sums["x"] + sums["y"] == pytest.approx(sums[None])
