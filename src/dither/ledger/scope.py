"""The books inside a block: every release is charged, or drawn from what was charged already."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dither.errors import BudgetExceeded, NotPrivate, message
from dither.guarantees import Guarantee
from dither.ledger.answers import encode
from dither.ledger.units import check_guarantee
from dither.spending import kept_by
from dither.stateful import Stateful

if TYPE_CHECKING:
    from dither.ledger.ledger import Ledger


class Scope(Stateful):
    """What ``with ledger.scope(dataset)`` opens: it charges each release inside before it is computed."""

    def __init__(self, ledger: Ledger, dataset: str, analyst: str | None, key: str | None) -> None:
        self._ledger, self._dataset, self._analyst, self._key = ledger, dataset, analyst, key
        self._count, self._lock = 0, threading.Lock()

    @contextmanager
    def opened(self) -> Iterator[Scope]:
        """Charge every release made until the block ends."""
        with kept_by(self):
            yield self

    @property
    def left(self) -> Guarantee | None:
        """What the dataset, or the analyst, may still spend."""
        return self._ledger.left(self._dataset, self._analyst)

    def spend(self, what: Any, compute: Callable[[], Any], *, private: bool) -> Any:
        """Charge for one release, compute it, record it."""
        _refuse_seeded(private)
        with self._lock:
            self._count += 1
            key = None if self._key is None else f"{self._key}/{self._count}"
        paid = self._ledger.charge(
            self._dataset, what, key=key, request={"mechanism": repr(what)}, analyst=self._analyst
        )
        if paid.answer is not None:
            return self._ledger.record(paid, paid.answer).value
        found = compute()
        if self._key is None:
            return found
        return self._ledger.record(paid, encode(found)).value


class Allowance(Stateful):
    """What was charged already: the releases of one computation may not cost more in all."""

    def __init__(self, total: Guarantee) -> None:
        self._total, self._spent, self._lock = total, 0, threading.Lock()

    def spend(self, what: Any, compute: Callable[[], Any], *, private: bool) -> Any:
        """Take one release from what is left, and compute it."""
        _refuse_seeded(private)
        cost = what.guarantee
        check_guarantee(cost, "cost")
        with self._lock:
            spent = cost + self._spent
            if not spent <= self._total:
                raise BudgetExceeded(
                    message(
                        "compute",
                        f"releases that cost {self._total} in all",
                        str(spent),
                        "charge what they cost together",
                    )
                )
            self._spent = spent
        return compute()


def _refuse_seeded(private: bool) -> None:
    if not private:
        raise NotPrivate(
            message("source", "the system's randomness", "a seeded source", "leave seeded sources to tests")
        )
