"""Amplification by shuffling against exact enumeration, mpmath, and published numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
import pytest

import dither as dp
from dither.accounting import (
    Parallel,
    PoissonSampled,
    PostProcessed,
    Pure,
    Sequential,
    Shuffled,
    best_of,
    pld,
    privacy_curve,
    shuffled,
)
from dither.accounting.shuffling import blanket_pair, clone_pair
from support import each

EPSILONS = (0.0, 0.1, 0.4, 0.9)


def clones_exactly(epsilon0: float, n: int, epsilon: float, rate: float | None = None) -> float:
    """The hockey-stick divergence of the clones, term by term, with 40 digits."""
    with mpmath.workdps(40):
        t = mpmath.exp(-mpmath.mpf(epsilon0))
        p = t if rate is None else mpmath.mpf(rate)
        total = mpmath.mpf(0)
        for c in range(n):
            weight = mpmath.binomial(n - 1, c) * p**c * (1 - p) ** (n - 1 - c)
            for a in range(c + 2):
                coins = [mpmath.binomial(c, x) / mpmath.mpf(2) ** c if 0 <= x <= c else 0 for x in (a - 1, a)]
                first = (coins[0] + t * coins[1]) / (1 + t)
                second = (t * coins[0] + coins[1]) / (1 + t)
                total += weight * max(first - mpmath.exp(mpmath.mpf(epsilon)) * second, 0)
        return float(total)


def shuffled_exactly(law: np.ndarray, others: tuple[int, ...], epsilon: float) -> float:
    """The divergence of the multisets of reports themselves, for values 0 and 1 of one person and fixed others."""
    results = []
    for first in (0, 1):
        counts: Counter[tuple[int, ...]] = Counter()
        for reports in itertools.product(range(law.shape[1]), repeat=len(others) + 1):
            mass = math.prod(law[x, r] for x, r in zip((first, *others), reports, strict=True))
            counts[tuple(sorted(reports))] += mass
        results.append(counts)
    return sum(max(p - math.exp(epsilon) * results[1][key], 0.0) for key, p in results[0].items())


def response(k: int, epsilon0: float) -> np.ndarray:
    law = np.ones((k, k)) + (math.exp(epsilon0) - 1) * np.eye(k)
    return law / law.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("epsilon0", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_the_curve_of_the_clones_is_exact_and_never_below(epsilon0: float, n: int) -> None:
    for epsilon in EPSILONS:
        exact, ours = clones_exactly(epsilon0, n, epsilon), clone_pair(epsilon0, n).delta(epsilon)
        assert exact <= ours <= exact * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("k", [2, 3, 4])
def test_no_multiset_of_reports_is_easier_to_tell_apart(k: int) -> None:
    """Every database of four other people; where it is k-ary response the three bounds hold."""
    epsilon0, n = 1.5, 5
    law = response(k, epsilon0)
    pairs = [clone_pair(epsilon0, n), clone_pair(epsilon0, n, distinct=True)]
    if k > 2:
        pairs.append(blanket_pair(epsilon0, n, k))
    for epsilon in EPSILONS:
        worst = max(
            shuffled_exactly(law, others, epsilon)
            for others in itertools.combinations_with_replacement(range(k), n - 1)
        )
        assert all(worst <= pair.delta(epsilon) for pair in pairs)
        # a bound for weaker randomizers is seen to be too small for this one
        assert worst > clone_pair(epsilon0 / 3, n).delta(epsilon)


def test_a_randomizer_with_reports_common_to_two_values_needs_the_general_bound() -> None:
    """Three values, sets of two of them as reports: subset selection. The bound for distinct reports is not used."""
    epsilon0, n = 1.5, 5
    law = np.array([[math.exp(epsilon0) if x != r else 1.0 for r in range(3)] for x in range(3)])
    law /= law.sum(axis=1, keepdims=True)
    for epsilon in EPSILONS:
        worst = max(
            shuffled_exactly(law, others, epsilon)
            for others in itertools.combinations_with_replacement(range(3), n - 1)
        )
        assert worst <= clone_pair(epsilon0, n).delta(epsilon)


def test_the_blanket_against_its_definition() -> None:
    """``E[g (1 - e^epsilon + K (a - e^epsilon b) / N)_+]`` over N - 1 ~ Bin(n - 1, g) and uniform reports."""
    epsilon0, n, k = 2.0, 25, 6
    growth = math.exp(epsilon0)
    g = k / (growth + k - 1)
    for epsilon in EPSILONS:
        e, exact = math.exp(epsilon), 0.0
        for others in range(n):
            total = others + 1
            weight = math.comb(n - 1, others) * g**others * (1 - g) ** (n - 1 - others)
            for a in range(total + 1):
                for b in range(total + 1 - a):
                    ways = math.comb(total, a) * math.comb(total - a, b)
                    mass = ways * (1 / k) ** (a + b) * (1 - 2 / k) ** (total - a - b)
                    exact += weight * mass * g * max(1 - e + (growth - 1) * (a - e * b) / total, 0.0)
        ours = blanket_pair(epsilon0, n, k).delta(epsilon)
        assert exact * (1 - 1e-9) <= ours <= exact * 1.1  # the person's own report may be one more of the rest


def test_published_numbers() -> None:
    """Feldman, McMillan and Talwar's own program brackets n = 10^5, epsilon0 = 4, delta = 1e-6 by .1675 and .1728."""
    epsilon = shuffled(4, n=100_000, delta=1e-6).epsilon
    assert 0.1675 <= epsilon <= 0.1700
    growth = math.exp(4)
    closed = math.log1p((growth - 1) / (growth + 1) * 8 * (math.sqrt(growth * math.log(4e6) / 1e5) + growth / 1e5))
    assert 0.53 < closed < 0.54
    assert shuffled(4, n=100_000, delta=1e-6, distinct=True).epsilon < 0.1183
    assert shuffled(4, n=100_000, delta=1e-6, response_categories=128).epsilon < 0.0635


