# ruff: noqa: ARG005
"""Extreme but valid-looking parameters: refused when a mechanism is made, or served by everything it offers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dither as dp
from dither import AddRemove, DitherError, ReplaceOne
from dither.accounting import best_of
from support import BEYOND_FLOATS, HUGE, assert_explained, each, works_or_is_refused

EPSILON = [1e-320, 1e-200, 1e-101, 1e-100, 1e-18, 1e-6, 1, 1e6]
DELTA = [1e-320, 1e-12, 0.3, 1 - 1e-16]
SENSITIVITY = [1e-119, 1, 1e119]

Make = Callable[[Any, Any, Any], Any]
Use = Callable[[Any], Any]
ADDITIVE: Use = lambda m: (m.release([1, 2.5]), m.error(), m.scale, m.variance, m.privacy_curve(0.5))  # noqa: E731
CHOICE: Use = lambda m: (m.select_index([0, 1.0, 2]), m.error(10), m.scale, m.probabilities([0, 1]))  # noqa: E731
TOP: Use = lambda m: (m.select_indices([0, 1.0, 2, 3]), m.error(10), m.scale)  # noqa: E731
MECHANISMS: dict[str, tuple[Make, Use]] = {
    "Laplace": (lambda e, d, s: dp.Laplace(s, e), ADDITIVE),
    "Gaussian": (lambda e, d, s: dp.Gaussian(s, e, d), ADDITIVE),
    "Gaussian classical": (lambda e, d, s: dp.Gaussian(s, e, d, method="classical"), ADDITIVE),
    "Gaussian rho": (lambda e, d, s: dp.Gaussian(s, rho=e), ADDITIVE),
    "MixedNoise": (lambda e, d, s: dp.MixedNoise(s, e, d, s, 2), lambda m: (m.release([1, 2.5]), m.error())),
    "Staircase": (lambda e, d, s: dp.Staircase(s, e), lambda m: (m.release(1.0), m.error(), m.scale)),
    "BoundedLaplace": (lambda e, d, s: dp.BoundedLaplace(s, e, 0, 10), lambda m: (m.release(1.0), m.scale)),
    "RandomizedResponse": (lambda e, d, s: dp.RandomizedResponse(e), lambda m: (m.release(1), m.error(people=9))),
    "Exponential": (lambda e, d, s: dp.Exponential(s, e), CHOICE),
    "NoisyMax": (lambda e, d, s: dp.NoisyMax(s, e), CHOICE),
    "PermuteAndFlip": (lambda e, d, s: dp.PermuteAndFlip(s, e), CHOICE),
    "TopK": (lambda e, d, s: dp.TopK(3, s, e), TOP),
    "TopK zcdp": (lambda e, d, s: dp.TopK(3, s, e, d), TOP),
    "SparseVector": (lambda e, d, s: dp.SparseVector(s, e, 2, True), lambda m: (m.start(1.0).ask(2.0), m.error(9))),
    "ProposeTestRelease": (
        lambda e, d, s: dp.ProposeTestRelease(s, e, d),
        lambda m: (m.release(1.0, 5), m.probability(5)),
    ),
    "SmoothNoise": (lambda e, d, s: dp.SmoothNoise("laplace", e, d), lambda m: m.release(1.0, 1.0, width=10.0)),
    "SmoothNoise student": (lambda e, d, s: dp.SmoothNoise("student", e), lambda m: m.release(1.0, 1.0, width=10.0)),
}  # fmt: skip
WITH_DELTA = {"Gaussian", "Gaussian classical", "MixedNoise", "TopK zcdp", "ProposeTestRelease", "SmoothNoise"}


@each("name", MECHANISMS)
def test_a_mechanism_is_refused_by_its_constructor_or_works(name):
    make, use = MECHANISMS[name]
    built = 0
    for e, d, s in itertools.product(EPSILON, DELTA if name in WITH_DELTA else [1e-6], SENSITIVITY):
        try:
            mechanism = make(e, d, s)
        except DitherError as refusal:
            assert_explained(refusal)
            continue
        built += 1
        use(mechanism)
        assert mechanism.guarantee is not None
        assert mechanism.event is not None
        if s == 1 and d in (1e-6, 1e-12) and e < 1e5:
            best_of(2 * mechanism.event, 0.5)
    assert built >= 3


STATISTICS: dict[str, Callable[..., Any]] = {
    **{n: getattr(dp.stats, n) for n in ("sum", "mean", "var", "std", "histogram", "median", "min", "max", "iqr")},
    "quantiles": lambda x, b, e, **o: dp.stats.quantiles(x, [0.3, 0.9], b, e, **o),
    "smooth": lambda x, b, e, **o: dp.stats.median(x, b, e, 1e-6, method="smooth", **o),
    "delta": lambda x, b, e, **o: dp.stats.mean(x, b, e, 1e-6, **o),
    "density": lambda x, b, e, **o: dp.density.release(x, b, e, **o),
    "ks": lambda x, b, e, **o: dp.density.release(x, b, e, method="ks", **o),
}
BOUNDS = [(0, 10), (0.5, 1e308), (0, 1e300), (-1e-80, 1e-80), (0, 5e-324), (0, 2**70), (1e300, 1.1e300)]


@pytest.mark.parametrize("name", STATISTICS)
def test_a_statistic_is_refused_or_works(name):
    def show(x: Any, bounds: Any, epsilon: float, relation: Any) -> str:
        return repr(STATISTICS[name](x, bounds, epsilon, neighbors=relation))

    data = (np.array([1.0, 5, 2, 8, 3]), np.array([1, 2, 3]), [])
    cases = itertools.product(data, BOUNDS, EPSILON, (AddRemove, ReplaceOne))
    answered = sum(works_or_is_refused(show, *case) for case in cases)
    assert answered > 3


PARAMETERS: dict[str, Callable[[Any], Any]] = {
    "epsilon": lambda v: dp.Laplace(1, v),
    "sensitivity": lambda v: repr(dp.Laplace(v, 1)),
    "delta": lambda v: dp.Gaussian(1, 1, v),
    "categories": lambda v: dp.RandomizedResponse(1, v).release(0),
    "people": lambda v: dp.RandomizedResponse(1).error(people=v),
    "k": lambda v: dp.TopK(v, 1, 1),
    "limit": lambda v: dp.SparseVector(1, 1, limit=v),
    "questions": lambda v: dp.SparseVector(1, 1).error(v),
    "threshold": lambda v: dp.SparseVector(1, 1).start(v).ask(0),
    "candidates": lambda v: dp.Exponential(1, 1).error(v),
    "confidence": lambda v: dp.Laplace(1, 1).error(confidence=v),
    "coordinates": lambda v: dp.Laplace(1, 1).error(coordinates=v),
    "error": lambda v: dp.Laplace.for_error(v, confidence=0.95, sensitivity=1),
    "blocks": lambda v: dp.SampleAndAggregate(np.mean, v, (0, 1)).results([1, 2]),
    "distance": lambda v: dp.ProposeTestRelease(1, 1, 1e-6).probability(v),
    "upper": lambda v: dp.BoundedLaplace(1, 1, 0, v),
    "bounds": lambda v: dp.stats.mean([1], bounds=(0, v), epsilon=1),
    "equal bounds": lambda v: dp.stats.mean([1], bounds=(v, v), epsilon=1),
    "q": lambda v: dp.stats.quantile([1], v, bounds=(0, 1), epsilon=1),
    "bins": lambda v: dp.stats.histogram([1], bounds=(0, 1), epsilon=1, bins=v),
    "n": lambda v: dp.sensitivity.mean(n=v, bounds=(0, 1), neighbors=ReplaceOne),
    "seed": lambda v: dp.randomness.SeededSource(v),
    "trials": lambda v: dp.audit.measure(lambda x: x, 0, 1, trials=v),
}


@each("name", PARAMETERS)
def test_a_parameter_beyond_floats_is_supported_or_refused(name):
    for value in BEYOND_FLOATS:
        works_or_is_refused(PARAMETERS[name], value)


@pytest.mark.parametrize("value", [HUGE, -HUGE], ids=["high", "low"])
def test_an_integer_beyond_floats_is_released(value):
    assert (dp.Laplace(1, 1).release(value) > 0) is (value > 0)
    assert bool(dp.SparseVector(1, 1, numeric=True).start(0).ask(value)) is (value > 0)
