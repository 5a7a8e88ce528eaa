"""Private statistics of one column in one call. Bounds and epsilon are required and public.

The relation is :data:`~dither.ReplaceOne` unless said otherwise: the number of records is taken to be public,
as in most textbooks. Where it is private, pass ``neighbors=dither.AddRemove``. Every answer carries its
guarantee, its relation and its error.

>>> import dither as dp
>>> ages = [23, 35, 44, 51, 67] * 200
>>> answer = dp.stats.mean(ages, bounds=(0, 120), epsilon=1)
>>> abs(answer - 44) < 3 and answer.error(0.95) < 1
True
"""

from dither.public_module import name_by_home as _name_by_home
from dither.stats.estimate import Estimate, EstimateFloat, EstimateInt, Histogram
from dither.stats.moments import count, histogram, mean, std, sum, var
from dither.stats.order import iqr, max, median, min, mode, quantile, quantiles

__all__ = [
    "Estimate",
    "EstimateFloat",
    "EstimateInt",
    "Histogram",
    "count",
    "histogram",
    "iqr",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "quantile",
    "quantiles",
    "std",
    "sum",
    "var",
]

__dir__ = _name_by_home(__name__, __all__, globals())
