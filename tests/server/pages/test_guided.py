"""The guided form writes SQL that asks what was chosen, and nothing that was typed becomes SQL of its own."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dp
from dither.errors import InvalidArgument
from dither.server.pages.forms import OPERATORS, Condition, identifier, literal, measures, sql_of
from dither.tables.card.model import ColumnCard, PrivateTable

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
