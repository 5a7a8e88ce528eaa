"""Advice for values of different kinds: a comparison of numbers never becomes one of texts."""

from __future__ import annotations

import pytest

from dither.tables.query.operations.base import one_kind
from dither.tables.query.tree import Call, Column, Literal

TEXT, NUMBER = (Column("delay"), "text"), (Literal(10), "integer")


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "between", "greatest", "least"])
def test_texts_are_read_as_numbers_where_the_order_counts(op):
    advice = one_kind(Call(op, (TEXT[0], NUMBER[0])), [TEXT, NUMBER], ["integer", "text"])
    assert "CAST(delay AS INTEGER)" in advice
    assert "quotes" not in advice


@pytest.mark.parametrize("op", ["=", "<>", "in"])
def test_a_code_may_be_written_in_quotes_where_values_are_equal(op):
    advice = one_kind(Call(op, (TEXT[0], NUMBER[0])), [TEXT, NUMBER], ["integer", "text"])
    assert advice.index('state type = "integer"') < advice.index("if it holds codes, write '10', with quotes")
