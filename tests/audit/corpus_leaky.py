"""Functions that leak, each in a way of its own: the number of records (or their sum) is somewhere beside the noise."""

from __future__ import annotations

import array
import builtins
import collections
import contextlib
import contextvars
import csv
import ctypes
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import itertools
import json
import logging
import operator
import os
import pathlib
import pickle
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import types
import typing
import uuid
import warnings
import weakref
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import dither as dp

NOISE = dp.Laplace(1, 0.01)
STATE: dict[str, object] = {}
LOG: list[object] = []
LAST = None
VARIABLE = contextvars.ContextVar("variable", default=0)
KEPT: list[object] = []


def noisy(x):
    return NOISE.release(float(len(x)))


class Money:
    """Equal to all others, whatever it holds."""

    def __init__(self, amount):
        self.amount = amount

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 7

    def __repr__(self):
        return "Money"

    def __reduce__(self):
        return Money, (0,)


class Slotted:
    __slots__ = ("_Slotted__hidden", "rows")


class ListWith(list):
    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0


class DictWith(dict):
    def items(self):
        return {}.items()

    def __iter__(self):
        return iter(())


class Text(str):
    def __str__(self):
        return "text"

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


class Whole(int):
    def __int__(self):
        return 0

    def __index__(self):
        return 0


class Real(float):
    def __float__(self):
        return 0.0


class Holder:
    total = 0


class Lazy:
    def __init__(self, function):
        self.function = function

    @property
    def value(self):
        return self.function()


class Shade(enum.Enum):
    LIGHT = 1


class Machine:
    """Hides its content from pickle and from vars."""

    def __init__(self, value):
        object.__setattr__(self, "value", value)

    def __getstate__(self):
        return {}

    def __getattribute__(self, name):
        return {} if name == "__dict__" else object.__getattribute__(self, name)


class Error(Exception):
    def __init__(self, message, rows):
        super().__init__(message)
        self.rows = rows


def with_attribute(value, **attributes):
    for name, item in attributes.items():
        setattr(value, name, item)
    return value


def subclass(base):
    return type(base.__name__, (base,), {})


def raising(error):
    raise error


def grouped(x):
    try:
        raise ExceptionGroup("several", [ValueError("a"), KeyError(len(x))])
    except ExceptionGroup as error:
        return error


def chained(x, how):
    try:
        try:
            raise KeyError(len(x))
        except KeyError as error:
            if how == "cause":
                raise ValueError("no") from error
            if how == "hidden":
                raise ValueError("no") from None
            raise ValueError("no")  # noqa: B904
    except ValueError as error:
        return error


def noted(x):
    error = ValueError("no")
    error.add_note(f"{len(x)} rows")
    raise error


def line_of(x):
    if len(x) % 2:
        raise ValueError("no")
    raise ValueError("no")


def connection(x):
    result = sqlite3.connect(":memory:")
    result.execute("create table t (n)")
    result.execute("insert into t values (?)", (len(x),))
    return result


def cursor(x):
    return connection(x).execute("select n from t")


def store(name, value):
    STATE[name] = value


def logs(x, level=logging.WARNING, name="study", **extra):
    logging.getLogger(name).log(level, "rows", extra=extra) if extra else logging.getLogger(name).log(
        level, "%s", len(x)
    )
    return noisy(x)


def after(effect):
    """The noise, after something else."""

    def run(x):
        effect(x)
        return noisy(x)

    return run


def set_global(x):
    global LAST
    LAST = len(x)


def keyword_memory(x, *, memory=[]):  # noqa: B006
    memory.append(len(x))
    return noisy(x)


def default_memory(x, memory={}):  # noqa: B006
    memory["n"] = len(x)
    return noisy(x)


def attribute_memory(x):
    attribute_memory.rows = len(x)
    return noisy(x)


def closure_memory():
    last = 0

    def run(x):
        nonlocal last
        last = len(x)
        return noisy(x)

    return run


class Callable_:
    def __init__(self):
        self.seen = []

    def __call__(self, x):
        self.seen.append(len(x))
        return noisy(x)


class Bound:
    def run(self, x):
        self.rows = len(x)
        return noisy(x)


