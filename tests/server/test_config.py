"""The configuration: file, environment and command, in this order."""

from __future__ import annotations

import pytest

from dither.errors import InvalidArgument
from dither.server.config import Config, read_config


def test_what_comes_later_counts(tmp_path):
    (tmp_path / "dither-server.toml").write_text(
        'tick = 0.5\nport = 9000\nsingle_steward = true\noidc_roles = ["reader"]'
    )
    config = read_config(
        str(tmp_path), environment={"DITHER_PORT": "9001", "DITHER_WORKERS": "3"}, workers=4, host=None
    )
    assert (config.tick, config.port, config.workers, config.single_steward) == (0.5, 9001, 4, True)
    assert config.oidc_roles == ("reader",)
    assert config.place == str(tmp_path / "dither-server.sqlite")
    assert read_config(str(tmp_path), environment={"DITHER_SECURE_COOKIES": "yes"}).cookies_are_secure


@pytest.mark.parametrize(
    "text", ["tik = 1", "tick = 'x'", "tick = -1", "port = 1.5", "workers = 0", "tick", "folder = 'x'", "processes = 2"]
)
def test_mistakes_are_named(tmp_path, text):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(InvalidArgument, match="Fix: "):
        read_config(str(tmp_path), str(tmp_path / "c.toml"), environment={})


@pytest.mark.parametrize("variable", [{"DITHER_TICK": "soon"}, {"DITHER_SINGLE_STEWARD": "perhaps"}])
def test_mistakes_in_the_environment(tmp_path, variable):
    with pytest.raises(InvalidArgument, match=next(iter(variable))):
        read_config(str(tmp_path), environment=variable)


def test_secrets_are_not_shown():
    config = Config(folder=".", database="postgresql://u:hunter2@h/d", oidc_client_secret="hunter2")
    assert "hunter2" not in repr(config)


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
