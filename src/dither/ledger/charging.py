"""Charging for a release: every account that it concerns is checked and updated in one transaction.

Errors while rows were read: counted for each dataset, which is closed after a few until its steward reopens it.

Whether reading fails may depend on a single row, so a failure is an answer without noise. It is paid for like any
other, it says nothing but that it happened, and it cannot be repeated often: an analyst with ``max_incidents`` may ask
no more, and after :data:`EVERYBODY` times as many nobody may, so that no single analyst closes a dataset for the
others and analysts who work together cannot go on. Incidents of charges that name no analyst count for everybody.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.comparison import ComparedByValue
from dither.errors import BudgetExceeded, DatasetClosed, InvalidArgument, LedgerError, WrongType
from dither.guarantees import Guarantee
from dither.ledger import accounts, chain, people, schema
from dither.ledger.accounts import Account
from dither.ledger.chain import Receipt
from dither.ledger.recorded import canonical
from dither.ledger.store import LedgerStore
from dither.ledger.units import Amount, Price, Unit, cost

DEFAULT_MAX_INCIDENTS = 3
EVERYBODY = 3
"""So many times ``max_incidents`` close a dataset for everybody."""


def check_max_incidents(value: object) -> int:
    """Return the number of incidents after which a dataset is closed; anything but a positive whole number is
    refused."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongType("max_incidents", "a whole number", type(value).__name__, "pass max_incidents=3")
    if value < 1:
        raise InvalidArgument("max_incidents", "at least 1", value, "pass max_incidents=3")
    return value


def incidents_by_analyst(store: LedgerStore, account: Account) -> Counter[str | None]:
    """Return the incidents of a dataset since it was last reopened, by the analyst who was charged; None is nobody
    named."""
    if not account.incidents:
        return Counter()
    rows = store.rows(schema.LAST_INCIDENTS, {"dataset": account.owner, "most": account.incidents})
    return Counter(_analyst(json.loads(row[0])) for row in rows)


def _analyst(charge: dict[str, Any]) -> str | None:
    """Return who was charged."""
    name: str | None = charge.get("analyst")
    return name


def counted(incidents: Counter[str | None], analyst: str | None) -> int:
    """Return how many of them count for an analyst; all of them for nobody in particular."""
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
        """Return whether nobody is refused."""
        return not self.everybody and not self.analysts


def check_open(store: LedgerStore, account: Account, max_incidents: int, analyst: str | None = None) -> None:
    """Refuse a dataset with that many incidents of an analyst, or several times as many of all, since it was last
    reopened."""
    if account.incidents < max_incidents:
        return
    most, count = EVERYBODY * max_incidents, account.incidents
    if count < most:
        most, count = max_incidents, counted(incidents_by_analyst(store, account), analyst)
    if count >= most:
        whose = "" if analyst is None or most != max_incidents else " of one analyst"
        raise DatasetClosed(
            "dataset",
            f"fewer than {most} incidents{whose} since it was last reopened",
            f"{count}, so it takes no questions",
            "have the steward look into the incidents and reopen it, by ledger.reopen or dither budget CARD --reopen",
        )


def record_incident(store: LedgerStore, charge: Charge) -> Receipt:
    """Append an incident of a charge, once, in the transaction that is under way."""
    chain.check_charge(chain.select_entry(store, charge.receipt), charge)
    recorded = store.run(schema.INCIDENT, {"charge": charge.receipt.seq}).fetchall()
    if recorded:
        return chain.entry_of(recorded[0]).receipt
    account = accounts.known(store, charge.dataset)
    receipt = chain.append(store, "incident", charge.dataset, {}, key=charge.key, charge=charge.receipt.seq)
    _set_incidents(store, account, account.incidents + 1)
    return receipt


def reopen(store: LedgerStore, dataset: str, signed_by: str, reason: str) -> Receipt:
    """Start counting again, in the transaction that is under way; the incidents stay in the history."""
    account = accounts.known(store, dataset)
    body = {"incidents": account.incidents, "signed_by": signed_by, "reason": reason}
    receipt = chain.append(store, "reopen", dataset, body)
    _set_incidents(store, account, 0)
    return receipt


def _set_incidents(store: LedgerStore, account: Account, incidents: int) -> None:
    """Store how many incidents a dataset has had since it was last reopened."""
    store.run(schema.COUNT_INCIDENTS, {**account.where, "incidents_": incidents})


