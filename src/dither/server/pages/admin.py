"""The pages of stewards and auditors: cards, budgets, people and grants, limits, incidents, ledgers, the event log."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dither.errors import InvalidArgument
from dither.ledger import Account
from dither.ledger.accounts import promised
from dither.server.errors import ErrorDocument
from dither.server.pages.charts import meter, timeline
from dither.server.pages.forms import limit_of, text_of, texts_of
from dither.server.pages.render import call, download, form_of, page, service_of, signed_in, submitted
from dither.server.roles import ROLES, Principal, may
from dither.server.tables import ChainEntry, DatasetBudget, LimitChange, Verification

ROLE_WORDS = {
    "steward": "looks after cards, limits and people",
    "analyst": "asks questions",
    "auditor": "reads and verifies the ledger",
    "reader": "sees published answers",
}

_UNITS = {"epsilon": "ε", "rho": "ρ"}


@dataclass(frozen=True)
class AccountWords:
    """An account in words."""

    whose: str
    limit: str
    spent: str
    left: str


def account_words(account: Account) -> AccountWords:
    """An account in words; of people, only their limit, since what each has spent is private."""
    if account.kind == "people":
        return AccountWords("each person", str(account.limit), "private", "private")
    whose = f"analyst {account.name}" if account.kind == "analyst" else "the whole table"
    left = account.left
    return AccountWords(whose, str(account.limit or "none"), str(account.spent or "nothing"), str(left or "nothing"))


def _meter_of(budget: DatasetBudget) -> Any:
    return meter(budget.points[-1].total if budget.points else 0.0, budget.limit)


async def _overview_page(
    request: Request, who: Principal, problem: ErrorDocument | None = None, notice: str = ""
) -> Response:
    """The cards with their gaps and budgets, those that are not in force, and what waits for a steward."""
    service, datasets = service_of(request), []
    for summary in await call(service.tables.list, who):
        shown = await call(service.tables.card, who, summary.name)
        budget = await call(service.budgets.dataset, who, summary.name)
        item = {"name": summary.name, "open": shown.open, "gaps": shown.gaps, "left": shown.left}
        datasets.append(item | {"meter": _meter_of(budget), "unit": _UNITS.get(budget.unit, budget.unit)})
    todo = []
    if datasets and not await call(service.users.grants, who):
        todo.append({"path": "/people", "text": "Nobody may ask yet: add an analyst, and grant a table"})
    pending = [item for item in await call(service.budgets.changes, who) if item.state == "pending"]
    if pending:
        todo.append({"path": "/limits", "text": _counted(len(pending), "change of a limit", "changes of limits")})
    closed = [item for item in await call(service.budgets.incidents, who) if not item.open]
    if closed:
        todo.append({"path": "/incidents", "text": _counted(len(closed), "closed table", "closed tables")})
    proposals = await call(service.answers.proposals, who)
    if proposals:
        text = _counted(len(proposals), "answer that an analyst wants published", "answers to publish")
        todo.append({"path": "/publishing", "text": text})
    cards = await call(service.tables.problems, who)
    context = {"datasets": datasets, "todo": todo, "cards": cards, "can_sign": may(who, "tables.sign")}
    return page(request, "steward.html", problem=problem, notice=notice, **context)


@signed_in
async def overview(request: Request, who: Principal) -> Response:
    """The overview."""
    return await _overview_page(request, who)


@submitted(_overview_page)
async def sign_off(request: Request, who: Principal, form: FormData) -> dict[str, Any]:
    """Sign off a card with another ledger or name."""
    file, reason = text_of(form, "file", 300), text_of(form, "reason", 500)
    card = await call(service_of(request).tables.sign_off, who, file, reason=reason)
    if len(card.signed_by) < card.needed:
        return {"notice": f"{file} is signed off. A second steward has to sign it off, too."}
    return {"notice": f"{file} is signed off. It counts when the server is started again."}


def _counted(count: int, one: str, many: str) -> str:
    return f"1 {one}" if count == 1 else f"{count} {many}"


@signed_in
async def dataset(request: Request, who: Principal) -> Response:
    """The budget of one table over time, its accounts, and who asked what at what cost."""
    budget: DatasetBudget = await call(service_of(request).budgets.dataset, who, request.path_params["table"])
    points = [(datetime.fromisoformat(point.at), point.total) for point in budget.points]
    context = {"budget": budget, "meter": _meter_of(budget), "picture": timeline(points, budget.limit)}
    accounts = [account_words(account) for account in budget.accounts]
    context["unit"] = _UNITS.get(budget.unit, budget.unit)
    return page(request, "dataset.html", accounts=accounts, can_change=may(who, "limits.propose"), **context)


# -- people ---------------------------------------------------------------------------------------------------------


async def _people_page(
    request: Request, who: Principal, problem: ErrorDocument | None = None, notice: str = "", link: Any = None
) -> Response:
    service = service_of(request)
    context = {
        "users": await call(service.users.list, who),
        "grants": await call(service.users.grants, who),
        "tables": await call(service.tables.list, who),
        "roles": ROLES,
        "role_words": ROLE_WORDS,
        "link": link,
    }
    return page(request, "people.html", problem=problem, notice=notice, **context)


@signed_in
async def people(request: Request, who: Principal) -> Response:
    """Users and grants."""
    return await _people_page(request, who)


@submitted(_people_page)
async def change_people(request: Request, who: Principal, form: FormData) -> dict[str, Any]:
    """One of the forms of the page: what it does stands in the path."""
    users = service_of(request).users
    name, table = text_of(form, "name", 200) or text_of(form, "user", 200), text_of(form, "table", 200)
    match request.path_params.get("what", "add"):
        case "add":
            identity = text_of(form, "identity", 300) or None
            user, address = await call(users.add, who, name, roles=texts_of(form, "role"), identity=identity)
            return {"notice": f"{user.name} is added.", "link": _link(request, user.name, address)}
        case "roles":
            await call(users.change, who, name, roles=texts_of(form, "role"))
            notice = f"The roles of {name} are changed."
        case "stop":
            await call(users.change, who, name, active=False)
            notice = f"{name} may not sign in any more. Sessions and tokens have ended."
        case "admit":
            await call(users.change, who, name, active=True)
            notice = f"{name} may sign in again."
        case "invite":
            return {"link": _link(request, name, await call(users.invite, who, name))}
        case "end-all":
            await call(users.end_all, who)
            notice = "Everybody else is signed out, all tokens are revoked, and links that were not used are void."
        case "grant":
            first = text_of(form, "first", 10) == "yes"
            await call(users.grant, who, name, table, limit=limit_of(form), first=first)
            notice = f"{name} may ask {table}."
        case "revoke":
            await call(users.revoke, who, name, table)
            notice = f"{name} may not ask {table} any more. What was asked stays recorded and paid."
        case _:
            raise InvalidArgument("form", "one of the page", "another", "load the page again")
    return {"notice": notice}


def _link(request: Request, name: str, path: str) -> dict[str, str] | None:
    if not path:
        return None
    address = path if "://" in path else service_of(request).config.url + path
    return {"name": name, "address": address}


# -- limits ---------------------------------------------------------------------------------------------------------


def _change_words(change: LimitChange) -> dict[str, Any]:
    whose = "for the whole table"
    if change.analyst is not None:
        whose = f"for the analyst {change.analyst}"
    elif change.each_person:
        whose = "for each person"
    return {name: getattr(change, name) for name in LimitChange.__dataclass_fields__} | {"whose": whose}


async def _limits_page(
    request: Request, who: Principal, problem: ErrorDocument | None = None, notice: str = ""
) -> Response:
    service = service_of(request)
    changes = [_change_words(item) for item in await call(service.budgets.changes, who)]
    users = await call(service.users.list, who) if may(who, "users.list") else ()
    context = {
        "pending": [item for item in changes if item["state"] == "pending"],
        "done": [item for item in changes if item["state"] != "pending"],
        "tables": await call(service.tables.list, who),
        "table": request.query_params.get("table", ""),
        "analysts": [user.name for user in users if "analyst" in user.roles],
        "can_change": may(who, "limits.propose"),
        "single_steward": service.config.single_steward,
    }
    return page(request, "limits.html", problem=problem, notice=notice, **context)


@signed_in
async def limits(request: Request, who: Principal) -> Response:
    """Changes of limits: those that wait for a second steward, and earlier ones."""
    return await _limits_page(request, who)


@submitted(_limits_page)
async def change_limits(request: Request, who: Principal, form: FormData) -> dict[str, str]:
    """Propose a limit, approve or withdraw one."""
    budgets, what = service_of(request).budgets, request.path_params.get("what", "propose")
    if what == "approve":
        await call(budgets.approve, who, text_of(form, "change", 200))
        return {"notice": "The limit is changed."}
    if what == "withdraw":
        await call(budgets.withdraw, who, text_of(form, "change", 200))
        return {"notice": "The change is withdrawn."}
    limit, whose = limit_of(form), text_of(form, "whose", 300)
    if limit is None:
        raise InvalidArgument("limit", "ε, or ρ", "nothing", "write the new limit")
    analyst = whose.removeprefix("analyst:") if whose.startswith("analyst:") else None
    reason, table = text_of(form, "reason", 500), text_of(form, "table", 200)
    each_person = whose == "person"
    change = await call(budgets.propose, who, table, limit, reason=reason, analyst=analyst, each_person=each_person)
    waits = "The limit is changed." if change.state == "done" else "The change waits for a second steward."
    return {"notice": waits}


# -- incidents ------------------------------------------------------------------------------------------------------


@signed_in
async def incidents(request: Request, who: Principal) -> Response:
    """The incidents of each table."""
    states = await call(service_of(request).budgets.incidents, who)
    return page(request, "incidents.html", states=states, can_reopen=may(who, "incidents.reopen"))


@signed_in
async def reopen(request: Request, who: Principal) -> Response:
    """Take questions again."""
    form, budgets = await form_of(request), service_of(request).budgets
    await call(budgets.reopen, who, text_of(form, "table", 200), reason=text_of(form, "reason", 500))
    return RedirectResponse("/incidents", 303)


PAGE_LENGTH = 50


def _after(request: Request) -> int:
    text = request.query_params.get("after", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0


def summary(entry: ChainEntry) -> str:
    """What an entry is about, in a few words.

    >>> summary(ChainEntry(3, "", "reopen", "t", None, None, {"signed_by": "ann", "reason": "disk"}, ""))
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


