"""One person moves all measures of all groups together by no more than the limits say, whatever the rows are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dither.tables.card.model import Card, ColumnCard
from dither.tables.compile import limits as limiting
from dither.tables.compile import statements
from dither.tables.compile.context import StatementContext
from dither.tables.compile.limits import Limits
from dither.tables.compile.statements import Measure, Moments, grid
from dither.tables.engines import Engine, connect
from dither.tables.query import nodes
from dither.tables.query.nodes import Dialect, binary, call, cast, double, integer, plain_column
from dither.tables.query.tree import Column, Group, Query
from tables.weighted import norm, weighted_sums

GROUPS = 6
LOW, HIGH = -7001, 5000
CARD = Card(
    "t",
    "",
    {
        "who": ColumnCard("integer"),
        "place": ColumnCard("integer", keys=tuple(range(GROUPS))),
        "code": ColumnCard("integer"),
        "x": ColumnCard("integer", (LOW, HIGH)),
        "y": ColumnCard("number", (-0.5, 3.0)),
    },
    "who",
)
SCHEMA = pa.schema(
    {"who": pa.int64(), "place": pa.int64(), "code": pa.int64(), "x": pa.int64(), "y": pa.float64()}.items()
)
X, Y = Column("x"), Column("y")
QUERIES = {
    "none": (Query({}), ()),
    "public": (Query({}, (Group("g", Column("place")),)), (tuple(range(GROUPS)),)),
    "private": (Query({}, (Group("g", Column("code")),)), (None,)),
}
# nearly all rows are those of person 1, at the ends of their bounds; the others are there to be counted as before
row = st.tuples(
    st.sampled_from([1, 1, 1, 1, 1, 2, 3, None]),
    st.integers(0, GROUPS - 1),
    st.sampled_from([None, LOW, LOW, HIGH, HIGH, 0, 17, LOW - 1, 1 << 40]),
    st.sampled_from([None, -0.5, 3.0, 0.1, 1e300, math.nan]),
)
rows = st.lists(st.tuples(row, st.sampled_from([1, 1, 1, 2, 5, 40])), max_size=14).map(
    lambda drawn: [row for row, times in drawn for _ in range(times)]
)
bounds = st.builds(
    Limits, st.sampled_from([1, 2, 4]), st.sampled_from([1, 3, 7]), st.sampled_from([1, 2]), st.just(True)
)
# what a sum gains by rounding away from zero, row by row, is little: it takes a large limit to exceed it
MANY_NEGATIVE_ROWS = {
    "drawn": st.integers(3001, 4000).map(lambda number: [(1, i % GROUPS, LOW, None) for i in range(number)]),
    "limits": st.just(Limits(1, 3000, 1)),
    "by": st.just("public"),
    "people": st.just(False),
}
BUILT: dict[str, Any] = {}
QUESTIONS = {
    "drawn": rows,
    "limits": bounds,
    "by": st.sampled_from(sorted(QUERIES)),
    "people": st.booleans(),
    "without_unit": st.sampled_from(["drop", "each"]),
}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with connect(pa.table([[]] * 5, schema=SCHEMA), CARD) as result:
        yield result


def table(drawn: list[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*((who, place, place, x, y) for who, place, x, y in drawn), strict=True)) or [()] * 5
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


def measurements(limits: Limits, people: bool) -> list[tuple[Measure, ...]]:
    """Vectors that are released as one, each to be moved by no more than its sensitivity."""
    total = math.ceil(limits.total)
    whole, fine = grid((LOW, HIGH), True, 24, total), grid((-0.5, 3.0), False, 24, total)
    coarse = grid((-0.5, 3.0), False, 8, 1)
    result = [
        (Measure("rows"),),
        (Measure("sum", X, Moments(X, 1, False, (LOW, HIGH), whole)),),
        Moments(X, 1, True, (LOW, HIGH), whole).parts,
        Moments(Y, 1, False, (-0.5, 3.0), fine).parts,
        Moments(Y, 2, True, (-0.5, 3.0), coarse).parts,
        Moments(X, 0, True).parts,
    ]
    result += [  # of the same columns, each with a limit of its own
        (Measure("rows", rows_per_person=1),),
        of_its_own(Moments(X, 1, True, (LOW, HIGH), grid((LOW, HIGH), True, 24, 2)).parts, 2),
        of_its_own(Moments(Y, 2, True, (-0.5, 3.0), coarse, 5).parts, 1),
        of_its_own(Moments(Y, 2, True, (-0.5, 3.0), coarse, 7).parts, 60),
    ]
    return [*result, (Measure("people"),)] if people else result


def of_its_own(parts: tuple[Measure, ...], rows_per_person: int) -> tuple[Measure, ...]:
    return tuple(replace(measure, rows_per_person=rows_per_person) for measure in parts)


def context_of(engine: Engine, limits: Limits, by: str, without_unit: Any = None) -> StatementContext:
    query, keys = QUERIES[by]
    card = replace(CARD, rows_without_unit=without_unit)
    exceeded = by == "public" and limits.groups < GROUPS
    if by == "none":
        limits = replace(limits, groups=1)
    return StatementContext(query, card, keys, replace(limits, exceeded=exceeded), 5, "duckdb", {"": engine.table})


def run(engine: Engine, statement: Any, drawn: list[tuple[Any, ...]]) -> dict[Any, tuple[int, ...]]:
    staged = engine.stage("dither_neighbor", table(drawn))
    lines = engine.run(statement.on({"": staged})).to_pylist()
    engine.drop(staged)
    names = [name for name in (lines[0] if lines else ()) if name.startswith("m")]
    return {
        tuple(value for name, value in line.items() if name not in names): tuple(line[name] for name in names)
        for line in lines
    }


def neighbors(drawn: list[tuple[Any, ...]], without_unit: str | None) -> list[list[tuple[Any, ...]]]:
    """The rows without those of person 1; and where each row without a unit is a person, without one of these."""
    result = [[row for row in drawn if row[0] != 1]]
    null = [i for i, row in enumerate(drawn) if row[0] is None]
    if without_unit == "each" and null:
        result.append([row for i, row in enumerate(drawn) if i != null[len(drawn) % len(null)]])
    return result


def check(
    engine: Engine,
    drawn: list[tuple[Any, ...]],
    limits: Limits,
    by: str,
    people: bool,
    built: dict[str, Any],
    without_unit: str | None = None,
) -> list[float]:
    """Compare with one person removed; returns how near each sensitivity the change is. Statements are kept in
    ``built``: to build one takes longer than to run it.
    """
    key = repr((limits, by, people, without_unit))
    if key not in built:
        context = context_of(engine, limits, by, without_unit)
        vectors = measurements(context.limits, people)
        measures = [measure for vector in vectors for measure in vector]
        every = [(None, None), (2, None), (None, "min"), (None, "max"), (2, "max")]
        binned = {own: statements.bins(context, Y, (-0.5, 0.0, 2.0, 3.0), None, *own) for own in every}
        built[key] = context, vectors, measures, statements.sums(context, measures), binned
    context, vectors, measures, statement, binned = built[key]
    whole = run(engine, statement, drawn)
    in_bins = {own: run(engine, statement, drawn) for own, statement in binned.items()}
    near = []
    for others in neighbors(drawn, without_unit):
        fewer = run(engine, statement, others)
        nothing = (0,) * len(measures)
        moved = {
            key: [a - b for a, b in zip(whole.get(key, nothing), fewer.get(key, nothing), strict=True)]
            for key in {*whole, *fewer}
        }
        place = 0
        for vector in vectors:
            sensitivity = vector[0].sensitivity(context.limits)
            change = norm(context.limits, (numbers[place : place + len(vector)] for numbers in moved.values()))
            assert change <= sensitivity * (1 + Fraction(1, 1 << 50)), (vector[0], change, float(sensitivity))
            near.append(change / float(sensitivity))
            place += len(vector)
        if by == "private":
            assert sum(any(numbers) for numbers in moved.values()) <= limits.groups
        for own, counted in in_bins.items():
            fewer = run(engine, binned[own], others)
            change = sum(abs(counted.get(key, (0,))[0] - fewer.get(key, (0,))[0]) for key in {*counted, *fewer})
            assert change <= statements.bin_limits(context.limits, own[0], own[1] is not None).sensitivity()
    return near


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(**QUESTIONS)
def test_one_person_moves_all_groups_together_by_no_more_than_the_sensitivity(
    engine, drawn, limits, by, people, without_unit
):
    check(engine, drawn, limits, by, people, BUILT, without_unit)


@pytest.mark.parametrize("by", sorted(QUERIES))
@pytest.mark.parametrize("norm_of_limits", [1, 2])
def test_a_heavy_person_comes_near_the_sensitivity(engine, by, norm_of_limits):
    """The sensitivities are no larger than they have to be: noise for more would be wasted."""
    limits = Limits(2, 10, norm_of_limits)
    drawn = [(1, place, LOW, -0.5) for place in (range(2) if by == "private" else range(GROUPS)) for _ in range(100)]
    near = check(engine, drawn, limits, by, True, {})
    assert min(near) > (0.99 if norm_of_limits == 1 or by != "public" else 0.57)


@pytest.mark.parametrize("by", ["none", "public"])
@pytest.mark.parametrize("extreme", ["min", "max"])
def test_extremes_are_of_each_person_in_each_group(engine, by, extreme):
    """Against a dictionary: one value of a person in a group, with equal weights that add up to the limit."""
    drawn = [(who, who * i % 3, None, (who * 7 + i * 5) % 29 / 10) for who in range(1, 9) for i in range(who)]
    edges = (-0.5, *(i / 10 for i in range(1, 29)), 3.0)
    limits = Limits(1 if by == "none" else 2, 5)
    own: dict[tuple[int, tuple[int, ...]], float] = {}
    for who, place, _, y in drawn:
        key = who, () if by == "none" else (place,)
        own[key] = y if key not in own else (min if extreme == "min" else max)(own[key], y)
    groups_of = {who: sum(key[0] == who for key in own) for who, _ in own}
    bounds = statements.bin_limits(limits, None, extreme=True)
    one = 1 << bounds.bits()
    expected: dict[tuple[int, ...], int] = {}
    for (who, group), y in own.items():
        place = (*group, int(np.searchsorted(edges[1:-1], y, side="right")))
        expected[place] = expected.get(place, 0) + min(one, one * limits.groups // groups_of[who])
    got = run(engine, statements.bins(context_of(engine, limits, by, None), Y, edges, None, None, extreme), drawn)
    assert {key: numbers[0] for key, numbers in got.items()} == expected


@pytest.mark.parametrize("most", [1, 2])
def test_a_person_in_every_group_counts_in_so_many_of_those_with_private_keys(engine, most):
    drawn = [(1, place, LOW, -0.5) for place in range(GROUPS) for _ in range(3)]
    assert most < GROUPS
    check(engine, drawn, Limits(most, 10, 1), "private", True, {})


@pytest.mark.parametrize("by", sorted(QUERIES))
@settings(max_examples=25, deadline=None)
@given(drawn=rows, limits=bounds, people=st.booleans())
def test_sums_are_those_of_the_definition(engine, drawn, limits, by, people):
    """Weights are floor(2^bits R / N), roots are taken of whole numbers, and products are rounded toward zero."""
    if by == "private":
        limits = replace(limits, groups=GROUPS)  # which of more groups are kept is a matter of hashes
    context = context_of(engine, limits, by)
    limits = context.limits
    measures = [measure for vector in measurements(limits, people) for measure in vector]
    steps, columns = [], []
    for i, measure in enumerate(measures):
        column = f"c{i}"
        columns.append(column)
        how = None if measure.moments is None else measure.moments.grid
        for j, (_, _, x, y) in enumerate(drawn):
            value = x if measure.value == X else y
            if i == 0:
                steps.append({})
            if value is None or value != value:
                steps[j][column] = None
            elif how is None:
                steps[j][column] = 0
            else:
                low, high = (LOW, HIGH) if measure.value == X else (-0.5, 3.0)
                steps[j][column] = math.floor(min(max(value, low), high) * how.scale + 0.5)
    lines = [(who, () if by == "none" else (place,), step) for (who, place, *_), step in zip(drawn, steps, strict=True)]
    by_person = by != "public" or people or limits.norm == 2
    expected = weighted_sums(lines, limits, measures, columns, by_person)
    if by == "none" and not expected:
        expected = {(): (0,) * len(measures)}
    assert run(engine, statements.sums(context, measures), drawn) == expected


# -- defects that the search must find ------------------------------------------------------------------------------


def _weight_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    quotient = nodes.integer_quotient
    monkeypatch.setattr(nodes, "integer_quotient", lambda *of: binary("+", quotient(*of), integer(1)))


def _rows_without_a_unit_in_other_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """What rows without a unit add has the places of a weight, where the sum has fewer."""
    weighted = statements._weighted

    def planted(measure: Measure, number: Any, context: StatementContext) -> Any:
        in_full = binary("*", number, integer(1 << context.limits.bits()))
        return nodes.case([(nodes.is_null(plain_column("w")), in_full)], weighted(measure, number, context))

    monkeypatch.setattr(statements, "_weighted", planted)


def _norm_of_the_largest_group(monkeypatch: pytest.MonkeyPatch) -> None:
    size_of = statements._size

    def size(limits: Limits, by_person: bool, windows: bool) -> Any:
        if not by_person:
            return size_of(limits, by_person, windows)
        n = plain_column("n")
        return call("MAX", binary("*", n, n) if limits.norm == 2 else n)

    monkeypatch.setattr(statements, "_size", size)


def _root_rounded_down(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = Limits.weight

    def planted(self: Limits, size: Any, dialect: Dialect) -> Any:
        if self.norm == 1:
            return weight(self, size, dialect)
        root = cast(call("FLOOR", call("SQRT", binary("*", cast(size, "number"), double(4096.0)))), "integer")
        one = 1 << self.bits()
        quotient = nodes.integer_quotient(integer(int(one * self.total * 64)), root, dialect)
        return nodes.case([(binary("<=", size, integer(math.floor(self.total**2))), integer(one))], quotient)

    monkeypatch.setattr(limiting.Limits, "weight", planted)


def _rounded_toward_minus_infinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        statements,
        "_weighted",
        lambda measure, number, context: context.limits.times_weight(number, plain_column("w"), measure.top),
    )


def _squares_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of rows where the weight of the l2 norm takes the sum of squares."""
    monkeypatch.setattr(
        statements,
        "binary",
        lambda op, a, b: a if op == "*" and a == b == plain_column("n") else binary(op, a, b),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "asked"),
    [
        (_weight_rounded_up, {}),
        (_rows_without_a_unit_in_other_units, {"without_unit": st.just("each")}),
        (_norm_of_the_largest_group, {}),
        (_root_rounded_down, {}),
        (_rounded_toward_minus_infinity, MANY_NEGATIVE_ROWS),
        (_squares_forgotten, {}),
    ],
)
def test_a_planted_defect_is_found(engine, plant, asked, monkeypatch):
    plant(monkeypatch)
    built: dict[str, Any] = {}
    search = settings(max_examples=400, phases=[Phase.generate], database=None, deadline=None)(
        given(**{**QUESTIONS, **asked})(lambda **question: check(engine, **question, built=built) and None)
    )
    with pytest.raises(AssertionError):
        search()


