"""What one person can see to, with the noise taken away: every number and every score that noise would have hidden."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from dither.inference import NoiseLaw
from dither.mechanisms import Exponential, Gaussian, Laplace
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.compile.context import StatementContext
from dither.tables.engines import Engine, connect
from dither.tables.execute import run as answering
from dither.tables.planning.group_keys import KeySelection
from dither.tables.planning.plan import AggregationPlan
from dither.tables.query.relations import base_of
from dither.tables.query.tree import public_tables

COLUMNS = {
    "person": ColumnCard("integer"),
    "region": ColumnCard("text", keys=("north", "south")),
    "town": ColumnCard("text"),
    "code": ColumnCard("integer"),
    "amount": ColumnCard("number", (0, 100)),
    "age": ColumnCard("integer", (0, 120)),
    "day": ColumnCard("date"),
    "at": ColumnCard("timestamp"),
    "vip": ColumnCard("boolean"),
}
TYPES = {
    "person": pa.int64(), "region": pa.string(), "town": pa.string(), "code": pa.int64(), "amount": pa.float64(),
    "age": pa.int64(), "day": pa.date32(), "at": pa.timestamp("us"), "vip": pa.bool_(),
}  # fmt: skip


def card(unit: str | None = "person", public: dict[str, PublicTable] | None = None, **more: Any) -> Card:
    return Card("visits", "", COLUMNS, unit, public=public or {}, **more)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as they are given; what is not said is NULL."""
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in TYPES.items()})


@dataclass
class Glass:
    """What reached each mechanism, in order; and the keys of the groups before any was left out."""

    added: list[tuple[Any, Any]] = field(default_factory=list)
    scored: list[tuple[Any, Any]] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)
    answer: Any = None


@contextmanager
def glass(place: float | None = None) -> Iterator[Glass]:
    """Mechanisms add nothing and choose the best, or what is at a given place; what they are given is kept."""
    seen = Glass()

    def release(self: Any, values: Any, **_: Any) -> Any:
        seen.added.append((self, np.array(values, dtype=object)))
        return values

    def select(self: Any, scores: Any, **_: Any) -> int:
        seen.scored.append((self, np.asarray(scores).astype(object)))
        return int(np.argmax(scores)) if place is None else int(place * len(scores))

    with (
        patch.object(Laplace, "release", release),
        patch.object(Gaussian, "release", release),
        patch.object(Exponential, "select_index", select),
        patch.object(NoiseLaw, "sum_limit", lambda *_: 0.0),  # a group is empty where its number is 0
    ):
        yield seen


_OPEN: dict[str, Engine] = {}
"""An engine for each card, opened once: to open one takes longer than to ask it a question about a few rows."""


def close_engines() -> None:
    """Close every engine that :func:`bounded_tables` opened."""
    while _OPEN:
        _OPEN.popitem()[1].close()


@contextmanager
def _engine_of(plan: AggregationPlan, rows: pa.Table) -> Iterator[Engine]:
    """DuckDB with these rows. The engine of a card without public tables stays open, and is given other rows."""
    card = base_of(plan.card)
    if card.public:
        with connect(rows, card) as engine:
            yield engine
        return
    name = repr((card, rows.schema))
    if name not in _OPEN:
        _OPEN[name] = connect(rows, card)
    engine = _OPEN[name]
    engine.stage(engine._raw(plan.card.name).name, rows)  # in place of the rows that it had
    yield engine


def bounded(plan: AggregationPlan, rows: pa.Table, secret: int = 7, place: float | None = None) -> Glass:
    """A plan run on DuckDB without noise; keys that are not public are all shown."""
    return next(bounded_tables(plan, [rows], secret, place))


def bounded_tables(
    plan: AggregationPlan, tables: Iterable[pa.Table], secret: int = 7, place: float | None = None
) -> Iterator[Glass]:
    """As :func:`bounded`, for one table after another; the statements are built once."""
    if plan.selection is not None:
        plan = replace(plan, selection=KeySelection(-(1 << 60), plan.selection.delta))
    context: StatementContext | None = None
    for rows in tables:
        with _engine_of(plan, rows) as engine, glass(place) as seen:
            if context is None or plan.card.public:
                named = {"": engine.table} | {name: engine.public(name) for name in public_tables(plan.query)}
                context = plan.statement_context("duckdb", named, secret)

            def run(sql: Any, engine: Engine = engine) -> list[tuple[Any, ...]]:
                return list(zip(*(column.to_pylist() for column in engine.run(sql).columns), strict=True))

            seen.answer = answering.answer(plan, context, run)
            seen.keys = seen.answer.keys
        yield seen


def _totals(seen: Glass) -> list[tuple[Any, Any]]:
    return [item for item in seen.added if item[1].ndim == 0]


def _vectors(plan: AggregationPlan, seen: Glass) -> list[tuple[Any, dict[Any, Any]]]:
    """What reached each mechanism, by group."""
    keys = seen.keys[:-1] if plan.other else seen.keys
    result = [item for item in seen.added if item[1].ndim]
    return [
        (mechanism, dict(zip(keys, np.split(values, len(keys)), strict=True)) if keys else {})
        for mechanism, values in result
    ]


def losses(plan: AggregationPlan, one: Glass, other: Glass) -> tuple[float, float]:
    """What neighbors could tell at most, from what reached the mechanisms: an epsilon, and sum (shift / sigma)^2."""
    pure, normal = 0.0, 0.0
    # totals are numbers; where there are no groups, nothing else is released
    for (mechanism, here), (_, there) in zip(_totals(one), _totals(other), strict=True):
        moved = abs(int(here) - int(there))
        assert moved <= mechanism.sensitivity
        pure += moved / mechanism.scale
    mine, theirs = _vectors(plan, one), _vectors(plan, other)
    for mechanism, here, there in zip(
        [item for item, _ in mine or theirs], mine or [(None, {})] * 99, theirs or [(None, {})] * 99, strict=False
    ):
        nothing = np.zeros(1000, dtype=object)
        moved_by = [
            [abs(a - b) for a, b in zip(here[1].get(key, nothing), there[1].get(key, nothing), strict=False)]
            for key in {*here[1], *there[1]}
        ]
        moved = [by for item in moved_by for by in item]
        if isinstance(mechanism, Laplace):
            assert sum(moved) <= mechanism.sensitivity
            pure += sum(moved) / mechanism.scale
        else:
            normal += sum(float(by) ** 2 for by in moved) / mechanism.scale**2
    here, there = (_scores(plan, item) for item in (one, other))
    for choice in {*here} & {*there}:
        mechanism, steps = here[choice][0], here[choice][1] - there[choice][1]
        by = max(abs(steps))
        assert by <= mechanism.sensitivity
        if mechanism.monotone:
            assert all(steps >= 0) or all(steps <= 0)
        pure += mechanism.epsilon * by / mechanism.sensitivity
    return pure, normal


def _scores(plan: AggregationPlan, seen: Glass) -> dict[Any, tuple[Any, Any]]:
    """What was scored, by group, and the number of the choice in it."""
    keys, scored = seen.keys[:-1] if plan.other else seen.keys, iter(seen.scored)
    result = {(key, place): next(scored) for place, _ in enumerate(plan.choices) for key in keys}
    for place, ranked in enumerate(plan.quantiles):
        result |= {(key, place, node): next(scored) for key in keys for node, _ in enumerate(ranked.rank)}
    return result
