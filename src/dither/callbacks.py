"""Calling functions of the user on private records: nothing but what they return becomes visible.

An error or a warning would tell that a record of some kind is there, at no cost. So warnings are not shown, and an
error of any type counts as no result, also one that is made to pass through ``except Exception``, as SystemExit is.
Only KeyboardInterrupt passes, without its cause and traceback, so that Ctrl-C stops a computation.

>>> import warnings
>>> with silenced():
...     warnings.warn("a record is 0")
...     outcome(float, "1.5"), outcome(float, "a secret")
(1.5, None)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from warnings import catch_warnings, simplefilter

import numpy as np

T = TypeVar("T")


@contextmanager
def silenced() -> Iterator[None]:
    """Suppress all warnings in the block, NumPy's included, so that none becomes an error."""
    with np.errstate(all="ignore"), catch_warnings():
        simplefilter("ignore")
        yield


def outcome(function: Callable[..., T], *args: Any) -> T | None:
    """Call a function of the user, and return its result; None if it raises anything but KeyboardInterrupt."""
    try:
        return function(*args)
    except KeyboardInterrupt:
        interrupted = True
    except BaseException:
        interrupted = False
    if interrupted:  # raised outside of the handler, so that nothing is attached to it
        raise KeyboardInterrupt
    return None
