"""Smooth sensitivity against the formula and against brute force over all tables of small domains."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import DitherError, InvalidArgument, InvalidData, NotPrivate, sensitivity
from dither.sensitivity.smooth import rank_of
from support import each, refuses

DOMAIN = (0, 1, 2, 5, 10)
BOUNDS = (0, 10)
Table = tuple[float, ...]
SLACK = 1 + 1e-9
LEAST = 2.0**-499


def formula(x: Any, m: int, bounds: tuple[float, float], beta: float) -> float:
    """max over k of exp(-k beta) max over t of x_(m+t) - x_(m+t-k-1), term by term."""
    ordered, n = sorted(min(max(v, bounds[0]), bounds[1]) for v in x), len(x)

    def at(i: int) -> float:
        return bounds[0] if i < 1 else bounds[1] if i > n else ordered[i - 1]

    return max(math.exp(-k * beta) * max(at(m + t) - at(m + t - k - 1) for t in range(k + 2)) for k in range(n + 2))


def close(found: float, true: float, width: float) -> bool:
    """At least the truth, and little more."""
    return true * (1 - 1e-13) <= found <= true * SLACK + width * LEAST


@pytest.mark.slow
@each("n", [1, 2, 3, 4, 7, 8, 31, 40])
@each("beta", [1e-11, 1e-3, 0.05, 0.3, 1.0, 5.0, 100.0])
def test_it_is_the_formula_at_every_rank(n: int, beta: float) -> None:
    rng = np.random.default_rng(n)
    columns = [
        rng.uniform(-3, 12, n),  # some beyond the bounds
        rng.integers(0, 4, n).astype(float),  # ties
        np.full(n, 3.0),
        np.zeros(n),
        np.full(n, 10.0),
        np.where(np.arange(n) % 2, 0.0, 10.0),
        10 * rng.beta(0.1, 0.1, n),
        np.sort(rng.lognormal(0, 1, n)),
    ]
    for x in columns:
        for m in {1, 2, (n + 1) // 2, n // 2 + 1, n} & set(range(1, n + 1)):
            assert close(sensitivity.smooth_order(x, m, BOUNDS, beta), formula(x, m, BOUNDS, beta), 10.0)
        assert close(sensitivity.smooth_min(x, BOUNDS, beta), formula(x, 1, BOUNDS, beta), 10.0)
        assert close(sensitivity.smooth_max(x, BOUNDS, beta), formula(x, n, BOUNDS, beta), 10.0)
        assert close(sensitivity.smooth_median(x, BOUNDS, beta), formula(x, (n + 1) // 2, BOUNDS, beta), 10.0)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.floats(-5, 15) | st.integers(0, 10), min_size=1, max_size=40),
    st.floats(0, 1),
    st.floats(1e-9, 30.0),
)
def test_any_column_any_rank(x: list[float], q: float, beta: float) -> None:
    m = rank_of(q, len(x))
    assert close(sensitivity.smooth_order(x, m, BOUNDS, beta), formula(x, m, BOUNDS, beta), 10.0)
    assert sensitivity.smooth_quantile(x, q, BOUNDS, beta) == sensitivity.smooth_order(x, m, BOUNDS, beta)


@pytest.mark.parametrize("beta", [0.003, 0.02])
def test_long_columns(beta: float) -> None:
    rng = np.random.default_rng(8)
    for x in (rng.lognormal(0, 1, 1200), rng.integers(0, 3, 1201), np.repeat([2.0, 7.0], [599, 602])):
        ordered = np.concatenate([[0.0], np.sort(np.clip(x, 0, 10)), [10.0]])
        for m in (1, 600, 601, x.size):
            i, j = np.arange(m + 1)[:, None], np.arange(m, x.size + 2)[None, :]
            true = ((ordered[j] - ordered[i]) * np.exp(-beta * np.maximum(j - i - 1, 0))).max()
            assert close(sensitivity.smooth_order(x, m, BOUNDS, beta), float(true), 10.0)


# --- brute force over all tables -------------------------------------------------------------------------------------


def order(x: Table, m: int) -> float:
    return sorted(x)[m - 1]


def trimmed(x: Table) -> Fraction:
    cut = math.floor(0.3 * len(x))
    kept = sorted(x)[cut : len(x) - cut]
    return Fraction(sum(kept), len(kept))


def iqr(x: Table) -> float:
    return order(x, rank_of(0.75, len(x))) - order(x, rank_of(0.25, len(x)))


def neighbors(x: Table) -> set[Table]:
    """Sorted tables that differ in one record."""
    return {tuple(sorted((*x[:i], v, *x[i + 1 :]))) for i in range(len(x)) for v in DOMAIN}


def local(f: Callable[[Table], Any], x: Table) -> Any:
    return max(abs(f(x) - f(y)) for y in neighbors(x))


def functions(n: int) -> dict[str, tuple[Callable[[Table], Any], Callable[[Table, float], float]]]:
    result: dict[str, Any] = {
        f"rank {m}": (lambda x, m=m: order(x, m), lambda x, b, m=m: sensitivity.smooth_order(x, m, BOUNDS, b))
        for m in range(1, n + 1)
    }
    result["median"] = lambda x: order(x, rank_of(0.5, n)), lambda x, b: sensitivity.smooth_median(x, BOUNDS, b)
    result["min"] = min, lambda x, b: sensitivity.smooth_min(x, BOUNDS, b)
    result["max"] = max, lambda x, b: sensitivity.smooth_max(x, BOUNDS, b)
    result["mean"] = lambda x: Fraction(sum(x), n), lambda x, b: sensitivity.smooth_mean(x, BOUNDS, b)
    result["iqr"] = iqr, lambda x, b: sensitivity.smooth_iqr(x, BOUNDS, b)
    if n >= 4:
        result["trimmed"] = trimmed, lambda x, b: sensitivity.smooth_trimmed_mean(x, 0.3, BOUNDS, b)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("beta", [0.1, 1.0, 100.0])
def test_bounds_the_local_sensitivity_and_is_smooth_over_all_pairs(n: int, beta: float) -> None:
    tables = list(itertools.combinations_with_replacement(DOMAIN, n))
    for name, (f, smooth) in functions(n).items():
        sizes = {x: smooth(x, beta) for x in tables}
        logs = {x: mp.log(mp.mpf(size)) for x, size in sizes.items()}
        for x in tables:
            assert Fraction(sizes[x]) >= Fraction(local(f, x)), (name, x)
            assert all(logs[x] <= logs[y] + beta for y in neighbors(x)), (name, x)


@cache
def within(x: Table, k: int) -> frozenset[Table]:
    result = {x}
    for _ in range(k):
        result = set().union(*(neighbors(y) for y in result))
    return frozenset(result)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_local_order_at_a_distance_and_the_distance_itself(n: int) -> None:
    for x in itertools.combinations_with_replacement(DOMAIN, n):
        for m in range(1, n + 1):
            true = [max(local(lambda y, m=m: order(y, m), z) for z in within(x, k)) for k in range(n + 1)]
            assert [sensitivity.local_order(x, m, BOUNDS, k) for k in range(n + 1)] == true
            assert sensitivity.local_order(x, m, BOUNDS, n + 5) == 10
            for limit in (0, 0.5, 1, 2, 4, 5, 8, 9, 9.5):
                expected = next(k for k in range(n + 1) if true[k] > limit)
                assert sensitivity.distance_to_exceed(x, m, BOUNDS, limit) == expected, (x, m, limit)
            assert sensitivity.distance_to_exceed(x, m, BOUNDS, 10) == n + 1  # no table exceeds it
    assert sensitivity.local_median([1, 2, 4, 8, 16], (0, 100), 1) == 12


def test_a_limit_that_is_just_met_is_not_exceeded_and_rounding_hides_no_excess() -> None:
    ages = [30, 30, 31, 31, 32, 32, 33, 33, 34, 34, 35]
    assert sensitivity.distance_to_exceed(ages, 6, (0, 120), 1) == 2
    a, b = 1.0, -(2.0**-60)  # a - b is above 1 but rounds to it
    assert a - b == 1.0
    assert sensitivity.distance_to_exceed([b, b, a], 2, (-1, 1), 1.0) == 0
    assert sensitivity.local_order([b, b, a], 2, (-1, 1)) == math.nextafter(1, 2)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=3, max_size=15), st.data())
def test_the_distance_moves_by_at_most_one(x: list[float], data: Any) -> None:
    y = list(x)
    y[data.draw(st.integers(0, len(x) - 1))] = data.draw(st.floats(0, 1))
    m, limit = data.draw(st.integers(1, len(x))), data.draw(st.floats(0, 0.99))
    first, second = (sensitivity.distance_to_exceed(z, m, (0, 1), limit) for z in (x, y))
    assert abs(first - second) <= 1


# --- smoothness, exactly in floats -----------------------------------------------------------------------------------

SMOOTH: dict[str, Callable[[Any, float], float]] = {
    "median": lambda x, b: sensitivity.smooth_median(x, (-1, 1), b),
    "quantile": lambda x, b: sensitivity.smooth_quantile(x, 0.2, (-1, 1), b),
    "max": lambda x, b: sensitivity.smooth_max(x, (-1, 1), b),
    "mean": lambda x, b: sensitivity.smooth_mean(x, (-1, 1), b),
    "trimmed": lambda x, b: sensitivity.smooth_trimmed_mean(x, 0.34, (-1, 1), b),
    "iqr": lambda x, b: sensitivity.smooth_iqr(x, (-1, 1), b),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMOOTH)
@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.floats(-1, 1) | st.sampled_from([0.0, 1e-300, -1.0, 1.0, 0.1]), min_size=3, max_size=30),
    st.floats(1e-12, 100.0, exclude_min=True) | st.sampled_from([1e-11, 0.03, 99.0]),
    st.data(),
)
def test_smooth_in_floats(name: str, x: list[float], beta: float, data: Any) -> None:
    y = list(x)
    y[data.draw(st.integers(0, len(x) - 1))] = data.draw(st.floats(-1, 1))
    sizes = [SMOOTH[name](z, beta) for z in (x, y)]
    assert min(sizes) > 0
    with mp.workdps(60):
        assert abs(mp.log(mp.mpf(sizes[0])) - mp.log(mp.mpf(sizes[1]))) <= mp.mpf(beta)


@each("name", SMOOTH)
@each(("n", "beta"), [(17, 100.0), (701, 2.0), (1499, 1.0), (2001, 0.5)])
def test_smooth_where_exponentials_vanish(name: str, n: int, beta: float) -> None:
    rng = np.random.default_rng(n)
    for far in (1, n // 4, n // 2, n - 1):
        x = np.full(n, 0.25)
        x[rng.permutation(n)[:far]] = rng.uniform(-1, 1, far)
        for value in (-1.0, 1.0, 0.25, 0.2500001):
            y = x.copy()
            y[rng.integers(n)] = value
            sizes = [SMOOTH[name](z, beta) for z in (x, y)]
            assert abs(mp.log(sizes[0]) - mp.log(sizes[1])) <= beta


def test_trimmed_share_in_floats_and_in_decimals() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 10, 100)
    size = sensitivity.smooth_trimmed_mean(x, 0.29, BOUNDS, 1e-3)  # 0.29 * 100 is 28.999999999999996
    for cut in (28, 29):
        ordered = np.sort(x)
        assert size >= (ordered[100 - cut] - ordered[cut - 1]) / (100 - 2 * cut)


def test_linear() -> None:
    assert sensitivity.linear([[1, 0], [1, 1]]) == 2
    assert sensitivity.linear([[3, -1], [-4, 0.5]]) == 7
    assert sensitivity.linear([[3, -1], [-4, 0.5]], norm=2) == pytest.approx(5, rel=1e-15)
    rng = np.random.default_rng(2)
    table = rng.normal(size=(7, 5))
    exact = [[Fraction(v) for v in column] for column in table.T.tolist()]
    one, two = sensitivity.linear(table), sensitivity.linear(table, norm=2)
    assert Fraction(one) >= max(sum(map(abs, column)) for column in exact)
    assert Fraction(two) ** 2 >= max(sum(v * v for v in column) for column in exact)
    assert two == pytest.approx(np.linalg.norm(table, axis=0).max(), rel=1e-14)
    many = [[1.0]] + [[2.0**-53]] * 1000  # lost, one by one, in a float sum
    assert Fraction(sensitivity.linear(many)) >= 1 + Fraction(1000, 2**53)
    assert sensitivity.linear([[1e-200]], norm=2) >= 1e-200


@each("beta", [0, -1, math.nan, math.inf, 1e-13, 101, None, "1"])
@each("name", SMOOTH)
def test_beta_out_of_range_is_refused(name: str, beta: Any) -> None:
    with refuses(DitherError, "beta"):
        SMOOTH[name]([0.1, 0.2, 0.3, 0.4], beta)


@pytest.mark.parametrize("bounds", [None, (0, math.inf), (-math.inf, math.inf), [-math.inf, 0]])
def test_a_mean_without_bounds_has_no_smooth_sensitivity(bounds: Any) -> None:
    with refuses(NotPrivate, "no smooth bound exists"):
        sensitivity.smooth_mean([1.0, 2.0], bounds, 1.0)


WRONG: dict[str, Callable[[], object]] = {
    "bounds no pair": lambda: sensitivity.smooth_mean([1.0], 5, 1.0),
    "bounds NaN": lambda: sensitivity.smooth_mean([1.0], (0, math.nan), 1.0),
    "bounds in disorder": lambda: sensitivity.smooth_median([1.0], (1, 0), 1.0),
    "bounds beyond floats": lambda: sensitivity.smooth_median([1.0], (0, 10**400), 1.0),
    "width beyond floats": lambda: sensitivity.smooth_median([1.0], (-1e308, 1e308), 1.0),
    "width vanishing": lambda: sensitivity.smooth_median([1.0], (0, 1e-300), 1.0),
    "infinite bounds": lambda: sensitivity.smooth_median([1.0], (0, math.inf), 1.0),
    "empty": lambda: sensitivity.smooth_median([], (0, 1), 1.0),
    "empty mean": lambda: sensitivity.smooth_mean([], (0, 1), 1.0),
    "empty local": lambda: sensitivity.local_median([], (0, 1)),
    "rank 0": lambda: sensitivity.smooth_order([1.0], 0, (0, 1), 1.0),
    "rank beyond": lambda: sensitivity.smooth_order([1.0], 2, (0, 1), 1.0),
    "rank float": lambda: sensitivity.smooth_order([1.0], 1.0, (0, 1), 1.0),  # type: ignore[arg-type]
    "q": lambda: sensitivity.smooth_quantile([1.0], 1.5, (0, 1), 1.0),
    "table": lambda: sensitivity.smooth_median([[1.0]], (0, 1), 1.0),
    "words": lambda: sensitivity.smooth_median(["a"], (0, 1), 1.0),
    "trim 0": lambda: sensitivity.smooth_trimmed_mean([1.0] * 9, 0, (0, 1), 1.0),
    "trim half": lambda: sensitivity.smooth_trimmed_mean([1.0] * 9, 0.5, (0, 1), 1.0),
    "trim nothing": lambda: sensitivity.smooth_trimmed_mean([1.0] * 9, 0.1, (0, 1), 1.0),
    "limit NaN": lambda: sensitivity.distance_to_exceed([1.0], 1, (0, 1), math.nan),
    "distance": lambda: sensitivity.local_order([1.0], 1, (0, 1), -1),
    "norm": lambda: sensitivity.linear([[1]], norm=3),
    "ragged": lambda: sensitivity.linear([[1], [1, 2]]),
    "no columns": lambda: sensitivity.linear([[]]),
    "infinite entry": lambda: sensitivity.linear([[math.inf]]),
}


@each("case", WRONG)
def test_refusals(case: str) -> None:
    with refuses(DitherError):
        WRONG[case]()


@pytest.mark.parametrize("name", SMOOTH)
def test_nan_is_refused_and_infinity_is_a_bound(name: str) -> None:
    with refuses(InvalidData):
        SMOOTH[name]([0.1, math.nan, 0.3, 0.4], 1.0)
    assert SMOOTH[name]([0.1, math.inf, 0.3, 0.4], 1.0) == SMOOTH[name]([0.1, 1.0, 0.3, 0.4], 1.0)


def test_ranks_of_quantiles() -> None:
    assert [rank_of(0.5, n) for n in (1, 2, 3, 4, 101)] == [1, 1, 2, 2, 51]
    assert rank_of(0.29, 100) == 29  # a decimal, not 0.28999...
    assert (rank_of(0, 7), rank_of(1, 7)) == (1, 7)
    with refuses(InvalidArgument):
        rank_of(-0.1, 3)
