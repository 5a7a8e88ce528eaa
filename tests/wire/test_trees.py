"""Every node of a tree goes to JSON and comes back equal; what no tree says is refused."""

from __future__ import annotations

import dataclasses
import json
import typing
from datetime import date, datetime
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dither.errors import DitherError, InvalidArgument
from dither.tables.query import tree
from dither.tables.query.tree import (
    Aggregate,
    Call,
    Column,
    Group,
    Join,
    Literal,
    Order,
    PerPerson,
    PersonAggregate,
    PersonJoin,
    PostProcessing,
    PrivateRows,
    Projection,
    PublicMembership,
    Query,
    Shape,
    UnionAll,
    Windowed,
    WindowFunction,
)
from dither.wire import trees
from support import each, refuses

AGE = Column("age")
OVER = Call(">", (AGE, Literal(18)))
COUNT = {"n": Aggregate("count")}

NODES: dict[str, Query] = {
    "Query": Query(
        COUNT,
        epsilon=0.5,
        delta=1e-9,
        max_groups="auto",
        max_rows=3,
        more=(Query(COUNT),),
        rolled_up=(Group("a", AGE),),
    ),
    "Aggregate": Query(
        {
            "a": Aggregate("mean", AGE, (0, 1.5), weight=2.0),
            "b": Aggregate("quantile", AGE, "auto", at=0.25),
            "c": Aggregate("mode", Column("region"), keys=("a", None, 1, 1.5, True, date(2024, 1, 31))),
            "d": Aggregate("histogram", AGE, edges=(0, 50.5, 100)),
            "e": Aggregate("corr", AGE, (0, 1), other=Column("x"), other_bounds=(Fraction(1, 3), 2)),
        }
    ),
    "Group": Query(COUNT, (Group("g", AGE, (datetime(2024, 1, 31, 12, 0, 0, 5), "x")),)),
    "Column": Query(COUNT, where=Column("vip", "regions")),
    "Literal": Query(
        COUNT,
        where=Call("in", (AGE, *map(Literal, (None, True, 1, 1.0, "ä\u2028", float("inf"), -(2**70))))),
    ),
    "Call": Query(COUNT, where=OVER),
    "Join": Query(COUNT, joins=(Join("regions", AGE, "region", left=True), Join("others", AGE, "key"))),
    "Order": Query(COUNT, shape=Shape(order=(Order(Column("n"), descending=True), Order(AGE)))),
    "Shape": Query(COUNT, shape=Shape({"b": AGE, "a": Column("n")}, OVER, (), 5)),
    "PostProcessing": Query(COUNT, post=PostProcessing("SELECT 1", "noisy", ("more",))),
    "PrivateRows": Query(COUNT, source=PrivateRows("visits")),
    "Projection": Query(COUNT, source=Projection(PrivateRows(), {"x": AGE}, OVER, (Join("r", AGE, "k"),))),
    "PerPerson": Query(COUNT, source=PerPerson(PrivateRows(), {"n": PersonAggregate("count")}, {"g": AGE}, OVER)),
    "PersonAggregate": Query(COUNT, source=PerPerson(PrivateRows(), {"n": PersonAggregate("sum", AGE)})),
    "Windowed": Query(COUNT, source=Windowed(PrivateRows(), {"w": WindowFunction("row_number")})),
    "WindowFunction": Query(
        COUNT,
        source=Windowed(
            PrivateRows(), {"w": WindowFunction("lag", AGE, (AGE,), (Order(AGE),), offset=2, frame="rows")}
        ),
    ),
    "PersonJoin": Query(
        COUNT, source=PersonJoin(PrivateRows("a"), PrivateRows("b"), "full", {"x": "y"}, OVER, "p", "q")
    ),
    "PublicMembership": Query(COUNT, source=PublicMembership(PrivateRows(), AGE, "regions", "region", negated=True)),
    "UnionAll": Query(COUNT, source=UnionAll((PrivateRows("a"), PrivateRows("b")))),
}


