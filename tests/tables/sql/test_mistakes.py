"""Texts that cannot be read: each rule recognizes its mistake, and no rule is raised by a question that can be read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import InvalidArgument
from dither.tables.sql.parse import parse
from support import refuses
from tables.questions import CARD

MISTAKES = [
    ("SELECT COUNT(*) FROM visits WHERE age > 1 && vip", "write AND"),
    ("SELECT COUNT(*) FROM visits WHERE age = %(age)s", "in place of the placeholder"),
    ("SELECT TOP 5 region, COUNT(*) FROM visits GROUP BY region", "LIMIT 5"),
    ("SELECT AVG(mixed case) FROM visits", '"Mixed Case"'),
    ("SELECT COUNT(*) FROM [visits]", "without square brackets"),
    ("SELECT COUNT(*) FROM visits WHERE age IN 1, 2", "IN (1, 2)"),
    ("SELECT COUNT(*) FROM visits WHERE age IN (1 2)", "comma between 1 and 2"),
    ("SELECT SUM(CASE WHEN vip THEN 1 ELSE 0) FROM visits", "CASE with END"),
    ("SELECT COUNT(*) AS two words FROM visits", '"two words"'),
    ("SELECT COUNT(*) FROM visits WHERE region ENDS WITH 'h'", "region LIKE '%a'"),
    ("SELECT COUNT(*) FROM visits GROUP region", "GROUP BY"),
    ("SELECT COUNT(*) FROM visits WEHRE vip = TRUE", "WHERE"),
    ("SELECT COUNT(*)) FROM visits", "leave out the )"),
    ("SELECT region COUNT(*) FROM visits GROUP BY region", "comma between region and COUNT"),
    ("SELECT COUNT(*) FROM visits WHERE age > 1 2 OR", "Fix: "),
]


@pytest.mark.parametrize(("text", "fix"), MISTAKES, ids=[text for text, _ in MISTAKES])
def test_each_mistake_is_named(text, fix):
    with refuses(InvalidArgument, fix):
        parse(text, CARD)


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
