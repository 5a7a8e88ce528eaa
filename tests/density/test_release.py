""""""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dp
from dither import AddRemove, DitherError, Laplace, NotPrivate, PureDP, ReplaceOne
from dither.density import Density, release
from dither.density.release import (
    default_bins,
    default_ks,
    default_smoothed,
    noisy_counts,
    perturbed,
    smallest_theta,
    smoothed_draws,
)
from dither.density.result import on_simplex
from dither.randomness import SeededSource
from support import FALSE_ALARM, SOON_S, each, refuses, surprise

METHODS: list[Any] = ["histogram", "perturbed", "smoothed", "ks"]
SENTINEL = 987654.321


def made(weights: Any, *edges: Any) -> Density:
    lines = tuple(np.asarray(line, dtype=float) for line in edges)
    return Density(np.asarray(weights, dtype=float), lines, PureDP(1), ReplaceOne, "histogram")


@each("method", METHODS)
@each("data", [[0.5], [0.0, 1.0], [-5.0, 99.0, 0.3], np.linspace(0, 1, 500), [True, False]])
@each("epsilon", [0.01, 1, 50])
def test_releases_are_distributions(method: Any, data: Any, epsilon: float) -> None:
    result = release(data, (0, 1), epsilon, method, source=SeededSource(3))
    assert np.all(result.weights >= 0)
    assert math.fsum(result.weights.ravel().tolist()) == pytest.approx(1, abs=1e-12)
    assert result.guarantee == PureDP(epsilon)
    assert (result.edges[0][0], result.edges[0][-1]) == (0, 1)
    grid = np.linspace(-0.5, 1.5, 301)
    cdf = result.cdf(grid)
    assert np.all(np.diff(cdf) >= 0)
    assert (cdf[0], cdf[-1], result.cdf(0.0), result.cdf(1.0)) == (0, 1, 0, 1)
    q = np.linspace(0, 1, 101)
    back = result.quantile(q)
    assert np.all(np.diff(back) >= 0)
    assert np.allclose(result.cdf(back), q, atol=1e-12)
    sample = result.sample(200, source=SeededSource(1))
    assert np.all((sample >= 0) & (sample <= 1))
    assert "seeded, not private" in repr(result)
    assert "seeded" not in repr(release(data, (0, 1), epsilon, method))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12).filter(any), st.floats(0, 1))
def test_quantile_is_the_smallest_with_enough_below(parts: list[int], q: float) -> None:
    weights = np.array(parts) / sum(parts)
    result = made(weights, np.arange(len(parts) + 1))
    t = result.quantile(q)
    assert result.cdf(t) >= q - 1e-12
    if t > 0:
        assert result.cdf(t - 1e-6) < q + 1e-12
    last = max(i for i, c in enumerate(parts) if c) + 1
    assert result.quantile(1.0) <= last


def test_quantile_one_stops_at_the_last_bin_with_weight() -> None:
    """Ten tenths add up to less than 1 in floats."""
    assert made([0.1] * 10 + [0.0] * 10, np.arange(21)).quantile(1.0) == 10


@settings(max_examples=50)
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 9))
def test_samples_stay_in_bounds(low: float, width: float, bins: int) -> None:
    edges = np.linspace(low, low + width, bins + 1)
    result = made(np.full(bins, 1 / bins), edges)

    class Largest(SeededSource):
        def words(self, count: int) -> Any:
            return np.full(count, 2**64 - 1, dtype=np.uint64)

    for source in (Largest(1), SeededSource(2)):
        sample = result.sample(50, source=source)
        assert np.all((sample >= edges[0]) & (sample <= edges[-1]))
    assert result.sample(0).shape == (0,)


@pytest.mark.parametrize("method", METHODS)
def test_several_dimensions(method: Any) -> None:
    data = np.column_stack([np.linspace(0, 1, 400), np.linspace(0, 10, 400) ** 2 / 10])
    result = release(data, [(0, 1), (0, 10)], 5, method, bins=[4, 3])
    assert result.weights.shape == (4, 3)
    assert result.weights.sum() == pytest.approx(1)
    assert result.sample(20).shape == (20, 2)
    assert (result.density() * (1 / 4) * (10 / 3)).sum() == pytest.approx(1)
    assert result.cdf([1.0, 10.0]) == pytest.approx(1)
    with refuses(DitherError, "one dimension"):
        result.quantile(0.5)
    with refuses(DitherError, "2 coordinates"):
        result.cdf(0.5)
    cube = release(np.zeros((50, 3)), [(0, 1)] * 3, 1, method, bins=2)
    assert cube.weights.shape == (2, 2, 2)
    with refuses(DitherError, "one or two dimensions"):
        cube.plot()
    assert release(data, [(0, 1), (0, 10)], 1, method).weights.ndim == 2


