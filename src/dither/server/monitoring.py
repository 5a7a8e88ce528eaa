"""For operators: health, readiness, metrics, and one line of JSON in the log for each request and each error.

``/health`` and ``/ready`` are for everybody. ``/metrics`` needs one of the ``metrics_tokens`` of the configuration, so
that it can be read when the database cannot.

Metrics are the same for neighboring tables: each follows from what clients sent, from what they were sent at ticks, and
from the machine. There are no durations, no sizes, no processor time or memory, and no counts of answers, failures or
incidents. An answer that is there and one that is waited for are one outcome.

The id of a request is the client's ``X-Request-ID`` where that is a plain word, else a new one; it is sent back, and
stands in every line that was written for the request. A line names the route and not the path, which may hold a link
that works once. Of an error it has the class and the place, and not the text, which may hold anything; and it holds no
duration (see the threat model).
"""

from __future__ import annotations

import hmac
import json
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dither import __version__
from dither.server import schema
from dither.server.errors import NotFound, location_of
from dither.server.limits import address_of
from dither.server.service import Service

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
HEADER = "x-request-id"
_UNKNOWN = "unknown"
_WORD = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}", re.ASCII)
_log = logging.getLogger("dither.server.requests")
_current: ContextVar[str] = ContextVar("request_id", default="")


def outcome_of(status: int) -> str:
    """Return the label of an HTTP status in the metrics: ``ok``, ``refused`` (4xx), ``limited`` (429) or ``error``."""
    if status == 429:
        return "limited"
    return "ok" if status < 400 else "refused" if status < 500 else "error"


class Metrics:
    """Counts of requests by route and outcome, in this process."""

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        """Count from 0, with the paths of these routes as labels."""
        self._paths: dict[Any, str] = {}
        for route in routes:
            if isinstance(route, (Route, Mount)):
                endpoint = route.app if isinstance(route, Mount) else route.endpoint
                self._paths[endpoint] = route.path
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str], int] = {}
        self._started = time.time()

    def count(self, scope: Scope, status: int) -> str:
        """Count a request by its route and outcome, and return the path of the route."""
        route = self._paths.get(scope.get("endpoint"), _UNKNOWN)
        key = route, outcome_of(status)
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + 1
        return route

    def text(self, gauges: Mapping[str, tuple[str, float]], version: str) -> str:
        """Return all metrics in the text format of Prometheus; ``gauges`` maps names to help text and value."""
        process = f'process="{os.getpid()}"'
        lines = [
            "# HELP dither_info The version of dither.",
            "# TYPE dither_info gauge",
            f'dither_info{{{process},version="{version}"}} 1',
            "# HELP dither_requests_total Requests by route and outcome: ok, refused, limited or error.",
            "# TYPE dither_requests_total counter",
        ]
        with self._lock:
            counts = sorted(self._counts.items())
        for (route, outcome), count in counts:
            lines.append(f'dither_requests_total{{{process},route="{route}",outcome="{outcome}"}} {count}')
        started = {"dither_start_time_seconds": ("When this process started, in seconds since 1970.", self._started)}
        for name, (help_text, value) in {**started, **gauges}.items():
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} gauge", f"{name}{{{process}}} {value:.15g}"]
        return "\n".join(lines) + "\n"


class JsonFormatter(logging.Formatter):
    """Formats a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of JSON for a record."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if _current.get():
            line["request_id"] = _current.get()
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = location_of(record.exc_info[1])
        return json.dumps(line | getattr(record, "fields", {}))


CONFIGURATION: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "dither.server.monitoring.JsonFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "loggers": {
        "dither.server": {"handlers": ["stderr"], "level": "INFO"},
        "uvicorn": {"handlers": ["stderr"], "level": "WARNING"},
    },
}
"""The logging configuration for :func:`logging.config.dictConfig`: JSON lines on standard error."""


class HttpMiddleware:
    """Base of middleware for HTTP requests; other events (start and end of the server) pass through."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve an HTTP request by :meth:`serve`, and pass other events on."""
        await (self.serve if scope["type"] == "http" else self.app)(scope, receive, send)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; subclasses call ``self.app`` to pass it on."""
        raise NotImplementedError


class RequestLog(HttpMiddleware):
    """Gives every request an id, counts it by route and outcome, and logs it in one line."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        super().__init__(app)
        self._metrics = metrics

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and log it when the response has been sent; as status 500 if the app failed before.

        The request's id is the one in its header if that is a word, otherwise a new one.
        """
        given = Headers(scope=scope).get(HEADER, "")
        request_id = given if _WORD.fullmatch(given) else secrets.token_hex(16)
        status = 0

        async def marked(event: Message) -> None:
            """Send an event of the response; add the id to its headers, and note its status."""
            nonlocal status
            if event["type"] == "http.response.start":
                status = event["status"]
                MutableHeaders(scope=event)[HEADER] = request_id
            await send(event)

        before = _current.set(request_id)
        try:
            await self.app(scope, receive, marked)
        except Exception:
            status = status or 500  # the server sends that itself
            raise
        finally:
            if status:  # else the client was gone
                route = self._metrics.count(scope, status)
                who = scope.get("state", {}).get("principal")
                fields = {
                    "method": scope["method"][:10], "route": route, "status": status,
                    "user": "" if who is None else who.name, "address": address_of(scope),
                }  # fmt: skip
                _log.info("request", extra={"fields": fields})
            _current.reset(before)


async def _health(_: Request) -> Response:
    """Answer that the process is alive."""
    return JSONResponse({"alive": True})


async def _ready(request: Request) -> Response:
    """Answer with 200 if every worker can take a question and the database answers, else with 503."""
    service: Service = request.app.state.service
    pool = service.context.pool
    database = await run_in_threadpool(_database_answers, service)
    ready = database and pool.ready == pool.size
    state = {"ready": ready, "workers": pool.ready, "of": pool.size, "database": database}
    return JSONResponse(state, 200 if ready else 503)


async def _metrics(request: Request) -> Response:
    """Answer with the metrics in the text format of Prometheus, to a configured token only."""
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
    """Return whether the server's database can be read."""
    try:
        return service.context.store.one(select(schema.about.c.version)) is not None
    except SQLAlchemyError:
        return False


ROUTES = (
    Route("/health", _health, methods=["GET"]),
    Route("/ready", _ready, methods=["GET"]),
    Route("/metrics", _metrics, methods=["GET"]),
)
"""The routes ``/health``, ``/ready`` and ``/metrics``."""
