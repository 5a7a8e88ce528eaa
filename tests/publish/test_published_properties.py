"""Properties of everything that is published, over random small domains, plans and public totals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dp
from dither.publish import Attribute, Domain, MarginalPlan, TableSpec, public_totals, whole_counts
from dither.publish.domain import finest
from dither.publish.residuals import margin, margins
from dither.randomness import SeededSource


@st.composite
def attributes(draw, name):
    """Flat ones, bins, or levels inside one another with families of one or more; with or without keys for NULL and
    for other values."""
    null, other = draw(st.booleans()), draw(st.sampled_from([None, "other"]))
    kind = draw(st.sampled_from(["flat", "flat", "binned", "nested"]))
    if kind == "flat":
        return Attribute.flat(name, [f"{name}{i}" for i in range(draw(st.integers(1, 4)))], null=null, other=other)
    if kind == "binned":
        return Attribute.binned(name, range(draw(st.integers(2, 4))), null=null, other=other)
    families = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    parents = [f"{name}{i}" for i, size in enumerate(families) for _ in range(size)]
    leaves = [f"{name}leaf{i}" for i in range(len(parents))]
    names = [f"{name}_above", f"{name}_below"]
    return Attribute.nested(name, names, dict(zip(names, [parents, leaves], strict=True)), null=null, other=other)


@st.composite
def plans(draw):
    """A plan, the counts of all combinations of the finest keys, their levels, and a budget."""
    domain = Domain([draw(attributes(name)) for name in "xyz"[: draw(st.integers(1, 3))]])
    everything = tuple(len(attribute.level_names) for attribute in domain.attributes)
    tables = st.tuples(*(st.integers(0, depth) for depth in everything))
    wanted = draw(st.lists(tables, min_size=1, max_size=4, unique=True))
    size = domain.size(everything)
    cells = st.lists(st.sampled_from([0, 0, 0, 1, 2, 30, 1000]), min_size=size, max_size=size)
    counts = np.array(draw(cells), dtype=np.int64).reshape(domain.shape(everything))
    public = draw(st.lists(tables, max_size=3, unique=True))
    totals = public_totals(
        domain, {domain.names(levels): margin(domain, counts, everything, levels) for levels in public}
    )
    budget = draw(st.sampled_from([dp.ZCDP(0.001), dp.ZCDP(0.5), dp.ApproxDP(8, 1e-9)]))
    plan = MarginalPlan(domain, [TableSpec(levels) for levels in wanted], totals=totals)
    return plan, counts, everything, budget


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(plans(), st.integers(0, 1 << 30))
def test_everything_published_agrees(case, seed):
    plan, counts, everything, budget = case
    domain, totals = plan.domain, plan.totals
    wanted = [table.levels for table in plan.tables]
    known = {*margins(totals.tables)} if totals.tables else set()
    if all(levels in known or not plan.residuals.size(levels) for levels in margins(wanted)):
        return  # nothing to measure
    released = plan.release({everything: counts}, budget, source=SeededSource(seed))
    held = finest(wanted)
    whole = released.counts

    # whole, non-negative, one object of which every table is a margin
    assert whole.counts.dtype == np.int64
    assert whole.levels == held
    assert whole.counts.shape == domain.shape(held)
    assert whole.counts.min() >= 0
    for levels in margins([held]):
        table = whole.table(domain.names(levels))
        np.testing.assert_array_equal(table.ravel(), _grouped(domain, whole.counts, held, levels))

    # estimates agree with one another, and with public totals
    for fine, coarse in itertools.product(wanted, repeat=2):
        if all(a >= b for a, b in zip(fine, coarse, strict=True)):
            summed = margin(domain, released.estimates.values(fine), fine, coarse)
            np.testing.assert_allclose(summed, released.estimates.values(coarse), atol=1e-6)
    for levels, numbers in totals.tables.items():
        estimate = released.estimates.table(domain.names(levels))
        np.testing.assert_allclose(estimate.value.ravel(), numbers.ravel(), atol=1e-6)
        assert not estimate.standard_error.any()
        common = tuple(map(min, held, levels))
        exact = margin(domain, counts, everything, common)
        np.testing.assert_array_equal(whole.table(domain.names(common)).ravel(), exact.ravel())

    # records give exactly the whole counts
    rows = released.records()
    assert rows.num_rows == whole.counts.sum()
    np.testing.assert_array_equal(_counted(domain, rows, held), whole.counts.ravel())


@settings(max_examples=15, deadline=None)
@given(plans(), st.integers(0, 1 << 30))
def test_the_same_noisy_numbers_give_the_same_whole_counts(case, seed):
    plan, counts, everything, budget = case
    known = {*margins(plan.totals.tables)} if plan.totals.tables else set()
    wanted = [table.levels for table in plan.tables]
    if all(levels in known or not plan.residuals.size(levels) for levels in margins(wanted)):
        return
    estimates = plan.release({everything: counts}, budget, source=SeededSource(seed)).estimates
    first, second = (whole_counts(estimates, totals=plan.totals).counts for _ in range(2))
    np.testing.assert_array_equal(first, second)


def _grouped(domain, counts, table, levels):
    """Sums of cells by brute force: one cell at a time."""
    result = np.zeros(domain.shape(levels), dtype=np.int64)
    above = [
        attribute.ancestors(fine, coarse)
        for attribute, fine, coarse in zip(domain.attributes, table, levels, strict=True)
    ]
    for place in np.ndindex(counts.shape):
        result[tuple(places[i] for places, i in zip(above, place, strict=True))] += counts[place]
    return result.ravel()


def _counted(domain, rows, levels):
    """How many records have each combination of keys, None among them."""
    keys = [
        attribute.keys[level - 1].to_pylist()
        for attribute, level in zip(domain.attributes, levels, strict=True)
        if level
    ]
    places = {key: i for i, key in enumerate(itertools.product(*keys))}
    result = np.zeros(math.prod(map(len, keys)), dtype=np.int64)
    if not keys:
        return np.array([rows.num_rows])
    for row in zip(*(rows.column(name).to_pylist() for name in domain.names(levels)), strict=True):
        result[places[row]] += 1
    return result
