"""Replay of a series: nothing but what is measured depends on a person, and that within the schema."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

import dither as dp
from dither.stream import series_lines
from support_series import Visit, opened, random_history, series_of, through, without


def pipeline(history):
    """Release a series as the table changes, and return everything that anybody sees."""
    shown = []
    with tempfile.TemporaryDirectory() as folder:
        for day, rows in history:
            with opened(rows, Path(folder, "ledger")) as table:
                answer = series_of(table).release(through=through(day))
                shown.append((answer.rows, answer.errors, answer.notes, answer.left))
    return shown


@pytest.mark.slow
def test_a_series_depends_on_a_person_through_its_mechanism_only():
    for seed in (1, 4):
        history, person = random_history(seed)
        result = dp.audit.replay(pipeline, history, without(history, person), claim=dp.ApproxDP(1, 1e-6))
        assert result.passed, str(result)
        assert len(result.releases) == len(history)


DAYS = [Visit(1, day, day, "north", 1.0) for day in range(1, 13)]


def test_a_series_that_bounds_each_day_by_itself_is_found_out(monkeypatch):
    history = [(4, DAYS), (8, DAYS), (12, DAYS)]
    assert dp.audit.replay(pipeline, history, without(history, 1), claim=dp.ApproxDP(1, 1e-6)).passed
    monkeypatch.setattr(series_lines, "look_up", lambda people, _: people.copy())
    result = dp.audit.replay(pipeline, history, without(history, 1))
    assert not result.passed
    assert "declared sensitivity" in str(result)
