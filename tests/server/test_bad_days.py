"""A full disk, a restarted database, no room for another process: the server answers again when they are over."""

from __future__ import annotations

import asyncio
import resource
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
from serving import COUNT, fill, until_it_ends

from dither.server import pool as pool_module
from dither.server import schema
from dither.server.pool import Clock, Process
from dither.server.service import Service
from dither.wire.protocol import API
from support import eventually


@pytest.fixture
def held(start_site, tmp_path, monkeypatch):
    """Starts a site whose workers wait between their charge and the rows for as long as there is a file ``hold``."""
    monkeypatch.setattr(Process, "program", (str(Path(__file__).with_name("holding_worker.py")),))
    monkeypatch.setenv("HOLD_WORKER", str(tmp_path / "hold"))

    def start(ledger="visits.sqlite", **options):
        card = fill(tmp_path) / "visits.toml"
        card.write_text(card.read_text().replace("visits.sqlite", ledger))
        site = start_site(tmp_path, tick=0.2, workers=2, time_limit=600.0, **options)
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


@contextmanager
def full_disk(*pids):
    """No file of these processes may grow, or be written beyond its first bytes: as on a disk without room."""
    before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in (0, *pids)}
    try:
        for pid, (_, hard) in before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, hard))
        yield
    finally:
        for pid, limits in before.items():
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


@pytest.mark.slow
def test_a_disk_that_is_really_full_gives_503_and_then_answers_again(start_site, tmp_path):
    """The kernel refuses every write of the server and its workers: of the store, the ledgers, receipts and logs."""
    site = start_site(fill(tmp_path), workers=2, warm=True)
    pool = site.service.context.pool
    with site.client("ann") as client:
        eventually(lambda: client.get("/ready").status_code == 200)
        recorded = site.service.questions.ask(site.people["ann"], "visits", COUNT, {"epsilon": 0.25})
        assert end_of(site, "ann", recorded) == ("answered", None)
        body = {"question": {"sql": COUNT}, "options": {"epsilon": 0.5, "again": True}}
        path = f"{API}/tables/visits/questions"
        unused = sa.update(schema.tokens).values(used_at=0.0)
        site.service.context.store.run(unused)  # so that the next request is to be written down
        with full_disk(*pool.pids):
            refused = [client.post(path, json=body) for _ in range(3)]
            refused.append(client.post(f"{API}/answers/x/propose", json={"title": "x"}))
            assert client.get(f"{API}/tables").status_code == 200  # what only reads goes on
            assert client.post(path, json={**body, "options": {"epsilon": 0.25}}).json()["state"] == "answered"
            page = client.get("/sign-in")
            assert page.status_code == 200
        for response in refused[:3]:
            problem = response.json()
            assert (response.status_code, problem["title"]) == (503, "ServerUnavailable")
            assert int(response.headers["retry-after"]) > 0
            assert not {"disk", "sqlite", "database", "foresaw"} & set(response.text.lower().split())
        assert refused[3].status_code == 404  # a refusal stays one
        assert client.get("/ready").status_code == 200
        for _ in range(2):
            ended = until_it_ends(client, client.post(f"{path}?wait=60", json=body)).json()
            assert (ended["state"], ended["problem"]) == ("answered", None)
    assert site.service.chain.verify(site.people["aud"], "visits").ok


@pytest.mark.slow
def test_a_disk_that_fills_up_while_questions_are_computed(held, log_lines):
    """The workers can record neither answers nor incidents: the server records them when there is room, and answers."""
    site = held()
    jobs = under_way(site)
    with full_disk(*site.service.context.pool.pids):
        (site.folder / "hold").unlink()
        eventually(lambda: len(log_lines("cannot be written down")) >= 4)
    ends = {name: end_of(site, name, job) for name, job in jobs.items()}
    assert {(state, problem["title"]) for state, problem in ends.values()} == {("failed", "DataIncident")}
    assert [end_of(site, name, ask(site, name)) for name in ("ann", "bob", "ann")] == [("answered", None)] * 3
    ledger = site.service.context.folder.ledger("visits")
    history = list(ledger.history("visits"))
    assert {kind: sum(entry.kind == kind for entry in history) for kind in ("charge", "answer", "incident")} == {
        "charge": 5, "answer": 3, "incident": 2
    }  # fmt: skip
    assert dict(ledger.incidents_by_analyst("visits")) == {"ann": 1, "bob": 1}
    assert site.service.chain.verify(site.people["aud"], "visits").ok


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
def test_whoever_asks_two_processes_finds_every_question_and_answer(start_site, tmp_path, postgresql):
    """The same questions at the same moment to both, looked up at either: none is missing."""
    first = start_site(fill(tmp_path), database=postgresql, max_questions_each=100)
    second = Service.start(first.service.config, Clock(first.service.context.clock.origin))
    ann, failures, answered = first.people["ann"], [], []
    services = (first.service, second)

    def ask_both(place):
        for i in range(4):
            asked, looked_up = services[place % 2], services[(place // 2) % 2]
            try:
                job = asked.questions.ask(ann, "visits", COUNT, {"epsilon": 0.5 + i / 16})
                ended = asyncio.run(looked_up.questions.wait(ann, job.id, seconds=600.0))
                answered.append((ended.state, looked_up.answers.of_job(ann, ended.answer_id)["receipt"]))
                asked.answers.answer(ann, ended.answer_id)
            except Exception as error:
                failures.append(repr(error))

    threads = [threading.Thread(target=ask_both, args=(place,)) for place in range(8)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
    finally:
        second.stop()
    assert failures == []
    assert {state for state, _ in answered} == {"answered"}
    assert (len(answered), len({receipt for _, receipt in answered})) == (32, 4)


@pytest.mark.slow
def test_a_restarted_database_that_holds_the_ledger_too(held, postgresql_server, postgresql, monkeypatch, log_lines):
    """Paid questions that cannot be recorded are incidents; what is asked while it is down is 503, then answered."""
    monkeypatch.setenv("DITHER_LEDGER_KEY", "ab" * 32)
    site = held(database=postgresql, ledger=postgresql)
    jobs = under_way(site)
    postgresql_server.halt()
    (site.folder / "hold").unlink()
    eventually(lambda: len(log_lines("cannot be written down")) >= 4)
    with site.client("ann") as client:
        for response in (client.get(f"{API}/tables"), client.get("/ready")):
            assert response.status_code == 503
    postgresql_server.start()
    ends = {name: end_of(site, name, job) for name, job in jobs.items()}
    assert {(state, problem["title"]) for state, problem in ends.values()} == {("failed", "DataIncident")}
    assert [end_of(site, name, ask(site, name)) for name in ("ann", "bob", "ann")] == [("answered", None)] * 3
    ledger = site.service.context.folder.ledger("visits")
    assert dict(ledger.incidents_by_analyst("visits")) == {"ann": 1, "bob": 1}
    assert site.service.context.pool.ready == 2