# -- the numbers themselves ----------------------------------------------------------------------------------------


@given(st.integers(1, 1000), st.integers(1, 1000), st.sampled_from([1, 2]), st.booleans())
def test_the_total_is_rounded_the_safe_way(groups, rows_of_each, norm_of_limits, weighted):
    """Down where weights see to it, up where nobody could count for more; by less than 1/64 of a row."""
    limits = Limits(groups, rows_of_each, norm_of_limits, weighted)
    if norm_of_limits == 1:
        assert limits.total == groups * rows_of_each
        return
    square = groups * rows_of_each**2
    step = Fraction(1, 64)
    if weighted:
        assert limits.total**2 <= square < (limits.total + step) ** 2
    else:
        assert (limits.total - step) ** 2 < square <= limits.total**2


@given(st.integers(1, 1 << 10), st.integers(1, 1 << 10), st.sampled_from([1, 2]), st.integers(1, 1 << 24))
def test_what_one_person_adds_leaves_room_for_many(groups, rows_of_each, norm_of_limits, top):
    limits = Limits(groups, rows_of_each, norm_of_limits)
    bits = limits.bits(top)
    assert 0 <= bits <= 20
    assert bits == 0 or limits.sensitivity(top) < 1 << 30
    assert limits.sensitivity(top) == limits.total * top * (1 << bits)
    assert Limits(groups, rows_of_each, norm_of_limits, weighted=False).bits(top) == 0


def test_people_count_once_in_a_group():
    limits = Limits(3, 10, 1, exceeded=True)
    assert limits.of_people.total == 3
    assert Measure("people").sensitivity(limits) == 3 << 20
    assert Measure("people").sensitivity(replace(limits, exceeded=False)) == 3
