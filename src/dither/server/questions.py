"""Questions, publications and their recorded answers: explain, ask, wait, cancel, read, publish to readers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool

from dither.errors import DitherError, InvalidArgument
from dither.ledger.recorded import canonical
from dither.publish import plan_file
from dither.server import schema
from dither.server.cards import fingerprint
from dither.server.context import Context
from dither.server.errors import Conflict, NotFound, printable
from dither.server.jobs import Job, Submission
from dither.server.limits import ConcurrencyLimit
from dither.server.roles import Principal, authorize, may
from dither.server.store import iso
from dither.tables.answer import Answer
from dither.tables.card.model import Card
from dither.tables.codec import fields, from_json, is_storable, text
from dither.tables.planning.explain import Explanation
from dither.tables.planning.profile_plan import ProfilePlan, plan_profile
from dither.wire.protocol import MAX_KEY
from dither.wire.requests import QUESTION, options_from_json, options_to_json, question_words
from dither.wire.results import answer_from_json, explanation_from_json

_MAX_EXPLANATIONS = 24
"""How many explanations may run or wait at a time. Each holds a thread, and other requests need threads, too."""
_RECORDED = "recorded-"
"""The prefix of a job's id where the answer was recorded by an earlier question; the id of the answer follows."""
_MOST = 1000
_MAX_TITLE = 200
_answers = schema.answers
_BY_REQUEST = sa.select(_answers.c.id, _answers.c.at).where(
    _answers.c.request == sa.bindparam("asked"),
    _answers.c.user == sa.bindparam("name"),
    _answers.c.dataset == sa.bindparam("table"),
    _answers.c.part == 0,
    _answers.c.at <= sa.bindparam("now"),
)
_BY_ID = sa.select(_answers).where(_answers.c.id == sa.bindparam("answer"), _answers.c.at <= sa.bindparam("now"))

QuestionInput = str | Mapping[str, Any]
"""SQL, or a question in the form of :mod:`dither.wire`."""


@dataclass(frozen=True)
class AnswerLine:
    """An answer in a list, without its numbers. ``published`` is when it was published to readers, None if it was
    not."""

    id: str
    table: str
    analyst: str
    question: str
    cost: str
    at: str
    published: str | None
    title: str
    proposed: bool
    kind: str

    @classmethod
    def of(cls, row: Any, **more: Any) -> Self:
        """Build the line from a database row."""
        published = None if row.published_at is None else iso(row.published_at)
        return cls(
            row.id, row.dataset, row.user, row.question, row.cost, iso(row.at), published, row.title,
            row.proposed_at is not None, row.kind, **more,
        )  # fmt: skip


@dataclass(frozen=True)
class AnswerRecord(AnswerLine):
    """A recorded answer with its options and its receipt."""

    options: Mapping[str, Any]
    receipt: str
    answer: Answer


@dataclass(frozen=True)
class PlanLine:
    """A plan of a publication, which is a file in the served folder, with the tables that it publishes."""

    name: str
    table: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class PlanPreview:
    """What a plan would publish, its cost and errors; computed without reading or charging anything."""

    name: str
    table: str
    cost: str
    text: str
    left: str
    refused: str = ""


# -- questions ------------------------------------------------------------------------------------------------------