@dataclass(frozen=True, eq=False)
class Charge(ComparedByValue):
    """What was paid for one release: the right to compute it once and to record one answer.

    ``kept`` marks the rows of ``people`` that may be used; it is None where people have no accounts. ``answer`` is
    set if this very request was answered before: there is nothing left to compute. ``units`` are those of the
    accounts it was charged to.

    >>> import dither as dp, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, dp.ledger.open(folder + "/budget.sqlite") as ledger:
    ...     _ = ledger.create("visits", limit=dp.PureDP(1))
    ...     print(ledger.charge("visits", dp.PureDP(0.25)).cost)
    ε = 0.25
    """

    dataset: str
    key: str
    cost: Guarantee
    receipt: Receipt
    kept: NDArray[np.bool_] | None = field(default=None, repr=False)
    answer: bytes | None = field(default=None, repr=False)
    price: Price | None = field(default=None, repr=False)
    units: frozenset[Unit] = field(default=frozenset(), repr=False)


def request_digest(dataset: str, price: Price, analyst: str | None, asked: str) -> tuple[dict[str, Any], str]:
    """Return the cost as the history states it, and a hash of all that one key stands for: the whole price is part of
    it."""
    stated = {**accounts.state(price.guarantee, "sum"), "rho": None if price.rho is None else str(price.rho)}
    text = canonical([dataset, stated, analyst, asked])
    return stated, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def find_recorded(
    store: LedgerStore, dataset: str, key: str, paid: Guarantee, request: str, *, lenient: bool = False
) -> Charge | None:
    """Return the answer that was recorded under this key for this request (its request_digest), or None.

    A key that was used for another request is refused, or, with ``lenient``, treated as one without an answer. A charge
    whose answer was never recorded is not reused: whoever asks again is charged again, so that the noise of one charge
    is never drawn twice.
    """
    rows = store.rows(schema.CHARGED, {"dataset": dataset, "key": key})
    if not rows:
        return None
    if chain.checked(store, rows[0][0]).body.get("request") != request:
        if lenient:
            return None
        raise InvalidArgument(
            "key", "a new key for a new request", "one used for another request", "choose another key"
        )
    answers = store.rows(schema.ANSWER, {"dataset": dataset, "key": key})
    if not answers:
        return None
    result = chain.checked(store, answers[0][0])
    return Charge(dataset, key, paid, result.receipt, answer=result.answer)


def check_payable(
    store: LedgerStore, dataset: str, price: Price, analyst: str | None, max_incidents: int, people: bool
) -> str:
    """Refuse, before the keys of any person are read, a request that is incomplete or that the dataset or the analyst
    cannot pay; returns the population. All of this depends on the request alone. The charge itself checks again.
    """
    paying = _paying(store.rows(*_touched(dataset, analyst)), dataset, analyst)[0]
    check_open(store, paying[0], max_incidents, analyst)
    _check_people(paying[0].population, people)
    accounts.charge_each(paying, price)
    if people:
        check_person_limit(accounts.known(store, paying[0].population, "people"), price)
    return paying[0].population


def _check_people(population: str, named: bool) -> None:
    """The people of a release have to be named where people have accounts, and must not be named elsewhere."""
    if population and not named:
        raise InvalidArgument(
            "people", "whom this release touches", "nobody", "pass people=, the column of person keys"
        )
    if named and not population:
        raise InvalidArgument(
            "people", "nobody: people have no accounts here", "a column", "create the dataset with each_person="
        )


def check_person_limit(account: Account, price: Price) -> Amount:
    """Return what a release costs each person; refused if nobody could ever pay it, which everybody may know."""
    amount = cost(price, account.unit)
    if account.room is None or not amount.within(account.room):
        raise BudgetExceeded(
            "cost", f"at most {account.limit}, what {account} has for life", str(price), "ask for less"
        )
    return amount


