"""Before any noise: the bounded sums are the same whole numbers on every engine, and are what their definition says."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest

from dither.tables.card.model import Card, ColumnCard
from dither.tables.compile import statements
from dither.tables.compile.queries import DialectSql
from dither.tables.compile.statements import Measure, StatementContext, grid
from dither.tables.planning import plan
from dither.tables.query.tree import Aggregate, Call, Column, Group, Join, Literal, Query
from support import refuses

# Py4J leaves its sockets to the garbage collector
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

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


def table(size: int, people: int) -> pa.Table:
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


def frame(engine, card, query, keys, groups=2, limit=2) -> StatementContext:
    tables = {"": engine.table}
    tables |= {join.table: engine.public(join.table) for join in query.joins}
    return StatementContext(query, card, keys, groups, limit, 20261115, DialectSql(engine.dialect), tables)


def lines(engine, sql) -> list[tuple]:
    result = engine.run(sql)
    return sorted(zip(*(column.to_pylist() for column in result.columns), strict=True), key=repr)


AMOUNT, TINY, AGE = Column("amount"), Column("tiny"), Column("age")


def measures(limit: int) -> list[Measure]:
    result = [Measure("count"), Measure("people"), Measure("values", Column("region"))]
    for value, bounds, whole in ((AMOUNT, (-10.0, 100.0), False), (TINY, (0.0, 1e30), False), (AGE, (0, 120), True)):
        fine, coarse = grid(bounds, whole, 24, limit), grid(bounds, False, 12, limit)
        result += [Measure(kind, value, bounds, fine) for kind in ("sum", "values", "center")]
        result.append(Measure("square", value, bounds, coarse))
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
BINS = (
    (AMOUNT, tuple(i / 4 for i in range(401)), None),
    (AGE, (0, 10.5, 60, 121), None),
    (Column("region"), None, ("a", "🎲", "\\")),
)


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("unit", ["who", "name", None])
def test_sums_and_bins_are_the_same_on_every_engine(engine, unit):
    """Every question with every sum, all in one statement, for every unit; with every kind of bins for one unit, and
    with one kind after another for the others.
    """
    rows, limit = table(600, 25), 2
    card = Card("t", "", COLUMNS, unit)
    engines = {kind: engine(kind, rows, card) for kind in KINDS}
    sums = [*measures(limit), Measure("sum", PRODUCT, (-50.0, 9000.0), grid((-50.0, 9000.0), False, 24, limit))]
    for number, (name, (query, keys)) in enumerate(QUESTIONS.items()):
        binned = BINS if unit == "who" else (BINS[(number + (unit is None)) % len(BINS)],)
        result = {}
        for kind, item in engines.items():
            context = frame(item, card, query, keys)
            built = [statements.sums(context, sums), *(statements.bins(context, *bins) for bins in binned)]
            if unit and query.groups:
                built.append(statements.spread(context, 64))
            result[kind] = [lines(item, statement) for statement in built]
        assert result["postgres"] == result["duckdb"], name
        assert result["spark"] == result["duckdb"], name


def steps(value, bounds, how) -> int | None:
    """A value on its grid, from the definition."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    held = min(max(value, bounds[0]), bounds[1])
    return math.floor(held * how.scale + 0.5)


