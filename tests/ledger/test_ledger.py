"""Everything released inside a block is charged before it is computed, and replayed under its key."""

from __future__ import annotations

import asyncio
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dither as dp
from dither.budget_hooks import covered, spends
from dither.learn.budget import GaussianBudget
from dither.mechanisms import SparseVectorSession
from dither.randomness import SeededSource, SystemSource, drawn_from
from support import refuses

Ledger = dp.ledger.Ledger


class Stand:
    """What a mechanism looks like from here; each release gives another number."""

    drawn = 0

    def __init__(self, epsilon: float) -> None:
        self.guarantee = dp.PureDP(epsilon)

    def __repr__(self) -> str:
        return f"Stand({self.guarantee!r})"

    @spends
    def release(self, value: float = 0, *, source: Any = None) -> float:
        if value < 0:
            raise RuntimeError("the power went out")
        Stand.drawn += 1
        return value + Stand.drawn

    @spends
    def twice(self) -> list[float]:
        return [covered(Stand(99).release)(), covered(Stand(99).release)()]


def test_each_release_is_charged(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1), each_analyst=dp.PureDP(1))
    with ledger.scope("visits", analyst="ann") as scope:
        Stand(0.25).release()
        assert scope.left == dp.PureDP(0.75)
        Stand(0.5).release()
        before = Stand.drawn
        with refuses(dp.BudgetExceeded):
            Stand(0.5).release()
        assert Stand.drawn == before, "nothing is drawn before it is paid for"
        Stand(0.25).release()
    assert ledger.left("visits") is None
    Stand(99).release()
    assert ledger.verify().entries == 5


def test_a_release_made_of_others_is_charged_once(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    with ledger.scope("visits"):
        assert len(Stand(0.5).twice()) == 2
    assert ledger.left("visits") == dp.PureDP(0.5)


def _lazy(answers: list[float]) -> Any:
    for _ in range(5):
        answers.append(dp.Laplace(1, 50).release(42.0))
        yield 0.5


def test_a_release_while_the_data_are_read_is_charged(ledger: Ledger) -> None:
    answers: list[float] = []
    ledger.create("visits", limit=dp.PureDP(1))
    with ledger.scope("visits"), refuses(dp.BudgetExceeded):
        dp.stats.mean(_lazy(answers), bounds=(0, 1), epsilon=0.01)
    with refuses(dp.BudgetExceeded):
        ledger.release(
            "visits", dp.PureDP(0.01), lambda: dp.stats.mean(_lazy(answers), bounds=(0, 1), epsilon=0.01), key="a"
        )
    assert answers == []
    assert ledger.left("visits") == dp.PureDP(0.98)


class Constant:
    """Says that it is private, and is not random."""

    private = True

    def words(self, count: int) -> Any:
        return np.full(count, 1 << 62, dtype=np.uint64)

    def word(self) -> int:
        return 1 << 62


class Derived(SystemSource):
    def word(self) -> int:
        return 1 << 62


@pytest.mark.parametrize("source", [Constant(), Derived(), SeededSource(1)])
def test_only_the_source_of_the_system_is_private(ledger: Ledger, source: Any) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    with ledger.scope("visits"):
        with refuses(dp.NotPrivate):
            dp.Laplace(1, 0.1).release(1.0, source=source)
        with drawn_from(source), refuses(dp.NotPrivate):
            dp.Laplace(1, 0.1).release(1.0)
        dp.Laplace(1, 0.25).release(1.0, source=SystemSource())
    assert ledger.left("visits") == dp.PureDP(0.75)


def test_a_block_with_a_key_is_replayed(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1.25))

    def block(*, fail: bool = False) -> list[float]:
        result = []
        with ledger.scope("visits", key="june"):
            result.append(Stand(0.25).release(1))
            result.append(Stand(0.25).release(-1 if fail else 2))
            result += Stand(0.5).twice()
        return result

    with pytest.raises(RuntimeError):
        block(fail=True)
    assert ledger.left("visits") == dp.PureDP(0.75)
    first = block()
    assert ledger.left("visits") is None, "what failed is paid again"
    before = Stand.drawn
    assert block() == first
    assert Stand.drawn == before
    assert [entry.key for entry in ledger.history() if entry.kind == "charge"] == [
        "june/1",
        "june/2",
        "june/2",
        "june/3",
    ]
    with ledger.scope("visits", key="june"), refuses(dp.InvalidArgument, "key"):
        Stand(0.1).release()


def test_a_block_inside_of_another_is_refused(ledger: Ledger, tmp_path: Any) -> None:
    """The inner one would pay, and what the outer one stands for would be released unpaid."""
    for name in ("visits", "deaths"):
        ledger.create(name, limit=dp.PureDP(1))
    before = ledger.head

    def inner_release() -> None:
        ledger.release("deaths", dp.PureDP(0.5), lambda: Stand(0.5).release())

    def inner_scope() -> None:
        with ledger.scope("deaths"):
            Stand(0.5).release()

    for inner in (inner_release, inner_scope):
        with ledger.scope("visits"), refuses(dp.InvalidArgument, "scope"):
            inner()
    assert ledger.head == before, "nothing was charged"
    for inner in (inner_release, inner_scope):
        with refuses(dp.InvalidArgument, "scope"):
            ledger.release("visits", dp.PureDP(0.25), inner)
    assert (ledger.left("visits"), ledger.left("deaths")) == (dp.PureDP(0.5), dp.PureDP(1))
    with refuses(dp.BudgetExceeded), ledger.scope("visits"):
        Stand(0.75).release()
    assert Stand(99).release(), "a block that failed is left"
    with ledger.scope("visits"):
        Stand(0.25).release()
    with ledger.scope("deaths"):
        Stand(0.25).release()
    assert (ledger.left("visits"), ledger.left("deaths")) == (dp.PureDP(0.25), dp.PureDP(0.75))


