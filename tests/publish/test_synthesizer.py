"""Synthetic records: costs, sensitivity of scores, and quality against independent columns.

Comparisons of records with released counts, computed again from the rounds and the records themselves.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import dither as dp
from dither.budget_hooks import observed_by
from dither.publish import Attribute, Domain
from dither.publish.synthesizer import Synthesizer, column_comparisons, comparisons, rho_of
from dither.randomness import SeededSource
from support import refuses

SIZES = (6, 5, 4, 3, 8)
NAMES = "abcde"


def people(rows=20_000, seed=1):
    """A chain of dependent columns."""
    generator = np.random.default_rng(seed)
    columns = [generator.integers(0, SIZES[0], rows)]
    for size in SIZES[1:]:
        copied = columns[-1] * size // SIZES[len(columns) - 1]
        columns.append(np.where(generator.random(rows) < 0.8, copied, generator.integers(0, size, rows)))
    return columns


def table_of(columns, places):
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for i in places:
        codes = codes * SIZES[i] + columns[i]
    return np.bincount(codes, minlength=int(np.prod([SIZES[i] for i in places])))


def counts_of(columns, synthesizer):
    return {levels: table_of(columns, [i for i, level in enumerate(levels) if level]) for levels in synthesizer.tables}


def synthesizer_for(guarantee):
    return Synthesizer(
        Domain([Attribute.flat(name, range(size)) for name, size in zip(NAMES, SIZES, strict=True)]), guarantee
    )


def distance(columns, others):
    pairs = list(itertools.combinations(range(len(SIZES)), 2))
    parts = [table_of(columns, pair) / len(columns[0]) - table_of(others, pair) / len(others[0]) for pair in pairs]
    return float(np.mean([np.abs(part).sum() / 2 for part in parts]))


@pytest.mark.slow
def test_records_are_much_closer_than_independent_columns():
    columns = people()
    synthesizer = synthesizer_for(dp.ApproxDP(1, 1e-9))
    synthesis = synthesizer.release(counts_of(columns, synthesizer))
    made = [np.asarray(synthesis.records.column(name).to_pylist()) for name in NAMES]
    generator = np.random.default_rng(2)
    independent = [generator.permutation(column) for column in columns]
    assert distance(columns, made) < 0.25 * distance(columns, independent)
    assert abs(synthesis.records.num_rows - 20_000) < 1000


class Observer:
    """Keeps the mechanisms that release or select, with their arguments."""

    def __init__(self):
        self.seen = []

    def see(self, what, name, given, compute):
        if (isinstance(what, dp.Gaussian) and name == "release") or (
            isinstance(what, dp.Exponential) and name == "select"
        ):
            self.seen.append((what, given))
        return compute()


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", [dp.ApproxDP(1, 1e-9), dp.ZCDP(0.02)], ids=str)
def test_what_is_drawn_costs_no_more_than_the_guarantee(guarantee):
    """The costs of all mechanisms that were used, as an observer sees them."""
    synthesizer, observer = synthesizer_for(guarantee), Observer()
    with observed_by(observer):
        synthesizer.release(counts_of(people(2000), synthesizer))
    costs = [
        what.zcdp.exact[0] if isinstance(what, dp.Exponential) else what.guarantee.exact[0] for what, _ in observer.seen
    ]
    assert rho_of(guarantee) * Fraction(99, 100) < sum(costs) <= rho_of(guarantee)
    if isinstance(guarantee, dp.ApproxDP):
        assert dp.ZCDP(rho_of(guarantee)).to_approx(1e-9).epsilon <= 1


@pytest.mark.slow
def test_scores_are_whole_and_no_farther_apart_than_the_sensitivity():
    """Scores of the first selection are computed again for the counts without one person, against the same model."""
    synthesizer, observer, columns = synthesizer_for(dp.ZCDP(0.02)), Observer(), people(2000)
    counts = counts_of(columns, synthesizer)
    with observed_by(observer):
        synthesizer.release(counts)
    mechanism, given = next(item for item in observer.seen if isinstance(item[0], dp.Exponential))
    assert mechanism.sensitivity == 256
    assert all(isinstance(score, int) for score in given["scores"])
    generator = np.random.default_rng(4)
    fewer = [column[1:] for column in columns]
    for pair in given["candidates"]:
        modeled = generator.integers(0, 256 * 200, np.prod([SIZES[i] for i in pair]))
        with_person, without = (np.abs(256 * table_of(data, pair) - modeled).sum() for data in (columns, fewer))
        assert abs(with_person - without) <= 256


@pytest.mark.slow
def test_a_target_is_measured_with_every_other_attribute():
    domain = synthesizer_for(dp.ZCDP(0.02)).domain
    synthesizer, columns = Synthesizer(domain, dp.ZCDP(0.02), target="c"), people(2000)
    synthesis = synthesizer.release(counts_of(columns, synthesizer))
    assert [item.table for item in synthesis.rounds[:4]] == [(0, 2), (1, 2), (2, 3), (2, 4)]
    with refuses(dp.InvalidArgument, "target", "one of a, b, c, d, e"):
        Synthesizer(domain, dp.ZCDP(1), target="z")


def test_bins_come_back_as_numbers_inside_them():
    domain = Domain([Attribute.binned("age", [0, 18, 65]), Attribute.binned("share", [0.0, 0.5, 1.25])])
    synthesizer = Synthesizer(domain, dp.ZCDP(1))
    records = synthesizer.release(
        {(1, 0): [300, 700], (0, 1): [500, 500], (1, 1): [[300, 0], [200, 500]]}, rows=1000
    ).records
    ages, shares = records.column("age").to_numpy(), records.column("share").to_numpy()
    assert ages.dtype == np.int64
    assert 0 <= ages.min() <= ages.max() < 65
    assert 0 <= shares.min() <= shares.max() < 1.25
    assert np.mean(ages < 18) == pytest.approx(0.3, abs=0.05)
    assert np.mean((ages < 18) & (shares >= 0.5)) < 0.05


def test_wrong_requests_are_refused():
    with refuses(dp.WrongType, "ZCDP or ApproxDP"):
        synthesizer_for(dp.PureDP(1))
    with refuses(dp.InvalidArgument, "a table of a", "none"):
        synthesizer_for(dp.ZCDP(1)).release({})
    with refuses(dp.InvalidArgument, "attribute i", "131,072 keys"):
        Synthesizer(Domain([Attribute.flat("i", range(200_000))]), dp.ZCDP(1))


@pytest.mark.slow
@pytest.mark.parametrize(("nulls", "share"), [(0, 0.0), (5, 0.0), (3000, 0.3)])
def test_null_comes_back_where_there_is_evidence_of_it(nulls, share):
    """Five are fewer than the noise can show. The noise is seeded, since three deviations do occur by themselves."""
    domain = Domain([Attribute.flat("a", ["x", "y"], null=True), Attribute.flat("b", range(3))])
    counts = np.array([[3000, 2000, 1000], [500, 500, 3000 - nulls], [0, 0, nulls]])
    synthesizer = Synthesizer(domain, dp.ZCDP(0.01))
    tables = {(1, 1): counts, (1, 0): counts.sum(axis=1), (0, 1): counts.sum(axis=0)}
    records = synthesizer.release(tables, source=SeededSource(1)).records
    assert records["a"].null_count / records.num_rows == pytest.approx(share, abs=0.03 if share else 0)


def test_null_stays_where_rules_leave_nothing_else():
    domain = Domain([Attribute.flat("a", ["x", "y"], null=True), Attribute.flat("b", ["p", "q"])])
    synthesizer = Synthesizer(domain, dp.ZCDP(1), constraints=["b = 'q' OR a IS NULL", "b = 'p'"])
    counts = {(1, 0): [500, 500, 0], (0, 1): [500, 500], (1, 1): [[250, 250], [250, 250], [0, 0]]}
    needed = {levels: np.array(counts[levels]) for levels in synthesizer.tables}
    assert synthesizer.release(needed, rows=10).records["a"].null_count == 10


def test_nobody_at_all_gives_few_records_or_none():
    domain = Domain([Attribute.flat("a", ["x", "y"]), Attribute.binned("b", [0, 5, 9], null=True)])
    synthesizer = Synthesizer(domain, dp.ZCDP(1), constraints=["NOT (a = 'x' AND b < 3)"], unit=2.0**-10)
    nobody = {levels: np.zeros(domain.size(levels), dtype=np.int64) for levels in synthesizer.tables}
    assert synthesizer.release(nobody).records.num_rows < 100


@pytest.fixture(scope="module")
def synthesis():
    domain = Domain([Attribute.flat("kind", "abc"), Attribute.binned("age", [0, 10, 30, 60, 100])])
    counts = np.array([[400, 300, 200, 100], [50, 60, 70, 80], [0, 10, 20, 900]])
    tables = {(1, 1): counts, (1, 0): counts.sum(axis=1), (0, 1): counts.sum(axis=0)}
    return Synthesizer(domain, dp.ZCDP(0.05)).release(tables, rows=2000)


def test_distances_are_those_of_the_records_from_the_released_counts(synthesis):
    assert {item.table for item in comparisons(synthesis)} == {(0,), (1,), (0, 1)}
    for item in comparisons(synthesis):
        rounds = [entry for entry in synthesis.rounds if entry.table == item.table]
        weights = np.array([1 / entry.sigma**2 for entry in rounds])
        noisy = sum(weight * entry.values for weight, entry in zip(weights, rounds, strict=True)) / weights.sum()
        np.testing.assert_allclose(item.noisy, noisy)
        assert item.sigma == pytest.approx(weights.sum() ** -0.5)
        counts = np.zeros(noisy.shape)
        np.add.at(counts, tuple(synthesis.codes[place] for place in item.table), synthesis.laws.total / 2000)
        assert item.distance == pytest.approx(np.abs(counts - noisy).sum() / 2 / counts.sum())
        noise = np.random.default_rng(2).normal(0, item.sigma, (2000, noisy.size))
        assert item.expected_distance == pytest.approx(np.abs(noise).sum(axis=1).mean() / 2 / counts.sum(), rel=0.05)


def test_columns_are_compared_with_the_table_that_says_most_about_them(synthesis):
    sizes = synthesis.laws.sizes
    for item in column_comparisons(synthesis):
        (place,) = item.table
        possible = [table for table in comparisons(synthesis) if place in table.table]
        deviations = [table.sigma * np.sqrt(table.noisy.size / sizes[place]) for table in possible]
        assert item.sigma == pytest.approx(min(deviations))
        assert item.noisy.shape == (sizes[place],)
