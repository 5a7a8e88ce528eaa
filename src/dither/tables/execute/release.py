"""The walk of a question from its plan to its answer: plan, charge, compile, execute, estimate, record, present.

Everything that can be refused is refused before the charge: the plan, what the source has become since it was opened,
and a trial of every statement on no rows. From the charge on there is no way back: whatever fails, the charge stays,
and whoever asks is told one sentence that does not depend on the rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dither.errors import DataIncident, InvalidArgument, InvalidData, message
from dither.ledger import Charge, receipts
from dither.ledger.recorded import decode, encode
from dither.randomness import resolve
from dither.tables.answer import Answer
from dither.tables.compile.queries import DialectSql
from dither.tables.compile.statements import Statement, StatementContext
from dither.tables.engines import with_public_values
from dither.tables.execute import incidents, run
from dither.tables.execute.contributors import Contributors
from dither.tables.execute.recorded_key import canonical_request, recorded_key
from dither.tables.execute.recorded_key_0_1 import key_0_1, request_0_1
from dither.tables.execute.shape_answer import rehearse, shape_answer
from dither.tables.options import ReleaseOptions
from dither.tables.planning import automatic
from dither.tables.planning.calibrate import may_use_either_noise, plan_after_choices, plan_question
from dither.tables.planning.error_0_1 import epsilon_0_1
from dither.tables.planning.estimate import ADDED, limitations
from dither.tables.planning.plan import Plan, keys_of
from dither.tables.query.tree import Column

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

    def keys(self) -> set[str]:
        """The keys under which an answer may be recorded."""
        return {self.key} if self.recorded_as is None else {self.key, self.recorded_as()[0]}


def release(question: Question, options: ReleaseOptions) -> Answer:
    """Charge, run, add noise, record, and answer; an answer that is recorded already is given again, for free."""
    table = question.table
    if table.read_only:
        raise InvalidArgument(
            message("table", "one that was opened to ask", "one opened to read only", "open it without read_only")
        )
    joined = bool(question.query.joins)
    card = with_public_values(table.engine, table.card, question.query) if joined else table.card
    plan = plan_question(question.query, card, options)
    request = identify(question, plan, options)
    if request.recorded_as is not None:
        plan, request = as_recorded_before(question, plan, request, options)
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


def as_recorded_before(
    question: Question, plan: Plan, request: Request, options: ReleaseOptions
) -> tuple[Plan, Request]:
    """The plan that an earlier version made of the question, where that was another one and its answer is recorded."""
    ledger, name = question.table.accounts.ledger, question.table.card.name
    for before in _earlier_plans(question, plan, options):
        earlier = identify(question, before, options)
        forms = [(earlier.key, earlier.content), *([earlier.recorded_as()] if earlier.recorded_as is not None else [])]
        for key, content in forms:
            if ledger.has_answer(name, before.guarantee, key=key, request=content, analyst=options.analyst):
                return before, earlier
    return plan, request


def _earlier_plans(question: Question, plan: Plan, options: ReleaseOptions) -> Iterator[Plan]:
    """Plans of earlier versions: another epsilon for the same error, and keys that had to be listed to be public."""
    query, card = question.query, question.table.card
    epsilon = epsilon_0_1(query, card, options, plan) if options.error is not None else None
    if epsilon is not None:
        yield plan_question(query, card, replace(options, epsilon=epsilon, error=None))
    if plan.keys != keys_of(query, card, listed_only=True):
        with suppress(InvalidArgument):  # without a delta there was no such answer
            yield plan_question(query, card, options, listed_only=True)


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
    rehearse(plan, context)


def pay(
    question: Question,
    plan: Plan,
    options: ReleaseOptions,
    request: Request,
    contributors: Contributors | None,
) -> Charge:
    """Charge the question to its accounts, or find its recorded answer."""
    table = question.table
    if contributors is not None:
        table.accounts.check_people(plan.guarantee, request.content, request.keys)
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
    if plan.automatic:
        choices = automatic.choose_limits(plan, question.query, context, rows, may_use_either_noise(plan, options))
        guarantee = plan.guarantee
        if plan.automatic.keys() != {"bias"}:  # otherwise nothing was chosen, and the plan is complete
            plan = plan_after_choices(plan, choices, options)
            context = plan.frame(context.dialect_sql, context.tables, context.secret)
        plan = replace(plan, guarantee=guarantee, automatic={})
        noisy = run.answer(plan, context, rows)
        for name in choices.without_bounds:
            noisy.answers[name] = [None] * len(noisy.answers[name])
            noisy.errors[name] = [None] * len(noisy.errors[name])
        return with_left_out(shape_answer(plan, context, noisy, options, choices.notes), plan, choices)
    return shape_answer(plan, context, run.answer(plan, context, rows), options, [])


def with_left_out(answer: Answer, plan: Plan, choices: automatic.Choices) -> Answer:
    """The answer with what its limits leave out, as far as that was learned, of each count and sum; a count of people
    is low by the people who are in more groups than they count in.
    """
    shown = plan.query.shape.columns or {name: Column(name) for name in plan.query.aggregates}
    left_out: dict[str, tuple[float, float, float]] = {}
    for name, column in shown.items():
        aggregate = plan.query.aggregates.get(column.name) if isinstance(column, Column) else None
        if aggregate is None or name not in answer.errors:
            continue
        estimate = choices.memberships_left_out if aggregate.kind == "people" else choices.left_out
        if estimate is not None and aggregate.kind in (*ADDED, "people"):
            left_out[name] = estimate.share, estimate.low, estimate.high
    if not left_out:
        return answer
    unknown = limitations(plan)
    known = limitations(plan, estimated=True, limits_are_stated=choices.max_rows is None)
    notes = (*(note for note in answer.notes if note not in unknown), *known)
    return replace(answer, left_out=left_out, notes=notes)


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
