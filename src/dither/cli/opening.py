"""A card's table with the receipt that the command line keeps for it.

The last receipt lies beside the card (``visits.toml.receipt``), or where the card's ``receipt`` says: best on another
disk. It is read before a question and written after each answer, so that a ledger that went back, or is gone, is
noticed and refused.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from dither.cli.files import receipt_file
from dither.errors import LedgerError
from dither.ledger import Receipt, receipts
from dither.tables import cards, session
from dither.tables.card import Card
from dither.tables.session import Table


def read_card(path: str) -> Card:
    """A card, with the files that it leaves to the command line beside it."""
    card = cards.read(path)
    beside = receipt_file(path, card)
    if card.receipt is None and os.access(beside.absolute().parent, os.W_OK):
        card = replace(card, receipt=str(beside.absolute()))
    if "://" in (card.ledger or "") and card.incident_log is None:
        card = replace(card, incident_log=str(Path(path).absolute().parent / f"{card.name}.incidents.log"))
    return card


def open_table(path: str, *, receipt: str | None = None, read_only: bool = False) -> Table:
    """The table of a card; its ledger holds the receipt that was kept, and the one that is given."""
    card = read_card(path)
    given = None if receipt is None else Receipt.read(receipt)
    kept = receipts.read(receipt_file(path, card))
    try:
        table = session.open(card, receipt=given or kept, read_only=read_only)
    except LedgerError as error:
        raise explained(error, path, card, kept) from error
    if given is not None and kept is not None:
        try:
            table.ledger.expect(kept)
        except LedgerError as error:
            table.close()
            raise explained(error, path, card, kept) from error
    return table


def explained(error: LedgerError, path: str, card: Card, kept: Receipt | None) -> LedgerError:
    """The same error; where a receipt speaks against the ledger, with the place of the receipt."""
    if kept is None or "receipt" not in str(error):
        return error
    return LedgerError(f"{error} The receipt is kept in {receipt_file(path, card)}.")


__all__ = ["explained", "open_table", "read_card"]
