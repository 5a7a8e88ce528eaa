"""Questions: explain, ask, wait for the answer, cancel."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool

from dither.errors import DitherError, InvalidArgument, ServerUnavailable
from dither.ledger.recorded import canonical
from dither.server import schema
from dither.server.context import Context
from dither.server.jobs import Asked
from dither.server.limits import Places
from dither.server.principal import Principal
from dither.server.problems import as_error, from_json
from dither.server.results import Job
from dither.server.roles import authorize, may
from dither.server.times import iso
from dither.tables.planning.explain import Explanation
from dither.wire import explanations, routes
from dither.wire import options as wire_options
from dither.wire.documents import fields, is_plain, text
from dither.wire.questions import NAMES, words

_MOST_EXPLAINED = 24
"""How many explanations may be under way: fewer than there are threads, which others need."""
_RECORDED = "recorded-"
"""How the id of a job begins that was answered before it was asked."""
_RECORDED_ANSWER = sa.select(schema.answers.c.id, schema.answers.c.at).where(
    schema.answers.c.request == sa.bindparam("asked"),
    schema.answers.c.user == sa.bindparam("name"),
    schema.answers.c.dataset == sa.bindparam("table"),
    schema.answers.c.at <= sa.bindparam("now"),
)


class Questions:
    """Questions of analysts. ``question`` is SQL, or a question in the form of :mod:`dither.wire`; ``options`` are
    those of :class:`dither.ReleaseOptions` by name. Who asks is the principal: ``analyst`` and ``key`` among the
    options are refused.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        of_one = context.config.max_questions_each
        self._explaining = Places("explanations", most_of_one=of_one, most_of_all=_MOST_EXPLAINED)

    def explain(
        self, who: Principal, table: str, question: str | Mapping[str, Any], options: Mapping[str, Any]
    ) -> Explanation:
        """Mechanisms, expected errors, the cost, what is left; reads no rows and charges nothing."""
        context = self._context
        with context.acting(who, "questions.explain", table):
            context.check_granted(who, table)
            document, stated = _question(question), wire_options.to_json(wire_options.from_json(dict(options)))
            message_ = {
                "do": "explain", "card": context.folder.get(table).document, "question": document, "options": stated,
                "analyst": who.name,
            }  # fmt: skip
        with self._explaining.taken(who.name):  # each holds a thread, and they stand in one queue
            event = context.explaining.call(message_, context.config.time_limit)
        if event is None:
            expected = "a question that can be planned within the limits"
            raise ServerUnavailable("question", expected, "another", "ask something simpler")
        if "problem" in event:  # what a question may not be is no event: people try
            raise as_error(from_json(event["problem"]))
        return explanations.from_json(event["explanation"])

    def ask(
        self,
        who: Principal,
        table: str,
        question: str | Mapping[str, Any],
        options: Mapping[str, Any],
        *,
        key: str | None = None,
    ) -> Job:
        """Ask. A recorded answer is there at once (``state`` is ``answered``); otherwise the job waits: see
        :meth:`wait`. ``key`` is the ``Idempotency-Key``: within one analyst's keys, it names a release for ever.
        """
        context = self._context
        with context.acting(who, "questions.ask", table):
            context.check_granted(who, table)
            context.questions.take(who.name)
            asked = self._asked(who, table, question, options, key)
            job = self._recorded(asked)
            if job is not None:
                return job
            return context.jobs.start(asked, context.event(who.name, "questions.ask", table))

    def recorded(
        self, who: Principal, table: str, question: str | Mapping[str, Any], options: Mapping[str, Any], key: str | None
    ) -> Job | None:
        """The answer that is recorded for this very question, if there is one and the principal may have it.

        It only reads the server's own database. What is refused is None here: :meth:`ask` says why, and logs it.
        """
        context = self._context
        if not may(who, "questions.ask") or not context.is_granted(who.name, table):
            return None
        try:
            job = self._recorded(self._asked(who, table, question, options, key))
        except DitherError:
            return None
        if job is not None:
            context.questions.take(who.name)
        return job

    def _asked(
        self, who: Principal, table: str, question: str | Mapping[str, Any], options: Mapping[str, Any], key: str | None
    ) -> Asked:
        """A question, checked as far as that is possible without its table."""
        scoped = scoped_key(who, key)
        served = self._context.folder.get(table)
        document = _question(question)
        stated = wire_options.to_json(wire_options.from_json(dict(options), key=scoped))
        request = _request([who.name, served.identity, document, stated, scoped])
        if stated.get("again") and key is None:
            request = _request([request, secrets.token_hex(16)])
        message_ = {
            "do": "ask", "card": served.document, "question": document, "options": stated, "analyst": who.name,
            "key": scoped,
        }  # fmt: skip
        return Asked(who.name, table, "question", words(document), stated, request, message_)

    def _recorded(self, asked: Asked) -> Job | None:
        """The answer that is recorded for this very request, from the store: no worker is needed."""
        values = {"asked": asked.request, "name": asked.user, "table": asked.dataset, "now": self._context.clock.now()}
        row = self._context.store.one(_RECORDED_ANSWER, values)
        if row is None:
            return None
        return Job(_RECORDED + row.id, asked.dataset, asked.question, "answered", iso(row.at), answer_id=row.id)

    async def wait(self, who: Principal, job: str, *, seconds: float = 30.0) -> Job:
        """The job as it stands at the first tick at which it has ended, or after so many seconds."""
        clock = self._context.clock
        until = clock.now() + seconds
        while True:
            current = await run_in_threadpool(self.job, who, job)
            now = clock.now()
            if current.state != "waiting" or now >= until:
                return current
            look = await run_in_threadpool(self._context.jobs.next_look, current, now)
            await asyncio.sleep(max(0.001, min(look, until) - clock.now() + 0.001))

    def job(self, who: Principal, job: str) -> Job:
        """An own question as it stands."""
        authorize(who, "questions.job")
        if job.startswith(_RECORDED):
            answers = schema.answers
            same = answers.c.id == job.removeprefix(_RECORDED), answers.c.user == who.name
            there = answers.c.at <= self._context.clock.now()
            row = self._context.store.one(sa.select(answers).where(*same, there))
            if row is not None:
                return Job(job, row.dataset, row.question, "answered", iso(row.at), row.kind, row.id)
        return self._context.jobs.get(job, who.name)

    def jobs(self, who: Principal) -> tuple[Job, ...]:
        """The own questions that wait."""
        authorize(who, "questions.job")
        return self._context.jobs.waiting(who.name)

    def cancel(self, who: Principal, job: str) -> Job:
        """Cancel an own question: it is stopped at its next tick, if it has not ended by then. What was charged stays
        charged."""
        with self._context.acting(who, "questions.cancel", job, logged=True):
            return self._context.jobs.cancel(job, who.name)


