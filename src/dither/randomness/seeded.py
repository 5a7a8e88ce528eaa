"""The mark of values that were released from a seeded source, which is part of how they are shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from dither.randomness.source import Source

NOTICE = "seeded, not private"


class SeededInt(int):
    """An int that was released with a seeded source.

    >>> SeededInt(3)
    3 (seeded, not private)
    """

    def __repr__(self) -> str:
        return f"{int(self)} ({NOTICE})"


class SeededFloat(float):
    """A float that was released with a seeded source.

    >>> SeededFloat(0.5)
    0.5 (seeded, not private)
    """

    def __repr__(self) -> str:
        return f"{float(self)!r} ({NOTICE})"


class SeededStr(str):
    """A label that was released with a seeded source.

    >>> SeededStr("yes")
    'yes' (seeded, not private)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{str(self)!r} ({NOTICE})"


class SeededList(list[Any]):
    """A list that was released with a seeded source.

    >>> SeededList([1, 2])
    [1, 2] (seeded, not private)
    """

    def __repr__(self) -> str:
        return f"{list(self)!r} ({NOTICE})"


class SeededArray(np.ndarray[Any, np.dtype[Any]]):
    """An array that was released with a seeded source.

    >>> np.zeros(2).view(SeededArray)
    array([0., 0.]) (seeded, not private)
    """

    def __repr__(self) -> str:
        return f"{np.asarray(self)!r} ({NOTICE})"

    def __str__(self) -> str:
        return f"{np.asarray(self)} ({NOTICE})"


def mark(value: Any, source: Source) -> Any:
    """Return ``value``, marked as seeded if ``source`` is not private.

    >>> from dither.randomness import SYSTEM, SeededSource
    >>> mark(1, SYSTEM), mark(1, SeededSource(1))
    (1, 1 (seeded, not private))
    """
    if source.private:
        return value
    if isinstance(value, np.ndarray):
        return value.view(SeededArray)
    if isinstance(value, (int, np.integer)):
        return SeededInt(value)
    if isinstance(value, (float, np.floating)):
        return SeededFloat(value)
    if isinstance(value, str):
        return SeededStr(value)
    return SeededList(value) if isinstance(value, list) else value


def is_seeded(value: object) -> bool:
    """Return whether ``value`` carries the mark; ledger and tables refuse such a value.

    >>> is_seeded(SeededInt(1)), is_seeded(1)
    (True, False)
    """
    marked = isinstance(value, (SeededInt, SeededFloat, SeededStr, SeededList, SeededArray))
    return marked or getattr(value, "seeded", False) is True  # statistics and densities say it of themselves
