"""Verification: the hash chain is unbroken, and every account is the sum of the entries that concern it."""

from __future__ import annotations

from typing import Any

from dither.errors import LedgerError
from dither.ledger import accounts, chain, people, schema
from dither.ledger.chain import Entry, Receipt
from dither.ledger.recorded import canonical
from dither.ledger.store import Store
from dither.ledger.units import Amount, Limit


def verify(store: Store) -> tuple[int, Receipt]:
    """Replay the whole history, then compare the accounts with it; in the transaction that is under way."""
    store.intact()
    ledger = _Replayed()
    before, seq = chain.START, 0
    for entry in chain.entries(store):
        if entry.seq != seq + 1:
            raise chain.broken(seq + 1, "it is missing")
        chain.check(store, entry, before)
        try:
            ledger.add(entry)
        except (KeyError, IndexError, TypeError, ValueError):
            raise chain.broken(entry.seq, "it cannot be read") from None
        before, seq = entry.hash, entry.seq
    result = [accounts.read(row) for row in store.run(schema.ACCOUNTS).fetchall()]
    ledger.compare(result)
    _check_people(store, ledger, {account.owner: account for account in result if account.kind == "people"})
    store.check_shape()
    return seq, Receipt(seq, before.hex())


class _Replayed:
    """The accounts as computed from the history."""

    def __init__(self) -> None:
        self.sums: dict[tuple[str, str, str], list[Any]] = {}
        self.seals: dict[str, tuple[int, str]] = {}
        self.charges: set[int] = set()

    def add(self, entry: Entry) -> None:
        """Apply one entry."""
        body = entry.body
        if entry.kind == "open":
            for opened in body["accounts"]:
                limit = accounts.promised(opened["limit"])
                room = None if limit is None else Limit.of(limit, opened["limit"]["filter"]).amount
                stated, unit = canonical(opened["limit"]), opened["unit"]
                self.sums[tuple(opened["account"])] = [room, Amount(0, 0), opened["population"], stated, unit, 0]
        elif entry.kind == "limit":
            limit = accounts.promised(body["limit"])
            result = self.sums[tuple(body["account"])]
            result[0], result[3] = Limit.of(limit, body["limit"]["filter"]).amount, canonical(body["limit"])
        elif entry.kind == "charge":
            self.charges.add(entry.seq)
            for *place, epsilon, delta in body["charged"]:
                result = self.sums[place[0], place[1], place[2]]
                result[1] = result[1] + Amount(epsilon, delta)
            if "people" in body:
                population, seal, before = body["people"]
                if before != self.seals.get(population, (0, ""))[0]:
                    raise chain.broken(entry.seq, "people's accounts were put back before it")
                self.seals[population] = entry.seq, seal
        elif entry.kind == "reopen":
            self.sums[entry.dataset, "dataset", ""][5] = 0
        elif entry.kind == "incident" and entry.charge in self.charges:
            self.sums[entry.dataset, "dataset", ""][5] += 1
        elif entry.kind != "answer" or entry.charge not in self.charges:
            raise chain.broken(entry.seq, "it answers no charge")

    def compare(self, result: list[accounts.Account]) -> None:
        """Refuse stored accounts that differ from those computed from the history."""
        stored = {a.place: [a.room, a.used, a.population, a.stated, a.unit, a.incidents] for a in result}
        plain = all((a.checksum, a.sealed) == (0, 0) for a in result if a.kind != "people")
        if stored != self.sums or not plain:
            wrong = {str(place[1]) for place in set(stored) ^ set(self.sums)} or {
                str(place[1]) for place in stored if stored[place] != self.sums[place]
            }
            raise LedgerError(
                "ledger",
                "accounts that are the sum of their entries",
                f"others ({', '.join(sorted(wrong))})",
                "restore it from a copy",
            )


def _check_people(store: Store, ledger: _Replayed, result: dict[str, accounts.Account]) -> None:
    key = store.secret.people
    for population, (seq, seal) in ledger.seals.items():
        total = people.total(store, key, population)
        account = result[population]
        same = (account.sealed, account.checksum) == (seq, total)
        if not same or people.seal(key, population, seq, total) != seal:
            raise LedgerError("ledger", "people's accounts as they were charged", "others", "restore it from a copy")
