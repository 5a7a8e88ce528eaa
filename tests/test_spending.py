"""Every release tells whoever keeps the books what it costs, once, before any noise is drawn."""

from __future__ import annotations

import asyncio
import inspect
import threading

import numpy as np
import pytest

import dither as dp
from dither import mechanisms
from dither.randomness import SeededSource
from dither.spending import kept_by

X = np.linspace(0.0, 1.0, 51)


class Books:
    """Writes down what is spent, and whether it was computed after."""

    def __init__(self) -> None:
        self.costs: list[dp.Guarantee] = []
        self.private: list[bool] = []

    def spend(self, what, compute, *, private):
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


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_is_charged_once_at_its_guarantee(name):
    release, cost = RELEASES[name]
    books = Books()
    with kept_by(books):
        release()
    assert len(books.costs) == 1
    assert cost is None or books.costs[0] == cost
    assert books.private == [True]
    release()
    assert len(books.costs) == 1


@pytest.mark.parametrize("name", RELEASES)
def test_a_seeded_source_is_told(name):
    books = Books()
    with kept_by(books):
        RELEASES[name][0](source=SeededSource(1))
    assert books.private == [False]


@pytest.mark.parametrize("name", RELEASES)
def test_whoever_refuses_is_asked_before_anything_is_drawn(name):
    class Refuses:
        def spend(self, what, compute, *, private):
            raise dp.BudgetExceeded("no")

    with kept_by(Refuses()), pytest.raises(dp.BudgetExceeded):
        RELEASES[name][0]()


def test_every_public_mechanism_with_a_release_is_listed():
    named = {name.split(",")[0].split(".")[0] for name in RELEASES}
    apart = {"ProposeTestRelease", "SampleAndAggregate", "ReusableHoldout", "SmoothNoise"}
    assert {
        name for name in mechanisms.__all__ if inspect.isclass(getattr(mechanisms, name)) and name in dp.__all__
    } <= (named | apart)


def test_mechanisms_made_of_others_are_charged_once():
    books = Books()
    with kept_by(books):
        dp.SmoothNoise(kind="cauchy", epsilon=1).release(0.5, 0.01, width=1.0)
        dp.ProposeTestRelease(epsilon=1, delta=1e-6, bound=0.1).release(0.5, 100)
    assert books.costs[0] == dp.PureDP(1)
    assert len(books.costs) == 2


def test_another_thread_keeps_its_own_books_and_a_task_inherits_them():
    books = Books()

    def elsewhere() -> None:
        LAPLACE.release(1)

    async def task() -> None:
        LAPLACE.release(1)

    with kept_by(books):
        worker = threading.Thread(target=elsewhere)
        worker.start()
        worker.join()
        assert books.costs == []
        asyncio.run(task())
    assert books.costs == [dp.PureDP(0.5)]
