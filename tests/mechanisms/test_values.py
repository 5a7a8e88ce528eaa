"""What may be released and what is refused; and the faults verified in other libraries, which must not occur here."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from divergence import refusal

from dither import BoundedLaplace, Gaussian, Laplace, MixedNoise, Staircase
from dither.mechanisms import values
from support import each, label

SECRET = 987654.321
MECHANISMS = [
    Laplace(1, 1),
    Laplace([1, 1], 1),
    Gaussian(1, 1, 1e-6),
    Gaussian(1, rho=0.5),
    MixedNoise(1, 1, 0.3),
    Staircase(1, 1),
    Staircase([1, 1], 1),
    BoundedLaplace(1, 1, 0, 10),
]
BAD = {
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "none": None,
    "string": str(SECRET),
    "bytes": b"987654.321",
    "complex": complex(SECRET),
    "object": object(),
    "decimal": Decimal(str(SECRET)),
    "date": datetime.date(1987, 6, 5),
    "timedelta": np.timedelta64(987654, "s"),
    "not a time": np.timedelta64("NaT", "s"),
    "datetime": np.datetime64("1987-06-05"),
    "dict": {"a": SECRET},
    "set": {SECRET},
    "generator": (x for x in [SECRET]),
    "huge fraction": Fraction(987654 * 10**400),
    "masked": np.ma.masked,
    "list with none": [SECRET, None],
    "list with string": [SECRET, "x"],
    "list with nan": [SECRET, math.nan],
    "list with inf": [SECRET, math.inf],
    "nested list": [[SECRET], [1.0]],
    "list with complex": [SECRET, 1j],
    "list with timedelta": [SECRET, np.timedelta64("NaT", "s")],
    "empty list": [],
    "empty tuple": (),
    "empty array": np.array([]),
    "empty integers": np.array([], dtype=int),
    "empty series": pd.Series([], dtype=float),
    "nan array": np.array([SECRET, math.nan]),
    "inf array": np.array([SECRET, -math.inf]),
    "two dimensions": np.full((2, 2), SECRET),
    "strings": np.array([str(SECRET), "x"]),
    "objects": np.array([SECRET, None]),
    "complex array": np.array([SECRET, 1j]),
    "long doubles": np.array([SECRET, 1.0], dtype=np.longdouble),
    "datetimes": np.array(["1987-06-05", "2020-01-01"], dtype="datetime64[D]"),
    "timedeltas": np.array([987654, 1], dtype="timedelta64[s]"),
    "records": np.array([(SECRET, 1)], dtype=[("a", float), ("b", int)]),
    "masked nan": np.ma.array([SECRET, math.nan], mask=[False, True]),
    "masked integers": np.ma.array([987654, 1], mask=[False, True]),
    "pandas nan": pd.Series([SECRET, math.nan]),
    "pandas inf": pd.Series([SECRET, math.inf]),
    "pandas missing": pd.Series([987654, None], dtype="Int64"),
    "pandas strings": pd.Series([str(SECRET), "x"]),
    "pandas dates": pd.Series(pd.to_datetime(["1987-06-05", "2020-01-01"])),
    "pandas objects": pd.Series([SECRET, object()]),
    "data frame": pd.DataFrame({"a": [SECRET]}),
    "index": pd.Index([SECRET]),
    "polars null": pl.Series([SECRET, None]),
    "polars nan": pl.Series([SECRET, math.nan]),
    "polars strings": pl.Series([str(SECRET), "x"]),
    "polars lists": pl.Series([[SECRET], [1.0]]),
    "polars dates": pl.Series([datetime.date(1987, 6, 5), datetime.date(2020, 1, 1)]),
    "polars frame": pl.DataFrame({"a": [SECRET]}),
}


@each("m", MECHANISMS)
@each("value", BAD.values())
def test_bad_values_are_refused_without_showing_them(m: Any, value: Any) -> None:
    refusal(lambda: m.release(value), "987654", "1987", SECRET)


def test_a_mask_that_hides_nothing_is_no_obstacle() -> None:
    assert Laplace(1, 1).release(np.ma.array([1.0, 2.0])).shape == (2,)
    assert type(Laplace(1, 1).release(np.ma.array(2.0))) is float


@each("m", [m for m in MECHANISMS if not isinstance(m.scale, tuple)])
@each("value", [0.0, 1.0, 0.1, 1e-300, -5e-324, 3.3])
def test_no_float_has_bits_below_the_lattice(m: Any, value: float) -> None:
    """diffprivlib: outputs with bits below 2^-53 appear for 0 and never for 1."""
    step = m.lattice_step if isinstance(m, BoundedLaplace) else m.noise.lattice_steps[0]
    limits = (0.0, 10.0)
    for released in [m.release(value) for _ in range(300)]:
        assert released in limits or released / step == round(released / step)
        assert not (released == 0 and math.copysign(1, released) < 0)
    for released in m.release(np.full(300 if not isinstance(m, (Staircase, BoundedLaplace)) else 1, value)):
        assert released in limits or released / step == round(released / step)
        assert not (released == 0 and math.copysign(1, released) < 0)


@each("m", [m for m in MECHANISMS if not isinstance(m, BoundedLaplace)])
@each("value", [2**60, -(2**60), 2**62, 10**40])
def test_large_integers_still_get_noise(m: Any, value: int) -> None:
    """diffprivlib: Geometric is a constant at 2^60."""
    n = len(m.scale) if isinstance(m.scale, tuple) else 1
    noise = {x - value for _ in range(200) for x in m.release([value] * n)}
    assert len(noise) >= 3
    assert {x % 2 for x in noise} == {0, 1}
    if abs(value) < 2**63:
        assert len({x - value for _ in range(200) for x in m.release(np.array([value] * n)).tolist()}) >= 3


@pytest.mark.parametrize("m", [m for m in MECHANISMS if not isinstance(m, BoundedLaplace)], ids=label)
def test_small_unsigned_integers_do_not_wrap(m: Any) -> None:
    n = len(m.scale) if isinstance(m.scale, tuple) else 1
    for dtype, value in ((np.uint8, 255), (np.uint8, 0), (np.int8, -128), (np.int8, 127), (np.bool_, 1)):
        for _ in range(40):
            assert all(abs(x - value) < 120 for x in m.release(np.full(n, value, dtype=dtype)).tolist())


@each("m", [*MECHANISMS[:-1], Laplace(2.0**64, 1), Gaussian(2.0**64, 1, 1e-3)])
@each("value", [2**63 - 1, -(2**63), 2**64 - 1])
def test_64_bit_extremes_saturate(m: Any, value: int) -> None:
    n = len(m.scale) if isinstance(m.scale, tuple) else 1
    seen = set()
    for _ in range(60):
        out = m.release(np.full(n, value, dtype=np.uint64 if value > 2**63 else np.int64))
        assert out.dtype == np.int64
        seen.update(out.tolist())
    end = 2**63 - 1 if value > 0 else -(2**63)
    assert end in seen
    if float(np.max(m.scale)) < 1000:
        assert all(abs(x - end) < 10_000 for x in seen)


def test_noise_beyond_64_bits_does_not_show_the_value() -> None:
    """Cut off before it is added, it would release value + 2^63 - 1 exactly."""
    for m in (Laplace(2.0**64, 1), Laplace(2.0**62, 1), Gaussian(2.0**64, 1, 1e-3)):
        for value in (-5, -987654, 12345):
            seen = set(m.release(np.full(200, value)).tolist())
            assert value + 2**63 - 1 not in seen
            assert value - 2**63 not in seen
            step = m.integer_step(0) if m.scale > 2**56 else 1
            assert all(x % step == 0 for x in seen - {2**63 - 1, -(2**63)})


def test_saturating_addition_agrees_with_unbounded_integers() -> None:
    ends = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1]
    for x in ends:
        for noise in ends:
            got = values.add_saturating(np.array([x]), np.array([noise]))[0]
            assert int(got) == min(max(x + noise, -(2**63)), 2**63 - 1)


@pytest.mark.parametrize("value", [1.7976931348623157e308, -1.7976931348623157e308, 2.0**70, 5e-324, -0.0])
def test_extreme_floats_release_without_error(value: float) -> None:
    for m in (Laplace(1, 1), Gaussian(1, 1, 1e-6), Laplace(1e100, 1e-100)):
        assert not math.isnan(m.release(value))
        assert not np.any(np.isnan(m.release(np.array([value] * 3))))
