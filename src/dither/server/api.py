"""The JSON interface under ``/api/v1``: one table of routes, from which it is served, checked and described (OpenAPI).

It takes a personal token and never a cookie. A request that names another analyst is refused like any unknown field:
the analyst is the user whose token it is. A route authorizes nothing: the use case does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
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
from dither.server.errors import NotFound, problem_of, retry_after
from dither.server.jobs import Job
from dither.server.roles import Principal
from dither.server.service import Service
from dither.tables import codec
from dither.tables.answer import Answer
from dither.tables.card.accounts import TableAccounts
from dither.tables.card.model import Card
from dither.tables.codec import fields, kind_of, read, text
from dither.tables.planning.explain import Explanation
from dither.wire.protocol import API, CONTENT_TYPE, KEY_HEADER
from dither.wire.results import answer_to_json, card_to_json, explanation_to_json

_MAX_INLINE_BYTES = 16_384
"""The largest body, in bytes, that is parsed in the event loop's own thread instead of a worker thread."""
_MAX_WAIT_SECONDS = 60


# -- values as JSON -------------------------------------------------------------------------------------------------


def document(value: Any) -> Any:
    """Convert the result of a use case to JSON values: types listed in ``_FORMS`` by their own function, any other
    dataclass to an object of its fields."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    for kind, form in _FORMS:
        if isinstance(value, kind):
            return form(value)
    if is_dataclass(value):
        return {item.name: document(getattr(value, item.name)) for item in dataclass_fields(value)}
    if isinstance(value, Mapping):
        return {str(name): document(item) for name, item in value.items()}
    return [document(item) for item in value]


def _account(account: Account) -> dict[str, Any]:
    """Convert an account to a JSON object. What each person has spent is private, so ``spent`` and ``left`` of the
    people's account are null."""
    names = ("owner", "kind", "name", "unit", "limit", "spent", "left", "left_text")
    return {name: document(getattr(account, name)) for name in names}


_FORMS: tuple[tuple[type, Callable[[Any], dict[str, Any]]], ...] = (
    (Card, card_to_json),
    (Answer, answer_to_json),
    (Explanation, explanation_to_json),
    (Guarantee, codec.to_json),
    (Account, _account),
)
"""Types that are not converted field by field, each with the function that makes its JSON object."""


# -- parameters -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """A query parameter or a field of a JSON body: its JSON schema, its parser and its default value."""

    schema: Mapping[str, Any]
    read: Callable[[Any, str], Any]
    """Parses a value, given with the parameter's name; raises InvalidArgument where it does not fit the schema."""
    default: Any = None
    required: bool = False

    @property
    def description(self) -> dict[str, Any]:
        """Return the JSON schema with the default value, as the OpenAPI document has it."""
        return {**self.schema, **({} if self.default is None else {"default": self.default})}


def _whole(given: str, name: str) -> int:
    """Parse a whole number from the text of a query; refuse other text."""
    if not given.isascii() or not given.isdigit() or len(given) > 15:
        raise InvalidArgument(name, "a whole number", "text that is not one", f"write {name}=100")
    return int(given)


def _of_type(kinds: type | tuple[type, ...], expected: str, example: str) -> Callable[[Any, str], Any]:
    """Return a reader of JSON values that refuses values which are not of these Python types."""

    def checked(value: Any, name: str) -> Any:
        """Return the value if it has the type; refuse it otherwise."""
        if not isinstance(value, kinds):
            raise WrongType(name, expected, kind_of(value), f"write {example}")
        return value

    return checked


def _guarantee(value: object, name: str) -> Guarantee:
    """Parse the guarantee that a JSON object states."""
    document = _of_type(dict, "a guarantee", '{"kind": "pure", "epsilon": "1"}')(value, name)
    limit: Guarantee = codec.from_json(document, Guarantee, name)
    return limit


