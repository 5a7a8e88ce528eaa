"""The pages of stewards and auditors: cards, budgets, people and grants, limits, incidents, ledgers, the event log."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from dither.errors import InvalidArgument
from dither.ledger import Account
from dither.ledger.accounts import promised
from dither.present.chart import spending
from dither.present.drawing import svg
from dither.server.errors import ErrorDocument
from dither.server.pages.forms import limit_of, meter
from dither.server.pages.render import Visit, download, get, post, submitted
from dither.server.roles import ROLES
from dither.server.tables import ChainEntry, DatasetBudget, LimitChange, Verification

PAGE_LENGTH = 50
ROLE_WORDS = {
    "steward": "looks after cards, limits and people",
    "analyst": "asks questions",
    "auditor": "reads and verifies the ledger",
    "reader": "sees published answers",
}
_UNITS = {"epsilon": "ε", "rho": "ρ"}


# -- overview and budgets -------------------------------------------------------------------------------------------


def overview(visit: Visit, problem: ErrorDocument | None = None, notice: str = "") -> Response:
    """Show the start page of stewards: cards with their gaps and budgets, refused cards, and pending tasks."""
    service, who, datasets = visit.service, visit.who, []
    for summary in service.tables.list(who):
        shown = service.tables.card(who, summary.name)
        item = {"name": summary.name, "open": shown.open, "gaps": shown.gaps, "left": shown.left}
        datasets.append(item | _meter(service.budgets.dataset(who, summary.name)))
    pending = sum(item.state == "pending" for item in service.budgets.changes(who))
    closed = sum(not item.open for item in service.budgets.incidents(who))
    todo = [
        {"path": path, "text": f"1 {one}" if count == 1 else f"{count} {many}"}
        for path, count, one, many in (
            ("/limits", pending, "change of a limit", "changes of limits"),
            ("/incidents", closed, "closed table", "closed tables"),
            ("/publishing", len(service.answers.proposals(who)), "answer to publish", "answers to publish"),
        )
        if count
    ]
    if datasets and not service.users.grants(who):
        todo.insert(0, {"path": "/people", "text": "Nobody may ask yet: add an analyst, and grant a table"})
    context = {"datasets": datasets, "todo": todo, "cards": service.tables.problems(who)}
    return visit.page("steward.html", problem=problem, notice=notice, can_sign=visit.may("tables.sign"), **context)


def _meter(budget: DatasetBudget) -> dict[str, Any]:
    """Return the template variables for a table's budget meter: the meter and its unit."""
    spent = budget.points[-1].total if budget.points else 0.0
    return {"meter": meter(spent, budget.limit), "unit": _UNITS.get(budget.unit, budget.unit)}


@submitted(overview)
def sign_off(visit: Visit) -> dict[str, Any]:
    """Sign off a changed card."""
    file = visit.text("file", 300)
    card = visit.service.tables.sign_off(visit.who, file, reason=visit.text("reason", 500))
    if len(card.signed_by) < card.needed:
        return {"notice": f"{file} is signed off. A second steward has to sign it off, too."}
    return {"notice": f"{file} is signed off. It takes effect when the server is restarted."}


def dataset(visit: Visit) -> Response:
    """Show a table's budget over time, its accounts and its charges."""
    budget = visit.service.budgets.dataset(visit.who, visit.part("table"))
    points = [(datetime.fromisoformat(point.at), point.total) for point in budget.points]
    context = {"budget": budget, **_meter(budget)}
    title = "What was spent over time, as steps; the table of questions has the same numbers"
    chart = spending(points, budget.limit, title=title, unit=context["unit"])
    context["picture"] = Markup(svg(chart, width=900)) if points else ""
    accounts = [account_words(account) for account in budget.accounts]
    return visit.page("dataset.html", accounts=accounts, can_change=visit.may("limits.propose"), **context)


def account_words(account: Account) -> dict[str, str]:
    """Return an account as texts for a template; of people's accounts only the limit, since spending is private."""
    if account.kind == "people":
        return {"whose": "each person", "limit": str(account.limit), "spent": "private", "left": "private"}
    whose = f"analyst {account.name}" if account.kind == "analyst" else "the whole table"
    spent, left = str(account.spent or "nothing"), str(account.left or "nothing")
    return {"whose": whose, "limit": str(account.limit or "none"), "spent": spent, "left": left}


# -- people ---------------------------------------------------------------------------------------------------------


