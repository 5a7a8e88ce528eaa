"""The configuration of a server: a file ``dither-server.toml``, and environment variables that come before it.

Every key of :class:`Config` may stand in the file, and as ``DITHER_`` and its name in capitals in the environment
(``DITHER_TICK=0.5``). What both leave out has its default. Secrets (``database``, ``oidc_client_secret``) are best put
into the environment; they are never logged or shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dither.errors import InvalidArgument, message
from dither.tables.card.toml_file import contents, read_bytes
from dither.tables.card.wording import closest

FILE_NAME = "dither-server.toml"
PREFIX = "DITHER_"
_ELSEWHERE = frozenset({"DITHER_LEDGER_SECRET"})
_SHORTEST_TOKEN = 20
_LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})
_MOST = {
    "port": 65535, "processes": 64, "workers": 256, "tick": 60.0, "time_limit": 86_400.0, "memory_limit_mb": 1 << 20,
    "max_body_bytes": 1 << 26, "max_questions_each": 1000, "max_waiting": 100_000, "questions_per_minute": 1_000_000,
    "requests_per_minute": 10_000_000, "sign_ins_per_minute": 10_000, "session_hours": 24 * 90, "idle_hours": 24 * 90,
    "token_days": 3650, "read_timeout": 3600.0, "event_days": 36_500,
}  # fmt: skip


@dataclass(frozen=True)
class Config:
    """The configuration of a server, read at its start.

    Parameters
    ----------
    folder
        The folder with the cards (``*.toml``) that are served, and the plans of publications.
    database
        Where users, sessions, grants and recorded answers are kept: by default a SQLite file in the folder;
        ``postgresql://…`` for several processes.
    host, port, processes
        Where to listen, and with how many processes; more than one needs PostgreSQL.
    public_url
        The address that people type, as in ``https://answers.example.org``: where cookies and sign-on come back to.
    single_steward
        Whether one steward alone may raise limits.
    workers
        How many questions are computed at the same time by each process, each in a process of its own.
    warm
        Whether these processes start with the server, rather than with the first question for each.
    tick
        Seconds from a question to the first moment at which its answer may be given; each later moment is twice as
        long after the question.
    time_limit, memory_limit_mb
        What one question may take before it is ended. It is then paid, and an incident.
    max_body_bytes, read_timeout
        The largest request, and how many seconds a client may take to send it.
    max_questions_each, max_waiting
        How many questions of one analyst, and of all, may be under way in one process.
    questions_per_minute, requests_per_minute, sign_ins_per_minute
        Rate limits: of one analyst, of one principal, and of one address that signs in (fifty times as
        many for one user, from all addresses together).
    session_hours, idle_hours, token_days
        How long a session lasts, how long without a request, and the longest life of a token.
    secure_cookies
        Whether cookies are sent over HTTPS only; by default unless the server listens on this machine alone.
    metrics_tokens
        The bearer tokens with which ``/metrics`` may be read; without any it does not exist. Two at a time let
        one replace the other without a gap.
    event_days
        How many days the event log is kept.
    trusted_proxies
        Addresses of reverse proxies whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` count.
    oidc_issuer, oidc_client_id, oidc_client_secret, oidc_roles
        Single sign-on by OpenID Connect, and the roles that somebody gets who signs in for the first time (none:
        only people whom a steward has added).

    >>> Config(folder=".").tick
    0.25
    >>> Config(folder=".", tick=-1)
    Traceback (most recent call last):
    dither.InvalidArgument: tick: expected a number above 0 and at most 60, got -1. Fix: write tick = 0.25.
    """

    folder: str
    database: str = field(default="", repr=False)
    host: str = "127.0.0.1"
    port: int = 8765
    processes: int = 1
    public_url: str = ""
    single_steward: bool = False
    workers: int = 2
    warm: bool = True
    tick: float = 0.25
    time_limit: float = 120.0
    memory_limit_mb: int = 8192
    max_body_bytes: int = 256 * 1024
    read_timeout: float = 10.0
    max_questions_each: int = 4
    max_waiting: int = 1000
    questions_per_minute: int = 120
    requests_per_minute: int = 1200
    sign_ins_per_minute: int = 10
    session_hours: int = 12
    idle_hours: int = 2
    token_days: int = 365
    secure_cookies: bool | None = None
    metrics_tokens: tuple[str, ...] = field(default=(), repr=False)
    event_days: int = 400
    trusted_proxies: tuple[str, ...] = ()
    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_client_secret: str = field(default="", repr=False)
    oidc_roles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(item.default, (int, float)) and not isinstance(item.default, bool):
                most = _MOST[item.name]
                right = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= most
                right = right and (isinstance(item.default, float) or value == int(value))
                if not right and not (item.name == "port" and value == 0):
                    fix = f"write {item.name} = {item.default:g}"
                    raise InvalidArgument(message(item.name, f"a number above 0 and at most {most:g}", value, fix))
        if self.processes > 1 and "://" not in self.database:
            fix = "pass --database postgresql://…, or processes = 1"
            raise InvalidArgument(message("processes", "1 on SQLite", self.processes, fix))
        if self.oidc_issuer and not (self.oidc_client_id and self.oidc_client_secret and self.public_url):
            expected = "oidc_client_id, oidc_client_secret and public_url beside it"
            raise InvalidArgument(message("oidc_issuer", expected, "not all of them", "state them"))
        if any(len(token) < _SHORTEST_TOKEN for token in self.metrics_tokens):
            fix = "write what secrets.token_urlsafe(32) gives"
            expected = f"tokens of at least {_SHORTEST_TOKEN} characters"
            raise InvalidArgument(message("metrics_tokens", expected, "a shorter one", fix))

    @property
    def place(self) -> str:
        """Where the server's own data are."""
        return self.database or str(Path(self.folder) / "dither-server.sqlite")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return self.host in _LOCAL

    @property
    def cookies_are_secure(self) -> bool:
        """Whether cookies are sent over HTTPS only."""
        if self.secure_cookies is not None:
            return self.secure_cookies
        return self.public_url.startswith("https://") or not self.is_local

    @property
    def url(self) -> str:
        """The address of the server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url.rstrip("/") or f"http://{host}:{self.port}"


def read_config(
    folder: str, path: str | None = None, environment: Mapping[str, str] | None = None, **given: Any
) -> Config:
    """The configuration for a folder: from the file, then the environment, then what is given (None: not given).

    >>> read_config(".", environment={"DITHER_TICK": "0.5"}, port=9000).tick
    0.5
    """
    place = Path(path) if path is not None else Path(folder) / FILE_NAME
    stated: dict[str, Any] = {}
    if path is not None or place.is_file():
        stated = _contents(place)
    names = {item.name: item for item in fields(Config)}
    for name in stated:
        if name not in names or name == "folder":
            raise InvalidArgument(message(name, "a key of the configuration", "another", closest(name, list(names))))
    surroundings = os.environ if environment is None else environment
    for variable, text in surroundings.items():
        name = variable.removeprefix(PREFIX).lower()
        if variable.startswith(PREFIX) and name in names and variable not in _ELSEWHERE and name != "folder":
            stated[name] = _parsed(name, text, names[name].default)
    stated |= {name: value for name, value in given.items() if value is not None}
    for name in ("trusted_proxies", "oidc_roles", "metrics_tokens"):
        if name in stated:
            stated[name] = tuple(stated[name])
    config = Config(folder=folder)
    for name, value in stated.items():
        _check_type(name, value, names[name].default)
    return replace(config, **stated)


def _contents(place: Path) -> dict[str, Any]:
    return contents(read_bytes(place, "config", "or leave it out"), "config", place)


def _parsed(name: str, text: str, default: Any) -> Any:
    if isinstance(default, bool) or name == "secure_cookies":
        words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        if text.lower() not in words:
            raise InvalidArgument(message(PREFIX + name.upper(), "true or false", "other text", "write true"))
        return words[text.lower()]
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if isinstance(default, (int, float)):
        try:
            return type(default)(text)
        except ValueError:
            fix = f"write {default}"
            raise InvalidArgument(message(PREFIX + name.upper(), "a number", "other text", fix)) from None
    return text


def _check_type(name: str, value: Any, default: Any) -> None:
    if isinstance(default, bool) or name == "secure_cookies":
        right = isinstance(value, bool)
    elif isinstance(default, (int, float)):
        right = isinstance(value, (int, float)) and not isinstance(value, bool)
    elif isinstance(default, tuple):
        right = all(isinstance(item, str) for item in value)
    else:
        right = isinstance(value, str)
    if not right:
        raise InvalidArgument(message(name, f"a value like {default!r}", "one of another type", "correct its type"))


__all__ = ["FILE_NAME", "Config", "read_config"]
