"""Advice is followed: what a refusal says to write is pasted into the question, and the question is planned."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp, parse_one
from sqlglot.errors import ParseError

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.sql.mistakes import FUNCTIONS
from dither.tables.sql.parse import parse
from support import refuses
from tables.sql.claims import CARD, TABLES

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


WRITTEN = sorted(name for name, text in FUNCTIONS.items() if text.startswith("write ") and "{x}" in text)


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
    fix = fix_of(f"SELECT COUNT(*) AS n FROM visits v WHERE {condition}", CARD)
    pasted = f"SELECT COUNT(*) AS n FROM visits v {fix.removeprefix('join it: write ')}"
    assert is_planned(pasted, CARD)
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
    advised = re.search(r"add (\S+ = \S+) to", fix_of(sql.format(""), CARD))
    assert advised is not None
    assert is_planned(sql.format(clause + advised[1]), CARD)


def test_bounds_that_are_not_found_are_stated_as_the_note_says():
    assert set(TABLES) == {"visits", "claims", "plans"}
    inner = "(SELECT pid, SUM(amount) AS x FROM visits GROUP BY pid) AS s"
    assert is_planned(f"SELECT AVG(x, contribution_bounds_per_row => (0, 100)) AS m FROM {inner}", CARD)
