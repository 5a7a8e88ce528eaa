"""One odd cell in the data of every public function: no error, type or other record's part may depend on it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dither as dp
from dither import AddRemove, DitherError, InvalidData
from dither.public_module import defining_module
from dither.randomness import SeededSource
from support import each

ODD = [None, math.nan, "?", 1.5, 2**70, True]
SURE = 1e6  # so large an epsilon that the noise is next to nothing
COLUMN = [3, 7, 7, 7, 2, 7, 9, 7, 7, 5] * 4
N, BOUNDS = len(COLUMN), (0, 10)

WHERE = {"stats": dp.stats, "density": dp.density, "sensitivity": dp.sensitivity}
# what one record can move at most, in the units of the result
STATISTICS: dict[str, tuple[Callable[..., Any], float]] = {
    "stats.count": (lambda x, **o: dp.stats.count(x, SURE, **o), 1),
    "stats.sum": (lambda x, **o: dp.stats.sum(x, BOUNDS, SURE, **o), 10),
    "stats.mean": (lambda x, **o: dp.stats.mean(x, BOUNDS, SURE, **o), 10 / N),
    "stats.var": (lambda x, **o: dp.stats.var(x, BOUNDS, SURE, **o), 100 / N),
    "stats.std": (lambda x, **o: dp.stats.std(x, BOUNDS, SURE, **o), 10 / math.sqrt(N)),
    "stats.median": (lambda x, **o: dp.stats.median(x, BOUNDS, SURE, **o), 0.01),
    "stats.quantile": (lambda x, **o: dp.stats.quantile(x, 0.6, BOUNDS, SURE, **o), 0.01),
    "stats.quantiles": (lambda x, **o: dp.stats.quantiles(x, [0.5, 0.6], BOUNDS, SURE, **o), 0.01),
    "stats.iqr": (lambda x, **o: dp.stats.iqr(x, BOUNDS, SURE, **o), 4),
    "stats.min": (lambda x, **o: dp.stats.min(x, BOUNDS, SURE, **o), 3),
    "stats.max": (lambda x, **o: dp.stats.max(x, BOUNDS, SURE, **o), 3),
    "stats.histogram": (lambda x, **o: dp.stats.histogram(x, BOUNDS, SURE, bins=5, **o).counts, 1),
    "density.release": (lambda x, **o: dp.density.release(x, BOUNDS, SURE, bins=5, **o).weights, 1 / N),
}
LABELS: dict[str, Callable[[Any], Any]] = {
    "stats.mode": lambda x: dp.stats.mode(x, categories=[7, 3, "?"], epsilon=SURE),
}
SENSITIVITIES: dict[str, Callable[[Any], Any]] = {
    "sensitivity.distance_to_exceed": lambda x: dp.sensitivity.distance_to_exceed(x, 20, BOUNDS, 1.0),
    "sensitivity.local_median": lambda x: dp.sensitivity.local_median(x, BOUNDS),
    "sensitivity.local_order": lambda x: dp.sensitivity.local_order(x, 20, BOUNDS),
    "sensitivity.smooth_iqr": lambda x: dp.sensitivity.smooth_iqr(x, BOUNDS, 0.5),
    "sensitivity.smooth_max": lambda x: dp.sensitivity.smooth_max(x, BOUNDS, 0.5),
    "sensitivity.smooth_mean": lambda x: dp.sensitivity.smooth_mean(x, BOUNDS, 0.5),
    "sensitivity.smooth_median": lambda x: dp.sensitivity.smooth_median(x, BOUNDS, 0.5),
    "sensitivity.smooth_min": lambda x: dp.sensitivity.smooth_min(x, BOUNDS, 0.5),
    "sensitivity.smooth_order": lambda x: dp.sensitivity.smooth_order(x, 20, BOUNDS, 0.5),
    "sensitivity.smooth_quantile": lambda x: dp.sensitivity.smooth_quantile(x, 0.5, BOUNDS, 0.5),
    "sensitivity.smooth_trimmed_mean": lambda x: dp.sensitivity.smooth_trimmed_mean(x, 0.2, BOUNDS, 0.5),
}
# these take records
RECORDS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "RandomizedResponse": lambda x: dp.RandomizedResponse(SURE, 10).release(x),
    "SampleAndAggregate": lambda x: (
        dp.SampleAndAggregate(_picky, 10, BOUNDS).results(x, source=SeededSource(1)).tolist()
    ),
    "ReusableHoldout": lambda x: _held(x)._held_out(_touchy),
}
# these take answers to questions; those of neighbors are within the sensitivity, so either both are numbers or none is
ANSWERS: dict[str, Callable[[list[Any]], Any]] = {
    "Laplace": lambda x: dp.Laplace(1, 1).release(x, source=SeededSource(1)),
    "Gaussian": lambda x: dp.Gaussian(1, 1, 1e-6).release(x, source=SeededSource(1)),
    "MixedNoise": lambda x: dp.MixedNoise(1, 1, 1e-6, 1, len(x)).release(x, source=SeededSource(1)),
    "Staircase": lambda x: [dp.Staircase(1, 1).release(v, source=SeededSource(1)) for v in x],
    "BoundedLaplace": lambda x: [dp.BoundedLaplace(1, 1, 0, 10).release(v, source=SeededSource(1)) for v in x],
    "SparseVector": lambda x: [dp.SparseVector(1, 1).start(0, source=SeededSource(1)).ask(v) for v in x],
}
SCORES: dict[str, Callable[[list[Any]], Any]] = {
    "Exponential": lambda x: dp.Exponential(1, SURE).select_index(x),
    "NoisyMax": lambda x: dp.NoisyMax(1, SURE).select_index(x),
    "PermuteAndFlip": lambda x: dp.PermuteAndFlip(1, SURE).select_index(x),
    "TopK": lambda x: dp.TopK(1, 1, SURE).select_indices(x),
}
NO_RECORDS = {
    "SmoothNoise", "ProposeTestRelease",  # a number and its sensitivity, or distance
    "density.ks_distance", "sensitivity.sampled",  # not private, and says so; draws from a public law
    "stats.Estimate", "stats.EstimateFloat", "stats.EstimateInt", "stats.Histogram", "density.Density",
    "sensitivity.count", "sensitivity.histogram", "sensitivity.linear", "sensitivity.max", "sensitivity.mean",
    "sensitivity.median", "sensitivity.min", "sensitivity.std", "sensitivity.sum", "sensitivity.var",
}  # fmt: skip


def _picky(rows: Any) -> float:
    return float(np.bincount(rows.astype(np.int64)).argmax())


def _touchy(records: Any) -> Any:
    if records.dtype != np.float64 or not np.all(records < 100):
        raise RuntimeError(f"secret {records}")
    return records > 5


def _held(x: Any) -> Any:
    return dp.ReusableHoldout(COLUMN, x, bounds=(0, 1), epsilon=1, threshold=1, limit=1)


def swapped(odd: Any, at: int = 1) -> list[Any]:
    return [*COLUMN[:at], odd, *COLUMN[at + 1 :]]


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except DitherError as refusal:
        return type(refusal), str(refusal)


def test_every_public_function_that_takes_data_is_tried_here():
    tried = {*STATISTICS, *LABELS, *SENSITIVITIES, *RECORDS, *ANSWERS, *SCORES, *NO_RECORDS}
    mechanisms = {name for name in dp.__all__ if inspect.isclass(getattr(dp, name))}
    mechanisms = {name for name in mechanisms if defining_module(getattr(dp, name)).startswith("dither.mechanisms")}
    functions = {f"{place}.{name}" for place, module in WHERE.items() for name in module.__all__}
    assert mechanisms | functions == tried


UNTYPED = {"list": list, "tuple": tuple, "object": lambda x: pd.Series(x, dtype=object)}


@each("name", STATISTICS)
@each("container", UNTYPED)
def test_a_statistic_moves_by_its_sensitivity_and_keeps_its_type(name, container):
    call, largest = STATISTICS[name]
    before = call(UNTYPED[container](COLUMN), nan="lower")
    for odd in ODD:
        after = call(UNTYPED[container](swapped(odd)), nan="lower")
        assert type(after) is type(before)
        assert np.all(np.abs(np.asarray(after, dtype=float) - np.asarray(before, dtype=float)) <= largest + 1e-3), odd
    if name != "density.release":
        call(UNTYPED[container](swapped("?")), nan="drop", neighbors=AddRemove)


@pytest.mark.parametrize("name", STATISTICS)
def test_what_pandas_infers_moves_no_other_record(name):
    """Whole numbers become floats, or objects, by one cell: the result is as close as its sensitivity says."""
    call, largest = STATISTICS[name]
    before = call(pd.Series(COLUMN), nan="lower")
    for odd in ODD:
        after = call(pd.Series(swapped(odd)), nan="lower")
        assert np.all(np.abs(np.asarray(after, dtype=float) - np.asarray(before, dtype=float)) <= largest + 1e-3), odd


@pytest.mark.parametrize("name", STATISTICS)
def test_missing_values_are_refused_alike_by_default(name):
    call, _ = STATISTICS[name]
    refusals = {outcome(lambda odd=odd: call(swapped(odd))) for odd in (None, math.nan, "?", [1], object())}
    assert len(refusals) == 1
    assert next(iter(refusals))[0] is InvalidData


@pytest.mark.parametrize("name", LABELS)
def test_labels(name):
    for container in (*UNTYPED.values(), pd.Series):
        assert LABELS[name](container(COLUMN)) == 7
        for odd in [*ODD, [1], {}]:
            assert LABELS[name](container(swapped(odd))) == 7


@pytest.mark.parametrize("name", SENSITIVITIES)
def test_sensitivities_refuse_missing_values_alike_and_nothing_else(name):
    assert outcome(lambda: SENSITIVITIES[name](COLUMN)) >= 0
    for odd in (1.5, 2**70, True):
        assert outcome(lambda odd=odd: SENSITIVITIES[name](swapped(odd))) >= 0
    refusals = {outcome(lambda odd=odd: SENSITIVITIES[name](swapped(odd))) for odd in (None, math.nan, "?", [1])}
    assert len(refusals) == 1
    assert next(iter(refusals))[0] is InvalidData


@pytest.mark.parametrize("name", RECORDS)
def test_one_record_moves_its_own_part_only(name):
    before = RECORDS[name](COLUMN)
    for odd in [*ODD, [1], object()]:
        for at in (0, 1, N - 1):
            after = RECORDS[name](swapped(odd, at))
            assert type(after) is type(before)
            assert len(after) == len(before)
            assert [type(part) for part in after] == [type(part) for part in before]
            moved = [i for i, (a, b) in enumerate(zip(after, before, strict=True)) if a != b]
            assert len(moved) <= 1
            assert name == "SampleAndAggregate" or moved in ([], [at])


@pytest.mark.parametrize("name", ANSWERS)
def test_each_answer_of_a_list_is_released_by_itself(name):
    answers = [3, 7, 2.5, 9]
    before = ANSWERS[name](answers)
    for odd in ODD:
        after = outcome(lambda odd=odd: ANSWERS[name]([3, odd, 2.5, 9]))
        if isinstance(after, tuple):
            assert odd is None or isinstance(odd, str) or odd != odd  # no number: both neighbors are numbers, or none
            continue
        assert [type(after[i]) for i in (0, 2, 3)] == [type(before[i]) for i in (0, 2, 3)]


@pytest.mark.parametrize("name", SCORES)
def test_the_type_of_one_score_changes_no_other(name):
    for odd in (1.5, True, 2, -math.inf):
        assert SCORES[name]([3, odd, 9, 2**60]) in (3, [3])
        assert SCORES[name]([3, odd, 9, 8.5]) in (2, [2])
    assert SCORES[name]([3, 2**70, 9, 8.5]) in (1, [1])