def test_more_people_larger_deltas_and_smaller_losses_help() -> None:
    values = [shuffled(2, n, 1e-6).epsilon for n in (100, 1_000, 10_000, 10**7)]
    assert values == sorted(values, reverse=True)
    assert shuffled(2, 1000, 1e-4).epsilon < shuffled(2, 1000, 1e-8).epsilon
    assert shuffled(1, 1000, 1e-6).epsilon < shuffled(2, 1000, 1e-6).epsilon
    assert shuffled(30, 1000, 1e-6).exact[0] == 30


def test_composition_by_the_accountants() -> None:
    event = Shuffled(4, 100_000)
    assert event.guarantee == dp.PureDP(4)
    single = shuffled(4, 100_000, 1e-6).epsilon
    assert single <= pld.guarantee(event, 1e-6).epsilon <= single * 1.03
    ten = best_of(10 * event, 1e-6)
    assert ten.accountant == "pld"
    assert 2 * single < ten.guarantee.epsilon < 6 * single  # far less than ten times
    assert privacy_curve(event, single) >= 1e-6 * (1 - 1e-3)
    assert shuffled(4, 100_000, 1e-6) == dp.ApproxDP(event.epsilon_at(dp.ApproxDP(1, 1e-6).exact[1]), 1e-6)


def test_a_ledger_takes_it() -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder, dp.ledger.open(folder + "/budget.sqlite") as ledger:
        ledger.create("survey", limit=dp.ApproxDP(0.2, 1e-5))
        ledger.charge("survey", shuffled(4, 100_000, 1e-6), key="first")
        with pytest.raises(dp.BudgetExceeded):
            ledger.charge("survey", shuffled(4, 100_000, 1e-6), key="second")


def test_refusals() -> None:
    for bad in ({"epsilon0": 0, "n": 5}, {"epsilon0": 1, "n": 0}, {"epsilon0": 1, "n": 5, "response_categories": 1}):
        with pytest.raises(dp.InvalidArgument):
            shuffled(**bad, delta=1e-6)
    with pytest.raises(dp.InvalidArgument):
        shuffled(1, 5, 0)


