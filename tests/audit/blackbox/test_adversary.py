"""Ways round the auditor that were found by looking for them, and honest code that it took for a leak."""

from __future__ import annotations

import collections
import dataclasses
import math
import random
from fractions import Fraction
from functools import partialmethod

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dither as dp
from dither.audit import certify, measure, replay
from dither.audit.blackbox import views
from dither.audit.blackbox.views import collect_outputs, concatenate
from dither.audit.outputs.canonical import Raised, difference
from dither.audit.proof.certify import certify_unchecked
from dither.cli import audit as command
from dither.cli.options import AuditOptions
from dither.errors import InvalidArgument, NotPrivate
from dither.randomness import SeededSource
from dither.tables.planning.quantiles import levels, ranks
from support import each, refuses

pytestmark = pytest.mark.slow

X = np.array([1.0, 2.0, 3.0, 4.0])
Y = np.array([1.0, 2.0, 3.0, 9.0])
LAPLACE = dp.Laplace(1, 1)
CHOICE = random.SystemRandom()


def nested(value, depth):
    for _ in range(depth):
        value = [value]
    return value


def holding(thing, value):
    thing.extra = value
    return thing


class Model:
    def to_dict(self):
        return {}

    def predict(self):
        return self.extra


LEAKS = {
    "an attribute that to_dict leaves out": lambda s: holding(Model(), s),
    "the sign of zero in an array": lambda s: np.copysign(np.zeros(2), 12 - s),
    "True for 1": lambda s: {1 if s > 12 else True},
    "True for 1 as a key": lambda s: {1 if s > 12 else True: 0},
    "rows with the same label": lambda s: pd.Series([s, 1.0], index=[0, 0]),
    "columns with the same name": lambda s: pd.DataFrame([[s, 1.0]], columns=["a", "a"]),
    "the name of an index": lambda s: pd.Series([1], index=pd.Index([1], name=str(s))),
    "the type of a column": lambda s: pd.DataFrame({"a": np.zeros(1, dtype="i4" if s > 12 else "i8")}),
    "the name of a polars Series": lambda s: pl.Series(str(s), [1]),
    "the middle of a long table": lambda s: pa.table({"a": [0.0] * 500 + [s] + [0.0] * 500}),
    "the index that comes back": lambda s: LAPLACE.release(pd.Series([1, 1], index=["a", "b" if s > 12 else "c"])),
    "the name that comes back": lambda s: LAPLACE.release(pl.Series(str(s), [1, 1])),
    "the container that comes back": lambda s: LAPLACE.release([1.0, 2.0] if s > 12 else np.array([1.0, 2.0])),
    "the types in a list": lambda s: LAPLACE.release([1 if s > 12 else 1.0, 2.0]),
    "a seed": lambda s: LAPLACE.release(0, source=SeededSource(int(s))),
}


@each("name", LEAKS)
def test_leaks_are_found(name):
    assert not replay(lambda x: LEAKS[name](float(x.sum())), X, Y).passed
    # a release from a seed is not private, whatever the seed
    assert replay(lambda _: LEAKS[name](10.0), X, Y).passed is (name != "a seed")


def asked_by_the_data(x):
    high, low = (dp.SparseVector(1, 1).start(threshold) for threshold in (100, 0))
    return (high if x.sum() > 12 else low).ask(50)


def one_of_two_alike(x):
    sessions = [dp.SparseVector(1, 1).start(0) for _ in range(2)]
    return sessions[int(x.sum() > 12)].ask(0)


def both_ways(x):
    session, step = dp.SparseVector(1, 1, limit=3, monotone=True).start(1000), int(x.sum() > 12)
    return session.ask(step), session.ask(-step)


def edges_of_the_data(x):
    edges = [*range(1000), 1000 + float(x.sum()) / 100, *range(2000, 3001)]
    return dp.stats.histogram(np.arange(4.0), bounds=(0, 3000), bins=edges, epsilon=1)


