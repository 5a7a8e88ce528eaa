"""The state of a series of releases: secret, durable, and advanced by one transaction at a time.

A series is charged once, for its whole horizon, and then advanced step by step. What it releases at a step depends on
everything measured and drawn before. So there is a state: the exact totals so far, the noise in them as far as later
noise depends on it (:mod:`dither.stream.mechanism`), and how often each person took part. It is kept here and
nowhere else:

``dither_series``   the state, in parts, each sealed by AES-GCM under a key that is made of the ledger's secret, and
                    bound to its series, its part and the number of the advance that wrote it
``dither_entry``    an entry for each advance, of kind ``answer``: the released points, and in its body nonce and tag
                    of every part of the state after it, which nobody without the secret can give to other content

*One transaction* holds the lock of the ledger, checks the state against the last entry, lets the caller compute, and
writes the new entry and the new parts. A process that dies before it commits has changed nothing and shown nothing, one
that dies after it finds the points that were recorded. Nothing is drawn twice: the key of the noise of new steps is
chosen in the transaction that records them, and kept nowhere.

*Two processes* cannot advance a series twice: the second one waits for the lock, and finds that the series is further
than what it measured; it then computes nothing.

*An older state* does not fit the last entry of the series, so putting back the table alone is found out at once. An
older copy of the whole ledger is one in which the last entries are missing, which a receipt finds out
(:func:`dither.ledger.chain.keep_receipt`), as for every charge. Keep one where a series runs: a series that goes on
from an older copy releases the steps after it a second time, and what it costs is spent twice while the ledger says
once. The noise of these steps is new, since their key is: what is seen is two releases, and not the exact difference of
two tables.

*What is visible* in the ledger's file without its secret: when a series was advanced, its points, and the sizes of the
parts, hence how many people took part for the first time or again in each advance. The number of entries and parts
depends on the number of advances alone, since receipts disclose it.

*People who have accounts* pay at their first participation, in the same transaction; people who never take part pay
nothing.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from dither.errors import InvalidArgument, LedgerError
from dither.ledger import accounts, chain, charging, people, schema
from dither.ledger.accounts import Price
from dither.ledger.chain import Receipt
from dither.ledger.charging import Charge
from dither.ledger.recorded import canonical
from dither.ledger.store import LedgerStore

_NONCE, _TAG = 12, 16
_DIGITS = 8
_OWN = "series\u00a0"
"""The prefix of the keys of series. It is not printable, and keys of callers must be, so no question can be recorded
under the key of an advance, which would end the series."""


@dataclass(frozen=True)
class SeriesState:
    """The state of a series: the number of its advances, and its decrypted parts by their numbers."""

    advances: int
    parts: Mapping[int, bytes]


@dataclass(frozen=True)
class Advance:
    """The result of an advance: the released points as ``answer``, and the changed parts of the state by number; a part
    that is None is removed, and parts that are missing stay as they are."""

    answer: bytes
    parts: Mapping[int, bytes | None]


Pay = Callable[[Any], NDArray[np.bool_]]
"""Charges the people of a column of keys for the whole series, and returns a mask of the rows of those who can pay."""
Compute = Callable[[SeriesState, Pay | None], Advance | None]
"""Computes an advance from the state, in the transaction; None where there is nothing to do."""


def charged_series(
    store: LedgerStore,
    dataset: str,
    key: str,
    cost: Any,
    asked: str,
    analyst: str | None,
    max_incidents: int,
    check: Callable[[], object],
) -> Charge:
    """Return the charge of a series: the one that was made before, or a new one, in one transaction.

    ``key`` is the name of the series in its ``dataset``, ``cost`` a guarantee or what has one, ``asked`` the canonical
    text of the request, and ``analyst`` who pays beside the dataset (None: nobody). More than ``max_incidents``
    incidents close the dataset. The charge covers the whole horizon, also after a crash, since no noise is drawn before
    the first advance. ``check`` is called before a new charge, to refuse what can be refused for free. People are not
    charged here: each pays at first participation.
    """
    key = f"{_OWN}{key}"
    price = Price.of(cost)
    body = charging.charge_body(dataset, price, analyst, asked)

    def recorded() -> Charge | None:
        """Return the charge that was made under this key; refuse one for another request."""
        rows = store.rows(schema.CHARGED, {"dataset": dataset, "key": key})
        if not rows:
            return None
        entry = chain.checked(store, rows[0][0])
        if entry.body.get("request") != body["request"]:
            fix = "give the new series another name"
            raise InvalidArgument("series", "the one that was charged under this name", "a different series", fix)
        return Charge(dataset, key, price.guarantee, entry.receipt, price=price)

    result = recorded()
    if result is not None:
        return result
    check()
    with store.transaction():
        result = recorded()
        if result is None:
            population = accounts.known(store, dataset).population
            no_people = people.contributors([], population, store.secret.people) if population else None
            result = charging.pay(store, dataset, key, price, analyst, no_people, body, max_incidents, unread=False)
    return result


class SeriesRecord:
    """The recorded advances of one series that was charged, and its sealed state."""

    def __init__(self, store: LedgerStore, charge: Charge, analyst: str | None, reached: Callable[[str], None]) -> None:
        """Open the record of a charged series; ``reached`` is called after each step, for tests."""
        self._store, self._charge, self._analyst, self._reached = store, charge, analyst, reached
        self._cipher = AESGCM(store.secret.series)

    @property
    def charged(self) -> Receipt:
        """Return the receipt of the charge of this series."""
        return self._charge.receipt

    @property
    def people_key(self) -> bytes:
        """Return the secret under which people of this series are hashed."""
        return hmac.digest(self._store.secret.series, b"people %d" % self._charge.receipt.seq, "sha256")

    # -- reading ------------------------------------------------------------------------------------------------------

    def answers(self, after: int = 0) -> tuple[list[bytes], Receipt]:
        """Return the recorded answers of all advances but the first ``after``, and the receipt of the last one.

        The state is not decrypted for that: it may have many people, and the next advance reads it anyway.
        """
        with self._store.snapshot():
            rows = self._rows(schema.SERIES_NUMBERS)
            advances, _ = self._recorded_seals({int(part): int(number) for part, number in rows})
            answered = {"dataset": self._charge.dataset, "charge": self._charge.receipt.seq}
            keys = {"first": self._key(after), "last": self._key(advances)}
            entries = chain.checked_answers(self._store, {**answered, **keys})
        if [entry.key for entry in entries] != [self._key(n) for n in range(after, advances)]:
            raise _damaged()
        receipt = entries[-1].receipt if entries else self._charge.receipt
        return [chain.as_bytes(entry.answer, entry.seq) for entry in entries], receipt

    def _entry(self, number: int) -> int:
        """Return the sequence number, in the ledger's history, of the entry that recorded advance ``number``."""
        rows = self._store.run(schema.ANSWER, {"dataset": self._charge.dataset, "key": self._key(number)}).fetchall()
        if not rows:
            raise _damaged()
        return int(rows[0][0])

    def _key(self, number: int) -> str:
        """Return the key under which advance ``number`` (from 0) is recorded: that of the series, and eight digits."""
        return f"{self._charge.key}#{number:0{_DIGITS}d}"

    def _rows(self, statement: Any) -> list[Any]:
        """Run a SELECT about the stored parts of this series."""
        series = {"series": self._charge.receipt.seq}
        return list(self._store.run(statement, series).fetchall())

    def _recorded_seals(self, numbers: Mapping[int, int]) -> tuple[int, dict[str, list[Any]]]:
        """Return how often the series was advanced, and the seals of its parts in the entry of the last advance.

        ``numbers`` has, for each stored part, the number of the advance that wrote it; a state whose parts differ from
        those in that entry is refused.
        """
        advances = 1 + max(numbers.values(), default=-1)
        after = {"dataset": self._charge.dataset, "key": self._key(advances)}
        if self._store.run(schema.ANSWER, after).fetchall():
            raise _damaged()  # the history has a later advance than the stored state
        if not advances:
            return 0, {}
        last = chain.checked(self._store, self._entry(advances - 1))
        seals: dict[str, list[Any]] = last.body.get("parts") or {}
        if last.charge != self._charge.receipt.seq or {int(part): n for part, (n, _) in seals.items()} != numbers:
            raise _damaged()
        return advances, seals

    def _state(self) -> tuple[SeriesState, dict[str, list[Any]]]:
        """Return the decrypted state, and the seals of its parts as the last advance's entry has them: for each part's
        number (as text), the advance that wrote it and its nonce and tag.

        A state that is not that of the last advance is refused. It is part of the transaction that is under way.
        """
        series, rows = self._charge.receipt.seq, self._rows(schema.SERIES_PARTS)
        sealed = {int(part): (int(number), chain.as_bytes(value, series)) for part, number, value in rows}
        advances, seals = self._recorded_seals({part: number for part, (number, _) in sealed.items()})
        if seals != {str(part): [number, _nonce_and_tag(value)] for part, (number, value) in sealed.items()}:
            raise _damaged()
        try:
            parts = {
                part: self._cipher.decrypt(value[:_NONCE], memoryview(value)[_NONCE:], self._about(part, number))
                for part, (number, value) in sealed.items()
            }
        except (InvalidTag, ValueError):
            parts = None
        if parts is None:
            raise _damaged()
        return SeriesState(advances, parts), seals

    def _about(self, part: int, number: int) -> bytes:
        """Return the associated data that a part is sealed with: its series, its number, and the advance that wrote
        it."""
        return canonical([self._charge.dataset, self._charge.key, self._charge.receipt.seq, part, number]).encode()

    # -- writing ------------------------------------------------------------------------------------------------------

    def advance(self, compute: Compute, *, max_incidents: int) -> Receipt | None:
        """Compute and record one advance, in one transaction; return None where ``compute`` finds nothing to do."""
        store, charge = self._store, self._charge
        self._reached("series measured")
        with store.transaction():
            account = accounts.known(store, charge.dataset)
            charging.check_open(store, account, max_incidents, self._analyst)
            state, before = self._state()
            pay = None
            if account.population:
                population = account.population

                def pay(column: Any) -> NDArray[np.bool_]:
                    """Charge the people of a column of keys, and return a mask of the rows of those who could pay."""
                    return self._pay(column, population, state.advances)

            result = compute(state, pay)
            if result is None:
                return None
            self._reached("series computed")
            number, seals = state.advances, dict(before)
            for part, content in result.parts.items():
                store.run(schema.SERIES_DROP, {"series": charge.receipt.seq, "part": part})
                seals.pop(str(part), None)
                if content is not None:
                    nonce = os.urandom(_NONCE)
                    sealed = nonce + self._cipher.encrypt(nonce, content, self._about(part, number))
                    values = {"series": charge.receipt.seq, "part": part, "number": number, "sealed": sealed}
                    store.run(schema.SERIES_PUT, values)
                    seals[str(part)] = [number, _nonce_and_tag(sealed)]
            receipt = chain.append(
                store,
                "answer",
                charge.dataset,
                {"parts": seals},
                key=self._key(number),
                charge=charge.receipt.seq,
                answer=result.answer,
            )
            self._reached("series written")
        self._reached("series recorded")
        return receipt

    def _pay(self, column: Any, population: str, number: int) -> NDArray[np.bool_]:
        """Charge the people of a column for the whole series, in the transaction that is under way, and return a mask
        of the rows of those who could pay; the dataset has paid already."""
        store, charge = self._store, self._charge
        contributors = people.contributors(column, population, store.secret.people)
        assert charge.price is not None
        seq, before = chain.last_entry(store)
        body = self._body(charge.price)
        account = accounts.known(store, population, "people")
        admitted = charging.people_pay(store, account, contributors, charge.price, seq + 1, body)
        body["charged"] = []
        key = f"{self._key(number)}+"
        chain.append(store, "charge", charge.dataset, body, last=(seq, before), key=key)
        return admitted

    def _body(self, price: Price) -> dict[str, Any]:
        """Return the body of an entry that charges people, or records a failure, as a part of this series."""
        body = charging.charge_body(self._charge.dataset, price, None, "null")
        return {**body, "asked": None, "series": self._charge.receipt.seq}

    def fail(self) -> Receipt:
        """Record an incident because reading the rows of an advance failed, and return its receipt.

        An incident belongs to a charge, and each charge has at most one, so a charge of nothing is recorded first.
        """
        store, charge = self._store, self._charge
        with store.transaction():
            assert charge.price is not None
            body = {**self._body(charge.price), "charged": []}
            key = f"{charge.key}!"
            receipt = chain.append(store, "charge", charge.dataset, body, key=key)
            return charging.record_incident(store, replace(charge, key=key, receipt=receipt))


def _nonce_and_tag(sealed: bytes) -> str:
    """Return the AES-GCM nonce and tag of a sealed part in hexadecimal. They identify its content: nobody without the
    secret can make a different content with this tag, and decryption checks the tag.
    """
    return (sealed[:_NONCE] + sealed[-_TAG:]).hex()


def _damaged() -> LedgerError:
    """Return the error for a stored state that does not belong to the last advance."""
    fix = "restore the ledger from a copy that is as new as its last receipt"
    return LedgerError("series", "the state of its last advance", "a different state, or none", fix)
