"""Templates, and what every page shares.

Templates escape everything (Jinja2, autoescape). No page holds a script or a style of its own, so the policy of the
server (:mod:`dither.server.security`) allows files of this server only; even text that got past the escaping could not
run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from dither.present.markup import visible
from dither.server.pages.session import csrf_token, principal_or_none
from dither.server.roles import ACTIONS, may

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
    "bias=True, or --bias,": "“Learn how much the limits leave out” among the choices",
    "quantile_interval=True (--quantile-interval)": "“Give medians and quantiles a ±” among the choices",
    "or here, as bounds=(low, high) in Python, or contribution_bounds_per_row => (low, high) in SQL": (
        "or in the question, as in AVG(amount, contribution_bounds_per_row => (0, 100))"
    ),
    " or bounds=(0, 100) in Python": "",
    "pass str(receipt)": "paste the line as it stands under “Keep a receipt”",
    "pass error=50": "give the ± as a number, as in 50",
}


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


def page_words(note: str) -> str:
    """A note of an answer with the words of the page, where it names an option of Python and the command line.

    >>> page_words("counts are low (bias=True, or --bias, spends a little to learn it)")
    'counts are low (“Learn how much the limits leave out” among the choices spends a little to learn it)'
    """
    for option, words in _OPTION_WORDS.items():
        note = note.replace(option, words)
    return note


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
        status = 200 if problem is None else problem.status
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
