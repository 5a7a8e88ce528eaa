"""The walk of a question from its plan to its answer: plan, charge, compile, execute, estimate, record, present.

Everything that can be refused is refused before the charge: the plan, what the source has become since it was opened,
and a trial of every statement on no rows. From the charge on there is no way back: whatever fails, the charge stays,
and whoever asks gets one sentence that does not depend on the rows.

Whom a question is about, where people have accounts: they pay for it, and only who paid is asked about.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from dither.errors import InvalidArgument, InvalidData
from dither.ledger.recorded import decode, encode
from dither.present.notes import Note
from dither.randomness import resolve
from dither.release import pipeline
from dither.release.pipeline import with_progress
from dither.tables.answer import Answer, is_total
from dither.tables.card.model import column_types, with_recent_profile
from dither.tables.compile import statements
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.engines import with_public_values
from dither.tables.execute import run
from dither.tables.execute.recorded_key import canonical_request
from dither.tables.execute.shape_answer import NoisyAggregation, rehearse_sql, shape_answer
from dither.tables.options import ReleaseOptions
from dither.tables.planning import automatic
from dither.tables.planning.calibrate import may_use_either_noise, plan_after_choices, plan_question, stage_options
from dither.tables.planning.estimate import with_least_squares
from dither.tables.planning.explain import (
    ADDED,
    bias_notes,
    combined_notes,
    limitations,
    public_notes,
    refuse_mostly_noise,
    refuse_noise_only,
)
from dither.tables.planning.group_keys import with_unstated_bounds
from dither.tables.planning.plan import AggregationPlan, QuestionPlan, statements_of
from dither.tables.query.tree import (
    Aggregate,
    Column,
    PostProcessing,
    Query,
    columns,
    private_tables,
    public_joins,
    public_tables,
    show,
)

if TYPE_CHECKING:
    from dither.tables.query.postprocess import PostProcessedTable, PublicRows
    from dither.tables.question import Question
    from dither.tables.table import Table

MOST_PUBLIC_ROWS = 200_000
"""How many rows a public table may have that SQL on an answer reads."""


def planned(question: Question, options: ReleaseOptions) -> QuestionPlan:
    """Return the plan of a question. Public tables that it joins are read; private rows are not."""
    age = options.profile_age
    card = question.card if age is None else with_recent_profile(question.card, age)
    for part in question.query.aggregations:
        card = with_public_values(question.table.engine, card, part) if public_joins(part) else card
    return plan_question(question.query, card, options)


def forecast_of_noise(question: Question, plan: QuestionPlan, options: ReleaseOptions) -> tuple[Note, ...]:
    """Return notes on columns of which the profile predicts that they are mostly noise, and on what would help; none
    without a profile."""
    if not any(part.expected for part in plan.parts):
        return ()
    from dither.tables.planning.levers import noise_notes  # which questions without a profile do not need

    def replan(query: Query, others: ReleaseOptions) -> QuestionPlan:
        """Return the plan of another query, or of other options, on the same table."""
        return planned(replace(question, query=query), others)

    return noise_notes(plan, question.query, options, replan)


def release(question: Question, options: ReleaseOptions, plan: QuestionPlan | None = None) -> Answer:
    """Charge, run the statements, add noise, record and return the answer; an answer that is already recorded for this
    request is returned without a charge.

    ``plan`` is the question's plan under these options, None where it has not been made yet.
    """
    table = question.table
    plan = planned(question, options) if plan is None else plan
    if plan.of_public is not None:
        assert plan.query.post is not None
        known = result_of_public_tables(plan.query.post, table)
        left = table.accounts.remaining(options.analyst)
        return Answer(
            known.names, known.types, tuple(known.rows), {}, plan.cost, public_notes(plan.query), remaining=left
        )
    if plan.before:
        return _in_stages(question, plan, options)
    pipeline.check(table, plan.cost)
    request = _request_of(question, plan, options)
    may_be_noise = not options.force and options.error is None
    if may_be_noise and not pipeline.is_recorded(table, plan.cost, request, options.analyst):
        refuse_noise_only(plan)
        refuse_mostly_noise(forecast_of_noise(question, plan, options))
    contexts = statement_contexts(question, plan)
    check_statements(question, plan, contexts)

    public = _public_rows(question.query.post, table)

    def compute(paid: Sequence[StatementContext], notes: pipeline.ReleaseNotes) -> bytes:
        """Return the bytes of the answer with its notes, from statements about the people who paid."""

        def answer(rows: Callable[[Statement], list[tuple[Any, ...]]]) -> bytes:
            result = run_plan(question, plan, options, paid, rows, public)
            return encode(replace(result, notes=(*notes.first, *result.notes, *notes.people)).stored())

        return with_progress(answer, _rows_of(table.engine), lambda: _statement_count(plan, paid))

    people = AskedPeople(table.engine, contexts)
    paid = pipeline.release(table, plan.cost, request, people, compute, options.analyst)
    return Answer.restored(
        decode(paid.stored), remaining=paid.remaining, replayed=paid.replayed, receipt=str(paid.receipt)
    )


def _in_stages(question: Question, plan: QuestionPlan, options: ReleaseOptions) -> Answer:
    """Answer the questions that come before this one, read it again with their noisy answers, and answer it.

    Each stage is a release of its own, charged and recorded before the next. Where the budget does not suffice for all
    of them, or an answer would be mostly noise, the question is refused before the first is charged.
    """
    table, query = question.table, question.query
    pipeline.check(table, plan.cost)
    asked = [replace(question, query=item, text=None) for item in query.before]
    keys = [None if options.key is None else f"{options.key} / {place}" for place in range(len(asked))]
    own = stage_options(query, question.card, options)
    stages = [replace(own, key=key, force=True) for key in keys]
    if not all(map(_is_recorded, asked, stages)):
        table.accounts.check_budget(plan.cost, options.analyst)
    for item in (*plan.before, replace(plan, before=())) if not options.force else ():
        refuse_noise_only(item)
    answers = [release(item, stage) for item, stage in zip(asked, stages, strict=True)]
    numbers = [answer.rows[0][0] for answer in answers]
    last = _last_stage(question, plan, answers, replace(own, force=True))
    errors = [next((values[0] for values in answer.errors.values()), None) for answer in answers]
    noted = Note("compared_with", {"numbers": numbers, "errors": errors})
    replayed = last.replayed and all(answer.replayed for answer in answers)
    return replace(last, cost=plan.cost, notes=(noted, *last.notes), replayed=replayed)


def _last_stage(question: Question, plan: QuestionPlan, answers: Sequence[Answer], options: ReleaseOptions) -> Answer:
    """Return the answer to a question whose subqueries have these ``answers``.

    Where it cannot be asked with these numbers, or would cost something else than was said, the refusal says what is
    charged already. What it says depends on released numbers alone.
    """
    numbers = [answer.rows[0][0] for answer in answers]
    shown = ", ".join("NULL" if number is None else f"{number:,.6g}" for number in numbers)
    paid = f"{' and '.join(str(answer.cost) for answer in answers)} is charged for the subquery, which is {shown}"
    if None in numbers:
        raise InvalidArgument(
            "subquery", "a number", "NULL, since it has no values, or too few", f"ask it alone; {paid}"
        )
    try:
        asked = replace(question, query=question.table.reread(question, numbers))
        own = planned(asked, options)
    except InvalidArgument as error:
        raise InvalidArgument(error.subject, error.expected, error.got, f"{error.fix}; {paid}") from None
    said = replace(plan, before=())
    if own.cost != said.cost:
        expected = f"a question that costs {said.cost} with the number of its subquery, as said"
        fix = f"write the number in place of the subquery, to be asked for that cost; {paid}"
        raise InvalidArgument("subquery", expected, str(own.cost), fix)
    return release(asked, options, own)


def _request_of(question: Question, plan: QuestionPlan, options: ReleaseOptions) -> pipeline.PaidRequest:
    """Return the request under which the answer to a question is charged and recorded."""
    content = canonical_request(question.text, question.query, question.card, plan, options)
    return pipeline.identify(content, plan.cost, analyst=options.analyst, key=options.key, again=options.again)


def _is_recorded(question: Question, options: ReleaseOptions) -> bool:
    """Return whether the answer to a question is recorded, so that it is free."""
    plan = planned(question, options)
    return pipeline.is_recorded(question.table, plan.cost, _request_of(question, plan, options), options.analyst)


def _public_rows(post: PostProcessing | None, table: Table) -> PublicRows:
    """Return the public tables that SQL on an answer reads, with the types of their columns."""
    types = {} if post is None else column_types(table.card, post.public)
    return {name: (kinds, table.engine.public_table(name, kinds, MOST_PUBLIC_ROWS)) for name, kinds in types.items()}


def result_of_public_tables(post: PostProcessing, table: Table) -> PostProcessedTable:
    """Return what SQL makes of public tables alone; refuse SQL that fails on them."""
    from dither.tables.query import postprocess  # it loads DuckDB, which other questions may not need

    result = postprocess.run_on_any_numbers(post, [], [], [], _public_rows(post, table))
    if result is None:
        fix = "simplify it, or cast values with TRY_CAST"
        raise InvalidArgument("SQL", "SQL that DuckDB runs on the public tables in 20 s", "one that it does not", fix)
    return result


def statement_contexts(question: Question, plan: QuestionPlan) -> list[StatementContext]:
    """Return the context of each aggregation's statements: its tables, and a fresh secret for keyed hashes. Refuse a
    join on a public column with repeated values."""
    engine = question.table.engine
    engine.check()
    tables: dict[str, Any] = {}
    for part in plan.parts:
        tables |= {name or "": engine.private(name or part.card.name) for name in private_tables(part.query)}
        tables |= {name: engine.public(name) for name in public_tables(part.query)}
    for join in dict.fromkeys(join for part in plan.parts for join in public_joins(part.query)):
        if not engine.unique(join.table, *join.columns):
            # a row with several partners would count several times
            expected = f"each {', '.join(join.columns)} once, since it is joined on it"
            kept = f"WHERE {show(join.own)} IN (SELECT {join.other} FROM {join.table})"
            fix = f"join it on a column with different values, or keep rows that are in it: {kept}"
            raise InvalidData(f"public table {join.table}", expected, "one twice", fix)
    contexts = []
    for part in plan.parts:
        high, low = resolve(None).words(2).tolist()
        contexts.append(part.statement_context(engine.dialect, tables, high << 64 | low))
    return contexts


def check_statements(question: Question, plan: QuestionPlan, contexts: Sequence[StatementContext]) -> None:
    """Refuse, before the charge, statements that the engine cannot compile, and plans that are refused after their
    limits are chosen (with stand-ins for the choices)."""
    for part, context in zip(plan.parts, contexts, strict=True):
        run.rehearse(part, context, question.table.engine)
    rehearse_sql(plan, contexts)
    parts = plan.parts
    if any(part.automatic for part in parts):
        later = _after_choices(parts, contexts, [automatic.stand_in(part) for part in parts])
        for before, part, context in zip(parts, *later, strict=True):
            if before.top is not None:
                run.rehearse(part, context, question.table.engine)


def _statement_count(plan: QuestionPlan, contexts: Sequence[StatementContext]) -> int:
    """Return the number of statements that a release runs, for its progress bar."""
    parts = zip(plan.parts, contexts, strict=True)
    return sum(len(statements_of(part, context)) + len(part.automatic) for part, context in parts)


def run_plan(
    question: Question,
    plan: QuestionPlan,
    options: ReleaseOptions,
    contexts: Sequence[StatementContext],
    rows: Callable[[Statement], list[tuple[Any, ...]]],
    public: PublicRows | None = None,
) -> Answer:
    """Choose unstated limits and bounds privately, then run the statements, add noise, and return the answer;
    ``public`` are the public tables that SQL on the noisy tables reads."""
    plans, about_bias = plan.parts, bias_notes(plan, options.bias)
    if not any(part.automatic for part in plans):
        tables = run.answers(plans, contexts, rows)
        released = list(map(NoisyAggregation, plans, contexts, tables))
        return with_unseen(shape_answer(released, plan.cost, options, [*about_bias], public), plans, ())
    choices: list[automatic.Choices | None] = []
    for part, query, context in zip(plans, question.query.aggregations, contexts, strict=True):
        asked = _without_stand_ins(part, with_unstated_bounds(query, part.card))
        choice = None
        if any(part.automatic.values()):
            choice = automatic.choose_limits(part, asked, context, rows, may_use_either_noise(part))
        choices.append(choice)
    chosen = [_chosen_for(place, plans, choices) for place in range(len(plans))]
    plans, contexts = _after_choices(plans, contexts, chosen)
    released = list(map(NoisyAggregation, plans, contexts, run.answers(plans, contexts, rows)))
    for item, choice in zip(released, chosen, strict=True):
        for name in choice.without_bounds if choice is not None else ():
            item.noisy.answers[name] = [None] * len(item.noisy.answers[name])
            item.noisy.errors[name] = [None] * len(item.noisy.errors[name])
    notes = [*about_bias, *(note for choice in choices if choice is not None for note in choice.notes)]
    answer = shape_answer(released, plan.cost, options, notes, public)
    return with_unseen(with_clipped_shares(answer, plans, chosen), plans, chosen)


def _without_stand_ins(part: AggregationPlan, query: Query) -> Query:
    """Return the plan's query with ``bounds="auto"`` restored where the plan has stand-ins for bounds still to be
    chosen; ``query`` is the question as it was asked."""
    aggregates: dict[str, Aggregate] = {
        name: replace(item, bounds="auto")
        if query.aggregates[name].bounds == "auto" and automatic.BOUNDS_OF + name in part.automatic
        else item
        for name, item in part.query.aggregates.items()
    }
    return replace(part.query, aggregates=aggregates)


def _chosen_for(
    place: int, plans: Sequence[AggregationPlan], choices: Sequence[automatic.Choices | None]
) -> automatic.Choices | None:
    """Return the choices that apply to plan number ``place``; None where nothing was chosen.

    Limits are chosen once for all aggregations of the same rows that are bounded together, so they may come from
    another plan; bounds are the plan's own.
    """
    own, together = choices[place], plans[place].shared_bounds
    if together is None or (own is not None and _chose_limits(plans[place])):
        return own
    for other, choice in zip(plans, choices, strict=True):
        same = other.shared_bounds is not None and other.shared_bounds.rows == together.rows
        if choice is not None and same and _chose_limits(other):
            return (
                choice._replace(without_bounds=(), spent_again=Fraction(0))
                if own is None
                else choice._replace(query=own.query, without_bounds=own.without_bounds, spent_again=own.spent_again)
            )
    return own


def _chose_limits(plan: AggregationPlan) -> bool:
    """Return whether limits are chosen for this aggregation itself."""
    return any(plan.automatic.get(name) for name in automatic.SHARES)


def _after_choices(
    plans: Sequence[AggregationPlan],
    contexts: Sequence[StatementContext],
    chosen: Sequence[automatic.Choices | None],
) -> tuple[tuple[AggregationPlan, ...], list[StatementContext]]:
    """Return the plans with the chosen limits and bounds (None: nothing was chosen), and the contexts of their
    statements."""
    new_plans, new_contexts = [], []
    for plan, context, choice in zip(plans, contexts, chosen, strict=True):
        if choice is not None and plan.automatic.keys() != {"bias"}:  # otherwise the plan is complete
            after = plan_after_choices(plan, choice)
            context = after.statement_context(context.dialect, context.tables, context.secret)
        else:
            after = plan
        chosen_bounds = {
            name: Fraction(0) for name in plan.automatic if name.startswith((automatic.BOUNDS_OF, automatic.VALUES_OF))
        }
        new_plans.append(replace(after, guarantee=plan.guarantee, automatic=chosen_bounds))
        new_contexts.append(context)
    if len(new_plans) > 1:
        new_plans = with_least_squares([replace(plan, reduced={}) for plan in new_plans])
    return tuple(new_plans), new_contexts


def with_clipped_shares(
    answer: Answer, plans: Sequence[AggregationPlan], chosen: Sequence[automatic.Choices | None]
) -> Answer:
    """Return the answer with ``clipped_share``, the share of rows that the chosen limits leave out, and notes on it.

    It is known for COUNT(*), as a share of all rows, and for counts of people, as a share of their groups; not for
    other aggregates, columns of outer SQL, or names to which several aggregations give different shares.
    """
    clipped_share: dict[str, tuple[float, float, float]] = {}
    several: set[str] = set()
    unknown: list[Note] = []
    known: list[Note] = []
    for plan, choices in zip(plans, chosen, strict=True):
        if choices is None:
            continue
        aggregates = plan.query.aggregates
        shown = plan.query.shape.columns or {name: Column(name) for name in aggregates}
        for name, column in shown.items() if plan.query.post is None else ():
            asked = aggregates.get(column.name) if isinstance(column, Column) else None
            has_own_limit = asked is None or asked.rows_per_person is not None  # which leaves out another share
            kind = "" if asked is None or has_own_limit else asked.kind
            estimate = {"count": choices.clipped_share, "people": choices.clipped_memberships}.get(kind)
            corrected = isinstance(column, Column) and column.name in plan.corrections
            if estimate is not None and name in answer.errors and not corrected:
                limits = estimate.share, estimate.low, estimate.high
                several |= {name} if clipped_share.get(name, limits) != limits else set()
                clipped_share[name] = limits
        kinds = {aggregate.kind for aggregate in aggregates.values()}
        learned = choices.clipped_memberships if kinds == {"people"} else choices.clipped_share
        if learned is not None or choices.max_rows is not None:  # a note says already which limit was chosen
            unknown += limitations(plan)
            amounts = set(ADDED) & kinds == {"count"} and bool(clipped_share) and is_total(answer)
            stated: Literal["", "beside them", "as a share"] = "beside them" if amounts else "as a share"
            known += limitations(plan, stated if learned else "", limits_are_stated=choices.max_rows is None)
    clipped_share = {name: limits for name, limits in clipped_share.items() if name not in several}
    if not clipped_share and not unknown:
        return answer
    notes = (*(note for note in answer.notes if note not in unknown), *dict.fromkeys(known))
    return replace(answer, clipped_share=clipped_share, notes=notes)


def with_unseen(answer: Answer, plans: Sequence[AggregationPlan], chosen: Sequence[automatic.Choices | None]) -> Answer:
    """Return the answer with a note on how many people with far more rows than others could go undetected, of whom the
    ± of some columns holds nothing; ``chosen`` is what was chosen privately, if anything was. Notes on limits of joins
    name the columns whose ± holds nothing of what they lose."""
    limited = {note for plan in plans for note in combined_notes(plan)}
    if limited:
        said = {note: Note(note.kind, {**note.values, "names": [*answer.errors]}) for note in limited}
        answer = replace(answer, notes=tuple(said.get(note, note) for note in answer.notes))
    names: dict[str, int] = {}
    for plan, choices in zip_longest(plans, chosen):
        unseen = {name: item.unseen for name, item in plan.corrections.items() if item.unseen}
        if choices is not None and choices.max_rows is not None:
            learned = max((note.values["people"] for note in choices.notes if note.kind == "undetected"), default=0)
            every = plan.query.aggregates.items()
            unseen |= {name: learned for name, item in every if learned and item.kind != "people"}
        shown = plan.query.shape.columns or {name: Column(name) for name in plan.query.aggregates}
        if plan.query.post is not None:  # any column may follow from them
            names |= dict.fromkeys(answer.errors, max(unseen.values())) if unseen else {}
            continue
        for name, value in shown.items():
            of_parts = [unseen[column.name] for column in columns(value) if column.name in unseen]
            names |= {name: max(of_parts)} if of_parts else {}
    known = [name for name in answer.columns if name in names and name in answer.errors]
    if not known:
        return answer
    people = automatic.two_digit_number(max(names[name] for name in known))
    note = Note("unseen_people", {"people": people, "names": known})
    return replace(answer, notes=(*(other for other in answer.notes if other.kind != "undetected"), note))


def _rows_of(engine: Any) -> Callable[[Statement], list[tuple[Any, ...]]]:
    """Return a function that runs a statement and returns its rows as tuples."""

    def rows(statement: Statement) -> list[tuple[Any, ...]]:
        """Return the rows of a statement's result."""
        result = engine.run(statement)
        return list(zip(*(_values(column) for column in result.columns), strict=True)) if result.num_rows else []

    return rows


