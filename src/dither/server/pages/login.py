"""Signing in and out, links that work once, and the own account: password, sessions, tokens."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from dither.errors import DitherError
from dither.server.errors import ErrorDocument, problem_of
from dither.server.limits import address_of
from dither.server.pages.render import SESSION_COOKIE, VISITOR_COOKIE, Visit, get, post, set_cookie, submitted
from dither.server.roles import ACTIONS, SCOPES, Principal, may

OIDC_PATH = "/sign-in/oidc"
_SCOPE_WORDS = {
    "explain": "see the cost of questions",
    "ask": "ask questions and spend budget",
    "read": "read your own and published answers",
    "audit": "read ledgers and the event log",
    "publish": "publish answers and plans",
    "steward": "list users and change grants",
}


def local_path(text: object) -> str:
    """Return ``text`` if it is a path on this server, to go to after signing in; otherwise the start page ``/``."""
    path = text if isinstance(text, str) else ""
    plain = path.isascii() and path.isprintable() and "\\" not in path
    return path if plain and path.startswith("/") and not path.startswith("//") else "/"


def home_of(who: Principal) -> str:
    """Return the start page for a principal's roles.

    >>> home_of(Principal("ann", frozenset({"analyst"}))), home_of(Principal("eve", frozenset({"auditor"})))
    ('/ask', '/ledger')
    """
    for path, action in (("/steward", "users.list"), ("/ask", "questions.ask"), ("/ledger", "chain.read")):
        if may(who, action):
            return path
    return "/published"


def home(visit: Visit) -> Response:
    """Redirect to the principal's start page."""
    return RedirectResponse(home_of(visit.who), 303)


def sign_in(visit: Visit) -> Response:
    """Show the sign-in page, or redirect a principal who is signed in."""
    after = local_path(visit.asked("next", "/"))
    return RedirectResponse(after, 303) if visit.who is not None else _sign_in_page(visit, after)


def _sign_in_page(visit: Visit, after: str, name: str = "", problem: ErrorDocument | None = None) -> Response:
    """Show the sign-in page; ``after`` is the path to go to afterwards."""
    oidc = OIDC_PATH if visit.service.config.oidc_issuer else ""
    empty = visit.service.accounts.is_empty()
    return visit.page("sign_in.html", next=after, name=name, oidc=oidc, problem=problem, empty=empty)


def sign_in_form(visit: Visit) -> Response:
    """Check name and password, and start a session."""
    name, after = visit.text("name", 1000), local_path(visit.form.get("next"))
    try:
        address = address_of(visit.request.scope)
        secret = visit.service.auth.sign_in(name, visit.password("password"), address)
    except DitherError as error:
        return _sign_in_page(visit, after, name, problem_of(error))
    return _with_session(visit, after, secret)


def _with_session(visit: Visit, after: str, secret: str) -> Response:
    """Redirect to the path ``after`` with the cookie of a new session, whose secret is ``secret``.

    The cookie of the anonymous visitor is deleted.
    """
    response = RedirectResponse(after, 303)
    set_cookie(visit.request, response, SESSION_COOKIE, secret)
    response.delete_cookie(VISITOR_COOKIE, path="/")
    visit.request.state.visitor = ""
    return response


def sign_out(visit: Visit) -> Response:
    """End the session, and redirect to the sign-in page."""
    visit.service.auth.sign_out(visit.who)
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(SESSION_COOKIE, path="/")
    return response


def welcome(visit: Visit, name: str = "", problem: ErrorDocument | None = None) -> Response:
    """Show the page of a one-time link: the first steward chooses a name, every user a password."""
    kind, user = visit.service.auth.peek_link(visit.part("secret"))
    return visit.page("welcome.html", first=kind == "first", name=user or name, problem=problem)


def welcome_form(visit: Visit) -> Response:
    """Set the password by a one-time link, and sign in."""
    auth, secret, name = visit.service.auth, visit.part("secret"), visit.text("name", 1000)
    auth.peek_link(secret)
    try:
        session = auth.use_link(secret, visit.password("password"), name or None)
    except DitherError as error:
        return welcome(visit, name, problem_of(error))
    return _with_session(visit, "/", session)


def account(visit: Visit, secret: str = "", problem: ErrorDocument | None = None, notice: str = "") -> Response:
    """Show the own account; ``secret`` is that of a new token, shown this once."""
    usable = {rule.scope for rule in ACTIONS.values() if rule.roles & visit.who.roles}
    scopes = [
        {"value": scope, "label": _SCOPE_WORDS[scope], "checked": scope in ("explain", "ask", "read")}
        for scope in SCOPES
        if scope in usable
    ]
    tokens, address = visit.service.accounts.tokens(visit.who), visit.service.config.url
    context = {"tokens": tokens, "scopes": scopes, "secret": secret, "address": address}
    return visit.page("account.html", problem=problem, notice=notice, **context)


@submitted(account)
def new_token(visit: Visit) -> dict[str, str]:
    """Make a token by the form of ``visit``, and show its secret this once; a number of days that cannot be read
    becomes 90.
    """
    given = visit.text("days", 10)
    days = int(given) if given.isascii() and given.isdigit() and len(given) < 10 else 90
    label, scopes = visit.text("label", 200), visit.texts("scope")
    return {"secret": visit.service.accounts.create_token(visit.who, label, scopes=scopes, days=days).secret}


@submitted(account)
def revoke_token(visit: Visit) -> dict[str, str]:
    """Revoke an own token."""
    visit.service.accounts.revoke_token(visit.who, visit.part("token"))
    return {"notice": "The token is revoked."}


@submitted(account)
def change_password(visit: Visit) -> dict[str, str]:
    """Change the own password."""
    visit.service.accounts.change_password(visit.who, visit.password("old"), visit.password("new"))
    return {"notice": "The password is changed. Your other sessions have ended, and your tokens are revoked."}


@submitted(account)
def end_sessions(visit: Visit) -> dict[str, str]:
    """End all other sessions."""
    visit.service.accounts.end_sessions(visit.who)
    return {"notice": "All other sessions have ended."}


ROUTES = [
    get("/", home),
    get("/sign-in", sign_in, public=True),
    post("/sign-in", sign_in_form, public=True),
    post("/sign-out", sign_out),
    get("/welcome/{secret}", welcome, public=True),
    post("/welcome/{secret}", welcome_form, public=True),
    get("/account", account),
    post("/account/tokens", new_token),
    post("/account/tokens/{token}/revoke", revoke_token),
    post("/account/password", change_password),
    post("/account/sessions", end_sessions),
]
