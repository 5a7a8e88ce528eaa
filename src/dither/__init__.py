"""dither: differential privacy with exact noise. ``import dither as dp``.

>>> import dither as dp
>>> m = dp.Laplace(sensitivity=1, epsilon=0.5)
>>> m.guarantee
PureDP(0.5)
>>> isinstance(m.release(42), int)
True
"""

import typing as _typing

from dither.errors import (
    AccessDenied,
    BudgetExceeded,
    Cancelled,
    DataIncident,
    DatasetClosed,
    DitherError,
    InvalidArgument,
    InvalidData,
    LedgerError,
    MissingPackage,
    NotPrivate,
    ServerUnavailable,
    WrongType,
)
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP, parallel, sequential
from dither.neighbors import AddRemove, Neighbors, ReplaceOne
from dither.public_module import name_by_home as _name_by_home

if _typing.TYPE_CHECKING:
    from dither import (
        accounting,
        audit,
        course,
        density,
        learn,
        ledger,
        local,
        present,
        publish,
        sensitivity,
        stats,
        stream,
    )
    from dither.client.connecting import Connection, connect
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
    from dither.tables.answer import Answer
    from dither.tables.builder.expressions import (
        col,
        corr,
        count,
        count_distinct,
        covariance,
        histogram,
        mean,
        median,
        mode,
        people,
        quantile,
        regression_intercept,
        regression_r2,
        regression_slope,
        std,
        var,
    )
    from dither.tables.builder.expressions import max_ as _max
    from dither.tables.builder.expressions import min_ as _min
    from dither.tables.builder.expressions import sum_ as _sum
    from dither.tables.builder.steps import among
    from dither.tables.card.model import Card
    from dither.tables.card.profile import Profile
    from dither.tables.options import ReleaseOptions
    from dither.tables.planning.explain import Explanation
    from dither.tables.question import Question
    from dither.tables.table import Table
    from dither.tables.table import open as open  # as itself: exported, though __all__ leaves it out

    max, min, sum = _max, _min, _sum

__version__ = "0.1.0"

__all__ = [
    "ZCDP",
    "AccessDenied",
    "AddRemove",
    "Answer",
    "ApproxDP",
    "BoundedLaplace",
    "BudgetExceeded",
    "Cancelled",
    "Card",
    "Connection",
    "DataIncident",
    "DatasetClosed",
    "DitherError",
    "Explanation",
    "Exponential",
    "Gaussian",
    "Guarantee",
    "InvalidArgument",
    "InvalidData",
    "Laplace",
    "LedgerError",
    "MissingPackage",
    "MixedNoise",
    "Neighbors",
    "NoisyMax",
    "NotPrivate",
    "PermuteAndFlip",
    "Profile",
    "ProposeTestRelease",
    "PureDP",
    "Question",
    "RandomizedResponse",
    "ReleaseOptions",
    "ReplaceOne",
    "ReusableHoldout",
    "SampleAndAggregate",
    "ServerUnavailable",
    "SmoothNoise",
    "SparseVector",
    "Staircase",
    "Table",
    "TopK",
    "WrongType",
    "__version__",
    "accounting",
    "among",
    "audit",
    "col",
    "connect",
    "corr",
    "count",
    "count_distinct",
    "course",
    "covariance",
    "density",
    "histogram",
    "learn",
    "ledger",
    "local",
    "mean",
    "median",
    "mode",
    "parallel",
    "people",
    "present",
    "publish",
    "quantile",
    "regression_intercept",
    "regression_r2",
    "regression_slope",
    "sensitivity",
    "sequential",
    "stats",
    "std",
    "stream",
    "var",
]


_LATER = {
    **{
        name: (f"dither.{name}", None)
        for name in (
            *("accounting", "audit", "course", "density", "exact", "inference", "learn", "ledger", "local"),
            *("mechanisms", "present", "publish", "randomness", "sensitivity", "stats", "stream"),
        )
    },
    **{
        name: ("dither.mechanisms", name)
        for name in (
            *("BoundedLaplace", "Exponential", "Gaussian", "Laplace", "MixedNoise", "NoisyMax", "PermuteAndFlip"),
            *("ProposeTestRelease", "RandomizedResponse", "ReusableHoldout", "SampleAndAggregate", "SmoothNoise"),
            *("SparseVector", "Staircase", "TopK"),
        )
    },
    "Answer": ("dither.tables.answer", "Answer"),
    "Card": ("dither.tables.card.model", "Card"),
    "Connection": ("dither.client.connecting", "Connection"),
    "connect": ("dither.client.connecting", "connect"),
    "Explanation": ("dither.tables.planning.explain", "Explanation"),
    "Profile": ("dither.tables.card.profile", "Profile"),
    "Question": ("dither.tables.question", "Question"),
    "ReleaseOptions": ("dither.tables.options", "ReleaseOptions"),
    "Table": ("dither.tables.table", "Table"),
    "open": ("dither.tables.table", "open"),
    "among": ("dither.tables.builder.steps", "among"),
    "col": ("dither.tables.builder.expressions", "col"),
    **{
        name: ("dither.tables.builder.expressions", name)
        for name in (
            "count",
            "people",
            "mean",
            "var",
            "std",
            "median",
            "quantile",
            "mode",
            "histogram",
            "count_distinct",
            "corr",
            "covariance",
            "regression_intercept",
            "regression_r2",
            "regression_slope",
        )
    },
    **{name: ("dither.tables.builder.expressions", f"{name}_") for name in ("sum", "min", "max")},
}
"""Names that are loaded on first use: NumPy, databases and estimators take a while to import."""

_SHADOWING = ("max", "min", "open", "sum")
"""Public names that are not in ``__all__``: ``from dither import *`` should not hide Python's own."""

_MEANT = {
    **dict.fromkeys(["avg", "average"], "mean"), **dict.fromkeys(["size", "len"], "count"),
    **dict.fromkeys(["stddev", "stdev"], "std"),
    **dict.fromkeys(["nunique", "count_distinct"], "people() to count people, COUNT(DISTINCT x) in SQL for values"),
    **dict.fromkeys(["read_csv", "read_parquet", "from_pandas", "load", "Session"], "open"),
    **dict.fromkeys(["variance"], "var"), **dict.fromkeys(["percentile"], "quantile"), "hist": "histogram",
}  # fmt: skip
"""Names that people try, and what they are called here."""

_name_by_home(__name__, __all__, globals())


def __getattr__(name: str) -> _typing.Any:
    """Import a public name when it is first used; name the right one for common mistakes."""
    if name not in _LATER:
        instead = f"; write dither.{_MEANT[name]}" if name in _MEANT else ""
        raise AttributeError(f"module 'dither' has no attribute {name!r}{instead}", name=name)
    import importlib

    module, attribute = _LATER[name]
    loaded = importlib.import_module(module)
    return loaded if attribute is None else getattr(loaded, attribute)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*__all__, *_SHADOWING})
