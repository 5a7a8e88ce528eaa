"""Whole counts: they add up, are never negative, meet public totals, and are closer than clipping and top-down."""

from __future__ import annotations

import numpy as np
import pytest

import dither as dp
from dither.publish import (
    Attribute,
    Domain,
    Estimates,
    MarginalMechanism,
    Residuals,
    TableSpec,
    allocate,
    cost_of,
    public_totals,
    whole_counts,
)  # fmt: skip
from dither.publish.residuals import margin, margins
from support_publish import random_domain


def estimates_of(domain, counts, finest, tables, budget, totals=None):
    residuals = Residuals(domain)
    public = [] if totals is None else [*totals.tables]
    chosen = allocate(residuals, [TableSpec(levels) for levels in tables], float(cost_of(budget)), public=public)
    mechanism = MarginalMechanism(residuals, chosen, budget)
    parts = mechanism.release({finest: counts})
    if totals is not None:
        parts |= totals.parts(residuals)
    return Estimates(residuals, tables, parts, mechanism.variances)


@pytest.mark.parametrize("seed", range(12))
def test_counts_are_whole_and_not_negative_and_every_table_is_a_margin(seed):
    domain, finest = random_domain(seed)
    counts = np.random.default_rng(seed).poisson(2, domain.shape(finest))
    estimates = estimates_of(domain, counts, finest, margins([finest]), dp.ZCDP(0.1))
    whole = whole_counts(estimates)
    assert whole.counts.dtype == np.int64
    assert whole.counts.shape == domain.shape(finest)
    assert whole.counts.min() >= 0
    assert whole.counts.sum() == max(round(float(estimates.table([]).value)), 0)
    for levels in margins([finest]):
        table = whole.table(domain.names(levels))
        np.testing.assert_array_equal(table.ravel(), margin(domain, whole.counts, finest, levels).ravel())


