"""The made-up people and what their summary costs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dither import stats
from dither.cli import demo


def test_people_are_within_the_bounds_of_their_columns_and_differ_each_time():
    one, two = demo.make_people(500), demo.make_people(500)
    assert one.age.min() >= demo.AGES[0]
    assert one.age.max() <= demo.AGES[1]
    assert (one.income > 0).all()
    assert not np.array_equal(one.income, two.income)


@pytest.mark.parametrize("epsilon", [1, 0.1, 0.3333333333333333, 1e-3, 7])
def test_the_five_answers_cost_exactly_what_was_allowed(epsilon, monkeypatch, capsys):
    """Five times a share rounded to a float can be more than the whole."""
    costs = []
    originals = {name: getattr(stats, name) for name in ("count", "mean", "median", "histogram")}
    for name in originals:

        def ask(*arguments, original=originals[name], **more):
            answer = original(*arguments, **more)
            costs.append(answer.guarantee.exact_epsilon)
            return answer

        monkeypatch.setattr(demo.stats, name, ask)
    demo.run(50, epsilon)
    assert len(costs) == 5
    assert sum(costs) == Fraction(repr(epsilon))
    assert "spent: ε" in capsys.readouterr().out
