"""Synthetic records of open tables: types, bounds and NULLs of the card; one charge; neighbors; refusals before it."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dither as dp
from dither.publish.synthetic_table import synthetic_plan
from dither.randomness import SeededSource, drawn_from
from support import refuses

COST = {"epsilon": 1, "delta": 1e-9}
PERIOD = (date(2020, 1, 15), date(2023, 12, 20))


def patients(rows=4000, seed=1):
    """Rows of many types; everybody has one row, but for person 0, who has twenty."""
    generator = np.random.default_rng(seed)
    age = generator.integers(0, 100, rows)
    married = (age >= 20) & (generator.random(rows) < 0.6)
    days = generator.integers(0, 1461, rows)
    weight = np.where(generator.random(rows) < 0.2, np.nan, 3.0 + 0.9 * age * generator.random(rows))
    return pa.table(
        {
            "who": np.maximum(np.arange(rows) - 19, 0),
            "age": age,
            "marital": pa.array(np.where(married, "married", "single")),
            "weight": pa.array(weight, from_pandas=True),
            "smokes": pa.array(generator.random(rows) < 0.3),
            "income": generator.integers(0, 100_000, rows),
            "admitted": pa.array([date(2020, 1, 1) + timedelta(days=int(day)) for day in days]),
            "seen": pa.array([datetime(2020, 1, 1) + timedelta(days=int(day), hours=9) for day in days]),
            "notes": pa.array(["free text"] * rows),
        }
    )


def opened(rows, budget=None, **options):
    return dp.open(
        rows,
        unit="who",
        keys={"marital": ["single", "married"]},
        bounds={
            "age": (0, 99), "weight": (0.0, 120.0), "income": (0, 99_999), "admitted": PERIOD, "seen": PERIOD,
        },
        budget=budget or dp.ApproxDP(3, 1e-6),
        **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def release():
    """All columns at once, with rules."""
    rules = ["NOT (marital = 'married' AND age < 15)", "admitted <= '2023-06-30' OR smokes"]
    columns = {
        "age": {"width": 10}, "marital": None, "weight": {"edges": [0, 40, 80, 120]}, "smokes": None,
        "income": {"width": 20_000}, "admitted": {"period": "quarter"},
    }  # fmt: skip
    with opened(patients()) as table:
        plan = synthetic_plan(table, columns, **COST, target="smokes", constraints=rules)
        with drawn_from(SeededSource(1)):  # noise shows a NULL that is none in one column of a thousand
            released = plan.release()
        again = plan.release(rows=100)
        return released, again, table.left


@pytest.mark.slow
def test_records_have_the_types_and_bounds_of_the_card(release):
    records = release[0].table
    types = {
        "age": pa.int64(), "marital": pa.string(), "weight": pa.float64(), "smokes": pa.bool_(), "income": pa.int64(),
        "admitted": pa.date32(),
    }  # fmt: skip
    assert {name: records.schema.field(name).type for name in records.column_names} == types
    ends = {"age": (0, 99), "weight": (0.0, 120.0), "income": (0, 99_999), "admitted": PERIOD}
    for name, (low, high) in ends.items():
        least, largest = pc.min_max(records[name]).as_py().values()
        assert low <= least < largest <= high
    assert len(pc.unique(records["income"])) > 500  # numbers inside bins, not bins
    assert len(pc.unique(records["admitted"])) > 500
    assert abs(records.num_rows - 3981) < 600


def test_nulls_come_back_where_there_are_some_and_only_there(release):
    records = release[0].table
    nulls = {name: records[name].null_count / records.num_rows for name in records.column_names}
    assert nulls.pop("weight") == pytest.approx(0.2, abs=0.08)
    assert {*nulls.values()} == {0.0}


def test_no_record_violates_the_rules(release):
    records = release[0].table
    married = pc.equal(records["marital"], "married")
    assert pc.sum(pc.and_(married, pc.less(records["age"], 15))).as_py() == 0
    late = pc.greater(records["admitted"], pa.scalar(date(2023, 6, 30)))
    assert pc.sum(late).as_py() > 0
    assert pc.sum(pc.and_(late, pc.invert(records["smokes"]))).as_py() == 0
    assert pc.sum(pc.and_(married, pc.greater_equal(records["age"], 30))).as_py() > 500


def test_another_number_of_records_of_the_same_release_is_free(release):
    released, again, left = release
    assert not released.replayed
    assert again.replayed
    assert again.table.num_rows == 100
    assert left == dp.ApproxDP(2, 9.99e-7)


def test_metadata_say_what_was_paid(release):
    released = release[0]
    said = json.loads(released.table.schema.metadata[b"dither"])
    assert said["guarantee"] == "(ε, δ) = (1, 1e-09)"
    assert said["receipt"] == released.receipt


def test_moments_come_back_inside_their_periods():
    with opened(patients(500)) as table:
        moments = dp.publish.synthesize(table, ["seen"], **COST, rows=1000)["seen"]
    assert moments.type == pa.timestamp("us")
    least, largest = pc.min_max(moments).as_py().values()
    assert datetime(2020, 1, 15) <= least < datetime(2020, 3, 1)
    assert datetime(2023, 11, 1) < largest < datetime(2023, 12, 21)
    assert len(pc.unique(moments)) == 1000


def test_the_explanation_says_columns_tables_and_cost():
    with opened(patients(10)) as table:
        text = synthetic_plan(table, **COST).explain()
    assert "cost: (ε, δ) = (1, 1e-09); left: (ε, δ) = (3, 1e-06)" in text
    assert "age: 100 bins from 0 to 100, and NULL" in text
    assert "income: 32 bins from 0 to 100000, and NULL" in text
    assert "Columns without keys or bounds in the card are left out: `notes`." in text
    assert "at most 1 row\n" in text


def test_the_same_request_gives_the_same_bytes():
    with opened(patients(1000)) as table:
        ask = {"columns": {"age": {"edges": [0, 18, 65, 100]}, "smokes": None}, **COST}
        first, second = (dp.publish.synthesize(table, **ask) for _ in range(2))
        assert first.equals(second)
        assert table.left == dp.ApproxDP(2, 9.99e-7)
        assert not dp.publish.synthesize(table, **ask, where="age >= 18").equals(first)
        assert table.left == dp.ApproxDP(1, 9.98e-7)


@pytest.mark.slow
def test_neighbors_differ_by_no_more_than_is_paid_for():
    """Everything is replayed without a person of twenty rows: every release at the distance of its inputs, and the
    records, which depend on nothing else."""
    rows = patients(300)
    fewer = rows.filter(pc.not_equal(rows["who"], 0))

    def pipeline(data):
        with opened(data, max_rows=3) as table:
            rules = ["NOT (marital = 'married' AND age < 15)"]
            columns = {"age": {"edges": [0, 10, 40, 100]}, "marital": None, "weight": {"edges": [0, 50, 120]}}
            plan = synthetic_plan(table, columns, **COST, constraints=rules)
            assert plan.counting.contribution * plan.counting.unit == 3
            return plan.release().table.to_pydict()

    result = dp.audit.replay(pipeline, rows, fewer, claim=dp.ApproxDP(1, 1e-9), rounds=2)
    assert result.passed, result
    assert len(result.releases) > 10
    assert max(item.change.ratio for item in result.releases) > 0.5  # the person does move what is released


def test_other_values_come_back_as_their_key_or_as_null():
    rows = pa.table({"region": ["n"] * 800 + ["x"] * 800, "age": [10] * 800 + [500] * 800})
    with dp.open(rows, types={"age": "integer"}, budget=dp.ApproxDP(2, 1e-6)) as table:
        columns = {
            "region": {"keys": ["n", "s"], "other": "elsewhere"},
            "age": {"edges": [0, 100], "other": "outside"},
        }
        with drawn_from(SeededSource(1)):
            records = dp.publish.synthesize(table, columns, **COST)
    assert {*records["region"].to_pylist()} == {"n", "elsewhere"} or {*records["region"].to_pylist()} == {
        "n", "s", "elsewhere",
    }  # fmt: skip
    assert records["age"].null_count / records.num_rows == pytest.approx(0.5, abs=0.15)
    elsewhere = pc.equal(records["region"], "elsewhere")
    assert pc.mean(pc.cast(pc.is_null(records["age"].filter(elsewhere)), "double")).as_py() > 0.8


def test_whatever_can_be_refused_is_refused_before_the_charge():
    with opened(patients(200)) as table:
        before = table.left

        def ask(*args, **options):
            return dp.publish.synthesize(table, *args, **{**COST, **options})

        with refuses(dp.InvalidArgument, "constraints", "at least one possible record"):
            ask(["age"], constraints=["age > 50", "age < 20", "age IS NOT NULL"])
        with refuses(dp.InvalidArgument, "rows", "a whole number from 1 on"):
            ask(["age"], rows=0)
        with refuses(dp.InvalidArgument, "target", "one of age"):
            ask(["age"], target="smokes")
        with refuses(dp.InvalidArgument, "columns.notes", "public keys or bins"):
            ask(["notes"])
        with refuses(dp.InvalidArgument, "columns.agee"):
            ask(["agee"])
        with refuses(dp.InvalidArgument, "columns", "a list of at least one column"):
            ask([])
        with refuses(dp.InvalidArgument, "delta"):
            ask(["age"], delta=0)
        with refuses(dp.BudgetExceeded):
            ask(["age"], epsilon=50)
        assert table.left == before


def test_without_a_delta_that_of_the_card_is_spent():
    rows = pa.table({"vip": [True, False] * 50})
    with dp.open(rows, budget=dp.ApproxDP(2, 1e-6), delta=1e-9) as people:
        assert dp.publish.synthetic_plan(people, ["vip"], epsilon=1).guarantee == dp.ApproxDP(1, 1e-9)
    with dp.open(rows, budget=dp.ApproxDP(2, 1e-6)) as people, refuses(dp.InvalidArgument, "delta", "in the card"):
        dp.publish.synthetic_plan(people, ["vip"], epsilon=1)
