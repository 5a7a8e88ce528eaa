from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from divergence import budget, hockey_stick, largest_loss, number, refusal
from hypothesis import given
from hypothesis import strategies as st

from dither import PureDP, RandomizedResponse
from dither.randomness import SeededSource
from support import each, label, surprise

SECRET = 987654321


def law(epsilon: float, k: int, category: int) -> dict[int, Any]:
    p = 1 / (1 + (k - 1) * mp.exp(-budget(epsilon)))
    return {i: p if i == category else (1 - p) / (k - 1) for i in range(k)}


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_a_report_loses_exactly_epsilon_and_follows_the_curve(epsilon: float, k: int) -> None:
    rr = RandomizedResponse(epsilon, k)
    p, q = law(epsilon, k, 0), law(epsilon, k, 1)
    assert abs(largest_loss(p, q) - budget(epsilon)) < mp.mpf(10) ** -12
    assert rr.probability == pytest.approx(float(p[0]), rel=1e-14)
    assert rr.guarantee == PureDP(epsilon)
    for at in (0, 0.3 * epsilon, 0.9 * epsilon, epsilon, 2 * epsilon):
        exact, claimed = hockey_stick(p, q, at), number(rr.privacy_curve(at))
        assert claimed - mp.mpf(10) ** -9 <= exact <= claimed + mp.mpf(10) ** -18


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 10])
def test_reports_follow_the_law_one_by_one_and_together(k: int) -> None:
    rr, count = RandomizedResponse(2, k), 50_000  # the wrong epsilons are twelve standard deviations away
    together = np.array(rr.release([1] * count))
    alone = np.array([rr.release(1) for _ in range(count)])
    for sample in (together, alone):
        counts = np.bincount(sample, minlength=k)
        for epsilon, fits in ((2, True), (1.8, False), (2.2, False)):
            expected = np.array([float(v) for v in law(epsilon, k, 1).values()])
            assert (surprise(counts, expected) > 1e-9) is fits


@pytest.mark.parametrize("k", [2, 5])
def test_estimates_are_unbiased_and_their_error_is_honest(k: int) -> None:
    rr, people = RandomizedResponse(1, k), 50_000
    truth = np.arange(people) % 4 == 0
    result = rr.estimate(rr.release(truth.astype(int)))
    assert result.shares.sum() == pytest.approx(1)
    assert result.responses == people
    wide = rr.error(1 - 1e-10, people=people)  # Hoeffding
    assert abs(result.shares[1] - 0.25) <= wide
    assert abs(result.shares[0] - 0.75) <= wide
    assert np.all(result.error(0.95) <= rr.error(0.95, people=people))


def test_the_variance_is_that_of_a_share_that_is_zero() -> None:
    rr = RandomizedResponse(1, 3)
    q = float(law(1, 3, 0)[1])
    assert rr.scale == pytest.approx(1 / (rr.probability - q))
    assert rr.variance == pytest.approx(q * (1 - q) * rr.scale**2)


def test_for_error_is_the_smallest_epsilon_that_does() -> None:
    rr = RandomizedResponse.for_error(0.02, people=100_000, categories=4)
    assert rr.error(people=100_000) <= 0.02
    assert RandomizedResponse(rr.epsilon * (1 - 1e-3), 4).error(people=100_000) > 0.02
    refusal(lambda: RandomizedResponse.for_error(1e-6, people=10))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, object])
def test_reports_fit_the_array_they_come_back_in(dtype: Any) -> None:
    out = RandomizedResponse(0.1, 1000).release(np.zeros(3000, dtype=dtype))
    assert isinstance(out, np.ndarray)
    assert max(out.tolist()) > 127
    assert set(out.tolist()) <= set(range(1000))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint16, np.uint32, np.uint64, np.int64])
def test_a_label_that_is_no_category_is_never_reported(dtype: Any) -> None:
    rr = RandomizedResponse(5.0, 100)
    reports = rr.release(np.full(2000, 120, dtype=dtype))
    assert set(reports.tolist()) <= set(range(100))
    refusal(lambda: rr.estimate(np.full(3, 120, dtype=dtype)))


def test_labels_are_not_cut_to_the_width_of_those_in_the_data() -> None:
    rr = RandomizedResponse(0.1, ["a", "bbb"])
    assert set(rr.release(np.array(["a"] * 200)).tolist()) == {"a", "bbb"}
    assert set(rr.release(["a"] * 200)) == {"a", "bbb"}
    assert rr.release("a") in ("a", "bbb")


def test_containers_keep_their_kind() -> None:
    rr = RandomizedResponse(1)
    assert type(rr.release(1)) is int
    assert rr.release(np.array([True, False])).dtype == bool
    series = rr.release(pd.Series([0, 1], index=[5, 6], name="n"))
    assert series.index.tolist() == [5, 6]
    assert series.name == "n"
    assert rr.release(pl.Series("n", [0, 1])).name == "n"
    assert rr.release(pd.Series([True, False])).dtype == bool
    assert len(rr.release(pd.Series([0, 1], dtype="Int64"))) == 2


