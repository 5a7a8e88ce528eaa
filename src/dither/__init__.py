"""dither: differential privacy with exact noise. ``import dither as dp``.

>>> import dither as dp
>>> m = dp.Laplace(sensitivity=1, epsilon=0.5)
>>> m.guarantee
PureDP(0.5)
>>> isinstance(m.release(42), int)
True
"""

import typing as _typing

from dither import accounting, density, sensitivity, stats
from dither.errors import (
    BudgetExceeded,
    DitherError,
    InvalidArgument,
    InvalidData,
    LedgerError,
    NotPrivate,
    WrongType,
)
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP, parallel, sequential
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

if _typing.TYPE_CHECKING:
    from dither import ledger

__version__ = "0.1.0"

__all__ = [
    "ZCDP",
    "AddRemove",
    "ApproxDP",
    "BoundedLaplace",
    "BudgetExceeded",
    "DitherError",
    "Exponential",
    "Gaussian",
    "Guarantee",
    "InvalidArgument",
    "InvalidData",
    "Laplace",
    "LedgerError",
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
    "accounting",
    "density",
    "ledger",
    "parallel",
    "sensitivity",
    "sequential",
    "stats",
]


def __getattr__(name: str) -> _typing.Any:
    """``dither.ledger`` is loaded when it is first asked for: its database library takes a while."""
    if name == "ledger":
        import importlib

        return importlib.import_module("dither.ledger")
    raise AttributeError(f"module 'dither' has no attribute {name!r}")
