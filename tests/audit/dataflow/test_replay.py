"""Replay passes correct pipelines and detects every way in which data bypass a mechanism."""

from __future__ import annotations

import json
import math
import secrets
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

import dither as dp
from dither.audit.dataflow.distance import input_change
from dither.audit.dataflow.replay import replay
from dither.audit.outputs.canonical import difference
from dither.mechanisms import SparseVectorSession
from dither.randomness import bernoulli, resolve
from dither.stream import series
from dither.tables.compile import relations
from dither.tables.compile.limits import Limits
from dither.tables.query import nodes
from support import each, refuses
from support_series import Visit, opened, random_history, series_of, through, without

X = np.linspace(0, 9, 40)
FEWER = X[:-1]
CHANGED = np.append(X[:-1], 9.9)
RNG = np.random.default_rng()


def both(function, **options):
    """Replays of one statistic under both neighboring relations."""
    for neighbors, other in ((dp.AddRemove, FEWER), (dp.ReplaceOne, CHANGED)):
        pipeline = partial(function, epsilon=1, neighbors=neighbors, **options)
        yield replay(pipeline, X, other, claim=dp.PureDP(1))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("count", {}),
        *((name, {"bounds": (0, 10)}) for name in ("sum", "mean", "var", "std", "median", "min", "max", "iqr")),
        ("quantiles", {"q": [0.25, 0.5], "bounds": (0, 10)}),
        ("histogram", {"bounds": (0, 10)}),
    ],
)
def test_every_statistic_passes(name, options):
    if name == "quantiles":
        q = options.pop("q")
        result = list(both(lambda x, **more: dp.stats.quantiles(x, q, **more), **options))
    else:
        result = list(both(getattr(dp.stats, name), **options))
    for item in result:
        assert item.passed, str(item)
        assert item.releases


def test_the_mode_and_the_smooth_median():
    words = np.array(["a", "b", "a", "c"])
    result = replay(lambda x: dp.stats.mode(x, ["a", "b", "c"], epsilon=1), words, np.array(["a", "b", "b", "c"]))
    assert result.passed, str(result)
    result = replay(lambda x: dp.stats.median(x, bounds=(0, 10), epsilon=1, method="smooth"), X, np.append(X[1:], 9.9))
    assert result.passed, str(result)
    assert 0 < result.releases[0].change.ratio <= 1


@pytest.mark.parametrize("method", ["histogram", "perturbed", "smoothed", "ks"])
def test_every_density_passes(method):
    result = replay(lambda x: dp.density.release(x, (0, 10), 1, method=method), X, CHANGED, claim=dp.PureDP(1))
    assert result.passed, str(result)


MECHANISMS = [
    (dp.Laplace(2, 1), "release", 5, 7, 1.0),
    (dp.Laplace(2, 1), "release", [5, 5], [4, 6], 1.0),
    (dp.Laplace([1, 2], 1), "release", [5.0, 5.0], [5.5, 7.0], 1.0),
    (dp.Gaussian(5, 1, 1e-6), "release", np.array([0, 0]), np.array([3, 4]), 1.0),
    (dp.Gaussian(1, rho=0.1), "release", 0, 1, 1.0),
    (dp.Staircase(1, 1), "release", 0.0, 0.5, 0.5),
    (dp.MixedNoise(1, 1, 1e-6), "release", 0.0, 1.0, 1.0),
    (dp.BoundedLaplace(1, 1, 0, 10), "release", 5.0, 5.25, 0.25),
    (dp.RandomizedResponse(1), "release", [True, False], [True, True], 1.0),
    (dp.Exponential(1, 1), "select_index", [1, 2, 3], [2, 1, 3], 1.0),
    (dp.Exponential(1, 1, monotone=True), "select_index", [1, 2, 3], [2, 3, 3], 1.0),
    (dp.NoisyMax(1, 1, noise="laplace"), "select_index", [1, 2], [0.5, 2], 0.5),
    (dp.PermuteAndFlip(1, 1), "select_index", [1, 2], [1, 2], 0.0),
    (dp.TopK(2, 1, 1), "select_indices", [1, 2, 3], [1, 2, 2], 1.0),
]


