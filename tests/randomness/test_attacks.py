"""Attacks on floating-point noise, run against the lattice; where a naive sampler exists, it must fall to them."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dither.randomness import (
    SYSTEM,
    Exponential,
    Gumbel,
    HeavyTail,
    Normal,
    SeededSource,
    Staircase,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    integer_steps,
    round_nearest,
    round_nearest_all,
    spacing,
)
from dither.randomness.lattice import draw
from support import FALSE_ALARM, ScriptedSource, each, label

LAPLACE = Exponential(symmetric=True)
LAWS: list[Any] = [LAPLACE, Normal(), Staircase(Fraction(1), Fraction(1, 2)), HeavyTail(Fraction(2)), Gumbel()]
INPUTS = [
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    2.2e-308,
    1e-300,
    2.0**-21,
    1.0,
    0.1 + 0.2,
    1 / 3,
    -7.3,
    1e6 + 0.1,
    2.0**51 + 0.5,
    1e300,
    -1e300,
    1.7e308,
]


def name(law: Any) -> str:
    return type(law).__name__


def release(x: float, law: Any, scale: float, count: int, source: Any = SYSTEM) -> np.ndarray:
    return round_nearest_all(np.full(count, x), law, scale, spacing(scale), source)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=name)
@pytest.mark.parametrize("x", INPUTS, ids=label)
@pytest.mark.parametrize("scale", [1.0, *(pytest.param(s, marks=pytest.mark.slow) for s in (0.3, 1e5))])
def test_every_output_is_a_point_of_one_public_lattice(law: Any, x: float, scale: float) -> None:
    """Mironov 2012: the set of possible outputs must not depend on the input."""
    step = spacing(scale)
    outputs = [*release(x, law, scale, 100).tolist(), *(round_nearest(x, law, scale, step, SYSTEM) for _ in range(20))]
    for y in outputs:
        assert math.isfinite(y)
        assert math.fmod(y, step) == 0.0  # exact; so nothing finer than the lattice is left of x
        assert not (y == 0 and math.copysign(1.0, y) < 0)


@pytest.mark.parametrize("x", [0.0, -0.0, 1e-310, -5e-324, -1e-9])
def test_zero_has_one_sign(x: float) -> None:
    # nearly all outputs are zero here, half of them from negative noise
    many = round_nearest_all(np.full(200, x), LAPLACE, 1e-3, 1.0, SYSTEM)
    single = [round_nearest(x, LAPLACE, 1e-3, 1.0, SYSTEM) for _ in range(100)]
    assert not np.signbit(many).any()
    assert not np.signbit(single).any()


def lowest_bit(outputs: np.ndarray) -> np.ndarray:
    """The place of the last set bit of each output: what Haney et al. 2022 look at.

    Capped where the law itself, and not the arithmetic, would show.
    """
    fraction, exponent = np.frexp(outputs)
    significand = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    zeros = np.log2(np.maximum(significand & -significand, 1).astype(np.float64)).astype(np.int64)
    return np.where(outputs == 0, 70, np.clip(exponent - 53 + zeros, -80, -10) + 80)


def same_histogram(a: np.ndarray, b: np.ndarray) -> float:
    """The two-sample chi-square p-value over cells that hold enough of both."""
    size = int(max(a.max(), b.max())) + 1
    table = np.array([np.bincount(a, minlength=size), np.bincount(b, minlength=size)])
    rare = table.sum(axis=0) < 200
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) >= 200]
    return float(stats.chi2_contingency(table).pvalue) if table.shape[1] > 1 else 1.0


@pytest.mark.parametrize(("x", "neighbor"), [(0.0, 1.0), (0.0, 0.1 + 0.2), (1e-30, 0.7)])
def test_trailing_bits_do_not_tell_neighbors_apart(x: float, neighbor: float) -> None:
    count, scale = 200_000, 8.0
    ours = [lowest_bit(release(value, LAPLACE, scale, count)) for value in (x, neighbor)]
    assert same_histogram(*ours) > FALSE_ALARM
    # the textbook sampler, the inverse CDF of a 53-bit uniform in floats, is told apart by the same histogram
    rng = np.random.default_rng()
    naive = [
        lowest_bit(value + scale * np.sign(rng.random(count) - 0.5) * np.log1p(-rng.random(count)))
        for value in (x, neighbor)
    ]
    assert same_histogram(*naive) < FALSE_ALARM
    numpy = [lowest_bit(value + rng.laplace(scale=scale, size=count)) for value in (x, neighbor)]
    assert same_histogram(*numpy) < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=name)
def test_the_words_consumed_do_not_depend_on_the_data(law: Any) -> None:
    # one seed for all, so that the rare exact draws are the same ones
    used = {}
    for x in INPUTS:
        source = ScriptedSource(seed=21)
        release(x, law, 1.0, 100, source)
        used[x] = source.used
    assert set(used.values()) == {100}
    single = set()
    for x in INPUTS:
        source = ScriptedSource(seed=21)
        for _ in range(20):
            round_nearest(x, law, 1.0, spacing(1.0), source)
        single.add(source.used)
    assert single == {20}


@each("law", LAWS)
@each(("scale", "step"), [(1.0, None), (1e-300, None), (1e300, None), (3.0, 0.5), (0.01, 1.0), (9e307, None)])
def test_one_and_many_give_the_same_on_the_same_words(law: Any, scale: float, step: float | None) -> None:
    lattice = spacing(scale) if step is None else step
    values = [
        *INPUTS,
        1.7976931348623157e308,
        -1.7976931348623157e308,
        0.5 * lattice,
        -1.5 * lattice,
        lattice * 2.0**52,
    ]
    values = [x for x in values if math.isfinite(x)]
    words = SeededSource(3).words(len(values)).tolist()
    many = round_nearest_all(np.array(values), law, scale, lattice, ScriptedSource(words))
    for x, word, result in zip(values, words, many.tolist(), strict=True):
        one = round_nearest(x, law, scale, lattice, ScriptedSource([word]))
        assert one == result
        assert round_nearest(Fraction(x), law, scale, lattice, ScriptedSource([word])) == result


def test_the_ends_of_the_floats() -> None:
    top = 1.7976931348623157e308
    for x in (top, -top):
        outputs = np.array([round_nearest(x, LAPLACE, 1.0, spacing(1.0), SYSTEM) for _ in range(50)])
        assert np.all(outputs == x)  # noise of one does not move it
        wide = release(x, LAPLACE, 1e307, 200)
        assert not np.isnan(wide).any()
        assert np.isinf(wide).any()  # half of the draws go beyond, with the sign of x
        assert np.all(np.sign(wide) == np.sign(x)) or np.abs(wide).min() < top
    small = release(5e-324, LAPLACE, 1e-300, 200)
    assert np.all(np.fmod(small, spacing(1e-300)) == 0)


@pytest.mark.slow
def test_integer_noise_saturates_and_never_wraps() -> None:
    noise = integer_steps(LAPLACE, 2.0**66, 150, SYSTEM)
    assert set(np.sign(noise)) == {-1, 1}
    assert noise.max() == 2**63 - 1
    assert noise.min() == -(2**63)
    heavy = integer_steps(HeavyTail(Fraction(3, 2)), 2.0**61, 120, SYSTEM)
    assert heavy.max() == 2**63 - 1
    assert heavy.min() == -(2**63)


@pytest.mark.parametrize("x", [0.25, -3.0, 1e-320, 2.0**60])
def test_shifting_the_data_by_lattice_steps_shifts_the_output(x: float) -> None:
    step = 2.0**-10
    for seed in range(50):
        base = round_nearest(Fraction(x), Normal(), 1.0, step, SeededSource(seed))
        shifted = round_nearest(Fraction(x) + Fraction(step) * 1024, Normal(), 1.0, step, SeededSource(seed))
        assert shifted - base == 1.0 or abs(x) > 2.0**40


MEMORY: dict[str, Callable[[int], Any]] = {
    "draw": lambda n: draw(LAPLACE, 1.3e6, n, SYSTEM),
    "integer_steps": lambda n: integer_steps(Normal(), 10.0, n, SYSTEM),
    "discrete_laplace": lambda n: discrete_laplace(10.0, n, SYSTEM),
    "discrete_laplace wide": lambda n: discrete_laplace(1e12, n, SYSTEM),
    "discrete_gaussian": lambda n: discrete_gaussian(10.0, n, SYSTEM),
    "discrete_gaussian narrow": lambda n: discrete_gaussian(0.5, n, SYSTEM),
    "discrete_gaussian wide": lambda n: discrete_gaussian(1e12, n, SYSTEM),
    "geometric": lambda n: geometric(10.0, n, SYSTEM),
    "round_nearest_all": lambda n: round_nearest_all(np.zeros(n), LAPLACE, 1.0, 2.0**-20, SYSTEM),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MEMORY)
def test_five_million_draws_need_little_beyond_their_result(kind: str) -> None:
    count = 5_000_000
    MEMORY[kind](10)  # tables are built once
    tracemalloc.start()
    try:
        result = MEMORY[kind](count)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    item = 8 * count * (2 if kind == "round_nearest_all" else 1)  # with the data passed in
    assert peak - item < 64 << 20
    del result
