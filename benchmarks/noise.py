"""Noise: vectors against NumPy's insecure generators, scalars, growth in time and memory, raw samplers."""

from __future__ import annotations

import gc
import tracemalloc
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

import dither as dp
from dither.randomness import (
    SYSTEM,
    Gumbel,
    HeavyTail,
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    geometric,
    integer_steps,
    uniform_integers,
)
from suite import Row, Task, interleaved, limited, main, repeat, times

TITLE = "Noise"
NOTES = (
    "NumPy's generators are the reference because they are what people use by hand. They are not private: floats "
    "straight from a density can give the input away, and the bits are not secure. dither's bits are secure and its "
    "laws exact.",
    "All times are of CPU, all threads together: the best of 7 to 15 repeats, with all tasks of a group taking turns "
    "in one process.",
    "One release of a number includes all checks of the value; the mechanism is built once, outside the clock. The "
    "figure is the best of 7 loops of 5,000 calls. A few draws in ten thousand may need an exact decision of some "
    "0.1 ms, and the best loop may have had none. 0.0 has rows of its own because it is a usual answer.",
    "Growth: the target is that time grows linearly from 1e4 draws to 1e8. The reference is the time per draw at 1e4, "
    "and no larger size may cost more than 1.2 times as much per draw. The fixed cost of a call is part of the "
    "reference, so ratios below 1 are no surprise.",
    "Extra memory: the peak that `tracemalloc` saw during the release, less the result; the input was there before. "
    "A pass of its own, not timed.",
    "Raw samplers have no target of their own. `HeavyTail` and `Gumbel` are rounded to integers at scale 10; the "
    "reference is NumPy's nearest insecure counterpart.",
)

SCALE = 10.0
DRAWS = 10**6
SIZES = (10**4, 10**5, 10**6, 10**7, 10**8)
CALLS = 5_000
KINDS: dict[str, type[np.generic]] = {"integers": np.int64, "floats": np.float64}
SIGMA_PER_SENSITIVITY = dp.Gaussian(sensitivity=1, epsilon=1, delta=1e-6).noise.scales[0]

laplace = dp.Laplace(sensitivity=SCALE, epsilon=1)
gaussian = dp.Gaussian(sensitivity=SCALE / SIGMA_PER_SENSITIVITY, epsilon=1, delta=1e-6)
gaussian_zcdp = dp.Gaussian(sensitivity=SCALE, rho=0.5)
unsafe = np.random.default_rng()


def power(size: int) -> str:
    """A power of ten, short.

    >>> power(10**6)
    '1e6'
    """
    return f"1e{len(str(size)) - 1}"


def vectors(quick: bool) -> list[Row]:
    """Releases of a million numbers."""
    draws = DRAWS // 10 if quick else DRAWS
    whole, real = np.zeros(draws, dtype=np.int64), np.zeros(draws)
    lines: list[tuple[str, Task, str, float]] = [
        ("Laplace, integers", lambda: laplace.release(whole), "laplace", 1.0),
        ("Laplace, floats", lambda: laplace.release(real), "laplace", 1.5),
        ("Gaussian, integers (rounded normal)", lambda: gaussian.release(whole), "normal", 3.0),
        ("Gaussian, integers (discrete Gaussian)", lambda: gaussian_zcdp.release(whole), "normal", 3.0),
        ("Gaussian, floats", lambda: gaussian.release(real), "normal", 3.0),
    ]
    tasks: dict[str, Task] = {what: task for what, task, _, _ in lines}
    tasks["laplace"] = lambda: unsafe.laplace(0, SCALE, draws)
    tasks["normal"] = lambda: unsafe.normal(0, SCALE, draws)
    best, unit = interleaved(tasks, 3 if quick else 15), 1e9 / draws
    return [
        times(f"{draws:,} releases: {what}", best[what] * unit, best[named] * unit, "ns", at_most, f"numpy {named}")
        for what, _, named, at_most in lines
    ]


def scalars(quick: bool) -> list[Row]:
    """One release of a mechanism that is already built."""
    mechanisms: list[tuple[str, Any, tuple[Any, ...]]] = [
        ("Laplace", laplace, (42, 42.5, 0.0)),
        ("Gaussian", gaussian, (42, 42.5, 0.0)),
        ("Gaussian with rho", gaussian_zcdp, (42,)),
        ("Staircase", dp.Staircase(sensitivity=SCALE, epsilon=1), (42, 42.5)),
        ("BoundedLaplace", dp.BoundedLaplace(sensitivity=SCALE, epsilon=1, lower=0, upper=100), (42, 42.5)),
        ("MixedNoise", dp.MixedNoise(sensitivity=SCALE, epsilon=1, delta=1e-6), (42, 42.5)),
        ("RandomizedResponse", dp.RandomizedResponse(epsilon=1), (1, True)),
        ("RandomizedResponse, 3 labels", dp.RandomizedResponse(epsilon=1, categories=["yes", "no", "unsure"]), ("no",)),
    ]
    calls = CALLS // 10 if quick else CALLS
    tasks: dict[str, Task] = {}
    for name, mechanism, values in mechanisms:
        for value in values:
            tasks[f"{name}.release({value!r})"] = partial(repeat, mechanism.release, calls, value)
    best = interleaved(tasks, 3 if quick else 7)
    unit = 1e6 / calls
    return [limited(f"One {what}", seconds * unit, "µs", 12.0) for what, seconds in best.items()]


