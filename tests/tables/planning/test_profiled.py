"""Questions of a table with a profile: what nobody stated is chosen by it, and answers are corrected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.guarantees import PureDP
from dither.tables.card.profile import Profile
from dither.tables.planning.profiled import profiled_rows
from dither.tables.query.tree import PerPerson
from support import each
from tables.profiles import table_profile

GENERATOR = np.random.default_rng(11)
SIZES = np.ceil(GENERATOR.lognormal(2.5, 0.9, 1500)).astype(int)
WHO = np.repeat(np.arange(len(SIZES)), SIZES)
X = np.clip(GENERATOR.gamma(0.6, 25, len(WHO)) - 8, -40, 2000)
TOWN = np.array(["a", "b", "c", "d"])[GENERATOR.integers(0, 4, len(WHO))]
DATA = pa.table({"who": WHO, "x": X, "town": TOWN, "k": WHO % 5})
EDGES = {"x": tuple(float(edge) for edge in (*range(-40, 100, 4), *range(100, 2001, 50)))}
TABLE = table_profile(
    WHO.tolist(),
    {"x": X.tolist(), "town": TOWN.tolist()},
    EDGES,
    {"town": ["a", "b", "c", "d"]},
    classes=(4, 16, 1 << 20),
)
PROFILE = Profile({"t": TABLE}, PureDP(1))
CARD = {"bounds": {"x": (-40, 2000)}, "keys": {"town": ["a", "b", "c", "d"], "k": [0, 1, 2, 3, 4]}}


def opened(profile=PROFILE, unit="who", **card):
    limits = {"max_rows": "auto", "max_groups": "auto"} if unit else {}
    table = dp.open(DATA, unit=unit, name="t", budget=dp.PureDP(3000), **{**limits, **CARD, **card})
    table.card = replace(table.card, profile=profile)
    return table


@pytest.fixture(scope="module")
def table():
    with opened() as result:
        yield result


def planned(table, sql, **options):
    return table.sql(sql).plan(options.pop("epsilon", 1.0), **options).parts[0]


def test_limits_and_bounds_are_chosen_for_each_aggregate_without_a_cost(table):
    plan = planned(table, "SELECT town, AVG(x) AS a FROM t GROUP BY town")
    (mean,) = plan.query.aggregates.values()
    assert plan.automatic == {}
    assert 1 < mean.rows_per_person < 60
    assert -40 <= mean.bounds[0] < 0 < mean.bounds[1] < 500
    assert sum(noise.guarantee.exact[0] for noise in {id(n): n for n in plan.measures.values()}.values()) <= 1
    count = planned(table, "SELECT town, COUNT(*) AS n FROM t GROUP BY town").query.aggregates["n"]
    assert count.rows_per_person > 30
    assert planned(table, "SELECT AVG(x) AS a FROM t").query == planned(table, "SELECT AVG(x) AS a FROM t").query


def test_what_is_stated_stays(table):
    stated = "SELECT AVG(x, contribution_bounds_per_row => (0, 50), rows_per_person => 3) AS a FROM t"
    (mean,) = planned(table, stated).query.aggregates.values()
    assert (mean.bounds, mean.rows_per_person) == ((0, 50), 3)
    plan = planned(table, "SELECT AVG(x) AS a FROM t", max_rows=7)
    assert plan.query.aggregates["a"].rows_per_person is None
    assert plan.limits.total == 7
    assert plan.query.aggregates["a"].bounds[1] < 2000


def test_without_a_profile_nothing_changes(table):
    with opened(None) as plain:
        plan = planned(plain, "SELECT AVG(x) AS a FROM t")
    assert plan.query.aggregates["a"].bounds is None
    assert (plan.corrections, plan.profiled) == ({}, None)
    assert "max_rows" in plan.automatic
    with opened(Profile({"another": TABLE}, PureDP(1))) as other:
        assert planned(other, "SELECT AVG(x) AS a FROM t").corrections == {}


QUESTIONS = {
    "SELECT town, AVG(x) AS a FROM t GROUP BY town": lambda x: x.mean(),
    "SELECT town, STDDEV(x) AS a FROM t GROUP BY town": lambda x: x.std(ddof=1),
    "SELECT town, COUNT(*) AS a FROM t GROUP BY town": len,
    "SELECT town, SUM(x + 40) AS a FROM t GROUP BY town": lambda x: (x + 40).sum(),
    "SELECT town, 2 * AVG(x) + 1 AS a FROM t GROUP BY town": lambda x: 2 * x.mean() + 1,
    "SELECT town, a FROM (SELECT town, 2 * AVG(x) AS a FROM t GROUP BY town) AS q ORDER BY town": lambda x: (
        2 * x.mean()
    ),
    "SELECT town, AVG(CASE WHEN x > 20 THEN 1 ELSE 0 END) AS a FROM t GROUP BY town": lambda x: (x > 20).mean(),
    "SELECT town, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY town": lambda x: x.mean(),
    "SELECT town, COUNT(*) AS a FROM t WHERE x > 10 GROUP BY town": lambda x: (x > 10).sum(),
}


@each("sql", QUESTIONS)
def test_the_total_error_covers_the_raw_rows(sql, table):
    """Also of columns that are computed from answers."""
    inside, widths, off = [], [], []
    for _ in range(8):
        answer = table.sql(sql).release(1.0, again=True, force=True)
        for row, error in zip(answer.dicts(), answer.error("a"), strict=True):
            true = float(QUESTIONS[sql](X[row["town"] == TOWN]))
            inside.append(abs(row["a"] - true) <= error)
            widths.append(error)
            off.append(abs(row["a"] - true))
    assert np.mean(inside) >= 0.9
    assert np.median(widths) < 6 * np.quantile(off, 0.95)


def test_the_parts_of_an_error_are_its_noise_and_its_limits(table):
    answer = table.sql("SELECT town, AVG(x) AS a FROM t GROUP BY town").release(1.0, again=True)
    parts = answer.parts("a")
    for total, noise, limits in zip(answer.error("a"), *parts, strict=True):
        assert noise > 0 < limits
        assert total == pytest.approx(np.hypot(noise, limits))
    assert dp.Answer.restored(answer.stored()).parts("a") == parts


def test_a_biased_question_is_corrected(table):
    """One row of each person, and values of at most 20: the mean is far too low, and the answer is not."""
    sql = "SELECT AVG(x, contribution_bounds_per_row => (-40, 20)) AS a FROM t"
    values = [table.sql(sql).release(20.0, again=True, max_rows=1)["a"][0] for _ in range(5)]
    clipped = np.clip(X, -40, 20).mean()
    assert X.mean() - clipped > 1
    assert abs(np.median(values) - X.mean()) < 0.3 * (X.mean() - clipped)


def test_rows_asked_about_follow_from_conditions_and_relations(table):
    def about(sql):
        question = table.sql(sql)
        return profiled_rows(question.query, question.card, True)

    every, some = about("SELECT COUNT(*) FROM t"), about("SELECT COUNT(*) FROM t WHERE town = 'a'")
    assert some.people.rows == pytest.approx(every.people.rows / 4, rel=0.05)
    assert some.approximate
    assert not every.approximate
    unknown = about("SELECT COUNT(*) FROM t WHERE k + x > 3")
    assert 0 < unknown.people.rows < every.people.rows
    sql = "SELECT AVG(n) FROM (SELECT who, COUNT(*) AS n FROM t GROUP BY who) AS p"
    per_person = about(sql)
    assert isinstance(table.sql(sql).query.source, PerPerson)
    assert per_person.people.sizes.max() == 1
    mean = planned(table, sql).query.aggregates
    (chosen,) = mean.values()
    assert np.quantile(SIZES, 0.95) < chosen.bounds[1] < SIZES.max() * 3


def test_levels_have_the_same_choices(table):
    plan = table.sql("SELECT town, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY ROLLUP (town)").plan(1.0)
    chosen = [
        {name: (item.bounds, item.rows_per_person) for name, item in part.query.aggregates.items()}
        for part in plan.parts
    ]
    assert chosen[0] == chosen[1]
    answer = table.sql("SELECT town, COUNT(*) AS n FROM t GROUP BY ROLLUP (town)").release(5.0, again=True)
    assert all(error is not None for error in answer.error("n"))


def test_rows_that_are_people_get_bounds(table):
    values = np.clip(GENERATOR.normal(40, 10, 4000), 0, 120)
    profile = Profile(
        {"t": table_profile(None, {"x": values.tolist()}, {"x": tuple(map(float, range(0, 121, 3)))})}, PureDP(1)
    )
    rows = pa.table({"x": values})
    with dp.open(rows, name="t", bounds={"x": (0, 120)}, budget=dp.PureDP(100)) as people:
        people.card = replace(people.card, profile=profile)
        (mean,) = planned(people, "SELECT AVG(x) AS a FROM t").query.aggregates.values()
        assert mean.rows_per_person is None or mean.rows_per_person == 1
        assert 0 < mean.bounds[0] < 20 < 60 < mean.bounds[1] < 100
        answer = people.sql("SELECT AVG(x) AS a FROM t").release(1.0)
        assert abs(answer["a"][0] - values.mean()) <= 3 * answer.error("a")[0]


@pytest.fixture(scope="module")
def of_two():
    """The same with bounds of another column, of which the profile says nothing."""
    with opened(bounds={"x": (-40, 2000), "k": (0, 4)}, keys={"town": ["a", "b", "c", "d"]}) as result:
        yield result


def test_values_that_the_profile_lacks_are_sketched_by_the_question(of_two):
    """The bounds of a difference are twice as wide as those of its columns, and its values may be close together."""
    sql = "SELECT AVG(x - k) AS a FROM t"
    plan = planned(of_two, sql)
    assert {name: float(share) for name, share in plan.automatic.items()} == {"values of a": 0.15}
    assert not planned(of_two, "SELECT AVG(2 * x) AS a FROM t").automatic
    assert not planned(of_two, "SELECT AVG(x - k, contribution_bounds_per_row => (-9, 9)) AS a FROM t").automatic
    (exact,) = of_two.sql(sql).plan(error=40.0).parts
    assert not exact.automatic  # its error would not be known before
    true = float((X - WHO % 5).mean())
    explained = of_two.sql(sql).explain(1.0)
    assert "a privately chosen number of rows" in str(explained)
    answers = [of_two.sql(sql).release(1.0, again=True, force=True) for _ in range(8)]
    assert sum(abs(answer["a"][0] - true) <= answer.error("a")[0] for answer in answers) >= 7
    assert max(answer.error("a")[0] for answer in answers) < 5
    assert {note.kind for note in answers[0].notes} >= {"by_profile", "bounds_chosen"}
    two = "SELECT COUNT(*) AS n, SUM(x - k) AS a FROM t WHERE x > 40"  # beside rows that are learned
    assert {"max_rows", "values of a"} == planned(of_two, two).automatic.keys()
    assert of_two.sql(two).release(1.0, again=True, force=True).error("a")[0] > 0


def test_groups_of_a_public_table_have_the_sizes_of_the_keys_they_are_joined_on(tmp_path):
    """Of 3,000 public names four are in the table, and the largest two are asked for: limits are chosen for these."""
    names = pa.table({"code": [f"c{i}" for i in range(3000)], "name": [f"n{i}" for i in range(3000)]})
    rows = DATA.append_column("code", pa.array([f"c{'abcd'.index(town)}" for town in TOWN]))
    pq.write_table(rows, tmp_path / "t.parquet")
    pq.write_table(names, tmp_path / "names.parquet")
    (tmp_path / "t.toml").write_text(
        """
