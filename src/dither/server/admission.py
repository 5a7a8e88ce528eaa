"""Who sends a request, and whether there were too many, before anything else is done for it.

Every request passes here, whatever its path, before it is routed and before its body is read: what a route does, and
whether it exists, cannot be learned by a request that is not counted.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dither.errors import DitherError
from dither.server.errors import NotSignedIn
from dither.server.limits import address_of
from dither.server.pages.session import SESSION_COOKIE
from dither.server.principal import Principal
from dither.server.service import Service
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
