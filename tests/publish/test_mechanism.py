"""The measurement: sensitivity by brute force, laws of the noise, costs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dither as dp
from dither.publish import Attribute, Domain, MarginalMechanism, MarginalPlan, Residuals, TableSpec, allocate, cost_of
from dither.publish.mechanism import tables_needed
from dither.publish.residuals import margins
from dither.randomness import SeededSource, discrete_gaussian
from support import FALSE_ALARM, each, refuses
from support_publish import measurement, random_domain

BUDGETS = [dp.ZCDP(0.02), dp.ApproxDP(1, 1e-9)]


def mechanism_for(domain, tables, budget, contribution=1, objective="sum"):
    residuals = Residuals(domain)
    cost = float(cost_of(budget, contribution))
    chosen = allocate(residuals, [TableSpec(levels) for levels in tables], cost, objective=objective)
    return MarginalMechanism(residuals, chosen, budget, contribution)


def exact_scales(mechanism, levels):
    """The scale of each contrast's noise in units of the counts, as it is drawn."""
    scales = np.empty(mechanism.residuals.shape(levels))
    for block, scale in mechanism.scales(levels):
        scales[block] = scale / mechanism.multipliers[levels]
    return scales.ravel()


@pytest.mark.slow
@each("seed", range(8))
@each("budget", BUDGETS)
def test_no_person_is_farther_than_the_squared_distance_that_is_paid_for(seed, budget):
    """Brute force: every cell, and people whose rows lie in several cells with any weights."""
    domain, finest = random_domain(seed, 60)
    mechanism = mechanism_for(domain, margins([finest]), budget, contribution=3)
    unit = dict.fromkeys(margins([finest]), 1.0)
    matrix, _ = measurement(mechanism.residuals, finest, unit)
    scales = np.concatenate([exact_scales(mechanism, levels) for levels in mechanism.rates])
    generator = np.random.default_rng(seed)
    cells = matrix.shape[1]
    people = [3 * np.eye(cells), generator.dirichlet(np.full(cells, 0.3), size=50) * 3]
    people.append(people[1] * generator.choice([-1, 1], size=(50, cells)))
    distances = (np.concatenate(people) @ matrix.T / scales) ** 2
    paid = float(mechanism.squared_distance)
    assert distances.sum(axis=1).max() <= paid * (1 + 1e-9)
    assert distances.sum(axis=1)[:cells].max() >= paid * (1 - 1e-6) or any(
        not residual_has_everyone(mechanism, levels) for levels in mechanism.rates
    )


def residual_has_everyone(mechanism, levels):
    """Whether no place of these levels is an only child."""
    pairs = zip(mechanism.domain.attributes, levels, strict=True)
    return all(attribute.children[level - 1].min() > 1 for attribute, level in pairs if level)


@pytest.mark.parametrize("budget", BUDGETS, ids=["zcdp", "approx"])
def test_the_cost_is_the_budget_rounded_against_us(budget):
    domain, finest = random_domain(5)
    mechanism = mechanism_for(domain, margins([finest]), budget)
    assert mechanism.guarantee <= budget
    assert mechanism.squared_distance <= cost_of(budget)
    assert mechanism.squared_distance >= cost_of(budget) * Fraction(999_999, 1_000_000)
    if isinstance(budget, dp.ApproxDP):
        assert dp.accounting.gaussian_delta(Fraction(1), mechanism.event.ratio) <= 1e-9
    else:
        assert mechanism.event.guarantee <= budget


def test_an_allocation_that_costs_too_much_gets_more_noise():
    domain, finest = random_domain(5)
    residuals = Residuals(domain)
    chosen = allocate(residuals, [TableSpec(finest)], 1.0)
    mechanism = MarginalMechanism(residuals, chosen, dp.ZCDP(0.1))
    assert mechanism.squared_distance <= Fraction(2, 10)


def test_a_contribution_of_three_rows_costs_nine_times_as_much():
    assert cost_of(dp.ZCDP(0.5), 3) == Fraction(1, 9)
    assert cost_of(dp.ApproxDP(1, 1e-9), 3) * 9 == cost_of(dp.ApproxDP(1, 1e-9))


