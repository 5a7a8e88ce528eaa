"""Certificates of series over time: the plan holds what it claims, and less noise or a person forgotten is refuted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dither import ZCDP, ApproxDP, NotPrivate, PureDP, WrongType
from dither.audit.proof.certify import certify, certify_unchecked
from dither.audit.proof.streams import fresh_noise, stream_evidence
from dither.stream import RunningSum, StreamPlan
from dither.stream.filters import Tree
from support import each, refuses

BUDGETS = [ApproxDP(1, 1e-6), ZCDP(0.1), PureDP(1)]


@pytest.mark.slow
@each("budget", BUDGETS)
@each(
    "options",
    [
        {},
        {"max_participations": 5, "min_separation": 6},
        {"max_participations": 3, "sensitivity": 2.5},
        {"factorization": "square root", "max_participations": 4},
        {"factorization": "banded", "bands": 8},
        {"factorization": "tree", "max_participations": 2},
        {"series": 20, "sensitivity": 2},
        {"window": 7},
    ],
)
def test_plans_hold(budget, options):
    assert certify(StreamPlan(horizon=40, budget=budget, **options)).holds


def test_unknown_horizons_hold():
    assert certify_unchecked(StreamPlan(horizon=None, budget=PureDP(1), max_participations=2)).holds


def with_noise(plan, factor):
    """The plan as a bug would leave it: so many times the noise."""
    segments = tuple(replace(segment, scale=segment.scale * factor) for segment in plan.segments)
    object.__setattr__(plan, "segments", segments)
    return plan


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("factorization", ["buffers", "square root", "tree"])
def test_less_noise_is_refuted(budget, factorization):
    plan = StreamPlan(horizon=40, budget=budget, factorization=factorization)
    assert certify_unchecked(with_noise(plan, 0.97)).refuted
    with refuses(NotPrivate, "StreamPlan"):
        certify(plan)


def test_noise_for_one_participation_is_refuted_for_two():
    one, two = (StreamPlan(horizon=40, budget=BUDGETS[0], max_participations=count) for count in (1, 2))
    object.__setattr__(two, "segments", one.segments)
    object.__setattr__(two, "lattice_bits", one.lattice_bits)
    assert certify_unchecked(two).refuted


def test_bounds_are_near_each_other():
    evidence = stream_evidence(StreamPlan(horizon=40, budget=ZCDP(0.1), max_participations=3, min_separation=5))
    low, high = evidence.rho
    assert 0.99 < low / high <= 1


def test_a_started_series_is_certified_by_its_plan():
    series = RunningSum(horizon=10, epsilon=1, delta=1e-6)
    with refuses(WrongType, "mechanism", "plan"):
        certify(series)
    assert certify(series.plan).holds


def test_fresh_noise_is_what_the_filter_needs():
    assert fresh_noise(Tree(6), [1, 2, 3, 4, 5, 6]) == [1, 2, 1, 4, 1, 2]
