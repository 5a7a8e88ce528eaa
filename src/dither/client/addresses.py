"""The address of a server, and of a table on it: ``https://host/visits``.

Plain HTTP shows the token and the answers to everybody on the way, so it is refused except to this machine.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from dither.errors import InvalidArgument, WrongType
from dither.tables.card.values import clip

_PORTS = {"http": 80, "https": 443}
_SCHEME = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True)
class Address:
    """Where a server is: ``prefix`` is the path that its own paths begin with."""

    secure: bool
    host: str
    port: int
    prefix: str = ""

    def __str__(self) -> str:
        scheme = "https" if self.secure else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[scheme] else f":{self.port}"
        return f"{scheme}://{host}{port}{self.prefix}/"


def is_url(text: object) -> bool:
    """Whether a text is the address of a server, and not the path of a card.

    >>> is_url("https://host/visits"), is_url("visits.toml"), is_url("postgresql://host/db")
    (True, False, False)
    """
    return isinstance(text, str) and _SCHEME.match(text) is not None


def parse(url: str, table: str | None = None, *, allow_http: bool = False) -> tuple[Address, str | None]:
    """The server, and the table, of an address. Without ``table`` the last part of the path names it, if there is one.

    >>> address, table = parse("https://answers.example.org/visits")
    >>> print(address, table)
    https://answers.example.org/ visits
    >>> parse("http://answers.example.org/")
    Traceback (most recent call last):
    dither.InvalidArgument: url: expected https://, got http:// to another machine. Fix: use https://; allow_http=True \
would show the token to everybody on the way.
    """
    if not isinstance(url, str):
        raise WrongType("url", "text", type(url).__name__, "pass 'https://host/'")
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise _not_an_address(url) from None
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment or not url.isprintable():
        raise _not_an_address(url)
    if parts.username is not None or parts.password is not None:
        fix = "leave the name and the password out, and pass token="
        raise InvalidArgument("url", "an address", "one with a name or a password in it", fix)
    if scheme == "http" and not allow_http and not is_local(parts.hostname):
        fix = "use https://; allow_http=True would show the token to everybody on the way"
        raise InvalidArgument("url", "https://", "http:// to another machine", fix)
    segments = [part for part in parts.path.split("/") if part]
    if any(part in (".", "..") for part in segments):
        raise _not_an_address(url)
    if table is None and segments:
        table = unquote(segments.pop())
    prefix = "".join(f"/{part}" for part in segments)
    return Address(scheme == "https", parts.hostname, port or _PORTS[scheme], prefix), table


def is_local(host: str) -> bool:
    """Whether a host is this machine.

    >>> is_local("localhost"), is_local("127.0.0.1"), is_local("::1"), is_local("127.0.0.1.example.org")
    (True, True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _not_an_address(url: str) -> InvalidArgument:
    shown = clip(repr(url.partition("?")[0].rpartition("@")[2]))
    return InvalidArgument("url", "the address of a server", shown, "pass 'https://host/' or 'https://host/table'")
