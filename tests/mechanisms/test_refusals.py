"""Parameters that no mechanism may accept: one table, every mechanism."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from divergence import refusal

from dither import BoundedLaplace, Gaussian, Laplace, MixedNoise, RandomizedResponse, Staircase
from dither.course import theorem_10
from support import each, label

BAD_EPSILON = [0, -1, math.nan, math.inf, -math.inf, 1e7, "1", None, True, 1 + 0j, [1], np.array([1.0, 2.0]), object()]
BAD_SENSITIVITY = [
    0,
    -1,
    math.nan,
    math.inf,
    "1",
    None,
    True,
    1 + 0j,
    [],
    [0],
    [1, None],
    [[1], [2]],
    {},
    object(),
    1e200,
]
BAD_DELTA = [0, 1, -1, math.nan, 2, math.inf, "1e-6", True, 1j, [1e-6]]

FROM_EPSILON = {
    "Laplace": lambda e: Laplace(1, e),
    "Gaussian": lambda e: Gaussian(1, e, 1e-6),
    "classical": lambda e: Gaussian(1, e, 1e-6, method="classical"),
    "Staircase": lambda e: Staircase(1, e),
    "Bounded": lambda e: BoundedLaplace(1, e, 0, 10),
    "Mixed": lambda e: MixedNoise(1, e, 1e-6),
    "Response": lambda e: RandomizedResponse(e),
    "theorem 10": lambda e: theorem_10(1, e, 0.1),
}
FROM_SENSITIVITY = {
    "Laplace": lambda s: Laplace(s, 1),
    "Gaussian": lambda s: Gaussian(s, 1, 1e-6),
    "rho": lambda s: Gaussian(s, rho=1),
    "Staircase": lambda s: Staircase(s, 1),
    "Bounded": lambda s: BoundedLaplace(s, 1, 0, 10),
    "Mixed": lambda s: MixedNoise(s, 1, 1e-6),
    "theorem 10": lambda s: theorem_10(s, 1, 0.1),
}
FROM_DELTA = {
    "Gaussian": lambda d: Gaussian(1, 1, d),
    "classical": lambda d: Gaussian(1, 0.5, d, method="classical"),
    "Mixed": lambda d: MixedNoise(1, 1, d),
    "for_error": lambda d: Gaussian.for_error(5, sensitivity=1, delta=d),
    "theorem 10": lambda d: theorem_10(1, 1, d),
}
SPLIT = {
    "Laplace": lambda w: Laplace([1, 2], 1, split=w),
    "Gaussian": lambda w: Gaussian([1, 2], 1, 1e-6, split=w),
    "Staircase": lambda w: Staircase([1, 2], 1, split=w),
}


@each("make", FROM_EPSILON.values())
@each("junk", BAD_EPSILON)
def test_epsilon(make: Any, junk: Any) -> None:
    refusal(lambda: make(junk))


@each("make", FROM_SENSITIVITY.values())
@each("junk", BAD_SENSITIVITY)
def test_sensitivity(make: Any, junk: Any) -> None:
    refusal(lambda: make(junk))


@each("make", FROM_DELTA.values())
@each("junk", BAD_DELTA)
def test_delta(make: Any, junk: Any) -> None:
    refusal(lambda: make(junk))


@pytest.mark.parametrize("junk", [d for d in BAD_DELTA if d != 0 or d is True], ids=label)
def test_delta_of_bounded_noise_which_may_be_zero(junk: Any) -> None:
    refusal(lambda: BoundedLaplace(1, 1, 0, 10, junk))


@each("make", SPLIT.values())
@each("junk", [[], [1], [1, 2, 3], [0, 1], [1, -1], [1, math.nan], ["1", "2"], "12", 5, [None, 1]])
def test_split(make: Any, junk: Any) -> None:
    refusal(lambda: make(junk))


@pytest.mark.parametrize("make", FROM_EPSILON.values(), ids=FROM_EPSILON.keys())
def test_every_mechanism_of_the_table_can_be_made(make: Any) -> None:
    assert make(0.5).guarantee
