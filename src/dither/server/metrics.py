"""Numbers about the server for Prometheus, in its text format.

They are the same for neighboring tables: each follows from what clients sent, from what they were sent at ticks, and
from the machine. There are no durations, no sizes, no processor time or memory, and no counts of answers, failures or
incidents. An answer that is there and one that is waited for are one outcome.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Scope

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_UNKNOWN = "unknown"


def outcome_of(status: int) -> str:
    """How a request ended, as it is counted.

    >>> [outcome_of(status) for status in (200, 202, 303, 422, 429, 503)]
    ['ok', 'ok', 'ok', 'refused', 'limited', 'error']
    """
    if status == 429:
        return "limited"
    return "ok" if status < 400 else "refused" if status < 500 else "error"


class Metrics:
    """Counts of requests by route and outcome, in this process."""

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._paths: dict[Any, str] = {}
        for route in routes:
            if isinstance(route, (Route, Mount)):
                endpoint = route.app if isinstance(route, Mount) else route.endpoint
                self._paths[endpoint] = route.path
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str], int] = {}
        self._started = time.time()

    def count(self, scope: Scope, status: int) -> str:
        """Count a request that was answered; its route."""
        route = self._paths.get(scope.get("endpoint"), _UNKNOWN)
        key = route, outcome_of(status)
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + 1
        return route

    def text(self, gauges: Mapping[str, tuple[str, float]], version: str) -> str:
        """All metrics; ``gauges`` are names with what they say and their values.

        >>> print(Metrics([]).text({"dither_workers": ("Workers", 2)}, "1.0").splitlines()[-1].split("{")[0])
        dither_workers
        """
        process = f'process="{os.getpid()}"'
        lines = [
            "# HELP dither_info The version of dither.",
            "# TYPE dither_info gauge",
            f'dither_info{{{process},version="{version}"}} 1',
            "# HELP dither_requests_total Requests by route and outcome: ok, refused, limited or error.",
            "# TYPE dither_requests_total counter",
        ]
        with self._lock:
            counts = sorted(self._counts.items())
        for (route, outcome), count in counts:
            lines.append(f'dither_requests_total{{{process},route="{route}",outcome="{outcome}"}} {count}')
        started = {"dither_start_time_seconds": ("When this process started, in seconds since 1970.", self._started)}
        for name, (help_text, value) in {**started, **gauges}.items():
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} gauge", f"{name}{{{process}}} {value:.15g}"]
        return "\n".join(lines) + "\n"
