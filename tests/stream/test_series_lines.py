"""What one reading says of a series: exact sums, and no line of a period that was not asked for."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from dither.stream.series_lines import Lines
from support_series import START, opened, series_of


def test_sums_that_do_not_fit_64_bits_are_exact():
    """A sum that overflowed would move by 2^64 where one person moves it by one."""
    large = np.array([1 << 61, 1 << 61, 1 << 61, 1 << 61, -5], dtype=np.int64)
    zeros = np.zeros(5, dtype=np.int64)
    lines = Lines(zeros + 1, zeros, [large, zeros + 1], None, None, None)
    assert lines.increments(1, 2, 1, None).tolist() == [[(1 << 63) - 5, 5], [0, 0]]
    kept = np.array([True, False, False, False, True])
    assert lines.increments(1, 2, 1, kept).tolist() == [[(1 << 61) - 5, 2], [0, 0]]
    assert lines.increments(1, 1, 1, np.zeros(5, dtype=bool)).tolist() == [[0, 0]]


@pytest.mark.parametrize("as_timestamps", [False, True])
def test_a_line_of_another_period_does_not_count(tmp_path, as_timestamps):
    """Whatever an engine makes of a moment: numbers before the first period would count from the end."""
    with opened([], tmp_path / "ledger") as table:
        spec = series_of(table).spec
    days = [START + timedelta(days=day - 1) for day in (3, 4, 5, 5, 6)] + [None, START - timedelta(days=400)]
    moments = [None if d is None else datetime(d.year, d.month, d.day) if as_timestamps else d for d in days]
    count = len(days)
    rows = pa.table(
        {
            "t": moments, "u": [*range(count)], "g0": pa.array([0] * count, pa.int64()),
            **{f"m{i}": pa.array([1] * count, pa.int64()) for i in range(3)},
        }
    )  # fmt: skip
    lines = Lines.read(rows, spec, bytes(32), 4, 5)
    assert lines.step.tolist() == [4, 5, 5]
    assert lines.keys.to_pylist() == [1, 2, 3]
    assert lines.increments(4, 5, 2, None)[:, 0].tolist() == [1, 2]
    assert Lines.read(rows.slice(0, 0), spec, bytes(32), 4, 5).increments(4, 5, 2, None).tolist() == [[0] * 6] * 2
