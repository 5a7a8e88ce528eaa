"""Questions go over the wire as SQL or as a tree; options, answers, explanations, cards and guarantees beside them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import DitherError, InvalidArgument
from dither.wire import questions, routes
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
    sent = questions.to_json(clinic.sql(text))
    assert sent == {"version": 1, "sql": text}
    back = questions.from_json(sent, clinic)
    assert (back.text, back.about, back.query) == (text, ("visits",), clinic.sql(text).query)


def test_the_table_of_a_built_question_is_kept(clinic):
    question = clinic["patients"].agg(n=dp.count())
    back = questions.from_json(questions.to_json(question), clinic)
    assert (back.about, back.query) == (("patients",), question.query)


@pytest.mark.parametrize(
    "more",
    [
        {"about": []}, {"about": ["visits", "patients"]}, {"about": ["secrets"]}, {"about": "visits"},
        {"sql": "SELECT 1"}, {"analyst": "somebody else"},
    ],
)  # fmt: skip
def test_other_questions_are_refused(clinic, more):
    sent = questions.to_json(clinic["patients"].agg(n=dp.count()))
    with refuses(DitherError):
        questions.from_json({**sent, **more}, clinic)


def test_a_question_is_sql_or_a_tree(clinic):
    for document in ({}, {"sql": 5}, {"sql": "SELECT COUNT(*) FROM visits", "about": ["visits"]}, "SELECT 1"):
        with refuses(DitherError):
            questions.from_json(document, clinic)


def test_one_table_is_not_named(clinic):
    with dp.open(ROWS, budget=dp.PureDP(1)) as people:
        sent = questions.to_json(people.agg(n=dp.count()))
        assert "about" not in sent
        with refuses(InvalidArgument, "about"):
            questions.from_json({**sent, "about": ["data"]}, people)


def test_names_cannot_leave_their_place_in_a_path():
    for name in ("../../etc", "a/b", "a?b=c", "a#b", "a%2fb", "ä b"):
        for path in (routes.table(name), routes.explain(name), routes.questions(name), routes.job(name)):
            assert path.startswith("/api/v1/")
            assert path.count("/") <= 5
            assert not set(path) & set("?#ä ")
    assert routes.questions("visits") == "/api/v1/tables/visits/questions"
    assert routes.job("j", 2.0).endswith("/jobs/j?wait=2")


@pytest.mark.parametrize(
    "tree",
    [
        None, 1, "x", [], {}, {"aggregates": 5, "groups": "by"}, {"aggregates": [1, ["n"], ["n", 2], [{}, {}]]},
        {"aggregates": [["\udfff", {"kind": ["count"]}]], "groups": [3, {"name": "\x00"}]},
        {"aggregates": [["n" * 10_000, {"kind": "count"}]] * 10_000},
    ],
)  # fmt: skip
def test_any_tree_has_words(tree):
    words = questions.words({"tree": tree})
    assert words.startswith(questions.BUILT)
    assert len(words) < 4000
    assert words.encode()