def _values(column: Any) -> list[Any]:
    """Return the values of an Arrow column as Python values; integers without NULL go through NumPy, which is ten times
    as fast.

    >>> _values(pa.chunked_array([[1, 2], [3]])), _values(pa.array([1, None])), _values(pa.array(["a"]))
    ([1, 2, 3], [1, None], ['a'])
    """
    plain = pa.types.is_integer(column.type) and not column.null_count
    result: list[Any] = column.to_numpy().tolist() if plain else column.to_pylist()
    return result


class AskedPeople:
    """The people with rows that a question is about, who pay for it where people have accounts. They are read from the
    engine only then.

    ``everybody`` are the contexts of the question's statements about all people.
    """

    def __init__(self, engine: Any, everybody: Sequence[StatementContext]) -> None:
        """Keep the engine and the contexts; nothing is read yet."""
        self._engine, self.everybody = engine, everybody
        self._column: Any = None
        self._staged: Any = None

    def read(self) -> Any:
        """Return the keys of the people as an Arrow column, each once. This reads rows, so the ledger charges even if
        it fails."""
        columns = [self._engine.run(statements.contributors(context)).column(0) for context in self.everybody]
        self._column = columns[0]
        if len(columns) > 1:  # a person in one of the aggregations pays for all of them
            import pyarrow as pa

            chunks = [chunk for column in columns for chunk in column.chunks]
            self._column = pa.chunked_array([pa.chunked_array(chunks, columns[0].type).unique()])
        return self._column

    def remaining(self, kept: Any) -> Sequence[StatementContext]:
        """Return the contexts restricted to the people who paid; ``kept`` says so for each key of :meth:`read`. People
        who were added to the table since are excluded, too."""
        import pyarrow as pa

        name = f"dither_paying_{secrets.token_hex(8)}"
        self._staged = self._engine.stage(name, pa.table({"u": self._column.filter(pa.array(kept))}))
        paying = [statements.only_people_of(context, self._staged) for context in self.everybody]
        return [
            replace(context, tables={**context.tables, **rows})
            for context, rows in zip(self.everybody, paying, strict=True)
        ]

    def drop(self) -> None:
        """Remove the staged table of the people who paid, if there is one."""
        if self._staged is not None:
            self._engine.drop(self._staged)
            self._staged = None
