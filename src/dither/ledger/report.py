"""Export of a ledger: its history as JSON or CSV, and a plot of what an account has spent.

Nothing in it depends on who the people are, how many there are, or what they have left.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from dither.errors import InvalidArgument, LedgerError
from dither.extras import Axes
from dither.ledger.accounts import LOSS_UNIT, Account
from dither.ledger.chain import Entry
from dither.ledger.recorded import canonical
from dither.present.chart import spending
from dither.present.drawing import draw

COLUMNS = ("seq", "at", "kind", "dataset", "key", "answers", "account", "loss", "delta", "details", "hash")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def line(entry: Entry) -> dict[str, Any]:
    """Return an entry as a JSON object for an export, without the recorded answer and the seals of people's accounts.

    Its ``answers`` is the number of the charge that the entry answers, or whose incident it is; else None.
    """
    return {
        "seq": entry.seq,
        "at": entry.at,
        "kind": entry.kind,
        "dataset": entry.dataset,
        "key": entry.key,
        "answers": entry.charge,
        "body": {name: value for name, value in entry.body.items() if name != "people"},
        "hash": entry.hash.hex(),
    }


def write_json(path: str | os.PathLike[str], entries: Iterable[Entry], accounts: Iterable[Account]) -> None:
    """Write ``accounts`` and the ``entries`` of the history to the JSON file ``path``, with one entry per line."""
    with _whole(path) as out:
        out.write('{"accounts":[')
        out.write(",\n".join(canonical(_account(account)) for account in accounts))
        out.write('],\n"history":[')
        for i, entry in enumerate(entries):
            out.write(",\n" * bool(i) + canonical(line(entry)))
        out.write("]}\n")


def write_csv(path: str | os.PathLike[str], entries: Iterable[Entry]) -> None:
    """Write the ``entries`` of the history to the CSV file ``path``, with a row for each account that an entry charges.

    A cell that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    with _whole(path) as out:
        table = csv.writer(out)
        table.writerow(COLUMNS)
        for entry in entries:
            fields = line(entry)
            body = fields.pop("body")
            first = [fields[name] for name in COLUMNS[:6]]
            for *identity, loss, delta in body.pop("charged", [["", "", "", "", ""]]):
                account = "/".join(str(part) for part in identity if part)
                row = [*first, account, loss, delta, canonical(body), fields["hash"]]
                table.writerow([safe(cell) for cell in row])


def safe(cell: object) -> object:
    """Return a cell of a CSV file such that no spreadsheet evaluates it as a formula.

    >>> safe("=1+1"), safe("visits"), safe(-3)
    ("'=1+1", 'visits', -3)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _account(account: Account) -> dict[str, Any]:
    """Return an account as a JSON object for an export, with amounts in units; of people's accounts only the limit."""
    return {
        "owner": account.owner,
        "kind": account.kind,
        "name": account.name,
        "unit": account.unit,
        "limit": json.loads(account.stated),
        "spent": None if account.kind == "people" else [account.used.loss, account.used.delta],
        "room": None if account.room is None else [account.room.loss, account.room.delta],
    }


@contextmanager
def _whole(path: str | os.PathLike[str]) -> Iterator[IO[str]]:
    """Open a temporary file beside ``path`` for writing, and rename it to ``path`` when the block has succeeded."""
    target = Path(path)
    try:
        handle, fresh = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    except OSError:
        raise LedgerError(
            "path", "a file in a folder that can be written", "a folder that cannot", "choose another folder"
        ) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass", newline="") as out:
            yield out
        os.replace(fresh, target)
    except BaseException:
        os.unlink(fresh)
        raise


def running_totals(entries: Iterable[Entry], account: Account) -> list[tuple[datetime, float]]:
    """Return the spending of an account over time as pairs of a time and the total loss (epsilon or rho): 0 when it was
    opened, then the total after each charge.

    Entries are ordered by their numbers. Clocks may go backwards, so each time is at least that of the pair before.
    """
    points: list[tuple[datetime, float]] = []
    total = 0
    for entry in entries:
        opened = entry.body["accounts"] if entry.kind == "open" else []
        charged = entry.body.get("charged", []) if entry.kind == "charge" else []
        amounts = [0 for new in opened if tuple(new["account"]) == account.identity]
        amounts += [loss for *identity, loss, _ in charged if tuple(identity) == account.identity]
        for amount in amounts:
            total += amount
            time = datetime.fromisoformat(entry.at)
            points.append((max(time, points[-1][0]) if points else time, total / LOSS_UNIT))
    return points


def plot(entries: Iterable[Entry], account: Account, axes: Axes | None = None) -> Axes:
    """Draw spending over time as steps, with a marker at each charge, and the limit; returns the axes."""
    if account.kind == "people":
        raise InvalidArgument(
            "account", "a dataset or an analyst", "people, whose spending is private", "plot the dataset"
        )
    chart = spending(
        running_totals(entries, account),
        None if account.room is None else account.room.loss / LOSS_UNIT,
        title=str(account),
        unit={"epsilon": "ε", "rho": "ρ"}[account.unit],
        limit_name=f"limit: {account.limit}",
    )
    return draw(chart, axes)
