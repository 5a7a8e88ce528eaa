"""Tables and their columns, the two ways of asking, questions under way, and answers: shown, downloaded, published."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dither.errors import DitherError
from dither.present.bars import chart, columns
from dither.present.words import guaranteed, not_guaranteed
from dither.server.errors import ErrorDocument, NotFound, problem_of
from dither.server.pages import forms
from dither.server.pages.charts import bar_charts
from dither.server.pages.forms import (
    DEFAULT_EPSILON,
    AskedOptions,
    asked_options,
    budget_meter,
    completion_words,
    contribution,
    example,
    guided_columns,
    options_in_words,
    tables_in_words,
    text_of,
    texts_of,
)
from dither.server.pages.render import call, download, form_of, fragment, page, service_of, signed_in
from dither.server.questions import AnswerRecord
from dither.server.roles import Principal, may
from dither.server.tables import TableCard, TableSummary

_WAIT_SECONDS = 8.0
"""How long the page waits for an answer before it shows that the question is under way."""

TITLES = {
    "waiting": "Your question is under way",
    "answered": "Your question is answered",
    "refused": "Your question was refused",
    "failed": "Your question has no answer",
    "cancelled": "Your question was cancelled",
}


@signed_in
async def tables(request: Request, who: Principal) -> Response:
    """The tables that somebody may know of."""
    result = await call(service_of(request).tables.list, who)
    return page(request, "tables.html", tables=result, steward=may(who, "tables.gaps"))


@signed_in
async def table(request: Request, who: Principal) -> Response:
    """One table: what is public about it."""
    shown: TableCard = await call(service_of(request).tables.card, who, request.path_params["table"])
    units = dict.fromkeys(item.unit for item in shown.card.private_tables.values() if item.unit is not None)
    words = tables_in_words(shown.card)
    context: dict[str, Any] = {"card": shown.card, "shown": shown, "tables": words, "unit": " or ".join(units)}
    return page(request, "table.html", contribution=contribution(shown.card), **context)


async def _askable(request: Request, who: Principal) -> list[TableSummary]:
    """The tables that may be asked; those that are closed come last, so that none of them is offered first."""
    granted = [item for item in await call(service_of(request).tables.list, who) if item.granted]
    return sorted(granted, key=lambda item: not item.open)


def _chosen(names: Sequence[str], wanted: str) -> str:
    """The table that was chosen, or the first; one that is not there is not found."""
    if wanted and wanted not in names:
        raise NotFound.of("table")
    return wanted or (names[0] if names else "")


@signed_in
async def ask(request: Request, who: Principal) -> Response:
    """The editor, with an example at first, and what it would cost."""
    wanted = request.query_params
    options = AskedOptions(
        wanted.get("by", "epsilon")[:10],
        wanted.get("epsilon", DEFAULT_EPSILON)[:40],
        wanted.get("error", "")[:40],
    )
    return await _ask_page(request, who, wanted.get("table", ""), wanted.get("sql", "")[:20_000], options)


async def _ask_page(
    request: Request,
    who: Principal,
    wanted: str,
    sql: str,
    options: AskedOptions,
    problem: ErrorDocument | None = None,
) -> Response:
    service, askable = service_of(request), await _askable(request, who)
    name = _chosen([item.name for item in askable], wanted)
    context: dict[str, Any] = {"tables": askable, "table": name, "options": options, "sql": sql}
    if not name:
        return page(request, "ask.html", **context)
    shown: TableCard = await call(service.tables.card, who, name)
    context["sql"] = sql or example(shown.card)
    status = problem["status"] if problem is not None else 200
    explained = await _explained(request, who, shown, context["sql"], options, problem)
    context |= explained | {
        "words": completion_words(shown.card),
        "columns": [column for item in shown.card.private_tables.values() for column in item.columns],
        "percent": any(item.rows for item in shown.card.private_tables.values()),
        "waiting": await call(service.questions.jobs, who),
        "once": secrets.token_urlsafe(18),
    }
    return page(request, "ask.html", status, **context)


async def _explained(
    request: Request,
    who: Principal,
    shown: TableCard,
    sql: str,
    options: AskedOptions,
    problem: ErrorDocument | None = None,
) -> dict[str, Any]:
    """What the question would cost, or why it cannot be asked like this."""
    explanation = None
    if problem is None and sql:
        service = service_of(request)
        try:
            explanation = await call(service.questions.explain, who, shown.card.name, sql, options.options())
        except DitherError as error:
            problem = problem_of(error)
    meter, unit = None, "ε"
    if explanation is not None:
        meter, unit = budget_meter(shown.own_limit, shown.own_left, explanation.cost)
    return {"explanation": explanation, "problem": problem, "meter": meter, "unit": unit}


@signed_in
async def ask_form(request: Request, who: Principal) -> Response:
    """One of three buttons: ask and spend, show the cost, or an example for another table."""
    form = await form_of(request)
    name, options = text_of(form, "table", 200), asked_options(form)
    sql = text_of(form, "sql")
    if form.get("do") == "example":
        return await _ask_page(request, who, name, "", options)
    if form.get("do") != "ask":
        return await _ask_page(request, who, name, sql, options)
    questions = service_of(request).questions
    key = f"page-{text_of(form, 'once', 64)}" if options.again else None
    try:
        chosen = {option: value for option, value in options.options().items() if option != "again"}
        job = await call(questions.ask, who, name, sql, chosen, key=key)
        job = await questions.wait(who, job.id, seconds=_WAIT_SECONDS)
    except DitherError as error:
        return await _ask_page(request, who, name, sql, options, problem_of(error))
    if job.state == "answered":
        return RedirectResponse(f"/answers/{job.answer_id}", 303)
    if job.state == "refused" and job.problem is not None:
        return await _ask_page(request, who, name, sql, options, job.problem)
    return RedirectResponse(f"/jobs/{job.id}", 303)


@signed_in
async def explain_form(request: Request, who: Principal) -> Response:
    """What a question would cost, as a part of the page, while it is written."""
    form = await form_of(request)
    sql = text_of(form, "sql")
    shown: TableCard = await call(service_of(request).tables.card, who, text_of(form, "table", 200))
    return fragment("_explanation.html", await _explained(request, who, shown, sql, asked_options(form)))


# -- step by step ---------------------------------------------------------------------------------------------------


async def _guided_page(
    request: Request, who: Principal, wanted: str, form: FormData | None = None, problem: ErrorDocument | None = None
) -> Response:
    service, askable = service_of(request), await _askable(request, who)
    choices = [
        {"value": f"{item.name}/{table}", "label": table if table == item.name else f"{table} ({item.name})"}
        for item in askable
        for table in item.tables
    ]
    full = [choice["value"] for choice in choices]
    if wanted and "/" not in wanted:
        wanted = next((value for value in full if value.startswith(wanted + "/")), wanted)
    choice = _chosen(full, wanted)
    if not choice:
        return page(request, "guided.html", tables=[])
    name, relation = choice.split("/", 1)
    shown: TableCard = await call(service.tables.card, who, name)
    columns = guided_columns(shown.card, relation)
    sent = form if form is not None else FormData()
    conditions = _conditions(sent)
    conditions += [forms.Condition("", "=", "")] * (forms.MAX_CONDITIONS - len(conditions))
    chosen = {
        "measures": texts_of(sent, "measure") if form is not None else ["rows"],
        "groups": texts_of(sent, "group"),
        "conditions": conditions,
        "by": sent.get("by", "epsilon"),
        "error": sent.get("error", ""),
        "epsilon": sent.get("epsilon", DEFAULT_EPSILON),
    }
    context: dict[str, Any] = {
        "tables": choices,
        "table": name,
        "table_choice": choice,
        "relation": relation,
        "measures": forms.measures(columns),
        "groups": forms.group_columns(columns),
        "columns": [column for column in columns if not column.person],
        "operators": forms.OPERATORS,
        "chosen": chosen,
        "left": shown.left,
    }
    return page(request, "guided.html", problem=problem, **context)


def _conditions(form: FormData) -> list[forms.Condition]:
    parts = zip(texts_of(form, "column"), texts_of(form, "operator"), texts_of(form, "value"), strict=False)
    return [forms.Condition(*part) for part in parts][: forms.MAX_CONDITIONS]


@signed_in
async def guided_form(request: Request, who: Principal) -> Response:
    """The guided form."""
    return await _guided_page(request, who, request.query_params.get("table", ""))


@signed_in
async def guided_sent(request: Request, who: Principal) -> Response:
    """The SQL of what was chosen, in the editor, with its cost."""
    form = await form_of(request)
    choice = text_of(form, "table", 400)
    name, _, relation = choice.partition("/")
    shown: TableCard = await call(service_of(request).tables.card, who, name)
    if relation not in shown.card.private_tables:
        raise NotFound.of("table")
    try:
        columns = guided_columns(shown.card, relation)
        sql = forms.sql_of(relation, columns, texts_of(form, "measure"), texts_of(form, "group"), _conditions(form))
        options = asked_options(form)
        options.options()
    except DitherError as error:
        return await _guided_page(request, who, choice, form, problem_of(error))
    return await _ask_page(request, who, name, sql, options)


# -- questions under way --------------------------------------------------------------------------------------------


@signed_in
async def job(request: Request, who: Principal) -> Response:
    """A question under way, or how it ended."""
    result = await call(service_of(request).questions.job, who, request.path_params["job"])
    if result.state == "answered":  # each table of a publication is an answer
        return RedirectResponse("/history" if result.kind == "publication" else f"/answers/{result.answer_id}", 303)
    return page(request, "job.html", job=result, titles=TITLES)


@signed_in
async def job_state(request: Request, who: Principal) -> Response:
    """How a question stands, for the script of the page; it waits for a while."""
    result = await service_of(request).questions.wait(who, request.path_params["job"], seconds=_WAIT_SECONDS)
    return JSONResponse({"state": result.state})


@signed_in
async def cancel(request: Request, who: Principal) -> Response:
    """Cancel a question."""
    await form_of(request)
    result = await call(service_of(request).questions.cancel, who, request.path_params["job"])
    return RedirectResponse(f"/jobs/{result.id}", 303)


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
    Route("/tables", tables),
    Route("/tables/{table}", table),
    Route("/ask", ask),
    Route("/ask", ask_form, methods=["POST"]),
    Route("/ask/explain", explain_form, methods=["POST"]),
    Route("/ask/guided", guided_form),
    Route("/ask/guided", guided_sent, methods=["POST"]),
    Route("/jobs/{job}", job),
    Route("/jobs/{job}/state", job_state),
    Route("/jobs/{job}/cancel", cancel, methods=["POST"]),
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
