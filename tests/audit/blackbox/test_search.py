"""The search finds the pair at which code violates its claim, and does not accuse correct code."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dither as dp
from dither.audit.blackbox.search import multi_row_neighbors, search, standard_neighbors
from dither.errors import InvalidArgument, WrongType
from support import refuses

SURE = 1 - 1e-10


def distance(x, y):
    """The numbers of records to remove and to add to get from one data set to the other."""
    left, right = ([repr(v) for v in np.asarray(item).tolist()] for item in (x, y))
    common = 0
    for value in left:
        if value in right:
            right.remove(value)
            common += 1
    return len(left) - common, len(right)


@pytest.mark.parametrize("bounds", [(0, 1), (0.0, 1.0), (-5, 100), (-2.5, 2)])
def test_pairs_are_neighbors(bounds):
    for pair in standard_neighbors(bounds, dp.AddRemove):
        assert distance(pair.x, pair.x_neighbor) == (0, 1), pair.name
    for pair in standard_neighbors(bounds, dp.ReplaceOne):
        assert distance(pair.x, pair.x_neighbor) == (1, 1), pair.name
    for relation in (dp.AddRemove, dp.ReplaceOne):
        names = [pair.name for pair in standard_neighbors(bounds, relation)]
        assert len(names) == len(set(names))
        for pair in standard_neighbors(bounds, relation, unusual=False):
            both = np.concatenate([pair.x, pair.x_neighbor])
            assert ((both >= bounds[0]) & (both <= bounds[1])).all()


def test_multi_row_neighbors_differ_in_one_person():
    for relation in (dp.AddRemove, dp.ReplaceOne):
        for pair in multi_row_neighbors((0, 1), relation):
            others = [[row for row in rows if row["id"] != "q"] for rows in (pair.x, pair.x_neighbor)]
            assert others[0] == others[1]


def noise(scale):
    return dp.Laplace(scale, 1).release(0.0)


BROKEN = {
    "sensitivity at the middle only": lambda x: float(np.sum(x)) + noise(abs(float(np.median(x))) + 1e-3),
    "NaN": lambda x: float(np.clip(x, 0, 1).sum()) + noise(1),
    "wraps": lambda x: (float(x.sum(dtype=x.dtype)) / 255 if x.dtype == np.uint8 else 0.0) + noise(0.1),
}
WHERE = {"sensitivity at the middle only": "bound", "NaN": "NaN", "wraps": "uint8"}


@pytest.mark.parametrize("name", BROKEN)
def test_the_pair_is_found(name):
    with np.errstate(all="ignore"):
        result = search(
            BROKEN[name], bounds=(0, 1), neighbors=dp.ReplaceOne, claim=1, trials=1000, confidence=SURE, finalists=3,
            unusual="middle" not in name,  # it fails at infinity too
        )  # fmt: skip
    assert result.refuted
    assert WHERE[name] in result.name
    assert result.epsilon == max(row["epsilon"] for row in result.table() if row["epsilon"] is not None)
    assert json.loads(json.dumps(result.to_dict()))["pair"] == result.name
    assert result.name in str(result)


@pytest.mark.slow
def test_empty_data_are_tried():
    def emptied(x):
        return "nothing" if len(x) == 0 else dp.Laplace(1, 1).release(len(x))

    result = search(emptied, bounds=(0, 1), neighbors=dp.AddRemove, claim=1, trials=400, confidence=SURE)
    assert result.refuted
    assert result.name.startswith("nothing")


def test_rows_are_not_people():
    pairs = lambda: multi_row_neighbors((0, 1), dp.AddRemove)  # noqa: E731
    rows = lambda x: dp.Laplace(1, 1).release(len(x))  # noqa: E731
    persons = lambda x: dp.Laplace(1, 1).release(len({row["id"] for row in x}))  # noqa: E731
    assert search(rows, pairs, claim=1, trials=1000, confidence=SURE).refuted
    assert not search(persons, pairs, claim=1, trials=1000, confidence=SURE).refuted


@pytest.mark.slow
@pytest.mark.parametrize("relation", [dp.AddRemove, dp.ReplaceOne])
def test_built_in_statistics_are_not_accused(relation):
    def mean(x):
        return dp.stats.mean(x, bounds=(0, 1), epsilon=1, neighbors=relation, nan="lower")

    result = search(mean, bounds=(0, 1), neighbors=relation, claim=1, trials=200, confidence=SURE, finalists=2)
    assert not result.refuted
    assert len(result.tried) > 15


def test_the_worst_of_given_pairs_is_reported():
    pairs = [("near", 0.0, 0.1), ("far", 0.0, 1.0), ("same", 0.0, 0.0)]
    result = search(dp.Laplace(1, 3), pairs, trials=5000)
    assert result.name == "far"
    assert 2 < result.epsilon < 3.5
    assert sum(row["epsilon"] is not None for row in result.table()) == 3


def test_arguments_are_checked():
    with refuses(InvalidArgument, "neighbors"):
        search(abs, bounds=(0, 1))
    with refuses(InvalidArgument, "bounds"):
        search(abs, neighbors=dp.AddRemove)
    with refuses(InvalidArgument, "at least one pair"):
        search(abs, [])
    with refuses(WrongType, "triples"):
        search(abs, [(0, 1)])
