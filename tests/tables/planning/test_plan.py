"""A plan: its parts add up to what is charged, its thresholds and scales are exact, and it refuses what it must.

What is measured for an aggregate: keys of a mode that are public without being listed, and what is shared.

Groups with private keys that are only counted are refused before the charge; what is advised instead is answered.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import mpmath as mp
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dp
from dither.accounting import gaussian_ratio
from dither.errors import DitherError, InvalidArgument
from dither.guarantees import ApproxDP, PureDP
from dither.mechanisms import Gaussian, Laplace
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.compile.statements import Measure
from dither.tables.planning import plan
from dither.tables.query.tree import Aggregate, Call, Column, Group, Join, Literal, Query
from support import SOON_S, each, refuses
from tables.glass import card
from tables.planned import check, make
from tables.raw_rows import alike, answered, truth

AMOUNT, AGE, TOWN = Column("amount"), Column("age"), Column("town")
KINDS = [
    Aggregate("count"),
    Aggregate("people"),
    Aggregate("count_value", AMOUNT),
    Aggregate("sum", AMOUNT),
    Aggregate("mean", AMOUNT),
    Aggregate("var", AMOUNT),
    Aggregate("std", AGE),
    Aggregate("min", AGE),
    Aggregate("max", AMOUNT),
    Aggregate("quantile", AMOUNT, at=0.9),
    Aggregate("mode", TOWN, keys=("a", "b")),
    Aggregate("histogram", AMOUNT, edges=(0, 10, 20)),
    Aggregate("count", weight=7.5),
    Aggregate("count", rows_per_person=2),
    Aggregate("mean", AMOUNT, rows_per_person=1),
    Aggregate("quantile", AMOUNT, at=0.9, rows_per_person=40),
    Aggregate("histogram", AMOUNT, edges=(0, 10, 20), rows_per_person=2),
]
BY = {
    "none": (),
    "public": (Group("region", Column("region")),),
    "private": (Group("town", TOWN),),
    "both": (Group("town", TOWN), Group("vip", Column("vip"))),
}


def depth(rank):
    return 0 if rank is None else 1 + max(depth(rank.below), depth(rank.above))


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    st.sampled_from(sorted(BY)),
    st.sampled_from(["best", "laplace", "gaussian"]),
    st.sampled_from(["", "other"]),
    st.integers(1, 5),
    st.integers(1, 5),
    st.sampled_from([1e-3, 0.1, 1, 2.5, 30]),
    st.sampled_from([1e-12, 1e-6, 0.01]),
)
def test_the_parts_add_up_to_what_is_charged(asked, by, noise, more, groups, limit, epsilon, delta):
    query = Query({f"a{i}": item for i, item in enumerate(asked)}, BY[by])
    how = {more: True} if more else {}
    try:
        planned = make(
            query, card(), epsilon=epsilon, delta=delta, max_groups=groups, max_rows=limit, noise=noise, **how
        )
    except DitherError:
        assert (more, by) not in [("", "none"), ("", "private"), ("", "public"), ("other", "private")]
        return
    # moments of a column are one vector, which is paid for once
    totals = {measure.measurement: noise for measure, noise in planned.totals.items()}
    spent = sum((Fraction(noise.epsilon) for noise in totals.values()), Fraction(0))
    # one person's changes r_g of the scores of all groups add up to the sensitivity R, each costing epsilon r_g / R
    spent += sum((Fraction(choice.mechanism.epsilon) for choice in planned.choices), Fraction(0))
    for choice in planned.choices:
        assert choice.mechanism.sensitivity == planned.bin_limits(choice.aggregate).sensitivity()
        # a new value is one more miss of the extreme for bins on one side of it, and one less for those on the other
        assert choice.mechanism.monotone == (choice.aggregate.kind == "mode")
    for ranked in planned.quantiles:
        assert len({node.mechanism.epsilon for node in ranked.rank}) == 1
        spent += depth(ranked.rank) * Fraction(ranked.rank.mechanism.epsilon)
    spent += sum((Fraction(count.mechanism.epsilon) for count in planned.counts), Fraction(0))
    for measure, item in planned.measures.items():
        if isinstance(item, Laplace):
            assert planned.limits.norm == 1
            assert item.sensitivity == measure.sensitivity(planned.limits)
            assert planned.measures[measure] is item
        else:
            assert planned.limits.norm == 2
    for measure, item in planned.totals.items():
        in_all_groups = 1 if planned.limits.norm == 1 else planned.max_groups
        assert Fraction(item.sensitivity) ** 2 >= measure.sensitivity(planned.limits) ** 2 * in_all_groups
    for count in planned.counts:
        limits = planned.bin_limits(count.aggregate)
        rows_of_a_person = count.aggregate.rows_per_person or planned.max_groups * planned.max_rows
        assert count.mechanism.sensitivity == rows_of_a_person << limits.bits()
    vectors = {measure.measurement: (measure, noise) for measure, noise in planned.measures.items()}
    normal = {m: n for m, n in vectors.values() if isinstance(n, Gaussian)}
    spent += sum((Fraction(n.epsilon) for m, n in vectors.values() if m not in normal), Fraction(0))
    if normal:
        assert isinstance(planned.guarantee, ApproxDP)
        loss = sum((m.sensitivity(planned.limits) ** 2 / Fraction(n.scale) ** 2 for m, n in normal.items()))
        share = Fraction(str(delta)) / (2 if planned.selection else 1)
        left = Fraction(str(epsilon)) - spent
        with mp.workdps(80):
            r, e = 1 / mp.sqrt(mp.mpf(loss.numerator) / loss.denominator), mp.mpf(left.numerator) / left.denominator
            result = mp.ncdf(1 / (2 * r) - e * r) - mp.exp(e) * mp.ncdf(-1 / (2 * r) - e * r)
            assert result <= mp.mpf(share.numerator) / share.denominator
    else:
        assert spent <= Fraction(str(epsilon))
        assert spent >= Fraction(str(epsilon)) * Fraction(79, 100)
    assert planned.guarantee == (
        ApproxDP(epsilon, delta) if normal or planned.selection is not None else PureDP(epsilon)
    )


@each("groups", [1, 3, 40])
@each("epsilon", [0.01, 0.5, 1, 8, 1000])
@each("delta", [1e-2, 1e-6, 1e-12, 1e-100])
def test_the_threshold_is_the_smallest_that_a_key_of_one_person_passes_rarely_enough(groups, epsilon, delta):
    query = Query({"n": Aggregate("people")}, BY["private"])
    planned = make(query, card(), epsilon=epsilon, delta=delta, max_groups=groups, noise="laplace")
    assert planned.selection is not None
    with mp.workdps(200):
        b = mp.mpf(planned.measures[Measure("people")].scale)
        q = mp.exp(-1 / b)

        def shown(threshold: int) -> mp.mpf:
            """P(1 + K >= threshold), K discrete Laplace."""
            return q ** (threshold - 1) / (1 + q)

        assert shown(planned.selection.threshold) <= mp.mpf(str(delta)) / groups
        assert shown(planned.selection.threshold - 1) > mp.mpf(str(delta)) / groups


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-50])
def test_the_threshold_of_normal_noise(delta):
    query = Query({"n": Aggregate("people"), "s": Aggregate("sum", AMOUNT)}, BY["private"])
    planned = make(query, card(), epsilon=1, delta=delta, max_groups=9, noise="gaussian")
    assert planned.selection is not None
    with mp.workdps(100):
        sigma = mp.mpf(planned.measures[Measure("people")].scale)
        above = [mp.ncdf(-(planned.selection.threshold - extra - 1 - mp.mpf(1) / 2) / sigma) for extra in (0, 1)]
        assert above[0] <= mp.mpf(str(delta)) / 2 / 9 < above[1]


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-7, 1e-9), (1e-6, 1e-12), (1e-9, 1e-3), (1e4, 1e-290), (50, 0.9)])
@pytest.mark.parametrize("noise", ["best", "gaussian"])
def test_every_budget_is_planned_at_once(epsilon, delta, noise):
    """No search runs for ever, however small the budget."""
    start = time.process_time()
    query = Query({"n": Aggregate("count"), "s": Aggregate("sum", AMOUNT)}, BY["private"])
    planned = make(query, card(), epsilon=epsilon, delta=delta, max_groups=5, noise=noise)
    assert time.process_time() - start < SOON_S
    if noise == "gaussian":
        ratio = gaussian_ratio(Fraction(str(epsilon)), Fraction(str(delta)) / 2)
        vectors = {m.measurement: (m, n) for m, n in planned.measures.items()}
        loss = sum(m.sensitivity(planned.limits) ** 2 / Fraction(n.scale) ** 2 for m, n in vectors.values())
        assert 1 / ratio**2 * Fraction(999, 1000) < loss <= 1 / ratio**2


@pytest.mark.parametrize("at", [1 / 3, 0.1 + 0.2, 2 / 7, 1e-300, 1 - 1e-16, 0.123456789012345])
def test_ranks_are_whole_numbers_of_64_bits(at):
    """The score of a bin is its rank times the denominator: 10^16 times 1000 rows would not fit."""
    share = plan.share_of(Aggregate("quantile", AMOUNT, at=at))
    assert share.denominator <= 10**6
    assert abs(share - Fraction(at)) <= Fraction(1, 10**6)


def test_a_quantile_of_whole_numbers_is_a_whole_number():
    for bounds in ((0, 120), (0.0, 120.0), (-3.0, 5)):
        planned = make(Query({"m": Aggregate("quantile", AGE, bounds=bounds)}), card(), epsilon=1)
        edges = planned.quantiles[0].aggregate.edges
        assert edges is not None
        assert all(isinstance(edge, int) for edge in edges)
        assert (edges[0], edges[-2]) == bounds


def with_keys(keys, type="text") -> Card:
    return Card("t", "", {"k": ColumnCard(type, keys=keys), "who": ColumnCard("integer")}, None)


@pytest.mark.parametrize(
    ("type", "keys"),
    [
        ("text", (1,)),
        ("text", (None,)),
        ("text", ()),
        ("text", ("a\0",)),
        ("text", ("\ud800",)),
        ("integer", (1, 1.5)),
        ("integer", (9007199254740993, 9007199254740992.0)),
        ("integer", (True,)),
        ("date", (date(2024, 1, 1), datetime(2024, 1, 1))),
    ],
)
def test_keys_are_of_the_type_they_are_compared_with(type, keys):
    """Otherwise two of them may be the same to the engine, and a row would be in two groups."""
    query = Query({"n": Aggregate("count")}, (Group("k", Column("k")),))
    with refuses(DitherError):
        make(query, with_keys(keys, type), epsilon=1)
    with refuses(DitherError):
        make(Query({"n": Aggregate("count")}, (Group("k", Column("k"), keys),)), with_keys(None, type), epsilon=1)


def test_numbers_are_groups_where_their_keys_are_listed():
    listed = Query({"n": Aggregate("count")}, (Group("amount", AMOUNT, keys=(1.0, 2.0)),))
    check(make(listed, card(), epsilon=1))


def test_a_key_stated_twice_is_one_group():
    planned = make(Query({"n": Aggregate("count")}, (Group("k", Column("k")),)), with_keys(("a", "b", "a")), epsilon=1)
    assert planned.keys == (("a", "b"),)


def test_doubles_are_not_joined_with_whole_numbers():
    """2^53 and 2^53 + 1 are one double: a row would have two partners."""
    public = {"p": PublicTable("p.csv", {"code": ColumnCard("integer"), "same": ColumnCard("number")})}
    query = Query({"n": Aggregate("count")}, joins=(Join("p", AMOUNT, "code"),))
    with refuses(InvalidArgument, "keys of one type"):
        check(make(query, card(public=public), epsilon=1))
    for join in (Join("p", AMOUNT, "same"), Join("p", AGE, "code")):
        check(make(Query({"n": Aggregate("count")}, joins=(join,)), card(public=public), epsilon=1))


@each(
    "query",
    [
        Query({"n": Aggregate("count")}, (Group("amount", AMOUNT),)),
        Query({"n": Aggregate("count")}, where=Call(">", (AMOUNT, Literal(1e200)))),
        Query({"n": Aggregate("count")}, where=Literal(None)),
        Query({"n": Aggregate("count")}, where=AMOUNT),
        Query({"n": Aggregate("count")}, where=Call(">", (TOWN, Literal(1)))),
        Query({"n": Aggregate("count")}, where=Call("nosuch", (TOWN,))),
        Query({"n": Aggregate("count")}, where=Call("=", (Column("nosuch"), Literal(1)))),
        Query({"n": Aggregate("count_value", Call("+", (TOWN, Literal(1))))}),
        Query({"n": Aggregate("quantile", TOWN)}),
        Query({"n": Aggregate("mean", AMOUNT, bounds=(5, 5))}),
        Query({"n": Aggregate("mean", AMOUNT, bounds=(0, 1e-310))}),
        Query({"n": Aggregate("mean", AMOUNT, bounds=(-1e308, 1e308))}),
        Query({"n": Aggregate("mean", AMOUNT, bounds=(math.nan, 1))}),
        Query({"n": Aggregate("mean", AMOUNT, bounds=(1e15, 1e15 + 1))}),
        Query({"n": Aggregate("mean", AGE, bounds=(0.2, 0.4))}),
        Query({"n": Aggregate("quantile", AMOUNT, at=1.5)}),
        Query({"n": Aggregate("histogram", AMOUNT, edges=(1,))}),
        Query({"n": Aggregate("mode", AMOUNT)}),
    ],
)
def test_whatever_cannot_be_asked_is_refused_before_it_is_charged(query):
    with refuses(DitherError):
        check(make(query, card(), epsilon=1, delta=1e-6))


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"max_rows": (1 << 20) + 1}, "max_rows"),
        ({"max_rows": 1 << 11, "max_groups": 1 << 10}, "max_groups times max_rows"),
        ({"max_rows": 0}, "max_rows"),
        ({"max_groups": 0}, "max_groups"),
        ({"max_groups": 10**7}, "max_groups"),
        ({"max_groups": 1.5}, "max_groups"),
        ({"noise": "none"}, "noise"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 1e7}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
    ],
)
def test_nonsense_is_refused(how, match):
    query = Query({"n": Aggregate("count")}, BY["private"])
    with pytest.raises(DitherError, match=match):
        make(query, card(), **{"epsilon": 1, "delta": 1e-6, **how})


ONCE = {
    "COUNT(*) beside AVG": [Aggregate("count"), Aggregate("mean", AMOUNT)],
    "AVG beside STDDEV": [Aggregate("mean", AMOUNT), Aggregate("std", AMOUNT)],
    "COUNT(x) beside COUNT(*)": [Aggregate("count_value", TOWN), Aggregate("count")],
    "SUM beside COUNT(*)": [Aggregate("sum", AMOUNT), Aggregate("count")],
    "all of one column": [
        Aggregate("count"), Aggregate("count_value", AGE), Aggregate("sum", AGE), Aggregate("mean", AGE),
        Aggregate("var", AGE), Aggregate("std", AGE),
    ],
}  # fmt: skip


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", ONCE)
def test_aggregates_of_the_same_rows_are_one_vector_that_is_paid_for_once(name, noise):
    asked = {f"a{i}": item for i, item in enumerate(ONCE[name])}
    planned = make(Query(asked, BY["public"]), card(), epsilon=1, delta=1e-6, max_groups=2, max_rows=3, noise=noise)
    assert len({measure.measurement for measure in planned.measures}) == 1
    assert len(set(planned.measures_of.values())) == 1
    (mechanism,) = set(planned.measures.values())
    if noise == "laplace":
        assert mechanism.epsilon == 1
        assert mechanism.sensitivity == next(iter(planned.measures)).sensitivity(planned.limits)
    else:
        ratio = gaussian_ratio(Fraction(1), Fraction(1, 10**6))
        sensitivity = next(iter(planned.measures)).sensitivity(planned.limits)
        assert ratio <= Fraction(mechanism.scale) / sensitivity < ratio * Fraction(1001, 1000)


def test_columns_that_differ_are_vectors_of_their_own():
    asked = {"m": Aggregate("mean", AMOUNT), "a": Aggregate("mean", AGE), "n": Aggregate("count")}
    planned = make(Query(asked), card(), epsilon=1, max_rows=3, noise="laplace")
    assert len({measure.measurement for measure in planned.measures}) == 2
    assert {noise.epsilon for noise in planned.measures.values()} == {0.5}
    assert planned.measures_of["n"] == planned.measures_of["m"]  # the number of rows follows from the first of them


def own_limits(noise="laplace", unit="person", **asked):
    query = Query(asked, BY["public"])
    return make(query, card(unit), epsilon=1, delta=1e-6, max_groups=2, max_rows=3, noise=noise)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_an_aggregate_may_have_a_limit_of_its_own_over_all_groups(noise):
    planned = own_limits(noise, m=Aggregate("mean", AMOUNT, rows_per_person=4), n=Aggregate("count"))
    (of_mean, of_count) = (planned.measures_of[name][0] for name in "mn")
    assert of_mean.limits(planned.limits).total == 4
    assert of_count.limits(planned.limits).total == planned.limits.total
    for measure in (of_mean, of_count):  # noise of the limit that the measure is weighted by
        own = planned.measures[measure]
        assert own.sensitivity == measure.sensitivity(planned.limits)
    unit = of_mean.unit(planned.limits)
    assert Fraction(planned.measures[of_mean].sensitivity) / Fraction(unit) == 4
    assert planned.bin_limits(Aggregate("max", AGE, rows_per_person=1)).total == 1


def test_measurements_are_shared_where_limits_agree_and_divide_the_budget_where_they_differ():
    mean, total = Aggregate("mean", AMOUNT, rows_per_person=4), Aggregate("sum", AMOUNT, rows_per_person=4)
    count = Aggregate("count", rows_per_person=4)
    shared = own_limits(m=mean, s=total, n=count)
    assert len({measure.measurement for measure in shared.measures}) == 1
    assert {noise.epsilon for noise in shared.measures.values()} == {1}
    for other in (None, 5):
        apart = own_limits(m=mean, s=total, n=replace(count, rows_per_person=other))
        assert len({measure.measurement for measure in apart.measures}) == 2
        assert {noise.epsilon for noise in apart.measures.values()} == {0.5}
        assert apart.measures_of["m"] == apart.measures_of["s"]
    # a number of values is that of the same rows as the mean
    of_values = Aggregate("count_value", AMOUNT)
    both = own_limits(m=mean, v=of_values, w=replace(of_values, rows_per_person=4))
    assert both.measures_of["w"] == both.measures_of["m"] != both.measures_of["v"]


def test_rows_that_are_people_have_no_further_limit():
    planned = own_limits(unit=None, n=Aggregate("count", rows_per_person=4), h=replace(KINDS[11], rows_per_person=9))
    assert {noise.sensitivity for noise in planned.measures.values()} == {1}
    assert planned.counts[0].mechanism.sensitivity == 1


@pytest.mark.parametrize(
    ("aggregate", "match"),
    [
        (Aggregate("people", rows_per_person=1), "adds up rows"),
        (Aggregate("count_distinct", AMOUNT, rows_per_person=1), "adds up rows"),
        (Aggregate("count", rows_per_person=0), "rows_per_person"),
        (Aggregate("count", rows_per_person=True), "rows_per_person"),
        (Aggregate("mean", AMOUNT, rows_per_person=(1 << 20) + 1), "at most 1048576"),
    ],
)
def test_a_limit_of_an_aggregate_that_makes_no_sense_is_refused(aggregate, match):
    with refuses(dp.DitherError, match):
        own_limits(a=aggregate)


def test_a_lone_sum_is_measured_as_a_sum():
    (measure,) = make(Query({"s": Aggregate("sum", AMOUNT)}), card(), epsilon=1).measures
    assert measure.kind == "sum"


def test_variances_keep_a_fine_grid_under_large_limits():
    """Squares of steps take twice the places: they are divided, and the steps stay as fine as those of a mean."""
    planned = make(Query({"v": Aggregate("var", AMOUNT)}), card(), epsilon=1, max_rows=1 << 12)
    moments = planned.measures_of["v"][0].moments
    assert moments is not None
    assert moments.grid is not None
    assert moments.grid.width >= 1 << 15
    assert moments.top >= 1 << 15
    assert planned.measures_of["v"][0].sensitivity(planned.limits) < 1 << 30


def test_the_total_of_rows_that_are_people_has_no_noise_for_many_groups():
    """A row is in one group: in the l2 norm its total is no larger than what it adds there."""
    planned = make(
        Query({"n": Aggregate("count")}, (Group("town", TOWN),)),
        card(None), epsilon=1, delta=1e-6, noise="gaussian", max_groups=100, other=True,
    )  # fmt: skip
    assert [noise.sensitivity for noise in planned.totals.values()] == [1]


ROWS = pa.table(
    {"x": [3, 3, 3, 4, 5] * 40, "late": [True, False, False, True, False] * 40, "code": ["a", "b", "b", "c", "d"] * 40}
)


@pytest.fixture(scope="module")
def table():
    with dp.open(ROWS, bounds={"x": (0, 9)}, budget=dp.PureDP(4000), name="t") as result:
        yield result


@pytest.mark.parametrize(
    ("sql", "mode"),
    [
        ("MODE(x)", 3),
        ("MODE(late)", False),
        ("MODE(x > 3)", False),
        ("MODE(CASE WHEN x = 3 THEN 'three' ELSE 'other' END)", "three"),
        ("MODE() WITHIN GROUP (ORDER BY x)", 3),
    ],
)
def test_a_mode_is_chosen_among_keys_that_are_public_without_being_listed(table, sql, mode):
    assert table.sql(f"SELECT {sql} AS m FROM t").release(100, again=True)["m"] == [mode]


def test_a_list_in_where_makes_the_keys_of_a_mode_public(table):
    assert table.sql("SELECT MODE(code) AS m FROM t WHERE code IN ('a', 'b')").release(100)["m"] == ["b"]
    assert table.agg(m=dp.mode(dp.col("x") < 4)).release(100)["m"] == [True]


def test_a_mode_among_keys_that_nobody_states_is_refused_with_a_way_out(table):
    question = table.sql("SELECT MODE(code) AS m FROM t")
    with refuses(InvalidArgument, "WHERE code IN (…)"):
        question.plan(1)


@each("rows", [1, 7, 200])
@each("other", ["STDDEV(x)", "VAR_SAMP(x)"])
def test_a_mean_is_as_fine_beside_a_variance_as_alone(rows, other):
    """Squares of a fine grid do not fit; a coarser grid had moved the mean."""
    given = pa.table({"who": list(range(900)), "x": [(i * i % 1009) / 100 + 0.0195 for i in range(900)]})
    ((mean, spread),) = truth("SELECT AVG(x), " + other + " FROM data", data=given)
    with dp.open(given, unit="who", bounds={"x": (0, 5000)}, max_rows=rows, budget=dp.PureDP(1000)) as table:
        alone = answered(table, "SELECT AVG(x) AS m FROM data").rows[0][0]
        beside, variance = answered(table, f"SELECT AVG(x) AS m, {other} AS s FROM data").rows[0]
    step = 5000 / (1 << 19)
    assert abs(alone - mean) < step
    assert abs(beside - mean) < step
    assert abs(variance - spread) < (0.1 if rows == 1 else 20)


def test_a_third_of_the_budget_of_a_choice_goes_to_its_interval():
    query = Query({"m": Aggregate("max", Column("age")), "k": Aggregate("mode", Column("region"))})
    without, asked = (make(query, card(), epsilon=1, quantile_interval=intervals) for intervals in (False, True))
    for before, after in zip(without.choices, asked.choices, strict=True):
        assert before.interval is None
        assert after.interval is not None
        total = Fraction(after.mechanism.epsilon) + Fraction(after.interval.epsilon)
        assert Fraction(before.mechanism.epsilon) - Fraction(1, 10**12) <= total <= Fraction(1, 2)
        assert after.interval.epsilon == pytest.approx(1 / 6)


def test_errors_for_a_population_take_squares_as_well():
    query = Query({"m": Aggregate("mean", Column("age")), "s": Aggregate("sum", Column("age"))})
    noise, population = (
        make(query, card(), epsilon=1, interval="population" if yes else "noise") for yes in (False, True)
    )
    assert [len(made.measures) for made in (noise, population)] == [2, 3]


NUMBERED = pa.table(
    {
        "who": [i // 4 for i in range(1200)],
        "visit": list(range(1200)),
        "city": [("x", "y", "z")[i % 3] for i in range(1200)],
        "cost": [float(i % 9) for i in range(1200)],
    }
)
BY_VISIT = "SELECT visit, COUNT(*) AS n, AVG(cost) AS m FROM data GROUP BY visit"
COUNTED = [
    f"WITH v AS ({BY_VISIT}) SELECT COUNT(*) AS k FROM v",
    f"WITH v AS ({BY_VISIT}) SELECT AVG(n) AS k, MAX(m) AS l FROM v WHERE n > 1",
    f"SELECT n, COUNT(*) AS k FROM ({BY_VISIT}) GROUP BY n",
    f"WITH v AS ({BY_VISIT}), w AS ({BY_VISIT}) SELECT (SELECT COUNT(*) FROM v) - (SELECT COUNT(n) FROM w) AS k",
    "SELECT AVG(n) AS k FROM (SELECT COUNT(*) AS n FROM data GROUP BY visit)",
    f"SELECT (SELECT SUM(n) FROM ({BY_VISIT})) / COUNT(*) AS share FROM data",
]
SHOWN = [
    "SELECT city, COUNT(*) AS n FROM data GROUP BY city",
    "SELECT COUNT(*) AS n FROM data GROUP BY city",
    "WITH v AS (SELECT city, COUNT(*) AS n FROM data GROUP BY city) "
    "SELECT city, n, n / (SELECT SUM(n) FROM v) AS s FROM v",
    "SELECT city, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM data GROUP BY city",
    "SELECT * FROM (SELECT city AS c, COUNT(*) AS n FROM data GROUP BY city) WHERE n > 5",
    "SELECT SUM(n) AS k FROM (SELECT city AS c, COUNT(*) AS n FROM data GROUP BY city) WHERE c IN ('x', 'y')",
    "SELECT city, COUNT(*) AS n FROM data GROUP BY city UNION ALL SELECT 'all', COUNT(*) FROM data",
    "SELECT city, COUNT(*) AS n FROM data GROUP BY ROLLUP (city)",
]


def numbered() -> dp.Table:
    stated = {"unit": "who", "bounds": {"cost": (0, 10)}, "max_groups": 4, "max_rows": 4, "delta": 1e-6}
    return dp.open(NUMBERED, **stated, budget=dp.ApproxDP(100, 1e-3))


@pytest.mark.parametrize("sql", COUNTED)
def test_groups_of_private_keys_that_are_only_counted_are_refused_before_the_charge(sql):
    with numbered() as table:
        before = table.accounts.remaining(None)
        for ask in (table.sql(sql).release, table.sql(sql).explain):
            with pytest.raises(dp.InvalidArgument, match="add who to GROUP BY, for a row for each person and visit"):
                ask(epsilon=1)
        assert table.accounts.remaining(None) == before


@pytest.mark.parametrize("sql", SHOWN)
def test_groups_of_private_keys_that_are_shown_are_answered(sql):
    with numbered() as table:
        assert alike(answered(table, sql).rows, truth(sql, data=NUMBERED))


def test_what_the_refusal_advises_is_answered():
    visits = "SELECT who, visit, AVG(cost) AS m FROM data GROUP BY who, visit"
    sql = f"WITH v AS ({visits}) SELECT COUNT(*) AS k, AVG(m) AS l FROM v"
    with numbered() as table:
        assert alike(answered(table, sql).rows, truth(sql, data=NUMBERED))
        counted = "SELECT COUNT(DISTINCT visit) AS k FROM data"
        assert alike(answered(table, counted).rows, truth(counted, data=NUMBERED))
