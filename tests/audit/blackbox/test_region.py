"""Outputs of every type are decomposed into columns, and differences between two distributions are learned."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dither.audit.blackbox.region import Bins, learn_regions
from dither.audit.blackbox.views import View, collect_outputs, concatenate, lowest_bit, number_class, views
from dither.audit.outputs.canonical import Raised

rng = np.random.default_rng()


def on_lattice(values):
    """NumPy's noise leaks in its last bits, and would be caught by them."""
    return np.rint(np.asarray(values) * 2**20) / 2**20


def test_lowest_bit_is_that_of_exact_arithmetic():
    numbers = np.concatenate([rng.laplace(size=200), rng.integers(-50, 50, 50) / 8, [5e-324, 2.0**1000, -3e-310]])
    for value, result in zip(numbers.tolist(), lowest_bit(numbers).tolist(), strict=True):
        if value:
            exact = Fraction(value)
            low = exact.numerator & -exact.numerator
            assert result == low.bit_length() - exact.denominator.bit_length()
    whole = np.array([1, 2, 12, -8, 2**62, -(2**63), 0])
    assert lowest_bit(whole).tolist() == [0, 1, 2, 3, 62, 63, 2000]


def test_kinds_of_numbers_differ():
    assert len(set(number_class(np.array([0.5, np.nan, np.inf, -np.inf, 0.0, -0.0, 2.0])).tolist())) == 7


def test_concatenated_parts_equal_the_whole():
    outputs = [1.5, None, "a", {"n": 1}, [1, 2, 3], np.zeros(2), {"x", "y"}, Raised("ValueError", "no"), 2, True, 1j]
    once, twice = (
        collect_outputs(outputs),
        concatenate([collect_outputs(outputs[:4]), collect_outputs(outputs[4:8]), collect_outputs(outputs[8:])]),
    )
    assert set(once.columns) <= set(twice.columns)
    for name in once.columns:
        assert once.columns[name].tolist().__repr__() == twice.columns[name].tolist().__repr__()


def test_vectors_of_several_lengths_are_padded():
    result = collect_outputs([np.array([1.0]), np.array([1.0, 2.0])])
    assert np.isnan(result.columns[""][0, 1])
    assert result.columns[" length"].tolist() == [1, 2]


def test_tables_of_all_libraries_look_alike():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    rows = [{"city": "a", "n": 3, "m": 0.5}, {"city": "b", "n": 4, "m": None}]
    tables = [rows, pd.DataFrame(rows), pl.DataFrame(rows), pa.Table.from_pylist(rows)]
    for table in tables:
        result = collect_outputs([table, table])
        assert result.columns["['a'].n"].tolist() == [3, 3]
        assert result.columns[" rows"].tolist() == [2, 2]
        assert result.column(" has row 'b' kind").tolist() == ["present"] * 2


def test_bins_separate_atoms_from_their_neighbors():
    values = np.concatenate([np.zeros(500), rng.normal(size=500)])
    bins = Bins.of(values)
    at, above, below = bins(np.array([0.0, 5e-324, -5e-324]))
    assert at not in (above, below)


def split(first, second):
    """Two samples in random order, with labels."""
    outputs = list(first) + list(second)
    labels = np.arange(len(outputs)) >= len(first)
    order = rng.permutation(len(outputs))
    return collect_outputs([outputs[i] for i in order]), labels[order]


def judged(region, first, second):
    """The share of fresh outputs that are guessed, and the log of right against wrong."""
    guesses = [region.guesses(collect_outputs(outputs)) for outputs in (first, second)]
    right, wrong = ((guesses[0] == g).sum() + (guesses[1] == -g).sum() for g in (-1, 1))
    return (right + wrong) / (len(first) + len(second)), math.log((right + 1) / (wrong + 1))


def test_a_shift_is_found():
    """The best test guesses on two thirds of the outputs, at a loss of 1."""
    first, second = (lambda n: on_lattice(rng.laplace(size=n))), (lambda n: on_lattice(rng.laplace(size=n) + 1))
    region = learn_regions(*split(first(4000), second(4000)), 0.01)[0]
    share, log_ratio = judged(region, first(20_000), second(20_000))
    assert share > 0.05
    assert log_ratio > 0.7
    assert "output" in region.description


def test_a_difference_in_the_variance_is_found():
    """Not a threshold of the value: both tails speak for the wider law."""
    first, second = (lambda n: on_lattice(rng.normal(size=n))), (lambda n: on_lattice(3 * rng.normal(size=n)))
    region = learn_regions(*split(first(4000), second(4000)), 0.01)[0]
    share, log_ratio = judged(region, first(20_000), second(20_000))
    assert share > 0.03
    assert log_ratio > 2


def test_a_difference_in_many_coordinates_together_is_found():
    """One coordinate alone has a loss of about 1 at best; together they shift by 2.2 standard deviations."""
    first, second = (
        (lambda n: on_lattice(rng.normal(size=(n, 20)))),
        (lambda n: on_lattice(rng.normal(0.5, 1, (n, 20)))),
    )
    region = learn_regions(*split(first(2000), second(2000)), 0.01)[0]
    share, log_ratio = judged(region, first(5000), second(5000))
    assert share > 0.05
    assert log_ratio > 2


def test_no_difference_is_no_difference():
    """Constant outputs leave nothing to guess by."""
    region = learn_regions(collect_outputs([1] * 100), np.arange(100) % 2 == 0, 0.01)[0]
    assert region.sides == 0
    assert region.description.startswith("nowhere")
    assert region(1) is None


def test_an_infinite_output_is_not_guessed_by_an_empty_set():
    region = learn_regions(*split(np.full(100, 0.0), np.full(100, np.inf)), 0.01)[0]
    assert region(math.inf) == "x_neighbor"
    assert region(0.0) == "x"


def test_views_survive_outputs_of_another_kind():
    """A region learned on vectors meets a number, a label, nothing."""
    outputs = collect_outputs(rng.normal(size=(40, 3)))
    for view in views(outputs, np.arange(40) % 2 == 0):
        for other in (collect_outputs([1.5, 2.5]), collect_outputs(["a", "b"]), collect_outputs([None, np.zeros(7)])):
            assert view(other).shape == (2,)


@pytest.mark.parametrize("column", ["", " kind", "['a'] kind"])
def test_views_have_names(column):
    assert View(column).name
