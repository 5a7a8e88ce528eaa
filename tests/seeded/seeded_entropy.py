"""Entropy of the tests: a deterministic stand-in for ``os.urandom``, in this process and in those it starts.

It replaces the function of the operating system from outside. The package has no seed, argument or variable that makes
its secure source deterministic, and tests run the code that runs in production. What Python draws through ``secrets``,
``uuid4``, ``random.SystemRandom`` and NumPy's unseeded generators comes from the same function.

Processes that tests start find this folder on their path (``sitecustomize.py``), and the name of their draws in the
environment; this module is imported at the start of each of them, and imports as little as it can.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading

VARIABLE = "SEEDED_ENTROPY"
"""The folder in which children are counted, and the name from which theirs is derived."""


class Draws:
    """The words of one test: a function of its name, of the thread, and of how often the thread drew before.

    Threads are numbered in the order of their first draw, the one that made this object first.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.forks = 0
        self._restart()

    def _restart(self) -> None:
        self._threads = itertools.count()
        self._local = threading.local()
        self._calls()

    def _calls(self) -> tuple[int, itertools.count[int]]:
        if not hasattr(self._local, "calls"):
            self._local.calls = next(self._threads), itertools.count()
        calls: tuple[int, itertools.count[int]] = self._local.calls
        return calls

    def take(self, size: int) -> bytes:
        """The next bytes of this thread."""
        import hashlib

        thread, calls = self._calls()
        return hashlib.shake_256(f"{self.name} {thread} {next(calls)}".encode()).digest(size)

    def enter_fork(self) -> None:
        """Give a forked child words of its own."""
        self.name = f"{self.name} fork {self.forks}"
        self.forks = 0
        self._restart()


class SeededEntropy:
    """What stands in for ``os.urandom``: the draws in force, or the operating system's where there are none."""

    def __init__(self) -> None:
        self.genuine = os.urandom
        self.draws: Draws | None = None

    def __call__(self, size: int, /) -> bytes:
        return self.genuine(size) if self.draws is None else self.draws.take(size)

    def _before_fork(self) -> None:
        if self.draws is not None:
            self.draws.forks += 1

    def _after_fork(self) -> None:
        if self.draws is not None:
            self.draws.enter_fork()

    def install(self) -> None:
        """Put this in the place of the function of the operating system."""
        os.urandom = sys.modules[os.name].urandom = self  # type: ignore[assignment, attr-defined]
        if "random" in sys.modules:  # it has its own name for the function
            sys.modules["random"]._urandom = self  # type: ignore[attr-defined]
        os.register_at_fork(before=self._before_fork, after_in_child=self._after_fork)

    def remove(self) -> None:
        """Put the function of the operating system back."""
        os.urandom = sys.modules[os.name].urandom = self.genuine  # type: ignore[attr-defined]
        sys.modules["random"]._urandom = self.genuine  # type: ignore[attr-defined]
        self.draws = None


def child_number(folder: str, name: str) -> int:
    """How many processes took a number before, of those that were started with this name."""
    for number in itertools.count():
        try:
            os.close(os.open(os.path.join(folder, f"{name}-{number}"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return number
    raise AssertionError


def seed_child() -> None:
    """Seed this process, if a test started it; each child of a test has draws of its own."""
    folder, _, name = os.environ.get(VARIABLE, "").rpartition(":")
    if os.path.isdir(folder):
        mine = f"{name}-{child_number(folder, name)}"
        entropy = SeededEntropy()
        entropy.draws = Draws(mine)
        entropy.install()
        os.environ[VARIABLE] = f"{folder}:{mine}"
