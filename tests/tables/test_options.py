"""The options of a release: each stated once and checked when made, the same in Python and on the command line."""

from __future__ import annotations

import inspect
import math
from dataclasses import FrozenInstanceError, dataclass, fields

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import InvalidArgument, WrongType
from dither.tables.codec import from_json, to_json
from dither.tables.execute.recorded_key import canonical_request
from dither.tables.options import ReleaseOptions, option, takes_options
from dither.tables.planning.calibrate import plan_question
from dither.tables.query.tree import Query
from support import refuses

NAMES = [item.name for item in fields(ReleaseOptions)]


def test_a_declaration_is_all_that_a_new_option_needs():
    """Keyword, field of a request, recorded form and documentation; tests/cli/test_options.py has the command line."""

    @dataclass(frozen=True)
    class Later(ReleaseOptions):
        surprise: int | None = option(None, "How large the surprise may be.", "N")

    class Asked:
        @takes_options(Later)
        def release(self, options):
            return options

    stated = Asked().release(0.5, surprise=3)
    assert stated == Later(epsilon=0.5, surprise=3)
    assert "surprise" in inspect.signature(Asked.release).parameters
    assert to_json(stated) == {"epsilon": 0.5, "surprise": 3}
    assert from_json(to_json(stated), Later, "options") == stated
    query, card = Query({"n": dp.count()}), dp.Card("data", "", {})
    request = canonical_request(None, query, card, plan_question(query, card, stated), stated)
    assert request["release"]["surprise"] == 3


def test_keywords_are_those_of_the_fields():
    for method in (dp.Question.plan, dp.Question.explain, dp.Question.release):
        assert set(inspect.signature(method).parameters) == {"self", "options", *NAMES}


def test_every_option_is_documented():
    assert [name for name in NAMES if name not in (ReleaseOptions.__doc__ or "")] == []


def test_options_are_frozen_values():
    options = ReleaseOptions(epsilon=0.5)
    assert options == ReleaseOptions(epsilon=0.5)
    assert hash(options) == hash(ReleaseOptions(epsilon=0.5))
    with pytest.raises(FrozenInstanceError):
        options.epsilon = 1  # type: ignore[misc]  # that it is refused is what is tried


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"epsilon": 0}, InvalidArgument, "epsilon"),
        ({"epsilon": math.nan}, InvalidArgument, "epsilon"),
        ({"epsilon": "1"}, WrongType, "epsilon"),
        ({"error": -1}, InvalidArgument, "error"),
        ({"delta": 2}, InvalidArgument, "delta"),
        ({"max_groups": 0}, InvalidArgument, "max_groups"),
        ({"max_groups": "many"}, WrongType, "max_groups"),
        ({"max_rows": 1.5}, WrongType, "max_rows"),
        ({"noise": "none"}, InvalidArgument, "noise: expected 'best', 'laplace' or 'gaussian'"),
        ({"other": 1}, WrongType, "other: expected True or False, got int"),
        ({"nonnegative": None}, WrongType, "nonnegative"),
        ({"integer": 0}, WrongType, "integer"),
        ({"again": "x"}, WrongType, "again"),
        ({"analyst": 5}, WrongType, "analyst: expected text, got int"),
        ({"key": b"k"}, WrongType, "key"),
    ],
    ids=str,
)
def test_nonsense_is_refused_at_once(options, error, text):
    with pytest.raises(error, match=text):
        ReleaseOptions(**options)


@pytest.fixture(scope="module")
def question():
    rows = pa.table({"who": list(range(50)), "town": ["a", "b"] * 25})
    with dp.open(rows, unit="who", budget=dp.PureDP(100), keys={"town": ["a", "b"]}) as table:
        yield table.group_by("town").agg(n=dp.count())


@pytest.mark.parametrize("method", ["plan", "explain", "release"])
def test_an_unknown_option_is_refused_with_the_nearest_name(question, method):
    expected = "max_row: expected epsilon, error, .* again or force, got an unknown option. Fix: write 'max_rows'"
    with pytest.raises(WrongType, match=expected):
        getattr(question, method)(epsilon=1, max_row=2)


@pytest.mark.parametrize("method", ["plan", "explain", "release"])
def test_options_as_an_object_and_as_keywords_are_the_same(question, method):
    options = ReleaseOptions(epsilon=0.5, max_rows=1, integer=True, nonnegative=True)
    one = getattr(question, method)(options=options)
    other = getattr(question, method)(0.5, max_rows=1, integer=True, nonnegative=True)
    assert one == other


def test_an_object_and_keywords_together_are_refused(question):
    with refuses(InvalidArgument, "options=, or keyword arguments, got both"):
        question.plan(0.5, options=ReleaseOptions(epsilon=0.5))
    with refuses(WrongType, "a ReleaseOptions, got dict"):
        question.plan(options={"epsilon": 1})


def test_a_key_that_looks_like_one_of_a_question_is_refused():
    with refuses(InvalidArgument, "a name of your choice"):
        ReleaseOptions(epsilon=1, key="0" * 63 + "f")
    assert ReleaseOptions(epsilon=1, key="0" * 63).key == "0" * 63
