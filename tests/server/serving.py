"""A folder with a table to serve, and a server process about it."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from dither.server.pool import Clock
from dither.wire.protocol import API

CARD = """name = "{name}"
source = "{name}.csv"
unit = "who"
ledger = "{name}.sqlite"
max_incidents = {incidents}
[budget]
epsilon = {epsilon}
[columns.who]
type = "integer"
[columns.region]
type = "text"
keys = ["north", "south"]
[columns.amount]
type = "integer"
bounds = [0, 100]
"""
COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_REGION = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
PASSWORD = "correct horse battery"


def rows(n: int = 400, without: int | None = None) -> pa.Table:
    people = [i for i in range(n) if i != without]
    region = [("north", "south")[i % 2] for i in people]
    return pa.table({"who": people, "region": region, "amount": [i % 100 for i in people]})


def fill(folder: Path, *, name: str = "visits", epsilon: float = 1000, incidents: int = 3, **data: Any) -> Path:
    """Write a table and its card."""
    pc.write_csv(rows(**data), folder / f"{name}.csv")
    (folder / f"{name}.toml").write_text(CARD.format(name=name, epsilon=epsilon, incidents=incidents))
    return folder


class StillClock(Clock):
    """A clock that stands still until it is told to go on: what is to be seen before a tick is seen before it, however
    long the machine takes."""

    def __init__(self) -> None:
        self.origin, self._now, self._changed = 0.0, time.time(), threading.Condition()
        self.awaited: list[float] = []

    def now(self) -> float:
        return self._now

    def wait(self, until: float, stopping: threading.Event) -> None:
        with self._changed:
            self.awaited.append(until)
            while self._now < until and not stopping.is_set():
                self._changed.wait(0.05)
            self.awaited.remove(until)

    def go_on(self, moment: float) -> None:
        with self._changed:
            self._now = max(self._now, moment)
            self._changed.notify_all()


def until_it_ends(client: Any, response: Any) -> Any:
    """The last response about a question: as long as it waits, it is asked for again."""
    while response.status_code == 202:
        response = client.get(f"{API}/jobs/{response.json()['id']}?wait=60")
    return response


class Running:
    """A server in a process of its own."""

    def __init__(self, folder: Path, *arguments: str, open_files: int | None = None, **environment: str) -> None:
        import os

        command = [sys.executable, "-m", "dither", "serve", str(folder), "--port", "0", *arguments]
        if open_files is not None:
            command = ["sh", "-c", f'ulimit -n {open_files}; exec "$@"', "sh", *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = re.search(r"https?://\S+", line)
        assert match, line
        self.url = match.group()

    def stop(self) -> int:
        self.process.terminate()
        return self.end()

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> int:
        code = self.process.wait(600)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code
