"""Signing in and out, links that work once, and the own account: password, sessions, tokens."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dither.errors import DitherError
from dither.server.errors import ErrorDocument, problem_of
from dither.server.limits import address_of
from dither.server.pages.forms import text_of, texts_of
from dither.server.pages.render import (
    SESSION_COOKIE,
    VISITOR_COOKIE,
    call,
    form_of,
    handled,
    local_path,
    page,
    principal_or_none,
    service_of,
    set_cookie,
    signed_in,
    submitted,
)
from dither.server.roles import ACTIONS, SCOPES, Principal, may

OIDC_PATH = "/sign-in/oidc"
_SCOPE_WORDS = {
    "explain": "show what questions would cost",
    "ask": "ask questions and spend",
    "read": "read own and published answers",
    "audit": "read ledgers and events",
    "publish": "publish answers and plans",
    "steward": "see users, change grants",
}


def home_of(who: Principal) -> str:
    """The page that somebody begins with.

    >>> home_of(Principal("ann", frozenset({"analyst"}))), home_of(Principal("eve", frozenset({"auditor"})))
    ('/ask', '/ledger')
    """
    for path, action in (("/steward", "users.list"), ("/ask", "questions.ask"), ("/ledger", "chain.read")):
        if may(who, action):
            return path
    return "/published"


@signed_in
async def home(_: Request, who: Principal) -> Response:
    """To the page that somebody begins with."""
    return RedirectResponse(home_of(who), 303)


@handled
async def sign_in(request: Request) -> Response:
    """The page with name and password; whoever is signed in already goes on."""
    after = local_path(request.query_params.get("next", "/"))
    if principal_or_none(request) is not None:
        return RedirectResponse(after, 303)
    return await _sign_in_page(request, after)


async def _sign_in_page(request: Request, after: str, name: str = "", problem: ErrorDocument | None = None) -> Response:
    oidc = (
        {"path": OIDC_PATH, "label": "Sign in with your organization"}
        if service_of(request).config.oidc_issuer
        else None
    )
    empty = await call(service_of(request).accounts.is_empty)
    return page(request, "sign_in.html", next=after, name=name, oidc=oidc, problem=problem, empty=empty)


@handled
async def sign_in_form(request: Request) -> Response:
    """Check the password, and start a session with a new cookie."""
    form = await form_of(request)
    name, after = text_of(form, "name", 1000), local_path(form.get("next"))
    password = form.get("password", "")
    try:
        secret = await call(service_of(request).auth.sign_in, name, password, address_of(request.scope))
    except DitherError as error:
        return await _sign_in_page(request, after, name, problem_of(error))
    return with_session(request, RedirectResponse(after, 303), secret)


def with_session(request: Request, response: Response, secret: str) -> Response:
    """A response that starts a session: the cookie of the visitor ends with it."""
    set_cookie(request, response, SESSION_COOKIE, secret)
    response.delete_cookie(VISITOR_COOKIE, path="/")
    request.state.visitor = ""
    return response


@signed_in
async def sign_out(request: Request, who: Principal) -> Response:
    """End the session."""
    await form_of(request)
    await call(service_of(request).auth.sign_out, who)
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(SESSION_COOKIE, path="/")
    return response


@handled
async def welcome(request: Request) -> Response:
    """The page of a link that works once: the first steward chooses a name, everybody a password."""
    secret = request.path_params["secret"]
    kind, user = await call(service_of(request).auth.peek_link, secret)
    return page(request, "welcome.html", first=kind == "first", name=user or "")


@handled
async def welcome_form(request: Request) -> Response:
    """Set the password, and sign in."""
    secret, auth = request.path_params["secret"], service_of(request).auth
    form = await form_of(request)
    kind, user = await call(auth.peek_link, secret)
    name = text_of(form, "name", 1000)
    try:
        session = await call(auth.use_link, secret, form.get("password", ""), name or None)
    except DitherError as error:
        return page(request, "welcome.html", first=kind == "first", name=user or name, problem=problem_of(error))
    return with_session(request, RedirectResponse("/", 303), session)


async def account_page(
    request: Request, who: Principal, secret: str = "", problem: ErrorDocument | None = None, notice: str = ""
) -> Response:
    """The own account."""
    service = service_of(request)
    tokens = await call(service.accounts.tokens, who)
    usable = {rule.scope for rule in ACTIONS.values() if rule.roles & who.roles}
    scopes = [
        {"value": scope, "label": _SCOPE_WORDS[scope], "checked": scope in ("explain", "ask", "read")}
        for scope in SCOPES
        if scope in usable
    ]
    context = {"tokens": tokens, "scopes": scopes, "secret": secret, "address": service.config.url}
    return page(request, "account.html", problem=problem, notice=notice, **context)


@signed_in
async def account(request: Request, who: Principal) -> Response:
    """The own account."""
    return await account_page(request, who)


@submitted(account_page)
async def new_token(request: Request, who: Principal, form: FormData) -> dict[str, str]:
    """Make a token, and show it this once."""
    days = text_of(form, "days", 10)
    result = await call(
        service_of(request).accounts.create_token,
        who,
        text_of(form, "label", 200),
        scopes=texts_of(form, "scope"),
        days=int(days) if days.isascii() and days.isdigit() and len(days) < 10 else 90,
    )
    return {"secret": result.secret}


@submitted(account_page)
async def revoke_token(request: Request, who: Principal, _: FormData) -> dict[str, str]:
    """Revoke an own token."""
    await call(service_of(request).accounts.revoke_token, who, request.path_params["token"])
    return {"notice": "The token is revoked: it opens nothing any more."}


@submitted(account_page)
async def change_password(request: Request, who: Principal, form: FormData) -> dict[str, str]:
    """Change the own password."""
    await call(service_of(request).accounts.change_password, who, form.get("old", ""), form.get("new", ""))
    ended = "Your other sessions have ended, and your tokens are revoked."
    return {"notice": f"The password is changed. {ended}"}


@submitted(account_page)
async def end_sessions(request: Request, who: Principal, _: FormData) -> dict[str, str]:
    """End all other sessions."""
    await call(service_of(request).accounts.end_sessions, who)
    return {"notice": "All other sessions have ended."}


ROUTES = [
    Route("/", home),
    Route("/sign-in", sign_in),
    Route("/sign-in", sign_in_form, methods=["POST"]),
    Route("/sign-out", sign_out, methods=["POST"]),
    Route("/welcome/{secret}", welcome),
    Route("/welcome/{secret}", welcome_form, methods=["POST"]),
    Route("/account", account),
    Route("/account/tokens", new_token, methods=["POST"]),
    Route("/account/tokens/{token}/revoke", revoke_token, methods=["POST"]),
    Route("/account/password", change_password, methods=["POST"]),
    Route("/account/sessions", end_sessions, methods=["POST"]),
]
