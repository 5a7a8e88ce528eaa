"""``dither.connect``: the tables of a server, with the objects that :func:`dither.open` gives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NoReturn, SupportsIndex, overload

from dither import arguments
from dither.client.addresses import parse
from dither.client.asking import ServerAsker
from dither.client.transport import Token, Transport
from dither.errors import InvalidArgument, WrongType
from dither.present import markup
from dither.public_module import public_in
from dither.tables.card.values import clip, closest
from dither.tables.table import Table
from dither.wire import problems, routes

TOKEN_VARIABLE = "DITHER_TOKEN"


@public_in("dither")
class Connection:
    """A server with several tables: ``connection["visits"]`` is one of them, ``connection.tables`` are their names.

    It is what :func:`dither.connect` returns where no table is named. A connection cannot be copied or pickled.

    >>> from dither.client.addresses import parse
    >>> Connection(Transport(parse("https://answers.example.org/")[0], None))
    Connection('https://answers.example.org/')
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that may be asked."""
        return tuple(item["name"] for item in _listed(self._transport))

    def __getitem__(self, name: str) -> Table:
        """One of the tables."""
        return _table(self._transport, name, owns_transport=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def close(self) -> None:
        """Close the connection; a request opens it again."""
        self._transport.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Neither ``copy`` nor ``pickle``: a connection is where it was opened."""
        fix = "call dither.connect where it is used"
        raise WrongType("Connection", "the one that was opened", "a copy or a pickle of it", fix)

    def __repr__(self) -> str:
        return f"Connection({str(self._transport.address)!r})"

    def _repr_html_(self) -> str:
        """For a notebook: the tables and what is left of each."""
        lines = [[item["name"], str(item.get("left", ""))] for item in _listed(self._transport)]
        title = markup.heading(f"Tables on {self._transport.address}")
        return markup.block(title, markup.table(["table", "left"], lines, [False, False]))


@overload
def connect(
    url: str,
    *,
    token: str | None = None,
    table: str,
    ca_file: str | None = None,
    allow_http: bool = False,
    timeout: float = 60,
) -> Table: ...
@overload
def connect(
    url: str,
    *,
    token: str | None = None,
    table: None = None,
    ca_file: str | None = None,
    allow_http: bool = False,
    timeout: float = 60,
) -> Table | Connection: ...
def connect(
    url: str,
    *,
    token: str | None = None,
    table: str | None = None,
    ca_file: str | None = None,
    allow_http: bool = False,
    timeout: float = 60,
) -> Table | Connection:
    """Connect to a server (``dither serve``): the same tables, questions and answers as with :func:`dither.open`.

    Questions are checked here by the table's card and answered there, with whatever the server charges whoever has the
    token. A request that broke on the way is sent again, and is charged once.

    Parameters
    ----------
    url
        The address of the server, ``"https://host/"``, or of one of its tables, ``"https://host/visits"``.
    token
        A personal token, as the server's page makes them; by default that in the environment variable DITHER_TOKEN. It
        is in no message and no ``repr``.
    table
        Which table, where the address does not say. A type checker knows by this alone that a table is returned.
    ca_file
        A file with the certificates of authorities, in PEM, where they are not the system's.
    allow_http
        Send the token over plain HTTP to another machine. It can be read on the way: for networks that are encrypted
        otherwise.
    timeout
        How many seconds an answer may take to begin, beside the time in which the server works.

    Returns
    -------
    Table or Connection
        The :class:`~dither.Table`, if one is named or the server shows only one; otherwise a connection, of which
        ``connection["visits"]`` is a table.

    Examples
    --------
    >>> import dither as dp
    >>> dp.connect("http://answers.example.org/visits", token="…")
    Traceback (most recent call last):
    dither.InvalidArgument: url: expected https://, got http:// to another machine. Fix: use https://; allow_http=True \
would show the token to everybody on the way.
    """
    address, name = parse(url, table, allow_http=allow_http)
    given = token if token is not None else os.environ.get(TOKEN_VARIABLE)
    seconds = arguments.positive(timeout, "timeout")
    transport = Transport(address, None if given is None else Token(given), timeout=seconds, ca_file=ca_file)
    try:
        if name is None:
            listed = _listed(transport)
            if len(listed) != 1:
                return Connection(transport)
            name = str(listed[0]["name"])
        return _table(transport, name, owns_transport=True)
    except BaseException:
        transport.close()
        raise


def _table(transport: Transport, name: object, *, owns_transport: bool) -> Table:
    if not isinstance(name, str):
        raise WrongType("table", "its name", type(name).__name__, "pass its name as text")
    try:
        return ServerAsker(transport, name, owns_transport=owns_transport).open_table()
    except InvalidArgument as error:
        names = [item["name"] for item in _listed(transport)]
        if name in names:
            raise
        expected = f"one of {', '.join(names)}" if names else "a table that you may ask"
        fix = closest(name, names) if names else "ask a steward for a grant"
        raise InvalidArgument("table", expected, repr(clip(name)), fix) from error


def _listed(transport: Transport) -> list[dict[str, Any]]:
    """The tables that whoever has the token may ask."""
    document = transport.request("GET", routes.TABLES).document
    tables = document.get("tables") if isinstance(document, dict) else None
    if not isinstance(tables, list) or not all(isinstance(item, dict) and "name" in item for item in tables):
        raise problems.from_json(document)
    return [item for item in tables if item.get("granted", True)]