async def _ledger_page(
    request: Request, who: Principal, verification: Verification | None = None, problem: ErrorDocument | None = None
) -> Response:
    chain, table, after = service_of(request).chain, request.path_params["table"], _after(request)
    entries = await call(chain.entries, who, table, after=after, most=PAGE_LENGTH)
    lines = [
        {
            "seq": entry.seq,
            "at": entry.at,
            "kind": entry.kind,
            "answers": entry.answers,
            "hash": entry.hash,
            "summary": summary(entry),
            "body": json.dumps(dict(entry.body), indent=2, ensure_ascii=False, default=str) if entry.body else "",
        }
        for entry in entries
    ]
    context = {
        "table": table,
        "entries": lines,
        "after": after,
        "more": entries[-1].seq if len(entries) == PAGE_LENGTH else 0,
        "receipt": await call(chain.receipt, who, table),
    }
    return page(request, "ledger.html", verification=verification, problem=problem, **context)


@signed_in
async def ledgers(request: Request, who: Principal) -> Response:
    """The tables whose ledgers can be read."""
    service = service_of(request)
    await call(service.budgets.changes, who)  # refuses whoever may not look at ledgers
    return page(request, "ledgers.html", tables=await call(service.tables.list, who))


@signed_in
async def ledger(request: Request, who: Principal) -> Response:
    """The entries of one table, with the receipt to keep."""
    return await _ledger_page(request, who)