class Questions:
    """Explaining and asking questions. ``options`` are those of :class:`dither.ReleaseOptions` by name, except
    ``analyst`` and ``key``: the analyst is the principal."""

    def __init__(self, context: Context) -> None:
        self._context = context
        of_one = context.config.max_questions_each
        self._explaining = ConcurrencyLimit("explanations", most_of_one=of_one, most_of_all=_MAX_EXPLANATIONS)

    def explain(self, who: Principal, table: str, question: QuestionInput, options: Mapping[str, Any]) -> Explanation:
        """Return mechanisms, expected errors, cost and remaining budget of a question; charge nothing."""
        context = self._context
        with context.acting(who, "questions.explain", table):
            context.check_granted(who, table)
            task = {
                "do": "explain", "card": context.folder.get(table).document, "question": _document(question),
                "options": options_to_json(options_from_json(dict(options))), "analyst": who.name,
            }  # fmt: skip
        with self._explaining.taken(who.name):  # each holds a thread, and they stand in one queue
            event = context.run_in_explaining_worker(task, "question", table)  # not in the event log: people try
        return explanation_from_json(event["explanation"])

    def ask(
        self, who: Principal, table: str, question: QuestionInput, options: Mapping[str, Any], key: str | None = None
    ) -> Job:
        """Ask a question, and return its job: ``answered`` if the answer is recorded already, else ``waiting`` (see
        :meth:`wait`).

        ``who`` asks about the served ``table``; ``options`` are those of a release by name. ``key`` is the header
        ``Idempotency-Key``: among the keys of one analyst it names a release forever; None leaves recognizing a
        repeated question to its text.
        """
        context = self._context
        with context.acting(who, "questions.ask", table):
            context.check_granted(who, table)
            context.questions.take(who.name)
            submission = self._submission(who, table, question, options, key)
            return _recorded_or_started(context, submission, "questions.ask", table)

    def recorded(
        self, who: Principal, table: str, question: QuestionInput, options: Mapping[str, Any], key: str | None
    ) -> Job | None:
        """Return the job of a question whose answer is recorded; None if there is none, or the principal may not have
        it.

        The parameters are those of :meth:`ask`. It only reads the server's own database. A refusal is None as well:
        :meth:`ask` raises and logs it.
        """
        context = self._context
        if not may(who, "questions.ask") or not context.is_granted(who.name, table):
            return None
        try:
            job = _recorded(context, self._submission(who, table, question, options, key))
        except DitherError:
            return None
        if job is not None:
            context.questions.take(who.name)
        return job

    def _submission(
        self, who: Principal, table: str, question: QuestionInput, options: Mapping[str, Any], key: str | None
    ) -> Submission:
        """Return a question as a submission for :class:`Jobs`, checked as far as possible without opening its table.

        The parameters are those of :meth:`ask`. Its ``request`` is a hash by which an identical question is recognized;
        with the option ``again`` and no key, a random part makes it unique.
        """
        scoped = scoped_key(who, key)
        served = self._context.folder.get(table)
        document = _document(question)
        stated = options_to_json(options_from_json(dict(options), key=scoped))
        request = _digest([who.name, served.identity, document, stated, scoped])
        if stated.get("again") and key is None:
            request = _digest([request, secrets.token_hex(16)])
        task = {
            "do": "ask", "card": served.document, "question": document, "options": stated, "analyst": who.name,
            "key": scoped,
        }  # fmt: skip
        return Submission(who.name, table, "question", question_words(document), stated, request, task)

    async def wait(self, who: Principal, job: str, *, seconds: float = 30.0) -> Job:
        """Return the ``job`` of the user ``who`` at the first tick at which it has ended, or as it is after
        ``seconds``.
        """
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
        """Return the current state of a question of the user ``who``; raise NotFound for other users' questions."""
        authorize(who, "questions.job")
        if job.startswith(_RECORDED):
            row = _row(self._context, job.removeprefix(_RECORDED))
            if row is not None and row.user == who.name:
                return Job(job, row.dataset, row.question, "answered", iso(row.at), row.kind, row.id)
        return self._context.jobs.get(job, who.name)

    def jobs(self, who: Principal) -> tuple[Job, ...]:
        """Return the waiting questions of the user ``who``, the oldest first."""
        authorize(who, "questions.job")
        return self._context.jobs.waiting(who.name)

    def cancel(self, who: Principal, job: str) -> Job:
        """Cancel a question of the user ``who``: it is stopped at its next tick unless it has ended. A charge stays."""
        with self._context.acting(who, "questions.cancel", job, logged=True):
            return self._context.jobs.cancel(job, who.name)


def scoped_key(who: Principal, key: str | None) -> str | None:
    """Return a key as the ledger stores it, with the analyst's name (``ann/monday``), so that analysts cannot use one
    another's keys; None for None."""
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY or not key.isprintable() or not key.isascii():
        expected = f"1 to {MAX_KEY} printable ASCII characters"
        raise InvalidArgument("Idempotency-Key", expected, "a longer or unprintable key", "choose a short, plain key")
    return f"{who.name}/{key}"


