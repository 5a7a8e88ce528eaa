"""No value and no constant makes a statement fail, on any engine; and the engines agree on what it says.

An error that depends on a row would tell whoever asks that the row is there, without any noise.
"""

from __future__ import annotations

import operator
import random
from typing import Any

import pyarrow as pa
import pytest
import sqlglot

from dither.errors import DitherError
from dither.tables.card.model import TYPES, Card, ColumnCard
from dither.tables.compile import expressions
from dither.tables.compile import statements as bounding
from dither.tables.compile.context import StatementContext
from dither.tables.compile.limits import Limits
from dither.tables.compile.statements import Measure
from dither.tables.query import nodes
from dither.tables.query.evaluate import evaluate
from dither.tables.query.nodes import alias, relation, select
from dither.tables.query.operations import OPERATIONS
from dither.tables.query.tree import Aggregate, Call, Column, Group, Join, Literal, Query
from tables import hostile
from tables.planned import check, make

# pyspark reads every answer from a socket that it leaves to the collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


def evaluated(engine, values: list[Any]) -> list[list[str]]:
    """Each expression on every row, all in one statement."""
    listed = [alias(item, f"y{i}") for i, item in enumerate(values)]
    result = engine.run(select(listed, relation(engine.table, "t")).order_by(nodes.column("i", "t")))
    return [list(map(_shown, column.to_pylist())) for column in result.columns]


def agree_closely(here: list[str], there: list[str]) -> bool:
    """Whether doubles agree to 1e-12, as operations promise that are not computed to the last bit."""
    nulls = [value == "None" for value in here] == [value == "None" for value in there]
    pairs = [(float(a), float(b)) for a, b in zip(here, there, strict=True) if a != "None" and b != "None"]
    return nulls and all(abs(a - b) <= 1e-12 * max(abs(a), 1.0) for a, b in pairs)


def _shown(value: object) -> str:
    return repr(0.0 if value == 0 and isinstance(value, float) else value)


def load(engine, kind, unit=None):
    data = hostile.table()
    whole = Card("t", "", {"i": ColumnCard("integer"), **hostile.COLUMNS}, unit)
    return engine("duckdb", data, whole), engine(kind, data, whole)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("postgres", 4), pytest.param("spark", 1, marks=pytest.mark.slow)])
def test_every_operation_is_total(engine, kind, count):
    duck, other = load(engine, kind)
    result = hostile.expressions(count)
    assert {op: len(item) for op, item in result.items()} == dict.fromkeys(OPERATIONS, 2 * count)
    every = [item for listed in result.values() for item in listed]
    for some in (every[i : i + 60] for i in range(0, len(every), 60)):
        sql = [hostile.compiled(item).node for item in some]
        for item, here, there in zip(some, evaluated(duck, sql), evaluated(other, sql), strict=True):
            assert OPERATIONS[item.op].exact is False or here == there, item
            assert here == there or agree_closely(here, there), item


@pytest.mark.parametrize("kind", ["postgres", pytest.param("spark", marks=pytest.mark.slow)])
def test_doubles_too_large_for_whole_numbers_are_rounded(engine, kind):
    """Spark's FLOOR is a BIGINT: whatever is beyond 64 bits would be rounded to the largest of them."""
    loaded = load(engine, kind)
    sums = [Call(sign, (Column("x"), Column("large"))) for sign in ("+", "-")]
    calls = [Call(op, (item, Literal(digits))) for op in ("round", "trunc") for item in sums for digits in (1, 15)]
    sql = [hostile.compiled(item).node for item in calls]
    assert evaluated(loaded[0], sql) == evaluated(loaded[1], sql)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "count"), [("duckdb", 20), ("postgres", 40), pytest.param("spark", 3, marks=pytest.mark.slow)]
)
def test_every_statement_is_total(engine, kind, count):
    """Sums, quantiles, extremes and histograms of hostile values within hostile bounds; known holes first."""
    _, loaded = load(engine, kind, "who")
    pick, kinds = random.SystemRandom(), ("sum", "mean", "var", "quantile", "min")
    asked = [Aggregate(k, v, bounds=b) for v in hostile.VALUES for b in [None, *hostile.BOUNDS] for k in kinds]
    asked += [Aggregate("histogram", v, edges=e) for v in hostile.VALUES for e in hostile.EDGE_LISTS]
    asked = [
        Aggregate("quantile", hostile.VANISHING),
        Aggregate("min", Column("x"), bounds=(0.0, 1e9)),
        Aggregate("quantile", Column("x"), bounds=(0.5, 1e308)),
        *pick.sample(asked, count),
    ]
    refused = 0
    for aggregate in asked:
        try:
            query_plan = make(Query({"a": aggregate}), loaded.card, epsilon=1, max_rows=2)
            check(query_plan)
        except DitherError:
            refused += 1
            continue
        frame = query_plan.statement_context(loaded.dialect, {"": loaded.table}, 7)
        for sql in statements(query_plan, frame):
            loaded.run(sql)
    assert 0 < refused < len(asked)


