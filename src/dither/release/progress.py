"""Progress of a long release: the number of the running statement, and the seconds since it began.

It is written to stderr, over itself, on a terminal or in a notebook only, after a second, and it is removed when the
answer is there. It shows what the person who asks knows or can measure anyway: the plan, and the time.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, TextIO, TypeVar

R = TypeVar("R")
DELAY, INTERVAL = 1.0, 0.5
"""After how many seconds it is first shown, and how often it is shown anew."""


def is_watched(out: TextIO | None = None) -> bool:
    """Return whether a stream, by default stderr, is shown on a terminal or in a notebook.

    >>> import io
    >>> is_watched(io.StringIO())
    False
    """
    stream = sys.stderr if out is None else out
    notebook = type(stream).__module__.startswith("ipykernel.")
    return notebook or bool(getattr(stream, "isatty", lambda: False)())


class Progress:
    """Shows the number of the running statement and the elapsed seconds until the ``with`` block ends.

    >>> import io
    >>> with Progress(3, io.StringIO()) as progress:
    ...     progress.next_statement()
    >>> progress.text(12.4)
    'dither: statement 1 of 3, 12 s'
    """

    def __init__(
        self,
        total: int,
        out: TextIO,
        *,
        delay: float = DELAY,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Show progress on ``out`` after ``delay`` seconds and every ``interval`` seconds; ``total`` is the expected
        number."""
        self._total, self._out = total, out
        self._delay, self._interval, self._clock = delay, interval, clock
        self._number = self._width = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, name="dither progress", daemon=True)

    def next_statement(self) -> None:
        """Count one more statement; the total grows if there are more than expected."""
        self._number += 1
        self._total = max(self._total, self._number)

    def text(self, seconds: float) -> str:
        """Return the line that is shown after this many seconds."""
        return f"dither: statement {max(self._number, 1)} of {max(self._total, 1)}, {int(seconds)} s"

    def _show(self) -> None:
        """Show the line from time to time, until the block ends."""
        start = self._clock()
        wait = self._delay
        while not self._done.wait(wait):
            self._write(self.text(self._clock() - start))
            wait = self._interval

    def _write(self, text: str) -> None:
        """Write text over the line before; give up if the terminal is gone."""
        try:
            self._out.write("\r" + text.ljust(self._width))
            self._out.flush()
        except (OSError, ValueError):  # a terminal that is gone is no reason to lose an answer
            self._done.set()
        self._width = len(text)

    def __enter__(self) -> Progress:
        """Start to show the progress, if a thread can be started."""
        with suppress(RuntimeError):  # no thread is no reason to lose an answer either
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the thread that shows the progress, and clear the line; an error is not handled here."""
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._width:
            self._write("")
            self._write("")


def with_progress(
    work: Callable[[Callable[[Any], R]], bytes], run: Callable[[Any], R], statements: Callable[[], int]
) -> bytes:
    """Return ``work(run)``, showing its progress on a terminal or in a notebook; ``statements()`` is the expected
    number."""
    if not is_watched():
        return work(run)
    with Progress(statements(), sys.stderr) as progress:

        def counted(statement: Any) -> R:
            """Count a statement, and run it."""
            progress.next_statement()
            return run(statement)

        return work(counted)
