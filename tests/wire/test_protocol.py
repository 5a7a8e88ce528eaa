"""Every error of the library becomes a problem, and a client raises the same class with the same text."""

from __future__ import annotations

import json
import pickle

import pytest

import dither as dp
from dither import errors
from dither.errors import DitherError, InvalidArgument, fix_by_options
from dither.wire.protocol import (
    explain_path,
    job_path,
    problem_from_json,
    problem_to_json,
    questions_path,
    table_path,
)


def raised_classes() -> list[type[DitherError]]:
    return [
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, DitherError) and item is not DitherError
    ]


@pytest.mark.parametrize("cls", raised_classes(), ids=lambda cls: cls.__name__)
def test_every_error_comes_back(cls):
    error = cls("thing: of two parts", "one, got it", "another. Fix: no.", "do this, got that")
    sent = json.loads(json.dumps(problem_to_json(cls.__name__, 400, error)))
    assert sent["type"] == f"urn:dither:{cls.__name__}"
    back = problem_from_json(sent, 400)
    assert type(back) is cls
    assert str(back) == str(error)
    assert back.fix == error.fix


def test_the_fix_of_the_command_line_comes_back_where_it_differs():
    error = InvalidArgument(
        "epsilon", "one", "none", *fix_by_options("pass {epsilon}, or {error}", epsilon=1, error="1%")
    )
    back = problem_from_json(json.loads(json.dumps(problem_to_json("InvalidArgument", 422, error))))
    assert (back.fix, back.command) == ("pass epsilon=1, or error='1%'", "pass --epsilon 1, or --error 1%")
    assert pickle.loads(pickle.dumps(back)).within("options.").command_text == (
        "options.epsilon: expected one, got none. Fix: pass --epsilon 1, or --error 1%."
    )
    alike = InvalidArgument("epsilon", "one", "none", "state one")
    assert "command" not in problem_to_json("InvalidArgument", 422, alike)


def test_the_parts_of_a_message():
    sent = problem_to_json("InvalidArgument", 422, DitherError("epsilon", "a number", "text", "pass epsilon=1"))
    assert [sent[name] for name in ("name", "expected", "got", "fix")] == [
        "epsilon",
        "a number",
        "text",
        "pass epsilon=1",
    ]
    assert sent["status"] == 422


def test_what_only_a_server_says():
    raised = {
        "NotSignedIn": dp.AccessDenied, "Forbidden": dp.AccessDenied, "NotFound": dp.InvalidArgument,
        "TooMany": dp.ServerUnavailable, "SomethingNew": dp.ServerUnavailable,
    }  # fmt: skip
    for kind, cls in raised.items():
        back = problem_from_json(problem_to_json(kind, 400, DitherError("words")), 400)
        assert type(back) is cls
        assert str(back) == "words"


@pytest.mark.parametrize(
    "document", [None, "<html>", [], {}, {"type": "about:blank"}, {"type": "urn:dither:X"}, {"type": 5}]
)
def test_what_is_no_problem_names_the_status_alone(document):
    back = problem_from_json(document, 502)
    assert type(back) is dp.ServerUnavailable
    assert "status 502" in str(back)


def test_names_cannot_leave_their_place_in_a_path():
    for name in ("../../etc", "a/b", "a?b=c", "a#b", "a%2fb", "ä b"):
        for path in (table_path(name), explain_path(name), questions_path(name), job_path(name)):
            assert path.startswith("/api/v1/")
            assert path.count("/") <= 5
            assert not set(path) & set("?#ä ")
    assert questions_path("visits") == "/api/v1/tables/visits/questions"
    assert job_path("j", 2.0).endswith("/jobs/j?wait=2")