def statements(query_plan, frame):
    if query_plan.measures:
        yield bounding.sums(frame, list(query_plan.measures))
    for item in (*query_plan.choices, *query_plan.quantiles, *query_plan.counts):
        yield bounding.bins(frame, item.aggregate.value, item.aggregate.edges, item.aggregate.keys)


KINDS = ["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.slow)]
PYTHON = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_are_compared_as_whole_numbers(engine, kind):
    """Every edge with every other: as doubles, 400 numbers around 2^62 would be one."""
    edges = sorted({*hostile.EDGES, *((1 << 62) + step for step in (-300, -7, 5, 200))})
    loaded = engine(kind, pa.table({"i": pa.array(range(len(edges))), "code": pa.array(edges, pa.int64())}))
    for op in PYTHON:
        sql = [expressions.compile(Call(op, (Column("code"), Literal(edge))), hostile.find).node for edge in edges]
        for edge, result in zip(edges, evaluated(loaded, sql), strict=True):
            assert result == [repr(PYTHON[op](value, edge)) for value in edges], (op, edge)
    within = [
        expressions.compile(Call("in", (Column("code"), Literal(edge), Literal(0))), hostile.find).node
        for edge in edges
    ]
    for edge, result in zip(edges, evaluated(loaded, within), strict=True):
        assert result == [repr(value in (edge, 0)) for value in edges]


def counted(engine, keys, column, unit=None, groups=1) -> dict[int, int]:
    card = Card("t", "", {name: ColumnCard(type) for name, type in engine.columns.items()}, unit)
    limits = Limits(groups, 1, weighted=unit is not None)
    frame = StatementContext(
        Query({}, (Group("g", Column(column)),)), card, (keys,), limits, 7, engine.dialect,
        {"": engine.table},
    )  # fmt: skip
    result = engine.run(bounding.sums(frame, [Measure("people")]))
    return dict(zip(*(item.to_pylist() for item in result.columns), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_in_one_group_whatever_the_keys(engine, kind):
    """Also where keys are alike, which nothing but the statement itself then keeps from counting twice."""
    edges = sorted({*hostile.EDGES})
    loaded = engine(
        kind,
        pa.table(
            {
                "code": pa.array(edges, pa.int64()),
                "ok": pa.array([True] * len(edges)),
                "name": pa.array(["é"] * len(edges)),
            }
        ),
    )
    around = tuple(sorted({*edges, *((1 << 62) + step for step in range(-200, 200))}))
    result = counted(loaded, around, "code")
    assert {around[place]: n for place, n in result.items() if n} == dict.fromkeys(edges, 1)
    assert counted(loaded, (*edges, *edges, *edges), "code") == dict.fromkeys(range(len(edges)), 1)
    assert counted(loaded, (True, 1, "yes", "t", False), "ok") == {0: len(edges)}  # each of them is true
    assert counted(loaded, ("é", "é", "e\u0301", None, None), "name") == {0: len(edges)}
    total = sum(counted(loaded, (*edges, *edges), "code", "name", groups=3).values())
    sensitivity = Limits(3, 1).sensitivity()  # one person, in units of their weight, each group's rounded down
    assert sensitivity - len(edges) < total <= sensitivity


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_has_one_partner_whatever_the_public_table(engine, kind):
    """A public table is known to have its key once before it is joined; the statement does not rely on it."""
    loaded = engine(kind, pa.table({"code": pa.array([1, 1, 2, None], pa.int64())}))
    card = Card("t", "", {"code": ColumnCard("integer")}, public={"p": hostile.PUBLIC})
    for left, partners in ((False, 2), (True, 4)):
        query = Query({}, joins=(Join("p", Column("code"), "key", left),))
        public = sqlglot.parse_one('(SELECT k AS "key" FROM (VALUES (1), (1), (1), (3)) AS v(k))', read="duckdb")
        tables = {"": loaded.table, "p": public}
        frame = StatementContext(query, card, (), Limits(1, 1, weighted=False), 7, loaded.dialect, tables)
        assert loaded.run(bounding.sums(frame, [Measure("people")])).to_pylist() == [{"m0": partners}]


@pytest.mark.parametrize("kind", ["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.slow)])
def test_every_text_is_cast_as_python_casts_it(engine, kind):
    """Texts that some engine reads and another does not, or fails on: each as each type, by one strict grammar."""
    names = [*hostile.TEXTS, None]
    loaded = engine(kind, pa.table({"i": pa.array(range(len(names))), "name": pa.array(names, pa.string())}))
    casts = [Call("cast", (Literal(target), Column("name"))) for target in TYPES]
    columns = evaluated(loaded, [hostile.compiled(item).node for item in casts])
    for item, column in zip(casts, columns, strict=True):
        expected = [evaluate(item, {"name": name}) for name in names]
        assert column == [_shown(value) for value in expected], item