@pytest.mark.parametrize("pipeline", [asked_by_the_data, one_of_two_alike, both_ways, edges_of_the_data])
def test_releases_that_the_data_choose(pipeline):
    assert not replay(pipeline, X, Y).passed


def test_questions_that_move_one_way():
    def one_way(x):
        session, step = dp.SparseVector(1, 1, limit=3, monotone=True).start(1000), int(x.sum() > 12)
        return session.ask(step), session.ask(step)

    assert replay(one_way, X, Y).passed


@dataclasses.dataclass(slots=True)
class Result:
    noisy: float
    rest: list


def changed_in_place(x):
    x.sort()
    x *= 2
    counts = LAPLACE.release(np.zeros(3))
    counts += 1
    return counts, LAPLACE.release(float(x[0]))


def fitted(x):
    model = holding(Model(), LAPLACE.release(len(x)))
    return holding(model, lambda v: v + model.extra)


HONEST = {
    "in place": changed_in_place,
    "a generator": lambda x: (LAPLACE.release(len(x)) for _ in range(3)),
    "a map": lambda x: map(LAPLACE.release, [len(x), 2]),
    "slots": lambda _: Result(LAPLACE.release(0.5), [LAPLACE.release(0)]),
    "a closure": fitted,
    "candidates that are arrays": lambda x: dp.Exponential(1, 1).select([np.zeros(2), np.ones(2)], [0, len(x)]),
    "missing values": lambda _: (
        pd.DataFrame({"t": [pd.NaT], "n": [pd.NA], "f": [math.nan]}),
        np.array(["NaT"], dtype="M8[s]"),
        collections.deque([math.nan]),
        pl.DataFrame({"a": [None, 1]}),
    ),
    "a category": lambda _: pd.cut(pd.Series([1.0, 2.0, 3.0]), 3),
    "an index": lambda _: LAPLACE.release(pd.Series([1.0, 2.0], index=["a", "b"], name="n")),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_pipelines_pass(name):
    one, other = X.copy(), Y.copy()
    result = replay(HONEST[name], one, other, rounds=4)
    assert result.passed, str(result)
    assert (one == X).all()


def test_keys_are_values():
    assert "alice" not in str(difference({"alice": 1}, {"alice": 2}))


def test_a_tower():
    assert difference(nested(1, 5000), nested(2, 5000)) is not None


OUTPUTS = [
    *(lambda value=value: value for value in (1, 2**70, 1.5, math.nan, None, True, "a", 1j, Raised("E", "no"))),
    *(
        lambda value=value: value
        for value in ([], [1], [1, 2], [1.0, 2], (1, 2), [2**70, 1], np.int8(3), np.float32(2))
    ),
    *(lambda shape=shape: np.zeros(shape) for shape in ((), 0, 1, 2, (2, 2))),
    *(lambda kind=kind: np.zeros(2, dtype=kind) for kind in ("f4", "i8", "m8[s]", "O", "?")),
    lambda: np.ma.array([1.0, 2.0], mask=[False, True]),
    lambda: {"a": CHOICE.choice([1, 2.0, None, [1, 2]])},
    lambda: {f"k{CHOICE.randrange(40)}" for _ in range(4)},
    lambda: {f"k{CHOICE.randrange(40)}": CHOICE.random()},
    lambda: pd.DataFrame({"a": ["x", CHOICE.choice("xyz")], "n": [1, 2.0]}),
]


@pytest.mark.parametrize("limit", [2000, 12])
def test_features_of_an_output_do_not_depend_on_the_other_outputs(limit, monkeypatch):
    """Else the runs on one data set look different from those on the other because of one output among them."""
    monkeypatch.setattr(views, "MAX_COLUMNS", limit)
    monkeypatch.setattr(views, "MAX_CELLS", limit)
    for _ in range(600):
        kinds = CHOICE.sample(OUTPUTS, CHOICE.randrange(1, 4))
        outputs = [CHOICE.choice(kinds)() for _ in range(CHOICE.randrange(2, 9))]
        cut = CHOICE.randrange(1, len(outputs))
        whole, parts = (
            collect_outputs(outputs),
            concatenate([collect_outputs(outputs[:cut]), collect_outputs(outputs[cut:])]),
        )
        for name in {*whole.columns, *whole.constants, *parts.columns, *parts.constants}:
            one, other = (item.column(name) for item in (whole, parts))
            width = max(item.shape[1] if item.ndim == 2 else 1 for item in (one, other))
            if one.dtype == object:
                assert one.tolist() == other.tolist(), (name, outputs, cut)
            else:
                one, other = (views._padded(item, width).astype(float) for item in (one, other))
                assert np.array_equal(one, other, equal_nan=True), (name, outputs, cut)


RARE = {
    "a huge integer": (lambda usual: usual, 2**70),
    "another length": (lambda usual: np.array([usual, 2.0]), np.zeros(3)),
    "floats for integers": (lambda usual: [usual, 2], [1.0, 2.0]),
}


@pytest.mark.parametrize("name", RARE)
def test_one_unusual_run_is_no_difference(name):
    """Of functions that do not look at the data."""

    def odd(_):
        usual, rare = RARE[name]
        return rare if CHOICE.random() < 1e-2 else usual(CHOICE.randrange(2))

    assert not any(measure(odd, 0, 1, trials=100, confidence=1 - 1e-10).epsilon for _ in range(20))


def test_too_many_elements_to_look_at():
    elements = [f"k{i}" for i in range(2500)]
    assert measure(lambda _: set(CHOICE.sample(elements, 500)), 0, 1, trials=120, confidence=1 - 1e-10).epsilon == 0


def test_a_batch_that_fails_now_and_then():
    calls = iter(range(100))

    def failing(_, size):
        if next(calls) % 2 == 0:
            raise ValueError
        return [0] * size

    with refuses(InvalidArgument, "not every time"):
        measure(failing, 0, 1, trials=50, batch=True)

    def refusing(x, size):
        if x:
            raise ValueError
        return [0] * size

    assert measure(refusing, 0, 1, trials=300, batch=True, claim=1).refuted


class Loud(Exception):
    def __str__(self):
        raise ValueError


def loudly(_):
    raise Loud


@pytest.mark.parametrize("fn", [loudly, lambda _: np.timedelta64(1, "s"), lambda _: CHOICE.choice([1.7e308, -1.7e308])])
def test_odd_outputs(fn):
    assert measure(fn, 0, 1, trials=60, confidence=1 - 1e-10).epsilon == 0


class Descriptor:
    def __get__(self, owner, kind):
        return lambda value: value


class ByDescriptor(dp.Laplace):
    release = Descriptor()


class ByPartial(dp.Laplace):
    _noisy = partialmethod(lambda *given: given[1])


class ByLookup(dp.Laplace):
    def __getattribute__(self, name):
        return (lambda value: value) if name == "release" else super().__getattribute__(name)


@pytest.mark.parametrize("kind", [ByDescriptor, ByPartial, ByLookup])
def test_mechanisms_that_draw_otherwise(kind):
    with refuses(NotPrivate):
        certify(kind(1, 1))


def tampered(mechanism, **fields):
    for name, value in fields.items():
        object.__setattr__(mechanism, name, value)
    return mechanism


@pytest.mark.parametrize(
    "mechanism",
    [
        tampered(dp.Laplace(1, 1), _steps=(0.3,)),
        tampered(dp.Laplace(1, 1), _steps=(0.0,)),
        tampered(dp.Laplace(1, 1), _steps=(math.nan,)),
        tampered(dp.Laplace(1, 1), _scales=(math.inf,)),
        tampered(dp.Laplace([1, 1], 1), _scales=(1.5, 3.0), _joint=True),
        tampered(dp.Gaussian(1, rho=0.5), _laws=dp.Laplace(1, 1)._laws),
    ],
    ids=lambda item: type(item).__name__,
)
def test_laws_that_are_not_known(mechanism):
    with refuses(NotPrivate):
        certify_unchecked(mechanism)


def test_limits_closer_than_the_sensitivity():
    """Answers 0 and 1/2, scale 1/10: the loss is 5, by hand."""
    result = certify_unchecked(tampered(dp.BoundedLaplace(1, 1, 0, 10), upper=0.5, scale=0.1))
    assert result.refuted
    assert result.epsilon_low == pytest.approx(5, rel=1e-3)


def chosen(rank, counts):
    """The law of all bins chosen, by going through every choice, with weights in floats."""
    fine = np.repeat(counts, rank.parts)
    up_to, target = np.cumsum(fine), rank.at * int(sum(counts))
    misses = [max(0, (u - f) - rank.parts * target, rank.parts * target - u) for u, f in zip(up_to, fine, strict=True)]
    rate = Fraction(rank.mechanism.rate) * rank.at.denominator
    weights = np.exp([-float(rate * (miss - min(misses))) for miss in misses])
    law = collections.Counter()
    for index, probability in enumerate((weights / weights.sum()).tolist()):
        bin, part = divmod(index, rank.parts)
        lower = int(counts[bin]) * (2 * part + 1) // (2 * rank.parts)
        sides = [{(): 1.0}, {(): 1.0}]
        if rank.below:
            sides[0] = chosen(rank.below, [*counts[:bin], lower])
        if rank.above:
            above = chosen(rank.above, [counts[bin] - lower, *counts[bin + 1 :]])
            sides[1] = {tuple(b + bin for b in bins): p for bins, p in above.items()}
        for below, p in sides[0].items():
            for above, q in sides[1].items():
                law[(*below, bin, *above)] += probability * p * q
    return law


@pytest.mark.parametrize("shares", [(0.5,), (0.25, 0.75), (0.25, 0.5, 0.75), (0.0, 0.1, 1.0)], ids=str)
def test_quantiles_by_halving_lose_no_more_than_their_levels(shares):
    shares, rng = [Fraction(share).limit_denominator(100) for share in shares], np.random.default_rng()
    for limit in (1, 2):
        rank = ranks(shares, 1.0, limit)
        for _ in range(15):
            counts = rng.integers(0, CHOICE.choice([2, 12]), rng.integers(2, 5))
            more = counts.copy()
            for _ in range(limit):
                more[rng.integers(counts.size)] += 1
            one, other = chosen(rank, counts.tolist()), chosen(rank, more.tolist())
            assert max(abs(math.log(one[bins] / other[bins])) for bins in one) <= levels(shares) * (1 + 1e-9)


def audited(tmp_path, text, name="random.py", function="release", **options):
    (tmp_path / name).write_text(text)
    (tmp_path / "beside_it.py").write_text("one = 1\n")
    stated = {"epsilon": 1.0, "bounds": (0.0, 1.0), "trials": 20, **options}
    command.audit_function(f"{tmp_path / name}:{function}", AuditOptions(**stated))


def test_a_file_with_the_name_of_a_library(tmp_path):
    audited(tmp_path, "import beside_it\ndef release(x):\n    return beside_it.one\n")
    import random as library

    assert hasattr(library, "SystemRandom")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise RuntimeError('secret')", "RuntimeError in line 1"),
        ("\ndef release(x) return x", "SyntaxError in line 2"),
        ("import sys; sys.exit(0)", "SystemExit in line 1"),
        ("def release(x, y): return x", "of the data and nothing else"),
        ("def release(x): raise ValueError('secret')", "every run raised ValueError"),
        ("import sys\ndef release(x): sys.exit(0)", "every run raised SystemExit"),
    ],
)
def test_files_that_do_not_run(tmp_path, text, words):
    with pytest.raises(InvalidArgument, match=words) as raised:
        audited(tmp_path, text)
    assert "secret" not in str(raised.value)


def test_pairs_that_fail(tmp_path):
    text = "def release(x): return 1\ndef pairs(): raise KeyError('secret')\n"
    with refuses(InvalidArgument, "KeyError in line 2") as raised:
        audited(tmp_path, text, pairs="pairs")
    assert "secret" not in str(raised.value)
