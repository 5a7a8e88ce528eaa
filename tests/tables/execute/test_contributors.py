"""Where each person has a budget, explanations and answers say who may be missing, from public figures alone."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from support import refuses

CARD = """
name = "visits"
source = "visits.parquet"
unit = "who"
ledger = "visits.ledger"
[budget]
epsilon = 1
{per}
[columns.who]
type = "integer"
[columns.age]
type = "integer"
bounds = [0, 100]
"""
PRIVATE = "people who have less than ε = 0.6 left are not counted, and how many they are is private"


@pytest.fixture
def opened(tmp_path):
    pq.write_table(pa.table({"who": list(range(50)), "age": [30] * 50}), tmp_path / "visits.parquet")

    def open_with(per: str):
        (tmp_path / "visits.toml").write_text(CARD.format(per=per))
        return dp.open(tmp_path / "visits.toml")

    return open_with


def test_the_sum_of_what_was_asked_says_who_is_missing(opened):
    with opened('per = "person"') as table:
        question = table.sql("SELECT COUNT(*) AS n FROM visits WHERE age >= 0")  # whom it is about is private
        everybody = f"{PRIVATE}: so far nobody is left out for want of budget"
        assert everybody in question.explain(0.6).limitations
        assert everybody in question.release(0.6).notes
        missing = (
            f"{PRIVATE}; questions so far cost ε = 0.6 in all: whoever was in all of them has ε = 0.4 left, "
            "and is not in this answer"
        )
        with refuses(dp.BudgetExceeded, "got nobody"):  # of the same rows everybody was in the first one
            question.release(0.6, again=True)
        question = table.sql("SELECT COUNT(*) AS n FROM visits WHERE age >= 1")
        assert missing in question.explain(0.6).limitations
        second = question.release(0.6)
        assert missing in second.notes
        assert missing in str(second)
        nobody = f"{PRIVATE}; questions so far cost ε = 1.2 in all: more than the ε = 1 of each person"
        assert any(note.startswith(nobody) for note in question.explain(0.6).limitations)
        assert question.release(0.6).replayed
        first = table.sql("SELECT COUNT(*) AS n FROM visits WHERE age >= 0").release(0.6)
        assert first.replayed
        assert everybody in first.notes


def test_a_budget_of_the_table_leaves_nobody_out(opened):
    with opened("") as table:
        question = table.sql("SELECT COUNT(*) AS n FROM visits")
        assert not any(
            "not counted" in note for note in (*question.explain(0.6).limitations, *question.release(0.6).notes)
        )
