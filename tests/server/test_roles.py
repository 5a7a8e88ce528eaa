"""Who may do what: the whole table of roles and actions, and that every use case asks it."""

from __future__ import annotations

import inspect

import pytest

import dither as dp
from dither.server.errors import NotFound
from dither.server.roles import ACTIONS, ROLES, SCOPES, Forbidden, Principal, authorize, may
from support import each

# which roles may do an action, and by which scope a token may: written here by hand, from the specification
EXPECTED = """
tables.list        steward analyst auditor          explain
tables.card        steward analyst auditor          explain
tables.gaps        steward auditor                  steward
tables.sign        steward                          -
questions.explain  analyst                          explain
questions.ask      analyst                          ask
questions.job      steward analyst                  ask
questions.cancel   steward analyst                  ask
answers.own        steward analyst                  read
answers.published  steward analyst auditor reader   read
answers.publish    steward                          publish
answers.propose    analyst                          ask
budget.own         analyst                          explain
budget.dataset     steward auditor                  audit
plans.list         steward                          publish
plans.explain      steward                          publish
plans.release      steward                          publish
profiles.forecast  steward                          publish
profiles.release   steward                          publish
users.list         steward                          steward
users.change       steward                          -
grants.list        steward auditor                  steward
grants.change      steward                          steward
limits.list        steward auditor                  audit
limits.propose     steward                          -
limits.approve     steward                          -
incidents.list     steward auditor                  audit
incidents.reopen   steward                          -
chain.read         steward auditor                  audit
chain.verify       steward auditor                  audit
events.read        steward auditor                  audit
account.own        steward analyst auditor reader   -
tokens.own         steward analyst auditor reader   -
"""
TABLE = {
    action: (frozenset(roles), scope)
    for action, *roles, scope in (line.split() for line in EXPECTED.strip().splitlines())
}


def test_the_table_is_complete():
    assert TABLE.keys() == ACTIONS.keys()


@each("action", ACTIONS)
def test_every_role_and_scope_with_every_action(action):
    roles, scope = TABLE[action]
    for role in ROLES:
        session = Principal("x", frozenset({role}))
        assert may(session, action) == (role in roles)
        for scopes in (frozenset(), frozenset(SCOPES), *(frozenset({item}) for item in SCOPES)):
            token = Principal("x", frozenset({role}), scopes)
            assert may(token, action) == (role in roles and scope in scopes)
            if not may(token, action):
                with pytest.raises(Forbidden, match="Fix: "):
                    authorize(token, action)
    assert not may(Principal("x", frozenset()), action)
    assert not may(Principal("x", frozenset({"root"})), action)


