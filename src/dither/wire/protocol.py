"""The paths that clients use, and errors as problem documents.

======  ===================================  =======================================================================
GET     ``/api/v1/tables``                   ``{"tables": [{"name": …, "granted": …, "left": …, "open": …}]}``
GET     ``/api/v1/tables/{table}``           ``{"card": …, "left": …, "granted": …, "open": …}``
POST    ``/api/v1/tables/{table}/explain``   ``{"question": …, "options": …}`` → an explanation
POST    ``/api/v1/tables/{table}/questions`` ``{"question": …, "options": …}``, header Idempotency-Key → a job
GET     ``/api/v1/jobs/{job}``               a job; ``?wait=30`` answers when it has ended, or after 30 seconds
DELETE  ``/api/v1/jobs/{job}``               cancel; what was charged stays charged
GET     ``/api/v1/answers/{answer}``         an answer
======  ===================================  =======================================================================

A job is ``{"id": …, "table": …, "state": "waiting", "answer": null, "answer_id": null, "problem": null, …}``; ended,
its state is ``answered``, ``refused``, ``failed`` or ``cancelled``. Other paths are in the server's OpenAPI document.

A problem (RFC 9457, ``application/problem+json``) has ``type`` and ``title``, which name the class of the error,
``status``, and ``detail``, the whole message; ``name``, ``expected``, ``got`` and ``fix`` are its parts, and
``command`` the fix on the command line where it differs. A client
raises the same class with the same text as the library. What only a server can say (not signed in, too many
requests) is raised as :class:`~dither.AccessDenied`, :class:`~dither.ServerUnavailable` or
:class:`~dither.InvalidArgument`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from dither import errors
from dither.errors import DitherError

API = "/api/v1"
TABLES = f"{API}/tables"
KEY_HEADER = "Idempotency-Key"
MAX_KEY = 136
"""How many characters a key may have: with the name of the analyst before it, it fits the keys of a ledger."""


def table_path(name: str) -> str:
    """Return the path of the public information about a table.

    >>> table_path("visits")
    '/api/v1/tables/visits'
    """
    return f"{TABLES}/{quote(name, safe='')}"


def explain_path(name: str) -> str:
    """Return the path that explains questions about a table."""
    return f"{table_path(name)}/explain"


def questions_path(name: str) -> str:
    """Return the path that takes questions about a table."""
    return f"{table_path(name)}/questions"


def job_path(id: str, wait: float | None = None) -> str:
    """Return the path of a job; with ``wait`` the server responds when it has ended, or after that many seconds.

    >>> job_path("j1", wait=30)
    '/api/v1/jobs/j1?wait=30'
    """
    return f"{API}/jobs/{quote(id, safe='')}" + ("" if wait is None else f"?wait={wait:g}")


CONTENT_TYPE = "application/problem+json"
_URN = "urn:dither:"

CLASSES: dict[str, type[DitherError]] = {
    **{
        cls.__name__: cls
        for cls in (
            errors.InvalidArgument, errors.WrongType, errors.InvalidData, errors.NotPrivate, errors.BudgetExceeded,
            errors.DataIncident, errors.DatasetClosed, errors.MissingPackage, errors.LedgerError, errors.AccessDenied,
            errors.ServerUnavailable, errors.Cancelled, errors.LimitsDiffer, errors.LedgerMissing,
            errors.LedgerRolledBack,
        )
    },
    **dict.fromkeys(("NotSignedIn", "Forbidden"), errors.AccessDenied),
    **dict.fromkeys(("NotFound", "Conflict"), errors.InvalidArgument),
    **dict.fromkeys(("TooMany", "Stopping", "InternalError"), errors.ServerUnavailable),
}  # fmt: skip
"""What a client raises for each kind of problem."""


def problem_to_json(kind: str, status: int, error: DitherError) -> dict[str, Any]:
    """Return the problem document of an error: class, status, message and fields.

    >>> error = errors.BudgetExceeded("budget", "ε = 1 left", "ε = 2", "ask for less")
    >>> problem = problem_to_json("BudgetExceeded", 403, error)
    >>> problem["type"], problem["expected"], problem["fix"]
    ('urn:dither:BudgetExceeded', 'ε = 1 left', 'ask for less')
    >>> problem_from_json(problem, 403)
    BudgetExceeded('budget: expected ε = 1 left, got ε = 2. Fix: ask for less.')
    """
    fields = {"name": error.subject, "expected": error.expected, "got": error.got, "fix": error.fix}
    fields |= {"command": error.command} if error.command != error.fix else {}
    return {"type": _URN + kind, "title": kind, "status": status, "detail": str(error), **fields}


def problem_from_json(document: object, status: int = 0) -> DitherError:
    """Return the error that a problem document describes, with its class and text.

    A body that is no problem of dither's (a proxy's page) becomes an error that names the status alone.

    >>> problem_from_json("<html>", 502)
    ServerUnavailable('server: expected an answer of dither serve, got status 502. Fix: check the address, and whether \
dither serve runs there.')
    """
    if isinstance(document, dict):
        kind, detail = document.get("type"), document.get("detail")
        if isinstance(kind, str) and isinstance(detail, str) and kind.startswith(_URN):
            cls = CLASSES.get(kind.removeprefix(_URN), errors.ServerUnavailable)
            fields = [str(document.get(field, "")) for field in ("name", "expected", "got", "fix", "command")]
            return cls(*fields) if fields[1] else cls(detail)
    got = f"status {status}" if status else "another answer"
    fix = "check the address, and whether dither serve runs there"
    return errors.ServerUnavailable("server", "an answer of dither serve", got, fix)