def test_seeded_sources_are_refused_before_they_are_charged(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    with ledger.scope("visits"):
        with refuses(dp.NotPrivate, "seeded"):
            Stand(0.5).release(source=SeededSource(1))
        with refuses(dp.NotPrivate, "seeded"):
            Stand(0.5).release(source=object())
        Stand(0.5).release(source=dp.randomness.SYSTEM)  # type: ignore[attr-defined]
    assert ledger.left("visits") == dp.PureDP(0.5)


def test_what_cannot_be_charged_is_not_released(ledger: Ledger) -> None:
    ledger.create("visits", each_person=dp.PureDP(1))
    ledger.create("deaths", limit=dp.PureDP(1), each_analyst=dp.PureDP(1))
    before = Stand.drawn
    for dataset, reason in (("visits", "people"), ("deaths", "analyst"), ("nowhere", "dataset")):
        with ledger.scope(dataset), pytest.raises(dp.InvalidArgument, match=reason):
            Stand(0.5).release()
    assert Stand.drawn == before
    for wrong in ("", "x" * 181, "a\n"):
        with refuses(dp.InvalidArgument, "key"):
            ledger.scope("visits", key=wrong)


def test_each_task_has_its_own_scope(ledger: Ledger) -> None:
    """Two tasks take turns, each in its own block; neither is charged for the other."""
    for name in ("visits", "deaths"):
        ledger.create(name, limit=dp.PureDP(10))

    async def ask(name: str, cost: float, count: int) -> None:
        with ledger.scope(name):
            for _ in range(count):
                Stand(cost).release()
                await asyncio.sleep(0)
            await asyncio.gather(*(child(cost) for _ in range(2)))

    async def child(cost: float) -> None:
        await asyncio.sleep(0)
        Stand(cost).release()

    async def both() -> None:
        await asyncio.gather(ask("visits", 0.5, 3), ask("deaths", 0.25, 5))
        Stand(99).release()

    asyncio.run(both())
    assert ledger.left("visits") == dp.PureDP(7.5)
    assert ledger.left("deaths") == dp.PureDP(8.25)


def test_threads_in_one_scope(ledger: Ledger) -> None:
    """``asyncio.to_thread`` hands the block on; numbers under a key stay one each, and an allowance is one sum."""
    ledger.create("visits", limit=dp.PureDP(10))

    async def crowd(count: int, epsilon: float) -> list[Any]:
        return await asyncio.gather(
            *(asyncio.to_thread(Stand(epsilon).release) for _ in range(count)), return_exceptions=True
        )

    with ledger.scope("visits", key="june"):
        result = asyncio.run(crowd(8, 0.25))
    assert len(set(result)) == 8
    assert ledger.left("visits") == dp.PureDP(8)
    results: list[Any] = []
    ledger.release("visits", dp.PureDP(1), lambda: results.extend(asyncio.run(crowd(12, 0.25))))
    assert sum(isinstance(one, dp.BudgetExceeded) for one in results) == 8


def test_a_new_thread_starts_without_a_scope(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    with ledger.scope("visits"):
        thread = threading.Thread(target=Stand(99).release)
        thread.start()
        thread.join(60)
    assert ledger.left("visits") == dp.PureDP(1)


def _session_by_hand(mechanism: dp.SparseVector) -> Any:
    return SparseVectorSession(mechanism, Fraction(0), SystemSource())


def _holdout(mechanism: dp.SparseVector) -> Any:
    return dp.ReusableHoldout([1.0], [1.0], bounds=(0, 1), epsilon=mechanism.epsilon, threshold=0, limit=1)


SESSIONS = {
    "start": lambda mechanism: mechanism.start(0),
    "constructor": _session_by_hand,
    "ReusableHoldout": _holdout,
    "GaussianBudget": lambda mechanism: GaussianBudget(mechanism.guarantee),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_is_charged_where_it_is_constructed(ledger: Ledger, name: str) -> None:
    """However it is constructed: what it answers later is charged to nobody."""
    ledger.create("visits", limit=dp.PureDP(1))
    with ledger.scope("visits"):
        SESSIONS[name](dp.SparseVector(1, 0.25))
    assert ledger.left("visits") == dp.PureDP(0.75)
    with ledger.scope("visits"), refuses(dp.BudgetExceeded):
        SESSIONS[name](dp.SparseVector(1, 0.8))
    assert ledger.left("visits") == dp.PureDP(0.75)


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_in_a_scope_with_a_key_is_refused_uncharged(ledger: Ledger, name: str) -> None:
    """The scope would have to record the session, to return it when the block is run again."""
    ledger.create("visits", limit=dp.PureDP(1))
    with ledger.scope("visits", key="june"), refuses(dp.InvalidArgument, "key", "session"):
        SESSIONS[name](dp.SparseVector(1, 0.25))
    assert ledger.left("visits") == dp.PureDP(1)
