"""The event log is bounded, however noisy a client is, and nobody pushes lines of changes out."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa
from serving import StillClock

from dither.server import context, schema
from dither.server.context import EventLog
from dither.server.errors import NotFound
from dither.server.store import Store

DAY = 86400.0


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path):
    place = str(tmp_path / "s.sqlite") if request.param == "sqlite" else request.getfixturevalue("postgresql")
    result = Store(place)
    yield result
    result.close()


def rows(store, **same):
    conditions = [schema.events.c[name] == value for name, value in same.items()]
    return store.rows(sa.select(schema.events).where(*conditions).order_by(schema.events.c.id))


def test_a_noisy_client_writes_little(store):
    log = EventLog(store, StillClock(), 400)
    for i in range(500):
        log.write("eve", "tables.card", f"{i} " + "x" * 10**6, refused="NotFound")
    assert len(rows(store)) <= 40
    assert max(len(row.subject) + len(row.detail) for row in rows(store)) <= 400
    log.write("ann", "tables.card", "x", refused="NotFound")  # others are written down
    log.write("eve", "users.change", "bob")  # and every change is, with what was left out before
    assert [row.detail for row in rows(store, user="ann")] == ["NotFound"]
    last = rows(store, user="eve")[-1]
    assert (last.action, last.outcome) == ("users.change", "done")
    assert "lines before this one were left out" in last.detail


def test_old_lines_are_removed_and_changes_stay_until_then(store, monkeypatch):
    monkeypatch.setattr(context, "_MOST_NOISY", 10)
    clock = StillClock()
    now = clock.now()
    line = {"user": "eve", "subject": "", "detail": ""}
    values = [
        {**line, "at": now - 401 * DAY, "action": "users.change", "outcome": "done"},
        {**line, "at": now - 399 * DAY, "action": "users.change", "outcome": "done"},
        *({**line, "at": now - i, "action": "tables.card", "outcome": "refused"} for i in range(25, 0, -1)),
        *({**line, "at": now, "action": "tables.card", "outcome": "refused", "user": "bob"} for _ in range(5)),
    ]
    job = {"user": "eve", "dataset": "t", "kind": "question", "question": "", "server": "", "request": "", "state": "x"}
    store.run(*(schema.events.insert().values(**value) for value in values))
    store.run(*(schema.jobs.insert().values(id=str(i), asked_at=now - i * DAY, **job) for i in (1, 40)))
    EventLog(store, clock, 400).prune()
    left = rows(store, user="eve")
    assert [row.action for row in left] == ["users.change"] + ["tables.card"] * 10
    assert [now - row.at for row in left[1:]] == pytest.approx(list(range(10, 0, -1)), abs=1e-3)
    assert len(rows(store, user="bob")) == 5
    assert [row.id for row in store.rows(sa.select(schema.jobs))] == ["1"]


def test_lines_are_removed_while_the_server_runs(store, monkeypatch):
    monkeypatch.setattr(context, "_PAUSE", 0.0)
    log = EventLog(store, StillClock(), 1)
    store.run(*log.line("eve", "users.change"), schema.events.update().values(at=time.time() - 2 * DAY))
    log.write("eve", "users.change", "now")
    assert [row.subject for row in rows(store)] == ["now"]


def test_refusals_of_a_user_are_bounded_through_the_service(site):
    context, bob = site.service.context, site.people["bob"]
    before = len(rows(context.store, user="bob"))
    for i in range(200):
        with pytest.raises(NotFound):
            site.service.tables.card(bob, f"table {i}")
    assert len(rows(context.store, user="bob")) - before <= 60


def test_a_refusal_stays_one_where_it_cannot_be_written_down(site, monkeypatch):
    def full(*_):
        raise sa.exc.OperationalError("INSERT", {}, Exception("database or disk is full"))

    monkeypatch.setattr(type(site.service.context.store), "run", full)
    with pytest.raises(NotFound):
        site.service.tables.card(site.people["ann"], "nowhere")
