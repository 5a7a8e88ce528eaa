"""Recorded answers: the own ones, and those that are published to readers."""

from __future__ import annotations

import json
import time
from typing import Any

import sqlalchemy as sa

from dither.errors import InvalidArgument
from dither.server import schema
from dither.server.context import Context
from dither.server.errors import Conflict, NotFound
from dither.server.principal import Principal
from dither.server.results import AnswerLine, AnswerRecord
from dither.server.roles import authorize, may
from dither.server.times import iso, iso_or_none
from dither.wire import answers as wire

_table = schema.answers
_BY_ID = sa.select(_table).where(_table.c.id == sa.bindparam("answer"), _table.c.at <= sa.bindparam("now"))
_MOST = 1000
_MAX_TITLE = 200


class Answers:
    """Answers that were released and recorded."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def mine(
        self, who: Principal, *, table: str | None = None, most: int = 100, before: str | None = None
    ) -> tuple[AnswerLine, ...]:
        """Own answers, the newest first; ``before`` is the id of the last one of the page before."""
        authorize(who, "answers.own")
        conditions = [_table.c.user == who.name]
        if table is not None:
            conditions.append(_table.c.dataset == table)
        if before is not None:
            row = self._row(before)
            if row is None or row.user != who.name:
                raise NotFound.of("answer")
            conditions.append(sa.tuple_(_table.c.at, _table.c.id) < (row.at, row.id))
        return self._lines(conditions, (_table.c.at.desc(), _table.c.id.desc()), max(1, min(most, _MOST)))

    def answer(self, who: Principal, answer: str) -> AnswerRecord:
        """An own answer, one that is published, or, for stewards, one that was proposed. Of any other, that it does not
        exist."""
        row = self._visible(who, answer)
        return AnswerRecord(
            row.id, row.dataset, row.user, row.question, json.loads(row.options), row.cost, iso(row.at), row.receipt,
            wire.from_json(json.loads(row.body)), iso_or_none(row.published_at), row.title, row.proposed_at is not None,
        )  # fmt: skip

    def document(self, who: Principal, answer: str) -> dict[str, Any]:
        """The same answer as the wire has it, with the bytes that the ledger recorded."""
        result: dict[str, Any] = json.loads(self._visible(who, answer).body)
        return result

    def of_job(self, who: Principal, answer: str) -> dict[str, Any]:
        """The answer to a question of one's own, as the wire has it: whoever may ask may see what it gave."""
        authorize(who, "questions.job")
        row = self._row(answer)
        if row is None or row.user != who.name:
            raise NotFound.of("answer")
        result: dict[str, Any] = json.loads(row.body)
        return result

    def _visible(self, who: Principal, answer: str) -> Any:
        row = self._row(answer)
        own = row is not None and row.user == who.name and may(who, "answers.own")
        published = row is not None and row.published_at is not None and may(who, "answers.published")
        proposed = row is not None and row.proposed_at is not None and may(who, "answers.publish")
        if row is None or not (own or published or proposed):
            self._context.log(who.name, "answers.own", answer, refused="NotFound")
            raise NotFound.of("answer")
        return row

    def propose(self, who: Principal, answer: str, title: str) -> AnswerLine:
        """Ask a steward to publish an own answer to readers."""
        with self._context.acting(who, "answers.propose", answer, logged=True):
            row = self._row(answer)
            if row is None or row.user != who.name:
                raise NotFound.of("answer")
            if row.published_at is not None:  # its title is what readers see, and was approved
                expected, fix = "an answer that is not published", "have a steward unpublish it first"
                raise Conflict("answer", expected, "a published one", fix)
            return self._update(answer, title=_title(title), proposed_at=time.time())

    def proposals(self, who: Principal) -> tuple[AnswerLine, ...]:
        """Answers that analysts want published (for stewards)."""
        authorize(who, "answers.publish")
        conditions = [_table.c.proposed_at.is_not(None), _table.c.published_at.is_(None)]
        return self._lines(conditions, (_table.c.proposed_at,), _MOST)

    def publish(self, who: Principal, answer: str, title: str) -> AnswerLine:
        """Publish an answer to readers: an own one, or one that was proposed."""
        with self._context.acting(who, "answers.publish", answer, logged=True):
            row = self._row(answer)
            if row is None or (row.user != who.name and row.proposed_at is None):
                raise NotFound.of("answer")
            return self._update(answer, title=_title(title), published_at=time.time(), published_by=who.name)

    def unpublish(self, who: Principal, answer: str) -> AnswerLine:
        """Show an answer to readers no longer."""
        with self._context.acting(who, "answers.publish", answer, logged=True):
            row = self._row(answer)
            if row is None or row.published_at is None:
                raise NotFound.of("answer")
            return self._update(answer, published_at=None, published_by=None, proposed_at=None)

    def published(self, who: Principal) -> tuple[AnswerLine, ...]:
        """The published answers, the newest first."""
        authorize(who, "answers.published")
        return self._lines([_table.c.published_at.is_not(None)], (_table.c.published_at.desc(),), _MOST)

    def _row(self, answer: str) -> Any:
        return self._context.store.one(_BY_ID, {"answer": answer, "now": self._context.clock.now()})

    def _update(self, answer: str, **values: Any) -> AnswerLine:
        self._context.store.run(_table.update().where(_table.c.id == answer).values(**values))
        return _line(self._row(answer))

    def _lines(self, conditions: list[Any], order: tuple[Any, ...], most: int) -> tuple[AnswerLine, ...]:
        columns = [column for column in _table.c if column.name != "body"]
        there = _table.c.at <= self._context.clock.now()  # the tick of an answer that was just recorded may be to come
        rows = self._context.store.rows(sa.select(*columns).where(there, *conditions).order_by(*order).limit(most))
        return tuple(_line(row) for row in rows)


def _line(row: Any) -> AnswerLine:
    return AnswerLine(
        row.id, row.dataset, row.user, row.question, row.cost, iso(row.at), iso_or_none(row.published_at), row.title,
        row.proposed_at is not None, row.kind,
    )  # fmt: skip


def _title(title: str) -> str:
    if not isinstance(title, str) or not 0 < len(title.strip()) <= _MAX_TITLE or not title.isprintable():
        raise InvalidArgument("title", f"1 to {_MAX_TITLE} printable characters", "others", "choose another")
    return title.strip()
