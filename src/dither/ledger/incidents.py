"""Errors while rows were read: counted for each dataset, which is closed after a few until its steward reopens it.

Whether reading fails may depend on a single row, so a failure is an answer without noise. It is paid for like any
other, it says nothing but that it happened, and it cannot be repeated often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dither.errors import DatasetClosed, InvalidArgument, WrongType, message
from dither.ledger import accounts, chain, schema
from dither.ledger.accounts import Account
from dither.ledger.chain import Receipt
from dither.ledger.store import Store

if TYPE_CHECKING:
    from dither.ledger.charging import Charge

DEFAULT_MAX = 3


def check_max_incidents(value: object) -> int:
    """The number of incidents after which a dataset is closed; anything but a positive whole number is refused."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongType(message("max_incidents", "a whole number", type(value).__name__, "pass max_incidents=3"))
    if value < 1:
        raise InvalidArgument(message("max_incidents", "at least 1", value, "pass max_incidents=3"))
    return value


def check_open(account: Account, max_incidents: int) -> None:
    """Refuse a dataset with that many incidents since it was last reopened."""
    if account.incidents >= max_incidents:
        raise DatasetClosed(
            message(
                "dataset",
                f"fewer than {max_incidents} incidents since it was last reopened",
                f"{account.incidents}, so it takes no questions",
                "have the steward look into the incidents, and reopen it with ledger.reopen(dataset, "
                "signed_by=…, reason=…)",
            )
        )


def record(store: Store, charge: Charge) -> Receipt:
    """Append an incident of a charge, once, in the transaction that is under way."""
    chain.check_charge(chain.select_entry(store, charge.receipt), charge)
    recorded = store.run(schema.INCIDENT, {"charge": charge.receipt.seq}).fetchall()
    if recorded:
        return chain.entry_of(recorded[0]).receipt
    account = accounts.known(store, charge.dataset)
    receipt = chain.append(store, "incident", charge.dataset, {}, key=charge.key, charge=charge.receipt.seq)
    _count(store, account, account.incidents + 1)
    return receipt


def reopen(store: Store, dataset: str, signed_by: str, reason: str) -> Receipt:
    """Start counting again, in the transaction that is under way; the incidents stay in the history."""
    account = accounts.known(store, dataset)
    body = {"incidents": account.incidents, "signed_by": signed_by, "reason": reason}
    receipt = chain.append(store, "reopen", dataset, body)
    _count(store, account, 0)
    return receipt


def _count(store: Store, account: Account, incidents: int) -> None:
    store.run(schema.COUNT_INCIDENTS, {**account.where, "incidents_": incidents})
