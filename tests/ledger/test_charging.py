"""Charge, compute, record, release: once for each key, in this order, whatever fails in between.

What goes wrong while data are read is an incident: paid for, told without its cause, and counted.
"""

from __future__ import annotations

import contextlib
import math
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dither as dp
from dither.budget_hooks import spends
from dither.ledger import charging
from dither.ledger.accounts import Price, exact_cost
from dither.ledger.recorded import encode
from dither.randomness import SeededSource, mark
from support import refuses

pytestmark = pytest.mark.slow

Ledger = dp.ledger.Ledger
COST = dp.PureDP(0.25)
ANSWERS: list[Any] = [
    0,
    False,
    "",
    [],
    {},
    (),
    None,
    b"",
    0.0,
    -0.0,
    math.nan,
    math.inf,
    np.array([]),
    np.zeros((0, 3), dtype=np.int8),
    np.array(["", "é"]),
    np.array([math.nan, -0.0]),
    2**64,
    -(10**400),
    7**9000,
    {"dither": "tuple", "items": (1, [2.5])},
    "\ud800 🧪 \0",
]


class Stand:
    """What a mechanism looks like from here: a guarantee, and a release that says so."""

    def __init__(self, guarantee: dp.Guarantee, noise: float = 0.5) -> None:
        self.guarantee, self.noise = guarantee, noise

    def __repr__(self) -> str:
        return f"Stand({self.guarantee!r})"

    @spends
    def release(self, value: float, *, source: Any = None) -> float:
        return value + self.noise


def never(*_: object) -> Any:
    raise AssertionError("this was to be replayed")


def fails(*_: object) -> Any:
    raise RuntimeError("the power went out")


def same(left: Any, right: Any) -> bool:
    """Equal, of the same type, to the last bit."""
    return type(left) is type(right) and encode(left) == encode(right)


def test_every_answer_is_replayed_uncharged(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(len(ANSWERS)), each_person=dp.PureDP(len(ANSWERS)))
    for i, answer in enumerate(ANSWERS):
        first = ledger.release("visits", dp.PureDP(1), lambda _, a=answer: a, key=f"{i}", request=[i], people=["p"])
        assert same(first.value, answer)
        assert not first.replayed
    assert ledger.left("visits") is None
    entries = ledger.head.seq
    for i, answer in enumerate(ANSWERS):
        again = ledger.release("visits", dp.PureDP(1), never, key=f"{i}", request=[i], people=never)
        assert same(again.value, answer)
        assert again.stored == encode(answer)
        assert again.replayed
        assert ledger.release("visits", dp.PureDP(1), never, key=f"{i}", request=[i]).stored == again.stored
    assert ledger.head.seq == entries == 1 + 2 * len(ANSWERS)
    assert ledger.verify().entries


