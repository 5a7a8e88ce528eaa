"""The work of one person: how many rows are combined, which ones, and what is said of it. Nothing here is timed.

The work that a question makes of the texts of one row. Nothing here is timed.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from hashlib import md5
from typing import Any

import duckdb
import pytest

from dither.errors import InvalidArgument
from dither.ledger.accounts import Remaining
from dither.present.notes import Note
from dither.tables.compile import expressions
from dither.tables.compile.relations import relation_sql
from dither.tables.engines import connect
from dither.tables.options import ReleaseOptions
from dither.tables.planning import work
from dither.tables.planning.calibrate import plan_question
from dither.tables.planning.explain import combined_notes, explain
from dither.tables.planning.plan import QuestionPlan, statements_of
from dither.tables.planning.work import MAX_TEXT_OPERATIONS, MAX_WORK, with_limited_work
from dither.tables.query import nodes
from dither.tables.query.evaluate import evaluate, typed
from dither.tables.query.nodes import placeholder
from dither.tables.query.operations.casts import CASTS
from dither.tables.query.operations.dates import DATE_ARITHMETIC, DATES
from dither.tables.query.operations.text import MAX_MADE_BYTES, MAX_MIXED_PATTERN, MAX_PATTERN, TEXT
from dither.tables.query.relations import relation_schema
from dither.tables.query.tree import Call, CappedRows, Column, Expression, Literal, PersonJoin, Source, sources
from dither.tables.sql.parse import parse
from support import each
from tables.glass import bounded, card, losses, table
from tables.random_relations import relation, rows
from tables.test_relation_neighbors import bits

# pyspark reads every answer from a socket that it leaves to the collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

CARD = card(max_groups=2, max_rows=3, delta=1e-6)
OF_A_PERSON = 1000
"""The rows of the person whose work is counted: two tables of them would have a million combinations."""
MANY = " AND ".join(f"(a.age + b.age + {i} > -1)" for i in range(60))
JOIN = "FROM visits a JOIN visits b ON a.person = b.person"
COMBINED = [
    f"SELECT COUNT(*) AS n {JOIN}",
    f"SELECT COUNT(*) AS n {JOIN} AND a.age <= b.age",
    f"SELECT COUNT(*) AS n {JOIN} WHERE {MANY}",
    f"SELECT COUNT(*) AS n {JOIN} JOIN visits c ON a.person = c.person AND a.age + b.age >= c.age",
    f"SELECT COUNT(*) AS n {JOIN} JOIN visits c ON a.person = c.person WHERE {MANY}",
    f"SELECT a.region, SUM(b.amount) AS s, MEDIAN(a.amount) AS m {JOIN} GROUP BY a.region",
    f"SELECT COUNT(*) AS n {JOIN.replace('JOIN', 'FULL JOIN')} AND a.amount < b.amount",
    f"SELECT COUNT(*) AS n {JOIN} WHERE LOWER(a.town || b.town) LIKE '%x%'",
    "SELECT COUNT(*) AS n FROM visits a WHERE EXISTS (SELECT 1 FROM visits b WHERE a.person = b.person "
    "AND a.age > b.age + 1000)",
    "SELECT COUNT(*) AS n FROM visits a WHERE NOT EXISTS (SELECT 1 FROM visits c JOIN visits b ON c.person = b.person "
    "WHERE a.person = b.person AND b.age > a.age)",
    "SELECT SUM(r) AS s FROM (SELECT person, ROW_NUMBER() OVER (PARTITION BY person ORDER BY x) AS r FROM "
    f"(SELECT a.person AS person, a.amount AS x {JOIN})) AS q",
    "SELECT COUNT(*) AS n FROM (SELECT person, age FROM visits UNION ALL SELECT person, age FROM visits) a "
    "JOIN (SELECT person, age FROM visits UNION ALL SELECT person, code FROM visits) b ON a.person = b.person",
]
LINEAR = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE person IN (SELECT person FROM visits WHERE vip)",
    "SELECT COUNT(*) AS n FROM visits a JOIN (SELECT person, COUNT(*) AS k FROM visits GROUP BY person) b "
    "ON a.person = b.person AND a.age > b.k",
    "SELECT AVG(s) AS m FROM (SELECT person, SUM(amount) AS s FROM visits GROUP BY person) AS q",
    "SELECT SUM(r) AS s FROM (SELECT person, ROW_NUMBER() OVER (PARTITION BY person ORDER BY day) AS r FROM visits) q",
]


def planned_parts(sql: str) -> Any:
    return plan_question(parse(sql, CARD), CARD, ReleaseOptions(epsilon=1.0)).parts


def planned(sql: str) -> Any:
    return planned_parts(sql)[0]


def limits_of(source: Source | None) -> list[CappedRows]:
    return [item for item in ([] if source is None else sources(source)) if isinstance(item, CappedRows)]


def lines(engine: Any, source: Source) -> list[dict[str, Any]]:
    """The rows of a relation."""
    sql = relation_sql(source, CARD, {}, engine.dialect)
    return engine.run(nodes.render(sql, engine.dialect, replacing={placeholder(""): engine.table})).to_pylist()


def somebody(random_source: random.Random) -> list[dict[str, Any]]:
    """The rows of one person, who has many."""
    return [row | {"person": 1, "vip": True} for row in rows(random_source, OF_A_PERSON)][:OF_A_PERSON]


def comparisons(engine: Any, source: Source) -> int:
    """How many pairs of rows all joins of a relation compare, from the rows that each side has."""
    result = 0
    for item in sources(source):
        if isinstance(item, PersonJoin) and (item.on is not None or item.kind not in ("semi", "anti")):
            left, right = len(lines(engine, item.left)), len(lines(engine, item.right))
            result += left * right if min(left, right) > 1 else 0
    return result


def test_whatever_is_asked_the_rows_of_a_person_have_few_combinations():
    """Random questions, and some that were written to take long; without the limit most would compare a million."""
    random_source = random.Random(1)
    limited = 0
    engine = connect(table(somebody(random_source)), CARD)
    asked = [f"SELECT COUNT(*) AS n, COUNT(DISTINCT x) AS d FROM ({relation(random_source)}) q" for _ in range(80)]
    for sql in [*COMBINED, *asked]:
        source = with_limited_work(parse(sql, CARD), CARD).source
        if source is None:
            continue
        assert comparisons(engine, source) * work._ROW <= MAX_WORK, sql
        limited += bool(limits_of(source))
    assert limited > 20
    engine.close()


@each("sql", [sql for sql in COMBINED if "MEDIAN" not in sql and "LOWER" not in sql])
def test_no_operator_of_the_engine_has_more_rows_than_the_work_allows(sql):
    """As DuckDB counts them; every person's rows are as many as the linear part of a question takes, some times."""
    with_engine = connect(table(somebody(random.Random(2))), CARD)
    plan = planned(sql)
    context = plan.statement_context("duckdb", {"": with_engine.table}, 7)
    for statement in statements_of(plan, context):
        text = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.text}"
        found = with_engine._connection.execute(text).fetchall()[0][1]
        assert max(_cardinalities(json.loads(found))) <= max(MAX_WORK // work._ROW, 4 * OF_A_PERSON)
    with_engine.close()


def _cardinalities(operator: Any) -> list[int]:
    items = operator if isinstance(operator, list) else [operator]
    return [
        count
        for item in items
        for count in [int(item.get("operator_cardinality", 0)), *_cardinalities(item.get("children", []))]
    ] or [0]


def test_what_is_linear_is_not_limited():
    for sql in LINEAR:
        query = parse(sql, CARD)
        assert with_limited_work(query, CARD) is query, sql
        assert not combined_notes(planned(sql))


def test_the_limit_follows_from_the_question_alone_and_falls_with_its_size():
    found = {sql: {item.most for item in limits_of(planned(sql).query.source)} for sql in COMBINED}
    assert all(len(limits) == 1 for limits in found.values())
    plain, compared, many, three, three_many, *_ = (limits.pop() for limits in found.values())
    assert plain >= compared >= 100 > many > three_many >= 2
    assert compared > three >= 20 > three_many


def test_every_operation_whose_time_its_sql_does_not_tell_has_a_weight():
    listed = {row.name for family in (TEXT, DATES, DATE_ARITHMETIC, CASTS) for row in family}
    assert listed == set(work._OPERATION_UNITS)


def test_the_answer_and_the_plan_say_how_many_rows_of_a_person_are_combined():
    joined, exists = planned(COMBINED[1]), planned(COMBINED[8])
    [most] = {item.most for item in limits_of(joined.query.source)}
    [note] = combined_notes(joined)
    assert note == Note("join_limit", {"rows": most, "relation": "visits", "exists": False})
    assert note in explain(QuestionPlan((joined,)), Remaining("nothing")).limitations
    assert combined_notes(exists)[0].values["exists"]


def test_several_aggregations_are_about_the_same_rows():
    sql = f"SELECT a.region, b.vip, COUNT(*) AS n, SUM(b.amount) AS s {JOIN} GROUP BY ROLLUP (a.region, b.vip)"
    first, *more = planned_parts(sql)
    assert more
    assert limits_of(first.query.source)
    assert {repr(part.query.source) for part in more} == {repr(first.query.source)}
    assert {name for item in limits_of(first.query.source) for name in item.seen} == {"region", "vip", "amount"}


def with_limit(source: Source, most: int) -> Source:
    """The relation, all columns of which are read, with at most so many rows of a person in each comparison."""
    return work._with_limits(source, CARD, most, set(relation_schema(CARD, source).columns))


def test_without_a_person_every_other_row_stays_the_same_in_whatever_order_rows_come():
    random_source = random.Random(5)
    limited = 0
    for seed in range(30):
        sql = relation(random_source)
        source = parse(f"SELECT COUNT(*) AS n FROM ({sql}) AS q", CARD).source
        if source is None or not limits_of(with_limit(source, 2)):
            continue
        limited += 1
        given = rows(random_source, 14)
        left = [row for row in given if row["person"] != 1]
        random_source.shuffle(left)
        results = []
        for data in (given, left):
            engine = connect(table(data), CARD)
            found = lines(engine, with_limit(source, 2))
            results.append(Counter(tuple((k, bits(v)) for k, v in line.items()) for line in found))
            engine.close()
        others = {line: count for line, count in results[0].items() if dict(line)["person"] != 1}
        assert others == results[1], (seed, sql)
    assert limited >= 5


def test_a_limit_that_binds_moves_nothing_further_than_is_paid_for(monkeypatch):
    monkeypatch.setattr(work, "MAX_WORK", 1500)
    random_source = random.Random(6)
    for sql in COMBINED[:5] + COMBINED[8:10]:
        plan = plan_question(parse(sql, CARD), CARD, ReleaseOptions(epsilon=1.0)).parts[0]
        given = rows(random_source, 30)
        one = bounded(plan, table(given))
        other = bounded(plan, table([row for row in given if row["person"] != 1]))
        pure, normal = losses(plan, one, other)
        assert (normal, pure <= 1 + 1e-9) == (0, True), sql


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["duckdb", "postgres", "spark"])
def test_every_engine_keeps_the_same_rows_of_a_person(engine, kind):
    """Those whose places, in the order of what is read of them with NULL last, have the smallest hashes."""
    given = [row for row in rows(random.Random(8), 60) if row["amount"] is None or -1e300 < row["amount"] < 1e300]
    capped = CappedRows(parse(f"SELECT COUNT(*) AS n {JOIN}", CARD).source.left, 4, ("town", "amount"))
    found = lines(engine(kind, table(given), CARD), capped)
    for person in (1, 2, 3):
        own = [(row["town"], row["amount"]) for row in given if row["person"] == person]
        own.sort(key=lambda row: [(x is None, b"" if x is None else _sortable(x)) for x in row])
        places = sorted(range(len(own)), key=lambda place: md5(f"{person}/{place + 1}".encode()).hexdigest()[:15])
        expected = [own[place] for place in places[:4]]
        kept = [(row["town"], row["amount"]) for row in found if row["person"] == person]
        assert Counter(kept) == Counter(expected)


