"""Texts that cannot be read; ``tables/refusals`` has a text for each rule, and what is written after its advice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one
from sqlglot.errors import ParseError

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.query import operations
from dither.tables.query.evaluate import evaluate, typed
from dither.tables.sql.aggregates import AGGREGATES, syntax
from dither.tables.sql.parse import parse
from dither.tables.sql.text import FUNCTION_HINTS, REFUSED_NODES
from support import each, refuses
from tables.questions import CARD
from tables.sql.claims import CARD as CLAIMS
from tables.sql.claims import TABLES


@pytest.mark.parametrize("sign", "‘’“”（），＝＞≥≠−\u200b\ufeff")
def test_unusual_signs_are_refused_outside_of_texts_and_names_only(sign):
    with refuses(InvalidArgument, f"U+{ord(sign):04X}"):
        parse(f"SELECT COUNT(*) FROM visits WHERE age {sign} 1", CARD)
    assert parse(f"SELECT COUNT(*) AS \"n {sign}\" FROM visits WHERE region = 'a{sign}b'", CARD).where


WORDS = [
    *("SELECT", "COUNT(*)", "FROM", "visits", "WHERE", "age", ">", "1", "GROUP", "BY", "region", "'a'", "(", ")", ","),
    *("IN", "BETWEEN", "AND", "CASE", "WHEN", "%", "s", "AS", "=>", "TOP", "[", "]", "LIKE", "{", "}", "#", "="),
]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))
def test_any_words_are_a_question_or_refused_in_order(words):
    try:
        parse(" ".join(words), CARD)
    except InvalidArgument as error:
        with refuses(InvalidArgument):
            raise error


KNOWN = {*operations.FUNCTIONS, *operations.SPECIAL_FUNCTIONS, *AGGREGATES}


@each("name", sorted(FUNCTION_HINTS))
def test_the_hint_for_a_function_is_said(name):
    assert name not in KNOWN
    with refuses(InvalidArgument, FUNCTION_HINTS[name].partition("{")[0].split(":")[0], "Fix: ") as refusal:
        parse(f"SELECT {name}(age) FROM visits", CARD)
    assert "{" not in str(refusal.value)


def test_functions_that_hints_name_are_known():
    """A fix must not lead to a function that is refused as well."""
    named = {word for text in FUNCTION_HINTS.values() for word in re.findall(r"\b([A-Z][A-Z_0-9]+)\(", text)}
    named |= {word for _, text in REFUSED_NODES.values() for word in re.findall(r"\b([A-Z][A-Z_0-9]+)\(", text)}
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


VISITS = Card(
    "visits",
    "",
    {
        "person": ColumnCard("integer"),
        "region": ColumnCard("text", keys=("north", "south")),
        "amount": ColumnCard("number", (0, 100)),
        "vip": ColumnCard("boolean"),
        "day": ColumnCard("date"),
        "at": ColumnCard("timestamp"),
    },
    unit="person",
    budget=dp.ApproxDP(10, 1e-3),
    delta=1e-6,
)
FORMS = (
    "SELECT {0} AS a FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE ({0}) IS NOT NULL",
    "SELECT COUNT(*) AS n FROM visits WHERE region = 'north' AND {0}",
    "SELECT AVG({0}, contribution_bounds_per_row => (0, 100)) AS n FROM visits",
)


def fix_of(sql: str, card: Card) -> str:
    """What the refusal of a question says to do."""
    with refuses(InvalidArgument, "Fix: ") as refusal:
        plan_question(parse(sql, card), card, ReleaseOptions(epsilon=1))
    return str(refusal.value).partition("Fix: ")[2].removesuffix(".")


def is_planned(sql: str, card: Card) -> bool:
    try:
        plan_question(parse(sql, card), card, ReleaseOptions(epsilon=1))
    except InvalidArgument:
        return False
    return True


def pieces(fix: str) -> Iterator[str]:
    """What a fix says to write: each of its alternatives that is SQL, from "write" up to a reason in words."""
    advised = fix.removeprefix("write ").partition(": ")[0]
    advised = re.sub(r" for (complete years|days|texts that.*)$|, AS .*$|, or a .*$", "", advised)
    for piece in re.split(r"(?:, or |, | or )(?=[A-Z][A-Z_0-9]*\()", advised):
        try:
            node = parse_one(piece, dialect="duckdb")
        except ParseError:
            continue
        if not isinstance(node, (exp.Column, exp.Alias, exp.Literal)):
            yield piece


WRITTEN = sorted(name for name, text in FUNCTION_HINTS.items() if text.startswith("write ") and "{x}" in text)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_advised_for_a_function_is_planned_for_some_column(name):
    """For a column of some type: a function of texts takes no dates, and what is meant for them takes no texts."""
    planned: dict[int, bool] = {}
    for column in ("region", "amount", "vip", "day", "at"):
        for place, piece in enumerate(pieces(fix_of(f"SELECT {name}({column}) AS a FROM visits", VISITS))):
            pasted = piece.replace("condition", "amount > 5")
            planned[place] = planned.get(place, False) or any(is_planned(form.format(pasted), VISITS) for form in FORMS)
    assert planned
    assert all(planned.values())


def test_the_catalog_is_read_as_it_is_written():
    assert len(WRITTEN) > 50
    assert list(pieces("write LN(x), LOG10(x) or LOG2(x): engines mean different ones by LOG")) == [
        "LN(x)", "LOG10(x)", "LOG2(x)"
    ]  # fmt: skip


@pytest.mark.parametrize("other", ["'none'", "'a'", "2.5"])
def test_truth_values_with_a_third_one_for_null(other):
    written = fix_of(f"SELECT COALESCE(vip, {other}) AS k, COUNT(*) AS n FROM visits GROUP BY k", VISITS)
    pasted = written.removeprefix("write ")
    assert is_planned(f"SELECT {pasted} AS k, COUNT(*) AS n FROM visits GROUP BY k", VISITS)
    values = pa.table({"vip": [True, False, None]})
    with duckdb.connect() as connection:
        found = connection.register("visits", values).sql(f"SELECT {pasted} FROM visits").fetchall()
    yes, no = ("yes", "no") if "'" in other else (1, 0)
    assert [row[0] for row in found] == [yes, no, other.strip("'") if "'" in other else float(other)]


PLANS = pa.table({"kind": ["a", "b"], "plan": ["x", None]})
EXISTS = [
    "EXISTS (SELECT 1 FROM plans p WHERE p.kind = v.kind)",
    "EXISTS (SELECT * FROM plans WHERE v.kind = plans.kind AND plan = 'x')",
    "NOT EXISTS (SELECT 1 FROM plans p WHERE p.kind = v.kind)",
    "NOT EXISTS (SELECT 1 FROM plans WHERE kind = v.kind)",
    "NOT EXISTS (SELECT 1 FROM plans p WHERE p.kind = v.kind AND p.plan = 'x')",
    "NOT EXISTS (SELECT 1 FROM plans p WHERE p.kind = v.kind AND (p.plan = 'x' OR p.plan = 'y') AND p.plan <> 'z')",
]


@pytest.mark.parametrize("condition", EXISTS)
def test_exists_of_a_public_table_is_a_join_that_keeps_the_same_rows(condition):
    """Also rows whose key is NULL, or in no row of the public table, and rows of that with NULL in the condition."""
    fix = fix_of(f"SELECT COUNT(*) AS n FROM visits v WHERE {condition}", CLAIMS)
    pasted = f"SELECT COUNT(*) AS n FROM visits v {fix.removeprefix('join it: write ')}"
    assert is_planned(pasted, CLAIMS)
    visits = pa.table({"kind": ["a", "b", "c", None, "a"]})
    with duckdb.connect() as connection:
        connection.register("visits", visits)
        connection.register("plans", PLANS)
        asked = connection.sql(f"SELECT COUNT(*) FROM visits v WHERE {condition}").fetchall()
        assert connection.sql(pasted).fetchall() == asked


@pytest.mark.parametrize(
    ("sql", "clause"),
    [
        ("SELECT COUNT(*) AS n FROM visits v WHERE EXISTS (SELECT 1 FROM claims c WHERE c.cost > 5{0})", " AND "),
        ("SELECT COUNT(*) AS n FROM visits WHERE NOT EXISTS (SELECT 1 FROM claims WHERE cost > 5{0})", " AND "),
        ("SELECT COUNT(*) AS n FROM visits v JOIN claims c ON v.kind = c.kind{0}", " AND "),
    ],
)
def test_the_person_to_compare_is_named_as_the_question_names_it(sql, clause):
    advised = re.search(r"add (\S+ = \S+) to", fix_of(sql.format(""), CLAIMS))
    assert advised is not None
    assert is_planned(sql.format(clause + advised[1]), CLAIMS)


def test_bounds_that_are_not_found_are_stated_as_the_note_says():
    assert set(TABLES) == {"visits", "claims", "plans"}
    inner = "(SELECT pid, SUM(amount) AS x FROM visits GROUP BY pid) AS s"
    assert is_planned(f"SELECT AVG(x, contribution_bounds_per_row => (0, 100)) AS m FROM {inner}", CLAIMS)
