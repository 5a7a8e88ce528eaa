"""Counterexamples are values of the suite: equal only to themselves, and pickled by name."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from dither.audit.suite.case import all_counterexamples, counterexample


def test_every_counterexample_is_pickled_by_name():
    cases = all_counterexamples()
    assert pickle.loads(pickle.dumps(cases)) == cases
    assert all(counterexample(case.name) is case for case in cases)
    assert len({*cases}) == len(cases)


def test_a_changed_counterexample_is_not_taken_for_the_original():
    changed = replace(all_counterexamples()[0], reason="another")
    assert changed != all_counterexamples()[0]
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(changed)
