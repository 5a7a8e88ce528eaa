"""Answers are what their definition says but for the noise, the noise is what the plan says, and errors cover."""

from __future__ import annotations

import itertools
import math
import re
import sys
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from sqlglot import exp

from dither.accounting import gaussian_ratio
from dither.errors import DitherError
from dither.mechanisms import Gaussian, Laplace
from dither.tables.compile import expressions as rows
from dither.tables.compile.expressions import bounded as bounds_within
from dither.tables.compile.statements import grid
from dither.tables.execute import run as answering
from dither.tables.planning.automatic import edges_of
from dither.tables.planning.group_keys import every_group
from dither.tables.planning.plan import answer_type
from dither.tables.query import evaluate, nodes
from dither.tables.query.tree import Aggregate, Call, Column, Group, Literal, Query
from support import assert_distribution, refuses
from tables import questions
from tables.glass import COLUMNS, bounded, card, table
from tables.planned import check, make
from tables.test_question_neighbors import rows as some_rows
from tables.weighted import weighted_sums

NUMERIC = {"+", "-", "*", "/", "neg", "abs"}
AMOUNT, AGE, TOWN, REGION = (Column(name) for name in ("amount", "age", "town", "region"))

# -- the definition, in plain Python -------------------------------------------------------------------------------


def raw(expression, row):
    """A value as it is compared: columns as they are, NaN as NULL, arithmetic within bounds."""
    if isinstance(expression, Call):
        if expression.op in NUMERIC:
            return held(expression, row)
        args = [raw(item, row) for item in expression.args]
        if expression.op in ("case", "coalesce"):
            values = expression.args if expression.op == "coalesce" else (*expression.args[1::2], expression.args[-1])
            if any(numeric(item) == "number" for item in values):
                return held(expression, row)
        return evaluate.evaluate(Call(expression.op, tuple(Literal(item) for item in args)), {})
    value = row[expression.name] if isinstance(expression, Column) else expression.value
    if isinstance(value, float) and math.isinf(value):  # it compares as the largest number does
        return math.copysign(sys.float_info.max, value)
    return None if isinstance(value, float) and math.isnan(value) else value


def numeric(expression):
    return rows.compile(expression, rows.lookup(card(), {})).type


def held(expression, row):
    """A value as it is computed with: columns within their bounds, on their grid."""
    if isinstance(expression, Column):
        value, (low, high) = raw(expression, row), COLUMNS[expression.name].bounds
        if value is None:
            return None
        value = float(min(max(value, low), high))
        scale = 1.0 if COLUMNS[expression.name].type == "integer" else rows.scale_of(low, high)
        return math.floor(value * scale + 0.5) / scale
    if isinstance(expression, Literal):
        return None if expression.value is None else float(expression.value)
    inner = [
        raw(item, row) if expression.op == "case" and i % 2 == 0 and i < len(expression.args) - 1 else held(item, row)
        for i, item in enumerate(expression.args)
    ]
    return evaluate.evaluate(Call(expression.op, tuple(Literal(item) for item in inner)), {})


def on_grid(value, bounds, how):
    if value is None:
        return None
    return math.floor(min(max(value, bounds[0]), bounds[1]) * how.scale + 0.5)


def defined(query, data, made):
    """The answers of each group: every person with all rows in all groups, each row at the person's weight."""
    measures = list(made.measures)
    names = [f"c{i}" for i in range(len(measures))]
    lines = []
    for row in data:
        if row["person"] is None or (query.where is not None and raw(query.where, row) is not True):
            continue
        key = tuple(raw(group.value, row) for group in query.groups)
        if all(keys is None or part in keys for part, keys in zip(key, made.keys, strict=True)):
            steps = {
                name: steps_of(measure, row)
                for name, measure in zip(names, measures, strict=True)
                if measure.moments is not None
            }
            lines.append((row["person"], key, steps))
    people = any(measure.kind == "people" for measure in measures)
    by_person = not query.groups or people or made.limits.norm == 2 or made.selection is not None
    sums = weighted_sums(lines, made.limits, measures, names, by_person)
    nothing = (0,) * len(measures)
    return {
        key: {
            name: answered(
                stated.kind, made, made.measures_of[name], dict(zip(measures, sums.get(key, nothing), strict=True))
            )
            for name, stated in query.aggregates.items()
        }
        for key in every_group(made.keys) or sums
    }


