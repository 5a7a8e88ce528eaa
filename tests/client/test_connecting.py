"""What ``dither.connect`` returns: the table that is named or the only one, otherwise a connection with all of them."""

from __future__ import annotations

import copy
import pickle

import pyarrow as pa
import pytest

import dither as dp
from client.fake_server import TOKEN, FakeServer, fake_server
from support import refuses


@pytest.fixture
def served():
    with dp.open(pa.table({"age": [30, 40]}), budget=dp.PureDP(10), name="visits") as table, fake_server(table) as pair:
        yield pair


def test_the_only_table_itself(served):
    _, url = served
    with dp.connect(url, token=TOKEN) as table:
        assert type(table) is dp.Table
        assert repr(table) == "Table('visits', 1 columns, unit=None)"


def test_a_table_by_its_name(served):
    _, url = served
    for table in (dp.connect(url + "visits", token=TOKEN), dp.connect(url, token=TOKEN, table="visits")):
        assert table.card.name == "visits"
    with refuses(dp.InvalidArgument, "one of visits", "'visit'"):
        dp.connect(url, token=TOKEN, table="visit")
    with refuses(dp.WrongType, "table"):
        dp.connect(url, token=TOKEN, table=5)  # type: ignore[arg-type]


def test_several_tables(served, monkeypatch):
    _, url = served
    real = FakeServer.document

    def several(self, method, parts, headers, body):
        document = real(self, method, parts, headers, body)
        if parts == ["tables"]:
            document["tables"] += [{"name": "<b>", "left": "ε = 1"}, {"name": "hidden", "granted": False}]
        return document

    monkeypatch.setattr(FakeServer, "document", several)
    with dp.connect(url, token=TOKEN) as connection:
        assert type(connection) is dp.Connection
        assert (connection.tables, list(connection), len(connection)) == (("visits", "<b>"), ["visits", "<b>"], 2)
        assert connection["visits"].card.name == "visits"
        assert repr(connection) == f"Connection({url!r})"
        assert "&lt;b&gt;" in connection._repr_html_()
        assert "<b>" not in connection._repr_html_()
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with refuses(dp.WrongType, "Connection"):
                duplicate(connection)
        with refuses(dp.InvalidArgument, "one of visits, <b>"):
            connection["none"]


def test_a_server_of_another_kind(served):
    fake, url = served
    fake.faults = [(200, b'{"hello": "world"}', {})]
    with refuses(dp.ServerUnavailable, "dither serve"):
        dp.connect(url, token=TOKEN)
