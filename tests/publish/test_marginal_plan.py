"""Plans: expected errors, one release, everything from it."""

from __future__ import annotations

import numpy as np
import pytest

import dither as dp
from dither.publish import Attribute, Domain, MarginalPlan, TableSpec, public_totals, table_spec
from support import refuses

LOOKUP = {"state": ["A"] * 3 + ["B"] * 2, "county": list("abcde")}
DOMAIN = Domain([Attribute.nested("g", ["state", "county"], LOOKUP), Attribute.binned("age", [0, 18, 65, 120])])
COUNTS = {(2, 1): np.arange(15).reshape(5, 3) * 30}
BUDGET = dp.ApproxDP(1, 1e-9)


def plan(**options):
    return MarginalPlan(DOMAIN, [table_spec(DOMAIN, ["county", "age"]), table_spec(DOMAIN, ["state"])], **options)


def test_expected_errors_are_those_of_the_release():
    expected = plan().expected_errors(BUDGET)
    released = plan().release(COUNTS, BUDGET)
    for names, error in expected.items():
        table = released.table(*names)
        widths = (table.column("upper").to_numpy() - table.column("lower").to_numpy()) / 2
        assert np.sqrt(np.mean(widths**2)) == pytest.approx(error)


def test_tables_hold_keys_values_intervals_and_whole_counts():
    released = plan().release(COUNTS, BUDGET)
    table = released.table("county", "age")
    assert table.column_names == ["county", "age", "value", "lower", "upper", "integer"]
    assert table.column("age").to_pylist()[:3] == ["[0, 18)", "[18, 65)", "[65, 120)"]
    assert released.table("county").column("integer").to_numpy().sum() == released.records().num_rows
    assert released.guarantee == BUDGET
    assert released.sum_of(["state"], [1, 0]).standard_error > 0


def test_weighted_counts_are_in_their_units():
    """Counts in units of 2^-10, of which one person adds at most 2^10: the same errors as whole rows."""
    fine = plan(contribution=1 << 10, unit=2.0**-10)
    errors, plain = fine.expected_errors(BUDGET), plan().expected_errors(BUDGET)
    assert errors == pytest.approx(plain)
    released = fine.release({(2, 1): COUNTS[2, 1] << 10}, BUDGET)
    exact = COUNTS[2, 1].ravel()
    assert np.abs(released.table("county", "age").column("value").to_numpy() - exact).max() < 100
    assert np.abs(released.table("county", "age").column("integer").to_numpy() - exact).max() < 100


def test_public_totals_are_numbers_of_the_plan():
    totals = public_totals(DOMAIN, {"state": [1260, 1890]})
    released = plan(totals=totals).release(COUNTS, BUDGET)
    state = released.table("state")
    assert state.column("integer").to_pylist() == [1260, 1890]
    assert state.column("lower").to_pylist() == pytest.approx([1260, 1890])


def test_a_table_that_is_too_large_is_refused_before_anything_is_charged():
    wide = Domain([Attribute.flat(name, range(1000)) for name in "ijk"])
    with refuses(dp.InvalidArgument, "table i × j × k"):
        MarginalPlan(wide, [TableSpec((1, 1, 1))])


def test_tables_that_no_table_can_hold_together_have_estimates_without_whole_counts():
    wide = Domain([Attribute.flat(name, range(1000)) for name in "ijk"])
    separate = MarginalPlan(wide, [table_spec(wide, [name]) for name in "ijk"])
    assert not separate.has_whole_counts
    counts = {levels: np.full(1000, 5) for levels in separate.needed}
    released = separate.release(counts, BUDGET)
    assert released.table("i").column_names == ["i", "value", "lower", "upper"]
    with refuses(dp.InvalidArgument, "table i × j × k", "synthetic records"):
        released.records()


def test_a_plan_of_public_numbers_alone_is_refused():
    totals = public_totals(DOMAIN, {"state": [1260, 1890]})
    with refuses(dp.InvalidArgument, "a table that the public totals do not determine"):
        MarginalPlan(DOMAIN, [table_spec(DOMAIN, ["state"])], totals=totals).expected_errors(BUDGET)


def test_the_needed_counts_are_those_of_the_finest_tables():
    assert plan().needed == [(2, 1)]


def audited(contribution):
    """The whole measurement as one function of counts."""
    mechanism = plan(contribution=contribution).mechanism(dp.ApproxDP(1, 1e-6))
    return lambda counts: np.concatenate([part.ravel() for part in mechanism.release({(2, 1): counts}).values()])


@pytest.mark.slow
def test_an_audit_with_a_person_of_twenty_rows_refutes_only_the_wrong_contribution():
    counts = COUNTS[2, 1] + 20
    without = counts - 20 * (np.arange(15).reshape(5, 3) == 7)
    options = {"trials": 400, "claim": dp.ApproxDP(1, 1e-6), "confidence": 1 - 1e-9, "processes": 1}
    assert not dp.audit.measure(audited(20), counts, without, **options).refuted
    assert dp.audit.measure(audited(1), counts, without, **options).refuted
