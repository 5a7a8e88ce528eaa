"""What systemd hears of a server."""

from __future__ import annotations

import os
import socket

import pytest
from serving import Running, fill

from dither.server.run import Watchdog, notify


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
