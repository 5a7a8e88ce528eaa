"""The errors of the server, and every error as clients see it: a status and the fields of the error (RFC 9457).

Only dither's own errors have words. Of any other nothing is shown, since its text may hold a value of a row, a path or
a password.
"""

from __future__ import annotations

from pathlib import Path
from traceback import walk_tb
from typing import Any

from sqlalchemy import exc

from dither import errors
from dither.errors import AccessDenied, DitherError, InvalidArgument, LedgerError, ServerUnavailable
from dither.server.roles import Forbidden
from dither.wire.protocol import problem_from_json, problem_to_json

ErrorDocument = dict[str, Any]
"""An error as ``application/problem+json`` has it (:mod:`dither.wire.protocol`)."""
_SOURCE = str(Path(__file__).parents[1])


class NotFound(InvalidArgument):
    """The thing does not exist, or the principal may not know that it does: both raise the same error."""

    @classmethod
    def of(cls, what: str) -> NotFound:
        """Return the error for a kind of thing, with the same words whatever the reason."""
        return cls(f"There is no such {what}, or you may not see it.")


def printable(text: object, name: str, most: int) -> str:
    """Return a text without surrounding spaces; refuse one that is empty, too long, or holds control characters."""
    if not isinstance(text, str) or not 0 < len(text.strip()) <= most or not text.isprintable():
        raise InvalidArgument(
            name,
            f"1 to {most} printable characters",
            "an empty, longer or unprintable text",
            "write a short line of text",
        )
    return text.strip()


class NotSignedIn(AccessDenied):
    """The session or token is missing, unknown, expired or revoked; the error does not tell which."""

    @classmethod
    def refusal(cls) -> NotSignedIn:
        """Return the error, with the same words whatever the reason."""
        return cls("Not signed in, or the session or token has expired. Sign in, or make a new token.")


class TooMany(ServerUnavailable):
    """Too many requests, or too many questions at the same time; ``seconds`` is when to try again."""

    seconds = 1

    @classmethod
    def of(cls, what: str, expected: str, seconds: int) -> TooMany:
        """Return the error for more of ``what`` than ``expected`` states, with the seconds to wait."""
        error = cls(what, expected, "more", f"try again in {seconds} s")
        error.seconds = seconds
        return error


class Unavailable(ServerUnavailable):
    """The server's database or disk cannot be used now; ``seconds`` says when to try again."""

    seconds = 5

    @classmethod
    def now(cls) -> Unavailable:
        """Return the error, with the same words whatever the outage."""
        return cls(f"The server is temporarily unavailable. Try again in {cls.seconds} s.")


class Conflict(InvalidArgument):
    """The request contradicts the current state: a name is taken, or a change was decided."""


class Stopping(ServerUnavailable):
    """The server is stopping, or stopped before it began a question."""

    @classmethod
    def now(cls) -> Stopping:
        """Return the error for a question that was not begun."""
        return cls("The server is stopping. Ask again, with the same key if you gave one.")


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

LEDGER = LedgerError("The ledger is unavailable. Tell the steward.")
"""The error that clients see in place of any error of the ledger, whose own text may hold paths."""

INTERNAL_ERROR = DitherError("Internal server error. Tell the steward, who finds it in the log.")
"""The error that clients see in place of any error that is not one of dither's."""

_MISTAKES = (exc.IntegrityError, exc.ProgrammingError, exc.DataError, exc.NotSupportedError)
"""Database errors that show a defect of dither rather than an outage of the database."""


def is_outage(error: BaseException) -> bool:
    """Return whether an error means that the database or the disk cannot be used now: unreachable, full or
    unreadable.

    >>> is_outage(OSError(28, "No space left on device")), is_outage(KeyError("a name"))
    (True, False)
    """
    of_database = isinstance(error, (exc.DBAPIError, exc.TimeoutError)) and not isinstance(error, _MISTAKES)
    return of_database or (isinstance(error, OSError) and not isinstance(error, DitherError))


def problem_of(error: BaseException, status: int | None = None) -> ErrorDocument:
    """Return an error as the problem document (RFC 9457) that clients see; ``status`` None takes that of its class.

    >>> problem_of(errors.DataIncident())["fix"], problem_of(KeyError("a patient's name"))["status"]
    ('tell the steward; the charge stays', 500)
    """
    if isinstance(error, LedgerError):
        error = LEDGER
    elif is_outage(error):
        error = Unavailable.now()
    for kind in type(error).__mro__:
        if kind in STATUS and isinstance(error, DitherError):
            return problem_to_json(kind.__name__, status or STATUS[kind], error)
    return problem_to_json("InternalError", status or 500, INTERNAL_ERROR)


def error_of(problem: ErrorDocument) -> DitherError:
    """Return the error that a problem document describes, of its own class and with its fields.

    >>> error_of(problem_of(NotFound.of("answer")))
    NotFound('There is no such answer, or you may not see it.')
    """
    own: dict[str, type[DitherError]] = {"NotFound": NotFound, "Conflict": Conflict, "Forbidden": Forbidden}
    if problem["title"] in own:
        return own[problem["title"]](*(problem[name] for name in ("name", "expected", "got", "fix")))
    return problem_from_json(problem, problem["status"])


def retry_after(error: BaseException) -> dict[str, str]:
    """Return the header Retry-After, in seconds, for errors that pass with time; an empty mapping for others."""
    error = Unavailable.now() if is_outage(error) else error
    return {"retry-after": str(error.seconds)} if isinstance(error, (TooMany, Unavailable)) else {}


def location_of(error: BaseException) -> str:
    """Return the class of an error and the line that raised it, preferably in dither's own code, for the log."""
    frames = [f"{frame.f_code.co_filename}:{line}" for frame, line in walk_tb(error.__traceback__)]
    own = [place for place in frames if place.startswith(_SOURCE)]
    return f"{type(error).__name__} at {(own or frames or ['?'])[-1]}"
