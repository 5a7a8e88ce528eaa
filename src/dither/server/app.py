"""The application: pages and the JSON interface of one service, inside the limits and headers of every request."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dither.errors import DitherError, InvalidArgument
from dither.server import api, health, oidc, pages
from dither.server.admission import Admission, is_interface
from dither.server.config import Config
from dither.server.errors import NotFound
from dither.server.limits import LimitedBodies
from dither.server.metrics import Metrics
from dither.server.problems import is_outage
from dither.server.request_log import RequestLog, place_of
from dither.server.security import OwnSite, SecureHeaders
from dither.server.service import Service
from dither.server.ticks import Clock

_log = logging.getLogger("dither.server")


def create_app(config: Config, *, service: Service | None = None, clock: Clock | None = None) -> Starlette:
    """The application of a service, or of a new one that starts and stops with it, and goes by ``clock``."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        running: Service = service if service is not None else await run_in_threadpool(Service.start, config, clock)
        app.state.service = running
        try:
            yield
        finally:
            if service is None:
                await run_in_threadpool(running.stop)

    origins = frozenset({urlsplit(config.public_url).netloc} - {""})
    routes = [*health.ROUTES, *api.ROUTES, *oidc.ROUTES, *pages.ROUTES]
    metrics = Metrics(routes)
    middleware = [
        Middleware(RequestLog, metrics=metrics),
        Middleware(SecureHeaders, https=config.cookies_are_secure and config.public_url.startswith("https://")),
        Middleware(ServerErrors),
        Middleware(Admission, refuse=_response),
        Middleware(OwnSite, origins=origins, refuse=api.error_response),
        Middleware(
            LimitedBodies, max_bytes=config.max_body_bytes, seconds=config.read_timeout, refuse=api.error_response
        ),
    ]
    handlers: dict[Any, Any] = {DitherError: _refused, HTTPException: _http_error}
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=lifespan)
    app.router.redirect_slashes = False  # it redirects to whatever the request says is the host
    app.state.metrics = metrics
    if service is not None:
        app.state.service = service
    return app


def _response(request: Request, error: BaseException, status: int | None = None) -> Response:
    if is_interface(request.scope["path"]):
        return api.error_response(error, status)
    return pages.error_response(request, error, status)


async def _refused(request: Request, error: Exception) -> Response:
    return _response(request, error)


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return _response(request, NotFound.of("path"))
    if status >= 500:
        return _response(request, error)
    if status == 405:
        allowed = ", ".join(api.allowed_methods(request))
        refused = InvalidArgument("method", allowed, "a method that is not allowed here", "use one of these")
        response = _response(request, refused, status)
        response.headers["allow"] = allowed
        return response
    fix = "see the documentation of the API"
    return _response(request, InvalidArgument("request", "a request that can be read", "a malformed one", fix), status)


class ServerErrors:
    """Answers an error that is not dither's: 503 where the database or the disk cannot be used, else 500. The log gets
    its class and place, and not its text, which may hold anything."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = False

        async def watch(event: Message) -> None:
            nonlocal began
            began = began or event["type"] == "http.response.start"
            await send(event)

        try:
            await self._app(scope, receive, watch)
        except Exception as error:
            _log.error("%s: %s", "unavailable" if is_outage(error) else "internal error", place_of(error))
            if not began:
                await _response(Request(scope), error)(scope, receive, send)
