"""Tables: what is public about them, their accounts and limits, incidents, and the history of their ledgers."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa

from dither.errors import InvalidArgument, LedgerError
from dither.guarantees import Guarantee
from dither.ledger import Account, Ledger, Receipt
from dither.ledger.accounts import LOSS_UNIT, Limit, Remaining, promised
from dither.ledger.charging import Closure
from dither.ledger.report import line, running_totals
from dither.release.pipeline import incident_log_path
from dither.server import schema
from dither.server.cards import ServedCard
from dither.server.context import Context
from dither.server.errors import Conflict, NotFound, printable
from dither.server.limits import ConcurrencyLimit
from dither.server.roles import Forbidden, Principal, authorize, may
from dither.server.store import iso
from dither.tables import codec
from dither.tables.card import toml
from dither.tables.card.accounts import TableAccounts
from dither.tables.card.model import Card
from dither.tables.profile import recorded_profile
from dither.wire.results import card_from_json, card_to_json


@dataclass(frozen=True)
class TableSummary:
    """A table in a list. ``granted`` says whether the principal may ask it, ``open`` whether it takes questions."""

    name: str
    tables: tuple[str, ...]
    columns: int
    granted: bool
    left: Remaining
    open: bool


@dataclass(frozen=True)
class TableCard:
    """The public part of a card: no sources, ledgers or paths. ``gaps`` are for stewards and auditors, else empty.

    ``own_limit`` and ``own_left`` are those of the account that pays for the principal's questions: the analyst's own,
    else the table's. ``whole_limit`` is the limit of the table. A limit is None where there is none, and ``own_left``
    also where nothing is left. They come from the ledger, where limits may have changed since the card was written.
    """

    card: Card
    left: Remaining
    granted: bool
    open: bool
    gaps: tuple[str, ...] = ()
    own_limit: Guarantee | None = None
    own_left: Guarantee | None = None
    whole_limit: Guarantee | None = None


@dataclass(frozen=True)
class CardProblem:
    """A card or plan file that is not in force as it stands, and why.

    If stewards may sign it off, ``signed_by`` lists those who did and ``needed`` how many must (else 0); it then
    takes effect at the next start of the server.
    """

    file: str
    problem: str
    signed_by: tuple[str, ...] = ()
    needed: int = 0


@dataclass(frozen=True)
class OwnBudget:
    """An analyst's remaining budget on a table, in words. ``limit``, ``spent`` and ``left`` are those of the analyst's
    own account, empty without one; ``used`` is the spent fraction of its limit, None without one."""

    table: str
    words: str
    limit: str
    spent: str
    left: str
    used: float | None


@dataclass(frozen=True)
class SpendingPoint:
    """The total spending of a dataset after a charge, in ε or ρ."""

    at: str
    total: float


@dataclass(frozen=True)
class ChargeLine:
    """A charge: who asked which question at what cost, and whether it was answered or ended in an incident."""

    seq: int
    at: str
    analyst: str
    question: str
    cost: str
    answered: bool
    incident: bool


@dataclass(frozen=True)
class DatasetBudget:
    """The accounts of a table (of people, only the limit), its spending over time, and its charges."""

    table: str
    accounts: tuple[Account, ...]
    unit: str
    limit: float | None
    points: tuple[SpendingPoint, ...]
    charges: tuple[ChargeLine, ...]


@dataclass(frozen=True)
class LimitChange:
    """A proposed or completed change of a limit: of a dataset, of one ``analyst``, or of each person.

    A pending change becomes void when its proposer ceases to be a steward.
    """

    id: str
    table: str
    analyst: str | None
    each_person: bool
    limit: str
    before: str
    reason: str
    proposed_by: str
    proposed_at: str
    state: Literal["pending", "done", "withdrawn", "void"]
    approved_by: str | None = None
    receipt: str = ""


@dataclass(frozen=True)
class IncidentLine:
    """An incident: an error while rows were read. Its cause is in the steward's log file only."""

    seq: int
    at: str
    table: str
    charge: int


