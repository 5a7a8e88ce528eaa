"""A real server in a process of its own, to which tests add tables, and people who may ask them.

``python served.py FOLDER`` adds the people, prints their tokens and the address, and serves until it is told to stop.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dither.client.transport import Token, Transport, parse

PEOPLE = {"ann": ("analyst",), "bob": ("analyst",), "sam": ("steward",)}


@dataclass
class Served:
    """The address of the server, the tokens of its people by name, and its folder."""

    url: str
    tokens: dict[str, str]
    folder: Path
    process: subprocess.Popen[str]
    count: int = field(default=0)

    def request(self, who: str, method: str, path: str, document: object = None) -> Any:
        """A request of somebody."""
        transport = Transport(parse(self.url)[0], Token(self.tokens[who]))
        try:
            return transport.request(method, f"/api/v1{path}", document).document
        finally:
            transport.close()

    def add(self, card: str, **sources: Any) -> str:
        """Add a table for ann to ask: its card, in which NAME is its name, and its rows by the names of files."""
        self.count += 1
        name = f"t{self.count}"
        for file, rows in sources.items():
            pq.write_table(rows, self.folder / f"{name}.{file}.parquet")
        (self.folder / f"{name}.toml").write_text(card.replace("NAME", name), encoding="utf-8")
        self.request("sam", "GET", "/tables")
        self.request("sam", "POST", "/grants", {"user": "ann", "table": name})
        return name


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """A server on an empty folder."""
    command = [sys.executable, str(Path(__file__)), str(folder)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kept)
    assert process.stdout is not None
    try:
        tokens = json.loads(process.stdout.readline())
        line = process.stdout.readline()
        url = next(word for word in line.split() if word.startswith("http://"))
        yield Served(f"{url}/", tokens, folder, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.stdout.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main(folder: str) -> None:
    """Add the people, print their tokens, and serve."""
    from dither.server.config import Config
    from dither.server.roles import Principal
    from dither.server.run import serve
    from dither.server.service import Service

    limits = {"questions_per_minute": 100_000, "requests_per_minute": 1_000_000}
    config = Config(folder=folder, port=0, tick=0.02, workers=1, **limits)
    service = Service.start(config)
    tokens = {}
    for name, roles in PEOPLE.items():
        service.users.add(Principal("setup", frozenset({"steward"})), name, roles=roles, password="correct horse")
        scopes = ["explain", "ask", "read"] if "analyst" in roles else ["explain", "steward", "audit"]
        who = Principal(name, frozenset(roles))
        tokens[name] = service.accounts.create_token(who, "tests", scopes=scopes).secret
    service.stop()
    print(json.dumps(tokens), flush=True)
    serve(config, lambda line: print(line, flush=True))


if __name__ == "__main__":
    main(sys.argv[1])
