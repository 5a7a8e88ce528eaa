"""Before any noise: the bounded sums are the same whole numbers on every engine, and are what their definition says.

Numbers of different values: what they count, and what one person adds to them.

Products of two columns: whole numbers that add up, and from which everything about the pair follows.

Lines of people in periods are those by hand, and bounded.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard
from dither.tables.compile import statements
from dither.tables.compile.context import StatementContext
from dither.tables.compile.limits import Limits
from dither.tables.compile.statements import PARTS, Measure, Moments, ValuePair, distinct_values, grid, pair_grid
from dither.tables.query.tree import Aggregate, Call, Column, Group, Join, Literal, Query
from support import each, refuses
from support_series import Visit, by_hand, opened, random_history, series_of
from tables.glass import bounded, card, losses, table
from tables.planned import make
from tables.weighted import weighted_sums

# Py4J leaves its sockets to the garbage collector
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

EDGES = (1, 2, 3, 5, 8, 13, 21, 1000)
KINDS = ("duckdb", "postgres", "spark")
TEXTS = ["", " ", "a", "A", "a ", "é", "e\u0301", "🎲", "x'y", 'q"r', "\\N", "\\", "%", None]
NUMBERS = [0.0, -0.0, 1.5, -1.5, 99.999999, 100.0, 1e300, -1e300, 5e-324, -5e-324, math.inf, -math.inf, math.nan, None]

COLUMNS = {
    "who": ColumnCard("integer"),
    "name": ColumnCard("text"),
    "region": ColumnCard("text"),
    "amount": ColumnCard("number", (-10.0, 100.0)),
    "tiny": ColumnCard("number", (0.0, 1e30)),
    "age": ColumnCard("integer", (0, 120)),
    "ok": ColumnCard("boolean"),
    "day": ColumnCard("date"),
    "at": ColumnCard("timestamp"),
}


def odd_rows(size: int, people: int) -> pa.Table:
    """Rows of every odd kind; not seeded: the engines have to agree about whatever comes."""
    pick = random.SystemRandom()
    wide = [(1 << 63) - 1, -(1 << 63), 0, -1, 7, 120, 121, None]
    start = date(1999, 12, 27)
    return pa.table(
        {
            "who": pa.array([pick.choice([None, *range(-people, people)]) for _ in range(size)], pa.int64()),
            "name": pa.array([pick.choice([*TEXTS, "p1", "p2", "p3"]) for _ in range(size)], pa.string()),
            "region": pa.array([pick.choice(TEXTS) for _ in range(size)], pa.string()),
            "amount": pa.array([pick.choice([*NUMBERS, pick.uniform(-20, 120)]) for _ in range(size)], pa.float64()),
            "tiny": pa.array([pick.choice([*NUMBERS, pick.uniform(0, 1e30)]) for _ in range(size)], pa.float64()),
            "age": pa.array([pick.choice([*wide, pick.randrange(121)]) for _ in range(size)], pa.int64()),
            "ok": pa.array([pick.choice([True, False, None]) for _ in range(size)], pa.bool_()),
            "day": pa.array([pick.choice([None, start + timedelta(pick.randrange(800))]) for _ in range(size)]),
            "at": pa.array(
                [
                    pick.choice([None, datetime(2000, 2, 28, 23) + timedelta(seconds=pick.randrange(10**6))])
                    for _ in range(size)
                ],
                pa.timestamp("us"),
            ),
        }
    )


def limits_of(card, keys, groups=2, rows=2, norm=1) -> Limits:
    """Limits as a plan has them."""
    private = any(listed is None for listed in keys)
    exceeded = not private and math.prod(len(listed) for listed in keys) > groups
    return Limits(groups if keys else 1, rows, norm, card.unit is not None, card.unit is not None and exceeded)


def frame(engine, card, query, keys, **more) -> StatementContext:
    tables = {"": engine.table}
    tables |= {join.table: engine.public(join.table) for join in query.joins}
    limits = limits_of(card, keys, **more)
    return StatementContext(query, card, keys, limits, 20261115, engine.dialect, tables)


def lines(engine, sql) -> list[tuple]:
    result = engine.run(sql)
    return sorted(zip(*(column.to_pylist() for column in result.columns), strict=True), key=repr)


AMOUNT, TINY, AGE = Column("amount"), Column("tiny"), Column("age")


def measures() -> list[Measure]:
    """Every kind of measure, of every column: sums, moments of each degree, with and without rows without a value."""
    result = [Measure("rows"), Measure("people"), *Moments(Column("region"), 0, True).parts]
    for value, bounds, whole in ((AMOUNT, (-10.0, 100.0), False), (TINY, (0.0, 1e30), False), (AGE, (0, 120), True)):
        fine, coarse = grid(bounds, whole, 24, 4), grid(bounds, False, 12, 4)
        result.append(Measure("sum", value, Moments(value, 1, False, bounds, fine)))
        result += Moments(value, 1, False, bounds, fine).parts
        result += Moments(value, 2, True, bounds, coarse).parts
    result.append(Measure("rows", rows_per_person=2))  # and some with limits of their own
    fine, coarse = grid((-10.0, 100.0), False, 24, 7), grid((-10.0, 100.0), False, 12, 4)
    moments = [Moments(AMOUNT, 1, True, (-10.0, 100.0), fine), Moments(AMOUNT, 2, True, (-10.0, 100.0), coarse, 5)]
    result += [replace(part, rows_per_person=7) for item in moments for part in item.parts]
    return result


QUESTIONS = {
    "no groups": (Query({}), ()),
    "private text keys": (Query({}, (Group("region", Column("region")),)), (None,)),
    "public text keys, one of them nobody's, one NULL": (
        Query({}, (Group("region", Column("region")),)),
        (("a", "é", "🎲", "x'y", 'q"r', "\\", "nobody", None),),
    ),
    "two columns": (
        Query({}, (Group("region", Column("region")), Group("ok", Column("ok")))),
        (None, (True, False)),
    ),
    "two columns with public keys": (
        Query({}, (Group("region", Column("region")), Group("ok", Column("ok")), Group("name", Column("name")))),
        (("a", "é", "\\", None), (True, False), ("p1", "p2", "p3", "🎲", "nobody")),
    ),
    "months": (
        Query({}, (Group("m", Call("date_trunc", (Literal("month"), Column("day")))),)),
        (None,),
    ),
    "hours of a timestamp": (
        Query({}, (Group("h", Call("date_trunc", (Literal("hour"), Column("at")))),)),
        (None,),
    ),
    "bins": (
        Query({}, (Group("b", Call("bin", (AMOUNT, Literal(0), Literal(10.5), Literal(50), Literal(100)))),)),
        ((0, 1, 2),),
    ),
    "a filter of everything": (
        Query(
            {},
            (Group("region", Column("region")),),
            where=Call(
                "or",
                (
                    Call(
                        "and",
                        (Call(">", (AMOUNT, Literal(1))), Call("not", (Call("=", (Column("ok"), Literal(True))),))),
                    ),
                    Call("like", (Column("region"), Literal("%a%"))),
                    Call("in", (Column("name"), Literal("p1"), Literal("🎲"), Literal("\\"))),
                    Call("between", (Column("day"), Literal(date(2000, 1, 1)), Literal(date(2000, 6, 1)))),
                    Call("is_null", (TINY,)),
                    Call("<", (Column("region"), Literal("b"))),
                    Call(">=", (Call("/", (AMOUNT, AGE)), Literal(0.5))),
                    Call("<", (Column("at"), Literal(datetime(2000, 3, 1, 12)))),
                ),
            ),
        ),
        (None,),
    ),
}


PRODUCT = Call("*", (Call("+", (AMOUNT, AGE)), Call("case", (Column("ok"), AMOUNT, Literal(2)))))
PAIR_BOUNDS = (-10.0, 100.0), (0, 120)
PAIR = ValuePair(
    (AMOUNT, AGE), PAIR_BOUNDS, (pair_grid(PAIR_BOUNDS[0], False, 9, "x"), pair_grid(PAIR_BOUNDS[1], True, 9, "y"))
)
DISTINCT = (AMOUNT, TINY, AGE, Column("region"), Column("ok"), Column("day"), Column("at"), PRODUCT)
BINS = (
    (AMOUNT, tuple(i / 4 for i in range(401)), None),
    (AGE, (0, 10.5, 60, 121), None),
    (Column("region"), None, ("a", "🎲", "\\")),
)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("unit", "without_unit"), [("who", "drop"), ("name", "each"), (None, None)])
def test_sums_and_bins_are_the_same_on_every_engine(engine, unit, without_unit):
    """Every question with every sum, for every unit: weighted row by row, and for each person and group, in both norms;
    with every kind of bins for one unit, and with one kind after another for the others; the different values of some
    columns after others.

    Spark, which takes half a second to compile a statement, runs one statement of each question, of one kind after
    another: every question, and every kind of statement, with each unit.
    """
    rows = odd_rows(600, 25)
    card = Card("t", "", COLUMNS, unit, rows_without_unit=without_unit)
    engines = {kind: engine(kind, rows, card) for kind in KINDS}
    product = Moments(PRODUCT, 1, False, (-50.0, 9000.0), grid((-50.0, 9000.0), False, 24, 4))
    every = [*measures(), Measure("sum", PRODUCT, product), *statements.pair_products(PAIR)]
    of_rows = [measure for measure in every if measure.kind != "people"]
    tried_by_spark = Counter()
    for number, (name, (query, keys)) in enumerate(QUESTIONS.items()):
        binned = BINS if unit == "who" else (BINS[(number + (unit is None)) % len(BINS)],)

        def built(kind, query=query, keys=keys, binned=binned, number=number):
            context = frame(engines[kind], card, query, keys)
            yield "sums by row", statements.sums(context, of_rows)
            if unit:
                squares = frame(engines[kind], card, query, keys, norm=2)
                yield "sums", statements.sums(context, every)
                yield "squares", statements.sums(squares, every)
                for size in ("rows", "squares", "groups"):
                    yield f"people by {size}", statements.people_by_size(context, EDGES, size)
                value = DISTINCT[number % len(DISTINCT)]
                yield "people by values", statements.people_by_size(context, EDGES, "groups", value)
            for norm in (1, 2) if unit else (1,):
                yield "weights of keys", statements.key_weights(context, norm, number % 2 == 0)
            for bins in binned:
                yield "bins", statements.bins(context, *bins)
                yield "bins", statements.bins(context, *bins, 2)
                yield "bins of extremes", statements.bins(context, *bins, None, "max" if number % 2 else "min")
            for i in range(3):
                yield "distinct", distinct_values(context, DISTINCT[(3 * number + i) % len(DISTINCT)])

        result = {kind: [lines(engines[kind], one) for _, one in built(kind)] for kind in ("duckdb", "postgres")}
        assert result["postgres"] == result["duckdb"], name
        listed = [*built("spark")]
        kinds = [*dict.fromkeys(what for what, _ in listed)]
        for what in sorted(kinds, key=tried_by_spark.__getitem__)[:2]:  # those that were tried least often
            places = [place for place, (kind, _) in enumerate(listed) if kind == what]
            place = places[number % len(places)]
            assert lines(engines["spark"], listed[place][1]) == result["duckdb"][place], (name, what)
            tried_by_spark[what] += 1
    sizes = {f"people by {size}" for size in ("rows", "squares", "groups", "values")}
    by_person = {"sums", "squares", *sizes} if unit else set()
    assert (
        tried_by_spark.keys() == {"sums by row", "weights of keys", "bins", "bins of extremes", "distinct"} | by_person
    )


def steps(value, bounds, how) -> int | None:
    """A value on its grid, from the definition."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    within = min(max(value, bounds[0]), bounds[1])
    return math.floor(within * how.scale + 0.5)


