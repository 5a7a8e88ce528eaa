"""Running audited code and recording everything its caller can observe: the result, an error, and warnings.

A warning is an output: an analyst who sees "invalid value encountered in divide" on one data set and not on the other
has learned something about the data. Categories that Python hides by default (deprecations, imports, unclosed
resources) are not recorded, since they depend on the program rather than on the data.

>>> import warnings
>>> observe(lambda x: warnings.warn(f"{x} missing values") or x, 3)
Warned(output=3, warnings=(('UserWarning', '3 missing values'),))
>>> observe(lambda x: 1 / x, 0)
Raised(kind='ZeroDivisionError', message='division by zero')
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from types import GeneratorType
from typing import Any

from dither.audit.outputs.canonical import Raised, Warned

_MAX_ITEMS = 1 << 16
_LAZY = (GeneratorType, map, filter, zip)
_HIDDEN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


def observe(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a caller of ``function(*arguments)`` observes: its result or :class:`Raised`, within :class:`Warned` if it
    issued warnings.
    """
    with _recorded_warnings() as log:
        return _observation(function, arguments, log)


def observe_runs(function: Callable[[Any], Any], x: Any, size: int) -> list[Any]:
    """The observations of ``size`` runs of ``function`` on x.

    >>> observe_runs(abs, -2, 3)
    [2, 2, 2]
    """
    with _recorded_warnings() as log:
        return [_observation(function, (x,), log) for _ in range(size)]


@contextmanager
def _recorded_warnings() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        for category in _HIDDEN:
            warnings.simplefilter("ignore", category)
        yield log


def _observation(function: Callable[..., Any], arguments: tuple[Any, ...], log: list[warnings.WarningMessage]) -> Any:
    log.clear()
    try:
        output = function(*arguments)
        if isinstance(output, _LAZY):  # evaluated here, so that its releases, errors and warnings are observed
            output = [*islice(output, _MAX_ITEMS)]
    except (Exception, SystemExit) as error:
        output = Raised.by(error)
    if not log:
        return output
    return Warned(output, tuple((item.category.__qualname__, str(item.message)) for item in log))


__all__ = ["Raised", "Warned", "observe", "observe_runs"]
