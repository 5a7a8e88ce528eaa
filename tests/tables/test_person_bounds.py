"""Counts and sums of a person's rows where the limits of the card are far below what people have.

The noise is taken away, and DuckDB on the raw rows says what is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dither as dp
from dither.present.notes import Note
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.sql.parse import parse
from support import noted
from tables.glass import bounded_tables, glass, losses
from tables.glass import card as glass_card
from tables.glass import table as rows_of

PEOPLE = 2000
_random = np.random.default_rng(27)
_PERSON = np.concatenate([np.repeat(np.arange(PEOPLE), 12), np.repeat(np.arange(PEOPLE // 2), 3)])
claims = pd.DataFrame(
    {
        "pid": _PERSON,
        "amount": _random.integers(0, 2001, len(_PERSON)) / 4,
        "qty": _random.integers(0, 10, len(_PERSON)),
        "kind": _random.choice(["a", "b", "c"], len(_PERSON)),
        "step": np.arange(len(_PERSON)),
    }
)
calls = pd.DataFrame({"pid": np.repeat(np.arange(0, PEOPLE, 2), 7), "cost": 1})
STATED: dict[str, Any] = {"max_groups": 1, "max_rows": 3}
CHOSEN: dict[str, Any] = {"max_groups": "auto", "max_rows": "auto"}

_COUNTED = "COUNT(*) AS k, SUM(amount) AS s, SUM(qty) AS q, COUNT(DISTINCT kind) AS d"
K = f"(SELECT pid, {_COUNTED} FROM claims GROUP BY pid) AS t"
BY_KIND = "(SELECT pid, kind, COUNT(*) AS k, SUM(amount) AS s FROM claims GROUP BY pid, kind) AS t"
TWICE = f"(SELECT pid, SUM(k) AS k, AVG(s) AS m, SUM(s) AS s, MAX(k) AS most FROM {BY_KIND} GROUP BY pid) AS u"
LATER = "(SELECT pid, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY step) AS rn, COUNT(*) OVER (PARTITION BY pid) AS c, "
LATER += "SUM(amount) OVER (PARTITION BY pid ORDER BY step) AS run FROM claims) AS w"
JOINED = f"{K.replace(' AS t', ' AS l')} LEFT JOIN (SELECT pid, COUNT(*) AS j FROM calls GROUP BY pid) AS r USING (pid)"
LAST = "(SELECT pid, k, s FROM (SELECT pid, COUNT(*) AS k, SUM(amount) AS s FROM claims GROUP BY pid) AS i) AS t"


def opened(limits: dict[str, Any], budget: dp.Guarantee | None = None) -> dp.Table:
    """The two tables under one card."""
    return dp.open(
        {"claims": claims, "calls": calls}, name="insurer", unit="pid", bounds={"amount": (0, 500), "qty": (0, 9)},
        keys={"kind": ("a", "b", "c")}, budget=budget or dp.ApproxDP(4000, 0.1), delta=1e-6, **limits,
    )  # fmt: skip


@pytest.fixture(scope="module", params=[STATED, CHOSEN], ids=["stated", "chosen"])
def table(request: pytest.FixtureRequest) -> Iterator[dp.Table]:
    with opened(request.param) as result:
        yield result


def answered(table: dp.Table, sql: str, **options: Any) -> tuple[list[dict[str, Any]], dp.Answer]:
    """The rows without noise, and the answer."""
    with glass():
        answer = table.sql(sql).release(epsilon=2.0, noise="laplace", **options)
    return answer.dicts(), answer


def truth(sql: str) -> list[dict[str, Any]]:
    with duckdb.connect() as raw:
        raw.register("claims", claims)
        raw.register("calls", calls)
        result = raw.execute(sql)
        names = [item[0] for item in result.description]
        return [dict(zip(names, line, strict=True)) for line in result.fetchall()]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT AVG(k) AS x FROM {K}",
        f"SELECT SUM(k) AS x FROM {K}",
        f"SELECT STDDEV_SAMP(k) AS x FROM {K}",
        f"SELECT AVG(s) AS x FROM {K}",
        f"SELECT AVG(q) AS x, AVG(d) AS y FROM {K}",
        f"SELECT AVG(k + 1) AS x, AVG(s / k) AS y, SUM(q * d) AS z FROM {K}",
        f"SELECT AVG(CASE WHEN k > 12 THEN s ELSE 0 END) AS x FROM {K}",
        f"SELECT AVG(k) AS k, AVG(m) AS m, AVG(s) AS s, AVG(most) AS most FROM {TWICE}",
        f"SELECT AVG(COALESCE(j, 0)) AS x, AVG(j) AS y FROM {JOINED}",
        f"SELECT AVG(k) AS x, AVG(s) AS y FROM {LAST}",
        f"SELECT AVG(SQRT(k)) AS x, AVG(ROUND(s / k, 1)) AS y, AVG(ABS(k - 13)) AS z FROM {K}",
        "SELECT AVG(x) AS x, AVG(y) AS y FROM "
        f"(SELECT pid, SUM(k * k) AS x, AVG(k - s) AS y FROM {BY_KIND} GROUP BY pid) AS u",
        "SELECT AVG(x) AS x FROM (SELECT pid, SUM(0.5) AS x FROM claims GROUP BY pid) AS u",
        "SELECT AVG(x) AS x FROM (SELECT pid, SUM(cost) AS x FROM calls GROUP BY pid) AS u",
        "SELECT AVG(k) AS x FROM (SELECT pid, COUNT(*) AS k FROM claims GROUP BY pid "
        "UNION ALL SELECT pid, 0 AS k FROM calls GROUP BY pid) AS u",
    ],
)
def test_means_and_sums_of_what_people_have_are_true(table, sql):
    (row,), answer = answered(table, sql)
    (expected,) = truth(sql)
    for name, value in expected.items():
        assert row[name] == pytest.approx(value, rel=2e-3), name
    assert {values["name"] for values in noted(answer, "bounds_chosen")} == {*expected}


def test_the_largest_count_is_that_of_a_person(table):
    (row,), _ = answered(table, f"SELECT MAX(k) AS x, MEDIAN(k) AS y FROM {K}")
    assert row["x"] == 15
    assert row["y"] in (12, 13, 14, 15)  # half of the people have 12, half 15
    (row,), _ = answered(table, f"SELECT MAX(rn) AS x, MAX(c) AS y FROM {LATER}")
    assert row == {"x": 15, "y": 15}


@pytest.mark.parametrize(
    "condition",
    ["k + 0 > 12", "2 * k - 1 > 28", "s * 2 > 6000", "s / k > 250", "q + k > 60", "k % 5 = 0", "FLOOR(s / 100) = 30"],
)
def test_arithmetic_in_conditions_holds_nothing(table, condition):
    sql = f"SELECT COUNT(*) AS n FROM {K} WHERE {condition}"
    rows, answer = answered(table, sql)
    assert rows == truth(sql)
    assert not noted(answer, "bounds_chosen", "bounds_stated", "bounds_not_found")
    of = {"k": "COUNT(*)", "s": "SUM(amount)", "q": "SUM(qty)"}
    written = re.sub(r"\b[ksq]\b", lambda found: of[found[0]], condition)
    having = f"SELECT COUNT(*) AS n FROM (SELECT pid FROM claims GROUP BY pid HAVING {written}) AS h"
    assert answered(table, having)[0] == truth(having)


def test_windows_are_compared_as_they_are():
    """Everybody counts with all rows, so that only the window could be held."""
    with opened({"max_groups": 1, "max_rows": 15}) as table:
        for condition in ("rn + 0 > 10", "run - 1 > 2000", "c * 1 > 12"):
            sql = f"SELECT COUNT(*) AS n FROM {LATER} WHERE {condition}"
            assert answered(table, sql)[0] == truth(sql)


@pytest.mark.parametrize(
    ("group", "where"),
    [
        ("k", ""),
        ("k - k % 5", ""),
        ("FLOOR(s / 500)", ""),
        ("LEAST(k, 13)", ""),
        ("LEAST(GREATEST(k, 11), 14)", ""),
        ("k", "WHERE k BETWEEN 10 AND 20"),
        ("k", "WHERE k <= 20"),
        ("CASE WHEN k > 12 THEN 'many' ELSE 'few' END", ""),
        ("WIDTH_BUCKET(s, 0, 10000, 10)", ""),
    ],
)
def test_groups_by_what_people_have_are_those_of_the_rows(table, group, where):
    sql = f"SELECT {group} AS g, COUNT(*) AS n FROM {K} {where} GROUP BY {group}"
    rows, _ = answered(table, sql)
    counted = {row["g"]: row["n"] for row in rows if row["n"]}
    # groups of fewer than a handful of people are not shown where keys are private
    expected = {
        row["g"]: row["n"] for row in truth(sql.replace("WIDTH_BUCKET(s, 0, 10000, 10)", "1 + FLOOR(s / 1000)"))
    }
    shown = {key: number for key, number in expected.items() if number >= 60 or key in counted}
    assert counted == shown
    assert sum(counted.values()) >= 0.97 * PEOPLE


def test_keys_of_a_count_are_public_where_the_question_says_so():
    with opened(STATED, dp.PureDP(100)) as table:
        with pytest.raises(dp.InvalidArgument, match=r"GROUP BY LEAST\(k, 12\), or WHERE k <= 12"):
            table.sql(f"SELECT k, COUNT(*) AS n FROM {K} GROUP BY k").release(epsilon=1.0, delta=None)
        rows, _ = answered(table, f"SELECT LEAST(k, 13) AS g, COUNT(*) AS n FROM {K} GROUP BY LEAST(k, 13)")
        assert [row["g"] for row in rows] == list(range(1, 14))
        rows, _ = answered(table, f"SELECT k, COUNT(*) AS n FROM {K} WHERE k < 15 GROUP BY k")
        assert [row["k"] for row in rows] == list(range(1, 15))
        assert rows[11]["n"] == PEOPLE // 2


def test_bounds_that_the_question_states_are_used_and_said(table):
    held = Note("bounds_stated", {"value": "k", "low": 0, "high": 3})
    (row,), answer = answered(table, f"SELECT AVG(k, contribution_bounds_per_row => (0, 3)) AS x FROM {K}")
    assert row["x"] == pytest.approx(3.0)
    assert held in answer.notes
    question = table["claims"].per_person(k=dp.count()).agg(x=dp.mean("k", bounds=(0, 3)))
    assert held in question.explain(epsilon=1.0).limitations
    for sql in (
        f"SELECT AVG(LEAST(k, 20)) AS x FROM {K}",
        f"SELECT AVG(k) AS x FROM {K} WHERE k <= 20",
        f"SELECT AVG(k + 1) AS x FROM {K} WHERE k BETWEEN 1 AND 20",
    ):
        (row,), answer = answered(table, sql)
        corrected = (answer.parts("x").limits[0] or 0) / 10  # chosen limits: answers get back what they may leave out
        assert row["x"] == pytest.approx(truth(sql)[0]["x"], rel=1e-6, abs=corrected)
        assert not noted(answer, "bounds_stated", "bounds_not_found")
        assert all(0 <= note["low"] < note["high"] <= 21 for note in noted(answer, "bounds_chosen"))
        assert corrected or not noted(answer, "bounds_chosen")


def test_the_builder_asks_the_same(table):
    people = table["claims"].per_person(k=dp.count(), s=dp.sum("amount"))
    with glass():
        answer = people.agg(x=dp.mean("k"), y=dp.mean("s")).release(epsilon=2.0, noise="laplace")
    (expected,) = truth(f"SELECT AVG(k) AS x, AVG(s) AS y FROM {K}")
    (row,) = answer.dicts()
    assert row["x"] == pytest.approx(expected["x"], rel=1e-6)
    assert row["y"] == pytest.approx(expected["y"], rel=2e-3)
    with glass():
        answer = people.where(dp.col("k") + 0 > 12).agg(n=dp.count()).release(epsilon=2.0, noise="laplace")
    assert answer.dicts() == [{"n": PEOPLE // 2}]


def test_explain_says_that_bounds_are_chosen_and_what_of():
    with opened(STATED) as table:
        text = str(table.sql(f"SELECT AVG(k) AS x FROM {K}").explain(epsilon=1.0))
    assert "bounds" in text
    assert "1 to 3" not in text


def test_what_cannot_be_bounded_is_refused_with_a_fix():
    with opened(STATED) as table:
        with pytest.raises(dp.InvalidArgument, match=r"LEAST\(GREATEST\(k, 0\), 100\)"):
            table.sql(f"SELECT CORR(k, s) AS c FROM {K}").release(epsilon=1.0)
        sums = f"(SELECT pid, SUM(s / k / s) AS x FROM {BY_KIND} GROUP BY pid) AS u"
        with pytest.raises(dp.InvalidArgument, match=r"hold it within bounds: LEAST\(GREATEST\("):
            table.sql(f"SELECT AVG(x) AS c FROM {sums}").release(epsilon=1.0)


@pytest.mark.parametrize(
    "asked",
    [
        "AVG(k, contribution_bounds_per_row => (0, 3)) AS x, SUM(s, contribution_bounds_per_row => (0, 9)) AS y FROM t",
        "SUM(LEAST(k, 4)) AS x, STDDEV(LEAST(s / k, 50)) AS y FROM t",
        "SUM(k) AS x, MAX(k) AS y, AVG(k * 2) AS z FROM t WHERE k BETWEEN 1 AND 6",
        "LEAST(k, 5) AS g, SUM(k, contribution_bounds_per_row => (0, 3)) AS x FROM t GROUP BY LEAST(k, 5)",
    ],
)
def test_one_person_moves_what_reaches_a_mechanism_by_no_more_than_is_paid_for(asked):
    """Whatever a person has, the bounds that noise is scaled by are those that the engine applies."""
    public = glass_card(max_groups=1, max_rows=3, delta=1e-6)
    relation = "(SELECT person, COUNT(*) AS k, SUM(amount) AS s FROM visits GROUP BY person) AS t"
    question = parse(f"SELECT {asked.replace('FROM t', f'FROM {relation}')}", public)
    plan = plan_question(question, public, ReleaseOptions(epsilon=1.0, noise="laplace")).parts[0]
    rows = [{"person": i, "amount": 1.0 * i} for i in range(6) for _ in range(i)]
    for many, amount in ((1, 100.0), (4, -1e9), (6, 1e300), (500, 100.0)):
        one, other = bounded_tables(plan, [rows_of([*rows, *[{"person": 9, "amount": amount}] * many]), rows_of(rows)])
        pure, normal = losses(plan, one, other)
        assert normal == 0
        assert pure <= 1 + 1e-9


def test_averages_of_what_people_have_reach_over_a_gap():
    """One in 20 people has 80 rows, all others about 2: bounds stopped at the gap, and the ± was that of the noise."""
    generator = np.random.default_rng(15)
    number = np.where(np.arange(4000) % 20 == 0, 80, 1 + generator.poisson(1, 4000))
    who = np.repeat(np.arange(4000), number)
    rows = pa.table(
        {"who": who, "v": np.round(np.where(number[who] == 80, 100, 10) + generator.normal(0, 3, len(who)), 1)}
    )
    sums = np.bincount(who, rows["v"].to_numpy())
    per_person = "(SELECT who, COUNT(*) AS c, SUM(v) AS s FROM t GROUP BY who) AS x"
    limits = {"bounds": {"v": (0, 1000)}, "max_rows": "auto", "max_groups": "auto"}
    with dp.open(rows, unit="who", name="t", budget=dp.PureDP(100), **limits) as table:
        for _ in range(3):
            sql = f"SELECT AVG(c) AS c, AVG(s) AS s, STDDEV(s) AS d FROM {per_person}"
            answer = table.sql(sql).release(2, again=True, force=True)
            (row,) = answer.dicts()
            for name, true in {"c": number.mean(), "s": sums.mean(), "d": sums.std(ddof=1)}.items():
                assert abs(row[name] - true) <= answer.errors[name][0], (name, row[name], true)
                assert name == "d" or answer.errors[name][0] < true, (name, answer.errors)
