"""The application: pages and the JSON interface of one service, and the steps that every request passes before them.

In order: its line of the log (:class:`~dither.server.monitoring.RequestLog`), the headers of its response, errors that
are not dither's, who sends it and whether there were too many, whether another site made a browser send it, the size
and speed of its body. What a route does, and whether it exists, cannot be learned by a request that is not counted.

The JSON interface takes tokens and no cookies, so that no other site can use it. Forms of pages carry a token of their
own (:mod:`dither.server.pages.render`); beside that, whatever a browser says comes from another site is refused here
unless it only reads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dither.errors import AccessDenied, DitherError, InvalidArgument
from dither.server import api, monitoring, oidc, pages
from dither.server.config import Config
from dither.server.errors import NotFound, NotSignedIn, is_outage, location_of
from dither.server.limits import address_of
from dither.server.monitoring import HttpMiddleware, Metrics, RequestLog
from dither.server.pages.render import SESSION_COOKIE
from dither.server.pool import Clock
from dither.server.roles import Principal
from dither.server.service import Service
from dither.wire.protocol import API

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""The Content-Security-Policy: nothing from elsewhere, and no script or style inside a page."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_BEARER = "bearer "
_MAX_HEADER = 500
_FREE = frozenset({"/health"})
"""Paths without authentication and rate limit, besides the files under ``/static/``: they read no database."""
_PUBLIC = f"{API}/openapi.json"
"""The one address of the interface that needs no token."""
_log = logging.getLogger("dither.server")


def create_app(config: Config, *, service: Service | None = None, clock: Clock | None = None) -> Starlette:
    """Build the ASGI application of a service. Without ``service`` it starts one with ``config`` and ``clock``, and
    stops it at shutdown."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        """Start the service before the first request, unless it was passed in, and stop it after the last one."""
        running: Service = service if service is not None else await run_in_threadpool(Service.start, config, clock)
        app.state.service = running
        try:
            yield
        finally:
            if service is None:
                await run_in_threadpool(running.stop)

    routes = [*monitoring.ROUTES, *api.ROUTES, *oidc.ROUTES, *pages.ROUTES]
    metrics = Metrics(routes)
    middleware = [
        Middleware(RequestLog, metrics=metrics),
        Middleware(SecureHeaders, https=config.cookies_are_secure and config.public_url.startswith("https://")),
        Middleware(ServerErrorMiddleware),
        Middleware(Admission),
        Middleware(SameOrigin, origins=frozenset({urlsplit(config.public_url).netloc} - {""})),
        Middleware(BodyLimit, max_bytes=config.max_body_bytes, seconds=config.read_timeout),
    ]
    handlers: dict[Any, Any] = {DitherError: _refused, HTTPException: _http_error}
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=lifespan)
    app.router.redirect_slashes = False  # it redirects to whatever the request says is the host
    app.state.metrics = metrics
    if service is not None:
        app.state.service = service
    return app


# -- errors as responses --------------------------------------------------------------------------------------------


def is_interface(path: str) -> bool:
    """Return whether a path belongs to the JSON interface, which takes tokens and no cookies."""
    return path == API or path.startswith(f"{API}/")


def _response(request: Request, error: BaseException, status: int | None = None) -> Response:
    """Return an error as a problem document under the interface's path, and as an HTML page elsewhere; ``status``
    None takes that of the error's class."""
    if is_interface(request.scope["path"]):
        return api.error_response(error, status)
    return pages.error_response(request, error, status)


async def _refused(request: Request, error: Exception) -> Response:
    """Return the response to one of dither's errors, for Starlette."""
    return _response(request, error)


async def _http_error(request: Request, error: Exception) -> Response:
    """Return the response to an error of Starlette, such as an unknown path or method, in dither's words."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return _response(request, NotFound.of("path"))
    if status >= 500:
        return _response(request, error)
    if status == 405:
        allowed = ", ".join(api.allowed_methods(request))
        response = _response(request, InvalidArgument(f"Method not allowed. Use one of {allowed}."), status)
        response.headers["allow"] = allowed
        return response
    return _response(request, InvalidArgument("The request cannot be read. See the documentation of the API."), status)


class ServerErrorMiddleware(HttpMiddleware):
    """Turns an unexpected error into a response: 503 if the database or the disk cannot be used, else 500. The log
    gets its class and location, but not its text, which may hold anything."""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and turn an unexpected error into a response unless one has begun."""
        began = False

        async def watch(event: Message) -> None:
            """Send an event of the response, and note that the response has begun."""
            nonlocal began
            began = began or event["type"] == "http.response.start"
            await send(event)

        try:
            await self.app(scope, receive, watch)
        except Exception as error:
            _log.error("%s: %s", "unavailable" if is_outage(error) else "internal error", location_of(error))
            if not began:
                await _response(Request(scope), error)(scope, receive, send)


# -- who sends a request --------------------------------------------------------------------------------------------


