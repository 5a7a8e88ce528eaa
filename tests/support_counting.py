"""Random publications of hostile tables, counted by hand: the oracle is Python, row by row."""

from __future__ import annotations

import bisect
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import dither as dp
from dither.publish import Attribute, Domain
from dither.publish.counting import Counting
from dither.publish.domain import Integers, Levels
from dither.tables.card.model import Card
from dither.tables.query.tree import Call, Column, Expression, Literal
from tables.neighbors import random_tables

Counts = dict[Levels, Integers]
Count = Callable[[Counting, Sequence[Levels]], Counts]
_NAMES = ["u", "w", "U", "c0_1", "c1_1", "i1", "k", "t", "m0", "lines", "kept", "n", "a b", 'q"uote', "SELECT", "ü"]
"""Names of columns that statements might have made up themselves."""
_CODES = [5 + step * ((1 << 31) - 1) for step in range(-2, 4)]


@dataclass(frozen=True)
class Spec:
    """One attribute with its value in a row, as an expression and as a function of the row in Python."""

    attribute: Attribute
    expression: Expression
    value: Callable[[Mapping[str, Any]], Any]

    def code(self, row: Mapping[str, Any]) -> int | None:
        """The place of a row among the finest keys; None outside the domain."""
        value, attribute = self.value(row), self.attribute
        if isinstance(value, float) and math.isnan(value):
            value = None
        last = attribute.sizes[-1] - 1
        if value is None:
            return last if attribute.null else None
        rest = last - attribute.null if attribute.other is not None else None
        if attribute.edges is not None:
            place = bisect.bisect_right(attribute.edges, float(value)) - 1
            return place if 0 <= place < len(attribute.edges) - 1 else rest
        listed = attribute.keys[-1].to_pylist()[: attribute.sizes[-1] - attribute.null - (attribute.other is not None)]
        return listed.index(value) if value in listed else rest


@dataclass(frozen=True)
class Publication:
    """A table with its card and tables to be counted; ``removed`` labels the rows of one person (1) and a copy of all
    rows in another order (2, and 3 of the person)."""

    rows: pa.Table
    unit: str | None
    each_without_unit: bool
    max_rows: int
    names: Mapping[str, str]
    """The column of the source for each column of the hostile tables."""
    specs: tuple[Spec, ...]
    where: Expression | None
    is_counted: Callable[[Mapping[str, Any]], bool]
    tables: tuple[Levels, ...]

    @property
    def domain(self) -> Domain:
        return Domain(spec.attribute for spec in self.specs)

    def card(self, source: str, ledger: str, **more: Any) -> Card:
        """The card of the renamed columns."""
        columns = {self.names[name]: card for name, card in random_tables.COLUMNS.items()}
        options = {"rows_without_unit": "each"} if self.each_without_unit else {}
        unit = None if self.unit is None else self.names[self.unit]
        return Card("data", source, columns, unit, max_rows=2, ledger=ledger, budget=dp.PureDP(1000), **options, **more)

    def source(self) -> pa.Table:
        """The rows under the names of the card."""
        return self.rows.rename_columns([self.names[name] for name in self.rows.column_names])

    def counting(self, table: dp.Table, labels: Sequence[int]) -> Counting:
        """How the rows with these labels are counted."""
        marked = Call("in", (Column(self.names["removed"]), *map(Literal, labels)))
        where = marked if self.where is None else Call("and", (marked, self.where))
        return Counting(
            table, self.domain, tuple(spec.expression for spec in self.specs), where=where, max_rows=self.max_rows
        )

    def by_hand(self, labels: Sequence[int], bits: int) -> Counts:
        """The counts, row by row."""
        rows = [row for row in self.rows.to_pylist() if row["removed"] in labels and self.is_counted(row)]
        placed = [(row, [spec.code(row) for spec in self.specs]) for row in rows]
        owners = [None if self.unit is None else row[self.unit] for row, _ in placed]
        inside = [
            (owner, codes)
            for (_, codes), owner in zip(placed, owners, strict=True)
            if None not in codes and (owner is not None or self.unit is None or self.each_without_unit)
        ]
        sizes = Counter(owner for owner, _ in inside)
        one, domain = 1 << bits, self.domain
        result = {levels: np.zeros(domain.shape(levels), dtype=np.int64) for levels in self.tables}
        for owner, codes in inside:
            alone = owner is None or sizes[owner] <= self.max_rows
            weight = one if alone else self.max_rows * one // sizes[owner]
            for levels, counts in result.items():
                counts[self._cell(codes, levels)] += weight
        return result

    def _cell(self, codes: Sequence[int | None], levels: Levels) -> tuple[int, ...]:
        cell = []
        for spec, code, level in zip(self.specs, codes, levels, strict=True):
            place, depth = code or 0, len(spec.attribute.level_names)
            for step in range(depth, level, -1):
                place = int(spec.attribute.parents[step - 1][place])
            cell.append(place)
        return tuple(cell)


