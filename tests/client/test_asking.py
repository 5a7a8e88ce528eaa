"""Jobs are followed, and Ctrl-C cancels; what cannot be planned here is said; a closed table stays closed."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

import dither as dp
from client.fake_server import TOKEN, fake_server
from dither.client import asking
from dither.client.transport import Transport
from dither.tables.card.model import ColumnCard, PublicTable
from dither.wire import routes
from support import refuses

COUNT = "SELECT COUNT(*) AS n FROM data"


@pytest.fixture
def served():
    rows = pa.table({"age": [30, 40] * 50})
    with (
        dp.open(rows, budget=dp.PureDP(10)) as table,
        fake_server(table) as (fake, url),
        dp.connect(url, token=TOKEN) as connected,
    ):
        yield fake, connected


def test_a_job_is_followed_to_its_end(served):
    fake, table = served
    fake.waiting = ["waiting"] * 4
    assert table.sql(COUNT).release(epsilon=1).columns == ("n",)
    waits = [path for method, path, _ in fake.seen if "/jobs/" in path]
    assert len(waits) == 5
    assert all("wait=" in path for path in waits)


def test_an_interrupt_cancels(served, monkeypatch):
    fake, table = served
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


def test_a_question_that_somebody_cancelled(served):
    fake, table = served
    fake.waiting = ["cancelled"]
    with refuses(dp.Cancelled, "cancelled"):
        table.sql(COUNT).release(epsilon=1)


@pytest.mark.parametrize("state", ["refused", "failed"])
def test_a_job_that_fails_without_saying_why(served, state):
    fake, table = served
    fake.waiting = [state]
    with refuses(dp.ServerUnavailable):
        table.sql(COUNT).release(epsilon=1)


def test_who_waits_sees_the_seconds():
    with asking._Waiting(1, io.StringIO()) as waiting:
        assert waiting.text(12.7) == "dither: the server works on it, 12 s"


def test_keys_go_into_a_header(served):
    fake, table = served
    table.sql(COUNT).release(epsilon=1, key="my/key:1")
    assert [headers["idempotency-key"] for method, path, headers in fake.seen if "questions" in path] == ["my/key:1"]
    for key in ("ä", "two words", "line\r\nX-Other: 1", "x" * 300):
        with refuses(dp.InvalidArgument, "key"):
            table.sql(COUNT).release(epsilon=1, key=key)


def test_values_of_public_tables_are_on_the_server(served):
    _, table = served
    public = {"regions": PublicTable("", {"age": ColumnCard("integer"), "name": ColumnCard("text")})}
    with_public = dp.Table.asked_through(
        dp.Card("data", "", table.card.columns, budget=dp.PureDP(10), public=public), table.asker
    )
    question = with_public.sql("SELECT name, COUNT(*) n FROM data JOIN regions USING (age) GROUP BY name")
    with refuses(dp.InvalidArgument, "explain"):
        question.plan(epsilon=1)


def test_what_a_table_has_only_where_it_was_opened(served):
    _, table = served
    for name in ("engine", "accounts", "incident_log", "ledger"):
        assert not hasattr(table, name)
        with pytest.raises(AttributeError, match="on a server"):
            getattr(table, name)
    with pytest.raises(AttributeError, match="single rows are never released"):
        table.head()


def test_a_key_is_as_long_as_the_server_takes_it(served):
    _, table = served
    for size in (0, routes.MAX_KEY + 1):
        with refuses(dp.InvalidArgument, "key", f"1 to {routes.MAX_KEY} printable ASCII characters"):
            table.sql(COUNT).release(epsilon=1, key="k" * size)
    assert table.sql(COUNT).release(epsilon=1, key="k" * routes.MAX_KEY).columns == ("n",)
