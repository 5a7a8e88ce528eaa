from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from divergence import refusal

from dither import InvalidData, PureDP, ReusableHoldout
from dither.randomness import SeededSource
from support import FALSE_ALARM, ScriptedSource, refuses, surprise

TRAIN, HELD = np.arange(100.0), np.arange(100.0, 200.0)


def make(train: Any = TRAIN, held: Any = HELD, **more: Any) -> ReusableHoldout:
    return ReusableHoldout(train, held, **{"bounds": (0, 1), "epsilon": 1, "threshold": 0.5, "limit": 2, **more})


def test_agreement_is_answered_from_the_training_data() -> None:
    holdout = make(threshold=1000)
    for _ in range(50):
        answer = holdout.ask(lambda x: x % 2)
        assert (answer.value, answer.from_holdout) == (0.5, False)
    assert holdout.left == 2


def test_disagreement_is_paid_for() -> None:
    holdout = make(threshold=-1000)
    assert holdout.guarantee == PureDP(1)
    for left in (1, 0):
        answer = holdout.ask(lambda x: x >= 100)
        assert answer.from_holdout
        assert holdout.left == left
        assert answer.value != 1.0
    refusal(lambda: holdout.ask(lambda x: x))


def test_the_budget_is_that_of_one_numeric_sparse_vector() -> None:
    m = make(limit=3).mechanism
    assert m.answer is not None
    extent = Fraction(1, 100)
    spent = extent / Fraction(m.threshold_scale) + 3 * 2 * extent / Fraction(m.scale)
    spent += 3 * extent / Fraction(m.answer.scale)
    assert Fraction(999, 1000) < spent <= 1


def test_one_numeric_release_for_each_answer_above() -> None:
    """The words drawn are those of the threshold, of one comparison and of one release: nothing else is drawn."""
    words = ScriptedSource(seed=3)
    holdout = make(threshold=-1000, source=words)
    start = words.used
    value = holdout.ask(lambda x: x >= 100).value
    assert words.used - start == 2
    again = make(threshold=-1000, source=ScriptedSource(seed=3)).ask(lambda x: x >= 100)
    assert again.value == value  # all randomness is of the source that was given


@pytest.mark.slow
def test_the_numeric_answer_has_the_stated_scale() -> None:
    data = {"train": TRAIN[:4], "held": HELD[:4]}
    scale = float(make(**data).mechanism.answer.scale)  # type: ignore[union-attr,arg-type]
    result = np.array(
        [make(**data, threshold=-1000, source=SeededSource(i)).ask(lambda x: x >= 100).value for i in range(2000)]
    )
    edges = np.linspace(-6, 6, 25)

    def chances(s: float) -> Any:
        cdf = np.where(edges < 0, 0.5 * np.exp(edges * scale / s), 1 - 0.5 * np.exp(-np.abs(edges) * scale / s))
        return np.diff(np.concatenate([[0.0], cdf, [1.0]]))

    counts = np.bincount(np.searchsorted(edges, (result - 1) / scale), minlength=26)
    assert surprise(counts, chances(scale)) > FALSE_ALARM
    assert surprise(counts, chances(1.3 * scale)) < FALSE_ALARM


def test_sensitivity_of_distance_and_mean() -> None:
    for train in ([0.0], [1.0], [0.3]):
        for held in ([0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [5.0, -9.0, 0.2]):
            for place in range(3):
                for other in (0.0, 1.0, -math.inf, math.inf, math.nan, 1e308):
                    moved = [other if i == place else v for i, v in enumerate(held)]
                    means = []
                    for part in (held, moved):
                        h = make(train, part)
                        means.append((h._mean(h._train.tolist()), h._mean(h._held_out(lambda x: x))))
                    assert abs(means[0][1] - means[1][1]) <= Fraction(1, 3)
                    distance = [abs(t - m) for t, m in means]
                    assert abs(distance[0] - distance[1]) <= Fraction(1, 3)


def test_no_record_decides_between_an_answer_and_an_error() -> None:
    for bad in (math.nan, math.inf, -math.inf):
        held = HELD.copy()
        held[7] = bad
        assert make(held=held, threshold=1000).ask(lambda x: x / 200).from_holdout is False


@pytest.mark.parametrize("odd", [None, math.nan, "?", 1.5, 2**70, True])
def test_a_question_that_fails_on_a_held_out_record_fails_for_that_record_only(odd: Any) -> None:
    def touchy(records: Any) -> Any:
        if np.any(~(records <= 200)) or np.any(records == 1.5):
            raise RuntimeError(f"secret {records}")
        return records >= 150

    held = [*HELD.tolist()[:-1], odd]
    assert sum(make(held=held)._held_out(touchy)[:-1]) == 49
    assert make(held=held, threshold=1000).ask(touchy).from_holdout is False
    assert make(held=pd.Series(held, dtype=object).to_list(), threshold=1000).ask(touchy).value == 0


def test_what_a_question_raises_is_not_shown() -> None:
    def fail(records: Any) -> Any:
        raise ValueError(f"secret {records[7]}")

    with refuses(InvalidData, "question: expected ") as caught:
        make().ask(fail)
    assert "7" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize(
    "question", [lambda _: 987654.321, lambda x: x[:0], lambda x: np.stack([x, x]), lambda x: x.sum()]
)
def test_answers_of_another_shape_are_refused(question: Any) -> None:
    holdout = make()
    refusal(lambda: holdout.ask(question), "987654")
    assert holdout.left == 2


def test_bad_arguments_are_refused() -> None:
    refusal(lambda: make(train=[]))
    refusal(lambda: make(held=[]))
    refusal(lambda: make(bounds=(1, 0)))
    refusal(lambda: make(bounds=None))
    refusal(lambda: make(epsilon=0))
    refusal(lambda: make(limit=0))
    refusal(lambda: make(threshold=math.nan))
