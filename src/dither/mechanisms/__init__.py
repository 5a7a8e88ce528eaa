"""One mechanism, one file. Each states its guarantee, its error and the reason it holds.

>>> from dither.mechanisms import Laplace
>>> Laplace(sensitivity=1, epsilon=1).guarantee
PureDP(1)
"""

from dither.mechanisms.additive import Noise
from dither.mechanisms.bounded import BoundedLaplace
from dither.mechanisms.continuous import ContinuousExponential, mean_pieces, piecewise_constant
from dither.mechanisms.exponential import Exponential
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.holdout import HoldoutAnswer, ReusableHoldout
from dither.mechanisms.laplace import Laplace
from dither.mechanisms.mixed import MixedNoise
from dither.mechanisms.noisy_max import NoisyMax, PermuteAndFlip
from dither.mechanisms.propose_test_release import ProposeTestRelease
from dither.mechanisms.randomized_response import Frequencies, RandomizedResponse
from dither.mechanisms.sample_aggregate import SampleAndAggregate
from dither.mechanisms.smooth import SmoothNoise
from dither.mechanisms.sparse_vector import SparseVector, SparseVectorSession
from dither.mechanisms.staircase import Staircase
from dither.mechanisms.top_k import TopK
from dither.public_module import name_by_home as _name_by_home

__all__ = [
    "BoundedLaplace",
    "ContinuousExponential",
    "Exponential",
    "Frequencies",
    "Gaussian",
    "HoldoutAnswer",
    "Laplace",
    "MixedNoise",
    "Noise",
    "NoisyMax",
    "PermuteAndFlip",
    "ProposeTestRelease",
    "RandomizedResponse",
    "ReusableHoldout",
    "SampleAndAggregate",
    "SmoothNoise",
    "SparseVector",
    "SparseVectorSession",
    "Staircase",
    "TopK",
    "mean_pieces",
    "piecewise_constant",
]

_INTERNAL = {"ContinuousExponential", "Frequencies", "HoldoutAnswer", "Noise", "SparseVectorSession"}
_name_by_home("dither", [name for name in __all__ if name not in _INTERNAL], globals())
__dir__ = _name_by_home(__name__, __all__, globals())
