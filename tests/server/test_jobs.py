"""Questions under way: they end at ticks, can be cancelled; a worker that dies leaves its charge and an incident."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from serving import BY_REGION, COUNT, StillClock, fill

import dither as dp
from dither.errors import DataIncident
from dither.ledger import chain
from dither.ledger.chain import read_receipt
from dither.server import jobs as jobs_module
from dither.server import schema
from dither.server.errors import NotFound, TooMany
from dither.server.jobs import Jobs, Submission
from dither.server.pool import Process
from dither.server.questions import Answers
from support import eventually


def ended(site, name, job):
    """A job when it has ended, seen as the person who asked sees it."""
    return asyncio.run(site.service.questions.wait(site.people[name], job.id, seconds=600.0))


def answered(site, job):
    """A job of ann's when it has ended, which has to have an answer; a failure shows the problem instead."""
    job = ended(site, "ann", job)
    assert (job.state, job.problem) == ("answered", None)
    return job


def ask(site, name="ann", sql=COUNT, key=None, table="visits", **options):
    return site.service.questions.ask(site.people[name], table, sql, {"epsilon": 0.5} | options, key=key)


def history(site, kind, table="visits"):
    return [entry for entry in site.service.context.folder.ledger(table).history(table) if entry.kind == kind]


def test_an_answer_comes_at_a_tick_and_again_at_once(site):
    before = time.time()
    job = ask(site, again=True)
    assert job.state == "waiting"
    job = answered(site, job)
    assert time.time() - before >= site.service.config.tick
    assert site.service.context.jobs.get(job.id, "ann") == job
    first = ended(site, "ann", ask(site, sql=BY_REGION))
    again = ask(site, sql=BY_REGION)
    assert (again.state, again.answer_id) == ("answered", first.answer_id)
    record = site.service.answers.answer(site.people["ann"], first.answer_id)
    assert record.answer["region"] == ["north", "south"]
    assert record.analyst == "ann"


class Held:
    """Workers that take what they are given, and end it when they are told to."""

    def submit(self, task):
        self.task = task


def held_jobs(site, tick):
    """Jobs by a clock that stands still, whose work ends when a test says so."""
    context, pool, clock = site.service.context, Held(), StillClock()
    return Jobs(replace(context.config, tick=tick), context.store, context.folder, pool, clock), pool, clock


def start(site, jobs, request):
    asked = Submission("ann", "visits", "question", COUNT, {}, request, {})
    return jobs.start(asked, site.service.context.events.line("ann", "questions.ask", "visits"))


PROBLEM = {"type": "urn:dither:BudgetExceeded", "title": "BudgetExceeded", "status": 403, "detail": "none"}


@pytest.mark.parametrize(("seconds", "tick"), [(0.0, 0.25), (0.2, 0.25), (0.26, 0.5), (0.9, 1.0), (3.0, 4.0)])
def test_what_is_seen_is_seen_at_a_tick_only(site, seconds, tick):
    jobs, pool, clock = held_jobs(site, 0.25)
    job, asked_at = start(site, jobs, f"ends after {seconds}"), clock.now()
    pool.task.begin()
    clock.go_on(asked_at + seconds)
    pool.task.ended("end", {"problem": PROBLEM, "kind": "BudgetExceeded"}, None)
    clock.go_on(asked_at + tick - 0.001)
    assert jobs.get(job.id, "ann").state == "waiting"
    assert jobs.next_look(job, clock.now()) == asked_at + tick
    clock.go_on(asked_at + tick)
    assert jobs.get(job.id, "ann").state == "refused"


def test_what_follows_from_the_question_alone_is_refused_at_once(site):
    with pytest.raises(dp.InvalidArgument):
        ask(site, epsilon=-1)
    job = ended(site, "ann", ask(site, sql="SELECT nowhere FROM visits"))
    assert (job.state, job.problem["title"]) == ("refused", "InvalidArgument")
    charges = len(history(site, "charge"))
    job = ended(site, "ann", ask(site, epsilon=5000))
    assert (job.state, job.problem["title"], job.problem["status"]) == ("refused", "BudgetExceeded", 403)
    assert len(history(site, "charge")) == charges


def test_the_same_question_under_way_is_one_question(site):
    jobs = [ask(site, key="one", again=True) for _ in range(5)]
    assert len({job.id for job in jobs}) == 1
    answered(site, jobs[0])
    assert len([entry for entry in history(site, "charge") if entry.key == "ann/one"]) == 1


