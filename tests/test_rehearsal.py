"""A wrong argument of a release costs nothing: inside a ledger scope it is refused before anything is charged."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dither as dp
from dither import mechanisms
from dither.budget_hooks import charging_to
from dither.randomness import SeededSource
from dither.rehearsal import rehearse, stand_in
from support import each, refuses

X = np.linspace(0.0, 1.0, 51)
COLUMN = {"x": X, "bounds": (0, 1), "epsilon": 1}
SCORES = {"candidates": ["a", "b", "c"], "scores": [1, 2, 3]}

CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Laplace.release": (dp.Laplace(1, 1).release, {"value": 3}),
    "Gaussian.release": (dp.Gaussian(1, 1, 1e-6).release, {"value": np.arange(3)}),
    "Staircase.release": (dp.Staircase(1, 1).release, {"value": 3.0}),
    "MixedNoise.release": (dp.MixedNoise(1, 1, 1e-6).release, {"value": [1.0, 2.0]}),
    "BoundedLaplace.release": (dp.BoundedLaplace(1, 1, lower=0, upper=9).release, {"value": 3.0}),
    "RandomizedResponse.release": (dp.RandomizedResponse(1).release, {"value": [True, False]}),
    "SmoothNoise.release": (
        dp.SmoothNoise("cauchy", 1).release,
        {"value": 0.5, "smooth_sensitivity": 0.1, "width": 1.0},
    ),
    "ProposeTestRelease.release": (
        dp.ProposeTestRelease(epsilon=1, delta=1e-6, bound=0.1).release,
        {"value": 0.5, "distance": 9},
    ),
    "Exponential.select": (dp.Exponential(1, 1).select, SCORES),
    "Exponential.select_index": (dp.Exponential(1, 1).select_index, {"scores": [1, 2, 3]}),
    "NoisyMax.select": (dp.NoisyMax(1, 1).select, SCORES),
    "NoisyMax.select_index": (dp.NoisyMax(1, 1).select_index, {"scores": [1, 2, 3]}),
    "TopK.select": (dp.TopK(2, 1, 1).select, SCORES),
    "TopK.select_indices": (dp.TopK(2, 1, 1).select_indices, {"scores": [1, 2, 3]}),
    "SparseVector.start": (dp.SparseVector(1, 1).start, {"threshold": 3}),
    "stats.count": (dp.stats.count, {"x": X > 0.5, "epsilon": 1}),
    "stats.sum": (dp.stats.sum, COLUMN),
    "stats.mean": (dp.stats.mean, COLUMN),
    "stats.var": (dp.stats.var, COLUMN),
    "stats.std": (dp.stats.std, COLUMN),
    "stats.histogram": (dp.stats.histogram, {**COLUMN, "bins": 4}),
    "stats.quantile": (dp.stats.quantile, {**COLUMN, "q": 0.5, "method": "exponential"}),
    "stats.median": (dp.stats.median, {**COLUMN, "method": "exponential"}),
    "stats.quantiles": (dp.stats.quantiles, {**COLUMN, "q": [0.2, 0.8]}),
    "stats.iqr": (dp.stats.iqr, COLUMN),
    "stats.min": (dp.stats.min, COLUMN),
    "stats.max": (dp.stats.max, COLUMN),
    "stats.mode": (dp.stats.mode, {"x": ["a", "b"] * 9, "categories": ["a", "b"], "epsilon": 1}),
    "density.release": (dp.density.release, {**COLUMN, "method": "histogram", "bins": 8}),
}
DATA = {"x", "value", "scores", "distance", "smooth_sensitivity"}
USER_CODE = {
    "Exponential.select_integer": "its arguments may depend on the data",
    "PermuteAndFlip.select": "NoisyMax.select",
    "PermuteAndFlip.select_index": "NoisyMax.select_index",
    "ContinuousExponential.release": "its pieces are the data",
}
WRONG_TYPES = [None, "text", {}, object(), 1j, {1, 2}]
WRONG_VALUES = [*WRONG_TYPES, -1, 0, math.nan, math.inf, 10**400, (1, 0), (0, math.inf), [], [2.0], True, SeededSource]


class Counter:
    """A spender that counts what it is asked to charge."""

    def __init__(self) -> None:
        self.charged = 0

    def spend(self, what: Any, compute: Callable[[], Any], *, private: bool, recordable: bool = True) -> Any:
        self.charged += 1
        return compute()


def wrong_calls() -> Iterator[Any]:
    for name, (function, arguments) in CALLS.items():
        parameters = {**dict.fromkeys(inspect.signature(function).parameters), **arguments}
        for parameter in parameters:
            for value in WRONG_TYPES if parameter in DATA else WRONG_VALUES:
                yield name, parameter, value


def test_no_wrong_argument_is_charged() -> None:
    """Whatever is refused without a ledger, for another reason than the data, is refused uncharged with one."""
    refusals = 0
    for name, parameter, value in wrong_calls():
        function, arguments = CALLS[name]
        try:
            function(**{**arguments, parameter: value})
        except dp.InvalidData:
            continue
        except (dp.DitherError, TypeError, ValueError):
            refusals += 1
        else:
            continue
        spender = Counter()
        with charging_to(spender), pytest.raises((dp.DitherError, TypeError, ValueError)):
            function(**{**arguments, parameter: value})
        assert spender.charged == 0, f"{name}: {parameter} = {value!r} was charged"
    assert refusals > 500


@each("name", CALLS)
def test_a_right_call_is_charged_once(name: str) -> None:
    function, arguments = CALLS[name]
    spender = Counter()
    with charging_to(spender):
        function(**arguments)
    assert spender.charged == 1


def test_every_release_of_the_public_face_is_tried() -> None:
    marked = {
        f"{kind}.{method}"
        for kind in set(mechanisms.__all__) & set(dp.__all__)
        for method in dir(getattr(mechanisms, kind))
        if hasattr(getattr(getattr(mechanisms, kind), method), "covered_part") and not method.startswith("_")
    }
    marked |= {f"stats.{name}" for name in dp.stats.__all__ if hasattr(getattr(dp.stats, name), "covered_part")}
    marked |= {"density.release"}
    assert marked - set(USER_CODE) == set(CALLS)


def test_what_is_wrong_with_the_data_is_charged() -> None:
    """Whether a record is missing depends on the data: that refusal is an answer, and is paid for."""
    spender = Counter()
    with charging_to(spender), refuses(dp.InvalidData):
        dp.stats.mean([0.5, math.nan], bounds=(0, 1), epsilon=1)
    assert spender.charged == 1


def test_a_ledger_keeps_its_budget(tmp_path: Path) -> None:
    with dp.ledger.open(tmp_path / "budget.sqlite") as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        with ledger.scope("visits"):
            with refuses(dp.InvalidArgument, "bounds"):
                dp.stats.mean(X, bounds=(1, 0), epsilon=0.5)
            with pytest.raises(dp.WrongType):
                dp.Laplace(1, 0.5).release("text")
        assert ledger.left("visits") == dp.PureDP(1)


def test_code_of_the_user_does_not_run() -> None:
    class Unreadable:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError("the data were read before the charge")

    rehearse(dp.stats.mean, {"x": Unreadable(), "bounds": (0, 1), "epsilon": 1})
    rehearse(dp.stats.mean, {"x": [Unreadable()], "bounds": (0, 1), "epsilon": 1})
    rehearse(dp.stats.mode, {"x": ["a"], "categories": [Unreadable()], "epsilon": 1})
    one_shot = iter(["a", "b"])
    rehearse(dp.stats.mode, {"x": ["a"], "categories": one_shot, "epsilon": 1})
    assert list(one_shot) == ["a", "b"]


def test_stand_ins_have_the_type_and_the_shape_of_the_data() -> None:
    table = stand_in(np.ones((3, 2), dtype=np.int32))
    assert (table.shape, table.dtype, table.any()) == ((3, 2), np.int32, np.False_)
    assert stand_in(np.ones((3, 2)), 7).shape == (7, 2)
    assert stand_in(True) is False
    assert stand_in(None) is None


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, lambda x: pa.table({"a": x[:, 0], "b": x[:, 1]})])
def test_frames_keep_their_columns(frame: Any) -> None:
    rows = np.linspace(0.1, 0.9, 40).reshape(20, 2)
    assert stand_in(frame(rows)).shape == (20, 2)
    assert stand_in(frame(rows), 5).shape == (5, 2)
    rehearse(dp.density.release, {"x": frame(rows), "bounds": [(0, 1), (0, 1)], "epsilon": 1, "bins": 4})


def test_a_mechanism_of_the_users_does_not_run() -> None:
    class Mine(dp.Laplace):
        def release(self, value: Any, source: Any = None) -> Any:
            raise AssertionError("it ran before the charge")

    rehearse(Mine.release, {"self": Mine(1, 1), "value": 3})
