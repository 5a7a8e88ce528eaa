"""A question about a table: explain it, then release it.

A question hands its plan, its explanation and its release to the *backend* of its table. The one here works in this
process, on the table's engine and accounts; :mod:`dither.client` has one that asks a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn, Protocol

import dither
from dither.comparison import unhashable
from dither.ledger.accounts import Remaining
from dither.present import markup
from dither.public_module import public_in
from dither.tables.answer import Answer
from dither.tables.attribute_hints import NotIterable, missing_attribute
from dither.tables.builder import steps
from dither.tables.builder.expressions import Condition
from dither.tables.builder.steps import Grouping
from dither.tables.card.model import Card
from dither.tables.card.values import clip
from dither.tables.execute.release import forecast_of_noise, planned, release, result_of_public_tables
from dither.tables.options import ReleaseOptions, takes_options
from dither.tables.planning.explain import Explanation, bias_notes, explain
from dither.tables.planning.plan import QuestionPlan, check_statements
from dither.tables.query.relations import relation_card
from dither.tables.query.tree import Aggregate, Query
from dither.tables.sql.public_subqueries import ComputePublic


class Backend(Protocol):
    """What answers the questions about a table."""

    def plan(self, question: Question, options: ReleaseOptions) -> QuestionPlan:
        """Return how a question would be answered; reads no rows."""
        ...

    def explain(self, question: Question, options: ReleaseOptions, plan: QuestionPlan | None = None) -> Explanation:
        """Mechanisms, expected errors and the cost, and whether that would be refused; reads no rows. ``plan`` is what
        :meth:`plan` returned for these options."""
        ...

    def release(self, question: Question, options: ReleaseOptions, plan: QuestionPlan | None = None) -> Answer:
        """Charge, run, add noise, record, and answer, by the plan that :meth:`plan` returned."""
        ...

    def compute_public(self, table: dither.Table) -> ComputePublic:
        """Return a function that computes SQL about the table's public tables alone, which is free."""
        ...

    def remaining(self, table: dither.Table) -> Remaining:
        """Return what may still be spent on the table, and by the caller."""
        ...

    def close(self, table: dither.Table) -> None:
        """Let go of what the table holds."""
        ...


class LocalBackend:
    """Answers in this process, by the table's own engine and accounts."""

    def plan(self, question: Question, options: ReleaseOptions) -> QuestionPlan:
        """Return how a question would be answered; values of public tables are read, no others."""
        plan = planned(question, options)
        check_statements(plan)
        return plan

    def explain(self, question: Question, options: ReleaseOptions, plan: QuestionPlan | None = None) -> Explanation:
        """Explain the plan, what is left, and whether it would be refused."""
        plan, accounts = self.plan(question, options) if plan is None else plan, question.table.accounts
        refused = accounts.refusal(plan.cost, options.analyst)
        noise = () if options.error is not None else forecast_of_noise(question, plan, options)
        notes = (*noise, *bias_notes(plan, options.bias), *accounts.people_notes(plan.cost))
        return explain(plan, accounts.remaining(options.analyst), notes, refused)

    def release(self, question: Question, options: ReleaseOptions, plan: QuestionPlan | None = None) -> Answer:
        """Charge, run, add noise, record, and answer."""
        return release(question, options, plan)

    def compute_public(self, table: dither.Table) -> ComputePublic:
        """Return a function that computes SQL on the public tables that the engine reads."""
        return lambda post: result_of_public_tables(post, table)

    def remaining(self, table: dither.Table) -> Remaining:
        """Return what may still be spent on the table."""
        return table.accounts.remaining(None)

    def close(self, table: dither.Table) -> None:
        """Let go of the engine and the ledger."""
        table.engine.close()
        table.accounts.close()
        if table.temporary_folder is not None:
            table.temporary_folder.remove()


LOCAL = LocalBackend()


