"""The work that a question makes of the texts of one row. Nothing here is timed."""

from __future__ import annotations

import random

import duckdb
import pytest

from dither.errors import InvalidArgument
from dither.tables.compile import expressions
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.planning.text_work import MAX_TEXT_OPERATIONS
from dither.tables.query import nodes
from dither.tables.query.evaluate import evaluate, typed
from dither.tables.query.operations.text import MAX_MADE_BYTES, MAX_MIXED_PATTERN, MAX_PATTERN
from dither.tables.query.tree import Call, Column, Expression, Literal
from dither.tables.sql.parse import parse
from support import each
from tables.glass import card

CARD = card(max_groups=2, max_rows=3, delta=1e-6)


def plan(sql: str) -> None:
    plan_question(parse(sql, CARD), CARD, ReleaseOptions(epsilon=1.0))


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
    plan(asked(condition))
    with pytest.raises(InvalidArgument, match=r"at most [\d,]+ (characters|bytes)"):
        plan(asked(condition.replace("aaa", "aaaa", 1)))


def test_operations_on_texts_are_counted_in_the_whole_question():
    half = MAX_TEXT_OPERATIONS // 2
    plan(asked(conditions(MAX_TEXT_OPERATIONS)))
    copies = "(SELECT person, town FROM visits UNION ALL SELECT person, town FROM visits) AS u"
    plan(asked(conditions(half), copies))
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
            plan(sql)


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