def test_without_a_key_every_release_is_a_new_one(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    keys = {ledger.release("visits", COST, lambda: 1).key for _ in range(4)}
    assert len(keys) == 4
    assert ledger.left("visits") is None
    with refuses(dp.BudgetExceeded):
        ledger.release("visits", COST, never)


def test_a_key_is_for_one_request(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    ledger.create("deaths", limit=dp.PureDP(1))
    ledger.release("visits", COST, lambda: 1, key="june", request={"a": 1, "b": [2]}, analyst="ann")
    others: list[dict[str, Any]] = [
        {"request": {"a": 1}},
        {"request": None},
        {"request": '{"a":1,"b":[2]}'},
        {"cost": dp.PureDP(0.1)},
        {"cost": dp.ApproxDP(0.25, 1e-6)},
        {"cost": dp.ZCDP(0.25)},
        {"analyst": "bob"},
        {"analyst": None},
    ]
    for other in others:
        asked = {"cost": COST, "request": {"b": [2], "a": 1}, "analyst": "ann", **other}
        with refuses(dp.InvalidArgument, "key"):
            ledger.release("visits", asked.pop("cost"), never, key="june", **asked)
    assert ledger.release("visits", COST, never, key="june", request={"b": [2], "a": 1}, analyst="ann").value == 1
    assert ledger.release("deaths", COST, lambda: 2, key="june").value == 2, "another dataset has its own keys"
    assert ledger.left("visits") == dp.PureDP(0.75)


def test_what_was_asked_is_json(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    round_ = [deep]
    round_.append(round_)
    for wrong in (object(), {1: 2, "a": 3}, {b"a": 1}, math.nan, "\ud800", deep, round_, {1, 2}, 10**5000):
        with refuses(dp.WrongType, "request"):
            ledger.charge("visits", COST, request=wrong)
    assert ledger.head.seq == 1
    long = ledger.charge("visits", COST, key="long", request="x" * 50_000)
    ledger.record(long, b"1")
    assert ledger.charge("visits", COST, key="long", request="x" * 50_000).answer == b"1"
    with refuses(dp.InvalidArgument, "key"):
        ledger.charge("visits", COST, key="long", request="x" * 49_999 + "y")
    ledger.charge("visits", COST, request="\0 ' ; DROP TABLE dither_entry")
    assert ledger.verify()


def test_a_computation_that_failed_is_paid_again(ledger: Ledger) -> None:
    """Whoever could compute again for free could choose among draws of the noise."""
    ledger.create("visits", limit=dp.PureDP(1), each_analyst=dp.PureDP(1), each_person=dp.PureDP(0.75))
    asked: dict[str, Any] = {"key": "june", "analyst": "ann", "people": ["ann", "bob", None, "ann"]}
    for _ in range(3):
        with pytest.raises(RuntimeError, match="power"):
            ledger.release("visits", COST, fails, **asked)
    assert ledger.left("visits") == ledger.left("visits", "ann") == dp.PureDP(0.25)
    first = ledger.release("visits", COST, lambda kept: kept.tolist(), **asked)
    assert first.value == [False] * 4, "they have paid three times"
    assert not first.replayed
    assert ledger.release("visits", COST, never, **asked).stored == first.stored
    assert [entry.kind for entry in ledger.history()] == ["open", "open", *4 * ["charge"], "answer"]
    assert ledger.left("visits") is None
    with refuses(dp.BudgetExceeded):
        ledger.release("visits", COST, never, **{**asked, "key": "july"})
    assert ledger.verify().entries


def test_what_is_asked_again_may_be_about_others(ledger: Ledger) -> None:
    """Were others refused under a key that waits, one could ask whether somebody was added since."""
    ledger.create("visits", each_person=dp.PureDP(0.5))
    ledger.charge("visits", COST, key="june", people=["ann", "bob"])
    for people in (["ann", "bob", "new"], ["ann"], []):
        kept = ledger.charge("visits", COST, key="june", people=people).kept
        assert kept is not None
        assert kept.size == len(people)
    with refuses(dp.InvalidArgument, "people"):
        ledger.charge("visits", COST, key="june")
    assert ledger.verify().entries


def test_people_are_not_read_where_dataset_or_analyst_cannot_pay(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(0.1), each_analyst=dp.PureDP(1), each_person=dp.PureDP(1))

    def unread() -> list[str]:
        raise AssertionError("people were read")

    with refuses(dp.BudgetExceeded):
        ledger.charge("visits", dp.PureDP(0.2), analyst="ann", people=unread)
    assert ledger.head.seq == 1


def test_each_charge_has_one_answer(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    paid = ledger.charge("visits", COST, key="june")
    first = ledger.record(paid, encode(1))
    second = ledger.record(paid, encode(2))
    assert (first.value, first.replayed) == (1, False)
    assert (second.value, second.replayed, second.receipt) == (1, True, first.receipt)
    assert ledger.charge("visits", COST, key="june").answer == b"1"
    assert ledger.record(ledger.charge("visits", COST, key="june"), encode(3)).value == 1
    assert ledger.verify().entries == 3


def test_an_answer_that_cannot_be_read_is_not_written(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    paid = ledger.charge("visits", COST, key="june")
    for wrong in (b"", b"garbage", b"\xff", b'{"dither":"array"}', b'{"dither":"pickle","data":"gASV"}'):
        with refuses(dp.InvalidArgument, "answer"):
            ledger.record(paid, wrong)
    for other in ("1", 1, None, bytearray(b"1")):
        with refuses(dp.WrongType, "answer"):
            ledger.record(paid, other)  # type: ignore[arg-type]
    with refuses(dp.WrongType, "charge"):
        ledger.record(paid.receipt, b"1")  # type: ignore[arg-type]
    assert ledger.record(paid, b"1").value == 1


def test_a_charge_made_elsewhere_is_not_answered_here(ledger: Ledger, tmp_path: Any) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    paid = ledger.charge("visits", COST, key="june")
    with dp.ledger.open(tmp_path / "other.sqlite") as other:
        other.create("visits", limit=dp.PureDP(1))
        foreign = other.charge("visits", COST, key="june")
    receipts = [dp.ledger.Receipt(seq, paid.receipt.hash) for seq in (0, 1, -1, 10**30, True)]
    forged = [replace(paid, receipt=receipt) for receipt in [next(ledger.history()).receipt, *receipts]]
    for wrong in [foreign, replace(paid, dataset="deaths"), replace(paid, key="july"), *forged]:
        with refuses(dp.LedgerError):
            ledger.record(wrong, b"1")
    assert ledger.record(paid, b"1").value == 1
    assert ledger.verify().entries == 3


def test_two_computations_of_one_key_give_one_answer_to_both(ledger: Ledger, place: str, secret: bytes) -> None:
    """Both are past the charge before either has its answer: both pay, and the first answer is everybody's."""
    ledger.create("visits", limit=dp.PureDP(0.5))
    both, result = threading.Barrier(2), {}

    def ask(connection: Ledger, answer: int) -> None:
        def compute() -> int:
            both.wait(600)
            return answer

        result[answer] = connection.release("visits", COST, compute, key="june")

    with dp.ledger.open(place, secret=secret) as other:
        threads = [threading.Thread(target=ask, args=item) for item in ((ledger, 1), (other, 2))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert result[1].value == result[2].value
    assert result[1].stored == result[2].stored
    assert sorted((result[1].replayed, result[2].replayed)) == [False, True]
    assert ledger.left("visits") is None
    assert ledger.verify().entries == 4


def test_what_was_recorded_meanwhile_is_given_and_not_charged_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.create("visits", limit=dp.PureDP(5))
    find = charging.find_recorded

    def too_early(*given: Any, **keywords: Any) -> Any:
        """Look, and let another release be made before the charge."""
        monkeypatch.setattr(charging, "find_recorded", find)
        result = find(*given, **keywords)
        ledger.release("visits", dp.PureDP(0.5), lambda: 1, key="june")
        return result

    monkeypatch.setattr(charging, "find_recorded", too_early)
    released = ledger.release("visits", dp.PureDP(0.5), lambda: 2, key="june")
    assert (released.value, released.replayed) == (1, True)
    assert ledger.left("visits") == dp.PureDP(4.5)


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    fitted: list[int] = []

    def ask(i: int) -> None:
        for j in range(5):
            try:
                ledger.release("visits", dp.PureDP(0.1), lambda: i, key=f"{i} {j}")
            except dp.BudgetExceeded:
                continue
            fitted.append(i)
            with refuses(dp.DitherError):
                ledger.left("no such dataset")  # an error in one thread leaves the others' transactions alone

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(fitted) == 10
    assert ledger.left("visits") is None
    assert ledger.verify().entries == 21


SEEDED: list[Callable[[], Any]] = [
    lambda: dp.Laplace(1, 0.25).release(1, source=SeededSource(1)),
    lambda: dp.Laplace(1, 0.25).release(np.zeros(2), source=SeededSource(1)),
    lambda: [{"a": (mark(1.5, SeededSource(1)),)}],
    lambda: {"a": mark("b", SeededSource(1))},
    lambda: mark([1], SeededSource(1)),
]


def test_seeded_answers_are_refused(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(2))
    for i, seeded in enumerate(SEEDED[:4]):
        with refuses(dp.NotPrivate, "seeded"):
            ledger.release("visits", COST, seeded, key=f"{i}")
        assert ledger.release("visits", COST, lambda: 1, key=f"{i}").value == 1
    with refuses(dp.NotPrivate, "seeded"):
        encode(SEEDED[4]())


def test_a_computation_spends_what_was_charged_and_no_more(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(100))
    half, whole = Stand(dp.PureDP(0.125)), Stand(COST)
    assert ledger.release("visits", COST, lambda: [half.release(1), half.release(2)]).value == [1.5, 2.5]
    for compute in (
        lambda: [whole.release(1), whole.release(2)],
        lambda: [half.release(1) for _ in range(3)],
        lambda: whole.release(1) + Stand(dp.PureDP(1e-9)).release(1),
        lambda: Stand(dp.ApproxDP(0.1, 1e-9)).release(1),
        lambda: Stand(dp.ZCDP(1e-9)).release(1),
    ):
        with refuses(dp.BudgetExceeded, "compute"):
            ledger.release("visits", COST, compute)
    with refuses(dp.NotPrivate, "seeded"):
        ledger.release("visits", COST, lambda: whole.release(1, source=SeededSource(1)))
    ledger.create("deaths", limit=dp.ZCDP(1))
    mixed = [Stand(dp.ZCDP(0.4)), Stand(dp.PureDP(0.4))]
    assert ledger.release("deaths", dp.ZCDP(0.5), lambda: [one.release(1) for one in mixed]).value == [1.5, 1.5]
    assert whole.release(1) == 1.5, "outside of a scope nothing is charged"


def test_a_computation_that_hides_its_second_release_is_refused(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))

    def greedy() -> float:
        first = Stand(COST).release(1)
        try:
            return first + Stand(COST).release(1)
        except dp.BudgetExceeded:
            return first

    assert ledger.release("visits", COST, greedy).value == 1.5


def test_what_is_spent_is_counted_in_the_unit_of_every_account(ledger: Ledger) -> None:
    """A charge that is cheap in rho buys nothing that is dear in rho, whatever its epsilon."""
    gaussian, laplace = dp.Gaussian(1, 1, 1e-6), dp.Laplace(1, 1)
    limits: list[dict[str, Any]] = [
        {"limit": dp.ZCDP(5)},
        {"limit": dp.ApproxDP(50, 1e-3), "filter": "advanced"},
        {"limit": dp.ApproxDP(50, 1e-3), "each_analyst": dp.ZCDP(5)},
        {"limit": dp.ApproxDP(50, 1e-3), "each_person": dp.ZCDP(5)},
    ]
    for i, how in enumerate(limits):
        ledger.create(f"{i}", **how)
        asked: dict[str, Any] = {"analyst": "ann"} if "each_analyst" in how else {}
        asked |= {"people": ["ann"]} if "each_person" in how else {}
        with refuses(dp.BudgetExceeded, "rho"):
            ledger.release(f"{i}", gaussian, lambda *_: laplace.release(0), **asked)
        ledger.release(f"{i}", gaussian, lambda *_: gaussian.release(0), **asked)
        ledger.release(f"{i}", dp.PureDP(1), lambda *_: laplace.release(0), **asked)
        with refuses(dp.BudgetExceeded, "epsilon"):
            ledger.release(
                f"{i}", dp.PureDP(1), lambda *_: [laplace.release(0), dp.Laplace(1, 0.01).release(0)], **asked
            )
    ledger.create("epsilon", limit=dp.ApproxDP(50, 1e-3))
    ledger.release("epsilon", gaussian, lambda: laplace.release(0))
    ledger.create("thirds", limit=dp.PureDP(1))
    third = Stand(dp.PureDP(Fraction(1, 3)))
    assert ledger.release("thirds", dp.PureDP(1), lambda: [third.release(0) for _ in range(3)]).value == 3 * [0.5]


@given(
    st.lists(st.sampled_from([0.05, 0.2, 0.5, 1.0]), min_size=1, max_size=4),
    st.lists(st.sampled_from([0.05, 0.2, 0.5, 1.0]), max_size=4),
    st.sampled_from([dp.ZCDP(100), dp.ApproxDP(100, 1e-2)]),
    st.booleans(),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_computation_spends_more_of_an_account_than_was_charged(
    tmp_path: Any, pure: list[float], normal: list[float], limit: dp.Guarantee, advanced: bool
) -> None:
    """Mechanisms that fit are released, others are refused, in the account's own unit and in the stated cost."""
    how: dict[str, Any] = {"filter": "advanced"} if advanced and isinstance(limit, dp.ApproxDP) else {}
    inside = [*(dp.Laplace(1, one) for one in pure), *(dp.Gaussian(1, one, 1e-6) for one in normal)]
    with dp.ledger.open(tmp_path / f"{uuid.uuid4()}.sqlite") as ledger:
        ledger.create("visits", limit=limit, **how)
        for price in (dp.Gaussian(1, 1, 1e-6), dp.PureDP(1), dp.ApproxDP(1, 1e-6)):
            spent: list[Any] = []

            def compute(spent: list[Any] = spent) -> None:
                for one in inside:
                    one.release(0)
                    spent.append(one)

            before = ledger.accounts("visits")[0].used
            with contextlib.suppress(dp.BudgetExceeded):
                ledger.release("visits", price, compute)
            account = ledger.accounts("visits")[0]
            parts = [exact_cost(Price.of(one), account.unit) for one in spent]
            paid = (account.used - before).numbers()
            assert sum(epsilon for epsilon, _ in parts) <= paid[0]
            assert sum(delta for _, delta in parts) <= paid[1]


def test_a_key_stands_for_the_whole_price(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.ZCDP(5))
    gaussian = dp.Gaussian(1, 1, 1e-6)
    ledger.charge("visits", gaussian, key="june")
    for other in (gaussian.guarantee, dp.Gaussian(2, 1, 1e-7)):
        with refuses(dp.InvalidArgument, "key"):
            ledger.release("visits", other, never, key="june")
    ledger.release("visits", gaussian, lambda: gaussian.release(0), key="june")


def test_what_a_charge_and_a_release_print(ledger: Ledger) -> None:
    ledger.create("visits", each_person=dp.PureDP(1))
    paid = ledger.charge("visits", COST, key="june", people=["ann", "bob"])
    result = ledger.record(paid, encode("the answer"))
    assert "True" not in repr(paid)
    assert "kept" not in repr(paid)
    assert "stored" not in repr(result)
    assert dp.ledger.Receipt.read(str(result.receipt)) == result.receipt


def broken_column() -> Any:
    raise ValueError("a value from the data")


BROKEN: list[Any] = [broken_column, lambda: [1.5], lambda: ["\ud800"], lambda: 5, lambda: [object()], lambda: None]


@pytest.mark.parametrize("people", BROKEN)
def test_people_who_cannot_be_read_are_an_incident_that_is_paid_for(ledger: Ledger, people: Any) -> None:
    ledger.create("visits", limit=dp.PureDP(5), each_analyst=dp.PureDP(5), each_person=dp.PureDP(1))
    said = set()
    for _ in range(3):
        with refuses(dp.DataIncident) as error:
            ledger.release("visits", COST, never, key="june", analyst="ann", people=people)
        assert error.value.__cause__ is error.value.__context__ is None, "the cause is an answer without noise"
        said.add(str(error.value))
    assert said == {str(dp.DataIncident())}
    assert ledger.left("visits") == ledger.left("visits", "ann") == dp.PureDP(4.25)
    assert ledger.incident_count("visits") == 3
    with refuses(dp.DatasetClosed):
        ledger.release("visits", COST, never, analyst="ann", people=["ann"])
    assert ledger.left("visits") == dp.PureDP(4.25)
    assert ledger.release("visits", COST, np.ndarray.tolist, analyst="ann", people=["a"], max_incidents=4).value == [
        True
    ]
    assert ledger.verify().entries


def test_a_dataset_is_closed_after_incidents_until_it_is_reopened(ledger: Ledger) -> None:
    for name in ("visits", "deaths"):
        ledger.create(name, limit=dp.PureDP(5))
    ledger.release("visits", COST, lambda: 1, key="june")
    paid = [ledger.charge("visits", COST) for _ in range(3)]
    assert ledger.incident_count("visits") == 0
    receipts = [ledger.record_incident(one) for one in paid]
    assert receipts == [ledger.record_incident(one) for one in paid], "one for each charge"
    assert (ledger.incident_count("visits"), ledger.incident_count("deaths")) == (3, 0)
    head = ledger.head
    for attempt in (ledger.charge, lambda *a, **k: ledger.release(*a, never, **k)):
        with refuses(dp.DatasetClosed, "reopen"):
            attempt("visits", COST, key="july")
    with ledger.scope("visits"), refuses(dp.DatasetClosed):
        dp.Laplace(1, 0.25).release(1)
    assert ledger.head == head
    assert ledger.release("visits", COST, never, key="june").value == 1, "what was answered stays answered"
    ledger.charge("deaths", COST)
    for most in (0, -1):
        with refuses(dp.InvalidArgument, "max_incidents"):
            ledger.charge("visits", COST, max_incidents=most)
    with refuses(dp.WrongType, "max_incidents"):
        ledger.charge("visits", COST, max_incidents=True)
    ledger.reopen("visits", signed_by="steward", reason="the file was mended")
    assert ledger.incident_count("visits") == 0
    last = list(ledger.history("visits"))[-1]
    assert (last.kind, last.body["incidents"], last.body["signed_by"]) == ("reopen", 3, "steward")
    ledger.record_incident(ledger.charge("visits", COST))
    assert ledger.incident_count("visits") == 1
    assert ledger.verify()


def test_an_incident_belongs_to_a_charge_made_here(ledger: Ledger, tmp_path: Any) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    with dp.ledger.open(tmp_path / "other.sqlite") as other:
        other.create("visits", limit=dp.PureDP(1))
        with refuses(dp.LedgerError):
            ledger.record_incident(other.charge("visits", COST))
    with refuses(dp.WrongType, "charge"):
        ledger.record_incident(ledger.head)  # type: ignore[arg-type]
    assert ledger.incident_count("visits") == 0


def test_an_analyst_closes_a_dataset_for_nobody_else(ledger: Ledger) -> None:
    """Whether analysts have accounts or not. What several do together closes it for everybody."""
    for name, more in (("visits", {}), ("deaths", {"each_analyst": dp.PureDP(5)})):
        ledger.create(name, limit=dp.PureDP(50), **more)

        def fail(analyst: str, name: str = name) -> None:
            ledger.record_incident(ledger.charge(name, COST, analyst=analyst))

        for _ in range(3):
            fail("ann")
        with refuses(dp.DatasetClosed, "of one analyst"):
            fail("ann")
        assert dict(ledger.incidents_by_analyst(name)) == {"ann": 3}
        for analyst in ("bob", "cat"):
            for _ in range(3):
                fail(analyst)
        with refuses(dp.DatasetClosed, "fewer than 9"):
            fail("dan")
        ledger.reopen(name, signed_by="steward", reason="the file was mended")
        assert not ledger.incidents_by_analyst(name)
        fail("ann")
        assert dict(ledger.incidents_by_analyst(name)) == {"ann": 1}
    assert ledger.verify()


def test_incidents_of_nobody_in_particular_count_for_everybody(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(50))
    for analyst in (None, None, "ann"):
        ledger.record_incident(ledger.charge("visits", COST, analyst=analyst))
    for analyst in (None, "ann"):
        with refuses(dp.DatasetClosed):
            ledger.charge("visits", COST, analyst=analyst)
        with refuses(dp.DatasetClosed):
            ledger.check_open("visits", max_incidents=3, analyst=analyst)
    ledger.check_open("visits", max_incidents=3, analyst="bob")
    ledger.record_incident(ledger.charge("visits", COST, analyst="bob"))
    with refuses(dp.DatasetClosed):
        ledger.charge("visits", COST, analyst="bob")
