"""Spenders: a :class:`Scope` charges each release to a ledger, an :class:`Allowance` deducts it from an earlier charge.

Spenders do not nest. A scope inside of another, or inside of a computation of ``ledger.release``, or that inside of a
scope, would have to charge both for the same release, under two keys and with two answers to replay; it is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dither.budget_hooks import Spender, charging_to, current_spender
from dither.errors import BudgetExceeded, InvalidArgument, NotPrivate
from dither.guarantees import ZCDP, Guarantee
from dither.ledger.charging import Charge
from dither.ledger.recorded import encode
from dither.ledger.units import Price, Unit, exact_cost
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
        with paying(self):
            yield self

    @property
    def left(self) -> Guarantee | None:
        """What the dataset, or the analyst, may still spend."""
        return self._ledger.left(self._dataset, self._analyst)

    def spend(self, what: Any, compute: Callable[[], Any], *, private: bool, recordable: bool = True) -> Any:
        """Charge for one release, compute it, record it."""
        _refuse_seeded(private)
        if not recordable and self._key is not None:
            raise InvalidArgument(
                "key",
                "a scope without a key, for a session that answers later",
                "a scope with one, which would have to record the session",
                "leave key out",
            )
        with self._lock:
            self._count += 1
            key = None if self._key is None else f"{self._key}/{self._count}"
        paid = self._ledger.charge(
            self._dataset, what, key=key, request={"mechanism": repr(what)}, analyst=self._analyst
        )
        if paid.answer is not None:
            return self._ledger.record(paid, paid.answer).value
        result = compute()
        if self._key is None:
            return result
        return self._ledger.record(paid, encode(result)).value


class Allowance(Stateful):
    """What was charged already: the releases of one computation may not cost more in all.

    That is checked in the unit of every account that was charged, and in that of the cost as it was stated. A release
    that is cheap in one unit may be dear in another.
    """

    def __init__(self, charge: Charge) -> None:
        price = charge.price or Price(charge.cost)
        stated_unit: Unit = "rho" if isinstance(price.guarantee, ZCDP) else "epsilon"
        self._price, self._lock = price, threading.Lock()
        self._left = {unit: exact_cost(price, unit) for unit in sorted({stated_unit, *charge.units})}

    def spend(self, what: Any, compute: Callable[[], Any], *, private: bool, recordable: bool = True) -> Any:
        """Take one release from what is left, and compute it."""
        _refuse_seeded(private)
        price = Price.of(what)
        with self._lock:
            self._left = {unit: self._rest(price, unit) for unit in self._left}
        return compute()

    def _rest(self, price: Price, unit: Unit) -> tuple[Fraction, Fraction]:
        """The remaining allowance in a unit after one release."""
        try:
            epsilon, delta = exact_cost(price, unit)
        except NotPrivate:  # it has no cost in this unit
            epsilon, delta = self._left[unit][0] + 1, Fraction(0)
        rest = self._left[unit][0] - epsilon, self._left[unit][1] - delta
        if min(rest) < 0:
            raise BudgetExceeded(
                "compute",
                f"releases that cost {self._price} in all",
                f"more, counted in {unit} and delta",
                "charge what they cost together",
            )
        return rest


def refuse_inside() -> None:
    """Refuse to start charging where another block charges already."""
    if current_spender() is not None:
        raise InvalidArgument(
            "scope",
            "one scope, or one computation of ledger.release, at a time",
            "another inside of it, which would leave the outer one uncharged",
            "end the outer one first, or release from one dataset at a time",
        )


@contextmanager
def paying(spender: Spender) -> Iterator[None]:
    """Every release inside is charged by this spender."""
    refuse_inside()
    with charging_to(spender):
        yield


def _refuse_seeded(private: bool) -> None:
    if not private:
        raise NotPrivate("source", "the system's randomness", "a seeded source", "leave seeded sources to tests")