name = "t"\nsource = "t.parquet"\nunit = "who"\nmax_rows = "auto"\nmax_groups = "auto"
delta = 1e-6\nledger = "l"\n[budget]\nepsilon = 4000\ndelta = 0.01
[columns]\nwho = "integer"\ncode = "text"
[public.names]\nsource = "names.parquet"\n[public.names.columns]\ncode = "text"\nname = "text"
"""
    )
    sql = "SELECT n.name, COUNT(*) AS a FROM t JOIN names n ON t.code = n.code GROUP BY n.name"
    top = sql + " ORDER BY a DESC LIMIT 2"
    sizes = {f"n{i}": int((town == TOWN).sum()) for i, town in enumerate("abcd")}
    with dp.open(str(tmp_path / "t.toml")) as t:
        limits = t.sql(top).plan(1.0).parts[0].query.aggregates["a"].rows_per_person
        assert limits is None  # without a profile it is learned
        t.profile(epsilon=5)
        chosen = [t.sql(text).plan(1.0).parts[0].query.aggregates["a"].rows_per_person for text in (sql, top)]
        assert chosen[1] >= chosen[0]
        assert chosen[1] > 10
        answer = t.sql(top).release(1.0, force=True)
        for row, error in zip(answer.dicts(), answer.error("a"), strict=True):
            assert abs(row["a"] - sizes[row["name"]]) <= 2 * error < row["a"]


def test_a_condition_that_null_meets_keeps_the_share_of_nulls():
    """Every tenth row has no value, and all of them those of some people."""
    empty = (np.arange(len(WHO)) % 10 == 0) | (WHO % 50 == 0)
    rows = DATA.set_column(1, "x", pa.array([None if null else x for null, x in zip(empty, X.tolist(), strict=True)]))
    with dp.open(rows, unit="who", name="t", budget=dp.PureDP(3000), max_rows="auto", max_groups="auto", **CARD) as t:
        t.profile(epsilon=20)
        for sql, true in {
            "SELECT COUNT(*) AS a FROM t WHERE x IS NULL": empty.sum(),
            "SELECT COUNT(*) AS a FROM t WHERE x IS NULL OR x > 20": (empty | (X > 20)).sum(),
            "SELECT COUNT(*) AS a FROM t WHERE NOT x > 20": (~empty & (X <= 20)).sum(),
        }.items():
            answers = [t.sql(sql).release(1.0, again=True, force=True) for _ in range(4)]
            assert sum(abs(item["a"][0] - true) <= item.error("a")[0] for item in answers) >= 3, sql
            assert np.median([item.error("a")[0] for item in answers]) < true, sql


@each("epsilon", [1e-3, 1e-2, 50.0])
def test_any_epsilon_can_be_planned(epsilon, table):
    for sql in QUESTIONS:
        assert planned(table, sql, epsilon=epsilon).guarantee.exact[0] <= epsilon


FORECAST = {
    **{sql: of for sql, of in QUESTIONS.items() if "2 *" not in sql and "n FROM" not in sql},
    "SELECT town, MEDIAN(x) AS a FROM t GROUP BY town": np.median,
}


def test_correlations_have_bounds_of_both_values_and_hold(table):
    """The card's bounds are so wide that nothing but noise would be seen."""
    (pair,) = planned(table, "SELECT CORR(x, 3 - 2 * x) AS a FROM t").query.aggregates.values()
    assert pair.bounds[1] < 500
    assert pair.other_bounds[0] > -1000
    for sql, true in {"CORR(x, 3 - 2 * x)": -1.0, "REGR_SLOPE(3 - 2 * x, x)": -2.0}.items():
        answer = table.sql(f"SELECT {sql} AS a FROM t").release(1.0, again=True, force=True)
        assert answer["a"][0] == pytest.approx(true, rel=0.2)
        assert abs(answer["a"][0] - true) <= 2 * answer.error("a")[0] < 2


