"""The values of a profile: they are what they say, in JSON and back, and change nothing that an answer is found by.

Charts of a profile: bars that add up to what is in the bins, with the ± of their sums.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime

import pytest

import dither as dp
from dither.present.drawing import svg, terminal
from dither.present.pages import html
from dither.tables.card.model import ColumnCard
from dither.tables.card.profile import (
    MOST_ROWS,
    ColumnProfile,
    NoisyHistogram,
    NoisyKeys,
    NoisyNumber,
    TableProfile,
    column_bars,
    error_of,
    table_charts,
)
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


def shown(column: ColumnProfile) -> list[str]:
    return [bar.label for bar in column_bars(column)]


FINE = NoisyHistogram(tuple(float(i) for i in range(51)), tuple(100.0 * (10 <= i < 40) for i in range(50)), scale=2.0)


def test_fine_bins_are_added_up_to_few():
    rows = list(column_bars(ColumnProfile("number", FINE, nulls=7.0)))
    assert sum(bar.value for bar in rows) == pytest.approx(3007)
    assert len(rows) == MOST_ROWS + 3
    assert (rows[0].label, rows[0].value) == ("0 to 10", 0.0)
    assert rows[0].error == pytest.approx(1.96 * math.sqrt(2) * 2 * math.sqrt(10))
    assert (rows[-2].label, rows[-1]) == ("40 to 50", ("NULL", 7.0, error_of(FINE)))
    ends = [bar.label.split(" to ") for bar in rows[:-1]]
    assert [low for low, _ in ends[1:]] == [high for _, high in ends[:-1]]


def test_labels_say_which_values_are_in_a_bin():
    whole = NoisyHistogram((0, 1, 5), (90.0, 80.0), scale=1.0)
    assert shown(ColumnProfile("integer", whole)) == ["0", "1 to 4"]
    zero = NoisyHistogram((-2.0, 0.0, 1e-5, 3.0), (50.0, 90.0, 80.0), scale=1.0)
    assert shown(ColumnProfile("number", zero)) == ["-2 to 0", "0", "0 to 3"]
    days = NoisyHistogram((0.0, 1.0, 32.0), (90.0, 80.0), scale=1.0)
    assert shown(ColumnProfile("date", days)) == ["1970-01-01", "1970-01-02 to 1970-02-01"]
    keys = NoisyKeys(tuple(range(20)), (10.0,) * 20, scale=1.0)
    rows = list(column_bars(ColumnProfile("integer", keys=keys, nulls=3.0)))
    assert [bar.label for bar in rows[-3:]] == ["13", "6 more keys", "NULL"]
    assert rows[-2].value == 60.0


def test_keys_that_are_not_public_are_counted_by_their_people():
    layers = NoisyHistogram((0, 1, 2, 4, 8), (9.0, 7.0, 8.0, 0.4), scale=0.5)
    rows = list(column_bars(ColumnProfile("text", private_keys=layers)))
    assert [(bar.label, bar.value) for bar in rows] == [
        ("at least 1", 9.0), ("at least 2", 7.0), ("at least 4", 4.0), ("at least 8", 0.1)
    ]  # fmt: skip
    assert rows[2].error == pytest.approx(math.log(20) * 0.5 / 2)


def test_what_is_noise_is_said_to_be():
    noise = NoisyHistogram((0.0, 1.0, 2.0), (3.0, -3.0), scale=9.0)
    (chart,) = table_charts(TableProfile(None, {"x": ColumnProfile("number", noise, nulls=1.0)})).values()
    assert chart.note == "Nothing here can be told from noise."
    assert list(chart.categories) == ["0 to 2", "NULL"]


def test_text_and_html_show_every_chart_and_escape_names():
    people = NoisyHistogram((1, 2, 3, 4), (900.0, 50.0, 3.0, 0.0), scale=2.0)
    table = TableProfile(people, {"<b>\x1b": ColumnProfile("number", FINE)}, NoisyNumber(950.0, scale=3.0))
    profile = dp.Profile({"visits": table}, dp.PureDP(0.5))
    text, notebook, page = profile.text(60), profile._repr_html_(), html(profile)
    assert "visits: 950 ± 9 people" in text
    assert "cost: ε = 0.5" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    for markup in (notebook, page):
        assert markup.count("<svg ") == 2
        assert "<b>" not in markup
        assert "People by their number of rows" in markup


def test_bars_on_a_terminal_are_as_long_as_those_of_the_picture():
    (chart,) = table_charts(TableProfile(None, {"x": ColumnProfile("number", FINE)})).values()
    lines = terminal(chart, 80).splitlines()
    assert len(lines) == len(chart.categories) + 1
    lengths = [line.count("█") + line.count("▒") for line in lines[1:]]
    values = [point.y + point.error for point in chart.marks[0].points()]
    room = max(lengths)
    assert all(
        abs(length / room - max(value, 0) / max(values)) < 0.05 for length, value in zip(lengths, values, strict=True)
    )
    assert svg(chart).count("<rect") == len(chart.categories)
