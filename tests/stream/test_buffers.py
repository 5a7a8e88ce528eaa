"""Buffers that are optimized, the frozen ones of unknown horizons, and how filters are chosen and recorded.

The optimum over all factorizations.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dither import InvalidArgument
from dither.stream import optimum
from dither.stream.buffers import EPOCHS, FIRST, buffers_for, epoch_buffers, quantized
from dither.stream.filters import Bands, Tree, square_root_coefficients
from dither.stream.mechanism import epoch_filter, from_record, known_filter
from support import refuses


def error_of(filter_, participations=1, separation=1) -> float:
    """The largest RMSE over sigma at unit sensitivity."""
    return float(filter_.l2_sensitivity(participations, separation)) * math.sqrt(filter_.squared_row(filter_.length))


@pytest.mark.parametrize(("horizon", "known"), [(365, 2.944), (1024, 3.273)])
def test_five_buffers_are_within_a_percent_of_the_square_root(horizon, known):
    filter_ = buffers_for(horizon, 5)
    assert len(filter_.weights) <= 5
    assert error_of(filter_) <= 1.01 * known
    assert error_of(filter_) <= 1.0001 * float((square_root_coefficients(horizon) ** 2).sum())


@pytest.mark.parametrize("horizon", [1, 2, 3, 5, 17])
def test_short_horizons(horizon):
    filter_ = buffers_for(horizon, 5)
    assert filter_.decreasing
    assert error_of(filter_) <= 1.001 * float((square_root_coefficients(horizon) ** 2).sum())


@pytest.mark.parametrize(("participations", "separation"), [(5, 1), (12, 30)])
def test_the_schema_is_optimized_for(participations, separation):
    mine = error_of(buffers_for(365, 5, participations, separation), participations, separation)
    others = [buffers_for(365, 5), Bands.square_root(365, 365), Bands.square_root(365, separation)]
    assert mine < 0.96 * min(error_of(item, participations, separation) for item in others)


def test_windows_are_optimized_for():
    window, plain = buffers_for(365, 5, 1, 1, 7), buffers_for(365, 5)

    def window_error(filter_):
        row = filter_.row(365).copy()
        row[:358] -= filter_.row(358)
        return float(filter_.l2_sensitivity(1, 1)) * math.sqrt(float(row @ row))

    assert window_error(window) < 0.75 * window_error(plain)


@pytest.mark.parametrize("epoch", [0, 3, 6])
def test_frozen_buffers_are_good(epoch):
    frozen = epoch_buffers(epoch)
    assert frozen.length == FIRST << epoch
    assert error_of(frozen) <= 1.001 * float((square_root_coefficients(frozen.length) ** 2).sum())


def test_all_frozen_buffers_keep_what_the_proof_needs():
    for epoch in range(EPOCHS):
        frozen = epoch_buffers(epoch)
        assert frozen.decreasing
        assert frozen.rounding < 2
        ideal = (math.log(frozen.length) + 0.5772 + math.log(16)) / math.pi  # the asymptotics of the square root
        assert error_of(frozen) < 1.04 * ideal


def test_records_are_json_and_give_the_same_filter():
    for filter_ in (buffers_for(20, 3), Bands.square_root(20, 5), Tree(20)):
        again = from_record(json.loads(json.dumps(filter_.record())))
        assert again == filter_
        fresh = np.arange(60, dtype=np.int64).reshape(20, 3) << 20
        assert (again.start(3).advance(fresh) == filter_.start(3).advance(fresh)).all()


def test_choices():
    assert known_filter(20, "banded", separation=4) == Bands.square_root(20, 4)
    assert known_filter(20, "banded", bands=6, separation=4) == Bands.square_root(20, 6)
    assert known_filter(20, "square root") == Bands.square_root(20, 20)
    assert epoch_filter(0, "tree") == Tree(64)
    with refuses(InvalidArgument, "factorization"):
        known_filter(20, "fresh")
    with refuses(InvalidArgument, "factorization", "horizon"):
        epoch_filter(0, "banded")
    with refuses(InvalidArgument, "buffers"):
        buffers_for(20, 0)


def test_quantized_parameters_are_short():
    filter_ = quantized(100, np.array([0.7, 0.001]), np.array([0.3, 0.01]))
    assert all(decay <= 1 << 16 for decay in filter_.decays)
    assert np.allclose(1 - filter_.thetas, [0.7, 0.001], rtol=1e-4)


def test_against_a_search_over_factorizations():
    """n = 3: minimize over lower-triangular C by another method."""
    a = np.tril(np.ones((3, 3)))

    def error(x):
        c = np.zeros((3, 3))
        c[np.tril_indices(3)] = x
        c[np.diag_indices(3)] = np.exp(c[np.diag_indices(3)])
        b = a @ np.linalg.inv(c)
        return float(np.sqrt((b * b).sum(axis=1).max() * (c * c).sum(axis=0).max()))

    starts = [np.zeros(6), np.array([0.1, 0.4, 0.0, 0.3, 0.4, -0.1])]
    options = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-10, "fatol": 1e-12}
    best = min(float(minimize(error, start, method="Nelder-Mead", options=options).fun) for start in starts)
    result = optimum(3)
    assert result.lower <= best * (1 + 1e-9)
    assert best == pytest.approx(result.upper, rel=2e-3)


def test_two_steps_in_closed_form():
    assert optimum(2).lower == pytest.approx(2 / math.sqrt(3), rel=1e-4)


def test_bounds_meet_and_are_below_the_square_root():
    result = optimum(64)
    assert 0 <= result.gap <= 1e-4
    square_root = float((square_root_coefficients(64) ** 2).sum())
    assert 1.05 < square_root / result.upper < 1.15
