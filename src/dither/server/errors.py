"""The errors of the server, and every error as clients see it: a status and the fields of the error (RFC 9457).

Only dither's own errors have words. Of any other nothing is shown, since its text may hold a value of a row, a path or
a password.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from traceback import walk_tb
from typing import Any

from sqlalchemy import exc

from dither import errors
from dither.errors import AccessDenied, DitherError, InvalidArgument, LedgerError, ServerUnavailable
from dither.server.roles import Forbidden
from dither.wire import problems as wire


class NotFound(InvalidArgument):
    """There is no such thing, or whoever asks may not know of it: both are answered alike.

    >>> print(NotFound.of("answer"))
    answer: expected one that you may see, got none by this name. Fix: check the name.
    """

    @classmethod
    def of(cls, what: str) -> NotFound:
        """The refusal, in the same words whatever the reason."""
        return cls(what, "one that you may see", "none by this name", "check the name")


class NotSignedIn(AccessDenied):
    """Nobody is signed in, or the session or token is unknown, expired or revoked: all are answered alike.

    >>> print(NotSignedIn())
    sign-in: expected a session or a token that is valid, got none. Fix: sign in, or make a new token.
    """

    def __init__(self) -> None:
        super().__init__("sign-in", "a session or a token that is valid", "none", "sign in, or make a new token")


class TooMany(ServerUnavailable):
    """Too many requests, or too many questions at the same time; ``seconds`` says when to try again.

    >>> TooMany("questions", "at most 4 at the same time", 1).seconds
    1
    """

    def __init__(self, what: str, expected: str, seconds: int) -> None:
        super().__init__(what, expected, "more", f"try again in {seconds} s")
        self.seconds = seconds


class Unavailable(ServerUnavailable):
    """The server's database or disk cannot be used now; ``seconds`` says when to try again.

    >>> print(Unavailable())
    server: expected available, got temporarily unavailable. Fix: try again in 5 s.
    """

    seconds = 5

    def __init__(self) -> None:
        super().__init__("server", "available", "temporarily unavailable", f"try again in {self.seconds} s")


class Conflict(InvalidArgument):
    """What is asked for contradicts how things stand: a name that is taken, a change that was decided.

    >>> issubclass(Conflict, InvalidArgument)
    True
    """


class Stopping(ServerUnavailable):
    """The server is about to stop, or was stopped before it came to a question.

    >>> print(Stopping())
    server: expected one that takes questions, got one that stops. Fix: ask again, with the same key if you gave one.
    """

    def __init__(self) -> None:
        fix = "ask again, with the same key if you gave one"
        super().__init__("server", "one that takes questions", "one that stops", fix)


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


@dataclass(frozen=True)
class Problem:
    """What went wrong, in words for whoever asked: ``type`` names the class of the error (``urn:dither:…``),
    ``detail`` is the whole sentence, and ``status`` the HTTP status.
    """

    type: str
    title: str
    status: int
    detail: str
    name: str = ""
    expected: str = ""
    got: str = ""
    fix: str = ""


_SOURCE = str(Path(__file__).parents[1])


def place_of(error: BaseException) -> str:
    """The class of an error and the line that raised it, or the last one of dither that was on the way there.

    >>> try:
    ...     raise KeyError("somebody's name")
    ... except KeyError as error:
    ...     print(place_of(error).split(":")[0])
    KeyError at <doctest dither.server.errors.place_of[0]>
    """
    frames = [f"{frame.f_code.co_filename}:{line}" for frame, line in walk_tb(error.__traceback__)]
    own = [place for place in frames if place.startswith(_SOURCE)]
    return f"{type(error).__name__} at {(own or frames or ['?'])[-1]}"