def _nullable(item: Parameter) -> Parameter:
    """Return a variant of a parameter that also accepts null, which is read as None."""

    def checked(value: Any, name: str) -> Any:
        """Read null as None, and anything else as the parameter does."""
        return None if value is None else item.read(value, name)

    return Parameter({**item.schema, "type": [item.schema["type"], "null"]}, checked)


WHOLE = Parameter({"type": "integer", "minimum": 0}, _whole)
TEXT = Parameter({"type": "string"}, text)
NEEDED = replace(TEXT, required=True)
BOOLEAN = Parameter({"type": "boolean"}, _of_type(bool, "true or false", "true"), False)
GUARANTEE = Parameter(
    {"type": "object", "description": 'A guarantee: {"kind": "pure", "epsilon": "1/2"}.'}, _guarantee, required=True
)
QUESTION = Parameter(
    {
        "type": ["string", "object"],
        "description": "SQL, or an object with sql, or with a tree as dither.connect sends it.",
    },
    _of_type((str, dict), "SQL, or an object with sql or tree", '{"sql": "SELECT …"}'),
    required=True,
)
OPTIONS = Parameter(
    {"type": "object", "description": "The options of a release by name: epsilon, error, delta …"},
    _of_type(dict, "an object", '{"epsilon": 0.5}'),
    {},
)


# -- the table of routes --------------------------------------------------------------------------------------------

UseCase = Callable[[Service], Callable[..., Any]]


@dataclass(frozen=True)
class Endpoint:
    """A route: its use case takes the parts of the path, the query and the fields of the body by name."""

    method: str
    path: str
    summary: str
    use_case: UseCase
    result: str = ""
    """The key under which the response object holds the result; empty if the result is the whole response."""
    body: Mapping[str, Parameter] = field(default_factory=dict)
    query: Mapping[str, Parameter] = field(default_factory=dict)
    has_key: bool = False
    recorded: UseCase | None = None
    """A faster use case, tried first: it returns the result if a few reads of the server's database find it, else
    None."""
    schema: str = ""
    """The name of the response's schema in the OpenAPI document; empty for a plain object."""

    def arguments(self, request: Request, body: bytes) -> dict[str, Any]:
        """Return the keyword arguments for the use case, from path, query, body and headers; refuse unknown and
        missing ones."""
        if set(request.query_params) - set(self.query):
            raise InvalidArgument("query", ", ".join(self.query) or "none", "an unknown parameter", "leave it out")
        required = [name for name, item in self.body.items() if item.required]
        stated = fields(read(body) if body else {}, "body", required, tuple(self.body))
        result: dict[str, Any] = dict(request.path_params)
        for declared, given in ((self.query, request.query_params), (self.body, stated)):
            for name, item in declared.items():
                result[name] = item.read(given[name], name) if name in given else item.default
        return result | ({"key": request.headers.get(KEY_HEADER)} if self.has_key else {})