def test_keys_are_each_analysts_own(site):
    first = ended(site, "ann", ask(site, key="monday"))
    theirs = ended(site, "bob", ask(site, "bob", key="monday"))
    assert theirs.state == "answered"
    assert theirs.answer_id != first.answer_id
    job = ended(site, "ann", ask(site, key="monday", sql=BY_REGION))
    assert (job.state, job.problem["name"]) == ("refused", "key")
    assert ended(site, "bob", ask(site, "bob", key="ann/monday")).answer_id != first.answer_id


def test_jobs_of_others_do_not_exist(site):
    job = ask(site, again=True)
    for method in (site.service.questions.job, site.service.questions.cancel):
        with pytest.raises(NotFound):
            method(site.people["bob"], job.id)
    with pytest.raises(NotFound):
        asyncio.run(site.service.questions.wait(site.people["bob"], job.id))
    done = ended(site, "ann", job)
    with pytest.raises(NotFound):
        site.service.questions.job(site.people["bob"], f"recorded-{done.answer_id}")


def test_a_table_that_is_not_granted_does_not_exist(site):
    for table in ("other", "nowhere", "../visits", "visits.toml"):
        with pytest.raises(NotFound, match="no such table"):
            ask(site, table=table)


@pytest.fixture(scope="module")
def fragile(start_site, tmp_path_factory):
    """A site of which the worker can be held between its charge and the rows, with room for many incidents."""
    folder = fill(tmp_path_factory.mktemp("fragile"), incidents=50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Process, "program", (str(Path(__file__).with_name("holding_worker.py")),))
        patch.setenv("HOLD_WORKER", str(folder / "hold"))
        yield start_site(folder, tick=0.2, time_limit=600.0, memory_limit_mb=3000, max_questions_each=3)


def stopped(site):
    """Stop the worker before it charges: the kernel holds it, whatever it does."""
    [pid] = site.service.context.pool.pids
    os.kill(pid, signal.SIGSTOP)
    return pid


@pytest.mark.slow
def test_a_worker_that_dies_leaves_its_charge_and_an_incident(fragile):
    site = fragile
    ended(site, "ann", ask(site, sql=BY_REGION))  # warm
    before = {kind: len(history(site, kind)) for kind in ("charge", "answer", "incident")}
    hold = site.folder / "hold"
    hold.touch()
    job = ask(site, key="never answered", epsilon=0.1)
    eventually(lambda: len(history(site, "charge")) > before["charge"])
    [pid] = site.service.context.pool.pids
    os.kill(pid, signal.SIGKILL)
    hold.unlink()
    job = ended(site, "ann", job)
    assert (job.state, job.problem["detail"]) == ("failed", str(DataIncident()))
    after = {kind: len(history(site, kind)) for kind in before}
    assert after == before | {"charge": before["charge"] + 1, "incident": before["incident"] + 1}
    assert read_receipt(site.folder / "visits.toml.receipt") == site.service.context.folder.ledger("visits").head
    answered(site, ask(site, again=True))  # another worker took its place
    assert site.service.chain.verify(site.people["aud"], "visits").ok


@pytest.mark.slow
def test_a_question_that_takes_too_long_is_ended(fragile, monkeypatch):
    site = fragile
    ended(site, "ann", ask(site))
    charges = len(history(site, "charge"))
    [pid] = site.service.context.pool.pids
    limits = Path(f"/proc/{pid}/limits").read_text()
    [space] = [line.split()[3] for line in limits.splitlines() if line.startswith("Max data size")]
    assert space == str(3000 << 20)
    stopped(site)
    monkeypatch.setattr(site.service.context.pool, "_limit", 1.0)
    job = ended(site, "ann", ask(site, again=True))
    monkeypatch.undo()
    assert job.state == "failed"
    assert job.problem["title"] == "ServerUnavailable"  # nothing was charged
    assert len(history(site, "charge")) == charges
    answered(site, ask(site, again=True))


@pytest.mark.slow
@pytest.mark.parametrize("step", [-300.0, 300.0])
def test_a_clock_that_is_set_anew_ends_no_question(fragile, monkeypatch, step):
    site, hold, real, looks = fragile, fragile.folder / "hold", time.time, []
    context = site.service.context
    stop_at = context.jobs._stop_at
    monkeypatch.setattr(context.jobs, "_stop_at", lambda job: (looks.append(job), stop_at(job))[1])
    monkeypatch.setattr(context.pool, "_limit", 200.0)
    hold.touch()
    charges = len(history(site, "charge"))
    jobs = [ask(site, again=True), ask(site, again=True)]
    eventually(lambda: len(history(site, "charge")) > charges)
    monkeypatch.setattr(time, "time", lambda: real() + step)
    seen = len(looks)
    eventually(lambda: len(looks) >= seen + 2)  # whoever waits for the worker has looked at the clock
    hold.unlink()
    wait = site.service.questions.wait
    ends = [asyncio.run(wait(site.people["ann"], job.id, seconds=60.0)) for job in jobs]
    assert [(job.state, job.problem) for job in ends] == [("answered", None)] * 2


