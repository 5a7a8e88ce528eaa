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
    DataIncident,
    DatasetClosed,
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
    from dither import audit, learn, ledger, report
    from dither.tables.builder.steps import col, count, histogram, mean, median, mode, people, quantile, std, var
    from dither.tables.builder.steps import max_ as max  # noqa: F401
    from dither.tables.builder.steps import min_ as min  # noqa: F401
    from dither.tables.builder.steps import sum_ as sum  # noqa: F401
    from dither.tables.table import open  # noqa: F401

__version__ = "0.1.0"

__all__ = [  # open, sum, min and max are there too, but a star should not hide Python's own
    "ZCDP",
    "AddRemove",
    "ApproxDP",
    "BoundedLaplace",
    "BudgetExceeded",
    "DataIncident",
    "DatasetClosed",
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
    "audit",
    "col",
    "count",
    "density",
    "histogram",
    "learn",
    "ledger",
    "mean",
    "median",
    "mode",
    "parallel",
    "people",
    "quantile",
    "report",
    "sensitivity",
    "sequential",
    "stats",
    "std",
    "var",
]


_LATER = {
    "audit": ("dither.audit", None),
    "learn": ("dither.learn", None),
    "ledger": ("dither.ledger", None),
    "report": ("dither.report", None),
    "open": ("dither.tables.table", "open"),
    "col": ("dither.tables.builder.steps", "col"),
    **{name: ("dither.tables.builder.steps", name) for name in ("count", "people", "mean", "var", "std", "median")},
    **{name: ("dither.tables.builder.steps", name) for name in ("quantile", "mode", "histogram")},
    **{name: ("dither.tables.builder.steps", f"{name}_") for name in ("sum", "min", "max")},
}


def __getattr__(name: str) -> _typing.Any:
    """Ledger and tables are loaded when first asked for: their databases take a while."""
    if name not in _LATER:
        raise AttributeError(f"module 'dither' has no attribute {name!r}")
    import importlib

    module, attribute = _LATER[name]
    result = importlib.import_module(module)
    return result if attribute is None else getattr(result, attribute)