def test_every_class_of_a_tree_is_known():
    defined = {
        name for name, item in vars(tree).items() if dataclasses.is_dataclass(item) and item.__module__ == tree.__name__
    }
    # no question states how many rows of a person are combined: a document that does is refused
    assert set(trees.NODES) == defined - {"CappedRows"} == set(NODES)


def holds(node: object, name: str) -> bool:
    if type(node).__name__ == name:
        return True
    if dataclasses.is_dataclass(node):
        return any(holds(getattr(node, field.name), name) for field in dataclasses.fields(node))
    if isinstance(node, dict):
        return any(holds(item, name) for item in node.values())
    return isinstance(node, tuple) and any(holds(item, name) for item in node)


@each("name", NODES)
def test_every_node_comes_back_as_it_was(name):
    assert holds(NODES[name], name)
    sent = json.loads(json.dumps(trees.to_json(NODES[name])))
    back = trees.from_json(sent)
    assert back == NODES[name]
    assert repr(back) == repr(NODES[name])  # equality takes 1 for 1.0 and for True; a recorded key does not


def test_the_order_of_aggregates_is_kept():
    names = ["z", "a", "m"]
    query = Query({name: Aggregate("count") for name in names})
    assert list(trees.from_json(trees.to_json(query)).aggregates) == names


def expressions() -> st.SearchStrategy[tree.Expression]:
    constants = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(st.characters(codec="utf-8")),
        st.dates(), st.datetimes().map(lambda moment: moment.replace(fold=0)),
    )  # fmt: skip
    leaves = st.one_of(st.builds(Column, st.text(min_size=1)), st.builds(Literal, constants))
    calls = lambda inner: st.builds(Call, st.text(), st.lists(inner, max_size=3).map(tuple))  # noqa: E731
    return st.recursive(leaves, calls, max_leaves=12)


@given(expressions())
def test_random_expressions_come_back(expression):
    query = Query(COUNT, where=expression)
    assert repr(trees.from_json(json.loads(json.dumps(trees.to_json(query))))) == repr(query)


SENT = trees.to_json(NODES["Aggregate"])


@each(
    "document",
    [
        None, [], "Query", 5, {}, {"is": "Query"}, {"is": "Card"}, {"is": ["Query"], "aggregates": []},
        {"is": "Aggregate", "kind": "count"},
        {"is": "Query", "aggregates": {}}, {"is": "Query", "aggregates": [["n"]]},
        {"is": "Query", "aggregates": [["n", {"is": "Aggregate", "kind": "rows"}]]},
        {"is": "Query", "aggregates": [["n", {"is": "Aggregate", "kind": "count"}]] * 2},
        {"is": "Query", "aggregates": [], "unknown": 1},
        {"is": "Query", "aggregates": [], "epsilon": "1"}, {"is": "Query", "aggregates": [], "epsilon": True},
        {"is": "Query", "aggregates": [], "max_rows": 1.5}, {"is": "Query", "aggregates": [], "max_rows": "all"},
        {"is": "Query", "aggregates": [], "where": {"is": "PrivateRows"}},
        {"is": "Query", "aggregates": [], "where": {"is": "Column", "name": 5}},
        {"is": "Query", "aggregates": [], "where": {"is": "Literal", "value": {"date": "yesterday"}}},
        {"is": "Query", "aggregates": [], "where": {"is": "Literal", "value": {"fraction": "1/0"}}},
        {"is": "Query", "aggregates": [], "where": {"is": "Call", "op": "<", "args": {"is": "Column", "name": "a"}}},
        {"is": "Query", "aggregates": None}, {"is": "Query", "aggregates": [], "shape": None},
        {"is": "Query", "aggregates": [["a", {"is": "Aggregate", "kind": "sum", "bounds": [1]}]]},
    ],
)  # fmt: skip
def test_what_no_tree_says_is_refused(document):
    with refuses(DitherError):
        trees.from_json(document)


def test_a_tree_that_is_too_deep_is_refused():
    deep: dict[str, typing.Any] = {"is": "Column", "name": "a"}
    for _ in range(20_000):
        deep = {"is": "Call", "op": "not", "args": [deep]}
    with refuses(InvalidArgument, "depth"):
        trees.from_json({"is": "Query", "aggregates": [], "where": deep})