_WAIT = {"wait": replace(WHOLE, default=0)}
_MOST = {"most": replace(WHOLE, default=100)}
_PAGE = {"after": replace(WHOLE, default=0), **_MOST}
_ASKED = {"question": QUESTION, "options": OPTIONS}
_TITLE = {"title": NEEDED}
ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/tables", "List the tables you may query", lambda s: s.tables.list, "tables"),
    Endpoint("GET", "/tables/{table}", "Show the public card of a table", lambda s: s.tables.card),
    Endpoint("GET", "/cards", "List the card and plan files that are not in force", lambda s: s.tables.problems,
             "problems"),
    Endpoint("POST", "/tables/{table}/explain", "Explain a question; nothing is charged", lambda s: s.questions.explain,
             "", _ASKED),
    Endpoint("POST", "/tables/{table}/questions", "Ask a question", lambda s: s.questions.ask, "", _ASKED, _WAIT, True,
             lambda s: s.questions.recorded, "Job"),
    Endpoint("GET", "/jobs", "List your waiting questions", lambda s: s.questions.jobs, "jobs"),
    Endpoint("GET", "/jobs/{job}", "Show the state of a question", lambda s: s.questions.job, query=_WAIT,
             schema="Job"),
    Endpoint("DELETE", "/jobs/{job}", "Cancel a question", lambda s: s.questions.cancel),
    Endpoint("GET", "/answers", "List your answers", lambda s: s.answers.mine, "answers",
             query={"table": TEXT, **_MOST, "before": TEXT}),
    Endpoint("GET", "/answers/{answer}", "Show an answer", lambda s: s.answers.document, schema="Answer"),
    Endpoint("POST", "/answers/{answer}/propose", "Ask a steward to publish an answer", lambda s: s.answers.propose,
             "", _TITLE),
    Endpoint("POST", "/answers/{answer}/publish", "Publish an answer to readers", lambda s: s.answers.publish,
             "", _TITLE),
    Endpoint("DELETE", "/answers/{answer}/publish", "Withdraw a published answer", lambda s: s.answers.unpublish),
    Endpoint("GET", "/published", "List published answers", lambda s: s.answers.published, "answers"),
    Endpoint("GET", "/proposals", "List answers proposed for publication", lambda s: s.answers.proposals, "answers"),
    Endpoint("GET", "/budget", "Show your remaining budget", lambda s: s.budgets.own, "budgets"),
    Endpoint("GET", "/tables/{table}/budget", "Show the accounts of a table", lambda s: s.budgets.dataset),
    Endpoint("GET", "/plans", "List publication plans", lambda s: s.plans.list, "plans"),
    Endpoint("GET", "/plans/{plan}", "Explain a plan", lambda s: s.plans.explain),
    Endpoint("POST", "/plans/{plan}/release", "Release a plan", lambda s: s.plans.release, query=_WAIT, has_key=True,
             schema="Job"),
    Endpoint("POST", "/tables/{table}/profile/forecast", "Forecast a profile; nothing is charged",
             lambda s: s.profiles.forecast, "", {"options": OPTIONS}),
    Endpoint("POST", "/tables/{table}/profile", "Buy a profile of a table", lambda s: s.profiles.release, "",
             {"options": OPTIONS}, _WAIT, schema="Job"),
    Endpoint("GET", "/users", "List users", lambda s: s.users.list, "users"),
    Endpoint("GET", "/grants", "List grants", lambda s: s.users.grants, "grants", query={"table": TEXT}),
    Endpoint("POST", "/grants", "Grant a user access to a table", lambda s: s.users.grant, "",
             {"user": NEEDED, "table": NEEDED, "limit": _nullable(GUARANTEE), "first": BOOLEAN}),
    Endpoint("DELETE", "/grants/{user}/{table}", "Revoke a user's access to a table", lambda s: s.users.revoke,
             "revoked"),
    Endpoint("GET", "/limits", "List changes of limits", lambda s: s.budgets.changes, "changes"),
    Endpoint("POST", "/limits", "Propose a new limit (needs a session, not a token)", lambda s: s.budgets.propose, "",
             {"table": NEEDED, "limit": GUARANTEE, "reason": NEEDED, "analyst": _nullable(TEXT),
              "each_person": BOOLEAN}),
    Endpoint("GET", "/incidents", "List the incidents of each table", lambda s: s.budgets.incidents, "tables"),
    Endpoint("GET", "/tables/{table}/entries", "List the entries of a table's ledger", lambda s: s.chain.entries,
             "entries", query=_PAGE),
    Endpoint("POST", "/tables/{table}/verify", "Verify a table's ledger", lambda s: s.chain.verify, "",
             {"receipt": _nullable(TEXT)}),
    Endpoint("GET", "/tables/{table}/receipt", "Show the last receipt of a table's ledger", lambda s: s.chain.receipt,
             "receipt"),
    Endpoint("GET", "/events", "List the event log", lambda s: s.chain.events, "events", query={**_PAGE, "user": TEXT}),
)  # fmt: skip
"""All endpoints; their paths are relative to :data:`dither.wire.protocol.API`."""


