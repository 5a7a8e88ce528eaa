"""What auditors and stewards check: the entries of a ledger, whether they are as written, receipts, the event log."""

from __future__ import annotations

import json

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dither.ledger.accounts import promised
from dither.server.pages.forms import text_of
from dither.server.pages.render import download, page
from dither.server.pages.session import call, service_of, signed_in, submitted
from dither.server.principal import Principal
from dither.server.results import ChainEntry, Problem, Verification

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
    request: Request, who: Principal, verification: Verification | None = None, problem: Problem | None = None
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
    Route("/ledger", ledgers),
    Route("/ledger/{table}", ledger),
    Route("/ledger/{table}/verify", verify, methods=["POST"]),
    Route("/ledger/{table}/receipt.txt", receipt_file),
    Route("/events", events),
]
