"""What the limits do to an answer is said where it applies: in the explanation, in the answer's notes, on its page."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import dither as dp
from support import noted

ROWS = pa.table(
    {
        "who": [i % 20 for i in range(200)],
        "region": ["a", "b"] * 100,
        "kind": ["x", "y"] * 100,
        "age": [i % 90 for i in range(200)],
    }
)
LOW, LEAN = "may be too low by an unknown amount", "favor people with few rows"
ALL = {LOW, LEAN}


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
    "MEDIAN(age) AS m": {LEAN},
    "QUANTILE(age, 0.9) AS m": {LEAN},
    "MIN(age) AS m": {LEAN},
    "MODE(kind) AS m": {LEAN},
    "COUNT(*) AS n, COUNT(DISTINCT who) AS p": {LOW},
    "COUNT(*) AS n, AVG(age) AS m": ALL,
    "COUNTIF(age > 50) / COUNT(*) AS share": {LOW},
    "SUM(age) / COUNT(*) AS mean_age, MEDIAN(age) AS m": ALL,
}


def said(text: str) -> set[str]:
    return {sentence for sentence in ALL if sentence in text}


@pytest.mark.parametrize("columns", CASES)
def test_what_applies_is_said_and_nothing_else(table, columns):
    question = table.sql(f"SELECT {columns} FROM data")
    answer = question.release(1)
    assert said(str(question.explain(1))) == CASES[columns]
    assert said(str(answer)) == CASES[columns]
    assert said(dp.present.html(answer)) == CASES[columns]


@pytest.mark.parametrize("columns", [columns for columns in CASES if "DISTINCT" not in columns])
def test_where_every_row_is_a_person_nothing_is_left_out(rows_are_people, columns):
    question = rows_are_people.sql(f"SELECT {columns} FROM data")
    assert said(str(question.explain(1))) == said(str(question.release(1))) == set()
    assert "excluded" not in str(question.release(1))
    assert "unknown amount" not in dp.present.html(question.release(1))


def test_a_histogram_in_python(table):
    question = table.agg(h=dp.histogram("age", edges=[0, 50, 100]))
    assert said(str(question.explain(1))) == said(str(question.release(1))) == {LOW}


def test_people_lose_groups_too(table):
    question = table.sql("SELECT region, COUNT(DISTINCT who) AS n FROM data GROUP BY region")
    assert said(str(question.explain(1))) == {LOW}
    assert said(str(question.explain(1, max_groups=2))) == set()  # there are no more than two
    assert "a privately chosen number of groups" in str(question.explain(1, max_groups="auto"))


def test_the_sentence_has_the_limits(table):
    question = table.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region")
    assert "Each person counts for at most 5 rows." in str(question.release(1, max_rows=5))
    both = str(question.release(1, max_rows=5, max_groups=2))
    assert "Each person counts for at most the weight of 5 rows in each of 2 groups." in both
    assert "which the ± does not include" in both


def test_an_answer_that_will_say_what_is_left_out_is_announced(table):
    question = table.sql("SELECT COUNT(*) AS n FROM data")
    for options in ({"max_rows": "auto"}, {"bias": True}):
        stated = str(question.explain(1, **options))
        assert "the answer will state the share of rows that is excluded" in stated
        assert LOW not in stated
        assert re.search(r"learned privately: (max_rows|bias) for ε = 0\.", stated)
    assert "times the limit that is chosen" in str(question.explain(1, max_rows="auto"))


def test_an_error_is_said_in_widths_of_the_bounds_where_these_are_chosen_later(table):
    """The bounds 0 and 1 stand in for them, so that the error is that of bounds of a width of 1."""
    question = table.agg(m=dp.mean("age", bounds="auto"), s=dp.sum("age", bounds="auto"), n=dp.count())
    mean, total, count = question.explain(1, max_rows=1).lines
    assert "times the width of the bounds that are chosen with 1,000 rows" in mean["expected"]
    assert mean["mechanism"].endswith(" rows in each of 3 parts")
    assert "times the largest of the bounds that are chosen" in total["expected"]
    assert (mean["error"], total["error"]) == (None, None)
    assert "chosen" not in count["expected"]
    relation = "SELECT AVG(total) AS m FROM (SELECT who, SUM(age) AS total FROM data GROUP BY who) AS p"
    [line] = table.sql(relation).explain(1, max_rows="auto").lines
    assert "times the width of the bounds that are chosen with 1,000 rows" in line["expected"]


def test_from_how_many_people_on_a_group_is_shown_depends_on_a_choice(table):
    with dp.open(ROWS, unit="who", budget=dp.ApproxDP(10, 0.1), delta=1e-6) as opened_without_keys:
        question = opened_without_keys.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region")
        chosen = question.explain(1, max_rows=1, max_groups="auto").groups
        stated = question.explain(1, max_rows=1, max_groups=2).groups
    assert "if max_groups = 1 is chosen, and from more for a larger one" in chosen
    assert "chosen" not in stated


def test_every_line_says_what_is_measured_and_the_noise_in_units_of_the_answer(table):
    columns = "COUNT(age) AS c, SUM(age) AS s, AVG(age) AS m, MEDIAN(age) AS q, COUNT(DISTINCT who) AS p"
    lines = {line["answer"]: line for line in table.sql(f"SELECT {columns} FROM data").explain(50).lines}
    assert lines["c"]["measure"] == lines["m"]["measure"] == "the number and the sum of the values"
    assert "rows" in lines["c"]["mechanism"]
    assert "people" in lines["p"]["mechanism"]
    assert lines["m"]["error"] is None
    assert "with 1,000 rows in a group" in lines["m"]["expected"]
    assert lines["s"]["expected"].startswith("± ")
    assert "its rank within" in lines["q"]["expected"]
    [alone] = table.sql("SELECT SUM(age) AS s FROM data").explain(1).lines
    deviation = float(alone["mechanism"].rpartition(" ")[2])  # 99 times sqrt(2), with one row of a person and ε = 1
    assert deviation == pytest.approx(99 * 2**0.5, rel=0.02)
    assert "part" not in table.sql("SELECT COUNT(age) AS n FROM data").explain(1).lines[0]["measure"]


def test_an_explanation_in_a_notebook_is_escaped(table):
    question = table.sql('SELECT COUNT(*) AS "<b>n" FROM data')
    page = question.explain(1)._repr_html_()
    assert "&lt;b&gt;n" in page
    assert "<b>" not in page


def test_a_count_beside_a_mean_says_why_its_error_is_larger():
    rows = pa.table({"age": [30.0, 40.0] * 50})
    with dp.open(rows, bounds={"age": (0, 100)}, budget=dp.PureDP(10)) as table:
        alone = table.agg(n=dp.count()).explain(epsilon=1)
        beside = table.agg(n=dp.count(), m=dp.mean("age")).explain(epsilon=1)
        shared = table.agg(n=dp.count(), d=dp.count_distinct("age")).explain(epsilon=1)
    assert beside.lines[0]["error"] > alone.lines[0]["error"]
    assert " in each of 3 parts" in beside.lines[0]["mechanism"]
    assert "parts" not in alone.lines[0]["mechanism"]
    assert noted(beside, "shared_parts") == [{"names": ["n"], "others": ["m"]}]
    assert shared.lines[0]["error"] > alone.lines[0]["error"]
    assert noted(shared, "shared_epsilon")
    assert not noted(alone, "shared_parts", "shared_epsilon")


@pytest.mark.parametrize("aggregate", ["MAX(x)", "MIN(x)", "MEDIAN(x)"])
def test_what_is_chosen_among_bins_says_how_wide_they_are(aggregate):
    """8192 bins between the bounds: a value is the middle of one, and nothing is known of where in it the truth is."""
    rows = pa.table({"x": [float(i % 8192) + 0.9 for i in range(100_000)], "k": list(range(100_000))})
    bounds = {"x": (0.0, 8192.0 * 4), "k": (0, 100)}
    with dp.open(rows, bounds=bounds, budget=dp.PureDP(10)) as opened:
        question = opened.sql(f"SELECT {aggregate} AS m FROM data")
        kinds = ("extreme_rank", "quantile_rank")
        answer = question.release(1, quantile_interval=aggregate != "MEDIAN(x)")
        for said in (question.explain(1), answer):
            assert [values["bin_width"] for values in noted(said, *kinds)] == [4]
        assert answer["m"][0] % 4 == 2  # the middle
        whole = opened.sql(f"SELECT {aggregate.replace('x', 'k')} AS m FROM data")
        assert [values["bin_width"] for values in noted(whole.explain(1), *kinds)] == [None]
        chosen = opened.agg(m=dp.median("x", bounds="auto"))
        assert [values["bin_width"] for values in noted(chosen.explain(1), *kinds)] == [None]
