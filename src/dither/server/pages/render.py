"""The base of all pages: the request with its user, CSRF tokens, cookies and templates.

Templates escape everything (Jinja2, autoescape). No page holds a script or a style of its own, so the policy of the
server (:mod:`dither.server.app`) allows files of this server only; even text that got past the escaping could not run.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from dither.errors import AccessDenied, DitherError
from dither.ledger.accounts import Remaining, left_words
from dither.present.notes import Note
from dither.present.notes import sentence as note_sentence
from dither.present.text import shortened as cut_after
from dither.present.text import two_digits, visible
from dither.server.errors import problem_of
from dither.server.pages.forms import text_of, texts_of
from dither.server.roles import ACTIONS, Principal, may
from dither.server.service import Service

SESSION_COOKIE = "dither_session"
VISITOR_COOKIE = "dither_visitor"
MAX_FIELDS = 200


# -- who looks at a page --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Visit:
    """A request for a page with its checked form: the fields came from one of this server's own pages."""

    request: Request
    form: FormData

    @property
    def service(self) -> Service:
        """Return the service of the application."""
        service: Service = self.request.app.state.service
        return service

    @property
    def who(self) -> Principal:
        """Return the signed-in principal, which pages that are not ``public`` have."""
        who: Principal = self.request.state.principal
        return who

    def may(self, action: str) -> bool:
        """Return whether the principal may do an action."""
        return may(self.who, action)

    def part(self, name: str) -> str:
        """Return a part of the path by its name."""
        return str(self.request.path_params[name])

    def asked(self, name: str, default: str = "", most: int = 20_000) -> str:
        """Return a parameter of the query, cut to ``most`` characters."""
        return self.request.query_params.get(name, default)[:most]

    def text(self, name: str, most: int = 20_000) -> str:
        """Return a field of the form without surrounding spaces; refuse one that is too long."""
        return text_of(self.form, name, most)

    def password(self, name: str) -> str:
        """Return a field of the form unchanged, with its spaces; empty if it is missing."""
        value = self.form.get(name, "")
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> list[str]:
        """Return all values of a field that may occur several times."""
        return texts_of(self.form, name)

    def page(self, template: str, **context: Any) -> Response:
        """Render a page from a template."""
        return page(self.request, template, **context)


Handler = Callable[[Visit], Any]


def get(path: str, handler: Handler, *, public: bool = False) -> Route:
    """Return the GET route of a page; a ``public`` one needs no sign-in."""
    return Route(path, _served(handler, public), methods=["GET"])


def post(path: str, handler: Handler, *, public: bool = False) -> Route:
    """Return the POST route of a form, which is refused without the CSRF token of this session."""
    return Route(path, _served(handler, public), methods=["POST"])


def _served(handler: Handler, public: bool) -> Callable[[Request], Any]:
    """Wrap a handler as an endpoint, run in a thread unless it is a coroutine.

    Without a principal, a public page sets the visitor's cookie, and other pages redirect to sign-in and back.
    """

    async def serve(request: Request) -> Response:
        """Serve one request by the handler."""
        who = request.state.principal  # dither.server.app finds that out
        request.state.visitor = "" if who else request.cookies.get(VISITOR_COOKIE, "") or secrets.token_urlsafe(32)
        request.state.form_secret = request.state.visitor or request.cookies[SESSION_COOKIE]
        if who is None and not public:
            path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            after = f"?next={quote(path, safe='')}" if request.method == "GET" and path != "/" else ""
            response: Response = RedirectResponse(f"/sign-in{after}", 303)
        else:
            visit = Visit(request, await _form(request) if request.method == "POST" else FormData())
            response = await (handler(visit) if iscoroutinefunction(handler) else run_in_threadpool(handler, visit))
        if request.state.visitor and request.cookies.get(VISITOR_COOKIE) != request.state.visitor:
            set_cookie(request, response, VISITOR_COOKIE, request.state.visitor)
        return response

    return serve


