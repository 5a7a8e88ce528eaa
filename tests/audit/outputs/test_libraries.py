"""Objects of other libraries: what lies behind what is shown is a part of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from dither.audit.outputs.canonical import Frozen, first_difference
from dither.audit.outputs.libraries import library_parts
from support import each

HIDDEN = {
    "levels": lambda n: pd.Series(1.0, index=pd.MultiIndex.from_product([["a"], range(n)])).iloc[:1],
    "categories": lambda n: pd.Series(range(n), dtype="category").iloc[:1],
    "rows of a frame": lambda n: pd.DataFrame({"a": [1, n]}).iloc[:1],
    "values under a mask": lambda n: pd.arrays.IntegerArray(np.array([n, 1]), np.array([True, False])),
    "values of a dictionary": lambda n: pa.array([str(n), "b"]).dictionary_encode().filter(pa.array([False, True])),
    "rows of an array": lambda n: pa.array([1, n])[:1],
    "a parent buffer": lambda n: pa.py_buffer(bytes([1, n])).slice(0, 1),
    "rows of a plan": lambda n: pl.LazyFrame({"a": [n]}).filter(pl.col("a") < 0),
}


@each("name", HIDDEN)
def test_what_lies_behind_is_compared(name):
    one, again, other = (Frozen.of(HIDDEN[name](n)) for n in (3, 3, 4))
    assert not one.opaque
    assert first_difference(one, again) is None
    assert first_difference(one, other) is not None


def test_a_class_is_known_by_its_package():
    assert library_parts(pd.DataFrame) is not None
    assert library_parts(type("DataFrame", (), {})) is None
