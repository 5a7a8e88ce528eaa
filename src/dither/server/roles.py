"""Who acts, and what each role may do: one table of actions, which every use case asks.

No action reads rows. ``scope`` is what a personal token must have been given for an action; an action without a scope
takes a person who signed in, so that a stolen token can neither make tokens nor change users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dither.errors import AccessDenied


@dataclass(frozen=True)
class Principal:
    """An authenticated user.

    ``name`` is the user's name, and the analyst's name in the ledger. ``scopes`` are those of the token, None with a
    session, which has all. ``credential`` is the id of the session or token, for the event log and to end it.
    """

    name: str
    roles: frozenset[str]
    scopes: frozenset[str] | None = None
    credential: str = ""


Role = Literal["steward", "analyst", "auditor", "reader"]

ROLES: tuple[Role, ...] = ("steward", "analyst", "auditor", "reader")

Scope = Literal["explain", "ask", "read", "audit", "publish", "steward"]

SCOPES: tuple[Scope, ...] = ("explain", "ask", "read", "audit", "publish", "steward")


class Forbidden(AccessDenied):
    """The principal may not do this; the error names the missing role or scope."""


@dataclass(frozen=True)
class Rule:
    """Who may do an action: users with one of the roles, by a session or by a token with the scope (None: no token)."""

    roles: frozenset[Role]
    scope: Scope | None
    words: str


def _rule(roles: str, scope: Scope | None, words: str) -> Rule:
    """Build a rule from role names in one text, separated by spaces, or ``all``."""
    named = ROLES if roles == "all" else tuple(role for role in ROLES if role in roles.split())
    return Rule(frozenset(named), scope, words)


ACTIONS: dict[str, Rule] = {
    "tables.list": _rule("steward analyst auditor", "explain", "list tables"),
    "tables.card": _rule("steward analyst auditor", "explain", "see what is public about a table"),
    "tables.gaps": _rule("steward auditor", "steward", "see what a card leaves open"),
    "tables.sign": _rule("steward", None, "sign off a changed card"),
    "questions.explain": _rule("analyst", "explain", "explain a question"),
    "questions.ask": _rule("analyst", "ask", "ask a question"),
    "questions.job": _rule("steward analyst", "ask", "see the state of your question"),
    "questions.cancel": _rule("steward analyst", "ask", "cancel your question"),
    "answers.own": _rule("steward analyst", "read", "see your answers"),
    "answers.published": _rule("all", "read", "see published answers"),
    "answers.publish": _rule("steward", "publish", "publish an answer to readers"),
    "answers.propose": _rule("analyst", "ask", "ask a steward to publish your answer"),
    "budget.own": _rule("analyst", "explain", "see your remaining budget"),
    "budget.dataset": _rule("steward auditor", "audit", "see the accounts of a table"),
    "plans.list": _rule("steward", "publish", "list the plans of publications"),
    "plans.explain": _rule("steward", "publish", "explain a plan"),
    "plans.release": _rule("steward", "publish", "release a plan"),
    "profiles.forecast": _rule("steward", "publish", "see what a profile would show and cost"),
    "profiles.release": _rule("steward", "publish", "buy a profile of a table"),
    "users.list": _rule("steward", "steward", "list users"),
    "users.change": _rule("steward", None, "add and change users"),
    "grants.list": _rule("steward auditor", "steward", "list grants"),
    "grants.change": _rule("steward", "steward", "grant and revoke tables"),
    "limits.list": _rule("steward auditor", "audit", "list changes of limits"),
    "limits.propose": _rule("steward", None, "propose a new limit"),
    "limits.approve": _rule("steward", None, "approve a new limit"),
    "incidents.list": _rule("steward auditor", "audit", "see incidents"),
    "incidents.reopen": _rule("steward", None, "reopen a table after incidents"),
    "chain.read": _rule("steward auditor", "audit", "read the history of a ledger"),
    "chain.verify": _rule("steward auditor", "audit", "verify a ledger, and keep its receipt"),
    "events.read": _rule("steward auditor", "audit", "read the event log"),
    "account.own": _rule("all", None, "change your password and end your sessions"),
    "tokens.own": _rule("all", None, "make, list and revoke your tokens"),
}


def may(principal: Principal, action: str) -> bool:
    """Return whether a principal may do an action.

    >>> ann = Principal("ann", frozenset({"analyst"}))
    >>> may(ann, "questions.ask"), may(ann, "users.change")
    (True, False)
    """
    rule = ACTIONS[action]
    by_role = bool(rule.roles & principal.roles)
    return by_role and (principal.scopes is None or rule.scope in principal.scopes)


def authorize(principal: Principal, action: str) -> None:
    """Raise Forbidden unless a principal may do an action."""
    if may(principal, action):
        return
    rule = ACTIONS[action]
    if not rule.roles & principal.roles:
        expected = f"the role {' or '.join(role for role in ROLES if role in rule.roles)}, to {rule.words}"
        got = ", ".join(role for role in ROLES if role in principal.roles) or "no role"
        raise Forbidden("role", expected, got, "ask a steward for the role")
    if rule.scope is None:
        fix = "sign in on the page"
        raise Forbidden("token", f"a session, to {rule.words}", "a token", fix)
    got = ", ".join(sorted(principal.scopes or ())) or "none"
    raise Forbidden("scope", f"{rule.scope}, to {rule.words}", got, "make a token with this scope")
