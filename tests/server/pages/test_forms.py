"""Forms: numbers that are none are refused, what was chosen becomes SQL, and what a page says about a table is so."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import FormData

import dither as dp
from dither.errors import DitherError, InvalidArgument
from dither.server.pages.forms import (
    OPERATORS,
    Condition,
    QuestionFields,
    budget_meter,
    completion_words,
    contribution,
    example,
    identifier,
    limit_of,
    literal,
    measures,
    number,
    options_in_words,
    question_fields,
    sql_of,
    tables_in_words,
    text_of,
)  # fmt: skip
from dither.tables.card.model import Card, ColumnCard, PrivateTable


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "inf", "1e400", "ten", "1;2", "\u0661", "0x10"])
def test_no_number_is_refused_in_words(text):
    with pytest.raises(InvalidArgument, match="expected a number above 0"):
        number(text, "ε")


def test_a_form_becomes_options():
    form = FormData([("by", "error"), ("error", "50"), ("epsilon", "1"), ("bias", "yes"), ("again", "no")])
    assert question_fields(form).options() == {"error": 50.0, "bias": True}
    assert question_fields(form).flags == ("bias",)
    assert QuestionFields().flags == ()
    assert QuestionFields(by="error", error="2.5%").options() == {"error": "2.5%"}


def test_a_limit_is_in_epsilon_with_or_without_delta_or_in_rho():
    assert limit_of(FormData([("epsilon", "2")])) == dp.PureDP(2)
    assert limit_of(FormData([("rho", "0.5")])) == dp.ZCDP(0.5)
    assert limit_of(FormData([])) is None
    for fields in ([("rho", "1"), ("epsilon", "1")], [("delta", "1e-6")]):
        with pytest.raises(InvalidArgument):
            limit_of(FormData(fields))


def test_long_texts_are_refused():
    with pytest.raises(InvalidArgument, match="at most 5 characters"):
        text_of(FormData([("name", "123456")]), "name", 5)


COLUMNS = {
    "who": ColumnCard("integer"),
    "Home town": ColumnCard("text", keys=("a", "b")),
    'quo"te': ColumnCard("text"),
    "amount": ColumnCard("number", bounds=(0, 9)),
    "free": ColumnCard("number"),
    "vip": ColumnCard("boolean"),
    "day": ColumnCard("date"),
}

ABOUT = PrivateTable("", COLUMNS, "who")


@pytest.fixture(scope="module")
def table():
    rows = pa.table(
        {
            "who": [1, 2], "Home town": ["a", "b"], 'quo"te': ["x", "y"], "amount": [1.0, 2.0], "free": [1.0, 2.0],
            "vip": [True, False], "day": pa.array(["2026-01-01", "2026-01-02"]).cast(pa.date32()),
        }
    )  # fmt: skip
    options = {"unit": "who", "bounds": {"amount": (0, 9)}, "keys": {"Home town": ["a", "b"]}}
    with dp.open(rows, **options, name="t", budget=dp.ApproxDP(9, 1e-5), delta=1e-9, max_groups=2) as result:
        yield result


def test_every_measure_and_group_can_be_asked(table):
    every = [item.value for item in measures(ABOUT)]
    assert every == ["rows", "people", "avg:amount", "sum:amount", "median:amount"]
    for groups in ([], ["Home town"], ['quo"te'], ["vip", "Home town"]):
        sql = sql_of("t", ABOUT, every, groups, [])
        assert table.sql(sql).explain(epsilon=1).cost


@pytest.mark.parametrize("operator", OPERATORS)
def test_conditions_of_every_type_can_be_asked(table, operator):
    values = {"Home town": "O'Brien; DROP TABLE t --", "amount": "2.5", "day": "2026-01-01", "vip": "yes"}
    for column, value in values.items():
        if column == "vip" and operator not in ("=", "<>"):
            continue
        sql = sql_of("t", ABOUT, ["rows"], [], [Condition(column, operator, value)])
        assert table.sql(sql).explain(epsilon=1).cost


@pytest.mark.parametrize(
    ("chosen", "groups", "conditions"),
    [
        ([], [], []),
        (["rows", "avg:free"], [], []),
        (["COUNT(*) FROM other"], [], []),
        (["rows"], ["who"], []),
        (["rows"], ["amount"], []),
        (["rows"], ["1; DROP TABLE t"], []),
        (["rows"], [], [Condition("nowhere", "=", "1")]),
        (["rows"], [], [Condition("amount", "= 1 OR 1 =", "1")]),
        (["rows"], [], [Condition("amount", "=", "1 OR 1=1")]),
        (["rows"], [], [Condition("day", "=", "today'")]),
        (["rows"], [], [Condition("vip", "=", "TRUE OR TRUE")]),
    ],
)
def test_what_the_form_does_not_offer_is_refused(chosen, groups, conditions):
    with pytest.raises(InvalidArgument, match="expected"):
        sql_of("t", ABOUT, chosen, groups, conditions)


@given(st.text())
def test_a_name_or_a_text_stays_one_token(text):
    name, value = identifier(text), literal(text, "text")
    assert name == text or (name[0] + name[-1] == '""' and '"' not in name[1:-1].replace('""', ""))
    assert value[0] + value[-1] == "''"
    assert "'" not in value[1:-1].replace("''", "")


ROWS = pa.table({"who": [1, 2], "kind": ["a", "b"], "word": ["x", "y"], "size": [1.0, 2.0], "free": [1.0, 2.0]})


def opened(**options):
    stated = {"unit": "who", "bounds": {"size": (0, 9)}, "keys": {"kind": ["a", "b"]}, "name": "t"}
    return dp.open(ROWS, budget=dp.PureDP(9), **stated, **options)


def test_what_the_page_says_is_forbidden_is_refused_and_the_rest_is_not():
    with opened() as table:
        words = {column.name: column for column in tables_in_words(table.card)["t"]}
        for name, sql in (("free", "AVG(free)"), ("size", "AVG(size)")):
            question = f"SELECT {sql} AS x FROM t"
            if "AVG" in words[name].forbids:
                with pytest.raises(DitherError):
                    table.sql(question).explain(epsilon=1)
            else:
                assert table.sql(question).explain(epsilon=1).cost
        for name in ("kind", "word", "free"):
            question = f"SELECT {name}, COUNT(*) AS n FROM t GROUP BY {name}"
            if "GROUP BY:" in words[name].forbids:
                with pytest.raises(DitherError):
                    table.sql(question).explain(epsilon=1)
            else:
                assert table.sql(question).explain(epsilon=1).cost
        assert words["who"].person
        assert words["size"].bounds == "0 to 9"
        assert words["kind"].keys == "a, b"


def test_the_example_can_be_asked():
    with opened() as table:
        assert table.sql(example(table.card)).explain(epsilon=1).cost
    with dp.open(ROWS, name="odd", budget=dp.PureDP(1)) as table:
        assert table.sql(example(table.card)).explain(epsilon=1).cost


def test_suggestions_are_names_and_functions():
    with opened() as table:
        words = dict(json.loads(completion_words(table.card)))
    assert (words["t"], words["kind"], words["COUNT("], words["ABS("]) == ("table", "text", "aggregate", "function")


def test_many_keys_are_cut_and_public_tables_are_named():
    columns = {"key": ColumnCard("integer", keys=tuple(range(40)))}
    card = Card("t", "", columns, public={"p": dp.tables.card.model.PublicTable("p.csv", {"a": ColumnCard("text")})})
    words = tables_in_words(card)
    assert list(words) == ["t", "p"]
    assert words["t"][0].keys.endswith("11 and 28 more")
    assert words["p"][0].forbids == ""
    assert contribution(card) == "One row: each row is a person."


def test_amounts_meters_and_options():
    assert budget_meter(dp.PureDP(2), None)[0].spent == 100.0
    assert budget_meter(None, None) == (None, "ε")
    assert budget_meter(dp.ZCDP(2), dp.PureDP(1)) == (None, "ρ")
    assert budget_meter(dp.PureDP(2), dp.PureDP(2.5)) == (None, "ε"), "the card says less than the ledger"
    assert options_in_words({"error": 50, "noise": "best", "max_rows": 3}) == ["± = 50", "max_rows = 3"]
