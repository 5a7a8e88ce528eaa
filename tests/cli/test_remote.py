"""The commands take the address of a table on a server where they take a card."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import dither as dp
from client.fake_server import TOKEN, FakeServer, fake_server

SQL = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


@pytest.fixture
def url(monkeypatch):
    monkeypatch.setenv("DITHER_TOKEN", TOKEN)
    rows = pa.table({"region": ["north", "south"] * 50, "age": [30, 40] * 50})
    with (
        dp.open(rows, keys={"region": ["north", "south"]}, budget=dp.PureDP(10), name="visits") as table,
        fake_server(table) as (_, url),
    ):
        yield url + "visits"


def test_query(dither, url, tmp_path):
    status, out, _ = dither("query", url, SQL, "--epsilon", "1", "--format", "json")
    assert status == 0
    assert [row["region"] for row in json.loads(out)["rows"]] == ["north", "south"]
    page, plot, table = tmp_path / "page.html", tmp_path / "plot.svg", tmp_path / "answer.csv"
    options = ["--epsilon", "1", "--report", str(page), "--plot", str(plot), "--output", str(table)]
    status, _, err = dither("query", url, SQL, *options)
    assert status == 0, err
    assert "paid earlier" in err
    assert all(path.stat().st_size for path in (page, plot, table))


def test_explain_and_dry_run(dither, url):
    for command in (("explain", url, SQL), ("query", url, SQL, "--dry-run")):
        status, out, _ = dither(*command, "--epsilon", "1")
        assert status == 0
        assert "cost: ε = 1" in out


def test_budget_and_check(dither, url):
    status, out, _ = dither("budget", url)
    assert status == 0
    assert "visits" in out
    assert "10" in out
    status, out, _ = dither("check", url)
    assert status == 0
    assert "no bounds for age" in out
    assert "ledger" not in out


@pytest.mark.slow
@pytest.mark.parametrize(
    "option", [["--history"], ["--verify"], ["--set", "epsilon=5"], ["--reopen"], ["--plot", "a.png"]]
)
def test_what_is_for_the_ledger_itself(dither, url, option):
    status, _, err = dither("budget", url, *option)
    assert status == 2
    assert option[0] in err


def test_refusals(dither, url, monkeypatch):
    status, _, err = dither("query", url, "SELECT age FROM visits", "--epsilon", "1")
    assert status == 2
    assert "Fix:" in err
    status, _, err = dither("query", url, SQL, "--epsilon", "1", "--receipt", "1:ab")
    assert status == 2
    assert "--receipt" in err
    status, _, err = dither("query", url + "x", SQL, "--epsilon", "1")
    assert status == 2
    assert "one of visits" in err
    status, _, err = dither("explain", url.replace("127.0.0.1", "example.org"), SQL, "--epsilon", "1")
    assert status == 2
    assert "https://" in err
    monkeypatch.delenv("DITHER_TOKEN")
    status, _, err = dither("explain", url, SQL, "--epsilon", "1")
    assert status == 2
    assert "DITHER_TOKEN" in err


def test_a_server_with_several_tables(dither, url, monkeypatch):
    real = FakeServer.document

    def several(self, method, parts, headers, body):
        document = real(self, method, parts, headers, body)
        if parts == ["tables"]:
            document["tables"].append({"name": "others"})
        return document

    monkeypatch.setattr(FakeServer, "document", several)
    status, _, err = dither("explain", url.removesuffix("visits"), SQL, "--epsilon", "1")
    assert status == 2
    assert "one of visits, others" in err
