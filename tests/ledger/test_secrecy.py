"""Nothing that anybody can read depends on who is in the data, how many they are, or what they have left."""

from __future__ import annotations

import dataclasses
import json
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dither as dp

Ledger = dp.ledger.Ledger
MARK = "zeta-omicron-314159"


def session(ledger: Ledger, people: list[Any]) -> list[Any]:
    """Questions about a column, some of which not everybody can pay for; everything that comes back in public."""
    ledger.create("visits", limit=dp.PureDP(3), each_analyst=dp.PureDP(2), each_person=dp.PureDP(1))
    seen: list[Any] = []
    for i, cost in enumerate((0.5, 0.4, 0.3, 1.5)):
        for column in (people, people[: len(people) // 2], people[:1]):
            try:
                result = ledger.release(
                    "visits", dp.PureDP(cost), lambda _: "noise", key=f"{i} {len(seen)}", analyst="ann", people=column
                )
                seen.append(dataclasses.replace(result, receipt=dp.ledger.Receipt(result.receipt.seq, "")))
            except dp.BudgetExceeded as error:
                seen.append(str(error))
    seen += [ledger.accounts(), repr(ledger.accounts()), ledger.left("visits"), ledger.left("visits", "ann")]
    for entry in ledger.history():
        shown = dataclasses.asdict(entry) | {"hash": None, "at": None}
        if entry.kind == "charge":
            body = entry.body
            (_, seal, _), body["people"] = body["people"], None
            assert re.fullmatch("[0-9a-f]{32}", seal)
            shown["text"] = body
        seen.append(shown)
    checked = ledger.verify()
    seen.append((checked.entries, checked.head.seq))
    return seen


def test_neighbors_cannot_be_told_apart(place: str, secret: bytes, tmp_path: Path) -> None:
    """One person removed, replaced, or everybody: field by field the same, apart from seals, hashes and times."""
    everybody = [f"person {i}" for i in range(6)]
    columns = [everybody, everybody[1:], everybody[:-1], [*everybody[:-1], "another"], [], [None] * 6, everybody * 3]
    runs = []
    for i, column in enumerate(columns):
        one = place.replace("budget", f"budget {i}")
        if "://" in place:
            with dp.ledger.open(place, secret=secret) as ledger:
                _emptied(ledger)
        with dp.ledger.open(one, secret=secret) as ledger:
            seen = session(ledger, column)
            for name in ("history.json", "history.csv"):
                ledger.export(tmp_path / name)
                text = (tmp_path / name).read_text()
                text = re.sub(r"[0-9a-f]{64}|\d{4}-\d\d-\d\dT[\d:.+]+", "…", text)
                seen.append(text)
        runs.append(seen)
    for run in runs[1:]:
        assert run == runs[0]


def _emptied(ledger: Ledger) -> None:
    """The same database again: a fresh one would take longer than the test."""
    with ledger._store.engine.connect() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


def test_the_comparison_can_fail(ledger: Ledger) -> None:
    """The checksum of people's accounts is such a field: it would tell whether the same people paid twice."""
    ledger.create("visits", each_person=dp.PureDP(1))
    shown = []
    for column in (["ann"], ["bob"], []):
        before = _checksum(ledger)
        ledger.charge("visits", dp.PureDP(0.1), people=column)
        shown.append(_checksum(ledger) - before)
    assert len(set(shown)) == 3, "inside it depends on people"
    assert {account.checksum for account in ledger.accounts()} == {0}, "outside it is not there"


def _checksum(ledger: Ledger) -> int:
    with ledger._store.snapshot():
        result: int = dp.ledger.accounts.known(ledger._store, "visits", "people").checksum  # type: ignore[attr-defined]
    return result


def test_keys_of_people_are_nowhere_in_the_file(tmp_path: Path) -> None:
    place = tmp_path / "budget.sqlite"
    keys = [f"{MARK}-{i}" for i in range(20)]
    with dp.ledger.open(place) as ledger:
        ledger.create("visits", each_person=dp.PureDP(1))
        for _ in range(3):
            ledger.release("visits", dp.PureDP(0.4), lambda _: 1, people=keys)
    files = list(tmp_path.iterdir())
    assert {file.name for file in files} >= {"budget.sqlite", "budget.sqlite.key"}
    held = b"".join(file.read_bytes() for file in files)
    for code in ("utf-8", "utf-16-le"):
        assert MARK.encode(code) not in held
    assert b"visits" in held, "the test looks at the right bytes"


def mistakes(ledger: Ledger) -> list[Callable[[], Any]]:
    """Everything that can go wrong around a value from the data."""
    keys = [MARK]

    def charge(**asked: Any) -> Any:
        return ledger.charge("visits", asked.pop("cost", dp.PureDP(0.1)), people=asked.pop("people", keys), **asked)

    def release(answer: Any, **asked: Any) -> Any:
        return ledger.release("visits", dp.PureDP(0.1), lambda _: answer, people=keys, **asked)

    deep: Any = MARK
    for _ in range(5000):
        deep = [deep]
    return [
        lambda: charge(cost=dp.PureDP(50)),
        lambda: charge(cost=dp.ZCDP(0.1)),
        lambda: charge(cost=MARK),
        lambda: charge(people=MARK),
        lambda: charge(people={MARK: 1}),
        lambda: charge(people=[[MARK]]),
        lambda: charge(people=[{MARK}]),
        lambda: charge(people=[MARK, object()]),
        lambda: charge(key="asked", request="other"),
        lambda: charge(request={MARK}),
        lambda: charge(request={MARK: object()}),
        lambda: release({MARK}),
        lambda: release({1: MARK}),
        lambda: release(deep),
        lambda: ledger.record(ledger.charge("visits", dp.PureDP(0.1), people=keys), MARK.encode()),
        lambda: ledger.record(ledger.charge("visits", dp.PureDP(0.1), people=keys), MARK),  # type: ignore[arg-type]
        lambda: ledger.expect(dp.ledger.Receipt(5, MARK)),
        lambda: dp.ledger.Receipt.read(MARK),
        lambda: ledger.left(MARK),
        lambda: ledger.accounts(MARK),
        lambda: ledger.charge("visits", dp.PureDP(0.1)),
        lambda: ledger.export(MARK),
        lambda: ledger.export(f"/no such folder/{MARK}.json"),
    ]


def test_errors_say_expected_got_and_fix_and_no_value(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(9), each_person=dp.PureDP(1))
    ledger.release("visits", dp.PureDP(0.1), lambda _: MARK, key="asked", people=[MARK])
    for mistake in mistakes(ledger):
        with pytest.raises(dp.DitherError, match=r"(?s): expected .+, got .+\. Fix: .+\.") as error:
            mistake()
        shown = "".join(traceback.format_exception_only(error.value))
        assert MARK not in shown
        for behind in (error.value.__cause__, error.value.__context__ if error.value.__cause__ is None else None):
            assert behind is None or error.value.__suppress_context__ or MARK not in str(behind)


def test_an_answer_is_in_the_history_and_not_in_its_print(ledger: Ledger, tmp_path: Path) -> None:
    ledger.create("visits", limit=dp.PureDP(9))
    ledger.release("visits", dp.PureDP(0.1), lambda: MARK, key="asked")
    assert MARK not in repr(list(ledger.history()))
    ledger.export(tmp_path / "history.json")
    assert MARK not in (tmp_path / "history.json").read_text()
    assert [json.loads(entry.answer) for entry in ledger.history() if entry.answer] == [MARK]
