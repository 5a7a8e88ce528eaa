"""Paying for a release: every account that it touches is checked and charged, in one transaction."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import BudgetExceeded, InvalidArgument, LedgerError, message
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


def resumed(store: Store, secret: Secret, found: Charge, crowd: people.Crowd | None) -> Charge:
    """A charge that was not answered yet, with the people who paid for it, in the transaction under way."""
    _check_crowd(accounts.known(store, found.dataset).population, crowd)
    if crowd is None:
        return found
    rows = store.run(schema.AWAITED, {"charge": found.receipt.seq}).fetchall()
    seq, kept = found.receipt.seq, chain.held(rows[0][1], found.receipt.seq) if rows else b""
    if not rows or chain.held(rows[0][0], seq) != people.fingerprint(secret.key(), seq, crowd.who, kept):
        raise InvalidArgument(
            message("people", "those of the charge that waits under this key", "others", "ask with another key")
        )
    bits = np.frombuffer(kept, dtype=np.uint8)
    return replace(found, kept=crowd.rows(np.unpackbits(bits, count=crowd.who.size).astype(bool)))


def affordable(store: Store, dataset: str, price: Price, analyst: str | None) -> None:
    """Refuse what dataset and analyst cannot pay, before anybody's key is read; the charge itself checks again."""
    for account in _paying(store.rows(*_touched(dataset, analyst)), dataset, analyst)[0]:
        account.charged(price)


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
    rows = store.run(*_touched(dataset, analyst)).fetchall()
    paying, fresh = _paying(rows, dataset, analyst)
    amounts = [account.charged(price) for account in paying]
    population = paying[0].population
    _check_crowd(population, crowd)
    last = (rows[0][-2], chain.held(rows[0][-1], rows[0][-2]))
    if fresh is not None:
        receipt = accounts.open_all(store, dataset, [fresh])
        last = (receipt.seq, bytes.fromhex(receipt.hash))
    kept = None if crowd is None else _people_pay(store, secret, population, crowd, price, last[0] + 1, body)
    body["charged"] = [[*account.place, a.loss, a.delta] for account, a in zip(paying, amounts, strict=True)]
    receipt = chain.append(store, "charge", dataset, body, last=last, key=key)
    for account, amount in zip(paying, amounts, strict=True):
        _spend(store, account, amount)
    return Charge(dataset, key, price.guarantee, receipt, kept)


def _touched(dataset: str, analyst: str | None) -> tuple[Any, dict[str, object]]:
    return schema.TOUCHED, {"owner": dataset, "analyst": analyst or ""}


def _paying(rows: list[Any], dataset: str, analyst: str | None) -> tuple[list[Account], Account | None]:
    """The dataset's account, and the analyst's where analysts have accounts; and that one if it is to be opened."""
    touched = {(account.kind, account.name): account for account in (accounts.read(row[:-3]) for row in rows)}
    whole = touched.get(("dataset", ""))
    if whole is None:
        raise accounts.unknown("dataset")
    template, own = touched.get(("analyst", "")), touched.get(("analyst", analyst or " "))
    if not any(row[-3] for row in rows):  # analysts have no accounts here
        return [whole], None
    if analyst is None:
        raise InvalidArgument(
            message("analyst", "who asks: analysts have accounts here", "nobody", "pass analyst=, a name")
        )
    if own is not None:
        return [whole, own], None
    if template is None:
        raise accounts.unknown("analyst")
    fresh = accounts.opened((dataset, "analyst", analyst), template.limit, template.filter)
    return [whole, fresh], fresh


def _people_pay(
    store: Store, secret: Secret, population: str, crowd: people.Crowd, price: Price, seq: int, body: dict[str, Any]
) -> NDArray[np.bool_]:
    """Charge whoever can pay. The seal of the charge before is checked first, and named in the new one: accounts put
    back to an earlier state do not fit into the history again.
    """
    account, key = accounts.known(store, population, "people"), secret.key()
    assert account.room is not None
    if account.sealed:
        _check_seal(store, key, account)
    amount = cost(price, account.unit)
    if not amount.within(account.room):  # which everybody may know: nobody could ever pay it
        raise BudgetExceeded(
            message("cost", f"at most {account.limit}, what {account} has for life", str(price), "ask for less")
        )
    kept = people.charge(store, population, crowd.who, amount, account.room)
    total = (account.checksum + people.checksum(key, crowd.who[kept], amount.loss, amount.delta)) % people.PRIME
    _spend(store, replace(account, checksum=total, sealed=seq), Amount(0, 0))
    body["people"] = [population, people.seal(key, population, seq, total), account.sealed]
    bits = np.packbits(kept).tobytes()
    mark = people.fingerprint(key, seq, crowd.who, bits)
    store.run(schema.AWAIT, {"charge": seq, "crowd": mark, "kept": bits})
    return crowd.rows(kept)


def _check_seal(store: Store, key: bytes, account: Account) -> None:
    rows = store.run(schema.ENTRY, {"seq": account.sealed}).fetchall()
    told = chain.entry_of(rows[0]).body.get("people") if rows else None
    seal = people.seal(key, account.owner, account.sealed, account.checksum)
    if not isinstance(told, list) or told[:2] != [account.owner, seal]:
        raise LedgerError(
            message("ledger", "people's accounts as they were charged", "others", "restore it from a copy")
        )


def _spend(store: Store, account: Account, amount: Amount) -> None:
    values = {"loss": amount.loss, "delta": amount.delta, "checksum_": account.checksum, "sealed_": account.sealed}
    store.run(schema.SPEND, {**account.where, **values})
