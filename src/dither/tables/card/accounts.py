"""The accounts of a table: opened in the ledger at the first time, and in agreement with the card ever after."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dither.errors import BudgetExceeded, DatasetClosed, InvalidArgument, LedgerError, LedgerMissing, LedgerRolledBack
from dither.guarantees import ApproxDP, Guarantee, stored
from dither.ledger import Account, Ledger, Receipt
from dither.ledger import open as open_at
from dither.ledger.accounts import (
    BY_CARD,
    Amount,
    Limit,
    Price,
    Remaining,
    charge_each,
    cost,
    guarantee_of,
    opened,
    promised,
)
from dither.ledger.chain import read_receipt
from dither.ledger.charging import check_person_limit
from dither.present.notes import Note
from dither.tables.card.model import Card


def open_ledger(card: Card, place: str, receipt: Receipt | str | None = None) -> tuple[Ledger, bool]:
    """Open the card's ledger and its accounts, and return the ledger and whether the accounts are new.

    With a receipt (given, or in the file that the card names) a ledger that does not hold it is refused, and none is
    made: somebody has asked before.
    """
    expected = _expected(card, receipt)
    ledger = _open(place, expected, read_only=False)
    assert ledger is not None
    try:
        return ledger, _ensure(ledger, card)
    except BaseException:
        ledger.close()
        raise


def read_ledger(card: Card, place: str, receipt: Receipt | str | None = None) -> Ledger | None:
    """Return the card's ledger, opened read-only; None where the card alone says what is left: there is no ledger, no
    account for the card in it, or only one that was never charged and whose limit the card has changed."""
    ledger = _open(place, _expected(card, receipt), read_only=True)
    if ledger is None:
        return None
    try:
        if any((account.owner, account.kind) == (card.name, "dataset") for account in ledger.accounts()):
            if _limits_to_restate(ledger, card):  # the card counts until something is charged
                ledger.close()
                return None
            _ensure(ledger, card)
            return ledger
    except BaseException:
        ledger.close()
        raise
    ledger.close()
    return None


def _expected(card: Card, receipt: Receipt | str | None) -> Receipt | None:
    """Return the receipt that the ledger must contain: the one given, else the one in the card's receipt file; None
    where there is neither."""
    if receipt is None:
        return None if card.receipt is None else read_receipt(card.receipt)
    return receipt if isinstance(receipt, Receipt) else Receipt.read(receipt)


def _open(place: str, expected: Receipt | None, read_only: bool) -> Ledger | None:
    """Return the opened ledger; None where there is none and no receipt is expected. Refuse a ledger that does not
    contain the expected receipt, because it was replaced or lost."""
    try:
        return open_at(place, receipt=expected, create=expected is None and not read_only, read_only=read_only)
    except LedgerMissing:
        pass
    if expected is None:
        return None
    raise LedgerRolledBack(
        "ledger", "the ledger that the receipt was given for", "none", "restore it, from a copy that is as new"
    )


def _ensure(ledger: Ledger, card: Card) -> bool:
    """Open the card's accounts in the ledger if they are missing, and return whether they were; refuse a card that
    contradicts them.

    Until something is charged, a limit that has changed in the card is changed in the ledger.
    """
    for each_person, limit in _limits_to_restate(ledger, card).items():
        ledger.restate_limit(card.name, limit, each_person=each_person)
    return ledger.ensure(
        card.name,
        limit=card.budget,
        each_analyst=card.each_analyst,
        each_person=card.each_person,
        population=card.population,
        filter=card.filter,
    )


def _limits_to_restate(ledger: Ledger, card: Card) -> dict[bool, Guarantee]:
    """Return the limits that the card states differently from the ledger, True for that of each person, False for the
    dataset's. Empty once anything was charged to datasets of these people."""
    accounts = ledger.accounts()
    here = next((a for a in accounts if (a.owner, a.kind) == (card.name, "dataset")), None)
    if here is None:
        return {}
    sharing = [a for a in accounts if a.kind == "dataset" and here.population and a.population == here.population]
    if any(account.spent is not None for account in (here, *sharing)):
        return {}
    if any(entry.kind == "limit" and entry.body.get("signed_by") != BY_CARD for entry in ledger.history(card.name)):
        return {}  # what a steward signed is not undone by a card that says something else
    result: dict[bool, Guarantee] = {}
    people = next((a for a in accounts if here.population and (a.owner, a.kind) == (here.population, "people")), None)
    for each_person, account, stated in ((False, here, card.budget), (True, people, card.each_person)):
        if account is None or account.limit is None or stated is None or stated == account.limit:
            continue
        if account.filter == card.filter and Limit.of(stated, card.filter).unit == account.unit:
            result[each_person] = stated
    return result


def pays_delta(card: Card) -> bool:
    """Return whether every account of the card can pay for a delta: limits in epsilon or rho alone cannot."""
    limits = (card.budget, card.each_analyst, card.each_person)
    return all(isinstance(limit, ApproxDP) for limit in limits if limit is not None)


