"""Errors while rows were read: counted for each dataset, which is closed after a few until its steward reopens it.

Whether reading fails may depend on a single row, so a failure is an answer without noise. It is paid for like any
other, it says nothing but that it happened, and it cannot be repeated often: an analyst with ``max_incidents`` may ask
no more, and after :data:`EVERYBODY` times as many nobody may, so that no single analyst closes a dataset for the
others and analysts who work together cannot go on. Incidents of charges that name no analyst count for everybody.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dither.errors import DatasetClosed, InvalidArgument, WrongType
from dither.ledger import accounts, chain, schema
from dither.ledger.accounts import Account
from dither.ledger.chain import Receipt
from dither.ledger.store import Store

if TYPE_CHECKING:
    from dither.ledger.charging import Charge

DEFAULT_MAX = 3
EVERYBODY = 3
"""So many times ``max_incidents`` close a dataset for everybody."""


def check_max_incidents(value: object) -> int:
    """The number of incidents after which a dataset is closed; anything but a positive whole number is refused."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongType("max_incidents", "a whole number", type(value).__name__, "pass max_incidents=3")
    if value < 1:
        raise InvalidArgument("max_incidents", "at least 1", value, "pass max_incidents=3")
    return value


def by_analyst(store: Store, account: Account) -> Counter[str | None]:
    """The incidents of a dataset since it was last reopened, by the analyst who was charged; None is nobody named."""
    if not account.incidents:
        return Counter()
    rows = store.rows(schema.LAST_INCIDENTS, {"dataset": account.owner, "most": account.incidents})
    return Counter(_analyst(json.loads(row[0])) for row in rows)


def _analyst(charge: dict[str, Any]) -> str | None:
    """Who was charged."""
    name: str | None = charge.get("analyst")
    return name


def counted(incidents: Counter[str | None], analyst: str | None) -> int:
    """How many of them count for an analyst; all of them for nobody in particular.

    >>> counted(Counter({"ann": 2, None: 1}), "ann"), counted(Counter({"ann": 2, None: 1}), "bob")
    (3, 1)
    """
    return incidents.total() if analyst is None else incidents[analyst] + incidents[None]


@dataclass(frozen=True)
class Closure:
    """For whom incidents have closed a dataset: for everybody, or for some analysts.

    >>> Closure.of(Counter({"ann": 3, "bob": 1}), max_incidents=3)
    Closure(everybody=False, analysts=('ann',))
    """

    everybody: bool
    analysts: tuple[str, ...]

    @classmethod
    def of(cls, incidents: Counter[str | None], max_incidents: int) -> Closure:
        """For whom these incidents close a dataset."""
        everybody = incidents.total() >= EVERYBODY * max_incidents or incidents[None] >= max_incidents
        names = sorted(name for name in incidents if name is not None and counted(incidents, name) >= max_incidents)
        return cls(everybody, tuple(names))

    @property
    def is_open(self) -> bool:
        """Whether nobody is refused."""
        return not self.everybody and not self.analysts


def check_open(store: Store, account: Account, max_incidents: int, analyst: str | None = None) -> None:
    """Refuse a dataset with that many incidents of an analyst, or several times as many of all, since it was last
    reopened."""
    if account.incidents < max_incidents:
        return
    most, count = EVERYBODY * max_incidents, account.incidents
    if count < most:
        most, count = max_incidents, counted(by_analyst(store, account), analyst)
    if count >= most:
        whose = "" if analyst is None or most != max_incidents else " of one analyst"
        raise DatasetClosed(
            "dataset",
            f"fewer than {most} incidents{whose} since it was last reopened",
            f"{count}, so it takes no questions",
            "have the steward look into the incidents, and reopen it with ledger.reopen(dataset, "
            "signed_by=…, reason=…)",
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