def test_how_many_rows_a_condition_keeps_of_each_person_is_learned(table):
    sql = "SELECT town, COUNT(*) AS a FROM t WHERE x > 40 GROUP BY town"
    plan = planned(table, sql)
    assert {name: float(share) for name, share in plan.automatic.items()} == {"max_rows": 0.3}
    assert plan.guarantee == PureDP(1)
    assert not planned(table, sql.replace("COUNT(*)", "AVG(x)")).automatic  # of which a limit is known well enough
    (exact,) = table.sql(sql).plan(error=60.0).parts
    assert not exact.automatic  # its error would not be known before
    answer = table.sql(sql).release(1.0, again=True, force=True)
    for row, error in zip(answer.dicts(), answer.error("a"), strict=True):
        assert abs(row["a"] - ((row["town"] == TOWN) & (X > 40)).sum()) <= 4 * error


@each("sql", FORECAST)
def test_errors_are_forecast_before_anything_is_paid(sql, table):
    """By a number for the smallest, a typical and the largest group, near the errors that answers then have; the ± also
    covers what is hardly probable."""
    explained = table.sql(sql).explain(1.0)
    forecast = explained.typical_error("a")
    (line,) = [line for line in explained.lines if line["answer"] == "a"]
    assert "(95 %), noise and limits" in line["expected"]
    off, said = [], []
    for _ in range(6):
        answer = table.sql(sql).release(1.0, again=True, force=True)
        said += answer.error("a")
        off += [abs(row["a"] - float(FORECAST[sql](X[row["town"] == TOWN]))) for row in answer.dicts()]
    assert 0.25 < forecast / np.median(said) < 1.2
    assert 0.5 < forecast / np.quantile(off, 0.95) < 4
    assert [note.kind for note in answer.notes if note.kind == "by_profile"] == ["by_profile"]
    assert not {"limits", "undercount_unknown", "means_limited"} & {note.kind for note in answer.notes}


