"""One mechanism, one file. Each states its guarantee, its error and the reason it holds.

>>> from dither.mechanisms import Laplace
>>> Laplace(sensitivity=1, epsilon=1).guarantee
PureDP(1)
"""

from dither.mechanisms.bounded import BoundedLaplace
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.laplace import Laplace
from dither.mechanisms.mixed import MixedNoise
from dither.mechanisms.randomized_response import Frequencies, RandomizedResponse
from dither.mechanisms.staircase import Staircase

__all__ = ["BoundedLaplace", "Frequencies", "Gaussian", "Laplace", "MixedNoise", "RandomizedResponse", "Staircase"]
