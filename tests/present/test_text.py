"""What is shown of data on a terminal commands nothing; digits of numbers follow the ±, and any can be written."""

from __future__ import annotations

import math
import re
import sys
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dp
from dither.present.notes import Note
from dither.present.text import decimals_of, printable, rounded, significant, two_digits, with_error
from dither.tables.answer import Answer

HOSTILE = ["\x1b[2J\x1b]0;title\x07", "a\rb", "\u202eright", "\x9b31m", "\x08\x08", "\u2028", "\ud800", "\x7f"]


@pytest.mark.slow
def test_no_control_character_is_left() -> None:
    every_character = "".join(map(chr, range(sys.maxunicode + 1)))
    for character in set(printable(every_character)):
        kind = unicodedata.category(character)
        assert kind not in ("Cc", "Cs", "Zl", "Zp", "Cn", "Co")
        assert kind != "Cf" or character in "\u200c\u200d"
    for text in ("Ångström", "日本 語", "عربى", "👩\u200d🔬", "a\u00a0b"):
        assert printable(text) == text


def commands(text: str) -> list[str]:
    return [sign for sign in text if sign != "\n" and unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@pytest.mark.parametrize("key", HOSTILE)
def test_an_answer_and_its_notes_are_printed_without_commands(key: str) -> None:
    answer = Answer(
        (key, "n"),
        ("text", "integer"),
        ((key, 3),),
        {"n": (1.0,)},
        dp.PureDP(1),
        (Note("null_values", {"names": [key], "grouped": True}),),
    )
    assert not commands(str(answer))
    assert key in answer.to_csv()  # a file holds the key itself
    assert not commands(answer.to_json())
    assert answer.rows[0][0] == key  # as a value it is what it is


def test_a_released_key_and_an_explanation_are_printed_without_commands() -> None:
    key = HOSTILE[0]
    with dp.open(pa.table({"k": [key] * 3}), keys={"k": [key, "b"]}, budget=dp.PureDP(1)) as table:
        question = table.group_by("k").agg(**{key: dp.count()})
        assert not commands(str(question.explain(0.5)))
        assert not commands(str(question.release(0.5)))


# -- numbers -----------------------------------------------------------------------------------------------------------

PLAIN = re.compile(r"-?[0-9]{1,3}(,[0-9]{3})*(\.[0-9]+)?")


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (15.6828, 0.848, ("15.7", "0.8")),
        (15.6828, 0.31, ("15.68", "0.31")),
        (15.6828, 0.97, ("15.7", "1.0")),
        (98845, 181.7, ("98,840", "180")),
        (2157950.0, 33000.0, ("2,158,000", "33,000")),
        (2157950.0, None, ("2,157,950", "")),
        (41, 3.0, ("41", "3")),
        (0.00123456, 0.0000789, ("0.00123", "0.00008")),
        (5, 0.0, ("5", "0")),
        (5.0, math.inf, ("5", "inf")),
        (-0.001, 0.5, ("0.0", "0.5")),
    ],
)
def test_a_number_has_the_digits_of_its_error(value, error, expected):
    assert with_error(value, error) == expected


@given(st.floats(min_value=-1e12, max_value=1e12), st.floats(min_value=1e-5, max_value=1e12))
def test_rounding_moves_a_number_by_a_seventh_of_its_error_at_most(value, error):
    text, width = with_error(value, error)
    assert PLAIN.fullmatch(text)
    assert abs(float(text.replace(",", "")) - value) <= error / 7 + 1e-9 * abs(value)
    assert float(width.replace(",", "")) == pytest.approx(error, rel=1 / 7)
    assert len(width.replace(",", "").replace(".", "").strip("0")) <= 2


@given(st.floats(), st.floats(min_value=0) | st.none())
def test_any_number_can_be_written(value, error):
    assert all(isinstance(text, str) for text in with_error(value, error))
    assert significant(value)
    assert two_digits(abs(value))


@given(st.integers(), st.floats(min_value=0) | st.none())
def test_any_whole_number_can_be_written_without_decimals(value, error):
    assert "." not in with_error(value, error)[0]


def test_places():
    assert [decimals_of(error) for error in (9.44, 9.96, 0.1, 1234, 3.56)] == [0, 0, 2, -2, 0]
    assert rounded(1e300, 2) == "1e+300"