@submitted(_ledger_page)
async def verify(request: Request, who: Principal, form: FormData) -> dict[str, Verification]:
    """Check every entry, and that the ledger holds a receipt that was kept."""
    receipt, table = text_of(form, "receipt", 400) or None, request.path_params["table"]
    return {"verification": await call(service_of(request).chain.verify, who, table, receipt=receipt)}


@signed_in
async def receipt_file(request: Request, who: Principal) -> Response:
    """The receipt, to keep elsewhere."""
    table = request.path_params["table"]
    receipt = await call(service_of(request).chain.receipt, who, table)
    return download(receipt + "\n", "text/plain; charset=utf-8", f"{table}-receipt.txt")


@signed_in
async def events(request: Request, who: Principal) -> Response:
    """The event log."""
    user = request.query_params.get("user", "")[:100]
    lines = await call(
        service_of(request).chain.events, who, after=_after(request), most=PAGE_LENGTH, user=user or None
    )
    more = lines[-1].id if len(lines) == PAGE_LENGTH else 0
    return page(request, "events.html", events=lines, user=user, more=more)


ROUTES = [
    Route("/steward", overview),
    Route("/steward/sign-off", sign_off, methods=["POST"]),
    Route("/steward/{table}", dataset),
    Route("/people", people),
    Route("/people", change_people, methods=["POST"]),
    Route("/people/{what}", change_people, methods=["POST"]),
    Route("/limits", limits),
    Route("/limits", change_limits, methods=["POST"]),
    Route("/limits/{what}", change_limits, methods=["POST"]),
    Route("/incidents", incidents),
    Route("/incidents/reopen", reopen, methods=["POST"]),
    Route("/ledger", ledgers),
    Route("/ledger/{table}", ledger),
    Route("/ledger/{table}/verify", verify, methods=["POST"]),
    Route("/ledger/{table}/receipt.txt", receipt_file),
    Route("/events", events),
]
