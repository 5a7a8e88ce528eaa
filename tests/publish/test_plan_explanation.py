"""What a dry run says of a plan, as text, as a table and in a notebook."""

from __future__ import annotations

from dither.publish import ExpectedTable, PlanExplanation
from dither.publish.plan_explanation import table_lines, whole_note

TABLES = (
    ExpectedTable("state", 51, 12.0, 12.0, 0.002, "; wanted: 15"),
    ExpectedTable("county", 3000, 10.0, 20.0, 0.09),
    ExpectedTable("sex", 2, 0.0, 0.0, 0.0),
)


def test_tables_are_said_with_mean_and_largest_error_and_their_target():
    assert [str(table) for table in TABLES] == [
        "state: 51 cells, ± 12 (0.20 % of an average cell); wanted: 15",
        "county: 3,000 cells, ± 10, at most 20 (9.0 % of an average cell)",
        "sex: 2 cells, ± 0 (public)",
    ]
    header, lines = table_lines(TABLES)
    assert header == ["table", "cells", "expected ± (95 %)", "of an average cell"]
    assert lines[1] == ["county", "3,000", "± 10, at most 20", "9.0 %"]


def test_an_explanation_says_that_it_would_be_refused():
    explanation = PlanExplanation(TABLES, "ρ = 1 (zCDP)", "ρ = 0.5 (zCDP)", ("note",), "cost: too much")
    assert str(explanation).splitlines()[:3] == [
        "cost: ρ = 1 (zCDP); left: ρ = 0.5 (zCDP)",
        "would be refused: cost: too much",
        "expected ± of each cell (95 %):",
    ]
    assert "would be refused" in explanation._repr_html_()


def test_whole_counts_of_very_many_combinations_are_warned_of():
    assert whole_note(100, 10**8).endswith("no ± is claimed for them")
    assert "whole = false leaves them out" in whole_note(20_000_000, 10**8)
    assert whole_note(10**9, 10**8).startswith("no whole counts and no records: all attributes together have 1,000")
