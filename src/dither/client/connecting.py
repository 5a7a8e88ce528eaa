"""``dither.connect``: the tables of a server, with the objects that :func:`dither.open` gives."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NoReturn, SupportsIndex, overload

from dither import arguments
from dither.client.transport import Token, Transport, parse
from dither.errors import Cancelled, DitherError, InvalidArgument, WrongType
from dither.ledger.accounts import Remaining
from dither.present import markup
from dither.public_module import public_in
from dither.release.pipeline import Progress, is_interactive
from dither.tables.answer import Answer
from dither.tables.card.model import with_recent_profile
from dither.tables.card.values import clip, closest
from dither.tables.codec import fields, from_json
from dither.tables.engines import with_public_values
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.planning.explain import Explanation
from dither.tables.planning.plan import QuestionPlan, check_statements
from dither.tables.query.postprocess import PostProcessedTable
from dither.tables.query.tree import PostProcessing
from dither.tables.question import Question
from dither.tables.sql.public_subqueries import ComputePublic
from dither.tables.table import Table
from dither.wire.protocol import (
    KEY_HEADER,
    MAX_KEY,
    TABLES,
    explain_path,
    job_path,
    problem_from_json,
    questions_path,
    table_path,
)
from dither.wire.requests import options_to_json, question_to_json
from dither.wire.results import answer_from_json, card_from_json, explanation_from_json

TOKEN_VARIABLE = "DITHER_TOKEN"


@public_in("dither")
class Connection:
    """A server with several tables: ``connection["visits"]`` is one of them, ``connection.tables`` are their names.

    It is what :func:`dither.connect` returns where no table is named. A connection cannot be copied or pickled.

    >>> from dither.client.transport import parse
    >>> Connection(Transport(parse("https://answers.example.org/")[0], None))
    Connection('https://answers.example.org/')
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the names of the tables that the owner of the token may ask."""
        return tuple(item["name"] for item in _listed(self._transport))

    def __getitem__(self, name: str) -> Table:
        """Open the table with this name."""
        return _table(self._transport, name, owns_transport=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        self._transport.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be copied or pickled: a connection is where it was opened."""
        fix = "call dither.connect where it is used"
        raise WrongType("Connection", "the one that was opened", "a copy or a pickle of it", fix)

    def __repr__(self) -> str:
        return f"Connection({str(self._transport.address)!r})"

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the tables and their remaining budgets."""
        lines = [
            [item["name"], str(from_json(item.get("left"), Remaining, "table.left"))]
            for item in _listed(self._transport)
        ]
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

    Questions are checked here by the table's card, answered by the server, and charged to the owner of the token. A
    request that fails in transit is sent again, and is charged once.

    Parameters
    ----------
    url
        The address of the server, ``"https://host/"``, or of one of its tables, ``"https://host/visits"``.
    token
        A personal token from the server's page; by default the environment variable DITHER_TOKEN. It appears in no
        message and no ``repr``.
    table
        The name of the table, if the address does not contain it. With it, type checkers know that a table is returned.
    ca_file
        A file with certificates of authorities, in PEM, to use instead of the system's.
    allow_http
        Send the token over plain HTTP to another machine, where it can be read in transit: only for networks that are
        encrypted in another way.
    timeout
        The seconds that a response may take, besides the time that the server works on a question.

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
    """Open a table of a server; an unknown name is refused with the known ones."""
    if not isinstance(name, str):
        raise WrongType("table", "its name", type(name).__name__, "pass its name as text")
    try:
        return ServerBackend(transport, name, owns_transport=owns_transport).open_table()
    except InvalidArgument as error:
        names = [item["name"] for item in _listed(transport)]
        if name in names:
            raise
        expected = f"one of {', '.join(names)}" if names else "a table that you may ask"
        fix = closest(name, names) if names else "ask a steward for a grant"
        raise InvalidArgument("table", expected, repr(clip(name)), fix) from error


def _listed(transport: Transport) -> list[dict[str, Any]]:
    """Return the entries of the tables that the owner of the token may ask."""
    document = transport.request("GET", TABLES).document
    tables = document.get("tables") if isinstance(document, dict) else None
    if not isinstance(tables, list) or not all(isinstance(item, dict) and "name" in item for item in tables):
        raise problem_from_json(document)
    return [item for item in tables if item.get("granted", True)]


WAIT = 30.0
"""The seconds that one request waits for a question to end; it is repeated until the question has ended."""


class ServerBackend:
    """The backend of a table on a server: it explains and answers questions there."""

    def __init__(self, transport: Transport, name: str, *, owns_transport: bool) -> None:
        self._transport = transport
        self._name = name
        self._owns_transport = owns_transport
        self._is_closed = False

    def plan(self, question: Question, options: ReleaseOptions) -> QuestionPlan:
        """Plan a question on this machine, by the card that the server shows."""
        age = options.profile_age
        card = question.card if age is None else with_recent_profile(question.card, age)
        for part in question.query.aggregations:
            card = with_public_values(_NoPublicTables(), card, part)  # type: ignore[arg-type]  # all that it calls
        plan = plan_question(question.query, card, options)
        check_statements(plan)
        return plan

    def explain(self, question: Question, options: ReleaseOptions, plan: QuestionPlan | None = None) -> Explanation:
        """Return the server's explanation of a question, which includes the remaining budget; ``plan`` is not
        needed."""
        reply = self._send("POST", explain_path(self._name), _request(question, options))
        return explanation_from_json(reply)

    def release(self, question: Question, options: ReleaseOptions, plan: QuestionPlan | None = None) -> Answer:
        """Ask a question, wait for it to end, and return the answer; ``plan`` is not needed."""
        key = options.key
        if key is None and options.again:
            key = secrets.token_hex(16)  # a repeated request with this key is charged once
        headers = {} if key is None else {KEY_HEADER: _header(key)}
        job = self._send("POST", questions_path(self._name), _request(question, options), headers)
        try:
            with _progress():
                while _state(job) == "waiting":
                    job = self._send("GET", job_path(_id(job), WAIT), wait=WAIT)
        except KeyboardInterrupt:
            with suppress(DitherError):
                self._send("DELETE", job_path(_id(job)))
            raise
        if _state(job) == "answered":
            return answer_from_json(job.get("answer"))
        if _state(job) == "cancelled":
            fix = "ask again: what was charged under the same key is not charged again"
            raise Cancelled("question", "an answer", "a cancellation", fix)
        raise problem_from_json(job.get("problem"))

    def compute_public(self, table: Table) -> ComputePublic:
        """Return a function that asks the server to compute SQL about public tables alone, which is free."""

        def compute(post: PostProcessing) -> PostProcessedTable:
            """Ask the SQL as a question; the epsilon, which a request needs, is not spent."""
            answer = table.sql(post.sql).release(epsilon=1)
            return PostProcessedTable(answer.columns, answer.types, list(answer.rows))

        return compute

    def remaining(self, table: Table) -> Remaining:
        """Return the remaining budget of the table, and of the caller."""
        result: Remaining = from_json(self._table()["left"], Remaining, "table.left")
        return result

    def close(self, table: Table) -> None:
        """Close the table, and the connection if it is the table's own."""
        self._is_closed = True
        if self._owns_transport:
            self._transport.close()

    def open_table(self) -> Table:
        """Return the table with the current card of the server."""
        return Table.remote(card_from_json(self._table()["card"]), self)

    def _table(self) -> dict[str, Any]:
        """Return the server's JSON object about the table: its public card, and the remaining budget."""
        names = ("granted", "open", "gaps", "own_limit", "own_left", "whole_limit")
        return fields(self._send("GET", table_path(self._name)), "table", ("card", "left"), names)

    def _send(
        self, method: str, path: str, document: object = None, headers: dict[str, str] | None = None, wait: float = 0.0
    ) -> Any:
        """Send a request about the table, and return the JSON of the response.

        ``method`` and ``path`` are those of HTTP, ``document`` is the JSON body (None: no body), and ``wait`` is how
        many seconds more than usual the server may take. A closed table is refused.
        """
        if self._is_closed:
            fix = "this table is closed; open it again with dither.connect"
            raise InvalidArgument("table", "one that is open", "one that was closed", fix)
        return self._transport.request(method, path, document, headers=headers, wait=wait).document


