"""Whether the server lives, and whether it can answer: for whoever watches over it. They say nothing of any table."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dither.server import schema
from dither.server.limits import address_of
from dither.server.service import Service


async def _health(_: Request) -> Response:
    """It answers: that is all that it says."""
    return JSONResponse({"alive": True})


async def _ready(request: Request) -> Response:
    """Every worker can take a question up, and the database answers."""
    service: Service = request.app.state.service
    service.context.count_request(None, address_of(request))
    state = await run_in_threadpool(_state, service)
    return JSONResponse(state, 200 if state["ready"] else 503)


def _state(service: Service) -> dict[str, bool | int]:
    pool = service.context.pool
    try:
        database = service.context.store.one(select(schema.about.c.version)) is not None
    except SQLAlchemyError:
        database = False
    return {
        "ready": database and pool.ready == pool.size, "workers": pool.ready, "of": pool.size, "database": database
    }  # fmt: skip


ROUTES = (Route("/health", _health, methods=["GET"]), Route("/ready", _ready, methods=["GET"]))
"""The routes of both."""

__all__ = ["ROUTES"]
