"""Errors as whoever asks sees them: a status, and a sentence with expected, got and fix (:mod:`dither.wire.problems`).

Only dither's own errors have words. Of any other nothing is shown, since its text may hold a value of a row, a path or
a password.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import exc

from dither import errors
from dither.errors import DitherError, LedgerError
from dither.server.errors import Conflict, NotFound, NotSignedIn, Stopping, TooMany, Unavailable
from dither.server.results import Problem
from dither.server.roles import Forbidden
from dither.wire import problems as wire

STATUS: dict[type[BaseException], int] = {
    NotSignedIn: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    TooMany: 429,
    Stopping: 503,
    errors.AccessDenied: 403,
    errors.BudgetExceeded: 403,
    errors.Cancelled: 409,
    errors.DatasetClosed: 409,
    errors.DataIncident: 422,
    errors.NotPrivate: 422,
    errors.InvalidData: 422,
    errors.InvalidArgument: 422,
    errors.WrongType: 422,
    errors.MissingPackage: 501,
    errors.ServerUnavailable: 503,
    LedgerError: 503,
}
"""The status of each kind of error; of one that is not here, 500."""

LEDGER = LedgerError("ledger", "a ledger that can be used", "another", "tell the steward")
"""What is said of every error of the ledger, whose own words may hold paths and are for the steward."""
INTERNAL_ERROR = DitherError("server", "a response", "an internal error", "tell the steward, who finds it in the log")
"""What is said of an error that is not one of dither's, whatever it was."""
_MISTAKES = (exc.IntegrityError, exc.ProgrammingError, exc.DataError, exc.NotSupportedError)
"""Errors of the database that are ours: it works."""


def is_outage(error: BaseException) -> bool:
    """Whether an error says that the database or the disk cannot be used now: it is down, full or unreadable.

    >>> is_outage(OSError(28, "No space left on device")), is_outage(KeyError("a name"))
    (True, False)
    """
    of_database = isinstance(error, (exc.DBAPIError, exc.TimeoutError)) and not isinstance(error, _MISTAKES)
    return of_database or (isinstance(error, OSError) and not isinstance(error, DitherError))


def problem_of(error: BaseException, status: int | None = None) -> Problem:
    """The problem that an error is for whoever asks.

    >>> problem_of(errors.DataIncident()).fix
    'tell the steward; the charge stays'
    >>> problem_of(KeyError("a patient's name")).status
    500
    """
    if isinstance(error, LedgerError):
        error = LEDGER
    elif is_outage(error):
        error = Unavailable()
    for kind in type(error).__mro__:
        if kind in STATUS and isinstance(error, DitherError):
            return from_json(wire.to_json(kind.__name__, status or STATUS[kind], error))
    return from_json(wire.to_json("InternalError", status or 500, INTERNAL_ERROR))


def retry_after(error: BaseException) -> dict[str, str]:
    """The header that says when to try again, where that helps.

    >>> retry_after(OSError(28, "No space left on device")), retry_after(NotSignedIn())
    ({'retry-after': '5'}, {})
    """
    error = Unavailable() if is_outage(error) else error
    return {"retry-after": str(error.seconds)} if isinstance(error, (TooMany, Unavailable)) else {}


def from_json(document: dict[str, Any]) -> Problem:
    """A problem from its document."""
    return Problem(**{name: document[name] for name in Problem.__dataclass_fields__ if name in document})


def to_json(problem: Problem) -> dict[str, Any]:
    """The body of ``application/problem+json``.

    >>> to_json(problem_of(NotSignedIn()))["status"]
    401
    """
    return asdict(problem)


def as_error(problem: Problem) -> DitherError:
    """The error that a problem tells of: of its own class, with the same text.

    >>> as_error(problem_of(NotFound.of("answer")))
    NotFound('answer: expected one that you may see, got none by this name. Fix: check the name.')
    """
    if problem.title in ("NotFound", "Conflict", "Forbidden"):
        return {"NotFound": NotFound, "Conflict": Conflict, "Forbidden": Forbidden}[problem.title](
            problem.name, problem.expected, problem.got, problem.fix
        )
    return wire.from_json(to_json(problem), problem.status)
