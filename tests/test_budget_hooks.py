"""Every release reports its cost to the spender, once, before any noise is drawn."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading

import numpy as np
import pytest

import dither as dp
from dither import mechanisms
from dither.budget_hooks import charging_to
from dither.randomness import SeededSource
from support import each

X = np.linspace(0.0, 1.0, 51)


class RecordingSpender:
    """Writes down what is spent, and whether it was computed after."""

    def __init__(self) -> None:
        self.costs: list[dp.Guarantee] = []
        self.private: list[bool] = []

    def spend(self, what, compute, *, private, recordable=True):
        self.costs.append(what.guarantee)
        self.private.append(private)
        return compute()


LAPLACE = dp.Laplace(sensitivity=1, epsilon=0.5)
RELEASES = {
    "Laplace": (lambda **k: LAPLACE.release(3, **k), dp.PureDP(0.5)),
    "Laplace, array": (lambda **k: LAPLACE.release(np.arange(3), **k), dp.PureDP(0.5)),
    "Gaussian": (lambda **k: dp.Gaussian(1, 1, 1e-6).release(3.0, **k), dp.ApproxDP(1, 1e-6)),
    "Gaussian, rho": (lambda **k: dp.Gaussian(1, rho=0.5).release(3, **k), dp.ZCDP(0.5)),
    "Staircase": (lambda **k: dp.Staircase(sensitivity=1, epsilon=1).release(3.0, **k), dp.PureDP(1)),
    "MixedNoise": (lambda **k: dp.MixedNoise(sensitivity=1, epsilon=1, delta=1e-6).release(3.0, **k), None),
    "BoundedLaplace": (
        lambda **k: dp.BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10).release(3.0, **k),
        dp.PureDP(1),
    ),
    "RandomizedResponse": (lambda **k: dp.RandomizedResponse(epsilon=1).release(True, **k), dp.PureDP(1)),
    "Exponential.select": (lambda **k: dp.Exponential(1, 1).select(["a", "b"], [1, 2], **k), dp.PureDP(1)),
    "Exponential.select_index": (lambda **k: dp.Exponential(1, 1).select_index([1, 2], **k), dp.PureDP(1)),
    "Exponential.select_integer": (
        lambda **k: dp.Exponential(1, 1).select_integer(lambda i: -abs(i), center=0, ceiling=0, slope=1, **k),
        dp.PureDP(1),
    ),
    "NoisyMax": (lambda **k: dp.NoisyMax(sensitivity=1, epsilon=1).select(["a", "b"], [1, 2], **k), dp.PureDP(1)),
    "PermuteAndFlip": (
        lambda **k: dp.PermuteAndFlip(sensitivity=1, epsilon=1).select(["a", "b"], [1, 2], **k),
        dp.PureDP(1),
    ),
    "TopK": (lambda **k: dp.TopK(k=1, sensitivity=1, epsilon=1).select(["a", "b"], [1, 2], **k), dp.PureDP(1)),
    "SparseVector": (lambda **k: dp.SparseVector(sensitivity=1, epsilon=1).start(5, **k).ask(3), dp.PureDP(1)),
    "stats.count": (lambda **k: dp.stats.count(X > 0.5, epsilon=1, neighbors=dp.AddRemove, **k), dp.PureDP(1)),
    "stats.mean": (lambda **k: dp.stats.mean(X, bounds=(0, 1), epsilon=1, **k), dp.PureDP(1)),
    "stats.median": (lambda **k: dp.stats.median(X, bounds=(0, 1), epsilon=1, **k), dp.PureDP(1)),
    "stats.quantiles": (lambda **k: dp.stats.quantiles(X, [0.2, 0.8], bounds=(0, 1), epsilon=1, **k), dp.PureDP(1)),
    "stats.std": (lambda **k: dp.stats.std(X, bounds=(0, 1), epsilon=1, **k), dp.PureDP(1)),
    "stats.histogram": (lambda **k: dp.stats.histogram(X, bounds=(0, 1), epsilon=1, bins=4, **k), dp.PureDP(1)),
    "density, ks": (
        lambda **k: dp.density.release(X, bounds=(0, 1), epsilon=1, method="ks", bins=8, points=8, **k),
        dp.PureDP(1),
    ),
    "density, smoothed": (
        lambda **k: dp.density.release(X, bounds=(0, 1), epsilon=1, method="smoothed", bins=8, **k),
        dp.PureDP(1),
    ),
}


@each("name", RELEASES)
def test_a_release_is_charged_once_at_its_guarantee(name):
    release, cost = RELEASES[name]
    spender = RecordingSpender()
    with charging_to(spender):
        release()
    assert len(spender.costs) == 1
    assert cost is None or spender.costs[0] == cost
    assert spender.private == [True]
    release()
    assert len(spender.costs) == 1


@each("name", RELEASES)
def test_a_seeded_source_is_reported(name):
    spender = RecordingSpender()
    with charging_to(spender):
        RELEASES[name][0](source=SeededSource(1))
    assert spender.private == [False]


@each("name", RELEASES)
def test_a_spender_that_refuses_is_asked_before_anything_is_drawn(name):
    class Refuses:
        def spend(self, what, compute, *, private, recordable=True):
            raise dp.BudgetExceeded("no")

    with charging_to(Refuses()), pytest.raises(dp.BudgetExceeded):
        RELEASES[name][0]()


def test_every_public_mechanism_with_a_release_is_listed():
    named = {name.split(",")[0].split(".")[0] for name in RELEASES}
    tested_elsewhere = {"ProposeTestRelease", "SampleAndAggregate", "ReusableHoldout", "SmoothNoise"}
    assert {
        name for name in mechanisms.__all__ if inspect.isclass(getattr(mechanisms, name)) and name in dp.__all__
    } <= (named | tested_elsewhere)


def test_mechanisms_made_of_others_are_charged_once():
    spender = RecordingSpender()
    with charging_to(spender):
        dp.SmoothNoise(kind="cauchy", epsilon=1).release(0.5, 0.01, width=1.0)
        dp.ProposeTestRelease(epsilon=1, delta=1e-6, bound=0.1).release(0.5, 100)
    assert spender.costs[0] == dp.PureDP(1)
    assert len(spender.costs) == 2


def test_another_thread_starts_without_the_spender_and_a_task_inherits_it():
    spender = RecordingSpender()

    def elsewhere() -> None:
        LAPLACE.release(1)

    async def task() -> None:
        LAPLACE.release(1)

    with charging_to(spender):
        worker = threading.Thread(target=elsewhere)
        worker.start()
        worker.join()
        assert spender.costs == []
        asyncio.run(task())
    assert spender.costs == [dp.PureDP(0.5)]


INNER = dp.Laplace(sensitivity=1, epsilon=7)


class Caller:
    """Code of a user's that releases whenever it runs."""

    def __init__(self) -> None:
        self.ran = 0

    def release(self, *_: object) -> float:
        self.ran += 1
        return INNER.release(0.5)

    def generator(self):
        for _ in range(20):
            self.release()
            yield 0.5

    def mapped(self):
        self.ran += 20
        return map(INNER.release, np.full(20, 0.5).tolist())

    def sequence(self):
        calls = self

        class Sequence:
            def __len__(self):
                calls.release()
                return 20

            def __getitem__(self, i):
                calls.release()
                return [0.5] * 20 if isinstance(i, slice) else 0.5

            def __iter__(self):
                return calls.generator()

            def __array__(self, dtype=None, copy=None):
                calls.release()
                return np.full(20, 0.5)

        return Sequence()

    def numbers(self):
        calls = self

        class Number(float):
            def __float__(self):
                calls.release()
                return 0.5

            def __index__(self):
                calls.release()
                return 1

            def __lt__(self, other):
                calls.release()
                return float.__lt__(self, other)

        return [Number(0.5) for _ in range(20)]


