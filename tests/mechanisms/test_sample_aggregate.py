"""Sample and aggregate: one record moves one result, whatever the function does with it."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from divergence import refusal

import dither as dp
from dither import SampleAndAggregate
from dither.mechanisms import sample_aggregate
from dither.randomness import SeededSource
from support import ScriptedSource, assert_uniform, each


def touchy(rows: Any) -> float:
    """Fails, or is not finite, for some records."""
    if np.any(rows == 13):
        raise RuntimeError("unlucky")
    if np.any(rows > 1e200):
        return math.inf
    return float(np.max(rows) - np.min(rows) ** 2)


@pytest.mark.parametrize("fn", [np.mean, np.max, np.std, touchy, lambda rows: 1 / (rows[0] - 1)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_record_moves_one_result_only(fn: Any) -> None:
    sample = SampleAndAggregate(fn, blocks=4, bounds=(-5, 5))
    x = np.array([1.0, 2, 0, -3, 4, 1, 1, 2, 5, -5, 13, 0, 2, 7])
    for seed in range(3):
        before = sample.results(x, source=SeededSource(seed))
        assert before.shape == (4,)
        for i, value in itertools.product(range(x.size), (0.0, 13.0, -4.0, 1e300, math.nan, math.inf, -math.inf)):
            y = x.copy()
            y[i] = value
            after = sample.results(y, source=SeededSource(seed))
            assert np.all((after >= -5) & (after <= 5))
            assert np.count_nonzero(before != after) <= 1


def test_blocks_are_disjoint_and_cover_the_rows() -> None:
    for n, blocks in ((4, 4), (10, 3), (101, 7)):
        seen: list[list[int]] = []
        SampleAndAggregate(lambda rows, seen=seen: seen.append(rows.tolist()) or 0.0, blocks, (0, 1)).results(
            np.arange(n)
        )
        assert sorted(itertools.chain(*seen)) == list(range(n))
        assert {len(part) for part in seen} <= {n // blocks, -(-n // blocks)}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "x", None, 1 + 2j, [1, 2]])
def test_what_is_no_finite_number_counts_as_the_lower_bound(bad: Any) -> None:
    results = SampleAndAggregate(lambda _: bad, 2, (3, 9)).results([1.0, 2.0, 3.0])
    assert results.tolist() == [3, 3]


def test_exceptions_count_as_the_lower_bound_and_say_nothing() -> None:
    def fail(rows: Any) -> float:
        raise ValueError(f"secret {rows}")

    assert SampleAndAggregate(fail, 3, (-2, 9)).results(np.arange(9)).tolist() == [-2] * 3
    results = SampleAndAggregate(lambda _: 10**400, 3, (-2, 9)).results(np.arange(9))  # beyond floats
    assert results.tolist() == [-2] * 3
    assert SampleAndAggregate(lambda _: 50, 2, (0, 9)).results(np.arange(4)).tolist() == [9, 9]
    assert SampleAndAggregate(lambda _: -50, 2, (0, 9)).results(np.arange(4)).tolist() == [0, 0]


def test_a_function_cannot_change_the_rows_of_another_block() -> None:
    def spoil(rows: Any) -> float:
        result = float(rows[0])
        rows[:] = 77
        return result

    x = np.arange(8.0)
    assert 77 not in SampleAndAggregate(spoil, 8, (0, 100)).results(x)
    assert x.tolist() == list(range(8))


def test_one_record_does_not_change_the_type_of_the_others() -> None:
    kinds: list[Any] = []

    def kind(rows: Any) -> float:
        kinds.append(rows.dtype)
        return 0.0

    sample = SampleAndAggregate(kind, 2, (0, 1))
    for x in ([1, 2, 3], [1, 2, 2.5], [1, 2, 2**70], [True, 2, 3], (1, 2, 3)):
        sample.results(x)
    assert set(kinds) == {np.dtype(np.float64)}
    for x in ([1.0, 2.0, "x"], [1.0, [2.0]], [1.0, None, object()], pd.Series([7, None]), np.arange(3)):
        sample.results(x)
    assert set(kinds) == {np.dtype(np.float64)}
    objects = np.array([1.0, 2.0, 3.0, "x"], dtype=object)
    for x in (5.0, None, "abc", objects, np.array(["a", "b"]), pd.Series([1, 2, "x"])):
        refusal(lambda x=x: sample.results(x))
    labels = SampleAndAggregate(lambda rows: float(np.mean(rows.astype(float))), 4, (0, 9), kind="label")
    assert sorted(labels.results(objects).tolist()) == [0, 1, 2, 3]  # one record spoils one block


@each("odd", [None, math.nan, "?", 1.5, 2**70, True, [1]])
@each("make", [list, pd.Series, lambda x: pd.Series(x, dtype=object).to_list()])
def test_one_odd_record_moves_one_result(odd: Any, make: Any) -> None:
    """pandas makes floats, or objects, of two hundred whole numbers once one of them is missing."""

    def picky(rows: Any) -> float:
        return float(np.bincount(rows.astype(np.int64)).argmax()) if rows.dtype == np.float64 else 1 / 0

    sample = SampleAndAggregate(picky, blocks=20, bounds=(0, 10))
    column = make([7] * 199 + [odd])
    if str(getattr(column, "dtype", "")) == "object":
        refusal(lambda: sample.results(column))
        return
    before, after = sample.results(make([7] * 200)), sample.results(column)
    assert before.tolist() == [7] * 20
    assert np.count_nonzero(after != 7) <= 1


def test_tables_and_series() -> None:
    table = np.arange(40.0).reshape(20, 2)
    for x, columns in ((table, None), (pd.DataFrame(table), None), (table.tolist(), 2), (table, 2)):
        step = SampleAndAggregate(lambda rows: rows[:, 1].mean() - rows[:, 0].mean(), 5, (0, 3), columns=columns)
        assert step.results(x).tolist() == [1] * 5
    assert SampleAndAggregate(np.mean, 5, (0, 3)).results(pd.Series(np.ones(9))).tolist() == [1] * 5


def test_refusals() -> None:
    for blocks in (0, 1, -1, 2.5, None, "3", True):
        refusal(lambda blocks=blocks: SampleAndAggregate(np.mean, blocks, (0, 1)))
    for bounds in (None, (1, 0), (0, math.inf), (0, 0), 5):
        refusal(lambda bounds=bounds: SampleAndAggregate(np.mean, 2, bounds))
    sample = SampleAndAggregate(np.mean, 4, (0, 1))
    for x in ([], [1.0], np.ones(3), np.ones((3, 9)), np.float64(3)):
        assert "blocks" in refusal(lambda x=x: sample.results(x)) or np.ndim(x) == 0
    assert sample.results(np.ones(4)).tolist() == [1] * 4


def test_the_permutation_comes_from_the_secure_source(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    original = sample_aggregate.resolve

    def spy(source: Any) -> Any:
        seen.append((source, original(source)))
        return seen[-1][1]

    monkeypatch.setattr(sample_aggregate, "resolve", spy)
    sample = SampleAndAggregate(lambda rows: float(rows[0]), 50, (0, 50))
    np.random.seed(1)
    first = sample.results(np.arange(50))
    np.random.seed(1)
    again = sample.results(np.arange(50))
    assert first.tolist() != again.tolist()
    assert [source for source, _ in seen] == [None, None]
    assert all(used.private for _, used in seen)
    script = ScriptedSource([30, 10, 20])
    assert SampleAndAggregate(lambda rows: float(rows[0]), 3, (0, 9)).results([1, 2, 3], source=script).tolist() == [
        2,
        3,
        1,
    ]
    assert script.used == 3


@pytest.mark.slow
def test_all_permutations_are_equally_likely() -> None:
    source, places = SeededSource(9), list(itertools.permutations(range(3)))
    sample = SampleAndAggregate(lambda rows: float(rows[0]), 3, (0, 3))
    draws = [places.index(tuple(sample.results(np.arange(3), source=source).astype(int))) for _ in range(9000)]
    assert_uniform(np.array(draws), 6)


def test_end_to_end_with_a_private_median() -> None:
    x = np.random.default_rng(4).normal(40, 5, 20_000)
    sample = SampleAndAggregate(np.mean, blocks=400, bounds=(0, 100))
    for options in ({}, {"method": "smooth", "delta": 1e-6}, {"method": "smooth"}):
        answer = dp.stats.median(sample.results(x), bounds=(0, 100), epsilon=2, **options)  # type: ignore[arg-type]
        assert abs(answer - 40) < 10
