"""An identifier of the current process that differs from its parent's and is never reused."""

from __future__ import annotations

import os

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


def process() -> tuple[int, int]:
    """The process number, and how many forks led to this process: another pair in every forked child, also where the
    child is given a number that was in use before.

    >>> process() == process()
    True
    """
    return os.getpid(), _forks
