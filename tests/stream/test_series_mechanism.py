"""The mechanism of a series: multipliers that are recorded, and that the sensitivity of the plan is theirs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dither import ApproxDP, NotPrivate, PureDP
from dither.stream import series_spec
from dither.stream.series_spec import Lane, SeriesMechanism, joint_sensitivity
from support import refuses

LANES = (Lane(3, 2.0), Lane(500, 7.0, Fraction(4)), Lane(1, 1.0))
SCHEMA = {"horizon": 20, "participations": 2, "separation": 3}
BUDGETS = [ApproxDP(1, 1e-6), PureDP(1)]


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_series_goes_on_with_the_multipliers_that_it_recorded(budget, monkeypatch):
    """A later version that would choose others must not use them with the plan that was recorded."""
    first = SeriesMechanism.planned("daily", LANES, 2, budget, **SCHEMA)
    monkeypatch.setattr(series_spec, "multipliers", lambda lanes, _: (9,) * len(lanes))
    again = SeriesMechanism.from_record("daily", LANES, 2, first.record())
    assert again.factors == first.factors
    increments = np.arange(12, dtype=np.int64).reshape(2, 6)
    before, noise = np.ones(6, dtype=object), first.plan.noises(bytes(32), 2)
    assert (again.release(increments, before, noise) == first.release(increments, before, noise)).all()
    assert (again.errors(1, 5) == first.errors(1, 5)).all()


@pytest.mark.parametrize("budget", BUDGETS)
def test_multipliers_that_move_further_than_the_plan_are_refused(budget):
    first = SeriesMechanism.planned("daily", LANES, 2, budget, **SCHEMA)
    q = first.factors
    for changed in [(q[0] + 1, *q[1:]), (*q[:-1], 2 * q[-1]), q[:-1], (*q, 1), (0, *q[1:]), (-q[0], *q[1:])]:
        with refuses(NotPrivate, "multipliers"):
            SeriesMechanism.from_record("daily", LANES, 2, {**first.record(), "multipliers": list(changed)})
    larger = (Lane(4, 2.0), *LANES[1:])
    with refuses(NotPrivate, "multipliers"):
        SeriesMechanism.from_record("daily", larger, 2, first.record())
    with refuses(NotPrivate, "multipliers"):
        SeriesMechanism.from_record("daily", LANES, 3, first.record())


def test_the_joint_sensitivity_is_the_norm_of_what_a_person_moves():
    lanes, factors = [Lane(3, 1.0), Lane(5, 1.0)], (2, 7)
    assert joint_sensitivity(lanes, factors, pure=True) == 6 + 35
    exact = 6**2 + 35**2
    assert exact <= joint_sensitivity(lanes, factors, pure=False) ** 2 < exact + Fraction(1, 10**9)
