"""Clients of a real server: who may not ask is refused alike everywhere, and a server that is gone is said in words."""

from __future__ import annotations

import signal

import pyarrow as pa
import pytest

import dither as dp
from client.served import serving
from dither.client import transport as transports
from dither.wire.requests import question_to_json
from support import refuses

pytestmark = pytest.mark.slow

ROWS = pa.table({"who": [i % 40 for i in range(400)], "region": ["north", "south"] * 200})
CARD = """
name = "NAME"
source = "NAME.rows.parquet"
ledger = "NAME.ledger.sqlite"
unit = "who"
max_rows = 10
[budget]
epsilon = 10
[columns]
who = { type = "integer" }
region = { type = "text", keys = ["north", "south"] }
"""


def test_who_may_not_ask(served):
    name = served.add(CARD, rows=ROWS)
    with pytest.raises(dp.AccessDenied) as refusal:
        dp.connect(served.url + name, token="dither_forged")
    assert "dither_forged" not in str(refusal.value)
    with refuses(dp.InvalidArgument, "table", "grant"):  # another's table is as one that is not there
        dp.connect(served.url + name, token=served.tokens["bob"])
    with refuses(dp.InvalidArgument, "table"):
        dp.connect(served.url + "none", token=served.tokens["ann"])
    table = dp.connect(served.url + name, token=served.tokens["sam"])
    with refuses(dp.AccessDenied, "analyst"):  # a steward does not ask
        table.agg(n=dp.count()).release(epsilon=1)
    served.request("sam", "DELETE", f"/grants/ann/{name}")
    with refuses(dp.InvalidArgument, "table"):
        dp.connect(served.url + name, token=served.tokens["ann"])


def test_nobody_asks_in_another_name(served):
    name = served.add(CARD, rows=ROWS)
    with dp.connect(served.url + name, token=served.tokens["ann"]) as table:
        question = table.agg(n=dp.count())
        with refuses(dp.InvalidArgument, "analyst"):
            question.release(epsilon=1, analyst="bob")
        body = {"question": question_to_json(question), "options": {"epsilon": 1, "analyst": "bob"}}
        with refuses(dp.InvalidArgument, "analyst"):
            served.request("ann", "POST", f"/tables/{name}/questions", body)
        with refuses(dp.InvalidArgument, "analyst"):
            served.request("ann", "POST", f"/tables/{name}/questions", {**body, "options": {}, "analyst": "bob"})
        question.release(epsilon=1)
    charges = served.request("sam", "GET", f"/tables/{name}/budget")["charges"]
    assert [charge["analyst"] for charge in charges] == ["ann"]


def test_a_tree_that_the_builder_would_not_make_is_refused_by_the_server(served):
    name = served.add(CARD, rows=ROWS)
    count = ["n", {"is": "Aggregate", "kind": "count"}]
    post = {"is": "PostProcessing", "sql": "SELECT * FROM read_csv('/etc/passwd')"}
    for tree in (
        {"is": "Query", "aggregates": [count], "post": post},
        {"is": "Query", "aggregates": [count], "source": {"is": "PrivateRows", "table": "other"}},
        {
            "is": "Query",
            "aggregates": [["s", {"is": "Aggregate", "kind": "sum", "value": {"is": "Column", "name": "x"}}]],
        },
    ):
        body = {"question": {"tree": tree}, "options": {"epsilon": 1}}
        with refuses(dp.InvalidArgument):
            served.request("ann", "POST", f"/tables/{name}/explain", body)
        job = served.request("ann", "POST", f"/tables/{name}/questions?wait=30", body)
        while job["state"] == "waiting":
            job = served.request("ann", "GET", f"/jobs/{job['id']}?wait=30")
        assert job["state"] == "refused"
    with dp.connect(served.url + name, token=served.tokens["ann"]) as table:
        assert table.left == dp.PureDP(10)


def test_a_server_that_was_killed_and_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(transports, "_PAUSES", (0.0, 0.0, 0.0))
    with serving(tmp_path) as served:
        name = served.add(CARD, rows=ROWS)
        table = dp.connect(served.url + name, token=served.tokens["ann"])
        answer = table.agg(n=dp.count()).release(epsilon=1, key="mine")
        served.process.send_signal(signal.SIGKILL)
        served.process.wait()
        with refuses(dp.ServerUnavailable, "charged once"):
            table.agg(n=dp.count()).release(epsilon=1, key="mine")
    with dp.open(str(tmp_path / f"{name}.toml"), read_only=True) as here:
        assert here.left == dp.PureDP(9)
        assert here.ledger.verify().entries >= 3
    assert answer.columns == ("n",)
