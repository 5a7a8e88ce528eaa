"""Equality, hashing, pickling and copying are right or refused, for every public object.

A *value* is equal to another one built alike, has the same hash, and comes back equal from ``pickle`` and ``copy``. One
that holds arrays or mappings is the same but for the hash, which is refused. What counts (sessions, budgets, open
tables and ledgers) exists once: it can be neither copied nor pickled, and is equal to itself alone.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither import DitherError, audit, course, learn
from dither.accounting import best_of, calibrate
from dither.client.transport import Transport, parse
from dither.ledger import Account, Entry, Receipt, Released, Verified
from dither.ledger.charging import Charge
from dither.mechanisms import ContinuousExponential, Frequencies, HoldoutAnswer, Noise, SparseVectorSession
from dither.stats.estimate import EstimateFloat, EstimateInt
from dither.tables.card.model import ColumnCard
from support import for_each, refuses
from tables.profiles import table_profile

PACKAGES = (dp, dp.accounting, audit, course, dp.density, learn, dp.ledger, dp.mechanisms, dp.stats)
RECEIPT = Receipt(1, "ab" * 32)
LAPLACE = dp.accounting.LaplaceNoise(2)


def table() -> dp.Table:
    rows = pa.table({"region": ["north", "south"] * 50})
    return dp.open(rows, keys={"region": ["north", "south"]}, budget=dp.PureDP(10))


TABLE = table()


def one_estimate(kind: type) -> Any:
    source = dp.randomness.SeededSource(1)
    return (
        dp.stats.count([1, 2], 1, source=source)
        if kind is EstimateInt
        else dp.stats.mean([1], (0, 1), 1, source=source)
    )


def fair(x: Any) -> float:
    return float(np.mean(x))


VALUES: dict[type, Callable[[], Any]] = {
    dp.PureDP: lambda: dp.PureDP(1),
    dp.ApproxDP: lambda: dp.ApproxDP(1, 1e-6),
    dp.ZCDP: lambda: dp.ZCDP(0.5),
    dp.Neighbors: lambda: dp.AddRemove,
    dp.Laplace: lambda: dp.Laplace(1, 1),
    dp.Gaussian: lambda: dp.Gaussian(1, 1, 1e-6),
    dp.Staircase: lambda: dp.Staircase(1, 1),
    dp.BoundedLaplace: lambda: dp.BoundedLaplace(1, 1, 0, 10),
    dp.MixedNoise: lambda: dp.MixedNoise(1, 1, 1e-6),
    dp.SmoothNoise: lambda: dp.SmoothNoise("laplace", 1, 1e-6),
    dp.Exponential: lambda: dp.Exponential(1, 1),
    ContinuousExponential: lambda: ContinuousExponential(1, 1, bounds=(0, 1)),
    dp.NoisyMax: lambda: dp.NoisyMax(1, 1),
    dp.PermuteAndFlip: lambda: dp.PermuteAndFlip(1, 1),
    dp.TopK: lambda: dp.TopK(2, 1, 1),
    dp.SparseVector: lambda: dp.SparseVector(1, 1),
    dp.RandomizedResponse: lambda: dp.RandomizedResponse(1),
    dp.ProposeTestRelease: lambda: dp.ProposeTestRelease(1, 1, 1e-6),
    dp.SampleAndAggregate: lambda: dp.SampleAndAggregate(fair, 5, (0, 1)),
    dp.ReleaseOptions: lambda: dp.ReleaseOptions(epsilon=1),
    Noise: lambda: dp.Laplace(1, 1).noise,
    HoldoutAnswer: lambda: HoldoutAnswer(0.5, True),
    dp.accounting.Pure: lambda: dp.accounting.Pure(1),
    dp.accounting.Approximate: lambda: dp.accounting.Approximate(1, 0.1),
    dp.accounting.Concentrated: lambda: dp.accounting.Concentrated(1),
    dp.accounting.BoundedRange: lambda: dp.accounting.BoundedRange(1),
    dp.accounting.LaplaceNoise: lambda: dp.accounting.LaplaceNoise(2),
    dp.accounting.GaussianNoise: lambda: dp.accounting.GaussianNoise(2),
    dp.accounting.DiscreteLaplaceNoise: lambda: dp.accounting.DiscreteLaplaceNoise(2, 1),
    dp.accounting.ResponseReport: lambda: dp.accounting.ResponseReport(1, 3),
    dp.accounting.Shuffled: lambda: dp.accounting.Shuffled(1, 100, response_categories=5),
    dp.accounting.PoissonSampled: lambda: dp.accounting.PoissonSampled(LAPLACE, 0.1),
    dp.accounting.PostProcessed: lambda: dp.accounting.PostProcessed(LAPLACE),
    dp.accounting.Sequential: lambda: dp.accounting.Sequential(LAPLACE, LAPLACE),
    dp.accounting.Parallel: lambda: dp.accounting.Parallel(LAPLACE, LAPLACE),
    dp.accounting.Best: lambda: best_of(LAPLACE, delta=1e-6),
    dp.accounting.Calibration: lambda: calibrate(LAPLACE, dp.PureDP(1)),
    course.Result: lambda: course.find("theorem 2")[0],
    course.Results: lambda: course.find("lemma"),
    course.TheoremSGD: lambda: course.TheoremSGD(epsilon=1, steps=3, clip=1.0),
    learn.Schedule: lambda: learn.Schedule(0.5),
    learn.Squared: lambda: learn.Squared(),
    learn.Huber: lambda: learn.Huber(),
    learn.Logistic: lambda: learn.Logistic(),
    learn.Multinomial: lambda: learn.Multinomial(),
    learn.SmoothHinge: lambda: learn.SmoothHinge(),
    learn.NoisyDescent: lambda: learn.NoisyDescent(3, 0.1, 1.0, 1.0, 10),
    Receipt: lambda: Receipt(1, "ab" * 32),
    Released: lambda: Released(1, b"1", "june", RECEIPT, False),
    Verified: lambda: Verified(1, RECEIPT),
    Entry: lambda: Entry(1, "2026", "charge", "visits", None, None, "", None, b"1"),
    Account: lambda: Account("visits", "dataset", "visits", "1", "epsilon", None, (0, 0)),
    EstimateInt: lambda: one_estimate(EstimateInt),
    EstimateFloat: lambda: one_estimate(EstimateFloat),
    audit.Audit: lambda: audit.Audit((), 0.99, 1.0),
    audit.Replay: lambda: audit.Replay((), ()),
}
WITHOUT_HASH: dict[type, Callable[[], Any]] = {
    dp.stats.Histogram: lambda: dp.stats.histogram([1, 2], (0, 4), 1, bins=4, source=dp.randomness.SeededSource(1)),
    dp.density.Density: lambda: dp.density.release([0.5], (0, 1), 1, source=dp.randomness.SeededSource(1)),
    Frequencies: lambda: Frequencies(np.array([0.5, 0.5]), np.array([0.1, 0.1]), 10),
    learn.Trace: lambda: learn.Trace(np.zeros((2, 1)), np.ones(1)),
    learn.Comparison: lambda: learn.Comparison("Ridge", (1.0,), np.zeros((1, 2)), None),
    Charge: lambda: Charge("visits", "june", dp.PureDP(1), RECEIPT, np.array([True])),
    dp.Answer: lambda: dp.Answer(("n",), ("integer",), ((41,),), {"n": (6.0,)}, dp.PureDP(0.5)),
    dp.Card: lambda: dp.Card("visits", "visits.csv", {"age": ColumnCard("integer", bounds=(0, 120))}),
    dp.Explanation: lambda: TABLE.agg(n=dp.count()).explain(epsilon=1),
    dp.Profile: lambda: dp.Profile(
        {"visits": table_profile([1, 1, 2], {"x": [1, 5, None]}, {"x": (0, 4, 8)})}, dp.PureDP(1)
    ),
}
ONCE: dict[type, Callable[[], Any]] = {  # what counts, or is open
    SparseVectorSession: lambda: dp.SparseVector(1, 1).start(10),
    dp.ReusableHoldout: lambda: dp.ReusableHoldout([0.0], [0.0], bounds=(0, 1), epsilon=1, threshold=0.1, limit=3),
    dp.Table: lambda: TABLE,
    dp.Connection: lambda: dp.Connection(Transport(parse("https://answers.example.org/")[0], None)),
}
ELSEWHERE = {  # and why not here
    "Question": "it is tried below: it holds an open table",
    "Ledger": "it is tried below: it needs a file",
    "Accountant": "abstract; the accountants are single values",
    "Event": "abstract",
    "Guarantee": "abstract",
    "Estimate": "abstract",
    "Loss": "abstract",
    "Certificate": "tests/audit/proof: it carries its evidence",
    "Measurement": "tests/audit/blackbox: it carries its region",
    "Search": "made of measurements",
    "Pair": "two data sets of any type",
    "Release": "a part of a replay",
    "Row": "a part of an audit, as mappings",
    "Choice": "holds the chosen model, which is the caller's",
    "PrivacyWarning": "a warning",
}


def classes() -> dict[str, type]:
    """Every public class by its name, but the estimators, which have scikit-learn's own contract."""
    result = {}
    for package in PACKAGES:
        kinds = {name: getattr(package, name) for name in package.__all__}
        result |= {name: kind for name, kind in kinds.items() if inspect.isclass(kind)}
    estimators = {name for name, kind in result.items() if hasattr(kind, "get_params")}
    return {name: kind for name, kind in result.items() if name not in estimators}