def people(visit: Visit, problem: ErrorDocument | None = None, notice: str = "", link: Any = None) -> Response:
    """Show users and grants; ``link`` is a new one-time link to be passed on, ``problem`` an error in the form."""
    service, who = visit.service, visit.who
    context = {
        "users": service.users.list(who),
        "grants": service.users.grants(who),
        "tables": service.tables.list(who),
        "roles": ROLES,
        "role_words": ROLE_WORDS,
        "link": link,
    }
    return visit.page("people.html", problem=problem, notice=notice, **context)


@submitted(people)
def change_people(visit: Visit) -> dict[str, Any]:
    """Handle the forms of the page about people: the last part of the path says which one was sent.

    Return the template's variables: a notice, and the address of a link for the user where one was made.
    """
    users, who = visit.service.users, visit.who
    name, table = visit.text("name", 200) or visit.text("user", 200), visit.text("table", 200)
    match visit.request.path_params.get("what", "add"):
        case "add":
            identity = visit.text("identity", 300) or None
            user, address = users.add(who, name, roles=visit.texts("role"), identity=identity)
            return {"notice": f"{user.name} is added.", "link": _link(visit, user.name, address)}
        case "roles":
            users.change(who, name, roles=visit.texts("role"))
            notice = f"The roles of {name} are changed."
        case "stop":
            users.change(who, name, active=False)
            notice = f"{name} may not sign in any more. Sessions and tokens have ended."
        case "admit":
            users.change(who, name, active=True)
            notice = f"{name} may sign in again."
        case "invite":
            return {"link": _link(visit, name, users.invite(who, name))}
        case "end-all":
            users.end_all(who)
            notice = "Everybody else is signed out, all tokens are revoked, and unused links are void."
        case "grant":
            users.grant(who, name, table, limit=limit_of(visit.form), first=visit.text("first", 10) == "yes")
            notice = f"{name} may ask {table}."
        case "revoke":
            users.revoke(who, name, table)
            notice = f"{name} may not ask {table} any more. What was asked stays recorded and paid."
        case _:
            raise InvalidArgument("The page has no such form. Load the page again.")
    return {"notice": notice}


def _link(visit: Visit, name: str, path: str) -> dict[str, str] | None:
    """Return a one-time link for a template; None for an empty path."""
    return {"name": name, "address": visit.service.config.url + path} if path else None


# -- limits ---------------------------------------------------------------------------------------------------------


def limits(visit: Visit, problem: ErrorDocument | None = None, notice: str = "") -> Response:
    """Show changes of limits: pending ones and earlier ones."""
    service, who = visit.service, visit.who
    changes = [vars(item) | {"whose": _whose(item)} for item in service.budgets.changes(who)]
    users = service.users.list(who) if visit.may("users.list") else ()
    context = {
        "pending": [item for item in changes if item["state"] == "pending"],
        "done": [item for item in changes if item["state"] != "pending"],
        "tables": service.tables.list(who),
        "table": visit.asked("table"),
        "analysts": [user.name for user in users if "analyst" in user.roles],
        "can_change": visit.may("limits.propose"),
        "single_steward": service.config.single_steward,
    }
    return visit.page("limits.html", problem=problem, notice=notice, **context)


def _whose(change: LimitChange) -> str:
    """Return whose limit a change concerns, as text."""
    if change.analyst is not None:
        return f"for the analyst {change.analyst}"
    return "for each person" if change.each_person else "for the whole table"


@submitted(limits)
def change_limits(visit: Visit) -> dict[str, str]:
    """Propose, approve or withdraw a change of a limit, as the path says; return the notice to show.

    The field ``whose`` is ``analyst:NAME``, ``person`` for the limit of each person, or anything else for the table's.
    """
    budgets, who, what = visit.service.budgets, visit.who, visit.request.path_params.get("what", "propose")
    if what == "approve":
        budgets.approve(who, visit.text("change", 200))
        return {"notice": "The limit is changed."}
    if what == "withdraw":
        budgets.withdraw(who, visit.text("change", 200))
        return {"notice": "The change is withdrawn."}
    limit, whose = limit_of(visit.form), visit.text("whose", 300)
    if limit is None:
        raise InvalidArgument("limit", "ε, or ρ", "empty fields", "write the new limit")
    change = budgets.propose(
        who,
        visit.text("table", 200),
        limit,
        reason=visit.text("reason", 500),
        analyst=whose.removeprefix("analyst:") if whose.startswith("analyst:") else None,
        each_person=whose == "person",
    )
    return {"notice": "The limit is changed." if change.state == "done" else "The change waits for a second steward."}


