"""Commands whose table is on a server: the address stands where a card does, ``https://host/visits``.

The token is read from the environment variable DITHER_TOKEN: on a command line everybody on the machine could see it.
"""

from __future__ import annotations

import dither
from dither.cli import printing
from dither.cli.printing import echo
from dither.client.connecting import Connection
from dither.errors import InvalidArgument
from dither.tables.card import toml
from dither.tables.table import Table


def open_table(url: str) -> Table:
    """The table that an address names, or the only one of its server."""
    table = dither.connect(url)
    if isinstance(table, Table):
        return table
    assert isinstance(table, Connection)
    with table:
        names = table.tables
    base = url.rstrip("/")
    expected = f"one of {', '.join(names)}" if names else "a table that you may ask"
    fix = f"write {base}/{names[0]}, for example" if names else "ask a steward for a grant"
    raise InvalidArgument("CARD", expected, "a server", fix)


def check(url: str) -> None:
    """Validate the card of a table on a server and list what is missing for the caller."""
    with open_table(url) as table:
        card = table.card
        for name, item in card.private_tables.items():
            echo(f"table {name}: {len(item.columns)} columns, the person is {item.unit or 'each row'}")
        gaps = [gap for gap in toml.gaps(card) if not gap.startswith("no ledger")]
        for gap in gaps:
            echo(f"- {gap}")
        echo(f"{url}: {f'{len(gaps)} gap(s)' if gaps else 'complete'}; left: {table.asker.left_text(table)}")


def budget(url: str) -> None:
    """Print what whoever asks may still spend, on one table or on each."""
    connected = dither.connect(url)
    with connected:
        tables = [connected] if isinstance(connected, Table) else [connected[name] for name in connected.tables]
        rows = [(table.card.name, table.asker.left_text(table)) for table in tables]
    printing.table(("table", "left"), rows)


def refuse(option: str, given: object) -> None:
    """Refuse an option that is for the ledger itself."""
    if given:
        fix = "leave it out; stewards and auditors find it on the server's page"
        raise InvalidArgument(option, "a card or a ledger of your own", "a server", fix)
