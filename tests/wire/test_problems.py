"""Every error of the library becomes a problem, and a client raises the same class with the same text."""

from __future__ import annotations

import json

import pytest

import dither as dp
from dither import errors
from dither.errors import DitherError
from dither.wire import problems


def raised_classes() -> list[type[DitherError]]:
    return [
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, DitherError) and item is not DitherError
    ]


@pytest.mark.parametrize("cls", raised_classes(), ids=lambda cls: cls.__name__)
def test_every_error_comes_back(cls):
    error = cls("thing: of two parts", "one, got it", "another. Fix: no.", "do this, got that")
    sent = json.loads(json.dumps(problems.to_json(cls.__name__, 400, error)))
    assert sent["type"] == f"urn:dither:{cls.__name__}"
    back = problems.from_json(sent, 400)
    assert type(back) is cls
    assert str(back) == str(error)
    assert back.fix == error.fix


def test_the_parts_of_a_message():
    sent = problems.to_json("InvalidArgument", 422, DitherError("epsilon", "a number", "text", "pass epsilon=1"))
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
        back = problems.from_json(problems.to_json(kind, 400, DitherError("words")), 400)
        assert type(back) is cls
        assert str(back) == "words"


@pytest.mark.parametrize(
    "document", [None, "<html>", [], {}, {"type": "about:blank"}, {"type": "urn:dither:X"}, {"type": 5}]
)
def test_what_is_no_problem_names_the_status_alone(document):
    back = problems.from_json(document, 502)
    assert type(back) is dp.ServerUnavailable
    assert "status 502" in str(back)
