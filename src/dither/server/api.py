"""The JSON interface under ``/api/v1``: one table of routes, from which it is served, checked and described (OpenAPI).

It takes a personal token and never a cookie. A request that names another analyst is refused like any unknown field:
who asks is whose token it is. A route authorizes nothing: the use case does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from dataclasses import fields as dataclass_fields
from functools import cache
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route

from dither.errors import DitherError, InvalidArgument, WrongType
from dither.guarantees import Guarantee
from dither.ledger import Account
from dither.server.errors import NotFound, problem_of, retry_after, to_json
from dither.server.jobs import Job
from dither.server.roles import Principal
from dither.server.service import Service
from dither.server.tables import Verification
from dither.tables.answer import Answer
from dither.tables.card.accounts import TableAccounts
from dither.tables.card.model import Card
from dither.tables.planning.explain import Explanation
from dither.wire import answers, cards, explanations, guarantees
from dither.wire.documents import fields, kind_of, read, text
from dither.wire.problems import CONTENT_TYPE
from dither.wire.routes import API, KEY_HEADER


def document(value: Any) -> Any:
    """A result as JSON has it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    for kind, form in _FORMS:
        if isinstance(value, kind):
            return form(value)
    if is_dataclass(value):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(name): document(item) for name, item in value.items()}
    return [document(item) for item in value]


def _fields(value: Any) -> dict[str, Any]:
    return {item.name: document(getattr(value, item.name)) for item in dataclass_fields(value)}


def _account(account: Account) -> dict[str, Any]:
    """An account; of people, only the limit."""
    return {
        "owner": account.owner,
        "kind": account.kind,
        "name": account.name,
        "unit": account.unit,
        "limit": document(account.limit),
        "spent": document(account.spent),
        "left": document(account.left),
        "left_text": account.left_text,
    }


_FORMS: tuple[tuple[type, Callable[[Any], dict[str, Any]]], ...] = (
    (Card, cards.to_json),
    (Answer, answers.to_json),
    (Explanation, explanations.to_json),
    (Guarantee, guarantees.to_json),
    (Account, _account),
    (Verification, lambda value: {**_fields(value), "ok": value.ok}),
)
"""What has a form of its own; all else is the dataclass_fields of its dataclass."""


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


def _recorded_answer(service: Service, who: Principal, call: Call) -> Job | None:
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
             quick=_recorded_answer),
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

_PATH_PARTS = re.compile(r"\{([a-z]+)\}")

_PROBLEM = {
    "type": "object",
    "description": "What went wrong (RFC 9457): what was expected, what was got, and how to mend it.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "detail", "name", "expected", "got", "fix")},
        "status": {"type": "integer"},
    },
}

_JOB = {
    "type": "object",
    "description": "A question: waiting until a tick, then answered, refused, failed or cancelled.",
    "required": ["id", "table", "state", "answer_id", "problem"],
    "properties": {
        "id": {"type": "string"},
        "table": {"type": "string"},
        "question": {"type": "string"},
        "kind": {"enum": ["question", "publication"]},
        "state": {"enum": ["waiting", "answered", "refused", "failed", "cancelled"]},
        "asked_at": {"type": "string", "format": "date-time"},
        "answer_id": {"type": ["string", "null"]},
        "answer": {"anyOf": [{"$ref": "#/components/schemas/Answer"}, {"type": "null"}]},
        "problem": {"anyOf": [{"$ref": "#/components/schemas/Problem"}, {"type": "null"}]},
    },
}

_ANSWER = {
    "type": "object",
    "description": "An answer: the text that the ledger recorded, what was left, and the receipt.",
    "required": ["version", "recorded", "left", "replayed", "receipt"],
    "properties": {
        "version": {"type": "integer"},
        "recorded": {"type": "string"},
        "left": {"type": ["string", "null"]},
        "replayed": {"type": "boolean"},
        "receipt": {"type": "string"},
    },
}


@cache
def described() -> dict[str, Any]:
    """The whole document.

    >>> described()["openapi"]
    '3.1.0'
    """
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(API + endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dither",
            "version": "1",
            "description": "Private answers: each costs a part of a budget, and comes with its errors.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _PROBLEM, "Job": _JOB, "Answer": _ANSWER},
        },
    }


