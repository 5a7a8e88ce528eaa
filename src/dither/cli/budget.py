"""``dither budget``: limits, what is spent, what is left, the history."""

from __future__ import annotations

from pathlib import Path

import dither
from dither.cli import plots, terminal
from dither.cli.files import LEDGER_ENDINGS, Outputs, of_card
from dither.cli.terminal import echo
from dither.errors import InvalidArgument, message
from dither.ledger import Account, Entry, Ledger, Receipt
from dither.ledger.accounts import promised


def run(
    place: str,
    dataset: str | None,
    history: bool,
    verify: bool,
    receipt: str | None,
    export: str | None,
    plot: str | None,
    force: bool = False,
) -> None:
    """Print the accounts, and whatever else was asked for."""
    plots.check(plot)
    place, dataset, protected = _where(place, dataset)
    if plot is not None and dataset is None:
        raise InvalidArgument(message("--plot", "a dataset to plot", "none", "pass --dataset NAME as well"))
    kept = None if receipt is None else Receipt.read(receipt)
    with Outputs(force=force, protected=protected) as outputs:
        outputs.add("--export", export, ("json", "csv"))
        outputs.add("--plot", plot, plots.ENDINGS)
        with dither.ledger.open(place, receipt=kept, create=False) as ledger:
            accounts = ledger.accounts(dataset)
            _accounts(accounts)
            if history:
                _history(ledger, dataset, accounts)
            if verify:
                found = ledger.verify(kept)
                people = "" if found.people else "; people's accounts not, without their secret"
                echo(f"verified: {found.entries} entries, every account{people}")
            outputs.write("--export", lambda room: ledger.export(room, dataset))
            if export is not None:
                echo(f"history written to {export}")
            if plot is not None and dataset is not None:
                named = dataset
                outputs.write("--plot", lambda room: plots.save(room, lambda axes: ledger.plot(named, axes=axes)))
                echo(f"plot written to {plot}")
            echo(f"receipt {ledger.head}")


def _where(place: str, dataset: str | None) -> tuple[str, str | None, set[Path]]:
    """The ledger, the dataset in it, and the files that belong to it."""
    if place.endswith(".toml"):
        from dither.tables import cards

        card = cards.read(place)
        if card.ledger is None:
            raise InvalidArgument(message("ledger", "where the budget is kept", "nowhere", "state it in the card"))
        return card.ledger, dataset or card.name, of_card(place, card)
    files = set() if "://" in place else {Path(place + ending) for ending in LEDGER_ENDINGS}
    return place, dataset, files


def _accounts(found: list[Account]) -> None:
    rows = []
    for account in found:
        share = account.share
        private = account.kind == "people"
        rows.append(
            (
                "every analyst" if account.kind == "analyst" and not account.name else str(account),
                "none" if account.limit is None else str(account.limit),
                "private" if private else str(account.spent or "nothing"),
                "private" if private else "no limit" if share is None else str(account.left or "nothing"),
                "" if share is None or private else f"{share:.1%}",
            )
        )
    terminal.table(("account", "limit", "spent", "left", "used"), rows)


def _history(ledger: Ledger, dataset: str | None, accounts: list[Account]) -> None:
    """Every entry, a line each, printed as it is read."""
    names = max((len(account.owner) for account in accounts), default=0)
    rows = (
        (entry.seq, entry.at[:19].replace("T", " "), entry.kind, entry.dataset, _details(entry), entry.key or "")
        for entry in ledger.history(dataset)
    )
    header = ("entry", "time (UTC)", "what", "dataset", "details", "key")
    terminal.stream(header, rows, (6, 19, 8, max(7, names), 30, 0))


def _details(entry: Entry) -> str:
    body = entry.body
    if entry.kind == "charge":
        return str(promised(body["cost"]))
    if entry.kind == "answer":
        return f"answers entry {entry.charge}"
    if "signed_by" in body:
        return f"signed by {body['signed_by']}: {body['reason']}"
    if entry.kind == "open":
        return ", ".join(" ".join(part for part in told["account"] if part) for told in body["accounts"])
    return "" if entry.charge is None else f"of entry {entry.charge}"
