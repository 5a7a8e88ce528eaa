"""Many at once: processes, threads, and processes that inherit an open ledger."""

from __future__ import annotations

import threading
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_state import spent
from work import PEOPLE, SECRET, charged, opened, together, workers

import dither as dp
from support import refuses

pytestmark = pytest.mark.slow

FIRST = 16
"""How many processes use a ledger first, all at once."""


@pytest.mark.slow
def test_sixteen_processes_on_one_account(place: str) -> None:
    with opened(place) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
    result = together(16, "charge", place=place, times=40, costs=["1/320"])
    assert sum(map(sum, result)) == 320
    with opened(place) as ledger:
        assert spent(ledger) == 1
        assert ledger.left("visits") is None
        assert ledger.verify().entries == 321


@pytest.mark.slow
def test_dataset_analysts_and_people_at_once(place: str) -> None:
    """Every refusal is right: what was refused would not have fitted at the end either."""
    with opened(place) as ledger:
        limits = {"limit": dp.PureDP(1), "each_analyst": dp.PureDP(Fraction(3, 8)), "each_person": dp.PureDP(0.5)}
        ledger.create("visits", **limits)
    costs = [Fraction(1, 200), Fraction(1, 100)]
    result = together(8, "charge", place=place, times=40, costs=[str(c) for c in costs], people=True, analysts=4)
    by_analyst = [Fraction(0)] * 4
    by_person = dict.fromkeys(PEOPLE, Fraction(0))
    refused: list[tuple[int, Fraction]] = []
    for number, turns in enumerate(result):
        cost = costs[number % 2]
        for kept in turns:
            if kept is False:
                refused.append((number % 4, cost))
                continue
            by_analyst[number % 4] += cost
            for person, took_part in dict(zip(PEOPLE, kept, strict=True)).items():
                by_person[person] += cost * took_part
    with opened(place) as ledger:
        assert [spent(ledger, analyst=f"analyst {i}") for i in range(4)] == by_analyst
        assert spent(ledger) == sum(by_analyst) <= 1
        assert max(by_analyst) <= Fraction(3, 8)
        for who, cost in refused:
            assert sum(by_analyst) + cost > 1 or by_analyst[who] + cost > Fraction(3, 8)
        # everybody took part in the same releases, and in as many as their limit holds
        assert len(set(by_person.values())) == 1
        assert Fraction(1, 2) - costs[1] < by_person["ann"] <= Fraction(1, 2)
        assert ledger.verify().entries


@pytest.mark.slow
def test_everybody_asks_under_the_same_keys(place: str) -> None:
    with opened(place) as ledger:
        ledger.create("visits", limit=dp.PureDP(8))
    first, *others = together(4, "same_key", place=place)
    assert all(other == first for other in others)
    with opened(place) as ledger:
        assert 2 <= spent(ledger) <= 8, "whoever asks before there is an answer pays"
        assert ledger.verify().entries == 21 + 10 * spent(ledger)


@pytest.mark.parametrize(
    ("place", "given"), [("sqlite", True), ("sqlite", False), ("postgresql", True)], indirect=["place"]
)
def test_everybody_comes_first(place: str, given: bool) -> None:
    """Making the file, its secret, its tables and the accounts is one step: nobody is refused who fits.

    A server has no file for its secret, which is therefore always given there.
    """
    result = together(FIRST, "first_use", place=place, given=given, share=f"1/{FIRST}")
    assert [paid for paid, _ in result] == [True] * FIRST
    assert sum(created for _, created in result) == 1
    with dp.ledger.open(place, secret=SECRET if given else None) as ledger:
        assert ledger.left("visits") is None
        assert ledger.verify().entries == FIRST + 1


def test_threads_share_one_object(ledger: dp.ledger.Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    result: list[bool] = []
    crowd = [threading.Thread(target=lambda: result.extend(charged(ledger, "visits", "1/80", 20))) for _ in range(8)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert (sum(result), len(result)) == (80, 160)
    assert spent(ledger) == 1
    assert ledger.verify().entries == 81


def test_one_thread_in_trouble_troubles_no_other(ledger: dp.ledger.Ledger) -> None:
    """A statement that fails drops the connection: not while another thread is using it."""
    ledger.create("visits", limit=dp.PureDP(1))
    stop, result, errors = threading.Event(), [], []

    def fail() -> None:
        while not stop.is_set():
            with refuses(dp.LedgerError), ledger._store.transaction():
                ledger._store._driver().execute("SELECT no_such_column FROM dither_entry")

    def work() -> None:
        try:
            result.extend(charged(ledger, "visits", "1/200", 50))
        except Exception as error:  # a thread must not fail in silence
            errors.append(error)

    trouble, crowd = threading.Thread(target=fail), [threading.Thread(target=work) for _ in range(3)]
    for thread in (trouble, *crowd):
        thread.start()
    for thread in crowd:
        thread.join()
    stop.set()
    trouble.join()
    assert errors == []
    assert sum(result) == 150
    assert ledger.verify().entries == 151


def test_two_objects_in_one_process(place: str) -> None:
    with opened(place) as one, opened(place) as two:
        one.create("visits", limit=dp.PureDP(1))
        assert all(charged(one, "visits", "1/20", 10) + charged(two, "visits", "1/20", 10))
        assert not any(charged(one, "visits", "1/20", 1) + charged(two, "visits", "1/20", 1))
        assert one.verify() == two.verify()


@pytest.mark.slow
@pytest.mark.parametrize("busy", [False, True])
def test_an_inherited_object(place: str, busy: bool) -> None:
    with opened(place) as ledger:
        ledger.create("visits", limit=dp.PureDP(1000))
    (result,) = together(1, "fork", place=place, busy=busy)
    assert result["children"] == [45] * 4
    with opened(place) as ledger:
        assert spent(ledger) == Fraction(result["all"], 1000)
        assert ledger.verify().entries == 1 + result["all"]


@pytest.mark.slow
def test_an_inherited_object_outlives_its_parent(place: str, tmp_path: Path) -> None:
    """Whoever opens and closes the ledger meanwhile must not take the child's charges with them."""
    with opened(place) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
    with workers(1, "orphan", place=place) as (worker,):
        worker.tell()
        assert worker.says() == "alone"
        with opened(place) as ledger:
            charged(ledger, "visits", "1/1000", 1)
        worker.tell()
        assert worker.says() == 5
        assert worker.says() is None
    with opened(place) as ledger:
        assert spent(ledger) == Fraction(16, 1000)
        assert ledger.verify().entries == 17
