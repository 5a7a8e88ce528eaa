"""Questions go over the wire as SQL or as a tree, and options beside them."""

from __future__ import annotations

import json
from fractions import Fraction

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import DitherError, InvalidArgument
from dither.wire.requests import (
    BUILT,
    options_from_json,
    options_to_json,
    question_from_json,
    question_to_json,
    question_words,
)
from support import refuses

ROWS = pa.table({"who": [1, 2, 3, 4] * 50, "age": [30, 40] * 100})


@pytest.fixture(scope="module")
def clinic():
    tables = {"visits": ROWS, "patients": ROWS}
    with dp.open(
        tables, unit="who", bounds={"age": (0, 120)}, max_rows=50, budget=dp.PureDP(9), name="clinic"
    ) as table:
        yield table


def test_sql_is_parsed_again(clinic):
    text = "SELECT COUNT(*) AS n FROM visits"
    sent = question_to_json(clinic.sql(text))
    assert sent == {"sql": text}
    back = question_from_json(sent, clinic)
    assert (back.text, back.about, back.query) == (text, ("visits",), clinic.sql(text).query)


def test_the_table_of_a_built_question_is_kept(clinic):
    question = clinic["patients"].agg(n=dp.count())
    back = question_from_json(question_to_json(question), clinic)
    assert (back.about, back.query) == (("patients",), question.query)


@pytest.mark.parametrize(
    "more",
    [
        {"about": []}, {"about": ["visits", "patients"]}, {"about": ["secrets"]}, {"about": "visits"},
        {"sql": "SELECT 1"}, {"analyst": "somebody else"},
    ],
)  # fmt: skip
def test_other_questions_are_refused(clinic, more):
    sent = question_to_json(clinic["patients"].agg(n=dp.count()))
    with refuses(DitherError):
        question_from_json({**sent, **more}, clinic)


def test_a_question_is_sql_or_a_tree(clinic):
    for document in ({}, {"sql": 5}, {"sql": "SELECT COUNT(*) FROM visits", "about": ["visits"]}, "SELECT 1"):
        with refuses(DitherError):
            question_from_json(document, clinic)


def test_one_table_is_not_named(clinic):
    with dp.open(ROWS, budget=dp.PureDP(1)) as people:
        sent = question_to_json(people.agg(n=dp.count()))
        assert "about" not in sent
        with refuses(InvalidArgument, "about"):
            question_from_json({**sent, "about": ["data"]}, people)


@pytest.mark.parametrize(
    "tree",
    [
        None, 1, "x", [], {}, {"aggregates": 5, "groups": "by"}, {"aggregates": [1, ["n"], ["n", 2], [{}, {}]]},
        {"aggregates": [["\udfff", {"kind": ["count"]}]], "groups": [3, {"name": "\x00"}]},
        {"aggregates": [["n" * 10_000, {"kind": "count"}]] * 10_000},
    ],
)  # fmt: skip
def test_any_tree_has_words(tree):
    words = question_words({"tree": tree})
    assert words.startswith(BUILT)
    assert len(words) < 4000
    assert words.encode()


@pytest.mark.parametrize(
    "stated",
    [
        {"epsilon": 0.5}, {"error": "1%"}, {"error": 50, "delta": 1e-9}, {"epsilon": Fraction(1, 3)},
        {"epsilon": 1, "max_groups": "auto", "max_rows": 3, "noise": "gaussian", "quantile_interval": True},
        {"epsilon": 1, "interval": "population", "other": True, "bias": True, "nonnegative": True, "integer": True},
        {"epsilon": 1, "again": True}, {},
    ],
)  # fmt: skip
def test_options_come_back(stated):
    wanted = dp.ReleaseOptions(**stated)
    back = options_from_json(json.loads(json.dumps(options_to_json(wanted))), analyst="ann", key="k")
    assert back == dp.ReleaseOptions(**stated, analyst="ann", key="k")


@pytest.mark.parametrize(
    "document",
    [
        {"analyst": "bob"}, {"key": "k"}, {"epsilon": "1"}, {"epsilon": True}, {"epsilon": -1}, {"noise": "none"},
        {"max_rows": 0}, {"max_rows": "all"}, {"again": 1}, {"epsilom": 1}, [], {"error": "lots"}, {"delta": [1]},
    ],
)  # fmt: skip
def test_other_options_are_refused(document):
    with refuses(DitherError):
        options_from_json(document)


def test_a_client_does_not_say_who_asks():
    with refuses(DitherError, "analyst"):
        options_to_json(dp.ReleaseOptions(epsilon=1, analyst="ann"))