def scoped_key(who: Principal, key: str | None) -> str | None:
    """The ledger's key for a key of an analyst: nobody can name another's.

    >>> scoped_key(Principal("ann", frozenset()), "monday")
    'ann/monday'
    """
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= routes.MAX_KEY or not key.isprintable() or not key.isascii():
        expected = f"1 to {routes.MAX_KEY} printable ASCII characters"
        raise InvalidArgument("Idempotency-Key", expected, "others", "choose another key")
    return f"{who.name}/{key}"


def _question(question: str | Mapping[str, Any]) -> dict[str, Any]:
    """A question as the wire has it; what it means is for the worker to say."""
    document = {"sql": question} if isinstance(question, str) else dict(question)
    given = fields(document, "question", (), NAMES)
    if ("sql" in given) == ("tree" in given):
        raise InvalidArgument("question", "sql or tree", "both or none", 'write {"sql": "SELECT …"}')
    if "sql" in given and not is_plain(text(given["sql"], "question.sql")):
        fix = "take the odd characters out"
        raise InvalidArgument("question.sql", "valid Unicode without NUL", "a text that is not", fix)
    return given


def _request(parts: list[Any]) -> str:
    return hashlib.sha256(canonical(parts).encode("utf-8", "surrogatepass")).hexdigest()
