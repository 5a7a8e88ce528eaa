"""Hints for functions of other engines: none is for one that dither has, and what they say can be copied."""

from __future__ import annotations

import re

import pytest

from dither.errors import InvalidArgument
from dither.tables.query import operations
from dither.tables.sql.expressions import AGGREGATES
from dither.tables.sql.other_dialects import FUNCTIONS, NODES
from dither.tables.sql.parse import parse
from support import refuses
from tables.questions import CARD

KNOWN = {*operations.FUNCTIONS, *operations.SPECIAL_FUNCTIONS, *AGGREGATES}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_hint_for_a_function_is_said(name):
    assert name not in KNOWN
    with refuses(InvalidArgument, FUNCTIONS[name].partition("{")[0].split(":")[0], "Fix: ") as refusal:
        parse(f"SELECT {name}(age) FROM visits", CARD)
    assert "{" not in str(refusal.value)


def test_functions_that_hints_name_are_known():
    """A fix must not lead to a function that is refused as well."""
    named = {word for text in FUNCTIONS.values() for word in re.findall(r"\b([A-Z][A-Z_0-9]+)\(", text)}
    named |= {word for _, text in NODES.values() for word in re.findall(r"\b([A-Z][A-Z_0-9]+)\(", text)}
    assert named <= KNOWN | {"CAST", "COUNT"}