def submitted(show: Callable[..., Response]) -> Callable[[Callable[[Visit], Mapping[str, Any]]], Handler]:
    """Decorate the handler of a form: its page ``show`` is rendered with what the handler returns, or with the
    problem."""

    def decorate(handler: Callable[[Visit], Mapping[str, Any]]) -> Handler:
        """Return a handler that runs ``handler`` and renders ``show`` with its result or its error."""

        def answered(visit: Visit) -> Response:
            """Handle the form, and render its page."""
            try:
                outcome = handler(visit)
            except DitherError as error:
                outcome = {"problem": problem_of(error)}
            return show(visit, **outcome)

        return answered

    return decorate


def csrf_token(request: Request) -> str:
    """Return the CSRF token for the forms of this session or visitor; empty outside of both."""
    secret = str(getattr(request.state, "form_secret", ""))
    return hmac.new(secret.encode(), b"dither form", hashlib.sha256).hexdigest() if secret else ""


async def _form(request: Request) -> FormData:
    """Parse a form; refuse one without the CSRF token of this session."""
    form = await request.form(max_files=0, max_fields=MAX_FIELDS)
    sent, expected = form.get("csrf", ""), csrf_token(request)
    same = isinstance(sent, str) and bool(expected) and hmac.compare_digest(sent.encode(), expected.encode())
    if not same:
        raise AccessDenied("This form was not loaded in this session. Load the page again, and send it once more.")
    return form


def set_cookie(request: Request, response: Response, name: str, value: str, max_age: int | None = None) -> None:
    """Set a cookie that scripts cannot read and other sites do not send."""
    secure = request.app.state.service.config.cookies_are_secure
    response.set_cookie(name, value, max_age=max_age, path="/", httponly=True, samesite="lax", secure=secure)


# -- words and templates --------------------------------------------------------------------------------------------

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
"""The navigation bar: path, label, and the action that a user must be allowed to see the entry."""

_CHOICES = {
    "bias": "“Learn how much the limits leave out” among the choices",
    "quantile_interval": "“Give medians and quantiles a ±” among the choices",
}
"""How the page names the options of a release that notes mention."""


def moment(at: str) -> str:
    """Format a time to the minute, in UTC; other text stays.

    >>> moment("2026-11-17T02:05:59.123+00:00"), moment("soon")
    ('2026-11-17 02:05', 'soon')
    """
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        return at
    return f"{time.astimezone(UTC) if time.tzinfo else time:%Y-%m-%d %H:%M}"


def sentence(text: str) -> str:
    """Return text as a sentence, with a capital and a full stop.

    >>> sentence("ask a steward"), sentence("ε = 1 is left"), sentence("Done!")
    ('Ask a steward.', 'ε = 1 is left.', 'Done!')
    """
    plain = text.strip()
    if re.match(r"[a-z]+( |$)", plain):
        plain = plain[0].upper() + plain[1:]
    return plain if not plain or plain[-1] in ".!?…" else plain + "."


def paragraph(text: str) -> str:
    """Join lines as sentences of one paragraph.

    >>> paragraph("groups: 2, all public\\neach person has one row")
    'Groups: 2, all public. Each person has one row.'
    """
    return " ".join(line[0].upper() + line[1:].rstrip(".") + "." for line in text.split("\n") if line)


def shortened(text: str, most: int = 90) -> str:
    """Return text on one line, cut to ``most`` characters.

    >>> shortened("SELECT  1\\nFROM t"), shortened("abcdef", 4)
    ('SELECT 1 FROM t', 'abc…')
    """
    return cut_after(" ".join(text.split()), most)


def glued(text: str) -> str:
    """Return text with no-break spaces inside amounts such as ``ε = 0.5``, so that no line breaks there.

    >>> glued("ε = 0.5") == "ε\\xa0=\\xa00.5"
    True
    """
    return text.replace(" = ", "\xa0=\xa0").replace("(ε, δ)", "(ε,\xa0δ)").replace(" %", "\xa0%")


