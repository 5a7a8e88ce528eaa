"""What stewards and auditors do: cards, limits that take two, grants with accounts, incidents, publications."""

from __future__ import annotations

import asyncio
import math
from contextlib import ExitStack
from dataclasses import replace

import pytest
from serving import COUNT, fill

import dither as dp
from dither.ledger.chain import read_receipt
from dither.server import schema
from dither.server.cards import Folder, Pins
from dither.server.errors import Conflict, NotFound, TooMany
from dither.server.roles import Forbidden

PLAN = """card = "visits.toml"
tables = [["region"], []]
[budget]
rho = 0.01
"""


@pytest.fixture(scope="module")
def own(start_site, tmp_path_factory):
    """A site for what changes limits."""
    folder = fill(tmp_path_factory.mktemp("own"), epsilon=10)
    fill(folder, name="second", epsilon=5)
    (folder / "regions.toml").write_text(PLAN.replace("rho = 0.01", "epsilon = 1\ndelta = 1e-9"))
    text = (folder / "visits.toml").read_text().replace("epsilon = 10", "epsilon = 10\ndelta = 1e-6")
    (folder / "visits.toml").write_text(text)
    return start_site(folder, max_questions_each=9)


def wait(site, name, job):
    return asyncio.run(site.service.questions.wait(site.people[name], job.id, seconds=600.0))


def test_raising_a_limit_takes_two(own):
    budgets, sam, sue = own.service.budgets, own.people["sam"], own.people["sue"]
    lower = budgets.propose(sam, "second", dp.PureDP(4), reason="less is enough")
    assert (lower.state, lower.approved_by) == ("done", "sam")
    change = budgets.propose(sam, "second", dp.PureDP(6), reason="a new study")
    assert change.state == "pending"
    with pytest.raises(Forbidden, match="A second steward"):
        budgets.approve(sam, change.id)
    assert own.service.context.folder.ledger("second").left("second") == dp.PureDP(4)
    done = budgets.approve(sue, change.id)
    assert (done.state, done.approved_by) == ("done", "sue")
    assert own.service.context.folder.ledger("second").left("second") == dp.PureDP(6)
    last = [e for e in own.service.context.folder.ledger("second").history("second") if e.kind == "limit"][-1]
    assert last.body["signed_by"] == "sam, sue"
    assert str(last.receipt) == done.receipt
    for decide in (budgets.approve, budgets.withdraw):
        with pytest.raises(Conflict):
            decide(sue, change.id)
    other = budgets.propose(sam, "second", dp.PureDP(60), reason="far more")
    assert budgets.withdraw(sue, other.id).state == "withdrawn"
    with pytest.raises(dp.InvalidArgument):
        budgets.propose(sam, "second", dp.ZCDP(1), reason="another unit")
    with pytest.raises(dp.InvalidArgument):
        budgets.propose(sam, "second", dp.PureDP(1), reason="")


def test_what_a_steward_proposed_is_void_when_they_are_none_any_more(own):
    """Two stewards are two who are stewards when the limit is changed."""
    budgets, users, sam, sue = own.service.budgets, own.service.users, own.people["sam"], own.people["sue"]
    ledger = own.service.context.folder.ledger("second")
    before = ledger.left("second")
    steward = ["steward"]
    ways = [({"active": False}, {"active": True}), ({"roles": ["analyst"]}, {"roles": steward})]
    for loses, regains in ways:
        change = budgets.propose(sue, "second", dp.PureDP(500), reason="before I go")
        users.change(sam, "sue", **loses)
        assert [item.state for item in budgets.changes(sam) if item.id == change.id] == ["void"]
        users.change(sam, "sue", **regains)  # which brings nothing back
        with pytest.raises(Conflict):
            budgets.approve(sam, change.id)
    later = budgets.propose(sue, "second", dp.PureDP(500), reason="before I go")
    own.service.context.store.run(schema.users.update().where(schema.users.c.name == "sue").values(active=False))
    with pytest.raises(Conflict, match="no longer a steward"):  # however the role was lost
        budgets.approve(sam, later.id)
    own.service.context.store.run(schema.users.update().where(schema.users.c.name == "sue").values(active=True))
    budgets.withdraw(sam, later.id)
    assert ledger.left("second") == before
    assert users.change(sam, "sue", roles=["steward", "analyst"]).active  # a steward who stays one
    change = budgets.propose(sue, "second", dp.PureDP(500), reason="I stay")
    users.change(sam, "sue", roles=steward)
    assert budgets.withdraw(sam, change.id).state == "withdrawn"


