"""A card's table with the receipt that the command line keeps for it.

The last receipt lies beside the card (``visits.toml.receipt``), or where the card's ``receipt`` says: best on another
disk. It is read before a question and written after each answer, so that a ledger that went back, or is gone, is
noticed and refused.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import dither
from dither.cli.files import receipt_file
from dither.client.transport import is_url
from dither.errors import InvalidArgument, LedgerError, LedgerRolledBack, LimitsDiffer
from dither.guarantees import ZCDP, Guarantee
from dither.ledger import Receipt, receipts
from dither.release.incidents import log_beside_card
from dither.tables import table as session
from dither.tables.card import toml
from dither.tables.card.model import Card
from dither.tables.table import Table


def read_card(path: str) -> Card:
    """A card, with the files that it leaves to the command line beside it."""
    if is_url(path):
        fix = "run it where the card and its ledger are; query, explain, budget and check take an address"
        raise InvalidArgument("CARD", "the card of a table, a .toml file", "the address of a table", fix)
    card = toml.read(path)
    if card.receipt is None:
        card = replace(card, receipt=str(receipt_file(path, card).absolute()))
    return replace(card, incident_log=log_beside_card(card.incident_log, card.name, card.ledger, path))


def open_table(path: str, *, card: Card | None = None, receipt: str | None = None, read_only: bool = False) -> Table:
    """Open the table of a card, which may be read already; its ledger holds the receipts that were kept and given."""
    card = read_card(path) if card is None else card
    if not read_only:
        check_receipt(path, card)
    given = None if receipt is None else Receipt.read(receipt)
    kept = receipts.read(receipt_file(path, card))
    try:
        table = session.open(card, receipt=given or kept, read_only=read_only)
    except LedgerError as error:
        raise explained(error, path, card, kept) from error
    except LimitsDiffer as error:
        raise _with_command(error, path, card) from error
    if given is not None and kept is not None:
        try:
            table.ledger.expect(kept)
        except LedgerError as error:
            table.close()
            raise explained(error, path, card, kept) from error
    return table


def open_remote(url: str) -> Table:
    """Open the table that an address names, or the only one of its server.

    The token is read from the environment variable DITHER_TOKEN: everybody on the machine can see a command line.
    """
    table = dither.connect(url)
    if isinstance(table, Table):
        return table
    with table:
        names = table.tables
    expected = f"one of {', '.join(names)}" if names else "a table that you may ask"
    fix = f"write {url.rstrip('/')}/{names[0]}, for example" if names else "ask a steward for a grant"
    raise InvalidArgument("CARD", expected, "a server", fix)


def refuse_on_server(option: str, given: object) -> None:
    """Refuse an option that needs the ledger itself."""
    if given:
        fix = "leave it out; stewards and auditors find it on the server's page"
        raise InvalidArgument(option, "a card or a ledger of your own", "a server", fix)


def check_receipt(path: str, card: Card) -> None:
    """Refuse to write to a ledger whose receipt could not be kept: an older copy of it would then pass for new."""
    kept = receipt_file(path, card)
    if _cannot_start(card.ledger):
        return  # the ledger itself will be refused, and says why
    if kept.absolute() == Path(f"{path}.receipt").absolute() and not os.access(kept.absolute().parent, os.W_OK):
        raise LedgerError(
            "receipt",
            "a folder that can be written, beside the card",
            "one that cannot",
            f'name a file in the card: receipt = "/other/place/{card.name}.receipt"',
        )
    receipts.check_writable(kept)


def _cannot_start(ledger: str | None) -> bool:
    """Whether a ledger is missing, and cannot be made."""
    if ledger is None or "://" in ledger or os.path.lexists(ledger):
        return False
    return not os.access(Path(ledger).absolute().parent, os.W_OK)


def explained(error: LedgerError, path: str, card: Card, kept: Receipt | None) -> LedgerError:
    """The same error; where a receipt speaks against the ledger, with the place of the receipt."""
    if kept is None or not isinstance(error, LedgerRolledBack):
        return error
    fix = f"{error.fix}. The receipt is kept in {receipt_file(path, card)}"
    return LedgerRolledBack(error.subject, error.expected, error.got, fix)


def _with_command(error: LimitsDiffer, path: str, card: Card) -> LimitsDiffer:
    """The same error, with the command that changes the limits of the ledger."""
    whose = " --each-person" if card.each_person is not None else ""
    stated = card.each_person if card.each_person is not None else card.budget
    limit = "LIMIT" if stated is None else _option(stated)
    command = f"dither budget {path} --set {limit}{whose} --signed-by NAME --reason WHY"
    fix = f"state that, or change the ledger's: {command}"
    return LimitsDiffer(error.subject, error.expected, error.got, fix)


def _option(limit: Guarantee) -> str:
    """A limit as --set takes it.

    >>> from dither.guarantees import ApproxDP
    >>> _option(ApproxDP(2, 1e-6)), _option(ZCDP(0.5))
    ('epsilon=2,delta=1e-06', 'rho=0.5')
    """
    names = ("rho",) if isinstance(limit, ZCDP) else ("epsilon", "delta")
    return ",".join(f"{name}={float(number):.15g}" for name, number in zip(names, limit.exact, strict=False))
