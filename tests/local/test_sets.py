"""Sets of items: sampling with padding."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dither as dp
from dither.local.sets import PaddedSets
from dither.randomness import SYSTEM


def test_every_item_and_the_blank_are_drawn_as_often_as_they_should() -> None:
    p, n = PaddedSets(5, 3, 1), 60_000
    for own, expected in (
        ({1, 4}, {1: 1 / 3, 4: 1 / 3, 5: 1 / 3}),
        (set(), {5: 1}),
        ({0, 1, 2, 3}, dict.fromkeys(range(4), 1 / 4)),
    ):
        codes = p.sample([own] * n, SYSTEM)
        counts = np.bincount(codes, minlength=6)
        for code in range(6):
            share = expected.get(code, 0)
            assert abs(counts[code] - share * n) <= 6.5 * math.sqrt(n * share * (1 - share))


def test_shares_of_people_who_have_an_item() -> None:
    p, n = PaddedSets(["a", "b", "c", "d"], 2, 2), 60_000
    people = [{"a", "b"}, {"a"}, set(), {"c", "a"}] * (n // 4)
    estimate = p.estimate(p.privatize(people))
    for item, share in (("a", 0.75), ("b", 0.25), ("c", 0.25), ("d", 0.0)):
        limit = 6.5 * math.sqrt(p.variance(n, share))
        assert abs(estimate[item] - share) < limit
        assert limit < 0.2  # so that another share would have been seen
    assert np.allclose(estimate.standard_error, [math.sqrt(p.variance(n, s)) for s in (0.75, 0.25, 0.25, 0)], rtol=0.1)


def test_lists_with_repetitions_are_sets() -> None:
    p = PaddedSets(4, 4, 1)
    codes = p.sample([[2, 2, 2, 2]] * 10_000, SYSTEM)
    assert 0.2 < np.mean(codes == 2) < 0.3


def test_refusals() -> None:
    p = PaddedSets(4, 2, 1)
    with pytest.raises(dp.InvalidData):
        p.privatize([{1, 9}])
    for bad in ("abc", [3], [b"ab"], {1: 2}):
        with pytest.raises(dp.WrongType):
            p.privatize(bad)
    for bad in (0, 5):
        with pytest.raises(dp.InvalidArgument):
            PaddedSets(4, bad, 1)
    with pytest.raises(dp.InvalidData, match="clients with"):
        p.estimate(PaddedSets(4, 3, 1).privatize([{1}]))
