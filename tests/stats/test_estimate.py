"""An answer is the number it is, knows its error and its cost, and says where it comes from."""

from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pytest

from dither import AddRemove, DitherError, PureDP, ReplaceOne, stats
from dither.randomness import SeededSource
from support import refuses

X = np.arange(100) % 7
ANSWERS = {
    "count": lambda **more: stats.count(X, 1, **more),
    "sum": lambda **more: stats.sum(X, (0, 6), 1, **more),
    "sum of floats": lambda **more: stats.sum(X / 2, (0, 3), 1, **more),
    "mean": lambda **more: stats.mean(X, (0, 6), 1, **more),
    "variance": lambda **more: stats.var(X, (0, 6), 1, **more),
    "std": lambda **more: stats.std(X, (0, 6), 1, **more),
    "median": lambda **more: stats.median(X, (0, 6), 1, **more),
    "min": lambda **more: stats.min(X / 2, (0, 3), 1, **more),
    "max": lambda **more: stats.max(X, (0, 6), 1, **more),
}
WHOLE = {"count", "sum", "median", "max"}


@pytest.fixture(params=[AddRemove, ReplaceOne])
def relation(request):
    return request.param


@pytest.fixture(params=ANSWERS)
def name(request):
    return request.param


def test_it_is_the_number_it_is(name, relation):
    answer = ANSWERS[name](neighbors=relation)
    plain = int(answer) if name in WHOLE else float(answer)
    assert isinstance(answer, int if name in WHOLE else float)
    assert isinstance(answer, stats.Estimate)
    assert (answer, answer + 1, 2 * answer, -answer, abs(answer)) == (plain, plain + 1, 2 * plain, -plain, abs(plain))
    assert type(answer + 1) in (int, float), "arithmetic gives plain numbers: their error is not that of the answer"
    assert hash(answer) == hash(plain)
    assert {answer: 1}[plain] == 1
    assert np.asarray([answer, answer]).dtype.kind == ("i" if name in WHOLE else "f")
    assert math.floor(answer) == math.floor(plain)


def test_str_format_and_json_give_the_plain_number(name):
    answer = ANSWERS[name]()
    plain = int(answer) if name in WHOLE else float(answer)
    assert str(answer) == f"{answer}" == repr(plain)
    assert f"{answer:.2f}" == f"{plain:.2f}"
    assert json.loads(json.dumps({"answer": answer})) == {"answer": plain}


def test_repr_shows_error_cost_and_relation(name, relation):
    text = repr(ANSWERS[name](neighbors=relation))
    assert ("ranks" if name in ("median", "min", "max") else "±") in text
    assert all(part in text for part in ("ε = 1", repr(relation), "95 %"))
    assert "seeded" not in text


def test_a_seeded_answer_is_marked_and_repeats(name, relation):
    one, two = (ANSWERS[name](neighbors=relation, source=SeededSource(5)) for _ in range(2))
    assert one == two
    assert one.seeded
    assert "seeded, not private" in repr(one)
    assert not ANSWERS[name](neighbors=relation).seeded


def test_a_seeded_histogram_is_marked():
    result = stats.histogram(X, (0, 6), 1, source=SeededSource(5))
    assert result.seeded
    assert "seeded, not private" in repr(result)


def test_it_survives_pickling_and_copying_with_all_its_state(name, relation):
    answer = ANSWERS[name](neighbors=relation)
    for other in (pickle.loads(pickle.dumps(answer)), copy.copy(answer), copy.deepcopy(answer)):
        assert type(other) is type(answer)
        assert other == answer
        assert (other.guarantee, other.neighbors, other.seeded) == (PureDP(1), relation, False)
        assert other.interval(0.9) == answer.interval(0.9)
        assert repr(other) == repr(answer)


def test_a_histogram_survives_pickling():
    result = stats.histogram(X, (0, 6), 1)
    other = pickle.loads(pickle.dumps(result))
    assert other.counts.tolist() == result.counts.tolist()
    assert repr(other) == repr(result)


def test_the_interval_holds_the_answer_and_widens_with_confidence(name, relation):
    answer = ANSWERS[name](neighbors=relation)
    ends = [answer.interval(c) for c in (0.5, 0.95, 0.999999)]
    for low, high in ends:
        assert low <= high
    assert ends[0][0] >= ends[1][0] >= ends[2][0]
    assert ends[0][1] <= ends[1][1] <= ends[2][1]
    low, high = ends[1]
    assert answer.error() == pytest.approx(max(high - answer, answer - low))


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, math.nan, math.inf, None, "0.9", True])
def test_a_wrong_confidence_is_refused(confidence):
    for answer in (ANSWERS["mean"](), ANSWERS["median"](), ANSWERS["count"]()):
        for ask in (answer.interval, answer.error):
            with refuses(DitherError, "confidence:"):
                ask(confidence)
    with refuses(DitherError, "confidence"):
        stats.histogram(X, (0, 6), 1).error(confidence)


def test_ranks_are_for_order_statistics_only(name, relation):
    answer = ANSWERS[name](neighbors=relation)
    if name in ("median", "min", "max"):
        assert 0 < answer.rank_error(0.5) < answer.rank_error(0.95)
    else:
        with refuses(DitherError, " Fix: use error()"):
            answer.rank_error()


@pytest.mark.parametrize("top", [2**53, 2**60 + 1, 2**62])
def test_the_interval_of_an_integer_beyond_floats_still_holds_it(top):
    """float(answer) is off by up to 2^9 there, and the noise here by nothing."""
    answer = stats.sum(np.full(3, top), bounds=(top - 1, top), epsilon=50)
    low, high = answer.interval()
    assert low <= answer <= high
    assert low <= 3 * top <= high


def test_the_interval_of_a_mean_of_large_floats_allows_for_their_coarseness():
    x = np.full(10_000, 2**53 + 1)
    for relation in (AddRemove, ReplaceOne):
        low, high = stats.mean(x, (2**53, 2**53 + 2), 100, neighbors=relation).interval(0.999999)
        assert low <= 2**53 + 1 <= high
