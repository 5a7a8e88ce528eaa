"""How far one person can move a statistic. No default relation: the answer depends on it.

>>> import dither as dp
>>> dp.sensitivity.mean(n=100, bounds=(0, 1), neighbors=dp.ReplaceOne)
0.01
"""

from dither.sensitivity.known import count, histogram, maximum, mean, median, minimum, std, sum, variance

__all__ = ["count", "histogram", "maximum", "mean", "median", "minimum", "std", "sum", "variance"]
