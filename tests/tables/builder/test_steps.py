"""Questions in Python: the same trees as in SQL, and the same refusals."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pytest

from dither.errors import InvalidArgument, WrongType
from dither.tables.builder import expressions as b
from dither.tables.builder.expressions import case, col
from dither.tables.builder.steps import agg, among, desc, group_by, join, query, shaped, where
from dither.tables.query.tree import Aggregate, Call, Column, Group, Join, Literal, Order, Query, Shape
from dither.tables.sql.parse import parse
from support import each, refuses
from tables.questions import CARD, op, text

TERMS = [
    (col("a") + 1, op("+", "a", 1)),
    (1 + col("a"), op("+", Literal(1), "a")),
    (col("a") - 1, op("-", "a", 1)),
    (1 - col("a"), op("-", Literal(1), "a")),
    (col("a") * col("b"), op("*", "a", "b")),
    (2 * col("a"), op("*", Literal(2), "a")),
    (col("a") / 2, op("/", "a", 2)),
    (2 / col("a"), op("/", Literal(2), "a")),
    (-col("a"), op("neg", "a")),
    (abs(col("a")), op("abs", "a")),
    (col("a") == "x", op("=", "a", text("x"))),
    (col("a") != "x", op("<>", "a", text("x"))),
    (col("a") < 1, op("<", "a", 1)),
    (col("a") <= 1, op("<=", "a", 1)),
    (col("a") > 1, op(">", "a", 1)),
    (col("a") >= 1, op(">=", "a", 1)),
    (col("a") > 1, op(">", "a", 1)),
    ((col("a") > 1) & col("b"), op("and", op(">", "a", 1), "b")),
    ((col("a") > 1) | col("b"), op("or", op(">", "a", 1), "b")),
    (True & col("a"), op("and", Literal(True), "a")),
    (False | col("a"), op("or", Literal(False), "a")),
    (~col("a"), op("not", "a")),
    (col("a").isin([1, 2]), op("in", "a", 1, 2)),
    (col("a").between(1, 2), op("between", "a", 1, 2)),
    (col("a").like("x%"), op("like", "a", text("x%"))),
    (col("a").is_null(), op("is_null", "a")),
    (col("a").coalesce(0, None), op("coalesce", "a", 0, None)),
    (col("a").trunc("month"), op("date_trunc", text("month"), "a")),
    (col("a").bin([0, 1, 2]), op("bin", "a", 0, 1, 2)),
    (col("a").lower(), op("lower", "a")),
    (col("a").upper(), op("upper", "a")),
    (col("a") % 7, op("%", "a", 7)),
    (7 % col("a"), op("%", Literal(7), "a")),
    (col("a") ** 2, op("power", "a", 2)),
    (round(col("a"), 1), op("round", "a", 1)),
    (round(col("a")), op("round", "a", 0)),
    (col("a").round(), op("round", "a", 0)),
    (col("a").cast("text"), op("cast", text("text"), "a")),
    (col("a").part("month"), op("date_part", text("month"), "a")),
    (col("a").later(-3, "month"), op("date_add", text("month"), -3, "a")),
    (col("a").since(col("b")), op("date_diff", text("day"), "b", "a")),
    (
        col("a").clip(0, 9),
        op("case", op("is_null", "a"), None, op("greatest", Literal(0), op("least", Literal(9), "a"))),
    ),
    (col("a").ilike("x%"), op("ilike", "a", text("x%"))),
    (col("a").contains("x"), op("contains", "a", text("x"))),
    (col("a").startswith("x"), op("starts_with", "a", text("x"))),
    (col("a").endswith("x"), op("ends_with", "a", text("x"))),
    (col("a").slice(1, 3), op("substr", "a", 1, 3)),
    (col("a").length(), op("length", "a")),
    (col("a").strip(), op("trim", "a")),
    (case((col("a") > 1, 2), otherwise=3), op("case", op(">", "a", 1), 2, 3)),
    (case((col("a"), 2)), op("case", "a", 2, None)),
    (col("a") > np.int64(3), op(">", "a", 3)),
    (col("a") > np.float64(0.5), op(">", "a", 0.5)),
    (col("a", "t") > date(2024, 1, 1), Call(">", (Column("a", "t"), Literal(date(2024, 1, 1))))),
]


@each(("term", "expected"), TERMS)
def test_terms(term, expected):
    assert term.expression == expected
    assert repr(term.expression) == repr(expected)


AGGREGATES = [
    (b.count(), Aggregate("count")),
    (b.count("age", weight=2), Aggregate("count_value", Column("age"), weight=2)),
    (b.mean("age", rows_per_person=4), Aggregate("mean", Column("age"), rows_per_person=4)),
    (b.people(), Aggregate("people")),
    (b.sum_("age", (0, 5)), Aggregate("sum", Column("age"), bounds=(0, 5))),
    (b.mean(col("age") + 1, "auto"), Aggregate("mean", op("+", "age", 1), bounds="auto")),
    (b.var("age"), Aggregate("var", Column("age"))),
    (b.std("age"), Aggregate("std", Column("age"))),
    (b.min_("age"), Aggregate("min", Column("age"))),
    (b.max_("age"), Aggregate("max", Column("age"))),
    (b.median("age"), Aggregate("quantile", Column("age"))),
    (b.quantile("age", 0.9), Aggregate("quantile", Column("age"), at=0.9)),
    (b.mode("region", ["north"]), Aggregate("mode", Column("region"), keys=("north",))),
    (b.histogram("age", [0, 1.5, 3]), Aggregate("histogram", Column("age"), edges=(0, 1.5, 3))),
]


@pytest.mark.parametrize(("aggregate", "expected"), AGGREGATES, ids=[item[1].kind for item in AGGREGATES])
def test_aggregates(aggregate, expected):
    assert aggregate == expected
    assert query(CARD, {"x": aggregate}).aggregates == {"x": expected}


def test_as_in_sql():
    built = query(
        CARD,
        {"n": b.count(), "spend": b.mean("Amount")},
        groups={"region": "REGION", "month": col("day").trunc("month")},
        where=[col("day") >= "2024-01-01", "age > 18 OR vip"],
        columns={"region": "region", "month": "month", "n": "n", "spend": "spend"},
        having="n > 5",
        order=[desc("n"), "region"],
        limit=3,
    )
    written = parse(
        "SELECT region, date_trunc('month', day) AS month, COUNT(*) n, AVG(amount) spend FROM visits "
        "WHERE day >= '2024-01-01' AND (age > 18 OR vip) GROUP BY region, month "
        "HAVING n > 5 ORDER BY n DESC, region LIMIT 3",
        CARD,
    )
    assert built == written


def test_step_by_step():
    steps = where(Query({}), col("at") < datetime(2024, 1, 1, 12), CARD)
    steps = where(steps, "vip", CARD)
    steps = join(steps, "Regions", "region", "REGION", CARD, left=True)
    steps = group_by(steps, ["name"], {"l": col("region", "visits").lower()}, CARD)
    steps = agg(steps, {"n": b.count()}, CARD)
    steps = agg(steps, {"s": b.sum_(col("size", "regions"))}, CARD)
    assert steps == Query(
        {"n": Aggregate("count"), "s": Aggregate("sum", Column("size", "regions"))},
        (Group("name", Column("name", "regions")), Group("l", op("lower", "region"))),
        op("and", op("<", "at", datetime(2024, 1, 1, 12)), "vip"),
        (Join("regions", Column("region"), "region", left=True),),
    )
    assert shaped(steps, CARD, order=col("n") / col("s")).shape == Shape(order=(Order(op("/", "n", "s")),))


def test_what_the_question_states():
    plan = query(CARD, {"n": b.count()}, epsilon=0.5, delta=1e-6, max_groups="auto", max_rows=2)
    assert (plan.epsilon, plan.delta, plan.max_groups, plan.max_rows) == (0.5, 1e-6, "auto", 2)


def test_public_keys():
    plan = query(CARD, {"n": b.count()}, groups=[among("region", ["north", None]), "age"])
    assert plan.groups == (Group("region", Column("region"), ("north", None)), Group("age", Column("age")))
    dated = query(CARD, {"n": b.count()}, groups={"m": among(col("day").trunc("month"), ["2024-01-01"])})
    assert dated.groups[0].keys == (date(2024, 1, 1),)
    assert query(CARD, {"m": b.mode("region")}).aggregates["m"].keys == ("north", "south")


def test_a_histogram_is_shown_as_it_is():
    plan = query(CARD, {"h": b.histogram("age", [0, 50, 100])}, columns={"bars": "h"})
    assert plan.shape.columns == {"bars": Column("h")}
    with refuses(InvalidArgument, "a histogram"):
        query(CARD, {"h": b.histogram("age", [0, 50, 100])}, having="h > 5")


N = {"n": b.count()}
REFUSED = [
    (lambda: query(CARD, {}), InvalidArgument, "an aggregate"),
    (lambda: query(CARD, {"n": "count"}), WrongType, "aggregates by name"),
    (lambda: query(CARD, {"": b.count()}), WrongType, "texts"),
    (lambda: query(CARD, {"region": b.count()}, groups=["region"]), InvalidArgument, "'region' twice"),
    (lambda: query(CARD, {"n": b.count(), "N": b.count()}), InvalidArgument, "twice"),
    (lambda: agg(Query(N), N, CARD), InvalidArgument, "not in use yet, got 'n'"),
    (lambda: query(CARD, {"s": b.sum_("amuont")}), InvalidArgument, "write 'amount'"),
    (lambda: query(CARD, {"s": b.sum_("region")}), InvalidArgument, "a number"),
    (lambda: query(CARD, {"s": b.count(Literal(None))}), InvalidArgument, "NULL"),
    (lambda: query(CARD, {"s": Aggregate("sum")}), InvalidArgument, "a column"),
    (lambda: query(CARD, {"m": b.corr("age", "region")}), InvalidArgument, "a number"),
    (lambda: query(CARD, {"m": b.mode("region", [1])}), InvalidArgument, "one kind"),
    (lambda: query(CARD, {"h": b.histogram("region", [0, 1])}), InvalidArgument, "a number"),
    (lambda: query(CARD, N, groups="region"), WrongType, "a list of columns"),
    (lambda: query(CARD, N, groups=["regoin"]), InvalidArgument, "write 'region'"),
    (lambda: query(CARD, N, groups=[col("age") + 1]), InvalidArgument, "a name for each"),
    (lambda: query(CARD, N, groups={"x": Literal(None)}), InvalidArgument, "NULL"),
    (lambda: query(CARD, N, groups=[among("age", ["a"])]), InvalidArgument, "one kind"),
    (lambda: query(CARD, N, groups=[5]), WrongType, "column's name"),
    (lambda: among("region", []), InvalidArgument, "different values"),
    (lambda: among("region", ["a", "a"]), InvalidArgument, "different values"),
    (lambda: among("region", "ab"), WrongType, "a list of values"),
    (lambda: query(CARD, N, where="age >"), InvalidArgument, "can be read"),
    (lambda: query(CARD, N, where="SUM(age) > 1"), InvalidArgument, "SUM"),
    (lambda: query(CARD, N, where="age > 1; DROP TABLE visits"), InvalidArgument, "one statement"),
    (lambda: query(CARD, N, where=col("age")), InvalidArgument, "a condition"),
    (lambda: query(CARD, N, where=col("age") == "a"), InvalidArgument, "one kind"),
    (lambda: query(CARD, N, where=True), WrongType, "a condition"),
    (lambda: query(CARD, N, where=col("name", "regions") == "a"), InvalidArgument, "'regions'"),
    (lambda: join(Query({}), "secrets", "region", "region", CARD), InvalidArgument, "public table"),
    (lambda: join(Query({}), "visits", "region", "region", CARD), InvalidArgument, "itself"),
    (lambda: join(Query({}), "regions", "age", "region", CARD), InvalidArgument, "one kind"),
    (lambda: join(Query({}), "regions", "region", "key", CARD), InvalidArgument, "'key'"),
    (
        lambda: join(join(Query({}), "regions", "region", "region", CARD), "regions", "region", "name", CARD),
        InvalidArgument,
        "twice",
    ),
    (lambda: query(CARD, N, having="m > 5"), InvalidArgument, "'m'"),
    (lambda: query(CARD, N, having="n = 'a'"), InvalidArgument, "one kind"),
    (lambda: query(CARD, N, order="m"), InvalidArgument, "'m'"),
    (lambda: query(CARD, N, columns={"x": "m"}), InvalidArgument, "'m'"),
    (lambda: query(CARD, N, limit=-1), InvalidArgument, "limit"),
    (lambda: query(CARD, N, epsilon=-1), InvalidArgument, "epsilon"),
    (lambda: query(CARD, N, max_groups=0), InvalidArgument, "max_groups"),
    (lambda: query(CARD, N, max_groups="many"), WrongType, "max_groups"),
    (lambda: b.sum_("age", (5, 0)), InvalidArgument, "lower below upper"),
    (lambda: b.sum_("age", "wide"), WrongType, "a pair"),
    (lambda: b.sum_(5), WrongType, "column's name"),
    (lambda: b.sum_("age", weight=0), InvalidArgument, "weight"),
    (lambda: b.sum_("age", rows_per_person=0), InvalidArgument, "rows_per_person"),
    (lambda: b.quantile("age", 1.5), InvalidArgument, "from 0 to 1"),
    (lambda: b.quantile("age", "half"), WrongType, "from 0 to 1"),
    (lambda: b.quantile("age", float("nan")), InvalidArgument, "from 0 to 1"),
    (lambda: b.histogram("age", [0]), InvalidArgument, "arguments"),
    (lambda: b.histogram("age", [0, 0]), InvalidArgument, "rise"),
    (lambda: b.histogram("age", [0, float("inf")]), InvalidArgument, "finite"),
    (lambda: b.histogram("age", [0, col("age")]), InvalidArgument, "numbers"),
    (lambda: col("age").isin([]), InvalidArgument, "at least one"),
    (lambda: col("age").isin("ab"), WrongType, "a list"),
    (lambda: col(5), WrongType, "the name of a column"),
    (lambda: case(), WrongType, "pairs"),
    (lambda: col("age") > object(), WrongType, "literal"),
    (lambda: col("age") > 2**70, InvalidArgument, "64 bits"),
    (lambda: col("age") > float("nan"), InvalidArgument, "finite"),
    (lambda: bool(col("age") > 1), WrongType, "& | ~"),
    (lambda: 1 < col("age") < 5, WrongType, "chain"),
    (lambda: col("age") in [1, 2], WrongType, "& | ~"),
]


@each(("make", "kind", "fragment"), REFUSED)
def test_refused(make, kind, fragment):
    with pytest.raises(kind) as refused:
        make()
    assert fragment in str(refused.value)
    assert ". Fix: " in str(refused.value)


def test_too_deep():
    deep = col("age")
    for _ in range(5000):
        deep = deep + 1
    with refuses(InvalidArgument, "at most 100"):
        query(CARD, {"s": b.sum_(deep)})