def errors() -> dict[str, type]:
    return {name: kind for name, kind in classes().items() if issubclass(kind, DitherError)}


def test_every_public_class_is_tried():
    tried = {kind.__name__ for kinds in (VALUES, WITHOUT_HASH, ONCE) for kind in kinds}
    assert tried | set(ELSEWHERE) | set(errors()) == set(classes())
    assert not tried & set(ELSEWHERE)


def test_values_are_equal_if_they_are_built_alike():
    def check(kind, build):
        one, other = build(), build()
        assert isinstance(one, kind)
        assert one == other
        assert (one != other) is False
        assert one != "something else"

    for_each((VALUES | WITHOUT_HASH).items(), check)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, *(lambda x, p=p: pickle.loads(pickle.dumps(x, p)) for p in range(2, 6))]
)
def test_values_come_back_from_copy_and_pickle(again):
    def check(kind, build):
        value = build()
        result = again(value)
        assert type(result) is type(value)
        assert result == value
        assert repr(result) == repr(value)

    for_each((VALUES | WITHOUT_HASH).items(), check)


def test_equal_values_have_the_same_hash():
    def check(kind, build):
        one, other = build(), build()
        assert isinstance(one, Hashable)
        assert hash(one) == hash(other) == hash(pickle.loads(pickle.dumps(one)))
        assert len({one, other}) == 1

    for_each(VALUES.items(), check)


