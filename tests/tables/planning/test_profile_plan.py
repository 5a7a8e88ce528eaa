"""The plan of a profile: the shares of its parts are the budget, and bins follow from the card alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import dither as dp
from dither.accounting import gaussian_ratio
from dither.tables.card.model import Card
from dither.tables.card.profile import NoisyHistogram
from dither.tables.planning.automatic import EDGES
from dither.tables.planning.profile_plan import (
    MOST_BINS,
    Part,
    ProfilePlan,
    choose_classes,
    coarse_edges,
    date_edges,
    number_edges,
    plan_profile,
)
from support import each, for_each
from tables.visits import PROFILED as COLUMNS


def test_the_shares_of_all_parts_are_the_whole_budget():
    made = Card("visits", "", COLUMNS, "who", budget=dp.PureDP(1))

    def check(plan: ProfilePlan) -> None:
        after = plan.after_first_look({"visits"})
        assert sum(plan.shares.values()) == sum(after.shares.values()) == 1
        first = [part for part in plan.parts if part.kind in ("people", "total")]
        assert all(after.shares[part] == plan.shares[part] for part in first)
        assert not any(part.kind == "by_rows" for part in after.parts)
        sensitivity = 1 << 20
        mechanisms = [plan.noise(part, sensitivity) for part in plan.parts]
        if plan.normal:
            total = sum(Fraction(sensitivity) ** 2 / Fraction(item.scale) ** 2 for item in mechanisms)
            allowed = plan.guarantee.exact
            assert total <= (2 * allowed[0] if len(allowed) == 1 else 1 / gaussian_ratio(*allowed) ** 2)
        else:
            assert sum(Fraction(item.epsilon) for item in mechanisms) <= plan.guarantee.exact[0]
            assert all(item.sensitivity == sensitivity for item in mechanisms)

    approximate = replace(made, budget=dp.ApproxDP(1, 1e-4), delta=1e-6)
    for_each(
        [plan_profile(made, 1), plan_profile(made, 0.3, columns=["age"]), plan_profile(replace(made, unit=None), 2),
         plan_profile(approximate, 1), plan_profile(made, rho=0.1)],
        check,
    )  # fmt: skip
    assert not plan_profile(made, 1).normal
    assert plan_profile(approximate, 1).normal


def test_the_better_noise_is_chosen_and_a_delta_is_paid_only_where_it_is():
    made = Card("visits", "", COLUMNS, "who", budget=dp.ApproxDP(100, 1e-3), delta=1e-9)
    few = plan_profile(made, 1, columns=["region"])
    assert (few.normal, few.guarantee) == (False, dp.PureDP(1))
    many = plan_profile(replace(made, columns={f"x{i}": COLUMNS["amount"] for i in range(40)} | COLUMNS), 1)
    assert (many.normal, many.guarantee) == (True, dp.ApproxDP(1, 1e-9))
    laplace = replace(many, normal=False, guarantee=dp.PureDP(1))
    assert many.deviation("values") < laplace.deviation("values")


def test_edges_are_round_increasing_and_few():
    cases = [
        ((0, 120), True), ((-100, 2000), False), ((0, 0.5), False), ((1900, 2100), True), ((1, 1e6), False),
        (None, True), (None, False), ((-1e150, 1e150), False), ((1e-200, 1e100), False), ((5, 5), True),
        ((5.0, 5.0), False), ((-50, -3), True), ((-(2**62), 2**62), True), ((0, 64), True), ((0, 62), True),
        ((1e15, 1e15 + 100), False),
    ]  # fmt: skip

    def check(bounds, whole):
        edges = number_edges(bounds, whole)
        assert list(edges) == sorted(set(edges))
        assert 1 <= len(edges) - 1 <= MOST_BINS
        if bounds is not None and bounds[0] < bounds[1]:
            assert edges[0] == bounds[0]
            assert edges[-1] == bounds[1] + whole
        assert all(isinstance(edge, int if whole else float) for edge in edges)

    for_each(cases, check)
    assert number_edges((0, 62), True) == tuple(range(64))
    smallest = number_edges((0, 5e-324), False)  # of which no part is a number
    assert list(smallest) == sorted({*smallest})
    assert smallest[0] == 0 < 5e-324 < smallest[-1]


@each("period", [(date(2024, 1, 1), date(2024, 1, 1)), (date(2013, 1, 1), date(2013, 12, 31)),
                 (date(1, 1, 1), date(9999, 12, 31)), None, (date(2000, 5, 5), date(2030, 1, 1))])  # fmt: skip
def test_edges_of_dates(period):
    edges = date_edges(period, "date")
    assert list(edges) == sorted(set(edges))
    assert 1 <= len(edges) - 1 <= MOST_BINS
    assert period is None or edges[0] == period[0]
    assert date_edges(period, "timestamp") == tuple(datetime(day.year, day.month, day.day) for day in edges)


def test_the_last_day_of_the_calendar_has_a_bin():
    assert date_edges((date.max, date.max), "date") == (date(9999, 12, 30), date.max)


def test_classes_have_a_good_part_of_people_or_rows():
    few = NoisyHistogram(EDGES, (900.0, *(0.0,) * (len(EDGES) - 1)), scale=1.0)
    assert choose_classes(few) == (1,)
    nothing = NoisyHistogram(EDGES, tuple(3.0 * (-1) ** i for i in range(len(EDGES))), scale=2.0)
    assert choose_classes(nothing) == (EDGES[-1],)
    spread = NoisyHistogram(EDGES, tuple(100.0 if edge <= 128 else 0.0 for edge in EDGES), scale=1.0)
    classes = choose_classes(spread)
    assert 3 <= len(classes) <= 4
    assert classes[-1] == 128


def test_coarse_edges_are_among_the_fine_ones():
    fine = NoisyHistogram(tuple(range(31)), tuple(100.0 * (5 <= i < 25) for i in range(30)), scale=1.0)
    chosen = coarse_edges(fine)
    assert set(chosen) <= set(fine.edges)
    assert (chosen[0], chosen[-1]) == (0, 30)
    assert 10 <= len(chosen) - 1 <= 16
    assert coarse_edges(NoisyHistogram((0, 1, 2), (3.0, -3.0), scale=4.0)) == (0, 2)


def test_parts_are_named_by_table_and_column():
    plan = plan_profile(Card("visits", "", COLUMNS, "who", budget=dp.PureDP(1)), 1, without=["amount"])
    parts = list(plan.parts)
    assert parts[:2] == [Part("visits", "", "people"), Part("visits", "", "total")]
    assert Part("visits", "town", "private_keys") in parts
    assert not any(part.column in ("amount", "who") for part in parts)
    assert plan.people_seen > plan.deviation("values") > plan.deviation("people") > 0
