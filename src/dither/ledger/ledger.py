"""The ledger itself: every release is charged, then computed, then recorded, and only then returned.

*Spenders*: a :class:`LedgerScope` charges each release to a ledger, an :class:`Allowance` deducts it from an earlier
charge. They do not nest: a scope inside another scope, or inside the computation of ``ledger.release``, would charge
one release twice, under two keys and with two answers to replay. It is refused.

*Verification*: the hash chain is unbroken, and every account is the sum of the entries that concern it.
"""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from os import PathLike
from typing import Any, Literal, NamedTuple, NoReturn, Self, Unpack

from dither.budget_hooks import charging_to, current_spender
from dither.errors import BudgetExceeded, DataIncident, InvalidArgument, LedgerError, NotPrivate, WrongType
from dither.extras import Axes
from dither.guarantees import ZCDP, Guarantee
from dither.ledger import accounts, chain, charging, report, schema
from dither.ledger import people as _people
from dither.ledger.accounts import (
    MAX_NAME,
    Account,
    AccountLimits,
    Amount,
    Filter,
    Limit,
    Price,
    Unit,
    canonical_request,
    checked_name,
    checked_signature,
    exact_cost,
)
from dither.ledger.chain import Entry, Receipt
from dither.ledger.charging import Charge
from dither.ledger.recorded import canonical, decode, encode
from dither.ledger.series import SeriesRecord, charged_series
from dither.ledger.store import LedgerStore
from dither.stateful import Stateful

_HEXADECIMAL = re.compile("[0-9a-f]+")


class LedgerScope(Stateful):
    """The scope of ``with ledger.scope(dataset)``: it charges each release in the block before it is computed."""

    def __init__(self, ledger: Ledger, dataset: str, analyst: str | None, key: str | None) -> None:
        """Charge to a dataset and analyst; with a ``key`` releases are numbered under it and recorded."""
        self._ledger, self._dataset, self._analyst, self._key = ledger, dataset, analyst, key
        self._count, self._lock = 0, threading.Lock()

    @contextmanager
    def opened(self) -> Iterator[LedgerScope]:
        """Charge every release made until the block ends."""
        refuse_nested_charging()
        with charging_to(self):
            yield self

    @property
    def left(self) -> Guarantee | None:
        """Return what the dataset, or the analyst, may still spend; None if that is nothing, or there is no limit."""
        return self._ledger.left(self._dataset, self._analyst)

    def spend(self, what: Any, compute: Callable[[], Any], *, private: bool, recordable: bool = True) -> Any:
        """Charge for one release of ``what``, then compute it by ``compute``; record it if the scope has a key, or
        return what was recorded under that key before.

        ``private`` is False for noise from a seed, which is refused. ``recordable`` is False for a session that gives
        its answers later, and so has no result to record.
        """
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
    """The budget of one computation, which was charged beforehand: its releases together may not cost more.

    That is checked in the unit of every account that was charged, and in the unit of the cost as it was stated. A
    release that is cheap in one unit may be expensive in another.
    """

    def __init__(self, charge: Charge) -> None:
        """Allow releases that cost as much as a charge, in each unit that the charge was counted in."""
        price = charge.price or Price(charge.cost)
        stated_unit: Unit = "rho" if isinstance(price.guarantee, ZCDP) else "epsilon"
        self._price, self._lock = price, threading.Lock()
        self._left = {unit: exact_cost(price, unit) for unit in sorted({stated_unit, *charge.units})}

    def spend(self, what: Any, compute: Callable[[], Any], *, private: bool, recordable: bool = True) -> Any:
        """Deduct the release of ``what`` from the allowance, and compute it by ``compute``; refuse it where the
        allowance does not cover it.

        ``private`` is False for noise from a seed, which is refused. ``recordable`` has no effect here: the whole
        computation is recorded, and not each of its releases.
        """
        _refuse_seeded(private)
        price = Price.of(what)
        with self._lock:
            self._left = {unit: self._rest(price, unit) for unit in self._left}
        return compute()

    def _rest(self, price: Price, unit: Unit) -> tuple[Fraction, Fraction]:
        """Return the loss and delta that remain of the allowance in ``unit`` after a release at this price; refuse a
        price above it."""
        try:
            epsilon, delta = exact_cost(price, unit)
        except NotPrivate:  # a cost in rho has no finite epsilon: any amount above what is left refuses it
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