def _schema(item: Parameter) -> dict[str, Any]:
    """What a parameter may be, and what it is where it is left out."""
    return {**item.kind.schema, **({} if item.default is None else {"default": item.default})}


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PATH_PARTS.findall(endpoint.path)
    ]
    parameters += [{"name": name, "in": "query", "schema": _schema(item)} for name, item in endpoint.query.items()]
    if endpoint.has_key:
        words = "Names this release for ever: sent again, the same answer is returned, and nothing is charged."
        parameters.append({"name": KEY_HEADER, "in": "header", "description": words, "schema": {"type": "string"}})
    schema: dict[str, Any] = {"type": "object"}
    if endpoint.waits:
        schema = {"$ref": "#/components/schemas/Job"}
    elif endpoint.path == "/answers/{answer}":
        schema = {"$ref": "#/components/schemas/Answer"}
    content = {"application/json": {"schema": schema}}
    responses: dict[str, Any] = {"200": {"description": "Done", "content": content}}
    if endpoint.waits:
        responses["202"] = {"description": "The question waits", "content": content}
    problem = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses["default"] = {"description": "Refused", "content": problem}
    result: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.method.lower()}{re.sub('[^a-z]+', '_', endpoint.path)}".rstrip("_"),
        "parameters": parameters,
        "responses": responses,
    }
    if endpoint.body:
        properties = {name: _schema(item) for name, item in endpoint.body.items()}
        needed = [name for name, item in endpoint.body.items() if item.required]
        fields = {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
        result["requestBody"] = {"required": bool(needed), "content": {"application/json": {"schema": fields}}}
    return result


_SHORT = 16_384
"""How many bytes of a body are read in the thread of the event loop."""


def error_response(error: BaseException, status: int | None = None) -> Response:
    """An error as ``application/problem+json``."""
    problem = problem_of(error, status)
    headers = {"www-authenticate": "Bearer"} if problem.status == 401 else {}
    headers |= retry_after(error)
    return Response(json.dumps(to_json(problem)), problem.status, headers, CONTENT_TYPE)


def _endpoint(endpoint: Endpoint) -> Route:
    async def serve(request: Request) -> Response:
        service: Service = request.app.state.service
        body = await request.body()
        call = Call(endpoint, request.path_params, request.query_params, body, request.headers.get(KEY_HEADER))

        who: Principal = request.state.principal  # dither.server.app refuses whoever has no token
        quick = _recorded(endpoint, service, who, call)
        if quick is not None:
            return JSONResponse(quick)

        def work() -> Any:
            call.check()
            result = endpoint.run(service, who, call)
            if isinstance(result, Job):
                return result if result.state == "waiting" else _job(service, who, result)
            return document(result)

        result = await run_in_threadpool(work)
        if not isinstance(result, Job):
            return JSONResponse(result)
        if endpoint.waits and call.seconds:
            result = await service.questions.wait(who, result.id, seconds=call.seconds)
        waiting = result.state == "waiting"
        return JSONResponse(await run_in_threadpool(_job, service, who, result), 202 if waiting else 200)

    return Route(API + endpoint.path, serve, methods=[endpoint.method])


def _recorded(endpoint: Endpoint, service: Service, who: Principal, call: Call) -> dict[str, Any] | None:
    """A recorded answer, in the thread of the event loop: on SQLite it takes a few short reads, and a thread that has
    to be woken up twice takes longer. Whatever else it may be is None, and is done, or refused, in a thread."""
    if endpoint.quick is None or not service.context.is_quick(call.path.get("table", "")):
        return None
    if len(call.body) > _SHORT:
        return None
    try:
        call.check()
        job = endpoint.quick(service, who, call)
    except DitherError:
        return None
    return None if job is None else _job(service, who, job)


def _job(service: Service, who: Principal, job: Job) -> dict[str, Any]:
    """A job; when it is answered, with the answer, and with what is left by now."""
    result: dict[str, Any] = {**document(job), "answer": None}
    if job.answer_id is not None and job.kind == "question" and who.scopes is not None and "ask" in who.scopes:
        answer = service.answers.of_job(who, job.answer_id)
        if job.id.startswith("recorded-"):
            folder = service.context.folder
            left = TableAccounts(folder.get(job.table).card, folder.ledger(job.table)).left(who.name)
            answer |= {"replayed": True, "left": left}
        result["answer"] = answer
    return result


def allowed_methods(request: Request) -> list[str]:
    """The methods that a path is served with; none where there is no such path."""
    routes = [item for item in request.app.routes if isinstance(item, Route) and item.endpoint is not _unknown]
    served = [item.methods or set() for item in routes if item.matches(request.scope)[0] is not Match.NONE]
    return sorted(set().union(*served))


async def _openapi(_: Request) -> Response:
    return JSONResponse(described())


async def _unknown(request: Request) -> Response:
    if allowed_methods(request):
        raise HTTPException(405)
    raise NotFound.of("path")


ROUTES = (
    *map(_endpoint, ENDPOINTS),
    Route(f"{API}/openapi.json", _openapi, methods=["GET"]),
    Route(f"{API}/{{rest:path}}", _unknown, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
)
"""The routes of the interface."""