@pytest.mark.parametrize(
    "value", [1, True, [1, 0], np.array([1, 0]), pd.Series([1, 0], name="n"), pl.Series("n", [1, 0])], ids=label
)
def test_seeded_reports_say_so(value: Any) -> None:
    released = RandomizedResponse(1).release(value, source=SeededSource(1))
    assert "seeded, not private" in repr(released)


def test_seeded_labels_say_so() -> None:
    assert "seeded" in repr(RandomizedResponse(1, ["a", "b"]).release("a", source=SeededSource(1)))


ODD = [2, -1, SECRET, 2**70, 0.5, "0", "x", None, math.nan, (1,), object()]


@each("answer", [True, 1, 1.0, np.True_, np.int8(1), *ODD])
def test_no_answer_shows_by_the_type_of_its_report_or_by_an_error(answer: Any) -> None:
    """Not alone, not among others, and not in the reports of others."""
    for categories in (2, [0, 1], 3, ["x", "y"]):
        rr = RandomizedResponse(1, categories)
        kinds = {type(label) for label in (range(3) if isinstance(categories, int) else categories)}
        assert not isinstance(answer, tuple) or type(rr.release([answer])[0]) in kinds
        assert isinstance(answer, tuple) or type(rr.release(answer)) in kinds
        reports = rr.release([0, answer, True, "y"])
        assert type(reports) is list
        assert {type(report) for report in reports} <= kinds


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 5])
def test_what_is_no_category_is_reported_as_a_random_one(k: int) -> None:
    for answers in (np.full(100_000, SECRET), [None] * 100_000):
        counts = np.bincount(RandomizedResponse(1, k).release(answers), minlength=k)
        assert surprise(counts, np.full(k, 1 / k)) > 1e-9
    counts = np.bincount(RandomizedResponse(1, k).release([1] * 100_000), minlength=k)
    assert surprise(counts, np.full(k, 1 / k)) < 1e-9


@pytest.mark.parametrize(
    "value", [np.zeros((2, 2), int), [], np.array([], dtype=int), {0, 1}, {"a": 0}, pd.DataFrame({"a": [1]})], ids=label
)
def test_what_is_no_column_is_refused(value: Any) -> None:
    refusal(lambda: RandomizedResponse(1).release(value), SECRET)


def test_a_column_of_booleans_holds_two_categories() -> None:
    for value in (np.array([True]), pd.Series([True]), pl.Series([True])):
        refusal(lambda value=value: RandomizedResponse(1, 3).release(value))
    assert set(map(type, RandomizedResponse(1, [False, True]).release([True, 1, 0]))) == {bool}


@pytest.mark.parametrize(
    "categories", [1, 0, -2, 1.5, "ab", b"ab", None, True, [], ["a"], ["a", "a"], [{}, {1: 2}], 2**64, 2**70], ids=label
)
def test_bad_categories_are_refused(categories: Any) -> None:
    refusal(lambda: RandomizedResponse(1, categories))


@pytest.mark.parametrize("responses", [5, "01", [], [SECRET], None, object()], ids=label)
def test_bad_responses_are_refused(responses: Any) -> None:
    refusal(lambda: RandomizedResponse(1).estimate(responses), SECRET)


@given(st.floats(1e-100, 1e6))
def test_parameters_are_finite_for_every_epsilon(epsilon: float) -> None:
    rr = RandomizedResponse(epsilon)
    assert 0.5 <= rr.probability <= 1
    assert rr.scale >= 1
    assert not math.isnan(rr.variance)
    assert rr.release(1) in (0, 1)


NASTY = [
    *(
        0,
        1,
        2,
        3,
        -1,
        True,
        False,
        1.0,
        2.5,
        math.nan,
        math.inf,
        None,
        "yes",
        "no",
        "maybe",
        "",
        b"yes",
        (),
        [],
        {1: 2},
    ),
    *(np.int64(1), np.uint8(2), np.float64(1), np.bool_(True), np.str_("yes"), pd.NA, pd.NaT, 10**30, -0.0, 1 + 0j),
]


@pytest.mark.parametrize("categories", [2, 3, ["yes", "no", "maybe"], [1, 2, True + 2], [None, "yes", 2.5]])
def test_one_value_is_the_category_that_it_is_in_a_list(categories: Any) -> None:
    rr = RandomizedResponse(1, categories)
    for value in NASTY:
        [together] = rr._encode([value])
        assert rr._encode_one(value) == together, label(value)


def test_one_report_is_not_read_as_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a column takes ten times as long as a report."""

    def no_column(*_: object, **__: object) -> None:
        raise AssertionError("a column")

    monkeypatch.setattr("dither.mechanisms.randomized_response.as_values", no_column)
    labels = ["yes", "no", "maybe"]
    for categories, values in ((labels, [*labels, "none", None]), (3, [1, 7, True, np.int64(2)]), (2, [True, 1.0])):
        rr = RandomizedResponse(1, categories)
        assert {rr.release(value) for value in values * 50} == set(
            labels if categories is labels else range(categories)
        )
