"""Serve the demo's made-up shop, with a steward, an analyst, an auditor and a reader to sign in as.

Everything is in one folder of its own and made anew each time: the table, the ledger, the people and their passwords.

    python scripts/serve_demo.py [--folder out/serve-demo] [--port 8765] [--rows 200000]
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq

from dither.cli import demo
from dither.errors import DitherError
from dither.server.config import Config
from dither.server.roles import Principal
from dither.server.run import serve
from dither.server.service import Service

MARKER = ".dither-serve-demo"
PEOPLE = {
    "sam": ("steward", "sees budgets and who asked what; grants tables; proposes limits"),
    "sue": ("steward", "the second steward: a higher limit needs both"),
    "ann": ("analyst", "explains and asks questions"),
    "aud": ("auditor", "verifies the ledger; reads only"),
    "rea": ("reader", "sees published answers"),
}
PLAN = """\
card = "visits.toml"
max_rows = 20
tables = [[], ["region"], ["month"], ["region", "month"]]

[budget]
epsilon = 1
delta = 1e-7

[columns.month]
expression = "MONTH(day)"
"""
SQL = "SELECT region, COUNT(*) AS visits FROM visits GROUP BY region"


def clear(folder: Path) -> None:
    """A new folder, or one that this script has made; anything else is left alone."""
    if folder.exists() and not (folder / MARKER).exists():
        raise SystemExit(f"{folder} was not made by this script: choose another with --folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARKER).write_text("Made by make serve-demo, which deletes this folder and makes it anew.\n")


def fill(folder: Path, rows: int) -> None:
    """The made-up table, its card, and a plan to publish; there is more to spend than in the command-line demo."""
    pq.write_table(demo.make_visits(rows), folder / "visits.parquet")
    (folder / "visits.toml").write_text(demo.CARD.replace("epsilon = 2\n", "epsilon = 20\n"), encoding="utf-8")
    (folder / "by_month.toml").write_text(PLAN, encoding="utf-8")


def add_people(service: Service) -> tuple[dict[str, str], str]:
    """The people with new passwords, and a token of the analyst for Python and the command line."""
    setup = Principal("setup", frozenset({"steward"}))
    passwords = {name: "-".join(secrets.token_hex(2) for _ in range(3)) for name in PEOPLE}
    for name, (role, _) in PEOPLE.items():
        service.users.add(setup, name, roles=[role], password=passwords[name])
    service.users.grant(setup, "ann", "visits")
    ann = Principal("ann", frozenset({"analyst"}))
    token = service.accounts.create_token(ann, "demo", scopes=["explain", "ask", "read"], days=7).secret
    return passwords, token


def main(arguments: list[str] | None = None) -> None:
    """Make the folder, add the people, say how to sign in, and serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Serve the demo's table.")
    parser.add_argument("--folder", default="out/serve-demo", help="a folder of its own, made anew each time")
    parser.add_argument("--port", type=int, default=8765, help="the port to listen on")
    parser.add_argument("--rows", type=int, default=200_000, help="how many visits to make up")
    wanted = parser.parse_args(arguments)
    folder = Path(wanted.folder)
    clear(folder)
    fill(folder, wanted.rows)
    config = Config(folder=str(folder), port=wanted.port)
    service = Service.start(config)
    try:
        passwords, token = add_people(service)
    finally:
        service.stop()

    def say(line: str) -> None:
        print(line, flush=True)
        if "http://" not in line:
            return
        url = next(word for word in line.split() if word.startswith("http://"))
        print(f"\nSign in at {url}/ as\n")
        for name, (role, about) in PEOPLE.items():
            print(f"  {name}   {passwords[name]}   {role}: {about}")
        print(
            f"\nFrom Python:\n\n  export DITHER_TOKEN={token}\n"
            f'  python -c \'import dither as dp; t = dp.connect("{url}/"); '
            'print(t.group_by("region").agg(n=dp.count()).release(epsilon=0.1))\'\n'
            f"\nFrom the shell, with the same token:\n\n  dither query {url}/visits '{SQL}' --epsilon 0.1\n"
            "\nNobody in the table exists. Ctrl-C stops the server; the next start makes everything anew.",
            flush=True,
        )

    serve(config, say)


if __name__ == "__main__":
    try:
        main()
    except DitherError as error:
        sys.exit(f"dither: {error}")