@dataclass(frozen=True)
class IncidentState:
    """The incidents of a table since it was last reopened. ``open`` says whether it takes questions of everybody,
    ``closed_for`` names the analysts it refuses if not everybody is refused."""

    table: str
    count: int
    max: int
    open: bool
    log: str
    incidents: tuple[IncidentLine, ...]
    closed_for: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChainEntry:
    """An entry of the history of a ledger; of an answer, only that there is one."""

    seq: int
    at: str
    kind: str
    dataset: str
    key: str | None
    answers: int | None
    body: Mapping[str, Any]
    hash: str


@dataclass(frozen=True)
class Verification:
    """The result of verifying a ledger. ``problem`` is empty where everything is as it was written."""

    table: str
    ok: bool
    entries: int = 0
    receipt: str = ""
    problem: str = ""


@dataclass(frozen=True)
class EventLine:
    """A line of the event log: who did what, when, to what, and whether it was refused. Never an answer or a secret."""

    id: int
    at: str
    user: str
    action: str
    subject: str
    outcome: Literal["done", "refused"]
    detail: str = ""


_MOST_OF_ONE, _MOST_READ = 4, 8
"""How many cards one user, and all users together, may read at a time. Each holds a thread, and other requests need
threads, too."""


class Tables:
    """Public information about the tables of the served folder."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._reading = ConcurrencyLimit("cards", most_of_one=_MOST_OF_ONE, most_of_all=_MOST_READ)

    def list(self, who: Principal) -> tuple[TableSummary, ...]:
        """Return the tables that a principal may see: the granted ones for an analyst, all for stewards and
        auditors."""
        context = self._context
        with context.acting(who, "tables.list"):
            result = []
            for name in context.folder.names():
                granted = context.is_granted(who.name, name)
                if not granted and not _knows_all(who):
                    continue
                card = context.folder.get(name).card
                columns = sum(len(item.columns) for item in card.private_tables.values())
                left, is_open = self._state(card, who)
                result.append(TableSummary(name, tuple(card.private_tables), columns, granted, left, is_open))
            return tuple(result)

    def card(self, who: Principal, table: str) -> TableCard:
        """Return the public part of a table's card (columns, types, bounds, keys, limits), and the remaining budget."""
        context = self._context
        with context.acting(who, "tables.card", table):
            granted = context.is_granted(who.name, table)
            if not granted and not _knows_all(who):
                raise NotFound.of("table")
            served = context.folder.get(table)
            with self._reading.taken(who.name):  # one with public tables waits for the process of explanations
                public = self._public(served)
            if context.jobs.is_measuring(table):
                public = replace(public, profile=None)
            else:
                public = replace(public, profile=recorded_profile(served.card, context.folder.ledger(table)))
            left, is_open = self._state(served.card, who)
            gaps = tuple(toml.gaps(served.card)) if may(who, "tables.gaps") else ()
            return TableCard(public, left, granted, is_open, gaps, *self._limits(table, who))

    def problems(self, who: Principal) -> tuple[CardProblem, ...]:
        """Return the cards and plans that are not in force as their files stand, and why."""
        folder = self._context.folder
        with self._context.acting(who, "tables.gaps"):
            return tuple(
                CardProblem(item.file, item.problem)
                if item.pin is None
                else CardProblem(item.file, item.problem, folder.pins.signers(item.pin), folder.pins.needed)
                for item in folder.refusals()
            )

    def sign_off(self, who: Principal, file: str, *, reason: str) -> CardProblem:
        """Sign off the changed card in ``file``, which would give its rows a fresh budget, and return its new state.

        It takes effect when enough stewards have signed it and the server is started again.
        """
        context = self._context
        with context.acting(who, "tables.sign", file, logged=True):
            why = printable(reason, "reason", 1000)
            pin = next((item.pin for item in context.folder.refusals() if item.file == file), None)
            if pin is None:
                raise NotFound.of("card")
            context.folder.pins.sign(pin, who.name, why)
            return next(item for item in self.problems(who) if item.file == file)

    def _public(self, served: ServedCard) -> Card:
        """Return the public part of a card, with the values of public tables as their keys."""
        if not served.card.public:
            return card_from_json(card_to_json(served.card))
        task = {"do": "card", "card": served.document}
        return card_from_json(self._context.run_in_explaining_worker(task, "card", served.name)["card"])

    def _limits(self, table: str, who: Principal) -> tuple[Guarantee | None, Guarantee | None, Guarantee | None]:
        """Return limit and remaining budget of the account that pays for the questions of ``who``, and the limit of the
        table.

        The account is the analyst's own, the template for analysts (whose name is empty) or the table's, the first that
        exists. Each of the three is None where there is no limit.
        """
        accounts = self._context.folder.ledger(table).accounts(table)
        whole = _table_account(accounts)
        account = _analyst_account(accounts, who.name) or whole
        return account.limit, account.left, whole.limit

    def _state(self, card: Card, who: Principal) -> tuple[Remaining, bool]:
        """Return the remaining budget of a card's table, and whether it takes questions of ``who``.

        Stewards and auditors, who see all incidents, get whether it takes questions of everybody.
        """
        ledger = self._context.folder.ledger(card.name)
        left = TableAccounts(card, ledger).remaining(who.name)
        closure = Closure.of(ledger.incidents_by_analyst(card.name), card.max_incidents)
        if may(who, "questions.ask") and not _knows_all(who):  # others see whether it is open for all
            return left, not closure.everybody and who.name not in closure.analysts
        return left, closure.is_open


