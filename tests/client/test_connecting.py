"""What ``dither.connect`` returns: the table that is named or the only one, otherwise a connection with all of them."""

from __future__ import annotations

import copy
import io
import pickle

import pyarrow as pa
import pytest

import dither as dp
from client.fake_server import TOKEN, FakeServer, fake_server
from dither.client import connecting
from dither.client.transport import Transport
from dither.ledger.accounts import Remaining
from dither.tables.card.model import ColumnCard, PublicTable
from dither.tables.codec import to_json
from dither.wire.protocol import MAX_KEY
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
            document["tables"] += [
                {"name": "<b>", "left": to_json(Remaining(dp.PureDP(1)))},
                {"name": "hidden", "granted": False},
            ]
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


COUNT = "SELECT COUNT(*) AS n FROM data"


@pytest.fixture
def asked():
    rows = pa.table({"age": [30, 40] * 50})
    with (
        dp.open(rows, budget=dp.PureDP(10)) as table,
        fake_server(table) as (fake, url),
        dp.connect(url, token=TOKEN) as connected,
    ):
        yield fake, connected


def test_a_job_is_followed_to_its_end(asked):
    fake, table = asked
    fake.waiting = ["waiting"] * 4
    assert table.sql(COUNT).release(epsilon=1).columns == ("n",)
    waits = [path for method, path, _ in fake.seen if "/jobs/" in path]
    assert len(waits) == 5
    assert all("wait=" in path for path in waits)


def test_an_interrupt_cancels(asked, monkeypatch):
    fake, table = asked
    fake.waiting = ["waiting"] * 4
    real = Transport.request

    def interrupted(self, method, path, *more, **options):
        if method == "GET" and "/jobs/" in path:
            raise KeyboardInterrupt
        return real(self, method, path, *more, **options)

    monkeypatch.setattr(Transport, "request", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.sql(COUNT).release(epsilon=1)
    assert fake.work["cancel"] == 1


def test_a_question_that_somebody_cancelled(asked):
    fake, table = asked
    fake.waiting = ["cancelled"]
    with refuses(dp.Cancelled, "a cancellation"):
        table.sql(COUNT).release(epsilon=1)


@pytest.mark.parametrize("state", ["refused", "failed"])
def test_a_job_that_fails_without_saying_why(asked, state):
    fake, table = asked
    fake.waiting = [state]
    with refuses(dp.ServerUnavailable):
        table.sql(COUNT).release(epsilon=1)


def test_who_waits_sees_the_seconds():
    with connecting._Waiting(1, io.StringIO()) as waiting:
        assert waiting.text(12.7) == "dither: the server works on it, 12 s"


def test_keys_go_into_a_header(asked):
    fake, table = asked
    table.sql(COUNT).release(epsilon=1, key="my/key:1")
    assert [headers["idempotency-key"] for method, path, headers in fake.seen if "questions" in path] == ["my/key:1"]
    for key in ("ä", "two words", "line\r\nX-Other: 1", "x" * 300):
        with refuses(dp.InvalidArgument, "key"):
            table.sql(COUNT).release(epsilon=1, key=key)


def test_values_of_public_tables_are_on_the_server(asked):
    _, table = asked
    public = {"regions": PublicTable("", {"age": ColumnCard("integer"), "name": ColumnCard("text")})}
    with_public = dp.Table.remote(
        dp.Card("data", "", table.card.columns, budget=dp.PureDP(10), public=public), table.backend
    )
    question = with_public.sql("SELECT name, COUNT(*) n FROM data JOIN regions USING (age) GROUP BY name")
    with refuses(dp.InvalidArgument, "explain"):
        question.plan(epsilon=1)


def test_what_a_table_has_only_where_it_was_opened(asked):
    _, table = asked
    for name in ("engine", "accounts", "incident_log", "ledger"):
        assert not hasattr(table, name)
        with pytest.raises(AttributeError, match="on a server"):
            getattr(table, name)
    with pytest.raises(AttributeError, match="single rows are never released"):
        table.head()


def test_a_key_is_as_long_as_the_server_takes_it(asked):
    _, table = asked
    for size in (0, MAX_KEY + 1):
        with refuses(dp.InvalidArgument, "key", f"1 to {MAX_KEY} printable ASCII characters"):
            table.sql(COUNT).release(epsilon=1, key="k" * size)
    assert table.sql(COUNT).release(epsilon=1, key="k" * MAX_KEY).columns == ("n",)
