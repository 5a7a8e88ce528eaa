"""A table as a user holds it: open, closed, and shown on one line together with its questions."""

from __future__ import annotations

import pyarrow as pa
import pytest

import dither as dp
from support import refuses
from tables.refusals.samples import flights

ROWS = pa.table({"region": ["north", "south"] * 50, "age": [30, 40] * 50})


def opened():
    return dp.open(ROWS, keys={"region": ["north", "south"]}, bounds={"age": (0, 120)}, budget=dp.PureDP(10))


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.sql("SELECT COUNT(*) AS n FROM data").release(epsilon=1),
        lambda table: table.agg(n=dp.count()).release(epsilon=1),
        lambda table: table.agg(n=dp.count()).explain(epsilon=1),
        lambda table: table.left,
        lambda table: table.ledger,
    ],
    ids=["sql", "builder", "explain", "left", "ledger"],
)
def test_a_closed_table_says_that_it_is_closed(ask):
    with opened() as table:
        pass
    with refuses(dp.InvalidArgument, "table", "this table is closed; open it again"):
        ask(table)


def test_a_question_of_a_table_that_was_closed_meanwhile_is_refused():
    with opened() as table:
        question = table.agg(n=dp.count())
        question.release(epsilon=1)
    with refuses(dp.InvalidArgument, "this table is closed; open it again"):
        question.release(epsilon=1)


def test_a_table_may_be_closed_twice():
    table = opened()
    table.close()
    table.close()
    with refuses(dp.InvalidArgument, "this table is closed"):
        assert table.left


def test_a_question_is_shown_on_one_short_line():
    with opened() as table:
        assert repr(table.agg(n=dp.count())) == "Question('data', n = count)"
        grouped = table.where("age > 30").group_by("region").agg(n=dp.count(), old=dp.mean("age"))
        assert repr(grouped) == "Question('data', n = count, old = mean, by region)"
        assert repr(table.group_by("region")) == "Question('data', by region)"
        text = "SELECT region,\n       COUNT(*) AS n\nFROM data GROUP BY region"
        assert repr(table.sql(text)) == "Question('data', 'SELECT region, COUNT(*) AS n FROM data GROUP BY region')"
        many = table.agg(**{f"n{i}": dp.count() for i in range(50)})
        assert len(repr(many)) < 100
        assert "\n" not in repr(many)


def test_a_table_in_a_notebook_shows_the_bounds_of_numbers_and_dates():
    with flights() as table:
        page = table._repr_html_()
    assert "-60 to 600" in page
    assert "2013-01-01 00:00:00 to 2013-12-31 23:59:00" in page
