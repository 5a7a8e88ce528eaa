"""Whole counts: they add up, are never negative, meet public totals, and are closer than clipping and top-down.

Whole numbers with given sums: of families, and of rows and columns at once.

Empirical Bayes: better than clipping where most counts are zero, and no worse where none is.

Whole counts of the smallest table that all public totals are margins of.

Records that give exactly the tables.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dp
from dither.publish import (
    Attribute,
    Domain,
    Estimates,
    MarginalMechanism,
    Residuals,
    TableSpec,
    WholeCounts,
    allocate,
    cost_of,
    public_totals,
    records,
    whole_counts,
)
from dither.publish.integers import Blocks, fill_blocks, fit_to_sums, imposed_counts, round_families, scaled_to, shrink
from dither.publish.residuals import margin, margins
from dither.randomness import SYSTEM
from support_publish import random_domain


def test_rounding_keeps_sums_and_has_the_right_mean():
    generator = np.random.default_rng(6)
    families = generator.integers(1, 9, 400)
    parents = np.repeat(np.arange(400), families)
    sums = generator.integers(0, 30, (400, 2))
    mean = generator.gamma(0.5, 1, (len(parents), 2))
    fitted = fit_to_sums(mean, np.ones_like(mean), sums.astype(float), families)
    starts = np.cumsum(families) - families
    np.testing.assert_allclose(np.add.reduceat(fitted, starts, axis=0), sums, atol=1e-9)
    assert fitted.min() >= 0
    repetitions = 400
    rounded = [round_families(fitted, sums, families, SYSTEM) for _ in range(repetitions)]
    for values in rounded[:5]:
        np.testing.assert_array_equal(np.add.reduceat(values, starts, axis=0), sums)
        assert np.all(np.abs(values - fitted) < 1 + 1e-6)
        assert values.min() >= 0
    deviation = np.abs(np.mean(rounded, axis=0) - fitted)
    # Hoeffding's inequality for means of 400 numbers in an interval of length 1, and about 3,600 of them: 1e-10
    assert deviation.max() < 8 * 0.5 / np.sqrt(repetitions)
    assert deviation.max() > 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=4), st.integers(0, 1 << 30))
def test_every_pair_of_row_and_column_sums_with_one_total_is_met(sizes, seed):
    """Whatever the weights are: zeros, or numbers that have nothing to do with the sums."""
    generator = np.random.default_rng(seed)
    tables = [generator.poisson(generator.choice([0.1, 3.0, 1e6]), size) for size in sizes]
    weights = [generator.gamma(0.2, 1, size) * generator.integers(0, 2) for size in sizes]
    blocks = Blocks(*(np.array(axis) for axis in zip(*sizes, strict=True)))
    filled = fill_blocks(
        blocks,
        np.concatenate([table.sum(axis=1) for table in tables]),
        np.concatenate([table.sum(axis=0) for table in tables]),
        np.concatenate([weight.ravel() for weight in weights]),
        SYSTEM,
    )
    for part, table in zip(np.split(filled, np.cumsum([table.size for table in tables])[:-1]), tables, strict=True):
        result = part.reshape(table.shape)
        assert result.min() >= 0
        np.testing.assert_array_equal(result.sum(axis=0), table.sum(axis=0))
        np.testing.assert_array_equal(result.sum(axis=1), table.sum(axis=1))


def test_cells_are_near_weights_that_have_nearly_the_right_sums():
    generator = np.random.default_rng(1)
    table = generator.poisson(generator.gamma(0.5, 10, (40, 8)))
    near = table + generator.uniform(0, 0.4, table.shape)
    blocks = Blocks(np.array([40]), np.array([8]))
    filled = fill_blocks(blocks, table.sum(axis=1), table.sum(axis=0), near.ravel(), SYSTEM)
    # 40 rows are halved six times, each time with an error of less than one, of which later ones hand on a part; the
    # weights, which are too large by 0.2 on average, add about 1.1 at most: no draw exceeds 7, and 1 in 20 exceeds 2
    assert np.abs(filled.reshape(table.shape) - table).max() <= 7
    assert table.max() > 70


def noisy_counts(counts, deviation, seed=1):
    return counts + deviation * np.random.default_rng(seed).normal(size=len(counts))


def error(estimate, counts):
    return float(np.sqrt(np.mean((estimate - counts) ** 2)))


@pytest.mark.parametrize(("mean", "share"), [(0.05, 0.3), (1.0, 0.6), (10.0, 0.95)])
def test_errors_and_bias_are_smaller_than_with_clipping(mean, share):
    generator = np.random.default_rng(2)
    counts = generator.poisson(mean * generator.gamma(0.3, 1 / 0.3, 20_000)).astype(float)
    noisy = noisy_counts(counts, 5.0)
    estimate, _ = shrink(noisy, np.full(len(counts), 25.0), np.full(len(counts), mean))
    clipped = np.maximum(noisy, 0)
    assert error(estimate, counts) < share * error(clipped, counts)
    assert abs(np.mean(estimate - counts)) < 0.1 * abs(np.mean(clipped - counts)) + 0.02
    assert estimate.min() >= 0


def test_counts_far_from_zero_stay_as_they_are():
    counts = np.linspace(300, 900, 500)
    noisy = noisy_counts(counts, 5.0)
    estimate, variance = shrink(noisy, np.full(500, 25.0), np.full(500, 600.0))
    np.testing.assert_array_equal(estimate, noisy)
    np.testing.assert_array_equal(variance, 25.0)


def test_few_counts_are_only_clipped_and_empty_parents_have_empty_children():
    noisy = np.array([-3.0, 4.0, 5.0])
    estimate, variance = shrink(noisy, np.full(3, 4.0), np.array([2.0, 2.0, 0.0]))
    assert estimate.tolist() == [0.0, 4.0, 0.0]
    assert variance[2] == 0


def test_the_posterior_variance_says_how_large_the_error_is():
    generator = np.random.default_rng(5)
    counts = generator.poisson(generator.gamma(0.5, 6, 50_000)).astype(float)
    estimate, variance = shrink(noisy_counts(counts, 4.0), np.full(50_000, 16.0), np.full(50_000, 3.0))
    assert np.mean((estimate - counts) ** 2) == pytest.approx(variance.mean(), rel=0.05)


DOMAIN = Domain([Attribute.flat(name, range(size)) for name, size in (("i", 3), ("j", 4), ("k", 2))])
COUNTS = np.random.default_rng(2).poisson(np.random.default_rng(3).gamma(0.5, 30, (3, 4, 2)))
FINEST = (1, 1, 1)


def exact_estimates(variance=1e-6):
    """Estimates of everything with next to no noise."""
    residuals = Residuals(DOMAIN)
    parts = {levels: residuals.of(levels, COUNTS, FINEST).astype(float) for levels in margins([FINEST])}
    return Estimates(residuals, [FINEST], parts, dict.fromkeys(parts, variance))


PAIRS = [("i", "j"), ("j", "k"), ("i", "k")]


@pytest.mark.parametrize("public", [[("i",), ("j",), ("k",)], PAIRS[:2], PAIRS, [("i", "j"), ("k",)]])
def test_exact_estimates_are_found_again(public):
    """Joined one by one, or, for all three pairs, by integer programming."""
    totals = public_totals(DOMAIN, {names: margin(DOMAIN, COUNTS, FINEST, DOMAIN.levels(names)) for names in public})
    core, counts = imposed_counts(exact_estimates(), totals, SYSTEM)
    assert core == FINEST
    for levels, numbers in totals.tables.items():
        np.testing.assert_array_equal(margin(DOMAIN, counts, core, levels), numbers)
    assert np.abs(counts - COUNTS).max() <= 2


def test_what_was_not_measured_is_scaled_to_the_margins_that_were():
    """Attributes that are independent given margins: iterative proportional fitting finds them."""
    independent = np.multiply.outer(np.multiply.outer([10.0, 20, 30], [1.0, 2, 3, 4]), [0.5, 1.5])
    residuals = Residuals(DOMAIN)
    single = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    parts = {levels: residuals.of(levels, independent, FINEST) for levels in margins(single)}
    estimates = Estimates(residuals, single, parts, dict.fromkeys(parts, 1e-6))
    fitted = scaled_to(estimates, FINEST, np.full((3, 4, 2), independent.mean()), {})
    np.testing.assert_allclose(fitted, independent, rtol=1e-3)
    for names in itertools.combinations("ijk", 1):
        levels = DOMAIN.levels(names)
        np.testing.assert_allclose(
            margin(DOMAIN, fitted, FINEST, levels), margin(DOMAIN, independent, FINEST, levels), rtol=1e-3
        )


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


@pytest.mark.parametrize("seed", range(6))
def test_records_grouped_by_any_table_are_its_counts(seed):
    domain, finest = random_domain(seed)
    counts = np.random.default_rng(seed).integers(0, 4, domain.shape(finest))
    whole = WholeCounts(domain, finest, counts)
    rows = records(whole)
    assert rows.num_rows == counts.sum()
    for levels in margins([finest]):
        names = domain.names(levels)
        if not names:
            continue
        grouped = rows.group_by(list(names)).aggregate([([], "count_all")]).to_pylist()
        observed = {tuple(row[name] for name in names): row["count_all"] for row in grouped}
        table = whole.table(names)
        keys = [
            attribute.keys[level - 1].to_pylist()
            for attribute, level in zip(domain.attributes, levels, strict=True)
            if level
        ]
        for place in np.ndindex(table.shape):
            key = tuple(names[i] for names, i in zip(keys, place, strict=True))
            assert observed.get(key, 0) == table[place]


def test_ancestors_are_columns_of_the_records():
    domain, finest = next(pair for pair in map(random_domain, range(50)) if max(pair[1]) == 3)
    rows = records(WholeCounts(domain, finest, np.ones(domain.shape(finest), dtype=np.int64)))
    attribute = domain.attributes[finest.index(3)]
    fine, coarse = attribute.level_names[2], attribute.level_names[0]
    places = attribute.codes(rows.column(fine).to_pylist())
    above = [attribute.keys[0][int(i)].as_py() for i in attribute.ancestors(3, 1)[places]]
    assert rows.column(coarse).to_pylist() == above