def zero_heavy(seed=3):
    """A tree of 512 leaves by 6 cells, most of them empty."""
    generator = np.random.default_rng(seed)
    leaves = np.arange(512)
    geography = Attribute.nested("g", ["a", "b", "c"], {"a": leaves // 64, "b": leaves // 8, "c": leaves})
    domain = Domain([geography, Attribute.flat("sex", ["f", "m"]), Attribute.flat("age", range(3))])
    shares = np.repeat(generator.gamma(0.4, 2.5, 64), 8) * generator.gamma(0.4, 2.5, 512)
    counts = generator.poisson(shares[:, np.newaxis, np.newaxis] * 2 * np.ones((1, 2, 3)))
    tables = [levels for levels in margins([(3, 1, 1)]) if levels[1] == levels[2]]
    return domain, counts, tables


def top_down(estimates, finest):
    """Plain top-down: each family is projected to the nearest non-negative numbers with the parent's sum."""
    residuals, columns = estimates.residuals, estimates.domain.size((0, *finest[1:]))

    def project(values, sums):
        ordered = -np.sort(-values, axis=0)
        excess = np.cumsum(ordered, axis=0) - sums
        ranks = np.arange(1, len(values) + 1)[:, np.newaxis]
        count = np.maximum((ordered - excess / ranks > 0).sum(axis=0), 1)
        return np.maximum(values - excess[count - 1, np.arange(values.shape[1])] / count, 0)

    root = estimates.values((0, *finest[1:])).reshape(columns, 1)
    counts = project(root, np.maximum(root.sum(axis=0), 0)).T
    for level in range(1, finest[0] + 1):
        contrasts = residuals.attributes[0].contrasts[level - 1]
        noisy = residuals.table((level, *finest[1:]), estimates.parts.get, keep={0: level})
        values = contrasts.expand(counts, noisy.reshape(len(noisy), -1))
        families = np.split(values, np.cumsum(contrasts.children)[:-1])
        counts = np.concatenate([project(family, sums) for family, sums in zip(families, counts, strict=True)])
    return counts.reshape(estimates.domain.shape(finest))


@pytest.mark.slow
def test_bias_and_errors_are_smaller_than_with_clipping_and_with_plain_top_down():
    domain, counts, tables = zero_heavy()
    finest = (3, 1, 1)
    assert (counts == 0).mean() > 0.6
    errors = {name: [] for name in ("unbiased", "clipped", "top_down", "whole")}
    for _ in range(12):
        estimates = estimates_of(domain, counts, finest, tables, dp.ApproxDP(1, 1e-9))
        values = estimates.values(finest)
        errors["unbiased"].append(values - counts)
        errors["clipped"].append(np.maximum(np.rint(values), 0) - counts)
        errors["top_down"].append(top_down(estimates, finest) - counts)
        errors["whole"].append(whole_counts(estimates).counts - counts)
    size = {name: float(np.sqrt(np.mean(np.square(parts)))) for name, parts in errors.items()}
    total = {name: abs(float(np.mean([part.sum() for part in parts]))) for name, parts in errors.items()}
    dense = counts > np.quantile(counts, 0.97)
    moved = {name: float(np.mean([part[dense].mean() for part in parts])) for name, parts in errors.items()}
    assert size["whole"] < size["top_down"] < size["unbiased"]
    assert total["whole"] < 0.2 * total["clipped"]
    assert abs(moved["whole"]) < abs(moved["top_down"])


@pytest.mark.parametrize("level", ["a", "b"])
def test_public_totals_are_met_exactly(level):
    domain, counts, tables = zero_heavy(4)
    depth = {"a": 1, "b": 2}[level]
    exact = margin(domain, counts, (3, 1, 1), (depth, 0, 0)).ravel()
    totals = public_totals(domain, {level: exact})
    estimates = estimates_of(domain, counts, (3, 1, 1), tables, dp.ZCDP(0.05), totals)
    np.testing.assert_allclose(estimates.table([level]).value, exact, atol=1e-6)
    assert not estimates.table([level]).standard_error.any()
    whole = whole_counts(estimates, totals=totals)
    np.testing.assert_array_equal(whole.table([level]), exact)
    assert whole.counts.min() >= 0


def test_a_plan_of_margins_alone_has_whole_counts_too():
    domain = Domain([Attribute.flat("i", range(4)), Attribute.flat("j", range(5))])
    counts = np.random.default_rng(8).integers(20, 60, (4, 5))
    estimates = estimates_of(domain, counts, (1, 1), [(1, 0), (0, 1)], dp.ZCDP(1.0))
    whole = whole_counts(estimates)
    for names in (["i"], ["j"]):
        assert np.abs(whole.table(names) - estimates.table(names).value).max() < 12


def test_every_table_is_at_most_as_far_off_as_its_estimates_with_pairs_only():
    """The three pairs of three attributes, most cells of which are empty; no table of all three was measured."""
    generator = np.random.default_rng(9)
    domain = Domain([Attribute.flat(name, range(size)) for name, size in (("i", 12), ("j", 10), ("k", 8))])
    shares = np.multiply.outer(generator.gamma(0.4, 1, (12, 10)), generator.gamma(0.4, 1, 8))
    counts = generator.poisson(shares / shares.sum() * 2_000)
    pairs = [(1, 1, 0), (0, 1, 1), (1, 0, 1)]
    errors = {kind: {levels: [] for levels in pairs} for kind in ("unbiased", "whole", "clipped")}
    for _ in range(8):
        estimates = estimates_of(domain, counts, (1, 1, 1), pairs, dp.ApproxDP(1, 1e-9))
        whole = whole_counts(estimates)
        for levels in pairs:
            exact = margin(domain, counts, (1, 1, 1), levels)
            values = estimates.values(levels)
            errors["unbiased"][levels].append(values - exact)
            errors["clipped"][levels].append(np.maximum(values, 0) - exact)
            errors["whole"][levels].append(margin(domain, whole.counts, (1, 1, 1), levels) - exact)
    for levels in pairs:
        size = {kind: float(np.sqrt(np.mean(np.square(errors[kind][levels])))) for kind in errors}
        bias = {kind: abs(float(np.mean([part.sum() for part in errors[kind][levels]]))) for kind in errors}
        assert size["whole"] < 0.9 * size["unbiased"]
        assert bias["whole"] < 0.5 * bias["clipped"]


def test_the_same_noisy_numbers_are_rounded_alike_and_others_differently():
    domain, counts, tables = zero_heavy(5)
    estimates = estimates_of(domain, counts, (3, 1, 1), tables, dp.ZCDP(0.05))
    first, second = whole_counts(estimates).counts, whole_counts(estimates).counts
    np.testing.assert_array_equal(first, second)
    shifted = {levels: part + (0.25 if levels == (0, 0, 0) else 0.0) for levels, part in estimates.parts.items()}
    moved = Estimates(estimates.residuals, tables, shifted, estimates.variances)
    assert np.any(whole_counts(moved).counts != first)