def refuse_nested_charging() -> None:
    """Refuse to start charging inside a block that charges already."""
    if current_spender() is not None:
        raise InvalidArgument(
            "scope",
            "one scope, or one computation of ledger.release, at a time",
            "another inside of it, which would leave the outer one uncharged",
            "end the outer one first, or release from one dataset at a time",
        )


def _refuse_seeded(private: bool) -> None:
    """Refuse a release whose noise comes from a seeded source (``private`` is False), which can be reproduced."""
    if not private:
        raise NotPrivate("source", "the system's randomness", "a seeded source", "leave seeded sources to tests")


def _verify(store: LedgerStore) -> Verified:
    """Return the number of entries and the last receipt after replaying the whole history and comparing every account
    with it, in the transaction that is under way; refuse the ledger at the first difference."""
    store.check_integrity()
    replayed = _ReplayedAccounts()
    before, seq = chain.START, 0
    for entry in chain.entries(store):
        if entry.seq != seq + 1:
            raise chain.broken(seq + 1, "it is missing")
        chain.check(store, entry, before)
        try:
            replayed.add(entry)
        except (KeyError, IndexError, TypeError, ValueError):
            raise chain.broken(entry.seq, "it cannot be read") from None
        before, seq = entry.hash, entry.seq
    stored = [accounts.read(row) for row in store.run(schema.ACCOUNTS).fetchall()]
    replayed.compare(stored)
    _check_people(store, replayed.seals, {account.owner: account for account in stored if account.kind == "people"})
    store.check_shape()
    return Verified(seq, Receipt(seq, before.hex()))


class _Seal(NamedTuple):
    """The last seal of a population's accounts that the history has, and the number of the entry that has it."""

    seq: int
    text: str


class _ReplayedAccounts:
    """The accounts that result from replaying the history, entry by entry."""

    def __init__(self) -> None:
        self.accounts: dict[tuple[str, str, str], Account] = {}
        self.seals: dict[str, _Seal] = {}
        self._charges: set[int] = set()

    def add(self, entry: Entry) -> None:
        """Apply one entry (of kind open, limit, charge, incident, reopen or answer); refuse an answer or incident
        without a charge."""
        body = entry.body
        if entry.kind == "open":
            for opened in body["accounts"]:
                limit = opened["limit"]
                room = None if limit["kind"] is None else _room(limit)
                owner, kind, name = opened["account"]
                self.accounts[owner, kind, name] = Account(
                    owner, kind, name, canonical(limit), opened["unit"], room, Amount(0, 0), opened["population"]
                )
        elif entry.kind == "limit":
            self._change(body["account"], stated=canonical(body["limit"]), room=_room(body["limit"]))
        elif entry.kind == "charge":
            self._charges.add(entry.seq)
            for *identity, loss, delta in body["charged"]:
                self._change(
                    identity, used=self.accounts[identity[0], identity[1], identity[2]].used + Amount(loss, delta)
                )
            if "people" in body:
                population, seal, before = body["people"]
                if before != self.seals.get(population, _Seal(0, "")).seq:
                    raise chain.broken(entry.seq, "people's accounts were put back before it")
                self.seals[population] = _Seal(entry.seq, seal)
        elif entry.kind == "reopen":
            self._change((entry.dataset, "dataset", ""), incidents=0)
        elif entry.kind == "incident" and entry.charge in self._charges:
            dataset = (entry.dataset, "dataset", "")
            self._change(dataset, incidents=self.accounts[dataset].incidents + 1)
        elif entry.kind != "answer" or entry.charge not in self._charges:
            raise chain.broken(entry.seq, "it answers no charge")

    def _change(self, identity: Sequence[str], **fields: Any) -> None:
        """Replace fields of the account with this owner, kind and name."""
        owner, kind, name = identity
        self.accounts[owner, kind, name] = replace(self.accounts[owner, kind, name], **fields)

    def compare(self, stored: list[Account]) -> None:
        """Refuse stored accounts that differ from those that follow from the history.

        Checksum and seal of people's accounts depend on the accounts of each person; :func:`_check_people` checks them.
        """
        plain = [replace(item, checksum=0, sealed=0) if item.kind == "people" else item for item in stored]
        by_identity = {account.identity: account for account in plain}
        if by_identity != self.accounts:
            identities = by_identity.keys() | self.accounts.keys()
            wrong = {key[1] for key in identities if by_identity.get(key) != self.accounts.get(key)}
            raise LedgerError(
                "ledger",
                "accounts that are the sum of their entries",
                f"different ones ({', '.join(sorted(wrong))})",
                "restore it from a copy",
            )


