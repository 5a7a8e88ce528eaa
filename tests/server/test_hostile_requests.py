"""Requests that nobody sends by accident: at the same moment, in broken text, many at once, with another host."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from serving import COUNT, fill

from dither.server.auth import Authentication
from dither.server.errors import NotSignedIn, TooMany
from dither.server.jobs import Submission
from dither.server.limits import RateLimit
from support import eventually


def test_the_same_question_at_the_same_moment_is_one_job(site, monkeypatch):
    context = site.service.context
    jobs, store = context.jobs, context.store
    message = {
        "do": "ask", "card": context.folder.get("visits").document, "question": {"sql": COUNT},
        "options": {"epsilon": 0.25}, "analyst": "ann", "key": "ann/at once",
    }  # fmt: skip
    asked = Submission("ann", "visits", "question", COUNT, {"epsilon": 0.25}, "a" * 64, message)
    log = context.events.line("ann", "questions.ask", "visits")
    second, threads, run = [], [], store.run

    def ask_too():
        job = jobs.start(asked, log)
        second.append((job.id, jobs.get(job.id, "ann").state))  # whoever is told of it can find it

    def slow(*statements):
        if threading.current_thread() is threading.main_thread() and not threads:
            threads.append(threading.Thread(target=ask_too))
            threads[0].start()  # while the first one is being written down, somebody asks the same
            waiting = jobs._by_request[asked.request].written._condition
            eventually(lambda: waiting._waiters or not threads[0].is_alive())
        return run(*statements)

    monkeypatch.setattr(type(store), "run", lambda _, *statements: slow(*statements))
    first = jobs.start(asked, log)
    monkeypatch.undo()
    threads[0].join(600)
    assert second == [(first.id, "waiting")]


@pytest.mark.parametrize(
    ("who", "path", "body"),
    [
        ("ann", "tables/visits/explain", b'{"question": {"sql": "SELECT \\ud800"}}'),
        ("ann", "tables/visits/questions", b'{"question": {"tree": {"is": "\\udfff"}}, "options": {"epsilon": 1}}'),
        ("sam", "grants", b'{"user": "x\\ud800", "table": "visits"}'),
        ("sam", "grants", b'{"user": "ann", "table": "v\\ud800"}'),
        ("ann", "answers/0/propose", b'{"title": "\\ud800"}'),
        ("aud", "tables/visits/verify", b'{"receipt": "\\ud800"}'),
    ],
)
def test_text_that_is_no_unicode_is_refused_wherever_it_stands(site, who, path, body):
    response = site.client(who).post(f"/api/v1/{path}", content=body)
    assert (response.status_code, response.json()["name"]) == (422, "body")


def test_pairs_of_surrogates_are_text(site):
    response = site.client("sam").post("/api/v1/grants", content=b'{"user": "\\ud83d\\ude00", "table": "visits"}')
    assert response.status_code == 404


@pytest.mark.slow
def test_one_analyst_cannot_fill_the_queue_of_explanations(start_site, tmp_path, monkeypatch):
    site = start_site(fill(tmp_path), max_questions_each=2)
    ann, questions, pool = site.people["ann"], site.service.questions, site.service.context.explaining
    refused, explained, hold, call = [], [], threading.Event(), pool.call

    def held(message, seconds):
        hold.wait(600)
        return call(message, seconds)

    def explain():
        try:
            explained.append(questions.explain(ann, "visits", COUNT, {"epsilon": 1}))
        except TooMany as error:
            refused.append(error)

    monkeypatch.setattr(pool, "call", held)
    threads = [threading.Thread(target=explain) for _ in range(6)]
    for thread in threads:
        thread.start()
    while len(refused) < 4 and sum(thread.is_alive() for thread in threads) > 2:
        threads[0].join(0.05)
    hold.set()
    for thread in threads:
        thread.join(600)
    assert (len(refused), len(explained)) == (4, 2)
    questions.explain(ann, "visits", COUNT, {"epsilon": 1})  # the places are free again


@pytest.mark.parametrize("path", ["/account/", "/static", "/sign-in/", "/api/v1/tables/"])
def test_no_redirect_goes_where_the_request_says_the_host_is(site, path):
    response = site.client().get(path, headers={"host": "evil.example"}, follow_redirects=False)
    assert "evil.example" not in response.headers.get("location", "")


def test_a_token_that_is_revoked_cannot_fill_the_event_log(site):
    context, bob = site.service.context, site.people["bob"]
    made = site.service.accounts.create_token(bob, "lost", scopes=["ask"])
    site.service.accounts.revoke_token(bob, made.token.id)
    auth = Authentication(replace(context, requests=RateLimit(2, clock=lambda: 0.0)))
    refused = []
    for _ in range(10):
        with pytest.raises((NotSignedIn, TooMany)) as error:
            auth.principal_of_token(made.secret)
        refused.append(type(error.value))
    assert refused == [NotSignedIn] * 2 + [TooMany] * 8
    events = site.service.chain.events(site.people["aud"], user="bob", most=1000)
    assert sum(event.subject == made.token.hint for event in events) == 2