def named(people: Iterable[object], without_unit: str) -> list[object]:
    """Whose row each is: without a unit nobody's, or that of a person who has no other."""
    return [f"row {i}" if who is None and without_unit == "each" else who for i, who in enumerate(people)]


@pytest.mark.parametrize("without_unit", ["drop", "each"])
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("groups", "limit"), [(1, 1), (2, 3), (100, 1), (100, 3)])
def test_sums_are_what_their_definition_says(engine, groups, limit, norm, without_unit):
    rows = odd_rows(400, 12)
    card = Card("t", "", COLUMNS, "who", rows_without_unit=without_unit)
    query, keys = QUESTIONS["private text keys"]
    item = engine("duckdb", rows, card)
    asked = measures()
    context = frame(item, card, query, keys, groups=groups, rows=limit, norm=norm)
    result = {key: tuple(sums) for key, *sums in lines(item, statements.sums(context, asked))}
    names = [f"c{i}" for i in range(len(asked))]
    defined = []
    people = named(rows["who"].to_pylist(), without_unit)
    for i, (who, region) in enumerate(zip(people, rows["region"].to_pylist(), strict=True)):
        values = {}
        for name, measure in zip(names, asked, strict=True):
            if measure.moments is None:
                continue
            value = rows[measure.value.name][i].as_py()
            how, bounds = measure.moments.grid, measure.moments.bounds
            values[name] = (None if value is None else 0) if how is None else steps(value, bounds, how)
        defined.append((who, region, values))
    groups_of = defaultdict(set)
    for who, region, _ in defined:
        if who is not None:
            groups_of[who].add(region)
    # whichever groups of a person are kept, there are as many as allowed
    place = asked.index(Measure("people"))
    kept = sum(min(len(regions), groups) for regions in groups_of.values())
    assert sum(sums[place] for sums in result.values()) == kept
    if groups == 100:
        assert result == weighted_sums(defined, context.limits, asked, names, by_person=True)


