"""Whatever is wrong is refused alike by every statistic: one tree of errors, a remedy, and no value from the data."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as arrays

import dither as dp
from dither import AddRemove, DitherError, ReplaceOne, stats
from support import each, refuses

SENTINEL = 987654.321
BOTH = [AddRemove, ReplaceOne]
BOUNDED: dict[str, Any] = {
    "sum": stats.sum,
    "mean": stats.mean,
    "variance": stats.var,
    "std": stats.std,
    "histogram": stats.histogram,
    "median": stats.median,
    "min": stats.min,
    "max": stats.max,
    "iqr": stats.iqr,
    "quantile": lambda x, bounds=None, epsilon=None, **more: stats.quantile(x, 0.3, bounds, epsilon, **more),
    "quantiles": lambda x, bounds=None, epsilon=None, **more: stats.quantiles(x, [0.3, 0.8], bounds, epsilon, **more),
}


def count(x: Any, bounds: Any = None, epsilon: Any = None, **options: Any) -> Any:
    return stats.count(x, epsilon, **options)


ALL = BOUNDED | {"count": count}
WITH_DELTA = ["sum", "mean", "variance", "std", "histogram", "count"]
DATA = [SENTINEL, 1.0, 2.0, 3.0]


def refused(call: Any) -> DitherError:
    with refuses(DitherError, hiding=["987654"]) as caught:
        call()
    error, text = caught.value, str(caught.value)
    assert isinstance(error, (ValueError, TypeError))
    assert "\n" not in text
    assert len(text) < 400
    return error


@each("name", BOUNDED)
@each(
    "bounds",
    [
        None,
        (1, 0),
        (1, 1),
        (math.nan, 1),
        (0, math.nan),
        (-math.inf, 0),
        (0, math.inf),
        (1,),
        (1, 2, 3),
        (),
        "01",
        "0,1",
        3,
        1.5,
        ("0", "1"),
        (None, 1),
        (0, None),
        (True, 5),
        (0, 1j),
        {0, 1},
        np.zeros((2, 2)),
        [[0], [1]],
        slice(0, 1),
    ],
)
def test_wrong_bounds(name, bounds):
    for relation in BOTH:
        refused(lambda r=relation: BOUNDED[name](DATA, bounds=bounds, epsilon=1, neighbors=r))


@each("name", ALL)
@each("epsilon", [0, -1, math.nan, math.inf, -math.inf, 1e7, None, "1", 1j, [1], True, b"1"])
def test_wrong_epsilon(name, epsilon):
    for relation in BOTH:
        refused(lambda r=relation: ALL[name](DATA, bounds=(0, 9), epsilon=epsilon, neighbors=r))


@pytest.mark.parametrize("name", BOUNDED)
def test_missing_epsilon(name):
    refused(lambda: BOUNDED[name](DATA, bounds=(0, 9), epsilon=None))
    with pytest.raises(TypeError, match=r"epsilon|bounds"):
        getattr(stats, {"variance": "var"}.get(name, name))(DATA)


@each("name", WITH_DELTA)
@each("delta", [0, 1, -1e-9, 2, math.nan, math.inf, "0.1", [0.1], True])
def test_wrong_delta(name, delta):
    for relation in BOTH:
        refused(lambda r=relation: ALL[name](DATA, bounds=(0, 9), epsilon=1, delta=delta, neighbors=r))


@each("name", ALL)
@each("wrong", [None, "AddRemove", 1, AddRemove.value, AddRemove.name, (AddRemove,)])
def test_wrong_relation(name, wrong):
    refused(lambda: ALL[name](DATA, bounds=(0, 9), epsilon=1, neighbors=wrong))


@each("name", ALL)
@each("wrong", [1, "seed", np.random.default_rng(1), object(), b"0"])
def test_wrong_source(name, wrong):
    refused(lambda: ALL[name](DATA, bounds=(0, 9), epsilon=1, source=wrong))


@each("name", ALL)
@each("wrong", [None, "ignore", True, 0, "REFUSE"])
def test_wrong_policy_for_missing_values(name, wrong):
    refused(lambda: ALL[name](DATA, bounds=(0, 9), epsilon=1, nan=wrong))


@pytest.mark.parametrize("name", ["variance", "std"])
@pytest.mark.parametrize("wrong", [None, "laplace", True, ""])
def test_wrong_method(name, wrong):
    refused(lambda: ALL[name](DATA, bounds=(0, 9), epsilon=1, method=wrong))
    refused(lambda: ALL[name](DATA, bounds=(0, 9), epsilon=1, method="bounded", neighbors=AddRemove))
    refused(lambda: ALL[name](DATA, bounds=(0, 9), epsilon=1, delta=0.1, method="bounded"))


WRONG_DATA = {
    "none": None,
    "number": SENTINEL,
    "numpy number": np.float64(SENTINEL),
    "text": "987654.321",
    "bytes": b"987654.321",
    "dict": {"a": SENTINEL},
    "set": {SENTINEL},
    "2-D": np.full((2, 2), SENTINEL),
    "0-D": np.array(SENTINEL),
    "list of lists": [[SENTINEL], [1]],
    "ragged": [[SENTINEL], [1, 2]],
    "list of arrays": [np.array([SENTINEL, 2.0])],
    "list of series": [pd.Series([SENTINEL]), pd.Series([1, 2])],
    "complex": np.array([SENTINEL + 1j]),
    "list of complex": [SENTINEL + 1j],
    "list of text": ["987654.321"],
    "text among numbers": [1.0, "987654.321"],
    "text and none": [None, "987654.321"],
    "objects": np.array([object(), SENTINEL], dtype=object),
    "array of text": np.array(["987654.321"]),
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "frame": pd.DataFrame({"a": [SENTINEL]}),
    "polars frame": pl.DataFrame({"a": [SENTINEL]}),
    "series of text": pd.Series(["987654.321"]),
    "polars series of text": pl.Series(["987654.321"]),
    "function": len,
    "type": list,
}


@each("name", ALL)
@each("kind", WRONG_DATA)
def test_wrong_data(name, kind):
    for relation in BOTH:
        refused(lambda r=relation: ALL[name](WRONG_DATA[kind], bounds=(0, 9), epsilon=1, neighbors=r))


@each("name", ALL)
@each("gap", [math.nan, math.inf, -math.inf, None])
def test_missing_values_are_refused_dropped_or_counted_as_stated(name, gap):
    x = [SENTINEL, gap, 3.0]
    for relation in BOTH:
        refused(lambda r=relation: ALL[name](x, bounds=(0, 9), epsilon=1, neighbors=r))
        ALL[name](x, bounds=(0, 9), epsilon=1, neighbors=relation, nan="lower")
    refused(lambda: ALL[name](x, bounds=(0, 9), epsilon=1, nan="drop"))
    ALL[name](x, bounds=(0, 9), epsilon=1, neighbors=AddRemove, nan="drop")


@each("name", ALL)
@each("empty", [[], np.zeros(0), np.zeros(0, dtype=int), pd.Series([], dtype="Int64"), pl.Series([], dtype=pl.Int8)])
def test_an_empty_table_is_refused_only_where_its_size_is_public(name, empty):
    if name not in ("count", "sum", "histogram"):
        refused(lambda: ALL[name](empty, bounds=(0, 9), epsilon=1, neighbors=ReplaceOne))
    ALL[name](empty, bounds=(0, 9), epsilon=1, neighbors=AddRemove)


def test_one_record_has_no_sample_variance_where_the_size_is_public():
    for statistic in (stats.var, stats.std):
        refused(lambda f=statistic: f([SENTINEL], bounds=(0, 9), epsilon=1))
        statistic([SENTINEL], bounds=(0, 9), epsilon=1, neighbors=AddRemove)


finite = arrays.arrays(
    np.float64, st.integers(2, 6), elements=st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
)
whole = arrays.arrays(np.int64, st.integers(2, 6), elements=st.integers(-(2**63), 2**63 - 1))
bounds = st.sampled_from([(0, 1), (-10.5, 0.25), (-(2**40), 2**40), (0, 110), (1e-6, 1e6), (-(2**63), 2**63 - 1)])


@pytest.mark.parametrize("name", ALL)
@given(x=st.one_of(finite, whole), limits=bounds, relation=st.sampled_from(BOTH))
@settings(max_examples=60)
def test_no_finite_data_cause_an_error(name, x, limits, relation):
    answer = ALL[name](x, bounds=limits, epsilon=1, neighbors=relation)
    repr(answer)
    for item in [answer] if not isinstance(answer, list) else answer:
        item.error()


@pytest.mark.parametrize("name", ALL)
@given(
    entries=st.lists(
        st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans()),
        min_size=2,
        max_size=5,
    )
)
@settings(max_examples=30)
def test_no_list_of_numbers_causes_an_error(name, entries):
    for relation in BOTH:
        ALL[name](entries, bounds=(0, 1), epsilon=1, neighbors=relation)


@each("name", [name for name in dp.stats.__all__ if name[0].islower() and name != "count"])
def test_a_missing_argument_is_named_with_the_reason(name):
    function = getattr(dp.stats, name)
    with refuses(dp.WrongType, "must not be taken from the data"):
        function(DATA, epsilon=1)
    with refuses(dp.WrongType, "expected only x", "got 'colour'"):
        function(DATA, epsilon=1, colour=5)
    with refuses(dp.WrongType, "pass epsilon=1, for example"):
        function(DATA)


def test_an_error_of_the_data_is_not_taken_for_one_of_the_call():
    class Broken:
        def __array__(self, *_args, **_more):
            raise TypeError("7")

    with pytest.raises(TypeError) as refusal:
        dp.stats.mean(Broken(), bounds=(0, 1), epsilon=1)
    assert "bounds" not in str(refusal.value)
