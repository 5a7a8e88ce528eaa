"""Intervals hold the exact answer as often as they say, for every statistic, relation, type and size.

Each test allows for chance at 1e-9: the fewest hits a right interval can have but for bad luck of that size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dither import AddRemove, ReplaceOne, stats
from support import each

RUNS, CONFIDENCE = 1000, 0.95
FEWEST = int(scipy_stats.binom.ppf(1e-9, RUNS, CONFIDENCE))
TOP = 4
CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "count": (lambda x, **more: stats.count(x > 1, 1, **more), lambda x: (x > 1).sum(), {}),
    "sum": (lambda x, **more: stats.sum(x, (0, TOP), 1, **more), np.sum, {}),
    "mean": (lambda x, **more: stats.mean(x, (0, TOP), 1, **more), np.mean, {}),
    "mean, delta": (lambda x, **more: stats.mean(x, (0, TOP), 1, 0.05, **more), np.mean, {}),
    "variance": (lambda x, **more: stats.var(x, (0, TOP), 1, **more), lambda x: np.var(x, ddof=1), {}),
    "std": (lambda x, **more: stats.std(x, (0, TOP), 1, **more), lambda x: np.std(x, ddof=1), {}),
}


def data(whole: bool, n: int) -> Any:
    x = np.arange(n) * 7919 % 1000 / 1000 * TOP
    return np.rint(x).astype(np.int64) if whole else x


def hits(ask: Any, truth: float, width: float = 1.0) -> int:
    """How many intervals contain the truth, if each has ``width`` times its own width."""
    result = 0
    for _ in range(RUNS):
        low, high = ask().interval(CONFIDENCE)
        narrower = (1 - width) * (high - low) / 2
        result += low + narrower - 1e-6 <= truth <= high - narrower + 1e-6
    return result


def test_intervals_of_three_fifths_their_width_are_seen_to_miss():
    """Under Laplace noise they would hold with probability 0.83, which is six standard deviations too few."""
    ask, truth, _ = CASES["sum"]
    x = data(False, 500)
    assert hits(lambda: ask(x, neighbors=AddRemove), float(truth(x)), 0.6) < FEWEST


@pytest.mark.slow
@each(("whole", "n"), [(True, 5), (False, 500)])
@each("relation", [AddRemove, ReplaceOne])
@each("name", [name for name in CASES if name != "mean, delta"])
def test_an_interval_holds_as_often_as_it_says(name, relation, whole, n):
    ask, truth, options = CASES[name]
    x = data(whole, n)
    assert hits(lambda: ask(x, neighbors=relation, **options), float(truth(x))) >= FEWEST


@pytest.mark.slow
@pytest.mark.parametrize("relation", [AddRemove, ReplaceOne])
def test_an_interval_of_a_mean_with_gaussian_noise_holds_as_often_as_it_says(relation):
    ask, truth, options = CASES["mean, delta"]
    x = data(True, 50)
    assert ask(x, neighbors=relation).mechanism == "Gaussian"
    assert hits(lambda: ask(x, neighbors=relation, **options), float(truth(x))) >= FEWEST


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 500])
@pytest.mark.parametrize("statistic", [stats.var, stats.std])
def test_an_interval_of_the_bounded_method_holds_as_often_as_it_says(statistic, n):
    x = data(False, n)
    truth = float(np.var(x, ddof=1) if statistic is stats.var else np.std(x, ddof=1))
    assert hits(lambda: statistic(x, (0, TOP), 1, method="bounded"), truth) >= FEWEST


@pytest.mark.slow
@pytest.mark.parametrize("relation", [AddRemove, ReplaceOne])
@pytest.mark.parametrize("delta", [None, 0.05])
def test_the_error_of_a_histogram_holds_for_all_bins_together(relation, delta):
    x = data(False, 50)
    truth = np.histogram(x, bins=20, range=(0, TOP))[0]
    result = 0
    for _ in range(RUNS):
        answer = stats.histogram(x, (0, TOP), 1, delta, bins=20, neighbors=relation)
        result += int(np.abs(answer.counts - truth).max() <= answer.error(CONFIDENCE))
    assert result >= FEWEST


@pytest.mark.parametrize("relation", [AddRemove, ReplaceOne])
@pytest.mark.parametrize("name", CASES)
def test_an_interval_is_not_wider_than_it_must_be(name, relation):
    """Half the width of one that always holds would fail: no interval hides behind the bounds at a good size."""
    ask, _, options = CASES[name]
    x = data(False, 20_000)
    low, high = ask(x, neighbors=relation, **options).interval(CONFIDENCE)
    assert high - low < {"count": 20, "sum": 20 * TOP}.get(name, 0.02 * TOP)


@pytest.mark.parametrize("relation", [AddRemove, ReplaceOne])
@pytest.mark.parametrize("x", [[], [0], [TOP], [0, TOP], [TOP] * 3])
def test_an_interval_of_very_few_records_has_ordered_ends(relation, x):
    for name, (ask, _, options) in CASES.items():
        if relation is ReplaceOne and (len(x) < 2 and name not in ("count", "sum")):
            continue
        for _ in range(20):
            low, high = ask(np.array(x, dtype=float), neighbors=relation, **options).interval(0.999)
            assert low <= high
