"""The values of a profile: they are what they say, in JSON and back, and change nothing that an answer is found by."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime

import pytest

import dither as dp
from dither.tables.card.model import ColumnCard
from dither.tables.card.profile import ColumnProfile, NoisyHistogram, NoisyKeys, NoisyNumber
from dither.tables.codec import from_json, to_json
from dither.tables.execute.recorded_key import card_digest
from tables.profiles import table_profile

WHO = [1, 1, 1, 1, 2, 3]
MADE = table_profile(
    WHO,
    {"x": [0.5, 0.5, 7.0, None, 2.0, 9.0], "sex": ["f", "f", "f", "f", "m", None]},
    {"x": (0, 1, 4, 10)},
    {"sex": ("f", "m")},
    classes=(1, 8),
)
PROFILE = dp.Profile({"visits": MADE}, dp.PureDP(0.5), datetime(2026, 3, 1, 12, 30))


def test_each_person_has_weight_one():
    x, sex = MADE.columns["x"], MADE.columns["sex"]
    assert x.values == NoisyHistogram((0, 1, 4, 10), (0.5, 1.0, 1.25), scale=1.0)
    assert x.nulls == 0.25
    assert [part.weights for part in x.by_rows] == [(0.0, 1.0, 1.0), (0.5, 0.0, 0.25)]
    assert sex.keys == NoisyKeys(("f", "m"), (1.0, 1.0), scale=1.0)
    assert sex.nulls == 1.0
    assert MADE.total == NoisyNumber(3.0, scale=1.0)
    assert MADE.people.weights[:4] == (2.0, 0.0, 0.0, 1.0)
    assert MADE.people.edges[:4] == (1, 2, 3, 4)


def test_deviation_of_either_law():
    assert NoisyNumber(1.0, scale=3.0).deviation == pytest.approx(3 * math.sqrt(2))
    assert NoisyNumber(1.0, scale=3.0, normal=True).deviation == 3.0


def test_json_and_back():
    more = replace(
        MADE.columns["x"],
        whole=NoisyNumber(2.0, scale=1.5, normal=True),
        private_keys=NoisyHistogram((0, 1, 2), (3.0, 1.0), scale=2.0),
        keys_per_person=NoisyHistogram((1, 2), (3.0, 0.0), scale=2.0),
    )
    profile = replace(PROFILE, tables={"visits": replace(MADE, columns={"x": more, "none": ColumnProfile()})})
    assert from_json(to_json(profile), dp.Profile, "profile") == profile
    assert from_json(to_json(PROFILE), dp.Profile, "profile") == PROFILE


def test_a_profile_is_no_part_of_what_an_answer_is_found_by():
    card = dp.Card("visits", "", {"x": ColumnCard("number", (0.0, 10.0))})
    assert card.profile is None
    assert card_digest(replace(card, profile=PROFILE)) == card_digest(card)
