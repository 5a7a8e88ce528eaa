"""What systemd is told of the server: that it is ready, that it lives, that it stops (``sd_notify``).

Nothing is sent where ``NOTIFY_SOCKET`` is not set.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress


def notify(state: str) -> None:
    """Send a state, such as ``READY=1``.

    >>> notify("READY=1")
    """
    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place:
        return
    address = "\0" + place[1:] if place.startswith("@") else place
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto(state.encode(), address)


class Watchdog:
    """Tells systemd that the server lives, twice as often as it wants to hear it (``WatchdogSec``).

    >>> Watchdog().beat()
    """

    def __init__(self) -> None:
        given, process = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", str(os.getpid()))
        is_wanted = given.isdigit() and int(given) > 0 and process == str(os.getpid())
        self._pause = int(given) / 2e6 if is_wanted else None
        self._next = 0.0

    def beat(self) -> None:
        """Called often by what has to live; it sends a message when one is due."""
        now = time.monotonic()
        if self._pause is not None and now >= self._next:
            self._next = now + self._pause
            notify("WATCHDOG=1")
