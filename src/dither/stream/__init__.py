"""Releases over time: one charge for a whole horizon, noise that is correlated between steps, errors that stay small.

* :mod:`~dither.stream.running`: running sums, windows, means and histograms; :mod:`~dither.stream.alarm`: thresholds;
* :mod:`~dither.stream.mechanism`: the plan of a series with statement and proof, and its noise step by step;
* :mod:`~dither.stream.filters`: filters in whole numbers and the proof of their sensitivity; bands and the tree;
* :mod:`~dither.stream.buffers`: buffered filters, their optimization, and how near they are to the best factorization;
* :mod:`~dither.stream.keyed`: noise as a function of a secret key, the same after a restart;
* :mod:`~dither.stream.series`: series on tables; :mod:`~dither.stream.participants`: who counts how often, with the
  proof; the state is kept by :mod:`dither.ledger.series`.

>>> import dither as dp
>>> s = dp.stream.RunningSum(horizon=365, epsilon=1, delta=1e-9)
>>> abs(s.release(5000) - 5000) < 200
True
"""

import typing as _typing

from dither.public_module import name_by_home as _name_by_home
from dither.stream.alarm import ThresholdAlarm
from dither.stream.buffers import Optimum, optimum
from dither.stream.mechanism import StreamPlan
from dither.stream.running import Histogram, RunningMean, RunningSum, SlidingWindow

if _typing.TYPE_CHECKING:
    from dither.stream.series import Series, TimeSeriesBuilder
    from dither.stream.series_answer import SeriesAnswer, SeriesExplanation

__all__ = [
    "Histogram",
    "Optimum",
    "RunningMean",
    "RunningSum",
    "Series",
    "SeriesAnswer",
    "SeriesExplanation",
    "SlidingWindow",
    "StreamPlan",
    "ThresholdAlarm",
    "TimeSeriesBuilder",
    "optimum",
]

__dir__ = _name_by_home(__name__, __all__, globals())

_LATER = {
    "TimeSeriesBuilder": "series",
    "Series": "series",
    "SeriesAnswer": "series_answer",
    "SeriesExplanation": "series_answer",
}
"""The modules of names that are imported when they are first used, since tables take a while to import."""


def __getattr__(name: str) -> _typing.Any:
    """Import the names about tables when they are first used, since :mod:`dither.tables` takes a while to import."""
    if name not in _LATER:
        raise AttributeError(f"module 'dither.stream' has no attribute {name!r}", name=name)
    import importlib

    return getattr(importlib.import_module(f"dither.stream.{_LATER[name]}"), name)
