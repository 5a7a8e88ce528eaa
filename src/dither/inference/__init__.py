"""From noisy sums to a value and an interval, for statistics of arrays and of tables alike.

Nothing here reads data or draws noise. What goes in was released already (or is a plan for it), so everything here is
post-processing: it costs no privacy, and only has to be right about the error.

* :mod:`~dither.inference.grid`: the public grid on which values are counted, so that sums are sums of integers;
* :mod:`~dither.inference.intervals`: kinds of intervals around a released number;
* :mod:`~dither.inference.measured`: the law of the noise in a released number, samples of it, and limits that follow;
* :mod:`~dither.inference.moments`: mean, variance and standard deviation from noisy sums;
* :mod:`~dither.inference.modes`: how probable it is that a selected key is the most common one;
* :mod:`~dither.inference.pairs`: covariance, correlation and regression from noisy sums of products;
* :mod:`~dither.inference.bernstein`: mean and variance from noisy Bernstein sums, for one array;
* :mod:`~dither.inference.combine`: any arithmetic on released numbers;
* :mod:`~dither.inference.population`: limits for the population that the records were drawn from;
* :mod:`~dither.inference.quantiles`: the order in which several quantiles are selected by halving.

>>> from dither.inference import NoiseLaw, mean, measured
>>> count, total = measured([100.0, 50.0], [NoiseLaw("laplace", 1.0), NoiseLaw("laplace", 4.0)], confidence=0.95)
>>> estimate = mean(count, total, largest=2.0)
>>> float(estimate.value[0]), round(float(estimate.error[0]), 2)
(0.5, 0.12)
"""

from dither.inference.bernstein import BernsteinInterval
from dither.inference.combine import combine, quotient
from dither.inference.grid import Grid, bin_numbers
from dither.inference.intervals import Around, AroundBounded, Interval, RankInterval, Root, WithinBounds, outward
from dither.inference.measured import EXACT, STANDARD_NORMAL, Measured, NoiseLaw, level_table, measured
from dither.inference.modes import mode_probability
from dither.inference.moments import IntervalEstimate, mean, standard_deviation, variance
from dither.inference.pairs import PairStatistic, PairSums, pair_statistic
from dither.inference.population import (
    PopulationCount,
    PopulationVariance,
    population_count,
    population_mean,
    population_sum,
    population_variance,
    wilson,
)
from dither.inference.quantiles import Split, halve, levels

__all__ = [
    "EXACT",
    "STANDARD_NORMAL",
    "Around",
    "AroundBounded",
    "BernsteinInterval",
    "Grid",
    "Interval",
    "IntervalEstimate",
    "Measured",
    "NoiseLaw",
    "PairStatistic",
    "PairSums",
    "PopulationCount",
    "PopulationVariance",
    "RankInterval",
    "Root",
    "Split",
    "WithinBounds",
    "bin_numbers",
    "combine",
    "halve",
    "level_table",
    "levels",
    "mean",
    "measured",
    "mode_probability",
    "outward",
    "pair_statistic",
    "population_count",
    "population_mean",
    "population_sum",
    "population_variance",
    "quotient",
    "standard_deviation",
    "variance",
    "wilson",
]


def __dir__() -> list[str]:
    return sorted(__all__)
