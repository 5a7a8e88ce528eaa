"""Releasing a whole distribution: histograms with noise, a smoothed histogram, and the Kolmogorov-Smirnov mechanism.

>>> import dither as dp
>>> result = dp.density.release([0.2, 0.4, 0.9] * 100, bounds=(0, 1), epsilon=1)
>>> result.guarantee
PureDP(1)
"""

from dither.density.distance import ks_distance
from dither.density.release import release
from dither.density.result import Density
from dither.public_module import name_by_home as _name_by_home

__all__ = ["Density", "ks_distance", "release"]

__dir__ = _name_by_home(__name__, __all__, globals())
