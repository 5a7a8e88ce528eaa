"""Errors as problem documents (RFC 9457, ``application/problem+json``), and back.

A problem has ``type`` and ``title``, which name the class of the error, ``status``, and ``detail``, the whole message;
``name``, ``expected``, ``got`` and ``fix`` are its parts. A client raises the same class with the same text as the
library would. What only a server can say (nobody is signed in, too many requests) is raised as
:class:`~dither.AccessDenied`, :class:`~dither.ServerUnavailable` or :class:`~dither.InvalidArgument`.

>>> problem = to_json("BudgetExceeded", 403, errors.BudgetExceeded("budget", "ε = 1 left", "ε = 2", "ask for less"))
>>> problem["type"], problem["expected"], problem["fix"]
('urn:dither:BudgetExceeded', 'ε = 1 left', 'ask for less')
>>> from_json(problem, 403)
BudgetExceeded('budget: expected ε = 1 left, got ε = 2. Fix: ask for less.')
"""

from __future__ import annotations

from typing import Any

from dither import errors
from dither.errors import DitherError

CONTENT_TYPE = "application/problem+json"
_URN = "urn:dither:"

CLASSES: dict[str, type[DitherError]] = {
    **{
        cls.__name__: cls
        for cls in (
            errors.InvalidArgument, errors.WrongType, errors.InvalidData, errors.NotPrivate, errors.BudgetExceeded,
            errors.DataIncident, errors.DatasetClosed, errors.MissingPackage, errors.LedgerError, errors.AccessDenied,
            errors.ServerUnavailable, errors.Cancelled,
        )
    },
    **dict.fromkeys(("NotSignedIn", "Forbidden"), errors.AccessDenied),
    **dict.fromkeys(("NotFound", "Conflict"), errors.InvalidArgument),
    **dict.fromkeys(("TooMany", "Stopping", "InternalError"), errors.ServerUnavailable),
}  # fmt: skip
"""What a client raises for each kind of problem."""


def to_json(kind: str, status: int, error: DitherError) -> dict[str, Any]:
    """Return the document of a problem: the name of its class, the status, the whole message and its fields."""
    fields = {"name": error.subject, "expected": error.expected, "got": error.got, "fix": error.fix}
    return {"type": _URN + kind, "title": kind, "status": status, "detail": str(error), **fields}


def from_json(document: object, status: int = 0) -> DitherError:
    """The error that a problem tells of: of the class that the library raises, with the same text.

    A body that is no problem of dither's (a proxy's page) becomes an error that names the status alone.

    >>> from_json("<html>", 502)
    ServerUnavailable('server: expected an answer of dither serve, got status 502. Fix: check the address, and whether \
dither serve runs there.')
    """
    if isinstance(document, dict):
        kind, detail = document.get("type"), document.get("detail")
        if isinstance(kind, str) and isinstance(detail, str) and kind.startswith(_URN):
            cls = CLASSES.get(kind.removeprefix(_URN), errors.ServerUnavailable)
            fields = [str(document.get(field, "")) for field in ("name", "expected", "got", "fix")]
            return cls(*fields) if fields[1] else cls(detail)
    got = f"status {status}" if status else "another answer"
    fix = "check the address, and whether dither serve runs there"
    return errors.ServerUnavailable("server", "an answer of dither serve", got, fix)