class TableAccounts:
    """The accounts of one table in its ledger: what is left, what would be refused, what an answer says about it.

    A table that is opened to read only may have no ledger yet; it then has what its card says. ``temporary`` says that
    the ledger ends with the table, ``opened_now``, that the accounts were opened together with the table.
    """

    def __init__(self, card: Card, ledger: Ledger | None, *, temporary: bool = False, opened_now: bool = False) -> None:
        """Keep the card and its ledger, None for a table that is opened read-only before there is one; the other
        parameters are described by the class."""
        self.card = card
        self.temporary = temporary
        self.opened_now = opened_now
        self._ledger = ledger
        self._is_closed = False
        self._unanswered = opened_now
        self._charged = False

    @property
    def ledger(self) -> Ledger:
        """The ledger with the accounts; refused where a table opened to read only has none yet."""
        ledger = self._ledger_if_any()
        if ledger is None:
            raise LedgerError("ledger", "a ledger for this table", "none yet", "open the table without read_only")
        return ledger

    def _ledger_if_any(self) -> Ledger | None:
        """Return the ledger; None where there is none yet. Refuse after the table was closed."""
        if self._is_closed:
            fix = "this table is closed; open it again with dither.open"
            raise InvalidArgument("table", "one that is open", "one that was closed", fix)
        return self._ledger

    @property
    def started_ledger(self) -> bool:
        """Whether the ledger was created together with these accounts, so that it holds no other dataset."""
        return self.opened_now and not self._holds_others()

    @property
    def of_people(self) -> bool:
        """Whether the budget is counted for each person."""
        return any(account.kind == "people" for account in self.ledger.accounts(self.card.name))

    def close(self) -> None:
        """Close the ledger; nothing can be charged or asked about the accounts afterwards."""
        self._is_closed = True
        if self._ledger is not None:
            self._ledger.close()

    def _holds_others(self) -> bool:
        """Return whether other datasets have accounts in the ledger, which then existed before this table."""
        return any(a.kind == "dataset" and a.owner != self.card.name for a in self.ledger.accounts())

    @property
    def never_charged(self) -> bool:
        """Whether nothing was ever charged to this table in this ledger, so that no answer can be recorded."""
        if not self._charged:  # what was charged once stays so
            accounts = self.ledger.accounts(self.card.name)
            self._charged = all(account.spent is not None for account in accounts if account.kind == "dataset")
        return not self._charged

    def first_notes(self, analyst: str | None) -> list[Note]:
        """Return a note if this is the first answer from this ledger about the table; later answers have none.

        A ledger that receipts prove to be older is refused. Otherwise only an analyst who had answers before can tell
        that it was replaced, so the note is for analysts with accounts. Without one, the caller has the card, and has
        just started the ledger.
        """
        if not self._unanswered and not self.never_charged:
            return []
        if self.temporary:
            return [Note("temporary_ledger")]
        return [Note("first_answer")] if analyst is not None else []

    def note_answer(self) -> None:
        """Remember that an answer was recorded, so that the next one is not the first."""
        self._unanswered = False

    def remaining(self, analyst: str | None = None) -> Remaining:
        """Return what may still be spent: of the dataset or, where people pay, the limit of each; and what the analyst
        has left.

        Where there is no ledger yet, what the card says.
        """
        card, ledger = self.card, self._ledger_if_any()
        if ledger is None and card.budget is None and card.each_person is None:
            return Remaining("no budget", has_ledger=False)
        accounts = {account.kind: account for account in self._charged_accounts(analyst)}
        dataset, people, of_analyst = accounts["dataset"], accounts.get("people"), accounts.get("analyst")
        whole = dataset.left_or_why if dataset.room is not None or people is None else people.left_or_why
        own = None if of_analyst is None else of_analyst.left_or_why
        return Remaining(whole, own, None if people is None else people.limit, ledger is not None)

    def refusal(self, guarantee: Guarantee, analyst: str | None = None) -> str:
        """Return why a question at this cost would be refused now; an empty text where it would be charged."""
        try:
            self.check_budget(guarantee, analyst)
        except (BudgetExceeded, DatasetClosed) as error:
            return str(error)
        return ""

    def check_budget(self, guarantee: Guarantee, analyst: str | None = None) -> None:
        """Refuse a question at this cost where an account has not enough left, or the dataset is closed."""
        price = Price.of(guarantee)
        charged = self._charged_accounts(analyst)
        paying = [account for account in charged if account.kind != "people"]
        ledger = self._ledger_if_any()
        if ledger is not None:
            ledger.check_open(self.card.name, max_incidents=self.card.max_incidents, analyst=analyst)
        charge_each(paying, price)
        for people in charged[len(paying) :]:
            check_person_limit(people, price)

    def _charged_accounts(self, analyst: str | None) -> list[Account]:
        """Return the accounts that a question is charged to; where there is no ledger yet, those that the card would
        open.

        An analyst without an account of their own has what every analyst has.
        """
        card, ledger = self.card, self._ledger_if_any()
        if ledger is None:
            everybody = [opened((card.name, "dataset", ""), card.budget, card.filter)]
            if card.each_analyst is not None:
                everybody.append(opened((card.name, "analyst", ""), card.each_analyst, card.filter))
            if card.each_person is not None:
                everybody.append(opened((card.population or card.name, "people", ""), card.each_person, card.filter))
        else:
            everybody = ledger.accounts(card.name)
        by_name = {(account.kind, account.name): account for account in everybody}
        of_analyst = None if analyst is None else by_name.get(("analyst", analyst), by_name.get(("analyst", "")))
        charged = (by_name["dataset", ""], of_analyst, by_name.get(("people", "")))
        return [account for account in charged if account is not None]

    def check_people(self, guarantee: Guarantee, request: Mapping[str, Any], key: str) -> None:
        """Refuse a question that no person can pay for, as far as the public record proves it: its answer would be
        noise alone.

        ``guarantee`` is the question's cost, ``request`` the record of what it asks, and an answer recorded under
        ``key`` is free. A question is charged to each person with rows that it is about who can pay. So each of its
        people was charged, if possible, for every earlier question about the same table that had no WHERE, GROUP BY and
        joins, or the same ones. Let S be the sum of those of them that cost at most c, the cost of this one. If S + c
        exceeds a person's limit, nobody can pay: who paid all of them has spent S, and who could not pay one of them
        has less than c left. Only questions under the same version of the card count, and none with joins, since a
        public table may have changed.
        """
        people = next((a for a in self._charged_accounts(None) if a.kind == "people"), None)
        if people is None or people.room is None:
            return
        this = cost(guarantee, people.unit)
        total, recorded = this, set()
        for entry in self.ledger.history(self.card.name):
            if entry.kind == "answer" and entry.key is not None:
                recorded.add(entry.key)
            elif entry.kind == "charge" and "people" in entry.body and _asked_the_same_people(entry.body, request):
                paid = promised(entry.body["cost"])
                amount = Amount(0, 0) if paid is None else cost(paid, people.unit)
                total += amount if amount.within(this) else Amount(0, 0)
        if total.within(people.room) or key in recorded:
            return
        raise BudgetExceeded(
            "cost",
            f"people with {guarantee} left of their {people.limit}",
            "nobody, after the questions about everybody or the same people so far",
            "ask for less, or raise their budget; when the rows have changed, state a new version in the card",
        )

    def people_notes(self, guarantee: Guarantee, paid: bool = False) -> tuple[Note, ...]:
        """Return the note on people whose own budget does not suffice for a question; none where people have no
        budgets.

        ``guarantee`` is the question's cost, and ``paid`` says that it has been charged. Who has too little left is
        private. The sum of the costs of all questions is public, and no person has spent more. The note's ``state`` is
        ``everybody`` if this sum shows that all people can pay, ``nobody`` if the sum of earlier costs exceeds a
        person's limit, ``not_all`` between these, and empty where the sum is unknown.
        """
        if self.card.each_person is None:
            return ()
        about: dict[str, Any] = {"cost": stored(guarantee)}
        unknown = (Note("people_without_budget", {**about, "state": ""}),)
        ledger = self._ledger_if_any()
        if ledger is None:
            return unknown
        accounts = ledger.accounts()
        here = next(a for a in accounts if (a.owner, a.kind) == (self.card.name, "dataset"))
        people = next(a for a in accounts if (a.owner, a.kind) == (here.population, "people"))
        datasets = [a for a in accounts if a.kind == "dataset" and a.population == people.owner]
        if people.room is None or any(a.unit != people.unit for a in datasets):
            return unknown
        this = cost(guarantee, people.unit)
        after = sum((a.used for a in datasets), Amount(0, 0) if paid else this)
        before = after - this
        if after.within(people.room):
            return (Note("people_without_budget", {**about, "state": "everybody"}),)
        about["spent"] = _stored_or_none(guarantee_of(before, people.unit))
        if not before.within(people.room):
            about |= {"state": "nobody", "limit": _stored_or_none(people.limit)}
        else:
            about |= {"state": "not_all", "left": _stored_or_none(guarantee_of(people.room - before, people.unit))}
        return (Note("people_without_budget", about),)


def _stored_or_none(guarantee: Guarantee | None) -> dict[str, Any] | None:
    """Return a guarantee as the ledger stores it; None for None."""
    return None if guarantee is None else stored(guarantee)


_NOT_ABOUT_WHOM = frozenset({"is", "aggregates", "shape", "post", "epsilon", "delta", "max_groups", "max_rows"})
"""The parts of a question that leave open whom it is about."""


def _asked_the_same_people(charge: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Return whether an earlier charge concerned everybody whom a request is about: it was under the same card, about
    the same table, and had no WHERE and GROUP BY or the same ones."""
    asked = json.loads(charge["asked"]) if charge.get("asked") else None
    if not isinstance(asked, dict) or asked.get("card") != request.get("card"):
        return False
    if not isinstance(asked.get("query"), dict):
        return False
    earlier, this = (
        {name: part for name, part in query.items() if name not in _NOT_ABOUT_WHOM}
        for query in (asked["query"], request["query"])
    )
    text = json.dumps(earlier)
    if '"joins":' in text or '"public membership"' in text:
        return False
    same_table = earlier.pop("source", None) == this.pop("source", None)
    return same_table and earlier in ({}, this)