def _table_account(accounts: Sequence[Account]) -> Account:
    """Return the account of the whole table, which every table has."""
    return next(account for account in accounts if account.kind == "dataset")


def _analyst_account(accounts: Sequence[Account], name: str) -> Account | None:
    """Return the account that pays for an analyst's questions: their own, else the template from which it will be
    opened (the one without a name); None if analysts have no accounts."""
    by_name = {account.name: account for account in accounts if account.kind == "analyst"}
    return by_name.get(name, by_name.get(""))


def _knows_all(who: Principal) -> bool:
    """Return whether a principal may know of all tables, as stewards and auditors may."""
    return bool({"steward", "auditor"} & who.roles)


_changes = schema.changes

_MOST_POINTS = 1000

_MOST_CHARGES = 200


class Budgets:
    """Accounts, limits and incidents of the served tables."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def own(self, who: Principal) -> tuple[OwnBudget, ...]:
        """Return an analyst's remaining budget on each granted table."""
        authorize(who, "budget.own")
        context = self._context
        result = []
        for name in context.folder.names():
            if context.is_granted(who.name, name):
                ledger, card = context.folder.ledger(name), context.folder.get(name).card
                words = str(TableAccounts(card, ledger).remaining(who.name))
                account = _analyst_account(ledger.accounts(name), who.name)
                if account is None or account.room is None:
                    result.append(OwnBudget(name, words, "", "", "", None))
                    continue
                share = account.used.loss / account.room.loss if account.room.loss else 1.0
                spent = "nothing" if account.spent is None else str(account.spent)
                result.append(OwnBudget(name, words, str(account.limit), spent, account.left_text, share))
        return tuple(result)

    def dataset(self, who: Principal, table: str) -> DatasetBudget:
        """Return the accounts of a table, its spending over time, and its latest charges."""
        with self._context.acting(who, "budget.dataset", table):
            ledger = self._context.folder.ledger(table)
            accounts = ledger.accounts(table)
            whole = _table_account(accounts)
            entries = list(ledger.history(table))
            points = running_totals(entries, whole)[-_MOST_POINTS:]
            limit = None if whole.room is None else whole.room.loss / LOSS_UNIT
            charges = self._charges(table, entries)
            shown = tuple(SpendingPoint(at.strftime("%Y-%m-%dT%H:%M:%SZ"), total) for at, total in points)
            return DatasetBudget(table, tuple(accounts), whole.unit, limit, shown, charges)

    def _charges(self, table: str, entries: list[Any]) -> tuple[ChargeLine, ...]:
        """Return the latest charges to ``table``, with the analyst who paid or, where analysts have no accounts, who
        got the answer.

        The ledger records each charged account as (dataset, kind, name, loss, delta).
        """
        answered = {entry.charge: entry.seq for entry in entries if entry.kind == "answer"}
        incidents = {entry.charge for entry in entries if entry.kind == "incident"}
        last = [entry for entry in entries if entry.kind == "charge"][-_MOST_CHARGES:]
        answers = schema.answers
        rows = self._context.store.rows(sa.select(answers.c.receipt, answers.c.user).where(answers.c.dataset == table))
        by_answer = {row.receipt.partition(":")[0]: row.user for row in rows}
        result = []
        for entry in reversed(last):
            body = entry.body
            paid_by = [place[2] for place in body["charged"] if place[1] == "analyst"]
            analyst = paid_by[0] if paid_by else by_answer.get(str(answered.get(entry.seq)), "")
            if not analyst and entry.key and "/" in entry.key:
                analyst = entry.key.partition("/")[0]
            cost = promised(body["cost"])
            result.append(
                ChargeLine(
                    entry.seq, entry.at[:19] + "Z", analyst, _words(body.get("asked")), str(cost),
                    entry.seq in answered, entry.seq in incidents,
                )
            )  # fmt: skip
        return tuple(result)

    # -- limits -----------------------------------------------------------------------------------------------------

    def changes(self, who: Principal) -> tuple[LimitChange, ...]:
        """Return all changes of limits, pending ones first."""
        authorize(who, "limits.list")
        pending_first = sa.case((_changes.c.state == "pending", 0), else_=1)
        rows = self._context.store.rows(sa.select(_changes).order_by(pending_first, _changes.c.proposed_at.desc()))
        return tuple(_change(row) for row in rows)

    def propose(
        self,
        who: Principal,
        table: str,
        limit: Guarantee,
        *,
        reason: str,
        analyst: str | None = None,
        each_person: bool = False,
    ) -> LimitChange:
        """Propose a new ``limit`` of a table, of one ``analyst`` in it or, with ``each_person``, of each person.

        A lower one takes effect at once; a higher one waits for a second steward, unless the server is configured for a
        single one.
        """
        context = self._context
        with context.acting(who, "limits.propose", table, logged=True):
            reason = printable(reason, "reason", 1000)  # it stays in the history
            if analyst is not None and each_person:
                fix = "change one after the other"
                raise InvalidArgument("limit", "of one analyst, or of each person", "both", fix)
            ledger, change = context.folder.ledger(table), secrets.token_hex(16)
            with context.store.alone() as connection:  # no other change may come between this comparison and its result
                account = self._account(ledger, table, analyst, each_person)
                new = Limit.of(limit, account.filter)
                if new.unit != account.unit:
                    expected = f"a limit in {account.unit}, which this account adds up"
                    raise InvalidArgument("limit", expected, f"one in {new.unit}", "convert it")
                row = {
                    "id": change, "dataset": table, "analyst": analyst, "each_person": each_person,
                    "limit": json.dumps(codec.to_json(limit)), "before": str(account.limit),
                    "reason": reason, "proposed_by": who.name, "proposed_at": time.time(), "state": "pending",
                    "receipt": "",
                }  # fmt: skip
                connection.execute(_changes.insert().values(**row))
                raises = account.room is not None and not new.amount.within(account.room)
                if not raises or context.config.single_steward:
                    self._carry_out(connection, change, who.name)
            context.folder.keep_receipt(table)
            return self._get(change)

    def approve(self, who: Principal, change: str) -> LimitChange:
        """Approve a change that another steward proposed; the ledger records both names."""
        context = self._context
        with context.acting(who, "limits.approve", change, logged=True):
            pending = self._get(change)
            if pending.proposed_by == who.name and not context.config.single_steward:
                raise Forbidden("A second steward has to approve this change.")
            with context.store.alone() as connection:
                dataset = self._carry_out(connection, change, who.name)
            context.folder.keep_receipt(dataset)
            return self._get(change)

    def withdraw(self, who: Principal, change: str) -> LimitChange:
        """Withdraw a pending change."""
        with self._context.acting(who, "limits.propose", change, logged=True):
            self._get(change)
            with self._context.store.alone() as connection:
                self._settle(connection, change, "withdrawn", who.name)
            return self._get(change)

    def _carry_out(self, connection: sa.Connection, change: str, by: str) -> str:
        """Settle a pending change, apply it to the ledger, and return its dataset.

        If the process dies after the ledger has it, the change is still pending here, and approving it again sets
        the same limit.
        """
        pending = self._settle(connection, change, "done", by)
        for name in (pending.proposed_by, by):  # as it is now: a request may have begun before a role was lost
            _check_steward(connection, name)
        names = pending.proposed_by if pending.proposed_by == by else f"{pending.proposed_by}, {by}"
        limit = codec.from_json(json.loads(pending.limit), Guarantee, "limit")
        receipt = self._context.folder.ledger(pending.dataset).change_limit(
            pending.dataset, limit, signed_by=names, reason=pending.reason, analyst=pending.analyst,
            each_person=pending.each_person,
        )  # fmt: skip
        connection.execute(_changes.update().where(_changes.c.id == change).values(receipt=str(receipt)))
        return str(pending.dataset)

    def _settle(self, connection: sa.Connection, change: str, state: str, by: str) -> Any:
        """Give a pending change its final state and return its row; refuse one that was decided before."""
        pending = _changes.c.id == change, _changes.c.state == "pending"
        update = _changes.update().where(*pending).values(state=state, approved_by=by)
        if not connection.execute(update).rowcount:
            raise Conflict("This change was already decided. Propose a new one.")
        return connection.execute(sa.select(_changes).where(_changes.c.id == change)).fetchone()

    def _get(self, change: str) -> LimitChange:
        """Return a change of a limit; raise NotFound for an unknown one."""
        row = self._context.store.one(sa.select(_changes).where(_changes.c.id == change))
        if row is None:
            raise NotFound.of("change")
        return _change(row)

    def _account(self, ledger: Ledger, table: str, analyst: str | None, each_person: bool) -> Account:
        """Return the account whose limit is to be changed: the table's, an analyst's, or that of each person."""
        kind = "people" if each_person else "dataset" if analyst is None else "analyst"
        for account in ledger.accounts(table):
            if account.kind == kind and account.name == (analyst or ""):
                return account
        raise NotFound.of("account")

    # -- incidents --------------------------------------------------------------------------------------------------

    def incidents(self, who: Principal) -> tuple[IncidentState, ...]:
        """Return the incidents of each table."""
        authorize(who, "incidents.list")
        return tuple(self._incidents(name) for name in self._context.folder.names())

    def reopen(self, who: Principal, table: str, *, reason: str) -> IncidentState:
        """Reopen a table that incidents have closed."""
        with self._context.acting(who, "incidents.reopen", table, logged=True):
            self._context.folder.ledger(table).reopen(table, signed_by=who.name, reason=reason)
            self._context.folder.keep_receipt(table)
            return self._incidents(table)

    def _incidents(self, table: str) -> IncidentState:
        """Return the incidents of a table, and for whom they close it."""
        folder = self._context.folder
        ledger, card = folder.ledger(table), folder.get(table).card
        incidents = ledger.incidents_by_analyst(table)
        closure = Closure.of(incidents, card.max_incidents)
        lines = [
            IncidentLine(entry.seq, entry.at[:19] + "Z", table, entry.charge or 0)
            for entry in ledger.history(table)
            if entry.kind == "incident"
        ]
        log = Path(incident_log_path(card.incident_log, card.name, card.ledger or "")).name
        closed_for = () if closure.everybody else closure.analysts
        return IncidentState(
            table, incidents.total(), card.max_incidents, closure.is_open, log, tuple(lines[::-1]), closed_for
        )