@each(
    ("sql", "error"),
    [
        ("SELECT town, AVG(x) AS a FROM t GROUP BY town", 2.0),
        ("SELECT town, AVG(x) AS a FROM t GROUP BY town", "40%"),
        ("SELECT town, MEDIAN(x) AS a FROM t GROUP BY town", 2.0),
        ("SELECT town, AVG(CASE WHEN x > 20 THEN 1 ELSE 0 END) AS a FROM t GROUP BY town", 0.05),
        ("SELECT town, COUNT(*) AS a FROM t GROUP BY town", "20%"),
    ],
)
def test_an_error_that_is_good_enough_has_its_epsilon(sql, error, table):
    question = table.sql(sql)
    (part,) = question.plan(error=error).parts
    epsilon = float(part.guarantee.exact[0])
    expected = part.expected["a"]
    wanted = error if isinstance(error, float) else float(error[:-1]) / 100 * expected.answer
    assert expected.typical <= wanted
    assert epsilon < 50
    less = question.plan(epsilon * 0.8).parts[0].expected["a"]
    assert less.typical > 0.98 * (wanted if isinstance(error, float) else float(error[:-1]) / 100 * less.answer)


@each(
    ("answers", "profiled"),
    [
        ("MEDIAN(x) AS a", True),
        ("QUANTILE(x, 0.9) AS a", True),
        ("MEDIAN(x) AS a, COUNT(*) AS n", True),
        ("QUANTILE(x, 0.9) AS a, COUNT(x) AS n", False),
        ("MEDIAN(x) AS a", False),
    ],
)
def test_a_quantile_of_a_small_group_is_as_uncertain_as_its_size_says(answers, profiled):
    """One forecast for all groups was that of a typical one: of 100 rows no median was within it. Where nothing tells
    how large groups are, there is no forecast, and a note says so."""
    generator, sizes = np.random.default_rng(14), {"a": 9000, "b": 800, "c": 60}
    town = np.repeat(list(sizes), list(sizes.values()))
    x = np.round(generator.normal(50, 10, len(town)) + 20 * (town == "b") - 30 * (town == "c"), 2).clip(0, 200)
    who = np.arange(len(town))
    of_columns = {"x": x.tolist(), "town": town.tolist()}
    of_table = table_profile(who.tolist(), of_columns, {"x": tuple(map(float, range(0, 205, 5)))}, {"town": [*sizes]})
    card = {"keys": {"town": [*sizes]}, "bounds": {"x": (0, 200)}, "max_rows": "auto", "max_groups": "auto"}
    rows = pa.table({"who": who, "x": x, "town": town})
    with dp.open(rows, unit="who", name="t", budget=dp.PureDP(100), **card) as table:
        table.card = replace(table.card, profile=Profile({"t": of_table}, PureDP(1)) if profiled else None)
        at = 0.5 if "MEDIAN" in answers else 0.9
        known = {name: np.quantile(x[town == name], at) for name in sizes}
        for _ in range(4):
            answer = table.sql(f"SELECT town, {answers} FROM t GROUP BY town").release(1.0, again=True, force=True)
            errors = answer.errors.get("a", [None] * 3)
            if not profiled and "COUNT" not in answers:
                assert set(errors) == {None}
                assert "no_interval" in {note.kind for note in answer.notes}
                continue
            for row, error in zip(answer.dicts(), errors, strict=True):
                assert row["a"] is None or abs(row["a"] - known[row["town"]]) <= error, (row, error)
            assert "COUNT" not in answers or errors[0] < 5


