"""dither: differential privacy with exact noise. ``import dither as dp``.

>>> import dither as dp
>>> m = dp.Laplace(sensitivity=1, epsilon=0.5)
>>> m.guarantee
PureDP(0.5)
>>> isinstance(m.release(42), int)
True
"""

from dither import density, sensitivity, stats
from dither.errors import DitherError, InvalidArgument, InvalidData, NotPrivate, WrongType
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP, parallel
from dither.mechanisms import (
    BoundedLaplace,
    Exponential,
    Gaussian,
    Laplace,
    MixedNoise,
    NoisyMax,
    PermuteAndFlip,
    ProposeTestRelease,
    RandomizedResponse,
    ReusableHoldout,
    SampleAndAggregate,
    SmoothNoise,
    SparseVector,
    Staircase,
    TopK,
)
from dither.neighbors import AddRemove, Neighbors, ReplaceOne

__version__ = "0.1.0"

__all__ = [
    "ZCDP",
    "AddRemove",
    "ApproxDP",
    "BoundedLaplace",
    "DitherError",
    "Exponential",
    "Gaussian",
    "Guarantee",
    "InvalidArgument",
    "InvalidData",
    "Laplace",
    "MixedNoise",
    "Neighbors",
    "NoisyMax",
    "NotPrivate",
    "PermuteAndFlip",
    "ProposeTestRelease",
    "PureDP",
    "RandomizedResponse",
    "ReplaceOne",
    "ReusableHoldout",
    "SampleAndAggregate",
    "SmoothNoise",
    "SparseVector",
    "Staircase",
    "TopK",
    "WrongType",
    "__version__",
    "density",
    "parallel",
    "sensitivity",
    "stats",
]
