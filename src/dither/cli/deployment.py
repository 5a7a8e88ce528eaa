"""``dither report --deployment CARD``: a record of what is promised and how it is kept, to hand on."""

from __future__ import annotations

from pathlib import Path

import dither
from dither.cli.files import Outputs, of_card, receipt_file
from dither.cli.opening import explained, read_card
from dither.cli.printing import echo
from dither.errors import LedgerError
from dither.ledger import Ledger, receipts
from dither.present.pages.deployment import Deployment, deployment
from dither.tables.card.model import Card


def run(path: str, output: str | None, force: bool) -> None:
    """Print the record as Markdown, or write it as .md, .html or .json."""
    card = read_card(path)
    with Outputs(force=force, protected=of_card(path, card)) as outputs:
        outputs.add("--output", output, ("md", "html", "json"))
        record = _record(path, card)
        if output is None:
            echo(record.markdown())
            return
        text = {"html": record.html, "json": record.to_json}.get(output.rpartition(".")[2].lower(), record.markdown)()
        outputs.write("--output", lambda room: Path(room).write_text(text, encoding="utf-8"))
        echo(f"record written to {output}; {record.unanswered} questions are left to the steward")


def _record(path: str, card: Card) -> Deployment:
    ledger = _ledger(path, card)
    if ledger is None:
        return deployment(card, None, dither.__version__)
    with ledger:
        return deployment(card, ledger, dither.__version__)


def _ledger(path: str, card: Card) -> Ledger | None:
    """The ledger of a card, if it holds the receipt that was kept; None where nothing was asked yet."""
    kept = receipts.read(receipt_file(path, card))
    if card.ledger is None or ("://" not in card.ledger and not Path(card.ledger).exists() and kept is None):
        return None
    try:
        ledger = dither.ledger.open(card.ledger, create=False, read_only=True)
        try:
            if kept is not None:
                ledger.expect(kept)
        except BaseException:
            ledger.close()
            raise
    except LedgerError as error:
        raise explained(error, path, card, kept) from error
    return ledger
