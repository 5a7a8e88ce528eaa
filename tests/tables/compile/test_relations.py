"""Private relations as SQL: the same rows on every engine, the right ones, and no failure whatever a person has."""

from __future__ import annotations

import math
import random
import struct
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dither.tables.card.model import Card, ColumnCard
from dither.tables.compile.relations import relation_sql
from dither.tables.engines import Engine, connect
from dither.tables.query import nodes
from dither.tables.query.nodes import placeholder
from dither.tables.query.tree import Column, PerPerson, PersonAggregate, PrivateRows, Source
from dither.tables.sql.parse import parse
from tables.glass import card, table
from tables.random_relations import relation, rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # Py4J leaves them to the collector
]

CARD = card(max_groups=2, max_rows=3)
RELATIONS = [
    "SELECT person, SUM(amount) AS s, AVG(amount) AS m, SUM(age) AS t, AVG(age) AS a, SUM(code) AS c FROM visits "
    "GROUP BY person",
    "SELECT person, MIN(amount) AS i, MAX(amount) AS a, MIN(town) AS t, MAX(day) AS d, COUNT(DISTINCT amount) AS n, "
    "BOOL_OR(vip) AS o, BOOL_AND(vip) AS e FROM visits GROUP BY person",
    "SELECT person, amount, town, COUNT(*) AS n FROM visits GROUP BY person, amount, town",
    "SELECT person, ROW_NUMBER() OVER (PARTITION BY person ORDER BY town DESC) AS r, RANK() OVER (PARTITION BY person "
    "ORDER BY amount) AS k, LAG(day) OVER (PARTITION BY person ORDER BY day) AS l, LEAD(town) OVER (PARTITION BY "
    "person, region ORDER BY age DESC) AS e FROM visits",
    "SELECT person, SUM(amount) OVER (PARTITION BY person ORDER BY age) AS s, "
    "AVG(age) OVER (PARTITION BY person) AS m, COUNT(town) OVER (PARTITION BY person ORDER BY day "
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS c, "
    "LAST_VALUE(town) OVER (PARTITION BY person ORDER BY amount ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED "
    "FOLLOWING) AS l FROM visits",
    "SELECT person, a.x, b.y FROM (SELECT person, SUM(age) AS x FROM visits WHERE vip GROUP BY person) AS a FULL JOIN "
    "(SELECT person, MAX(age) AS y FROM visits WHERE town = 'a' GROUP BY person) AS b USING (person)",
    "SELECT person, age AS x FROM visits AS v "
    "WHERE NOT EXISTS (SELECT 1 FROM visits AS w WHERE w.person = v.person AND w.age > v.age) "
    "AND person IN (SELECT person FROM visits GROUP BY person HAVING COUNT(*) >= 2)",
    "SELECT person, amount AS x FROM visits UNION SELECT person, age / 2 AS x FROM visits",
    "SELECT person, SUM(s) AS t, AVG(n - s) AS m, SUM(c) AS c, MAX(n % 2 + FLOOR(s / 10)) AS x FROM (SELECT person, "
    "town, SUM(amount) AS s, COUNT(*) AS n, SUM(code) AS c FROM visits GROUP BY person, town) AS i GROUP BY person",
]


def source_of(sql: str) -> Source:
    source = parse(f"SELECT COUNT(*) AS n FROM ({sql}) AS q", CARD).source
    assert source is not None
    return source


def result(engine: Engine, source: Source, said: Card = CARD) -> list[dict[str, Any]]:
    sql = relation_sql(source, said, {}, engine.dialect)
    text = nodes.render(sql, engine.dialect, replacing={placeholder(""): engine.table})
    return list(engine.run(text).to_pylist())


def lines(engine: Engine, source: Source) -> Counter[tuple[Any, ...]]:
    """The rows, of which doubles are equal only to the same double."""
    return Counter(
        tuple(struct.pack("<d", value) if isinstance(value, float) else value for value in line.values())
        for line in result(engine, source)
    )


