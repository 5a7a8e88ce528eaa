"""Charging for a release: every account that it concerns is checked and updated in one transaction.

*Incidents* are errors while rows are read. Whether reading fails may depend on a single row, so a failure is an answer
without noise. It is charged like any answer, discloses only that it happened, and cannot be repeated often: a dataset
is closed for an analyst after ``max_incidents`` incidents, and for everybody after :data:`EVERYBODY` times as many,
until its steward reopens it. So no single analyst can close a dataset for the others, and colluding analysts cannot
continue. Incidents of charges without an analyst count for everybody.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.comparison import ComparedByValue
from dither.errors import BudgetExceeded, DatasetClosed, InvalidArgument, WrongType
from dither.guarantees import Guarantee
from dither.ledger import accounts, chain, people, schema
from dither.ledger.accounts import Account, Amount, Price, Unit, cost
from dither.ledger.chain import Receipt
from dither.ledger.recorded import canonical
from dither.ledger.store import LedgerStore

DEFAULT_MAX_INCIDENTS = 3
EVERYBODY = 3
"""A dataset is closed for everybody after ``EVERYBODY * max_incidents`` incidents."""
_MAX_SHOWN_REQUEST = 10_000
"""The longest request, in characters, that the history holds in full; of a longer one it holds the hash only."""


def check_max_incidents(value: object) -> int:
    """Return the number of incidents after which a dataset is closed; refuse anything but a positive whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongType("max_incidents", "a whole number", type(value).__name__, "pass max_incidents=3")
    if value < 1:
        raise InvalidArgument("max_incidents", "at least 1", value, "pass max_incidents=3")
    return value


def incidents_by_analyst(store: LedgerStore, account: Account) -> Counter[str | None]:
    """Count the incidents of a dataset since it was last reopened, by the analyst who was charged; None stands for
    charges that name no analyst."""
    if not account.incidents:
        return Counter()
    rows = store.rows(schema.LAST_INCIDENTS, {"dataset": account.owner, "most": account.incidents})
    return Counter(json.loads(row[0]).get("analyst") for row in rows)


def counted(incidents: Counter[str | None], analyst: str | None) -> int:
    """Return how many incidents count against an analyst: their own and those of charges without an analyst; all of
    them for None."""
    return incidents.total() if analyst is None else incidents[analyst] + incidents[None]


@dataclass(frozen=True)
class Closure:
    """Whether incidents have closed a dataset for everybody, and the analysts for whom they have closed it.

    >>> Closure.of(Counter({"ann": 3, "bob": 1}), max_incidents=3)
    Closure(everybody=False, analysts=('ann',))
    """

    everybody: bool
    analysts: tuple[str, ...]

    @classmethod
    def of(cls, incidents: Counter[str | None], max_incidents: int) -> Closure:
        """Return the closure of a dataset with these incidents, counted by analyst: ``max_incidents`` of one analyst
        close it for that analyst; as many without an analyst, or ``EVERYBODY`` times as many in all, for everybody."""
        everybody = incidents.total() >= EVERYBODY * max_incidents or incidents[None] >= max_incidents
        names = sorted(name for name in incidents if name is not None and counted(incidents, name) >= max_incidents)
        return cls(everybody, tuple(names))

    @property
    def is_open(self) -> bool:
        """Return whether the dataset takes questions of everybody."""
        return not self.everybody and not self.analysts


def check_open(store: LedgerStore, account: Account, max_incidents: int, analyst: str | None = None) -> None:
    """Refuse a request to a dataset that incidents since its last reopening have closed.

    ``account`` is the dataset's. It is closed for ``analyst`` after ``max_incidents`` incidents of that analyst, and
    for everybody after ``EVERYBODY`` times as many incidents in all. Where no analysts are named (None), all requests
    count as those of one.
    """
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
    """Append an incident of a charge to the history, in the transaction that is under way, and return its receipt.

    A charge has at most one incident: for a second one, the receipt of the first is returned.
    """
    chain.check_charge(chain.select_entry(store, charge.receipt), charge)
    recorded = store.run(schema.INCIDENT, {"charge": charge.receipt.seq}).fetchall()
    if recorded:
        return chain.entry_of(recorded[0]).receipt
    account = accounts.known(store, charge.dataset)
    receipt = chain.append(store, "incident", charge.dataset, {}, key=charge.key, charge=charge.receipt.seq)
    _set_incidents(store, account, account.incidents + 1)
    return receipt


def reopen(store: LedgerStore, dataset: str, signed: Mapping[str, str]) -> Receipt:
    """Count incidents of a dataset from 0 again, in the transaction that is under way; they stay in the history."""
    account = accounts.known(store, dataset)
    receipt = chain.append(store, "reopen", dataset, {"incidents": account.incidents, **signed})
    _set_incidents(store, account, 0)
    return receipt


def _set_incidents(store: LedgerStore, account: Account, incidents: int) -> None:
    """Store how many incidents a dataset has had since it was last reopened."""
    store.run(schema.COUNT_INCIDENTS, {**account.parameters, "incidents_": incidents})


