"""The walk of a question from its plan to its answer: plan, charge, compile, execute, estimate, record, present.

Everything that can be refused is refused before the charge: the plan, what the source has become since it was opened,
and a trial of every statement on no rows. From the charge on there is no way back: whatever fails, the charge stays,
and whoever asks is told one sentence that does not depend on the rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dither.errors import DataIncident, InvalidArgument, InvalidData, message
from dither.ledger import Charge, receipts
from dither.ledger.recorded import decode, encode
from dither.randomness import resolve
from dither.tables.answer import Answer
from dither.tables.compile.queries import DialectSql
from dither.tables.compile.statements import Statement, StatementContext
from dither.tables.execute import incidents, run
from dither.tables.execute.contributors import Contributors
from dither.tables.execute.estimate import shape_answer
from dither.tables.execute.recorded_key import canonical_request, recorded_key
from dither.tables.execute.recorded_key_0_1 import key_0_1, request_0_1
from dither.tables.options import ReleaseOptions
from dither.tables.planning import automatic
from dither.tables.planning.calibrate import max_groups_of, plan_after_choices, plan_question
from dither.tables.planning.plan import Plan

if TYPE_CHECKING:
    from dither.tables.question import Question


@dataclass(frozen=True)
class Request:
    """What is asked of the ledger: a request in canonical form with its key.

    ``recorded_as`` returns both as version 0.1 wrote them; it is None where 0.1 cannot have recorded an answer.
    """

    key: str
    content: dict[str, Any]
    recorded_as: Callable[[], tuple[str, dict[str, Any]]] | None


def release(question: Question, options: ReleaseOptions) -> Answer:
    """Charge, run, add noise, record, and answer; an answer that is recorded already is given again, for free."""
    table = question.table
    if table.read_only:
        raise InvalidArgument(
            message("table", "one that was opened to ask", "one opened to read only", "open it without read_only")
        )
    plan = plan_question(question.query, table.card, options)
    request = identify(question, plan, options)
    context = statement_context(question, plan)
    check(question, plan, context)
    first_notes = table.accounts.first_notes()
    contributors = Contributors(table.engine, context, table.incident_log) if table.accounts.of_people else None
    charge = pay(question, plan, options, request, contributors)
    if charge.answer is None:
        stored = compute(question, plan, options, context, contributors, charge, first_notes)
    else:
        stored = charge.answer
    return record(question, options, charge, stored)


def identify(question: Question, plan: Plan, options: ReleaseOptions) -> Request:
    """What the answer will be recorded under, and would be recorded under by version 0.1."""
    about = (question.text, question.query, question.table.card, plan, options)
    content = canonical_request(*about)
    if options.again and options.key is None:
        return Request(secrets.token_hex(16), content, None)

    def recorded_as() -> tuple[str, dict[str, Any]]:
        old_content = request_0_1(*about)
        old_key = key_0_1(old_content, plan, options.analyst) if options.key is None else options.key
        return old_key, old_content

    key = recorded_key(content, plan.guarantee, options.analyst) if options.key is None else options.key
    return Request(key, content, None if question.table.accounts.never_charged else recorded_as)


def statement_context(question: Question, plan: Plan) -> StatementContext:
    """What every statement of the question shares: where its rows are, and a fresh secret for its random choices."""
    engine = question.table.engine
    engine.check()
    tables = {"": engine.table}
    for join in plan.query.joins:
        tables[join.table] = engine.public(join.table)
        if not engine.unique(join.table, join.other):
            # a row with several partners would count several times
            expected = f"each {join.other} once, since it is joined on it"
            raise InvalidData(message(f"public table {join.table}", expected, "one twice", "remove one of them"))
    high, low = resolve(None).words(2).tolist()
    return plan.frame(DialectSql(engine.dialect), tables, high << 64 | low)


def check(question: Question, plan: Plan, context: StatementContext) -> None:
    """Refuse, before the charge, a receipt that could not be kept and statements that the engine cannot compile."""
    table = question.table
    if table.card.receipt is not None:
        receipts.check_writable(table.card.receipt)
    run.rehearse(plan, context, table.engine)


def pay(
    question: Question,
    plan: Plan,
    options: ReleaseOptions,
    request: Request,
    contributors: Contributors | None,
) -> Charge:
    """Charge the question to its accounts, or find its recorded answer."""
    table = question.table
    try:
        return table.accounts.ledger.charge(
            table.card.name,
            plan.guarantee,
            key=request.key,
            request=request.content,
            recorded_as=request.recorded_as,
            analyst=options.analyst,
            people=contributors,
            max_incidents=table.card.max_incidents,
        )
    except DataIncident:
        pass
    raise DataIncident  # outside of the handler: nothing of what failed goes with it


def compute(
    question: Question,
    plan: Plan,
    options: ReleaseOptions,
    context: StatementContext,
    contributors: Contributors | None,
    charge: Charge,
    first_notes: list[str],
) -> bytes:
    """The answer as it is recorded. If anything fails here, it is an incident, whatever it was."""
    table = question.table

    def answer() -> bytes:
        try:
            paid = context if contributors is None else contributors.remaining(charge.kept)
            result = run_plan(question, plan, options, paid)
        finally:
            if contributors is not None:
                contributors.drop()
        people_notes = table.accounts.people_notes(plan.guarantee, paid=True)
        return encode(replace(result, notes=(*first_notes, *result.notes, *people_notes)).stored())

    subject = f"{table.card.name}: the question charged in entry {charge.receipt.seq} of the ledger"
    return incidents.shielded(
        answer, table.incident_log, subject, lambda: table.accounts.ledger.record_incident(charge)
    )


def run_plan(question: Question, plan: Plan, options: ReleaseOptions, context: StatementContext) -> Answer:
    """Compile, execute and estimate; limits that nobody stated are chosen privately first."""
    rows = _rows_of(question.table.engine)
    if plan.automatic is not None:
        max_groups = max_groups_of(question.query, plan.card, options)
        choices = automatic.choose_limits(question.query, context, plan.automatic, max_groups, rows)
        guarantee = plan.guarantee
        plan = plan_after_choices(plan, choices.query, choices.max_groups, options)
        context = plan.frame(context.dialect_sql, context.tables, context.secret)
        noisy = run.answer(plan, context, rows)
        for name in choices.without_bounds:
            noisy.answers[name] = [None] * len(noisy.answers[name])
            noisy.errors[name] = [None] * len(noisy.errors[name])
        return shape_answer(replace(plan, guarantee=guarantee), context, noisy, options, choices.notes)
    return shape_answer(plan, context, run.answer(plan, context, rows), options, [])


def _rows_of(engine: Any) -> Callable[[Statement], list[tuple[Any, ...]]]:
    """A function that runs a statement and returns its rows as tuples."""

    def rows(statement: Statement) -> list[tuple[Any, ...]]:
        result = engine.run(statement)
        return list(zip(*(column.to_pylist() for column in result.columns), strict=True)) if result.num_rows else []

    return rows


def record(question: Question, options: ReleaseOptions, charge: Charge, stored: bytes) -> Answer:
    """Write the answer down, keep the receipt, and only then give the answer."""
    table = question.table
    released = table.accounts.ledger.record(charge, stored)
    table.accounts.note_answer()
    if table.card.receipt is not None:
        receipts.keep(table.card.receipt, released.receipt)
    left = table.accounts.left(options.analyst)
    return Answer.restored(
        decode(released.stored), left=left, replayed=released.replayed, receipt=str(released.receipt)
    )


__all__ = ["release"]