def released_counts(counting: Counting, tables: Sequence[Levels]) -> Counts:
    """The whole counts that a release would add noise to."""
    seen: Counts = {}

    def compute(_: Counting, counts: Mapping[Levels, Integers]) -> bytes:
        seen.update(counts)
        return b""

    counting.release(tables, dp.PureDP(1), {}, compute, again=True)
    return seen


def check(publication: Publication, table: dp.Table, count: Count = released_counts) -> None:
    """Whether counts are those by hand, whatever the order of rows, and one person moves them by no more than is said,
    in every table alike."""
    results = []
    for labels in ([0, 1], [2, 3], [0]):
        counting = publication.counting(table, labels)
        counts = count(counting, publication.tables)
        bits = round(-math.log2(counting.unit))
        for levels, expected in publication.by_hand(labels, bits).items():
            assert np.array_equal(counts[levels], expected), levels
        assert len({int(counts[levels].sum()) for levels in publication.tables}) == 1, (
            "a row counts in some tables only"
        )
        results.append(counts)
        most = counting.contribution
    everybody, reordered, without = results
    for levels in publication.tables:
        assert everybody[levels].tobytes() == reordered[levels].tobytes()
        moved = sum(abs(number) for number in (everybody[levels] - without[levels]).ravel().tolist())
        assert Fraction(moved) <= most, levels


def random_publication(seed: int) -> Publication:
    """A hostile table, attributes of all kinds, and tables of them."""
    pick = random.Random(seed)
    unit = pick.choice(["person", "person", "name", None])
    without_unit = unit is not None and pick.random() < 0.3
    rows = random_tables.tables_with_one_person_marked(pick, unit, without_unit)["visits"]
    odd = pick.sample(_distinct_without_case(_NAMES), 8) + [f"x{i}" for i in range(len(random_tables.COLUMNS))]
    chosen = pick.sample(odd[: len(random_tables.COLUMNS)], len(random_tables.COLUMNS))
    names = dict(zip(random_tables.COLUMNS, chosen, strict=True))
    makers = pick.sample(_MAKERS, pick.randint(1, 4))
    specs = tuple(_rich(make(pick, names, f"attribute {i}"), pick) for i, make in enumerate(makers))
    where, is_counted = _condition(pick, names)
    depths = [len(spec.attribute.level_names) for spec in specs]
    tables = {tuple(pick.randint(0, depth) for depth in depths) for _ in range(pick.randint(1, 4))}
    return Publication(
        rows, unit, without_unit, pick.choice([1, 2, 3, 20]), names, specs, where, is_counted, tuple(sorted(tables))
    )


def _distinct_without_case(names: Sequence[str]) -> list[str]:
    return [*{name.casefold(): name for name in names}.values()]