def test_cells_are_where_the_records_are() -> None:
    data = np.array([[0.0, 0.0], [0.24, 9.9], [0.25, 10.0], [1.0, -3.0], [7.0, 5.0]])
    result = release(data, [(0, 1), (0, 10)], 10**6, bins=(4, 2))
    want = np.zeros((4, 2))
    for cell in [(0, 0), (0, 1), (1, 1), (3, 0), (3, 1)]:
        want[cell] += 0.2
    assert np.allclose(result.weights, want, atol=1e-12)
    ks = release(data[:, 0], (0, 1), 10**6, "ks", bins=4, points=5)
    assert np.allclose(ks.weights, [0.4, 0.2, 0, 0.4])


def test_plots() -> None:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    line = release([0.5] * 20, (0, 1), 1)
    assert isinstance(line.plot(), Axes)
    axes = Figure().add_subplot()
    assert line.plot(axes, color="red") is axes
    plane = release(np.random.default_rng(1).random((50, 2)), [(0, 1)] * 2, 1)
    assert isinstance(plane.plot(), Axes)


REFUSED: list[Any] = [
    ((np.zeros((5, 2)), [(0, 1)] * 2, 1, "ks"), {"bins": (9, 9), "points": 9}),
    (([0.5], (0, 1), 1, "smoothed"), {"neighbors": AddRemove}),
    (([0.5], (0, 1), 1, "ks"), {"neighbors": AddRemove}),
    (([0.5], (0, 1), 1, "best"), {}),
    (([0.5], (0, 1), 1), {"bins": 0}),
    (([0.5], (0, 1), 1), {"bins": -3}),
    (([0.5], (0, 1), 1), {"bins": 2.5}),
    (([0.5], (0, 1), 1), {"bins": True}),
    (([0.5], (0, 1), 1), {"bins": "ten"}),
    (([0.5], (0, 1), 1), {"bins": [2, 2]}),
    (([0.5], (0, 1), 1), {"bins": []}),
    (([0.5], (0, 1), 1), {"bins": 1 << 40}),
    (([0.5], (0, 1), 1, "ks"), {"points": 0}),
    (([0.5], (0, 1), 1, "smoothed"), {"points": 1.5}),
    (([], (0, 1), 1), {}),
    (([], (0, 1), 1, "ks"), {}),
    ((np.zeros((0, 2)), [(0, 1)] * 2, 1), {}),
    (([SENTINEL, math.nan], (0, 1), 1), {}),
    (([SENTINEL, math.inf], (0, 1), 1, "ks"), {}),
    (([SENTINEL, None], (0, 1), 1), {}),
    ((np.array([[SENTINEL, math.nan]]), [(0, 1)] * 2, 1), {}),
    ((np.array([[SENTINEL, 1.0]]), [(0, 1)] * 2, 1), {"nan": "drop"}),
    (([math.nan], (0, 1), 1), {"nan": "drop"}),
    ((["987654.321"], (0, 1), 1), {}),
    (([SENTINEL + 1j], (0, 1), 1), {}),
    (([[SENTINEL]], (0, 1), 1), {}),
    ((np.full((2, 2, 2), SENTINEL), (0, 1), 1), {}),
    ((SENTINEL, (0, 1), 1), {}),
    ((None, (0, 1), 1), {}),
    (([0.5], None, 1), {}),
    (([0.5], (0, 1), None), {}),
    (([0.5], None, 1), {}),
    (([0.5], (1, 0), 1), {}),
    (([0.5], (0, 1), 0), {}),
    (([0.5], (0, 1), -1), {}),
    (([0.5], (0, 1), 1e-14, "ks"), {}),
    (([0.5], (-1e308, 1e308), 1), {}),
    (([0.5], (1.0, 1.0 + 2**-50), 1), {"bins": 100}),
    ((np.zeros((5, 2)), (0, 1, 2), 1), {}),
    ((np.zeros((5, 2)), None, 1), {}),
    ((np.zeros((5, 2)), 3, 1), {}),
    ((np.zeros((5, 0)), [], 1), {}),
    (([0.5], (0, 1), 1), {"neighbors": "replace"}),
    (([0.5], (0, 1), 1), {"nan": "guess"}),
    (([0.5], (0, 1), 1), {"source": 5}),
]


