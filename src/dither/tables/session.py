"""A table to ask, and a question about it: explain, then release."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dither import arguments
from dither.errors import DataIncident, InvalidArgument, InvalidData, LedgerError, message
from dither.guarantees import Guarantee
from dither.ledger import Ledger, Receipt, receipts
from dither.ledger.answers import decode, encode
from dither.randomness import resolve
from dither.tables import answering, auto, card_ledger, incidents, plan, question_plan
from dither.tables.answer import Answer
from dither.tables.bounding import Frame
from dither.tables.card import Card, ColumnCard, Type, limited, tightened
from dither.tables.contributors import Contributors
from dither.tables.engines import connect
from dither.tables.engines.process import OwnFolder
from dither.tables.explanation import Explanation, explain
from dither.tables.phrases import Phrases
from dither.tables.plan import Plan
from dither.tables.shaping import shaped
from dither.tables.tree import Aggregate, Expression, Query


class Table:
    """A table with its card, its engine and its ledger: what :func:`dither.open` returns.

    ``new_ledger`` says that opening it started a new ledger; ``new_accounts``, that it opened the table's accounts, in
    a new ledger or in one that holds other tables.
    """

    def __init__(
        self,
        card: Card,
        source: object,
        ledger: Ledger | None,
        log: incidents.IncidentLog,
        *,
        owned: Any = None,
        new_ledger: bool = False,
        new_accounts: bool = False,
        read_only: bool = False,
    ) -> None:
        self.card = card
        self.new_ledger = new_ledger
        self.new_accounts = new_accounts
        self.read_only = read_only
        self.incident_log = log
        self._ledger, self._owned = ledger, owned
        self._first = new_accounts
        try:
            _check_unit(card)
            arguments.epsilon(card.min_epsilon, "min_epsilon")
            arguments.whole(card.max_incidents, "max_incidents")
            self.engine = connect(source, card)
        except BaseException:
            if ledger is not None:
                ledger.close()
            raise

    @property
    def ledger(self) -> Ledger:
        """Where its budget is kept. Opened to read only, a table may have none yet."""
        if self._ledger is None:
            raise LedgerError(
                message("ledger", "a ledger for this table", "none yet", "open the table without read_only")
            )
        return self._ledger

    def sql(self, text: str) -> Question:
        """A question in SQL."""
        from dither.tables import sql

        return Question(self, sql.parse(text, self.card), text)

    def where(self, condition: str | Expression) -> Question:
        """Only rows for which a condition holds."""
        return Question(self, Query({})).where(condition)

    def group_by(self, *groups: Any, **named: Any) -> Question:
        """An answer for each value of these columns or expressions."""
        return Question(self, Query({})).group_by(*groups, **named)

    def agg(self, **aggregates: Aggregate) -> Question:
        """What to ask of all rows together."""
        return Question(self, Query({})).agg(**aggregates)

    @property
    def left(self) -> Guarantee | None:
        """What the dataset has left; None for nothing, and where only people have limits."""
        return self.card.budget if self._ledger is None else self._ledger.left(self.card.name)

    def close(self) -> None:
        """Let go of the engine and the ledger."""
        self.engine.close()
        if self._ledger is not None:
            self._ledger.close()
        if self._owned is not None:
            self._owned.cleanup()

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Table({self.card.name!r}, {len(self.card.columns)} columns, unit={self.card.unit!r})"


def _check_unit(card: Card) -> None:
    """A person is named by a whole number or a text: doubles have no one text, and some are not numbers."""
    told = None if card.unit is None else card.columns.get(card.unit)
    if card.unit is not None and (told is None or told.type not in ("integer", "text")):
        raise InvalidArgument(
            message(
                "unit",
                "a column of whole numbers or text",
                "no such column" if told is None else told.type,
                "convert it; a pandas column of whole numbers with gaps is made of floats: use astype('Int64')",
            )
        )


@dataclass(frozen=True)
class Question:
    """A question about a table. Nothing is read and nothing charged until it is released."""

    table: Table = field(repr=False)
    query: Query
    text: str | None = None

    def where(self, condition: Any) -> Question:
        """Only rows for which a condition holds, too."""
        from dither.tables import builder

        return replace(self, query=builder.where(self.query, condition, self.table.card), text=None)

    def group_by(self, *groups: Any, **named: Any) -> Question:
        """An answer for each value of these columns or expressions."""
        from dither.tables import builder

        return replace(self, query=builder.group_by(self.query, groups, named, self.table.card), text=None)

    def agg(self, **aggregates: Aggregate) -> Question:
        """What to ask of each group."""
        from dither.tables import builder

        return replace(self, query=builder.agg(self.query, aggregates, self.table.card), text=None)

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
        return question_plan.make(
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
        chosen = [] if made.automatic is None else auto.wanted(self.query, self._many(options.get("max_groups")))
        table, books = self.table, self.table.ledger
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
        accounts = books.accounts(table.card.name)
        first = table._first or any(account.kind == "dataset" and account.spent is None for account in accounts)
        notes = [card_ledger.first_note(books, table.card, table._owned is not None)] if first else []
        frame = self._frame(made)
        answering.rehearse(made, frame, table.engine)  # what cannot be compiled fails before the charge
        people = any(account.kind == "people" for account in accounts)
        contributors = Contributors(table.engine, frame, table.incident_log) if people else None
        failed = False
        try:
            paid = books.charge(
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
            about_people = card_ledger.left_out(books, table.card, made.guarantee, paid=True)
            return encode(replace(answer, notes=(*notes, *answer.notes, *about_people)).stored())

        stored = paid.answer
        if stored is None:
            subject = f"{table.card.name}: the question charged in entry {paid.receipt.seq} of the ledger"
            stored = incidents.shielded(compute, table.incident_log, subject, lambda: books.incident(paid))
        released = books.record(paid, stored)
        table._first = False
        if table.card.receipt is not None:
            receipts.keep(table.card.receipt, released.receipt)
        left = card_ledger.left(books, table.card, analyst)
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
            found = engine.run(sql)
            return list(zip(*(column.to_pylist() for column in found.columns), strict=True)) if found.num_rows else []

        if made.automatic is None:
            return shaped(made, frame, answering.answer(made, frame, run), nonnegative, integer, [])
        many = self._many(options.get("max_groups"))
        settled, groups, notes = auto.settle(self.query, frame, made.automatic, many, run)
        loss, chance = made.guarantee._numbers[0], made.guarantee._numbers[1:]
        final = plan.make(
            settled,
            made.card,
            epsilon=loss * (1 - auto.SHARE * len(auto.wanted(self.query, many))),
            delta=chance[0] if chance else None,
            max_groups=groups,
            **{name: how for name, how in options.items() if name not in ("delta", "max_groups")},
        )
        last = final.frame(frame.phrases, frame.tables, frame.secret)
        told = replace(final, guarantee=made.guarantee)
        return shaped(told, last, answering.answer(final, last, run), nonnegative, integer, notes)


def open(
    source: Any,
    *,
    unit: str | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    keys: Mapping[str, Any] | None = None,
    budget: Guarantee | None = None,
    name: str = "data",
    max_groups: int = 1,
    max_rows: int = 1,
    delta: float | None = None,
    ledger: str | None = None,
    receipt: Receipt | str | None = None,
    read_only: bool = False,
    max_incidents: int | None = None,
    min_epsilon: float | None = None,
    types: Mapping[str, Type] | None = None,
) -> Table:
    """Open a table by its card, or a frame with what a card would say.

    Parameters
    ----------
    source
        A card's file (``visits.toml``), a :class:`~dither.tables.card.Card`, or a pandas, Polars, Arrow or Spark frame.
    unit, bounds, keys, budget, name, max_groups, max_rows, delta
        For a frame: what its card would say. ``unit`` names the column of the person; without it every row is a person
        of their own. ``budget`` is needed.
    ledger
        Where to keep the budget. For a frame, by default in a temporary file: it then lasts as long as the table.
    receipt
        The last receipt that was kept, or its text: a ledger that does not hold it is refused. By default the one in
        the file that the card names, if it does.
    read_only
        To check and explain: a ledger is neither made nor changed, and nothing can be released.
    max_incidents
        After so many errors while rows were read the table is closed until its steward reopens it; by default what
        the card says, or 3. Beside a card it may only be smaller than what the card says.
    min_epsilon
        The least epsilon of a question; by default what the card says, or 1e-4. Beside a card it may only be larger.
    types
        For a frame: the types of its columns, as in ``{"age": "integer"}``, where they are not those of its schema.
        They are never guessed from the values: a column of Python objects needs one. Each value is read as that type by
        itself, and is NULL where it does not fit. pandas chooses a column's dtype by its values (one missing whole
        number makes all of them floats), so declare the types of what came from a list or a file.
    """
    from dither.tables import cards
    from dither.tables.aggregates import different

    if isinstance(source, (str, Path)) and str(source).endswith(".toml"):
        card = cards.read(source)
        if "://" in (ledger or card.ledger or "") and card.incident_log is None:
            log = Path(source).absolute().parent / f"{card.name}.incidents.log"
            card = replace(card, incident_log=str(log))
        return _opened(tightened(card, max_incidents, min_epsilon), card.source, ledger, receipt, read_only)
    if isinstance(source, Card):
        return _opened(tightened(source, max_incidents, min_epsilon), source.source, ledger, receipt, read_only)
    if budget is None:
        raise InvalidArgument(message("budget", "what may ever be learned", "none", "pass budget=dither.PureDP(1)"))
    with connect(source, types=types) as engine:
        present = engine.found()
        schema = engine.schema() | {column: type for column, type in (types or {}).items() if column in present}
    for column in sorted({*(bounds or {}), *(keys or {}), *(types or {}), *([unit] if unit else [])} - set(schema)):
        raise InvalidArgument(message("column", f"one of {', '.join(schema)}", column, "correct the name"))
    columns = {
        column: ColumnCard(
            kind,
            None if bounds is None or column not in bounds else arguments.bounds(bounds[column]),
            None if keys is None or column not in keys else different(keys[column], f"keys of {column}"),
        )
        for column, kind in schema.items()
    }
    card = Card(name, "", columns, unit, max_groups, max_rows, budget=budget, delta=delta)
    card = limited(card, max_incidents, min_epsilon)
    folder = None if ledger is not None else OwnFolder()
    place = ledger if ledger is not None else f"{folder.name}/ledger.sqlite"  # type: ignore[union-attr]
    try:
        return _opened(card, source, place, receipt, read_only, owned=folder)
    except BaseException:
        if folder is not None:
            folder.cleanup()
        raise


def _opened(
    card: Card, source: object, place: str | None, receipt: Receipt | str | None, read_only: bool, owned: Any = None
) -> Table:
    """The table with its ledger, which is opened first: a ledger that went back is refused before anything is read."""
    where = place if place is not None else card.ledger
    if where is None and not read_only:
        raise InvalidArgument(message("ledger", "where the budget is kept", "nowhere", "state it in the card"))
    new_ledger, new_accounts, ledger = False, False, None
    if where is not None and read_only:
        ledger = card_ledger.read_ledger(card, where, receipt)
    elif where is not None:
        ledger, new_accounts = card_ledger.open_ledger(card, where, receipt)
        new_ledger = new_accounts and not card_ledger.holds_others(ledger, card)
    log = incidents.log_of(card, where or "")
    new = {"new_ledger": new_ledger, "new_accounts": new_accounts}
    return Table(card, source, ledger, log, owned=owned, read_only=read_only, **new)


__all__ = ["Question", "Table", "open"]
