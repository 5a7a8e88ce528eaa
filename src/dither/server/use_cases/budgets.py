"""Budgets: what is left, limits that are changed by two stewards, incidents."""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

import sqlalchemy as sa

from dither.errors import InvalidArgument
from dither.guarantees import Guarantee
from dither.ledger import Account, Ledger
from dither.ledger.accounts import promised
from dither.ledger.incidents import Closure
from dither.ledger.report import running_totals
from dither.ledger.units import LOSS_UNIT, Limit
from dither.server import schema
from dither.server.context import Context
from dither.server.errors import Conflict, NotFound
from dither.server.principal import Principal
from dither.server.results import (
    ChargeLine,
    DatasetBudget,
    IncidentLine,
    IncidentState,
    LimitChange,
    OwnBudget,
    SpendingPoint,
)
from dither.server.roles import Forbidden, authorize
from dither.server.times import iso
from dither.tables.card.accounts import TableAccounts
from dither.tables.execute.incidents import log_of
from dither.wire import guarantees

_changes = schema.changes
_MOST_POINTS = 1000
_MOST_CHARGES = 200


class Budgets:
    """Accounts and their limits."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def own(self, who: Principal) -> tuple[OwnBudget, ...]:
        """What an analyst may still spend, on each table that is granted."""
        authorize(who, "budget.own")
        context = self._context
        result = []
        for name in context.folder.names():
            if context.is_granted(who.name, name):
                ledger, card = context.folder.ledger(name), context.folder.get(name).card
                words = TableAccounts(card, ledger).left(who.name)
                by_name = {account.name: account for account in ledger.accounts(name) if account.kind == "analyst"}
                account = by_name.get(who.name, by_name.get(""))
                if account is None or account.room is None:
                    result.append(OwnBudget(name, words, "", "", "", None))
                    continue
                share = account.used.loss / account.room.loss if account.room.loss else 1.0
                spent = "nothing" if account.spent is None else str(account.spent)
                result.append(OwnBudget(name, words, str(account.limit), spent, account.left_text, share))
        return tuple(result)

    def dataset(self, who: Principal, table: str) -> DatasetBudget:
        """The accounts of a table, its spending over time, and who asked what at what cost."""
        with self._context.acting(who, "budget.dataset", table):
            ledger = self._context.folder.ledger(table)
            accounts = ledger.accounts(table)
            whole = next(account for account in accounts if account.kind == "dataset")
            entries = list(ledger.history(table))
            points = running_totals(entries, whole)[-_MOST_POINTS:]
            limit = None if whole.room is None else whole.room.loss / LOSS_UNIT
            charges = self._charges(table, entries)
            shown = tuple(SpendingPoint(at.strftime("%Y-%m-%dT%H:%M:%SZ"), total) for at, total in points)
            return DatasetBudget(table, tuple(accounts), whole.unit, limit, shown, charges)

    def _charges(self, table: str, entries: list[Any]) -> tuple[ChargeLine, ...]:
        """The last charges, with who asked: the account that paid, or whom the server has the answer of."""
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
        """Changes of limits, those that are pending first."""
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
        """Propose a limit. Lowering one is done at once; raising one waits for a second steward, unless the server is
        configured for a single steward."""
        context = self._context
        with context.acting(who, "limits.propose", table, logged=True):
            if not isinstance(reason, str) or not 0 < len(reason.strip()) <= 1000 or not reason.isprintable():
                fix = "say why; it stays in the history"
                raise InvalidArgument("reason", "1 to 1000 printable characters", "others", fix)
            if analyst is not None and each_person:
                fix = "change one after the other"
                raise InvalidArgument("limit", "of one analyst, or of each person", "both", fix)
            ledger, change = context.folder.ledger(table), secrets.token_hex(16)
            with context.store.alone() as connection:  # what is lower is judged and done before another change
                account = self._account(ledger, table, analyst, each_person)
                new = Limit.of(limit, account.filter)
                if new.unit != account.unit:
                    expected = f"a limit in {account.unit}, which this account adds up"
                    raise InvalidArgument("limit", expected, f"one in {new.unit}", "convert it")
                row = {
                    "id": change, "dataset": table, "analyst": analyst, "each_person": each_person,
                    "limit": json.dumps(guarantees.to_json(limit)), "before": str(account.limit),
                    "reason": reason.strip(), "proposed_by": who.name, "proposed_at": time.time(), "state": "pending",
                    "receipt": "",
                }  # fmt: skip
                connection.execute(_changes.insert().values(**row))
                raises = account.room is not None and not new.amount.within(account.room)
                if not raises or context.config.single_steward:
                    self._carry_out(connection, change, who.name)
            context.folder.keep_receipt(table)
            return self._get(change)

    def approve(self, who: Principal, change: str) -> LimitChange:
        """Approve what another steward proposed: the ledger records both names."""
        context = self._context
        with context.acting(who, "limits.approve", change, logged=True):
            pending = self._get(change)
            if pending.proposed_by == who.name and not context.config.single_steward:
                raise Forbidden("steward", "a second one", "the one who proposed it", "ask another steward")
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
        """Change the limit in the ledger, once: whoever settles the pending change first does it. The dataset.

        Should the process die after the ledger has it, the change is still pending here; approving it again sets the
        same limit.
        """
        pending = self._settle(connection, change, "done", by)
        for name in (pending.proposed_by, by):  # as it is now: a request may have begun before a role was lost
            _check_steward(connection, name)
        names = pending.proposed_by if pending.proposed_by == by else f"{pending.proposed_by}, {by}"
        limit = guarantees.from_json(json.loads(pending.limit), "limit")
        receipt = self._context.folder.ledger(pending.dataset).change_limit(
            pending.dataset, limit, signed_by=names, reason=pending.reason, analyst=pending.analyst,
            each_person=pending.each_person,
        )  # fmt: skip
        connection.execute(_changes.update().where(_changes.c.id == change).values(receipt=str(receipt)))
        return str(pending.dataset)

    def _settle(self, connection: sa.Connection, change: str, state: str, by: str) -> Any:
        pending = _changes.c.id == change, _changes.c.state == "pending"
        update = _changes.update().where(*pending).values(state=state, approved_by=by)
        if not connection.execute(update).rowcount:
            raise Conflict("change", "one that is pending", "one that was decided", "propose another")
        return connection.execute(sa.select(_changes).where(_changes.c.id == change)).fetchone()

    def _get(self, change: str) -> LimitChange:
        row = self._context.store.one(sa.select(_changes).where(_changes.c.id == change))
        if row is None:
            raise NotFound.of("change")
        return _change(row)

    def _account(self, ledger: Ledger, table: str, analyst: str | None, each_person: bool) -> Account:
        kind = "people" if each_person else "dataset" if analyst is None else "analyst"
        for account in ledger.accounts(table):
            if account.kind == kind and account.name == (analyst or ""):
                return account
        raise NotFound.of("account")

    # -- incidents --------------------------------------------------------------------------------------------------

    def incidents(self, who: Principal) -> tuple[IncidentState, ...]:
        """The incidents of each table."""
        authorize(who, "incidents.list")
        return tuple(self._incidents(name) for name in self._context.folder.names())

    def reopen(self, who: Principal, table: str, *, reason: str) -> IncidentState:
        """Take questions again after incidents."""
        with self._context.acting(who, "incidents.reopen", table, logged=True):
            self._context.folder.ledger(table).reopen(table, signed_by=who.name, reason=reason)
            self._context.folder.keep_receipt(table)
            return self._incidents(table)

    def _incidents(self, table: str) -> IncidentState:
        folder = self._context.folder
        ledger, card = folder.ledger(table), folder.get(table).card
        incidents = ledger.incidents_by_analyst(table)
        closure = Closure.of(incidents, card.max_incidents)
        lines = [
            IncidentLine(entry.seq, entry.at[:19] + "Z", table, entry.charge or 0)
            for entry in ledger.history(table)
            if entry.kind == "incident"
        ]
        log = log_of(card, card.ledger or "").path.name
        closed_for = () if closure.everybody else closure.analysts
        return IncidentState(
            table, incidents.total(), card.max_incidents, closure.is_open, log, tuple(lines[::-1]), closed_for
        )


def void_changes(user: str) -> sa.Executable:
    """The statement that makes void what somebody has proposed who is no steward any more."""
    return _changes.update().where(_changes.c.proposed_by == user, _changes.c.state == "pending").values(state="void")


def _check_steward(connection: sa.Connection, name: str) -> None:
    """Refuse, within a transaction, a change that somebody proposed or approved who is no steward."""
    users = schema.users
    row = connection.execute(sa.select(users).where(users.c.name == name).with_for_update()).fetchone()
    if row is None or not row.active or "steward" not in row.roles.split():
        fix = "have a steward propose it again"
        raise Conflict("change", "two who are stewards now", "somebody who is not", fix)


def _change(row: Any) -> LimitChange:
    limit = str(guarantees.from_json(json.loads(row.limit), "limit"))
    return LimitChange(
        row.id, row.dataset, row.analyst, row.each_person, limit, row.before, row.reason, row.proposed_by,
        iso(row.proposed_at), row.state, row.approved_by, row.receipt,
    )  # fmt: skip


def _words(asked: object) -> str:
    """What a charge was for, in words: the SQL, or that it was built in Python, or a publication."""
    try:
        request = json.loads(asked) if isinstance(asked, str) else None
    except ValueError:
        request = None
    if not isinstance(request, dict):
        return ""
    if isinstance(request.get("question"), str):
        return str(request["question"])
    return "a publication" if "publication" in request else "a question built in Python"