# -- incidents ------------------------------------------------------------------------------------------------------


def incidents(visit: Visit) -> Response:
    """Show the incidents of each table."""
    states = visit.service.budgets.incidents(visit.who)
    return visit.page("incidents.html", states=states, can_reopen=visit.may("incidents.reopen"))


def reopen(visit: Visit) -> Response:
    """Reopen a table after incidents."""
    visit.service.budgets.reopen(visit.who, visit.text("table", 200), reason=visit.text("reason", 500))
    return RedirectResponse("/incidents", 303)


# -- ledgers and the event log --------------------------------------------------------------------------------------


def _after(visit: Visit) -> int:
    """Return the query parameter ``after``, the id after which a page of a list begins; 0 if it is not a number."""
    text = visit.asked("after", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0


def details_of_entry(entry: ChainEntry) -> str:
    """Return who signed a ledger entry and why, or what a charge costs and for which analyst; "" for other entries.

    >>> details_of_entry(ChainEntry(3, "", "reopen", "t", None, None, {"signed_by": "ann", "reason": "disk"}, ""))
    'signed by ann: disk'
    """
    body = entry.body
    if "signed_by" in body:
        return f"signed by {body['signed_by']}: {body.get('reason', '')}"
    if entry.kind == "charge" and "cost" in body:
        analysts = [name for _, kind, name, *_ in body.get("charged", ()) if kind == "analyst"]
        by = f", by {analysts[0]}" if analysts else ""
        return f"costs {promised(body['cost'])}{by}"
    return ""


def ledgers(visit: Visit) -> Response:
    """Show the tables whose ledgers can be read; refused without that permission."""
    visit.service.budgets.changes(visit.who)  # raises Forbidden for roles that may not read ledgers
    return visit.page("ledgers.html", tables=visit.service.tables.list(visit.who))


def ledger(visit: Visit, verification: Verification | None = None, problem: ErrorDocument | None = None) -> Response:
    """Show the entries of a table's ledger and its receipt, a page of them at a time.

    ``verification`` is the result of a verification, None if there was none, and ``problem`` its error.
    """
    chain, table, after = visit.service.chain, visit.part("table"), _after(visit)
    entries = chain.entries(visit.who, table, after=after, most=PAGE_LENGTH)
    lines = [
        vars(entry)
        | {
            "details": details_of_entry(entry),
            "body": json.dumps(dict(entry.body), indent=2, ensure_ascii=False, default=str) if entry.body else "",
        }
        for entry in entries
    ]
    context = {
        "table": table,
        "entries": lines,
        "after": after,
        "more": entries[-1].seq if len(entries) == PAGE_LENGTH else 0,
        "receipt": chain.receipt(visit.who, table),
    }
    return visit.page("ledger.html", verification=verification, problem=problem, **context)


@submitted(ledger)
def verify(visit: Visit) -> dict[str, Verification]:
    """Verify a table's ledger, also against a receipt that was kept."""
    receipt = visit.text("receipt", 400) or None
    return {"verification": visit.service.chain.verify(visit.who, visit.part("table"), receipt=receipt)}


def receipt_file(visit: Visit) -> Response:
    """Send the last receipt as a file."""
    table = visit.part("table")
    receipt = visit.service.chain.receipt(visit.who, table)
    return download(receipt + "\n", "text/plain; charset=utf-8", f"{table}-receipt.txt")


def events(visit: Visit) -> Response:
    """Show the event log."""
    user = visit.asked("user", most=100)
    lines = visit.service.chain.events(visit.who, after=_after(visit), most=PAGE_LENGTH, user=user or None)
    return visit.page("events.html", events=lines, user=user, more=lines[-1].id if len(lines) == PAGE_LENGTH else 0)


ROUTES = [
    get("/steward", overview),
    post("/steward/sign-off", sign_off),
    get("/steward/{table}", dataset),
    get("/people", people),
    post("/people", change_people),
    post("/people/{what}", change_people),
    get("/limits", limits),
    post("/limits", change_limits),
    post("/limits/{what}", change_limits),
    get("/incidents", incidents),
    post("/incidents/reopen", reopen),
    get("/ledger", ledgers),
    get("/ledger/{table}", ledger),
    post("/ledger/{table}/verify", verify),
    get("/ledger/{table}/receipt.txt", receipt_file),
    get("/events", events),
]
