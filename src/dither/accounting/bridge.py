"""Workloads for Google's accountants: :func:`to_dp_event`. Needs ``pip install dp-accounting``."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import Any

from dither.accounting.events import (
    Concentrated,
    Event,
    GaussianNoise,
    LaplaceNoise,
    PostProcessed,
    Pure,
    ResponseReport,
    Sequential,
    require_event,
    unknown,
)
from dither.accounting.sampling import PoissonSampled
from dither.exact import down, up


def to_dp_event(event: Event) -> Any:
    """Return the workload as a ``dp_accounting.DpEvent``, with parameters rounded towards less noise.

    Discrete Laplace noise, selections, groups and (epsilon, delta) have no counterpart there and are refused.

    >>> from dither.accounting import GaussianNoise
    >>> to_dp_event(3 * GaussianNoise(2)).count
    3
    """
    one = require_event(event)
    if type(one) not in _COUNTERPARTS:
        raise unknown(one, "a counterpart in dp_accounting")
    return _COUNTERPARTS[type(one)](one, import_module("dp_accounting"))


def _sequence(event: Any, google: Any) -> Any:
    """Return a sequence of events, with repeated ones counted."""
    parts = []
    for part, count in event.parts:
        one = to_dp_event(part)
        # dp-accounting 0.6 counts a repeated randomized response once: write it out
        if count == 1 or "RandomizedResponse" in repr(one):
            parts += [one] * count
        else:
            parts.append(google.SelfComposedDpEvent(one, count))
    return parts[0] if len(parts) == 1 else google.ComposedDpEvent(parts)


def _response(epsilon: Fraction, categories: int, google: Any) -> Any:
    """Return randomized response with the parameter of dp_accounting, the probability of a uniform report.

    Here the truth has probability p = e^epsilon / (e^epsilon + k - 1).
    """
    small = math.exp(-float(epsilon))
    return google.RandomizedResponseDpEvent(categories * small / (1 + (categories - 1) * small), categories)


_COUNTERPARTS: dict[type, Callable[[Any, Any], Any]] = {
    Sequential: _sequence,
    PostProcessed: lambda event, _: to_dp_event(event.event),
    GaussianNoise: lambda event, google: google.GaussianDpEvent(down(event.ratio)),
    LaplaceNoise: lambda event, google: google.LaplaceDpEvent(down(event.ratio)),
    Concentrated: lambda event, google: google.ZCDpEvent(up(event.rho)),
    Pure: lambda event, google: _response(event.epsilon, 2, google),
    ResponseReport: lambda event, google: _response(event.epsilon, event.categories, google),
    PoissonSampled: lambda event, google: google.PoissonSampledDpEvent(up(event.rate), to_dp_event(event.event)),
}
