"""Where each person has a budget, explanations and answers say who may be missing, from public figures alone."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.guarantees import stored
from dither.present.notes import Note
from support import noted, refuses

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
COST = {"cost": stored(dp.PureDP(0.6))}


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
        everybody = Note("people_without_budget", {**COST, "state": "everybody"})
        assert everybody in question.explain(0.6).limitations
        assert everybody in question.release(0.6).notes
        spent = {"state": "not_all", "spent": stored(dp.PureDP(0.6)), "left": stored(dp.PureDP(0.4))}
        missing = Note("people_without_budget", {**COST, **spent})
        with refuses(dp.BudgetExceeded, "got nobody"):  # of the same rows everybody was in the first one
            question.release(0.6, again=True)
        question = table.sql("SELECT COUNT(*) AS n FROM visits WHERE age >= 1")
        assert missing in question.explain(0.6).limitations
        second = question.release(0.6)
        assert missing in second.notes
        assert "People with less than ε = 0.6 left are not counted; how many is private." in str(second)
        assert "Questions so far cost ε = 0.6; people in all of them have ε = 0.4 left." in str(second)
        [nobody] = noted(question.explain(0.6), "people_without_budget")
        assert (nobody["state"], nobody["spent"]) == ("nobody", stored(dp.PureDP(1.2)))
        assert question.release(0.6).replayed
        first = table.sql("SELECT COUNT(*) AS n FROM visits WHERE age >= 0").release(0.6)
        assert first.replayed
        assert everybody in first.notes


def test_a_budget_of_the_table_leaves_nobody_out(opened):
    with opened("") as table:
        question = table.sql("SELECT COUNT(*) AS n FROM visits")
        for said in (question.explain(0.6), question.release(0.6)):
            assert not noted(said, "people_without_budget")
