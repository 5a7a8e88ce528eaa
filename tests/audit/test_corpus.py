"""Two hundred leaky functions are found, or cannot be compared; as many honest ones are not accused."""

from __future__ import annotations

import pytest

import dither as dp
from dither.audit import measure, replay
from dither.audit.outputs.canonical import Frozen, first_difference
from support import each

from .corpus_honest import HONEST, mended
from .corpus_leaky import LEAKY, cleaned, figure

X = [1.0, 2.0, 3.0, 4.0, 5.0]
FEWER = X[:-1]
PICTURES = [name for name in LEAKY if "figure" in name or name.endswith("line")]
"""Functions that draw, which takes a hundred times as long as the others."""
DRAWN = "clipped line"
UNKNOWN = {"cache with arguments", "connection", "connection in a list", "polars expression"}
"""What cannot be decomposed."""
VARYING = {"the time", "an identifier"}
"""What differs between two runs on the same data."""
STATISTICAL = {"parameter", "beyond the sensitivity"}
"""What shows only in the law of many outputs."""
MEASURED = [name for name in LEAKY if name not in {*PICTURES, *STATISTICAL}]


@pytest.fixture(autouse=True, scope="module")
def nothing_is_left():
    with cleaned():
        yield


@each("name", [name for name in LEAKY if name not in PICTURES or name == DRAWN])
def test_every_leak_is_found(name):
    result = replay(LEAKY[name], X, FEWER, rounds=1)
    assert not result.passed
    assert bool(result.findings) is (name not in UNKNOWN), str(result)


@each("name", [name for name in HONEST if name.removesuffix(", mended") not in PICTURES and name != "a figure"])
def test_no_honest_function_is_accused(name):
    result = replay(HONEST[name], X, FEWER, rounds=1)
    assert not result.findings, str(result)
    assert result.passed or name.removesuffix(", mended") in UNKNOWN | VARYING | {
        "cache of a function", "csv reader", "cursor", "thread"
    }, str(result)  # fmt: skip


@pytest.mark.slow
@each("name", PICTURES)
def test_every_picture_is_compared(name):
    assert replay(LEAKY[name], X, FEWER, rounds=1).findings
    assert replay(mended(LEAKY[name]), X, FEWER, rounds=1).passed


def test_a_figure_is_compared_by_what_is_drawn():
    same, other, changed = (Frozen.of(figure(X, "line")) for _ in range(2)), figure(FEWER, "line"), figure(X, "label")
    one, again = same
    assert first_difference(one, again) is None
    assert first_difference(one, Frozen.of(other)) is not None
    assert first_difference(one, Frozen.of(changed)) is not None


@each("name", MEASURED[::6])
def test_leaks_are_measured(name):
    """One in six, and all of them below: where nothing can be compared, the measurement says so."""
    result = measure(LEAKY[name], X, FEWER, trials=60, claim=1, confidence=0.99)
    assert result.refuted or result.incomparable, str(result)


@pytest.mark.slow
@each("name", MEASURED)
def test_all_leaks_are_measured(name):
    result = measure(LEAKY[name], X, FEWER, trials=60, claim=1, confidence=0.99)
    assert result.refuted or result.incomparable, str(result)


@each("name", [name for name in HONEST if name.removesuffix(", mended") not in PICTURES][:44:4])
def test_honest_functions_are_not_refuted(name):
    if name == "a figure":
        return
    assert not measure(HONEST[name], X, FEWER, trials=60, claim=3, confidence=1 - 1e-9).refuted


def test_what_cannot_be_compared_is_said():
    result = replay(LEAKY["connection"], X, FEWER)
    assert not result.passed
    assert str(result) == "CANNOT BE COMPARED the result: sqlite3.Connection"
    assert result.to_dict()["incomparable"] == ["the result: sqlite3.Connection"]
    measured = measure(LEAKY["connection"], X, FEWER, trials=20)
    assert measured.incomparable == ("sqlite3.Connection",)
    assert "CANNOT BE COMPARED sqlite3.Connection" in str(measured)


def test_a_release_from_a_seed_is_a_finding():
    """Two of them have the same noise, and their difference none."""

    def exact_sum(x):
        source = dp.randomness.SeededSource
        noisy, noise = (dp.Laplace(9, 1).release(value, source=source(5)) for value in (float(sum(x)), 0.0))
        return noisy - noise

    assert "its noise is drawn from a source that is not private" in str(replay(exact_sum, X, FEWER))
    assert not replay(
        lambda x: dp.stats.sum(x, bounds=(0, 9), epsilon=1, source=dp.randomness.SeededSource(5)), X, X
    ).passed
    assert replay(lambda x: dp.stats.sum(x, bounds=(0, 9), epsilon=1, neighbors=dp.AddRemove), X, FEWER).passed
