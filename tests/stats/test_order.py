"""The law of median, minimum and maximum by brute force, its privacy loss over all neighbours, and draws from it."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from support import FALSE_ALARM, surprise

from dither import AddRemove, ReplaceOne, stats
from dither.stats import order

BOTH = [AddRemove, ReplaceOne]
TARGETS = [stats.median, stats.min, stats.max]
TOP = 5
Law = dict[int, float]


def stated(data: tuple[int, ...], target: Any, epsilon: float, relation: Any, top: int = TOP) -> Law:
    """Point by point from the statement in the module, without stretches, sorting or clocks."""
    n, weights = len(data), {}
    for t in range(top + 1):
        below, upto = sum(v < t for v in data), sum(v <= t for v in data)
        if target is stats.max:
            below, upto = n - upto, n - below
        edge = math.ceil(2 * math.log(1000) / epsilon)
        if target is stats.median:
            wanted, reach = n / 2, 0.5 if relation is AddRemove else 1.0
        else:
            wanted, reach = min(edge, n // 4) if relation is ReplaceOne else edge, 1.0
        distance = max(below - wanted, wanted - upto, 0)
        weights[t] = math.exp(-epsilon * distance / (2 * reach))
    total = sum(weights.values())
    return {t: weight / total for t, weight in weights.items()}


def used(data: tuple[int, ...], target: Any, epsilon: float, relation: Any, top: int = TOP) -> Law:
    """The law the code draws from: each clock is forced to ring, and gives its points and its weight."""
    clocks: dict[str, Any] = {}
    law: Law = {}

    def answer(chosen: int, offset: int) -> int:
        with pytest.MonkeyPatch.context() as patch:

            def ring(scores: Any, source: Any, factor: Any, counts: Any) -> int:
                clocks.update(scores=scores, factor=factor, counts=counts)
                return chosen if chosen >= 0 else int(np.argmax(counts > 0))

            patch.setattr(order, "first_to_ring", ring)
            patch.setattr(order, "uniform_integers", lambda n, count, source: np.array([offset]))
            return int(target(np.array(data, dtype=np.int64), bounds=(0, top), epsilon=epsilon, neighbors=relation))

    answer(-1, 0)
    for i in range(len(clocks["scores"])):
        for offset in range(int(clocks["counts"][i])):
            t = answer(i, offset)
            assert t not in law, "a point belongs to two clocks"
            law[t] = math.exp(float(clocks["factor"]) * float(clocks["scores"][i]))
    total = sum(law.values())
    return {t: weight / total for t, weight in law.items()}


def tables(size: int, top: int = TOP) -> Any:
    return itertools.combinations_with_replacement(range(top + 1), size)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("relation", BOTH)
def test_the_code_draws_from_the_stated_law_for_every_small_table(target, relation):
    for size in range(4):
        if size == 0 and relation is ReplaceOne:
            continue
        for data in tables(size, 4):
            for epsilon in (0.5, 9.0):
                one, two = used(data, target, epsilon, relation, 4), stated(data, target, epsilon, relation, 4)
                assert one.keys() == two.keys()
                assert all(one[t] == pytest.approx(two[t], rel=1e-9) for t in one)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.0, 20.0])
def test_the_worst_loss_over_all_neighbours_is_at_most_epsilon(target, relation, epsilon):
    worst = 0.0
    for size in range(5):
        for data in tables(size):
            law = stated(data, target, epsilon, relation) if data or relation is AddRemove else None
            for extra in range(TOP + 1):
                if relation is AddRemove:
                    others = [(*data, extra)]
                else:
                    law = stated((*data, extra), target, epsilon, relation)
                    others = [(*data, other) for other in range(TOP + 1)]
                for other in others:
                    theirs = stated(other, target, epsilon, relation)
                    worst = max(worst, *(abs(math.log(law[t] / theirs[t])) for t in law))
    assert worst <= epsilon * (1 + 1e-9)
    assert worst >= epsilon / 4, "far more noise than is needed"


@pytest.mark.slow
@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("data", [(1, 1, 4), (0, 5), (2, 2, 2)])
def test_draws_follow_the_stated_law(target, relation, data):
    x = np.array(data)
    found = [int(target(x, bounds=(0, TOP), epsilon=2, neighbors=relation)) for _ in range(20_000)]
    counts = np.bincount(found, minlength=TOP + 1)
    right = np.array([stated(data, target, 2.0, relation)[t] for t in range(TOP + 1)])
    assert surprise(counts, right) > FALSE_ALARM
    if right.max() / right.min() > 1.5:
        wrong = right**1.4
        assert surprise(counts, wrong / wrong.sum()) < FALSE_ALARM


@pytest.mark.parametrize("relation", BOTH)
def test_ties_do_not_mislead_the_median(relation):
    """Nine of ten zeros: ranks of single points once made this a 1, and a constant column uniform noise."""
    binary = np.array([0] * 900 + [1] * 100)
    for x, bounds, truth in [(binary, (0, 1), 0), (1 - binary, (0, 1), 1), (np.full(1000, 50), (0, 100), 50)]:
        for target in TARGETS:
            wanted = truth if target is stats.median else None
            found = target(x, bounds=bounds, epsilon=10, neighbors=relation)
            assert wanted is None or found == wanted
    for target in TARGETS:
        assert target(np.full(1000, 30), bounds=(0, 110), epsilon=8, neighbors=relation) == 30


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("data", [[-7], [400, -400], list(range(-50, 300))])
def test_answers_stay_inside_the_bounds(relation, target, data):
    for kind, bounds in ((np.int64, (0, 110)), (np.float64, (0.1, 110.3)), (np.float64, (0.1, 0.3))):
        for _ in range(20):
            found = target(np.array(data, dtype=kind), bounds=bounds, epsilon=0.5, neighbors=relation)
            assert bounds[0] <= found <= bounds[1]
            assert isinstance(found, int) == (kind is np.int64)


@pytest.mark.parametrize("relation", BOTH)
def test_the_rank_error_holds(relation):
    x, runs = np.arange(400), 400
    for target, wanted in ((stats.median, 200), (stats.min, 14), (stats.max, 386)):
        for _ in range(runs // 4):
            found = target(x, bounds=(0, 10_000), epsilon=1, neighbors=relation)
            # P(off by more than this) <= 1e-12, so a false alarm in all runs together is below 1e-9
            assert abs(min(int(found), 400) - wanted) <= found.rank_error(1 - 1e-12) + 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("bounds", [(0, 2**62), (-(2**63), 2**63 - 1), (0, 2**63 - 1), (0, 2**61), (2**62, 2**62 + 3)])
def test_the_widest_integer_bounds_do_not_overflow(target, bounds):
    x = np.array([-(2**63), -1, 0, 2**53 + 1, 2**63 - 1])
    for relation in BOTH:
        assert bounds[0] <= target(x, bounds=bounds, epsilon=1, neighbors=relation) <= bounds[1]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("epsilon", [1e-30, 1e-9, 1e6])
def test_extreme_budgets_are_served(target, epsilon):
    for relation in BOTH:
        assert 0 <= target(np.arange(50), bounds=(0, 49), epsilon=epsilon, neighbors=relation) <= 49


@pytest.mark.parametrize("relation", BOTH)
def test_the_wanted_rank_of_an_extreme_does_not_follow_a_private_size(relation):
    """Under add/remove it may depend on epsilon only."""
    seen = []
    for n in (0, 1, 40, 41):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                order, "first_to_ring", lambda scores, *rest: seen.append(scores[0]) or int(np.argmax(rest[2] > 0))
            )
            stats.min(np.full(max(n, relation is ReplaceOne), 3), bounds=(0, 5), epsilon=1, neighbors=relation)
    assert (len(set(seen)) == 1) == (relation is AddRemove)


def test_order_statistics_have_no_delta():
    with pytest.raises(TypeError):
        stats.median([1.0], bounds=(0, 1), epsilon=1, delta=1e-6)
