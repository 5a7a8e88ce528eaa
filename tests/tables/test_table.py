"""A table as a user holds it: open, closed, and shown on one line together with its questions."""

from __future__ import annotations

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import InvalidArgument
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


VISITS = pa.table({"patient": [1, 1, 2], "amount": [1.0, 2.0, 3.0]})
PATIENTS = pa.table({"id": [1, 2], "region": ["north", "south"]})
UNITS = {"visits": "patient", "patients": "id"}


def test_columns_that_no_table_has_are_refused_by_name():
    frames = {"visits": VISITS, "patients": PATIENTS}
    for wrong in ({"bounds": {"visits.region": (0, 1)}}, {"keys": {"area": ["a"]}}, {"types": {"visits.x": "text"}}):
        with refuses(InvalidArgument, "visits.amount", "correct the name"):
            dp.open(frames, unit=UNITS, budget=dp.PureDP(1), **wrong)
    with refuses(InvalidArgument, "unit", "a column of patients"):
        dp.open(frames, unit={"visits": "patient"}, budget=dp.PureDP(1))
    with refuses(InvalidArgument, "column", "id"):
        dp.open(frames, unit="id", budget=dp.PureDP(1))
    with refuses(InvalidArgument, "unit", "several tables"):
        dp.open(frames, budget=dp.PureDP(1))


def test_what_is_said_of_one_table_goes_before_what_is_said_of_all():
    frames = {"visits": VISITS, "stays": VISITS}
    bounds = {"amount": (0, 10), "stays.amount": (0, 5)}
    with dp.open(frames, unit="patient", bounds=bounds, budget=dp.PureDP(1)) as table:
        known = {name: item.columns["amount"].bounds for name, item in table.card.private_tables.items()}
    assert known == {"visits": (0, 10), "stays": (0, 5)}
