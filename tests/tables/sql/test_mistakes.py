"""Texts that cannot be read; ``tables/refusals`` has a text for each rule, and what is written after its advice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import InvalidArgument
from dither.tables.sql.parse import parse
from support import refuses
from tables.questions import CARD


@pytest.mark.parametrize("sign", "‘’“”（），＝＞≥≠−\u200b\ufeff")
def test_unusual_signs_are_refused_outside_of_texts_and_names_only(sign):
    with refuses(InvalidArgument, f"U+{ord(sign):04X}"):
        parse(f"SELECT COUNT(*) FROM visits WHERE age {sign} 1", CARD)
    assert parse(f"SELECT COUNT(*) AS \"n {sign}\" FROM visits WHERE region = 'a{sign}b'", CARD).where


WORDS = [
    *("SELECT", "COUNT(*)", "FROM", "visits", "WHERE", "age", ">", "1", "GROUP", "BY", "region", "'a'", "(", ")", ","),
    *("IN", "BETWEEN", "AND", "CASE", "WHEN", "%", "s", "AS", "=>", "TOP", "[", "]", "LIKE", "{", "}", "#", "="),
]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))
def test_any_words_are_a_question_or_refused_in_order(words):
    try:
        parse(" ".join(words), CARD)
    except InvalidArgument as error:
        with refuses(InvalidArgument):
            raise error