def growth(quick: bool) -> list[Row]:
    """Time per draw from ten thousand draws to a hundred million."""
    sizes = SIZES[:3] if quick else SIZES
    table: list[Row] = []
    for kind, dtype in KINDS.items():
        values = np.ones(sizes[-1], dtype=dtype)
        tasks: dict[str, Task] = {}
        batches = {
            size: max(1, DRAWS // size) for size in sizes
        }  # small sizes in batches, so that the clock is as good
        for size, calls in batches.items():
            tasks[str(size)] = partial(repeat, laplace.release, calls, values[:size])
        best = interleaved(tasks, 3 if quick else 7)
        per_draw = {size: best[str(size)] / (size * calls) * 1e9 for size, calls in batches.items()}
        table += [
            times(
                f"Growth: Laplace, {kind}, {power(size)} draws", per_draw[size], per_draw[sizes[0]], "ns", 1.2, "at 1e4"
            )
            for size in sizes[1:]
        ]
    return table


def memory(quick: bool) -> list[Row]:
    """Extra memory beyond the input and the result."""
    table: list[Row] = []
    for name, mechanism, kinds, largest in (
        ("Laplace", laplace, ("integers", "floats"), SIZES[-1]),
        ("Gaussian", gaussian, ("integers", "floats"), SIZES[-1]),
        ("Gaussian with rho", gaussian_zcdp, ("integers",), SIZES[-2]),
    ):
        for kind in kinds:
            size = DRAWS if quick else largest
            values = np.ones(size, dtype=KINDS[kind])
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            released = mechanism.release(values)
            extra = (tracemalloc.get_traced_memory()[1] - before - released.nbytes) / 2**20
            tracemalloc.stop()
            table.append(limited(f"Extra memory: {name}, {kind}, {power(size)} draws", extra, "MiB", 64.0))
            del values, released
    return table


def samplers(quick: bool) -> list[Row]:
    """The samplers below the mechanisms."""
    draws = DRAWS // 10 if quick else DRAWS
    heavy, gumbel = HeavyTail(Fraction(2)), Gumbel()
    lines: list[tuple[str, Task, str, Task]] = [
        (
            "uniform_integers(1000)",
            lambda: uniform_integers(1000, draws, SYSTEM),
            "integers",
            lambda: unsafe.integers(0, 1000, draws),
        ),
        (
            "bernoulli(1/3)",
            lambda: bernoulli(Fraction(1, 3), draws, SYSTEM),
            "random < p",
            lambda: unsafe.random(draws) < 1 / 3,
        ),
        (
            "bernoulli_exp(1/2)",
            lambda: bernoulli_exp(Fraction(1, 2), draws, SYSTEM),
            "random < p",
            lambda: unsafe.random(draws) < 0.6065306597126334,
        ),
        (
            "geometric(10)",
            lambda: geometric(SCALE, draws, SYSTEM),
            "geometric",
            lambda: unsafe.geometric(0.09516258196404043, draws),
        ),
        (
            "discrete_gaussian(10)",
            lambda: discrete_gaussian(SCALE, draws, SYSTEM),
            "rint(normal)",
            lambda: np.rint(unsafe.normal(0, SCALE, draws)).astype(np.int64),
        ),
        (
            "HeavyTail(2)",
            lambda: integer_steps(heavy, SCALE, draws, SYSTEM),
            "cauchy",
            lambda: SCALE * unsafe.standard_cauchy(draws),
        ),
        (
            "Gumbel",
            lambda: integer_steps(gumbel, SCALE, draws, SYSTEM),
            "gumbel",
            lambda: unsafe.gumbel(0, SCALE, draws),
        ),
    ]
    tasks: dict[str, Task] = {}
    for what, ours, named, theirs in lines:
        tasks[what], tasks[f"{what} {named}"] = ours, theirs
    best, unit = interleaved(tasks, 3 if quick else 7), 1e9 / draws
    return [
        times(f"Sampler: {what}", best[what] * unit, best[f"{what} {named}"] * unit, "ns", None, f"numpy {named}")
        for what, _, named, _ in lines
    ]


def rows(quick: bool = False) -> list[Row]:
    """All of the suite."""
    return [row for part in (vectors, scalars, growth, memory, samplers) for row in part(quick)]


if __name__ == "__main__":
    main(TITLE, NOTES, rows)
