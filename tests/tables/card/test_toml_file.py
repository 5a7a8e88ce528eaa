"""Files in TOML that cannot be read: what it is, and the nearest name that is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

import dither as dp
from dither.server.config import read_config
from dither.tables.card.toml import contents, read_bytes
from support import each, refuses


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


LONG = "\n".join(f"a{i} = {i}" for i in range(50))


@each(
    ("text", "said"),
    [
        (LONG + "\nbounds = [0,, 10]", "line 51, column 13: bounds = [0,, 10]"),
        (LONG + "\nbounds = ", "line 51, column 9: bounds ="),
        (LONG + "\nkeys = [1,\n2\n\n# more\n[columns.a]\nb = 1", "what begins in line 51: keys = [1,"),
        (LONG + '\nname = "visits\nb = 1', 'line 51, column 15: name = "visits'),
        (LONG + '\nname = """visits\nb = 1\n', 'what begins in line 51: name = """visits'),
        (LONG + "\na1 = 5", "line 51, column 7: a1 = 5"),
        (LONG + "\nage : 5\n" + "b = 1", "line 51, column 5: age : 5"),
        ('source = "postgresql://u:hunter2@h/d?password=hunter2::t', "postgresql://u:…@h/d?password=…::t"),
        ('oidc_client_secret = "hunter2', "line 1, column 30: oidc_client_secret = …"),
        ("a = \x1b[2J", "a = \\x1b[2J"),
    ],
)
def test_a_mistake_is_shown_with_its_file_its_line_and_what_stands_there(text, said):
    with refuses(dp.InvalidArgument, "card visits.toml: expected a file in TOML, got a mistake in ", said) as refusal:
        contents(text.encode(), "card", Path("some/visits.toml"))
    assert "hunter2" not in str(refusal.value)


def test_every_file_in_toml_is_read_so(tmp_path):
    place = tmp_path / "dither-server.toml"
    place.write_text("tick = 0.5\nport = = 9")
    with refuses(dp.InvalidArgument, "config dither-server.toml", "line 2, column 8: port = = 9"):
        read_config(str(tmp_path), environment={})
    plan = tmp_path / "plan.toml"
    plan.write_text("card = ")
    with refuses(dp.InvalidArgument, "plan plan.toml", "line 1, column 7: card ="):
        dp.publish.plan(plan)
