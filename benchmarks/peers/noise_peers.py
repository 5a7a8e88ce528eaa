"""Noise of dither and of its peers by one stopwatch: prints JSON for the libraries that the running interpreter has.

``run.py`` lets the project's interpreter and the peers' take turns, and keeps the best of each. Vectors go through the
library's own vector call where there is one, otherwise through a loop, and fewer draws stand for more: the figure is
nanoseconds a release.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial

from shared import Tasks, loop, main

NOTES = (
    "A vector call where the library has one: dither (1e6 values) and opendp (20,000 values; at 1e6 its cost per value "
    "is the same); the others are called in a loop. Scale or sigma 10. A single release: built once, called often.",
    "opendp is shown at its fastest: with a known length and on the lattice that dither uses for this noise, 2^-17. "
    "*Finest lattice* is its default, 2^-1074.",
    "What the figures buy is not the same. dither and opendp sample their laws exactly; diffprivlib's floats come from "
    "floating-point formulas, and their low bits tell inputs apart; how python-dp samples was not examined. "
    "For integers the Gaussian is the discrete one in dither, opendp and diffprivlib. "
    "diffprivlib's takes whole sensitivities, so its sigma is 8.5.",
)

LAPLACE_INT, LAPLACE_FLOAT = "vector: Laplace, integers", "vector: Laplace, floats"
GAUSSIAN_INT, GAUSSIAN_FLOAT = "vector: Gaussian, integers", "vector: Gaussian, floats"
ONE_LAPLACE_INT, ONE_LAPLACE_FLOAT = "one: Laplace, int", "one: Laplace, float"
ONE_GAUSSIAN_INT, ONE_GAUSSIAN_FLOAT = "one: Gaussian, int", "one: Gaussian, float"
ONE_STAIRCASE, ONE_BOUNDED, ONE_RESPONSE = (
    "one: staircase, float",
    "one: bounded Laplace, float",
    "one: randomized response",
)


def numpy_tasks(calls: int) -> Tasks:
    """Not private; shows how fast the machine was in this turn."""
    rng, draws = importlib.import_module("numpy").random.default_rng(), 200 * calls
    laplace, normal = (lambda: rng.laplace(0, 10, draws), draws), (lambda: rng.normal(0, 10, draws), draws)
    return {LAPLACE_INT: laplace, LAPLACE_FLOAT: laplace, GAUSSIAN_INT: normal, GAUSSIAN_FLOAT: normal}


def dither_tasks(calls: int) -> Tasks:
    """Integers get the discrete Gaussian, as with opendp and diffprivlib."""
    dp, np, draws = importlib.import_module("dither"), importlib.import_module("numpy"), 200 * calls
    laplace, gaussian = dp.Laplace(sensitivity=10, epsilon=1), dp.Gaussian(sensitivity=10, rho=0.5)
    whole, real = np.zeros(draws, dtype=np.int64), np.zeros(draws)
    return {
        LAPLACE_INT: (lambda: laplace.release(whole), draws),
        LAPLACE_FLOAT: (lambda: laplace.release(real), draws),
        GAUSSIAN_INT: (lambda: gaussian.release(whole), draws),
        GAUSSIAN_FLOAT: (lambda: gaussian.release(real), draws),
        ONE_LAPLACE_INT: loop(laplace.release, 42, calls),
        ONE_LAPLACE_FLOAT: loop(laplace.release, 42.5, calls),
        ONE_GAUSSIAN_INT: loop(gaussian.release, 42, calls),
        ONE_GAUSSIAN_FLOAT: loop(gaussian.release, 42.5, calls),
        ONE_STAIRCASE: loop(dp.Staircase(sensitivity=10, epsilon=1).release, 42.5, calls),
        ONE_BOUNDED: loop(dp.BoundedLaplace(sensitivity=10, epsilon=1, lower=0, upper=100).release, 42.5, calls),
        ONE_RESPONSE: loop(dp.RandomizedResponse(epsilon=1).release, True, calls),
    }


def opendp_tasks(calls: int) -> Tasks:
    """Floats on the lattice that dither uses (k = -17, 2^-17), which needs a known length, and on the default."""
    dp, np, draws = importlib.import_module("opendp.prelude"), importlib.import_module("numpy"), 4 * calls
    dp.enable_features("contrib")
    whole, real = np.zeros(draws, dtype=np.int64), np.zeros(draws)
    atom_int, atom_float = dp.atom_domain(T="i64"), dp.atom_domain(T=float, nan=False)
    result: Tasks = {}
    for make, norm, vector, one in (
        (dp.m.make_laplace, dp.l1_distance, (LAPLACE_INT, LAPLACE_FLOAT), (ONE_LAPLACE_INT, ONE_LAPLACE_FLOAT)),
        (dp.m.make_gaussian, dp.l2_distance, (GAUSSIAN_INT, GAUSSIAN_FLOAT), (ONE_GAUSSIAN_INT, ONE_GAUSSIAN_FLOAT)),
    ):
        ints = make(dp.vector_domain(atom_int), norm(T="i64"), scale=10.0)
        floats = make(dp.vector_domain(atom_float, size=draws), norm(T=float), scale=10.0, k=-17)
        default = make(dp.vector_domain(atom_float), norm(T=float), scale=10.0)
        result[vector[0]] = partial(ints, whole), draws
        result[vector[1]] = partial(floats, real), draws
        result[f"{vector[1]}, finest lattice"] = partial(default, real), draws
        result[one[0]] = loop(make(atom_int, dp.absolute_distance(T="i64"), scale=10.0), 42, calls // 5)
        result[one[1]] = loop(make(atom_float, dp.absolute_distance(T=float), scale=10.0, k=-17), 42.5, calls // 5)
    result[ONE_RESPONSE] = loop(dp.m.make_randomized_response_bool(prob=0.7310585786300049), True, calls // 5)
    return result


def pydp_tasks(calls: int) -> Tasks:
    """No vector call."""
    pydp = importlib.import_module("pydp.algorithms.numerical_mechanisms")
    laplace, gaussian = (
        pydp.LaplaceMechanism(1.0, 10.0).add_noise,
        pydp.GaussianMechanism.create_from_standard_deviation(10.0).add_noise,
    )
    laplace_int, laplace_float = loop(laplace, 42, calls), loop(laplace, 42.5, calls)
    gaussian_int, gaussian_float = loop(gaussian, 42, calls), loop(gaussian, 42.5, calls)
    return {
        LAPLACE_INT: laplace_int,
        LAPLACE_FLOAT: laplace_float,
        GAUSSIAN_INT: gaussian_int,
        GAUSSIAN_FLOAT: gaussian_float,
        ONE_LAPLACE_INT: laplace_int,
        ONE_LAPLACE_FLOAT: laplace_float,
        ONE_GAUSSIAN_INT: gaussian_int,
        ONE_GAUSSIAN_FLOAT: gaussian_float,
    }


def diffprivlib_tasks(calls: int) -> Tasks:
    """No vector call; its Geometric is the discrete Laplace law."""
    dm = importlib.import_module("diffprivlib.mechanisms")
    geometric = loop(dm.Geometric(epsilon=1, sensitivity=10).randomise, 42, calls)
    laplace = loop(dm.Laplace(epsilon=1, sensitivity=10).randomise, 42.5, calls)
    # it takes whole sensitivities only: sigma 8.5
    discrete = loop(dm.GaussianDiscrete(epsilon=1, delta=1e-6, sensitivity=2).randomise, 42, calls)
    gaussian = loop(dm.GaussianAnalytic(epsilon=1, delta=1e-6, sensitivity=2.3686).randomise, 42.5, calls)
    return {
        LAPLACE_INT: geometric,
        LAPLACE_FLOAT: laplace,
        GAUSSIAN_INT: discrete,
        GAUSSIAN_FLOAT: gaussian,
        ONE_LAPLACE_INT: geometric,
        ONE_LAPLACE_FLOAT: laplace,
        ONE_GAUSSIAN_INT: discrete,
        ONE_GAUSSIAN_FLOAT: gaussian,
        ONE_STAIRCASE: loop(dm.Staircase(epsilon=1, sensitivity=10).randomise, 42.5, calls),
        ONE_BOUNDED: loop(
            dm.LaplaceBoundedDomain(epsilon=1, sensitivity=10, lower=0, upper=100).randomise, 42.5, calls
        ),
        ONE_RESPONSE: loop(dm.Binary(epsilon=1, value0="no", value1="yes").randomise, "yes", calls),
    }


LIBRARIES: dict[str, Callable[[int], Tasks]] = {
    "numpy": numpy_tasks,
    "dither": dither_tasks,
    "opendp": opendp_tasks,
    "python-dp": pydp_tasks,
    "diffprivlib": diffprivlib_tasks,
}


if __name__ == "__main__":
    main(LIBRARIES, calls=5000, repeats=2, unit="ns", yardstick=GAUSSIAN_FLOAT, notes=NOTES)
