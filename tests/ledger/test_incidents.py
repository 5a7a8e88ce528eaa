"""What goes wrong while data are read is an incident: paid for, told without its cause, and counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dither as dp
from support import refuses

pytestmark = pytest.mark.slow

Ledger = dp.ledger.Ledger
COST = dp.PureDP(0.25)


def never(*_: object) -> Any:
    raise AssertionError("this was to be replayed")


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
    assert ledger.verify().people


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
