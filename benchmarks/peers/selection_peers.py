"""Selection and medians of dither and of its peers by one stopwatch."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from shared import Tasks, loop, main

NOTES = (
    "epsilon and sensitivity 1. Scores uniform from 0 to 1000; *one high*: all zero but one of 1000. Built once, "
    "outside the clock; diffprivlib takes the scores when it is built, which is not counted and takes it some 0.4 s "
    "at 1e6. Its permute-and-flip varies from call to call, more than tenfold with one high score, where the cost "
    "grows with the square of the number; the best is shown.",
    "opendp's noisy max adds exponential noise, as permute-and-flip does, under pure privacy, and Gumbel noise, as the "
    "exponential mechanism does, under zCDP. Its time depends on the scores.",
    "dither and opendp draw exactly; diffprivlib computes in floats; how python-dp samples was not examined.",
    "Medians are of 1e6 uniform values in (0, 100). They are not equally good: opendp chooses among 1001 candidates "
    "0.1 apart, so its error is about the size of that step; the others take any value. python-dp is given a Python "
    "list, because it takes no array; making the list is not counted.",
)

SIZES = {"1e2": 10**2, "1e4": 10**4, "1e6": 10**6}
BOUNDS = (0, 100)
MEDIAN = "median of 1e6"


def scores() -> dict[str, Any]:
    """The scores of each size, and some that are hard for samplers that go through the candidates in turn."""
    np = importlib.import_module("numpy")
    rng = np.random.default_rng()
    result = {f"{name}": rng.uniform(0, 1000, size) for name, size in SIZES.items()}
    result["1e4, one high"] = np.where(np.arange(10**4) == 5000, 1000.0, 0.0)
    return result


def column() -> Any:
    """What medians are taken of."""
    return importlib.import_module("numpy").random.default_rng().uniform(*BOUNDS, 10**6)


def choices(kind: str, calls: int, select: Callable[[Any], object]) -> Tasks:
    """One task for each set of scores; about as many candidates in all for each of the smaller ones."""
    return {
        f"{kind} of {name}": loop(select, values, max(1, calls * 100 // values.size))
        for name, values in scores().items()
    }


def numpy_tasks(calls: int) -> Tasks:
    """Not private."""
    np = importlib.import_module("numpy")
    rng = np.random.default_rng()

    def by_hand(values: Any) -> object:
        return np.argmax(values + rng.gumbel(size=values.size))

    return {**choices("exponential", calls, by_hand), MEDIAN: (partial(np.median, column()), 1)}


def dither_tasks(calls: int) -> Tasks:
    """By the public interface."""
    dp = importlib.import_module("dither")
    return {
        **choices("exponential", calls, dp.Exponential(1, 1).select_index),
        **choices("permute-and-flip", calls, dp.PermuteAndFlip(1, 1).select_index),
        MEDIAN: (partial(dp.stats.median, column(), BOUNDS, 1), 1),
    }


def opendp_tasks(calls: int) -> Tasks:
    """Noisy max on a vector; the median by scores of candidates, for records replaced."""
    dp, np = importlib.import_module("opendp.prelude"), importlib.import_module("numpy")
    dp.enable_features("contrib")
    floats = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    kinds = {"exponential": dp.zero_concentrated_divergence(), "permute-and-flip": dp.max_divergence()}
    result: Tasks = {}
    for kind, measure in kinds.items():
        result |= choices(kind, calls, dp.m.make_noisy_max(floats, dp.linf_distance(T=float), measure, scale=2.0))
    candidates = np.linspace(*BOUNDS, 1001).tolist()
    ranks = (floats, dp.symmetric_distance()) >> dp.t.then_quantile_score_candidates(candidates, alpha=0.5)
    # two records away under add/remove is one replaced
    median = ranks >> dp.m.then_noisy_max(dp.max_divergence(), scale=2.0 * ranks.map(2), negate=True)
    return {**result, MEDIAN: (partial(median, column()), 1)}


def pydp_tasks(calls: int) -> Tasks:
    """It has no selection among given scores."""
    median, values = importlib.import_module("pydp.algorithms.laplacian").Median, column().tolist()

    def task() -> None:
        median(epsilon=1.0, lower_bound=float(BOUNDS[0]), upper_bound=float(BOUNDS[1]), dtype="float").quick_result(
            values
        )

    return {MEDIAN: (task, 1)}


def diffprivlib_tasks(calls: int) -> Tasks:
    """Candidates and scores are given when it is built, as lists."""
    warnings.simplefilter("ignore")
    dm, tools = importlib.import_module("diffprivlib.mechanisms"), importlib.import_module("diffprivlib.tools")
    result: Tasks = {}
    for name, values in scores().items():
        utility, times = values.tolist(), max(1, calls * 100 // values.size)
        for kind, make in (("exponential", dm.Exponential), ("permute-and-flip", dm.PermuteAndFlip)):
            release = make(epsilon=1, sensitivity=1, utility=utility).randomise
            result[f"{kind} of {name}"] = (
                partial(run, release, 1 if name == "1e4, one high" else times),
                1 if name == "1e4, one high" else times,
            )
    return {**result, MEDIAN: (partial(tools.median, column(), epsilon=1, bounds=BOUNDS), 1)}


def run(release: Callable[[], object], times: int) -> None:
    """Several releases of what was built."""
    for _ in range(times):
        release()


LIBRARIES: dict[str, Callable[[int], Tasks]] = {
    "numpy": numpy_tasks,
    "dither": dither_tasks,
    "opendp": opendp_tasks,
    "python-dp": pydp_tasks,
    "diffprivlib": diffprivlib_tasks,
}

if __name__ == "__main__":
    main(LIBRARIES, calls=500, repeats=1, unit="µs", yardstick="exponential of 1e6", notes=NOTES)
