"""What a server does under load: ``python -m benchmarks.server [load|kills|warm|recorded]``; all of it by default.
``--quick`` runs the smallest, to see that it does.

=========  ============================================================================================================
load       200 analysts at once, 5,000 questions, a budget for exactly 1,000: how many are paid, answered and refused
recorded   how long a recorded answer takes, at 20, 50, 100 and 200 requests a second from 200 analysts
warm       a question on the demo's table, over HTTP, against the library plus the tick
kills      SIGKILL of everything at 100 random moments under load: spent against released, and replays byte for byte
=========  ============================================================================================================
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from contextlib import suppress
from pathlib import Path

import httpx2 as httpx
import pyarrow as pa
import pyarrow.csv as pc

import dither as dp
from dither.server.config import Config
from dither.server.roles import SCOPES, Principal
from dither.server.service import Service

EPSILON = 0.5
COUNT = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
CARD = """name = "visits"
source = "visits.csv"
unit = "who"
ledger = "visits.sqlite"
max_incidents = 1000
[budget]
epsilon = {epsilon}
[columns.who]
type = "integer"
[columns.region]
type = "text"
keys = ["north", "south"]
"""
FAST = {
    "DITHER_QUESTIONS_PER_MINUTE": "1000000",
    "DITHER_REQUESTS_PER_MINUTE": "10000000",
    "DITHER_MAX_WAITING": "5000",
}


def make_folder(folder: Path, questions: int) -> None:
    """A table, with a budget for exactly so many questions."""
    pc.write_csv(pa.table({"who": range(2000), "region": ["north", "south"] * 1000}), folder / "visits.csv")
    (folder / "visits.toml").write_text(CARD.format(epsilon=questions * EPSILON))


def make_people(folder: Path, analysts: int, database: str = "") -> list[str]:
    """Analysts who may ask: their tokens."""
    service = Service.start(Config(folder=str(folder), database=database, warm=False))
    try:
        steward = Principal("steward", frozenset({"steward"}))
        tokens = []
        for i in range(analysts):
            name = f"analyst{i}"
            service.users.add(steward, name, roles=["analyst"])
            for table in service.context.folder.names():
                service.users.grant(steward, name, table)
            who = Principal(name, frozenset({"analyst"}))
            tokens.append(service.accounts.create_token(who, "load", scopes=SCOPES).secret)
        return tokens
    finally:
        service.stop()


class Running:
    """A server in a process group of its own."""

    def __init__(self, folder: Path, **environment: str) -> None:
        command = [sys.executable, "-m", "dither", "serve", str(folder), "--port", "0"]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **FAST, **environment},
            start_new_session=True,
        )
        assert self.process.stdout is not None
        match = re.search(r"http://\S+", self.process.stdout.readline())
        assert match is not None
        self.url = match.group()

    def stop(self, sig: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(sig)
        code = self.process.wait(120)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


FORKING = """
import os, sys
from dither.server.config import read_config
from dither.server.run import serve
for _ in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        serve(read_config(sys.argv[1], port=0), lambda text: print(os.getpid(), text, flush=True))
        os._exit(0)
    os.waitpid(pid, 0)
"""


class Forking:
    """Servers one after the other, each forked from a process that has read the program already, and has nothing open.

    The next one starts when the last one is dead.
    """

    def __init__(self, folder: Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", FORKING, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **FAST, **environment},
        )

    def start(self) -> tuple[int, str]:
        """A new server: its process and its address."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            assert line, "the server did not start"
            if match := re.search(r"(\d+) dither serves .*(http://\S+)", line):
                return int(match[1]), match[2]

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(120)
        self.process.stdout.close()


def kill(pid: int) -> None:
    """SIGKILL of a server and its workers."""
    for each in [pid, *_children(pid)]:
        with suppress(OSError):
            os.kill(each, signal.SIGKILL)


def ledger_state(folder: Path, name: str = "visits") -> tuple[int, int, bool]:
    """Charges, answers, and whether the ledger is as it was written."""
    with dp.ledger.open(folder / f"{name}.sqlite", create=False) as ledger:
        kinds = Counter(entry.kind for entry in ledger.history(name))
        ledger.verify()
    return kinds["charge"], kinds["answer"], True