@each(("positional", "named"), REFUSED)
def test_refusals(positional: Any, named: Any) -> None:
    with refuses((ValueError, TypeError), hiding=["987654"]) as refused:
        release(*positional, **named)
    assert isinstance(refused.value, DitherError), repr(refused.value)


def test_the_right_kind_of_refusal() -> None:
    with refuses(NotPrivate):
        release([0.5], (0, 1), 1, "ks", neighbors=AddRemove)
    line = release([0.5], (0, 1), 1)
    for q in (-0.1, 1.1, math.nan, [0.5, 2]):
        with refuses(DitherError):
            line.quantile(q)
    with refuses(DitherError):
        line.sample(-1)


def test_nothing_depends_on_n_where_it_is_private() -> None:
    shapes = {
        release([0.5] * n, (0, 1), 1, m, neighbors=AddRemove).weights.shape for n in (0, 1, 9999) for m in METHODS[:2]
    }
    assert shapes == {(100,)}
    empty = release([], (0, 1), 1, neighbors=AddRemove)
    assert empty.weights.sum() == pytest.approx(1)
    assert release([math.nan], (0, 1), 1, neighbors=AddRemove, nan="drop").weights.size == 100
    assert release([math.nan] * 50, (0, 1), 10**6, nan="lower", bins=2).weights.tolist() == [1, 0]


@pytest.mark.parametrize("method", METHODS[:2])
@pytest.mark.parametrize("neighbors", [AddRemove, ReplaceOne])
def test_noise_beyond_all_counts(method: Any, neighbors: Any) -> None:
    for epsilon in (1e-3, 1e-12, 1e-17, 1e-18):
        for seed in range(5):
            result = release([0.5], (0, 1), epsilon, method, bins=50, neighbors=neighbors, source=SeededSource(seed))
            assert np.all(result.weights >= 0)
            assert result.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("method", "most"), [("histogram", 0.05), ("perturbed", 0.1), ("ks", 0.05), ("smoothed", 0.25)]
)
def test_accuracy(method: Any, most: float) -> None:
    data = np.sort(np.random.default_rng(1).beta(2, 5, 10_000))
    for seed in range(2):
        result = release(data, (0, 1), 1, method, source=SeededSource(seed))
        share = np.arange(1, data.size + 1) / data.size
        assert np.abs(result.cdf(data) - share).max() < most


def test_the_public_face() -> None:
    assert dp.density.release is release
    assert dp.density.Density is Density


mp.mp.dps = 40


@pytest.mark.parametrize(("m", "n", "k"), [(2, 1, 1), (4, 3, 2), (10, 1000, 50), (64, 7, 9), (3, 10**6, 1)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(5)])
def test_the_smallest_theta(m: int, n: int, k: int, epsilon: Fraction) -> None:
    theta = smallest_theta(m, n, k, epsilon)

    def worst(t: Fraction) -> Fraction:
        """The largest ratio of a cell's chances over all pairs of neighboring tables."""
        counts = range(min(n, 4))
        return max(((1 - t) * Fraction(c + 1, n) + t / m) / ((1 - t) * Fraction(c, n) + t / m) for c in counts)

    def real(x: Fraction) -> Any:
        return mp.mpf(x.numerator) / x.denominator

    assert k * mp.log(real(worst(theta))) <= real(epsilon)
    assert k * mp.log(real(worst(theta * (1 - Fraction(1, 10**12))))) > real(epsilon)


def test_smoothed_draws_are_private_by_enumeration() -> None:
    m, n, k, epsilon = 3, 3, 2, Fraction(1)
    theta = smallest_theta(m, n, k, epsilon)
    assert theta <= 1
    laws = {}
    for records in itertools.product(range(m), repeat=n):
        probability = [(1 - theta) * Fraction(records.count(c), n) + theta / m for c in range(m)]
        laws[records] = {
            z: math.prod((probability[c] for c in z), start=Fraction(1)) for z in itertools.product(range(m), repeat=k)
        }
    worst = Fraction(0)
    for x, y in itertools.permutations(laws, 2):
        if sum(a != b for a, b in zip(x, y, strict=True)) == 1:
            worst = max(worst, *(laws[x][z] / laws[y][z] for z in laws[x]))
    assert 0.999 < math.log(worst) <= 1


