"""Public totals: agreement, whole numbers, what they determine, and that whole counts and estimates meet them.

Several public tables at once: the order in which they can be joined, and tables that have them all as margins.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import dither as dp
from dither.publish import Attribute, Domain, Estimates, MarginalPlan, Residuals, public_totals, table_spec
from dither.publish.residuals import margin, margins
from dither.publish.totals import common_table, containing_cells, joining_order
from support import FALSE_ALARM, each, refuses

DOMAIN = Domain(
    [
        Attribute.nested("g", ["state", "county"], {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}),
        Attribute.flat("sex", ["f", "m"]),
        Attribute.flat("age", range(4)),
    ]
)
COUNTS = np.random.default_rng(3).poisson(np.random.default_rng(4).gamma(0.5, 20, (3, 2, 4)))
FINEST = (2, 1, 1)
BUDGET = dp.ApproxDP(1, 1e-9)


def of(*names, counts=COUNTS):
    """The exact numbers of a table, as a plan might have them."""
    return margin(DOMAIN, counts, FINEST, DOMAIN.levels(names)).ravel().tolist()


def imposed(*tables, counts=COUNTS):
    return public_totals(DOMAIN, {table: of(*table, counts=counts) for table in tables})


def test_totals_that_contradict_one_another_are_refused_by_name():
    agreeing = {"state": [30, 12], ("county",): [10, 20, 12], (): 42}
    assert len(public_totals(DOMAIN, agreeing).tables) == 3
    with refuses(dp.InvalidArgument, "public totals that agree", "state and county, which differ in state"):
        public_totals(DOMAIN, {**agreeing, "state": [29, 13]})
    with refuses(dp.InvalidArgument, "public totals that agree", "the total"):
        public_totals(DOMAIN, {**agreeing, (): 43})
    with refuses(dp.InvalidArgument, "state and sex, which differ in the total"):
        public_totals(DOMAIN, {**agreeing, "sex": [20, 21]})
    with refuses(dp.InvalidArgument, "state × sex and sex × age, which differ in sex"):
        public_totals(DOMAIN, {("state", "sex"): [1, 2, 3, 4], ("sex", "age"): [2, 1, 1, 1, 0, 2, 1, 2]})


def test_totals_are_whole_numbers_one_for_each_place():
    for wrong in ([1], [1, -2], [1.5, 2], [float("nan"), 1], [[1], [2, 3]], ["1", "2"]):
        with refuses(dp.InvalidArgument, "totals of state", "2 whole number(s)"):
            public_totals(DOMAIN, {"state": wrong})
    with refuses(dp.InvalidArgument, "totals of sex × age", "8 whole number(s)"):
        public_totals(DOMAIN, {("sex", "age"): np.ones((4, 2), dtype=int)})
    by_array = public_totals(DOMAIN, {("sex", "age"): np.arange(8).reshape(2, 4)})
    by_list = public_totals(DOMAIN, {("sex", "age"): range(8)})
    np.testing.assert_array_equal(by_array.tables[0, 1, 1], by_list.tables[0, 1, 1])


def test_residuals_of_totals_are_exact():
    residuals = Residuals(DOMAIN)
    parts = imposed(("state",), ("sex", "age")).parts(residuals)
    assert parts.keys() == {*margins([(1, 0, 0), (0, 1, 1)])}
    for names in (("state",), ("sex", "age"), ("age",)):
        levels = DOMAIN.levels(names)
        np.testing.assert_allclose(residuals.table(levels, parts.get).ravel(), of(*names))
    assert public_totals(DOMAIN, None).tables == {}


PUBLIC = [
    [("state",), ("sex", "age")],
    [("county",), ("state", "sex")],
    [("county", "sex"), ("sex", "age"), ()],
    [("state", "age"), ("county",), ("sex",)],
    [("state", "sex"), ("sex", "age"), ("state", "age")],
    [("county", "sex"), ("sex", "age"), ("state", "age")],
]
WANTED = [
    [("county", "sex", "age"), ("state",)],
    [("county", "sex"), ("sex", "age"), ("state", "age")],
    [("state", "sex")],
]


@each(("public", "wanted"), [*itertools.product(PUBLIC, WANTED)])
def test_estimates_whole_counts_and_records_meet_all_totals(public, wanted):
    totals = imposed(*public)
    plan = MarginalPlan(DOMAIN, [table_spec(DOMAIN, names) for names in wanted], totals=totals)
    if {*margins([DOMAIN.levels(names) for names in wanted])} <= {*margins(totals.tables)}:
        with refuses(dp.InvalidArgument, "a table that the public totals do not determine"):
            plan.mechanism(BUDGET)
        return
    released = plan.release({FINEST: COUNTS}, BUDGET)
    assert not {*plan.mechanism(BUDGET).variances} & {*margins(totals.tables)}
    held = tuple(map(max, *map(DOMAIN.levels, [*wanted, ()])))
    rows = released.records().to_pandas()
    assert released.counts.counts.min() >= 0
    for names in public:
        estimate = released.estimates.table(names)
        np.testing.assert_allclose(estimate.value.ravel(), of(*names), atol=1e-6)
        assert not estimate.standard_error.any()
        common = DOMAIN.names(tuple(map(min, held, DOMAIN.levels(names))))
        np.testing.assert_array_equal(released.counts.table(common).ravel(), of(*common))
        if common:
            grouped = rows.groupby(list(common), observed=False).size()
            assert sorted(grouped[grouped > 0]) == sorted(count for count in of(*common) if count)


@pytest.mark.slow
def test_intervals_of_what_totals_do_not_determine_stay_exact():
    """Two public tables, and one cell of each wanted table in turn. Intervals of 40 % of the width cover less."""
    repetitions = 150
    wanted = [("county", "sex", "age"), ("state", "sex"), ("county", "age")]
    totals = imposed(("state",), ("sex", "age"))
    plan = MarginalPlan(DOMAIN, [table_spec(DOMAIN, names) for names in wanted], totals=totals)
    mechanism, public = plan.mechanism(BUDGET), totals.parts(plan.residuals)
    tables = [table.levels for table in plan.tables]
    hits = {names: [0, 0] for names in wanted}
    for i in range(repetitions):
        noisy = mechanism.release({FINEST: COUNTS})
        estimates = Estimates(plan.residuals, tables, {**noisy, **public}, mechanism.variances)
        for names in wanted:
            table, exact = estimates.table(names), of(*names)
            cell = i % len(exact)
            distance = abs(table.value.ravel()[cell] - exact[cell]) / table.standard_error.ravel()[cell]
            hits[names][0] += distance <= 1.96
            hits[names][1] += distance <= 0.4 * 1.96
    for right, narrow in hits.values():
        assert stats.binomtest(right, repetitions, 0.95).pvalue > FALSE_ALARM
        assert stats.binomtest(narrow, repetitions, 0.95).pvalue < FALSE_ALARM


def test_totals_make_the_rest_better():
    wanted = [table_spec(DOMAIN, ["county", "sex", "age"]), table_spec(DOMAIN, ["county", "sex"])]
    plain = MarginalPlan(DOMAIN, wanted).expected_errors(BUDGET)
    helped = MarginalPlan(DOMAIN, wanted, totals=imposed(("state",), ("sex", "age"))).expected_errors(BUDGET)
    assert all(helped[names] < plain[names] for names in plain)


def three_pairs(numbers):
    domain = Domain([Attribute.flat(name, range(2)) for name in "ijk"])
    names = [("i", "j"), ("j", "k"), ("i", "k")]
    return public_totals(domain, dict(zip(names, numbers, strict=True)))


def test_totals_that_agree_in_pairs_but_have_no_common_table_are_refused():
    """i = j and j = k, but i is not k."""
    same, different = [1, 0, 0, 1], [0, 1, 1, 0]
    with refuses(dp.InvalidArgument, "whole, non-negative counts can have together", "i × j, j × k and i × k"):
        three_pairs([same, same, different])
    assert three_pairs([same, same, same]).example.tolist() == [[[1, 0], [0, 0]], [[0, 0], [0, 1]]]


def test_too_many_combinations_of_tables_that_cannot_be_joined_are_refused():
    domain = Domain([Attribute.flat(name, range(40)) for name in "ijk"])
    pair = np.ones((40, 40), dtype=int)
    with refuses(dp.InvalidArgument, "at most 20,000 combinations", "64,000"):
        public_totals(domain, dict.fromkeys([("i", "j"), ("j", "k"), ("i", "k")], pair))


@pytest.mark.parametrize(
    ("tables", "joinable"),
    [
        ([(1, 1, 0), (0, 1, 1)], True),
        ([(1, 1, 0), (0, 1, 1), (1, 0, 1)], False),
        ([(1, 1, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1)], True),
        ([(2, 0), (1, 1)], True),
        ([(1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1), (1, 0, 0, 1)], False),
        ([(1, 1, 0, 0), (0, 0, 1, 1)], True),
        ([(2, 1, 0), (1, 0, 1), (0, 1, 1)], False),
    ],
)
def test_the_order_of_joining_has_the_running_intersection(tables, joinable):
    order = joining_order(tables)
    assert (order is not None) == joinable
    for i, table in enumerate((order or [])[1:], start=1):
        before = tuple(map(max, *order[:i])) if i > 1 else order[0]
        common = tuple(map(min, table, before))
        assert any(all(map(int.__le__, common, other)) for other in order[:i])


def test_integer_programming_agrees_with_a_search_of_all_tables():
    """All 0/1 tables of 2 × 2 × 2 cells: margins of one of them are met, and those that none has are refused."""
    domain = Domain([Attribute.flat(name, range(2)) for name in "ijk"])
    levels = [(1, 1, 0), (0, 1, 1), (1, 0, 1)]
    cells = [np.array(bits).reshape(2, 2, 2) for bits in itertools.product((0, 1), repeat=8)]
    for counts in cells[::17]:
        tables = {table: margin(domain, counts, (1, 1, 1), table) for table in levels}
        result = common_table(domain, tables)
        for table, numbers in tables.items():
            np.testing.assert_array_equal(margin(domain, result, (1, 1, 1), table), numbers)
        assert result.min() >= 0


def test_cells_belong_to_the_cells_of_margins():
    places = {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}
    domain = Domain([Attribute.nested("g", ["state", "county"], places), Attribute.flat("sex", ["f", "m"])])
    assert containing_cells(domain, (2, 1), (1, 1)).tolist() == [0, 1, 0, 1, 2, 3]
    assert containing_cells(domain, (2, 1), (1, 0)).tolist() == [0, 0, 0, 0, 1, 1]