def blanket_exactly(epsilon0: float, n: int, k: int, epsilon: float) -> float:
    """The hockey-stick divergence of the blanket, term by term, with 40 digits."""
    with mpmath.workdps(40):
        growth = mpmath.exp(mpmath.mpf(epsilon0))
        g, total, excess = k / (growth + k - 1), mpmath.mpf(0), growth - 1
        for reports in range(1, n + 1):
            uniform = mpmath.binomial(n - 1, reports - 1) * g ** (reports - 1) * (1 - g) ** (n - reports)
            uniform *= k / (reports * (growth + k - 1))
            for t in range(1, reports + 1):
                pairs = (
                    mpmath.binomial(reports, t) * (mpmath.mpf(2) / k) ** t * (1 - mpmath.mpf(2) / k) ** (reports - t)
                )
                for a in range(t + 1):
                    mass = uniform * pairs * mpmath.binomial(t, a) / mpmath.mpf(2) ** t
                    first, second = reports + excess * a, reports + excess * (t - a)
                    total += mass * max(first - mpmath.exp(mpmath.mpf(epsilon)) * second, 0)
        return float(total)


@pytest.mark.parametrize(("epsilon0", "k"), [(0.1, 1000), (1.0, 3), (3.0, 3), (3.0, 4), (6.0, 3)])
@pytest.mark.parametrize("n", [2, 12, 16])
def test_blocks_of_the_blanket_are_never_below(epsilon0: float, k: int, n: int) -> None:
    """With few atoms many numbers of reports are taken together, those of none that is 0 or 1 among them."""
    for epsilon in (0.0, 0.1 * epsilon0, 0.5 * epsilon0, 0.9 * epsilon0):
        exact = blanket_exactly(epsilon0, n, k, epsilon)
        assert blanket_pair(epsilon0, n, k).delta(epsilon) == pytest.approx(exact, rel=0.4, abs=1e-9)
        for atoms in (1, 2000, 20_000, 1 << 19):
            assert exact <= blanket_pair(epsilon0, n, k, atoms=atoms).delta(epsilon)


@each("epsilon0", [1e-100, 1e-6, 50, 700, 701, 1000, 1e6])
@each("k", [None, 2, 3, 1 << 40])
def test_extreme_arguments_have_an_answer(epsilon0: float, k: int | None) -> None:
    for n, delta in ((1, 0.5), (1000, 1e-300), (1 << 62, 1e-6)):
        if n * math.exp(-epsilon0) > 1e9 and k is not None and k > 2:
            continue  # right, but slow
        epsilon = shuffled(epsilon0, n, delta, response_categories=k).epsilon
        assert 0 < epsilon <= dp.PureDP(epsilon0).epsilon
        assert delta > 1e-300 or epsilon == dp.PureDP(epsilon0).epsilon


def test_people_beyond_the_largest_mean_are_left_out_of_both_counts() -> None:
    many, more = (shuffled(1, n, 1e-6, response_categories=1 << 24).epsilon for n in (10**8, 10**9))
    assert more <= many


@pytest.mark.parametrize("distinct", ["False", 1, 0, None, np.True_])
def test_only_true_says_that_reports_are_distinct(distinct: object) -> None:
    with pytest.raises(dp.WrongType, match="True or False"):
        Shuffled(4, 100, distinct=distinct)  # type: ignore[arg-type]


def test_promises_for_different_neighbors_do_not_add_up() -> None:
    """A sample is for people added or removed, a shuffler for a value replaced; noise may be for either."""
    sample, shuffle, noise = PoissonSampled(Pure(1), 0.1), Shuffled(2, 100), Pure(1)
    trees = [
        lambda: sample + shuffle,
        lambda: 3 * sample + noise + 2 * shuffle,
        lambda: Parallel(sample, shuffle),
        lambda: PostProcessed(sample + noise) + Parallel(noise, 2 * shuffle),
        lambda: Sequential.repeated({sample: 2, shuffle: 1}),
        lambda: PoissonSampled(shuffle, 0.1),
        lambda: PoissonSampled(noise + shuffle, 0.1),
        lambda: best_of(noise + shuffle, 1e-6) and PoissonSampled(PostProcessed(Parallel(shuffle)), 0.5),
    ]
    for tree in trees:
        with pytest.raises(dp.NotPrivate):
            tree()
    assert (noise + shuffle).relation is Parallel(shuffle, noise).relation is dp.ReplaceOne
    assert (3 * sample + noise).relation is dp.AddRemove
    assert (2 * noise).relation is None
