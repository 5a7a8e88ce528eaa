"""Errors of computed columns: noisy tables as they might have been, and rows that are found again in them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.tables.execute.replicates import errors_of_rows, half_width, replicates
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question

ROWS = pa.table({"kind": ["a", "b", "c"] * 400, "x": [float(i % 10) for i in range(1200)]})


@pytest.fixture(scope="module")
def table():
    with dp.open(ROWS, keys={"kind": ["a", "b", "c"]}, bounds={"x": (0, 10)}, budget=dp.PureDP(1000)) as opened:
        yield opened


def test_tables_are_always_the_same_and_have_the_law_of_the_noise(table):
    question = table.sql("SELECT kind, COUNT(*) AS n FROM data GROUP BY kind")
    plan = plan_question(question.query, table.card, ReleaseOptions(epsilon=0.1)).parts[0]
    (measure,) = plan.measures
    released = [{measure: np.array([100, 200, 300])}]
    tables = replicates([plan], released, [3])
    assert tables is not None
    (first,) = tables
    assert first["n"].shape == (1000, 3)
    again = replicates([plan], released, [3])
    assert again is not None
    assert (first["n"] == again[0]["n"]).all()
    noise = first["n"] - [100, 200, 300]
    assert np.abs(noise.mean(axis=0)).max() < 1
    expected = plan.measures[measure].error(0.95, integer=True)
    for column, released in zip(noise.T.tolist(), (100, 200, 300), strict=True):
        assert half_width(released, [released + item for item in column]) == pytest.approx(expected, abs=2)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.15


def test_groups_that_are_too_many_have_no_tables(table):
    question = table.sql("SELECT kind, COUNT(*) AS n FROM data GROUP BY kind")
    plan = plan_question(question.query, table.card, ReleaseOptions(epsilon=0.1)).parts[0]
    (measure,) = plan.measures
    assert replicates([plan], [{measure: np.zeros(1001)}], [1001]) is None


def test_rows_are_found_by_their_keys_in_any_order():
    samples = [[("b", 20 + k), ("a", 10 - k)] for k in range(-100, 100)]
    errors = errors_of_rows(["key", "n"], [("a", 10), ("b", 20)], [0], samples)
    assert list(errors) == ["n"]
    assert all(90 < error < 100 for error in errors["n"])


def test_rows_that_are_missing_or_twice_have_no_error():
    missing = [[("a", k)] for k in range(200)]
    assert errors_of_rows(["key", "n"], [("a", 1), ("b", 2)], [0], missing)["n"][1] is None
    twice = [[("a", k), ("a", k + 1), ("b", k)] for k in range(200)]
    errors = errors_of_rows(["key", "n"], [("a", 1), ("b", 100)], [0], twice)["n"]
    assert errors[0] is None
    assert errors[1] is not None


def test_what_does_not_vary_has_no_column_of_errors():
    assert errors_of_rows(["key", "place"], [("a", 1)], [0], [[("a", 1)]] * 200) == {}


def test_what_noise_moves_to_one_side_has_no_error():
    """The largest of many noisy numbers is too large, and with noise once more it is larger still."""
    assert half_width(100, [90 + k / 10 for k in range(200)]) is not None
    assert half_width(91, [90 + k / 10 for k in range(200)]) is None
