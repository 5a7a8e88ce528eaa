"""One rule for values and categories: the same label is the same category in every protocol, and nothing is shown."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import dither as dp
from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.local.labels import labels_digest
from support import each

from .test_protocol import all_protocols, label

SECRET = 987654.125
MISSING = (None, math.nan, np.float64("nan"), pd.NA, pd.NaT)
SAME = ([17, 3], [17.0, 3.0], [17, 3.0], np.array([17.0, 3.0]), np.array([17, 3], dtype=np.uint8), pd.Series([17, 3]))
OTHERS = ([True], ["17"], [b"17"], [17.5], [-1], [SECRET], [[17]], [1 << 70], [1e300], [math.inf])


@each("protocol", [*all_protocols(20, 1), *all_protocols([17, 3.0, 5], 1), dp.local.PaddedSets(20, 2, 1)])
def test_a_number_is_one_category_however_it_is_written(protocol):
    expected = protocol.encode([17, 3]).tolist()
    for values in SAME:
        assert protocol.encode(values).tolist() == expected
    for values in (*OTHERS, *([value] for value in MISSING), [17, None], pd.Series([17, None])):
        with pytest.raises(InvalidData) as error:
            protocol.encode(values)
        assert "Fix: add a category for the others and for missing values" in str(error.value)
        assert "98765" not in str(error.value)


@pytest.mark.parametrize("kind", [dp.local.CountMeanSketch, dp.local.HadamardCountMeanSketch])
def test_a_sketch_without_a_list_reads_values_by_the_same_rule(kind):
    sketch = kind(1)
    for values in SAME:
        assert sketch.encode(values).tolist() == kind(1, [17, 3]).encode([17, 3]).tolist()
    for values in ([True], [17.5], [-1], [SECRET], [[17]], [1 << 70], [math.inf], *([value] for value in MISSING)):
        with pytest.raises(InvalidData, match="texts, byte strings or whole numbers"):
            sketch.encode([17, *values])
    assert len(set(sketch.encode(["17", b"17", 17]).tolist())) == 3


@each("protocol", all_protocols(4, 1))
@each("missing", MISSING)
def test_what_is_missing_is_no_category(protocol, missing):
    kind, options = type(protocol), {}
    if "rows" in protocol.__dataclass_fields__:
        options = {"epsilon": 1, "categories": ["a", missing]}
    else:
        options = {"categories": ["a", missing], "epsilon": 1}
    with pytest.raises(WrongType, match='use a label such as "missing"'):
        kind(**options)


def test_labels_that_differ():
    for labels in ([17, 17.0], ["a", np.str_("a")], [True, np.bool_(True)]):
        with pytest.raises(InvalidArgument, match="labels that differ"):
            dp.local.SubsetSelection(labels, 1)
    both = dp.local.SubsetSelection([1, True, "1", 0, False], 1)
    assert both.encode([True, 1, "1", False, 0]).tolist() == [1, 0, 2, 4, 3]


def test_different_lists_of_labels_have_different_fingerprints():
    lists = [
        ("a\0str:b", "c"),
        ("a", "b\0str:c"),
        ("a\0", "str:b"),
        ("a", "\0str:b"),
        (1, "2"),
        ("1", 2),
        ("\ud800", "b"),
    ]
    assert len({labels_digest(labels) for labels in lists}) == len(lists)
    odd = dp.local.SubsetSelection(["\ud800", "b"], 1)
    assert odd.estimate(odd.privatize(["b"])).n == 1
    with pytest.raises(InvalidData, match="valid Unicode"):
        dp.local.CountMeanSketch(1, ["\ud800", "b"])


@pytest.mark.parametrize("protocol", [dp.local.Mean((0, 10), 1), dp.local.Distribution((0, 10), 4, 1)], ids=label)
def test_what_is_no_number_is_refused_with_what_to_do_about_it(protocol):
    errors = set()
    for values in ([1, SECRET], [math.nan], [None], ["x"], [1, math.inf], pd.Series([1.0, None])):
        with pytest.raises(InvalidData) as error:
            protocol.privatize(values)
        errors.add(str(error.value))
    assert len(errors) == 1  # which of these it was is not told
    assert "such as NaN or None" in errors.pop()


def test_items_of_a_set_count_once_and_must_be_labels():
    p = dp.local.PaddedSets([17, 3], max_items=2, epsilon=40)
    estimate = p.estimate(p.privatize([[17, 17.0, 17]] * 2000))
    assert estimate[17] == pytest.approx(1, abs=7 * estimate.standard_error[0])  # not drawn three times as often
    for items in ([[17]], [True], [None], [17, "17"]):
        with pytest.raises(InvalidData, match="one of the 2 categories"):
            p.privatize([items])
