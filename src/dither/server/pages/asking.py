"""Tables and their columns, the two ways of asking, questions under way, and answers: shown, downloaded, published."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.responses import JSONResponse, RedirectResponse, Response

from dither.errors import DitherError
from dither.present.drawing import svg
from dither.present.pages.answer import answer_table, guaranteed, not_guaranteed
from dither.server.errors import ErrorDocument, NotFound, problem_of
from dither.server.pages import forms
from dither.server.pages.forms import DEFAULT_EPSILON, QuestionFields, budget_meter, question_fields, texts_of
from dither.server.pages.render import Visit, download, fragment, get, post
from dither.server.questions import AnswerRecord
from dither.server.tables import TableCard, TableSummary
from dither.tables.card.model import Card
from dither.tables.card.profile import charts
from dither.tables.planning.explain import error_subject

PAGE_LENGTH = 50
MAX_CHARTS = 4
_PROFILE_EPSILON = "1"
_WAIT_SECONDS = 8.0
"""How long the page waits for an answer before it shows that the question is under way."""
TITLES = {
    "waiting": "Your question is under way",
    "answered": "Your question is answered",
    "refused": "Your question was refused",
    "failed": "Your question has no answer",
    "cancelled": "Your question was cancelled",
}


# -- tables ---------------------------------------------------------------------------------------------------------


def tables(visit: Visit) -> Response:
    """Show the list of tables that the principal may see."""
    return visit.page("tables.html", tables=visit.service.tables.list(visit.who), steward=visit.may("tables.gaps"))


def table(visit: Visit) -> Response:
    """Show the public information about a table."""
    shown = visit.service.tables.card(visit.who, visit.part("table"))
    units = dict.fromkeys(item.unit for item in shown.card.private_tables.values() if item.unit is not None)
    context = {"card": shown.card, "shown": shown, "unit": " or ".join(units), "profile": _profile(shown.card)}
    context |= {"can_buy": visit.may("profiles.release"), "epsilon": _PROFILE_EPSILON}
    words = {"tables": forms.tables_in_words(shown.card), "contribution": forms.contribution(shown.card)}
    return visit.page("table.html", **context, **words)


def _profile(card: Card) -> dict[str, Any] | None:
    """Return the newest profile of a card for a template: for each table a title and its charts as pictures; None
    without one."""
    if card.profile is None:
        return None
    pictures = {
        card.profile.heading(name): [Markup(svg(chart, width=440)) for chart in of_table.values()]
        for name, of_table in charts(card.profile).items()
    }
    return {"pictures": pictures, "facts": card.profile.facts()}


def profile_forecast(visit: Visit) -> Response:
    """Show what a profile of a table would cost and show, with the button that buys it."""
    table, epsilon, without = visit.part("table"), visit.asked("epsilon", _PROFILE_EPSILON, 40), visit.asked("without")
    forecast = visit.service.profiles.forecast(visit.who, table, _profile_options(epsilon, without))
    left = visit.service.tables.card(visit.who, table).left
    return visit.page("profile.html", forecast=forecast, left=left, epsilon=epsilon, without=without)


def buy_profile(visit: Visit) -> Response:
    """Buy a profile by the form of ``visit``, and redirect to its job; an error is shown as a page.

    The same profile again is recorded and free unless it is to be measured anew.
    """
    options = _profile_options(visit.text("epsilon", 40), visit.text("without", 2000))
    try:
        job = visit.service.profiles.release(
            visit.who, visit.part("table"), options | ({"again": True} if visit.text("again", 10) else {})
        )
    except DitherError as error:
        return visit.page("error.html", problem=problem_of(error), heading="The profile was not bought")
    return RedirectResponse(f"/jobs/{job.id}", 303)


def _profile_options(epsilon: str, without: str) -> dict[str, Any]:
    """Return the options of a profile from the fields of a form."""
    names = [part.strip() for part in without.split(",") if part.strip()]
    return {"epsilon": forms.number(epsilon, "ε"), **({"without": names} if names else {})}


def _askable(visit: Visit) -> list[TableSummary]:
    """Return the granted tables, open ones first so that the form preselects one of them."""
    granted = [item for item in visit.service.tables.list(visit.who) if item.granted]
    return sorted(granted, key=lambda item: not item.open)


def _chosen(names: Sequence[str], wanted: str) -> str:
    """Return the wanted name, or the first if none is wanted; raise NotFound for an unknown one."""
    if wanted and wanted not in names:
        raise NotFound.of("table")
    return wanted or (names[0] if names else "")


# -- asking in SQL --------------------------------------------------------------------------------------------------


def ask(visit: Visit) -> Response:
    """Show the SQL editor with a question, at first an example, and its cost."""
    by, epsilon = visit.asked("by", "epsilon", 10), visit.asked("epsilon", DEFAULT_EPSILON, 40)
    return _ask_page(visit, visit.asked("table"), visit.asked("sql"), QuestionFields(by, epsilon, visit.asked("error")))


def _ask_page(
    visit: Visit, wanted: str, sql: str, options: QuestionFields, problem: ErrorDocument | None = None
) -> Response:
    """Show the SQL editor with a question and its cost, or the problem with it.

    ``wanted`` is the name of the table (empty: the first one that may be queried), ``sql`` the question (empty: an
    example) and ``options`` the fields of its form. The template's ``once`` is a random text that identifies the page,
    so that a question which it sends twice is one request.
    """
    askable = _askable(visit)
    name = _chosen([item.name for item in askable], wanted)
    context: dict[str, Any] = {"tables": askable, "table": name, "options": options, "sql": sql, "flags": forms.FLAGS}
    if not name:
        return visit.page("ask.html", **context)
    shown = visit.service.tables.card(visit.who, name)
    context["sql"] = sql or forms.example(shown.card)
    context |= _explained(visit, shown, context["sql"], options, problem) | {
        "words": forms.completion_words(shown.card),
        "columns": [column for item in shown.card.private_tables.values() for column in item.columns],
        "percent": any(item.rows for item in shown.card.private_tables.values()),
        "waiting": visit.service.questions.jobs(visit.who),
        "once": secrets.token_urlsafe(18),
    }
    return visit.page("ask.html", status=200 if problem is None else problem["status"], **context)


def _explained(
    visit: Visit, shown: TableCard, sql: str, options: QuestionFields, problem: ErrorDocument | None = None
) -> dict[str, Any]:
    """Return the template variables for the cost of a question, or for why it cannot be asked.

    ``shown`` is the table's public card, and ``sql`` the question with its ``options``. A ``problem`` of sending the
    question replaces the explanation, except the refusal that the answer will be mostly noise: a note of the
    explanation says so, and the user may confirm it. The meter shows the cost as a part of what is left, in ``unit``.
    """
    explanation, meter, unit, confirmed = None, None, "ε", "force" in options.flags
    if sql and (problem is None or not confirmed):
        try:
            explanation = visit.service.questions.explain(visit.who, shown.card.name, sql, options.options())
            meter, unit = budget_meter(shown.own_limit, shown.own_left, explanation.cost)
        except DitherError as error:
            problem = problem or problem_of(error)
    if explanation is not None and problem is not None:
        noisy = [note.values["name"] for note in explanation.limitations if note.kind == "mostly_noise"]
        if problem.get("name") in [error_subject(name) for name in noisy]:  # the note says so, with a box to confirm it
            problem = None
        else:
            explanation = None
    about = {"explanation": explanation, "problem": problem, "meter": meter, "unit": unit}
    return about | {"confirmed": confirmed}


async def ask_form(visit: Visit) -> Response:
    """Handle the editor's buttons: ask the question, show its cost, or show an example for another table.

    An answer that comes within ``_WAIT_SECONDS`` is shown at once, otherwise the page of its job is.
    """
    name, sql, options = visit.text("table", 200), visit.text("sql"), question_fields(visit.form)
    problem = None
    if visit.form.get("do") == "example":
        sql = ""
    elif visit.form.get("do") == "ask":
        key = f"page-{visit.text('once', 64)}" if "again" in options.flags else None
        questions = visit.service.questions
        try:
            chosen = {option: value for option, value in options.options().items() if option != "again"}
            job = await run_in_threadpool(questions.ask, visit.who, name, sql, chosen, key=key)
            job = await questions.wait(visit.who, job.id, seconds=_WAIT_SECONDS)
            if job.state == "answered":
                return RedirectResponse(f"/answers/{job.answer_id}", 303)
            if job.state != "refused" or job.problem is None:
                return RedirectResponse(f"/jobs/{job.id}", 303)
            problem = job.problem
        except DitherError as error:
            problem = problem_of(error)
    return await run_in_threadpool(_ask_page, visit, name, sql, options, problem)


def explain_form(visit: Visit) -> Response:
    """Render the cost of a question as a fragment, for the script that updates the page."""
    shown = visit.service.tables.card(visit.who, visit.text("table", 200))
    return fragment("_explanation.html", _explained(visit, shown, visit.text("sql"), question_fields(visit.form)))


# -- asking step by step --------------------------------------------------------------------------------------------


def guided_page(
    visit: Visit, wanted: str | None = None, form: FormData | None = None, problem: ErrorDocument | None = None
) -> Response:
    """Show the form that builds a question step by step, filled in as it was sent.

    ``wanted`` is the table to ask, as ``dataset/table`` or ``dataset`` alone; None takes it from the address. ``form``
    is what was sent, None at first, and ``problem`` is its error.
    """
    wanted = visit.asked("table") if wanted is None else wanted
    choices = [
        {"value": f"{item.name}/{table}", "label": table if table == item.name else f"{table} ({item.name})"}
        for item in _askable(visit)
        for table in item.tables
    ]
    full = [choice["value"] for choice in choices]
    if wanted and "/" not in wanted:
        wanted = next((value for value in full if value.startswith(wanted + "/")), wanted)
    choice = _chosen(full, wanted)
    if not choice:
        return visit.page("guided.html", tables=[])
    name, relation = choice.split("/", 1)
    shown = visit.service.tables.card(visit.who, name)
    about = shown.card.private_tables[relation]
    sent = form if form is not None else FormData()
    conditions = _conditions(sent)
    conditions += [forms.Condition("", "=", "")] * (forms.MAX_CONDITIONS - len(conditions))
    context: dict[str, Any] = {
        "tables": choices,
        "table": name,
        "table_choice": choice,
        "relation": relation,
        "measures": forms.measures(about),
        "groups": forms.group_columns(about),
        "columns": {name: column.type for name, column in about.columns.items() if name != about.unit},
        "operators": forms.OPERATORS,
        "chosen": {
            "measures": texts_of(sent, "measure") if form is not None else ["rows"],
            "groups": texts_of(sent, "group"),
            "conditions": conditions,
            "by": sent.get("by", "epsilon"),
            "error": sent.get("error", ""),
            "epsilon": sent.get("epsilon", DEFAULT_EPSILON),
        },
        "left": shown.left,
    }
    return visit.page("guided.html", problem=problem, **context)


def _conditions(form: FormData) -> list[forms.Condition]:
    """Return the conditions that the guided form sent."""
    parts = zip(texts_of(form, "column"), texts_of(form, "operator"), texts_of(form, "value"), strict=False)
    return [forms.Condition(*part) for part in parts][: forms.MAX_CONDITIONS]


def guided_sent(visit: Visit) -> Response:
    """Show the SQL of the guided form in the editor, with its cost."""
    form, choice = visit.form, visit.text("table", 400)
    name, _, relation = choice.partition("/")
    shown = visit.service.tables.card(visit.who, name)
    if relation not in shown.card.private_tables:
        raise NotFound.of("table")
    try:
        about, measures, groups = shown.card.private_tables[relation], visit.texts("measure"), visit.texts("group")
        sql = forms.sql_of(relation, about, measures, groups, _conditions(form))
        options = question_fields(form)
        options.options()
    except DitherError as error:
        return guided_page(visit, choice, form, problem_of(error))
    return _ask_page(visit, name, sql, options)


# -- questions under way --------------------------------------------------------------------------------------------


def job(visit: Visit) -> Response:
    """Show a waiting question, or how it ended; an answered one redirects to its answer."""
    result = visit.service.questions.job(visit.who, visit.part("job"))
    if result.state == "answered":  # each table of a publication is an answer
        places = {"publication": "/history", "profile": f"/tables/{quote(result.table)}#profile"}
        return RedirectResponse(places.get(result.kind, f"/answers/{result.answer_id}"), 303)
    return visit.page("job.html", job=result, titles=TITLES)


async def job_state(visit: Visit) -> Response:
    """Send the state of a question as JSON when it has ended or after some seconds, for the script of the page."""
    result = await visit.service.questions.wait(visit.who, visit.part("job"), seconds=_WAIT_SECONDS)
    return JSONResponse({"state": result.state})


def cancel(visit: Visit) -> Response:
    """Cancel a question."""
    result = visit.service.questions.cancel(visit.who, visit.part("job"))
    return RedirectResponse(f"/jobs/{result.id}", 303)


# -- answers --------------------------------------------------------------------------------------------------------


def answer(visit: Visit) -> Response:
    """Show an answer, or send it as a file: ``/answers/<id>``, or with ``.csv``, ``.json`` or ``.svg`` after it."""
    name, _, ending = visit.part("answer").partition(".")
    record = visit.service.answers.answer(visit.who, name)
    if ending:
        return _file(record, ending)
    own, can_ask = record.analyst == visit.who.name, visit.may("questions.ask")
    context: dict[str, Any] = {
        "record": record,
        "answer": record.answer,
        "notes": record.answer.leading_notes(),
        "answer_table": Markup(answer_table(record.answer)),
        "charts": [Markup(svg(record.answer.chart(column))) for column in record.answer.drawable()[:MAX_CHARTS]],
        "own": own,
        **(_left(visit, record.table) if own and can_ask else _NOTHING_LEFT),
        "options": forms.options_in_words(record.options),
        "can_ask": can_ask,
        "can_publish": visit.may("answers.publish"),
        "can_propose": visit.may("answers.propose"),
        "guaranteed": guaranteed(record.answer, rows_are_people=False),
        "not_guaranteed": not_guaranteed(record.answer),
    }
    return visit.page("answer.html", **context)


def _file(record: AnswerRecord, ending: str) -> Response:
    """Return an answer as a file of this ending; raise NotFound for unknown endings."""
    name = f"{record.table}-{record.id}.{ending}"
    if ending == "csv":
        return download(record.answer.to_csv(), "text/csv; charset=utf-8", name)
    if ending == "json":
        return download(record.answer.to_json() + "\n", "application/json", name)
    if ending == "svg" and record.answer.drawable():
        return download(svg(record.answer.chart()), "image/svg+xml", name)
    raise NotFound.of("file")


_NOTHING_LEFT: dict[str, Any] = {"left": None, "meter": None, "unit": "ε"}


def _left(visit: Visit, table: str) -> dict[str, Any]:
    """Return the template variables for the current remaining budget; nothing if the table is not granted any more."""
    try:
        shown = visit.service.tables.card(visit.who, table)
    except DitherError:
        return _NOTHING_LEFT
    meter, unit = budget_meter(shown.own_limit, shown.own_left)
    return {"left": shown.left, "meter": meter, "unit": unit}


def history(visit: Visit) -> Response:
    """Show own answers, the newest first."""
    before = visit.asked("before") or None
    lines = visit.service.answers.mine(visit.who, most=PAGE_LENGTH, before=before)
    return visit.page(
        "history.html",
        heading="History",
        intro="What you asked, and what it cost. Looking at an answer again is free.",
        nothing="There are no older answers." if before else "You have not asked anything yet.",
        more=lines[-1].id if len(lines) == PAGE_LENGTH else "",
        answers=lines,
        jobs=() if before else visit.service.questions.jobs(visit.who),
        own=True,
    )


def published(visit: Visit) -> Response:
    """Show the published answers."""
    return visit.page(
        "history.html",
        heading="Published",
        intro="Answers that the stewards of this server have published. Every number has its error beside it.",
        nothing="Nothing is published yet.",
        more="",
        answers=visit.service.answers.published(visit.who),
        jobs=(),
        own=False,
    )


def propose(visit: Visit) -> Response:
    """Ask a steward to publish an own answer."""
    name = visit.part("answer")
    visit.service.answers.propose(visit.who, name, visit.text("title", 200))
    return RedirectResponse(f"/answers/{name}", 303)


def publish(visit: Visit) -> Response:
    """Publish an answer to readers."""
    name = visit.part("answer")
    visit.service.answers.publish(visit.who, name, visit.text("title", 200))
    return RedirectResponse(f"/published/{name}", 303)


def unpublish(visit: Visit) -> Response:
    """Withdraw a published answer."""
    visit.service.answers.unpublish(visit.who, visit.part("answer"))
    return RedirectResponse("/published", 303)


def publishing(visit: Visit) -> Response:
    """Show the proposed answers, and the plans of the folder."""
    service, who = visit.service, visit.who
    return visit.page("publishing.html", proposals=service.answers.proposals(who), plans=service.plans.list(who))


def plan(visit: Visit) -> Response:
    """Show what a plan would publish, and its cost."""
    return visit.page("plan.html", preview=visit.service.plans.explain(visit.who, visit.part("plan")))


def release_plan(visit: Visit) -> Response:
    """Release a plan; the same plan again gives the recorded publication for free."""
    try:
        job = visit.service.plans.release(visit.who, visit.part("plan"))
    except DitherError as error:
        return visit.page("error.html", problem=problem_of(error), heading="The plan was not released")
    return RedirectResponse(f"/jobs/{job.id}", 303)


ROUTES = [
    get("/tables", tables),
    get("/tables/{table}", table),
    get("/tables/{table}/profile", profile_forecast),
    post("/tables/{table}/profile", buy_profile),
    get("/ask", ask),
    post("/ask", ask_form),
    post("/ask/explain", explain_form),
    get("/ask/guided", guided_page),
    post("/ask/guided", guided_sent),
    get("/jobs/{job}", job),
    get("/jobs/{job}/state", job_state),
    post("/jobs/{job}/cancel", cancel),
    get("/answers/{answer}", answer),
    post("/answers/{answer}/propose", propose),
    post("/answers/{answer}/publish", publish),
    post("/answers/{answer}/unpublish", unpublish),
    get("/history", history),
    get("/published", published),
    get("/published/{answer}", answer),
    get("/publishing", publishing),
    get("/publishing/{plan}", plan),
    post("/publishing/{plan}", release_plan),
]
