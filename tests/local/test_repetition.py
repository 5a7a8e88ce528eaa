"""Repeated reports: what a year costs, remembered answers, and budgets that never reset."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import dither as dp
from dither.local.repetition import DeviceBudget, repetition_cost


def test_a_year_of_days() -> None:
    cost = repetition_cost(4, reports=365)
    assert cost.fresh == dp.PureDP(1460)
    assert cost.remembered == dp.PureDP(4)
    assert 1000 < cost.fresh_at_delta.epsilon <= 1460
    small = repetition_cost(dp.local.SubsetSelection(16, 0.1).event, reports=365, values=3, delta=1e-6)
    assert small.fresh == dp.PureDP(36.5)
    assert small.remembered == dp.PureDP(0.3)
    assert small.fresh_at_delta.epsilon < 11
    assert "moments of change are shown" in str(small)
    with pytest.raises(dp.InvalidArgument):
        repetition_cost(1, reports=3, values=4)
    with pytest.raises(dp.WrongType):
        repetition_cost(dp.Gaussian(sensitivity=1, rho=0.1).event)


def test_the_budget_does_not_reset(tmp_path) -> None:
    p, place = dp.local.SubsetSelection(16, 1), tmp_path / "device.sqlite"
    for day in range(3):
        device = DeviceBudget(place, limit=dp.PureDP(3))  # the device is switched on again every day
        device.report(p, 5, question="emoji", occasion=f"day {day}")
        device.close()
    device = DeviceBudget(place, limit=dp.PureDP(3))
    assert device.left is None
    with pytest.raises(dp.BudgetExceeded):
        device.report(p, 5, question="emoji", occasion="day 3")
    with pytest.raises(dp.BudgetExceeded):
        device.report(dp.local.Mean((0, 1), 0.5), 0.5, question="another")
    again = device.report(p, 5, question="emoji", occasion="day 2")  # paid for: the same bytes, free
    assert again == device.report(p, 5, question="emoji", occasion="day 2")
    device.close()


def test_remembered_answers_show_changes_and_cost_once_each(tmp_path) -> None:
    p = dp.local.SubsetSelection(64, 1)
    device = DeviceBudget(tmp_path / "device.sqlite", limit=dp.PureDP(2))
    values = [3, 3, 9, 3, 9, 9]
    sent = [device.report(p, value, question="emoji", remember=True).to_bytes() for value in values]
    assert device.left is None  # two values, not six reports
    pattern = [[one == other for other in sent] for one in sent]
    assert pattern == [[one == other for other in values] for one in values]  # which is what is revealed
    with pytest.raises(dp.BudgetExceeded):
        device.report(p, 4, question="emoji", remember=True)
    assert device.report(p, 9, question="emoji", remember=True).to_bytes() == sent[2]
    device.close()


def test_fresh_reports_differ(tmp_path) -> None:
    device = DeviceBudget(tmp_path / "device.sqlite", limit=dp.PureDP(100))
    p = dp.local.SubsetSelection(64, 1)
    assert len({device.report(p, 3, question="emoji").to_bytes() for _ in range(20)}) == 20
    assert device.left == dp.PureDP(80)
    device.close()


def test_sets_are_one_value_in_any_order(tmp_path) -> None:
    device = DeviceBudget(tmp_path / "device.sqlite", limit=dp.PureDP(1))
    p = dp.local.PaddedSets(["a", "b", "c"], 2, 1)
    one = device.report(p, {"a", "b"}, question="tastes", remember=True)
    assert one == device.report(p, {"b", "a"}, question="tastes", remember=True)
    device.close()


def test_refusals_cost_nothing(tmp_path) -> None:
    device = DeviceBudget(tmp_path / "device.sqlite", limit=dp.PureDP(1))
    p = dp.local.SubsetSelection(4, 1)
    for protocol, value, options in (
        (p, 9, {"question": "q"}),
        (p, 1, {"question": ""}),
        (p, 1, {"question": "q", "remember": True, "occasion": "today"}),
        (dp.Laplace(1, 1), 1, {"question": "q"}),
        (dp.local.Mean((0, 1), 1), 3.0, {"question": "q"}),
    ):
        with pytest.raises((dp.InvalidArgument, dp.InvalidData, dp.WrongType)):
            device.report(protocol, value, **options)
    assert device.left == dp.PureDP(1)
    with pytest.raises(dp.WrongType):
        copy.copy(device)
    device.close()
    with pytest.raises(dp.DitherError):
        DeviceBudget(tmp_path / "device.sqlite", limit=dp.PureDP(50))


def test_values_that_a_protocol_cannot_tell_apart_are_remembered_as_one(tmp_path) -> None:
    device = DeviceBudget(tmp_path / "device.sqlite", limit=dp.PureDP(3))
    p = dp.local.SubsetSelection(64, 1)
    reports = [device.report(p, value, question="emoji", remember=True) for value in (17, np.int64(17), 17.0)]
    assert reports[0] == reports[1] == reports[2]
    sets = dp.local.PaddedSets(["a", "b", "c"], 2, 1)
    answers = [device.report(sets, value, question="s", remember=True) for value in ({"a", "b"}, ["b", "a", "a"])]
    assert answers[0] == answers[1]
    assert device.left == dp.PureDP(1)
    device.close()


def test_an_iterator_is_a_set_and_what_is_none_costs_nothing(tmp_path) -> None:
    device = DeviceBudget(tmp_path / "device.sqlite", limit=dp.PureDP(40))
    sets = dp.local.PaddedSets(["a", "b", "c"], 1, 20)
    for value in ("ab", b"a", None, 3):
        with pytest.raises(dp.WrongType, match="set"):
            device.report(sets, value, question="s")
    assert device.left == dp.PureDP(40)
    report = device.report(sets, iter(["b"]), question="s")
    assert sets.estimate(report)["b"] > 0.9  # an error by chance: about 1e-8
    device.close()