def void_changes(user: str) -> sa.Executable:
    """Return the statement that voids the pending changes of a user who is no longer a steward."""
    return _changes.update().where(_changes.c.proposed_by == user, _changes.c.state == "pending").values(state="void")


def _check_steward(connection: sa.Connection, name: str) -> None:
    """Refuse a change whose proposer or approver, the user ``name``, is no longer a steward.

    The user's row is locked, so that this holds until the transaction of ``connection`` ends.
    """
    users = schema.users
    row = connection.execute(sa.select(users).where(users.c.name == name).with_for_update()).fetchone()
    if row is None or not row.active or "steward" not in row.roles.split():
        raise Conflict("The proposer or approver is no longer a steward. Have a steward propose the change again.")


def _change(row: Any) -> LimitChange:
    """Build a change of a limit from its database row."""
    limit = str(codec.from_json(json.loads(row.limit), Guarantee, "limit"))
    return LimitChange(
        row.id, row.dataset, row.analyst, row.each_person, limit, row.before, row.reason, row.proposed_by,
        iso(row.proposed_at), row.state, row.approved_by, row.receipt,
    )  # fmt: skip


def _words(asked: object) -> str:
    """Return what a charge was for: the SQL, or that it was a question built in Python or a publication; empty if
    unknown."""
    try:
        request = json.loads(asked) if isinstance(asked, str) else None
    except ValueError:
        request = None
    if not isinstance(request, dict):
        return ""
    if isinstance(request.get("question"), str):
        return str(request["question"])
    return "a publication" if "publication" in request else "a question built in Python"


