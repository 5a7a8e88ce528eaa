"""The pages: rendered on the server, usable without JavaScript, from files of this server alone.

``ROUTES`` are all of them, and ``error_response`` is what an error of dither looks like as a page. Pages call the use
cases of :class:`dither.server.service.Service`, which the application has as ``app.state.service``, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from dither.server.errors import problem_of, retry_after
from dither.server.pages import admin, asking, login
from dither.server.pages.render import SESSION_COOKIE, page

_HEADINGS = {
    403: "Not allowed",
    404: "Not found",
    409: "Already decided",
    413: "Too large",
    429: "Too many requests",
    503: "Temporarily unavailable",
}

ROUTES: Sequence[BaseRoute] = (
    *login.ROUTES,
    *asking.ROUTES,
    *admin.ROUTES,
    Mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static"),
)
"""All pages, and the style sheet and scripts."""


def error_response(request: Request, error: BaseException, status: int | None = None) -> Response:
    """Return an error as an HTML page or, for one who is not signed in, as a redirect to the sign-in page.

    ``status`` is the status of the response; None takes that of the error's class.
    """
    problem = problem_of(error, status)
    shown: int = problem["status"]
    if shown == 401:
        return RedirectResponse("/sign-in", 303)
    heading = _HEADINGS.get(shown, "Something went wrong" if shown >= 500 else "Refused")
    response = page(request, "error.html", problem=problem, heading=heading)
    response.headers.update(retry_after(error))
    return response


__all__ = ["ROUTES", "SESSION_COOKIE", "error_response"]
