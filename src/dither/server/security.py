"""Headers of every response, and requests that another site made a browser send.

The JSON interface takes tokens and no cookies, so that no other site can use it. Forms of pages carry a token of their
own (:mod:`dither.server.pages.session`); beside that, whatever a browser says comes from another site is refused here
unless it only reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dither.errors import AccessDenied

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
