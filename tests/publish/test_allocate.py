"""Allocation against numerical optima, and targets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import dither as dp
from dither.publish import Attribute, Domain, Residuals, TableSpec, allocate, table_spec
from dither.publish.residuals import margins
from support import refuses
from support_publish import random_domain


def states():
    return Domain([Attribute.flat(name, range(size)) for name, size in (("state", 51), ("age", 9), ("sex", 2))])


def mean_variance(residuals, table, variances):
    return residuals.mean_coefficients(table, variances) @ np.array([*variances.values()])


@pytest.mark.parametrize("seed", [2, 3, 8])
def test_the_sum_of_variances_is_as_small_as_a_general_optimizer_makes_it(seed):
    domain, finest = random_domain(seed)
    residuals = Residuals(domain)
    tables = [TableSpec(levels, weight=1.0 + i) for i, levels in enumerate(margins([finest]))]
    chosen = allocate(residuals, tables, 2.0)
    assert chosen.cost == pytest.approx(2.0)
    names = [*chosen.variances]
    shares = sum(
        table.weight * domain.size(table.levels) ** 1.2 * residuals.mean_coefficients(table.levels, names)
        for table in tables
    )

    def objective(logarithms):
        rates = 2.0 * np.exp(logarithms) / np.exp(logarithms).sum()
        return np.log(shares @ (1 / rates))

    best = minimize(objective, np.zeros(len(names)), method="BFGS")
    ours = shares @ np.array([*chosen.variances.values()])
    assert np.log(ours) == pytest.approx(best.fun, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3, 8])
def test_the_largest_variance_cannot_be_made_smaller(seed):
    domain, finest = random_domain(seed)
    residuals = Residuals(domain)
    tables = [TableSpec(finest), TableSpec((1, *[0] * (len(finest) - 1)))]
    chosen = allocate(residuals, tables, 1.0, objective="largest")
    alone = {}
    for table in tables:
        only = allocate(residuals, [table], 1.0)
        alone[table.levels] = mean_variance(residuals, table.levels, only.variances)
    names = [*chosen.variances]

    def worst(variances):
        return max(residuals.largest_variance(table, variances)[0] / goal for table, goal in alone.items())

    def objective(logarithms):
        rates = np.exp(logarithms) / np.exp(logarithms).sum()
        return worst(dict(zip(names, 1 / rates, strict=True)))

    start = np.log(1 / np.array([*chosen.variances.values()]))
    best = minimize(objective, start, method="Nelder-Mead", options={"maxiter": 2000})
    assert worst(chosen.variances) <= best.fun * 1.002


def test_cells_stay_close_to_cells_alone_and_margins_are_better_than_their_sums():
    residuals = Residuals(states())
    tables = margins([(1, 1, 1)])
    chosen = allocate(residuals, [TableSpec(levels) for levels in tables], 1.0).variances
    for table in tables:
        ratio = np.sqrt(mean_variance(residuals, table, chosen) * states().size(table) / 918)
        assert ratio < (1.15 if table == (1, 1, 1) else 1.0)


def test_targets_are_met_and_the_rest_is_spent():
    domain = states()
    residuals = Residuals(domain)
    tables = [table_spec(domain, ["state", "age", "sex"]), table_spec(domain, ["state"], error=30)]
    chosen = allocate(residuals, tables, 0.01)
    assert chosen.cost == pytest.approx(0.01)
    free = allocate(residuals, [tables[0], TableSpec((1, 0, 0))], 0.01)
    half_width = 1.96 * np.sqrt(mean_variance(residuals, (1, 0, 0), chosen.variances))
    assert half_width < 30.001 < 1.96 * np.sqrt(mean_variance(residuals, (1, 0, 0), free.variances))


def test_a_target_beyond_the_budget_is_refused_with_what_would_be_met():
    domain = states()
    tables = [table_spec(domain, ["state"], error="1%", people=51_000), table_spec(domain, ["sex"], error=500)]
    with refuses(dp.NotPrivate, "state ± ", "instead of ± 10", "sex ± ", "times the rho") as refusal:
        allocate(Residuals(domain), tables, 0.01)
    times = float(str(refusal.value).split("or spend ")[1].split(" times")[0])
    allocate(Residuals(domain), tables, 0.01 * times)


def test_residuals_of_public_tables_cost_nothing():
    residuals = Residuals(states())
    chosen = allocate(residuals, [TableSpec((1, 1, 0))], 1.0, public=[(1, 0, 0)])
    assert {*chosen.variances} == {(0, 1, 0), (1, 1, 0)}


def test_wrong_requests_are_refused():
    domain = states()
    with refuses(dp.InvalidArgument, "about how many people"):
        table_spec(domain, ["state"], error="2%")
    with refuses(dp.InvalidArgument, 'a share such as "2%"'):
        table_spec(domain, ["state"], error="two")
    with refuses(dp.InvalidArgument, "objective"):
        allocate(Residuals(domain), [TableSpec((1, 0, 0))], 1.0, objective="smallest")
    with refuses(dp.InvalidArgument, "tables", "at least one"):
        allocate(Residuals(domain), [], 1.0)


@pytest.mark.parametrize("objective", ["sum", "largest"])
@pytest.mark.parametrize("variance", [None, 4.0])
def test_a_table_that_public_totals_determine_needs_nothing(objective, variance):
    residuals = Residuals(states())
    tables = [TableSpec((0, 0, 1), variance=variance), TableSpec((0, 1, 1), variance=variance and 1e6)]
    chosen = allocate(residuals, tables, 1.0, objective=objective, public=[(0, 0, 1)])
    assert {*chosen.variances} == {(0, 1, 0), (0, 1, 1)}
    assert chosen.cost == pytest.approx(1.0)
