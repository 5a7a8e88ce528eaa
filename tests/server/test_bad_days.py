"""A full disk, a restarted database, no room for another process: the server answers again when they are over."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from serving import COUNT, fill
from starlette.testclient import TestClient

from dither.server import pool as pool_module
from dither.server.app import create_app
from dither.server.pool import Process
from support import eventually


@pytest.fixture
def held(start_site, tmp_path, monkeypatch):
    """Starts a site whose workers wait between their charge and the rows for as long as there is a file ``hold``."""
    monkeypatch.setattr(Process, "program", (str(Path(__file__).with_name("holding_worker.py")),))
    monkeypatch.setenv("HOLD_WORKER", str(tmp_path / "hold"))

    def start(**options):
        site = start_site(fill(tmp_path), tick=0.2, workers=2, time_limit=600.0, **options)
        (tmp_path / "hold").touch()
        return site

    return start


def ask(site, name):
    return site.service.questions.ask(site.people[name], "visits", COUNT, {"epsilon": 0.5, "again": True})


def end_of(site, name, job):
    ended = asyncio.run(site.service.questions.wait(site.people[name], job.id, seconds=120.0))
    return ended.state, ended.problem


def under_way(site):
    """Two questions of two people that have been charged and not answered."""
    jobs = {name: ask(site, name) for name in ("ann", "bob")}
    ledger = site.service.context.folder.ledger("visits")
    eventually(lambda: sum(entry.kind == "charge" for entry in ledger.history("visits")) == 2)
    return jobs


def assert_all_is_well(site, jobs):
    answered = ("answered", None)
    assert {name: end_of(site, name, job) for name, job in jobs.items()} == dict.fromkeys(jobs, answered)
    assert [end_of(site, name, ask(site, name)) for name in ("ann", "bob", "ann")] == [answered] * 3
    assert site.service.context.pool.ready == 2
    history = list(site.service.context.folder.ledger("visits").history("visits"))
    assert {kind: sum(entry.kind == kind for entry in history) for kind in ("charge", "answer", "incident")} == {
        "charge": 5, "answer": 5, "incident": 0
    }  # fmt: skip


@pytest.fixture
def log_lines(caplog):
    return lambda words: [record for record in caplog.records if words in record.getMessage()]


@pytest.mark.slow
def test_a_full_disk_loses_no_answer(held, log_lines, monkeypatch):
    site = held()
    jobs = under_way(site)
    store = site.service.context.store
    driver, write = store._connection.connection.driver_connection, store.run

    def most_pages(pages):
        with store._lock:
            return driver.execute(f"PRAGMA max_page_count = {pages}").fetchone()[0]

    def run(*statements):
        """Write what does not fit while the disk is full, before what is to be written."""
        filling = sa.text("CREATE TABLE IF NOT EXISTS filling AS SELECT randomblob(1000000) AS bytes")
        return write(filling, *statements)

    most_pages(1)  # as many as there are: SQLite then says that the disk is full
    monkeypatch.setattr(store, "run", run)
    (site.folder / "hold").unlink()
    eventually(lambda: len(log_lines("cannot be written down")) >= 4)
    most_pages(1 << 30)
    assert_all_is_well(site, jobs)


@pytest.mark.slow
def test_a_restarted_database_loses_no_answer(held, postgresql_server, postgresql, log_lines):
    site = held(database=postgresql)
    jobs = under_way(site)
    postgresql_server.halt()
    (site.folder / "hold").unlink()
    eventually(lambda: len(log_lines("cannot be written down")) >= 4)
    postgresql_server.start()
    assert_all_is_well(site, jobs)


@pytest.mark.slow
def test_a_process_that_cannot_be_started_is_started_when_it_can_be(start_site, tmp_path, monkeypatch, log_lines):
    monkeypatch.setattr(pool_module, "_BETWEEN_STARTS", 0.01)
    site = start_site(fill(tmp_path), workers=2)
    real, fails = Process.__init__, threading.Event()
    fails.set()

    def started(self, *arguments):
        if fails.is_set():
            raise OSError(24, "Too many open files")
        real(self, *arguments)

    monkeypatch.setattr(Process, "__init__", started)
    jobs = {name: ask(site, name) for name in ("ann", "bob")}
    eventually(lambda: len(log_lines("no worker can be started")) >= 10)
    fails.clear()
    assert_all_is_well(site, jobs)


@pytest.mark.slow
def test_readiness_counts_the_workers_that_live(start_site, tmp_path):
    site = start_site(fill(tmp_path), workers=2, warm=True)
    with TestClient(create_app(site.service.context.config, service=site.service)) as client:
        eventually(lambda: client.get("/ready").status_code == 200)
        assert client.get("/ready").json() == {"ready": True, "workers": 2, "of": 2, "database": True}
        assert client.get("/health").json() == {"alive": True}
        site.service.context.pool.stop()
        response = client.get("/ready")
        assert (response.status_code, response.json()["ready"], response.json()["workers"]) == (503, False, 0)
        assert client.get("/health").status_code == 200