@pytest.mark.parametrize("without_unit", ["drop", "each"])
def test_people_are_counted_by_their_numbers_of_rows_and_groups(engine, without_unit):
    rows = odd_rows(500, 12)
    card = Card("t", "", COLUMNS, "who", rows_without_unit=without_unit)
    query, keys = QUESTIONS["private text keys"]
    item = engine("duckdb", rows, card)
    people = named(rows["who"].to_pylist(), without_unit)
    pairs = Counter(pair for pair in zip(people, rows["region"].to_pylist(), strict=True) if pair[0] is not None)
    sizes = {"rows": Counter(), "squares": Counter(), "groups": Counter()}
    for (who, _), number in pairs.items():
        sizes["rows"][who] += number
        sizes["squares"][who] += number * number
        sizes["groups"][who] += 1
    for size, numbers in sizes.items():
        power = 2 if size == "squares" else 1
        expected = Counter(
            next((i for i, edge in enumerate(EDGES[:-1]) if number <= edge**power), len(EDGES) - 1)
            for number in numbers.values()
        )
        statement = statements.people_by_size(frame(item, card, query, keys), EDGES, size)
        assert dict(lines(item, statement)) == expected


def test_groups_are_chosen_evenly_and_afresh(engine):
    """Of four groups of every person two are kept: each about equally often, and others under another secret. Public
    groups are all kept, each person's at a smaller weight.
    """
    people = 2000
    rows = pa.table({"who": [i // 4 for i in range(4 * people)], "region": [f"r{i % 4}" for i in range(4 * people)]})
    card = Card("t", "", {"who": ColumnCard("integer"), "region": ColumnCard("text")}, "who")
    query = Query({}, (Group("region", Column("region")),))
    item = engine("duckdb", rows, card)

    def counts(keys, secret) -> tuple[int, ...]:
        limits = limits_of(card, keys, rows=1)
        context = StatementContext(query, card, keys, limits, secret, "duckdb", {"": item.table})
        return tuple(line[1] for line in lines(item, statements.sums(context, [Measure("people")])))

    secrets = [random.SystemRandom().getrandbits(128) for _ in range(20)]
    private = [counts((None,), secret) for secret in secrets]
    assert all(sum(kept) == 2 * people for kept in private)
    assert len(set(private)) > 15
    public = {counts((("r0", "r1", "r2", "r3"),), secret) for secret in secrets}
    assert public == {(people << 19,) * 4}  # half a person each, in units of 2^-20


def test_groups_are_chosen_as_if_at_random_within_one_release(engine):
    """All are in the same 14 groups: each is kept as often as chance has it, and not only on average over secrets."""
    people, names, most = 100_000, [f"r{place:02d}" for place in range(14)], 3
    rows = pa.table({"who": [who for who in range(people) for _ in names], "region": names * people})
    card = Card("t", "", {"who": ColumnCard("integer"), "region": ColumnCard("text")}, "who")
    query = Query({}, (Group("region", Column("region")),))
    item, share = engine("duckdb", rows, card), most / len(names)
    limits = limits_of(card, (None,), groups=most, rows=1)
    for secret in (random.SystemRandom().getrandbits(128) for _ in range(3)):
        one = StatementContext(query, card, (None,), limits, secret, "duckdb", {"": item.table})
        kept = [line[1] for line in lines(item, statements.sums(one, [Measure("people")]))]
        assert max(abs(count - people * share) for count in kept) < 7 * math.sqrt(people * share * (1 - share))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("left", [False, True])
def test_a_public_table_is_joined_alike(engine, left, tmp_path):
    import pyarrow.csv as pc

    districts = pa.table({"code": ["a", "é", "🎲"], "district": ["north", "south", "north"]})
    pc.write_csv(districts, tmp_path / "districts.csv")
    from dither.tables.card.model import PublicTable

    public = {
        "districts": PublicTable(
            str(tmp_path / "districts.csv"), {"code": ColumnCard("text"), "district": ColumnCard("text")}
        )
    }
    card = Card("t", "", COLUMNS, "who", public=public)
    query = Query(
        {},
        (Group("district", Column("district", "districts")),),
        joins=(Join("districts", Column("region"), "code", left),),
    )
    rows = odd_rows(400, 10)
    result = {}
    for kind in KINDS:
        item = engine(kind, rows, card)
        result[kind] = lines(item, statements.sums(frame(item, card, query, (None,)), measures()))
    assert result["postgres"] == result["duckdb"] == result["spark"]
    assert {line[0] for line in result["duckdb"]} <= {"north", "south", None}


def test_a_plan_reads_no_data_and_refuses_what_it_cannot_bound():
    card = Card("t", "", COLUMNS | {"free": ColumnCard("number")}, "who")
    with refuses(ValueError, "bounds"):
        make(Query({"s": Aggregate("sum", Column("free"))}), card, epsilon=1)
    with refuses(ValueError, "delta"):
        make(Query({"n": Aggregate("count")}, (Group("region", Column("region")),)), card, epsilon=1)
    with refuses(ValueError, "at least one aggregate"):
        make(Query({}), card, epsilon=1)


@pytest.mark.parametrize("dialect", KINDS)
@pytest.mark.parametrize("unit", ["who", None])
def test_only_sums_for_groups_leave_an_engine(dialect, unit):
    """Read off the statement itself: its outermost level adds up, and shows nothing but the groups it adds up by."""
    import sqlglot
    from sqlglot import exp

    card = Card("t", "", COLUMNS, unit)
    for query, keys in QUESTIONS.values():
        limits = limits_of(card, keys)
        one = StatementContext(query, card, keys, limits, 1, dialect, {"": exp.to_table("t")})
        built = [statements.sums(one, measures()), statements.bins(one, AMOUNT, (0.0, 50.0, 100.0), None)]
        if unit:
            built.append(statements.people_by_size(one, EDGES, "squares"))
        for text in built:
            tree = sqlglot.parse_one(text.text, read=dialect)
            inner = tree
            if tree.args.get("with_") or tree.args.get("with"):  # weights are made before, keys are put back after
                assert dialect != "spark"
                inner = tree.find(exp.From).this.this
            group = {column.name for column in (inner.args.get("group") or exp.Group()).expressions}
            for shown in inner.expressions:
                assert shown.find(exp.AggFunc) or shown.name in group, text


TOWNS = ["", "a", "A", "é", "e\u0301", "🎲", None]
AMOUNTS = [0.0, -0.0, 1.5, 1.5000000001, 1e300, -1e300, math.inf, -math.inf, math.nan, 5e-324, None]
CODES = [5, 5 + (1 << 31) - 1, -(1 << 63), (1 << 63) - 1, None]


def rows(size: int) -> list[dict]:
    pick = random.SystemRandom()
    return [
        {
            "person": pick.choice([None, *range(12)]),
            "region": pick.choice(["north", "south", None]),
            "town": pick.choice(TOWNS),
            "amount": pick.choice(AMOUNTS),
            "code": pick.choice(CODES),
        }
        for _ in range(size)
    ]


def asked(column: str, by: str | None = "region") -> Query:
    return Query({"n": Aggregate("count_distinct", Column(column))}, (Group(by, Column(by)),) if by else ())


def different(lines: list[dict], column: str) -> dict[str, int]:
    """From the definition: equal numbers are one value, and NaN is none."""
    seen: dict[str, set] = defaultdict(set)
    for row in lines:
        value = row[column]
        if row["person"] is not None and value is not None and not (isinstance(value, float) and math.isnan(value)):
            seen[row["region"]].add(value)
    return {region: len(seen[region]) for region in ("north", "south")}


@pytest.mark.parametrize("column", ["town", "amount", "code"])
@pytest.mark.parametrize("norm", ["laplace", "gaussian"])
def test_every_value_counts_where_nobody_has_more_than_the_limit(column, norm):
    lines = rows(80)
    made = make(asked(column), card(), epsilon=1, delta=1e-6, max_groups=2, max_rows=20, noise=norm)
    answer = bounded(made, table(lines)).answer
    assert dict(zip(["north", "south"], answer.answers["n"], strict=True)) == different(lines, column)


@pytest.mark.parametrize(("most_groups", "most_rows"), [(1, 1), (1, 3), (2, 1)])
def test_one_person_adds_no_more_than_the_limit_and_reaches_it(most_groups, most_rows):
    alone = [
        {"person": 1, "region": region, "town": town} for region in ("north", "south") for town in TOWNS for _ in "ab"
    ]
    made = make(asked("town"), card(), epsilon=1, max_groups=most_groups, max_rows=most_rows)
    for secret in range(5):
        numbers = bounded(made, table(alone), secret).answer.answers["n"]
        assert sorted(numbers, reverse=True) == [most_rows] * most_groups + [0] * (2 - most_groups)


def test_which_values_count_depends_on_the_secret_and_on_nobody_else():
    mine = [{"person": 1, "code": code} for code in range(9)]
    made = make(asked("code", None), card(), epsilon=1, max_rows=3)
    hits = set()
    for secret in (0, 1):
        single = []
        for code in range(9):  # another person who has one value only shows whether it is among the three
            both = bounded(made, table([*mine, {"person": 2, "code": code}]), secret)
            (number,) = both.answer.answers["n"]
            assert number in (3, 4)
            single += [code] if number == 3 else []
            assert losses(made, both, bounded(made, table(mine), secret))[0] <= 1 + 1e-9
        assert len(single) == 3
        hits.add(tuple(single))
    assert len(hits) == 2


def test_rows_that_are_people_count_once():
    data = pa.table({"x": pa.array([1, 1, 2, None, 3] * 20)})
    with dp.open(data, budget=dp.PureDP(4000)) as people:
        answer = people.sql("SELECT COUNT(DISTINCT x) AS n FROM data").release(3000)
    assert answer["n"] == [3]


def test_the_answer_says_that_values_beyond_the_limit_do_not_count():
    data = pa.table({"who": np.arange(300) % 30, "x": np.arange(300)})
    with dp.open(data, unit="who", max_rows=2, budget=dp.PureDP(4000)) as people:
        answer = people.agg(n=dp.count_distinct("x")).release(3000)
    assert answer["n"] == [60]
    assert "distinct_limited" in [note.kind for note in answer.notes]
    assert answer.error("n") == [0.0]


AMOUNT, AGE = Column("amount"), Column("age")


def values(size: int) -> list[dict]:
    generator = np.random.default_rng()
    age = generator.integers(0, 121, size)
    amount = np.clip(age * 0.5 + generator.normal(20, 12, size), 0, 100)
    return [
        {"person": i, "region": "north", "age": int(a), "amount": float(x)}
        for i, (a, x) in enumerate(zip(age, amount, strict=True))
    ]


def without_noise(kind: str, value: Column, other: Column, lines: list[dict]) -> float | None:
    query = Query({"r": Aggregate(kind, value, other=other)})
    made = make(query, card(), epsilon=1e6)
    return bounded(made, table(lines)).answer.answers["r"][0]


def test_the_parts_of_every_row_are_not_negative_and_add_up_to_the_top():
    hostile = [
        {"person": i, "age": age, "amount": amount}
        for i, (age, amount) in enumerate(
            [
                (0, 0.0),
                (120, 100.0),
                (121, -5.0),
                (-(1 << 63), math.inf),
                (60, 1e-320),
                (7, 33.3),
                (None, 1.0),
                (3, math.nan),
            ]
        )
    ]
    made = make(Query({"r": Aggregate("corr", AMOUNT, other=AGE)}), card(None), epsilon=1)
    pair = next(iter(made.measures)).pair
    assert pair is not None
    for line in hostile:
        seen = bounded(made, table([line])).answer.measures
        parts = [int(seen[measure][0]) for measure in made.measures]
        missing = line["age"] is None or math.isnan(line["amount"])
        assert min(parts) >= 0
        assert sum(parts) == (0 if missing else pair.top)
    assert len(made.measures) == PARTS


@pytest.mark.parametrize("kind", ["covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2"])
@pytest.mark.parametrize("swapped", [False, True])
def test_without_noise_it_is_what_numpy_computes(kind, swapped):
    lines = values(400)
    lines += [{"person": 400 + i, "age": None, "amount": 50.0} for i in range(30)]
    y, x = (np.array([row[name] for row in lines[:400]]) for name in ("amount", "age"))
    value, other = (AGE, AMOUNT) if swapped else (AMOUNT, AGE)
    y, x = (x, y) if swapped else (y, x)
    covariance = np.cov(x, y)
    slope = covariance[0, 1] / covariance[0, 0]
    correlation = float(np.corrcoef(x, y)[0, 1])
    expected = {
        "covar_samp": covariance[0, 1],
        "covar_pop": covariance[0, 1] * 399 / 400,
        "corr": correlation,
        "regr_slope": slope,
        "regr_intercept": y.mean() - slope * x.mean(),
        "regr_r2": correlation**2,
    }[kind]
    assert without_noise(kind, value, other, lines) == pytest.approx(expected, rel=2e-3, abs=0.05)


def test_aggregates_of_the_same_two_columns_share_one_measurement():
    query = Query(
        {
            "r": Aggregate("corr", AMOUNT, other=AGE),
            "b": Aggregate("regr_slope", AGE, other=AMOUNT),
            "c": Aggregate("covar_pop", AMOUNT, other=AGE),
        }
    )
    made = make(query, card(), epsilon=1)
    assert len(made.measures) == PARTS
    assert all(noise.epsilon == 1 for noise in made.measures.values())


def test_grids_are_equally_fine_and_whole_numbers_stay_exact():
    fine, whole = pair_grid((-3.7, 11.2), False, 9, "x"), pair_grid((-3, 97), True, 9, "x")
    assert abs(fine.width - 512) <= 1
    assert whole.scale == 5
    assert whole.low == -15
    with refuses(InvalidArgument, "far from 0"):
        pair_grid((1e15, 1e15 + 1), False, 9, "x")


def test_a_weighted_person_adds_no_more_than_the_limit():
    lines = [{"person": 1, "region": "north", "age": 120 * (i % 2), "amount": 50.0 * (i % 3)} for i in range(50)]
    for noise in ("laplace", "gaussian"):
        query = Query({"r": Aggregate("corr", AMOUNT, other=AGE)}, (Group("region", Column("region")),))
        made = make(query, card(), epsilon=1, delta=1e-6, max_rows=3, max_groups=2, noise=noise)
        seen = bounded(made, table(lines)).answer.measures
        numbers = np.array([seen[measure] for measure in made.measures], dtype=float)
        norm = np.abs(numbers).sum() if noise == "laplace" else math.sqrt((numbers**2).sum())
        limit = float(next(iter(made.measures)).sensitivity(made.limits))
        assert norm <= limit
        if noise == "laplace":
            assert norm >= 0.99 * limit


def test_a_slope_that_the_noise_hides_has_no_value():
    data = pa.table({"x": [50.0] * 40, "y": [1.0, 2.0] * 20})
    with dp.open(data, bounds={"x": (0, 100), "y": (0, 5)}, budget=dp.PureDP(100)) as people:
        answers = [people.agg(b=dp.regression_slope("y", "x")).release(1, again=True) for _ in range(40)]
    hidden = [answer for answer in answers if answer["b"] == [None]]
    assert all(answer.error("b") == [None] for answer in hidden)
    assert len(hidden) >= 20  # 9 in 10 at least: fewer than half in less than 1 of 10^9 runs


def test_a_measure_of_a_pair_is_in_rows():
    made = make(Query({"r": Aggregate("corr", AMOUNT, other=AGE)}), card(), epsilon=1, max_rows=2)
    measure = next(iter(made.measures))
    assert isinstance(measure, Measure)
    assert float(measure.sensitivity(made.limits)) / measure.unit(made.limits) == 2


def lines_of(rows, tmp_path, first=1, last=12, **changes):
    with opened(rows, tmp_path / "ledger") as table:
        series = series_of(table, **changes)
        found = table.engine.run(series._statement(first, last)).to_pylist()
        place = series.spec.calendar.step
        return {(r["u"], place(r["t"]), r["g0"]): [r["m0"], r["m1"], r["m2"]] for r in found}, series.spec, len(found)


@pytest.mark.slow
@each("changes", [{}, {"max_rows": 1}, {"own": (1, 7)}, {"own": (9, None)}, {"late": "arrival", "arrived": "loaded"}])
@each("seed", range(6))
def test_lines_are_those_by_hand_and_bounded(seed, changes, tmp_path):
    for day, rows in random_history(seed)[0][:2]:
        lines, spec, count = lines_of(rows, tmp_path, 1, day, **changes)
        assert lines == by_hand(rows, 1, day, spec)
        assert count == len(lines)
        periods = {}
        for (who, step, _), numbers in lines.items():
            sums = periods.setdefault((who, step), [0, 0, 0])
            for i, number in enumerate(numbers):
                sums[i] += abs(number)
        for sums in periods.values():
            assert all(total <= lane.sensitivity for total, lane in zip(sums, spec.lanes, strict=True))


def test_a_busy_person_counts_for_the_limit_and_no_more(tmp_path):
    rows = [Visit(1, 3, 3, "north", 10.0)] * 50
    lines, spec, _ = lines_of(rows, tmp_path)
    ((count, people, total),) = lines.values()
    assert 0.97 < count / spec.lanes[0].unit / 2 <= 1
    assert people == spec.lanes[1].unit
    assert 0.97 < total / spec.lanes[2].unit / 20 <= 1


def test_where_every_row_is_a_person_the_engine_adds_up(tmp_path):
    rows = [Visit(1, 3, 3, "north", 1.5)] * 5 + [Visit(2, 3, 3, "south", 2.0)] * 2 + [Visit(2, 4, 4, "east", 2.0)]
    with opened(rows, tmp_path / "ledger", unit=None) as table:
        series = series_of(table)
        found = table.engine.run(series._statement(1, 12))
        assert "u" not in found.column_names
        scale = series.spec.lanes[2].unit
        lines = sorted((r["g0"], r["m0"], r["m1"], r["m2"] / scale) for r in found.to_pylist())
        assert lines == [(0, 5, 5, 7.5), (1, 2, 2, 4.0)]


def test_rows_without_a_unit_that_are_people_are_refused(tmp_path):
    card = dp.Card(
        "visits", str(tmp_path / "v.csv"),
        {"who": dp.tables.card.model.ColumnCard("integer"), "day": dp.tables.card.model.ColumnCard("date")},
        "who", budget=dp.PureDP(1), rows_without_unit="each", ledger=str(tmp_path / "ledger"),
    )  # fmt: skip
    (tmp_path / "v.csv").write_text("who,day\n1,2026-01-01\n,2026-01-01\n")
    with dp.open(card) as table:
        days = table.over("day", column="day", horizon=3, start="2026-01-01", epsilon=1)
        with refuses(dp.InvalidArgument, "rows_without_unit", "drop"):  # before anything is explained or released
            days.agg(n=dp.count())
        assert table.left == dp.PureDP(1)