class Model:
    """Predicts, and releases."""

    def __init__(self, calls):
        self.predict = lambda X: [calls.release()] * len(X)


TAKES_DATA = {
    "Laplace": lambda x: LAPLACE.release(x),
    "Gaussian": lambda x: dp.Gaussian(1, 1, 1e-6).release(x),
    "MixedNoise": lambda x: dp.MixedNoise(1, 1, 1e-6).release(x),
    "Staircase": lambda x: dp.Staircase(1, 1).release(x),
    "BoundedLaplace": lambda x: dp.BoundedLaplace(1, 1, 0, 10).release(x),
    "RandomizedResponse": lambda x: dp.RandomizedResponse(1).release(x),
    "ProposeTestRelease": lambda x: dp.ProposeTestRelease(epsilon=1, delta=1e-6, bound=0.1).release(x, 9),
    "SmoothNoise": lambda x: dp.SmoothNoise(kind="cauchy", epsilon=1).release(x, 0.01, width=1.0),
    "Exponential": lambda x: dp.Exponential(1, 1).select(list(range(20)), x),
    "NoisyMax": lambda x: dp.NoisyMax(1, 1).select(list(range(20)), x),
    "candidates": lambda x: dp.NoisyMax(1, 1).select(x, list(range(20))),
    "TopK": lambda x: dp.TopK(2, 1, 1).select(list(range(20)), x),
    "SparseVector": lambda x: dp.SparseVector(1, 1, numeric=True).start(0).ask(x),
    "ReusableHoldout": lambda x: dp.ReusableHoldout(x, X, bounds=(0, 1), epsilon=1, threshold=1, limit=1),
    "SampleAndAggregate": lambda x: dp.SampleAndAggregate(np.mean, 2, (0, 1)).results(x),
    "count": lambda x: dp.stats.count(x, epsilon=1),
    "sum": lambda x: dp.stats.sum(x, bounds=(0, 1), epsilon=1),
    "mean": lambda x: dp.stats.mean(x, bounds=(0, 1), epsilon=1),
    "variance": lambda x: dp.stats.var(x, bounds=(0, 1), epsilon=1),
    "std": lambda x: dp.stats.std(x, bounds=(0, 1), epsilon=1),
    "median": lambda x: dp.stats.median(x, bounds=(0, 1), epsilon=1),
    "iqr": lambda x: dp.stats.iqr(x, bounds=(0, 1), epsilon=1),
    "min": lambda x: dp.stats.min(x, bounds=(0, 1), epsilon=1),
    "mode": lambda x: dp.stats.mode(x, [0.5, 1], epsilon=1),
    "categories": lambda x: dp.stats.mode([0.5], x, epsilon=1),
    "histogram": lambda x: dp.stats.histogram(x, bounds=(0, 1), epsilon=1, bins=4),
    "density": lambda x: dp.density.release(x, bounds=(0, 1), epsilon=1, bins=4),
    "learn": lambda x: dp.learn.Mean(epsilon=1, bounds=(0, 1)).fit(x),
    "labels": lambda x: dp.learn.Ridge(epsilon=1, bounds=(0, 1), label_bounds=(0, 1)).fit(X[:20, None], x),
}


