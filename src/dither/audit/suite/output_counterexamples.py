"""Counterexamples in which the noise is right and another part of the output reveals the data.

The leak is in a label, a type, a digit, a warning, or in several parts jointly. The data set is 0 or 1, all numbers
have noise for a hundredth of the claim, and one part of the output is a function of the data. The repaired version
returns the same output without that dependence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.audit.suite.case import Counterexample
from dither.audit.suite.subjects import repeated_runs
from dither.guarantees import PureDP
from dither.mechanisms import Laplace
from dither.randomness import SYSTEM

_NOISE = Laplace(sensitivity=1, epsilon=0.01)
_RARE = 1 / 300
_KEYS = ("north", "east", "south", "west")


@dataclass(frozen=True)
class Pair:
    """An output with two fields."""

    first: float
    second: float


def noisy(x: int) -> float:
    """A real number with noise."""
    return float(_NOISE.release(float(x)))


def count(x: int) -> int:
    """An integer with noise."""
    return int(_NOISE.release(x))


def shifted(x: int) -> tuple[float, float]:
    """Two numbers with the same noise, so that their difference is exact."""
    first = noisy(0)
    return first, first + x


def even(x: int) -> dict[str, int]:
    """Four counts whose sum is even on one data set and odd on the other."""
    counts = {key: count(0) for key in _KEYS}
    counts["west"] += (sum(counts.values()) + x) % 2
    return counts


def with_bit(x: int, position: int) -> float:
    """A number with noise, one bit of which is replaced by the data."""
    word = np.array([noisy(0)]).view(np.int64)
    return float(((word & ~np.int64(1 << position)) | np.int64(x << position)).view(np.float64)[0])


def occasionally_constant(x: int, size: int) -> NDArray[np.float64]:
    """Numbers with noise; on one data set, one in three hundred is replaced by a constant."""
    result = np.asarray(_NOISE.release(np.zeros(size)), dtype=np.float64)
    chosen = (SYSTEM.words(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53 < _RARE
    return np.where(chosen, 42.0, result) if x else result


def long_text(x: int) -> str:
    """A long text with one character that depends on the data, far from its beginning and its end."""
    return f"{noisy(0)} {'.' * 200}{'ab'[x]} {noisy(0)}"


def in_memory_order(x: int) -> NDArray[np.float64]:
    """A matrix in row-major order on one data set and in column-major order on the other."""
    matrix = np.full((2, 2), noisy(0))
    return np.asfortranarray(matrix) if x else matrix


def with_warning(x: int) -> float:
    """A number with noise, with a warning on one data set."""
    if x:
        warnings.warn("a value is missing", stacklevel=2)
    return noisy(0)


def _case(name: str, reason: str, broken: Callable[[int], Any]) -> Counterexample:
    return Counterexample(name, reason, PureDP(1), 0, 1, repeated_runs(broken), repeated_runs(lambda _: broken(0)))


def _cases() -> Iterator[Counterexample]:
    yield _case(
        "difference in a dict", "two keys have the same noise", lambda x: dict(zip("ab", shifted(x), strict=True))
    )
    yield _case("difference in an object", "two fields have the same noise", lambda x: Pair(*shifted(x)))
    yield _case("difference in nested lists", "two numbers have the same noise", lambda x: [[v] for v in shifted(x)])
    yield _case("parity of four keys", "every count has noise, but not the parity of their sum", even)
    yield Counterexample(
        "a value now and then", "one run in three hundred shows which data set it was", PureDP(1), 0, 1,
        occasionally_constant, lambda _, size: occasionally_constant(0, size),
    )  # fmt: skip
    yield _case("width of a float", "a 32-bit float for one data set", lambda x: (np.float64, np.float32)[x](count(0)))
    yield _case("letter of a long text", "one letter among hundreds", long_text)
    yield _case("long integer", "noise in steps of two on an integer of 71 bits", lambda x: 2**70 + 2 * count(0) + x)
    yield _case(
        "digit of a decimal", "a digit that no float holds", lambda x: Decimal(count(0)) + Decimal(x).scaleb(-20)
    )
    yield _case("bit of a mantissa", "bit 21 of the float depends on the data", lambda x: with_bit(x, 21))
    yield _case("residue", "noise in steps of seven", lambda x: 7 * count(0) + x)
    yield _case("memory view", "the content of a memory view", lambda x: memoryview(b"ab"[x : x + 1]))
    yield _case("order in memory", "columns first", in_memory_order)
    yield _case("warning", "a warning where a value is missing", with_warning)
    if find_spec("pandas") is not None:
        yield from _frames()


def _frames() -> Iterator[Counterexample]:
    import pandas as pd

    def names(x: int) -> list[str]:
        return ["ann", ("bob", "cal")[x]]

    yield _case("index of a series", "a person's key", lambda x: pd.Series([noisy(0), noisy(0)], index=names(x)))
    yield _case("index of a frame", "a person's key", lambda x: pd.DataFrame({"n": [count(0)] * 2}, index=names(x)))
    yield _case("difference in a frame", "two rows have the same noise", lambda x: pd.DataFrame({"n": shifted(x)}))
    yield _case("name of a series", "a name from the data", lambda x: pd.Series([noisy(0)], name="nm"[x]))
    yield _case(
        "type of a series",
        "Int64 where a value is missing",
        lambda x: pd.Series([count(0)], dtype=("int64", "Int64")[x]),
    )


OUTPUT_COUNTEREXAMPLES: tuple[Counterexample, ...] = tuple(_cases())
"""All counterexamples of this module; those with frames only if pandas is installed."""
