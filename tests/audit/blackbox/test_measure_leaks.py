"""Every kind of output is caught leaking, and is not accused when the leak is mended."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dither as dp
from dither.audit.blackbox.measure import measure
from dither.tables.answer import Answer

pytestmark = pytest.mark.slow

SURE = 1 - 1e-10
rng = np.random.default_rng()


def noisy(x: float) -> float:
    """A hundredth: no histogram of a few thousand runs sees it."""
    return dp.Laplace(1, 0.01).release(float(x))


def count(x: float) -> int:
    return dp.Laplace(1, 0.01).release(int(x))


def keyed():
    return dict(enumerate(dp.Laplace(1, 0.01).release(np.zeros(200)).tolist()))


def even(size, x):
    counts = dp.Laplace(1, 0.01).release(np.zeros(size, dtype=int)).tolist()
    return [*counts[:-1], counts[-1] + (sum(counts) + x) % 2]


def with_bit(position, x):
    """A float all of whose bits are random but one."""
    word = rng.integers(2**52, size=1) | 1023 << 52
    return float((word & ~(1 << position) | int(x) << position).view(np.float64)[0])


def failing(x, text="no"):
    if x:
        raise ValueError(text)
    raise KeyError(text)


def saying(text):
    raise ValueError(text)


def frame(rows, library):
    if library == "pandas":
        import pandas

        return pandas.DataFrame(rows)
    if library == "polars":
        import polars

        return polars.DataFrame(rows, strict=False)
    if library == "arrow":
        import pyarrow

        return pyarrow.Table.from_pylist(rows)
    if library == "answer":
        columns = tuple(rows[0])
        kinds = tuple("text" if isinstance(v, str) else "integer" for v in rows[0].values())
        return Answer(columns, kinds, tuple(tuple(row.values()) for row in rows), {}, dp.PureDP(0.01))
    return rows


def grouped(x, library, keys):
    return frame([{"city": key, "n": count(x)} for key in keys], library)


LEAKS = {
    "the number itself": (lambda x: 5 + x, lambda x: 5 + noisy(x)),
    "NaN": (lambda x: math.nan if x else noisy(x), noisy),
    "None": (lambda x: None if x else noisy(x), noisy),
    "infinity": (lambda x: math.inf if x else noisy(x), noisy),
    "minus zero": (lambda x: -0.0 if x else 0.0, lambda _: 0.0),
    "whole number or float": (lambda x: count(x) if x else noisy(x), noisy),
    "fraction under whole noise": (lambda x: 0.25 * x + count(x), lambda x: 0.25 + count(x)),
    "parity": (lambda x: 2 * count(0) + x, lambda x: 2 * count(x)),
    "low bit of a huge integer": (lambda x: 2 ** (70 + x), lambda x: 2**70 + count(x)),
    "bool": (bool, lambda x: dp.RandomizedResponse(epsilon=0.01).release(bool(x))),
    "label": (lambda x: "ab"[x], lambda x: "ab"[dp.RandomizedResponse(epsilon=0.01).release(x)]),
    "bytes": (lambda x: bytes([x]), lambda _: b""),
    "tuple": (lambda x: ("a", x), lambda x: ("a", count(x))),
    "error": (failing, lambda _: failing(1)),
    "error or answer": (lambda x: failing(1) if x else noisy(x), noisy),
    "words of an error": (lambda x: saying(f"{x} records"), lambda _: saying("some records")),
    "length": (lambda x: [noisy(x)] * (2 + x), lambda x: [noisy(x)] * 2),
    "coordinate": (lambda x: np.array([noisy(x), 3.0 + x, noisy(x)]), lambda x: np.array([noisy(x), 3.0, noisy(x)])),
    "one of many coordinates": (
        lambda x: dp.Laplace(1, 0.01).release(np.zeros(300)) * (np.arange(300) != 170 + x),
        lambda _: dp.Laplace(1, 0.01).release(np.zeros(300)) * (np.arange(300) != 170),
    ),
    "a far coordinate": (
        lambda x: np.where(np.arange(70_001) == 70_000, x, 0.0),
        lambda _: np.zeros(70_001),
    ),
    "parity of many keys": (
        lambda x: dict(enumerate(even(30, x))),
        lambda x: dict(enumerate(even(30, count(x)))),
    ),
    "bytes among others": (
        lambda x: bytes([*rng.integers(0, 256, 300).tolist(), x, *rng.integers(0, 256, 300).tolist()]),
        lambda _: bytes(rng.integers(0, 256, 601).tolist()),
    ),
    "a bit among random ones": (lambda x: with_bit(21, x), lambda _: with_bit(21, rng.integers(2))),
    "unsigned integer": (
        lambda x: np.array([2**63 + 16 * abs(count(0)) + x], dtype="u8"),
        lambda _: np.array([2**63 + 16 * abs(count(0))], dtype="u8"),
    ),
    "mask of an array": (
        lambda x: np.ma.masked_array([1, 2], [False, bool(x)]),
        lambda _: np.ma.masked_array([1, 2], [False, True]),
    ),
    "number or vector": (lambda x: np.zeros(2) if x else 0.0, lambda _: np.zeros(2)),
    "place of the largest": (
        lambda x: rng.permutation(50) + 100 * (np.arange(50) == 20 + x),
        lambda _: rng.permutation(50),
    ),
    "key of a dict": (lambda x: {"a": count(x), **({"b": count(x)} if x else {})}, lambda x: {"a": count(x)}),
    "one of many keys": (
        lambda x: {**keyed(), 170: 4.0 + x},
        lambda _: {**keyed(), 170: 4.0},
    ),
    "order of a dict": (lambda x: dict.fromkeys("ab" if x else "ba", 1), lambda _: dict.fromkeys("ab", 1)),
    "value in a dict": (lambda x: {"a": {"n": [1, x]}}, lambda x: {"a": {"n": [1, count(x)]}}),
    "element of a set": (lambda x: {"a", "b"} if x else {"a", "c"}, lambda _: {"a", "b"}),
    "size of a set": (lambda x: frozenset(range(3 + x)), lambda _: frozenset(range(3))),
    "complex": (lambda x: complex(1, x), lambda _: complex(1, 0)),
    "field of an object": (
        lambda x: dp.stats.histogram([x], bounds=(0, 2 + x), bins=2, epsilon=0.01),
        lambda x: dp.stats.histogram([x], bounds=(0, 2), bins=2, epsilon=0.01),
    ),
    **{
        f"key of a table, {library}": (
            lambda x, library=library: grouped(x, library, "abc" if x else "ab"),
            lambda x, library=library: grouped(x, library, "abc"),
        )
        for library in ("dicts", "pandas", "polars", "arrow", "answer")
    },
    "order of a table": (lambda x: grouped(x, "pandas", "ab" if x else "ba"), lambda x: grouped(x, "pandas", "ab")),
    "number of rows": (lambda x: grouped(x, "dicts", "a" * (1 + x)), lambda x: grouped(x, "dicts", "aa")),
    "NULL in a table": (
        lambda x: frame([{"city": "a", "n": None if x else 1}], "arrow"),
        lambda _: frame([{"city": "a", "n": None}], "arrow"),
    ),
    "type of a column": (
        lambda x: frame([{"n": 1.0 if x else 1}], "polars"),
        lambda _: frame([{"n": 1}], "polars"),
    ),
    "column of a table": (lambda x: frame([{"nm"[x]: 1}], "pandas"), lambda _: frame([{"n": 1}], "pandas")),
}


# leaks that must first be found among many features
FAINT = {
    "a bit among random ones",
    "bytes among others",
    "fraction under whole noise",
    "low bit of a huge integer",
    "parity",
    "parity of many keys",
    "one of many keys",
    "place of the largest",
    "unsigned integer",
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_caught_and_its_repair_is_not_accused(name):
    leaking, mended = LEAKS[name]
    trials = 800 if name in FAINT else 120 if "far" in name else 150 if "table" in name else 250
    assert measure(leaking, 0, 1, claim=1, trials=trials, confidence=SURE).refuted
    assert not measure(mended, 0, 1, claim=1, trials=trials, confidence=SURE).refuted


def textbook(x, size):
    """Laplace noise by inversion in floating point, of the right scale for epsilon = 0.1."""
    u = np.random.default_rng().random(size) - 0.5
    return x - 10.0 * np.sign(u) * np.log(1 - 2 * np.abs(u))


def test_floating_point_laplace_is_caught_by_its_last_bits():
    assert measure(textbook, 0.0, 1.0, batch=True, claim=0.1, trials=50_000, confidence=SURE).refuted
    result = measure(textbook, 0.0, 1.0, batch=True, trials=50_000, confidence=SURE)
    assert result.epsilon > 1
    assert "bit" in result.region.description


def test_the_histogram_could_not_have_seen_it():
    """Without the last bits the same noise is within its claim, and so is exact noise with all of its bits."""

    def coarse(x, size):
        return np.rint(textbook(x, size) * 1024) / 1024

    assert not measure(coarse, 0.0, 1.0, batch=True, claim=0.1, trials=50_000, confidence=SURE).refuted
    assert not measure(dp.Laplace(1, 0.1), 0.0, 1.0, claim=0.1, trials=50_000, confidence=SURE).refuted


def given_on_demand(x):
    return (value for value in (1, x))


def noted_error(x):
    error = ValueError("no")
    error.add_note(str(x))
    raise error


def error_with_a_cause(x):
    raise ValueError("no") from KeyError(str(x))


@pytest.mark.parametrize("fn", [given_on_demand, noted_error, error_with_a_cause])
def test_what_is_made_on_demand_and_what_a_traceback_shows(fn):
    from dither.audit.blackbox.measure import measure
    from dither.audit.dataflow.replay import replay

    assert measure(fn, 0, 1, claim=1, trials=1000).refuted
    assert not replay(fn, 0, 1).passed
