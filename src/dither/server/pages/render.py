"""What every page shares: who looks at it, the token of its forms, cookies, and its template.

Templates escape everything (Jinja2, autoescape). No page holds a script or a style of its own, so the policy of the
server (:mod:`dither.server.app`) allows files of this server only; even text that got past the escaping could not run.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dither.errors import AccessDenied, DitherError
from dither.present.markup import visible
from dither.present.notes import Note
from dither.present.notes import sentence as note_sentence
from dither.server.errors import problem_of
from dither.server.roles import ACTIONS, Principal, may
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
    """Who is signed in; :mod:`dither.server.app` finds that out."""
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


FOLDER = Path(__file__).parent

NAVIGATION: tuple[tuple[str, str, str], ...] = (
    ("/ask", "Ask", "questions.ask"),
    ("/steward", "Overview", "users.list"),
    ("/tables", "Tables", "tables.list"),
    ("/history", "History", "answers.own"),
    ("/people", "People", "users.list"),
    ("/limits", "Limits", "limits.list"),
    ("/incidents", "Incidents", "incidents.list"),
    ("/ledger", "Ledger", "chain.read"),
    ("/publishing", "Publish", "answers.publish"),
    ("/published", "Published", "answers.published"),
)
"""The pages in the bar: path, label, and the action that somebody must be allowed."""

_OPTION_WORDS = {
    "or here, as bounds=(low, high) in Python, or contribution_bounds_per_row => (low, high) in SQL": (
        "or in the question, as in AVG(amount, contribution_bounds_per_row => (0, 100))"
    ),
    "pass str(receipt)": "paste the line as it stands under “Keep a receipt”",
    "pass error=50": "give the ± as a number, as in 50",
}
_CHOICES = {
    "bias": "“Learn how much the limits leave out” among the choices",
    "quantile_interval": "“Give medians and quantiles a ±” among the choices",
}
"""The options of a release that notes name, as the page calls them."""


def moment(at: str) -> str:
    """A time for people, to the minute; UTC.

    >>> moment("2026-11-17T02:05:59.123+00:00"), moment("soon")
    ('2026-11-17 02:05', 'soon')
    """
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        return at
    return f"{time.astimezone(UTC) if time.tzinfo else time:%Y-%m-%d %H:%M}"


def sentence(text: str) -> str:
    """With a capital and a full stop.

    >>> sentence("ask a steward"), sentence("ε = 1 is left"), sentence("Done!")
    ('Ask a steward.', 'ε = 1 is left.', 'Done!')
    """
    plain = text.strip()
    if re.match(r"[a-z]+( |$)", plain):
        plain = plain[0].upper() + plain[1:]
    return plain if not plain or plain[-1] in ".!?…" else plain + "."


def paragraph(text: str) -> str:
    """Lines as sentences of one paragraph.

    >>> paragraph("groups: 2, all public\\neach person has one row")
    'Groups: 2, all public. Each person has one row.'
    """
    return " ".join(line[0].upper() + line[1:].rstrip(".") + "." for line in text.split("\n") if line)


def shortened(text: str, most: int = 90) -> str:
    """On one line, and not too long.

    >>> shortened("SELECT  1\\nFROM t"), shortened("abcdef", 4)
    ('SELECT 1 FROM t', 'abc…')
    """
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def glued(text: str) -> str:
    """An amount without a line break inside it.

    >>> glued("ε = 0.5") == "ε\\xa0=\\xa00.5"
    True
    """
    return text.replace(" = ", "\xa0=\xa0").replace("(ε, δ)", "(ε,\xa0δ)").replace(" %", "\xa0%")


def left_sentence(left: str, own: bool = True) -> str:
    """What is left, as a sentence to whoever may spend it, or about the table.

    >>> left_sentence("ε = 2"), left_sentence("nothing"), left_sentence("ε = 2", own=False)
    ('You have ε = 2 left.', 'You have nothing left.', 'The table has ε = 2 left.')
    >>> left_sentence("you ε = 1; the table ε = 9")
    'You have ε = 1 left. The table has ε = 9 left, for everybody who asks.'
    >>> left_sentence("private; each person has ε = 1 for life"), left_sentence("no limit")
    ('What is left is private: each person has ε = 1 for life.', 'There is no limit.')
    """
    parts = re.fullmatch("you (.*); the table (.*)", left, re.DOTALL)
    if parts is not None and not own:
        return left_sentence(parts[2], own=False)
    if parts is not None:
        whole = left_sentence(parts[2], own=False)
        return f"You have {parts[1]} left. " + whole.replace(" left.", " left, for everybody who asks.")
    if left.startswith("private; "):
        return f"What is left is private: {left.removeprefix('private; ')}."
    if left == "no limit":
        return "There is no limit."
    return f"{'You have' if own else 'The table has'} {left} left."


def page_words(fix: str) -> str:
    """How to mend an error with the words of the page, where it names an option of Python and the command line."""
    for option, words in _OPTION_WORDS.items():
        fix = fix.replace(option, words)
    return fix


def noted(note: Note) -> str:
    """Return the sentence of a note, with the options named as on the page.

    >>> noted(Note("no_interval"))
    'Quantiles, extremes and modes have no ±; “Give medians and quantiles a ±” among the choices adds one.'
    """
    return note_sentence(note, _CHOICES.__getitem__)


def shown_text(value: object) -> object:
    """What is written for an expression: text with its lines, without marks that change how the page is read."""
    return "\n".join(visible(line) for line in value.split("\n")) if type(value) is str else value


@lru_cache(1)
def environment() -> Environment:
    """The templates."""
    result = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=shown_text,
    )
    result.filters |= {
        "moment": moment,
        "sentence": sentence,
        "paragraph": paragraph,
        "shortened": shortened,
        "glued": glued,
        "page_words": page_words,
        "noted": noted,
        "left_sentence": left_sentence,
        "action_words": lambda action: ACTIONS[action].words if action in ACTIONS else action,
        "upper_first": lambda text: text[:1].upper() + text[1:],
        "urlencode": lambda text: quote(str(text), safe=""),
    }
    return result


def fragment(template: str, context: Mapping[str, Any]) -> HTMLResponse:
    """A part of a page, for the script that asks for it."""
    return HTMLResponse(environment().get_template(template).render(**context))


def page(request: Request, template: str, status: int | None = None, **context: Any) -> HTMLResponse:
    """A whole page; its status is that of the problem that it shows, where no other is given."""
    problem = context.get("problem")
    if status is None:
        status = 200 if problem is None else problem["status"]
    who = principal_or_none(request)
    navigation = [
        {"path": path, "label": label, "current": _is_current(request.url.path, path)}
        for path, label, action in NAVIGATION
        if who is not None and may(who, action)
    ]
    shared = {"principal": who, "navigation": navigation, "csrf": csrf_token(request), "notice": "", "problem": None}
    body = environment().get_template(template).render(**(shared | context))
    return HTMLResponse(body, status_code=status)


def _is_current(path: str, item: str) -> bool:
    return path == item or path.startswith(item + "/")


def download(content: str | bytes, media_type: str, name: str) -> Response:
    """A file to keep; its name has plain letters only."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "answer"
    headers = {"Content-Disposition": f'attachment; filename="{plain}"'}
    return Response(content, media_type=media_type, headers=headers)
