"""The multivariate Kolmogorov-Smirnov distance, against enumeration and SciPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dither import InvalidArgument, InvalidData, PureDP, ReplaceOne
from dither.density import Density, distance, ks_distance, release
from dither.randomness import SeededSource
from support import each, refuses


def enumerated(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Over all points of the grid of all coordinates."""
    both, worst = np.concatenate([x, y]), 0.0
    for t in itertools.product(*[np.unique(column) for column in both.T]):
        worst = max(worst, abs((x <= t).all(axis=1).mean() - (y <= t).all(axis=1).mean()))
    return float(worst)


@each("dense", [1, 4, 1 << 14])
@each("dimensions", [1, 2, 3, 4])
@each("values", [2, 4, 30])
def test_two_samples_by_enumeration(dense: int, dimensions: int, values: int) -> None:
    rng = np.random.default_rng([dimensions, values])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distance, "_DENSE", dense)
        for n, m in rng.integers(1, 9, (12, 2)):
            x, y = (rng.integers(0, values, (size, dimensions)).astype(float) for size in (n, m))
            assert ks_distance(x, y) == pytest.approx(enumerated(x, y), abs=1e-15)
            assert ks_distance(x, x) == 0


def test_one_dimension_is_that_of_scipy() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=3000), rng.normal(0.1, size=1700)
    assert ks_distance(x, y) == pytest.approx(stats.ks_2samp(x, y).statistic, abs=1e-15)
    assert ks_distance(x.tolist(), y[:, np.newaxis]) == ks_distance(x, y)


@each("dimensions", [2, 3])
def test_boxes_that_are_cut_and_left_out_lose_nothing(dimensions: int) -> None:
    """On 300 records a grid, the sums over it are taken at once."""
    rng = np.random.default_rng(dimensions)
    x, y = rng.uniform(size=(150, dimensions)), rng.beta(1.2, 1, size=(150, dimensions))
    both = np.concatenate([x, y])
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] for column in both.T])
    sums = np.zeros([300] * dimensions)
    np.add.at(sums, tuple(ranks.T), np.repeat([1 / 150, -1 / 150], 150))
    for axis in range(dimensions):
        sums = np.cumsum(sums, axis=axis)
    assert ks_distance(x, y) == pytest.approx(np.abs(sums).max(), abs=1e-12)


@each("n", [2, 3, 4])
def test_replacing_a_record_moves_the_distance_by_one_nth(n: int) -> None:
    corners = list(itertools.product([0.0, 1.0], [0.0, 1.0]))
    z, moved = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]), 0.0
    for rest in itertools.combinations_with_replacement(corners, n - 1):
        for a, b in itertools.combinations(corners, 2):
            moved = max(moved, abs(ks_distance(np.array([a, *rest]), z) - ks_distance(np.array([b, *rest]), z)))
    assert moved <= 1 / n + 1e-12
    assert moved > 0.9 / n


def random_density(rng: np.random.Generator, shape: tuple[int, ...]) -> Density:
    edges = tuple(np.concatenate([[0.0], np.sort(rng.uniform(0, 1, size - 1)), [1.0]]) for size in shape)
    weights = rng.dirichlet(np.full(int(np.prod(shape)), 0.5)).reshape(shape)
    return Density(weights, edges, PureDP(1), ReplaceOne, "histogram")


def cdf_by_boxes(density: Density, t: Any) -> float:
    """The sum of the weights times the shares of the bins below t."""
    shares = [np.clip((c - edges[:-1]) / np.diff(edges), 0, 1) for c, edges in zip(t, density.edges, strict=True)]
    total = density.weights
    for share in shares:
        total = np.tensordot(share, total, axes=(0, 0))
    return float(total)


@each("shape", [(3,), (2, 3), (4, 1), (2, 3, 2), (2, 2, 2, 2)])
def test_the_distribution_function_of_a_density(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    density = random_density(rng, shape)
    points = rng.uniform(-0.3, 1.3, (40, len(shape)))
    expected = [cdf_by_boxes(density, t) for t in points]
    ours = density.cdf(points[:, 0]) if len(shape) == 1 else density.cdf(points)
    assert ours == pytest.approx(expected, abs=1e-12)
    if len(shape) > 1:
        assert density.cdf(points[0]) == pytest.approx(expected[0], abs=1e-12)
        assert density.cdf(np.ones(len(shape))) == pytest.approx(1, abs=1e-12)
        with refuses(InvalidArgument, "coordinates"):
            density.cdf(np.zeros(len(shape) + 1))


@each("shape", [(5,), (3, 4), (2, 2, 3)])
def test_densities_and_samples_by_a_fine_search(shape: tuple[int, ...]) -> None:
    """The supremum is at least what a search finds, and is met at the vertices and just below them."""
    rng = np.random.default_rng(shape)
    one, other = random_density(rng, shape), random_density(rng, shape[::-1] if len(shape) == 2 else shape)
    sample = rng.uniform(-0.1, 1.1, (9, len(shape)))
    lines = [
        np.unique(np.concatenate([a, b, c, c - 1e-9, np.linspace(-0.2, 1.2, 15)]))
        for a, b, c in zip(one.edges, other.edges, sample.T, strict=True)
    ]
    points = np.array(list(itertools.product(*lines)))
    first, second = ([cdf_by_boxes(density, t) for t in points] for density in (one, other))
    empirical = (sample[np.newaxis] <= points[:, np.newaxis]).all(axis=2).mean(axis=1)
    assert ks_distance(one, other) == pytest.approx(np.abs(np.subtract(first, second)).max(), abs=1e-7)
    assert ks_distance(sample, one) == pytest.approx(np.abs(first - empirical).max(), abs=1e-7)
    assert ks_distance(one, sample) == ks_distance(sample, one)


def test_a_release_of_two_columns_is_near_its_data() -> None:
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.beta(2, 5, 2000), rng.beta(5, 2, 2000)])
    result = release(x, [(0, 1), (0, 1)], 1, bins=8, source=SeededSource(1))
    assert ks_distance(result, x) < 0.1
    assert ks_distance(result, 1 - x) > 0.5


def test_what_is_no_pair_of_samples_is_refused() -> None:
    with refuses(InvalidArgument, "2 dimension(s)"):
        ks_distance(np.zeros((3, 2)), np.zeros((3, 3)))
    with refuses(InvalidData, "at least one record"):
        ks_distance([], [1.0])
    with refuses(InvalidData, "finite numbers"):
        ks_distance([1.0, np.nan], [1.0])
    wide = np.arange(20_000.0)
    density = random_density(np.random.default_rng(1), (2, 2))
    with refuses(InvalidArgument, "pairs of coordinates"):
        ks_distance(np.column_stack([wide, wide]), density)
