"""A table to ask, and a question about it: explain, then release."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dither import arguments, ledger
from dither.errors import InvalidArgument, InvalidData, message
from dither.guarantees import Guarantee
from dither.ledger import Ledger
from dither.ledger.answers import decode, encode
from dither.randomness import resolve
from dither.tables import answering, auto, explanation, plan, rows, shape
from dither.tables.answer import Answer
from dither.tables.bounding import Frame
from dither.tables.card import Card, ColumnCard, Type
from dither.tables.engines import connect
from dither.tables.engines.process import OwnFolder
from dither.tables.explanation import Explanation, explain
from dither.tables.phrases import Phrases
from dither.tables.plan import Plan
from dither.tables.shaping import SIMPLE, shaped
from dither.tables.tree import Aggregate, Expression, Query

_SMALLEST, _LARGEST = 1e-6, 1e4


class Table:
    """A table with its card, its engine and its ledger: what :func:`dither.open` returns."""

    def __init__(self, card: Card, source: object, books: Ledger, *, owned: Any = None) -> None:
        self.card = card
        self.ledger = books
        self._owned = owned
        try:
            _check_unit(card)
            self.engine = connect(source, card)
        except BaseException:
            books.close()
            raise

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
        return self.ledger.left(self.card.name)

    def close(self) -> None:
        """Let go of the engine and the ledger."""
        self.engine.close()
        self.ledger.close()
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
        query, card = self.query, self.table.card
        many = self._many(max_groups)
        choices = auto.wanted(query, many)
        shape.check(query.shape, [*(group.name for group in query.groups), *query.aggregates])
        chance = plan.first(delta, query.delta, card.delta)

        def made(loss: object) -> Plan:
            whole = arguments.epsilon(loss)
            found = plan.make(
                auto.provisional(query),
                card,
                epsilon=whole * (1 - auto.SHARE * len(choices)),
                delta=chance,
                max_groups=1 if many == "auto" else many,
                max_rows=max_rows,
                noise=noise,
                consistent=consistent,
                other=other,
            )
            if not choices:
                return found
            cost = auto.total(whole, None if chance is None else arguments.delta(chance))
            return replace(found, guarantee=cost, automatic=whole * auto.SHARE)

        given = epsilon if epsilon is not None else query.epsilon
        if (given is None) == (error is None):
            raise InvalidArgument(
                message(
                    "epsilon",
                    "epsilon, or the error that is good enough",
                    "both" if error is not None else "neither",
                    "pass epsilon=0.5, or error=50",
                )
            )
        if error is not None and choices:
            raise InvalidArgument(
                message("error", "stated bounds and max_groups", "'auto'", "state them, or pass epsilon instead")
            )
        found = made(given) if error is None else _for_error(made, arguments.positive(error, "error"))
        answering.every_group(found)
        plan.check(found)
        return found

    def _many(self, max_groups: object) -> object:
        """How many groups of a person count, "auto" included; a row is in one."""
        card = self.table.card
        return 1 if card.unit is None else plan.first(max_groups, self.query.max_groups, card.max_groups)

    def explain(self, epsilon: float | None = None, **options: Any) -> Explanation:
        """Mechanisms, expected errors and the cost; reads no data and charges nothing."""
        return explain(self.plan(epsilon, **options), self.table.ledger)

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
        ``key``) asks anew, and pays anew.
        """
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
        frame = self._frame(made)
        crowd = _Crowd(self.table.engine, frame) if self._counts_people else None
        paid = books.charge(table.card.name, made.guarantee, key=key, request=request, analyst=analyst, people=crowd)
        if paid.answer is None:
            if crowd is not None:
                frame = crowd.remaining(paid.kept)
            found = self._answer(made, frame, nonnegative, integer, options)
            released = books.record(paid, encode(found.stored()))
        else:
            released = books.record(paid, paid.answer)
        return Answer.restored(
            decode(released.stored),
            left=explanation.left(books, table.card.name),
            replayed=released.replayed,
            receipt=str(released.receipt),
        )

    @property
    def _counts_people(self) -> bool:
        return any(account.kind == "people" for account in self.table.ledger.accounts(self.table.card.name))

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