@pytest.mark.parametrize("budget", [dp.ZCDP(0.02), dp.ZCDP(50), dp.ApproxDP(1, 1e-9), dp.ApproxDP(40, 1e-9)], ids=str)
def test_the_noise_has_the_scales_that_are_paid_for(budget):
    """Squares of noise over scale follow the chi-square law; those of a wrong scale do not."""
    leaves = np.arange(3000)
    geography = Attribute.nested("g", ["a", "b"], {"a": leaves // 15, "b": leaves})
    domain = Domain([geography, Attribute.flat("sex", ["f", "m"])])
    mechanism = mechanism_for(domain, margins([(2, 1)]), budget)
    counts = np.random.default_rng(1).integers(0, 50, (3000, 2))
    noisy = mechanism.release({(2, 1): counts})
    for levels, values in noisy.items():
        exact = mechanism.residuals.of(levels, counts, (2, 1))
        squares = (((values - exact).ravel() / exact_scales(mechanism, levels)) ** 2).sum()
        assert FALSE_ALARM < stats.chi2.cdf(squares, values.size) < 1 - FALSE_ALARM
        if values.size > 2000:
            for wrong in (0.6, 1.6):
                assert not FALSE_ALARM < stats.chi2.cdf(squares * wrong, values.size) < 1 - FALSE_ALARM


def test_every_scale_is_at_least_64_steps():
    domain, finest = random_domain(7)
    for budget in (dp.ZCDP(1e-4), dp.ZCDP(100)):
        mechanism = mechanism_for(domain, [finest], budget)
        assert min(scale for levels in mechanism.rates for _, scale in mechanism.scales(levels)) >= 64


def test_the_noise_is_discrete_gaussian_under_zcdp():
    """The released number is the exact one in steps, and draws of the discrete law with the same words."""
    domain = Domain([Attribute.flat("sex", ["f", "m"])])
    mechanism = mechanism_for(domain, [(1,)], dp.ZCDP(0.5))
    noisy = mechanism.release({(1,): np.array([10, 20])}, source=SeededSource(4))
    source = SeededSource(4)
    for levels, exact in (((0,), 30), ((1,), -10)):
        [(_, scale)] = mechanism.scales(levels)
        steps = mechanism.multipliers[levels]
        assert noisy[levels].item() * steps == exact * steps + discrete_gaussian(scale, 1, source)[0]


def test_counts_beyond_64_bits_are_no_error():
    domain = Domain([Attribute.flat("i", range(3))])
    mechanism = mechanism_for(domain, [(1,)], dp.ZCDP(0.5))
    noisy = mechanism.release({(1,): np.full(3, 2**63 - 1)})
    assert all(np.isfinite(part).all() for part in noisy.values())


def test_residuals_come_from_the_smallest_table_that_has_them():
    domain = Domain([Attribute.flat("i", range(3)), Attribute.flat("j", range(4))])
    mechanism = mechanism_for(domain, [(1, 0), (0, 1)], dp.ZCDP(1e4))
    noisy = mechanism.release({(1, 0): np.array([1, 2, 3]), (0, 1): np.array([3, 3, 0, 0])})
    assert noisy[0, 0].item() == pytest.approx(6, abs=1)
    assert tables_needed([(1, 0), (0, 1), (0, 0)]) == [(1, 0), (0, 1)]


def test_wrong_counts_are_refused():
    domain = Domain([Attribute.flat("i", range(3))])
    mechanism = mechanism_for(domain, [(1,)], dp.ZCDP(0.5))
    with refuses(dp.InvalidArgument, "counts of i", "3 whole numbers"):
        mechanism.release({(1,): np.array([1, 2])})
    with refuses(dp.InvalidArgument, "counts of i", "float64"):
        mechanism.release({(1,): np.array([1.0, 2.0, 3.0])})
    with refuses(dp.InvalidArgument, "a table with i"):
        mechanism.release({(0,): np.array([1])})
    with refuses(dp.WrongType, "ZCDP or ApproxDP"):
        cost_of(dp.PureDP(1))


def test_a_release_is_charged_once(tmp_path):
    domain = Domain([Attribute.flat("i", range(3))])
    mechanism = mechanism_for(domain, [(1,)], dp.ZCDP(0.25))
    with dp.ledger.open(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("data", limit=dp.ZCDP(1))
        with ledger.scope("data"):
            mechanism.release({(1,): np.array([1, 2, 3])})
        assert ledger.left("data") == dp.ZCDP(0.75)


@pytest.mark.parametrize("sizes", [(1000, 1000), (1001, 1001), (365, 1001), (100_001, 3)])
def test_large_tables_of_weighted_rows_are_measured(sizes):
    """Rows in units of 2^-14, twenty of a person, as they are counted from tables."""
    domain = Domain([Attribute.flat(name, range(size)) for name, size in zip("ij", sizes, strict=True)])
    chosen = MarginalPlan(domain, [TableSpec((1, 1))], contribution=20 << 14, unit=2.0**-14)
    assert chosen.mechanism(dp.ZCDP(0.1)).row == 1 << 14
