"""Series on tables: points that are out stay as they are, one charge, late rows, groups, windows, people's accounts.

What one reading says of a series: exact sums, and no line of a period that was not asked for.

The mechanism of a series: multipliers that are recorded, and that the sensitivity of the plan is theirs.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither import ApproxDP, NotPrivate, PureDP
from dither.budget_hooks import observed_by
from dither.ledger.chain import read_receipt
from dither.stream import series as series_module
from dither.stream import series_spec
from dither.stream.series import Lines
from dither.stream.series_spec import Lane, SeriesMechanism, joint_sensitivity
from support import refuses
from support_series import START, Visit, Witness, measured, moment, opened, series_of, through

WHOLE = {"max_participations": 12, "min_separation": 1}


def visits(day, count, first=0, region="north", x=1.0):
    return [Visit(first + i, day, day, region, x) for i in range(count)]


def test_points_that_are_out_stay_and_are_free(tmp_path):
    rows = visits(1, 50) + visits(2, 30)
    with opened(rows, tmp_path / "ledger", budget=dp.ApproxDP(1, 1e-6)) as table:
        first = series_of(table).release(through=through(1))
        assert not first.replayed
        assert table.left is None
    changed = visits(1, 5) + visits(2, 80, first=500) + visits(3, 40, first=900)
    with opened(changed, tmp_path / "ledger", budget=dp.ApproxDP(1, 1e-6)) as table:
        second = series_of(table).release(through=through(3))
        again = series_of(table).release(through=through(3))
        early = series_of(table).release(through=through(1))
    assert second.rows[:2] == first.rows == early.rows
    assert again.rows == second.rows
    assert again.replayed
    assert [row[0] for row in second.rows] == [START + timedelta(days=i // 2) for i in range(6)]
    assert second.columns == ("day", "region", "n", "who", "total")
    assert all(error > 0 for name in second.errors for error in second.error(name))


def test_numbers_are_the_running_totals_plus_the_noise_of_the_plan(tmp_path):
    rows = [row for day in range(1, 13) for row in visits(day, 20 * day, first=1000 * day, x=2.5)]
    increments, mechanism = measured([(4, rows), (12, rows)], tmp_path / "ledger", **WHOLE)
    counts = np.cumsum(increments[:, 0]) / mechanism.lanes[0].unit
    assert counts.tolist() == [10 * day * (day + 1) for day in range(1, 13)]
    witness = Witness()
    with observed_by(witness), opened(rows, tmp_path / "other") as table:
        answer = series_of(table, epsilon=5, delta=1e-4, **WHOLE).release(through=through(12))
    for column, truth in (("n", counts), ("who", counts), ("total", 2.5 * counts)):
        values, errors = answer[column][::2], answer.error(column)[::2]
        # 5 times the half-width of 95 % is 9.8 standard deviations
        assert all(abs(v - t) < 5 * e for v, t, e in zip(values, truth, errors, strict=True))
        assert not all(abs(v - t) < e / 50 for v, t, e in zip(values, truth, errors, strict=True))


def test_windows_are_differences_of_what_is_released(tmp_path):
    rows = [row for day in range(1, 6) for row in visits(day, 10, first=100 * day)]
    with opened(rows, tmp_path / "ledger") as table:
        series = series_of(table)
        whole = series.release(through=through(5))
        daily = series.release(through=through(5), window=1)
        recent = series.release(through=through(5), window=3)
        left = table.left
        assert series.release(through=through(5), window=9)["n"] == whole["n"]
    n, each_day = np.array(whole["n"]), np.array(daily["n"])
    assert np.allclose(each_day[2:], n[2:] - n[:-2])
    assert np.allclose(np.array(recent["n"])[6:], n[6:] - n[:-6])
    assert np.allclose(each_day[:2], n[:2])
    assert left == dp.ApproxDP(9, 1e-3 - 1e-6)
    assert daily.describe("n") == "n, each day"
    assert recent.error("n")[-1] > daily.error("n")[-1] * 0.5


def test_late_rows_are_ignored_or_count_when_they_arrive(tmp_path):
    first, late = [Visit(1, 1, 1, "north", 1.0)], [Visit(2, 1, 3, "north", 1.0), Visit(3, 3, 3, "north", 1.0)]
    ignored, mechanism = measured([(1, first), (3, first + late)], tmp_path / "a", **WHOLE)
    arrival = {"late": "arrival", "arrived": "loaded"}
    counted, _ = measured([(1, first), (3, first + late)], tmp_path / "b", **WHOLE, **arrival)
    assert (ignored[:, 0] / mechanism.lanes[0].unit).tolist() == [1, 0, 1]
    assert (counted[:, 0] / mechanism.lanes[0].unit).tolist() == [1, 0, 2]


def test_whoever_used_up_their_days_does_not_count_even_if_the_rows_are_deleted(tmp_path):
    days = [Visit(1, day, day, "north", 1.0) for day in range(1, 13)]
    increments, _ = measured([(6, days), (12, days[6:])], tmp_path / "ledger")
    assert np.flatnonzero(increments[:, 0]).tolist() == [0, 3]  # two days, three apart, and no more
    statement_alone, _ = measured([(12, days[6:])], tmp_path / "other")
    assert np.flatnonzero(statement_alone[:, 0]).tolist() == [6, 9]


@pytest.mark.parametrize(
    ("unit", "start", "label"),
    [("hour", "2026-01-01T00:00", datetime(2026, 1, 1, 13)), ("week", "2025-12-29", date(2025, 12, 29)),
     ("month", "2026-01-01", date(2026, 1, 1)), ("day", "2026-01-01", date(2026, 1, 1))],
)  # fmt: skip
def test_units(unit, start, label, tmp_path):
    stamps = pa.array([moment(START), moment(START + timedelta(days=40))], pa.timestamp("us"))
    witness = Witness()
    with (
        observed_by(witness),
        dp.open(pa.table({"at": stamps}), budget=dp.PureDP(9), ledger=str(tmp_path / "l")) as table,
    ):
        horizon = 24 if unit == "hour" else 3
        series = table.over(unit, column="at", horizon=horizon, start=start, epsilon=1).agg(n=dp.count())
        answer = series.release(through=label)
        assert answer.columns == (unit, "n")
        assert answer.rows[-1][0] == label
        assert witness.increments[0][-1].tolist() == [1]
        assert series.release(through=series.spec.calendar.begin(horizon)).rows[: len(answer)] == answer.rows


def test_explain_reads_nothing_and_says_what_the_release_says(tmp_path, monkeypatch):
    with opened(visits(1, 9), tmp_path / "ledger") as table:
        series = series_of(table)
        monkeypatch.setattr(table.engine, "run", lambda *_: pytest.fail("read rows"))
        plan = series.explain()
        assert table.left == dp.ApproxDP(10, 1e-3)
        monkeypatch.undo()
        answer = series.release(through=through(12))
        assert plan.errors["n"] == tuple(answer.error("n")[::2])
        assert plan.cost == answer.cost
        assert "would be refused" not in str(plan)
        assert "would be refused" in str(series_of(table, epsilon=20).explain())
        assert "<table" in plan._repr_html_()
        assert "<svg" in answer._repr_html_()


def test_a_name_goes_on_and_is_refused_for_another_series(tmp_path):
    with opened(visits(1, 9), tmp_path / "ledger") as table:
        first = series_of(table, name="daily").release(through=through(2))
        assert series_of(table, name="daily").release(through=through(2)).rows == first.rows
        with refuses(dp.InvalidArgument, "charged under this name"):
            series_of(table, name="daily", max_rows=3).release(through=through(2))
        with refuses(dp.InvalidArgument, "charged under this name"):
            series_of(table, name="daily", epsilon=2).release(through=through(2))
        second = series_of(table, name="other").release(through=through(2))
        assert second.rows != first.rows
        assert table.left == dp.ApproxDP(8, 1e-3 - 2e-6)


def test_people_pay_when_they_first_take_part(tmp_path):
    card = _card(tmp_path, each_person=dp.ApproxDP(1.5, 1e-5))
    witness = Witness()
    with observed_by(witness), dp.open(card) as table:
        before = table.where("who = 1").agg(n=dp.count())
        before.release(epsilon=1)  # person 1 has 0.5 left: too little for the series
        series = table.over("day", column="day", horizon=10, start="2026-01-01", epsilon=1, delta=1e-6,
                            max_participations=3).agg(n=dp.count())  # fmt: skip
        series.release(through="2026-01-01")
        assert _spent(tmp_path) == [0, 1]  # person 3 was not there yet
        series.release(through="2026-01-04")
        assert _spent(tmp_path) == [0, 1, 1]
        assert table.ledger.verify().entries
    one = witness.mechanism.lanes[0].unit
    assert (np.concatenate(witness.increments)[:, 0] / one).tolist() == [1, 2, 0, 1]


def _card(tmp_path, **more):
    from dither.tables.card.model import Card, ColumnCard

    lines = ["who,day", "1,2026-01-01", "2,2026-01-01", "2,2026-01-02", "3,2026-01-02", "2,2026-01-04", "2,2026-01-05"]
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    columns = {"who": ColumnCard("integer"), "day": ColumnCard("date")}
    return Card("visits", str(tmp_path / "visits.csv"), columns, "who", ledger=str(tmp_path / "ledger"), **more)


def _spent(tmp_path):
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "ledger")) as connection:
        rows = connection.execute("SELECT delta FROM dither_person").fetchall()
    return sorted(int(delta > 0) for (delta,) in rows)


def test_a_failure_while_rows_are_read_is_an_incident_each_time(tmp_path, monkeypatch):
    with opened(visits(1, 9), tmp_path / "ledger") as table:
        series = series_of(table)
        series.release(through=through(1))
        monkeypatch.setattr(table.engine, "run", lambda *_: 1 / 0)
        for _ in range(3):
            with pytest.raises(dp.DataIncident):
                series.release(through=through(2))
        monkeypatch.undo()
        with pytest.raises(dp.DatasetClosed):
            series.release(through=through(2))
        assert len(series.release(through=through(1))) == 2
        assert table.ledger.verify()


def test_the_receipt_is_kept_with_the_charge_and_with_every_incident(tmp_path, monkeypatch):
    kept = []

    def broken(*_):
        kept.append(read_receipt(tmp_path / "receipt") == table.ledger.head)
        raise KeyError

    with dp.open(_card(tmp_path, budget=dp.ApproxDP(1.5, 1e-5), receipt=str(tmp_path / "receipt"))) as table:
        series = table.over("day", column="day", horizon=10, start="2026-01-01", epsilon=1, delta=1e-6,
                            max_participations=3).agg(n=dp.count())  # fmt: skip
        monkeypatch.setattr(series_module.Lines, "read", broken)
        for _ in range(2):
            with pytest.raises(dp.DataIncident):
                series.release(through="2026-01-01")
            assert read_receipt(tmp_path / "receipt") == table.ledger.head
        assert kept == [True, True]


REFUSED = [
    ({"column": "x"}, "column"), ({"column": "nowhere"}, "column"), ({"start": "2026-13-01"}, "start"),
    ({"start": None}, "start"), ({"horizon": 0}, "horizon"), ({"epsilon": None}, "epsilon"), ({"late": "x"}, "late"),
    ({"late": "arrival"}, "arrived"), ({"arrived": "loaded"}, "arrived"), ({"max_participations": 0}, "participations"),
    ({"name": "a b"}, "name"), ({"rho": 1}, "rho"), ({"max_rows": 1 << 30}, "max_rows"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "fragment"), REFUSED)
def test_what_is_refused(changes, fragment, tmp_path):
    with opened([], tmp_path / "ledger") as table:
        with refuses((ValueError, TypeError), fragment):
            series_of(table, **changes).release(through=through(1))
        assert table.left == dp.ApproxDP(10, 1e-3)


def test_questions_that_are_no_series_are_refused(tmp_path):
    with opened([], tmp_path / "ledger") as table:
        days = table.over("day", column="day", horizon=5, start="2026-01-01", epsilon=1)
        with refuses(dp.InvalidArgument, "adds up"):
            days.agg(m=dp.mean("x"))
        with refuses(dp.InvalidArgument, "public keys"):
            days.group_by("who").agg(n=dp.count())
        with refuses(dp.InvalidArgument, "periods alone"):
            days.agg(day=dp.count())
        for moment_ in ("2025-12-31", "2026-01-06", "soon", "2026-01-01T00:00+02:00"):
            with refuses(dp.InvalidArgument, "through"):
                days.agg(n=dp.count()).release(through=moment_)
        with refuses(dp.InvalidArgument, "hour"):
            table.over("hour", column="loaded", horizon=5, start="2026-01-01", epsilon=1)
        with refuses(dp.InvalidArgument, "unit"):
            table.over("year", column="day", horizon=5, start="2026-01-01", epsilon=1)


@pytest.mark.parametrize("days", [[], [1], [2], [1, 2], [2, 2, 3]])
def test_what_a_ledger_writes_does_not_depend_on_who_was_there(tmp_path, days):
    """The number of an entry is in every receipt: it must not tell that somebody came for the first time."""
    card = _card(tmp_path, each_person=dp.ApproxDP(1.5, 1e-5))
    lines = [f"{who},2026-01-0{day}" for who, day in enumerate(days)]
    (tmp_path / "visits.csv").write_text("\n".join(["who,day", *lines, ""]))
    with dp.open(card) as table:
        series = table.over("day", column="day", horizon=20, start="2026-01-01", epsilon=1, delta=1e-6).agg(
            n=dp.count()
        )
        receipts = [series.release(through=f"2026-01-{day:02}").receipt for day in range(1, 13)]
    numbers = [dp.ledger.Receipt.read(receipt).seq for receipt in receipts]
    assert np.diff(numbers).tolist() == [2] * 11  # people pay, and the points are recorded
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "ledger")) as connection:
        parts = connection.execute("SELECT part, number FROM dither_series ORDER BY part").fetchall()
    assert parts == [(0, 11), (8, 7), (12, 11)]  # 12 is 8 + 4


def test_people_do_not_start_anew_where_their_column_has_another_type(tmp_path):
    def release(who, day, **more):
        rows = pa.table({"who": who, "day": [START + timedelta(days=day - 1)] * len(who)})
        witness, stated = Witness(), {"budget": dp.ApproxDP(1, 1e-6), "ledger": str(tmp_path / "ledger")}
        with observed_by(witness), dp.open(rows, unit="who", name="visits", **stated) as table:
            days = table.over("day", column="day", horizon=9, start="2026-01-01", epsilon=1, delta=1e-6, **more)
            days.agg(n=dp.count()).release(through=through(day))
        return witness.increments[-1][-1, 0] > 0

    assert release(pa.array([7, 8]), 1)
    assert not release(pa.array([7, 8], pa.int32()), 2)
    for column in (pa.array(["7", "8"]), pa.array([7, 8], pa.uint64())):
        with refuses(dp.BudgetExceeded):  # it is another series
            release(column, 3)


def test_a_series_that_goes_on_from_an_older_copy_has_other_noise(tmp_path):
    rows = visits(1, 50) + visits(2, 30, first=100) + visits(3, 30, first=200)
    with opened(rows, tmp_path / "ledger") as table:
        first = series_of(table, **WHOLE).release(through=through(1))
    for file in [*tmp_path.glob("ledger*")]:
        copied = tmp_path / "copy" / file.name
        copied.parent.mkdir(exist_ok=True)
        copied.write_bytes(file.read_bytes())
    later = []
    for place in (tmp_path / "ledger", tmp_path / "copy" / "ledger"):
        with opened(rows, place) as table:
            answer = series_of(table, **WHOLE).release(through=through(3))
            assert answer.rows[:2] == first.rows
            assert series_of(table, **WHOLE).release(through=through(3)).rows == answer.rows
        later.append(answer.rows[2:])
    # three numbers each: that all of them are alike by chance has a probability far below 1e-12
    assert all(one != other for one, other in zip(*later, strict=True))


def test_sums_that_do_not_fit_64_bits_are_exact():
    """A sum that overflowed would move by 2^64 where one person moves it by one."""
    large = np.array([1 << 61, 1 << 61, 1 << 61, 1 << 61, -5], dtype=np.int64)
    zeros = np.zeros(5, dtype=np.int64)
    lines = Lines(zeros + 1, zeros, [large, zeros + 1], None, None, None)
    assert lines.increments(1, 2, 1, None).tolist() == [[(1 << 63) - 5, 5], [0, 0]]
    kept = np.array([True, False, False, False, True])
    assert lines.increments(1, 2, 1, kept).tolist() == [[(1 << 61) - 5, 2], [0, 0]]
    assert lines.increments(1, 1, 1, np.zeros(5, dtype=bool)).tolist() == [[0, 0]]


@pytest.mark.parametrize("as_timestamps", [False, True])
def test_a_line_of_another_period_does_not_count(tmp_path, as_timestamps):
    """Whatever an engine makes of a moment: numbers before the first period would count from the end."""
    with opened([], tmp_path / "ledger") as table:
        spec = series_of(table).spec
    days = [START + timedelta(days=day - 1) for day in (3, 4, 5, 5, 6)] + [None, START - timedelta(days=400)]
    moments = [None if d is None else datetime(d.year, d.month, d.day) if as_timestamps else d for d in days]
    count = len(days)
    rows = pa.table(
        {
            "t": moments, "u": [*range(count)], "g0": pa.array([0] * count, pa.int64()),
            **{f"m{i}": pa.array([1] * count, pa.int64()) for i in range(3)},
        }
    )  # fmt: skip
    lines = Lines.read(rows, spec, bytes(32), 4, 5)
    assert lines.step.tolist() == [4, 5, 5]
    assert lines.keys.to_pylist() == [1, 2, 3]
    assert lines.increments(4, 5, 2, None)[:, 0].tolist() == [1, 2]
    assert Lines.read(rows.slice(0, 0), spec, bytes(32), 4, 5).increments(4, 5, 2, None).tolist() == [[0] * 6] * 2


LANES = (Lane(3, 2.0), Lane(500, 7.0, Fraction(4)), Lane(1, 1.0))
SCHEMA = {"horizon": 20, "participations": 2, "separation": 3}
BUDGETS = [ApproxDP(1, 1e-6), PureDP(1)]


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_series_goes_on_with_the_multipliers_that_it_recorded(budget, monkeypatch):
    """A later version that would choose others must not use them with the plan that was recorded."""
    first = SeriesMechanism.planned("daily", LANES, 2, budget, **SCHEMA)
    monkeypatch.setattr(series_spec, "multipliers", lambda lanes, _: (9,) * len(lanes))
    again = SeriesMechanism.from_record("daily", LANES, 2, first.record())
    assert again.factors == first.factors
    increments = np.arange(12, dtype=np.int64).reshape(2, 6)
    before, noise = np.ones(6, dtype=object), first.plan.noises(bytes(32), 2)
    assert (again.release(increments, before, noise) == first.release(increments, before, noise)).all()
    assert (again.errors(1, 5) == first.errors(1, 5)).all()


@pytest.mark.parametrize("budget", BUDGETS)
def test_multipliers_that_move_further_than_the_plan_are_refused(budget):
    first = SeriesMechanism.planned("daily", LANES, 2, budget, **SCHEMA)
    q = first.factors
    for changed in [(q[0] + 1, *q[1:]), (*q[:-1], 2 * q[-1]), q[:-1], (*q, 1), (0, *q[1:]), (-q[0], *q[1:])]:
        with refuses(NotPrivate, "multipliers"):
            SeriesMechanism.from_record("daily", LANES, 2, {**first.record(), "multipliers": list(changed)})
    larger = (Lane(4, 2.0), *LANES[1:])
    with refuses(NotPrivate, "multipliers"):
        SeriesMechanism.from_record("daily", larger, 2, first.record())
    with refuses(NotPrivate, "multipliers"):
        SeriesMechanism.from_record("daily", LANES, 3, first.record())


def test_the_joint_sensitivity_is_the_norm_of_what_a_person_moves():
    lanes, factors = [Lane(3, 1.0), Lane(5, 1.0)], (2, 7)
    assert joint_sensitivity(lanes, factors, pure=True) == 6 + 35
    exact = 6**2 + 35**2
    assert exact <= joint_sensitivity(lanes, factors, pure=False) ** 2 < exact + Fraction(1, 10**9)
