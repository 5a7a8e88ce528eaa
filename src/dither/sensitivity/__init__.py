"""By how much one person can change a statistic. There is no default relation: the answer depends on it.

>>> import dither as dp
>>> dp.sensitivity.mean(n=100, bounds=(0, 1), neighbors=dp.ReplaceOne)
0.01
"""

from dither.public_module import name_by_home as _name_by_home
from dither.sensitivity.known import count, histogram, mean, median, sampled, std, sum
from dither.sensitivity.known import maximum as max
from dither.sensitivity.known import minimum as min
from dither.sensitivity.known import variance as var
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
    "max",
    "mean",
    "median",
    "min",
    "sampled",
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
    "var",
]

__dir__ = _name_by_home(__name__, __all__, globals())
