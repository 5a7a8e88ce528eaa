"""Certificates of local and of shuffled reports, against brute force over the laws that are sampled."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import dither as dp
from dither.accounting import Shuffled
from dither.audit.proof.certify import certify_unchecked
from dither.audit.proof.local_reports import shuffled_evidence, windows_evidence
from dither.errors import NotPrivate
from dither.local.windows import Windows
from support import each

from ...local.laws import PROTOCOLS


def brute_force(law, values, epsilon):
    growth = math.exp(epsilon)
    laws = [law(x) for x in values]
    return max(sum(max(0.0, one[r] - growth * other[r]) for r in one) for one in laws for other in laws)


@each("name", list(PROTOCOLS))
@each("epsilon", [0.5, 1.2])
def test_loss_and_curve_are_those_of_the_enumerated_law(name, epsilon):
    build, law = PROTOCOLS[name]
    p = build(1)
    if name == "subset selection":
        assert p.subset_size == 2
    claimed = float(p.guarantee.epsilon)
    certificate = dp.audit.certify(p, at=epsilon)
    assert certificate.holds
    assert certificate.epsilon == pytest.approx(claimed, abs=1e-12)
    values = range(p.category_count) if p.categories is not None else range(12)
    expected = brute_force(lambda x: law(1, x), values, epsilon)
    if "sketch" in name:  # an upper limit, for values that differ in all rows
        assert expected <= certificate.delta + 1e-12
        assert certificate.delta <= expected * 1.6 + 1e-12
    else:
        assert certificate.delta == pytest.approx(expected, abs=1e-12)


def test_large_protocols_are_certified_without_enumeration():
    for p in (
        dp.local.ProjectiveGeometryResponse(5000, 1),
        dp.local.HadamardResponse(5000, 3),
        dp.local.SubsetSelection(10**6, 2),
        dp.local.CountMeanSketch.apple(4),
        dp.local.HadamardCountMeanSketch.apple(4),
    ):
        assert dp.audit.certify(p).holds


def test_wrong_parameters_are_refuted_and_altered_objects_refused():
    p = dp.local.UnaryEncoding(8, 1, optimized=False)
    object.__setattr__(p, "epsilon", 2)
    assert certify_unchecked(p).epsilon == pytest.approx(2)

    class Careless(dp.local.UnaryEncoding):
        @property
        def flip_epsilon(self):
            return Fraction(self.epsilon)

    careless = Careless(8, 1, optimized=False)
    assert certify_unchecked(careless).refuted
    with pytest.raises(NotPrivate):
        dp.audit.certify(careless)


SUBJECTS = [
    dp.local.Mean((0, 1), 1),
    dp.local.Mean((0, 1), 0.3),
    dp.local.Mean((-5, 5), 2, "piecewise"),
    dp.local.Distribution((0, 1), 16, 1),
    dp.local.PaddedSets(12, 3, 1),
    dp.local.HeavyHitters(1, 0.1, 4),
]


@pytest.mark.parametrize("protocol", SUBJECTS, ids=repr)
def test_claims_hold(protocol) -> None:
    certificate = dp.audit.certify(protocol)
    assert certificate.holds
    assert certificate.epsilon == pytest.approx(float(protocol.epsilon), rel=1e-9)


@pytest.mark.parametrize("windows", [Windows(5, 3, Fraction(2)), Windows(4, 9, Fraction(1))])
def test_the_curve_of_windows_is_that_of_the_worst_two_places(windows: Windows) -> None:
    law = windows.law()
    for epsilon in (0.0, 0.3, 0.9):
        worst = max(
            float(np.maximum(law[i] - math.exp(epsilon) * law[j], 0).sum())
            for i in range(windows.points)
            for j in range(windows.points)
        )
        low, high = windows_evidence(windows).at(Fraction(epsilon))
        assert float(low) - 1e-12 <= worst <= float(high) + 1e-12


def test_a_client_with_a_larger_epsilon_is_refuted() -> None:
    p = dp.local.Distribution((0, 1), 16, 1)
    object.__setattr__(p, "bins", 16)
    assert certify_unchecked(p).holds

    class Claiming(dp.local.Distribution):
        @property
        def guarantee(self):
            return dp.PureDP(0.9)

    assert certify_unchecked(Claiming((0, 1), 16, 1)).refuted
    with pytest.raises(dp.NotPrivate):
        dp.audit.certify(Claiming((0, 1), 16, 1))


EPSILONS = (0.0, 0.1, 0.4, 0.9)


def clones_term_by_term(epsilon0: float, n: int, epsilon: float, rate: float) -> float:
    t, total = math.exp(-epsilon0), 0.0
    for c in range(n):
        weight = math.comb(n - 1, c) * rate**c * (1 - rate) ** (n - 1 - c)
        for a in range(c + 2):
            first, second = (math.comb(c, x) / 2**c if 0 <= x <= c else 0.0 for x in (a - 1, a))
            excess = (first + t * second) - math.exp(epsilon) * (t * first + second)
            total += weight * max(excess, 0.0) / (1 + t)
    return total


@each("epsilon0", [0.5, 1.0, 3.0])
@each("n", [1, 2, 7, 40])
@each("distinct", [False, True])
def test_the_upper_limit_is_the_sum_over_clones(epsilon0: float, n: int, distinct: bool) -> None:
    t = math.exp(-epsilon0)
    evidence = shuffled_evidence(Shuffled(epsilon0, n, distinct=distinct))
    for epsilon in EPSILONS:
        exact = clones_term_by_term(epsilon0, n, epsilon, 2 * t / (1 + t) if distinct else t)
        assert float(evidence.curve(Fraction(epsilon))[1]) == pytest.approx(exact, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_lower_limit_is_attained_by_randomized_response(k: int, n: int) -> None:
    """All multisets of reports of one person with category 0 or 1 and n - 1 others with category 2; and the same where
    only the numbers of reports 0 and 1 are looked at, which is all there is for k = 3."""
    epsilon0 = 1.5
    e = math.exp(epsilon0)
    response = [[(e if x == r else 1) / (e + k - 1) for r in range(k)] for x in range(k)]

    def divergence(epsilon: float, kinds: int) -> float:
        laws: list[Counter[tuple[int, ...]]] = [Counter(), Counter()]
        for own, law in enumerate(laws):
            people = (own, *[2] * (n - 1))
            for reports in itertools.product(range(k), repeat=n):
                key = tuple(sorted(min(r, kinds - 1) for r in reports))
                law[key] += math.prod(response[x][r] for x, r in zip(people, reports, strict=True))
        return sum(max(p - math.exp(epsilon) * laws[1][key], 0.0) for key, p in laws[0].items())

    certificate = dp.audit.certify(Shuffled(epsilon0, n, response_categories=k))
    for epsilon in EPSILONS:
        low, high = certificate.curve(epsilon)
        assert low == pytest.approx(divergence(epsilon, 3), rel=1e-9, abs=1e-15)
        assert low - 1e-15 <= divergence(epsilon, k) <= high + 1e-15


@pytest.mark.parametrize(
    ("event", "close"),
    [
        (Shuffled(4, 100_000), True),
        (Shuffled(4, 100_000, distinct=True), True),
        (Shuffled(1, 3000), True),
        (Shuffled(4, 100_000, response_categories=10), False),  # whose blanket is better than the clones
    ],
)
def test_the_accountant_and_the_certificate_agree(event: Shuffled, close: bool) -> None:
    claimed = event.epsilon_at(Fraction(1, 10**6))
    certificate = dp.audit.certify(event, at=float(claimed))
    assert certificate.holds
    assert certificate.claim == dp.PureDP(event.epsilon)
    assert certificate.delta_low < 1e-6
    if close:
        assert 0.99e-6 < certificate.delta <= 1e-6
        assert dp.audit.certify(event, at=0.95 * float(claimed)).delta > 1e-6  # a smaller epsilon is not certified


def test_a_smaller_epsilon_than_any_is_refuted_by_the_lower_limit() -> None:
    """At half of what is claimed for 10-ary response, delta is above the claimed one: no bound could be so small."""
    event = Shuffled(4, 100_000, response_categories=10)
    half = event.epsilon_at(Fraction(1, 10**6)) / 2
    assert dp.audit.certify(event, at=float(half)).delta_low > 1e-6


def test_so_many_people_that_fewer_are_counted_have_no_lower_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = shuffled_evidence(Shuffled(0.5, 4000)).at(Fraction(1, 20))
    monkeypatch.setattr("dither.audit.proof.local_reports._MAX_MEAN", 1000)
    low, high = shuffled_evidence(Shuffled(0.5, 4000)).at(Fraction(1, 20))
    assert low == 0 < exact[0] < exact[1] < high < 1


def test_a_changed_event_is_refused() -> None:
    event = Shuffled(4, 100)
    object.__setattr__(event, "n", 100.0)
    with pytest.raises(dp.NotPrivate):
        dp.audit.certify(event)