@pytest.mark.parametrize("groups", [1, 2, 100])
@pytest.mark.parametrize("limit", [1, 3])
def test_sums_are_what_their_definition_says(engine, groups, limit):
    rows = table(400, 12)
    card = Card("t", "", COLUMNS, "who")
    query, keys = QUESTIONS["private text keys"]
    item = engine("duckdb", rows, card)
    bounds, fine = (-10.0, 100.0), grid((-10.0, 100.0), False, 24, limit)
    wanted = [
        Measure("count"),
        Measure("people"),
        *(Measure(k, AMOUNT, bounds, fine) for k in ("sum", "values", "center")),
    ]
    result = {
        key: tuple(sums)
        for key, *sums in lines(item, statements.sums(frame(item, card, query, keys, groups, limit), wanted))
    }

    pairs = defaultdict(list)
    for who, region, amount in zip(*(rows[name].to_pylist() for name in ("who", "region", "amount")), strict=True):
        if who is not None:
            pairs[who, region].append(steps(amount, bounds, fine))
    kept = defaultdict(set)
    for who, region in pairs:
        kept[who].add(region)
    # whichever groups of a person are kept, there are as many as allowed, and totals follow from all persons' choices
    totals = [sum(sums[i] for sums in result.values()) for i in range(len(wanted))]
    assert totals[1] == sum(min(len(regions), groups) for regions in kept.values())
    if groups == 100:
        for region, sums in result.items():
            mine = [values for (_, other), values in pairs.items() if other == region]
            given = [[v for v in values if v is not None] for values in mine]
            assert sums[0] == sum(min(len(values), limit) for values in mine)
            assert sums[1] == len(mine)
            low, high = min(0, fine.low * limit), max(0, fine.high * limit)
            assert sums[2] == sum(min(max(sum(values), low), high) for values in given)
            assert sums[3] == sum(min(len(values), limit) for values in given)
            assert sums[4] == sum(centered(values, fine, limit) for values in given)