def _rich(spec: Spec, pick: random.Random) -> Spec:
    """The attribute with a key for NULL, or for other values, or without."""
    attribute = spec.attribute
    null, kind = pick.random() < 0.4, attribute.keys[-1].type
    other = {"string": "other", "int64": -77, "double": -77.5}.get(str(kind)) if pick.random() < 0.4 else None
    if attribute.edges is not None:
        return replace(spec, attribute=Attribute.binned(attribute.name, attribute.edges, null=null, other=other))
    lookup = {
        level: attribute.keys[i].take(pa.array(attribute.ancestors(len(attribute.keys), i + 1)))
        for i, level in enumerate(attribute.level_names)
    }
    if any(str(keys.type) != str(kind) for keys in attribute.keys):
        other = None
    nested = Attribute.nested(attribute.name, attribute.level_names, lookup, null=null, other=other)
    return replace(spec, attribute=nested)


def _keys(column: str, values: Sequence[Any]) -> Callable[[random.Random, Mapping[str, str], str], Spec]:
    def make(pick: random.Random, names: Mapping[str, str], name: str) -> Spec:
        keys = pick.sample([*values], pick.randint(1, len(values)))
        return Spec(Attribute.flat(name, keys), Column(names[column]), lambda row: row[column])

    return make


def _nested(column: str, values: Sequence[Any]) -> Callable[[random.Random, Mapping[str, str], str], Spec]:
    def make(pick: random.Random, names: Mapping[str, str], name: str) -> Spec:
        keys = [*values][:5] if pick.random() < 0.3 else pick.sample([*values], pick.randint(2, len(values)))
        groups = [f"group {i if len(keys) == 5 else pick.randint(0, 2)}" for i in range(len(keys))]
        lookup = {f"{name}, above": groups, name: keys}
        attribute = Attribute.nested(name, [f"{name}, above", name], lookup)
        return Spec(attribute, Column(names[column]), lambda row: row[column])

    return make


def _bins(column: str, edges: Sequence[float]) -> Callable[[random.Random, Mapping[str, str], str], Spec]:
    def make(pick: random.Random, names: Mapping[str, str], name: str) -> Spec:
        some = sorted(pick.sample([*edges], pick.randint(2, len(edges))))
        return Spec(Attribute.binned(name, some), Column(names[column]), lambda row: row[column])

    return make


def _month(pick: random.Random, names: Mapping[str, str], name: str) -> Spec:
    keys = sorted(pick.sample(range(1, 13), pick.randint(1, 12)))
    value = Call("date_part", (Literal("month"), Column(names["ever"])))
    return Spec(Attribute.flat(name, keys), value, lambda row: row["ever"] and row["ever"].month)


_MAKERS = [
    _keys("town", random_tables.VALUES["town"]),
    _keys("region", ["north", "north ", "Ä", "A\u0308", ""]),
    _nested("town", random_tables.VALUES["town"]),
    _nested("code", [*_CODES, 0, (1 << 53) + 1, (1 << 63) - 1]),
    _keys("code", [*_CODES, -(1 << 63), (1 << 63) - 1]),
    _keys("age", range(0, 13)),
    _keys("stars", range(-2, 4)),
    _keys("amount", [0.0, 100.0, 1 / 3, 1e308, 7.77]),
    _keys("vip", [True, False]),
    _keys("day", [date.min, date(2024, 2, 29), date.max]),
    _keys("at", [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 23, 59)]),
    _bins("amount", [-1e308, 0.0, 5e-324, 33.3, 100.0, 100.00000000000001, 1e308]),
    _bins("score", [-1.5, 0.1, 1.0, 2.4999999999999996, 2.5]),
    _bins("age", [-(2.0**63), 0, 6, 12, 13, 2.0**63]),
    _month,
    _nested("age", range(13)),
]


def _condition(
    pick: random.Random, names: Mapping[str, str]
) -> tuple[Expression | None, Callable[[Mapping[str, Any]], bool]]:
    if pick.random() < 0.5:
        return None, lambda _: True
    condition = Call("<", (Column(names["stars"]), Literal(2)))
    return condition, lambda row: row["stars"] is not None and row["stars"] < 2