# the use cases with arguments that would do, and the action that each is
CALLS = {
    ("tables", "list"): ("tables.list", ()),
    ("tables", "card"): ("tables.card", ("visits",)),
    ("tables", "problems"): ("tables.gaps", ()),
    ("tables", "sign_off"): ("tables.sign", ("nowhere.toml",), {"reason": "test"}),
    ("questions", "explain"): ("questions.explain", ("visits", "SELECT COUNT(*) AS n FROM visits", {"epsilon": 1})),
    ("questions", "ask"): ("questions.ask", ("visits", "SELECT COUNT(*) AS n FROM visits", {"epsilon": 1})),
    ("questions", "job"): ("questions.job", ("x",)),
    ("questions", "jobs"): ("questions.job", ()),
    ("questions", "cancel"): ("questions.cancel", ("x",)),
    ("answers", "mine"): ("answers.own", ()),
    ("answers", "of_job"): ("questions.job", ("x",)),
    ("answers", "propose"): ("answers.propose", ("x", "title")),
    ("answers", "proposals"): ("answers.publish", ()),
    ("answers", "publish"): ("answers.publish", ("x", "title")),
    ("answers", "unpublish"): ("answers.publish", ("x",)),
    ("answers", "published"): ("answers.published", ()),
    ("budgets", "own"): ("budget.own", ()),
    ("budgets", "dataset"): ("budget.dataset", ("visits",)),
    ("budgets", "changes"): ("limits.list", ()),
    ("budgets", "propose"): ("limits.propose", ("nowhere", dp.PureDP(1)), {"reason": "test"}),
    ("budgets", "approve"): ("limits.approve", ("x",)),
    ("budgets", "withdraw"): ("limits.propose", ("x",)),
    ("budgets", "incidents"): ("incidents.list", ()),
    ("budgets", "reopen"): ("incidents.reopen", ("nowhere",), {"reason": "test"}),
    ("plans", "list"): ("plans.list", ()),
    ("plans", "explain"): ("plans.explain", ("x",)),
    ("plans", "release"): ("plans.release", ("x",)),
    ("profiles", "forecast"): ("profiles.forecast", ("nowhere", {"epsilon": 1})),
    ("profiles", "release"): ("profiles.release", ("nowhere", {"epsilon": 1})),
    ("users", "list"): ("users.list", ()),
    ("users", "add"): ("users.change", ("Bad Name",), {"roles": ["reader"]}),
    ("users", "change"): ("users.change", ("nobody",)),
    ("users", "invite"): ("users.change", ("nobody",)),
    ("users", "end_all"): ("users.change", ()),
    ("users", "grants"): ("grants.list", ()),
    ("users", "grant"): ("grants.change", ("nobody", "visits")),
    ("users", "revoke"): ("grants.change", ("nobody", "visits")),
    ("accounts", "change_password"): ("account.own", ("wrong", "another password")),
    ("accounts", "end_sessions"): ("account.own", ()),
    ("accounts", "tokens"): ("tokens.own", ()),
    ("accounts", "create_token"): ("tokens.own", ("label",), {"scopes": []}),
    ("accounts", "revoke_token"): ("tokens.own", ("x",)),
    ("chain", "entries"): ("chain.read", ("visits",)),
    ("chain", "verify"): ("chain.verify", ("visits",)),
    ("chain", "receipt"): ("chain.verify", ("visits",)),
    ("chain", "events"): ("events.read", ()),
}
BY_OTHER_MEANS = {
    ("questions", "wait"), ("questions", "recorded"), ("answers", "answer"), ("answers", "document"),
    ("accounts", "is_empty"),
}  # fmt: skip
"""``wait`` calls ``job``; an answer that one may not see, or may not ask for, does not exist; whether there are users
is on the page before anybody signs in."""


def test_every_use_case_is_listed(site):
    groups = ("tables", "questions", "answers", "budgets", "plans", "profiles", "users", "accounts", "chain")
    methods = {
        (group, name)
        for group in groups
        for name, _ in inspect.getmembers(getattr(site.service, group), callable)
        if not name.startswith("_")
    }
    assert methods == CALLS.keys() | BY_OTHER_MEANS


@pytest.mark.parametrize("call", CALLS, ids=".".join)
def test_every_use_case_asks_the_table(site, call):
    action, arguments, *keywords = CALLS[call]
    method = getattr(getattr(site.service, call[0]), call[1])
    for role in (*ROLES, ""):
        who = Principal("nobody-in-particular", frozenset({role} - {""}), None, "none")
        try:
            method(who, *arguments, **(keywords[0] if keywords else {}))
            refused = False
        except Forbidden:
            refused = True
        except dp.DitherError:
            refused = False
        assert refused == (role not in TABLE[action][0]), role
    without_scope = Principal("nobody-in-particular", frozenset(ROLES), frozenset(), "none")
    with pytest.raises(Forbidden):
        method(without_scope, *arguments, **(keywords[0] if keywords else {}))


def test_what_one_may_not_see_does_not_exist(site):
    for who in site.people.values():
        for read in (site.service.answers.answer, site.service.answers.document):
            with pytest.raises(NotFound):
                read(who, "x")


def test_a_refusal_is_logged(site):
    with pytest.raises(Forbidden):
        site.service.users.invite(site.people["rea"], "ann")
    last = site.service.chain.events(site.people["aud"], user="rea", most=1)[0]
    assert (last.action, last.outcome, last.detail) == ("users.change", "refused", "Forbidden")