@pytest.mark.parametrize(("mechanism", "method", "one", "other", "ratio"), MECHANISMS, ids=lambda item: str(item)[:40])
def test_the_change_of_each_mechanism_is_measured(mechanism, method, one, other, ratio):
    result = replay(getattr(mechanism, method), one, other)
    assert result.passed, str(result)
    assert result.releases[0].change.ratio == pytest.approx(ratio)


@pytest.mark.parametrize(("mechanism", "method", "one", "other", "ratio"), MECHANISMS, ids=lambda item: str(item)[:40])
def test_every_mechanism_is_caught_beyond_its_sensitivity(mechanism, method, one, other, ratio):
    if isinstance(mechanism, dp.RandomizedResponse):
        distant = [False, True]
    else:
        step = np.asarray(other, dtype=float) - np.asarray(one, dtype=float)
        distant = np.asarray(one) + 8 * (step if step.any() else np.append(np.zeros(step.size - 1), 1.0))
        distant = distant.astype(np.asarray(one).dtype)
        distant = distant if isinstance(one, np.ndarray) else distant.tolist()
    result = replay(getattr(mechanism, method), one, distant)
    assert [word in str(result) for word in ("moved by", "declared sensitivity")] == [True, True]


def test_scores_that_go_both_ways_are_not_monotone():
    m = dp.Exponential(1, 1, monotone=True)
    assert "moved by 2 times" in str(replay(m.select_index, [1, 2], [2, 1]))


def test_piecewise_scores():
    m = dp.Exponential.continuous(sensitivity=1, epsilon=1, bounds=(0, 1))
    one, other = [(0, 0.5, [0.0]), (0.5, 1, [3.0])], [(0, 0.25, [1.0]), (0.25, 1, [3.0, 0, -0.5])]
    result = replay(m.release, one, other)
    assert result.releases[0].change.ratio == pytest.approx(3 - 0.5 * 0.25**2)
    bow = [(0.0, 1.0, [0.0, 4.0, -4.0])]
    assert replay(m.release, bow, [(0.0, 1.0, [0.0])]).releases[0].change.ratio == 1


def test_scores_of_all_integers():
    m = dp.Exponential(1, 1)

    def near(k):
        return m.select_integer(lambda i: -abs(i - k), center=k, ceiling=0, slope=1)

    assert replay(near, 3, 4).passed
    assert not replay(near, 3, 6).passed


def session(x):
    s = dp.SparseVector(1, 1, 2, numeric=True).start(15)
    result = []
    for t in range(9):
        if not s.done:
            result.append(s.ask(int((x > t).sum())))
    return result, s.asked, s.above


def test_sessions_are_followed():
    result = replay(session, X, FEWER, claim=dp.PureDP(1), rounds=6)
    assert result.passed, str(result)
    assert "2 times" in str(replay(session, X, X[:-2], rounds=6))


def test_the_holdout_and_the_proposal():
    rng = np.random.default_rng(1)
    train, held = rng.random(200), rng.random(200)

    def ask(held):
        h = dp.ReusableHoldout(train, held, threshold=0.02, epsilon=1, bounds=(0, 1), limit=3)
        return [h.ask(lambda r, t=t: (r > t).astype(float)).value for t in (0.1, 0.5, 0.9)]

    changed = held.copy()
    changed[0] = 1 - changed[0]
    result = replay(ask, held, changed)
    assert result.passed, str(result)
    test = dp.ProposeTestRelease(bound=1, epsilon=1, delta=1e-6)
    assert replay(lambda x: test.release(*x), (3.0, 5), (3.5, 4)).passed
    assert not replay(lambda x: test.release(*x), (3.0, 5), (3.5, 3)).passed
    assert not replay(lambda x: test.release(*x), (3.0, 5), (9.0, 5)).passed


VISITS = pd.DataFrame(
    {
        "who": RNG.integers(0, 40, 300),
        "town": RNG.choice(list("abcdefghij"), 300),
        "amount": RNG.random(300) * 10,
    }
)
FEW = VISITS[VISITS.who != 7]
TOWNS = {"town": list("abcdefghij")}


