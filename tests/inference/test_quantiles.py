"""Quantiles by halving: each share once, among the right values, in as many levels as stated."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dither.inference import Split, halve, levels

SHARES = st.lists(st.fractions(0, 1), min_size=1, max_size=20, unique=True).map(sorted)


@given(SHARES)
def test_every_share_is_selected_once_in_the_stated_number_of_levels(shares):
    split = halve(shares)
    assert sorted(node.share for node in split) == shares
    assert split.depth == levels(len(shares)) == math.floor(math.log2(len(shares))) + 1


@given(SHARES)
def test_the_rank_among_the_values_left_is_that_among_all(shares):
    """Without noise, cutting an interval at each quantile finds exactly the shares of it."""

    def exactly(split: Split, part: tuple[Fraction, Fraction]):
        low, high = part
        place = low + split.at * (high - low)
        return place, (low, place), (place, high)

    result = halve(shares).select_all((Fraction(0), Fraction(1)), exactly)
    assert result == {share: share for share in shares}


@given(SHARES)
def test_a_value_is_left_on_one_side_only(shares):
    """Every value takes part in one selection of a level at most."""
    levels_of: dict[int, list[int]] = {value: [] for value in range(50)}

    def select(split: Split, values: list[int]):
        for value in values:
            levels_of[value].append(split.depth)
        cut = int(split.at * len(values))
        return cut, values[:cut], values[cut:]

    halve(shares).select_all(list(range(50)), select)
    assert all(len(seen) <= levels(len(shares)) for seen in levels_of.values())