def left_sentence(left: Remaining, own: bool = True) -> str:
    """Return the remaining budget as a sentence: addressed to the analyst if ``own``, else about the table.

    >>> from dither.guarantees import PureDP
    >>> left_sentence(Remaining("nothing")), left_sentence(Remaining(PureDP(2)), own=False)
    ('You have nothing left.', 'The table has ε = 2 left.')
    >>> left_sentence(Remaining(PureDP(9), PureDP(1)))
    'You have ε = 1 left. The table has ε = 9 left, for everybody who asks.'
    >>> left_sentence(Remaining("private", each_person=PureDP(1))), left_sentence(Remaining("no limit"))
    ('What is left is private: each person has ε = 1 for life.', 'There is no limit.')
    """
    if own and left.analyst is not None:
        return (
            f"You have {left_words(left.analyst)} left. {_of_table(left, 'The table has', ', for everybody who asks')}"
        )
    return _of_table(left, "You have" if own else "The table has", "")


def _of_table(left: Remaining, whose: str, after: str) -> str:
    """Return the table's remaining budget as a sentence that begins with ``whose`` and ends with ``after``."""
    if left.table == "private":
        return f"What is left is private: each person has {left.each_person} for life."
    if left.table == "no limit":
        return "There is no limit."
    return f"{whose} {left.table_words} left{after}."


def noted(note: Note) -> Markup:
    """Return the sentence of a note, with options named as on the page, and names set as code.

    >>> print(noted(Note("no_interval")))
    Quantiles, extremes and modes have no ±; “Give medians and quantiles a ±” among the choices adds one.
    >>> print(noted(Note("rows_without_person", {"column": "<who>"})))
    Rows with NULL <code>&lt;who&gt;</code> are excluded.
    """
    text = glued(visible(note_sentence(note, _CHOICES.__getitem__))).replace("± ", "±\xa0")
    return Markup(_QUOTED.sub(r"<code>\1</code>", str(escape(text))))


_QUOTED = re.compile("`([^`]*)`")


def shown_text(value: object) -> object:
    """Return a template value without control and direction characters; line ends stay."""
    return "\n".join(visible(line) for line in value.split("\n")) if type(value) is str else value


@lru_cache(1)
def environment() -> Environment:
    """Return the Jinja environment of all templates."""
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
        "noted": noted,
        "two_digits": two_digits,
        "left_sentence": left_sentence,
        "action_words": lambda action: ACTIONS[action].words if action in ACTIONS else action,
        "upper_first": lambda text: text[:1].upper() + text[1:],
        "urlencode": lambda text: quote(str(text), safe=""),
    }
    return result


def fragment(template: str, context: Mapping[str, Any]) -> HTMLResponse:
    """Render a part of a page, for the script that requested it."""
    return HTMLResponse(environment().get_template(template).render(**context))


def page(request: Request, template: str, **context: Any) -> HTMLResponse:
    """Render a ``template`` with the variables that all pages share and those in ``context``.

    The response's status is that of the problem it shows, unless ``context`` has a ``status``.
    """
    problem = context.get("problem")
    status = context.pop("status", 200 if problem is None else problem["status"])
    who: Principal | None = getattr(request.state, "principal", None)
    navigation = [
        {"path": path, "label": label, "current": f"{request.url.path}/".startswith(f"{path}/")}
        for path, label, action in NAVIGATION
        if who is not None and may(who, action)
    ]
    shared = {"principal": who, "navigation": navigation, "csrf": csrf_token(request), "notice": "", "problem": None}
    body = environment().get_template(template).render(**(shared | context))
    return HTMLResponse(body, status_code=status)


def download(content: str | bytes, media_type: str, name: str) -> Response:
    """Return content as a file to save, with a plain ASCII name."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "answer"
    headers = {"Content-Disposition": f'attachment; filename="{plain}"'}
    return Response(content, media_type=media_type, headers=headers)