def test_a_first_limit_says_whom_it_locks_out(start_site, tmp_path):
    one = start_site(fill(tmp_path))
    ledger, sam = one.service.context.folder.ledger("visits"), one.client("sam")
    grant = {"user": "ann", "table": "visits", "limit": {"kind": "pure", "epsilon": "1"}}
    refused = sam.post("/api/v1/grants", json=grant)
    assert refused.status_code == 409
    assert "and bob have none" in refused.json()["expected"]
    assert [account.kind for account in ledger.accounts("visits")] == ["dataset"]
    assert sam.post("/api/v1/grants", json=grant | {"first": "yes"}).status_code == 422
    assert sam.post("/api/v1/grants", json=grant | {"first": True}).status_code == 200
    assert sam.post("/api/v1/grants", json=grant | {"user": "bob"}).status_code == 200  # not the first any more
    useless = sam.post("/api/v1/grants", json={"user": "rea", "table": "visits"})  # who could not ask
    assert (useless.status_code, useless.json()["name"]) == (409, "limit")
    assert sam.post("/api/v1/grants", json={"user": "bob", "table": "visits"}).status_code == 200  # who has an account


def test_a_first_limit_that_locks_nobody_out_needs_no_confirmation(start_site, tmp_path):
    fill(tmp_path)
    one = start_site(fill(tmp_path, name="second"))
    users, sam = one.service.users, one.people["sam"]
    assert users.grant(sam, "ann", "second", limit=dp.PureDP(1)).limit == "ε = 1"


