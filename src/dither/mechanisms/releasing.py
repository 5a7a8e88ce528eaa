"""The ``release`` of the mechanisms that add noise to numbers, and its types."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dither.budget_hooks import spends
from dither.mechanisms.pictures import Pictured
from dither.randomness import Source


class ReleasesNumbers(Pictured):
    """Base of the mechanisms that release an int for an int, a float for a float and an array for an array."""

    @overload
    def release(self, value: int | np.integer[Any], *, source: Source | None = None) -> int: ...
    @overload
    def release(self, value: float | Fraction | np.floating[Any], *, source: Source | None = None) -> float: ...
    @overload
    def release(self, value: NDArray[Any], *, source: Source | None = None) -> NDArray[Any]: ...
    @overload
    def release(self, value: list[int] | tuple[int, ...], *, source: Source | None = None) -> list[int]: ...
    @overload
    def release(self, value: list[float] | tuple[float, ...], *, source: Source | None = None) -> list[float]: ...
    @overload
    def release(self, value: Any, *, source: Source | None = None) -> Any: ...
    @spends
    def release(self, value: Any, *, source: Source | None = None) -> Any:
        """``value`` with noise: an int for an int, a float on the public lattice for a float or a Fraction, and
        the like for lists, arrays and pandas or polars Series, which count as one vector with the sensitivity
        of the mechanism.
        """
        return self._release(value, source)

    def _release(self, value: Any, source: Source | None) -> Any:
        raise AssertionError("each mechanism draws its own noise")
