"""A question about a table: explain it, then release it."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from dither.errors import DataIncident, InvalidArgument, InvalidData, message
from dither.homes import public_in
from dither.ledger import receipts
from dither.ledger.answers import decode, encode
from dither.randomness import resolve
from dither.tables.answer import Answer
from dither.tables.card import accounts as card_ledger
from dither.tables.compile.dialect_sql import Phrases
from dither.tables.compile.statements import Frame
from dither.tables.execute import incidents
from dither.tables.execute import run as answering
from dither.tables.execute.contributors import Contributors
from dither.tables.execute.postprocess import shaped
from dither.tables.planning import automatic, calibrate, plan
from dither.tables.planning.explain import Explanation, explain
from dither.tables.planning.plan import Plan
from dither.tables.query.tree import Aggregate, Query

if TYPE_CHECKING:
    from dither.tables.table import Table


@public_in("dither")
@dataclass(frozen=True)
class Question:
    """A question about a table. Nothing is read and nothing charged until it is released."""

    table: Table = field(repr=False)
    query: Query
    text: str | None = None

    def where(self, condition: Any) -> Question:
        """Only rows for which a condition holds, too."""
        from dither.tables.builder import steps

        return replace(self, query=steps.where(self.query, condition, self.table.card), text=None)

    def group_by(self, *groups: Any, **named: Any) -> Question:
        """An answer for each value of these columns or expressions."""
        from dither.tables.builder import steps

        return replace(self, query=steps.group_by(self.query, groups, named, self.table.card), text=None)

    def agg(self, **aggregates: Aggregate) -> Question:
        """What to ask of each group."""
        from dither.tables.builder import steps

        return replace(self, query=steps.agg(self.query, aggregates, self.table.card), text=None)

    def plan(
        self,
        epsilon: float | None = None,
        *,
        error: float | None = None,
        delta: float | None = None,
        max_groups: int | Literal["auto"] | None = None,
        max_rows: int | None = None,
        noise: Literal["best", "laplace", "gaussian"] = "best",
        consistent: bool = False,
        other: bool = False,
    ) -> Plan:
        """How it would be answered; reads no data."""
        return calibrate.make(
            self.query,
            self.table.card,
            epsilon,
            error=error,
            delta=delta,
            max_groups=self._many(max_groups),
            max_rows=max_rows,
            noise=noise,
            consistent=consistent,
            other=other,
        )

    def _many(self, max_groups: object) -> object:
        """How many groups of a person count, "auto" included; a row is in one."""
        card = self.table.card
        return 1 if card.unit is None else plan.first(max_groups, self.query.max_groups, card.max_groups)

    def explain(self, epsilon: float | None = None, *, analyst: str | None = None, **options: Any) -> Explanation:
        """Mechanisms, expected errors and the cost, and whether that would be refused; reads no data and charges
        nothing.
        """
        plan, account = self.plan(epsilon, **options), (self.table._ledger, self.table.card)
        left, refused = card_ledger.left(*account, analyst), card_ledger.refusal(*account, plan.guarantee, analyst)
        return explain(plan, left, card_ledger.left_out(*account, plan.guarantee), refused)

    def release(
        self,
        epsilon: float | None = None,
        *,
        error: float | None = None,
        analyst: str | None = None,
        key: str | None = None,
        again: bool = False,
        nonnegative: bool = False,
        integer: bool = False,
        **options: Any,
    ) -> Answer:
        """Charge, run, add noise, record, and answer.

        The same question with the same parameters returns the recorded answer, for free; ``again=True`` (or another
        ``key``) asks anew, and pays anew. If anything fails once it is paid for, the charge stays, and what is said
        is the same whatever it was; the steward's log has the details.
        """
        if self.table.read_only:
            raise InvalidArgument(
                message("table", "one that was opened to ask", "one opened to read only", "open it without read_only")
            )
        made = self.plan(epsilon, error=error, **options)
        chosen = [] if made.automatic is None else automatic.wanted(self.query, self._many(options.get("max_groups")))
        table, ledger = self.table, self.table.ledger
        table.engine.check()
        request = {
            "question": self.text or repr(self.query),
            "plan": repr(made.query),
            "max_groups": made.groups,
            "max_rows": made.limit,
            "chosen": chosen,
            "noise": sorted({type(noise).__name__ for noise in made.measures.values()}),
            "after": [nonnegative, integer, bool(options.get("consistent")), bool(options.get("other"))],
            "card": hashlib.sha256(repr(table.card).encode()).hexdigest(),
        }
        if key is None:
            told = f"{request}{made.guarantee!r}{analyst}"
            key = secrets.token_hex(16) if again else hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()
        if table.card.receipt is not None:
            receipts.check_writable(table.card.receipt)
        accounts = ledger.accounts(table.card.name)
        first = table._first or any(account.kind == "dataset" and account.spent is None for account in accounts)
        notes = [card_ledger.first_note(ledger, table.card, table._owned is not None)] if first else []
        frame = self._frame(made)
        answering.rehearse(made, frame, table.engine)  # what cannot be compiled fails before the charge
        people = any(account.kind == "people" for account in accounts)
        contributors = Contributors(table.engine, frame, table.incident_log) if people else None
        failed = False
        try:
            paid = ledger.charge(
                table.card.name,
                made.guarantee,
                key=key,
                request=request,
                analyst=analyst,
                people=contributors,
                max_incidents=table.card.max_incidents,
            )
        except DataIncident:
            failed = True
        if failed:  # outside of the handler: nothing of what failed goes with it
            raise DataIncident

        def compute() -> bytes:
            try:
                paying = frame if contributors is None else contributors.remaining(paid.kept)
                answer = self._answer(made, paying, nonnegative, integer, options)
            finally:
                if contributors is not None:
                    contributors.drop()
            about_people = card_ledger.left_out(ledger, table.card, made.guarantee, paid=True)
            return encode(replace(answer, notes=(*notes, *answer.notes, *about_people)).stored())

        stored = paid.answer
        if stored is None:
            subject = f"{table.card.name}: the question charged in entry {paid.receipt.seq} of the ledger"
            stored = incidents.shielded(compute, table.incident_log, subject, lambda: ledger.incident(paid))
        released = ledger.record(paid, stored)
        table._first = False
        if table.card.receipt is not None:
            receipts.keep(table.card.receipt, released.receipt)
        left = card_ledger.left(ledger, table.card, analyst)
        return Answer.restored(
            decode(released.stored), left=left, replayed=released.replayed, receipt=str(released.receipt)
        )

    def _frame(self, made: Plan) -> Frame:
        engine = self.table.engine
        tables = {"": engine.table.sql("duckdb")}
        for join in made.query.joins:
            tables[join.table] = engine.public(join.table).sql("duckdb")
            if not engine.unique(join.table, join.other):
                # a row with several partners would count several times
                expected = f"each {join.other} once, since it is joined on it"
                raise InvalidData(message(f"public table {join.table}", expected, "one twice", "remove one of them"))
        high, low = resolve(None).words(2).tolist()
        return made.frame(Phrases(engine.dialect), tables, high << 64 | low)

    def _answer(self, made: Plan, frame: Frame, nonnegative: bool, integer: bool, options: Mapping[str, Any]) -> Answer:
        engine = self.table.engine

        def run(sql: str) -> list[tuple[Any, ...]]:
            result = engine.run(sql)
            return list(zip(*(column.to_pylist() for column in result.columns), strict=True)) if result.num_rows else []

        if made.automatic is None:
            return shaped(made, frame, answering.answer(made, frame, run), nonnegative, integer, [])
        many = self._many(options.get("max_groups"))
        settled, groups, notes = automatic.settle(self.query, frame, made.automatic, many, run)
        epsilon, delta = made.guarantee.exact[0], made.guarantee.exact[1:]
        final = plan.make(
            settled,
            made.card,
            epsilon=epsilon * (1 - automatic.SHARE * len(automatic.wanted(self.query, many))),
            delta=delta[0] if delta else None,
            max_groups=groups,
            **{name: how for name, how in options.items() if name not in ("delta", "max_groups")},
        )
        last = final.frame(frame.phrases, frame.tables, frame.secret)
        told = replace(final, guarantee=made.guarantee)
        return shaped(told, last, answering.answer(final, last, run), nonnegative, integer, notes)


__all__ = ["Question"]