def ask(question, keys=None, **options):
    def run(frame):
        with dp.open(
            frame, unit="who", bounds={"amount": (0, 10)}, keys=keys, budget=dp.ApproxDP(3, 1e-4), max_groups=3
        ) as table:
            return table.sql(question).release(epsilon=1, delta=1e-6, **options)

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "keys", "options"),
    [
        ("SELECT COUNT(*) n FROM data", None, {}),
        ("SELECT town, COUNT(*) n, AVG(amount) m, MEDIAN(amount) k, MAX(amount) x FROM data GROUP BY town", TOWNS, {}),
        ("SELECT town, COUNT(*) n, SUM(amount) s FROM data GROUP BY town", None, {}),
        ("SELECT town, STDDEV(amount) s FROM data GROUP BY town", TOWNS, {"noise": "gaussian"}),
        ("SELECT town, SUM(amount) s FROM data GROUP BY town", None, {"other": True}),
        ("SELECT town, COUNT(*) s FROM data GROUP BY ROLLUP (town)", TOWNS, {}),
        ("SELECT town, COUNT(*) s FROM data GROUP BY town", TOWNS, {"max_groups": "auto"}),
        ("SELECT town, AVG(1 / (amount - 5)) s FROM data GROUP BY town", TOWNS, {}),
    ],
)
def test_tables_pass(question, keys, options):
    claim = dp.ApproxDP(1, 1e-6)
    result = replay(ask(question, keys, **options), VISITS, FEW, claim=claim)
    assert result.passed, str(result)


PEOPLE = pd.DataFrame({"id": np.arange(40), "sex": RNG.choice(["f", "m"], 40), "born": RNG.integers(1940, 2000, 40)})
CLINIC = {"visits": VISITS, "people": PEOPLE}
CLINIC_WITHOUT_ONE = {"visits": FEW, "people": PEOPLE[PEOPLE.id != 7]}
"""Several tables of the same people, and the same without one person."""


def ask_clinic(question, **options):
    def run(frames):
        with dp.open(
            frames,
            unit={"visits": "who", "people": "id"},
            bounds={"amount": (0, 10), "born": (1940, 2000)},
            keys={"sex": ["f", "m"], "town": list("abcdefghij")},
            budget=dp.ApproxDP(3, 1e-4),
            max_groups=2,
            max_rows=3,
        ) as tables:
            return tables.sql(question).release(epsilon=1, delta=1e-6, **options)

    return run


TOTALS = "SELECT who, SUM(amount) AS total, COUNT(*) AS n FROM visits GROUP BY who"
NUMBERED = "SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY amount) AS i FROM visits"
PAIRS = "visits a JOIN visits b ON a.who = b.who AND a.amount < b.amount"
RELATIONS = {
    "join": "SELECT sex, COUNT(*) n, AVG(amount) m FROM visits JOIN people ON who = id GROUP BY sex",
    "self-join": f"SELECT a.town, COUNT(*) n FROM {PAIRS} GROUP BY 1",
    "per person": f"SELECT AVG(total) m, MEDIAN(n) k FROM ({TOTALS}) s",
    "window": f"SELECT town, COUNT(*) n FROM ({NUMBERED}) s WHERE i = 1 GROUP BY town",
    "semi-join": "SELECT COUNT(*) n FROM visits WHERE who IN (SELECT id FROM people WHERE born > 1970)",
    "several aggregations": "SELECT town, COUNT(*) n, SUM(amount) s FROM visits GROUP BY ROLLUP (town)",
}


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
def test_relations_of_several_tables_pass(relation):
    result = replay(ask_clinic(RELATIONS[relation]), CLINIC, CLINIC_WITHOUT_ONE, claim=dp.ApproxDP(1, 1e-6))
    assert result.passed, str(result)
    assert result.releases
    assert not result.ended


