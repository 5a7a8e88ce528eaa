"""How far one person can move a statistic. No default relation: the answer depends on it.

>>> import dither as dp
>>> dp.sensitivity.mean(n=100, bounds=(0, 1), neighbors=dp.ReplaceOne)
0.01
"""

from dither.homes import name_by_home as _name_by_home
from dither.sensitivity.known import count, histogram, maximum, mean, median, minimum, std, sum, variance
from dither.sensitivity.smooth import (
    distance_to_exceed,
    linear,
    local_median,
    local_order,
    smooth_iqr,
    smooth_max,
    smooth_mean,
    smooth_median,
    smooth_min,
    smooth_order,
    smooth_quantile,
    smooth_trimmed_mean,
)

__all__ = [
    "count",
    "distance_to_exceed",
    "histogram",
    "linear",
    "local_median",
    "local_order",
    "maximum",
    "mean",
    "median",
    "minimum",
    "smooth_iqr",
    "smooth_max",
    "smooth_mean",
    "smooth_median",
    "smooth_min",
    "smooth_order",
    "smooth_quantile",
    "smooth_trimmed_mean",
    "std",
    "sum",
    "variance",
]

_name_by_home(__name__, __all__, globals())