@dataclass(frozen=True, eq=False)
class Charge(ComparedByValue):
    """A paid charge: the right to compute one release and to record one answer.

    ``kept`` is a mask of the rows that may be used, those of people who could pay; None where people have no accounts.
    ``answer`` is the recorded answer if this request was answered before, so that there is nothing to compute; else
    None. ``units`` are the loss units (epsilon or rho) of the charged accounts.

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


def charge_body(dataset: str, price: Price, analyst: str | None, asked: str) -> dict[str, Any]:
    """Return the body of a charge's history entry, without the charged accounts: ``cost``, ``request`` and ``asked``.

    ``request`` is a hash of the dataset, the whole price, the analyst and the request: a key may be used again only
    with the same hash. ``asked`` is the request itself, None if it is very long.
    """
    cost = {**accounts.state(price.guarantee, "sum"), "rho": None if price.rho is None else str(price.rho)}
    text = canonical([dataset, cost, analyst, asked])
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return {"cost": cost, "request": digest, "asked": asked if len(asked) <= _MAX_SHOWN_REQUEST else None}


def find_recorded(
    store: LedgerStore, dataset: str, key: str, paid: Guarantee, request: str, *, lenient: bool = False
) -> Charge | None:
    """Return the charge of a request with the answer that was recorded under its ``key``; None if there is none.

    ``paid`` is the cost as it was stated, which the result repeats; ``request`` is the hash that :func:`charge_body`
    gives. A key that was used for another request is refused, or, with ``lenient``, treated as one without an answer. A
    charge whose answer was never recorded is not reused: asking again is charged again, so that the noise of one charge
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
    """Return the population whose people would pay for a request, empty if people have no accounts; refuse a request
    that the dataset or the analyst cannot pay.

    It is called before the keys of any person are read, and depends on the request alone. The charge checks again.
    """
    paying = _paying(store.rows(*_touched(dataset, analyst)), dataset, analyst)[0]
    check_open(store, paying[0], max_incidents, analyst)
    _check_people(paying[0].population, people)
    accounts.charge_each(paying, price)
    if people:
        check_person_limit(accounts.known(store, paying[0].population, "people"), price)
    return paying[0].population


def _check_people(population: str, named: bool) -> None:
    """Refuse a release without a column of people where people have accounts, or with one where they have none.

    ``population`` is empty where people have no accounts.
    """
    if population and not named:
        raise InvalidArgument("people", "the people of this release", "none", "pass people=, the column of person keys")
    if named and not population:
        raise InvalidArgument(
            "people", "none: people have no accounts here", "a column", "create the dataset with each_person="
        )


def check_person_limit(account: Account, price: Price) -> Amount:
    """Return the amount that a release costs each person; refuse a cost above the lifetime limit of a person, which is
    public, unlike what people have left."""
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
    """Check every account with this charge included, append the charge to the history, and update the accounts.

    All of it is part of the transaction that is under way. ``price`` is the cost in the units of accounts;
    ``contributors`` are the people of the release, None where they have no accounts or were not read. ``body`` is that
    of :func:`charge_body`, to which the charged accounts are added. More than ``max_incidents`` incidents close the
    dataset. ``unread`` says that the keys of the people could not be read, so that only the dataset and the analyst are
    charged.
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
    body["charged"] = [[*account.identity, a.loss, a.delta] for account, a in zip(paying, amounts, strict=True)]
    if analyst is not None:
        body["analyst"] = analyst
    receipt = chain.append(store, "charge", dataset, body, last=last, key=key)
    for account, amount in zip(paying, amounts, strict=True):
        _spend(store, account, amount)
    return Charge(dataset, key, price.guarantee, receipt, admitted, price=price, units=frozenset(units))


def _touched(dataset: str, analyst: str | None) -> tuple[Any, dict[str, object]]:
    """Return the SELECT statement for the accounts that a charge to a dataset by an analyst updates, and its
    parameters."""
    return schema.TOUCHED, {"owner": dataset, "analyst": analyst or ""}


def _paying(rows: list[Any], dataset: str, analyst: str | None) -> tuple[list[Account], Account | None]:
    """Return the accounts that pay, and the one of them that is still to be opened (None if they all exist).

    ``rows`` are those of :func:`_touched`: the columns of an account, then whether analysts have accounts in this
    dataset, and number and hash of the newest entry. The paying accounts are the dataset's and, where analysts have
    accounts, the analyst's. An analyst without an account gets one with the limit of the template, the account of kind
    ``analyst`` whose name is empty.
    """
    touched = {(account.kind, account.name): account for account in (accounts.read(row[:-3]) for row in rows)}
    whole = touched.get(("dataset", ""))
    if whole is None:
        raise accounts.unknown("dataset")
    template, personal = touched.get(("analyst", "")), touched.get(("analyst", analyst or " "))
    if not any(row[-3] for row in rows):  # analysts have no accounts here
        return [whole], None
    if analyst is None:
        raise InvalidArgument(
            "analyst", "a name, since analysts have accounts here", "none", "pass analyst=", "pass --analyst NAME"
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
    """Charge the people who can pay, in the transaction that is under way, and return a mask of the rows that may be
    used.

    ``account`` is that of each person in the population, ``contributors`` are the people of the rows. The seal of the
    charge before is checked first, and named in the new one, so that accounts put back to an earlier state do not fit
    the history. ``body``, the charge's entry in the history, gets the seal of this charge, which is entry ``seq``. The
    seal is made from a checksum of all people's accounts, which is a sum over people and so can be updated by adding
    this charge's part.
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
    """Refuse accounts of people whose checksum differs from the one that their last charge sealed in the history;
    ``key`` is that of the seals."""
    rows = store.run(schema.ENTRY, {"seq": account.sealed}).fetchall()
    sealed_entry = chain.entry_of(rows[0]).body.get("people") if rows else None
    seal = people.seal(key, account.owner, account.sealed, account.checksum)
    if not isinstance(sealed_entry, list) or sealed_entry[:2] != [account.owner, seal]:
        raise people.changed_accounts()


def _spend(store: LedgerStore, account: Account, amount: Amount) -> None:
    """Add an amount to an account, and store its checksum and the number of its last sealed charge."""
    values = {"loss": amount.loss, "delta": amount.delta, "checksum_": account.checksum, "sealed_": account.sealed}
    store.run(schema.SPEND, {**account.parameters, **values})
