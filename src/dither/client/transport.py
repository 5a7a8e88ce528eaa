"""Requests to a server over one connection, with the token of the caller.

Certificates are verified. Redirects are not followed: the token is sent to the stated address only. It appears in no
message and no ``repr``. A connection that breaks is opened again and the request repeated; all requests here may be
repeated, since a question is charged once under its key.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from dither.errors import AccessDenied, InvalidArgument, ServerUnavailable, WrongType
from dither.stateful import process
from dither.tables.card.values import clip
from dither.tables.codec import read
from dither.wire.protocol import problem_from_json

MAX_BODY = 256 * 1024 * 1024
"""The largest response body that is read, in bytes."""
ATTEMPTS = 4
"""The most times that a request is sent."""
_PAUSES = (0.0, 0.2, 1.0)
_MAX_RETRY_AFTER = 30.0


class Token:
    """A secret that neither ``repr`` nor errors show.

    >>> Token("dither_abc")
    Token(…)
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        """Keep a secret; refuse text that no token can be."""
        if not isinstance(secret, str):
            raise WrongType("token", "text", type(secret).__name__, "pass the token that the page showed")
        secret = secret.strip()
        if not secret or len(secret) > 4096 or not all("!" <= character <= "~" for character in secret):
            fix = "pass token=, or set DITHER_TOKEN, as the page showed it"
            raise InvalidArgument(
                "token", "printable ASCII characters without spaces", "an empty, longer or unprintable text", fix
            )
        self._secret = secret

    def header(self) -> str:
        """Return the value of the header Authorization."""
        return f"Bearer {self._secret}"

    def __repr__(self) -> str:
        return "Token(…)"

    def __reduce__(self) -> str:
        raise WrongType("token", "to stay where it is", "a copy or a pickle", "pass the token where it is used")


class Reply(NamedTuple):
    """A successful response: its status and its JSON."""

    status: int
    document: Any


class _Connection(http.client.HTTPConnection):
    """A connection that closes when it is garbage collected, for example with the thread that owns it."""

    def __del__(self) -> None:
        self.close()


class _SecureConnection(http.client.HTTPSConnection):
    """A TLS connection that closes when it is garbage collected."""

    def __del__(self) -> None:
        self.close()


class _OfThread(threading.local):
    """The connection of a thread, and the process that opened it."""

    connection: http.client.HTTPConnection | None = None

    def __init__(self) -> None:
        self.process = process()


