"""Medians and quantiles with noise of a smooth sensitivity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dither import AddRemove, ApproxDP, DitherError, InvalidArgument, NotPrivate, PureDP, ReplaceOne, stats
from dither.mechanisms import SmoothNoise
from dither.randomness import SeededSource
from dither.stats import order
from support import each, refuses

X = np.random.default_rng(6).lognormal(10.5, 0.8, 2001)
BOUNDS = (0, 1_000_000)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_answers_are_within_the_bounds_and_say_what_they_are(delta: float | None) -> None:
    for x in ([5.0], [0.0, 10.0], [0.0] * 4 + [10.0] * 5, list(range(11))):
        for _ in range(30):
            answer = stats.quantile(x, 0.3, (0, 10), 0.5, delta, method="smooth")
            assert 0 <= answer <= 10
            assert isinstance(answer, float)
            assert answer.guarantee == (ApproxDP(0.5, delta) if delta else PureDP(0.5))
            assert answer.neighbors is ReplaceOne
            assert answer.interval(0.95) == (0, 10)  # its error would tell of the data


def test_add_remove_is_refused() -> None:
    with refuses(InvalidArgument, "ReplaceOne"):
        stats.median(X, BOUNDS, 1, method="smooth", neighbors=AddRemove)


@each(
    "options",
    [
        {"delta": 0},
        {"delta": 0.0},
        {"delta": 1},
        {"delta": -1e-6},
        {"delta": math.nan},
        {"delta": 1e-30},
        {"epsilon": None},
        {"epsilon": 0},
        {"epsilon": 51},
        {"epsilon": 1e-4},
        {"bounds": None},
        {"bounds": (1, 0)},
        {"bounds": (0, math.inf)},
        {"bounds": (-1e308, 1e308)},
        {"bounds": (0, 10**400)},
        {"q": 1.1},
        {"q": math.nan},
        {"x": []},
        {"x": [1.0, math.nan]},
        {"x": [1.0, math.inf]},
        {"x": ["a"]},
        {"nan": "drop"},
        {"method": "smoothest"},
    ],
)
def test_refusals(options: dict[str, Any]) -> None:
    given: dict[str, Any] = {"x": X, "q": 0.5, "bounds": BOUNDS, "epsilon": 1, "method": "smooth", **options}
    with refuses(DitherError):
        stats.quantile(given.pop("x"), given.pop("q"), **given)


def test_delta_decides_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, ...]] = []
    original = SmoothNoise.release

    def spy(self: SmoothNoise, value: Any, size: float, *, width: float, source: Any = None) -> float:
        seen.append((self.kind, self.delta, float(value), size, width))
        return original(self, value, size, width=width, source=source)

    monkeypatch.setattr(order.SmoothNoise, "release", spy)
    stats.median(X, BOUNDS, 1, method="smooth")
    stats.median(X, BOUNDS, 1, 1e-6, method="smooth")
    stats.quantile(X, 0.29, BOUNDS, 1, 1e-6, method="smooth")
    assert [s[:2] for s in seen] == [("student", None), ("laplace", 1e-6), ("laplace", 1e-6)]
    assert {s[4] for s in seen} == {1e6}
    assert seen[0][2] == float(np.median(X))
    assert seen[2][2] == np.sort(X)[math.ceil(0.29 * 2001) - 1]
    for kind, delta, _, size, _ in seen[:2]:
        beta = SmoothNoise(kind, 1, delta).beta
        spread = np.concatenate([[0.0], np.sort(np.clip(X, *BOUNDS)), [1e6]])
        i, j = np.arange(1002)[:, None], np.arange(1001, 2003)[None, :]
        true = ((spread[j] - spread[i]) * np.exp(-beta * np.maximum(j - i - 1, 0))).max()
        assert true * (1 - 1e-12) <= size <= true * (1 + 1e-9)


def test_a_delta_without_the_method_is_refused() -> None:
    with refuses(DitherError, "smooth"):
        stats.median(X, BOUNDS, 1, 1e-6)
    with refuses(NotPrivate):
        stats.median(X, BOUNDS, 1, 0, method="smooth")


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_far_better_than_noise_of_the_global_sensitivity(delta: float | None) -> None:
    x = np.random.default_rng(6).lognormal(10.5, 0.8, 10_001)
    truth, source = float(np.median(x)), SeededSource(12)
    errors = [abs(stats.median(x, BOUNDS, 1, delta, method="smooth", source=source) - truth) for _ in range(60)]
    print(f"median error {np.median(errors):.0f}, of the global sensitivity {1e6 * math.log(2):.0f}")
    assert np.median(errors) < 1e6 * math.log(2) / 200  # half of the errors of Lap(1e6) are above 1e6 ln 2


def test_missing_values_and_integers() -> None:
    column = pd.Series([1.0, None, 3.0] * 300)
    for x in (column, column.to_numpy()):
        assert 0 <= stats.median(x, (0, 10), 1, method="smooth", nan="lower") <= 10
    ages = np.arange(1001) % 100
    assert abs(stats.median(ages, (0, 100), 2, 1e-6, method="smooth") - 50) < 40
    huge = np.full(5, 2**62)
    assert stats.median(huge, (0, 7), 1, method="smooth") <= 7


def test_seeded_answers_repeat() -> None:
    first, again = (stats.median(X, BOUNDS, 1, method="smooth", source=SeededSource(3)) for _ in range(2))
    assert first == again
    assert "not private" in repr(first)
