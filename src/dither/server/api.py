"""The JSON interface: endpoints served under ``/api/v1``, with a personal token and never a cookie.

A request that names another analyst is refused like any unknown field: who asks is whose token it is.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route

from dither.errors import DitherError
from dither.server.documents import document
from dither.server.endpoints import ENDPOINTS, Call, Endpoint
from dither.server.errors import NotFound
from dither.server.openapi import described
from dither.server.principal import Principal
from dither.server.problems import problem_of, retry_after, to_json
from dither.server.results import Job
from dither.server.service import Service
from dither.tables.card.accounts import TableAccounts
from dither.wire.problems import CONTENT_TYPE
from dither.wire.routes import API, KEY_HEADER

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

        who: Principal = request.state.principal  # dither.server.admission refuses whoever has no token
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