class Transport:
    """Sends requests to a server. Threads may share it: each has its own connection, opened at first use."""

    def __init__(
        self, address: Address, token: Token | None, *, timeout: float = 60.0, ca_file: str | None = None
    ) -> None:
        """Prepare requests to a server; nothing is sent yet.

        Parameters
        ----------
        address, token
            The server, and the secret that proves who asks; None for requests without one.
        timeout
            Seconds after which a silent server counts as unavailable.
        ca_file
            A file of certificates to trust instead of those of the system.
        """
        self.address = address
        self.timeout = timeout
        self._token = token
        self._context = _tls(ca_file) if address.secure else None
        self._own = _OfThread()

    def __repr__(self) -> str:
        return f"Transport({str(self.address)!r})"

    def request(
        self,
        method: str,
        path: str,
        document: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        wait: float = 0.0,
    ) -> Reply:
        """Send a request and return the response; a problem document is raised as the error that it describes.

        ``method`` and ``path`` are those of HTTP, ``document`` is sent as JSON (None: no body), and ``headers`` are
        added to the usual ones. ``wait`` is the time in seconds that the server may take beyond the timeout. A request
        that fails in transit is repeated after a pause; one refused with status 429 or 503, after the time in the
        header Retry-After.
        """
        body = None if document is None else json.dumps(document, allow_nan=False).encode()
        for attempt in range(ATTEMPTS):
            last = attempt == ATTEMPTS - 1
            try:
                status, pause, content = self._once(method, path, body, dict(headers or {}), self.timeout + wait)
            except ssl.SSLCertVerificationError:
                fix = "check the address; for a certificate of your own, pass ca_file="
                raise ServerUnavailable(
                    "server", "a certificate that can be verified", "one that cannot", fix
                ) from None
            except (OSError, http.client.HTTPException) as error:
                if last:
                    raise self._unreachable(error) from None
                time.sleep(_PAUSES[attempt])
                continue
            if status in (429, 503) and pause is not None and not last:
                time.sleep(pause)
                continue
            return self._reply(status, content)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Close the connection of this thread; the next request opens a new one."""
        connection, self._own.connection = self._own.connection, None
        if connection is not None and self._own.process == process():
            connection.close()

    def _once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], timeout: float
    ) -> tuple[int, float | None, bytes]:
        """Send a request once, and return the status, a pause in seconds, and the body.

        The pause is that of the header Retry-After (None: no header). ``body`` is sent unchanged (None: no body) and
        ``timeout`` is in seconds. After any failure the connection is closed.
        """
        try:
            connection = self._open(timeout)
            connection.request(method, self.address.prefix + path, body, self._headers(headers, body))
            response = connection.getresponse()
            content = response.read(MAX_BODY + 1)
            if len(content) > MAX_BODY:
                raise http.client.HTTPException("too large")
            return response.status, _seconds(response.getheader("Retry-After")), content
        except BaseException:
            self.close()  # what is left of the answer must not be read as that of the next request
            raise

    def _open(self, timeout: float) -> http.client.HTTPConnection:
        """Return the open connection of this thread, never one that a parent process opened."""
        own = self._own
        if own.process != process():  # the parent's connection is the parent's
            own.process, own.connection = process(), None
        connection = own.connection
        if connection is None:
            host, port = self.address.host, self.address.port
            if self._context is None:
                connection = _Connection(host, port, timeout=timeout)
            else:
                connection = _SecureConnection(host, port, timeout=timeout, context=self._context)
            connection.connect()
            own.connection = connection
        connection.sock.settimeout(timeout)
        return connection

    def _headers(self, headers: dict[str, str], body: bytes | None) -> dict[str, str]:
        """Return the headers of a request, with the token."""
        stated = {"Accept": "application/json", "User-Agent": "dither", **headers}
        if body is not None:
            stated["Content-Type"] = "application/json"
        if self._token is not None:
            stated["Authorization"] = self._token.header()
        return stated

    def _reply(self, status: int, content: bytes) -> Reply:
        """Return the response with its parsed JSON; raise redirects, errors and anything but JSON.

        ``status`` is that of HTTP, and ``content`` the body; an empty one gives the document None.
        """
        if 300 <= status < 400:
            fix = "pass the address that it redirects to"
            raise ServerUnavailable("server", "an answer of dither serve", f"a redirect (status {status})", fix)
        try:
            document = read(content) if content else None
        except InvalidArgument:
            document = None
        if status >= 400:
            error = problem_from_json(document, status)
            if status == 401 and self._token is None:
                fix = "pass token=, or set DITHER_TOKEN; the page makes one under Tokens"
                raise AccessDenied("token", "a token", "none", fix)
            raise error
        if document is None and content:
            raise problem_from_json(None, status)
        return Reply(status, document)

    def _unreachable(self, error: Exception) -> ServerUnavailable:
        """Return the error for a server that cannot be reached."""
        got = (
            "no answer in time"
            if isinstance(error, TimeoutError)
            else f"a connection that fails ({type(error).__name__})"
        )
        fix = "check the address and the network, then ask again: the same question is charged once"
        return ServerUnavailable("server", f"an answer from {self.address}", got, fix)


def _tls(ca_file: str | None) -> ssl.SSLContext:
    """Return the TLS settings: certificates are verified, by the system's authorities or by those in a file."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError):
        raise InvalidArgument(
            "ca_file", "a file of certificates in PEM", "a file that is not one", "check its path"
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _seconds(header: str | None) -> float | None:
    """Return the seconds that the header Retry-After states, up to a limit; None if it states none."""
    if header is None or not header.isascii() or not header.strip().isdigit() or len(header) > 9:
        return None
    return min(float(header), _MAX_RETRY_AFTER)


_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """The address of a server; ``prefix`` is the path before the server's own paths."""

    secure: bool
    host: str
    port: int
    prefix: str = ""

    def __str__(self) -> str:
        scheme = "https" if self.secure else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[scheme] else f":{self.port}"
        return f"{scheme}://{host}{port}{self.prefix}/"


def parse(url: str, table: str | None = None, *, allow_http: bool = False) -> tuple[Address, str | None]:
    """Return the address of a server and the name of a table on it, from the URL of either.

    If ``table`` is None, the last part of the URL's path is the name of the table, and the name is None for an empty
    path. ``allow_http`` permits unencrypted connections to other machines than this one.

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
    """Return whether a host is this machine.

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
    """Return the error for a text that is not the URL of a server; a password and a query in it are not shown."""
    shown = clip(repr(url.partition("?")[0].rpartition("@")[2]))
    return InvalidArgument("url", "the address of a server", shown, "pass 'https://host/' or 'https://host/table'")
