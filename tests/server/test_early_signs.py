"""Between the end of the work and its tick, nothing says that a question has ended.

The clock of the server stands still meanwhile, so that the tick is to come however long the machine takes.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import replace

import pytest
import sqlalchemy as sa
from serving import BY_REGION, COUNT, StillClock, fill

from dither.server import schema
from dither.server.errors import Conflict, NotFound, TooMany
from dither.server.jobs import Jobs, Submission, next_tick
from dither.server.questions import Questions
from support import eventually

TICK = 5.0
_epsilons = itertools.count(500)


@pytest.fixture(scope="module")
def still(start_site, tmp_path_factory):
    folder = fill(tmp_path_factory.mktemp("ticking"))
    return start_site(folder, clock=StillClock(), tick=TICK, max_questions_each=2)


def row_of(site, job):
    return site.service.context.store.one(sa.select(schema.jobs).where(schema.jobs.c.id == job.id))


def ended_before_its_tick(site, sql=COUNT):
    """A question whose answer is recorded although its tick is to come; with its options, and the tick."""
    ann, clock = site.people["ann"], site.service.context.clock
    options = {"epsilon": next(_epsilons) / 1000}
    job = site.service.questions.ask(ann, "visits", sql, options)
    tick = eventually(lambda: row_of(site, job).visible_at)
    assert tick == clock.now() + TICK
    return job, options, tick


@pytest.mark.slow
def test_an_answer_is_in_no_list_and_cannot_be_asked_for_again_before_its_tick(still):
    ann, service = still.people["ann"], still.service
    job, options, tick = ended_before_its_tick(still)
    known = {line.cost for line in service.answers.mine(ann)}
    again = service.questions.ask(ann, "visits", COUNT, options)
    state = service.questions.job(ann, job.id)
    answer = row_of(still, job).answer  # what an attacker cannot read: it is there already
    with pytest.raises(NotFound):
        service.answers.answer(ann, answer)
    with pytest.raises(NotFound):
        service.questions.job(ann, f"recorded-{answer}")
    assert (again.id, again.state, state.state) == (job.id, "waiting", "waiting")
    assert [item.id for item in service.questions.jobs(ann)] == [job.id]
    service.context.clock.go_on(tick)
    assert service.questions.job(ann, job.id).state == "answered"
    assert service.answers.answer(ann, answer).cost not in known
    shown = service.context.store.one(sa.select(schema.answers.c.at).where(schema.answers.c.id == answer))
    assert shown[0] == tick  # when it was recorded is a tick, and not a duration
    assert service.questions.ask(ann, "visits", COUNT, options).answer_id == answer


def test_neither_a_place_nor_a_worker_is_free_before_the_tick(still):
    ann, bob, service = still.people["ann"], still.people["bob"], still.service
    job, _, tick = ended_before_its_tick(still)
    own, of_another = (service.questions.ask(who, "visits", "SELECT nonsense", {"epsilon": 1}) for who in (ann, bob))
    with pytest.raises(TooMany):
        service.questions.ask(ann, "visits", BY_REGION, {"epsilon": 1})
    eventually(lambda: tick in service.context.clock.awaited)  # the one worker there is waits for the tick
    assert [row_of(still, waiting).visible_at for waiting in (own, of_another)] == [None, None]
    service.context.clock.go_on(tick)
    for who, waiting in ((ann, own), (bob, of_another)):  # refused at once, by a worker that is free from now on
        assert eventually(lambda waiting=waiting: row_of(still, waiting).visible_at) == tick
        assert service.questions.job(who, waiting.id).state == "refused"
    assert service.questions.job(ann, job.id).state == "answered"


class Held:
    """Workers that take what they are given, and end it when they are told to."""

    def __init__(self):
        self.tasks = []

    def submit(self, task):
        self.tasks.append(task)


def test_the_same_in_other_words_begins_when_the_first_may_be_seen(still):
    """Otherwise that it is free would tell that the first one is recorded, and when."""
    context, pool, clock = still.service.context, Held(), StillClock()
    jobs = Jobs(replace(context.config, tick=1e-3, max_questions_each=9), context.store, context.folder, pool, clock)
    log = context.events.line("ann", "questions.ask", "visits")

    def start(user, table, words):
        jobs.start(Submission(user, table, "question", words, {}, f"{user} {table} {words}", {"words": words}), log)

    for user, table, words in (
        ("ann", "visits", "one"), ("ann", "visits", "in other words"), ("ann", "visits", "once more"),
        ("ann", "other", "elsewhere"), ("bob", "visits", "of another"),
    ):  # fmt: skip
        start(user, table, words)
    assert [task.message["words"] for task in pool.tasks] == ["one", "elsewhere", "of another"]
    problem = {"type": "urn:dither:DataIncident", "title": "DataIncident", "status": 422, "detail": "none"}
    first = pool.tasks[0]
    first.begin()
    began, waited = clock.now(), []
    clock.wait = lambda until, _: waited.append((until, len(pool.tasks)))  # what begins before this is too early
    first.ended("end", {"problem": problem, "charged": True}, "key")
    assert waited == [(began + 1e-3, 3)]
    assert [task.message["words"] for task in pool.tasks[3:]] == ["in other words"]
    pool.tasks[3].ended("stopped", {}, None)
    assert [task.message["words"] for task in pool.tasks[4:]] == ["once more"]
    for task in (*pool.tasks[1:3], pool.tasks[4]):
        task.ended("stopped", {}, None)
    start("ann", "visits", "afterwards")
    assert [task.message["words"] for task in pool.tasks[5:]] == ["afterwards"]
    pool.tasks[5].ended("stopped", {}, None)


def looks(still, monkeypatch, *, began, ended, asked_for, until):
    """When a request that waits looks at a question, up to the tick at which that has ended: of this process, and of
    another. ``began`` and ``ended`` are seconds from the question to its work and to the end of it (None: it goes on).
    """
    context, clock = still.service.context, StillClock()
    config = replace(context.config, tick=1.0)
    others = Jobs(config, context.store, context.folder, Held(), clock)  # of another process, which does not work on it
    pool = Held()
    jobs = Jobs(config, context.store, context.folder, pool, clock)
    asked = Submission("ann", "visits", "question", COUNT, {}, f"looked at {time.time_ns()}", {})
    log = context.events.line("ann", "questions.ask", "visits")
    start, job = clock.now(), jobs.start(asked, log)
    problem = {"type": "urn:dither:BudgetExceeded", "title": "BudgetExceeded", "status": 403, "detail": "none"}
    steps = [(began, lambda: pool.tasks[0].begin())]
    if ended is not None:
        steps.append((ended, lambda: pool.tasks[0].ended("end", {"problem": problem, "kind": "BudgetExceeded"}, None)))

    def go_on(moment):
        while steps and start + steps[0][0] <= moment:
            clock.go_on(start + steps[0][0])
            steps.pop(0)[1]()
        clock.go_on(moment)

    go_on(start + asked_for)
    result = []
    for its in (jobs, others):
        seen, now = [], clock.now()
        questions = Questions(replace(context, jobs=its, clock=clock))

        async def sleep(seconds, seen=seen):
            seen.append(round(clock.now() + seconds - start, 6))
            go_on(clock.now() + seconds)

        if its is jobs:
            monkeypatch.setattr("dither.server.questions.asyncio.sleep", sleep)
            asyncio.run(questions.wait(still.people["ann"], job.id, seconds=until - (now - start)))
            result.append(seen)
        else:
            result.append(round(its.next_look(job, start + asked_for) - start, 6))
    if ended is None:
        pool.tasks[0].ended("stopped", {}, None)
    return result


@pytest.mark.parametrize("began", [0.0, 0.3, 2.75])
def test_a_request_that_waits_looks_at_moments_that_do_not_depend_on_the_work(still, monkeypatch, began):
    """Otherwise when it comes back tells whether the work had ended when it began to wait, in between ticks."""
    for asked_for in (0.0, began + 0.1, began + 1.7, began + 3.6, began + 3.9, began + 7.9):
        never = looks(still, monkeypatch, began=began, ended=None, asked_for=asked_for, until=began + 20)
        for seconds in (0.05, 1.6, 1.8, 3.55, 3.7, 3.85, 7.5):
            tick = began + next_tick(0.0, seconds, 1.0)
            if asked_for >= tick:
                continue
            ending = looks(
                still, monkeypatch, began=began, ended=began + seconds, asked_for=asked_for, until=began + 20
            )
            assert ending[0] == [moment for moment in never[0] if moment <= tick + 0.002], (asked_for, seconds)
            assert ending[0][-1] == pytest.approx(tick + 0.001, abs=1e-5), (asked_for, seconds)
            assert ending[1] == never[1], (asked_for, seconds)


def test_what_ends_right_before_a_tick_is_seen_at_the_next(still):
    """Writing it down takes a moment: it would be seen after the tick by as much as that takes."""
    context, pool, clock = still.service.context, Held(), StillClock()
    jobs = Jobs(replace(context.config, tick=1.0), context.store, context.folder, pool, clock)
    log, asked_at = context.events.line("ann", "questions.ask", "visits"), clock.now()
    job = jobs.start(Submission("ann", "visits", "question", COUNT, {}, "right before", {}), log)
    pool.tasks[0].begin()
    clock.go_on(asked_at + 0.99)
    problem = {"type": "urn:dither:BudgetExceeded", "title": "BudgetExceeded", "status": 403, "detail": "none"}
    pool.tasks[0].ended("end", {"problem": problem, "kind": "BudgetExceeded"}, None)
    assert row_of(still, job).visible_at == asked_at + 2.0


def test_the_title_of_a_published_answer_is_the_stewards(still):
    ann, sam, service = still.people["ann"], still.people["sam"], still.service
    job, _, tick = ended_before_its_tick(still)
    service.context.clock.go_on(tick)
    answer = service.questions.job(ann, job.id).answer_id
    service.answers.propose(ann, answer, "Visits")
    service.answers.publish(sam, answer, "Visits")
    with pytest.raises(Conflict, match="published"):
        service.answers.propose(ann, answer, "Buy now")
    assert [item.title for item in service.answers.published(still.people["rea"])] == ["Visits"]


def test_text_that_is_no_unicode_is_refused(still):
    client = still.client("ann")
    body = b'{"question": {"sql": "SELECT COUNT(*) AS \\ud800 FROM visits"}, "options": {"epsilon": 1}}'
    for action in ("explain", "questions"):
        response = client.post(f"/api/v1/tables/visits/{action}", content=body)
        assert (response.status_code, response.json()["title"]) == (422, "InvalidArgument")