async def ask(client: httpx.AsyncClient, token: str, key: str | None = None, table: str = "visits", **options: object):
    headers = {"Authorization": f"Bearer {token}"} | ({} if key is None else {"Idempotency-Key": key})
    sql = COUNT if table == "visits" else f"SELECT COUNT(*) AS n FROM {table}"
    body = {"question": {"sql": sql}, "options": {"epsilon": EPSILON} | options}
    response = await client.post(f"/api/v1/tables/{table}/questions?wait=60", json=body, headers=headers)
    while response.status_code == 202:
        job = response.json()["id"]
        response = await client.get(f"/api/v1/jobs/{job}?wait=60", headers=headers)
    return response


async def ask_all(url: str, tokens: list[str], each: int) -> tuple[Counter[str], dict[str, str]]:
    outcomes: Counter[str] = Counter()
    recorded: dict[str, str] = {}
    limits = httpx.Limits(max_connections=len(tokens), max_keepalive_connections=len(tokens))

    async def analyst(client: httpx.AsyncClient, number: int) -> None:
        for i in range(each):
            response = await ask(client, tokens[number], key=f"q{i}")
            if response.status_code != 200:
                outcomes[f"status {response.status_code}"] += 1
                continue
            job = response.json()
            problem = (job["problem"] or {}).get("title", "")
            outcomes[f"{job['state']} {problem}".strip()] += 1
            if job["state"] == "answered":
                recorded[f"{number}/q{i}"] = job["answer"]["recorded"]

    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=300) as client:
        await asyncio.gather(*(analyst(client, number) for number in range(len(tokens))))
    return outcomes, recorded


def load(analysts: int = 200, questions: int = 5000, budget: int = 1000, **environment: str) -> dict[str, int]:
    """All analysts at once; exactly as many are answered as are paid, and each is the same when it is asked again."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_folder(folder, budget)
        tokens = make_people(folder, analysts)
        server = Running(folder, **environment)
        try:
            start = time.perf_counter()
            outcomes, answered = asyncio.run(ask_all(server.url, tokens, questions // analysts))
            seconds = time.perf_counter() - start
            same = asyncio.run(ask_again(server.url, tokens, answered))
        finally:
            code = server.stop()
        charges, answers, _ = ledger_state(folder)
        print(f"load: {analysts} analysts, {sum(outcomes.values())} questions in {seconds:.1f} s: {dict(outcomes)}")
        print(
            f"  ledger: {charges} charges, {answers} answers, verified; asked again, {same} of {len(answered)} are the"
        )
        print(f"  same, byte for byte; the server ended with status {code}")
        return {**outcomes, "charges": charges, "recorded": answers, "replayed": same, "status": code}


async def ask_again(url: str, tokens: list[str], answered: dict[str, str]) -> int:
    """How many answers are the same, byte for byte, when they are asked for again."""
    same = 0
    async with httpx.AsyncClient(base_url=url, timeout=300) as client:
        for place, text in answered.items():
            number, _, key = place.partition("/")
            job = (await ask(client, tokens[int(number)], key=key)).json()
            same += job["answer"]["replayed"] is True and job["answer"]["recorded"] == text
    return same


def _percentiles(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    p95 = ordered[int(0.95 * (len(ordered) - 1))]
    return f"median {1000 * statistics.median(ordered):.1f} ms, p95 {1000 * p95:.1f} ms"


class Connection:
    """A connection that is kept, with as little of a client as possible: what is measured is the server."""

    def __init__(self, url: str) -> None:
        self._host, self._port = url.removeprefix("http://").split(":")
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, token: str, key: str, body: bytes) -> bytes:
        """The body of the response, which has to be status 200."""
        async with self._lock:
            if self._streams is None:
                self._streams = await asyncio.open_connection(self._host, int(self._port))
            reader, writer = self._streams
            lines = (
                f"POST {path} HTTP/1.1", f"Host: {self._host}", f"Authorization: Bearer {token}",
                f"Idempotency-Key: {key}", "Content-Type: application/json", f"Content-Length: {len(body)}", "", "",
            )  # fmt: skip
            writer.write("\r\n".join(lines).encode() + body)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = re.search(rb"(?i)content-length: (\d+)", head)
            assert length is not None
            return await reader.readexactly(int(length[1]))

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


async def _recorded_at(url: str, tokens: list[str], per_second: int, count: int) -> tuple[list[float], list[float]]:
    """Recorded answers at a rate, from all analysts in turn: seconds since they were sent, and since they were due."""
    body = json.dumps({"question": {"sql": COUNT}, "options": {"epsilon": EPSILON}}).encode()
    connections = [Connection(url) for _ in tokens]
    sent: list[float] = []
    due: list[float] = []

    async def one(number: int, at: float) -> None:
        await asyncio.sleep(at - time.perf_counter())
        start = time.perf_counter()
        text = await connections[number].post("/api/v1/tables/visits/questions?wait=60", tokens[number], "q0", body)
        end = time.perf_counter()
        sent.append(end - start)
        due.append(end - at)
        assert json.loads(text)["answer"]["replayed"] is True

    for number in range(len(tokens)):  # connected, and the tokens used a moment ago
        await one(number, time.perf_counter())
    sent.clear()
    due.clear()
    start = time.perf_counter() + 0.1
    await asyncio.gather(*(one(i % len(tokens), start + i / per_second) for i in range(count)))
    for connection in connections:
        connection.close()
    return sent, due


def recorded(analysts: int = 200, seconds: int = 8, rates: tuple[int, ...] = (20, 50, 100, 200)) -> None:
    """Recorded answers at several rates. The client is on the same machine, whose load is printed."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_folder(folder, 1000)
        tokens = make_people(folder, analysts)
        server = Running(folder, DITHER_TICK="0.001", DITHER_WORKERS="1")
        try:
            asyncio.run(ask_all(server.url, tokens, 1))
            for rate in rates:
                before = _cpu_seconds(server.process.pid)
                sent, due = asyncio.run(_recorded_at(server.url, tokens, rate, rate * seconds))
                cpu = (_cpu_seconds(server.process.pid) - before) / (len(sent) + analysts)
                print(
                    f"recorded: {analysts} connections, {rate} a second, n = {len(sent)}: {_percentiles(sent)}; since "
                    f"they were due, {_percentiles(due)}; {1000 * cpu:.1f} ms of CPU each; "
                    f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
                )
        finally:
            server.stop()


