"""``dither report --deployment``: printed, written in three forms, and never over what belongs to the card."""

from __future__ import annotations

import json
from pathlib import Path

COUNT = "SELECT COUNT(*) AS n FROM visits"


def test_the_record_is_printed_before_and_after_a_first_answer(visits, dither):
    status, text, _ = dither("report", "--deployment", visits)
    assert status == 0
    assert "# Differential privacy record: visits" in text
    assert "there is no ledger yet" in text
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    text = dither("report", "--deployment", visits)[1]
    assert "ε = 1 *(ledger)*" in text
    assert "verified when this record was made" in text


def test_the_record_is_written_in_the_form_of_the_ending(visits, dither):
    for name, start in (("record.md", "# Diff"), ("record.html", "<!DOCTYPE html>"), ("record.json", "{")):
        status, text, _ = dither("report", "--deployment", visits, "--output", name)
        assert status == 0
        assert "left to the steward" in text
        assert Path(name).read_text(encoding="utf-8").startswith(start)
    assert json.loads(Path("record.json").read_text(encoding="utf-8"))["name"] == "visits"
    assert dither("report", "--deployment", visits, "--output", "record.md")[0] == 2  # it exists
    assert dither("report", "--deployment", visits, "--output", "record.md", "--force")[0] == 0
    assert dither("report", "--deployment", visits, "--output", "record.pdf")[0] == 2
    assert dither("report", "--deployment", visits, "--output", visits, "--force")[0] == 2  # never over a card


def test_a_ledger_that_is_gone_is_refused(visits, dither):
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    Path("visits.ledger").unlink()
    status, _, error = dither("report", "--deployment", visits)
    assert status == 2
    assert "ledger" in error