def pay(
    store: LedgerStore,
    dataset: str,
    key: str,
    price: Price,
    analyst: str | None,
    contributors: people.Contributors | None,
    body: dict[str, Any],
    max_incidents: int,
    unread: bool,
) -> Charge:
    """Check every account with this charge included, append the charge to the history, and update the accounts, in the
    transaction that is under way.

    ``unread`` says that the keys of the people could not be read, so that only the dataset and the analyst are charged.
    """
    rows = store.run(*_touched(dataset, analyst)).fetchall()
    paying, fresh = _paying(rows, dataset, analyst)
    check_open(store, paying[0], max_incidents, analyst)
    amounts = accounts.charge_each(paying, price)
    population = paying[0].population
    _check_people(population, unread or contributors is not None)
    last = (rows[0][-2], chain.as_bytes(rows[0][-1], rows[0][-2]))
    if fresh is not None:
        receipt = accounts.open_all(store, dataset, [fresh])
        last = (receipt.seq, bytes.fromhex(receipt.hash))
    units = {account.unit for account in paying}
    admitted = None
    if contributors is not None:
        account = accounts.known(store, population, "people")
        admitted = people_pay(store, account, contributors, price, last[0] + 1, body)
        units.add(account.unit)
    body["charged"] = [[*account.place, a.loss, a.delta] for account, a in zip(paying, amounts, strict=True)]
    if analyst is not None:
        body["analyst"] = analyst
    receipt = chain.append(store, "charge", dataset, body, last=last, key=key)
    for account, amount in zip(paying, amounts, strict=True):
        _spend(store, account, amount)
    return Charge(dataset, key, price.guarantee, receipt, admitted, price=price, units=frozenset(units))


def _touched(dataset: str, analyst: str | None) -> tuple[Any, dict[str, object]]:
    """Return the query for the accounts that a charge concerns, with its parameters."""
    return schema.TOUCHED, {"owner": dataset, "analyst": analyst or ""}


def _paying(rows: list[Any], dataset: str, analyst: str | None) -> tuple[list[Account], Account | None]:
    """Return the dataset's account, and the analyst's where analysts have accounts; and that one if it is to be
    opened."""
    touched = {(account.kind, account.name): account for account in (accounts.read(row[:-3]) for row in rows)}
    whole = touched.get(("dataset", ""))
    if whole is None:
        raise accounts.unknown("dataset")
    template, personal = touched.get(("analyst", "")), touched.get(("analyst", analyst or " "))
    if not any(row[-3] for row in rows):  # analysts have no accounts here
        return [whole], None
    if analyst is None:
        raise InvalidArgument(
            "analyst", "who asks: analysts have accounts here", "nobody", "pass analyst=, a name", "pass --analyst NAME"
        )
    if personal is not None:
        return [whole, personal], None
    if template is None:
        raise accounts.unknown("analyst")
    fresh = accounts.opened((dataset, "analyst", analyst), template.limit, template.filter)
    return [whole, fresh], fresh


def people_pay(
    store: LedgerStore,
    account: Account,
    contributors: people.Contributors,
    price: Price,
    seq: int,
    body: dict[str, Any],
) -> NDArray[np.bool_]:
    """Charge whoever can pay. The seal of the charge before is checked first, and named in the new one: accounts put
    back to an earlier state do not fit into the history again.
    """
    key, population = store.secret.people, account.owner
    if account.sealed:
        _check_seal(store, key, account)
    amount = check_person_limit(account, price)
    assert account.room is not None
    admitted = people.charge(store, population, contributors.who, amount, account.room)
    total = (
        account.checksum + people.checksum(key, contributors.who[admitted], amount.loss, amount.delta)
    ) % people.PRIME
    _spend(store, replace(account, checksum=total, sealed=seq), Amount(0, 0))
    body["people"] = [population, people.seal(key, population, seq, total), account.sealed]
    return contributors.rows(admitted)


def _check_seal(store: LedgerStore, key: bytes, account: Account) -> None:
    """Refuse people's accounts whose checksum is not the one that their last charge recorded."""
    rows = store.run(schema.ENTRY, {"seq": account.sealed}).fetchall()
    sealed_entry = chain.entry_of(rows[0]).body.get("people") if rows else None
    seal = people.seal(key, account.owner, account.sealed, account.checksum)
    if not isinstance(sealed_entry, list) or sealed_entry[:2] != [account.owner, seal]:
        raise LedgerError(
            "ledger", "people's accounts as they were charged", "changed accounts", "restore it from a copy"
        )


def _spend(store: LedgerStore, account: Account, amount: Amount) -> None:
    """Add an amount to an account, and store its checksum and the number of its last sealed charge."""
    values = {"loss": amount.loss, "delta": amount.delta, "checksum_": account.checksum, "sealed_": account.sealed}
    store.run(schema.SPEND, {**account.where, **values})