@pytest.mark.slow
def test_cancelling_takes_effect_at_a_tick(fragile):
    site = fragile
    ended(site, "ann", ask(site, sql=BY_REGION))
    eventually(lambda: not site.service.context.jobs.under_way)  # its place is free at the same tick
    stopped(site)
    asked_at = time.time()
    jobs = [ask(site, again=True), ask(site, again=True), ask(site, key="third")]
    with pytest.raises(TooMany):
        ask(site, again=True)
    assert len(site.service.questions.jobs(site.people["ann"])) == 3
    eventually(lambda: jobs[0].id in site.service.context.jobs._began_at)  # or the worker is not ended
    charges = len(history(site, "charge"))
    assert [site.service.questions.cancel(site.people["ann"], job.id).state for job in jobs] == ["waiting"] * 3
    ends = [ended(site, "ann", job) for job in jobs]
    assert [job.state for job in ends] == ["cancelled"] * 3
    assert time.time() - asked_at >= site.service.config.tick
    assert len(history(site, "charge")) == charges
    answered(site, ask(site, again=True))


def test_the_wait_in_a_queue_is_not_doubled(site):
    """A tick counts from when a worker takes a question up: behind ten others it would otherwise be a thousand."""
    jobs, pool, clock = held_jobs(site, 5.0)
    job, asked_at = start(site, jobs, "queued"), clock.now()
    clock.go_on(asked_at + 123.0)
    pool.task.begin()
    clock.go_on(asked_at + 124.0)
    pool.task.ended("end", {"problem": PROBLEM, "kind": "BudgetExceeded"}, None)
    assert jobs.next_look(job, clock.now()) == asked_at + 128.0


def test_what_is_cancelled_stops_at_a_tick_once_it_has_begun(site):
    jobs, pool, clock = held_jobs(site, 5.0)
    job = start(site, jobs, "to be cancelled")
    assert pool.task.stop_at() is None
    jobs.cancel(job.id, "ann")
    assert pool.task.stop_at() == clock.now()  # it need not begin
    pool.task.begin()
    assert pool.task.stop_at() == clock.now() + 5.0
    pool.task.ended("stopped", {}, None)


def restarted(site):
    """The jobs as the next server process finds them."""
    context = site.service.context
    return Jobs(context.config, context.store, context.folder, context.pool, context.clock)


def test_what_a_killed_server_had_charged_is_an_incident(fragile, monkeypatch):
    """Charges without an answer, of those whose questions waited; not those of others, and not what was answered."""
    site, ledger = fragile, fragile.service.context.folder.ledger("visits")
    with monkeypatch.context() as patch:
        patch.setattr(chain, "now", lambda: "2024-01-01T00:00:00.000000+00:00")
        old = ledger.charge("visits", dp.PureDP(0.1), key="ann/before", request="old")  # of another time
    ended(site, "ann", ask(site, again=True))
    row = {
        "id": "0" * 32, "user": "ann", "dataset": "visits", "kind": "question", "question": COUNT, "server": "gone",
        "request": "none", "state": "waiting", "asked_at": time.time(),
    }  # fmt: skip
    site.service.context.store.run(schema.jobs.insert().values(**row))
    lost = ledger.charge("visits", dp.PureDP(0.1), key="ann/lost", request="lost")
    theirs = ledger.charge("visits", dp.PureDP(0.1), key="bob/theirs", request="theirs")
    before = {entry.charge for entry in history(site, "incident")}
    for _ in range(2):  # once, however often it is started
        assert restarted(site).get("0" * 32, "ann").state == "failed"
        assert {entry.charge for entry in history(site, "incident")} - before == {lost.receipt.seq}
    assert {old.receipt.seq, theirs.receipt.seq}.isdisjoint({entry.charge for entry in history(site, "incident")})
    assert read_receipt(site.folder / "visits.toml.receipt") == ledger.head


@pytest.mark.slow
def test_what_waits_when_the_server_stops_is_given_up_uncharged(fragile):
    site, context = fragile, fragile.service.context
    ended(site, "ann", ask(site))
    unanswered = len(history(site, "charge")) - len(history(site, "answer"))
    before = len(history(site, "answer"))
    pid = stopped(site)
    jobs = [ask(site, again=True) for _ in range(3)]
    context.jobs.stop()
    going_on = threading.Timer(0.5, os.kill, (pid, signal.SIGCONT))
    going_on.start()
    context.pool.stop()  # stops taking questions at once, and returns when the worker has gone on and ended
    going_on.join()
    answered = len(history(site, "answer"))
    assert len(history(site, "charge")) == answered + unanswered  # none is half charged
    # as recorded: whoever asked sees that a question was given up at its tick only
    rows = context.store.rows(sa.select(schema.jobs).where(schema.jobs.c.id.in_([job.id for job in jobs])))
    states = sorted(row.state for row in rows)
    assert states in (["failed"] * 3, ["answered", "failed", "failed"])  # the worker may have had the first one
    assert states.count("answered") == answered - before
    again = restarted(site)
    for job in jobs:  # until their ticks
        eventually(lambda job=job: again.get(job.id, "ann").state != "waiting")