def _cpu_seconds(pid: int) -> float:
    values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def warm(rounds: int = 21, rows: int = 200_000) -> None:
    """A question on the demo's table, warm: the library, and the server less its tick."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "demo")
        command = [sys.executable, "-m", "dither", "demo", "--rows", str(rows), "--folder", str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        [card] = [
            path for path in folder.glob("*.toml") if "source" in path.read_text() and "card =" not in path.read_text()
        ]
        text = re.sub(r"(?m)^epsilon = .*$", "epsilon = 1000", card.read_text())
        for path in folder.glob("*"):  # an empty ledger with a large budget
            if "sqlite" in path.name or path.suffix in (".receipt", ".key", ".secret"):
                path.unlink()
        card.write_text(text)
        name = tomllib.loads(text)["name"]
        tokens = make_people(folder, 1)
        tick = 0.25
        library: list[float] = []
        sql = f"SELECT COUNT(*) AS n FROM {name}"
        with dp.open(str(card)) as table:
            for _ in range(rounds):
                start = time.perf_counter()
                table.sql(sql).release(epsilon=EPSILON, again=True, analyst="analyst0")
                library.append(time.perf_counter() - start)
        tiny = 0.001  # a tick that does not hide how long the work takes
        results = {}
        for seconds in (tick, tiny):
            server = Running(folder, DITHER_TICK=str(seconds))
            try:
                times: list[float] = []

                async def loop(url: str = server.url, times: list[float] = times) -> None:
                    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
                        for _ in range(rounds + 2):
                            start = time.perf_counter()
                            response = await ask(client, tokens[0], table=name, again=True)
                            times.append(time.perf_counter() - start)
                            assert response.json()["state"] == "answered", response.text

                asyncio.run(loop())
                results[seconds] = statistics.median(times[2:])
            finally:
                server.stop()
        own = statistics.median(library)
        print(f"warm: the library {1000 * own:.1f} ms; over HTTP {1000 * results[tick]:.1f} ms with a tick of 250 ms")
        bound = 1.3 * own + tick
        print(f"  1.3 x library + tick = {1000 * bound:.1f} ms: {'met' if results[tick] <= bound else 'NOT met'}")
        print(f"  with ticks from 1 ms on: {1000 * results[tiny]:.1f} ms (the next power of two)")


def kills(times: int = 100, analysts: int = 8, within: float = 1.0) -> tuple[int, int]:
    """SIGKILL of the server and its workers at random moments; then every answered key is asked for again."""
    source = random.Random(17)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_folder(folder, 9000)
        tokens = make_people(folder, analysts)
        answered: dict[tuple[int, str], str] = {}
        asked = 0

        async def until_killed(pid: int, url: str, round_: int) -> None:
            async with httpx.AsyncClient(base_url=url, timeout=60) as client:
                first = (await ask(client, tokens[0], key=f"warm-{round_}")).json()  # from here on there is load
                assert first["state"] == "answered", first
                answered[0, f"warm-{round_}"] = first["answer"]["recorded"]

                async def analyst(number: int) -> None:
                    nonlocal asked
                    for i in range(1000):
                        key = f"r{round_}-{i}"
                        asked += 1
                        response = await ask(client, tokens[number], key=key)
                        assert response.status_code == 200, response.text
                        job = response.json()
                        if job["state"] == "answered":
                            answered[number, key] = job["answer"]["recorded"]

                async def killer() -> None:
                    await asyncio.sleep(source.uniform(0.0, within))
                    kill(pid)

                ends = await asyncio.gather(killer(), *map(analyst, range(analysts)), return_exceptions=True)
                for end in ends:  # a connection that breaks is what a kill does; nothing else is
                    if isinstance(end, BaseException) and not isinstance(end, httpx.TransportError):
                        raise end

        began = time.perf_counter()
        servers = Forking(folder, DITHER_TICK="0.01", DITHER_WORKERS="1", DITHER_WARM="false")
        try:
            for round_ in range(times):
                pid, url = servers.start()
                try:
                    asyncio.run(until_killed(pid, url, round_))
                except BaseException:
                    kill(pid)
                    raise
        finally:
            servers.close()
        seconds = (time.perf_counter() - began) / times
        charges, answers, _ = ledger_state(folder)
        server = Running(folder, DITHER_WORKERS="1", DITHER_WARM="false")
        try:

            async def replay() -> int:
                same = 0
                async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
                    for (number, key), text in answered.items():
                        job = (await ask(client, tokens[number], key=key)).json()
                        same += job["answer"]["recorded"] == text
                return same

            same = asyncio.run(replay())
        finally:
            server.stop()
        after = ledger_state(folder)
        incidents = _count(folder, "incident")
        print(
            f"kills: {times} times, {seconds:.1f} s each, {asked} asked: {charges} charged, {answers} recorded, "
            f"{len(answered)} seen; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
        )
        print(f"  charges without an answer: {charges - answers}, all of them incidents by now: {incidents}")
        print(f"  replayed byte for byte: {same} of {len(answered)}; charges by replaying: {after[0] - charges}")
        assert charges >= answers >= len(answered) == same > 0
        assert after[0] == charges
        assert incidents == charges - answers
        return len(answered), same


def _count(folder: Path, kind: str, name: str = "visits") -> int:
    with dp.ledger.open(folder / f"{name}.sqlite", create=False) as ledger:
        return sum(entry.kind == kind for entry in ledger.history(name))


def _children(pid: int) -> list[int]:
    with suppress(OSError):  # it is dead
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return []


def main(*names: str) -> None:
    if names == ("--quick",):  # one of the four, to see that it runs; a server takes seconds to start
        recorded(analysts=1, seconds=1, rates=(2,))
        return
    for name in names or ("load", "recorded", "warm", "kills"):
        {"load": load, "recorded": recorded, "warm": warm, "kills": kills}[name]()


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.write(json.dumps({"done": True}) + "\n")