class _Crowd:
    """Everybody with a row that is asked about: they take part, and pay for it. Read only when they have to."""

    def __init__(self, engine: Any, frame: Frame) -> None:
        self._engine, self._frame = engine, frame
        self._column: Any = None

    def __call__(self) -> Any:
        """The column of their keys."""
        sql = f"SELECT DISTINCT u FROM ({self._frame.everywhere.source({})}) AS r"
        self._column = self._engine.run(self._frame.phrases.render(sql)).column(0)
        return self._column

    def remaining(self, kept: Any) -> Frame:
        """The same question about those only who paid: not about people who came since, or could not pay."""
        import pyarrow as pa  # type: ignore[import-untyped]

        name = f"dither_paying_{secrets.token_hex(8)}"
        beside = self._engine._keep(name, pa.table({"u": self._column.filter(pa.array(kept))})).sql("duckdb")
        unit = rows.name(self._frame.card.unit or "")
        table = self._frame.tables[""]
        paying = f"(SELECT o.* FROM {table} AS o WHERE EXISTS (SELECT 1 FROM {beside} AS x WHERE x.u = o.{unit}))"
        return replace(self._frame, tables={**self._frame.tables, "": paying})


def _for_error(made: Any, wanted: float) -> Plan:
    """The plan with the smallest epsilon for which every count and sum is within the error, 95 %."""

    def reaches(loss: float) -> bool:
        found: Plan = made(loss)
        if not any(aggregate.kind in SIMPLE for aggregate in found.query.aggregates.values()):
            raise InvalidArgument(
                message(
                    "error",
                    "a count, a sum or a histogram, whose error does not depend on the data",
                    "other aggregates only",
                    "pass epsilon instead",
                )
            )
        return all(width <= wanted for width in _widths(found))

    low, high = _SMALLEST, _LARGEST
    if not reaches(high):
        raise InvalidArgument(message("error", "a larger error", wanted, "this one would protect nobody"))
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if reaches(middle) else (middle, high)
        if high / low < 1.0005:
            break
    result: Plan = made(float(f"{high:.4g}") if reaches(float(f"{high:.4g}")) else high)
    return result


def _widths(made: Plan, confidence: float = 0.95) -> list[float]:
    found = []
    for name, parts in made.parts.items():
        if made.query.aggregates[name].kind in SIMPLE:
            width = float(made.measures[parts[0]].error(confidence, integer=True))
            found.append(width / parts[0].scale)
    return found + [float(count.mechanism.error(confidence, integer=True)) for count in made.counts]


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
        return Table(card, card.source, _books(card, ledger))
    if isinstance(source, Card):
        return Table(source, source.source, _books(source, ledger))
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
    folder = None if ledger is not None else OwnFolder()
    place = ledger if ledger is not None else f"{folder.name}/ledger.sqlite"  # type: ignore[union-attr]
    try:
        return Table(card, source, _books(card, place), owned=folder)
    except BaseException:
        if folder is not None:
            folder.cleanup()
        raise


def _books(card: Card, place: str | None) -> Ledger:
    """The card's ledger, with its accounts opened at the first time; later the ledger's own limits hold."""
    where = place if place is not None else card.ledger
    if where is None:
        raise InvalidArgument(message("ledger", "where the budget is kept", "nowhere", "state it in the card"))
    books = ledger.open(where)
    held = {(account.owner, account.kind): account.limit for account in books.accounts() if not account.name}
    if (card.name, "dataset") not in held:
        books.create(card.name, limit=card.budget, each_analyst=card.each_analyst, each_person=card.each_person)
    elif held[card.name, "dataset"] != card.budget or held.get((card.name, "people")) != card.each_person:
        books.close()
        raise InvalidArgument(
            message(
                "budget",
                "the budget that the ledger holds",
                "another in the card",
                "put the card back, or change the ledger's with change_limit, signed and with a reason",
            )
        )
    return books


__all__ = ["Question", "Table", "open"]
