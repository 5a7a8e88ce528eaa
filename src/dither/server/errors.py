"""The errors of the server itself; all others are dither's own."""

from __future__ import annotations

from dither.errors import AccessDenied, InvalidArgument, ServerUnavailable


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
