"""The configuration of a server: a file ``dither-server.toml``, and environment variables that come before it.

Every key of :class:`Config` may stand in the file, and as ``DITHER_`` and its name in capitals in the environment
(``DITHER_TICK=0.5``). What both leave out has its default. Each key has one :class:`Kind`, which says what its values
are; a key, a variable or a value that is not one of these is refused before the server starts. Secrets (``database``,
``oidc_client_secret``) are best put into the environment; they are never logged or shown.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from dither.client.connecting import TOKEN_VARIABLE
from dither.errors import InvalidArgument
from dither.ledger.files import VARIABLE as LEDGER_KEY
from dither.server.roles import ROLES
from dither.tables.card.toml import contents, read_bytes
from dither.tables.card.values import clip, closest

FILE_NAME = "dither-server.toml"
PREFIX = "DITHER_"
ELSEWHERE = frozenset({LEDGER_KEY, TOKEN_VARIABLE, "DITHER_TEST_BROWSER", "DITHER_ADULT"})
"""Variables that begin like those of the configuration and are read by other parts of dither."""
_LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})
_SHORTEST_TOKEN = 20
_WIDEST_PROXIES = {4: 8, 6: 16}
"""The shortest network prefix that may be trusted, by IP version; a few shorter ones would cover every address."""
_TOKENS = '["what-secrets.token_urlsafe(32)-gives"]'
_WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_OPEN_ROLES = tuple(role for role in ROLES if role != "steward")


@dataclass(frozen=True)
class Kind:
    """The type of a configuration value: its description for errors, a test for values, a parser for the text of an
    environment variable, and an example in TOML."""

    expected: str
    holds: Callable[[Any], bool]
    read: Callable[[str], Any]
    example: str
    is_secret: bool = False

    def refusal(self, name: str, value: object, key: str) -> InvalidArgument:
        """Return the error for a value that is not of this kind. ``key`` is the name used in the suggested fix: that of
        the TOML key or of the environment variable."""
        shown = "a value of a different form" if self.is_secret else clip(repr(value))
        return InvalidArgument(name, self.expected, shown, f"write {key} = {self.example}")


def _is_number(value: object) -> bool:
    """Return whether a value is a number and not a boolean."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _read_flag(text: str) -> bool:
    """Parse a boolean from the text of an environment variable."""
    return _WORDS[text.lower()]


def _read_names(text: str) -> tuple[str, ...]:
    """Parse a list from comma-separated text."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _number(most: float, example: float, least: float | None = None) -> Kind:
    """Return the kind of numbers from ``least`` (None: above 0) to ``most``; whole numbers only, if the example is
    an integer."""
    whole = isinstance(example, int)

    def holds(value: Any) -> bool:
        """Return whether a value is a number in this range."""
        right = _is_number(value) and (value > 0 if least is None else value >= least) and value <= most
        return right and (not whole or isinstance(value, int))

    low = "above 0" if least is None else f"from {least:g} on"
    return Kind(
        f"a {'whole ' * whole}number {low} and at most {most:g}", holds, int if whole else float, f"{example:g}"
    )


def _optional(kind: Kind) -> Kind:
    """Return the kind that also accepts None for a value that is not stated."""

    def holds(value: Any) -> bool:
        """Return whether a value is None or of the kind."""
        return value is None or kind.holds(value)

    return Kind(kind.expected, holds, kind.read, kind.example)


def _text(expected: str, holds: Callable[[str], bool], example: str, *, is_secret: bool = False) -> Kind:
    """Return the kind of setting whose value is a text that is empty or passes a test."""

    def right(value: Any) -> bool:
        """Return whether a value is empty text, or printable text that passes the test ``holds``."""
        return isinstance(value, str) and (not value or (value.isprintable() and holds(value)))

    return Kind(expected, right, str, f'"{example}"', is_secret)


def _names(expected: str, holds: Callable[[str], bool], example: str, *, is_secret: bool = False) -> Kind:
    """Return the kind of setting whose value is a list of texts that all pass a test."""

    def right(value: Any) -> bool:
        """Return whether a value is a tuple of texts that all pass the test ``holds``."""
        return isinstance(value, tuple) and all(isinstance(item, str) and holds(item) for item in value)

    return Kind(expected, right, _read_names, example, is_secret)


def _split(text: str) -> SplitResult | None:
    """Split an http(s) URL into its parts; return None for other text, and for a URL with a user name, query or
    fragment."""
    try:
        parts = urlsplit(text)
        named = parts.hostname and parts.port != 0 and not any(character.isspace() for character in text)
    except ValueError:
        return None
    plain = named and parts.scheme in ("http", "https") and parts.username is None and not parts.query
    return parts if plain and not parts.fragment else None


def _is_origin(text: str) -> bool:
    """Return whether a text is a web address without a path."""
    parts = _split(text)
    plain = text.startswith(("https://", "http://")) and not any(character in text for character in "?#*")
    return plain and parts is not None and parts.path in ("", "/")


def _is_issuer(text: str) -> bool:
    """Return whether a text is an HTTPS address, or an address of this machine."""
    parts = _split(text)
    return parts is not None and (parts.scheme == "https" or parts.hostname in _LOCAL)


def _is_host(text: str) -> bool:
    """Return whether a text is an IP address or a host name."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text.replace("-", "a").replace(".", "a").isalnum() and not text.replace(".", "").isdigit()
    return True


