"""Between the end of the work and its tick, nothing says that a question has ended."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa
from serving import BY_REGION, COUNT, fill

from dither.server.errors import Conflict, NotFound, TooMany

TICK = 1.5


@pytest.fixture(scope="module")
def slow_site(start_site, tmp_path_factory):
    site = start_site(fill(tmp_path_factory.mktemp("ticking")), tick=TICK, max_questions_each=2)
    ended_before_its_tick(site)
    return site


def answers_in_the_ledger(site):
    ledger = site.service.context.folder.ledger("visits")
    return sum(entry.kind == "answer" for entry in ledger.history("visits"))


def ended_before_its_tick(site, sql=COUNT):
    """A question whose answer is in the ledger although its tick is still half a tick away, and when it was asked."""
    ann, questions = site.people["ann"], site.service.questions
    for number in range(20):
        before, options = answers_in_the_ledger(site), {"epsilon": 0.5 + number / 1000 + time.time() % 1 / 10_000}
        asked_at = time.time()
        job = questions.ask(ann, "visits", sql, options)
        while time.time() < asked_at + TICK / 2:
            if answers_in_the_ledger(site) > before:
                time.sleep(0.1)  # the store has it, too
                return job, options, asked_at
            time.sleep(0.02)
        while questions.job(ann, job.id).state == "waiting":  # a loaded machine: once more
            time.sleep(0.05)
    raise AssertionError("no question ended within half a tick")


def is_early(asked_at):
    return time.time() < asked_at + TICK


def test_an_answer_is_in_no_list_and_cannot_be_asked_for_again_before_its_tick(slow_site):
    ann, service = slow_site.people["ann"], slow_site.service
    job, options, asked_at = ended_before_its_tick(slow_site)
    known = {line.cost for line in service.answers.mine(ann)}
    again = service.questions.ask(ann, "visits", COUNT, options)
    state = service.questions.job(ann, job.id)
    row = service.context.store.one(  # what an attacker cannot read: it is there already
        sa.text(f"SELECT answer FROM server_job WHERE id = '{job.id}'")
    )
    with pytest.raises(NotFound):
        service.answers.answer(ann, row[0])
    with pytest.raises(NotFound):
        service.questions.job(ann, f"recorded-{row[0]}")
    assert is_early(asked_at), "the machine is too slow for this test"
    assert (again.id, again.state, state.state) == (job.id, "waiting", "waiting")
    while service.questions.job(ann, job.id).state == "waiting":
        time.sleep(0.05)
    record = service.answers.answer(ann, row[0])
    assert record.cost not in known
    ticks = [asked_at + TICK * 2**k for k in range(6)]
    shown = service.context.store.one(sa.text(f"SELECT at FROM server_answer WHERE id = '{row[0]}'"))
    assert min(abs(shown[0] - tick) for tick in ticks) < 0.3  # when it was recorded is a tick, and not a duration
    assert service.questions.ask(ann, "visits", COUNT, options).answer_id == row[0]


def test_neither_a_place_nor_a_worker_is_free_before_the_tick(slow_site):
    ann, service = slow_site.people["ann"], slow_site.service
    job, _, asked_at = ended_before_its_tick(slow_site)
    wrong = service.questions.ask(ann, "visits", "SELECT nonsense", {"epsilon": 1})
    with pytest.raises(TooMany):
        service.questions.ask(ann, "visits", BY_REGION, {"epsilon": 1})
    while service.questions.job(ann, wrong.id).state == "waiting":
        time.sleep(0.01)
    assert not is_early(asked_at)  # refused at once, by a worker that was free from the tick on
    assert service.questions.job(ann, job.id).state == "answered"


def test_the_title_of_a_published_answer_is_the_stewards(slow_site):
    ann, sam, service = slow_site.people["ann"], slow_site.people["sam"], slow_site.service
    line = service.answers.mine(ann)[0]
    service.answers.propose(ann, line.id, "Visits")
    service.answers.publish(sam, line.id, "Visits")
    with pytest.raises(Conflict, match="published"):
        service.answers.propose(ann, line.id, "Buy now")
    assert [item.title for item in service.answers.published(slow_site.people["rea"])] == ["Visits"]


def test_text_that_is_no_unicode_is_refused(slow_site):
    client = slow_site.client("ann")
    body = b'{"question": {"sql": "SELECT COUNT(*) AS \\ud800 FROM visits"}, "options": {"epsilon": 1}}'
    for action in ("explain", "questions"):
        response = client.post(f"/api/v1/tables/visits/{action}", content=body)
        assert (response.status_code, response.json()["title"]) == (422, "InvalidArgument")
