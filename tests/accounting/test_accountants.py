"""What every accountant must do with every event."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import composed, delta_of, discrete_laplace, gaussian_delta, real, response

import dither as dp
from dither import ZCDP, ApproxDP, DitherError, PureDP
from dither.accounting import (
    ACCOUNTANTS,
    Accountant,
    Approximate,
    BoundedRange,
    Concentrated,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    Parallel,
    PoissonSampled,
    PostProcessed,
    Pure,
    ResponseReport,
    Sequential,
    advanced,
    basic,
    best_of,
    pld,
    renyi,
    to_dp_event,
    zcdp,
)
from support import each, label, refuses

pytestmark = pytest.mark.slow

DELTAS = [1e-2, 1e-6, 1e-12]
LEAVES: list[Event] = [
    LaplaceNoise(2),
    DiscreteLaplaceNoise(4, 3),
    GaussianNoise(3),
    BoundedRange(0.5),
    ResponseReport(0.5, 5),
    Pure(0.5),
    Approximate(0.5, 1e-13),
    Concentrated(0.05),
    PoissonSampled(GaussianNoise(1), 0.1),
    PoissonSampled(LaplaceNoise(1), 0.1),
    PoissonSampled(Approximate(0.5, 1e-13), 0.1),
]
TREES: list[Event] = [
    20 * LaplaceNoise(10),
    LaplaceNoise(5) + 3 * GaussianNoise(5) + Pure(0.2) + BoundedRange(0.3),
    Parallel(Pure(0.3) + Pure(0.2), Pure(0.4)),
    Parallel(3 * GaussianNoise(5), LaplaceNoise(2)) + Parallel(Pure(0.1), BoundedRange(0.3), Pure(0.05)),
    PostProcessed(2 * Pure(0.1)),
    PoissonSampled(Pure(0.2) + Pure(0.3), 0.1),
]
EVERY = [*LEAVES, *TREES]
PAIRS = [(accountant, event) for accountant in ACCOUNTANTS for event in EVERY]


def epsilon(accountant: Accountant, event: Event, delta: float) -> float | None:
    if not accountant.supports(event):
        return None
    return accountant.guarantee(event, delta).to_approx(delta).epsilon


@each("event", EVERY)
def test_events_are_frozen_values(event: Event) -> None:
    again = eval(repr(event), {**vars(dp.accounting), "Fraction": Fraction})
    for twin in (again, copy.deepcopy(event), pickle.loads(pickle.dumps(event))):
        assert twin == event
        assert hash(twin) == hash(event)
        assert repr(twin) == repr(event)
    for field in dataclasses.fields(event):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(event, field.name, 1)
    assert event != 1
    assert len({event, again}) == 1


def test_events_differ_by_kind_and_number() -> None:
    assert len(set(EVERY)) == len(EVERY)
    assert LaplaceNoise(2) != GaussianNoise(2)
    assert Pure(0.1) == Pure(Fraction(1, 10))


def test_trees_gather_equal_events() -> None:
    a, b = Pure(0.1), Pure(0.2)
    assert a + b == b + a
    assert a + a + b == 2 * a + b == Sequential(a, b, a) == sum([a, a, b])
    assert 2 * (a + b) == 2 * a + 2 * b
    assert hash(a + b) == hash(b + a)
    assert Parallel(a, a) == Parallel(a)
    assert a * 1 == a


@each(("accountant", "event"), PAIRS)
def test_less_delta_costs_more_and_so_does_more_of_the_same(accountant: Accountant, event: Event) -> None:
    result = [epsilon(accountant, event, delta) for delta in DELTAS]
    if result[0] is None:
        return
    assert result == sorted(result)  # type: ignore[type-var]
    one, two, many = (epsilon(accountant, count * event, 1e-6) for count in (1, 2, 50))
    assert one is not None
    assert two is not None
    assert many is not None
    assert one * (1 - 1e-4) <= two <= many * (1 + 1e-4)
    louder = epsilon(accountant, event.scaled(Fraction(1, 2)), 1e-6)
    assert louder is not None
    assert louder >= one * (1 - 1e-4)
    assert epsilon(accountant, PostProcessed(event), 1e-6) == one
    assert epsilon(accountant, Parallel(event, event), 1e-6) == one


def exact_curve(laws: Callable[[], list[Any]]) -> Callable[[Any], Any]:
    """The curve of the composition of all laws, which is enumerated when it is first asked for."""
    law = functools.cache(lambda: composed(laws()))
    return lambda at: delta_of(law(), at)


CURVES: list[tuple[Event, Any]] = [
    (4 * Pure(0.5), exact_curve(lambda: [response(0.5)] * 4)),
    (5 * ResponseReport(0.5, 5), exact_curve(lambda: [response(0.5, 5)] * 5)),
    (3 * Approximate(0.5, 1e-13), exact_curve(lambda: [response(0.5, 2, 1e-13)] * 3)),
    (3 * DiscreteLaplaceNoise(4, 3), exact_curve(lambda: [discrete_laplace(4, 3)] * 3)),
    (4 * GaussianNoise(6), lambda at: gaussian_delta(at, mp.mpf(3))),
    (LaplaceNoise(2), lambda at: 1 - mp.exp((at - mp.mpf("0.5")) / 2) if at < 0.5 else mp.mpf(0)),
    (PoissonSampled(GaussianNoise(1), 0.1), lambda at: gaussian_delta(mp.log1p(mp.expm1(at) * 10), mp.mpf(1)) / 10),
]


def too_small(accountant: Accountant, event: Event, curve: Any, factor: Fraction) -> bool:
    """Whether factor times what it says is below the truth, somewhere."""
    with mp.workdps(40):
        for delta in DELTAS:
            if accountant.supports(event):
                answers = accountant.guarantee(event, delta).epsilon_at(Fraction(repr(delta)))
                if curve(real(answers * factor)) > real(delta):
                    return True
    return False


@each(("event", "curve"), CURVES)
@each("accountant", ACCOUNTANTS)
def test_no_accountant_is_ever_below_the_exact_curve(accountant: Accountant, event: Event, curve: Any) -> None:
    assert not too_small(accountant, event, curve, Fraction(1))


@pytest.mark.parametrize(("event", "curve"), CURVES, ids=lambda value: label(value) if isinstance(value, Event) else "")
def test_an_accountant_that_says_one_percent_less_is_caught(event: Event, curve: Any) -> None:
    assert too_small(pld, event, curve, Fraction(99, 100))


def test_accountants_support_the_events_that_they_should() -> None:
    known = {accountant.name: [accountant.supports(leaf) for leaf in LEAVES] for accountant in ACCOUNTANTS}
    assert all(known["basic"])
    assert all(known["advanced"])
    assert [type(leaf) for leaf, fine in zip(LEAVES, known["pld"], strict=True) if not fine] == [Concentrated]
    assert [repr(leaf) for leaf, fine in zip(LEAVES, known["zcdp"], strict=True) if not fine] == [
        repr(leaf) for leaf in (LEAVES[6], LEAVES[8], LEAVES[10])
    ]
    assert [repr(leaf) for leaf, fine in zip(LEAVES, known["renyi"], strict=True) if not fine] == [
        repr(leaf) for leaf in (LEAVES[6], LEAVES[10])
    ]


@dataclasses.dataclass(frozen=True, init=False)
class Mystery(Event):
    """An event of which nothing is known."""


@each("accountant", ACCOUNTANTS)
@each("tree", [Mystery(), Pure(1) + Mystery(), Parallel(Pure(1), Mystery()), PostProcessed(Mystery())])
def test_unknown_events_are_refused(accountant: Accountant, tree: Event) -> None:
    assert not accountant.supports(tree)
    with refuses(TypeError, "got Mystery"):
        accountant.guarantee(tree, 1e-6)
    with refuses(DitherError):
        best_of(tree, 1e-6)


@each("accountant", ACCOUNTANTS)
@each("junk", [None, 1, "x", PureDP(1), [Pure(1)]])
def test_what_is_no_event_is_refused(accountant: Accountant, junk: Any) -> None:
    for act in (
        accountant.supports,
        lambda event: accountant.guarantee(event, 1e-6),
        best_of,
        PostProcessed,
        Sequential,
    ):
        with refuses(TypeError) as refused:
            act(junk)
        assert isinstance(refused.value, DitherError)


NUMBERS: list[Any] = [0, -1, math.nan, math.inf, -math.inf, True, "1", None, [1]]


@each("number", NUMBERS)
@each(
    "make",
    [
        LaplaceNoise,
        GaussianNoise,
        BoundedRange,
        Pure,
        Concentrated,
        lambda x: DiscreteLaplaceNoise(x, 1),
        lambda x: DiscreteLaplaceNoise(1, x),
        lambda x: ResponseReport(x, 3),
        lambda x: ResponseReport(1, x),
        lambda x: Approximate(x, 0.1),
        lambda x: Approximate(1, x),
        lambda x: PoissonSampled(Pure(1), x),
        lambda x: Pure(1) * x,
        *(
            lambda x, a=accountant: a.guarantee(20 * GaussianNoise(3), x)
            for accountant in ACCOUNTANTS
            if accountant is not zcdp
        ),
    ],
)
def test_nonsense_numbers_are_refused(make: Any, number: Any) -> None:
    with refuses((ValueError, TypeError)) as refused:
        make(number)
    assert isinstance(refused.value, DitherError)


def test_samples_are_for_addition_and_removal_only() -> None:
    with refuses(dp.NotPrivate, "expected AddRemove"):
        PoissonSampled(Pure(1), 0.1, dp.ReplaceOne)
    assert PoissonSampled(Pure(1), 0.1, dp.AddRemove) == PoissonSampled(Pure(1), 0.1)
    whole = PoissonSampled(GaussianNoise(2), 1)
    assert pld.guarantee(whole, 1e-6) == pld.guarantee(GaussianNoise(2), 1e-6)


def test_ten_tenths_are_one() -> None:
    assert basic.guarantee(10 * Pure(0.1)) == PureDP(1) == best_of(10 * Pure(0.1)).guarantee
    assert basic.guarantee(10 * LaplaceNoise(10)) == PureDP(1)
    assert (10 * Pure(0.1)).guarantee == PureDP(1)


@given(*(st.fractions(Fraction(1, 100), 5) for _ in range(3)))
def test_mean_and_variance_on_one_half_and_the_median_on_the_other(mean: Any, variance: Any, median: Any) -> None:
    """Example 8 of the lecture."""
    tree = Parallel(Pure(mean) + Pure(variance), Pure(median))
    wanted = PureDP(max(mean + variance, median))
    assert tree.guarantee == wanted == basic.guarantee(tree) == best_of(tree).guarantee
    assert wanted == dp.parallel(dp.sequential(PureDP(mean), PureDP(variance)), PureDP(median))


def test_many_groups_of_one_kind_are_as_bad_as_the_worst() -> None:
    cells = Parallel(*(LaplaceNoise(2 + i) for i in range(200)))
    assert pld.guarantee(5 * cells, 1e-6) == pld.guarantee(5 * LaplaceNoise(2), 1e-6)


def test_deltas_that_the_events_already_use_up() -> None:
    workload = 10 * Approximate(0.1, 1e-7) + GaussianNoise(10)
    assert basic.guarantee(10 * Approximate(0.1, 1e-7)) == ApproxDP(1, 1e-6)
    for accountant in (basic, advanced, pld):
        assert accountant.guarantee(workload, 1e-5).epsilon < 3  # type: ignore[attr-defined]
        with refuses(dp.NotPrivate):
            accountant.guarantee(workload, 1e-6 if accountant is not pld else 9e-7)
    with refuses(DitherError, "delta"):
        basic.guarantee(GaussianNoise(1))


def test_releases_that_need_a_delta_share_what_the_others_leave_of_it() -> None:
    count, left = 4, Fraction(1, 10**6) - Fraction(1, 10**7)
    whole = basic.guarantee(count * GaussianNoise(5) + Approximate(0.5, 1e-7), 1e-6).exact[0]
    each = (whole - Fraction(1, 2)) / count
    share = real(left / count)
    assert gaussian_delta(real(each), 5) <= share < gaussian_delta(real(each * Fraction(999, 1000)), 5)


def test_a_sample_uses_up_its_rate_times_the_delta_of_the_release() -> None:
    event = PoissonSampled(Approximate(0.5, 1e-6), 0.1)  # which shows a person with probability 1e-7
    assert basic.guarantee(event, 1e-7).exact[1] == Fraction(1, 10**7)
    with pytest.raises(DitherError, match="own deltas"):
        basic.guarantee(event, 0.99e-7)


def test_zcdp_without_a_delta_is_a_rho() -> None:
    assert zcdp.guarantee(2 * GaussianNoise(2)) == ZCDP(0.25)
    assert zcdp.guarantee(Concentrated(0.1) + GaussianNoise(1)) == ZCDP(0.6)


def test_advanced_composition_by_its_formula_and_never_above_basic() -> None:
    with mp.workdps(40):
        for losses, delta in (([0.01] * 500, 1e-6), ([0.1, 0.2, 0.3] * 20, 1e-3), ([2.0], 1e-9)):
            squares = mp.fsum(real(x) ** 2 for x in losses)
            drift = mp.fsum(real(x) * mp.expm1(real(x)) / (mp.exp(real(x)) + 1) for x in losses)
            roots = [mp.log(1 / real(delta)), mp.log(mp.e + mp.sqrt(squares) / real(delta))]
            truth = min(mp.fsum(map(real, losses)), *(drift + mp.sqrt(2 * squares * root) for root in roots))
            result = real(advanced.guarantee(Sequential(*map(Pure, losses)), delta).exact[0])
            assert truth <= result <= truth * (1 + mp.mpf(10) ** -12)
    assert advanced.guarantee(Pure(3), 1e-6) <= ApproxDP(3, 1e-6)


def test_renyi_of_private_gradient_descent_against_google() -> None:
    from dp_accounting.rdp import RdpAccountant

    for sigma, rate, steps in ((1.1, 256 / 60_000, 14_000), (4.0, 0.01, 10_000), (0.7, 0.02, 500)):
        event = steps * PoissonSampled(GaussianNoise(sigma), rate)
        theirs = RdpAccountant(orders=list(range(2, 257))).compose(to_dp_event(event)).get_epsilon(1e-5)
        assert renyi.guarantee(event, 1e-5).epsilon == pytest.approx(theirs, rel=1e-6)


def test_the_bridge_says_the_same_to_google() -> None:
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import PLDAccountant

    workload = LaplaceNoise(3) + 2 * GaussianNoise(5)
    theirs = PLDAccountant().compose(to_dp_event(PostProcessed(workload))).get_epsilon(1e-6)
    assert pld.guarantee(workload, 1e-6).epsilon == pytest.approx(theirs, rel=1e-3)
    reports = 3 * Pure(0.3) + ResponseReport(0.4, 4)
    replaced = PLDAccountant(NeighboringRelation.REPLACE_ONE).compose(to_dp_event(reports))
    assert pld.guarantee(reports, 1e-3).epsilon == pytest.approx(replaced.get_epsilon(1e-3), rel=1e-3)
    for one in (BoundedRange(1), Parallel(Pure(1)), Approximate(1, 0.1), DiscreteLaplaceNoise(2, 1)):
        with refuses(TypeError):
            to_dp_event(one)


leaves = st.one_of(
    st.builds(LaplaceNoise, st.fractions(1, 50)),
    st.builds(GaussianNoise, st.fractions(1, 50)),
    st.builds(Pure, st.fractions(Fraction(1, 100), 2)),
    st.builds(BoundedRange, st.fractions(Fraction(1, 100), 2)),
    st.builds(ResponseReport, st.fractions(Fraction(1, 100), 2), st.integers(2, 9)),
    st.builds(DiscreteLaplaceNoise, st.fractions(5, 50), st.integers(1, 5)),
)


@settings(max_examples=12)
@given(st.lists(st.tuples(leaves, st.integers(1, 30)), min_size=1, max_size=4), st.sampled_from(DELTAS))
def test_the_best_is_no_worse_than_any_accountant(parts: Any, delta: float) -> None:
    workload = Sequential(*(event * count for event, count in parts))
    best = best_of(workload, delta)
    answers = dict(best.answers)
    assert set(answers) == {accountant.name for accountant in ACCOUNTANTS}
    assert best.accountant in answers
    for answer in answers.values():
        if not isinstance(answer, str):
            assert best.guarantee.to_approx(delta).epsilon <= answer.to_approx(delta).epsilon
    # the distribution is the tightest, up to what its lattice adds; but of a choice only the envelope of its curves
    if not any(isinstance(event, BoundedRange) for event, _ in parts):
        assert pld.guarantee(workload, delta).epsilon <= best.guarantee.to_approx(delta).epsilon * (1 + 5e-4) + 1e-6
