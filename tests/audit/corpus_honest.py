"""Functions that do not leak: what they show, print, log and store comes from a release.

:func:`mended` turns every leaky function into an honest one: it gets as many records as a noisy count says.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import logging
import os
import pathlib
import tempfile
import threading
import time
import uuid
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import dither as dp

from .corpus_leaky import LEAKY, NOISE, figure, noisy

COUNT = dp.Laplace(1, 0.5)
CALLS: list[object] = []
CACHE: dict[int, float] = {}
NOT_PRIVATE = ("seeded", "two of one seed")
BEYOND = ("beyond the sensitivity",)


def mended(leaky):
    """The same function of records that a noisy count stands for."""

    def honest(x):
        return leaky([0.0] * (1 + abs(COUNT.release(len(x))) % 9))

    return honest


def counted(x):
    CALLS.append(None)
    return noisy(x)


def remembered(x):
    CACHE[0] = noisy(x)
    return CACHE[0]


@functools.lru_cache
def constant():
    return np.arange(4.0)


def counter():
    calls = 0

    def run(x):
        nonlocal calls
        calls += 1
        return noisy(x)

    return run


class Study:
    def __init__(self):
        self.results = []

    def __call__(self, x):
        self.results.append(noisy(x))
        return self.results[-1]


def warned(x):
    warnings.warn("experimental", stacklevel=2)
    return noisy(x)


def printed(x):
    print(noisy(x))


def logged(x):
    logging.getLogger("study").info("result %s", noisy(x))


def written(x):
    path = pathlib.Path(tempfile.gettempdir(), "dither-corpus-honest.txt")
    path.write_text(f"{noisy(x)}")
    return path


def scratch(x):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "rows.txt").write_text(f"{len(x)}")  # removed before the end
    return noisy(x)


def environment(x):
    os.environ["STUDY"] = "visits"
    return noisy(x)


def refused(x):
    raise ValueError("not enough budget")


def joined(x):
    worker = threading.Thread(target=len, args=(x,))
    worker.start()
    worker.join()
    return noisy(x)


def frame(x):
    return pd.DataFrame({"town": ["a", "b"], "n": NOISE.release([float(len(x)), 0.0])})


def answer(x):
    data = pd.DataFrame({"who": range(len(x)), "amount": x})
    with dp.open(data, unit="who", bounds={"amount": (0, 10)}, budget=dp.PureDP(3)) as table:
        return table.sql("SELECT COUNT(*) n, SUM(amount) s FROM data").release(epsilon=1)


HONEST = {
    "a number": noisy,
    "a text": lambda x: f"{noisy(x):.3f}",
    "rounded": lambda x: round(noisy(x)),
    "a list": lambda x: [noisy(x), noisy(x)],
    "a dict": lambda x: {"n": noisy(x)},
    "an array": lambda x: NOISE.release(np.full(3, float(len(x)) / 3)),
    "a slice of noise": lambda x: NOISE.release(np.full(3, float(len(x)) / 3))[:1],
    "a view of a constant": lambda x: constant()[:2] + noisy(x),
    "a frame": frame,
    "a part of a frame": lambda x: frame(x).head(1),
    "grouped": lambda x: frame(x).groupby("town").sum(),
    "polars": lambda x: pl.from_pandas(frame(x)),
    "lazy polars": lambda x: pl.from_pandas(frame(x)).lazy(),
    "arrow": lambda x: pa.Table.from_pandas(frame(x)),
    "arrow with nulls": lambda x: pa.array([noisy(x), None]),
    "dictionary": lambda x: pa.array(["a", f"{noisy(x)}"]).dictionary_encode(),
    "a figure": lambda x: figure([0] * abs(COUNT.release(len(x))), "label"),
    "a function": lambda x: functools.partial(max, noisy(x)),
    "a closure": lambda x: (lambda n: lambda: n)(noisy(x)),
    "a generator": lambda x: (noisy(x) for _ in range(2)),
    "an iterator": lambda x: iter([noisy(x)]),
    "endless": lambda x: itertools.count(round(noisy(x))),
    "nothing": lambda _: None,
    "the mean": lambda x: dp.stats.mean(x, bounds=(0, 10), epsilon=1, neighbors=dp.AddRemove),
    "the median": lambda x: dp.stats.median(x, bounds=(0, 10), epsilon=1, neighbors=dp.AddRemove),
    "a histogram": lambda x: dp.stats.histogram(x, bounds=(0, 10), epsilon=1, neighbors=dp.AddRemove),
    "a table": answer,
    "a counter of calls": counter(),
    "a list of calls": counted,
    "a cache": remembered,
    "a study": Study(),
    "a method": Study().__call__,
    "a warning": warned,
    "an error": refused,
    "printed": printed,
    "logged": logged,
    "written": written,
    "scratch": scratch,
    "environment": environment,
    "a thread": joined,
    "a lock": lambda x: (threading.Lock(), noisy(x)),
    "a date": lambda x: (datetime.date(2020, 1, 1), noisy(x)),
    "the time": lambda x: (time.time_ns(), noisy(x)),
    "an identifier": lambda x: {"id": uuid.uuid4().hex, "n": noisy(x)},
    "a branch on noise": lambda x: "many" if noisy(x) > 3 else None,
    **{f"{name}, mended": mended(leaky) for name, leaky in LEAKY.items() if name not in (*NOT_PRIVATE, *BEYOND)},
}
