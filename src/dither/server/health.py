"""For whoever operates the server: whether it lives, whether it can answer, and metrics. They say nothing of any table.

``/health`` and ``/ready`` are for everybody. ``/metrics`` needs one of the ``metrics_tokens`` of the configuration, so
that it can be read when the database cannot.
"""

from __future__ import annotations

import hmac

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from dither import __version__
from dither.server import schema
from dither.server.errors import NotFound
from dither.server.metrics import CONTENT_TYPE, Metrics
from dither.server.service import Service


async def _health(_: Request) -> Response:
    """It answers: that is all that it says."""
    return JSONResponse({"alive": True})


async def _ready(request: Request) -> Response:
    """Every worker can take a question up, and the database answers."""
    service: Service = request.app.state.service
    pool = service.context.pool
    database = await run_in_threadpool(_database_answers, service)
    ready = database and pool.ready == pool.size
    state = {"ready": ready, "workers": pool.ready, "of": pool.size, "database": database}
    return JSONResponse(state, 200 if ready else 503)


async def _metrics(request: Request) -> Response:
    """The metrics in the text format of Prometheus."""
    service: Service = request.app.state.service
    sent = request.headers.get("authorization", "").encode()
    known = [f"Bearer {token}".encode() for token in service.config.metrics_tokens]
    if not any(hmac.compare_digest(sent, token) for token in known):
        raise NotFound.of("path")
    pool, metrics = service.context.pool, request.app.state.metrics
    assert isinstance(metrics, Metrics)
    gauges = {
        "dither_workers": ("Workers that are configured.", pool.size),
        "dither_workers_ready": ("Workers that can take a question up.", pool.ready),
        "dither_questions_under_way": ("Questions that have not reached the tick at which they end.",
                                       service.context.jobs.under_way),
        "dither_database_up": ("Whether the database of the server answers.",
                               await run_in_threadpool(_database_answers, service)),
    }  # fmt: skip
    return PlainTextResponse(metrics.text(gauges, __version__), media_type=CONTENT_TYPE)


def _database_answers(service: Service) -> bool:
    try:
        return service.context.store.one(select(schema.about.c.version)) is not None
    except SQLAlchemyError:
        return False


ROUTES = (
    Route("/health", _health, methods=["GET"]),
    Route("/ready", _ready, methods=["GET"]),
    Route("/metrics", _metrics, methods=["GET"]),
)
"""The routes of all three."""
