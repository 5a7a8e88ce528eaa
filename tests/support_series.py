"""Tables that change while a series runs, and what a series measures of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import dither as dp
from dither.budget_hooks import observed_by

START = date(2026, 1, 1)
REGIONS = ("north", "south")
SCHEMA = pa.schema(
    [("who", pa.int64()), ("day", pa.date32()), ("loaded", pa.date32()), ("region", pa.string()), ("x", pa.float64())]
)


class Visit(NamedTuple):
    """One row; days are numbered from 1."""

    who: int
    day: int
    loaded: int
    region: str | None
    x: float | None


def table_of(rows: Sequence[Visit]) -> pa.Table:
    """The rows as a table."""
    lines = [
        (row.who, START + timedelta(days=row.day - 1), START + timedelta(days=row.loaded - 1), row.region, row.x)
        for row in rows
    ]
    columns = [list(column) for column in zip(*lines, strict=True)] if lines else [[]] * 5
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def through(day: int) -> str:
    """A day as ``release`` takes it."""
    return (START + timedelta(days=day - 1)).isoformat()


@contextmanager
def opened(rows: Sequence[Visit], ledger: Path | str, **more: Any):
    """The table as it is now, with a ledger that stays."""
    stated: dict[str, Any] = {"unit": "who", "budget": dp.ApproxDP(10, 1e-3), **more}
    bounds, keys = {"x": (-4, 10)}, {"region": list(REGIONS)}
    with dp.open(table_of(rows), bounds=bounds, keys=keys, ledger=str(ledger), **stated) as table:
        yield table


OPTIONS: dict[str, Any] = {
    "column": "day", "horizon": 12, "start": "2026-01-01", "epsilon": 1, "delta": 1e-6, "max_participations": 2,
    "min_separation": 3, "max_rows": 2,
}  # fmt: skip


def series_of(table: Any, own: tuple[int | None, int | None] = (None, None), **changes: Any) -> Any:
    """A series of that table: three aggregates by region, a count and a sum with these limits of their own."""
    days = table.over("day", **{**OPTIONS, **changes})
    n, total = dp.count(rows_per_person=own[0]), dp.sum("x", rows_per_person=own[1])
    return days.group_by("region").agg(n=n, who=dp.people(), total=total)


class Witness:
    """Sees what a series measures, and what it releases."""

    def __init__(self) -> None:
        self.increments: list[np.ndarray] = []
        self.points: list[np.ndarray] = []
        self.mechanism: Any = None

    def see(self, what: Any, name: str, given: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        result = compute()
        if type(what).__name__ == "SeriesMechanism":
            self.mechanism = what
            self.increments.append(np.array(given["increments"]))
            self.points.append(result)
        return result


def measured(snapshots: Sequence[tuple[int, Sequence[Visit]]], ledger: Path, **changes: Any) -> tuple[np.ndarray, Any]:
    """What is measured by releases through some days, each of the table as it is then: a row for each day."""
    witness = Witness()
    for day, rows in snapshots:
        with observed_by(witness), opened(rows, ledger) as table:
            series_of(table, **changes).release(through=through(day))
    return np.concatenate(witness.increments), witness.mechanism


def random_history(seed: int) -> tuple[list[tuple[int, list[Visit]]], int]:
    """Snapshots of some 20 hostile rows between releases, and the busiest person: rows come late, are moved to other
    days, changed and deleted."""
    drawn = random.Random(seed)

    def row(person: int | None = None) -> Visit:
        day = drawn.randint(-1, 14)
        who = person if person is not None else drawn.choice([1, 1, 1, 2, 3, -7])
        region = drawn.choice([*REGIONS, *REGIONS, "east", None])
        x = drawn.choice([-1e300, -5.0, -4.0, 0.0, 3.25, 10.0, 1e9, None, float("nan"), float("inf")])
        return Visit(who, day, day + drawn.choice([0, 0, 0, 1, 5]), region, x)

    rows = [row() for _ in range(20)]
    days = sorted(drawn.sample(range(1, 13), drawn.randint(2, 4)))
    snapshots = []
    for day in days:
        snapshots.append((day, list(rows)))
        for _ in range(drawn.randint(0, 8)):
            kind = drawn.random()
            if kind < 0.35 or not rows:
                rows.append(row(1))
            elif kind < 0.6:
                rows.pop(drawn.randrange(len(rows)))
            else:
                rows[drawn.randrange(len(rows))] = row()
        if drawn.random() < 0.2:
            rows = [item for item in rows if item.who != 1]  # forgotten, and back later
    return snapshots, 1


def without(snapshots: Sequence[tuple[int, Sequence[Visit]]], person: int) -> list[tuple[int, list[Visit]]]:
    """The same course of events without one person."""
    return [(day, [row for row in rows if row.who != person]) for day, rows in snapshots]


def violations(change: np.ndarray, mechanism: Any, participations: int, separation: int) -> list[str]:
    """How what is measured moved further than the schema of participation allows."""
    result = []
    moved = np.flatnonzero(np.any(change != 0, axis=1))
    if len(moved) > participations:
        result.append(f"{len(moved)} periods")
    if len(moved) > 1 and np.diff(moved).min() < separation:
        result.append("periods too close")
    for i, lane in enumerate(mechanism.lanes):
        part = change[:, i * mechanism.groups : (i + 1) * mechanism.groups]
        if int(np.abs(part).sum(axis=1).max(initial=0)) > lane.sensitivity:
            result.append(f"aggregate {i} moved too far")
    return result


def moment(value: date) -> datetime:
    """A date as a timestamp."""
    return datetime(value.year, value.month, value.day, 13, 30)


def by_hand(rows: Sequence[Visit], first: int, last: int, spec: Any) -> dict[tuple[int, int, int], list[int]]:
    """What each person adds in each period and group, computed in Python: (who, day, region) to numbers."""
    limits, (count, _, total) = spec.limits, spec.measures
    grid, top = total.moments.grid, total.top
    of_total = replace(limits, rows_per_person=total.rows_per_person)

    def weight(measure: Any, rows: int) -> int:
        most = measure.rows_per_person or spec.max_rows
        one = 1 << replace(limits, rows_per_person=measure.rows_per_person).bits()
        return one if rows <= most else one * most // rows

    def steps(x: float | None) -> int:
        if x is None or x != x:
            return 0
        return round(min(max(x, -4.0), 10.0) * grid.scale)

    persons: dict[tuple[int, int], list[Visit]] = {}
    for row in rows:
        day = max(row.day, row.loaded) if spec.arrived is not None else row.day
        if first <= day <= last and row.region in REGIONS:
            persons.setdefault((row.who, day), []).append(row)
    result = {}
    for (who, day), own in persons.items():
        regions = {row.region for row in own}
        share = (1 << limits.of_people.bits()) // len(regions)
        for region in regions:
            here = [row for row in own if row.region == region]
            added = sum(steps(row.x) for row in here)
            places = max(0, min(of_total.bits(top), 16 - top.bit_length()))
            size = (abs(added) * weight(total, len(own))) >> (of_total.bits() - places)
            place = (who, day, REGIONS.index(str(region)))
            result[place] = [len(here) * weight(count, len(own)), share, size if added >= 0 else -size]
    return result
