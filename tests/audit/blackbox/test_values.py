"""Measurements, searches, replays and pairs are values: they compare, hash and pickle."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import dither as dp
from dither.audit import Pair, measure, replay, search
from dither.audit.blackbox.features import collect_outputs
from dither.audit.blackbox.region import learn_regions


def noisy_dict(x):
    noise = dp.Laplace(1, 1)
    return {"a": noise.release(float(x)), "b": noise.release(int(x)), "c": "yes" if x else "no"}


VALUES = {
    "measurement of numbers": lambda: measure(dp.Laplace(1, 1), 0.0, 1.0, trials=400),
    "measurement of dicts": lambda: measure(noisy_dict, 0, 1, trials=200),
    "measurement of constants": lambda: measure(lambda _: 1, 0, 1, trials=50),
    "search": lambda: search(dp.Laplace(1, 1), [("near", 0.0, 0.1), ("far", 0.0, 1.0)], trials=100),
    "replay": lambda: replay(dp.Laplace(1, 1).release, 0, 1),
    "pair": lambda: Pair("one more", np.zeros(2), np.zeros(3)),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_equals_its_pickled_copy(name):
    value = VALUES[name]()
    restored = pickle.loads(pickle.dumps(value))
    assert restored == value
    assert hash(restored) == hash(value)
    assert value != "something else"


def test_values_with_other_content_differ():
    assert Pair("a", np.zeros(2), np.zeros(3)) == Pair("a", np.zeros(2), np.zeros(3))
    assert Pair("a", np.zeros(2), np.zeros(3)) != Pair("a", np.zeros(2), np.ones(3))
    assert measure(dp.Laplace(1, 1), 0.0, 1.0, trials=400) != measure(dp.Laplace(1, 9), 0.0, 1.0, trials=400)


def test_regions_that_contain_arrays_compare():
    outputs, labels = collect_outputs(np.repeat([0.0, 1.0, 2.0], 40)), np.arange(120) >= 60
    assert learn_regions(outputs, labels, 0.01) == learn_regions(outputs, labels, 0.01)
    assert learn_regions(outputs, labels, 0.01) != learn_regions(outputs, ~labels, 0.01)
