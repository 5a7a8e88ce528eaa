"""The ledger of a card: its accounts are opened at the first time, and agree with the card ever after."""

from __future__ import annotations

from pathlib import Path

from dither.errors import InvalidArgument, message
from dither.guarantees import ApproxDP
from dither.ledger import Account, Ledger, Receipt, receipts
from dither.ledger import open as open_at
from dither.tables.card import Card

__all__ = ["left", "open_ledger", "pays_delta", "read_ledger"]


def open_ledger(card: Card, place: str, receipt: Receipt | str | None = None) -> tuple[Ledger, bool]:
    """The card's ledger, and whether its accounts were opened just now.

    With a receipt (given, or in the file that the card names) a ledger that does not hold it is refused, and none is
    made: somebody has asked before.
    """
    expected = _expected(card, receipt)
    ledger = open_at(place, receipt=expected, create=expected is None)
    try:
        return ledger, _start(ledger, card)
    except BaseException:
        ledger.close()
        raise


def read_ledger(card: Card, place: str, receipt: Receipt | str | None = None) -> Ledger | None:
    """The card's ledger, to read only; None where there is none yet, or no account for the card in it."""
    expected = _expected(card, receipt)
    if expected is None and "://" not in place and not Path(place).exists():
        return None
    ledger = open_at(place, receipt=expected, create=False, read_only=True)
    try:
        if _agrees(ledger.accounts(), card):
            return ledger
    except BaseException:
        ledger.close()
        raise
    ledger.close()
    return None


def _expected(card: Card, receipt: Receipt | str | None) -> Receipt | None:
    if receipt is None:
        return None if card.receipt is None else receipts.read(card.receipt)
    return receipt if isinstance(receipt, Receipt) else Receipt.read(receipt)


def _start(ledger: Ledger, card: Card) -> bool:
    """Open the card's accounts if there are none; whether they were opened."""
    if _agrees(ledger.accounts(), card):
        return False
    try:
        ledger.create(
            card.name,
            limit=card.budget,
            each_analyst=card.each_analyst,
            each_person=card.each_person,
            population=card.population,
            filter=card.filter,
        )
    except InvalidArgument:
        if _agrees(ledger.accounts(), card):  # another process was faster
            return False
        raise
    return True


def _agrees(accounts: list[Account], card: Card) -> bool:
    """Whether the card's dataset has accounts; refused if they are not what the card says, in anything both state."""
    population = None if card.each_person is None else card.population or card.name
    known = {(account.owner, account.kind): account for account in accounts if not account.name}
    whole, people = known.get((card.name, "dataset")), known.get((population or "", "people"))
    stated: dict[str, tuple[object, object]] = {}
    if whole is not None:
        analyst = known.get((card.name, "analyst"))
        stated = {
            "budget": (whole.limit, card.budget),
            "budget.filter": (whole.filter, card.filter),
            "budget.population": (whole.population or None, population),
            "budget.each_analyst": (None if analyst is None else analyst.limit, card.each_analyst),
        }
        if analyst is not None:
            stated["budget.filter of each analyst"] = (analyst.filter, card.filter)
    if people is not None:
        stated["budget of each person"] = (people.limit, card.each_person)
        stated["budget.filter of each person"] = (people.filter, card.filter)
    for name, (held, said) in stated.items():
        if held != said:
            raise InvalidArgument(
                message(
                    name,
                    f"{'none' if held is None else held}, as the ledger holds",
                    f"{'none' if said is None else said} in the card",
                    "put the card back; a limit is changed in the ledger with change_limit, signed and with a reason",
                )
            )
    return whole is not None


def pays_delta(card: Card) -> bool:
    """Whether every account of the card could pay for a delta: none could under a limit in epsilon or rho alone."""
    limits = (card.budget, card.each_analyst, card.each_person)
    return all(isinstance(limit, ApproxDP) for limit in limits if limit is not None)


def left(ledger: Ledger | None, card: Card) -> str:
    """What may still be spent, in words: of people, who may each have another amount left, only their limit.

    Where there is no ledger yet, what the card says.
    """
    if ledger is None:
        if card.budget is None and card.each_person is None:
            return "nothing: the card states no budget"
        whole, each_person = None if card.budget is None else f"{card.budget} (no ledger yet)", card.each_person
    else:
        found = {account.kind: account for account in ledger.accounts(card.name) if not account.name}
        dataset, people = found["dataset"], found.get("people")
        whole = None if dataset.room is None else str(dataset.left or "nothing")
        each_person = None if people is None else people.limit
    if whole is not None:
        return whole
    return f"private; each person has {each_person} for life" if each_person is not None else "no limit"
