"""Answers: as a table and a chart, to download, in the history, and published to readers."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dither.errors import DitherError
from dither.present.bars import chart, columns
from dither.present.words import guaranteed, not_guaranteed
from dither.server.errors import NotFound
from dither.server.pages.charts import bar_charts
from dither.server.pages.forms import text_of
from dither.server.pages.render import download, page
from dither.server.pages.session import call, form_of, service_of, signed_in
from dither.server.pages.wording import budget_meter, options_in_words
from dither.server.principal import Principal
from dither.server.problems import problem_of
from dither.server.results import AnswerRecord, TableCard
from dither.server.roles import may

PAGE_LENGTH = 50


@signed_in
async def answer(request: Request, who: Principal) -> Response:
    """One answer, or a file of it: ``/answers/<id>``, with ``.csv``, ``.json`` or ``.svg`` behind it."""
    name, _, ending = request.path_params["answer"].partition(".")
    record: AnswerRecord = await call(service_of(request).answers.answer, who, name)
    if ending:
        return _file(record, ending)
    return await _answer_page(request, who, record)


def _file(record: AnswerRecord, ending: str) -> Response:
    name = f"{record.table}-{record.id}.{ending}"
    if ending == "csv":
        return download(record.answer.to_csv(), "text/csv; charset=utf-8", name)
    if ending == "json":
        return download(record.answer.to_json() + "\n", "application/json", name)
    if ending == "svg" and columns(record.answer) and record.answer.rows:
        return download(chart(record.answer), "image/svg+xml", name)
    raise NotFound.of("file")


async def _answer_page(request: Request, who: Principal, record: AnswerRecord) -> Response:
    own = record.analyst == who.name
    left, meter, unit = "", None, "ε"
    if own and may(who, "questions.ask"):
        left, meter, unit = await _left(request, who, record)
    context: dict[str, Any] = {
        "record": record,
        "answer": record.answer,
        "charts": bar_charts(record.answer),
        "own": own,
        "left": left,
        "meter": meter,
        "unit": unit,
        "options": options_in_words(record.options),
        "can_ask": may(who, "questions.ask"),
        "can_publish": may(who, "answers.publish"),
        "can_propose": may(who, "answers.propose"),
        "guaranteed": guaranteed(record.answer, rows_are_people=False),
        "not_guaranteed": not_guaranteed(record.answer),
    }
    return page(request, "answer.html", **context)


async def _left(request: Request, who: Principal, record: AnswerRecord) -> tuple[str, object, str]:
    """What is left now, which may be less than when the answer was given; nothing where the table is not granted."""
    try:
        shown: TableCard = await call(service_of(request).tables.card, who, record.table)
    except DitherError:
        return "", None, "ε"
    meter, unit = budget_meter(shown.own_limit, shown.own_left)
    return shown.left, meter, unit


@signed_in
async def history(request: Request, who: Principal) -> Response:
    """Own answers, the newest first."""
    service, before = service_of(request), request.query_params.get("before")
    lines = await call(service.answers.mine, who, most=PAGE_LENGTH, before=before)
    jobs = [] if before else await call(service.questions.jobs, who)
    context: dict[str, Any] = {
        "heading": "History",
        "intro": "What you asked, and what it cost. Looking at an answer again is free.",
        "nothing": "You have not asked anything yet." if not before else "There are no older answers.",
        "more": lines[-1].id if len(lines) == PAGE_LENGTH else "",
    }
    return page(request, "history.html", answers=lines, jobs=jobs, own=True, **context)


@signed_in
async def published(request: Request, who: Principal) -> Response:
    """What is published to readers."""
    lines = await call(service_of(request).answers.published, who)
    context: dict[str, Any] = {
        "heading": "Published",
        "intro": "Answers that the stewards of this server have published. Every number has its error beside it.",
        "nothing": "Nothing is published yet.",
        "more": "",
    }
    return page(request, "history.html", answers=lines, jobs=[], own=False, **context)


@signed_in
async def propose(request: Request, who: Principal) -> Response:
    """Ask a steward to publish an own answer."""
    form, name = await form_of(request), request.path_params["answer"]
    await call(service_of(request).answers.propose, who, name, text_of(form, "title", 200))
    return RedirectResponse(f"/answers/{name}", 303)


@signed_in
async def publish(request: Request, who: Principal) -> Response:
    """Publish an answer to readers."""
    form, name = await form_of(request), request.path_params["answer"]
    await call(service_of(request).answers.publish, who, name, text_of(form, "title", 200))
    return RedirectResponse(f"/published/{name}", 303)


@signed_in
async def unpublish(request: Request, who: Principal) -> Response:
    """Show an answer to readers no longer."""
    await form_of(request)
    await call(service_of(request).answers.unpublish, who, request.path_params["answer"])
    return RedirectResponse("/published", 303)


@signed_in
async def publishing(request: Request, who: Principal) -> Response:
    """What analysts want published, and the plans of the folder."""
    service = service_of(request)
    proposals = await call(service.answers.proposals, who)
    return page(request, "publishing.html", proposals=proposals, plans=await call(service.plans.list, who))


@signed_in
async def plan(request: Request, who: Principal) -> Response:
    """What a plan would publish, at what cost."""
    preview = await call(service_of(request).plans.explain, who, request.path_params["plan"])
    return page(request, "plan.html", preview=preview)


@signed_in
async def release_plan(request: Request, who: Principal) -> Response:
    """Release a plan. The same plan again gives the recorded publication, for free."""
    await form_of(request)
    service = service_of(request)
    try:
        job = await call(service.plans.release, who, request.path_params["plan"])
    except DitherError as error:
        return page(request, "error.html", problem=problem_of(error), heading="The plan was not released")
    return RedirectResponse(f"/jobs/{job.id}", 303)


ROUTES = [
    Route("/answers/{answer}", answer),
    Route("/answers/{answer}/propose", propose, methods=["POST"]),
    Route("/answers/{answer}/publish", publish, methods=["POST"]),
    Route("/answers/{answer}/unpublish", unpublish, methods=["POST"]),
    Route("/history", history),
    Route("/published", published),
    Route("/published/{answer}", answer),
    Route("/publishing", publishing),
    Route("/publishing/{plan}", plan),
    Route("/publishing/{plan}", release_plan, methods=["POST"]),
]
