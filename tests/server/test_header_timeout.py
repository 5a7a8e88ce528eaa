"""A client that does not finish its headers is cut off; one that does is served."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import ClassVar

import pytest
import uvicorn

from dither.server import run
from dither.server.config import Config
from dither.server.limits import HeaderTimeoutProtocol

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Seen(HeaderTimeoutProtocol):
    """A protocol whose connections can be looked at, with all the time in the world."""

    header_seconds = 1e6
    made: ClassVar[list[Seen]] = []
    received = 0

    def connection_made(self, transport):
        super().connection_made(transport)
        self.made.append(self)

    def data_received(self, data):
        super().data_received(data)
        self.received += len(data)


class Hasty(HeaderTimeoutProtocol):
    header_seconds = 0.05


async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


@asynccontextmanager
async def connected(protocol):
    """A client of a server with this protocol."""
    listener = socket.create_server(("127.0.0.1", 0))
    settings = uvicorn.Config(hello, http=protocol, lifespan="off", log_level="error", timeout_keep_alive=10_000)
    server = uvicorn.Server(settings)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    async with asyncio.timeout(600):
        while not server.started:
            await asyncio.sleep(0.01)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        try:
            yield reader, writer
        finally:
            writer.close()
            server.should_exit = True
            await serving


def timers(*parts):
    """After each of these parts of requests, the timer that would end the connection, and how many were answered. When
    the time of one that has begun is up, the server hangs up."""

    async def talk():
        async with connected(Seen) as (reader, writer):
            seen, sent, answered = [], 0, 0
            for part in parts:
                writer.write(part)
                sent += len(part)
                while not Seen.made or Seen.made[-1].received < sent:
                    await asyncio.sleep(0.001)
                if part.endswith(b"\r\n\r\n"):
                    assert (await reader.readuntil(b"hi")).startswith(b"HTTP/1.1 200 OK")
                    answered += 1
                seen.append((Seen.made[-1]._timer, answered))
            if seen[-1][0] is not None:
                Seen.made[-1]._give_up()  # what the timer calls
                assert await reader.read() == b""  # the server hangs up
            return seen

    Seen.made.clear()
    return asyncio.run(talk())


@pytest.mark.parametrize("part", [b"", b"GET / HTTP/1.1\r\nHost: a\r\n"])
def test_headers_that_do_not_come_end_the_connection(part):
    async def talk():
        async with connected(Hasty) as (reader, writer):
            writer.write(part)
            return await reader.read()  # until the server hangs up

    assert b"200 OK" not in asyncio.run(talk())


def test_a_byte_now_and_then_gains_no_time():
    seen = timers(b"G", b"E", b"T", b" / HTTP/1.1\r\n", b"Host: a\r\n")
    assert len({id(timer) for timer, _ in seen}) == 1
    assert seen[0][0] is not None


def test_the_second_request_of_a_connection_has_no_more_time():
    [(whole, one), (begun, still_one), (later, _)] = timers(REQUEST, b"GET / HT", b"TP/1.1")
    assert (one, still_one) == (1, 1)
    assert whole is None
    assert begun is later is not None


def test_whole_requests_are_served_on_one_connection():
    assert timers(REQUEST, REQUEST, REQUEST) == [(None, 1), (None, 2), (None, 3)]


def test_the_server_is_impatient(tmp_path, monkeypatch):
    settings = []

    class Stopped(Exception):
        pass

    def stop(given):
        settings.append(given)
        raise Stopped

    monkeypatch.setattr(uvicorn.Server, "__init__", lambda _, given: stop(given))
    listener = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setattr(run, "listen", lambda _: listener)
    with listener, pytest.raises(Stopped):
        run.serve(Config(folder=str(tmp_path)), print)
    assert settings[0].http is HeaderTimeoutProtocol


async def opened(address, parts):
    """A connection, or what it got: an error means that it was closed."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
    except OSError:
        pass
    return reader, writer


def test_whoever_sends_a_request_is_served_however_many_idle_connections_there_are():
    """The oldest idle connections make room: 5 that say nothing, 5 that begin, 5 that have had an answer."""
    limit = 8
    kinds = [b"", b"GET / HT", REQUEST]

    async def talk():
        listener = socket.create_server(("127.0.0.1", 0))
        settings = uvicorn.Config(
            hello, http=Seen, lifespan="off", log_level="error", timeout_keep_alive=10_000, limit_concurrency=limit
        )
        server = uvicorn.Server(settings)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        idle, served, most = [], 0, 0
        async with asyncio.timeout(600):
            while not server.started:
                await asyncio.sleep(0.01)
            for part in [kind for kind in kinds for _ in range(5)]:
                idle.append(await opened(listener.getsockname(), [part]))
                reader, writer = await opened(listener.getsockname(), [REQUEST])
                served += (await reader.readuntil(b"hi")).startswith(b"HTTP/1.1 200 OK")
                writer.close()
                most = max(most, len(server.server_state.connections))
            for _, writer in idle:
                writer.close()
            server.should_exit = True
            await serving
        return served, most

    served, most = asyncio.run(talk())
    assert served == 15
    assert most < limit


def test_a_client_that_does_not_take_its_answer_is_cut_off():
    class Hurried(Seen):
        write_seconds = 0.05

    async def large(scope, receive, send):
        size = 1 << 26  # more than the kernel takes
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        for _ in range(64):
            await send({"type": "http.response.body", "body": bytes(size // 64), "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def talk():
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(large, http=Hurried, lifespan="off", log_level="critical"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with asyncio.timeout(600):
            while not server.started:
                await asyncio.sleep(0.01)
            client = socket.create_connection(listener.getsockname())
            client.sendall(REQUEST)
            while not Seen.made or server.server_state.connections:
                await asyncio.sleep(0.01)
            client.close()
            server.should_exit = True
            await serving

    Seen.made.clear()
    asyncio.run(talk())
