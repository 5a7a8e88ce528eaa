"""``dither serve``: what cannot be served is refused in one line; serving itself is tried in ``tests/server``."""

from __future__ import annotations

import socket

import pytest


def test_the_options_are_listed(dither):
    status, out, _ = dither("serve", "--help")
    assert status == 0
    assert all(option in out for option in ("--database", "--host", "--port", "--config", "--single-steward"))


@pytest.mark.parametrize(
    ("options", "name"),
    [(["--processes", "2"], "processes"), (["--config", "none.toml"], "config"), (["--port", "70000"], "port")],
)
def test_wrong_options(dither, tmp_path, options, name):
    status, _, err = dither("serve", tmp_path, *options)
    assert status == 2
    assert name in err


def test_a_port_that_is_taken(dither, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, _, err = dither("serve", tmp_path, "--port", taken.getsockname()[1])
    assert status == 2
    assert "--port" in err
