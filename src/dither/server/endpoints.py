"""The table of the JSON interface: every path with what it does, which :mod:`dither.server.api` serves and
:mod:`dither.server.openapi` describes.

An endpoint is a function of the service, the principal and the request's parts. It authorizes nothing: the use case
does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dither.errors import InvalidArgument, WrongType
from dither.guarantees import Guarantee
from dither.server.principal import Principal
from dither.server.results import Job
from dither.server.service import Service
from dither.wire import guarantees
from dither.wire.documents import fields, kind_of, read, text


@dataclass(frozen=True)
class Kind:
    """What a parameter or a field may be: as the OpenAPI document says it, and how the server reads it."""

    schema: Mapping[str, Any]
    read: Callable[[Any, str], Any]
    """From a value and its name to what is used; anything else than the schema says is refused."""


def _whole(given: str, name: str) -> int:
    if not given.isascii() or not given.isdigit() or len(given) > 15:
        raise InvalidArgument(name, "a whole number", "other text", f"write {name}=100")
    return int(given)


def _nullable_text(value: object, name: str) -> str | None:
    return None if value is None else text(value, name)


def _boolean(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise WrongType(name, "true or false", kind_of(value), "write true")
    return value


def _guarantee(value: object, name: str) -> Guarantee:
    if not isinstance(value, dict):
        raise WrongType(name, "a guarantee", kind_of(value), 'write {"kind": "pure", "epsilon": "1"}')
    return guarantees.from_json(value, name)


def _question(value: object, name: str) -> str | dict[str, Any]:
    if not isinstance(value, (str, dict)):
        expected = "SQL, or an object with sql or tree"
        raise WrongType(name, expected, kind_of(value), 'write {"sql": "SELECT …"}')
    return value


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongType(name, "an object", kind_of(value), 'write {"epsilon": 0.5}')
    return value


WHOLE = Kind({"type": "integer", "minimum": 0}, _whole)
TEXT = Kind({"type": "string"}, text)
NULLABLE_TEXT = Kind({"type": ["string", "null"]}, _nullable_text)
BOOLEAN = Kind({"type": "boolean"}, _boolean)
_A_GUARANTEE = 'A guarantee: {"kind": "pure", "epsilon": "1/2"}.'
GUARANTEE = Kind({"type": "object", "description": _A_GUARANTEE}, _guarantee)
NULLABLE_GUARANTEE = Kind(
    {"type": ["object", "null"], "description": _A_GUARANTEE},
    lambda value, name: None if value is None else _guarantee(value, name),
)
QUESTION = Kind(
    {
        "type": ["string", "object"],
        "description": "SQL, or an object with sql, or with a tree as dither.connect sends it.",
    },
    _question,
)
OPTIONS = Kind({"type": "object", "description": "The options of a release by name: epsilon, error, delta …"}, _object)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a query, or a field of a body: what it may be, and what it is where it is left out."""

    kind: Kind
    default: Any = None
    required: bool = False


@dataclass(frozen=True)
class Call:
    """A request to an endpoint: the parts of its path, its query, its body, and the key of its header."""

    endpoint: Endpoint
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    key: str | None

    def fields(self) -> dict[str, Any]:
        """The fields of the body, each read as its kind."""
        declared = self.endpoint.body
        required = [name for name, item in declared.items() if item.required]
        given = fields(read(self.body) if self.body else {}, "body", required, tuple(declared))
        return {
            name: item.kind.read(given[name], name) if name in given else item.default
            for name, item in declared.items()
        }

    def argument(self, name: str) -> Any:
        """A parameter of the query, read as its kind."""
        item = self.endpoint.query[name]
        given = self.query.get(name)
        return item.default if given is None else item.kind.read(given, name)

    def check(self) -> None:
        """Refuse what the endpoint does not take, before anything is done."""
        if set(self.query) - set(self.endpoint.query):
            expected = ", ".join(self.endpoint.query) or "none"
            raise InvalidArgument("query", expected, "another parameter", "leave it out")
        for name in self.endpoint.query:
            self.argument(name)
        self.fields()

    @property
    def seconds(self) -> float:
        """How long to wait for a question to end: the query's ``wait``, at most 60 s."""
        return float(min(60, self.argument("wait")))


Run = Callable[[Service, Principal, Call], Any]


@dataclass(frozen=True)
class Endpoint:
    """A path of the interface, with the fields of its body and the parameters of its query."""

    method: str
    path: str
    summary: str
    run: Run
    body: Mapping[str, Parameter] = field(default_factory=dict)
    query: Mapping[str, Parameter] = field(default_factory=dict)
    has_key: bool = False
    waits: bool = False
    """Whether the result is a job, which the request may wait for."""
    status: int = 200
    quick: Run | None = None
    """What can be answered by a few reads of the server's own database, or None if that is not enough."""


def _explain(service: Service, who: Principal, call: Call) -> Any:
    given = call.fields()
    return service.questions.explain(who, call.path["table"], given["question"], given["options"])


def _ask(service: Service, who: Principal, call: Call) -> Job:
    given = call.fields()
    return service.questions.ask(who, call.path["table"], given["question"], given["options"], key=call.key)


def _recorded(service: Service, who: Principal, call: Call) -> Job | None:
    given = call.fields()
    return service.questions.recorded(who, call.path["table"], given["question"], given["options"], call.key)


def _propose(service: Service, who: Principal, call: Call) -> Any:
    given = call.fields()
    return service.budgets.propose(who, given.pop("table"), given.pop("limit"), **given)