_MOST = 1000


class Chain:
    """Evidence from ledgers and the event log, for stewards and auditors."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def entries(self, who: Principal, table: str, *, after: int = 0, most: int = 100) -> tuple[ChainEntry, ...]:
        """Return up to ``most`` entries of a table's history with numbers above ``after``, in order, for the user
        ``who``.
        """
        with self._context.acting(who, "chain.read", table):
            history = self._context.folder.ledger(table).history(table)
            later = (entry for entry in history if entry.seq > after)
            return tuple(ChainEntry(**line(entry)) for entry in islice(later, max(1, min(most, _MOST))))

    def verify(self, who: Principal, table: str, *, receipt: str | None = None) -> Verification:
        """Verify the history and every account of a table's ledger, and that it holds the entry of a receipt."""
        with self._context.acting(who, "chain.verify", table, logged=True):
            kept = None if not receipt else Receipt.read(receipt)
            ledger = self._context.folder.ledger(table)
            try:
                result = ledger.verify(kept)
            except LedgerError as error:
                return Verification(table, False, problem=str(error))
            return Verification(table, True, result.entries, str(result.head))

    def receipt(self, who: Principal, table: str) -> str:
        """Return the last receipt of a table's ledger, to be kept elsewhere."""
        with self._context.acting(who, "chain.verify", table, logged=True):
            return str(self._context.folder.ledger(table).head)

    def events(
        self, who: Principal, *, after: int = 0, most: int = 100, user: str | None = None
    ) -> tuple[EventLine, ...]:
        """Return up to ``most`` lines of the event log, the newest first, for the auditor or steward ``who``.

        ``after`` is the id of the last line on the previous page, 0 for the first page; ``user`` restricts them to one
        user.
        """
        authorize(who, "events.read")
        events = schema.events
        conditions = [events.c.id < after] if after else []
        conditions += [] if user is None else [events.c.user == user]
        statement = sa.select(events).where(*conditions).order_by(events.c.id.desc()).limit(max(1, min(most, _MOST)))
        return tuple(
            EventLine(row.id, iso(row.at), row.user, row.action, row.subject, row.outcome, row.detail)
            for row in self._context.store.rows(statement)
        )
