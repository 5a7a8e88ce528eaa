"""Neighbors: all rows of one person removed. Whatever reaches a mechanism moves by no more than is paid for."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from datetime import date, datetime

import mpmath as mp
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import DitherError
from dither.guarantees import ApproxDP
from dither.tables.card.model import Card, ColumnCard
from dither.tables.compile import statements
from dither.tables.compile.context import StatementContext
from dither.tables.compile.limits import Limits
from dither.tables.compile.statements import Measure, Moments
from dither.tables.engines import connect
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.query.tree import Aggregate, Call, Column, Group, Literal, Query
from tables.glass import bounded, bounded_tables, card, losses, table
from tables.planned import make

pytestmark = pytest.mark.slow

AMOUNT, AGE, TOWN, REGION, VIP = (Column(name) for name in ("amount", "age", "town", "region", "vip"))
HALF = Call("/", (AMOUNT, Literal(2)))
MIXED = Call("*", (Call("coalesce", (AGE, Literal(3))), Call("case", (VIP, AGE, Literal(2)))))

# values at, just inside and far beyond their bounds; keys that only one person may have
people = st.sampled_from([None, 1, 1, 1, 1, 2, 3, 4])
amounts = st.sampled_from([None, 0.0, -0.0, 5e-324, 49.5, 99.99999999, 100.0, 1e308, -1e308, math.inf, -math.inf,
                           math.nan]) | st.floats(-200, 200)  # fmt: skip
ages = st.sampled_from([None, 0, 1, 60, 120, 121, -1, (1 << 63) - 1, -(1 << 63)])
row = st.fixed_dictionaries(
    {
        "person": people,
        "region": st.sampled_from([None, "north", "south", "east"]),
        "town": st.sampled_from([None, "", "a", "A", "é", "e\u0301", "🎲"]),
        "code": st.sampled_from([None, 5, 5 + (1 << 31) - 1, 5 + 2 * ((1 << 31) - 1), -(1 << 63)]),
        "amount": amounts,
        "age": ages,
        "day": st.sampled_from([None, date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]),
        "at": st.sampled_from([None, datetime(1, 1, 1), datetime(2024, 2, 29, 23, 59, 59, 999999)]),
        "vip": st.sampled_from([None, True, False]),
    }
)
# some rows are there several times, and one person has many of them: otherwise nobody reaches the bounds
rows = st.lists(st.tuples(row, st.sampled_from([1, 1, 2, 4])), max_size=16).map(
    lambda drawn: [row for row, times in drawn for _ in range(times)]
)
aggregates = st.sampled_from(
    [
        Aggregate("count"),
        Aggregate("people"),
        Aggregate("count_value", AMOUNT),
        Aggregate("count_distinct", AMOUNT),
        Aggregate("count_distinct", TOWN),
        Aggregate("count_distinct", Column("code")),
        Aggregate("sum", AMOUNT),
        Aggregate("sum", AGE, bounds=(-5, 7)),
        Aggregate("sum", MIXED),
        Aggregate("mean", AMOUNT),
        Aggregate("mean", AGE, bounds=(20, 30)),
        Aggregate("var", HALF),
        Aggregate("std", AGE),
        Aggregate("corr", AMOUNT, other=AGE),
        Aggregate("regr_slope", AGE, bounds=(20, 30), other=HALF),
        Aggregate("min", AMOUNT),
        Aggregate("max", AGE),
        Aggregate("quantile", AMOUNT, at=0.5),
        Aggregate("quantile", AMOUNT, at=0.9),
        Aggregate("quantile", AGE, at=0.75),
        Aggregate("quantile", AGE, at=0.3333333333333333),
        Aggregate("mode", TOWN, keys=("a", "A", "é")),
        Aggregate("histogram", AMOUNT, edges=(0, 1, 50, 100)),
        # with a limit of their own, beside those of the same column with other limits
        Aggregate("count", rows_per_person=1),
        Aggregate("count_value", AMOUNT, rows_per_person=7),
        Aggregate("sum", AMOUNT, rows_per_person=1),
        Aggregate("mean", AMOUNT, rows_per_person=2),
        Aggregate("var", AMOUNT, rows_per_person=3),
        Aggregate("std", AGE, rows_per_person=30),
        Aggregate("corr", AMOUNT, other=AGE, rows_per_person=1),
        Aggregate("max", AGE, rows_per_person=2),
        Aggregate("quantile", AMOUNT, at=0.5, rows_per_person=1),
        Aggregate("mode", TOWN, keys=("a", "A", "é"), rows_per_person=2),
        Aggregate("histogram", AMOUNT, edges=(0, 1, 50, 100), rows_per_person=1),
    ]
)
groups = st.sampled_from(
    [
        (),
        (),
        (),
        (Group("region", REGION),),
        (Group("region", REGION, keys=("north", "south", None)),),
        (Group("town", TOWN, keys=("", "a", "A", "é", "e\u0301", "🎲")),),
        (Group("town", TOWN),),
        (Group("code", Column("code")),),
        (Group("town", TOWN), Group("vip", VIP)),
        (Group("code", Column("code")), Group("town", TOWN)),
        (Group("b", Call("bin", (AMOUNT, Literal(0), Literal(50), Literal(100)))),),
        (Group("month", Call("date_trunc", (Literal("month"), Column("day")))),),
        (Group("hour", Call("date_trunc", (Literal("hour"), Column("at")))),),
        (Group("person", Column("person")),),
        # keys that are public without being listed
        (Group("age", AGE),),
        (Group("tens", Call("floor", (Call("/", (AMOUNT, Literal(10))),))), Group("vip", VIP)),
        (
            Group(
                "kind", Call("case", (VIP, Literal("a"), Call(">", (AMOUNT, Literal(50))), Literal("b"), Literal(None)))
            ),
        ),
        (Group("kind", Call("coalesce", (Call("case", (VIP, REGION, Literal(None))), Literal("none")))),),
        (Group("day", Column("day")), Group("town", TOWN)),
    ]
)
conditions = st.sampled_from(
    [
        None,
        Call("<>", (Column("person"), Literal(2))),
        Call(">", (Call("/", (AMOUNT, AGE)), Literal(0.5))),
        Call("or", (VIP, Call("is_null", (AMOUNT,)))),
        Call("not", (Call("in", (TOWN, Literal("a"), Literal("é"))),)),
        Call("in", (TOWN, Literal("a"), Literal("é"))),
        Call(
            "and",
            (
                Call("=", (TOWN, Literal("a"))),
                Call("between", (Column("day"), Literal(date(2024, 2, 28)), Literal(date(2024, 3, 1)))),
            ),
        ),
    ]
)

EXAMPLES = 60
"""Trees of questions, for what SQL cannot say (histograms, keys and bounds of one aggregate); the search over SQL, and
the planted defects that it must find, are in ``tables/neighbors``."""
QUESTIONS = {
    "data": rows,
    "aggregates": st.dictionaries(st.sampled_from("abcd"), aggregates, min_size=1, max_size=3),
    "by": groups,
    "where": conditions,
    "most": st.tuples(st.sampled_from([1, 1, 2, 3]), st.sampled_from([1, 2, 3, 5])),
    "how": st.fixed_dictionaries({"noise": st.sampled_from(["best", "laplace", "gaussian"]), "other": st.booleans()}),
    "unit": st.sampled_from(["person", "person", "town", None]),
    "without_unit": st.sampled_from(["drop", "each"]),
    "secret": st.integers(0, 9),
    "place": st.floats(0, 0.999),
}


def check_neighbors(data, aggregates, by, where, most, how, unit, without_unit, secret, place):
    query = Query(aggregates, by, where)
    about = card(unit, rows_without_unit=without_unit if unit else None)
    limits = {"epsilon": 1, "delta": 1e-6, "max_groups": most[0], "max_rows": most[1]}
    try:
        planned = make(query, about, **limits, **how)
    except DitherError:
        assert how["other"]  # for which keys have to be private
        planned = make(query, about, **limits, noise=how["noise"])
    owners = [row[unit] if unit else i for i, row in enumerate(data)]
    if without_unit == "each":
        owners = [f"row {i}" if owner is None else owner for i, owner in enumerate(owners)]
    known = Counter(owner for owner in owners if owner is not None).most_common()
    # the one with the most rows is the likeliest to reach a bound; and another
    removed = {known[0][0], known[secret % len(known)][0]} if known else set()
    fewer_rows = [[row for row, owner in zip(data, owners, strict=True) if owner != person] for person in removed]
    # neighbors choose alike, so that what they choose next is about the same
    whole, *others = bounded_tables(planned, map(table, [data, *fewer_rows]), secret, place)
    for fewer in others:
        check_pair(planned, whole, fewer)


def check_pair(planned, whole, fewer):
    pure, normal = losses(planned, whole, fewer)
    assert pure <= 1 + 1e-9
    if planned.selection is not None:
        alone = [
            key for key in {*map(tuple, whole.keys)} - {*map(tuple, fewer.keys)} if not (planned.other and None in key)
        ]
        assert len(alone) <= planned.max_groups
        assert planned.selection.threshold > 1
    else:
        assert whole.keys == fewer.keys
    if normal:
        assert isinstance(planned.guarantee, ApproxDP)
        share = 1e-6 / 2 if planned.selection is not None else 1e-6
        assert delta_of(1 - pure, 1 / math.sqrt(normal)) <= share * (1 + 1e-9)


@settings(max_examples=EXAMPLES)
@given(**QUESTIONS)
def test_neighbors_can_tell_no_more_than_is_charged(**question):
    check_neighbors(**question)


RACED = st.sampled_from(
    [
        Aggregate("count"),
        Aggregate("count_value", AMOUNT),
        Aggregate("sum", AMOUNT),
        Aggregate("sum", AMOUNT, bounds=(3, 1e6)),
        Aggregate("sum", AGE, bounds=(0, 7)),
    ]
)
ANY_TAIL = {
    "aggregates": st.dictionaries(st.sampled_from("ab"), RACED, min_size=1),
    "by": st.sampled_from([(), (Group("region", REGION, keys=("north", "south", None)),)]),
    "how": st.fixed_dictionaries(
        {"noise": st.sampled_from(["laplace", "gaussian"]), "other": st.just(False), "tails": st.just("any")}
    ),
    "most": st.tuples(st.sampled_from([1, 2]), st.sampled_from([1, 5, 1 << 19])),
    "without_unit": st.just("drop"),
}


@settings(max_examples=EXAMPLES)
@given(**{**QUESTIONS, **ANY_TAIL})
def test_neighbors_can_tell_no_more_of_any_tail(**question):
    check_neighbors(**question)


SETS = {
    "ROLLUP": [(0, 1), (0,), ()],
    "CUBE": [(0, 1), (0,), (1,), ()],
    "GROUPING SETS": [(0,), (1,)],
    "others": [(0,), ()],
}


@settings(max_examples=40)
@given(
    **{name: QUESTIONS[name] for name in ("data", "aggregates", "where", "most", "secret", "place")},
    sets=st.sampled_from(sorted(SETS)),
    noise=st.sampled_from(["best", "laplace", "gaussian"]),
    unit=st.sampled_from(["person", "person", None]),
)
def test_neighbors_can_tell_no_more_of_all_aggregations_than_is_charged(
    data, aggregates, where, most, secret, place, sets, noise, unit
):
    """Everything that reaches a mechanism, of all aggregations of a question together."""
    columns = (Group("region", REGION, keys=("north", "south", None)), Group("vip", VIP))
    parts = []
    for chosen in SETS[sets]:
        rest = tuple(group for i, group in enumerate(columns) if i not in chosen and sets != "others")
        parts.append(Query(aggregates, tuple(columns[i] for i in chosen), where, rolled_up=rest))
    options = ReleaseOptions(epsilon=1, delta=1e-6, max_groups=most[0], max_rows=most[1], noise=noise)
    public = replace(card(unit), budget=ApproxDP(10, 1e-3))
    planned = plan_question(replace(parts[0], more=tuple(parts[1:])), public, options)
    assert planned.cost.exact[0] == 1
    owners = [row[unit] if unit else i for i, row in enumerate(data)]
    known = Counter(owner for owner in owners if owner is not None).most_common(1)
    fewer = [row for row, owner in zip(data, owners, strict=True) if not known or owner != known[0][0]]
    pure = normal = 0.0
    for part in planned.parts:
        whole, less = bounded_tables(part, [table(data), table(fewer)], secret, place)
        losses_of_part = losses(part, whole, less)
        assert whole.keys == less.keys
        pure, normal = pure + losses_of_part[0], normal + losses_of_part[1]
    assert pure <= 1 + 1e-9
    if normal:
        assert delta_of(1 - pure, 1 / math.sqrt(normal)) <= 1e-6 * (1 + 1e-9)


def delta_of(epsilon: float, ratio: float) -> float:
    """The exact curve of normal noise, at high precision."""
    with mp.workdps(60):
        r, e = mp.mpf(ratio), mp.mpf(epsilon)
        return float(mp.ncdf(1 / (2 * r) - e * r) - mp.exp(e) * mp.ncdf(-1 / (2 * r) - e * r))


@pytest.mark.parametrize("key", ["code", "two columns"])
def test_whose_groups_are_kept_depends_on_nobody_else_even_where_hashes_agree(key):
    """Keys that differ by 2^31 - 1 have the same hash under every secret: no tie may go by the order of rows."""
    step = (1 << 31) - 1
    by = (Group("code", Column("code")),) + ((Group("vip", VIP),) if key == "two columns" else ())
    made = make(Query({"n": Aggregate("count")}, by), card(), epsilon=1, delta=1e-6, max_groups=1)
    for some in range(60, 68):
        told = [(who, code) for who in range(some) for code in ((5, 5 + step) if who % 2 else (5 + step, 5))]
        mixed = random.SystemRandom().sample([*told, (-1, 5)], len(told) + 1)
        both = [
            bounded(made, table([{"person": who, "code": code, "vip": True} for who, code in told]))
            for told in (mixed, [item for item in mixed if item[0] != -1])
        ]
        assert losses(made, *both)[0] <= 1 + 1e-9


def test_which_values_are_kept_depends_on_nobody_else():
    """With many rows in each bin, hashes over numbers of rows agree often; and rows are read by several threads."""
    columns = {"who": ColumnCard("integer"), "x": ColumnCard("number", (0, 100))}
    asked = Query({"h": Aggregate("histogram", Column("x"), edges=tuple(range(0, 101, 10)))})
    made = make(asked, Card("t", "", columns, "who"), epsilon=1, max_rows=2)
    drawn = np.random.default_rng().permutation(300_000)
    who, x = drawn % 50, (drawn // 50 % 10) * 10.0 + 5
    mine = who == 7
    both = [bounded(made, pa.table({"who": who[some], "x": x[some]})) for some in (mine | True, ~mine)]
    assert losses(made, *both)[0] <= 1 + 1e-9


@pytest.mark.parametrize("limit", [1, 3, 4000])
@pytest.mark.parametrize("norm", [1, 2])
def test_the_bound_of_a_person_with_very_many_rows(limit, norm):
    """Counts in units of 2^-20 are near the largest number here; the weights are so small that they take all of it."""
    columns = {"person": ColumnCard("integer"), "x": ColumnCard("integer", (-7, 5))}
    one = Card("t", "", columns, "person")
    data = pa.table({"person": [1] * 5000, "x": [5, -7, None, 1 << 40, -(1 << 62)] * 1000})
    fine, coarse = statements.grid((-7, 5), True, 24, limit), statements.grid((-7, 5), False, 6, 1)
    column, bounds, limits = Column("x"), (-7, 5), Limits(1, limit, norm)
    vectors = [
        (Measure("rows"),),
        (Measure("sum", column, Moments(column, 1, False, bounds, fine)),),
        Moments(column, 1, True, bounds, fine).parts,
        Moments(column, 2, True, bounds, coarse).parts,
    ]
    asked = [measure for vector in vectors for measure in vector]
    with connect(data, one) as engine:
        frame = StatementContext(Query({}), one, (), limits, 3, "duckdb", {"": engine.table})
        result = iter(engine.run(statements.sums(frame, asked)).to_pylist()[0].values())
    for vector in vectors:
        sensitivity = vector[0].sensitivity(limits)
        total = sum(abs(next(result)) for _ in vector)
        assert total <= sensitivity
        assert vector[0].kind == "sum" or total > sensitivity * 0.99  # as many parts as rows, all of them positive