# -- serving --------------------------------------------------------------------------------------------------------


def error_response(error: BaseException, status: int | None = None) -> Response:
    """Return an error as a response of type ``application/problem+json``; ``status`` None takes that of its class."""
    problem = problem_of(error, status)
    headers = {"www-authenticate": "Bearer"} if problem["status"] == 401 else {}
    return Response(json.dumps(problem), problem["status"], headers | retry_after(error), CONTENT_TYPE)


def _route(endpoint: Endpoint) -> Route:
    """Build the Starlette route of an endpoint: it reads a request, runs the use case in a thread, and waits for a
    job where the request asks to."""

    async def serve(request: Request) -> Response:
        """Serve one request; the principal was authenticated by :class:`dither.server.app.Admission`."""
        service: Service = request.app.state.service
        who: Principal = request.state.principal  # dither.server.app refuses requests without a token
        body = await request.body()
        quick = _recorded(endpoint, service, who, request, body)
        if quick is not None:
            return quick

        def work() -> tuple[Any, int]:
            """Return the response, or a job to wait for and for how long."""
            given = endpoint.arguments(request, body)
            seconds = min(_MAX_WAIT_SECONDS, given.pop("wait", 0))
            result = endpoint.use_case(service)(who, **given)
            if isinstance(result, Job) and result.state == "waiting" and seconds:
                return result, seconds
            return _response(endpoint, service, who, result), 0

        result, seconds = await run_in_threadpool(work)
        if seconds:
            job = await service.questions.wait(who, result.id, seconds=seconds)
            result = await run_in_threadpool(_response, endpoint, service, who, job)
        assert isinstance(result, Response)
        return result

    return Route(API + endpoint.path, serve, methods=[endpoint.method])


def _recorded(endpoint: Endpoint, service: Service, who: Principal, request: Request, body: bytes) -> Response | None:
    """Return the recorded answer to a repeated question of the user ``who``, or None where the request needs a thread.

    ``endpoint`` is the route and ``body`` the body of the request. It runs in the thread of the event loop: on SQLite
    it takes a few short reads, and waking a thread twice takes longer. What would be refused is None as well, so that
    the use case refuses and logs it.
    """
    if endpoint.recorded is None or len(body) > _MAX_INLINE_BYTES:
        return None
    if not service.context.is_quick(request.path_params.get("table", "")):
        return None
    try:
        given = endpoint.arguments(request, body)
        del given["wait"]
        job = endpoint.recorded(service)(who, **given)
    except DitherError:
        return None
    return None if job is None else _response(endpoint, service, who, job)


def _response(endpoint: Endpoint, service: Service, who: Principal, result: Any) -> Response:
    """Build the JSON response for the ``result`` of an endpoint's use case, called by the user ``who``.

    A job has status 202 while it waits, and carries its answer if the user's token may ask. An answer that was recorded
    before is marked as replayed, with what is left of the budget now.
    """
    if not isinstance(result, Job):
        return JSONResponse(document({endpoint.result: result} if endpoint.result else result))
    body: dict[str, Any] = {**document(result), "answer": None}
    if result.answer_id is not None and result.kind == "question" and who.scopes is not None and "ask" in who.scopes:
        answer = service.answers.of_job(who, result.answer_id)
        if result.id.startswith("recorded-"):
            folder = service.context.folder
            left = TableAccounts(folder.get(result.table).card, folder.ledger(result.table)).remaining(who.name)
            answer |= {"replayed": True, "left": codec.to_json(left)}
        body["answer"] = answer
    return JSONResponse(body, 202 if result.state == "waiting" else 200)


