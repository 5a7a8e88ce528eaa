"""Lines of people in periods are those by hand, and bounded."""

from __future__ import annotations

import pytest

import dither as dp
from support import each, refuses
from support_series import Visit, by_hand, opened, random_history, series_of


def lines_of(rows, tmp_path, first=1, last=12, **changes):
    with opened(rows, tmp_path / "ledger") as table:
        series = series_of(table, **changes)
        found = table.engine.run(series._statement(first, last)).to_pylist()
        place = series.spec.calendar.step
        return {(r["u"], place(r["t"]), r["g0"]): [r["m0"], r["m1"], r["m2"]] for r in found}, series.spec, len(found)


@pytest.mark.slow
@each("changes", [{}, {"max_rows": 1}, {"late": "arrival", "arrived": "loaded"}])
@each("seed", range(6))
def test_lines_are_those_by_hand_and_bounded(seed, changes, tmp_path):
    for day, rows in random_history(seed)[0][:2]:
        lines, spec, count = lines_of(rows, tmp_path, 1, day, **changes)
        assert lines == by_hand(rows, 1, day, spec)
        assert count == len(lines)
        periods = {}
        for (who, step, _), numbers in lines.items():
            sums = periods.setdefault((who, step), [0, 0, 0])
            for i, number in enumerate(numbers):
                sums[i] += abs(number)
        for sums in periods.values():
            assert all(total <= lane.sensitivity for total, lane in zip(sums, spec.lanes, strict=True))


def test_a_busy_person_counts_for_the_limit_and_no_more(tmp_path):
    rows = [Visit(1, 3, 3, "north", 10.0)] * 50
    lines, spec, _ = lines_of(rows, tmp_path)
    ((count, people, total),) = lines.values()
    assert 0.97 < count / spec.lanes[0].unit / 2 <= 1
    assert people == spec.lanes[1].unit
    assert 0.97 < total / spec.lanes[2].unit / 20 <= 1


def test_where_every_row_is_a_person_the_engine_adds_up(tmp_path):
    rows = [Visit(1, 3, 3, "north", 1.5)] * 5 + [Visit(2, 3, 3, "south", 2.0)] * 2 + [Visit(2, 4, 4, "east", 2.0)]
    with opened(rows, tmp_path / "ledger", unit=None) as table:
        series = series_of(table)
        found = table.engine.run(series._statement(1, 12))
        assert "u" not in found.column_names
        scale = series.spec.lanes[2].unit
        lines = sorted((r["g0"], r["m0"], r["m1"], r["m2"] / scale) for r in found.to_pylist())
        assert lines == [(0, 5, 5, 7.5), (1, 2, 2, 4.0)]


def test_rows_without_a_unit_that_are_people_are_refused(tmp_path):
    card = dp.Card(
        "visits", str(tmp_path / "v.csv"),
        {"who": dp.tables.card.model.ColumnCard("integer"), "day": dp.tables.card.model.ColumnCard("date")},
        "who", budget=dp.PureDP(1), rows_without_unit="each", ledger=str(tmp_path / "ledger"),
    )  # fmt: skip
    (tmp_path / "v.csv").write_text("who,day\n1,2026-01-01\n,2026-01-01\n")
    with dp.open(card) as table:
        days = table.over("day", column="day", horizon=3, start="2026-01-01", epsilon=1)
        with refuses(dp.InvalidArgument, "rows_without_unit", "drop"):  # before anything is explained or released
            days.agg(n=dp.count())
        assert table.left == dp.PureDP(1)
