"""The plan of a series: cost, noise by key, error at every step, records."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dither import ZCDP, ApproxDP, InvalidArgument, NotPrivate, PureDP, WrongType
from dither.accounting import gaussian_delta
from dither.exact import down
from dither.ledger.recorded import decode, encode
from dither.randomness import SeededSource
from dither.stream import StreamPlan
from dither.stream.keyed import new_key
from dither.stream.mechanism import laplace_quantile, laplace_sum_tail
from support import refuses

KEY = bytes(range(32))
APPROX = ApproxDP(1, 1e-9)
PLANS = {
    "approx": StreamPlan(horizon=100, budget=APPROX),
    "zcdp": StreamPlan(horizon=100, budget=ZCDP(0.1), max_participations=3, min_separation=7),
    "pure": StreamPlan(horizon=100, budget=PureDP(1), max_participations=2),
    "unknown": StreamPlan(horizon=None, budget=APPROX),
    "unknown, pure": StreamPlan(horizon=None, budget=PureDP(1), max_participations=2),
    "square root": StreamPlan(horizon=100, budget=APPROX, factorization="square root"),
    "banded": StreamPlan(horizon=100, budget=APPROX, factorization="banded", min_separation=10, max_participations=4),
    "tree": StreamPlan(horizon=100, budget=APPROX, factorization="tree"),
    "window": StreamPlan(horizon=100, budget=APPROX, window=7),
}


@pytest.fixture(params=PLANS, name="plan")
def _plan(request) -> StreamPlan:
    return PLANS[request.param]


def test_noise_is_a_function_of_key_and_step(plan):
    noise = plan.noises(KEY, 90)
    assert (plan.noise(KEY, 70) == noise[69]).all()
    stream = plan.start(KEY)
    parts = np.concatenate([stream.advance(count) for count in (1, 62, 1, 1, 25)])
    assert (parts == noise).all()
    assert not (plan.noises(bytes(32), 90) == noise).any()


def test_a_record_continues_with_the_same_noise(plan):
    record = json.loads(json.dumps(plan.record()))
    again = StreamPlan.from_record(record)
    assert (again.noises(KEY, 90) == plan.noises(KEY, 90)).all()
    assert again.guarantee == plan.guarantee
    assert again.record() == plan.record()


@pytest.mark.parametrize("cuts", [(1, 2), (7, 64), (63, 65), (90,)])
def test_noise_goes_on_from_a_record_as_if_it_had_not_stopped(plan, cuts):
    plan = replace(plan, series=6)
    whole, stream, parts = plan.noises(KEY, 100), plan.start(KEY), []
    for first, end in itertools.pairwise((0, *cuts, 100)):
        parts.append(stream.advance(end - first))
        stream = plan.start(KEY, decode(encode(stream.record())))
    assert (np.concatenate(parts) == whole).all()


def test_a_record_is_the_noise_itself_and_fresh_noise_is_that_of_the_new_key(plan):
    """Nothing of an earlier key is needed, and two that go on from one record share only what was drawn before."""
    first = plan.start(KEY)
    first.advance(40)
    record = encode(first.record())
    assert KEY not in record
    assert KEY.hex().encode() not in record
    one, other = (plan.start(bytes([n]) * 32, decode(record)).advance(30) for n in (1, 2))
    assert not (one == other).any()
    assert (plan.start(bytes([1]) * 32, decode(record)).advance(30) == one).all()
    before = plan.noise(KEY, 40)
    assert (plan.start(KEY, decode(record))._last == before).all()


def test_the_size_of_a_record_is_that_of_the_filter():
    sizes = []
    for steps in (10, 90):
        stream = PLANS["approx"].start(KEY)
        stream.advance(steps)
        sizes.append(len(encode(stream.record())))
    assert sizes[0] == sizes[1] < 1000


def test_more_series_do_not_change_the_first_ones():
    several = StreamPlan(horizon=50, budget=APPROX, series=9)
    two = replace(several, series=2, recorded=(several.lattice_bits, several.segments))
    assert (two.noises(KEY, 50) == several.noises(KEY, 50)[:, :2]).all()


def test_a_record_that_was_altered_is_refused():
    record = PLANS["approx"].record()
    plan = PLANS["approx"]
    needed = plan.ratio * plan.distance(plan.segments[0].filter)
    for scale in (float(needed) * 0.9, down(needed) * (1 - 2.0**-52)):  # not even by one part in 2^52
        less = json.loads(json.dumps(record))
        less["segments"][0]["scale"] = scale.hex()
        with refuses(NotPrivate, "recorded"):
            StreamPlan.from_record(less)
    rising = json.loads(json.dumps(record))
    rising["segments"][0]["filter"]["weights"][0] = 1 << 30
    with refuses(NotPrivate, "recorded"):
        StreamPlan.from_record(rising)
    with refuses(InvalidArgument, "record"):
        StreamPlan.from_record({**record, "version": 2})


def test_the_noise_has_more_than_it_needs(plan):
    """By a part in 2^40: a later version whose bounds are a little wider still finds that the budget is kept."""
    for segment in plan.segments[:8]:
        needed = plan.ratio * plan.distance(segment.filter)
        assert needed * (1 + Fraction(1, 1 << 41)) < Fraction(segment.scale) < needed * (1 + Fraction(1, 1 << 39))


@pytest.mark.slow
def test_coverage_at_every_step(plan):
    """Between 94 and 96 %, at every step, for running sums and for windows; and not at a wrong scale."""
    lanes, steps = 20_000, 90
    plan = replace(plan, series=lanes)
    noise = plan.values(plan.start(new_key(SeededSource(4))).advance(steps))
    for window in (None, 1, 7):
        errors = np.array([plan.error(step, window=window) for step in range(1, steps + 1)])
        part = noise.copy()
        if window is not None:
            part[window:] -= noise[:-window]
        inside = (np.abs(part) <= errors[:, None]).mean(axis=1)
        assert inside.min() > 0.94
        assert inside.max() < 0.96
        assert (np.abs(part) <= 0.9 * errors[:, None]).mean() < 0.94


def test_the_variance_is_that_of_what_is_drawn(plan):
    lanes = 4000
    plan = replace(plan, series=lanes)
    noise = plan.values(plan.noises(new_key(SeededSource(8)), 80))
    for step, window in ((1, None), (80, None), (80, 1), (80, 30), (70, 7)):
        drawn = noise[step - 1] - (noise[step - 1 - window] if window else 0)
        ratio = float(np.var(drawn)) / plan.variance(step, window)
        # the kurtosis of Laplace noise is 6: 6 deviations of the ratio, and more, are allowed for
        assert abs(ratio - 1) < 7 * math.sqrt(5 / lanes)
    assert abs(float(np.var(noise[79])) / (1.44 * plan.variance(80)) - 1) > 7 * math.sqrt(5 / lanes), (
        "1.2 times the scale"
    )


def test_the_scale_keeps_the_budget():
    plan = PLANS["approx"]
    (segment,) = plan.segments
    assert Fraction(segment.scale) >= plan.ratio * plan.distance(segment.filter)
    ratio = Fraction(segment.scale) / plan.distance(segment.filter)
    assert gaussian_delta(Fraction(1), ratio) <= 1e-9
    assert plan.distance(segment.filter) <= (1 + Fraction(1, 2000)) * segment.filter.l2_sensitivity(1, 1) * (
        1 << plan.lattice_bits
    ), "rounding costs next to nothing"


def test_participations_are_never_assumed_to_be_one():
    once, often = StreamPlan(horizon=50, budget=APPROX), StreamPlan(horizon=50, budget=APPROX, max_participations=4)
    apart = StreamPlan(horizon=50, budget=APPROX, max_participations=4, min_separation=12)
    assert once.error(50) < apart.error(50) < often.error(50)
    assert StreamPlan(horizon=50, budget=APPROX, max_participations=99, min_separation=60).participations == 1
    double = StreamPlan(horizon=50, budget=APPROX, sensitivity=2)
    assert double.error(50) == pytest.approx(2 * once.error(50), rel=1e-3)


def test_pure_budgets_pay_for_all_levels():
    plan = StreamPlan(horizon=365, budget=PureDP(Fraction(1, 2)), max_participations=3)
    assert plan.variance(1) == pytest.approx(2 * (3 * 9 / 0.5) ** 2, rel=1e-6)


def test_an_unknown_horizon_costs_what_is_said():
    unknown = PLANS["unknown"]
    for steps, most in ((365, 1.6), (10_000, 2.3)):
        known = StreamPlan(horizon=steps, budget=APPROX)
        assert 1 < math.sqrt(unknown.variance(steps) / known.variance(steps)) < most
    assert unknown.segment(64) is unknown.segments[0]
    assert unknown.segment(65) is unknown.segments[1]
    assert unknown.segment(65).first == 65
    assert unknown.segment(192 + 1).first == 193


def test_refusals():
    with refuses(InvalidArgument, "step", "horizon"):
        PLANS["approx"].noises(KEY, 101)
    with refuses(InvalidArgument, "step"):
        PLANS["approx"].variance(0)
    with refuses(WrongType, "budget"):
        StreamPlan(horizon=10, budget=1)
    for wrong in ({"horizon": 0}, {"max_participations": 0}, {"min_separation": 0}, {"series": 0}, {"window": 0}):
        with refuses(InvalidArgument, next(iter(wrong))):
            StreamPlan(**{"horizon": 10, "budget": APPROX, **wrong})
    with refuses(InvalidArgument, "sensitivity"):
        StreamPlan(horizon=10, budget=APPROX, sensitivity=0)
    with refuses(InvalidArgument, "64 bits"):
        StreamPlan(horizon=10, budget=APPROX, sensitivity=1e40)


def test_sums_of_laplace_noises():
    draws = scipy_stats.laplace.rvs(size=(200_000, 3), random_state=1).sum(axis=1)
    assert float((np.abs(draws) > 3.0).mean()) == pytest.approx(laplace_sum_tail(3.0, 3), abs=0.006)
    assert laplace_quantile(0.05, 1) == pytest.approx(math.log(20) / math.sqrt(2))
    assert laplace_quantile(0.05, 2) > laplace_quantile(0.05, 2.5) > laplace_quantile(0.05, 3) > 1.96


@pytest.mark.parametrize("horizon", [16, None])
@pytest.mark.parametrize("changes", [{"first": 2}, {"length": 8}])
def test_a_record_of_other_steps_is_refused(horizon, changes):
    record = StreamPlan(horizon=horizon, budget=ZCDP(0.5), factorization="tree").record()
    record["segments"][0] = {**record["segments"][0], "filter": {"kind": "tree", "length": 16 if horizon else 64}}
    StreamPlan.from_record(record)
    if "first" in changes:
        record["segments"][0]["first"] = 2
    else:
        record["segments"][0]["filter"]["length"] = 8
    with refuses(NotPrivate, "steps"):
        StreamPlan.from_record(record)