def allowed_methods(request: Request) -> list[str]:
    """Return the HTTP methods that the path of a request is served with; none for an unknown path."""
    routes = [item for item in request.app.routes if isinstance(item, Route) and item.endpoint is not _unknown]
    served = [item.methods or set() for item in routes if item.matches(request.scope)[0] is not Match.NONE]
    return sorted(set().union(*served))


async def _openapi(_: Request) -> Response:
    """Serve the OpenAPI document."""
    return JSONResponse(openapi())


async def _unknown(request: Request) -> Response:
    """Refuse an unknown path (404), or a method that its route does not take (405)."""
    if allowed_methods(request):
        raise HTTPException(405)
    raise NotFound.of("path")


ROUTES = (
    *map(_route, ENDPOINTS),
    Route(f"{API}/openapi.json", _openapi, methods=["GET"]),
    Route(f"{API}/{{rest:path}}", _unknown, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
)
"""The routes of the interface."""


# -- the OpenAPI document -------------------------------------------------------------------------------------------

_TEXT, _NULLABLE_TEXT = {"type": "string"}, {"type": ["string", "null"]}
_SCHEMAS = {
    "Problem": {
        "type": "object",
        "description": "An error (RFC 9457) with what was expected, what was received, and how to fix it.",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            **dict.fromkeys(("type", "title", "detail", "name", "expected", "got", "fix"), _TEXT),
            "status": {"type": "integer"},
        },
    },
    "Job": {
        "type": "object",
        "description": "A question: waiting until a tick, then answered, refused, failed or cancelled.",
        "required": ["id", "table", "state", "answer_id", "problem"],
        "properties": {
            **dict.fromkeys(("id", "table", "question"), _TEXT),
            "kind": {"enum": ["question", "publication"]},
            "state": {"enum": ["waiting", "answered", "refused", "failed", "cancelled"]},
            "asked_at": {"type": "string", "format": "date-time"},
            "answer_id": _NULLABLE_TEXT,
            "answer": {"anyOf": [{"$ref": "#/components/schemas/Answer"}, {"type": "null"}]},
            "problem": {"anyOf": [{"$ref": "#/components/schemas/Problem"}, {"type": "null"}]},
        },
    },
    "Answer": {
        "type": "object",
        "description": "An answer: the text that the ledger recorded, what was left, and the receipt.",
        "required": ["recorded", "left", "replayed", "receipt"],
        "properties": {
            "version": {"type": "integer"},
            "recorded": _TEXT,
            "left": {"type": ["object", "null"]},
            "replayed": {"type": "boolean"},
            "receipt": _TEXT,
        },
    },
}


@cache
def openapi() -> dict[str, Any]:
    """Build the OpenAPI 3.1 description of all endpoints."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(API + endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dither",
            "version": "1",
            "description": "Differentially private answers, each with its error and its cost in privacy budget.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _SCHEMAS,
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    """Build the OpenAPI description of one endpoint."""
    in_path = re.findall(r"\{([a-z]+)\}", endpoint.path)
    parameters: list[dict[str, Any]] = [
        *({"name": name, "in": "path", "required": True, "schema": _TEXT} for name in in_path),
        *({"name": name, "in": "query", "schema": item.description} for name, item in endpoint.query.items()),
    ]
    if endpoint.has_key:
        words = (
            "A name for this release. A repeated request with this key returns the recorded answer without a charge."
        )
        parameters.append({"name": KEY_HEADER, "in": "header", "description": words, "schema": _TEXT})
    schema = {"$ref": f"#/components/schemas/{endpoint.schema}"} if endpoint.schema else {"type": "object"}
    content = {"application/json": {"schema": schema}}
    responses: dict[str, Any] = {"200": {"description": "Done", "content": content}}
    if "wait" in endpoint.query:
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
        properties = {name: item.description for name, item in endpoint.body.items()}
        needed = [name for name, item in endpoint.body.items() if item.required]
        stated = {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
        result["requestBody"] = {"required": bool(needed), "content": {"application/json": {"schema": stated}}}
    return result
