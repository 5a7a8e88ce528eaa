"""What the limits do to an answer is said where it applies: in the explanation, in the answer's notes, on its page."""

from __future__ import annotations

import pyarrow as pa
import pytest

import dither as dp

ROWS = pa.table(
    {
        "who": [i % 20 for i in range(200)],
        "region": ["a", "b"] * 100,
        "kind": ["x", "y"] * 100,
        "age": [i % 90 for i in range(200)],
    }
)
LOW, LEAN = "come out too low", "lean toward people with few rows"
ONCE, RATIO = "each distinct (person, value) pair counts once", "can be far from that of all rows"
ALL = {LOW, LEAN, ONCE, RATIO}


def opened(unit: str | None):
    keys = {"region": ["a", "b"], "kind": ["x", "y"]}
    return dp.open(ROWS, unit=unit, keys=keys, bounds={"age": (0, 99)}, budget=dp.PureDP(4000))


@pytest.fixture(scope="module")
def table():
    with opened("who") as result:
        yield result


@pytest.fixture(scope="module")
def rows_are_people():
    with opened(None) as result:
        yield result


CASES = {
    "COUNT(*) AS n": {LOW},
    "COUNT(age) AS n": {LOW},
    "SUM(age) AS s": {LOW},
    "AVG(age) AS m": {LEAN},
    "STDDEV(age) AS m": {LEAN},
    "COUNT(DISTINCT who) AS n": set(),
    "MEDIAN(age) AS m": {LEAN, ONCE},
    "QUANTILE(age, 0.9) AS m": {LEAN, ONCE},
    "MIN(age) AS m": {LEAN, ONCE},
    "MODE(kind) AS m": {LEAN, ONCE},
    "COUNT(*) AS n, COUNT(DISTINCT who) AS p": {LOW, RATIO},
    "COUNT(*) AS n, AVG(age) AS m": {LOW, LEAN},
    "COUNTIF(age > 50) / COUNT(*) AS share": {LOW, RATIO},
    "SUM(age) / COUNT(*) AS mean_age, MEDIAN(age) AS m": ALL,
}


def said(text: str) -> set[str]:
    return {sentence for sentence in ALL if sentence in text}


@pytest.mark.parametrize("columns", CASES)
def test_what_applies_is_said_and_nothing_else(table, columns):
    question = table.sql(f"SELECT {columns} FROM data")
    answer = question.release(1)
    assert said(str(question.explain(1))) == CASES[columns]
    assert said("\n".join(answer.notes)) == CASES[columns]
    assert said(str(answer)) == CASES[columns]
    assert said(dp.report.html(answer)) == CASES[columns]


@pytest.mark.parametrize("columns", [columns for columns in CASES if "DISTINCT" not in columns])
def test_where_every_row_is_a_person_nothing_is_left_out(rows_are_people, columns):
    question = rows_are_people.sql(f"SELECT {columns} FROM data")
    assert said(str(question.explain(1))) == said(str(question.release(1))) == set()
    assert "left out" not in str(question.release(1))


def test_a_histogram_in_python(table):
    question = table.agg(h=dp.histogram("age", edges=[0, 50, 100]))
    assert said(str(question.explain(1))) == said(str(question.release(1))) == {LOW, ONCE}


def test_a_ratio_is_named_by_its_column(table):
    stated = str(table.sql("SELECT COUNTIF(age > 50) / COUNT(*) AS share, COUNT(*) AS n FROM data").explain(1))
    assert "share: the numbers that are divided" in stated


def test_people_lose_groups_too(table):
    question = table.sql("SELECT region, COUNT(DISTINCT who) AS n FROM data GROUP BY region")
    assert said(str(question.explain(1))) == {LOW}
    assert "at most 1 group(s) count" in str(question.release(1))
    assert said(str(question.explain(1, max_groups=2))) == set()  # there are no more than two
    assert said(str(question.explain(1, max_groups="auto"))) == {LOW}
    assert "some groups" in str(question.explain(1, max_groups="auto"))


def test_the_sentence_has_the_limits(table):
    stated = str(table.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region").release(1, max_rows=5))
    assert "of each person at most 1 group(s) and at most 5 row(s) in each group count" in stated
    assert "which the ± does not include" in stated


def test_a_count_with_one_row_of_each_person_says_what_more_rows_would_do(table):
    once = "COUNT(*) counts each person once in a group here"
    question = table.sql("SELECT COUNT(*) AS n FROM data")
    assert once in str(question.explain(1))
    assert "rows may be left out" in str(question.explain(1))
    assert once not in str(question.explain(1, max_rows=20))
    assert once not in str(table.sql("SELECT COUNT(DISTINCT who) AS n FROM data").explain(1))
