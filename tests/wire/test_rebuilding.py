"""A tree from a client is built anew: what the builder makes stays as it is, and what it would not make is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import DitherError, InvalidArgument
from dither.tables.codec import to_json
from dither.tables.query.tree import (
    Aggregate,
    Call,
    Column,
    Group,
    Literal,
    Order,
    PerPerson,
    PersonAggregate,
    PersonJoin,
    PostProcessing,
    PrivateRows,
    Query,
    Shape,
    UnionAll,
)
from dither.tables.question import Question
from dither.wire.requests import question_from_json, question_to_json, rebuilt
from support import refuses

ROWS = pa.table(
    {
        "who": [i % 40 for i in range(200)],
        "region": ["north", "south"] * 100,
        "amount": [float(i % 50) for i in range(200)],
        "age": [i % 90 for i in range(200)],
    }
)


@pytest.fixture(scope="module")
def visits():
    stated = {"bounds": {"amount": (0, 50), "age": (0, 120)}, "keys": {"region": ["north", "south"]}}
    with dp.open(
        ROWS, unit="who", max_rows=5, max_groups=2, budget=dp.ApproxDP(50, 1e-3), delta=1e-6, name="visits", **stated
    ) as table:
        yield table


def built(visits) -> list[Question]:
    amount, age = dp.col("amount"), dp.col("age")
    return [
        visits.agg(n=dp.count()),
        visits.where("age > 18").where(amount.between(1, 5) | ~(age == 3)).group_by("region").agg(n=dp.people()),
        visits.group_by(dp.among("age", [1, 2, 3]), big=amount > 10).agg(n=dp.count("age"), d=dp.count_distinct("age")),
        visits.agg(a=dp.sum("amount", weight=2), b=dp.mean(amount * 2, (0, 100)), c=dp.var("amount"), d=dp.std("age")),
        visits.agg(a=dp.min("amount"), b=dp.max("age"), c=dp.median("amount"), d=dp.quantile("age", 0.9, "auto")),
        visits.agg(m=dp.mode("region"), h=dp.histogram("age", [0, 50.5, 100])),
        visits.agg(a=dp.covariance("amount", "age"), b=dp.covariance("amount", "age", population=True)),
        visits.agg(a=dp.corr("amount", "age", (0, 9), (0, 99)), b=dp.regression_slope("amount", "age")),
        visits.agg(a=dp.regression_intercept("amount", "age"), b=dp.regression_r2("amount", "age")),
        visits.per_person(total=dp.sum("amount"), n=dp.count()).agg(m=dp.mean("total", (0, 99)), n=dp.count()),
        visits.where("age > 3").group_by("region").per_person(m=dp.max("age")).group_by("region").agg(n=dp.count()),
        visits.per_person(n=dp.count()).per_person(m=dp.mean("n")).where("m > 1").agg(n=dp.count()),
        replace(visits.sql("SELECT region, COUNT(*) n FROM visits GROUP BY region HAVING n > 5 ORDER BY n"), text=None),
    ]


def test_what_the_builder_made_is_built_alike(visits):
    for question in built(visits):
        sent = json.loads(json.dumps(question_to_json(question)))
        assert "tree" in sent
        back = question_from_json(sent, visits)
        assert repr(back.query) == repr(question.query), question
        assert back.plan(epsilon=1).cost == question.plan(epsilon=1).cost


def test_a_recorded_answer_is_found_by_a_question_that_was_sent(visits):
    question = visits.where("age > 18").group_by("region").agg(n=dp.count(), m=dp.mean("amount"))
    first = question.release(epsilon=1)
    again = question_from_json(json.loads(json.dumps(question_to_json(question))), visits).release(epsilon=1)
    assert again.replayed
    assert again == first


COUNT = {"n": Aggregate("count")}
HOSTILE: dict[str, Query] = {
    "SQL of its own": Query(COUNT, post=PostProcessing("SELECT * FROM read_csv('/etc/passwd')")),
    "several aggregations": Query(COUNT, more=(Query(COUNT),)),
    "levels": Query(COUNT, rolled_up=(Group("region", Column("region")),)),
    "a question that is asked first": Query(COUNT, before=(Query(COUNT),)),
    "a day": Query(COUNT, as_of=date(2024, 1, 31)),
    "a union": Query(COUNT, source=UnionAll((PrivateRows(), PrivateRows()))),
    "a join": Query(COUNT, source=PersonJoin(PrivateRows(), PrivateRows(), "inner")),
    "an unknown column": Query({"n": Aggregate("sum", Column("salary"))}),
    "an unknown operation": Query(COUNT, where=Call("read_text", (Literal("/etc/passwd"),))),
    "too few operands": Query(COUNT, where=Call("<", (Column("age"),))),
    "no condition": Query(COUNT, where=Column("age")),
    "bounds upside down": Query({"s": Aggregate("sum", Column("age"), (5, 1))}),
    "infinite bounds": Query({"s": Aggregate("sum", Column("age"), (0, float("inf")))}),
    "a quantile beyond 1": Query({"q": Aggregate("quantile", Column("age"), at=1.5)}),
    "a negative weight": Query({"n": Aggregate("count", weight=-1.0)}),
    "keys twice": Query({"m": Aggregate("mode", Column("region"), keys=("a", "a"))}),
    "group keys twice": Query(COUNT, (Group("region", Column("region"), ("a", "a")),)),
    "edges that fall": Query({"h": Aggregate("histogram", Column("age"), edges=(5, 1))}),
    "a sum of text": Query({"s": Aggregate("sum", Column("region"))}),
    "a sum of nothing": Query({"s": Aggregate("sum")}),
    "a field of another kind": Query({"n": Aggregate("count", edges=(0, 1))}),
    "bounds of a count": Query({"n": Aggregate("count_value", Column("age"), (0, 1))}),
    "half a pair": Query({"c": Aggregate("corr", Column("age"))}),
    "a name twice": Query({"Region": Aggregate("count")}, (Group("region", Column("region")),)),
    "epsilon below zero": Query(COUNT, epsilon=-1.0),
    "no rows for each person": Query(COUNT, max_rows=0),
    "a limit below zero": Query(COUNT, shape=Shape(limit=-1)),
    "an order by what is not shown": Query(COUNT, shape=Shape(order=(Order(Column("amount")),))),
    "a person's any": Query(COUNT, source=PerPerson(PrivateRows(), {"a": PersonAggregate("any", Column("age"))})),
    "another table": Query(COUNT, source=PerPerson(PrivateRows("secret"), {"n": PersonAggregate("count")})),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_the_builder_would_not_make_is_refused(visits, name):
    with refuses(DitherError):
        question_from_json({"tree": to_json(HOSTILE[name])}, visits).plan(epsilon=1)


def test_an_overlong_condition_is_refused(visits):
    where = Column("vip")
    for _ in range(150):
        where = Call("not", (where,))
    with refuses(InvalidArgument, "expression"):
        rebuilt(Query(COUNT, where=where), visits.card)