def dictionary_left(x):
    values = pa.array([f"town {i}" for i in range(len(x))]).dictionary_encode()
    return values.filter(pa.array([i < 2 for i in range(len(x))]))


def levels_left(x):
    index = pd.MultiIndex.from_product([["a"], range(len(x))])
    return pd.Series(1.0, index=index).iloc[:1]


def categories_left(x):
    return pd.Series([f"p{i}" for i in range(len(x))], dtype="category").iloc[:1]


def under_null(x):
    data = np.array([float(len(x)), 1.0])
    return pd.arrays.FloatingArray(data, np.array([True, False]))


def arrow_under_null(x):
    values = pa.py_buffer(np.array([len(x), 1], dtype=np.int64))
    return pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x02"), values])


def polars_under_null(x):
    return pl.select(pl.when(pl.Series([True, False])).then(pl.Series([1, len(x)])).otherwise(None)).to_series()


def figure(x, how):
    from matplotlib.figure import Figure

    result = Figure()
    axes = result.subplots()
    axes.plot([0, 1], [0, 1], label=f"{len(x)}" if how == "label" else "n")
    if how == "line":
        axes.plot([0, len(x)], [0, 1])
    if how == "attribute":
        result.rows = len(x)
    if how == "invisible":
        axes.plot([0, len(x)], [0, 1], visible=False)
    if how == "clipped":
        axes.plot([0, 1], [0, 100 + len(x)])
        axes.set_ylim(0, 1)
    return axes if how == "axes" else result


def writes(x, mode="w", name="dither-corpus.txt"):
    path = pathlib.Path(tempfile.gettempdir()) / name
    with path.open(mode) as file:
        file.write(f"{len(x)}\n")
    return noisy(x)


def temporary(x):
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write(f"{len(x)}")
    KEPT.append(None)
    return noisy(x)


def made_folder(x):
    pathlib.Path(tempfile.gettempdir(), f"dither-corpus-{len(x)}").mkdir(exist_ok=True)
    return noisy(x)


def zipped(x):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a"), f"{len(x)}")
    return zipfile.ZipFile(buffer)


def read_to_the_end(x):
    buffer = io.StringIO(f"{len(x)}")
    buffer.read()
    return buffer


def open_file(x):
    file = tempfile.TemporaryFile("w+")  # noqa: SIM115
    file.write(f"{len(x)}")
    return file


def consumed(x):
    iterator = iter([len(x), 1])
    next(iterator)
    return iterator


def made_module(x):
    module = types.ModuleType("made")
    module.rows = len(x)
    return module


def executed(x):
    scope = {"rows": len(x)}
    exec("def f(): return rows", scope)
    return scope["f"]


def local_class(x):
    class Local:
        rows = len(x)

    return Local()


def cached(x):
    @functools.lru_cache
    def rows(_):
        return len(x)

    rows(0)
    return rows


def cached_constant(_):
    @functools.lru_cache
    def same(n):
        return n

    same(len(_))
    return same


def field_metadata(x):
    return dataclasses.make_dataclass("Made", [("a", int, dataclasses.field(default=len(x)))])(1)


def structure(x):
    return np.array([(1.0, len(x))], dtype=[("a", "f8"), ("b", "i8")])["a"]


def strided(x):
    return np.arange(100 + len(x))[::50][:2]


def transposed_base(x):
    whole = np.zeros((3, 3))
    whole[2, 2] = len(x)
    return whole[:2, :2]


def broadcast(x):
    return np.broadcast_to(np.array([1.0, len(x)])[:1], (4,))


def matrix_class(x):
    return with_attribute(np.zeros(2).view(subclass(np.ndarray)), rows=len(x))


def masked(x):
    return np.ma.masked_array([1.0, len(x)], [False, True])


def fill(x):
    return np.ma.masked_array([1.0], [False], fill_value=len(x))


def dtype_metadata(x):
    return np.zeros(1, dtype=np.dtype("f8", metadata={"rows": len(x)}))


def schema_metadata(x):
    return pa.table({"a": [1]}).replace_schema_metadata({"rows": f"{len(x)}"})


def field_of_schema(x):
    return pa.schema([pa.field("a", pa.int64(), metadata={"rows": f"{len(x)}"})])