@pytest.mark.parametrize("relation", ["join", "self-join", "semi-join"])
def test_a_join_that_does_not_carry_the_person_is_detected(relation, monkeypatch):
    """Planted: rows of one person are joined with rows of others, whose numbers then change with the person."""

    def planted(op, left, right):
        people = op == "=" and [getattr(side, "table", None) for side in (left, right)] == ["l", "r"]
        return exp.true() if people else nodes.binary(op, left, right)

    monkeypatch.setattr(relations, "binary", planted)
    few = {"visits": VISITS[VISITS.who < 12], "people": PEOPLE[(PEOPLE.id < 3) | (PEOPLE.id == 7)]}
    without = {"visits": few["visits"][few["visits"].who != 7], "people": few["people"][few["people"].id != 7]}
    few["people"] = few["people"].assign(born=np.where(few["people"].id == 7, 1999, 1941))
    without["people"] = without["people"].assign(born=1941)
    assert "moved by" in str(replay(ask_clinic(RELATIONS[relation]), few, without))


def test_a_fan_out_that_is_not_bounded_is_detected(monkeypatch):
    """Planted: everybody counts in full, however many rows a join gives them."""
    monkeypatch.setattr(Limits, "weight", lambda self, *_: nodes.integer(1 << self.bits()))
    assert "moved by" in str(replay(ask_clinic(RELATIONS["self-join"]), CLINIC, CLINIC_WITHOUT_ONE))


def test_a_table_that_takes_its_keys_from_the_data():
    def run(frame):
        return ask("SELECT town, COUNT(*) n FROM data GROUP BY town", {"town": sorted({*frame.town})})(frame)

    rare = pd.concat([VISITS, pd.DataFrame({"who": [77], "town": ["rare"], "amount": [1.0]})])
    assert "vectors of the same length" in str(replay(run, rare, VISITS))


BYPASSES = {
    "an exact number beside a noisy one": (
        lambda x: (dp.Laplace(1, 1).release(len(x)), len(x)),
        "result differs at [1]",
    ),
    "the number of releases": (lambda x: [dp.Laplace(1, 1).release(0) for _ in x], "made with one|release(s) with one"),
    "a parameter": (lambda x: dp.Laplace(1 + len(x), 1).release(0), "parameters depend on the data"),
    "another mechanism": (
        lambda x: (dp.Laplace if len(x) % 2 else dp.Staircase)(1, 1).release(0),
        "with the other",
    ),
    "the shape": (lambda x: dp.Laplace(1, 1).release(np.zeros(len(x))), "same length"),
    "the type": (lambda x: dp.Laplace(1, 1).release(0 if len(x) % 2 else 0.0), "same type"),
    "the key": (lambda x: {len(x): dp.Laplace(1, 1).release(0)}, "in its keys"),
    "an error": (lambda x: 1 / (len(x) % 2), "an error is raised with one"),
    "the words of an error": (lambda x: int(f"x{len(x)}"), "the error differs at message"),
    "a number that is none": (
        lambda x: dp.Laplace(1, 1).release(np.array([math.nan if len(x) % 2 else 1.0])),
        "error is raised|release(s) with one|made with one",
    ),
}


@pytest.mark.parametrize("name", BYPASSES)
def test_every_bypass_is_detected(name):
    pipeline, words = BYPASSES[name]
    result = str(replay(pipeline, X, FEWER))
    assert any(word in result for word in words.split("|")), result


def test_a_pipeline_that_always_fails_says_so():
    result = replay(lambda x: dp.Laplace(1, -len(x)).release(1), X, X)
    assert result.passed
    assert result.ended == "InvalidArgument"
    assert "all runs ended in InvalidArgument" in str(result)
    assert not replay(type, X, FEWER).ended


def test_integers_have_no_rounding_tolerance():
    distant = (1 << 60) + 1
    assert not replay(dp.Laplace(1 << 60, 1).release, 0, distant).passed
    assert not replay(dp.Gaussian(1 << 60, 1, 1e-6).release, [0, 0], [1 << 60, 1]).passed
    assert replay(dp.Laplace(0.1, 1).release, 0.3, 0.1 + 0.3).passed  # 0.4 - 0.3 is 0.10000000000000003