def end_with(task, receipt):
    answer = {"recorded": "{}", "left": None, "replayed": False, "receipt": receipt}
    task.ended("end", {"answers": [answer], "parts": [""], "cost": "ε = 0.5"}, None)


def test_an_answer_that_another_process_recorded_is_there_when_the_question_has_ended(site):
    """Two processes were asked the same. The second one learns the answer before the tick of the first."""
    jobs, pool, clock = held_jobs(site, 1.0)
    answers = replace(site.service.context, clock=clock)
    moment = clock.now()
    first = start(site, jobs, "the same, here")
    one = pool.task
    one.begin()
    clock.go_on(moment + 4.0)
    second = start(site, jobs, "the same, there")
    other = jobs._queues["ann", "visits"][1]
    other.begin()
    clock.go_on(moment + 4.5)
    end_with(one, f"1:{'a' * 64}")  # to be seen 8 s after it began
    clock.go_on(moment + 4.6)
    end_with(other, f"1:{'a' * 64}")  # by itself, it would be seen 5 s after the first began
    for seconds, state in ((5.0, "waiting"), (7.9, "waiting"), (8.0, "answered")):
        clock.go_on(moment + seconds)
        for job in (first, second):
            shown = jobs.get(job.id, "ann")
            assert shown.state == state
            if state == "answered":
                assert Answers(answers).of_job(site.people["ann"], shown.answer_id)["receipt"] == f"1:{'a' * 64}"


ERRORS = [KeyError("x"), MemoryError(), RecursionError(), sa.exc.IntegrityError("", {}, Exception()), AssertionError()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_end_that_can_never_be_written_down_fails_the_question_and_nothing_else(site, monkeypatch, error):
    monkeypatch.setattr(jobs_module, "_PAUSES", (0.0,))
    jobs, pool, clock = held_jobs(site, 0.25)
    job = start(site, jobs, f"ends with {type(error).__name__}")
    pool.task.begin()

    def broken(*_):
        raise error

    monkeypatch.setattr(jobs, "answer_rows", broken)
    end_with(pool.task, "1:ab")
    clock.go_on(clock.now() + 1.0)
    shown = jobs.get(job.id, "ann")
    assert (shown.state, shown.problem["title"]) == ("failed", "DataIncident")
    assert jobs.under_way == 0
    assert ("ann", "visits") not in jobs._queues


def test_a_charge_is_found_by_its_number_although_the_clock_was_set_back(fragile, monkeypatch):
    site, ledger = fragile, fragile.service.context.folder.ledger("visits")
    before = {entry.charge for entry in history(site, "incident")}
    old = ledger.charge("visits", dp.PureDP(0.1), key="ann/of an hour ago", request="old", analyst="ann")
    row = {
        "id": "1" * 32, "user": "ann", "dataset": "visits", "kind": "question", "question": COUNT, "server": "gone",
        "request": "none", "state": "waiting", "asked_at": time.time() + 3600, "began_after": ledger.head.seq,
    }  # fmt: skip
    site.service.context.store.run(schema.jobs.insert().values(**row))
    lost = ledger.charge("visits", dp.PureDP(0.1), key="lost by its number", request="lost", analyst="ann")
    theirs = ledger.charge("visits", dp.PureDP(0.1), key="of another", request="theirs", analyst="bob")
    restarted(site)
    found = {entry.charge for entry in history(site, "incident")} - before
    assert found == {lost.receipt.seq}
    assert not found & {old.receipt.seq, theirs.receipt.seq}


def test_what_was_written_before_the_clock_was_set_back_is_shown(site):
    """Dates a day ahead, which no tick can be: an answer that was there stays there after the next start."""
    job = answered(site, ask(site, again=True))
    store, tomorrow = site.service.context.store, time.time() + 86400
    store.run(schema.jobs.update().where(schema.jobs.c.id == job.id).values(visible_at=tomorrow))
    store.run(schema.answers.update().where(schema.answers.c.id == job.answer_id).values(at=tomorrow))
    assert restarted(site).get(job.id, "ann").state == "answered"
    site.service.answers.answer(site.people["ann"], job.answer_id)
