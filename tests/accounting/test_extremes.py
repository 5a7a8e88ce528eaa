"""Numbers beyond floats, and workloads too large for an accountant: supported, or refused in words."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import dither as dp
from dither.accounting import (
    Approximate,
    BoundedRange,
    GaussianNoise,
    LaplaceNoise,
    Parallel,
    PoissonSampled,
    Pure,
    ResponseReport,
    best_of,
    pld,
    privacy_curve,
    split,
)
from support import BEYOND_FLOATS, each, refuses, works_or_is_refused

NUMBERS: list[Any] = [*BEYOND_FLOATS, 1 - Fraction(1, 10**30), 1 - Fraction(1, 10**400)]
USES = {
    "repetitions": lambda v: best_of(v * GaussianNoise(1), 1e-6),
    "repetitions of samples": lambda v: best_of(v * PoissonSampled(GaussianNoise(1), 0.01), 1e-6),
    "repetitions in parallel": lambda v: best_of(Parallel(Pure(1), v * Pure(1)), 1e-6),
    "rate": lambda v: best_of(PoissonSampled(GaussianNoise(1), v), 1e-6),
    "rate of pure": lambda v: best_of(PoissonSampled(Pure(1), v), 1e-6),
    "rate of rate": lambda v: best_of(PoissonSampled(PoissonSampled(GaussianNoise(1), v), 0.1), 1e-6),
    "delta": lambda v: best_of(Pure(1) + GaussianNoise(1) + LaplaceNoise(1), v),
    "delta of samples": lambda v: best_of(PoissonSampled(GaussianNoise(1), 0.1), v),
    "ratio": lambda v: best_of(GaussianNoise(v), 1e-6),
    "ratio of Laplace": lambda v: best_of(LaplaceNoise(v), 1e-6),
    "epsilon": lambda v: best_of(Pure(v), 1e-6),
    "range": lambda v: best_of(BoundedRange(v), 1e-6),
    "own delta": lambda v: best_of(Approximate(1, v), 1e-6),
    "categories": lambda v: best_of(ResponseReport(1, v), 1e-6),
    "curve": lambda v: privacy_curve(GaussianNoise(1) + LaplaceNoise(1), v),
    "weights": lambda v: split(dp.PureDP(1), [v, 1]),
    "PureDP": lambda v: str(dp.PureDP(v)),
    "ApproxDP": lambda v: str(dp.ApproxDP(1, v)),
    "ZCDP": lambda v: str(dp.ZCDP(v)),
    "group": lambda v: dp.PureDP(1).group(v),
    "steps": lambda v: dp.learn.NoisyDescent(v, 1.0, 1.0, 1.0, 10, delta=1e-6).guarantee,
    "noise": lambda v: dp.learn.NoisyDescent(3, 1.0, 1.0, v, 10, delta=1e-6).guarantee,
    "noise_for": lambda v: dp.learn.noise_for(v, 1e-6, 3, 1.0),
}


@each("name", USES)
def test_a_number_beyond_floats_is_supported_or_refused(name):
    assert [works_or_is_refused(USES[name], value) for value in NUMBERS].count(False) >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "event", [10**10 * Pure(1), 10**10 * LaplaceNoise(10), 10**18 * PoissonSampled(Pure(Fraction(1, 10**90)), 1e-90)]
)
def test_a_workload_too_large_is_refused_by_one_and_by_all_accountants(event):
    def answer(find: Callable[[], object]) -> None:
        assert find() is not None

    for find in (lambda: pld.guarantee(event, 1e-6), lambda: best_of(event, 1e-6)):
        works_or_is_refused(answer, find)


@pytest.mark.parametrize("error", [MemoryError, OverflowError, ZeroDivisionError, ValueError])
def test_one_accountant_that_fails_leaves_the_others(monkeypatch, error):
    def fail(*_):
        raise error("secret")

    monkeypatch.setattr("dither.accounting.accountants.privacy_loss", fail)
    best = best_of(50 * Pure(0.1), 1e-6)
    assert best.accountant != "pld"
    assert "floats can hold" in str(dict(best.answers)["pld"])


def test_a_loss_that_does_not_fit_the_lattice_is_refused(monkeypatch):
    monkeypatch.setattr("dither.accounting.distribution._MAX_WINDOW", 8)
    with refuses(dp.NotPrivate, "cells of a lattice"):
        pld.guarantee(20 * LaplaceNoise(10), 1e-6)
    assert best_of(20 * LaplaceNoise(10), 1e-6).accountant != "pld"