def _grant(service: Service, who: Principal, call: Call) -> Any:
    given = call.fields()
    return service.users.grant(who, given["user"], given["table"], limit=given["limit"], first=given["first"])


def _revoke(service: Service, who: Principal, call: Call) -> Any:
    service.users.revoke(who, call.path["user"], call.path["table"])
    return {"revoked": True}


def _titled(call: Call) -> str:
    title: str = call.fields()["title"]
    return title


def _events(service: Service, who: Principal, call: Call) -> Any:
    after, most, user = (call.argument(name) for name in ("after", "most", "user"))
    return service.chain.events(who, after=after, most=most, user=user)


def _entries(service: Service, who: Principal, call: Call) -> Any:
    after, most = call.argument("after"), call.argument("most")
    return service.chain.entries(who, call.path["table"], after=after, most=most)


def _mine(service: Service, who: Principal, call: Call) -> Any:
    table, most, before = (call.argument(name) for name in ("table", "most", "before"))
    return service.answers.mine(who, table=table, most=most, before=before)


_WAIT = {"wait": Parameter(WHOLE, 0)}
_PAGE = {"after": Parameter(WHOLE, 0), "most": Parameter(WHOLE, 100)}
_ASKED = {"question": Parameter(QUESTION, required=True), "options": Parameter(OPTIONS, {})}
_NEEDED = Parameter(TEXT, required=True)
ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/tables", "The tables that may be asked", lambda s, w, _: {"tables": s.tables.list(w)}),
    Endpoint("GET", "/tables/{table}", "What is public about a table",
             lambda s, w, c: s.tables.card(w, c.path["table"])),
    Endpoint("GET", "/cards", "Cards and plans that are not in force as they stand",
             lambda s, w, _: {"problems": s.tables.problems(w)}),
    Endpoint("POST", "/tables/{table}/explain", "Explain a question; nothing is charged", _explain, _ASKED),
    Endpoint("POST", "/tables/{table}/questions", "Ask a question", _ask, _ASKED, _WAIT, True, True,
             quick=_recorded),
    Endpoint("GET", "/jobs", "Own questions that wait", lambda s, w, _: {"jobs": s.questions.jobs(w)}),
    Endpoint("GET", "/jobs/{job}", "How a question stands", lambda s, w, c: s.questions.job(w, c.path["job"]),
             {}, _WAIT, waits=True),
    Endpoint("DELETE", "/jobs/{job}", "Cancel a question", lambda s, w, c: s.questions.cancel(w, c.path["job"])),
    Endpoint("GET", "/answers", "Own answers", lambda s, w, c: {"answers": _mine(s, w, c)}, {},
             {"table": Parameter(TEXT), "most": Parameter(WHOLE, 100), "before": Parameter(TEXT)}),
    Endpoint("GET", "/answers/{answer}", "An answer", lambda s, w, c: s.answers.document(w, c.path["answer"])),
    Endpoint("POST", "/answers/{answer}/propose", "Ask a steward to publish an answer",
             lambda s, w, c: s.answers.propose(w, c.path["answer"], _titled(c)), {"title": _NEEDED}),
    Endpoint("POST", "/answers/{answer}/publish", "Publish an answer to readers",
             lambda s, w, c: s.answers.publish(w, c.path["answer"], _titled(c)), {"title": _NEEDED}),
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
             lambda s, w, c: s.plans.release(w, c.path["plan"], key=c.key), {}, _WAIT, True, True),
    Endpoint("GET", "/users", "All users", lambda s, w, _: {"users": s.users.list(w)}),
    Endpoint("GET", "/grants", "Who may ask what",
             lambda s, w, c: {"grants": s.users.grants(w, table=c.argument("table"))}, {}, {"table": Parameter(TEXT)}),
    Endpoint("POST", "/grants", "Let a user ask a table", _grant,
             {"user": _NEEDED, "table": _NEEDED, "limit": Parameter(NULLABLE_GUARANTEE),
              "first": Parameter(BOOLEAN, False)}),
    Endpoint("DELETE", "/grants/{user}/{table}", "Let a user ask a table no longer", _revoke),
    Endpoint("GET", "/limits", "Changes of limits", lambda s, w, _: {"changes": s.budgets.changes(w)}),
    Endpoint("POST", "/limits", "Propose another limit (not with a token)", _propose,
             {"table": _NEEDED, "limit": Parameter(GUARANTEE, required=True), "reason": _NEEDED,
              "analyst": Parameter(NULLABLE_TEXT), "each_person": Parameter(BOOLEAN, False)}),
    Endpoint("GET", "/incidents", "Incidents of each table", lambda s, w, _: {"tables": s.budgets.incidents(w)}),
    Endpoint("GET", "/tables/{table}/entries", "The history of a table's ledger",
             lambda s, w, c: {"entries": _entries(s, w, c)}, {}, _PAGE),
    Endpoint("POST", "/tables/{table}/verify", "Verify a table's ledger",
             lambda s, w, c: s.chain.verify(w, c.path["table"], receipt=c.fields()["receipt"]),
             {"receipt": Parameter(NULLABLE_TEXT)}),
    Endpoint("GET", "/tables/{table}/receipt", "The last receipt of a table's ledger",
             lambda s, w, c: {"receipt": s.chain.receipt(w, c.path["table"])}),
    Endpoint("GET", "/events", "The event log", lambda s, w, c: {"events": _events(s, w, c)}, {},
             {**_PAGE, "user": Parameter(TEXT)}),
)  # fmt: skip
"""All of them; their paths stand below :data:`dither.wire.routes.API`."""
