"""No value and no constant makes a statement fail, on any engine; and the engines agree on what it says.

An error that depends on a row would tell whoever asks that the row is there, without any noise.
"""

from __future__ import annotations

import random

import pytest

from dither.errors import DitherError
from dither.tables import bounding, plan, rows
from dither.tables.phrases import Phrases
from dither.tables.tree import OPERATIONS, Aggregate, Call, Column, Group, Literal, Query
from tables import hostile

# pyspark reads every answer from a socket that it leaves to the collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


def evaluated(engine, sql: list[str], where: str = "") -> list[list[str]]:
    """Each expression on every row, all in one statement."""
    listed = ", ".join(f"{each} AS y{i}" for i, each in enumerate(sql))
    told = f"SELECT {listed} FROM {engine.table.sql('duckdb')} AS t{where} ORDER BY t.i"
    found = engine.run(Phrases(engine.dialect).render(told))
    return [list(map(_shown, column.to_pylist())) for column in found.columns]


def _shown(value: object) -> str:
    return repr(0.0 if value == 0 and isinstance(value, float) else value)


def load(engine, kind, unit=None):
    data = hostile.table()
    whole = hostile.Card("t", "", {"i": hostile.ColumnCard("integer"), **hostile.COLUMNS}, unit)
    return engine("duckdb", data, whole), engine(kind, data, whole)


@pytest.mark.parametrize(("kind", "count"), [("postgres", 6), pytest.param("spark", 4, marks=pytest.mark.slow)])
def test_every_operation_is_total(engine, kind, count):
    duck, other = load(engine, kind)
    found = hostile.expressions(count)
    assert {op: len(each) for op, each in found.items()} == dict.fromkeys(OPERATIONS, 2 * count)
    every = [each for listed in found.values() for each in listed]
    for some in (every[i : i + 60] for i in range(0, len(every), 60)):
        sql = [hostile.compiled(each).sql for each in some]
        for each, here, there in zip(some, evaluated(duck, sql), evaluated(other, sql), strict=True):
            assert here == there, each


@pytest.mark.parametrize(
    ("kind", "count"), [("duckdb", 60), ("postgres", 100), pytest.param("spark", 15, marks=pytest.mark.slow)]
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
            made = plan.make(Query({"a": aggregate}), loaded.card, epsilon=1, max_rows=2)
            plan.check(made)
        except DitherError:
            refused += 1
            continue
        frame = made.frame(Phrases(loaded.dialect), {"": loaded.table.sql("duckdb")}, 7)
        for sql in statements(made, frame):
            loaded.run(sql)
    assert 2 < refused < len(asked) - 2


def statements(made, frame):
    if made.measures:
        yield bounding.sums(frame, list(made.measures))
    for each in (*made.choices, *made.quantiles, *made.counts):
        yield bounding.bins(frame, each.aggregate.value, each.aggregate.edges, each.aggregate.keys)
