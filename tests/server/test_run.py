"""A server in a process of its own: start, slow clients, stop; and, slowly, load and kills."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx2 as httpx
import pytest
from serving import Running, fill

import dither as dp
from dither.errors import InvalidArgument
from dither.server import run
from dither.server.config import Config
from dither.server.pool import Clock
from dither.server.run import Watchdog, listen, notify

SMALL = {"DITHER_TICK": "0.01", "DITHER_WORKERS": "1", "DITHER_WARM": "false"}
"""Few processes, and answers soon."""


@pytest.fixture(scope="module")
def bench():
    path = Path(__file__).parents[2] / "benchmarks" / "server.py"
    spec = importlib.util.spec_from_file_location("server_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["server_benchmark"] = module
    spec.loader.exec_module(module)
    return module


def test_from_the_first_link_to_a_clean_stop(tmp_path):
    server = Running(fill(tmp_path), DITHER_READ_TIMEOUT="1", DITHER_WARM="false")
    try:
        line = server.process.stdout.readline()
        assert re.search(r"link for the first steward \(works once\): http://127\.0\.0\.1:\d+/welcome/\S{43}$", line)
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 600) as slow:  # never sends its body
            slow.sendall(b"POST /sign-in HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nx")
            with httpx.Client(base_url=server.url, timeout=600) as client:
                assert client.get("/sign-in").status_code == 200  # others are served meanwhile
            assert slow.recv(100).startswith(b"HTTP/1.1 408")
        with httpx.Client(base_url=server.url, timeout=600) as client:
            assert client.get("/api/v1/tables").status_code == 401
            assert client.get("/welcome/wrong").status_code in (403, 404)
    finally:
        code = server.stop()
    assert code == 0
    with dp.ledger.open(tmp_path / "visits.sqlite", create=False) as ledger:
        assert ledger.verify().entries == 1


def test_idle_sockets_take_no_descriptor_that_the_server_needs(tmp_path):
    """With 160 descriptors, 360 clients that say nothing or begin a request keep nobody from being served, and the
    process of a question can still be started."""
    server = Running(fill(tmp_path), open_files=160, **SMALL)
    host, port = server.url.removeprefix("http://").split(":")
    link = re.search(r"/welcome/\S+", server.process.stdout.readline()).group()
    idle, held = [], []
    try:
        for number in range(360):
            idle.append(socket.create_connection((host, int(port)), 600))
            if number % 2:
                with suppress(OSError):  # it was closed for another one already
                    idle[-1].sendall(b"GET /health HTTP/1.1\r\nHost")
            if not number % 90:
                assert httpx.get(f"{server.url}/health", timeout=600).status_code == 200
            if sys.platform == "linux":
                held.append(len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())))
        assert httpx.get(server.url + link, timeout=600).status_code == 200
        assert max(held, default=0) < 130  # there is always room for what else the server opens
    finally:
        for connection in idle:
            connection.close()
        assert server.stop() == 0


def test_too_few_descriptors_are_refused_at_the_start(tmp_path):
    command = [
        "sh",
        "-c",
        'ulimit -n 80; exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "dither",
        "serve",
        str(fill(tmp_path)),
    ]
    result = subprocess.run([*command, "--port", "0"], capture_output=True, text=True)
    assert result.returncode == 2
    assert "LimitNOFILE" in result.stderr


def test_a_port_that_is_taken():
    with listen(Config(folder=".", port=0)) as taken, pytest.raises(InvalidArgument, match="--port"):
        listen(Config(folder=".", port=taken.getsockname()[1]))


def test_a_process_that_replaces_another_goes_by_the_same_clock(monkeypatch, tmp_path):
    clock, config = Clock(), Config(folder=str(tmp_path), metrics_tokens=("a" * 40,))
    monkeypatch.setenv(run._OPTIONS, "")
    run._remember(config, clock)
    monkeypatch.setattr(time, "time", lambda: 0.0)  # the system's clock was set back to 1970
    made = []
    monkeypatch.setattr(run, "create_app", lambda *given, **options: made.append((*given, options["clock"].origin)))
    run.app_from_environment()
    assert made == [(config, clock.origin)]


@pytest.mark.slow
def test_two_processes_on_postgresql(tmp_path, postgresql, bench):
    """Several processes share the store: whoever is asked knows the job, and both together spend what there is."""
    bench.make_folder(tmp_path, 12)
    tokens = bench.make_people(tmp_path, 4, database=postgresql)
    server = Running(tmp_path, "--database", postgresql, "--processes", "2", **bench.FAST, **SMALL)
    try:
        outcomes, answered = asyncio.run(bench.ask_all(server.url, tokens, 6))
        assert outcomes == {"answered": 12, "refused BudgetExceeded": 12}
        assert asyncio.run(bench.ask_again(server.url, tokens, answered)) == 12
    finally:
        assert server.stop() == 0
    assert bench.ledger_state(tmp_path) == (12, 12, True)


@pytest.mark.slow
def test_exactly_what_the_budget_allows_is_answered(bench):
    outcomes = bench.load(analysts=12, questions=72, budget=20, **SMALL)
    expected = {"answered": 20, "refused BudgetExceeded": 52, "charges": 20, "recorded": 20, "replayed": 20}
    assert outcomes == {**expected, "status": 0}


@pytest.mark.slow
def test_a_kill_wastes_budget_at_most(bench):
    """Kills while questions are charged; what was left without an answer is an incident, and all else is replayed."""
    seen, same = bench.kills(times=3, within=0.5)
    assert seen == same >= 3


@pytest.fixture
def heard(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(600)
        yield receiver


def test_messages_and_silence(heard, monkeypatch):
    notify("READY=1")  # nobody listens
    monkeypatch.setenv("NOTIFY_SOCKET", heard.getsockname())
    notify("READY=1")
    assert heard.recv(100) == b"READY=1"
    monkeypatch.setenv("WATCHDOG_USEC", "3600000000")
    for process, beats in ((os.getpid(), True), (1, False)):
        monkeypatch.setenv("WATCHDOG_PID", str(process))
        watchdog = Watchdog()
        watchdog.beat()
        watchdog.beat()  # not due yet
        heard.setblocking(False)
        received = []
        try:
            while True:
                received.append(heard.recv(100))
        except BlockingIOError:
            pass
        assert received == [b"WATCHDOG=1"] * beats
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/notify")
    notify("READY=1")  # a socket that is gone stops nothing


@pytest.mark.slow
def test_a_server_is_ready_lives_and_stops(heard, tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    given = {"NOTIFY_SOCKET": heard.getsockname(), "WATCHDOG_USEC": "200000", "DITHER_WARM": "false"}
    server = Running(fill(folder), **given)
    messages = [heard.recv(100) for _ in range(4)]
    assert messages == [b"READY=1", *[b"WATCHDOG=1"] * 3]
    assert server.stop() == 0
    while (last := heard.recv(100)) == b"WATCHDOG=1":
        pass
    assert last == b"STOPPING=1"