def steps_of(measure, row):
    """A value in steps of its grid; where values are only counted, 0."""
    how, bounds = measure.moments.grid, measure.moments.bounds
    pick = raw if how is None or isinstance(measure.value, Column) else held
    value = pick(measure.value, row)
    return on_grid(value, bounds, how) if how is not None or value is None else 0


def answered(kind, made, parts, sums):
    """An answer from the sums of its parts."""
    unit = Fraction(parts[0].unit(made.limits))
    numbers = [Fraction(sums[part]) / unit for part in parts]
    if len(parts) == 1:
        return float(numbers[0]) if kind == "sum" else round(float(numbers[0]))
    moments = parts[0].moments
    valued = numbers[: moments.degree + 1]
    count = sum(valued)
    if kind in ("count", "count_value"):
        return round(float(sum(numbers) if kind == "count" else count))
    how = moments.grid
    above = valued[1] if moments.degree == 1 else valued[1] / 2 + valued[2]
    total = (how.low * count + how.width * above) / Fraction(how.scale)
    if kind == "sum":
        return float(total)
    return float(total / count) if count > Fraction(1, 2) else None  # half a value, by its weight, is taken for none


values = questions.numbers(depth=1, textual=("region", "town"))
kinds = st.one_of(
    st.just(Aggregate("count")),
    st.just(Aggregate("people")),
    st.tuples(st.sampled_from(["sum", "mean"]), values).map(lambda t: Aggregate(t[0], t[1], bounds=(-50, 130))),
    st.sampled_from(["sum", "mean"]).map(lambda kind: Aggregate(kind, AGE)),
    values.map(lambda value: Aggregate("count_value", value)),
)
QUESTIONS = {
    "data": some_rows,
    "asked": st.dictionaries(st.sampled_from("abc"), kinds, min_size=1, max_size=2),
    "by": st.sampled_from(
        [
            (),
            (Group("region", REGION),),
            (Group("region", REGION, keys=("north", "east", None)),),
            (Group("town", TOWN),),
            (Group("town", TOWN), Group("vip", Column("vip"))),
        ]
    ),
    "where": st.none() | questions.conditions(1, textual=("region", "town")),
    "limit": st.integers(1, 3),
}


def judge(data, asked, by, where, limit):
    query = Query(asked, by, where)
    try:
        planned = make(query, card(), epsilon=1, delta=1e-6, max_groups=1000, max_rows=limit)
        check(planned)
    except DitherError:
        assume(False)  # bounds that cannot be had, numbers out of range: see test_plan
    seen = bounded(planned, table(data)).answer
    wanted = defined(query, data, planned)
    assert set(seen.keys) == set(wanted)
    for i, key in enumerate(seen.keys):
        for name, stated in asked.items():
            mine = wanted[key][name]
            if stated.kind in ("count", "count_value", "people"):
                assert abs(seen.answers[name][i] - mine) <= (0 if planned.limits.bits() == 0 else 1)  # ties of rounding
                continue
            if stated.kind == "sum" and answer_type(planned, stated) == "integer":  # weighted values add up to any
                assert isinstance(seen.answers[name][i], int)
                assert abs(seen.answers[name][i] - mine) <= 0.5 + 1e-6
                continue
            assert seen.answers[name][i] == (None if mine is None else pytest.approx(mine, rel=1e-9, abs=1e-9))


@settings(max_examples=15)
@given(**QUESTIONS)
def test_without_noise_answers_are_their_definition(**asked):
    judge(**asked)


@pytest.mark.slow
@settings(max_examples=150)
@given(**QUESTIONS)
def test_without_noise_answers_are_their_definition_however_long_one_looks(**asked):
    judge(**asked)


