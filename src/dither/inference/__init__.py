"""From noisy sums to a value and an interval, for statistics of arrays and of tables alike.

Nothing here reads data or draws noise. What goes in was released already (or is a plan for it), so everything here is
post-processing: it costs no privacy, and only has to be right about the error.

* :mod:`~dither.inference.grid`: the public grid on which values are counted, so that sums are sums of integers;
* :mod:`~dither.inference.intervals`: kinds of intervals around a released number;
* :mod:`~dither.inference.ratio`: the share of one noisy sum in two of them, with exact limits;
* :mod:`~dither.inference.moments`: mean, variance and standard deviation from noisy sums;
* :mod:`~dither.inference.quantiles`: the order in which several quantiles are selected by halving.

>>> from dither.inference import NoisySum, mean
>>> count, total = NoisySum(100, 5.0), NoisySum(50, 20.0)
>>> estimate = mean(count, total, largest=2.0)
>>> float(estimate.value), round(float(estimate.error), 4)
(0.5, 0.2368)
"""

from dither.inference.grid import Grid, bin_numbers
from dither.inference.intervals import Around, AroundBounded, Interval, RankInterval, Root, WithinBounds, outward
from dither.inference.moments import BernsteinInterval, IntervalEstimate, NoisySum, mean, standard_deviation, variance
from dither.inference.quantiles import Split, halve, levels
from dither.inference.ratio import RatioInterval

__all__ = [
    "Around",
    "AroundBounded",
    "BernsteinInterval",
    "Grid",
    "Interval",
    "IntervalEstimate",
    "NoisySum",
    "RankInterval",
    "RatioInterval",
    "Root",
    "Split",
    "WithinBounds",
    "bin_numbers",
    "halve",
    "levels",
    "mean",
    "outward",
    "standard_deviation",
    "variance",
]


def __dir__() -> list[str]:
    return sorted(__all__)
