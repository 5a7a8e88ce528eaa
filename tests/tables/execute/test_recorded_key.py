"""The canonical form that recorded answers are found by: golden files, and fields that are added later."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dither as dp
from dither.errors import WrongType
from dither.ledger.recorded import canonical
from dither.release.pipeline import recorded_key
from dither.tables.builder import steps
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.codec import to_json
from dither.tables.execute.recorded_key import about_data, canonical_request
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.query.tree import Aggregate, Call, Column, Group, Join, Literal, Order, Query, Shape
from dither.tables.sql.parse import parse
from support import refuses

GOLDEN = Path(__file__).parents[1] / "golden" / "recorded_keys.json"

CARD = Card(
    "visits",
    "visits.parquet",
    {
        "patient": ColumnCard("integer"),
        "region": ColumnCard("text", None, ("north", "south", "Zürich")),
        "amount": ColumnCard("number", (0, 50.5)),
        "age": ColumnCard("integer", (0, 120)),
        "day": ColumnCard("date", None, (date(2024, 1, 1), date(2024, 1, 2))),
        "at": ColumnCard("timestamp"),
        "vip": ColumnCard("boolean"),
    },
    unit="patient",
    max_groups=2,
    max_rows=3,
    public={"districts": PublicTable("districts.csv", {"code": ColumnCard("text"), "district": ColumnCard("text")})},
    budget=dp.ApproxDP(10, 1e-3),
    delta=1e-6,
)

SQL: dict[str, tuple[str, dict[str, Any]]] = {
    "count": ("SELECT COUNT(*) AS n FROM visits", {"epsilon": 1}),
    "analyst": ("SELECT COUNT(*) AS n FROM visits", {"epsilon": 1, "analyst": "ada"}),
    "groups": ("SELECT region, COUNT(*) AS n, AVG(amount) AS m FROM visits GROUP BY region", {"epsilon": 0.1}),
    "condition": (
        "SELECT SUM(age) FROM visits WHERE day >= DATE '2024-01-01' AND at < TIMESTAMP '2024-02-01 12:30:00' AND "
        "(region IN ('north', 'O''Hare') OR NOT vip) AND amount * 2 > 0.5",
        {"epsilon": 0.5, "nonnegative": True, "integer": True},
    ),
    "shape": (
        "SELECT region, SUM(amount) / COUNT(*) AS ratio FROM visits GROUP BY region HAVING COUNT(*) > 5 "
        "ORDER BY ratio DESC LIMIT 2",
        {"epsilon": 0.5},
    ),
    "join": (
        "SELECT d.district, COUNT(*) AS n FROM visits LEFT JOIN districts d ON visits.region = d.code "
        "GROUP BY d.district",
        {"epsilon": 1, "other": True},
    ),
    "expressions": (
        "SELECT CASE WHEN age < 40 THEN 'young' ELSE NULL END AS band, COUNT(DISTINCT patient) AS people FROM visits "
        "GROUP BY 1",
        {"epsilon": 1, "delta": 1e-4},
    ),
    "quantiles": ("SELECT MEDIAN(age) AS m, MAX(amount) AS top, STDDEV(amount) AS s FROM visits", {"epsilon": 2}),
    "gaussian": ("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", {"epsilon": 1, "noise": "gaussian"}),
    "error": ("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", {"error": 10}),
    "automatic": ("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", {"epsilon": 1, "max_groups": "auto"}),
    "stated": (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1.5, max_groups_contributed = 1) region, COUNT(*) AS n "
        "FROM visits GROUP BY region",
        {},
    ),
}


def built() -> Query:
    query = steps.group_by(Query({}), ("vip",), {}, CARD)
    aggregates = {
        "n": dp.count(),
        "h": dp.histogram("age", edges=(0, 18, 65, 120)),
        "m": dp.mean("amount", bounds="auto"),
    }
    return steps.agg(query, aggregates, CARD)


def recorded(text: str | None, query: Query, options: dict[str, Any], card: Card = CARD) -> dict[str, Any]:
    stated = ReleaseOptions(**options)
    plan = plan_question(query, card, stated)
    request = canonical_request(text, query, card, plan, stated)
    return {"request": request, "key": recorded_key(request, plan.cost, stated.analyst)}


def every_form() -> dict[str, dict[str, Any]]:
    forms = {name: recorded(text, parse(text, CARD), options) for name, (text, options) in SQL.items()}
    return {**forms, "built": recorded(None, built(), {"epsilon": 1}), "card": to_json(about_data(CARD))}


def test_the_forms_are_those_of_the_golden_file():
    """To be written again only together with a new version of the form: see golden/README.md."""
    assert every_form() == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_the_key_is_the_hash_that_the_specification_says():
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    whole = {**golden["count"]["request"], "guarantee": {"kind": "PureDP", "numbers": ["1"]}}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert golden["count"]["key"] == hashlib.sha256(text.encode()).hexdigest()
    card = json.dumps(golden["card"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert golden["count"]["request"]["card"] == hashlib.sha256(card.encode()).hexdigest()


VALUES = {
    Query: Query({"n": Aggregate("count")}, (Group("vip", Column("vip")),), epsilon=1),
    Aggregate: Aggregate("sum", Column("age")),
    Group: Group("region", Column("region")),
    Join: Join("districts", Column("region"), "code"),
    Order: Order(Column("n")),
    Shape: Shape({"n": Column("n")}),
    Column: Column("age"),
    Literal: Literal(datetime(2024, 1, 1, 12)),
    Call: Call("not", (Column("vip"),)),
    Card: CARD,
    ColumnCard: ColumnCard("integer", (0, 120)),
    PublicTable: CARD.public["districts"],
}


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
def test_a_new_field_with_a_default_changes_nothing(kind):
    @dataclass(frozen=True)
    class Later(kind):
        added_later: str | None = None

    value = VALUES[kind]
    later = Later(**{field.name: getattr(value, field.name) for field in fields(value)})
    assert canonical(to_json(later)) == canonical(to_json(value))
    assert canonical(to_json(replace(later, added_later="stated"))) != canonical(to_json(value))


def test_every_kind_of_node_is_among_those_tried():
    tree = {Query, Aggregate, Group, Join, Order, Shape, Column, Literal, Call}
    assert tree | {Card, ColumnCard, PublicTable} == set(VALUES)


def test_a_new_option_with_a_default_changes_nothing():
    @dataclass(frozen=True, kw_only=True)
    class Later(ReleaseOptions):
        added_later: bool = False

    text, options = SQL["groups"]
    query = parse(text, CARD)
    plan = plan_question(query, CARD, ReleaseOptions(**options))
    assert canonical_request(text, query, CARD, plan, Later(**options)) == canonical_request(
        text, query, CARD, plan, ReleaseOptions(**options)
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"budget": dp.ApproxDP(20, 1e-3)}, {"ledger": "elsewhere.sqlite"}, {"each_person": dp.ApproxDP(1, 1e-6)},
        {"each_analyst": dp.ApproxDP(1, 1e-6)}, {"min_epsilon": 0.01}, {"max_incidents": 9}, {"receipt": "r"},
        {"incident_log": "log"}, {"population": "everybody"}, {"filter": "advanced"}, {"rows_without_unit": "drop"},
    ],
    ids=str,
)  # fmt: skip
def test_what_a_card_says_about_accounts_changes_no_key(changes):
    text, options = SQL["groups"]
    query = parse(text, CARD)
    assert recorded(text, query, options, replace(CARD, **changes)) == recorded(text, query, options)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "2025"}, {"source": "other.parquet"}, {"max_rows": 2}, {"unit": None},
        {"rows_without_unit": "each"},
        {"columns": {**CARD.columns, "amount": ColumnCard("number", (0, 51))}},
    ],
    ids=str,
)  # fmt: skip
def test_what_a_card_says_about_the_data_changes_the_key(changes):
    text, options = SQL["groups"]
    query = parse(text, CARD)
    assert recorded(text, query, options, replace(CARD, **changes))["key"] != recorded(text, query, options)["key"]


def test_questions_that_differ_have_different_keys():
    keys = [form["key"] for name, form in every_form().items() if name != "card"]
    assert len(set(keys)) == len(keys)
    text, _ = SQL["count"]
    query = parse(text, CARD)
    options = [
        {"epsilon": 1}, {"epsilon": 1.5}, {"epsilon": Fraction(1, 3)}, {"epsilon": 1, "integer": True},
        {"epsilon": 1, "nonnegative": True}, {"epsilon": 1, "max_rows": 1}, {"epsilon": 1, "noise": "gaussian"},
        {"epsilon": 1, "analyst": "b"},
    ]  # fmt: skip
    assert len({recorded(text, query, stated)["key"] for stated in options}) == len(options)


def test_order_counts_where_it_is_shown_and_nowhere_else():
    one, other = Aggregate("count"), Aggregate("people")
    assert to_json(Query({"a": one, "b": other})) != to_json(Query({"b": other, "a": one}))
    turned = replace(CARD, columns=dict(reversed(CARD.columns.items())))
    assert canonical(to_json(turned)) == canonical(to_json(CARD))


def test_what_no_question_holds_is_refused():
    with refuses(WrongType, "expected numbers, text, truth values and dates"):
        to_json({"a": b"bytes"})
