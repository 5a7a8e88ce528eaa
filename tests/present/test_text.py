"""What is shown of data on a terminal commands nothing."""

from __future__ import annotations

import sys
import unicodedata

import pyarrow as pa
import pytest

import dither as dp
from dither.present.notes import Note
from dither.present.text import printable
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
