"""What is released from a seed says so."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from dither.randomness import SYSTEM, SeededSource, is_seeded, mark
from support import label

VALUES: list[Any] = [
    3,
    -(2**70),
    0.5,
    -0.0,
    [1, 2.0],
    [],
    np.arange(3),
    np.zeros(2),
    np.int64(4),
    np.float32(0.5),
    np.float64(2.5),
]


@pytest.mark.parametrize("value", VALUES, ids=label)
def test_values_from_a_seed_are_marked_and_equal(value: Any) -> None:
    marked = mark(value, SeededSource(1))
    assert is_seeded(marked)
    assert not is_seeded(value)
    assert np.array_equal(marked, value)
    for shown in (repr(marked), str(marked), f"{marked}"):
        assert "seeded, not private" in shown


@pytest.mark.parametrize("value", VALUES, ids=label)
def test_values_from_the_system_are_left_alone(value: Any) -> None:
    assert mark(value, SYSTEM) is value
    assert "seeded" not in repr(mark(value, SYSTEM))


@pytest.mark.parametrize(("value", "kind"), [(3, int), (0.5, float), ([1], list), (np.zeros(2), np.ndarray)])
def test_marked_values_work_as_what_they_are(value: Any, kind: type) -> None:
    marked = mark(value, SeededSource(1))
    assert isinstance(marked, kind)
    assert is_seeded(pickle.loads(pickle.dumps(marked)))


def test_parts_and_sums_of_a_marked_array_stay_marked() -> None:
    marked = mark(np.arange(6.0), SeededSource(1))
    assert is_seeded(marked[1:3])
    assert is_seeded(marked + 1)
    assert is_seeded(marked.copy())


@pytest.mark.parametrize("value", [None, (1, 2), {"a": 1}])
def test_what_has_no_mark_comes_back_as_it_was(value: object) -> None:
    assert mark(value, SeededSource(1)) is value
    assert not is_seeded(value)


def test_a_copy_begins_at_the_beginning():
    import copy
    import pickle

    source = SeededSource(5)
    first = source.words(9).tolist()
    for again in (copy.deepcopy(source), pickle.loads(pickle.dumps(source))):
        assert again.words(9).tolist() == first
