"""Neighbors take the same path: nothing but the value of an answer may follow from one record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dither import AddRemove, ReplaceOne, stats
from support import each

STATISTICS: dict[str, Any] = {
    "count": lambda x, **more: stats.count(x, 1, **more),
    "sum": lambda x, **more: stats.sum(x, (0, 9), 1, **more),
    "mean": lambda x, **more: stats.mean(x, (0, 9), 1, **more),
    "mean with delta": lambda x, **more: stats.mean(x, (0, 9), 1, 1e-3, **more),
    "variance": lambda x, **more: stats.var(x, (0, 9), 1, **more),
    "std": lambda x, **more: stats.std(x, (0, 9), 1, **more),
    "median": lambda x, **more: stats.median(x, (0, 9), 1, **more),
    "min": lambda x, **more: stats.min(x, (0, 9), 1, **more),
    "max": lambda x, **more: stats.max(x, (0, 9), 1, **more),
    "iqr": lambda x, **more: stats.iqr(x, (0, 9), 1, **more),
    "quantiles": lambda x, **more: stats.quantiles(x, [0.2, 0.4, 0.9], (0, 9), 1, **more),
    "histogram": lambda x, **more: stats.histogram(x, (0, 9), 1, bins=3, **more),
}
CONTAINERS: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "generator": iter,
    "int64": lambda x: np.array(x, dtype=np.int64),
    "float16": lambda x: np.array(x, dtype=np.float16),
    "uint8": lambda x: np.array(x, dtype=np.uint8),
    "pandas": lambda x: pd.Series(x, dtype="int64"),
    "pandas Int64": lambda x: pd.Series(x, dtype="Int64"),
    "polars": lambda x: pl.Series(x, dtype=pl.Int32),
}


def shape(answer: Any) -> Any:
    """All of an answer but its value."""
    if isinstance(answer, list):
        return [shape(item) for item in answer]
    if isinstance(answer, stats.Histogram):
        facts: Any = (answer.counts.dtype, answer.counts.shape, answer.edges.tolist(), answer.error())
    else:
        facts = (answer.mechanism, type(answer.uncertainty), type(answer.interval()[0]))
    return type(answer), answer.guarantee, answer.neighbors, answer.seeded, facts


@each("name", STATISTICS)
@each("container", CONTAINERS)
def test_removing_records_down_to_none_changes_nothing_but_the_value(name, container):
    x = [3, 9, 0, 250, 7]
    shapes = [shape(STATISTICS[name](CONTAINERS[container](x[:n]), neighbors=AddRemove)) for n in range(5, -1, -1)]
    assert all(item == shapes[0] for item in shapes)


GAPS: dict[str, Any] = {
    "list": list,
    "pandas Int64": lambda x: pd.Series(x, dtype="Int64"),
    "pandas object": lambda x: pd.Series(x, dtype="object"),
    "polars Int64": lambda x: pl.Series(x, dtype=pl.Int64),
    "polars Float64": lambda x: pl.Series(x, dtype=pl.Float64),
}


@each("name", STATISTICS)
@each("container", GAPS)
def test_a_missing_value_changes_nothing_but_the_value(name, container):
    make, statistic = GAPS[container], STATISTICS[name]
    for relation, policy in ((AddRemove, "drop"), (AddRemove, "lower"), (ReplaceOne, "lower")):
        shapes = [shape(statistic(make(x), neighbors=relation, nan=policy)) for x in ([3, 4, None], [3, 4, 5])]
        assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", [item for item in STATISTICS if item != "iqr"])
def test_the_kind_of_number_in_a_list_changes_nothing(name):
    for relation in (AddRemove, ReplaceOne):
        lists = ([3, 4, 5], [3, 4.5, 5], [True, 4, 5], [3, 4, 10**400], [3, 2**63, -1], [3.0, 4.0, 5.0])
        shapes = [shape(STATISTICS[name](x, neighbors=relation)) for x in lists]
        assert all(item == shapes[0] for item in shapes)


@pytest.mark.parametrize("container", ["pandas Int64", "polars Int64"])
def test_a_gap_in_a_column_of_large_integers_moves_the_sum_by_one_record(container, paid):
    big = 2**53 + 1
    one, two = (
        paid(lambda x=x: stats.sum(GAPS[container](x), (2**53, 2**53 + 2), 1, nan="lower"))
        for x in ([big] * 100 + [None], [big] * 100 + [big])
    )
    assert one.covers(two)


def test_arrays_and_series_of_integers_give_integers_and_lists_give_floats():
    for make, kind in ((np.array, int), (pd.Series, int), (pl.Series, int), (list, float), (tuple, float)):
        assert isinstance(stats.sum(make([1, 2, 3]), (0, 9), 1), kind)
        assert isinstance(stats.median(make([1, 2, 3]), (0, 9), 1), kind)
        assert isinstance(stats.count(make([1, 2, 3]), 1), int)
    assert isinstance(stats.sum(np.array([1, 2, 3]), (0.0, 9.0), 1), float), "integers need integer bounds too"
