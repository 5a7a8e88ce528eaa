"""Whatever is asked, planning stays short, and an answer that was paid for can be shown."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dp
from dither.errors import InvalidArgument
from dither.guarantees import PureDP
from dither.ledger.recorded import decode, encode
from dither.tables.answer import Answer
from dither.tables.card.model import Card, ColumnCard
from dither.tables.compile import expressions as rows
from dither.tables.engines import connect
from dither.tables.execute.shape_answer import _common_type
from dither.tables.query import evaluate, nodes
from dither.tables.query.nodes import MAX_TEXT_BYTES
from dither.tables.query.tree import Call, Column, Expression, Literal
from support import refuses

numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=True), st.none())
expressions = st.recursive(
    st.one_of(st.sampled_from([Column("n"), Column("x")]), numbers.filter(lambda v: v is not None).map(Literal)),
    lambda inner: st.one_of(
        st.builds(lambda op, a, b: Call(op, (a, b)), st.sampled_from(["+", "-", "*", "/", "nullif"]), inner, inner),
        st.builds(lambda op, a: Call(op, (a,)), st.sampled_from(["neg", "abs"]), inner),
        st.builds(lambda a, b: Call("coalesce", (a, b)), inner, inner),
        st.builds(lambda a, b, c: Call("case", (Call(">", (a, b)), b, c)), inner, inner, inner),
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(expressions, st.lists(st.tuples(numbers, numbers), min_size=1, max_size=3), st.integers(0, 12))
def test_every_value_can_be_recorded_shown_and_exported(expression, lines, squared):
    for _ in range(squared):
        expression = Call("*", (expression, expression)) if squared < 5 else Call("+", (expression, Column("n")))
    values = [evaluate.evaluate(expression, {"n": n, "x": x}) for n, x in lines]
    answer = Answer(("y",), (_common_type(values),), tuple((value,) for value in values), {}, PureDP(1))
    again = Answer.restored(decode(encode(answer.stored())))
    assert again == answer
    assert str(again)
    assert repr(again)
    assert again.to_csv()
    assert again.to_json()
    assert dp.present.html(again)
    assert again.to_arrow().num_rows == len(lines)


def test_a_product_of_many_counts_is_shown():
    product = "COUNT(*)"  # its 512th power is beyond floats
    for _ in range(9):
        product = f"({product}*{product})"
    with dp.open(pa.table({"x": [1.0] * 20}), budget=dp.PureDP(9)) as table:
        answer = table.sql(f"SELECT {product} AS n FROM data").release(epsilon=1)
    assert str(answer)
    assert answer.to_arrow().num_rows == 1


def nested(op: str, depth: int) -> Expression:
    result: Expression = Column("x")
    for i in range(depth):
        cut = Literal(float(i))
        result = Call(op, (Call(">", (Column("x"), cut)), cut, result) if op == "case" else (result, cut))
    return result


@pytest.mark.parametrize("op", ["case", "coalesce"])
def test_what_is_inside_a_branch_is_compiled_once(op):
    looked: list[int] = []

    def find(_: Column) -> tuple[Any, ColumnCard]:
        looked.append(1)
        return nodes.column("x", "t"), ColumnCard("number", (0, 10))

    expression = nested(op, 40)
    sql = nodes.render(rows.number(expression, find).node, "duckdb")
    assert len(looked) <= 2 * 41 + 2
    assert len(sql) <= 41 * 400


def test_what_would_double_with_every_level_is_refused():
    with refuses(InvalidArgument, "characters of SQL"):
        rows.number(nested("nullif", 40), lambda _: (nodes.column("x", "t"), ColumnCard("number", (0, 10))))


def test_a_text_beyond_the_limit_is_null():
    texts = pa.table({"s": ["a" * MAX_TEXT_BYTES, "a" * (MAX_TEXT_BYTES + 1), "é" * (MAX_TEXT_BYTES // 2 + 1), "b"]})
    card = Card("d", "", {"s": ColumnCard("text")})
    with connect(texts, card) as engine:
        result = engine.run(f"SELECT LENGTH(s) AS n FROM {engine.table.sql('duckdb')} AS t").column("n").to_pylist()
    assert result == [MAX_TEXT_BYTES, None, None, 1]


@pytest.mark.parametrize("how", [{"min_epsilon": 1e-9}, {"max_incidents": 4}])
def test_limits_of_a_card_are_only_tightened(tmp_path, how):
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "d.parquet")
    columns = {"id": ColumnCard("integer")}
    card = Card("d", str(tmp_path / "d.parquet"), columns, "id", budget=dp.PureDP(9), ledger=str(tmp_path / "l"))
    with refuses(InvalidArgument, "as the card says"):
        dp.open(card, **how)
    with dp.open(card, min_epsilon=1e-4, max_incidents=1) as table:
        assert table.card.max_incidents == 1


def test_another_table_in_a_ledger_and_the_people_who_paid(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "d.parquet")
    for name in ("one", "two"):
        card = Card(
            name, str(tmp_path / "d.parquet"), {"id": ColumnCard("integer")}, "id",
            each_person=dp.PureDP(9), ledger=str(tmp_path / "l"),
        )  # fmt: skip
        with dp.open(card) as table:
            assert table.agg(n=dp.count()).release(1).rows
            assert table.new_ledger == (name == "one")
            views = table.engine._connection.execute("SELECT view_name FROM duckdb_views()").fetchall()  # type: ignore[attr-defined]
            assert not [view for (view,) in views if "paying" in view]
