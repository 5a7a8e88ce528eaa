"""COUNT and SUM whatever the tail: truncated sums by hand, limits that hold, what is refused."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.errors import InvalidArgument
from dither.mechanisms import Gaussian, Laplace
from dither.tables.planning import tails
from dither.tables.query.tree import Aggregate, Column, Group, Query
from support import each
from tables.glass import bounded, card, table
from tables.planned import make

PEOPLE = {1: [3.0] * 9, 2: [100.0, 0.0, 50.0], 3: [0.5], 4: [None, 100.0] * 20, None: [7.0]}
ROWS = [
    {"person": person, "amount": amount, "region": ("north", "south")[i % 2]}
    for person, amounts in PEOPLE.items()
    for i, amount in enumerate(amounts)
]
NORTH = (Group("region", Column("region"), keys=("north", "south")),)


def by_hand(kind, level, person, whole, here):
    """What a person adds to a group at a level, from all of the person's rows and those in the group."""
    added = {
        "count": len,
        "count_value": lambda x: sum(v is not None for v in x),
        "sum": lambda x: sum(v or 0 for v in x),
    }
    size = added["sum"](whole) if kind == "sum" else len(whole)
    return added[kind](here) * min(1.0, level / max(size, 1e-9))


@each("noise", ["laplace", "gaussian"])
@each("groups", [(), NORTH])
@each("kind", ["count", "count_value", "sum"])
def test_each_level_is_the_sum_of_what_people_add_up_to_it(kind, groups, noise):
    value = None if kind == "count" else Column("amount")
    planned = make(
        Query({"a": Aggregate(kind, value)}, groups),
        card(),
        epsilon=1,
        delta=1e-6,
        max_rows=64,
        tails="any",
        noise=noise,
    )
    parts, seen = planned.measures_of["a"], bounded(planned, table(ROWS)).answer
    assert len(parts) >= 4
    scale = parts[0].moments.grid.scale if kind == "sum" else 1
    for part in parts:
        level = part.rows_per_person / scale
        for place, region in enumerate(("north", "south") if groups else (None,)):
            if noise == "gaussian" and groups and kind != "sum":
                continue  # people are weighted by the l2 norm of their rows
            expected = sum(
                by_hand(
                    kind, level, person, amounts, [v for i, v in enumerate(amounts) if not groups or i % 2 == place]
                )
                for person, amounts in PEOPLE.items()
                if person is not None
            )
            got = seen.measures[part][place] / part.unit(planned.limits)
            assert got == pytest.approx(expected, rel=1e-3, abs=1e-2), (kind, level, region)


def test_rows_that_are_people_are_held_one_by_one():
    planned = make(Query({"a": Aggregate("sum", Column("amount"))}), card(None), epsilon=1, tails="any")
    parts, seen = planned.measures_of["a"], bounded(planned, table(ROWS)).answer
    for part in parts:
        level = part.rows_per_person / part.moments.grid.scale
        expected = sum(min(row["amount"] or 0.0, level) for row in ROWS)
        assert seen.measures[part][0] / part.unit(planned.limits) == pytest.approx(expected, rel=1e-3)


@each("mechanism", [lambda level: Laplace(level, 0.1), lambda level: Gaussian(level, 0.1, 1e-6)])
@each("giant", [1, 40, 3_000, 1_000_000])
def test_the_answer_is_below_the_truth_and_the_upper_limit_above_it(giant, mechanism):
    sizes = np.array([3] * 1_000 + [giant] * 5)
    planned = make(Query({"a": Aggregate("count")}), card(), epsilon=1, max_rows=1 << 19, tails="any")
    parts, asks = planned.measures_of["a"], 400
    noises = {part: mechanism(part.rows_per_person) for part in parts}
    ones = np.ones(asks, dtype=np.int64)
    noisy = {part: noises[part].release(ones * int(np.minimum(sizes, part.rows_per_person).sum())) for part in parts}
    unit = {part: part.unit(planned.limits) for part in parts}
    scaled = {part: np.asarray(noisy[part]) * unit[part] for part in parts}
    for part in parts:  # in units of the measure
        noises[part] = mechanism(part.rows_per_person * int(unit[part]))
        whole = ones * int(np.minimum(sizes, part.rows_per_person).sum() * unit[part])
        scaled[part] = noises[part].release(whole)
    low, width = tails.outcome(parts, noises, scaled, planned.limits, 0.95)
    above = (low > sizes.sum()).mean()
    # at most 2.5 % are expected of each, and 400 asks have a standard error of 0.8 %
    assert above < 0.07
    inside = sizes.sum() <= low + width if giant < 1 << 19 else np.ones(asks, dtype=bool)
    assert inside.mean() > 0.93
    times = tails.per_row(parts, noises, planned.limits, 0.95)
    assert (sizes.sum() - low <= 4 * max(giant, 3) * times * 1.5).mean() > 0.95


@pytest.fixture(scope="module")
def visits():
    rows = {"who": np.repeat(np.arange(100), 5), "g": ["a", "b"] * 250, "h": ["x"] * 500, "x": np.arange(500) % 7 - 1.0}
    with dp.open(
        pa.table(rows),
        name="visits",
        unit="who",
        bounds={"x": (-1, 10)},
        keys={"g": ["a", "b"]},
        budget=dp.ApproxDP(100, 1e-3),
        delta=1e-6,
    ) as opened:
        yield opened


def test_answers_say_that_nothing_bounds_them_unless_max_rows_does(visits):
    asked = visits.sql(
        "SELECT g, COUNT(*) AS n, SUM(GREATEST(x, 0)) AS s, SUM(GREATEST(x, 0)) / COUNT(*) AS r FROM visits GROUP BY g"
    )
    unbounded = asked.release(epsilon=5, tails="any")
    assert unbounded.errors["n"] == unbounded.errors["s"] == (None, None)
    assert "r" not in unbounded.errors
    assert Counter(note.kind for note in unbounded.notes)["any_tail"] == 2
    bound = asked.release(epsilon=5, tails="any", max_rows=5, max_groups=2)
    assert all(low <= 250 <= low + error for low, error in zip(bound["n"], bound.errors["n"], strict=True))
    assert all(error < 150 for error in bound.errors["n"])
    assert [note.values["most"] for note in bound.notes if note.kind == "any_tail"] == [10, 10]
    assert "lower limit" in str(asked.explain(epsilon=1, tails="any"))


@each(
    ("sql", "options"),
    [
        ("SELECT AVG(x) AS a FROM visits", {}),
        ("SELECT SUM(x) AS a FROM visits", {}),
        ("SELECT h, COUNT(*) AS a FROM visits GROUP BY h", {}),
        ("SELECT g, COUNT(DISTINCT who) AS a FROM visits GROUP BY g", {}),
        ("SELECT g, COUNT(*) AS a FROM visits GROUP BY ROLLUP (g)", {}),
        ("SELECT COUNT(*) AS a FROM visits", {"interval": "population"}),
        ("SELECT COUNT(*) AS a FROM visits", {"bias": True}),
        ("SELECT COUNT(*, rows_per_person => 2) AS a FROM visits", {}),
    ],
)
def test_what_has_no_race_is_refused(visits, sql, options):
    with pytest.raises(InvalidArgument, match="tails"):
        visits.sql(sql).explain(epsilon=1, tails="any", **options)


def test_an_error_cannot_be_wanted(visits):
    with pytest.raises(InvalidArgument, match="tails"):
        visits.sql("SELECT COUNT(*) AS a FROM visits").explain(error=50, tails="any")
