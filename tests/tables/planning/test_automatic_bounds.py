"""Bounds from a noisy histogram of magnitudes: what may be cut off is stated, and is little where a card has bounds."""

from __future__ import annotations

import math
import re

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.mechanisms import Laplace
from dither.randomness import SeededSource
from dither.tables.planning import automatic_bounds, best_limit
from dither.tables.planning.automatic_bounds import ChosenBounds, Unseen, choose, edges_of, least_seen
from tables.glass import glass

CARD = (-60.0, 600.0)
DELAYS = np.concatenate(
    [np.repeat([-8.0, -5.0, -3.0, -1.0], 500), np.repeat([0.0, 1, 3, 6, 12, 25, 50, 100, 200], 220)]
)
"""About half of the values are in bins that noise might fill, as flights of many planes with few late ones are."""


def chosen(values, epsilon, edges, bounded, seed):
    counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
    mechanism = Laplace(1, epsilon)
    noise = np.asarray(mechanism.release(np.zeros(len(counts), dtype=np.int64), source=SeededSource(seed)))
    return choose(counts + noise, mechanism, edges, bounded)


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 1.0])
def test_with_fewer_people_than_is_said_no_bounds_are_found(epsilon):
    """People with alike values, and no noise: that many are seen, and a tenth less are not."""
    edges, mechanism = edges_of(None, whole=False), Laplace(1, epsilon)
    people = least_seen(mechanism, len(edges) - 1)
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    counts[100] = math.ceil(people) + 1
    assert isinstance(choose(counts, mechanism, edges, False), ChosenBounds)
    counts[100] = int(people * 0.9)
    assert isinstance(choose(counts, mechanism, edges, False), Unseen)


def test_bounds_that_may_not_be_found_are_announced_before_the_charge():
    """Of people with alike values, and without noise, as many are needed as the explanation says; the first look, for a
    twentieth of the epsilon, needs many more."""
    rows = pa.table({"who": list(range(3000)), "amount": [40.0] * 3000})
    sql = (
        "SELECT AVG({value}) AS a FROM (SELECT who, SUM(amount) AS m FROM data WHERE who < {people} GROUP BY who) AS s"
    )
    with dp.open(rows, unit="who", bounds={"amount": (0, 100)}, budget=dp.PureDP(100)) as table:
        said = str(table.sql(sql.format(value="m", people=3000)).explain(epsilon=0.5))
        found = re.search(
            "a: its bounds are looked for privately, and with fewer than about ([0-9]+) people none", said
        )
        assert found is not None
        assert "although it is charged; state its bounds, as in AVG(x, contribution_bounds_per_row => (0, 100))" in said
        with glass():
            few, many = (
                table.sql(sql.format(value="m", people=int(share * int(found[1])))).release(epsilon=0.5)
                for share in (0.9, 1.1)
            )
        stated = sql.format(value="m, contribution_bounds_per_row => (0, 100)", people=3000)
        assert "looked for privately" not in str(table.sql(stated).explain(epsilon=0.5))
    assert many["a"][0] == pytest.approx(40, abs=1)
    assert few["a"] == [None]
    assert "so it has no answer, and what it cost stays charged: state its bounds" in str(few)


@pytest.mark.parametrize("epsilon", [0.01, 0.025, 0.05, 0.1, 0.5, 5.0])
def test_where_the_card_has_bounds_few_values_are_beyond_the_chosen_ones(epsilon):
    """Whatever the noise hides: the share that is said to be beyond at most is nearly never exceeded, and is small."""
    edges = edges_of(CARD, whole=False)
    exceeded = 0
    for seed in range(60):
        result = chosen(DELAYS, epsilon, edges, True, seed)
        assert isinstance(result, ChosenBounds)
        beyond = float(np.mean((result.low > DELAYS) | (result.high <= DELAYS)))
        exceeded += beyond > max(result.most, 0.02)
        assert beyond < 0.15
        assert result.most < 0.15
    assert exceeded <= 6


def test_where_the_card_has_none_an_answer_without_most_values_is_refused():
    """There are no bounds to go to, and those of what is seen hold half of the values."""
    for seed in range(40):
        result = chosen(DELAYS, 0.025, edges_of(None, whole=False), False, seed)
        assert isinstance(result, Unseen)
        assert result.factor is None or 1 < result.factor < 20
    for seed in range(40):
        result = chosen(DELAYS, 2.0, edges_of(None, whole=False), False, seed)
        assert isinstance(result, ChosenBounds)
        assert -32 <= result.low <= -8
        assert 256 <= result.high <= 1024


def test_with_little_noise_bounds_are_as_narrow_as_the_values():
    values = np.repeat([20.0, 40.0, 70.0], 10_000)
    for seed in range(20):
        result = chosen(values, 1.0, edges_of((0, 1e9), whole=False), True, seed)
        assert isinstance(result, ChosenBounds)
        assert 8 <= result.low <= 16
        assert 128 <= result.high <= 256
        assert result.most < 0.01


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 16, 40])
def test_noise_of_a_sum_is_below_its_bound_with_95_percent(width):
    threshold = automatic_bounds._noise(width, 1.0)
    assert 0.04 < best_limit._sum_exceeds(width, threshold) <= 0.05


def test_bins_end_at_the_bounds_of_the_card():
    assert edges_of((0, 60), whole=True) == (0, 1, 2, 4, 8, 16, 32, 60)
    assert edges_of((-60, 600), whole=False)[0] == -60
    assert edges_of((-60, 600), whole=False)[-2:] == (256, 600)  # 512 is too near to be of use
    assert edges_of((1e6, 1e6 + 1), whole=False) == automatic_bounds.MAGNITUDES
    assert all(edge == 0 or abs(edge) >= 1 for edge in edges_of(None, whole=True))


def test_the_answer_says_what_was_cut_off_or_that_the_bounds_are_those_of_the_card():
    rows = pa.table({"delay": DELAYS})
    with dp.open(rows, bounds={"delay": CARD}, budget=dp.PureDP(1000)) as table:
        little = table.agg(m=dp.mean("delay", bounds="auto")).release(epsilon=0.01)
        much = table.agg(m=dp.mean("delay", bounds="auto")).release(epsilon=900)
    (note,) = [note for note in little.notes if "bounds of m" in note]
    assert "bounds of m = (-60, 600)" in note
    assert "they are those of the card" in note
    (note,) = [note for note in much.notes if "bounds of m" in note]
    assert re.search(r"bounds of m = \(-(8|16), 256\)", note)
    assert "of the values are beyond them, and at most" in note
    assert much["m"][0] == pytest.approx(float(DELAYS.mean()), abs=0.5)
    with dp.open(rows, budget=dp.PureDP(1000)) as table:
        question = table.agg(m=dp.mean("delay", bounds="auto"))
        found, unknown = question.release(epsilon=0.5), question.release(epsilon=0.05)
    assert found["m"][0] == pytest.approx(float(DELAYS.mean()), abs=8)
    assert unknown["m"] == [None]
    assert any("state its bounds, as in AVG(x, " in note for note in unknown.notes)
    assert not any("m: NULL, because" in note for note in unknown.notes)
    assert math.isfinite(much.error("m")[0])
