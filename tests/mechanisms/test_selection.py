from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from divergence import refusal

from dither import Exponential, NoisyMax, PermuteAndFlip, SparseVector, TopK
from dither.mechanisms.selection import paired, read_scores
from support import each

SENTINEL = 987654.321
MAKERS: list[Any] = [
    Exponential(1, 1),
    NoisyMax(1, 1, noise="laplace"),
    PermuteAndFlip(1, 1),
    TopK(2, sensitivity=1, epsilon=1),
]
BAD_SCORES: list[Any] = [
    [],
    [SENTINEL, math.nan],
    [SENTINEL, math.inf],
    [-math.inf, -math.inf],
    [[SENTINEL, 1.0], [2.0, 3.0]],
    [[SENTINEL], [1.0, 2.0]],
    ["987654.321", "b"],
    [SENTINEL + 0j, 1j],
    [None, SENTINEL],
    [2**70, "987654.321"],
    [2**70, math.nan],
    [2**70, math.inf],
    [2**70, None],
    np.array([SENTINEL, 1], dtype=np.longdouble),
    np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
    np.array([1, 2], dtype="timedelta64[s]"),
    np.array(SENTINEL),
    np.ma.masked_array([1.0, SENTINEL], mask=[False, True]),
    {"a": SENTINEL},
    SENTINEL,
    None,
    iter([SENTINEL]),
]


@each("mechanism", MAKERS)
@each("scores", BAD_SCORES)
def test_bad_scores_are_refused_without_showing_them(mechanism: Any, scores: Any) -> None:
    pick = mechanism.select_indices if isinstance(mechanism, TopK) else mechanism.select_index
    refusal(lambda: pick(scores), "987654", "2020")
    if not isinstance(mechanism, TopK):
        refusal(lambda: mechanism.probabilities(scores), "987654", "2020")


@pytest.mark.parametrize("mechanism", MAKERS, ids=lambda m: type(m).__name__)
def test_candidates_match_their_scores(mechanism: Any) -> None:
    for candidates in ([], ["a"], ["a", "b", "c", "d"], "ab"):
        refusal(lambda c=candidates: mechanism.select(c, [SENTINEL, 1.0, 2.0]), "987654")
    for candidates, scores in ((None, [1, 2]), (5, [1, 2]), (["a", "b"], iter([1, 2])), (["a"], 3)):
        refusal(lambda c=candidates, s=scores: mechanism.select(c, s))


@each("make", [Exponential, NoisyMax, PermuteAndFlip, lambda *a: TopK(2, *a[:2], None, *a[2:])])
@each(
    "arguments",
    [
        (1, -1),
        (1, 0),
        (1, math.nan),
        (1, "1"),
        (1, True),
        (1, None),
        (0, 1),
        (-1, 1),
        (math.inf, 1),
        ("1", 1),
        (1, 1, "yes"),
        (1, 1, 1),
        (1, 1, None),
        (1, 1, np.True_),
    ],
)
def test_bad_parameters_are_refused(make: Any, arguments: Any) -> None:
    refusal(lambda: make(*arguments))


@pytest.mark.parametrize(("name", "value"), [("monotone", "no"), ("monotone", 1), ("numeric", 0), ("limit", 10**400)])
def test_flags_of_the_sparse_vector_are_checked(name: str, value: Any) -> None:
    refusal(lambda: SparseVector(1, 1, **{name: value}))


def test_scores_of_every_kind_are_read() -> None:
    import pandas as pd
    import polars as pl

    same = [[1, 3, 2], (1, 3, 2), np.array([1, 3, 2], dtype=np.int8), np.array([1, 3, 2], dtype=np.float16)]
    for scores in [*same, pd.Series([1, 3, 2], index=[5, 6, 7]), pl.Series([1, 3, 2]), np.ma.masked_array([1, 3, 2])]:
        assert np.allclose(Exponential(1, 1).probabilities(scores), Exponential(1, 1).probabilities([-1.0, 1.0, 0.0]))
    assert read_scores([1.5, -math.inf]).exact is None
    assert read_scores([False, True]).floats.tolist() == [0, 1]
    big = read_scores(np.array([2**63 - 1, -(2**63)]))
    assert big.exact is not None
    assert big.exact(1) == -(2**64 - 1)
    far = read_scores([10**400, 0.5, -math.inf])
    assert far.floats[0] == 0
    assert -math.inf < far.floats[1] < -1e300
    assert far.floats[2] == -math.inf


def test_candidates_of_a_series_are_taken_by_place() -> None:
    import pandas as pd

    names = pd.Series(["a", "b", "c"], index=[2, 0, 1])
    for mechanism in MAKERS[:3]:
        assert mechanism.select(names, [0, 1000, 0]) == "b"
    assert MAKERS[3].select(names, [0, 9000, 20000]) == ["c", "b"]
    assert paired(dict.fromkeys("ab"), [1, 2]) == ["a", "b"]
