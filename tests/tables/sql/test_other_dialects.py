"""Hints for functions of other engines: none is for one that dither has, and what they say can be copied."""

from __future__ import annotations

import re
from datetime import date, timedelta

import duckdb
import pyarrow as pa
import pytest

from dither.errors import InvalidArgument
from dither.tables.query import operations
from dither.tables.query.evaluate import evaluate, typed
from dither.tables.sql.expressions import AGGREGATES, syntax
from dither.tables.sql.mistakes import FUNCTIONS, NODES
from dither.tables.sql.parse import parse
from support import each, refuses
from tables.questions import CARD

KNOWN = {*operations.FUNCTIONS, *operations.SPECIAL_FUNCTIONS, *AGGREGATES}


@each("name", sorted(FUNCTIONS))
def test_the_hint_for_a_function_is_said(name):
    assert name not in KNOWN
    with refuses(InvalidArgument, FUNCTIONS[name].partition("{")[0].split(":")[0], "Fix: ") as refusal:
        parse(f"SELECT {name}(age) FROM visits", CARD)
    assert "{" not in str(refusal.value)


def test_functions_that_hints_name_are_known():
    """A fix must not lead to a function that is refused as well."""
    named = {word for text in FUNCTIONS.values() for word in re.findall(r"\b([A-Z][A-Z_0-9]+)\(", text)}
    named |= {word for _, text in NODES.values() for word in re.findall(r"\b([A-Z][A-Z_0-9]+)\(", text)}
    assert named <= KNOWN | {"CAST", "COUNT", "EXTRACT", "AGE"}


DAYS = [date(2019, 12, 31) + timedelta(days) for days in range(0, 1900, 7)]
DAYS += [date(year, month, day) for year in (2020, 2023, 2024) for month, day in ((2, 28), (3, 1), (1, 1), (12, 31))]
DAYS += [date(2020, 2, 29), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1900, 2, 28)]


def test_the_advice_for_age_is_what_age_means():
    """Complete years, where DATE_DIFF('year', …) counts the turns of the year."""
    with refuses(InvalidArgument) as refusal:
        parse("SELECT AVG(AGE(DATE '2024-01-31', day)) FROM visits", CARD)
    advised = re.search(r"EXTRACT\(.*\)\)", str(refusal.value))
    assert advised is not None
    value = parse(f"SELECT AVG({advised.group()}) AS a FROM visits", CARD).aggregates["a"].value
    assert value == parse("SELECT AVG(YEAR(AGE(DATE '2024-01-31', day))) AS a FROM visits", CARD).aggregates["a"].value
    with duckdb.connect() as connection:
        connection.register("days", pa.table({"d": DAYS}))
        for end in (date(2024, 1, 31), date(2024, 2, 29), date(2023, 2, 28), date(2020, 2, 29), date(2021, 12, 31)):
            ages = f"YEAR(AGE(DATE '{end}', d)), YEAR(AGE(d, DATE '{end}'))"
            for day, since, until in connection.sql(f"SELECT d, {ages} FROM days").fetchall():
                for text, expected in ((f"AGE(DATE '{end}', day)", since), (f"AGE(day, DATE '{end}')", until)):
                    expression, _ = typed(syntax(f"EXTRACT(YEAR FROM {text})"), lambda _: "date")
                    assert evaluate(expression, {"day": day}) == expected, (text, day)


@pytest.mark.parametrize("text", ["EXTRACT(MONTH FROM AGE(day, day))", "YEAR(AGE(day))", "AGE(day, day)"])
def test_other_parts_of_age_are_refused(text):
    with refuses(InvalidArgument, "EXTRACT(YEAR FROM AGE("):
        parse(f"SELECT AVG({text}) FROM visits", CARD)