def test_smoothed_draws_follow_the_mixture() -> None:
    cells = np.array([0, 0, 0, 2])
    counts = smoothed_draws(cells, 4, 40_000, Fraction(1, 5), SeededSource(1))
    assert surprise(counts, np.array([0.65, 0.05, 0.25, 0.05])) > FALSE_ALARM
    assert surprise(counts, np.array([0.6375, 0.0625, 0.2375, 0.0625])) < FALSE_ALARM


def test_a_huge_epsilon_does_not_hang() -> None:
    start = time.process_time()
    for method in ("histogram", "perturbed", "smoothed", "ks"):
        result = dp.density.release([0.1, 0.9], (0, 1), 10**6, method, bins=2, points=1)  # type: ignore[arg-type]
        assert result.weights.sum() == 1
    assert time.process_time() - start < SOON_S


@given(st.lists(st.floats(-1e300, 1e300) | st.floats(-2, 2), min_size=1, max_size=12))
def test_the_simplex(values: list[float]) -> None:
    x = np.array(values)
    result = on_simplex(x)
    assert np.all(result >= 0)
    assert math.fsum(result.tolist()) == pytest.approx(1, abs=1e-12)
    order = np.argsort(x, kind="stable")
    assert np.all(np.diff(result[order]) >= 0)


@given(st.lists(st.integers(-40, 40), min_size=1, max_size=7), st.integers(1, 40))
def test_the_simplex_is_the_nearest_point(values: list[int], scale: int) -> None:
    """Against the optimality conditions: x - found is one constant where found > 0, and at most it elsewhere."""
    x = np.array(values) / scale
    result = on_simplex(x)
    shift = (x - result)[result > 0]
    assert np.ptp(shift) < 1e-12
    assert np.all(x[result == 0] <= shift[0] + 1e-12)
    already = np.abs(x) / max(np.abs(x).sum(), 1e-300)
    if np.abs(x).sum() > 0:
        assert np.allclose(on_simplex(already), already, atol=1e-15)


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=9))
def test_perturbed(noisy: list[int]) -> None:
    result = perturbed(np.array(noisy))
    assert np.all(result >= 0)
    assert result.sum() == pytest.approx(1)
    if max(noisy) > 0:
        assert np.array_equal(result > 0, np.array(noisy) > 0)


def test_counts_change_by_at_most_the_sensitivity_of_the_mechanism() -> None:
    for neighbors, most in ((AddRemove, 1), (ReplaceOne, 2)):
        assert dp.sensitivity.histogram(neighbors=neighbors) == most
        for n in range(4):
            for x in itertools.product(range(3), repeat=n):
                others = [x[:i] + x[i + 1 :] for i in range(n)]
                if neighbors is ReplaceOne:
                    others = [(*rest, c) for rest in others for c in range(3)]
                for y in others:
                    counts = [np.bincount(np.array(t, dtype=np.int64), minlength=3) for t in (x, y)]
                    assert np.abs(counts[0] - counts[1]).sum() <= most


@pytest.mark.parametrize(("neighbors", "scale"), [(ReplaceOne, 2.0), (AddRemove, 1.0)])
def test_the_noise_on_each_count(neighbors: Any, scale: float) -> None:
    mechanism = Laplace(dp.sensitivity.histogram(neighbors=neighbors), 1)
    noise = noisy_counts(np.full((100, 200), 7), mechanism, SeededSource(9)) - 7
    assert noise.shape == (100, 200)
    k = np.arange(-60, 61)
    for width, fine in ((scale, True), (1.2 * scale, False)):
        p = np.exp(-np.abs(k) / width)
        counts = np.bincount(np.clip(noise.ravel() + 60, 0, 120), minlength=121)
        assert (surprise(counts, p / p.sum()) > FALSE_ALARM) is fine


def test_default_sizes() -> None:
    for n in (1, 2, 10, 1000, 10**7):
        for epsilon in (1e-6, 0.1, 1.0, 10.0, 1e6):
            assert 2 <= default_bins(n, epsilon) <= 4096
            cells, k = default_ks(n, epsilon)
            assert 2 <= cells <= min(k, 200)
            m, k = default_smoothed(n, epsilon)
            assert m >= 2
            assert k >= 1
