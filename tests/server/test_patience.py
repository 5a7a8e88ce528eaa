"""A client that does not finish its headers is cut off; one that does is served."""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvicorn

from dither.server import run
from dither.server.config import Config
from dither.server.patience import ImpatientProtocol

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Hasty(ImpatientProtocol):
    header_seconds = 0.5


async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


def spoken(*parts, pause=0.0):
    """What a server says to a client that sends these parts, and whether it then hung up."""

    async def talk():
        listener = socket.create_server(("127.0.0.1", 0))
        settings = uvicorn.Config(hello, http=Hasty, lifespan="off", log_level="error", timeout_keep_alive=60)
        server = uvicorn.Server(settings)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:
            await asyncio.sleep(0.01)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        said = b""
        try:
            for part in parts:
                writer.write(part)
                await asyncio.sleep(pause)
            async with asyncio.timeout(2):
                while block := await reader.read(1000):
                    said += block
            return said, True
        except ConnectionError:
            return said, True
        except TimeoutError:
            return said, False
        finally:
            writer.close()
            server.should_exit = True
            await serving

    return asyncio.run(talk())


@pytest.mark.parametrize("parts", [(), (b"GET / HTTP/1.1\r\nHost: a\r\n",), (b"G",) + (b"E",) * 12])
def test_headers_that_do_not_come_end_the_connection(parts):
    said, hung_up = spoken(*parts, pause=0.1)
    assert hung_up
    assert b"200 OK" not in said


def test_the_second_request_of_a_connection_has_no_more_time():
    said, hung_up = spoken(REQUEST, b"GET / HT", pause=0.2)
    assert hung_up
    assert said.count(b"200 OK") == 1


def test_whole_requests_are_served_on_one_connection():
    said, hung_up = spoken(REQUEST, REQUEST, pause=0.4)
    assert said.count(b"200 OK") == 2
    assert not hung_up


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
    assert settings[0].http is ImpatientProtocol