def test_no_value_is_shown():
    secret = 31337.25
    result = replay(lambda x: (x[0], dp.Laplace(1, 1).release(float(x[0]))), [secret], [secret + 9])
    assert "31337" not in str(result) + json.dumps(result.to_dict())
    assert not result.passed


def test_random_choices_are_the_same_in_both_runs():
    """Rows are sampled before and after releases."""

    def sampled(x):
        result = []
        for _ in range(3):
            sampled = bernoulli(dp.arguments.rate(0.5, "rate"), len(x), resolve(None))
            result.append(dp.Laplace(10, 1).release(float(x[sampled].sum())))
        return result

    assert replay(sampled, X, CHANGED, rounds=8).passed


def test_composition_is_counted():
    def pipeline(x):
        return [dp.Laplace(1, 0.5).release(len(x)) for _ in range(2)], dp.Gaussian(1, 0.5, 1e-6).release(len(x))

    assert replay(pipeline, X, FEWER, claim=dp.ApproxDP(1.5, 1e-6)).passed
    assert "can lose more" in str(replay(pipeline, X, FEWER, claim=dp.ApproxDP(1.4, 1e-6)))
    assert "can lose more" in str(replay(pipeline, X, FEWER, claim=dp.PureDP(1.5)))
    normal = dp.Gaussian(1, rho=0.125)
    assert replay(lambda x: [normal.release(len(x)) for _ in range(4)], X, FEWER, claim=dp.ZCDP(0.5)).passed
    assert not replay(lambda x: [normal.release(len(x)) for _ in range(5)], X, FEWER, claim=dp.ZCDP(0.5)).passed


def test_a_ledger_is_charged_as_usual(tmp_path):
    def run(x):
        with dp.ledger.open(tmp_path / f"{len(x)}-{np.random.default_rng().integers(1 << 60)}.db") as ledger:
            ledger.create("d", limit=dp.PureDP(2))
            with ledger.scope("d"):
                return dp.stats.mean(x, bounds=(0, 10), epsilon=1, neighbors=dp.AddRemove)

    assert replay(run, X, FEWER, claim=dp.PureDP(1)).passed


@pytest.mark.parametrize(
    "wrong", [{"pipeline": 3}, {"rounds": 0}, {"rounds": True}, {"claim": 1}], ids=lambda item: str(item)
)
def test_wrong_arguments(wrong):
    arguments = {"pipeline": len, "x": X, "x_neighbor": FEWER, **wrong}
    with refuses(dp.DitherError):
        replay(arguments.pop("pipeline"), arguments.pop("x"), arguments.pop("x_neighbor"), **arguments)


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_value_equals_its_copy(value):
    import copy

    assert difference(value, copy.deepcopy(value)) is None
    assert difference([value], [value, value]) is not None


def test_differences():
    class Box:
        def __init__(self, inside):
            self.inside = inside

    assert difference(Box(1), Box(1)) is None
    assert difference(Box(1), Box(2)) == " at inside"
    assert difference(1, 1.0) == " (in its type)"
    assert difference(np.zeros(2), np.zeros(3)) == " (in its shape or type)"
    assert difference(pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})) is not None
    assert difference({1, 2}, {2, 1}) is None
    loop: list = []
    loop.append(loop)
    other: list = []
    other.append(other)
    assert difference(loop, other) is None


def test_unsupported_mechanisms_have_no_distance():
    with pytest.raises(AssertionError):
        input_change(object(), {}, {})


def test_sessions_are_never_copied(monkeypatch):
    def refuse(self, *_):
        raise TypeError("a session is not to be copied")

    for name in ("__copy__", "__deepcopy__", "__reduce_ex__"):
        monkeypatch.setattr(SparseVectorSession, name, refuse, raising=False)

    def several(x):
        session = dp.SparseVector(1, 1, limit=2, numeric=True).start(0)
        return [session.ask(float(x.sum())), session.ask(-1e9), session.ask(1e9)]

    assert replay(several, np.array([1.0]), np.array([1.5]), rounds=4).passed
    assert not replay(lambda x: [*several(x), len(x)], np.array([1.0]), np.array([1.0, 0.0])).passed


