"""One line of JSON for each request and each error, with the id of the request.

The id is the client's ``X-Request-ID`` where that is a plain word, else a new one; it is sent back, and stands in every
line that was written for the request. A line names the route and not the path, which may hold a link that works once.
Of an error it has the class and the place, and not the text, which may hold anything; and it holds no duration
(see the threat model).
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from traceback import walk_tb
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dither.server.limits import address_of_scope
from dither.server.metrics import Metrics

HEADER = "x-request-id"
_SOURCE = str(Path(__file__).parents[1])
_WORD = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}", re.ASCII)
_log = logging.getLogger("dither.server.requests")
_current: ContextVar[str] = ContextVar("request_id", default="")


def place_of(error: BaseException) -> str:
    """The class of an error and the line that raised it, or the last one of dither that was on the way there.

    >>> try:
    ...     raise KeyError("somebody's name")
    ... except KeyError as error:
    ...     print(place_of(error).split(":")[0])
    KeyError at <doctest dither.server.request_log.place_of[0]>
    """
    frames = [f"{frame.f_code.co_filename}:{line}" for frame, line in walk_tb(error.__traceback__)]
    own = [place for place in frames if place.startswith(_SOURCE)]
    return f"{type(error).__name__} at {(own or frames or ['?'])[-1]}"


class JsonFormatter(logging.Formatter):
    """A record of the log as one line of JSON.

    >>> record = logging.LogRecord("dither.server", logging.ERROR, "", 0, "no %s", ("room",), None)
    >>> line = json.loads(JsonFormatter().format(record))
    >>> line["level"], line["message"]
    ('error', 'no room')
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if _current.get():
            line["request_id"] = _current.get()
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = place_of(record.exc_info[1])
        return json.dumps(line | getattr(record, "fields", {}))


CONFIGURATION: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "dither.server.request_log.JsonFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "loggers": {
        "dither.server": {"handlers": ["stderr"], "level": "INFO"},
        "uvicorn": {"handlers": ["stderr"], "level": "WARNING"},
    },
}
"""For :func:`logging.config.dictConfig`: all of it goes to standard error."""


class RequestLog:
    """Gives every request an id, counts it by its route and outcome, and writes its line."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        request_id = given if _WORD.fullmatch(given) else secrets.token_hex(16)
        status = 0

        async def marked(event: Message) -> None:
            nonlocal status
            if event["type"] == "http.response.start":
                status = event["status"]
                MutableHeaders(scope=event)[HEADER] = request_id
            await send(event)

        before = _current.set(request_id)
        try:
            await self._app(scope, receive, marked)
        finally:
            if status:  # else the client was gone
                route = self._metrics.count(scope, status)
                who = scope.get("state", {}).get("principal")
                fields = {
                    "method": scope["method"][:10], "route": route, "status": status,
                    "user": "" if who is None else who.name, "address": address_of_scope(scope),
                }  # fmt: skip
                _log.info("request", extra={"fields": fields})
            _current.reset(before)