@pytest.mark.parametrize("kind", ["postgres", "spark"])
def test_every_engine_has_the_same_rows_to_the_last_bit(kind, engine):
    given = table(rows(random.Random(5), 40))
    here, there = engine("duckdb", given, CARD), engine(kind, given, CARD)
    asked = [source_of(sql) for sql in RELATIONS]
    if kind == "postgres":
        drawn = (parse(f"SELECT COUNT(*) AS n FROM ({relation(random.Random(seed))}) AS q", CARD) for seed in range(30))
        asked += [question.source for question in drawn if question.source is not None]
    for place, source in enumerate(asked):
        assert lines(there, source) == lines(here, source), place


@pytest.mark.parametrize("kind", ["COUNT(*)", "COUNT(town)", "COUNT(DISTINCT town)"])
def test_a_count_is_held_where_arithmetic_relies_on_it(kind):
    """Nobody has 2^31 rows here, so the statement is read: a larger count would be beyond the range of its column."""
    source = source_of(f"SELECT person, {kind} AS n FROM visits GROUP BY person")
    text = nodes.render(relation_sql(source, CARD, {}, "duckdb"), "duckdb")
    assert "> CAST('2147483648' AS BIGINT)" in text or "> 2147483648" in text


def test_aggregates_of_a_person_are_what_exact_arithmetic_says():
    given = rows(random.Random(6), 60)
    source = PerPerson(
        PrivateRows(),
        {kind: PersonAggregate(kind, Column("amount")) for kind in ("sum", "mean", "min", "max", "count_distinct")},
    )
    with connect(table(given), CARD) as engine:
        answers = {line["person"]: line for line in result(engine, source)}
    for person in {row["person"] for row in given} - {None}:
        values = [row["amount"] for row in given if row["person"] == person]
        known = [value for value in values if value is not None and value == value]
        held = [Fraction(min(max(value, 0.0), 100.0)) for value in known]
        held = [value if value >= Fraction(1, 2**18) else Fraction(0) for value in held]
        line = answers[person]
        if not held:
            assert line["sum"] is line["mean"] is None
            continue
        for kind, exact in (("sum", sum(held)), ("mean", sum(held) / len(held))):
            error = abs(Fraction(line[kind]) - exact)
            assert error == 0 if len(set(held)) == 1 and kind == "mean" else error <= math.ulp(float(exact))
        assert line["min"] == min(known, default=None)
        assert line["max"] == max(known, default=None)
        assert line["count_distinct"] == len(set(known))


@pytest.mark.parametrize("value", [(1 << 63) - 1, -(1 << 63)])
def test_a_million_rows_at_the_ends_of_64_bits_neither_overflow_nor_fail(value):
    count = 1_000_000
    said = Card("visits", "", {"person": ColumnCard("integer"), "code": ColumnCard("integer")}, "person")
    given = pa.table({"person": np.ones(count, np.int64), "code": np.full(count, value, np.int64)})
    kinds = ("sum", "mean", "min", "max")
    source = PerPerson(PrivateRows(), {kind: PersonAggregate(kind, Column("code")) for kind in kinds})
    with connect(given, said) as engine:
        (line,) = result(engine, source, said)
    most = (1 << 53) if value > 0 else -(1 << 53)
    assert (line["sum"], line["mean"]) == (most, most / count)
    assert (line["min"], line["max"]) == (value, value)


def test_ties_go_by_all_columns_so_that_the_order_of_rows_does_not_matter():
    given = rows(random.Random(8), 50)
    source = source_of("SELECT person, FIRST_VALUE(town) OVER (PARTITION BY person ORDER BY vip) AS x FROM visits")
    results = []
    for seed in range(4):
        random.Random(seed).shuffle(given)
        with connect(table(given), CARD) as engine:
            results.append(lines(engine, source))
    assert all(item == results[0] for item in results)