def test_a_limit_that_is_lower_no_longer_waits_for_a_second_steward(own, monkeypatch):
    """What is lower is judged by the limit as it is when it is changed, whatever others do at the same time."""
    from threading import Barrier, Thread

    budgets, sam, sue = own.service.budgets, own.people["sam"], own.people["sue"]
    ledger = own.service.context.folder.ledger("second")
    before = ledger.left("second")
    for _ in range(5):
        together, changes = Barrier(2), []

        def lower(who, epsilon, together=together, changes=changes):
            together.wait()
            changes.append(budgets.propose(who, "second", dp.PureDP(epsilon), reason="at once"))

        threads = [Thread(target=lower, args=args) for args in ((sam, 2), (sue, 3))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ledger.left("second") == dp.PureDP(2)  # never 3 after 2 without another steward
        pending = [change for change in changes if change.state == "pending"]
        assert len(pending) <= 1
        for change in pending:
            budgets.withdraw(sue, change.id)
        budgets.approve(sue, budgets.propose(sam, "second", before, reason="as before").id)


def test_one_steward_is_enough_where_that_is_configured(own):
    context = replace(own.service.context, config=replace(own.service.config, single_steward=True))
    budgets = type(own.service.budgets)(context)
    assert budgets.propose(own.people["sam"], "second", dp.PureDP(7), reason="more").state == "done"


def test_limits_of_the_ledger_outlive_the_card(own):
    """A limit that was changed is not what the card says; the next start takes the ledger's."""
    again = Folder(str(own.folder), Pins(own.service.context.store))
    try:
        assert again.get("second").card.budget == dp.PureDP(5)
        assert again.ledger("second").left("second") == dp.PureDP(7)
    finally:
        again.close()


def test_grants_with_an_account_of_ones_own(own):
    users, sam = own.service.users, own.people["sam"]
    with pytest.raises(NotFound):
        own.service.questions.ask(own.people["ann"], "second", COUNT, {"epsilon": 1})
    users.grant(sam, "bob", "second")
    grant = users.grant(sam, "ann", "second", limit=dp.PureDP(1), first=True)
    assert grant.limit == "ε = 1"
    sql = "SELECT COUNT(*) AS n FROM second"
    assert wait(own, "ann", own.service.questions.ask(own.people["ann"], "second", sql, {"epsilon": 0.75})).answer_id
    refused = wait(own, "ann", own.service.questions.ask(own.people["ann"], "second", sql, {"epsilon": 0.5}))
    assert refused.problem["title"] == "BudgetExceeded"
    nobody = wait(own, "bob", own.service.questions.ask(own.people["bob"], "second", sql, {"epsilon": 0.5}))
    assert nobody.state == "refused"  # from the first account on, everybody needs one
    budget = {line.table: line for line in own.service.budgets.own(own.people["ann"])}["second"]
    assert (budget.limit, budget.spent, budget.left, budget.used) == ("ε = 1", "ε = 0.75", "ε = 0.25", 0.75)
    users.revoke(sam, "ann", "second")
    with pytest.raises(NotFound):
        own.service.questions.ask(own.people["ann"], "second", sql, {"epsilon": 0.1})
    with pytest.raises(NotFound):
        users.revoke(sam, "ann", "second")
    assert {g.user for g in users.grants(own.people["aud"], table="second")} == {"bob"}


def test_a_plan_is_explained_and_released(own):
    plans, sam = own.service.plans, own.people["sam"]
    assert [(p.name, p.table, p.tables) for p in plans.list(sam)] == [("regions", "visits", ("region", "everybody"))]
    assert plans.explain(sam, "regions").cost == "(ε, δ) = (1, 1e-09)"
    job = wait(own, "sam", plans.release(sam, "regions"))
    assert (job.state, job.kind) == ("answered", "publication"), job.problem
    record = own.service.answers.answer(sam, job.answer_id)
    assert record.answer["region"] == ["north", "south"]
    assert all(error > 0 for error in record.answer.error("value"))
    assert plans.release(sam, "regions").answer_id == job.answer_id
    assert own.service.answers.publish(sam, job.answer_id, "Regions").title == "Regions"
    assert own.service.answers.answer(own.people["rea"], job.answer_id).answer == record.answer
    with pytest.raises(NotFound):
        plans.explain(sam, "visits")


def test_a_profile_is_forecast_bought_once_and_then_public(own):
    profiles, tables, sam = own.service.profiles, own.service.tables, own.people["sam"]
    assert tables.card(own.people["ann"], "visits").card.profile is None
    forecast = profiles.forecast(sam, "visits", {"epsilon": 0.5})
    assert (forecast.cost, forecast.measuring) == ("ε = 0.5", False)
    assert forecast.people_seen > 10
    for wrong in ({"epsilon": -1}, {"epsilon": 1, "columns": ["nothing"]}, {"epsilon": 1, "analyst": "ann"}):
        with pytest.raises(ValueError, match=r"epsilon|columns|analyst"):
            profiles.release(sam, "visits", wrong)
    job = profiles.release(sam, "visits", {"epsilon": 0.5})
    job = wait(own, "sam", job)
    assert (job.state, job.kind) == ("answered", "profile"), job.problem
    profile = tables.card(own.people["ann"], "visits").card.profile
    assert str(profile.cost) == "ε = 0.5"
    assert profile.tables["visits"].total.value > 0
    record = own.service.answers.answer(sam, job.answer_id)
    assert set(record.answer["column"]) >= set(profile.tables["visits"].columns)
    assert all(error > 0 for error in record.answer.error("people"))
    again = wait(own, "sam", profiles.release(sam, "visits", {"epsilon": 0.5}))
    assert again.answer_id == job.answer_id
    newer = wait(own, "sam", profiles.release(sam, "visits", {"epsilon": 0.5, "again": True}))
    assert newer.answer_id != job.answer_id
    assert tables.card(own.people["ann"], "visits").card.profile != profile
    entries = own.service.chain.entries(own.people["aud"], "visits")
    keys = [entry.key for entry in entries if entry.kind == "charge" and entry.key.startswith("profile")]
    assert len(keys) == len(set(keys)) == 2


def test_a_profile_is_not_shown_and_not_used_before_its_tick(own):
    jobs = own.service.context.jobs
    jobs._measuring["visits"] = math.inf
    assert own.service.profiles.forecast(own.people["sam"], "visits", {"epsilon": 1}).measuring
    assert own.service.tables.card(own.people["sam"], "visits").card.profile is None
    jobs._measuring["visits"] = own.service.context.clock.now()
    assert not jobs.is_measuring("visits")


def test_budgets_of_a_dataset_say_who_asked(own):
    ask = own.service.questions.ask(own.people["ann"], "visits", COUNT, {"epsilon": 0.5})
    wait(own, "ann", ask)
    budget = own.service.budgets.dataset(own.people["aud"], "visits")
    assert (budget.charges[0].analyst, budget.charges[0].question, budget.charges[0].cost) == ("ann", COUNT, "ε = 0.5")
    assert budget.points[-1].total >= 0.5
    assert budget.charges[0].answered


def test_incidents_close_a_table_until_it_is_reopened(own):
    ledger = own.service.context.folder.ledger("visits")
    for _ in range(3):
        ledger.record_incident(ledger.charge("visits", dp.PureDP(0.01)))
    state = {s.table: s for s in own.service.budgets.incidents(own.people["aud"])}["visits"]
    assert (state.count, state.open, len(state.incidents)) == (3, False, 3)
    assert not own.service.tables.card(own.people["ann"], "visits").open
    job = wait(own, "ann", own.service.questions.ask(own.people["ann"], "visits", COUNT, {"epsilon": 0.25}))
    assert job.problem["title"] == "DatasetClosed"
    assert own.service.budgets.reopen(own.people["sam"], "visits", reason="looked into").open
    assert read_receipt(own.folder / "visits.toml.receipt") == ledger.head


def test_a_card_that_is_edited_counts_from_now_on(own):
    card = own.folder / "visits.toml"
    card.write_text(card.read_text().replace('keys = ["north", "south"]', 'keys = ["north", "south", "west"]'))
    shown = own.service.tables.card(own.people["ann"], "visits").card
    assert shown.columns["region"].keys == ("north", "south", "west")
    sql = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
    job = wait(own, "ann", own.service.questions.ask(own.people["ann"], "visits", sql, {"epsilon": 0.25}))
    record = own.service.answers.answer(own.people["ann"], job.answer_id)
    assert len(record.answer) == 3


def test_a_changed_ledger_is_found(own):
    import sqlite3

    assert own.service.chain.verify(own.people["aud"], "second").ok
    receipt = own.service.chain.receipt(own.people["aud"], "second")
    assert own.service.chain.verify(own.people["aud"], "second", receipt=receipt).ok
    with sqlite3.connect(own.folder / "second.sqlite") as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = next(name for name in names if "entry" in name)
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(f"UPDATE {table} SET at = '2000' WHERE seq = 2")
    connection.close()
    result = own.service.chain.verify(own.people["aud"], "second")
    assert not result.ok
    assert "entry 2" in result.problem


def test_no_grant_is_above_what_each_analyst_has(start_site, tmp_path):
    """It would be a raise by one steward alone, with a token."""
    fill(tmp_path)
    card = tmp_path / "visits.toml"
    card.write_text(card.read_text().replace("epsilon = 1000", "epsilon = 1000\neach_analyst = { epsilon = 1 }"))
    one = start_site(tmp_path)
    sam, sue, users, budgets = one.people["sam"], one.people["sue"], one.service.users, one.service.budgets
    for limit in (dp.PureDP(1.001), dp.PureDP(1000), dp.ZCDP(0.001)):
        with pytest.raises(Forbidden, match="each analyst"):
            users.grant(sam, "ann", "visits", limit=limit)
    by_token = one.client("sam").post(
        "/api/v1/grants", json={"user": "ann", "table": "visits", "limit": {"kind": "pure", "epsilon": "15"}}
    )
    assert by_token.status_code == 403
    ledger = one.service.context.folder.ledger("visits")
    assert not [account for account in ledger.accounts("visits") if account.name == "ann"]
    users.grant(sam, "ann", "visits", limit=dp.PureDP(1))
    opened = [entry for entry in ledger.history("visits") if entry.kind == "open"][-1]
    assert opened.body["signed_by"] == "sam"
    change = budgets.propose(sam, "visits", dp.PureDP(15), reason="a census", analyst="ann")
    assert change.state == "pending"
    assert budgets.approve(sue, change.id).state == "done"
    ledger.verify()


def test_cards_that_wait_leave_threads_for_others(site):
    """A card with public tables waits for the one process that explains: beyond a few, whoever comes is refused."""
    tables = site.service.tables
    with ExitStack() as held:
        for _ in range(4):
            held.enter_context(tables._reading.taken("ann"))
        with pytest.raises(TooMany):
            tables.card(site.people["ann"], "visits")
        assert tables.card(site.people["bob"], "visits").granted
    assert tables.card(site.people["ann"], "visits").granted
