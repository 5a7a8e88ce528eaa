"""Habits from pandas, Polars and database cursors: each is told what to write instead, and that works."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest

import dither as dp
from dither.tables import attribute_hints
from support import each, refuses
from tables.refusals.samples import HIDDEN, flights

BY_ORIGIN = "SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin"


@pytest.fixture(scope="module")
def table() -> Iterator[dp.Table]:
    with flights() as result:
        yield result


@pytest.mark.parametrize("name", sorted(attribute_hints.TABLE))
def test_attributes_of_data_frames_on_a_table(table, name):
    with pytest.raises(AttributeError, match=r"Fix: .*(table\.|never released)") as error:
        getattr(table, name)
    assert error.value.name == name
    assert not any(value in str(error.value) for value in HIDDEN)
    assert not hasattr(table, name)


@pytest.mark.parametrize(
    ("name", "fix"),
    [("dep_delay", "dp.col('dep_delay')"), ("wher", "write where"), ("nothing_like_it", "help(Table)")],
)
def test_other_attributes_of_a_table(table, name, fix):
    with pytest.raises(AttributeError) as error:
        getattr(table, name)
    assert fix in str(error.value)


@pytest.mark.parametrize("name", sorted(attribute_hints.QUESTION))
def test_answers_are_had_by_release(table, name):
    with pytest.raises(AttributeError, match=r"question\.release\(epsilon=1\)"):
        getattr(table.sql(BY_ORIGIN), name)


def test_answers_say_what_they_have(table):
    answer = table.sql(BY_ORIGIN).release(epsilon=1)
    for name, fix in [*attribute_hints.ANSWER.items(), ("n", "answer['n']")]:
        with pytest.raises(AttributeError) as error:
            getattr(answer, name)
        assert fix in str(error.value)
    with refuses(dp.InvalidArgument, "write 'origin'"):
        answer["orgin"]
    with refuses(dp.InvalidArgument, "answer.rows"):
        answer[0]
    assert copy.deepcopy(answer) == answer == pickle.loads(pickle.dumps(answer))  # nothing but what pickle made


def test_a_table_has_no_rows_to_count_or_show(table):
    question = table.sql(BY_ORIGIN)
    assert table
    assert question
    with refuses(dp.WrongType, "table.agg(n=dp.count())"):
        len(table)
    with refuses(dp.WrongType, "never released"):
        list(table)
    with refuses(dp.WrongType, "dp.mean('dep_delay')"):
        table["dep_delay"]
    for attempt in (len, list, lambda item: item["n"]):
        with refuses(dp.WrongType, "question.release(epsilon=1)"):
            attempt(question)


def test_grouping_by_a_list_is_grouping_by_its_columns(table):
    columns = table.group_by(["origin", "month"]).agg(n=dp.count()).query
    assert columns == table.group_by("origin", "month").agg(n=dp.count()).query


REFUSED = [
    (lambda table: table.group_by("carier"), dp.InvalidArgument, "write 'carrier'"),
    (lambda table: table.agg({"dep_delay": "mean"}), dp.WrongType, "mean_dep_delay=dp.mean('dep_delay')"),
    (lambda table: table.group_by("origin").agg(dp.count()), dp.WrongType, "agg(n=dp.count())"),
    (lambda table: table.group_by("origin").agg(m="mean"), dp.WrongType, "agg(m=dp.mean('column'))"),
    (lambda table: table.agg(m=("dep_delay", "mean")), dp.WrongType, "agg(m=dp.mean('column'))"),
    (lambda table: table.agg(), dp.InvalidArgument, "agg(n=dp.count())"),
    (lambda table: table.group_by("origin").release(epsilon=1), dp.InvalidArgument, ".agg(n=dp.count())"),
    (lambda table: table.agg(m=dp.mean("origin")), dp.InvalidArgument, "count instead"),
    (lambda table: table.agg(m=dp.mean("dep_dely")), dp.InvalidArgument, "write 'dep_delay'"),
    (lambda table: table.where(lambda row: row.month > 3), dp.WrongType, "col('amount') > 5"),
    (lambda table: table.where(dp.col("dep_delay") == None), dp.InvalidArgument, "is_null()"),  # noqa: E711
    (lambda table: table.where((dp.col("month") > 3) and (dp.col("month") < 5)), dp.WrongType, "& | ~"),
    (lambda table: table.sql(BY_ORIGIN).release(epsilon="1"), dp.WrongType, "int, float"),
    (lambda table: table.sql(BY_ORIGIN).release(epsilon=-1), dp.InvalidArgument, "epsilon=1"),
    (lambda table: table.sql(BY_ORIGIN).release(), dp.InvalidArgument, "epsilon=0.5"),
    (lambda table: table.sql(BY_ORIGIN).release(eps=1), dp.WrongType, "'epsilon'"),
    (lambda table: table.sql(BY_ORIGIN).release(1, max_row=3), dp.WrongType, "'max_rows'"),
    (lambda table: table.sql(BY_ORIGIN).release(1, max_rows="3"), dp.WrongType, "as an int"),
    (lambda table: table.sql(BY_ORIGIN).release(1, noise="normal"), dp.InvalidArgument, "'gaussian'"),
    (lambda table: table.sql(BY_ORIGIN).release(error="1"), dp.InvalidArgument, "give 1 as a number, or '1%'"),
    (lambda table: table.sql(BY_ORIGIN).release(error=0), dp.InvalidArgument, "positive"),
    (lambda table: table.sql(BY_ORIGIN).release(1, error=5), dp.InvalidArgument, "both"),
    (lambda table: table.sql(None), dp.WrongType, "as a str"),
]  # fmt: skip


@pytest.mark.parametrize(("attempt", "kind", "fix"), REFUSED, ids=[fix for _, _, fix in REFUSED])
def test_wrong_arguments_are_refused_before_any_charge(table, attempt, kind, fix):
    before = table.accounts.remaining(None)
    with refuses(kind, fix, hiding=HIDDEN):
        attempt(table)
    assert table.accounts.remaining(None) == before


@pytest.mark.parametrize(("name", "instead"), [("avg", "dither.mean"), ("read_csv", "dither.open"), ("xyz", "'xyz'")])
def test_names_of_the_package(name, instead):
    with pytest.raises(AttributeError, match=instead):
        getattr(dp, name)


def test_completion_shows_what_a_question_is_asked_with():
    with dp.open(pa.table({"r": ["a", "b"]}), budget=dp.PureDP(1)) as table:
        for item in (table, table.group_by("r"), table.sql("SELECT COUNT(*) AS n FROM data")):
            names = [name for name in dir(item) if not name.startswith("_")]
            assert {"agg", "where", "group_by"} <= set(names)
            assert not {"accounts", "backend", "engine", "temporary_folder", "incident_log", "query", "about"} & set(
                names
            )
            assert all(hasattr(item, name) for name in names)


@each("name", ["count", "mean", "sum", "median", "size", "nunique", "aggregate", "filter"])
def test_what_is_tried_after_group_by_is_answered_with_what_to_write(name):
    opened, refused = dp.open(pa.table({"r": ["a", "b"]}), budget=dp.PureDP(1)), pytest.raises(AttributeError)
    with opened as table, refused as error:
        getattr(table.group_by("r"), name)
    assert "Fix: write " in str(error.value)


def test_different_values_are_not_people():
    with pytest.raises(AttributeError, match=r"COUNT\(DISTINCT x\)"):
        _ = dp.nunique
    with (
        dp.open(pa.table({"r": ["a", "b"]}), budget=dp.PureDP(1)) as table,
        pytest.raises(AttributeError, match=r"COUNT\(DISTINCT column\)"),
    ):
        _ = table.nunique
