"""When the answer to a question may be given: at a tick, then at twice, four times, eight times as long.

How long a question takes depends on the rows, a little. Whoever asks sees an answer, or that there is none, at one of
the moments ``began_at + tick * 2**k`` and at no other, so all that time can tell is k: with the first tick at 0.25 s
and a limit of 120 s, one of ten values. Multiples of a tick would be one of 480. The price is that an answer may
come up to twice as late as it could. A neighboring table changes how long a question takes by far less than a tick, so
k differs only if the work ends right at a tick. That this is improbable is an assumption, not a proof: see the threat
model.

A question begins when it is asked, or, if all workers are taken, at the tick at which one of them ends: the wait in a
queue is a sum of ticks of others, and is not doubled.

Being cancelled happens at a tick, too: otherwise when a question ended could be found by cancelling it.
"""

from __future__ import annotations

import math
import threading
import time


class Clock:
    """The time by which it is decided what may be seen, and when a question has taken too long.

    It is read off the system's clock once and goes on evenly from there: a clock that is set anew ends no question and
    delays none. ``origin`` is that of another process of this machine: both then show an answer at the same moment,
    even if the system's clock was set anew between their starts. A test has a clock that stands still until it is told
    to go on.

    >>> first = Clock()
    >>> abs(Clock(first.origin).now() - first.now()) < 60
    True
    """

    def __init__(self, origin: float | None = None) -> None:
        self.origin = time.time() - time.monotonic() if origin is None else origin

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self.origin + time.monotonic()

    def wait(self, until: float, stopping: threading.Event) -> None:
        """Wait for a moment, or until an event that comes before it."""
        stopping.wait(max(0.0, until - self.now()))


def delay(elapsed: float, tick: float) -> float:
    """Return the delay of the first tick at or after so many seconds.

    >>> [delay(s, 0.25) for s in (0.0, 0.25, 0.26, 0.9, 3.0)]
    [0.25, 0.25, 0.5, 1.0, 4.0]
    """
    if elapsed <= tick:
        return tick
    result = tick * 2.0 ** math.ceil(math.log2(elapsed / tick))
    while result < elapsed:  # the logarithm was rounded
        result *= 2
    return result


def next_tick(began_at: float, now: float, tick: float) -> float:
    """Return the first tick of a question at or after a moment."""
    return began_at + delay(now - began_at, tick)


def tick_after(began_at: float, now: float, tick: float) -> float:
    """Return the first tick of a question after a moment, which is not the moment itself.

    >>> tick_after(100.0, 100.25, 0.25), tick_after(100.0, 100.3, 0.25)
    (100.5, 100.5)
    """
    result = next_tick(began_at, now, tick)
    return result if result > now else began_at + 2 * (result - began_at)