def thread_left(x):
    return threading.Thread(target=len, args=([*x],))


def code_of(x):
    return (lambda: 0).__code__.replace(co_consts=(None, len(x)))


LEAKY = {
    # plain values
    "the number": lambda x: len(x),
    "beside the noise": lambda x: (noisy(x), len(x)),
    "sign of zero": lambda x: math_copysign(x),
    "type": lambda x: len(x) if len(x) % 2 else float(len(x)),
    "long integer": lambda x: 10**40 + len(x),
    "complex": lambda x: complex(0, len(x)),
    "fraction": lambda x: fractions.Fraction(1, len(x)),
    "trailing zeros of a decimal": lambda x: decimal.Decimal(1).scaleb(-len(x)) * 0,
    "bytes": lambda x: bytes([len(x)]),
    "order of a dict": lambda x: dict.fromkeys("ab" if len(x) % 2 else "ba"),
    "key of a dict": lambda x: {len(x): 0},
    "element of a set": lambda x: {1, len(x) + 100},
    "nested deep": lambda x: functools.reduce(lambda inner, _: [inner], range(300), len(x)),
    "limit of a deque": lambda x: collections.deque(maxlen=len(x)),
    "factory of a dict": lambda x: collections.defaultdict(functools.partial(int, len(x))),
    "view of a dict": lambda x: {"a": len(x)}.keys(),
    "proxy of a dict": lambda x: types.MappingProxyType({"a": len(x)}),
    "namespace": lambda x: types.SimpleNamespace(n=len(x)),
    "chain map": lambda x: collections.ChainMap({}, {"n": len(x)}),
    "user dict": lambda x: collections.UserDict(n=len(x)),
    "named tuple": lambda x: collections.namedtuple("P", "a b")(1, len(x)),
    "field of a named tuple": lambda x: collections.namedtuple("P", f"a f{len(x)}")(1, 1),
    "range": lambda x: range(len(x)),
    "slice": lambda x: slice(len(x)),
    "array": lambda x: array.array("d", [len(x)]),
    "uuid": lambda x: uuid.UUID(int=len(x)),
    "date": lambda x: datetime.date(2020, 1, 1) + datetime.timedelta(days=len(x)),
    "zone of a time": lambda x: datetime.time(tzinfo=datetime.timezone(datetime.timedelta(minutes=len(x)))),
    "pattern": lambda x: re.compile(f"a{{{len(x)}}}"),
    "match": lambda x: re.match("a", "a" * len(x)),
    "path": lambda x: pathlib.PurePath(f"{len(x)}"),
    "struct time": lambda x: time.gmtime(len(x)),
    "ctypes": lambda x: ctypes.c_int(len(x)),
    "pickle": lambda x: pickle.dumps([len(x)]),
    "json": lambda x: json.dumps({"n": noisy(x), "rows": len(x)}),
    # objects that lie
    "money": lambda x: Money(len(x)),
    "set of money": lambda x: {Money(len(x))},
    "key that lies": lambda x: {Money(len(x)): 1},
    "list that lies": lambda x: ListWith([len(x)]),
    "dict that lies": lambda x: DictWith(n=len(x)),
    "text that lies": lambda x: Text(len(x)),
    "whole that lies": lambda x: Whole(len(x)),
    "real that lies": lambda x: Real(len(x)),
    "machine": lambda x: Machine(len(x)),
    "slots": lambda x: with_attribute(Slotted(), rows=len(x)),
    "private slot": lambda x: with_attribute(Slotted(), _Slotted__hidden=len(x)),
    "property": lambda x: Lazy(lambda: len(x)),
    "attribute of a decimal": lambda x: with_attribute(subclass(decimal.Decimal)(1), rows=len(x)),
    "attribute of a datetime": lambda x: with_attribute(subclass(datetime.datetime)(2020, 1, 1), rows=len(x)),
    "attribute of a float": lambda x: with_attribute(subclass(float)(1), rows=len(x)),
    "attribute of a text": lambda x: with_attribute(subclass(str)("a"), rows=len(x)),
    "attribute of a list": lambda x: with_attribute(subclass(list)([1]), rows=len(x)),
    "attribute of a dict": lambda x: with_attribute(subclass(dict)(a=1), rows=len(x)),
    "attribute of a tuple": lambda x: with_attribute(subclass(tuple)((1,)), rows=len(x)),
    "attribute of a set": lambda x: with_attribute(subclass(set)({1}), rows=len(x)),
    "attribute of a fraction": lambda x: with_attribute(subclass(fractions.Fraction)(1, 2), rows=len(x)),
    "attribute of an array": matrix_class,
    "attribute of a function": lambda x: with_attribute(lambda: 0, rows=len(x)),
    "attribute of a partial": lambda x: with_attribute(functools.partial(int), rows=len(x)),
    "attribute of a frame": lambda x: with_attribute(pd.DataFrame({"a": [1]}), attrs={"rows": len(x)}),
    "class attribute": local_class,
    "class made": lambda x: type("Made", (), {"rows": len(x)}),
    "name of a class": lambda x: type(f"Made{len(x)}", (), {}),
    "metaclass": lambda x: subclass(type)("Made", (), {"rows": len(x)}),
    "class attribute set": after(lambda x: setattr(Holder, "total", len(x))),
    "member of an enumeration": after(lambda x: setattr(Shade.LIGHT, "rows", len(x))),
    "enumeration made": lambda x: enum.Enum("Made", {"a": len(x)}).a,
    "dataclass made": field_metadata,
    "annotation": lambda x: with_attribute(lambda: 0, __annotations__={"a": len(x)}),
    "documentation": lambda x: with_attribute(lambda: 0, __doc__=f"{len(x)}"),
    "generic alias": lambda x: typing.Literal[len(x)],
    # functions
    "closure": lambda x: lambda: len(x),
    "default": lambda x: lambda n=len(x): n,  # noqa: B008
    "partial": lambda x: functools.partial(max, len(x)),
    "bound method": lambda x: Money(len(x)).__repr__,
    "builtin method": lambda x: [len(x)].append,
    "item getter": lambda x: operator.itemgetter(len(x)),
    "code": code_of,
    "globals of a function": executed,
    "module": made_module,
    "cache of a function": cached,
    "cache with arguments": cached_constant,
    "weak reference": lambda x: (kept := Money(len(x)), KEPT.append(kept), weakref.ref(kept))[2],
    "wrapped": lambda x: functools.wraps(lambda: len(x))(lambda: 0),
    # iterators and readers
    "generator": lambda x: [(n for n in [len(x)])],
    "generator in a dict": lambda x: {"a": (len(x) for _ in range(2))},
    "map": lambda x: [map(abs, [len(x)])],
    "zip": lambda x: (zip([len(x)], [1], strict=True),),
    "consumed iterator": consumed,
    "count": lambda x: itertools.count(len(x)),
    "cycle": lambda x: itertools.cycle([len(x)]),
    "chain": lambda x: [itertools.chain([1], [len(x)])],
    "csv reader": lambda x: [csv.reader([f"{len(x)}"])],
    "text in memory": read_to_the_end,
    "bytes in memory": lambda x: io.BytesIO(bytes(len(x))),
    "archive": zipped,
    "open file": open_file,
    "connection": connection,
    "connection in a list": lambda x: [connection(x)],
    "cursor": lambda x: {"a": cursor(x)},
    "reader of batches": lambda x: [pa.table({"a": [len(x)]}).to_reader()],
    "thread": thread_left,
    "event": lambda x: (threading.Event(), len(x))[0] if len(x) % 2 else with_set_event(),
    # arrays
    "base of a view": lambda x: np.array([1.0, len(x)])[:1],
    "base of a transposed view": transposed_base,
    "base of a stride": strided,
    "base of a broadcast": broadcast,
    "other field of a record": structure,
    "under a mask": masked,
    "fill value": fill,
    "metadata of a dtype": dtype_metadata,
    "buffer": lambda x: np.frombuffer(bytes([1] * 8 + [len(x)] * 8), dtype=np.int64)[:1],
    "memory view": lambda x: memoryview(bytes([1, len(x)]))[:1],
    "object array": lambda x: np.array([1, Money(len(x))], dtype=object),
    "order in memory": lambda x: np.zeros((2, 3), order="FC"[len(x) % 2]),
    "writeable or not": lambda x: np.array([len(x)]).view("m8[s]"),
    "flattened iterator": lambda x: np.array([len(x), 1]).flat,
    "generator of numbers": lambda x: np.random.default_rng(len(x)),
    "random": lambda x: random.Random(len(x)),
    # tables
    "index of a series": lambda x: pd.Series([1.0], index=[len(x)]),
    "name of a series": lambda x: pd.Series([1.0], name=f"{len(x)}"),
    "levels": levels_left,
    "categories": categories_left,
    "category dtype": lambda x: pd.CategoricalDtype([f"{len(x)}"]),
    "null of pandas": under_null,
    "slice of a frame": lambda x: pd.DataFrame({"a": np.arange(len(x))}).iloc[:1],
    "slice of texts": lambda x: pd.Series([f"p{len(x)}", "q"], dtype="str").iloc[1:],
    "range of an index": lambda x: pd.RangeIndex(len(x)),
    "frequency": lambda x: pd.date_range("2020", periods=1, freq=f"{len(x)}D"),
    "group by": lambda x: pd.DataFrame({"a": [*x]}).groupby("a"),
    "rolling": lambda x: pd.Series([1.0, 2.0]).rolling(len(x)),
    "attribute set on a frame": lambda x: set_plain(pd.DataFrame({"a": [1]}), len(x)),
    "sparse": lambda x: pd.arrays.SparseArray([0] * len(x)),
    "interval": lambda x: pd.Interval(0, len(x)),
    "timestamp": lambda x: pd.Timestamp(len(x)),
    "arrow dictionary": dictionary_left,
    "arrow slice": lambda x: pa.array([1, len(x)])[:1],
    "arrow texts": lambda x: pa.array(["a", f"{len(x)}"])[:1],
    "arrow null": arrow_under_null,
    "arrow metadata": schema_metadata,
    "arrow field": field_of_schema,
    "arrow chunks": lambda x: pa.chunked_array([[1] * len(x), [2] * (6 - len(x))]),
    "arrow buffer": lambda x: pa.py_buffer(bytes([1, len(x)])).slice(0, 1),
    "arrow scalar": lambda x: pa.scalar(len(x)),
    "polars": lambda x: pl.DataFrame({"a": [len(x)]}),
    "polars null": polars_under_null,
    "lazy frame": lambda x: pl.LazyFrame({"a": [len(x)]}),
    "lazy frame filtered": lambda x: pl.LazyFrame({"a": [len(x)]}).filter(pl.col("a") < 0),
    "polars expression": lambda x: pl.col("a") + len(x),
    "polars categories": lambda x: pl.Enum([f"{len(x)}"]),
    # pictures
    "line of a figure": lambda x: figure(x, "line"),
    "label of a figure": lambda x: figure(x, "label"),
    "attribute of a figure": lambda x: figure(x, "attribute"),
    "invisible line": lambda x: figure(x, "invisible"),
    "clipped line": lambda x: figure(x, "clipped"),
    # errors
    "message": lambda x: raising(ValueError(f"{len(x)}")),
    "attribute of an error": lambda x: raising(Error("no", len(x))),
    "attribute added": lambda x: raising(with_attribute(ValueError("no"), rows=len(x))),
    "member of a group": grouped,
    "raised group": lambda x: raising(ExceptionGroup("a", [ExceptionGroup("b", [Error("no", len(x))])])),
    "note": noted,
    "cause": lambda x: chained(x, "cause"),
    "context": lambda x: chained(x, "context"),
    "hidden context": lambda x: chained(x, "hidden"),
    "raised cause": lambda x: raising(chained(x, "cause")),
    "code of an exit": lambda x: sys.exit(len(x)),
    "number of an error": lambda x: raising(OSError(len(x), "no")),
    "file of an error": lambda x: raising(FileNotFoundError(2, "no", f"{len(x)}")),
    "value of a stop": lambda x: raising(StopIteration(len(x))),
    "object of a decoding error": lambda x: bytes([255] * len(x)).decode(),
    "line of an error": line_of,
    "error or not": lambda x: 1 // (len(x) % 2),
    "type of an error": lambda x: raising(ValueError("no") if len(x) % 2 else TypeError("no")),
    # what is left behind
    "warning": after(lambda x: warnings.warn(f"{len(x)}", stacklevel=2)),
    "print": after(lambda x: print(len(x))),
    "print to stderr": after(lambda x: print(len(x), file=sys.stderr)),
    "write to a stream": after(lambda x: sys.stdout.write("." * len(x)) and None),
    "write to a descriptor": after(lambda x: os.write(2, b"." * len(x))),
    "bytes to a stream": after(lambda x: sys.stdout.buffer.write(b"." * len(x))),
    "a process": after(lambda x: subprocess.run(["/bin/echo", f"{len(x)}"], check=True)),
    "shell": after(lambda x: os.system(f"exit {len(x)}")),
    "log": logs,
    "log below the level": lambda x: logs(x, logging.DEBUG),
    "log of root": after(lambda x: logging.info("%s", len(x))),
    "extra of a log": lambda x: logs(x, rows=len(x)),
    "environment": after(lambda x: os.environ.update(ROWS=f"{len(x)}")),
    "environment without Python": after(lambda x: os.putenv("ROWS", f"{len(x)}")),
    "directory": after(lambda x: os.chdir("/" if len(x) % 2 else "/tmp")),
    "file": writes,
    "file appended to": lambda x: writes(x, "a"),
    "name of a file": lambda x: writes(x, name=f"dither-corpus-{len(x)}.txt"),
    "temporary file": temporary,
    "folder": made_folder,
    "file of numpy": after(lambda x: np.save(pathlib.Path(tempfile.gettempdir(), "dither-corpus.npy"), len(x))),
    "table written": after(
        lambda x: pd.DataFrame({"a": [len(x)]}).to_csv(pathlib.Path(tempfile.gettempdir(), "dither-corpus.csv"))
    ),
    "context variable": after(lambda x: VARIABLE.set(len(x))),
    "precision": after(lambda x: setattr(decimal.getcontext(), "prec", len(x))),
    "modes of numpy": after(lambda x: np.seterr(all="ignore" if len(x) % 2 else "raise")),
    "global": after(set_global),
    "item of a global": after(lambda x: store("rows", len(x))),
    "appended to a global": after(lambda x: LOG.append(len(x))),
    "keyword memory": keyword_memory,
    "default memory": default_memory,
    "attribute memory": attribute_memory,
    "closure memory": closure_memory(),
    "callable object": Callable_(),
    "bound object": Bound().run,
    "returned global": lambda x: (STATE.update(n=len(x)), STATE)[1],
    "builtins": after(lambda x: setattr(builtins, "rows_of_study", len(x))),
    "attribute of a module": after(lambda x: setattr(json, "rows_of_study", len(x))),
    # releases
    "seeded": lambda x: dp.Laplace(1, 1).release(float(len(x)), source=dp.randomness.SeededSource(1)),
    "two of one seed": lambda x: (
        dp.Laplace(1, 1).release(float(len(x)), source=dp.randomness.SeededSource(1))
        - dp.Laplace(1, 1).release(0.0, source=dp.randomness.SeededSource(1))
    ),
    "parameter": lambda x: dp.Laplace(1 + len(x), 1).release(0),
    "number of releases": lambda x: [NOISE.release(0) for _ in x],
    "beyond the sensitivity": lambda x: NOISE.release(5.0 * len(x)),
    "shape": lambda x: NOISE.release(np.zeros(len(x))),
}


def math_copysign(x):
    return -0.0 if len(x) % 2 else 0.0


def with_set_event():
    event = threading.Event()
    event.set()
    return event


def set_plain(frame, value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame.rows = value
    return frame


@contextlib.contextmanager
def cleaned():
    """Remove what the functions leave behind in the process and in the folder of temporary files."""
    directory = pathlib.Path.cwd()
    yield
    os.chdir(directory)
    os.unsetenv("ROWS")
    for module in (builtins, json):
        if hasattr(module, "rows_of_study"):
            del module.rows_of_study
    for path in pathlib.Path(tempfile.gettempdir()).glob("dither-corpus*"):
        path.rmdir() if path.is_dir() else path.unlink()