def test_locks_do_not_differ_by_their_addresses():
    assert difference([threading.Lock()], [threading.Lock()]) is None
    held = threading.Lock()
    held.acquire()
    assert difference(held, threading.Lock()) is not None


def _set_order(_):
    objects = [type("Part", (), {"number": number})() for number in range(3)]
    return [part.number for part in set(objects)]


VARYING = {
    "a coin": lambda _: secrets.randbelow(2),
    "many coins": lambda _: tuple((str(k), secrets.randbelow(2)) for k in range(9)),
    "a random length": lambda _: ["a", 1.5] * secrets.randbelow(5),
    "a random key": lambda _: {f"key {secrets.randbelow(3)}": 1},
    "the order of a set": _set_order,
    "a random error": lambda _: 1 // secrets.randbelow(2),
    "a random message": lambda _: print(secrets.randbelow(2)),
    "a random parameter": lambda _: dp.Laplace(1, 1 + secrets.randbelow(2)).release(0),
    "a random input": lambda _: NOISY.release(5 * secrets.randbelow(2)),
    "a random number of releases": lambda _: [NOISY.release(0) for _ in range(secrets.randbelow(3))],
}
NOISY = dp.Laplace(sensitivity=1, epsilon=1)


@each("name", VARYING)
def test_chance_is_never_accused(name):
    for _ in range(5):
        result = replay(lambda x: (NOISY.release(len(x)), VARYING[name](x)), [1, 2, 3], [1, 2])
        assert not result.findings, str(result)


def test_a_leak_is_found_next_to_what_varies():
    result = replay(lambda x: (time.perf_counter(), "a", len(x)), [1, 2, 3], [1, 2])
    assert result.findings == ("the result differs at [2], though every release was the same",)


@each("leaks", [False, True])
def test_releases_in_other_threads_are_recorded(leaks):
    def in_a_thread(x):
        answers = []
        worker = threading.Thread(target=lambda: answers.append(NOISY.release(len(x))))
        worker.start()
        worker.join()
        with ThreadPoolExecutor(1) as pool:
            answers += [*pool.map(NOISY.release, [len(x)] * 2)]
        return [*answers, *([len(x)] if leaks else [])]

    result = replay(in_a_thread, [1, 2, 3], [1, 2])
    assert result.recorded == 3
    assert result.passed is not leaks
    assert bool(result.findings) is leaks


def test_a_parameter_in_another_thread_is_compared():
    def in_a_thread(x):
        worker = threading.Thread(target=lambda: dp.Laplace(len(x), 1).release(0))
        worker.start()
        worker.join()

    result = replay(in_a_thread, [1, 2, 3], [1, 2])
    assert result.findings == ("release 1, Laplace.release: its parameters depend on the data",)


def pipeline(history):
    """Release a series as the table changes, and return everything that anybody sees."""
    shown = []
    with tempfile.TemporaryDirectory() as folder:
        for day, rows in history:
            with opened(rows, Path(folder, "ledger")) as table:
                answer = series_of(table).release(through=through(day))
                shown.append((answer.rows, answer.errors, answer.notes, answer.remaining))
    return shown


@pytest.mark.slow
def test_a_series_depends_on_a_person_through_its_mechanism_only():
    for seed in (1, 4):
        history, person = random_history(seed)
        result = dp.audit.replay(pipeline, history, without(history, person), claim=dp.ApproxDP(1, 1e-6))
        assert result.passed, str(result)
        assert len(result.releases) == len(history)


DAYS = [Visit(1, day, day, "north", 1.0) for day in range(1, 13)]


def test_a_series_that_bounds_each_day_by_itself_is_found_out(monkeypatch):
    history = [(4, DAYS), (8, DAYS), (12, DAYS)]
    assert dp.audit.replay(pipeline, history, without(history, 1), claim=dp.ApproxDP(1, 1e-6)).passed
    monkeypatch.setattr(series, "look_up", lambda people, _: people.copy())
    result = dp.audit.replay(pipeline, history, without(history, 1))
    assert not result.passed
    assert "declared sensitivity" in str(result)