def _related(generator, people=20_000):
    """Return people of one row each: a value with a heavy tail, one that grows with it, and one that does not."""
    x = np.round(np.exp(generator.normal(3.5, 0.8, people)), 2)
    y = np.round(2 * x + generator.normal(0, 10, people), 1)
    return pa.table({"who": np.arange(people), "x": x, "y": y, "z": generator.uniform(0, 100, people)})


CONDITIONS = {
    "of the value": ("{f}(x)", "x > {c}", "x", lambda t, c: t["x"] > c),
    "of a related value": ("{f}(y)", "x > {c}", "y", lambda t, c: t["x"] > c),
    "of an unrelated value": ("{f}(x)", "z > {c} / 4", "x", lambda t, c: t["z"] > c / 4),
    "in a case": ("{f}(CASE WHEN x > {c} THEN x END)", "TRUE", "x", lambda t, c: t["x"] > c),
    "above and below": ("{f}(x)", "x > {c} AND x < {c} + 60", "x", lambda t, c: (t["x"] > c) & (t["x"] < c + 60)),
}


@each("name", CONDITIONS)
def test_an_answer_about_some_values_is_not_far_beyond_its_error(name):
    """Bounds of the whole column would cut off what the condition keeps."""
    value, condition, column, kept = CONDITIONS[name]
    data = _related(np.random.default_rng(5))
    arrays = {key: data[key].to_numpy() for key in data.column_names}
    bounds = {"x": (0, 5000), "y": (-100, 10_000), "z": (0, 100)}
    limits = {"max_rows": "auto", "max_groups": "auto", "bounds": bounds, "budget": dp.PureDP(1000)}
    missed = []
    with dp.open(data, unit="who", name="t", **limits) as table:
        table.profile(epsilon=1)
        for c in (40, 100, 160):
            true = arrays[column][kept(arrays, c)]
            for f, truth in (("AVG", true.mean()), ("STDDEV", true.std(ddof=1)), ("SUM", true.sum())):
                sql = f"SELECT {value.format(f=f, c=c)} AS a FROM t WHERE {condition.format(c=c)}"
                answer = table.sql(sql).release(epsilon=2, force=True)
                got, error = answer.dicts()[0]["a"], answer.errors["a"][0]
                if got is not None and error is not None and abs(got - truth) > 4 * error:
                    missed.append((f, c, got, truth, error))
    assert not missed