def _document(question: QuestionInput) -> dict[str, Any]:
    """Return a question as the JSON object that workers parse; only its form is checked here."""
    document = {"sql": question} if isinstance(question, str) else dict(question)
    given = fields(document, "question", (), QUESTION)
    if ("sql" in given) == ("tree" in given):
        raise InvalidArgument("question", "sql or tree", "both or none", 'write {"sql": "SELECT …"}')
    if "sql" in given and not is_storable(text(given["sql"], "question.sql")):
        fix = "take the odd characters out"
        raise InvalidArgument("question.sql", "valid Unicode without NUL", "a text that is not", fix)
    return given


def _digest(parts: list[Any]) -> str:
    """Return a hash of JSON values that identifies a request."""
    return hashlib.sha256(canonical(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _recorded(context: Context, submission: Submission) -> Job | None:
    """Return the job of an identical request whose answer is stored; None if there is none."""
    values = {
        "asked": submission.request,
        "name": submission.user,
        "table": submission.dataset,
        "now": context.clock.now(),
    }
    row = context.store.one(_BY_REQUEST, values)
    if row is None:
        return None
    return Job(
        _RECORDED + row.id, submission.dataset, submission.question, "answered", iso(row.at), submission.kind, row.id
    )


def _recorded_or_started(context: Context, submission: Submission, action: str, subject: str) -> Job:
    """Return the answered job of an identical request, or a new waiting one, which the event log names as ``action`` on
    ``subject``."""
    recorded = _recorded(context, submission)
    return recorded or context.jobs.start(submission, context.events.line(submission.user, action, subject))


def _row(context: Context, answer: str) -> Any:
    """Return the database row of an answer that may be seen now; None if there is none."""
    return context.store.one(_BY_ID, {"answer": answer, "now": context.clock.now()})


# -- publications ---------------------------------------------------------------------------------------------------


class Plans:
    """Plans of publications: ``*.toml`` files in the served folder that name one of its cards.

    They cannot be uploaded: a plan may name files, and only people with access to the folder may choose which.
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    def list(self, who: Principal) -> tuple[PlanLine, ...]:
        """Return all plans of the folder."""
        with self._context.acting(who, "plans.list"):
            return tuple(
                PlanLine(name, table, tuple(_names(item) for item in plan_file.read_plan(Path(path)).get("tables", [])))
                for name, (path, table) in sorted(self._context.folder.plans().items())
            )

    def explain(self, who: Principal, plan: str) -> PlanPreview:
        """Return what a plan would publish, and its cost; read no rows and charge nothing."""
        context = self._context
        with context.acting(who, "plans.explain", plan):
            path, table = self._path_and_table(plan)
            task = {"do": "explain_plan", "card": context.folder.get(table).document, "plan": path, "analyst": who.name}
            event = context.run_in_explaining_worker(task, "plan", table)
            return PlanPreview(plan, table, event["cost"], event["text"], event["left"], event["refused"])

    def release(self, who: Principal, plan: str, key: str | None = None) -> Job:
        """Release a plan for the budget it states, and return its job. Each of its tables becomes an answer."""
        context = self._context
        with context.acting(who, "plans.release", plan):
            path, table = self._path_and_table(plan)
            scoped = scoped_key(who, key)
            served = context.folder.get(table)
            request = _digest([who.name, served.identity, "plan", plan, list(fingerprint(path)), scoped])
            task: dict[str, Any] = {
                "do": "release_plan", "card": served.document, "plan": path, "analyst": who.name, "key": scoped
            }  # fmt: skip
            submission = Submission(who.name, table, "publication", plan, {}, request, task)
            return _recorded_or_started(context, submission, "plans.release", plan)

    def _path_and_table(self, plan: str) -> tuple[str, str]:
        """Return the path of a plan's file and the name of its table; raise NotFound for an unknown plan."""
        plans = self._context.folder.plans()
        if plan not in plans:
            raise NotFound.of("plan")
        return plans[plan]


# -- profiles -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProfileForecast:
    """The cost of a profile, and about how many people must share a bin for its count to stand out from the noise."""

    table: str
    cost: str
    people_seen: float
    measuring: bool


class Profiles:
    """Profiles of tables: forecasting and buying one. The newest one is part of what is public about a table."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def forecast(self, who: Principal, table: str, options: Mapping[str, Any]) -> ProfileForecast:
        """Return what a profile of ``table`` with these ``options`` would cost and show; read no rows and charge
        nothing.
        """
        context = self._context
        with context.acting(who, "profiles.forecast", table):
            plan = _planned_profile(context.folder.get(table).card, _profile_options(options))
            return ProfileForecast(table, str(plan.guarantee), plan.people_seen, context.jobs.is_measuring(table))

    def release(self, who: Principal, table: str, options: Mapping[str, Any]) -> Job:
        """Buy a profile of ``table`` with these ``options``, and return its job.

        The bars of each table become an answer, and the profile is used for every question from the tick on at which
        the job ends.
        """
        context = self._context
        with context.acting(who, "profiles.release", table):
            served, stated = context.folder.get(table), _profile_options(options)
            _planned_profile(
                served.card, stated
            )  # refused here, before a job is started, if the card does not allow it
            request = _digest([who.name, served.identity, "profile", stated])
            if stated.get("again"):
                request = _digest([request, secrets.token_hex(16)])
            task = {"do": "release_profile", "card": served.document, "options": stated, "analyst": who.name}
            submission = Submission(who.name, table, "profile", "a profile", stated, request, task)
            return _recorded_or_started(context, submission, "profiles.release", table)


_PROFILE_OPTIONS: Mapping[str, Any] = {
    "epsilon": float | None, "delta": float | None, "rho": float | None, "columns": tuple[str, ...] | None,
    "without": tuple[str, ...], "again": bool, "force": bool,
}  # fmt: skip
"""The options of a profile, as :meth:`dither.Table.profile` takes them, with their types."""


def _profile_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a profile, parsed; refuse unknown names and values of the wrong type."""
    given = fields(dict(options), "options", (), tuple(_PROFILE_OPTIONS))
    return {name: from_json(item, _PROFILE_OPTIONS[name], f"options.{name}") for name, item in given.items()}


def _planned_profile(card: Card, options: Mapping[str, Any]) -> ProfilePlan:
    """Return the plan of a profile with these options."""
    return plan_profile(card, **{name: item for name, item in options.items() if name not in ("again", "force")})


def _names(wanted: Any) -> str:
    """Return the columns of a table of a plan, separated by commas; "everybody" for the table of the total."""
    names = wanted.get("by", []) if isinstance(wanted, dict) else wanted
    return ", ".join(map(str, names)) or "everybody"


# -- answers --------------------------------------------------------------------------------------------------------


class Answers:
    """Recorded answers: a user's own ones, and those that are published to readers."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def mine(
        self, who: Principal, *, table: str | None = None, most: int = 100, before: str | None = None
    ) -> tuple[AnswerLine, ...]:
        """Return up to ``most`` answers of the user ``who``, the newest first.

        ``table`` restricts them to one table. ``before`` is the id of the last answer on the previous page, None for
        the first.
        """
        authorize(who, "answers.own")
        conditions = [_answers.c.user == who.name]
        if table is not None:
            conditions.append(_answers.c.dataset == table)
        if before is not None:
            row = self._own(who, before)
            conditions.append(sa.tuple_(_answers.c.at, _answers.c.id) < (row.at, row.id))
        return self._lines(conditions, (_answers.c.at.desc(), _answers.c.id.desc()), max(1, min(most, _MOST)))

    def answer(self, who: Principal, answer: str) -> AnswerRecord:
        """Return an answer that is own, published or, for stewards, proposed; raise NotFound for others."""
        row = self._visible(who, answer)
        body = answer_from_json(json.loads(row.body))
        return AnswerRecord.of(row, options=json.loads(row.options), receipt=row.receipt, answer=body)

    def document(self, who: Principal, answer: str) -> dict[str, Any]:
        """Return an answer that :meth:`answer` would return as JSON, with the bytes that the ledger recorded."""
        result: dict[str, Any] = json.loads(self._visible(who, answer).body)
        return result

    def of_job(self, who: Principal, answer: str) -> dict[str, Any]:
        """Return the answer to a question of the user ``who`` as JSON; a token with the scope ``ask`` suffices, where
        :meth:`document` needs ``read``."""
        authorize(who, "questions.job")
        result: dict[str, Any] = json.loads(self._own(who, answer).body)
        return result

    def _own(self, who: Principal, answer: str) -> Any:
        """Return the database row of an own answer; raise NotFound for others."""
        row = _row(self._context, answer)
        if row is None or row.user != who.name:
            raise NotFound.of("answer")
        return row

    def _visible(self, who: Principal, answer: str) -> Any:
        """Return the database row of an answer that is own, published or proposed, as the roles allow; raise
        NotFound for others."""
        row = _row(self._context, answer)
        own = row is not None and row.user == who.name and may(who, "answers.own")
        published = row is not None and row.published_at is not None and may(who, "answers.published")
        proposed = row is not None and row.proposed_at is not None and may(who, "answers.publish")
        if row is None or not (own or published or proposed):
            self._context.events.write(who.name, "answers.own", answer, refused="NotFound")
            raise NotFound.of("answer")
        return row

    def propose(self, who: Principal, answer: str, title: str) -> AnswerLine:
        """Ask a steward to publish an own answer under a title."""
        with self._context.acting(who, "answers.propose", answer, logged=True):
            if self._own(who, answer).published_at is not None:  # its title is what readers see, and was approved
                raise Conflict("This answer is published. Have a steward unpublish it first.")
            return self._update(answer, title=printable(title, "title", _MAX_TITLE), proposed_at=time.time())

    def proposals(self, who: Principal) -> tuple[AnswerLine, ...]:
        """Return the answers that analysts have proposed to publish."""
        authorize(who, "answers.publish")
        conditions = [_answers.c.proposed_at.is_not(None), _answers.c.published_at.is_(None)]
        return self._lines(conditions, (_answers.c.proposed_at,), _MOST)

    def publish(self, who: Principal, answer: str, title: str) -> AnswerLine:
        """Publish an own or a proposed answer to readers, under a title."""
        with self._context.acting(who, "answers.publish", answer, logged=True):
            row = _row(self._context, answer)
            if row is None or (row.user != who.name and row.proposed_at is None):
                raise NotFound.of("answer")
            return self._update(
                answer, title=printable(title, "title", _MAX_TITLE), published_at=time.time(), published_by=who.name
            )

    def unpublish(self, who: Principal, answer: str) -> AnswerLine:
        """Withdraw a published answer from readers."""
        with self._context.acting(who, "answers.publish", answer, logged=True):
            row = _row(self._context, answer)
            if row is None or row.published_at is None:
                raise NotFound.of("answer")
            return self._update(answer, published_at=None, published_by=None, proposed_at=None)

    def published(self, who: Principal) -> tuple[AnswerLine, ...]:
        """Return the published answers, the newest first."""
        authorize(who, "answers.published")
        return self._lines([_answers.c.published_at.is_not(None)], (_answers.c.published_at.desc(),), _MOST)

    def _update(self, answer: str, **values: Any) -> AnswerLine:
        """Change columns of an answer, and return its line."""
        self._context.store.run(_answers.update().where(_answers.c.id == answer).values(**values))
        return AnswerLine.of(_row(self._context, answer))

    def _lines(self, conditions: list[Any], order: tuple[Any, ...], most: int) -> tuple[AnswerLine, ...]:
        """Return the lines of at most ``most`` answers that meet all conditions and may be seen now."""
        columns = [column for column in _answers.c if column.name != "body"]
        visible = _answers.c.at <= self._context.clock.now()  # the tick of a new answer may be in the future
        rows = self._context.store.rows(sa.select(*columns).where(visible, *conditions).order_by(*order).limit(most))
        return tuple(AnswerLine.of(row) for row in rows)