class _NoPublicTables:
    """Stands in for the engine when a question is planned locally, and refuses to read public tables: they are on the
    server."""

    def public_values(self, table: str, _columns: object, _most: int) -> NoReturn:
        """Refuse to list the values of a public table."""
        fix = "call explain(…), which the server answers"
        raise InvalidArgument("plan", "keys that the card lists", f"those of the public table {table}", fix)

    public_rows = public_values


def _request(question: Question, options: ReleaseOptions) -> dict[str, Any]:
    """Return the JSON of a question and its options."""
    return {"question": question_to_json(question), "options": options_to_json(options)}


def _header(key: str) -> str:
    """Return a key as the value of an HTTP header; refuse other than printable ASCII."""
    if not key or len(key) > MAX_KEY or not all(" " < character <= "~" for character in key):
        expected = f"1 to {MAX_KEY} printable ASCII characters without spaces, on a server"
        raise InvalidArgument(
            "key", expected, "a longer key, or one with other characters", "choose a short, plain key"
        )
    return key


def _state(job: Any) -> str:
    """Return the state in the JSON of a job; refuse an unknown one."""
    state = job.get("state") if isinstance(job, dict) else None
    if state not in ("waiting", "answered", "refused", "failed", "cancelled"):
        raise problem_from_json(None)
    return str(state)


def _id(job: Any) -> str:
    """Return the id in the JSON of a job."""
    return str(job.get("id")) if isinstance(job, dict) else ""


class _Waiting(Progress):
    """Shows how long the server has been working on a question."""

    def text(self, seconds: float) -> str:
        """Return the line that is shown after this many seconds."""
        return f"dither: the server works on it, {int(seconds)} s"


def _progress() -> AbstractContextManager[object]:
    """Return the block that shows how long a question takes, on a terminal or in a notebook."""
    return _Waiting(1, sys.stderr) if sys.stderr is not None and is_interactive() else nullcontext()
