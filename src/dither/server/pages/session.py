"""Who looks at a page, and whether a form was sent by one of our own pages.

The name comes from the session's cookie alone. A form carries a token that is derived from that cookie (before sign-in,
from a cookie of the visitor): another site can send a form here, but cannot read either. What a browser says comes from
another site is refused before that (:mod:`dither.server.security`).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, cast
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dither.errors import AccessDenied, DitherError
from dither.server.principal import Principal
from dither.server.problems import problem_of
from dither.server.service import Service

SESSION_COOKIE = "dither_session"
VISITOR_COOKIE = "dither_visitor"
MAX_FIELDS = 200
Handler = Callable[..., Awaitable[Response]]
FormHandler = Callable[[Request, Principal, FormData], Awaitable[Mapping[str, Any]]]


def service_of(request: Request) -> Service:
    """The service that the application was started with."""
    return cast(Service, request.app.state.service)


def _choose_form_secret(request: Request) -> None:
    """Which cookie the tokens of forms come from: the session's, or, where nobody is signed in, the visitor's."""
    cookie = "" if principal_or_none(request) is None else request.cookies[SESSION_COOKIE]
    request.state.visitor = ""
    if not cookie:
        request.state.visitor = request.cookies.get(VISITOR_COOKIE, "") or secrets.token_urlsafe(32)
    request.state.form_secret = cookie or request.state.visitor


def principal_or_none(request: Request) -> Principal | None:
    """Who is signed in; :mod:`dither.server.admission` finds that out."""
    return cast("Principal | None", getattr(request.state, "principal", None))


def csrf_token(request: Request) -> str:
    """The token that the forms of this visitor carry."""
    secret = str(getattr(request.state, "form_secret", ""))
    return hmac.new(secret.encode(), b"dither form", hashlib.sha256).hexdigest() if secret else ""


async def form_of(request: Request) -> FormData:
    """The fields of a form, refused if one of our own pages did not send it."""
    form = await request.form(max_files=0, max_fields=MAX_FIELDS)
    sent, expected = form.get("csrf", ""), csrf_token(request)
    same = isinstance(sent, str) and bool(expected) and hmac.compare_digest(sent.encode(), expected.encode())
    if not same:
        fix = "go back, load the page again, and send it once more"
        raise AccessDenied("form", "one that was loaded in this session", "another", fix)
    return form


def handled(handler: Handler) -> Handler:
    """A page for everybody: it knows who looks, and sets the visitor's cookie where nobody is signed in."""

    @wraps(handler)
    async def wrapped(request: Request) -> Response:
        _choose_form_secret(request)
        response = await handler(request)
        if request.state.visitor and request.cookies.get(VISITOR_COOKIE) != request.state.visitor:
            set_cookie(request, response, VISITOR_COOKIE, request.state.visitor)
        return response

    return wrapped


def signed_in(handler: Handler) -> Handler:
    """A page for somebody who is signed in; others are sent to sign in, and come back."""

    @wraps(handler)
    async def wrapped(request: Request) -> Response:
        who = principal_or_none(request)
        if who is None:
            path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            after = f"?next={quote(path, safe='')}" if request.method == "GET" and path != "/" else ""
            return RedirectResponse(f"/sign-in{after}", 303)
        return await handler(request, who)

    return handled(wrapped)


def submitted(show: Handler) -> Callable[[FormHandler], Handler]:
    """A form that is answered by the page it stands on: ``show`` gets what the handler returns, or the problem with it.

    The handler gets the request, who is signed in, and the fields.
    """

    def decorate(handler: FormHandler) -> Handler:
        @wraps(handler)
        async def wrapped(request: Request, who: Principal) -> Response:
            form = await form_of(request)
            try:
                outcome: Mapping[str, Any] = await handler(request, who, form)
            except DitherError as error:
                outcome = {"problem": problem_of(error)}
            return await show(request, who, **outcome)

        return signed_in(wrapped)

    return decorate


def set_cookie(request: Request, response: Response, name: str, value: str, max_age: int | None = None) -> None:
    """A cookie that scripts cannot read and other sites do not send."""
    secure = service_of(request).config.cookies_are_secure
    response.set_cookie(name, value, max_age=max_age, path="/", httponly=True, samesite="lax", secure=secure)


def local_path(text: object) -> str:
    """A path on this server to go to after sign-in; the start page for anything else.

    >>> local_path("/ask?table=a"), local_path("https://a.example"), local_path("//a.example"), local_path("/\\\\a")
    ('/ask?table=a', '/', '/', '/')
    """
    path = text if isinstance(text, str) else ""
    plain = path.isascii() and path.isprintable() and "\\" not in path
    return path if plain and path.startswith("/") and not path.startswith("//") else "/"


async def call(method: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call a use case, which may block, in a thread."""
    return await run_in_threadpool(method, *arguments, **keywords)
