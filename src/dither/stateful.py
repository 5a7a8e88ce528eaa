"""Objects whose privacy guarantee depends on their state, and which therefore must not be duplicated.

A session that may answer a limited number of times is private because it counts. A copy of it counts by itself, and so
does the same object in a forked process: together they answer more often than was paid for. :class:`Stateful` objects
therefore refuse to be copied and pickled, and refuse all use in another process than the one that made them.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn, Self, SupportsIndex

from dither.errors import WrongType

_forks = 0


def _count_fork() -> None:
    """Count that this process was forked from another."""
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


def process() -> tuple[int, int]:
    """Return process id and number of forks, which identify a process even if ids are reused.

    >>> process() == process()
    True
    """
    return os.getpid(), _forks


class Stateful:
    """Base of objects that must not be copied, pickled, or used by a forked process.

    >>> import copy
    >>> class Counter(Stateful):
    ...     pass
    >>> copy.copy(Counter())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    dither.WrongType: Counter: expected the one that was started, got a copy or a pickle of it. ...
    """

    _home: tuple[int, int]
    """The process that constructed it."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Construct the object, and note the current process."""
        one = super().__new__(cls)
        object.__setattr__(one, "_home", process())
        return one

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute; refuse use in a forked process."""
        if not name.startswith("__") and object.__getattribute__(self, "_home") != process():
            raise _refusal(type(self), "a forked copy of it")
        return object.__getattribute__(self, name)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise _refusal(type(self), "a copy or a pickle of it")


def _refusal(kind: type, got: str) -> WrongType:
    """Return the error for a duplicate of a session."""
    return WrongType(kind.__name__, "the one that was started", got, "start another one, at its own cost")