class Admission(HttpMiddleware):
    """Authenticates each request (``request.state.principal``, None for anonymous ones) and applies the rate limit."""

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of an authenticated or anonymous client, or refuse it."""
        request = Request(scope)
        try:
            request.state.principal = await self._admitted(request, scope["path"])
        except DitherError as error:
            await _response(request, error)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    async def _admitted(self, request: Request, path: str) -> Principal | None:
        """Return the principal of a request, None if it is anonymous, and count the request; refuse the JSON
        interface without a valid token."""
        if path in _FREE or path.startswith("/static/"):
            return None
        service: Service = request.app.state.service
        try:
            who = await (_of_token if is_interface(path) else _of_session)(service, request)
        except NotSignedIn:
            who = None
        service.context.count_request(who, address_of(request.scope))
        if who is None and is_interface(path) and path != _PUBLIC:
            raise NotSignedIn.refusal()
        return who


async def _of_token(service: Service, request: Request) -> Principal | None:
    """Return the principal of the bearer token of a request; None without a token."""
    header = request.headers.get("authorization", "")
    if header[: len(_BEARER)].lower() != _BEARER or len(header) > _MAX_HEADER:
        return None
    secret = header[len(_BEARER) :].strip()
    if service.context.store.is_sqlite:  # a short read, and a thread that has to be woken up takes longer
        known = service.auth.known_token(secret)
        if known is not None:
            return known
    return await run_in_threadpool(service.auth.principal_of_token, secret)


async def _of_session(service: Service, request: Request) -> Principal | None:
    """Return the principal of the session cookie of a request; None without a cookie."""
    cookie = request.cookies.get(SESSION_COOKIE, "")
    return await run_in_threadpool(service.auth.principal_of_session, cookie) if cookie else None


# -- headers, other sites, bodies -----------------------------------------------------------------------------------


class SecureHeaders(HttpMiddleware):
    """Adds the security headers to every response."""

    def __init__(self, app: ASGIApp, *, https: bool) -> None:
        super().__init__(app)
        self._headers = HEADERS | ({"strict-transport-security": "max-age=31536000"} if https else {})

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and complete the headers of its response.

        Static files may be cached if the browser asks each time whether they have changed.
        """
        is_file = scope["path"].startswith("/static/")
        headers = self._headers | ({"cache-control": "no-cache"} if is_file else {})

        async def complete(event: Message) -> None:
            """Add the headers that the response does not set itself."""
            if event["type"] == "http.response.start":
                sent = MutableHeaders(scope=event)
                for name, value in headers.items():
                    sent.setdefault(name, value)
            await send(event)

        await self.app(scope, receive, complete)


class SameOrigin(HttpMiddleware):
    """Refuses cross-site requests that may change something, which a foreign page made the browser send."""

    def __init__(self, app: ASGIApp, *, origins: frozenset[str]) -> None:
        super().__init__(app)
        self._origins = origins

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it as cross-site."""
        if scope["method"] not in _READS and self._is_foreign(Headers(scope=scope)):
            error = AccessDenied("Cross-site request refused. Open the page on this server.")
            await _response(Request(scope), error)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _is_foreign(self, headers: Headers) -> bool:
        """Return whether the browser's headers say that another site caused the request."""
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return True
        origin = headers.get("origin")
        if origin is None:
            return False
        return urlsplit(origin).netloc not in {headers.get("host", ""), *self._origins} or origin == "null"


class BodyLimit(HttpMiddleware):
    """Reads the whole body of a request within limits of size and time, before the request is handled.

    A slow or an endless client is refused here, before it holds a thread or a place in a queue.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int, seconds: float) -> None:
        super().__init__(app)
        self._max_bytes, self._seconds = max_bytes, seconds

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body of a request, then serve the request with it.

        Too long a body is refused with status 413, too slow a one with 408. A declared length of more than 15 digits is
        not parsed.
        """
        try:
            declared = dict(scope["headers"]).get(b"content-length", b"0")
            if not declared.isdigit() or len(declared) > 15 or int(declared) > self._max_bytes:
                raise self._too_large()
            async with asyncio.timeout(self._seconds):
                body = await self._read(receive)
        except InvalidArgument as error:
            await _response(Request(scope), error, 413)(scope, receive, send)
            return
        except TimeoutError:
            slow = InvalidArgument("body", f"all of it within {self._seconds:g} s", "a part of it", "send it at once")
            await _response(Request(scope), slow, 408)(scope, receive, send)
            return
        if body is None:  # the client is gone
            return
        sent = False

        async def replay() -> Message:
            """Return the body that was read as the first event of the request, then the client's later events, such as
            a disconnect."""
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": body, "more_body": False}
            return await receive()

        await self.app(scope, replay, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the whole body; None if the client disconnected; refuse one that is too large."""
        parts: list[bytes] = []
        size = 0
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                return None
            part = event.get("body", b"")
            size += len(part)
            if size > self._max_bytes:
                raise self._too_large()
            parts.append(part)
            if not event.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> InvalidArgument:
        """Return the error for a body above the limit."""
        return InvalidArgument("body", f"at most {self._max_bytes} bytes", "more", "send less")
