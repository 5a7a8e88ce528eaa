"""``dither serve``, ``backup`` and ``restore``: wrong options, what is printed, and the status; tests/server serves."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from dither.cli.serve import words
from dither.server.backup import DATABASE, Restored


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


QUERY = "SELECT COUNT(*) AS n FROM visits"


def ask(dither, card, key):
    assert dither("query", card, QUERY, "--epsilon", "0.1", "--key", key)[0] == 0


def test_from_a_backup_to_an_accepted_loss(visits, dither):
    ask(dither, visits, "first")
    status, out, _ = dither("backup", ".", "../copy", "--keys", "../keys")
    assert status == 0
    assert "visits.ledger: receipt 3:" in out
    assert "1 ledger(s), verified" in out
    ask(dither, visits, "second")
    ledger = Path("visits.ledger")
    ledger.unlink()
    Path(f"{ledger}.key").unlink()
    assert "--keys" in dither("restore", "../copy", ".")[2]
    status, out, _ = dither("restore", "../copy", ".", "--keys", "../keys")
    assert status == 1
    assert "At least 2 later entries are lost" in out
    status, _, err = dither("query", visits, QUERY, "--epsilon", "0.1", "--key", "third")
    assert status == 2
    assert "receipt" in err
    given = ["--accept-loss", "--signed-by", "sam", "--reason", "a fire"]
    status, out, _ = dither("restore", "../copy", ".", *given)
    assert status == 0
    assert "nothing is left in its accounts" in out
    status, out, _ = dither("budget", visits, "--history")
    assert status == 0
    assert "a fire" in out


def test_what_became_of_each_thing():
    assert "pg_dump" not in words(Restored(DATABASE, "missing"))
    assert "tokens are revoked" in words(Restored(DATABASE, "restored"))
    assert "tokens" not in words(Restored(DATABASE, "kept"))
    assert "one kept elsewhere" in words(Restored("a.sqlite", "restored", 7))
    assert words(Restored("a.sqlite", "restored", 7, 0)).endswith("Nothing is lost.")
    assert "is intact" in words(Restored("a.sqlite", "kept", 7, 0))