def _room(limit: dict[str, Any]) -> Amount:
    """Return the amount that an account with this limit, in the form of history entries, may spend."""
    return Limit.of(accounts.promised(limit), limit["filter"]).amount


def _check_people(store: LedgerStore, seals: Mapping[str, _Seal], stored: Mapping[str, Account]) -> None:
    """Refuse accounts of people that are not those which their last charge has sealed.

    ``seals`` has the newest seal in the history for each population, ``stored`` the account of each population. The
    checksum of all its people's accounts is computed again, and compared with the stored one and with the seal.
    """
    key = store.secret.people
    for population, seal in seals.items():
        total = _people.total(store, key, population)
        account = stored[population]
        same = (account.sealed, account.checksum) == (seal.seq, total)
        if not same or _people.seal(key, population, seal.seq, total) != seal.text:
            raise _people.changed_accounts()


@dataclass(frozen=True)
class Released:
    """A recorded answer. ``replayed`` is True if it was charged and recorded by an earlier call, so that nothing was
    charged now; ``stored`` are the recorded bytes, of which ``value`` is the decoded form."""

    value: Any
    stored: bytes = field(repr=False)
    key: str
    receipt: Receipt = field(repr=False)
    replayed: bool


@dataclass(frozen=True)
class Verified:
    """The result of :meth:`Ledger.verify`: how many entries were checked, and the receipt of the last one."""

    entries: int
    head: Receipt


