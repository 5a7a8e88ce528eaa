"""Whether a release succeeds does not depend on ``np.seterr``: a record decides whether NumPy overflows."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import dither as dp
from dither import learn
from support import each

VALUES = (1e308, -1e308, 5e-324, 0.0, 1e-300, 1e200)
"""One person's value: it overflows, vanishes, or divides something by 0."""
STATISTICS = ("sum", "mean", "var", "std", "median", "min", "max", "iqr")


def rows(value):
    return np.column_stack([column(value), column(value), [1.0, 2.0, 3.0, 4.0]])


def column(value):
    return np.array([value, 1.0, 2.0, 3.0])


def table(value, ask):
    frame = pd.DataFrame({"who": [1, 2, 3, 4], "a": column(value), "c": list("aabb")})
    options = {"bounds": {"a": (0, 10)}, "keys": {"c": ["a", "b"]}, "budget": dp.ApproxDP(9, 1e-4)}
    with dp.open(frame, unit="who", **options) as opened:
        return ask(opened)


QUESTION = "SELECT c, COUNT(*) n, AVG(a) m, MEDIAN(a) k, STDDEV(a) s FROM data GROUP BY c"
RELEASES = {
    **{
        f"stats.{name}": lambda v, name=name: getattr(dp.stats, name)(column(v), bounds=(0, 10), epsilon=1)
        for name in STATISTICS
    },
    **{
        f"density.{method}": lambda v, method=method: dp.density.release(column(v), (0, 10), 1, method=method)
        for method in ("histogram", "perturbed", "smoothed", "ks")
    },
    "Laplace": lambda v: dp.Laplace(1, 1).release(column(v)),
    "Gaussian": lambda v: dp.Gaussian(1, 1, 1e-6).release(column(v)),
    "Staircase": lambda v: dp.Staircase(1, 1).release(v),
    "BoundedLaplace": lambda v: dp.BoundedLaplace(1, 1, 0, 10).release(v),
    "Exponential": lambda v: dp.Exponential(1e-9, 1).select_index(column(v)),
    "NoisyMax": lambda v: dp.NoisyMax(1e-9, 1).select_index(column(v)),
    "PermuteAndFlip": lambda v: dp.PermuteAndFlip(1e-9, 1).select_index(column(v)),
    "TopK": lambda v: dp.TopK(2, 1e-9, 1).select_indices(column(v)),
    "Mean": lambda v: learn.Mean(bounds=(0, 1)).fit(rows(v)),
    "PCA": lambda v: learn.PCA(bounds=(0, 1)).fit(rows(v)),
    "KMeans": lambda v: learn.KMeans(n_clusters=2, bounds=(0, 1)).fit(rows(v)),
    "Ridge": lambda v: learn.Ridge(bounds=(0, 1), label_bounds=(0, 1)).fit(rows(v), column(v)),
    "GaussianNB": lambda v: learn.GaussianNB(bounds=(0, 1), classes=[0, 1]).fit(rows(v), [0, 1, 0, 1]),
    "LogisticRegression": lambda v: learn.LogisticRegression(bounds=(0, 1), classes=[0, 1]).fit(rows(v), [0, 1, 0, 1]),
    "RunningSum": lambda v: dp.stream.RunningSum(horizon=4, epsilon=1, delta=1e-9, max_participations=1).release(v),
    "a table": lambda v: table(v, lambda t: t.sql(QUESTION).release(epsilon=1, delta=1e-6)),
    "synthesis": lambda v: table(v, lambda t: dp.publish.synthesize(t, columns=["c"], epsilon=1, delta=1e-6)),
}


def outcome(release, value):
    try:
        release(value)
    except Exception as error:
        return type(error).__name__
    return "released"


@pytest.mark.filterwarnings("error")
@each("name", RELEASES)
def test_a_release_is_the_same_under_raise(name):
    """The outcome of every value is that of an ordinary one, and there is no warning."""
    values = VALUES if name not in ("a table", "synthesis") else VALUES[:1]
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        outcomes = {value: outcome(RELEASES[name], value) for value in (1.0, *values)}
    assert set(outcomes.values()) == {"released"}, outcomes


def test_a_function_that_releases_is_quiet_by_construction():
    """Also one that nobody thought of: the mark itself switches NumPy's errors off, and leaves the caller's on."""

    class Careless:
        guarantee = dp.PureDP(1)

        @dp.budget_hooks.spends
        def release(self, value):
            return float(np.float64(value) * np.float64(1e308))

    with np.errstate(all="raise"):
        assert Careless().release(10.0) == np.inf
        with pytest.raises(FloatingPointError):
            np.float64(1e308) * np.float64(10)
