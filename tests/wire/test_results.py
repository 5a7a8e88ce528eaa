"""Answers, explanations and cards come back as they were, and are read strictly."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import DitherError
from dither.ledger.accounts import Remaining
from dither.present.notes import Note
from dither.tables.answer import Answer
from dither.tables.card.model import Card, ColumnCard, PrivateTable, PublicTable
from dither.wire.results import (
    answer_from_json,
    answer_to_json,
    card_from_json,
    card_to_json,
    explanation_from_json,
    explanation_to_json,
)
from support import each, refuses
from tables.profiles import table_profile

ANSWER = Answer(
    ("day", "at", "n", "h", "m"),
    ("date", "timestamp", "integer", "number", "text"),
    ((date(2024, 1, 31), datetime(2024, 1, 31, 12), 2**70, [1, 2.5], None), (None, None, -1, [], "ä<b>")),
    {"n": (6.0, None), "h": (0.1, 0.2)},
    dp.PureDP(0.5),
    (Note("small_groups", {"people": 30}),),
    remaining=Remaining(dp.PureDP(9), dp.PureDP(1)),
    replayed=True,
    receipt="5-abc",
    clipped_share={"n": (0.1, 0.0, 0.5)},
    interval="population",
    probabilities={"m": (0.5, None)},
)


def over_the_wire(document):
    return json.loads(json.dumps(document))


def test_an_answer_comes_back_with_its_bytes():
    back = answer_from_json(over_the_wire(answer_to_json(ANSWER)))
    assert back == ANSWER
    assert (back.remaining, back.left, back.replayed) == (ANSWER.remaining, dp.PureDP(1), True)
    assert back.receipt == "5-abc"
    assert answer_to_json(back)["recorded"] == answer_to_json(ANSWER)["recorded"]
    assert back.to_json() == ANSWER.to_json()


def test_a_released_answer_comes_back():
    rows = pa.table({"region": ["north", "south"] * 50})
    with dp.open(rows, keys={"region": ["north", "south"]}, budget=dp.PureDP(1)) as table:
        question = table.group_by("region").agg(n=dp.count())
        explanation, answer = question.explain(epsilon=0.5), question.release(epsilon=0.5)
    assert answer_from_json(over_the_wire(answer_to_json(answer))) == answer
    back = explanation_from_json(over_the_wire(explanation_to_json(explanation)))
    assert back == explanation
    assert str(back) == str(explanation)


@pytest.mark.parametrize(
    "change",
    [
        *({"recorded": "{}"}, {"recorded": 5}, {"replayed": 1}, {"more": 1}),
        *({"left": 5}, {"left": {}}, {"left": {"table": "much"}}),
    ],
)
def test_another_answer_is_refused(change):
    with refuses(DitherError, "answer"):
        answer_from_json({**answer_to_json(ANSWER), **change})


@pytest.mark.parametrize("change", [{"lines": {}}, {"lines": [{}]}, {"cost": 5}, {"limitations": "a"}, {"x": 1}])
def test_another_explanation_is_refused(change):
    explanation = dp.Explanation((), dp.PureDP(1), "groups", "bounding", Remaining("private", None, dp.PureDP(2)))
    with refuses(DitherError, "explanation"):
        explanation_from_json({**explanation_to_json(explanation), **change})


COLUMNS = {
    "who": ColumnCard("integer"),
    "amount": ColumnCard("number", (0, 99.5)),
    "region": ColumnCard("text", keys=("a", None)),
    "hour": ColumnCard("timestamp", period=(datetime(2024, 1, 1, 6), datetime(2024, 12, 31))),
    "day": ColumnCard("date", period=(date(2024, 1, 1), date(2024, 12, 31)), format="%Y-%m-%d"),
}
CARD = Card(
    "visits", "/secret/place/visits.parquet", COLUMNS, "who", "auto", 5,
    public={"regions": PublicTable("/secret/place/r.csv", {"key": ColumnCard("text"), "size": ColumnCard("integer")})},
    ledger="/secret/place/ledger.sqlite", budget=dp.ApproxDP(1, 1e-6), each_analyst=dp.ZCDP(0.5), each_person=None,
    delta=1e-7, version="3", population="secret people", filter="advanced", min_epsilon=0.01, max_incidents=7,
    receipt="/secret/place/receipt", incident_log="/secret/place/log", rows=1000, rows_without_unit="drop",
    tables={"patients": PrivateTable("/secret/place/p.csv", {"id": ColumnCard("integer")}, "id", 5)},
)  # fmt: skip


def test_a_card_has_its_profile():
    measured = table_profile([1, 1, 2], {"age": [30, None, 70], "sex": ["f", "f", None]}, {"age": (0, 50, 120)},
                             {"sex": ("f", "m")}, classes=(1, 2))  # fmt: skip
    profile = dp.Profile({CARD.name: measured}, dp.ApproxDP(1, 1e-6), datetime(2026, 3, 1, tzinfo=UTC))
    assert card_from_json(over_the_wire(card_to_json(replace(CARD, profile=profile)))).profile == profile
    assert card_from_json(over_the_wire(card_to_json(CARD))).profile is None
    with refuses(dp.InvalidArgument, "profile"):
        card_from_json({**card_to_json(CARD), "profile": {"tables": {"visits": {"people": 5}}}})


def test_a_card_shows_what_is_public_and_nothing_else():
    sent = json.dumps(card_to_json(CARD))
    assert "secret" not in sent
    back = card_from_json(json.loads(sent))
    assert "secret" not in repr(vars(back))
    smuggled = card_from_json({**json.loads(sent), "source": "x", "ledger": "y", "receipt": "z"})
    assert (smuggled.source, smuggled.ledger, smuggled.receipt) == ("", None, None)
    for name in ("name", "unit", "max_groups", "max_rows", "budget", "each_analyst", "each_person", "delta", "version",
                 "filter", "min_epsilon", "max_incidents", "rows", "rows_without_unit"):  # fmt: skip
        assert getattr(back, name) == getattr(CARD, name), name
    assert repr({**back.columns, "day": None}) == repr({**CARD.columns, "day": None})
    for name in ("day", "hour"):
        assert back.columns[name].period == CARD.columns[name].period
    assert back.tables["patients"].columns == CARD.tables["patients"].columns
    assert (back.tables["patients"].unit, back.tables["patients"].rows) == ("id", 5)
    assert back.public["regions"].columns == CARD.public["regions"].columns


def test_values_of_public_tables_become_keys():
    def listed(table, column):
        return ("a", "b") if (table, column) == ("regions", "key") else None

    back = card_from_json(over_the_wire(card_to_json(CARD, listed)))
    assert back.public["regions"].columns["key"].keys == ("a", "b")
    assert back.public["regions"].columns["size"].keys is None


@each(
    "change",
    [
        {"columns": []}, {"columns": {"a": {"type": "blob"}}}, {"name": 5},
        {"columns": {"a": {"type": "text", "keys": "ab"}}}, {"max_rows": 0}, {"budget": {"kind": "none"}},
        {"budget": {"kind": "pure", "epsilon": "1/0"}}, {"budget": {"kind": "pure", "epsilon": 1}},
        {"budget": {"kind": "pure", "epsilon": "1", "delta": "1"}}, {"filter": "none"}, {"delta": "1"},
        {"tables": {"a": {}}}, {"columns": {"a": {"type": "date", "period": [1, 2]}}},
        {"columns": {"a": {"type": "number", "bounds": [5, 1]}}},
    ],
)  # fmt: skip
def test_another_card_is_refused(change):
    with refuses(DitherError):
        card_from_json({**card_to_json(CARD), **change})