def test_what_holds_arrays_or_mappings_says_that_it_has_no_hash():
    def check(kind, build):
        value = build()
        assert not isinstance(value, Hashable)
        with pytest.raises(TypeError, match=f"unhashable type: '{kind.__name__}'"):
            hash(value)

    for_each(WITHOUT_HASH.items(), check)


def test_arrays_are_compared_element_by_element():
    one, other = (
        dp.stats.Histogram(np.array([1, n]), np.arange(3.0), dp.PureDP(1), dp.AddRemove, dp.Laplace(1, 1))
        for n in (2, 3)
    )
    assert one != other
    assert Frequencies(np.array([np.nan]), np.ones(1), 1) == Frequencies(np.array([np.nan]), np.ones(1), 1)
    assert Frequencies(np.ones(2), np.ones(2), 1) != Frequencies(np.ones(3), np.ones(3), 1)
    assert dp.density.release([0.5], (0, 1), 1) != dp.density.release([0.5], (0, 1), 2)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, *(lambda x, p=p: pickle.dumps(x, p) for p in range(6))])
def test_what_counts_can_be_neither_copied_nor_pickled(again):
    def check(kind, build):
        value = build()
        with refuses(dp.WrongType, "copy or a pickle"):
            again(value)
        assert value == value
        assert len({value}) == 1

    for_each(ONCE.items(), check)


def test_a_question_is_a_value_about_an_open_table():
    one, other = (TABLE.agg(n=dp.count()) for _ in range(2))
    assert one == other == copy.copy(one)
    assert one != TABLE.agg(n=dp.people())
    assert one != table().agg(n=dp.count())
    for refused in (copy.deepcopy, pickle.dumps):
        with refuses(dp.WrongType, "copy or a pickle"):
            refused(one)
    with pytest.raises(TypeError, match="unhashable type: 'Question'"):
        hash(one)


def test_a_ledger_and_its_scope_exist_once(tmp_path):
    with dp.ledger.open(tmp_path / "budget.sqlite") as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        for refused in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises((dp.WrongType, TypeError)):
                refused(ledger)
            with ledger.scope("visits") as scope, pytest.raises((dp.WrongType, TypeError)):
                refused(scope)


def test_errors_survive_pickle():
    def check(name, kind):
        error = kind() if kind is dp.DataIncident else kind("epsilon: expected 1, got 2. Fix: pass 1.")
        result = pickle.loads(pickle.dumps(error))
        assert type(result) is type(error)
        assert str(result) == str(error)

    for_each(errors().items(), check)


def test_accountants_and_relations_are_single_values():
    single = ("basic", "advanced", "zcdp", "renyi", "pld", "AddRemove", "ReplaceOne")
    values = [getattr(package, name) for package in PACKAGES for name in single if hasattr(package, name)]

    def check(value):
        assert pickle.loads(pickle.dumps(value)) == value
        assert copy.deepcopy(value) == value

    for_each(values, check)
