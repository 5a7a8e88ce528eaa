"""``dither budget``: limits, what is spent, what is left, the history."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

import dither
from dither.cli import plots
from dither.errors import InvalidArgument, message
from dither.ledger import Account, Entry, Ledger, Receipt


def run(
    place: str,
    dataset: str | None,
    history: bool,
    verify: bool,
    receipt: str | None,
    export: str | None,
    plot: str | None,
) -> None:
    """Print the accounts, and whatever else was asked for."""
    plots.check(plot)
    console = Console(soft_wrap=True, highlight=False, markup=False)
    if place.endswith(".toml"):
        from dither.tables import cards

        card = cards.read(place)
        place, dataset = card.ledger or place, dataset or card.name
    kept = None if receipt is None else Receipt.read(receipt)
    with dither.ledger.open(place, receipt=kept, create=False) as ledger:
        console.print(_accounts(ledger.accounts(dataset)))
        if history:
            console.print(_history(ledger, dataset))
        if verify:
            found = ledger.verify(kept)
            people = "" if found.people else "; people's accounts not, without their secret"
            console.print(f"verified: {found.entries} entries, every account{people}")
        if export is not None:
            ledger.export(export, dataset)
            console.print(f"history written to {export}")
        if plot is not None:
            _plot(ledger, dataset, plot)
            console.print(f"plot written to {plot}")
        console.print(f"receipt {ledger.head}")


def _accounts(found: list[Account]) -> Table:
    table = Table("account", "limit", "spent", "left", "")
    for account in found:
        share = account.share
        private = account.kind == "people"
        table.add_row(
            "every analyst" if account.kind == "analyst" and not account.name else str(account),
            "none" if account.limit is None else str(account.limit),
            "private" if private else str(account.spent or "nothing"),
            "private" if private else "no limit" if share is None else str(account.left or "nothing"),
            "" if share is None else f"{share:.1%}",
        )
    return table


def _history(ledger: Ledger, dataset: str | None) -> Table:
    table = Table("entry", "time", "what", "dataset", "key", "details")
    for entry in ledger.history(dataset):
        table.add_row(str(entry.seq), entry.at[:19], entry.kind, entry.dataset, entry.key or "", _details(entry))
    return table


def _details(entry: Entry) -> str:
    body = entry.body
    if entry.kind == "charge":
        cost = body["cost"]
        return f"{cost['kind']}({', '.join(cost['numbers'])})"
    if entry.kind == "answer":
        return f"of entry {entry.charge}"
    if entry.kind == "limit":
        return f"signed by {body['signed_by']}: {body['reason']}"
    return ", ".join(" ".join(part for part in told["account"] if part) for told in body["accounts"])


def _plot(ledger: Ledger, dataset: str | None, path: str) -> None:
    if dataset is None:
        raise InvalidArgument(message("--plot", "a dataset to plot", "none", "pass --dataset NAME as well"))
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    ledger.plot(dataset, axes=figure.subplots())
    figure.savefig(path)
