"""Running audited code and recording everything its caller can observe: the result, an error, and what is left behind.

A warning is an output: an analyst who sees "invalid value encountered in divide" on one data set and not on the other
has learned something about the data. So is what is printed, logged or stored (:mod:`dither.audit.outputs.effects`).

>>> import warnings
>>> observe(lambda x: warnings.warn(f"{x} missing values") or x, 3)
Warned(output=3, warnings=(('UserWarning', '3 missing values'),), effects=())
>>> observe(lambda x: 1 / x, 0)
Raised(kind='ZeroDivisionError', message='division by zero')
>>> observe(lambda x: print(x), 0)
Warned(output=None, warnings=(), effects=(('standard output', '0\\n'),))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from types import GeneratorType
from typing import Any

import numpy as np

from dither.audit.outputs.canonical import Frozen, Raised, Stopped, Warned
from dither.audit.outputs.effects import Watch

_MAX_ITEMS = 1 << 16
_LAZY = (GeneratorType, map, filter, zip)
_FIXED = frozenset({float, int, bool, str, bytes, type(None), np.float64, np.int64, Raised})


def _as_it_is(output: Any) -> Any:
    return output


def observe(function: Callable[..., Any], *arguments: Any, keep: Callable[[Any], Any] = _as_it_is) -> Any:
    """What a caller of ``function(*arguments)`` observes: its result or :class:`Raised`, within :class:`Warned` if it
    issued warnings or left anything behind. ``keep`` is applied to the result while everything is still observed.
    """
    with Watch(function) as watch:
        return _observation(function, arguments, watch, keep)


def observe_runs(function: Callable[[Any], Any], x: Any, size: int) -> list[Any]:
    """The observations of ``size`` runs of ``function`` on x.

    >>> observe_runs(abs, -2, 3)
    [2, 2, 2]
    """
    return observe_each(function, (x for _ in range(size)))


def observe_each(
    function: Callable[[Any], Any], data: Iterable[Any], features: Callable[[Any], Any] | None = None
) -> list[Any]:
    """One observation for each data set, as it was right after its run; ``features`` replaces what is observed.

    >>> observe_each(abs, [-1, 2])
    [1, 2]
    """
    with Watch(function) as watch:
        if features is not None:
            return [feature(features, _observation(function, (x,), watch, _as_it_is)) for x in data]
        return [_observation(function, (x,), watch, fixed) for x in data]


def fixed(observed: Any) -> Any:
    """An output in a form that later runs cannot change.

    >>> fixed(2.5)
    2.5
    """
    if type(observed) in _FIXED:
        return observed
    return observed.copy() if type(observed) is np.ndarray and _is_plain(observed) else Frozen.of(observed)


def _is_plain(array: Any) -> bool:
    """Whether an array is nothing but its numbers: no view, and no other order or metadata."""
    plain = array.base is None and array.flags.c_contiguous and array.dtype.metadata is None
    return bool(plain and array.dtype.char in "bhilefd")


def feature(features: Callable[[Any], Any], observation: Any) -> Any:
    """The feature of an output; an error stands for itself, and what was left behind is not looked at.

    >>> feature(len, [1, 2])
    2
    """
    output = observation.output if isinstance(observation, Warned) else observation
    return output if isinstance(output, Raised) else features(output)


def _observation(
    function: Callable[..., Any], arguments: tuple[Any, ...], watch: Watch, keep: Callable[[Any], Any]
) -> Any:
    def compute() -> Any:
        try:
            output = function(*arguments)
            # evaluated here, so that its releases, errors and warnings are observed
            if isinstance(output, _LAZY):
                output = [*islice(output, _MAX_ITEMS)]
        except (KeyboardInterrupt, Stopped):
            raise
        except BaseException as error:
            return Raised.by(error)
        return keep(output)

    output, effects = watch.run(compute)
    warned = tuple((item.category.__qualname__, str(item.message)) for item in watch.warnings)
    return Warned(output, warned, effects) if warned or effects else output