def _is_database(text: str) -> bool:
    """Return whether a text is a file name or a PostgreSQL URL."""
    return "://" not in text or text.startswith(("postgresql://", "postgresql+psycopg://"))


def _is_token(text: str) -> bool:
    """Return whether a text is long and plain enough for a bearer token."""
    return len(text) >= _SHORTEST_TOKEN and text.isascii() and text.isprintable()


def _is_proxy(text: str) -> bool:
    """Return whether a text is an IP address, or a network narrow enough to be trusted."""
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        return False
    return network.prefixlen >= _WIDEST_PROXIES[network.version]


FLAG = Kind("true or false", lambda value: isinstance(value, bool), _read_flag, "true")
OPTIONAL_FLAG = _optional(FLAG)


def _setting(default: Any, kind: Kind) -> Any:
    """Declare a field of the configuration with its default and its kind; secrets are left out of ``repr``."""
    return field(default=default, repr=not kind.is_secret, metadata={"kind": kind})


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
        long after the question. At most ``time_limit``.
    time_limit, memory_limit_mb
        What one question may take before it is ended. It is then paid, and an incident. By default each process of a
        question gets an equal share of the memory (:func:`dither.server.machine.worker_memory_mb`).
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
        Addresses or networks of reverse proxies whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` count.
    oidc_issuer, oidc_client_id, oidc_client_secret, oidc_roles
        Single sign-on by OpenID Connect, and the roles that somebody gets who signs in for the first time (none:
        only people whom a steward has added). Nobody becomes a steward by signing in.

    >>> Config(folder=".").tick
    0.25
    >>> Config(folder=".", tick=-1)
    Traceback (most recent call last):
    dither.InvalidArgument: tick: expected a number above 0 and at most 60, got -1. Fix: write tick = 0.25.
    """

    folder: str = field(metadata={"kind": _text("a folder", lambda _: True, "cards")})
    database: str = _setting(
        "", _text("a file, or postgresql://…", _is_database, "postgresql://dither@/dither", is_secret=True)
    )
    host: str = _setting("127.0.0.1", _text("a name or an address to listen on", _is_host, "127.0.0.1"))
    port: int = _setting(8765, _number(65535, 8765, least=0))
    processes: int = _setting(1, _number(64, 1))
    public_url: str = _setting(
        "", _text("an address with https:// or http:// and a name alone", _is_origin, "https://answers.example.org")
    )
    single_steward: bool = _setting(False, FLAG)
    workers: int = _setting(2, _number(256, 2))
    warm: bool = _setting(True, FLAG)
    tick: float = _setting(0.25, _number(60.0, 0.25))
    time_limit: float = _setting(120.0, _number(86_400.0, 120.0))
    memory_limit_mb: int | None = _setting(None, _optional(_number(1 << 20, 4096, least=512)))
    max_body_bytes: int = _setting(256 * 1024, _number(1 << 26, 256 * 1024))
    read_timeout: float = _setting(10.0, _number(3600.0, 10.0))
    max_questions_each: int = _setting(4, _number(1000, 4))
    max_waiting: int = _setting(1000, _number(100_000, 1000))
    questions_per_minute: int = _setting(120, _number(1_000_000, 120))
    requests_per_minute: int = _setting(1200, _number(10_000_000, 1200))
    sign_ins_per_minute: int = _setting(10, _number(10_000, 10))
    session_hours: int = _setting(12, _number(24 * 90, 12))
    idle_hours: int = _setting(2, _number(24 * 90, 2))
    token_days: int = _setting(365, _number(3650, 365))
    secure_cookies: bool | None = _setting(None, OPTIONAL_FLAG)
    metrics_tokens: tuple[str, ...] = _setting(
        (), _names(f"a list of tokens of at least {_SHORTEST_TOKEN} characters", _is_token, _TOKENS, is_secret=True)
    )
    event_days: int = _setting(400, _number(36_500, 400))
    trusted_proxies: tuple[str, ...] = _setting(
        (), _names("a list of addresses or networks, none wider than /8 (IPv6: /16)", _is_proxy, '["127.0.0.1"]')
    )
    oidc_issuer: str = _setting("", _text("an address with https://", _is_issuer, "https://login.example.org"))
    oidc_client_id: str = _setting("", _text("text", lambda _: True, "dither"))
    oidc_client_secret: str = _setting("", _text("text", lambda _: True, "…", is_secret=True))
    oidc_roles: tuple[str, ...] = _setting(
        (), _names(f"a list of roles among {', '.join(_OPEN_ROLES)}", lambda role: role in _OPEN_ROLES, '["reader"]')
    )

    def __post_init__(self) -> None:
        """Refuse values that are not of their kinds, and combinations that do not work."""
        for item in fields(self):
            value, kind = getattr(self, item.name), item.metadata["kind"]
            if not kind.holds(value):
                raise kind.refusal(item.name, value, item.name)
        if not self.folder or not self.host:
            name = "host" if self.folder else "folder"
            raise InvalidArgument(name, "one", "none", f"name the {name}")
        if self.tick > self.time_limit:
            fix = "write tick = 0.25, or a longer time_limit"
            raise InvalidArgument("tick", f"at most time_limit, {self.time_limit:g}", f"{self.tick:g}", fix)
        if self.processes > 1 and "://" not in self.database:
            fix = "pass --database postgresql://…, or processes = 1"
            raise InvalidArgument("processes", "1 on SQLite", self.processes, fix)
        if self.oidc_issuer and not (self.oidc_client_id and self.oidc_client_secret and self.public_url):
            expected = "oidc_client_id, oidc_client_secret and public_url beside it"
            raise InvalidArgument("oidc_issuer", expected, "not all of them", "state them")

    @property
    def store_address(self) -> str:
        """Return the path or URL of the server's own database."""
        return self.database or str(Path(self.folder) / "dither-server.sqlite")

    @property
    def is_local(self) -> bool:
        """Return whether only this machine can connect."""
        return self.host in _LOCAL

    @property
    def cookies_are_secure(self) -> bool:
        """Return whether cookies are sent over HTTPS only."""
        if self.secure_cookies is not None:
            return self.secure_cookies
        return self.public_url.startswith("https://") or not self.is_local

    @property
    def url(self) -> str:
        """Return the address under which people reach the server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url.rstrip("/") or f"http://{host}:{self.port}"


KINDS: Mapping[str, Kind] = {item.name: item.metadata["kind"] for item in fields(Config) if item.name != "folder"}
"""The kind of each key of the configuration file."""


def variable_of(name: str) -> str:
    """Return the name of the environment variable of a key.

    >>> variable_of("tick")
    'DITHER_TICK'
    """
    return PREFIX + name.upper()


def read_config(
    folder: str, path: str | None = None, environment: Mapping[str, str] | None = None, **given: Any
) -> Config:
    """Read the configuration of a folder: the file, then environment variables, then ``given`` keywords that are not
    None; later ones win.

    >>> read_config(".", environment={"DITHER_TICK": "0.5"}, port=9000).tick
    0.5
    >>> read_config(".", environment={"DITHER_TIKC": "0.5"})
    Traceback (most recent call last):
    dither.InvalidArgument: DITHER_TIKC: expected a variable that dither reads, got an unknown one. Fix: write
    'DITHER_TICK', the nearest name.
    """
    file = Path(path) if path is not None else Path(folder) / FILE_NAME
    stated: dict[str, Any] = _contents(file) if path is not None or file.is_file() else {}
    for name in stated:
        if name not in KINDS:
            raise InvalidArgument(clip(name), "a key of the configuration", "an unknown one", closest(name, KINDS))
    stated |= _from_environment(os.environ if environment is None else environment)
    stated |= {name: value for name, value in given.items() if value is not None}
    lists = {name: tuple(value) for name, value in stated.items() if isinstance(value, list)}
    return Config(folder=folder, **(stated | lists))


def _from_environment(surroundings: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of environment variables with the prefix ``DITHER_``; refuse one that nothing reads."""
    names = {variable_of(name): name for name in KINDS}
    result = {}
    for variable, text in surroundings.items():
        if not variable.startswith(PREFIX) or variable in ELSEWHERE:
            continue
        if variable not in names:
            fix = closest(variable, [*names, *sorted(ELSEWHERE)])
            raise InvalidArgument(clip(variable), "a variable that dither reads", "an unknown one", fix)
        kind = KINDS[names[variable]]
        try:
            value = kind.read(text)
        except (ValueError, KeyError):
            raise kind.refusal(variable, text, variable) from None
        if not kind.holds(value):
            raise kind.refusal(variable, text, variable)
        result[names[variable]] = value
    return result


def _contents(file: Path) -> dict[str, Any]:
    """Read keys and values of a configuration file."""
    return contents(read_bytes(file, "config", "or leave it out"), "config", file)
