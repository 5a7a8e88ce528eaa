"""The table of the JSON interface: every path with what it does, which :mod:`dither.server.api` serves and
:mod:`dither.server.openapi` describes.

An endpoint is a function of the service, the principal and the request's parts. It authorizes nothing: the use case
does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dither.errors import InvalidArgument, message
from dither.server.principal import Principal
from dither.server.results import Job
from dither.server.service import Service
from dither.wire import guarantees
from dither.wire.documents import fields, read, text
from dither.wire.routes import API


@dataclass(frozen=True)
class Call:
    """A request: the parts of its path, its query, its body, and the key of its header."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    key: str | None

    def fields(self, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
        """The fields of the body."""
        return fields(read(self.body) if self.body else {}, "body", required, optional)

    def number(self, name: str, default: int) -> int:
        """A whole number of the query."""
        given = self.query.get(name)
        if given is None:
            return default
        if not given.isascii() or not given.isdigit() or len(given) > 15:
            raise InvalidArgument(message(name, "a whole number", "other text", f"write {name}={default}"))
        return int(given)

    @property
    def seconds(self) -> float:
        """How long to wait for a question to end: the query's ``wait``, at most 60 s."""
        return float(min(60, self.number("wait", 0)))


Run = Callable[[Service, Principal, Call], Any]


@dataclass(frozen=True)
class Endpoint:
    """A path of the interface. ``body`` are the fields that a request has, by whether they are needed."""

    method: str
    path: str
    summary: str
    run: Run
    body: Mapping[str, bool] = field(default_factory=dict)
    query: tuple[str, ...] = ()
    has_key: bool = False
    waits: bool = False
    """Whether the result is a job, which the request may wait for."""
    status: int = 200
    quick: Run | None = None
    """What can be answered by a few reads of the server's own database, or None if that is not enough."""


def _limit(document: object) -> Any:
    return None if document is None else guarantees.from_json(document, "limit")


def _explain(service: Service, who: Principal, call: Call) -> Any:
    given = call.fields(("question",), ("options",))
    return service.questions.explain(who, call.path["table"], _asked(given["question"]), _options(given))


def _ask(service: Service, who: Principal, call: Call) -> Job:
    given = call.fields(("question",), ("options",))
    asked = _asked(given["question"])
    return service.questions.ask(who, call.path["table"], asked, _options(given), key=call.key)


def _recorded(service: Service, who: Principal, call: Call) -> Job | None:
    given = call.fields(("question",), ("options",))
    asked = _asked(given["question"])
    return service.questions.recorded(who, call.path["table"], asked, _options(given), call.key)


def _asked(question: object) -> Any:
    if not isinstance(question, (str, dict)):
        fix = 'write {"sql": "SELECT …"}'
        raise InvalidArgument(message("question", "SQL, or an object with sql or tree", "another", fix))
    return question


def _options(given: Mapping[str, Any]) -> Any:
    options = given.get("options", {})
    if not isinstance(options, dict):
        raise InvalidArgument(message("options", "an object", "another", 'write {"epsilon": 0.5}'))
    return options


def _propose(service: Service, who: Principal, call: Call) -> Any:
    given = call.fields(("table", "limit", "reason"), ("analyst", "each_person"))
    limit, analyst, of_people = _limit(given["limit"]), given.get("analyst"), given.get("each_person", False)
    if limit is None or not isinstance(of_people, bool) or not isinstance(analyst, str | None):
        expected = "a guarantee, the name of an analyst or null, true or false"
        raise InvalidArgument(message("limit", expected, "others", 'write {"kind": "pure", "epsilon": "1"}'))
    table, reason = text(given["table"], "table"), text(given["reason"], "reason")
    return service.budgets.propose(who, table, limit, reason=reason, analyst=analyst, each_person=of_people)


def _grant(service: Service, who: Principal, call: Call) -> Any:
    given = call.fields(("user", "table"), ("limit", "first"))
    user, table = text(given["user"], "user"), text(given["table"], "table")
    first = given.get("first", False)
    if not isinstance(first, bool):
        raise InvalidArgument(message("first", "true or false", "another", 'write "first": true'))
    return service.users.grant(who, user, table, limit=_limit(given.get("limit")), first=first)


def _revoke(service: Service, who: Principal, call: Call) -> Any:
    service.users.revoke(who, call.path["user"], call.path["table"])
    return {"revoked": True}


def _titled(call: Call) -> str:
    return text(call.fields(("title",))["title"], "title")


def _events(service: Service, who: Principal, call: Call) -> Any:
    after, most = call.number("after", 0), call.number("most", 100)
    return service.chain.events(who, after=after, most=most, user=call.query.get("user"))


def _entries(service: Service, who: Principal, call: Call) -> Any:
    after, most = call.number("after", 0), call.number("most", 100)
    return service.chain.entries(who, call.path["table"], after=after, most=most)


def _mine(service: Service, who: Principal, call: Call) -> Any:
    table, before = call.query.get("table"), call.query.get("before")
    return service.answers.mine(who, table=table, most=call.number("most", 100), before=before)


_JOB = ("wait",)
_ASKED = {"question": True, "options": False}
ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/tables", "The tables that may be asked", lambda s, w, _: {"tables": s.tables.list(w)}),
    Endpoint("GET", "/tables/{table}", "What is public about a table",
             lambda s, w, c: s.tables.card(w, c.path["table"])),
    Endpoint("GET", "/cards", "Cards and plans that are not in force as they stand",
             lambda s, w, _: {"problems": s.tables.problems(w)}),
    Endpoint("POST", "/tables/{table}/explain", "Explain a question; nothing is charged", _explain, _ASKED),
    Endpoint("POST", "/tables/{table}/questions", "Ask a question", _ask, _ASKED, _JOB, True, True,
             quick=_recorded),
    Endpoint("GET", "/jobs", "Own questions that wait", lambda s, w, _: {"jobs": s.questions.jobs(w)}),
    Endpoint("GET", "/jobs/{job}", "How a question stands", lambda s, w, c: s.questions.job(w, c.path["job"]), {}, _JOB,
             waits=True),
    Endpoint("DELETE", "/jobs/{job}", "Cancel a question", lambda s, w, c: s.questions.cancel(w, c.path["job"])),
    Endpoint("GET", "/answers", "Own answers", lambda s, w, c: {"answers": _mine(s, w, c)}, {},
             ("table", "most", "before")),
    Endpoint("GET", "/answers/{answer}", "An answer", lambda s, w, c: s.answers.document(w, c.path["answer"])),
    Endpoint("POST", "/answers/{answer}/propose", "Ask a steward to publish an answer",
             lambda s, w, c: s.answers.propose(w, c.path["answer"], _titled(c)), {"title": True}),
    Endpoint("POST", "/answers/{answer}/publish", "Publish an answer to readers",
             lambda s, w, c: s.answers.publish(w, c.path["answer"], _titled(c)), {"title": True}),
    Endpoint("DELETE", "/answers/{answer}/publish", "Publish an answer no longer",
             lambda s, w, c: s.answers.unpublish(w, c.path["answer"])),
    Endpoint("GET", "/published", "Published answers", lambda s, w, _: {"answers": s.answers.published(w)}),
    Endpoint("GET", "/proposals", "Answers to be published", lambda s, w, _: {"answers": s.answers.proposals(w)}),
    Endpoint("GET", "/budget", "What is left to spend", lambda s, w, _: {"budgets": s.budgets.own(w)}),
    Endpoint("GET", "/tables/{table}/budget", "The accounts of a table",
             lambda s, w, c: s.budgets.dataset(w, c.path["table"])),
    Endpoint("GET", "/plans", "Plans of publications", lambda s, w, _: {"plans": s.plans.list(w)}),
    Endpoint("GET", "/plans/{plan}", "Explain a plan", lambda s, w, c: s.plans.explain(w, c.path["plan"])),
    Endpoint("POST", "/plans/{plan}/release", "Release a plan",
             lambda s, w, c: s.plans.release(w, c.path["plan"], key=c.key), {}, _JOB, True, True),
    Endpoint("GET", "/users", "All users", lambda s, w, _: {"users": s.users.list(w)}),
    Endpoint("GET", "/grants", "Who may ask what",
             lambda s, w, c: {"grants": s.users.grants(w, table=c.query.get("table"))}, {}, ("table",)),
    Endpoint("POST", "/grants", "Let a user ask a table", _grant,
             {"user": True, "table": True, "limit": False, "first": False}),
    Endpoint("DELETE", "/grants/{user}/{table}", "Let a user ask a table no longer", _revoke),
    Endpoint("GET", "/limits", "Changes of limits", lambda s, w, _: {"changes": s.budgets.changes(w)}),
    Endpoint("POST", "/limits", "Propose another limit (not with a token)", _propose,
             {"table": True, "limit": True, "reason": True, "analyst": False, "each_person": False}),
    Endpoint("GET", "/incidents", "Incidents of each table", lambda s, w, _: {"tables": s.budgets.incidents(w)}),
    Endpoint("GET", "/tables/{table}/entries", "The history of a table's ledger",
             lambda s, w, c: {"entries": _entries(s, w, c)}, {}, ("after", "most")),
    Endpoint("POST", "/tables/{table}/verify", "Verify a table's ledger",
             lambda s, w, c: s.chain.verify(w, c.path["table"], receipt=c.fields((), ("receipt",)).get("receipt")),
             {"receipt": False}),
    Endpoint("GET", "/tables/{table}/receipt", "The last receipt of a table's ledger",
             lambda s, w, c: {"receipt": s.chain.receipt(w, c.path["table"])}),
    Endpoint("GET", "/events", "The event log", lambda s, w, c: {"events": _events(s, w, c)}, {},
             ("after", "most", "user")),
)  # fmt: skip
"""All of them; their paths stand below :data:`dither.wire.routes.API`."""

__all__ = ["API", "ENDPOINTS", "Call", "Endpoint"]
