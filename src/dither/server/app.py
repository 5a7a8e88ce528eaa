"""The application: pages and the JSON interface of one service, inside the limits and headers of every request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
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
from dither.server.errors import NotFound, NotSignedIn, is_outage, place_of
from dither.server.limits import address_of
from dither.server.monitoring import Metrics, RequestLog
from dither.server.pages.render import SESSION_COOKIE
from dither.server.roles import Principal
from dither.server.service import Service
from dither.server.ticks import Clock
from dither.wire.routes import API

_BEARER = "bearer "

_MAX_HEADER = 500

_FREE = frozenset({"/health"})
"""What is not counted, beside the files under ``/static/``: it reads no database and knows nobody."""

_PUBLIC = f"{API}/openapi.json"
"""The one address of the interface that needs no token."""


def is_interface(path: str) -> bool:
    """Whether a path belongs to the JSON interface, which takes tokens and no cookies.

    >>> is_interface("/api/v1/tables"), is_interface("/tables")
    (True, False)
    """
    return path == API or path.startswith(f"{API}/")


class Admission:
    """Finds out who sends a request (``request.state.principal``, None for nobody), and counts it."""

    def __init__(self, app: ASGIApp, *, refuse: Callable[[Request, BaseException], Response]) -> None:
        self._app, self._refuse = app, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, or refuse it."""
        if scope["type"] == "http":
            request = Request(scope)
            try:
                request.state.principal = await self._admitted(request, scope["path"])
            except DitherError as error:
                await self._refuse(request, error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _admitted(self, request: Request, path: str) -> Principal | None:
        if path in _FREE or path.startswith("/static/"):
            return None
        service: Service = request.app.state.service
        who = await (_of_token if is_interface(path) else _of_session)(service, request)
        service.context.count_request(who, address_of(request))
        if who is None and is_interface(path) and path != _PUBLIC:
            raise NotSignedIn
        return who


async def _of_token(service: Service, request: Request) -> Principal | None:
    header = request.headers.get("authorization", "")
    if header[: len(_BEARER)].lower() != _BEARER or len(header) > _MAX_HEADER:
        return None
    secret = header[len(_BEARER) :].strip()
    if service.context.store.is_sqlite:  # a short read, and a thread that has to be woken up takes longer
        known = service.auth.known_token(secret)
        if known is not None:
            return known
    try:
        return await run_in_threadpool(service.auth.principal_of_token, secret)
    except NotSignedIn:
        return None


async def _of_session(service: Service, request: Request) -> Principal | None:
    cookie = request.cookies.get(SESSION_COOKIE, "")
    if not cookie:
        return None
    try:
        return await run_in_threadpool(service.auth.principal_of_session, cookie)
    except NotSignedIn:
        return None


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


class SecureHeaders:
    """Adds the headers, and removes what says which software this is."""

    def __init__(self, app: ASGIApp, *, https: bool) -> None:
        self._app = app
        self._headers = dict(HEADERS)
        if https:
            self._headers["strict-transport-security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, and complete the headers of the response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def complete(event: Message) -> None:
            if event["type"] == "http.response.start":
                headers = MutableHeaders(scope=event)
                for name, value in self._headers.items():
                    if name == "cache-control" and scope["path"].startswith("/static/"):
                        headers.setdefault(name, "no-cache")
                    else:
                        headers.setdefault(name, value)
            await send(event)

        await self._app(scope, receive, complete)


class OwnSite:
    """Refuses what a browser says another site sent, unless it only reads."""

    def __init__(self, app: ASGIApp, *, origins: frozenset[str], refuse: Callable[..., Any]) -> None:
        self._app, self._origins, self._refuse = app, origins, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, or refuse it."""
        if scope["type"] == "http" and scope["method"] not in _READS and self._is_foreign(Headers(scope=scope)):
            error = AccessDenied("request", "one from a page of this server", "another", "open the page here")
            await self._refuse(error, 403)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_foreign(self, headers: Headers) -> bool:
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return True
        origin = headers.get("origin")
        if origin is None:
            return False
        return urlsplit(origin).netloc not in {headers.get("host", ""), *self._origins} or origin == "null"


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
    routes = [*monitoring.ROUTES, *api.ROUTES, *oidc.ROUTES, *pages.ROUTES]
    metrics = Metrics(routes)
    middleware = [
        Middleware(RequestLog, metrics=metrics),
        Middleware(SecureHeaders, https=config.cookies_are_secure and config.public_url.startswith("https://")),
        Middleware(ServerErrorMiddleware),
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


class ServerErrorMiddleware:
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


class TooLarge(InvalidArgument):
    """A body that is larger than allowed.

    >>> issubclass(TooLarge, InvalidArgument)
    True
    """


class TooSlow(InvalidArgument):
    """A client that took too long to send its body.

    >>> issubclass(TooSlow, InvalidArgument)
    True
    """


class LimitedBodies:
    """Reads the whole body of a request before anybody else does, within the limits of size and time.

    A slow or an endless client is refused here, before it holds a thread or a place in a queue.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int, seconds: float, refuse: Any) -> None:
        self._app, self._max_bytes, self._seconds, self._refuse = app, max_bytes, seconds, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, then hand the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            declared = dict(scope["headers"]).get(b"content-length", b"0")
            if not declared.isdigit() or len(declared) > 15 or int(declared) > self._max_bytes:
                raise self._too_large()
            async with asyncio.timeout(self._seconds):
                body = await self._read(receive)
        except InvalidArgument as error:
            await self._refuse(error, 413)(scope, receive, send)
            return
        except TimeoutError:
            fix = "send it at once"
            slow = TooSlow("body", f"all of it within {self._seconds:g} s", "a part of it", fix)
            await self._refuse(slow, 408)(scope, receive, send)
            return
        if body is None:  # the client is gone
            return
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": body, "more_body": False}
            return await receive()

        await self._app(scope, replay, send)

    async def _read(self, receive: Receive) -> bytes | None:
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

    def _too_large(self) -> TooLarge:
        return TooLarge("body", f"at most {self._max_bytes} bytes", "more", "send less")
