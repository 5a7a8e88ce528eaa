"""Bytes that change by themselves: refused, or without effect; never another total."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ledger_state import contents
from work import PEOPLE, SECRET

import dither as dp
from support import refuses

pytestmark = pytest.mark.slow

FLIPS = 200


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with something of everything in it, closed."""
    place = tmp_path_factory.mktemp("whole") / "budget.sqlite"
    with dp.ledger.open(place, secret=SECRET) as ledger:
        ledger.create("visits", limit=dp.PureDP(1), each_analyst=dp.PureDP(1), each_person=dp.PureDP(0.5))
        ledger.create("taxes", limit=dp.ApproxDP(1, 1e-6), filter="advanced")
        for turn in range(20):
            released(ledger, turn)
        ledger.change_limit("visits", dp.PureDP(2), signed_by="board", reason="more")
        ledger.charge("taxes", dp.PureDP(0.01), key="unanswered")
    return place


def released(ledger: dp.ledger.Ledger, turn: int) -> Any:
    people = [*PEOPLE, *range(turn)]
    ledger.release("taxes", dp.PureDP(0.01), lambda: "x" * 10 * turn, key=f"t{turn}", request={"turn": turn})
    return ledger.release(
        "visits", dp.PureDP(0.01), lambda _: {"turn": turn}, key=f"v{turn}", analyst=f"a{turn % 3}", people=people
    )


def noticed(place: Path, head: dp.ledger.Receipt) -> bool:
    """Whether opening or verifying refuses this ledger, in the one way in which it may."""
    try:
        with dp.ledger.open(place, secret=SECRET) as ledger:
            ledger.verify(head)
    except dp.LedgerError:
        return True
    return False


@pytest.mark.slow
def test_flipped_bytes(whole: Path, tmp_path: Path) -> None:
    original, before = whole.read_bytes(), contents(str(whole))
    with dp.ledger.open(whole, secret=SECRET) as ledger:
        head = ledger.head
    rng = np.random.default_rng()
    place = tmp_path / "budget.sqlite"
    for position in rng.integers(len(original), size=FLIPS).tolist():
        damaged = bytearray(original)
        damaged[position] ^= int(rng.integers(1, 256))
        place.write_bytes(damaged)
        if not noticed(place, head):
            what = f"byte {position} from {original[position]} to {damaged[position]}"
            assert contents(str(place)) == before, what
            # what is accepted works: every answer is found, and nothing is charged again
            with dp.ledger.open(place, secret=SECRET) as ledger:
                assert all(released(ledger, turn).replayed for turn in range(20)), what
                assert ledger.verify().head == head, what
        for beside in tmp_path.iterdir():
            beside.unlink()


@pytest.mark.slow
def test_truncated_files(whole: Path, tmp_path: Path) -> None:
    original = whole.read_bytes()
    with dp.ledger.open(whole, secret=SECRET) as ledger:
        head = ledger.head
    place = tmp_path / "budget.sqlite"
    for size in [*range(0, len(original), 4096), 100, 5000, len(original) - 1]:
        place.write_bytes(original[:size])
        assert noticed(place, head)
        for beside in tmp_path.iterdir():
            beside.unlink()


def test_a_file_of_noise(tmp_path: Path) -> None:
    place = tmp_path / "budget.sqlite"
    place.write_bytes(np.random.default_rng().bytes(20_000))
    with refuses(dp.LedgerError):
        dp.ledger.open(place)
