"""Questions about a table on a server: checked here by its card, explained and answered there.

A question is sent with a key under which it is charged once: its own, or one that is drawn for a release that is to be
made anew. Whatever happens on the way, it can be sent again and costs nothing more. While the server works, the client
waits at its ticks; Ctrl-C cancels the question (what was charged by then stays charged).
"""

from __future__ import annotations

import secrets
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NoReturn

from dither.client.transport import Transport
from dither.errors import Cancelled, DitherError, InvalidArgument
from dither.guarantees import Guarantee
from dither.tables.answer import Answer
from dither.tables.engines import with_public_values
from dither.tables.execute.progress import Progress, is_watched
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.planning.explain import Explanation
from dither.tables.planning.plan import Plan, check
from dither.tables.question import Question
from dither.tables.table import Table
from dither.wire import answers, cards, explanations, guarantees, problems, questions, routes
from dither.wire import options as option_documents
from dither.wire.documents import fields

WAIT = 30.0
"""How many seconds one request waits for a question to end."""


class ServerAsker:
    """Answers the questions about one table through a server."""

    def __init__(self, transport: Transport, name: str, *, owns_transport: bool) -> None:
        self._transport = transport
        self._name = name
        self._owns_transport = owns_transport
        self._is_closed = False

    def plan(self, question: Question, options: ReleaseOptions) -> Plan:
        """How a question would be answered, computed here by the card."""
        card = question.card
        for part in question.query.aggregations:
            card = with_public_values(_NoPublicTables(), card, part)  # type: ignore[arg-type]  # all that it calls
        plan = plan_question(question.query, card, options)
        check(plan)
        return plan

    def explain(self, question: Question, options: ReleaseOptions) -> Explanation:
        """The explanation of the server, which knows what is left."""
        reply = self._send("POST", routes.explain(self._name), _request(question, options))
        return explanations.from_json(reply)

    def release(self, question: Question, options: ReleaseOptions) -> Answer:
        """Ask, wait, and fetch the answer."""
        key = options.key
        if key is None and options.again:
            key = secrets.token_hex(16)  # so that sending it twice pays once
        headers = {} if key is None else {routes.KEY_HEADER: _header(key)}
        job = self._send("POST", routes.questions(self._name), _request(question, options), headers)
        try:
            with _progress():
                while _state(job) == "waiting":
                    job = self._send("GET", routes.job(_id(job), WAIT), wait=WAIT)
        except KeyboardInterrupt:
            with suppress(DitherError):
                self._send("DELETE", routes.job(_id(job)))
            raise
        if _state(job) == "answered":
            return answers.from_json(job.get("answer"))
        if _state(job) == "cancelled":
            fix = "ask again: what was charged under the same key is not charged again"
            raise Cancelled("question", "an answer", "that it was cancelled", fix)
        raise problems.from_json(job.get("problem"))

    def left(self, table: Table) -> Guarantee | None:
        """What the dataset has left."""
        exact = self._table().get("left_exact")
        return None if exact is None else guarantees.from_json(exact, "left")

    def left_text(self, table: Table) -> str:
        """What whoever asks may still spend, in words."""
        return str(self._table()["left"])

    def close(self, table: Table) -> None:
        """Close the connection, if the table has one of its own."""
        self._is_closed = True
        if self._owns_transport:
            self._transport.close()

    def open_table(self) -> Table:
        """The table, with the card that the server has now."""
        return Table.asked_through(cards.from_json(self._table()["card"]), self)

    def _table(self) -> dict[str, Any]:
        names = ("left_exact", "granted", "open", "gaps", "own_limit", "own_left", "whole_limit")
        return fields(self._send("GET", routes.table(self._name)), "table", ("card", "left"), names)

    def _send(
        self, method: str, path: str, document: object = None, headers: dict[str, str] | None = None, wait: float = 0.0
    ) -> Any:
        if self._is_closed:
            fix = "this table is closed; open it again with dither.connect"
            raise InvalidArgument("table", "one that is open", "one that was closed", fix)
        return self._transport.request(method, path, document, headers=headers, wait=wait).document


class _NoPublicTables:
    """Public tables are on the server: a question that groups by their values is planned there."""

    def public_values(self, table: str, _columns: object, _most: int) -> NoReturn:
        fix = "call explain(…), which the server answers"
        raise InvalidArgument("plan", "keys that the card lists", f"those of the public table {table}", fix)

    public_rows = public_values


def _request(question: Question, options: ReleaseOptions) -> dict[str, Any]:
    return {"question": questions.to_json(question), "options": option_documents.to_json(options)}


def _header(key: str) -> str:
    """A key as a header: printable ASCII."""
    if not key or len(key) > routes.MAX_KEY or not all(" " < character <= "~" for character in key):
        expected = f"1 to {routes.MAX_KEY} printable ASCII characters without spaces, on a server"
        raise InvalidArgument("key", expected, "another text", "choose another")
    return key


def _state(job: Any) -> str:
    state = job.get("state") if isinstance(job, dict) else None
    if state not in ("waiting", "answered", "refused", "failed", "cancelled"):
        raise problems.from_json(None)
    return str(state)


def _id(job: Any) -> str:
    return str(job.get("id")) if isinstance(job, dict) else ""


class _Waiting(Progress):
    """How long the server has been asked; how far it is, it does not say."""

    def text(self, seconds: float) -> str:
        """What is shown after so many seconds."""
        return f"dither: the server works on it, {int(seconds)} s"


def _progress() -> AbstractContextManager[object]:
    return _Waiting(1, sys.stderr) if sys.stderr is not None and is_watched() else nullcontext()
