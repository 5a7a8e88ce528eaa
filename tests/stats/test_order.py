"""The law of median, minimum and maximum by brute force, its privacy loss over all neighbors, and draws from it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dither import AddRemove, DitherError, InvalidArgument, ReplaceOne, stats
from dither.budget_hooks import observed_by
from dither.stats import order
from support import FALSE_ALARM, each, refuses, surprise

BOTH = [AddRemove, ReplaceOne]
TARGETS: dict[str, Any] = {
    "median": stats.median,
    "min": stats.min,
    "max": stats.max,
    "quantile 0.2": lambda x, **more: stats.quantile(x, 0.2, **more),
    "quantile 1": lambda x, **more: stats.quantile(x, 1, **more),
}
TOP = 5
Law = dict[int, float]
Data = tuple[int, ...]


def normal(law: Law) -> Law:
    total = sum(law.values())
    return {t: weight / total for t, weight in law.items()}


def aim(target: Any, n: int, epsilon: float, relation: Any) -> tuple[float, float, bool]:
    """The wanted rank, the exponent for a record missed, and whether ranks are from the top; all but n public."""
    seen: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:

        def spy(values: Any, grid: Any, lower: float, upper: float, wanted: Any, source: Any) -> int:
            seen.append((wanted.numerator / wanted.unit, float(wanted.rate), grid.high <= 0))
            return 0

        patch.setattr(order, "select_position", spy)
        target(np.zeros(n, dtype=np.int64), bounds=(0, TOP), epsilon=epsilon, neighbors=relation)
    return seen[0]


def stated(data: Data, target: Any, epsilon: float, relation: Any, top: int = TOP) -> Law:
    """Point by point from the statement in the module, without pieces, windows, sorting or clocks."""
    wanted, rate, mirrored = aim(target, len(data), epsilon, relation)
    weights = {}
    for t in range(top + 1):
        below, upto = sum(v < t for v in data), sum(v <= t for v in data)
        if mirrored:
            below, upto = sum(v > t for v in data), sum(v >= t for v in data)
        weights[t] = math.exp(-rate * max(0, below - wanted, wanted - upto))
    return normal(weights)


def used(data: Data, target: Any, epsilon: float, relation: Any, top: int = TOP, rare: float | None = None) -> Law:
    """The law the code draws from: each clock is forced to ring, and gives its points, weights and rejections."""
    clocks: dict[str, Any] = {}
    law: Law = {}

    def answer(chosen: int, offset: int) -> int:
        clocks["kept"] = 0.0
        with pytest.MonkeyPatch.context() as patch:

            def ring(scores: Any, source: Any, factor: Any, counts: Any) -> int:
                clocks.update(scores=scores, factor=factor, counts=counts)
                return chosen if chosen >= 0 else int(np.argmax(counts > 0))

            def keep(gamma: Any, count: int, source: Any) -> Any:
                assert gamma >= 0, "a rejection bound below the true weight"
                clocks["kept"] = float(gamma)
                return np.array([True])

            patch.setattr(order, "exponential_race", ring)
            patch.setattr(order, "uniform_integer", lambda *_: offset)
            patch.setattr(order, "bernoulli_exp", keep)
            if rare is not None:
                patch.setattr(order, "_RARE", rare)
            return int(target(np.array(data, dtype=np.int64), bounds=(0, top), epsilon=epsilon, neighbors=relation))

    answer(-1, 0)
    for i in range(len(clocks["scores"])):
        for offset in range(int(clocks["counts"][i])):
            t = answer(i, offset)
            assert t not in law, "a point belongs to two clocks"
            law[t] = math.exp(float(clocks["factor"]) * float(clocks["scores"][i]) - clocks["kept"])
    return normal(law)


def tables(size: int, top: int = TOP) -> Any:
    return itertools.combinations_with_replacement(range(top + 1), size)


def assert_same(one: Law, two: Law) -> None:
    assert one.keys() == two.keys()
    assert all(one[t] == pytest.approx(two[t], rel=1e-9) for t in one)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("relation", BOTH)
def test_the_code_draws_from_the_stated_law_for_every_small_table(name, relation):
    target = TARGETS[name]
    for size in range(4):
        for data in tables(size, 3) if size or relation is AddRemove else ():
            for epsilon in (0.5, 9.0):
                assert_same(used(data, target, epsilon, relation, 3), stated(data, target, epsilon, relation, 3))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("relation", BOTH)
def test_the_window_of_ranks_does_not_change_the_law(name, relation):
    """A window of a few ranks in place of hundreds, over tables with ties across its ends."""
    target = TARGETS[name]
    for data in [(0, 1, 1, 1, 2, 2, 3, 3, 3, 5), (2,) * 9, (0,) * 6 + (5,) * 6, (0, 0, 0, 0, 1, 4, 4, 4, 4, 5, 5)]:
        for shuffled in (data, data[::-1], data[3:] + data[:3]):
            result = used(shuffled, target, 30.0, relation, rare=-math.log(TOP + 1))
            assert_same(result, stated(data, target, 30.0, relation))


@each("name", TARGETS)
@each("relation", BOTH)
@each("epsilon", [0.1, 1.0, 7.0, 20.0])
def test_the_worst_loss_over_all_neighbors_is_at_most_epsilon(name, relation, epsilon):
    target, worst, laws = TARGETS[name], 0.0, {}
    for size in range(5):
        for data in tables(size, 4) if size or relation is AddRemove else ():
            laws[data] = stated(data, target, epsilon, relation, 4)
    for data, law in laws.items():
        for extra in range(5):
            if relation is AddRemove:
                others = [tuple(sorted((*data, extra)))]
            else:
                others = [tuple(sorted((*data[:i], extra, *data[i + 1 :]))) for i in range(len(data))]
            for other in others:
                if other in laws:
                    worst = max(worst, *(abs(math.log(law[t] / laws[other][t])) for t in law))
    assert worst <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("relation", BOTH)
def test_the_loss_of_several_quantiles_adds_up_to_epsilon(relation):
    """Levels times the loss of one, with every select on disjoint records: the exact joint law of two quantiles."""
    epsilon, top, laws = 2.0, 3, {}

    def joint(data: Data) -> Law:
        """P(first, second) by forcing the first answer and reading the law of the second."""
        return {a * 10 + b: p * q for a, p in part(data, None).items() for b, q in part(data, a).items()}

    def part(data: Data, first: int | None) -> Law:
        """The law of the first selection, or of the second given the first."""
        calls: list[Law] = []
        with pytest.MonkeyPatch.context() as patch:

            def spy(values: Any, grid: Any, lower: Any, upper: Any, wanted: Any, source: Any) -> int:
                places = np.concatenate([*grid.positions(values, lower, upper), np.zeros(0, np.uint64)]).astype(int)
                scores = {
                    t: -wanted.miss(int((places < t).sum()), int((places <= t).sum())) for t in range(grid.width + 1)
                }
                factor = float(wanted.rate / wanted.unit)
                calls.append(normal({grid.low + t: math.exp(factor * s) for t, s in scores.items()}))
                return first or 0

            patch.setattr(order, "select_position", spy)
            x = np.array(data, dtype=np.int64)
            stats.quantiles(x, [0.25, 0.75], bounds=(0, top), epsilon=epsilon, neighbors=relation)
        assert len(calls) == 2
        return calls[0 if first is None else 1]

    for size in range(1, 5):
        for data in tables(size, top):
            laws[data] = joint(data)
    worst = 0.0
    for data, law in laws.items():
        for extra in range(top + 1):
            other = tuple(sorted((*data, extra) if relation is AddRemove else (*data[1:], extra)))
            if other in laws:
                assert law.keys() == laws[other].keys(), "the answers that are possible follow the data"
                worst = max(worst, *(abs(math.log(law[t] / laws[other][t])) for t in law))
    assert worst <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("shares", [[0.25, 0.75], [0.25, 0.5, 0.75], [0.1, 0.2, 0.5, 0.8, 0.9]])
def test_no_record_takes_part_in_selections_that_cost_more_than_epsilon(shares, relation, monkeypatch):
    """One that comes or goes moves a target rank by at most max(q, 1 - q), one that is replaced among the same records
    by at most 1, and what moves it by r loses at most 2 r times the rate."""
    selections = []

    def spy(values, grid, lower, upper, wanted, source):
        share = Fraction(wanted.numerator, wanted.unit * values.size)
        selections.append((set(values.tolist()), 2 * wanted.rate, max(share, 1 - share)))
        return int(np.sort(values)[math.ceil(share * values.size) - 1]) - grid.low

    def loss(*changed):
        inside = [(sum(record in part for record in changed), rate, move) for part, rate, move in selections]
        return sum(rate * (move if count == 1 else 1) for count, rate, move in inside if count)

    monkeypatch.setattr(order, "select_position", spy)
    x = np.arange(1, 41)
    stats.quantiles(x, shares, bounds=(0, 50), epsilon=2, neighbors=relation)
    assert len(selections) == len(shares)
    changes = itertools.combinations(x.tolist(), 1 if relation is AddRemove else 2)
    assert Fraction(1) <= max(loss(*changed) for changed in changes) <= 2


@pytest.mark.parametrize("relation", BOTH)
def test_the_mode_loses_at_most_epsilon_over_all_neighbors(relation):
    mechanisms = []

    class Observer:
        def see(self, what, name, given, compute):
            mechanisms.append(what)
            return compute()

    with observed_by(Observer()):
        stats.mode(["tea", "coffee"], categories=["tea", "coffee", "water"], epsilon=2, neighbors=relation)
    mechanism, worst = mechanisms[-1], 0.0  # the first is the call itself
    for counts in itertools.product(range(4), repeat=3):
        law = mechanism.probabilities(counts)
        for more, less in itertools.permutations(range(3), 2):
            other = list(counts)
            other[more] += 1
            other[less] -= relation is ReplaceOne
            if min(other) >= 0:
                worst = max(worst, *np.abs(np.log(law / mechanism.probabilities(other))))
    assert 1 < worst <= 2 * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "relation", "data"),
    [
        (stats.median, AddRemove, (1, 1, 4)),
        (stats.median, ReplaceOne, (2, 2)),
        (stats.min, ReplaceOne, (1, 3, 3)),
        (stats.max, AddRemove, (0, 5)),
    ],
)
def test_draws_follow_the_stated_law(target, relation, data):
    x = np.array(data)
    result = [int(target(x, bounds=(0, TOP), epsilon=2, neighbors=relation)) for _ in range(5000)]
    counts = np.bincount(result, minlength=TOP + 1)
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
        assert stats.median(x, bounds=bounds, epsilon=10, neighbors=relation) == truth
    for target in (stats.min, stats.max):
        result = [target(np.full(1000, 30), bounds=(0, 110), epsilon=1, neighbors=relation) for _ in range(100)]
        assert result.count(30) >= 60


@each("relation", BOTH)
@each("name", TARGETS)
@each("data", [[-7], [400, -400], list(range(-50, 300))])
def test_answers_stay_inside_the_bounds(relation, name, data):
    for kind, bounds in ((np.int64, (0, 110)), (np.float64, (0.1, 110.3)), (np.float64, (0.1, 0.3))):
        for _ in range(10):
            result = TARGETS[name](np.array(data, dtype=kind), bounds=bounds, epsilon=0.5, neighbors=relation)
            assert bounds[0] <= result <= bounds[1]
            assert isinstance(result, int) == (kind is np.int64)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(("q", "wanted"), [(0.5, 200), (0.1, 40), (0.9, 360)])
def test_the_rank_error_holds(relation, q, wanted):
    for _ in range(60):
        result = stats.quantile(np.arange(400), q, bounds=(0, 10_000), epsilon=1, neighbors=relation)
        # off by more with chance 1e-12 at most, so a false alarm in all runs together is below 1e-9
        assert abs(min(int(result), 400) - wanted) <= result.rank_error(1 - 1e-12) + 1


@each("name", TARGETS)
@each("bounds", [(0, 2**62), (-(2**63), 2**63 - 1), (0, 2**63 - 1), (0, 2**61), (2**62, 2**62 + 3)])
def test_the_widest_integer_bounds_do_not_overflow(name, bounds):
    x = np.array([-(2**63), -1, 0, 2**53 + 1, 2**63 - 1])
    for relation in BOTH:
        assert bounds[0] <= TARGETS[name](x, bounds=bounds, epsilon=1, neighbors=relation) <= bounds[1]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("epsilon", [1e-30, 1e-9, 1e6])
def test_extreme_budgets_are_served(name, epsilon):
    for relation in BOTH:
        assert 0 <= TARGETS[name](np.arange(50), bounds=(0, 49), epsilon=epsilon, neighbors=relation) <= 49


def test_the_wanted_rank_of_an_extreme_does_not_follow_a_private_size():
    for target in (stats.min, stats.max):
        assert len({aim(target, n, 1.0, AddRemove) for n in (0, 1, 40, 41, 5000)}) == 1


@pytest.mark.parametrize("bounds", [(50, 60), (-3, 9)])
def test_the_interquartile_range_stays_in_its_own_domain(bounds):
    for relation in BOTH:
        for data in (np.array([55, 56]), np.arange(100)):
            result = stats.iqr(data, bounds=bounds, epsilon=1, neighbors=relation)
            low, high = result.interval()
            assert 0 <= result <= bounds[1] - bounds[0]
            assert low <= 0 <= bounds[1] - bounds[0] <= high


@pytest.mark.parametrize(
    "x", [None, 5, "tea", {"tea": 1}, {"tea"}, np.array([["tea"]]), pd.DataFrame({"tea": [1]}), list]
)
def test_the_mode_of_what_is_no_column_is_refused(x):
    with refuses(DitherError, "x:"):
        stats.mode(x, categories=["tea"], epsilon=1)


@pytest.mark.parametrize("categories", [None, [], "tea", ["tea", "tea"], [[1]], 5])
def test_wrong_categories_are_refused(categories):
    with refuses(DitherError, "categories:"):
        stats.mode(["tea"], categories=categories, epsilon=1)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300])
def test_a_budget_too_small_to_serve_is_refused(epsilon):
    for target in TARGETS.values():
        with refuses(DitherError, "epsilon:"):
            target([1.0], bounds=(0, 1), epsilon=epsilon)


def test_the_mode_does_not_fail_on_records_that_are_no_category():
    odd = [None, math.nan, [1], ([1],), {"a": 1}, object(), "tea", 3, np.int64(3)]
    for relation in BOTH:
        assert stats.mode([*odd, *["tea"] * 500], categories=["tea", 3], epsilon=1, neighbors=relation) == "tea"


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan, None, "0.5", True])
def test_a_wrong_share_is_refused(q):
    for ask in (lambda: stats.quantile([1.0], q, (0, 1), 1), lambda: stats.quantiles([1.0], [q], (0, 1), 1)):
        with refuses(DitherError, "q:"):
            ask()


def test_a_delta_is_for_the_smooth_method_only() -> None:
    with refuses(InvalidArgument, "leave delta out"):
        stats.median([1.0], bounds=(0, 1), epsilon=1, delta=1e-6)
