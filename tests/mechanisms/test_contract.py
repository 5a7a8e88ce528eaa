"""What every mechanism must do, run over every mechanism and many parameters."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dither import ApproxDP, BoundedLaplace, Gaussian, Laplace, MixedNoise, PureDP, RandomizedResponse, Staircase
from dither.guarantees import ZCDP
from dither.randomness import SeededSource
from dither.randomness.source import is_seeded
from support import each, label, refuses

SCALARS = [
    Laplace(1, 0.5),
    Laplace(0.1, 3),
    Laplace(Fraction(1, 3), 1),
    Laplace(np.float64(2), np.int64(1)),
    Laplace(2.0**40, 1),
    Laplace(2.0**70, 1),
    Gaussian(1, 1, 1e-6),
    Gaussian(0.5, 0.3, 1e-3, method="classical"),
    Gaussian(2.0**40, 1, 1e-6),
    Gaussian(3, rho=0.5),
    MixedNoise(1, 1, 1e-6),
    MixedNoise(1, 1, 0.3),
    MixedNoise(np.float32(1), 1, 0.3, l2_sensitivity=np.float64(1)),
    Staircase(1, 1),
    Staircase(2.5, 6, gamma=0.3),
    Staircase(2.0**40, 1),
    BoundedLaplace(1, 1, -50, 50),
    BoundedLaplace(0.5, 0.3, np.float64(-50.25), 50.75, delta=0.01),
]
VECTORS = [m for m in SCALARS if isinstance(m, (Laplace, Gaussian, MixedNoise))]
SPLITS = [
    Laplace([1, 2], 1),
    Laplace(np.array([1.0, 2.0]), 1, split=[1, 3]),
    Gaussian((1, 2), 1, 1e-6),
    Staircase([1, 2], 1),
]
RESPONSES = [RandomizedResponse(1), RandomizedResponse(np.float64(0.5), 5), RandomizedResponse(1, np.array(["a", "b"]))]
EVERY = [*SCALARS, *SPLITS, *RESPONSES]
INTEGER_TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOAT_TYPES = ["float16", "float32", "float64"]


@each("m", EVERY)
def test_frozen_values(m: Any) -> None:
    for name in [f.name for f in dataclasses.fields(m)][:2]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(m, name, 5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        m.anything = 5
    again = eval(repr(m), {type(m).__name__: type(m), "Fraction": Fraction})
    for twin in (again, pickle.loads(pickle.dumps(m)), copy.copy(m), copy.deepcopy(m)):
        assert twin == m
        assert hash(twin) == hash(m)
        assert repr(twin) == repr(m)
        assert twin.guarantee == m.guarantee
        assert twin.scale == m.scale
        assert twin.variance == m.variance


def test_different_parameters_are_different_mechanisms() -> None:
    assert len(set(EVERY)) == len(EVERY)
    assert Laplace(1, 1) == Laplace(1.0, 1.0) != Laplace(1, 2)
    assert Laplace([1, 2], 1) == Laplace((1, 2), 1)
    assert Laplace(1, 1) != Staircase(1, 1)


@each("m", EVERY)
def test_the_guarantee_is_a_guarantee_and_bounds_the_curve(m: Any) -> None:
    assert isinstance(m.guarantee, (PureDP, ApproxDP, ZCDP))
    if isinstance(m.guarantee, PureDP):
        assert m.privacy_curve(m.guarantee.epsilon) == 0
        assert m.privacy_curve(0) > 0
    elif isinstance(m.guarantee, ApproxDP):
        assert m.privacy_curve(m.guarantee.epsilon) <= m.guarantee.delta
    assert m.privacy_curve(0) >= m.privacy_curve(0.1) >= m.privacy_curve(1) >= 0


@each("m", SCALARS)
def test_numbers_come_back_as_numbers(m: Any) -> None:
    for whole in (3, 0, -3, True, np.int8(3), np.uint64(3), np.bool_(True)):
        assert type(m.release(whole)) is int
    for real in (3.0, 0.0, -2.5, Fraction(7, 3), np.float32(2.5), np.float64(2.5), np.float16(2.5), np.array(2.5)):
        assert type(m.release(real)) is float
    assert type(m.release(np.array(3))) is int


@each("m", [*SCALARS, *SPLITS])
def test_vectors_come_back_in_their_container(m: Any) -> None:
    n = 1 if m in SCALARS and m not in VECTORS else 2
    assert [type(x) for x in m.release([3] * n)] == [int] * n
    assert [type(x) for x in m.release((3.0,) * n)] == [float] * n
    for dtype in INTEGER_TYPES:
        out = m.release(np.ones(n, dtype=dtype))
        assert (type(out), out.dtype, out.shape) == (np.ndarray, np.int64, (n,))
    for dtype in FLOAT_TYPES:
        out = m.release(np.ones(n, dtype=dtype))
        assert (type(out), out.dtype, out.shape) == (np.ndarray, np.float64, (n,))
    strided = np.arange(2.0 * n)[::2]
    strided.flags.writeable = False
    assert m.release(strided).shape == (n,)
    assert strided.tolist() == [2.0 * i for i in range(n)]


@each("m", [*VECTORS, *SPLITS])
def test_series_keep_index_and_name(m: Any) -> None:
    for dtype, kind in [
        ("int64", "i"),
        ("uint8", "i"),
        ("float32", "f"),
        ("Int64", "i"),
        ("UInt8", "i"),
        ("Float64", "f"),
        ("boolean", "i"),
        ("bool", "i"),
    ]:
        out = m.release(pd.Series([1, 0], dtype=dtype, index=["x", "y"], name="n"))
        assert isinstance(out, pd.Series)
        assert out.index.tolist() == ["x", "y"]
        assert out.name == "n"
        assert out.dtype.kind == kind
    for dtype, kind in [(pl.Int64, pl.Int64), (pl.UInt8, pl.Int64), (pl.Float32, pl.Float64), (pl.Boolean, pl.Int64)]:
        out = m.release(pl.Series("n", [1, 0]).cast(dtype))
        assert isinstance(out, pl.Series)
        assert out.name == "n"
        assert out.dtype == kind


@each("m", [*SCALARS, *SPLITS])
def test_seeded_releases_say_so_and_repeat(m: Any) -> None:
    n = 1 if m in SCALARS and m not in VECTORS else 2
    values: list[Any] = [[1.5] * n, np.ones(n), np.ones(n, dtype=int), pd.Series([1.0] * n), pl.Series("n", [1] * n)]
    if m not in SPLITS:
        values += [3, 2.5, Fraction(1, 3)]
    for value in values:
        released = m.release(value, source=SeededSource(7))
        assert "seeded, not private" in repr(released)
        assert repr(released) == repr(m.release(value, source=SeededSource(7)))
        assert "seeded" not in repr(m.release(value))
        if type(value).__name__ != "Series":
            assert is_seeded(released)
            assert not is_seeded(m.release(value))


@pytest.mark.parametrize("m", VECTORS, ids=label)
def test_a_vector_gets_independent_noise_and_the_array_it_came_in_is_left_alone(m: Any) -> None:
    values = np.full(64, 5.0)
    first = m.release(values)
    assert np.all(values == 5.0)
    assert len(set(first.tolist())) > 32
    assert first.tolist() != m.release(values).tolist()


@each("m", EVERY)
def test_releases_refuse_a_source_that_is_none(m: Any) -> None:
    for junk in ("x", 1, object(), np.random.default_rng(1)):
        with refuses(TypeError):
            m.release(1, source=junk)
