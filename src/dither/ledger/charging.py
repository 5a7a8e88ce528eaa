"""Paying for a release: every account that it touches is checked and charged, in one transaction."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument, message
from dither.guarantees import Guarantee
from dither.ledger import accounts, chain, people, schema
from dither.ledger.accounts import Account
from dither.ledger.chain import Receipt
from dither.ledger.secret import Secret
from dither.ledger.store import Store
from dither.ledger.units import Amount, Price, cost


@dataclass(frozen=True)
class Charge:
    """What was paid for one release: the right to compute it and to record one answer.

    ``kept`` marks the rows of ``people`` that may be used; it is None where people have no accounts. ``answer`` is
    set if this very request was answered before: there is nothing left to compute.
    """

    dataset: str
    key: str
    cost: Guarantee
    receipt: Receipt
    kept: NDArray[np.bool_] | None = field(default=None, repr=False)
    answer: bytes | None = field(default=None, repr=False)


def earlier(store: Store, dataset: str, key: str, paid: Guarantee, digest: str) -> Charge | None:
    """The charge made under this key, with its answer if there is one."""
    rows = store.rows(schema.CHARGED, {"dataset": dataset, "key": key})
    if not rows:
        return None
    seq, text, hashed = rows[0]
    try:
        same = json.loads(text)["request"] == digest
    except (ValueError, KeyError, TypeError):
        raise chain.broken(seq, "its text cannot be read") from None
    if not same:
        raise InvalidArgument(
            message("key", "a new key for a new request", "one used for another request", "choose another key")
        )
    answers = store.rows(schema.ANSWER, {"charge": seq})
    if answers:
        answered, answer, last = answers[0]
        receipt = Receipt(answered, chain.held(last, answered).hex())
        return Charge(dataset, key, paid, receipt, answer=chain.held(answer, answered))
    return Charge(dataset, key, paid, Receipt(seq, chain.held(hashed, seq).hex()))


def resumed(store: Store, found: Charge, crowd: people.Crowd | None) -> Charge:
    """A charge that was not answered yet, with the people who paid for it, in the transaction under way.

    Whoever was charged again since is left out: what is known of them is the last release they paid for.
    """
    population = accounts.known(store, found.dataset).population
    _check_crowd(population, crowd)
    if crowd is None:
        return found
    return replace(found, kept=crowd.rows(people.charged(store, population, crowd.who, found.receipt.seq)))


def _check_crowd(population: str, crowd: people.Crowd | None) -> None:
    """Who is touched has to be said where people have accounts, and only there."""
    if population and crowd is None:
        raise InvalidArgument(
            message("people", "whom this release touches", "nobody", "pass people=, the column of person keys")
        )
    if crowd is not None and not population:
        raise InvalidArgument(
            message(
                "people", "nobody: people have no accounts here", "a column", "create the dataset with each_person="
            )
        )


def pay(
    store: Store,
    secret: Secret,
    dataset: str,
    key: str,
    price: Price,
    analyst: str | None,
    crowd: people.Crowd | None,
    body: dict[str, Any],
) -> Charge:
    """Check every account with this charge in it, write it down, and charge them, in the transaction under way."""
    asked = store.run(schema.LAST)  # asked together with the accounts, read after: one journey to the server
    paying, opened = _paying(store, dataset, analyst)
    amounts = [account.charged(price) for account in paying]
    population = paying[0].population
    _check_crowd(population, crowd)
    seq, before = chain.head(store, None if opened else asked)
    kept = None if crowd is None else _people_pay(store, secret, population, crowd, price, seq + 1, body)
    body["charged"] = [[*account.place, a.loss, a.delta] for account, a in zip(paying, amounts, strict=True)]
    receipt = chain.append(store, "charge", dataset, body, last=(seq, before), key=key)
    for account, amount in zip(paying, amounts, strict=True):
        _spend(store, account, amount, account.checksum)
    return Charge(dataset, key, price.guarantee, receipt, kept)


def _paying(store: Store, dataset: str, analyst: str | None) -> tuple[list[Account], bool]:
    """The dataset's account, and the analyst's where analysts have accounts; and whether that was opened now."""
    rows = store.run(schema.TOUCHED, {"owner": dataset, "analyst": analyst or ""}).fetchall()
    touched = {(account.kind, account.name): account for account in (accounts.read(row[:-1]) for row in rows)}
    whole = touched.get(("dataset", ""))
    if whole is None:
        raise accounts.unknown("dataset")
    template, own = touched.get(("analyst", "")), touched.get(("analyst", analyst or " "))
    if not any(row[-1] for row in rows):  # analysts have no accounts here
        return [whole], False
    if analyst is None:
        raise InvalidArgument(
            message("analyst", "who asks: analysts have accounts here", "nobody", "pass analyst=, a name")
        )
    opened = own is None
    if own is None:
        if template is None:
            raise accounts.unknown("analyst")
        own = accounts.opened((dataset, "analyst", analyst), template.limit, template.filter)
        accounts.open_all(store, dataset, [own])
    return [whole, own], opened


def _people_pay(
    store: Store, secret: Secret, population: str, crowd: people.Crowd, price: Price, seq: int, body: dict[str, Any]
) -> NDArray[np.bool_]:
    account = accounts.known(store, population, "people")
    assert account.room is not None
    amount = cost(price, account.unit)
    kept = people.charge(store, population, crowd.who, amount, account.room, seq)
    more = people.checksum(secret.key(), crowd.who[kept], amount.loss, amount.delta)
    total = (account.checksum + more) % people.PRIME
    _spend(store, account, Amount(0, 0), total)
    body["people"] = [population, people.seal(secret.key(), population, seq, total)]
    return crowd.rows(kept)


def _spend(store: Store, account: Account, amount: Amount, checksum: int) -> None:
    store.run(schema.SPEND, {**account.where, "loss": amount.loss, "delta": amount.delta, "checksum_": checksum})
