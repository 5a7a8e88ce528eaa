from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dp
from dither import AddRemove, DitherError, NotPrivate, PureDP, ReplaceOne
from dither.density import Density, release
from dither.randomness import SeededSource
from support import each, refuses

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
