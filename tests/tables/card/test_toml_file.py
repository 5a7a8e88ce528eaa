"""Files in TOML that cannot be read: what it is, and the nearest name that is meant."""

from __future__ import annotations

import pytest

import dither as dp
from dither.tables.card.toml_file import contents, read_bytes
from support import refuses


def test_a_missing_file_is_refused_with_the_nearest_name(tmp_path):
    (tmp_path / "visits.toml").write_text("a = 1")
    assert contents(read_bytes(tmp_path / "visits.toml", "plan", ""), "plan") == {"a": 1}
    with refuses(dp.InvalidArgument, "plan", "'visit.toml'", "'visits.toml', the nearest name"):
        read_bytes(tmp_path / "visit.toml", "plan", "or draft one")
    with refuses(dp.InvalidArgument, "card", "a folder"):
        read_bytes(tmp_path, "card", "")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"a = ", ["a mistake"]),
        (b"a = 1\nb = = 2", ["line 2"]),
        (b"\xff\xfe", ["UTF-8"]),
        (b"a = " + b"[" * 5000, ["Fix"]),
    ],
)
def test_a_mistake_is_named_by_its_line(raw, words):
    with refuses(dp.InvalidArgument, "plan", *words):
        contents(raw, "plan")