def test_whole_numbers_take_part_in_arithmetic_within_their_bounds():
    """Inside COALESCE and CASE, too: seventeen factors of 2^63 overflow a double, which is an error on PostgreSQL."""
    age = Call("coalesce", (AGE, Literal(0)))
    inverse = Call("/", (Literal(1), age))
    data = [{"person": 1, "age": 1000}, {"person": 2, "age": -(1 << 63)}, {"person": 3, "age": 60}]
    planned = make(Query({"s": Aggregate("sum", inverse, bounds=(0, 1))}), card(), epsilon=1)
    assert bounded(planned, table(data)).answer.answers["s"] == [pytest.approx(1 / 120 + 1 / 60, abs=1e-6)]
    power = age
    for _ in range(5):
        power = Call("*", (power, age))
    planned = make(Query({"s": Aggregate("sum", power, bounds=(0, 1))}), card(), epsilon=1)
    assert "120" in nodes.render(rows.compile(power, rows.lookup(card(), {})).node, "duckdb")
    assert bounded(planned, table(data)).answer.answers["s"] == [2.0]


def test_choices_without_noise_are_in_the_middle():
    data = [{"person": i, "amount": float(i), "age": i, "town": "abc"[i % 10 // 4]} for i in range(101)]
    asked = {
        "median": Aggregate("quantile", AGE),
        "third": Aggregate("quantile", AGE, at=1 / 3),
        "fine": Aggregate("quantile", AMOUNT, at=0.9),
        "mode": Aggregate("mode", TOWN, keys=("c", "b", "a")),
        "hist": Aggregate("histogram", AMOUNT, edges=(0, 10, 50, 100)),
    }
    result = bounded(make(Query(asked), card(), epsilon=1), table(data)).answer.answers
    assert result["median"] == [50]
    assert result["third"] == [33]
    assert result["fine"][0] == pytest.approx(90, abs=1)
    assert result["mode"] == ["a"]
    assert result["hist"] == [[10, 40, 51]]


# -- the noise -----------------------------------------------------------------------------------------------------

MANY = 50_000


def discrete_laplace(b):
    q = math.exp(-1 / b)
    return lambda k: np.where(k < 0, q ** -np.minimum(k, 0) / (1 + q), 1 - q ** (np.maximum(k, 0) + 1) / (1 + q))


def noise_of(made, lines):
    """The answers of a plan about whatever an engine would have said."""
    frame = made.statement_context("duckdb", {"": exp.to_table("t")}, 1)
    return answering.answer(made, frame, lines)


def many(asked, noise="laplace", **how):
    keys = tuple(range(MANY))
    return make(Query(asked, (Group("code", Column("code"), keys),)), card(), epsilon=1, delta=1e-6, noise=noise, **how)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", ["count", "sum"])
def test_the_noise_has_the_scale_of_the_plan(noise, kind):
    """What one person counts for over the share of epsilon: a scale 10 % off is refused."""
    asked = {"a": Aggregate(kind, AMOUNT if kind == "sum" else None), "b": Aggregate("people")}
    planned = many(asked, noise, max_groups=3, max_rows=2)
    (measure,) = planned.measures_of["a"]
    mechanism, unit = planned.measures[measure], measure.unit(planned.limits)
    sample = np.array(noise_of(planned, lambda _: []).answers["a"])
    half = 0.5 if kind == "count" else 0.0  # counts are rounded to whole numbers
    if isinstance(mechanism, Laplace):
        scale = 3 * 2 * {"count": 1 / Fraction(1, 2), "sum": 100 / Fraction(2, 3)}[kind]
    else:
        assert isinstance(mechanism, Gaussian)
        ratio = gaussian_ratio(Fraction(1), Fraction(1, 10**6))
        share = {"count": Fraction(1, 2), "sum": Fraction(2, 3)}[kind]
        scale = math.sqrt(3) * 2 * {"count": 1, "sum": 100}[kind] * float(ratio) / math.sqrt(share)

    def cdf_for(b):
        law = stats.laplace if isinstance(mechanism, Laplace) else stats.norm
        return lambda k: law.cdf((k + half) / b)

    assert float(mechanism.scale) / unit == pytest.approx(float(scale), rel=0.01)
    assert_distribution(sample, cdf_for, float(scale))


def test_histograms_have_noise_for_groups_times_rows():
    edges = tuple(range(MANY + 1))
    asked = Query({"h": Aggregate("histogram", AMOUNT, edges=edges)})
    planned = make(asked, card(), epsilon=1, max_rows=4)
    sample = np.array(noise_of(planned, lambda _: []).answers["h"][0])

    assert_distribution(sample, discrete_laplace, 4.0)


def test_a_mode_is_chosen_with_the_odds_of_its_plan():
    planned = make(Query({"m": Aggregate("mode", TOWN, keys=("a", "b"))}), card(), epsilon=1)
    one = 1 << planned.bin_limits(planned.choices[0].aggregate).bits()  # a row
    drawn = [
        answering._choose_bin(planned.choices[0], np.array([3 * one, 2 * one]), planned, 0.95).value == "a"
        for _ in range(20_000)
    ]  # odds e^(1 * (3 - 2)) : 1, since counts move in one direction
    low, high = stats.binom.interval(1 - 1e-9, len(drawn), math.e / (1 + math.e))
    assert low <= sum(drawn) <= high
    halved = stats.binom.interval(1 - 1e-9, len(drawn), math.exp(0.5) / (1 + math.exp(0.5)))
    assert sum(drawn) > halved[1], "the test cannot see half the epsilon"


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_errors_cover_what_they_say(noise):
    """95 % of the true values are within ±, but for a chance of 1e-9."""
    asked = {
        "n": Aggregate("people"),
        "s": Aggregate("sum", AMOUNT),
        "m": Aggregate("mean", AMOUNT),
        "v": Aggregate("var", AMOUNT),
        "d": Aggregate("std", AMOUNT),
    }
    keys = tuple(range(2000))
    planned = make(
        Query(asked, (Group("code", Column("code"), keys),)),
        card(), epsilon=1, delta=1e-6, noise=noise,
    )  # fmt: skip
    number, mean, var = 300, 30.0, 200.0
    t = mean / 100
    squares = var * (number - 1) / number / 100**2 + t * t
    parts = (1 - 2 * t + squares, 2 * (t - squares), squares)
    stated = [
        number * (1 if measure.kind == "people" else parts[measure.part]) * measure.unit(planned.limits)
        for measure in planned.measures
    ]
    result = noise_of(planned, lambda _: [(key, *map(round, stated)) for key in keys])
    truth = {"n": number, "s": number * mean, "m": mean, "v": var, "d": math.sqrt(var)}
    for name, true in truth.items():
        within = sum(
            abs(value - true) <= error + 1e-6 * abs(true)
            for value, error in zip(result.answers[name], result.errors[name], strict=True)
        )
        assert within >= stats.binom.ppf(1e-9, len(keys), 0.95), name
        most = 0.97 if name in ("n", "s", "m") else 0.98  # a variance may be at the end of its range
        assert within <= stats.binom.isf(1e-9, len(keys), most), "an error that always covers says nothing"


def test_groups_are_in_an_order_that_says_nothing():
    planned = make(Query({"n": Aggregate("people")}, (Group("town", TOWN),)), card(), epsilon=1, delta=1e-6)
    lines = [("b", 10**6), (None, 10**6), ("a", 10**6), ("Z", 10**6), ("few", 1)]
    for some in (lines, lines[::-1]):
        assert noise_of(planned, lambda _, some=some: some).keys == [("Z",), ("a",), ("b",), (None,)]


def test_what_is_not_shown_is_one_row_and_null_may_be_a_key_as_well():
    asked = {"n": Aggregate("people"), "m": Aggregate("quantile", AGE), "h": Aggregate("histogram", AGE, edges=(0, 9))}
    planned = make(Query(asked, (Group("town", TOWN),)), card(), epsilon=10, delta=1e-6, other=True, noise="laplace")

    def run(sql):
        if re.search(r" AS b\b", sql.text):  # the bins
            return [("a", 0, 10**9), (None, 0, 10**9), ("few", 0, 1024)]
        return [("a", 10**6), (None, 10**6), ("few", 1)]

    result = noise_of(planned, run)
    assert result.keys == [("a",), (None,), (None,)]
    assert abs(result.answers["n"][2] - 1) < 100
    assert result.answers["m"][2] is None
    assert result.answers["h"][2] is None
    assert [error[2] for error in result.errors.values()] == [None] * 3


def test_too_many_groups_are_refused():
    keys = tuple(range(1001))
    by = (Group("a", Column("code"), keys), Group("b", AGE, keys))
    with refuses(DitherError, "at most 1000000"):
        every_group(make(Query({"n": Aggregate("count")}, by), card(), epsilon=1).keys)


@pytest.mark.parametrize("drawn", [10**25, -(10**25), (1 << 63) - 1, -(1 << 63)])
def test_noise_wider_than_64_bits_is_answered(drawn):
    """Noise is a Python integer for a total and 64 bits for groups: neither decides whether there is an answer."""
    lines = [("a", 3, 40), ("b", 2, 7)]
    asked = {"n": Aggregate("people"), "s": Aggregate("sum", AMOUNT)}

    def wide(_self, values, **_):
        return drawn if isinstance(values, int) else np.full_like(values, max(min(drawn, (1 << 63) - 1), -(1 << 63)))

    private = make(Query(asked, (Group("town", TOWN),)), card(), epsilon=1e-5, delta=1e-3, noise="laplace", other=True)
    public = make(Query(asked, (Group("town", TOWN, keys=("a", "b")),)), card(), epsilon=1e-5, noise="laplace")
    with patch.object(Laplace, "release", wide):
        for planned, stated in ((private, lines), (public, [(0, 3, 40), (1, 2, 7)])):
            result = answering.answer(
                planned,
                planned.statement_context("duckdb", {"": exp.to_table("t")}, 1),
                lambda _, stated=stated: stated,
            )
            assert all(math.isfinite(value) for values in result.answers.values() for value in values)


def test_keys_that_are_alike_share_no_line():
    """Were a key listed twice, a line would still count once: groups are told apart by the numbers of their keys."""
    planned = make(
        Query({"n": Aggregate("people")}, (Group("town", TOWN, keys=("a", "b")),)), card(), epsilon=1, max_groups=2
    )
    planned = replace(planned, keys=(("a", "a", "a"),))
    with patch.object(Laplace, "release", lambda _self, values, **_: values):
        result = answering.answer(
            planned, planned.statement_context("duckdb", {"": exp.to_table("t")}, 1), lambda _: [(0, 7)]
        )
    assert result.keys == [("a",)] * 3
    assert result.answers["n"] == [7, 0, 0]


def test_an_extreme_at_the_smallest_epsilon_is_answered():
    for kind in ("min", "max"):
        planned = make(Query({"m": Aggregate(kind, AMOUNT)}), card(), epsilon=1e-18)
        counts = np.zeros(planned.choices[0].bins, dtype=np.int64)
        counts[0] = 3
        assert isinstance(answering._choose_bin(planned.choices[0], counts, planned, 0.95).value, float)


@pytest.mark.parametrize(
    "stated",
    [
        None, (-60, 600), (0, 1), (0, 1e-30), (-1e-30, 5), (0, 2**-21), (-(2**-21), 1), (1e6, 1e6 + 1), (0, 1e300),
        (-1e300, -1e299), (31.9, 32.1), (-5, 2.0000001), (1.9999, 513), (2.0**50, 2.0**51), (2**52, 2**52 + 1),
    ],
)  # fmt: skip
def test_whatever_bounds_are_chosen_privately_can_be_measured(stated):
    """They are chosen after the charge: no choice may fail then, whatever the bounds of the card are."""
    for low, high in itertools.combinations(edges_of(stated, False), 2):
        for limit in (1, 256, 1 << 20):
            assert grid((low, high), False, 24, limit).width > 0
        assert grid((low, high), False, 4, 1).width > 0
        bounds_within(low, high)
    for low, high in itertools.combinations(edges_of(stated, True), 2):
        for limit in (1, 256, 1 << 20):
            assert grid((math.floor(low), max(math.ceil(high), math.floor(low) + 1)), True, 24, limit).width > 0