def _sortable(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def test_a_limit_of_one_row_is_said_as_such(monkeypatch):
    monkeypatch.setattr(work, "MAX_WORK", 1)
    [note] = combined_notes(planned(COMBINED[0]))
    assert "at most 1 row of visits" in str(note)


def test_the_rows_that_are_combined_are_chosen_whatever_their_values_are():
    """Averages of a join are not those of the smallest values, which come first in any order of the columns."""
    data = table([{"person": i % 40, "amount": i // 40 / 4} for i in range(40 * 400)])
    join = "FROM visits v JOIN visits w ON v.person = w.person AND v.amount = w.amount"
    joined = planned(f"SELECT AVG(v.amount) AS m {join}")
    [most] = {item.most for item in limits_of(joined.query.source)}
    assert 20 < most < 200
    [mean] = bounded(joined, data).answer.answers["m"]
    # of 0, 0.25, ..., 99.75 without replacement: a standard deviation below 29 / sqrt(40 * most) = 1
    assert abs(mean - 49.875) < 3


def asked(condition: str, source: str = "visits") -> str:
    return f"SELECT COUNT(*) AS n FROM {source} WHERE {condition}"


def conditions(count: int) -> str:
    single = [f"town LIKE 'x{i}%'" for i in range(count)]
    return " OR ".join(f"({' OR '.join(single[i : i + 32])})" for i in range(0, count, 32))


@each(
    "condition",
    [
        f"town LIKE '{'a' * (MAX_PATTERN - 1)}%'",
        f"town ILIKE '{'a' * (MAX_PATTERN - 1)}_'",
        f"town NOT LIKE '%{'a' * (MAX_MIXED_PATTERN - 2)}_'",
        f"town || 'b' = '{'a' * MAX_MADE_BYTES}'",
        f"CASE WHEN age = 77 THEN '{'a' * MAX_MADE_BYTES}' ELSE '' END = 'b'",
        f"CONTAINS(town, 'é{'a' * (MAX_MADE_BYTES - 2)}')",
        f"town IN ('b', '{'a' * MAX_MADE_BYTES}')",
    ],
)
def test_long_patterns_and_constants_are_refused(condition):
    planned(asked(condition))
    with pytest.raises(InvalidArgument, match=r"at most [\d,]+ (characters|bytes)"):
        planned(asked(condition.replace("aaa", "aaaa", 1)))


def test_operations_on_texts_are_counted_in_the_whole_question():
    half = MAX_TEXT_OPERATIONS // 2
    planned(asked(conditions(MAX_TEXT_OPERATIONS)))
    copies = "(SELECT person, town FROM visits UNION ALL SELECT person, town FROM visits) AS u"
    planned(asked(conditions(half), copies))
    deep = "town"
    for _ in range(8):
        deep = f"REPLACE({deep}, 'a', 'aa')"
    sums = ", ".join(f"SUM(CASE WHEN {conditions(half)} THEN {i} ELSE 0 END) AS s{i}" for i in range(2))
    refused = [
        asked(conditions(MAX_TEXT_OPERATIONS + 1)), asked(conditions(half + 1), copies), asked(f"{deep} = 'b'"),
        f"SELECT {sums} FROM visits WHERE LOWER(town) = 'x'",
        asked("b", f"(SELECT person, ({conditions(MAX_TEXT_OPERATIONS + 1)}) AS b FROM visits) AS u"),
    ]  # fmt: skip
    for sql in refused:
        with pytest.raises(InvalidArgument, match=f"at most {MAX_TEXT_OPERATIONS} operations on texts"):
            planned(sql)


def lengthened(depth: int) -> Expression:
    """Operations inside each other that make texts longer, and others."""
    if depth == 0:
        return random.choice([Column("s"), Literal("a" * random.choice([1, 30, 1024])), Literal("é-")])
    inside = lengthened(depth - 1)
    parts = ["a", "é", "aa", "-", "b" * 256, "a" * 40]
    choices = [
        Call("||", (inside, lengthened(depth - 1))), Call("||", (inside, inside, Literal("a"))),
        Call("replace", (inside, Literal(random.choice(parts)), Literal(random.choice(["", *parts])))),
        Call("upper", (inside,)), Call("coalesce", (inside, Column("s"))),
    ]  # fmt: skip
    return random.choice(choices)


def test_no_operation_makes_a_long_text():
    """Whatever is put together, the result is that of DuckDB, and longer than 1,024 bytes only where the data are."""
    long = "aé" * 900
    find = expressions.lookup(CARD, {})
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT * FROM (VALUES ('a'), ('aé-'), (repeat('a', 512)), (NULL)) v(town)"
        )
        connection.execute("INSERT INTO t VALUES (?)", [long])
        for _ in range(150):
            made = lengthened(random.randint(1, 3))
            checked = typed(named(made), {Column("town"): "text"}.__getitem__)[0]
            sql = nodes.render(expressions.compile(checked, find).node, "duckdb")
            for text, result in connection.execute(f"SELECT town, {sql} FROM t AS t").fetchall():
                assert result == evaluate(checked, {"town": text}), sql
                assert result is None or len(result.encode()) <= max(MAX_MADE_BYTES, len((text or "").encode()))


def named(made: Expression) -> Expression:
    if isinstance(made, Call):
        return Call(made.op, tuple(map(named, made.args)))
    return Column("town") if isinstance(made, Column) else made


def test_a_long_result_is_measured_before_it_is_made():
    """REPLACE by something longer stands behind the measure, which itself only takes away."""
    call = Call("replace", (Column("town"), Literal("a"), Literal("b" * 256)))
    sql = nodes.render(expressions.compile(call, expressions.lookup(CARD, {})).node, "duckdb")
    measure, made = sql.split(" THEN ")
    assert ["bbb" in part for part in (measure, made)] == [False, True]