@public_in("dither")
@unhashable
@dataclass(frozen=True)
class Question(NotIterable):
    """A question about a table. Nothing is read and nothing charged until it is released.

    >>> import dither as dp, pyarrow as pa
    >>> with dp.open(pa.table({"age": [30, 40] * 50}), bounds={"age": (0, 120)}, budget=dp.PureDP(1)) as people:
    ...     question = people.agg(mean=dp.mean("age"))
    ...     answer = question.release(epsilon=1)
    >>> answer.columns
    ('mean',)
    """

    _completed = ("agg", "card", "explain", "group_by", "per_person", "release", "text", "where")

    table: dither.Table = field(repr=False)
    query: Query
    text: str | None = None
    about: tuple[str, ...] = ()
    """The tables it is about, where the card has several; none for the card's own."""

    @property
    def card(self) -> Card:
        """Return what is public about its tables: the card, as seen by a question about these alone."""
        return self.table.card.for_table(*self.about) if self.about else self.table.card

    def __repr__(self) -> str:
        """Return one short line: the table, and the SQL or the aggregates and groups.

        >>> import dither as dp, pyarrow as pa
        >>> with dp.open(pa.table({"age": [30, 40], "vip": [True, False]}), budget=dp.PureDP(1)) as people:
        ...     people.group_by("vip").agg(n=dp.count())
        Question('data', n = count, by vip)
        """
        if self.text is not None:
            about = repr(clip(" ".join(self.text.split())))
        else:
            parts = [f"{name} = {aggregate.kind}" for name, aggregate in self.query.aggregates.items()]
            parts += [f"by {group.name}" for group in self.query.groups]
            about = clip(", ".join(parts) or "nothing asked yet")
        return f"Question({self.card.name!r}, {about})"

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the question, and that nothing is charged before it is released."""
        about = markup.code(self.text) if self.text is not None else markup.lines([repr(self)])
        after = "Nothing is read or charged yet: explain(epsilon=1) shows the plan, release(epsilon=1) asks."
        return markup.block(markup.heading(f"Question about {self.card.name}"), about, markup.lines([after]))

    def where(self, condition: Condition | Sequence[Condition]) -> Question:
        """Keep only rows for which a condition holds, too; of several in a list, all must hold."""
        return replace(self, query=steps.where(self.query, condition, self._relation_card), text=None)

    def group_by(self, *groups: Grouping | Sequence[Grouping], **named: Grouping) -> Question:
        """Ask for an answer for each value of these columns or expressions."""
        return replace(self, query=steps.group_by(self.query, groups, named, self._relation_card), text=None)

    def per_person(self, **aggregates: Aggregate) -> Question:
        """Ask of a table with a row for each person, whose columns are exact aggregates of that person's rows.

        With :meth:`group_by` before it, the table has a row for each person and group.

        >>> import dither as dp, pyarrow as pa
        >>> rows = pa.table({"who": [1, 1, 2], "amount": [2.0, 3.0, 4.0]})
        >>> with dp.open(rows, unit="who", bounds={"amount": (0, 9)}, max_rows=5, budget=dp.PureDP(1)) as visits:
        ...     totals = visits.per_person(total=dp.sum("amount"))
        ...     print(totals.agg(mean=dp.mean("total")).release(epsilon=1).columns)
        ('mean',)
        """
        return replace(self, query=steps.per_person(self.query, aggregates, self.card), text=None)

    def agg(self, *unnamed: object, **aggregates: Aggregate) -> Question:
        """State what to ask of each group; each aggregate has a name."""
        steps.refuse_unnamed(unnamed)
        return replace(self, query=steps.agg(self.query, aggregates, self._relation_card), text=None)

    @property
    def _relation_card(self) -> Card:
        """Return what is public about the columns of what it is asked of."""
        return relation_card(self.card, self.query.source)

    if not TYPE_CHECKING:  # a type checker still finds names that do not exist

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error for a missing attribute, as those of an answer are before it is released."""
            raise missing_attribute(self, name)

    @takes_options(ReleaseOptions)
    def plan(self, options: ReleaseOptions) -> QuestionPlan:
        """Return how it would be answered; reads no data."""
        return self.table.backend.plan(self, options)

    @takes_options(ReleaseOptions)
    def explain(self, options: ReleaseOptions) -> Explanation:
        """Return mechanisms, expected errors and the cost, and whether that would be refused; reads no data and charges
        nothing.
        """
        return self.table.backend.explain(self, options)

    @takes_options(ReleaseOptions)
    def release(self, options: ReleaseOptions) -> Answer:
        """Charge, run, add noise, record, and answer.

        The options are those of :class:`~dither.ReleaseOptions`, as keyword arguments or as one object. The same
        question with the same options returns the recorded answer, for free; ``again=True`` (or another ``key``) asks
        anew, and pays anew. If anything fails once it is paid for, the charge stays, and the error does not say why;
        the steward's log has the details.
        """
        return self.table.backend.release(self, options)
