"""The configuration: file, environment and command, in this order; every key, variable and value is checked."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from dither.errors import InvalidArgument
from dither.server.config import ELSEWHERE, KINDS, Config, read_config, variable_of
from support import each

ROOT = Path(__file__).parents[2]


def test_what_comes_later_counts(tmp_path):
    (tmp_path / "dither-server.toml").write_text(
        'tick = 0.5\nport = 9000\nsingle_steward = true\noidc_roles = ["reader"]'
    )
    config = read_config(
        str(tmp_path), environment={"DITHER_PORT": "9001", "DITHER_WORKERS": "3"}, workers=4, host=None
    )
    assert (config.tick, config.port, config.workers, config.single_steward) == (0.5, 9001, 4, True)
    assert config.oidc_roles == ("reader",)
    assert config.store_address == str(tmp_path / "dither-server.sqlite")
    assert read_config(str(tmp_path), environment={"DITHER_SECURE_COOKIES": "yes"}).cookies_are_secure


BAD = {
    "database": ["mysql://h/d", "a\nb"],
    "host": ["", "a b", "http://a", "a:80", "300.1.1.1", "a/b"],
    "port": [-1, 65536, 1.5, "80", True],
    "processes": [0, 65, 2],
    "public_url": [
        "answers.example.org",
        "//a",
        "ftp://a",
        "https://",
        "https://a/path",
        "https://u@a",
        "https://a?b",
        "https://a?",
        "https://a#",
        "https://a/#",
        "HTTPS://a",
        "Http://a",
        "https://*.a",
    ],
    "single_steward": ["yes", 1],
    "workers": [0, -1, 257, 2.5, True, float("nan"), float("inf")],
    "warm": ["no"],
    "tick": [0, -1, 61.0, "soon", 59.0 * 3],
    "time_limit": [0, 1e9, 0.1],  # less than a tick
    "memory_limit_mb": [0, 100, 1.5],
    "max_body_bytes": [0, 1 << 27],
    "read_timeout": [0.0, 3601.0],
    "max_questions_each": [0],
    "max_waiting": [0],
    "questions_per_minute": [0],
    "requests_per_minute": [-5],
    "sign_ins_per_minute": [0.5],
    "session_hours": [0],
    "idle_hours": [0],
    "token_days": [3651],
    "secure_cookies": ["true", 0],
    "metrics_tokens": ["a" * 40, ("short",), ("a" * 40, "b"), (1,)],
    "event_days": [0, 36_501],
    "trusted_proxies": [
        "*",
        ("*",),
        ("proxy",),
        ("0.0.0.0/0",),
        ("::/0",),
        ("10.0.0.1/8",),
        (1,),
        ("0.0.0.0/1", "128.0.0.0/1"),
        ("10.0.0.0/7",),
        ("::/1", "8000::/1"),
        ("fc00::/15",),
    ],
    "oidc_issuer": ["login.example.org", "http://login.example.org", "https://a?b"],
    "oidc_client_id": [1],
    "oidc_client_secret": [b"x"],
    "oidc_roles": [("admin",), ("steward",), "reader", ("reader", "admin")],
}


def test_every_key_has_bad_values():
    assert BAD.keys() == KINDS.keys() == {item.name for item in fields(Config)} - {"folder"}


@each(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_every_key_refuses_what_it_does_not_mean(name, value):
    with pytest.raises(InvalidArgument, match=r"expected .* got .*Fix: "):
        Config(**{"folder": ".", name: value})


WHOLE = [item.name for item in fields(Config) if str(item.type).startswith("int")]


@each("name", WHOLE)
def test_a_whole_number_is_not_written_with_a_point(name):
    example = tomllib.loads(f"x = {KINDS[name].example}")["x"]
    Config(**{"folder": ".", name: example})
    for value in (float(example), True):
        with pytest.raises(InvalidArgument, match="a whole number"):
            Config(**{"folder": ".", name: value})


def test_networks_of_proxies_up_to_a_width_are_taken():
    Config(folder=".", trusted_proxies=("10.0.0.0/8", "172.16.0.0/12", "fd00::/16", "::1", "127.0.0.1"))


@each("name", KINDS)
def test_every_key_takes_its_own_example(name):
    value = tomllib.loads(f"x = {KINDS[name].example}")["x"]
    assert KINDS[name].holds(tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(
    ("text", "fix"),
    [("tik = 1", "'tick'"), ("trusted_proxy = []", "'trusted_proxies'"), ("tick", "key = value"),
     ("tick = 0", "tick = 0.25"), ("folder = 'x'", "use one of"),
     ("trusted_proxies = '*'", "127"), ("oidc_roles = ['admin']", "reader")],
)  # fmt: skip
def test_mistakes_in_the_file_are_named(tmp_path, text, fix):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(InvalidArgument, match=f"Fix: .*{re.escape(fix)}"):
        read_config(str(tmp_path), str(tmp_path / "c.toml"), environment={})


MISSPELT = [(variable_of(name)[:-1], "DITHER_") for name in KINDS]
NEAREST = [("DITHER_TIKC", "DITHER_TICK"), ("DITHER_LEDGER_SECRET", "DITHER_LEDGER_KEY"), ("DITHER_FOLDER", "DITHER_")]


@each(("variable", "nearest"), [*MISSPELT, *NEAREST])
def test_a_variable_that_nothing_reads_is_refused(variable, nearest):
    with pytest.raises(InvalidArgument, match=f"^{variable}: .*{nearest}"):
        read_config(".", environment={variable: "1"})


def test_variables_of_others_are_left_alone(tmp_path):
    read_config(str(tmp_path), environment=dict.fromkeys(ELSEWHERE, "x") | {"PATH": "/", "DITHERING": "x"})


@each(
    ("variable", "text"),
    [("DITHER_TICK", "soon"), ("DITHER_SINGLE_STEWARD", "perhaps"), ("DITHER_TRUSTED_PROXIES", "*"),
     ("DITHER_OIDC_ROLES", "analyst, admin"), ("DITHER_PUBLIC_URL", "answers.example.org")],
)  # fmt: skip
def test_mistakes_in_the_environment(variable, text):
    with pytest.raises(InvalidArgument, match=f"^{variable}: expected"):
        read_config(".", environment={variable: text})


def test_every_variable_that_the_project_writes_down_is_one_that_it_reads():
    known = {variable_of(name) for name in KINDS} | ELSEWHERE | {"DITHER_"}
    places = [*(ROOT / "deploy").iterdir(), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "SECURITY.md",
              *(ROOT / "src").rglob("*.py"), *(ROOT / "scripts").iterdir(), ROOT / "Makefile"]  # fmt: skip
    shown = {"DITHER_TIKC"}  # the doctest of the refusal
    for place in places:
        if place.is_file():
            names = set(re.findall(r"(?<![A-Z_])DITHER_[A-Z_]*", place.read_text(encoding="utf-8")))
            assert names <= known | shown, place


def test_secrets_are_not_shown():
    config = Config(folder=".", database="postgresql://u:hunter2@h/d", oidc_client_secret="hunter2")
    assert "hunter2" not in repr(config)
    with pytest.raises(InvalidArgument) as refused:
        Config(folder=".", database="mysql://u:hunter2@h/d")
    assert "hunter2" not in str(refused.value)


def test_cookies_are_secure_unless_local():
    assert not Config(folder=".").cookies_are_secure
    assert Config(folder=".", host="0.0.0.0").cookies_are_secure
    assert Config(folder=".", public_url="https://x.example").cookies_are_secure
    with pytest.raises(InvalidArgument, match="public_url"):
        Config(folder=".", oidc_issuer="https://i.example")
    with pytest.raises(InvalidArgument):
        read_config(".", "nowhere.toml")


def test_tokens_of_metrics_are_several_long_and_never_shown(tmp_path):
    tokens = "a" * 40, "b" * 40
    config = read_config(str(tmp_path), environment={"DITHER_METRICS_TOKENS": ", ".join(tokens)})
    assert config.metrics_tokens == tokens
    assert tokens[0] not in repr(config)
    with pytest.raises(InvalidArgument, match="at least 20 characters"):
        Config(folder=".", metrics_tokens=("short",))