@each("kind", ["generator", "mapped", "sequence", "numbers"])
@each("name", TAKES_DATA)
def test_a_release_by_the_data_themselves_is_charged(name, kind):
    spender, calls = RecordingSpender(), Caller()
    with charging_to(spender), contextlib.suppress(dp.DitherError):
        TAKES_DATA[name](getattr(calls, kind)())
    inner = spender.costs.count(INNER.guarantee)
    assert inner == calls.ran or (kind == "mapped" and inner in (0, calls.ran))
    assert len(spender.costs) - inner <= 1


TAKES_FUNCTIONS = {
    "SampleAndAggregate": lambda f: dp.SampleAndAggregate(f, 5, (0, 1)).results(X),
    "ReusableHoldout": lambda f: dp.ReusableHoldout(X, X, bounds=(0, 1), epsilon=1, threshold=1, limit=1).ask(f),
    "select_integer": lambda f: dp.Exponential(1, 1).select_integer(
        lambda k: min(0, f(k)) - abs(k), center=0, ceiling=0, slope=1
    ),
}


@pytest.mark.parametrize("name", TAKES_FUNCTIONS)
def test_a_release_by_a_function_of_the_users_is_charged(name):
    spender, calls = RecordingSpender(), Caller()
    with charging_to(spender), contextlib.suppress(dp.DitherError):
        TAKES_FUNCTIONS[name](calls.release)
    assert 0 < calls.ran == spender.costs.count(INNER.guarantee)


@pytest.mark.parametrize("together", [False, True])
def test_a_release_by_a_model_or_a_loss_is_charged(together):
    spender, calls = RecordingSpender(), Caller()
    with charging_to(spender):
        models = [Model(calls), Model(calls)]
        dp.learn.select_model(models, X[:, None], X, epsilon=1, within=1.0, public=True, together=together)
    assert 0 < calls.ran == spender.costs.count(INNER.guarantee)
    assert len(spender.costs) == calls.ran + 1


def test_a_mechanism_itself_as_the_function_is_charged():
    spender = RecordingSpender()
    with charging_to(spender):
        dp.SampleAndAggregate(INNER.release, 5, (0, 1)).results(X)
    assert spender.costs == [INNER.guarantee] * 5


def test_an_epsilon_is_read_once():
    class Changing:
        said = iter([0.01, 50.0, 50.0, 50.0])

        def __float__(self):
            return next(self.said)

    spender = RecordingSpender()
    with charging_to(spender):
        answer = dp.stats.mean(X, bounds=(0, 1), epsilon=Changing())
    assert spender.costs == [answer.guarantee] == [dp.PureDP(0.01)]
