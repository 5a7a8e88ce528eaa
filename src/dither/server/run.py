"""Starting and stopping a server: one process on SQLite, several on PostgreSQL.

A stop (SIGTERM, Ctrl-C) takes no new questions, lets those under way end and be recorded, and gives up those that wait,
uncharged: no question is half charged. A second signal does not hurry it; only a kill does, after which a charge may be
without an answer, and the same question asked again is charged again.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from dither.errors import InvalidArgument
from dither.server.app import create_app
from dither.server.config import Config, read_config
from dither.server.limits import HeaderTimeoutProtocol
from dither.server.machine import most_connections, raise_descriptors
from dither.server.monitoring import CONFIGURATION
from dither.server.pool import Clock
from dither.server.service import Service


def notify(state: str) -> None:
    """Send a state such as ``READY=1`` to systemd, if it started the process and asks for it."""
    socket_name = os.environ.get("NOTIFY_SOCKET", "")
    if not socket_name:
        return
    address = "\0" + socket_name[1:] if socket_name.startswith("@") else socket_name
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto(state.encode(), address)


class Watchdog:
    """Tells systemd that the server is alive, twice as often as its ``WatchdogSec`` requires."""

    def __init__(self) -> None:
        """Read from the environment whether and how often systemd wants to hear."""
        given, process = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", str(os.getpid()))
        is_wanted = given.isdigit() and int(given) > 0 and process == str(os.getpid())
        self._pause = int(given) / 2e6 if is_wanted else None
        self._next = 0.0

    def beat(self) -> None:
        """Send a message if one is due; the server calls this often."""
        now = time.monotonic()
        if self._pause is not None and now >= self._next:
            self._next = now + self._pause
            notify("WATCHDOG=1")


_OPTIONS = "_DITHER_SERVE_OPTIONS"
"""The environment variable by which the supervisor passes the configuration to its child processes."""

_WAITING = 512
"""How many connections the kernel keeps until they are accepted."""

Say = Callable[[str], None]


def serve(config: Config, say: Say) -> None:
    """Run the server until a signal stops it; ``say`` prints a line."""
    listener = listen(config)
    host, port = listener.getsockname()[:2]
    if config.processes > 1:
        _serve_several(config, listener, say)
        return

    service = Service.start(config)  # here, and not in the event loop, so that what is refused is refused in a sentence
    try:
        announce(service, f"http://{_bracketed(host)}:{port}", say)
        _Server(_settings(create_app(config, service=service), config)).run(sockets=[listener])
    finally:
        service.stop()


class _Server(uvicorn.Server):
    """uvicorn's server, which tells systemd when it is ready, alive and stopping, and exits normally after a signal."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, enlarge the kernel's queue of connections, and report readiness."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_WAITING)
        self._watchdog = Watchdog()
        notify("READY=1")

    async def on_tick(self, counter: int) -> bool:
        """Report that the server is alive; the event loop calls this ten times a second."""
        self._watchdog.beat()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Report that the server stops, and stop it."""
        notify("STOPPING=1")
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM while the block runs, without raising them again afterwards as uvicorn does."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; further signals do not speed it up."""
        self.should_exit = True


def listen(config: Config) -> socket.socket:
    """Return a socket that listens on the configured address; refuse an address that is in use."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((config.host, config.port))
        listener.listen(_WAITING)
    except OSError as error:
        listener.close()
        fix = "choose another with --port, or stop what listens there"
        got = f"{config.host}:{config.port}, which cannot be used ({error.strerror})"
        raise InvalidArgument("port", "one that is free", got, fix) from None
    listener.set_inheritable(True)
    return listener


def announce(service: Service, address: str, say: Say) -> None:
    """Print by ``say`` the address of the server, the cards that are not in force, and the first steward's link.

    The link is shown until there is a steward, and only by a server that no other machine can reach.
    """
    tables = service.context.folder.names()
    say(f"dither serves {len(tables)} table(s) on {service.config.public_url or address}")
    for item in service.context.folder.refusals():
        say(f"not in force: {item.file}: {item.problem}")
    link = service.auth.first_link() if service.config.is_local else None
    if link is not None:
        say(f"link for the first steward (works once): {address}{link}")
    elif not service.config.is_local and service.auth.first_link() is not None:
        say("there is no steward yet: start once on localhost (--host 127.0.0.1), which prints a link for the first")


def _bracketed(host: str) -> str:
    """Return a host as a URL has it: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host


def _settings(app: Starlette | str, config: Config, **more: object) -> uvicorn.Config:
    """Return uvicorn's settings for ``app``, with a limit on connections that follows from the available file
    descriptors.

    A header may have 32 KiB, and an idle connection is kept for 15 seconds.
    """
    cards = len(list(Path(config.folder).glob("*.toml")))
    connections = most_connections(config, cards, raise_descriptors())
    return uvicorn.Config(
        app,
        log_config=CONFIGURATION,
        access_log=False,  # paths hold links that work once
        server_header=False,
        proxy_headers=bool(config.trusted_proxies),
        forwarded_allow_ips=list(config.trusted_proxies),
        limit_concurrency=connections,
        backlog=max(4, connections // 4),  # connections that wait to be accepted
        timeout_keep_alive=15,
        timeout_graceful_shutdown=int(config.time_limit) + 30,
        h11_max_incomplete_event_size=32 * 1024,
        http=HeaderTimeoutProtocol,
        lifespan="on",
        ws="none",
        **more,  # type: ignore[arg-type]
    )


# -- several processes ------------------------------------------------------------------------------------------------


def _serve_several(config: Config, listener: socket.socket, say: Say) -> None:
    """Serve by ``config.processes`` processes on the socket ``listener``, which uvicorn's supervisor keeps alive."""
    from uvicorn.supervisors import Multiprocess

    clock = Clock()
    service = Service.start(config, clock)  # once, to create tables and to say the link, before there are several
    try:
        host, port = listener.getsockname()[:2]
        announce(service, f"http://{_bracketed(host)}:{port}", say)
    finally:
        service.stop()
    _remember(config, clock)
    settings = _settings("dither.server.run:app_from_environment", config, factory=True, workers=config.processes)

    class Supervisor(Multiprocess):
        """uvicorn's supervisor, which replaces processes that have ended and also reports to systemd."""

        def init_processes(self) -> None:
            """Start the processes, and report readiness."""
            super().init_processes()
            self._watchdog = Watchdog()
            notify("READY=1")

        def keep_subprocess_alive(self) -> None:
            """Restart processes that have ended, and report that the server is alive."""
            super().keep_subprocess_alive()
            self._watchdog.beat()

        def terminate_all(self) -> None:
            """Report that the server stops, and stop all processes."""
            notify("STOPPING=1")
            super().terminate_all()

    Supervisor(settings, [listener]).run()


def _remember(config: Config, clock: Clock) -> None:
    """Pass configuration and clock to the child processes in their environment, so that a replaced process uses
    them, too."""
    os.environ[_OPTIONS] = json.dumps({"config": asdict(config), "clock": clock.origin})


def app_from_environment() -> Starlette:
    """Build the application of one child process, from what its parent put into the environment."""
    given = json.loads(os.environ[_OPTIONS])
    folder = given["config"].pop("folder")
    return create_app(read_config(folder, environment={}, **given["config"]), clock=Clock(given["clock"]))