class Ledger:
    """A durable ledger of privacy budgets. Open one with :func:`dither.ledger.open`."""

    def __init__(
        self,
        place: str | PathLike[str],
        *,
        secret: bytes | None = None,
        create: bool = True,
        read_only: bool = False,
    ) -> None:
        """Open or create a ledger at ``place``, and check its last entry; see :func:`open`.

        ``place`` is a file or the address of a database; ``secret`` is the key of the ledger, None where it is in a
        file beside it. ``create`` allows a missing ledger to be made, ``read_only`` refuses every change.
        """
        self._store = LedgerStore(place, secret=secret, create=create, read_only=read_only)
        self._store.recheck = self._recheck
        try:
            with self._store.snapshot():
                chain.check_last(self._store)
        except BaseException:
            self._store.close()
            raise

    @property
    def created(self) -> bool:
        """Return whether opening this ledger created it."""
        return self._store.created

    # -- accounts ---------------------------------------------------------------------------------------------------

    def create(self, dataset: str, **limits: Unpack[accounts.LimitOptions]) -> Receipt:
        """Open the accounts of a dataset, once.

        Parameters
        ----------
        dataset
            Its name.
        limits
            ``limit``, ``each_analyst``, ``each_person``, ``population`` and ``filter``, all by keyword; see
            :class:`dither.ledger.accounts.AccountLimits`. ``limit`` or ``each_person`` or both are needed.
        """
        name, stated = checked_name(dataset, "dataset"), AccountLimits(**limits)
        with self._store.transaction():
            return accounts.create(self._store, name, stated)

    def ensure(self, dataset: str, **limits: Unpack[accounts.LimitOptions]) -> bool:
        """Open the accounts of a dataset unless it has some, in one step; return whether this call opened them.

        Parameters are those of :meth:`create`. A dataset with accounts that have other limits is refused. A ledger
        opened with ``read_only`` opens none.
        """
        name, stated = checked_name(dataset, "dataset"), AccountLimits(**limits)
        with self._store.snapshot():
            exists = accounts.find(self._store, name) is not None
            if exists:
                accounts.check_limits(self._store, name, stated)
        if exists or self._store.read_only:
            return False
        with self._store.transaction():
            return accounts.ensure(self._store, name, stated)

    def admit(
        self, dataset: str, analyst: str, *, limit: Guarantee, filter: Filter = "sum", signed_by: str | None = None
    ) -> Receipt:
        """Open an account for one analyst of a dataset, with a ``limit`` and the ``filter`` by which charges are added
        up.

        From the first such account on, every charge has to name an analyst who has one, or for whom ``each_analyst``
        opens one. ``signed_by`` stays in the history.
        """
        name, who = checked_name(dataset, "dataset"), checked_name(analyst, "analyst")
        with self._store.transaction():
            return accounts.admit(self._store, name, who, limit, filter, signed_by)

    def change_limit(
        self,
        dataset: str,
        limit: Guarantee,
        *,
        signed_by: str,
        reason: str,
        analyst: str | None = None,
        each_person: bool = False,
    ) -> Receipt:
        """Change the limit of a dataset, of one ``analyst``, or with ``each_person`` of each person.

        What was spent stays spent. ``signed_by`` and ``reason`` stay in the history.
        """
        name, signed = checked_name(dataset, "dataset"), checked_signature(signed_by, reason)
        who = None if analyst is None else checked_name(analyst, "analyst")
        with self._store.transaction():
            return accounts.change_limit(self._store, name, who, each_person, limit, signed)

    def restate_limit(self, dataset: str, limit: Guarantee, *, each_person: bool = False) -> Receipt:
        """Change a limit to what a card states now; refused once something was charged to the dataset."""
        name = checked_name(dataset, "dataset")
        with self._store.transaction():
            accounts.check_uncharged(self._store, name)
            return accounts.change_limit(self._store, name, None, each_person, limit, accounts.RESTATED)

    # -- charging ---------------------------------------------------------------------------------------------------

    def charge(
        self,
        dataset: str,
        cost: Any,
        *,
        key: str | None = None,
        request: Any = None,
        analyst: str | None = None,
        people: Any = None,
        max_incidents: int = charging.DEFAULT_MAX_INCIDENTS,
    ) -> Charge:
        """Charge a dataset for one release, durably, before it is computed.

        One transaction looks the key up, checks every account with this charge in it, and commits. There are no
        refunds: from here on the data may have been read. If ``people`` is a function and fails, dataset and analyst
        are charged all the same, an incident is recorded, and :class:`dither.DataIncident` is raised.

        Parameters
        ----------
        dataset, analyst
            Whose accounts are charged.
        cost
            A guarantee, or a mechanism, whose guarantee it is.
        key
            A permanent name of this release. The same key with the same request returns its answer if it was recorded,
            and is charged again otherwise; the same key with a different request is refused. None draws a random key.
        request
            The request as a JSON value: part of the history, and compared when the key is used again.
        people
            The person of each row: a column of person keys (an array, a Series, a list), an engine's expression for
            it, or a function that returns it, which is not called if the answer is recorded already.
        max_incidents
            After this many incidents of an analyst the dataset is closed for that analyst, and after three times as
            many for everybody (:class:`dither.DatasetClosed`), until :meth:`reopen`.
        """
        name, price = checked_name(dataset, "dataset"), Price.of(cost)
        guarantee = price.guarantee
        charging.check_max_incidents(max_incidents)
        who = None if analyst is None else checked_name(analyst, "analyst")
        named = os.urandom(16).hex() if key is None else checked_name(key, "key")
        asked = canonical_request(request)
        body = charging.charge_body(name, price, who, asked)
        digest = body["request"]
        self._reached("asked")
        result = charging.find_recorded(self._store, name, named, guarantee, digest) if key is not None else None
        if result is not None:
            return result
        contributors, unread = None, False
        if people is not None:
            population = charging.check_payable(self._store, name, price, who, max_incidents, people=True)
            contributors, unread = self._read_people(people, population)
        with self._store.transaction():
            result = charging.find_recorded(self._store, name, named, guarantee, digest) if key is not None else None
            if result is None:
                result = charging.pay(self._store, name, named, price, who, contributors, body, max_incidents, unread)
                if unread:
                    charging.record_incident(self._store, result)
        self._reached("charged")
        if unread and result.answer is None:
            raise DataIncident
        return result

    def has_answer(self, dataset: str, cost: Any, *, key: str, request: Any, analyst: str | None = None) -> bool:
        """Return whether an answer is recorded under this key for this request at this cost; nothing is charged."""
        name, price = checked_name(dataset, "dataset"), Price.of(cost)
        digest = charging.charge_body(name, price, analyst, canonical_request(request))["request"]
        return charging.find_recorded(self._store, name, key, price.guarantee, digest, lenient=True) is not None

    def _read_people(self, people: Any, population: str) -> tuple[_people.Contributors | None, bool]:
        """Return the people a release concerns (None if it names none), and whether reading them failed.

        ``people`` has the person of each row, or is a function that returns them; ``population`` is where they have
        accounts. An error of a function may hold data, and is dropped: the result is then (None, True). An error of any
        other ``people`` is the caller's mistake, and is raised.
        """
        try:
            return _people.contributors(people, population, self._store.secret.people), False
        except Exception:
            if not callable(people):
                raise
            return None, True

    def record_incident(self, charge: Charge) -> Receipt:
        """Record that an error occurred while the rows of a charge were read, and return the receipt; only the first
        incident of a charge counts."""
        if not isinstance(charge, Charge):
            raise WrongType("charge", "a charge", type(charge).__name__, "pass what charge() returned")
        with self._store.transaction():
            return charging.record_incident(self._store, charge)

    def incident_count(self, dataset: str) -> int:
        """Return the number of incidents of a dataset since it was last reopened."""
        with self._store.snapshot():
            return accounts.known(self._store, checked_name(dataset, "dataset")).incidents

    def incidents_by_analyst(self, dataset: str) -> Counter[str | None]:
        """Return the incidents of a dataset since it was last reopened, by the analyst who was charged.

        None counts charges that name no analyst.

        >>> import dither as dp, tempfile
        >>> with tempfile.TemporaryDirectory() as folder, dp.ledger.open(folder + "/budget.sqlite") as ledger:
        ...     _ = ledger.create("visits", limit=dp.PureDP(1))
        ...     _ = ledger.record_incident(ledger.charge("visits", dp.PureDP(0.25), analyst="ann"))
        ...     dict(ledger.incidents_by_analyst("visits"))
        {'ann': 1}
        """
        with self._store.snapshot():
            account = accounts.known(self._store, checked_name(dataset, "dataset"))
            return charging.incidents_by_analyst(self._store, account)

    def check_open(self, dataset: str, *, max_incidents: int, analyst: str | None = None) -> None:
        """Refuse a dataset that incidents have closed for an analyst, or for everybody; see :meth:`charge`."""
        with self._store.snapshot():
            account = accounts.known(self._store, checked_name(dataset, "dataset"))
            charging.check_open(self._store, account, max_incidents, analyst)

    def reopen(self, dataset: str, *, signed_by: str, reason: str) -> Receipt:
        """Reopen a dataset that incidents have closed; who signed and why stays in the history."""
        name, signed = checked_name(dataset, "dataset"), checked_signature(signed_by, reason)
        with self._store.transaction():
            return charging.reopen(self._store, name, signed)

    def record(self, charge: Charge, answer: bytes) -> Released:
        """Record the answer of a charge, durably, before it is shown to anybody.

        Each key has one answer. If another process recorded one under this key first, that one is returned, and
        ``answer`` must not be shown.
        """
        if not isinstance(charge, Charge) or not isinstance(answer, bytes):
            raise WrongType(
                "answer", "a charge and bytes", type(answer).__name__, "pass what charge() returned, and bytes"
            )
        if charge.answer is not None:
            return Released(decode(charge.answer), charge.answer, charge.key, charge.receipt, True)
        try:
            value = decode(answer)
        except LedgerError:
            raise InvalidArgument(
                "answer", "bytes of JSON", "bytes that are not JSON", "pass what dither.ledger.recorded.encode gives"
            ) from None
        with self._store.transaction():
            charge_entry = chain.select_entry(self._store, charge.receipt)
            rows = self._store.run(schema.ANSWER, {"dataset": charge.dataset, "key": charge.key}).fetchall()
            chain.check_charge(charge_entry, charge)
            if rows:
                recorded = chain.checked(self._store, rows[0][0])
                receipt, answer = recorded.receipt, chain.as_bytes(recorded.answer, recorded.seq)
            else:
                seq = charge.receipt.seq
                receipt = chain.append(
                    self._store, "answer", charge.dataset, {}, key=charge.key, charge=seq, answer=answer
                )
        self._reached("recorded")
        return Released(decode(answer) if rows else value, answer, charge.key, receipt, bool(rows))

    def release(
        self,
        dataset: str,
        cost: Any,
        compute: Callable[..., Any],
        *,
        key: str | None = None,
        request: Any = None,
        analyst: str | None = None,
        people: Any = None,
        max_incidents: int = charging.DEFAULT_MAX_INCIDENTS,
    ) -> Released:
        """Charge for a computation, run it, record its result, and only then return it.

        ``cost`` is a guarantee, or a mechanism, which has one. With a ``key``, repeating the same ``request`` returns
        the recorded result for free. ``analyst`` names the analyst whose account is charged beside the dataset's, and
        ``people`` has the person of each row where people have accounts. The dataset is closed after ``max_incidents``
        incidents.

        ``compute`` is called without arguments, or, where people have accounts, with a mask of the rows of ``people``
        that may be used. What it releases through dither's mechanisms may not cost more than ``cost`` in all: that is
        checked. If it fails, or the process dies, the charge stays, and asking again with the same key pays again;
        nothing was released before it was recorded.
        """
        if not callable(compute):
            raise WrongType("compute", "a function", type(compute).__name__, "pass a function")
        refuse_nested_charging()  # before anything is charged
        paid = self.charge(
            dataset, cost, key=key, request=request, analyst=analyst, people=people, max_incidents=max_incidents
        )
        if paid.answer is None:
            with charging_to(Allowance(paid)):
                result = compute() if paid.kept is None else compute(paid.kept)
            self._reached("computed")
            return self.record(paid, encode(result))
        return self.record(paid, paid.answer)

    def series(
        self,
        dataset: str,
        cost: Any,
        *,
        key: str,
        request: Any,
        analyst: str | None = None,
        max_incidents: int = charging.DEFAULT_MAX_INCIDENTS,
        check: Callable[[], object] = lambda: None,
    ) -> SeriesRecord:
        """Return the record of a series of releases. It is charged once, for its whole horizon, by the first call.

        ``cost`` is a guarantee or what has one, ``key`` the name of the series in its dataset, and ``request`` what
        identifies it: another request under the same key is refused. ``analyst`` pays beside the dataset; the dataset
        is closed after ``max_incidents`` incidents. ``check`` is called before that charge, to refuse what can be
        refused for free. Where people have accounts, each pays at first participation.
        """
        named, asked = checked_name(key, "key"), canonical_request(request)
        paid = charged_series(
            self._store, checked_name(dataset, "dataset"), named, cost, asked, analyst, max_incidents, check
        )
        self._reached("charged")
        return SeriesRecord(self._store, paid, analyst, self._reached)

    def scope(
        self, dataset: str, *, analyst: str | None = None, key: str | None = None
    ) -> AbstractContextManager[LedgerScope]:
        """Charge every release made in the block to a dataset.

        Each is charged before its noise is drawn. With a ``key``, the releases inside are numbered under it, and
        running the same block again returns the same answers, uncharged.
        """
        checked_name(dataset, "dataset")
        return LedgerScope(
            self, dataset, analyst, None if key is None else checked_name(key, "key", MAX_NAME - 20)
        ).opened()

    # -- reading ----------------------------------------------------------------------------------------------------

    @property
    def head(self) -> Receipt:
        """Return the receipt of the last entry. Keep it: opened with it, an older copy of this ledger is refused."""
        with self._store.snapshot():
            seq, digest = chain.last_entry(self._store)
        return Receipt(seq, digest.hex())

    def expect(self, receipt: Receipt) -> None:
        """Refuse this ledger if it lacks the entry that a receipt was given for."""
        chain.check_receipt(self._store, receipt)

    def accounts(self, dataset: str | None = None) -> list[Account]:
        """Return every account, or those of one dataset: what it may spend, has spent and has left.

        The account of each person shows its limit only.
        """
        # the checksum of people's accounts is removed, too: it would tell whether the same people paid twice
        result = [replace(accounts.read(row), checksum=0) for row in self._store.rows(schema.ACCOUNTS)]
        if dataset is None:
            return result
        whole = [account for account in result if account.owner == dataset and account.kind == "dataset"]
        if not whole:
            raise accounts.unknown("dataset")
        return [a for a in result if a.owner == (whole[0].population if a.kind == "people" else dataset)]

    def left(self, dataset: str, analyst: str | None = None) -> Guarantee | None:
        """Return what a dataset, or an analyst in it, may still spend; None if that is nothing, or if there is no
        limit."""
        name, who = checked_name(dataset, "dataset"), "" if analyst is None else checked_name(analyst, "analyst")
        with self._store.snapshot():
            return accounts.known(self._store, name, "dataset" if analyst is None else "analyst", who).left

    def history(self, dataset: str | None = None) -> Iterator[Entry]:
        """Yield the entries of the history, or of one dataset, in order."""
        return chain.entries(self._store, None if dataset is None else checked_name(dataset, "dataset"))

    def newest_answer(self, dataset: str, prefix: str) -> Entry | None:
        """Return the newest answer whose key is ``prefix`` and hexadecimal digits; None if there is none.

        >>> import dither as dp, tempfile
        >>> with tempfile.TemporaryDirectory() as folder, dp.ledger.open(folder + "/budget.sqlite") as ledger:
        ...     _ = ledger.create("visits", limit=dp.PureDP(1))
        ...     _ = ledger.release("visits", dp.PureDP(0.25), lambda: "noisy", key="profile0c")
        ...     ledger.newest_answer("visits", "profile").answer
        b'"noisy"'
        """
        asked = {"dataset": checked_name(dataset, "dataset"), "first": f"{prefix}0", "last": f"{prefix}g"}
        with self._store.snapshot():
            rows = self._store.rows(schema.ANSWERS_BETWEEN, asked)
            numbers = [seq for seq, key in rows if _HEXADECIMAL.fullmatch(key.removeprefix(prefix))]
            return chain.checked(self._store, max(numbers)) if numbers else None

    def export(self, path: str | PathLike[str], dataset: str | None = None) -> None:
        """Write the history to the file ``path``, as JSON (with the accounts) or CSV, by the ending of its name.

        ``dataset`` restricts it to one dataset; None writes all.
        """
        ending = str(path).rpartition(".")[2].lower()
        if ending == "json":
            report.write_json(path, self.history(dataset), self.accounts(dataset))
        elif ending == "csv":
            report.write_csv(path, self.history(dataset))
        else:
            raise InvalidArgument("path", "a name ending in .json or .csv", "an unknown ending", "pass 'history.json'")

    def plot(self, dataset: str, *, analyst: str | None = None, axes: Axes | None = None) -> Axes:
        """Plot the spending of a dataset, or of an analyst in it, over time, and return the axes."""
        kind: Literal["dataset", "analyst"] = "dataset" if analyst is None else "analyst"
        with self._store.snapshot():
            account = accounts.known(self._store, dataset, kind, analyst or "")
        return report.plot(self.history(dataset), account, axes)

    def verify(self, receipt: Receipt | None = None) -> Verified:
        """Check every entry against the one before, and every account against the entries.

        Raises :class:`dither.LedgerError` at the first entry that was changed, inserted or is missing, and for an
        account that is not the sum of its entries. With a receipt, the ledger must also hold its entry.
        """
        if receipt is not None:
            self.expect(receipt)
        with self._store.snapshot():
            return _verify(self._store)

    def _recheck(self) -> None:
        """Verify the ledger because SQLite's journal is missing, without which an interrupted write is not undone."""
        _verify(self._store)

    def close(self) -> None:
        """Close the connection to the database."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise WrongType("ledger", "a place to open it at", "an open ledger", "open it again where it is used")

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: every account with its limit, spending and remaining budget."""
        return accounts.accounts_html(self.accounts())

    def __repr__(self) -> str:
        return f"Ledger({self._store.address.render_as_string(hide_password=True)!r})"

    def _reached(self, step: str) -> None:
        """Do nothing after a step of a release; tests override this to interrupt the release there."""


def open(
    place: str | PathLike[str],
    *,
    secret: bytes | None = None,
    receipt: Receipt | None = None,
    create: bool = True,
    read_only: bool = False,
) -> Ledger:
    """Open a ledger, or create one.

    Parameters
    ----------
    place
        A file (SQLite), or ``postgresql://…``.
    secret
        32 bytes under which keys of people are hashed; by default from a file beside the ledger, or the environment
        (see :mod:`dither.ledger.files`).
    receipt
        The last receipt the caller has kept: a ledger that does not hold it is refused.
    create
        Whether to create a ledger where there is none.
    read_only
        Whether to read only: nothing is created or written, so that a folder without write permission will do.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, open(folder + "/budget.sqlite") as ledger:
    ...     ledger.accounts()
    []
    """
    ledger = Ledger(place, secret=secret, create=create, read_only=read_only)
    try:
        if receipt is not None:
            ledger.expect(receipt)
    except BaseException:
        ledger.close()
        raise
    return ledger
