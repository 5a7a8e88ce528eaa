"""Texts at random, and questions changed at random: read or refused in plain words, and never anything else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import InvalidArgument
from dither.tables.query.tree import Query
from dither.tables.sql.parse import parse
from tables.questions import CARD

pytestmark = pytest.mark.slow

WORDS = r"""
    SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AND OR NOT IN BETWEEN LIKE IS NULL CASE WHEN THEN ELSE END AS ON
    JOIN LEFT USING DISTINCT WITH DIFFERENTIAL_PRIVACY OPTIONS OVER FILTER WITHIN DATE TIMESTAMP INTERVAL CAST
    EXTRACT EXISTS ANY ALL UNION VALUES LATERAL PIVOT QUALIFY WINDOW TRUE COUNT SUM AVG MODE PERCENTILE_CONT
    WIDTH_BUCKET date_trunc COALESCE visits regions age region day vip person epsilon ( ) [ ] { } , . ; * + - / = <>
    < > => -> :: : || % ~ ? @ $ # ! & ^ \ ` ' " 'a' '2024-01-01' 1 0 2.5 1e9 1e999 0x1 /* */ -- 😀 é
    """
SOUP = [*WORDS.split(), "\n"]


@settings(max_examples=1500)
@given(st.lists(st.sampled_from(SOUP), max_size=25).map(" ".join))
def test_token_soup(soup):
    _refused_or_read(soup)
    _refused_or_read(f"SELECT COUNT(*) FROM visits WHERE {soup}")
    _refused_or_read(f"SELECT {soup} FROM visits")


@settings(max_examples=500)
@given(st.text(max_size=60))
def test_any_text(text):
    _refused_or_read(text)
    _refused_or_read(f"SELECT COUNT(*) FROM visits WHERE {text}")


WHOLE = [
    "SELECT region AS r, COUNT(*) n, SUM(age) / COUNT(*) m FROM visits v JOIN regions USING (region) WHERE "
    "age IN (1, 2) AND day >= '2024-01-01' GROUP BY r, date_trunc('month', day) HAVING n > 5 "
    "ORDER BY 2 DESC, m LIMIT 5",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, privacy_unit_column = person) "
    "WIDTH_BUCKET(age, 0, 100, 4) b, SUM(age, contribution_bounds_per_row => (0, 9)) "
    "FROM (SELECT age FROM visits WHERE vip) s GROUP BY 1",
]


def test_questions_to_change_are_questions():
    for item in WHOLE:
        assert parse(item, CARD).aggregates


@settings(max_examples=750)
@given(st.data())
def test_questions_with_a_word_changed(data):
    words = data.draw(st.sampled_from(WHOLE)).split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at : at + data.draw(st.integers(0, 2))] = data.draw(st.lists(st.sampled_from(SOUP), max_size=2))
        if not words:
            return
    _refused_or_read(" ".join(words))


def _refused_or_read(text: str) -> None:
    try:
        assert isinstance(parse(text, CARD), Query)
    except InvalidArgument as refused:
        assert ". Fix: " in str(refused)  # noqa: PT017