def centered(values: list[int], how, limit: int) -> int:
    if len(values) <= limit:
        return sum(2 * v - how.low - how.high for v in values)
    return 2 * (sum(v - how.low for v in values) * limit // len(values)) - how.width * limit


@pytest.mark.parametrize("limit", [1, 4])
def test_one_person_moves_no_sum_by_more_than_its_bound(engine, limit):
    """Neighbors: all rows of one person removed. In at most ``groups`` groups, by at most the bound in each.

    All kinds of sums are in one statement, which is built once and run on one table after another.
    """
    groups, card = 2, Card("t", "", COLUMNS, "who")
    query, keys = QUESTIONS["private text keys"]
    bounds, fine, coarse = (-10.0, 100.0), *(grid((-10.0, 100.0), False, bits, limit) for bits in (24, 12))
    added = [
        Measure("count"),
        Measure("people"),
        *(Measure(kind, AMOUNT, bounds, fine) for kind in ("values", "sum", "center")),
        Measure("square", AMOUNT, bounds, coarse),
    ]
    item = engine("duckdb", table(1, 1), card)
    statement = statements.sums(frame(item, card, query, keys, groups, limit), added)

    def sums_of(rows) -> dict[object, tuple[int, ...]]:
        staged = item.stage("dither_neighbor", rows)
        result = {key: tuple(sums) for key, *sums in lines(item, statement.on(staged))}
        item.drop(staged)
        return result

    nothing, worst = (0,) * len(added), [0] * len(added)
    for _ in range(6):
        rows = table(300, 6)
        owners, whole = rows["who"].to_pylist(), sums_of(rows)
        for person in range(-6, 6):
            fewer = sums_of(rows.filter(pa.array([owner != person for owner in owners])))
            for i, measure in enumerate(added):
                moved = [abs(whole.get(key, nothing)[i] - fewer.get(key, nothing)[i]) for key in {*whole, *fewer}]
                assert sum(1 for by in moved if by) <= groups
                assert max(moved, default=0) <= measure.bound(limit)
                worst[i] = max(worst[i], *moved)
    for measure, largest in zip(added, worst, strict=True):
        if measure.kind in ("count", "people", "values", "center"):
            bound = measure.bound(limit)
            assert largest == bound or (measure.kind == "center" and largest >= bound // 2)


def test_groups_are_chosen_evenly_and_afresh(engine):
    """Of four groups of every person two are kept: each about equally often, and others under another secret."""
    people = 2000
    rows = pa.table({"who": [i // 4 for i in range(4 * people)], "region": [f"r{i % 4}" for i in range(4 * people)]})
    card = Card("t", "", {"who": ColumnCard("integer"), "region": ColumnCard("text")}, "who")
    query = Query({}, (Group("region", Column("region")),))
    item = engine("duckdb", rows, card)
    for keys in ((None,), (("r0", "r1", "r2", "r3"),)):
        seen = set()
        for secret in (random.SystemRandom().getrandbits(128) for _ in range(20)):
            sums = statements.sums(
                StatementContext(query, card, keys, 2, 1, secret, DialectSql("duckdb"), {"": item.table}),
                [Measure("people")],
            )
            counts = [line[1] for line in lines(item, sums)]
            assert sum(counts) == 2 * people
            seen.add(tuple(counts))
        assert len(seen) > 15


@pytest.mark.parametrize("private", [False, True])
def test_groups_are_chosen_as_if_at_random_within_one_release(engine, private):
    """All are in the same 14 groups: each is kept as often as chance has it, and not only on average over secrets."""
    people, names, most = 100_000, [f"r{place:02d}" for place in range(14)], 3
    rows = pa.table({"who": [who for who in range(people) for _ in names], "region": names * people})
    card = Card("t", "", {"who": ColumnCard("integer"), "region": ColumnCard("text")}, "who")
    query, keys = Query({}, (Group("region", Column("region")),)), (None if private else tuple(names),)
    item, share = engine("duckdb", rows, card), most / len(names)
    for secret in (random.SystemRandom().getrandbits(128) for _ in range(3)):
        one = StatementContext(query, card, keys, most, 1, secret, DialectSql("duckdb"), {"": item.table})
        kept = [line[1] for line in lines(item, statements.sums(one, [Measure("people")]))]
        assert max(abs(count - people * share) for count in kept) < 7 * math.sqrt(people * share * (1 - share))


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
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
    rows = table(400, 10)
    result = {}
    for kind in KINDS:
        item = engine(kind, rows, card)
        result[kind] = lines(item, statements.sums(frame(item, card, query, (None,)), measures(2)))
    assert result["postgres"] == result["duckdb"] == result["spark"]
    assert {line[0] for line in result["duckdb"]} <= {"north", "south", None}


def test_a_plan_reads_no_data_and_refuses_what_it_cannot_bound():
    card = Card("t", "", COLUMNS | {"free": ColumnCard("number")}, "who")
    with refuses(ValueError, "bounds"):
        plan.make(Query({"s": Aggregate("sum", Column("free"))}), card, epsilon=1)
    with refuses(ValueError, "delta"):
        plan.make(Query({"n": Aggregate("count")}, (Group("region", Column("region")),)), card, epsilon=1)
    with refuses(ValueError, "at least one aggregate"):
        plan.make(Query({}), card, epsilon=1)


@pytest.mark.parametrize("dialect", KINDS)
@pytest.mark.parametrize("unit", ["who", None])
def test_only_sums_for_groups_leave_an_engine(dialect, unit):
    """Read off the statement itself: its outermost level adds up, and shows nothing but the groups it adds up by."""
    import sqlglot
    from sqlglot import exp

    card = Card("t", "", COLUMNS, unit)
    for query, keys in QUESTIONS.values():
        one = StatementContext(query, card, keys, 2, 2, 1, DialectSql(dialect), {"": exp.to_table("t")})
        built = [statements.sums(one, measures(2)), statements.bins(one, AMOUNT, (0.0, 50.0, 100.0), None)]
        if unit:
            built.append(statements.spread(one, 64))
        for text in built:
            tree = sqlglot.parse_one(text.text, read=dialect)
            inner = tree
            if tree.find(exp.With):  # DuckDB puts back the keys it numbered: a join of sums with keys
                assert dialect == "duckdb"
                inner = tree.find(exp.From).this.this
            group = {column.name for column in (inner.args.get("group") or exp.Group()).expressions}
            for shown in inner.expressions:
                assert shown.find(exp.AggFunc) or shown.name in group, text
